# SPDX-License-Identifier: GPL-2.0-only
"""schedproof check, from the command line to text and JSON, on small C: what each kind of change is told as."""

from __future__ import annotations

import pytest

from tests.kernel.gate import DEEP, FILE, FILES, HEADER, Gates, gates, patch_of, swapped

__all__ = ["gates"]

OPENS = "\tg->open = GATE_OPEN;\n"
LOOKS = "\tif (gate_ready(g)) {\n"


def test_probe(gates: Gates):
    d = gates.edit((OPENS, ""))
    print(d.code, d.err, d.out[:3000])
    (gates.folder / "one.patch").write_text(patch_of({FILE: swapped(FILES[FILE], (OPENS, ""))}))
    print(gates.run("check", gates.folder / "one.patch", "--tree", gates.tree).out)
    print(gates.run("prove", "gate", "--tree", gates.tree).out)
    assert 0
