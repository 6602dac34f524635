# SPDX-License-Identifier: GPL-2.0-only
"""The loops of the breadth-first search, compiled by Numba.

States are packed words in the order in which they were found; everything else speaks of a state by its place in
that order. The hash table holds places (32 bits), -1 where empty, so that it takes half the room of a table of
words and gives back what the parents and the graph need.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from schedproof.engines.explicit.jit import call_observe, call_successors, compiled, prefetch

Words = NDArray[np.int64]
Places = NDArray[np.int32]
Bytes = NDArray[np.uint8]
Slots = NDArray[np.uint64]

# What ended a chunk, and the slots of the search's registers.
DONE, NEED_ROOM, NEED_TABLE, LEFT, STUCK, NEGATIVE_COST, FOUND = range(7)
(HEAD, TAIL, TRANSITIONS, SEEN, MARKED_EDGES, TIMELESS_EDGES, EVENT, EVENT_STATE, EVENT_TRANSITION,
 REGISTERS) = range(10)
TIMELY = 1                     # flag of a state: some step from it has a positive cost; observations above it


@compiled
def mix(word: int) -> np.uint64:
    """Spread a packed state over 64 bits (the finaliser of MurmurHash3)."""
    x = np.uint64(word)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xFF51AFD7ED558CCD)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> np.uint64(33))


@compiled
def refill(table: Places, states: Words, count: int) -> None:
    """Fill an empty table with the first ``count`` states, which are all different."""
    mask = np.uint64(table.size - 1)
    for place in range(count):
        i = mix(states[place]) & mask
        while table[i] >= 0:
            i = (i + np.uint64(1)) & mask
        table[i] = place


@compiled
def look_up(table: Places, states: Words, word: int) -> Any:
    """The place of a state, or -1."""
    mask = np.uint64(table.size - 1)
    i = mix(word) & mask
    while table[i] >= 0:
        if states[table[i]] == word:
            return table[i]
        i = (i + np.uint64(1)) & mask
    return -1


@compiled
def look_ahead(out: Words, count: int, table: Places, states: Words, slots: Slots) -> None:
    """Find the slots of the successors in ``out`` and ask for the memory that inserting them will look at.

    The search waits for memory most of the time, and this lets it wait for all successors of a state at once.
    """
    mask = np.uint64(table.size - 1)
    table_address, states_address = table.ctypes.data, states.ctypes.data
    for k in range(count):
        slots[k] = mix(out[3 * k]) & mask
        prefetch(table_address + 4 * np.int64(slots[k]))
    for k in range(count):
        place = table[slots[k]]
        if place >= 0:
            prefetch(states_address + 8 * np.int64(place))


@compiled
def expand(successors: int, observe: int, states: Words, parents: Places, flags: Bytes, table: Places,
           limit: int, out: Words, slots: Slots, enabled: Bytes, first: Words, stop: int, may_stick: int,
           marked: int, info: Words) -> int:
    """Expand the states from ``info[HEAD]`` on up to ``limit``, or until something ends it; returns what did.

    ``first[i]`` becomes the first place where observation i holds. The search ends at a state with an
    observation of ``stop``, at one without successors unless it has one of ``may_stick`` (-1: never), and at
    wrong costs and updates. Transitions of states with an observation of ``marked`` are counted apart.
    """
    mask = np.uint64(table.size - 1)
    most = table.size * 5 // 8
    head, tail = info[HEAD], info[TAIL]
    transitions, seen, edges, timeless = info[TRANSITIONS], info[SEEN], info[MARKED_EDGES], info[TIMELESS_EDGES]
    target = out.ctypes.data
    event = DONE
    while head < limit:
        word = states[head]
        observed = call_observe(observe, word)
        if observed & ~seen:
            for bit in range(first.size):
                if (observed & ~seen) >> bit & 1:
                    first[bit] = head
            seen |= observed
        flags[head] = observed << 1
        if observed & stop:
            event = FOUND
            break
        count = call_successors(successors, word, target)
        if tail + count > states.size:
            event = NEED_ROOM
            break
        if tail + count > most:
            event = NEED_TABLE
            break
        if count == 0 and may_stick >= 0 and not observed & may_stick:
            event = STUCK
            break
        look_ahead(out, count, table, states, slots)
        marks = 0
        for k in range(count):
            following, number = out[3 * k], out[3 * k + 1]
            marks |= number >> 32
            number &= 0xFFFFFFFF
            enabled[number] = 1
            if following < 0:
                event, info[EVENT_TRANSITION] = LEFT, number
                break
            i = slots[k]
            while table[i] >= 0:
                if states[table[i]] == following:
                    break
                i = (i + np.uint64(1)) & mask
            else:
                table[i] = tail
                states[tail] = following
                parents[tail] = head
                tail += 1
        if event == LEFT:
            break
        if marks & 2:
            event = NEGATIVE_COST
            break
        transitions += count
        if observed & marked:
            edges += count
        if marks & 1:
            flags[head] |= TIMELY
        else:
            timeless += count
        head += 1
    info[HEAD], info[TAIL], info[TRANSITIONS], info[SEEN] = head, tail, transitions, seen
    info[MARKED_EDGES], info[TIMELESS_EDGES] = edges, timeless
    info[EVENT], info[EVENT_STATE] = event, head
    return event
