# SPDX-License-Identifier: GPL-2.0-only
"""Verdicts. Only ``Proved`` passes where a property must hold, only ``Refuted`` where it must fail."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from schedproof.trace import Trace

WorstCase = int | Literal["unbounded"]


@dataclass(frozen=True)
class Counts:
    """What an engine went through: distinct states, transitions, depth of the search in steps, seconds."""

    states: int = 0
    transitions: int = 0
    depth: int = 0
    seconds: float = 0.0
    compile_seconds: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """Base. ``engine`` decided it, on ``instance`` (a variant with its parameters, as text; or "any")."""

    engine: str
    instance: str
    counts: Counts = field(default_factory=Counts)
    worst_case: WorstCase | None = None        # in the property's cost; for kinds that have one
    unit: str = ""
    value: Fraction | None = None              # of an expectation

    @property
    def name(self) -> str:
        """The verdict in lower case, as in JSON."""
        return type(self).__name__.lower()


@dataclass(frozen=True)
class Proved(Verdict):
    """The property holds in every run of the instance. ``trace`` shows the worst case or a witness, if any."""

    trace: Trace | None = None
    certificate: object = None


@dataclass(frozen=True)
class Refuted(Verdict):
    """The property fails, and ``trace`` shows how. ``starved``: an unbounded wait in a fair run.

    ``reason`` says what fails, for the kinds in which a run alone does not tell it.
    """

    trace: Trace | None = None
    starved: bool | None = None
    reason: str = ""


@dataclass(frozen=True)
class Vacuous(Verdict):
    """The property says nothing here: ``reason`` names the premise that is never met or the dead action."""

    reason: str = ""


@dataclass(frozen=True)
class Unknown(Verdict):
    """Not decided: a budget ran out, a solver gave up, a function could not be read. Never a pass."""

    reason: str = ""
