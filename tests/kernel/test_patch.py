# SPDX-License-Identifier: GPL-2.0-only
from __future__ import annotations

import base64
import difflib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedproof.errors import InputError
from schedproof.kernel.patch import apply, parse_patches, read_patches
from schedproof.kernel.touched import touched_functions
from schedproof.kernel.tree import Tree
from tests.loading import need

MakeTree = Callable[..., Tree]
FILE = "kernel/sched/a.c"
OLD = """#define LIMIT 3
struct box {
	int size;
};

static int first(int x)
{
	/* a remark */
	return x + LIMIT;
}

int second(struct box *b)
{
	return b->size;
}
"""


def diff(old: str, new: str, file: str = FILE, context: int = 3) -> str:
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{file}",
                                 f"b/{file}", n=context)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def mail(body: str, headers: str = "") -> str:
    return (f"From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\nFrom: A <a@b.c>\n"
            f"Subject: [PATCH] sched: x\n{headers}\nWords.\n---\n a.c | 2 +-\n\n{body}-- \n2.39.0\n\n")


def patched(tree: Tree, text: str) -> Tree:
    return apply(tree, parse_patches(text))


def test_applies_and_leaves_the_tree_alone(make_tree: MakeTree):
    tree = make_tree(OLD)
    new = OLD.replace("x + LIMIT", "x - LIMIT")
    after = patched(tree, diff(OLD, new))
    assert after.text(FILE) == new
    assert tree.text(FILE) == OLD and (tree.path / FILE).read_text() == OLD
    assert "patch" in after.label


def test_mailbox_with_cover_letter_and_two_patches(make_tree: MakeTree):
    middle, new = OLD.replace("LIMIT 3", "LIMIT 4"), OLD.replace("LIMIT 3", "LIMIT 5")
    patches = parse_patches(mail("") + mail(diff(OLD, middle)) + mail(diff(middle, new)), "series.mbox")
    assert [p.subject for p in patches] == ["[PATCH] sched: x"] * 2
    assert patches[1].name == "series.mbox (message 3)" and patches[0].files == (FILE,)
    assert apply(make_tree(OLD), patches).text(FILE) == new


@pytest.mark.parametrize("kind", ["base64", "quoted-printable"])
def test_encoded_mail(make_tree: MakeTree, kind: str):
    new = OLD.replace("a remark", "a = b: ä")
    body = diff(OLD, new).encode()
    coded = (base64.encodebytes(body).decode() if kind == "base64" else
             body.decode().replace("=", "=3D").encode().replace(b"\xc3\xa4", b"=C3=A4").decode())
    text = ("From: A <a@b.c>\nSubject: x\nContent-Type: text/plain; charset=utf-8\n"
            f"Content-Transfer-Encoding: {kind}\n\n{coded}")
    assert patched(make_tree(OLD), text).text(FILE) == new


def test_offset_takes_the_nearest_place(make_tree: MakeTree):
    block = "int f(void)\n{\n\treturn 1;\n}\n\n"
    old = block * 5
    new = block * 2 + block.replace("1", "2") + block * 2
    text = diff(old, new)
    moved = "/* new first line */\n" * 2 + old
    assert patched(make_tree(moved), text).text(FILE) == "/* new first line */\n" * 2 + new


def test_hunk_that_does_not_apply_is_named(make_tree: MakeTree):
    text = diff(OLD, OLD.replace("b->size", "b->size + 1"))
    with pytest.raises(InputError, match=rf"patch: hunk 1 does not apply: {FILE}:\d+"):
        patched(make_tree(OLD.replace("second(struct", "other(struct")), text)


def test_no_fuzz(make_tree: MakeTree):
    text = diff(OLD, OLD.replace("LIMIT;", "LIMIT * 2;"))
    with pytest.raises(InputError, match="does not apply"):
        patched(make_tree(OLD.replace("/* a remark */", "/* another remark */")), text)


@pytest.mark.parametrize("ends", [("", ""), ("\n", ""), ("", "\n")])
def test_no_newline_at_the_end(make_tree: MakeTree, ends: tuple[str, str]):
    old, new = "int a;\nint b;" + ends[0], "int a;\nint c;" + ends[1]
    assert patched(make_tree(old), diff(old, new)).text(FILE) == new


def test_missing_newline_has_to_match(make_tree: MakeTree):
    with pytest.raises(InputError, match="does not apply"):
        patched(make_tree("int a;\nint b;\n"), diff("int a;\nint b;", "int a;\nint c;"))


def test_crlf_file_and_crlf_mail(make_tree: MakeTree):
    new = OLD.replace("x + LIMIT", "x - LIMIT")
    dos = OLD.replace("\n", "\r\n")
    assert patched(make_tree(OLD), diff(OLD, new).replace("\n", "\r\n")).text(FILE) == new
    assert patched(make_tree(dos), diff(OLD, new)).text(FILE) == new.replace("\n", "\r\n")
    assert patched(make_tree(dos), diff(dos, new.replace("\n", "\r\n"))).text(FILE) == new.replace("\n", "\r\n")


def test_new_deleted_and_renamed_files(make_tree: MakeTree):
    tree = make_tree(OLD)
    added = ("diff --git a/n.c b/n.c\nnew file mode 100644\n--- /dev/null\n+++ b/n.c\n@@ -0,0 +1,2 @@\n"
             "+int a;\n+int b;\n")
    assert patched(tree, added).text("n.c") == "int a;\nint b;\n"
    gone = patched(tree, "".join(difflib.unified_diff(OLD.splitlines(True), [], f"a/{FILE}", "/dev/null")))
    assert not gone.exists(FILE) and gone.files("kernel/sched/*.c") == []
    new = OLD.replace("LIMIT 3", "LIMIT 4")
    body = diff(OLD, new).replace(f"+++ b/{FILE}", "+++ b/kernel/sched/b.c")
    moved = patched(tree, f"diff --git a/{FILE} b/kernel/sched/b.c\nsimilarity index 90%\nrename from {FILE}\n"
                          f"rename to kernel/sched/b.c\n{body}")
    assert moved.text("kernel/sched/b.c") == new and not moved.exists(FILE)
    pure = patched(tree, f"diff --git a/{FILE} b/c.c\nsimilarity index 100%\nrename from {FILE}\nrename to c.c\n")
    assert pure.text("c.c") == OLD and not pure.exists(FILE)
    with pytest.raises(InputError, match="to be created, but exists"):
        patched(tree, added.replace("n.c", FILE))
    with pytest.raises(InputError, match="is not in"):
        patched(tree, diff(OLD, new, "kernel/sched/none.c"))


@pytest.mark.parametrize(("text", "message"), [
    ("", "not a patch"),
    ("just words\n", "not a patch"),
    ("int f(void)\n{\n\treturn 0;\n}\n", "not a patch"),
    (diff(OLD, OLD.replace("LIMIT 3", "LIMIT 4"))[:-60], "truncated"),
    (f"--- a/{FILE}\n+++ b/{FILE}\n", "truncated"),
    (f"--- a/{FILE}\n+++ b/{FILE}\n@@ -1,x +1 @@\n-a\n+b\n", "patch"),
    ("diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 3\nKc\n", "binary patch"),
    ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "binary patch"),
    ("--- a/../../etc/passwd\n+++ b/../../etc/passwd\n@@ -1 +1 @@\n-a\n+b\n", "not a file inside"),
    ("--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n", "not a file inside"),
    ("x\0y", "binary"),
    ("diff --cc a.c\n--- a/a.c\n+++ b/a.c\n@@@ -1,1 -1,1 +1,1 @@@\n--a\n++b\n", "combined"),
    ("x" * (9 << 20), "larger than 8 MiB"),
])
def test_what_is_no_patch_is_one_line(text: str, message: str):
    with pytest.raises(InputError, match=message) as caught:
        parse_patches(text, "x.patch")
    assert "\n" not in str(caught.value) and str(caught.value).startswith("x.patch: ")


def test_files(tmp_path: Path):
    with pytest.raises(InputError, match="cannot be read"):
        read_patches([tmp_path / "none.patch"])
    with pytest.raises(InputError, match="cannot be read"):
        read_patches([tmp_path])
    (tmp_path / "a.patch").write_text(diff(OLD, OLD + "int c;\n"))
    assert [p.files for p in read_patches([tmp_path / "a.patch"] * 2)] == [(FILE,)] * 2


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_a_patch_or_one_line(data: bytes):
    text = (b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n" + data).decode("utf-8", "surrogateescape")
    try:
        parse_patches(text)
    except InputError as error:
        assert "\n" not in str(error)


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "}\n"]), max_size=25)


@settings(max_examples=80, deadline=None)
@given(old=LINES, new=LINES, context=st.integers(0, 3))
def test_any_diff_applies(old: list[str], new: list[str], context: int, tmp_path_factory: pytest.TempPathFactory):
    if old == new or not old or not new:
        return
    folder = tmp_path_factory.mktemp("t")
    (folder / "f").write_text("".join(old))
    assert patched(Tree(folder), diff("".join(old), "".join(new), "f", context)).text("f") == "".join(new)


def test_same_as_git_apply(make_tree: MakeTree):
    need("git")
    new = OLD.replace("b->size", "b->size + 1").replace("x + LIMIT", "x - LIMIT")
    tree = make_tree("/* a line more */\n" + OLD)
    text = diff(OLD, new)
    ours = patched(tree, text).text(FILE)
    subprocess.run(["git", "apply", "-"], input=text.encode(), cwd=tree.path, check=True)
    assert ours == (tree.path / FILE).read_text()


# ------------------------------------------------------------------------------------------------- what is touched
def touched(make_tree: MakeTree, new: str, old: str = OLD):
    tree = make_tree(old)
    return touched_functions(tree, tree.with_files({FILE: new}), FILE)


def test_touched_code_and_comments(make_tree: MakeTree):
    found = touched(make_tree, OLD.replace("x + LIMIT", "x  + LIMIT").replace("b->size;", "b->size + 1;"))
    assert found.changed == {"second"} and found.comment_only == {"first"} and not found.outside_changed
    found = touched(make_tree, OLD.replace("a remark", "another"))
    assert found.comment_only == {"first"} and found.nothing
    assert touched(make_tree, OLD).comment_only == frozenset()


def test_touched_outside(make_tree: MakeTree):
    assert touched(make_tree, OLD.replace("LIMIT 3", "LIMIT 4")).outside == {"LIMIT"}
    assert touched(make_tree, OLD.replace("int size", "long size")).outside == {"struct box"}
    assert touched(make_tree, "#include <x.h>\n" + OLD).outside == {"#include <x.h>"}
    assert touched(make_tree, OLD + "int g = 3;\nint third(int x);\n").outside == {"g", "third"}
    moved = touched(make_tree, "\n\n" + OLD)
    assert moved.nothing and not moved.comment_only


def test_touched_new_removed_and_dead_functions(make_tree: MakeTree):
    assert touched(make_tree, OLD.replace("first", "fresh")).changed == {"first", "fresh"}
    dead = "#ifdef CONFIG_NEVER\nint third(int x)\n{\n\treturn %d;\n}\n#endif\n"
    assert touched(make_tree, OLD + dead % 1, OLD + dead % 2).nothing
    inside = OLD.replace("\treturn x", "#ifdef CONFIG_NEVER\n\tx = %d;\n#endif\n\treturn x")
    assert touched(make_tree, inside.replace("%d", "1"), inside.replace("%d", "2")).comment_only == {"first"}


def test_touched_file_that_appears(make_tree: MakeTree):
    tree = make_tree(OLD)
    found = touched_functions(tree, tree.with_files({"n.c": "int f(void) { return 1; }\n"}), "n.c")
    assert found.changed == {"f"}
