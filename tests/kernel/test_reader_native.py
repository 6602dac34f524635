# SPDX-License-Identifier: GPL-2.0-only
"""Small C functions run by the compiler and by the plain interpreter, on the same inputs."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedproof.kernel import Tree, read
from schedproof.lang.interpret import run_function
from tests.loading import need

HEAD = """
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long u64;
typedef signed char s8; typedef short s16; typedef int s32; typedef long s64; typedef _Bool bool;
#define max(a, b) ({ __auto_type _x = (a); __auto_type _y = (b); _x > _y ? _x : _y; })
#define min(a, b) ({ __auto_type _x = (a); __auto_type _y = (b); _x < _y ? _x : _y; })
#define max_t(t, a, b) ({ t _x = (a); t _y = (b); _x > _y ? _x : _y; })
#define min_t(t, a, b) ({ t _x = (a); t _y = (b); _x < _y ? _x : _y; })
#define __careful(t, v, l, h) ({ t _v = (v); t _l = (l); t _h = (h); _v >= _h ? _h : (_v <= _l ? _l : _v); })
#define clamp_t(t, v, l, h) __careful(t, v, l, h)
#define likely(x) __builtin_expect(!!(x), 1)
#define div_u64(a, b) ((u64)(a) / (u32)(b))
#define abs(x) ((x) < 0 ? -(x) : (x))
#define swap(a, b) do { typeof(a) __t = (a); (a) = (b); (b) = __t; } while (0)
"""

CODE = HEAD + r"""
#define SHIFT 10
#define twice(x) x + x
#define down(w) ({ u64 __w = (w); if (__w) __w = max(2UL, __w >> SHIFT); __w; })
#define take_from(lval, amount) do { typeof(lval) old = (lval), res = old - (amount); \
	if (res > old) res = 0; (lval) = res; } while (0)
enum colour { RED, GREEN = 5, BLUE, LAST = BLUE + 1 };

long mixed(long a, int b, u32 c, u8 d) { return a * b + c - d; }
u64 mixed_unsigned(int a, u32 b, u64 c) { return a + b + (a < b) + (a < c) + (c >> 3); }
int narrow(int a, int b) { u8 x = a; s8 y = b; u16 z = a + b; return x + y + z; }
long shifts(int a, u32 n, long b) { n &= 31; return ((b << n) >> 3) + (a >> n) + ((u32)a >> n); }
int divides(int a, int b) { if (!b || (a == -2147483647 - 1 && b == -1)) return 0; return a / b * 3 + a % b; }
u64 macro(u64 w, u64 v) { return down(w) + down(down(v)) * 2; }
int precedence(int x) { return twice(x & 15) * 3; }
u32 take(u32 a, u32 b) { take_from(a, b); return a; }
long limits(long v, int lo, u32 hi) { return clamp_t(long, v, lo, hi) + max_t(u8, v, lo) + min(v, 9L); }
int chooses(int a, int b) { return (a ?: b) + (a > b ? a : b) + (a && b) + (!a || b) - ~a; }
bool truths(int a, long b) { bool x = b; return likely(x) == (a != 0); }
u64 divided(long a, u64 b) { u32 d = b; return d ? div_u64(a, b) : 7; }
int enums(int a) { return a == BLUE ? LAST : a == RED ? GREEN : a; }
u32 literals(u32 a) { return a + 0x80000000 + 010 + 'a' - 4294967295U; }
long unsigned_minus(u32 a) { return -a; }
long hex(long a) { return a < 0xffffffff; }
int assigns(int a, int b) { int c, d; c = d = a; c += b; d -= c; c <<= 2; d ^= c; c |= 1; return c * d + a--+ ++b; }
int swapped(int a, int b) { if (a < b) swap(a, b); return a - b / 2; }

int loops(u8 n, int k)
{
	int sum = 0, i;

	for (i = 0; i < n; i++) {
		if (i == k)
			continue;
		if (i > 40)
			break;
		sum += i;
	}
	while (sum > 1000)
		sum /= 2;
	do {
		sum++;
		if (sum % 7 == 3)
			break;
	} while (sum & 3);
	return sum;
}

static int bump(int *unused, int x);
static int step(int x)
{
	if (x > 100)
		return x - 100;
	return x + 1;
}

int nested(int a, int b)
{
	int n = 0;

	while (step(n) < 20 && (a & 7) != step(n))
		n = step(n);
	return step(a) + (a > 5 && step(b) > 3 ? step(step(b)) : step(a) || step(b));
}

int switches(int a, int b)
{
	int r = 0, i;

	switch (a & 7) {
	case 0:
		r = 1;
	case 1:
		r += 2;
		break;
	case 2:
	case BLUE:
		if (b > 3)
			break;
		r = 9;
		break;
	default:
		r = 40;
		fallthrough;
	case 3:
		r += 4;
	}
	for (i = 0; i < 5; i++) {
		switch (b + i) {
		case 1:
			continue;
		case 2:
			if (a > 0)
				break;
			r += 100;
			break;
		case 3:
			return r;
		default:
			r++;
		}
		r += 10;
	}
	return r;
}

int jumps(int a, int b)
{
	int r = 0, i, j;

	if (a == 3)
		goto out;
	for (i = 0; i < 6; i++) {
		for (j = 0; j < 3; j++) {
			r++;
			if (i * j == (b & 7))
				goto unlock;
		}
		if (r == a)
			goto out;
	}
	r += 1000;
unlock:
	r += 100;
	if (a & 1)
		goto out;
	r += 50;
out:
	return r;
}

int shadows(int a)
{
	int x = a;
	{
		int x = a + 1;
		if (x > 3) {
			int x = 7;
			a += x;
		}
		a += x;
	}
	return a + x;
}

int effects(int a)
{
	int i = a, b = (a > 2, a + 1);
	b += i++ * 2;
	b += ++i;
	return b - i-- + i;
}
"""
CODE = CODE.replace("static int bump(int *unused, int x);\n", "").replace("fallthrough;", "FALL")
FOR_READER = CODE.replace("FALL", "fallthrough;")
FOR_GCC = CODE.replace("FALL", "__attribute__((__fallthrough__));")

TYPES = {"long": (ctypes.c_long, 64, True), "u64": (ctypes.c_ulong, 64, False), "int": (ctypes.c_int, 32, True),
         "u32": (ctypes.c_uint, 32, False), "u8": (ctypes.c_ubyte, 8, False), "bool": (ctypes.c_bool, 1, False)}
FUNCTIONS = {
    "mixed": "long long int u32 u8", "mixed_unsigned": "u64 int u32 u64", "narrow": "int int int",
    "shifts": "long int u32 long", "divides": "int int int", "macro": "u64 u64 u64", "precedence": "int int",
    "take": "u32 u32 u32", "limits": "long long int u32", "chooses": "int int int", "truths": "bool int long",
    "divided": "u64 long u64", "enums": "int int", "literals": "u32 u32", "unsigned_minus": "long u32",
    "hex": "long long", "assigns": "int int int", "swapped": "int int int", "loops": "int u8 int",
    "nested": "int int int", "switches": "int int int", "jumps": "int int int", "shadows": "int int",
    "effects": "int int"}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    need("gcc")
    folder = tmp_path_factory.mktemp("native")
    (folder / "code.c").write_text(FOR_GCC)
    subprocess.run(["gcc", "-O1", "-w", "-fwrapv", "-shared", "-fPIC", "-o", "code.so", "code.c"], cwd=folder,
                   check=True)
    return ctypes.CDLL(str(folder / "code.so"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    folder: Path = tmp_path_factory.mktemp("tree")
    (folder / "code.c").write_text(FOR_READER)
    return Tree(folder)


def number(kind: str) -> st.SearchStrategy[int]:
    _, bits, signed = TYPES[kind]
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    edge = st.sampled_from(sorted({low, high, 0, 1, high - 1, low + 1}))
    return st.one_of(st.integers(max(low, -9), min(high, 50)), st.integers(low, high), edge)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_as_gcc(name: str, library: ctypes.CDLL, tree: Tree) -> None:
    result, *params = FUNCTIONS[name].split()
    native = getattr(library, name)
    native.restype, native.argtypes = TYPES[result][0], [TYPES[t][0] for t in params]
    programs = read(tree, name, "code.c")

    @settings(max_examples=150, deadline=None)
    @given(st.tuples(*[number(t) for t in params]))
    def same(args: tuple[int, ...]) -> None:
        assert run_function(programs, name, list(args)) == int(native(*args)), args

    same()


def test_all_functions_of_the_file_are_tested(tree: Tree) -> None:
    from schedproof.kernel.config import DEFAULT
    from schedproof.kernel.source import sources
    assert set(sources(tree, DEFAULT).unit("code.c").functions) == set(FUNCTIONS) | {"step"}
