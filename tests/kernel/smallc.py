# SPDX-License-Identifier: GPL-2.0-only
"""Edits of C by program, patches made of them, and two programs run on one input by the plain interpreter."""

from __future__ import annotations

import difflib
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from schedproof.errors import ModelError
from schedproof.kernel.compare import Comparison, Side
from schedproof.lang.interpret import Interpreter, Oracle
from schedproof.lang.world import Key, make_world
from schedproof.model.domains import Domain, Int, Pointer
from schedproof.model.instance import Instance

FAIR = "kernel/sched/fair.c"
HEADER = "kernel/sched/sched.h"


# ------------------------------------------------------------------------------------------------ text
def span(text: str, function: str) -> tuple[int, int]:
    """Where the first definition of a function with a body stands in a file: from its line to behind its brace."""
    for found in re.finditer(rf"^(?:[a-z][^\n;#]*)?\b{function}\([^;{{]*\)\n\{{\n(?!\}})", text, re.MULTILINE):
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


class _Recorder(Interpreter):
    """Does not look into calls of ``outside``: notes what they see, and lets them leave any state that hangs on it."""

    outside: frozenset[str] = frozenset()
    pointers: Mapping[str, Sequence[int]]                      # the values of each variable that is a pointer
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
        choose = random.Random(repr(self.seen[-1]))
        for key, value in self.memory.items():
            left = choose.random() < 0.5 if isinstance(value, bool) else choose.randint(0, 1 << 20)
            self.memory[key] = choose.choice(self.pointers[key[0]]) if key[0] in self.pointers else left
        return choose.randint(0, 3)


def ran(instance: Instance, side: Side, given: Mapping[str, int | bool]) -> Ran:
    """One run on an input of ``Comparison.input``; what it leaves out is 0."""
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
    recorder = _Recorder(world, memory, Oracle())
    recorder.outside = instance.model.vocabulary.outside - {side.name}
    recorder.pointers = {n: [int(c) for c in d.codes()] for n, (_, d) in instance.world.variables.items()
                         if isinstance(d, Pointer)}
    recorder.seen = []
    args = [given.get(f"arg {p}", 0) for p in side.programs[side.name].params]
    try:
        done = recorder.run(side.name, args)
    except ModelError:
        return Ran(fault=True)
    return Ran(False, done.value, done.memory, recorder.seen)


def really_differs(instance: Instance, left: Side, right: Side, found: Comparison) -> bool:
    """Whether the input of a comparison shows a difference on the plain interpreter."""
    one, other = ran(instance, left, found.input), ran(instance, right, found.input)
    return one != other
