# SPDX-License-Identifier: GPL-2.0-only
"""Terms: folding, intervals, conversions, against plain numbers."""

from __future__ import annotations

import itertools

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from schedproof.lang import terms as t
from schedproof.lang.ctypes import BOOL, CHAR, INT, LONG, S16, U8, U16, UINT, ULONG, pointer, promote, usual

X, Y, B = z3.Int("x"), z3.Int("y"), z3.Bool("b")


def value(term: t.Value, x: int = 0, y: int = 0, b: bool = False) -> int | bool:
    term = z3.substitute(t.z3_of(term), (X, z3.IntVal(x)), (Y, z3.IntVal(y)), (B, z3.BoolVal(b)))
    found = t.simplify(term)
    assert isinstance(found, int)
    return found


@pytest.mark.parametrize("a, b, quotient, remainder", [
    (7, 2, 3, 1), (-7, 2, -3, -1), (7, -2, -3, 1), (-7, -2, 3, -1), (0, 5, 0, 0), (-1, 5, 0, -1), (6, 3, 2, 0)])
def test_division_is_that_of_c(a, b, quotient, remainder):
    assert (t.c_divide(a, b), t.c_remainder(a, b)) == (quotient, remainder)
    for divisor in (b, Y):
        assert value(t.divide(X, divisor), a, b) == quotient
        assert value(t.remainder(X, divisor), a, b) == remainder
    if a >= 0 and b > 0:
        assert value(t.divide(X, Y, natural=True), a, b) == quotient


def test_conditions_fold():
    assert t.and_(True, B) is B and t.and_(False, B) is False and t.or_(B, True) is True
    assert t.or_(B, z3.Not(B)) is True
    assert t.and_(B, B) is B and z3.eq(t.not_(t.not_(B)), B)
    assert t.ite(B, 3, 3) == 3 and t.ite(B, True, False) is B and z3.eq(t.ite(B, False, True), z3.Not(B))
    assert z3.eq(t.ite(X == 3, 3, X), X)
    assert t.same(1, 1) and not t.same(1, True) and not t.same(0, False)


def test_truth_values_and_numbers_meet_as_numbers():
    assert value(t.ite(B, True, 5), b=True) == 1 and value(t.ite(B, True, 5)) == 5
    assert value(t.equal(B, 1), b=True) is True and value(t.equal(B, 2), b=True) is False
    assert value(t.truth(X), x=-1) is True and value(t.truth(X), x=0) is False


def test_what_a_condition_says_about_constants():
    pairs = {(str(c), v) for c, v in t.learned(z3.And(X == 3, z3.Not(B)))}
    assert pairs == {("x", 3), ("b", False)}
    assert t.learned(z3.Or(X == 3, B)) == [] and t.learned(X < 3) == []


def test_outcomes_are_the_leaves_of_a_decision():
    assert t.outcomes(z3.If(B, z3.IntVal(2), z3.If(X > 0, z3.IntVal(0), z3.IntVal(2)))) == (0, 2)
    assert t.outcomes(z3.If(B, X, z3.IntVal(0))) is None
    many = z3.IntVal(0)
    for i in range(1, 20):
        many = z3.If(i == X, z3.IntVal(i), many)
    assert t.outcomes(many) is None


@pytest.mark.parametrize("op", ["<<", ">>"])
@pytest.mark.parametrize("amount", [0, 1, 5])
def test_shifts_by_a_known_amount(op, amount):
    for x in (-9, -1, 0, 1, 100):
        assert value(t.arithmetic(op, X, amount), x) == (x << amount if op == "<<" else x >> amount)


@pytest.mark.parametrize("op", ["&", "|", "^"])
@pytest.mark.parametrize("mask", [0, 1, 3, 255, 8, 64, 5, 0xffff0000, 0xa5, -1, -2, -256, -77])
def test_masks_that_are_known(op, mask):
    for x in (-(1 << 40) - 7, -300, -9, -1, 0, 77, 300, 0x12345678, (1 << 64) - 1):
        expected = {"&": x & mask, "|": x | mask, "^": x ^ mask}[op]
        assert value(t.arithmetic(op, X, mask), x) == expected
        assert value(t.arithmetic(op, mask, X), x) == expected


def test_masks_and_shifts_that_are_not_known_are_refused():
    assert all(t.arithmetic(op, X, Y) is None for op in ("&", "|", "^"))
    assert t.arithmetic("<<", X, Y) is None
    assert t.arithmetic("<<", 1, 64) == 1 << 64          # of a type of 128 bits; a shift too far is a fault elsewhere


OPS = st.sampled_from(["+", "-", "*", "ite", "neg", "/", "%"])


@st.composite
def bounded_terms(draw, depth: int = 3):
    if depth == 0:
        return draw(st.sampled_from([X, Y, z3.IntVal(3), z3.IntVal(-2), z3.IntVal(0)]))
    op, a, b = draw(OPS), draw(bounded_terms(depth - 1)), draw(bounded_terms(depth - 1))
    if op == "ite":
        return z3.If(B, a, b)
    if op == "neg":
        return -a
    if op in "/%":
        k = z3.IntVal(draw(st.sampled_from([1, 2, 5])))
        return a / k if op == "/" else a % k
    return {"+": a + b, "-": a - b, "*": a * b}[op]


@settings(max_examples=80, deadline=None, derandomize=True)
@given(bounded_terms(), st.sampled_from([(0, 3), (-2, 1), (-3, -1)]), st.sampled_from([(0, 2), (-1, 4)]))
def test_an_interval_contains_every_value(term, xs, ys):
    low, high = t.Bounds({"x": xs, "y": ys}).of(term)
    for x, y, b in itertools.product(range(xs[0], xs[1] + 1), range(ys[0], ys[1] + 1), (False, True)):
        found = value(term, x, y, b)
        assert (low is None or low <= found) and (high is None or found <= high)


@pytest.mark.parametrize("low, high", [(-3, 4), (0, 2), (1, 3), (-4, -1)])
def test_an_interval_of_a_quotient_by_an_unknown_contains_every_value(low, high):
    inside = t.Bounds({"x": (-9, 9), "y": (low, high)}).of(X / Y)
    for x, y in itertools.product(range(-9, 10), range(low, high + 1)):
        if y:
            assert inside[0] is not None and inside[1] is not None and inside[0] <= value(X / Y, x, y) <= inside[1]


@pytest.mark.parametrize("ctype", [U8, CHAR, U16, S16, INT, UINT, LONG, ULONG])
def test_a_conversion_of_a_term_is_that_of_its_value(ctype):
    edges = sorted({e + d for e in (0, ctype.low, ctype.high, 2 ** ctype.bits) for d in (-1, 0, 1)})
    converted = t.convert(X, ctype, t.Bounds({}))
    for x in edges:
        assert value(converted, x) == ctype.wrap(x) == t.convert(x, ctype, t.Bounds({}))


def test_a_conversion_vanishes_only_where_it_cannot_matter():
    assert t.convert(X, U8, t.Bounds({"x": (0, 255)})) is X
    assert t.convert(X, U8, t.Bounds({"x": (0, 256)})) is not X
    assert t.convert(X, U8, t.Bounds({"x": (-1, 255)})) is not X


def test_a_conversion_to_bool_is_no_reduction():
    assert t.convert(2, BOOL, t.Bounds({})) is True and BOOL.wrap(2) == 1 and BOOL.wrap(0) == 0
    assert value(t.convert(X, BOOL, t.Bounds({})), 256) is True


def test_a_pointer_is_not_converted():
    assert t.convert(-1, pointer("struct x"), t.Bounds({})) == -1 == pointer("struct x").wrap(-1)


@pytest.mark.parametrize("a, b, common", [
    (U8, U8, INT), (CHAR, U16, INT), (BOOL, BOOL, INT), (INT, UINT, UINT), (UINT, LONG, LONG), (LONG, ULONG, ULONG),
    (INT, ULONG, ULONG), (U8, LONG, LONG), (INT, INT, INT)])
def test_the_usual_conversions(a, b, common):
    assert usual(a, b) == usual(b, a) == common
    assert promote(common) == common
