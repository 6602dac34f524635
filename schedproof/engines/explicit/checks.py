# SPDX-License-Identifier: GPL-2.0-only
"""What makes a model meaningless, found while its states are searched: each becomes a located ModelError."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from schedproof.engines.explicit import kernels as k
from schedproof.engines.explicit.compile import Compiled
from schedproof.engines.explicit.path import Path, evaluate, path_to
from schedproof.engines.explicit.search import Space
from schedproof.errors import ModelError
from schedproof.model.domains import Range
from schedproof.model.transition import State, Transition, Variable

Tell = Callable[[Path], object]        # makes the trace of a run that leads to an error
MOST_SHOWN = 24


def pack_initial(instance: Any, compiled: Compiled) -> list[int]:
    """The words of the initial states. Raises ModelError when there is none or a value is outside its domain."""
    if not instance.initial:
        raise ModelError(f"{instance.name} has no initial state", hint="no assignment satisfies @init")
    words = []
    for state in instance.initial:
        try:
            words.append(compiled.pack(state))
        except KeyError as error:
            name = str(error.args[0])
            value = state.get(name, "missing")
            raise ModelError(f"the initial value of {name} is {value}, which is not in its domain",
                             hint=f"{name} may be {_allowed(instance.variables[name])}") from None
    return words


def require_sound(instance: Any, space: Space, tell: Tell) -> None:
    """Raise ModelError if the search met a fault, a wrong update, a negative cost, or a stuck state."""
    if space.event == k.LEFT:
        _left_domain(instance, space, tell)
    if space.event == k.NEGATIVE_COST:
        _negative_cost(instance, space, tell)
    if space.event == k.STUCK:
        path = path_to(space, _event_place(space))
        raise ModelError(f"nothing can happen in the reachable state {show_state(instance, _event_state(space))}",
                         hint=_hint("declare it with @final, or add the action that goes on from there", path),
                         trace=tell(path))


def time_cannot_pass(instance: Any, space: Space, place: int, tell: Tell) -> ModelError:
    """The error for a state from which no step that costs anything can be reached."""
    path = path_to(space, place)
    state = space.compiled.unpack(int(space.states[place]))
    return ModelError(f"time cannot pass from the reachable state {show_state(instance, state)}",
                      hint=_hint("no step with a cost can follow: declare it with @final, or add such a step", path),
                      trace=tell(path))


def dead_actions(instance: Any, space: Space) -> list[str]:
    """The actions that are enabled in no reachable state and may not be, in the order of the instance."""
    alive = {t.action for t, seen in zip(space.compiled.transitions, space.enabled, strict=False) if seen}
    return [a for a in dict.fromkeys(t.action for t in space.compiled.transitions)
            if a not in alive and a not in instance.dead]


def show_state(instance: Any, state: State) -> str:
    """A state in one line, cut off where it is long."""
    shown = [f"{n}={instance.variables[n].show(code)}" for n, code in state.items()]
    return ", ".join(shown[:MOST_SHOWN]) + (", …" if len(shown) > MOST_SHOWN else "")


def _event_place(space: Space) -> int:
    return int(space.info[k.EVENT_STATE])


def _event_state(space: Space) -> dict[str, int | bool]:
    return space.compiled.unpack(int(space.states[_event_place(space)]))


def _left_domain(instance: Any, space: Space, tell: Tell) -> None:
    transition = space.compiled.transitions[int(space.info[k.EVENT_TRANSITION])]
    path = path_to(space, _event_place(space))
    if transition.fault:
        raise ModelError(f"{transition.label}: {transition.fault}", transition.loc.file, transition.loc.line,
                         _hint(f"met in the reachable state {show_state(instance, _event_state(space))}", path),
                         tell(path))
    name, value = _wrong_update(transition, instance.variables, _event_state(space))
    allowed = _allowed(instance.variables[name])
    raise ModelError(f"{transition.label} sets {name} to {value}, which is not in its domain {allowed}",
                     transition.loc.file, transition.loc.line,
                     _hint(f"widen the domain of {instance.variables[name].base}, or guard the assignment", path),
                     tell(path))


def _wrong_update(transition: Transition, variables: Mapping[str, Variable], state: State) -> tuple[str, str]:
    """The first variable that the transition gives a value outside its domain, and that value as text."""
    for name, term in transition.updates.items():
        value = evaluate(term, variables, state)
        if value is None:
            return name, f"{term}, which divides by zero"
        if not _inside(variables[name], value):
            return name, str(value)
    raise AssertionError(f"{transition.label} was reported to leave a domain and does not")


def _negative_cost(instance: Any, space: Space, tell: Tell) -> None:
    state = _event_state(space)
    for transition in space.compiled.transitions:
        if evaluate(transition.guard, instance.variables, state) is not True:
            continue
        for name, term in transition.costs.items():
            value = evaluate(term, instance.variables, state)
            if value is not None and value < 0:
                path = path_to(space, _event_place(space))
                raise ModelError(f"{transition.label} costs {value} {name}", transition.loc.file, transition.loc.line,
                                 _hint("a cost must not be negative", path), tell(path))
    raise AssertionError("a negative cost was reported and there is none")


def _inside(variable: Variable, value: int | bool) -> bool:
    domain = variable.domain
    if isinstance(domain, Range) and isinstance(domain.low, int) and isinstance(domain.high, int):
        return domain.low <= value <= domain.high
    return value in (domain.codes() or ())


def _allowed(variable: Variable) -> str:
    domain = variable.domain
    if isinstance(domain, Range):
        return f"{domain.low}..{domain.high}"
    codes: Iterable[int | bool] = domain.codes() or ()
    return "{" + ", ".join(variable.show(c) for c in codes) + "}"


def _hint(text: str, path: Path) -> str:
    return text if not path.free else f"{text}; the run rests on undeclared values: {', '.join(path.free)}"
