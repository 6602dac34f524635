# SPDX-License-Identifier: GPL-2.0-only
"""Whether the arithmetic of a function can leave its C types, for inputs from named ranges.

Every operation and conversion that may not fit is noted with its exact value while the function runs symbolically;
Z3 then looks, for each, for an input within the ranges that makes it leave its type. Where none does, the function
computes what it would compute on unbounded integers, which is what a proof over integers rests on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import z3

from schedproof.errors import InputError, NotExecutable
from schedproof.kernel.arena import Arena, Outside, Side
from schedproof.lang import syntax as s
from schedproof.lang import terms as t
from schedproof.lang.ctypes import CType
from schedproof.lang.paths import Path
from schedproof.model.instance import Instance


@dataclass(frozen=True)
class Overflow:
    """An operation that leaves its type: ``op`` as in C or "conversion", and an input with which it does.

    ``answer`` is ``unknown`` where Z3 gave up; then ``input`` is empty.
    """

    loc: s.Loc
    op: str
    ctype: str
    answer: Literal["overflows", "unknown"]
    input: Mapping[str, int | bool] = field(default_factory=dict)

    def __str__(self) -> str:
        told = ", ".join(f"{n} = {v}" for n, v in sorted(self.input.items()))
        what = "the conversion" if self.op == "conversion" else f"`{self.op}`"
        return f"{self.loc}: {what} to {self.ctype} " + (f"loses value with {told}" if told else "is not decided")


@dataclass(frozen=True)
class _Noted:
    loc: s.Loc
    op: str
    ctype: CType
    exact: t.Value
    when: t.Value


class _Watcher(Outside):
    """Notes what may not fit."""

    noted: list[_Noted]

    def fit(self, value: t.Value, ctype: CType, op: str, path: Path, loc: s.Loc) -> t.Value:
        found = super().fit(value, ctype, op, path, loc)
        plain = ctype.struct or ctype.name == "bool" or t.is_bool(value)
        if not plain and not t.same(found, value):
            self.noted.append(_Noted(loc, op, ctype, value, path.pc))
        return found


def overflows(instance: Instance, side: Side, ranges: Mapping[str, tuple[int, int]]) -> tuple[Overflow, ...]:
    """What can leave its type when fields and arguments are within ``ranges``; the others are within their own.

    ``ranges`` maps a declaration's name (``load_avg``) or a parameter's (``delta``) to the lowest and the highest
    value. An unsigned operation counts as well as a signed one; a conversion counts where it changes the value.
    Raises InputError for a name that is none and for an empty range, NotExecutable for what cannot be run.
    """
    arena = Arena(instance, side, side, True)
    program = side.programs[side.name]
    for name, (low, high) in ranges.items():
        if name not in arena.variables and name not in program.params:
            known = [*program.params, *arena.variables]
            raise InputError(f"{side.name} has no input {name}: known are {', '.join(known)}")
        if low > high:
            raise InputError(f"{name}: no value lies between {low} and {high}")
    found: dict[tuple[s.Loc, str, str], Overflow] = {}
    for args, _ in arena.arguments(program, program):
        for name in arena.ranges:
            base = name.removeprefix("arg ").partition("[")[0]
            if base in ranges:
                arena.ranges[name] = ranges[base]
        for one in _of(arena, side, args):
            key = (one.loc, one.op, one.ctype)
            if key not in found or found[key].answer == "unknown":
                found[key] = one
    return tuple(found.values())


def _of(arena: Arena, side: Side, args: list[t.Value]) -> Iterator[Overflow]:
    watcher = _Watcher(arena.worlds[0], arena.ranges, splits=False)
    watcher.noted = []
    if watcher.run(side.name, args, arena.heap).cuts:      # what stands behind a cut was not looked at
        loc = side.programs[side.name].loc
        raise NotExecutable(loc.file, loc.line, f"{side.name} is not atomic")
    for noted in watcher.noted:
        outside = t.or_(t.compare("<", noted.exact, noted.ctype.low), t.compare(">", noted.exact, noted.ctype.high))
        asked = t.simplify(t.and_(noted.when, outside))
        if asked is False:
            continue
        constants = t.constants_of([asked])
        answer = arena.solve(t.z3_of(asked), arena.limits(constants), constants)
        if answer == z3.unsat:
            continue
        if answer == z3.unknown or t.functions_of(t.z3_of(asked)) & watcher.free.keys():
            yield Overflow(noted.loc, noted.op, str(noted.ctype), "unknown")
        else:
            yield Overflow(noted.loc, noted.op, str(noted.ctype), "overflows", arena.plain(t.z3_of(asked), constants,
                                                                                         answer))
