# SPDX-License-Identifier: GPL-2.0-only
"""Results: one property decided on one variant, as the plain data that tables and JSON are made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from schedproof.property import Property
from schedproof.trace import Trace
from schedproof.verdict import Verdict

# The keys are those of the JSON output, which is stable: docs/design.md lists them.
Result = dict[str, Any]

OK, VIOLATED, WRONG_INPUT, UNDECIDED = 0, 1, 2, 3


def result_of(model: str, prop: Property, instance: Any, verdict: Verdict, expected: str | None) -> Result:
    """One row. ``expected`` is ``proved``, ``refuted`` or None where nothing is declared."""
    trace: Trace | None = getattr(verdict, "trace", None)
    return {
        "model": model,
        "property": prop.name,
        "kind": prop.kind.word,
        "variant": instance.name,
        "parameters": dict(instance.params),
        "verdict": verdict.name,
        "expected": expected,
        "engine": verdict.engine,
        "states": verdict.counts.states,
        "transitions": verdict.counts.transitions,
        "depth": verdict.counts.depth,
        "seconds": round(verdict.counts.seconds, 3),
        "worst_case": verdict.worst_case,
        "unit": verdict.unit,
        "value": None if verdict.value is None else str(verdict.value),
        "starved": getattr(verdict, "starved", None),
        "reason": getattr(verdict, "reason", ""),
        "trace": trace.to_json() if trace is not None else None,
    }


def code_of(result: Result) -> int:
    """The exit code that one result alone would give.

    Without an expectation a refutation is a violation. A vacuous verdict says nothing, so it is undecided.
    """
    verdict, expected = result["verdict"], result.get("expected")
    if verdict not in ("proved", "refuted"):
        return UNDECIDED
    return VIOLATED if verdict != (expected or "proved") else OK


def exit_code(codes: Iterable[int]) -> int:
    """The code of several together: 2 before 1 before 3 before 0."""
    found = set(codes)
    return next((c for c in (WRONG_INPUT, VIOLATED, UNDECIDED) if c in found), OK)
