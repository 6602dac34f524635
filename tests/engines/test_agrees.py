# SPDX-License-Identifier: GPL-2.0-only
"""The agrees engine: the same observations, with choices and stuttering, and a shortest run where they differ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedproof.engines import decide
from schedproof.engines.agrees import ByProduct, observation, other_of
from schedproof.errors import InputError
from schedproof.model.concrete import steps
from schedproof.property import Agrees, Property
from schedproof.replay import replay
from schedproof.report import render
from schedproof.trace import from_json
from tests.loading import model_of, module_of

COUNTER = """
    class M(Model):
        n = Range(0, 5, init=0)
        hidden = Range(0, 3, init=0)
        way = Switch("plain", "slow", "early", "split", "four", "five")
        releases = {"v1": {"way": "plain"}}

        @action
        def up(self):
            require(self.n < (4 if self.way == "four" else 5 if self.way == "five" else 3))
            if self.way == "slow" and self.hidden < 3:
                self.hidden += 1
            else:
                self.hidden = 0
                self.n += 1

        @action
        def skip(self):
            require(self.way == "early" or self.way == "split")
            if self.way == "early":
                require(self.n == 1)
                self.n = 3
            else:
                require(self.hidden == 0 and self.n < 3)
                self.hidden = 1

        @action
        def again(self):
            require(self.n > 0)
            self.n = 0
            self.hidden = 0

        dead = {"v1": {"skip": "another way"}}

    def seen(m):
        return m.n

    def parity(m):
        return m.n - 2 * cdiv(m.n, 2)

    def nothing(m):
        return 0
"""


def decided(way: str, formula: str = "seen", against: str = "v1") -> tuple[Any, Any, Property]:
    module = module_of(COUNTER)
    prop = Property("same", module.M, "They look the same.", Agrees(against, getattr(module, formula)))
    instance = module.M.variant(f"v1+way={way}")
    return decide(instance, prop), instance, prop


@pytest.mark.parametrize("way", ["plain", "slow", "split"])
def test_what_takes_more_steps_or_states_looks_the_same(way):
    verdict, _, _ = decided(way)
    assert verdict.name == "proved" and verdict.engine == "agrees"


def test_what_only_this_variant_shows_is_told_by_a_shortest_run():
    verdict, instance, prop = decided("early")                       # 0 1 3: the plain one goes through 2
    assert verdict.name == "refuted" and [s.label for s in verdict.trace.stem] == ["up()", "skip()"]
    assert verdict.trace.variant == instance.name and not verdict.trace.runs_in
    assert replay(from_json(verdict.trace.to_json(), "here"), instance, prop).name == "refuted"
    assert "runs_in" not in verdict.trace.to_json()


def test_what_only_the_other_variant_shows_is_a_run_of_that():
    module = module_of(COUNTER)
    prop = Property("same", module.M, "They look the same.", Agrees("v1+way=early", module.seen))
    instance = module.M.variant("v1")
    verdict = decide(instance, prop)
    assert verdict.name == "refuted" and verdict.trace.variant == "v1" and verdict.trace.runs_in == "v1+way=early"
    stored = from_json(verdict.trace.to_json(), "here")
    assert replay(stored, instance, prop).name == "refuted"
    assert "v1+way=early: v1 has no run that looks the same" in render(stored, "text")
    with pytest.raises(InputError, match="does not compare"):
        replay(replace(stored, runs_in="v1+way=four"), instance, prop)
    with pytest.raises(InputError, match="has a run with the same observations"):
        replay(replace(stored, stem=stored.stem[:1]), instance, prop)


def test_an_observation_may_hide_the_difference():
    assert decided("four")[0].name == "refuted"
    assert decided("four", "parity")[0].name == "proved"              # 0 1 0 1 ... both ways: again() goes back to 0
    assert decided("plain", "nothing")[0].name == "vacuous"


def test_the_other_variant_may_be_told_by_a_function():
    module = module_of(COUNTER)
    kind = Agrees(lambda v: v.split("+")[0], (module.seen, module.parity))
    prop = Property("same", module.M, "They look the same.", kind)
    assert decide(module.M.variant("v1+way=early"), prop).name == "refuted"
    assert decide(module.M.variant("v1+way=slow"), prop).name == "proved"


def test_choices_are_a_set_of_states_not_one():
    """After what is seen, the variant may be in several states: choosing early or late cannot be told apart."""
    text = """
        class M(Model):
            place = Range(0, 4, init=0)
            chosen = Range(0, 2, init=0)
            when = Switch("late", "early")
            releases = {"v1": {"when": "late"}}

            @action
            def choose_early(self):
                require(self.when == "early" and self.place == 0)
                self.chosen = choose(1, 2)
                self.place = 1

            @action
            def start(self):
                require(self.when == "late" and self.place == 0)
                self.place = 1

            @action
            def go(self):
                require(self.place == 1)
                if self.chosen == 0:
                    self.place = choose(2, 3)
                else:
                    self.place = self.chosen + 1

            @action
            def back(self):
                require(self.place >= 2)
                self.place = 0
                self.chosen = 0

            dead = {"v1": {"choose_early": "chosen late", "start": "chosen early"}}

        def seen(m):
            return m.place
    """
    module = module_of(text)
    prop = Property("same", module.M, "", Agrees("v1", module.seen))
    assert decide(module.M.variant("v1+when=early"), prop).name == "proved"


# --------------------------------------------------------------- random systems, against their sets of sequences
def one_of(places: list[int]) -> str:
    return str(places[0]) if len(places) == 1 else f"choose({', '.join(map(str, places))})"


def random_model(table: list[list[int]], other: list[list[int]]) -> Any:
    """Six places, three of which look alike in pairs; ``to`` of either table."""
    rows = "".join(f"""
            if self.at == {i}:
                if self.which == "one":
                    self.at = {one_of(a or [i])}
                else:
                    self.at = {one_of(b or [i])}
                return""" for i, (a, b) in enumerate(zip(table, other, strict=True)))
    return module_of(f"""
    class M(Model):
        at = Range(0, 5, init=0)
        which = Switch("one", "two")
        releases = {{"v1": {{"which": "one"}}}}

        @action
        def move(self):{rows}
            return

    def seen(m):
        return cdiv(m.at, 2)
    """)


def sequences(instance: Any, kind: Agrees, length: int) -> set[tuple[Any, ...]]:
    """All sequences of up to ``length`` observations, by going through runs: state with what was seen on the way."""
    todo: list[tuple[tuple[Any, ...], Any]] = [
        ((observation(instance, kind, i),), tuple(i.items())) for i in instance.initial]
    met = set(todo)
    while todo:
        seen, state = todo.pop()
        for taken in steps(instance, dict(state)):
            now = observation(instance, kind, taken.state)
            after = seen if now == seen[-1] else (*seen, now)
            item = (after, tuple(taken.state.items()))
            if len(after) <= length and item not in met:
                met.add(item)
                todo.append(item)
    return {seen for seen, _ in met}


TABLES = st.lists(st.lists(st.integers(0, 5), max_size=2, unique=True), min_size=6, max_size=6)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(TABLES, TABLES)
def test_the_product_decides_what_the_sets_of_sequences_say(table, other):
    module = random_model(table, other)
    kind = Agrees("v1", module.seen)
    prop = Property("same", module.M, "", kind)
    instance = module.M.variant("v1+which=two")
    verdict = ByProduct().decide(instance, prop)
    left, right = sequences(instance, kind, 6), sequences(other_of(instance, kind), kind, 6)
    if verdict.name == "refuted":
        assert replay(verdict.trace, instance, prop).name == "refuted"
        places = [int(verdict.trace.initial["at"]) // 2]
        for step in verdict.trace.stem:
            now = int(step.changes["at"][1]) // 2 if "at" in step.changes else places[-1]
            places += [now] if now != places[-1] else []
        able, silent = (right, left) if verdict.trace.runs_in else (left, right)
        told = tuple((p,) for p in places)
        assert len(told) > 6 or told in able - silent and len(told) == min(map(len, left ^ right))
    else:
        assert left == right


def test_a_budget_can_only_make_it_unknown():
    module = module_of(COUNTER)
    prop = Property("same", module.M, "", Agrees("v1", module.seen))
    assert ByProduct().decide(module.M.variant("v1+way=slow"), prop, budget=1e-9).name == "unknown"


def test_other_kinds_are_refused():
    from schedproof.property import Invariant

    module = module_of(COUNTER)
    prop = Property("same", module.M, "", Invariant(module.seen))
    assert "invariant" in (ByProduct().applies(model_of(COUNTER).variant("v1"), prop) or "")
