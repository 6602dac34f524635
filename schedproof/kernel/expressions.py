# SPDX-License-Identifier: GPL-2.0-only
"""C expressions to expressions of the shared form, with the statements that have to run before them.

Operands are evaluated from left to right. A call stands alone in a statement of its own; whatever was evaluated
before it in the same expression is kept in a fresh local, so that the call cannot change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tree_sitter import Node

from schedproof.kernel import parse as p
from schedproof.kernel import values as v
from schedproof.kernel.declared import Odd, Type
from schedproof.kernel.elements import element
from schedproof.kernel.lowering import Bound, LocalStruct, Lowering, Services, Signature, Unusable
from schedproof.kernel.places import FieldPlace, LocalPlace, Place
from schedproof.kernel.values import Mismatch, Value
from schedproof.lang.ctypes import INT, LONG, ULONG, CType
from schedproof.lang.syntax import Assign, Binary, Const, Expr, If, Loc, Local, Stmt, Unary

__all__ = ["Bound", "Expressions", "LocalStruct", "Services", "Signature", "Unusable"]

_COMPARE = ("==", "!=", "<", "<=", ">", ">=")


class Expressions(Lowering):
    """Lowers expressions; ``out`` takes the statements that come before the value."""

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
        if isinstance(local, Unusable | LocalStruct):
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
            if isinstance(local, Unusable | LocalStruct):
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

    def _member(self, node: Node) -> Place:
        argument = p.need(node, "argument", self.code)
        name = p.text(p.need(node, "field", self.code))
        if p.text(p.need(node, "operator", self.code)) == "->":
            return self.memory.target(self.value(argument), self.loc(node)).below(name)
        struct = self.local_struct(argument)
        if struct is not None:
            inner = self.member_of(node, struct, name)
            if isinstance(inner, LocalStruct):
                self.fail(node, f"use of {p.shown(node)}, a struct")
            return inner
        base = self.place(argument)
        if isinstance(base, LocalPlace):
            self.fail(node, f"member of the local {p.shown(argument)}")
        if self.memory.link(base) is not None:                       # an embedded struct that is an object of its own
            return self.memory.target(self.memory.address(base, self.loc(node)), self.loc(node)).below(name)
        return base.below(name)

    def _subscript_expression(self, node: Node) -> Value:
        return element(self, node)

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

    # ------------------------------------------------------------------------------------- local structs
    def local_struct(self, node: Node) -> LocalStruct | None:
        """The local struct that an expression names, or None."""
        if node.type == "parenthesized_expression" and len(p.children(node)) == 1:
            return self.local_struct(p.children(node)[0])
        if node.type == "identifier":
            found = self.find(p.text(node))
            return found if isinstance(found, LocalStruct) else None
        if node.type == "field_expression" and p.text(p.need(node, "operator", self.code)) == ".":
            outer = self.local_struct(p.need(node, "argument", self.code))
            if outer is not None:
                inner = self.member_of(node, outer, p.text(p.need(node, "field", self.code)))
                return inner if isinstance(inner, LocalStruct) else None
        return None

    def _unary_expression(self, node: Node) -> Value:
        return self._unary(node, self.value(p.need(node, "argument", self.code)))

    def _unary(self, node: Node, operand: Value) -> Value:
        op, loc = p.text(p.need(node, "operator", self.code)), self.loc(node)
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
        if kind == Odd("void *") and value.is_pointer:
            return value                             # still known to point to what it does
        if not isinstance(kind, CType):
            self.fail(node, f"cast: {p.shown(node)}")
        with self.typed(node):
            if (kind.struct and value.is_pointer and not value.inner and value.ctype is not None
                    and value.ctype.struct != kind.struct and self.memory.same_object(value.ctype.struct, kind.struct)):
                return self._first_member(value, value.ctype.struct, kind, self.loc(node))
            return v.cast(value, kind, self.loc(node))

    def _first_member(self, value: Value, struct: str, kind: CType, loc: Loc) -> Value:
        """A pointer to a struct that begins with another one, as a pointer to that one, or the other way round."""
        if struct in self.words.universes and kind.struct in self.words.universes:      # two objects to the model
            first = self.types.first_member(struct)
            if first is None or first[1] != kind.struct or self.memory.link(FieldPlace(value.expr, struct, first[0])) \
                    is None:
                raise Mismatch(f"a pointer to {struct} used as one to {kind.struct}")
            return self.memory.address(FieldPlace(value.expr, struct, first[0]), loc)
        return replace(value, ctype=kind)

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
        given = self.spelled(self.code.typeofs[words])
        if given is not None:
            if shape is None or shape.type == "identifier":
                return p.text(shape) if shape is not None else "", given
            self.fail(node, f"declaration: {p.shown(node)}")
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

    def spelled(self, text: str) -> CType | None:
        """The type that a text such as ``u32`` or ``struct entity *`` names; None for a value or a struct."""
        words, stars = text.replace("*", " ").split(), text.count("*")
        if not words or not all(w.isidentifier() for w in words) or self.find(words[0]) is not None:
            return None
        named = self.types.named(" ".join(words))
        found = self.types.pointed(named, stars, text) if named is not None else None
        return found if isinstance(found, CType) else None

    def _sizeof_expression(self, node: Node) -> Value:
        """``sizeof``, of numbers and pointers. What stands in it is never evaluated."""
        kind, operand = p.part(node, "type"), p.part(node, "value")
        found: Type = None
        if kind is not None:
            found = self.type_of(kind)
        elif operand is not None:
            inner = operand
            while inner.type == "parenthesized_expression" and len(p.children(inner)) == 1:
                inner = p.children(inner)[0]
            if p.text(inner) in self.code.typeofs:
                found = self.declared(inner, p.text(inner), None)[1]
            else:
                found = self.spelled(p.text(inner))
            if found is None:
                with self.aside():
                    found = self.value(inner).ctype
        if not isinstance(found, CType) or ":" in found.name:
            self.fail(node, f"sizeof expression: {p.shown(node)}")
        bits = 64 if found.struct else 8 if found.name == "bool" else found.bits
        return v.constant(bits // 8, ULONG, self.loc(node))

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
        structs = self.local_struct(left), self.local_struct(right)
        if structs[0] is not None and structs[1] is not None and op == "=" and not used:
            self.copy(node, structs[0], structs[1])
            return Value(Const(0, loc), None)
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
        argument = p.need(node, "argument", self.code)
        around: list[Node] = []                # the grammar takes -x++ for (-x)++
        while argument.type == "unary_expression":
            around.append(argument)
            argument = p.need(argument, "argument", self.code)
        value = self._update(node, argument, used or bool(around))
        for outer in reversed(around):
            value = self._unary(outer, value)
        return value

    def _update(self, node: Node, argument: Node, used: bool) -> Value:
        loc = self.loc(node)
        sign = p.need(node, "operator", self.code)
        prefix = sign.start_byte == node.start_byte
        place = self.place(argument)
        with self.typed(node):
            old = self.memory.load(place, loc)
            if used and not prefix:
                old = self.keep(old, loc)
            new = v.arithmetic(p.text(sign)[0], old, v.constant(1, INT, loc), loc)
            assigned = self.assign(place, new, loc, used and prefix)
            return assigned if prefix else old
