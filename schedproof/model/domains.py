# SPDX-License-Identifier: GPL-2.0-only
"""What a model is made of: objects, links between them, variables with their domains, switches and parameters.

A domain knows its values as *codes*: truth values for ``Bool``, integers for everything else. Objects are coded
as their index in their universe (``NULL`` is -1), enumerators as numbers that are unique within a model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from schedproof.lang.syntax import NULL_CODE


class _Null:
    """The null pointer. One object, compared with ``==`` in models."""

    def __repr__(self) -> str:
        return "NULL"


NULL = _Null()

Bound = int | Callable[[Any], int]
Span = tuple[int, int] | Callable[[Any], tuple[int, int]]


@dataclass(frozen=True)
class Ref:
    """One object of a universe, as written in models: ``self.cfs_rq.qVM``."""

    universe: str
    name: str
    index: int

    def __str__(self) -> str:
        return self.name


class Object:
    """A finite universe for a C type: ``Object("struct sched_entity", "gA", "gB")``.

    The names may be given by a function of the instance's parameters, for a universe whose size is a parameter:
    ``Object("struct kvm_vcpu", lambda m: [f"vcpu{i}" for i in range(m.vcpus)])``.
    """

    def __init__(self, ctype: str, *names: str | Callable[[Any], list[str]]):
        self.ctype = ctype
        self.names = names
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def resolve(self, params: Any) -> tuple[str, ...]:
        """The names of the objects under the given parameters."""
        found: list[str] = []
        for name in self.names:
            found += name(params) if callable(name) else [name]
        return tuple(found)


@dataclass
class Link:
    """A constant pointer from each object of one universe to one of another: ``se->my_q``.

    ``to`` maps names to names (or NULL); ``c`` is the C field that holds it.
    """

    per: Object
    target: Object
    to: Mapping[str, Any]
    c: str | None = None
    name: str = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


@dataclass
class Constant:
    """A field that a model holds constant: ``self.tg_load_avg_contrib[q]`` is 0 everywhere.

    ``value`` is a number, or a function of the instance's parameters. ``why`` is printed with the assumptions.
    ``fixed``: the value is part of what the instance is, as the number of its objects; else a comparison with C asks
    about every value of the field.
    """

    value: Bound
    per: Object | None = None
    c: str | None = None
    why: str = ""
    span: tuple[int, int] | None = None
    fixed: bool = False
    name: str = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


class Switch:
    """Something that differs between kernels: one of a few named values, fixed for a run."""

    def __init__(self, *values: str | bool):
        self.values = values
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


@dataclass
class Param:
    """A number that selects the instance, with its default and the values that make sense."""

    default: int
    low: int
    high: int
    what: str = ""
    name: str = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


# ---------------------------------------------------------------------------------------- variable domains
@dataclass
class Domain:
    """Base of the domains. ``per`` makes one variable an object of that universe; ``c`` names the C field."""

    init: Any = None
    per: Object | None = None
    c: str | None = None
    ghost: bool = False
    span: Span | None = None                  # the C values that the field can have, where that is less than its type
    transient: bool = False                   # has its initial value between steps, so it is no part of the state
    name: str = field(default="", init=False)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    sort = "Int"

    def codes(self) -> tuple[int | bool, ...] | None:
        """All values as codes, or None when there are unboundedly many."""
        raise TypeError("a Domain is resolved by Model.variant")

    def show(self, code: int | bool) -> str:
        """A code as a reader should see it."""
        return str(code)

    def resolve(self, params: Any, enumerators: Mapping[str, int]) -> Domain:
        """This domain with what depends on the instance worked out: bounds, objects, codes of enumerators."""
        return self


@dataclass
class Bool(Domain):
    """A truth value."""

    sort = "Bool"

    def codes(self) -> tuple[bool, ...]:
        return (False, True)

    def show(self, code: int | bool) -> str:
        return "yes" if code else "no"


class Enum(Domain):
    """One of a few names. ``meaning`` says, where a name abstracts a C quantity, which values it stands for:

    ``Enum("ZERO", "SOME", meaning={"ZERO": (0, 0), "SOME": (1, 1 << 18)})``. The intervals must be disjoint and
    without a gap between the lowest and the highest; this is checked when the model class is made.
    """

    def __init__(self, *names: str, meaning: Mapping[str, tuple[int, int]] | None = None, init: Any = None,
                 per: Object | None = None, c: str | None = None, ghost: bool = False,
                 span: Span | None = None):
        super().__init__(init, per, c, ghost, span)
        self.names = names
        self.meaning = dict(meaning or {})
        self.code_of: dict[str, int] = {}

    def resolve(self, params: Any, enumerators: Mapping[str, int]) -> Enum:
        found = Enum(*self.names, meaning=self.meaning, init=self.init, per=self.per, c=self.c, ghost=self.ghost,
                     span=self.span)
        found.name, found.code_of = self.name, {n: enumerators[n] for n in self.names}
        return found

    def codes(self) -> tuple[int, ...]:
        return tuple(self.code_of[n] for n in self.names)

    def show(self, code: int | bool) -> str:
        return next(n for n in self.names if self.code_of[n] == code)


class Range(Domain):
    """The integers from ``low`` to ``high``. An assignment outside is a modelling error."""

    def __init__(self, low: Bound, high: Bound, init: Any = None, per: Object | None = None, c: str | None = None,
                 ghost: bool = False, span: Span | None = None, transient: bool = False):
        super().__init__(init, per, c, ghost, span, transient)
        self.low, self.high = low, high

    def resolve(self, params: Any, enumerators: Mapping[str, int]) -> Range:
        low = self.low(params) if callable(self.low) else self.low
        high = self.high(params) if callable(self.high) else self.high
        span = self.span(params) if callable(self.span) else self.span
        found = Range(low, high, self.init, self.per, self.c, self.ghost, span, self.transient)
        found.name = self.name
        return found

    def codes(self) -> tuple[int, ...]:
        assert isinstance(self.low, int) and isinstance(self.high, int)
        return tuple(range(self.low, self.high + 1))


class Values(Domain):
    """Exact C values from a finite list, as ``Values({2: "MIN_SHARES", 1 << 20: "NICE_0_LOAD"})``.

    The keys are the numbers that the C would hold; the names are for the reader. ``stands_for`` maps a value to
    the interval of C values that it represents, where it is a representative. It is a claim: that the model cannot
    tell them apart has to be shown, as tests/test_quota_model.py does.
    """

    def __init__(self, values: Mapping[int, str] | Callable[[Any], Mapping[int, str]], init: Any = None,
                 per: Object | None = None, c: str | None = None, ghost: bool = False,
                 span: Span | None = None, stands_for: Mapping[int, tuple[int, int]] | None = None):
        super().__init__(init, per, c, ghost, span)
        self.values = values
        self.stands_for = dict(stands_for or {})

    def resolve(self, params: Any, enumerators: Mapping[str, int]) -> Values:
        values = self.values(params) if callable(self.values) else self.values
        found = Values(dict(values), self.init, self.per, self.c, self.ghost, self.span, self.stands_for)
        found.name = self.name
        return found

    def codes(self) -> tuple[int, ...]:
        assert not callable(self.values)
        return tuple(self.values)

    def show(self, code: int | bool) -> str:
        assert not callable(self.values)
        return self.values.get(int(code), str(code))


class Int(Domain):
    """Any integer. Only the solver engines take a model that has one."""

    def __init__(self, init: Any = None, per: Object | None = None, c: str | None = None, ghost: bool = False,
                 span: Span | None = None):
        super().__init__(init, per, c, ghost, span)

    def codes(self) -> None:
        return None


class Pointer(Domain):
    """A pointer to one of a universe's objects (to those ``among`` names, when it is given), or NULL when ``null``."""

    def __init__(self, target: Object, null: bool = True, init: Any = NULL, per: Object | None = None,
                 c: str | None = None, ghost: bool = False, span: Span | None = None,
                 among: tuple[str, ...] = ()):
        super().__init__(init, per, c, ghost, span)
        self.target, self.null, self.among = target, null, among
        self.names: tuple[str, ...] = ()

    def resolve(self, params: Any, enumerators: Mapping[str, int]) -> Pointer:
        found = Pointer(self.target, self.null, self.init, self.per, self.c, self.ghost, self.span, self.among)
        found.name, found.names = self.name, self.target.resolve(params)
        return found

    def codes(self) -> tuple[int, ...]:
        targets = (i for i, name in enumerate(self.names) if not self.among or name in self.among)
        return (*((NULL_CODE,) if self.null else ()), *targets)

    def show(self, code: int | bool) -> str:
        return "NULL" if code == NULL_CODE else self.names[code]


class Current(Pointer):
    """The object of the thread that makes the step, NULL in an action: what ``current`` is in the kernel.

    It is no part of the state, and nothing is assigned to it.
    """

    def __init__(self, target: Object):
        super().__init__(target)
        self.transient = True

    def resolve(self, params: Any, enumerators: Mapping[str, int]) -> Current:
        found = Current(self.target)
        found.name, found.names = self.name, self.target.resolve(params)
        return found
