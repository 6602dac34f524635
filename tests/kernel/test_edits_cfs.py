# SPDX-License-Identifier: GPL-2.0-only
"""Edits of CFS functions, made by program from the text of real trees: each gets the right answer on exact values."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pytest

from schedproof.kernel import Tree
from schedproof.kernel.compare import Side, compare
from schedproof.kernel.functions import Read, read_function
from schedproof.suite.models.quota_functions import QuotaFunctions, WeightFunctions
from tests.kernel.smallc import FAIR, edited, really_differs


class Charging(QuotaFunctions):
    """update_curr with three callees more, which have their own comparisons: else Z3 has products to think about."""

    functions = {"update_curr": FAIR}
    vocabulary = replace(QuotaFunctions.vocabulary, callees={
        **QuotaFunctions.vocabulary.callees, **dict.fromkeys(
            ("calc_delta_fair", "update_min_vruntime", "account_cfs_rq_runtime"), "compared for itself")})


CLASS_OF = {name: model for model in (QuotaFunctions, WeightFunctions, Charging) for name in model.functions}
Steps = tuple[tuple[str, str], ...]
Edits = dict[str, Steps]

# What the edits take hold of.
START = r"^\tcurr->exec_start = now;\n"
DELTA = r"^(\tdelta_exec = )now - curr->exec_start;\n"
SUM = r"^\tcurr->sum_exec_runtime \+= delta_exec;\n"
VRUNTIME = r"^\tcurr->vruntime \+= calc_delta_fair\(delta_exec, curr\);\n"
MINIMUM = r"^\tupdate_min_vruntime\(cfs_rq\);\n"
PLACED = r"max_vruntime\(se->vruntime, vruntime\)"
DOWN = r"^\tcfs_rq->throttle_count--;\n"
LAST = r"!cfs_rq->throttle_count\)"
MAX = r"max\((scale_load_down\(cfs_rq->load\.weight\)), (cfs_rq->avg\.load_avg)\)"
CLAMP = r"clamp_t\(long, shares, MIN_SHARES, tg_shares\)"
CHARGE = r"^\tcfs_rq->runtime_remaining -= delta_exec;\n"
LEFT = r"^\tif \(likely\(cfs_rq->runtime_remaining > 0\)\)\n\t\treturn;\n"
THROTTLED = r"^\tif \(cfs_rq->throttled\)\n\t\treturn;\n"
KEEP = r"\g<0>"

EQUAL_61: dict[str, Edits] = {
    "update_curr": {
        "<= 0 as < 1": ((r"\(s64\)delta_exec <= 0", "(s64)delta_exec < 1"),),
        "== NULL": ((r"unlikely\(!curr\)", "curr == NULL"),),
        "independent writes swapped": ((START, ""), (SUM, KEEP + "\tcurr->exec_start = now;\n")),
        "+= spelled out": ((VRUNTIME, "\tcurr->vruntime = calc_delta_fair(delta_exec, curr) + curr->vruntime;\n"),),
    },
    "place_entity": {
        "shift as a division": ((r"thresh >>= 1", "thresh /= 2"),),
        "maximum spelled out": ((PLACED, "(s64)(vruntime - se->vruntime) > 0 ? vruntime : se->vruntime"),),
        "test the other way round": ((r"(?s)(if \(entity_is_long_sleeper)(\(se\))\)\n(.*?;\n)\telse\n(.*?;\n)",
                                      r"if (!entity_is_long_sleeper\2)\n\4\telse\n\3"),),
    },
}
EQUAL: dict[str, Edits] = {
    "throttled_hierarchy": {
        "!= 0": ((r"cfs_rq->throttle_count;", "cfs_rq->throttle_count != 0;"),),
        "field before the key": ((r"return (cfs_bandwidth_used\(\)) && (cfs_rq->throttle_count);",
                                  r"return \2 && \1;"),),
    },
    "tg_unthrottle_up": {
        "-- as -=": ((DOWN, "\tcfs_rq->throttle_count -= 1;\n"),),
        "-- in the test": ((DOWN, ""), (LAST, "--cfs_rq->throttle_count == 0)")),
    },
    "calc_group_shares": {
        "max the other way round": ((MAX, r"max(\2, \1)"),),
        "order of the sum": ((r"^\ttg_weight \+= load;\n", ""),
                             (r"^(\ttg_weight = )(atomic_long_read)", r"\1load + \2")),
        "!= 0": ((r"if \(tg_weight\)", "if (tg_weight != 0)"),),
    },
    "__account_cfs_rq_runtime": {
        "both tests in one": ((LEFT, ""), (THROTTLED, "\tif (cfs_rq->runtime_remaining > 0 || cfs_rq->throttled)\n"
                                                      "\t\treturn;\n")),
        "no likely": ((LEFT, "\tif (cfs_rq->runtime_remaining >= 1)\n\t\treturn;\n"),),
        "signed charge": ((CHARGE, "\tcfs_rq->runtime_remaining = cfs_rq->runtime_remaining - (s64)delta_exec;\n"),),
    },
}
DIFFERENT_61: dict[str, Edits] = {
    "update_curr": {
        "cast dropped": ((r"\(s64\)delta_exec <= 0", "delta_exec <= 0"),),
        "<= as <": ((r"\(s64\)delta_exec <= 0", "(s64)delta_exec < 0"),),
        "dependent writes swapped": ((START, ""), (DELTA, r"\tcurr->exec_start = now;\n" + KEEP)),
        "minimum before vruntime": ((MINIMUM, ""), (VRUNTIME, "\tupdate_min_vruntime(cfs_rq);\n" + KEEP)),
        "NULL test dropped": ((r"unlikely\(!curr\)", "0"),),
        "unweighted": ((VRUNTIME, "\tcurr->vruntime += delta_exec;\n"),),
    },
    "place_entity": {
        "max as min": ((PLACED, "min_vruntime(se->vruntime, vruntime)"),),
        "a maximum that does not wrap": ((PLACED, "max(se->vruntime, vruntime)"),),
        "quarter of the latency": ((r"thresh >>= 1", "thresh >>= 2"),),
        "credit for new tasks": ((r"if \(!initial\)", "if (initial)"),),
        "no test for long sleepers": ((r"entity_is_long_sleeper\(se\)", "0"),),
        "narrow credit": ((r"unsigned long thresh;", "u16 thresh;"),),
    },
}
DIFFERENT: dict[str, Edits] = {
    "throttled_hierarchy": {
        "!= 0 as > 0": ((r"cfs_rq->throttle_count;", "cfs_rq->throttle_count > 0;"),),
        "own throttle only": ((r"cfs_rq->throttle_count;", "cfs_rq->throttled;"),),
    },
    "tg_unthrottle_up": {
        "== 0 as <= 0": ((LAST, "cfs_rq->throttle_count <= 0)"),),
        "test before the write": ((DOWN, ""), (r"^\treturn 0;\n", "\tcfs_rq->throttle_count--;\n" + KEEP)),
        "+= as =": ((r"throttled_clock_pelt_time \+=", "throttled_clock_pelt_time ="),),
        "decayed negated": ((r"!cfs_rq_is_decayed", "cfs_rq_is_decayed"),),
    },
    "calc_group_shares": {
        "max as min": ((MAX, r"min(\1, \2)"),),
        "lower bound": ((CLAMP, "clamp_t(long, shares, 4 * MIN_SHARES, tg_shares)"),),
        "upper bound": ((CLAMP, "clamp_t(long, shares, MIN_SHARES, tg_shares - 1)"),),
        "own load left out": ((r"^\ttg_weight \+= load;\n", ""),),
        "load cut to 32 bits": ((r"\(tg_shares \* load\)", "((u32)tg_shares * (u32)load)"),),
    },
    "__account_cfs_rq_runtime": {
        "> 0 as >= 0": ((LEFT, "\tif (cfs_rq->runtime_remaining >= 0)\n\t\treturn;\n"),),
        "test for throttled dropped": ((THROTTLED, ""),),
        "test before the charge": ((THROTTLED, ""), (CHARGE, "\tif (cfs_rq->throttled)\n\t\treturn;\n" + KEEP)),
        "result negated": ((r"!assign_cfs_rq_runtime", "assign_cfs_rq_runtime"),),
        "narrow charge": ((CHARGE, "\tcfs_rq->runtime_remaining -= (u32)delta_exec;\n"),),
    },
}

TREES = {"tree_61": ({**EQUAL, **EQUAL_61}, {**DIFFERENT, **DIFFERENT_61}), "tree_612": (EQUAL, DIFFERENT)}
CASES = [(tree, function, name, equal, steps)
         for tree, (same, other) in TREES.items() for equal, table in ((True, same), (False, other))
         for function, edits in table.items() for name, steps in edits.items()]


@lru_cache(maxsize=32)
def read_before(tree: Tree, function: str) -> Read:
    return read_function(tree, function, FAIR, CLASS_OF[function])


@pytest.mark.parametrize(("tree", "function", "name", "equal", "steps"), CASES,
                         ids=[f"{t.removeprefix('tree_')}-{f}-{n}" for t, f, n, _, _ in CASES])
def test_an_edit_gets_the_right_answer(request: pytest.FixtureRequest, tree: str, function: str, name: str, equal: bool,
                                       steps: Steps):
    real: Tree = request.getfixturevalue(tree)
    text = real.text(FAIR)
    changed = edited(text, function, *steps)
    assert changed != text
    old, new = read_before(real, function), read_function(real.with_files({FAIR: changed}), function, FAIR,
                                                          CLASS_OF[function])
    assert (old.status, new.status, new.reason) == ("read", "read", "")
    instance = CLASS_OF[function].variant("v6.1")
    one, other = Side(function, old.programs), Side(function, new.programs)
    found = compare(instance, one, other)
    if equal:
        assert (found.answer, found.within) == ("equal", ""), found
    else:
        assert found.answer == "differs", found
        # What a callee returns or leaves is part of some of these inputs, and Z3 is free to choose it.
        assert really_differs(instance, one, other, found), found


def test_there_are_enough_of_them():
    assert sum(equal for *_, equal, _ in CASES) >= 8 and sum(not equal for *_, equal, _ in CASES) >= 10
