# SPDX-License-Identifier: GPL-2.0-only
"""Calls: of the model's methods, of the kernel's own vocabulary, of functions that are read from the tree too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tree_sitter import Node

from schedproof.kernel import parse as p
from schedproof.kernel import percpu
from schedproof.kernel import values as v
from schedproof.kernel.atomics import ATOMICS, joined
from schedproof.kernel.builtins import BUILTINS
from schedproof.kernel.declared import Embedded, Odd, Type
from schedproof.kernel.elements import FUNCTION, function_value
from schedproof.kernel.expressions import Expressions, Signature
from schedproof.kernel.places import FieldPlace, Place
from schedproof.kernel.values import Value
from schedproof.lang.ctypes import BOOL, LONG, CType
from schedproof.lang.syntax import Call, Const, Do, Free, Local

ANY = Odd("void *")


class Calls(Expressions):
    """Lowers calls."""

    idle = 0                         # results so far of functions that do nothing for the model

    def _call_expression(self, node: Node, used: bool = True) -> Value:
        called = p.need(node, "function", self.code)
        if called.type == "parenthesized_expression":
            called = (p.children(called) or [called])[0]
            kind = self.spelled(p.text(called))
            given = p.children(p.need(node, "arguments", self.code))
            if kind is not None and len(given) == 1:               # (number_t)(x) is a call to the grammar
                with self.typed(node):
                    return v.cast(self.value(given[0], used), kind, self.loc(node))
        if called.type == "call_expression" and p.text(p.need(called, "function", self.code)) == "static_call":
            return self._static_call(node, called, used)
        if called.type != "identifier" or self.find(p.text(called)) is not None:
            self.fail(node, f"call through a pointer: {p.shown(node)}")
        name = p.text(called)
        args = p.children(p.need(node, "arguments", self.code))
        vocabulary = self.words.vocabulary
        if vocabulary.has_method(name):
            return self.method_call(node, name, args, used)
        if name in vocabulary.noop:
            return self._nothing(node, name, used)
        if name in vocabulary.constants:
            return self._constant(node, name, args)
        if name in BUILTINS:
            start = len(self.out)
            with self.typed(node):
                value = BUILTINS[name](self, node, args, used)
            if name in ATOMICS:
                self.out[start:] = joined(self.out[start:])
            return value
        return self._program_call(node, name, args, used)

    def _static_call(self, node: Node, called: Node, used: bool) -> Value:
        """``static_call(name)(arguments)``: what is patched in is the vocabulary's to say."""
        args = p.children(p.need(called, "arguments", self.code))
        name = p.text(args[0]) if len(args) == 1 else ""
        vocabulary = self.words.vocabulary
        if vocabulary.has_method(name):
            return self.method_call(node, name, p.children(p.need(node, "arguments", self.code)), used)
        if name in vocabulary.noop:
            return self._nothing(node, name, used)
        self.fail(node, f"static call {name}, which the model does not declare: {p.shown(node)}")

    def _constant(self, node: Node, name: str, args: Sequence[Node]) -> Value:
        """A function whose result the model holds constant; its arguments are evaluated for what they do."""
        self.in_order(args)
        signature, loc = self.services.signature(name, self.code.where), self.loc(node)
        value = v.constant(self.words.vocabulary.constants[name], LONG, loc)
        if signature is None or not isinstance(signature.result, CType) or signature.result.struct:
            self.fail(node, f"result of {name}, which the model holds constant and has no known type")
        return v.convert(value, signature.result, loc)

    def call_place(self, node: Node) -> FieldPlace:
        """A call that stands for a variable."""
        name = p.text(p.need(node, "function", self.code))
        if name not in percpu.PLACES or self.find(name) is not None:
            self.fail(node, f"call expression as a place: {p.shown(node)}")
        return percpu.PLACES[name](self, node, p.children(p.need(node, "arguments", self.code)))

    def address_of(self, place: Place, node: Node) -> Value:
        if isinstance(place, FieldPlace):
            return percpu.address(self, place, node)
        return super().address_of(place, node)

    def _nothing(self, node: Node, name: str, used: bool) -> Value:
        """A function that does nothing for the model; its arguments are not evaluated."""
        loc = self.loc(node)
        if not used:
            return Value(Const(0, loc), None)
        if re.fullmatch(r"trace_\w+_enabled", name):                  # made by DECLARE_TRACE
            return Value(Free(f"result of {name}", BOOL, loc), BOOL, True)
        signature = self.services.signature(name, self.code.where)
        if signature is None or not isinstance(signature.result, CType):
            self.fail(node, f"result of {name}, which does nothing for the model and has no known type")
        self.idle += 1                                 # each call may have another result
        why = f"result of {name}" + (f", number {self.idle}" if self.idle > 1 else "")
        return Value(Free(why, signature.result, loc), signature.result)

    def method_call(self, node: Node, name: str, args: Sequence[Node], used: bool = True) -> Value:
        """A call of the model's method of that name."""
        signature = self.services.signature(name, self.code.where)
        if signature is None and not args:             # an object-like macro, as current is for get_current()
            macro = self.services.sources.macro(name, self.code.where)
            inner = re.fullmatch(r"(\w+)\s*\(\s*\)", macro.body) if macro is not None else None
            signature = self.services.signature(inner[1], self.code.where) if inner is not None else None
        if signature is None:
            self.fail(node, f"call of {name}: the tree has no declaration of it")
        values = self.arguments(node, name, args, signature, outside=True)
        into: list[tuple[Node, str]] = []              # arrive as the objects, where the model says so
        for value, arg, (_, declared) in zip(values, args, signature.params, strict=True):
            assert value.ctype is not None
            if value.inner:
                into.append((arg, f"{value.owner}.{value.inner}"))
            elif declared == ANY:
                into.append((arg, value.ctype.struct))
            elif value.is_pointer and value.ctype.struct not in (*self.words.universes, FUNCTION):
                self.fail(arg, f"pointer to {value.ctype.struct}, of which the model has no objects, for {name}")
        vocabulary = self.words.vocabulary
        key = f"{name}@{','.join(to for _, to in into)}" if into else name
        if key not in vocabulary.callees:
            arg, to = into[0] if into else (node, "a whole object")
            self.fail(arg, f"pointer to {to} as an argument of {name}")
        found = self.called(node, vocabulary.method(key), values, signature.result, used)
        return self._result(node, name, found) if used and name in vocabulary.results else found

    def _result(self, node: Node, name: str, value: Value) -> Value:
        """The result of a method that points into an object, to the member that the model says."""
        struct, _, member = self.words.vocabulary.results[name].partition(".")
        with self.typed(node):
            into = self.memory.address(FieldPlace(value.expr, struct, member), self.loc(node))
            if not value.is_pointer or into.ctype != value.ctype:
                self.fail(node, f"result of {name}, a {value.ctype}: {member} of {struct} has the address of a "
                                f"{into.ctype}")
        return replace(into, maybe=True)

    def _program_call(self, node: Node, name: str, args: Sequence[Node], used: bool) -> Value:
        signature = self.services.signature(name, self.code.where)
        values = self.arguments(node, name, args, signature)
        for value, arg in zip(values, args, strict=True):
            if value.inner and value.maybe:
                self.fail(arg, f"pointer to {value.inner} of {value.owner}, or NULL, as an argument of {name}")
        inner = [(x.owner, x.inner) for x in values]
        program, signature = self.services.callee(name, self.code.where, self.loc(node), inner)
        for number, value in enumerate(values):
            if number in signature.within and isinstance(value.expr, Local) and not value.inner:
                self.lies_in(value.expr.name, *signature.within[number])
        found = self.called(node, program, values, signature.result, used)
        return replace(found, owner=signature.owner, inner=signature.inner, maybe=signature.maybe) if used else found

    def arguments(self, node: Node, name: str, args: Sequence[Node], signature: Signature | None,
                  outside: bool = False) -> list[Value]:
        """The arguments, converted to the parameters' types.

        A callee that is not looked into, ``outside``, takes functions and pointers to anything, too.
        """
        values = self.in_order(args, (lambda n: function_value(self, n) or self.value(n)) if outside else None)
        if signature is None or signature.variadic:
            return values
        if len(values) != len(signature.params):
            self.fail(node, f"call of {name} with {len(values)} arguments instead of {len(signature.params)}")
        found = []
        for value, arg, (param, ctype) in zip(values, args, signature.params, strict=True):
            if outside and isinstance(ctype, Odd) and value.is_pointer and value.ctype is not None and (
                    (value.ctype.struct == FUNCTION) is (ctype != ANY)):
                found.append(value)
                continue
            if not isinstance(ctype, CType):
                self.fail(arg, f"argument {param} of {name}: {p.shown(arg)}")
            with self.typed(arg):
                found.append(v.convert(value, ctype, self.loc(arg)))
        return found

    def called(self, node: Node, name: str, values: Sequence[Value], result: Type, used: bool) -> Value:
        """A call whose result, if any, is put into a local at once."""
        loc = self.loc(node)
        if isinstance(result, (Embedded, Odd)):
            self.fail(node, f"result of {name}: {getattr(result, 'text', 'a struct')}")
        call = Call(name, tuple(x.expr for x in values), loc, result)
        if result is None or not used:
            self.out.append(Do(call, loc))
            return Value(Const(0, loc), None)
        return self.keep(Value(call, result), loc)


