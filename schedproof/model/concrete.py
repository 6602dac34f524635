# SPDX-License-Identifier: GPL-2.0-only
"""Single steps of an instance on the plain interpreter: for replay and for the reference engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from schedproof.lang.interpret import Blocked, Interpreter, Memory, Oracle
from schedproof.model.threads import END, START, Threads
from schedproof.model.transition import State

if TYPE_CHECKING:
    from schedproof.model.instance import Instance


@dataclass(frozen=True)
class Taken:
    """One step that can be taken: what it is called, the state behind it, its costs, the programs that ran."""

    action: str
    args: tuple[str, ...]
    choices: tuple[str, ...]
    sites: tuple[str, str]
    state: State
    costs: dict[str, int]
    calls: tuple[tuple[str, int], ...]


def steps(instance: Instance, state: State, action: str | None = None, args: tuple[str, ...] | None = None,
          ) -> Iterator[Taken]:
    """Every step from a state, or those of one action; the same step may come twice where choices do not matter."""
    memory = instance.memory(state)
    for what in instance.events:
        if (action is not None and what.action != action) or (args is not None and what.labels != args):
            continue
        oracle: Oracle | None = Oracle()
        while oracle is not None:
            taken = _one(instance, memory, state, what, oracle)
            if taken is not None:
                yield taken
            oracle = oracle.following()


def _one(instance: Instance, memory: Memory, state: State, what: Event, oracle: Oracle) -> Taken | None:
    interpreter = Interpreter(instance.world, {**memory, **instance.current(what)}, oracle)
    threads: Threads = instance.threads
    sites = ("", "")
    try:
        if not what.thread:
            done = interpreter.run(what.action, what.args)
        else:
            here = threads.site(what, memory)
            if here == END:
                return None
            resume, frames = ((), ()) if here == START else threads.enter(what, here, memory)
            done = interpreter.run(what.action, what.args, resume, frames)
            there = threads.leave(what, here, done.site, done.frames, interpreter.memory)
            sites = (here, there)
    except Blocked:
        return None
    interpreter.check_domains()
    instance.check_transient(what, interpreter.memory)
    costs = {unit: instance.cost_now(what, unit, memory) for unit in what.costs}
    return Taken(what.action, what.labels, done.labels, sites, instance.state(interpreter.memory), costs, done.calls)


@dataclass(frozen=True)
class Event:
    """An action or a thread with its arguments: what can be asked to make a step."""

    action: str
    args: tuple[int, ...]
    labels: tuple[str, ...]
    thread: bool
    costs: tuple[str, ...]
