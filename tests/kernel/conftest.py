# SPDX-License-Identifier: GPL-2.0-only
"""Real trees for the tests that read them, and small trees made of C written here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from schedproof.kernel import Tree

MAKEFILE = "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 7\nEXTRAVERSION =\n"


@pytest.fixture(scope="session", name="tree_61")
def _tree_61(tree_61: Path) -> Tree:
    """The folder that all tests share, as a tree; it skips, or fails, where there is none."""
    return Tree(tree_61)


@pytest.fixture(scope="session", name="tree_612")
def _tree_612(tree_612: Path) -> Tree:
    return Tree(tree_612)


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
