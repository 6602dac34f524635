# SPDX-License-Identifier: GPL-2.0-only
"""C expressions to expressions of the shared form, with the statements that have to run before them.

Operands are evaluated from left to right. A call stands alone in a statement of its own; whatever was evaluated
before it in the same expression is kept in a fresh local, so that the call cannot change it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn, Protocol

from tree_sitter import Node

from schedproof.errors import NotExecutable
from schedproof.kernel import parse as p
from schedproof.kernel import values as v
from schedproof.kernel.declared import Type, Types
from schedproof.kernel.parse import Code
from schedproof.kernel.places import FieldPlace, LocalPlace, Memory, Place, Words
from schedproof.kernel.source import Sources, Where
from schedproof.kernel.values import Mismatch, Value
from schedproof.lang.ctypes import INT, LONG, CType
from schedproof.lang.syntax import Assign, Binary, Const, Expr, If, Loc, Local, Stmt, Unary

_COMPARE = ("==", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Signature:
    """Names and types of a function's parameters and its result, as its header says."""

    name: str
    params: tuple[tuple[str, Type], ...]
    result: Type
    variadic: bool = False
    owner: str = ""                  # a result that points into an object: to the member ``inner`` of this struct
    inner: str = ""
    within: Mapping[int, tuple[str, str]] = field(default_factory=dict)     # see Expressions.within


class Services(Protocol):
    """What the lowering of one function needs of the reader of a tree."""

    sources: Sources
    words: Words

    def callee(self, name: str, where: Where, loc: Loc, inner: Sequence[tuple[str, str]]) -> tuple[str, Signature]:
        """Read a function too; its program's name and signature. Raises Absent, NotExecutable."""
        ...

    def signature(self, name: str, where: Where) -> Signature | None:
        """The signature of a function from its definition or declaration."""
        ...

    def number(self, name: str, where: Where, loc: Loc) -> Value | None:
        """The value of an enumerator of the tree."""
        ...


@dataclass(frozen=True)
class Bound:
    """A pointer into an object, fixed for its whole life: ``load`` of ``struct load_weight *load = &se->load``."""

    value: Value


@dataclass(frozen=True)
class Unusable:
    """A local whose type no value of a model has. Only its use is an error."""

    why: str


class Expressions:
    """Lowers expressions; ``out`` takes the statements that come before the value."""

    def __init__(self, services: Services, code: Code, types: Types):
        self.services, self.code, self.types = services, code, types
        self.memory = Memory(services.words, types)
        self.words = services.words
        self.out: list[Stmt] = []
        self.scopes: list[dict[str, LocalPlace | Bound | Unusable]] = [{}]
        self.taken: set[str] = set()
        self.temporaries: set[str] = set()              # locals that are set once, before their only use
        self.within: dict[str, tuple[str, str]] = {}    # parameter -> (struct, member) that container_of() says it is
        self.count = 0

    # ------------------------------------------------------------------------------------------- helpers
    def loc(self, node: Node) -> Loc:
        return Loc(self.code.file, self.code.at(node))

    def fail(self, node: Node, construct: str) -> NoReturn:
        raise NotExecutable(self.code.file, self.code.at(node), construct)

    @contextlib.contextmanager
    def typed(self, node: Node) -> Iterator[None]:
        """Gives a Mismatch its place."""
        try:
            yield
        except Mismatch as mismatch:
            self.fail(node, f"{mismatch}: {p.shown(node)}")

    @contextlib.contextmanager
    def aside(self) -> Iterator[list[Stmt]]:
        """Statements that are lowered inside go to the list instead."""
        kept, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = kept

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()

    def fresh(self) -> str:
        while True:
            self.count += 1
            name = f"__tmp{self.count}"
            if name not in self.taken:
                break
        self.taken.add(name)
        self.temporaries.add(name)
        return name

    def declare(self, name: str, ctype: CType) -> LocalPlace:
        """A new local; one that hides another gets a name of its own."""
        unique, number = name, 1
        while unique in self.taken:
            number += 1
            unique = f"{name}__{number}"
        self.taken.add(unique)
        place = LocalPlace(unique, ctype)
        self.scopes[-1][name] = place
        return place

    def lies_in(self, local: str, struct: str, member: str) -> None:
        """Note that a parameter is a pointer to a member of an object."""
        if not any(isinstance(x, LocalPlace) and x.name == local for x in self.scopes[0].values()):
            return
        if self.within.setdefault(local, (struct, member)) != (struct, member):
            raise Mismatch(f"{local}, a pointer into {struct} and into {self.within[local][0]}")

    def find(self, name: str) -> LocalPlace | Bound | Unusable | None:
        return next((s[name] for s in reversed(self.scopes) if name in s), None)

    def keep(self, value: Value, loc: Loc) -> Value:
        """The value as it is now, in a local unless it is a constant."""
        if isinstance(value.expr, Const) or value.ctype is None:
            return value
        if isinstance(value.expr, Local) and value.expr.name in self.temporaries:
            return value
        name = self.fresh()
        self.out.append(Assign(name, value.expr, loc))
        return Value(Local(name, loc, None if value.truth else value.ctype), value.ctype, value.truth, value.owner,
                     value.inner)

    def once(self, value: Value, loc: Loc) -> Value:
        """The value in a form that may be written twice."""
        return value if v.is_plain(value.expr) else self.keep(value, loc)

    def in_order(self, nodes: Sequence[Node], lower: Callable[[Node], Value] | None = None) -> list[Value]:
        """Several operands from left to right."""
        found: list[Value] = []
        for node in nodes:
            with self.aside() as before:
                value = (lower or self.value)(node)
            if before:
                found = [self.keep(x, self.loc(n)) for x, n in zip(found, nodes, strict=False)]
                self.out += before
            found.append(value)
        return found

    # -------------------------------------------------------------------------------------------- values
    def truth(self, node: Node) -> Expr:
        """An expression as a condition."""
        value = self.value(node)
        with self.typed(node):
            return v.truth(value, self.loc(node))

    def effect(self, node: Node) -> None:
        """An expression whose value nobody uses."""
        self.value(node, used=False)

    def value(self, node: Node, used: bool = True) -> Value:
        """An expression's value. ``used`` False: only its effect is wanted."""
        method = getattr(self, f"_{node.type}", None)
        if method is None:
            self.fail(node, f"{node.type.replace('_', ' ')}: {p.shown(node)}")
        if node.type in ("call_expression", "parenthesized_expression", "assignment_expression", "update_expression",
                         "cast_expression", "conditional_expression"):
            found = method(node, used)
        else:
            found = method(node)
        assert isinstance(found, Value)
        return found

    def _parenthesized_expression(self, node: Node, used: bool = True) -> Value:
        inner = p.children(node)
        if len(inner) != 1:
            self.fail(node, f"brackets: {p.shown(node)}")
        if inner[0].type == "compound_statement":
            return self.statement_expression(inner[0], used)
        return self.value(inner[0], used)

    def statement_expression(self, node: Node, used: bool) -> Value:
        """``({ … })``: lowered by the statements' half."""
        raise NotImplementedError

    def method_call(self, node: Node, name: str, args: Sequence[Node], used: bool = True) -> Value:
        """A call of the model's method: lowered by the calls' half."""
        raise NotImplementedError

    def call_place(self, node: Node) -> FieldPlace:
        """A call that stands for a variable, as ``per_cpu(x, cpu)``: lowered by the calls' half."""
        raise NotImplementedError

    def address_of(self, place: Place, node: Node) -> Value:
        """``&place``."""
        return self.memory.address(place, self.loc(node))

    def _number_literal(self, node: Node) -> Value:
        found = v.literal(p.text(node), self.loc(node))
        if found is None:
            self.fail(node, f"number {p.shown(node)}")
        return found

    _char_literal = _number_literal

    def _true(self, node: Node) -> Value:
        return v.constant(1, INT, self.loc(node))

    def _false(self, node: Node) -> Value:
        return v.constant(0, INT, self.loc(node))

    def _null(self, node: Node) -> Value:
        return v.null(self.loc(node))

    def _identifier(self, node: Node) -> Value:
        name, loc = p.text(node), self.loc(node)
        local = self.find(name)
        if isinstance(local, LocalPlace):
            return self.memory.load(local, loc)
        if isinstance(local, Bound):
            return local.value
        if isinstance(local, Unusable):
            self.fail(node, f"use of {name}, {local.why}")
        given = self.words.vocabulary.constants.get(name)
        if given is not None:
            return v.constant(given, INT if INT.low <= given <= INT.high else LONG, loc)
        if name in ("true", "false"):
            return v.constant(int(name == "true"), INT, loc)
        if name == "NULL":
            return v.null(loc)
        if name in self.words.vocabulary.callees:       # an object-like macro that a method stands for: ``current``
            return self.method_call(node, name, [])
        config = self.services.sources.config
        if config.on(name) and config.value(name) is not None:          # as CONFIG_HZ
            config.consulted.add(name)
            return v.constant(config.value(name) or 0, INT, loc)
        found = None if ("", name) in self.words.fields else self.services.number(name, self.code.where, loc)
        if found is not None:
            return found
        return self.memory.load(self.variable(node, name), loc)

    def variable(self, node: Node, name: str) -> FieldPlace:
        """A global variable that the model declares or ignores."""
        if ("", name) not in self.words.fields and self.words.vocabulary.ignored("", name) is None:
            self.fail(node, f"global variable or unknown name {name}")
        return FieldPlace(Const(0, self.loc(node)), "", name)

    def place(self, node: Node) -> Place:
        """An lvalue."""
        if node.type == "parenthesized_expression" and len(p.children(node)) == 1:
            return self.place(p.children(node)[0])
        if node.type == "identifier":
            local = self.find(p.text(node))
            if isinstance(local, LocalPlace):
                return local
            if isinstance(local, Bound):
                self.fail(node, f"change of {p.text(node)}, a pointer into an object")
            if isinstance(local, Unusable):
                self.fail(node, f"use of {p.text(node)}, {local.why}")
            return self.variable(node, p.text(node))
        if node.type == "field_expression":
            return self._member(node)
        if node.type == "call_expression":
            return self.call_place(node)
        if node.type == "pointer_expression" and p.text(p.need(node, "operator", self.code)) == "*":
            argument = p.need(node, "argument", self.code)
            value = self.value(argument)
            with self.typed(node):
                if not value.is_pointer:
                    raise Mismatch("a dereferenced number")
            return self.memory.target(value, self.loc(node))
        self.fail(node, f"{node.type.replace('_', ' ')} as a place: {p.shown(node)}")

    def _member(self, node: Node) -> FieldPlace:
        argument = p.need(node, "argument", self.code)
        name = p.text(p.need(node, "field", self.code))
        if p.text(p.need(node, "operator", self.code)) == "->":
            return self.memory.target(self.value(argument), self.loc(node)).below(name)
        base = self.place(argument)
        if isinstance(base, LocalPlace):
            self.fail(node, f"member of the local {p.shown(argument)}")
        if self.memory.link(base) is not None:                       # an embedded struct that is an object of its own
            return self.memory.target(self.memory.address(base, self.loc(node)), self.loc(node)).below(name)
        return base.below(name)

    def _field_expression(self, node: Node) -> Value:
        place = self._member(node)
        return self.memory.load(place, self.loc(node))

    def _pointer_expression(self, node: Node) -> Value:
        argument = p.need(node, "argument", self.code)
        if p.text(p.need(node, "operator", self.code)) == "*":
            return self.memory.load(self.place(node), self.loc(node))
        if argument.type == "pointer_expression" and p.text(argument).startswith("*"):
            return self.value(p.need(argument, "argument", self.code))       # &*p is p
        return self.address_of(self.place(argument), node)

    def _unary_expression(self, node: Node) -> Value:
        op, loc = p.text(p.need(node, "operator", self.code)), self.loc(node)
        operand = self.value(p.need(node, "argument", self.code))
        with self.typed(node):
            if op == "!":
                return Value(v.false(operand, loc), INT, True)
            operand = v.promoted(operand, loc)
            if op == "+":
                return operand
            ctype = operand.number
            if isinstance(operand.expr, Const):
                return v.constant(-int(operand.expr.value) if op == "-" else ~int(operand.expr.value), ctype, loc)
            return Value(Unary(op, operand.expr, loc, ctype), ctype)

    def _binary_expression(self, node: Node) -> Value:
        op, loc = p.text(p.need(node, "operator", self.code)), self.loc(node)
        sides = (p.need(node, "left", self.code), p.need(node, "right", self.code))
        if op in ("&&", "||"):
            return self._short(node, op, sides[0], sides[1])
        left, right = self.in_order(sides)
        with self.typed(node):
            return v.compare(op, left, right, loc) if op in _COMPARE else v.arithmetic(op, left, right, loc)

    def _short(self, node: Node, op: str, left_node: Node, right_node: Node) -> Value:
        loc = self.loc(node)
        left = self.truth(left_node)
        if isinstance(left, Const) and bool(left.value) is (op == "||"):      # the other side is never evaluated
            return Value(Const(op == "||", loc), INT, True)
        with self.aside() as before:
            right = self.truth(right_node)
        if isinstance(left, Const):
            self.out += before
            return Value(right, INT, True)
        if not before:
            return Value(Binary("and" if op == "&&" else "or", left, right, loc), INT, True)
        name = self.fresh()
        here = Local(name, loc)
        test: Expr = here if op == "&&" else Unary("not", here, loc)
        self.out += [Assign(name, left, loc), If(test, (*before, Assign(name, right, loc)), (), loc)]
        return Value(here, INT, True)

    def _conditional_expression(self, node: Node, used: bool = True) -> Value:
        loc = self.loc(node)
        condition = p.need(node, "condition", self.code)
        middle, last = p.part(node, "consequence"), p.need(node, "alternative", self.code)
        if middle is None:                                           # a ?: b
            first = self.once(self.value(condition), loc)
            with self.typed(node):
                test = v.truth(first, loc)
            with self.aside() as then:
                pass
        else:
            test = self.truth(condition)
            with self.aside() as then:
                first = self.value(middle, used)
        with self.aside() as orelse:
            other = self.value(last, used)
        if isinstance(test, Const):                                  # decided here, as in WARN_ON(IS_ENABLED(…))
            with self.typed(node):
                ctype = v.common(first, other)
                self.out += then if test.value else orelse
                chosen = first if test.value else other
                return chosen if ctype is None else v.convert(chosen, ctype, loc)
        if first.ctype is None or other.ctype is None:
            if used:
                self.fail(node, f"the value of a void function: {p.shown(node)}")
            self.out.append(If(test, tuple(then), tuple(orelse), loc))
            return Value(Const(0, loc), None)
        with self.typed(node):
            if not then and not orelse:
                return v.conditional(test, first, other, loc)
            ctype = v.common(first, other)
            assert ctype is not None
            first, other = v.convert(first, ctype, loc), v.convert(other, ctype, loc)
            if first.inner or other.inner:
                raise Mismatch("a choice between members of objects")
        name = self.fresh()
        self.out.append(If(test, (*then, Assign(name, first.expr, loc)), (*orelse, Assign(name, other.expr, loc)), loc))
        return Value(Local(name, loc, ctype), ctype, first.truth)

    def _comma_expression(self, node: Node) -> Value:
        left, right = p.need(node, "left", self.code), p.need(node, "right", self.code)
        self.effect(left)
        return self.value(right)

    def _cast_expression(self, node: Node, used: bool = True) -> Value:
        kind = self.type_of(p.need(node, "type", self.code))
        operand = p.need(node, "value", self.code)
        value = self.value(operand, used)
        if kind is None:
            return Value(Const(0, self.loc(node)), None)
        if not isinstance(kind, CType):
            self.fail(node, f"cast: {p.shown(node)}")
        with self.typed(node):
            if (kind.struct and value.is_pointer and not value.inner and value.ctype is not None
                    and value.ctype.struct != kind.struct and self.memory.same_object(value.ctype.struct, kind.struct)):
                return replace(value, ctype=kind)
            return v.convert(value, kind, self.loc(node))

    def type_of(self, descriptor: Node) -> Type:
        """The type that a cast names."""
        words, shape = self._descriptor(descriptor)
        return self.declared(descriptor, words, shape)[1]

    def declared(self, node: Node, words: str, shape: Node | None) -> tuple[str, Type]:
        """Name and type of a declarator; ``typeof(…)`` is worked out from the value's type."""
        if words not in self.code.typeofs:
            return self.types.of(words, shape)
        if self.code.typeofs[words].startswith(" "):
            return self.types.of(self.code.typeofs[words], shape)
        inner = p.expression_code(self.code.typeofs[words], self.code.where, self.code.at(node))
        kept, self.code = self.code, inner
        try:
            with self.aside():
                ctype = self.value(inner.node).ctype
        finally:
            self.code = kept
        if shape is None or shape.type == "identifier":
            return p.text(shape) if shape is not None else "", ctype
        self.fail(node, f"declaration: {p.shown(node)}")

    @staticmethod
    def _descriptor(node: Node) -> tuple[str, Node | None]:
        if node.type != "type_descriptor":
            return p.text(node), None
        kind = node.child_by_field_name("type")
        return p.text(kind) if kind is not None else p.text(node), node.child_by_field_name("declarator")

    # ---------------------------------------------------------------------------------------- assignment
    def _assignment_expression(self, node: Node, used: bool = True) -> Value:
        op, loc = p.text(p.need(node, "operator", self.code)), self.loc(node)
        left, right = p.need(node, "left", self.code), p.need(node, "right", self.code)
        place = self.place(left)
        with self.aside() as before:
            value = self.value(right)
        place = self.steady(place, before, loc)
        self.out += before
        with self.typed(node):
            if op != "=":
                value = v.arithmetic(op[:-1], self.memory.load(place, loc), value, loc)
            return self.assign(place, value, loc, used)

    def steady(self, place: Place, before: list[Stmt], loc: Loc) -> Place:
        """The place, with its object in a local where statements come between."""
        if not before or isinstance(place, LocalPlace) or isinstance(place.obj, Const):
            return place
        name = self.fresh()
        self.out.append(Assign(name, place.obj, loc))
        return FieldPlace(Local(name, loc), place.owner, place.path)

    def assign(self, place: Place, value: Value, loc: Loc, used: bool) -> Value:
        """Write a value to a place; the value that the assignment has in turn."""
        if used and isinstance(place, FieldPlace):
            value = self.keep(value, loc)
            self.out += self.memory.store(place, value, loc)
            ctype = self.memory.declared_type(place, loc)
            return v.convert(value, ctype, loc) if isinstance(ctype, CType) else value
        self.out += self.memory.store(place, value, loc)
        return self.memory.load(place, loc) if isinstance(place, LocalPlace) else value

    def _update_expression(self, node: Node, used: bool = True) -> Value:
        loc = self.loc(node)
        argument = p.need(node, "argument", self.code)
        op = p.text(p.need(node, "operator", self.code))
        place = self.place(argument)
        with self.typed(node):
            old = self.memory.load(place, loc)
            prefix = p.text(node).startswith(op)
            if used and not prefix:
                old = self.keep(old, loc)
            new = v.arithmetic(op[0], old, v.constant(1, INT, loc), loc)
            assigned = self.assign(place, new, loc, used and prefix)
            return assigned if prefix else old
