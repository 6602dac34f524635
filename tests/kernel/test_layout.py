# SPDX-License-Identifier: GPL-2.0-only
"""Where members of unions lie."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from schedproof.kernel import Tree
from schedproof.kernel.config import DEFAULT
from schedproof.kernel.declared import Types
from schedproof.kernel.layout import Spot, find, members
from schedproof.kernel.source import Where, sources
from tests.loading import need

FILE = "kernel/a.c"
INNER = "struct inner {\n\tu8 tag;\n\tu64 wide;\n\tstruct inner *next;\n};\n"


def types(make_tree, body: str, before: str = INNER) -> Types:
    tree: Tree = make_tree({FILE: f"{before}struct s {{\n{body}\n}};\n"})
    return Types(sources(tree, DEFAULT), Where(FILE, FILE))


def test_members_outside_of_unions_share_nothing(make_tree):
    assert members(types(make_tree, "int a; struct { int b; }; struct inner i;"), "struct s") == {}


def test_two_unions_are_apart(make_tree):
    found = members(types(make_tree, "union { int a; u8 b; }; int x; union { long c; u16 d; };"), "struct s")
    assert set(found) == {"a", "b", "c", "d"}
    assert found["a"].shares(found["b"]) and not found["a"].shares(found["c"]) and found["c"].shares(found["d"])


PLACES: dict[str, dict[str, tuple[int, int | None]]] = {
    "union { u32 word; struct { u8 low; u8 high; u16 rest; }; };":
        {"word": (0, 32), "low": (0, 8), "high": (8, 8), "rest": (16, 16)},
    "union { u64 word; struct { u8 a; u32 b; }; };": {"word": (0, 64), "a": (0, 8), "b": (32, 32)},
    "union { u64 word; struct { u8 a; struct { u16 b; u8 c; }; u8 d; }; };":
        {"word": (0, 64), "a": (0, 8), "b": (16, 16), "c": (32, 8), "d": (48, 8)},
    "union { struct inner in; struct { long x, y; } pair; bool yes; };":
        {"in": (0, 192), "in.tag": (0, 8), "in.wide": (64, 64), "in.next": (128, 64), "pair": (0, 128),
         "pair.x": (0, 64), "pair.y": (64, 64), "yes": (0, 8)},
    "union { int n; u8 bytes[4]; };": {"n": (0, 32), "bytes": (0, None)},
    "union { int n; struct { int a : 3; int b; }; };": {"n": (0, 32), "a": (0, None), "b": (0, None)},
    "union { int n; struct { u8 bytes[3]; u8 last; }; };": {"n": (0, 32), "bytes": (0, None), "last": (0, None)},
    "union { int n; struct { u8 a; int b; } __packed; };": {"n": (0, None), "a": (0, None), "b": (0, None)},
    "union { int n; struct unheard_of u; };": {"n": (0, 32), "u": (0, None)},
    "union { int n; u16 m; } u;": {"u.n": (0, 32), "u.m": (0, 16)},
}


@pytest.mark.parametrize("body", PLACES)
def test_places(make_tree, body):
    found = members(types(make_tree, body), "struct s")
    assert {name: (spot.low, spot.bits) for name, spot in found.items()} == PLACES[body]


@pytest.mark.parametrize("body", [b for b, places in PLACES.items() if all(bits for _, bits in places.values())])
def test_the_compiler_says_the_same(make_tree, tmp_path: Path, body):
    """Each number's offset and size, as the compiler has them."""
    need("gcc")
    text = "#include <stdint.h>\n#include <stdbool.h>\n#include <stdio.h>\n#include <stddef.h>\n" + "".join(
        f"typedef uint{n}_t u{n};\n" for n in (8, 16, 32, 64)) + INNER + f"struct s {{ {body} }};\nint main(void)\n{{\n"
    for name in PLACES[body]:
        text += f'printf("%d %d\\n", (int)offsetof(struct s, {name}) * 8, (int)sizeof(((struct s *)0)->{name}) * 8);\n'
    (tmp_path / "a.c").write_text(text + "}\n")
    subprocess.run(["gcc", "-o", tmp_path / "a.out", tmp_path / "a.c"], check=True)
    lines = subprocess.run([tmp_path / "a.out"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert [tuple(map(int, line.split())) for line in lines] == list(PLACES[body].values())


def test_below_an_embedded_struct(make_tree):
    before = "struct inner {\n\tunion {\n\t\tint n;\n\t\tu8 low;\n\t};\n\tint other;\n};\n"
    found = types(make_tree, "int x; struct inner in;", before)
    around, table, here = find(found, "struct s", "in.low")
    assert (around, set(table), here) == ("in", {"n", "low"}, Spot(0, 0, 8))
    assert find(found, "struct s", "in.other") is None and find(found, "struct s", "x") is None
    assert find(found, "struct s", "nothing") is None
    deeper = types(make_tree, "int x; struct outer o;", before + "struct outer {\n\tstruct inner in;\n};\n")
    assert find(deeper, "struct s", "o.in.n")[0] == "o.in"


def test_below_a_member_of_which_the_inside_is_not_known(make_tree):
    found = types(make_tree, "union { int n; struct unheard_of u; };")
    assert find(found, "struct s", "u.deep") is not None
    assert find(found, "struct s", "u.deep")[2].shares(find(found, "struct s", "n")[2])


def test_a_union_in_what_cannot_be_parsed_has_no_known_place(make_tree):
    found = members(types(make_tree, "int ODD(x) y z; union { int n; u8 low; };"), "struct s")
    assert found["n"].shares(found["low"])


def test_the_lock_word_of_real_trees(real_tree: Tree):
    file = "kernel/locking/qspinlock_paravirt.h"
    found = members(Types(sources(real_tree, DEFAULT), Where(file, file)), "struct qspinlock")
    assert {name: (spot.low, spot.bits) for name, spot in found.items()} == {
        "val": (0, 32), "locked": (0, 8), "pending": (8, 8), "locked_pending": (0, 16), "tail": (16, 16)}
