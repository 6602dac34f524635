# SPDX-License-Identifier: GPL-2.0-only
"""The front end for Python: a method of a model becomes a ``Program``.

The text is read through ``ast``. The subset: assignment, augmented assignment, ``if``, ``while``, ``for`` over a
universe, a ``ring`` or a constant ``range``, ``return``, ``break``, ``continue``, calls of methods and of module
functions written in the same subset, ``any``/``all``/``sum`` over a universe, and the words of
``schedproof.model.actions``. Anything else is an error with file and line when the class is made.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from schedproof.errors import ModelError
from schedproof.lang import syntax as s
from schedproof.lang.pyexpr import Expressions, has_calls, stored_names
from schedproof.lang.scope import Scope
from schedproof.lang.source import as_load, display
from schedproof.model.domains import Domain


def from_python(function: Callable[..., Any], scope: Scope) -> s.Program:
    """Lower a method of the model, or a module function that takes no model. Raises ModelError with the place."""
    function = inspect.unwrap(function)
    lines, first = inspect.getsourcelines(function)
    file = display(inspect.getsourcefile(function) or "?")
    tree = ast.parse(textwrap.dedent("".join(lines)))
    node = tree.body[0]
    if not isinstance(node, ast.FunctionDef):
        raise ModelError("only functions made with `def` can be read", file, first, "write a named function")
    return _Front(function, scope, file, first, node).program()



class _Front(Expressions):
    """Lowers one function."""

    def program(self) -> s.Program:
        body = self.block(self.node.body)
        mark = getattr(self.names.get(self.node.name), "_schedproof_mark", None)
        method = self.scope.methods.get(self.node.name) if self.me else None
        mark = getattr(method, "_schedproof_mark", mark)
        domains: dict[str, Domain] = {}
        for name, known in self.kinds.items():
            found = self.domain(known)
            if found is not None and name not in self.given:
                domains[name] = found
        kind: Any = mark.kind if mark and mark.kind in ("kernel", "environment") else "method"
        return s.Program(self.node.name, self.params, body, self.loc(self.node), kind,
                         mark.file if mark else "", mark.grain if mark else "atomic",
                         domains=tuple({**domains, **self.fixed}.items()))

    def block(self, body: list[ast.stmt]) -> tuple[s.Stmt, ...]:
        out: list[s.Stmt] = []
        for node in body:
            out += self.statement(node)
        return tuple(out)

    def hoisted(self, work: Callable[[], s.Stmt | None]) -> list[s.Stmt]:
        """The statement that ``work`` makes, behind those that its expressions needed before it."""
        outer, self.pre = self.pre, []
        made = work()
        out = [*self.pre, *([made] if made is not None else [])]
        self.pre = outer
        return out

    def statement(self, node: ast.stmt) -> list[s.Stmt]:
        loc = self.loc(node)
        match node:
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                return []
            case ast.Expr(value=ast.Call(func=ast.Name(id="require"), args=[test])):
                return self.hoisted(lambda: s.Require(self.truth(test), loc))
            case ast.Expr(value=ast.Call(func=ast.Name(id="step"), args=[])):
                return [s.Cut(None, loc)]
            case ast.Expr(value=ast.Call(func=ast.Name(id="block"), args=args, keywords=keywords)):
                tests = [*args, *(k.value for k in keywords if k.arg == "until")]
                if len(args) + len(keywords) != 1 or len(tests) != 1:
                    self.fail(node, "block takes one condition", "write block(until=…)")
                outer, self.pre = self.pre, []
                until = self.truth(tests[0])
                if self.pre:
                    self.fail(node, "the condition of block is too complicated", "put it into a method")
                self.pre = outer
                return [s.Cut(until, loc)]
            case ast.Expr(value=ast.Call()):
                return self.hoisted(lambda: s.Do(self.expr(node.value).expr, loc))
            case ast.Assign(targets=targets, value=value):
                return self.assign(targets, value, loc)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                self.annotate(name, annotation)
                return self.assign([node.target], value, loc) if value is not None else []
            case ast.AugAssign(target=ast.Subscript(slice=index) as target) if has_calls(index):
                name = self.temp()
                first = self.assign([ast.copy_location(ast.Name(name, ast.Store()), index)], index, loc)
                self.kinds.setdefault(name, None)
                target.slice = ast.copy_location(ast.Name(name, ast.Load()), index)
                return [*first, *self.statement(node)]
            case ast.AugAssign(target=target, op=op, value=value):
                load = ast.copy_location(as_load(target), target)
                both = ast.copy_location(ast.BinOp(load, op, value), node)
                return self.assign([target], both, loc)
            case ast.If(test=test, body=body, orelse=orelse):
                then, other = self.block(body), self.block(orelse)
                return self.hoisted(lambda: s.If(self.truth(test), then, other, loc))
            case ast.While(test=test, body=body, orelse=[]):
                return self.while_(test, body, loc)
            case ast.For(target=ast.Name(id=name), iter=source, body=body, orelse=[]):
                return self.for_(name, source, body, loc)
            case ast.Break():
                return [s.Break(loc)]
            case ast.Continue():
                return [s.Continue(loc)]
            case ast.Return(value=value):
                return self.hoisted(lambda: s.Return(self.expr(value).expr if value is not None else None, loc))
        self.fail(node, f"`{ast.unparse(node).splitlines()[0][:60]}` is outside the subset",
                  "see docs/models.md for what a method may contain")

    def assign(self, targets: list[ast.expr], value: ast.expr, loc: s.Loc) -> list[s.Stmt]:
        out: list[s.Stmt] = []
        for i, target in enumerate(reversed(targets)):
            source: ast.expr = value if i == 0 else as_load(targets[-i])

            def one(target: ast.expr = target, source: ast.expr = source) -> s.Stmt:
                typed = self.expr(source)
                if isinstance(target, ast.Name):
                    if target.id in self.scope_names():
                        self.fail(target, f"`{target.id}` is the name of something else", "use another local name")
                    self.note(target.id, typed.kind)
                    return s.Assign(target.id, typed.expr, loc)
                name, index = self.place(target)
                if name not in self.scope.variables:
                    self.fail(target, f"`{ast.unparse(target)}` cannot be assigned: {name} is not a state variable")
                self.arity(target, name, self.scope.variables[name].per, index)
                return s.Store(name, index, typed.expr, loc)

            out += self.hoisted(one)
        return out

    def scope_names(self) -> frozenset[str]:
        return frozenset({self.me} if self.me else ())

    def while_(self, test: ast.expr, body: list[ast.stmt], loc: s.Loc) -> list[s.Stmt]:
        outer, self.pre = self.pre, []
        condition, needed = self.truth(test), self.pre
        self.pre = outer
        inner = self.block(body)
        if not needed:
            return [s.While(condition, inner, (), loc)]
        leave = s.If(s.Unary("not", condition, loc), (s.Break(loc),), (), loc)
        return [s.While(s.Const(True, loc), (*needed, leave, *inner), (), loc)]

    def for_(self, name: str, source: ast.expr, body: list[ast.stmt], loc: s.Loc) -> list[s.Stmt]:
        if name in set().union(*(stored_names(x) for x in body)):
            self.fail(source, f"`{name}` counts this loop and is assigned in it", "use another local name")
        match source:
            case ast.Call(func=ast.Name(id="range"), args=args) if len(args) in (1, 2):
                self.kinds[name] = "int"
                inner = self.block(body)
                here, (low, high) = s.Local(name, loc), ([s.Const(0, loc), *(self.constant(a) for a in args)])[-2:]
                last = s.Binary("-", high, s.Const(1, loc), loc)
                leave = s.If(s.Binary(">=", here, last, loc), (s.Break(loc),), (), loc)
                advance = s.Assign(name, s.Binary("+", here, s.Const(1, loc), loc), loc)
                return [s.Assign(name, low, loc), s.While(s.Binary("<", here, high, loc), inner, (leave, advance), loc)]
            case ast.Call(func=ast.Name(id="ring"), args=[universe, *more], keywords=keywords):
                starts = [*more, *(k.value for k in keywords if k.arg == "after")]
                if len(more) + len(keywords) != 1 or len(starts) != 1:
                    self.fail(source, "ring takes a universe and after=", "write ring(self.vcpu, after=last)")
                start: ast.expr | None = starts[0]
            case _:
                universe, start = source, None
        which = self.universe(universe)
        if which is None:
            self.fail(source, f"cannot loop over `{ast.unparse(source)}`",
                      "loop over a declared Object, ring(…) or range(…)")
        self.kinds[name] = f"ptr:{which}"
        inner = self.block(body)
        return self.hoisted(
            lambda: s.For(name, which, self.expr(start).expr if start is not None else None, inner, loc))

    def constant(self, node: ast.expr) -> s.Expr:
        """A bound of range: a number, or a parameter or constant of the model."""
        found = self.expr(node).expr
        fixed = isinstance(found, s.Load) and (found.var in self.scope.params or found.var in self.scope.constants)
        if not isinstance(found, s.Const) and not fixed:
            self.fail(node, f"the bound `{ast.unparse(node)}` is no constant", "use while, or a number or a parameter")
        return found
