# SPDX-License-Identifier: GPL-2.0-only
"""Which commit a mailed patch is, and the tree that it stands on: for checks that are given nothing but the mail.

The mail of a commit names no commit, but its ``index`` lines name the blobs of each file before and after. In the
repository that it was made in, these tell the commit; elsewhere the blobs before may still be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from schedproof.errors import InputError
from schedproof.kernel.patch import Patch
from schedproof.kernel.tree import Tree, git

NEWEST = 1000              # commits, from HEAD on, among which a mailed one is looked for


def top_level(path: Path) -> Path:
    """The top folder of the git repository that ``path`` lies in. Raises InputError where there is none."""
    try:
        found = git(path, "rev-parse", "--show-toplevel").decode("utf-8", "surrogateescape").strip()
    except InputError:
        raise InputError(f"{path}: not inside a git work tree") from None
    return Path(found)


def standing(path: Path, patches: Sequence[Patch]) -> tuple[Tree, list[str]]:
    """The tree before a mailed series, and the commit that each patch is ("" where there is none), in order.

    It is the parent of the commit that the first patch is. Where no commit is the patch, it is ``HEAD`` with the
    files that the series touches as its first mention of each names them. Raises InputError for no repository.
    """
    known = list(_commits(path))
    found = [_commit(known, patch) for patch in patches]
    if found and found[0]:
        parent = git(path, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{found[0]}^").decode().strip()
        return Tree(path, parent), found
    files: dict[str, str | None] = {}
    for change in (c for p in patches for c in p.changes):
        if change.source is not None and change.blobs and change.source not in files:
            text = _blob(path, change.blobs[0])
            if text is not None:
                files[change.source] = text
        elif change.source is None:
            files.setdefault(change.file, None)
    tree = Tree(path, "HEAD")
    return (tree.with_files(files, tree.label) if files else tree), found


Touch = dict[str, tuple[str, str]]                 # file -> ids of its blobs before and after


def _commits(path: Path) -> Iterator[tuple[str, Touch]]:
    """The newest commits with what they touch. Merges are left out."""
    try:
        text = git(path, "log", "HEAD", f"--max-count={NEWEST}", "--no-merges", "--raw", "--no-abbrev", "--no-renames",
                   "-z", "--format=%x01%H", "--").decode("utf-8", "surrogateescape")
    except InputError:
        return
    for part in text.split("\x01")[1:]:
        commit, *words = [w for w in part.replace("\n", "\0").split("\0") if w]
        touched: Touch = {}
        for head, file in zip(words[::2], words[1::2], strict=False):
            ids = head.split()
            if len(ids) == 5 and head.startswith(":"):
                touched[file] = ids[2], ids[3]
        yield commit, touched


def _commit(known: Sequence[tuple[str, Touch]], patch: Patch) -> str:
    """The newest commit that makes the same blobs of the same blobs; "" where none does."""
    if not patch.changes or any(c.blobs is None and c.hunks for c in patch.changes):
        return ""
    wanted = {c.file: c.blobs for c in patch.changes if c.blobs and c.source in (c.target, None)}
    for commit, touched in known:
        if wanted and all(file in touched and all(map(str.startswith, touched[file], blobs))
                          for file, blobs in wanted.items()) and len(touched) == len(patch.files):
            return commit
    return ""


def _blob(path: Path, name: str) -> str | None:
    try:
        return git(path, "cat-file", "blob", name).decode("utf-8", "surrogateescape")
    except InputError:
        return None
