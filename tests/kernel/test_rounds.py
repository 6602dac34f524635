# SPDX-License-Identifier: GPL-2.0-only
"""Functions whose loops only a jump ends: what is equal round by round, what differs, and what is not known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from schedproof.kernel import Tree
from schedproof.kernel.compare import Side, compare
from schedproof.kernel.functions import read_function
from schedproof.model import Model, Object, Range, Vocabulary, environment
from tests.kernel.smallc import really_differs

FILE = "kernel/a.c"
HEAD = """\
struct cell {
	int flag;
	int turns;
	u8 step;
	int noise;
};
void others(void);
int ask(struct cell *c);
"""


class Cells(Model):
    cell = Object("struct cell", "c0", "c1")
    flag = Range(0, 9, per=cell, c="flag", init=0)
    turns = Range(0, 9, per=cell, c="turns", init=0)
    step = Range(0, 255, per=cell, c="step", init=0)
    releases = {"v1": {}}
    functions = {"f": FILE}
    vocabulary = Vocabulary(callees={"others": "other CPUs", "ask": "outside"},
                            ignore={("struct cell", "noise"): "noise"})

    @environment
    def others(self):
        """Anything."""

    @environment
    def ask(self, c):
        return self.flag[c]


Make = Callable[..., Tree]
INSTANCE = Cells.variant("v1")


def side(make_tree: Make, body: str, before: str = "") -> Side:
    text = f"{HEAD}{before}static int f(struct cell *c, struct cell *d, int n)\n{{\n{body}\n}}\n"
    found = read_function(make_tree({FILE: text}), "f", FILE, Cells)
    assert found.status == "read", found.reason
    return Side("f", {**Cells.programs, **found.programs})


WAIT = "for (;;) { if (c->flag) return 1; others(); }"
COUNTED = "int i = n; for (;;) { if (c->flag) return i; i++; others(); }"

EQUAL: dict[str, tuple[str, str]] = {
    "itself": (WAIT, WAIT),
    "while": (WAIT, "while (1) { if (!c->flag) { others(); continue; } return 1; }"),
    "do": (WAIT, "while (true) { if (c->flag) break; others(); } return 1;"),
    "goto": (WAIT, "for (;;) { if (c->flag) goto out; others(); }\nout:\n\treturn 1;"),
    "a number that is carried on": (COUNTED, COUNTED),
    "under another name it is unused": (WAIT, "int k = n; for (;;) { if (c->flag) return 1; k++; others(); }"),
    "another name for a number that is carried on": (COUNTED, COUNTED.replace("i", "k").replace("kf", "if").replace(
        "knt", "int")),
    "a number that stays": (WAIT, "int k = 1; for (;;) { if (c->flag) return k; others(); }"),
    "a number that is set again": ("int k; for (;;) { k = c->flag; if (k) return k; others(); }",
                                   "for (;;) { if (c->flag) return c->flag; others(); }"),
    "silent for ever": ("for (;;) { if (c->flag) return 1; }", "for (;;) { if (c->flag != 0) return 1; }"),
    "two loops": ("for (;;) { if (c->flag) break; others(); } for (;;) { if (d->flag) return 2; others(); }",
                  "for (;;) { if (!c->flag) { others(); continue; } break; }"
                  " while (1) { if (d->flag) return 2; others(); }"),
    "a loop in a loop": ("for (;;) { for (;;) { if (c->flag) break; others(); } if (d->flag) return 3; others(); }",
                         "for (;;) { for (;;) { if (c->flag) break; others(); } if (!d->flag) { others(); continue; }"
                         " return 3; }"),
    "what callees leave has its type": ("for (;;) { if (c->step <= 255) return 1; others(); }", "return 1;"),
}
DIFFERENT: dict[str, tuple[str, str]] = {
    "another value": (WAIT, "for (;;) { if (c->flag) return 2; others(); }"),
    "another object": (WAIT, "for (;;) { if (d->flag) return 1; others(); }"),
    "negated": (WAIT, "for (;;) { if (!c->flag) return 1; others(); }"),
    "a write before the callee": (WAIT, "for (;;) { if (c->flag) return 1; c->turns = 1; others(); }"),
    "twice": (WAIT, "for (;;) { if (c->flag) return 1; others(); others(); }"),
    "only from the second round on": (WAIT, "int first = 1;"
                                            " for (;;) { if (c->flag) return first; first = 0; others(); }"),
    "a bound": (WAIT, "int i; for (i = 0; i < 2; i++) { if (c->flag) return 1; others(); } return 0;"),
    "counted by two": (COUNTED, "int i = n; for (;;) { if (c->flag) return i; i += 2; others(); }"),
}
UNKNOWN: dict[str, tuple[str, str]] = {
    "two rounds in one": (WAIT, "for (;;) { if (c->flag) return 1; others(); if (c->flag) return 1; others(); }"),
    "what is not modelled": (WAIT, "for (;;) { if (c->flag) return 1; if (c->noise) c->turns = 1; others(); }"),
    "two numbers under names of which one is the other's": (
        "int i = n, k = 0; for (;;) { if (c->flag) return i - k; i++; k += 2; others(); }",
        "int k = n, m = 0; for (;;) { if (c->flag) return k - m; k++; m += 2; others(); }"),
    "the other way round": (COUNTED, "int k = -n; for (;;) { if (c->flag) return -k; k--; others(); }"),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal(make_tree: Make, name: str):
    one, other = (side(make_tree, body) for body in EQUAL[name])
    assert compare(INSTANCE, one, other).answer == "equal"
    assert compare(INSTANCE, other, one).answer == "equal"


@pytest.mark.parametrize("name", DIFFERENT)
def test_different(make_tree: Make, name: str):
    one, other = (side(make_tree, body) for body in DIFFERENT[name])
    found = compare(INSTANCE, one, other)
    assert found.answer == "differs", found
    assert really_differs(INSTANCE, one, other, found), found


@pytest.mark.parametrize("name", UNKNOWN)
def test_not_known(make_tree: Make, name: str):
    """They may be equal, or hang on what is not modelled: neither is said."""
    one, other = (side(make_tree, body) for body in UNKNOWN[name])
    found = compare(INSTANCE, one, other)
    assert found.answer == "unknown" and found.detail, found


def test_a_loop_in_a_helper(make_tree: Make):
    helper = "static int g(struct cell *c)\n{{\n\tfor (;;) {{ if (c->{0}) return c->turns; others(); }}\n}}\n"
    body = "int i = n; if (n > 2) i = g(c); return g(d) + i;"
    one, other = side(make_tree, body, helper.format("flag")), side(make_tree, body, helper.format("flag != 0"))
    assert compare(INSTANCE, one, other).answer == "equal"
    other = side(make_tree, body, helper.format("turns"))
    found = compare(INSTANCE, one, other)
    assert found.answer == "differs"
    assert really_differs(INSTANCE, one, other, found), found


def test_a_local_without_a_value_on_some_path_to_a_head_is_never_a_crash(make_tree: Make):
    """It is set only where ``n``; the value is read behind the head of a loop."""
    one, other = (side(make_tree, f"\tint x{x}; if (n) x = 1;\n\tfor (;;) {{ if (c->flag) return x; others(); }}")
                  for x in ("", " = 1"))
    assert compare(INSTANCE, one, other).answer == "unknown"
    assert compare(INSTANCE, other, other).answer == "equal"
