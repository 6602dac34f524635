# SPDX-License-Identifier: GPL-2.0-only
"""What a C lvalue is in a model: a local, a variable of an object, an ignored field, a member with more below it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from schedproof.errors import NotExecutable
from schedproof.kernel import layout
from schedproof.kernel.declared import PER_CPU, Embedded, Odd, Types
from schedproof.kernel.values import Value, arithmetic, as_number, constant, convert, truth
from schedproof.lang.ctypes import INT, U8, U16, UINT, ULONG, CType, pointer, usual
from schedproof.lang.rewrite import without_places
from schedproof.lang.syntax import Assign, Binary, Cond, Const, Do, Expr, Free, Load, Loc, Local, Stmt, Store
from schedproof.model.domains import Bool, Constant, Domain, Enum, Link, Pointer
from schedproof.model.vocabulary import Declared, Vocabulary, fields_of, universes_of, vocabulary_of

# Fields that hold an object's own number, unless the model declares them.
INDEX_FIELDS = frozenset({("struct kvm_vcpu", "vcpu_idx"), ("struct rq", "cpu")})
UNSIGNED = {8: U8, 16: U16, 32: UINT, 64: ULONG}
CPU = "struct rq"               # a model's CPUs are its objects of this struct; per-CPU variables are fields of theirs


@dataclass(frozen=True)
class Words:
    """A model's declarations, as the C reader needs them."""

    fields: Mapping[tuple[str, str], tuple[str, Declared]]
    universes: Mapping[str, str]
    vocabulary: Vocabulary
    functions: frozenset[str] = frozenset()

    @classmethod
    def of(cls, model: Any) -> Words:
        """Read a Model class or instance."""
        scope = getattr(model, "scope", None)
        # An Enum has its codes from the model that it is declared in; those of a class are not worked out yet.
        fields = {key: (name, declared.resolve(None, scope.codes)
                        if scope is not None and isinstance(declared, Enum) else declared)
                  for key, (name, declared) in fields_of(model).items()}
        functions = frozenset(getattr(model, "functions", ())) | frozenset(
            n for n, m in getattr(model, "marks", {}).items() if m.kind == "kernel")
        return cls(fields, universes_of(model), vocabulary_of(model), functions)

    def below(self, owner: str, path: str) -> bool:
        """Whether something is declared below a path."""
        return any(struct == owner and other.startswith(f"{path}.") for struct, other in
                   (*self.fields, *self.vocabulary.ignore))

    def single(self, struct: str) -> bool:
        """Whether the model has exactly one, unnamed object of a struct."""
        return self.universes.get(struct) == ""

    def deals_with(self, struct: str) -> bool:
        """Whether the model says anything about a struct."""
        return struct in self.universes or any(s == struct for s, _ in self.vocabulary.ignore)


@dataclass(frozen=True)
class LocalPlace:
    """A local variable."""

    name: str
    ctype: CType


@dataclass(frozen=True)
class FieldPlace:
    """A member of an object: ``path`` of the struct ``owner`` of the object ``obj``."""

    obj: Expr
    owner: str
    path: str

    def below(self, field: str) -> FieldPlace:
        return FieldPlace(self.obj, self.owner, f"{self.path}.{field}" if self.path else field)

    def __str__(self) -> str:
        if not self.owner:
            return f"global variable {self.path}"
        return f"field {self.path} of {self.owner}" if self.path else self.owner


Place = LocalPlace | FieldPlace


def _within(path: str, other: str) -> bool:
    return path == other or path.startswith(f"{other}.")


class Memory:
    """Reads and writes of places. Raises NotExecutable, with the place in the C, for what the model does not have."""

    def __init__(self, words: Words, types: Types, fresh: Callable[[], str]):
        self.words, self.types, self.fresh = words, types, fresh
        self.dropped: dict[tuple[str, str], int] = {}  # ignored field -> writes of it so far
        self.given: list[str] = []                     # what these writes have written
        self.pins: dict[str, tuple[str, str]] = {}     # local pointer -> (struct, member) that it points to

    def declared_type(self, place: FieldPlace, loc: Loc) -> Any:
        """The C type of a field, from the tree."""
        try:
            if not place.owner:
                return self.types.variable(place.path)
            if place.path.startswith(PER_CPU):
                return self.types.per_cpu(place.path)
            return self.types.field(place.owner, place.path)
        except NotExecutable as error:
            if error.line:
                raise
            raise NotExecutable(loc.file, loc.line, error.construct) from None

    def index(self, place: FieldPlace, declared: Declared) -> Expr | None:
        return place.obj if declared.per is not None else None

    def link(self, place: FieldPlace) -> tuple[str, Link] | None:
        """The declared link that a place is, if it is one."""
        found = self.words.fields.get((place.owner, place.path))
        return (found[0], found[1]) if found is not None and isinstance(found[1], Link) else None

    def load(self, place: Place, loc: Loc) -> Value:
        """The value of a place."""
        if isinstance(place, LocalPlace):
            owner, member = self.pins.get(place.name, ("", ""))
            return Value(Local(place.name, loc, place.ctype), place.ctype, False, owner, member, bool(member))
        pieces = self.pieces(place, loc)
        if pieces:
            return self._composed(place, pieces, loc)
        found = self.words.fields.get((place.owner, place.path))
        if found is not None:
            return self._declared(place, *found, loc)
        prefix = self.words.vocabulary.ignored(place.owner, place.path)
        if prefix is not None:
            ctype = self.declared_type(place, loc)
            if not isinstance(ctype, CType):
                raise NotExecutable(loc.file, loc.line, f"value of {place}, which is no number")
            written = self.dropped.get((place.owner, prefix), 0)        # it may be another value by now
            why = f"{place.path} of {place.owner}" + (f" after {written} writes" if written else "")
            return Value(Free(why, ctype, loc, place.obj), ctype)
        return self._undeclared(place, loc)

    def _undeclared(self, place: FieldPlace, loc: Loc) -> Value:
        if not self.words.deals_with(place.owner):
            raise NotExecutable(loc.file, loc.line, f"{place}: the model has no such object")
        if (place.owner, place.path) in INDEX_FIELDS:
            ctype = self.scalar(place, loc)
            return Value(place.obj, ctype)
        if not self.words.below(place.owner, place.path):
            ctype = self.declared_type(place, loc)
            if isinstance(ctype, CType) and self.words.single(ctype.struct):
                return Value(Const(0, loc), ctype)     # the model's only object of that struct
        raise NotExecutable(loc.file, loc.line, str(place))

    def _declared(self, place: FieldPlace, name: str, declared: Declared, loc: Loc) -> Value:
        index = self.index(place, declared)
        if isinstance(declared, (Link, Pointer)):
            ctype = self._pointed(place, pointer(declared.target.ctype), loc)
            return Value(Load(name, index, loc, ctype), ctype)
        ctype = self.scalar(place, loc)
        if ctype.struct:
            raise NotExecutable(loc.file, loc.line, f"{place}, a pointer that the model declares as a number")
        load = Load(name, index, loc, ctype)
        if isinstance(declared, Bool):
            return Value(load, ctype, True)
        if isinstance(declared, Enum) and declared.meaning:
            return self._meaning(declared, load, place, ctype, loc)
        return Value(load, ctype)

    def _pointed(self, place: FieldPlace, ctype: CType, loc: Loc) -> CType:
        """The type of a pointer: in the tree it may point to a member, as to the rb_node of an entity."""
        try:
            found = self.declared_type(place, loc)
        except NotExecutable:
            return ctype
        if not isinstance(found, CType) or not found.struct or found.struct == ctype.struct:
            return ctype
        return ctype if self.words.deals_with(found.struct) or self.same_object(found.struct, ctype.struct) else found

    def scalar(self, place: FieldPlace, loc: Loc) -> CType:
        """The number type of a field."""
        ctype = self.declared_type(place, loc)
        if not isinstance(ctype, CType):
            shown = ctype.text if isinstance(ctype, Odd) else "a struct"
            raise NotExecutable(loc.file, loc.line, f"{place} of type {shown}")
        return ctype

    def _meaning(self, declared: Enum, load: Load, place: FieldPlace, ctype: CType, loc: Loc) -> Value:
        """The C value that an enumerator stands for, which must be a single one."""
        value: Expr | None = None
        for name, (low, high) in reversed(declared.meaning.items()):
            if low != high:
                raise NotExecutable(loc.file, loc.line, f"{place}, of which the model knows only classes of values")
            here = Const(ctype.wrap(low), loc, ctype)
            test = Binary("==", load, Const(declared.code_of[name], loc), loc)
            value = here if value is None else Cond(test, here, value, loc, ctype)
        assert value is not None
        return Value(value, ctype)

    def store(self, place: Place, value: Value, loc: Loc) -> tuple[Stmt, ...]:
        """The statements that write a value, after conversion to the place's type."""
        if isinstance(place, LocalPlace):
            value = convert(value, place.ctype, loc)
            return (*self._pin(place, value, loc), Assign(place.name, value.expr, loc))
        pieces = self.pieces(place, loc)
        if pieces:
            return self._split(place, pieces, value, loc)
        found = self.words.fields.get((place.owner, place.path))
        if found is None:
            prefix = self.words.vocabulary.ignored(place.owner, place.path)
            if prefix is not None:
                self.dropped[place.owner, prefix] = self.dropped.get((place.owner, prefix), 0) + 1
                self.given.append(repr(without_places(value.expr)))
                return ()
            self._undeclared(place, loc)
            raise NotExecutable(loc.file, loc.line, f"write to {place}, which is fixed in the model")
        name, declared = found
        if not isinstance(declared, Domain):
            raise NotExecutable(loc.file, loc.line, f"write to {place}, which the model holds constant")
        index = self.index(place, declared)
        if isinstance(declared, Pointer):
            return (Store(name, index, convert(value, pointer(declared.target.ctype), loc).expr, loc),)
        value = convert(value, self.scalar(place, loc), loc)
        if isinstance(declared, Bool):
            return (Store(name, index, truth(value, loc), loc),)
        number = as_number(value, loc)
        if isinstance(declared, Enum) and declared.meaning:
            return (Store(name, index, self._code(declared, number.expr, place, loc), loc),)
        return (Store(name, index, number.expr, loc),)

    # ------------------------------------------------------------------------------------------- unions
    def pieces(self, place: FieldPlace, loc: Loc) -> list[tuple[FieldPlace, int]]:
        """What a member of a union is made of, where the model declares its parts: (part, its first bit), in order.

        Empty for a member that is declared itself, and for one outside of unions. A model may not declare (or ignore)
        two members that share bytes: a write of one would leave the other as it was.
        """
        found = layout.find(self.types, place.owner, place.path) if place.owner else None
        if found is None:
            return []
        around, table, here = found
        path = place.path.removeprefix(f"{around}.") if around else place.path
        others = sorted((spot.low, name) for name, spot in table.items()
                        if spot.shares(here) and not _within(name, path) and not _within(path, name)
                        and self._names(place.owner, f"{around}.{name}" if around else name))
        if not others:
            return []
        if self._names(place.owner, place.path):
            raise NotExecutable(loc.file, loc.line, f"{place}: it shares its bytes with {others[0][1]}, "
                                "which the model declares too")
        end: int | None = here.low if here.bits is not None else None
        for low, name in others:
            end = table[name].end if low == end and table[name].bits is not None else None
        if end is None or end != here.end:
            raise NotExecutable(loc.file, loc.line, f"{place}: the members that the model has of it are not its parts")
        owner = place.owner
        return [(FieldPlace(place.obj, owner, f"{around}.{name}" if around else name), low - here.low)
                for low, name in others]

    def _names(self, owner: str, path: str) -> bool:
        return (owner, path) in self.words.fields or self.words.vocabulary.ignored(owner, path) is not None

    def _word(self, place: FieldPlace, loc: Loc) -> tuple[CType, CType]:
        """The number type of a member that lies in a union, and the unsigned one of that width."""
        ctype = self.scalar(place, loc)
        if ctype.struct or ctype.bits not in UNSIGNED:
            raise NotExecutable(loc.file, loc.line, f"{place} of type {ctype}, which shares its bytes with others")
        return ctype, UNSIGNED[ctype.bits]

    def _composed(self, place: FieldPlace, pieces: list[tuple[FieldPlace, int]], loc: Loc) -> Value:
        """The value of a member of a union from those of its parts, the least significant first."""
        ctype, whole = self._word(place, loc)
        total: Value | None = None
        for part, low in pieces:
            value = convert(convert(self.load(part, loc), self._word(part, loc)[1], loc), whole, loc)
            value = arithmetic("<<", convert(value, usual(whole, UINT), loc), constant(low, INT, loc), loc)
            total = value if total is None else arithmetic("+", total, value, loc)
        assert total is not None
        return convert(total, ctype, loc)

    def _split(self, place: FieldPlace, pieces: list[tuple[FieldPlace, int]], value: Value,
               loc: Loc) -> tuple[Stmt, ...]:
        """A write of a member of a union, as writes of its parts."""
        ctype, whole = self._word(place, loc)
        value = as_number(convert(convert(value, ctype, loc), whole, loc), loc)
        out: list[Stmt] = []
        if not isinstance(value.expr, Const):
            name = self.fresh()
            out.append(Assign(name, value.expr, loc))
            value = Value(Local(name, loc, whole), whole)
        for part, low in pieces:
            kind, bits = self._word(part, loc)
            piece = convert(convert(arithmetic(">>", value, constant(low, INT, loc), loc), bits, loc), kind, loc)
            out += self.store(part, piece, loc)
        return tuple(out)

    # ----------------------------------------------------------------------------------------- pointers
    def _pin(self, place: LocalPlace, value: Value, loc: Loc) -> tuple[Stmt, ...]:
        """Note which member a local pointer points to: always the same one. NULL and ``(struct foo *)1`` are none.

        The object of which the address is taken must be one: the address of a member of NULL would pass for NULL.
        """
        if not place.ctype.struct or isinstance(value.expr, Const) and not value.inner:
            return ()
        if not self.pinned(place.ctype):
            if value.inner:
                raise NotExecutable(loc.file, loc.line, f"{place.name}, set to the address of {value.inner}")
            return ()
        member = (value.owner, value.inner)
        if self.pins.setdefault(place.name, member) != member:
            one, other = (f"{path} of {owner}" if path else "nothing in the model"
                          for owner, path in (self.pins[place.name], member))
            raise NotExecutable(loc.file, loc.line, f"{place.name}, a pointer to {one}, set to one to {other}")
        return () if value.maybe else self.exists(value, loc)

    def pinned(self, ctype: CType) -> bool:
        """Whether a local of a pointer type can point into objects only: the model has no objects of what it names."""
        return bool(ctype.struct) and not self.words.deals_with(ctype.struct) and self.around(ctype.struct) is None

    def exists(self, value: Value, loc: Loc) -> tuple[Stmt, ...]:
        """A read of any variable of the object that a pointer points into, which is a fault where that is NULL."""
        if not value.inner or isinstance(value.expr, Const) and value.expr.value >= 0:
            return ()
        for (owner, _), (name, declared) in self.words.fields.items():
            if owner == value.owner and declared.per is not None and not isinstance(declared, Constant):
                return (Do(Load(name, value.expr, loc), loc),)
        raise NotExecutable(loc.file, loc.line, f"the address of {value.inner} of {value.owner}, kept in a local")

    def _code(self, declared: Enum, value: Expr, place: FieldPlace, loc: Loc) -> Expr:
        if not isinstance(value, Const):
            raise NotExecutable(loc.file, loc.line,
                                f"write of a computed value to {place}, an enumeration in the model")
        for name, (low, high) in declared.meaning.items():
            if low <= value.value <= high:
                return Const(declared.code_of[name], loc)
        raise NotExecutable(loc.file, loc.line, f"write of {value.value} to {place}, which the model has no name for")

    def address(self, place: Place, loc: Loc) -> Value:
        """``&place``: a link's object for an embedded struct that is one, else a pointer into the object."""
        if isinstance(place, LocalPlace):
            raise NotExecutable(loc.file, loc.line, f"address of the local {place.name}")
        if not place.path:
            return Value(place.obj, pointer(place.owner))
        link = self.link(place)
        if link is not None:
            if isinstance(self.declared_type(place, loc), Embedded):
                ctype = pointer(link[1].target.ctype)
                return Value(Load(link[0], self.index(place, link[1]), loc, ctype), ctype)
            raise NotExecutable(loc.file, loc.line, f"address of the pointer {place.path} of {place.owner}")
        if not self.words.deals_with(place.owner):
            raise NotExecutable(loc.file, loc.line, f"{place}: the model has no such object")
        ctype = self.declared_type(place, loc)
        if isinstance(ctype, Embedded):
            name = ctype.name or "struct"
        elif isinstance(ctype, CType) and not ctype.struct:
            name = ctype.name
        elif isinstance(ctype, CType) and isinstance(self._pointer(place), Pointer):
            name = f"{ctype.struct} *"
        else:
            raise NotExecutable(loc.file, loc.line, f"address of {place}")
        return Value(place.obj, pointer(name), False, place.owner, place.path)

    def _pointer(self, place: FieldPlace) -> Declared | None:
        found = self.words.fields.get((place.owner, place.path))
        return found[1] if found is not None else None

    def target(self, value: Value, loc: Loc) -> FieldPlace:
        """The place that a pointer points to."""
        if value.inner:
            return FieldPlace(value.expr, value.owner, value.inner)
        if not value.is_pointer:
            raise NotExecutable(loc.file, loc.line, "a member of something that is no pointer")
        assert value.ctype is not None
        struct = value.ctype.struct
        if not self.words.deals_with(struct):
            outer = self.around(struct)
            if outer is not None:
                return FieldPlace(value.expr, *outer)
        return FieldPlace(value.expr, struct, "")

    def around(self, struct: str) -> tuple[str, str] | None:
        """(struct, member) of the modelled struct that begins with a ``struct``, as pv_node does with mcs_spinlock."""
        found = [(universe, first[0]) for universe in self.words.universes
                 if (first := self.types.first_member(universe)) is not None and first[1] == struct]
        return found[0] if len(found) == 1 else None

    def same_object(self, one: str, other: str) -> bool:
        """Whether pointers to these two structs may be cast into each other: one begins with the other."""
        return any(a in self.words.universes and (self.types.first_member(a) or ("", ""))[1] == b
                   and (b in self.words.universes or self.around(b) is not None)
                   for a, b in ((one, other), (other, one)))


