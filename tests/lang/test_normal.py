# SPDX-License-Identifier: GPL-2.0-only
"""Preparation for cuts: a cut ends up in a statement of its own, in order of evaluation, and nothing else changes."""

from __future__ import annotations

import pytest

from schedproof.errors import ModelError
from schedproof.lang import normal
from schedproof.lang import syntax as s
from schedproof.lang.ctypes import U8
from schedproof.lang.interpret import Interpreter, Oracle
from schedproof.lang.world import is_site, make_world
from schedproof.model.domains import Bool, Object, Pointer, Range

VARIABLES = {"x": Range(0, 9), "y": Bool()}
X, Y = s.Load("x", None), s.Load("y", None)
WAIT = s.Program("wait", (), (s.Cut(), s.Return(s.Const(1))))
CALL = s.Call("wait", ())


def prepared(*body: s.Stmt, kind="method", grain="atomic", domains=()) -> s.Program:
    program = s.Program("f", (), body, kind=kind, grain=grain, domains=domains)
    return normal.prepare({"f": program, "wait": WAIT}, VARIABLES, {"obj": 3})[0]["f"]


def simple(body: tuple[s.Stmt, ...], shared: frozenset[str] = frozenset()) -> bool:
    """Every cut and every call that cuts is a statement of its own, and every shared access is behind a cut."""
    for x in s.statements(body):
        own = x.value if isinstance(x, s.Assign | s.Do) and isinstance(x.value, s.Call) else None
        inside = [e for e in s.expressions(x) if isinstance(e, s.Call) and e.name == "wait" and e is not own]
        if inside:
            return False
        loads = [e for e in s.expressions(x) if isinstance(e, s.Load) and e.var in shared]
        if len(loads) + (isinstance(x, s.Store) and x.var in shared) > 1:
            return False
    return True


def test_who_cuts_is_who_calls_someone_who_cuts():
    programs = {
        "wait": WAIT,
        "a": s.Program("a", (), (s.Do(s.Call("b", ())),)),
        "b": s.Program("b", (), (s.Return(CALL),)),
        "c": s.Program("c", (), (s.Return(s.Const(1)),)),
        "d": s.Program("d", (), (), grain="access"),
    }
    assert normal.cutting(programs) == {"wait", "a", "b", "d"}


def test_what_does_not_cut_stays_as_it_is():
    program = s.Program("f", (), (s.Store("x", None, s.Binary("+", X, X)),))
    assert normal.prepare({"f": program}, VARIABLES, {}) == ({"f": program}, frozenset())


@pytest.mark.parametrize(
    "body",
    [
        (s.Return(s.Binary("+", CALL, s.Binary("*", CALL, X))),),
        (s.If(s.Binary("and", Y, s.Binary("or", CALL, CALL)), (s.Do(CALL),)),),
        (s.While(s.Binary("<", CALL, X), (s.Break(),)),),
        (s.While(CALL, (s.Continue(),), (s.Do(s.Unary("-", CALL)),), s.NOWHERE, True),),
        (s.Store("x", None, s.Cond(CALL, CALL, X)),),
        (s.Require(s.Unary("not", CALL)),),
        (s.For("v", "obj", CALL, (s.Do(s.Cast(CALL, U8)),)),),
        (s.Assign("a", s.Choose((CALL, s.Const(2)), ("one", "two"))),),
    ],
)
def test_a_cut_is_a_statement_of_its_own(body):
    found = prepared(*body)
    assert simple(found.body)
    before = [e for x in s.statements(body) for e in s.expressions(x) if e == CALL]
    after = [x for x in s.statements(found.body) if isinstance(x, s.Assign | s.Do) and x.value == CALL]
    assert len(after) == len(before)


def test_what_stands_left_is_evaluated_before_the_cut_and_what_stands_right_behind_it():
    first, second, last = prepared(s.Return(s.Binary("+", s.Binary("+", X, CALL), X))).body
    assert isinstance(first, s.Assign) and first.value == X
    assert isinstance(second, s.Assign) and second.value == CALL
    assert isinstance(last, s.Return) and isinstance(last.value, s.Binary) and last.value.right == X
    assert last.value.left == s.Binary("+", s.Local(first.name), s.Local(second.name))


def test_with_access_there_is_a_cut_before_each_read_and_each_write():
    found = prepared(
        s.If(s.Binary("==", X, s.Const(1)), (s.Store("y", None, s.Unary("not", Y)),)), kind="kernel", grain="access"
    )
    assert simple(found.body, frozenset(VARIABLES))
    kinds = [type(x).__name__ for x in s.statements(found.body)]
    assert kinds == ["Cut", "Assign", "If", "Cut", "Assign", "Assign", "Cut", "Store"]


def test_the_right_side_of_and_is_cut_only_where_it_is_read():
    found = prepared(s.If(s.Binary("and", X, Y), (s.Return(),)), kind="kernel", grain="access")
    assert [type(x).__name__ for x in found.body] == ["Cut", "Assign", "Assign", "If", "If"]
    inner = found.body[3]
    assert isinstance(inner, s.If) and [type(x).__name__ for x in inner.then] == ["Cut", "Assign", "Assign"]


@pytest.mark.parametrize(
    "value, domain",
    [(X, VARIABLES["x"]), (s.Unary("not", Y), Bool()), (s.Binary("<", X, s.Const(2)), Bool()), (Y, VARIABLES["y"])],
)
def test_a_value_that_is_kept_has_the_domain_of_what_it_was_read_from(value, domain):
    found = prepared(s.Return(s.Binary("+", value, CALL)))
    first = found.body[0]
    assert isinstance(first, s.Assign) and dict(found.domains)[first.name] == domain


def test_the_end_of_a_ring_is_never_null():
    pointer = Pointer(Object("struct o", "p", "q", "r"))
    found = prepared(s.For("v", "obj", s.Local("v"), (s.Do(CALL),)), domains=(("v", pointer),))
    (made,) = [
        d for n, d in found.domains if n != "v" and n.startswith("__") and isinstance(d, Pointer) and not d.null
    ]
    assert made.target is pointer.target


@pytest.mark.parametrize("after", [None, -1, 0, 1, 2])
def test_a_ring_that_is_cut_goes_the_same_way_as_one_that_is_not(after):
    start = None if after is None else s.Const(after)
    note = s.Store("x", None, s.Binary("+", s.Binary("*", X, s.Const(10)), s.Binary("+", s.Local("v"), s.Const(1))))
    seen = []
    for cut in ((), (s.Do(CALL),)):
        programs = {
            "wait": WAIT,
            "f": s.Program("f", (), (s.For("v", "obj", start, (*cut, note)), s.Store("y", None, s.Const(True)))),
        }
        world = make_world({"obj": ("p", "q", "r")}, {n: (None, d) for n, d in VARIABLES.items()}, {}, {}, programs)
        memory, site, frames = {("x", None): 0, ("y", None): False}, (), ()
        for _ in range(5):
            done = Interpreter(world, memory, Oracle()).run("f", [], site, frames)
            memory, site, frames = done.memory, done.site, done.frames
            if not site:
                break
        seen.append(memory)
    assert seen[0] == seen[1] and seen[0]["y", None] is True and seen[0]["x", None] > 100


def test_an_atomic_kernel_function_may_not_call_what_blocks():
    with pytest.raises(ModelError, match="f is atomic") as error:
        prepared(s.Do(CALL), kind="kernel")
    assert 'grain="blocking"' in error.value.hint
    assert prepared(s.Do(CALL), kind="kernel", grain="blocking").body == (s.Do(CALL),)


# ---------------------------------------------------------------------------------------------------- liveness
A, B = s.Local("a"), s.Local("b")
CUT = s.Cut()


def alive(*body: s.Stmt) -> set[str]:
    """What lives across the first cut of a body."""
    program = s.Program("f", (), body)
    live = normal.live_after(program, lambda x: is_site(x, frozenset({"wait"})))
    return set(live[id(next(x for x in s.statements(body) if is_site(x, frozenset({"wait"}))))])


@pytest.mark.parametrize(
    "body, live",
    [
        ((CUT, s.Do(A)), {"a"}),
        ((s.Do(A), CUT), set()),
        ((CUT, s.Assign("a", s.Const(1)), s.Do(A)), set()),
        ((CUT, s.Assign("a", s.Binary("+", A, B))), {"a", "b"}),
        ((s.Cut(A), s.Do(B)), {"a", "b"}),
        ((CUT, s.If(A, (s.Assign("b", s.Const(1)),), ()), s.Do(B)), {"a", "b"}),
        ((CUT, s.If(A, (s.Assign("b", s.Const(1)),), (s.Assign("b", s.Const(2)),)), s.Do(B)), {"a"}),
        ((CUT, s.If(A, (s.Return(),), ()), s.Do(B)), {"a", "b"}),
        ((CUT, s.Return(s.Const(1)), s.Do(B)), set()),
        ((s.If(A, (CUT,), (s.Do(B),)),), set()),
        ((s.If(A, (CUT,), ()), s.Do(B)), {"b"}),
        ((s.While(A, (CUT,)),), {"a"}),
        (
            (
                s.While(
                    A,
                    (CUT, s.Break()),
                ),
                s.Do(B),
            ),
            {"b"},
        ),
        ((s.While(s.Const(True), (CUT, s.Continue(), s.Do(A)), (s.Do(B),)),), {"b"}),
        ((s.While(s.Const(True), (s.Do(A), CUT, s.Assign("a", s.Const(1)))),), set()),
        ((s.While(s.Const(True), (s.Do(A), CUT)),), {"a"}),
        ((s.While(A, (s.Assign("a", B),), (CUT,)),), {"a", "b"}),
        ((s.While(A, (CUT, s.Assign("a", s.Const(0))), (), s.NOWHERE, True),), set()),
        ((CUT, s.For("a", "obj", None, (s.Do(A), s.Do(B)))), {"b"}),
        ((CUT, s.For("a", "obj", A, (s.Do(A),))), {"a"}),
        ((CUT, s.Store("x", A, B)), {"a", "b"}),
        ((CUT, s.Require(s.Unary("not", A))), {"a"}),
        ((s.Assign("a", s.Call("wait", ())), s.Do(s.Binary("+", A, B))), {"b"}),  # the result is not saved
        ((s.Do(s.Call("wait", (A,))), s.Do(B)), {"b"}),  # nor are the arguments
    ],
)
def test_what_lives_across_a_cut(body, live):
    assert alive(*body) == live


def test_a_break_leaves_the_innermost_loop():
    inner = s.While(s.Const(True), (CUT, s.Break()))
    assert alive(s.While(s.Const(True), (inner, s.Do(A), s.Break())), s.Do(B)) == {"a", "b"}
