# SPDX-License-Identifier: GPL-2.0-only
"""The small tree of tests.kernel.gate under git, for what runs in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernel.gate import FILE, FILES, SUITE, Gates, swapped
from tests.loading import need

SCHEDPROOF = (sys.executable, "-m", "schedproof")
CHECK = (*SCHEDPROOF, "check", "--suite", str(SUITE))
OPENS = "\tg->open = GATE_OPEN;\n"
BAD = {FILE: swapped(FILES[FILE], (OPENS, "\tg->open = GATE_SHUT;\n"))}
COMMENT = {FILE: swapped(FILES[FILE], (OPENS, "\t/* at last */\n" + OPENS))}
ELSEWHERE = {FILE: swapped(FILES[FILE], ("\tg->count = 2;\n", "\tg->count = 3;\n"))}
UNREADABLE = {FILE: swapped(FILES[FILE], (OPENS, '\tasm volatile("nop");\n' + OPENS))}


class Repository:
    """A small tree under git, with a home of its own."""

    def __init__(self, folder: Path, home: Path):
        home.mkdir()
        self.folder = folder
        self.env = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"),
                    "XDG_DATA_HOME": str(home / "data"), "XDG_CONFIG_HOME": str(home / "config"),
                    "GIT_CONFIG_NOSYSTEM": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
        self.git("config", "--global", "user.name", "A Developer")
        self.git("config", "--global", "user.email", "dev@example.org")
        self.git("init", "-q", "-b", "main")
        self.commit(FILES, "the gate")

    def run(self, *words: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(list(words), cwd=self.folder, env={**self.env, **env}, input=stdin, capture_output=True,
                              text=True, check=False)

    def git(self, *words: str) -> str:
        done = self.run("git", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def commit(self, files: dict[str, str], subject: str) -> str:
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-qm", f"{subject}\n\nSigned-off-by: A Developer <dev@example.org>")
        return self.git("rev-parse", "HEAD").strip()

    def mail(self, rev: str = "HEAD") -> str:
        return self.git("format-patch", "--stdout", "-1", rev)

    def check(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return self.run(*CHECK, *words, stdin=stdin)


@pytest.fixture
def repository(gates: Gates, tmp_path: Path) -> Repository:
    need("git")
    return Repository(gates.tree, tmp_path / "home")
