# SPDX-License-Identifier: GPL-2.0-only
"""Edits of C by program, patches made of them, and two programs run on one input by the plain interpreter."""

from __future__ import annotations

import difflib
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from schedproof.errors import ModelError
from schedproof.kernel import Tree
from schedproof.kernel.compare import Comparison, Side, field_types
from schedproof.kernel.functions import Read, read_function
from schedproof.lang import syntax as s
from schedproof.lang.ctypes import CType
from schedproof.lang.interpret import Interpreter, Oracle
from schedproof.lang.world import Key, World, make_world
from schedproof.model.domains import Domain, Int, Pointer
from schedproof.model.instance import Instance
from schedproof.model.model import Model

FAIR = "kernel/sched/fair.c"
HEADER = "kernel/sched/sched.h"


# ------------------------------------------------------------------------------------------------ text
def span(text: str, function: str) -> tuple[int, int]:
    """Where the first definition of a function with a body stands in a file: from its line to behind its brace."""
    header = rf"^(?:[a-z][^\n;#]*(?:\b|\n))?{function}\([^;{{]*\)\n\{{\n(?!\}})"
    for found in re.finditer(header, text, re.MULTILINE):
        return found.start(), text.index("\n}\n", found.end()) + 3
    raise AssertionError(f"no {function}")


def body_of(text: str, function: str) -> str:
    """The text of a function."""
    begin, end = span(text, function)
    return text[begin:end]


def edited(text: str, function: str, *steps: tuple[str, str]) -> str:
    """A file with a function's text changed by regular expressions, each of which has to match exactly once."""
    begin, end = span(text, function)
    here = text[begin:end]
    for pattern, replacement in steps:
        here, count = re.subn(pattern, replacement, here, flags=re.MULTILINE)
        assert count == 1, f"{pattern} stands {count} times in {function}"
    return text[:begin] + here + text[end:]


def diff(old: str, new: str, file: str = FAIR) -> str:
    """A patch from one text of a file to another."""
    assert old != new
    return "".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), f"a/{file}", f"b/{file}"))


# ------------------------------------------------------------------------------------------------ runs
@dataclass
class Ran:
    """What can be told from outside of one run: the fault or the value, the state behind it, the calls in order."""

    fault: bool = False
    value: int | bool | None = None
    memory: Mapping[Key, int | bool] = field(default_factory=dict)
    calls: list[tuple[object, ...]] = field(default_factory=list)


CALLS = 2000


class _Recorder(Interpreter):
    """Does not look into calls of ``outside``: notes what they see, and lets them leave any state that hangs on it."""

    outside: frozenset[str] = frozenset()
    pointers: Mapping[str, Sequence[int]] = {}       # which objects a variable can point to, NULL included
    seed: int | None = None                          # small values in place of any, other ones for each seed
    types: Mapping[str, CType] = {}
    seen: list[tuple[object, ...]]

    def call(self, name: str, args: Sequence[int | bool], resume: tuple[tuple[str, int], ...] = (),
             frames: Sequence[Mapping[str, int | bool]] = ()) -> int | bool | None:
        if name not in self.outside:
            return super().call(name, args, resume, frames)
        program = self.world.programs.get(name)                 # none where the model has no method for it
        types = program.types if program is not None and program.types else (None,) * len(args)
        given = tuple(int(a) if t is None else t.wrap(int(a)) for a, t in zip(args, types, strict=True))
        state = tuple(sorted(((n, -1 if i is None else i), int(v)) for (n, i), v in self.memory.items()))
        self.seen.append((name, given, state))
        if len(self.seen) > CALLS:                              # of a loop that only a callee's doing would end
            raise ModelError(f"more than {CALLS} calls of what is outside")
        choose = random.Random(repr(self.seen[-1]) + ("" if self.seed is None else str(self.seed)))
        if self.seed is not None:
            for key, value in self.memory.items():
                low, high = (t.low, t.high) if (t := self.types.get(key[0])) and not t.struct else (-1, 1)
                small = [x for x in (0, 1, 1, 2, 3, high) if low <= x <= high]
                zero = choose.random() < self.seed % 10 / 10
                self.memory[key] = not zero if isinstance(value, bool) else 0 if zero else choose.choice(small)
            return choose.randint(0, 1)
        for key, value in self.memory.items():
            left = choose.random() < 0.5 if isinstance(value, bool) else choose.randint(0, 1 << 20)
            self.memory[key] = choose.choice(self.pointers[key[0]]) if key[0] in self.pointers else left
        return choose.randint(0, 3)


def exact(instance: Instance, side: Side, given: Mapping[str, int | bool]) -> tuple[World, dict[Key, int | bool]]:
    """A model's state with exact C values: variables such as ``load[qA]`` as given, the others 0."""
    variables: dict[str, tuple[str | None, Domain]] = {
        n: (u, d if d.sort == "Bool" else Int()) for n, (u, d) in instance.world.variables.items()}
    for name, constant in instance.scope.constants.items():
        if constant.c:
            variables[name] = (None if constant.per is None else instance.scope.universe_of(constant.per), Int())
    fixed = {n: v for n, v in instance.world.constants.items() if n not in variables}
    world = make_world(instance.universes, variables, instance.world.links, fixed, side.programs)
    memory: dict[Key, int | bool] = {}
    for base, (_, domain) in variables.items():
        for key in world.keys(base):
            value = given.get(world.name(key), 0)
            memory[key] = bool(value) if domain.sort == "Bool" else int(value)
    return world, memory


def ran(instance: Instance, side: Side, given: Mapping[str, int | bool], seed: int | None = None,
        types: Mapping[str, CType] | None = None) -> Ran:
    """One run on an input of ``Comparison.input``; what it leaves out is 0."""
    world, memory = exact(instance, side, given)
    recorder = _Recorder(world, memory, Oracle())
    recorder.pointers = {n: [int(c) for c in d.codes()] for n, (_, d) in instance.world.variables.items()
                         if isinstance(d, Pointer)}
    recorder.outside = instance.model.vocabulary.boundary - {side.name}
    recorder.seed, recorder.types = seed, types or {}
    recorder.seen = []
    args = [given.get(f"arg {p}", 0) for p in side.programs[side.name].params]
    try:
        done = recorder.run(side.name, args)
    except ModelError:
        return Ran(fault=True)
    return Ran(False, done.value, done.memory, recorder.seen)


def really_differs(instance: Instance, left: Side, right: Side, found: Comparison, seeds: int = 6000) -> bool:
    """Whether the input of a comparison shows a difference on the plain interpreter.

    What callees outside the model leave behind may be a part of it, and Z3 is free to choose that: both sides meet
    the same callees, one kind of them for each seed. Behind a loop that has to run to its end, less than one kind in a
    hundred does what is needed: a few hundred would miss the difference now and then.
    """
    if ran(instance, left, found.input) != ran(instance, right, found.input):
        return True
    types = field_types(left.programs) | field_types(right.programs)
    return any(ran(instance, left, found.input, seed, types) != ran(instance, right, found.input, seed, types)
               for seed in range(seeds))


def played(instance: Instance, side: Side, given: Mapping[str, int | bool | str],
           args: Sequence[int | str]) -> tuple[int | bool | None, dict[str, int | bool]]:
    """The value of one run on exact values, the model's methods included, and what it leaves behind.

    Objects go by their names. Constants of the model that C fields stand for have their value unless given.
    """
    number = {o: i for names in instance.universes.values() for i, o in enumerate(names)} | {"NULL": s.NULL_CODE}
    known: dict[str, int | bool] = {}
    for name, constant in instance.scope.constants.items():
        value = instance.world.constants[name]
        universe = None if constant.per is None else instance.universes[instance.scope.universe_of(constant.per)]
        for i, item in enumerate(value if isinstance(value, tuple) else (value,)):
            known[name if universe is None else f"{name}[{universe[i]}]"] = item
    known |= {k: number[v] if isinstance(v, str) else v for k, v in given.items()}
    world, memory = exact(instance, side, known)
    unknown = set(given) - {world.name(k) for k in memory}
    assert not unknown, f"no variables: {unknown}"
    done = Interpreter(world, memory, Oracle()).run(side.name, [number[a] if isinstance(a, str) else a for a in args])
    return done.value, {world.name(k): v for k, v in done.memory.items()}


# ------------------------------------------------------------------------------------------------ programs
def loads(program: s.Program) -> set[str]:
    """The variables that a program itself reads."""
    return {e.var for x in s.statements(program.body) for e in s.expressions(x) if isinstance(e, s.Load)}


def stores(program: s.Program) -> set[str]:
    """The variables that a program itself writes."""
    return {x.var for x in s.statements(program.body) if isinstance(x, s.Store)}


def frees(program: s.Program) -> set[str]:
    """What a program takes for any value."""
    return {e.why for x in s.statements(program.body) for e in s.expressions(x) if isinstance(e, s.Free)}


# ------------------------------------------------------------------------------------------------ answers
_READ: dict[tuple[Tree, str, str], Read] = {}


def read_whole(tree: Tree, model: type[Model], function: str) -> Read:
    """A function of a real tree, which must be readable."""
    key = (tree, model.__qualname__, function)
    if key not in _READ:
        _READ[key] = read_function(tree, function, model.kernel_functions()[function], model)
    assert _READ[key].status == "read", _READ[key].reason
    return _READ[key]


def side_of(tree: Tree, model: type[Model], function: str) -> Side:
    """One side of a comparison: a function of a tree among the model's own methods."""
    return Side(function, {**model.programs, **read_whole(tree, model, function).programs})


def sides(tree: Tree, model: type[Model], function: str, *steps: tuple[str, str]) -> tuple[Side, Side]:
    """A function of a tree, and the same with its text edited."""
    file = model.kernel_functions()[function]
    text = tree.text(file)
    after = edited(text, function, *steps)
    assert after != text
    read = read_function(tree.with_files({file: after}), function, file, model)
    assert read.status == "read", read.reason
    return side_of(tree, model, function), Side(function, {**model.programs, **read.programs})
