# SPDX-License-Identifier: GPL-2.0-only
"""The ``explicit`` engine: decides properties of finite instances by going through all reachable states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import z3

from schedproof.engines.explicit import checks
from schedproof.engines.explicit import kernels as k
from schedproof.engines.explicit.compile import MOST_WORDS, Clock, compile_instance
from schedproof.engines.explicit.fairness import fair_classes
from schedproof.engines.explicit.layout import CannotCompile, lay_out
from schedproof.engines.explicit.liveness import evades, first_hopeless, some_run_counts
from schedproof.engines.explicit.path import Path, path_to
from schedproof.engines.explicit.search import Meter, Space, explore
from schedproof.engines.explicit.worst_case import Wait, measure, stuck_in_time
from schedproof.errors import BudgetExceeded
from schedproof.model.transition import Transition
from schedproof.property import AlwaysPossible, Eventually, Invariant, Kind, Property, Reachable, Within, WorstCase
from schedproof.trace import Trace
from schedproof.verdict import Counts, Proved, Refuted, Unknown, Vacuous, Verdict
from schedproof.verdict import WorstCase as Worst

Outcome = Literal["proved", "refuted", "vacuous", "unknown"]
TraceMaker = Callable[..., Trace]
MAIN, PREMISE = 0, 1       # observations: what the kind speaks about; an invariant's premise, or what asks for a goal
DECIDED = Invariant | Reachable | Within | WorstCase | Eventually | AlwaysPossible
DEFAULT_MEMORY = 1_500_000_000


@dataclass(frozen=True)
class Finding:
    """What was found, before the path is told as a trace."""

    outcome: Outcome
    path: Path | None = None
    worst: Worst | None = None
    starved: bool | None = None
    reason: str = ""
    counts: Counts = field(default_factory=Counts)


@dataclass(frozen=True)
class Explicit:
    """The engine. ``memory`` is a ceiling in bytes; ``trace_maker`` stands in for ``schedproof.replay.to_trace``."""

    memory: int = DEFAULT_MEMORY
    trace_maker: TraceMaker | None = None

    name = "explicit"

    def applies(self, instance: Any, property: Property) -> str | None:
        """Why this engine cannot decide the property on the instance, or None when it can."""
        if not isinstance(property.kind, DECIDED):
            return f"the explicit engine does not decide properties of the kind {property.kind.word}"
        try:
            transitions = instance.transitions # first: domains of what threads keep across a cut are learnt here
            lay_out(instance.variables, transitions, instance.initial, MOST_WORDS)
        except CannotCompile as error:
            return str(error)
        return None

    def decide(self, instance: Any, property: Property, budget: float | None = None, jobs: int = 1,
               progress: Callable[[Counts], None] | None = None) -> Verdict:
        """Decide the property. ``budget`` is in seconds; ``jobs`` changes nothing, the search runs on one core.

        Raises ModelError when the model has no meaning on this instance.
        """
        finding = _without_free_run(self.find(instance, property, budget, progress))
        common: dict[str, Any] = {"engine": self.name, "instance": instance.title, "counts": finding.counts,
                                  "worst_case": finding.worst,
                                  "unit": _cost(property.kind) if isinstance(property.kind, Within | WorstCase) else ""}
        if finding.outcome == "vacuous":
            return Vacuous(**common, reason=finding.reason)
        if finding.outcome == "unknown":
            return Unknown(**common, reason=finding.reason)
        trace = None
        if finding.path is not None:
            trace = self._tell(instance, property, finding.path, finding.outcome)
        if finding.outcome == "proved":
            return Proved(**common, trace=trace)
        return Refuted(**common, trace=trace, starved=finding.starved)

    def find(self, instance: Any, property: Property, budget: float | None = None,
             progress: Callable[[Counts], None] | None = None) -> Finding:
        """Decide the property, giving the run that shows it as transitions."""
        meter = Meter(budget, self.memory, progress)
        examination = _Examination(instance, property, meter,
                                   lambda path: self._tell(instance, property, path, "error"))
        try:
            finding = examination.run()
        except (CannotCompile, BudgetExceeded) as error:
            finding = Finding("unknown", reason=str(error))
        return replace(finding, counts=meter.counts)

    def _tell(self, instance: Any, property: Property, path: Path, verdict: str) -> Trace:
        make = self.trace_maker or _to_trace()
        kind = property.kind
        waiting = None
        if isinstance(kind, Within | WorstCase) and verdict != "error":
            waiting = instance.predicate(kind.waiting)
        return make(instance, property, path.initial, list(path.stem), list(path.cycle), verdict,
                    _cost(kind) if verdict != "error" else "", path.total, waiting)


def _without_free_run(finding: Finding) -> Finding:
    """A proof without the run that would show its worst case, where that one rests on undeclared values.

    Such steps are more than can really happen, so the number is none that is known to be reached.
    """
    if finding.outcome == "proved" and finding.path is not None and finding.path.free:
        return replace(finding, path=None, worst=None)
    return finding


def _only_free(found: Finding) -> Finding:
    """What a run comes to that rests on undeclared values, where there is none without."""
    assert found.path is not None
    return Finding("unknown", reason=f"{found.outcome} only by a run that rests on undeclared values: "
                                     + ", ".join(found.path.free))


def _to_trace() -> TraceMaker:
    from schedproof.replay import to_trace  # here, for replay needs the interpreter and the search does not

    return to_trace


def _cost(kind: Kind) -> str:
    return kind.cost if isinstance(kind, Within | WorstCase | Eventually) else ""


@dataclass(frozen=True)
class _Examination:
    """One property on one instance."""

    instance: Any
    property: Property
    meter: Meter
    tell: checks.Tell

    def run(self) -> Finding:
        """The finding; one that rests on undeclared values only counts when it is there without them too."""
        transitions = tuple(self.instance.transitions)
        found = self._examine(transitions, whole=True)
        alarming = found.outcome == "refuted" or isinstance(self.property.kind, Reachable)
        if isinstance(self.property.kind, AlwaysPossible) and found.path is not None and found.path.free:
            return _only_free(found)       # without those steps there would be fewer ways on, not only fewer states
        if not alarming or found.path is None or not found.path.free:
            return found
        earned = self._examine(tuple(t for t in transitions if not t.free), whole=False)
        if earned.outcome == found.outcome and earned.path is not None:
            return earned
        return _only_free(found)

    def _examine(self, transitions: Sequence[Transition], whole: bool) -> Finding:
        """Search the states that ``transitions`` reach. ``whole``: they are all; only then what is missing counts."""
        predicates = self._predicates()
        final = 0
        if self.instance.final is not None:
            final = 1 << len(predicates)
            predicates.append(self.instance.final)
        before = self.meter.counts.compile_seconds
        kind = self.property.kind
        compiled = compile_instance(self.instance.variables, transitions, predicates, _cost(kind),
                                    self.instance.initial, self._clock(), MOST_WORDS)
        self.meter.note(compile_seconds=before + compiled.seconds)
        space = explore(compiled, checks.pack_initial(self.instance, compiled), self.meter,
                        stop=1 << MAIN if isinstance(kind, Invariant) else 0,
                        may_stick=final if whole else -1,
                        marked=1 << MAIN if not isinstance(kind, Invariant | Reachable) else 0)
        if space.event == k.FOUND:
            return Finding("refuted", path_to(space, int(space.info[k.EVENT_STATE])))
        checks.require_sound(self.instance, space, self.tell)
        if whole and compiled.costly:
            held = stuck_in_time(space, final, int(space.info[k.TIMELESS_EDGES]), self.meter)
            if held is not None:
                raise checks.time_cannot_pass(self.instance, space, held, self.tell)
        found = self._judge(space, whole)
        if whole and found.outcome == "proved" and (dead := checks.dead_actions(self.instance, space)):
            return Finding("vacuous", worst=found.worst, reason="no reachable state enables " + ", ".join(dead))
        return found

    def _clock(self) -> Clock:
        """What stands for time in ``Eventually`` where no cost is named."""
        if not isinstance(self.property.kind, Eventually) or self.property.kind.cost:
            return ""
        return "any" if any(t.costs for t in self.instance.transitions) else "steps"

    def _predicates(self) -> list[z3.BoolRef]:
        """The observations of the kind, in the order MAIN, PREMISE."""
        kind, predicate = self.property.kind, self.instance.predicate
        if isinstance(kind, Invariant):
            main = z3.Not(predicate(kind.formula))
            return [main] if kind.premise is None else [main, predicate(kind.premise)]
        if isinstance(kind, Reachable):
            return [predicate(kind.formula)]
        if isinstance(kind, AlwaysPossible):
            return [z3.Not(predicate(kind.formula))]
        if isinstance(kind, Eventually):
            return [z3.Not(predicate(kind.goal)), *([] if kind.after is None else [predicate(kind.after)])]
        assert isinstance(kind, Within | WorstCase)
        return [predicate(kind.waiting)]

    def _judge(self, space: Space, whole: bool) -> Finding:
        """The finding of a complete search."""
        kind, first = self.property.kind, space.first
        if isinstance(kind, Invariant):
            if kind.premise is not None and first[PREMISE] < 0:
                return Finding("vacuous", reason="the premise holds in no reachable state")
            return Finding("proved")
        if isinstance(kind, Reachable):
            return Finding("proved", path_to(space, int(first[MAIN]))) if first[MAIN] >= 0 else Finding("refuted")
        if isinstance(kind, AlwaysPossible):
            return self._judge_possible(space)
        assert isinstance(kind, Within | WorstCase | Eventually)
        if kind.cost and not any(kind.cost in t.costs for t in self.instance.transitions):
            return Finding("vacuous", reason=f"no action has the cost {kind.cost}")
        if isinstance(kind, Eventually):
            return self._judge_goal(space, kind, whole)
        # a transition that was left out might have been what a fair run has to take
        known = whole or not any(t.fair and t.free for t in self.instance.transitions)
        wait = measure(space, MAIN, fair_classes(space.compiled.transitions, known), self.meter)
        if wait is None:
            return Finding("vacuous", reason="no state waits")
        return self._judge_wait(space, kind, wait)

    def _judge_goal(self, space: Space, kind: Eventually, whole: bool) -> Finding:
        asked = None if kind.after is None else PREMISE
        if asked is not None and space.first[asked] < 0:
            return Finding("vacuous", reason="no reachable state asks for the goal")
        # a step that rests on an undeclared value may be impossible: fairness cannot demand it
        fairness = fair_classes(space.compiled.transitions, not any(t.fair and t.free for t in
                                                                    self.instance.transitions))
        found = evades(space, MAIN, asked, fairness, whole, self.meter)
        if found is not None and found.fair is None:
            return Finding("unknown", reason="a cycle never reaches the goal, and whether it is fair is not known: "
                                             "more than 64 fair actions, or fair ones that rest on undeclared values")
        if found is not None:
            return Finding("refuted", path_to(space, found.first, found.steps, found.cycle))
        # Where every state lets time pass, a run that takes all steps it can counts; otherwise there may be none.
        certain = whole and not kind.cost and self.instance.final is None
        if not certain and not some_run_counts(space, asked, fairness, self.meter):
            return Finding("vacuous", reason="time comes to an end in every fair run that asks for the goal")
        return Finding("proved")

    def _judge_possible(self, space: Space) -> Finding:
        place = first_hopeless(space, MAIN, self.meter)
        if place is not None:
            return Finding("refuted", path_to(space, place))
        met = zip(space.compiled.transitions, space.enabled, strict=False)
        free = {why for t, seen in met if seen for why in t.free}
        if free:                           # one of these steps may be the only way on, and be impossible
            return Finding("unknown", reason="always possible, if undeclared values are as they have to be: "
                                             + ", ".join(sorted(free)))
        return Finding("proved")

    def _judge_wait(self, space: Space, kind: Within | WorstCase, wait: Wait) -> Finding:
        bound: int | None = None
        if isinstance(kind, Within):
            bound = kind.bound(self.instance.view) if callable(kind.bound) else kind.bound
        path = path_to(space, wait.first, wait.steps, wait.cycle, wait.total)
        if wait.worst is None:
            return Finding("refuted", path, "unbounded", wait.starved)
        if bound is not None and wait.worst > bound:
            return Finding("refuted", path, wait.worst)
        if not wait.leaves:
            return Finding("vacuous", reason="the wait is entered, and no step ever ends it")
        return Finding("proved", path, wait.worst)
