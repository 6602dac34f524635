# SPDX-License-Identifier: GPL-2.0-only
"""What must come in the end, and what must stay possible.

The goal is *due* in a state without it to which a path without it leads from a state in which it was asked for. What
breaks ``Eventually`` is then a fair cycle of such states in which time passes, or one of them where the run ends.
Of a component of the graph of all states without the goal, either all states are due or none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedproof.engines.explicit import graph as g
from schedproof.engines.explicit.fairness import Cycle, Fairness, find_cycle
from schedproof.engines.explicit.kernels import MARKED_EDGES, TRANSITIONS, Places, Words
from schedproof.engines.explicit.search import Meter, Space
from schedproof.engines.explicit.worst_case import Waits, first_enclosed, graph_of, strong_components

SPREAD_BYTES = 29              # a node, in what spread() holds and makes


@dataclass(frozen=True)
class Evasion:
    """A run without the goal: from the state at ``first`` along ``steps``, then along ``cycle`` for ever.

    Both are transitions' numbers. Without a cycle the run ends there. ``fair`` is None where it is not known.
    """

    first: int
    steps: tuple[int, ...]
    cycle: tuple[int, ...]
    fair: bool | None


@dataclass(frozen=True)
class _Due:
    """Some states as a graph, and the shortest run to each of them through one that asks for the goal, if any."""

    waits: Waits
    distance: Places           # -1: no such run
    came: Words
    before: Places

    def ends(self) -> int | None:
        """The nearest state that is due and has no step."""
        last = np.flatnonzero((np.diff(self.waits.offsets) == 0) & (self.distance >= 0))
        return int(last[np.argmin(self.distance[last])]) if last.size else None

    def cycle(self, fairness: Fairness, meter: Meter) -> Cycle | None:
        """A cycle of states that are due in which time passes; a fair one if there is one."""
        w = self.waits
        component, _, count = strong_components(w.offsets, w.targets, meter)
        positive = np.zeros(count, np.uint8)
        g.positive_inside(w.offsets, w.targets, w.costs, component, positive)
        positive[component[self.distance < 0]] = 0
        if not positive.any():
            return None
        return find_cycle(w.space, w.places, w.offsets, w.targets, w.costs, component, positive, fairness, meter)

    def evasion(self, node: int, cycle: Words, fair: bool | None) -> Evasion:
        """The run to a node, and the cycle from there."""
        edges = []
        while int(self.before[node]) != node:
            edges.append(int(self.came[node]))
            node = int(self.before[node])
        steps = self.waits.numbers(np.array(edges[::-1], np.int64))
        return Evasion(int(self.waits.places[node]), tuple(steps), tuple(self.waits.numbers(cycle)), fair)


def evades(space: Space, lacking: int, asked: int | None, fairness: Fairness, ends: bool,
           meter: Meter) -> Evasion | None:
    """A run that counts and never reaches the goal; None when there is none.

    The observation ``lacking`` is that the goal does not hold, ``asked`` that it is asked for (None: at first).
    ``explore`` must have counted the transitions of the states with ``lacking``, and the cost must be that of time.
    ``ends``: a run that ends counts, too. Raises BudgetExceeded.
    """
    places = _places(space, lacking)
    if places.size == 0:
        return None
    due = _due(space, places, int(space.info[MARKED_EDGES]), asked, meter)
    last = due.ends() if ends else None
    if last is not None:
        return due.evasion(last, np.empty(0, np.int64), True)
    found = due.cycle(fairness, meter)
    if found is None or found.starved is False:
        return None
    nodes = np.searchsorted(due.waits.offsets, found.edges, side="right") - 1
    turn = int(np.argmin(due.distance[nodes]))
    edges = np.concatenate((found.edges[turn:], found.edges[:turn]))
    return due.evasion(int(nodes[turn]), edges, found.starved)


def some_run_counts(space: Space, asked: int | None, fairness: Fairness, meter: Meter) -> bool:
    """Whether any run that counts goes through a state that asks for the goal, with or without reaching it."""
    places = np.arange(space.count, dtype=np.int32)
    due = _due(space, places, int(space.info[TRANSITIONS]), asked, meter)
    if due.ends() is not None:
        return True
    found = due.cycle(fairness, meter)
    return found is not None and found.starved is not False


def first_hopeless(space: Space, lacking: int, meter: Meter) -> int | None:
    """The first state from which every state that can be reached has the observation ``lacking``."""
    return first_enclosed(space, _places(space, lacking), int(space.info[MARKED_EDGES]), meter)


def _places(space: Space, observation: int) -> Places:
    return np.flatnonzero(space.flags[:space.count] & np.uint8(2 << observation)).astype(np.int32)


def _due(space: Space, places: Places, edges: int, asked: int | None, meter: Meter) -> _Due:
    """The graph of the states at ``places``, which have ``edges`` steps, and the shortest runs in it."""
    waits = graph_of(space, places, edges, meter)
    meter.room(space.size + waits.size + SPREAD_BYTES * places.size + 4 * space.count)
    if asked is None:
        begins = (space.parents[places] < 0).astype(np.uint8)
    else:
        begins = (space.flags[places] >> np.uint8(asked + 1)) & np.uint8(1)
    depth = np.empty(space.count, np.int32)
    g.depths(space.parents, depth)
    distance, before = np.full(places.size, -1, np.int32), np.empty(places.size, np.int32)
    came = np.empty(places.size, np.int64)
    g.spread(waits.offsets, waits.targets, begins, depth[places], distance, came, before)
    meter.check()
    return _Due(waits, distance, came, before)
