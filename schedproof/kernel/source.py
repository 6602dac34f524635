# SPDX-License-Identifier: GPL-2.0-only
"""Where a name is defined: in which piece of which file, and the files that a file includes.

Only braces, brackets and semicolons are looked at here, so that odd code elsewhere in a file does no harm; the piece
that is wanted is then parsed in full.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from schedproof.errors import InputError, NotExecutable
from schedproof.kernel.config import Config
from schedproof.kernel.pieces import TOKENS, Piece, pieces
from schedproof.kernel.preprocess import Macro, Preprocessed, Region, preprocess
from schedproof.kernel.tree import SEARCHED, Absent, Tree

# Looked at after the files that are really included.
LIKELY = ("kernel/sched/sched.h", "include/linux/sched.h", "include/linux/kvm_host.h",
          "arch/x86/include/asm/kvm_host.h", "include/linux/time64.h")


@dataclass(frozen=True)
class Where:
    """Where a name stands: in ``file``, which is compiled as a part of ``root`` (itself, or one that includes it)."""

    file: str
    root: str


class Unit:
    """One file under a configuration."""

    def __init__(self, done: Preprocessed):
        self.done, self.file = done, done.file
        self.pieces = pieces(done.file, done.text)
        self.functions: dict[str, list[Piece]] = {}
        self.prototypes: dict[str, Piece] = {}
        for piece in self.pieces:
            if piece.kind == "function":
                self.functions.setdefault(piece.name, []).append(piece)
            elif piece.kind == "prototype":
                self.prototypes.setdefault(piece.name, piece)
        self.enumerators = _enumerators(done)


def _enumerators(done: Preprocessed) -> dict[str, tuple[str, str, int, int]]:
    """name -> (previous enumerator or "", its own expression or "", steps from there, line)."""
    found: dict[str, tuple[str, str, int, int]] = {}
    for match in re.finditer(r"\benum\b\s*+\w*+\s*+\{([^{}]*)\}", done.text):
        previous, line = "", done.text.count("\n", 0, match.start()) + 1
        for item in _split_commas(match[1]):
            at = line
            name, _, value = item.strip().partition("=")
            name = name.split()[0] if name.split() else ""
            if re.fullmatch(r"[A-Za-z_]\w*", name):
                found[name] = (previous, value.strip(), 1, at)
                previous = name
    return found


def _split_commas(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


@lru_cache(maxsize=4096)
def _preprocessed(file: str, text: str, key: tuple[tuple[str, str], ...], outer: tuple[Macro, ...]) -> Preprocessed:
    return preprocess(file, text, Config(dict(key)), outer)


@lru_cache(maxsize=1024)
def _unit(file: str, text: str, key: tuple[tuple[str, str], ...], outer: tuple[Macro, ...]) -> Unit:
    return Unit(_preprocessed(file, text, key, outer))


class Again(Exception):
    """A file's conditions rest on a macro of a header that it includes: look everything up again, knowing it."""


class Sources:
    """A tree under a configuration: looks names up as the compiler of one file would."""

    def __init__(self, tree: Tree, config: Config):
        self.tree, self.config = tree, config
        self._outer: dict[str, tuple[Macro, ...]] = {}
        # Since 6.2 a plain char is unsigned everywhere.
        self.unsigned_char = tree.exists("Makefile") and "-funsigned-char" in tree.text("Makefile")
        self._forget()

    def _forget(self) -> None:
        self._closures: dict[str, tuple[str, ...]] = {}
        self._seen: dict[Where, tuple[str, ...]] = {}
        self._macros: dict[tuple[str, Where], Macro | None] = {}
        self._structs: dict[tuple[str, Where], tuple[str, int, str] | None] = {}
        self.members: dict[Any, Any] = {}      # what schedproof.kernel.declared has found out of structs
        self._defines: dict[str, frozenset[str]] = {}

    def preprocessed(self, file: str) -> Preprocessed:
        """A file after its conditions. Raises InputError when it is absent."""
        return _preprocessed(file, self.tree.text(file), self.config.key, self._outer.get(file, ()))

    def unit(self, file: str) -> Unit:
        """The pieces of a file. Raises InputError when it is absent."""
        return _unit(file, self.tree.text(file), self.config.key, self._outer.get(file, ()))

    def closure(self, file: str) -> tuple[str, ...]:
        """The file, what it includes (nearest first), and the likely headers."""
        if file not in self._closures:
            folder = posixpath.dirname(file)
            base = re.escape(posixpath.basename(file))
            # A file such as qspinlock_paravirt.h or rt.c is compiled as part of one that includes it.
            includers = [f for ext in ("c", "h") for f in self.tree.files(f"{folder}/*.{ext}" if folder else f"*.{ext}")
                         if f != file and self._safe(f)
                         and re.search(rf'^[ \t]*#[ \t]*include[ \t]+"{base}"', self.tree.text(f), re.MULTILINE)]
            order, seen = [file], {file}
            level = [file, *includers]
            while level:
                following: list[str] = []
                for one in level:
                    for included in self._included(one):
                        if included not in seen:
                            seen.add(included)
                            following.append(included)
                self.tree.prefetch(following)
                order += [f for f in level if f not in order]
                level = following
            order += [f for f in LIKELY if f not in seen and self._safe(f)]
            self._closures[file] = tuple(order)
        return self._closures[file]

    def seen(self, where: Where) -> tuple[str, ...]:
        """The files in which a name is looked for, in order."""
        order = self.closure(where.root)
        if where.file == where.root:
            return order
        if where.file not in order:
            return self.closure(where.file)
        if where not in self._seen:
            self._seen[where] = (where.file, *(f for f in order if f != where.file))
        return self._seen[where]

    def _safe(self, file: str) -> bool:
        return self.tree.exists(file)

    def _before(self, file: str, line: int) -> frozenset[str]:
        """The headers that a file has included, directly or through others, before one of its lines."""
        seen: set[str] = set()
        level = self._included(file, line)
        while level:
            seen.update(level)
            level = [f for one in level for f in self._included(one) if f not in seen]
        return frozenset(seen)

    def _included(self, file: str, before: int | None = None) -> list[str]:
        found = []
        done = self.preprocessed(file)
        for name, line in zip(done.includes, done.include_lines, strict=True):
            if before is not None and line >= before:
                break
            inner = name[1:-1]
            places = [f"include/{inner}", f"arch/x86/include/{inner}", f"include/uapi/{inner}",
                      f"include/asm-generic/{inner.removeprefix('asm/')}" if inner.startswith("asm/") else ""]
            if name[0] == '"':
                places.insert(0, posixpath.normpath(posixpath.join(posixpath.dirname(file), inner)))
            found += [p for p in places if p and not p.startswith("..") and self._safe(p)][:1]
        return found

    # ------------------------------------------------------------------------------------------- names
    def macro(self, name: str, where: Where, line: int | None = None) -> Macro | None:
        """The macro that a name stands for at a line of a file. Raises NotExecutable where that cannot be told."""
        if self._has_define(where.file, name):
            done = self.preprocessed(where.file)
            if any(what == name and (line is None or at <= line) for at, what, _ in done.events):
                return done.macro(name, line)
        key = (name, where)
        if key not in self._macros:
            self._macros[key] = self._header_macro(name, where)
        return self._macros[key]

    def _header_macro(self, name: str, where: Where) -> Macro | None:
        found: list[Macro] = []
        for other in self.seen(where):
            if other == where.file or not self._has_define(other, name):
                continue
            macro = self.preprocessed(other).macro(name)
            if macro is not None and not any(_same_macro(macro, m) for m in found):
                found.append(macro)
        firm = [m for m in found if not m.guarded] or found[:1]
        if len(firm) > 1:
            raise NotExecutable(firm[1].file, firm[1].line,
                                f"macro {name}, also defined in {firm[0].file}:{firm[0].line}")
        if firm:
            self._rely(firm[0].file, firm[0].line, firm[0].line, name, where)
        return firm[0] if firm else None

    def _has_define(self, file: str, name: str) -> bool:
        if file not in self._defines:
            self._defines[file] = frozenset(what for _, what, _ in self.preprocessed(file).events)
        return name in self._defines[file]

    def function(self, name: str, where: Where) -> Piece:
        """The definition of a function that code in a file would call.

        Raises Absent when there is none, NotExecutable when two are live or the configuration does not decide.
        """
        found = self.live(name, where)
        if not found:
            self._hidden(name, where)
            self._undecided(name, where.file)
        if not found or re.search(r"\b__weak\b", found[0].text.split("{")[0]):
            found = self._elsewhere(name, where) or found
        if not found:
            raise Absent(name, where.file)
        piece = found[0]
        self._rely(piece.file, piece.line, piece.last, name, where)
        return piece

    def live(self, name: str, where: Where) -> list[Piece]:
        """The definition that code in a file would call, if any. Raises NotExecutable when two are live."""
        pattern = re.compile(rf"\b{re.escape(name)}\s*\(")
        found: list[Piece] = []
        for other in self.seen(where):
            if name not in self.tree.text(other) or not pattern.search(self.preprocessed(other).text):
                continue
            found += self.unit(other).functions.get(name, [])
            if other == where.file and found:
                break                                      # the file's own definition
        firm = [p for p in found if not self.is_default(p, name)] or found
        if len(firm) > 1:
            raise NotExecutable(firm[1].file, firm[1].line,
                                f"{name}: a second definition is live, the first is {firm[0].file}:{firm[0].line}")
        return firm

    def _elsewhere(self, name: str, where: Where) -> list[Piece]:
        """The definition that the linker would find in a file that this one has nothing to do with.

        Raises NotExecutable when two files have one.
        """
        pattern = re.compile(rf"\b{re.escape(name)}\s*\(")
        seen = frozenset(self.seen(where))
        found: list[Piece] = []
        for glob in SEARCHED:
            files = [f for f in self.tree.files(glob) if f.endswith(".c") and f not in seen]
            self.tree.prefetch(files)
            for file in files:
                if self._safe(file) and name in self.tree.text(file) and pattern.search(self.tree.text(file)):
                    found += [p for p in self.unit(file).functions.get(name, [])
                              if not re.search(r"\b(static|__weak)\b", p.text.split("{")[0])]
        if len(found) > 1:
            raise NotExecutable(found[1].file, found[1].line,
                                f"{name}: a second definition, the first is {found[0].file}:{found[0].line}")
        return found

    def is_default(self, piece: Piece, name: str) -> bool:
        """A definition that another one overrides: ``__weak``, or under ``#ifndef name``."""
        header = piece.text.split("{")[0]
        around = self.preprocessed(piece.file).around(piece.line, piece.last)
        return "__weak" in header or any(name in r.undefined for r in around)

    def prototype(self, name: str, where: Where) -> Piece | None:
        """A declaration of a function without a body, or its definition: whatever is nearest."""
        for other in self.seen(where):
            if name in self.tree.text(other):
                unit = self.unit(other)
                if name in unit.functions:
                    return unit.functions[name][0]
                if name in unit.prototypes:
                    return unit.prototypes[name]
        return None

    def enumerator(self, name: str, where: Where) -> tuple[str, tuple[str, str, int, int]] | None:
        """(file, entry) of the enum that lists a name, or None."""
        for other in self.seen(where):
            if name in self.tree.text(other):
                entry = self.unit(other).enumerators.get(name)
                if entry is not None:
                    return other, entry
        return None

    def variable(self, name: str, where: Where) -> Piece | None:
        """The nearest declaration or definition of a global variable."""
        pattern = re.compile(rf"\b{re.escape(name)}\s*(?:[=;,\[]|__\w+)")
        for other in self.seen(where):
            if name in self.tree.text(other):
                for piece in self.unit(other).pieces:
                    if piece.kind == "other" and "typedef" not in piece.text and pattern.search(piece.text):
                        return piece
        self._hidden(name, where)
        return None

    def struct(self, name: str, where: Where) -> tuple[str, int, str] | None:
        """(file, line, text from ``struct`` to the closing brace) of the definition of ``struct name``, or None.

        Raises NotExecutable when two differing definitions are live.
        """
        key = (name, where)
        if key not in self._structs:
            self._structs[key] = self._struct(name, where)
        return self._structs[key]

    def _struct(self, name: str, where: Where) -> tuple[str, int, str] | None:
        kind, _, tag = name.partition(" ")
        pattern = re.compile(rf"\b{kind}\s+{re.escape(tag)}\b[^;{{}}()=]*\{{")
        found: list[tuple[str, int, str]] = []
        for other in self.seen(where):
            if tag not in self.tree.text(other):
                continue
            text = self.preprocessed(other).text
            for match in pattern.finditer(text):
                end = _closing(text, match.end() - 1)
                found.append((other, text.count("\n", 0, match.start()) + 1, text[match.start():end]))
            if found:
                break
        if len(found) > 1:
            raise NotExecutable(found[1][0], found[1][1], f"{name}: defined twice")
        if not found:
            self._hidden(tag, where)
        else:
            at = found[0]
            self._rely(at[0], at[1], at[1] + at[2].count("\n"), name, where)
            return at
        return None

    def typedef(self, name: str, where: Where) -> str | None:
        """The type text that a typedef stands for (``unsigned int`` of ``typedef unsigned int x;``), or None."""
        pattern = re.compile(rf"\btypedef\s+([^;{{}}()]+?[\s*]){re.escape(name)}\s*;")
        for other in self.seen(where):
            if name in self.tree.text(other):
                match = pattern.search(self.preprocessed(other).text)
                if match:
                    return match[1].strip()
        return None

    # --------------------------------------------------------------------------------- configuration
    def _rely(self, file: str, first: int, last: int, name: str, user: Where) -> None:
        """Note what a piece of code rests on; refuse it where that is unknown. Raises NotExecutable."""
        for region in self.preprocessed(file).around(first, last):
            for other in sorted(region.undefined - {name}):
                self._meets(file, region.first, other, user)
            if region.undecided is not None:
                raise NotExecutable(file, region.undecided[0], f"{region.undecided[1]} (around {name})")
            self.config.consulted |= region.options

    def _meets(self, file: str, line: int, name: str, user: Where) -> None:
        """A condition took a name to be undefined because its own file does not define it. See whether another does.

        Raises Again when a header that the file includes does, NotExecutable when the order of inclusion decides.
        """
        for header in self.seen(user):
            macro = self.preprocessed(header).macro(name) if header != file and self._has_define(header, name) else None
            if macro is None:
                continue
            if header not in self._before(file, line):
                raise NotExecutable(file, line, f"#if on {name}, which {header} defines")
            self._outer[file] = (*self._outer.get(file, ()), macro)
            self._forget()
            raise Again

    def _hidden(self, name: str, where: Where) -> None:
        """A name that was not found may hide in branches that could not be told apart for want of a header's macro.

        Raises Again when there is one.
        """
        for file in self.seen(where):
            if name not in self.tree.text(file):
                continue
            for region in self._unclear(file, re.compile(rf"\b{re.escape(name)}\b")):
                for other in sorted(region.undefined - {name}):
                    with contextlib.suppress(NotExecutable):
                        self._meets(file, region.first, other, where)

    def _unclear(self, file: str, pattern: re.Pattern[str]) -> list[Region]:
        """The undecided regions of a file that have a line with this pattern."""
        regions = [r for r in self.preprocessed(file).regions if r.undecided is not None]
        lines = [n for n, line in enumerate(self.tree.text(file).split("\n"), 1) if pattern.search(line)] if regions \
            else []
        return [r for r in regions if bisect_left(lines, r.first) < bisect_right(lines, r.last)]

    def _undecided(self, name: str, file: str) -> None:
        """Refuse when the name's definition may hide in branches that could not be told apart."""
        for region in self._unclear(file, re.compile(rf"^(?![ \t#]).*\b{re.escape(name)}[ \t]*\(")):
            assert region.undecided is not None
            raise NotExecutable(file, region.undecided[0], f"{region.undecided[1]} (around {name})")


def _same_macro(one: Macro, other: Macro) -> bool:
    return one.params == other.params and one.body.split() == other.body.split()


def _closing(text: str, at: int) -> int:
    """The position behind the brace that closes the one at ``at``."""
    depth = 0
    for token in TOKENS.finditer(text, at):
        depth += (token[0] == "{") - (token[0] == "}")
        if not depth:
            return token.end()
    return len(text)


def sources(tree: Tree, config: Config) -> Sources:
    """The sources of a tree under a configuration; made once for each pair.

    Equal configurations are kept apart: each notes what was consulted under it.
    """
    kept: dict[int, Sources] = tree.__dict__.setdefault("_sources", {})
    if id(config) not in kept:                       # the value keeps its config alive, so the number stays its own
        kept[id(config)] = Sources(tree, config)
    return kept[id(config)]


__all__ = ["LIKELY", "Piece", "Sources", "Unit", "pieces", "sources", "InputError"]
