# SPDX-License-Identifier: GPL-2.0-only
"""C's statements against the compiler: branches, loops, macros, calls, local structs."""

from __future__ import annotations

import pytest

from tests.kernel.native import TYPEDEFS, Bench, functions

HEADER = """
#ifndef LOCAL_H
#define LOCAL_H
#define STEP 3
#define scale(x) ((x) * STEP)
static inline int in_header(int x, u8 y)
{
	return scale(x) + y;
}
#endif
"""
CODE = TYPEDEFS + r"""
#include "local.h"
#define twice(x) x + x
#define first(x, ...) (x)
#define rest(x, ...) sum2(__VA_ARGS__)
#define glue(a, b) a##b
#define for_each_digit(d, x) for (int __x = (x) & 0xffff, d = __x % 10; __x; __x /= 10, d = __x % 10)
#define for_odd(i, n) for (i = 0; i < (n); i++) if (!(i & 1)) {} else
#define careful(x) ({ typeof(x) __v = (x); if (__v > 50) __v -= 50; __v; })
#define chosen picked
#define picked(x) ((x) * 5)
#define swap_them(a, b) do { typeof(a) __t = (a); (a) = (b); (b) = __t; } while (0)
#define NESTED(x) careful(careful(x) + careful(2 * (x)))
#define CONFIG_DEPTH 4
enum { LOW = 1, HIGH = 9 };
struct pair { int low; u8 high; };
struct box { struct pair inner; long size; unsigned flag:3, other:5; int sign:4; bool on; };

static int sum2(int a, int b)
{
	return a * 3 + b;
}

static void nothing(void)
{
}

static int early(int x)
{
	if (x > 10)
		return x - 10;
	if (x < -10)
		return -x;
	nothing();
	return x & 3;
}

int short_circuit(int a, int b)
{
	int n = 0, m = 0;
	bool x = a > 3 && (n++, b > 3) && ++n;
	bool y = a > 3 || (m++, b > 3) || (m += 5, 0);
	if (!(a && n++) || (b && m++))
		n += 100;
	return x + 2 * y + 4 * n + 1000 * m + (a && b++ ? b : a || b-- ? b : 3);
}

int conditional(int a, long b)
{
	int n = 0;
	long c = a ? n++, b : (n += 7, a);
	c += (b ?: a) + (a++ ?: n++) + (a > b ? a > 0 ? 1 : 2 : a < 0 ? 3 : 4);
	c += a == 2 ? early(b) : early(a) ?: 9;
	return c + n;
}

int branches(int a, int b)
{
	int r = 0;

	if (a > 5)
		if (b > 5)
			r = 1;
		else
			r = 2;
	else if (a < -5) {
		r = 3;
	} else if (a == b)
		;
	else
		r = early(a) ? 4 : 5;
	if (a) {
		int r = b;
		b = r + 1;
	}
	return r * 10 + (b & 1);
}

int switch_middle(int a, u8 b)
{
	int r = 1;

	switch (a) {
		int kept;
	case -3:
		r = 2;
		break;
	default:
		r += 10;
		if (b & 1)
			break;
		fallthrough;
	case 2:
		kept = r * 2;
		r = kept + 1;
	case LOW:
	case 'a':
		r += 3;
		break;
	case 4 ... 7:
		r += 100;
		fallthrough;
	case HIGH: {
		int r2 = r;
		r = r2 + b;
		break;
	}
	}
	switch (b) {
	case 0 ... 3: r *= 3; break;
	case 0xff: r *= 5;
	}
	switch (a & 3) {
	case 1:
		return r;
	}
	return r;
}

int switch_types(long a, u32 b, s8 c)
{
	int r = 0;

	switch (a) {
	case 0x100000000: r = 1; break;
	case -1: r = 2; break;
	case 0xffffffff: r = 3; break;
	}
	switch (b) {
	case -1: r += 10; break;
	case 1L << 31: r += 20; break;
	case -2L: r += 30; break;
	}
	switch (c) {
	case -1: r += 100; break;
	case 255: r += 200; break;
	case 'a': r += 300; break;
	}
	switch ((int)a) {
	case 0xffffffffU: r += 1000; break;
	case 0x100000003: r += 3000; break;
	}
	switch (b > 3) {
	case 0: r += 5000;
	}
	return r;
}

int loops(u8 n, int k)
{
	int sum = 0, i, j;

	for (i = 0, j = 40; i < n && j; i++, j--) {
		if (i == k)
			continue;
		if (i > 30)
			break;
		sum += i * j;
	}
	for (;;) {
		if (sum-- < 100 || (sum & 1))
			break;
		sum /= 2;
	}
	while (sum > 1000 && n--)
		sum /= 2;
	do {
		if (sum++ % 5 == 1)
			continue;
		if (sum % 7 == 3)
			break;
		sum += 2;
	} while (sum & 3);
	do
		sum++;
	while (0);
	for (int i = 0; i < 3; i++)
		for (int i = 0; i < 2; i++)
			sum += i;
	return sum + i;
}

int statement_expressions(int a, int b)
{
	int x = ({ int y = a; if (y > 9) y = 9; y; });
	int z = ({ a++; b; }) + ({ int x = b; x += a; x; });

	x += ({ if (a == b) return 77; a; });
	for (;;) {
		z += ({ if (b++ > 3) break; b; });
		if (z > 1000 || z < -1000)
			break;
	}
	({ z++; });
	return x + z * 3 + careful(a) + NESTED(b & 63);
}

int macros(int a, int b)
{
	int glue(v, 1) = twice(a) * 3, digits = 0, i;

	for_each_digit(d, a)
		digits += d * d;
	for_odd(i, b & 7)
		digits += i;
	swap_them(a, b);
	if (a > b)
		swap_them(a, v1);
	else
		v1 -= b;
	return v1 + digits + a * 3 + first(a, b, c) + rest(a, b, 2) + chosen(b) + chosen
		(a) + picked(picked(1)) + CONFIG_DEPTH + in_header(a, b) + scale(STEP);
}

long calls(int a, long b)
{
	long r = early(a) + early(b) * sum2(early(a + b), b);

	while (early(a) > 1 && r++ & 15)
		r += early(a--);
	nothing();
	(void)early(a);
	return r + (early(early(a)) ? sum2(a, b) : in_header(a, b));
}

int comma(int a, int b)
{
	int i, j;

	for (i = 0, j = a; i < 5; i++, j += b, b--)
		a += (i++, j) + (j--, i);
	return (a = b, a + 1) + (i, j);
}

int effects(int a, int b)
{
	int i = a, c, d;

	c = d = i++;
	c += d -= 3;
	c <<= 2;
	d = c--;
	d *= ++b;
	b = -i-- - -i + !d++ + ~c--;
	return c + d * 3 + b * 5 + i * 7 + a--- b;
}

int compound(int a, u8 b, s16 c, bool d)
{
	a += b; b -= c; c *= a; a /= (b | 1); c %= 7; a <<= b & 7; b >>= 1; a &= ~b; c |= a; b ^= c; d += b; d ^= 1;
	b++; --c; d--; a--; ++b; c--; ++d;
	return a + b * 3 + c * 5 + d * 7;
}

long local_structs(int a, long b)
{
	struct pair p = { .low = a, .high = b }, q;
	struct box x = {}, y = { .inner.low = b, .size = a, .flag = a, .sign = b, .on = b }, z = { 0 };

	q = p;
	q.high += 200;
	x.inner.low = q.high--;
	(x.inner).high = -1;
	x.flag += y.flag + 5;
	y.other = x.flag << 2;
	y.sign -= 3;
	z = y;
	{
		struct pair p = { .high = a };
		z.inner.high += p.high + p.low;
	}
	if (a > b)
		x = z;
	return p.low + 3 * q.high + 5 * x.inner.low + 7L * x.inner.high + 11 * x.flag +
		13 * y.other + 17 * y.sign + 19 * z.size + 23 * z.inner.high + 29 * x.on + 31 * z.inner.low + sizeof(p.high);
}
"""
# Without loops that go on for as long as an unknown number says, and without masks of unknown numbers.
UNKNOWN = ("short_circuit", "conditional", "switch_types", "local_structs", "effects")


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    native = "#define fallthrough __attribute__((__fallthrough__))"
    return Bench(CODE, tmp_path_factory.mktemp("flow"), files={"local.h": HEADER}, native=native)


@pytest.mark.parametrize("name", functions(CODE))
def test_statements(name: str, flow: Bench) -> None:
    assert not flow.check(name, unknowns=4 if name in UNKNOWN else 0)
