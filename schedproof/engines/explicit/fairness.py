# SPDX-License-Identifier: GPL-2.0-only
"""Cycles that cost something: one to show, and whether a run can go round one for ever without being unfair.

A fair class is an action with its objects. A run is unfair to a weakly fair class that is always enabled from
some point on and never taken, and to a strongly fair one that is enabled infinitely often and never taken. The
search is that for Streett's condition: a component in which a strongly fair class is enabled and never taken is
searched again without the states where it is enabled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedproof.engines.explicit import graph as g
from schedproof.engines.explicit.kernels import Bytes, Places, Words
from schedproof.engines.explicit.search import Meter, Space
from schedproof.model.transition import Transition

MOST_CLASSES = 64              # a set of classes is one word
CANDIDATES = 16                # edges tried as the start of a short cycle
NO_MASK = np.empty(0, np.uint8)
ALL = np.uint64((1 << 64) - 1)


@dataclass(frozen=True)
class Fairness:
    """The fair classes of an instance: the class of each transition (or NO_CLASS) and the sets of weak and strong.

    ``known`` is False when there are too many of them, or when they are not what the instance declares.
    """

    class_of: NDArray[np.int8]
    weak: int
    strong: int
    known: bool = True


@dataclass(frozen=True)
class Cycle:
    """A cycle as edges of the graph, and whether a fair run can wait for ever (None: not known)."""

    edges: Words
    starved: bool | None


def fair_classes(transitions: Sequence[Transition], known: bool = True) -> Fairness:
    """The classes that the transitions declare. A class is as fair as the fairest of its transitions."""
    numbers: dict[tuple[str, tuple[str, ...]], int] = {}
    fair: dict[tuple[str, tuple[str, ...]], str] = {}
    for t in transitions:
        if t.fair:
            numbers.setdefault((t.action, t.args), len(numbers))
            if fair.get((t.action, t.args)) != "strong":
                fair[t.action, t.args] = t.fair
    known = known and len(numbers) <= MOST_CLASSES
    class_of = np.full(max(1, len(transitions)), g.NO_CLASS, np.int8)
    if known:
        for number, t in enumerate(transitions):
            class_of[number] = numbers.get((t.action, t.args), g.NO_CLASS)
    weak = sum(1 << numbers[c] for c, how in fair.items() if how == "weak")
    strong = sum(1 << numbers[c] for c, how in fair.items() if how == "strong")
    return Fairness(class_of, weak, strong, known)


@dataclass(frozen=True)
class _Labelled:
    """The graph of the waiting states with what fairness asks about."""

    offsets: Words
    targets: Places
    costs: Words | Places
    edge_class: NDArray[np.int8]
    enabled: g.Masks
    fairness: Fairness


def find_cycle(space: Space, places: Places, offsets: Words, targets: Places, costs: Words | Places,
               component: Places, positive: Bytes, fairness: Fairness, meter: Meter) -> Cycle:
    """A cycle of positive cost in one of the ``positive`` components: a fair one if there is one."""
    inside = positive[component]
    classes = fairness.known and (fairness.weak | fairness.strong)
    if not classes:
        edges = _short_cycle(offsets, targets, costs, component, inside)
        return Cycle(edges, True if fairness.known else None)
    meter.room(space.size + 10 * places.size + 14 * targets.size)
    nodes = np.flatnonzero(inside).astype(np.int32)
    edge_class = np.full(targets.size, g.NO_CLASS, np.int8)
    enabled = np.zeros(places.size, np.uint64)
    g.classify(space.compiled.successors, space.states, places, nodes, offsets,
               np.empty(space.compiled.width, np.int64), fairness.class_of, edge_class, enabled)
    labelled = _Labelled(offsets, targets, costs, edge_class, enabled, fairness)
    fair = _fair_component(labelled, component, nodes, meter)
    if fair is None:
        return Cycle(_short_cycle(offsets, targets, costs, component, inside), False)
    return Cycle(_fair_cycle(labelled, component, fair), True)


def _fair_component(graph: _Labelled, within: Places, nodes: Places, meter: Meter) -> Bytes | None:
    """The states of a component with a fair run of positive cost through all of them, as a mask; or None."""
    work = [(nodes, within)]
    weak, strong = np.uint64(graph.fairness.weak), np.uint64(graph.fairness.strong)
    while work:
        nodes, within = work.pop()
        meter.check()
        keep = np.zeros(within.size, np.uint8)
        keep[nodes] = 1
        offsets, targets = np.zeros(nodes.size + 1, np.int64), np.empty(graph.targets.size, np.int32)
        origin = np.empty(graph.targets.size, np.int64)
        edges = g.restrict(graph.offsets, graph.targets, keep, within, offsets, targets, origin)
        targets, origin = targets[:edges].copy(), origin[:edges].copy()
        component, order = np.empty(nodes.size, np.int32), np.empty(nodes.size, np.int32)
        count = g.components(offsets, targets, component, order)
        masks = graph.enabled[nodes]
        somewhere, everywhere, taken = np.zeros(count, np.uint64), np.full(count, ALL), np.zeros(count, np.uint64)
        positive = np.zeros(count, np.uint8)
        g.summarise(offsets, targets, origin, graph.costs, graph.edge_class, masks, component, somewhere,
                    everywhere, taken, positive)
        starving = (weak & everywhere | strong & somewhere) & ~taken
        fair = np.flatnonzero((positive == 1) & (starving == 0))
        if fair.size:
            found = np.zeros(within.size, np.uint8)
            found[nodes[component == fair[0]]] = 1
            return found
        hopeless = (positive == 0) | (weak & everywhere & ~taken != 0)
        left = nodes[~hopeless[component] & (masks & strong & ~taken[component] == 0)]
        if left.size:
            inner = np.full(within.size, -1, np.int32)
            inner[nodes] = component
            work.append((left, inner))
    return None


def _short_cycle(offsets: Words, targets: Places, costs: Words | Places, component: Places,
                 inside: Bytes) -> Words:
    """The shortest cycle that begins with one of the first few edges of positive cost inside a component."""
    best: Words | None = None
    for edge, source in _positive_edges(offsets, targets, costs, component, inside):
        goal = np.zeros(component.size, np.uint8)
        goal[source] = 1
        back = g.shortest(offsets, targets, NO_MASK, int(targets[edge]), goal, NO_MASK)
        if best is None or back.size + 1 < best.size:
            best = np.concatenate((np.array([edge], np.int64), back))
        if best.size == 1:
            break
    assert best is not None
    return best


def _positive_edges(offsets: Words, targets: Places, costs: Words | Places, component: Places,
                    inside: Bytes) -> list[tuple[int, int]]:
    """Some edges of positive cost within one component, with their sources, nearest to the start first."""
    found: list[tuple[int, int]] = []
    for node in np.flatnonzero(inside).tolist():
        begin, end = int(offsets[node]), int(offsets[node + 1])
        for edge in range(begin, end):
            target = int(targets[edge])
            if target >= 0 and costs[edge] > 0 and inside[target] and component[target] == component[node]:
                found.append((edge, node))
        if len(found) >= CANDIDATES:
            break
    return found[:CANDIDATES]


def _fair_cycle(graph: _Labelled, within: Places, fair: Bytes) -> Words:
    """A cycle in the component ``fair`` that is fair and costs something: a short one if that is fair by itself."""
    usable = _edges_within(graph, fair)
    targets = np.where(usable == 1, graph.targets, np.int32(-1))
    short = _short_cycle(graph.offsets, targets, graph.costs, within, fair)
    if _is_fair(graph, short):
        return short
    return _tour(graph, fair, usable, int(short[0]))


def _edges_within(graph: _Labelled, fair: Bytes) -> Bytes:
    counts = np.diff(graph.offsets)
    return (np.repeat(fair, counts) & (graph.targets >= 0) & fair[graph.targets]).astype(np.uint8)


def _sources(graph: _Labelled, edges: Words) -> Words:
    return np.searchsorted(graph.offsets, edges, side="right") - 1


def _is_fair(graph: _Labelled, edges: Words) -> bool:
    """Whether going round these edges for ever is fair."""
    masks, taken = graph.enabled[_sources(graph, edges)], 0
    for number in graph.edge_class[edges].tolist():
        taken |= 1 << number if number >= 0 else 0
    everywhere, somewhere = int(np.bitwise_and.reduce(masks)), int(np.bitwise_or.reduce(masks))
    return not (graph.fairness.weak & everywhere | graph.fairness.strong & somewhere) & ~taken


def _tour(graph: _Labelled, fair: Bytes, usable: Bytes, first: int) -> Words:
    """From the edge ``first`` to the nearest thing that fairness still asks for, until nothing is left, and back."""
    walk = [first]
    somewhere = int(np.bitwise_or.reduce(graph.enabled[fair == 1]))
    source = int(_sources(graph, np.array([first]))[0])
    while True:
        edges = np.array(walk, np.int64)
        here = int(graph.targets[walk[-1]])
        if _is_fair(graph, _closed(graph, edges, usable, here, source)):
            return _closed(graph, edges, usable, here, source)
        goal_edges, goal_nodes = _wanted(graph, fair, usable, edges, somewhere)
        walk += g.shortest(graph.offsets, graph.targets, usable, here, goal_nodes, goal_edges).tolist()


def _closed(graph: _Labelled, edges: Words, usable: Bytes, here: int, source: int) -> Words:
    goal = np.zeros(graph.enabled.size, np.uint8)
    goal[source] = 1
    return np.concatenate((edges, g.shortest(graph.offsets, graph.targets, usable, here, goal, NO_MASK)))


def _wanted(graph: _Labelled, fair: Bytes, usable: Bytes, walk: Words, somewhere: int) -> tuple[Bytes, Bytes]:
    """Edges and states that the walk lacks: a step of a strong class, a step or a disabled state of a weak one."""
    taken = {n for n in graph.edge_class[walk].tolist() if n >= 0}
    met = np.concatenate((graph.enabled[_sources(graph, walk)], graph.enabled[graph.targets[walk[-1:]]]))
    everywhere = int(np.bitwise_and.reduce(met))
    strong = [n for n in range(MOST_CLASSES) if graph.fairness.strong & somewhere & 1 << n]
    weak = [n for n in range(MOST_CLASSES) if graph.fairness.weak & everywhere & 1 << n]
    missing = [n for n in strong + weak if n not in taken]
    goal_edges = (np.isin(graph.edge_class, missing) & (usable == 1)).astype(np.uint8)
    goal_nodes = np.zeros(graph.enabled.size, np.uint8)
    for number in weak:
        if number not in taken:
            goal_nodes |= ((graph.enabled >> np.uint64(number) & np.uint64(1)) == 0) & (fair == 1)
    return goal_edges, goal_nodes
