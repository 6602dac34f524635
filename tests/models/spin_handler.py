# SPDX-License-Identifier: GPL-2.0-only
"""The spin handler in small: a vCPU that spins looks for a sibling to boost, beginning behind the last one.

Source: kvm_vcpu_on_spin and kvm_vcpu_eligible_for_directed_yield of virt/kvm/kvm_main.c, 6.1, without the in-kernel
filter. vCPU 0 holds the lock and is preempted; the others spin. The cursor is written after the yield.
"""

from schedproof.model import (
    Bool,
    Enum,
    Model,
    Object,
    Param,
    Pointer,
    Switch,
    block,
    environment,
    kernel,
    ring,
    step,
    thread,
)

KVM = "virt/kvm/kvm_main.c"


class SpinHandler(Model):
    """vCPUs on fewer CPUs; who runs is decided by directed yields alone."""

    vcpu = Object("struct kvm_vcpu", lambda m: [f"vcpu{i}" for i in range(m.vcpus)])
    cursor = Pointer(vcpu, null=False, init="vcpu0")                  # kvm->last_boosted_vcpu
    in_spin_loop = Bool(per=vcpu)
    dy_eligible = Bool(per=vcpu)
    sched = Enum("RUN", "READY", per=vcpu, init={"vcpu1": "RUN", "vcpu0": "READY", "vcpu2": "READY"})

    vcpus = Param(3, 3, 3, "virtual CPUs")
    stored = Switch("index", "start")             # "start" is a mutant: the cursor does not move
    releases = {"v6.1": {}}
    mutants = {"cursor_stays": dict(stored="start")}

    @kernel(KVM)
    def kvm_vcpu_eligible_for_directed_yield(self, v):
        eligible = not self.in_spin_loop[v] or self.dy_eligible[v]
        if self.in_spin_loop[v]:
            self.dy_eligible[v] = not self.dy_eligible[v]
        return eligible

    @kernel(KVM, grain="blocking")
    def kvm_vcpu_on_spin(self, me):
        last = self.cursor
        self.in_spin_loop[me] = True
        for v in ring(self.vcpu, after=last):
            if v == me or self.sched[v] != "READY":
                continue
            if not self.kvm_vcpu_eligible_for_directed_yield(v):
                continue
            if self.kvm_vcpu_yield_to(me, v) > 0:
                if self.stored == "index":
                    self.cursor = v
                break
        self.in_spin_loop[me] = False
        self.dy_eligible[me] = False

    @environment
    def kvm_vcpu_yield_to(self, me, target):
        self.sched[me] = "READY"
        self.sched[target] = "RUN"
        block(until=self.sched[me] == "RUN")
        return 1

    @thread(per=vcpu, cost={"yields": 1})
    def guest(self, me):
        block(until=self.sched[me] == "RUN")
        while True:
            self.kvm_vcpu_on_spin(me)
            step()
