# SPDX-License-Identifier: GPL-2.0-only
"""Each modelled function against a tree's C: under which switches the method and the C are one and the same.

A function for which the model has no method is ``executed`` when it was read and runs on exact values.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from schedproof.kernel.compare import Comparison, Side, compare, reached
from schedproof.kernel.config import DEFAULT, Config
from schedproof.kernel.functions import Read, read_model, release_for
from schedproof.kernel.tree import Tree
from schedproof.lang import syntax as s
from schedproof.model.instance import Instance

Status = Literal["equal", "executed", "differs", "absent", "not_executable"]
MOST_ASSIGNMENTS = 512


@dataclass(frozen=True)
class Conformance:
    """One function: ``equal`` under ``variant``; ``executed``, with no method to compare with or not decided;
    ``differs`` with what shows it."""

    model: str
    function: str
    file: str
    status: Status
    reason: str = ""
    variant: str = ""

    def to_json(self) -> dict[str, str]:
        return {"model": self.model, "function": self.function, "file": self.file, "status": self.status,
                "reason": self.reason, "variant": self.variant}


@dataclass(frozen=True)
class Report:
    """All functions of one model in one tree. ``variant`` is the assignment of switches that equals the tree."""

    model: str
    tree: str
    variant: str
    functions: tuple[Conformance, ...]
    configuration: str


def conform(tree: Tree, model: Any, name: str, variant: str | None = None, config: Config = DEFAULT,
            progress: Callable[[str], None] | None = None) -> Report:
    """Compare every kernel function of a model with a tree.

    The assignment of switches is searched, the nearest to the tree's release (or to ``variant``) first, that makes
    as many functions equal as can be. Raises InputError when the tree is none.
    """
    base = variant or release_for(model, tree)
    reads = read_model(tree, model, config)
    search = _Search(model, base, reads, progress)
    chosen = search.best()
    found = [_row(name, function, read, search, chosen) for function, read in reads.items()]
    return Report(name, tree.label, chosen, tuple(found), config.shown())


def _row(name: str, function: str, read: Read, search: _Search, chosen: str) -> Conformance:
    if read.status != "read":
        return Conformance(name, function, read.file, read.status, read.reason)
    if function not in search.readable:
        why = search.runs(function)
        return Conformance(name, function, read.file, "not_executable" if why else "executed", why)
    answer = search.answer(function, chosen)
    if answer.answer == "equal":
        return Conformance(name, function, read.file, "equal", variant=chosen)
    if answer.answer == "differs":
        return Conformance(name, function, read.file, "differs", f"against {chosen}: {answer.detail}")
    why = search.runs(function)
    return Conformance(name, function, read.file, "not_executable" if why else "executed", why or answer.detail)


def best_of(rows: Iterable[Conformance]) -> list[Conformance]:
    """One row a model and function where several classes of one file have it: the one that says most."""
    order: tuple[Status, ...] = ("differs", "equal", "executed", "not_executable", "absent")
    found: dict[tuple[str, str], Conformance] = {}
    for row in rows:
        key = (row.model, row.function)
        if key not in found or order.index(row.status) < order.index(found[key].status):
            found[key] = row
    return list(found.values())


class _Search:
    """Looks for the switches under which methods and C are equal. Comparisons are kept."""

    def __init__(self, model: Any, base: str, reads: dict[str, Read], progress: Callable[[str], None] | None):
        self.model, self.base, self.reads, self.progress = model, base, reads, progress
        self.settings = model.settings(base)
        self.known: dict[tuple[str, tuple[tuple[str, Any], ...]], Comparison] = {}
        self.readable = [f for f, r in reads.items() if r.status == "read" and f in model.marks]
        self.relevant = {f: self._switches(f) for f in self.readable}

    def _switches(self, function: str) -> tuple[str, ...]:
        """The switches that a method and its callees test, callees of the vocabulary left out."""
        side = Side(function, self.model.programs)
        names = reached(side, self.model.vocabulary.boundary - {function})
        loads = {e.var for n in names for x in s.statements(self.model.programs[n].body)
                 for e in s.expressions(x) if isinstance(e, s.Load)}
        return tuple(n for n in self.model.switches() if n in loads)

    def variants(self) -> Iterator[str]:
        """All assignments of the switches that matter, as variants, the fewest changes first."""
        switches = self.model.switches()
        free = sorted({n for names in self.relevant.values() for n in names}, key=list(switches).index)
        others = {n: [v for v in switches[n].values if v != self.settings[n]] for n in free}
        count = 0
        for changes in range(len(free) + 1):
            for names in itertools.combinations(free, changes):
                for values in itertools.product(*(others[n] for n in names)):
                    count += 1
                    if count > MOST_ASSIGNMENTS:
                        return
                    yield self.base + "".join(f"+{n}={_spelled(v)}" for n, v in zip(names, values, strict=True))

    def best(self) -> str:
        """The assignment that makes most functions equal; the nearest one of several."""
        best, most = self.base, -1
        for variant in self.variants():
            equal = sum(self.answer(f, variant).answer == "equal" for f in self.readable)
            if equal > most:
                best, most = variant, equal
            if most == len(self.readable):
                break
        return best

    def runs(self, function: str) -> str:
        """Why the C of a function cannot be run on exact values; empty where it can.

        It is run twice, as a function is that is compared with itself, and does what it does.
        """
        if self.progress is not None:
            self.progress(function)
        side = Side(function, {**self.model.programs, **self.reads[function].programs})
        found = compare(self.model.variant(self.base), side, side, spans=True)
        return "" if found.answer == "equal" else found.detail or "it is not equal to itself"

    def answer(self, function: str, variant: str) -> Comparison:
        settings = self.model.settings(variant)
        key = (function, tuple((n, settings[n]) for n in self.relevant[function]))
        if key not in self.known:
            if self.progress is not None:
                self.progress(f"{function} in {variant}")
            instance: Instance = self.model.variant(variant)
            python = Side(function, self.model.programs)
            c = Side(function, {**self.model.programs, **self.reads[function].programs})
            self.known[key] = compare(instance, python, c, spans=True)
        return self.known[key]


def _spelled(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
