# SPDX-License-Identifier: GPL-2.0-only
"""Boosting the vCPUs that an interrupt waits for. Source: virt/kvm/kvm_main.c and, for x86, arch/x86/kvm/x86.c.

A vCPU that spins gives its CPU to one of its siblings that is *ready*: that was preempted, or that was woken and has
not run since (d73eb57b80b9, 5.3). The functions that keep ``ready`` and ``preempted`` are here, and the test for a
sleeper that an interrupt waits for (17e433b54393, 5.3):

    kvm_vcpu_wake_up    the vCPU slept and was woken: ready
    kvm_sched_out       its task leaves the CPU, and is still runnable: preempted and ready
    kvm_sched_in        its task is on a CPU again: neither
    vcpu_dy_runnable    a sleeper that has something to run for

They are read from C; there is no action yet. The scheduler calls the two in the middle through the preempt notifier
that lies in each vCPU, so their first argument *is* a vCPU. A vCPU sleeps on its rcuwait: ``wait.task`` is the task
of a sleeper, else NULL. What x86 does to the hardware is outside, behind the static calls of kvm_x86_ops. Guests with
encrypted registers and Xen's runstate are in the C that is read; there are none in the model.
"""

from __future__ import annotations

from schedproof.model import (
    Bool,
    Link,
    Model,
    Object,
    Param,
    Pointer,
    Range,
    Values,
    Vocabulary,
    environment,
)

KVM = "virt/kvm/kvm_main.c"

# Bits of vcpu->requests, arch/x86/include/asm/kvm_host.h: KVM_ARCH_REQ(n) is bit 8 + n.
KVM_REQ_EVENT = 1 << 14
KVM_REQ_NMI = 1 << 17


def one_each(kind):
    """Names of as many objects of a kind as there are vCPUs."""
    return lambda m: [f"{kind}{i}" for i in range(m.vcpus)]


class InterruptBoost(Model):
    """Some vCPUs of one VM, each with its task, and the CPUs of the host."""

    vcpu = Object("struct kvm_vcpu", one_each("vcpu"))
    task = Object("struct task_struct", one_each("task"))
    apic = Object("struct kvm_lapic", one_each("apic"))
    vm = Object("struct kvm", "vm")
    cpu = Object("struct rq", lambda m: [f"cpu{i}" for i in range(m.cpus)])

    kvm = Link(vcpu, vm, {f"vcpu{i}": "vm" for i in range(16)}, c="kvm")
    vcpu_apic = Link(vcpu, apic, {f"vcpu{i}": f"apic{i}" for i in range(16)}, c="arch.apic")

    ready = Bool(per=vcpu, c="ready")                                # descheduled, and worth a boost
    preempted = Bool(per=vcpu, c="preempted")                        # descheduled against its will
    wants_to_run = Bool(per=vcpu, c="wants_to_run")                  # inside KVM_RUN (6.11)
    scheduled_out = Bool(per=vcpu, c="scheduled_out")                # between kvm_sched_out and kvm_sched_in (6.11)
    waiter = Pointer(task, per=vcpu, c="wait.task")                  # the task that sleeps for this vCPU
    preempted_in_kernel = Bool(per=vcpu, c="arch.preempted_in_kernel")
    state_protected = Bool(per=vcpu, c="arch.guest_state_protected")     # registers are encrypted: SEV-ES
    pv_unhalted = Bool(per=vcpu, c="arch.pv.pv_unhalted")            # a sibling has kicked it (KVM_HC_KICK_CPU)
    requests = Values({0: "none", KVM_REQ_EVENT: "event", KVM_REQ_NMI: "NMI"}, per=vcpu, c="requests", init=0)
    page_ready = Bool(per=vcpu, c="async_pf.done")                   # a page that it waited for is there
    apicv_active = Bool(per=apic, c="apicv_active", init=True)

    asleep = Bool(per=task)                                          # its state is not TASK_RUNNING
    on_rq = Range(0, 2, per=task, c="on_rq", init=1)                 # 1: TASK_ON_RQ_QUEUED; 2: TASK_ON_RQ_MIGRATING
    sched_delayed = Bool(per=task, c="se.sched_delayed")             # asleep, not dequeued yet (DELAY_DEQUEUE, 6.12)

    this_cpu = Pointer(cpu, null=False, init="cpu0", c="smp_processor_id")   # where the functions run
    current = Pointer(task, null=False, init="task0", c="current")           # who runs them
    kvm_running_vcpu = Pointer(vcpu, per=cpu, c="per_cpu(kvm_running_vcpu)")

    in_kernel = Bool(per=vcpu)                                       # the guest's CPL is 0
    posted = Bool(per=vcpu)                                          # its posted-interrupt descriptor has something

    vcpus = Param(2, 1, 16, "vCPUs")
    cpus = Param(1, 1, 16, "CPUs of the host")

    releases = {
        "v6.1": {},
        "v6.12": {},
    }
    functions = {
        "kvm_vcpu_wake_up": KVM,
        "kvm_sched_in": KVM,
        "kvm_sched_out": KVM,
        "vcpu_dy_runnable": KVM,
    }

    vocabulary = Vocabulary(
        callees={
            "wake_up_process": "the scheduler's wakeup is a mechanism of its own; here a task just wakes up",
            "kvm_arch_vcpu_load": "puts the vCPU's registers, clock and timers into the CPU: hardware",
            "kvm_arch_sched_in": "prepares the CPU's pause-loop window and performance counters: hardware (up to 6.10)",
            "kvm_x86_get_cpl": "the vendor's module reads the guest's privilege level from the hardware",
            "kvm_x86_dy_apicv_has_pending_interrupt": "the vendor's module looks into the posted-interrupt descriptor",
        },
        static_keys={"kvm_has_noapic_vcpu": (False, "every vCPU has its APIC in the kernel, as with QEMU by default")},
        ignore={
            ("struct kvm_vcpu", "stat"): "statistics",
            ("struct kvm_vcpu", "arch.last_host_tsc"): "the guest's clock is not modelled",
        },
        noop={
            "srcu_read_lock": "no memslot changes here",
            "srcu_read_unlock": "no memslot changes here",
            "kvm_steal_time_set_preempted": "writes st.preempted for the guest, which no host function reads again",
            "kvm_xen_runstate_set_preempted": "no guest is one of Xen's",
            "kvm_x86_vcpu_put": "takes the vCPU's registers out of the CPU: hardware",
            "rdtsc": "the guest's clock is not modelled",
        },
    )

    @environment
    def wake_up_process(self, p):
        """Whether this call woke the task. Its vCPU's rcuwait still names it: it takes itself off when it runs."""
        if not self.asleep[p]:
            return 0
        self.asleep[p] = False
        self.on_rq[p] = 1
        self.sched_delayed[p] = False
        return 1

    @environment
    def kvm_arch_vcpu_load(self, vcpu, cpu):
        pass

    @environment
    def kvm_arch_sched_in(self, vcpu, cpu):
        pass

    @environment
    def kvm_x86_get_cpl(self, vcpu):
        return 0 if self.in_kernel[vcpu] else 3

    @environment
    def kvm_x86_dy_apicv_has_pending_interrupt(self, vcpu):
        return self.posted[vcpu]
