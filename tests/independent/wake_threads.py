# SPDX-License-Identifier: GPL-2.0-only
"""A second search for who carries the flag, written from the facts (C.3, C.4, D.2) alone: sets, no model, no solver.

A state is what is known of each thread (dead, alive, alive with the flag), and of the one vCPU: whether it exists, for
whom the VMM means it, who was last in KVM_RUN, and whether somebody is now.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

DEAD, PLAIN, FLAGGED = 0, 1, 2
NOBODY = -1


@dataclass(frozen=True)
class Rules:
    """A patch and a VMM. ``at``: where the flag is set; ``copied``: clone keeps it; ``off``: what clears it."""

    at: str = "create"                  # create | run
    copied: bool = True
    off: str = "never"                  # never | handoff | leave
    style: str = "own"                  # own | main | first
    parks: bool = False


@dataclass(frozen=True)
class Vmm:
    threads: tuple[int, ...] = (PLAIN, DEAD, DEAD)
    open: bool = True
    exists: bool = False
    meant: int = NOBODY
    last: int = NOBODY
    busy: bool = False
    other_wrote: bool = False

    def put(self, t: int, value: int) -> Vmm:
        return replace(self, threads=(*self.threads[:t], value, *self.threads[t + 1:]))


def after(s: Vmm, r: Rules) -> Iterator[Vmm]:
    """What may come next."""
    alive = [t for t, x in enumerate(s.threads) if x != DEAD]
    outside = [t for t in alive if not (s.busy and s.last == t)]
    for t, new in product(outside, range(len(s.threads))):
        if s.threads[new] == DEAD and (r.style != "first" or s.exists):
            yield s.put(new, s.threads[t] if r.copied else PLAIN)
    for t in alive:
        if s.open and not s.exists and (t == 0) == (r.style != "own"):
            made = replace(s, exists=True, meant=t if r.style == "own" else NOBODY)
            yield made.put(t, FLAGGED) if r.at == "create" else made
        if s.exists and not s.busy and (s.meant == t or (s.meant == NOBODY and t != 0)):
            on = s
            if r.off == "handoff" and s.last not in (NOBODY, t):
                on = replace(s.put(s.last, PLAIN), other_wrote=s.other_wrote or s.threads[s.last] == FLAGGED)
            on = on.put(t, FLAGGED) if r.at == "run" else on
            yield replace(on, meant=t, last=t, busy=True)
        if t != 0 and s.meant != t:
            yield replace(s.put(t, DEAD), last=NOBODY if s.last == t else s.last)
    if s.busy:
        yield replace(s.put(s.last, PLAIN) if r.off == "leave" else s, busy=False)
    if r.parks and s.meant != NOBODY and not s.busy:
        yield replace(s, meant=NOBODY)
    if s.open and not s.busy:
        on = s
        if r.off == "handoff" and s.last != NOBODY:
            on = replace(s.put(s.last, PLAIN), other_wrote=s.other_wrote or (s.last != 0
                                                                            and s.threads[s.last] == FLAGGED))
        yield replace(on, open=False, exists=False, meant=NOBODY, last=NOBODY)
    if not s.open:
        yield replace(s, open=True)
        yield replace(s, threads=(s.threads[0], *[DEAD] * (len(s.threads) - 1)))


def reached(r: Rules) -> set[Vmm]:
    """All states."""
    found, todo = {Vmm()}, [Vmm()]
    while todo:
        for nxt in after(todo.pop(), r):
            if nxt not in found:
                found.add(nxt)
                todo.append(nxt)
    return found


def runners_flagged(states: set[Vmm]) -> bool:
    return all(not s.busy or s.threads[s.last] == FLAGGED for s in states)


def only_runners(states: set[Vmm]) -> bool:
    return all(x != FLAGGED or s.last == t for s in states for t, x in enumerate(s.threads))


def gone(states: set[Vmm]) -> bool:
    return all(s.open or FLAGGED not in s.threads for s in states)


def own_writes(states: set[Vmm]) -> bool:
    return not any(s.other_wrote for s in states)
