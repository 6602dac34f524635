# SPDX-License-Identifier: GPL-2.0-only
"""C's integer types on x86-64, their conversions, and arithmetic on plain Python integers.

Source: ISO C11 6.3.1.1 and 6.3.1.8 (ranks, promotions, usual arithmetic conversions); widths are those of LP64.
Signed overflow is taken to wrap: the kernel is built with -fno-strict-overflow.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CType:
    """An integer type: its width in bits and whether it is signed. ``bool`` is one bit wide.

    ``struct`` names the struct that a pointer points to (pointers are object indices, not numbers).
    """

    name: str
    bits: int
    signed: bool
    struct: str = ""

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1

    def wrap(self, value: int) -> int:
        """The value that an object of this type holds after the conversion of ``value`` to it."""
        if self.struct:
            return value
        if self.name == "bool":
            return int(value != 0)
        value &= (1 << self.bits) - 1
        return value - (1 << self.bits) if self.signed and value >> (self.bits - 1) else value

    def __str__(self) -> str:
        return self.name


BOOL = CType("bool", 1, False)
CHAR = CType("char", 8, True)
U8 = CType("u8", 8, False)
S16 = CType("s16", 16, True)
U16 = CType("u16", 16, False)
INT = CType("int", 32, True)
UINT = CType("unsigned int", 32, False)
LONG = CType("long", 64, True)
ULONG = CType("unsigned long", 64, False)

BY_NAME: dict[str, CType] = {
    "bool": BOOL, "_Bool": BOOL, "char": CHAR, "signed char": CHAR, "s8": CHAR, "u8": U8, "unsigned char": U8,
    "short": S16, "s16": S16, "u16": U16, "unsigned short": U16, "int": INT, "s32": INT, "signed int": INT,
    "unsigned int": UINT, "unsigned": UINT, "u32": UINT, "uint": UINT, "long": LONG, "s64": LONG, "long int": LONG,
    "long long": LONG, "ssize_t": LONG, "loff_t": LONG, "unsigned long": ULONG, "u64": ULONG, "size_t": ULONG,
    "unsigned long long": ULONG, "unsigned long int": ULONG, "gfp_t": UINT, "ktime_t": LONG,
    "atomic_t": INT, "atomic_long_t": LONG, "atomic64_t": LONG,
}


def pointer(struct: str) -> CType:
    """The type of a pointer to a struct, such as ``struct sched_entity``."""
    return CType(f"{struct} *", 64, False, struct)


def promote(ctype: CType) -> CType:
    """Integer promotion: everything narrower than int becomes int."""
    return INT if not ctype.struct and ctype.bits < 32 else ctype


def shift_limit(ctype: CType | None) -> int:
    """The amounts by which a value of a type can be shifted lie below this: nothing narrower than int is shifted."""
    return 64 if ctype is None else max(ctype.bits, INT.bits)


def usual(left: CType, right: CType) -> CType:
    """The common type of two operands after the usual arithmetic conversions."""
    left, right = promote(left), promote(right)
    if left.bits != right.bits:
        return left if left.bits > right.bits else right
    return left if not left.signed else right
