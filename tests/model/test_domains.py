# SPDX-License-Identifier: GPL-2.0-only
"""Domains: their values, what readers see, and initial values."""

from __future__ import annotations

import textwrap
from types import SimpleNamespace
from typing import Any

import pytest

from schedproof.errors import ModelError
from schedproof.lang.scope import scope_of
from schedproof.model import NULL, Bool, Enum, Int, Link, Object, Pointer, Range, Switch, Values
from tests.loading import model_of

VIEW = SimpleNamespace(size=3)
OBJ = Object("struct o", "p", "q", "r")


def made(declarations: str) -> Any:
    text = (
        "class M(Model):\n    obj = Object('struct o', 'p', 'q', 'r')\n    size = Param(3, 1, 5)\n"
        "    releases = {'v1': {}}\n"
    )
    return model_of(text + textwrap.indent(textwrap.dedent(declarations).strip("\n"), "    ") + "\n")


def first(declarations: str, **params: int) -> dict[str, Any]:
    instance = made(declarations).variant("v1", **params)
    return instance.show(instance.initial[0])


@pytest.mark.parametrize(
    "domain, codes",
    [
        (Bool(), (False, True)),
        (Range(-1, 2), (-1, 0, 1, 2)),
        (Range(0, lambda m: m.size), (0, 1, 2, 3)),
        (Range(lambda m: -m.size, -2), (-3, -2)),
        (Values({2: "two", 1 << 20: "many"}), (2, 1 << 20)),
        (Values(lambda m: {m.size: "s"}), (3,)),
        (Int(), None),
        (Pointer(OBJ), (-1, 0, 1, 2)),
        (Pointer(OBJ, null=False), (0, 1, 2)),
        (Pointer(OBJ, among=("p", "r")), (-1, 0, 2)),
        (Enum("up", "down"), (7, 4)),
    ],
)
def test_the_values_of_a_domain_are_its_codes(domain, codes):
    assert domain.resolve(VIEW, {"down": 4, "up": 7}).codes() == codes


@pytest.mark.parametrize(
    "domain, code, text",
    [
        (Bool(), True, "yes"),
        (Bool(), False, "no"),
        (Range(0, 3), 2, "2"),
        (Values({2: "MIN"}), 2, "MIN"),
        (Values({2: "MIN"}), 3, "3"),
        (Pointer(OBJ), -1, "NULL"),
        (Pointer(OBJ), 1, "q"),
        (Enum("up", "down"), 4, "down"),
        (Int(), -5, "-5"),
    ],
)
def test_a_value_is_shown_as_a_reader_knows_it(domain, code, text):
    assert domain.resolve(VIEW, {"down": 4, "up": 7}).show(code) == text


def test_a_resolved_domain_keeps_what_was_declared():
    for domain in (
        Range(0, 1, init=1, per=OBJ, c="f", ghost=True, span=(0, 9), transient=True),
        Values({1: "x"}, 1, OBJ, "f", True, (0, 9)),
        Pointer(OBJ, True, NULL, OBJ, "f", True, (0, 9)),
        Enum("up", init="up", per=OBJ, c="f", ghost=True, span=(0, 9)),
    ):
        domain.name = "it"
        found = domain.resolve(VIEW, {"up": 0})
        assert found is not domain
        for what in ("init", "per", "c", "ghost", "span", "transient", "name"):
            assert getattr(found, what) == getattr(domain, what), what


def test_enumerators_have_numbers_of_their_own_in_a_model():
    codes = scope_of(
        {"a": Enum("up", "down"), "b": Enum("down", "left"), "s": Switch("up", "old"), "t": Switch(True, False)}
    ).codes
    assert sorted(codes) == ["down", "left", "old", "up"] and sorted(codes.values()) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "declared, shown",
    [
        ("x = Bool()", "no"),
        ("x = Bool(init=True)", "yes"),
        ("x = Range(2, 5)", "2"),
        ("x = Range(2, 5, init=4)", "4"),
        ("x = Range(0, 5, init=lambda m: m.size)", "3"),
        ("x = Enum('up', 'down')", "up"),
        ("x = Enum('up', 'down', init='down')", "down"),
        ("x = Pointer(obj)", "NULL"),
        ("x = Pointer(obj, init='q')", "q"),
        ("x = Pointer(obj, init=NULL)", "NULL"),
        ("x = Values({7: 'seven', 9: 'nine'}, init=9)", "nine"),
        ("x = Int(init=12)", "12"),
    ],
)
def test_initial_values(declared, shown):
    assert first(declared) == {"x": shown}


def test_initial_values_by_object():
    assert first("x = Bool(per=obj, init={'q': True})\ny = Pointer(obj, per=obj, init={'p': 'r'})") == {
        "x[p]": "no",
        "x[q]": "yes",
        "x[r]": "no",
        "y[p]": "r",
        "y[q]": "NULL",
        "y[r]": "NULL",
    }


def test_bounds_follow_the_parameters():
    model = made("x = Range(0, lambda m: m.size, init=lambda m: m.size)")
    assert [model.variant("v1", size=n).variables["x"].domain.codes() for n in (1, 2)] == [(0, 1), (0, 1, 2)]


def test_a_universe_may_have_a_size_that_is_a_parameter():
    model = model_of(
        "class M(Model):\n    cpu = Object('struct c', lambda m: [f'c{i}' for i in range(m.n)])\n"
        "    on = Bool(per=cpu)\n"
        "    n = Param(2, 1, 4)\n    releases = {'v1': {}}\n"
    )
    assert list(model.variant("v1").variables) == ["on[c0]", "on[c1]"]
    assert list(model.variant("v1", n=1).variables) == ["on[c0]"]


@pytest.mark.parametrize(
    "declared",
    [
        "x = Range(0, 3, init=4)",
        "x = Enum('up', init='down')",
        "x = Pointer(obj, init='nobody')",
        "x = Pointer(obj, null=False, init=NULL)",
        "x = Values({1: 'one'}, init=2)",
        "x = Pointer(obj, among=('p',), init='q')",
        "x = Int()",
        "x = Range(0, 5, init=lambda m: m.size + 9)",
    ],
)
def test_an_initial_value_outside_the_domain_is_an_error(declared):
    with pytest.raises(ModelError, match="x: the initial value .* is outside its domain"):
        assert made(declared).variant("v1").initial


@pytest.mark.parametrize(
    "meaning, message",
    [
        ("{'a': (0, 0), 'b': (1, 5)}", ""),
        ("{'b': (0, 0), 'a': (1, 5)}", ""),
        ("{'a': (0, 1), 'b': (1, 5)}", "overlap at 1"),
        ("{'a': (0, 0), 'b': (2, 5)}", "leave a gap at 1"),
        ("{'a': (0, 0)}", "what each of a, b stands for"),
    ],
)
def test_meanings_are_disjoint_and_leave_no_gap(meaning, message):
    declared = f"x = Enum('a', 'b', meaning={meaning})"
    if not message:
        assert made(declared)
        return
    with pytest.raises(ModelError, match=message):
        made(declared)


def test_a_link_to_nobody_is_an_error():
    with pytest.raises(ModelError, match="`nobody` is no object of obj"):
        made("to = Link(obj, obj, {'p': 'nobody'})").variant("v1")


def test_a_link_leads_to_null_where_it_says_nothing():
    world = made("to = Link(obj, obj, {'p': 'q', 'q': NULL})\nx = Bool()").variant("v1").world
    assert world.links["to"] == (1, -1, -1)
    assert isinstance(made("to = Link(obj, obj, {})\nx = Bool()").scope.links["to"], Link)


def test_a_transient_variable_is_no_part_of_the_state():
    instance = made(
        "x = Range(0, 3, init=0, transient=True)\ny = Bool()\n@action\ndef go(self):\n    self.x = 2\n"
        "    self.y = self.x == 2\n"
        "    self.x = 0\n"
    ).variant("v1")
    assert list(instance.variables) == ["y"]
    (step,) = instance.transitions
    assert list(step.updates) == ["y"]


def test_a_transient_variable_that_is_left_is_an_error():
    instance = made(
        "x = Range(0, 3, init=0, transient=True)\ny = Bool()\n@action\ndef go(self):\n    self.x = 2\n"
    ).variant("v1")
    with pytest.raises(ModelError, match="go may leave x with another value than 0"):
        assert instance.transitions
