# SPDX-License-Identifier: GPL-2.0-only
from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedproof.errors import InputError
from schedproof.kernel.config import DEFAULT_OPTIONS, Condition, Config
from schedproof.kernel.preprocess import preprocess, without_comments
from tests.loading import need

CONFIG = Config({"CONFIG_A": "y", "CONFIG_N": "5", "CONFIG_HEX": "0x10", "CONFIG_NAME": '"x"'})
KNOWN = {"ONE": 1, "TEN": 10}


def value(text: str) -> int | None:
    return Condition(CONFIG, lambda n: n in KNOWN, KNOWN.get).evaluate(text)


@pytest.mark.parametrize(("text", "expected"), [
    ("1", 1), ("0x1f", 31), ("010", 8), ("10UL", 10), ("!0", 1), ("!5", 0), ("-1 < 0", 1), ("~0", -1),
    ("defined(CONFIG_A)", 1), ("defined CONFIG_B", 0), ("defined(CONFIG_A) && !defined(CONFIG_B)", 1),
    ("defined(ONE) || UNKNOWN", 1), ("0 && UNKNOWN", 0), ("UNKNOWN && 0", 0), ("UNKNOWN || 1", 1),
    ("UNKNOWN", None), ("UNKNOWN > 3", None), ("!UNKNOWN", None), ("UNKNOWN && 1", None),
    ("CONFIG_A", 1), ("CONFIG_B", 0), ("CONFIG_N > 4", 1), ("CONFIG_HEX == 16", 1), ("CONFIG_NAME", None),
    ("IS_ENABLED(CONFIG_A)", 1), ("IS_ENABLED(CONFIG_B)", 0), ("IS_MODULE(CONFIG_A)", 0), ("FOO(3)", None),
    ("1 + 2 * 3 == 7", 1), ("(1 + 2) * 3 == 9", 1), ("10 - 3 - 2", 5), ("1 << 3 | 1", 9), ("7 / 2", 3),
    ("-7 / 2", -3), ("-7 % 3", -1), ("1 / 0", None), ("1 << 99", None), ("TEN >= 10 && ONE", 1),
    ("1 ? 2 : 3", 2), ("0 ? 2 : 3", 3), ("1 ?", None), ("(1", None), ("1 2", None), ("", None), ("'a'", None),
    ("((((((((((((((((1))))))))))))))))", 1), ("(" * 500 + "1" + ")" * 500, None),
])
def test_conditions(text: str, expected: int | None):
    assert value(text) == expected


def test_config_is_frozen_and_says_what_mattered():
    assert DEFAULT_OPTIONS["CONFIG_SMP"] == "y" and "CONFIG_NUMA" not in DEFAULT_OPTIONS
    with pytest.raises(AttributeError):
        CONFIG.options.update({"CONFIG_B": "y"})
    config = Config({"CONFIG_A": "y"})
    assert config.shown() == "x86-64"
    config.consulted |= {"CONFIG_A", "CONFIG_NUMA"}
    assert config.shown() == "x86-64 A=y, all others n"


@pytest.mark.parametrize("options", [{"A": "y"}, {"CONFIG_A": "m"}, {"CONFIG_A": "n"}, {"CONFIG_A": ""}])
def test_odd_options(options: dict[str, str]):
    with pytest.raises(InputError):
        Config(options)


def lines(text: str) -> list[str]:
    return preprocess("a.c", text, CONFIG).text.split("\n")


def test_lines_stay_where_they_are():
    text = ("one\n#ifdef CONFIG_A\ntwo\n# if CONFIG_N > 7 \\\n   || 0\nthree\n# elif 1\nfour\n# else\nfive\n# endif\n"
            "#else\nsix\n#endif\nseven\n")
    done = lines(text)
    assert [(i, x) for i, x in enumerate(done, 1) if x] == [(1, "one"), (3, "two"), (8, "four"), (15, "seven")]
    assert len(done) == text.count("\n") + 1


def test_comments_and_strings():
    assert without_comments('a /* b\n# */ c "/*" // d\ne \'"\' /* "') == \
        'a     \n     c "/*"     \ne \'"\'     '
    done = lines("/*\n#if 0\n*/\nx\n#if 1 /* a\n b */\ny\n#endif // c\n")
    assert [line.strip() for line in done] == ["", "", "", "x", "", "", "y", "", ""]


def test_macros_follow_the_branches_and_the_lines():
    done = preprocess("a.c", "#define A 1\n#define F(x, y...) x + \\\n  y\n#undef A\n#ifdef A\n#define B 1\n#else\n"
                             "#define B 2\n#endif\n#if B == 2 && !defined(A)\nyes\n#endif\n", CONFIG)
    assert done.macro("A") is None
    a, f, b = done.macro("A", 2), done.macro("F"), done.macro("B")
    assert a is not None and a.body == "1" and a.params is None
    assert f is not None and f.params == ("x", "y...") and f.body.split() == ["x", "+", "y"] and f.line == 2
    assert b is not None and b.body == "2"
    assert "yes" in done.text


def test_what_cannot_be_told_is_a_region():
    done = preprocess("a.c", "x\n#if FOO(3)\na\n#else\nb\n#endif\n#ifdef CONFIG_A\nc\n#endif\n", CONFIG)
    assert done.text.split() == ["x", "c"]
    odd, fine = done.regions
    assert odd.undecided == (2, "#if FOO(3)") and (odd.first, odd.last) == (2, 6)
    assert fine.undecided is None and fine.options == {"CONFIG_A"}


def test_include_guard_rests_on_nothing():
    done = preprocess("a.h", "#ifndef _A_H\n#define _A_H\nint x;\n#endif\n", CONFIG)
    assert done.regions == [] and "int x;" in done.text


@pytest.mark.parametrize("text", ["#if 1\nx\n", "#else\n#endif\n#elif 1\n", "#\n#if\n#endif\n#define\n#undef\n",
                                  "#ifdef\nx\n#endif\n", "#include\n#include FOO\n", "\\\n", "#define A \\", "/* x"])
def test_odd_directives_do_no_harm(text: str):
    assert preprocess("a.c", text, CONFIG).text.count("\n") == text.count("\n")


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="#ifdef elsndA1()/*\\\n\"'", max_size=80))
def test_any_text(text: str):
    assert preprocess("a.c", text, CONFIG).text.count("\n") == text.replace("\r\n", "\n").count("\n")


OPERATORS = ["+", "-", "*", "&", "|", "^", "==", "!=", "<", "<=", ">", ">=", "&&", "||"]
EXPRESSIONS = st.recursive(
    st.integers(0, 9).map(str) | st.sampled_from(["defined(ONE)", "defined(NONE)", "TEN"]),
    lambda inner: st.tuples(inner, st.sampled_from(OPERATORS), inner).map(" ".join)
    | inner.map(lambda x: f"({x})") | inner.map(lambda x: f"!{x}") | inner.map(lambda x: f"- {x}"), max_leaves=8)


@settings(max_examples=30, deadline=None)
@given(st.lists(EXPRESSIONS, min_size=20, max_size=20))
def test_same_as_the_compiler(expressions: list[str]):
    need("gcc")
    source = "#define ONE 1\n#define TEN 10\n" + "".join(
        f"#if {e}\nyes{i}\n#endif\n" for i, e in enumerate(expressions))
    done = subprocess.run(["gcc", "-E", "-P", "-w", "-"], input=source, capture_output=True, text=True, check=True)
    assert [bool(value(e)) for e in expressions] == [f"yes{i}" in done.stdout.split() for i in range(20)]
