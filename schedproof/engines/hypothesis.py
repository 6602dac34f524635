# SPDX-License-Identifier: GPL-2.0-only
"""The ``hypothesis`` engine: random runs of a model as a state machine of Hypothesis, steered towards long waits.

Each action with its objects is a rule, each property an invariant. A run that breaks the property is shrunk, by
Hypothesis and then to one of which no step can be left out, and told as a trace like any other; it was found, and what
is not found is not proved. Everything runs on the plain interpreter, so an instance of any size will do.

``state_machine`` gives the machine itself; its ``TestCase`` is a test class for a suite of one's own.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, settings, target
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from schedproof.model.concrete import Event, Taken, steps
from schedproof.model.transition import State
from schedproof.property import Invariant, Property, Reachable, Within, WorstCase
from schedproof.replay import trace_of
from schedproof.verdict import Counts, Proved, Refuted, Unknown, Verdict

RUNS, LENGTH = 200, 60


class Broken(AssertionError):
    """A run that breaks the property (for ``Reachable``: that shows it)."""


class Walk(RuleBasedStateMachine):
    """One random run. A subclass that ``state_machine`` makes names the instance and the property."""

    instance: Any
    property: Property
    until: float | None = None                # by time.perf_counter: then nothing happens any more
    broken: Walk | None = None                # the shortest run that broke the property
    longest_of_all = 0
    runs = 0
    steps_taken = 0

    def __init__(self) -> None:
        super().__init__()
        self.state: State = {}
        self.first: State = {}
        self.taken: list[Taken] = []
        self.waited = self.longest = 0
        self._options: dict[tuple[str, tuple[str, ...]], list[Taken]] = {}
        type(self).runs += 1

    @initialize(data=st.data())
    def begin(self, data: Any) -> None:
        """One of the initial states."""
        initial = self.instance.initial
        self.first = self.state = initial[data.draw(st.integers(0, len(initial) - 1)) if len(initial) > 1 else 0]

    def options(self, event: Event) -> list[Taken]:
        """The steps that an action can take now; none when the time is up."""
        if self.until is not None and time.perf_counter() > self.until:
            return []
        key = (event.action, event.labels)
        if key not in self._options:
            self._options[key] = list(steps(self.instance, self.state, *key))
        return self._options[key]

    def take(self, taken: Taken) -> None:
        self.waited = waited(self.instance, self.property, self.state, taken, self.waited)
        self.longest = max(self.longest, self.waited)
        self.taken.append(taken)
        self.state, self._options = taken.state, {}
        type(self).steps_taken += 1

    @precondition(lambda self: not any(self.options(e) for e in self.instance.events))
    @rule()
    def rest(self) -> None:
        """Nothing can happen; Hypothesis wants a rule all the same."""

    @invariant()
    def holds(self) -> None:
        if self.state and breaks(self.instance, self.property, self.state, self.waited):
            if self.broken is None or len(self.taken) < len(self.broken.taken):
                type(self).broken = self
            raise Broken(f"{self.property.name} after {len(self.taken)} steps")

    def teardown(self) -> None:
        type(self).longest_of_all = max(self.longest_of_all, self.longest)
        if isinstance(self.property.kind, Within | WorstCase):
            target(float(self.longest), label="wait")


def breaks(instance: Any, property: Property, state: State, waited: int) -> bool:
    """Whether a run that ends here breaks the property, or shows what has to be reachable."""
    kind = property.kind
    if isinstance(kind, Within):
        return waited > (kind.bound(instance.view) if callable(kind.bound) else kind.bound)
    if isinstance(kind, Invariant | Reachable):
        return bool(instance.evaluate(kind.formula, state)) == isinstance(kind, Reachable)
    return False


def waited(instance: Any, property: Property, state: State, taken: Taken, before: int) -> int:
    """What the wait has cost behind a step."""
    kind = property.kind
    if not isinstance(kind, Within | WorstCase) or not instance.evaluate(kind.waiting, state):
        return 0
    return before + taken.costs.get(kind.cost, 0)


def shrunk(instance: Any, property: Property, first: State, run: Sequence[Taken]) -> list[Taken]:
    """A part of a run that breaks the property, too, and of which no step can be left out."""
    best, size = list(run), max(1, len(run) // 2)
    while True:
        at = 0
        while at < len(best):
            shorter = _again(instance, property, first, best[:at] + best[at + size:])
            if shorter is None:
                at += size
            else:
                best = shorter
        if size == 1:
            return best
        size = max(1, size // 2)


def _again(instance: Any, property: Property, first: State, run: Sequence[Taken]) -> list[Taken] | None:
    """The same steps once more, up to where they break the property; None when they cannot be taken or do not."""
    state, spent, done = first, 0, list[Taken]()
    if breaks(instance, property, state, 0):
        return []
    for wanted in run:
        possible = steps(instance, state, wanted.action, wanted.args)
        taken = next((x for x in possible if x.choices == wanted.choices), None)
        if taken is None:
            return None
        spent = waited(instance, property, state, taken, spent)
        done.append(taken)
        state = taken.state
        if breaks(instance, property, state, spent):
            return done
    return None


def state_machine(instance: Any, property: Property) -> type[Walk]:
    """The state machine of an instance with a property: one rule an action with its objects."""
    assert instance.transitions is not None          # threads learn the constants of their frames here
    rules = {f"{e.action}_{'_'.join(e.labels)}".rstrip("_"): _rule(e) for e in instance.events}
    return type("Run", (Walk,), {"instance": instance, "property": property, **rules})


def _rule(event: Event) -> Any:
    def step(self: Walk, data: Any) -> None:
        options = self.options(event)
        self.take(options[data.draw(st.integers(0, len(options) - 1)) if len(options) > 1 else 0])

    step.__name__ = event.action
    return precondition(lambda self: bool(self.options(event)))(rule(data=st.data())(step))


@dataclass(frozen=True)
class ByHypothesis:
    """The engine. ``runs`` random runs of up to ``length`` steps; the same call makes the same runs."""

    runs: int = RUNS
    length: int = LENGTH

    name = "hypothesis"

    def applies(self, instance: Any, property: Property) -> str | None:
        """Why this engine cannot look at the property, or None when it can."""
        if not isinstance(property.kind, Invariant | Reachable | Within | WorstCase):
            return f"random runs cannot break a property of the kind {property.kind.word}"
        if any(x.free for x in instance.transitions):
            return "undeclared values are not drawn at random"
        return None

    def decide(self, instance: Any, property: Property, budget: float | None = None, jobs: int = 1,
               progress: Callable[[Counts], None] | None = None) -> Verdict:
        """Make random runs. ``budget`` is in seconds; ``jobs`` changes nothing. Raises ModelError."""
        start = time.perf_counter()
        machine = state_machine(instance, property)
        machine.until = None if budget is None else start + budget
        chosen = settings(max_examples=self.runs, stateful_step_count=self.length, deadline=None, database=None,
                          derandomize=True, print_blob=False, report_multiple_bugs=False, verbosity=Verbosity.quiet,
                          suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.target, Phase.shrink))
        with contextlib.suppress(Broken):
            run_state_machine_as_test(machine, settings=chosen)
        counts = Counts(0, machine.steps_taken, self.length, time.perf_counter() - start)
        common: dict[str, Any] = {"engine": self.name, "instance": instance.title, "counts": counts}
        found = machine.broken
        if found is None:
            waits = isinstance(property.kind, Within | WorstCase)
            met = f"; the longest wait was {machine.longest_of_all}" if waits else ""
            does = "shows" if isinstance(property.kind, Reachable) else "breaks"
            return Unknown(**common, reason=f"{machine.runs} random runs of up to {self.length} steps, and none {does} "
                                            f"it{met}; that proves nothing")
        run = shrunk(instance, property, found.first, found.taken)
        made = Proved if isinstance(property.kind, Reachable) else Refuted
        return made(**common, trace=trace_of(instance, property, found.first, run, made.__name__.lower()))
