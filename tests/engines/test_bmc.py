# SPDX-License-Identifier: GPL-2.0-only
"""The bmc engine: what it finds is what the explicit engine finds, at the same depth; it proves nothing."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import z3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedproof.engines import decide
from schedproof.engines.bmc import bits
from schedproof.engines.bmc.engine import Bmc
from schedproof.engines.explicit.engine import Explicit
from schedproof.errors import ModelError
from schedproof.property import Eventually, Invariant, Lemma, Property, Reachable, Within, WorstCase
from tests.engines.handmade import Handmade, by_name, number, prop, rule, truth, values
from tests.engines.test_agreement import holder_waits, models, untold
from tests.loading import model_of, small

# ------------------------------------------------------------------------------------------------ bit-vectors
X, Y, P = z3.Int("x"), z3.Int("y"), z3.Bool("p")
RANGES = {"x": (-5, 9), "y": (0, 70)}
LEAVES: Any = st.sampled_from([0, 1]).map(lambda i: (X, Y)[i]) | st.integers(-40, 40).map(z3.IntVal)


def joined(inner: Any) -> Any:
    """Terms of two terms: by the number of an operation, so that nothing has to show a term."""
    def make(how: int, a: Any, b: Any, c: Any, divisor: int) -> Any:
        tests = (a < b, a <= c, a == b, z3.Not(a >= b), P)
        operations = (a + b, a - b, a * b, -a, z3.If(tests[divisor % 5], b, c), a / divisor, a % divisor,
                      a / z3.If(b < 1, z3.IntVal(1), b), a % z3.If(b < 1, z3.IntVal(3), b))
        return operations[how]

    return st.builds(make, st.integers(0, 8), inner, inner, inner, st.sampled_from([1, 2, 3, 7, -2, -3]))


@settings(max_examples=150, deadline=None)
@given(st.recursive(LEAVES, joined, max_leaves=6), st.integers(-5, 9), st.integers(0, 70), st.booleans())
def test_a_term_over_vectors_has_the_value_of_the_term(term, x, y, p):
    coded = bits.Bits(RANGES)
    found = coded.number(term)
    truth_value = (P, z3.BoolVal(p))
    wanted = z3.simplify(z3.substitute(term, (X, z3.IntVal(x)), (Y, z3.IntVal(y)), truth_value)).as_long()
    pairs = [(coded.constant(n), z3.BitVecVal(v, bits.width_of(*RANGES[n]))) for n, v in (("x", x), ("y", y))]
    assert z3.simplify(z3.substitute(found.vector, *pairs, truth_value)).as_signed_long() == wanted
    assert found.low <= wanted <= found.high
    test = coded.truth(term > 3)
    assert z3.is_true(z3.simplify(z3.substitute(test, *pairs, truth_value))) == (wanted > 3)


@pytest.mark.parametrize(("low", "high", "width"), [(0, 0, 1), (0, 1, 2), (-1, 0, 1), (-2, 1, 2), (-129, 127, 9),
                                                    (0, 255, 9)])
def test_the_width_is_the_least(low, high, width):
    assert bits.width_of(low, high) == width


def test_a_term_without_bounds_is_refused():
    with pytest.raises(bits.Unbounded):
        bits.Bits({"x": (0, None), "y": (0, 1)}).number(X + Y)


# ------------------------------------------------------------------------------------------ the same findings
@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(models())
def test_the_shortest_run_is_as_long_as_the_explicit_engine_finds_it(text):
    model = model_of(text)
    waiting = sys.modules[model.__module__].waiting
    instance = model.variant("v1")
    engine = Bmc(depth=7)
    for kind in (Invariant(waiting), Reachable(waiting)):
        asked = Property("p", None, "", kind)
        exact, found = Explicit(trace_maker=untold).find(instance, asked), engine.decide(instance, asked)
        length = None if exact.path is None else len(exact.path.stem)
        if exact.outcome == ("refuted" if isinstance(kind, Invariant) else "proved") and length <= 7:
            assert found.name == exact.outcome and found.counts.depth == length == len(found.trace.steps)
        elif exact.outcome != "vacuous":                  # an action is dead: bmc does not look for that
            assert found.name == "unknown" and "no run of up to 7 steps" in found.reason
    exact = Explicit(trace_maker=untold).find(instance, Property("p", None, "", WorstCase(waiting, "ms")))
    if not isinstance(exact.worst, int):
        return
    for bound in (exact.worst - 1, exact.worst):
        found = engine.decide(instance, Property("p", None, "", Within(bound, waiting, "ms")))
        assert found.name in ("unknown", "refuted") if bound < exact.worst else found.name == "unknown"
        if bound >= 0 and bound < exact.worst and len(exact.path.stem) <= 7:
            assert found.name == "refuted"


def runs_again(m):
    return not m.ready[m.task.a]


def test_a_wait_without_bound_is_found_by_going_round():
    """Two tasks; nothing makes the one that waits go on while the other runs."""
    instance = model_of("""
        class M(Model):
            task = Object("struct t", "a", "b")
            ready = Bool(per=task)
            turn = Range(0, 3)
            releases = {"v1": {}}

            @action(per=task)
            def wake(self, me):
                require(self.turn == 2 and not self.ready[me])
                self.ready[me] = True

            @action(cost={"ms": 1})
            def tick(self):
                self.turn = cmod(self.turn + 1, 4)
        """).variant("v1")
    asked = Property("p", None, "", WorstCase(runs_again, "ms"))
    assert decide(instance, asked, "explicit").worst_case == "unbounded"
    found = Bmc().decide(instance, asked)
    assert (found.name, found.worst_case, found.counts.depth) == ("refuted", "unbounded", 4)
    assert [s.cost for s in found.trace.cycle] == [1, 1, 1, 1] and all(s.waiting for s in found.trace.cycle)


# ------------------------------------------------------------------------------------------- by hand, small
def counter(top: int, cost: int = 1) -> Handmade:
    n = number("n", 0, top)
    return Handmade(by_name(n), ({"n": 0},), (
        rule("up", n.term < top, {"n": n.term + 1}, {"ms": cost}), rule("back", n.term == top, {"n": 0}, {"ms": cost})))


def untraced(instance: Any, kind: Any, depth: int = 12) -> Any:
    """The verdict, with labels for a trace, which a hand-made instance cannot have."""
    return Bmc(depth, trace_maker=labels).decide(instance, prop(kind))


def labels(instance: Any, asked: Any, initial: Any, stem: Any, cycle: Any, *rest: Any) -> Any:
    return [x.label for x in stem], [x.label for x in cycle]


def test_depth_and_trace_of_a_counter():
    n = z3.Int("n")
    found = untraced(counter(5), Invariant(n != 4))
    assert found.name == "refuted" and found.counts.depth == 4 and found.trace == (["up()"] * 4, [])
    assert untraced(counter(5), Invariant(n <= 5)).name == "unknown"
    assert untraced(counter(5), Reachable(n == 5)).name == "proved"
    assert "no run of up to 3 steps shows it" in untraced(counter(5), Reachable(n == 5), depth=3).reason


def test_bounded_waits_of_a_counter():
    n = z3.Int("n")
    waiting = z3.And(n >= 2, n < 5)                       # three steps start in it, of 2 ms each
    assert untraced(counter(5, 2), Within(6, waiting, "ms")).name == "unknown"
    found = untraced(counter(5, 2), Within(5, waiting, "ms"))
    assert found.name == "refuted" and found.counts.depth == 5 and found.worst_case is None
    everywhere = untraced(counter(5), WorstCase(n >= 0, "ms"))
    assert (everywhere.name, everywhere.worst_case, everywhere.trace[1]) == ("refuted", "unbounded",
                                                                            ["up()"] * 5 + ["back()"])
    free_of_charge = untraced(counter(5, 0), WorstCase(n >= 0, "ms"))
    assert free_of_charge.name == "unknown"


def pair(fair: str | None) -> Handmade:
    """A flag that goes up and down for ever, and one step to the goal that is possible only while it is up."""
    up, done = truth("up"), truth("done")
    return Handmade(by_name(up, done), ({"up": False, "done": False},), (
        rule("flip", z3.BoolVal(True), {"up": z3.Not(up.term)}, {"ms": 1}),
        rule("go", z3.And(up.term, z3.Not(done.term)), {"done": True}, {"ms": 1}, fair=fair)))


@pytest.mark.parametrize(("fair", "name"), [(None, "refuted"), ("weak", "refuted"), ("strong", "unknown")])
def test_fairness_decides_whether_a_goal_is_reached(fair, name):
    """``go`` is enabled again and again but never for good: weak fairness does not ask for it, strong fairness does."""
    done = z3.Bool("done")
    found = untraced(pair(fair), Eventually(done))
    assert found.name == name
    if name == "refuted":
        assert set(found.trace[1]) == {"flip()"}


def test_weak_fairness_asks_for_what_stays_enabled():
    ticks, done = truth("ticks"), truth("done")
    moves = (rule("tick", z3.BoolVal(True), {"ticks": z3.Not(ticks.term)}, {"ms": 1}),
             rule("go", z3.Not(done.term), {"done": True}, {"ms": 1}, fair="weak"))
    instance = Handmade(by_name(ticks, done), ({"ticks": False, "done": False},), moves)
    assert untraced(instance, Eventually(done.term)).name == "unknown"
    after = untraced(instance, Eventually(z3.Not(done.term), after=done.term))
    assert after.name == "refuted" and "go()" in after.trace[0]


def test_time_has_to_pass_on_a_cycle():
    n, done = number("n", 0, 1), truth("done")
    free = rule("spin", z3.BoolVal(True), {"n": 1 - n.term})
    paid = rule("tick", n.term == 0, {"done": True}, {"ms": 1})
    instance = Handmade(by_name(n, done), ({"n": 0, "done": False},), (free, paid))
    assert untraced(instance, Eventually(done.term)).name == "unknown"      # only cycles that cost nothing avoid it
    without = Handmade(by_name(n, done), ({"n": 0, "done": False},), (free,))
    assert untraced(without, Eventually(done.term)).name == "refuted"       # no costs at all: every run counts


def test_unbounded_numbers_are_searched_over_the_integers():
    from schedproof.model.domains import Int
    from tests.engines.handmade import of

    n = of("n", Int())
    moves = (rule("double", z3.BoolVal(True), {"n": n.term * 2 + 1}),)
    instance = Handmade(by_name(n), ({"n": 1},), moves)
    found = untraced(instance, Invariant(n.term != 2 ** 9 - 1))
    assert found.name == "refuted" and found.counts.depth == 8


def test_faults_of_the_model_are_errors_with_their_place():
    n = number("n", 0, 3)
    leaves = Handmade(by_name(n), ({"n": 0},), (rule("up", z3.BoolVal(True), {"n": n.term + 1}),))
    with pytest.raises(ModelError, match=r"handmade.py:7: up\(\) sets n to 4, which is not in its domain"):
        untraced(leaves, Invariant(z3.BoolVal(True)))
    sparse = values("v", 0, 2, 4)
    gap = Handmade(by_name(sparse), ({"v": 0},), (rule("up", z3.BoolVal(True), {"v": sparse.term + 1}),))
    with pytest.raises(ModelError, match="sets v to 1"):
        untraced(gap, Invariant(z3.BoolVal(True)))
    with pytest.raises(ModelError, match="no initial state"):
        untraced(Handmade(by_name(n), (), ()), Invariant(z3.BoolVal(True)))


def test_a_run_that_rests_on_undeclared_values_is_no_finding():
    n = number("n", 0, 9)
    odd = rule("odd", z3.BoolVal(True), {"n": 5}, free=("x of struct y",))
    step = rule("up", n.term < 9, {"n": n.term + 1})
    instance = Handmade(by_name(n), ({"n": 0},), (odd, step))
    found = untraced(instance, Invariant(n.term != 5), depth=3)
    assert found.name == "unknown" and "undeclared values: x of struct y" in found.reason
    assert untraced(instance, Invariant(n.term != 2), depth=3).name == "refuted"       # there is one without them


def test_what_it_says_when_it_has_to_stop():
    found = Bmc().decide(small("spin_handler").SpinHandler.variant("v6.1"),
                         Property("p", None, "", Invariant(holder_waits)), budget=1e-9)
    assert found.name == "unknown" and "the budget of 1e-09 s is spent" in found.reason
    assert "does not look" in (Bmc().applies(None, prop(Lemma(lambda m: None))) or "")
