# SPDX-License-Identifier: GPL-2.0-only
"""The format ``terse``: what ``check`` found as checkpatch tells it, ``file:line: LEVEL: text``, a line a finding.

What is as it should be gives no line. ERROR is a verdict that gets worse, WARNING what could not be decided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from schedproof.report import not_for
from schedproof.report._check import verdict_words
from schedproof.report.text import lines

_PLACE = re.compile(r"\b[\w/.-]+\.[ch]:\d+")


@dataclass(frozen=True)
class Finding:
    """One thing to say about a patch. ``place`` is ``file:line`` or a file, ``story`` the trace as lines."""

    level: str                           # "ERROR" or "WARNING"
    text: str
    place: str = ""
    command: str = ""
    story: tuple[str, ...] = ()


def findings(report: Any, command: str = "") -> Iterator[Finding]:
    """The findings of a report of ``schedproof.kernel.check``; ``command`` is what shows all of it."""
    for part in report.models:
        file = next((f.file for f in part.functions if f.status not in ("equal", "invisible")), "")
        worse = [row for row in part.rows if row.change == "worse"]
        for row in worse:
            trace = row.after.trace
            story = tuple(lines(trace, 72)) if trace is not None else ()
            text = (f"{part.model}:{row.property.name} was {verdict_words(row.before)} in {part.variant}, is "
                    f"{verdict_words(row.after)} with this patch")
            yield Finding("ERROR", text, _place(story, file), command, story)
        undecided = [row for row in part.rows if row.change == "undecided"]
        blind = [f for f in part.functions if f.status in ("not_read", "not_covered", "unknown")]
        if undecided:
            names = ", ".join(f"{row.property.name}" for row in undecided)
            reason = next((r for row in undecided for r in (getattr(row.after, "reason", ""),
                                                           getattr(row.before, "reason", "")) if r), "")
            yield Finding("WARNING", f"{part.model}: not decided: {names}{f' ({_short(reason)})' if reason else ''}",
                          file, command)
        elif blind and not part.rows:
            f = blind[0]
            yield Finding("WARNING", f"{part.model}: {f.function} changes, and what it does was not decided"
                                     f"{f' ({_short(f.detail)})' if f.detail else ''}", f.file, command)


def render(thing: Any) -> str:
    """A report of ``check``, or a list of them. Raises InputError for anything else."""
    reports = thing if isinstance(thing, list) else [thing]
    if not all(hasattr(r, "models") and hasattr(r, "patch") for r in reports):
        raise not_for(thing, "terse")
    return "".join(f"{f.place or r.patch}: {f.level}: {f.text}\n" for r in reports for f in findings(r))


def _place(story: tuple[str, ...], file: str) -> str:
    """The first place in the changed file that the run goes through, else the file."""
    for line in story:
        for found in _PLACE.findall(line):
            if found.startswith(f"{file}:"):
                return str(found)
    return file


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 160 else text[:160].rsplit(" ", 1)[0] + " ..."
