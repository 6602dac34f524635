# SPDX-License-Identifier: GPL-2.0-only
"""The one configuration under which a tree is read, and the conditions of ``#if`` under it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from schedproof.errors import InputError

# Everything that is not listed is off. Kept short: options that the modelled functions and their headers consult.
DEFAULT_OPTIONS: Mapping[str, str] = MappingProxyType({
    "CONFIG_X86": "y", "CONFIG_X86_64": "y", "CONFIG_64BIT": "y", "CONFIG_SMP": "y", "CONFIG_MMU": "y",
    "CONFIG_CGROUPS": "y", "CONFIG_CGROUP_SCHED": "y", "CONFIG_FAIR_GROUP_SCHED": "y", "CONFIG_CFS_BANDWIDTH": "y",
    "CONFIG_GROUP_SCHED_WEIGHT": "y", "CONFIG_JUMP_LABEL": "y", "CONFIG_HZ": "1000", "CONFIG_NO_HZ_COMMON": "y",
    "CONFIG_HIGH_RES_TIMERS": "y", "CONFIG_PARAVIRT": "y", "CONFIG_PARAVIRT_SPINLOCKS": "y",
    "CONFIG_QUEUED_SPINLOCKS": "y", "CONFIG_KVM": "y", "CONFIG_HAVE_KVM": "y", "CONFIG_KVM_COMMON": "y",
    "CONFIG_HAVE_KVM_CPU_RELAX_INTERCEPT": "y", "CONFIG_PREEMPT_NOTIFIERS": "y", "CONFIG_GENERIC_ENTRY": "y",
    "CONFIG_KVM_ASYNC_PF": "y", "CONFIG_KVM_SMM": "y",
    "CONFIG_ARCH_SUPPORTS_INT128": "y", "CONFIG_NR_CPUS": "64", "CONFIG_PREEMPT_COUNT": "y",
})

# What the compiler of an x86-64 kernel defines. ``None``: known to be undefined.
COMPILER: Mapping[str, int | None] = MappingProxyType({
    "__KERNEL__": 1, "__GNUC__": 12, "__x86_64__": 1, "__LP64__": 1, "__CHECKER__": None, "__ASSEMBLY__": None,
    "__ASSEMBLER__": None, "__clang__": None, "__cplusplus": None, "MODULE": None, "BITS_PER_LONG": 64,
    "__BITS_PER_LONG": 64, "__SIZEOF_INT128__": 16, "__SIZEOF_POINTER__": 8, "__SIZEOF_LONG_LONG__": 8, "HZ": 1000,
    "__LITTLE_ENDIAN": 1234, "__BIG_ENDIAN": None, "__GENKSYMS__": None, "__i386__": None, "BUILD_VDSO": None,
    "BUILD_VDSO32": None,
})


class Config:
    """A kernel configuration: options that are ``y`` (or have a number or string); all others are off.

    Immutable apart from ``consulted``: the options that the code read so far depended on, for the reports.
    """

    def __init__(self, options: Mapping[str, str] = DEFAULT_OPTIONS):
        for name, value in options.items():
            if not re.fullmatch(r"CONFIG_\w+", name) or value in ("m", "n", ""):
                raise InputError(f"{name}={value}: an option is CONFIG_NAME=y or has a number; leave out what is off")
        self.options: Mapping[str, str] = MappingProxyType(dict(options))
        self.consulted: set[str] = set()

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """The options as a value that can be hashed."""
        return tuple(sorted(self.options.items()))

    def on(self, option: str) -> bool:
        """Whether an option is set."""
        return option in self.options

    def value(self, option: str) -> int | None:
        """The number that ``#if`` sees for an option: 1 for ``y``, 0 when off, None for a string."""
        text = self.options.get(option)
        if text is None:
            return 0
        if text == "y":
            return 1
        return int(text, 0) if re.fullmatch(r"0|[1-9][0-9]{0,18}|0x[0-9a-fA-F]{1,16}", text) else None

    def shown(self, consulted_only: bool = True) -> str:
        """One line for a report: the options that mattered, such as ``x86-64 CFS_BANDWIDTH=y SMP=y, all others n``."""
        names = sorted(self.consulted if consulted_only else set(self.options) | self.consulted)
        told = " ".join(["x86-64", *(f"{n.removeprefix('CONFIG_')}={self.options[n]}" for n in names
                                     if self.options.get(n, "n") != "n")])
        return told + (", all others n" if any(self.options.get(n, "n") == "n" for n in names) else "")


DEFAULT = Config()

_TOKEN = re.compile(r"\s*(?:(0[xX][0-9a-fA-F]+|\d+)[lL]*([uU]?)[lL]*|([A-Za-z_]\w*)"
                    r"|(&&|\|\||==|!=|<=|>=|<<|>>|[!<>()+*/%&|^~?:,-]))")
_LEVEL = {"||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
          "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10}
_COMPARED = ("==", "!=", "<", "<=", ">", ">=")
_DEPTH = 64                                # nesting of an #if expression; deeper ones are left undecided


_BITS = 64                                 # #if computes in intmax_t and uintmax_t


class _Odd(Exception):
    """An ``#if`` that is not an expression this module knows."""


class _Unsigned(int):
    """A value of the type uintmax_t; any other one is of intmax_t."""


def _wrapped(value: int, unsigned: bool) -> int:
    value &= (1 << _BITS) - 1
    return _Unsigned(value) if unsigned else value - (value >> (_BITS - 1) << _BITS)


def _literal(text: str) -> int:
    """A number as it is spelled, perhaps with a ``u`` behind it."""
    digits = text.removesuffix("u")
    try:
        value = int(digits, 8) if re.fullmatch(r"0[0-9]+", digits) else int(digits, 0)
    except ValueError:                     # 08, or more digits than Python takes
        raise _Odd from None
    if value >> _BITS:
        raise _Odd
    return _Unsigned(value) if text != digits or value >> (_BITS - 1) else value


class Condition:
    """Evaluates ``#if`` expressions to a number, or to None where it depends on something unknown.

    ``defined(name)`` says whether a macro is defined (None: unknown); ``number(name)`` its value (None: unknown).
    ``options`` collects the configuration options that were consulted, ``names`` the other names.
    """

    def __init__(self, config: Config, defined: Callable[[str], bool | None],
                 number: Callable[[str], int | None]):
        self.config, self._defined, self._number = config, defined, number
        self.options: set[str] = set()
        self.names: set[str] = set()
        self.tokens: list[tuple[str, str]] = []
        self.at = 0

    def evaluate(self, text: str) -> int | None:
        """The value of a condition; None when it cannot be told."""
        try:
            self.tokens, self.at = list(self._split(text)), 0
            value = self._binary(0, 0)
            if self.at != len(self.tokens):
                raise _Odd
            return value
        except _Odd:
            return None

    def defined(self, name: str) -> bool | None:
        """``defined(name)``."""
        if name.startswith("CONFIG_"):
            self.options.add(name)
            return self.config.on(name)
        self.names.add(name)
        return self._defined(name)

    @staticmethod
    def _split(text: str) -> Iterator[tuple[str, str]]:
        at, text = 0, text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if not found:
                raise _Odd
            at = found.end()
            if found[1]:
                yield ("number", found[1] + found[2].lower())
            elif found[3]:
                yield ("name", found[3])
            else:
                yield ("op", found[4])

    def _peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def _take(self, wanted: str | None = None) -> tuple[str, str]:
        token = self._peek()
        if token[0] == "end" or (wanted is not None and token[1] != wanted):
            raise _Odd
        self.at += 1
        return token

    def _binary(self, level: int, depth: int) -> int | None:
        if depth > _DEPTH:
            raise _Odd
        left = self._unary(depth + 1)
        while self._peek()[0] == "op" and _LEVEL.get(self._peek()[1], -1) > level:
            op = self._take()[1]
            left = _apply(op, left, self._binary(_LEVEL[op], depth + 1))
        if level == 0 and self._peek() == ("op", "?"):
            self._take()
            then = self._binary(0, depth + 1)
            self._take(":")
            other = self._binary(0, depth + 1)
            if left is None:
                return None
            chosen = then if left else other
            if isinstance(then, _Unsigned) or isinstance(other, _Unsigned):
                return None if chosen is None else _wrapped(chosen, True)
            return chosen
        return left

    def _unary(self, depth: int) -> int | None:
        if depth > _DEPTH:
            raise _Odd
        kind, text = self._take()
        if kind == "number":
            return _literal(text)
        if kind == "op":
            if text == "(":
                value = self._binary(0, depth + 1)
                self._take(")")
                return value
            if text not in "!-+~":
                raise _Odd
            operand = self._unary(depth + 1)
            if operand is None:
                return None
            if text == "!":
                return int(not operand)
            return _wrapped({"-": -operand, "+": operand, "~": ~operand}[text], isinstance(operand, _Unsigned))
        if text == "defined":
            if self._peek()[1] == "(":
                self._take()
                name = self._take()[1]
                self._take(")")
            else:
                name = self._take()[1]
            found = self.defined(name)
            return None if found is None else int(found)
        if self._peek()[1] == "(":
            return self._call(text)
        if text.startswith("CONFIG_"):
            self.options.add(text)
            return self.config.value(text)
        self.names.add(text)
        return self._number(text)

    def _call(self, name: str) -> int | None:
        self._take("(")
        depth, args = 1, []
        while depth:
            kind, text = self._take()
            depth += (text == "(") - (text == ")")
            args.append(text)
        option = args[0]
        if name in ("IS_ENABLED", "IS_BUILTIN", "IS_REACHABLE") and len(args) == 2 and option.startswith("CONFIG_"):
            self.options.add(option)
            return int(self.config.options.get(option) == "y")
        if name == "IS_MODULE" and len(args) == 2:
            return 0
        return None


def _apply(op: str, left: int | None, right: int | None) -> int | None:
    """One operator; None is "unknown", which ``&&`` and ``||`` can absorb."""
    if op == "&&":
        if left == 0 or right == 0:
            return 0
        return None if left is None or right is None else 1
    if op == "||":
        if left or right:
            return 1
        return None if left is None or right is None else 0
    if left is None or right is None:
        return None
    if op in ("/", "%") and right == 0 or op in ("<<", ">>") and not 0 <= right < 64:
        return None
    unsigned = isinstance(left, _Unsigned) or op not in ("<<", ">>") and isinstance(right, _Unsigned)
    if unsigned and op not in ("<<", ">>"):
        left, right = _wrapped(left, True), _wrapped(right, True)
    table: dict[str, Callable[[int, int], int]] = {
        "|": int.__or__, "^": int.__xor__, "&": int.__and__, "<<": int.__lshift__, ">>": int.__rshift__,
        "+": int.__add__, "-": int.__sub__, "*": int.__mul__,
        "/": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
        "%": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
        "==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b), "<": lambda a, b: int(a < b),
        "<=": lambda a, b: int(a <= b), ">": lambda a, b: int(a > b), ">=": lambda a, b: int(a >= b)}
    return _wrapped(table[op](int(left), int(right)), unsigned and op not in _COMPARED)
