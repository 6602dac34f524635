# SPDX-License-Identifier: GPL-2.0-only
"""Series, mailboxes and git repositories: what is checked on what, and that the work tree is never touched or read."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kernel.gate import FILE, FILES, HEADER, Gates, gates, patch_of, swapped
from tests.loading import need

__all__ = ["gates"]

OPENS = "\tg->open = GATE_OPEN;\n"
Git = Callable[..., str]

# Three steps, each on the one before: a helper, its use, and the use broken.
STATE = "static inline int gate_state(void)\n{\n\treturn GATE_OPEN;\n}\n\n"
LOG = "static inline void gate_log"
HELPER = {**FILES, HEADER: swapped(FILES[HEADER], (LOG, STATE + LOG))}
USED = {**HELPER, FILE: swapped(FILES[FILE], (OPENS, "\tg->open = gate_state();\n"))}
BROKEN = {**USED, HEADER: swapped(USED[HEADER], ("\treturn GATE_OPEN;\n", "\treturn GATE_SHUT;\n"))}
STEPS = [("add a helper", FILES, HELPER), ("use the helper", HELPER, USED), ("break the helper", USED, BROKEN)]


def changed(old: dict[str, str], new: dict[str, str]) -> dict[str, str | None]:
    return {name: text for name, text in new.items() if old.get(name) != text}


def mails() -> list[str]:
    return [patch_of(changed(old, new), old, subject) for subject, old, new in STEPS]


@pytest.fixture
def git(gates: Gates) -> Git:
    """The small tree as a repository with one commit."""
    need("git")
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a",
           "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}

    def run(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=gates.tree, env=env, check=True, capture_output=True,
                              text=True).stdout

    run("init", "-q", "-b", "main")
    run("add", "-A")
    run("commit", "-qm", "the gate")
    return run


@pytest.fixture
def history(gates: Gates, git: Git) -> Git:
    """The three steps as commits."""
    for subject, _, new in STEPS:
        gates.write(new)
        git("commit", "-qam", subject)
    return git


def state(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Every file and folder of a repository, git's own included, with its times and size."""
    return {str(p): (s.st_mtime_ns, s.st_size, s.st_mode) for p in sorted(folder.rglob("*")) for s in (p.lstat(),)}


# ------------------------------------------------------------------------------------------------------- series
def told(done) -> list[tuple[str, dict[str, str], set[str]]]:
    """(subject, status of each function, changes of the verdicts), one a patch."""
    return [(p["subject"], {f["function"]: f["status"] for m in p["models"] for f in m["functions"]},
             {r["change"] for m in p["models"] for r in m["properties"]}) for p in done.json["patches"]]


EXPECTED = [("add a helper", {}, set()), ("use the helper", {"gate_refill": "equal"}, set()),
            ("break the helper", {"gate_refill": "differs"}, {"worse", "same"})]
AS_MAIL = [(f"[PATCH] {subject}", functions, changes) for subject, functions, changes in EXPECTED]


def test_a_mailbox_is_a_series_in_order(gates: Gates):
    done = gates.check("\n".join(mails()))
    assert (done.code, done.err, told(done)) == (1, "", AS_MAIL)
    text = gates.check("\n".join(mails()), "--format", "text").out
    first, second = text.index("use the helper"), text.index("break the helper")
    assert first < second and "WORSE" in text[second:] and "WORSE" not in text[:second]


def test_several_files_are_a_series_and_the_order_is_that_of_the_call(gates: Gates):
    for number, mail in enumerate(mails()):
        (gates.folder / f"{number}.patch").write_text(mail)
    names = [gates.folder / f"{n}.patch" for n in range(3)]
    done = gates.run("check", *names, "--tree", gates.tree, "--json")
    assert (done.code, told(done)) == (1, AS_MAIL)
    done = gates.run("check", names[0], names[2], names[1], "--tree", gates.tree, "--json")
    assert told(done)[1][1] == {} and told(done)[2] == ("[PATCH] use the helper", {"gate_refill": "differs"},
                                                        {"worse", "same"})
    done = gates.run("check", names[2], names[0], "--tree", gates.tree)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "hunk 1 does not apply" in done.err and HEADER in done.err


def test_a_series_with_one_patch_that_does_not_apply_decides_nothing(gates: Gates):
    done = gates.check("\n".join([*mails(), mails()[0]]))
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)


# ---------------------------------------------------------------------------------------------------------- git
def test_commits_and_ranges(gates: Gates, history: Git):
    done = gates.run("check", "HEAD~3..HEAD", "--tree", gates.tree, "--json")
    assert (done.code, done.err, told(done)) == (1, "", EXPECTED)
    for spec, code, number in (("HEAD", 1, 2), ("HEAD~1", 0, 1), ("HEAD~2", 0, 0)):
        done = gates.run("check", spec, "--tree", gates.tree, "--json")
        assert (done.code, told(done)) == (code, [EXPECTED[number]])
    assert gates.run("check", "main~1..main", "--tree", gates.tree, "--quiet").code == 1


def test_what_is_not_committed_is_not_read_and_stays(gates: Gates, history: Git):
    """A work tree with edits, new files, staged and unstaged, on another branch than the one that is asked about."""
    history("checkout", "-q", "-b", "elsewhere", "HEAD~3")
    gates.write({FILE: "this is no C\n", "kernel/sched/new.h": "neither is this\n"})
    history("add", FILE)
    gates.write({HEADER: "#error staged is the other one\n", "Makefile": "VERSION = 99\n"})
    status = history("status", "--porcelain")
    index = (gates.tree / ".git/index").read_bytes()
    before = state(gates.tree)
    done = gates.run("check", "main~3..main", "--tree", gates.tree, "--json")
    assert (done.code, done.err, told(done)) == (1, "", EXPECTED)
    (gates.folder / "mbox").write_text("\n".join(mails()))
    done = gates.run("check", gates.folder / "mbox", "--tree", gates.tree, "--rev", "main~3", "--json")
    assert (done.code, done.err, told(done)) == (1, "", AS_MAIL)
    for rev, verdict, code in (("main~3", "proved", 0), ("main", "refuted", 1), ("main~1", "proved", 0)):
        done = gates.run("prove", "gate:soon", "--tree", gates.tree, "--rev", rev, "--json")
        assert (done.code, done.json["results"][0]["verdict"]) == (code, verdict)
        assert done.json["results"][0]["tree"].endswith(f"at {rev}")
    assert state(gates.tree) == before
    assert (gates.tree / ".git/index").read_bytes() == index
    assert history("status", "--porcelain") == status
    assert "no Makefile" in gates.run("prove", "gate", "--tree", gates.tree).err              # as it lies, it is none


def test_the_work_tree_as_it_lies_is_read_without_rev(gates: Gates, history: Git):
    gates.write(FILES)
    assert gates.run("prove", "gate:soon", "--tree", gates.tree, "--json").json["results"][0]["verdict"] == "proved"
    done = gates.run("prove", "gate:soon", "--tree", gates.tree, "--rev", "HEAD", "--json")
    assert done.json["results"][0]["verdict"] == "refuted"


@pytest.mark.parametrize(("words", "said"), [
    ("check nothing", "neither a file nor a commit"), ("check HEAD~9", "neither a file nor a commit"),
    ("check HEAD~3", "root commit"), ("check HEAD..HEAD", "no commits"), ("check HEAD~9..HEAD", "failed"),
    ("check HEAD --rev HEAD", "leave out --rev"), ("prove gate --rev no-such", "no revision"),
    ("check HEAD HEAD~1", "HEAD"), ("prove gate --rev -x", "not a revision"),
])
def test_bad_revisions_are_one_line(gates: Gates, history: Git, words: str, said: str):
    words = words.replace("--rev -x", "--rev=-x")
    done = gates.run(*words.split(), "--tree", gates.tree)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err and "bug of schedproof" not in done.err


def test_a_merge_is_refused_and_its_commits_are_not(gates: Gates, history: Git):
    history("checkout", "-q", "-b", "side", "HEAD~2")
    gates.write({"kernel/sched/side.h": "#define SIDE 1\n"})
    history("add", "-A")
    history("commit", "-qm", "aside")
    history("checkout", "-q", "main")
    history("merge", "-q", "--no-ff", "-m", "merge", "side")
    done = gates.run("check", "HEAD", "--tree", gates.tree)
    assert (done.code, done.out) == (2, "") and "merge" in done.err
    done = gates.run("check", "HEAD~3..HEAD~1", "--tree", gates.tree, "--json")
    assert told(done) == EXPECTED[1:]
