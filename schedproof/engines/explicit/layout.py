# SPDX-License-Identifier: GPL-2.0-only
"""How a state is packed into one 64-bit word, or into several where one is too small.

Each variable is kept as the index of its code, in as many bits as that needs. A variable that no transition
changes only needs to tell its initial values apart. Where that is still too much, variables whose number of
values is no power of two share a group of bits, as the digits of one number (seven values twice fit 6 bits).
The sign bit stays clear: a negative word is never a state, and stands for "left its domain" in what the
compiled code gives back. The same goes for each word of several.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from schedproof.model.domains import Range
from schedproof.model.transition import State, Transition, Variable

BITS = 63
WORD = 64                      # a word's bits among those of a whole state
MOST_WORDS = 16
GROUPS = (12, 24, BITS)        # the most bits of a group: small numbers are cheaper to take apart


class CannotCompile(Exception):
    """The instance is not one that this engine can decide; the text says why. Becomes ``Unknown``."""


@dataclass(frozen=True, slots=True)
class Field:
    """Where one variable lies: in ``width`` bits from ``offset`` on, as an index into its ``size`` codes.

    With ``shared`` the bits hold a number of which the index is one digit, worth ``stride``. ``first`` is the
    first code when the codes are consecutive; otherwise ``codes`` lists them.
    """

    name: str
    size: int
    first: int
    codes: tuple[int, ...] | None
    truth: bool
    offset: int = 0
    width: int = 0
    stride: int = 1
    shared: bool = False
    word: int = 0              # which word of several

    @property
    def mask(self) -> int:
        """The bits within the word."""
        return ((1 << self.width) - 1) << self.offset

    @property
    def place(self) -> int:
        """Where the bits begin among those of the whole state."""
        return WORD * self.word + self.offset

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest code."""
        if self.codes is None:
            return self.first, self.first + self.size - 1
        return min(self.codes), max(self.codes)

    def code(self, index: int) -> int | bool:
        number = self.first + index if self.codes is None else self.codes[index]
        return bool(number) if self.truth else number

    def index(self, code: int | bool) -> int | None:
        """The index of a code, or None when it is not in the domain."""
        if self.codes is not None:
            return self.codes.index(code) if code in self.codes else None
        index = int(code) - self.first
        return index if 0 <= index < self.size else None


@dataclass(frozen=True)
class Layout:
    """The fields of a state, by variable."""

    fields: Mapping[str, Field]

    @property
    def bits(self) -> int:
        return max((f.place + f.width for f in self.fields.values()), default=0)

    @property
    def words(self) -> int:
        return 1 + max((f.word for f in self.fields.values()), default=0)

    def pack(self, state: State) -> int:
        """The bits of a state, ``WORD`` a word. Raises KeyError, with the variable's name, for a wrong code."""
        word = 0
        for name, field in self.fields.items():
            index = field.index(state[name])
            if index is None:
                raise KeyError(name)
            word += index * field.stride << field.place
        return word

    def unpack(self, word: int) -> dict[str, int | bool]:
        return {name: f.code((word >> f.place & (1 << f.width) - 1) // f.stride % f.size)
                for name, f in self.fields.items()}


def lay_out(variables: Mapping[str, Variable], transitions: Sequence[Transition] | None = None,
            initial: Sequence[State] = (), most_words: int = 1) -> Layout:
    """Give each variable its bits. Raises CannotCompile when a domain is unbounded or ``most_words`` are too small.

    With ``transitions``, variables that none of them changes keep to the values of the ``initial`` states.
    """
    fields = [_field(name, variable) for name, variable in variables.items()]
    if transitions is not None and initial:
        changed = {n for t in transitions for n, term in t.updates.items()
                   if n in variables and not term.eq(variables[n].term)}
        fields = [f if f.name in changed else _only(f, [s.get(f.name) for s in initial]) for f in fields]
    layout = _separate(fields)
    for most in GROUPS:
        if layout.bits <= BITS:
            return layout
        layout = _grouped(fields, most)
    if layout.bits <= BITS:
        return layout
    spread = _spread(fields)
    if spread is not None and spread.words <= most_words:
        return spread
    plain = _separate(fields)
    widest = sorted(plain.fields.values(), key=lambda f: -f.width)[:3]
    named = ", ".join(f"{f.name}: {f.width}" for f in widest)
    room = f"the {BITS} of one word" if most_words == 1 else f"{most_words} words of {BITS}"
    raise CannotCompile(f"a state needs {layout.bits} bits, more than {room} (widest: {named})")


def _spread(fields: Sequence[Field]) -> Layout | None:
    """Each variable in bits of its own in one of several words; None when one is too wide for that."""
    found, word, offset = {}, 0, 0
    for field in fields:
        width = (field.size - 1).bit_length()
        if width > BITS:
            return None
        if offset + width > BITS:
            word, offset = word + 1, 0
        found[field.name] = replace(field, offset=offset, width=width, word=word)
        offset += width
    return Layout(found)


def _field(name: str, variable: Variable) -> Field:
    domain = variable.domain
    truth = domain.sort == "Bool"
    if isinstance(domain, Range) and isinstance(domain.low, int) and isinstance(domain.high, int):
        field = Field(name, domain.high - domain.low + 1, domain.low, None, truth)   # may be too many to list
    else:
        codes = domain.codes()
        if codes is None:
            raise CannotCompile(f"{name} has no bounds")
        field = _of_codes(name, [int(c) for c in codes], truth)
    if field.size <= 0:
        raise CannotCompile(f"{name} has an empty domain")
    return field


def _of_codes(name: str, codes: Sequence[int], truth: bool) -> Field:
    first = codes[0] if codes else 0
    consecutive = list(codes) == list(range(first, first + len(codes)))
    return Field(name, len(codes), first, None if consecutive else tuple(codes), truth)


def _only(field: Field, codes: Iterable[int | bool | None]) -> Field:
    """The field for these codes alone; unchanged when one of them is wrong, so that packing it says so."""
    wanted = set(codes)
    if any(c is None or field.index(c) is None for c in wanted):
        return field
    return _of_codes(field.name, sorted(int(c) for c in wanted if c is not None), field.truth)


def _separate(fields: Iterable[Field]) -> Layout:
    """Each variable in bits of its own."""
    found, offset = {}, 0
    for field in fields:
        width = (field.size - 1).bit_length()
        found[field.name] = replace(field, offset=offset, width=width)
        offset += width
    return Layout(found)


def _grouped(fields: Sequence[Field], most: int) -> Layout:
    """Those whose number of values is no power of two in groups of at most ``most`` bits."""
    plain = _separate(f for f in fields if f.size & (f.size - 1) == 0)
    found, offset = dict(plain.fields), plain.bits
    groups: list[list[Field]] = [[]]
    for field in (f for f in fields if f.size & (f.size - 1)):
        if groups[-1] and (prod(f.size for f in groups[-1]) * field.size - 1).bit_length() > most:
            groups.append([])
        groups[-1].append(field)
    for group in groups:
        width, stride = (prod(f.size for f in group) - 1).bit_length(), 1
        for field in group:
            found[field.name] = replace(field, offset=offset, width=width, stride=stride, shared=True)
            stride *= field.size
        offset += width
    return Layout({f.name: found[f.name] for f in fields})
