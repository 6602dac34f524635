# SPDX-License-Identifier: GPL-2.0-only
"""The command line: picks the command, and turns everything that goes wrong into one line and an exit code.

Exit codes: 0 as expected, 1 a property is violated, 2 the input or the call is at fault, 3 undecided.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from schedproof import __version__, commands
from schedproof.console import complain, emit, one_line
from schedproof.errors import InputError, SchedproofError
from schedproof.results import WRONG_INPUT

INTERRUPTED = 130           # what a shell gives for a command that Ctrl-C ended


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, and whose help may be cut short by its reader."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see {self.prog} --help)")

    def print_help(self, file: object = None) -> None:
        emit(self.format_help())


class Version(argparse.Action):
    """``--version``."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
        emit(f"schedproof {__version__}\n")
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and give its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is not None and hasattr(sys.stdout, "reconfigure"):
        # A terminal that cannot show a letter is no reason to fail.
        sys.stdout.reconfigure(errors="replace")
    try:
        return _run(words)
    except SchedproofError as error:
        complain(error)
        return WRONG_INPUT
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        complain("standard output: closed by its reader")
        return WRONG_INPUT
    except MemoryError:
        complain("out of memory: choose a smaller instance with --set")
        return WRONG_INPUT
    except Exception as error:
        if os.environ.get("SCHEDPROOF_DEBUG"):
            raise
        complain(f"this is a bug of schedproof, please report it: {type(error).__name__}: {one_line(error)} "
                 "(SCHEDPROOF_DEBUG=1 shows where)")
        return WRONG_INPUT


def _run(words: list[str]) -> int:
    parser = Parser(prog="schedproof", allow_abbrev=False, description="Checks how long a vCPU can be made to wait "
                    "by the kernel's scheduler: in the models, in a tree's C, before and after a patch.")
    parser.add_argument("--version", action=Version, nargs=0, help="the version")
    known = commands.names()
    if words and not words[0].startswith("-") and words[0] not in known:
        from schedproof.registry import unknown

        raise unknown("command", words[0], known)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    # Only the command that is asked for is loaded: the others may need what takes long to import.
    for name in [words[0]] if words and words[0] in known else known:
        command = commands.load(name)
        sub = subparsers.add_parser(name, help=command.HELP, description=f"{command.HELP}.", allow_abbrev=False)
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    try:
        args = parser.parse_args(words)
    except SystemExit as end:           # after --help and --version
        return int(end.code or 0)
    return int(args.run(args))
