# SPDX-License-Identifier: GPL-2.0-only
"""Counterexamples and verdicts as text for a terminal.

A step takes one line for its time, number and action, then the kernel functions that ran, then what changed.
The steps that belong to the wait have a bar in the margin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from schedproof.kernel.check import CheckReport
from schedproof.kernel.conform import Report
from schedproof.report import not_for, table
from schedproof.report._check import check_lines, conform_lines
from schedproof.report._layout import amount, plural, wrap
from schedproof.trace import Step, Trace

WIDTH = 110
VERDICTS = {"refuted": "refuted: this run breaks it", "proved": "proved: no run does worse than this one"}
GLUE = "\x1f"                   # stands for a blank at which a line must not be broken
NUMBER = 4                      # columns for the number of a step


def render(thing: Any) -> str:
    """A trace as text; a verdict or several as a table."""
    if isinstance(thing, Trace):
        return "\n".join(lines(thing, WIDTH)) + "\n"
    if isinstance(thing, CheckReport):
        return "\n".join(check_lines(thing, WIDTH, lines)) + "\n"
    if isinstance(thing, Report):
        return "\n".join(conform_lines(thing, WIDTH)) + "\n"
    if isinstance(thing, list | dict):
        return table.render(thing)
    raise not_for(thing, "text")


def lines(trace: Trace, width: int) -> list[str]:
    """The whole trace, no line wider than ``width``."""
    return [*_header(trace, width), "", *_start(trace, width), "", *_body(trace, width), "", *_closing(trace, width)]


def _header(trace: Trace, width: int) -> Iterator[str]:
    yield from wrap(f"{trace.model}:{trace.property} in {trace.variant}", width)
    yield from wrap(VERDICTS.get(trace.verdict, trace.verdict), width, "  verdict     ")
    if trace.statement:
        yield from wrap(" ".join(trace.statement.split()), width, "  claim       ")
    if trace.params:
        yield from wrap(", ".join(f"{k} = {v}" for k, v in trace.params.items()), width, "  parameters  ")
    if trace.runs_in:
        yield from wrap(f"{trace.runs_in}: {trace.variant} has no run that looks the same", width, "  a run of    ")
    read = sorted({f"{name} ({place})" if place else name for name, place in trace.sources.items()})
    if read:
        yield from wrap(", ".join(read), width, "  read from C ")


def _start(trace: Trace, width: int) -> Iterator[str]:
    """The initial state. Values of one variable for several objects are put together."""
    bases: dict[str, list[str]] = {}
    for name, value in trace.initial.items():
        base, bracket, index = name.partition("[")
        bases.setdefault(base, []).append(f"{index.rstrip(']')}: {value}" if bracket else value)
    yield "at first"
    yield from wrap("; ".join(f"{base} = {', '.join(values)}" for base, values in bases.items()), width, "  ")


def wait_of(trace: Trace) -> range:
    """The steps that belong to the wait that the trace is about.

    A run may hold shorter waits, too. The one that is meant lasts for ``total``, or for ever; if there is no such
    wait, then it is the last one.
    """
    waits: list[range] = []
    for i, step in enumerate(trace.steps):
        if step.waiting and waits and waits[-1].stop == i:
            waits[-1] = range(waits[-1].start, i + 1)
        elif step.waiting:
            waits.append(range(i, i + 1))
    meant = [wait for wait in waits if sum(trace.steps[i].cost for i in wait) == trace.total]
    return (waits if trace.cycle or not meant else meant)[-1] if waits else range(0)


def _body(trace: Trace, width: int) -> Iterator[str]:
    steps, wait = trace.steps, wait_of(trace)
    if not steps:
        yield "no step: what is claimed already fails at first"
        return
    times = [0]
    for step in steps:
        times.append(times[-1] + step.cost)
    column = max(len("time"), *(len(amount(time, trace.unit)) for time in times))
    yield f"  {'time':>{column}} {'step':>{NUMBER}}"
    spent = sum(steps[i].cost for i in wait)
    for i, step in enumerate(steps):
        if i == len(trace.stem):
            yield from wrap(_cycle_line(trace), width, "  ---- ")
        margin = "| " if i in wait else "  "
        head = f"{margin}{amount(times[i], trace.unit):>{column}} {i + 1:>{NUMBER}}  "
        note = "   <- wait begins" if wait and i == wait[0] else ""
        yield from _step(trace, step, head, margin, width, note)
        if wait and i == wait[-1] and not trace.cycle and trace.total is not None:
            yield f"{margin.rstrip()} wait ends after {amount(spent, trace.unit)}"
    if trace.cycle:
        yield f"  ---- and so on for ever from step {len(trace.stem) + 1}"


def _cycle_line(trace: Trace) -> str:
    these = "this step" if len(trace.cycle) == 1 else f"these {len(trace.cycle)} steps"
    if any(step.waiting for step in trace.cycle) and trace.unit:
        added = amount(sum(s.cost for s in trace.cycle), trace.unit)
        return f"repeats for ever: {these}; each round adds {added} to the wait"
    return f"repeats for ever: {these}"


def _step(trace: Trace, step: Step, head: str, margin: str, width: int, note: str) -> Iterator[str]:
    blank = margin + " " * (len(head) - len(margin))
    yield from wrap(step.label + note, width, head, blank + "    ")
    if step.functions:
        # Each function once, in the order in which it first ran; the places of those that were read from C.
        ran = dict.fromkeys(
            (c.name, (c.place or trace.sources[c.name]) if c.name in trace.sources else "") for c in step.functions)
        told = ", ".join(name + (f"{GLUE}({place})" if place else "") for name, place in ran)
        yield from (x.replace(GLUE, " ") for x in wrap(told, width, blank + "  ran ", blank + "      "))
    if step.changes:
        told = ", ".join(f"{name}: {old} -> {new}".replace(" ", GLUE) for name, (old, new) in step.changes.items())
        yield from (x.replace(GLUE, " ") for x in wrap(told, width, blank + "  ", blank + "  "))


def _closing(trace: Trace, width: int) -> Iterator[str]:
    end = sum(step.cost for step in trace.steps)
    length = plural(len(trace.steps), "step") + (f", {amount(end, trace.unit)}" if trace.unit else "")
    if trace.note:
        until = " up to the end of the first round" if trace.cycle else ""
        yield from wrap(f"{length}{until}; {trace.note}.", width)
    elif trace.cycle and any(step.waiting for step in trace.cycle):
        yield from wrap(f"{length} up to the end of the first round; the wait has no bound.", width)
    elif trace.total is not None and wait_of(trace):
        yield from wrap(f"{length}; the wait is {amount(trace.total, trace.unit)}.", width)
    else:
        yield f"{length}."
