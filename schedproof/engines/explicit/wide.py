# SPDX-License-Identifier: GPL-2.0-only
"""States of several words, folded into one, so that the search and the graph only ever see one word a state.

Every word, and every pair of what is folded already and the next word, gets a number the first time it is met; a
state's word is made of two such numbers, 31 bits each. Equal states have equal words. Parts that many states share
are kept once (the idea of LTSmin's tree compression), so a wide state takes about as much room as a narrow one.

The numbers stand in tables; one that fills up is replaced through a callback. The machine code of an instance calls
the functions of ``entries`` with the address of its tables.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from schedproof.engines.explicit.jit import callback, compiled
from schedproof.engines.explicit.kernels import Words, mix
from schedproof.engines.explicit.layout import WORD

HALF = 31                      # bits of a number
LOW = (1 << HALF) - 1
FIRST_SLOTS = 1 << 10
# Where what lies behind the address of the tables, in words; then four words a table.
SUCCESSORS, OBSERVE, GROW, COUNT, STATE, OUT, HEADER = range(7)
VALUES, SLOTS, MASK, USED, TABLE = range(5)


def _memory(bits: int, writes: bool) -> Any:
    """An intrinsic that reads or writes a number of ``bits`` at an address."""
    narrow, word = ir.IntType(bits), ir.IntType(64)

    def read(typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            found = builder.load(builder.inttoptr(args[0], narrow.as_pointer()))
            return found if bits == 64 else builder.zext(found, word)

        return types.int64(types.int64), generate

    def write(typing: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = args[1] if bits == 64 else builder.trunc(args[1], narrow)
            builder.store(value, builder.inttoptr(args[0], narrow.as_pointer()))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return intrinsic(write if writes else read)


load, store, load32, store32 = _memory(64, False), _memory(64, True), _memory(32, False), _memory(32, True)


@intrinsic
def call(typing: Any, function: Any, one: Any, other: Any) -> Any:
    """A function of two words at an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        kind = ir.FunctionType(word, [word, word])
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return types.int64(types.int64, types.int64, types.int64), generate


@compiled
def number_of(tables: int, table: int, value: int) -> int:
    """The number of a value in one of the tables; a new one when it is met for the first time."""
    at = tables + 8 * (HEADER + TABLE * table)
    while True:
        slots, mask, used = load(at + 8 * SLOTS), load(at + 8 * MASK), load(at + 8 * USED)
        i = np.int64(mix(value) & np.uint64(mask))
        while True:
            found = load32(slots + 4 * i)
            if found == 0:
                break
            if load(load(at + 8 * VALUES) + 8 * (found - 1)) == value:
                return found - 1
            i = (i + 1) & mask
        if 8 * (used + 1) <= 5 * (mask + 1):
            store(load(at + 8 * VALUES) + 8 * used, value)
            store32(slots + 4 * i, used + 1)
            store(at + 8 * USED, used + 1)
            return used
        call(load(tables + 8 * GROW), table, 0)


@compiled
def fold(tables: int, words: int) -> int:
    """The one word of a state whose words stand at an address."""
    found = load(words)
    for i in range(1, load(tables + 8 * COUNT)):
        left = number_of(tables, 2 * i - 2, found)
        found = left << HALF | number_of(tables, 2 * i - 1, load(words + 8 * i))
    return found


@compiled
def unfold(tables: int, folded: int, words: int) -> None:
    """Write the words of a state to an address."""
    for i in range(load(tables + 8 * COUNT) - 1, 0, -1):
        left = tables + 8 * (HEADER + TABLE * (2 * i - 2))
        store(words + 8 * i, load(load(left + 8 * (TABLE + VALUES)) + 8 * (folded & LOW)))
        folded = load(load(left + 8 * VALUES) + 8 * (folded >> HALF))
    store(words, folded)


@compiled
def successors_of(tables: int, state: int, out: int) -> int:
    """What ``successors`` of a narrow instance does."""
    words, wide, size = load(tables + 8 * STATE), load(tables + 8 * OUT), load(tables + 8 * COUNT)
    unfold(tables, state, words)
    count = call(load(tables + 8 * SUCCESSORS), words, wide)
    for k in range(count):
        record = wide + 8 * (size + 2) * k
        store(out + 24 * k, -1 if load(record) < 0 else fold(tables, record))
        store(out + 24 * k + 8, load(record + 8 * size))
        store(out + 24 * k + 16, load(record + 8 * size + 8))
    return count


@compiled
def observe_of(tables: int, state: int) -> int:
    """What ``observe`` of a narrow instance does."""
    words = load(tables + 8 * STATE)
    unfold(tables, state, words)
    return call(load(tables + 8 * OBSERVE), words, 0)


@compiled
def refill(slots: NDArray[np.uint32], values: Words, count: int) -> None:
    """Enter the first ``count`` values, which are all different, into an empty table."""
    mask = slots.size - 1
    for number in range(count):
        i = np.int64(mix(values[number]) & np.uint64(mask))
        while slots[i]:
            i = (i + 1) & mask
        slots[i] = number + 1


@cache
def entries() -> tuple[Any, Any, Any]:
    """``successors_of``, ``observe_of`` and ``fold`` as functions with an address."""
    word = types.int64
    return (callback(word(word, word, word), successors_of), callback(word(word, word), observe_of),
            callback(word(word, word), fold))


class Folding:
    """The tables of one instance whose states have ``words`` words and up to ``fan`` successors."""

    def __init__(self, words: int, fan: int):
        self.words = words
        tables = 2 * (words - 1)
        self.header: Words = np.zeros(HEADER + TABLE * tables, np.int64)
        self.state: Words = np.zeros(words, np.int64)
        self.out: Words = np.zeros((words + 2) * max(1, fan), np.int64)
        self.values = [np.empty(0, np.int64) for _ in range(tables)]
        self.slots = [np.empty(0, np.uint32) for _ in range(tables)]
        self._callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(self._grow)
        self.header[[COUNT, STATE, OUT]] = words, self.state.ctypes.data, self.out.ctypes.data
        self.header[GROW] = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        for table in range(tables):
            self._grow(table, 0)
        self._fold: Callable[[int, int], int] = entries()[2].ctypes

    @property
    def address(self) -> int:
        return int(self.header.ctypes.data)

    @property
    def size(self) -> int:
        """Bytes of the tables."""
        return sum(a.nbytes for a in self.values) + sum(a.nbytes for a in self.slots)

    def fold(self, state: int) -> int:
        """The word of a state that is given as all its bits, 64 a word."""
        self.state[:] = [state >> WORD * i & (1 << WORD) - 1 for i in range(self.words)]
        return int(self._fold(self.address, self.state.ctypes.data))

    def unfold(self, folded: int) -> int:
        """All bits of a state."""
        unfold(self.address, folded, self.state.ctypes.data)
        return sum(int(w) << WORD * i for i, w in enumerate(self.state))

    def _grow(self, table: int, _: int) -> int:
        """A table twice as large with the same numbers in it."""
        at = HEADER + TABLE * table
        slots = np.zeros(max(FIRST_SLOTS, 2 * self.slots[table].size), np.uint32)
        values = np.empty(slots.size * 5 // 8 + 1, np.int64)
        used = int(self.header[at + USED])
        values[:used] = self.values[table][:used]
        refill(slots, values, used)
        self.values[table], self.slots[table] = values, slots
        self.header[[at + VALUES, at + SLOTS, at + MASK]] = values.ctypes.data, slots.ctypes.data, slots.size - 1
        return 0
