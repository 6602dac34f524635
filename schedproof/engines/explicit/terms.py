# SPDX-License-Identifier: GPL-2.0-only
"""Terms as the compiler wants them: a shared graph of plain nodes, each with the interval of its values.

z3 terms are read once into this form. The constructors simplify with the intervals, so that reductions to a C
type that cannot wrap (``x mod 2**64`` of a small ``x``) disappear before anything is emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product

import z3
from z3 import z3core

from schedproof.engines.explicit.layout import CannotCompile

INT64_LOW, INT64_HIGH = -(1 << 63), (1 << 63) - 1


class Node:
    """One operation. Truth values have intervals within 0..1. ``value`` is a constant, a name or an offset.

    ``add`` is the sum of its arguments and of ``value``, ``mul`` the product with ``value``; every other ``op``
    says what it is: ``const var div mod ite eq lt le not and or xor``.
    """

    __slots__ = ("op", "args", "value", "low", "high", "truth")

    def __init__(self, op: str, args: tuple[Node, ...], value: int | str, low: int, high: int, truth: bool):
        self.op, self.args, self.value = op, args, value
        self.low, self.high, self.truth = low, high, truth

    @property
    def constant(self) -> int | None:
        """The only value the node can have, or None."""
        return self.low if self.low == self.high else None


def euclid_div(a: int, b: int) -> int:
    """z3's ``div``: the quotient whose remainder is not negative; 0 for the divisor 0."""
    if b == 0:
        return 0
    return a // b if b > 0 else -(a // -b)


def euclid_mod(a: int, b: int) -> int:
    """z3's ``mod``: never negative; 0 for the divisor 0."""
    return a % abs(b) if b else 0


class Terms:
    """Makes nodes, each distinct one once. ``bounds`` gives for each variable its least and greatest code."""

    def __init__(self, bounds: Mapping[str, tuple[int, int]], truths: Iterable[str]):
        self.bounds, self.truths = bounds, frozenset(truths)
        self._nodes: dict[tuple[object, ...], Node] = {}
        self._read: dict[int, Node] = {}
        self._keep: list[object] = []          # z3 gives the numbers of dead terms to new ones
        self.true, self.false = self.const(1, True), self.const(0, True)

    # ------------------------------------------------------------------------------------------ constructors
    def _node(self, op: str, args: tuple[Node, ...], value: int | str, low: int, high: int, truth: bool) -> Node:
        if low == high and op != "const":
            return self.const(low, truth)
        key = (op, *map(id, args), value, truth)
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = Node(op, args, value, low, high, truth)
        return found

    def const(self, value: int, truth: bool = False) -> Node:
        return self._node("const", (), value, value, value, truth)

    def var(self, name: str) -> Node:
        if name not in self.bounds:
            raise CannotCompile(f"a term speaks about {name}, which is not a variable of the instance")
        return self._node("var", (), name, *self.bounds[name], name in self.truths)

    def add(self, args: Iterable[Node], offset: int = 0) -> Node:
        bases: list[Node] = []
        for arg in args:
            if arg.constant is not None:
                offset += arg.constant
            elif arg.op == "add" and arg.value:
                bases += arg.args
                offset += int(arg.value)
            else:
                bases.append(arg)
        if not bases:
            return self.const(offset)
        if len(bases) == 1 and offset == 0:
            return bases[0]
        low, high = sum(b.low for b in bases) + offset, sum(b.high for b in bases) + offset
        return self._node("add", tuple(bases), offset, low, high, False)

    def mul(self, args: Iterable[Node], factor: int = 1) -> Node:
        bases: list[Node] = []
        for arg in args:
            if arg.constant is not None:
                factor *= arg.constant
            else:
                bases.append(arg)
        if not bases or factor == 0:
            return self.const(factor)
        if len(bases) == 1 and factor == 1:
            return bases[0]
        low = high = factor
        for base in bases:
            low, high = times((low, high), (base.low, base.high))
        return self._node("mul", tuple(bases), factor, low, high, False)

    def div(self, a: Node, b: Node) -> Node:
        self._divisor(b)
        if b.constant == 1:
            return a
        ends = [euclid_div(x, y) for x, y in product((a.low, a.high), divisor_ends(b))]
        return self._node("div", (a, b), 0, min(ends), max(ends), False)

    def mod(self, a: Node, b: Node) -> Node:
        self._divisor(b)
        size = b.constant
        if size is not None and (turn := a.low // abs(size)) == a.high // abs(size):
            return self.add((a,), -turn * abs(size))
        high = max(abs(b.low), abs(b.high)) - 1
        if a.low >= 0:
            high = min(high, a.high)
        return self._node("mod", (a, b), 0, 0, high, False)

    @staticmethod
    def _divisor(b: Node) -> None:
        if b.constant == 0:
            raise CannotCompile("a term divides by the constant 0")

    def ite(self, test: Node, then: Node, other: Node) -> Node:
        if test.constant is not None:
            return then if test.constant else other
        if then is other:
            return then
        low, high = min(then.low, other.low), max(then.high, other.high)
        return self._node("ite", (test, then, other), 0, low, high, then.truth)

    def eq(self, a: Node, b: Node) -> Node:
        if a is b:
            return self.true
        if a.high < b.low or b.high < a.low:
            return self.false
        if a.truth and b.constant is not None:
            return a if b.constant else self.no(a)
        if a.truth and a.constant is not None:
            return b if a.constant else self.no(b)
        return self._node("eq", (a, b), 0, 0, 1, True)

    def lt(self, a: Node, b: Node) -> Node:
        if a.high < b.low:
            return self.true
        if a.low >= b.high:
            return self.false
        return self._node("lt", (a, b), 0, 0, 1, True)

    def le(self, a: Node, b: Node) -> Node:
        if a.high <= b.low:
            return self.true
        if a.low > b.high:
            return self.false
        return self._node("le", (a, b), 0, 0, 1, True)

    def no(self, a: Node) -> Node:
        if a.constant is not None:
            return self.false if a.constant else self.true
        return a.args[0] if a.op == "not" else self._node("not", (a,), 0, 0, 1, True)

    def both(self, op: str, args: Iterable[Node]) -> Node:
        """``op`` is ``and`` or ``or``, of any number of arguments."""
        neutral, absorbing = (self.true, self.false) if op == "and" else (self.false, self.true)
        kept: dict[int, Node] = {}
        for arg in args:
            if arg is absorbing:
                return absorbing
            if arg is not neutral:
                kept[id(arg)] = arg
        if len(kept) <= 1:
            return next(iter(kept.values()), neutral)
        return self._node(op, tuple(kept.values()), 0, 0, 1, True)

    def xor(self, args: Iterable[Node]) -> Node:
        found, odd = [], False
        for arg in args:
            if arg.constant is not None:
                odd ^= bool(arg.constant)
            else:
                found.append(arg)
        if not found:
            return self.true if odd else self.false
        whole = found[0] if len(found) == 1 else self._node("xor", tuple(found), 0, 0, 1, True)
        return self.no(whole) if odd else whole

    # ----------------------------------------------------------------------------------------------- reading
    def read(self, term: z3.ExprRef) -> Node:
        """The node of a z3 term. Raises CannotCompile for an operator that this engine does not know."""
        self._keep.append(term)
        context, memo = term.ctx_ref(), self._read
        root = term.as_ast()
        stack = [root]
        while stack:                            # no recursion: real terms are deeper than Python's stack
            ast = stack[-1]
            number = z3core.Z3_get_ast_id(context, ast)
            if number in memo:
                stack.pop()
                continue
            children = _children(context, ast)
            waiting = [c for c in children if z3core.Z3_get_ast_id(context, c) not in memo]
            if waiting:
                stack += waiting
                continue
            memo[number] = self._make(context, ast, [memo[z3core.Z3_get_ast_id(context, c)] for c in children])
            stack.pop()
        return memo[z3core.Z3_get_ast_id(context, root)]

    def _make(self, context: object, ast: object, args: list[Node]) -> Node:
        if z3core.Z3_get_ast_kind(context, ast) == z3.Z3_NUMERAL_AST:
            text = z3core.Z3_get_numeral_string(context, ast)
            if "/" in text or "." in text:
                raise CannotCompile(f"a term has the constant {text}, which is not an integer")
            return self.const(int(text))
        declaration = z3core.Z3_get_app_decl(context, ast)
        kind = z3core.Z3_get_decl_kind(context, declaration)
        if kind == z3.Z3_OP_UNINTERPRETED and not args:
            return self.var(z3core.Z3_get_symbol_string(context, z3core.Z3_get_decl_name(context, declaration)))
        maker = _MAKERS.get(kind)
        if maker is None:
            name = z3core.Z3_get_symbol_string(context, z3core.Z3_get_decl_name(context, declaration))
            raise CannotCompile(f"a term uses the operator {name}, which the explicit engine does not compile")
        return maker(self, args)


def times(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """The interval of products."""
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def divisor_ends(b: Node) -> list[int]:
    """The divisors at which a quotient can be extreme: the ends of the interval and those next to zero."""
    return [n for n in (b.low, b.high, -1, 0, 1) if b.low <= n <= b.high]


def _children(context: object, ast: object) -> list[object]:
    kind = z3core.Z3_get_ast_kind(context, ast)
    if kind == z3.Z3_NUMERAL_AST:
        return []
    if kind != z3.Z3_APP_AST:
        raise CannotCompile("a term has a quantifier, which the explicit engine does not compile")
    return [z3core.Z3_get_app_arg(context, ast, i) for i in range(z3core.Z3_get_app_num_args(context, ast))]


def _minus(terms: Terms, args: list[Node]) -> Node:
    return terms.add((args[0], *(terms.mul((a,), -1) for a in args[1:])))


def _rem(terms: Terms, args: list[Node]) -> Node:
    rest = terms.mod(*args)
    return terms.ite(terms.lt(args[1], terms.const(0)), terms.mul((rest,), -1), rest)


def _abs(terms: Terms, args: list[Node]) -> Node:
    return terms.ite(terms.lt(args[0], terms.const(0)), terms.mul((args[0],), -1), args[0])


def _distinct(terms: Terms, args: list[Node]) -> Node:
    pairs = [(a, b) for i, a in enumerate(args) for b in args[i + 1:]]
    return terms.both("and", (terms.no(terms.eq(a, b)) for a, b in pairs))


_MAKERS: dict[int, Callable[[Terms, list[Node]], Node]] = {
    z3.Z3_OP_TRUE: lambda t, a: t.true,
    z3.Z3_OP_FALSE: lambda t, a: t.false,
    z3.Z3_OP_ADD: lambda t, a: t.add(a),
    z3.Z3_OP_SUB: _minus,
    z3.Z3_OP_UMINUS: lambda t, a: t.mul(a, -1),
    z3.Z3_OP_MUL: lambda t, a: t.mul(a),
    z3.Z3_OP_IDIV: lambda t, a: t.div(*a),
    z3.Z3_OP_MOD: lambda t, a: t.mod(*a),
    z3.Z3_OP_REM: _rem,
    z3.Z3_OP_ABS: _abs,
    z3.Z3_OP_LE: lambda t, a: t.le(a[0], a[1]),
    z3.Z3_OP_LT: lambda t, a: t.lt(a[0], a[1]),
    z3.Z3_OP_GE: lambda t, a: t.le(a[1], a[0]),
    z3.Z3_OP_GT: lambda t, a: t.lt(a[1], a[0]),
    z3.Z3_OP_EQ: lambda t, a: t.eq(a[0], a[1]),
    z3.Z3_OP_IFF: lambda t, a: t.eq(a[0], a[1]),
    z3.Z3_OP_DISTINCT: _distinct,
    z3.Z3_OP_NOT: lambda t, a: t.no(a[0]),
    z3.Z3_OP_AND: lambda t, a: t.both("and", a),
    z3.Z3_OP_OR: lambda t, a: t.both("or", a),
    z3.Z3_OP_XOR: lambda t, a: t.xor(a),
    z3.Z3_OP_IMPLIES: lambda t, a: t.both("or", (t.no(a[0]), a[1])),
    z3.Z3_OP_ITE: lambda t, a: t.ite(*a),
}
