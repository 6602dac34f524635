# SPDX-License-Identifier: GPL-2.0-only
"""Cuts: what is saved, where a thread goes on, what is refused; and both ways of running agree on all of it."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from schedproof.errors import ModelError
from schedproof.model.concrete import steps
from tests.loading import FIRST_LINE, model_of, require_agreement

DECLARED = """\
class M(Model):
    obj = Object("struct o", "p", "q", "r")
    one = Object("struct t", "t")
    two = Object("struct u", "u", "v")
    flag = Bool()
    a = Bool()
    n = Range(0, 9)
    k = Range(0, 9)
    cur = Pointer(obj, init="q")
    arr = Range(0, 9, per=obj)
    log = Range(0, 99999)
    mode = Enum("up", "down", init="up")
    releases = {"v1": {}}

    @final
    def anywhere(self):
        return True

    def note(self, x):
        self.log = self.log * 10 + x

"""
FIRST = FIRST_LINE + DECLARED.count("\n")


def made(body: str) -> Any:
    return model_of(DECLARED + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n").variant("v1")


def thread(*lines: str, per: str = "one") -> str:
    return f"@thread(per={per})\ndef go(self, me):\n" + "".join(f"    {line}\n" for line in lines)


def path(instance: Any, most: int = 40) -> list[tuple[str, int]]:
    """A run that never has a choice: after each step, where the thread stands and the log."""
    assert instance.transitions is not None
    state, found = dict(instance.initial[0]), list[tuple[str, int]]()
    for _ in range(most):
        options = {tuple(t.state.items()): t for t in steps(instance, state)}
        if not options:
            return found
        (taken,) = options.values()
        state = dict(taken.state)
        found.append((taken.sites[1], state["log"]))
    return found


def locals_of(instance: Any) -> set[str]:
    return {v.base for v in instance.variables.values()} - {
        "flag",
        "a",
        "n",
        "k",
        "cur",
        "arr",
        "log",
        "mode",
        "go.at",
    }


# -------------------------------------------------------------------------------------------- going on from a cut
def test_a_thread_goes_on_behind_each_step():
    instance = made(thread("self.note(1)", "step()", "self.note(2)", "step()", "self.note(3)"))
    assert path(instance) == [("go#0", 1), ("go#1", 12), ("end", 123)]
    assert require_agreement(instance) == (4, 3)


def test_inside_a_loop_over_a_universe_in_both_branches():
    instance = made(
        thread(
            "for v in self.obj:",
            "    if v == self.obj.q:",
            "        self.note(1)",
            "        step()",
            "        self.note(2)",
            "    else:",
            "        step()",
            "        self.note(4)",
            "self.note(5)",
        )
    )
    assert path(instance) == [("go#1", 0), ("go#0", 41), ("go#1", 412), ("end", 41245)]
    assert require_agreement(instance) == (5, 4)


def test_inside_a_ring_with_break_and_continue():
    instance = made(
        thread(
            "for v in ring(self.obj, after=self.cur):",
            "    self.cur = v",
            "    if v == self.obj.r:",
            "        continue",
            "    step()",
            "    self.note(1)",
            "    if v == self.obj.p:",
            "        break",
            "    self.note(2)",
            "self.note(3)",
        )
    )
    # behind q: r is passed by, p is cut and left, though the cursor has moved on meanwhile
    assert path(instance) == [("go#0", 0), ("end", 13)]
    assert require_agreement(instance) == (3, 2)


def test_a_ring_that_is_cut_ends_with_its_start():
    instance = made(
        thread(
            "for v in ring(self.obj, after=self.cur):",
            "    self.cur = v",
            "    step()",
            "    self.note(1)",
            "self.note(2)",
        )
    )
    assert path(instance) == [("go#0", 0), ("go#0", 1), ("go#0", 11), ("end", 1112)]


def test_the_start_of_a_ring_is_evaluated_once():
    instance = made(
        "def take(self):\n    self.k += 1\n    return self.cur\n"
        + thread("for v in ring(self.obj, after=self.take()):", "    step()", "self.note(self.k)")
    )
    assert path(instance)[-1] == ("end", 1)


def test_inside_callees_two_deep_with_what_they_return():
    instance = made(
        "def low(self, x):\n    self.note(1)\n    step()\n    self.note(2)\n    return x + 1\n"
        "def high(self, x: Range(0, 9)):\n    y: Range(0, 9) = self.low(x)\n    step()\n    return y + 1\n"
        + thread("z: Range(0, 9) = self.high(3)", "step()", "self.note(z)")
    )
    assert path(instance) == [("go#0>high#0>low#0", 1), ("go#0>high#1", 12), ("go#1", 12), ("end", 125)]
    assert require_agreement(instance) == (5, 4)


def test_the_same_callee_from_two_places_comes_back_to_the_right_one():
    instance = made(
        "def wait(self):\n    step()\n    return 1\n"
        + thread("self.wait()", "self.note(1)", "self.wait()", "self.note(2)")
    )
    assert path(instance) == [("go#0>wait#0", 0), ("go#1>wait#0", 1), ("end", 12)]


def test_a_call_that_cuts_in_the_middle_of_an_expression():
    """What stands left of the call is evaluated before it, what stands right behind it."""
    body = "def wait(self):\n    step()\n    self.n = 3\n    return 1\n" + thread(
        "x = self.n + self.wait() + self.n", "self.note(x)"
    )
    assert path(made(body)) == [("go#0>wait#0", 0), ("end", 4)]
    with pytest.raises(ModelError, match="has no domain") as error:  # of n there is one, of n + k not
        assert made(body.replace("x = self.n +", "x = self.n + self.k +")).transitions
    assert error.value.line == FIRST + 1


@pytest.mark.parametrize(
    "test, runs",
    [
        ("self.a and self.wait()", False),
        ("self.flag and self.wait()", True),
        ("self.flag or self.wait()", False),
        ("self.a or self.wait()", True),
    ],
)
def test_a_call_that_cuts_on_the_right_of_and_or_runs_only_where_it_counts(test, runs):
    instance = made(
        "def wait(self):\n    step()\n    return self.flag\n"
        + thread("self.flag = True", f"if {test}:", "    self.note(1)", "self.note(2)")
    )
    sites = [site for site, _ in path(instance)]
    assert (len(sites) == 2) == runs and sites[-1] == "end"
    assert require_agreement(instance)[1] == len(sites)


def test_a_loop_whose_condition_cuts():
    instance = made(
        "def wait(self):\n    step()\n    return self.n < 2\n"
        + thread("while self.wait():", "    self.n += 1", "self.note(self.n)")
    )
    assert path(instance) == [("go#0>wait#0", 0)] * 3 + [("end", 2)]


def test_a_range_loop_is_cut_in_its_body_and_counts_on():
    instance = made(thread("i: Range(0, 4) = 0", "for i in range(3):", "    step()", "    self.note(i + 1)"))
    assert path(instance) == [("go#0", 0), ("go#0", 1), ("go#0", 12), ("end", 123)]


def test_a_thread_waits_until_its_condition_holds():
    instance = made(
        thread("block(until=self.flag)", "self.note(1)")
        + "@action\ndef set(self):\n    require(not self.flag)\n    self.flag = True\n"
    )
    # set and the first step in either order (4 states), then the thread's end
    assert require_agreement(instance) == (5, 5)
    assert instance.transitions is not None
    state = {**instance.initial[0], "go.at[t]": instance.threads.codes["go#0"]}
    assert [t.action for t in steps(instance, state)] == ["set"]
    assert {t.action for t in steps(instance, {**state, "flag": True})} == {"go"}


def test_each_thread_of_a_universe_has_its_own_place_and_its_own_locals():
    instance = made(thread("x: Range(0, 9) = choose(1, 2)", "step()", "self.arr[self.obj.p] = x", per="two"))
    assert {"go.x[u]", "go.x[v]", "go.at[u]", "go.at[v]"} <= set(instance.variables)
    # each thread: start, cut with 1 or 2, end; then arr[p] is what the last one had
    states, _ = require_agreement(instance)
    assert states == 9 + 2 * 3 * 2 + 2


# ---------------------------------------------------------------------------------------------------- grains
ACCESS = (
    "@kernel('kernel/x.c', grain='{grain}')\ndef f(self):\n    self.flag = True\n    if self.a:\n"
    "        self.n = 1\n    self.k = 2\n"
)


@pytest.mark.parametrize("grain, count", [("atomic", 1), ("blocking", 1), ("access", 4)])
def test_a_grain_says_where_a_function_may_be_interrupted(grain, count):
    """With `access`: before flag, before a, before k; n is not written. And the step to the end."""
    instance = made(ACCESS.format(grain=grain) + thread("self.f()"))
    assert len(path(instance)) == count
    require_agreement(instance)


def test_accesses_are_cut_in_order_of_evaluation():
    instance = made(
        "@kernel('kernel/x.c', grain='access')\ndef f(self):\n    self.n = 1\n    self.flag = self.a\n"
        + thread("self.f()")
    )
    places = [instance.threads.places[s].line for s, _ in path(instance)[:-1]]
    assert places == [FIRST + 2, FIRST + 3, FIRST + 3]


@pytest.mark.parametrize(
    "copy",
    [
        "self.flag = self.a",
        "self.flag = not self.a",
        "self.n = self.k",
        "self.cur = self.cur",
        "self.mode = self.mode",
        "self.flag = self.n == self.k",
        "self.flag = self.a and self.flag",
        "self.flag = self.n < self.k or self.a",
    ],
)
def test_a_value_that_was_read_is_kept_over_the_cut_before_it_is_written(copy):
    """Between the read and the write another thread may come in: with two of them both orders are there."""
    other = (
        "@action\ndef other(self):\n    require(not self.a)\n    self.a = True\n    self.k = 3\n"
        "    self.mode = 'down'\n"
    )
    instance = made(f"@kernel('kernel/x.c', grain='access')\ndef f(self):\n    {copy}\n" + thread("self.f()") + other)
    require_agreement(instance)


def test_a_kernel_function_that_is_atomic_may_not_call_what_blocks():
    with pytest.raises(ModelError, match="f is atomic, but a function that it calls blocks") as error:
        made(
            "def wait(self):\n    step()\n@kernel('kernel/x.c')\ndef f(self):\n    self.wait()\n" + thread("self.f()")
        )
    assert error.value.line in (FIRST + 2, FIRST + 3) and 'grain="blocking"' in error.value.hint


def test_an_action_may_not_be_cut():
    with pytest.raises(ModelError, match="not one atomic action") as error:
        assert made("@action\ndef go(self):\n    step()\n").transitions
    assert "@thread" in error.value.hint and error.value.line == FIRST + 1


# -------------------------------------------------------------------------------------------------- liveness
@pytest.mark.parametrize(
    "lines, saved",
    [
        (("x: Range(0, 9) = self.n", "step()", "self.note(x)"), {"go.x"}),
        (("x: Range(0, 9) = self.n", "self.note(x)", "step()"), set()),  # not read again
        (("x: Range(0, 9) = self.n", "step()", "x = 1", "self.note(x)"), set()),  # written first
        (("x: Range(0, 9) = self.n", "step()", "if self.a:", "    x = 1", "self.note(x)"), {"go.x"}),
        (("x: Range(0, 9) = self.n", "block(until=self.n > x)", "self.note(1)"), {"go.x"}),  # read by the condition
        (
            ("x: Range(0, 9) = 0", "while self.a:", "    step()", "    self.note(x)", "    x = self.n"),
            {"go.x"},
        ),  # by the next round
        (("x: Range(0, 9) = 0", "while self.a:", "    x = self.n", "    self.note(x)", "    step()"), set()),
        (("x: Range(0, 9) = self.n", "while self.a:", "    step()", "    break", "self.note(x)"), {"go.x"}),
        (("x: Range(0, 9) = self.n", "while self.a:", "    step()", "    return", "self.note(x)"), set()),
        (("x = self.n", "step()", "self.note(x)"), {"go.x"}),  # the domain is that of n
        (("x = self.cur", "step()", "self.cur = x"), {"go.x"}),
        (("x = self.flag", "step()", "self.flag = x"), {"go.x"}),
        (("x = 4", "step()", "self.note(x)"), set()),  # always the same
    ],
)
def test_just_what_is_read_behind_a_cut_is_part_of_the_state(lines, saved):
    instance = made(thread(*lines))
    assert instance.transitions is not None and locals_of(instance) == saved
    require_agreement(instance)


def test_a_local_that_is_dead_has_one_value_while_it_is():
    instance = made(thread("x: Range(0, 9) = choose(3, 4)", "step()", "self.note(x)", "step()", "self.note(1)"))
    assert instance.transitions is not None
    # start; cut with 3 or 4; second cut with log 3 or 4, x forgotten; end
    assert require_agreement(instance) == (7, 6)


def test_a_local_without_a_domain_that_differs_is_an_error_that_says_how_to_declare_it():
    with pytest.raises(ModelError, match="`x` lives across go#0 and has no domain") as error:
        assert made(thread("x = self.n + 1", "step()", "self.note(x)")).transitions
    assert error.value.line == FIRST + 3 and error.value.hint == "annotate it: x: Range(low, high) = …"


def test_a_local_without_a_domain_that_has_two_values_is_an_error():
    with pytest.raises(ModelError, match="`x` lives across go#0 and has no domain"):
        assert made(thread("x = choose(1, 2)", "step()", "self.note(x)")).transitions


@pytest.mark.parametrize("engine", ["symbolic", "plain"])
def test_a_saved_local_that_leaves_its_domain_is_an_error(engine):
    """x has the domain of n, 0 to 9, and is 10 at the cut."""
    instance = made(thread("x: Range(0, 9) = 9", "x = x + 1", "step()", "self.note(x)"))
    assert instance.transitions is not None
    if engine == "symbolic":
        from schedproof.engines import decide
        from schedproof.property import Invariant, Property

        with pytest.raises(ModelError, match=r"go\.x\[t\]"):
            decide(instance, Property("p", None, "", Invariant(always)), "explicit")
    else:
        with pytest.raises(ModelError, match="outside its domain"):
            list(steps(instance, instance.initial[0]))


def always(m):
    return m.n >= 0


def test_a_local_that_is_set_on_one_path_only_is_not_guessed_behind_a_cut():
    """x is 3 where a holds; behind the cut it must be 3 there still, or the model be refused."""
    instance = made(
        thread("if self.a:", "    x: Range(0, 9) = 3", "step()", "if self.a:", "    self.note(x)")
        + "@action\ndef set(self):\n    require(not self.a)\n    self.a = True\n"
    )
    try:
        assert instance.transitions is not None
    except ModelError as error:
        assert "`x`" in str(error)
        return
    require_agreement(instance)


def test_a_loop_that_never_cuts_is_an_error_with_its_place():
    with pytest.raises(ModelError, match="rounds in one step") as error:
        assert made(thread("while True:", "    self.flag = not self.flag")).transitions
    assert error.value.line == FIRST + 2 and "step()" in error.value.hint


def test_a_loop_with_a_path_past_its_cut_is_an_error():
    with pytest.raises(ModelError, match="rounds in one step"):
        assert made(thread("while True:", "    if self.flag:", "        step()")).transitions


def test_a_replay_needs_no_engine_before_it():
    """A fresh instance that nobody has asked for its transitions steps like any other."""
    instance = made(thread("x = 4", "step()", "self.note(x)"))
    (first,) = steps(instance, instance.initial[0])
    (second,) = steps(instance, first.state)
    assert second.state["log"] == 4


# ------------------------------------------------------------------------------------------- random threads
CUT = st.sampled_from(["step()", "step()", "block(until=self.flag)", "block(until=self.n < 2)", "self.wait(x)"])
CHANGE = st.sampled_from(
    [
        "self.flag = not self.flag",
        "self.n = choose(0, 1)",
        "x = self.n",
        "x = choose(0, 2)",
        "self.n = x",
        "y = self.cur",
        "y = choose(self.obj)",
        "self.cur = y",
        "self.arr[y] = x",
        "x = self.arr[y]",
        "b = self.flag",
        "self.flag = b",
        "x = self.wait(x)",
        "require(self.flag or b)",
    ]
)
TEST = st.sampled_from(["self.flag", "b", "x == self.n", "y == self.cur", "not b and x < 2", "self.arr[y] == x"])


@st.composite
def blocks(draw: Any, depth: int, loop: bool) -> list[str]:
    out: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        what = draw(st.sampled_from(["cut", "change", "change", "if", "while", "for", "ring", "leave"]))
        if what == "cut" or (depth == 0 and what != "leave"):
            out.append(draw(CUT))
        elif what == "change" or (what == "leave" and not loop):
            out.append(draw(CHANGE.filter(lambda text: not loop or "choose" not in text)))     # or the choices multiply
        elif what == "leave":
            out += [f"if {draw(TEST)}:", "    " + draw(st.sampled_from(["break", "continue", "return"]))]
        elif what == "if":
            out += [f"if {draw(TEST)}:", *("    " + x for x in draw(blocks(depth - 1, loop)))]
            if draw(st.booleans()):
                out += ["else:", *("    " + x for x in draw(blocks(depth - 1, loop)))]
        else:
            head = {
                "while": f"while {draw(TEST)}:",
                "for": f"for z{depth} in self.obj:",
                "ring": f"for z{depth} in ring(self.obj, after=self.cur):",
            }[what]
            inner = [f"y = z{depth}"] * (what != "while") + draw(blocks(depth - 1, True))
            out += [head, *("    " + x for x in (["step()"] if what == "while" else []) + inner)]
    return out


START = ("x: Range(0, 2) = 0", "y: obj = self.obj.p", "b: Bool() = False")


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(blocks(2, False), blocks(1, False))
@example(
    [
        "self.wait(x)",
        "for z in self.obj:",
        "    while self.arr[z] == x:",
        "        step()",
        "        block(until=self.flag)",
        "self.arr[y] = x",
    ],
    ["for z in ring(self.obj, after=self.cur):", "    if b:", "        continue", "    block(until=self.flag)"],
)
@example(
    ["while self.flag:", "    step()", "    x = self.wait(x)", "    if b:", "        continue", "    self.n = x"],
    ["self.flag = not self.flag"],
)
def test_random_threads_step_the_same_both_ways(first, second):
    text = (
        DECLARED.replace("Range(0, 9, per=obj)", "Range(0, 2, per=obj)")
        .replace('"p", "q", "r"', '"p", "q"')
        .replace("Range(0, 9)", "Range(0, 2)")
    )
    text += textwrap.indent(
        "def wait(self, x: Range(0, 2)):\n    if self.flag:\n        step()\n        return x\n    return 1\n"
        + thread(*START, *first)
        + thread(*START, *second).replace("def go", "def other"),
        "    ",
    )
    require_agreement(model_of(text).variant("v1"), most=60)
