# SPDX-License-Identifier: GPL-2.0-only
"""Preparation of programs that are not atomic.

After it, a cut happens only at a statement of its own: a ``Cut``, or a call of a program that contains one, with
its result in a local. What is evaluated before such a call in the same statement is evaluated into locals first.
Loops over a universe that contain a cut become loops whose position is a local. With grain "access", a cut
stands before each read and each write of a state variable, in order of evaluation.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace

from schedproof.errors import ModelError, NotExecutable
from schedproof.lang import syntax as s


def cutting(programs: Mapping[str, s.Program]) -> frozenset[str]:
    """Names of the programs in which an atomic step can end, in a callee or by their grain."""
    found = {n for n, p in programs.items() if any(isinstance(x, s.Cut) for x in s.statements(p.body))
             or p.grain == "access"}
    while True:
        more = {n for n, p in programs.items() if n not in found and s.calls(p.body) & found}
        if not more:
            return frozenset(found)
        found |= more


def prepare(programs: Mapping[str, s.Program], variables: Mapping[str, object], sizes: Mapping[str, int],
            shared: frozenset[str] | None = None) -> tuple[dict[str, s.Program], frozenset[str]]:
    """The programs in the form above, and the names of the cutting ones.

    ``variables`` are the state variables with their domains, ``sizes`` the universes. ``shared`` are the variables
    whose accesses are cuts with grain "access", all where it is None. Raises ModelError when a kernel function is
    declared atomic but a callee blocks.
    """
    cuts = cutting(programs)
    shared = frozenset(variables) if shared is None else shared
    out = dict(programs)
    for name in cuts:
        program = programs[name]
        if program.kind == "kernel" and program.grain == "atomic":
            raise ModelError(f"{name} is atomic, but a function that it calls blocks", program.loc.file,
                             program.loc.line, 'declare it with grain="blocking" or grain="access"')
        work = _Normal(cuts, shared if program.grain == "access" else frozenset(), sizes, variables,
                       dict(program.domains))
        body = work.block(program.body)
        out[name] = replace(program, body=body, domains=tuple(work.domains.items()))
    return out, cuts


class _Normal:
    def __init__(self, cuts: frozenset[str], shared: frozenset[str], sizes: Mapping[str, int],
                 variables: Mapping[str, object], domains: dict[str, object]):
        self.cuts, self.shared, self.sizes, self.variables, self.domains = cuts, shared, sizes, variables, domains
        self.fresh = itertools.count()

    def temp(self, value: s.Expr | None = None) -> str:
        """A new local, with the domain of the value that it is for, where that has one."""
        name = f"__c{next(self.fresh)}"
        domain = self.domain(value) if value is not None else None
        if domain is not None:
            self.domains[name] = domain
        return name

    def domain(self, value: s.Expr) -> object | None:
        from schedproof.model.domains import Bool  # here, for it needs this package

        if isinstance(value, s.Local):
            return self.domains.get(value.name)
        if isinstance(value, s.Load):
            return self.variables.get(value.var)
        if isinstance(value, s.Cond):
            then, other = self.domain(value.then), self.domain(value.other)
            return then if then is other else None
        truth = isinstance(value, s.Unary | s.Binary) and value.op in s.TRUTH
        return Bool() if truth or (isinstance(value, s.Const) and isinstance(value.value, bool)) else None

    def cuts_in(self, expr: s.Expr) -> bool:
        return any((isinstance(e, s.Call) and e.name in self.cuts)
                   or (isinstance(e, s.Load) and e.var in self.shared) for e in s.expressions(expr))

    def has_cut(self, body: tuple[s.Stmt, ...]) -> bool:
        return any(isinstance(x, s.Cut) or (isinstance(x, s.Store) and x.var in self.shared)
                   or any(self.cuts_in(e) for e in s.own_expressions(x)) for x in s.statements(body))

    def block(self, body: tuple[s.Stmt, ...]) -> tuple[s.Stmt, ...]:
        out: list[s.Stmt] = []
        for statement in body:
            self.statement(statement, out)
        return tuple(out)

    def statement(self, x: s.Stmt, out: list[s.Stmt]) -> None:
        if isinstance(x, s.If):
            test = self.expr(x.test, out)
            out.append(replace(x, test=test, then=self.block(x.then), orelse=self.block(x.orelse)))
        elif isinstance(x, s.While):
            self.loop(x, out)
        elif isinstance(x, s.For):
            self.walk(x, out)
        elif isinstance(x, s.Store):
            index = self.expr(x.index, out) if x.index is not None else None
            stored = self.expr(x.value, out)
            if x.joined and x.index is not None and self.cuts_in(x.index):
                raise NotExecutable(x.loc.file, x.loc.line, "an atomic operation on an object that a shared pointer "
                                    "leads to, interrupted before each access")
            if x.var in self.shared and not x.joined:
                index, stored = self.keep(index, out), self.keep(stored, out) or stored
                out.append(s.Cut(None, x.loc))
            out.append(replace(x, index=index, value=stored))
        elif isinstance(x, s.Assign | s.Do):
            whole = isinstance(x.value, s.Call) and x.value.name in self.cuts       # it may cut where it stands
            value = self.arguments(x.value, out) if whole else self.expr(x.value, out)  # type: ignore[arg-type]
            out.append(replace(x, value=value))
        elif isinstance(x, s.Return):
            out.append(replace(x, value=self.expr(x.value, out)) if x.value is not None else x)
        elif isinstance(x, s.Require):
            out.append(replace(x, test=self.expr(x.test, out)))
        else:
            out.append(x)

    def keep(self, value: s.Expr | None, out: list[s.Stmt]) -> s.Expr | None:
        """A value that must not change any more, in a local where it could."""
        if value is None or isinstance(value, s.Const | s.Local):
            return value
        name = self.temp(value)
        out.append(s.Assign(name, value, value.loc))
        return s.Local(name, value.loc, getattr(value, "ctype", None))

    def arguments(self, call: s.Call, out: list[s.Stmt]) -> s.Call:
        return replace(call, args=tuple(self.ordered(list(call.args), out)))

    def ordered(self, parts: list[s.Expr], out: list[s.Stmt]) -> list[s.Expr]:
        """Operands from left to right: what stands left of a cut is evaluated before it."""
        done: list[s.Expr] = []
        for i, part in enumerate(parts):
            value = self.expr(part, out)
            if any(self.cuts_in(later) for later in parts[i + 1:]):
                value = self.keep(value, out) or value
            done.append(value)
        return done

    def expr(self, e: s.Expr, out: list[s.Stmt]) -> s.Expr:
        if not self.cuts_in(e):
            return e
        if isinstance(e, s.Load):
            index = self.keep(self.expr(e.index, out), out) if e.index is not None else None
            if e.var not in self.shared:
                return replace(e, index=index)
            out.append(s.Cut(None, e.loc))
            return self.named(replace(e, index=index), out)
        if isinstance(e, s.Call):
            call = self.arguments(e, out)
            return self.named(call, out) if e.name in self.cuts else call
        if isinstance(e, s.Binary) and e.op in ("and", "or"):
            return self.short(e, out)
        if isinstance(e, s.Binary):
            left, right = self.ordered([e.left, e.right], out)
            return replace(e, left=left, right=right)
        if isinstance(e, s.Cond):
            name = self.temp(e)
            test = self.expr(e.test, out)
            sides = []
            for side in (e.then, e.other):
                inner: list[s.Stmt] = []
                value = self.expr(side, inner)
                sides.append((*inner, s.Assign(name, value, e.loc)))
            out.append(s.If(test, sides[0], sides[1], e.loc))
            return s.Local(name, e.loc, e.ctype)
        if isinstance(e, s.Unary | s.Cast):
            return replace(e, operand=self.expr(e.operand, out))
        if isinstance(e, s.Choose):
            return replace(e, options=tuple(self.ordered(list(e.options), out)))
        return e

    def named(self, value: s.Expr, out: list[s.Stmt]) -> s.Local:
        name = self.temp(value)
        out.append(s.Assign(name, value, value.loc))
        return s.Local(name, value.loc, getattr(value, "ctype", None))

    def short(self, e: s.Binary, out: list[s.Stmt]) -> s.Expr:
        left = self.expr(e.left, out)
        if not self.cuts_in(e.right):
            return replace(e, left=left)
        name = self.temp(e)
        inner: list[s.Stmt] = []
        right = self.expr(e.right, inner)
        here = s.Local(name, e.loc, e.ctype)
        test: s.Expr = here if e.op == "and" else s.Unary("not", here, e.loc)
        out += [s.Assign(name, left, e.loc), s.If(test, (*inner, s.Assign(name, right, e.loc)), (), e.loc)]
        return here

    def loop(self, x: s.While, out: list[s.Stmt]) -> None:
        body, step = self.block(x.body), self.block(x.step)
        if not self.cuts_in(x.test):
            out.append(replace(x, body=body, step=step))
            return
        needed: list[s.Stmt] = []
        test = self.expr(x.test, needed)
        leave = s.If(s.Unary("not", test, x.loc), (s.Break(x.loc),), (), x.loc)
        if x.test_last:
            out.append(s.While(s.Const(True, x.loc), body, (*step, *needed, leave), x.loc))
        else:
            out.append(s.While(s.Const(True, x.loc), (*needed, leave, *body), step, x.loc))

    def walk(self, x: s.For, out: list[s.Stmt]) -> None:
        """``for v in ring(U, after=e)`` with a cut inside: the place in the ring is ``v`` and where it ends."""
        after = self.expr(x.after, out) if x.after is not None else None
        if not self.has_cut(x.body):
            out.append(replace(x, after=after, body=self.block(x.body)))
            return
        after = self.keep(after, out)
        size = self.sizes[x.universe]
        here, last = s.Local(x.name, x.loc), s.Const(size - 1, x.loc)
        first: list[s.Stmt] = []
        end: s.Expr = last
        if after is not None:
            end = s.Local(self.ring_end(x.name), x.loc)
            none = s.Binary("==", after, s.Const(s.NULL_CODE, x.loc), x.loc)
            first = [s.Assign(end.name, s.Cond(none, last, after, x.loc), x.loc)]

        def following(e: s.Expr) -> s.Expr:
            wraps = s.Binary("==", e, last, x.loc)
            return s.Cond(wraps, s.Const(0, x.loc), s.Binary("+", e, s.Const(1, x.loc), x.loc), x.loc)

        ends = s.If(s.Binary("==", here, end, x.loc), (s.Break(x.loc),), (), x.loc)
        out += [*first, s.Assign(x.name, following(end), x.loc),
                s.While(s.Const(True, x.loc), self.block(x.body),
                        (ends, s.Assign(x.name, following(here), x.loc)), x.loc)]

    def ring_end(self, name: str) -> str:
        """The local for the object that a ring ends with, which is never NULL."""
        from schedproof.model.domains import Pointer  # here, for it needs this package

        made, domain = self.temp(), self.domains.get(name)
        if isinstance(domain, Pointer):
            self.domains[made] = Pointer(domain.target, null=False)
        return made


# ------------------------------------------------------------------------------------------------- liveness
def live_after(program: s.Program, is_site: Callable[[s.Stmt], bool]) -> dict[int, frozenset[str]]:
    """For each site of a program (by identity of its statement) the locals that are read after it.

    At a call that cuts, the local that takes the result is not among them.
    """
    found: dict[int, frozenset[str]] = {}
    _live(program.body, frozenset(), (frozenset(), frozenset()), found, is_site)
    return found


def _reads(x: s.Stmt) -> frozenset[str]:
    return frozenset(e.name for e in s.expressions(x) if isinstance(e, s.Local))


def _live(body: tuple[s.Stmt, ...], after: frozenset[str], jumps: tuple[frozenset[str], frozenset[str]],
          found: dict[int, frozenset[str]], is_site: Callable[[s.Stmt], bool]) -> frozenset[str]:
    """Backwards over a block; ``jumps`` is what lives after a break and after a continue."""
    live = after
    for x in reversed(body):
        if isinstance(x, s.Assign):
            live = live - {x.name}
        if is_site(x):
            waits = _reads(x) if isinstance(x, s.Cut) else frozenset()
            found[id(x)] = live | waits
        if isinstance(x, s.If):
            live = (_live(x.then, live, jumps, found, is_site) | _live(x.orelse, live, jumps, found, is_site)
                    | _reads(x))
        elif isinstance(x, s.While):
            live = _live_loop(x.body, x.step, _reads(x), live, found, is_site)
        elif isinstance(x, s.For):
            live = _live_loop(x.body, (), _reads(x), live, found, is_site) - {x.name} | _reads(x)
        elif isinstance(x, s.Break):
            live = jumps[0]
        elif isinstance(x, s.Continue):
            live = jumps[1]
        elif isinstance(x, s.Return):
            live = _reads(x)
        else:
            live = live | _reads(x)
    return live


def _live_loop(body: tuple[s.Stmt, ...], step: tuple[s.Stmt, ...], test: frozenset[str], after: frozenset[str],
               found: dict[int, frozenset[str]], is_site: Callable[[s.Stmt], bool]) -> frozenset[str]:
    live = after | test
    while True:
        at_step = _live(step, live, (after, live), found, is_site)
        before = _live(body, at_step, (after, at_step), found, is_site) | test | after
        if before <= live:
            return live
        live |= before
