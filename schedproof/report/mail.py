# SPDX-License-Identifier: GPL-2.0-only
"""Counterexamples for a plain-text mail: ASCII, at most 75 columns, the command that reproduces it at the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from schedproof.kernel.check import CheckReport
from schedproof.report import not_for
from schedproof.report._check import check_lines
from schedproof.report._command import command_lines
from schedproof.report._layout import to_ascii
from schedproof.report.text import lines
from schedproof.trace import Call, Step, Trace

WIDTH = 75          # where kernel mail is wrapped


def render(thing: Any) -> str:
    """A trace as the part of a mail that one quotes and answers to."""
    if isinstance(thing, CheckReport):
        return "\n".join(to_ascii(x).rstrip() for x in check_lines(thing, WIDTH, _trace_lines)) + "\n"
    if not isinstance(thing, Trace):
        raise not_for(thing, "mail")
    # Before lines are broken, because one character may become several.
    plain = _plain(thing)
    version = f" (schedproof {plain.version})" if plain.version else ""
    found = [*lines(plain, WIDTH), "", f"To see it again{version}:", "", *command_lines(plain, WIDTH)]
    return "\n".join(line.rstrip() for line in found) + "\n"


def _trace_lines(trace: Trace, width: int) -> list[str]:
    return lines(_plain(trace), width)


def _plain(trace: Trace) -> Trace:
    """The same trace with every text in ASCII."""
    return replace(
        trace, statement=to_ascii(trace.statement), unit=to_ascii(trace.unit), version=to_ascii(trace.version),
        initial={to_ascii(k): to_ascii(v) for k, v in trace.initial.items()},
        sources={to_ascii(k): to_ascii(v) for k, v in trace.sources.items()},
        stem=tuple(map(_plain_step, trace.stem)), cycle=tuple(map(_plain_step, trace.cycle)))


def _plain_step(step: Step) -> Step:
    return replace(
        step, action=to_ascii(step.action), args=tuple(map(to_ascii, step.args)),
        choices=tuple(map(to_ascii, step.choices)),
        functions=tuple(Call(to_ascii(c.name), to_ascii(c.place), c.depth) for c in step.functions),
        changes={to_ascii(k): (to_ascii(old), to_ascii(new)) for k, (old, new) in step.changes.items()})
