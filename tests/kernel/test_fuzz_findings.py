# SPDX-License-Identifier: GPL-2.0-only
"""What the fuzz of the reader (tests/campaigns/fuzz_reader.py) has found, one test a fault."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from schedproof.errors import NotExecutable
from schedproof.kernel import Tree, read
from schedproof.kernel.functions import read_function
from schedproof.lang import syntax as s
from schedproof.lang.interpret import run_function
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

    tree = make_tree({FILE: "struct node { u8 state; };\nint f(struct node *n)\n{\n\tn->state = 1;\n\treturn n->state;\n}\n"})
    found = read_function(tree, "f", FILE, Nodes)
    store = found.programs["f"].body[0]
    assert isinstance(store, s.Store) and isinstance(store.value, s.Const)
    assert store.value.value == Nodes.variant("v1").enumerators["HALT"]
