# SPDX-License-Identifier: GPL-2.0-only
"""schedproof check and prove --tree on real trees, through the command line in processes of their own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schedproof.kernel import Tree
from tests.kernel.smallc import FAIR, HEADER, body_of, diff, edited

NAME = "update_cfs_group"
GUARD = r"^\tif \(throttled_hierarchy\(gcfs_rq\)\)\n\t\treturn;\n\n?"
SHIFT = ((r"\A", "/* One line. */\n/* And another one. */\n\n"),)
CALL = r"cfs_rq_of\(se\), se, shares\)"


class Ended:
    """What a command has left."""

    def __init__(self, done: subprocess.CompletedProcess[str]):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.flat = " ".join(self.out.split())

    @property
    def rows(self) -> dict[str, list[str]]:
        """The table of verdicts: property -> words."""
        return {line.split()[0]: line.split()[1:] for line in self.out.splitlines()
                if re.match(r"  [a-z_]+ +(proved|refuted|unknown|vacuous)\b", line)}


ONLY = ("--model", "quota_reweight")          # most of these tests are about one model: the others take their time

def run(folder: Path, *words: str | Path, stdin: str = "") -> Ended:
    """One command. What was decided before is decided again: these tests are about the deciding."""
    command = [sys.executable, "-m", "schedproof", *map(str, words), "--no-cache"]
    return Ended(subprocess.run(command, cwd=folder, text=True,
                                input=stdin, capture_output=True, timeout=300,
                                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}))


@pytest.fixture
def check(tmp_path: Path) -> Callable[..., Ended]:
    """``check(tree, patch text, words)``: one run of ``schedproof check`` with the patch in a file."""
    def call(tree: Tree | Path, patch: str, *words: str | Path) -> Ended:
        (tmp_path / "one.patch").write_text(patch)
        folder = tree.path if isinstance(tree, Tree) else tree
        return run(tmp_path, "check", "one.patch", "--tree", folder, *ONLY, *words)
    return call


def copy_of(tree: Tree, folder: Path, **files: str) -> Path:
    """A copy of what is read of a tree, links between files where they do."""
    shutil.copytree(tree.path, folder, copy_function=os.link if os.stat(tree.path).st_dev == os.stat(
        folder.parent).st_dev else shutil.copy2, symlinks=True)
    for name, text in files.items():
        file = folder / {"fair": FAIR, "header": HEADER}[name]
        file.unlink()
        file.write_text(text)
    return folder


def refuted_before(tree: Tree) -> set[str]:
    """What a release is refuted in."""
    return {"bounded_wait", "no_stale_run"} if tree.version()[:2] == (6, 1) else {"no_stale_run"}


def places(text: str) -> set[tuple[str, str, int]]:
    """(function, file, line) of everything that a trace says has run from C."""
    return {(f, file, int(line)) for f, file, line in re.findall(r"(\w+) \((kernel/\S+?):(\d+)\)", text)}


# ------------------------------------------------------------------------------------------- what it is for
def test_deleting_the_guard_is_better_and_the_reverse_is_worse(check, real_tree: Tree, tmp_path: Path):
    before = edited(real_tree.text(FAIR), NAME, *SHIFT)
    after = edited(before, NAME, (GUARD, ""))
    bad = refuted_before(real_tree)

    good = check(real_tree, diff(real_tree.text(FAIR), edited(real_tree.text(FAIR), NAME, (GUARD, ""))))
    assert (good.code, good.err) == (0, ""), good.out
    assert "update_cfs_group() in kernel/sched/fair.c: differs" in good.out
    assert {n for n, words in good.rows.items() if words[0] == "refuted"} == bad
    assert all("proved" in words[1:] or words[:2] == ["proved", "proved"] for words in good.rows.values())
    assert {n for n, words in good.rows.items() if words[-1] == "better"} == bad
    for name in bad:
        assert f"Without the patch, {name} fails." in good.flat
    assert "With the patch," not in good.flat

    patched = copy_of(real_tree, tmp_path / "patched", fair=after)
    worse = check(patched, diff(after, before))
    assert (worse.code, worse.err) == (1, "")
    assert {n for n, words in worse.rows.items() if words[-1] == "WORSE"} == bad
    for name in bad:
        assert f"With the patch, {name} fails." in worse.flat
    found = places(worse.flat)
    assert {"update_cfs_group", "throttled_hierarchy", "calc_group_shares"} <= {f for f, _, _ in found}
    for function, file, number in found:
        text = before if file == FAIR else real_tree.text(file)
        assert f"{function}(" in text.splitlines()[number - 1]


def test_prove_says_what_a_tree_is_refuted_in(real_tree: Tree, tmp_path: Path):
    done = run(tmp_path, "prove", "quota_reweight", "--tree", real_tree.path, "--json")
    rows = json.loads(done.out)["results"]
    assert (done.code, done.err) == (1, "")
    assert {r["property"] for r in rows if r["verdict"] == "refuted"} == refuted_before(real_tree)
    assert all(r["verdict"] in ("proved", "refuted") for r in rows)


def test_a_comment_is_equal_and_nothing_is_decided(check, real_tree: Tree):
    old = real_tree.text(FAIR)
    done = check(real_tree, diff(old, edited(old, NAME, (GUARD, "\t/* Hands off. */\n\\g<0>"))))
    assert (done.code, done.err, done.rows) == (0, "", {})
    assert "update_cfs_group() in kernel/sched/fair.c: equal, proved" in done.out
    assert "No verdict can change." in done.out


def test_another_text_of_the_same_is_equal(check, real_tree: Tree):
    old = real_tree.text(FAIR)
    done = check(real_tree, diff(old, edited(old, NAME, (r"!gcfs_rq(?=[ )])", "gcfs_rq == NULL"))))
    assert (done.code, done.err, done.rows) == (0, "", {})
    assert "update_cfs_group() in kernel/sched/fair.c: equal, proved" in done.out


# --------------------------------------------------------------------------------- what is not, or half, read
def test_a_function_that_is_not_modelled_is_passed_over(check, real_tree: Tree):
    old = real_tree.text(FAIR)
    done = check(real_tree, diff(old, edited(old, "get_rr_interval_fair", (r"\A", "/* x */\n"), (r"\}\n\Z", ";\n}\n"))))
    assert (done.code, done.out, done.err) == (0, "", "")


def test_a_helper_below_modelled_functions_is_never_passed_over(check, real_tree: Tree):
    """Whether those above it can be read or not: they are told, and it is named."""
    old = real_tree.text(FAIR)
    done = check(real_tree, diff(old, edited(old, "__calc_delta", (r"\}\n\Z", ";\n}\n"))), "--budget", "0.001")
    assert done.err == "" and "calc_delta_fair() (through __calc_delta) in kernel/sched/fair.c: " in done.flat


def test_another_file_is_passed_over(check, tree_61: Tree):
    old = tree_61.text("kernel/sched/rt.c")
    done = check(tree_61, diff(old, old + "\nstatic int nothing_of_it;\n", "kernel/sched/rt.c"))
    assert (done.code, done.out, done.err) == (0, "", "")


def test_a_modelled_function_that_is_not_read_is_undecided_and_named(check, real_tree: Tree):
    old = real_tree.text(FAIR)
    done = check(real_tree, diff(old, edited(old, "update_curr", (r"\}\n\Z", ";\n}\n"))))
    assert (done.code, done.err) == (3, "")
    assert all(words == ["unknown", "unknown", "undecided"] for words in done.rows.values()) and done.rows
    assert done.flat.count("the patch touches update_curr: before the patch: kernel/sched/fair.c:") == 1
    assert "bounded_wait: the patch" not in done.flat                # it is about all


def test_what_goes_through_a_function_that_is_told_is_not_told_again(tree_61: Tree, tmp_path: Path):
    """entity_tick() of quota_functions runs update_cfs_group(), of which quota_reweight has the verdicts."""
    old = tree_61.text(FAIR)
    (tmp_path / "one.patch").write_text(diff(old, edited(old, NAME, (GUARD, ""))))
    done = run(tmp_path, "check", "one.patch", "--tree", tree_61.path, "--json")
    (part,) = json.loads(done.out)["patches"][0]["models"]
    assert (done.code, part["model"], [f["function"] for f in part["functions"]]) == (0, "quota_reweight", [NAME])


def test_what_another_model_proves_equal_is_equal(real_tree: Tree, tmp_path: Path):
    """quota_reweight cannot read calc_delta_fair(); quota_functions can, and proves that nothing changes."""
    old = real_tree.text(FAIR)
    (tmp_path / "one.patch").write_text(diff(old, edited(old, "calc_delta_fair", (r"\}\n\Z", ";\n}\n"))))
    done = run(tmp_path, "check", "one.patch", "--tree", real_tree.path)
    assert (done.code, done.err) == (0, "") and not done.rows
    assert "calc_delta_fair() in kernel/sched/fair.c: equal, proved" in done.out and "not read" not in done.out


@pytest.mark.parametrize(("steps", "construct"), [
    (((GUARD, '\tasm volatile("nop");\n\\g<0>'),), "asm"),
    (((GUARD, "\t{\n\tvoid (*f)(struct sched_entity *) = NULL;\n\tf(se);\n\t}\n\\g<0>"),), "f"),
])
def test_what_makes_the_function_unreadable_is_named_with_its_place(check, tree_61: Tree, steps, construct):
    old = tree_61.text(FAIR)
    new = edited(old, NAME, *steps)
    done = check(tree_61, diff(old, new))
    assert (done.code, done.err) == (3, "")
    found = re.search(r"touches update_cfs_group: after the patch: kernel/sched/fair\.c:(\d+): (.*)", done.flat)
    assert found and construct in found[2].split(" what this rests on")[0]
    line = new.splitlines()[int(found[1]) - 1]
    assert "asm" in line if construct == "asm" else "f" in line
    assert int(found[1]) in range(new[:new.index(body_of(new, NAME))].count("\n"),
                                  new[:new.index(body_of(new, NAME))].count("\n") + 30)


def test_a_weight_without_a_word_in_the_model_is_no_alarm(check, tree_612: Tree):
    """The tree is proved in bounded_wait, and with the patch nothing can be said."""
    old = tree_612.text(FAIR)
    done = check(tree_612, diff(old, edited(old, NAME, (r"^\tif \(unlikely[^\n]*\n\t", ""),
                                            (CALL, "cfs_rq_of(se), se, 4096)"))))
    assert (done.code, done.err) == (3, "")
    assert "differs" in done.out and done.rows["bounded_wait"][0] == "proved"
    assert all(words[-2:] == ["unknown", "undecided"] for words in done.rows.values())
    assert "sets weight[" in done.flat and "to 4096" in done.flat


def test_no_time_is_undecided(check, tree_61: Tree):
    old = tree_61.text(FAIR)
    done = check(tree_61, diff(old, edited(old, NAME, (GUARD, ""))), "--budget", "0.001")
    assert (done.code, done.err) == (3, "")
    assert "differs" in done.out and all(words[-1] == "undecided" for words in done.rows.values())


# ------------------------------------------------------------------------------------- helpers, macros, types
def test_a_helper_is_seen_through_its_callers(check, tree_612: Tree):
    old = tree_612.text(FAIR)
    done = check(tree_612, diff(old, edited(old, "throttled_hierarchy", (r"return .*;", "return 0;"))), "--json")
    functions = {f["function"]: f for m in json.loads(done.out)["patches"][0]["models"] for f in m["functions"]}
    assert functions["update_cfs_group"]["status"] == "differs"
    assert functions["update_cfs_group"]["via"] == ["throttled_hierarchy"]
    assert functions["throttled_hierarchy"]["status"] == "differs"


def test_a_macro_is_seen_through_its_users(check, tree_612: Tree):
    old = tree_612.text(HEADER)
    new, count = re.subn(r"max\(2UL, (__w >> SCHED_FIXEDPOINT_SHIFT)\)", r"(\1)", old)
    assert count == 1
    done = check(tree_612, diff(old, new, HEADER), "--json", "--budget", "0.001")
    functions = {f["function"]: f for m in json.loads(done.out)["patches"][0]["models"] for f in m["functions"]}
    assert functions["calc_group_shares"]["status"] == "differs"
    assert functions["calc_group_shares"]["via"] == ["scale_load_down"]
    assert functions["update_cfs_group"]["via"] == ["scale_load_down"]
    assert "throttled_hierarchy" not in functions


def test_a_field_of_another_type_is_seen(check, tree_61: Tree):
    old = tree_61.text(HEADER)
    new, count = re.subn(r"\bint(\t+throttle_count;)", r"u8\1", old)
    assert count == 1
    done = check(tree_61, diff(old, new, HEADER), "--budget", "0.001")
    assert done.code == 3
    assert "throttle_count changes from int to u8" in done.flat


def test_a_dropped_read_once_is_told_and_changes_nothing(check, tree_61: Tree):
    old = tree_61.text(FAIR)
    done = check(tree_61, diff(old, edited(old, "calc_group_shares", (r"READ_ONCE\((tg->shares)\)", r"\1"))))
    assert (done.code, done.err, done.rows) == (0, "", {})
    assert "calc_group_shares() in kernel/sched/fair.c: differs, invisible to this model READ_ONCE" in done.flat


# --------------------------------------------------------------------------------------------- ways of calling
def test_a_series_gives_one_report_a_patch(real_tree: Tree, tmp_path: Path):
    first = real_tree.text(FAIR)
    second = edited(first, NAME, (GUARD, "\t/* Hands off. */\n\\g<0>"))
    third = edited(second, NAME, (r"!gcfs_rq(?=[ )])", "NULL == gcfs_rq"))
    (tmp_path / "1.patch").write_text(diff(first, second))
    (tmp_path / "2.patch").write_text(diff(second, third))
    done = run(tmp_path, "check", "1.patch", "2.patch", "--tree", real_tree.path, "--json", *ONLY)
    found = json.loads(done.out)["patches"]
    assert (done.code, done.err, len(found)) == (0, "", 2)
    details = [p["models"][0]["functions"][0] for p in found]
    assert [d["status"] for d in details] == ["equal", "equal"]
    assert [d["detail"] for d in details] == ["only comments and blanks change", ""]
    wrong = run(tmp_path, "check", "2.patch", "1.patch", "--tree", real_tree.path)
    assert (wrong.code, wrong.out) == (2, "")                        # the second needs the first


def test_json_has_before_and_after_and_standard_input_is_read(tree_61: Tree, tmp_path: Path):
    old = tree_61.text(FAIR)
    patch = diff(old, edited(old, NAME, (GUARD, "")))
    done = run(tmp_path, "check", "-", "--tree", tree_61.path, "--json", *ONLY, "--set", "ratio=4", stdin=patch)
    assert (done.code, done.err) == (0, "")
    part = json.loads(done.out)["patches"][0]["models"][0]
    row = next(p for p in part["properties"] if p["property"] == "bounded_wait")
    assert (row["before"]["verdict"], row["after"]["verdict"], row["change"]) == ("refuted", "proved", "better")
    assert row["before"]["trace"] and row["before"]["parameters"]["ratio"] == 4
    assert len(part["assumptions"]) <= 6


def test_a_revision_is_read_and_the_work_tree_is_left_alone(check, tree_61: Tree, tmp_path: Path):
    old = tree_61.text(FAIR)
    repository = tmp_path / "repository"
    for file in ("Makefile", FAIR, *(f for pattern in ("kernel/sched/*.h", "include/linux/*.h") for f in
                                     tree_61.files(pattern))):
        (repository / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(tree_61.path / file, repository / file)
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    (repository / FAIR).write_text("not C at all\n")
    patch = diff(old, edited(old, NAME, (GUARD, "\t/* Hands off. */\n\\g<0>")))
    done = check(repository, patch, "--rev", "HEAD")
    assert (done.code, done.err) == (0, "") and "equal, proved" in done.out
    assert (repository / FAIR).read_text() == "not C at all\n"
    assert check(repository, patch).code == 2
    status = subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True, text=True).stdout
    assert status == f" M {FAIR}\n"


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(p): (p.lstat().st_mtime_ns, p.lstat().st_size) for p in folder.rglob("*")}


def test_nothing_of_a_tree_is_run_followed_or_changed(check, tree_61: Tree, tmp_path: Path):
    outside = tmp_path / "outside.h"
    outside.write_text("#define OUTSIDE 1\n")
    folder = copy_of(tree_61, tmp_path / "tree")
    evil = f"open({str(tmp_path / 'RAN')!r}, 'w')\n"
    for name in ("models/quota_reweight.py", "properties/quota_reweight.py", "conftest.py", "sitecustomize.py",
                 "schedproof/__init__.py", "z3.py", "kernel/sched/conftest.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(evil)
    (folder / "kernel/sched/extra.h").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    before = listing(folder)
    old = tree_61.text(FAIR)
    commented = edited(old, NAME, (GUARD, "\t/* Hands off. */\n\\g<0>"))
    done = check(folder, diff(old, commented))
    assert (done.code, done.err) == (0, "") and "equal, proved" in done.out
    including = '#include "extra.h"\n' + edited(old, NAME, (GUARD, "\tif (OUTSIDE)\n\t\treturn;\n"))
    done = check(folder, diff(old, including), "--budget", "0.001")
    assert done.code == 3 and "OUTSIDE" in done.out                  # the name means nothing: the link is not followed
    linked = check(folder, diff("#define OUTSIDE 1\n", "#define OUTSIDE 2\n", "kernel/sched/extra.h"))
    assert (linked.code, linked.out) == (2, "") and outside.read_text() == "#define OUTSIDE 1\n"
    assert listing(folder) == before
    assert not (tmp_path / "RAN").exists()


# ----------------------------------------------------------------------------------------------------- bad input
@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree of three lines, with what is bad beside it."""
    folder = tmp_path_factory.mktemp("bad")
    tree = folder / "tree"
    (tree / "kernel/sched").mkdir(parents=True)
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 0\n")
    (tree / FAIR).write_text("int one;\nint two;\nint three;\n")
    (folder / "empty-tree").mkdir()
    (folder / "no-file/kernel").mkdir(parents=True)
    (folder / "no-file/Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\n")
    texts: dict[str, Any] = {
        "good": diff("int one;\nint two;\nint three;\n", "int one;\nint 2;\nint three;\n"),
        "words": "Dear all,\nthis is no patch.\n", "empty": "", "truncated": f"--- a/{FAIR}\n+++ b/{FAIR}\n@@ -1,3 +1,",
        "stale": diff("int one;\nint old;\nint three;\n", "int one;\nint 2;\nint three;\n"),
        "binary": f"diff --git a/{FAIR} b/{FAIR}\nGIT binary patch\nliteral 3\nabc\n\n", "nul": b"\0\1\2" * 9,
        "escape": diff("a\n", "b\n", "../outside.c"), "huge": "x" * (9 << 20)}
    for name, text in texts.items():
        (folder / f"{name}.patch").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


@pytest.mark.parametrize(("words", "told"), [
    ("words.patch --tree tree", ["words.patch", "not a patch"]),
    ("empty.patch --tree tree", ["empty.patch", "not a patch"]),
    ("truncated.patch --tree tree", ["truncated.patch"]),
    ("stale.patch --tree tree", ["stale.patch", "hunk 1", FAIR]),
    ("binary.patch --tree tree", ["binary.patch", "binary"]),
    ("nul.patch --tree tree", ["nul.patch", "binary"]),
    ("huge.patch --tree tree", ["huge.patch", "MiB"]),
    ("escape.patch --tree tree", ["escape.patch", "../outside.c"]),
    ("none.patch --tree tree", ["none.patch"]),
    ("tree --tree tree", ["tree", "read"]),
    ("good.patch --tree none", ["none", "folder"]),
    ("good.patch --tree empty-tree", ["empty-tree", "not a kernel tree"]),
    ("good.patch --tree no-file", [FAIR, "no-file"]),
    ("good.patch --tree good.patch", ["good.patch", "folder"]),
    ("good.patch --tree tree --rev HEAD", ["not a git repository"]),
    ("good.patch --tree tree --model quota", ["quota"]),
    ("good.patch --tree tree --variant v4.99", ["v4.99"]),
    ("good.patch --tree tree --variant v6.1+drop_gard", ["drop_gard", "drop_guard"]),
    ("good.patch --tree tree --set ratoi=4", ["ratoi", "ratio"]),
    ("good.patch --tree tree --set ratio=0", ["ratio=0", "2"]),
    ("good.patch --tree tree --set ratio", ["ratio"]),
    ("good.patch --tree tree --engine guess", ["guess", "explicit"]),
    ("good.patch --tree tree --format pdf", ["pdf", "text"]),
    ("good.patch --tree tree --budget 0", ["0"]),
    ("--tree tree", ["PATCH"]),
    ("good.patch", ["--tree"]),
])
def test_bad_input_is_one_line(small: Path, words: str, told: list[str]):
    before = listing(small)
    done = run(small, "check", *words.split())
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("schedproof: ") and done.err.count("\n") == 1
    assert "bug of schedproof" not in done.err
    for word in told:
        assert word in done.err
    assert listing(small) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_patch_is_one_line(small: Path):
    (small / "good.patch").chmod(0)
    done = run(small, "check", "good.patch", "--tree", "tree")
    (small / "good.patch").chmod(0o600)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)


def test_commits_and_ranges_of_a_repository_are_checked_on_their_parents(check, tree_61: Tree, tmp_path: Path):
    repository = tmp_path / "repository"
    shutil.copytree(tree_61.path / "kernel", repository / "kernel")
    shutil.copytree(tree_61.path / "include", repository / "include")
    shutil.copy(tree_61.path / "Makefile", repository)

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(repository), "-c", "user.name=n", "-c", "user.email=n@example.org", *words],
                       check=True, capture_output=True)

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "base")
    file = repository / FAIR
    text = file.read_text()
    file.write_text(edited(text, NAME, (GUARD, "")))
    git("commit", "-qam", "drop the guard")
    file.write_text(text)
    git("commit", "-qam", "put it back")
    for spec, code, subjects in (("HEAD~1", 0, ["drop the guard"]), ("HEAD", 1, ["put it back"]),
                                 ("HEAD~2..HEAD", 1, ["drop the guard", "put it back"])):
        words = ("check", spec, "--tree", str(repository), "--json", *ONLY)
        done = subprocess.run([sys.executable, "-m", "schedproof", *words],
                              cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (code, "")
        assert [p["subject"] for p in json.loads(done.stdout)["patches"]] == subjects
    refused = (("HEAD~9", "neither a file nor a commit"), ("HEAD~2", "root commit"), ("HEAD..HEAD", "no commits"))
    for spec, said in refused:
        done = subprocess.run([sys.executable, "-m", "schedproof", "check", spec, "--tree", str(repository)],
                              cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "") and said in done.stderr and done.stderr.count("\n") == 1
