# SPDX-License-Identifier: GPL-2.0-only
"""What the fuzz of the reader (tests/campaigns/fuzz_reader.py) has found, one test a fault."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import z3

from schedproof.errors import ModelError, NotExecutable
from schedproof.kernel import Tree, read
from schedproof.kernel.functions import read_function
from schedproof.lang import syntax as s
from schedproof.lang.execute import Executor
from schedproof.lang.interpret import run_function
from schedproof.lang.world import make_world
from schedproof.model import Enum, Model, Object

FILE = "kernel/sched/a.c"
MakeTree = Callable[..., Tree]


def test_an_enumeration_is_read_from_a_class(make_tree: MakeTree):
    """Its enumerators had codes in instances only: KeyError."""
    class Nodes(Model):
        node = Object("struct node", "n")
        state = Enum("RUN", "HALT", meaning={"RUN": (0, 0), "HALT": (1, 1)}, per=node, c="state", init="RUN")
        other = Enum("A", "B", init="A")
        releases = {"v1": {}}

    tree = make_tree({FILE: "struct node { u8 state; };\nint f(struct node *n)\n{\n\tn->state = 1;\n"
                            "\treturn n->state;\n}\n"})
    found = read_function(tree, "f", FILE, Nodes)
    store = found.programs["f"].body[0]
    assert isinstance(store, s.Store) and isinstance(store.value, s.Const)
    assert store.value.value == Nodes.variant("v1").enumerators["HALT"]


def value(make_tree: MakeTree, text: str, *args: int) -> int:
    """What the plain interpreter gets for ``f``."""
    return run_function(read(make_tree({FILE: text}), "f", FILE), "f", list(args))


@pytest.mark.parametrize("body", [
    "int n = 0; while (({ if (n > 2) goto out; n < 9; })) n++; return 50; out: return n;",
    "int n = 0; while (n < 5) { n++; while (({ if (n > 2) break; n < 9; })) n += 3; n++; } return n;",
    "int n, r = 0; for (n = 0; n < 4; ({ if (r > 1) goto out; n++; })) r++; return 50; out: return r;",
    "int n = 0; do { n++; } while (({ if (n > 2) goto out; n < 9; })); return 50; out: return n;",
])
def test_a_jump_out_of_the_head_of_a_loop_is_refused(make_tree: MakeTree, body: str):
    """It left the loop whose head it stands in, and nothing more: 50 instead of 3."""
    with pytest.raises(NotExecutable, match="jump out of the head of a loop"):
        value(make_tree, f"int f(int x)\n{{\n\t{body}\n}}\n", 0)


def test_a_return_from_the_head_of_a_loop(make_tree: MakeTree):
    assert value(make_tree, "int f(int x) { while (({ if (x > 2) return 7; x < 9; })) x++; return x; }", 0) == 7


def test_tokens_that_a_macro_brings_together_stay_apart(make_tree: MakeTree):
    """``- -x`` became ``--x``, a decrement."""
    text = "#define LESS(a, n) ((a) - -n)\n#define MINUS -x\nint f(int x)\n{\n"
    assert value(make_tree, text + "\tint y = LESS(2, -(x));\n\treturn y * 100 + x;\n}\n", 3) == -97
    assert value(make_tree, text + "\tint z = -MINUS;\n\treturn z * 100 + x;\n}\n", 3) == 303


@pytest.mark.parametrize(("macros", "expression", "wanted"), [
    ("#define x x + 10\n#define PASS(y) ((y) + 1)", "PASS(x) * 2", 28),       # x was expanded twice
    ("#define A(y) ((y) * 2)\n#define B A", "B(x)", 6),                       # B(x) was a call of A
    ("#define A(y) ((y) * 2)\n#define B(z) z + A", "B(1)(x)", 7),
    ("#define A(y) A(y + 1)\n#define B(y) ((y) + 5)\n#define C(f, y) f(y)", "C(B, x)", 8),
])
def test_macros_that_end_with_a_macro_or_name_themselves(make_tree: MakeTree, macros: str, expression: str,
                                                         wanted: int):
    assert value(make_tree, f"int f(int x_)\n{{\n\tint x = x_;\n\treturn\n{macros}\n\t{expression};\n}}\n", 3) == wanted


@pytest.mark.parametrize(("condition", "holds"), [
    ("-1 > 0u", True), ("-1 < 0u", False), ("-1 > 0", False), ("~0u >> 63 == 1", True), ("~0 >> 63 == -1", True),
    ("(0 ? 1u : -1) > 0", True), ("0xffffffffffffffff == -1", True), ("0x7fffffffffffffff + 1 < 0", True),
    ("-1 / 2u > 0", True), ("1u << 63 > 0", True), ("(-1 << 1u) < 0", True), ("!(1u - 2)", False),
    ("017u == 15", True)])
def test_conditions_compute_with_64_bits_signed_or_not(make_tree: MakeTree, condition: str, holds: bool):
    """The suffix was dropped, and numbers had no width."""
    text = f"#if {condition}\n#define Q 1\n#else\n#define Q 0\n#endif\nint f(int x)\n{{\n\treturn Q;\n}}\n"
    assert value(make_tree, text, 0) == holds


@pytest.mark.parametrize("condition", ["08", "9" * 5000, "0x" + "f" * 17, "1 + 09"])
def test_a_number_that_is_none_leaves_a_condition_undecided(make_tree: MakeTree, condition: str):
    """ValueError came out."""
    with pytest.raises(NotExecutable, match="#if"):
        value(make_tree, f"#if {condition}\nint f(int x)\n{{\n\treturn 1;\n}}\n#endif\n", 0)


@pytest.mark.parametrize("width", ["08", "0", "-1", "9999"])
def test_an_odd_width_of_a_bit_field_is_refused(make_tree: MakeTree, width: str):
    """ValueError came out."""
    from tests.campaigns.fuzz.yard import Yard
    text = f"struct car {{ int small:{width}; }};\nint f(struct car *c)\n{{\n\treturn c->small;\n}}\n"
    found = read_function(make_tree({FILE: text}), "f", FILE, Yard)
    assert found.status == "not_executable" and found.reason.startswith(f"{FILE}:4: ")


def test_a_name_with_nul_is_no_patch():
    """ValueError came out."""
    from schedproof.errors import InputError
    from schedproof.kernel.patch import read_patches
    with pytest.raises(InputError):
        read_patches(["a\0b"])


def test_an_odd_header_has_a_line(make_tree: MakeTree):
    """It was refused at line 0."""
    with pytest.raises(NotExecutable) as refused:
        value(make_tree, "\n\nint f(int x, y[], int (z)(int, ...), 3)\n{\n\treturn 1;\n}\n", 3)
    assert refused.value.line == 3


def test_a_loop_of_which_no_round_is_known_to_be_the_last_is_given_up_soon(make_tree: MakeTree):
    """400 rounds of growing terms took minutes; a loop with a known number of rounds may be long."""
    tree = make_tree({FILE: "int f(u16 v, u8 k)\n{\n\twhile (v-- > 0 && k)\n\t\tv -= 0xf2;\n\treturn v;\n}\n"
                            "int g(u16 v)\n{\n\tint i;\n\n\tfor (i = 0; i < 200; i++)\n\t\t;\n"
                            "\treturn v + i;\n}\n"})
    v, k = z3.Ints("v k")
    ranges = {"v": (0, 65535), "k": (0, 255)}
    for name, args in (("f", [v, k]), ("g", [v])):
        run = Executor(make_world({}, {}, {}, {}, read(tree, name, FILE)), ranges).run
        if name == "f":
            with pytest.raises(ModelError, match="a loop may end after any of"):
                run(name, args, {})
        else:
            assert str(run(name, args, {}).value) == "200 + v"


@pytest.mark.parametrize("word", ["likely(x)", "unlikely(x)", "WARN_ON(x)", "WARN_ON_ONCE(x)",
                                  "__builtin_expect(x, 0)"])
def test_a_hint_is_a_long(make_tree: MakeTree, word: str):
    """It was an int, and the sum wrapped to 0."""
    assert value(make_tree, f"long f(int x)\n{{\n\treturn {word} + 4294967295u;\n}}\n", 1) == 1 << 32


@pytest.mark.parametrize("long", ["x" * 200_000, " " * 200_000, "enum" + " " * 200_000, "f" + "\t" * 200_000])
@pytest.mark.timeout(30)
def test_a_long_run_of_one_character_takes_no_longer_than_its_length(make_tree: MakeTree, long: str):
    """Each was searched through once for each of its characters: minutes."""
    text = f"static int g(int x)\n{{\n\treturn x;\n}}\n{long}\nint f(int x)\n{{\n\treturn x + 1;\n}}\n"
    try:
        assert value(make_tree, text, 4) == 5
    except NotExecutable as error:                 # a line of that sort is no C; a run of blanks is
        assert long.strip(), error
