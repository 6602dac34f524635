# SPDX-License-Identifier: GPL-2.0-only
"""The terminal: what goes to standard output, to standard error, and progress while someone watches."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from schedproof.errors import InputError
from schedproof.files import write_atomically

Progress = Callable[[Any], None]


def one_line(text: object) -> str:
    """A message on one line, whatever it holds."""
    return " ".join(str(text).split())


def complain(text: object) -> None:
    """One line on standard error."""
    with contextlib.suppress(OSError, AttributeError):      # nobody is left to read it
        print(f"schedproof: {one_line(text)}", file=sys.stderr, flush=True)


def emit(text: str, out: Path | None = None) -> None:
    """Write to a file, whole or not at all, or to standard output. Raises InputError where that is impossible."""
    if out is not None:
        write_atomically(out, text)
        return
    if sys.stdout is None:
        raise InputError("standard output is closed: open it, or name a file with -o")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # Whatever is still buffered would fail again, with a traceback, when Python ends.
        _drop_output()
        what = "closed by its reader" if isinstance(error, BrokenPipeError) else error.strerror or error
        raise InputError(f"standard output: {what}") from None


def _drop_output() -> None:
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


@contextlib.contextmanager
def progress(what: str, quiet: bool = False) -> Iterator[Progress | None]:
    """A line on standard error that tells how far an engine is; None unless a person sits in front of it."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(what)) as status:
        def show(counts: Any) -> None:
            status.update(escape(f"{what}: {counts.states:,} states, depth {counts.depth}"))

        yield show


@contextlib.contextmanager
def progress_text(what: str, quiet: bool = False) -> Iterator[Callable[[str], None] | None]:
    """The same for work that tells in words what it is at."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(what)) as status:
        yield lambda text: status.update(escape(f"{what}: {text}"))
