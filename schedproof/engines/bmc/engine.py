# SPDX-License-Identifier: GPL-2.0-only
"""The ``bmc`` engine: the shortest run that breaks a property, by a solver, for instances of any size.

It finds and never proves: without a run up to the depth that it reached the verdict is ``Unknown``, and says that
depth. Stuck states, dead actions and premises that never hold are not looked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import z3

from schedproof.engines.bmc.questions import question_of
from schedproof.engines.bmc.unroll import Unrolling
from schedproof.errors import ModelError
from schedproof.model.transition import Transition
from schedproof.property import Eventually, Invariant, Property, Reachable, Within, WorstCase
from schedproof.verdict import Counts, Proved, Refuted, Unknown, Verdict

TraceMaker = Callable[..., Any]
DEPTH = 32                     # steps, where nobody says how far
RLIMIT = 100_000_000          # of Z3's resource units for one depth, which do not depend on the machine's load


@dataclass(frozen=True)
class _Run:
    """A run that shows what was asked for: ``back`` is the state that a cycle comes back to."""

    length: int
    back: int | None
    model: z3.ModelRef


@dataclass(frozen=True)
class Bmc:
    """The engine. ``depth`` is the number of steps after which it gives up.

    ``trace_maker`` stands in for ``schedproof.replay.to_trace``.
    """

    depth: int = DEPTH
    rlimit: int = RLIMIT
    trace_maker: TraceMaker | None = None

    name = "bmc"

    def applies(self, instance: Any, property: Property) -> str | None:
        """Why this engine cannot look at the property, or None when it can."""
        if not isinstance(property.kind, Invariant | Reachable | Within | WorstCase | Eventually):
            return f"bmc does not look for runs that break a property of the kind {property.kind.word}"
        return None

    def decide(self, instance: Any, property: Property, budget: float | None = None, jobs: int = 1,
               progress: Callable[[Counts], None] | None = None) -> Verdict:
        """Search runs of growing length. ``budget`` is in seconds; ``jobs`` changes nothing.

        Raises ModelError when a run of the model meets a fault of the model.
        """
        return _Search(self, instance, property, budget, progress).decide()


def _to_trace() -> TraceMaker:
    from schedproof.replay import to_trace  # here, for replay needs the interpreter and the search does not

    return to_trace


class _Search:
    """One property on one instance."""

    def __init__(self, engine: Bmc, instance: Any, property: Property, budget: float | None,
                 progress: Callable[[Counts], None] | None):
        self.engine, self.instance, self.property = engine, instance, property
        self.start, self.budget, self.progress = time.perf_counter(), budget, progress
        self.transitions: tuple[Transition, ...] = tuple(instance.transitions)
        self.question = question_of(instance, property, self.transitions)
        self.run = Unrolling(instance, self.transitions, self.question.extras)
        # A run that rests on undeclared values counts only when there is one without them.
        self.earned = z3.Bool("earned") if any(x.free for x in self.transitions) else None
        self.reason = ""

    @property
    def counts(self) -> Counts:
        return Counts(depth=self.run.depth, seconds=time.perf_counter() - self.start)

    def decide(self) -> Verdict:
        common: dict[str, Any] = {"engine": self.engine.name, "instance": self.instance.title}
        if not self.instance.initial:
            raise ModelError(f"{self.instance.name} has no initial state", hint="no assignment satisfies @init")
        found = self._search()
        common["counts"] = self.counts
        if found is None:
            return Unknown(**common, reason=self.reason)
        stem, cycle = self._steps(found)
        free = tuple(dict.fromkeys(why for x in stem + cycle for why in x.free))
        if free:
            return Unknown(**common, reason=f"only a run that rests on undeclared values: {', '.join(free)}")
        if isinstance(self.property.kind, Reachable):
            return Proved(**common, trace=self._trace(found, stem, cycle, "proved"))
        worst = "unbounded" if cycle and isinstance(self.property.kind, Within | WorstCase) else None
        return Refuted(**common, worst_case=worst, trace=self._trace(found, stem, cycle, "refuted"))  # type: ignore

    # --------------------------------------------------------------------------------------------- search
    def _search(self) -> _Run | None:
        """The first run that shows it, or None with the reason."""
        for k in range(self.engine.depth + 1):
            if k:
                self._extend()
            found = self._at(k)
            if found is not None or self.reason:
                return found
            if self.progress is not None:
                self.progress(self.counts)
        self._give_up(f"no run of up to {self.engine.depth} steps " + self._does)
        return None

    @property
    def _does(self) -> str:
        return "shows it" if isinstance(self.property.kind, Reachable) else "breaks it"

    def _give_up(self, why: str) -> None:
        self.reason = why

    def _extend(self) -> None:
        k = self.run.depth
        self.run.extend()
        if self.earned is not None:
            for number, x in enumerate(self.transitions):
                if x.free:
                    self.run.solver.add(z3.Implies(self.earned, z3.Not(self.run.takes(k, number))))

    def _at(self, k: int) -> _Run | None:
        """A run of ``k`` steps that shows it. Raises ModelError for one that ends in a fault of the model."""
        goals: list[tuple[z3.BoolRef, int | None]] = [(self.question.here(self.run, k), None)]
        if self.question.loops:
            goals += [(self.question.around(self.run, i, k), i) for i in reversed(range(k))]
        wanted = z3.Or(*(goal for goal, _ in goals))
        for only in ([self.earned], []) if self.earned is not None else ([],):
            model = self._ask(wanted, only, k)
            if model is not None:
                back = next(i for goal, i in goals if z3.is_true(model.eval(goal, model_completion=True)))
                return _Run(k, back, model)
            if self.reason:
                return None
        if self.run.wrong:
            fault = self.run.fault(k)
            model = self._ask(fault, [], k)
            if model is not None:
                raise self._fault(model, k)
            self.run.solver.add(z3.Not(fault))
        return None

    def _ask(self, wanted: z3.BoolRef, assumed: list[z3.BoolRef | None], k: int) -> z3.ModelRef | None:
        solver = self.run.solver
        if z3.is_false(z3.simplify(wanted)):
            return None
        if self.budget is not None:
            left = self.budget - (time.perf_counter() - self.start)
            if left <= 0:
                self._give_up(f"the budget of {self.budget:g} s is spent; no run of up to {k - 1} steps {self._does}")
                return None
            solver.set("timeout", max(1, int(1000 * left)))
        solver.set("rlimit", self.engine.rlimit)
        goal = z3.FreshBool("goal")
        solver.add(z3.Implies(goal, wanted))
        answer = solver.check(goal, *assumed)
        if answer == z3.sat:
            return solver.model()
        if answer == z3.unknown:
            self._give_up(f"Z3 gave up at runs of {k} steps ({solver.reason_unknown()}); no run of up to {k - 1} "
                          f"steps {self._does}")
        solver.add(z3.Not(goal))
        return None

    # --------------------------------------------------------------------------------------------- answers
    def _steps(self, found: _Run) -> tuple[tuple[Transition, ...], tuple[Transition, ...]]:
        cut = found.length if found.back is None else found.back
        return (self.run.taken(found.model, range(cut)), self.run.taken(found.model, range(cut, found.length)))

    def _trace(self, found: _Run, stem: tuple[Transition, ...], cycle: tuple[Transition, ...], verdict: str) -> Any:
        make = self.engine.trace_maker or _to_trace()
        unit = self.property.kind.cost if isinstance(self.property.kind, Within | WorstCase) else ""
        return make(self.instance, self.property, self.run.state(found.model, 0), list(stem), list(cycle), verdict,
                    unit, None)

    def _fault(self, model: z3.ModelRef, k: int) -> ModelError:
        """The error for a run whose state ``k`` has a step that is a fault of the model."""
        state = self.run.state(model, k)
        for x in self.transitions:
            pairs = [(v.term, z3.BoolVal(bool(state[n])) if z3.is_bool(v.term) else z3.IntVal(int(state[n])))
                     for n, v in self.instance.variables.items()]
            if not z3.is_true(z3.simplify(z3.substitute(x.guard, *pairs))):
                continue
            if x.fault:
                return ModelError(f"{x.label}: {x.fault}", x.loc.file, x.loc.line, f"met after {k} steps")
            for name, term in x.updates.items():
                value = z3.simplify(z3.substitute(term, *pairs))
                codes = self.instance.variables[name].domain.codes()
                if z3.is_int_value(value) and codes is not None and value.as_long() not in codes:
                    return ModelError(f"{x.label} sets {name} to {value}, which is not in its domain", x.loc.file,
                                      x.loc.line, f"met after {k} steps: widen the domain, or guard the assignment")
        return ModelError(f"a step from a state after {k} steps is a fault of the model")
