# SPDX-License-Identifier: GPL-2.0-only
"""The runs of an instance up to a depth, as constraints: one copy of the variables a state, one selector a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from schedproof.engines.bmc.bits import Bits, Unbounded, resized, width_of
from schedproof.lang import terms as t
from schedproof.model.domains import Range
from schedproof.model.transition import State, Transition, Variable


class Coding:
    """Terms of the current state as the solver sees them: over vectors where every variable is finite."""

    def __init__(self, variables: Mapping[str, Variable], extra: Mapping[str, t.Interval], truths: set[str],
                 over_integers: bool = False):
        self.ranges: dict[str, t.Interval] = dict(extra)
        for name, variable in variables.items():
            if variable.domain.sort != "Bool":
                self.ranges[name] = interval_of(variable)
        self.truths = truths | {n for n, v in variables.items() if v.domain.sort == "Bool"}
        finite = not over_integers and not any(None in interval for interval in self.ranges.values())
        self.bits: Bits | None = Bits(self.ranges) if finite else None

    def constant(self, name: str) -> z3.ExprRef:
        """The constant of a variable, or of one that the engine has added."""
        if name in self.truths:
            return z3.Bool(name)
        return z3.Int(name) if self.bits is None else self.bits.constant(name)

    def truth(self, term: z3.BoolRef) -> z3.BoolRef:
        return term if self.bits is None else self.bits.truth(term)

    def value(self, term: z3.ExprRef, name: str) -> z3.ExprRef:
        """A term that is to become the value of a variable (which it is sure to fit, or a fault has been noted)."""
        if name in self.truths:
            return self.truth(term)
        if self.bits is None:
            return term
        low, high = self.ranges[name]
        assert low is not None and high is not None
        return resized(self.bits.number(term), width_of(low, high))

    def solver(self) -> z3.Solver:
        return z3.Solver() if self.bits is None else z3.SolverFor("QF_FD")


def interval_of(variable: Variable) -> t.Interval:
    """The least and the greatest code of a variable."""
    if isinstance(variable.domain, Range):
        low, high = variable.domain.low, variable.domain.high
        assert isinstance(low, int) and isinstance(high, int)
        return low, high
    codes = variable.domain.codes()
    return (None, None) if codes is None else (int(min(codes)), int(max(codes)))


def inside(variable: Variable, term: z3.ExprRef) -> z3.BoolRef:
    """That a value lies in a variable's domain."""
    if variable.domain.sort == "Bool":
        return z3.BoolVal(True)
    if isinstance(variable.domain, Range):
        return z3.And(term >= variable.domain.low, term <= variable.domain.high)
    codes = variable.domain.codes()
    if codes is None:
        return z3.BoolVal(True)
    low, high = int(min(codes)), int(max(codes))
    if len(codes) == high - low + 1:
        return z3.And(term >= low, term <= high)
    return z3.Or(*(term == int(c) for c in codes))


the_step = z3.Int("step")              # the transition that is taken from a state, by its number


@dataclass(frozen=True)
class Extra:
    """A variable that the engine adds: a clock, a flag. ``interval`` is None for a truth value.

    ``first`` is its value in the initial states; ``following`` its next one, over the current state and ``the_step``.
    """

    name: str
    interval: t.Interval | None
    first: z3.ExprRef
    following: z3.ExprRef


class Unrolling:
    """Runs of growing length. State 0 is initial, or, with ``anywhere``, any state within the domains.

    ``extend`` adds one step.
    """

    def __init__(self, instance: Any, transitions: Sequence[Transition], extras: Sequence[Extra] = (),
                 anywhere: bool = False):
        self.instance, self.transitions, self.extras = instance, tuple(transitions), tuple(extras)
        self.variables: Mapping[str, Variable] = instance.variables
        self.names = [*self.variables, *(e.name for e in extras), the_step.decl().name()]
        self.frames: list[dict[str, z3.ExprRef]] = []
        self.depth = 0
        added = {e.name: e.interval for e in extras if e.interval is not None}
        added[the_step.decl().name()] = (0, len(self.transitions))
        truths = {e.name for e in extras if e.interval is None}
        try:
            self._encode(Coding(self.variables, added, truths))
        except Unbounded:                                # a quotient or a product without bounds
            self._encode(Coding(self.variables, added, truths, over_integers=True))
        self.solver = self.coding.solver()
        if anywhere:
            self.solver.add(*(self.at(self.coding.truth(x), 0) for x in self._within()))
            return
        self.solver.add(z3.Or(*(self.at(self.coding.truth(_is(self.variables, s)), 0) for s in instance.initial)))
        for extra in self.extras:
            self.solver.add(self.frame(0)[extra.name] == self.coding.value(extra.first, extra.name))

    def _within(self) -> list[z3.BoolRef]:
        """That every variable is in its domain."""
        found = [inside(v, v.term) for v in self.variables.values()]
        for extra in self.extras:
            if extra.interval is not None:
                low, high = extra.interval
                found.append(z3.And(z3.Int(extra.name) >= low, z3.Int(extra.name) <= high))
        return found

    def _encode(self, coding: Coding) -> None:
        self.coding = coding
        self.guards = [coding.truth(x.guard) for x in self.transitions]
        self.updates = [{n: coding.value(v, n) for n, v in x.updates.items()} for x in self.transitions]
        self.wrong = [w for x in self.transitions if not z3.is_false(w := self._wrong(x))]
        self.following = {e.name: coding.value(e.following, e.name) for e in self.extras}

    def _wrong(self, x: Transition) -> z3.BoolRef:
        """That a transition is a fault of the model: it is declared one, or a value leaves its domain."""
        if x.fault:
            return self.coding.truth(x.guard)
        outside = [z3.Not(inside(self.variables[n], v)) for n, v in x.updates.items()]
        return self.coding.truth(z3.simplify(z3.And(x.guard, z3.Or(*outside)))) if outside else z3.BoolVal(False)

    # -------------------------------------------------------------------------------------------- frames
    def frame(self, k: int) -> dict[str, z3.ExprRef]:
        """The constants of state ``k`` and of the step from it, by the names of the variables."""
        while len(self.frames) <= k:
            number = len(self.frames)
            constants = {n: self.coding.constant(n) for n in self.names}
            self.frames.append({n: z3.Const(f"{n}@{number}", c.sort()) for n, c in constants.items()})
        return self.frames[k]

    def takes(self, k: int, number: int) -> z3.BoolRef:
        """That the step from state ``k`` is a transition."""
        return self.frame(k)[the_step.decl().name()] == number

    def at(self, term: z3.ExprRef, k: int) -> z3.ExprRef:
        """A coded term over the current state and step, for state ``k``."""
        here = self.frame(k)
        return z3.substitute(term, *((self.coding.constant(n), here[n]) for n in self.names))

    def extend(self) -> None:
        """One step more."""
        k, solver = self.depth, self.solver
        here, there = self.frame(k), self.frame(k + 1)
        step = here[the_step.decl().name()]
        solver.add(step >= 0, step < len(self.transitions))
        new: dict[str, z3.ExprRef] = {n: here[n] for n in self.variables}
        for number, (guard, updates) in enumerate(zip(self.guards, self.updates, strict=True)):
            taken = self.takes(k, number)
            solver.add(z3.Implies(taken, self.at(guard, k)))
            for name, value in updates.items():
                new[name] = z3.If(taken, self.at(value, k), new[name])
        new |= {name: self.at(value, k) for name, value in self.following.items()}
        for name, value in new.items():
            solver.add(there[name] == value)
        self.depth += 1

    def fault(self, k: int) -> z3.BoolRef:
        """That some transition is a fault of the model in state ``k``."""
        return z3.Or(*(self.at(w, k) for w in self.wrong))

    def same(self, i: int, k: int, extras: bool = False) -> z3.BoolRef:
        """That states ``i`` and ``k`` are one and the same; with ``extras``, in what the engine has added, too."""
        one, other = self.frame(i), self.frame(k)
        names = [*self.variables, *(e.name for e in self.extras if extras)]
        return z3.And(*(one[n] == other[n] for n in names))

    # ------------------------------------------------------------------------------------------- answers
    def state(self, model: z3.ModelRef, k: int) -> dict[str, int | bool]:
        """State ``k`` of a solution."""
        here = self.frame(k)
        return {n: value_of(model.eval(here[n], model_completion=True)) for n in self.variables}

    def taken(self, model: z3.ModelRef, steps: Iterable[int]) -> tuple[Transition, ...]:
        """The transitions of steps of a solution."""
        name = the_step.decl().name()
        numbers = (value_of(model.eval(self.frame(k)[name], model_completion=True)) for k in steps)
        return tuple(self.transitions[n] for n in numbers)


def by_step(values: Sequence[z3.ExprRef]) -> z3.ExprRef:
    """The value that belongs to the transition that is taken; ``values`` has one for each transition."""
    found = values[-1]
    for number in reversed(range(len(values) - 1)):
        if not z3.eq(found, values[number]):
            found = z3.If(the_step == number, values[number], found)
    return found


def value_of(term: z3.ExprRef) -> int | bool:
    """A value of a solution as a code."""
    if z3.is_bool(term):
        return bool(z3.is_true(term))
    return int(term.as_signed_long() if z3.is_bv_value(term) else term.as_long())


def _is(variables: Mapping[str, Variable], state: State) -> z3.BoolRef:
    terms = []
    for name, code in state.items():
        term = variables[name].term
        terms.append(term == (z3.BoolVal(bool(code)) if z3.is_bool(term) else z3.IntVal(int(code))))
    return z3.And(*terms)
