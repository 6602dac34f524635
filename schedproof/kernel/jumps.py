# SPDX-License-Identifier: GPL-2.0-only
"""C's jumps as loops and flags: ``goto`` in both directions, ``continue`` out of a ``switch``, nested ``break``.

A jump forward is a ``break`` out of a block that runs once, a jump backward a ``continue`` of a loop around all that
stands from its label on. Where blocks lie between, a flag is set, the block is left, and the jump goes on behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from schedproof.kernel import parse as p
from schedproof.kernel import values as v
from schedproof.kernel.calls import Calls
from schedproof.lang.syntax import Assign, Binary, Break, Const, Continue, Expr, If, Loc, Local, Stmt, While


@dataclass
class Frame:
    """Something that a ``Break`` leaves.

    ``loop``: C's break and continue mean it; ``switch``: only break does; ``label``: the label stands right behind
    it; ``again``: it begins with the label.
    """

    kind: str                                    # "loop", "switch", "label", "again"
    label: str = ""
    flags: list[tuple[str, str]] = field(default_factory=list)     # (flag, what to do behind it)


@dataclass(frozen=True)
class Part:
    """The statements of a block from one label to the next. ``entries``: (flag, label) of jumps that go on here."""

    label: str
    at: Node
    nodes: tuple[Node, ...]
    entries: tuple[tuple[str, str], ...] = ()

    def jumps_to(self) -> frozenset[str]:
        """The labels that this part jumps to."""
        found = {p.text(n.children[1]) for node in self.nodes for n in p.walk(node)
                 if n.type == "goto_statement" and len(n.children) > 1}
        return frozenset(found.union(label for _, label in self.entries))


def parts_of(block: Node, nodes: Sequence[Node]) -> list[Part]:
    """A block's statements, cut at its labels; the first part has no label."""
    found = [Part("", block, ())]
    for node in nodes:
        inner: Node | None = node
        while inner is not None and inner.type == "labeled_statement":
            found.append(Part(p.text(inner.children[0]), inner, ()))
            inner = next((c for c in p.children(inner) if c.type != "statement_identifier"), None)
        if inner is not None:
            found[-1] = replace(found[-1], nodes=(*found[-1].nodes, inner))
    return found


def breaks(body: Sequence[Stmt]) -> bool:
    """Whether a body has a break or continue that means the loop around it."""
    for statement in body:
        if isinstance(statement, (Break, Continue)):
            return True
        if isinstance(statement, If) and (breaks(statement.then) or breaks(statement.orelse)):
            return True
    return False


class Jumps(Calls):
    """Lowers blocks with labels, and jumps."""

    frames: list[Frame]
    through: dict[str, tuple[str, str]]          # label -> (flag, label): it lies in the loop that the second begins

    def statement(self, node: Node) -> None:
        """Lower one statement: done by the statements' half."""
        raise NotImplementedError

    def sequence(self, block: Node, nodes: Sequence[Node]) -> None:
        """The statements of a block, labels among them."""
        self.out += self._parts(parts_of(block, nodes))

    def _parts(self, parts: Sequence[Part]) -> tuple[Stmt, ...]:
        backward = next((i for i, part in enumerate(parts) if part.label
                         and any(part.label in later.jumps_to() for later in parts[i:])), None)
        return self._forward(parts) if backward is None else self._again(parts, backward)

    def _forward(self, parts: Sequence[Part]) -> tuple[Stmt, ...]:
        """What stands before the last label is a block that runs once, left by ``goto``."""
        *before, last = parts
        with self.aside() as out:
            if before:
                frame = Frame("label", last.label)
                self.frames.append(frame)
                inner = self._forward(before)
                self.frames.pop()
                self.close(frame, inner, self.loc(last.at))
            for flag, label in last.entries:
                loc = self.loc(last.at)
                with self.aside() as go:
                    go.append(Assign(flag, Const(0, loc), loc))
                    self.jump(f"goto {label}", loc)
                self.out.append(If(_is_set(flag, loc), tuple(go), (), loc))
            for node in last.nodes:
                self.statement(node)
        return tuple(out)

    def _again(self, parts: Sequence[Part], at: int) -> tuple[Stmt, ...]:
        """A loop around all that stands from a label on. Jumps to a later label from before it enter at its top."""
        label, loc = parts[at].label, self.loc(parts[at].at)
        early = frozenset().union(*(part.jumps_to() for part in parts[:at]))
        entries = tuple((self.fresh(), part.label) for part in parts[at + 1:] if part.label in early)
        with self.aside() as out:
            self.out += [Assign(flag, Const(0, loc), loc) for flag, _ in entries]
            frame = Frame("label", label)
            self.frames.append(frame)
            self.through |= {inner: (flag, label) for flag, inner in entries}
            before = self._parts(parts[:at])
            for _, inner in entries:
                del self.through[inner]
            self.frames.pop()
            self.close(frame, before, loc)
            again = Frame("again", label)
            self.frames.append(again)
            body = self._parts([replace(parts[at], label="", entries=entries), *parts[at + 1:]])
            self.frames.pop()
            self.out += [Assign(flag, Const(0, loc), loc) for flag, _ in again.flags]
            self.out.append(While(Const(True, loc), (*body, Break(loc)), (), loc))
            self.follow(again, loc)
        return tuple(out)

    def close(self, frame: Frame, body: tuple[Stmt, ...], loc: Loc) -> None:
        """A block that runs once, and the jumps out of it that go further."""
        if frame.flags or breaks(body):
            self.out += [Assign(flag, Const(0, loc), loc) for flag, _ in frame.flags]
            self.out.append(While(Const(False, loc), body, (), loc, True))
            self.follow(frame, loc)
        else:
            self.out += body

    def follow(self, frame: Frame, loc: Loc) -> None:
        """Behind a block: go on with the jumps that were meant for something further out."""
        for flag, kind in frame.flags:
            with self.aside() as inner:
                self.jump(kind, loc)
            self.out.append(If(_is_set(flag, loc), tuple(inner), (), loc))

    def reaches(self, label: str) -> bool:
        """Whether a jump to a label from here can be made."""
        return label in self.through or any(f.label == label for f in self.frames)

    def jump(self, kind: str, loc: Loc) -> None:
        """``kind`` is "break", "continue" or "goto LABEL"."""
        if not self.frames:
            raise v.Mismatch(f"{kind} with nothing to leave")
        via = self.through.get(kind.removeprefix("goto ")) if kind.startswith("goto ") else None
        if via is not None:
            self.out.append(Assign(via[0], Const(1, loc), loc))
            kind = f"goto {via[1]}"
        top = self.frames[-1]
        named = kind == f"goto {top.label}"
        if kind == "break" and top.kind in ("loop", "switch") or named and top.kind == "label":
            self.out.append(Break(loc))
        elif kind == "continue" and top.kind == "loop" or named and top.kind == "again":
            self.out.append(Continue(loc))
        else:
            found = next((flag for flag, what in top.flags if what == kind), None)
            if found is None:
                found = self.fresh()
                top.flags.append((found, kind))
            self.out += [Assign(found, Const(1, loc), loc), Break(loc)]


def _is_set(flag: str, loc: Loc) -> Expr:
    return Binary("!=", Local(flag, loc), Const(0, loc), loc)
