# SPDX-License-Identifier: GPL-2.0-only
"""Models for tests: from a file in tests/models, or from a text that is written to a file first."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import z3

from schedproof.model.concrete import steps


def need(tool: str) -> None:
    """Skip a test whose tool is not installed; in continuous integration, which installs it, that is a failure."""
    if not shutil.which(tool):
        give_up = pytest.fail if os.environ.get("SCHEDPROOF_REQUIRE_TREES") else pytest.skip
        give_up(f"no {tool}")


MODELS = Path(__file__).parent / "models"
HEAD = """\
from schedproof.model import *
from schedproof.model import Model

"""
FIRST_LINE = HEAD.count("\n") + 1       # where the text of a model begins in its file

_folder = tempfile.TemporaryDirectory(prefix="schedproof-models-")


def load(path: Path, name: str | None = None) -> ModuleType:
    """Import one file under a name of its own."""
    name = name or path.stem
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@cache
def small(name: str) -> ModuleType:
    """The module tests/models/NAME.py."""
    return load(MODELS / f"{name}.py", f"schedproof_small.{name}")


def module_of(text: str) -> ModuleType:
    """The module with this text, behind an import of all words of schedproof.model."""
    text = HEAD + textwrap.dedent(text).lstrip("\n")
    name = "m" + hashlib.sha256(text.encode()).hexdigest()[:12]
    path = Path(_folder.name) / f"{name}.py"
    path.write_text(text)
    return load(path, name)


def model_of(text: str, name: str = "M") -> Any:
    """The model class of that name in a text."""
    return getattr(module_of(text), name)


# ------------------------------------------------------------------------------- the two ways of running a model
Outcome = tuple[str, tuple[str, ...], tuple[str, str], tuple[int | bool, ...], tuple[tuple[str, int], ...]]


class Valuer:
    """Values of several terms in one state, by z3's own substitution and simplifier."""

    def __init__(self, terms: Sequence[z3.ExprRef], constants: Sequence[z3.ExprRef]):
        self.terms, self.constants = list(terms), list(constants)
        sorts = [t.sort() for t in self.terms]
        self.bundle = z3.Function("bundle", *sorts, z3.BoolSort())(*self.terms) if self.terms else None

    def __call__(self, values: Sequence[int | bool]) -> list[Any]:
        """The values; None for a number that has none, as a quotient by zero."""
        if self.bundle is None:
            return []
        pairs = [(c, z3.BoolVal(bool(v)) if z3.is_bool(c) else z3.IntVal(int(v)))
                 for c, v in zip(self.constants, values, strict=True)]
        found = z3.simplify(z3.substitute(self.bundle, *pairs))
        return [z3.is_true(x) if z3.is_bool(x) else x.as_long() if z3.is_int_value(x) else None
                for x in found.children()]


def symbolic_steps(instance: Any) -> Callable[[Mapping[str, int | bool]], set[Outcome]]:
    """The steps from a state by the symbolic transitions."""
    names = list(instance.variables)
    constants = [v.term for v in instance.variables.values()]
    guards = Valuer([t.guard for t in instance.transitions], constants)
    rest = [Valuer([*t.updates.values(), *t.costs.values()], constants) for t in instance.transitions]

    def look(state: Mapping[str, int | bool]) -> set[Outcome]:
        found = set()
        here = [state[n] for n in names]
        for t, holds, valuer in zip(instance.transitions, guards(here), rest, strict=True):
            if not holds:
                continue
            assert not t.fault, (t.label, t.fault, state)
            values = valuer(here)
            new = {**state, **dict(zip(t.updates, values, strict=False))}
            costs = dict(zip(t.costs, values[len(t.updates):], strict=True))
            found.add(_outcome(t.action, t.args, t.sites, [new[n] for n in names], costs))
        return found

    return look


def concrete_steps(instance: Any, state: Mapping[str, int | bool]) -> set[Outcome]:
    """The steps from a state by the plain interpreter."""
    names = list(instance.variables)
    return {_outcome(t.action, t.args, t.sites, [t.state[n] for n in names], t.costs) for t in steps(instance, state)}


def _outcome(action: str, args: tuple[str, ...], sites: tuple[str, str], state: Sequence[int | bool],
             costs: Mapping[str, Any]) -> Outcome:
    return action, args, sites, tuple(state), tuple(sorted((u, int(c)) for u, c in costs.items()))


def require_agreement(instance: Any, most: int = 100_000) -> tuple[int, int]:
    """Every step from every reachable state is the same both ways. Returns the numbers of states and of steps.

    Behind ``most`` states no further ones are looked for.
    """
    symbolic = symbolic_steps(instance)
    names = list(instance.variables)
    seen = {tuple(i[n] for n in names) for i in instance.initial}
    todo, count = list(seen), 0
    for key in todo:
        state = dict(zip(names, key, strict=True))
        plain = concrete_steps(instance, state)
        assert symbolic(state) == plain, instance.show(state)
        count += len(plain)
        for _, _, _, new, _ in plain:
            if new not in seen and len(seen) < most:
                seen.add(new)
                todo.append(new)
    return len(seen), count
