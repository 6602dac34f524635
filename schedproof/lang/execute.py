# SPDX-License-Identifier: GPL-2.0-only
"""The symbolic executor: one run of a program on all states at once.

Branches run on copies of locals and state and are merged where they join; a path that ended is not merged.
Callees are run in place. A cut ends the path and leaves a record; to go on from there, the program is entered
again at that place, with the locals that were saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import z3

from schedproof.errors import ModelError, NotExecutable
from schedproof.lang import syntax as s
from schedproof.lang import terms as t
from schedproof.lang.ctypes import BOOL
from schedproof.lang.terms import Value
from schedproof.lang.world import Key, World
from schedproof.model.domains import Domain

LOOP_LIMIT = 400          # rounds of one loop in one step; more is taken for a loop without an end

Heap = dict[Key, Value]
SitePath = tuple[tuple[str, int], ...]      # (program, ordinal of the site in it), outermost first


class Split(Exception):
    """A state variable is used as an index: the run is to be done once for each of its values."""

    def __init__(self, key: Key, values: tuple[int, ...]):
        self.key, self.values = key, values
        super().__init__(f"{key} as an index")


class _SplitHere(Exception):
    """A value with a few known outcomes is used as an index: go on once for each of them."""

    def __init__(self, term: z3.ExprRef, values: tuple[int, ...]):
        self.term, self.values = term, values
        super().__init__("index")


class Path:
    """One symbolic path: its condition, the locals of the function that runs, the state, the callers."""

    __slots__ = ("env", "heap", "indices", "pc", "stack")

    def __init__(self, pc: Value, env: dict[str, Value], heap: Heap,
                 stack: tuple[tuple[str, int, dict[str, Value]], ...] = (),
                 indices: tuple[tuple[z3.ExprRef, int], ...] = ()):
        self.pc, self.env, self.heap, self.stack = pc, env, heap, stack
        self.indices = indices              # terms that were split on this path, with their values on it

    def copy(self) -> Path:
        return Path(self.pc, dict(self.env), dict(self.heap), self.stack, self.indices)

    def fork(self, test: Value) -> Path | None:
        """A copy on which ``test`` holds too, or None where that cannot be.

        Where the test says what a constant is, the copy takes its value, so that what follows folds.
        """
        if test is False:
            return None
        if test is True:
            return self.copy()
        pc = t.simplify(t.and_(self.pc, test))
        if pc is False:
            return None
        made = self.copy()
        made.pc = pc
        for term, value in t.learned(test):
            made.put(term, value)
        return made

    def put(self, term: Value, value: Value) -> None:
        """Replace a term by the value that it is known to have on this path."""
        for table in (self.env, self.heap):
            for key, old in table.items():  # type: ignore[attr-defined]
                if t.same(old, term):
                    table[key] = value  # type: ignore[index]

    def adopt(self, other: Path | None) -> None:
        """Become another path, in place; None is a path that ended."""
        if other is None:
            self.pc = False
        else:
            self.pc, self.env, self.heap, self.stack = other.pc, other.env, other.heap, other.stack
            self.indices = other.indices


@dataclass
class CutRecord:
    """The end of an atomic step at ``site``. ``saved`` holds each frame's locals, outermost first."""

    site: SitePath
    guard: Value
    heap: Heap
    saved: tuple[dict[str, Value], ...]


@dataclass
class Fault:
    """A modelling error that happens where ``guard`` holds."""

    guard: Value
    loc: s.Loc
    message: str


@dataclass
class Choice:
    """One decision of the adversary: the constant that stands for it, and what its values are called."""

    constant: z3.ArithRef
    labels: tuple[str, ...]


@dataclass
class Result:
    """All that one run gives: the end (None when every path was cut or impossible), and what came before."""

    end: Path | None
    value: Value | None
    cuts: list[CutRecord]
    faults: list[Fault]
    choices: list[Choice]
    free: dict[str, str]
    called: set[str]
    base: Heap                                   # the state that the run began with


@dataclass
class _Flow:
    next: Path | None = None
    breaks: list[Path] = field(default_factory=list)
    continues: list[Path] = field(default_factory=list)
    returns: list[tuple[Path, Value | None]] = field(default_factory=list)

    def take_ends(self, other: _Flow) -> None:
        self.returns += other.returns

    def count(self) -> tuple[int, int, int]:
        return len(self.breaks), len(self.continues), len(self.returns)

    def cut_back(self, count: tuple[int, int, int]) -> None:
        del self.breaks[count[0]:], self.continues[count[1]:], self.returns[count[2]:]


class Executor:
    """Runs programs of one world. ``ranges`` are intervals of the constants in the initial state."""

    def __init__(self, world: World, ranges: Mapping[str, t.Interval] | None = None, splits: bool = False):
        self.world, self.splits = world, splits
        self.typed = any(p.language == "c" for p in world.programs.values()) and not world.boundary
        self.names = {world.name(k): k for v in world.variables for k in world.keys(v)} if splits else {}
        self.bounds = t.Bounds(ranges or {})
        self.cuts: list[CutRecord] = []
        self.faults: list[Fault] = []
        self.choices: list[Choice] = []
        self.free: dict[str, str] = {}
        self.called: set[str] = set()
        self.depth = 0
        self.scopes: list[Path] = []         # the paths before the statements that are being run, outermost first
        self.losses = 0          # paths that ended otherwise than by a return: then a join may miss some states
        self._chains: dict[tuple[str, int], frozenset[int]] = {}
        self._owners = {id(x): name for name in world.cutting for x in s.statements(world.programs[name].body)}

    # ------------------------------------------------------------------------------------------- entries
    def run(self, name: str, args: Sequence[Value], heap: Heap, resume: SitePath = (),
            saved: Sequence[Mapping[str, Value]] = (), given: Value = True) -> Result:
        """Run a program on the states in which ``given`` holds, from its beginning or from a cut.

        The state passed is not changed.
        """
        path = Path(given, {}, dict(heap))
        end, value = self.call(name, list(args), path, resume, saved, s.NOWHERE)
        return Result(end, value, self.cuts, self.faults, self.choices, self.free, self.called, heap)

    def call(self, name: str, args: list[Value], path: Path, resume: SitePath, saved: Sequence[Mapping[str, Value]],
             loc: s.Loc) -> tuple[Path | None, Value | None]:
        """Run one program in place of a call of it. Returns the caller's path and the value."""
        program = self.world.programs.get(name)
        if program is None:
            raise ModelError(f"no method or function `{name}`", loc.file, loc.line)
        if not resume and len(args) != len(program.params):
            raise ModelError(f"{name} takes {len(program.params)} arguments, not {len(args)}", loc.file, loc.line)
        self.depth += 1
        if self.depth > 60:
            raise ModelError(f"{name} calls itself", program.loc.file, program.loc.line, "recursion has no bound here")
        self.called.add(name)
        env: dict[str, Value] = dict(saved[0]) if resume else {}
        if not resume:
            for i, (param, value) in enumerate(zip(program.params, args, strict=True)):
                ctype = program.types[i] if i < len(program.types) else None
                env[param] = t.convert(value, ctype, self.bounds) if ctype is not None else value
        inner, losses = Path(path.pc, env, path.heap, path.stack), self.losses
        flow = self.block(program, program.body, inner, resume, saved)
        returned = flow.returns if flow.next is None else [*flow.returns, (flow.next, None)]
        self.depth -= 1
        merged, value = self.join_returns(program, returned)
        if merged is not None:
            merged.env, merged.stack = path.env, path.stack
            if losses == self.losses:
                merged.pc = path.pc
        return merged, value

    def join_returns(self, program: s.Program, returned: list[tuple[Path, Value | None]],
                     ) -> tuple[Path | None, Value | None]:
        if not returned:
            return None, None
        paths = [p for p, _ in returned]
        merged = merge(paths)
        value: Value | None = None
        for p, v in reversed(returned):
            if v is not None:
                value = v if value is None else t.ite(p.pc, v, value)
        if value is not None and program.result is not None:
            value = t.convert(value, program.result, self.bounds)
        return merged, value

    # ---------------------------------------------------------------------------------------- statements
    def chain(self, program: s.Program, ordinal: int) -> frozenset[int]:
        """Identities of the site's statement and of all statements around it."""
        found: set[int] = set()

        def look(body: tuple[s.Stmt, ...]) -> bool:
            for x in body:
                if self.world.sites.get(id(x)) == ordinal or any(look(b) for b in s.blocks(x)):
                    found.add(id(x))
                    return True
            return False

        key = (program.name, ordinal)
        if key not in self._chains:
            look(program.body)
            self._chains[key] = frozenset(found)
        return self._chains[key]

    def block(self, program: s.Program, body: tuple[s.Stmt, ...], path: Path | None, resume: SitePath,
              saved: Sequence[Mapping[str, Value]]) -> _Flow:
        flow = _Flow()
        start = 0
        if resume:
            chain = self.chain(program, resume[0][1])
            start = next(i for i, x in enumerate(body) if id(x) in chain)
        for i, x in enumerate(body[start:]):
            if path is None or path.pc is False:
                break
            before, mark, ends = path.copy(), self.mark(), flow.count()
            self.scopes.append(before)
            try:
                path = self.statement(program, x, path, flow, resume if i == 0 else (), saved)
            except _SplitHere as split:
                if any(t.same(v, split.term) for scope in self.scopes[:-1] for v in scope.env.values()):
                    raise                           # a caller or a block around this one can do it once for all
                self.back_to(mark)
                flow.cut_back(ends)
                rest = body[start + i:]
                path = self.each(program, rest, before, split, flow, resume if i == 0 else (), saved)
                break
            finally:
                self.scopes.pop()
        flow.next = None if path is None or path.pc is False else path
        return flow

    def each(self, program: s.Program, rest: tuple[s.Stmt, ...], path: Path, split: _SplitHere, flow: _Flow,
             resume: SitePath, saved: Sequence[Mapping[str, Value]]) -> Path | None:
        """The rest of a block, once for each value of a term that it uses as an index."""
        ends, losses, left = [], self.losses, False
        for value in split.values:
            fork = path.fork(t.equal(split.term, value))
            if fork is None:
                continue
            fork.put(split.term, value)
            fork.indices = (*fork.indices, (split.term, value))
            one = self.block(program, rest, fork, resume, saved)
            left |= self.pass_on(one, flow)
            ends += [one.next] if one.next is not None else []
        end = merge(ends)
        if end is not None:
            end.indices = path.indices
            if not left and losses == self.losses:
                end.pc = path.pc
        return end

    def mark(self) -> tuple[int, int, int, int]:
        """Where the records of this run stand, to come back to."""
        return len(self.cuts), len(self.faults), len(self.choices), self.losses

    def back_to(self, mark: tuple[int, int, int, int]) -> None:
        del self.cuts[mark[0]:], self.faults[mark[1]:], self.choices[mark[2]:]
        self.losses = mark[3]

    def statement(self, program: s.Program, x: s.Stmt, path: Path, flow: _Flow, resume: SitePath,
                  saved: Sequence[Mapping[str, Value]]) -> Path | None:
        match x:
            case s.Assign() | s.Do():
                value = self.call_or_eval(x, path, resume, saved)
                if isinstance(x, s.Assign) and path.pc is not False:
                    if value is None:
                        raise ModelError("a call that returns no value is used as one", x.loc.file, x.loc.line)
                    path.env[x.name] = value
                return path
            case s.Store():
                self.store(x, path)
                return path
            case s.If():
                return self.if_(program, x, path, flow, resume, saved)
            case s.While():
                return self.while_(program, x, path, flow, resume, saved)
            case s.For():
                return self.for_(program, x, path, flow)
            case s.Break():
                flow.breaks.append(path)
            case s.Continue():
                flow.continues.append(path)
            case s.Return():
                value = self.eval(x.value, path) if x.value is not None else None
                if path.pc is not False:
                    flow.returns.append((path, value))
            case s.Require():
                self.losses += 1
                return path.fork(t.truth(self.need(self.eval(x.test, path), x.test)))
            case s.Cut():
                self.losses += 1
                if resume:
                    return path if x.until is None else path.fork(t.truth(self.need(self.eval(x.until, path), x.until)))
                self.cut(program, x, path)
        return None

    def cut(self, program: s.Program, x: s.Stmt, path: Path) -> None:
        here = (program.name, self.world.sites[id(x)])
        site = (*((name, ordinal) for name, ordinal, _ in path.stack), here)
        self.cuts.append(CutRecord(site, path.pc, path.heap, (*(e for _, _, e in path.stack), path.env)))

    def call_or_eval(self, x: s.Assign | s.Do, path: Path, resume: SitePath, saved: Sequence[Mapping[str, Value]],
                     ) -> Value | None:
        """The value of a statement's expression; a call that may cut keeps this frame for when it goes on."""
        e = x.value
        if not (isinstance(e, s.Call) and e.name in self.world.cutting):
            return self.eval(e, path, statement=True)
        args = [] if resume else [self.need(self.eval(a, path), a) for a in e.args]
        inner = Path(path.pc, {}, path.heap, (*path.stack, (self._owners[id(x)], self.world.sites[id(x)], path.env)))
        end, value = self.call(e.name, args, inner, resume[1:], saved[1:], e.loc)
        if end is None:
            path.pc = False
        else:
            path.pc, path.heap = end.pc, end.heap
        return value

    def store(self, x: s.Store, path: Path) -> None:
        index = None if x.index is None else self.index(x.index, path)
        value = self.need(self.eval(x.value, path), x.value)
        if path.pc is False:
            return
        domain = self.world.variables[x.var][1]
        value = t.truth(value) if domain.sort == "Bool" else t.number(value)
        if self.typed:
            self.within_domain(x, domain, value, path)
        if index is None:
            path.heap[x.var, None] = value
            return
        if self.outside(index, x.var, path, x.loc):
            path.pc = False
            return
        for key in self.world.keys(x.var):
            path.heap[key] = t.ite(t.equal(index, key[1] or 0), value, path.heap[key])

    def within_domain(self, x: s.Store, domain: Domain, value: Value, path: Path) -> None:
        """Where C reads what is stored here, its type must not have to reduce it: leaving the domain is a fault."""
        codes = domain.codes()
        if not domain.c or codes is None or domain.sort == "Bool" or isinstance(value, int):
            return
        least, most = int(min(codes)), int(max(codes))
        low, high = self.bounds.of(value)
        if low is not None and low >= least and high is not None and high <= most:
            return
        bad = t.and_(path.pc, t.or_(t.compare("<", value, least), t.compare(">", value, most)))
        self.faults.append(Fault(bad, x.loc, f"`{x.var}` is set to a value outside {least} to {most}"))
        self.bounds.assume(value, (least if low is None else max(low, least), most if high is None else min(high, most)))

    def outside(self, index: Value, var: str, path: Path, loc: s.Loc) -> bool:
        """Note the fault of following NULL; true when nothing else can happen."""
        size = len(self.world.keys(var)) if var in self.world.variables else self.size(var)
        low, high = self.bounds.of(index)
        if low is not None and high is not None and 0 <= low and high < size:
            return False
        bad = t.or_(t.compare("<", index, 0), t.compare(">=", index, size))
        guard = t.simplify(t.and_(path.pc, bad))
        if guard is not False:
            self.faults.append(Fault(guard, loc, f"`{var}` of a NULL pointer"))
        self.losses += bad is True
        return bad is True

    def index(self, e: s.Expr, path: Path) -> Value:
        """An index. Where it is not known but has few outcomes, ask for one run of what follows for each."""
        value = t.simplify(self.number(e, path))
        if isinstance(value, int) or not self.splits or path.pc is False:
            return value
        for term, known in path.indices:
            if t.same(term, value):
                return known
        if z3.is_const(value):
            key = self.names.get(value.decl().name())
            codes = self.world.variables[key[0]][1].codes() if key is not None else None
            if key is not None and codes is not None:
                raise Split(key, tuple(int(c) for c in codes))
        leaves = t.outcomes(value)
        if leaves is not None:
            raise _SplitHere(value, leaves)
        return value

    def size(self, var: str) -> int:
        found = self.world.links[var] if var in self.world.links else self.world.constants[var]
        assert isinstance(found, tuple)
        return len(found)

    def if_(self, program: s.Program, x: s.If, path: Path, flow: _Flow, resume: SitePath,
            saved: Sequence[Mapping[str, Value]]) -> Path | None:
        if resume:
            chain = self.chain(program, resume[0][1])
            inside = x.then if any(id(y) in chain for y in x.then) else x.orelse
            one = self.block(program, inside, path, resume, saved)
            self.pass_on(one, flow)
            return one.next
        test = t.simplify(t.truth(self.need(self.eval(x.test, path), x.test)))
        if path.pc is False:
            return None
        if isinstance(test, bool):
            one = self.block(program, x.then if test else x.orelse, path, (), ())
            self.pass_on(one, flow)
            return one.next
        sides, losses, ended = [], self.losses, False
        for branch, condition in ((x.then, test), (x.orelse, t.not_(test))):
            one = self.block(program, branch, path.fork(condition), (), ())
            ended |= self.pass_on(one, flow)
            sides.append(one.next)
        whole = not ended and losses == self.losses
        return join(test, sides[0], sides[1], path.pc if whole else None)

    def pass_on(self, inner: _Flow, outer: _Flow) -> bool:
        """Hand on the paths that left a block; true when there were any."""
        outer.breaks += inner.breaks
        outer.continues += inner.continues
        outer.returns += inner.returns
        return bool(inner.breaks or inner.continues or inner.returns)

    def while_(self, program: s.Program, x: s.While, path: Path | None, flow: _Flow, resume: SitePath,
               saved: Sequence[Mapping[str, Value]]) -> Path | None:
        exits: list[Path] = []
        before, losses, returns = path, self.losses, len(flow.returns)
        inside, in_step = bool(resume), False
        if resume:
            chain = self.chain(program, resume[0][1])
            in_step = any(id(y) in chain for y in x.step)
        rounds = 0
        while path is not None:
            first_of_do = x.test_last and rounds == 0
            if not inside and not first_of_do:
                path = self.test_loop(x, path, exits)
                if path is None:
                    break
            rounds += 1
            if rounds > 8 and not self.feasible(path.pc):
                break
            if rounds > LOOP_LIMIT:
                raise ModelError(f"a loop goes on for more than {LOOP_LIMIT} rounds in one step", x.loc.file,
                                 x.loc.line, "give it a bound, or a step() or block() on every path")
            if in_step:
                path, in_step = self.loop_step(program, x, path, flow, exits, resume, saved), False
            else:
                one = self.block(program, x.body, path, resume if inside else (), saved)
                exits += one.breaks
                flow.take_ends(one)
                path = merge([p for p in (one.next, *one.continues) if p is not None])
                if path is not None and x.step:
                    path = self.loop_step(program, x, path, flow, exits, (), ())
            inside = False
        end = merge(exits)
        if end is not None and before is not None and losses == self.losses and returns == len(flow.returns):
            end.pc = before.pc
        return end

    def test_loop(self, x: s.While, path: Path, exits: list[Path]) -> Path | None:
        test = t.simplify(t.truth(self.need(self.eval(x.test, path), x.test)))
        if path.pc is False:
            return None
        leaving = path.fork(t.not_(test))
        if leaving is not None:
            exits.append(leaving)
        return path.fork(test)

    def loop_step(self, program: s.Program, x: s.While, path: Path, flow: _Flow, exits: list[Path],
                  resume: SitePath, saved: Sequence[Mapping[str, Value]]) -> Path | None:
        one = self.block(program, x.step, path, resume, saved)
        exits += one.breaks
        flow.take_ends(one)
        return one.next

    def for_(self, program: s.Program, x: s.For, path: Path, flow: _Flow) -> Path | None:
        """A loop over a universe. Where it begins is split into instances, so that its indices are known."""
        size = len(self.world.universes[x.universe])
        after: Value = s.NULL_CODE if x.after is None else self.index(x.after, path)
        if path.pc is False:
            return None
        starts = [after] if isinstance(after, int) else list(range(s.NULL_CODE, size))
        ends: list[Path] = []
        losses, returns = self.losses, len(flow.returns)
        for start in starts:
            one: Path | None = path.fork(t.equal(after, start))
            exits: list[Path] = []
            for k in range(1, size + 1):
                if one is None:
                    break
                one.env[x.name] = (int(start) + k) % size if size else 0
                inner = self.block(program, x.body, one, (), ())
                exits += inner.breaks
                flow.take_ends(inner)
                one = merge([p for p in (inner.next, *inner.continues) if p is not None])
            ends += [*exits, *([one] if one is not None else [])]
        end = merge(ends)
        if end is not None and losses == self.losses and returns == len(flow.returns):
            end.pc = path.pc
        return end

    def feasible(self, pc: Value) -> bool:
        """Whether a path condition can hold within the ranges of its constants."""
        if isinstance(pc, bool):
            return pc
        solver = z3.Solver()
        solver.set("timeout", 2000)
        solver.add(pc)
        for name, constant in t.constants_of([pc]).items():
            low, high = self.bounds.ranges.get(name, (None, None))
            if z3.is_int(constant):
                solver.add(*([constant >= low] if low is not None else []))
                solver.add(*([constant <= high] if high is not None else []))
        return solver.check() != z3.unsat

    # --------------------------------------------------------------------------------------- expressions
    def need(self, value: Value | None, e: s.Expr) -> Value:
        if value is None:
            raise ModelError("a call that returns no value is used as one", e.loc.file, e.loc.line)
        return value

    def number(self, e: s.Expr, path: Path) -> Value:
        return t.number(self.need(self.eval(e, path), e))

    def eval(self, e: s.Expr, path: Path, statement: bool = False) -> Value | None:
        match e:
            case s.Const():
                return e.value
            case s.Local():
                if e.name not in path.env:
                    raise ModelError(f"`{e.name}` has no value here on some path", e.loc.file, e.loc.line,
                                     "give it one before")
                return path.env[e.name]
            case s.Load():
                return self.load(e, path)
            case s.Unary():
                return self.unary(e, path)
            case s.Binary(op="and" | "or"):
                return self.short(e, path)
            case s.Binary():
                return self.binary(e, path)
            case s.Cond():
                return self.cond(e, path)
            case s.Cast():
                return t.convert(self.need(self.eval(e.operand, path), e), e.ctype, self.bounds)
            case s.Call():
                return self.inline(e, path)
            case s.Choose():
                return self.choose(e, path)
            case s.Free():
                constant = z3.Bool if e.ctype == BOOL else z3.Int
                name = f"free!{len(self.free)}"
                self.free[name] = e.why
                self.bounds.ranges[name] = (e.ctype.low, e.ctype.high)
                return constant(name)

    def load(self, e: s.Load, path: Path) -> Value:
        table: Mapping[object, object] | None = None
        if e.var not in self.world.variables:
            fixed = self.world.links.get(e.var, self.world.constants.get(e.var))
            if fixed is None:
                raise ModelError(f"the model has no `{e.var}`", e.loc.file, e.loc.line)
            if not isinstance(fixed, tuple):
                return fixed
            table = dict(enumerate(fixed))
        if e.index is None:
            return path.heap[e.var, None]
        index = self.index(e.index, path)
        if path.pc is False or self.outside(index, e.var, path, e.loc):
            path.pc = False
            return 0
        values = list(table.values()) if table is not None else [path.heap[k] for k in self.world.keys(e.var)]
        if isinstance(index, int):
            return values[index]  # type: ignore[return-value]
        result: Value = values[-1]  # type: ignore[assignment]
        for i in reversed(range(len(values) - 1)):
            result = t.ite(t.equal(index, i), values[i], result)  # type: ignore[arg-type]
        return result

    def unary(self, e: s.Unary, path: Path) -> Value:
        value = self.need(self.eval(e.operand, path), e)
        if e.op == "not":
            return t.not_(t.truth(value))
        value = t.number(value)
        if e.op == "~":
            value = t.arithmetic("-", -1, value)  # type: ignore[assignment]
        else:
            value = t.arithmetic("-", 0, value)  # type: ignore[assignment]
        return t.convert(value, e.ctype, self.bounds) if e.ctype is not None else value

    def short(self, e: s.Binary, path: Path) -> Value:
        left = t.simplify(t.truth(self.need(self.eval(e.left, path), e.left)))
        stop = e.op == "or"
        if left is stop or path.pc is False:
            return stop
        going = t.not_(left) if stop else left
        taken = path.fork(going)
        if taken is None:
            return stop
        losses = self.losses
        right = t.truth(self.need(self.eval(e.right, taken), e.right))
        if any(isinstance(x, s.Call) for x in s.expressions(e.right)):
            whole = path.pc if losses == self.losses else None
            path.adopt(join(going, _alive(taken), path.fork(t.not_(going)), whole))
        return t.or_(left, right) if stop else t.and_(left, right)

    def binary(self, e: s.Binary, path: Path) -> Value:
        left = self.need(self.eval(e.left, path), e.left)
        right = self.need(self.eval(e.right, path), e.right)
        if e.op in ("==", "!=", "<", "<=", ">", ">="):
            return t.compare(e.op, left, right)
        if e.op in ("/", "%"):
            zero = t.simplify(t.and_(path.pc, t.equal(t.number(right), 0)))
            if zero is not False:
                self.faults.append(Fault(zero, e.loc, "division by zero"))
        value = t.arithmetic(e.op, left, right, self.bounds)
        if value is None:
            raise NotExecutable(e.loc.file, e.loc.line, f"`{e.op}` with an amount or a mask that is not known")
        return t.convert(value, e.ctype, self.bounds) if e.ctype is not None else value

    def cond(self, e: s.Cond, path: Path) -> Value | None:
        test = t.simplify(t.truth(self.need(self.eval(e.test, path), e.test)))
        if isinstance(test, bool):
            return self.eval(e.then if test else e.other, path)
        sides, losses = [path.fork(test), path.fork(t.not_(test))], self.losses
        values = [self.eval(side, p) if p is not None else None
                  for side, p in zip((e.then, e.other), sides, strict=True)]
        whole = path.pc if losses == self.losses else None
        path.adopt(join(test, _alive(sides[0]), _alive(sides[1]), whole))
        if values[0] is None or values[1] is None:
            return values[0] if values[1] is None else values[1]
        value = t.ite(test, values[0], values[1])
        return t.convert(value, e.ctype, self.bounds) if e.ctype is not None else value

    def inline(self, e: s.Call, path: Path) -> Value | None:
        args = [self.need(self.eval(a, path), a) for a in e.args]
        if path.pc is False:
            return 0
        if e.name in self.world.boundary:
            return self.unknown_function(e.name, args, path)
        end, value = self.call(e.name, args, path, (), (), e.loc)
        path.adopt(end)
        return 0 if end is None else value

    def unknown_function(self, name: str, args: list[Value], path: Path) -> Value:
        """A call that is not looked into: new values for the whole state, as functions of all that it can see."""
        inputs = [t.z3_of(a) for a in (*args, *path.heap.values())]
        sorts = [i.sort() for i in inputs]

        def made(what: str, sort: z3.SortRef) -> z3.ExprRef:
            return z3.Function(f"{name}!{what}", *sorts, sort)(*inputs)

        old = dict(path.heap)
        for key, value in old.items():
            path.heap[key] = made(self.world.name(key), t.z3_of(value).sort())
        return made("return", z3.IntSort())

    def choose(self, e: s.Choose, path: Path) -> Value:
        labels = self.world.universes[e.universe] if e.universe else e.labels
        if not labels:
            raise ModelError("nothing to choose from", e.loc.file, e.loc.line)
        values: list[Value] = list(range(len(labels)))
        if not e.universe:
            values = [self.need(self.eval(o, path), o) for o in e.options]
        constant = z3.Int(f"choice!{len(self.choices)}")
        self.choices.append(Choice(constant, tuple(labels)))
        self.bounds.ranges[constant.decl().name()] = (0, len(labels) - 1)
        result = values[-1]
        for i in reversed(range(len(values) - 1)):
            result = t.ite(constant == i, values[i], result)
        return result


def runs(world: World, ranges: Mapping[str, t.Interval], name: str, args: Sequence[Value], heap: Heap,
         resume: SitePath = (), saved: Sequence[Mapping[str, Value]] = (), given: Value = True) -> list[Result]:
    """Run a program, once for each combination of the state variables that it uses as indices."""
    executor = Executor(world, ranges, splits=True)
    try:
        return [executor.run(name, args, heap, resume, saved, given)]
    except Split as split:
        found = []
        for value in split.values:
            here = t.and_(given, t.equal(heap[split.key], value))
            found += runs(world, ranges, name, args, {**heap, split.key: value}, resume, saved, here)
        return found


# ------------------------------------------------------------------------------------------------- merging
def _alive(path: Path | None) -> Path | None:
    return None if path is None or path.pc is False else path


def join(test: Value, then: Path | None, other: Path | None, pc: Value | None) -> Path | None:
    """Two branches of one test; ``pc`` is the condition before it when both came through whole."""
    if then is None or other is None:
        return then if other is None else other
    if pc is None:
        pc = t.simplify(t.or_(then.pc, other.pc))
    return Path(pc, _meet(test, then.env, other.env), _meet(test, then.heap, other.heap), then.stack)


def merge(paths: list[Path]) -> Path | None:
    """Paths that meet; each is told from the later ones by its condition."""
    if not paths:
        return None
    result = paths[-1]
    for path in reversed(paths[:-1]):
        pc = t.simplify(t.or_(path.pc, result.pc))
        result = Path(pc, _meet(path.pc, path.env, result.env), _meet(path.pc, path.heap, result.heap), path.stack)
    return result


def _meet(test: Value, a: Mapping[object, Value], b: Mapping[object, Value]) -> dict:  # type: ignore[type-arg]
    """Values where two paths meet. A local that only one of them has set is unset behind the join."""
    return {key: t.ite(test, value, b[key]) for key, value in a.items() if key in b}
