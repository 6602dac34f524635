# SPDX-License-Identifier: GPL-2.0-only
"""Lowered C values with their types, and C's conversions between them.

Expressions are kept apart by whether their *term* is a truth value (a comparison, a ``Bool`` variable) or a number;
where C needs the other one, the conversion is written out: ``x != 0``, or a cast to the number's type.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from schedproof.lang.ctypes import BOOL, INT, LONG, UINT, ULONG, CType, promote, shift_width, usual
from schedproof.lang.syntax import NULL_CODE, Binary, Cast, Cond, Const, Expr, Loc, Local, Unary

MARKERS = 4096             # no object lies below this address


class Mismatch(Exception):
    """Two types that do not go together; the caller names the place."""


@dataclass(frozen=True, slots=True)
class Value:
    """A C rvalue. ``ctype`` None: void.

    ``truth``: the expression is a truth value, not a number. For a pointer into an object (``&q->load``) ``expr`` is
    the object, ``owner`` its struct and ``inner`` the path of the member; ``maybe`` says that it can be NULL as well.
    """

    expr: Expr
    ctype: CType | None
    truth: bool = False
    owner: str = ""
    inner: str = ""
    maybe: bool = False

    @property
    def is_pointer(self) -> bool:
        return self.ctype is not None and bool(self.ctype.struct)

    @property
    def number(self) -> CType:
        """The integer type of this value. Raises Mismatch for pointers and void."""
        if self.ctype is None:
            raise Mismatch("the value of a void function")
        if self.ctype.struct:
            raise Mismatch("arithmetic on a pointer")
        return self.ctype


def constant(value: int, ctype: CType, loc: Loc) -> Value:
    """An integer constant."""
    return Value(Const(ctype.wrap(value), loc, ctype), ctype)


def null(loc: Loc, struct: str = "void") -> Value:
    """The null pointer."""
    return Value(Const(NULL_CODE, loc), CType(f"{struct} *", 64, False, struct))


def is_null(value: Value) -> bool:
    """Whether this is a null pointer constant: ``NULL`` or a literal 0."""
    if not isinstance(value.expr, Const) or value.truth:
        return False
    if value.is_pointer:
        return value.ctype is not None and value.ctype.struct == "void" and value.expr.value == NULL_CODE
    return value.expr.value == 0


def truth(value: Value, loc: Loc) -> Expr:
    """The value as a truth value."""
    if value.truth:
        return value.expr
    if value.ctype is None:
        raise Mismatch("the value of a void function")
    if value.inner and not value.maybe:
        return Const(True, loc)                     # the address of a member is never NULL
    if value.is_pointer:
        if isinstance(value.expr, Const):
            return Const(value.expr.value != NULL_CODE, loc)
        return Binary("!=", value.expr, Const(NULL_CODE, loc), loc)
    if isinstance(value.expr, Const):
        return Const(value.expr.value != 0, loc)
    return Binary("!=", value.expr, Const(0, loc, value.ctype), loc)


def false(value: Value, loc: Loc) -> Expr:
    """The negation of the value as a truth value."""
    test = truth(value, loc)
    if isinstance(test, Const):
        return Const(not test.value, loc)
    if isinstance(test, Binary) and test.op in ("==", "!="):
        return Binary("==" if test.op == "!=" else "!=", test.left, test.right, loc)
    return Unary("not", test, loc)


def fits(source: CType, target: CType) -> bool:
    """Whether every value of one integer type is one of the other."""
    return target.low <= source.low and source.high <= target.high


def as_number(value: Value, loc: Loc) -> Value:
    """The value with a number for its expression."""
    if not value.truth:
        return value
    ctype = value.ctype or INT
    ctype = INT if ctype.name == "bool" else ctype
    if isinstance(value.expr, Const):
        return constant(int(value.expr.value), ctype, loc)
    return Value(Cast(value.expr, ctype, loc), ctype)


def convert(value: Value, target: CType, loc: Loc) -> Value:
    """The value converted as by assignment. Raises Mismatch where C would want a cast or the model has no value."""
    if target.struct:
        if is_null(value):
            return null(loc, target.struct)
        if not value.is_pointer:
            raise Mismatch("a number used as a pointer")
        assert value.ctype is not None
        if value.ctype.struct != target.struct and "void" not in (value.ctype.struct, target.struct):
            raise Mismatch(f"a pointer to {value.ctype.struct} used as one to {target.struct}")
        return value if target.struct == "void" else replace(value, ctype=target)
    if target.name == "bool":
        return Value(truth(value, loc), BOOL, True)
    source = value.number
    value = as_number(value, loc)
    if isinstance(value.expr, Const):
        return constant(int(value.expr.value), target, loc)
    if source.name != "bool" and fits(source, target):      # a bool's term may be a truth value: cast it
        return Value(value.expr, target)
    return Value(Cast(value.expr, target, loc), target)


def cast(value: Value, target: CType, loc: Loc) -> Value:
    """The value after a cast. A small number as a pointer, ``(struct foo *)1``, is neither NULL nor any object."""
    number = value.expr.value if isinstance(value.expr, Const) and not value.is_pointer else 0
    if target.struct and 0 < number < MARKERS:
        return Value(Const(NULL_CODE - int(number), loc), target)
    return convert(value, target, loc)


def promoted(value: Value, loc: Loc) -> Value:
    """After the integer promotions."""
    return convert(value, promote(value.number), loc)


def arithmetic(op: str, left: Value, right: Value, loc: Loc) -> Value:
    """A binary operator on numbers, with the usual arithmetic conversions (shifts: promotions alone)."""
    if op in ("<<", ">>"):
        ctype = promote(left.number)
        left, right = convert(left, ctype, loc), promoted(right, loc)
    else:
        ctype = usual(left.number, right.number)
        left, right = convert(left, ctype, loc), convert(right, ctype, loc)
    if isinstance(left.expr, Const) and isinstance(right.expr, Const):
        folded = _fold(op, int(left.expr.value), int(right.expr.value), ctype)
        if folded is not None:
            return constant(folded, ctype, loc)
    return Value(Binary(op, left.expr, right.expr, loc, ctype), ctype)


def _fold(op: str, left: int, right: int, ctype: CType) -> int | None:
    """A constant result; None where it is left to the run (division by zero, odd shifts)."""
    if op in ("<<", ">>"):
        if not 0 <= right < shift_width(ctype):
            return None
        return left << right if op == "<<" else left >> right
    if op in ("/", "%"):
        if right == 0:
            return None
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if op == "/" else left - quotient * right
    return {"+": left + right, "-": left - right, "*": left * right, "&": left & right, "|": left | right,
            "^": left ^ right}[op]


def compare(op: str, left: Value, right: Value, loc: Loc) -> Value:
    """A comparison: an int, as a truth value."""
    if left.is_pointer or right.is_pointer:
        return _compare_pointers(op, left, right, loc)
    ctype = usual(left.number, right.number)
    left, right = convert(left, ctype, loc), convert(right, ctype, loc)
    if isinstance(left.expr, Const) and isinstance(right.expr, Const):
        a, b = left.expr.value, right.expr.value
        found = {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]
        return Value(Const(found, loc), INT, True)
    return Value(Binary(op, left.expr, right.expr, loc), INT, True)


def _compare_pointers(op: str, left: Value, right: Value, loc: Loc) -> Value:
    if op not in ("==", "!="):
        raise Mismatch("the order of two pointers")
    for one, other in ((left, right), (right, left)):
        if is_null(other):
            return Value(false(one, loc) if op == "==" else truth(one, loc), INT, True)
    if not (left.is_pointer and right.is_pointer):
        raise Mismatch("a comparison of a pointer and a number")
    assert left.ctype is not None and right.ctype is not None
    nothing = any(isinstance(x.expr, Const) and not x.inner for x in (left, right))      # ``(struct foo *)1``
    same = nothing or (left.owner, left.inner) == (right.owner, right.inner)
    if left.ctype.struct != right.ctype.struct or not same:
        raise Mismatch(f"a comparison of a {left.ctype} and a {right.ctype}")
    return Value(Binary(op, left.expr, right.expr, loc), INT, True)


def conditional(test: Expr, then: Value, other: Value, loc: Loc) -> Value:
    """``test ? then : other`` of two values that need no statements."""
    ctype = common(then, other)
    if ctype is None:
        raise Mismatch("the value of a void function")
    then, other = convert(then, ctype, loc), convert(other, ctype, loc)
    if (then.owner, then.inner) != (other.owner, other.inner):
        raise Mismatch("a choice between two members of objects")
    return Value(Cond(test, then.expr, other.expr, loc, None if ctype.struct or then.truth else ctype), ctype,
                 then.truth, then.owner, then.inner, then.maybe or other.maybe)


def common(left: Value, right: Value) -> CType | None:
    """The type of a conditional expression."""
    if left.ctype is None or right.ctype is None:
        return None
    if left.is_pointer or right.is_pointer:
        kept = right if is_null(left) else left
        return kept.ctype
    return usual(left.number, right.number)


def literal(spelled: str, loc: Loc) -> Value | None:
    """An integer or character literal with its C type; None for anything else."""
    if spelled.startswith("'"):
        inner = spelled[1:-1]
        escapes = {"\\n": 10, "\\t": 9, "\\0": 0, "\\\\": 92, "\\'": 39, "\\r": 13}
        code = escapes.get(inner, ord(inner) if len(inner) == 1 and inner.isascii() else None)
        return None if code is None else constant(code, INT, loc)
    digits = spelled.rstrip("uUlL")
    suffix = spelled[len(digits):].lower()
    if suffix not in ("", "u", "l", "ul", "lu", "ll", "ull", "llu"):
        return None
    decimal = True
    try:
        if digits[:2].lower() in ("0x", "0b"):
            value, decimal = int(digits, 0), False
        elif len(digits) > 1 and digits[0] == "0":
            value, decimal = int(digits, 8), False
        else:
            value = int(digits)
    except ValueError:
        return None
    for ctype in _candidates("u" in suffix, "l" in suffix, decimal):
        if value <= ctype.high:
            return Value(Const(value, loc, ctype), ctype)
    return None


def _candidates(unsigned: bool, long: bool, decimal: bool) -> list[CType]:
    """The types that a literal may have, in order (C11 6.4.4.1)."""
    order = [(INT, False, False), (UINT, True, False), (LONG, False, True), (ULONG, True, True)]
    return [t for t, is_unsigned, is_long in order
            if (is_long or not long) and (is_unsigned if unsigned else decimal <= (not is_unsigned))]


def is_plain(expr: Expr) -> bool:
    """Whether an expression can be written twice: a constant or a local."""
    return isinstance(expr, Const | Local)
