# SPDX-License-Identifier: GPL-2.0-only
"""Whether a wakeup pulls the wakee to the waker's CPU. Source: kernel/sched/fair.c.

    record_wakee            counts how often a waker changes its wakee: its flips, halved after a second
    wake_wide               many flips on both sides: leave the wakee where it was
    wake_affine             else choose between the waker's CPU and the wakee's previous one:
      wake_affine_idle        by which of them is idle
      wake_affine_weight      by their load, with a bias for the waker's

They are read from C; there is no action yet. ``current`` is the waker and runs on ``this_cpu``. A CPU is its runqueue;
there are no task groups, so a CPU has one CFS queue and its tasks stand on it themselves. One sched domain spans the
CPUs. The scheduler features are those of a kernel that nobody has tuned. Loads are what a nice 0 task brings, 1024;
the functions are compared and run on exact values, so nothing hangs on these.
"""

from __future__ import annotations

from schedproof.model import (
    Bool,
    Constant,
    Link,
    Model,
    Object,
    Param,
    Pointer,
    Range,
    Values,
    Vocabulary,
)

FAIR = "kernel/sched/fair.c"

NICE_0 = 1024                       # the load average of a nice 0 task that always runs
CAPACITY = 1024                     # SCHED_CAPACITY_SCALE, the capacity of the largest CPU
MOST = 16                           # CPUs and tasks


def threads(m):
    """The tasks that wake each other, and the idle task of each CPU."""
    return [f"task{i}" for i in range(m.tasks)] + [f"swapper{i}" for i in range(m.cpus)]


def numbered(kind):
    """One object of a kind for each CPU."""
    return lambda m: [f"{kind}{i}" for i in range(m.cpus)]


def each(kind, other):
    """Object number i of a kind has object number i of the other."""
    return {f"{kind}{i}": f"{other}{i}" for i in range(MOST)}


def loads(m):
    """The load of some tasks, or of none."""
    return {n * NICE_0: str(n * NICE_0) for n in range(m.tasks + 1)}


class WakeAffine(Model):
    """Tasks that wake each other on the CPUs of a host; an interrupt on an idle CPU wakes as that CPU's swapper."""

    task = Object("struct task_struct", threads)
    entity = Object("struct sched_entity", threads)
    cpu = Object("struct rq", numbered("cpu"))
    cfs_rq = Object("struct cfs_rq", numbered("cfs"))
    domain = Object("struct sched_domain", "sd")

    se = Link(task, entity, {**each("task", "task"), **each("swapper", "swapper")}, c="se")
    cfs = Link(cpu, cfs_rq, each("cpu", "cfs"), c="cfs")
    idle = Link(cpu, task, each("cpu", "swapper"), c="idle")

    this_cpu = Pointer(cpu, null=False, init="cpu0", c="smp_processor_id")     # where the waker runs
    current = Pointer(task, null=False, init="task0", c="current")             # the waker
    jiffies = Range(0, lambda m: m.seconds, init=0, c="jiffies")

    wakee_flips = Range(0, lambda m: m.flips, per=task, init=0, c="wakee_flips")
    wakee_flip_decay_ts = Range(0, lambda m: m.seconds, per=task, init=0, c="wakee_flip_decay_ts")
    last_wakee = Pointer(task, per=task, c="last_wakee")
    cfs_rq_of = Pointer(cfs_rq, null=False, per=entity, c="cfs_rq",                # where it is, or was last
                        init={**dict.fromkeys(each("task", ""), "cfs0"), **each("swapper", "cfs")})
    task_load = Values(loads, per=entity, c="avg.load_avg",
                       init={**dict.fromkeys(each("task", ""), NICE_0), **dict.fromkeys(each("swapper", ""), 0)})

    curr = Pointer(task, null=False, per=cpu, init=each("cpu", "swapper"), c="curr")
    nr_running = Range(0, lambda m: m.tasks, per=cpu, init=0, c="nr_running")
    ttwu_pending = Bool(per=cpu, c="ttwu_pending")                             # a wakeup is on its way there
    cpu_capacity = Values({CAPACITY // 2: "512", CAPACITY: "1024"}, per=cpu, init=CAPACITY, c="cpu_capacity")
    load_avg = Values(loads, per=cfs_rq, init=0, c="avg.load_avg")
    h_load = Values(loads, per=cfs_rq, init=0, c="h_load")                     # the queue's part of its CPU's load
    h_nr_queued = Range(0, lambda m: m.tasks, per=cfs_rq, init=0, c="h_nr_queued")         # since 6.12
    h_nr_runnable = Range(0, lambda m: m.tasks, per=cfs_rq, init=0, c="h_nr_runnable")     # the others are delayed

    sd_llc_size = Constant(lambda m: m.cpus, per=cpu, c="per_cpu(sd_llc_size)", why="all CPUs share one cache")
    sd_llc_id = Constant(0, per=cpu, c="per_cpu(sd_llc_id)", why="all CPUs share one cache")
    imbalance_pct = Constant(117, per=domain, c="imbalance_pct", why="of the domain of one cache, sd_init()")
    nr_cpu_ids = Constant(lambda m: m.cpus, c="nr_cpu_ids", why="also says that no CPU was chosen")

    cpus = Param(2, 1, MOST, "CPUs of the host")
    tasks = Param(2, 1, MOST, "tasks that wake each other")
    flips = Param(4, 1, 1 << 16, "wakee flips that are counted at most")
    seconds = Param(4, 1, 1 << 16, "how far jiffies go")

    releases = {
        "v6.1": {},
        "v6.12": {},
    }
    functions = {
        "record_wakee": FAIR,
        "wake_wide": FAIR,
        "wake_affine": FAIR,
        "wake_affine_idle": FAIR,
        "wake_affine_weight": FAIR,
    }

    vocabulary = Vocabulary(
        static_keys={
            "WA_IDLE": (True, "the default of kernel/sched/features.h"),
            "WA_WEIGHT": (True, "the default of kernel/sched/features.h"),
            "WA_BIAS": (True, "the default of kernel/sched/features.h"),
        },
        noop={"update_cfs_rq_h_load": "brings h_load up to date, once a jiffy; here h_load is always up to date"},
        constants={"vcpu_is_preempted": 0},                      # no hypervisor below this host takes its CPUs away
    )
