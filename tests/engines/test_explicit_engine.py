# SPDX-License-Identifier: GPL-2.0-only
"""What the explicit engine answers: each verdict, each reason, each error of a model."""

from __future__ import annotations

from dataclasses import replace

import pytest
import z3

from schedproof.engines.explicit.engine import Explicit
from schedproof.errors import ModelError
from schedproof.model.domains import Enum, Int
from schedproof.property import Invariant, Lemma, Reachable, Within, WorstCase
from schedproof.verdict import Proved, Refuted, Unknown, Vacuous
from tests.engines.handmade import (
    PLACE,
    Handmade,
    by_name,
    end,
    graph,
    number,
    of,
    prop,
    pv_queue,
    rule,
    truth,
    value_of,
    values,
    walk,
)


def told(instance, property, initial, stem, cycle, verdict, unit, total, waiting):
    """Stands in for the maker of traces: gives back what it was asked to tell."""
    return {"initial": initial, "stem": [t.label for t in stem], "cycle": [t.label for t in cycle],
            "verdict": verdict, "unit": unit, "total": total, "waiting": waiting}


ENGINE = Explicit(trace_maker=told)
YES = z3.BoolVal(True)


def line(length: int, final: bool = True) -> Handmade:
    """0, 1, ..., length, and then nothing more."""
    at = number("at", 0, length)
    return Handmade(by_name(at), ({"at": 0},), (rule("go", at.term < length, {"at": at.term + 1}),),
                    at.term == length if final else None)


def at(instance: Handmade, place: int) -> z3.BoolRef:
    return instance.variables["at"].term == place


# ----------------------------------------------------------------------------------------------------- verdicts
def test_an_invariant_that_holds_is_proved_with_counts():
    verdict = ENGINE.decide(line(5), prop(Invariant(line(5).variables["at"].term <= 5)))
    assert isinstance(verdict, Proved)
    assert (verdict.counts.states, verdict.counts.transitions, verdict.counts.depth) == (6, 5, 5)
    assert (verdict.engine, verdict.instance, verdict.trace) == ("explicit", "handmade", None)


def test_a_broken_invariant_is_refuted_by_a_shortest_run():
    instance = graph([(0, 1, 0), (1, 2, 0), (2, 3, 0), (0, 4, 0), (4, 3, 0), (3, 0, 0)], 5)
    formula = z3.Not(at(instance, 3))
    verdict = ENGINE.decide(instance, prop(Invariant(formula)))
    assert isinstance(verdict, Refuted)
    assert verdict.trace["stem"] == ["edge3()", "edge4()"] and verdict.trace["verdict"] == "refuted"
    path = ENGINE.find(instance, prop(Invariant(formula))).path
    assert end(instance, path) == {"at": 3}


def test_an_invariant_broken_at_once_has_an_empty_run():
    verdict = ENGINE.decide(line(2), prop(Invariant(z3.Not(at(line(2), 0)))))
    assert verdict.trace["stem"] == [] and verdict.trace["initial"] == {"at": 0}


def test_the_premise_has_to_hold_somewhere():
    instance = line(3)
    assert isinstance(ENGINE.decide(instance, prop(Invariant(YES, premise=at(instance, 3)))), Proved)
    verdict = ENGINE.decide(instance, prop(Invariant(YES, premise=at(instance, 4))))
    assert isinstance(verdict, Vacuous) and "premise" in verdict.reason
    broken = ENGINE.decide(instance, prop(Invariant(z3.Not(at(instance, 2)), premise=at(instance, 4))))
    assert isinstance(broken, Refuted)


def test_what_is_reachable_is_proved_with_a_witness_and_what_is_not_refuted_without():
    instance = graph([(0, 1, 0), (1, 0, 0), (2, 3, 0)], 4)
    verdict = ENGINE.decide(instance, prop(Reachable(at(instance, 1))))
    assert isinstance(verdict, Proved) and verdict.trace["stem"] == ["edge0()"]
    verdict = ENGINE.decide(instance, prop(Reachable(at(instance, 3))))
    assert isinstance(verdict, Refuted) and verdict.trace is None


WAIT = graph([(0, 1, 1), (1, 2, 3), (2, 0, 4)], 3)


@pytest.mark.parametrize("bound, kind", [(7, Proved), (8, Proved), (6, Refuted)])
def test_within_a_bound(bound, kind):
    waiting = z3.Not(at(WAIT, 0))
    verdict = ENGINE.decide(WAIT, prop(Within(bound, waiting, "ms")))
    assert type(verdict) is kind
    assert (verdict.worst_case, verdict.unit) == (7, "ms")
    assert verdict.trace["stem"] == ["edge0()", "edge1()", "edge2()"]
    assert (verdict.trace["total"], verdict.trace["unit"], verdict.trace["waiting"]) == (7, "ms", waiting)


def test_the_bound_may_depend_on_the_parameters():
    instance = replace(WAIT, params={"quota": 3})
    kind = Within(lambda p: p.quota * 2, z3.Not(at(WAIT, 0)), "ms")
    verdict = ENGINE.decide(instance, prop(kind))
    assert isinstance(verdict, Refuted) and verdict.instance == "handmade quota=3"


def test_an_unbounded_wait_is_refuted_with_a_cycle():
    instance = graph([(0, 1, 0), (1, 2, 1), (2, 1, 0), (2, 0, 0)], 3)
    for kind in (Within(1000, z3.Not(at(instance, 0)), "ms"), WorstCase(z3.Not(at(instance, 0)), "ms")):
        verdict = ENGINE.decide(instance, prop(kind))
        assert isinstance(verdict, Refuted)
        assert (verdict.worst_case, verdict.starved) == ("unbounded", True)
        assert verdict.trace["stem"] == ["edge0()"] and verdict.trace["cycle"] == ["edge1()", "edge2()"]
        assert verdict.trace["total"] == 1


def test_a_wait_that_nobody_enters_is_vacuous():
    verdict = ENGINE.decide(WAIT, prop(Within(7, z3.BoolVal(False), "ms")))
    assert isinstance(verdict, Vacuous) and verdict.reason == "no state waits"


def test_a_wait_that_never_ends_and_costs_nothing_is_vacuous_and_one_that_costs_is_refuted():
    ends = graph([(0, 1, 5), (1, 2, 0), (2, 2, 0)], 3)
    waiting = z3.Or(at(ends, 1), at(ends, 2))
    verdict = ENGINE.decide(ends, prop(Within(7, waiting, "ms")))
    assert isinstance(verdict, Vacuous) and "no step ever ends it" in verdict.reason
    grows = graph([(0, 1, 5), (1, 2, 0), (2, 2, 1)], 3)
    assert isinstance(ENGINE.decide(grows, prop(Within(7, waiting, "ms"))), Refuted)


def test_a_cost_that_no_action_has_is_vacuous():
    verdict = ENGINE.decide(WAIT, prop(Within(7, YES, "yields")))
    assert isinstance(verdict, Vacuous) and "no action has the cost yields" in verdict.reason


# ------------------------------------------------------------------------------------------------- dead actions
def test_a_dead_action_makes_a_proof_vacuous_unless_it_may_be_dead():
    instance = line(3)
    dead = rule("never", at(instance, 2) & at(instance, 3), {})
    half = rule("go", z3.BoolVal(False), {}, args=("b",))          # go(a) is alive: the action is
    instance = replace(instance, transitions=(*instance.transitions, dead, half))
    verdict = ENGINE.decide(instance, prop(Invariant(YES)))
    assert isinstance(verdict, Vacuous) and verdict.reason == "no reachable state enables never"
    allowed = replace(instance, dead={"never": "this release has no such path"})
    assert isinstance(ENGINE.decide(allowed, prop(Invariant(YES))), Proved)
    assert isinstance(ENGINE.decide(instance, prop(Invariant(z3.Not(at(instance, 3))))), Refuted)
    assert isinstance(ENGINE.decide(instance, prop(Reachable(z3.BoolVal(False)))), Refuted)


# --------------------------------------------------------------------------------------------- errors of a model
def test_a_state_where_nothing_can_happen_is_an_error_unless_final():
    with pytest.raises(ModelError, match=r"nothing can happen in the reachable state at=3 .*@final") as caught:
        ENGINE.decide(line(3, final=False), prop(Invariant(YES)))
    assert caught.value.trace["stem"] == ["go()"] * 3 and caught.value.trace["verdict"] == "error"
    assert isinstance(ENGINE.decide(line(3), prop(Invariant(YES))), Proved)


def test_a_violation_met_before_the_error_is_a_refutation():
    assert isinstance(ENGINE.decide(line(3, final=False), prop(Invariant(z3.Not(at(line(3), 2))))), Refuted)


def test_a_state_from_which_time_cannot_pass_is_an_error_unless_final():
    edges = [(0, 1, 1), (1, 0, 0), (1, 2, 0), (2, 3, 0), (3, 2, 0)]
    for kind in (Invariant(YES), WorstCase(at(graph(edges, 4), 0), "ms")):
        with pytest.raises(ModelError, match="time cannot pass from the reachable state at=2") as caught:
            ENGINE.decide(graph(edges, 4, final=False), prop(kind))
        assert caught.value.trace["stem"] == ["edge0()", "edge2()"]
    free = replace(graph(edges, 4), final=at(graph(edges, 4), 3))      # 2 leads to a final state
    assert isinstance(ENGINE.decide(free, prop(Invariant(YES))), Proved)
    ways_out = graph([*edges, (3, 0, 0)], 4, final=False)
    assert isinstance(ENGINE.decide(ways_out, prop(Invariant(YES))), Proved)


def test_without_costs_nobody_asks_for_time():
    assert isinstance(ENGINE.decide(graph([(0, 1, 0), (1, 0, 0)], 2, final=False), prop(Invariant(YES))), Proved)


STATES = Enum("RUN", "SLEEP", "DEAD")
STATES.code_of = {"RUN": 5, "SLEEP": 9, "DEAD": 7}


@pytest.mark.parametrize("variable, start, value, message", [
    (number("n", 0, 3), 0, lambda n: n + 2, r"n to 4, which is not in its domain 0\.\.3"),
    (number("n", -2, 3), 1, lambda n: n * -3, r"n to -3, which is not in its domain -2\.\.3"),
    (values("n", 2, 1024), 2, lambda n: n * 32 + 960, r"n to 33728, which is not in its domain \{v2, v1024\}"),
    (of("n", STATES), 5, lambda n: z3.If(n == 5, 9, 8), r"n to 8, which is not in its domain \{RUN, SLEEP, DEAD\}"),
])
def test_an_update_that_leaves_its_domain_is_a_located_error(variable, start, value, message):
    other = truth("other")
    instance = Handmade(by_name(variable, other), ({variable.name: start, "other": False},), (
        rule("bump", True, {"other": z3.Not(other.term), variable.name: value(variable.term)}, args=("gA",)),))
    with pytest.raises(ModelError, match=r"models/handmade.py:7: bump\(gA\) sets " + message) as caught:
        ENGINE.decide(instance, prop(Invariant(YES)))
    assert (caught.value.file, caught.value.line) == (PLACE.file, PLACE.line)
    assert "widen the domain of n" in caught.value.hint
    before = [] if start == 1 else ["bump(gA)"]              # the run up to the state, without the wrong step
    assert caught.value.trace["stem"] == before


def test_a_fault_that_can_be_reached_is_a_located_error():
    instance = line(3)
    fault = replace(rule("go", at(instance, 2), {}, args=("gA",)), fault="an index is NULL")
    instance = replace(instance, transitions=(*instance.transitions, fault))
    with pytest.raises(ModelError, match=r"handmade.py:7: go\(gA\): an index is NULL \(met in .* at=2\)") as caught:
        ENGINE.decide(instance, prop(Invariant(YES)))
    assert caught.value.trace["stem"] == ["go()", "go()"]
    never = replace(fault, guard=at(instance, 2) & at(instance, 3))
    fine = replace(instance, transitions=(*line(3).transitions, never))
    assert isinstance(ENGINE.decide(fine, prop(Invariant(YES))), Proved)


def test_costs_must_not_be_negative():
    n = number("n", 0, 3)
    instance = Handmade(by_name(n), ({"n": 0},), (
        rule("go", n.term < 3, {"n": n.term + 1}, {"ms": 1 - n.term}), rule("stay", True, {}, {"yields": 1})))
    with pytest.raises(ModelError, match=r"go\(\) costs -1 ms") as caught:
        ENGINE.decide(instance, prop(Invariant(YES)))
    assert caught.value.trace["stem"] == ["go()", "go()"]


def test_wrong_initial_states_are_errors():
    with pytest.raises(ModelError, match="the initial value of at is 9, which is not in its domain"):
        ENGINE.decide(replace(line(3), initial=({"at": 9},)), prop(Invariant(YES)))
    with pytest.raises(ModelError, match="the initial value of at is missing"):
        ENGINE.decide(replace(line(3), initial=({},)), prop(Invariant(YES)))
    with pytest.raises(ModelError, match="no initial state"):
        ENGINE.decide(replace(line(3), initial=()), prop(Invariant(YES)))


# ----------------------------------------------------------------------------------------------- free transitions
def with_free(edges, free, count=4) -> Handmade:
    """A graph some of whose edges rest on the value of an ignored field."""
    instance = graph(edges, count)
    return replace(instance, transitions=tuple(replace(t, free=("se->slice",)) if i in free else t
                                               for i, t in enumerate(instance.transitions)))


def test_a_refutation_that_rests_on_free_values_is_unknown():
    instance = with_free([(0, 1, 0), (1, 0, 0)], {0})
    verdict = ENGINE.decide(instance, prop(Invariant(z3.Not(at(instance, 1)))))
    assert isinstance(verdict, Unknown) and "undeclared values: se->slice" in verdict.reason


def test_a_refutation_that_is_there_without_free_values_is_earned():
    instance = with_free([(0, 1, 0), (0, 2, 0), (2, 1, 0), (1, 0, 0)], {0})
    verdict = ENGINE.decide(instance, prop(Invariant(z3.Not(at(instance, 1)))))
    assert isinstance(verdict, Refuted) and verdict.trace["stem"] == ["edge1()", "edge2()"]


def test_free_values_off_the_run_do_not_matter():
    instance = with_free([(0, 1, 0), (1, 0, 0), (1, 2, 0), (2, 1, 0)], {2})
    assert isinstance(ENGINE.decide(instance, prop(Invariant(z3.Not(at(instance, 1))))), Refuted)


def test_a_proof_may_go_through_free_values():
    instance = with_free([(0, 1, 0), (1, 0, 0)], {0})
    assert isinstance(ENGINE.decide(instance, prop(Invariant(z3.Not(at(instance, 2))))), Proved)


def test_a_witness_must_not_rest_on_free_values():
    instance = with_free([(0, 1, 0), (1, 0, 0)], {0})
    verdict = ENGINE.decide(instance, prop(Reachable(at(instance, 1))))
    assert isinstance(verdict, Unknown) and verdict.reason.startswith("proved only by a run that rests on")


def test_removing_free_transitions_is_no_error_of_the_model():
    """Without them state 1 is stuck, and no time passes there: that is not the model's fault."""
    instance = with_free([(0, 1, 0), (1, 2, 1), (2, 0, 0), (0, 3, 0), (3, 0, 0)], {1})
    instance = replace(instance, final=None)
    verdict = ENGINE.decide(instance, prop(Invariant(z3.Not(at(instance, 2)))))
    assert isinstance(verdict, Unknown)


def test_worst_cases_and_free_values():
    edges = [(0, 1, 0), (1, 2, 1), (1, 2, 9), (2, 0, 1)]
    instance = with_free(edges, {2})
    waiting = z3.Not(at(instance, 0))
    assert isinstance(ENGINE.decide(instance, prop(Within(10, waiting, "ms"))), Proved)
    unknown = ENGINE.decide(instance, prop(Within(5, waiting, "ms")))
    assert isinstance(unknown, Unknown) and "se->slice" in unknown.reason
    earned = ENGINE.decide(instance, prop(Within(1, waiting, "ms")))
    assert isinstance(earned, Refuted) and earned.worst_case == 2


# --------------------------------------------------------------------------------------------------- not decided
def test_what_the_engine_does_not_apply_to():
    assert "lemma" in ENGINE.applies(line(3), prop(Lemma(YES)))
    unbounded = replace(line(3), variables=by_name(of("at", Int())))
    assert ENGINE.applies(unbounded, prop(Invariant(YES))) == "at has no bounds"
    assert ENGINE.applies(line(3), prop(Invariant(YES))) is None


def test_more_than_16_words_are_unknown():
    many = by_name(*(truth(f"b{i}") for i in range(16 * 63 + 1)))
    instance = Handmade(many, (dict.fromkeys(many, False),), tuple(
        rule(f"flip{n}", True, {n: z3.Not(many[n].term)}) for n in many))
    verdict = ENGINE.decide(instance, prop(Invariant(YES)))
    assert isinstance(verdict, Unknown) and "1009 bits, more than 16 words of 63" in verdict.reason
    assert "1009 bits" in ENGINE.applies(instance, prop(Invariant(YES)))


def test_a_value_that_may_not_fit_64_bits_is_unknown():
    n = number("n", 0, 1 << 40)
    instance = Handmade(by_name(n), ({"n": 0},), (rule("a", n.term * n.term < 9, {"n": 1}),))
    verdict = ENGINE.decide(instance, prop(Invariant(YES)))
    assert isinstance(verdict, Unknown) and "may not fit 64 bits" in verdict.reason


# ------------------------------------------------------------------------------------------------ a whole example
def test_the_run_of_a_larger_instance_is_one_by_z3():
    instance = pv_queue(3)
    loc = [instance.variables[f"loc{i}"].term for i in range(3)]
    two_halted = z3.And(loc[1] == 2, loc[2] == 2)
    found = ENGINE.find(instance, prop(Invariant(z3.Not(two_halted))))
    assert found.outcome == "refuted"
    assert value_of(two_halted, instance.variables, end(instance, found.path)) is True
    before = [s for s, _ in walk(instance, found.path)]
    assert not any(value_of(two_halted, instance.variables, s) for s in before)
