# SPDX-License-Identifier: GPL-2.0-only
"""The declared C type of a field, a parameter or a local, from the tree's own definitions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from schedproof.errors import NotExecutable
from schedproof.kernel import parse as p
from schedproof.kernel.macros import SILENT, Expander
from schedproof.kernel.source import Sources, Where
from schedproof.lang.ctypes import BY_NAME, CType, pointer

_DROPPED = re.compile(r"\b(?:const|volatile|static|extern|inline|register|restrict|__inline|__inline__|__restrict"
                      r"|_Atomic|__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\))\b|__attribute__\s*\(\(.*?\)\)")
_MORE = {"long unsigned int": "unsigned long", "long unsigned": "unsigned long", "int unsigned": "unsigned int",
         "long long int": "long long", "unsigned long long int": "unsigned long long", "short int": "short",
         "unsigned short int": "unsigned short", "long long unsigned int": "unsigned long long", "signed": "int",
         "signed long": "long", "signed long long": "long long", "__u64": "u64", "__s64": "s64", "__u32": "u32",
         "__s32": "s32", "__u16": "u16", "__u8": "u8", "uint64_t": "u64", "uint32_t": "u32", "int64_t": "s64",
         "int32_t": "s32", "uint8_t": "u8", "uint16_t": "u16", "long signed int": "long", "__kernel_size_t": "size_t"}
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


class Types:
    """Resolves types as one file sees them."""

    def __init__(self, sources: Sources, where: Where):
        self.sources, self.where, self.file = sources, where, where.file
        self._fields: dict[tuple[str, str], Type | str] = {}
        self._firsts: dict[str, tuple[str, str] | None] = {}

    def named(self, words: str, depth: int = 0) -> Type:
        """The type of specifiers such as ``const struct cfs_rq`` or ``u64`` (typedefs of the tree are followed)."""
        words = " ".join(w for w in _DROPPED.sub(" ", words).split() if w not in SILENT)
        words = _MORE.get(words, words)
        if words == "void":
            return None
        if words in BY_NAME:
            return BY_NAME[words]
        if words in ("unsigned __int128", "u128", "__uint128_t"):
            return U128
        if words in ("__int128", "s128", "__int128_t"):
            return S128
        if re.fullmatch(r"(struct|union) \w+", words):
            return Embedded(words)
        if re.fullmatch(r"enum \w+", words):
            # gcc gives an enum without negative values unsigned int; only comparisons could tell, and those
            # promote its enumerators, which are ints, to it as well.
            return BY_NAME["unsigned int"]
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
                name, kind = next(iter(self._members(Embedded(struct)).items()), ("", None))
            except NotExecutable:
                name, kind = "", None
            self._firsts[struct] = (name, kind.name) if isinstance(kind, Embedded) and kind.name else None
        return self._firsts[struct]

    def _path(self, struct: str, path: str) -> Type:
        here: Type = Embedded(struct)
        for part in path.split("."):
            if not isinstance(here, Embedded):
                raise NotExecutable(self.file, 0, f"field {path} of {struct}: {part} of something that is no struct")
            found = self._members(here).get(part, "")
            if isinstance(found, str):
                raise NotExecutable(self.file, 0, f"field {path} of {struct}, which the tree does not declare")
            here = found
        return here

    def _members(self, struct: Embedded) -> dict[str, Type]:
        if struct.body:
            file, line, body = struct.file, struct.line, struct.body
        else:
            found = self.sources.struct(struct.name, self.where)
            if found is None:
                raise NotExecutable(self.file, 0, f"{struct.name}, which the tree does not define")
            file, line, body = found
            inside = Where(file, self.where.root)
            expander = Expander(file, lambda name, at: self.sources.macro(name, inside, at), ())
            body = expander.expand(body, line)
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
            bits = next((p.text(c).lstrip(": ") for c in p.children(node) if c.type == "bitfield_clause"), "")
            for declarator in declarators:
                if body is not None:
                    name, shape = self.of("struct unnamed", declarator)
                    inline: Type = Embedded("", p.text(kind), file, line + kind.start_point.row)
                    members[name] = inline if isinstance(shape, Embedded) else Odd("pointer to an unnamed struct")
                else:
                    name, found = self.of(p.text(kind), declarator, bits)
                    members[name] = found
