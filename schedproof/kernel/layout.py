# SPDX-License-Identifier: GPL-2.0-only
"""Where the members of unions lie: which of them share bytes, and which a wider one is made of.

x86-64: little endian, every number aligned to its size, pointers of eight bytes. What has another shape (an array, a
bit-field, anything in a struct with alignment attributes) has no known place, and is taken to share bytes with all
that is in the same union.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from schedproof.errors import NotExecutable
from schedproof.kernel import parse as p
from schedproof.kernel.declared import Embedded, Types
from schedproof.lang.ctypes import CType

_ALIGNED = re.compile(r"packed|aligned|__attribute__")
_DEEPEST = 8                     # structs in structs in a union


@dataclass(frozen=True)
class Spot:
    """A member's place in the union number ``union`` of its struct, in bits; ``bits`` None: it is not known."""

    union: int
    low: int
    bits: int | None

    @property
    def end(self) -> int:
        return self.low + (self.bits or 0)

    def shares(self, other: Spot) -> bool:
        """Whether two members may have bytes in common."""
        if self.union != other.union:
            return False
        return self.bits is None or other.bits is None or (self.low < other.end and other.low < self.end)


@dataclass
class _Shape:
    """A type's members as (path, first bit, bits), its size and its alignment in bits; None: not known."""

    members: list[tuple[str, int, int | None]]
    size: int | None
    align: int | None



def find(types: Types, struct: str, path: str) -> tuple[str, dict[str, Spot], Spot] | None:
    """The union that a member lies in: (path of the struct around it, that struct's members in unions, its spot).

    The path is empty where that is ``struct`` itself.

    None for a member that shares its bytes with no other.
    """
    table = members(types, struct)
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        spot = table.get(".".join(parts[:count]))
        if spot is not None:
            return "", table, spot if count == len(parts) else Spot(spot.union, spot.low, None)
    for count in range(1, len(parts)):
        head = ".".join(parts[:count])
        try:
            kind = types.field(struct, head)
        except NotExecutable:
            return None
        if isinstance(kind, Embedded) and kind.name:
            below = find(types, kind.name, ".".join(parts[count:]))
            return (f"{head}.{below[0]}".rstrip("."), below[1], below[2]) if below is not None else None
    return None


def members(types: Types, struct: str) -> dict[str, Spot]:
    """Path -> place of all members that lie in unions written out in a struct's definition."""
    if struct not in types.unions:
        types.unions[struct] = dict(_spots(types, struct)) if struct else {}
    return types.unions[struct]


def _spots(types: Types, struct: str) -> Iterator[tuple[str, Spot]]:
    try:
        _, raw, body = types.definition(Embedded(struct))
    except NotExecutable:
        return
    if not re.search(r"\bunion\b", body):
        return
    root = p.parse(body + ";")
    fields = _fields_of(root)
    known = not _ALIGNED.search(raw)
    for number, (prefix, inner) in enumerate(_unions(types, struct, fields)):
        for path, low, bits in _shape(types, inner, True, prefix, 0).members:
            yield path, Spot(number, low, bits) if known else Spot(number, 0, None)
    if root.has_error:                                   # what could not be parsed may hide a union from the above
        for inner in (n for n in p.walk(root) if n.type == "union_specifier"):
            yield from ((name, Spot(0, 0, None)) for name in _names(inner))


def _unions(types: Types, struct: str, fields: Node | None) -> Iterator[tuple[str, Node]]:
    """(path in front of its members, members) of the outermost unions that are written out in a definition."""
    if fields is None or struct.startswith("union "):
        yield from [("", fields)] if fields is not None else []
        return
    todo = [("", fields)]
    while todo:
        prefix, here = todo.pop()
        for node, names in _lines(types, here):
            kind = node.child_by_field_name("type")
            inner = kind.child_by_field_name("body") if kind is not None else None
            if kind is None or inner is None:
                continue
            for name in names:
                below = f"{prefix}{name}." if name else prefix
                if kind.type == "union_specifier":
                    yield below, inner
                else:
                    todo.append((below, inner))


def _names(node: Node) -> list[str]:
    return [p.text(n) for n in p.walk(node) if n.type == "field_identifier"]


def _fields_of(root: Node) -> Node | None:
    return next((n for n in p.walk(root) if n.type == "field_declaration_list"), None)


def _lines(types: Types, fields: Node) -> Iterator[tuple[Node, list[str]]]:
    """The lines of a struct with the names that each declares; "" for a member without a name."""
    for node in fields.named_children:
        if node.type == "field_declaration":
            names = [types.of("int", d)[0] for d in node.children_by_field_name("declarator")]
            yield node, names or [""]


def _shape(types: Types, fields: Node, union: bool, prefix: str, depth: int) -> _Shape:
    """The members of a struct or union, from its first bit on."""
    found = _Shape([], 0, 8)
    cursor: int | None = 0
    for node in fields.named_children:
        if node.type not in ("field_declaration", "comment"):
            return _Shape([(prefix + name, 0, None) for name in _names(fields)], None, None)
    for node, names in _lines(types, fields):
        declarators: Sequence[Node | None] = node.children_by_field_name("declarator") or [None]
        for name, declarator in zip(names, declarators, strict=True):
            one = _member(types, node, declarator, prefix + name, depth)
            start = 0 if union else cursor
            if start is not None and one.align is not None:
                start += -start % one.align
            lost = start is None or one.align is None
            found.members += [(path, 0, None) if lost or bits is None else (path, (start or 0) + low, bits)
                              for path, low, bits in one.members]
            end = None if lost or one.size is None else (start or 0) + one.size
            cursor = end
            found.size = None if end is None or found.size is None else max(found.size, end)
            found.align = None if one.align is None or found.align is None else max(found.align, one.align)
    if found.size is not None and found.align is not None:
        found.size += -found.size % found.align
    return found


def _member(types: Types, node: Node, declarator: Node | None, path: str, depth: int) -> _Shape:
    """One member; a path that ends with a dot is that of a member without a name."""
    kind = node.child_by_field_name("type")
    if kind is None or depth > _DEEPEST:
        return _Shape([(path, 0, None)], None, None)
    body = kind.child_by_field_name("body")
    if any(c.type == "bitfield_clause" for c in p.children(node)) or (body is None and declarator is None):
        return _Shape([(path, 0, None)], None, None)
    if body is not None:
        if declarator is not None and declarator.type != "field_identifier":
            return _Shape([(path, 0, None)], None, None)              # an array of them, a pointer
        inner = _shape(types, body, kind.type == "union_specifier", f"{path}." if declarator is not None else path,
                       depth + 1)
        own = [(path, 0, inner.size)] if declarator is not None else []
        return _Shape([*own, *inner.members], inner.size, inner.align)
    _, ctype = types.of(p.text(kind), declarator)
    if isinstance(ctype, CType):
        bits = 8 if ctype.name == "bool" else ctype.bits
        return _Shape([(path, 0, bits)], bits, bits)
    if isinstance(ctype, Embedded) and ctype.name:
        try:
            _, raw, text = types.definition(ctype)
        except NotExecutable:
            return _Shape([(path, 0, None)], None, None)
        fields = _fields_of(p.parse(text + ";"))
        if fields is not None and not _ALIGNED.search(raw):
            inner = _shape(types, fields, ctype.name.startswith("union "), f"{path}.", depth + 1)
            return _Shape([(path, 0, inner.size), *inner.members], inner.size, inner.align)
    return _Shape([(path, 0, None)], None, None)
