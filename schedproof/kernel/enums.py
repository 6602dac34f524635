# SPDX-License-Identifier: GPL-2.0-only
"""The integer types behind enumerations, as the compiler chooses them by their enumerators' values."""

from __future__ import annotations

import re
from collections.abc import Iterable

from schedproof.kernel.config import Condition
from schedproof.kernel.macros import Expander
from schedproof.kernel.source import Sources, Where
from schedproof.lang.ctypes import INT, LONG, UINT, ULONG, CType

_DEEPEST = 64                    # an enumerator that rests on another one, that rests on …


def type_of(values: Iterable[int]) -> CType | None:
    """The type of an enumeration with these values: unsigned where none is negative; None where none is wide enough."""
    found = tuple(values)
    wanted = (INT, LONG) if min(found) < 0 else (UINT, ULONG)
    return next((t for t in wanted if all(t.low <= v <= t.high for v in found)), None)


def enumeration(sources: Sources, name: str, where: Where) -> CType | None:
    """The type of ``enum name``; None where its values cannot be told."""
    found = sources.struct(f"enum {name}", where)
    if found is None:
        return None
    file, _, text = found
    body = text.partition("{")[2].rpartition("}")[0]
    names = [m[0] for part in _items(body) if (m := re.match(r"\s*\w+", part))]
    return _common(sources, [n.strip() for n in names], Where(file, where.root))


def constant_type(sources: Sources, name: str, where: Where) -> CType | None:
    """The type of an enumerator that does not fit into an int: that of its enumeration."""
    found = sources.enumerator(name, where)
    if found is None:
        return None
    file, _ = found
    entries = sources.unit(file).enumerators
    root = name
    while entries[root][0]:
        root = entries[root][0]
    following = {previous: member for member, (previous, *_) in entries.items() if previous}
    names = [root]
    while names[-1] in following:
        names.append(following[names[-1]])
    return _common(sources, names, Where(file, where.root))


def _common(sources: Sources, names: list[str], where: Where) -> CType | None:
    values = [_value(sources, n, where, 0) for n in names]
    known = [v for v in values if v is not None]
    return type_of(known) if known and len(known) == len(values) else None


def _items(body: str) -> list[str]:
    """The text between the commas that stand in no brackets."""
    parts, depth = [""], 0
    for char in body:
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part for part in parts if part.strip()]


def _value(sources: Sources, name: str, where: Where, depth: int) -> int | None:
    """The value of an enumerator of the tree; None where its expression is not plain."""
    steps = 0
    while depth < _DEEPEST:
        found = sources.enumerator(name, where)
        if found is None:
            return None
        file, (previous, expression, _, line) = found
        where = Where(file, where.root)
        if expression:
            base = _plain(sources, expression, where, line, depth)
            return None if base is None else base + steps
        if not previous:
            return steps
        name, steps = previous, steps + 1
    return None


def _plain(sources: Sources, expression: str, where: Where, line: int, depth: int) -> int | None:
    text = Expander(where.file, lambda n, at: sources.macro(n, where, at), ()).expand(expression, line)
    if re.search(r"\d[uU]", text) and re.search(r"[-~]", text):      # such a value depends on its type's width
        return None
    condition = Condition(sources.config, lambda n: None, lambda n: _value(sources, n, where, depth + 1))
    return condition.evaluate(text)
