# SPDX-License-Identifier: GPL-2.0-only
"""The ``induction`` engine: k-induction, a proof for runs of every length, on instances of any size.

A state is good where the property holds and no step is a fault of the model. Proved is: every run of up to k steps
from an initial state has good states only (the base), and k good states of a run that may begin anywhere, no two of
them the same, are followed by a good one (the step). The ranges of variables are the only hypothesis about where it
begins; that no step leaves them is part of "good". Bounded waiting is about a clock that the engine adds.

A proof says nothing where an action never happens or nobody ever waits, so the base looks for that, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import z3

from schedproof.engines.bmc.engine import Bmc, TraceMaker
from schedproof.engines.bmc.questions import Question, question_of
from schedproof.engines.bmc.unroll import Unrolling
from schedproof.engines.certificate import Certificate
from schedproof.model.transition import Transition
from schedproof.property import Invariant, Property, Within
from schedproof.verdict import Counts, Proved, Refuted, Unknown, Verdict

DEPTH = 8                      # the greatest k
WITNESS_DEPTH = 32             # steps within which every action has to be seen to happen
RLIMIT = 20_000_000           # of Z3's resource units for one question


@dataclass(frozen=True)
class Induction:
    """The engine. ``depth`` is the greatest k; ``lemmas`` are formulas that hold in every reachable state.

    A lemma is not taken on trust: it becomes part of what is proved.
    """

    depth: int = DEPTH
    rlimit: int = RLIMIT
    lemmas: tuple[Callable[..., Any], ...] = ()
    trace_maker: TraceMaker | None = None

    name = "induction"

    def applies(self, instance: Any, property: Property) -> str | None:
        """Why this engine cannot prove the property, or None when it can try."""
        if not isinstance(property.kind, Invariant | Within):
            return f"induction proves invariants and bounded waits, not properties of the kind {property.kind.word}"
        return None

    def decide(self, instance: Any, property: Property, budget: float | None = None, jobs: int = 1,
               progress: Callable[[Counts], None] | None = None) -> Verdict:
        """Prove it, or find a run that breaks it on the way. ``budget`` is in seconds; ``jobs`` changes nothing.

        Raises ModelError when a run of the model meets a fault of the model.
        """
        return _Proof(self, instance, property, budget, progress).decide()


class _Proof:
    """One property on one instance."""

    def __init__(self, engine: Induction, instance: Any, property: Property, budget: float | None,
                 progress: Callable[[Counts], None] | None):
        self.engine, self.instance, self.property, self.progress = engine, instance, property, progress
        self.start, self.budget = time.perf_counter(), budget
        self.transitions: tuple[Transition, ...] = tuple(instance.transitions)
        self.question: Question = question_of(instance, property, self.transitions)
        self.lemmas = [instance.predicate(f) for f in engine.lemmas]
        self.common: dict[str, Any] = {"engine": engine.name, "instance": instance.title}
        self.depth = 0

    @property
    def left(self) -> float | None:
        return None if self.budget is None else self.budget - (time.perf_counter() - self.start)

    def unknown(self, reason: str) -> Unknown:
        return Unknown(**self.common, counts=self.counts, reason=reason)

    @property
    def counts(self) -> Counts:
        return Counts(depth=self.depth, seconds=time.perf_counter() - self.start)

    def decide(self) -> Verdict:
        """Look for the least k with which it is proved, then for the witnesses that make the proof mean something."""
        anywhere = Unrolling(self.instance, self.transitions, self.question.extras, anywhere=True)
        for k in range(1, self.engine.depth + 1):
            self.depth = k
            if self.progress is not None:
                self.progress(self.counts)
            anywhere.extend()
            answer = self._step(anywhere, k)
            if answer == z3.unsat:
                return self._based(k)
            if answer == z3.unknown or self.left is not None and self.left <= 0:
                return self._undecided(f"Z3 gave up at the step of {k}-induction")
        return self._undecided(f"it is not k-inductive for any k up to {self.engine.depth}")

    def _undecided(self, why: str) -> Verdict:
        """Without a proof: a run that breaks it, if there is a short one."""
        if self.left is not None and self.left <= 0:
            return self.unknown(why)
        found = self._base(self.engine.depth)
        return found if isinstance(found, Refuted) else self.unknown(f"{why}, and {found.reason}")

    def _step(self, run: Unrolling, k: int) -> z3.CheckSatResult:
        """Whether ``k`` good states can be followed by a bad one: unsat is a proof."""
        run.solver.add(self._good(run, k - 1))
        run.solver.add(*(z3.Not(run.same(i, k - 1, extras=True)) for i in range(k - 1)))
        run.solver.set("rlimit", self.engine.rlimit)
        if self.left is not None:
            run.solver.set("timeout", max(1, int(1000 * self.left)))
        run.solver.push()
        run.solver.add(z3.Not(self._good(run, k)))
        answer = run.solver.check()
        run.solver.pop()
        return answer

    def _good(self, run: Unrolling, k: int) -> z3.BoolRef:
        """That state ``k`` keeps the property and the lemmas, and no step from it is a fault."""
        lemmas = [run.at(run.coding.truth(lemma), k) for lemma in self.lemmas]
        return z3.And(z3.Not(self.question.here(run, k)), *lemmas, z3.Not(run.fault(k)))

    # ---------------------------------------------------------------------------------------------- base
    def _base(self, depth: int) -> Refuted | Unknown:
        """A run of up to ``depth`` steps that breaks it; else what bmc says."""
        found = Bmc(depth, self.engine.rlimit, self.engine.trace_maker).decide(self.instance, self.property, self.left)
        assert isinstance(found, Refuted | Unknown)
        return found

    def _based(self, k: int) -> Verdict:
        """The verdict when the step of k-induction is proved."""
        found = self._base(k)
        if isinstance(found, Refuted):
            return found
        if f"no run of up to {k} steps" not in found.reason or "Z3 gave up" in found.reason or "budget" in found.reason:
            return self.unknown(f"the step of {k}-induction is proved, the base is not: {found.reason}")
        run = Unrolling(self.instance, self.transitions, self.question.extras)
        broken = self._lemma_broken(run, k)
        if broken:
            return self.unknown(broken)
        return self._meaning(run, k)

    def _lemma_broken(self, run: Unrolling, k: int) -> str:
        """Why the lemmas do not hold on the first ``k`` steps; empty where they do."""
        for depth in range(k + 1 if self.lemmas else 0):
            if depth > run.depth:
                run.extend()
            for lemma, term in zip(self.engine.lemmas, self.lemmas, strict=True):
                if self._seen(run, z3.Not(run.at(run.coding.truth(term), depth))) is not False:
                    return f"the lemma {lemma.__name__} is not shown to hold after {depth} steps"
        return ""

    def _seen(self, run: Unrolling, wanted: z3.BoolRef) -> bool | None:
        """Whether the unrolled runs can show something; None when Z3 gives up or the budget is spent."""
        if self.left is not None:
            run.solver.set("timeout", max(1, int(1000 * self.left)))
        run.solver.set("rlimit", self.engine.rlimit)
        run.solver.push()
        run.solver.add(wanted)
        answer = run.solver.check()
        run.solver.pop()
        return None if answer == z3.unknown else bool(answer == z3.sat)

    def _meaning(self, run: Unrolling, k: int) -> Verdict:
        """Proved, when every action that may happen does in some run, and the premise or the wait is met."""
        missing = self._witnesses()
        depth = 0
        while missing and depth <= WITNESS_DEPTH:
            if depth > run.depth:
                run.extend()
            for what in list(missing):
                seen = self._seen(run, run.at(run.coding.truth(missing[what]), depth))
                if seen is None:
                    return self.unknown(f"proved by {k}-induction, but whether {what} was not decided")
                if seen:
                    del missing[what]
            depth += 1
        if missing:
            return self.unknown(f"proved by {k}-induction, but in {WITNESS_DEPTH} steps no run shows that "
                                + ", ".join(missing) + ": the proof may say nothing")
        return Proved(**self.common, counts=self.counts, certificate=Certificate(k, tuple(self.lemmas)))

    def _witnesses(self) -> dict[str, z3.BoolRef]:
        """What some run has to show, in words, as formulas over one state."""
        found: dict[str, z3.BoolRef] = {}
        for action in dict.fromkeys(x.action for x in self.transitions):
            if action not in self.instance.dead:
                found[f"{action} happens"] = z3.Or(*(x.guard for x in self.transitions
                                                     if x.action == action and not x.fault))
        kind = self.property.kind
        if isinstance(kind, Invariant) and kind.premise is not None:
            found["the premise holds"] = self.instance.predicate(kind.premise)
        if isinstance(kind, Within):
            waiting = self.instance.predicate(kind.waiting)
            found["anybody waits"] = waiting
            found["the wait ends"] = z3.Or(*(
                z3.And(waiting, x.guard, z3.Not(z3.substitute(waiting, *_updates(self.instance, x))))
                for x in self.transitions if not x.fault))
        return found


def _updates(instance: Any, x: Transition) -> list[tuple[z3.ExprRef, z3.ExprRef]]:
    return [(instance.variables[n].term, v) for n, v in x.updates.items()]

