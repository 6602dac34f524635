# SPDX-License-Identifier: GPL-2.0-only
"""The lemma engine: valid claims, counter-models, claims about nothing, and methods run on all inputs at once."""

from __future__ import annotations

from typing import Any

import pytest
import z3

from schedproof.engines import decide
from schedproof.engines.lemma import ByLemma
from schedproof.errors import InputError, ModelError
from schedproof.model.function import all_inputs
from schedproof.property import Claim, Lemma, Property
from schedproof.replay import replay
from schedproof.results import result_of
from schedproof.trace import from_json
from tests.loading import model_of

MODEL = """
    class M(Model):
        task = Object("struct task_struct", "a", "b")
        flips = Range(0, 3, per=task, init=0)
        owner = Pointer(task, init="a")
        most = Param(3, 1, 9, "unused")
        releases = {"v1": {}}

        def wide(self, factor):
            low = min(self.flips[self.task.a], self.flips[self.task.b])
            high = max(self.flips[self.task.a], self.flips[self.task.b])
            if low < factor or high < low * factor:
                return 0
            return 1

        @action
        def wake(self):
            self.flips[self.task.a] = min(self.flips[self.task.a] + 1, 3)
            self.owner = choose(self.task)
"""
X, Y = z3.Int("x"), z3.Int("y")


def decided(claim: Claim, rlimit: int = 100_000_000) -> tuple[Any, Any, Property]:
    instance = model_of(MODEL).variant("v1")
    prop = Property("claimed", type(instance), "What is claimed.", Lemma(lambda _: claim))
    return ByLemma(rlimit).decide(instance, prop), instance, prop


def test_a_valid_claim_is_proved_for_any_instance_where_it_says_so():
    claim = Claim(X * X >= 0, {"x": X})
    assert decided(claim)[0].name == "proved"
    assert decided(claim)[0].instance == "v1 most=3"
    assert decided(Claim(X * X >= 0, {"x": X}, any_instance=True))[0].instance == "any"


def test_a_counter_model_tells_the_inputs_and_replays():
    verdict, instance, prop = decided(Claim(X + Y != 7, {"x": X, "y": Y}, (X >= 5, Y >= 2)))
    assert verdict.name == "refuted" and verdict.trace.initial == {"x": "5", "y": "2"}        # 5 + 2 is the only sum
    again = replay(from_json(verdict.trace.to_json(), "here"), instance, prop)
    assert again.name == "refuted" and again.engine == "replay"
    assert result_of("m", prop, instance, verdict, "refuted")["trace"]["initial"]["x"] == "5"


@pytest.mark.parametrize(("inputs", "why"), [
    ({"x": "6", "y": "2"}, "do not break"), ({"x": "4", "y": "3"}, "do not satisfy"), ({"z": "1"}, "is no input"),
    ({"x": "many", "y": "2"}, "is no value of x")])
def test_an_edited_counter_model_is_told(inputs, why):
    verdict, instance, prop = decided(Claim(X + Y != 7, {"x": X, "y": Y}, (X >= 5, Y >= 2)))
    edited = from_json({**verdict.trace.to_json(), "initial": inputs}, "here")
    with pytest.raises(InputError, match=why):
        replay(edited, instance, prop)


def test_what_no_input_satisfies_is_vacuous():
    verdict, _, _ = decided(Claim(X == 0, {"x": X}, (X > 1, X < 2)))
    assert verdict.name == "vacuous"


def test_the_first_obligation_that_fails_is_told():
    verdict, instance, prop = decided(Claim({"base": X * 0 == 0, "step": X + 1 > X, "end": X < 3, "more": X < 2},
                                            {"x": X}))
    assert verdict.name == "refuted" and verdict.reason == "the obligation end fails" and verdict.counts.depth == 2
    assert replay(verdict.trace, instance, prop).reason == "the obligation end fails"
    assert decided(Claim({"base": X * 0 == 0, "step": X + 1 > X}, {"x": X}))[0].name == "proved"


def test_what_z3_gives_up_is_unknown():
    z = z3.Int("z")
    hard = z3.Implies(z3.And(X > 0, Y > 0, z > 0), z * z * z != X * X * X + Y * Y * Y)
    verdict, _, _ = decided(Claim(hard, {"x": X, "y": Y, "z": z}), rlimit=10_000)
    assert verdict.name == "unknown" and "gave up" in verdict.reason


@pytest.mark.parametrize(("claim", "why"), [
    (Claim(X > Y, {"x": X}), "y is used and is no input"), (Claim({}, {}), "no obligation"), (X > 0, "not a Claim")])
def test_what_is_no_closed_claim_is_a_fault_of_the_model(claim, why):
    with pytest.raises(ModelError, match=why):
        decided(claim)


# --------------------------------------------------------------------------------- methods, on all inputs at once
def wide_needs(low: int, high: int) -> Property:
    """That a wakeup is wide only if the flips are at least so many on both sides, and on the greater side."""

    def claim(instance: Any) -> Claim:
        factor = z3.Int("factor")
        run = all_inputs(instance, "wide", [factor], {"flips": (0, 1 << 31)})
        a, b = run.before["flips[a]"], run.before["flips[b]"]
        assert run.value is not None
        enough = z3.And(z3.If(a < b, a, b) >= low, z3.If(a < b, b, a) >= high)
        return Claim(z3.Implies(run.value == 1, enough), run.inputs, (*run.assumptions, factor == 4))

    return Property("wide_needs", model_of(MODEL), "Wide needs many flips.", Lemma(claim))


def test_a_method_for_all_inputs():
    instance = model_of(MODEL).variant("v1")
    assert decide(instance, wide_needs(4, 16)).name == "proved"             # 4 and 4 * 4: worked out by hand
    assert decide(instance, wide_needs(4, 17)).name == "refuted"
    found = decide(instance, wide_needs(5, 16))
    assert found.name == "refuted" and found.engine == "lemma"
    shown = found.trace.initial
    assert min(int(shown["flips[a]"]), int(shown["flips[b]"])) == 4 and "factor" in shown


def test_an_action_for_all_inputs():
    """What it leaves behind, the adversary's choice included."""
    instance = model_of(MODEL).variant("v1")
    run = all_inputs(instance, "wake")
    assert run.value is None
    before, after = run.before["flips[a]"], run.after["flips[a]"]
    owner = run.after["owner"]

    def answer(formula: z3.BoolRef) -> str:
        prop = Property("p", model_of(MODEL), "", Lemma(lambda _: Claim(formula, run.inputs, run.assumptions)))
        return decide(instance, prop).name

    assert answer(z3.And(after >= before, after <= 3)) == "proved"
    assert answer(run.after["flips[b]"] == run.before["flips[b]"]) == "proved"
    assert answer(z3.Or(owner == 0, owner == 1)) == "proved"
    assert answer(owner == 0) == "refuted"


def test_unknown_names_are_told():
    instance = model_of(MODEL).variant("v1")
    with pytest.raises(InputError, match="no method sleep"):
        all_inputs(instance, "sleep")
    with pytest.raises(InputError, match="no number height"):
        all_inputs(instance, "wake", ranges={"height": (0, 1)})
    with pytest.raises(InputError, match="no object c"):
        all_inputs(instance, "wide", ["c"])
