# SPDX-License-Identifier: GPL-2.0-only
"""The ``expectation`` engine: what a finite Markov chain gains on average until it ends, in exact fractions.

The value solves x = gain + P x over the states that are met before the end: Gaussian elimination on fractions, no
rounding anywhere. Where the chain may go on for ever, its gain there must be 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Any

import networkx as nx

from schedproof import __version__
from schedproof.errors import InputError, ModelError
from schedproof.model.concrete import Taken, steps
from schedproof.model.instance import Instance
from schedproof.model.transition import State
from schedproof.property import Chain, Expectation, Property
from schedproof.trace import Trace
from schedproof.verdict import Counts, Proved, Refuted, Verdict

LARGEST = 20_000


class ByFractions:
    """The engine."""

    name = "expectation"

    def applies(self, instance: Any, property: Property) -> str | None:
        if isinstance(property.kind, Expectation):
            return None
        return f"only an expectation has an expected value, not a property of the kind {property.kind.word}"

    def decide(self, instance: Any, property: Property, budget: float | None = None, jobs: int = 1,
               progress: Callable[[Counts], None] | None = None) -> Verdict:
        """The exact value, compared with the declared one. Raises ModelError for what is no Markov chain."""
        begin = time.perf_counter()
        chain, declared = chain_and_value(instance, property)
        value = expected_value(chain, property.name)
        counts = Counts(states=len(chain.steps), transitions=sum(map(len, chain.steps.values())),
                        seconds=time.perf_counter() - begin)
        common: dict[str, Any] = {"engine": self.name, "instance": instance.title, "counts": counts, "value": value}
        if value == declared:
            return Proved(**common)
        trace = Trace(instance.model.__module__.rpartition(".")[2], instance.name, dict(instance.params), property.name,
                      "refuted", told(value, declared), (), (), "", None, instance.sources, property.statement,
                      __version__)
        return Refuted(**common, trace=trace, reason=f"the value is {_text(value)}, not {declared}")


def told(value: Fraction | None, declared: Fraction) -> dict[str, str]:
    """What a trace says of a wrong value."""
    return {"value": _text(value), "declared": str(declared)}


def _text(value: Fraction | None) -> str:
    return "unbounded" if value is None else str(value)


def again(trace: Trace, instance: Any, property: Property) -> Verdict:
    """What a stored value shows when it is computed again. Raises InputError when it is another one now."""
    chain, declared = chain_and_value(instance, property)
    value = expected_value(chain, property.name)
    if dict(trace.initial) != told(value, declared):
        raise InputError(f"the value is {_text(value)}, and {declared} is declared: the file says something else")
    made = Proved if value == declared else Refuted
    return made("replay", instance.title, value=value, trace=trace)


def chain_and_value(instance: Any, property: Property) -> tuple[Chain, Fraction]:
    """What is declared: the chain, which may be a single step, and its value."""
    kind = property.kind
    assert isinstance(kind, Expectation)
    value = kind.value(instance) if callable(kind.value) else kind.value
    if isinstance(value, bool) or not isinstance(value, Fraction | int):
        raise ModelError(f"{property.name}: the value {value!r} is no exact fraction")
    made = kind.of(instance)
    if not isinstance(made, Chain):
        made = Chain({o: p for o, (p, _) in made.items()}, {}, {o: v for o, (_, v) in made.items()})
    return made, Fraction(value)


# ------------------------------------------------------------------------------------------------- the value
def expected_value(chain: Chain, name: str = "chain") -> Fraction | None:
    """What a chain gains on average; None where that has no bound. Raises ModelError for what is no chain."""
    _check(chain, name)
    graph = nx.DiGraph([(a, b) for a, row in chain.steps.items() for b, p in row.items() if p])
    graph.add_nodes_from((*chain.start, *chain.steps))
    live = [s for s, p in chain.start.items() if p]
    met = set(live).union(*(nx.descendants(graph, s) for s in live))
    part = graph.subgraph(met)
    closed = [c for c in nx.strongly_connected_components(part)
              if any(chain.steps.get(s) for s in c) and all(b in c for a in c for b in part.successors(a))]
    endless: set[Hashable] = set().union(*closed)
    gains = [_gain(chain, s) for s in endless if _gain(chain, s)]
    if gains:
        if any(g > 0 for g in gains) and any(g < 0 for g in gains):
            raise ModelError(f"{name}: where it goes on for ever, it gains and loses: there is no value")
        return None
    values = _solve(chain, [s for s in met if s not in endless and chain.steps.get(s)])
    return sum((p * values.get(s, _gain(chain, s)) for s, p in chain.start.items()), Fraction(0))


def _gain(chain: Chain, state: Hashable) -> Fraction:
    return Fraction(chain.gain.get(state, 0))


def _check(chain: Chain, name: str) -> None:
    """Raise ModelError where probabilities are no exact fractions that add up to 1."""
    for what, row in (("the start", chain.start), *((f"state {s}", r) for s, r in chain.steps.items() if r)):
        if any(isinstance(p, bool) or not isinstance(p, Fraction | int) or p < 0 for p in row.values()):
            raise ModelError(f"{name}: a probability of {what} is no exact fraction, or negative")
        if sum(row.values()) != 1:
            raise ModelError(f"{name}: the probabilities of {what} add up to {sum(row.values())}, not to 1")
    for state, gain in chain.gain.items():
        if isinstance(gain, bool) or not isinstance(gain, Fraction | int):
            raise ModelError(f"{name}: the gain of {state} is no exact fraction")


def _solve(chain: Chain, inner: list[Hashable]) -> dict[Hashable, Fraction]:
    """The value of each of the states, all of which are left for good: elimination of one state after the other."""
    rows: dict[Hashable, dict[Hashable, Fraction]] = {}
    constant: dict[Hashable, Fraction] = {}
    todo = set(inner)
    for state in inner:
        rows[state] = {b: Fraction(p) for b, p in chain.steps[state].items() if p and b in todo}
        constant[state] = _gain(chain, state) + sum(
            (p * _gain(chain, b) for b, p in chain.steps[state].items() if b not in todo), Fraction(0))
    for i, state in enumerate(inner):                       # x = row x + constant, without x itself
        row, again_ = rows[state], rows[state].pop(state, Fraction(0))
        constant[state] /= 1 - again_
        for b in row:
            row[b] /= 1 - again_
        for later in inner[i + 1:]:
            factor = rows[later].pop(state, None)
            if factor:
                constant[later] += factor * constant[state]
                for b, p in row.items():
                    rows[later][b] = rows[later].get(b, Fraction(0)) + factor * p
    for state in reversed(inner):
        constant[state] += sum((p * constant[b] for b, p in rows[state].items()), Fraction(0))
    return constant


# ------------------------------------------------------------------------------------------------ from a model
def chain_of(instance: Instance, weight: Callable[[State, Taken], Fraction | int], gain: Callable[[State], Any],
             end: Callable[[State], bool]) -> Chain:
    """The chain of a model's own steps, on the plain interpreter.

    The probability of a step is its ``weight`` by the sum of the weights of all steps that can be taken; each visit of
    a state gains ``gain``; it ends in the states in which ``end`` holds. All initial states are equally likely.
    Raises ModelError where no step has a weight, or there are more than 20,000 states.
    """
    names = tuple(instance.variables)
    assert instance.transitions is not None          # threads learn the constants of their frames here
    todo = list(dict.fromkeys(tuple(i[n] for n in names) for i in instance.initial))
    start: dict[Hashable, Fraction] = {s: Fraction(1, len(todo)) for s in todo}
    rows: dict[Hashable, dict[Hashable, Fraction]] = {}
    gains: dict[Hashable, Fraction] = {}
    for code in todo:                                # grows while it is gone through
        state = dict(zip(names, code, strict=True))
        gains[code] = Fraction(gain(state))
        if code in rows or end(state):
            continue
        weights: dict[tuple[int | bool, ...], Fraction] = {}
        for taken in steps(instance, state):
            there = tuple(taken.state[n] for n in names)
            weights[there] = weights.get(there, Fraction(0)) + Fraction(weight(state, taken))
        total = sum(weights.values(), Fraction(0))
        if total <= 0 or len(gains) > LARGEST:
            raise ModelError("no step that can be taken has a weight" if total <= 0
                             else f"more than {LARGEST} states")
        rows[code] = {there: w / total for there, w in weights.items() if w}
        todo += [there for there in sorted(weights) if weights[there] and there not in gains]
    return Chain(start, rows, gains)
