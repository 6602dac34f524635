# SPDX-License-Identifier: GPL-2.0-only
"""The plain interpreter: what it does is worked out by hand here."""

from __future__ import annotations

import pytest

from schedproof.errors import ModelError
from schedproof.lang import syntax as s
from schedproof.lang.ctypes import INT, U8
from schedproof.lang.interpret import Blocked, Interpreter, Oracle, run_function
from schedproof.lang.world import World, make_world
from schedproof.model.domains import Bool, Range

PLACE = s.Loc("models/x.py", 3)
A = s.Local("a")


def world_of(*body: s.Stmt, **others: s.Program) -> World:
    variables = {"flag": (None, Bool()), "arr": ("obj", Range(0, 3))}
    return make_world(
        {"obj": ("p", "q", "r")},
        variables,
        {"next": (1, 2, -1)},
        {"one": 1, "each": (4, 5, 6)},
        {**others, "main": s.Program("main", (), body, PLACE)},
    )


def run(*body: s.Stmt, decisions: tuple[int, ...] = (), **others: s.Program):
    memory = {("flag", None): False, ("arr", 0): 0, ("arr", 1): 1, ("arr", 2): 2}
    return Interpreter(world_of(*body, **others), memory, Oracle(list(decisions))).run("main", [])


def add(name: str, amount: int) -> s.Assign:
    return s.Assign(name, s.Binary("+", s.Local(name), s.Const(amount)))


def test_every_sequence_of_decisions_is_met_once_and_in_order():
    found, oracle = [], Oracle()
    while oracle is not None:
        first = oracle.decide(2)
        found.append((first, *(oracle.decide(3) for _ in range(first))))
        oracle = oracle.following()
    assert found == [(0,), (1, 0), (1, 1), (1, 2)]


def test_an_oracle_that_is_not_asked_has_nothing_following():
    assert Oracle().following() is None


@pytest.mark.parametrize(
    "after, order", [(None, [0, 1, 2]), (-1, [0, 1, 2]), (0, [1, 2, 0]), (2, [0, 1, 2]), (1, [2, 0, 1])]
)
def test_a_walk_begins_behind_its_start(after, order):
    start = None if after is None else s.Const(after)
    body = (
        s.Assign("a", s.Const(0)),
        s.For("v", "obj", start, (s.Assign("a", s.Binary("+", s.Binary("*", A, s.Const(10)), s.Local("v"))),)),
        s.Return(A),
    )
    assert run(*body).value == order[0] * 100 + order[1] * 10 + order[2]


def test_continue_runs_the_step_of_a_loop_and_break_does_not():
    test = s.Binary("<", A, s.Const(5))
    skip = s.If(s.Binary("==", A, s.Const(1)), (s.Continue(),))
    leave = s.If(s.Binary("==", A, s.Const(3)), (s.Break(),))
    count = (
        s.Assign("a", s.Const(0)),
        s.Assign("b", s.Const(0)),
        s.While(test, (skip, leave, add("b", 1)), (add("a", 1),)),
        s.Return(s.Binary("+", s.Binary("*", A, s.Const(10)), s.Local("b"))),
    )
    assert run(*count).value == 32  # a = 3 at the break; b counted for 0 and 2


def test_a_do_loop_runs_once_at_least():
    assert (
        run(s.Assign("a", s.Const(0)), s.While(s.Const(False), (add("a", 1),), (), PLACE, True), s.Return(A)).value
        == 1
    )


def test_a_return_leaves_all_loops_of_its_own_function_only():
    inner = s.Program("inner", (), (s.While(s.Const(True), (s.For("v", "obj", None, (s.Return(s.Local("v")),)),)),))
    loop = s.For("v", "obj", None, (s.Do(s.Call("inner", ())), add("a", 1)))
    assert run(s.Assign("a", s.Const(0)), loop, s.Return(A), inner=inner).value == 3


def test_what_does_not_count_is_not_run():
    hit = s.Program("hit", (), (s.Store("flag", None, s.Const(True)), s.Return(s.Const(True))))
    call = s.Call("hit", ())
    for test, ran in (
        (s.Binary("and", s.Const(False), call), False),
        (s.Binary("or", s.Const(True), call), False),
        (s.Binary("and", s.Const(True), call), True),
        (s.Binary("or", s.Const(0), call), True),
        (s.Cond(s.Const(True), s.Const(1), call), False),
        (s.Cond(s.Const(False), s.Const(1), call), True),
    ):
        assert run(s.Do(test), hit=hit).memory["flag", None] is ran


def test_links_and_constants():
    assert run(s.Return(s.Load("next", s.Const(1)))).value == 2
    assert run(s.Return(s.Binary("+", s.Load("one", None), s.Load("each", s.Const(2))))).value == 7


@pytest.mark.parametrize(
    "wrong, message",
    [
        (s.Store("arr", s.Const(-1), s.Const(1), PLACE), "`arr` of a NULL pointer"),
        (s.Do(s.Load("arr", s.Const(-1), PLACE)), "`arr` of a NULL pointer"),
        (s.Do(s.Load("arr", s.Const(3), PLACE)), "`arr` of a NULL pointer"),
        (s.Do(s.Load("next", s.Const(-1), PLACE)), "`next` of a NULL pointer"),
        (s.Do(s.Load("each", s.Const(-1), PLACE)), "`each` of a NULL pointer"),
        (s.Do(s.Binary("/", s.Const(1), s.Const(0), PLACE)), "division by zero"),
        (s.Do(s.Binary("%", s.Const(1), s.Const(0), PLACE)), "division by zero"),
        (s.Do(s.Binary("<<", s.Const(1), s.Const(64), PLACE)), "shift by 64"),
        (s.Do(s.Local("nobody", PLACE)), "`nobody` has no value"),
        (s.Assign("a", s.Call("nothing", ()), PLACE), "returns no value"),
        (s.While(s.Const(True), (), (), PLACE), "rounds in one step"),
    ],
)
def test_what_has_no_meaning_is_an_error_with_its_place(wrong, message):
    with pytest.raises(ModelError, match=message) as error:
        run(wrong, nothing=s.Program("nothing", (), ()))
    assert (error.value.file, error.value.line) == ("models/x.py", 3)


def test_what_is_required_blocks_the_run():
    with pytest.raises(Blocked):
        run(s.Require(s.Binary("==", s.Const(1), s.Const(2))))


def test_a_value_outside_its_domain_is_an_error_where_it_was_last_written():
    world = world_of(s.Store("arr", s.Const(1), s.Const(4), s.Loc("models/x.py", 9)))
    interpreter = Interpreter(world, {("flag", None): False, ("arr", 0): 0, ("arr", 1): 1, ("arr", 2): 2}, Oracle())
    interpreter.run("main", [])
    with pytest.raises(ModelError, match=r"arr\[q\] is set to 4, outside its domain") as error:
        interpreter.check_domains()
    assert error.value.line == 9


def test_a_value_that_comes_back_into_its_domain_is_none():
    world = world_of(s.Store("arr", s.Const(1), s.Const(4)), s.Store("arr", s.Const(1), s.Const(3)))
    interpreter = Interpreter(world, {("flag", None): False, ("arr", 0): 0, ("arr", 1): 1, ("arr", 2): 2}, Oracle())
    interpreter.run("main", [])
    interpreter.check_domains()


def test_calls_are_noted_in_order_with_their_depth():
    leaf = s.Program("leaf", (), (s.Return(s.Const(1)),))
    middle = s.Program("middle", (), (s.Return(s.Call("leaf", ())),))
    assert run(s.Do(s.Call("middle", ())), s.Do(s.Call("leaf", ())), leaf=leaf, middle=middle).calls == (
        ("main", 0),
        ("middle", 1),
        ("leaf", 2),
        ("leaf", 1),
    )


def test_decisions_are_labelled():
    body = (s.Store("arr", s.Choose((), (), "obj"), s.Choose((s.Const(3), s.Const(2)), ("three", "two"))),)
    done = run(*body, decisions=(2, 1))
    assert done.labels == ("r", "two") and done.memory["arr", 2] == 2


def test_the_state_passed_is_not_changed():
    memory = {("flag", None): False, ("arr", 0): 0, ("arr", 1): 1, ("arr", 2): 2}
    Interpreter(world_of(s.Store("flag", None, s.Const(True))), memory, Oracle()).run("main", [])
    assert memory["flag", None] is False


def test_numbers_are_reduced_to_their_c_type():
    f = s.Program(
        "f", ("a", "b"), (s.Return(s.Binary("+", A, s.Local("b"), PLACE, U8)),), types=(U8, INT), result=INT
    )
    assert run_function({"f": f}, "f", [256 + 250, 10]) == 4
    assert run_function({"f": f}, "f", [-1, 0]) == 255


@pytest.mark.parametrize("x", range(-20, 21))
def test_a_function_of_numbers(x):
    """The sum of the digits of |x| in base 3, by a loop that divides as C does."""
    digit = s.Binary("%", s.Local("x"), s.Const(3))
    body = (
        s.Assign("a", s.Const(0)),
        s.While(
            s.Binary("!=", s.Local("x"), s.Const(0)),
            (s.Assign("a", s.Binary("+", A, digit)), s.Assign("x", s.Binary("/", s.Local("x"), s.Const(3)))),
        ),
        s.Return(A),
    )
    digits, rest = 0, abs(x)
    while rest:
        digits, rest = digits + rest % 3, rest // 3
    assert run_function({"f": s.Program("f", ("x",), body)}, "f", [x]) == (digits if x >= 0 else -digits)
