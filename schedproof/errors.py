# SPDX-License-Identifier: GPL-2.0-only
"""What can go wrong, one class a cause. Each message says what to do next."""

from __future__ import annotations


class SchedproofError(Exception):
    """Base of every error that a user is meant to read. The command line prints it in one line, exit code 2."""


class InputError(SchedproofError):
    """The call or a file that it names is at fault: unknown name, value out of range, patch that does not apply."""


class ModelError(SchedproofError):
    """A model says something that has no meaning.

    ``file`` and ``line`` name the place in the model (or in the kernel's C, when that code runs in the model),
    ``hint`` says what to write instead, ``trace`` is the run that leads there when the fault is met at run time.
    """

    def __init__(self, message: str, file: str = "", line: int = 0, hint: str = "", trace: object = None):
        self.message, self.file, self.line, self.hint, self.trace = message, file, line, hint, trace
        where = f"{file}:{line}: " if file else ""
        super().__init__(f"{where}{message}" + (f" ({hint})" if hint else ""))


class NotExecutable(SchedproofError):
    """A piece of C that the reader cannot execute: nothing unknown is skipped, so the place is named instead."""

    def __init__(self, file: str, line: int, construct: str):
        self.file, self.line, self.construct = file, line, construct
        super().__init__(f"{file}:{line}: cannot execute {construct}")


class BudgetExceeded(SchedproofError):
    """Raised inside an engine when its time or memory budget is spent; becomes the verdict ``Unknown``."""
