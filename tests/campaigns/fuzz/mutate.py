# SPDX-License-Identifier: GPL-2.0-only
"""Damage to C text and to patches, at the level of bytes, tokens and lines, from a seed."""

from __future__ import annotations

import random
import re

_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\w+|->|\+\+|--|<<=?|>>=?|[<>=!+*/%&|^-]=|&&|\|\||\s+|.', re.DOTALL)
OPERATORS = ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "=",
             "+=", "->", ".", "?", ":", ",", ";", "!", "~", "++", "--")
NUMBERS = ("0", "1", "2", "-1", "08", "0x", "1e9", "1.5", "0b1", "99999999999999999999", "1U", "1LL",
           "0xffffffffffffffff", "64", "63", "'", "''", "'ab'", "'\\x41'", "1_0", "0777", "100000")
WORDS = ("if", "else", "return", "goto", "case", "default", "switch", "struct", "int", "sizeof", "typeof", "NULL", "x",
         "while", "for", "do", "break", "continue", "static", "asm", "se", "READ_ONCE", "max", "min", "clamp",
         "likely", "container_of", "void", "enum", "union", "typedef", "__attribute__", "true", "xchg", "cmpxchg",
         "atomic_inc", "this_cpu_read", "IS_ENABLED", "__auto_type", "list_for_each_entry", "swap", "div_u64",
         "WARN_ON", "__func__", "_Generic", "u64", "int128", "fallthrough", "try_cmpxchg", "abs", "max_t",
         "atomic_cmpxchg", "smp_mb", "offsetof")
LINES = ("#if 1", "#if 0", "#else", "#endif", "#elif 2", "#if 08", "#if (", "#ifdef", "#define x",
         "#define f(x) f(f(x))", "#undef NULL", '#include "fair.c"', "#include <nowhere.h>", "#define if while",
         "#error no", '#line 4 "x"', "{", "}", "out:", "goto out;", "return;", "break;", "/*", "*/", "//\\",
         "#if 1 / 0", "#if -1 > 0u", "#pragma once", "if (1)", "else", "int x;", "do {", "} while (0);",
         "switch (1) {", "case 1:", "default:", "for (;;)", ";", "({", "})")


def tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _solid(rng: random.Random, given: list[str], pattern: str = r"\S") -> int | None:
    """The position of some token that is no blank and has a pattern."""
    found = [i for i, t in enumerate(given) if re.match(pattern, t)]
    return rng.choice(found) if found else None


def small(rng: random.Random, given: list[str]) -> None:
    """A change that often leaves C behind: an operator, a number or a name for another of its kind."""
    kind = rng.randrange(3)
    if kind == 0:
        at = _solid(rng, given, r"(==|!=|<=|>=|<|>|\+|-|\*|/|&&|\|\||\+=|-=|&|\|)$")
        if at is not None:
            given[at] = rng.choice(("+", "-", "*") if given[at] in "+-*/&|" else ("<", "<=", ">", "==", "!=")
                                   if given[at] in ("==", "!=", "<=", ">=", "<", ">") else ("&&", "||")
                                   if given[at] in ("&&", "||") else ("+=", "-=", "="))
    elif kind == 1:
        at = _solid(rng, given, r"\d")
        if at is not None:
            given[at] = rng.choice(("0", "1", "2", "7", "100", "0x10", "3UL"))
    else:
        one, two = _solid(rng, given, r"[a-z_]\w*$"), _solid(rng, given, r"[a-z_]\w*$")
        if one is not None and two is not None:
            given[one] = given[two]


def _token(rng: random.Random, given: list[str]) -> None:
    at, other = _solid(rng, given), _solid(rng, given)
    if at is None or other is None:
        return
    kind = rng.randrange(7)
    if kind == 0:
        given[at] = ""
    elif kind == 1:
        given[at], given[other] = given[other], given[at]
    elif kind == 2:
        given[at] = f"{given[at]} {given[at]}"
    elif kind == 3:
        given[at] = rng.choice(OPERATORS)
    elif kind == 4:
        given[at] = rng.choice(NUMBERS)
    elif kind == 5:
        given[at] = rng.choice(WORDS)
    else:
        given[at] = f"{given[at]} {rng.choice((*OPERATORS, *WORDS, '(', ')', '{', '}'))} "


def _line(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(5)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 2:
        lines.insert(other, lines[at])
    elif kind == 3:
        lines.insert(at, rng.choice(LINES))
    else:
        lines[at] += rng.choice(("\\", "\r", "\t\\ ", "\f", "//", "\\\n\\"))
    return "\n".join(lines)


def _wild(rng: random.Random, text: str) -> str:
    """Damage that no compiler would bear."""
    at = rng.randrange(len(text) + 1)
    kind = rng.randrange(12)
    if kind == 0:
        return text[:at] + rng.choice("{}()[];\"'") + text[at:]
    if kind == 1:
        return text[:at] + rng.choice(("\udcff", "\udc80\udcc3", "é", "\u2028", "\x0c", "\x1a", "\ufeff")) + text[at:]
    if kind == 2:
        return text[:at] + "\0" + text[at:]
    if kind == 3:
        return text.replace("\n", "\r\n")
    if kind == 4:
        return text[:at] + "x" * rng.choice((5000, 200_000)) + text[at:]
    if kind == 5:
        depth = rng.choice((30, 300, 3000))
        return re.sub(r"(return |= )([^;]+);", lambda m: f"{m[1]}{'(' * depth}{m[2]}{')' * depth};", text, count=1)
    if kind == 6:
        depth = rng.choice((30, 300, 3000))
        return text.replace("{\n", "{\n" + "if (1) {" * depth + ";" + "}" * depth + "\n", 1)
    if kind == 7:
        return text[:at]
    if kind == 8:
        count = rng.choice((20, 500, 3000))
        return re.sub(r"(return |= )([^;]+);", lambda m: f"{m[1]}{m[2]}{' + 1' * count};", text, count=1)
    if kind == 9:
        depth = rng.choice((8, 30, 200))
        signs = rng.choice("-~!") * depth
        return re.sub(r"(return |= )([^;]+);", lambda m: f"{m[1]}{signs}({m[2]});", text, count=1)
    if kind == 10:
        macros = "".join(f"#define m{i} m{i + 1} + m{i + 1}\n" for i in range(rng.choice((4, 12, 40)))) + "\n"
        return macros + re.sub(r"(return |= )([^;]+);", r"\1\2 + m0;", text, count=1)
    return text[:at].replace("\n\t", "\n") + text[at:].replace(";", rng.choice((";;", "", ",")), rng.randrange(3))


def c_text(rng: random.Random, text: str) -> tuple[str, str]:
    """A changed text, and how hard it was hit: ``small``, ``token``, ``line`` or ``wild``."""
    kind = rng.choices(("small", "token", "line", "wild"), (55, 20, 13, 12))[0]
    for _ in range(1 if kind == "wild" else rng.choice((1, 1, 2, 4))):
        if kind in ("small", "token"):
            given = tokens(text)
            body = next((i for i, t in enumerate(given) if t == "{"), 0)
            inner = given[body:] if rng.random() < 0.9 else given
            kept = given[:len(given) - len(inner)]
            (small if kind == "small" else _token)(rng, inner)
            text = "".join(kept + inner)
        else:
            text = _line(rng, text) if kind == "line" else _wild(rng, text)
    return text, kind


# --------------------------------------------------------------------------------------------------- patches
HEADERS = ("diff --git a/kernel/sched/gen.c b/kernel/sched/gen.c", "rename from kernel/sched/gen.c",
           "rename to kernel/sched/moved.c", "copy from kernel/sched/gen.c", "old mode 100644", "new mode 100755",
           "new file mode 100644", "deleted file mode 100644", "similarity index 90%", "index 1234567..89abcde 100644",
           "Binary files a/x.o and b/x.o differ", "GIT binary patch", "--- a/kernel/sched/gen.c",
           "+++ b/kernel/sched/gen.c", "--- /dev/null", "+++ /dev/null", "--- a/../../etc/passwd",
           "+++ b/../../etc/passwd", "+++ /etc/passwd", "--- a/kernel/sched/none.c", "+++ b/kernel/sched/none.c",
           "@@ -1,3 +1,4 @@", "@@ -0,0 +1 @@", "@@@ -1 -1 +1 @@@", "@@ -1,99999999999999999999 +1 @@",
           "@@ -999999999,1 +1,1 @@", "@@ -1 +1", "@@", "\\ No newline at end of file", "-- ", "2.39.2", "+", "-", " ",
           "+\x00", "From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001",
           "Subject: =?utf-8?q?=C3=A9?=", "Content-Transfer-Encoding: quoted-printable",
           "Content-Transfer-Encoding: base64", 'Content-Type: multipart/mixed; boundary="x"', "--x",
           "MIME-Version: 1.0", '--- "a/kernel/sched/g\\303n.c"', "--- a/kernel/sched", "+++ b/kernel/sched",
           "--- a/Makefile", "+++ b/Makefile", "@@ -1,0 +1,0 @@", "@@ -0 +0 @@")


def patch_text(rng: random.Random, text: str) -> str:
    """A changed patch."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        lines = text.split("\n")
        at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        kind = rng.randrange(12)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, rng.choice(HEADERS))
        elif kind == 2:
            lines[at] = rng.choice(HEADERS)
        elif kind == 3:
            lines = lines[:at]
        elif kind == 4:
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 5:
            heads = [i for i, x in enumerate(lines) if x.startswith("@@")]
            for i in heads[:rng.randint(1, 2)]:
                lines[i] = re.sub(r"\d+", lambda m: str(max(0, int(m[0]) + rng.choice((-9, -1, 1, 3, 500)))), lines[i],
                                  count=rng.randint(1, 4))
        elif kind == 6:
            lines.insert(other, lines[at])
        elif kind == 7:
            return text.replace("\n", rng.choice(("\r\n", "\r", "\n\n")))
        elif kind == 8:
            lines[at] = rng.choice(" +-\\@\t") + lines[at][1:]
        elif kind == 9:
            spot = rng.randrange(len(text) + 1)
            return text[:spot] + rng.choice(("\udcff", "\0", "é", "=", "=3D", "\x1b[31m", "x" * 100_000)) + text[spot:]
        elif kind == 10:
            lines[at] += rng.choice((" ", "\r", "\t2026-01-01", "=", "=20"))
        else:
            names = [i for i, x in enumerate(lines) if x.startswith(("--- ", "+++ ", "diff ", "rename "))]
            if names:
                lines[rng.choice(names)] = rng.choice(HEADERS)
        text = "\n".join(lines) or "\n"
    return text
