# SPDX-License-Identifier: GPL-2.0-only
"""Properties: what must hold, in which kernels, and what must not. One declaration serves pytest, CLI and docs.

Formulas are functions of the model written in the same subset of Python as its methods:

    def stale_run(self):
        return self.running(self.entity.gA) and self.stale(self.entity.gA)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Formula = Callable[..., Any]


@dataclass(frozen=True)
class Kind:
    """Base of the kinds of property."""

    @property
    def word(self) -> str:
        return {"Invariant": "invariant", "Reachable": "reachable", "Within": "within", "WorstCase": "worst_case",
                "Eventually": "eventually", "Lemma": "lemma", "Agrees": "agrees",
                "Expectation": "expectation"}[type(self).__name__]


@dataclass(frozen=True)
class Invariant(Kind):
    """``formula`` holds in every reachable state. ``premise`` must be true in some, or the verdict is vacuous."""

    formula: Formula
    premise: Formula | None = None


@dataclass(frozen=True)
class Reachable(Kind):
    """Some run reaches a state in which ``formula`` holds (a witness)."""

    formula: Formula


@dataclass(frozen=True)
class Within(Kind):
    """A wait ends within ``bound`` of ``cost``; ``bound`` may be a function of the instance's parameters.

    The wait is the sum of the cost over consecutive steps that start in a ``waiting`` state, the step that ends
    it included.
    """

    bound: int | Callable[[Any], int]
    waiting: Formula
    cost: str


@dataclass(frozen=True)
class WorstCase(Kind):
    """The wait has some bound; the verdict gives the exact worst case."""

    waiting: Formula
    cost: str


@dataclass(frozen=True)
class Eventually(Kind):
    """``goal`` comes to hold in every run in which time diverges and the declared fairness holds.

    With ``after``, whenever ``after`` holds, ``goal`` holds then or later.
    """

    goal: Formula
    after: Formula | None = None
    cost: str = ""


@dataclass(frozen=True)
class Lemma(Kind):
    """A statement about one function for all inputs in named ranges, by Z3.

    ``claim(instance)`` gives the z3 formula that must be valid and the names of its inputs.
    """

    claim: Callable[[Any], Any]


@dataclass(frozen=True)
class Agrees(Kind):
    """This variant and ``variant`` give the same observations, by product."""

    variant: str
    observe: Formula


@dataclass(frozen=True)
class Expectation(Kind):
    """The exact value of a declared Markov step."""

    value: Any
    of: Formula


@dataclass(frozen=True)
class Property:
    """One property of one model.

    ``statement`` says it in words; ``facts`` is its label in the collected facts; ``holds`` and ``fails`` list the
    variants in which it must be proved and refuted; ``instance`` fixes parameters for it alone. The ``headline``
    of a model is what ``schedproof latency`` answers.
    """

    name: str
    model: Any
    statement: str
    kind: Kind
    facts: str = ""
    holds: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()
    instance: Mapping[str, int] = field(default_factory=dict)
    headline: bool = False
    why: str = ""                       # one paragraph in kernel terms: what a refutation of it means
