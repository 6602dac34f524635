# SPDX-License-Identifier: GPL-2.0-only
"""Valid, well-defined C that the reader may refuse, but must not get wrong: each a statement, with its label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Make = Callable[[Any], str]


def _fixed(text: str) -> Make:
    """``V``: a fresh name; ``A``, ``B``: expressions; ``X``: a place to write; ``C``: a pointer to a car."""
    def make(m: Any) -> str:
        words = {"@V": m.name("o"), "@W": m.name("o"), "@A": m.pure(1), "@B": m.pure(1), "@X": m.field(),
                 "@C": m.car(), "@L": m.name("lab")}
        found = text
        for word, value in words.items():
            found = found.replace(word, value)
        return "{ " + found + " }"
    return make


def _goto_in_condition(m: Any) -> str:
    """A jump out of a statement expression in the condition of a loop."""
    name = m.name("k")
    way = m.one(f"goto {m.labels[0]};" if m.labels else f"return{'' if m.result == 'void' else ' 3'};", "break;")
    if way == "break;" and not m.breakable:
        loop = f"while (({{ if ({name} > 2) break; {name} < 9; }})) {name}++;"
        return f"{{ int {name} = 0; for (;;) {{ {loop} break; }} }}"
    return f"{{ int {name} = 0; while (({{ if ({name} > 2) {way} {name} < 9; }})) {name}++; }}"


def _goto_in_step(m: Any) -> str:
    name, out = m.name("k"), m.name("r")
    returns = "return" if m.result == "void" else "return 9"
    way = m.one(returns, f"goto {m.labels[0]}" if m.labels else returns)
    return (f"{{ int {name}, {out} = 0; for ({name} = 0; {name} < 4; ({{ if ({out} > 1) {way}; "
            f"{name}++; }})) {out}++; {m.field()} = {out}; }}")


def _negative_enum(m: Any) -> str:
    e, a, b, v = m.name("e"), m.name("EA"), m.name("EB"), m.name("v")
    m.head.append(f"enum {e} {{ {a} = -3, {b} }};")
    return f"{{ enum {e} {v} = {m.one(a, b, m.pure(1))}; {m.field()} = ({v} < 0) + ({v} / 2) + ({v} > {b}); }}"


def _wide_enum(m: Any) -> str:
    a, b, c = m.name("EA"), m.name("EB"), m.name("EC")
    value = m.one("0x80000000", "0xffffffff", "1u << 31", "0x7fffffff", "0x100000000L", "-2147483648")
    m.head.append(f"enum {{ {a} = {value}, {b} = 5, {c} = {a} {m.one('/ 2', '+ 0', '- 1')} }};")
    use = m.one(f"-{a}", f"~{a}", f"{a} - 0x7fffffff", f"({a} > -1)", f"({c} < -1)", f"-{c}", f"{b} - {a}")
    return f"{m.field()} = {use};"


def _wide_case(m: Any) -> str:
    label = m.one("0x1ffffffffL", "0xffffffffffffffffUL", "0x100000001L", "0xfffffffeu")
    return (f"switch ({m.one('(int)', '(u8)', '(long)', '(u32)')}({m.pure(1)} - 2)) {{ case {label}: {m.field()} = 1; "
            f"break; case 1 - 4: {m.field()} = 2; }}")


def _painted(m: Any) -> str:
    """Macros that name themselves, in an argument of another one."""
    local = m.local()
    if local is None:
        return ";"
    outer = m.name("PASS")
    m.head.append(f"#define {outer}(x) ((x) + 1)")
    field = m.name("fld")
    m.head.append(f"#define {field} {field} + 10")
    return f"{{ int {field} = 3; {m.field()} = {outer}({field}) * 2 + {field}; }}"


def _alias(m: Any) -> str:
    one, two = m.name("MA"), m.name("MB")
    m.head += [f"#define {one}(x) ((x) * 2 + 1)", f"#define {two} {one}"]
    return f"{m.field()} = {two}({m.pure(1)});"


def _paste(m: Any) -> str:
    one, stem = m.name("MP"), m.name("p")
    m.head.append(f"#define {one}(a, b) a ## b")
    return f"{{ int {stem}7 = 4; {m.field()} = {one}({stem}, 7) + {one}(1, 2) + {one}(0x, 1f); }}"


def _varargs(m: Any) -> str:
    one = m.name("MV")
    m.head.append(f"#define {one}(first, ...) ((first) + (int)max(__VA_ARGS__))")
    return f"{m.field()} = {one}({m.pure(1)}, {m.leaf(frozenset(), True)}, 4);"


def _same_name(m: Any) -> str:
    """A function that a macro of its own name hides but where the macro's name stands without a bracket."""
    one, two = m.name("mf"), m.name("ML")
    m.head += [f"static int ({one})(int x) {{ return x + 100; }}", f"#define {one}(x) ((x) + 1)",
               f"#define {two} {one}"]
    return f"{m.field()} = {m.one(f'({one})(4)', f'{two}(5)', f'{one} (6)')};"


def _same_local(m: Any) -> str:
    """A local that hides an enumerator, and a member that has a macro's name."""
    name = m.name("SAME")
    m.head.append(f"enum {{ {name} = 7 }};")
    return f"{{ int before = {name}; int {name} = 2; {m.field()} = {name} * 10 + before; }}"


def _nested_call(m: Any) -> str:
    one = m.name("MN")
    m.head.append(f"#define {one}(x, y) ((x) - (y))")
    return f"{m.field()} = {one}({one}(({m.pure(1)}), 2), {one}(1, {one}({m.leaf(frozenset(), True)}, 3)));"


def _strings(m: Any) -> str:
    one = m.name("MS")
    m.head.append(f"#define {one}(x) ((int)sizeof(#x))")
    return f"{m.field()} = {one}({m.leaf(frozenset(), False)});"


def _switch_declares(m: Any) -> str:
    name = m.name("w")
    return (f"switch (({m.pure(1)}) & 3) {{ case 0: {{ int {name} = 4; {m.field()} = {name}; break; }} case 1: "
            f"case 2: {m.field()} = 5; default: ; int {name} = 6; {m.field()} += {name}; }}")


ODD: tuple[tuple[str, Make], ...] = (
    ("array", _fixed("int @V[3] = { 1, 2, 3 }; @X = @V[(@A) & 1];")),
    ("address of a local", _fixed("int @V = @A; int *@W = &@V; *@W += 3; @X = @V;")),
    ("address of a field", _fixed("int *@V = &@C->small; *@V = @A; @X = @C->small;")),
    ("sizeof", _fixed("@X = sizeof(struct car) - sizeof(long) * 2 + sizeof(@A);")),
    ("float", _fixed("double @V = 2.5; @X = (int)(@V * 2);")),
    ("goto back", _fixed("int @V = 0; @L: @V++; if (@V < 3) goto @L; @X = @V;")),
    ("label in a block", _fixed("if (@A) goto @L; @X = 3; @L: @X += 4;")),
    ("assembly", _fixed('asm volatile("" ::: "memory"); @X = @A;')),
    ("struct copy", _fixed("struct load @V = @C->load; @X = @V.inv;")),
    ("struct assignment", _fixed("@C->load = @C->load;")),
    ("compound literal", _fixed("@X = ((struct load){ .weight = 3, .inv = 4 }).inv;")),
    ("function pointer", _fixed("int (*@V)(struct car *) = ask; @X = @V(@C);")),
    ("static local", _fixed("static const int @V = 5; @X = @V;")),
    ("string", _fixed('@X = "abc"[(@A) & 1];')),
    ("generic", _fixed("@X = _Generic(@A, int: 1, long: 2, default: 3);")),
    ("builtin", _fixed("@X = __builtin_popcountl(@A);")),
    ("case range", _fixed("switch ((@A) & 7) { case 1 ... 3: @X = 1; break; case 5: @X = 2; }")),
    ("union", _fixed("union { int i; unsigned char b[4]; } @V; @V.i = 0x01020304; @X = @V.b[1];")),
    ("variable array", _fixed("int @V[((@A) & 3) + 1]; @V[0] = 4; @X = @V[0];")),
    ("volatile", _fixed("volatile int @V = @A; @X = @V + @V;")),
    ("const", _fixed("const long @V = @A; register u8 @W = @B; @X = @V - @W;")),
    ("attribute", _fixed("int @V __attribute__((unused)) = @A; @X = @V;")),
    ("assertion", _fixed('_Static_assert(sizeof(int) == 4, "int"); @X = @A;')),
    ("typedef", _fixed("typedef unsigned char @V; @V @W = @A; @X = @W;")),
    ("pointer arithmetic", _fixed("@X = (@C + 1) - @C;")),
    ("pointer order", _fixed("@X = @C < @C->ahead;")),
    ("pointer cast", _fixed("@X = (long)@C == 0;")),
    ("int128", _fixed("unsigned __int128 @V = (unsigned __int128)@A * 3; @X = @V >> 64;")),
    ("several declarators", _fixed("int @V = 2, *p@V = NULL, @W = @V + 1; @X = @W + (p@V == NULL);")),
    ("empty if", _fixed("if (@A) ; else @X = 1;")),
    ("char escapes", _fixed("@X = (int)'\\x41' + '\\101';")),
    ("constant shift", _fixed("@X = 1UL << 63 >> 3; @X += -1 >> 1; @X ^= 0xffu << 28;")),
    ("bool arithmetic", _fixed("bool @V = 2; @V += 3; @V--; @X = @V + ~@V + -@V; @V = 0; @V--; @X += @V;")),
    ("char literals", _fixed("@X = '\\0' + '\\t' + '\\\\' + '\\'' + 'z';")),
    ("bit-field arithmetic", _fixed("@C->low = 7; @C->low++; @C->mid = 15; @C->mid++; @X = @C->low - @C->mid * 3;")),
    ("bit-field value", _fixed("@X = (@C->low = @A) + 1;")),
    ("narrow value", _fixed("u8 @V; long @W = (@V = @A); @X = @W + (@V += 200);")),
    ("nested pointers", _fixed("if (@C->ahead && @C->ahead->ahead) @X = @C->ahead->ahead->small;")),
    ("pointer local", _fixed("struct car *@V = @C->ahead ?: @C; @V->wide = @A; @X = @V->wide;")),
    ("pointer walk", _fixed("struct car *@V; int @W = 0; for (@V = @C; @V; @V = @V->ahead) @W += 2; @X = @W;")),
    ("pointer to inner", _fixed("struct load *@V = &@C->load; @V->inv += 2; @X = @V->weight;")),
    ("pointer choice", _fixed("struct car *@V = @A ? @C : c; @V->small++; @X = @V->size;")),
    ("pointer change", _fixed("struct car *@V = c; if (@A) @V = @C; @V->count ^= 5;")),
    ("splice", _fixed("@X = @A \\\n + 1; /* a\n * comment */ @X -= 2; // another\n")),
    ("question chain", _fixed("@X = @A ? @B ? 1 : 2 : @B ?: 3;")),
    ("comma chain", _fixed("@X = 1, @X += 2, @X *= 3;")),
    ("long long", _fixed("unsigned long long int @V = -1; signed char @W = 200; long unsigned @Va = 3; "
                         "@X = (@V >> 60) + @W + @Va;")),
    ("do in expression", _fixed("@X = ({ int @V = 0; do { if (@V > 2) break; @V++; } while (1); @V; });")),
    ("return in expression", _fixed("@X = ({ if (0) @X = 2; 5; }) + ({ 6; });")),
    ("null statement", _fixed(";;{};{ ; }")),
    ("jump in a condition", _goto_in_condition), ("jump in a step", _goto_in_step), ("negative enum", _negative_enum),
    ("wide enum", _wide_enum), ("wide case", _wide_case), ("painted macro", _painted), ("macro alias", _alias),
    ("pasting", _paste), ("variable macro", _varargs), ("hidden function", _same_name), ("hidden name", _same_local),
    ("nested macro", _nested_call), ("stringified", _strings), ("switch declares", _switch_declares),
)
