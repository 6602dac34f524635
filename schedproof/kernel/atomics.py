# SPDX-License-Identifier: GPL-2.0-only
"""Atomic operations of the kernel: each is one access, whatever its memory order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tree_sitter import Node

from schedproof.kernel import parse as p
from schedproof.kernel import values as v
from schedproof.kernel.expressions import Expressions
from schedproof.kernel.places import LocalPlace, Place
from schedproof.kernel.values import Mismatch, Value
from schedproof.lang.ctypes import INT
from schedproof.lang.syntax import Const, If, Load, Stmt, Store, expressions

Builtin = Callable[[Expressions, Node, Sequence[Node], bool], Value]


def count(e: Expressions, node: Node, args: Sequence[Node], wanted: int) -> None:
    """Refuse a call with another number of arguments."""
    if len(args) != wanted:
        e.fail(node, f"{p.shown(node)}: {wanted} arguments expected")


def target(e: Expressions, node: Node) -> Place:
    """The place that an atomic's first argument points to. A cast to ``void *`` changes nothing."""
    while node.type == "cast_expression" and "".join(p.text(p.need(node, "type", e.code)).split()) == "void*":
        node = p.need(node, "value", e.code)
    if node.type == "pointer_expression" and p.text(node).startswith("&"):
        return e.place(p.need(node, "argument", e.code))
    return e.memory.target(e.value(node), e.loc(node))


def _atomic_read(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    count(e, node, args, 1)
    value = e.memory.load(target(e, args[0]), e.loc(node))
    # An atomic operation is a read at this point: what comes later in the expression cannot change it.
    return value


def atomic_set(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    count(e, node, args, 2)
    place = target(e, args[0])
    with e.aside() as before:
        value = e.value(args[1])
    place = e.steady(place, before, e.loc(node))
    e.out += before
    e.out += e.memory.store(place, value, e.loc(node))
    return Value(Const(0, e.loc(node)), None)


def _atomic_change(op: str, amount: bool, result: str) -> Builtin:
    def lower(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
        """``atomic_add(i, v)``, ``atomic_inc(v)``, ``…_return`` (the new value), ``fetch_…`` (the old one)."""
        count(e, node, args, 2 if amount else 1)
        loc = e.loc(node)
        step = e.keep(e.value(args[0]), loc) if amount else v.constant(1, INT, loc)
        place = target(e, args[-1])
        old = e.memory.load(place, loc)
        if result == "old":
            old = e.keep(old, loc)
        new = v.convert(v.arithmetic(op, old, step, loc), old.number, loc)
        if result in ("new", "zero"):
            new = e.keep(new, loc)
        e.out += e.memory.store(place, new, loc)
        if result == "zero":
            return v.compare("==", new, v.constant(0, INT, loc), loc)
        return {"old": old, "new": new, "": Value(Const(0, loc), None)}[result]
    return lower


def _exchange(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``xchg(ptr, new)``: the old value."""
    count(e, node, args, 2)
    loc = e.loc(node)
    place = target(e, args[0])
    with e.aside() as before:
        new = e.value(args[1])
    place = e.steady(place, before, loc)
    e.out += before
    new = e.keep(new, loc)
    old = e.keep(e.memory.load(place, loc), loc)
    e.out += e.memory.store(place, new, loc)
    return old


def _compare_exchange(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``cmpxchg(ptr, old, new)``: the value that was there."""
    count(e, node, args, 3)
    loc = e.loc(node)
    place = target(e, args[0])
    with e.aside() as before:
        expected, new = (e.keep(x, loc) for x in e.in_order(args[1:]))
    place = e.steady(place, before, loc)
    e.out += before
    was = e.keep(e.memory.load(place, loc), loc)
    if isinstance(place, LocalPlace):
        expected = v.convert(expected, place.ctype, loc)
    elif not was.is_pointer:
        expected = v.convert(expected, was.number, loc)
    test = v.compare("==", was, expected, loc).expr
    e.out.append(If(test, e.memory.store(place, new, loc), (), loc))
    return was


def _exchange_tried(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``try_cmpxchg(ptr, &old, new)``: whether it was ``old``; if not, ``old`` becomes what was there."""
    count(e, node, args, 3)
    loc = e.loc(node)
    place, old = target(e, args[0]), target(e, args[1])
    if not isinstance(old, LocalPlace):
        raise Mismatch("try_cmpxchg with an old value that is no local")
    with e.aside() as before:
        new = e.keep(e.value(args[2]), loc)
    place = e.steady(place, before, loc)
    e.out += before
    was = e.keep(e.memory.load(place, loc), loc)
    expected = v.convert(e.memory.load(old, loc), was.ctype or INT, loc)
    done = e.keep(v.compare("==", was, expected, loc), loc)
    e.out.append(If(done.expr, e.memory.store(place, new, loc), e.memory.store(old, was, loc), loc))
    return done


def _families() -> dict[str, Builtin]:
    """Names that come with prefixes and memory orders."""
    found: dict[str, Builtin] = {}
    for prefix in ("atomic", "atomic_long", "atomic64"):
        for order in ("", "_acquire", "_relaxed"):
            found[f"{prefix}_read{order}"] = _atomic_read
        for order in ("", "_release", "_relaxed"):
            found[f"{prefix}_set{order}"] = atomic_set
        for name, op, amount in (("add", "+", True), ("sub", "-", True), ("inc", "+", False), ("dec", "-", False)):
            found[f"{prefix}_{name}"] = _atomic_change(op, amount, "")
            for order in ("", "_acquire", "_release", "_relaxed"):
                found[f"{prefix}_{name}_return{order}"] = _atomic_change(op, amount, "new")
                found[f"{prefix}_fetch_{name}{order}"] = _atomic_change(op, amount, "old")
            found[f"{prefix}_{name}_and_test"] = _atomic_change(op, amount, "zero")
        for order in ("", "_acquire", "_release", "_relaxed"):
            found[f"{prefix}_xchg{order}"] = _exchange
            found[f"{prefix}_cmpxchg{order}"] = _compare_exchange
    for order in ("", "_acquire", "_release", "_relaxed"):
        found[f"xchg{order}"], found[f"cmpxchg{order}"] = _exchange, _compare_exchange
        found[f"try_cmpxchg{order}"] = _exchange_tried
        for prefix in ("atomic", "atomic_long", "atomic64"):
            found[f"{prefix}_try_cmpxchg{order}"] = _exchange_tried
    return found


BUILTINS: dict[str, Builtin] = _families()

# Operations that read and write in one access; the last statement that they make is, or holds, the write.
ATOMICS = frozenset(n for n, b in BUILTINS.items()
                    if b in (_exchange, _compare_exchange, _exchange_tried) or "_atomic_change" in b.__qualname__)


def joined(made: list[Stmt]) -> list[Stmt]:
    """The statements of an atomic operation, the write at their end marked as part of the same access as the read."""
    read = {e.var for x in made for e in expressions(x) if isinstance(e, Load)}

    def mark(x: Stmt) -> Stmt:
        if isinstance(x, Store) and x.var in read:
            return replace(x, joined=True)
        if isinstance(x, If):
            return replace(x, then=tuple(map(mark, x.then)), orelse=tuple(map(mark, x.orelse)))
        return x

    return [*made[:-1], mark(made[-1])] if made else made
