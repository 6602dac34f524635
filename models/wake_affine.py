# SPDX-License-Identifier: GPL-2.0-only
"""Whether a wakeup pulls the wakee to the waker's CPU, and which threads a patch exempts. Source: kernel/sched/fair.c.

Two classes: ``WakeAffine`` is the placement of a wakeup, ``VcpuThreads`` the life cycle of the threads of a VMM and of
the flag that the patch of July 2019 gives them.

    record_wakee            counts how often a waker changes its wakee: its flips, halved after a second
    wake_wide               many flips on both sides: leave the wakee where it was
    wake_affine             else choose between the waker's CPU and the wakee's previous one:
      wake_affine_idle        by which of them is idle
      wake_affine_weight      by their load, with a bias for the waker's

There is no action in ``WakeAffine``: its properties are lemmas about one wakeup, for all states that fit together.
``current`` is the waker and runs on ``this_cpu``. A CPU is its runqueue;
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
    cdiv,
    choose,
    environment,
    kernel,
    require,
)

FAIR = "kernel/sched/fair.c"

NICE_0 = 1024                       # the load average of a nice 0 task that always runs
MOST_LOAD = 1 << 22                 # of a queue, for comparing with C: no product overflows
CAPACITY = 1024                     # SCHED_CAPACITY_SCALE, the capacity of the largest CPU
HZ = 1000
FLAG = 1 << 29                      # PF_NO_WAKE_AFFINE in the patch; another bit in trees that have this one already
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
    jiffies = Range(0, lambda m: m.seconds, init=0, c="jiffies", span=(0, 1 << 60))

    flags = Values({0: "0", FLAG: "PF_NO_WAKE_AFFINE"}, per=task, init=0, c="flags", span=(0, (1 << 32) - 1))
    wakee_flips = Range(0, lambda m: m.flips, per=task, init=0, c="wakee_flips", span=(0, 1 << 16))
    wakee_flip_decay_ts = Range(0, lambda m: m.seconds, per=task, init=0, c="wakee_flip_decay_ts", span=(0, 1 << 60))
    last_wakee = Pointer(task, per=task, c="last_wakee")
    cfs_rq_of = Pointer(cfs_rq, null=False, per=entity, c="cfs_rq",                # where it is, or was last
                        init={**dict.fromkeys(each("task", ""), "cfs0"), **each("swapper", "cfs")})
    task_load = Values(loads, per=entity, c="avg.load_avg", span=(0, MOST_LOAD),
                       init={**dict.fromkeys(each("task", ""), NICE_0), **dict.fromkeys(each("swapper", ""), 0)})

    curr = Pointer(task, null=False, per=cpu, init=each("cpu", "swapper"), c="curr")
    nr_running = Range(0, lambda m: m.tasks, per=cpu, init=0, c="nr_running", span=(0, 1 << 20))
    ttwu_pending = Bool(per=cpu, c="ttwu_pending")                             # a wakeup is on its way there
    cpu_capacity = Values({CAPACITY // 2: "512", CAPACITY: "1024"}, per=cpu, init=CAPACITY, c="cpu_capacity",
                          span=(1, CAPACITY))
    load_avg = Values(loads, per=cfs_rq, init=0, c="avg.load_avg", span=(0, MOST_LOAD))
    h_load = Values(loads, per=cfs_rq, init=0, c="h_load", span=(0, MOST_LOAD))      # the queue's part of the load
    h_nr_queued = Range(0, lambda m: m.tasks, per=cfs_rq, init=0, c="h_nr_queued", span=(0, 1 << 20))      # since 6.12
    h_nr_runnable = Range(0, lambda m: m.tasks, per=cfs_rq, init=0, c="h_nr_runnable", span=(0, 1 << 20))

    sd_llc_size = Constant(lambda m: m.cpus, per=cpu, c="per_cpu(sd_llc_size)", why="all CPUs share one cache",
                           span=(1, 1 << 13))
    sd_llc_id = Constant(0, per=cpu, c="per_cpu(sd_llc_id)", why="all CPUs share one cache")
    imbalance_pct = Constant(117, per=domain, c="imbalance_pct", why="of the domain of one cache, sd_init()",
                             span=(100, 200))
    nr_cpu_ids = Constant(lambda m: m.cpus, c="nr_cpu_ids", why="also says that no CPU was chosen",
                          span=(1, 1 << 13))

    cpus = Param(2, 1, MOST, "CPUs of the host")
    tasks = Param(2, 1, MOST, "tasks that wake each other")
    flips = Param(4, 1, 1 << 16, "wakee flips that are counted at most")
    seconds = Param(4, 1, 1 << 16, "how far jiffies go")

    prev_idle = Switch(True, False)               # an idle previous CPU is kept (d8fcb81f1acf, 5.10)
    delayed = Switch(False, True)                 # tasks whose dequeue is delayed do not count as running (6.12)
    test_in = Switch("none", "wake_wide", "want_affine")      # where the wakee's flag is looked at
    sync_in = Switch("any", "task")               # contexts in which the sync hint is believed (14b3f2d9ee8d)
    sd_affine = Switch("on", "off")               # SD_WAKE_AFFINE of the domain
    saturates = Switch(False, True)               # mutant: a waker of very many is not wide any more

    releases = {
        "v5.7": dict(prev_idle=False, delayed=False),
        "v6.1": dict(prev_idle=True, delayed=False),
        "v6.12": dict(prev_idle=True, delayed=True),
    }
    fixes = {
        "no_wake_affine": dict(test_in="wake_wide"),           # the patch of July 2019
        "tested_elsewhere": dict(test_in="want_affine"),
        "domain_flag_off": dict(sd_affine="off"),
        "sync_in_task": dict(sync_in="task"),
    }
    functions = {
        "wake_affine": FAIR,
        "wake_affine_weight": FAIR,
    }
    mutants = {
        "narrow_when_many": dict(saturates=True),
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

    # ------------------------------------------------------------------------------------------- what C has as well
    @kernel(FAIR)
    def record_wakee(self, p):
        if self.jiffies > self.wakee_flip_decay_ts[self.current] + HZ:
            self.wakee_flips[self.current] = self.wakee_flips[self.current] >> 1
            self.wakee_flip_decay_ts[self.current] = self.jiffies
        if self.last_wakee[self.current] != p:
            self.last_wakee[self.current] = p
            self.wakee_flips[self.current] += 1

    @kernel(FAIR)
    def wake_wide(self, p):
        master = self.wakee_flips[self.current]
        slave = self.wakee_flips[p]
        factor = self.sd_llc_size[self.this_cpu]
        if self.test_in == "wake_wide" and self.flagged(p):
            return 1
        if master < slave:
            swapped = master
            master = slave
            slave = swapped
        if slave < factor or master < slave * factor:
            return 0
        if self.saturates and master > 1000:
            return 0
        return 1

    @kernel(FAIR)
    def wake_affine_idle(self, this_cpu, prev_cpu, sync):
        if self.is_idle(this_cpu) and self.sd_llc_id[this_cpu] == self.sd_llc_id[prev_cpu]:
            return prev_cpu if self.is_idle(prev_cpu) else this_cpu
        if sync != 0:
            running = self.nr_running[this_cpu]
            if self.delayed:
                running -= self.h_nr_queued[self.cfs[this_cpu]] - self.h_nr_runnable[self.cfs[this_cpu]]
            if running == 1:
                return this_cpu
        if self.prev_idle and self.is_idle(prev_cpu):
            return prev_cpu
        return self.nr_cpu_ids

    @environment
    def weight_choice(self, sd, p, this_cpu, prev_cpu, sync):
        """wake_affine_weight(): products and a quotient of loads, on which Z3 gives up when it is to compare them."""
        this_eff_load = self.load_avg[self.cfs[this_cpu]]
        if sync != 0:
            current_load = self.task_h_load_of(self.current)
            if current_load > this_eff_load:
                return this_cpu
            this_eff_load -= current_load
        task_load = self.task_h_load_of(p)
        this_eff_load += task_load
        this_eff_load = this_eff_load * 100 * self.cpu_capacity[prev_cpu]
        prev_eff_load = self.load_avg[self.cfs[prev_cpu]] - task_load
        prev_eff_load = prev_eff_load * (100 + cdiv(self.imbalance_pct[sd] - 100, 2)) * self.cpu_capacity[this_cpu]
        if sync != 0:
            prev_eff_load += 1
        return this_cpu if this_eff_load < prev_eff_load else self.nr_cpu_ids

    @environment
    def affine_choice(self, sd, p, this_cpu, prev_cpu, sync):
        """wake_affine()."""
        target = self.wake_affine_idle(this_cpu, prev_cpu, sync)
        if target == self.nr_cpu_ids:
            target = self.weight_choice(sd, p, this_cpu, prev_cpu, sync)
        if target != this_cpu:
            return prev_cpu
        return target

    # ------------------------------------------------------------------------------------------- what only stands here
    def is_idle(self, cpu):
        """available_idle_cpu()."""
        return self.curr[cpu] == self.idle[cpu] and self.nr_running[cpu] == 0 and not self.ttwu_pending[cpu]

    def task_h_load_of(self, p):
        """task_h_load(): a task stands on the CPU's own queue."""
        queue = self.cfs_rq_of[self.se[p]]
        return cdiv(self.task_load[self.se[p]] * self.h_load[queue], self.load_avg[queue] + 1)

    def flagged(self, p):
        """PF_NO_WAKE_AFFINE."""
        return (self.flags[p] >> 29) & 1 == 1

    @environment
    def affine_target(self, p, prev_cpu, wf_sync, in_task):
        """The affine part of select_task_rq_fair(): the CPU near which an idle one is looked for.

        One domain spans both CPUs and the wakee may run on either; no CPU mask is modelled.
        """
        sync = wf_sync
        if self.sync_in == "task" and in_task == 0:
            sync = 0
        want_affine = self.wake_wide(p) == 0
        if self.test_in == "want_affine" and self.flagged(p):
            want_affine = False
        if want_affine and self.sd_affine == "on" and self.this_cpu != prev_cpu:
            return self.affine_choice(self.domain[0], p, self.this_cpu, prev_cpu, sync)
        return prev_cpu


THREAD = (("in KVM_RUN", "inside[vcpu0]={}"), ("in KVM_RUN", "inside[vcpu1]={}"),
          ("flagged", "flag[{}]=yes & alive[{}]=yes"), ("plain", "alive[{}]=yes"))


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

    lanes = {"main": THREAD, "t?": THREAD}

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
