# SPDX-License-Identifier: GPL-2.0-only
"""Expressions, symbolically: values of terms, reads through indices that may not be known, calls in place."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import z3

from schedproof.errors import ModelError, NotExecutable
from schedproof.lang import syntax as s
from schedproof.lang import terms as t
from schedproof.lang.ctypes import BOOL, CType, shift_width
from schedproof.lang.paths import (
    UNSURE,
    Choice,
    CutRecord,
    Fault,
    Partly,
    Path,
    SitePath,
    Split,
    SplitHere,
    alive,
    join,
    unsure,
)
from schedproof.lang.terms import Value
from schedproof.lang.world import World


class Evaluator:
    """Evaluates expressions of one world, and keeps the records of a run.

    ``ranges`` are intervals of the constants in the initial state. With ``splits`` an index that is not known asks
    for one run for each of its values, by ``Split`` or ``SplitHere``.
    """

    def __init__(self, world: World, ranges: Mapping[str, t.Interval] | None = None, splits: bool = False):
        self.world, self.splits = world, splits
        self.exact = any(p.language == "c" for p in world.programs.values())       # numbers have C's ranges
        self.typed = self.exact and not world.boundary
        self.names = {world.name(k): k for v in world.variables for k in world.keys(v)} if splits else {}
        self.bounds = t.Bounds(ranges or {})
        self.cuts: list[CutRecord] = []
        self.faults: list[Fault] = []
        self.choices: list[Choice] = []
        self.decided = 0         # decisions on the way to where the run stands
        self.free: dict[str, str] = {}
        self.called: set[str] = set()
        self.depth = 0
        self._solver = z3.Solver()
        self._solver.set("rlimit", 2_000_000)
        self._limited = 0                    # how many ranges the solver knows already
        self.scopes: list[Path] = []         # the paths before the statements that are being run, outermost first
        self.losses = 0          # paths that ended otherwise than by a return: then a join may miss some states
        self._chains: dict[tuple[str, int], frozenset[int]] = {}
        self._owners = {id(x): name for name in world.cutting for x in s.statements(world.programs[name].body)}

    @abstractmethod
    def call(self, name: str, args: list[Value], path: Path, resume: SitePath, saved: Sequence[Mapping[str, Value]],
             loc: s.Loc) -> tuple[Path | None, Value | None]:
        """Run a program in place of a call of it."""

    def feasible(self, pc: Value) -> bool:
        """Whether a path condition can hold within the ranges of its constants. What Z3 cannot tell, may."""
        if isinstance(pc, bool):
            return pc
        for name in list(self.bounds.ranges)[self._limited:]:
            low, high = self.bounds.ranges[name]
            constant = z3.Int(name)
            self._solver.add(*([constant >= low] if low is not None else []),
                             *([constant <= high] if high is not None else []))
        self._limited = len(self.bounds.ranges)
        self._solver.push()
        self._solver.add(pc)
        answer = self._solver.check()
        self._solver.pop()
        return bool(answer != z3.unsat)

    def outside(self, index: Value, var: str, path: Path, loc: s.Loc) -> bool:
        """Note the fault of following NULL; true when nothing else can happen."""
        size = len(self.world.keys(var)) if var in self.world.variables else self.size(var)
        low, high = self.bounds.of(index)
        if low is not None and high is not None and low >= 0 and high < size:
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
            raise SplitHere(value, leaves)
        return value

    def size(self, var: str) -> int:
        found = self.world.links[var] if var in self.world.links else self.world.constants[var]
        assert isinstance(found, tuple)
        return len(found)

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
                return self.local(e, path)
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
                return self.fit(self.need(self.eval(e.operand, path), e), e.ctype, "conversion", path, e.loc)
            case s.Call():
                return self.inline(e, path)
            case s.Choose():
                return self.choose(e, path)
            case s.Free():
                return self.unmodelled(e, path)

    def local(self, e: s.Local, path: Path) -> Value:
        """A local. C may have set it on the paths on which it is used, only; use on another one is a fault."""
        value = path.env.get(e.name, UNSURE)
        if isinstance(value, Partly) and e.ctype is not None:
            bad = t.simplify(t.and_(path.pc, t.not_(value.known)))
            if bad is not False:
                self.faults.append(Fault(bad, e.loc, f"`{e.name}` has no value here"))
            return value.value
        if unsure(value):
            raise ModelError(f"`{e.name}` has no value here on some path", e.loc.file, e.loc.line,
                             "give it one before")
        return value

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
            return values[index]
        result: Value = values[-1]
        for i in reversed(range(len(values) - 1)):
            result = t.ite(t.equal(index, i), values[i], result)
        return result

    def unmodelled(self, e: s.Free, path: Path) -> Value:
        """A value that nobody declared: a new constant each time."""
        constant = z3.Bool if e.ctype == BOOL else z3.Int
        name = f"free!{len(self.free)}"
        self.free[name] = e.why
        self.bounds.ranges[name] = (e.ctype.low, e.ctype.high)
        return constant(name)

    def unary(self, e: s.Unary, path: Path) -> Value:
        value = self.need(self.eval(e.operand, path), e)
        if e.op == "not":
            return t.not_(t.truth(value))
        value = t.number(value)
        value = t.arithmetic("-", -1 if e.op == "~" else 0, value)
        return self.fit(value, e.ctype, e.op, path, e.loc) if e.ctype is not None else value

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
            path.adopt(join(going, alive(taken), path.fork(t.not_(going)), whole))
        return t.or_(left, right) if stop else t.and_(left, right)

    def binary(self, e: s.Binary, path: Path) -> Value:
        left = self.need(self.eval(e.left, path), e.left)
        right = self.need(self.eval(e.right, path), e.right)
        if e.op in ("==", "!=", "<", "<=", ">", ">="):
            found = t.compare(e.op, left, right)
            if self.exact and not t.known(found) and not t.is_bool(left) and not t.is_bool(right):
                told = self.bounds.decides(e.op, left, right)
                found = found if told is None else told
            return found
        if e.op in ("/", "%"):
            zero = t.simplify(t.and_(path.pc, t.equal(t.number(right), 0)))
            if zero is not False:
                self.faults.append(Fault(zero, e.loc, "division by zero"))
            self.overflow(e, left, right, path)
        if e.op in ("<<", ">>"):
            self.shifted(e, right, path)
        value = t.arithmetic(e.op, left, right, self.bounds)
        if value is None:
            raise NotExecutable(e.loc.file, e.loc.line, f"`{e.op}` with an amount or a mask that is not known")
        return self.fit(value, e.ctype, e.op, path, e.loc) if e.ctype is not None else value

    def fit(self, value: Value, ctype: CType, op: str, path: Path, loc: s.Loc) -> Value:
        """The result of an operation or of a conversion, reduced to its C type."""
        return t.convert(value, ctype, self.bounds)

    def overflow(self, e: s.Binary, left: Value, right: Value, path: Path) -> None:
        """The least number of a signed C type divided by -1 is a fault, as on the machine."""
        if e.ctype is None or not e.ctype.signed:
            return
        for value, wanted in ((right, -1), (left, e.ctype.low)):
            low, high = self.bounds.of(t.number(value))
            if low is not None and low > wanted or high is not None and high < wanted:
                return
        bad = t.simplify(t.and_(path.pc, t.equal(t.number(right), -1), t.equal(t.number(left), e.ctype.low)))
        if bad is not False:
            self.faults.append(Fault(bad, e.loc, "division whose result does not fit"))

    def shifted(self, e: s.Binary, amount: Value, path: Path) -> None:
        """Note the fault of shifting by more bits than the type has, or by fewer than none."""
        bits = shift_width(e.ctype)
        amount = t.number(amount)
        if isinstance(amount, int):
            bad: Value | None = not 0 <= amount < bits
        else:
            bad = t.spread(amount, lambda number: not 0 <= number < bits)
        guard = False if bad is None else t.simplify(t.and_(path.pc, bad))
        if guard is not False:
            by = str(int(amount)) if isinstance(amount, int) else f"a number of bits outside 0 to {bits - 1}"
            self.faults.append(Fault(guard, e.loc, f"shift by {by}"))

    def cond(self, e: s.Cond, path: Path) -> Value | None:
        test = t.simplify(t.truth(self.need(self.eval(e.test, path), e.test)))
        if isinstance(test, bool):
            known = self.eval(e.then if test else e.other, path)
            return t.convert(known, e.ctype, self.bounds) if known is not None and e.ctype is not None else known
        sides, losses = [path.fork(test), path.fork(t.not_(test))], self.losses
        values = [self.eval(side, p) if p is not None else None
                  for side, p in zip((e.then, e.other), sides, strict=True)]
        whole = path.pc if losses == self.losses else None
        path.adopt(join(test, alive(sides[0]), alive(sides[1]), whole))
        if any(v is None and alive(p) is not None for p, v in zip(sides, values, strict=True)):
            return None
        if values[0] is None or values[1] is None:
            value = values[0] if values[1] is None else values[1]
        else:
            value = t.ite(test, values[0], values[1])
        if value is None:
            return None
        return t.convert(value, e.ctype, self.bounds) if e.ctype is not None else value

    def inline(self, e: s.Call, path: Path) -> Value | None:
        args = [self.need(self.eval(a, path), a) for a in e.args]
        if path.pc is False:
            return 0
        if e.name in self.world.boundary:
            return self.unknown_function(e.name, args, path, e.ctype)
        end, value = self.call(e.name, args, path, (), (), e.loc)
        path.adopt(end)
        return 0 if end is None else value

    def unknown_function(self, name: str, args: list[Value], path: Path, ctype: CType | None) -> Value:
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
        constant = z3.Int(f"choice!{self.decided}!{'!'.join(labels)}")
        self.decided += 1
        if not any(t.same(constant, c.constant) for c in self.choices):
            self.choices.append(Choice(constant, tuple(labels)))
            self.bounds.ranges[constant.decl().name()] = (0, len(labels) - 1)
        result = values[-1]
        for i in reversed(range(len(values) - 1)):
            result = t.ite(constant == i, values[i], result)
        return result
