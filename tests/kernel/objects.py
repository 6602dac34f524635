# SPDX-License-Identifier: GPL-2.0-only
"""A small universe of objects for C in the kernel's idiom: the structs, their model, the compiler's half."""

from __future__ import annotations

from pathlib import Path

from schedproof.kernel import Vocabulary
from schedproof.model.domains import Bool, Int, Link, Object, Pointer
from tests.kernel.native import TYPEDEFS, Bench

# What the kernel's headers give the compiler; the reader has its own meaning for these names.
NATIVE = r"""
#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) do { *(volatile typeof(x) *)&(x) = (v); } while (0)
#define smp_load_acquire(p) READ_ONCE(*(p))
#define smp_store_release(p, v) WRITE_ONCE(*(p), v)
#define container_of(p, type, member) ((type *)((char *)(p) - __builtin_offsetof(type, member)))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define max(a, b) ({ __auto_type _x = (a); __auto_type _y = (b); _x > _y ? _x : _y; })
#define min(a, b) ({ __auto_type _x = (a); __auto_type _y = (b); _x < _y ? _x : _y; })
#define max3(a, b, c) max(max(a, b), c)
#define min3(a, b, c) min(min(a, b), c)
#define max_t(t, a, b) ({ t _x = (a); t _y = (b); _x > _y ? _x : _y; })
#define min_t(t, a, b) ({ t _x = (a); t _y = (b); _x < _y ? _x : _y; })
#define clamp_it(t, v, l, h) ({ t _v = (v); t _l = (l); t _h = (h); _v >= _h ? _h : (_v <= _l ? _l : _v); })
#define clamp_t(t, v, l, h) clamp_it(t, v, l, h)
#define clamp(v, l, h) clamp_it(__auto_type, v, l, h)
#define same_type(x, t) (__builtin_types_compatible_p(typeof(x), signed t) || \
	__builtin_types_compatible_p(typeof(x), unsigned t))
#define abs_as(x, t, other) __builtin_choose_expr(same_type(x, t), \
	({ signed t _x = (x); _x < 0 ? -_x : _x; }), other)
#define abs(x) abs_as(x, long, abs_as(x, int, abs_as(x, short, abs_as(x, char, 0))))
#define swap(a, b) do { typeof(a) _t = (a); (a) = (b); (b) = _t; } while (0)
static inline u64 div_u64(u64 a, u32 b) { return a / b; }
static inline u64 div64_u64(u64 a, u64 b) { return a / b; }
static inline s64 div_s64(s64 a, s32 b) { return a / b; }
static inline s64 div64_s64(s64 a, s64 b) { return a / b; }
static inline u64 mul_u64_u32_shr(u64 a, u32 m, unsigned int s) { return (u64)(((unsigned __int128)a * m) >> s); }
#define ATOMIC(name, type, T) \
	static inline T name##_read(const type *v) { return v->counter; } \
	static inline void name##_set(type *v, T i) { v->counter = i; } \
	static inline void name##_inc(type *v) { v->counter++; } \
	static inline void name##_dec(type *v) { v->counter--; } \
	static inline void name##_add(T i, type *v) { v->counter += i; } \
	static inline void name##_sub(T i, type *v) { v->counter -= i; } \
	static inline T name##_add_return(T i, type *v) { return v->counter += i; } \
	static inline T name##_sub_return(T i, type *v) { return v->counter -= i; } \
	static inline T name##_inc_return(type *v) { return ++v->counter; } \
	static inline T name##_dec_return(type *v) { return --v->counter; } \
	static inline T name##_fetch_add(T i, type *v) { T o = v->counter; v->counter += i; return o; } \
	static inline T name##_fetch_inc(type *v) { return v->counter++; } \
	static inline bool name##_dec_and_test(type *v) { return --v->counter == 0; } \
	static inline bool name##_sub_and_test(T i, type *v) { return (v->counter -= i) == 0; } \
	static inline T name##_xchg(type *v, T n) { T o = v->counter; v->counter = n; return o; } \
	static inline T name##_cmpxchg(type *v, T o, T n) { T w = v->counter; if (w == o) v->counter = n; return w; } \
	static inline bool name##_try_cmpxchg(type *v, T *o, T n) \
	{ T w = v->counter; if (w == *o) { v->counter = n; return 1; } *o = w; return 0; }
#define xchg(p, n) ({ typeof(p) _p = (p); typeof(*_p) _n = (n), _o = *_p; *_p = _n; _o; })
#define cmpxchg(p, o, n) ({ typeof(p) _p = (p); typeof(*_p) _o = (o), _n = (n), _w = *_p; if (_w == _o) *_p = _n; _w; })
#define try_cmpxchg(p, op, n) ({ typeof(p) _p = (p); typeof(op) _op = (op); typeof(*_p) _o = *_op, _n = (n), _w = *_p; \
	if (_w == _o) *_p = _n; else *_op = _w; _w == _o; })
#define rcu_dereference(p) READ_ONCE(p)
#define rcu_assign_pointer(p, v) WRITE_ONCE(p, v)
"""
STRUCTS = r"""
typedef struct { int counter; } atomic_t;
typedef struct { s64 counter; } atomic_long_t;
struct node;
struct group;
enum sign { BELOW = -1, EVEN, ABOVE };
struct lock { u8 locked; u8 pending; };
struct load { u64 weight; u32 inverse; };
struct notifier { int calls; };
struct clock { u64 now; int skew; };
struct node {
	struct lock lock;
	struct load load;
	int state;
	s8 tiny;
	bool on;
	u16 half;
	unsigned flag:3, other:5;
	int sign:4;
	u64 wide:40;
	bool bit:1;
	long lag;
	u32 seen;
	unsigned int queued;
	enum sign direction;
	struct { s16 depth; union { u8 low; }; } place;
	struct node *next;
	struct group *group;
	atomic_t refs;
	atomic_long_t total;
	struct notifier notifier;
};
struct group { struct clock clock; struct node *curr; int count; struct clock other; };
"""


class Objects:
    nodes = Object("struct node", "n0", "n1", "n2")
    groups = Object("struct group", "g0", "g1")
    clocks = Object("struct clock", "c0", "c1")
    locked = Int(per=nodes, c="lock.locked")
    pending = Int(per=nodes, c="lock.pending")
    weight = Int(per=nodes, c="load.weight")
    inverse = Int(per=nodes, c="load.inverse")
    state = Int(per=nodes, c="state")
    tiny = Int(per=nodes, c="tiny")
    on = Bool(per=nodes, c="on")
    half = Int(per=nodes, c="half")
    flag = Int(per=nodes, c="flag")
    other = Int(per=nodes, c="other")
    sign = Int(per=nodes, c="sign")
    wide = Int(per=nodes, c="wide")
    bit = Bool(per=nodes, c="bit")
    lag = Int(per=nodes, c="lag")
    seen = Int(per=nodes, c="seen")
    queued = Bool(per=nodes, c="queued")
    direction = Int(per=nodes, c="direction")
    depth = Int(per=nodes, c="place.depth")
    low = Int(per=nodes, c="place.low")
    refs = Int(per=nodes, c="refs")
    total = Int(per=nodes, c="total")
    calls = Int(per=nodes, c="notifier.calls")
    next = Pointer(nodes, per=nodes, c="next")
    curr = Pointer(nodes, per=groups, c="curr")
    count = Int(per=groups, c="count")
    skew_of_other = Int(per=groups, c="other.skew")
    now = Int(per=clocks, c="now")
    skew = Int(per=clocks, c="skew")
    group = Link(per=nodes, target=groups, to={"n0": "g0", "n1": "g0", "n2": "g1"}, c="group")
    clock = Link(per=groups, target=clocks, to={"g0": "c0", "g1": "c1"}, c="clock")
    vocabulary = Vocabulary()


KINDS = {"locked": "u8", "pending": "u8", "weight": "u64", "inverse": "u32", "tiny": "s8", "half": "u16",
         "flag": "u32:3", "other": "u32:5", "sign": "int:4", "wide": "u64:40", "lag": "long", "seen": "u32",
         "depth": "s16", "low": "u8", "total": "long", "now": "u64"}
ATOMICS = "#ifdef NATIVE\nATOMIC(atomic, atomic_t, int)\nATOMIC(atomic_long, atomic_long_t, long)\n#endif\n"


def bench(code: str, folder: Path) -> Bench:
    """A bench of functions on these objects."""
    return Bench(TYPEDEFS + STRUCTS + ATOMICS + code, folder, Objects, KINDS,
                 native="#define NATIVE\n" + TYPEDEFS + NATIVE, embedded={"clocks": ("groups", "clock")},
                 atomics=frozenset({"refs", "total"}))
