# SPDX-License-Identifier: GPL-2.0-only
"""Per-CPU variables, the CPU that runs the code, and a CPU's runqueue.

The CPUs of a model are its objects of ``struct rq``: ``cpu_rq(n)`` is object number n, and ``rq->cpu`` that number.
A per-CPU variable is a field of these objects, declared as ``per=cpu, c="per_cpu(sd_llc_size)"``; the CPU on which
the functions run is a pointer to one of them, declared as ``Pointer(cpu, null=False, c="smp_processor_id")``. What a
model does not declare is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tree_sitter import Node

from schedproof.kernel import parse as p
from schedproof.kernel import values as v
from schedproof.kernel.declared import PER_CPU
from schedproof.kernel.expressions import Expressions
from schedproof.kernel.places import CPU, FieldPlace
from schedproof.kernel.values import Value
from schedproof.lang.ctypes import INT, pointer
from schedproof.lang.syntax import Const, Expr, Load
from schedproof.model.domains import Pointer

Builtin = Callable[[Expressions, Node, Sequence[Node], bool], Value]
PlaceOf = Callable[[Expressions, Node, Sequence[Node]], FieldPlace]

_RUNQUEUES = "runqueues"
_PREFIXES = ("this_cpu_", "__this_cpu_", "raw_cpu_")


def _count(e: Expressions, node: Node, args: Sequence[Node], wanted: int) -> None:
    if len(args) != wanted:
        e.fail(node, f"{p.shown(node)}: {wanted} arguments expected")


def this_cpu(e: Expressions, node: Node) -> Expr:
    """The number of the CPU that runs the code."""
    found = e.words.fields.get(("", "smp_processor_id"))
    if found is None or not isinstance(found[1], Pointer) or found[1].target.ctype != CPU:
        e.fail(node, f"per-CPU variable of the running CPU, which the model does not declare: {p.shown(node)}")
    return Load(found[0], None, e.loc(node), pointer(CPU))


def _number(e: Expressions, node: Node) -> Expr:
    """A CPU's number, as an object of the model."""
    value = e.value(node)
    with e.typed(node):
        value.number                                   # noqa: B018  raises Mismatch for what is no number
        return v.as_number(value, e.loc(node)).expr


def _variable(e: Expressions, node: Node, variable: Node, cpu: Expr) -> FieldPlace:
    """A per-CPU variable of a CPU, or a member of one."""
    while variable.type == "parenthesized_expression" and len(p.children(variable)) == 1:
        variable = p.children(variable)[0]
    if variable.type == "field_expression" and p.text(p.need(variable, "operator", e.code)) == ".":
        inner = _variable(e, node, p.need(variable, "argument", e.code), cpu)
        return inner.below(p.text(p.need(variable, "field", e.code)))
    if variable.type != "identifier" or e.find(p.text(variable)) is not None:
        e.fail(node, f"per-CPU variable: {p.shown(node)}")
    place = FieldPlace(cpu, CPU, f"{PER_CPU}{p.text(variable)})")
    if CPU not in e.words.universes:
        e.fail(node, f"{place}: the model has no CPUs")
    ctype = e.memory.declared_type(place, e.loc(node))         # refuses what the tree does not declare as one
    declared = e.words.fields.get((CPU, place.path), ("", None))[1]
    if isinstance(declared, Pointer) and ctype != pointer(declared.target.ctype):
        e.fail(node, f"{place}, which is no {pointer(declared.target.ctype)} in the tree")
    return place


def _of_this(e: Expressions, node: Node, args: Sequence[Node]) -> FieldPlace:
    return _variable(e, node, args[0], this_cpu(e, node))


def _of_number(e: Expressions, node: Node, args: Sequence[Node]) -> FieldPlace:
    """``per_cpu(x, cpu)``."""
    _count(e, node, args, 2)
    return _variable(e, node, args[0], _number(e, args[1]))


def address(e: Expressions, place: FieldPlace, node: Node) -> Value:
    """``&per_cpu(x, cpu)``: a runqueue is the CPU itself."""
    if place.owner == CPU and place.path == f"{PER_CPU}{_RUNQUEUES})":
        return Value(place.obj, pointer(CPU))
    return e.memory.address(place, e.loc(node))


def _read(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``per_cpu(x, cpu)``, ``this_cpu_read(x)``: a constant of the vocabulary, or the variable of that CPU."""
    if args and p.text(args[0]) in e.words.vocabulary.constants:
        return e.value(args[0])
    if p.text(p.need(node, "function", e.code)) == "per_cpu":
        return e.memory.load(_of_number(e, node, args), e.loc(node))
    _count(e, node, args, 1)
    return e.memory.load(_of_this(e, node, args), e.loc(node))


def _write(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``this_cpu_write(x, value)``."""
    _count(e, node, args, 2)
    loc = e.loc(node)
    with e.aside() as before:
        value = e.value(args[1])
    place = e.steady(_of_this(e, node, args), before, loc)
    e.out += before
    e.out += e.memory.store(place, value, loc)
    return Value(Const(0, loc), None)


def _change(op: str, amount: bool) -> Builtin:
    def lower(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
        """``this_cpu_add(x, value)``, ``this_cpu_inc(x)``."""
        _count(e, node, args, 2 if amount else 1)
        loc = e.loc(node)
        with e.aside() as before:
            step = e.value(args[1]) if amount else v.constant(1, INT, loc)
        place = e.steady(_of_this(e, node, args), before, loc)
        e.out += before
        e.out += e.memory.store(place, v.arithmetic(op, e.memory.load(place, loc), step, loc), loc)
        return Value(Const(0, loc), None)
    return lower


def _pointer(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``this_cpu_ptr(&x)``, ``per_cpu_ptr(&x, cpu)``; a pointer from alloc_percpu() is refused."""
    many = p.text(p.need(node, "function", e.code)) == "per_cpu_ptr"
    _count(e, node, args, 2 if many else 1)
    given = args[0]
    if given.type != "pointer_expression" or p.text(p.need(given, "operator", e.code)) != "&":
        e.fail(node, f"per-CPU memory that is no variable: {p.shown(node)}")
    cpu = _number(e, args[1]) if many else this_cpu(e, node)
    return address(e, _variable(e, node, p.need(given, "argument", e.code), cpu), node)


def _processor(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``smp_processor_id()``."""
    _count(e, node, args, 0)
    return Value(this_cpu(e, node), INT)


# Calls that stand for a variable, as ``per_cpu(x, cpu) = 1`` does.
PLACES: dict[str, PlaceOf] = {"per_cpu": _of_number}

BUILTINS: dict[str, Builtin] = {
    "per_cpu": _read, "per_cpu_ptr": _pointer, "this_cpu_ptr": _pointer, "raw_cpu_ptr": _pointer,
    "smp_processor_id": _processor, "raw_smp_processor_id": _processor, "__smp_processor_id": _processor,
    **{f"{prefix}read": _read for prefix in _PREFIXES}, **{f"{prefix}write": _write for prefix in _PREFIXES},
    **{f"{prefix}{name}": _change(op, amount) for prefix in _PREFIXES
       for name, op, amount in (("add", "+", True), ("sub", "-", True), ("inc", "+", False), ("dec", "-", False))}}
