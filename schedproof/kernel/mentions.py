# SPDX-License-Identifier: GPL-2.0-only
"""What a function may come to by what its text mentions, for functions that cannot be read and run.

Only words are looked at, so more is taken to be reached than really is: what is not found here cannot be called by
name. Calls through pointers are not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from schedproof.kernel.config import Config
from schedproof.kernel.source import Unit, sources
from schedproof.kernel.tree import Tree

_WORD = re.compile(r"[A-Za-z_]\w*")

Bodies = tuple[tuple[str, frozenset[str]], ...]


@lru_cache(maxsize=4096)
def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(_WORD.findall(text))


@lru_cache(maxsize=4096)
def bodies(unit: Unit) -> Bodies:
    """(name, words) of each function and each macro of a file."""
    found = [(p.name, words(p.text)) for p in unit.pieces if p.kind == "function"]
    found += [(name, words(macro.body)) for _, name, macro in unit.done.events if macro is not None]
    return tuple(found)


def reached(changed: Iterable[str], tree: Tree, files: Iterable[str], config: Config,
            ends: frozenset[str] = frozenset()) -> Mapping[str, frozenset[str]]:
    """Each function and macro of some files that mentions a changed name, directly or through others: name -> which.

    Names in ``ends`` are found, but not looked through.
    """
    known = sources(tree, config)
    parts = [(words(tree.text(f)), bodies(known.unit(f))) for f in files if tree.exists(f)]
    roots: dict[str, frozenset[str]] = {n: frozenset({n}) for n in changed}
    found: dict[str, frozenset[str]] = {}
    todo = frozenset(roots)
    while todo:
        more: set[str] = set()
        for there, inner in parts:
            if todo.isdisjoint(there):
                continue
            for name, mentioned in inner:
                here = todo & mentioned - {name}
                if not here:
                    continue
                old = found.get(name, frozenset())
                found[name] = old.union(*(roots[n] for n in here))
                if name not in ends and found[name] != old:
                    roots[name] = roots.get(name, frozenset()) | found[name]
                    more.add(name)
        todo = frozenset(more)
    return found
