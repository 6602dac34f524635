# SPDX-License-Identifier: GPL-2.0-only
"""C statements to statements of the shared form."""

from __future__ import annotations

from collections.abc import Sequence

from tree_sitter import Node

from schedproof.kernel import parse as p
from schedproof.kernel import values as v
from schedproof.kernel.declared import Embedded, Type
from schedproof.kernel.jumps import Frame, Jumps, breaks
from schedproof.kernel.lowering import Bound, LocalStruct, Unusable
from schedproof.kernel.values import Value
from schedproof.lang.ctypes import INT, CType
from schedproof.lang.syntax import Assign, Binary, Break, Const, Continue, Expr, If, Loc, Return, Stmt, While


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


class Statements(Jumps):
    """Lowers the body of one function."""

    result: CType | None = None
    inside: set[tuple[str, str]]                 # the members of objects that a pointer result may point to
    nullable: bool                               # whether a result may be NULL, or another pointer to nothing
    checks: bool = False                         # whether objects must exist of which results point to a member

    def body(self, node: Node, result: CType | None) -> tuple[Stmt, ...]:
        """The statements of a function's body."""
        self.result, self.frames, self.through, self.inside, self.nullable = result, [], {}, set(), False
        with self.aside() as out:
            self.statement(node)
        return tuple(out)

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
            self.sequence(node, p.children(node))

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
        if isinstance(found, Embedded) and found.name.startswith("struct "):
            self._declare_struct(node, name, found, value)
            return
        if not isinstance(found, CType):
            why = "a struct" if isinstance(found, Embedded) else f"of type {getattr(found, 'text', 'void')}"
            self.scopes[-1][name] = Unusable(why)
            return
        if value is not None:
            given = given or self.value(value)
            if given.inner and not found.struct.endswith("*"):
                self.scopes[-1][name] = Bound(v.convert(self.keep(given, loc), found, loc))
                return
            given = v.convert(given, found, loc)
        place = self.declare(name, found)
        if given is not None:
            self.out += self.memory.store(place, given, loc)

    def _declare_struct(self, node: Node, name: str, kind: Embedded, value: Node | None) -> None:
        """A local struct, whose members are locals; what an initializer leaves out is 0."""
        made = LocalStruct(self.unique(name), kind)
        if value is not None and value.type != "initializer_list":
            source = self.local_struct(value)
            if source is None:
                self.fail(node, f"initial value of a struct: {p.shown(node)}")
            self.copy(node, made, source)
        elif value is not None:
            given: dict[str, Value] = {}
            for item in p.children(value):
                path = "".join(p.text(c) for c in item.children_by_field_name("designator"))
                inner = p.part(item, "value") if path else None
                if inner is not None:
                    given[path] = self.keep(self.value(inner), self.loc(item))
                elif p.text(value).replace(" ", "") != "{0}":
                    self.fail(item, f"initial value of a struct: {p.shown(value)}")
            self._fill(node, made, "", given)
            if given:
                self.fail(node, f"initial value of a struct: {p.shown(value)}")
        self.scopes[-1][name] = made

    def _fill(self, node: Node, struct: LocalStruct, path: str, given: dict[str, Value]) -> None:
        """Set every member of a local struct; those that were used are taken out of ``given``."""
        loc = self.loc(node)
        for name in self.members(node, struct):
            inner, here = self.member_of(node, struct, name), f"{path}.{name}"
            if isinstance(inner, LocalStruct):
                self._fill(node, inner, here, given)
            else:
                zero = v.null(loc, inner.ctype.struct) if inner.ctype.struct else v.constant(0, INT, loc)
                self.out += self.memory.store(inner, given.pop(here, zero), loc)

    # -------------------------------------------------------------------------------------- control flow
    def _do_if_statement(self, node: Node) -> None:
        loc = self.loc(node)
        test = self.truth(p.need(node, "condition", self.code))
        then, other = p.part(node, "consequence"), p.part(node, "alternative")
        if isinstance(test, Const):                    # decided by the configuration: the other side is not read
            self.out += self.block(then if test.value else other)
            return
        self.out.append(If(test, self.block(then), self.block(other), loc))

    def _loop_body(self, node: Node | None) -> tuple[tuple[Stmt, ...], Frame]:
        frame = Frame("loop")
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
        self.follow(frame, loc)

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
        if isinstance(test, Const) and not test.value and not before and not frame.flags and not breaks(body):
            self.out += body                           # do { … } while (0)
            return
        self.out += [Assign(flag, Const(0, loc), loc) for flag, _ in frame.flags]
        self.out.append(While(test, body, tuple(before), loc, True))
        self.follow(frame, loc)

    def _do_break_statement(self, node: Node) -> None:
        self.jump("break", self.loc(node))

    def _do_continue_statement(self, node: Node) -> None:
        self.jump("continue", self.loc(node))

    def _do_goto_statement(self, node: Node) -> None:
        label = p.text(p.need(node, "label", self.code))
        if not self.reaches(label):
            self.fail(node, f"goto {label}, into a block")
        self.jump(f"goto {label}", self.loc(node))

    def _do_labeled_statement(self, node: Node) -> None:
        self.sequence(node, [node])

    def _do_return_statement(self, node: Node) -> None:
        inner, loc = p.children(node), self.loc(node)
        if not inner:
            self.out.append(Return(None, loc))
            return
        value = self.value(inner[0], self.result is not None)
        if self.result is None:                        # ``return f();`` in a void function
            self.out.append(Return(None, loc))
            return
        if self.result.struct:
            nothing = isinstance(value.expr, Const) and not value.inner
            self.nullable |= nothing or value.maybe
            if not nothing:
                self.inside.add((value.owner, value.inner))
            if self.checks and not value.maybe:
                self.out += self.memory.exists(value, loc)
        self.out.append(Return(v.convert(value, self.result, loc).expr, loc))

    # -------------------------------------------------------------------------------------------- switch
    def _do_switch_statement(self, node: Node) -> None:
        loc = self.loc(node)
        value = self.once(v.promoted(self.value(p.need(node, "condition", self.code)), loc), loc)
        with self.scope():
            self._switch(value, p.children(p.need(node, "body", self.code)), loc)

    def _switch(self, value: Value, inner: Sequence[Node], loc: Loc) -> None:
        groups = [n for n in inner if n.type == "case_statement"]
        for early in inner[:len(inner) - len(groups)]:
            if early.type != "declaration" or any(d.type == "init_declarator" for d in early.children):
                self.fail(early, f"statement before the first case of a switch: {p.shown(early)}")
            self.statement(early)
        if inner and groups != inner[-len(groups):]:
            self.fail(inner[0], "a switch with statements outside of its cases")
        frame = Frame("switch")
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
        self.close(frame, chain, loc)

    def _case(self, value: Value, group: Node) -> Expr | None:
        """The condition of one case; None for the default."""
        label = p.part(group, "value")
        if label is None:
            return None
        loc = self.loc(group)
        ends = [label]
        if label.type == "call_expression" and p.text(label).startswith(f"{p.CASE_RANGE}("):
            ends = p.children(p.need(label, "arguments", self.code))
        with self.aside() as before:
            wanted = [v.convert(self.value(end), value.number, loc) for end in ends]
        if before or not all(isinstance(w.expr, Const) for w in wanted):
            self.fail(group, f"case {p.shown(label)}")
        if len(wanted) == 1:
            return v.compare("==", value, wanted[0], loc).expr
        low, high = (v.compare(op, value, w, loc).expr for op, w in zip((">=", "<="), wanted, strict=True))
        return Binary("and", low, high, loc)

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
