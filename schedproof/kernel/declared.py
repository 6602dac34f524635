# SPDX-License-Identifier: GPL-2.0-only
"""The declared C type of a field, a parameter or a local, from the tree's own definitions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tree_sitter import Node

from schedproof.errors import NotExecutable
from schedproof.kernel import enums
from schedproof.kernel import parse as p
from schedproof.kernel.macros import SILENT, Expander
from schedproof.kernel.source import Sources, Where
from schedproof.lang.ctypes import BY_NAME, CType, pointer

_DROPPED = re.compile(r"\b(?:const|volatile|static|extern|inline|register|restrict|__inline|__inline__|__restrict"
                      r"|_Atomic|__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\))\b|__attribute__\s*\(\(.*?\)\)")
_MORE = {"__u64": "u64", "__s64": "s64", "__u32": "u32",
         "__s32": "s32", "__u16": "u16", "__u8": "u8", "uint64_t": "u64", "uint32_t": "u32", "int64_t": "s64",
         "int32_t": "s32", "int16_t": "s16", "int8_t": "s8", "uint8_t": "u8", "uint16_t": "u16",
         "__kernel_size_t": "size_t"}
_WORDS = re.compile(r"(?:(?:signed|unsigned|char|short|int|long)\s*)+")
PER_CPU = "per_cpu("              # how the path of a per-CPU variable begins: ``per_cpu(sd_llc_size)``
_TYPEDEFS = 16                   # a typedef of a typedef of …
U128 = CType("unsigned __int128", 128, False)
S128 = CType("__int128", 128, True)


@dataclass(frozen=True)
class Embedded:
    """A struct or union that lies inside another. ``body`` is its text when it has no name of its own."""

    name: str
    body: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class Odd:
    """A type that no value of the model has: an array, a pointer to a number, a function."""

    text: str


Type = CType | Embedded | Odd | None           # None: void


def _in_order(words: str) -> str:
    """C's own integer types in one spelling, whatever the order of the words: ``long unsigned int``, ``signed``."""
    given = words.split()
    if not _WORDS.fullmatch(words) or given == ["signed", "char"]:
        return words
    sign = ["unsigned"] if "unsigned" in given else []
    size = [w for w in given if w in ("char", "short", "long")] or ["int"]
    if size == ["char"] and "signed" in given:
        return "signed char"
    return " ".join(sign + size)


class Types:
    """Resolves types as one file sees them."""

    def __init__(self, sources: Sources, where: Where):
        self.sources, self.where, self.file = sources, where, where.file
        self._fields: dict[tuple[str, str], Type | str] = {}
        self._firsts: dict[str, tuple[str, str] | None] = {}
        self.unions: dict[str, Any] = {}               # what schedproof.kernel.layout has found out of each struct

    def named(self, words: str, depth: int = 0) -> Type:
        """The type of specifiers such as ``const struct cfs_rq`` or ``u64`` (typedefs of the tree are followed)."""
        words = " ".join(w for w in _DROPPED.sub(" ", words).split() if w not in SILENT)
        words = _MORE.get(words, _in_order(words))
        if words == "void":
            return None
        if words == "char" and self.sources.unsigned_char:
            return BY_NAME["u8"]
        if words in BY_NAME:
            return BY_NAME[words]
        if words in ("unsigned __int128", "u128", "__uint128_t"):
            return U128
        if words in ("__int128", "s128", "__int128_t"):
            return S128
        if re.fullmatch(r"(struct|union) \w+", words):
            return Embedded(words)
        if re.fullmatch(r"enum \w+", words):
            return enums.enumeration(self.sources, words.split()[1], self.where) or Odd(f"{words}, of unknown values")
        if re.fullmatch(r"\w+", words) and depth < _TYPEDEFS:
            below = self.sources.typedef(words, self.where)
            if below is not None:
                stars = below.count("*")
                inner = self.named(below.replace("*", " "), depth + 1)
                return self.pointed(inner, stars, below)
        return Odd(words)

    @staticmethod
    def pointed(inner: Type, stars: int, shown: str) -> Type:
        """The type of ``stars`` pointers to a type."""
        if not stars:
            return inner
        if stars == 1 and isinstance(inner, Embedded) and inner.name:
            return pointer(inner.name)
        if stars == 2 and isinstance(inner, Embedded) and inner.name:
            return pointer(f"{inner.name} *")
        if stars == 1 and isinstance(inner, CType) and not inner.struct:
            return CType(f"{inner.name} *", 64, False, inner.name)
        return Odd(f"{shown} {'*' * stars}")

    def of(self, specifiers: str, declarator: Node | None, bits: str = "") -> tuple[str, Type]:
        """(name, type) of a declarator such as ``*se`` with the specifiers in front of it."""
        stars, node, odd = 0, declarator, ""
        while node is not None and node.type not in ("identifier", "field_identifier", "type_identifier"):
            if node.type in ("pointer_declarator", "abstract_pointer_declarator"):
                stars += 1
            elif "array" in node.type or "function" in node.type:
                odd = node.type.split("_")[-2] if "_" in node.type else node.type
            following = node.child_by_field_name("declarator")
            if following is None and p.children(node):
                following = next((c for c in p.children(node)
                                  if "declarator" in c.type or "identifier" in c.type), None)
            node = following
        name = p.text(node) if node is not None else ""
        if odd:
            return name, Odd(f"{specifiers} {odd}")
        found = self.pointed(self.named(specifiers), stars, specifiers)
        if bits and isinstance(found, CType):
            width = int(bits, 0) if re.fullmatch(r"[1-9][0-9]{0,2}|0x[0-9a-fA-F]{1,3}", bits) else 0
            if not 0 < width <= found.bits:
                return name, Odd(f"{specifiers}: {bits}")
            if found.name != "bool":
                found = CType(f"{found.name}:{width}", width, found.signed)
        return name, found

    def variable(self, name: str) -> Type:
        """The declared type of a global variable. Raises NotExecutable when the tree declares none."""
        piece = self.sources.variable(name, self.where)
        if piece is not None:
            inside = Where(piece.file, self.where.root)
            expander = Expander(piece.file, lambda word, at: self.sources.macro(word, inside, at), {name})
            for node in p.walk(p.parse(expander.expand(piece.text, piece.line))):
                kind = node.child_by_field_name("type") if node.type == "declaration" else None
                for declarator in node.children_by_field_name("declarator") if kind is not None else ():
                    inner = declarator.child_by_field_name("declarator")
                    shape = inner if declarator.type == "init_declarator" else declarator
                    found, ctype = self.of(p.text(kind), shape) if kind is not None else ("", None)
                    if found == name:
                        return ctype
        raise NotExecutable(self.file, 0, f"global variable {name}, which the tree does not declare")

    def per_cpu(self, path: str) -> Type:
        """The declared type of a per-CPU variable, ``per_cpu(x)``, or of a member of one, ``per_cpu(x).member``.

        Raises NotExecutable when the tree declares no such variable.
        """
        name, _, below = path.removeprefix(PER_CPU).partition(")")
        found = self._per_cpu(name)
        if found is None:
            raise NotExecutable(self.file, 0, f"per-CPU variable {name}, which the tree does not declare")
        kind = self.pointed(self.named(found.replace("*", " ")), found.count("*"), found)
        if not below:
            return kind
        if not isinstance(kind, Embedded):
            raise NotExecutable(self.file, 0, f"member {below[1:]} of the per-CPU variable {name}")
        return self.field(kind.name, below[1:])

    def _per_cpu(self, name: str) -> str | None:
        """The type text with which a per-CPU variable is declared or defined nearest to the file, or None."""
        pattern = re.compile(rf"\bDE(?:CLARE|FINE)_PER_CPU\w*\s*\(([^;()]*),\s*{re.escape(name)}\s*\)")
        for other in self.sources.seen(self.where):
            if name in self.sources.tree.text(other):
                match = pattern.search(self.sources.preprocessed(other).text)
                if match:
                    return " ".join(match[1].split())
        return None

    # ---------------------------------------------------------------------------------------------- fields
    def field(self, struct: str, path: str) -> Type:
        """The declared type of a field path of a struct, nested and anonymous members followed.

        Raises NotExecutable when the tree has no such struct or field.
        """
        key = (struct, path)
        if key not in self._fields:
            try:
                self._fields[key] = self._path(struct, path)
            except NotExecutable as error:
                self._fields[key] = f"{error.file}\0{error.line}\0{error.construct}"
        found = self._fields[key]
        if isinstance(found, str):
            file, line, construct = found.split("\0")
            raise NotExecutable(file, int(line), construct)
        return found

    def first_member(self, struct: str) -> tuple[str, str] | None:
        """(name, struct) of a struct's first member when that is a named struct; a pointer to one is one to both."""
        if struct not in self._firsts:
            try:
                name, kind = next(iter(self.members(Embedded(struct)).items()), ("", None))
            except NotExecutable:
                name, kind = "", None
            self._firsts[struct] = (name, kind.name) if isinstance(kind, Embedded) and kind.name else None
        return self._firsts[struct]

    def separate(self, struct: Embedded) -> dict[str, Type]:
        """The members of a struct, none of which shares its place with another one."""
        (file, line), _, body = self.definition(struct)
        if re.search(r"\bunion\b", body):
            raise NotExecutable(file, line, f"{struct.name or 'struct'} with a union in it")
        return self.members(struct)

    def _path(self, struct: str, path: str) -> Type:
        here: Type = Embedded(struct)
        for part in path.split("."):
            if not isinstance(here, Embedded):
                raise NotExecutable(self.file, 0, f"field {path} of {struct}: {part} of something that is no struct")
            found = self.members(here).get(part, "")
            if isinstance(found, str):
                raise NotExecutable(self.file, 0, f"field {path} of {struct}, which the tree does not declare")
            here = found
        return here

    def definition(self, struct: Embedded) -> tuple[tuple[str, int], str, str]:
        """((file, line), text as it stands, text with its macros expanded) of a struct's definition."""
        if struct.body:
            return (struct.file, struct.line), struct.body, struct.body
        found = self.sources.struct(struct.name, self.where)
        if found is None:
            raise NotExecutable(self.file, 0, f"{struct.name}, which the tree does not define")
        file, line, body = found
        inside = Where(file, self.where.root)
        expander = Expander(file, lambda name, at: self.sources.macro(name, inside, at), ())
        return (file, line), body, expander.expand(body, line)

    def members(self, struct: Embedded) -> dict[str, Type]:
        """The members of a struct and of its anonymous parts. Raises NotExecutable without a definition."""
        key = (struct, self.where)
        if key not in self.sources.members:
            self.sources.members[key] = self._members(struct)
        found: dict[str, Type] = self.sources.members[key]
        return found

    def _members(self, struct: Embedded) -> dict[str, Type]:
        (file, line), _, body = self.definition(struct)
        root = p.parse(body + ";")
        members: dict[str, Type] = {}
        for node in root.named_children:
            for inner in p.children(node) if node.type != "field_declaration_list" else [node]:
                if inner.type == "field_declaration_list":
                    self._collect(inner, file, line, members)
        for node in p.walk(root) if not members else ():
            if node.type == "field_declaration_list":
                self._collect(node, file, line, members)
                break
        return members

    def _collect(self, fields: Node, file: str, line: int, members: dict[str, Type]) -> None:
        for node in fields.named_children:
            if node.type == "ERROR":
                self._collect(node, file, line, members)
                continue
            if node.type != "field_declaration":
                continue
            kind = node.child_by_field_name("type")
            if kind is None:
                continue
            body = kind.child_by_field_name("body") if kind.type in ("struct_specifier", "union_specifier") else None
            declarators = node.children_by_field_name("declarator")
            if body is not None and not declarators:
                self._collect(body, file, line, members)              # an anonymous member: its fields are ours
                continue
            bits = _widths(node, [d.id for d in declarators])
            for declarator in declarators:
                if body is not None:
                    name, shape = self.of("struct unnamed", declarator)
                    inline: Type = Embedded("", p.text(kind), file, line + kind.start_point.row)
                    members[name] = inline if isinstance(shape, Embedded) else Odd("pointer to an unnamed struct")
                else:
                    name, found = self.of(p.text(kind), declarator, bits.get(declarator.id, ""))
                    members[name] = found


def _widths(node: Node, declarators: list[int]) -> dict[int, str]:
    """The width that stands behind each declarator of a member, by the declarator's identity."""
    found: dict[int, str] = {}
    last = 0
    for child in node.children:
        if child.id in declarators:
            last = child.id
        elif child.type == "bitfield_clause":
            found[last] = p.text(child).lstrip(": \t\n")
    return found
