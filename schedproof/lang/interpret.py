# SPDX-License-Identifier: GPL-2.0-only
"""The plain interpreter: the same statements on Python integers.

It shares nothing with the symbolic executor but the syntax, and uses no solver. It serves replay and the
reference engine. What the adversary decides comes from an *oracle*: a list of decisions, one for each ``choose``
met, that grows while a run asks for more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from schedproof.errors import ModelError
from schedproof.lang import syntax as s
from schedproof.lang.ctypes import CType, shift_limit
from schedproof.lang.terms import c_divide, c_remainder
from schedproof.lang.world import Key, World, make_world

LOOP_LIMIT = 10_000

Memory = dict[Key, int | bool]


class Blocked(Exception):
    """A ``require`` or the condition of a cut does not hold: the action cannot happen."""


class _CutHere(Exception):
    def __init__(self, site: tuple[tuple[str, int], ...], frames: tuple[dict[str, int | bool], ...]):
        self.site, self.frames = site, frames


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _Return(Exception):
    def __init__(self, value: int | bool | None):
        self.value = value


@dataclass
class Done:
    """One run: the state behind it, where it was cut (empty at the end), the frames saved there, the calls."""

    memory: Memory
    value: int | bool | None
    site: tuple[tuple[str, int], ...] = ()
    frames: tuple[dict[str, int | bool], ...] = ()
    calls: tuple[tuple[str, int], ...] = ()          # (program, depth), in order
    labels: tuple[str, ...] = ()                     # what the oracle decided


@dataclass
class Oracle:
    """Decisions by number; ``sizes`` notes how many options each had."""

    decisions: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def decide(self, options: int) -> int:
        if len(self.sizes) == len(self.decisions):
            self.decisions.append(0)
        self.sizes.append(options)
        return self.decisions[len(self.sizes) - 1]

    def following(self) -> Oracle | None:
        """The next sequence of decisions in order, or None behind the last."""
        taken = self.decisions[:len(self.sizes)]
        while taken and taken[-1] == self.sizes[len(taken) - 1] - 1:
            taken.pop()
        if not taken:
            return None
        return Oracle([*taken[:-1], taken[-1] + 1])


class Interpreter:
    def __init__(self, world: World, memory: Mapping[Key, int | bool], oracle: Oracle):
        self.world, self.memory, self.oracle = world, dict(memory), oracle
        self.calls: list[tuple[str, int]] = []
        self.labels: list[str] = []
        self.written: dict[Key, s.Loc] = {}
        self.stack: list[tuple[str, int, dict[str, int | bool]]] = []

    def run(self, name: str, args: Sequence[int | bool], resume: tuple[tuple[str, int], ...] = (),
            frames: Sequence[Mapping[str, int | bool]] = ()) -> Done:
        """Run a program from its beginning or from a cut. Raises Blocked when it cannot happen."""
        try:
            value = self.call(name, args, resume, frames)
        except _CutHere as cut:
            return Done(self.memory, None, cut.site, cut.frames, tuple(self.calls), tuple(self.labels))
        return Done(self.memory, value, (), (), tuple(self.calls), tuple(self.labels))

    def check_domains(self) -> None:
        """Raise ModelError when the step has left a variable outside its domain."""
        for key, loc in self.written.items():
            codes = self.world.variables[key[0]][1].codes()
            if codes is not None and self.memory[key] not in codes:
                raise ModelError(f"{self.world.name(key)} is set to {self.memory[key]}, outside its domain", loc.file,
                                 loc.line, "widen the domain, or find out how it gets there")

    def call(self, name: str, args: Sequence[int | bool], resume: tuple[tuple[str, int], ...] = (),
             frames: Sequence[Mapping[str, int | bool]] = ()) -> int | bool | None:
        program = self.world.programs[name]
        self.calls.append((name, self._depth))
        env: dict[str, int | bool]
        if resume:
            env = dict(frames[0])
        else:
            env = {}
            for i, (param, value) in enumerate(zip(program.params, args, strict=True)):
                ctype = program.types[i] if i < len(program.types) else None
                env[param] = _wrap(value, ctype)
        self._depth += 1
        try:
            self.block(program, program.body, env, resume, frames)
            result = None
        except _Return as returned:
            result = returned.value
        finally:
            self._depth -= 1
        return result if result is None else _wrap(result, program.result)

    _depth = 0

    # ---------------------------------------------------------------------------------------- statements
    def contains(self, x: s.Stmt, ordinal: int) -> bool:
        return (self.world.sites.get(id(x)) == ordinal
                or any(self.contains(y, ordinal) for block in s.blocks(x) for y in block))

    def block(self, program: s.Program, body: tuple[s.Stmt, ...], env: dict[str, int | bool],
              resume: tuple[tuple[str, int], ...], frames: Sequence[Mapping[str, int | bool]]) -> None:
        start = 0
        if resume:
            start = next(i for i, x in enumerate(body) if self.contains(x, resume[0][1]))
        for i, x in enumerate(body[start:]):
            self.statement(program, x, env, resume if i == 0 else (), frames)

    def statement(self, program: s.Program, x: s.Stmt, env: dict[str, int | bool],
                  resume: tuple[tuple[str, int], ...], frames: Sequence[Mapping[str, int | bool]]) -> None:
        match x:
            case s.Assign() | s.Do():
                value = self.value_of(program, x, env, resume, frames)
                if isinstance(x, s.Assign):
                    env[x.name] = self.need(value, x.loc)
            case s.Store():
                self.store(x, env)
            case s.If():
                if resume:
                    inside = x.then if any(self.contains(y, resume[0][1]) for y in x.then) else x.orelse
                else:
                    inside = x.then if self.eval(x.test, env) else x.orelse
                self.block(program, inside, env, resume, frames)
            case s.While():
                self.while_(program, x, env, resume, frames)
            case s.For():
                self.for_(program, x, env)
            case s.Break():
                raise _Break
            case s.Continue():
                raise _Continue
            case s.Return():
                raise _Return(self.eval(x.value, env) if x.value is not None else None)
            case s.Require():
                if not self.eval(x.test, env):
                    raise Blocked
            case s.Cut():
                if not resume:
                    here = (program.name, self.world.sites[id(x)])
                    raise _CutHere((*((n, o) for n, o, _ in self.stack), here),
                                   (*(e for _, _, e in self.stack), env))
                if x.until is not None and not self.eval(x.until, env):
                    raise Blocked

    def value_of(self, program: s.Program, x: s.Assign | s.Do, env: dict[str, int | bool],
                 resume: tuple[tuple[str, int], ...], frames: Sequence[Mapping[str, int | bool]],
                 ) -> int | bool | None:
        e = x.value
        if not (isinstance(e, s.Call) and e.name in self.world.cutting):
            return self.eval_any(e, env)
        args = [] if resume else [self.eval(a, env) for a in e.args]
        self.stack.append((program.name, self.world.sites[id(x)], env))
        value = self.call(e.name, args, resume[1:], frames[1:])
        self.stack.pop()
        return value

    def store(self, x: s.Store, env: dict[str, int | bool]) -> None:
        index = None if x.index is None else int(self.eval(x.index, env))
        value = self.eval(x.value, env)
        key = (x.var, index)
        if key not in self.memory:
            raise ModelError(f"`{x.var}` of a NULL pointer", x.loc.file, x.loc.line)
        domain = self.world.variables[x.var][1]
        self.memory[key] = bool(value) if domain.sort == "Bool" else int(value)
        self.written[key] = x.loc

    def while_(self, program: s.Program, x: s.While, env: dict[str, int | bool],
               resume: tuple[tuple[str, int], ...], frames: Sequence[Mapping[str, int | bool]]) -> None:
        inside = bool(resume)
        in_step = inside and any(self.contains(y, resume[0][1]) for y in x.step)
        for number in range(LOOP_LIMIT):
            if not inside and not (x.test_last and number == 0) and not self.eval(x.test, env):
                return
            try:
                if not in_step:
                    with contextlib.suppress(_Continue):
                        self.block(program, x.body, env, resume if inside else (), frames)
                self.block(program, x.step, env, resume if in_step else (), frames)
            except _Break:
                return
            inside = in_step = False
        raise ModelError(f"a loop goes on for more than {LOOP_LIMIT} rounds in one step", x.loc.file, x.loc.line)

    def for_(self, program: s.Program, x: s.For, env: dict[str, int | bool]) -> None:
        size = len(self.world.universes[x.universe])
        after = -1 if x.after is None else int(self.eval(x.after, env))
        for k in range(1, size + 1):
            env[x.name] = (after + k) % size
            try:
                self.block(program, x.body, env, (), ())
            except _Continue:
                continue
            except _Break:
                return

    # --------------------------------------------------------------------------------------- expressions
    def need(self, value: int | bool | None, loc: s.Loc) -> int | bool:
        if value is None:
            raise ModelError("a call that returns no value is used as one", loc.file, loc.line)
        return value

    def eval(self, e: s.Expr, env: dict[str, int | bool]) -> int | bool:
        return self.need(self.eval_any(e, env), e.loc)

    def eval_any(self, e: s.Expr, env: dict[str, int | bool]) -> int | bool | None:
        match e:
            case s.Const():
                return e.value
            case s.Local():
                if e.name not in env:
                    raise ModelError(f"`{e.name}` has no value here", e.loc.file, e.loc.line)
                return env[e.name]
            case s.Load():
                return self.load(e, env)
            case s.Unary(op="not"):
                return not self.eval(e.operand, env)
            case s.Unary():
                value = int(self.eval(e.operand, env))
                return _wrap(-value if e.op == "-" else ~value, e.ctype)
            case s.Binary(op="and"):
                return bool(self.eval(e.left, env)) and bool(self.eval(e.right, env))
            case s.Binary(op="or"):
                return bool(self.eval(e.left, env)) or bool(self.eval(e.right, env))
            case s.Binary():
                return self.binary(e, env)
            case s.Cond():
                chosen = self.eval_any(e.then if self.eval(e.test, env) else e.other, env)
                return chosen if chosen is None else _wrap(chosen, e.ctype)
            case s.Cast():
                return _wrap(self.eval(e.operand, env), e.ctype)
            case s.Call():
                return self.call(e.name, [self.eval(a, env) for a in e.args])
            case s.Choose():
                return self.choose(e, env)
            case s.Free():
                raise ModelError(f"the run depends on a value that is not modelled: {e.why}", e.loc.file, e.loc.line)

    def load(self, e: s.Load, env: dict[str, int | bool]) -> int | bool:
        index = None if e.index is None else int(self.eval(e.index, env))
        if e.var in self.world.variables:
            if (e.var, index) not in self.memory:
                raise ModelError(f"`{e.var}` of a NULL pointer", e.loc.file, e.loc.line)
            return self.memory[e.var, index]
        fixed = self.world.links.get(e.var, self.world.constants.get(e.var))
        if not isinstance(fixed, tuple):
            assert fixed is not None
            return fixed
        if index is None or not 0 <= index < len(fixed):
            raise ModelError(f"`{e.var}` of a NULL pointer", e.loc.file, e.loc.line)
        return fixed[index]

    def binary(self, e: s.Binary, env: dict[str, int | bool]) -> int | bool:
        a, b = int(self.eval(e.left, env)), int(self.eval(e.right, env))
        if e.op in _COMPARE:
            return _COMPARE[e.op](a, b)
        if e.op in ("/", "%") and b == 0:
            raise ModelError("division by zero", e.loc.file, e.loc.line)
        if e.op in ("<<", ">>") and not 0 <= b < shift_limit(e.ctype):
            raise ModelError(f"shift by {b}", e.loc.file, e.loc.line)
        if e.op in ("/", "%") and b == -1 and e.ctype is not None and e.ctype.signed and a == e.ctype.low:
            raise ModelError("division whose result does not fit", e.loc.file, e.loc.line)
        return _wrap(_ARITHMETIC[e.op](a, b), e.ctype)

    def choose(self, e: s.Choose, env: dict[str, int | bool]) -> int | bool:
        labels = self.world.universes[e.universe] if e.universe else e.labels
        values: list[int | bool] = list(range(len(labels)))
        if not e.universe:
            values = [self.eval(o, env) for o in e.options]
        number = self.oracle.decide(len(values))
        self.labels.append(labels[number])
        return values[number]


def _wrap(value: int | bool, ctype: CType | None) -> int | bool:
    return value if ctype is None else ctype.wrap(int(value))


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": c_divide, "%": c_remainder,
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b}


def run_function(programs: Mapping[str, s.Program], name: str, args: Sequence[int]) -> int:
    """Run a function that has no state, as of a small C file. Returns its value as a C number."""
    world = make_world({}, {}, {}, {}, programs)
    value = Interpreter(world, {}, Oracle()).run(name, args).value
    assert value is not None
    return int(value)
