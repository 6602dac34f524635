# SPDX-License-Identifier: GPL-2.0-only
"""The formulas of properties, as programs on a model's own methods: C that stands in for one is never asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from schedproof.errors import ModelError
from schedproof.lang import syntax as s
from schedproof.lang.python import from_python
from schedproof.lang.source import module_functions
from schedproof.lang.world import World


class Formulas:
    """The formulas that an instance was asked about. ``world`` has the model's own programs and theirs."""

    def __init__(self, world: World, model: Any):
        self.world, self.model = world, model
        self.names: dict[Callable[..., Any], str] = {}

    def name(self, formula: Callable[..., Any]) -> str:
        """The program of a formula. Raises ModelError when a helper of it has the name of another function."""
        if formula not in self.names:
            own, programs = f"formula {len(self.names)} {formula.__qualname__}", dict(self.world.programs)
            for part, program in _read(formula, self.model).items():
                part = own if part == formula.__name__ else part
                if programs.setdefault(part, program) != program:
                    raise ModelError(f"`{part}` is two functions", program.loc.file, program.loc.line,
                                     "give one of them another name")
            self.world = replace(self.world, programs=programs)
            self.names[formula] = own
        return self.names[formula]


@lru_cache(maxsize=1024)
def _read(formula: Callable[..., Any], model: Any) -> Mapping[str, s.Program]:
    """A formula and the module functions that it calls. Read once, so that all instances judge by the same text."""
    programs = {formula.__name__: from_python(formula, model.scope)}
    todo = [(formula, programs[formula.__name__])]
    while todo:
        for helper, function in module_functions(*todo.pop()).items():
            if helper not in programs:
                programs[helper] = from_python(function, model.scope)
                todo.append((function, programs[helper]))
    return programs
