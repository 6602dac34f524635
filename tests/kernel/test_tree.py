# SPDX-License-Identifier: GPL-2.0-only
from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from schedproof.errors import InputError
from schedproof.kernel.tree import LARGEST, Absent, Tree
from tests.loading import need

MakeTree = Callable[..., Tree]
A, B = "int f(int x)\n{\n\treturn x;\n}\n", "int f(int x)\n{\n\treturn x + 1;\n}\n"


def git(folder: Path, *args: str) -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a",
           "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    return subprocess.run(["git", *args], cwd=folder, env=env, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    need("git")
    folder = tmp_path / "work"
    (folder / "kernel/sched").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 6\nSUBLEVEL = 1\n")
    (folder / "kernel/sched/a.c").write_text(A)
    (folder / "big.c").write_text(" " * (LARGEST + 1))
    (folder / "link.c").symlink_to("/etc/hostname")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    git(folder, "tag", "v1")
    (folder / "kernel/sched/a.c").write_text(B)
    git(folder, "commit", "-qam", "two")
    (folder / "kernel/sched/a.c").write_text("not committed\n")
    return folder


def test_folder(make_tree: MakeTree):
    tree = make_tree({"kernel/sched/a.c": A, "kernel/sched/b.h": "int g;\n"})
    assert tree.version() == (6, 1, 7)
    assert tree.text("./kernel/sched/a.c") == A
    assert tree.exists("kernel/sched/a.c") and not tree.exists("kernel/sched/none.c") and not tree.exists("kernel")
    assert tree.files("kernel/sched/*.c") == ["kernel/sched/a.c"] and tree.files("none/*.c") == []
    with pytest.raises(InputError, match="not in"):
        tree.text("none.c")


def test_is_read_once(make_tree: MakeTree):
    tree = make_tree(A)
    assert tree.text("kernel/sched/a.c") == A
    (tree.path / "kernel/sched/a.c").write_text(B)
    assert tree.text("kernel/sched/a.c") == A


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "", "a\\b", "a\0b"])
def test_names_that_leave_the_tree(make_tree: MakeTree, name: str):
    with pytest.raises(InputError, match="not a file inside"):
        make_tree(A).text(name)


def test_odd_files(make_tree: MakeTree):
    tree = make_tree({"a.c": A, "bin.c": "a\0b", "big.c": " " * (LARGEST + 1), "latin.c": "x"})
    (tree.path / "out.c").symlink_to("/etc/hostname")
    (tree.path / "in.c").symlink_to("a.c")
    (tree.path / "loop.c").symlink_to("loop.c")
    (tree.path / "latin.c").write_bytes(b"/* \xe4 */\n")
    assert tree.text("in.c") == A
    assert tree.with_files({"new.c": tree.text("latin.c")}).text("new.c").encode("utf-8", "surrogateescape") \
        == b"/* \xe4 */\n"
    for name, message in (("bin.c", "binary"), ("big.c", "larger than 8 MiB"), ("out.c", "leads out"),
                          ("loop.c", "read|not in")):
        with pytest.raises(InputError, match=message) as caught:
            tree.text(name)
        assert "\n" not in str(caught.value)
        assert not tree.exists(name)


def test_no_kernel_tree(tmp_path: Path):
    with pytest.raises(InputError, match="no such folder"):
        Tree(tmp_path / "none")
    with pytest.raises(InputError, match="not a kernel tree: no Makefile with VERSION"):
        Tree(tmp_path).version()
    (tmp_path / "Makefile").write_text("all:\n\ttrue\n")
    with pytest.raises(InputError, match="not a kernel tree"):
        Tree(tmp_path).version()


def test_revisions(repository: Path):
    old = Tree(repository, "v1")
    assert old.text("kernel/sched/a.c") == A and old.version() == (6, 6, 1) and old.label.endswith("at v1")
    assert Tree(repository, "HEAD").text("kernel/sched/a.c") == B
    assert Tree(repository, git(repository, "rev-parse", "v1").strip()[:10]).text("kernel/sched/a.c") == A
    assert Tree(repository).text("kernel/sched/a.c") == "not committed\n"
    assert old.files("kernel/sched/*") == ["kernel/sched/a.c"]
    assert not old.exists("link.c") and not old.exists("none.c")
    with pytest.raises(InputError, match="larger than"):
        old.text("big.c")
    assert git(repository, "status", "--short") == " M kernel/sched/a.c\n"


def test_bare_repository(repository: Path, tmp_path: Path):
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    tree = Tree(tmp_path / "bare.git")
    assert tree.rev == "HEAD" and tree.text("kernel/sched/a.c") == B


@pytest.mark.parametrize("rev", ["", "-x", "--all", "none", "HEAD:Makefile", "a b", "HEAD\n", "HEAD^{tree}"])
def test_odd_revisions(repository: Path, rev: str):
    with pytest.raises(InputError) as caught:
        Tree(repository, rev)
    assert "\n" not in str(caught.value)


def test_rev_without_repository(make_tree: MakeTree):
    with pytest.raises(InputError):
        Tree(make_tree(A).path, "HEAD")


def test_overlay(make_tree: MakeTree):
    tree = make_tree(A)
    after = tree.with_files({"kernel/sched/a.c": B, "kernel/sched/new.c": A, "Makefile": None})
    assert after.text("kernel/sched/a.c") == B and tree.text("kernel/sched/a.c") == A
    assert after.files("kernel/sched/*.c") == ["kernel/sched/a.c", "kernel/sched/new.c"]
    assert not after.exists("Makefile") and tree.exists("Makefile")
    assert after.with_files({}).text("kernel/sched/a.c") == B
    with pytest.raises(InputError):
        tree.with_files({"../x": ""})


def test_find(make_tree: MakeTree):
    tree = make_tree({"kernel/sched/a.c": "int f(int x);\nint g(void)\n{\n\treturn f(1);\n}\n",
                      "kernel/sched/b.c": "static inline int\nf(int x) __must_check\n{\n\treturn x;\n}\n",
                      "virt/kvm/k.c": "void h(struct s *a,\n       int b)\n{\n}\n"})
    assert tree.find("f", "kernel/sched/a.c") == "kernel/sched/b.c"
    assert tree.find("g", "kernel/sched/a.c") == "kernel/sched/a.c"
    assert tree.find("h", "kernel/none.c") == "virt/kvm/k.c"
    with pytest.raises(Absent, match="none: no definition in kernel/sched/a.c"):
        tree.find("none", "kernel/sched/a.c")
