# SPDX-License-Identifier: GPL-2.0-only
"""A run as a picture sees it: every state with its values, when each step happens, and what each object is doing.

What an object is doing is told by its model's ``lanes``. Without them there is nothing but values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any

from schedproof.errors import InputError
from schedproof.report.text import wait_of
from schedproof.trace import Trace

State = Mapping[str, str]
IDLE = ("NULL", "nobody", "none")             # how a pointer is shown that points to nothing


@dataclass(frozen=True)
class Span:
    """What one object is doing from one state to another (of which there is one more than steps)."""

    what: str
    first: int
    last: int


@dataclass(frozen=True)
class Picture:
    """``states`` has one state more than there are steps; ``times`` says how much of the cost each comes after."""

    trace: Trace
    states: tuple[State, ...]
    times: tuple[int, ...]
    lanes: Mapping[str, tuple[Span, ...]]
    cpus: Mapping[int, tuple[Span, ...]]          # what runs on each: the name of an object, or "" for nothing
    wait: range                                   # the steps of the wait


def picture(trace: Trace) -> Picture:
    """The states, times and lanes of a run."""
    states: list[State] = [dict(trace.initial)]
    times = [0]
    for step in trace.steps:
        states.append({**states[-1], **{name: new for name, (_, new) in step.changes.items()}})
        times.append(times[-1] + step.cost)
    model = model_of(trace)
    lanes = {} if model is None else {
        name: _spans([_doing(rules, name, state) for state in states]) for name, rules in _objects(model.lanes, trace)}
    cpus = {} if model is None else {
        number: _spans([_occupant(state.get(variable, "")) for state in states])
        for number, variable in model.cpu_lanes.items() if variable in trace.initial}
    return Picture(trace, tuple(states), tuple(times), lanes, cpus, wait_of(trace))


def model_of(trace: Trace) -> Any:
    """The model class of a trace, or None where the suite in use has none of that name."""
    from schedproof.registry import find_property

    try:
        return find_property(f"{trace.model}:{trace.property}")[1].model
    except InputError:
        return None


def _objects(lanes: Mapping[str, Sequence[tuple[str, str]]], trace: Trace) -> Iterator[tuple[str, Any]]:
    """The objects that have a lane, in the order in which the patterns and the variables name them."""
    names = dict.fromkeys(n for v in trace.initial for n in re.findall(r"\[([^\]]+)\]$", v))
    for pattern, rules in lanes.items():
        for name in names:
            if fnmatchcase(name, pattern):
                yield name, rules


def _doing(rules: Sequence[tuple[str, str]], name: str, state: State) -> str:
    return next((word for word, condition in rules if all(_holds(part.strip().replace("{}", name), state)
                                                          for part in condition.split("&") if part.strip())), "")


def _holds(test: str, state: State) -> bool:
    variable, unequal, value = test.partition("!=")
    if not unequal:
        variable, _, value = test.partition("=")
    if variable.strip() not in state:
        return False
    return (state[variable.strip()] == value.strip()) != bool(unequal)


def _occupant(shown: str) -> str:
    return "" if shown in IDLE else shown


def _spans(words: Sequence[str]) -> tuple[Span, ...]:
    found, at = [], 0
    for word, run in groupby(words):
        length = len(list(run))
        found.append(Span(word, at, at + length - 1))
        at += length
    return tuple(found)
