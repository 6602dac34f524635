# SPDX-License-Identifier: GPL-2.0-only
"""Whether two functions do the same, decided by Z3 on exact C values and types, never on a model's classes.

Both functions run symbolically on one and the same arbitrary state: every field that a declaration names has any
value of its C type (or of its declared span), every pointer argument is each object of its universe in turn. Calls
into the model's vocabulary are one and the same unknown function of their arguments and of the whole state, so
equal means: the same calls with the same arguments in the same states, the same writes, the same value.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import z3

from schedproof.errors import ModelError, NotExecutable
from schedproof.kernel.rounds import Frames, Half, Rounds, with_heads
from schedproof.kernel.solving import Opaque, ask, value_of
from schedproof.lang import syntax as s
from schedproof.lang import terms as t
from schedproof.lang.ctypes import BOOL, CType
from schedproof.lang.execute import Endless, Executor
from schedproof.lang.paths import Heap, Path, Result, SitePath
from schedproof.lang.world import Key, World, make_world
from schedproof.model.domains import Domain, Int
from schedproof.model.instance import Instance

GROUND = 200_000           # of them for a question in which every input is known
SAMPLES = 200
SINCE = "since the last callee"         # stands for all that is not modelled: only a callee changes it
ROUNDS = 3                 # of a loop without a bound in which a difference is looked for


@dataclass(frozen=True)
class Comparison:
    """``equal`` is proved; ``differs`` comes with an input that shows it; ``unknown`` with the reason.

    ``within`` says for which values it was proved, where that is less than all values of the C types. ``input`` is
    the whole input of a difference: variables such as ``load[qA]``, arguments such as ``arg se``.
    """

    answer: Literal["equal", "differs", "unknown"]
    detail: str = ""
    within: str = ""
    input: Mapping[str, int | bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Side:
    """One of the two functions: its name, and the programs that it and its callees are."""

    name: str
    programs: Mapping[str, s.Program]


def compare(instance: Instance, left: Side, right: Side, spans: bool = False) -> Comparison:
    """Compare two functions of the same name. ``spans`` looks at fields within their declared spans only.

    ``instance`` gives the universes, links and switches. Raises nothing: what cannot be run is ``unknown``.
    """
    try:
        changed = _retyped(left, right)
        if changed:
            return Comparison("unknown", changed)
        narrow, whole = _compare(instance, left, right, True)
        if spans or whole or narrow.answer == "differs":
            return narrow
        wide, _ = _compare(instance, left, right, False)
        if wide.answer != "equal" and narrow.answer == "equal":
            return Comparison("equal", within="the declared ranges of the fields")
        return narrow if wide.answer == "unknown" else wide
    except (ModelError, NotExecutable) as error:
        return Comparison("unknown", str(error))


def _compare(instance: Instance, left: Side, right: Side, spans: bool) -> tuple[Comparison, bool]:
    """The answer, and whether it holds for all values of the C types."""
    a, b = left.programs[left.name], right.programs[right.name]
    if len(a.params) != len(b.params):
        return Comparison("differs", f"{len(a.params)} and {len(b.params)} parameters"), True
    arena = _Arena(instance, left, right, spans)
    unknown = ""
    for args, told in arena.arguments(a, b):
        found = arena.same(left, right, args, told)
        if found.answer == "differs":
            return found, not arena.narrowed
        unknown = unknown or found.detail
    return Comparison("unknown", unknown) if unknown else Comparison("equal"), not arena.narrowed


def _retyped(left: Side, right: Side) -> str:
    """The field that the two sides read with different C types, in words; such a field is not one and the same."""
    one, other = ({n: c for n, c in field_types(side.programs).items() if not c.struct} for side in (left, right))
    for name in sorted(one.keys() & other.keys()):
        if one[name] != other[name]:
            return f"the type of the field behind {name} changes from {one[name]} to {other[name]}"
    return ""


class _Arena:
    """The state on which both sides run."""

    def __init__(self, instance: Instance, left: Side, right: Side, spans: bool):
        self.instance, self.spans, self.narrowed = instance, spans, False
        self.boundary = instance.model.vocabulary.boundary - {left.name}
        self.types = field_types(left.programs) | field_types(right.programs)
        variables: dict[str, tuple[str | None, Domain]] = {}
        self.ranges: dict[str, t.Interval] = {}
        for name, (universe, domain) in instance.world.variables.items():
            variables[name] = (universe, domain if domain.sort == "Bool" else Int())
        for name, constant in instance.scope.constants.items():
            universe = instance.scope.universe_of(constant.per) if constant.per is not None else None
            if constant.c:
                variables[name] = (universe, Int())
        if any(isinstance(e, s.Free) for side in (left, right) for p in side.programs.values()
               for x in s.statements(p.body) for e in s.expressions(x)):
            variables[SINCE] = (None, Int())
        self.variables = variables
        self.fixed = {n: v for n, v in instance.world.constants.items() if n not in variables}
        self.free: set[str] = set()                        # unknown functions for what is not modelled
        self.facts: list[z3.BoolRef] = []                  # what callees leave stays within the types of the fields
        self.rounds: Rounds | None = None                  # once a loop has been met that only a jump ends
        self.worlds = [self._world(side.programs) for side in (left, right)]
        self.heap: Heap = {}
        for name, (_, domain) in variables.items():
            for key in self.worlds[0].keys(name):
                self.heap[key] = self._constant(key, domain)

    def _world(self, programs: Mapping[str, s.Program]) -> World:
        world = make_world(self.instance.universes, self.variables, self.instance.world.links, self.fixed, programs)
        return World(world.universes, world.variables, world.links, world.constants, world.programs, world.cutting,
                     self.boundary, world.sites)

    def _constant(self, key: Key, domain: Domain) -> z3.ExprRef:
        name = self.worlds[0].name(key)
        if domain.sort == "Bool":
            return z3.Bool(name)
        self.ranges[name] = self._range(key[0])
        return z3.Int(name)

    def _range(self, base: str) -> t.Interval:
        """The values that a field can have: its C type's, or its span."""
        scope, ctype = self.instance.scope, self.types.get(base)
        declared = scope.variables.get(base) or scope.constants.get(base)
        span = getattr(declared, "span", None)
        if self.spans and span is not None:
            low, high = span
            if ctype is not None and not ctype.struct:
                low, high = max(low, ctype.low), min(high, ctype.high)
            self.narrowed |= ctype is None or (low, high) != (ctype.low, ctype.high)
            return (low, high)
        if ctype is not None and not ctype.struct:
            return (ctype.low, ctype.high)
        if base in self.instance.world.variables:
            codes = self.instance.world.variables[base][1].codes()
            if ctype is not None or not getattr(declared, "c", None):
                return (None, None) if codes is None else (int(min(codes)), int(max(codes)))
        return (span[0], span[1]) if span is not None else (None, None)

    # ----------------------------------------------------------------------------------------- questions
    def arguments(self, a: s.Program, b: s.Program) -> Iterator[tuple[list[t.Value], str]]:
        """Each combination of objects for the pointers, unknown numbers for the rest."""
        options: list[list[tuple[t.Value, str]]] = []
        for i, param in enumerate(a.params):
            ctype = next((p.types[i] for p in (b, a) if i < len(p.types) and p.types[i] is not None), None)
            options.append(self._options(param, ctype))
        for chosen in itertools.product(*options):
            yield [v for v, _ in chosen], ", ".join(text for _, text in chosen)

    def _options(self, param: str, ctype: CType | None) -> list[tuple[t.Value, str]]:
        if ctype is not None and ctype.struct:
            for name, thing in self.instance.scope.objects.items():
                if thing.ctype == ctype.struct:
                    objects = self.instance.universes[name]
                    return [(i, f"{param} = {o}") for i, o in enumerate(objects)]
            raise NotExecutable("", 0, f"an argument of the type {ctype}, of which the model has no object")
        if ctype == BOOL:
            return [(z3.Bool(f"arg {param}"), f"any {param}")]
        name = f"arg {param}"
        self.ranges[name] = (None, None) if ctype is None else (ctype.low, ctype.high)
        return [(z3.Int(name), f"any {param}")]

    def same(self, left: Side, right: Side, args: list[t.Value], told: str) -> Comparison:
        if self.rounds is None:
            try:
                return self._whole_runs(left, right, args, told)
            except Endless:
                self.rounds = self._heads(left, right)
        why = self.rounds.unequal(args)
        if not why:
            return Comparison("equal")
        found = self._decided(self.rounds.difference(args, ROUNDS), left, right, args, told)
        return Comparison("unknown", why) if found.answer == "equal" else found

    def _heads(self, left: Side, right: Side) -> Rounds:
        """Both functions in worlds in which a step ends at the head of each loop that only a jump ends."""
        halves = []
        for side in (left, right):
            programs = {n: with_heads(side.programs[n]) for n in reached(side, self.boundary)}
            world = self._world(programs)
            halves.append(Half(world, side.name, partial(self._executed, world, side.name)))
        return Rounds((halves[0], halves[1]), self.heap, self._never)

    def _never(self, asked: t.Value) -> bool:
        """Whether a condition is shown to hold for no input."""
        asked = t.simplify(asked)
        if isinstance(asked, bool):
            return not asked
        term = z3.And(asked, *self.facts)
        limits = self._limits(t.constants_of([term]))
        opaque = Opaque(self.ranges)
        linear = opaque.of(term)
        if ask([linear, *opaque.facts, *limits])[0] == z3.unsat:
            return True
        return not z3.eq(linear, term) and ask([term, *limits])[0] == z3.unsat

    def _whole_runs(self, left: Side, right: Side, args: list[t.Value], told: str) -> Comparison:
        ends = [self._run(world, side, args) for world, side in zip(self.worlds, (left, right), strict=True)]
        return self._decided(_difference(ends[0], ends[1]), left, right, args, told)

    def _decided(self, difference: t.Value, left: Side, right: Side, args: list[t.Value], told: str) -> Comparison:
        """Whether a condition of a difference holds for any input."""
        if difference is False:
            return Comparison("equal")
        asked = t.z3_of(t.and_(difference, *self.facts))
        constants = t.constants_of([asked])
        used = sorted(t.functions_of(asked) & self.free)
        limits = self._limits(constants)
        found = self._solve(asked, limits, constants)
        if found == z3.unsat:
            return Comparison("equal")
        if used:
            return Comparison("unknown", "it depends on what is not modelled: " + ", ".join(
                name.removeprefix("free!") for name in used))
        if found == z3.unknown:
            return Comparison("unknown", f"Z3 gave up at {told}")
        found = self._plain(asked, constants, found)
        values = self._whole(found, args, left.programs[left.name].params)
        seen = self._seen(constants, told, left, right)
        return Comparison("differs", f"{told}; {_shown(found, seen)}", input=values)

    def _solve(self, asked: z3.BoolRef, limits: list[z3.BoolRef], constants: Mapping[str, z3.ExprRef]) -> Any:
        """An input for which ``asked`` holds, or z3.unsat, or z3.unknown.

        First with unknown functions in place of products and quotients of unknowns, which is a linear question. What
        that gives may be right for the real ones too.
        """
        opaque = Opaque(self.ranges)
        linear = opaque.of(asked)
        answer, model = ask([linear, *opaque.facts, *limits])
        if answer == z3.unsat:
            return z3.unsat
        if model is not None:
            values = {n: value_of(model.eval(c, model_completion=True)) for n, c in constants.items()}
            if z3.eq(linear, asked) or self._shows(asked, constants, values):
                return values
        met = self._sample(asked, constants, SAMPLES // 4)
        if met is not None:
            return met
        answer, model = ask([asked, *limits])
        if model is not None:
            return {n: value_of(model.eval(c, model_completion=True)) for n, c in constants.items()}
        return answer if answer == z3.unsat else self._sample(asked, constants, SAMPLES) or z3.unknown

    @staticmethod
    def _shows(asked: z3.BoolRef, constants: Mapping[str, z3.ExprRef], values: Mapping[str, int | bool]) -> bool:
        """Whether ``asked`` holds for an input; what is left are the unknown functions, for which there is a choice."""
        left = z3.simplify(z3.substitute(asked, *((c, t.z3_of(values[n])) for n, c in constants.items())))
        if z3.is_true(left) or z3.is_false(left):
            return bool(z3.is_true(left))
        return bool(ask([left], GROUND)[0] == z3.sat)

    def _plain(self, asked: z3.BoolRef, constants: Mapping[str, z3.ExprRef],
               values: dict[str, int | bool]) -> dict[str, int | bool]:
        """The input with numbers that are easier to read, as far as it goes on to show the difference."""
        for name, value in values.items():
            low, high = self.ranges.get(name, (None, None))
            for small in sorted({0, 1, 2, low or 0}):
                fits = (low is None or low <= small) and (high is None or small <= high)
                if isinstance(value, bool) or abs(small) >= abs(value) or not fits:
                    continue
                simpler = {**values, name: small}
                if self._shows(asked, constants, simpler):
                    values = simpler
                    break
        return values

    def _whole(self, values: Mapping[str, int | bool], args: list[t.Value], params: Sequence[str]) -> dict[str, Any]:
        """An input with the values of everything, also of what makes no difference."""
        found: dict[str, int | bool] = {}
        for key, constant in self.heap.items():
            low, high = self.ranges.get(self.worlds[0].name(key), (None, None))
            if key[0] == SINCE:
                continue
            least = 0 if low is None else max(low, 0)
            found[self.worlds[0].name(key)] = False if z3.is_bool(constant) else (
                least if high is None else min(least, high))
        found |= {f"arg {p}": a for p, a in zip(params, args, strict=True) if isinstance(a, int)}
        return found | {name: value for name, value in values.items() if name != SINCE}

    def _seen(self, constants: Mapping[str, z3.ExprRef], told: str, *sides: Side) -> dict[str, z3.ExprRef]:
        """Those inputs that the two functions themselves look at; a callee in the vocabulary may see them all.

        Of the objects, those that can be reached from the arguments.
        """
        near = {part.partition(" = ")[2] for part in told.split(", ")}
        for _ in self.instance.scope.links:
            for name, link in self.instance.scope.links.items():
                sources = self.instance.universes[self.instance.scope.universe_of(link.per)]
                targets = self.instance.universes[self.instance.scope.universe_of(link.target)]
                near |= {targets[to] for source, to in zip(sources, self.instance.world.links[name], strict=True)
                         if source in near and to >= 0}
        constants = {n: c for n, c in constants.items()
                     if "[" not in n or n.partition("[")[2].rstrip("]") in near}
        read = {e.var for side in sides for name in reached(side, self.boundary)
                for x in s.statements(side.programs[name].body) for e in s.expressions(x) if isinstance(e, s.Load)}
        return {n: c for n, c in constants.items() if n.partition("[")[0] in read or n.startswith("arg ")}

    def _run(self, world: World, side: Side, args: list[t.Value]) -> Result:
        result = self._executed(world, side.name, args, self.heap)
        if result.cuts:
            raise NotExecutable("", 0, f"{side.name} is not atomic")
        return result

    def _executed(self, world: World, name: str, args: Sequence[t.Value], heap: Heap, resume: SitePath = (),
                  saved: Frames = (), given: t.Value = True) -> Result:
        executor = _Executor(world, self.ranges, splits=False)
        result = executor.run(name, args, heap, resume, saved, given)
        self.free |= set(result.free)
        self.facts += [f for f in executor.facts if not any(z3.eq(f, g) for g in self.facts)]
        return result

    def _limits(self, constants: Mapping[str, z3.ExprRef]) -> list[z3.BoolRef]:
        found = []
        for name, constant in constants.items():
            low, high = self.ranges.get(name, (None, None))
            found += [constant >= low] if low is not None and z3.is_int(constant) else []
            found += [constant <= high] if high is not None and z3.is_int(constant) else []
        return found

    def _sample(self, asked: z3.BoolRef, constants: Mapping[str, z3.ExprRef], count: int) -> dict[str, Any] | None:
        """An input for which ``asked`` holds, among corner values and random ones; None when none was met."""
        choose = random.Random(count)
        for _ in range(count):
            values = {n: self._some(choose, n) if z3.is_int(c) else choose.random() < 0.5
                      for n, c in constants.items()}
            if self._shows(asked, constants, values):
                return values
        return None

    def _some(self, choose: random.Random, name: str) -> int:
        low, high = self.ranges.get(name, (None, None))
        low, high = -(1 << 31) if low is None else low, 1 << 31 if high is None else high
        corners = [x for x in (low, high, 0, 1, 2, 1024, 1 << 20, low + 1, high - 1) if low <= x <= high]
        return choose.choice(corners) if choose.random() < 0.6 else choose.randint(low, high)


class _Executor(Executor):
    """Takes calls that are not looked into as one number that hangs on all that they see, and all else on that."""

    endless_limit = 12

    def __init__(self, world: World, ranges: Mapping[str, t.Interval], splits: bool):
        super().__init__(world, ranges, splits)
        self.facts: list[z3.BoolRef] = []
        self.given = dict(ranges)
        self.order: dict[str, int] = {}

    def within(self, term: z3.ExprRef, interval: t.Interval) -> z3.ExprRef:
        """A number that a callee leaves behind: it has the type of the field, or of the result."""
        low, high = interval
        if low is not None and high is not None and z3.is_int(term):
            self.facts.append(z3.And(term >= low, term <= high))
            self.bounds.assume(term, interval)
        return term

    def unmodelled(self, e: s.Free, path: Path) -> t.Value:
        """What is not modelled is the same where it is that of the same object and no callee has come between."""
        self.order[e.why] = self.order.get(e.why, -1) + 1
        which = self.number(e.index, path) if e.index is not None else self.order[e.why]
        name = f"free!{e.why}"
        self.free[name] = e.why
        sort = z3.BoolSort() if e.ctype == BOOL else z3.IntSort()
        found = z3.Function(name, z3.IntSort(), z3.IntSort(), sort)(t.z3_of(which), t.z3_of(path.heap[SINCE, None]))
        return self.within(found, (e.ctype.low, e.ctype.high))

    def unknown_function(self, name: str, args: list[t.Value], path: Path, ctype: CType | None) -> t.Value:
        inputs = [t.z3_of(a) for a in (*args, *path.heap.values())]
        token = z3.Function(f"{name}!", *(i.sort() for i in inputs), z3.IntSort())(*inputs)

        def made(what: str, sort: z3.SortRef) -> z3.ExprRef:
            return z3.Function(f"{name}!{what}", z3.IntSort(), sort)(token)

        for key, value in list(path.heap.items()):
            term = made(self.world.name(key), t.z3_of(value).sort())
            path.heap[key] = self.within(term, self.given.get(self.world.name(key), (None, None)))
        number = ctype is not None and not ctype.struct
        return self.within(made("return", z3.IntSort()), (ctype.low, ctype.high) if ctype and number else (None, None))


def reached(side: Side, boundary: frozenset[str]) -> list[str]:
    """The programs that a function is made of: itself and its callees, not those of the vocabulary."""
    found, todo = [side.name], [side.name]
    while todo:
        for name in sorted(s.calls(side.programs[todo.pop()].body)):
            if name not in found and name not in boundary and name in side.programs:
                found.append(name)
                todo.append(name)
    return found


def field_types(programs: Mapping[str, s.Program]) -> dict[str, CType]:
    """The C types with which programs read their fields."""
    found: dict[str, CType] = {}
    for program in programs.values():
        for statement in s.statements(program.body):
            for e in s.expressions(statement):
                if isinstance(e, s.Load) and e.ctype is not None:
                    found.setdefault(e.var, e.ctype)
    return found


def _difference(a: Result, b: Result) -> t.Value:
    """The condition under which two runs of the same state differ."""
    faults = [t.or_(*(f.guard for f in r.faults)) for r in (a, b)]
    parts: list[t.Value] = [t.not_(t.equal(faults[0], faults[1]))]
    fine = t.and_(t.not_(faults[0]), t.not_(faults[1]))
    if a.end is not None and b.end is not None:
        for key, value in a.end.heap.items():
            if not t.same(value, b.end.heap[key]):
                parts.append(t.and_(fine, t.not_(t.equal(value, b.end.heap[key]))))
        if (a.value is None) != (b.value is None):
            return True
        if a.value is not None and b.value is not None:
            parts.append(t.and_(fine, t.not_(t.equal(a.value, b.value))))
    elif (a.end is None) != (b.end is None):
        parts.append(fine)
    return t.simplify(t.or_(*parts))


def _shown(values: Mapping[str, int | bool], constants: Mapping[str, z3.ExprRef]) -> str:
    """The input of a difference, as far as it matters."""
    told = [f"{name.removeprefix('arg ')} = {values[name]}" for name in sorted(constants)]
    return ", ".join(told) or "in every state"
