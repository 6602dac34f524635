# SPDX-License-Identifier: GPL-2.0-only
"""Directed yield: which vCPU gets the CPU of one that spins in vain. Source: virt/kvm/kvm_main.c.

A vCPU that spins exits to the host (pause-loop exit) and looks for a sibling that was descheduled and may hold the
lock. The search goes round from behind the vCPU that was boosted last, and passes by those that are inside the
handler themselves every other time. The yield schedules the caller away inside the handler, so what comes behind it,
the write of the cursor, happens when the caller runs again.

The default instance: ``vcpus`` vCPUs of one VM on one CPU. vCPU 0 (``holder``) holds the lock and is ready, one other
runs, all but the holder spin for ever, and the cursor may be anywhere, as in a VM that has been running. Nobody is in
the handler at first. The host takes the CPU from whoever runs guest code at any time (``preemption``), and heeds the
hint of a yield (``heeded``). Off in it, and parameters: more CPUs, yields that fail (``failures``), an undercommitted
host (``undercommitted``), sleeping and woken vCPUs (``sleeping``), vCPUs preempted in user mode or in the VMM
(``user_mode``, ``vmm``), a holder that spins for a second lock (``nested``).

Time is counted in successful yields (``yields``), which fall on the step in which the boosted vCPU goes on, and in
pause-loop exits (``exits``). A CPU that was given up goes to ``next`` before anything else happens. Which CPU a vCPU
runs on does not matter here: there is one queue, and nothing but these vCPUs on it.
"""

from schedproof.errors import InputError
from schedproof.model import (
    NULL,
    Bool,
    Constant,
    Current,
    Model,
    Object,
    Param,
    Pointer,
    Range,
    Switch,
    Vocabulary,
    action,
    block,
    choose,
    cmod,
    environment,
    final,
    init,
    kernel,
    require,
    ring,
    thread,
)

KVM = "virt/kvm/kvm_main.c"

ELIGIBILITY = dict(eligibility=True)
V5 = dict(eligibility=True, forget_at_exit=True)                        # 4c088493c8, 06e48c510aa3
V39 = dict(V5, budget=True)                                             # c45c528e8990
V310 = dict(V39, hint="preempted")
V414 = dict(V310, sleepers="not_runnable", mode_filter="all")           # 98f4a1467 (3.18), 199b5763d329
V53 = dict(V414, hint="ready", mode_filter="preempted")                 # d73eb57b80b9, 17e433b54393
V513 = dict(V53, mode_filter="no_interrupt")                            # 52acd22faa1a
V612 = dict(V513, in_kernel_test="preempted")
V613 = dict(V612, scan="one_loop", cursor="count")                      # 7e513617da71
V619 = dict(V613, cursor="index")                                       # 32bd348be3fa


def log2_ceiling(n):
    return max(1, (n - 1).bit_length())


class DirectedYield(Model):
    """vCPUs of one VM that spin, on fewer CPUs. The handler is interrupted where it yields."""

    vcpu = Object("struct kvm_vcpu", lambda m: [f"vcpu{i}" for i in range(m.vcpus)])

    ready = Bool(per=vcpu, c="ready")                                 # descheduled although it could run
    preempted = Bool(per=vcpu, c="preempted")
    in_spin_loop = Bool(per=vcpu, c="spin_loop.in_spin_loop")
    dy_eligible = Bool(per=vcpu, c="spin_loop.dy_eligible")
    dy_count = Range(0, lambda m: log2_ceiling(m.vcpus) if m.counter == 0 else m.counter, per=vcpu, init=0)
    last_boosted_vcpu = Range(0, lambda m: m.vcpus - 1, c="struct kvm.last_boosted_vcpu", init=0,
                              span=lambda m: (0, m.vcpus - 1))
    online_vcpus = Constant(lambda m: m.vcpus, c="struct kvm.online_vcpus", fixed=True,
                            why="every vCPU of the VM has been created")
    count_limit = Constant(lambda m: log2_ceiling(m.vcpus) if m.counter == 0 else m.counter,
                           why="the integer counter of the mail, f(log n)")

    # What the functions of the vocabulary tell of a vCPU.
    asleep = Bool(per=vcpu)                                           # it halts
    woken = Bool(per=vcpu)                                            # a sleeper that has something to run for
    unmarked = Bool(per=vcpu)                                         # it could run, does not, and is not ready
    pending_interrupt = Bool(per=vcpu)                                # never set here, nor is woken: no interrupts
    in_kernel = Bool(per=vcpu, init=True)

    answer = Range(-1, 1, per=vcpu, init=1)                           # of yield_to, where the vCPU waits for a CPU
    current = Current(vcpu)                                           # who is in the handler
    next = Pointer(vcpu)                                              # who gets a CPU that was given up
    failed = Range(0, lambda m: 2 * m.vcpus, init=0, transient=True)  # attempts of this exit that gave -ESRCH
    tried = Range(0, 1, per=vcpu, init=0, transient=True)             # was tried in this exit
    gave = Range(0, 1, init=0, transient=True)                        # this exit has given its CPU away
    clean = Bool(ghost=True)                                          # all that waited were in the handler, but one
    over_budget = Bool(ghost=True)                                    # more attempts failed in one exit than may
    passed_over = Bool(ghost=True)                                    # no yield succeeded, and one was not tried
    gave_up = Range(0, lambda m: m.tries, init=0, ghost=True)         # failed attempts of the last exit without success

    vcpus = Param(4, 2, 10, "virtual CPUs")
    cpus = Param(1, 1, 9, "CPUs that they have")
    tries = Param(3, 1, 3, "failed yields after which the handler gives up (where it has a budget)")
    holder = Param(0, 0, 9, "the vCPU that holds the lock")
    any_cursor = Param(1, 0, 1, "the cursor is anywhere at first; 0: at vCPU 0, as in a new VM")
    preemption = Param(1, 0, 1, "the host takes CPUs away from guest code")
    heeded = Param(1, 0, 1, "the vCPU that was yielded to runs next; 0: any that is ready")
    nested = Param(0, 0, 1, "the holder spins too, for another lock")
    failures = Param(0, 0, 1, "yields may fail, with 0 or -ESRCH")
    undercommitted = Param(0, 0, 1, "every queue has one task, so all yields give -ESRCH")
    sleeping = Param(0, 0, 1, "vCPUs halt and are woken")
    user_mode = Param(0, 0, 1, "vCPUs may be preempted in user mode")
    vmm = Param(0, 0, 1, "vCPUs may be preempted in the VMM, outside of KVM")
    watch = Param(0, 0, 1, "note whether a scan begins in a clean state")
    counter = Param(0, 0, 4, "limit of the integer counter; 0: the logarithm of vcpus")
    limit = Param(2, 1, 10, "vCPUs that a limited scan looks at")

    scan = Switch("two_pass", "one_loop")              # behind the cursor, then up to it; or once round
    hint = Switch("none", "preempted", "ready")        # the mark without which a vCPU is passed by
    sleepers = Switch("all", "not_runnable")           # the sleepers that are passed by
    mode_filter = Switch("none", "all", "preempted", "no_interrupt")   # of whom it is asked whether they were in kernel
    in_kernel_test = Switch("current", "preempted")    # the hook that says whether a descheduled vCPU was in the kernel
    eligibility = Switch(False, True)                  # HAVE_KVM_CPU_RELAX_INTERCEPT: x86 and s390
    eligible_at_first = Switch(False, True)
    forget_at_exit = Switch(False, True)               # dy_eligible is cleared where the handler ends
    budget = Switch(False, True)                       # the handler gives up after ``tries`` failed yields
    cursor = Switch("index", "count")                  # what is stored: whom it boosted, or how far it looked
    cursor_written = Switch("after", "before")         # the yield
    turns = Switch("flag", "counter")                  # eligible every other time, or every so often
    limited = Switch(False, True)
    knows_owner = Switch(False, True)
    revalidated = Switch(True, False)                  # yield_to looks again whether the target waits for a CPU
    clears_flag = Switch(True, False)                  # in_spin_loop is cleared where the handler ends
    mode_known = Switch(True, False)                   # the host can tell whether a vCPU was in its kernel (KV04)

    releases = {
        "base": {},
        "rfc-v1": dict(ELIGIBILITY, eligible_at_first=True),
        "rfc-v4": ELIGIBILITY,
        "rfc-v5": V5,
        "v3.9": V39,
        "v3.10": V310,
        "v4.14": V414,
        "v5.3": V53,
        "v5.13": V513,
        "v6.1": V513,
        "v6.12": V612,
        "v6.13": V613,
        "v6.19": V619,
    }
    dead = dict.fromkeys(
        ("base", "rfc-v1", "rfc-v4", "rfc-v5", "v3.9", "v3.10", "v4.14"),
        {"mark": "a wakeup leaves no mark before 5.3 (d73eb57b80b9)"})
    fixes = {
        "store_index": dict(cursor="index"),                  # 32bd348be3fa
        "early_cursor": dict(cursor_written="before"),
        "integer_counter": dict(turns="counter"),             # the mail's ideas (1), (2), (3)
        "limited_scan": dict(limited=True),
        "lock_aware": dict(knows_owner=True),
    }
    mutants = {
        "no_revalidation": dict(revalidated=False),
        "flag_stays": dict(clears_flag=False),
        "mode_unknown": dict(mode_known=False),
    }
    locals = {
        ("kvm_vcpu_on_spin", "i"): Range(0, lambda m: m.vcpus),
        ("kvm_vcpu_on_spin", "pass"): Range(0, 2),
        ("kvm_vcpu_on_spin", "try"): Range(0, 3),
    }
    lanes = {"vcpu*": (("asleep", "asleep[{}]=yes"), ("ready", "ready[{}]=yes"), ("waiting", "unmarked[{}]=yes"),
                       ("running", ""))}

    vocabulary = Vocabulary(callees={
        "kvm_vcpu_yield_to": "the scheduler decides whom it runs",
        "kvm_vcpu_is_blocking": "whether the vCPU halts is outside the handler",
        "vcpu_dy_runnable": "wakeups that wait for a halted vCPU are outside the handler",
        "kvm_arch_dy_has_pending_interrupt": "interrupts are outside the handler",
        "kvm_arch_vcpu_in_kernel": "the guest's mode is outside the handler",
        "kvm_arch_vcpu_preempted_in_kernel": "the guest's mode is outside the handler",
    })

    @classmethod
    def check_parameters(cls, values):
        if not values["cpus"] < values["vcpus"]:
            raise InputError(f"cpus={values['cpus']}: allowed are numbers below vcpus={values['vcpus']}")
        if not values["holder"] < values["vcpus"]:
            raise InputError(f"holder={values['holder']}: allowed are numbers below vcpus={values['vcpus']}")

    # ------------------------------------------------------------------------------------- kernel functions
    @kernel(KVM)
    def kvm_vcpu_eligible_for_directed_yield(self, vcpu):
        if not self.eligibility:
            return True
        if self.turns == "counter":
            return self.turn_of(vcpu)
        eligible = not self.in_spin_loop[vcpu] or self.dy_eligible[vcpu]
        if self.in_spin_loop[vcpu]:
            self.dy_eligible[vcpu] = not self.dy_eligible[vcpu]
        return eligible

    def turn_of(self, vcpu):
        """The mail's first idea: a vCPU in the handler is passed by ``count_limit`` times between two boosts."""
        if not self.in_spin_loop[vcpu]:
            return True
        if self.dy_count[vcpu] == self.count_limit:
            self.dy_count[vcpu] = 0
            return True
        self.dy_count[vcpu] += 1
        return False

    @kernel(KVM, grain="blocking")
    def kvm_vcpu_on_spin(self, me, yield_to_kernel_mode: Bool()):
        yielded: Range(-1, 1) = 0
        tries: Range(0, 3) = self.tries
        looked: Range(0, 80) = 0
        last_boosted_vcpu = self.last_boosted_vcpu
        if self.knows_owner:                                          # the mail's third idea
            last_boosted_vcpu = self.behind_next_owner()
        stored = last_boosted_vcpu
        self.in_spin_loop[me] = True                                  # without eligibility nobody reads it
        for vcpu in ring(self.vcpu, after=last_boosted_vcpu):
            # The second pass begins with vCPU 0, and only if the last attempt of the first one gave 0.
            if self.scan == "two_pass" and vcpu == self.vcpu[0] and yielded < 0:
                break
            if self.limited:                                          # the mail's second idea
                if looked == self.limit:
                    break
                looked += 1
            if self.hint == "preempted" and not self.preempted[vcpu]:
                continue
            if self.hint == "ready" and not self.ready[vcpu]:
                continue
            if vcpu == me:
                continue
            if self.kvm_vcpu_is_blocking(vcpu):
                if self.sleepers == "all" or not self.vcpu_dy_runnable(vcpu):
                    continue
            if self.mode_filter == "all" or (self.mode_filter != "none" and self.preempted[vcpu]):
                if yield_to_kernel_mode:
                    if self.mode_filter != "no_interrupt" or not self.kvm_arch_dy_has_pending_interrupt(vcpu):
                        if not self.was_in_kernel(vcpu):
                            continue
            if not self.kvm_vcpu_eligible_for_directed_yield(vcpu):
                continue
            stored = self.cursor_of(vcpu, last_boosted_vcpu)
            if self.cursor_written == "before":
                self.last_boosted_vcpu = stored
            yielded = self.kvm_vcpu_yield_to(vcpu)
            if yielded > 0:
                if self.cursor_written == "after":
                    self.last_boosted_vcpu = stored
                break
            elif yielded < 0 and self.budget:
                tries = tries - 1
                if tries == 0:
                    break
        if self.clears_flag:
            self.in_spin_loop[me] = False
        if self.forget_at_exit:
            self.dy_eligible[me] = False
            if self.turns == "counter":
                self.dy_count[me] = 0

    def cursor_of(self, vcpu, last_boosted_vcpu):
        """6.13 to 6.18 store how many vCPUs the scan has passed instead of the one at which it is."""
        if self.cursor == "index":
            return vcpu
        return cmod(vcpu - last_boosted_vcpu - 1 + self.online_vcpus, self.online_vcpus)

    def was_in_kernel(self, vcpu):
        if self.in_kernel_test == "current":
            return self.kvm_arch_vcpu_in_kernel(vcpu)
        return self.kvm_arch_vcpu_preempted_in_kernel(vcpu)

    # ---------------------------------------------------------------------------------- what is around them
    @init
    def all_but_the_running_ones_are_preempted(self):
        for vcpu in self.vcpu:
            self.ready[vcpu] = vcpu == self.holder or choose(True, False)
            self.preempted[vcpu] = self.ready[vcpu]
            self.dy_eligible[vcpu] = self.eligible_at_first
        require(sum(1 for vcpu in self.vcpu if not self.ready[vcpu]) == self.cpus)
        if self.any_cursor:
            self.last_boosted_vcpu = choose(self.vcpu)

    @final
    def the_holder_runs(self):
        """Without preemption it goes on for ever where it has the only CPU."""
        if self.undercommitted == 1:
            return True                                               # nobody ever gives up the CPU
        return self.preemption == 0 and self.nested == 0 and self.runs(self.holder)

    def runs(self, vcpu):
        return not self.ready[vcpu] and not self.asleep[vcpu] and not self.unmarked[vcpu]

    def waits(self, vcpu):
        """It could run, and has no CPU: on a queue."""
        return self.ready[vcpu] or self.unmarked[vcpu]

    @thread(per=vcpu, cost={"yields": "yields", "exits": "exits"})
    def guest(self, me):
        """Spins for the lock, or waits for a CPU; the holder does nothing but run."""
        while True:
            block(until=self.gets_cpu(me) or self.spins(me))
            if self.runs(me):
                if self.watch:
                    self.clean = all(self.in_spin_loop[v] and not self.dy_eligible[v] for v in self.vcpu
                                     if v != me and v != self.holder)
                self.kvm_vcpu_on_spin(me, True)
                if self.failures or self.undercommitted:
                    if self.gave == 0:
                        self.note_attempts(me)
                    self.gave = 0
            else:
                self.kvm_sched_in(me)

    def note_attempts(self, me):
        """What the scan that just ended has left out, and whether it tried too often."""
        self.gave_up = min(self.failed, self.tries)
        if self.failed > self.tries:
            self.over_budget = True
        if self.failed < self.tries and any(self.waits(v) and v != me and self.tried[v] == 0 for v in self.vcpu):
            self.passed_over = True
        self.forget_attempts()

    def forget_attempts(self):
        self.failed = 0
        for vcpu in self.vcpu:
            self.tried[vcpu] = 0

    def spins(self, me):
        return self.next == NULL and self.runs(me) and (me != self.holder or self.nested == 1)

    def gets_cpu(self, me):
        """By a yield, or because a CPU is idle, or because the host takes it from a vCPU in guest code."""
        if self.next != NULL:
            return self.next == me
        return self.waits(me) and (self.preemption == 1 or self.idle())

    def idle(self):
        return self.sleeping == 1 and sum(1 for v in self.vcpu if self.runs(v)) < self.cpus

    def yields(self, me):
        return 1 if self.next == me else 0

    def exits(self, me):
        return 1 if self.runs(me) else 0

    def kvm_sched_in(self, me):
        if self.next == NULL and not self.idle():
            self.host_preempts()
        self.ready[me] = self.preempted[me] = self.unmarked[me] = False
        self.in_kernel[me] = True
        self.next = NULL

    def host_preempts(self):
        """Somebody who runs guest code loses the CPU."""
        unmarked = self.vmm == 1 and choose(True, False)
        in_kernel = self.user_mode == 0 or choose(True, False)
        if self.cpus == 1:
            for vcpu in self.vcpu:
                if self.runs(vcpu):
                    self.kvm_sched_out(vcpu, unmarked, in_kernel)
        else:
            victim = choose(self.vcpu)
            require(self.runs(victim))
            self.kvm_sched_out(victim, unmarked, in_kernel)

    def kvm_sched_out(self, me, unmarked, in_kernel):
        """The preempt notifier marks the vCPU; it is not registered in the VMM."""
        self.ready[me] = self.preempted[me] = not unmarked
        self.unmarked[me] = unmarked
        self.in_kernel[me] = in_kernel

    @action(per=vcpu, when="failures")
    def load(self, vcpu):
        """Other tasks come and go: the target's queue is throttled (0), or it and the caller's are short (-ESRCH)."""
        require(self.next == NULL)
        self.answer[vcpu] = choose(1, 0, -1)

    @action(per=vcpu, when="sleeping")
    def halt(self, vcpu):
        require(self.next == NULL and self.runs(vcpu))
        self.asleep[vcpu] = True

    @action(per=vcpu, when="sleeping")
    def wake(self, vcpu):
        """It is on a queue now. kvm_vcpu_wake_up marks it behind the wakeup (5.3); before, nothing does."""
        require(self.next == NULL and self.asleep[vcpu])
        self.asleep[vcpu] = False
        self.unmarked[vcpu] = True

    @action(per=vcpu, when="sleeping")
    def mark(self, vcpu):
        require(self.next == NULL and self.unmarked[vcpu] and self.hint == "ready")
        self.unmarked[vcpu] = False
        self.ready[vcpu] = True

    @environment
    def kvm_vcpu_yield_to(self, target):
        """The caller gives its CPU to the target, and goes on when it gets one again.

        Above 0 where that was done, 0 where the target does not wait for a CPU, -ESRCH where both are alone.
        """
        if self.undercommitted or self.failures:
            self.tried[target] = 1
        if self.undercommitted:
            self.failed += 1
            return -1
        if self.revalidated and not self.waits(target):
            return 0
        if self.failures:
            if self.answer[target] < 0:
                self.failed += 1
            if self.answer[target] < 1:
                return self.answer[target]
            self.forget_attempts()
        self.kvm_sched_out(self.current, False, True)
        self.next = target
        if self.heeded == 0:
            self.next = choose(self.vcpu)
            require(self.waits(self.next))
        block(until=self.gets_cpu(self.current))
        self.kvm_sched_in(self.current)
        if self.failures:
            self.gave = 1
        return 1

    @environment
    def behind_next_owner(self):
        """Where a scan begins that meets the next owner first, whom the guest publishes; here it is the holder."""
        return self.holder - 1 if self.holder > 0 else self.vcpus - 1

    @environment
    def kvm_vcpu_is_blocking(self, vcpu):
        return self.asleep[vcpu]

    @environment
    def vcpu_dy_runnable(self, vcpu):
        return self.woken[vcpu]

    @environment
    def kvm_arch_dy_has_pending_interrupt(self, vcpu):
        return self.pending_interrupt[vcpu]

    @environment
    def kvm_arch_vcpu_in_kernel(self, vcpu):
        return self.mode_known and self.in_kernel[vcpu]

    @environment
    def kvm_arch_vcpu_preempted_in_kernel(self, vcpu):
        return self.mode_known and self.in_kernel[vcpu]
