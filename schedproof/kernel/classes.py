# SPDX-License-Identifier: GPL-2.0-only
"""Tables from exact C values to a model's classes, computed by Z3 from the C itself.

A model may hold a class of values where the C holds one value: a representative (``Values(stands_for=)``) or a name
(``Enum(meaning=)``). For each combination of the classes of what a function reads, the table says which classes its
result can be in. A row with one class is a fact about the C; a row with several is where the classes are too coarse.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import z3

from schedproof.errors import ModelError, NotExecutable
from schedproof.kernel.arena import Arena, Outside, Side
from schedproof.lang import terms as t
from schedproof.lang.world import Key
from schedproof.model.domains import Domain, Enum, Values
from schedproof.model.instance import Instance

MOST_ROWS = 1024
Classes = Mapping[str, tuple[int, int]]           # name of a class -> the interval of C values that it stands for


@dataclass(frozen=True)
class Row:
    """``given``: the class of each input; ``found``: the classes that the result can be in, with an input for each.

    ``unknown``: classes for which Z3 gave up. The class ``other`` is any value that none of them stands for, ``fault``
    that there is no value (a NULL pointer is followed, or zero divides).
    """

    given: Mapping[str, str]
    found: Mapping[str, Mapping[str, int | bool]]
    unknown: tuple[str, ...] = ()

    @property
    def exact(self) -> str | None:
        """The one class that the result is in; None where there are several or Z3 gave up."""
        return next(iter(self.found)) if len(self.found) == 1 and not self.unknown else None


def classes_of(domain: Domain) -> dict[str, tuple[int, int]]:
    """The classes of a domain: intervals of C values by name; empty where it holds any value of its type."""
    if isinstance(domain, Enum):
        return dict(domain.meaning)
    if isinstance(domain, Values):
        return {domain.show(c): domain.stands_for.get(int(c), (int(c), int(c))) for c in domain.codes()}
    return {}


def table(instance: Instance, side: Side, result: Classes, args: Mapping[str, str] | None = None) -> tuple[Row, ...]:
    """The classes of the value that a function returns, for each combination of classes of the fields that it reads.

    ``result`` are the classes of the value. ``args`` names the object for each parameter that is a pointer; without
    it the first that there is. Fields without classes have any value within their span.
    Raises ModelError where there are too many combinations or two classes overlap, NotExecutable for what cannot run.
    """
    _disjoint(result)
    arena = Arena(instance, side, side, True)
    program = side.programs[side.name]
    wanted = {f"{name} = {obj}" for name, obj in (args or {}).items()}
    chosen = next((values for values, told in arena.arguments(program, program) if wanted <= set(told.split(", "))),
                  None)
    if chosen is None:
        raise ModelError(f"{side.name} takes no such arguments: {args}")
    run = Outside(arena.worlds[0], arena.ranges).run(side.name, chosen, arena.heap)
    if run.cuts or run.value is None:
        raise NotExecutable(program.loc.file, program.loc.line, f"{side.name} returns no value in one step")
    read = t.constants_of([run.value, *(f.guard for f in run.faults)])
    keys = [k for k, c in arena.heap.items() if t.z3_of(c).decl().name() in read]
    inputs = {arena.worlds[0].name(k): _input(instance, k) for k in keys}
    count = 1
    for found in inputs.values():
        count *= max(1, len(found))
    if count > MOST_ROWS:
        raise ModelError(f"{side.name}: {count} combinations of classes", hint="give fewer classes")
    fault = t.or_(*(f.guard for f in run.faults))
    return tuple(_row(arena, t.number(run.value), fault, given, result) for given in _combinations(inputs))


def _disjoint(result: Classes) -> None:
    spans = sorted(result.values())
    for (_, high), (low, _) in zip(spans, spans[1:], strict=False):
        if low <= high:
            raise ModelError(f"two classes of the result hold {low}")


def _input(instance: Instance, key: Key) -> dict[str, tuple[int, int]]:
    name = key[0]
    if name in instance.scope.constants:
        value = instance.world.constants[name]
        number = int(value[key[1] or 0] if isinstance(value, tuple) else value)
        return {str(number): (number, number)}
    domain = instance.world.variables[name][1]
    if isinstance(domain, Enum):                     # the C is read with codes in place of the single values
        return {n: (code, code) for n, code in domain.code_of.items()}
    return classes_of(domain)


def _combinations(inputs: Mapping[str, Classes]) -> Iterator[dict[str, tuple[str, tuple[int, int]]]]:
    named = {n: list(found.items()) for n, found in inputs.items() if found}
    for chosen in itertools.product(*named.values()):
        yield dict(zip(named, chosen, strict=True))


def _row(arena: Arena, value: t.Value, fault: t.Value, given: Mapping[str, tuple[str, tuple[int, int]]],
         result: Classes) -> Row:
    single = [(z3.Int(n), z3.IntVal(low)) for n, (_, (low, high)) in given.items() if low == high]
    term, broken = (t.simplify(z3.substitute(t.z3_of(x), *single)) for x in (value, fault))
    kept = dict(arena.ranges)
    arena.ranges.update({n: interval for n, (_, interval) in given.items()})
    try:
        found: dict[str, Mapping[str, int | bool]] = {}
        unknown: list[str] = []
        outside: list[t.Value] = [t.not_(broken)]
        _ask(arena, "fault", broken, found, unknown)
        for name, (low, high) in result.items():
            inside = t.and_(t.compare("<=", low, term), t.compare("<=", term, high))
            outside.append(t.not_(inside))
            _ask(arena, name, t.and_(t.not_(broken), inside), found, unknown)
        _ask(arena, "other", t.and_(*outside), found, unknown)
    finally:
        arena.ranges.clear()
        arena.ranges.update(kept)
    return Row({n: name for n, (name, _) in given.items()}, found, tuple(unknown))


def _ask(arena: Arena, name: str, inside: t.Value, found: dict[str, Mapping[str, int | bool]],
         unknown: list[str]) -> None:
    asked = t.simplify(inside)
    if isinstance(asked, bool):
        if asked:
            found[name] = {}
        return
    constants = t.constants_of([asked])
    answer = arena.solve(t.z3_of(asked), arena.limits(constants), constants)
    if answer == z3.unknown:
        unknown.append(name)
    elif answer != z3.unsat:
        found[name] = answer
