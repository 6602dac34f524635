# SPDX-License-Identifier: GPL-2.0-only
"""Whether two functions that are not atomic do the same: a walk over pairs of places where both sides stand.

It begins at the entry. From each pair both sides run one atomic step from one and the same arbitrary state, because
between two steps anything may happen. They have to be able to go on in the same states, to make the same writes and
calls, and to end, or to stop, alike; where both stop is the next pair. What a side saves there is part of the pair: a
number as it is, anything else as a symbol, one for both sides where their values are proved to be equal. So a local on
one side needs no counterpart of its name, nor any counterpart at all.

A difference is told only with a run that leads to it from the entry, step by step.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import z3

from schedproof.errors import ModelError
from schedproof.kernel.arena import RANGES, RESULT, Arena, Call, Comparison, Side, Step, ask, reached, value_of
from schedproof.kernel.stepping import (
    MOMENT,
    Ask,
    Edge,
    Node,
    Outcome,
    Pair,
    Place,
    Saved,
    Stepper,
    Undecided,
    applications,
    at_step,
    live_locals,
    result_types,
    saved_value,
    symbol,
    wider,
)
from schedproof.lang import syntax as s
from schedproof.lang import terms as t
from schedproof.lang.ctypes import BOOL, CType
from schedproof.lang.paths import CutRecord, Result, SitePath, unsure
from schedproof.model.grain import local_types
from schedproof.model.threads import site_name

MOST = 20_000             # pairs of places
MANY = 256                # combinations of saved numbers that one end of a step is split into
CHAINS = 40               # runs that are tried to reach a difference


class Walk:
    """The comparison of two functions in one arena."""

    def __init__(self, arena: Arena, left: Side, right: Side):
        self.arena, self.sides = arena, (left, right)
        self.live = [live_locals(world) for world in arena.worlds]
        self.types = [{n: local_types(p) for n, p in world.programs.items()} for world in arena.worlds]
        self.results = result_types(arena.worlds)
        self.written = self._written()
        self.nodes: dict[Pair, Node] = {}
        self.todo: deque[Node] = deque()
        self.doubts: list[str] = []
        self.candidates: list[tuple[_Comparing, t.Value, str]] = []     # to be tried again when all ways are known

    def answer(self) -> Comparison:
        """The answer. Raises ModelError and NotExecutable with the place."""
        a, b = (side.programs[side.name] for side in self.sides)
        for args, told in self.arena.arguments(a, b):
            entry = Node((Place((), ((),)), Place((), ((),))), tuple(args), told)
            self.todo.append(entry)
            while self.todo:
                found = self.visit(self.todo.popleft(), {})
                if found is not None:
                    return found
            for comparing, asked, what in self.candidates:
                found = comparing.shown_by_a_run(asked, what)
                if found is not None:
                    return found
            self.nodes.clear()
            self.candidates.clear()
        if self.doubts:
            return Comparison("unknown", self.doubts[0])
        within = [RANGES] if self.arena.narrowed else []
        return Comparison("equal", within=", ".join([*within, *([self.arena.fixed] if self.arena.fixed else [])]))

    def _written(self) -> frozenset[str]:
        """The variables that either side may write; all where a callee is called that may write any."""
        found: set[str] = set()
        for world, side in zip(self.arena.worlds, self.sides, strict=True):
            for name in reached(Side(side.name, world.programs), world.boundary):
                body = world.programs[name].body
                found |= {x.var for x in s.statements(body) if isinstance(x, s.Store)}
                if s.calls(body) & world.boundary - self.arena.pure:
                    return frozenset(self.arena.variables)
        return frozenset(found)

    # --------------------------------------------------------------------------------------------- one step
    def visit(self, node: Node, known: Mapping[str, int]) -> Comparison | None:
        """Both sides' step from a pair, for the unknowns that have to be known; a difference, if there is one."""
        ranges = {**self.arena.ranges, **{symbol(i): r for i, r in enumerate(node.ranges)}}
        result = self.result(node, ranges)
        ranges |= {n: (v, v) for n, v in known.items()}
        try:
            runs = [self.run(side, node, ranges, known, result) for side in (0, 1)]
        except Ask as split:
            for value in split.values:
                found = self.visit(node, {**known, split.name: value})
                if found is not None:
                    return found
            return None
        return _Comparing(self, node, runs, ranges, known).differs()

    def run(self, side: int, node: Node, ranges: dict[str, t.Interval], known: Mapping[str, int],
            result: t.Value | None) -> Result:
        place, world = node.pair[side], self.arena.worlds[side]
        stepper = Stepper(world, ranges)
        stepper.pure, stepper.written = self.arena.pure, self.written

        def now(value: t.Value) -> t.Value:
            name = value.decl().name() if isinstance(value, z3.ExprRef) else ""
            return known.get(name, value)

        heap = {key: now(value) for key, value in self.arena.heap.items()}
        if not place.site:
            return stepper.run(self.sides[side].name, [now(a) for a in node.args], heap)
        frames = [{name: now(saved_value(saved)) for name, saved in frame} for frame in place.frames]
        if result is not None:
            frames[-1] = {RESULT: now(result)}
        return stepper.run(self.sides[side].name, [], heap, place.site, frames)

    def result(self, node: Node, ranges: dict[str, t.Interval]) -> t.Value | None:
        """What the callee returns in which the last step ended: anything of its type."""
        site = node.pair[0].site
        if not site or site[-1][0] not in self.arena.blocking:
            return None
        ctype = self.results.get(site[-1][0])
        if ctype == BOOL:
            return z3.Bool(RESULT)
        ranges[RESULT] = (None, None) if ctype is None else (ctype.low, ctype.high)
        if ctype is not None and ctype.struct:
            ranges[RESULT] = (s.NULL_CODE, len(self.arena.objects(ctype) or ()) - 1)
        return z3.Int(RESULT)

    def outcomes(self, side: int, result: Result) -> list[Outcome]:
        """The ways in which a step ends."""
        found = [self.stopped(side, record) for record in result.cuts]
        if result.end is not None:
            found.append(Outcome(result.end.pc, result.end.heap, value=result.value))
        return [o for o in found if o.guard is not False]

    def stopped(self, side: int, record: CutRecord) -> Outcome:
        world, callee, args = self.arena.worlds[side], "", ()
        frames: list[dict[str, t.Value]] = []
        for (program, ordinal), saved in zip(record.site, record.saved, strict=True):
            if program in self.arena.blocking:
                callee, args = program, tuple(saved[p] for p in world.programs[program].params)
                frames.append({})
                continue
            alive = self.live[side][program, ordinal]
            frames.append({n: t.simplify(saved[n]) for n in sorted(alive) if n in saved and not unsure(saved[n])})
        return Outcome(record.guard, record.heap, record.site, tuple(frames), callee, args)

    # ------------------------------------------------------------------------------------------- next pairs
    def reach(self, node: Node, pair: Pair, edge: Edge, ranges: Sequence[t.Interval], ctypes: Sequence[CType | None],
              ) -> None:
        """Note a pair that a step leads to; walk on from it if it is new, or its symbols can have more values now."""
        there = self.nodes.get(pair)
        if there is None:
            if len(self.nodes) >= MOST:
                raise ModelError(f"{self.sides[0].name}: more than {MOST} pairs of places", hint="a smaller instance")
            there = self.nodes[pair] = Node(pair, node.args, node.told, tuple(ranges), [edge])
            self.todo.append(there)
            return
        if len(there.edges) < CHAINS:
            there.edges.append(edge)
        grown = tuple(wider(old, new, c) for old, new, c in zip(there.ranges, ranges, ctypes, strict=True))
        if grown != there.ranges:
            there.ranges = grown
            if there not in self.todo:
                self.todo.append(there)

    def local_type(self, side: int, site: SitePath, depth: int, name: str) -> CType | None:
        found = self.types[side].get(site[depth][0], {}).get(name)
        return None if found is None or found.struct else found

    # ------------------------------------------------------------------------------------------- witnesses
    def chains(self, node: Node, seen: tuple[int, ...] = ()) -> Iterator[list[Edge]]:
        """Ways from the entry to a pair that pass no pair twice."""
        if not node.edges:
            yield []
            return
        for edge in node.edges:
            if id(edge.source) not in seen:
                for before in self.chains(edge.source, (*seen, id(node))):
                    yield [*before, edge]

    def witness(self, node: Node, asked: t.Value, ranges: Mapping[str, t.Interval]) -> list[Step] | None:
        """A run from the entry whose last step shows ``asked``; None where none was found."""
        for chain in itertools.islice(self.chains(node), CHAINS):
            found = self.along(chain, node, asked, ranges)
            if found is not None:
                return found
        return None

    def along(self, chain: list[Edge], node: Node, asked: t.Value, ranges: Mapping[str, t.Interval],
              ) -> list[Step] | None:
        """One way, with a state of its own for each step."""
        terms: list[z3.ExprRef] = []
        guards = [t.z3_of(e.guard) for e in chain] + [t.z3_of(asked)]
        for number, guard in enumerate(guards):
            terms.append(at_step(guard, number))
            for i, meant in enumerate(chain[number].symbols if number < len(chain) else ()):
                term = t.z3_of(meant)
                here = z3.Bool(symbol(i)) if z3.is_bool(term) else z3.Int(symbol(i))
                terms.append(at_step(here, number + 1) == at_step(term, number))
        for name, constant in t.constants_of(terms).items():
            plain, _, number_of = name.partition("@")
            if plain.startswith("free!"):
                raise Undecided(f"it depends on what is not modelled: the way to {self.where(node)}")
            if plain.startswith("saved!") or not z3.is_int(constant):
                continue
            step = int(number_of or 0)
            low, high = (chain[step].ranges if step < len(chain) else ranges).get(plain, (None, None))
            terms += [constant >= low] if low is not None else []
            terms += [constant <= high] if high is not None else []
        answer, model = ask(terms)
        if answer == z3.unknown:
            raise Undecided(f"Z3 gave up at {self.where(node)}")
        return None if model is None else self.told(model, terms, [*(e.source for e in chain), node])

    def told(self, model: z3.ModelRef, terms: list[z3.ExprRef], nodes: list[Node]) -> list[Step]:
        """The run that a model of a chain is."""
        answers: list[dict[Call, int | bool]] = [{} for _ in nodes]
        for app in applications(terms):
            name = app.decl().name()
            if name.endswith("!") and name[:-1] in self.arena.pure:
                moment, *inputs = app.children()
                seen = tuple(int(value_of(model.eval(x, model_completion=True))) for x in inputs)
                number = int(moment.decl().name().partition("@")[2])
                answers[number][name[:-1], seen] = value_of(model.eval(app, model_completion=True))
        return [self.step(model, node, number, answers[number]) for number, node in enumerate(nodes)]

    def step(self, model: z3.ModelRef, node: Node, number: int, answers: Mapping[Call, int | bool]) -> Step:
        values: dict[str, int | bool] = {}
        for key, constant in self.arena.heap.items():
            name = self.arena.worlds[0].name(key)
            values[name] = self.evaluated(model, constant, number, self.arena.ranges.get(name, (None, None)))
        ranges: dict[str, t.Interval] = {}
        result = self.result(node, ranges)
        if result is not None:
            values[RESULT] = self.evaluated(model, result, number, ranges.get(RESULT, (None, None)))
        for param, arg in zip(self.sides[0].programs[self.sides[0].name].params, node.args, strict=True):
            values[f"arg {param}"] = int(arg) if isinstance(arg, int) else self.evaluated(
                model, arg, 0, self.arena.ranges.get(f"arg {param}", (None, None)))
        return Step((self.place(0, node), self.place(1, node)), values, answers)

    @staticmethod
    def evaluated(model: z3.ModelRef, constant: z3.ExprRef, number: int, interval: t.Interval) -> int | bool:
        found = value_of(model.eval(at_step(constant, number), model_completion=True))
        low, high = interval
        if isinstance(found, bool) or model[at_step(constant, number).decl()] is not None:
            return found
        return max(found, low) if low is not None else found         # nothing hangs on it

    # ------------------------------------------------------------------------------------------------ words
    def place(self, side: int, node: Node) -> str:
        site = node.pair[side].site
        return site_name(site) if site else "entry"

    def where(self, node: Node) -> str:
        """A pair in words: where the left side stands, with the numbers that both sides have saved."""
        if not node.pair[0].site:
            return node.told
        saved = [f"{name} = {number}" for frame in node.pair[0].frames for name, (kind, number) in frame
                 if not name.startswith("__") and not kind.startswith("symbol")]
        depth = -2 if len(node.pair[0].site) > 1 and node.pair[0].site[-1][0] in self.arena.blocking else -1
        at = self.spot(0, node.pair[0].site, depth)
        return f"{node.told}; behind {self.place(0, node)} at {at} with {', '.join(saved) or 'nothing saved'}"

    def spot(self, side: int, site: SitePath, depth: int = -1) -> s.Loc:
        """The place in the text that a site is."""
        world, (program, ordinal) = self.arena.worlds[side], site[depth]
        return next(x.loc for x in s.statements(world.programs[program].body) if world.sites.get(id(x)) == ordinal)


class _Comparing:
    """What both sides have made of one step."""

    def __init__(self, walk: Walk, node: Node, runs: list[Result], ranges: dict[str, t.Interval],
                 known: Mapping[str, int]):
        self.walk, self.node, self.runs, self.ranges = walk, node, runs, ranges
        self.ends = [walk.outcomes(side, run) for side, run in enumerate(runs)]
        self.faults = [t.or_(*(f.guard for f in run.faults)) for run in runs]
        for run in runs:
            for choice in run.choices:
                self.ranges[choice.constant.decl().name()] = (0, len(choice.labels) - 1)
        self.bounds = t.Bounds(self.ranges)
        # What was taken to be known: part of every condition, so that a run that is told has these values.
        self.given = t.and_(*(z3.Int(n) == v for n, v in known.items()))
        self.limits = [z3.Int(n) >= low for n, (low, _) in self.ranges.items() if low is not None]
        self.limits += [z3.Int(n) <= high for n, (_, high) in self.ranges.items() if high is not None]

    def differs(self) -> Comparison | None:
        """A difference of this step, if there is one; what both sides do alike is walked on from."""
        fine = t.and_(*(t.not_(f) for f in self.faults))
        found = self.check(t.not_(t.equal(*self.faults)), "one side follows a NULL pointer or divides by zero")
        if found is not None:
            return found
        pairs = self.paired(fine)
        either = [t.or_(*(o.guard for o in ends)) for ends in self.ends]
        found = self.check(t.and_(fine, t.not_(t.equal(*either))), "one side goes on and the other one waits")
        if found is not None:
            return found
        for one, other, guard in pairs:
            found = self.alike(one, other, guard)
            if found is not None:
                return found
        return None

    # -------------------------------------------------------------------------------------------- questions
    def possible(self, asked: t.Value) -> z3.CheckSatResult:
        """Whether a condition on the state, and on what is saved, can hold."""
        asked = t.simplify(t.and_(self.given, asked))
        if isinstance(asked, bool):
            return z3.sat if asked else z3.unsat
        return ask([asked, *self.limits])[0]

    def check(self, asked: t.Value, what: str) -> Comparison | None:
        """A condition under which the sides differ: a difference when a run leads to it, else a doubt or nothing."""
        if asked is False or t.simplify(asked) is False:
            return None
        answer = self.possible(asked)
        if answer == z3.unsat:
            return None
        walk, where = self.walk, self.walk.where(self.node)
        free = {n: why for run in self.runs for n, why in run.free.items()}
        used = sorted(free[n] for n in t.functions_of(t.z3_of(asked)) & free.keys())
        if answer == z3.unknown or used:
            why = f"it depends on what is not modelled: {', '.join(used)}" if used else f"Z3 gave up at {where}"
            walk.doubts.append(why)
            return None
        found = self.shown_by_a_run(asked, what)
        if found is None:
            walk.candidates.append((self, asked, what))
            walk.doubts.append(f"at {where} it may be that {what}; no run was found that leads there")
        return found

    def shown_by_a_run(self, asked: t.Value, what: str) -> Comparison | None:
        """The difference with a run from the entry that leads to it."""
        try:
            steps = self.walk.witness(self.node, t.and_(self.given, asked), self.ranges)
        except Undecided as undecided:
            self.walk.doubts.append(str(undecided))
            return None
        if steps is None:
            return None
        where = self.walk.where(self.node)
        return Comparison("differs", f"{where}: {what}; {self.shown(asked, steps[-1])}", input=steps[0].input,
                          steps=tuple(steps))

    def shown(self, asked: t.Value, last: Step) -> str:
        """The values of the last step's state that the difference hangs on."""
        names = sorted(t.constants_of([asked]).keys() & last.input.keys() - {MOMENT})
        return ", ".join(f"{n.removeprefix('arg ')} = {last.input[n]}" for n in names) or "in every state"

    def paired(self, fine: t.Value) -> list[tuple[Outcome, Outcome, t.Value]]:
        """The ends of both sides that one and the same state can lead to."""
        ends = self.ends
        if len(ends[0]) == len(ends[1]):
            odd = [t.and_(fine, t.not_(t.equal(a.guard, b.guard))) for a, b in zip(*ends, strict=True)
                   if not t.same(a.guard, b.guard)]
            if not odd or self.possible(t.or_(*odd)) == z3.unsat:
                return [(a, b, t.and_(a.guard, fine)) for a, b in zip(*ends, strict=True)]
        found = []
        for a, b in itertools.product(*ends):
            guard = t.simplify(t.and_(a.guard, b.guard, fine))
            if guard is not False and self.possible(guard) != z3.unsat:
                found.append((a, b, guard))
        return found

    def alike(self, a: Outcome, b: Outcome, guard: t.Value) -> Comparison | None:
        """Compare two ends that one state leads to."""
        if a.kind != b.kind:
            return self.unlike(a, b, guard)
        found = self.effects(a, b, guard)
        if found is not None or not a.site:
            return found
        self.follow(a, b, guard)
        return None

    def unlike(self, a: Outcome, b: Outcome, guard: t.Value) -> Comparison | None:
        """A call is never the same as another one or as none. A cut where the other side has none may not matter."""
        what = f"one side {a.kind} where the other one {b.kind}"
        if (a.callee or not a.site) and (b.callee or not b.site):
            return self.check(guard, what)
        if self.possible(guard) != z3.unsat:
            self.walk.doubts.append(f"the places do not pair: at {self.walk.where(self.node)} {what}")
        return None

    def effects(self, a: Outcome, b: Outcome, guard: t.Value) -> Comparison | None:
        """Whether two ends leave the same state, call with the same arguments, return the same."""
        for what, pairs in (("a write differs", [(v, b.heap[k]) for k, v in a.heap.items()]),
                            (f"{a.callee} is called with other arguments", list(zip(a.args, b.args, strict=False)))):
            parts = [t.not_(t.equal(x, y)) for x, y in pairs if not t.same(x, y)]
            found = self.check(t.and_(guard, t.or_(*parts)), what) if parts else None
            if found is not None:
                return found
        if a.site or b.site:
            return None
        if (a.value is None) != (b.value is None):
            return self.check(guard, "one side returns a value and the other one does not")
        if a.value is None:
            return None
        return self.check(t.and_(guard, t.not_(t.equal(a.value, b.value))), "another value is returned")

    # ------------------------------------------------------------------------------------------- next pairs
    def follow(self, a: Outcome, b: Outcome, guard: t.Value) -> None:
        """The pairs that two ends lead to: one for each combination of the numbers that are saved."""
        saved = [[(side, depth, name, value) for depth, frame in enumerate(o.frames) for name, value in frame.items()]
                 for side, o in enumerate((a, b))]
        several: list[tuple[t.Value, tuple[int, ...]]] = []
        for *_, value in (*saved[0], *saved[1]):
            few = t.outcomes(value) if isinstance(value, z3.ExprRef) and z3.is_int(value) else None
            if few and not any(t.same(value, v) for v, _ in several):
                several.append((value, few))
        if math.prod(len(few) for _, few in several) > MANY:
            several = []                                             # symbols, then
        for chosen in itertools.product(*(few for _, few in several)):
            numbers = [(term, number) for (term, _), number in zip(several, chosen, strict=True)]
            here = t.and_(guard, *(t.equal(term, number) for term, number in numbers))
            self.pair(a, b, here, numbers)

    def pair(self, a: Outcome, b: Outcome, guard: t.Value, numbers: list[tuple[t.Value, int]]) -> None:
        classes: list[tuple[t.Value, CType | None, int]] = []        # the term, a C type that holds it, the side

        def saved(side: int, site: SitePath, depth: int, name: str, value: t.Value) -> Saved:
            value = next((n for term, n in numbers if t.same(term, value)), value)
            if isinstance(value, int):
                return ("bool" if isinstance(value, bool) else "int", int(value))
            ctype = self.walk.local_type(side, site, depth, name)
            kind = "symbol bool" if z3.is_bool(value) else "symbol int"
            for i, (term, known, first) in enumerate(classes):
                if z3.is_bool(term) == z3.is_bool(value) and (
                        t.same(term, value) or (side != first and self.proved(guard, term, value))):
                    classes[i] = (term, known or ctype, first)
                    return (kind, i)
            if numbers and z3.is_bool(value):                            # 1 or 0 there may be true or false here
                for told in (True, False):
                    if self.proved(guard, value, told):
                        return ("bool", int(told))
            classes.append((value, ctype, side))
            return (kind, len(classes) - 1)

        places = []
        for side, outcome in enumerate((a, b)):
            frames = tuple(tuple((n, saved(side, outcome.site, depth, n, v)) for n, v in frame.items())
                           for depth, frame in enumerate(outcome.frames))
            places.append(Place(outcome.site, frames))
        pair = (places[0], places[1])
        if pair not in self.walk.nodes and self.possible(guard) == z3.unsat:
            return
        intervals = [(None, None) if z3.is_bool(term) else self.bounds.of(term) for term, _, _ in classes]
        edge = Edge(self.node, t.and_(self.given, guard), tuple(term for term, _, _ in classes), self.ranges)
        self.walk.reach(self.node, pair, edge, intervals, [c for _, c, _ in classes])

    def proved(self, guard: t.Value, one: t.Value, other: t.Value) -> bool:
        return bool(self.possible(t.and_(guard, t.not_(t.equal(one, other)))) == z3.unsat)
