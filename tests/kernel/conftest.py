# SPDX-License-Identifier: GPL-2.0-only
"""Real trees for the tests that read them, and small trees made of C written here."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from schedproof.errors import InputError
from schedproof.kernel import Tree

MAKEFILE = "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 7\nEXTRAVERSION =\n"


def _real(wanted: tuple[int, int]) -> Tree:
    base = os.environ.get("SCHEDPROOF_TREES")
    give_up = pytest.fail if os.environ.get("SCHEDPROOF_REQUIRE_TREES") else pytest.skip
    if not base:
        give_up("SCHEDPROOF_TREES does not name a folder with kernel trees")
    assert base
    for folder in sorted(p for p in Path(base).iterdir() if p.is_dir()):
        try:
            tree = Tree(folder)
            if tree.version()[:2] == wanted:
                return tree
        except InputError:
            continue
    give_up(f"no tree of {wanted[0]}.{wanted[1]} in {base}")
    raise AssertionError


@pytest.fixture(scope="session")
def tree_61() -> Tree:
    return _real((6, 1))


@pytest.fixture(scope="session")
def tree_612() -> Tree:
    return _real((6, 12))


@pytest.fixture(params=["tree_61", "tree_612"])
def real_tree(request: pytest.FixtureRequest) -> Tree:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Tree)
    return found


@pytest.fixture
def make_tree(tmp_path: Path) -> Callable[..., Tree]:
    """``make_tree({"kernel/a.c": text})`` or ``make_tree(text)`` for a tree with that one file."""
    def make(files: dict[str, str] | str) -> Tree:
        wanted = {"kernel/sched/a.c": files} if isinstance(files, str) else files
        for name, text in {"Makefile": MAKEFILE, **wanted}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        return Tree(tmp_path)
    return make
