# SPDX-License-Identifier: GPL-2.0-only
"""The ``agrees`` engine: whether two variants of a model give the same observations.

What is seen of a run is the sequence of the observations of its states, where a step that does not change the
observation is not seen (stuttering): how many steps something takes, and whether it stays like that for ever, is no
part of it. The variants agree when they have the same such sequences, of finite runs. Both are nondeterministic, so
the product is that of the two determinised systems: a state of it is a pair of sets, all states that a variant may be
in after what was seen. They differ in the first pair, breadth first, from which only one of them can go on with some
observation, and what was seen up to there is a shortest sequence that tells them apart.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from schedproof.engines.explicit import checks
from schedproof.engines.explicit.compile import compile_instance
from schedproof.engines.explicit.engine import DEFAULT_MEMORY
from schedproof.engines.explicit.layout import CannotCompile, lay_out
from schedproof.engines.explicit.search import Meter, Space, explore
from schedproof.errors import BudgetExceeded
from schedproof.lang import terms as t
from schedproof.model.concrete import steps
from schedproof.model.transition import State, Transition
from schedproof.property import Agrees, Property
from schedproof.replay import to_trace
from schedproof.verdict import Counts, Proved, Refuted, Unknown, Vacuous, Verdict

Seen = tuple[int, ...]                   # one observation
Words = frozenset[int]                   # states of one variant


def formulas(kind: Agrees) -> tuple[Any, ...]:
    return kind.observe if isinstance(kind.observe, tuple) else (kind.observe,)


def other_of(instance: Any, kind: Agrees) -> Any:
    """The instance that an instance is compared with: the same parameters, the model's own methods."""
    return instance.model.variant(kind.other(instance.name), **instance.params)


class ByProduct:
    """The engine."""

    name = "agrees"

    def applies(self, instance: Any, property: Property) -> str | None:
        if not isinstance(property.kind, Agrees):
            return f"only what agrees is compared by product, not properties of the kind {property.kind.word}"
        try:
            for one in (instance, other_of(instance, property.kind)):
                transitions = one.transitions
                lay_out(one.variables, transitions, one.initial)
        except CannotCompile as error:
            return str(error)
        return None

    def decide(self, instance: Any, property: Property, budget: float | None = None, jobs: int = 1,
               progress: Callable[[Counts], None] | None = None) -> Verdict:
        """Compare. The counts are those of both variants together. Raises ModelError when a model is at fault."""
        begin = time.perf_counter()
        kind = property.kind
        assert isinstance(kind, Agrees)
        meter = Meter(budget, DEFAULT_MEMORY, progress)
        sides: list[Side] = []
        common: dict[str, Any] = {"engine": self.name, "instance": instance.title}
        try:
            sides = [Side(one, kind, property, meter) for one in (instance, other_of(instance, kind))]
            found = _Product(sides[0], sides[1], meter).difference()
        except (CannotCompile, BudgetExceeded) as error:
            return Unknown(**common, counts=meter.counts, reason=str(error))
        counts = Counts(sum(s.space.count for s in sides), meter.counts.transitions,
                        max(s.space.depth for s in sides), time.perf_counter() - begin)
        common["counts"] = counts
        free = sorted({why for s in sides for x in s.instance.transitions for why in x.free})
        if free:
            return Unknown(**common, reason=f"it depends on what is not modelled: {', '.join(free)}")
        if found is not None:
            return self._refuted(sides, property, found, common)
        if len({s for side in sides for s in side.known.values()}) < 2:
            return Vacuous(**common, reason="there is one observation only")
        for side in sides:
            dead = checks.dead_actions(side.instance, side.space)
            if dead:
                return Vacuous(**common, reason=f"in {side.instance.name} no reachable state enables "
                                                + ", ".join(dead))
        return Proved(**common)

    def _refuted(self, sides: list[Side], property: Property, found: Difference, common: dict[str, Any]) -> Refuted:
        able, silent = sides[found.side], sides[1 - found.side]
        word, stem = able.run(found.seen)
        first = able.space.compiled.layout.unpack(word)
        trace = to_trace(able.instance, property, first, stem, (), "refuted", "", None)
        if found.side:
            trace = replace(trace, variant=silent.instance.name, runs_in=able.instance.name,
                            sources=silent.instance.sources)
        return Refuted(**common, trace=trace, reason=f"no run of {silent.instance.name} gives the observations of the "
                                                     f"run of {able.instance.name}")


@dataclass
class Side:
    """One variant: its reachable states, and what is seen of them."""

    instance: Any
    kind: Agrees
    property: Property
    meter: Meter
    known: dict[Any, Seen] = field(default_factory=dict)
    onward: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    moves_of: dict[Words, dict[Seen, Words]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        instance = self.instance
        transitions = tuple(instance.transitions)
        final = [] if instance.final is None else [instance.final]
        compiled = compile_instance(instance.variables, transitions, final, "", instance.initial)
        before = self.meter.counts.transitions
        self.space: Space = explore(compiled, checks.pack_initial(instance, compiled), self.meter,
                                    may_stick=1 if final else 0)
        checks.require_sound(instance, self.space, self._tell)
        self.meter.note(transitions=before + self.meter.counts.transitions)
        used = t.constants_of([instance.term(f) for f in formulas(self.kind)])
        self.names = tuple(n for n in instance.variables if n in used)
        fields = [compiled.layout.fields[n] for n in self.names]
        self.mask = -1 if any(f.shared for f in fields) else sum({f.mask for f in fields})
        self.initial: Words = frozenset(checks.pack_initial(instance, compiled))

    def _tell(self, path: Any) -> Any:
        return to_trace(self.instance, self.property, path.initial, list(path.stem), [], "error", "", None)

    def seen(self, word: int) -> Seen:
        """What is seen of a state."""
        key = word & self.mask
        if key not in self.known:
            state = self.space.compiled.layout.unpack(word)
            self.known[key] = observation(self.instance, self.kind, state)
        return self.known[key]

    def successors(self, word: int) -> list[tuple[int, int]]:
        """The states behind a state, each with the number of a transition."""
        if word not in self.onward:
            self.onward[word] = [(there, number) for there, number, _ in self.space.compiled.step(word)]
        return self.onward[word]

    def closed(self, words: Iterable[int]) -> Words:
        """The states that are reached from some by steps that are not seen, those included."""
        found, todo = set(words), list(words)
        while todo:
            word = todo.pop()
            here = self.seen(word)
            for there, _ in self.successors(word):
                if there not in found and self.seen(there) == here:
                    found.add(there)
                    todo.append(there)
        return frozenset(found)

    def begin(self) -> dict[Seen, Words]:
        """Where the variant may begin, by what is seen."""
        return self._sorted(self.initial)

    def moves(self, words: Words) -> dict[Seen, Words]:
        """Where it may be after the next observation, by that."""
        if words not in self.moves_of:
            here = self.seen(next(iter(words)))
            self.moves_of[words] = self._sorted(there for word in words for there, _ in self.successors(word)
                                                if self.seen(there) != here)
        return self.moves_of[words]

    def _sorted(self, words: Iterable[int]) -> dict[Seen, Words]:
        found: dict[Seen, set[int]] = {}
        for word in words:
            found.setdefault(self.seen(word), set()).add(word)
        return {seen: self.closed(some) for seen, some in found.items()}

    def run(self, observed: Sequence[Seen]) -> tuple[int, list[Transition]]:
        """A shortest run that gives these observations: its first state and its transitions."""
        first = [(w, 0) for w in sorted(self.initial) if self.seen(w) == observed[0]]
        before: dict[tuple[int, int], tuple[tuple[int, int], int] | None] = dict.fromkeys(first)
        todo = deque(first)
        while todo:
            here = word, place = todo.popleft()
            if place == len(observed) - 1:
                numbers = []
                while (came := before[here]) is not None:
                    here, number = came
                    numbers.append(number)
                return here[0], [self.space.compiled.transitions[n] for n in reversed(numbers)]
            for there, number in self.successors(word):
                seen = self.seen(there)
                after = place if seen == observed[place] else place + 1 if seen == observed[place + 1] else None
                if after is not None and (there, after) not in before:
                    before[there, after] = here, number
                    todo.append((there, after))
        raise AssertionError("what was seen is what no run gives")


@dataclass(frozen=True)
class Difference:
    """What the variant number ``side`` can show, and the other one cannot."""

    seen: tuple[Seen, ...]
    side: int


@dataclass
class _Product:
    left: Side
    right: Side
    meter: Meter

    def difference(self) -> Difference | None:
        """The shortest sequence of observations that only one variant has."""
        met: set[tuple[Words, Words]] = set()
        todo: deque[tuple[tuple[Seen, ...], Words, Words]] = deque()
        found = self._both((), self.left.begin(), self.right.begin(), met, todo)
        while todo and found is None:
            self.meter.check()
            seen, a, b = todo.popleft()
            found = self._both(seen, self.left.moves(a), self.right.moves(b), met, todo)
        return found

    def _both(self, seen: tuple[Seen, ...], a: dict[Seen, Words], b: dict[Seen, Words],
              met: set[tuple[Words, Words]], todo: deque[tuple[tuple[Seen, ...], Words, Words]]) -> Difference | None:
        for nxt in sorted(a.keys() | b.keys()):
            if nxt not in a or nxt not in b:
                return Difference((*seen, nxt), 0 if nxt in a else 1)
            pair = a[nxt], b[nxt]
            if pair not in met:
                met.add(pair)
                todo.append(((*seen, nxt), *pair))
        return None


# ------------------------------------------------------------------------------ on the plain interpreter
def observation(instance: Any, kind: Agrees, state: State) -> Seen:
    """What is seen of a state."""
    return tuple(int(instance.evaluate(f, state)) for f in formulas(kind))


def seen(instance: Any, kind: Agrees, states: Iterable[State]) -> list[Seen]:
    """What is seen of a run: each observation once, until it changes."""
    found: list[Seen] = []
    for state in states:
        now = observation(instance, kind, state)
        if not found or found[-1] != now:
            found.append(now)
    return found


def shows(instance: Any, kind: Agrees, observed: Sequence[Seen]) -> bool:
    """Whether some run gives these observations, by the plain interpreter: for replay."""
    assert instance.transitions is not None          # threads learn the constants of their frames here
    names = tuple(instance.variables)
    first = [tuple(i[n] for n in names) for i in instance.initial if observation(instance, kind, i) == observed[0]]
    for following in (*observed[1:], None):
        found, after = set(first), list[tuple[Any, ...]]()
        todo = list(first)
        while todo:
            state = dict(zip(names, todo.pop(), strict=True))
            here = observation(instance, kind, state)
            for taken in steps(instance, state):
                there = tuple(taken.state[n] for n in names)
                now = observation(instance, kind, taken.state)
                if now == here and there not in found:
                    found.add(there)
                    todo.append(there)
                elif now == following and now != here:
                    after.append(there)
        if following is None:
            return bool(first)
        first = list(dict.fromkeys(after))
        if not first:
            return False
    return bool(first)
