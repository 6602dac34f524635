# SPDX-License-Identifier: GPL-2.0-only
"""What a run shows about goals and about what stays possible, worked out on the plain interpreter alone.

For replay: a cycle that an engine or a file claims is looked at step by step, and its fairness is worked out again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from schedproof.model.concrete import Taken, steps
from schedproof.model.instance import Instance
from schedproof.model.transition import State
from schedproof.property import Eventually

MOST_BEYOND = 20_000           # states that are gone through to see that there is no way on


class Due:
    """Follows a run: whether the goal has been asked for and not been reached, its current state included."""

    def __init__(self, instance: Instance, kind: Eventually):
        self.instance, self.kind = instance, kind
        self.pending = kind.after is None

    def at(self, state: State) -> bool:
        """Whether the goal is due in this state, which must be the next one of the run."""
        asked = self.pending or (self.kind.after is not None and bool(self.instance.evaluate(self.kind.after, state)))
        self.pending = asked and not self.instance.evaluate(self.kind.goal, state)
        return self.pending


def complaint(instance: Instance, kind: Eventually, states: Sequence[State], taken: Sequence[Taken],
              length: int) -> str:
    """Why a run does not break ``kind``, or an empty text when it does.

    ``states`` are those before each step and the one in the end; the steps from number ``length`` on repeat for ever.
    Where none does, the run has to end there.
    """
    due = Due(instance, kind)
    dues = [due.at(s) for s in states]
    if not dues[-1]:
        return "the goal is not due in the end"
    around, cycle = states[length:-1], taken[length:]
    if not cycle:
        if any(True for _ in steps(instance, states[-1])):
            return "the run does not end here: something can still happen"
        return "" if instance.is_final(states[-1]) else "the state in the end is not declared final"
    if not all(dues[length:]):
        return "the goal is reached in the part that repeats"
    if not any(time_passes(instance, kind, t) for t in cycle):
        return "no time passes in the part that repeats"
    return unfair(instance, around, cycle)


def time_passes(instance: Instance, kind: Eventually, taken: Taken) -> bool:
    """Whether a step takes time: the cost that the property names, else any; always in a model without costs."""
    if kind.cost:
        return taken.costs.get(kind.cost, 0) > 0
    if not any(event.costs for event in instance.events):
        return True
    return any(cost > 0 for cost in taken.costs.values())


def unfair(instance: Instance, around: Sequence[State], cycle: Sequence[Taken]) -> str:
    """What going round for ever is unfair to, or an empty text: it is taken nowhere though it must be."""
    taken = {(t.action, t.args) for t in cycle}
    for event in instance.events:
        fair = instance.model.marks[event.action].fair
        if fair is None or (event.action, event.labels) in taken:
            continue
        enabled = [any(True for _ in steps(instance, s, event.action, event.labels)) for s in around]
        if all(enabled) if fair == "weak" else any(enabled):
            label = f"{event.action}({', '.join(event.labels)})"
            return f"the part that repeats is not fair: {label}, which is {fair}ly fair, can happen and never does"
    return ""


def note(kind: Eventually, repeats: bool, fair: bool) -> str:
    """What the steps of a run without the goal do not show by themselves."""
    if not repeats:
        return "nothing can happen after the last step, and the goal has not been reached"
    return "the goal is never reached" + (", and the run is fair to every action that is declared fair" if fair else "")


def way_on(instance: Instance, formula: Callable[..., Any], start: State,
           most: int = MOST_BEYOND) -> tuple[Literal["some", "none", "unknown"], int]:
    """Whether a state in which ``formula`` holds can be reached, and how many states were looked at.

    ``unknown`` after ``most`` states.
    """
    names = tuple(instance.variables)
    seen = {tuple(start[n] for n in names)}
    todo: list[State] = [start]
    for state in todo:
        if instance.evaluate(formula, state):
            return "some", len(seen)
        for taken in steps(instance, state):
            key = tuple(taken.state[n] for n in names)
            if key not in seen:
                seen.add(key)
                todo.append(taken.state)
        if len(seen) > most:
            return "unknown", len(seen)
    return "none", len(seen)
