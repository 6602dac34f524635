# SPDX-License-Identifier: GPL-2.0-only
"""The expectation engine: exact values of Markov chains, against values that are known."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedproof.engines import decide
from schedproof.engines.expectation import chain_of, expected_value
from schedproof.errors import InputError, ModelError
from schedproof.property import Chain, Expectation, Property
from schedproof.replay import replay
from schedproof.results import result_of
from schedproof.trace import from_json
from tests.loading import model_of

HALF = Fraction(1, 2)
MODEL = """
    class M(Model):
        at = Range(0, 8, init=1)
        top = Param(4, 2, 8, "where it ends")
        releases = {"v1": {}}

        @action
        def up(self):
            require(self.at > 0 and self.at < self.top)
            self.at += 1

        @action
        def down(self):
            require(self.at > 0 and self.at < self.top)
            self.at -= 1

        @final
        def done(self):
            return self.at == 0 or self.at == self.top
"""


def decided(value: Any, of: Any) -> tuple[Any, Any, Property]:
    instance = model_of(MODEL).variant("v1")
    prop = Property("average", type(instance), "The average.", Expectation(value, lambda _: of))
    return decide(instance, prop), instance, prop


def test_a_single_step():
    die = {n: (Fraction(1, 6), n) for n in range(1, 7)}
    found, instance, prop = decided(Fraction(7, 2), die)
    assert found.name == "proved" and found.value == Fraction(7, 2)
    assert result_of("m", prop, instance, found, "proved")["value"] == "7/2"


def test_a_wrong_value_is_told_and_replays():
    found, instance, prop = decided(3, {n: (Fraction(1, 6), n) for n in range(1, 7)})
    assert found.name == "refuted" and found.reason == "the value is 7/2, not 3"
    assert replay(from_json(found.trace.to_json(), "here"), instance, prop).name == "refuted"
    edited = from_json({**found.trace.to_json(), "initial": {"value": "4", "declared": "3"}}, "here")
    with pytest.raises(InputError, match="the value is 7/2"):
        replay(edited, instance, prop)


def test_throws_until_the_first_head():
    """A geometric distribution: 1/p throws."""
    p = Fraction(1, 6)
    chain = Chain({"throw": Fraction(1)}, {"throw": {"throw": 1 - p, "head": p}}, {"throw": 1})
    assert expected_value(chain) == 6


@pytest.mark.parametrize("coupons", [1, 2, 5, 12])
def test_the_collector_of_coupons(coupons):
    """n times the sum of 1/k."""
    steps = {k: {k: Fraction(k, coupons), k + 1: 1 - Fraction(k, coupons)} for k in range(coupons)}
    chain = Chain({0: Fraction(1)}, steps, dict.fromkeys(range(coupons), 1))
    assert expected_value(chain) == coupons * sum(Fraction(1, k) for k in range(1, coupons + 1))


@pytest.mark.parametrize("top", [2, 4, 7])
@pytest.mark.parametrize("start", [1, 2])
def test_the_ruin_of_a_gambler_as_a_model(top, start):
    """k(n - k) steps in a fair game; from the model's own steps."""
    instance = model_of(MODEL.replace("init=1", f"init={start}")).variant("v1", top=top)
    chain = chain_of(instance, lambda state, taken: 1, lambda state: 0 < state["at"] < top,
                     lambda state: state["at"] in (0, top))
    assert expected_value(chain) == start * (top - start)


def test_weights_of_steps():
    """Twice as likely up: the chance to come to 4 from 1 is (1 - 1/2) / (1 - 1/16), and counts as the gain there."""
    instance = model_of(MODEL).variant("v1")
    chain = chain_of(instance, lambda state, taken: 2 if taken.action == "up" else 1, lambda state: state["at"] == 4,
                     lambda state: state["at"] in (0, 4))
    assert expected_value(chain) == Fraction(1, 2) / Fraction(15, 16)


def test_what_goes_on_for_ever():
    ring: Any = {0: {1: Fraction(1)}, 1: {0: Fraction(1)}}
    assert expected_value(Chain({0: Fraction(1)}, ring, {0: 1})) is None
    assert expected_value(Chain({0: Fraction(1)}, ring, {})) == 0
    assert expected_value(Chain({2: Fraction(1)}, {**ring, 2: {0: HALF, 3: HALF}}, {2: 3, 3: 4})) == 5
    with pytest.raises(ModelError, match="gains and loses"):
        expected_value(Chain({0: Fraction(1)}, ring, {0: 1, 1: -1}))
    assert decided(1, Chain({0: Fraction(1)}, ring, {0: 1}))[0].reason == "the value is unbounded, not 1"


@pytest.mark.parametrize("chain", [
    Chain({0: Fraction(1)}, {0: {1: HALF}}, {}), Chain({0: HALF}, {}, {}),
    Chain({0: Fraction(1)}, {0: {1: Fraction(3, 2), 2: -HALF}}, {}),
    Chain({0: Fraction(1)}, {0: {1: 0.5, 2: 0.5}}, {}),           # type: ignore[dict-item]
    Chain({0: Fraction(1)}, {}, {0: 0.1})])                       # type: ignore[dict-item]
def test_what_is_no_chain(chain):
    with pytest.raises(ModelError):
        expected_value(chain)


def test_a_value_that_is_no_fraction():
    with pytest.raises(ModelError, match="no exact fraction"):
        decided(0.5, {0: (Fraction(1), 1)})


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=5, max_size=5),
       st.lists(st.integers(0, 5), min_size=5, max_size=5))
def test_the_value_solves_its_equation(weights, gains):
    """Whatever is computed for each start is gain + sum of probability times value; place 5 is the end."""
    rows = {i: {j: Fraction(w + (j == 5), sum(row) + 1) for j, w in enumerate(row) if w + (j == 5)}
            for i, row in enumerate(weights)}
    gain = dict(enumerate(gains))
    value = {i: expected_value(Chain({i: Fraction(1)}, rows, gain)) for i in range(6)}
    assert value[5] == 0
    for i, row in rows.items():
        assert value[i] == gain[i] + sum(p * (value[j] or 0) for j, p in row.items())
