# SPDX-License-Identifier: GPL-2.0-only
"""A run that shows a verdict, as an engine finds it: before it is told as a trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import z3

from schedproof.engines.explicit.search import Space
from schedproof.model.transition import State, Transition, Variable


@dataclass(frozen=True)
class Path:
    """From ``initial`` along ``stem``, then along ``cycle`` for ever (when there is one).

    ``total`` is the cost of the wait that is shown; with a cycle what one round adds; None without a cost.
    """

    initial: dict[str, int | bool]
    stem: tuple[Transition, ...] = ()
    cycle: tuple[Transition, ...] = ()
    total: int | None = None

    @property
    def free(self) -> tuple[str, ...]:
        """The undeclared values that the run rests on, each once."""
        return tuple(dict.fromkeys(reason for t in self.stem + self.cycle for reason in t.free))


def path_to(space: Space, place: int, steps: Iterable[int] = (), cycle: Iterable[int] = (),
            total: int | None = None) -> Path:
    """The shortest run to the state at ``place``, then the transitions with the numbers in ``steps`` and ``cycle``."""
    word, numbers = space.way(place)
    transitions = space.compiled.transitions
    return Path(space.compiled.unpack(word), tuple(transitions[n] for n in (*numbers, *steps)),
                tuple(transitions[n] for n in cycle), total)


def evaluate(term: z3.ExprRef, variables: Mapping[str, Variable], state: State) -> int | bool | None:
    """The value of a term in a state, by z3; None where z3 leaves it open (a division by zero)."""
    pairs = [(v.term, z3.BoolVal(bool(state[n])) if z3.is_bool(v.term) else z3.IntVal(int(state[n])))
             for n, v in variables.items()]
    found = z3.simplify(z3.substitute(term, *pairs))
    if z3.is_int_value(found):
        return int(found.as_long())
    return z3.is_true(found) if z3.is_true(found) or z3.is_false(found) else None
