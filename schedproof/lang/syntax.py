# SPDX-License-Identifier: GPL-2.0-only
"""The statements that Python methods and C functions are both lowered to.

Plain immutable data. Numbers are mathematical integers unless an expression carries a ``ctype`` (see
``schedproof.lang.ctypes``); then the result of the operation is reduced to that C type. Objects are their index
in their universe, ``NULL`` is -1; enumerators are codes that are unique within a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Literal

from schedproof.lang.ctypes import CType

NULL_CODE = -1


@dataclass(frozen=True, slots=True)
class Loc:
    """A place in a source file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


NOWHERE = Loc("", 0)


# ---------------------------------------------------------------------------------------------- expressions
@dataclass(frozen=True, slots=True)
class Const:
    """A number or a truth value. Enumerators and objects are already their codes."""

    value: int | bool
    loc: Loc = NOWHERE
    ctype: CType | None = None


@dataclass(frozen=True, slots=True)
class Local:
    """A local variable or a parameter."""

    name: str
    loc: Loc = NOWHERE
    ctype: CType | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """A read of a state variable, a constant link or a constant field: ``self.weight[se]``, ``se->load.weight``."""

    var: str
    index: Expr | None
    loc: Loc = NOWHERE
    ctype: CType | None = None


@dataclass(frozen=True, slots=True)
class Unary:
    """``op`` is ``not``, ``-`` or ``~``."""

    op: str
    operand: Expr
    loc: Loc = NOWHERE
    ctype: CType | None = None


@dataclass(frozen=True, slots=True)
class Binary:
    """``op`` is one of ``+ - * / % == != < <= > >= and or & | ^ << >>``.

    ``/`` and ``%`` are C's: towards zero. ``and`` and ``or`` evaluate their right side only where they must.
    """

    op: str
    left: Expr
    right: Expr
    loc: Loc = NOWHERE
    ctype: CType | None = None


@dataclass(frozen=True, slots=True)
class Cond:
    """``then if test else other``; only one side is evaluated."""

    test: Expr
    then: Expr
    other: Expr
    loc: Loc = NOWHERE
    ctype: CType | None = None


@dataclass(frozen=True, slots=True)
class Cast:
    """Conversion to a C integer type."""

    operand: Expr
    ctype: CType
    loc: Loc = NOWHERE


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a program of the model: method, or C function read from a tree."""

    name: str
    args: tuple[Expr, ...]
    loc: Loc = NOWHERE
    ctype: CType | None = None


@dataclass(frozen=True, slots=True)
class Choose:
    """Any one of the options: the adversary decides. ``labels`` name them in traces.

    With ``universe`` the options are all its objects instead.
    """

    options: tuple[Expr, ...]
    labels: tuple[str, ...] = ()
    universe: str = ""
    loc: Loc = NOWHERE
    ctype: CType | None = None


@dataclass(frozen=True, slots=True)
class Free:
    """A value that nobody declared, as of an ignored field: any value of its type. ``why`` names the field.

    ``index`` is the object that the field belongs to, where it belongs to one.
    """

    why: str
    ctype: CType
    loc: Loc = NOWHERE
    index: Expr | None = None


TRUTH = frozenset({"not", "and", "or", "==", "!=", "<", "<=", ">", ">="})      # operators that give a truth value

Expr = Const | Local | Load | Unary | Binary | Cond | Cast | Call | Choose | Free


# ----------------------------------------------------------------------------------------------- statements
@dataclass(frozen=True, slots=True)
class Assign:
    """Set a local variable."""

    name: str
    value: Expr
    loc: Loc = NOWHERE


@dataclass(frozen=True, slots=True)
class Store:
    """Write a state variable. ``joined``: the second half of one atomic access whose read came just before."""

    var: str
    index: Expr | None
    value: Expr
    loc: Loc = NOWHERE
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Do:
    """An expression for its effect."""

    value: Expr
    loc: Loc = NOWHERE


@dataclass(frozen=True, slots=True)
class If:
    test: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()
    loc: Loc = NOWHERE


@dataclass(frozen=True, slots=True)
class While:
    """``step`` runs after the body and on ``continue`` (a C ``for``). ``test_last`` makes it a ``do``."""

    test: Expr
    body: tuple[Stmt, ...]
    step: tuple[Stmt, ...] = ()
    loc: Loc = NOWHERE
    test_last: bool = False


@dataclass(frozen=True, slots=True)
class For:
    """Once for each object of a universe, in order; ``after`` rotates the order to start behind that object."""

    name: str
    universe: str
    after: Expr | None
    body: tuple[Stmt, ...]
    loc: Loc = NOWHERE


@dataclass(frozen=True, slots=True)
class Break:
    loc: Loc = NOWHERE


@dataclass(frozen=True, slots=True)
class Continue:
    loc: Loc = NOWHERE


@dataclass(frozen=True, slots=True)
class Return:
    value: Expr | None = None
    loc: Loc = NOWHERE


@dataclass(frozen=True, slots=True)
class Require:
    """The action cannot happen unless this holds here."""

    test: Expr
    loc: Loc = NOWHERE


@dataclass(frozen=True, slots=True)
class Cut:
    """End of an atomic step. The thread goes on from here in a later step, when ``until`` holds (None: at once)."""

    until: Expr | None = None
    loc: Loc = NOWHERE


Stmt = Assign | Store | Do | If | While | For | Break | Continue | Return | Require | Cut

Grain = Literal["atomic", "blocking", "access"]


@dataclass(frozen=True, slots=True)
class Program:
    """A function of either language. ``kind`` says what it stands for; ``types`` are the parameters' C types."""

    name: str
    params: tuple[str, ...]
    body: tuple[Stmt, ...]
    loc: Loc = NOWHERE
    kind: Literal["method", "kernel", "environment"] = "method"
    source: str = ""                       # the kernel file a kernel method stands for
    grain: Grain = "atomic"
    types: tuple[CType | None, ...] = ()
    result: CType | None = None
    language: Literal["python", "c"] = "python"
    domains: tuple[tuple[str, object], ...] = ()   # declared domains of locals that live across a cut
    dropped: tuple[str, ...] = field(default=(), repr=False)     # ignored fields that C writes: "stamp of struct box"
    text: str = field(default="", repr=False)      # with such writes, the text: they are no statements

    def with_body(self, body: tuple[Stmt, ...]) -> Program:
        return replace(self, body=body)


# ------------------------------------------------------------------------------------------------- walking
def blocks(statement: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The blocks directly inside a statement."""
    if isinstance(statement, If):
        return (statement.then, statement.orelse)
    if isinstance(statement, While):
        return (statement.body, statement.step)
    if isinstance(statement, For):
        return (statement.body,)
    return ()


def own_expressions(node: Stmt | Expr) -> Iterator[Expr]:
    """The expressions directly inside a statement or an expression, in order of evaluation."""
    for part in fields(node):
        value = getattr(node, part.name)
        if isinstance(value, Expr):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Expr))


def expressions(node: Stmt | Expr) -> Iterator[Expr]:
    """All expressions below a node, the node itself included when it is one, statements' blocks excluded."""
    if isinstance(node, Expr):
        yield node
    for child in own_expressions(node):
        yield from expressions(child)


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """All statements of a body, nested ones included, in order of the text."""
    for statement in body:
        yield statement
        for block in blocks(statement):
            yield from statements(block)


def calls(body: tuple[Stmt, ...]) -> frozenset[str]:
    """Names of the programs that a body calls directly."""
    return frozenset(e.name for s in statements(body) for e in expressions(s) if isinstance(e, Call))
