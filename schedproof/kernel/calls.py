# SPDX-License-Identifier: GPL-2.0-only
"""Calls: of the model's methods, of the kernel's own vocabulary, of functions that are read from the tree too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tree_sitter import Node

from schedproof.kernel import parse as p
from schedproof.kernel import values as v
from schedproof.kernel.builtins import BUILTINS
from schedproof.kernel.declared import Embedded, Odd, Type
from schedproof.kernel.elements import FUNCTION, function_value
from schedproof.kernel.expressions import Expressions, Signature
from schedproof.kernel.values import Value
from schedproof.lang.ctypes import BOOL, CType
from schedproof.lang.syntax import Call, Const, Do, Free

ANY = Odd("void *")


class Calls(Expressions):
    """Lowers calls."""

    def _call_expression(self, node: Node, used: bool = True) -> Value:
        called = p.need(node, "function", self.code)
        if called.type == "parenthesized_expression":
            called = (p.children(called) or [called])[0]
            if called.type == "identifier" and self.find(p.text(called)) is None:      # (u32)(x)
                kind = self.types.named(p.text(called))
                if isinstance(kind, CType) and not kind.struct:
                    return self._cast_call(node, kind, used)
        if called.type != "identifier" or self.find(p.text(called)) is not None:
            self.fail(node, f"call through a pointer: {p.shown(node)}")
        name = p.text(called)
        args = p.children(p.need(node, "arguments", self.code))
        vocabulary = self.words.vocabulary
        if vocabulary.has_method(name):
            return self.method_call(node, name, args, used)
        if name in vocabulary.noop:
            return self._nothing(node, name, used)
        if name in BUILTINS:
            with self.typed(node):
                return BUILTINS[name](self, node, args, used)
        return self._program_call(node, name, args, used)

    def _cast_call(self, node: Node, kind: CType, used: bool) -> Value:
        """A cast to a typedef's name, which the parser takes for a call."""
        args = p.children(p.need(node, "arguments", self.code))
        if len(args) != 1:
            self.fail(node, f"cast: {p.shown(node)}")
        value = self.value(args[0], used)
        with self.typed(node):
            return v.convert(value, kind, self.loc(node))

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
        if "@".join((name, ",".join(to for _, to in into)) if into else (name,)) not in self.words.vocabulary.callees:
            arg, to = into[0] if into else (node, "a whole object")
            self.fail(arg, f"pointer to {to} as an argument of {name}")
        return self.called(node, name, values, signature.result, used)

    def _program_call(self, node: Node, name: str, args: Sequence[Node], used: bool) -> Value:
        signature = self.services.signature(name, self.code.where)
        values = self.arguments(node, name, args, signature)
        inner = [(x.owner, x.inner) for x in values]
        program, signature = self.services.callee(name, self.code.where, self.loc(node), inner)
        found = self.called(node, program, values, signature.result, used)
        return replace(found, owner=signature.owner, inner=signature.inner) if used else found

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


