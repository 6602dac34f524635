# SPDX-License-Identifier: GPL-2.0-only
"""Makes C functions in the kernel's idiom over the small model of ``yard``, from a seed.

What it makes is well defined: no signed overflow but the one that wraps, no shift by more than the width, no
division by zero, nothing read before it is set, no NULL followed, no value that hangs on an order of evaluation that
C leaves open. So a compiler's result is the only right one. ``odd`` adds constructs that the reader may refuse.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.campaigns.fuzz.oddities import ODD

NUMBERS = ("int", "long", "unsigned int", "unsigned long", "u8", "s8", "u16", "short", "u32", "u64", "s64", "bool")
SPELLED = ("int", "long", "unsigned int", "unsigned long", "unsigned char", "signed char", "short", "unsigned short",
           "long long", "unsigned")          # a parser knows these for types without knowing any typedef
CAR_FIELDS = ("small", "wide", "count", "size", "flag", "byte", "tiny", "half", "brief", "low", "mid", "load.weight",
              "load.inv")
LOT_FIELDS = ("fill", "nr")
LITERALS = ("0", "1", "2", "3", "-1", "7", "10", "63", "100", "255", "0x80", "1024", "0x7fffffff", "0xffffffff", "1u",
            "2UL", "-5L", "0xfffffffffUL", "'a'", "010", "4294967295u", "0x8000", "65535", "1ull", "(1L << 40)",
            "(-2147483647 - 1)", "'\\n'", "YARD_MAX", "3LL")


@dataclass
class Function:
    """One generated function: the text of its file, its header's types, the odd constructs that are in it."""

    text: str
    result: str
    params: tuple[tuple[str, str], ...]            # (type, name); "car" and "lot" are pointers
    odd: tuple[str, ...] = ()


@dataclass
class Scope:
    numbers: list[tuple[str, str]] = field(default_factory=list)       # (name, type)
    fixed: set[str] = field(default_factory=set)                       # loop counters: not to be changed


class Maker:
    """Makes one function and what it needs around it; names end in ``tag``, so that many fit into one file."""

    def __init__(self, rng: random.Random, tag: str = "", odd: bool = False, deepest: int = 3):
        self.rng, self.tag = rng, tag
        self.head: list[str] = []
        self.names = 0
        self.scopes: list[Scope] = []
        self.cars = ["c", "d"]
        self.lots = ["l"]
        self.helpers: list[tuple[str, str, list[str]]] = []            # (name, result, parameter types)
        self.macros: list[tuple[str, int]] = []
        self.constants: list[str] = []
        self.loops = self.depth = 0
        self.breakable = self.continuable = False
        self.labels: list[str] = []
        self.result = ""
        self.odd, self.deepest = odd, deepest
        self.odds: list[str] = []
        self.calls = 0
        self.helpers_void: list[str] = []

    # -------------------------------------------------------------------------------------------- small help
    def one(self, *options: str) -> str:
        return self.rng.choice(options)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}{self.tag}"

    def local(self, avoid: frozenset[str] = frozenset(), change: bool = False) -> str | None:
        found = [n for s in self.scopes for n, _ in s.numbers if n not in avoid and not (change and n in s.fixed)]
        inner = {n for s in self.scopes for n in s.fixed}
        found = [n for n in found if not change or n not in inner]
        return self.rng.choice(found) if found else None

    def car(self) -> str:
        return self.rng.choice(self.cars)

    def lot(self) -> str:
        return f"{self.car()}->home" if self.chance(0.4) or not self.lots else self.rng.choice(self.lots)

    def field(self) -> str:
        """A field that can be read and written."""
        if self.chance(0.25):
            return f"{self.lot()}->{self.rng.choice(LOT_FIELDS)}"
        return f"{self.car()}->{self.rng.choice(CAR_FIELDS)}" if self.chance(0.95) else "ticks"

    # --------------------------------------------------------------------------------------- pure expressions
    def leaf(self, avoid: frozenset[str], state: bool) -> str:
        kind = self.rng.random()
        if kind < 0.35:
            return self.rng.choice(LITERALS)
        found = self.local(avoid)
        if kind < 0.65 and found:
            return found
        if kind < 0.72 and self.constants:
            return self.rng.choice(self.constants)
        if state:
            if kind < 0.76:
                return f"{self.lot()}->room"
            if kind < 0.80:
                return f"atomic_read(&{self.car()}->refs)"
            return self.field()
        return found or self.rng.choice(LITERALS)

    def pure(self, depth: int = 3, avoid: frozenset[str] = frozenset(), state: bool = True) -> str:
        """An expression without effect. ``avoid``: locals that it may not read; ``state`` False: locals alone."""
        if depth <= 0 or self.chance(0.15):
            return self.leaf(avoid, state)
        makers: list[Callable[[int, frozenset[str], bool], str]] = [
            self.binary, self.binary, self.binary, self.compare, self.logic, self.unary, self.shift, self.divide,
            self.choice, self.cast, self.words, self.macro_use, self.near]
        return self.rng.choice(makers)(depth - 1, avoid, state)

    def binary(self, depth: int, avoid: frozenset[str], state: bool) -> str:
        op = self.one("+", "-", "*", "&", "|", "^")
        other = self.pure(depth, avoid, state)
        if op in "&|^" and self.chance(0.9):                     # the symbolic run knows masks that are constants
            other = self.one("1", "7", "0xff", "~3L", "0xf0u", "(1 << 4)", "0xffffffff", "-2")
        text = f"{self.pure(depth, avoid, state)} {op} {other}"
        return text if self.chance(0.1) else f"({text})"

    def compare(self, depth: int, avoid: frozenset[str], state: bool) -> str:
        if state and self.chance(0.1):
            return f"({self.pointer()} {self.one('==', '!=')} {self.pointer()})"
        op = self.one("==", "!=", "<", "<=", ">", ">=")
        return f"({self.pure(depth, avoid, state)} {op} {self.pure(depth, avoid, state)})"

    def pointer(self) -> str:
        return self.one(self.car(), f"{self.car()}->ahead", f"{self.lot()}->tail", "NULL", f"{self.car()}->home->tail")

    def logic(self, depth: int, avoid: frozenset[str], state: bool) -> str:
        return f"({self.pure(depth, avoid, state)} {self.one('&&', '||')} {self.pure(depth, avoid, state)})"

    def unary(self, depth: int, avoid: frozenset[str], state: bool) -> str:
        return f"{self.one('-', '~', '!', '!!', '+')}({self.pure(depth, avoid, state)})"

    def shift(self, depth: int, avoid: frozenset[str], state: bool) -> str:
        amount = f"(({self.pure(depth, avoid, state)}) & {self.one('31', '15', '7')})"
        if self.chance(0.9):
            amount = str(self.rng.randrange(31))
        return f"({self.pure(depth, avoid, state)} {self.one('<<', '>>')} {amount})"

    def divide(self, depth: int, avoid: frozenset[str], state: bool) -> str:
        divisor = self.one("3", "7u", "10L", "1024", f"((({self.pure(depth, avoid, state)}) & 7) + 1)")
        return f"({self.pure(depth, avoid, state)} {self.one('/', '%')} {divisor})"

    def choice(self, depth: int, avoid: frozenset[str], state: bool) -> str:
        if self.chance(0.15):
            return f"({self.pure(depth, avoid, state)} ?: {self.pure(depth, avoid, state)})"
        return (f"({self.pure(depth, avoid, state)} ? {self.pure(depth, avoid, state)} : "
                f"{self.pure(depth, avoid, state)})")

    def cast(self, depth: int, avoid: frozenset[str], state: bool) -> str:
        kind = self.rng.choice(NUMBERS if self.chance(0.1) else SPELLED)
        return f"({kind})({self.pure(depth, avoid, state)})"

    def near(self, depth: int, avoid: frozenset[str], state: bool) -> str:
        """A field behind a pointer that may be NULL, guarded."""
        if not state:
            return self.pure(depth, avoid, state)
        pointer = self.one(f"{self.car()}->ahead", f"{self.lot()}->tail")
        inner = f"{pointer}->{self.rng.choice(CAR_FIELDS)}"
        return self.one(f"({pointer} ? {inner} : {self.leaf(avoid, state)})", f"({pointer} && {inner})",
                        f"(!{pointer} || {inner} > 1)", f"({pointer} != NULL ? {inner} : 0)")

    def words(self, depth: int, avoid: frozenset[str], state: bool) -> str:
        """The kernel's own words, statement expressions, typeof."""
        a, b = self.pure(depth, avoid, state), self.pure(depth, avoid, state)
        t, name = self.rng.choice(NUMBERS[:-1]), self.name("t")
        return self.one(
            f"max({a}, {b})", f"min({a}, {b})", f"max_t({t}, {a}, {b})", f"min_t({t}, {a}, {b})",
            f"clamp_t({t}, {a}, {b}, {self.leaf(avoid, state)})", f"abs({a})", f"likely({a})", f"unlikely({a})",
            f"({{ {t} {name} = {a}; {name} {self.one('+', '-', '*')} ({b}); }})", f"WARN_ON_ONCE({a})",
            f"({{ typeof(({a}) + 0) {name} = {b}; {name}; }})",
            f"({{ __auto_type {name} = ({a}) + 0; {name} + {name}; }})",
            f"READ_ONCE({self.field()})" if state else a, f"div_u64({a}, (({b}) & 15) + 1)",
            f"div64_u64({a}, ((u64)({b}) >> 3) | 1)", f"div_s64({a}, 7)", f"mul_u64_u32_shr({a}, {b}, 32)",
            f"IS_ENABLED({self.one('CONFIG_SMP', 'CONFIG_NOT_THERE')})",
            f"static_branch_{self.one('likely', 'unlikely')}(&{self.one('yard_open', 'yard_shut')})",
            f"({{ int {name} = {a}; if ({name} > 5) {name} -= 3; else {name}++; {name}; }})", f"({a}, {b})")

    def macro_use(self, depth: int, avoid: frozenset[str], state: bool) -> str:
        if not self.macros:
            return self.pure(depth, avoid, state)
        name, arity = self.rng.choice(self.macros)
        return f"{name}({', '.join(self.pure(depth, avoid, state) for _ in range(arity))})"

    # ------------------------------------------------------------------------------------- calls with effects
    def call(self) -> str:
        """A call that may change the state; its arguments have no effect."""
        self.calls += 1
        car, a = self.car(), self.pure(2)
        kind = self.rng.random()
        if kind < 0.25 and self.helpers:
            name, _, params = self.rng.choice(self.helpers)
            args = [{"car": self.car, "lot": self.lot, "load": lambda: f"&{self.car()}->load"}.get(
                p, lambda: self.pure(2))() for p in params]
            return f"{name}({', '.join(args)})"
        if kind < 0.35:
            return f"ask({car})"
        return self.one(
            f"atomic_inc_return(&{car}->refs)", f"atomic_add_return({a}, &{car}->refs)",
            f"atomic_fetch_add({a}, &{car}->refs)", f"atomic_fetch_sub({a}, &{car}->refs)",
            f"atomic_dec_and_test(&{car}->refs)", f"atomic_sub_and_test({a}, &{car}->refs)",
            f"atomic64_add_return({a}, &{car}->total)", f"atomic64_fetch_add({a}, &{car}->total)",
            f"atomic_xchg(&{car}->refs, {a})", f"atomic_cmpxchg(&{car}->refs, {a}, {self.leaf(frozenset(), True)})",
            f"xchg(&{car}->{self.one('small', 'wide', 'byte', 'count')}, {a})",
            f"cmpxchg(&{car}->{self.one('small', 'size', 'tiny')}, {a}, {self.leaf(frozenset(), True)})")

    def impure(self, avoid: frozenset[str]) -> str:
        """An expression with one effect, in which nothing hangs on an order that is open."""
        call, quiet = self.call(), self.pure(2, avoid, False)
        changed = self.local(avoid, change=True)
        forms = [call, f"({quiet} {self.one('+', '-', '*', '<', '==')} {call})", f"({self.pure(1)} && {call})",
                 f"({self.pure(1)} || {call})", f"({self.pure(1)} ? {call} : {self.call()})",
                 f"({call}, {self.pure(2, avoid)})", f"({self.pure(1)} ? {self.pure(1, avoid)} : {call})",
                 f"!{call}", f"(unsigned char){call}"]
        if changed:
            rest = self.pure(1, avoid | {changed}, False)
            forms += [f"({changed}++ + {rest})", f"({rest} - --{changed})", f"(({changed} = {call}) > {rest})",
                      f"({changed} += {self.pure(1, avoid)}, {changed})",
                      f"({changed}-- > 1 && {self.pure(1, avoid)})"]
        return self.rng.choice(forms)

    # -------------------------------------------------------------------------------------------- statements
    def block(self, most: int = 3, names: bool = True) -> str:
        """Statements in braces, with locals of their own."""
        self.scopes.append(Scope())
        self.depth += 1
        lines = []
        for _ in range(self.rng.randrange(2) if names else 0):
            lines.append(self.declaration())
        lines += [self.statement() for _ in range(self.rng.randint(1, most))]
        self.depth -= 1
        self.scopes.pop()
        return "{\n" + "\n".join(lines) + "\n}"

    def declaration(self) -> str:
        kind = self.rng.choice(NUMBERS)
        value = self.pure(2) if self.chance(0.9) else self.impure(frozenset())
        known = self.local()
        shadows = self.chance(0.12) and known is not None and known not in {n for s in self.scopes for n in s.fixed}
        name = known if shadows and known and known not in value.replace("(", " ").split() else self.name("v")
        if known == name and any(name == n for n, _ in self.scopes[-1].numbers):
            name = self.name("v")
        if name == known and name in value:                       # int x = x + 1 reads the new x
            name = self.name("v")
        text = f"{kind} {name} = {value};"
        self.scopes[-1].numbers.append((name, kind))
        return text

    def statement(self) -> str:
        if self.odd and self.depth <= 3 and self.chance(0.15):
            label, make = self.rng.choice(ODD)
            self.odds.append(label)
            return make(self)
        simple: list[Callable[[], str]] = [
            self.assign, self.assign, self.assign, self.store, self.store, self.store, self.bump, self.action,
            self.impure_assign, self.leave, self.swap, self.conditional_code]
        nested: list[Callable[[], str]] = [self.if_, self.if_, self.if_, self.for_, self.while_, self.do_, self.switch,
                                           self.block_, self.bare_macro]
        if self.depth >= self.deepest:
            return self.rng.choice(simple)()
        return self.rng.choice(simple if self.chance(0.6) else nested)()

    def assign(self) -> str:
        name = self.local(change=True)
        if name is None:
            return self.store()
        op = self.one("=", "=", "=", "+=", "-=", "*=")
        if self.chance(0.1):
            return f"{name} {self.one('&=', '|=', '^=')} {self.one('1', '0xff', '~7', '0x100UL')};"
        if self.chance(0.1):
            return f"{name} {self.one('<<=', '>>=')} {self.rng.randrange(8)};"
        if self.chance(0.06):
            return f"{name} {self.one('/=', '%=')} {self.one('3', '5u', '9L')};"
        return f"{name} {op} {self.pure()};"

    def store(self) -> str:
        if self.chance(0.1):
            pointer = self.one(self.car(), "NULL", f"{self.car()}->ahead", f"{self.lot()}->tail")
            return f"{self.lot()}->tail = {pointer};"
        if self.chance(0.1):
            return f"WRITE_ONCE({self.field()}, {self.pure()});"
        if self.chance(0.05):
            return f"{self.car()}->stamp = {self.pure(1)};"
        other, name = self.field(), self.local(change=True)
        if self.chance(0.06) and name:
            return f"{name} = {other} = {self.pure(2, frozenset({name}))};"
        return f"{other} {self.one('=', '=', '+=', '-=', '*=')} {self.pure()};"

    def bump(self) -> str:
        target = self.local(change=True) if self.chance(0.5) else None
        target = target or self.field()
        return self.one(f"{target}++;", f"++{target};", f"{target}--;", f"--{target};")

    def action(self) -> str:
        car, a = self.car(), self.pure(2)
        return self.one(f"note({car}, {a});", f"atomic_inc(&{car}->refs);", f"atomic_sub({a}, &{car}->refs);",
                        f"atomic64_add({a}, &{car}->total);", f"atomic_set(&{car}->refs, {a});", "smp_mb();",
                        f"{self.call()};", f"trace_it({a});", f"(void){self.call()};", f"WARN_ON_ONCE({a});",
                        f"atomic64_set(&{car}->total, {a});", ";")

    def impure_assign(self) -> str:
        name = self.local(change=True)
        if name is None:
            return self.action()
        if self.chance(0.15):
            return f"{name} {self.one('+=', '-=')} {self.call()};"
        return f"{name} = {self.impure(frozenset({name}))};"

    def swap(self) -> str:
        a, b = self.local(change=True), self.local(change=True)
        if a and b and a != b:
            kinds = {n: t for s in self.scopes for n, t in s.numbers}
            if kinds[a] == kinds[b]:
                return f"swap({a}, {b});"
        return self.assign()

    def leave(self) -> str:
        """A jump out, under a condition."""
        ways = [self.returned()] if self.chance(0.4) else []
        ways += [f"goto {self.rng.choice(self.labels)};"] * 2 if self.labels else []
        ways += ["break;"] * 2 if self.breakable else []
        ways += ["continue;"] * 2 if self.continuable else []
        if not ways:
            return self.assign()
        return f"if ({self.pure(2)})\n{self.rng.choice(ways)}"

    def returned(self) -> str:
        return f"return {self.pure(2)};" if self.result != "void" else "return;"

    def conditional_code(self) -> str:
        """``#if`` inside a function."""
        test = self.one("#ifdef CONFIG_SMP", "#ifndef CONFIG_NUMA_NOT", "#if defined(CONFIG_X86) && CONFIG_HZ > 100",
                        "#if 0", f"#if {self.condition(3)}", f"#if IS_ENABLED(CONFIG_{self.one('SMP', 'NONE')})",
                        f"#if {self.condition(2)}")
        middle = f"\n#elif {self.condition(2)}\n{self.assign()}" if self.chance(0.3) else ""
        other = f"\n#else\n{self.assign()}" if self.chance(0.5) else ""
        return f"\n{test}\n{self.assign()}{middle}{other}\n#endif\n"

    def condition(self, depth: int) -> str:
        """A constant expression of the preprocessor."""
        if depth <= 0 or self.chance(0.2):
            return self.one("0", "1", "2", "-1", "7u", "0x10", "017", "CONFIG_HZ", "CONFIG_NONE", "100L", "3UL",
                            "defined(CONFIG_SMP)", "defined CONFIG_NONE", "__GNUC__", "UNKNOWN_WORD", "BITS_PER_LONG")
        a, b = self.condition(depth - 1), self.condition(depth - 1)
        return self.one(f"({a} + {b})", f"({a} - {b})", f"{a} * {b}", f"({a} < {b})", f"({a} >= {b})", f"({a} && {b})",
                        f"({a} || {b})", f"!({a})", f"~({a})", f"({a} ? {b} : 1)", f"({a} == {b})", f"-({a})",
                        f"({a} & {b})", f"({a} | {b})", f"({a} >> 2)", f"({a} / 3)", f"({a} % 5)", f"({a} << 3)")

    def test(self) -> str:
        return self.pure(2) if self.chance(0.7) else self.impure(frozenset())

    def if_(self) -> str:
        text = f"if ({self.test()}) {self.block() if self.chance(0.6) else self.statement_alone()}"
        if self.chance(0.2):
            text = f"if ({self.test()}) {self.block(2)} else if ({self.test()}) {self.block(2)}"
        return f"{text} else {self.block(2)}" if self.chance(0.4) else text

    def statement_alone(self) -> str:
        return self.rng.choice([self.assign, self.store, self.bump, self.impure_assign])()

    def inside(self, most: int, again: bool = True) -> str:
        kept = self.breakable, self.continuable
        self.breakable, self.continuable, self.loops = True, again or self.continuable, self.loops + 1
        text = self.block(most)
        self.loops -= 1
        self.breakable, self.continuable = kept
        return text

    def counter(self) -> str:
        name = self.name("i")
        self.scopes[-1].numbers.append((name, "int"))
        self.scopes[-1].fixed.add(name)
        return name

    def for_(self) -> str:
        if self.loops:
            return self.if_()
        self.scopes.append(Scope())
        name, rounds = self.counter(), self.rng.randint(1, 3)
        kind = self.one("int", "u8", "unsigned int", "long")
        head, loop = self.one(
            f"{kind} {name};\nfor ({name} = 0; {name} < {rounds}; {name}++)@@",
            f"for ({kind} {name} = 0; {name} < {rounds}; {name}++)@@",
            f"int {name};\nfor ({name} = {rounds}; {name} > 0; {name}--)@@",
            f"{kind} {name};\nfor ({name} = 0; {name} < {rounds} && {self.pure(1)}; ++{name})@@",
            f"int {name} = 0;\nfor (;; {name} += 2)@@if ({name} > {rounds}) break;",
            f"int {name};\nfor ({name} = {rounds}; {name}-- && {self.pure(1)};)@@",
            f"int {name};\nfor ({name} = 0; ({self.one('ask(c)', 'atomic_read(&c->refs) > 1')}, "
            f"{name} < {rounds}); {name}++)@@").split("@@")
        body = self.inside(2)
        self.scopes.pop()
        return f"{{\n{head} {{\n{loop}\n{body}\n}}\n}}"

    def while_(self) -> str:
        if self.loops:
            return self.if_()
        self.scopes.append(Scope())
        name, rounds = self.counter(), self.rng.randint(1, 4)
        test = self.one(f"{name}-- > 0", f"{name} && {name}--", f"--{name} >= 0",
                        f"({{ int q{name} = {name}--; q{name} > 0; }})", f"{name}-- > 0 && {self.impure(frozenset())}")
        body = self.inside(2)
        self.scopes.pop()
        return f"{{\nint {name} = {rounds};\nwhile ({test}) {body}\n}}"

    def do_(self) -> str:
        if self.loops or self.chance(0.3):
            return f"do {self.inside(2)} while (0);"
        self.scopes.append(Scope())
        name, rounds = self.counter(), self.rng.randint(1, 4)
        body = self.inside(2)
        self.scopes.pop()
        more = self.one("", " && ask(c)", " && !ask(c)")
        return f"{{\nint {name} = {rounds};\ndo {body} while (--{name} > 0{more});\n}}"

    def switch(self) -> str:
        labels = self.rng.sample(["0", "1", "2", "3", "4", "7", "-1", "'a'", "YARD_MAX", "255", "1u << 4", "8 * 4"],
                                 self.rng.randint(1, 4))
        kept = self.breakable
        self.breakable = True
        parts = []
        default = self.rng.randrange(len(labels) + 2)
        for number, label in enumerate([*labels, None]):
            if number == default and number < len(labels):
                parts.append(f"default:\n{self.arm()}")
            if label is not None:
                parts.append(f"case {label}:\n{'' if self.chance(0.15) else self.arm()}")
            elif default == len(labels):
                parts.append(f"default:\n{self.arm()}")
        self.breakable = kept
        if parts and parts[-1].endswith(":\n"):
            parts[-1] += ";"
        on = self.one(self.pure(2), f"({self.pure(2)}) & 7", f"({self.pure(1)}) % 5", self.field())
        return f"switch ({on}) {{\n" + "\n".join(parts) + "\n}"

    def arm(self) -> str:
        shallow = self.depth < self.deepest
        lines = [self.statement() for _ in range(self.rng.randint(1, 2))] if shallow else [self.assign()]
        lines = [f"{{ {x} }}" if x.startswith(("int ", "u8 ")) else x for x in lines]
        end = self.one("break;", "break;", "break;", "", "fallthrough;", self.returned())
        if end == "fallthrough;":
            end = ""
        if self.continuable and self.chance(0.2):
            end = "continue;"
        return "\n".join([*lines, end])

    def block_(self) -> str:
        return self.block(2)

    def bare_macro(self) -> str:
        """A macro that is a statement."""
        name = self.local(change=True)
        if name is None:
            return self.store()
        macro = self.name("TAKE")
        self.head.append(self.one(
            f"#define {macro}(x, n) do {{ typeof(x) _old = (x), _res = _old - (n); \\\n"
            f"\tif (_res > _old) _res = 0; (x) = _res; }} while (0)",
            f"#define {macro}(x, n) do {{ \\\n\tif ((n) > 3) \\\n\t\tbreak; \\\n\t(x) += (n); }} while (0)",
            f"#define {macro}(x, n) ({{ (x) = (n); (x)++; }})", f"#define {macro}(x, n...) (x) = max(n, 3L)",
            f"#define {macro}(x, n) (x) -= -n"))
        return f"{macro}({name}, {self.pure(1, frozenset({name}))});"


# ---------------------------------------------------------------------------------------------- whole functions
HELPERS = (
    ("scale", "int", ["int", "unsigned int"], "static int {n}(int x, unsigned int y)\n{{\n\t{body}\n}}"),
    ("move", "long", ["car", "int"], "static long {n}(struct car *c, int x)\n{{\n\t{body}\n}}"),
    ("home", "lot", ["car"], "static inline struct lot *{n}(struct car *c)\n{{\n\treturn c->home;\n}}"),
    ("heavy", "void", ["load", "unsigned long"],
     "static inline void {n}(struct load *lw, unsigned long n)\n{{\n\tlw->weight += n;\n\tlw->inv = 0;\n}}"),
    ("owner", "int", ["load"],
     "static int {n}(struct load *lw)\n{{\n\treturn container_of(lw, struct car, load)->small--;\n}}"))


def _macros(m: Maker) -> None:
    """Constants, enumerators and macros without effect."""
    rng = m.rng
    if m.chance(0.5):
        a, b, c = m.name("RED"), m.name("BLUE"), m.name("LAST")
        m.head.append(f"enum {{ {a}, {b} = {m.one('5', '1 << 3', '-2', '0x10')}, {c} = {b} * 2 + 1 }};")
        m.constants += [a, b, c]
    if m.chance(0.4):
        n = m.name("LIMIT")
        m.head.append(f"#define {n} {rng.choice(LITERALS)} {m.one('+ 1', '- 2', '* 3', '')}")
        m.constants.append(n)
    for _ in range(rng.randrange(3)):
        n = m.name("twice")
        body, arity = rng.choice((("x + x", 1), ("((x) * 3)", 1), ("({ long _y = (x); _y - 1; })", 1),
                                  ("((x) > (y) ? (x) : (y))", 2), ("(x) - y", 2), ("(unsigned char)(x)", 1),
                                  ("({ typeof(x) _a = (x); typeof(y) _b = (y); _a < _b; })", 2)))
        m.head.append(f"#define {n}({'x' if arity == 1 else 'x, y'}) {body}")
        m.macros.append((n, arity))


def _helpers(m: Maker) -> list[str]:
    homes: list[str] = []
    for stem, result, params, text in m.rng.sample(HELPERS, m.rng.randrange(3)):
        inner = Maker(random.Random(m.rng.random()), m.tag)
        inner.names, inner.result, inner.cars, inner.lots = m.names + 40, result, ["c"], []
        numbers = [("x", "int"), ("y", "unsigned int")] if stem == "scale" else [("x", "int")]
        inner.scopes = [Scope(numbers)]
        inner.depth = 3
        state = stem == "move"
        lines = [inner.statement() if state else f"x = {inner.pure(2, frozenset(), False)};"
                 for _ in range(m.rng.randint(1, 2))] if stem in ("scale", "move") else []
        lines.append(f"return {inner.pure(2, frozenset(), state)};")
        n = m.name(stem)
        m.names = max(m.names, inner.names)
        m.head += [*inner.head, text.format(n=n, body="\n\t".join(lines))]
        if result == "lot":
            homes.append(f"{n}(c)")
        elif result == "void":
            m.helpers_void.append(n)
        else:
            m.helpers.append((n, result, params))
    return homes


def function(seed: str, name: str = "f", tag: str = "", odd: bool = False, small: bool = False) -> Function:
    """A function from a seed. ``tag`` makes its other names differ from those of other functions."""
    rng = random.Random(seed)
    m = Maker(rng, tag, odd, 1 if small else 2)
    m.cars, m.lots = ["c"], []
    _macros(m)
    helpers = _helpers(m)
    m.result = rng.choice((*NUMBERS, "void", "struct car *"))
    kinds = [rng.choice(NUMBERS) for _ in range(rng.randrange(3))]
    c, d, lot = ("car", "c"), ("car", "d"), ("lot", "l")
    objects = rng.choice(([c, d, lot], [c, lot], [c, d], [c]))
    m.cars, m.lots = [n for k, n in objects if k == "car"], [*helpers, *(n for k, n in objects if k == "lot")]
    params = [*objects, *((k, f"n{i}") for i, k in enumerate(kinds))]
    m.scopes = [Scope([(n, k) for k, n in params[len(objects):]])]
    m.labels = [f"out{i}" for i in range(rng.choice((0, 0, 1, 1, 2)))]
    pointer_result, m.result = m.result == "struct car *", "void" if m.result == "struct car *" else m.result
    plain = m.result
    if pointer_result:
        m.returned = lambda: f"return {m.one('c', m.car(), 'c->ahead', 'NULL', 'c->home->tail')};"      # type: ignore[method-assign]
        m.result = "int" if not odd else m.result
    labels = list(m.labels)
    lines = [m.declaration() for _ in range(rng.randint(1, 3))]
    for label in [None, *labels]:
        if label is not None:
            m.labels.remove(label)
            lines.append(f"{label}:")
        lines += [m.statement() for _ in range(rng.randint(1, 2 if small else 3))]
        if m.helpers_void and m.chance(0.4):
            lines.append(f"{rng.choice(m.helpers_void)}(&{m.car()}->load, {m.pure(1)});")
    if pointer_result or plain != "void":
        lines.append(m.returned())
    elif labels:
        lines.append(";")                      # a label needs a statement
    result = "struct car *" if pointer_result else plain
    header = ", ".join(f"struct {k} *{n}" if k in ("car", "lot") else f"{k} {n}" for k, n in params)
    body = "\n".join("\t" + line for line in "\n".join(lines).split("\n"))
    space = "" if result.endswith("*") else " "
    head = "\n".join(m.head)
    storage = rng.choice(("", "static ", "static inline ", "static noinline "))
    text = f"{head}\n\n{storage}{result}{space}{name}({header})\n{{\n{body}\n}}\n"
    return Function(text, result, tuple(params), tuple(dict.fromkeys(m.odds)))
