# SPDX-License-Identifier: GPL-2.0-only
"""The reference engine: decides tiny instances on the plain interpreter, to check the other engines.

It shares the syntax of programs with them and nothing else: no solver, no compiled code, states as tuples, the worst
case by networkx on the condensation. Its verdicts have no traces.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import networkx as nx

from schedproof.errors import BudgetExceeded, ModelError
from schedproof.model.concrete import Taken, steps
from schedproof.model.instance import Instance
from schedproof.property import AlwaysPossible, Eventually, Invariant, Kind, Property, Reachable, Within, WorstCase
from schedproof.verdict import Counts, Proved, Refuted, Unknown, Vacuous, Verdict
from schedproof.verdict import WorstCase as Bound

State = tuple[int | bool, ...]
LARGEST = 200_000


@dataclass
class Graph:
    """The reachable states with the steps out of each. ``stopped``: the last one broke what it was searched for."""

    instance: Instance
    steps: dict[State, list[tuple[Taken, State]]] = field(default_factory=dict)
    seconds: float = 0.0
    stopped: bool = False

    def named(self, state: State) -> dict[str, int | bool]:
        return dict(zip(self.instance.variables, state, strict=True))

    def holds(self, formula: Callable[..., Any], state: State) -> bool:
        return bool(self.instance.evaluate(formula, self.named(state)))

    def complain(self, what: str, state: State) -> ModelError:
        shown = ", ".join(f"{k}={v}" for k, v in self.instance.show(self.named(state)).items())
        return ModelError(f"a state from which {what}: {shown}", hint="declare it with @final, or add what is missing")

    @property
    def counts(self) -> Counts:
        return Counts(len(self.steps), sum(len(s) for s in self.steps.values()), 0, self.seconds)


def explore(instance: Instance, budget: float | None = None, stop: Callable[..., Any] | None = None) -> Graph:
    """The reachable graph, breadth first, up to the first state in which ``stop`` does not hold. Raises ModelError."""
    begin, names, graph = time.perf_counter(), tuple(instance.variables), Graph(instance)
    todo = list(dict.fromkeys(tuple(i[n] for n in names) for i in instance.initial))
    graph.steps = {s: [] for s in todo}
    for state in todo:
        graph.seconds = time.perf_counter() - begin
        if (budget is not None and graph.seconds > budget) or len(graph.steps) > LARGEST:
            raise BudgetExceeded(f"{len(graph.steps)} states and more")
        graph.stopped = stop is not None and not graph.holds(stop, state)
        if graph.stopped:
            return graph
        for taken in steps(instance, graph.named(state)):
            there = tuple(taken.state[n] for n in names)
            if there not in graph.steps:
                graph.steps[there] = []
                todo.append(there)
            graph.steps[state].append((taken, there))
        if not graph.steps[state] and not instance.is_final(graph.named(state)):
            raise graph.complain("nothing can happen", state)
    _time_passes(graph)
    return graph


def _time_passes(graph: Graph) -> None:
    """Raises ModelError where no step that costs anything can ever follow, in a model that has costs."""
    backwards = nx.DiGraph((b, a) for a, out in graph.steps.items() for _, b in out)
    costly = {a for a, out in graph.steps.items() for t, _ in out if any(c > 0 for c in t.costs.values())}
    final = {s for s in graph.steps if graph.instance.is_final(graph.named(s))}
    if not costly:
        return
    sink = object()
    backwards.add_edges_from((sink, s) for s in costly | final)
    stuck = graph.steps.keys() - nx.descendants(backwards, sink)
    if stuck:
        raise graph.complain("time cannot pass", next(s for s in graph.steps if s in stuck))


def worst_case(graph: Graph, waits: set[State], cost: str) -> Bound:
    """The exact worst case of a wait, by the definition: steps that start in a waiting state."""
    part = nx.MultiDiGraph()
    part.add_nodes_from(waits)
    part.add_edges_from((state, there, {"cost": taken.costs.get(cost, 0)}) for state in waits
                        for taken, there in graph.steps[state] if there in waits)
    components = list(nx.strongly_connected_components(part))
    where = {s: i for i, component in enumerate(components) for s in component}
    if any(where[a] == where[b] and c > 0 for a, b, c in part.edges(data="cost")):
        return "unbounded"
    best: dict[int, int] = {}
    for i in reversed(list(nx.topological_sort(nx.condensation(nx.DiGraph(part), components)))):
        best[i] = max((taken.costs.get(cost, 0) + (best[where[there]] if there in waits and where[there] != i else 0)
                       for state in components[i] for taken, there in graph.steps[state]), default=0)
    return max(best.values())


def judge_goal(graph: Graph, kind: Eventually, common: dict[str, Any]) -> Verdict | None:
    """The verdict on a goal that must be reached; None where it always is."""
    if kind.cost and not any(kind.cost in e.costs for e in graph.instance.events):
        return Vacuous(**common, reason=f"no action has the cost {kind.cost}")
    if kind.after is not None and not any(graph.holds(kind.after, s) for s in graph.steps):
        return Vacuous(**common, reason="no reachable state asks for the goal")
    counts, lacking = lacks_goal(graph, kind)
    if lacking:
        return Refuted(**common)
    return None if counts else Vacuous(**common, reason="time comes to an end in every run")


def lacks_goal(graph: Graph, kind: Eventually) -> tuple[bool, bool]:
    """Whether some run counts that asks for the goal, and whether some such run never reaches it."""
    goal = {s for s in graph.steps if graph.holds(kind.goal, s)}
    first = {tuple(i[n] for n in graph.instance.variables) for i in graph.instance.initial}
    asked = first if kind.after is None else {s for s in graph.steps if graph.holds(kind.after, s)}
    due = _onwards(graph, asked - goal, set(graph.steps) - goal)
    return goes_on(graph, kind, _onwards(graph, asked, set(graph.steps))), goes_on(graph, kind, due)


def _onwards(graph: Graph, start: set[State], within: set[State]) -> set[State]:
    """What can be reached from some states through others."""
    whole = nx.DiGraph((a, b) for a in within for _, b in graph.steps[a] if b in within)
    whole.add_nodes_from(start)
    return start | {s for one in start for s in nx.descendants(whole, one)} if start else set()


def goes_on(graph: Graph, kind: Eventually, states: set[State]) -> bool:
    """Whether a run can stay within some states for ever, fairly and so that time diverges, or ends in one."""
    if any(not graph.steps[s] for s in states):
        return True
    part = nx.DiGraph((a, b) for a in states for _, b in graph.steps[a] if b in states)
    for component in nx.strongly_connected_components(part):
        inside = [taken for a in component for taken, b in graph.steps[a] if b in component]
        if not any(_takes_time(graph, kind, taken) for taken in inside):
            continue
        done = {(t.action, t.args) for t in inside}
        refused = set[State]()
        for event in graph.instance.events:
            fair, who = graph.instance.model.marks[event.action].fair, (event.action, event.labels)
            able = {s for s in component if who in ((t.action, t.args) for t, _ in graph.steps[s])}
            if fair and able and who not in done and (fair == "strong" or able == component):
                refused |= able                    # no fair run meets these states again and again
        if not refused or (refused != component and goes_on(graph, kind, set(component) - refused)):
            return True
    return False


def _takes_time(graph: Graph, kind: Eventually, taken: Taken) -> bool:
    units: Iterable[str] = {u for e in graph.instance.events for u in e.costs}
    if kind.cost or units:
        return any(cost > 0 for unit, cost in taken.costs.items() if unit == (kind.cost or unit))
    return True


def unreachable(graph: Graph, kind: Kind) -> bool:
    """Whether what must be reachable, or reachable from everywhere, is not."""
    if isinstance(kind, Reachable):
        return not any(graph.holds(kind.formula, s) for s in graph.steps)
    return isinstance(kind, AlwaysPossible) and hopeless(graph, kind.formula)


def hopeless(graph: Graph, formula: Callable[..., Any]) -> bool:
    """Whether some state has no way to one in which ``formula`` holds."""
    sink = object()
    backwards = nx.DiGraph((b, a) for a, out in graph.steps.items() for _, b in out)
    backwards.add_node(sink)
    backwards.add_edges_from((sink, s) for s in graph.steps if graph.holds(formula, s))
    return bool(graph.steps.keys() - nx.descendants(backwards, sink))


class Reference:
    """The engine."""

    name = "reference"

    def applies(self, instance: Instance, property: Property) -> str | None:
        if any(v.domain.codes() is None for v in instance.variables.values()):
            return "a variable is unbounded"
        search = isinstance(property.kind, Invariant | Reachable | Within | WorstCase | Eventually | AlwaysPossible)
        return None if search else f"{property.kind.word} is not decided by search"

    def decide(self, instance: Instance, property: Property, budget: float | None = None, jobs: int = 1,
               progress: Callable[[Counts], None] | None = None) -> Verdict:
        common: dict[str, Any] = {"engine": self.name, "instance": instance.title}
        assert instance.transitions is not None          # threads learn the constants of their frames here
        try:
            graph = explore(instance, budget, property.kind.formula if isinstance(property.kind, Invariant) else None)
        except BudgetExceeded as error:
            return Unknown(**common, reason=f"budget spent: {error}")
        return self.judge(property, graph, {**common, "counts": graph.counts})

    def judge(self, property: Property, graph: Graph, common: dict[str, Any]) -> Verdict:
        kind, states = property.kind, graph.steps
        if isinstance(kind, Within | WorstCase):
            waits = {s for s in states if graph.holds(kind.waiting, s)}
            if not waits:
                return Vacuous(**common, reason="no state waits")
            worst = worst_case(graph, waits, kind.cost)
            common = {**common, "worst_case": worst, "unit": kind.cost}
            bound = kind.bound if isinstance(kind, Within) else worst
            bound = bound(graph.instance.view) if callable(bound) else bound
            if worst == "unbounded" or worst > bound:  # type: ignore[operator]
                return Refuted(**common)
            if all(there in waits for s in waits for _, there in states[s]):
                return Vacuous(**{**common, "worst_case": None}, reason="the wait is entered, and no step ever ends it")
        elif isinstance(kind, Eventually):
            found = judge_goal(graph, kind, common)
            if found is not None:
                return found
        elif graph.stopped or unreachable(graph, kind):
            return Refuted(**common)
        premise = kind.premise if isinstance(kind, Invariant) else None
        if premise is not None and not any(graph.holds(premise, s) for s in states):
            return Vacuous(**common, reason="the premise is never reached")
        taken = {t.action for out in states.values() for t, _ in out} | set(graph.instance.dead)
        dead = [e.action for e in graph.instance.events if e.action not in taken]
        return Vacuous(**common, reason=f"the action {dead[0]} never happens") if dead else Proved(**common)
