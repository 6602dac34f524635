# SPDX-License-Identifier: GPL-2.0-only
"""The commands, one file each; adding a command is adding a file.

A command's file has ``HELP`` (one line), ``add_arguments(parser)`` and ``run(args) -> int``, which gives the exit
code. Files that begin with an underscore are helpers. ``run`` imports what is heavy, the module does not.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from typing import Protocol, cast


class Command(Protocol):
    """What a command's module holds."""

    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


def names() -> list[str]:
    """The commands there are, without loading any."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))


def load(name: str) -> Command:
    """One command."""
    return cast(Command, importlib.import_module(f"{__name__}.{name}"))
