# SPDX-License-Identifier: GPL-2.0-only
"""``prove --bisect`` under the real git: which commit it blames, and which it leaves out."""

from __future__ import annotations

import pytest

from tests.kernel.gate import SUITE, gates
from tests.kernel.repository import BAD, COMMENT, ELSEWHERE, FILES, SCHEDPROOF, UNREADABLE, Repository, repository

__all__ = ["gates", "repository"]

QUESTION = (*SCHEDPROOF, "prove", "gate:soon", "--suite", str(SUITE), "--tree", ".", "--bisect", "--no-cache")


def bisected(repository: Repository, good: str, *words: str, terms: tuple[str, str] = ("bad", "good")) -> str:
    """What ``git bisect run`` says between ``good`` and HEAD, with what the runs say on standard error."""
    renamed = () if terms == ("bad", "good") else (f"--term-new={terms[0]}", f"--term-old={terms[1]}")
    repository.git("bisect", "start", *words, *renamed, "HEAD", good)
    question = (*QUESTION, "--rev", "BISECT_HEAD") if words else QUESTION
    done = repository.run("git", "bisect", "run", *question)
    return done.stdout + done.stderr


def first_bad(told: str, term: str = "bad") -> str:
    (line,) = [x for x in told.splitlines() if x.endswith(f"is the first {term} commit")]
    return line.split()[0]


@pytest.mark.parametrize("words", [(), ("--no-checkout",)])
def test_the_commit_that_breaks_it_is_found(repository: Repository, words: tuple[str, ...]):
    good = repository.git("rev-parse", "HEAD").strip()
    repository.commit(COMMENT, "a comment")
    repository.commit(ELSEWHERE, "elsewhere")
    culprit = repository.commit(BAD, "break it")
    repository.commit({**BAD, "README": "a text\n"}, "a text")
    assert first_bad(bisected(repository, good, *words)) == culprit


def test_a_commit_that_cannot_be_read_is_skipped(repository: Repository):
    """Without the function that matters the verdict is the method's, which is good whatever the C does."""
    good = repository.git("rev-parse", "HEAD").strip()
    broken = {f: t.replace("GATE_OPEN;\n}", "GATE_SHUT;\n}") for f, t in UNREADABLE.items()}
    assert broken != UNREADABLE
    repository.commit(broken, "break it, and with assembly")
    readable = repository.commit(BAD, "without assembly")
    told = bisected(repository, good)
    assert "skipped: gate_refill cannot be read here" in told
    assert "only 'skip'ped commits left" in told and readable in told
    assert "is the first bad commit" not in told


def test_a_function_that_no_end_can_be_read_in_is_no_reason_to_skip(repository: Repository):
    """gate_slow has assembly from the first commit on."""
    good = repository.git("rev-parse", "HEAD").strip()
    culprit = repository.commit(BAD, "break it")
    repository.commit({**BAD, "README": "a text\n"}, "a text")
    assert first_bad(bisected(repository, good)) == culprit


@pytest.mark.parametrize("terms", [("broken", "fine"), ("was-broken", "ok-then")])
def test_other_terms(repository: Repository, terms: tuple[str, str]):
    """The function can be read at the newer end only, so it matters that this end is known by its term."""
    good = repository.commit(UNREADABLE, "with assembly")
    repository.commit({**UNREADABLE, "README": "a text\n"}, "a text")
    repository.commit(BAD, "break it, without assembly")
    told = bisected(repository, good, terms=terms)
    assert "skipped: gate_refill cannot be read here" in told
    assert f"is the first {terms[0]} commit" not in told


def test_outside_of_a_bisection_what_can_be_read_decides(repository: Repository):
    repository.commit(UNREADABLE, "with assembly")
    done = repository.run(*QUESTION)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", [("--tree", "nowhere"), ("--rev", "nothing")])
def test_a_wrong_call_ends_the_bisection(repository: Repository, words: tuple[str, str]):
    done = repository.run(*QUESTION, *words)
    assert done.returncode == 255 and done.stderr.count("\n") == 1


def test_the_run_that_shows_a_refutation_is_that_of_the_revision(repository: Repository):
    bad = repository.commit(BAD, "break it")
    repository.commit(FILES, "mend it")
    done = repository.run(*QUESTION, "--rev", bad)
    (line,) = [x for x in done.stdout.splitlines() if x.startswith("  schedproof trace")]
    shown, mended = (repository.run(*SCHEDPROOF, *words.split()[1:], "--suite", str(SUITE)).stdout
                     for words in (line, line.replace(bad, "HEAD")))
    assert done.returncode == 1 and "wait ends" in mended
    assert "wait begins" in shown and "wait ends" not in shown
