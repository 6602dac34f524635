# SPDX-License-Identifier: GPL-2.0-only
"""The reference engine: decides tiny instances on the plain interpreter, to check the other engines.

It shares the syntax of programs with them and nothing else: no solver, no compiled code, states as dictionaries,
the worst case by networkx on the condensation.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import networkx as nx

from schedproof.errors import BudgetExceeded, ModelError
from schedproof.model.concrete import Taken, steps
from schedproof.model.instance import Instance
from schedproof.property import Invariant, Property, Reachable, Within, WorstCase
from schedproof.verdict import Counts, Proved, Refuted, Unknown, Vacuous, Verdict
from schedproof.verdict import WorstCase as Bound

State = tuple[int | bool, ...]
LARGEST = 200_000


@dataclass
class Graph:
    """All reachable states with the steps out of each."""

    names: tuple[str, ...]
    initial: list[State]
    steps: dict[State, list[tuple[Taken, State]]] = field(default_factory=dict)
    seconds: float = 0.0

    def named(self, state: State) -> dict[str, int | bool]:
        return dict(zip(self.names, state, strict=True))

    @property
    def counts(self) -> Counts:
        return Counts(len(self.steps), sum(len(s) for s in self.steps.values()), 0, self.seconds)


def explore(instance: Instance, budget: float | None = None) -> Graph:
    """The reachable graph, breadth first. Raises ModelError for a state that is stuck without being final."""
    begin = time.perf_counter()
    names = tuple(instance.variables)
    graph = Graph(names, [tuple(i[n] for n in names) for i in instance.initial])
    todo = list(dict.fromkeys(graph.initial))
    graph.steps = {s: [] for s in todo}
    for state in todo:
        if budget is not None and time.perf_counter() - begin > budget or len(graph.steps) > LARGEST:
            graph.seconds = time.perf_counter() - begin
            raise BudgetExceeded(f"{len(graph.steps)} states and more")
        here = graph.named(state)
        for taken in steps(instance, here):
            there = tuple(taken.state[n] for n in names)
            if there not in graph.steps:
                graph.steps[there] = []
                todo.append(there)
            graph.steps[state].append((taken, there))
        if not graph.steps[state] and not instance.is_final(here):
            raise ModelError("a state from which nothing can happen: " + _shown(instance, here),
                             hint="declare it with @final, or add what is missing")
    graph.seconds = time.perf_counter() - begin
    _time_passes(instance, graph)
    return graph


def _shown(instance: Instance, state: dict[str, int | bool]) -> str:
    return ", ".join(f"{k}={v}" for k, v in instance.show(state).items())


def _time_passes(instance: Instance, graph: Graph) -> None:
    """Raises ModelError where no step that costs anything can ever follow, in a model that has costs."""
    backwards = nx.DiGraph((b, a) for a, out in graph.steps.items() for _, b in out)
    costly = {a for a, out in graph.steps.items() for t, _ in out if any(c > 0 for c in t.costs.values())}
    if not costly:
        return
    sink = object()
    backwards.add_edges_from((sink, s) for s in costly)
    alive = nx.descendants(backwards, sink)
    for state in graph.steps:
        if state not in alive and not instance.is_final(graph.named(state)):
            raise ModelError("a state from which time cannot pass: " + _shown(instance, graph.named(state)))


def worst_case(instance: Instance, graph: Graph, waiting: Callable[..., Any], cost: str) -> Bound | None:
    """The exact worst case of a wait, by the definition: steps that start in a waiting state. None: nobody waits."""
    waits = {s for s in graph.steps if instance.evaluate(waiting, graph.named(s))}
    part = nx.MultiDiGraph()
    part.add_nodes_from(waits)
    for state in waits:
        for taken, there in graph.steps[state]:
            if there in waits:
                part.add_edge(state, there, cost=taken.costs.get(cost, 0))
    if not waits:
        return None
    components = list(nx.strongly_connected_components(part))
    where = {s: i for i, component in enumerate(components) for s in component}
    if any(where[a] == where[b] and c > 0 for a, b, c in part.edges(data="cost")):
        return "unbounded"
    best: dict[int, int] = {}
    for i in reversed(list(nx.topological_sort(nx.condensation(nx.DiGraph(part), components)))):
        found = 0
        for state in components[i]:
            for taken, there in graph.steps[state]:
                more = best[where[there]] if there in waits and where[there] != i else 0
                found = max(found, taken.costs.get(cost, 0) + more)
        best[i] = found
    return max(best.values())


class Reference:
    """The engine. Its verdicts have no traces: it is there to be compared with."""

    name = "reference"

    def applies(self, instance: Instance, property: Property) -> str | None:
        if any(v.domain.codes() is None for v in instance.variables.values()):
            return "a variable is unbounded"
        if not isinstance(property.kind, Invariant | Reachable | Within | WorstCase):
            return f"{property.kind.word} is not decided by search"
        return None

    def decide(self, instance: Instance, property: Property, budget: float | None = None, jobs: int = 1,
               progress: Callable[[Counts], None] | None = None) -> Verdict:
        common: dict[str, Any] = {"engine": self.name, "instance": instance.title}
        assert instance.transitions is not None          # threads learn the constants of their frames here
        try:
            graph = explore(instance, budget)
        except BudgetExceeded as error:
            return Unknown(**common, reason=f"budget spent: {error}")
        return self.judge(instance, property, graph, {**common, "counts": graph.counts})

    def judge(self, instance: Instance, property: Property, graph: Graph, common: dict[str, Any]) -> Verdict:
        kind = property.kind
        taken = {t.action for out in graph.steps.values() for t, _ in out}
        dead = [e.action for e in instance.events if e.action not in taken and e.action not in instance.dead]
        if isinstance(kind, Invariant | Reachable):
            holds = [bool(instance.evaluate(kind.formula, graph.named(s))) for s in graph.steps]
            good = all(holds) if isinstance(kind, Invariant) else any(holds)
            if not good:
                return Refuted(**common)
            premise = kind.premise if isinstance(kind, Invariant) else None
            if premise is not None and not any(instance.evaluate(premise, graph.named(s)) for s in graph.steps):
                return Vacuous(**common, reason="the premise is never reached")
        else:
            assert isinstance(kind, Within | WorstCase)
            worst = worst_case(instance, graph, kind.waiting, kind.cost)
            if worst is None:
                return Vacuous(**common, reason="no state waits")
            bound = None
            if isinstance(kind, Within):
                bound = kind.bound(instance.view) if callable(kind.bound) else kind.bound
            common = {**common, "worst_case": worst, "unit": kind.cost}
            if worst == "unbounded" or (bound is not None and worst > bound):
                return Refuted(**common)
        return Vacuous(**common, reason=f"the action {dead[0]} never happens") if dead else Proved(**common)
