# SPDX-License-Identifier: GPL-2.0-only
"""What the lowering of one function keeps: its names and scopes, the statements made so far, fresh locals."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn, Protocol

from tree_sitter import Node

from schedproof.errors import NotExecutable
from schedproof.kernel import parse as p
from schedproof.kernel import values as v
from schedproof.kernel.declared import Embedded, Type, Types
from schedproof.kernel.parse import Code
from schedproof.kernel.places import LocalPlace, Memory, Words
from schedproof.kernel.source import Sources, Where
from schedproof.kernel.values import Mismatch, Value
from schedproof.lang.ctypes import CType
from schedproof.lang.syntax import Assign, Const, Loc, Local, Stmt


@dataclass(frozen=True)
class Signature:
    """Names and types of a function's parameters and its result, as its header says."""

    name: str
    params: tuple[tuple[str, Type], ...]
    result: Type
    variadic: bool = False
    owner: str = ""                  # a result that points into an object: to the member ``inner`` of this struct
    inner: str = ""
    maybe: bool = False              # … or is NULL
    within: Mapping[int, tuple[str, str]] = field(default_factory=dict)     # see Lowering.within


class Services(Protocol):
    """What the lowering of one function needs of the reader of a tree."""

    sources: Sources
    words: Words

    def callee(self, name: str, where: Where, loc: Loc, inner: Sequence[tuple[str, str]]) -> tuple[str, Signature]:
        """Read a function too; its program's name and signature. Raises Absent, NotExecutable."""
        ...

    def signature(self, name: str, where: Where) -> Signature | None:
        """The signature of a function from its definition or declaration."""
        ...

    def number(self, name: str, where: Where, loc: Loc) -> Value | None:
        """The value of an enumerator of the tree."""
        ...


@dataclass(frozen=True)
class Bound:
    """A pointer into an object, fixed for its whole life: ``load`` of ``struct load_weight *load = &se->load``."""

    value: Value


@dataclass(frozen=True)
class Unusable:
    """A local whose type no value of a model has. Only its use is an error."""

    why: str


@dataclass
class LocalStruct:
    """A local struct: each member is a local of its own, made when it is first met."""

    name: str
    kind: Embedded
    members: dict[str, LocalPlace | LocalStruct] = field(default_factory=dict)
    why: str = "a struct"


Name = LocalPlace | Bound | Unusable | LocalStruct


class Lowering:
    """State of one function's lowering; ``out`` takes the statements that come before a value."""

    def __init__(self, services: Services, code: Code, types: Types):
        self.services, self.code, self.types = services, code, types
        self.memory = Memory(services.words, types, self.fresh)
        self.words = services.words
        self.out: list[Stmt] = []
        self.scopes: list[dict[str, Name]] = [{}]
        self.taken: set[str] = set()
        self.temporaries: set[str] = set()              # locals that are set once, before their only use
        self.within: dict[str, tuple[str, str]] = {}    # parameter -> (struct, member) that container_of() says it is
        self.count = 0

    # ------------------------------------------------------------------------------------------- helpers
    def loc(self, node: Node) -> Loc:
        return Loc(self.code.file, self.code.at(node))

    def fail(self, node: Node, construct: str) -> NoReturn:
        raise NotExecutable(self.code.file, self.code.at(node), construct)

    @contextlib.contextmanager
    def typed(self, node: Node) -> Iterator[None]:
        """Gives a Mismatch its place."""
        try:
            yield
        except Mismatch as mismatch:
            self.fail(node, f"{mismatch}: {p.shown(node)}")

    @contextlib.contextmanager
    def aside(self) -> Iterator[list[Stmt]]:
        """Statements that are lowered inside go to the list instead."""
        kept, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = kept

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()

    def fresh(self) -> str:
        while True:
            self.count += 1
            name = f"__tmp{self.count}"
            if name not in self.taken:
                break
        self.taken.add(name)
        self.temporaries.add(name)
        return name

    def declare(self, name: str, ctype: CType) -> LocalPlace:
        """A new local; one that hides another gets a name of its own."""
        place = LocalPlace(self.unique(name), ctype)
        self.scopes[-1][name] = place
        return place

    def unique(self, name: str) -> str:
        """A name that no other local has."""
        unique, number = name, 1
        while unique in self.taken:
            number += 1
            unique = f"{name}__{number}"
        self.taken.add(unique)
        return unique

    def members(self, node: Node, struct: LocalStruct) -> dict[str, Type]:
        """The members of a local struct and their types."""
        try:
            return self.types.separate(struct.kind)
        except NotExecutable as error:
            self.fail(node, f"the local {struct.name}: {error.construct}")

    def member_of(self, node: Node, struct: LocalStruct, name: str) -> LocalPlace | LocalStruct:
        """A member of a local struct."""
        if name not in struct.members:
            found = self.members(node, struct).get(name)
            if isinstance(found, CType):
                struct.members[name] = LocalPlace(self.unique(f"{struct.name}.{name}"), found)
            elif isinstance(found, Embedded):
                struct.members[name] = LocalStruct(f"{struct.name}.{name}", found)
            else:
                self.fail(node, f"member {name} of the local {struct.name}, {struct.why}")
        return struct.members[name]

    def copy(self, node: Node, to: LocalStruct, source: LocalStruct) -> None:
        """Assign one local struct to another."""
        if to.kind != source.kind:
            self.fail(node, f"assignment of structs: {p.shown(node)}")
        for name in self.members(node, to):
            left, right = self.member_of(node, to, name), self.member_of(node, source, name)
            if isinstance(left, LocalPlace) and isinstance(right, LocalPlace):
                self.out += self.memory.store(left, self.memory.load(right, self.loc(node)), self.loc(node))
            elif isinstance(left, LocalStruct) and isinstance(right, LocalStruct):
                self.copy(node, left, right)

    def lies_in(self, local: str, struct: str, member: str) -> None:
        """Note that a parameter is a pointer to a member of an object."""
        if not any(isinstance(x, LocalPlace) and x.name == local for x in self.scopes[0].values()):
            return
        if self.within.setdefault(local, (struct, member)) != (struct, member):
            raise Mismatch(f"{local}, a pointer into {struct} and into {self.within[local][0]}")

    def find(self, name: str) -> Name | None:
        return next((s[name] for s in reversed(self.scopes) if name in s), None)

    def keep(self, value: Value, loc: Loc) -> Value:
        """The value as it is now, in a local unless it is a constant."""
        if isinstance(value.expr, Const) or value.ctype is None:
            return value
        if isinstance(value.expr, Local) and value.expr.name in self.temporaries:
            return value
        name = self.fresh()
        self.out.append(Assign(name, value.expr, loc))
        return replace(value, expr=Local(name, loc, None if value.truth else value.ctype))

    def once(self, value: Value, loc: Loc) -> Value:
        """The value in a form that may be written twice."""
        return value if v.is_plain(value.expr) else self.keep(value, loc)

    def in_order(self, nodes: Sequence[Node], lower: Callable[[Node], Value] | None = None) -> list[Value]:
        """Several operands from left to right."""
        found: list[Value] = []
        for node in nodes:
            with self.aside() as before:
                value = (lower or self.value)(node)
            if before:
                found = [self.keep(x, self.loc(n)) for x, n in zip(found, nodes, strict=False)]
                self.out += before
            found.append(value)
        return found

    @abstractmethod
    def value(self, node: Node, used: bool = True) -> Value:
        """An expression's value. ``used`` False: only its effect is wanted."""
