# SPDX-License-Identifier: GPL-2.0-only
"""Where a function of a model stands now, when it is no longer in the file that the model names."""

from __future__ import annotations

import re

from schedproof.errors import NotExecutable
from schedproof.kernel.pieces import Piece
from schedproof.kernel.source import Sources, Where
from schedproof.kernel.tree import SEARCHED, has_definition


def home(sources: Sources, name: str, file: str) -> str:
    """The file to look for a function in: the named one, or the only other of the tree that has it now.

    Raises NotExecutable when several have one. A name that no file has, or that the named file or one near it defines
    under other conditions, stays where it was.
    """
    tree = sources.tree
    pattern = re.compile(rf"\b{re.escape(name)}\s*\(")
    if tree.exists(file) and (sources.live(name, Where(file, file)) or any(
            name in tree.text(f) and has_definition(tree.text(f), pattern) for f in sources.closure(file))):
        return file
    found: dict[str, Piece] = {}
    for glob in SEARCHED:
        files = tree.files(glob)
        tree.prefetch(files)
        for other in files:
            if tree.exists(other) and name in tree.text(other) and pattern.search(tree.text(other)):
                here = [p for p in sources.unit(other).functions.get(name, []) if not sources.is_default(p, name)]
                if here:
                    found[other] = here[0]
    if len(found) > 1:
        first, second, *_ = found.values()
        raise NotExecutable(second.file, second.line, f"{name}: is not in {file}, and a second definition is live, "
                            f"the first is {first.file}:{first.line}")
    return next(iter(found), file)
