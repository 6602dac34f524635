# SPDX-License-Identifier: GPL-2.0-only
"""Reports. One module a format; adding a format is adding a file with a function ``render(thing) -> str``.

The file's name is the format's, or that with ``out`` behind it where the plain name would hide one of Python's
own modules (``jsonout.py`` is the format ``json``). Files that begin with an underscore are helpers.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from schedproof.errors import InputError


def formats() -> dict[str, str]:
    """All formats: name to module, found without loading any."""
    names = [m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")]
    return {name.removesuffix("out"): f"{__name__}.{name}" for name in sorted(names)}


def render(thing: Any, format: str) -> str:
    """A trace, a result or a list of results in the given format. Raises InputError for one that is not known."""
    known = formats()
    if format not in known:
        raise InputError(f"unknown format {format!r}; known: {', '.join(known)}")
    text: str = importlib.import_module(known[format]).render(thing)
    return text


def not_for(thing: Any, format: str) -> InputError:
    """The error of a format that has no way to show this kind of thing."""
    what = {"Trace": "a counterexample", "list": "a list of verdicts", "dict": "a verdict"}
    return InputError(f"format {format} cannot show {what.get(type(thing).__name__, 'this')}")
