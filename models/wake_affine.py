# SPDX-License-Identifier: GPL-2.0-only
"""Whether a wakeup pulls the wakee to the waker's CPU, and which threads a patch exempts. Source: kernel/sched/fair.c.

Two classes: ``WakeAffine`` is the placement of a wakeup, ``VcpuThreads`` the life cycle of the threads of a VMM and of
the flag that the patch of July 2019 gives them.

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
    NULL,
    Bool,
    Constant,
    Link,
    Model,
    Object,
    Param,
    Pointer,
    Range,
    Switch,
    Values,
    Vocabulary,
    action,
    choose,
    environment,
    require,
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


class VcpuThreads(Model):
    """The threads of a VMM and the flag that keeps wakeups from pulling a vCPU to its waker.

    ``flag`` is PF_NO_WAKE_AFFINE. The way of the VMM is in two switches: who creates a vCPU (``own_thread``: the
    thread that runs it, as QEMU does; ``main``: the main thread, and threads start at any time; ``main_first``: the
    main thread, and no thread starts before all vCPUs are created, as Firecracker does), and whether a vCPU that is
    unplugged is kept and later given to another thread (``reuse``, QEMU's parked vCPUs).
    """

    thread = Object("struct task_struct", lambda m: ["main", *(f"t{i}" for i in range(1, m.threads))])
    vcpu = Object("struct kvm_vcpu", lambda m: [f"vcpu{i}" for i in range(m.vcpus)])

    alive = Bool(per=thread, init={"main": True})
    flag = Bool(per=thread)
    vm = Bool(init=True)                                 # the VM's file is open
    created = Bool(per=vcpu)
    pid = Pointer(thread, per=vcpu)                      # vcpu->pid: who called KVM_RUN last
    inside = Pointer(thread, per=vcpu)                   # who is in KVM_RUN now
    owner = Pointer(thread, per=vcpu)                    # whom the VMM means to run it; NULL: the next that comes
    had_run = Bool(ghost=True)                           # some thread was in KVM_RUN
    failed = Bool(ghost=True)                            # a creation has failed
    flagged_by_failure = Bool(ghost=True)                # and has left a flag that was not there before
    foreign = Bool(ghost=True)                           # a thread has written the flag of another one
    execed = Bool(ghost=True)                            # the main thread has become another program

    threads = Param(3, 2, 4, "threads at most at the same time")
    vcpus = Param(1, 1, 2, "vCPUs")

    set_at = Switch("none", "create", "run", "pid")      # which thread gets the flag, and when
    inherit = Switch(True, False)                        # whether clone() copies it
    clear = Switch("never", "handoff", "leave")          # what takes it away
    early = Switch(False, True)                          # mutant: set before the last thing that can fail
    creator = Switch("own_thread", "main", "main_first")
    reuse = Switch(False, True)

    releases = {
        "v4.19": {},
        "v5.7": {},
        "v6.1": {},
        "v6.12": {},
    }
    fixes = {
        "no_wake_affine": dict(set_at="create"),                      # the patch of July 2019
        "set_on_run": dict(set_at="run"),
        "not_inherited": dict(inherit=False),
        "clear_on_handoff": dict(clear="handoff"),
        "while_in_run": dict(set_at="run", clear="leave"),            # set on entry to KVM_RUN, cleared on exit
    }
    mutants = {
        "flag_before_checks": dict(set_at="create", early=True),
        "flag_by_pid": dict(set_at="pid"),
    }

    # ------------------------------------------------------------------------------------------- the flag
    def write_flag(self, current, t, value):
        """``current`` writes the flag of ``t``; only its own is allowed, for flags are not atomic."""
        if t != current and self.flag[t] != value:
            self.foreign = True
        self.flag[t] = value

    def runs_another(self, t, v):
        """Whether vcpu->pid of another vCPU is ``t``."""
        return any(self.pid[w] == t and w != v for w in self.vcpu)

    @environment
    def create_ioctl(self, current, v):
        """kvm_vm_ioctl_create_vcpu(): what is done for the flag, and that it may fail."""
        before = self.flag[current]
        if self.set_at == "create" and self.early:
            self.write_flag(current, current, True)
        if choose(0, 1) == 1:
            self.failed = True
            if self.flag[current] != before:
                self.flagged_by_failure = True
            return
        self.created[v] = True
        if self.set_at == "create":
            self.write_flag(current, current, True)
        if self.creator == "own_thread":
            self.owner[v] = current

    @environment
    def enter_ioctl(self, current, v):
        """The way into KVM_RUN, which compares vcpu->pid with its caller."""
        old = self.pid[v]
        if old != current:
            if self.set_at == "pid" and old != NULL:
                self.write_flag(current, old, True)
            if self.clear == "handoff" and old != NULL:
                if not self.runs_another(old, v):
                    self.write_flag(current, old, False)
            self.pid[v] = current
        if self.set_at == "run":
            self.write_flag(current, current, True)
        self.inside[v] = current
        self.had_run = True

    # ----------------------------------------------------------------------------------- what the VMM does
    @action(per=(thread, vcpu))
    def create_vcpu(self, t, v):
        require(self.vm and self.alive[t] and not self.created[v])
        if self.creator == "own_thread":
            require(t != self.thread[0])
        else:
            require(t == self.thread[0])
        self.create_ioctl(t, v)

    @action(per=(thread, thread))
    def clone(self, t, new):
        """A thread starts another one: of the VMM, an io_uring or vhost worker, or a child process."""
        require(self.alive[t] and not self.alive[new])
        require(all(self.inside[v] != t for v in self.vcpu))
        if self.creator == "main_first":
            require(all(self.created[v] for v in self.vcpu))
        self.alive[new] = True
        self.flag[new] = self.flag[t] and self.inherit

    @action(per=(thread, vcpu))
    def enter_run(self, t, v):
        require(self.vm and self.alive[t] and self.created[v] and self.inside[v] == NULL)
        require(all(self.inside[w] != t for w in self.vcpu))
        require(self.owner[v] == t or (self.owner[v] == NULL and t != self.thread[0]))
        self.owner[v] = t
        self.enter_ioctl(t, v)

    @action(per=vcpu)
    def leave_run(self, v):
        require(self.inside[v] != NULL)
        if self.clear == "leave":
            self.write_flag(self.inside[v], self.inside[v], False)
        self.inside[v] = NULL

    @action(per=vcpu, when="reuse")
    def park(self, v):
        """The guest's CPU is unplugged; the VMM keeps the vCPU for the thread of a later one."""
        require(self.owner[v] != NULL and self.inside[v] == NULL)
        self.owner[v] = NULL

    @action(per=thread)
    def exit_thread(self, t):
        require(t != self.thread[0] and self.alive[t])
        require(all(self.owner[v] != t for v in self.vcpu))          # a vCPU is parked before its thread ends
        self.alive[t] = False
        self.flag[t] = False
        for v in self.vcpu:
            if self.pid[v] == t:
                self.pid[v] = NULL

    @action
    def destroy_vm(self):
        """The main thread closes the last file of the VM."""
        require(self.vm and all(self.inside[v] == NULL for v in self.vcpu))
        self.vm = False
        for v in self.vcpu:
            old = self.pid[v]
            if self.clear == "handoff" and old != NULL:
                self.write_flag(self.thread[0], old, False)
            self.created[v] = False
            self.pid[v] = NULL
            self.owner[v] = NULL

    @action
    def create_vm(self):
        require(not self.vm)
        self.vm = True

    @action
    def exec_main(self):
        """execve() ends the other threads and keeps the flags of the caller that it does not know."""
        require(not self.vm)
        for t in self.thread:
            if t != self.thread[0]:
                self.alive[t] = False
                self.flag[t] = False
        self.execed = True
