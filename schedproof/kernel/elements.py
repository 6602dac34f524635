# SPDX-License-Identifier: GPL-2.0-only
"""Elements of array members, objects around their members, and functions as values.

A model declares elements one by one: ``Link(task_group, cfs_rq, {...}, c="cfs_rq[0]")`` is ``tg->cfs_rq[0]``, the
queue of the group on CPU 0. An index that is none of the declared ones is a fault of the run, as following NULL is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tree_sitter import Node

from schedproof.kernel import parse as p
from schedproof.kernel import values as v
from schedproof.kernel.places import FieldPlace, LocalPlace
from schedproof.kernel.values import Value
from schedproof.lang.ctypes import CType, pointer
from schedproof.lang.syntax import NULL_CODE, Binary, Cond, Const, Expr, Load, Loc
from schedproof.model.domains import Link

if TYPE_CHECKING:
    from schedproof.kernel.expressions import Expressions

FUNCTION = "function"                # what the type of a function's name points to


def element(e: Expressions, node: Node) -> Value:
    """``tg->cfs_rq[cpu]``: an element of an array of pointers that never change."""
    argument, index_node = p.need(node, "argument", e.code), p.need(node, "index", e.code)
    loc = e.loc(node)
    place = e.place(argument)
    if isinstance(place, LocalPlace):
        e.fail(node, f"element of the local {p.shown(argument)}")
    declared = _declared(e, place)
    if not declared:
        e.fail(node, f"element of {place}: {p.shown(node)}")
    _same_type(e, node, place, next(iter(declared.values()))[1])
    with e.aside() as before:
        index = e.value(index_node)
        with e.typed(node):
            number = index.number
    steady = e.steady(place, before, loc)
    assert isinstance(steady, FieldPlace)
    e.out += before
    if isinstance(index.expr, Const) and int(index.expr.value) not in declared:
        e.fail(node, f"element {index.expr.value} of {place}, which the model does not declare")
    if not isinstance(index.expr, Const):
        index = e.once(v.as_number(index, loc), loc)
    ctype = pointer(next(iter(declared.values()))[1].target.ctype)
    found: Expr | None = None
    for at, (name, _) in sorted(declared.items(), reverse=True):
        here = v.compare("==", index, v.constant(at, number, loc), loc).expr
        if found is None:                     # with no other index does it have an object to read from
            obj = steady.obj if here == Const(True, loc) else Cond(here, steady.obj, Const(NULL_CODE, loc), loc)
            found = Load(name, obj, loc, ctype)
        else:
            found = Cond(here, Load(name, steady.obj, loc, ctype), found, loc)
    assert found is not None
    return Value(found, ctype)


def _declared(e: Expressions, place: FieldPlace) -> dict[int, tuple[str, Link]]:
    """The elements of a member that the model declares."""
    found: dict[int, tuple[str, Link]] = {}
    for (owner, path), (name, thing) in e.words.fields.items():
        match = re.fullmatch(r"(.+)\[(\d+)\]", path)
        if match and (owner, match[1]) == (place.owner, place.path) and isinstance(thing, Link):
            found[int(match[2])] = (name, thing)
    return found


def _same_type(e: Expressions, node: Node, place: FieldPlace, link: Link) -> None:
    """Refuse a member that is no array of pointers to what the model says."""
    ctype = e.memory.declared_type(place, e.loc(node))
    struct = link.target.ctype
    if isinstance(ctype, CType):
        fine = ctype.struct == f"{struct} *"
    else:
        fine = getattr(ctype, "text", "") in (f"{struct} **", f"{struct} array")
    if not fine:
        e.fail(node, f"element of {place}, which is no array of pointers to {struct}")


def around(e: Expressions, value: Value, struct: str, member: str, loc: Loc) -> Value | None:
    """``container_of`` of an object that the model has apart from the one it lies in: ``&p->se`` is an entity."""
    name, link = e.words.fields.get((struct, member), ("", None))
    if not isinstance(link, Link) or value.inner or value.ctype is None:
        return None
    if value.ctype.struct != link.target.ctype or struct not in e.words.universes:
        return None
    names = [n for n in link.per.names if isinstance(n, str)]
    if len(names) != len(link.per.names) or len(set(link.to.values())) != len(link.to):
        return None
    inner, ctype = e.once(value, loc), pointer(link.target.ctype)
    # An object that lies in none: the address would be nonsense, so to compute it is a fault, as following NULL is.
    outer: Expr = Load(name, Const(NULL_CODE, loc), loc, ctype)
    for number in reversed(range(len(names))):
        here = Load(name, Const(number, loc), loc, ctype)
        outer = Cond(Binary("==", here, inner.expr, loc), Const(number, loc), outer, loc)
    return Value(outer, pointer(struct))


def function_value(e: Expressions, node: Node) -> Value | None:
    """The name of a function of the model as an argument: a number of its own. None for anything else."""
    if node.type == "pointer_expression" and p.text(node).startswith("&"):
        node = p.need(node, "argument", e.code)
    name = p.text(node)
    if node.type != "identifier" or e.find(name) is not None or name not in e.words.functions:
        return None
    code = int.from_bytes(name.encode(), "big")
    return Value(Const(code, e.loc(node)), CType(f"{name}()", 64, False, FUNCTION))
