# SPDX-License-Identifier: GPL-2.0-only
"""The symbolic executor: one run of a program on all states at once.

Branches run on copies of locals and state and are merged where they join; a path that ended is not merged.
Callees are run in place. A cut ends the path and leaves a record; to go on from there, the program is entered
again at that place, with the locals that were saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from schedproof.errors import ModelError
from schedproof.lang import syntax as s
from schedproof.lang import terms as t
from schedproof.lang.evaluate import Evaluator
from schedproof.lang.paths import (
    CutRecord,
    Fault,
    Flow,
    Heap,
    Path,
    Result,
    SitePath,
    Split,
    SplitHere,
    join,
    merge,
)
from schedproof.lang.terms import Value
from schedproof.lang.world import World

if TYPE_CHECKING:
    from schedproof.model.domains import Domain

LOOP_LIMIT = 400          # rounds of one loop in one step; more is taken for a loop without an end
OPEN_LIMIT = 32           # of them, those that may be the last or not: each makes all terms behind the loop larger


class Endless(ModelError):
    """A loop that has not ended within its limit."""


class Executor(Evaluator):
    """Runs programs of one world."""

    endless_limit = LOOP_LIMIT       # the same for loops that only a jump ends

    # ------------------------------------------------------------------------------------------- entries
    def run(self, name: str, args: Sequence[Value], heap: Heap, resume: SitePath = (),
            saved: Sequence[Mapping[str, Value]] = (), given: Value = True) -> Result:
        """Run a program on the states in which ``given`` holds, from its beginning or from a cut.

        The state passed is not changed.
        """
        path = Path(given, {}, dict(heap))
        end, value = self.call(name, list(args), path, resume, saved, s.NOWHERE)
        return Result(end, value, self.cuts, self.faults, self.choices, self.free, self.called, heap,
                      self.bounds.ranges)

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
            merged.env, merged.stack, merged.indices = path.env, path.stack, path.indices
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
        if value is not None and any(v is None and self.feasible(p.pc) for p, v in returned):
            return merged, None                  # who uses the value is told that there may be none
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
              saved: Sequence[Mapping[str, Value]]) -> Flow:
        flow = Flow()
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
            except SplitHere as split:
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

    def each(self, program: s.Program, rest: tuple[s.Stmt, ...], path: Path, split: SplitHere, flow: Flow,
             resume: SitePath, saved: Sequence[Mapping[str, Value]]) -> Path | None:
        """The rest of a block, once for each value of a term that it uses as an index."""
        ends, losses, left = [], self.losses, False
        begin = most = self.decided
        for value in split.values:
            self.decided = begin          # only one value is the case: a decision that is met again is the same one
            fork = path.fork(t.equal(split.term, value))
            if fork is None:
                continue
            fork.put(split.term, value)
            fork.indices = (*fork.indices, (split.term, value))
            one = self.block(program, rest, fork, resume, saved)
            left |= self.pass_on(one, flow)
            ends += [one.next] if one.next is not None else []
            most = max(most, self.decided)
        self.decided = most
        end = merge(ends)
        if end is not None:
            end.indices = path.indices
            if not left and losses == self.losses:
                end.pc = path.pc
        return end

    def mark(self) -> tuple[int, int, int, int, int]:
        """Where the records of this run stand, to come back to."""
        return len(self.cuts), len(self.faults), len(self.choices), self.losses, self.decided

    def back_to(self, mark: tuple[int, int, int, int, int]) -> None:
        del self.cuts[mark[0]:], self.faults[mark[1]:], self.choices[mark[2]:]
        self.losses, self.decided = mark[3:]

    def statement(self, program: s.Program, x: s.Stmt, path: Path, flow: Flow, resume: SitePath,
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
        inside = max(least if low is None else low, least), min(most if high is None else high, most)
        self.bounds.assume(value, inside)

    def if_(self, program: s.Program, x: s.If, path: Path, flow: Flow, resume: SitePath,
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

    def pass_on(self, inner: Flow, outer: Flow) -> bool:
        """Hand on the paths that left a block; true when there were any."""
        outer.breaks += inner.breaks
        outer.continues += inner.continues
        outer.returns += inner.returns
        return bool(inner.breaks or inner.continues or inner.returns)

    def while_(self, program: s.Program, x: s.While, path: Path | None, flow: Flow, resume: SitePath,
               saved: Sequence[Mapping[str, Value]]) -> Path | None:
        exits: list[Path] = []
        before, losses, returns = path, self.losses, len(flow.returns)
        inside, in_step = bool(resume), False
        if resume:
            chain = self.chain(program, resume[0][1])
            in_step = any(id(y) in chain for y in x.step)
        rounds = undecided = 0
        while path is not None:
            first_of_do = x.test_last and rounds == 0
            left = len(exits)
            if not inside and not first_of_do:
                path = self.test_loop(x, path, exits)
                if path is None:
                    break
            rounds += 1
            if rounds > 8 and not self.feasible(path.pc):
                break
            limit = self.endless_limit if isinstance(x.test, s.Const) else LOOP_LIMIT
            if rounds > limit:
                raise Endless(f"a loop goes on for more than {limit} rounds in one step", x.loc.file,
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
            undecided += len(exits) > left
            if undecided > OPEN_LIMIT:
                raise ModelError(f"a loop may end after any of {OPEN_LIMIT} rounds, or go on", x.loc.file, x.loc.line,
                                 "give it a bound, or a step() or block() on every path")
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

    def loop_step(self, program: s.Program, x: s.While, path: Path, flow: Flow, exits: list[Path],
                  resume: SitePath, saved: Sequence[Mapping[str, Value]]) -> Path | None:
        one = self.block(program, x.step, path, resume, saved)
        exits += one.breaks
        flow.take_ends(one)
        return one.next

    def for_(self, program: s.Program, x: s.For, path: Path, flow: Flow) -> Path | None:
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
