# SPDX-License-Identifier: GPL-2.0-only
"""The exact worst case of a wait: the longest path through the waiting states, or a cycle that costs something.

The wait is the sum of the cost over consecutive steps that start in a waiting state, the step that ends the wait
included. A positive cost inside a strongly connected component of the waiting states can be had again and again;
where there is none, the components form a graph without cycles, and its longest path is the worst case.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedproof.engines.explicit import graph as g
from schedproof.engines.explicit.compile import LEFT_DOMAIN, NUMBER, WORDS
from schedproof.engines.explicit.fairness import Fairness, find_cycle
from schedproof.engines.explicit.kernels import MARKED_EDGES, Bytes, Places, Words
from schedproof.engines.explicit.search import CHUNK, Meter, Space
from schedproof.errors import BudgetExceeded

TARJAN_BYTES = 32              # a node, in what components() holds and makes
COST_LIMIT = 1 << 62
NO_MASK = np.empty(0, np.uint8)


@dataclass(frozen=True)
class Waits:
    """The waiting states as a graph; ``places`` maps a node to its state's place."""

    space: Space
    places: Places
    offsets: Words
    targets: Places
    costs: Words | Places

    @property
    def size(self) -> int:
        """Bytes of the graph."""
        return sum(a.nbytes for a in (self.places, self.offsets, self.targets, self.costs))

    def numbers(self, edges: Words) -> list[int]:
        """The transitions' numbers of some edges."""
        nodes = np.searchsorted(self.offsets, edges, side="right") - 1
        out = np.empty(self.space.compiled.width, np.int64)
        found = []
        for node, edge in zip(nodes.tolist(), edges.tolist(), strict=True):
            state = int(self.space.states[self.places[node]])
            self.space.compiled.call_successors(state, out.ctypes.data)
            found.append(int(out[WORDS * (edge - int(self.offsets[node])) + 1]) & NUMBER)
        return found


@dataclass(frozen=True)
class Wait:
    """The worst wait. ``worst`` None: unbounded. ``first`` is the place where the shown part starts.

    ``steps`` and ``cycle`` are transitions' numbers from there; a cycle starts at ``first``.
    ``leaves``: some step ends some wait. ``starved``: a fair run waits for ever (None: not known).
    """

    worst: int | None
    first: int
    steps: tuple[int, ...] = ()
    cycle: tuple[int, ...] = ()
    total: int = 0
    leaves: bool = True
    starved: bool | None = None


def measure(space: Space, waiting: int, fairness: Fairness, meter: Meter) -> Wait | None:
    """The worst wait among the states that have the observation number ``waiting``; None when there are none.

    ``explore`` must have counted the transitions of these states (``marked``). Raises BudgetExceeded.
    """
    flags = space.flags[:space.count]
    places = np.flatnonzero(flags & np.uint8(2 << waiting)).astype(np.int32)
    if places.size == 0:
        return None
    if space.compiled.cost_high * (places.size + 1) >= COST_LIMIT:
        raise BudgetExceeded("the cost of a wait may not fit 64 bits")
    waits = graph_of(space, places, int(space.info[MARKED_EDGES]), meter)
    component, order, count = strong_components(waits.offsets, waits.targets, meter)
    positive = np.zeros(count, np.uint8)
    leaves = bool((waits.targets < 0).any())
    if g.positive_inside(waits.offsets, waits.targets, waits.costs, component, positive):
        return _unbounded(waits, component, positive, leaves, fairness, meter)
    best = np.zeros(count, np.int64)
    g.longest(waits.offsets, waits.targets, waits.costs, component, order, best)
    meter.check()
    return _longest_wait(waits, component, best, leaves)


def graph_of(space: Space, places: Places, edges: int, meter: Meter) -> Waits:
    """The graph of the states at ``places``, which have ``edges`` steps in all."""
    small = space.compiled.cost_high < 1 << 31
    size = 4 * space.count + 12 * places.size + edges * (4 + (4 if small else 8) + 2)
    meter.room(space.size + size + TARJAN_BYTES * places.size)
    costs: Words | Places = np.empty(edges, np.int32) if small else np.empty(edges, np.int64)
    offsets, targets = edges_of(space, places, edges, costs, meter)
    return Waits(space, places, offsets, targets, costs)


def edges_of(space: Space, places: Places, edges: int, costs: Words | Places,
             meter: Meter) -> tuple[Words, Places]:
    """Offsets and targets of the graph of the states at ``places``, which have ``edges`` steps in all."""
    local = np.full(space.count, -1, np.int32)
    local[places] = np.arange(places.size, dtype=np.int32)
    offsets = np.zeros(places.size + 1, np.int64)
    targets = np.empty(edges, np.int32)
    out = np.empty(space.compiled.width, np.int64)
    for begin in range(0, places.size, CHUNK):
        g.collect(space.compiled.successors, space.states, space.table, places, local, begin,
                  min(begin + CHUNK, places.size), out, offsets, targets, costs)
        meter.note()
        meter.check()
    return offsets, targets


def strong_components(offsets: Words, targets: Places, meter: Meter) -> tuple[Places, Places, int]:
    """Each node's component, the nodes in the components' order, and how many components there are."""
    nodes = offsets.size - 1
    component, order = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    count = g.components(offsets, targets, component, order)
    meter.note()
    meter.check()
    return component, order, count


def _longest_wait(waits: Waits, component: Places, best: Words, leaves: bool) -> Wait:
    """The state found first among those with the longest wait is where a wait begins.

    For were the state before it on the way from the start waiting too, it would wait no less long, and it was
    found earlier.
    """
    worst = int(best.max())
    start = int(np.argmax(best[component] == worst))
    usable, goal = np.zeros(waits.targets.size, np.uint8), np.zeros(waits.targets.size, np.uint8)
    g.mark_exact(waits.offsets, waits.targets, waits.costs, component, best, usable, goal)
    path = g.shortest(waits.offsets, waits.targets, usable, start, NO_MASK, goal)
    if path.size and path[0] < 0:                  # no such wait ends: go on until all its cost is incurred
        spent = (best[component] == 0).astype(np.uint8)
        path = g.shortest(waits.offsets, waits.targets, usable, start, spent, NO_MASK)
    return Wait(worst, int(waits.places[start]), tuple(waits.numbers(path)), total=worst, leaves=leaves)


def _unbounded(waits: Waits, component: Places, positive: Bytes, leaves: bool, fairness: Fairness,
               meter: Meter) -> Wait:
    found = find_cycle(waits.space, waits.places, waits.offsets, waits.targets, waits.costs, component, positive,
                       fairness, meter)
    edges = found.edges
    nodes = np.searchsorted(waits.offsets, edges, side="right") - 1
    turn = int(np.argmin(nodes))                   # nodes are in the order of the search: start at the nearest
    edges = np.concatenate((edges[turn:], edges[:turn]))
    return Wait(None, int(waits.places[nodes[turn]]), cycle=tuple(waits.numbers(edges)),
                total=int(waits.costs[edges].astype(np.int64).sum()), leaves=leaves, starved=found.starved)


def stuck_in_time(space: Space, allowed: int, edges: int, meter: Meter) -> int | None:
    """The first state from which no step with a positive cost and no ``allowed`` state (mask) can be reached.

    ``edges`` is the number of steps of the states without such a step of their own.
    """
    flags = space.flags[:space.count]
    places = np.flatnonzero((flags & np.uint8(1 | (allowed << 1) & 0xFF)) == 0).astype(np.int32)
    return first_enclosed(space, places, edges, meter)


def first_enclosed(space: Space, places: Places, edges: int, meter: Meter) -> int | None:
    """The first of some states from which none that is not among them can be reached.

    ``edges`` is the number of their steps.
    """
    if places.size == 0:
        return None
    meter.room(space.size + 4 * space.count + (12 + TARJAN_BYTES) * places.size + 4 * edges)
    offsets, targets = edges_of(space, places, edges, np.empty(0, np.int32), meter)
    targets = targets[:offsets[-1]]
    component, order, count = strong_components(offsets, targets, meter)
    free = np.zeros(count, np.uint8)
    g.escapes(offsets, targets, component, order, free)
    held = np.flatnonzero(free[component] == 0)
    return int(places[held[0]]) if held.size else None


__all__ = ["LEFT_DOMAIN", "Wait", "Waits", "edges_of", "first_enclosed", "graph_of", "measure", "stuck_in_time",
           "strong_components"]
