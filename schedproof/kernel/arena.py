# SPDX-License-Identifier: GPL-2.0-only
"""What two functions are compared on: one and the same arbitrary state of exact C values, and what Z3 is asked."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import z3

from schedproof.errors import NotExecutable
from schedproof.kernel.solving import Opaque, ask, value_of
from schedproof.lang import syntax as s
from schedproof.lang import terms as t
from schedproof.lang.ctypes import BOOL, CType
from schedproof.lang.execute import Executor
from schedproof.lang.normal import cutting
from schedproof.lang.paths import Heap, Path
from schedproof.lang.rewrite import with_reasons, without_places
from schedproof.lang.world import Key, World, make_world
from schedproof.model.domains import Domain, Int
from schedproof.model.grain import grained
from schedproof.model.instance import Instance

GROUND = 200_000           # of Z3's resource units, for a question in which every input is known
SAMPLES = 200
LOOKS = 400_000            # nodes of a question that are gone through again to make its input easier to read
RANGES = "the declared ranges of the fields"
REST = "everything else"   # the variable for all that neither side looks at: only a callee changes it
RESULT = "result"          # the local that holds what a callee that blocked has returned


Call = tuple[str, tuple[int, ...]]       # a callee, its arguments and the state that it sees


@dataclass(frozen=True)
class Step:
    """One atomic step of a run that shows a difference: where the two sides go on, and from what.

    ``input`` is the state, and what the callee returned in which the last step ended; ``answers`` is what callees
    without effect answer.
    """

    sites: tuple[str, str]
    input: Mapping[str, int | bool]
    answers: Mapping[Call, int | bool]


@dataclass(frozen=True)
class Comparison:
    """``equal`` is proved; ``differs`` comes with an input that shows it; ``unknown`` with the reason.

    ``within`` says for which values it was proved, where that is less than all values of the C types. ``input`` is
    the whole input of a difference: variables such as ``load[qA]``, arguments such as ``arg se``. ``steps`` lead to a
    difference of functions that are not atomic; in the last one they differ.
    """

    answer: Literal["equal", "differs", "unknown"]
    detail: str = ""
    within: str = ""
    input: Mapping[str, int | bool] = field(default_factory=dict)
    steps: Sequence[Step] = ()


@dataclass(frozen=True)
class Side:
    """One of the two functions: its name, and the programs that it and its callees are."""

    name: str
    programs: Mapping[str, s.Program]


class Arena:
    """The state on which both sides run."""

    def __init__(self, instance: Instance, left: Side, right: Side, spans: bool):
        self.instance, self.spans, self.narrowed = instance, spans, False
        self.boundary = instance.model.vocabulary.boundary - {left.name}
        self.types = field_types(left.programs) | field_types(right.programs)
        programs = [grained(p, instance.model) for p in (left.programs, _apart(left, right, self.boundary))]
        cuts = frozenset().union(*(cutting(p) for p in programs))
        self.blocking = self.boundary & cuts             # callees in which a step ends
        self.pure = frozenset(n for n in self.boundary - cuts if all(_without_effect(n, p) for p in programs))
        shared = {n: v for n, v in instance.world.variables.items() if n not in instance.threads.variables}
        touched = _touched(left, self.boundary) | _touched(right, self.boundary)
        outside = {c for side in (left, right) for n in reached(side, self.boundary)
                   for c in s.calls(side.programs[n].body)} & self.boundary
        if left.name not in cuts or outside <= self.blocking | self.pure:
            # What no part of either function mentions is one unknown: which calls were made is seen in it.
            shared = {n: v for n, v in shared.items() if n in touched}
        variables: dict[str, tuple[str | None, Domain]] = {}
        self.ranges: dict[str, t.Interval] = {}
        for name, (universe, domain) in shared.items():
            variables[name] = (universe, domain if domain.sort == "Bool" else Int())
        for name, constant in instance.scope.constants.items():
            universe = instance.scope.universe_of(constant.per) if constant.per is not None else None
            if constant.c and not constant.fixed and name in touched:
                variables[name] = (universe, Int())
        variables[REST] = (None, Int())
        self.variables = variables
        fixed = self._constants = {n: v for n, v in instance.world.constants.items() if n not in variables}
        self._shared = frozenset(shared)
        self.worlds = [self.world(p) for p in programs]
        self.stepped = any(left.name in world.cutting for world in self.worlds)
        self.heap: Heap = {}
        for name, (_, domain) in variables.items():
            for key in self.worlds[0].keys(name):
                self.heap[key] = self._constant(key, domain)
        self.fixed = ", ".join(f"{n} = {fixed[n]}" for n, c in instance.scope.constants.items()
                               if c.fixed and n in touched)

    def world(self, programs: Mapping[str, s.Program]) -> World:
        """A side's programs. A callee that blocks is nothing but the cut: what it does is the other step's state."""
        closed = {n: _blocked(programs[n]) for n in self.blocking}
        world = make_world(self.instance.universes, self.variables, self.instance.world.links, self._constants,
                           {**programs, **closed}, self._shared)
        return replace(world, boundary=self.boundary - self.blocking)

    def _constant(self, key: Key, domain: Domain) -> z3.ExprRef:
        name = self.worlds[0].name(key)
        if domain.sort == "Bool":
            return z3.Bool(name)
        self.ranges[name] = self._range(key[0])
        return z3.Int(name)

    def _range(self, base: str) -> t.Interval:
        """The values that a field can have: its C type's, or its span."""
        scope, ctype = self.instance.scope, self.types.get(base)
        known = self.instance.world.variables.get(base)
        declared = known[1] if known is not None else scope.constants.get(base)
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
            ctypes = [p.types[i] for p in (b, a) if i < len(p.types) and p.types[i] is not None]
            options.append(self._options(param, _widest([c for c in ctypes if c is not None])))
        for chosen in itertools.product(*options):
            yield [v for v, _ in chosen], ", ".join(text for _, text in chosen)

    def _options(self, param: str, ctype: CType | None) -> list[tuple[t.Value, str]]:
        if ctype is not None and ctype.struct:
            found = self.objects(ctype)
            if found is not None:
                return [(i, f"{param} = {o}") for i, o in enumerate(found)]
            raise NotExecutable("", 0, f"an argument of the type {ctype}, of which the model has no object")
        if ctype == BOOL:
            return [(z3.Bool(f"arg {param}"), f"any {param}")]
        name = f"arg {param}"
        self.ranges[name] = (None, None) if ctype is None else (ctype.low, ctype.high)
        return [(z3.Int(name), f"any {param}")]

    def objects(self, ctype: CType) -> tuple[str, ...] | None:
        """The objects that a pointer of a C type may point to."""
        names = [n for n, thing in self.instance.scope.objects.items() if thing.ctype == ctype.struct]
        if len(names) > 1:
            raise NotExecutable("", 0, f"a pointer of the type {ctype}: its objects are in {' and '.join(names)}")
        return self.instance.universes[names[0]] if names else None

    def solve(self, asked: z3.BoolRef, limits: list[z3.BoolRef], constants: Mapping[str, z3.ExprRef]) -> Any:
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
        met = self._sample(asked, constants, SAMPLES)
        if met is not None:
            return met
        answer, model = ask([asked, *limits])
        if model is not None:
            return {n: value_of(model.eval(c, model_completion=True)) for n, c in constants.items()}
        return answer if answer == z3.unsat else self._sample(asked, constants, 2 * SAMPLES) or z3.unknown

    def never(self, asked: t.Value) -> bool:
        """Whether a condition is shown to hold for no input."""
        asked = t.simplify(asked)
        if isinstance(asked, bool):
            return not asked
        limits, opaque = self.limits(t.constants_of([asked])), Opaque(self.ranges)
        linear = opaque.of(asked)
        if ask([linear, *opaque.facts, *limits])[0] == z3.unsat:
            return True
        return not z3.eq(linear, asked) and ask([asked, *limits])[0] == z3.unsat

    @staticmethod
    def _shows(asked: z3.BoolRef, constants: Mapping[str, z3.ExprRef], values: Mapping[str, int | bool]) -> bool:
        """Whether ``asked`` holds for an input; what is left are the unknown functions, for which there is a choice."""
        left = z3.simplify(z3.substitute(asked, *((c, t.z3_of(values[n])) for n, c in constants.items())))
        if z3.is_true(left) or z3.is_false(left):
            return bool(z3.is_true(left))
        return bool(ask([left], GROUND)[0] == z3.sat)

    def plain(self, asked: z3.BoolRef, constants: Mapping[str, z3.ExprRef],
               values: dict[str, int | bool]) -> dict[str, int | bool]:
        """The input with numbers that are easier to read, as far as it goes on to show the difference.

        It is as good as before where the question is so large that there are not enough tries for all of them.
        """
        tries = LOOKS // t.nodes(asked)
        for name, value in values.items():
            low, high = self.ranges.get(name, (None, None))
            for small in sorted({0, 1, 2, low or 0}):
                fits = (low is None or low <= small) and (high is None or small <= high)
                if isinstance(value, bool) or abs(small) >= abs(value) or not fits:
                    continue
                if tries <= 0:
                    return values
                tries -= 1
                simpler = {**values, name: small}
                if self._shows(asked, constants, simpler):
                    values = simpler
                    break
        return values

    def whole(self, values: Mapping[str, int | bool], args: list[t.Value], params: Sequence[str]) -> dict[str, Any]:
        """An input with the values of everything, also of what makes no difference."""
        found: dict[str, int | bool] = {}
        for key, constant in self.heap.items():
            if key[0] == REST:
                continue
            low, high = self.ranges.get(self.worlds[0].name(key), (None, None))
            least = 0 if low is None else max(low, 0)
            found[self.worlds[0].name(key)] = False if z3.is_bool(constant) else (
                least if high is None else min(least, high))
        found |= {f"arg {p}": a for p, a in zip(params, args, strict=True) if isinstance(a, int)}
        return found | {name: value for name, value in values.items() if name != REST}

    def seen(self, constants: Mapping[str, z3.ExprRef], told: str, *sides: Side) -> dict[str, z3.ExprRef]:
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
        read = {v for side in sides for v in _touched(side, self.boundary, False)}
        return {n: c for n, c in constants.items() if n.partition("[")[0] in read or n.startswith("arg ")}

    def limits(self, constants: Mapping[str, z3.ExprRef]) -> list[z3.BoolRef]:
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
        if choose.random() < 0.3 and low <= 0 and high >= 1:         # a truth value, the number of an object or a CPU
            return choose.randint(0, 1)
        corners = [x for x in (low, high, 0, 1, 2, 1024, 1 << 20, low + 1, high - 1) if low <= x <= high]
        return choose.choice(corners) if choose.random() < 0.6 else choose.randint(low, high)


class Outside(Executor):
    """Takes calls that are not looked into as one number that hangs on all that they see, and all else on that.

    What they leave in a field and what they return are values that the field and the result can have.
    """

    endless_limit = 12

    def __init__(self, world: World, ranges: Mapping[str, t.Interval], splits: bool = False):
        super().__init__(world, ranges, splits)
        self.order: dict[str, int] = {}

    def within(self, term: z3.ExprRef, interval: t.Interval) -> t.Value:
        """An unknown number as one of an interval."""
        low, high = interval
        if low is None or high is None or not z3.is_int(term):
            return term
        return low + term % (high - low + 1)

    def unmodelled(self, e: s.Free, path: Path) -> t.Value:
        """What is not modelled is the same where it is that of the same object and no callee has come between."""
        self.order[e.why] = self.order.get(e.why, -1) + 1
        which = self.number(e.index, path) if e.index is not None else self.order[e.why]
        name = f"free!{e.why}"
        self.free[name] = e.why
        sort = z3.BoolSort() if e.ctype == BOOL else z3.IntSort()
        found = z3.Function(name, z3.IntSort(), z3.IntSort(), sort)(t.z3_of(which), t.z3_of(path.heap[REST, None]))
        return self.within(found, (e.ctype.low, e.ctype.high))

    def unknown_function(self, name: str, args: list[t.Value], path: Path, ctype: CType | None) -> t.Value:
        inputs = [t.z3_of(a) for a in (*args, *path.heap.values())]
        token = z3.Function(f"{name}!", *(i.sort() for i in inputs), z3.IntSort())(*inputs)

        def made(what: str, sort: z3.SortRef) -> z3.ExprRef:
            return z3.Function(f"{name}!{what}", z3.IntSort(), sort)(token)

        for key, value in list(path.heap.items()):
            left = made(self.world.name(key), t.z3_of(value).sort())
            path.heap[key] = self.within(left, self.bounds.ranges.get(self.world.name(key), (None, None)))
        number = ctype is not None and not ctype.struct
        return self.within(made("return", z3.IntSort()), (ctype.low, ctype.high) if ctype and number else (None, None))


def _widest(ctypes: Sequence[CType]) -> CType | None:
    """A type that has all values of some types, for an argument that each of them is given after conversion."""
    if not ctypes or any(c.struct for c in ctypes):
        return ctypes[0] if ctypes else None
    known = [c for c in ctypes if all(c.low <= o.low and o.high <= c.high for o in ctypes)]
    return known[0] if known else CType("any", 2 * max(c.bits for c in ctypes), True)


def _apart(left: Side, right: Side, boundary: frozenset[str]) -> Mapping[str, s.Program]:
    """The right side's programs, in which an ignored field that was written has a value of that side alone.

    What was written is not kept, so such a value is one and the same on both sides only where all of their text is.
    """
    sides = [{n: side.programs[n] for n in reached(side, boundary)} for side in (left, right)]
    written = {n: frozenset(p.dropped) for both in sides for n, p in both.items() if p.dropped}
    if not written or _text(left, sides[0]) == _text(right, sides[1]):
        return right.programs
    loops = {n for n, p in sides[1].items() if any(isinstance(x, s.While | s.For) for x in s.statements(p.body))}
    found = dict(right.programs)
    for name, program in sides[1].items():
        before = frozenset().union(*(f for n, f in written.items() if n != name or name in loops), frozenset())
        found[name] = with_reasons(program, lambda why, before=before: f"{why}, behind a write"  # type: ignore[misc]
                                   if _after(why, before) else why)
    return found


def _after(why: str, written: frozenset[str]) -> bool:
    """Whether what is not modelled may have been written before, by the function itself or by one of ``written``."""
    path, _, owner = why.partition(" of ")
    above = (path[:i] for i in range(1, len(path) + 1) if path[i:i + 1] in ("", "."))
    return why.endswith(" writes") or any(f"{part} of {owner}" in written for part in above)


def _text(side: Side, programs: Mapping[str, s.Program]) -> list[tuple[bool, s.Program]]:
    return [(n == side.name, without_places(p)) for n, p in sorted(programs.items())]


def _blocked(program: s.Program) -> s.Program:
    """In place of a callee that blocks: a cut, behind which the caller gets the local ``RESULT``."""
    body = (s.Cut(None, program.loc), s.Return(s.Local(RESULT, program.loc), program.loc))
    return s.Program(program.name, program.params, body, program.loc, "environment")


def _without_effect(name: str, programs: Mapping[str, s.Program]) -> bool:
    """Whether a program changes nothing and decides nothing, nor do its callees."""
    body = programs[name].body if name in programs else ()
    acts = any(isinstance(x, s.Store | s.Cut | s.Require) or any(isinstance(e, s.Choose) for e in s.expressions(x))
               for x in s.statements(body))
    return name in programs and not acts and all(_without_effect(n, programs) for n in s.calls(body) - {name})


def _touched(side: Side, boundary: frozenset[str], writes: bool = True) -> frozenset[str]:
    """The variables and constants that a function and its callees read, and those that they write."""
    found: set[str] = set()
    for name in reached(side, boundary):
        for x in s.statements(side.programs[name].body):
            found |= {e.var for e in s.expressions(x) if isinstance(e, s.Load)}
            found |= {x.var} if writes and isinstance(x, s.Store) else set()
    return frozenset(found)


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


def shown(values: Mapping[str, int | bool], constants: Mapping[str, z3.ExprRef]) -> str:
    """The input of a difference, as far as it matters."""
    told = [f"{name.removeprefix('arg ')} = {values[name]}" for name in sorted(constants)]
    return ", ".join(told) or "in every state"
