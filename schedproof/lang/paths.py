# SPDX-License-Identifier: GPL-2.0-only
"""Symbolic paths: what is known on one, how two of them meet, and what a run leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import z3

from schedproof.lang import syntax as s
from schedproof.lang import terms as t
from schedproof.lang.terms import Value
from schedproof.lang.world import Key

Heap = dict[Key, Value]
SitePath = tuple[tuple[str, int], ...]      # (program, ordinal of the site in it), outermost first
Name = TypeVar("Name")
UNSURE: Value = z3.Const("unsure", z3.DeclareSort("Unsure"))      # a local that was set on some paths only


@dataclass(frozen=True)
class Partly:
    """A local that was set on some paths only: ``value`` where ``known`` holds, nothing to be used elsewhere."""

    known: Value
    value: Value


def unsure(value: Value) -> bool:
    """Whether a local has no value that can be used on all paths."""
    return value is UNSURE or isinstance(value, Partly)


class Split(Exception):
    """A state variable is used as an index: the run is to be done once for each of its values."""

    def __init__(self, key: Key, values: tuple[int, ...]):
        self.key, self.values = key, values
        super().__init__(f"{key} as an index")


class SplitHere(Exception):
    """A value with a few known outcomes is used as an index: go on once for each of them."""

    def __init__(self, term: z3.ExprRef, values: tuple[int, ...]):
        self.term, self.values = term, values
        super().__init__("index")


class Path:
    """One symbolic path: its condition, the locals of the function that runs, the state, the callers."""

    __slots__ = ("env", "heap", "indices", "pc", "stack")

    def __init__(self, pc: Value, env: dict[str, Value], heap: Heap,
                 stack: tuple[tuple[str, int, dict[str, Value]], ...] = (),
                 indices: tuple[tuple[z3.ExprRef, int], ...] = ()):
        self.pc, self.env, self.heap, self.stack = pc, env, heap, stack
        self.indices = indices              # terms that were split on this path, with their values on it

    def copy(self) -> Path:
        return Path(self.pc, dict(self.env), dict(self.heap), self.stack, self.indices)

    def fork(self, test: Value) -> Path | None:
        """A copy on which ``test`` holds too, or None where that cannot be.

        Where the test says what a constant is, the copy takes its value, so that what follows folds.
        """
        if test is False:
            return None
        if test is True:
            return self.copy()
        pc = t.simplify(t.and_(self.pc, test))
        if pc is False:
            return None
        made = self.copy()
        made.pc = pc
        for term, value in t.learned(test):
            made.put(term, value)
        return made

    def put(self, term: Value, value: Value) -> None:
        """Replace a term by the value that it is known to have on this path."""
        _put(self.env, term, value)
        _put(self.heap, term, value)

    def adopt(self, other: Path | None) -> None:
        """Become another path, in place; None is a path that ended."""
        if other is None:
            self.pc = False
        else:
            self.pc, self.env, self.heap, self.stack = other.pc, other.env, other.heap, other.stack
            self.indices = other.indices


@dataclass
class CutRecord:
    """The end of an atomic step at ``site``. ``saved`` holds each frame's locals, outermost first."""

    site: SitePath
    guard: Value
    heap: Heap
    saved: tuple[dict[str, Value], ...]


@dataclass
class Fault:
    """A modelling error that happens where ``guard`` holds."""

    guard: Value
    loc: s.Loc
    message: str


@dataclass
class Choice:
    """One decision of the adversary: the constant that stands for it, and what its values are called."""

    constant: z3.ArithRef
    labels: tuple[str, ...]


@dataclass
class Result:
    """All that one run gives: the end (None when every path was cut or impossible), and what came before."""

    end: Path | None
    value: Value | None
    cuts: list[CutRecord]
    faults: list[Fault]
    choices: list[Choice]
    free: dict[str, str]
    called: set[str]
    base: Heap                                   # the state that the run began with
    ranges: Mapping[str, t.Interval] = field(default_factory=dict)     # of the constants, those of ``free`` as well


@dataclass
class Flow:
    next: Path | None = None
    breaks: list[Path] = field(default_factory=list)
    continues: list[Path] = field(default_factory=list)
    returns: list[tuple[Path, Value | None]] = field(default_factory=list)

    def take_ends(self, other: Flow) -> None:
        self.returns += other.returns

    def count(self) -> tuple[int, int, int]:
        return len(self.breaks), len(self.continues), len(self.returns)

    def cut_back(self, count: tuple[int, int, int]) -> None:
        del self.breaks[count[0]:], self.continues[count[1]:], self.returns[count[2]:]


# ------------------------------------------------------------------------------------------------- merging
def alive(path: Path | None) -> Path | None:
    return None if path is None or path.pc is False else path


def join(test: Value, then: Path | None, other: Path | None, pc: Value | None) -> Path | None:
    """Two branches of one test; ``pc`` is the condition before it when both came through whole."""
    if then is None or other is None:
        return then if other is None else other
    if pc is None:
        pc = t.simplify(t.or_(then.pc, other.pc))
    facts = t.learned(test)
    return Path(pc, _meet(test, then.env, other.env, facts), _meet(test, then.heap, other.heap, facts), then.stack,
                _common(then, other))


def merge(paths: list[Path]) -> Path | None:
    """Paths that meet; each is told from the later ones by its condition."""
    if not paths:
        return None
    result = paths[-1]
    for path in reversed(paths[:-1]):
        pc, facts = t.simplify(t.or_(path.pc, result.pc)), t.learned(path.pc)
        result = Path(pc, _meet(path.pc, path.env, result.env, facts), _meet(path.pc, path.heap, result.heap, facts),
                      path.stack, _common(path, result))
    return result


def _put(table: dict[Name, Value], term: Value, value: Value) -> None:
    for key, old in table.items():
        if t.same(old, term):
            table[key] = value


def _meet(test: Value, a: Mapping[Name, Value], b: Mapping[Name, Value], facts: list[tuple[z3.ExprRef, Value]],
          ) -> dict[Name, Value]:
    """Values where two paths meet. A local that only one of them has set has a value for those states alone.

    ``facts`` is what the test says about single constants.
    """
    found: dict[Name, Value] = {}
    for key, value in a.items():
        other = b.get(key, UNSURE)
        if value is other:
            found[key] = value
        elif unsure(value) or unsure(other):
            found[key] = _partly(test, value, other)
        else:
            found[key] = t.ite(test, value, other, facts)
    return found | {key: _partly(test, UNSURE, value) for key, value in b.items() if key not in a}


def _partly(test: Value, a: Value, b: Value) -> Partly:
    """A local where two paths meet, of which one has no value for it in all of its states."""
    one, other = (x if isinstance(x, Partly) else Partly(x is not UNSURE, x) for x in (a, b))
    if one.value is UNSURE or other.value is UNSURE:
        kept = other if one.value is UNSURE else one
        return Partly(t.and_(t.not_(test) if kept is other else test, kept.known), kept.value)
    return Partly(t.ite(test, one.known, other.known), t.ite(test, one.value, other.value))


def _common(a: Path, b: Path) -> tuple[tuple[z3.ExprRef, int], ...]:
    """The terms that are known to be one number on both paths."""
    return tuple(x for x in a.indices if any(x is y for y in b.indices))
