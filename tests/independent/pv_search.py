# SPDX-License-Identifier: GPL-2.0-only
"""A second search of the paravirtual queue lock, written from the facts C.2 alone: nothing of the library is in it.

Each CPU takes the lock again and again; every access to shared data is one step. ``Rules`` says which lock: with or
without timeouts, with the latch of the kick, with the re-check after "halted", with the test for a preempted vCPU.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import networkx as nx

RUNNING, HALTED, HASHED = 0, 1, 2
NOBODY = -1
HOLDS = frozenset(("tail", "pass", "advance", "slow", "insert", "inside", "unhash", "store", "undo"))
SLEEPS = frozenset(("node_hlt", "head_hlt"))


@dataclass(frozen=True)
class Rules:
    cpus: int = 2
    timeouts: bool = True               # a spinning CPU may use up SPIN_THRESHOLD
    latched: bool = True                # a kick before HLT ends that HLT
    recheck: bool = True                # the MCS flag is read again after state = halted
    preempted: bool = False             # 75437bb304b2: a preempted predecessor counts as not running
    preemptions: int = 0                # so many times the host takes a CPU away, for good
    hash_first: bool = True             # the entry is inserted before the byte says 3
    one_step: bool = False              # the read of pv_wait and HLT are one step, which they are not
    count: bool = False                 # count how often the head halts in one enqueue, up to 3


class Cpu(NamedTuple):
    at: str = "sample"
    state: int = RUNNING
    flag: bool = False
    next: int = NOBODY
    prev: int = NOBODY
    token: bool = False
    hashed: bool = False                # the head knows of an entry; a thief: the tail was empty when it looked
    off: bool = False
    halts: int = 0


class State(NamedTuple):
    locked: int
    pending: bool
    tail: int
    table: tuple[int, ...]
    cpus: tuple[Cpu, ...]
    missing: bool = False               # an unlock found no entry


def start(rules: Rules) -> State:
    return State(0, False, NOBODY, (), (Cpu(),) * rules.cpus)


def put(s: State, i: int, **fields: object) -> State:
    cpus = list(s.cpus)
    cpus[i] = cpus[i]._replace(**fields)                # type: ignore[arg-type]
    return s._replace(cpus=tuple(cpus))


def entry_steps(s: State, i: int) -> list[State]:
    c = s.cpus[i]
    match c.at:
        case "sample" if s.locked == 0 and not s.pending:
            return [put(s, i, at="steal", hashed=s.tail == NOBODY)]
        case "sample":
            return [put(s, i, at="enqueue")] if s.tail == NOBODY or s.pending else []
        case "steal" if s.locked == 0:
            return [put(s._replace(locked=1), i, at="inside", hashed=False)]
        case "steal":
            return [put(s, i, at="enqueue" if c.hashed else "sample", hashed=False)]
        case "enqueue":
            new = put(s._replace(tail=i), i, state=RUNNING, flag=False, next=NOBODY, prev=s.tail, halts=0)
            return [put(new, i, at="head_known" if s.tail == NOBODY else "link")]
        case "link":
            return [put(put(s, c.prev, next=i), i, at="node")]
    return []


def node_steps(s: State, i: int, rules: Rules) -> list[State]:
    c = s.cpus[i]
    node_hlt = "node_hlt" if rules.one_step else "node_halts"
    match c.at:
        case "node" if c.flag:
            return [put(s, i, at="head_known", prev=NOBODY)]
        case "node":
            ahead = s.cpus[c.prev]
            early = ahead.state != RUNNING or rules.preempted and (ahead.off or ahead.at in SLEEPS)
            return [put(s, i, at="node_state")] if early or rules.timeouts else []
        case "node_state":
            return [put(s, i, state=HALTED, at="node_recheck" if rules.recheck else "node_read")]
        case "node_recheck":
            return [put(s, i, at="node_woken" if c.flag else "node_read")]
        case "node_read":
            return [put(s, i, at=node_hlt if c.state == HALTED else "node_woken")]
        case "node_halts":
            return [put(s, i, at="node_hlt")]
        case "node_hlt":
            return [put(s, i, at="node_woken", token=False)] if c.token else []
        case "node_woken":
            return [put(s, i, at="node", state=RUNNING if c.state == HALTED else c.state)]
    return []


def head_steps(s: State, i: int, rules: Rules) -> list[State]:
    c = s.cpus[i]
    first, second = ("head_insert", "head_slow") if rules.hash_first else ("head_slow", "head_insert")
    match c.at:
        case "head_known":
            return [put(s, i, at="head_running", hashed=c.state == HASHED)]
        case "head_running":
            return [put(s, i, at="head_pending", state=RUNNING)]
        case "head_pending":
            return [put(s._replace(pending=True), i, at="head_spin")]
        case "head_spin":
            taken = [put(s._replace(locked=1, pending=False), i, at="tail")] if s.locked == 0 else []
            return taken + ([put(s, i, at="head_timeout")] if rules.timeouts else [])
        case "head_timeout":
            return [put(s._replace(pending=False), i, at="head_state" if c.hashed else first)]
        case "head_insert":
            return [put(s._replace(table=(*s.table, i)), i, hashed=True,
                        at="head_slow" if second == "head_slow" else "head_state")]
        case "head_slow" if s.locked == 0:
            new = s._replace(locked=1)
            return [put(new, i, at="undo" if rules.hash_first else "tail")]
        case "head_slow":
            return [put(s._replace(locked=3), i, at="head_state" if rules.hash_first else "head_insert")]
        case "undo":
            return [put(s._replace(table=tuple(k for k in s.table if k != i)), i, at="tail")]
        case "head_state":
            return [put(s, i, at="head_read", state=HASHED)]
        case "head_read" if s.locked == 3:
            return [put(s, i, at="head_hlt" if rules.one_step else "head_halts",
                        halts=min(3, c.halts + 1) if rules.count else 0)]
        case "head_read":
            return [put(s, i, at="head_running")]
        case "head_halts":
            return [put(s, i, at="head_hlt")]
        case "head_hlt":
            return [put(s, i, at="head_running", token=False)] if c.token else []
    return []


def owner_steps(s: State, i: int, rules: Rules) -> list[State]:
    c = s.cpus[i]
    match c.at:
        case "tail" if s.tail == i:
            return [put(s._replace(tail=NOBODY), i, at="inside", hashed=False)]
        case "tail":
            return [put(s, i, at="pass", hashed=False)] if c.next != NOBODY else []
        case "pass":
            return [put(put(s, c.next, flag=True), i, at="advance")]
        case "advance" if s.cpus[c.next].state == HALTED:
            return [put(put(s, c.next, state=HASHED), i, at="slow")]
        case "advance":
            return [put(s, i, at="inside", next=NOBODY)]
        case "slow":
            return [put(s._replace(locked=3), i, at="insert")]
        case "insert":
            return [put(s._replace(table=(*s.table, c.next)), i, at="inside", next=NOBODY)]
        case "inside" if s.locked == 1:
            return [put(s._replace(locked=0), i, at="sample")]
        case "inside":
            return [put(s, i, at="unhash")]
        case "unhash" if not s.table:
            return [s._replace(missing=True)]
        case "unhash":
            return [put(s._replace(table=s.table[1:]), i, at="store", prev=s.table[0])]
        case "store":
            return [put(s._replace(locked=0), i, at="kick")]
        case "kick":
            new = put(s, i, at="sample", prev=NOBODY)
            return [put(new, c.prev, token=True)] if rules.latched or s.cpus[c.prev].at in SLEEPS else [new]
    return []


def moves(s: State, rules: Rules) -> list[tuple[int, State]]:
    """Who can do the next step, and the state after it; the host's steps bear the number of the CPU it takes away."""
    if s.missing:
        return []
    new: list[tuple[int, State]] = []
    spent = sum(c.off for c in s.cpus)
    for i, c in enumerate(s.cpus):
        if c.off:
            continue
        own = entry_steps(s, i) + node_steps(s, i, rules) + head_steps(s, i, rules) + owner_steps(s, i, rules)
        new += [(i, t) for t in own]
        if spent < rules.preemptions and c.at not in SLEEPS:
            new.append((i, put(s, i, off=True)))
    return new


def after(s: State, rules: Rules) -> list[State]:
    """The states after one step of any CPU, or of the host."""
    return [t for _, t in moves(s, rules)]


def graph(rules: Rules) -> dict[State, list[State]]:
    """Every reachable state, and what follows it."""
    first = start(rules)
    edges: dict[State, list[State]] = {}
    todo = deque([first])
    seen = {first}
    while todo:
        s = todo.popleft()
        edges[s] = after(s, rules)
        for t in edges[s]:
            if t not in seen:
                seen.add(t)
                todo.append(t)
    return edges


def cannot_enter(edges: dict[State, list[State]], cpus: int) -> int:
    """In how many states some CPU can never get inside any more (AG EF fails there)."""
    back: dict[State, list[State]] = {s: [] for s in edges}
    for s, following in edges.items():
        for t in following:
            back[t].append(s)
    bad: set[State] = set()
    for i in range(cpus):
        good = {s for s in edges if s.cpus[i].at == "inside"}
        todo = list(good)
        while todo:
            for s in back[todo.pop()]:
                if s not in good:
                    good.add(s)
                    todo.append(s)
        bad |= edges.keys() - good
    return len(bad)


def most_asleep(edges: dict[State, list[State]]) -> int:
    """The most CPUs that are in HLT at once."""
    return max(sum(c.at in SLEEPS for c in s.cpus) for s in edges)


def starves(rules: Rules, who: int = 0) -> bool:
    """Whether ``who`` can be the queue's head for ever, though no CPU that can always go on is left standing."""
    heads = {s for s in graph(rules) if s.cpus[who].at.startswith("head_")}
    waits = nx.DiGraph()
    waits.add_edges_from((s, t) for s in heads for t in after(s, rules) if t in heads)
    for part in nx.strongly_connected_components(waits):
        able = [{i for i, _ in moves(s, rules)} for s in part]
        done = {i for s in part for i, t in moves(s, rules) if t in part}
        if done and all(i in done or any(i not in a for a in able) for i in range(rules.cpus)):
            return True
    return False
