# SPDX-License-Identifier: GPL-2.0-only
"""Properties: what must hold, in which kernels, and what must not. One declaration serves pytest, CLI and docs.

Formulas are functions of the model written in the same subset of Python as its methods:

    def stale_run(self):
        return self.running(self.entity.gA) and self.stale(self.entity.gA)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Formula = Callable[..., Any]


@dataclass(frozen=True)
class Kind:
    """Base of the kinds of property."""

    @property
    def word(self) -> str:
        return {"Invariant": "invariant", "Reachable": "reachable", "Within": "within", "WorstCase": "worst_case",
                "Eventually": "eventually", "AlwaysPossible": "always_possible", "Lemma": "lemma",
                "Agrees": "agrees", "Expectation": "expectation"}[type(self).__name__]


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

    With ``after``, whenever ``after`` holds, ``goal`` holds then or later. Time is ``cost``, or any cost of the model
    where none is named; in a model without costs every run counts that goes on for ever. A run that ends, in a state
    that is declared final, counts as well: outside it time goes on, and the goal never comes.
    """

    goal: Formula
    after: Formula | None = None
    cost: str = ""


@dataclass(frozen=True)
class AlwaysPossible(Kind):
    """From every reachable state some continuation reaches a state in which ``formula`` holds (AG EF of CTL).

    Fairness and time play no part: one continuation is enough, and it has finitely many steps.
    """

    formula: Formula


@dataclass(frozen=True)
class Claim:
    """What a lemma says: ``formula`` is valid for all values of the ``inputs`` that satisfy the ``assumptions``.

    ``formula`` is one z3 formula, or several obligations by name, in the order in which they are tried; all must be
    valid, as the parts of a proof by induction must. ``inputs`` names every free constant. ``any_instance`` says that
    no parameter of the instance enters, so that the proof is one for all instances.
    """

    formula: Any
    inputs: Mapping[str, Any]
    assumptions: tuple[Any, ...] = ()
    any_instance: bool = False


@dataclass(frozen=True)
class Lemma(Kind):
    """A statement about one function for all inputs in named ranges, by Z3.

    ``claim(instance)`` gives the ``Claim``; ``schedproof.model.function.all_inputs`` runs a method for one. What no
    input can satisfy is vacuous.
    """

    claim: Callable[[Any], Claim]


@dataclass(frozen=True)
class Agrees(Kind):
    """This variant and ``variant`` give the same observations, by product.

    An observation is the value of ``observe`` in a state, or of each of several formulas. The variants agree when
    every finite run of one has a run of the other with the same sequence of observations, both ways, where steps that
    do not change the observation are not seen. ``variant`` may be a function of this variant's name.
    """

    variant: str | Callable[[str], str]
    observe: Formula | tuple[Formula, ...]

    def other(self, name: str) -> str:
        """The name of the variant to compare the variant ``name`` with."""
        return self.variant(name) if callable(self.variant) else self.variant


@dataclass(frozen=True)
class Chain:
    """A finite Markov chain: where it starts and goes on to with which probability, what each visit of a state gains.

    A state without a row in ``steps`` ends it. ``schedproof.engines.expectation.chain_of`` makes one from a model.
    """

    start: Mapping[Any, Fraction]
    steps: Mapping[Any, Mapping[Any, Fraction]]
    gain: Mapping[Any, Fraction | int]


@dataclass(frozen=True)
class Expectation(Kind):
    """The exact value of a declared Markov step is ``value``, a fraction or a function of the instance.

    ``of(instance)`` gives a ``Chain``, whose value is what it gains on average until it ends, or a single step: a
    mapping from outcomes to (probability, value). Probabilities are exact fractions that add up to 1.
    """

    value: Fraction | int | Callable[[Any], Fraction | int]
    of: Callable[[Any], Chain | Mapping[Any, tuple[Fraction, Fraction | int]]]


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
