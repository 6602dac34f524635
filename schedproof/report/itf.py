# SPDX-License-Identifier: GPL-2.0-only
"""The format ``itf``: the Informal Trace Format of Apalache and Quint, ADR-015, one state after the other in JSON."""

from __future__ import annotations

import json
import re
from typing import Any

from schedproof.report import not_for
from schedproof.report._lanes import picture
from schedproof.trace import Trace


def render(thing: Any) -> str:
    """A trace as ITF. Raises InputError for anything else.

    ``loop`` is the state to which the part that repeats comes back. The action that led to a state stands in its
    ``#meta``; numbers are integers, all else is text.
    """
    if not isinstance(thing, Trace):
        raise not_for(thing, "itf")
    seen = picture(thing)
    steps = thing.steps
    states = []
    # The state behind the last step of a cycle is the one at which it began.
    for i, state in enumerate(seen.states[:-1] if thing.cycle else seen.states):
        meta = {"index": i, **({"action": steps[i - 1].label} if i else {})}
        states.append({"#meta": meta, **{name: _value(text) for name, text in state.items()}})
    meta = {"format": "ITF", "source": f"{thing.model}:{thing.property} in {thing.variant}", "status": thing.verdict,
            "description": thing.statement, "varTypes": {}}
    found: dict[str, Any] = {"#meta": meta, "params": [], "vars": list(thing.initial), "states": states}
    if thing.cycle:
        found["loop"] = len(thing.stem)
    return json.dumps(found, indent=1) + "\n"


def _value(text: str) -> Any:
    return {"#bigint": text} if re.fullmatch(r"-?\d+", text) else {"yes": True, "no": False}.get(text, text)
