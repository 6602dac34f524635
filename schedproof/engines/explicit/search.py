# SPDX-License-Identifier: GPL-2.0-only
"""Breadth-first search of the reachable states, level by level, in chunks between which budgets are checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from schedproof.engines.explicit import kernels as k
from schedproof.engines.explicit.compile import Compiled
from schedproof.engines.explicit.kernels import Bytes, Places, Words
from schedproof.errors import BudgetExceeded
from schedproof.verdict import Counts

CHUNK = 1 << 15                # states between two looks at the clock: some 10 ms
FIRST_STATES, FIRST_SLOTS = 1 << 12, 1 << 13
LARGEST_PLACE = (1 << 31) - 1
PROGRESS_SECONDS = 0.5
OBSERVATIONS = 7           # observations that fit a state's flags beside TIMELY


class Meter:
    """What an engine may still use, and whom it tells how far it is.

    ``seconds`` and ``memory`` (bytes) are the ceilings. ``check`` and ``room`` raise BudgetExceeded with the
    reason; ``counts`` then says how far it came.
    """

    def __init__(self, seconds: float | None, memory: int, progress: Callable[[Counts], None] | None):
        self.start = time.perf_counter()
        self.seconds, self.memory, self.progress = seconds, memory, progress
        self.counts = Counts()
        self._told = self.start

    def note(self, **counts: Any) -> None:
        """Record how far the work is. Tells ``progress`` if that was last told long enough ago."""
        now = time.perf_counter()
        self.counts = replace(self.counts, **counts, seconds=now - self.start - self.counts.compile_seconds)
        if self.progress is not None and now - self._told >= PROGRESS_SECONDS:
            self._told = now
            self.progress(self.counts)

    def check(self) -> None:
        if self.seconds is not None and time.perf_counter() - self.start > self.seconds:
            raise BudgetExceeded(f"the budget of {self.seconds:g} s is spent")

    def room(self, size: int) -> None:
        """Raise BudgetExceeded when ``size`` bytes are more than there may be."""
        if size > self.memory:
            raise BudgetExceeded(f"{size / 1e9:.2f} GB are needed, more than the ceiling of {self.memory / 1e9:.2f} GB")


@dataclass
class Space:
    """The states found: their words, parents and flags by place; the first ``expanded`` were expanded."""

    compiled: Compiled
    states: Words
    parents: Places
    flags: Bytes
    table: Places
    first: Words
    enabled: Bytes
    info: Words = field(default_factory=lambda: np.zeros(k.REGISTERS, np.int64))
    depth: int = 0

    @property
    def count(self) -> int:
        return int(self.info[k.TAIL])

    @property
    def expanded(self) -> int:
        return int(self.info[k.HEAD])

    @property
    def event(self) -> int:
        return int(self.info[k.EVENT])

    @property
    def size(self) -> int:
        """Bytes that the search holds."""
        return self.compiled.held + sum(a.nbytes for a in (self.states, self.parents, self.flags, self.table))

    def line(self, place: int) -> list[int]:
        """The places on the shortest way from an initial state to this one."""
        found = [place]
        while (place := int(self.parents[place])) >= 0:
            found.append(place)
        return found[::-1]

    def way(self, place: int) -> tuple[int, list[int]]:
        """The initial word of that way, and the numbers of its transitions."""
        words = [int(self.states[p]) for p in self.line(place)]
        return words[0], [self.compiled.transition_between(a, b) for a, b in zip(words, words[1:], strict=False)]


def explore(compiled: Compiled, initial: Sequence[int], meter: Meter, stop: int = 0, may_stick: int = -1,
            marked: int = 0) -> Space:
    """All states reachable from the initial words. ``Space.event`` is DONE or what ended the search early.

    ``stop``, ``may_stick`` and ``marked`` are masks of observations, as in ``kernels.expand``.
    Raises BudgetExceeded.
    """
    space = _begin(compiled, initial)
    out, slots = np.empty(compiled.width, np.int64), np.empty(compiled.width, np.uint64)
    level_end = space.count
    while space.expanded < space.count:
        limit = min(space.expanded + CHUNK, level_end)
        event = k.expand(compiled.successors, compiled.observe, space.states, space.parents, space.flags, space.table,
                         limit, out, slots, space.enabled, space.first, stop, may_stick, marked, space.info)
        if event == k.NEED_ROOM:
            _grow_states(space, meter)
        elif event == k.NEED_TABLE:
            _grow_table(space, meter)
        elif event != k.DONE:
            break
        if space.expanded == level_end < space.count:
            level_end = space.count
            space.depth += 1
        meter.note(states=space.count, transitions=int(space.info[k.TRANSITIONS]), depth=space.depth)
        meter.check()
    return space


def _begin(compiled: Compiled, initial: Sequence[int]) -> Space:
    words = np.array(sorted(set(initial)), np.int64)
    room = max(FIRST_STATES, 2 * words.size)
    slots = max(FIRST_SLOTS, 1 << (4 * words.size).bit_length())
    space = Space(compiled, np.empty(room, np.int64), np.full(room, -1, np.int32), np.zeros(room, np.uint8),
                  np.full(slots, -1, np.int32), np.full(OBSERVATIONS, -1, np.int64),
                  np.zeros(max(1, len(compiled.transitions)), np.uint8))
    space.states[:words.size] = words
    space.info[k.TAIL] = words.size
    k.refill(space.table, space.states, words.size)
    return space


def _grow_states(space: Space, meter: Meter) -> None:
    """Half as much room again: what is added is not touched, so it costs nothing before it is used."""
    count, room = space.count, max(space.states.size * 3 // 2, space.count + len(space.enabled) + 1)
    if room > LARGEST_PLACE:
        raise BudgetExceeded("there are more than 2**31 states")
    meter.room(space.size + (8 + 4 + 1) * (room - space.states.size))
    for name in ("states", "parents", "flags"):
        old = getattr(space, name)
        new = np.empty(room, old.dtype)
        new[:count] = old[:count]
        setattr(space, name, new)


def _grow_table(space: Space, meter: Meter) -> None:
    slots = space.table.size
    while slots * 5 // 8 < space.count + len(space.enabled):
        slots *= 2
    meter.room(space.size - space.table.nbytes + 4 * slots)
    space.table = np.empty(0, np.int32)            # given back first: the states are enough to make it again
    space.table = np.full(slots, -1, np.int32)
    k.refill(space.table, space.states, space.count)
