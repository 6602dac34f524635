# SPDX-License-Identifier: GPL-2.0-only
"""A second search of directed yield, written from the facts alone (sections A.2 to A.5 and D.A).

It shares no line with models/directed_yield.py, nor with the checker. A state is a plain tuple; a yield, the choice of
who gets the CPU, and what that one does when it goes on are one step here, three in the model.

N vCPUs, P CPUs, one queue. H holds the lock, never spins, and is ready at first, with P others running.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple


@dataclass(frozen=True)
class Setup:
    """A kernel and a machine."""

    n: int
    cpus: int = 1
    holder: int = 0
    eligibility: Literal["none", "v4", "v5"] = "v5"
    initially: bool = False                  # dy_eligible at first (V1)
    store: Literal["index", "count"] = "index"
    delayed: bool = True                     # the cursor is written when the yielder goes on
    preempt: bool = False
    cursors: tuple[int, ...] = ()            # the cursor at first; empty: anywhere


class State(NamedTuple):
    """Who runs, and for each vCPU: is it in the handler, is it eligible, what will it store."""

    running: frozenset[int]
    inside: tuple[bool, ...]
    eligible: tuple[bool, ...]
    pending: tuple[int, ...]                 # -1: nothing
    cursor: int


def starts(setup: Setup) -> Iterator[State]:
    spinners = [v for v in range(setup.n) if v != setup.holder]
    no = (False,) * setup.n
    for cursor in setup.cursors or range(setup.n):
        for running in combinations(spinners, setup.cpus):
            yield State(frozenset(running), no, (setup.initially,) * setup.n, (-1,) * setup.n, cursor)


def put(values: tuple[Any, ...], place: int, value: object) -> tuple[Any, ...]:
    return (*values[:place], value, *values[place + 1:])


def scheduled(setup: Setup, state: State, who: int) -> State:
    """``who`` gets a CPU. If it was in the handler, it stores its cursor and leaves."""
    state = state._replace(running=state.running | {who})
    if not state.inside[who]:
        return state
    if state.pending[who] >= 0:
        state = state._replace(cursor=state.pending[who], pending=put(state.pending, who, -1))
    state = state._replace(inside=put(state.inside, who, False))
    return state._replace(eligible=put(state.eligible, who, False)) if setup.eligibility == "v5" else state


def spin(setup: Setup, state: State, me: int) -> tuple[bool, State]:
    """One pause-loop exit: whether it gave the CPU away, and the state behind it."""
    eligible = list(state.eligible)
    for i in range(setup.n):
        v = (state.cursor + 1 + i) % setup.n
        if v == me or v in state.running:
            continue
        if setup.eligibility != "none" and state.inside[v]:
            accepted, eligible[v] = eligible[v], not eligible[v]
            if not accepted:
                continue
        stored = v if setup.store == "index" else i
        state = state._replace(running=state.running - {me}, inside=put(state.inside, me, True),
                               eligible=tuple(eligible))
        if setup.delayed:
            state = state._replace(pending=put(state.pending, me, stored))
        else:
            state = state._replace(cursor=stored)
        return True, scheduled(setup, state, v)
    if setup.eligibility == "v5":
        eligible[me] = False
    return False, state._replace(eligible=tuple(eligible))


def steps(setup: Setup, state: State) -> Iterator[tuple[int, State]]:
    """Everything that can happen next, with the number of successful yields that it takes."""
    for me in state.running:
        if me != setup.holder:
            gave, after = spin(setup, state, me)
            yield int(gave), after
        if setup.preempt:
            for other in range(setup.n):
                if other not in state.running:
                    yield 0, scheduled(setup, state._replace(running=state.running - {me}), other)


def worst_case(setup: Setup) -> int | None:
    """The most successful yields before H runs, or None where there is no bound."""
    found = {s: i for i, s in enumerate(starts(setup))}
    order = list(found)
    arcs: list[list[tuple[int, int]]] = []
    for state in order:
        arcs.append([])
        for cost, after in steps(setup, state):
            if after not in found:
                found[after] = len(order)
                order.append(after)
            arcs[-1].append((cost, found[after]))
    waiting = [setup.holder not in s.running for s in order]
    return longest(waiting, arcs)


def longest(waiting: list[bool], arcs: list[list[tuple[int, int]]]) -> int | None:
    """The greatest sum of costs along arcs that begin in waiting states; None where a cycle has a cost."""
    component = components(waiting, arcs)
    best = [0] * (max(component, default=-1) + 1)          # components are numbered sinks first
    members: list[list[int]] = [[] for _ in best]
    for node, where in enumerate(component):
        if where >= 0:
            members[where].append(node)
    for where, nodes in enumerate(members):
        for node in nodes:
            for cost, after in arcs[node]:
                if component[after] == where and cost:
                    return None
                if component[after] != where:
                    best[where] = max(best[where], cost + (best[component[after]] if component[after] >= 0 else 0))
    return max(best, default=0)


def components(waiting: list[bool], arcs: list[list[tuple[int, int]]]) -> list[int]:
    """The strongly connected component of each waiting state, -1 for the others (Tarjan, without recursion)."""
    index, low, component = ([-1] * len(waiting) for _ in range(3))
    stack: list[int] = []
    count = number = 0
    for root in range(len(waiting)):
        if not waiting[root] or index[root] >= 0:
            continue
        todo = [(root, 0)]
        while todo:
            node, at = todo.pop()
            if at == 0:
                index[node] = low[node] = number
                number += 1
                stack.append(node)
            onward = arcs[node]
            while at < len(onward):
                after = onward[at][1]
                at += 1
                if not waiting[after] or component[after] >= 0:
                    continue
                if index[after] < 0:
                    todo += [(node, at), (after, 0)]
                    break
                low[node] = min(low[node], index[after])
            else:
                if low[node] == index[node]:
                    while True:
                        member = stack.pop()
                        component[member] = count
                        if member == node:
                            break
                    count += 1
                if todo:
                    low[todo[-1][0]] = min(low[todo[-1][0]], low[node])
    return component
