# SPDX-License-Identifier: GPL-2.0-only
"""Elements of array members, pointers to anything, functions as values, locals that are set on some paths."""

from __future__ import annotations

import pytest

from schedproof.kernel.compare import Comparison, Side, compare
from schedproof.kernel.functions import Read, read_function
from schedproof.model import Int, Link, Model, Object, Vocabulary

FILE = "kernel/sched/a.c"
HEAD = """\
struct rq { int cpu; int n; };
struct q { int n; struct rq *rq; };
struct group { struct q **q; int n; };
typedef int (*visitor)(struct group *, void *);
int walk(struct group *from, visitor down, void *data);
void note(struct q *q);
static int down(struct group *g, void *data) { return 0; }
static int up(struct group *g, void *data) { return 1; }
static int other(struct group *g, void *data) { return 2; }
"""


class Groups(Model):
    """Two groups with a queue each on one CPU."""

    rq = Object("struct rq", "cpu0")
    queue = Object("struct q", "qA", "qB")
    group = Object("struct group", "A", "B")
    rq_of = Link(queue, rq, {"qA": "cpu0", "qB": "cpu0"}, c="rq")
    queue_of = Link(group, queue, {"A": "qA", "B": "qB"}, c="q[0]")
    n = Int(per=queue, c="n")
    rq_n = Int(per=rq, c="n")
    releases = {"v1": {}}
    functions = dict.fromkeys(("f", "down", "up"), FILE)
    vocabulary = Vocabulary(callees={"walk@struct rq": "walks", "note": "elsewhere"})


def read(make_tree, body: str) -> Read:
    return read_function(make_tree(HEAD + body), "f", FILE, Groups)


def compared(make_tree, left: str, right: str) -> Comparison:
    one, other = read(make_tree, left), read(make_tree, right)
    assert (one.reason, other.reason) == ("", "")
    return compare(Groups.variant("v1"), Side("f", one.programs), Side("f", other.programs))


def test_an_element_is_the_one_of_that_index(make_tree):
    by_cpu = "int f(struct group *g, struct rq *rq) { return g->q[rq->cpu]->n; }\n"
    first = "int f(struct group *g, struct rq *rq) { return g->q[0]->n; }\n"
    assert compared(make_tree, by_cpu, first).answer == "equal"
    any_index = "int f(struct group *g, int i) { return g->q[i]->n; }\n"
    fixed = "int f(struct group *g, int i) { return g->q[0]->n; }\n"
    assert compared(make_tree, any_index, any_index).answer == "equal"
    found = compared(make_tree, any_index, fixed)          # with another index the first one is a fault
    assert found.answer == "differs" and found.input["arg i"] != 0


@pytest.mark.parametrize(("body", "why"), [
    ("int f(struct group *g) { return g->q[1]->n; }", "element 1 of field q of struct group"),
    ("int f(struct group *g) { return g->n[0]; }", "element of field n"),
    ("int f(struct group *g, void *data) { struct rq *rq = data; struct q *q = data; return rq->n + q->n; }",
     "use of data"),
    ("int f(struct group *g, struct q *q) { return walk(g, down, q); }", "pointer to struct q as an argument of walk"),
    ("int f(struct group *g, struct rq *rq) { return walk(g, other, rq); }", "unknown name other"),
    ("int f(struct group *g, struct rq *rq) { return walk(g, down, (void *)0); }", "cast: (void *)0"),
])
def test_what_has_no_meaning_is_refused_where_it_stands(make_tree, body: str, why: str):
    found = read(make_tree, body + "\n")
    assert found.status == "not_executable" and why in found.reason, found.reason


def test_a_pointer_to_anything_is_what_the_function_makes_of_it(make_tree):
    one = "int f(struct group *g, void *data) { struct rq *rq = data; return rq->n; }\n"
    cast = "int f(struct group *g, void *data) { return ((struct rq *)data)->n; }\n"
    assert compared(make_tree, one, one).answer == "equal"
    assert compared(make_tree, one, cast).answer == "equal"
    later = "int f(struct group *g, void *data) { struct rq *rq; rq = data; return rq->n; }\n"
    assert compared(make_tree, one, later).answer == "equal"
    another = "int f(struct group *g, void *data) { struct q *q = data; return q->n; }\n"
    assert "changes from" in compared(make_tree, one, another).detail


def test_functions_as_arguments_are_told_apart(make_tree):
    down = "int f(struct group *g, struct rq *rq) { return walk(g, down, (void *)rq); }\n"
    up = down.replace("down, ", "up, ")
    assert compared(make_tree, down, down).answer == "equal"
    assert compared(make_tree, down, up).answer == "differs"


def test_a_call_is_seen_whatever_is_written_behind_it(make_tree):
    none = "void f(struct q *q) { q->n = 1; }\n"
    called = "void f(struct q *q) { note(q); q->n = 1; }\n"
    twice = "void f(struct q *q) { note(q); note(q); q->n = 1; }\n"
    assert compared(make_tree, called, called).answer == "equal"
    assert compared(make_tree, none, called).answer == "differs"
    assert compared(make_tree, called, twice).answer == "differs"


def test_a_local_that_is_set_where_it_is_used(make_tree):
    split = "int f(struct q *q) { int x; if (q->n > 3) x = q->n; if (q->n > 3) return x; return 0; }\n"
    plain = "int f(struct q *q) { return q->n > 3 ? q->n : 0; }\n"
    wrong = "int f(struct q *q) { int x; if (q->n > 3) x = q->n; if (q->n > 2) return x; return 0; }\n"
    assert compared(make_tree, split, plain).answer == "equal"
    found = compared(make_tree, split, wrong)              # of no value at 3, which is a fault
    assert found.answer == "differs" and 3 in found.input.values()


def test_the_highest_bit_and_shifts_by_it(make_tree):
    shifted = "u64 f(struct q *q, u32 x) { return (u64)x >> fls(x); }\n"
    assert compared(make_tree, shifted, "u64 f(struct q *q, u32 x) { return 0; }\n").answer == "equal"
    less = "u64 f(struct q *q, u32 x) { return x ? (u64)x >> (fls(x) - 1) : 1; }\n"
    assert compared(make_tree, less, "u64 f(struct q *q, u32 x) { return 1; }\n").answer == "equal"
