# SPDX-License-Identifier: GPL-2.0-only
"""JSON: a trace as the file that ``schedproof replay`` reads, results as one object."""

from __future__ import annotations

import json
from typing import Any

from schedproof.report import not_for
from schedproof.trace import Trace


def render(thing: Any) -> str:
    """A trace, one result (an object), or a list of results (an object with ``results``)."""
    if isinstance(thing, Trace):
        thing = thing.to_json()
    elif isinstance(thing, list):
        thing = {"results": thing}
    elif not isinstance(thing, dict):
        raise not_for(thing, "json")
    return json.dumps(thing, indent=1) + "\n"
