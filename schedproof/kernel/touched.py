# SPDX-License-Identifier: GPL-2.0-only
"""Which functions of a file a patch touches, and whether it changes anything around them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from schedproof.kernel.config import DEFAULT, Config
from schedproof.kernel.macros import SILENT, SILENT_CALLS, tokens
from schedproof.kernel.pieces import Piece
from schedproof.kernel.source import Unit, sources
from schedproof.kernel.tree import Tree
from schedproof.lang.ctypes import BY_NAME


@dataclass(frozen=True)
class Touched:
    """What differs between two versions of a file under a configuration.

    ``changed``: functions whose code differs, new and removed ones included. ``comment_only``: functions of which
    only comments, blanks or branches that are off differ. ``outside``: the names of macros, structs, enums,
    declarations, variables and includes that differ. ``names``: the words by which code elsewhere would come to what
    differs: functions, macros, members of structs, enumerators, variables.
    """

    file: str
    changed: frozenset[str]
    comment_only: frozenset[str]
    outside: frozenset[str]
    names: frozenset[str] = frozenset()

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


Outside = Counter[tuple[str, tuple[str, ...]]]


def _outside(unit: Unit | None) -> Outside:
    """Everything of a file that is in no function: (name, tokens)."""
    found: Outside = Counter()
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
    for line in unit.done.text.split("\n")[unit.pieces[-1].last if unit.pieces else 0:]:
        if line.strip():                               # behind the last piece, such as SCHED_FEAT(NAME, true)
            found[_label(Piece("", unit.file, 0, line, "other")), _code(line)] += 1
    return found


# Words of C that name nothing.
_PLAIN = frozenset(BY_NAME) | SILENT | SILENT_CALLS | {
    "auto", "const", "default", "do", "double", "else", "enum", "extern", "false", "float", "for", "goto", "if",
    "inline", "register", "return", "signed", "sizeof", "static", "struct", "switch", "true", "typedef", "union",
    "void", "volatile", "while", "SCHED_FEAT", "DEFINE_STATIC_KEY_TRUE", "DEFINE_STATIC_KEY_FALSE", "DEFINE_PER_CPU"}


def _words(code: Sequence[str]) -> frozenset[str]:
    """The names in a piece of code, without those of types as far as they can be told."""
    return frozenset(word for before, word in zip(("", *code), code, strict=False)
                     if re.fullmatch(r"[A-Za-z_]\w*", word) and word not in _PLAIN
                     and before not in ("struct", "union", "enum"))


def _items(code: Sequence[str], ends: str) -> list[tuple[str, ...]]:
    """The code between tokens that end something."""
    found: list[list[str]] = [[]]
    for token in code:
        if token in ends:
            found.append([])
        else:
            found[-1].append(token)
    return [tuple(x) for x in found if x]


def _names(label: str, old: Sequence[tuple[str, ...]], new: Sequence[tuple[str, ...]]) -> frozenset[str]:
    """The words by which code would come to what differs between the versions of something outside of functions."""
    if label.startswith(("#include", "EXPORT_SYMBOL", "MODULE_")):
        return frozenset()
    flat = [[token for code in side for token in code] for side in (old, new)]
    if any("=>" in code or code == ("#undef",) for code in (*old, *new)):              # a macro
        return frozenset({label})
    if any("{" in side and "=" not in side[:side.index("{")] for side in flat):
        if any("enum" in side[:side.index("{")] for side in flat if "{" in side):
            one, other = (_items(side, "{},;") for side in flat)
            same = 0
            while same < min(len(one), len(other)) and one[same] == other[same]:
                same += 1                              # behind the first that differs, the numbers move
            return _words([t for item in (*one[same:], *other[same:]) for t in item])
        one, other = (_items(side, "{};") for side in flat)
        differing = (Counter(one) - Counter(other)) + (Counter(other) - Counter(one))
        return _words([t for item in differing for t in item])
    heads = [t for side in flat for t in (side[:side.index("=")] if "=" in side else side)]
    if re.fullmatch(r"[A-Za-z_]\w*", label) and not label.isupper() and "(" in heads:
        return frozenset({label})                      # a declaration of a function
    return _words(heads)


def touched_functions(before: Tree, after: Tree, file: str, config: Config = DEFAULT) -> Touched:
    """Compare a file of two trees (a file that is absent has no functions). Raises InputError for a binary one."""
    units = [sources(tree, config).unit(file) if tree.exists(file) else None for tree in (before, after)]
    texts = [tree.text(file).replace("\r\n", "\n") if tree.exists(file) else "" for tree in (before, after)]
    (old_code, old_raw), (new_code, new_raw) = (_functions(u, t) for u, t in zip(units, texts, strict=True))
    names = set(old_code) | set(new_code)
    changed = {n for n in names if old_code.get(n) != new_code.get(n)}
    comments = {n for n in names - changed if old_raw[n] != new_raw[n]}
    gone, come = _gone_and_come(_outside(units[0]), _outside(units[1]))
    return Touched(file, frozenset(changed), frozenset(comments), frozenset(name for name, _ in gone + come),
                   _all_names(gone, come) | changed)


def _gone_and_come(one: Outside, other: Outside) -> tuple[Outside, Outside]:
    return one - other, other - one


def _all_names(gone: Outside, come: Outside) -> frozenset[str]:
    return frozenset().union(*(
        _names(label, *(sorted(code for name, code in side if name == label) for side in (gone, come)))
        for label in {name for name, _ in gone + come}))


def names_of(before: Tree, after: Tree, touched: Iterable[Touched], config: Config = DEFAULT) -> frozenset[str]:
    """The words by which code would come to what differs in several files; what only moves between them does not."""
    sides: tuple[Outside, Outside] = (Counter(), Counter())
    changed: frozenset[str] = frozenset()
    for one in touched:
        changed |= one.changed
        for tree, side in zip((before, after), sides, strict=True):
            if tree.exists(one.file):
                side.update(_outside(sources(tree, config).unit(one.file)))
    return _all_names(*_gone_and_come(*sides)) | changed
