# SPDX-License-Identifier: GPL-2.0-only
"""Graphs of some of the states, as offset arrays, and what the engine asks of them: loops compiled by Numba.

A graph's nodes are numbered 0.. in the order of the states' places. ``targets[offsets[i]:offsets[i + 1]]`` are the
nodes that the steps of node i lead to, in the order of ``successors``; -1 is a step to a state outside the graph.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schedproof.engines.explicit.jit import call_successors, compiled
from schedproof.engines.explicit.kernels import Bytes, Places, Words, look_up

Masks = NDArray[np.uint64]
NO_CLASS = -1


@compiled
def collect(successors: int, states: Words, table: Places, places: Places, local: Places, begin: int, end: int,
            out: Words, offsets: Words, targets: Places, costs: Words | Places) -> None:
    """Write the edges of the nodes from ``begin`` to ``end``. ``costs`` may be empty: then costs are not kept.

    ``places`` maps a node to its state's place, ``local`` a place to its node or -1.
    """
    address = out.ctypes.data
    for node in range(begin, end):
        edge = offsets[node]
        count = call_successors(successors, states[places[node]], address)
        for k in range(count):
            targets[edge + k] = local[look_up(table, states, out[3 * k])]
            if costs.size:
                costs[edge + k] = out[3 * k + 2]
        offsets[node + 1] = edge + count


@compiled
def components(offsets: Words, targets: Places, component: Places, order: Places) -> int:
    """Tarjan's strongly connected components, without recursion; returns how many there are.

    ``component`` gets each node's number, ``order`` the nodes by that number: an edge never leads to a
    component with a higher number than its own.
    """
    nodes = offsets.size - 1
    index = np.zeros(nodes, np.int32)              # 0: not met yet
    low = np.zeros(nodes, np.int32)
    waiting = np.empty(nodes, np.int32)            # Tarjan's stack
    path = np.empty(nodes, np.int32)               # what recursion would keep: the nodes, and their next edges
    following = np.empty(nodes, np.int64)
    clock, waiting_top, found, done = 0, 0, 0, 0
    for root in range(nodes):
        if index[root]:
            continue
        depth = 0
        path[0] = root
        while depth >= 0:
            node = path[depth]
            if index[node] == 0:
                clock += 1
                index[node] = low[node] = clock
                waiting[waiting_top] = node
                waiting_top += 1
                component[node] = -1
                following[depth] = offsets[node]
            descended = False
            while following[depth] < offsets[node + 1]:
                target = targets[following[depth]]
                if target >= 0:
                    if index[target] == 0:
                        depth += 1                 # the edge is looked at again on the way back
                        path[depth] = target
                        descended = True
                        break
                    if component[target] < 0:
                        low[node] = min(low[node], low[target])
                following[depth] += 1
            if descended:
                continue
            if low[node] == index[node]:
                member = -1
                while member != node:
                    waiting_top -= 1
                    member = waiting[waiting_top]
                    component[member] = found
                    order[done] = member
                    done += 1
                found += 1
            depth -= 1
    return found


@compiled
def positive_inside(offsets: Words, targets: Places, costs: Words | Places, component: Places, found: Bytes) -> int:
    """Mark the components that have an edge of positive cost inside; returns how many they are."""
    total = 0
    for node in range(offsets.size - 1):
        for edge in range(offsets[node], offsets[node + 1]):
            target = targets[edge]
            if target >= 0 and costs[edge] > 0 and component[target] == component[node]:
                total += 1 - found[component[node]]
                found[component[node]] = 1
    return total


@compiled
def longest(offsets: Words, targets: Places, costs: Words | Places, component: Places, order: Places,
            best: Words) -> None:
    """``best[c]``: the most that a path from component c can cost, where no edge inside a component costs anything."""
    for position in range(order.size):
        node = order[position]
        here = component[node]
        for edge in range(offsets[node], offsets[node + 1]):
            target = targets[edge]
            beyond = 0 if target < 0 else best[component[target]]
            if target < 0 or component[target] != here:
                best[here] = max(best[here], costs[edge] + beyond)


@compiled
def mark_exact(offsets: Words, targets: Places, costs: Words | Places, component: Places, best: Words,
               usable: Bytes, goal: Bytes) -> None:
    """Mark the edges on longest paths as ``usable``, and those of them that leave the graph as ``goal``."""
    for node in range(offsets.size - 1):
        left = best[component[node]]
        for edge in range(offsets[node], offsets[node + 1]):
            target = targets[edge]
            if costs[edge] + (0 if target < 0 else best[component[target]]) == left:
                usable[edge] = 1
                goal[edge] = target < 0


@compiled
def escapes(offsets: Words, targets: Places, component: Places, order: Places, free: Bytes) -> None:
    """``free[c]``: some path from component c leaves the graph."""
    for position in range(order.size):
        node = order[position]
        for edge in range(offsets[node], offsets[node + 1]):
            target = targets[edge]
            if target < 0 or free[component[target]]:
                free[component[node]] = 1


@compiled
def shortest(offsets: Words, targets: Places, usable: Bytes, start: int, goal_nodes: Bytes,
             goal_edges: Bytes) -> Words:
    """The edges of a shortest path from ``start`` to a goal: a node, or an edge (which is then the last one).

    Only ``usable`` edges are gone along; an empty mask means all edges or no goals. Returns [-1] when there is none.
    """
    nodes = offsets.size - 1
    came = np.full(nodes, -1, np.int64)            # the edge by which a node was reached
    before = np.full(nodes, -1, np.int32)
    queue = np.empty(nodes, np.int32)
    queue[0] = start
    before[start] = start
    head, tail, last, final = 0, 1, -1, -1
    if goal_nodes.size and goal_nodes[start]:
        return np.empty(0, np.int64)
    while head < tail and final < 0:
        node = queue[head]
        head += 1
        for edge in range(offsets[node], offsets[node + 1]):
            if usable.size and not usable[edge]:
                continue
            target = targets[edge]
            if goal_edges.size and goal_edges[edge]:
                final, last = node, edge
                break
            if target < 0 or before[target] >= 0:
                continue
            before[target], came[target] = node, edge
            if goal_nodes.size and goal_nodes[target]:
                final, last = node, edge
                break
            queue[tail] = target
            tail += 1
    if final < 0:
        return np.full(1, -1, np.int64)
    length, node = 1, final
    while node != start:
        length, node = length + 1, before[node]
    path = np.empty(length, np.int64)
    path[length - 1], node = last, final
    for position in range(length - 2, -1, -1):
        path[position] = came[node]
        node = before[node]
    return path


@compiled
def depths(parents: Places, depth: Places) -> None:
    """``depth[p]``: how many steps the state at place p is away from an initial one."""
    for place in range(depth.size):
        parent = parents[place]
        depth[place] = 0 if parent < 0 else depth[parent] + 1


@compiled
def spread(offsets: Words, targets: Places, begins: Bytes, depth: Places, distance: Places, came: Words,
           before: Places) -> None:
    """Shortest paths from all nodes that ``begins`` marks, which have a ``depth`` to start with.

    ``depth`` must not fall from one node to the next. ``distance`` has to be -1 everywhere and stays so where no path
    leads; ``came`` and ``before`` get the last edge and the node before it, and a node where a path begins itself.
    """
    nodes = offsets.size - 1
    queue = np.empty(nodes, np.int32)
    head, tail, fresh = 0, 0, 0
    while True:
        while fresh < nodes and (not begins[fresh] or distance[fresh] >= 0):
            fresh += 1
        if fresh < nodes and (head == tail or depth[fresh] <= distance[queue[head]]):
            node = fresh
            distance[node], before[node], came[node] = depth[node], node, -1
        elif head < tail:
            node = queue[head]
            head += 1
        else:
            break
        for edge in range(offsets[node], offsets[node + 1]):
            target = targets[edge]
            if target >= 0 and distance[target] < 0:
                distance[target], before[target], came[target] = distance[node] + 1, node, edge
                queue[tail] = target
                tail += 1


@compiled
def restrict(offsets: Words, targets: Places, keep: Bytes, within: Places, new_offsets: Words,
             new_targets: Places, origin: Words) -> int:
    """The graph of the nodes in ``keep`` and the edges between them that stay in one part of ``within``.

    Returns the number of edges; ``origin`` gives the old number of each.
    """
    renamed = np.full(keep.size, -1, np.int32)
    count = 0
    for node in range(keep.size):
        if keep[node]:
            renamed[node] = count
            count += 1
    edges, new_offsets[0] = 0, 0
    for node in range(keep.size):
        if not keep[node]:
            continue
        for edge in range(offsets[node], offsets[node + 1]):
            target = targets[edge]
            if target >= 0 and keep[target] and within[target] == within[node]:
                new_targets[edges], origin[edges] = renamed[target], edge
                edges += 1
        new_offsets[renamed[node] + 1] = edges
    return edges


@compiled
def classify(successors: int, states: Words, places: Places, nodes: Places, offsets: Words, out: Words,
             class_of: NDArray[np.int8], edge_class: NDArray[np.int8], enabled: Masks) -> None:
    """For the given nodes: the fair class of each edge (or NO_CLASS), and the set of the classes enabled there."""
    address = out.ctypes.data
    for position in range(nodes.size):
        node = nodes[position]
        count = call_successors(successors, states[places[node]], address)
        for k in range(count):
            found = class_of[out[3 * k + 1] & 0xFFFFFFFF]
            edge_class[offsets[node] + k] = found
            if found >= 0:
                enabled[node] |= np.uint64(1) << np.uint64(found)


@compiled
def summarise(offsets: Words, targets: Places, origin: Words, costs: Words | Places, edge_class: NDArray[np.int8],
              node_masks: Masks, component: Places, somewhere: Masks, everywhere: Masks, taken: Masks,
              positive: Bytes) -> None:
    """For each component: classes enabled at some and at all of its states, classes taken inside, positive cost."""
    for node in range(offsets.size - 1):
        here = component[node]
        somewhere[here] |= node_masks[node]
        everywhere[here] &= node_masks[node]
        for edge in range(offsets[node], offsets[node + 1]):
            if component[targets[edge]] == here:
                old = origin[edge]
                if costs[old] > 0:
                    positive[here] = 1
                if edge_class[old] >= 0:
                    taken[here] |= np.uint64(1) << np.uint64(edge_class[old])
