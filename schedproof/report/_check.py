# SPDX-License-Identifier: GPL-2.0-only
"""What ``check`` and ``conform`` found, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from schedproof.report._layout import amount, wrap
from schedproof.report.table import columns
from schedproof.trace import Trace

STATUS = {
    "equal": "equal, proved", "invisible": "differs, invisible to this model", "differs": "differs",
    "not_read": "changed, but not read", "not_covered": "changed, not covered by this model",
    "unknown": "changed, equality not decided"}
CHANGE = {"worse": "WORSE", "better": "better", "same": "", "undecided": "undecided"}


def check_lines(report: Any, width: int, trace_lines: Any) -> list[str]:
    """A report of ``schedproof.kernel.check``. ``trace_lines(trace, width)`` gives the lines of a trace."""
    title = report.subject or report.patch
    found = [*wrap(f"{title}", width), *wrap(f"on {report.tree}", width, "  ")]
    for part in report.models:
        found += ["", *_model(part, width, trace_lines)]
    return found


def _model(part: Any, width: int, trace_lines: Any) -> Iterator[str]:
    yield f"{part.model}"
    for f in part.functions:
        via = f" (through {', '.join(f.via)})" if f.via else ""
        name = f.function if f.status == "not_covered" else f"{f.function}()"
        yield from wrap(f"{name}{via} in {f.file}: {STATUS[f.status]}", width, "  ", "      ")
        if f.detail and f.status != "equal":
            yield from wrap(_first(f.detail), width, "      ")
    if not part.changes:
        yield from wrap("No verdict can change.", width, "  ")
    elif not part.rows:
        yield from wrap("No property is about this yet.", width, "  ")
    if part.rows:
        yield ""
        yield from ("  " + line for line in columns([_row(r) for r in part.rows]).splitlines())
        yield from _reasons(part, width)
        yield from _stories(part, width, trace_lines)
    yield ""
    yield "  what this rests on"
    for line in part.assumptions:
        yield from wrap(line, width, "    ", "      ")


def _first(detail: str) -> str:
    """The beginning of what may be a long input."""
    return detail if len(detail) <= 400 else detail[:400].rsplit(",", 1)[0] + ", ..."


def _row(row: Any) -> dict[str, str]:
    return {"property": row.property.name, "before": verdict_words(row.before), "after": verdict_words(row.after),
            "": CHANGE[row.change]}


def verdict_words(verdict: Any) -> str:
    """``refuted (16 ticks)``."""
    if verdict.worst_case is None:
        return str(verdict.name)
    worst = verdict.worst_case if isinstance(verdict.worst_case, str) else amount(verdict.worst_case, verdict.unit)
    return f"{verdict.name} ({worst})"


def _reasons(part: Any, width: int) -> Iterator[str]:
    """Each reason once, with the properties that it is about where it is not about all."""
    reasons: dict[str, list[str]] = {}
    for row in part.rows:
        for verdict in (row.before, row.after):
            names = reasons.setdefault(getattr(verdict, "reason", ""), [])
            if row.property.name not in names:
                names.append(row.property.name)
    for reason, names in reasons.items():
        if reason:
            about = "" if len(names) == len(part.rows) else f"{', '.join(names)}: "
            yield ""
            yield from wrap(f"{about}{reason}", width, "  ", "    ")


def _stories(part: Any, width: int, trace_lines: Any) -> Iterator[str]:
    """The trace of each verdict that changed: after the patch where it is worse, before it where it is better."""
    for row in part.rows:
        if row.change not in ("worse", "better"):
            continue
        verdict = row.after if row.change == "worse" else row.before
        trace: Trace | None = getattr(verdict, "trace", None)
        if trace is None:
            continue
        when = "With the patch" if row.change == "worse" else "Without the patch"
        yield ""
        yield from wrap(f"{when}, {row.property.name} fails. {row.property.why}".strip(), width, "  ")
        yield ""
        yield from ("  " + line if line else "" for line in trace_lines(trace, width - 2))


def conform_lines(report: Any, width: int) -> list[str]:
    """A report of ``schedproof.kernel.conform``."""
    counts: dict[str, int] = {}
    for f in report.functions:
        counts[f.status] = counts.get(f.status, 0) + 1
    told = ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in sorted(counts.items()))
    found = [*wrap(f"{report.model} against {report.tree}: {told}", width)]
    if counts.get("equal"):
        found += wrap(f"what is equal is {report.variant}", width, "  ")
    found += wrap(f"configuration: {report.configuration}", width, "  ") + [""]
    for f in report.functions:
        found += wrap(f"{f.function}() in {f.file}: {f.status.replace('_', ' ')}", width, "  ", "      ")
        if f.reason:
            found += wrap(_first(f.reason), width, "      ")
    return found
