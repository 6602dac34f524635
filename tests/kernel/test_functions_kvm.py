# SPDX-License-Identifier: GPL-2.0-only
"""The functions behind interrupt boosting, read from real trees: what they touch and do, what edits of them change."""

from __future__ import annotations

from typing import Any

import pytest

from schedproof.kernel import Tree
from schedproof.kernel.compare import compare
from schedproof.lang import syntax as s
from schedproof.lang.ctypes import BOOL, INT, ULONG, pointer
from schedproof.suite.models.interrupt_boost import KVM_REQ_EVENT, KVM_REQ_NMI, InterruptBoost
from tests.kernel.smallc import frees, loads, played, read_whole, really_differs, side_of, sides, stores

FUNCTIONS = sorted(InterruptBoost.functions)
VCPU = pointer("struct kvm_vcpu")
WAKE = "rcuwait_wake_up@struct kvm_vcpu.wait"


def new(tree: Tree) -> bool:
    return tree.version() >= (6, 12, 0)


# For each program: what it reads, what it writes, what it calls. Where the trees differ: 6.1, 6.12.
TOUCHES: dict[str, tuple[set[str], set[str], set[str]]] = {
    "kvm_vcpu_wake_up": (set(), {"ready"}, {"__kvm_vcpu_wake_up"}),
    "__kvm_vcpu_wake_up": (set(), set(), {"kvm_arch_vcpu_get_wait", WAKE}),
    "kvm_arch_vcpu_get_wait": (set(), set(), set()),
    WAKE: ({"waiter"}, set(), {"wake_up_process"}),
    "preempt_notifier_to_vcpu": (set(), set(), set()),
    "task_is_runnable": ({"on_rq", "sched_delayed"}, set(), set()),
    "kvm_xen_msr_enabled": (set(), set(), set()),
    "kvm_arch_vcpu_in_kernel": ({"state_protected"}, set(), {"kvm_x86_get_cpl"}),
    "vcpu_dy_runnable": ({"page_ready"}, set(), {"kvm_arch_dy_runnable"}),
    "kvm_arch_dy_runnable": ({"pv_unhalted"}, set(), {"kvm_test_request", "kvm_arch_dy_has_pending_interrupt"}),
    "kvm_test_request": ({"requests"}, set(), set()),
    "kvm_arch_dy_has_pending_interrupt": (set(), set(),
                                          {"kvm_vcpu_apicv_active", "kvm_x86_dy_apicv_has_pending_interrupt"}),
    "kvm_vcpu_apicv_active": ({"vcpu_apic", "apicv_active"}, set(), {"lapic_in_kernel"}),
    "lapic_in_kernel": (set(), set(), set()),
}
BOTH: dict[str, tuple[tuple[set[str], set[str], set[str]], tuple[set[str], set[str], set[str]]]] = {
    "kvm_sched_in": (
        ({"this_cpu"}, {"preempted", "ready", "kvm_running_vcpu"},
         {"preempt_notifier_to_vcpu", "kvm_arch_sched_in", "kvm_arch_vcpu_load"}),
        ({"this_cpu"}, {"preempted", "ready", "kvm_running_vcpu", "scheduled_out"},
         {"preempt_notifier_to_vcpu", "kvm_arch_vcpu_load"})),
    "kvm_sched_out": (
        ({"this_cpu", "current", "on_rq"}, {"preempted", "ready", "kvm_running_vcpu"},
         {"preempt_notifier_to_vcpu", "kvm_arch_vcpu_put"}),
        ({"this_cpu", "current", "wants_to_run"}, {"preempted", "ready", "kvm_running_vcpu", "scheduled_out"},
         {"preempt_notifier_to_vcpu", "kvm_arch_vcpu_put", "task_is_runnable"})),
    "kvm_arch_vcpu_put": (
        ({"preempted", "state_protected", "kvm"}, {"preempted_in_kernel"}, {"kvm_x86_get_cpl", "kvm_xen_msr_enabled"}),
        ({"preempted", "kvm"}, {"preempted_in_kernel"}, {"kvm_arch_vcpu_in_kernel", "kvm_xen_msr_enabled"})),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_is_read(real_tree: Tree, function: str):
    """With all that it calls, down to the model's own methods."""
    found = read_whole(real_tree, InterruptBoost, function).programs
    reached, todo = {function}, [function]
    while todo:
        name = todo.pop()
        wanted = BOTH[name][new(real_tree)] if name in BOTH else TOUCHES[name]
        program = found[name]
        assert (loads(program), stores(program), s.calls(program.body)) == wanted, name
        assert frees(program) == ({"a bit behind the word"} if name == "kvm_test_request" else set())
        more = s.calls(program.body) - set(InterruptBoost.vocabulary.callees) - reached
        reached |= more
        todo += more
    assert reached == set(found)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_equals_itself(real_tree: Tree, function: str):
    side = side_of(real_tree, InterruptBoost, function)
    found = compare(InterruptBoost.variant("v6.1", cpus=2), side, side)
    assert found.answer == "equal" and not found.within, found


def test_the_types_are_those_of_the_tree(real_tree: Tree):
    """A preempt notifier arrives as the vCPU in which it lies."""
    sched_in = read_whole(real_tree, InterruptBoost, "kvm_sched_in").programs
    assert sched_in["kvm_sched_in"].types == (VCPU, INT)
    assert sched_in["preempt_notifier_to_vcpu"].types == (VCPU,)
    sched_out = read_whole(real_tree, InterruptBoost, "kvm_sched_out").programs
    assert sched_out["kvm_sched_out"].types == (VCPU, pointer("struct task_struct"))
    runnable = read_whole(real_tree, InterruptBoost, "vcpu_dy_runnable").programs
    assert runnable["vcpu_dy_runnable"].result == BOOL and runnable["kvm_test_request"].types == (INT, VCPU)
    words = {e.ctype for x in s.statements(runnable["kvm_test_request"].body) for e in s.expressions(x)
             if isinstance(e, s.Load)}
    assert {w.bits for w in words if w is not None} == {64} and ULONG.bits == 64


# ------------------------------------------------------------------------------------------------ plain runs
def play(tree: Tree, function: str, args: list[int | str], **given: int | bool | str,
         ) -> tuple[int | bool | None, dict[str, int | bool]]:
    """One run; ``ready__vcpu0=True`` sets ready[vcpu0]."""
    state = {k.replace("__", "[") + "]" if "__" in k else k: v for k, v in given.items()}
    nobody = {"waiter[vcpu0]": "NULL", "waiter[vcpu1]": "NULL", "kvm_running_vcpu[cpu0]": "NULL",
              "kvm_running_vcpu[cpu1]": "NULL"}
    return played(InterruptBoost.variant("v6.1", cpus=2), side_of(tree, InterruptBoost, function),
                  {**nobody, **state}, args)


def test_wake_up_of_a_sleeper(real_tree: Tree):
    value, after = play(real_tree, "kvm_vcpu_wake_up", ["vcpu1"], waiter__vcpu1="task1", asleep__task1=True)
    assert value == 1 and after["ready[vcpu1]"] and not after["ready[vcpu0]"] and not after["preempted[vcpu1]"]
    assert after["on_rq[task1]"] == 1 and not after["asleep[task1]"]


def test_wake_up_of_nobody(real_tree: Tree):
    """Nobody waits, or who waits is awake already: not ready, and the caller is told so."""
    cases: list[dict[str, Any]] = [{}, {"waiter__vcpu1": "task1"}, {"waiter__vcpu0": "task0", "asleep__task0": True}]
    for given in cases:
        value, after = play(real_tree, "kvm_vcpu_wake_up", ["vcpu1"], **given)
        assert value == 0 and not after["ready[vcpu1]"] and not after["ready[vcpu0]"]


@pytest.mark.parametrize(("on_rq", "delayed", "inside"), [
    (r, d, i) for r in (0, 1, 2) for d in (False, True) for i in (False, True)])
def test_sched_out(real_tree: Tree, on_rq: int, delayed: bool, inside: bool):
    """Preempted and ready only if the task is still runnable; since 6.11 only inside KVM_RUN, too."""
    preempted = on_rq != 0 and (not new(real_tree) or not delayed and inside)
    value, after = play(real_tree, "kvm_sched_out", ["vcpu0", "task1"], current="task0", this_cpu="cpu1",
                        on_rq__task0=on_rq, on_rq__task1=1 - min(on_rq, 1), sched_delayed__task0=delayed,
                        wants_to_run__vcpu0=inside, wants_to_run__vcpu1=not inside, in_kernel__vcpu0=True,
                        kvm_running_vcpu__cpu0="vcpu1", kvm_running_vcpu__cpu1="vcpu0")
    assert value is None
    assert (after["preempted[vcpu0]"], after["ready[vcpu0]"]) == (preempted, preempted)
    assert after["preempted_in_kernel[vcpu0]"] == preempted           # kvm_arch_vcpu_put looks at it only then
    assert after["scheduled_out[vcpu0]"] == new(real_tree)
    assert not after["ready[vcpu1]"] and not after["preempted[vcpu1]"]
    assert after["kvm_running_vcpu[cpu1]"] == -1 and after["kvm_running_vcpu[cpu0]"] == 1


def test_sched_out_keeps_ready(real_tree: Tree):
    """A vCPU that goes to sleep with ``ready`` left over keeps it: nothing but kvm_sched_in clears it (facts B.3)."""
    _, after = play(real_tree, "kvm_sched_out", ["vcpu0", "task1"], current="task0", this_cpu="cpu0",
                    on_rq__task0=0, ready__vcpu0=True)
    assert after["ready[vcpu0]"] and not after["preempted[vcpu0]"]


def test_sched_out_of_encrypted_registers(real_tree: Tree):
    """6.1 leaves the flag as it was, for its reader asks for the encryption itself; 6.12 sets it."""
    given: dict[str, Any] = {"current": "task0", "this_cpu": "cpu0", "on_rq__task0": 1, "wants_to_run__vcpu0": True}
    for protected, expected in ((False, False), (True, new(real_tree))):
        _, after = play(real_tree, "kvm_sched_out", ["vcpu0", "task1"], state_protected__vcpu0=protected, **given)
        assert after["preempted_in_kernel[vcpu0]"] == expected


def test_sched_in(real_tree: Tree):
    value, after = play(real_tree, "kvm_sched_in", ["vcpu1", 1], this_cpu="cpu1", ready__vcpu1=True,
                        preempted__vcpu1=True, scheduled_out__vcpu1=True, ready__vcpu0=True, preempted__vcpu0=True)
    assert value is None and not after["ready[vcpu1]"] and not after["preempted[vcpu1]"]
    assert after["ready[vcpu0]"] and after["preempted[vcpu0]"]
    assert after["scheduled_out[vcpu1]"] == (not new(real_tree))
    assert after["kvm_running_vcpu[cpu1]"] == 1 and after["kvm_running_vcpu[cpu0]"] == -1


OTHER_REQUEST = 1 << 16                                # KVM_REQ_STEAL_UPDATE: nothing to wake up for
KVM_REQ_SMI = 1 << 20


@pytest.mark.parametrize(("given", "runnable"), [
    ({}, 0), ({"pv_unhalted__vcpu0": True}, 1), ({"requests__vcpu0": KVM_REQ_EVENT}, 1),
    ({"requests__vcpu0": KVM_REQ_NMI}, 1), ({"requests__vcpu0": KVM_REQ_SMI}, 1),
    ({"requests__vcpu0": OTHER_REQUEST}, 0), ({"requests__vcpu0": OTHER_REQUEST | KVM_REQ_NMI}, 1),
    ({"page_ready__vcpu0": True}, 1), ({"posted__vcpu0": True}, 0),
    ({"posted__vcpu0": True, "apicv_active__apic0": True}, 1), ({"apicv_active__apic0": True}, 0),
    ({"posted__vcpu0": True, "apicv_active__apic1": True}, 0), ({"pv_unhalted__vcpu1": True}, 0),
    ({"ready__vcpu0": True, "preempted__vcpu0": True}, 0)])
def test_dy_runnable(real_tree: Tree, given: dict[str, int | bool], runnable: int):
    """pv_unhalted, requests for an event, NMI or SMI, a posted interrupt where APICv is active, a page that came."""
    value, after = play(real_tree, "vcpu_dy_runnable", ["vcpu0"], **given)
    assert value == runnable
    assert after == play(real_tree, "vcpu_dy_runnable", ["vcpu1"], **given)[1]          # it changes nothing


# ------------------------------------------------------------------------------------------------ edits
Steps = tuple[tuple[str, str], ...]
NAME = "kvm_sched_out"
TEST = r"^\tif \((current->on_rq|task_is_runnable\(current\) && vcpu->wants_to_run)\) \{\n"
PREEMPTED = r"^\t\tWRITE_ONCE\(vcpu->preempted, true\);\n"
READY = r"^\t\tWRITE_ONCE\(vcpu->ready, true\);\n"
MARKED = "\t\tWRITE_ONCE(vcpu->preempted, true);\n\t\tWRITE_ONCE(vcpu->ready, true);\n"
BLOCK = TEST + PREEMPTED.lstrip("^") + READY.lstrip("^") + r"\t\}\n"
PUT = r"^\tkvm_arch_vcpu_put\(vcpu\);\n"
RUNNING = r"__this_cpu_write\(kvm_running_vcpu, NULL\);"
FOUND = r"preempt_notifier_to_vcpu\(pn\)"

EQUAL: dict[str, Steps] = {
    "writes swapped": ((PREEMPTED, ""), (READY, "\t\tWRITE_ONCE(vcpu->ready, true);\n"
                                                "\t\tWRITE_ONCE(vcpu->preempted, true);\n")),
    "plain writes": ((PREEMPTED, "\t\tvcpu->preempted = true;\n"), (READY, "\t\tvcpu->ready = vcpu->preempted;\n")),
    "test in a local": ((TEST, "\tbool runnable = \\1;\n\n\tif (runnable) {\n"),),
    "goto": ((BLOCK, "\tif (!(\\1))\n\t\tgoto put;\n" + MARKED.replace("\t\t", "\t") + "put:\n"),),
    "== false": ((BLOCK, "\tif ((\\1) == 0) {\n\t\t;\n\t} else {\n" + MARKED + "\t}\n"),),
    "container_of": ((FOUND, "container_of(pn, struct kvm_vcpu, preempt_notifier)"),),
    "task in a local": ((TEST, "\tstruct task_struct *task = current;\n\n\tif (current == task && (\\1)) {\n"),),
    "per_cpu": ((RUNNING, "per_cpu(kvm_running_vcpu, smp_processor_id()) = NULL;"),),
    "in a helper": ((BLOCK, "\tif (\\1)\n\t\tmark_preempted(vcpu);\n"),
                    (r"\A", "static void mark_preempted(struct kvm_vcpu *v)\n{\n\tv->ready = v->preempted = true;\n"
                            "}\n\n")),
}
DIFFERENT: dict[str, Steps] = {
    "test negated": ((TEST, "\tif (!(\\1)) {\n"),),
    "test dropped": ((TEST, "\t{\n"),),
    "early return inverted": ((BLOCK, "\tif (\\1)\n\t\tgoto put;\n" + MARKED.replace("\t\t", "\t") + "put:\n"),),
    "the next task": ((r"\bcurrent\b", "next"),),
    "put before the marks": ((PUT, ""), (TEST, "\tkvm_arch_vcpu_put(vcpu);\n\tif (\\1) {\n")),
    "not ready": ((READY, ""),),
    "not preempted": ((PREEMPTED, ""),),
    "ready cleared": ((READY, "\t\tWRITE_ONCE(vcpu->ready, false);\n"),),
    "ready always": ((READY, ""), (PUT, "\tWRITE_ONCE(vcpu->ready, true);\n\tkvm_arch_vcpu_put(vcpu);\n")),
    "put dropped": ((PUT, ""),),
    "still running": ((RUNNING, "__this_cpu_write(kvm_running_vcpu, vcpu);"),),
    "not cleared": ((RUNNING, ";"),),
    "cleared on CPU 0": ((RUNNING, "per_cpu(kvm_running_vcpu, 0) = NULL;"),),
    "only if it was": ((TEST, "\tif ((\\1) && vcpu->ready) {\n"),),
    "two writes swapped": ((PUT, ""), (RUNNING, "__this_cpu_write(kvm_running_vcpu, NULL);\n"
                                                "\tkvm_arch_vcpu_put(vcpu);")),
}
DIFFERENT_61: dict[str, Steps] = {
    "not while it migrates": ((r"current->on_rq", "current->on_rq == 1"),),
    "the tick's flag": ((r"current->on_rq", "(current->on_rq & 1)"),),
}
DIFFERENT_612: dict[str, Steps] = {
    "re-check dropped": ((r" && vcpu->wants_to_run", ""),),
    "&& to ||": ((r"\(current\) && vcpu", "(current) || vcpu"),),
    "delayed ones too": ((r"task_is_runnable\(current\)", "current->on_rq"),),
    "no mark of being out": ((r"^\tWRITE_ONCE\(vcpu->scheduled_out, true\);\n", ""),),
}
EQUAL_612: dict[str, Steps] = {
    "operands swapped": ((r"task_is_runnable\(current\) && vcpu->wants_to_run",
                          "vcpu->wants_to_run && task_is_runnable(current)"),),
    "inlined": ((r"task_is_runnable\(current\)", "current->on_rq && !current->se.sched_delayed"),),
}
BOTH_TREES = [(n, equal, e) for equal, table in ((True, EQUAL), (False, DIFFERENT)) for n, e in table.items()]
CASES = ([(("tree_61", "tree_612")[i % 2], *case) for i, case in enumerate(BOTH_TREES)]      # every other one in either
         + [("tree_612", n, True, e) for n, e in EQUAL_612.items()]
         + [("tree_61", n, False, e) for n, e in DIFFERENT_61.items()]
         + [("tree_612", n, False, e) for n, e in DIFFERENT_612.items()])


@pytest.mark.parametrize(("tree", "equal", "steps"), [(t, e, x) for t, _, e, x in CASES],
                         ids=[f"{t.removeprefix('tree_')}-{n}" for t, n, _, _ in CASES])
def test_an_edit_gets_the_right_answer(request: pytest.FixtureRequest, tree: str, equal: bool, steps: Steps):
    old, after = sides(request.getfixturevalue(tree), InterruptBoost, NAME, *steps)
    instance = InterruptBoost.variant("v6.1", cpus=2)
    found = compare(instance, old, after)
    if equal:
        assert found.answer == "equal" and not found.within, found
    else:
        assert found.answer == "differs", found
        assert really_differs(instance, old, after, found), found


def test_there_are_enough_of_them():
    assert len(EQUAL) >= 8 and len(DIFFERENT) >= 10
