# SPDX-License-Identifier: GPL-2.0-only
"""Verdicts as a table: one row a property and variant, or one row a value of a swept parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from schedproof.report import not_for
from schedproof.report._layout import amount, wrap
from schedproof.results import Result, code_of

RIGHT = {"worst case", "states", "seconds", "steps"}


def render(thing: Any) -> str:
    """Results as a table."""
    if isinstance(thing, dict) and "verdict" in thing:
        thing = [thing]
    if not isinstance(thing, list):
        raise not_for(thing, "table")
    return verdicts(thing)


def verdicts(results: Sequence[Result]) -> str:
    """The verdict of each property in each variant. A ``!`` marks what is not as declared."""
    notes = _Notes()
    several = len({r["model"] for r in results}) > 1
    rows = []
    for r in results:
        name = f"{r['model']}:{r['property']}" if several else r["property"]
        mark = "" if code_of(r) == 0 else "!"
        rows.append({"": mark, "property": name, "variant": r["variant"], "expected": r["expected"] or "-",
                     "verdict": r["verdict"], "worst case": worst_case(r), "states": f"{r['states']:,}",
                     "seconds": f"{r['seconds']:.2f}", "note": notes.mark(r.get("reason"))})
    return columns(rows) + notes.text()


def sweep(name: str, results: Sequence[Result]) -> str:
    """The worst case for each value of the parameter ``name``."""
    notes = _Notes()
    return columns([{name: str(r["parameters"].get(name, "?")), "worst case": worst_case(r), "verdict": r["verdict"],
                     "states": f"{r['states']:,}", "seconds": f"{r['seconds']:.2f}",
                     "note": notes.mark(r.get("reason"))} for r in results], {name}) + notes.text()


class _Notes:
    """Reasons are long and often the same: they stand below the table, and a number in it."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def mark(self, reason: str | None) -> str:
        """What stands in the row."""
        return f"({self.numbers.setdefault(reason, len(self.numbers) + 1)})" if reason else ""

    def text(self) -> str:
        """What stands below."""
        lines = [line for reason, number in self.numbers.items() for line in wrap(reason, 100, f"({number}) ")]
        return "".join(f"{line}\n" for line in ["", *lines]) if lines else ""


def worst_case(result: Result) -> str:
    """``14 ms``, ``unbounded``, or ``-`` where the property has none."""
    value = result.get("worst_case")
    if value is None:
        return "-"
    return value if isinstance(value, str) else amount(value, result.get("unit") or "")


def columns(rows: Sequence[dict[str, str]], right: set[str] | frozenset[str] = frozenset()) -> str:
    """Rows with the same keys as aligned columns under their names. Columns without any content are left out."""
    if not rows:
        return "nothing to show\n"
    keys = [k for k in rows[0] if any(row[k] for row in rows)]
    widths = {k: max(len(k), *(len(row[k]) for row in rows)) for k in keys}

    def line(row: dict[str, str]) -> str:
        return "  ".join(row[k].rjust(widths[k]) if k in RIGHT | right else row[k].ljust(widths[k])
                         for k in keys).rstrip()

    return "\n".join([line({k: k for k in keys}), *map(line, rows)]) + "\n"
