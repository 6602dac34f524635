# SPDX-License-Identifier: GPL-2.0-only
"""What the names in a model's text mean: collected from the class, used by the front end of the language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from schedproof.model.domains import Constant, Domain, Enum, Link, Object, Param, Switch


@dataclass
class Scope:
    """The declarations of a model class by name, and the codes of its enumerators."""

    objects: dict[str, Object] = field(default_factory=dict)
    variables: dict[str, Domain] = field(default_factory=dict)
    links: dict[str, Link] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    switches: dict[str, Switch] = field(default_factory=dict)
    params: dict[str, Param] = field(default_factory=dict)
    methods: dict[str, Callable[..., Any]] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)

    def universe_of(self, thing: Object) -> str:
        """The name under which a universe is declared in this class."""
        return next(name for name, known in self.objects.items() if known is thing)


def scope_of(members: Mapping[str, Any]) -> Scope:
    """The scope of a class whose attributes (inherited ones included) are ``members``."""
    scope = Scope()
    tables: dict[type, dict[str, Any]] = {
        Object: scope.objects, Domain: scope.variables, Link: scope.links, Constant: scope.constants,
        Switch: scope.switches, Param: scope.params}
    for name, thing in members.items():
        for kind, table in tables.items():
            if isinstance(thing, kind):
                table[name] = thing
        if callable(thing) and hasattr(thing, "__code__") and not name.startswith("__"):
            scope.methods[name] = thing
    words = {str(v) for s in scope.switches.values() for v in s.values if isinstance(v, str)}
    for domain in scope.variables.values():
        words |= set(domain.names) if isinstance(domain, Enum) else set()
    scope.codes = {word: code for code, word in enumerate(sorted(words))}
    return scope
