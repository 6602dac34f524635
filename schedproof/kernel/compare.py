# SPDX-License-Identifier: GPL-2.0-only
"""Whether two functions do the same, decided by Z3 on exact C values and types, never on a model's classes.

Both functions run symbolically on one and the same arbitrary state: every field that a declaration names has any
value of its C type (or of its declared span), every pointer argument is each object of its universe in turn. Calls
into the model's vocabulary are one and the same unknown function of their arguments and of the whole state, so
equal means: the same calls with the same arguments in the same states, the same writes, the same value.
"""

from __future__ import annotations

import z3

from schedproof.errors import ModelError, NotExecutable
from schedproof.kernel.arena import RANGES, Arena, Comparison, Outside, Side, field_types, reached, shown
from schedproof.kernel.lockstep import Walk
from schedproof.lang import terms as t
from schedproof.lang.paths import Result
from schedproof.lang.world import World
from schedproof.model.instance import Instance

__all__ = ["Comparison", "Side", "compare", "reached"]


def compare(instance: Instance, left: Side, right: Side, spans: bool = False) -> Comparison:
    """Compare two functions of the same name. ``spans`` looks at fields within their declared spans only.

    ``instance`` gives the universes, links and switches. Raises nothing: what cannot be run is ``unknown``.
    """
    try:
        changed = _retyped(left, right)
        if changed:
            return Comparison("unknown", changed)
        narrow, whole = _compare(instance, left, right, True)       # a stepped function: only within its spans
        if spans or whole or narrow.answer == "differs":
            return narrow
        wide, _ = _compare(instance, left, right, False)
        if wide.answer != "equal" and narrow.answer == "equal":
            return Comparison("equal", within=", ".join(x for x in (RANGES, narrow.within) if x))
        return narrow if wide.answer == "unknown" else wide
    except (ModelError, NotExecutable) as error:
        return Comparison("unknown", str(error))


def _compare(instance: Instance, left: Side, right: Side, spans: bool) -> tuple[Comparison, bool]:
    """The answer, and whether it holds for all values of the C types."""
    a, b = left.programs[left.name], right.programs[right.name]
    if len(a.params) != len(b.params):
        return Comparison("differs", f"{len(a.params)} and {len(b.params)} parameters"), True
    for param, one, other in zip(a.params, a.types, b.types, strict=False):
        if one is not None and other is not None and one.struct != other.struct:
            return Comparison("unknown", f"the type of the parameter {param} changes from {one} to {other}"), True
    arena = Arena(instance, left, right, spans)
    if arena.stepped:
        return Walk(arena, left, right).answer(), True
    unknown = ""
    for args, told in arena.arguments(a, b):
        found = _same(arena, left, right, args, told)
        if found.answer == "differs":
            return found, not arena.narrowed
        unknown = unknown or found.detail
    return Comparison("unknown", unknown) if unknown else Comparison("equal", within=arena.fixed), not arena.narrowed


def _retyped(left: Side, right: Side) -> str:
    """The field that the two sides read with different C types, in words; such a field is not one and the same."""
    one, other = ({n: c for n, c in field_types(side.programs).items() if not c.struct} for side in (left, right))
    for name in sorted(one.keys() & other.keys()):
        if one[name] != other[name]:
            return f"the type of the field behind {name} changes from {one[name]} to {other[name]}"
    return ""


def _same(arena: Arena, left: Side, right: Side, args: list[t.Value], told: str) -> Comparison:
    ends = [_run(arena, world, side, args) for world, side in zip(arena.worlds, (left, right), strict=True)]
    difference = _difference(ends[0], ends[1])
    if difference is False:
        return Comparison("equal")
    constants = t.constants_of([difference])
    free = {**ends[0].free, **ends[1].free}
    used = sorted(free[name] for name in t.functions_of(t.z3_of(difference)) & free.keys())
    asked = t.z3_of(difference)
    limits = arena.limits(constants)
    found = arena.solve(asked, limits, constants)
    if found == z3.unsat:
        return Comparison("equal")
    if used:
        return Comparison("unknown", "it depends on what is not modelled: " + ", ".join(used))
    if found == z3.unknown:
        return Comparison("unknown", f"Z3 gave up at {told}")
    found = arena.plain(asked, constants, found)
    values = arena.whole(found, args, left.programs[left.name].params)
    seen = arena.seen(constants, told, left, right)
    return Comparison("differs", f"{told}; {shown(found, seen)}", input=values)


def _run(arena: Arena, world: World, side: Side, args: list[t.Value]) -> Result:
    result = Outside(world, arena.ranges, splits=False).run(side.name, args, arena.heap)
    if result.cuts:
        raise NotExecutable("", 0, f"{side.name} is not atomic")
    return result


def _difference(a: Result, b: Result) -> t.Value:
    """The condition under which two runs of the same state differ."""
    faults = [t.or_(*(f.guard for f in r.faults)) for r in (a, b)]
    parts: list[t.Value] = [t.not_(t.equal(faults[0], faults[1]))]
    fine = t.and_(t.not_(faults[0]), t.not_(faults[1]))
    if a.end is not None and b.end is not None:
        for key, value in a.end.heap.items():
            if not t.same(value, b.end.heap[key]):
                parts.append(t.and_(fine, t.not_(t.equal(value, b.end.heap[key]))))
        if (a.value is None) != (b.value is None):
            return True
        if a.value is not None and b.value is not None:
            parts.append(t.and_(fine, t.not_(t.equal(a.value, b.value))))
    elif (a.end is None) != (b.end is None):
        parts.append(fine)
    return t.simplify(t.or_(*parts))


