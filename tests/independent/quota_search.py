# SPDX-License-Identifier: GPL-2.0-only
"""A second search of the quota reweighting mechanism, written from the facts alone (sections A.2, A.5, A.6 and D.1).

It shares no line with models/quota_reweight.py, nor with the checker: the states are plain tuples, the steps plain
Python, and the search visits everything that can be reached. It keeps apart what the model takes together (the pool
of the quota and the runtime that the CPU has taken from it) and takes together what the model keeps apart (a weight
is either all of the group's shares or MIN_SHARES, throttle_count is ``throttled``).

One CPU; a group VM with a quota; in it the groups A and B of one task each. Time passes in ticks, and nothing is
charged for less than a tick. Every tick on which both groups are queued asks for a pick.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

A, B = BOTH = (0, 1)

TICK = 2          # runtime is counted in halves of a tick,
NANOSECOND = 1    # so that the grant of 1 ns at an unthrottle is more than nothing and less than a tick
TOO_LONG = 500    # in ticks; where waiting states form a cycle that takes time, the sums do not end


@dataclass(frozen=True)
class Setup:
    """A kernel and a machine; times are in ticks."""

    quota: int = 2
    period: int = 4
    lead: int = 1                            # how far before min_vruntime a sleeper is placed
    ratio: int = 8                           # how much faster vruntime grows at MIN_SHARES
    allocation: int = 1                      # sched_cfs_bandwidth_slice: what is taken from the pool at a time
    guard: bool = True                       # update_cfs_group returns where the hierarchy is throttled
    empty: Literal["min", "load_avg", "preserve"] = "min"       # the weight of a group whose task sleeps
    throttle_retry: bool = True              # throttle_cfs_rq looks into the pool once more (5.8)
    reweight_at_unthrottle: bool = False


class Group(NamedTuple):
    """The entity of A or B on VM's queue, and the load average of the queue that it owns."""

    queued: bool = True
    vruntime: int = 0
    full: bool = True                        # the weight: all of the group's shares, or MIN_SHARES
    load_avg: bool = True                    # whether it is more than 0


class State(NamedTuple):
    """Everything that decides what can happen next."""

    groups: tuple[Group, Group]
    running: int | None                      # cfs_rq->curr of VM's queue
    remaining: int                           # runtime_remaining of VM's queue
    pool: int                                # what the quota has left
    min_vruntime: int = 0
    phase: int = 0                           # ticks since the period began
    throttled: bool = False
    resched: bool = False                    # a pick is due
    refill: bool = False                     # the period timer is due


class Step(NamedTuple):
    """What can happen next, and how many ticks it takes."""

    ticks: int
    after: State


def start(setup: Setup) -> State:
    """Both groups are queued and equal, A runs, and the quota is whole."""
    return State((Group(), Group()), running=A, remaining=NANOSECOND, pool=setup.quota * TICK - NANOSECOND)


def change(state: State, which: int, **fields: Any) -> State:
    """The state with other values for some fields of a group."""
    a, b = state.groups
    return state._replace(groups=(a._replace(**fields), b) if which == A else (a, b._replace(**fields)))


def queued(state: State) -> list[int]:
    """The groups with an entity on VM's queue, the running one among them."""
    return [which for which in BOTH if state.groups[which].queued]


# ------------------------------------------------------------------------------------------- weight and vruntime
def update_weight(setup: Setup, state: State, which: int) -> State:
    """update_cfs_group: a group with load gets all of its shares, for no other CPU has load of it."""
    group = state.groups[which]
    if setup.guard and state.throttled:
        return state
    if group.queued:
        return change(state, which, full=True)
    if setup.empty == "preserve":
        return state
    return change(state, which, full=setup.empty == "load_avg" and group.load_avg)


def update_min_vruntime(state: State) -> State:
    """min_vruntime follows the least vruntime on the queue, and never goes back."""
    least = min((state.groups[which].vruntime for which in queued(state)), default=state.min_vruntime)
    return state._replace(min_vruntime=max(state.min_vruntime, least))


def normalised(setup: Setup, state: State) -> State:
    """The same state with min_vruntime as the origin of vruntime.

    How far a sleeper lies behind does not count beyond what it would be placed at: min_vruntime only grows.
    """
    def moved(group: Group) -> Group:
        vruntime = group.vruntime - state.min_vruntime
        return group._replace(vruntime=vruntime if group.queued else max(vruntime, -setup.lead))

    if state.min_vruntime == 0:
        return state
    a, b = state.groups
    return state._replace(groups=(moved(a), moved(b)), min_vruntime=0)


# ------------------------------------------------------------------------------------------------------ the quota
def assign(state: State, target: int) -> State:
    """__assign_cfs_rq_runtime: take from the pool what is missing to ``target``, or what there is."""
    amount = min(state.pool, target - state.remaining)
    return state._replace(pool=state.pool - amount, remaining=state.remaining + amount)


def throttle(setup: Setup, state: State) -> State:
    """throttle_cfs_rq; the weights of A and B stay as they are."""
    if setup.throttle_retry:
        state = assign(state, NANOSECOND)
        if state.remaining > 0:
            return state
    return state._replace(throttled=True)


def unthrottle(setup: Setup, state: State) -> State:
    """unthrottle_cfs_rq; the CPU has been idle, so it picks where there is something to run."""
    state = state._replace(throttled=False, resched=bool(queued(state)))
    if setup.reweight_at_unthrottle:
        for which in queued(state):
            state = update_weight(setup, state, which)
    return state


def refill(setup: Setup, state: State) -> State:
    """The period timer: the pool is whole again, and a throttled queue is released with 1 ns."""
    state = state._replace(pool=setup.quota * TICK, refill=False)
    if not state.throttled:
        return state
    state = assign(state, NANOSECOND)
    return unthrottle(setup, state) if state.remaining > 0 else state


# ----------------------------------------------------------------------------------------------- running and waiting
def charge(setup: Setup, state: State, which: int) -> State:
    """update_curr for a tick: vruntime at the weight of this moment, and the quota."""
    group = state.groups[which]
    state = change(state, which, vruntime=group.vruntime + (1 if group.full else setup.ratio))
    state = update_min_vruntime(state)
    state = state._replace(remaining=state.remaining - TICK)
    if state.remaining > 0:
        return state
    state = assign(state, setup.allocation * TICK)
    return state if state.remaining > 0 else state._replace(resched=True)


def tick(setup: Setup, state: State) -> State:
    """A tick passes. entity_tick: first the charge, then the weight, then whether to pick anew."""
    phase = (state.phase + 1) % setup.period
    state = state._replace(phase=phase, refill=phase == 0)
    if not state.throttled:                                       # the clock of load averages stands still below it
        for which in queued(state):
            state = change(state, which, load_avg=True)
    running = state.running
    if running is None:
        return state
    state = charge(setup, state, running)
    state = update_weight(setup, state, running)
    return state._replace(resched=True) if queued(state) == [A, B] else state


def picks(state: State, prev: int | None) -> list[int]:
    """Who may be picked: the least vruntime. At a tie, not who ran before; and either, where neither did."""
    least = min(state.groups[which].vruntime for which in queued(state))
    leftmost = [which for which in queued(state) if state.groups[which].vruntime == least]
    return [which for which in leftmost if which != prev] or leftmost


def schedule(setup: Setup, state: State) -> list[State]:
    """The CPU puts back who ran, which is where it throttles, and picks."""
    prev = state.running
    state = state._replace(running=None, resched=False)
    if state.remaining <= 0:
        state = throttle(setup, state)
    if state.throttled or not queued(state):
        return [state]
    return [state._replace(running=which) for which in picks(state, prev)]


def sleep(setup: Setup, state: State, which: int) -> State:
    """The task of the running group halts: the entity leaves the queue, and then the weight is computed."""
    state = change(state, which, queued=False)
    state = update_weight(setup, state, which)
    return update_min_vruntime(state)._replace(resched=True)


def wake(setup: Setup, state: State, which: int) -> list[State]:
    """The task of a group wakes: the weight, the place on the queue, and whether it preempts, which is open."""
    state = change(state, which, queued=True)
    state = update_weight(setup, state, which)
    vruntime = max(state.groups[which].vruntime, state.min_vruntime - setup.lead)
    state = change(state, which, vruntime=vruntime)
    if state.throttled:
        return [state]
    if state.running is None:
        return [state._replace(resched=True)]
    if state.groups[state.running].vruntime > vruntime:           # by more than wakeup_gran, or not
        return [state, state._replace(resched=True)]
    return [state]


# ----------------------------------------------------------------------------------------------------- the search
def steps_of_group(setup: Setup, state: State, which: int) -> Iterator[State]:
    """What the task of a group, or its load average, may do."""
    if state.groups[which].queued:
        if state.running == which and not state.resched:
            yield sleep(setup, state, which)
        return
    yield from wake(setup, state, which)
    if state.groups[which].load_avg and not state.throttled:
        yield change(state, which, load_avg=False)


def steps(setup: Setup, state: State) -> Iterator[Step]:
    """Everything that can happen next. No time passes while a pick or a refill is due; which comes first is open."""
    if state.resched:
        yield from (Step(0, after) for after in schedule(setup, state))
    if state.refill:
        yield Step(0, refill(setup, state))
    if not state.resched and not state.refill:
        yield Step(1, tick(setup, state))
    for which in BOTH:
        yield from (Step(0, after) for after in steps_of_group(setup, state, which))


def waits(state: State) -> bool:
    """The task of A is runnable and does not run."""
    return state.groups[A].queued and state.running != A


def worst_case(setup: Setup) -> int:
    """The longest wait of A: the ticks of consecutive steps that begin while it waits, the last of them included."""
    first = normalised(setup, start(setup))
    number = {first: 0}
    found = [first]
    onward: dict[int, list[tuple[int, int]]] = {}      # for each state in which A waits: ticks and the state after
    for here, state in enumerate(found):               # grows while it is walked
        arcs = []
        for ticks, after in steps(setup, state):
            after = normalised(setup, after)
            if after not in number:
                number[after] = len(found)
                found.append(after)
            arcs.append((ticks, number[after]))
        if waits(state):
            onward[here] = arcs
    return longest(onward)


def longest(onward: dict[int, list[tuple[int, int]]]) -> int:
    """The greatest sum of ticks along arcs that begin in ``onward``; arcs of no ticks may form cycles."""
    ahead = dict.fromkeys(onward, 0)
    changed = True
    while changed:
        changed = False
        for here in reversed(onward):                  # late states first: most of what lies ahead is known then
            most = max(ticks + ahead.get(after, 0) for ticks, after in onward[here])
            if most > TOO_LONG:
                raise ValueError(f"there is a wait of more than {TOO_LONG} ticks, or without an end")
            if most > ahead[here]:
                ahead[here] = most
                changed = True
    return max(ahead.values(), default=0)
