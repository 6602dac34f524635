# SPDX-License-Identifier: GPL-2.0-only
"""The format ``perfetto``: Chrome's trace JSON, which Perfetto and chrome://tracing open.

A track for each CPU and each object that has a lane, one for the wait, one for the steps. The model's time has no
scale: one of its units is a millisecond here, and a step that costs nothing takes a microsecond, so that it is seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from schedproof.report import not_for
from schedproof.report._lanes import Picture, picture
from schedproof.trace import Trace

UNIT, STEP = 1000.0, 1.0              # microseconds
STEPS, LANES, CPUS = 1, 2, 3          # process numbers: three groups of tracks


def render(thing: Any) -> str:
    """A trace as one JSON object. Raises InputError for anything else."""
    if not isinstance(thing, Trace):
        raise not_for(thing, "perfetto")
    seen = picture(thing)
    other = {"model": thing.model, "variant": thing.variant, "property": thing.property, "verdict": thing.verdict,
             "statement": thing.statement, "version": thing.version, "unit": thing.unit,
             "scale": f"1 ms for each of the {thing.unit or 'steps'}, 1 us for a step that costs nothing"}
    return json.dumps({"displayTimeUnit": "ms", "otherData": other,
                       "traceEvents": [*_names(seen), *_steps(seen), *_wait(seen), *_lanes(seen), *_cpus(seen)]},
                      indent=1) + "\n"


def moments(seen: Picture) -> list[float]:
    """When each state begins, in microseconds; the last one is the end."""
    found = [0.0]
    for step in seen.trace.steps:
        found.append(found[-1] + (step.cost * UNIT if step.cost else STEP))
    return found


def _names(seen: Picture) -> Iterator[dict[str, Any]]:
    def name(what: str, process: int, thread: int, text: str) -> dict[str, Any]:
        return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": text}}

    yield name("process_name", STEPS, 0, f"{seen.trace.model}:{seen.trace.property} in {seen.trace.variant}")
    yield name("thread_name", STEPS, 1, "steps")
    if seen.wait:
        yield name("thread_name", STEPS, 2, "the wait")
    if seen.lanes:
        yield name("process_name", LANES, 0, "who does what")
    for number, lane in enumerate(seen.lanes, 1):
        yield name("thread_name", LANES, number, lane)
    if seen.cpus:
        yield name("process_name", CPUS, 0, "CPUs")
    for cpu in seen.cpus:
        yield name("thread_name", CPUS, cpu + 1, f"CPU {cpu}")


def _slice(name: str, process: int, thread: int, begin: float, end: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "cat": "schedproof", "pid": process, "tid": thread, "ts": begin,
            "dur": end - begin, "args": args}


def _steps(seen: Picture) -> Iterator[dict[str, Any]]:
    at, trace = moments(seen), seen.trace
    for i, step in enumerate(trace.steps):
        if i == len(trace.stem):
            yield {"ph": "i", "s": "g", "name": "repeats for ever from here", "pid": STEPS, "tid": 1, "ts": at[i]}
        yield _slice(step.label, STEPS, 1, at[i], at[i + 1], number=i + 1, functions=[c.name for c in step.functions],
                     **{name: f"{old} -> {new}" for name, (old, new) in step.changes.items()})
    if trace.cycle:
        yield {"ph": "i", "s": "g", "name": "and so on, for ever", "pid": STEPS, "tid": 1, "ts": at[-1]}


def _wait(seen: Picture) -> Iterator[dict[str, Any]]:
    if seen.wait:
        at, trace = moments(seen), seen.trace
        total = "without end" if trace.cycle else f"{sum(trace.steps[i].cost for i in seen.wait)} {trace.unit}"
        yield _slice(f"wait: {total}", STEPS, 2, at[seen.wait[0]], at[seen.wait[-1] + 1])


def _lanes(seen: Picture) -> Iterator[dict[str, Any]]:
    at = moments(seen)
    for number, spans in enumerate(seen.lanes.values(), 1):
        for span in spans:
            if span.what and at[min(span.last + 1, len(at) - 1)] > at[span.first]:
                yield _slice(span.what, LANES, number, at[span.first], at[min(span.last + 1, len(at) - 1)])


def _cpus(seen: Picture) -> Iterator[dict[str, Any]]:
    at = moments(seen)
    for cpu, spans in seen.cpus.items():
        for span in spans:
            if span.what and at[min(span.last + 1, len(at) - 1)] > at[span.first]:
                yield _slice(span.what, CPUS, cpu + 1, at[span.first], at[min(span.last + 1, len(at) - 1)])
