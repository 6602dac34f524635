# SPDX-License-Identifier: GPL-2.0-only
"""What a program's names mean when it runs: universes, variables, links, constants, and the other programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from schedproof.lang import normal
from schedproof.lang import syntax as s

if TYPE_CHECKING:
    from schedproof.model.domains import Domain

Key = tuple[str, int | None]       # a variable and the index of its object, None where it is a single one


@dataclass(frozen=True)
class World:
    """One instance's names.

    ``universes`` maps a universe to its objects' names; ``variables`` a variable to its universe (or None) and its
    resolved domain; ``links`` and ``constants`` to one value an object (constants without an object to a number).
    ``boundary`` names programs that are not looked into: they are taken as one and the same unknown function of
    their arguments and of the state, which is what comparing two callers of theirs needs.
    """

    universes: Mapping[str, tuple[str, ...]]
    variables: Mapping[str, tuple[str | None, Domain]]
    links: Mapping[str, tuple[int, ...]]
    constants: Mapping[str, int | bool | tuple[int, ...]]
    programs: Mapping[str, s.Program]
    cutting: frozenset[str] = frozenset()
    boundary: frozenset[str] = frozenset()
    sites: Mapping[int, int] = field(default_factory=dict)      # a cutting statement's identity to its ordinal

    def keys(self, variable: str) -> tuple[Key, ...]:
        universe = self.variables[variable][0]
        if universe is None:
            return ((variable, None),)
        return tuple((variable, i) for i in range(len(self.universes[universe])))

    def name(self, key: Key) -> str:
        variable, index = key
        universe = self.variables[variable][0]
        return variable if index is None or universe is None else f"{variable}[{self.universes[universe][index]}]"


def make_world(universes: Mapping[str, tuple[str, ...]], variables: Mapping[str, tuple[str | None, Domain]],
               links: Mapping[str, tuple[int, ...]], constants: Mapping[str, int | bool | tuple[int, ...]],
               programs: Mapping[str, s.Program], shared: frozenset[str] | None = None) -> World:
    """A world whose programs are prepared for cuts. ``shared``: the variables whose accesses may be cuts, None: all."""
    sizes = {name: len(objects) for name, objects in universes.items()}
    domains = {name: domain for name, (_, domain) in variables.items()}
    ready, cuts = normal.prepare(programs, domains, sizes, shared)
    sites = {}
    for name in cuts:
        number = 0
        for statement in s.statements(ready[name].body):
            if is_site(statement, cuts):
                sites[id(statement)] = number
                number += 1
    return World(universes, variables, links, constants, ready, cuts, frozenset(), sites)


def is_site(statement: s.Stmt, cuts: frozenset[str]) -> bool:
    """Whether a step can end at this statement: a cut, or a call of a program that has one."""
    if isinstance(statement, s.Cut):
        return True
    return (isinstance(statement, s.Assign | s.Do) and isinstance(statement.value, s.Call)
            and statement.value.name in cuts)
