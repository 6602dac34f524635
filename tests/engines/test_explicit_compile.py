# SPDX-License-Identifier: GPL-2.0-only
"""Compiled transitions and predicates say what z3 says."""

from __future__ import annotations

import itertools

import pytest
import z3
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from schedproof.engines.explicit.compile import LEFT_DOMAIN, CannotCompile, compile_instance
from schedproof.engines.explicit.layout import lay_out
from schedproof.model.domains import Enum, Int
from tests.engines.handmade import by_name, number, of, rule, truth, value_of, values

ENUM = Enum("LOW", "MIDDLE", "HIGH")
ENUM.code_of = {"LOW": 40, "MIDDLE": 17, "HIGH": 1000}      # in no order, with gaps

VARIABLES = by_name(number("x", -3, 4), values("w", 2, 1024, 1 << 20), truth("b"), number("p", -1, 2),
                    of("e", ENUM), truth("c"), number("one", 5, 5), number("d", 3, 7))
BALLAST = by_name(*(number(f"ballast{i}", -3, 1) for i in range(20)))       # 46.4 bits: digits have to be shared
STATES = [dict(zip(VARIABLES, combination, strict=True))
          for combination in itertools.product(*(v.domain.codes() or () for v in VARIABLES.values()))]

LEAVES = st.one_of(st.integers(-20, 20).map(z3.IntVal),
                   st.sampled_from([v.term for v in VARIABLES.values() if not z3.is_bool(v.term)]))
TRUTHS = st.one_of(st.booleans().map(z3.BoolVal), st.sampled_from([VARIABLES["b"].term, VARIABLES["c"].term]))


def ints(depth: int) -> st.SearchStrategy:
    """Int terms up to a depth. Products are kept rare: their intervals soon leave 64 bits."""
    if depth == 0:
        return LEAVES
    a, b = st.deferred(lambda: ints(depth - 1)), st.deferred(lambda: bools(depth - 1))
    return st.one_of(
        LEAVES,
        st.tuples(a, a).map(lambda t: t[0] + t[1]),
        st.tuples(a, a, a).map(lambda t: z3.Sum(*t)),
        st.tuples(a, a).map(lambda t: t[0] - t[1]),
        st.tuples(a, LEAVES).map(lambda t: t[0] * t[1]),
        a.map(lambda t: -t),
        st.tuples(a, a).map(lambda t: t[0] / t[1]),
        st.tuples(a, a).map(lambda t: t[0] % t[1]),
        st.tuples(a, st.sampled_from([-7, 5, 8, 16, 1 << 32, 1 << 64])).map(lambda t: t[0] % t[1]),
        st.tuples(a, st.sampled_from([-7, 5, 8, 16, 1 << 32])).map(lambda t: t[0] / t[1]),
        st.tuples(b, a, a).map(lambda t: z3.If(*t)),
    )


def bools(depth: int) -> st.SearchStrategy:
    """Bool terms up to a depth."""
    if depth == 0:
        return TRUTHS
    a, b = st.deferred(lambda: ints(depth - 1)), st.deferred(lambda: bools(depth - 1))
    return st.one_of(
        TRUTHS,
        st.tuples(a, a).map(lambda t: t[0] <= t[1]),
        st.tuples(a, a).map(lambda t: t[0] < t[1]),
        st.tuples(a, a).map(lambda t: t[0] >= t[1]),
        st.tuples(a, a).map(lambda t: t[0] > t[1]),
        st.tuples(a, a).map(lambda t: t[0] == t[1]),
        st.lists(a, min_size=2, max_size=4).map(lambda t: z3.Distinct(*t)),
        st.tuples(b, b).map(lambda t: t[0] == t[1]),
        st.tuples(b, b).map(lambda t: z3.Distinct(*t)),
        st.tuples(b, b).map(lambda t: z3.Xor(*t)),
        st.tuples(b, b).map(lambda t: z3.Implies(*t)),
        b.map(z3.Not),
        st.lists(b, min_size=1, max_size=4).map(lambda t: z3.And(*t)),
        st.lists(b, min_size=1, max_size=4).map(lambda t: z3.Or(*t)),
        st.tuples(b, b, b).map(lambda t: z3.If(*t)),
    )


@st.composite
def int_terms(draw):
    return draw(ints(3))


@st.composite
def bool_terms(draw):
    return draw(bools(3))


INTS, BOOLS = int_terms(), bool_terms()
SOME = st.lists(st.integers(0, len(STATES) - 1).map(lambda i: STATES[i]), min_size=8, max_size=8)


def z3_says(what, state):
    """The value, or None where the term divides by zero somewhere: z3 leaves that open."""
    pairs = [(v.term, z3.BoolVal(state[n]) if z3.is_bool(v.term) else z3.IntVal(state[n]))
             for n, v in VARIABLES.items()]
    stack = [what]
    while stack:
        here = stack.pop()
        if z3.is_int(here) and not z3.is_int_value(z3.simplify(z3.substitute(here, *pairs))):
            return None
        stack += here.children()
    return value_of(what, VARIABLES, state)


@settings(max_examples=100, deadline=None)
@given(st.lists(BOOLS, min_size=1, max_size=5), SOME)
def test_predicates_are_what_z3_says(terms, states):
    try:
        compiled = compile_instance(VARIABLES, [], terms)
    except CannotCompile:
        reject()
    for state in states:
        mask = compiled.call_observe(compiled.layout.pack(state))
        for bit, what in enumerate(terms):
            expected = z3_says(what, state)
            assert expected is None or bool(mask >> bit & 1) == expected, (what, state)


@settings(max_examples=100, deadline=None)
@given(BOOLS, st.lists(st.tuples(st.sampled_from(list(VARIABLES)), INTS, BOOLS), min_size=1, max_size=4,
                       unique_by=lambda u: u[0]), INTS, SOME, st.booleans())
def test_steps_are_what_z3_says(guard, updates, cost, states, crowded):
    ballast = dict.fromkeys(BALLAST, 1) if crowded else {}
    variables = {**VARIABLES, **BALLAST} if crowded else VARIABLES
    changes = {n: as_bool if z3.is_bool(VARIABLES[n].term) else as_int for n, as_int, as_bool in updates}
    try:
        compiled = compile_instance(variables, [rule("a", guard, changes, {"ms": cost})], [], "ms")
    except CannotCompile:
        reject()
    for state in states:
        told = {n: z3_says(u, state) for n, u in changes.items()}
        told_cost, enabled = z3_says(cost, state), z3_says(guard, state)
        if enabled is None or told_cost is None or None in told.values():
            continue
        found = list(compiled.step(compiled.layout.pack({**state, **ballast})))
        assert len(found) == enabled, (guard, state)
        for following, number_, cost_ in found:
            assert (number_, cost_) == (0, told_cost)
            if all(v in VARIABLES[n].domain.codes() for n, v in told.items()):
                assert compiled.layout.unpack(following) == {**state, **ballast, **told}
            else:
                assert following == LEFT_DOMAIN


@pytest.mark.parametrize("divisor", [None, -8, -7, -1, 1, 3, 8])
def test_division_is_euclidean_for_every_sign(divisor):
    a, b = number("a", -9, 9), number("b", -4, 4)
    by = b.term if divisor is None else z3.IntVal(divisor)
    quotient, rest = number("q", -50, 50), number("r", -50, 50)
    compiled = compile_instance(by_name(a, b, quotient, rest),
                                [rule("divide", True, {"q": a.term / by, "r": a.term % by})], [])
    for x, y in itertools.product(range(-9, 10), range(-4, 5)):
        state = {"a": x, "b": y, "q": 0, "r": 0}
        [(following, _, _)] = compiled.step(compiled.layout.pack(state))
        found, d = compiled.layout.unpack(following), y if divisor is None else divisor
        if d == 0:
            assert (found["q"], found["r"]) == (0, 0)
        else:
            assert 0 <= found["r"] < abs(d) and found["q"] * d + found["r"] == x, (x, d, found)


def test_division_by_the_constant_zero_is_refused():
    with pytest.raises(CannotCompile, match="divides by the constant 0"):
        compile_instance(VARIABLES, [], [VARIABLES["x"].term / z3.IntVal(0) == 1])


def test_every_state_is_packed_and_unpacked():
    layout = lay_out(VARIABLES)
    words = {layout.pack(state) for state in STATES}
    assert len(words) == len(STATES)
    assert all(layout.unpack(layout.pack(s)) == s for s in STATES)
    assert layout.bits == 3 + 2 + 1 + 2 + 2 + 1 + 0 + 3
    assert max(words) < 1 << layout.bits


def test_variables_share_bits_when_they_have_to():
    layout = lay_out({**VARIABLES, **BALLAST})
    assert 3 + 1 + 2 + 1 + 50 <= layout.bits <= 63          # 58.7 bits of information
    states = [{**s, **{n: (i * 7 + j) % 5 - 3 for j, n in enumerate(BALLAST)}} for i, s in enumerate(STATES)]
    assert all(layout.unpack(layout.pack(s)) == s for s in states)
    assert max(layout.pack(s) for s in states) < 1 << layout.bits
    full = by_name(*(number(f"n{i}", 0, 2) for i in range(39)))             # 3**39 < 2**63 < 3**40
    tight = lay_out({**full, "bit": number("bit", 0, 1)})                   # fits as one number only
    most = {**dict.fromkeys(full, 2), "bit": 1}
    assert tight.bits == 63 and tight.unpack(tight.pack(most)) == most
    with pytest.raises(CannotCompile, match="more than the 63"):
        lay_out({**full, "more": number("more", 0, 2)})


def test_what_never_changes_takes_no_bits():
    up = rule("up", True, {"d": VARIABLES["d"].term + VARIABLES["x"].term, "w": VARIABLES["w"].term})
    first = {**STATES[0], "x": 1, "d": 3}
    compiled = compile_instance(VARIABLES, [up], [VARIABLES["e"].term == 17], initial=[first, {**first, "e": 17}])
    assert compiled.layout.bits == 3 + 1
    [(following, _, _)] = compiled.step(compiled.layout.pack(first))
    assert compiled.layout.unpack(following) == {**first, "d": 4}
    assert [compiled.call_observe(compiled.layout.pack({**first, "e": e})) for e in (40, 17)] == [0, 1]


def test_63_bits_fit_and_64_do_not():
    wide = by_name(*(number(f"n{i}", 0, 255) for i in range(7)), number("last", 0, 127))
    state = {n: v.domain.codes()[-1] for n, v in wide.items()}
    compiled = compile_instance(wide, [rule("down", wide["last"].term > 0, {"last": wide["last"].term - 1})], [])
    [(following, _, _)] = compiled.step(compiled.layout.pack(state))
    assert compiled.layout.unpack(following) == {**state, "last": 126}
    with pytest.raises(CannotCompile, match="64 bits, more than the 63"):
        lay_out({**wide, "more": number("more", 0, 1)})


def test_a_large_range_is_not_listed():
    huge = number("huge", -(1 << 61), (1 << 61) - 1)
    compiled = compile_instance(by_name(huge), [rule("up", True, {"huge": huge.term + 1})], [])
    [(following, _, _)] = compiled.step(compiled.layout.pack({"huge": -5}))
    assert compiled.layout.unpack(following) == {"huge": -4}
    [(following, _, _)] = compiled.step(compiled.layout.pack({"huge": (1 << 61) - 1}))
    assert following == LEFT_DOMAIN


def test_an_unbounded_variable_is_refused():
    with pytest.raises(CannotCompile, match="free has no bounds"):
        lay_out(by_name(of("free", Int())))


@pytest.mark.parametrize("what", [
    lambda h: h * h > 5,
    lambda h: h * 4 + h * 4 + h * 4 > 5,
    lambda h: (h + (1 << 63)) % 7 == 1,
])
def test_values_that_may_not_fit_64_bits_are_refused(what):
    huge = number("huge", 0, (1 << 61) - 1)
    with pytest.raises(CannotCompile, match="64 bits"):
        compile_instance(by_name(huge), [], [what(huge.term)])


def test_reduction_to_a_c_type_that_cannot_wrap_costs_nothing():
    weight = number("weight", -5, 1 << 40)
    wrapped = (weight.term * 3 + (1 << 63)) % (1 << 64) - (1 << 63)     # as a signed long
    compiled = compile_instance(by_name(weight), [], [wrapped == 21, wrapped == -15])
    assert [compiled.call_observe(compiled.layout.pack({"weight": w})) for w in (7, -5, 8)] == [1, 2, 0]


def test_what_is_not_compiled_is_named():
    with pytest.raises(CannotCompile, match="operator to_real"):
        compile_instance(VARIABLES, [], [z3.ToReal(VARIABLES["x"].term) < 1])
    with pytest.raises(CannotCompile, match="stranger, which is not a variable"):
        compile_instance(VARIABLES, [], [z3.Int("stranger") == 1])
    with pytest.raises(CannotCompile, match="quantifier"):
        compile_instance(VARIABLES, [], [z3.ForAll([z3.Int("i")], z3.Int("i") > 1)])


def test_a_term_may_be_deeper_than_pythons_stack():
    x = VARIABLES["x"].term
    deep = x
    for i in range(5000):
        deep = z3.If(x == i % 7, deep, i % 5)
    compiled = compile_instance(VARIABLES, [], [deep == 4])
    for state in STATES[::97]:
        assert bool(compiled.call_observe(compiled.layout.pack(state))) == value_of(deep == 4, VARIABLES, state)


def test_costs_set_the_flags_of_any_cost_but_report_the_one_asked_for():
    x = VARIABLES["x"].term
    rules = [rule("a", True, {}, {"ms": 0, "yields": 3}), rule("b", True, {}, {"ms": z3.If(x > 0, 2, 0)})]
    compiled = compile_instance(VARIABLES, rules, [], "ms")
    assert compiled.costly and compiled.cost_high == 2
    state = {**STATES[0], "x": 1}
    assert [(n, c) for _, n, c in compiled.step(compiled.layout.pack(state))] == [(0, 0), (1, 2)]


def test_many_transitions_keep_their_order():
    x = number("x", 0, 4000)
    rules = [rule(f"to{i}", z3.And(x.term * (i + 1) != 7, x.term + i != 3), {"x": i}) for i in range(3000)]
    compiled = compile_instance(by_name(x), rules, [])
    found = [(f, n) for f, n, _ in compiled.step(compiled.layout.pack({"x": 3}))]
    assert found == [(i, i) for i in range(3000) if i != 0]
