# SPDX-License-Identifier: GPL-2.0-only
"""Two functions with loops that only a jump ends, as a waiter's ``for (;;)``, compared round by round.

Such a loop cannot be run to its end. So a step ends at the head of each of its rounds, and the two functions are taken
through the same steps: from the beginning, and from the head of each loop with any state and any locals. Where each
step of the one does what the same step of the other does, and both go on at the same heads with equal states, the two
functions do the same, whatever the number of rounds.

Where that cannot be shown the functions may still be equal; a difference is looked for among the runs that end after
a few rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import z3

from schedproof.lang import syntax as s
from schedproof.lang import terms as t
from schedproof.lang.normal import live_after
from schedproof.lang.paths import UNSURE, CutRecord, Heap, Result, SitePath, unsure
from schedproof.lang.world import World, is_site

Frames = tuple[Mapping[str, t.Value], ...]
Spot = tuple[int, str]                       # a local that lives across a head: (number of its frame, name)
MOST_STEPS = 24                              # until what is known at the heads has to stay as it is


def with_heads(program: s.Program) -> s.Program:
    """The program with a cut at the head of each loop that only a jump ends."""
    return replace(program, grain="blocking", body=_cut(program.body))


def _cut(body: tuple[s.Stmt, ...]) -> tuple[s.Stmt, ...]:
    found: list[s.Stmt] = []
    for x in body:
        if isinstance(x, s.If):
            x = replace(x, then=_cut(x.then), orelse=_cut(x.orelse))
        elif isinstance(x, s.While):
            head = (s.Cut(None, x.loc),) if isinstance(x.test, s.Const) and x.test.value else ()
            x = replace(x, body=(*head, *_cut(x.body)), step=_cut(x.step))
        elif isinstance(x, s.For):
            x = replace(x, body=_cut(x.body))
        found.append(x)
    return tuple(found)


@dataclass
class Half:
    """One of the two functions, in a world in which it has heads. ``run(args, heap, resume, saved, given)``."""

    world: World
    name: str
    run: Callable[[Sequence[t.Value], Heap, SitePath, Frames, t.Value], Result]

    def __post_init__(self) -> None:
        self.live: dict[tuple[str, int], frozenset[str]] = {}
        for name in self.world.cutting:
            program = self.world.programs[name]
            alive = live_after(program, lambda x: is_site(x, self.world.cutting))
            for x in s.statements(program.body):
                if id(x) in alive:
                    self.live[name, self.world.sites[id(x)]] = alive[id(x)]

    def saved(self, record: CutRecord) -> Frames:
        """The locals of a head that are read behind it."""
        return tuple({n: UNSURE if unsure(v) else v for n, v in frame.items() if n in self.live[place]}
                     for place, frame in zip(record.site, record.saved, strict=True))


@dataclass
class _Head:
    """A pair of heads, and what is known of the locals there: a number, or a constant that stands for any."""

    sites: tuple[SitePath, SitePath]
    frames: tuple[list[dict[str, t.Value]], list[dict[str, t.Value]]]
    own: set[Spot] = field(default_factory=set)          # locals that differ between the two
    partners: tuple[list[dict[str, str]], list[dict[str, str]]] = ([], [])      # of locals that only one side has

    def partner(self, side: int, frame: int, name: str) -> str:
        """What the other side calls a local: the same, unless only the name is another one."""
        return self.partners[side][frame].get(name, name) if frame < len(self.partners[side]) else name

    @property
    def saved(self) -> tuple[Frames, Frames]:
        return tuple(self.frames[0]), tuple(self.frames[1])


class Rounds:
    """``never(condition)`` says whether Z3 shows that a condition holds for no input."""

    def __init__(self, halves: tuple[Half, Half], heap: Heap, never: Callable[[t.Value], bool]):
        self.halves, self.heap, self.never = halves, heap, never

    # ------------------------------------------------------------------------------------- step by step
    def unequal(self, args: Sequence[t.Value]) -> str:
        """Why the functions are not shown to be equal; nothing where they are."""
        self.heads: list[_Head] = []
        todo: list[_Head | None] = [None]
        for _ in range(MOST_STEPS):
            if not todo:
                return ""
            head = todo.pop(0)
            resume, saved = (head.sites, head.saved) if head is not None else (((), ()), ((), ()))
            results = [half.run(args, self.heap, resume[i], saved[i], True) for i, half in enumerate(self.halves)]
            reason, changed = self._step(results)
            if reason:
                return reason
            for one in changed:
                if not any(one is other for other in todo):
                    todo.append(one)
        return "what holds at the heads of the loops was not found"

    def _step(self, results: list[Result]) -> tuple[str, list[_Head]]:
        """Why two steps are not the same; and the heads of which less is known after them than before."""
        left, right = results
        where = self._where(left)
        faults = [t.or_(*(f.guard for f in r.faults)) for r in results]
        fine = t.and_(t.not_(faults[0]), t.not_(faults[1]))
        ends = [r.end.pc if r.end is not None else False for r in results]
        parts: list[t.Value] = [t.not_(t.equal(faults[0], faults[1])), t.and_(fine, t.not_(t.equal(ends[0], ends[1])))]
        if left.end is not None and right.end is not None:
            given = t.and_(fine, ends[0], ends[1])
            parts += [t.and_(given, x) for x in unlike(left.end.heap, right.end.heap)]
            if (left.value is None) != (right.value is None):
                return f"{where}: one of them returns no value", []
            if left.value is not None and right.value is not None:
                parts.append(t.and_(given, t.not_(t.equal(left.value, right.value))))
        met = [sorted({c.site for c in r.cuts}) for r in results]
        if len(met[0]) != len(met[1]):
            return f"{where}: the loops of the two do not correspond", []
        arrivals: list[tuple[_Head, t.Value, list[Frames]]] = []
        for sites in zip(*met, strict=True):
            head = next((h for h in self.heads if h.sites == sites), None)
            if head is None:
                if any(a == b for h in self.heads for a, b in zip(h.sites, sites, strict=True)):
                    return f"{where}: the loops of the two do not correspond", []
                head = _Head((sites[0], sites[1]), ([], []))
            records = [[c for c in r.cuts if c.site == site] for r, site in zip(results, sites, strict=True)]
            guards = [t.or_(*(c.guard for c in found)) for found in records]
            parts.append(t.and_(fine, t.not_(t.equal(guards[0], guards[1]))))
            given = t.and_(fine, guards[0], guards[1])
            heaps: list[Heap] = [_merged([(c.guard, c.heap) for c in found]) for found in records]
            parts += [t.and_(given, x) for x in unlike(heaps[0], heaps[1])]
            frames: list[Frames] = [tuple(_merged([(c.guard, half.saved(c)[i]) for c in found])
                                          for i in range(len(found[0].site)))
                      for half, found in zip(self.halves, records, strict=True)]
            arrivals.append((head, given, frames))
        if not self.never(t.or_(*parts)):
            return f"{where}: the two do not do the same from there, in one round", []
        return "", [head for head, given, frames in arrivals if self._arrive(head, given, frames)]

    def _arrive(self, head: _Head, given: t.Value, frames: list[Frames]) -> bool:
        """Take in what the locals are when a head is reached once more; true when less is known then."""
        new = not any(head is h for h in self.heads)
        if new:
            self.heads.append(head)
            head.partners = _partners(frames)
            for side in (0, 1):
                head.frames[side].extend({} for _ in frames[side])
        number, changed = self.heads.index(head), new
        for side, other in ((0, 1), (1, 0)):
            for i, frame in enumerate(frames[side]):
                for name, value in frame.items():
                    known = head.frames[side][i].get(name)
                    if known is not None and (known is UNSURE or t.known(known) and t.same(known, value)):
                        continue
                    theirs = head.partner(side, i, name)
                    one = theirs if side else name             # its name in both
                    partner = frames[other][i].get(theirs) if i < len(frames[other]) else None
                    shared = partner is not None and (i, one) not in head.own and self._like(given, value, partner)
                    if value is UNSURE or known is None and t.known(value):
                        put = value
                    elif shared:
                        put = _any(f"{one}@{number}.{i}", value)
                    else:
                        head.own.add((i, one))
                        put = _any(f"{name}@{number}.{i}@{side}", value)
                    if known is None or not t.same(known, put):
                        head.frames[side][i][name] = put
                        changed = True
        return changed

    def _like(self, given: t.Value, one: t.Value, other: t.Value) -> bool:
        """Whether two locals are known to be equal where a head is reached."""
        if one is UNSURE or other is UNSURE or t.is_bool(one) != t.is_bool(other):
            return False
        return self.never(t.and_(given, t.not_(t.equal(one, other))))

    def _where(self, result: Result) -> str:
        for record in result.cuts:
            name, ordinal = record.site[-1]
            for x in s.statements(self.halves[0].world.programs[name].body):
                if self.halves[0].world.sites.get(id(x)) == ordinal:
                    return f"the loop at {x.loc}"
        return f"a loop of {self.halves[0].name}"

    # -------------------------------------------------------------------------------------- a few rounds
    def difference(self, args: Sequence[t.Value], rounds: int) -> t.Value:
        """The condition under which both end after at most so many rounds, and not in the same way."""
        ends = [self._ends(half, args, rounds) for half in self.halves]
        (left, left_faults), (right, right_faults) = ends
        faults = [t.or_(*left_faults), t.or_(*right_faults)]
        fine = t.and_(t.not_(faults[0]), t.not_(faults[1]))
        parts: list[t.Value] = [t.and_(faults[0], t.not_(faults[1]), *[t.or_(*(e.guard for e in right))]),
                                t.and_(faults[1], t.not_(faults[0]), *[t.or_(*(e.guard for e in left))])]
        for one in left:
            for other in right:
                given = t.and_(fine, one.guard, other.guard)
                parts += [t.and_(given, x) for x in unlike(one.heap, other.heap)]
                if one.value is not None and other.value is not None:
                    parts.append(t.and_(given, t.not_(t.equal(one.value, other.value))))
        return t.simplify(t.or_(*parts))

    def _ends(self, half: Half, args: Sequence[t.Value], rounds: int) -> tuple[list[_End], list[t.Value]]:
        ends: list[_End] = []
        faults: list[t.Value] = []
        todo: list[tuple[SitePath, Frames, Heap, t.Value]] = [((), (), self.heap, True)]
        for _ in range(rounds + 1):
            following = []
            for resume, saved, heap, given in todo:
                result = half.run(args, heap, resume, saved, given)
                faults += [f.guard for f in result.faults]
                if result.end is not None:
                    ends.append(_End(t.and_(given, result.end.pc), result.end.heap, result.value))
                following += [(c.site, half.saved(c), c.heap, t.and_(given, c.guard)) for c in result.cuts]
            todo = following
        return ends, faults


@dataclass
class _End:
    guard: t.Value
    heap: Heap
    value: t.Value | None


def _partners(frames: Sequence[Frames]) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """For each frame the locals that only one side has, with those that only the other one has, in their order.

    It is a guess of what a patch has renamed: whether two of them are the same is proved like that of any others.
    """
    found: tuple[list[dict[str, str]], list[dict[str, str]]] = ([], [])
    for left, right in zip(*frames, strict=False):
        only = [n for n in left if n not in right], [n for n in right if n not in left]
        pairs = list(zip(*only, strict=True)) if len(only[0]) == len(only[1]) else []
        found[0].append(dict(pairs))
        found[1].append({b: a for a, b in pairs})
    return found


def unlike(one: Heap, other: Heap) -> list[t.Value]:
    """For each variable that may differ between two states, the condition that it does."""
    return [t.not_(t.equal(value, other[key])) for key, value in one.items() if not t.same(value, other[key])]


def _merged(options: Sequence[tuple[t.Value, Mapping[Any, t.Value]]]) -> dict[Any, t.Value]:
    """One table from several of which only one is the case."""
    found = dict(options[-1][1])
    for guard, table in reversed(options[:-1]):
        for key, value in table.items():
            other = found.get(key, UNSURE)
            found[key] = UNSURE if value is UNSURE or other is UNSURE else t.ite(guard, value, other)
    return found


def _any(name: str, value: t.Value) -> z3.ExprRef:
    """Any value of the sort of this one."""
    return z3.Bool(name) if t.is_bool(value) else z3.Int(name)
