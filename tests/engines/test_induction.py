# SPDX-License-Identifier: GPL-2.0-only
"""The induction engine: what it proves is so, by the explicit engine; what it cannot prove stays unknown."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import z3
from hypothesis import HealthCheck, given, settings

from schedproof.engines.explicit.engine import Explicit
from schedproof.engines.induction import Induction
from schedproof.errors import ModelError
from schedproof.model.domains import Int
from schedproof.property import Invariant, Property, Reachable, Within, WorstCase
from tests.engines.handmade import Handmade, by_name, number, of, prop, rule, truth
from tests.engines.test_agreement import models, untold
from tests.engines.test_bmc import counter, labels
from tests.loading import model_of

N = z3.Int("n")
ALWAYS = z3.BoolVal(True)


def decided(instance: Any, kind: Any, depth: int = 8, lemmas: tuple[Any, ...] = ()) -> Any:
    return Induction(depth, lemmas=lemmas, trace_maker=labels).decide(instance, prop(kind))


def even_numbers() -> Handmade:
    n = of("n", Int())
    return Handmade(by_name(n), ({"n": 0},), (rule("up", ALWAYS, {"n": n.term + 2}),))


def test_an_invariant_of_unbounded_numbers():
    assert decided(even_numbers(), Invariant(N % 2 == 0)).name == "proved"
    assert decided(even_numbers(), Invariant(N >= 0)).name == "proved"


def test_a_lemma_makes_it_inductive():
    without = decided(even_numbers(), Invariant(N != 7))
    assert without.name == "unknown" and "not k-inductive for any k up to 8" in without.reason
    found = Induction(8, lemmas=(lambda: None,))
    instance = even_numbers()
    instance.predicate = lambda f: f if isinstance(f, z3.BoolRef) else N % 2 == 0
    assert found.decide(instance, prop(Invariant(N != 7))).name == "proved"


def test_a_lemma_is_not_taken_on_trust():
    def wrong() -> None:
        """Stands for a formula that does not hold."""

    instance = even_numbers()
    instance.predicate = lambda f: f if isinstance(f, z3.BoolRef) else N < 3
    found = Induction(3, lemmas=(wrong,)).decide(instance, prop(Invariant(N != 7)))
    assert found.name == "unknown"


def test_a_wait_is_bounded_by_a_clock():
    waiting = z3.And(N >= 2, N < 5)
    assert decided(counter(5, 2), Within(6, waiting, "ms")).name == "proved"
    found = Induction(8).decide(counter(5, 2), prop(Within(6, waiting, "ms")))
    assert found.counts.depth <= 5


def test_states_that_differ_in_the_clock_only_are_two():
    """A wait that goes round: a path on which no two states are equal but for the clock would miss it."""
    n = number("n", 0, 1)
    instance = Handmade(by_name(n), ({"n": 0},), (
        rule("round", ALWAYS, {"n": 1 - n.term}, {"ms": 1}), rule("stay", ALWAYS, {}, {"ms": 1})))
    assert decided(instance, Within(6, n.term >= 0, "ms")).name == "refuted"


@pytest.mark.parametrize("bound", [3, 5])
def test_a_bound_that_is_too_small_is_refuted_on_the_way(bound):
    found = decided(counter(5, 2), Within(bound, z3.And(N >= 2, N < 5), "ms"))
    assert found.name == "refuted" and found.engine == "bmc" and found.trace[0][-1] == "up()"


def test_a_fault_deep_in_the_model_is_no_proof():
    n, odd = number("n", 0, 20), truth("odd")
    moves = (rule("up", n.term < 20, {"n": n.term + 1}), rule("end", n.term == 20, {"n": n.term + 1}))
    instance = Handmade(by_name(n, odd), ({"n": 0, "odd": False},), moves)
    found = Induction(4).decide(instance, prop(Invariant(z3.Not(odd.term))))
    assert found.name == "unknown"                           # a state from which a step leaves its domain is not good
    with pytest.raises(ModelError, match=r"end\(\) sets n to 21"):
        Induction(22).decide(instance, prop(Invariant(z3.Not(odd.term))))


def test_a_proof_has_to_say_something():
    n = number("n", 0, 3)
    move, never = rule("up", n.term < 3, {"n": n.term + 1}), rule("never", n.term > 3, {"n": 0})
    stay = rule("stay", n.term == 3, {})
    idle = Handmade(by_name(n), ({"n": 0},), (move, stay, never))
    found = decided(idle, Invariant(n.term <= 3))
    assert found.name == "unknown" and "never happens" in found.reason
    declared = Handmade(by_name(n), ({"n": 0},), (move, stay, never), dead={"never": "by design"})
    assert decided(declared, Invariant(n.term <= 3)).name == "proved"
    premise = decided(declared, Invariant(n.term <= 3, premise=n.term > 3))
    assert premise.name == "unknown" and "the premise holds" in premise.reason
    assert decided(declared, Invariant(n.term <= 3, premise=n.term == 3)).name == "proved"
    endless = decided(declared, Within(2, n.term > 3, "ms"))
    assert endless.name == "unknown" and "anybody waits" in endless.reason


def test_kinds_and_budget():
    assert "not properties of the kind worst_case" in (Induction().applies(None, prop(WorstCase(ALWAYS, "ms"))) or "")
    assert Induction().applies(None, prop(Reachable(ALWAYS))) is not None
    found = Induction().decide(even_numbers(), prop(Invariant(N != 7)), budget=1e-9)
    assert found.name == "unknown"


@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(models())
def test_what_it_proves_is_so(text):
    model = model_of(text)
    waiting = sys.modules[model.__module__].waiting
    instance = model.variant("v1")
    worst = Explicit(trace_maker=untold).find(instance, Property("p", None, "", WorstCase(waiting, "ms"))).worst
    kinds: list[Any] = [Invariant(waiting), Invariant(bounded)]
    if isinstance(worst, int):
        kinds += [Within(worst, waiting, "ms"), Within(max(0, worst - 1), waiting, "ms")]
    for kind in kinds:
        asked = Property("p", None, "", kind)
        exact = Explicit(trace_maker=untold).find(instance, asked)
        found = Induction(4).decide(instance, asked)
        assert found.name in ("unknown", exact.outcome), (kind, exact, found)


def bounded(m):
    return m.n <= 2
