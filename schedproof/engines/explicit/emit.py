# SPDX-License-Identifier: GPL-2.0-only
"""Nodes to LLVM IR: integers as i64, truth values as i1, fields decoded from and encoded into the packed word."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from schedproof.engines.explicit.layout import CannotCompile, Field, Layout
from schedproof.engines.explicit.terms import INT64_HIGH, INT64_LOW, Node, times

I64, I1 = ir.IntType(64), ir.IntType(1)
MINUS_ONE = ir.Constant(I64, -1)

Memo = dict[Node, ir.Value]


def word(value: int) -> ir.Constant:
    """A 64-bit constant; masks above the sign bit are written as the negative number with the same bits."""
    return ir.Constant(I64, value - (1 << 64) if value >> 63 > 0 else value)


class Emitter:
    """Writes nodes through ``builder``, reading variables from the ``words`` of a packed state.

    ``state`` is that word, or the address of all of them where the layout has several.
    """

    def __init__(self, builder: ir.IRBuilder, layout: Layout, state: ir.Value):
        self.builder, self.layout, self.words = builder, layout, [state]
        if layout.words > 1:
            first = builder.inttoptr(state, I64.as_pointer())
            self.words = [builder.load(builder.gep(first, [word(i)])) for i in range(layout.words)]

    def value(self, root: Node, memo: Memo) -> ir.Value:
        """The value of a node. ``memo`` holds what is already computed on every path to here.

        Raises CannotCompile when some value on the way might not fit 64 bits.
        """
        stack = [root]
        while stack:
            node = stack[-1]
            if node in memo:
                stack.pop()
                continue
            waiting = [a for a in node.args if a not in memo]
            if waiting:
                stack += waiting
                continue
            check_range(node)
            memo[node] = self._emit(node, [memo[a] for a in node.args])
            stack.pop()
        return memo[root]

    def _emit(self, node: Node, args: list[ir.Value]) -> ir.Value:
        b, op = self.builder, node.op
        if op == "const":
            return ir.Constant(I1 if node.truth else I64, int(node.value))
        if op == "var":
            return self.decode(self.layout.fields[str(node.value)])
        if op == "ite":
            return b.select(*args)
        if op == "not":
            return b.not_(args[0])
        if op in ("lt", "le"):
            return b.icmp_signed("<" if op == "lt" else "<=", *args)
        if op == "eq":
            return b.icmp_unsigned("==", *args)
        if op in ("div", "mod"):
            return self._divide(node, *args)
        fold: Callable[[ir.Value, ir.Value], ir.Value] = getattr(b, {"and": "and_", "or": "or_"}.get(op, op))
        found = args[0]
        for arg in args[1:]:
            found = fold(found, arg)
        neutral = {"add": 0, "mul": 1}.get(op)
        return found if neutral is None or node.value == neutral else fold(found, word(int(node.value)))

    # ----------------------------------------------------------------------------------------------- division
    def _divide(self, node: Node, a: ir.Value, b: ir.Value) -> ir.Value:
        """Euclidean division: the remainder is never negative. The divisor 0 gives 0 and does not trap."""
        build, (left, right) = self.builder, node.args
        zero = None
        if right.low <= 0 <= right.high:
            zero = build.icmp_unsigned("==", b, word(0))
            b = build.select(zero, word(1), b)
        found = self._quotient(left, right, a, b) if node.op == "div" else self._remainder(left, right, a, b)
        return found if zero is None else build.select(zero, word(0), found)

    def _quotient(self, left: Node, right: Node, a: ir.Value, b: ir.Value) -> ir.Value:
        build, size = self.builder, right.constant
        if size is not None and size > 0 and size & (size - 1) == 0:
            return build.ashr(a, word(size.bit_length() - 1))
        found = build.sdiv(a, b)
        if left.low >= 0:
            return found
        low = build.icmp_signed("<", build.sub(a, build.mul(found, b)), word(0))
        step = build.select(build.icmp_signed("<", b, word(0)), MINUS_ONE, word(1))
        return build.select(low, build.sub(found, step), found)

    def _remainder(self, left: Node, right: Node, a: ir.Value, b: ir.Value) -> ir.Value:
        build, size = self.builder, right.constant
        if size is not None and size & (size - 1) == 0:
            return build.and_(a, word(abs(size) - 1))
        if right.low < 0:
            b = build.select(build.icmp_signed("<", b, word(0)), build.neg(b), b)
        if left.low >= 0:
            return build.urem(a, b)
        found = build.srem(a, b)
        return build.select(build.icmp_signed("<", found, word(0)), build.add(found, b), found)

    # ------------------------------------------------------------------------------------------------- fields
    def decode(self, field: Field) -> ir.Value:
        """The code of a variable in the packed state."""
        b, raw = self.builder, self.index(field)
        if field.truth:
            return b.trunc(raw, I1)
        if field.codes is None:
            return b.add(raw, word(field.first)) if field.first else raw
        found: ir.Value = word(field.codes[-1])
        for index, code in enumerate(field.codes[:-1]):
            found = b.select(b.icmp_unsigned("==", raw, word(index)), word(code), found)
        return found

    def index(self, field: Field) -> ir.Value:
        """The index that stands in the packed state."""
        b = self.builder
        raw = b.and_(b.lshr(self.words[field.word], word(field.offset)), word((1 << field.width) - 1))
        return b.urem(b.udiv(raw, word(field.stride)), word(field.size)) if field.shared else raw

    def encode(self, field: Field, node: Node, memo: Memo) -> tuple[ir.Value, ir.Value | None]:
        """The index of a node's value among the codes, and a flag that it is not among them (None: it always is)."""
        b, value = self.builder, self.value(node, memo)
        if field.truth:
            return b.zext(value, I64), None
        if field.codes is None:
            low, high = field.bounds
            index = b.sub(value, word(low)) if low else value
            safe = low <= node.low and node.high <= high
            return index, None if safe else b.icmp_unsigned(">=", index, word(field.size))
        index, found = word(0), ir.Constant(I1, 0)
        for number, code in enumerate(field.codes):
            here = b.icmp_unsigned("==", value, word(code))
            index = b.select(here, word(number), index)
            found = b.or_(found, here)
        return index, b.not_(found)


def check_range(node: Node) -> None:
    """Raise CannotCompile unless the node's value, and every partial sum or product, surely fits 64 bits."""
    low, high = node.low, node.high
    _check(low, high)
    if node.op == "add":
        low = high = 0
        for arg in node.args:
            low, high = low + arg.low, high + arg.high
            _check(low, high)
        _check(int(node.value), int(node.value))
    elif node.op == "mul":
        low = high = 1
        for arg in node.args:
            low, high = times((low, high), (arg.low, arg.high))
            _check(low, high)
        _check(int(node.value), int(node.value))
    elif node.op in ("div", "mod") and node.args[1].low == INT64_LOW:
        raise CannotCompile("a divisor might be -2**63, whose size does not fit 64 bits")


def _check(low: int, high: int) -> None:
    if low < INT64_LOW or high > INT64_HIGH:
        raise CannotCompile(f"a value between {low} and {high} occurs, which may not fit 64 bits")
