# SPDX-License-Identifier: GPL-2.0-only
"""Commits of a git repository as a series of patches: ``check REV`` and ``check A..B``.

git is asked for objects only: the work tree is neither read nor changed, and no filter or external diff that a
repository may configure is run.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from schedproof.errors import InputError
from schedproof.kernel.patch import Patch, parse_patches
from schedproof.kernel.tree import Tree, git

MOST = 500                 # commits of one range


def commits(path: Path, spec: str) -> tuple[Tree, list[Patch]]:
    """The tree before the first commit that ``spec`` names, and the commits as patches in order.

    Raises InputError when ``spec`` is no commit and no range of the repository at ``path``, for a root commit, a
    merge, and a range without commits.
    """
    if spec.startswith("-") or not re.fullmatch(r"[^\s\0]{1,250}", spec):
        raise InputError(f"{spec}: neither a file nor a commit")
    if ".." in spec:
        found = git(path, "rev-list", "--reverse", "--topo-order", "--no-merges", f"--max-count={MOST + 1}",
                    "--end-of-options", spec, "--").decode().split()
        if not found:
            raise InputError(f"{spec}: no commits in this range")
        if len(found) > MOST:
            raise InputError(f"{spec}: more than {MOST} commits: name a shorter range")
        base = git(path, "rev-parse", "--verify", "--quiet", "--end-of-options",
                   f"{spec.partition('..')[0] or 'HEAD'}^{{commit}}").decode().strip()
    else:
        try:
            commit = git(path, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{spec}^{{commit}}")
        except InputError:
            raise InputError(f"{spec}: neither a file nor a commit of {path}") from None
        found, base = [commit.decode().strip()], _parent(path, commit.decode().strip())
    return Tree(path, base), [_patch(path, commit) for commit in found]


def _parent(path: Path, commit: str) -> str:
    parents = git(path, "rev-list", "--parents", "--max-count=1", commit, "--").decode().split()[1:]
    if len(parents) != 1:
        what = "a merge: name the commits that it merges" if parents else "a root commit: there is nothing before it"
        raise InputError(f"{commit[:12]} is {what}")
    return parents[0]


def _patch(path: Path, commit: str) -> Patch:
    text = git(path, "diff-tree", "-p", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--full-index",
               _parent(path, commit), commit, "--").decode("utf-8", "surrogateescape")
    subject = git(path, "log", "--max-count=1", "--format=%s", commit, "--").decode("utf-8", "replace").strip()
    if not text:
        return Patch(commit[:12], subject, ())
    return replace(parse_patches(text, commit[:12])[0], name=commit[:12], subject=subject)
