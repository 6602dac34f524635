# SPDX-License-Identifier: GPL-2.0-only
"""Ways of deciding. ``decide`` asks the first engine that can answer, or the one that is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from schedproof.errors import InputError
from schedproof.property import Property
from schedproof.verdict import Counts, Unknown, Verdict

Progress = Callable[[Counts], None] | None


class Engine(Protocol):
    """One way of deciding."""

    @property
    def name(self) -> str: ...

    def applies(self, instance: Any, property: Property) -> str | None:
        """Why it cannot decide this property on this instance, or None when it can."""

    def decide(self, instance: Any, property: Property, budget: float | None = None, jobs: int = 1,
               progress: Progress = None) -> Verdict:
        """The verdict. ``budget`` in seconds can only turn an answer into ``Unknown``."""


def engines() -> dict[str, Engine]:
    """The engines by name, the preferred ones first. Made here, so that importing this module costs nothing."""
    from schedproof.engines.agrees import ByProduct
    from schedproof.engines.bmc.engine import Bmc
    from schedproof.engines.expectation import ByFractions
    from schedproof.engines.explicit.engine import Explicit
    from schedproof.engines.hypothesis import ByHypothesis
    from schedproof.engines.induction import Induction
    from schedproof.engines.lemma import ByLemma
    from schedproof.engines.reference import Reference

    found: list[Engine] = [Explicit(), Reference(), Induction(), Bmc(), ByHypothesis(),
                           ByLemma(), ByProduct(), ByFractions()]
    return {e.name: e for e in found}


def decide(instance: Any, property: Property, engine: str = "auto", budget: float | None = None, jobs: int = 1,
           progress: Progress = None) -> Verdict:
    """The verdict on a property of an instance.

    Raises InputError for an unknown engine, ModelError when the model itself is at fault. An engine that does not
    apply gives ``Unknown`` with the reason, never another engine's answer under its name.
    """
    known = engines()
    if engine != "auto" and engine not in known:
        raise InputError(f"unknown engine '{engine}': known are auto, {', '.join(known)}")
    reasons = []
    for name, candidate in known.items():
        if engine not in ("auto", name):
            continue
        reason = candidate.applies(instance, property)
        if reason is None:
            return candidate.decide(instance, property, budget, jobs, progress)
        reasons.append(f"{name}: {reason}")
    return Unknown(engine, instance.title, reason="; ".join(reasons))
