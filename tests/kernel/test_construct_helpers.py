# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's own macros and atomics against the compiler."""

from __future__ import annotations

import pytest

from tests.kernel.native import Bench, functions
from tests.kernel.objects import bench

CODE = r"""
#define add_positive(lval, by) do { typeof(lval) _v = (lval), _r = _v + (by); \
	if ((by) < 0 && _r > _v) _r = 0; WRITE_ONCE(lval, _r); } while (0)
#define remove_positive(_ptr, _by) do { \
	typeof(_ptr) at = (_ptr); \
	typeof(*at) by = (_by), was = READ_ONCE(*at); \
	WRITE_ONCE(*at, was - min_t(typeof(*at), was, by)); \
} while (0)
static int bump(struct node *n)
{
	return ++n->state;
}

long once(struct node *n, struct node *m, long x) {
	long r = READ_ONCE(n->state) + READ_ONCE(m->half);

	WRITE_ONCE(n->tiny, x);
	WRITE_ONCE(m->load.weight, READ_ONCE(n->load.weight) + x);
	r += smp_load_acquire(&m->lag);
	smp_store_release(&n->half, r);
	rcu_assign_pointer(n->next, m);
	add_positive(m->load.inverse, x);
	remove_positive(&n->load.weight, x);
	remove_positive(&m->half, n->state);
	if (likely(r > 5) || unlikely(n->state++ == 2))
		r += rcu_dereference(n->next)->tiny;
	return r;
}
long atomics(struct node *n, struct node *m, int x, long y) {
	long r = atomic_read(&n->refs) + atomic_long_read(&m->total);

	atomic_inc(&n->refs);
	atomic_add(x, &m->refs);
	atomic_long_sub(x, &n->total);
	r = r * 31 + atomic_add_return(x, &n->refs);
	r = r * 31 + atomic_sub_return(5, &m->refs);
	r = r * 31 + atomic_inc_return(&n->refs);
	r = r * 31 + atomic_dec_return(&m->refs);
	r = r * 31 + atomic_fetch_add(y, &n->refs);
	r = r * 31 + atomic_fetch_inc(&m->refs);
	r = r * 31 + atomic_long_add_return(x, &n->total);
	r = r * 31 + atomic_long_fetch_add(y, &m->total);
	r = r * 31 + atomic_dec_and_test(&n->refs);
	r = r * 31 + atomic_sub_and_test(x, &m->refs);
	if (r & 1)
		atomic_set(&n->refs, y);
	atomic_long_set(&m->total, x);
	return r + atomic_long_inc_return(&m->total);
}
long exchanges(struct node *n, struct node *m, int x, long y) {
	int old = x & 3;
	long wide = 0, r = xchg(&n->state, x);
	bool done;

	r = r * 31 + xchg(&m->half, y) + 3 * xchg(&n->tiny, y);
	r = r * 31 + cmpxchg(&m->state, x, y) + 3 * cmpxchg(&n->lock.locked, 0, x) + 5 * cmpxchg(&m->tiny, y, 5);
	r = r * 31 + atomic_xchg(&n->refs, x) + 3 * atomic_cmpxchg(&m->refs, x, 9);
	r = r * 31 + atomic_long_cmpxchg(&n->total, x, y);
	done = try_cmpxchg(&m->state, &old, y);
	r = r * 31 + done + 2 * old;
	while (!atomic_long_try_cmpxchg(&m->total, &wide, wide + x))
		r++;
	r = r * 31 + atomic_try_cmpxchg(&m->refs, &old, 4) + 2 * old + 3 * wide;
	if (xchg(&n->next, m) == m)
		r += 1000;
	if (cmpxchg(&m->next, NULL, n))
		r += 2000;
	return r;
}
long extremes(struct node *n, struct node *m, long x) {
	long r = max(n->state, 5) + 3 * min(m->lag, x) + 5 * max(n->tiny, m->tiny);

	r = r * 31 + max_t(u8, n->state, x) + 3 * min_t(long, m->seen, n->lag) + 5 * max_t(s64, n->load.weight, 3);
	r = r * 31 + clamp_t(int, x, n->tiny, m->half) + 3 * clamp_t(u64, n->lag, 4, m->load.weight);
	r = r * 31 + max3(n->state, m->state, 7) + 3 * min3(x, n->lag, m->lag);
	r = r * 31 + max(bump(n), 3) + min(n->load.weight++, m->load.weight);
	return r;
}
long absolute(struct node *n, long x) {
	long r = abs(n->state) + 3 * abs(x) + 5 * abs(n->half) + 7 * abs((s16)x);

	n->half = x;
	return r * 31 + abs(n->lag) + 3 * abs(n->seen) + 5 * abs(n->state - 3) + 7 * abs((u16)x);
}
u64 quotients(struct node *n, u64 a, long b, u32 c) {
	u64 r = div_u64(a, c ?: 1) + 3 * div64_u64(n->load.weight, a ?: 1);

	if (b != -1 && b && (int)b != -1 && (int)b)
		r = r * 31 + div_s64(n->lag, b) + 3 * div64_s64(n->state, b);
	n->load.weight = mul_u64_u32_shr(a, c, 32);
	return r * 31 + mul_u64_u32_shr(n->lag, n->seen, 12) + mul_u64_u32_shr(a, n->state, 0);
}
int swaps(struct node *n, struct node *m, int x) {
	int y = m->tiny;

	swap(x, y);
	swap(n->state, m->state);
	swap(n->next, m->next);
	if (x > y)
		swap(n->half, n->half);
	swap(n->load.weight, m->group->clock.now);
	return x - 3 * y;
}
"""


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return bench(CODE, tmp_path_factory.mktemp("helpers"))


@pytest.mark.parametrize("name", functions(CODE))
def test_helpers(name: str, objects: Bench) -> None:
    assert not objects.check(name, unknowns=4)
