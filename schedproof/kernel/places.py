# SPDX-License-Identifier: GPL-2.0-only
"""What a C lvalue is in a model: a local, a variable of an object, an ignored field, a member with more below it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schedproof.errors import NotExecutable
from schedproof.kernel.declared import Embedded, Odd, Types
from schedproof.kernel.values import Value, as_number, convert, truth
from schedproof.lang.ctypes import CType, pointer
from schedproof.lang.syntax import Assign, Binary, Cond, Const, Expr, Free, Load, Loc, Local, Stmt, Store
from schedproof.model.domains import Bool, Domain, Enum, Link, Pointer
from schedproof.model.vocabulary import Declared, Vocabulary, fields_of, universes_of, vocabulary_of

# Fields that hold an object's own number, unless the model declares them.
INDEX_FIELDS = frozenset({("struct kvm_vcpu", "vcpu_idx")})


@dataclass(frozen=True)
class Words:
    """A model's declarations, as the C reader needs them."""

    fields: Mapping[tuple[str, str], tuple[str, Declared]]
    universes: Mapping[str, str]
    vocabulary: Vocabulary

    @classmethod
    def of(cls, model: Any) -> Words:
        """Read a Model class or instance."""
        scope = getattr(model, "scope", None)
        # An Enum has its codes from the model that it is declared in; those of a class are not worked out yet.
        fields = {key: (name, declared.resolve(None, scope.codes)
                        if scope is not None and isinstance(declared, Enum) else declared)
                  for key, (name, declared) in fields_of(model).items()}
        return cls(fields, universes_of(model), vocabulary_of(model))

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


class Memory:
    """Reads and writes of places. Raises NotExecutable, with the place in the C, for what the model does not have."""

    def __init__(self, words: Words, types: Types):
        self.words, self.types = words, types

    def declared_type(self, place: FieldPlace, loc: Loc) -> Any:
        """The C type of a field, from the tree."""
        try:
            if not place.owner:
                return self.types.variable(place.path)
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
            return Value(Local(place.name, loc, place.ctype), place.ctype)
        found = self.words.fields.get((place.owner, place.path))
        if found is not None:
            return self._declared(place, *found, loc)
        if self.words.vocabulary.ignored(place.owner, place.path) is not None:
            ctype = self.declared_type(place, loc)
            if not isinstance(ctype, CType):
                raise NotExecutable(loc.file, loc.line, f"value of {place}, which is no number")
            return Value(Free(f"{place.path} of {place.owner}", ctype, loc), ctype)
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
            ctype = pointer(declared.target.ctype)
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
            if value.inner:
                raise NotExecutable(loc.file, loc.line, f"{place.name}, set to the address of {value.inner}")
            return (Assign(place.name, value.expr, loc),)
        found = self.words.fields.get((place.owner, place.path))
        if found is None:
            if self.words.vocabulary.ignored(place.owner, place.path) is not None:
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
        else:
            raise NotExecutable(loc.file, loc.line, f"address of {place}")
        return Value(place.obj, CType(f"{name} *", 64, False, name), False, place.owner, place.path)

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
        for universe in self.words.universes:
            first = self.types.first_member(universe)
            if first is not None and first[1] == struct:
                return universe, first[0]
        return None

    def same_object(self, one: str, other: str) -> bool:
        """Whether pointers to these two structs may be cast into each other: one begins with the other."""
        return any(a in self.words.universes and (self.types.first_member(a) or ("", ""))[1] == b
                   for a, b in ((one, other), (other, one)))


