# SPDX-License-Identifier: GPL-2.0-only
"""A bisection under way: what a revision leaves out that its ends do not.

Where a function cannot be read, the release's method stands in for it, and the verdict is that of the method. A
function that no end can be read in is one that the bisection is not about. One that an end can be read in may hold
the fault: a revision without it can be neither good nor bad.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from schedproof.kernel.functions import read_function
from schedproof.kernel.prove import subject_of
from schedproof.kernel.tree import Tree, git


def ends(path: Path) -> tuple[str, ...]:
    """The newest bad and the oldest good revision that git has noted, whatever the two are called; none outside."""
    told = git(path, "for-each-ref", "--sort=committerdate", "--format=%(refname)", "refs/bisect/").decode().split()
    marks = [r for r in told if not r.startswith("refs/bisect/skip-")]
    good = [r for r in marks if re.search("-[0-9a-f]{40,64}$", r)]           # "good" or another term, and the commit
    return (*[r for r in marks if r not in good], *good[:1])


def left_out(path: Path, rev: str | None, model: Any, variant: str | None = None) -> tuple[str, ...]:
    """The kernel functions of a model that cannot be read at ``rev`` but can at an end of the bisection.

    Those that a revision does not have at all are not among them: functions come and go. Raises InputError for a
    tree that is none.
    """
    here = subject_of(model, Tree(path, rev), variant)
    unread = [r for r in here.reads.values() if r.status == "not_executable"]
    if not unread:
        return ()
    trees = [Tree(path, end) for end in ends(path)]
    files = model.kernel_functions()
    return tuple(r.function for r in unread
                 if any(read_function(t, r.function, files[r.function], model).status == "read" for t in trees))
