# SPDX-License-Identifier: GPL-2.0-only
"""What all tests share: the real kernel trees, where there are any."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

TOY = Path(__file__).parent / "toy"


def release_of(tree: Path) -> str | None:
    """``6.1`` for a kernel tree of that release, by its Makefile; None for any other folder."""
    try:
        head = (tree / "Makefile").read_text(encoding="utf-8", errors="replace")[:4096]
    except OSError:
        return None
    found = dict(re.findall(r"^(VERSION|PATCHLEVEL) *= *(\d+)", head, re.MULTILINE))
    return f"{found['VERSION']}.{found['PATCHLEVEL']}" if len(found) == 2 else None


def find_tree(release: str) -> Path:
    """The tree of a release under $SCHEDPROOF_TREES; skips the test, or fails it, where there is none."""
    folder = os.environ.get("SCHEDPROOF_TREES")
    if folder:
        root = Path(folder)
        for candidate in (root, *sorted(p for p in root.glob("*") if p.is_dir())):
            if release_of(candidate) == release:
                return candidate.resolve()
    reason = (f"no kernel {release} under SCHEDPROOF_TREES={folder}" if folder else
              f"SCHEDPROOF_TREES is not set, so there is no kernel {release} to read")
    # Continuous integration sets this: a skipped test there would be a hole that nobody sees.
    if os.environ.get("SCHEDPROOF_REQUIRE_TREES"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def tree_61() -> Path:
    """Debian's kernel 6.1."""
    return find_tree("6.1")


@pytest.fixture(scope="session")
def tree_612() -> Path:
    """Debian's kernel 6.12."""
    return find_tree("6.12")


# ------------------------------------------------------------------------------------------------ the toy suite
def load_fakes() -> ModuleType:
    """The module tests/toy/fakes.py, the same one in every test."""
    if "schedproof_fakes" not in sys.modules:
        spec = importlib.util.spec_from_file_location("schedproof_fakes", TOY / "fakes.py")
        assert spec and spec.loader
        sys.modules["schedproof_fakes"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["schedproof_fakes"])
    return sys.modules["schedproof_fakes"]


@pytest.fixture
def fakes() -> ModuleType:
    """Stand-ins and sample traces, not put in anyone's place."""
    return load_fakes()


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A suite with one toy model in a folder of its own, in use, and stand-ins for all that decides."""
    import schedproof
    import schedproof.model.domains
    from schedproof import registry

    before = list(schedproof.suite.__path__)
    loaded = {n: m for n, m in sys.modules.items() if n.startswith("schedproof.suite.")}
    for name, module in load_fakes().modules().items():
        monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setattr(schedproof, name.rpartition(".")[2], module, raising=False)
    suite = tmp_path / "suite"
    shutil.copytree(TOY / "suite", suite, ignore=shutil.ignore_patterns("__pycache__"))
    registry.use_suite(suite)
    yield suite
    registry.use_suite(Path(before[0]))
    sys.modules.update(loaded)
