# SPDX-License-Identifier: GPL-2.0-only
"""What of C is not read: each construct is refused with its file, its line and its name, and never guessed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from schedproof.errors import ModelError, NotExecutable
from schedproof.kernel import Config, Tree, Vocabulary, read
from schedproof.lang.execute import Executor
from schedproof.lang.interpret import run_function
from schedproof.lang.world import make_world
from schedproof.model.domains import Int, Link, Object
from tests.kernel.native import TYPEDEFS

FILE = "kernel/sched/a.c"
HEAD = TYPEDEFS + """
struct lock { u8 locked; };
struct clock { u64 now; };
struct node { struct lock lock; int state; int table[4]; struct node **all; int (*call)(int); struct odd *odd; };
struct twin { struct lock lock; int state; };
struct group { struct clock clock; struct clock other; int count; };
struct pair { int a; union { int b; u8 c; }; };
union both { int a; u8 b; };
enum unclear { SMALL, LARGE = sizeof(struct pair) };
enum far { WIDE = 1UL << 40, ALIKE = ~0U };
struct far { enum unclear unclear; };
int elsewhere(int x);
"""


class Objects:
    nodes = Object("struct node", "n0")
    twins = Object("struct twin", "t0")
    groups = Object("struct group", "g0")
    clocks = Object("struct clock", "c0")
    fars = Object("struct far", "f0")
    state = Int(per=nodes, c="state")
    twin_state = Int(per=twins, c="state")
    unclear = Int(per=fars, c="unclear")
    count = Int(per=groups, c="count")
    now = Int(per=clocks, c="now")
    other = Link(per=groups, target=clocks, to={"g0": "c0"}, c="other")
    vocabulary = Vocabulary()


def refused(make_tree: Callable[..., Tree], code: str) -> NotExecutable:
    with pytest.raises(NotExecutable) as caught:
        read(make_tree({FILE: HEAD + code + "\n"}), "f", FILE, Config(), Objects)
    return caught.value


@pytest.mark.parametrize(("body", "construct"), [
    ("int a[3];\n\treturn a[x];", "use of a"),
    ("return n->table[1];", "element of"),
    ("return n->all[0]->state;", "element of"),
    ("return (*n->all)->state;", "field all of struct node"),
    ("return n->call(3);", "call through a pointer"),
    ("int (*g)(int) = elsewhere;\n\treturn g(3);", "call through a pointer|global variable or unknown name elsewhere"),
    ("return elsewhere(x);", "call of elsewhere: no definition"),
    ("int *p = &x;\n\treturn *p;", "address of the local x"),
    ("void *p = n;\n\treturn p == n;", "use of p"),
    ("asm volatile(\"nop\");\n\treturn x;", "asm"),
    ("static int kept;\n\treturn kept++;", "static local"),
    ("return ((struct pair){ .a = 3 }).a;", "compound literal"),
    ("struct pair p = { .a = 3 };\n\treturn p.a;", "struct pair with a union in it"),
    ("union both u;\n\treturn u.a;", "use of u, a struct"),
    ("struct node p, *q = &p;\n\treturn q->state;", "use of p, a struct"),
    ("struct clock c = { 3 };\n\treturn c.now;", "initial value of a struct"),
    ("struct clock c = { .now = 3, .none = 4 };\n\treturn c.now;", "initial value of a struct"),
    ("struct node p;\n\treturn p.table[1];", "member table"),
    ("struct node p;\n\treturn p.none;", "member none of the local p"),
    ("return sizeof(struct node);", "sizeof expression: sizeof(struct node)"),
    ("return sizeof *n;", "struct node"),
    ("return _Alignof(int);", "alignof"),
    ("return offsetof(struct node, state);", "offsetof"),
    ("return x + 1.5;", "number 1.5"),
    ("return \"a\" == NULL;", "string literal"),
    ("return abs((char)x);", "abs of a char"),
    ("return '\\x41';", "number"),
    ("goto in;\n\tif (x) {\nin:\n\t\tx++;\n\t}\n\treturn x;", "goto in, into a block"),
    ("switch (x) {\n\tcase 1:\nagain:\n\t\tx++;\n\t\tgoto again;\n\t}\n\treturn x;", "goto again, into a block"),
    ("goto *(void *)n;\n\treturn x;", "not C that can be parsed|goto"),
    ("switch (x) {\n\tcase 1:\n\t\twhile (x) {\n\tcase 2:\n\t\t\tx--;\n\t\t}\n\t}\n\treturn x;", "case statement"),
    ("switch (x) {\n\t\tx = 3;\n\tcase 1:\n\t\tx++;\n\t}\n\treturn x;", "statement before the first case"),
    ("switch (x) {\n\tcase 1 + n->state:\n\t\tx++;\n\t}\n\treturn x;", "case 1 + n->state"),
    ("return n + 1 == n;", "arithmetic on a pointer"),
    ("return n++ == n;", "arithmetic on a pointer"),
    ("return n < n;", "the order of two pointers"),
    ("return (long)n;", "arithmetic on a pointer"),
    ("return ((struct twin *)n)->state;", "a pointer to struct node used as one to struct twin"),
    ("return ((struct twin *)(struct lock *)n)->state;", "a pointer to struct node used as one to struct lock"),
    ("return ((struct lock *)n)->locked;", "a pointer to struct node used as one to struct lock"),
    ("struct clock *c = (struct clock *)g;\n\treturn c->now;", "a pointer to struct group used as one to struct clock"),
    ("return n->odd->none;", "field odd of struct node"),
    ("struct far *p = &x;\n\treturn 1;", "address of the local x"),
    ("return h->unclear;", "field unclear of struct far of type enum unclear"),
    ("typeof(*n) *p = n;\n\treturn p->state;", "struct node"),
    ("again:\n\tx = ({ inner: x--; x; });\n\tif (x)\n\t\tgoto inner;\n\treturn x;", "goto inner, into a block"),
])
def test_refused_with_its_place(make_tree: Callable[..., Tree], body: str, construct: str) -> None:
    head = "int f(int x, struct node *n, struct group *g, struct far *h)\n{\n"
    error = refused(make_tree, f"{head}\t{body}\n}}")
    first = HEAD.count("\n") + 1
    assert error.file == FILE and first <= error.line <= first + body.count("\n") + 3, (error.line, first)
    assert any(part in error.construct for part in construct.split("|")), error.construct


def test_an_enumerator_of_unknown_type_is_refused_where_it_is_defined(make_tree: Callable[..., Tree]) -> None:
    error = refused(make_tree, "int f(int x) { return ALIKE > x; }")
    assert HEAD.split("\n")[error.line - 1].startswith("enum far") and "enumerator ALIKE, whose type" in error.construct


def runs(make_tree: Callable[..., Tree], code: str) -> tuple[object, object]:
    """Ways to run a function of one number: plainly, and by the executor on a known one."""
    programs = read(make_tree({FILE: HEAD + code + "\n"}), "f", FILE, Config(), Objects)
    world = make_world({}, {}, {}, {}, programs)
    return (lambda x: run_function(programs, "f", [x])), (lambda x: Executor(world).run("f", [x], {}))


@pytest.mark.parametrize(("code", "fine", "bad", "message"), [
    ("int f(int x)\n{\n\treturn 1 << x;\n}", 31, 32, "shift by 32"),
    ("int f(int x)\n{\n\treturn x << 31 >> x;\n}", 3, -1, "shift by -1"),
    ("long f(int x)\n{\n\treturn 1L << x;\n}", 63, 64, "shift by 64"),
    ("int f(int x)\n{\n\treturn (u8)x >> x;\n}", 31, 40, "shift by 40"),
    ("int f(int x)\n{\n\treturn 7 % x;\n}", -1, 0, "division by zero"),
    ("int f(int x)\n{\n\treturn x / -1;\n}", -(2**31) + 1, -(2**31), "division whose result does not fit"),
    ("int f(int x)\n{\n\tint y;\n\tif (x)\n\t\ty = 3;\n\treturn y;\n}", 1, 0, "`y` has no value here"),
    ("int f(int x)\n{\nagain:\n\tif (x)\n\t\tgoto again;\n\treturn x;\n}", 0, 1, "a loop goes on for more than"),
    ("int f(int x)\n{\n\tstruct clock c;\n\tif (x)\n\t\tc.now = x;\n\treturn c.now;\n}", 1, 0, "has no value here"),
])
def test_a_run_that_C_leaves_open_is_a_fault_with_its_place(make_tree: Callable[..., Tree], code: str, fine: int,
                                                            bad: int, message: str) -> None:
    plain, symbolic = runs(make_tree, code)
    assert callable(plain) and callable(symbolic)
    assert plain(fine) == symbolic(fine).value and not symbolic(fine).faults
    with pytest.raises(ModelError) as caught:
        plain(bad)
    assert message in str(caught.value) and f"{FILE}:" in str(caught.value)
    try:
        faults = symbolic(bad).faults
    except (ModelError, NotExecutable) as error:
        assert f"{FILE}:" in str(error)
    else:
        assert [f.message for f in faults] == [message] and faults[0].loc.file == FILE
