# SPDX-License-Identifier: GPL-2.0-only
"""C's numbers against the compiler: every pair of integer types under every operator, literals, sizes, 128 bits."""

from __future__ import annotations

import pytest

from tests.kernel.native import TYPEDEFS, Bench, functions

TYPES = ("s8", "u8", "char", "s16", "u16", "int", "u32", "long", "u64", "size_t", "bool")
COMPARE = ("==", "!=", "<", "<=", ">", ">=")

# Each line mixes the results of one group of operators into a number, so that a difference in any of them shows.
SUMS = """
u64 sums_{a}_{b}({A} a, {B} b) {{
	u64 r = a + b;
	r = r * 31 + (a - b);
	r = r * 31 + a * b;
	r = r * 31 + (-a + +b);
	r = r * 31 + (~a - !b);
	r = r * 31 + (a ? b : a);
	r = r * 31 + (a ?: b);
	r = r * 31 + (b, a);
	return r;
}}
"""
CONVERSIONS = """
u64 conversions_{a}_{b}({A} a, {B} b) {{
	{A} c = b, x = a;
	{B} d = a;
	u64 r = c;
	r = r * 31 + d;
	r = r * 31 + ({A})b + ({B})(long)a;
	c += b;
	r = r * 31 + c;
	d -= a;
	r = r * 31 + d;
	x *= b;
	r = r * 31 + x;
	r = r * 31 + (d = x);
	r = r * 31 + c++;
	r = r * 31 + ++c;
	r = r * 31 + d--;
	r = r * 31 + --d;
	return r * 31 + c + d;
}}
"""
ORDER = """
u64 order_{a}_{b}({A} a, {B} b) {{
	u64 r = 0;
{lines}
	r = r * 2 + (a && b);
	r = r * 2 + (a || b);
	r = r * 2 + (!a == !b);
	return r * 2 + (a > 3 ? a < b : b != 3);
}}
"""
QUOTIENTS = """
u64 quotients_{a}_{b}({A} a, {B} b) {{
	u64 r = 7;
	if (b != 0 && b != ({B})-1) {{
		{A} c = a, d = a;
		r = r * 31 + a / b;
		r = r * 31 + a % b;
		c /= b;
		d %= b;
		r = r * 31 + c;
		r = r * 31 + d;
	}} else if (b && a > -100 && a < 100) {{
		r = a / b + a % b;
	}}
	return r;
}}
"""
BITS = """
u64 bits_{a}_{b}({A} a, {B} b) {{
	{A} c = a, d = a, e = a, f = a, g = a;
	int n = b & 7, m = b & (sizeof(a) < 4 ? 31 : sizeof(a) * 8 - 1);
	u64 r = a & b;
	r = r * 31 + (a | b);
	r = r * 31 + (a ^ b);
	r = r * 31 + (a << m);
	r = r * 31 + (a >> m);
	c &= b;
	d |= b;
	e ^= b;
	f <<= n;
	g >>= n;
	return r * 31 + c + 3 * d + 5 * e + 7 * f + 11 * g;
}}
"""
GROUPS = {"sums": SUMS, "conversions": CONVERSIONS, "order": ORDER, "quotients": QUOTIENTS, "bits": BITS}
UNKNOWN_BITS = {"bits"}              # masks and amounts that are not known: only run on known numbers


def pair(group: str, a: str, b: str) -> str:
    lines = "\n".join(f"\tr = r * 2 + (a {op} b);" for op in COMPARE)
    return GROUPS[group].format(A=a, B=b, a=a, b=b, lines=lines)


PAIRS = TYPEDEFS + "".join(pair(g, a, b) for g in GROUPS for a in TYPES for b in TYPES)

ALONE = TYPEDEFS + r"""
enum sign { BELOW = -1, EVEN, ABOVE };
enum colour { RED, GREEN = 5, BLUE, LAST = BLUE + 1 };
enum wide { SMALL = 1, WIDE = 0x80000000, LARGER };
enum widest { NARROW, WIDEST = 1UL << 40 };
enum mixed { MINUS = -1, PLUS = 1U << 31 };
typedef enum sign sign_t;
typedef int number_t;
#define BIT(n) (1UL << (n))
enum flags { FIRST = BIT(0), SECOND = BIT(1), TOP = BIT(31) };

u64 literals(u32 a) {
	u64 r = a + 0x80000000 + 010 + 'a' - 4294967295U;
	r = r * 31 + (-1 < 0x7fffffff) + (-1 < 0x80000000) + (-1 < 2147483648) + (-1 < 0xffffffffffffffff) + (-1 < 1U);
	r = r * 31 + 0b101 + '\n' + '\\' + '\'' + '\0' + 0ULL - 3l;
	return r * 31 + sizeof(0xffffffff) + sizeof(4294967296) + sizeof('a');
}
u64 sizes(int a, u8 b, bool c) {
	u64 r = sizeof(u8) + 3 * sizeof(int) + 5 * sizeof(unsigned long) + 7 * sizeof(bool) + 11 * sizeof(char *);
	r = r * 31 + sizeof a + sizeof(b) * 3 + sizeof(b + 1) * 5 + sizeof c * 7 + sizeof(a == b) + sizeof(a++);
	r = r * 31 + sizeof(a + 1L) + 3 * sizeof(b + c);
	return r * 31 + sizeof(short) + sizeof(u128) * 3 + sizeof(enum sign) * 5 + sizeof(number_t) * 7 + a;
}
u64 wide_products(u64 a, u64 b, u32 n) {
	u128 p = (u128)a * b;
	n &= 63;
	return (u64)(p >> 64) * 31 + (u64)p + (u64)(p >> n) + (u64)((p + a) / 3) + (p > a) +
		(u64)(((u128)a << 64) >> (n + 32));
}
long signs(enum sign a, long b) { return (a < 0) + 2 * (a < ABOVE) + 4 * (a == BELOW) + 8 * (a < b) + 100 * (long)a; }
long typedefs(long a) {
	sign_t s = a; number_t n = a;
	return (number_t)(a) + (s < 0) + (u8)(a) - (u32)-1 * (u64)~a + (long)s * 3 + n;
}
long colours(enum colour a, int b) { return (a - 7 < 0) + 2 * (a > b) + 4 * (a == BLUE ? LAST : GREEN) + a; }
u64 wide_enumerators(int a, long b) {
	u64 r = WIDE + a + (a < WIDE) + 3 * (WIDE + WIDE);
	r = r * 31 + LARGER - 1 + (b < LARGER) + WIDEST * 2 + (b < NARROW) + (a < SMALL);
	r = r * 31 + PLUS + PLUS + (a < PLUS) + MINUS + (a < MINUS) + TOP + TOP + (a < TOP) + (a < SECOND);
	return r * 31 + sizeof(WIDE) + 3 * sizeof(WIDEST) + 5 * sizeof(PLUS) + 7 * sizeof(RED) + 11 * sizeof(FIRST);
}
u64 spellings(long a) {
	long unsigned int b = a;
	unsigned c = a;
	short int d = a;
	unsigned short e = a;
	signed f = a;
	int long g = a;
	long long unsigned h = a;
	signed char i = a;
	const unsigned char j = a;
	volatile int k = a;
	char unsigned l = a;
	return b + 3 * c + 5 * d + 7 * e + 11 * f + 13 * g + 17 * h + 19 * i + 23 * j + 29 * k + 31 * l;
}
u64 types_of(u8 a, long b) {
	typeof(a) c = b;
	__auto_type d = c;
	__auto_type e = c + 1;
	typeof(a + 1) f = b;
	__typeof__(b) g = a;
	typeof(u16) h = b;
	d += 200;
	e += 200;
	return c + 3 * d + 5 * e + 7 * f + 11 * g + 13 * h + sizeof(typeof(a)) + sizeof(c) + sizeof(e);
}
int truths(int a, long b) { bool x = b, y = a & 4; x |= a; y ^= x; x++; return x * 2 + y + !!b + (x == (a != 0)) + -y; }
bool result_bool(long a) { return a; }
u8 result_narrow(long a) { return a; }
char result_char(int a) { return a + 1; }
long argument(u8 a, s16 b) { a += 200; b -= 30000; return a * b; }
static long narrowed(u8 a, bool b, s16 c) { return a + 1000 * b + 10000L * c; }
long passed(long a, long b) { return narrowed(a, b, a + b) + narrowed(a > b, 256, b); }
"""
CHARS = TYPEDEFS + "u64 plain_char(char a, int b) { char c = b; return (a < 0) + 2 * (c >> 1) + a * c + (u64)a; }\n"


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(PAIRS, tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(ALONE, tmp_path_factory.mktemp("alone"))


@pytest.mark.parametrize("a", TYPES)
@pytest.mark.parametrize("group", GROUPS)
def test_pairs_of_types(group: str, a: str, pairs: Bench) -> None:
    for number, b in enumerate(TYPES):
        unknowns = int((number + TYPES.index(a)) % 4 == 0)                  # they cost most of the time
        refused = pairs.check(f"{group}_{a}_{b}", examples=20, few=4, unknowns=unknowns)
        assert bool(refused) == (group in UNKNOWN_BITS and bool(unknowns)), refused


KNOWN_ONLY = {"truths", "wide_products"}


@pytest.mark.parametrize("name", functions(ALONE))
def test_numbers(name: str, alone: Bench) -> None:
    refused = alone.check(name)
    assert ("an amount or a mask that is not known" in refused) == (name in KNOWN_ONLY), refused


@pytest.mark.parametrize("unsigned", [False, True])
def test_plain_char(unsigned: bool, tmp_path: object) -> None:
    flag = ("-funsigned-char",) if unsigned else ()
    makefile = {"Makefile": "VERSION = 6\nKBUILD_CFLAGS += -funsigned-char\n"} if unsigned else {}
    bench = Bench(CHARS, tmp_path, files=makefile, flags=flag)  # type: ignore[arg-type]
    assert not bench.check("plain_char")
