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
import itertools
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from schedproof.errors import ModelError
from schedproof.lang import syntax as s
from schedproof.lang.scope import Scope
from schedproof.lang.source import as_load, display
from schedproof.model.domains import NULL, Bool, Domain, Enum, Int, Pointer, Range, Values

COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
              ast.LShift: "<<", ast.RShift: ">>"}

Kind = str | Domain | None      # "bool", "int", "ptr:UNIVERSE" or the domain that the value comes from


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


@dataclass
class _Typed:
    expr: s.Expr
    kind: Kind = None


def _acts(expressions: Iterable[s.Expr]) -> bool:
    """Whether evaluating these may change something, or give something else the next time."""
    return any(isinstance(e, s.Call | s.Choose) for x in expressions for e in s.expressions(x))


def _stored(node: ast.AST) -> frozenset[str]:
    """The names that are assigned somewhere in a node; the variables of comprehensions are others."""
    own = {n for g in ast.walk(node) if isinstance(g, ast.comprehension) for n in ast.walk(g.target)}
    return frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
                     and n not in own)


def _calls(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) for n in ast.walk(node))


def _is_pointer(kind: Kind) -> bool:
    return isinstance(kind, Pointer) or (isinstance(kind, str) and kind.startswith("ptr:"))


class _Front:
    def __init__(self, function: Callable[..., Any], scope: Scope, file: str, first: int, node: ast.FunctionDef):
        self.scope, self.file, self.offset, self.node = scope, file, first - 1, node
        self.globals = function.__globals__
        closure = inspect.getclosurevars(function).nonlocals
        self.names = {**self.globals, **closure}
        args = [a.arg for a in node.args.args]
        if node.args.vararg or node.args.kwonlyargs or node.args.kwarg or node.args.defaults:
            self.fail(node, "parameters must be plain", "write f(self, a, b)")
        self.me = args[0] if args and args[0] in ("self", "m") else None
        self.params = tuple(args[1:] if self.me else args)
        self.kinds: dict[str, Kind] = {}
        self.fixed: dict[str, Domain] = {}
        self.fresh = itertools.count()
        self.pre: list[s.Stmt] = []
        mark = getattr(function, "_schedproof_mark", None)
        per = mark.per if mark else ()
        self.given = {p: f"ptr:{scope.universe_of(o)}" for p, o in zip(self.params, per, strict=False)}
        self.kinds.update(self.given)
        for a in node.args.args:
            if a.annotation is not None and a.arg in self.params:
                self.annotate(a.arg, a.annotation)

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

    # ------------------------------------------------------------------------------------------- helpers
    def loc(self, node: ast.AST) -> s.Loc:
        return s.Loc(self.file, self.offset + getattr(node, "lineno", 1))

    def fail(self, node: ast.AST, what: str, hint: str = "") -> NoReturn:
        raise ModelError(what, self.file, self.loc(node).line, hint)

    def domain(self, kind: Kind) -> Domain | None:
        if isinstance(kind, Domain):
            return kind
        if kind == "bool":
            return Bool()
        if kind and kind.startswith("ptr:"):
            return Pointer(self.scope.objects[kind[4:]])
        return None

    def annotate(self, name: str, node: ast.expr) -> None:
        """``v: vcpu`` or ``n: Range(0, 3)``: the domain of a local that has to survive a cut."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = ast.parse(node.value, mode="eval").body
        if isinstance(node, ast.Name) and node.id in self.scope.objects:
            self.fixed[name], self.kinds[name] = Pointer(self.scope.objects[node.id]), f"ptr:{node.id}"
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Range", "Bool", "Enum"):
            try:
                values = [ast.literal_eval(a) for a in node.args]
            except ValueError:
                self.fail(node, f"`{ast.unparse(node)}` is not written out", "write the numbers or names themselves")
            made: Domain = {"Range": Range, "Bool": Bool, "Enum": Enum}[node.func.id](*values)
            self.fixed[name] = self.kinds[name] = made

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

    def temp(self) -> str:
        return f"__t{next(self.fresh)}"

    # ---------------------------------------------------------------------------------------- statements
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
            case ast.AugAssign(target=ast.Subscript(slice=index) as target) if _calls(index):
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

    def note(self, name: str, kind: Kind) -> None:
        if kind is not None and self.kinds.get(name) is None:
            self.kinds[name] = kind

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
        if name in set().union(*(_stored(x) for x in body)):
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

    # --------------------------------------------------------------------------------------- expressions
    def kept(self, typed: _Typed) -> _Typed:
        """A value that is to be evaluated here and once, in a local."""
        name = self.temp()
        self.kinds[name] = typed.kind
        self.pre.append(s.Assign(name, typed.expr, typed.expr.loc))
        return _Typed(s.Local(name, typed.expr.loc), typed.kind)

    def once(self, typed: _Typed) -> _Typed:
        """A value that is used more than once: in a local, unless evaluating it again gives the same."""
        return self.kept(typed) if _acts((typed.expr,)) else typed

    def several(self, nodes: list[ast.expr], once: bool = False) -> list[_Typed]:
        """Operands from left to right: where one needs statements before it, those on its left come before these."""
        done: list[_Typed] = []
        for node in nodes:
            outer, self.pre = self.pre, []
            typed = self.expr(node)
            if once:
                typed = self.once(typed)
            needed, self.pre = self.pre, outer
            acts = _acts(e for x in s.statements(tuple(needed)) for e in s.own_expressions(x))
            for i, other in enumerate(done):
                if needed and (_acts((other.expr,)) or (acts and not isinstance(other.expr, s.Const | s.Local))):
                    done[i] = self.kept(other)
            self.pre += needed
            done.append(typed)
        return done

    def truth(self, node: ast.expr) -> s.Expr:
        typed = self.junction(node, node.values) if isinstance(node, ast.BoolOp) else self.expr(node)
        if _is_pointer(typed.kind):
            self.fail(node, f"`{ast.unparse(node)}` is a pointer, not a condition", "compare it with NULL")
        if isinstance(typed.kind, Enum):
            self.fail(node, f"`{ast.unparse(node)}` is an enumerator, not a condition", "compare it with a name")
        return typed.expr

    def universe(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self.me:
            return node.attr if node.attr in self.scope.objects else None
        return None

    def declared(self, name: str) -> Any:
        sc = self.scope
        return sc.variables.get(name) or sc.links.get(name) or sc.constants.get(name)

    def pointed(self, kind: Kind) -> str:
        """The universe that a pointer of this kind points into; empty for what is none."""
        if isinstance(kind, Pointer):
            return self.scope.universe_of(kind.target)
        return kind[4:] if isinstance(kind, str) and kind.startswith("ptr:") else ""

    def place(self, node: ast.expr) -> tuple[str, s.Expr | None]:
        match node:
            case ast.Attribute(value=ast.Name(id=me), attr=name) if me == self.me:
                return name, None
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=me), attr=name), slice=index) if me == self.me:
                typed, declared = self.expr(index), getattr(self.declared(name), "per", None)
                wanted, given = declared and self.scope.universe_of(declared), self.pointed(typed.kind)
                if wanted and given and wanted != given:
                    self.fail(node, f"`{ast.unparse(index)}` is an object of {given}, and `{name}` belongs to {wanted}",
                              f"write self.{name}[object of {wanted}]")
                return name, typed.expr
        self.fail(node, f"`{ast.unparse(node)}` is not a state variable", "write self.name or self.name[object]")

    def expr(self, node: ast.expr) -> _Typed:
        loc = self.loc(node)
        match node:
            case ast.Constant(value=bool() | int() as value):
                return _Typed(s.Const(value, loc), "bool" if isinstance(value, bool) else "int")
            case ast.Constant(value=str() as word):
                if word not in self.scope.codes:
                    self.fail(node, f"'{word}' is no value of any Enum or Switch of this model", self.near(word))
                return _Typed(s.Const(self.scope.codes[word], loc), None)
            case ast.Name(id=name):
                return self.name(node, name)
            case ast.Attribute() | ast.Subscript():
                return self.access(node)
            case ast.BoolOp(values=values):
                return self.junction(node, values, value=True)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _Typed(s.Unary("not", self.truth(operand), loc), "bool")
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return _Typed(s.Unary("-", self.expr(operand).expr, loc), "int")
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
                a, b = self.several([left, right])
                for one, operand in ((a, left), (b, right)):
                    if _is_pointer(one.kind) or isinstance(one.kind, Enum):
                        self.fail(node, f"`{ast.unparse(operand)}` is a pointer or an enumerator, not a number",
                                  "there is no arithmetic with these")
                return _Typed(s.Binary(ARITHMETIC[type(op)], a.expr, b.expr, loc), "int")
            case ast.BinOp(op=ast.FloorDiv() | ast.Div() | ast.Mod()):
                self.fail(node, "Python's division rounds down, C's towards zero", "write cdiv(a, b) or cmod(a, b)")
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                return self.compare(node, [left, *comparators], ops, loc)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.conditional(test, body, orelse, loc)
            case ast.Call():
                return self.call(node, loc)
        self.fail(node, f"`{ast.unparse(node)[:60]}` is outside the subset",
                  "see docs/models.md for what a method may contain")

    def near(self, word: str) -> str:
        import difflib

        close = difflib.get_close_matches(word, self.scope.codes, 1)
        return f"did you mean '{close[0]}'?" if close else "declare it in an Enum or a Switch"

    def name(self, node: ast.expr, name: str) -> _Typed:
        loc = self.loc(node)
        if name in self.params or name in self.kinds or name in self.assigned():
            return _Typed(s.Local(name, loc), self.kinds.get(name))
        value = self.names.get(name)
        if value is NULL:
            return _Typed(s.Const(s.NULL_CODE, loc), None)
        if isinstance(value, (bool, int)):
            return _Typed(s.Const(value, loc), "bool" if isinstance(value, bool) else "int")
        self.fail(node, f"`{name}` is not a local, a parameter or a constant of the module")

    def assigned(self) -> frozenset[str]:
        if not hasattr(self, "_assigned"):
            self._assigned = _stored(self.node)
        return self._assigned

    def access(self, node: ast.Attribute | ast.Subscript) -> _Typed:
        loc = self.loc(node)
        match node:
            case ast.Attribute(value=inner, attr=name) if (which := self.universe(inner)) is not None:
                known = self.scope.objects[which].names
                if name not in known:
                    self.fail(node, f"{which} has no object `{name}`", f"one of {', '.join(map(str, known))}")
                return _Typed(s.Const(known.index(name), loc), f"ptr:{which}")
            case ast.Subscript(value=inner, slice=ast.Constant(value=int() as number)) if (
                    (which := self.universe(inner)) is not None):
                return _Typed(s.Const(number, loc), f"ptr:{which}")
        name, index = self.place(node)
        sc = self.scope
        if name in sc.variables:
            domain = sc.variables[name]
            self.arity(node, name, domain.per, index)
            kind: Kind = "bool" if isinstance(domain, Bool) else "int" if isinstance(domain, Int) else domain
            return _Typed(s.Load(name, index, loc), kind)
        if name in sc.links:
            self.arity(node, name, sc.links[name].per, index)
            return _Typed(s.Load(name, index, loc), f"ptr:{sc.universe_of(sc.links[name].target)}")
        if name in sc.constants:
            self.arity(node, name, sc.constants[name].per, index)
            return _Typed(s.Load(name, index, loc), "int")
        if name in sc.switches:
            boolean = all(isinstance(v, bool) for v in sc.switches[name].values)
            return _Typed(s.Load(name, None, loc), "bool" if boolean else None)
        if name in sc.params:
            return _Typed(s.Load(name, None, loc), "int")
        self.fail(node, f"the model has no `{name}`")

    def arity(self, node: ast.expr, name: str, per: Any, index: s.Expr | None) -> None:
        if (per is None) != (index is None):
            self.fail(node, f"`{name}` is {'one variable' if per is None else 'one variable an object'}",
                      f"write self.{name}" + ("" if per is None else "[object]"))

    def guarded(self, node: ast.expr, truth: bool) -> tuple[_Typed, list[s.Stmt]]:
        """An expression, and the statements it needs, kept apart: they may run only where it is evaluated."""
        outer, self.pre = self.pre, []
        typed = _Typed(self.truth(node), "bool") if truth else self.expr(node)
        needed, self.pre = self.pre, outer
        return typed, needed

    def junction(self, node: ast.expr, values: list[ast.expr], value: bool = False) -> _Typed:
        """``and`` and ``or``. Where the ``value`` is asked for, numbers would give another one than Python's."""
        loc, op = self.loc(node), "and" if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) else "or"
        result = self.truth(values[0])
        for operand in values if value else ():
            if isinstance(operand, ast.Attribute | ast.Subscript | ast.Constant | ast.BinOp | ast.Name):
                kind = self.guarded(operand, False)[0].kind
                if kind == "int" or isinstance(kind, Range | Values):
                    self.fail(node, f"`{op}` gives a truth value here, not `{ast.unparse(operand)}`",
                              "compare with 0, or write x if x != 0 else y")
        for right in values[1:]:
            typed, needed = self.guarded(right, True)
            if needed:
                name = self.temp()
                self.kinds[name] = "bool"
                test = s.Local(name, loc) if op == "and" else s.Unary("not", s.Local(name, loc), loc)
                self.pre += [s.Assign(name, result, loc),
                             s.If(test, (*needed, s.Assign(name, typed.expr, loc)), (), loc)]
                result = s.Local(name, loc)
            else:
                result = s.Binary(op, result, typed.expr, loc)
        return _Typed(result, "bool")

    def conditional(self, test: ast.expr, body: ast.expr, orelse: ast.expr, loc: s.Loc) -> _Typed:
        condition = self.truth(test)
        (then, before), (other, after) = self.guarded(body, False), self.guarded(orelse, False)
        kind = then.kind if then.kind is not None else other.kind
        if not before and not after:
            return _Typed(s.Cond(condition, then.expr, other.expr, loc), kind)
        name = self.temp()
        self.note(name, kind)
        self.pre.append(s.If(condition, (*before, s.Assign(name, then.expr, loc)),
                             (*after, s.Assign(name, other.expr, loc)), loc))
        return _Typed(s.Local(name, loc), kind)

    def compare(self, node: ast.Compare, sides: list[ast.expr], ops: list[ast.cmpop], loc: s.Loc) -> _Typed:
        typed = self.several(sides, once=len(sides) > 2)
        out: s.Expr | None = None
        for i, op in enumerate(ops):
            if isinstance(op, (ast.In, ast.NotIn, ast.Is, ast.IsNot)):
                self.fail(node, f"`{ast.unparse(node)}` is outside the subset", "compare with == or !=")
            self.check_names(sides[i], typed[i], sides[i + 1], typed[i + 1])
            one = s.Binary(COMPARISONS[type(op)], typed[i].expr, typed[i + 1].expr, loc)
            out = one if out is None else s.Binary("and", out, one, loc)
        assert out is not None
        return _Typed(out, "bool")

    def check_names(self, left: ast.expr, a: _Typed, right: ast.expr, b: _Typed) -> None:
        """What is compared with something that it never is: a slip of the pen."""
        one, two = self.pointed(a.kind), self.pointed(b.kind)
        if one and two and one != two:
            self.fail(left, f"`{ast.unparse(left)}` is an object of {one}, `{ast.unparse(right)}` one of {two}",
                      "these are never the same object")
        for (x, node), other in (((a, left), right), ((b, right), left)):
            if isinstance(other, ast.Constant) and isinstance(other.value, str):
                allowed: tuple[Any, ...] | None = x.kind.names if isinstance(x.kind, Enum) else None
                if isinstance(node, ast.Attribute) and node.attr in self.scope.switches:
                    allowed = self.scope.switches[node.attr].values
                if allowed is not None and other.value not in allowed:
                    self.fail(other, f"`{ast.unparse(node)}` is never '{other.value}'",
                              f"one of {', '.join(map(str, allowed))}")

    # ---------------------------------------------------------------------------------------------- calls
    def call(self, node: ast.Call, loc: s.Loc) -> _Typed:
        if node.keywords:
            self.fail(node, "keyword arguments are outside the subset", "pass arguments in order")
        match node.func:
            case ast.Attribute(value=ast.Name(id=me), attr=name) if me == self.me and me is not None:
                if name not in self.scope.methods:
                    self.fail(node, f"the model has no method `{name}`")
                return _Typed(s.Call(name, tuple(a.expr for a in self.several(node.args)), loc), self.result(name))
            case ast.Name(id=name):
                return self.word(node, name, loc)
        self.fail(node, f"cannot call `{ast.unparse(node.func)}`", "call a method of the model")

    def result(self, name: str) -> Kind:
        """What a method returns, as far as its annotation or name tells."""
        wanted = getattr(self.scope.methods.get(name) or self.names.get(name), "__annotations__", {}).get("return")
        if wanted in (bool, "bool"):
            return "bool"
        return f"ptr:{wanted}" if isinstance(wanted, str) and wanted in self.scope.objects else None

    def word(self, node: ast.Call, name: str, loc: s.Loc) -> _Typed:
        args = node.args
        match name, args:
            case ("max" | "min"), [_, _, *_]:
                values = [a.expr for a in self.several(args, once=True)]
                result = values[0]
                for value in values[1:]:
                    test = s.Binary(">=" if name == "max" else "<=", result, value, loc)
                    result = s.Cond(test, result, value, loc)
                return _Typed(result, "int")
            case "abs", [x]:
                value = self.once(self.expr(x)).expr
                negative = s.Binary("<", value, s.Const(0, loc), loc)
                return _Typed(s.Cond(negative, s.Unary("-", value, loc), value, loc), "int")
            case "bool", [x]:
                return _Typed(self.truth(x), "bool")
            case "int", [x]:
                return _Typed(s.Cond(self.truth(x), s.Const(1, loc), s.Const(0, loc), loc), "int")
            case ("cdiv" | "cmod"), [a, b]:
                op = "/" if name == "cdiv" else "%"
                left, right = self.several([a, b])
                return _Typed(s.Binary(op, left.expr, right.expr, loc), "int")
            case "implies", [a, b]:
                return self.junction(node, [ast.copy_location(ast.UnaryOp(ast.Not(), a), a), b])
            case "choose", [x] if (which := self.universe(x)) is not None:
                return _Typed(s.Choose((), (), which, loc), f"ptr:{which}")
            case "choose", [_, _, *_]:
                typed = self.several(args)
                labels = tuple(ast.unparse(a).split(".")[-1].strip("'") for a in args)
                kind = next((t.kind for t in typed if t.kind is not None), None)
                return _Typed(s.Choose(tuple(t.expr for t in typed), labels, "", loc), kind)
            case ("any" | "all" | "sum"), [ast.GeneratorExp(elt=element, generators=[generator])]:
                return self.quantifier(node, name, element, generator, loc)
        helper = self.names.get(name)
        if inspect.isfunction(helper) and helper.__module__ != "schedproof.model.actions":
            if name in self.scope.methods and self.scope.methods[name] is not helper:
                self.fail(node, f"`{name}` is a function of the module and a method", "give one of them another name")
            return _Typed(s.Call(name, tuple(a.expr for a in self.several(args)), loc), self.result(name))
        self.fail(node, f"cannot call `{name}` like this")

    def quantifier(self, node: ast.Call, name: str, element: ast.expr, generator: ast.comprehension,
                   loc: s.Loc) -> _Typed:
        which = self.universe(generator.iter)
        if which is None or not isinstance(generator.target, ast.Name):
            self.fail(node, f"{name}(…) must go over a declared Object", f"write {name}(f(x) for x in self.vcpu)")
        target = generator.target.id
        if target in self.params or target in self.assigned():         # a local of the method: this is another one
            own = f"{target}{self.temp()}"
            for part in (element, *generator.ifs):
                for x in ast.walk(part):
                    if isinstance(x, ast.Name) and x.id == target:
                        x.id = own
            target = own
        self.kinds[target] = f"ptr:{which}"
        result = self.temp()
        start: int | bool = 0 if name == "sum" else name == "all"
        self.kinds[result] = "int" if name == "sum" else "bool"
        value, needed = self.guarded(element, name != "sum")
        current = s.Local(result, loc)
        update = s.Binary({"sum": "+", "all": "and", "any": "or"}[name], current, value.expr, loc)
        body: tuple[s.Stmt, ...] = (*needed, s.Assign(result, update, loc))
        for test in reversed(generator.ifs):
            condition, before = self.guarded(test, True)
            body = (*before, s.If(condition.expr, body, (), loc))
        self.pre += [s.Assign(result, s.Const(start, loc), loc), s.For(target, which, None, body, loc)]
        return _Typed(current, self.kinds[result])
