# SPDX-License-Identifier: GPL-2.0-only
"""Small C run by the compiler, by the plain interpreter and by the symbolic executor, on the same inputs.

The functions stand one header a line. Natively each universe of a model class is a static array; ``put`` and ``take``
set and read all its fields. What is compared after a run is the result and every field.
"""

from __future__ import annotations

import ctypes
import random
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import z3
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from schedproof.errors import ModelError, NotExecutable
from schedproof.kernel import Config, Tree, read
from schedproof.lang import terms as t
from schedproof.lang.execute import Executor
from schedproof.lang.interpret import Interpreter, Oracle
from schedproof.lang.syntax import Program
from schedproof.lang.world import Key, World, make_world
from schedproof.model.domains import NULL, Bool, Domain, Int, Link, Object, Pointer
from tests.loading import need

FLAGS = ("-O1", "-w", "-fwrapv", "-fno-strict-aliasing", "-shared", "-fPIC")
TYPEDEFS = """
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long u64;
typedef signed char s8; typedef short s16; typedef int s32; typedef long s64; typedef _Bool bool;
typedef unsigned __int128 u128; typedef unsigned long size_t;
#define NULL ((void *)0)
#define true 1
#define false 0
"""
WIDTHS = {"s8": (8, True), "u8": (8, False), "char": (8, True), "s16": (16, True), "u16": (16, False),
          "int": (32, True), "s32": (32, True), "u32": (32, False), "unsigned int": (32, False), "long": (64, True),
          "s64": (64, True), "u64": (64, False), "unsigned long": (64, False), "size_t": (64, False),
          "bool": (1, False), "unsigned char": (8, False), "enum sign": (32, True), "enum colour": (32, False)}
_HEADER = re.compile(r"^(?!static|typedef|struct \w+ \{|#|return|enum \w+ \{)((?:struct |enum |unsigned )?\w+)( \*| )"
                     r"(\w+)\(([^()]*)\)(?: \{|$)", re.MULTILINE)


def width(kind: str) -> tuple[int, bool]:
    """Bits and sign of a C type; of a bitfield as ``u32:3``."""
    base, _, bits = kind.partition(":")
    return (int(bits) if bits else WIDTHS[base][0]), WIDTHS[base][1]


def wrapped(value: int, kind: str) -> int:
    """A value of 64 bits as one of a C type."""
    bits, signed = width(kind)
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def numbers(kind: str) -> st.SearchStrategy[int]:
    """Any value of a type, often a small one or one at its ends."""
    low, high = ends(kind)
    return st.one_of(st.integers(max(low, -9), min(high, 50)), st.sampled_from(edges(low, high)),
                     st.integers(low, high))


def ends(kind: str) -> tuple[int, int]:
    """The least and the greatest value of a type."""
    bits, signed = width(kind)
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def edges(low: int, high: int) -> list[int]:
    """Values of an interval at which arithmetic changes."""
    return sorted({x for x in (low, high, 0, 1, -1, high - 1, low + 1, 1 << 31, (1 << 31) - 1, (1 << 32) - 1, 1 << 32)
                   if low <= x <= high})


def _some(kind: str, choose: random.Random) -> list[int]:
    low, high = ends(kind)
    return [choose.randint(max(low, -9), min(high, 50)), choose.choice(edges(low, high)), choose.randint(low, high)]


@dataclass(frozen=True)
class Function:
    """A function of the C text: what it returns, what it takes. A pointer's type is ``struct x *``."""

    name: str
    result: str
    params: tuple[tuple[str, str], ...]


def functions(code: str) -> dict[str, Function]:
    """The functions of a text that are not static."""
    found = {}
    for base, star, name, given_params in _HEADER.findall(code):
        params = []
        for param in given_params.split(",") if given_params != "void" else ():
            kind, named = re.fullmatch(r"\s*(.*?)\s*(\w+)\s*", param).groups()  # type: ignore[union-attr]
            params.append((kind, named))
        found[name] = Function(name, base + star.rstrip(), tuple(params))
    return found


@dataclass(frozen=True)
class Side:
    """What one of the ways to run a function gives."""

    value: int | None
    state: Mapping[Key, int] = field(default_factory=dict)


class Bench:
    """One C text with its model class, compiled and read."""

    def __init__(self, code: str, folder: Path, model: Any = None, kinds: Mapping[str, str] | None = None,
                 files: Mapping[str, str] | None = None, native: str = "", flags: tuple[str, ...] = (),
                 embedded: Mapping[str, tuple[str, str]] | None = None, atomics: frozenset[str] = frozenset()):
        """``embedded``: universes whose objects are a member of those of another one; ``atomics``: such variables."""
        need("gcc")
        self.embedded = dict(embedded or {})
        self.code, self.model, self.kinds = code, model, dict(kinds or {})
        self.functions = functions(code)
        given = vars(model) if model is not None else {}
        self.objects = {n: o for n, o in given.items() if isinstance(o, Object)}
        self.links = {n: o for n, o in given.items() if isinstance(o, Link)}
        self.variables = {n: o.resolve(None, {}) for n, o in given.items() if isinstance(o, Domain)}
        self.universes = {n: o.resolve(None) for n, o in self.objects.items()}
        self.keys = [(n, i) for n in self.variables for i in range(len(self.universes[self._per(n)]))]
        self._read: dict[str, dict[str, Program]] = {}
        self._worlds: dict[str, World] = {}
        for name, text in {"code.c": code, "Makefile": "VERSION = 6\n", **(files or {})}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        (folder / "native.c").write_text(f"{native}\n#include \"code.c\"\n{self._glue(atomics)}")
        subprocess.run(["gcc", *FLAGS, *flags, "-o", "native.so", "native.c"], cwd=folder, check=True)
        self.library = ctypes.CDLL(str(folder / "native.so"))
        for name in self.functions:
            getattr(self.library, f"call_{name}").restype = ctypes.c_long
        self.tree = Tree(folder)

    # ------------------------------------------------------------------------------------------- natively
    def _per(self, variable: str) -> str:
        per = self.variables[variable].per
        return next(n for n, o in self.objects.items() if o is per)

    def _universe(self, kind: str) -> str:
        return next(n for n, o in self.objects.items() if o.ctype == kind.rstrip(" *"))

    def _target(self, pointer: Pointer | Link) -> str:
        return next(n for n, o in self.objects.items() if o is pointer.target)

    def _glue(self, atomics: frozenset[str]) -> str:
        out = []
        for n, o in self.objects.items():
            size = len(self.universes[n])
            outer, member = self.embedded.get(n, ("", ""))
            here = f"at_{outer}(i)->{member}" if outer else f"the_{n}[i]"
            out += [f"static {o.ctype} the_{n}[{size}];" if not outer else "",
                    f"static {o.ctype} *at_{n}(long i) {{ return i < 0 ? NULL : &{here}; }}",
                    f"static long of_{n}({o.ctype} *p) {{",
                    f"for (int i = 0; i < {size}; i++) if (p == at_{n}(i)) return i;", "return p ? -2 : -1; }"]
        out += ["void links(void) {"]
        for link in self.links.values():
            if self.embedded.get(self._target(link), ("", ""))[1] == link.c:
                continue
            source = next(n for n, o in self.objects.items() if o is link.per)
            for i, name in enumerate(self.universes[source]):
                to = link.to.get(name, NULL)
                if to is not NULL:
                    at = self.universes[self._target(link)].index(to)
                    out.append(f"at_{source}({i})->{link.c} = at_{self._target(link)}({at});")
        out += ["}", "void put(const long *v) {"]
        sets, gets = [], []
        for number, (name, i) in enumerate(self.keys):
            domain, place = self.variables[name], f"at_{self._per(name)}({i})->{self.variables[name].c}"
            place += ".counter" if name in atomics else ""
            if isinstance(domain, Pointer):
                sets.append(f"{place} = at_{self._target(domain)}(v[{number}]);")
                gets.append(f"v[{number}] = of_{self._target(domain)}({place});")
            else:
                sets.append(f"{place} = v[{number}];")
                gets.append(f"v[{number}] = (long){place};")
        out += [*sets, "}", "void take(long *v) {", *gets, "}"]
        for f in self.functions.values():
            args = [f"at_{self._universe(kind)}(a[{i}])" if kind.endswith("*")
                    else f"({kind})a[{i}]" for i, (kind, _) in enumerate(f.params)]
            call = f"{f.name}({', '.join(args)})"
            if f.result == "void":
                body = f"{call}; return 0;"
            elif f.result.endswith("*"):
                body = f"return of_{self._universe(f.result)}({call});"
            else:
                body = f"return (long){call};"
            out.append(f"long call_{f.name}(const long *a) {{ {body} }}")
        return "\n".join(out) + "\n"

    def natively(self, f: Function, args: tuple[int, ...], state: Mapping[Key, int]) -> Side:
        """Run it as compiled."""
        self.library.links()
        self.library.put(_longs([state[k] for k in self.keys]))
        value = getattr(self.library, f"call_{f.name}")(_longs(list(args)))
        after = _longs([0] * len(self.keys))
        self.library.take(after)
        return Side(self._result(f, value), {k: self._field(k, v) for k, v in zip(self.keys, after, strict=False)})

    def _result(self, f: Function, value: int) -> int | None:
        if f.result == "void":
            return None
        return value if f.result.endswith("*") else wrapped(value, f.result)

    def _field(self, key: Key, value: int) -> int:
        return value if isinstance(self.variables[key[0]], Pointer) else wrapped(value, self.kind(key[0]))

    def kind(self, variable: str) -> str:
        """The C type of a number's field."""
        return self.kinds.get(variable, "int")

    # ------------------------------------------------------------------------------------- as it is read
    def programs(self, name: str) -> dict[str, Program]:
        if name not in self._read:
            self._read[name] = read(self.tree, name, "code.c", Config(), self.model)
        return self._read[name]

    def world(self, name: str) -> World:
        if name not in self._worlds:
            self._worlds[name] = self._make_world(name)
        return self._worlds[name]

    def _make_world(self, name: str) -> World:
        variables = {n: (self._per(n), Int() if not isinstance(d, Bool | Pointer) else d)
                     for n, d in self.variables.items()}
        links = {}
        for n, link in self.links.items():
            source = next(x for x, o in self.objects.items() if o is link.per)
            where = self.universes[self._target(link)]
            links[n] = tuple(where.index(link.to[o]) if link.to.get(o, NULL) is not NULL else -1
                             for o in self.universes[source])
        return make_world(self.universes, variables, links, {}, self.programs(name))

    def _memory(self, state: Mapping[Key, int]) -> dict[Key, int | bool]:
        return {k: bool(v) if isinstance(self.variables[k[0]], Bool) else v for k, v in state.items()}

    def interpreted(self, f: Function, args: tuple[int, ...], state: Mapping[Key, int]) -> Side:
        done = Interpreter(self.world(f.name), self._memory(state), Oracle()).run(f.name, args)
        return Side(None if done.value is None else int(done.value), {k: int(v) for k, v in done.memory.items()})

    def executed(self, f: Function, args: tuple[int, ...], state: Mapping[Key, int]) -> Side:
        """The symbolic executor on known values."""
        result = Executor(self.world(f.name)).run(f.name, list(args), self._memory(state))
        assert result.end is not None and not result.faults, (args, result.faults)
        return _known(result.value, result.end.heap, [])

    def symbolic(self, f: Function, args: tuple[int, ...], state: Mapping[Key, int]) -> Side:
        """The symbolic executor on unknown numbers, in whose outcome the numbers are then put."""
        world, ranges, put = self.world(f.name), dict[str, t.Interval](), list[Any]()
        given_args: list[Any] = list(args)
        for i, (kind, name) in enumerate(f.params):
            if not kind.endswith("*"):
                given_args[i] = _unknown(f"arg {name}", kind, args[i], ranges, put)
        heap: dict[Key, Any] = {}
        for key, value in state.items():
            domain = self.variables[key[0]]
            if isinstance(domain, Pointer):
                heap[key] = value
            elif isinstance(domain, Bool):
                heap[key] = z3.Bool(world.name(key))
                put.append((heap[key], z3.BoolVal(bool(value))))
            else:
                heap[key] = _unknown(world.name(key), self.kind(key[0]), value, ranges, put)
        result = Executor(world, ranges).run(f.name, given_args, heap)
        assert result.end is not None
        for fault in result.faults:
            assert _settled(fault.guard, put) is False, (args, fault)
        assert _settled(result.end.pc, put) is True, args
        return _known(result.value, result.end.heap, put)

    # ------------------------------------------------------------------------------------------ the test
    def inputs(self, f: Function) -> st.SearchStrategy[tuple[tuple[int, ...], dict[Key, int]]]:
        """Arguments and a state. A pointer is never NULL unless its name begins with ``maybe``."""
        args = [self._index(self._universe(kind), name.startswith("maybe")) if kind.endswith("*") else numbers(kind)
                for kind, name in f.params]
        return st.tuples(st.tuples(*args), st.integers(0, 1 << 40).map(self._state))

    def _state(self, seed: int) -> dict[Key, int]:
        """A state by number: drawing its many fields one by one would take most of the time."""
        choose = random.Random(seed)
        state: dict[Key, int] = {}
        for key in self.keys:
            domain = self.variables[key[0]]
            if isinstance(domain, Pointer):
                state[key] = choose.randrange(-domain.null, len(self.universes[self._target(domain)]))
            else:
                state[key] = choose.choice(_some("bool" if isinstance(domain, Bool) else self.kind(key[0]), choose))
        return state

    def _index(self, universe: str, null: bool) -> st.SearchStrategy[int]:
        return st.integers(-1 if null else 0, len(self.universes[universe]) - 1)

    def check(self, name: str, examples: int = 200, few: int = 25, unknowns: int = 8) -> str:
        """Run a function in all ways. Returns what keeps it from being run on unknown numbers, if anything does."""
        f, refused = self.functions[name], ""
        count = iter(range(examples * 20))

        @settings(max_examples=examples, deadline=None, database=None, derandomize=True, phases=(Phase.generate,))
        @given(self.inputs(f))
        def same(one: tuple[tuple[int, ...], dict[Key, int]]) -> None:
            nonlocal refused
            number = next(count)
            wanted = self.natively(f, *one)
            assert self.interpreted(f, *one) == wanted, one
            if number < few:
                assert self.executed(f, *one) == wanted, one
            if number < unknowns and not refused:
                try:
                    assert self.symbolic(f, *one) == wanted, one
                except (NotExecutable, ModelError) as error:
                    refused = str(error)

        same()
        return refused


def _longs(values: list[int]) -> ctypes.Array[ctypes.c_long]:
    return (ctypes.c_long * max(1, len(values)))(*[wrapped(v, "long") for v in values])


def _unknown(name: str, kind: str, value: int, ranges: dict[str, t.Interval], put: list[Any]) -> Any:
    bits, signed = width(kind)
    if bits == 1 and not signed:
        constant = z3.Bool(name)
        put.append((constant, z3.BoolVal(bool(value))))
        return constant
    ranges[name] = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    put.append((z3.Int(name), z3.IntVal(value)))
    return z3.Int(name)


def _settled(value: Any, put: list[Any]) -> Any:
    if isinstance(value, int):
        return value
    return t.settle(z3.simplify(z3.substitute(value, *put)))


def _known(value: Any, heap: Mapping[Key, Any], put: list[Any]) -> Side:
    def number(one: Any) -> int:
        found = _settled(one, put)
        assert isinstance(found, int), found
        return int(found)

    return Side(None if value is None else number(value), {k: number(v) for k, v in heap.items()})


def names(code: str) -> Iterator[str]:
    """The names of the functions of a text, for ``parametrize``."""
    yield from functions(code)
