# SPDX-License-Identifier: GPL-2.0-only
"""Whether arithmetic can leave its C types within named ranges."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from schedproof.errors import InputError
from schedproof.kernel import Tree
from schedproof.kernel.compare import Side
from schedproof.kernel.functions import read_function
from schedproof.kernel.overflow import Overflow, overflows
from schedproof.suite.models.quota_reweight import QuotaReweight
from tests.kernel.smallc import FAIR
from tests.loading import model_of

FILE = "kernel/sched/a.c"
SMALL = model_of("""
class M(Model):
    rq = Object("struct rq", "r")
    nr = Int(per=rq, c="nr", init=0)
    load = Int(per=rq, c="load", init=0)
    releases = {"v1": {}}
    functions = {"f": "kernel/sched/a.c"}
""")
STRUCT = "typedef unsigned long u64;\ntypedef unsigned int u32;\ntypedef unsigned char u8;\n" \
         "struct rq {\n\tunsigned int nr;\n\tu64 load;\n};\n"


def found(make_tree: Callable[..., Tree], body: str, **ranges: tuple[int, int]) -> tuple[Overflow, ...]:
    tree = make_tree({FILE: STRUCT + body})
    read = read_function(tree, "f", FILE, SMALL)
    assert read.status == "read", read.reason
    return overflows(SMALL.variant("v1"), Side("f", read.programs), ranges)


def test_a_product_overflows_just_from_where_it_does(make_tree):
    body = "u64 f(struct rq *rq)\n{\n\treturn rq->nr * rq->load;\n}\n"
    low = 1 << 20
    assert found(make_tree, body, nr=(0, low), load=(0, (2 ** 64 - 1) // low)) == ()
    over = found(make_tree, body, nr=(0, low), load=(0, (2 ** 64 - 1) // low + 1))
    assert [(o.op, o.loc.line, o.answer) for o in over] == [("*", 10, "overflows")]
    values = over[0].input
    assert values["nr[r]"] * values["load[r]"] > 2 ** 64 - 1


def test_a_narrow_type_counts_and_a_wide_one_does_not(make_tree):
    narrow = "u64 f(struct rq *rq)\n{\n\treturn rq->nr + rq->nr;\n}\n"
    wide = "u64 f(struct rq *rq)\n{\n\treturn (u64)rq->nr + rq->nr;\n}\n"
    assert [o.op for o in found(make_tree, narrow)] == ["+"]
    assert found(make_tree, wide) == ()


def test_the_path_counts(make_tree):
    body = "u64 f(struct rq *rq)\n{\n\tif (rq->nr > rq->load)\n\t\treturn 0;\n\treturn rq->load - rq->nr;\n}\n"
    assert found(make_tree, body) == ()
    other = body.replace("nr > rq->load", "nr > rq->load + 1")
    assert [o.op for o in found(make_tree, other)] == ["+", "-"]


def test_a_conversion_that_loses_value(make_tree):
    body = "u8 f(struct rq *rq)\n{\n\tu8 x = rq->nr;\n\n\treturn x;\n}\n"
    (one,) = found(make_tree, body)
    assert (one.op, one.ctype) == ("conversion", "u8") and one.input["nr[r]"] > 255
    assert "loses value" in str(one)
    assert found(make_tree, body, nr=(0, 255)) == ()


def test_arguments_have_ranges_too(make_tree):
    body = "int f(struct rq *rq, int n)\n{\n\treturn n - 1;\n}\n"
    (one,) = found(make_tree, body)
    assert one.input == {"arg n": -(1 << 31)}
    assert found(make_tree, body, n=(0, 5)) == ()


@pytest.mark.parametrize(("ranges", "told"), [({"nothing": (0, 1)}, "f has no input nothing"),
                                              ({"nr": (2, 1)}, "no value lies between 2 and 1")])
def test_bad_ranges(make_tree, ranges, told):
    with pytest.raises(InputError, match=told):
        found(make_tree, "int f(struct rq *rq)\n{\n\treturn rq->nr;\n}\n", **ranges)


def weights(tree: Tree, **ranges: tuple[int, int]) -> set[str]:
    read = read_function(tree, "calc_group_shares", FAIR, QuotaReweight)
    side = Side("calc_group_shares", {**QuotaReweight.programs, **read.programs})
    none = {"tg_load_avg_contrib": (0, 0)}                        # atomic_long_read() - contrib wraps and comes back
    answers = overflows(QuotaReweight.variant("v6.1"), side, {**none, **ranges})
    assert all(o.answer == "overflows" for o in answers)
    return {o.op for o in answers}


def test_calc_group_shares(real_tree: Tree):
    """shares is at most 2^28. load is at most 2^30 where load.weight is at most 2^40: the product is 2^58."""
    assert weights(real_tree) == set()
    assert weights(real_tree, load=(0, (1 << 45) - 1)) == set()          # 2^28 * (2^35 - 1)
    assert weights(real_tree, load=(0, 1 << 45)) == {"*"}                # 2^63 is one too many for a long
    assert weights(real_tree, shares=(2048, 1 << 34), load_avg=(0, 1 << 30)) == {"*"}
