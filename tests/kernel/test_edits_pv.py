# SPDX-License-Identifier: GPL-2.0-only
"""Edits of the paravirtual lock's waiters, made by program from the text of real trees: each gets the right answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import pytest

from schedproof.kernel import Tree
from schedproof.kernel.compare import Comparison, Side, compare
from schedproof.kernel.functions import read_function
from schedproof.model.instance import Instance
from schedproof.suite.models.pv_wait_early import PV, PvWaitEarly
from tests.kernel.smallc import edited, really_differs, span

Steps = tuple[tuple[str, str], ...]
Edit = tuple[str, Steps | Callable[[str], str]]

EARLY, NODE, KICK = "pv_wait_early", "pv_wait_node", "pv_kick_node"

# What the edits take hold of.
MASKED = r"\(loop & PV_PREV_CHECK_MASK\) != 0"
TOO_SOON = r"^\tif \(\(loop[^\n]*\n\t\treturn false;\n"
AHEAD = r"READ_ONCE\(prev->state\) != vcpu_running"
ENDLESS = r"for \(;;\)"
COUNT = r"loop = SPIN_THRESHOLD; loop; loop--"
LOOK = r"^\t\t\tif \(READ_ONCE\(node->locked\)\)\n"
PASSED = r"^\t\t\tif \(READ_ONCE\(node->locked\)\)\n\t\t\t\treturn;\n"
RELAX = r"^\t\t\tcpu_relax\(\);\n"
HALT = r"smp_store_mb\(pn->state, vcpu_halted\);"
RECHECK = r"if \(!READ_ONCE\(node->locked\)\) \{"
WAIT = r"pv_wait\(&pn->state, vcpu_halted\);"
BACK = r"cmpxchg\(&pn->state, vcpu_halted, vcpu_running\);"
TAKEN = r"^\tif \((?:cmpxchg_relaxed|!try_cmpxchg_relaxed)[^;]*\n\t\treturn;\n"
SLOW = r"WRITE_ONCE\(lock->locked, _Q_SLOW_VAL\);"
HASH = r"\(void\)pv_hash\(lock, pn\);"


def counter_renamed(here: str) -> str:
    return re.sub(r"\bloop\b", "rounds_left", here)


def written_by_hand(state: str) -> Steps:
    """The exchange of pv_kick_node as a test and a write."""
    return ((TAKEN, f"\tif (READ_ONCE(pn->state) != vcpu_halted)\n\t\treturn;\n\tWRITE_ONCE(pn->state, {state});\n"),)


EQUAL: dict[str, Edit] = {
    "remainder instead of a mask": (EARLY, ((r"loop & PV_PREV_CHECK_MASK", "loop % (PV_PREV_CHECK_MASK + 1)"),)),
    "one condition": (EARLY, ((TOO_SOON, ""), (AHEAD, r"!(loop & PV_PREV_CHECK_MASK) && \g<0>"))),
    "inverted around the rest": (EARLY, ((MASKED, "(loop & PV_PREV_CHECK_MASK) == 0"),
                                         (r"return false;", "return !!READ_ONCE(prev->state);"),
                                         (rf"return {AHEAD};", "return 0;"))),
    "while instead of for": (NODE, ((ENDLESS, "while (1)"),)),
    "counter tested for being positive": (NODE, ((COUNT, "loop = SPIN_THRESHOLD; loop > 0; loop -= 1"),)),
    "counter renamed": (NODE, counter_renamed),
    "counted up, which looks ahead in the same rounds": (NODE, ((COUNT, "loop = 0; loop < SPIN_THRESHOLD; loop++"),)),
    "counted up beside the counter": (NODE, (
        (COUNT, "loop = 0; loop < SPIN_THRESHOLD; loop++"),
        (r"pv_wait_early\(pp, loop\)", "pv_wait_early(pp, SPIN_THRESHOLD - loop)"))),
    "flag in a local": (NODE, ((RECHECK, "int late = READ_ONCE(node->locked);\n\t\tif (late == 0) {"),)),
    "no exchange": (NODE, ((BACK, "if (pn->state == vcpu_halted)\n\t\t\tpn->state = vcpu_running;"),)),
    "node ahead by its cast": (NODE, ((r"pv_wait_early\(pp,", "pv_wait_early((struct pv_node *)prev,"),)),
    "exchange as a test and a write": (KICK, written_by_hand("vcpu_hashed")),
    "tested before the exchange": (KICK, ((r"^\tsmp_mb__before_atomic\(\);\n",
                                           r"\tif (READ_ONCE(pn->state) != vcpu_halted)\n\t\treturn;\n\g<0>"),)),
    "entry kept in a local": (KICK, ((HASH, "{ struct qspinlock **lp = NULL;\n\tlp = pv_hash(lock, pn); }"),)),
    "value as a number": (KICK, ((SLOW, "WRITE_ONCE(lock->locked, 3);"),)),
}
DIFFERENT: dict[str, Edit] = {
    "mask negated": (EARLY, ((MASKED, "(loop & PV_PREV_CHECK_MASK) == 0"),)),
    "mask of four": (EARLY, ((r"PV_PREV_CHECK_MASK", "3"),)),
    "state negated": (EARLY, ((AHEAD, "READ_ONCE(prev->state) == vcpu_running"),)),
    "only halted": (EARLY, ((AHEAD, "READ_ONCE(prev->state) == vcpu_halted"),)),
    "hashed is running": (EARLY, ((AHEAD, "READ_ONCE(prev->state) <= vcpu_halted"),)),
    "always": (EARLY, ((TOO_SOON, ""),)),
    "one round less": (NODE, ((COUNT, "loop = SPIN_THRESHOLD - 1; loop; loop--"),)),
    "one round more": (NODE, ((COUNT, "loop = SPIN_THRESHOLD; loop >= 0; loop--"),)),
    "looks ahead one round later": (NODE, ((COUNT, "loop = 1; loop <= SPIN_THRESHOLD; loop++"),)),
    "node itself instead of the one ahead": (NODE, ((r"pv_wait_early\(pp,", "pv_wait_early(pn,"),)),
    "early exit dropped": (NODE, ((r"if \(pv_wait_early\(pp, loop\)\)", "if (0)"),)),
    "flag negated": (NODE, ((LOOK, "\t\t\tif (!READ_ONCE(node->locked))\n"),)),
    "flag tested behind the early exit": (NODE, ((PASSED, ""), (RELAX, "\t\t\tif (READ_ONCE(node->locked))\n"
                                                                      "\t\t\t\treturn;\n\t\t\tcpu_relax();\n"))),
    "re-check dropped": (NODE, ((RECHECK, "if (1) {"),)),
    "re-check before the write": (NODE, ((HALT, "bool late = READ_ONCE(node->locked);\n\t\tif (!late)\n\t\t\t"
                                                "smp_store_mb(pn->state, vcpu_halted);"), (RECHECK, "if (!late) {"))),
    "write behind the wait": (NODE, ((HALT, ""), (WAIT, "pv_wait(&pn->state, vcpu_halted);\n\t\t\t"
                                                       "smp_store_mb(pn->state, vcpu_halted);"))),
    "waits for another value": (NODE, ((WAIT, "pv_wait(&pn->state, vcpu_hashed);"),)),
    "state of hashed ones lost": (NODE, ((BACK, "WRITE_ONCE(pn->state, vcpu_running);"),)),
    "stays halted": (NODE, ((BACK, ""),)),
    "returns after the wait": (NODE, ((BACK, r"\g<0>\n\t\treturn;"),)),
    "kicks running ones": (KICK, ((TAKEN, "\tpn->state = vcpu_hashed;\n"),)),
    "test of the exchange negated": (KICK, (
        (TAKEN, "\tif (cmpxchg(&pn->state, vcpu_halted, vcpu_hashed) == vcpu_halted)\n\t\treturn;\n"),)),
    "wrong state": (KICK, written_by_hand("vcpu_running")),
    "hashed before the lock is slow": (KICK, ((HASH, ""), (SLOW, r"(void)pv_hash(lock, pn);\n\t\g<0>"))),
    "lock left as it is": (KICK, ((SLOW, ""),)),
    "not hashed": (KICK, ((HASH, ""),)),
    "pending instead of locked": (KICK, ((SLOW, "WRITE_ONCE(lock->pending, _Q_SLOW_VAL);"),)),
    "both bytes": (KICK, ((SLOW, "WRITE_ONCE(lock->locked_pending, _Q_SLOW_VAL);"),)),
}


def text_of(tree: Tree, edit: Edit) -> str:
    function, steps = edit
    text = tree.text(PV)
    if callable(steps):
        begin, end = span(text, function)
        return text[:begin] + steps(text[begin:end]) + text[end:]
    return edited(text, function, *steps)


@lru_cache(maxsize=4)
def side(tree: Tree, function: str, text: str) -> Side:
    """The function as a tree has it with this text of the file."""
    read = read_function(tree.with_files({PV: text}), function, PV, PvWaitEarly)
    assert read.status == "read", read.reason
    return Side(function, {**PvWaitEarly.programs, **read.programs})


def answered(tree: Tree, edit: Edit) -> tuple[Comparison, Instance, Side, Side]:
    instance, text = PvWaitEarly.variant("v6.1", cpus=2), text_of(tree, edit)
    assert text != tree.text(PV)
    old, new = side(tree, edit[0], tree.text(PV)), side(tree, edit[0], text)
    return compare(instance, old, new), instance, old, new


def cases(edits: dict[str, Edit]) -> list[tuple[str, str]]:
    """(tree, edit): the trees differ in pv_kick_node only."""
    return [(tree, name) for name, edit in edits.items() for tree in ("tree_61", "tree_612")
            if edit[0] == KICK or tree == "tree_612"]


@pytest.mark.parametrize(("tree", "name"), cases(EQUAL))
def test_equal(request: pytest.FixtureRequest, tree: str, name: str):
    found, *_ = answered(request.getfixturevalue(tree), EQUAL[name])
    assert found.answer == "equal" and not found.within, found


@pytest.mark.parametrize(("tree", "name"), cases(DIFFERENT))
def test_different(request: pytest.FixtureRequest, tree: str, name: str):
    found, instance, old, new = answered(request.getfixturevalue(tree), DIFFERENT[name])
    assert found.answer == "differs", found
    assert really_differs(instance, old, new, found), found
