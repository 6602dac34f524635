# SPDX-License-Identifier: GPL-2.0-only
"""Values of the symbolic executor: Python numbers while they are known, z3 terms where they are not.

Operations fold constants and the trivial cases at once, which keeps terms small: loops over known indices fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import z3

from schedproof.lang.ctypes import CType

_WIDEST = 128                   # bits of the widest type
_PLAIN = (z3.Z3_OP_ADD, z3.Z3_OP_SUB, z3.Z3_OP_MUL, z3.Z3_OP_UMINUS, z3.Z3_OP_MOD, z3.Z3_OP_IDIV)
Value: TypeAlias = Any          # bool, int or z3.ExprRef: z3's Python has no types to tell them apart


def known(value: Value) -> bool:
    return isinstance(value, (bool, int))


def is_bool(value: Value) -> bool:
    return isinstance(value, bool) or (isinstance(value, z3.ExprRef) and z3.is_bool(value))


def settle(term: Value) -> Value:
    """A term that is a literal, as a Python value."""
    if isinstance(term, (bool, int)):
        return term
    kind = term.decl().kind()
    if kind == z3.Z3_OP_ANUM:
        return term.as_long()
    return True if kind == z3.Z3_OP_TRUE else False if kind == z3.Z3_OP_FALSE else term


def simplify(term: Value) -> Value:
    return term if isinstance(term, (bool, int)) else settle(z3.simplify(term))


def z3_of(value: Value) -> z3.ExprRef:
    """The z3 term of a value of either kind."""
    if isinstance(value, bool):
        return z3.BoolVal(value)
    return z3.IntVal(value) if isinstance(value, int) else value


def truth(value: Value) -> Value:
    """A value as a condition, as C has it."""
    if isinstance(value, int):
        return bool(value)
    return value if is_bool(value) else simplify(value != 0)


def number(value: Value) -> Value:
    """A value as a number: true is 1."""
    if isinstance(value, int):
        return int(value)
    return z3.If(value, z3.IntVal(1), z3.IntVal(0)) if is_bool(value) else value


def same(a: Value, b: Value) -> bool:
    """Whether two values are known to be one and the same."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b and type(a) is type(b)
    if a is b:
        return True
    # Terms are shared, so equal ones have one address; z3.eq asks the same in a slower way.
    return isinstance(a, z3.ExprRef) and isinstance(b, z3.ExprRef) and a.ast.value == b.ast.value


def and_(*values: Value) -> Value:
    kept: list[Value] = []
    for value in values:
        if value is False:
            return False
        if value is not True and not any(same(value, k) for k in kept):
            kept.append(value)
    return True if not kept else kept[0] if len(kept) == 1 else z3.And(*kept)


def not_(value: Value) -> Value:
    if isinstance(value, bool):
        return not value
    return value.arg(0) if z3.is_not(value) else z3.Not(value)


def or_(*values: Value) -> Value:
    kept: list[Value] = []
    for value in values:
        if value is True:
            return True
        if value is not False and not any(same(value, k) for k in kept):
            kept.append(value)
    if len(kept) == 2 and same(kept[0], not_(kept[1])):
        return True
    return False if not kept else kept[0] if len(kept) == 1 else z3.Or(*kept)


def ite(test: Value, then: Value, other: Value, facts: list[tuple[z3.ExprRef, Value]] | None = None) -> Value:
    """``then`` where ``test`` holds, else ``other``. Mixed sorts meet as numbers.

    ``facts`` is ``learned(test)``, where the caller has it already.
    """
    if isinstance(test, bool):
        return then if test else other
    if same(then, other):
        return then
    if is_bool(then) != is_bool(other):
        then, other = number(then), number(other)
    for term, value in learned(test) if facts is None else facts:           # `x == 3 ? 3 : x` is x
        if same(then, value) and same(other, term):
            return other
    if then is True and other is False:
        return test
    if then is False and other is True:
        return not_(test)
    return z3.If(test, z3_of(then), z3_of(other))


def learned(test: Value) -> list[tuple[z3.ExprRef, Value]]:
    """What a condition says about single constants: (constant, value) pairs."""
    if isinstance(test, bool):
        return []
    kind = test.decl().kind()
    if kind == z3.Z3_OP_AND:
        return [pair for part in test.children() for pair in learned(part)]
    if kind == z3.Z3_OP_UNINTERPRETED:
        return [(test, True)] if test.num_args() == 0 else []
    if kind == z3.Z3_OP_NOT:
        return [(test.arg(0), False)] if _is_variable(test.arg(0)) else []
    if kind == z3.Z3_OP_EQ:
        a, b = test.arg(0), test.arg(1)
        if _is_variable(b) and z3.is_int_value(a):
            a, b = b, a
        if _is_variable(a) and z3.is_int_value(b):
            return [(a, b.as_long())]
    return []


def outcomes(term: z3.ExprRef, most: int = 16) -> tuple[int, ...] | None:
    """The values of a term that decides between a few numbers; None when it is anything else."""
    found: set[int] = set()
    stack = [term]
    while stack:
        part = stack.pop()
        if z3.is_int_value(part):
            found.add(part.as_long())
        elif z3.is_app_of(part, z3.Z3_OP_ITE):
            stack += part.children()[1:]
        else:
            return None
        if len(found) > most:
            return None
    return tuple(sorted(found))


def spread(term: Value, of: Callable[[int], Value]) -> Value | None:
    """``of`` of a term that decides between known numbers, as one that decides between the results.

    The term may do arithmetic with numbers on what it decides between. None when it is anything else.
    """
    known_ = settle(term)
    if isinstance(known_, int):
        return of(int(known_))
    if z3.is_app_of(term, z3.Z3_OP_ITE):
        then, other = spread(term.arg(1), of), spread(term.arg(2), of)
        return None if then is None or other is None else ite(term.arg(0), then, other)
    parts = term.children()
    open_ = [i for i, part in enumerate(parts) if not z3.is_int_value(part)]
    if not open_ or term.decl().kind() not in _PLAIN:
        return None
    at = open_[0]
    return spread(parts[at], lambda number: spread(
        simplify(term.decl()(*parts[:at], z3.IntVal(number), *parts[at + 1:])), of))


def _is_variable(term: z3.ExprRef) -> bool:
    return z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED


def equal(a: Value, b: Value) -> Value:
    if is_bool(a) != is_bool(b):
        a, b = number(a), number(b)
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if same(a, b):
        return True
    if isinstance(a, bool) or isinstance(b, bool):
        value, flag = (b, a) if isinstance(a, bool) else (a, b)
        return value if flag else not_(value)
    return simplify(z3_of(a) == z3_of(b))


def compare(op: str, a: Value, b: Value) -> Value:
    if op == "==":
        return equal(a, b)
    if op == "!=":
        return not_(equal(a, b))
    a, b = number(a), number(b)
    if isinstance(a, int) and isinstance(b, int):
        return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]
    x, y = z3_of(a), z3_of(b)
    return simplify({"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[op])


def c_divide(a: int, b: int) -> int:
    """C's quotient, towards zero. The one place where Python's numbers are divided."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def c_remainder(a: int, b: int) -> int:
    """C's remainder: it has the sign of the dividend."""
    return a - b * c_divide(a, b)


def divide(a: Value, b: Value, natural: bool = False) -> Value:
    """C's quotient of terms. z3's ``div`` is Euclidean, so it is used on magnitudes (``natural``: both are >= 0)."""
    if isinstance(a, int) and isinstance(b, int):
        return c_divide(a, b) if b else 0
    x, y = z3_of(a), z3_of(b)
    if natural:
        return simplify(x / y)
    if isinstance(b, int) and b > 0:
        return simplify(z3.If(x >= 0, x / y, -((-x) / y)))
    size = z3.If(x >= 0, x, -x) / z3.If(y >= 0, y, -y)
    return simplify(z3.If((x < 0) == (y < 0), size, -size))


def remainder(a: Value, b: Value, natural: bool = False) -> Value:
    if isinstance(a, int) and isinstance(b, int):
        return c_remainder(a, b) if b else 0
    return simplify(z3_of(a) - z3_of(b) * z3_of(divide(a, b, natural)))


def arithmetic(op: str, a: Value, b: Value, bounds: Bounds | None = None) -> Value | None:
    """``+ - * / %`` and shifts and masks with known amounts; None when the operator cannot be expressed."""
    a, b = number(a), number(b)
    if op in ("/", "%"):
        lows = (bounds.of(a)[0], bounds.of(b)[0]) if bounds is not None else (None, None)
        natural = all(low is not None and low >= 0 for low in lows)
        return divide(a, b, natural) if op == "/" else remainder(a, b, natural)
    if op in ("<<", ">>"):
        return spread(b, lambda amount: _shifted(op, a, amount))
    if isinstance(a, int) and isinstance(b, int):
        return {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "&": lambda: a & b, "|": lambda: a | b,
                "^": lambda: a ^ b}[op]()
    x, y = z3_of(a), z3_of(b)
    if op in "+-*":
        return simplify({"+": x + y, "-": x - y, "*": x * y}[op])
    if op in ("&", "|", "^") and (isinstance(a, int) or isinstance(b, int)):
        value, mask = (x, b) if isinstance(b, int) else (y, a)
        both = masked(value, int(mask))
        return simplify(both if op == "&" else value + mask - (both if op == "|" else 2 * both))
    return None


def _shifted(op: str, a: Value, amount: int) -> Value:
    """A shift by a number of bits; by one that no type has it is a fault, which is reported where it happens."""
    if not 0 <= amount < _WIDEST:
        return 0
    if isinstance(a, int):
        return a << amount if op == "<<" else a >> amount
    return simplify(a * (1 << amount)) if op == "<<" else simplify(a / z3.IntVal(1 << amount))


def masked(value: z3.ArithRef, mask: int) -> z3.ArithRef:
    """``value & mask`` of a number in two's complement: each run of ones in the mask is a quotient's remainder."""
    if mask < 0:
        return value - masked(value, ~mask)
    found, low = z3.IntVal(0), 0
    while mask >> low:
        if not mask >> low & 1:
            low += 1
            continue
        width = 1
        while mask >> low + width & 1:
            width += 1
        found, low = found + value / z3.IntVal(1 << low) % z3.IntVal(1 << width) * (1 << low), low + width
    return found


Interval = tuple[int | None, int | None]


class Bounds:
    """Intervals of terms, from the ranges of their constants. None means unbounded on that side."""

    def __init__(self, ranges: Mapping[str, Interval]):
        self.ranges = dict(ranges)
        self.memo: dict[int, tuple[z3.ExprRef, Interval]] = {}

    def assume(self, term: z3.ExprRef, interval: Interval) -> None:
        """Take a term to lie in an interval, which the caller has made sure of."""
        self.memo[term.get_id()] = (term, interval)

    def of(self, value: Value) -> Interval:
        """The interval of a value."""
        if isinstance(value, int):
            return (int(value), int(value))
        stack: list[tuple[z3.ExprRef, list[z3.ExprRef] | None]] = [(value, None)]
        while stack:
            term, parts = stack.pop()
            if term.get_id() in self.memo:
                continue
            if parts is None:
                parts = [c for c in term.children() if not z3.is_bool(c)]
                todo = [c for c in parts if c.get_id() not in self.memo]
                if todo:
                    stack.append((term, parts))
                    stack += [(c, None) for c in todo]
                    continue
            self.memo[term.get_id()] = (term, self._one(term, [self.memo[c.get_id()][1] for c in parts]))
        return self.memo[value.get_id()][1]

    def decides(self, op: str, a: Value, b: Value) -> bool | None:
        """The result of a comparison where the intervals of both sides tell it."""
        (low, high), (least, most) = self.of(number(a)), self.of(number(b))
        if op in (">", ">="):
            op, low, high, least, most = {">": "<", ">=": "<="}[op], least, most, low, high
        if op in ("==", "!="):
            apart = high is not None and least is not None and high < least or (
                low is not None and most is not None and most < low)
            return op == "!=" if apart else None
        if high is not None and least is not None and (high < least or op == "<=" and high == least):
            return True
        if low is not None and most is not None and (most < low or op == "<" and low == most):
            return False
        return None

    def _one(self, term: z3.ExprRef, parts: list[Interval]) -> Interval:
        if z3.is_int_value(term):
            return (term.as_long(), term.as_long())
        kind = term.decl().kind()
        if kind == z3.Z3_OP_UNINTERPRETED:
            return self.ranges.get(term.decl().name(), (None, None))
        if kind == z3.Z3_OP_ITE:
            return _hull(parts)
        if kind == z3.Z3_OP_ADD:
            return _sum(parts)
        if kind == z3.Z3_OP_UMINUS:
            return _negative(parts[0])
        if kind == z3.Z3_OP_SUB:
            return _sum([parts[0], *(_negative(p) for p in parts[1:])])
        if kind == z3.Z3_OP_MUL:
            result = parts[0]
            for part in parts[1:]:
                result = _product(result, part)
            return result
        if kind == z3.Z3_OP_MOD:
            return _remainder(parts[0], parts[1])
        if kind == z3.Z3_OP_IDIV:
            return _quotient(parts[0], parts[1])
        return (None, None)


def _hull(parts: Iterable[Interval]) -> Interval:
    lows, highs = zip(*parts, strict=True)
    return (None if None in lows else min(lows), None if None in highs else max(highs))


def _sum(parts: list[Interval]) -> Interval:
    lows, highs = zip(*parts, strict=True)
    return (None if None in lows else sum(lows), None if None in highs else sum(highs))


def _negative(part: Interval) -> Interval:
    low, high = part
    return (None if high is None else -high, None if low is None else -low)


def _product(a: Interval, b: Interval) -> Interval:
    if None in a or None in b:
        both = a[0] is not None and a[0] >= 0 and b[0] is not None and b[0] >= 0
        return (a[0] * b[0], None) if both else (None, None)  # type: ignore[operator]
    ends = [x * y for x in a for y in b]  # type: ignore[operator]
    return (min(ends), max(ends))


def _remainder(a: Interval, b: Interval) -> Interval:
    """Euclidean remainder: from 0 to below the divisor's magnitude; a divisor of 0 is a fault of its own."""
    if b[0] is None or b[1] is None:
        return (None, None)
    top = max(abs(b[0]), abs(b[1]), 1) - 1
    if a[0] is not None and a[1] is not None and a[0] >= 0:
        least = b[0] if b[0] > 0 else -b[1] if b[1] < 0 else 1
        return a if a[1] < least else (0, min(top, a[1]))
    return (0, top)


def _quotient(a: Interval, b: Interval) -> Interval:
    """Euclidean quotient; for a divisor that may be negative only the magnitude is bounded.

    A divisor of 0 is left out: it is a fault of its own, reported where it happens.
    """
    if b[0] == 0:
        b = (1, None if b[1] is None else max(b[1], 1))
    if a[0] is not None and a[1] is not None:
        if b[0] is not None and b[0] > 0:
            ends = [x // y for x in a for y in (b[0], b[1]) if y is not None]  # type: ignore[operator]
            return (min(*ends, 0) if b[1] is None else min(ends), max(*ends, 0) if b[1] is None else max(ends))
        size = max(abs(a[0]), abs(a[1]))
        return (-size - 1, size + 1)
    if a[0] is not None and a[0] >= 0 and b[0] is not None and b[0] > 0:
        return (0, None)
    return (None, None)


def convert(value: Value, ctype: CType, bounds: Bounds) -> Value:
    """The value after conversion to a C type; the reduction vanishes where it cannot matter."""
    if ctype.struct:
        return value
    if ctype.name == "bool":
        return truth(value)
    if isinstance(value, int):
        return ctype.wrap(int(value))
    value = number(value)
    low, high = bounds.of(value)
    if low is not None and high is not None and ctype.low <= low and high <= ctype.high:
        return value
    size = z3.IntVal(1 << ctype.bits)
    if not ctype.signed:
        return simplify(value % size)
    return simplify((value - ctype.low) % size + ctype.low)


def functions_of(term: z3.ExprRef) -> set[str]:
    """The names of the unknown functions of arguments that occur in a term."""
    found: set[str] = set()
    seen: set[int] = set()
    stack = [term]
    while stack:
        part = stack.pop()
        if part.get_id() not in seen:
            seen.add(part.get_id())
            if z3.is_app(part) and part.num_args() and part.decl().kind() == z3.Z3_OP_UNINTERPRETED:
                found.add(part.decl().name())
            stack += part.children()
    return found


def constants_of(terms: Iterable[Value]) -> dict[str, z3.ExprRef]:
    """The uninterpreted constants that occur in terms, by name."""
    found: dict[str, z3.ExprRef] = {}
    seen: set[int] = set()
    stack = [t for t in terms if isinstance(t, z3.ExprRef)]
    while stack:
        term = stack.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        if z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            found[term.decl().name()] = term
        stack += term.children()
    return found


def nodes(term: z3.ExprRef) -> int:
    """How many different terms it is made of."""
    seen: set[int] = set()
    stack = [term]
    while stack:
        top = stack.pop()
        if top.get_id() not in seen:
            seen.add(top.get_id())
            stack += top.children()
    return len(seen)
