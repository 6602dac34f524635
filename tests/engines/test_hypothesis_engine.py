# SPDX-License-Identifier: GPL-2.0-only
"""The hypothesis engine: what it finds is minimal and replays; what it does not find stays unknown."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from schedproof.engines.explicit.engine import Explicit
from schedproof.engines.hypothesis import Broken, ByHypothesis, state_machine
from schedproof.errors import ModelError
from schedproof.property import Eventually, Invariant, Property, Reachable, Within, WorstCase
from schedproof.replay import replay
from tests.engines.test_agreement import models, untold
from tests.loading import model_of

COUNTER = """
    class M(Model):
        task = Object("struct t", "a", "b")
        n = Range(0, 9, init=0)
        up = Bool(per=task)
        releases = {"v1": {}}

        @action(per=task)
        def set(self, me):
            require(not self.up[me])
            self.up[me] = True

        @action(cost={"ms": 2})
        def tick(self):
            require(self.n < 9)
            self.n += choose(0, 1)

        @action
        def drop(self):
            require(self.up[self.task.a] and self.n > 3)
            self.n = 0
"""


def ask(kind: Any, **how: Any) -> Any:
    instance = model_of(COUNTER).variant("v1")
    asked = Property("p", None, "", kind)
    return instance, asked, ByHypothesis(**how).decide(instance, asked)


def below_three(m):
    return m.n < 3


def waits(m):
    return m.n < 3 and m.up[m.task.a]


def never(m):
    return m.n == 5 and m.n == 6


def test_what_it_finds_is_minimal_and_replays():
    instance, asked, found = ask(Invariant(below_three))
    assert (found.name, found.engine) == ("refuted", "hypothesis")
    assert [s.label for s in found.trace.steps] == ["tick()[1]"] * 3
    assert replay(found.trace, instance, asked).name == "refuted"


def test_a_witness():
    _, _, found = ask(Reachable(waits))
    assert found.name == "proved" and [s.action for s in found.trace.steps] == ["set"]
    _, _, missing = ask(Reachable(never), runs=20, length=10)
    assert missing.name == "unknown" and "none shows it; that proves nothing" in missing.reason


def test_a_wait_that_is_too_long():
    """Choosing 0 keeps it waiting for ever, so any bound is broken; six ticks are the least for more than 10 ms."""
    instance, asked, found = ask(Within(10, waits, "ms"))
    assert found.name == "refuted" and found.trace.total == 12
    assert sum(s.action == "tick" for s in found.trace.steps) == 6
    assert replay(found.trace, instance, asked).worst_case == 12


def test_it_is_steered_towards_long_waits():
    _, _, found = ask(WorstCase(waits, "ms"), runs=60, length=40)
    longest = int(found.reason.split("the longest wait was ")[1].split(";")[0])
    assert found.name == "unknown" and longest >= 40                # a run without steering waits for some 10 ms


def test_the_same_call_gives_the_same_run():
    first, second = (ask(Within(10, waits, "ms"))[2] for _ in range(2))
    assert first.trace == second.trace


def test_what_stops_it():
    _, _, found = ask(Reachable(never), runs=5, length=4)
    assert "random runs of up to 4 steps" in found.reason
    instance = model_of(COUNTER).variant("v1")
    late = ByHypothesis().decide(instance, Property("p", None, "", Invariant(below_three)), budget=1e-9)
    assert late.name == "unknown"
    refused = ByHypothesis().applies(instance, Property("p", None, "", Eventually(waits)))
    assert "of the kind eventually" in (refused or "")


def test_a_fault_of_the_model_is_its_error():
    broken = model_of(COUNTER.replace("require(self.n < 9)", "pass")).variant("v1")
    with pytest.raises(ModelError, match="n"):
        ByHypothesis(runs=15, length=40).decide(broken, Property("p", None, "", WorstCase(waits, "ms")))


def test_a_suite_of_ones_own():
    """The machine is a plain one of Hypothesis: its test case fails with the run."""
    machine = state_machine(model_of(COUNTER).variant("v1"), Property("p", None, "", Invariant(below_three)))
    case = machine.TestCase
    case.settings = settings(max_examples=20, stateful_step_count=15, database=None, deadline=None, derandomize=True)
    with pytest.raises(Broken, match=r"p after \d+ steps"):
        case("runTest").runTest()


@settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(models())
def test_what_it_finds_is_so(text):
    model = model_of(text)
    waiting = sys.modules[model.__module__].waiting
    instance = model.variant("v1")
    for kind in (Invariant(waiting), Reachable(waiting)):
        asked = Property("p", None, "", kind)
        exact, found = Explicit(trace_maker=untold).find(instance, asked), ByHypothesis(15, 10).decide(instance, asked)
        if found.name != "unknown":
            assert found.name == exact.outcome or exact.outcome == "vacuous"
            assert replay(found.trace, instance, asked).name == found.name
