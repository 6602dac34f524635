# SPDX-License-Identifier: GPL-2.0-only
"""Single steps of two sides that are walked in lock step: where they stand, how a step is run, how it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from schedproof.kernel.arena import Outside
from schedproof.lang import normal
from schedproof.lang import syntax as s
from schedproof.lang import terms as t
from schedproof.lang.ctypes import CType
from schedproof.lang.execute import LOOP_LIMIT
from schedproof.lang.paths import Heap, Path, SitePath
from schedproof.lang.world import World, is_site

MOMENT = "moment"         # stands for what callees see and no step changes; another one for each step of a run
SMALL = 64                # values of an unknown that is used as an index: more are not tried one by one

Saved = tuple[str, int]   # ("int" or "bool", a number) or ("symbol int" or "symbol bool", which one)
Frames = tuple[tuple[tuple[str, Saved], ...], ...]


@dataclass(frozen=True)
class Place:
    """Where one side stands: the site, empty at the entry, and the locals of each frame that are read behind it."""

    site: SitePath
    frames: Frames


Pair = tuple[Place, Place]


@dataclass(eq=False)
class Edge:
    """One step from a pair to another: what holds of the state, and what the symbols of the target are.

    ``ranges`` are the values that the unknowns of the step can have.
    """

    source: Node
    guard: t.Value
    symbols: tuple[t.Value, ...]
    ranges: Mapping[str, t.Interval]


@dataclass(eq=False)
class Node:
    """A pair that was met, with the values that its symbols can have, and how it was met."""

    pair: Pair
    args: tuple[t.Value, ...]
    told: str
    ranges: tuple[t.Interval, ...] = ()
    edges: list[Edge] = field(default_factory=list)


@dataclass
class Outcome:
    """One way in which a step ends: at a cut, in a callee that blocks, or at the function's end."""

    guard: t.Value
    heap: Heap
    site: SitePath = ()
    frames: tuple[dict[str, t.Value], ...] = ()
    callee: str = ""
    args: tuple[t.Value, ...] = ()
    value: t.Value | None = None

    @property
    def kind(self) -> str:
        return f"calls {self.callee}" if self.callee else "may be interrupted" if self.site else "ends"


class Undecided(Exception):
    """The walk cannot tell; the message says why."""


class Ask(Exception):
    """An unknown with few values is used as an index: the step is to be run for each of them."""

    def __init__(self, name: str, values: range):
        self.name, self.values = name, values
        super().__init__(name)


class Stepper(Outside):
    """Runs one step. A callee without effect answers; it leaves the state as it is."""

    endless_limit = LOOP_LIMIT
    pure: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()          # what the step may write: the rest is the same in all of its calls

    def index(self, e: s.Expr, path: Path) -> t.Value:
        value = t.simplify(self.number(e, path))
        if isinstance(value, int) or path.pc is False:
            return value
        for name, constant in t.constants_of([value]).items():
            low, high = self.bounds.ranges.get(name, (None, None))
            if z3.is_int(constant) and low is not None and high is not None and high - low < SMALL:
                raise Ask(name, range(low, high + 1))
        return value

    def unknown_function(self, name: str, args: list[t.Value], path: Path, ctype: CType | None) -> t.Value:
        if name not in self.pure:
            return super().unknown_function(name, args, path, ctype)
        state = (v for k, v in path.heap.items() if k[0] in self.written)
        inputs = [z3.Int(MOMENT), *(t.z3_of(a) for a in (*args, *state))]
        return z3.Function(f"{name}!", *(i.sort() for i in inputs), z3.IntSort())(*inputs)


def symbol(number: int) -> str:
    return f"saved!{number}"


def saved_value(saved: Saved) -> t.Value:
    kind, number = saved
    if kind == "symbol bool":
        return z3.Bool(symbol(number))
    if kind == "symbol int":
        return z3.Int(symbol(number))
    return bool(number) if kind == "bool" else number


def wider(old: t.Interval, new: t.Interval, ctype: CType | None) -> t.Interval:
    """An interval that holds both; where it has to grow, at once all that the C type allows, so that it ends."""
    def lies(inner: t.Interval, outer: t.Interval) -> bool:
        return ((outer[0] is None or (inner[0] is not None and outer[0] <= inner[0]))
                and (outer[1] is None or (inner[1] is not None and inner[1] <= outer[1])))

    if lies(new, old):
        return old
    whole: t.Interval = (None, None) if ctype is None else (ctype.low, ctype.high)
    return whole if lies(new, whole) and lies(old, whole) else (None, None)


def live_locals(world: World) -> dict[tuple[str, int], frozenset[str]]:
    """For each site the locals that are read behind it."""
    found = {}
    for name in world.cutting:
        live = normal.live_after(world.programs[name], lambda x: is_site(x, world.cutting))
        for x in s.statements(world.programs[name].body):
            if id(x) in world.sites:
                found[name, world.sites[id(x)]] = live[id(x)]
    return found


def result_types(worlds: Sequence[World]) -> dict[str, CType]:
    """The C types of what callees return, as C calls them."""
    found: dict[str, CType] = {}
    for world in worlds:
        for program in world.programs.values():
            for x in s.statements(program.body):
                for e in s.expressions(x):
                    if isinstance(e, s.Call) and e.ctype is not None:
                        found.setdefault(e.name, e.ctype)
    return found


def at_step(term: Any, number: int) -> Any:
    """A term about the state of the step of that number. Arguments are the same in all of them."""
    constants = t.constants_of([term])
    return z3.substitute(term, *((c, (z3.Bool if z3.is_bool(c) else z3.Int)(f"{n}@{number}"))
                                 for n, c in constants.items() if not n.startswith("arg ")))


def applications(terms: list[z3.ExprRef]) -> list[z3.ExprRef]:
    """The applications of unknown functions in some terms."""
    found, seen, stack = [], set(), list(terms)
    while stack:
        term = stack.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        if term.num_args() and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            found.append(term)
        stack += term.children()
    return found
