# SPDX-License-Identifier: GPL-2.0-only
"""Directed yield: which vCPU gets the CPU of one that spins in vain.

Source: virt/kvm/kvm_main.c. A vCPU that spins exits to the host (pause-loop exit) and looks for a sibling that was
descheduled and may hold the lock. The search goes round from the vCPU that was boosted last, and passes by those
that are inside the handler themselves every other time. The yield schedules the caller away inside the handler, so
what comes behind it, the write of the cursor, happens when the caller runs again.

The instance: ``vcpus`` vCPUs of one VM share one CPU. Who runs is decided by directed yields alone; nothing else
happens yet, so the model states the two functions and what is around them, not a run of theirs.
"""

from schedproof.model import (
    Bool,
    Constant,
    Model,
    Object,
    Param,
    Pointer,
    Range,
    Switch,
    Vocabulary,
    block,
    environment,
    init,
    kernel,
)

KVM = "virt/kvm/kvm_main.c"


class DirectedYield(Model):
    """vCPUs of one VM that spin, on one CPU."""

    vcpu = Object("struct kvm_vcpu", lambda m: [f"vcpu{i}" for i in range(m.vcpus)])

    ready = Bool(per=vcpu, c="ready")                                 # descheduled although it could run
    preempted = Bool(per=vcpu, c="preempted")
    in_spin_loop = Bool(per=vcpu, c="spin_loop.in_spin_loop")
    dy_eligible = Bool(per=vcpu, c="spin_loop.dy_eligible")
    last_boosted_vcpu = Range(0, lambda m: m.vcpus - 1, c="struct kvm.last_boosted_vcpu", init=0,
                              span=lambda m: (0, m.vcpus - 1))
    online_vcpus = Constant(lambda m: m.vcpus, c="struct kvm.online_vcpus", fixed=True,
                            why="every vCPU of the VM has been created")

    # What the functions of the vocabulary tell of a vCPU.
    blocking = Bool(per=vcpu)
    runnable = Bool(per=vcpu)
    pending_interrupt = Bool(per=vcpu)
    in_kernel = Bool(per=vcpu)
    running = Pointer(vcpu, null=False, init="vcpu1")                  # who has the CPU

    vcpus = Param(4, 2, 8, "virtual CPUs")
    in_kernel_test = Switch("current", "preempted")    # the hook that says whether a descheduled vCPU was in the kernel

    releases = {
        "v6.1": dict(in_kernel_test="current"),
        "v6.12": dict(in_kernel_test="preempted"),
    }
    locals = {
        ("kvm_vcpu_on_spin", "i"): Range(0, lambda m: m.vcpus),
        ("kvm_vcpu_on_spin", "pass"): Range(0, 2),
        ("kvm_vcpu_on_spin", "try"): Range(0, 3),
    }
    vocabulary = Vocabulary(callees={
        "kvm_vcpu_yield_to": "the scheduler decides whom it runs",
        "kvm_vcpu_is_blocking": "whether the vCPU halts is outside the handler",
        "vcpu_dy_runnable": "wakeups that wait for a halted vCPU are outside the handler",
        "kvm_arch_dy_has_pending_interrupt": "interrupts are outside the handler",
        "kvm_arch_vcpu_in_kernel": "the guest's mode is outside the handler",
        "kvm_arch_vcpu_preempted_in_kernel": "the guest's mode is outside the handler",
    })

    # ------------------------------------------------------------------------------------- kernel functions
    @kernel(KVM)
    def kvm_vcpu_eligible_for_directed_yield(self, vcpu):
        eligible = not self.in_spin_loop[vcpu] or self.dy_eligible[vcpu]
        if self.in_spin_loop[vcpu]:
            self.dy_eligible[vcpu] = not self.dy_eligible[vcpu]
        return eligible

    @kernel(KVM, grain="blocking")
    def kvm_vcpu_on_spin(self, me: "vcpu", yield_to_kernel_mode: Bool()):
        yielded = 0
        tries: Range(0, 3) = 3
        last_boosted_vcpu = self.last_boosted_vcpu
        self.in_spin_loop[me] = True
        pass_: Range(0, 2) = 0
        while pass_ < 2 and yielded == 0 and tries != 0:
            for vcpu in self.vcpu:
                if pass_ == 0 and vcpu <= last_boosted_vcpu:
                    continue
                elif pass_ != 0 and vcpu > last_boosted_vcpu:
                    break
                if not self.ready[vcpu]:
                    continue
                if vcpu == me:
                    continue
                if self.kvm_vcpu_is_blocking(vcpu) and not self.vcpu_dy_runnable(vcpu):
                    continue
                if self.preempted[vcpu] and yield_to_kernel_mode:
                    if not self.kvm_arch_dy_has_pending_interrupt(vcpu) and not self.was_in_kernel(vcpu):
                        continue
                if not self.kvm_vcpu_eligible_for_directed_yield(vcpu):
                    continue
                yielded = self.kvm_vcpu_yield_to(vcpu)
                if yielded > 0:
                    self.last_boosted_vcpu = vcpu
                    break
                elif yielded < 0:
                    tries = tries - 1
                    if tries == 0:
                        break
            pass_ = pass_ + 1
        self.in_spin_loop[me] = False
        self.dy_eligible[me] = False

    def was_in_kernel(self, vcpu):
        if self.in_kernel_test == "current":
            return self.kvm_arch_vcpu_in_kernel(vcpu)
        return self.kvm_arch_vcpu_preempted_in_kernel(vcpu)

    # ---------------------------------------------------------------------------------- what is around them
    @init
    def all_but_one_are_preempted(self):
        for vcpu in self.vcpu:
            self.ready[vcpu] = self.preempted[vcpu] = vcpu != self.running
            self.in_kernel[vcpu] = True

    @environment
    def kvm_vcpu_yield_to(self, target):
        """The caller gives the CPU to the target, and goes on when it has the CPU again.

        Of the results of ``yield_to`` the negative one does not occur: with one CPU, its queue has two tasks.
        """
        if not self.ready[target]:
            return 0
        me = self.running
        self.ready[me] = self.preempted[me] = True
        self.ready[target] = self.preempted[target] = False
        self.running = target
        block(until=self.running == me)
        return 1

    @environment
    def kvm_vcpu_is_blocking(self, vcpu):
        return self.blocking[vcpu]

    @environment
    def vcpu_dy_runnable(self, vcpu):
        return self.runnable[vcpu]

    @environment
    def kvm_arch_dy_has_pending_interrupt(self, vcpu):
        return self.pending_interrupt[vcpu]

    @environment
    def kvm_arch_vcpu_in_kernel(self, vcpu):
        return self.in_kernel[vcpu]

    @environment
    def kvm_arch_vcpu_preempted_in_kernel(self, vcpu):
        return self.in_kernel[vcpu]
