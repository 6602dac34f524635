# SPDX-License-Identifier: GPL-2.0-only
"""Counterexamples as plain data, and the file format ``schedproof-trace/1`` (JSON).

A trace is the initial state and the steps from it, ``cycle`` being the part that repeats for ever. A state is
kept as text, value by value, as a reader sees it, so that a file can be read without the model and is
compared exactly when it is replayed. Files name places in the kernel, they never hold its text.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from schedproof.errors import InputError

FORMAT = "schedproof-trace/1"
LARGEST_FILE = 32 << 20


@dataclass(frozen=True)
class Call:
    """A kernel function that ran in a step: its name, the place of its text, and how deep it was called."""

    name: str
    place: str = ""
    depth: int = 0


@dataclass(frozen=True)
class Step:
    """One transition. ``changes`` maps a variable to its (old, new) value as text; ``cost`` is in the trace's unit.

    ``waiting`` tells whether the step starts in a waiting state: its cost then counts towards the wait.
    """

    action: str
    args: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    site: str = ""
    functions: tuple[Call, ...] = ()
    changes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    cost: int = 0
    waiting: bool = False

    @property
    def label(self) -> str:
        """The step in one word, such as ``wake(a)`` or ``schedule()[gB]``."""
        text = f"{self.action}({', '.join(self.args)})"
        return text + (f"[{', '.join(self.choices)}]" if self.choices else "")


@dataclass(frozen=True)
class Trace:
    """A run of ``model`` in ``variant`` with ``params`` that shows the verdict on ``property``.

    ``total`` is the cost of the wait that is shown, ``None`` when the property has no cost; with a cycle it is
    what one round adds. ``sources`` names the functions that were read from C: name to place. ``runs_in`` is
    the variant whose run this is, where two are compared and it is the other one that has no such run. ``note``
    says what the steps alone do not show, such as that nothing can follow the last one.
    """

    model: str
    variant: str
    params: Mapping[str, int]
    property: str
    verdict: str
    initial: Mapping[str, str]
    stem: tuple[Step, ...]
    cycle: tuple[Step, ...] = ()
    unit: str = ""
    total: int | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    statement: str = ""
    version: str = ""
    runs_in: str = ""
    note: str = ""

    @builtins.property                  # the plain name is a field here
    def steps(self) -> tuple[Step, ...]:
        return self.stem + self.cycle

    def to_json(self) -> dict[str, Any]:
        left_out = [name for name in ("runs_in", "note") if not getattr(self, name)]
        return {"format": FORMAT, **{k: v for k, v in asdict(self).items() if k not in left_out}}

    def save(self, path: Path) -> None:
        """Write the file in one go: a failure leaves what was there before."""
        from schedproof.files import write_atomically

        write_atomically(path, json.dumps(self.to_json(), indent=1) + "\n")


def load(path: Path) -> Trace:
    """Read a stored trace. Raises InputError, naming the place, when the file is not one or is damaged."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f"{path}: larger than {LARGEST_FILE >> 20} MiB, so not a stored counterexample")
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not a stored counterexample ({error})") from None
    return from_json(data, str(path))


def from_json(data: Any, where: str) -> Trace:
    """The trace that a parsed file holds; ``where`` names the file in errors."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"{where}: not a stored counterexample (no \"format\": \"{FORMAT}\")")
    try:
        known = {k: v for k, v in data.items() if k not in ("format", "stem", "cycle")}
        trace = Trace(**known, stem=_steps(data["stem"]), cycle=_steps(data["cycle"]))
        _check(trace)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{where}: damaged counterexample: {error}") from None
    return trace


def _steps(raw: list[dict[str, Any]]) -> tuple[Step, ...]:
    found = []
    for item in raw:
        item = dict(item)
        item["functions"] = tuple(Call(**f) for f in item["functions"])
        item["changes"] = {k: (v[0], v[1]) for k, v in item["changes"].items()}
        found.append(Step(**{**item, "args": tuple(item["args"]), "choices": tuple(item["choices"])}))
    return tuple(found)


def _check(trace: Trace) -> None:
    for name in ("model", "variant", "property", "verdict", "unit", "statement", "version", "runs_in", "note"):
        if not isinstance(getattr(trace, name), str):
            raise TypeError(f"{name} is not text")
    if trace.total is not None and not isinstance(trace.total, int):
        raise TypeError("total is not a number")
    if not all(isinstance(v, str) for pair in trace.sources.items() for v in pair):
        raise TypeError("a source is not text")
    if not all(isinstance(v, int) for v in trace.params.values()):
        raise TypeError("a parameter is not a number")
    if not all(isinstance(v, str) for v in trace.initial.values()):
        raise TypeError("a value of the initial state is not text")
    for step in trace.steps:
        if not isinstance(step.action, str) or not isinstance(step.cost, int) or not isinstance(step.waiting, bool):
            raise TypeError("a step has no action, no cost or does not say whether it waits")
        texts = (*step.args, *step.choices, step.site, *(x for c in step.functions for x in (c.name, c.place)))
        if not all(isinstance(x, str) for x in texts) or not all(isinstance(c.depth, int) for c in step.functions):
            raise TypeError(f"step {step.action} holds something that is not text")
        if not all(isinstance(x, str) for pair in step.changes.values() for x in pair):
            raise TypeError(f"a change in step {step.action} is not text")
