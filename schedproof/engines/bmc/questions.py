# SPDX-License-Identifier: GPL-2.0-only
"""What is asked of an unrolling: that a run of its depth breaks the property, at its end or by going round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import z3

from schedproof.engines.bmc.unroll import Extra, Unrolling, by_step
from schedproof.model.transition import Transition
from schedproof.property import Eventually, Invariant, Property, Reachable, Within, WorstCase

WAITED, PENDING = "waited", "pending"


class Question:
    """Base. ``extras`` are the variables that it adds; ``loops`` says whether it asks for cycles, too."""

    extras: tuple[Extra, ...] = ()
    loops = False

    def here(self, run: Unrolling, k: int) -> z3.BoolRef:
        """That state ``k`` shows it."""
        return z3.BoolVal(False)

    def around(self, run: Unrolling, i: int, k: int) -> z3.BoolRef:
        """That going round from state ``i`` to state ``k``, which is the same, shows it."""
        return z3.BoolVal(False)


class Sees(Question):
    """A formula holds in some state."""

    def __init__(self, formula: z3.BoolRef):
        self.formula = formula

    def here(self, run: Unrolling, k: int) -> z3.BoolRef:
        return run.at(run.coding.truth(self.formula), k)


class Waits(Question):
    """A wait costs more than a bound, or goes on for ever (``bound`` None: only that)."""

    loops = True

    def __init__(self, waiting: z3.BoolRef, costs: Sequence[z3.ArithRef], bound: int | None):
        self.waiting, self.bound = waiting, bound
        self.cost = by_step(list(costs))
        if bound is not None:
            # What the wait has cost so far; beyond the bound it makes no difference how much.
            clock, top = z3.Int(WAITED), z3.IntVal(bound + 1)
            more = clock + self.cost
            following = z3.If(waiting, z3.If(more > bound, top, more), z3.IntVal(0))
            self.extras = (Extra(WAITED, (0, bound + 1), z3.IntVal(0), following),)

    def here(self, run: Unrolling, k: int) -> z3.BoolRef:
        if self.bound is None:
            return z3.BoolVal(False)
        return run.at(run.coding.truth(z3.Int(WAITED) > self.bound), k)

    def around(self, run: Unrolling, i: int, k: int) -> z3.BoolRef:
        waiting, paid = run.coding.truth(self.waiting), run.coding.truth(self.cost > 0)
        return z3.And(run.same(i, k), *(run.at(waiting, j) for j in range(i, k)),
                      z3.Or(*(run.at(paid, j) for j in range(i, k))))


class Never(Question):
    """A fair run in which time diverges, or one that ends, never reaches the goal once ``after`` has held."""

    loops = True

    def __init__(self, goal: z3.BoolRef, after: z3.BoolRef | None, costs: Sequence[z3.ArithRef] | None,
                 transitions: Sequence[Transition], final: z3.BoolRef | None):
        self.goal, self.transitions = goal, transitions
        self.final = z3.BoolVal(False) if final is None else final     # elsewhere a run must not end
        self.cost = None if costs is None else by_step(list(costs))
        # Whether the goal is still due: this state included, all states before it.
        begun = z3.BoolVal(True) if after is None else after
        was = z3.Bool(PENDING)
        self.due = z3.And(z3.Or(was, begun) if after is not None else was, z3.Not(goal))
        first = z3.BoolVal(after is None)
        self.extras = (Extra(PENDING, None, first, self.due),)

    def here(self, run: Unrolling, k: int) -> z3.BoolRef:
        """That the run ends here: nothing can happen any more, and the goal is still due."""
        over = z3.And(run.coding.truth(self.final), z3.Not(z3.Or(*run.guards)))
        return z3.And(run.at(run.coding.truth(self.due), k), run.at(over, k))

    def around(self, run: Unrolling, i: int, k: int) -> z3.BoolRef:
        goal = run.coding.truth(self.goal)
        parts = [run.same(i, k), run.at(run.coding.truth(self.due), i)]
        parts += [z3.Not(run.at(goal, j)) for j in range(i, k)]
        if self.cost is not None:
            paid = run.coding.truth(self.cost > 0)
            parts.append(z3.Or(*(run.at(paid, j) for j in range(i, k))))
        return z3.And(*parts, *self._fair(run, i, k))

    def _fair(self, run: Unrolling, i: int, k: int) -> list[z3.BoolRef]:
        """That going round is unfair to no class: an action with its objects, as fair as its fairest transition."""
        classes: dict[tuple[str, tuple[str, ...]], list[int]] = {}
        for number, x in enumerate(self.transitions):
            classes.setdefault((x.action, x.args), []).append(number)
        found = []
        for numbers in classes.values():
            how = {self.transitions[n].fair for n in numbers}
            if how == {None}:
                continue
            taken = [run.takes(j, n) for j in range(i, k) for n in numbers]
            off = [z3.Not(z3.Or(*(run.at(run.guards[n], j) for n in numbers))) for j in range(i, k)]
            found.append(z3.Or(*taken, z3.And(*off) if "strong" in how else z3.Or(*off)))
        return found


def question_of(instance: Any, property: Property, transitions: Sequence[Transition]) -> Question:
    """What would break the property (for ``Reachable``: what shows it)."""
    kind = property.kind
    if isinstance(kind, Invariant):
        return Sees(z3.Not(instance.predicate(kind.formula)))
    if isinstance(kind, Reachable):
        return Sees(instance.predicate(kind.formula))
    if isinstance(kind, Within | WorstCase):
        bound = kind.bound if isinstance(kind, Within) else None
        costs = [x.costs.get(kind.cost, z3.IntVal(0)) for x in transitions]
        return Waits(instance.predicate(kind.waiting), costs, bound(instance.view) if callable(bound) else bound)
    assert isinstance(kind, Eventually)
    units = {unit for x in transitions for unit in x.costs}
    timed = [sum((c for u, c in x.costs.items() if not kind.cost or u == kind.cost), start=z3.IntVal(0))
             for x in transitions] if units else None
    after = None if kind.after is None else instance.predicate(kind.after)
    return Never(instance.predicate(kind.goal), after, timed, transitions, instance.final)
