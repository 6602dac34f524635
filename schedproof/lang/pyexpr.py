# SPDX-License-Identifier: GPL-2.0-only
"""The front end for Python, expressions: what they become, what kind of value they have, what must come before them."""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from schedproof.errors import ModelError
from schedproof.lang import syntax as s
from schedproof.lang.scope import Scope
from schedproof.lang.source import returned_fields
from schedproof.model.domains import NULL, Bool, Domain, Enum, Int, Link, Pointer, Range, Values

COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
              ast.LShift: "<<", ast.RShift: ">>"}

Kind = str | Domain | None      # "bool", "int", "ptr:UNIVERSE" or the domain that the value comes from


@dataclass
class Typed:
    expr: s.Expr
    kind: Kind = None


def acts(expressions: Iterable[s.Expr]) -> bool:
    """Whether evaluating these may change something, or give something else the next time."""
    return any(isinstance(e, s.Call | s.Choose) for x in expressions for e in s.expressions(x))


def stored_names(node: ast.AST) -> frozenset[str]:
    """The names that are assigned somewhere in a node; the variables of comprehensions are others."""
    own = {n for g in ast.walk(node) if isinstance(g, ast.comprehension) for n in ast.walk(g.target)}
    return frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
                     and n not in own)


def has_calls(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) for n in ast.walk(node))


def is_pointer(kind: Kind) -> bool:
    return isinstance(kind, Pointer) or (isinstance(kind, str) and kind.startswith("ptr:"))


class Expressions:
    """Lowers the expressions of one function."""

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

    def temp(self) -> str:
        return f"__t{next(self.fresh)}"

    def note(self, name: str, kind: Kind) -> None:
        if kind is not None and self.kinds.get(name) is None:
            self.kinds[name] = kind

    def kept(self, typed: Typed) -> Typed:
        """A value that is to be evaluated here and once, in a local."""
        name = self.temp()
        self.kinds[name] = typed.kind
        self.pre.append(s.Assign(name, typed.expr, typed.expr.loc))
        return Typed(s.Local(name, typed.expr.loc), typed.kind)

    def once(self, typed: Typed) -> Typed:
        """A value that is used more than once: in a local, unless evaluating it again gives the same."""
        return self.kept(typed) if acts((typed.expr,)) else typed

    def several(self, nodes: list[ast.expr], once: bool = False) -> list[Typed]:
        """Operands from left to right: where one needs statements before it, those on its left come before these."""
        done: list[Typed] = []
        for node in nodes:
            outer, self.pre = self.pre, []
            typed = self.expr(node)
            if once:
                typed = self.once(typed)
            needed, self.pre = self.pre, outer
            changes = acts(e for x in s.statements(tuple(needed)) for e in s.own_expressions(x))
            for i, other in enumerate(done):
                if needed and (acts((other.expr,)) or (changes and not isinstance(other.expr, s.Const | s.Local))):
                    done[i] = self.kept(other)
            self.pre += needed
            done.append(typed)
        return done

    def truth(self, node: ast.expr) -> s.Expr:
        typed = self.junction(node, node.values) if isinstance(node, ast.BoolOp) else self.expr(node)
        if is_pointer(typed.kind):
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

    def expr(self, node: ast.expr) -> Typed:
        loc = self.loc(node)
        match node:
            case ast.Constant(value=bool() | int() as value):
                return Typed(s.Const(value, loc), "bool" if isinstance(value, bool) else "int")
            case ast.Constant(value=str() as word):
                if word not in self.scope.codes:
                    self.fail(node, f"'{word}' is no value of any Enum or Switch of this model", self.near(word))
                return Typed(s.Const(self.scope.codes[word], loc), None)
            case ast.Name(id=name):
                return self.name(node, name)
            case ast.Attribute() | ast.Subscript():
                return self.access(node)
            case ast.BoolOp(values=values):
                return self.junction(node, values, value=True)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Typed(s.Unary("not", self.truth(operand), loc), "bool")
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Typed(s.Unary("-", self.expr(operand).expr, loc), "int")
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
                a, b = self.several([left, right])
                for one, operand in ((a, left), (b, right)):
                    if is_pointer(one.kind) or isinstance(one.kind, Enum):
                        self.fail(node, f"`{ast.unparse(operand)}` is a pointer or an enumerator, not a number",
                                  "there is no arithmetic with these")
                return Typed(s.Binary(ARITHMETIC[type(op)], a.expr, b.expr, loc), "int")
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

    def name(self, node: ast.expr, name: str) -> Typed:
        loc = self.loc(node)
        if name in self.params or name in self.kinds or name in self.assigned():
            return Typed(s.Local(name, loc), self.kinds.get(name))
        value = self.names.get(name)
        if value is NULL:
            return Typed(s.Const(s.NULL_CODE, loc), None)
        if isinstance(value, (bool, int)):
            return Typed(s.Const(value, loc), "bool" if isinstance(value, bool) else "int")
        self.fail(node, f"`{name}` is not a local, a parameter or a constant of the module")

    def assigned(self) -> frozenset[str]:
        if not hasattr(self, "_assigned"):
            self._assigned = stored_names(self.node)
        return self._assigned

    def access(self, node: ast.Attribute | ast.Subscript) -> Typed:
        loc = self.loc(node)
        match node:
            case ast.Attribute(value=inner, attr=name) if (which := self.universe(inner)) is not None:
                known = self.scope.objects[which].names
                if name not in known:
                    self.fail(node, f"{which} has no object `{name}`", f"one of {', '.join(map(str, known))}")
                return Typed(s.Const(known.index(name), loc), f"ptr:{which}")
            case ast.Subscript(value=inner, slice=ast.Constant(value=int() as number)) if (
                    (which := self.universe(inner)) is not None):
                return Typed(s.Const(number, loc), f"ptr:{which}")
        name, index = self.place(node)
        sc = self.scope
        if name in sc.variables:
            domain = sc.variables[name]
            self.arity(node, name, domain.per, index)
            kind: Kind = "bool" if isinstance(domain, Bool) else "int" if isinstance(domain, Int) else domain
            return Typed(s.Load(name, index, loc), kind)
        if name in sc.links:
            self.arity(node, name, sc.links[name].per, index)
            return Typed(s.Load(name, index, loc), f"ptr:{sc.universe_of(sc.links[name].target)}")
        if name in sc.constants:
            self.arity(node, name, sc.constants[name].per, index)
            return Typed(s.Load(name, index, loc), "int")
        if name in sc.switches:
            boolean = all(isinstance(v, bool) for v in sc.switches[name].values)
            return Typed(s.Load(name, None, loc), "bool" if boolean else None)
        if name in sc.params:
            return Typed(s.Load(name, None, loc), "int")
        self.fail(node, f"the model has no `{name}`")

    def arity(self, node: ast.expr, name: str, per: Any, index: s.Expr | None) -> None:
        if (per is None) != (index is None):
            self.fail(node, f"`{name}` is {'one variable' if per is None else 'one variable an object'}",
                      f"write self.{name}" + ("" if per is None else "[object]"))

    def guarded(self, node: ast.expr, truth: bool) -> tuple[Typed, list[s.Stmt]]:
        """An expression, and the statements it needs, kept apart: they may run only where it is evaluated."""
        outer, self.pre = self.pre, []
        typed = Typed(self.truth(node), "bool") if truth else self.expr(node)
        needed, self.pre = self.pre, outer
        return typed, needed

    def junction(self, node: ast.expr, values: list[ast.expr], value: bool = False) -> Typed:
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
        return Typed(result, "bool")

    def conditional(self, test: ast.expr, body: ast.expr, orelse: ast.expr, loc: s.Loc) -> Typed:
        condition = self.truth(test)
        (then, before), (other, after) = self.guarded(body, False), self.guarded(orelse, False)
        kind = then.kind if then.kind is not None else other.kind
        if not before and not after:
            return Typed(s.Cond(condition, then.expr, other.expr, loc), kind)
        name = self.temp()
        self.note(name, kind)
        self.pre.append(s.If(condition, (*before, s.Assign(name, then.expr, loc)),
                             (*after, s.Assign(name, other.expr, loc)), loc))
        return Typed(s.Local(name, loc), kind)

    def compare(self, node: ast.Compare, sides: list[ast.expr], ops: list[ast.cmpop], loc: s.Loc) -> Typed:
        typed = self.several(sides, once=len(sides) > 2)
        out: s.Expr | None = None
        for i, op in enumerate(ops):
            if isinstance(op, (ast.In, ast.NotIn, ast.Is, ast.IsNot)):
                self.fail(node, f"`{ast.unparse(node)}` is outside the subset", "compare with == or !=")
            self.check_names(sides[i], typed[i], sides[i + 1], typed[i + 1])
            one = s.Binary(COMPARISONS[type(op)], typed[i].expr, typed[i + 1].expr, loc)
            out = one if out is None else s.Binary("and", out, one, loc)
        assert out is not None
        return Typed(out, "bool")

    def check_names(self, left: ast.expr, a: Typed, right: ast.expr, b: Typed) -> None:
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

    def call(self, node: ast.Call, loc: s.Loc) -> Typed:
        if node.keywords:
            self.fail(node, "keyword arguments are outside the subset", "pass arguments in order")
        match node.func:
            case ast.Attribute(value=ast.Name(id=me), attr=name) if me == self.me and me is not None:
                if name not in self.scope.methods:
                    self.fail(node, f"the model has no method `{name}`")
                return Typed(s.Call(name, tuple(a.expr for a in self.several(node.args)), loc), self.result(name))
            case ast.Name(id=name):
                return self.word(node, name, loc)
        self.fail(node, f"cannot call `{ast.unparse(node.func)}`", "call a method of the model")

    def result(self, name: str) -> Kind:
        """What a method returns, as far as its annotation or name tells."""
        wanted = getattr(self.scope.methods.get(name) or self.names.get(name), "__annotations__", {}).get("return")
        if wanted in (bool, "bool"):
            return "bool"
        if isinstance(wanted, str) and wanted in self.scope.objects:
            return f"ptr:{wanted}"
        fields = returned_fields(self.scope.methods[name]) if name in self.scope.methods else ()
        found = next((d for f in fields for d in (self.scope.variables.get(f), self.scope.links.get(f)) if d), None)
        if isinstance(found, Link):
            return f"ptr:{self.scope.universe_of(found.target)}"
        return found if isinstance(found, Pointer) else None

    def word(self, node: ast.Call, name: str, loc: s.Loc) -> Typed:
        args = node.args
        match name, args:
            case ("max" | "min"), [_, _, *_]:
                values = [a.expr for a in self.several(args, once=True)]
                result = values[0]
                for value in values[1:]:
                    test = s.Binary(">=" if name == "max" else "<=", result, value, loc)
                    result = s.Cond(test, result, value, loc)
                return Typed(result, "int")
            case "abs", [x]:
                value = self.once(self.expr(x)).expr
                negative = s.Binary("<", value, s.Const(0, loc), loc)
                return Typed(s.Cond(negative, s.Unary("-", value, loc), value, loc), "int")
            case "bool", [x]:
                return Typed(self.truth(x), "bool")
            case "int", [x]:
                return Typed(s.Cond(self.truth(x), s.Const(1, loc), s.Const(0, loc), loc), "int")
            case ("cdiv" | "cmod"), [a, b]:
                op = "/" if name == "cdiv" else "%"
                left, right = self.several([a, b])
                return Typed(s.Binary(op, left.expr, right.expr, loc), "int")
            case "implies", [a, b]:
                return self.junction(node, [ast.copy_location(ast.UnaryOp(ast.Not(), a), a), b])
            case "choose", [x] if (which := self.universe(x)) is not None:
                return Typed(s.Choose((), (), which, loc), f"ptr:{which}")
            case "choose", [_, _, *_]:
                typed = self.several(args)
                labels = tuple(ast.unparse(a).split(".")[-1].strip("'") for a in args)
                kind = next((t.kind for t in typed if t.kind is not None), None)
                return Typed(s.Choose(tuple(t.expr for t in typed), labels, "", loc), kind)
            case ("any" | "all" | "sum"), [ast.GeneratorExp(elt=element, generators=[generator])]:
                return self.quantifier(node, name, element, generator, loc)
        helper = self.names.get(name)
        if inspect.isfunction(helper) and helper.__module__ != "schedproof.model.actions":
            if name in self.scope.methods and self.scope.methods[name] is not helper:
                self.fail(node, f"`{name}` is a function of the module and a method", "give one of them another name")
            return Typed(s.Call(name, tuple(a.expr for a in self.several(args)), loc), self.result(name))
        self.fail(node, f"cannot call `{name}` like this")

    def quantifier(self, node: ast.Call, name: str, element: ast.expr, generator: ast.comprehension,
                   loc: s.Loc) -> Typed:
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
        return Typed(current, self.kinds[result])
