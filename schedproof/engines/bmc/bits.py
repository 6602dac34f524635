# SPDX-License-Identifier: GPL-2.0-only
"""Integer terms as bit-vectors that are just wide enough.

Every integer term of a finite instance has an interval, and a two's complement vector of the least width holds it.
Sums and products are taken modulo that width, which is exact because the result fits; comparisons and divisions are
taken at the width of the wider side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import z3

from schedproof.lang import terms as t


class Unbounded(Exception):
    """A term without an interval: the instance has to stay over the integers."""


def width_of(low: int, high: int) -> int:
    """Bits of the smallest two's complement number that holds every value of an interval."""
    return max(low.bit_length() if low >= 0 else (-low - 1).bit_length(), high.bit_length()) + 1


@dataclass(frozen=True)
class Number:
    """A number as a vector, with the interval that it lies in."""

    vector: z3.BitVecRef
    low: int
    high: int


class Bits:
    """Turns terms over integer constants into terms over vectors of the same names."""

    def __init__(self, ranges: Mapping[str, t.Interval]):
        self.bounds = t.Bounds(ranges)
        self.numbers: dict[int, tuple[z3.ExprRef, Number]] = {}        # by identity; the term is kept alive
        self.truths: dict[int, tuple[z3.ExprRef, z3.BoolRef]] = {}

    def constant(self, name: str) -> z3.BitVecRef:
        """The vector of a variable. Raises Unbounded."""
        low, high = self.bounds.ranges[name]
        if low is None or high is None:
            raise Unbounded(name)
        return z3.BitVec(name, width_of(low, high))

    def truth(self, term: z3.BoolRef) -> z3.BoolRef:
        """A condition over vectors. Raises Unbounded."""
        self._build(term)
        return self.truths[term.get_id()][1]

    def number(self, term: z3.ArithRef) -> Number:
        """A number as a vector. Raises Unbounded."""
        self._build(term)
        return self.numbers[term.get_id()][1]

    def _build(self, root: z3.ExprRef) -> None:
        """All terms below one, the innermost first (terms may be nested deeper than Python's stack)."""
        stack = [root]
        while stack:
            term = stack[-1]
            if self._known(term):
                stack.pop()
                continue
            todo = [c for c in term.children() if not self._known(c)]
            if todo:
                stack += todo
                continue
            if z3.is_bool(term):
                self.truths[term.get_id()] = (term, self._truth(term))
            else:
                self.numbers[term.get_id()] = (term, self._number(term))
            stack.pop()

    def _known(self, term: z3.ExprRef) -> bool:
        return term.get_id() in (self.truths if z3.is_bool(term) else self.numbers)

    # ------------------------------------------------------------------------------------------ one term
    def _truth(self, term: z3.BoolRef) -> z3.BoolRef:
        children, kind = term.children(), term.decl().kind()
        if not children:
            return term
        if all(z3.is_bool(c) for c in children):
            return term.decl()(*(self.truths[c.get_id()][1] for c in children))
        numbers = [self.numbers[c.get_id()][1] for c in children]
        width = max(width_of(n.low, n.high) for n in numbers)
        sides = [resized(n, width) for n in numbers]
        if kind == z3.Z3_OP_DISTINCT:
            return z3.Distinct(*sides)
        left, right = sides
        made: dict[int, z3.BoolRef] = {
            z3.Z3_OP_EQ: left == right, z3.Z3_OP_LE: left <= right, z3.Z3_OP_LT: left < right,
            z3.Z3_OP_GE: left >= right, z3.Z3_OP_GT: left > right}
        return made[kind]

    def _number(self, term: z3.ArithRef) -> Number:
        low, high = self.bounds.of(term)
        if low is None or high is None:
            raise Unbounded(str(term.decl()))
        width, kind = width_of(low, high), term.decl().kind()
        if z3.is_int_value(term):
            return Number(z3.BitVecVal(term.as_long(), width), low, high)
        if kind == z3.Z3_OP_UNINTERPRETED:
            return Number(self.constant(term.decl().name()), low, high)
        if kind == z3.Z3_OP_ITE:
            test, then, other = term.children()
            sides = [resized(self.numbers[x.get_id()][1], width) for x in (then, other)]
            return Number(z3.If(self.truths[test.get_id()][1], *sides), low, high)
        parts = [self.numbers[c.get_id()][1] for c in term.children()]
        if kind in (z3.Z3_OP_IDIV, z3.Z3_OP_MOD):
            return Number(_divided(kind, parts[0], parts[1], width), low, high)
        vectors = [resized(n, width) for n in parts]
        made = vectors[0]
        if kind == z3.Z3_OP_UMINUS:
            return Number(-made, low, high)
        for vector in vectors[1:]:
            made = {z3.Z3_OP_ADD: made + vector, z3.Z3_OP_SUB: made - vector, z3.Z3_OP_MUL: made * vector}[kind]
        return Number(made, low, high)


def resized(number: Number, width: int) -> z3.BitVecRef:
    """The vector at a width; a narrower one is the number modulo that width."""
    have = number.vector.size()
    if have < width:
        return z3.SignExt(width - have, number.vector)
    return number.vector if have == width else z3.Extract(width - 1, 0, number.vector)


def _divided(kind: int, a: Number, b: Number, width: int) -> z3.BitVecRef:
    """z3's Euclidean quotient or remainder: the remainder is never negative."""
    wide = max(width_of(a.low, a.high), width_of(b.low, b.high), width) + 1
    left, right = resized(a, wide), resized(b, wide)
    if a.low >= 0 and b.low > 0:
        made = z3.UDiv(left, right) if kind == z3.Z3_OP_IDIV else z3.URem(left, right)
    else:
        rest = z3.SRem(left, right)
        short = rest < 0
        if kind == z3.Z3_OP_IDIV:
            made = left / right + z3.If(short, z3.If(right > 0, z3.BitVecVal(-1, wide), z3.BitVecVal(1, wide)),
                                        z3.BitVecVal(0, wide))
        else:
            made = z3.If(short, rest + z3.If(right > 0, right, -right), rest)
    return z3.Extract(width - 1, 0, made)
