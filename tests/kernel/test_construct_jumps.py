# SPDX-License-Identifier: GPL-2.0-only
"""C's jumps against the compiler: break and continue through nested statements, goto in both directions."""

from __future__ import annotations

import pytest

from tests.kernel.native import TYPEDEFS, Bench, functions

CODE = TYPEDEFS + r"""
int nested_jumps(int a, u8 b)
{
	int r = 0, i, j;

	for (i = 0; i < 4; i++) {
		for (j = 0; j < 4; j++) {
			switch ((a >> i) & 3) {
			case 0:
				continue;
			case 1:
				if (j == (b & 3))
					break;
				r++;
				switch (r & 3) {
				case 2:
					continue;
				case 3:
					break;
				default:
					r += 2;
				}
				break;
			case 2:
				do {
					if (++r & 4)
						continue;
					break;
				} while (r < 50);
				break;
			default:
				goto next;
			}
			if (r > 90)
				goto out;
			r += 5;
		}
		if (i == (b & 1))
			continue;
		r += 7;
next:
		r += 11;
	}
	r += 1000;
out:
	return r + i * 3 + j;
}

int forward(int a, int b)
{
	int r = 0;

	if (a == 3)
		goto last;
	if (a == 4)
		goto first;
	r = 1;
	goto second;
first:
	r += 10;
	if (b & 1)
		goto last;
second:
	r += 100;
last:
	return r;
}

int retry(int a, u8 tries)
{
	int n = 0;

	tries &= 15;
again:
	n++;
	if (a & 1) {
		a >>= 1;
		if (tries--)
			goto again;
		n += 100;
		goto out;
	}
	a += n;
	if (n < 5 && (a & 2))
		goto again;
out:
	return n * 1000 + (a & 255);
}

int both_ways(int a, u8 b)
{
	int r = 0, n = 0;

	if (a & 1)
		goto middle;
	if (a & 2)
		goto late;
start:
	r += 1;
	if (++n > 12)
		goto done;
	if (b & 1) {
		b >>= 1;
		goto late;
	}
middle:
	r += 10;
	if (++n > 12)
		goto done;
	while (b & 2) {
		b >>= 1;
		if (b & 4)
			goto start;
		r += 3;
	}
late:
	r += 100;
	switch (b & 12) {
	case 4:
		b ^= 4;
		if (++n < 9)
			goto middle;
		break;
	case 8:
		b ^= 8;
		goto start;
	}
	if (b & 16) {
		b ^= 16;
		goto late;
	}
done:
	return r + n * 7 + b;
}

int inner_labels(int a, u8 b)
{
	int r = 0, i;

	for (i = 0; i < 5; i++) {
		int n = 0;
redo:
		n++;
		if (n > 6)
			break;
		if ((a >> i) & 1) {
			r += n;
			a ^= 1 << i;
			goto redo;
		}
		if (b & 1) {
			b >>= 1;
			if (b & 2)
				continue;
			goto skip;
		}
		while (n < 3) {
			n++;
			if (b & 4) {
				b ^= 4;
				goto redo;
			}
		}
		r += 50;
skip:
		r += n * 3;
	}
	if (b & 8) {
		goto in;
in:
		r += 7;
	}
	return r + i;
}

int two_loops(u8 a, u8 b)
{
	int r = 0;

	if (a & 128)
		goto inner;
outer:
	r += 1;
	if (r > 40)
		return r;
inner:
	r += 3;
	if (a & 1) {
		a >>= 1;
		goto inner;
	}
	a >>= 1;
	if (b & 1) {
		b >>= 1;
		goto outer;
	}
	b >>= 1;
	if (b)
		goto inner;
	return r * 5;
}
"""


@pytest.fixture(scope="module")
def jumps(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(CODE, tmp_path_factory.mktemp("jumps"))


@pytest.mark.parametrize("name", functions(CODE))
def test_jumps(name: str, jumps: Bench) -> None:
    assert not jumps.check(name, unknowns=4 if name == "forward" else 0)
