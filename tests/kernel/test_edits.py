# SPDX-License-Identifier: GPL-2.0-only
"""Edits of update_cfs_group, made by program from the text of real trees: each gets the right answer."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest

from schedproof.kernel import Tree
from schedproof.kernel.compare import Side, compare
from schedproof.kernel.functions import Read, read_function
from schedproof.suite.models.quota_reweight import QuotaReweight
from tests.kernel.smallc import FAIR, edited, really_differs, span

NAME = "update_cfs_group"
Steps = tuple[tuple[str, str], ...]

# What the edits take hold of.
NULL = r"^\tif \(!gcfs_rq\b[^\n]*\n\t\treturn;\n"
NONE = r"!gcfs_rq(?=[ )])"
GUARD = r"^\tif \(throttled_hierarchy\(gcfs_rq\)\)\n\t\treturn;\n"
TEST = r"throttled_hierarchy\(gcfs_rq\)"
SHARES = r"^(\tshares) *= calc_group_shares\(gcfs_rq\);\n"
END = r"^(#endif\n)"
CALL = r"reweight_entity\(cfs_rq_of\(se\), se, shares\);\n"
WHOLE = r"^(?:\tif \(unlikely[^\n]*\n\t)?\treweight_entity\([^\n]*\n"
DECLARED = r"^(\tlong shares;\n)"
LAST = r"\}\n\Z"
BEGIN = r"\A"

KEEP = r"\g<0>"
GUARDED = "throttled_hierarchy"
GUARD_TEXT = f"\tif ({GUARDED}(gcfs_rq))\n\t\treturn;\n"

EQUAL: dict[str, Steps] = {
    "inverted with swapped branches": ((GUARD, "\tif (!throttled_hierarchy(gcfs_rq)) {\n\t\t;\n\t} else {\n"
                                               "\t\treturn;\n\t}\n"),),
    "inverted around the rest": ((GUARD, "\tif (!throttled_hierarchy(gcfs_rq)) {\n"),
                                 (LAST, "\t} else {\n\t\treturn;\n\t}\n}\n")),
    "early return as a nested if": ((GUARD, "\tif (!throttled_hierarchy(gcfs_rq)) {\n"), (LAST, "\t}\n}\n")),
    "guard in a helper": ((TEST, "group_is_frozen(gcfs_rq)"),
                          (BEGIN, "static bool group_is_frozen(struct cfs_rq *q)\n{\n"
                                  "\treturn throttled_hierarchy(q);\n}\n\n")),
    "guard in a helper with branches": (
        (TEST, "group_is_frozen(se)"),
        (BEGIN, "static inline int group_is_frozen(struct sched_entity *of)\n{\n\tif (!group_cfs_rq(of))\n"
                "\t\treturn 1;\n\tif (throttled_hierarchy(group_cfs_rq(of)))\n\t\treturn 1;\n\treturn 0;\n}\n\n")),
    "weight in a helper": ((SHARES, r"\1 = new_weight(se);\n"),
                           (BEGIN, "static long new_weight(struct sched_entity *se)\n{\n"
                                   "\treturn calc_group_shares(group_cfs_rq(se));\n}\n\n")),
    "call in a helper": ((r"reweight_entity\(cfs_rq_of\(se\), se, shares\)", "set_weight(se, shares)"),
                         (BEGIN, "static void set_weight(struct sched_entity *which, unsigned long weight)\n{\n"
                                 "\treweight_entity(cfs_rq_of(which), which, weight);\n}\n\n")),
    "renamed": (),                                          # every place of both locals: text_of
    "guard behind the weight": ((GUARD, ""), (END, rf"\1{GUARD_TEXT}")),
    "declarations swapped": ((r"^(\tstruct cfs_rq \*gcfs_rq[^\n]*\n)(\tlong shares;\n)", r"\2\1"),),
    "== NULL": ((NONE, "gcfs_rq == NULL"),),
    "merged with ||": ((GUARD, ""), (r"^(\tif \(!gcfs_rq\b[^\n]*)\)\n", r"\1 || throttled_hierarchy(gcfs_rq))\n")),
    "De Morgan": ((GUARD, ""), (r"^\tif \(!gcfs_rq( \|\| [^\n]*)?\)\n",
                                r"\tif (!(gcfs_rq && !(0\1) && !throttled_hierarchy(gcfs_rq)))\n")),
    "guard behind a declaration": ((DECLARED, r"\1\tint level = 0;\n"), (GUARD, "\tlevel++;\n" + GUARD_TEXT)),
    "queue in a local": ((DECLARED, r"\1\tstruct cfs_rq *queue = cfs_rq_of(se);\n"),
                         (r"reweight_entity\(cfs_rq_of\(se\),", "reweight_entity(queue,")),
    "guard in a local": ((DECLARED, r"\1\tbool frozen;\n"),
                         (GUARD, "\tfrozen = throttled_hierarchy(gcfs_rq);\n\tif (frozen)\n\t\treturn;\n")),
    "do while (0)": ((GUARD, "\tdo {\n\t\tif (throttled_hierarchy(gcfs_rq))\n\t\t\tbreak;\n"),
                     (LAST, "\t} while (0);\n}\n")),
    "endless loop that ends": ((GUARD, "\tfor (;;) {\n" + GUARD_TEXT), (LAST, "\tbreak;\n\t}\n}\n")),
    "goto": ((GUARD, "\tif (throttled_hierarchy(gcfs_rq))\n\t\tgoto out;\n"), (LAST, "out:\n\treturn;\n}\n")),
    "braces": ((GUARD, "\tif (throttled_hierarchy(gcfs_rq)) {\n\t\treturn;\n\t}\n"),),
    "comment": ((GUARD, "\t/* Not while it is throttled. */\n" + GUARD_TEXT),),
    "unlikely": ((TEST, f"unlikely({'throttled_hierarchy(gcfs_rq)'})"),),
    "conditional expression": ((TEST, "(throttled_hierarchy(gcfs_rq) ? true : false)"),),
    "guard twice": ((GUARD, GUARD_TEXT + GUARD_TEXT),),
    "unsigned weight": ((DECLARED, "\tunsigned long shares;\n"),),
    "field itself": ((TEST, "cfs_bandwidth_used() && gcfs_rq->throttle_count != 0"),),
    "queue through a pointer": ((DECLARED, r"\1\tstruct sched_entity *other = se;\n"),
                                (r"cfs_rq_of\(se\), se,", "cfs_rq_of(other), other,")),
}
EQUAL_612: dict[str, Steps] = {
    "unlikely dropped": ((r"unlikely\((se[^\n]*)\)\)\n", r"\1)\n"),),
    "|| split": ((r"\|\| (!gcfs_rq->load\.weight)\)\n", r")\n\t\treturn;\n\tif (\1)\n"),),
    "guard before the empty test": ((GUARD, ""),
                                    (r"!gcfs_rq \|\|", "!gcfs_rq || throttled_hierarchy(gcfs_rq) ||")),
    "!= as a difference": ((r"se->load\.weight != shares\)", "se->load.weight - shares)"),),
    "test as an early return": ((r"^\tif \(unlikely\((se->load\.weight) != (shares)\)\)\n\t",
                                 r"\tif (\1 == \2)\n\t\treturn;\n"),),
}
DIFFERENT: dict[str, Steps] = {
    "guard negated": ((TEST, f"!{'throttled_hierarchy(gcfs_rq)'}"),),
    "guard on the queue above": ((TEST, "throttled_hierarchy(cfs_rq_of(se))"),),
    "guard dropped": ((GUARD, ""),),
    "guard behind the call": ((GUARD, ""), (LAST, GUARD_TEXT + "}\n")),
    "guard only for queued ones": ((TEST, "se->on_rq && throttled_hierarchy(gcfs_rq)"),),
    "guard from two on": ((TEST, "gcfs_rq->throttle_count > 1"),),
    "guard with &&": ((r"^(\tif \(!gcfs_rq\b[^\n]*)\)\n", r"\1 && throttled_hierarchy(gcfs_rq))\n"),),
    "call dropped": ((WHOLE, ""),),
    "weight constant": ((r"cfs_rq_of\(se\), se, shares\)", "cfs_rq_of(se), se, 1024)"),),
    "weight + 1": ((r"cfs_rq_of\(se\), se, shares\)", "cfs_rq_of(se), se, shares + 1)"),),
    "weight halved": ((r"cfs_rq_of\(se\), se, shares\)", "cfs_rq_of(se), se, shares >> 1)"),),
    "another queue": ((r"reweight_entity\(cfs_rq_of\(se\),", "reweight_entity(gcfs_rq,"),),
    "another entity": ((r"cfs_rq_of\(se\), se, shares\)", "cfs_rq_of(se), se->parent, shares)"),),
    "NULL test negated": ((NONE, "gcfs_rq"),),
    "NULL test dropped": ((NONE, "0"),),
    "two weights": ((r"^(\t+)(reweight_entity\(cfs_rq_of\(se\), se, )(shares)\);\n",
                     r"\1{ \2\3); \2\3 + 1); }\n"),),
    "twice": ((r"^(\t+)(reweight_entity\(cfs_rq_of\(se\), se, )(shares)\);\n", r"\1{ \2\3); \2\3); }\n"),),
    "weight of the queue above": ((SHARES, r"\1 = calc_group_shares(cfs_rq_of(se));\n"),),
    "weight in eight bits": ((DECLARED, "\tu8 shares;\n"),),
    "weight with a floor": ((END, r"\1\tshares = max(shares, 1024L);\n"),),
    "small weight while throttled": ((GUARD, ""), (END, r"\1\tif (throttled_hierarchy(gcfs_rq))\n\t\tshares = 2;\n")),
    "written past the call": ((WHOLE, "\tse->load.weight = shares;\n"),),
    "written before the call": ((END, r"\1\tse->load.weight = shares;\n"),),
}
DIFFERENT_61: dict[str, Steps] = {
    "empty test added": ((NULL, KEEP + "\n\tif (!gcfs_rq->load.weight)\n\t\treturn;\n"),),
    "weight tested first": ((WHOLE, "\tif (se->load.weight != shares)\n\t\t"
                                    "reweight_entity(cfs_rq_of(se), se, shares);\n"),),
}
DIFFERENT_612: dict[str, Steps] = {
    "empty test dropped": ((r" \|\| !gcfs_rq->load\.weight", ""),),
    "empty test negated": ((r"\|\| !gcfs_rq->load", "|| gcfs_rq->load"),),
    "!= as ==": ((r"load\.weight != shares", "load.weight == shares"),),
    "no test for a change": ((r"^\tif \(unlikely[^\n]*\n\t", ""),),
    "narrow test for a change": ((r"se->load\.weight != shares", "(u8)se->load.weight != (u8)shares"),),
}


def text_of(tree: Tree, name: str, steps: Steps) -> str:
    text = tree.text(FAIR)
    if name == "renamed":
        begin, end = span(text, NAME)
        here = text[begin:end].replace("gcfs_rq", "below").replace("shares", "weight").replace(
            "calc_group_weight", "calc_group_shares")
        return text[:begin] + here.replace("->tg->weight", "->tg->shares") + text[end:]
    return edited(text, NAME, *steps)


@lru_cache(maxsize=4)
def read_before(tree: Tree) -> Read:
    return read_function(tree, NAME, FAIR, QuotaReweight)


def both(tree: Tree, text: str) -> tuple[Any, Side, Side]:
    old, new = read_before(tree), read_function(tree.with_files({FAIR: text}), NAME, FAIR, QuotaReweight)
    assert (old.status, new.status, new.reason) == ("read", "read", "")
    sides = (Side(NAME, {**QuotaReweight.programs, **r.programs}) for r in (old, new))
    return QuotaReweight.variant("v6.1"), *sides


CASES = ([("tree_61", n, True, e) for n, e in EQUAL.items()]
         + [("tree_612", n, True, e) for n, e in {**EQUAL, **EQUAL_612}.items()]
         + [("tree_61", n, False, e) for n, e in {**DIFFERENT, **DIFFERENT_61}.items()]
         + [("tree_612", n, False, e) for n, e in {**DIFFERENT, **DIFFERENT_612}.items()])


@pytest.mark.parametrize(("tree", "name", "equal", "steps"), CASES,
                         ids=[f"{t.removeprefix('tree_')}-{n}" for t, n, _, _ in CASES])
def test_an_edit_gets_the_right_answer(request: pytest.FixtureRequest, tree: str, name: str, equal: bool,
                                       steps: Steps):
    real: Tree = request.getfixturevalue(tree)
    text = text_of(real, name, steps)
    assert text != real.text(FAIR)
    instance, old, new = both(real, text)
    found = compare(instance, old, new)
    if equal:
        # calc_group_shares divides by -1 for absurd weights only, and then before the guard or behind it.
        assert found.answer == "equal" and bool(found.within) == (name == "guard behind the weight"), found
    else:
        assert found.answer == "differs", found
        assert really_differs(instance, old, new, found), found


def test_there_are_enough_of_them():
    assert len(EQUAL) >= 12 and len(DIFFERENT) >= 12
