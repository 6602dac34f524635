# SPDX-License-Identifier: GPL-2.0-only
"""Tables from exact C values to a model's classes, against every single value where those can be counted."""

from __future__ import annotations

import itertools

import pytest

from schedproof.errors import ModelError
from schedproof.kernel import Tree
from schedproof.kernel.classes import Row, classes_of, table
from schedproof.kernel.compare import Side
from schedproof.kernel.functions import read_function
from schedproof.suite.models.quota_reweight import QuotaReweight
from tests.kernel.smallc import FAIR
from tests.loading import model_of

FILE = "kernel/sched/a.c"
SMALL = model_of("""
class M(Model):
    rq = Object("struct rq", "r")
    nr = Values({0: "ZERO", 1: "FEW", 8: "MANY"}, per=rq, c="nr", init=0, stands_for={1: (1, 7), 8: (8, 40)})
    load = Values({0: "none", 3: "some"}, per=rq, c="load", init=0, stands_for={0: (0, 0), 3: (1, 25)})
    kept = Constant(5, per=rq, c="kept")
    releases = {"v1": {}}
    functions = {"f": "kernel/sched/a.c"}
""")
STRUCT = "struct rq {\n\tunsigned char nr;\n\tint load;\n\tint kept;\n};\n"
RESULT = {"low": (-100, 3), "middle": (4, 20), "high": (21, 300)}
NR = {"ZERO": range(0, 1), "FEW": range(1, 8), "MANY": range(8, 41)}
LOAD = {"none": range(0, 1), "some": range(1, 26)}


def rows(tree: Tree, body: str) -> tuple[Row, ...]:
    read = read_function(tree, "f", FILE, SMALL)
    assert read.status == "read", read.reason
    return table(SMALL.variant("v1"), Side("f", read.programs), RESULT)


@pytest.mark.parametrize(("expression", "python"), [
    ("rq->nr * rq->load / rq->kept", lambda n, x: n * x // 5),
    ("rq->nr > rq->load ? rq->nr - rq->load : rq->load", lambda n, x: n - x if n > x else x),
    ("(rq->nr >> 2) + rq->load - 12", lambda n, x: (n >> 2) + x - 12),
    ("rq->load * rq->load - rq->nr", lambda n, x: x * x - n),
])
def test_every_class_of_the_result_is_found_and_no_other(make_tree, expression, python):
    tree = make_tree({FILE: f"{STRUCT}int f(struct rq *rq)\n{{\n\treturn {expression};\n}}\n"})
    found = rows(tree, expression)
    assert len(found) == 6
    for row in found:
        values = {python(n, x) for n, x in itertools.product(NR[row.given["nr[r]"]], LOAD[row.given["load[r]"]])}
        wanted = {name for name, (low, high) in RESULT.items() if any(low <= v <= high for v in values)}
        wanted |= {"other"} if any(not -100 <= v <= 300 for v in values) else set()
        assert set(row.found) == wanted and not row.unknown, row
        assert row.exact == (next(iter(wanted)) if len(wanted) == 1 else None)


def test_a_fault_is_a_class_of_its_own(make_tree):
    tree = make_tree({FILE: f"{STRUCT}int f(struct rq *rq)\n{{\n\treturn rq->nr / (rq->load - 2);\n}}\n"})
    found = {(r.given["nr[r]"], r.given["load[r]"]): set(r.found) for r in rows(tree, "")}
    assert "fault" not in found["FEW", "none"]                   # / -2
    assert found["ZERO", "some"] == {"fault", "low"} and "fault" in found["MANY", "some"]


def test_classes_that_overlap_are_refused(make_tree):
    tree = make_tree({FILE: f"{STRUCT}int f(struct rq *rq)\n{{\n\treturn rq->nr;\n}}\n"})
    read = read_function(tree, "f", FILE, SMALL)
    with pytest.raises(ModelError, match="two classes of the result hold 3"):
        table(SMALL.variant("v1"), Side("f", read.programs), {"a": (0, 3), "b": (3, 4)})
    with pytest.raises(ModelError, match="no such arguments"):
        table(SMALL.variant("v1"), Side("f", read.programs), RESULT, {"rq": "q"})


def test_the_weights_of_quota_reweight(real_tree: Tree):
    """What the model claims of calc_group_shares: which weight, whatever load_avg is apart from zero."""
    read = read_function(real_tree, "calc_group_shares", FAIR, QuotaReweight)
    side = Side("calc_group_shares", {**QuotaReweight.programs, **read.programs})
    instance = QuotaReweight.variant("v6.1")
    found = table(instance, side, classes_of(instance.world.variables["weight"][1]), {"cfs_rq": "qA"})
    assert len(found) == 2 * 2 * len(instance.world.variables["load"][1].codes())
    for row in found:
        empty = row.given["load[qA]"] == "0" and row.given["load_avg[qA]"] == "0"
        assert row.exact == ("2" if empty else row.given["shares[A]"]), row
