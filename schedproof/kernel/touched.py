# SPDX-License-Identifier: GPL-2.0-only
"""Which functions of a file a patch touches, and whether it changes anything around them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from schedproof.kernel.config import DEFAULT, Config
from schedproof.kernel.macros import tokens
from schedproof.kernel.source import Piece, Unit, sources
from schedproof.kernel.tree import Tree


@dataclass(frozen=True)
class Touched:
    """What differs between two versions of a file under a configuration.

    ``changed``: functions whose code differs, new and removed ones included. ``comment_only``: functions of which
    only comments, blanks or branches that are off differ. ``outside``: the names of macros, structs, enums,
    declarations, variables and includes that differ.
    """

    file: str
    changed: frozenset[str]
    comment_only: frozenset[str]
    outside: frozenset[str]

    @property
    def outside_changed(self) -> bool:
        """Whether anything outside of functions differs."""
        return bool(self.outside)

    @property
    def nothing(self) -> bool:
        """Whether the code is the same."""
        return not self.changed and not self.outside


def _code(text: str) -> tuple[str, ...]:
    return tuple(t for t in tokens(text) if not t.isspace())


def _functions(unit: Unit | None, text: str) -> tuple[dict[str, list[tuple[str, ...]]], dict[str, list[str]]]:
    """name -> tokens of its definitions, and name -> their text as it stands in the file."""
    code: dict[str, list[tuple[str, ...]]] = {}
    raw: dict[str, list[str]] = {}
    lines = text.split("\n")
    for name, found in (unit.functions if unit is not None else {}).items():
        for piece in found:
            code.setdefault(name, []).append(_code(piece.text))
            raw.setdefault(name, []).append("\n".join(lines[piece.line - 1:piece.last]))
    return code, raw


def _label(piece: Piece) -> str:
    """What to call a piece that is no function."""
    if piece.name:
        return piece.name
    text = " ".join(piece.text.split("=")[0].split())
    found = re.match(r"(?:typedef )?((?:struct|union|enum) \w+) ?\{", text)
    if found:
        return found[1]
    words = re.findall(r"[A-Za-z_]\w*", re.sub(r"\{.*\}", "", text))
    return words[-1] if words else text[:40]


def _outside(unit: Unit | None) -> Counter[tuple[str, tuple[str, ...]]]:
    """Everything of a file that is in no function: (name, tokens)."""
    found: Counter[tuple[str, tuple[str, ...]]] = Counter()
    if unit is None:
        return found
    for piece in unit.pieces:
        if piece.kind != "function":
            found[_label(piece), _code(piece.text)] += 1
    for _, name, macro in unit.done.events:
        body = ("#undef",) if macro is None else (*(macro.params or ()), "=>", *_code(macro.body))
        found[name, body] += 1
    for included in unit.done.includes:
        found[f"#include {included}", ()] += 1
    return found


def touched_functions(before: Tree, after: Tree, file: str, config: Config = DEFAULT) -> Touched:
    """Compare a file of two trees (a file that is absent has no functions). Raises InputError for a binary one."""
    units = [sources(tree, config).unit(file) if tree.exists(file) else None for tree in (before, after)]
    texts = [tree.text(file).replace("\r\n", "\n") if tree.exists(file) else "" for tree in (before, after)]
    (old_code, old_raw), (new_code, new_raw) = (_functions(u, t) for u, t in zip(units, texts, strict=True))
    names = set(old_code) | set(new_code)
    changed = {n for n in names if old_code.get(n) != new_code.get(n)}
    comments = {n for n in names - changed if old_raw[n] != new_raw[n]}
    one, other = _outside(units[0]), _outside(units[1])
    outside = {name for name, _ in (one - other) + (other - one)}
    return Touched(file, frozenset(changed), frozenset(comments), frozenset(outside))
