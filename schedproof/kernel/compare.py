# SPDX-License-Identifier: GPL-2.0-only
"""Whether two functions do the same, decided by Z3 on exact C values and types, never on a model's classes.

Both functions run symbolically on one and the same arbitrary state: every field that a declaration names has any
value of its C type (or of its declared span), every pointer argument is each object of its universe in turn. Calls
into the model's vocabulary are one and the same unknown function of their arguments and of the whole state, so
equal means: the same calls with the same arguments in the same states, the same writes, the same value.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import z3

from schedproof.errors import ModelError, NotExecutable
from schedproof.kernel.arena import RANGES, Arena, Comparison, Outside, Side, field_types, reached, shown
from schedproof.kernel.lockstep import Walk
from schedproof.kernel.rounds import Frames, Half, Rounds, with_heads
from schedproof.lang import terms as t
from schedproof.lang.execute import Endless
from schedproof.lang.paths import Heap, Result, SitePath
from schedproof.lang.world import World
from schedproof.model.instance import Instance

__all__ = ["Comparison", "Side", "compare", "field_types", "reached"]

ROUNDS = 3                 # of a loop without a bound in which a difference is looked for


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
    unknown, atomic = "", _Atomic(arena, left, right)
    for args, told in arena.arguments(a, b):
        found = atomic.same(args, told)
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


class _Atomic:
    """Two functions that are one step each. Loops in them that only a jump ends are gone through round by round."""

    def __init__(self, arena: Arena, left: Side, right: Side):
        self.arena, self.left, self.right = arena, left, right
        self.free: dict[str, str] = {}                     # unknown functions for what is not modelled
        self.rounds: Rounds | None = None                  # once such a loop has been met

    def same(self, args: list[t.Value], told: str) -> Comparison:
        """Compare the two for one combination of arguments."""
        if self.rounds is None:
            try:
                ends = [self._run(world, side, args) for world, side in self._sides()]
                return self._decided(_difference(ends[0], ends[1]), args, told)
            except Endless:
                self.rounds = self._heads()
        why = self.rounds.unequal(args)
        if not why:
            return Comparison("equal")
        found = self._decided(self.rounds.difference(args, ROUNDS), args, told)
        return Comparison("unknown", why) if found.answer == "equal" else found

    def _sides(self) -> list[tuple[World, Side]]:
        return list(zip(self.arena.worlds, (self.left, self.right), strict=True))

    def _heads(self) -> Rounds:
        """Both functions in worlds in which a step ends at the head of each loop that only a jump ends."""
        halves = []
        for world, side in self._sides():
            names = reached(side, self.arena.boundary)
            world = self.arena.world({**world.programs, **{n: with_heads(world.programs[n]) for n in names}})
            halves.append(Half(world, side.name, partial(self._executed, world, side.name)))
        return Rounds((halves[0], halves[1]), self.arena.heap, self.arena.never)

    def _run(self, world: World, side: Side, args: list[t.Value]) -> Result:
        result = self._executed(world, side.name, args, self.arena.heap)
        if result.cuts:
            raise NotExecutable("", 0, f"{side.name} is not atomic")
        return result

    def _executed(self, world: World, name: str, args: Sequence[t.Value], heap: Heap, resume: SitePath = (),
                  saved: Frames = (), given: t.Value = True) -> Result:
        result = Outside(world, self.arena.ranges, splits=False).run(name, args, heap, resume, saved, given)
        self.free |= result.free
        return result

    def _decided(self, difference: t.Value, args: list[t.Value], told: str) -> Comparison:
        """Whether a condition of a difference holds for any input."""
        if difference is False:
            return Comparison("equal")
        arena, asked = self.arena, t.z3_of(difference)
        constants = t.constants_of([asked])
        used = sorted(self.free[name] for name in t.functions_of(asked) & self.free.keys())
        found = arena.solve(asked, arena.limits(constants), constants)
        if found == z3.unsat:
            return Comparison("equal")
        if used:
            return Comparison("unknown", "it depends on what is not modelled: " + ", ".join(used))
        if found == z3.unknown:
            return Comparison("unknown", f"Z3 gave up at {told}")
        found = arena.plain(asked, constants, found)
        values = arena.whole(found, args, self.left.programs[self.left.name].params)
        seen = arena.seen(constants, told, self.left, self.right)
        return Comparison("differs", f"{told}; {shown(found, seen)}", input=values)


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


