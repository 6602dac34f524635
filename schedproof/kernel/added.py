# SPDX-License-Identifier: GPL-2.0-only
"""Fields that a patch itself adds to the structs of a model: they become variables that are 0 at first.

Only what the struct has behind the patch and not before it: a field of the kernel that the model has forgotten stays
an error. Nobody but the functions that are read may set such a field, else nothing can be said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from schedproof.errors import NotExecutable
from schedproof.kernel.config import Config
from schedproof.kernel.declared import Embedded, Type, Types
from schedproof.kernel.macros import tokens
from schedproof.kernel.mentions import words
from schedproof.kernel.places import Words
from schedproof.kernel.source import Where, sources
from schedproof.kernel.touched import Touched
from schedproof.kernel.tree import Tree
from schedproof.lang import syntax as s
from schedproof.lang.ctypes import CType
from schedproof.model.domains import Bool, Domain, Int, Range, Values

_DEEPEST = 3                    # structs inside structs
_MOST = 64                      # values of a field that are told apart
_NARROW = 8                     # bits of a type all of whose values are looked at
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Added:
    """One field: ``path`` of ``struct``, of this C type, as the variable of that name."""

    struct: str
    path: str
    ctype: CType
    variable: str

    @property
    def leaf(self) -> str:
        return self.path.split(".")[-1]

    def __str__(self) -> str:
        return f"{self.path} of {self.struct} ({self.ctype})"


def added_fields(before: Tree, after: Tree, model: Any, touched: Iterable[Touched], config: Config) -> list[Added]:
    """The numbers and truth values that a patch adds to the structs of which a model has objects."""
    changed = frozenset().union(*(t.outside for t in touched))
    if not any(name.startswith(("struct ", "union ")) for name in changed):
        return []
    known = Words.of(model)
    found: list[Added] = []
    for struct in known.universes:
        if sum(o.ctype == struct for o in model.scope.objects.values()) > 1:
            continue                               # which of its universes, nobody knows
        sides = [_fields(tree, model, struct, changed, config) for tree in (before, after)]
        for path, ctype in sides[1].items():
            declared = (struct, path) in known.fields or known.vocabulary.ignored(struct, path) is not None
            if sides[0] and path not in sides[0] and not declared and isinstance(ctype, CType) and not ctype.struct \
                    and not ctype.name.endswith("*"):
                found.append(Added(struct, path, ctype, _variable(model, struct, path, found)))
    return found


def _variable(model: Any, struct: str, path: str, others: Iterable[Added]) -> str:
    name = path.replace(".", "_")
    if hasattr(model, name) or any(a.variable == name for a in others):
        name = f"{name}_of_{struct.split()[-1]}"
    while hasattr(model, name):
        name += "_"
    return name


def _fields(tree: Tree, model: Any, struct: str, changed: frozenset[str], config: Config) -> dict[str, Type]:
    """The fields of a struct by path, those of the embedded structs that differ as well; none where it is not found."""
    for file in dict.fromkeys(model.kernel_functions().values()):
        if tree.exists(file):
            types = Types(sources(tree, config), Where(file, file))
            try:
                return dict(_below(types, Embedded(struct), "", changed, 0))
            except NotExecutable:
                continue
    return {}


def _below(types: Types, struct: Embedded, prefix: str, changed: frozenset[str],
           depth: int) -> Iterator[tuple[str, Type]]:
    for name, kind in types.members(struct).items():
        yield prefix + name, kind
        if isinstance(kind, Embedded) and depth < _DEEPEST and (not kind.name or kind.name in changed):
            yield from _below(types, kind, f"{prefix}{name}.", changed, depth + 1)


def with_fields(model: Any, fields: Mapping[Added, Domain | None]) -> Any:
    """The model with these variables more. None as a domain: any value of the type, for reading alone."""
    if not fields:
        return model
    universes = {o.ctype: o for o in model.scope.objects.values()}
    members: dict[str, Any] = {"__module__": model.__module__, "__qualname__": model.__qualname__}
    for one, domain in fields.items():
        made = domain or (Bool() if one.ctype.name == "bool" else Int(init=0))
        made.per = universes.get(one.struct)
        made.c = one.path if made.per is not None else f"{one.struct}.{one.path}"
        members[one.variable] = made
    return type(model.__name__, (model,), members)


# ------------------------------------------------------------------------------------------------------- domains
def never_set(one: Added) -> Domain:
    """The domain before the patch."""
    return Bool(init=False) if one.ctype.name == "bool" else Values({0: "0"}, init=0)


def domain_of(one: Added, programs: Iterable[s.Program]) -> Domain:
    """What a field can hold: 0 and what the programs store where those are a few known values, else all of its type."""
    if one.ctype.name == "bool":
        return Bool(init=False)
    programs = list(programs)
    values: set[int] | None = {0}
    for program in programs:
        for x in s.statements(program.body):
            if isinstance(x, s.Store) and x.var == one.variable and values is not None:
                stored = _values(x.value, program, one.variable, frozenset())
                values = None if stored is None else values | {one.ctype.wrap(v) for v in stored}
    if values is not None and len(values) <= _MOST:
        return Values({v: str(v) for v in sorted(values)}, init=0)
    if one.ctype.bits <= _NARROW:
        return Range(one.ctype.low, one.ctype.high, init=0)
    return Int(init=0)


def _values(e: s.Expr, program: s.Program, variable: str, seen: frozenset[str]) -> set[int] | None:
    """The values that an expression can have, None where they are not known. The variable's own add none."""
    parts: list[set[int] | None]
    if isinstance(e, s.Const):
        return {int(e.value)}
    if isinstance(e, s.Load) and e.var == variable:
        return set()
    if isinstance(e, s.Unary | s.Binary) and e.op in s.TRUTH:
        return {0, 1}
    if isinstance(e, s.Cond):
        parts = [_values(x, program, variable, seen) for x in (e.then, e.other)]
    elif isinstance(e, s.Cast):
        inner = _values(e.operand, program, variable, seen)
        return None if inner is None else {e.ctype.wrap(v) for v in inner}
    elif isinstance(e, s.Local) and e.name not in program.params and e.name not in seen:
        every = list(s.statements(program.body))
        sets = [x for x in every if isinstance(x, s.Assign) and x.name == e.name]
        if not sets or any(isinstance(x, s.For) and x.name == e.name for x in every):
            return None
        parts = [_values(x.value, program, variable, seen | {e.name}) for x in sets]
    elif isinstance(e, s.Local) and e.name in seen:
        return set()
    else:
        return None
    known = [p for p in parts if p is not None]
    return set().union(*known) if len(known) == len(parts) else None


def used(fields: Iterable[Added], programs: Iterable[s.Program]) -> list[Added]:
    """Those fields that the programs read or write."""
    names = set()
    for program in programs:
        for x in s.statements(program.body):
            names |= {x.var} if isinstance(x, s.Store) else set()
            names |= {e.var for e in s.expressions(x) if isinstance(e, s.Load)}
    return [f for f in fields if f.variable in names]


# ------------------------------------------------------------------------------------------- who else sets a field
_SETTERS = frozenset({"WRITE_ONCE", "swap", "smp_store_mb", "smp_store_release", "memset", "memcpy"})


def set_elsewhere(one: Added, after: Tree, touched: Mapping[str, Touched], read: frozenset[str],
                  config: Config) -> str:
    """The place of something that sets a field and is none of the functions that are read, or "".

    A patch that adds a field is where all that uses it is. What sets it to 0 where its object is made is no matter.
    """
    for file, changes in touched.items():
        if not after.exists(file):
            continue
        unit = sources(after, config).unit(file)
        macros = {name for _, name, macro in unit.done.events
                  if macro is not None and name in changes.outside and _sets(macro.body, one.leaf, name)}
        for piece in unit.pieces:
            mentioned = words(piece.text)
            if piece.kind == "function" and (piece.name in read or piece.name not in changes.changed):
                continue
            if macros & mentioned or one.leaf in mentioned and _sets(piece.text, one.leaf, piece.name):
                return f"{piece.name or one.leaf} ({piece.file}:{piece.line})"
    return ""


def _sets(text: str, leaf: str, function: str) -> bool:
    """Whether a text may set a member of that name, other than to 0 in a function that makes objects."""
    code = [t for t in tokens(text) if not t.isspace()]
    for at, token in enumerate(code):
        if token != leaf or at == 0 or not (code[at - 1] == "." or code[at - 2:at] == ["-", ">"]):
            continue
        first = _beginning(code, at)
        behind = code[at + 1:at + 4]
        if first and code[first - 1] == "&" and not (first > 1 and (code[first - 2] in "&)]" or _WORD.fullmatch(
                code[first - 2]) and code[first - 2] != "return")):
            return True
        if code[max(first - 2, 0):first] in (["+", "+"], ["-", "-"]) or behind[:2] in (["+", "+"], ["-", "-"]):
            return True
        statement = code[max((i for i in range(at) if code[i] in ";{}"), default=-1) + 1:at]
        if not _SETTERS.isdisjoint(statement):
            return True
        if behind[:1] == ["="] and behind[1:2] != ["="]:
            zero = behind[1:3] in (["0", ";"], ["false", ";"])
            if not (zero and re.search(r"init|alloc|create", function)):
                return True
        elif behind[1:2] == ["="] and behind[0] in "+-*/%&|^" or behind in (["<", "<", "="], [">", ">", "="]):
            return True
    return False


def _beginning(code: list[str], at: int) -> int:
    """Where the lvalue begins whose last member stands at ``at``."""
    depth = 0
    while at > 0:
        before = code[at - 1]
        if before in ")]":
            depth += 1
        elif before in "([":
            if not depth:
                break
            depth -= 1
        elif not depth and not (before == "." or _WORD.fullmatch(before) and before != "return"
                                or code[at - 2:at] == ["-", ">"] or before == "-" and code[at] == ">"):
            break
        at -= 1
    return at
