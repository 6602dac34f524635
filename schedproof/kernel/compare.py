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
from typing import Any, Literal

import z3

from schedproof.errors import ModelError, NotExecutable
from schedproof.lang import syntax as s
from schedproof.lang import terms as t
from schedproof.lang.ctypes import BOOL, CType
from schedproof.lang.execute import Executor
from schedproof.lang.paths import Heap, Path, Result
from schedproof.lang.world import Key, World, make_world
from schedproof.model.domains import Domain, Int
from schedproof.model.instance import Instance

RLIMIT = 8_000_000         # of Z3's resource units for one question, which do not depend on the machine's load
GROUND = 200_000           # of them for a question in which every input is known
SAMPLES = 200
_LIMITS = (1 << 31, 1 << 32, 1 << 63, 1 << 64)


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
    one, other = ({n: c for n, c in _field_types(side.programs).items() if not c.struct} for side in (left, right))
    for name in sorted(one.keys() & other.keys()):
        if one[name] != other[name]:
            return f"the type of the field behind {name} changes from {one[name]} to {other[name]}"
    return ""


class _Arena:
    """The state on which both sides run."""

    def __init__(self, instance: Instance, left: Side, right: Side, spans: bool):
        self.instance, self.spans, self.narrowed = instance, spans, False
        self.boundary = frozenset(instance.model.vocabulary.callees) - {left.name}
        self.types = _field_types({**left.programs, **right.programs})
        variables: dict[str, tuple[str | None, Domain]] = {}
        self.ranges: dict[str, t.Interval] = {}
        for name, (universe, domain) in instance.world.variables.items():
            variables[name] = (universe, domain if domain.sort == "Bool" else Int())
        for name, constant in instance.scope.constants.items():
            universe = instance.scope.universe_of(constant.per) if constant.per is not None else None
            if constant.c:
                variables[name] = (universe, Int())
        self.variables = variables
        fixed = {n: v for n, v in instance.world.constants.items() if n not in variables}
        self.worlds = [self._world(side, fixed) for side in (left, right)]
        self.heap: Heap = {}
        for name, (_, domain) in variables.items():
            for key in self.worlds[0].keys(name):
                self.heap[key] = self._constant(key, domain)

    def _world(self, side: Side, fixed: Mapping[str, Any]) -> World:
        world = make_world(self.instance.universes, self.variables, self.instance.world.links, fixed, side.programs)
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
        ends = [self._run(world, side, args) for world, side in zip(self.worlds, (left, right), strict=True)]
        for one, other in zip(ends[0].free.values(), ends[1].free.values(), strict=False):
            if one != other:
                return Comparison("unknown", f"what is not modelled differs: {one}; {other}")
        difference = _difference(ends[0], ends[1])
        if difference is False:
            return Comparison("equal")
        constants = t.constants_of([difference])
        free = {**ends[0].free, **ends[1].free}
        used = [why for name, why in free.items() if name in constants]
        asked = t.z3_of(difference)
        limits = self._limits(constants)
        found = self._solve(asked, limits, constants)
        if found == z3.unsat:
            return Comparison("equal")
        if used:
            return Comparison("unknown", "it depends on what is not modelled: " + ", ".join(used))
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
        opaque = _Opaque(self.ranges)
        linear = opaque.of(asked)
        answer, model = _ask([linear, *opaque.facts, *limits])
        if answer == z3.unsat:
            return z3.unsat
        if model is not None:
            values = {n: _value(model.eval(c, model_completion=True)) for n, c in constants.items()}
            if z3.eq(linear, asked) or self._shows(asked, constants, values):
                return values
        met = self._sample(asked, constants, SAMPLES)
        if met is not None:
            return met
        answer, model = _ask([asked, *limits])
        if model is not None:
            return {n: _value(model.eval(c, model_completion=True)) for n, c in constants.items()}
        return answer if answer == z3.unsat else self._sample(asked, constants, 2 * SAMPLES) or z3.unknown

    @staticmethod
    def _shows(asked: z3.BoolRef, constants: Mapping[str, z3.ExprRef], values: Mapping[str, int | bool]) -> bool:
        """Whether ``asked`` holds for an input; what is left are the unknown functions, for which there is a choice."""
        left = z3.simplify(z3.substitute(asked, *((c, t.z3_of(values[n])) for n, c in constants.items())))
        if z3.is_true(left) or z3.is_false(left):
            return bool(z3.is_true(left))
        return bool(_ask([left], GROUND)[0] == z3.sat)

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
            least = 0 if low is None else max(low, 0)
            found[self.worlds[0].name(key)] = False if z3.is_bool(constant) else (
                least if high is None else min(least, high))
        found |= {f"arg {p}": a for p, a in zip(params, args, strict=True) if isinstance(a, int)}
        return found | dict(values)

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
        result = _Executor(world, self.ranges, splits=False).run(side.name, args, self.heap)
        if result.cuts:
            raise NotExecutable("", 0, f"{side.name} is not atomic")
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
        if choose.random() < 0.3 and low <= 0 and high >= 1:         # a truth value, the number of an object or a CPU
            return choose.randint(0, 1)
        corners = [x for x in (low, high, 0, 1, 2, 1024, 1 << 20, low + 1, high - 1) if low <= x <= high]
        return choose.choice(corners) if choose.random() < 0.6 else choose.randint(low, high)


class _Executor(Executor):
    """Takes calls that are not looked into as one number that hangs on all that they see, and all else on that."""

    def unknown_function(self, name: str, args: list[t.Value], path: Path) -> t.Value:
        inputs = [t.z3_of(a) for a in (*args, *path.heap.values())]
        token = z3.Function(f"{name}!", *(i.sort() for i in inputs), z3.IntSort())(*inputs)

        def made(what: str, sort: z3.SortRef) -> z3.ExprRef:
            return z3.Function(f"{name}!{what}", z3.IntSort(), sort)(token)

        for key, value in list(path.heap.items()):
            path.heap[key] = made(self.world.name(key), t.z3_of(value).sort())
        return made("return", z3.IntSort())


def reached(side: Side, boundary: frozenset[str]) -> list[str]:
    """The programs that a function is made of: itself and its callees, not those of the vocabulary."""
    found, todo = [side.name], [side.name]
    while todo:
        for name in sorted(s.calls(side.programs[todo.pop()].body)):
            if name not in found and name not in boundary and name in side.programs:
                found.append(name)
                todo.append(name)
    return found


def _field_types(programs: Mapping[str, s.Program]) -> dict[str, CType]:
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


def _ask(terms: list[z3.BoolRef], limit: int = RLIMIT) -> tuple[z3.CheckSatResult, z3.ModelRef | None]:
    solver = z3.Solver()
    solver.set("rlimit", limit)
    solver.add(*terms)
    answer = solver.check()
    return answer, solver.model() if answer == z3.sat else None


def _value(term: z3.ExprRef) -> int | bool:
    return bool(z3.is_true(term)) if z3.is_bool(term) else int(term.as_long())


class _Opaque:
    """Terms with products, quotients and remainders of unknowns as unknown functions: unsat of them is unsat.

    ``facts`` are what is known of those functions without multiplying.
    """

    def __init__(self, ranges: Mapping[str, t.Interval]):
        self.bounds = t.Bounds(ranges)
        self.facts: list[z3.BoolRef] = []
        self.made: dict[int, tuple[z3.ExprRef, z3.ExprRef]] = {}       # by identity; the term is kept alive
        self.functions = {op: z3.Function(f"{op}!", *[z3.IntSort()] * 3) for op in ("*", "div", "mod")}

    def of(self, term: z3.ExprRef) -> z3.ExprRef:
        """The term in that form."""
        if term.get_id() not in self.made:
            parts = term.children()
            children = [self.of(c) for c in parts]
            kind = term.decl().kind()
            hard = sum(not z3.is_int_value(c) for c in children) > 1
            if kind == z3.Z3_OP_MUL and hard:
                made = self._product(list(zip(parts, children, strict=True)))
            elif kind in (z3.Z3_OP_IDIV, z3.Z3_OP_MOD) and not z3.is_int_value(children[1]):
                made = self._quotient("div" if kind == z3.Z3_OP_IDIV else "mod", *children)
            else:
                same = all(z3.eq(a, b) for a, b in zip(parts, children, strict=True))
                made = term if same else term.decl()(*children)
            self.made[term.get_id()] = (term, made)
        return self.made[term.get_id()][1]

    def _product(self, factors: list[tuple[z3.ExprRef, z3.ExprRef]]) -> z3.ExprRef:
        """Numbers stay outside; the others come in an order of their own, single constants first."""
        number, unknown = 1, []
        for term, made in factors:
            if z3.is_int_value(made):
                number *= made.as_long()
            else:
                unknown.append((bool(term.children()), term.decl().name(), term.get_id(), term, made))
        unknown.sort(key=lambda x: x[:3])
        _, _, _, whole, product = unknown[0]
        for _, _, _, term, made in unknown[1:]:
            product = self._times(product, made, self.bounds.of(whole)[1], self.bounds.of(term)[1])
            whole = whole * term
        return product if number == 1 else number * product

    def _times(self, a: z3.ExprRef, b: z3.ExprRef, *highs: int | None) -> z3.ExprRef:
        times = self.functions["*"]
        m = times(a, b)
        natural = z3.And(a >= 0, b >= 0)
        self.facts += [(m == 0) == z3.Or(a == 0, b == 0), m == times(b, a), z3.Implies(a == 1, m == b),
                       z3.Implies(b == 1, m == a),
                       (m > 0) == z3.Or(z3.And(a > 0, b > 0), z3.And(a < 0, b < 0))]
        for high, other in zip(highs, (b, a), strict=True):
            if high is not None and high > 0:
                self.facts += [z3.Implies(z3.And(natural, other <= (limit - 1) // high), m < limit)
                               for limit in _LIMITS]
        return m

    def _quotient(self, op: str, a: z3.ExprRef, b: z3.ExprRef) -> z3.ExprRef:
        made = self.functions[op](a, b)
        natural = z3.And(a >= 0, b > 0)
        if op == "div":
            self.facts += [z3.Implies(natural, z3.And(made >= 0, made <= a, (made == 0) == (a < b))),
                           z3.Implies(b == 1, made == a)]
        else:
            self.facts += [z3.Implies(b > 0, z3.And(made >= 0, made < b)),
                           z3.Implies(z3.And(natural, a < b), made == a)]
        return made


def _shown(values: Mapping[str, int | bool], constants: Mapping[str, z3.ExprRef]) -> str:
    """The input of a difference, as far as it matters."""
    told = [f"{name.removeprefix('arg ')} = {values[name]}" for name in sorted(constants)]
    return ", ".join(told) or "in every state"
