# SPDX-License-Identifier: GPL-2.0-only
"""A model's kernel functions as one tree has them: which can be run, with what, and why the others cannot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from schedproof.errors import InputError, NotExecutable
from schedproof.kernel.config import DEFAULT, Config
from schedproof.kernel.moved import home
from schedproof.kernel.reader import Reader
from schedproof.kernel.source import sources
from schedproof.kernel.tree import Absent, Tree
from schedproof.lang.rewrite import renamed, without_places
from schedproof.lang.syntax import Program, calls
from schedproof.model.instance import Instance


@dataclass(frozen=True)
class Read:
    """One kernel function in a tree: its programs (itself and the callees read with it), or why there are none.

    ``macros`` are the macros of the tree that its text used; a patch of one of them touches the function.
    """

    function: str
    file: str
    status: Literal["read", "absent", "not_executable"]
    programs: Mapping[str, Program]
    reason: str = ""
    macros: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """The functions of the tree whose text it is made of."""
        return frozenset(n.split("@")[0] for n in self.programs)

    @property
    def shape(self) -> frozenset[tuple[str, str]]:
        """What the programs are, wherever they stand: types of fields, values of enumerators and macros are in it."""
        return frozenset((n, repr(without_places(p))) for n, p in self.programs.items())


def read_function(tree: Tree, function: str, file: str, model: Any, config: Config = DEFAULT) -> Read:
    """Read one function. Whatever stands in the way becomes a status with its place."""
    try:
        file = home(sources(tree, config), function, file)
        reader = Reader(tree, config, model)
        program = reader.read(function, file)
    except Absent as error:
        return Read(function, file, "absent", {}, str(error))
    except NotExecutable as error:
        return Read(function, file, "not_executable", {}, str(error))
    except InputError as error:
        return Read(function, file, "absent", {}, str(error))
    known = model.programs.get(function)
    if known is not None and len(known.params) != len(program.params):
        return Read(function, file, "not_executable", {}, f"{program.loc}: {function} takes {len(program.params)} "
                    f"arguments, the model's method {len(known.params)}")
    macros = frozenset().union(*reader.macros.values()) if reader.macros else frozenset()
    return Read(function, program.loc.file, "read", _apart(reader.programs, model), macros=macros)


def _apart(programs: Mapping[str, Program], model: Any) -> dict[str, Program]:
    """The programs under names that hide none of the model's own methods: only kernel functions are replaced by C."""
    hidden = [n for n in programs if n in model.programs and n not in model.kernel_functions()]
    names = {n: f"{n}@C" for n in hidden}
    return {names.get(n, n): renamed(p, names) if names else p for n, p in programs.items()}


def read_model(tree: Tree, model: Any, config: Config = DEFAULT, kept: Mapping[str, Read] | None = None,
               ) -> dict[str, Read]:
    """Every kernel function of a model as the tree has it. ``kept`` are those that were read before."""
    kept = kept or {}
    return {name: kept[name] if name in kept else read_function(tree, name, file, model, config)
            for name, file in model.kernel_functions().items()}


def taken(reads: Iterable[Read], model: Any) -> dict[str, Program]:
    """The programs that go into the model: of all functions that could be read, but for those of the vocabulary."""
    found: dict[str, Program] = {}
    for read in reads:
        if read.status == "read" and read.function not in model.vocabulary.outside:
            found |= read.programs
    return found


def with_c(instance: Instance, programs: Mapping[str, Program]) -> Instance:
    """The instance with C in place of the methods. A helper that shadows a method of the model must be the same."""
    return instance.with_programs(programs) if programs else instance


def release_for(model: Any, tree: Tree) -> str:
    """The newest release of a model that is not above a tree's version; the oldest where the tree is older.

    Raises InputError when the tree has no version.
    """
    version = tree.version()[:2]
    numbered = sorted((_number(r), r) for r in model.releases if _number(r) is not None)
    below = [r for number, r in numbered if number is not None and number <= version]
    return below[-1] if below else numbered[0][1] if numbered else next(iter(model.releases))


def _number(release: str) -> tuple[int, int] | None:
    parts = release.removeprefix("v").split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) >= 2 and all(p.isdigit() for p in parts[:2]) else None


def unasked(model: Any, programs: Mapping[str, Program]) -> frozenset[str]:
    """The functions that are read from C only and that no method comes to: whatever they do, no property runs them.

    ``programs`` are those of the tree.
    """
    known, seen, todo = {**model.programs, **programs}, set(model.programs), list(model.programs)
    while todo:
        more = calls(known[todo.pop()].body) & known.keys() - seen
        seen |= more
        todo += more
    return frozenset(model.functions) - seen
