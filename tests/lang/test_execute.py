# SPDX-License-Identifier: GPL-2.0-only
"""The symbolic executor against the plain interpreter, on random programs and by hand."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import z3
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from schedproof.errors import ModelError
from schedproof.lang import syntax as s
from schedproof.lang import terms as t
from schedproof.lang.ctypes import INT, LONG, U8, UINT, ULONG, CType
from schedproof.lang.execute import runs
from schedproof.lang.interpret import Blocked, Interpreter, Oracle, run_function
from schedproof.lang.world import Key, World, make_world
from schedproof.model.domains import Bool, Object, Pointer, Range
from tests.loading import Valuer

OBJECTS = ("p", "q")


def _pointer() -> Pointer:
    made = Pointer(Object("struct o", *OBJECTS))
    made.names = OBJECTS
    return made


VARIABLES = {"flag": (None, Bool()), "n": (None, Range(0, 2)), "cur": (None, _pointer()), "arr": ("obj", Range(0, 1))}
LINKS = {"next": (1, s.NULL_CODE)}
KEYS: tuple[Key, ...] = (("flag", None), ("n", None), ("cur", None), ("arr", 0), ("arr", 1))
STATES = list(itertools.product((False, True), (0, 1, 2), (-1, 0, 1), (0, 1), (0, 1)))
FAULT = "fault"


def world_of(programs: Mapping[str, s.Program]) -> World:
    return make_world({"obj": OBJECTS}, VARIABLES, LINKS, {}, programs)


def by_interpreter(world: World, state: tuple[int | bool, ...]) -> set[Any]:
    """Everything that can come of ``main`` in a state: new states, or a fault."""
    found: set[Any] = set()
    oracle: Oracle | None = Oracle()
    while oracle is not None:
        try:
            done = Interpreter(world, dict(zip(KEYS, state, strict=True)), oracle).run("main", [])
            found.add((tuple(done.memory[k] for k in KEYS), int(done.value or 0)))
        except Blocked:
            pass
        except ModelError:
            found.add(FAULT)
        oracle = oracle.following()
    return found


class Symbolic:
    """The same by the terms of the executor, with z3's simplifier."""

    def __init__(self, world: World):
        self.constants = {k: z3.Bool(world.name(k)) if k[0] == "flag" else z3.Int(world.name(k)) for k in KEYS}
        ranges = {world.name(k): {"n": (0, 2), "cur": (-1, 1), "arr": (0, 1)}[k[0]] for k in KEYS if k[0] != "flag"}
        self.parts = []
        for result in runs(world, ranges, "main", [], dict(self.constants)):
            assert not result.cuts
            terms = [t.z3_of(f.guard) for f in result.faults]
            faults = len(terms)
            if result.end is not None:
                value = 0 if result.value is None else result.value
                ends = [result.end.pc, *(result.end.heap[k] for k in KEYS), t.number(value)]
                terms += [t.z3_of(x) for x in ends]
            used = t.constants_of(terms)
            choices = [c for c in result.choices if c.constant.decl().name() in used]
            valuer = Valuer(terms, [*self.constants.values(), *(c.constant for c in choices)])
            self.parts.append((valuer, faults, [len(c.labels) for c in choices]))

    def fan(self) -> int:
        return max((len(list(itertools.product(*map(range, sizes)))) for _, _, sizes in self.parts), default=0)

    def __call__(self, state: tuple[int | bool, ...]) -> set[Any]:
        found: set[Any] = set()
        for valuer, faults, sizes in self.parts:
            for choice in itertools.product(*map(range, sizes)):
                values = valuer([*state, *choice])
                if any(values[:faults]):
                    found.add(FAULT)
                elif len(values) > faults and values[faults]:
                    found.add((tuple(values[faults + 1 : -1]), values[-1]))
        return found


# ------------------------------------------------------------------------------------------- random programs
HELPERS = {"first": ("int", ("i", "v")), "second": ("bool", ("v",)), "third": ("ptr", ("b",))}
LOCALS = {"i": "int", "j": "int", "b": "bool", "v": "ptr", "w": "ptr"}
START: tuple[s.Stmt, ...] = (
    s.Assign("i", s.Const(1)),
    s.Assign("j", s.Const(0)),
    s.Assign("b", s.Const(False)),
    s.Assign("v", s.Const(0)),
    s.Assign("w", s.Const(-1)),
)


class Maker:
    """Draws one program. Helpers may only call those before them, so nothing recurs."""

    def __init__(self, draw: Any):
        self.draw, self.counter, self.chooses = draw, 0, 0
        self.callable: list[str] = []

    def pick(self, options: list[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def expr(self, kind: str, depth: int) -> s.Expr:
        return {"int": self.number, "bool": self.truth, "ptr": self.pointer}[kind](depth)

    def call(self, name: str, depth: int) -> s.Expr:
        kinds = {"i": "int", "v": "ptr", "b": "bool"}
        return s.Call(name, tuple(self.expr(kinds[p], depth - 1) for p in HELPERS[name][1]))

    def calls(self, kind: str) -> list[str]:
        return [f"call {n}" for n in self.callable if HELPERS[n][0] == kind]

    def choice(self, kind: str, depth: int) -> s.Expr:
        self.chooses += 1
        if self.chooses > 3:
            return self.expr(kind, 0)
        if kind == "ptr" and self.draw(st.booleans()):
            return s.Choose((), (), "obj")
        return s.Choose((self.expr(kind, depth - 1), self.expr(kind, 0)), ("one", "two"))

    def number(self, depth: int) -> s.Expr:
        options = ["const", "local", "n"]
        if depth > 0:
            options += [
                "arr",
                "arr",
                "+",
                "-",
                "*",
                "/",
                "%",
                "&",
                "<<",
                ">>",
                "neg",
                "cond",
                "choose",
                *self.calls("int"),
            ]
        what = self.pick(options)
        match what:
            case "const":
                return s.Const(self.pick([-2, -1, 0, 1, 2, 3]))
            case "local":
                return s.Local(self.pick(["i", "j"]))
            case "n":
                return s.Load("n", None)
            case "arr":
                return s.Load("arr", self.pointer(depth - 1))
            case "neg":
                return s.Unary("-", self.number(depth - 1))
            case "&":
                return s.Binary("&", self.number(depth - 1), s.Const(self.pick([1, 2, 3])))
            case "<<" | ">>":
                return s.Binary(what, self.number(depth - 1), s.Const(self.pick([0, 1, 2])))
            case "cond":
                return s.Cond(self.truth(depth - 1), self.number(depth - 1), self.number(depth - 1))
            case "choose":
                return self.choice("int", depth)
            case "+" | "-" | "*" | "/" | "%":
                return s.Binary(what, self.number(depth - 1), self.number(depth - 1))
        return self.call(what.split()[1], depth)

    def truth(self, depth: int) -> s.Expr:
        options = ["const", "local", "flag"]
        if depth > 0:
            options += [
                "not",
                "and",
                "or",
                "and",
                "or",
                "less",
                "same",
                "number",
                "choose",
                "cond",
                *self.calls("bool") * 2,
            ]
        what = self.pick(options)
        match what:
            case "const":
                return s.Const(self.draw(st.booleans()))
            case "local":
                return s.Local("b")
            case "flag":
                return s.Load("flag", None)
            case "not":
                return s.Unary("not", self.truth(depth - 1))
            case "and" | "or":
                return s.Binary(what, self.truth(depth - 1), self.truth(depth - 1))
            case "less":
                return s.Binary(
                    self.pick(["<", "<=", ">", ">=", "==", "!="]), self.number(depth - 1), self.number(depth - 1)
                )
            case "same":
                return s.Binary(self.pick(["==", "!="]), self.pointer(depth - 1), self.pointer(depth - 1))
            case "number":
                return self.number(depth - 1)
            case "choose":
                return self.choice("bool", depth)
            case "cond":
                return s.Cond(self.truth(depth - 1), self.truth(depth - 1), self.truth(depth - 1))
        return self.call(what.split()[1], depth)

    def pointer(self, depth: int) -> s.Expr:
        options = ["const", "local", "cur", "cur"]
        if depth > 0:
            options += ["next", "cond", "choose", *self.calls("ptr")]
        what = self.pick(options)
        match what:
            case "const":
                return s.Const(self.pick([0, 1, 1, -1]))
            case "local":
                return s.Local(self.pick(["v", "v", "w"]))
            case "cur":
                return s.Load("cur", None)
            case "next":
                return s.Load("next", self.pointer(depth - 1))
            case "cond":
                return s.Cond(self.truth(depth - 1), self.pointer(depth - 1), self.pointer(depth - 1))
            case "choose":
                return self.choice("ptr", depth)
        return self.call(what.split()[1], depth)

    def block(self, depth: int, loop: bool, result: str, least: int = 0) -> tuple[s.Stmt, ...]:
        return tuple(x for _ in range(self.draw(st.integers(least, 3))) for x in self.statement(depth, loop, result))

    def statement(self, depth: int, loop: bool, result: str) -> list[s.Stmt]:
        options = ["assign", "assign", "flag", "n", "cur", "arr", "arr", "require"]
        options += ["do"] * bool(self.callable) + (["break", "continue", "leave", "leave"] if loop else [])
        options += ["if", "if", "while", "do-while", "for", "ring", "return"] if depth > 0 else []
        what = self.pick(options)
        match what:
            case "assign":
                name = self.pick(list(LOCALS))
                return [s.Assign(name, self.expr(LOCALS[name], 2))]
            case "flag":
                return [s.Store("flag", None, self.truth(2))]
            case "n":
                return [s.Store("n", None, self.number(2))]
            case "cur":
                return [s.Store("cur", None, self.pointer(2))]
            case "arr":
                return [s.Store("arr", self.pointer(1), self.number(2))]
            case "require":
                return [s.Require(s.Binary("or", self.truth(1), self.truth(1)))]
            case "do":
                return [s.Do(self.call(self.pick(self.callable), 2))]
            case "break":
                return [s.Break()]
            case "continue":
                return [s.Continue()]
            case "leave":
                ends: list[s.Stmt] = [s.Break(), s.Continue(), s.Return(self.expr(result, 1))]
                return [s.If(self.truth(1), (self.pick(ends),), ())]
            case "if":
                return [
                    s.If(self.truth(2), self.block(depth - 1, loop, result, 1), self.block(depth - 1, loop, result))
                ]
            case "return":
                return [s.If(self.truth(1), (s.Return(self.expr(result, 1)),), ())]
            case "for" | "ring":
                after = self.pointer(1) if what == "ring" else None
                return [s.For(self.pick(["v", "w"]), "obj", after, self.block(depth - 1, True, result, 1))]
        self.counter += 1
        count = f"c{self.counter}"
        test = s.Binary("and", s.Binary("<", s.Local(count), s.Const(2)), self.truth(1))
        step = (s.Assign(count, s.Binary("+", s.Local(count), s.Const(1))),)
        body = self.block(depth - 1, True, result, 1)
        return [s.Assign(count, s.Const(0)), s.While(test, body, step, s.NOWHERE, what == "do-while")]

    def program(self, name: str, params: tuple[str, ...], result: str, depth: int) -> s.Program:
        body = self.block(depth, False, result, 1)
        start = tuple(x for x in START if isinstance(x, s.Assign) and x.name not in params)
        return s.Program(name, params, (*start, *body, s.Return(self.expr(result, 1))))


@st.composite
def programs(draw: Any) -> dict[str, s.Program]:
    maker, found = Maker(draw), {}
    for name, (result, params) in HELPERS.items():
        if draw(st.booleans()):
            found[name] = maker.program(name, params, result, 1)
            maker.callable.append(name)
    found["main"] = maker.program("main", (), "int", 2)
    return found


def require_same(made: Mapping[str, s.Program]) -> None:
    world = world_of(made)
    symbolic = Symbolic(world)
    states = STATES if symbolic.fan() <= 8 else STATES[::5] if symbolic.fan() <= 64 else STATES[::36]
    for state in states:
        assert symbolic(state) == by_interpreter(world, state), state


def main(*body: s.Stmt, **helpers: s.Program) -> dict[str, s.Program]:
    return {**helpers, "main": s.Program("main", (), (*START, *body, s.Return(s.Const(0))))}


CUR, N, FLAG = s.Load("cur", None), s.Load("n", None), s.Load("flag", None)
ANY = s.Choose((), (), "obj")


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(programs())
@example(main(s.Store("arr", ANY, s.Const(1))))
@example(main(s.Store("arr", ANY, s.Binary("+", s.Load("arr", ANY), s.Const(1)))))
@example(
    main(
        s.For("v", "obj", CUR, (s.If(s.Binary("==", s.Load("arr", s.Local("v")), s.Const(0)), (s.Break(),)),)),
        s.Store("cur", None, s.Local("v")),
    )
)
def test_random_programs_run_the_same_both_ways(made):
    require_same(made)


# ------------------------------------------------------------------------------------------------ by hand
def outcomes(*body: s.Stmt, state: tuple[int | bool, ...] = (False, 0, -1, 0, 0), **helpers: s.Program) -> set[Any]:
    """What comes of a body in one state, the same both ways: (flag, n, cur, arr[p], arr[q]) and faults."""
    world = world_of(main(*body, **helpers))
    found = by_interpreter(world, state)
    assert Symbolic(world)(state) == found
    return {x if x == FAULT else x[0] for x in found}


def test_a_choice_as_an_index_is_one_choice():
    assert outcomes(s.Store("arr", ANY, s.Const(1))) == {(False, 0, -1, 1, 0), (False, 0, -1, 0, 1)}


def test_two_choices_in_one_statement_are_two():
    both = s.Store("arr", ANY, s.Binary("+", s.Load("arr", ANY), s.Const(1)))
    assert outcomes(both, state=(False, 0, -1, 0, 1)) == {
        (False, 0, -1, 1, 1),
        (False, 0, -1, 2, 1),
        (False, 0, -1, 0, 1),
        (False, 0, -1, 0, 2),
    }


def test_a_choice_that_a_callee_makes_may_be_an_index_of_its_caller():
    pick = s.Program("pick", (), (s.Return(s.Choose((CUR, s.Const(0)), ("one", "two"))),))
    loop = s.For("v", "obj", s.Call("pick", ()), (s.Store("n", None, s.Load("arr", CUR)),))
    assert outcomes(loop, state=(False, 0, 1, 0, 2), pick=pick) == {(False, 2, 1, 0, 2)}
    assert outcomes(loop, state=(False, 0, -1, 0, 2), pick=pick) == {FAULT}


def test_null_as_an_index_is_a_fault_only_where_it_is_null():
    write = s.Store("arr", CUR, s.Const(1))
    assert outcomes(write) == {FAULT}
    assert outcomes(write, state=(False, 0, 1, 0, 0)) == {(False, 0, 1, 0, 1)}


def test_the_right_side_of_and_is_not_run_where_it_does_not_count():
    guarded = s.If(
        s.Binary("and", s.Binary("!=", CUR, s.Const(-1)), s.Load("arr", CUR)), (s.Store("n", None, s.Const(2)),)
    )
    assert outcomes(guarded) == {(False, 0, -1, 0, 0)}
    assert outcomes(guarded, state=(False, 0, 0, 1, 0)) == {(False, 2, 0, 1, 0)}


def test_a_ring_begins_behind_its_start_and_ends_with_it():
    first = s.For("v", "obj", CUR, (s.Store("cur", None, s.Local("v")), s.Break()))
    assert [outcomes(first, state=(False, 0, c, 0, 0)) for c in (-1, 0, 1)] == [
        {(False, 0, 0, 0, 0)},
        {(False, 0, 1, 0, 0)},
        {(False, 0, 0, 0, 0)},
    ]


def test_division_is_towards_zero_and_by_zero_a_fault():
    less = s.Binary("-", N, s.Const(5))  # -5, -4, -3 for n = 0, 1, 2
    assert outcomes(s.Store("cur", None, s.Binary("/", less, s.Const(2)))) == {(False, 0, -2, 0, 0)}
    assert outcomes(s.Store("cur", None, s.Binary("%", less, s.Const(2)))) == {(False, 0, -1, 0, 0)}
    assert outcomes(s.Store("n", None, s.Binary("/", s.Const(1), N))) == {FAULT}


HALF = s.Program("half", (), (s.If(FLAG, (s.Return(s.Const(2)),)),))


@pytest.mark.parametrize(
    "use",
    [
        s.Store("n", None, s.Call("half", ())),
        s.Assign("i", s.Call("half", ())),
        s.Assign("i", s.Cond(FLAG, s.Const(1), s.Call("half", ()))),
        s.Assign("i", s.Binary("+", s.Call("half", ()), s.Const(1))),
    ],
)
def test_a_function_that_returns_a_value_on_some_paths_only_is_not_used_as_one(use):
    world = world_of(main(use, half=HALF))
    with pytest.raises(ModelError, match="returns no value is used as one"):
        Symbolic(world)
    assert by_interpreter(world, STATES[0]) == {FAULT}


def test_a_function_that_returns_a_value_on_every_path_that_can_be_is_used_as_one():
    """Behind the last `if` nothing comes any more: n is 0, 1 or 2."""
    tests = tuple(s.If(s.Binary("==", N, s.Const(k)), (s.Return(s.Const(k + 5)),)) for k in range(3))
    assert outcomes(
        s.Store("n", None, s.Call("all", ())), state=(False, 2, -1, 0, 0), all=s.Program("all", (), tests)
    ) == {(False, 7, -1, 0, 0)}


def test_its_value_need_not_be_used():
    assert outcomes(s.Do(s.Call("half", ())), half=HALF) == {(False, 0, -1, 0, 0)}


def test_a_loop_without_an_end_is_an_error_with_its_place():
    here = s.Loc("models/x.py", 12)
    world = world_of(main(s.While(s.Const(True), (s.Store("n", None, s.Const(1)),), (), here)))
    with pytest.raises(ModelError, match="rounds in one step") as error:
        Symbolic(world)
    assert (error.value.file, error.value.line) == ("models/x.py", 12) and "step()" in error.value.hint
    with pytest.raises(ModelError, match="rounds in one step"):
        Interpreter(world, dict(zip(KEYS, STATES[0], strict=True)), Oracle()).run("main", [])


# ------------------------------------------------------------------------------------------------- C's types
TYPES = [U8, UINT, ULONG, INT, LONG]
EDGES = [
    0,
    1,
    2,
    3,
    127,
    128,
    255,
    256,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**32,
    2**63 - 1,
    -1,
    -2,
    -7,
    -128,
    -(2**31),
    -(2**63),
]
XS = [-300, -257, -256, -255, -129, -128, -3, -1, 0, 1, 2, 7, 127, 128, 200, 255, 256, 300]


@st.composite
def c_expressions(draw: Any, depth: int = 3) -> s.Expr:
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from([s.Load("x", None), s.Load("x", None), *(s.Const(e) for e in EDGES)]))
    ctype = draw(st.sampled_from(TYPES))
    inner = c_expressions(depth - 1)
    what = draw(st.sampled_from(["+", "-", "*", "/", "%", "&", "<<", ">>", "neg", "~", "cast", "cond"]))
    match what:
        case "neg" | "~":
            return s.Unary("-" if what == "neg" else "~", draw(inner), s.NOWHERE, ctype)
        case "cast":
            return s.Cast(draw(inner), ctype)
        case "cond":
            test = s.Binary("<", draw(inner), draw(inner))
            return s.Cond(
                draw(st.sampled_from([test, s.Const(True), s.Const(False)])),
                draw(inner),
                draw(inner),
                s.NOWHERE,
                ctype,
            )
        case "&":
            return s.Binary("&", draw(inner), s.Const(draw(st.sampled_from([1, 7, 8, 255]))), s.NOWHERE, ctype)
        case "<<" | ">>":
            return s.Binary(what, draw(inner), s.Const(draw(st.integers(0, 31))), s.NOWHERE, ctype)
    return s.Binary(what, draw(inner), draw(inner), s.NOWHERE, ctype)


def wrapped(value: int, ctype: CType) -> int:
    """The conversion as C11 6.3.1.3 has it: add or subtract one more than the maximum until it fits."""
    value %= 2**ctype.bits
    return value - 2**ctype.bits if ctype.signed and value >= 2 ** (ctype.bits - 1) else value


class Odd(Exception):
    pass


def by_hand(e: s.Expr, x: int) -> int:
    match e:
        case s.Const():
            return int(e.value)
        case s.Load():
            return x
        case s.Cast():
            return wrapped(by_hand(e.operand, x), e.ctype)
        case s.Unary():
            value = by_hand(e.operand, x)
            value = -value if e.op == "-" else -value - 1
        case s.Cond():
            assert isinstance(e.test, s.Binary | s.Const)
            test = e.test.value if isinstance(e.test, s.Const) else by_hand(e.test.left, x) < by_hand(e.test.right, x)
            value = by_hand(e.then if test else e.other, x)
        case s.Binary():
            a, b = by_hand(e.left, x), by_hand(e.right, x)
            assert e.ctype is not None
            if e.op in "/%" and (b == 0 or b == -1 and e.ctype.signed and a == e.ctype.low):
                raise Odd
            quotient = 0 if e.op not in "/%" else -(abs(a) // abs(b)) if (a < 0) != (b < 0) else abs(a) // abs(b)
            value = {
                "+": a + b,
                "-": a - b,
                "*": a * b,
                "/": quotient,
                "%": a - quotient * b,
                "&": a & b,
                "<<": a * 2 ** max(b, 0) if e.op == "<<" else 0,
                ">>": a // 2 ** max(b, 0) if e.op == ">>" else 0,
            }[e.op]
        case _:
            raise AssertionError(e)
    assert e.ctype is not None
    return wrapped(value, e.ctype)


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(c_expressions())
@example(s.Cond(s.Const(True), s.Const(256), s.Load("x", None), s.NOWHERE, U8))
@example(s.Binary("/", s.Const(-(2**31)), s.Unary("-", s.Const(1), s.NOWHERE, INT), s.NOWHERE, INT))
def test_c_arithmetic_is_the_same_three_ways(e):
    program = s.Program("f", (), (s.Return(e),))
    world = make_world({}, {"x": (None, Range(-300, 300))}, {}, {}, {"f": program})
    x = z3.Int("x")
    (result,) = runs(world, {"x": (-300, 300)}, "f", [], {("x", None): x})
    assert result.value is not None
    look = Valuer([t.z3_of(t.number(result.value)), *(t.z3_of(f.guard) for f in result.faults)], [x])
    for number in XS:
        value, *faults = look([number])
        try:
            expected = by_hand(e, number)
        except Odd:
            assert any(faults)
            with pytest.raises(ModelError, match="division"):
                Interpreter(world, {("x", None): number}, Oracle()).run("f", [])
            continue
        assert not any(faults)
        assert value == expected
        assert Interpreter(world, {("x", None): number}, Oracle()).run("f", []).value == expected


@pytest.mark.parametrize("ctype", TYPES)
def test_wrapping_is_conversion(ctype):
    for value in EDGES:
        assert ctype.wrap(value) == wrapped(value, ctype)
        assert ctype.low <= ctype.wrap(value) <= ctype.high


def test_parameters_and_results_are_converted():
    program = s.Program("f", ("a",), (s.Return(s.Local("a")),), types=(U8,), result=INT, language="c")
    assert run_function({"f": program}, "f", [-1]) == 255
    assert run_function({"f": replace(program, types=(INT,), result=U8)}, "f", [257]) == 1
