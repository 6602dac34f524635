# SPDX-License-Identifier: GPL-2.0-only
"""C statements to statements of the shared form.

Jumps that the shared form lacks (``goto`` forward to a label at the function's end level, ``continue`` out of a
``switch``, ``break`` out of a nested ``switch``) become a flag and a ``break`` out of a loop that runs once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from schedproof.kernel import parse as p
from schedproof.kernel import values as v
from schedproof.kernel.calls import Calls
from schedproof.kernel.declared import Embedded, Type
from schedproof.kernel.expressions import Bound, Unusable
from schedproof.kernel.values import Value
from schedproof.lang.ctypes import INT, CType
from schedproof.lang.syntax import Assign, Binary, Break, Const, Continue, Expr, If, Loc, Local, Return, Stmt, While


@dataclass
class _Frame:
    """Something that a ``Break`` leaves. ``loop``: C's break and continue mean it; ``switch``: only break does."""

    kind: str                                    # "loop", "switch", "label"
    label: str = ""
    flags: list[tuple[str, str]] = field(default_factory=list)     # (flag, what to do behind it)


def _ends(node: Node) -> bool:
    """Whether control never goes on behind a statement (by its text alone)."""
    if node.type in ("break_statement", "continue_statement", "return_statement", "goto_statement"):
        return True
    if node.type == "compound_statement":
        inner = p.children(node)
        return bool(inner) and _ends(inner[-1])
    if node.type == "if_statement":
        other = node.child_by_field_name("alternative")
        then = node.child_by_field_name("consequence")
        return other is not None and then is not None and _ends(then) and _ends(p.children(other)[-1])
    return False


class Statements(Calls):
    """Lowers the body of one function."""

    result: CType | None = None
    frames: list[_Frame]
    labels: dict[str, int]

    inside: set[tuple[str, str]]                 # the members of objects that a pointer result may point to

    def body(self, node: Node, result: CType | None) -> tuple[Stmt, ...]:
        """The statements of a function's body."""
        self.result, self.frames, self.inside = result, [], set()
        with self.scope():
            inner = p.children(node)
            return self._from_label(inner, [i for i, n in enumerate(inner) if n.type == "labeled_statement"])

    def _from_label(self, nodes: Sequence[Node], labels: list[int]) -> tuple[Stmt, ...]:
        """A function's top level: what stands before the last label is a loop that runs once, left by ``goto``."""
        if not labels:
            with self.aside() as out:
                for node in nodes:
                    self.statement(node)
            return tuple(out)
        at = labels[-1]
        label = p.text(p.need(nodes[at], "label", self.code))
        loc = self.loc(nodes[at])
        frame = _Frame("label", label)
        self.frames.append(frame)
        before = self._from_label(nodes[:at], labels[:-1])
        self.frames.pop()
        with self.aside() as out:
            self._close(frame, before, loc)
            for inner in [c for c in p.children(nodes[at]) if c.type != "statement_identifier"]:
                self.statement(inner)
            for node in nodes[at + 1:]:
                self.statement(node)
        return tuple(out)

    def _close(self, frame: _Frame, body: tuple[Stmt, ...], loc: Loc) -> None:
        """A block that runs once, and the jumps out of it that go further."""
        if frame.flags or _breaks(body):
            self.out += [Assign(flag, Const(0, loc), loc) for flag, _ in frame.flags]
            self.out.append(While(Const(False, loc), body, (), loc, True))
            self._follow(frame, loc)
        else:
            self.out += body

    def _follow(self, frame: _Frame, loc: Loc) -> None:
        """Behind a block: go on with the jumps that were meant for something further out."""
        for flag, kind in frame.flags:
            here = Binary("!=", Local(flag, loc), Const(0, loc), loc)
            with self.aside() as inner:
                self._jump(kind, loc)
            self.out.append(If(here, tuple(inner), (), loc))

    def _jump(self, kind: str, loc: Loc) -> None:
        """``kind`` is "break", "continue" or "goto LABEL"."""
        if not self.frames:
            raise v.Mismatch(f"{kind} with nothing to leave")
        top = self.frames[-1]
        if kind == "break" and top.kind in ("loop", "switch") or kind == f"goto {top.label}" and top.kind == "label":
            self.out.append(Break(loc))
        elif kind == "continue" and top.kind == "loop":
            self.out.append(Continue(loc))
        else:
            found = next((flag for flag, what in top.flags if what == kind), None)
            if found is None:
                found = self.fresh()
                top.flags.append((found, kind))
            self.out += [Assign(found, Const(1, loc), loc), Break(loc)]

    # ---------------------------------------------------------------------------------------- statements
    def statement(self, node: Node) -> None:
        """Lower one statement."""
        method = getattr(self, f"_do_{node.type}", None)
        if method is None:
            self.fail(node, f"{node.type.replace('_', ' ')}: {p.shown(node)}")
        with self.typed(node):
            method(node)

    def block(self, node: Node | None) -> tuple[Stmt, ...]:
        """A statement as a block with its own scope."""
        if node is None:
            return ()
        with self.aside() as out, self.scope():
            self.statement(node)
        return tuple(out)

    def _do_compound_statement(self, node: Node) -> None:
        with self.scope():
            for inner in p.children(node):
                self.statement(inner)

    def _do_expression_statement(self, node: Node) -> None:
        inner = p.children(node)
        if not inner or p.text(inner[0]) == "fallthrough":
            return
        self.effect(inner[0])

    def _do_attributed_statement(self, node: Node) -> None:
        for inner in p.children(node):
            if "attribute" not in inner.type:
                self.statement(inner)

    def _do_else_clause(self, node: Node) -> None:
        for inner in p.children(node):
            self.statement(inner)

    def statement_expression(self, node: Node, used: bool) -> Value:
        """``({ … value; })``."""
        inner = p.children(node)
        with self.scope():
            for statement in inner[:-1]:
                self.statement(statement)
            last = inner[-1] if inner else None
            if last is None or last.type != "expression_statement" or not p.children(last):
                if last is not None:
                    self.statement(last)
                return Value(Const(0, self.loc(node)), None)
            value = self.value(p.children(last)[0], used)
        return value

    # -------------------------------------------------------------------------------------- declarations
    def _do_declaration(self, node: Node) -> None:
        kind = p.need(node, "type", self.code)
        if any(c.type == "storage_class_specifier" and p.text(c) in ("static", "extern") for c in node.children):
            self.fail(node, f"static local: {p.shown(node)}")
        for declarator in node.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
            shape = declarator.child_by_field_name("declarator") if value is not None else declarator
            self._declare(node, p.text(kind), shape, value)

    def _declare(self, node: Node, kind: str, shape: Node | None, value: Node | None) -> None:
        loc = self.loc(shape or node)
        given: Value | None = None
        if kind == "__auto_type" and value is not None:
            name, given = p.text(shape) if shape is not None else "", self.value(value)
            found: Type = given.ctype
        else:
            name, found = self.declared(node, kind, shape)
        if not isinstance(found, CType):
            why = "a struct" if isinstance(found, Embedded) else f"of type {getattr(found, 'text', 'void')}"
            self.scopes[-1][name] = Unusable(why)
            return
        if value is not None:
            given = given or self.value(value)
            if given.inner:
                self.scopes[-1][name] = Bound(v.convert(self.keep(given, loc), found, loc))
                return
            given = v.convert(given, found, loc)
        place = self.declare(name, found)
        if given is not None:
            self.out += self.memory.store(place, given, loc)

    # -------------------------------------------------------------------------------------- control flow
    def _do_if_statement(self, node: Node) -> None:
        loc = self.loc(node)
        test = self.truth(p.need(node, "condition", self.code))
        then, other = p.part(node, "consequence"), p.part(node, "alternative")
        if isinstance(test, Const):                    # decided by the configuration: the other side is not read
            self.out += self.block(then if test.value else other)
            return
        self.out.append(If(test, self.block(then), self.block(other), loc))

    def _loop_body(self, node: Node | None) -> tuple[tuple[Stmt, ...], _Frame]:
        frame = _Frame("loop")
        self.frames.append(frame)
        body = self.block(node)
        self.frames.pop()
        return body, frame

    def _loop(self, test: Expr, before: Sequence[Stmt], node: Node | None, step: tuple[Stmt, ...], loc: Loc) -> None:
        """``while (test)`` whose test may need statements."""
        body, frame = self._loop_body(node)
        if before:
            leave = If(_negated(test, loc), (Break(loc),), (), loc)
            body, test = (*before, leave, *body), Const(True, loc)
        self.out += [Assign(flag, Const(0, loc), loc) for flag, _ in frame.flags]
        self.out.append(While(test, body, step, loc))
        self._follow(frame, loc)

    def _stays(self, node: Node, head: Sequence[Stmt]) -> None:
        """Refuse a jump out of a loop's own condition or step: inside of the loop it would mean that loop."""
        if any(isinstance(x, (Break, Continue)) or isinstance(x, If) and _leaves(x) for x in head):
            self.fail(node, f"jump out of the head of a loop: {p.shown(node)}")

    def _do_while_statement(self, node: Node) -> None:
        with self.aside() as before:
            test = self.truth(p.need(node, "condition", self.code))
        self._stays(node, before)
        self._loop(test, before, p.part(node, "body"), (), self.loc(node))

    def _do_for_statement(self, node: Node) -> None:
        loc = self.loc(node)
        with self.scope():
            initial = p.part(node, "initializer")
            if initial is not None:
                if initial.type == "declaration":
                    self.statement(initial)
                else:
                    self.effect(initial)
            condition, update = p.part(node, "condition"), p.part(node, "update")
            with self.aside() as before:
                test: Expr = self.truth(condition) if condition is not None else Const(True, loc)
            with self.aside() as step:
                if update is not None:
                    self.effect(update)
            self._stays(node, [*before, *step])
            self._loop(test, before, p.part(node, "body"), tuple(step), loc)

    def _do_do_statement(self, node: Node) -> None:
        loc = self.loc(node)
        body, frame = self._loop_body(p.part(node, "body"))
        with self.aside() as before:
            test = self.truth(p.need(node, "condition", self.code))
        self._stays(node, before)
        if isinstance(test, Const) and not test.value and not before and not frame.flags and not _breaks(body):
            self.out += body                           # do { … } while (0)
            return
        self.out += [Assign(flag, Const(0, loc), loc) for flag, _ in frame.flags]
        self.out.append(While(test, body, tuple(before), loc, True))
        self._follow(frame, loc)

    def _do_break_statement(self, node: Node) -> None:
        self._jump("break", self.loc(node))

    def _do_continue_statement(self, node: Node) -> None:
        self._jump("continue", self.loc(node))

    def _do_goto_statement(self, node: Node) -> None:
        label = p.text(p.need(node, "label", self.code))
        if not any(f.label == label for f in self.frames):
            self.fail(node, f"goto {label}, backward or into a block")
        self._jump(f"goto {label}", self.loc(node))

    def _do_labeled_statement(self, node: Node) -> None:
        self.fail(node, f"label inside a block: {p.shown(node)}")

    def _do_return_statement(self, node: Node) -> None:
        inner, loc = p.children(node), self.loc(node)
        if not inner:
            self.out.append(Return(None, loc))
            return
        value = self.value(inner[0], self.result is not None)
        if self.result is None:                        # ``return f();`` in a void function
            self.out.append(Return(None, loc))
            return
        if self.result.struct and not v.is_null(value):
            self.inside.add((value.owner, value.inner))
        self.out.append(Return(v.convert(value, self.result, loc).expr, loc))

    # -------------------------------------------------------------------------------------------- switch
    def _do_switch_statement(self, node: Node) -> None:
        loc = self.loc(node)
        value = self.once(v.promoted(self.value(p.need(node, "condition", self.code)), loc), loc)
        groups = p.children(p.need(node, "body", self.code))
        if any(g.type != "case_statement" for g in groups):
            self.fail(node, "statements before the first case of a switch")
        frame = _Frame("switch")
        self.frames.append(frame)
        default: tuple[Stmt, ...] = ()
        arms: list[tuple[Expr, tuple[Stmt, ...]]] = []
        for number, group in enumerate(groups):
            test = self._case(value, group)
            body = self._arm(groups[number:])
            if test is None:
                default = body
            else:
                arms.append((test, body))
        self.frames.pop()
        chain = default
        for test, body in reversed(arms):
            chain = (If(test, body, chain, loc),)
        self._close(frame, chain, loc)

    def _case(self, value: Value, group: Node) -> Expr | None:
        """The condition of one case; None for the default."""
        label = p.part(group, "value")
        if label is None:
            return None
        with self.aside() as before:
            wanted = self.value(label)
        if before or not isinstance(wanted.expr, Const):
            self.fail(group, f"case {p.shown(label)}")
        return v.compare("==", value, wanted, self.loc(group)).expr

    def _arm(self, groups: Sequence[Node]) -> tuple[Stmt, ...]:
        """What runs from a case on: its own statements and, where they fall through, those of the next ones."""
        with self.aside() as out, self.scope():
            for group in groups:
                label = p.part(group, "value")
                inner = [n for n in p.children(group) if label is None or n.id != label.id]
                for number, statement in enumerate(inner):
                    if statement.type == "break_statement" and number == len(inner) - 1:
                        return tuple(out)              # a break at the end needs no jump
                    self.statement(statement)
                if inner and _ends(inner[-1]):
                    break
        return tuple(out)


def _negated(test: Expr, loc: Loc) -> Expr:
    return v.false(Value(test, INT, True), loc)


def _leaves(test: If) -> bool:
    return any(isinstance(x, (Break, Continue)) or isinstance(x, If) and _leaves(x) for x in (*test.then, *test.orelse))


def _breaks(body: Sequence[Stmt]) -> bool:
    """Whether a body has a break or continue that means the loop around it."""
    for statement in body:
        if isinstance(statement, (Break, Continue)):
            return True
        if isinstance(statement, If) and (_breaks(statement.then) or _breaks(statement.orelse)):
            return True
    return False


