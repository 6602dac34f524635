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
                    found.add((tuple(values[faults + 1:-1]), values[-1]))
        return found


# ------------------------------------------------------------------------------------------- random programs
HELPERS = {"first": ("int", ("i", "v")), "second": ("bool", ("v",)), "third": ("ptr", ("b",))}
LOCALS = {"i": "int", "j": "int", "b": "bool", "v": "ptr", "w": "ptr"}
START: tuple[s.Stmt, ...] = (s.Assign("i", s.Const(1)), s.Assign("j", s.Const(0)), s.Assign("b", s.Const(False)),
                             s.Assign("v", s.Const(0)), s.Assign("w", s.Const(-1)))


class Maker:
    """Draws one program. Helpers may only call those before them, so nothing recurs."""

    def __init__(self, draw: Any):
        self.draw, self.callable, self.counter, self.chooses = draw, [], 0, 0

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
            options += ["arr", "arr", "+", "-", "*", "/", "%", "&", "<<", ">>", "neg", "cond", "choose", *self.calls("int")]
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
            options += ["not", "and", "or", "and", "or", "less", "same", "number", "choose", "cond", *self.calls("bool") * 2]
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
                return s.Binary(self.pick(["<", "<=", ">", ">=", "==", "!="]), self.number(depth - 1), self.number(depth - 1))
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
                return [s.If(self.truth(2), self.block(depth - 1, loop, result, 1), self.block(depth - 1, loop, result))]
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


@settings(max_examples=300, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])
@given(programs())
@example(main(s.Store("arr", ANY, s.Const(1))))
@example(main(s.Store("arr", ANY, s.Binary("+", s.Load("arr", ANY), s.Const(1)))))
@example(main(s.For("v", "obj", CUR, (s.If(s.Binary("==", s.Load("arr", s.Local("v")), s.Const(0)), (s.Break(),)),)),
              s.Store("cur", None, s.Local("v"))))
def test_random_programs_run_the_same_both_ways(made):
    require_same(made)
