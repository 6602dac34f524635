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
from schedproof.kernel.builtins import BUILTINS
from schedproof.kernel.declared import Embedded, Odd, Type
from schedproof.kernel.expressions import Expressions, Signature
from schedproof.kernel.places import FieldPlace, Place
from schedproof.kernel.values import Value
from schedproof.lang.ctypes import LONG, CType
from schedproof.lang.syntax import Call, Const, Do, Free, Local


class Calls(Expressions):
    """Lowers calls."""

    def _call_expression(self, node: Node, used: bool = True) -> Value:
        called = p.need(node, "function", self.code)
        if called.type == "parenthesized_expression":
            called = (p.children(called) or [called])[0]
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
            with self.typed(node):
                return BUILTINS[name](self, node, args, used)
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
        signature = self.services.signature(name, self.code.where)
        if signature is None or not isinstance(signature.result, CType):
            self.fail(node, f"result of {name}, which does nothing for the model and has no known type")
        return Value(Free(f"result of {name}", signature.result, loc), signature.result)

    def method_call(self, node: Node, name: str, args: Sequence[Node], used: bool = True) -> Value:
        """A call of the model's method of that name."""
        signature = self.services.signature(name, self.code.where)
        if signature is None and not args:             # an object-like macro, as current is for get_current()
            macro = self.services.sources.macro(name, self.code.where)
            inner = re.fullmatch(r"(\w+)\s*\(\s*\)", macro.body) if macro is not None else None
            signature = self.services.signature(inner[1], self.code.where) if inner is not None else None
        if signature is None:
            self.fail(node, f"call of {name}: the tree has no declaration of it")
        values = self.arguments(node, name, args, signature)
        for value, arg in zip(values, args, strict=True):
            if value.inner:                            # arrives as the object, where the model says so
                if f"{name}@{value.owner}.{value.inner}" not in self.words.vocabulary.callees:
                    self.fail(arg, f"pointer to {value.inner} of {value.owner} as an argument of {name}")
            elif value.is_pointer and value.ctype is not None and value.ctype.struct not in self.words.universes:
                self.fail(arg, f"pointer to {value.ctype.struct}, of which the model has no objects, for {name}")
        return self.called(node, name, values, signature.result, used)

    def _program_call(self, node: Node, name: str, args: Sequence[Node], used: bool) -> Value:
        signature = self.services.signature(name, self.code.where)
        values = self.arguments(node, name, args, signature)
        inner = [(x.owner, x.inner) for x in values]
        program, signature = self.services.callee(name, self.code.where, self.loc(node), inner)
        for number, value in enumerate(values):
            if number in signature.within and isinstance(value.expr, Local) and not value.inner:
                self.lies_in(value.expr.name, *signature.within[number])
        found = self.called(node, program, values, signature.result, used)
        return replace(found, owner=signature.owner, inner=signature.inner) if used else found

    def arguments(self, node: Node, name: str, args: Sequence[Node], signature: Signature | None) -> list[Value]:
        """The arguments, converted to the parameters' types."""
        values = self.in_order(args)
        if signature is None or signature.variadic:
            return values
        if len(values) != len(signature.params):
            self.fail(node, f"call of {name} with {len(values)} arguments instead of {len(signature.params)}")
        found = []
        for value, arg, (param, ctype) in zip(values, args, signature.params, strict=True):
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


