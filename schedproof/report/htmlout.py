# SPDX-License-Identifier: GPL-2.0-only
"""The format ``html``: a run as one page that needs nothing else, to step through in a browser.

A lane for each CPU and each object that the model's ``lanes`` name, a column for each state. The page holds the run as
data; every text of it is put in by ``textContent``, so nothing that a patch or a tree says is taken for a page.
"""

from __future__ import annotations

from typing import Any

from schedproof.report import not_for
from schedproof.report._lanes import Picture, Span, picture
from schedproof.report._layout import amount
from schedproof.report._pages import page
from schedproof.trace import Trace


def render(thing: Any) -> str:
    """A trace, or several beside each other, as a page. Raises InputError for anything else."""
    traces = thing if isinstance(thing, list) else [thing]
    if not traces or not all(isinstance(t, Trace) for t in traces):
        raise not_for(thing, "html")
    title = " and ".join(dict.fromkeys(f"{t.model}:{t.property} in {t.variant}" for t in traces))
    return page("run.html", title=title, runs=[data(picture(t)) for t in traces])


def data(seen: Picture) -> dict[str, Any]:
    """What the page draws of one run."""
    trace, steps = seen.trace, seen.trace.steps
    loop = len(trace.stem) if trace.cycle else None
    return {
        "title": f"{trace.model}:{trace.property} in {trace.variant}", "verdict": trace.verdict,
        "statement": trace.statement, "version": trace.version, "unit": trace.unit, "loop": loop,
        "parameters": ", ".join(f"{k} = {v}" for k, v in trace.params.items()),
        "sources": [f"{name} ({place})" if place else name for name, place in trace.sources.items()],
        "wait": [seen.wait[0], seen.wait[-1] + 1] if seen.wait else None,
        "total": "without end" if trace.cycle and seen.wait else
                 amount(sum(steps[i].cost for i in seen.wait), trace.unit) if seen.wait else "",
        "times": [amount(t, trace.unit) for t in seen.times],
        "initial": dict(trace.initial),
        "lanes": [{"name": f"CPU {n}", "cpu": True, "spans": _spans(s)} for n, s in seen.cpus.items()]
                 + [{"name": n, "cpu": False, "spans": _spans(s)} for n, s in seen.lanes.items()],
        "steps": [{"label": s.label, "functions": [[c.name, c.place or trace.sources.get(c.name, ""), c.depth]
                                                   for c in s.functions],
                   "changes": {k: list(v) for k, v in s.changes.items()}} for s in steps]}


def _spans(spans: tuple[Span, ...]) -> list[list[Any]]:
    return [[s.what, s.first, s.last] for s in spans]
