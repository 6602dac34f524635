# SPDX-License-Identifier: GPL-2.0-only
"""What the static pages of a suite show, as plain data: one section a model, in it tables of verdicts, one a class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from schedproof.report.table import worst_case
from schedproof.results import Result, code_of


@dataclass(frozen=True)
class Cell:
    """A verdict, and the page that shows its run, relative to the page of the model; "" where there is none."""

    result: Result
    page: str = ""

    @property
    def text(self) -> str:
        """``refuted, 16 ticks``."""
        worst = f", {worst_case(self.result)}" if self.result["worst_case"] is not None else ""
        return str(self.result["verdict"]) + worst

    @property
    def wrong(self) -> bool:
        """Whether the verdict is not as declared."""
        return code_of(self.result) != 0


@dataclass(frozen=True)
class Grid:
    """The verdicts of one class: a column a property, a row a variant, None where nothing is declared."""

    title: str
    properties: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]


@dataclass(frozen=True)
class Section:
    """One model: what ``schedproof list`` tells of it, its verdicts, and what it leaves out, each with a reason."""

    about: Mapping[str, Any]
    grids: tuple[Grid, ...]
    faults: tuple[Grid, ...]
    left_out: Mapping[str, str]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All verdicts."""
        return tuple(c for grid in (*self.grids, *self.faults) for _, row in grid.rows for c in row if c is not None)

    @property
    def counts(self) -> dict[str, int]:
        """How many there are of each verdict."""
        return dict(sorted(Counter(c.result["verdict"] for c in self.cells).items()))

    @property
    def wrong(self) -> int:
        """How many are not as declared."""
        return sum(c.wrong for c in self.cells)

    @property
    def functions(self) -> dict[str, str]:
        """File to the kernel functions in it that the model stands for."""
        found: dict[str, list[str]] = {}
        for function, file in self.about["functions"].items():
            found.setdefault(file, []).append(f"{function}()")
        return {file: ", ".join(names) for file, names in found.items()}


def grid(title: str, cells: Iterable[Cell]) -> Grid:
    """A table of some verdicts; properties stand in the order in which they come."""
    there = {(c.result["property"], c.result["variant"]): c for c in cells}
    names = tuple(dict.fromkeys(name for name, _ in there))
    variants = sorted({v for _, v in there}, key=release)
    return Grid(title, names, tuple((v, tuple(there.get((n, v)) for n in names)) for v in variants))


def release(variant: str) -> tuple[Any, ...]:
    """The order of variants: kernels by number, fixes behind the kernel that they mend, what is no kernel last."""
    name, _, changes = variant.partition("+")
    numbers = name.removeprefix("v").split(".")
    return (0, *map(int, numbers), changes) if all(n.isdigit() for n in numbers) else (1, name, changes)
