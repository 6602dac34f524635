# SPDX-License-Identifier: GPL-2.0-only
"""``check --b4``, ``--b4-review``, ``--terse`` and the hook: what is said to whom, and that success is silent.

The tools that call are the real ones where they are installed: b4 from PyPI is a part of the ``dev`` extra.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.kernel.gate import FILE, FILES, SUITE, gates, swapped
from tests.kernel.repository import BAD, CHECK, COMMENT, ELSEWHERE, OPENS, UNREADABLE, Repository, repository

__all__ = ["gates", "repository"]

HOOK = Path(__file__).parents[2] / "contrib" / "sendemail-validate"
GOOD = {"a comment": COMMENT, "what is not modelled": ELSEWHERE}


# --------------------------------------------------------------------------------------------------- one mail
@pytest.mark.parametrize("good", GOOD)
def test_nothing_is_said_of_a_good_patch(repository: Repository, good: str):
    repository.commit(GOOD[good], "a good one")
    done = repository.check("--b4", stdin=repository.mail())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = repository.check("--b4-review", stdin=repository.mail())
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, [], "")


def test_a_bad_patch_is_one_line_with_a_command_that_shows_the_run(repository: Repository):
    commit = repository.commit(BAD, "a bad one")
    done = repository.check("--b4", stdin=repository.mail())
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    found = re.fullmatch(r"ERROR: gate:soon was proved .*, is refuted .* with this patch: (schedproof check .*)\n",
                         done.stdout)
    assert found, done.stdout
    words = found[1].split()
    assert words[2] == commit[:12]
    again = repository.check(*words[2:])
    assert again.returncode == 1 and "With the patch, soon fails" in again.stdout


def test_the_same_for_a_review(repository: Repository):
    repository.commit(BAD, "a bad one")
    rows = json.loads(repository.check("--b4-review", stdin=repository.mail()).stdout)
    assert [(r["tool"], r["status"], r["url"]) for r in rows] == [("schedproof", "fail", "")]
    assert rows[0]["summary"].startswith("gate:soon was proved") and "gate_refill" in rows[0]["details"]
    assert rows[0]["details"].splitlines()[0].startswith(FILE)


def test_what_could_not_be_decided_is_a_warning(repository: Repository):
    repository.commit(UNREADABLE, "with assembly")
    done = repository.check("--b4", stdin=repository.mail())
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    assert done.stdout.startswith("WARNING: gate: not decided: ") and "asm" in done.stdout


def test_an_early_patch_of_a_series_is_checked_on_what_it_stands_on(repository: Repository):
    """HEAD is the whole series, which mends again what its first patch breaks."""
    repository.commit(BAD, "break it")
    bad = repository.mail()
    repository.commit(FILES, "mend it")
    mended = repository.mail()
    assert repository.check("--b4", stdin=bad).stdout.startswith("ERROR: gate:soon was proved")
    assert repository.check("--b4", stdin=mended).stdout == ""


def test_a_mail_whose_commit_is_gone(repository: Repository):
    """Rebased away: the blobs before are there, and HEAD for all other files."""
    repository.commit(BAD, "break it")
    bad = repository.mail()
    repository.git("reset", "-q", "--hard", "HEAD~1")
    repository.commit(COMMENT, "go on")                                    # the hunk would still apply
    done = repository.check("--b4", stdin=bad)
    assert done.stdout.startswith("ERROR: gate:soon was proved") and "check THIS-MAIL --tree" in done.stdout


def test_the_work_tree_counts_for_nothing(repository: Repository):
    repository.commit(BAD, "a bad one")
    mail = repository.mail()
    (repository.folder / FILE).write_text("#error not committed\n")
    (repository.folder / "Makefile").unlink()
    assert repository.check("--b4", stdin=mail).stdout.startswith("ERROR: ")


@pytest.mark.parametrize(("mail", "told"), [
    ("From: a\nSubject: [PATCH 0/2] a cover letter\n\nIt has no diff.\n", ""),
    ("From: a\nSubject: x\n\n---\n--- a/kernel/x.c\n+++ b/kernel/x.c\n@@ -1 +1 @@\n-a\n+b\n", "kernel/x.c"),
    ("--- a/x.c\n", "broken or truncated patch"), ("\0--- a/x.c\n", "binary"), ("", "")])
def test_a_wrong_mail_is_one_warning_and_no_failure(repository: Repository, mail: str, told: str):
    done = repository.check("--b4", stdin=mail)
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == bool(told) and told in done.stdout
    assert not told or re.fullmatch(r"WARNING: not checked: .*\n", done.stdout)


def test_outside_of_a_repository(repository: Repository, tmp_path: Path):
    repository.commit(BAD, "a bad one")
    mail = repository.mail()
    done = subprocess.run([*CHECK, "--b4"], cwd=tmp_path, env={**repository.env, "GIT_CEILING_DIRECTORIES": "/"},
                          input=mail, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("WARNING: not checked: ") and "git work tree" in done.stdout


def test_a_mail_in_base64_is_no_cover_letter(repository: Repository):
    repository.commit(BAD, "a bad one")
    body = repository.git("show", "--format=", "HEAD")
    mail = ("From: a <a@b.c>\nSubject: [PATCH] a bad one\nContent-Type: text/plain; charset=utf-8\n"
            f"Content-Transfer-Encoding: base64\n\n{base64.encodebytes(body.encode()).decode()}")
    assert repository.check("--b4", stdin=mail).stdout.startswith("ERROR: gate:soon was proved")


@pytest.mark.parametrize("words", [("--b4", "x.patch"), ("--b4", "--rev", "HEAD"), ("x.patch",), ()])
def test_a_wrong_call(repository: Repository, words: Sequence[str]):
    done = repository.check(*words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


# ------------------------------------------------------------------------------------------------ other forms
def test_terse(repository: Repository):
    repository.commit(BAD, "a bad one")
    done = repository.check("HEAD", "--tree", ".", "--terse")
    assert done.returncode == 1
    assert re.fullmatch(rf"{FILE}:\d+: ERROR: gate:soon was proved [^\n]*\n", done.stdout), done.stdout
    repository.commit(FILES, "mend it")
    assert repository.check("HEAD", "--tree", ".", "--terse").stdout == ""


# ------------------------------------------------------------------------------------------------------ the hook
@pytest.fixture
def hooked(repository: Repository) -> Callable[[Sequence[str]], list[tuple[int, str]]]:
    """Sends a series; the code and standard error of each call of the hook."""
    script = repository.folder.parent / "schedproof-here"
    script.write_text(f'#!/bin/sh\nshift\nexec {" ".join(CHECK)} "$@"\n')
    script.chmod(0o755)

    def send(mails: Sequence[str]) -> list[tuple[int, str]]:
        found = []
        for number, mail in enumerate(mails, 1):
            file = repository.folder.parent / f"{number}.eml"
            file.write_text(mail)
            done = repository.run("sh", str(HOOK), str(file), os.devnull, SCHEDPROOF=str(script),
                                  GIT_SENDEMAIL_FILE_COUNTER=str(number), GIT_SENDEMAIL_FILE_TOTAL=str(len(mails)))
            assert done.stdout == ""
            found.append((done.returncode, done.stderr))
        return found
    return send


def test_the_hook_stops_a_series_at_its_last_mail(repository: Repository, hooked: Callable[..., list[tuple[int, str]]]):
    start = repository.git("rev-parse", "HEAD").strip()
    repository.commit(COMMENT, "a comment")
    repository.commit({FILE: swapped(COMMENT[FILE], (OPENS, "\tg->open = GATE_SHUT;\n"))}, "break it")
    repository.git("format-patch", "-q", "--cover-letter", "-o", str(repository.folder.parent / "out"), start)
    mails = [p.read_text() for p in sorted((repository.folder.parent / "out").iterdir())]
    assert len(mails) == 3
    first, second, last = hooked(mails)
    assert (first, second) == ((0, ""), (0, ""))
    assert last[0] == 1 and "ERROR: gate:soon was proved" in last[1] and "--no-validate" in last[1]
    assert hooked(mails[:2]) == [(0, ""), (0, "")]                    # without the bad one
    assert not (repository.folder / ".git" / "schedproof-series").exists()


def test_the_hook_lets_pass_what_could_not_be_decided(repository: Repository,
                                                      hooked: Callable[..., list[tuple[int, str]]]):
    repository.commit(UNREADABLE, "with assembly")
    [(code, told)] = hooked([repository.mail()])
    assert code == 0 and "WARNING: gate: not decided" in told


# ------------------------------------------------------------------------------------------------------ real b4
def test_b4_prep_check(repository: Repository):
    """The real b4, on a series of a good patch and a bad one."""
    b4 = [sys.executable, "-c", "import b4.command; b4.command.cmd()"]
    repository.git("config", "b4.prep-perpatch-check-cmd", f"{sys.executable} -m schedproof check --b4 --suite {SUITE}")
    done = repository.run(*b4, "prep", "-n", "topic", "-f", "main")
    assert done.returncode == 0, done.stderr
    repository.commit(COMMENT, "sched/gate: say when")
    good = repository.run(*b4, "prep", "--check")
    assert "Success: 1, Warning: 0, Error: 0" in good.stdout + good.stderr, good
    repository.commit({FILE: swapped(COMMENT[FILE], (OPENS, "\tg->open = GATE_SHUT;\n"))}, "sched/gate: break it")
    bad = repository.run(*b4, "prep", "--check")
    told = bad.stdout + bad.stderr
    assert told.count("ERROR: gate:soon was proved") == 1 and "Success: 1, Warning: 0, Error: 1" in told, told
