# SPDX-License-Identifier: GPL-2.0-only
"""The small model that generated C speaks about, and the C around it, for the reader and for the compiler.

Its structs have a field of every integer type, bit-fields, atomics, a nested struct, links and a pointer that can be
changed. The two callees of the vocabulary are so simple that their C is plain to see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schedproof.lang.ctypes import BOOL, CHAR, INT, LONG, S16, U8, U16, UINT, ULONG, CType
from schedproof.model import Bool, Constant, Link, Model, Object, Pointer, Range, Vocabulary, environment

FILE = "kernel/sched/gen.c"
PRELUDE = "kernel/sched/yard.h"


class Yard(Model):
    """Two cars in a row, each on its lot."""

    car = Object("struct car", "a", "b")
    lot = Object("struct lot", "p", "q")
    ahead = Link(car, car, {"a": "b"}, c="ahead")
    home = Link(car, lot, {"a": "p", "b": "q"}, c="home")
    tail = Pointer(car, per=lot, c="tail")
    weight = Range(0, 4, per=car, c="load.weight", init=0)
    inverse = Range(0, 4, per=car, c="load.inv", init=0)
    small = Range(-4, 4, per=car, c="small", init=0)
    wide = Range(-4, 4, per=car, c="wide", init=0)
    count = Range(0, 4, per=car, c="count", init=0)
    size = Range(0, 4, per=car, c="size", init=0)
    flag = Bool(per=car, c="flag")
    byte = Range(0, 4, per=car, c="byte", init=0)
    tiny = Range(-4, 4, per=car, c="tiny", init=0)
    half = Range(0, 4, per=car, c="half", init=0)
    brief = Range(-4, 4, per=car, c="brief", init=0)
    low = Range(0, 4, per=car, c="low", init=0)
    mid = Range(-4, 4, per=car, c="mid", init=0)
    refs = Range(-4, 4, per=car, c="refs", init=0)
    total = Range(-4, 4, per=car, c="total", init=0)
    fill = Range(-4, 4, per=lot, c="fill", init=0)
    number = Range(0, 4, per=lot, c="nr", init=0)
    clock = Range(0, 4, c="ticks", init=0)
    room = Constant(7, per=lot, c="room", why="a size that nobody changes")
    releases = {"v1": {}}
    vocabulary = Vocabulary(
        callees={"note": "somewhere else", "ask": "somewhere else"},
        ignore={("struct car", "stamp"): "no clock"}, noop={"trace_it": "tracing"},
        static_keys={"yard_open": (True, "always"), "yard_shut": (False, "never")}, constants={"YARD_MAX": 12})
    functions = {"f": FILE}

    @environment
    def note(self, c, v):
        self.flag[c] = v > 3

    @environment
    def ask(self, c):
        return 1 if self.flag[c] else 0


@dataclass(frozen=True)
class Field:
    """One state variable: the model's name, the C path, the C type; ``bool`` and pointers have their own kind."""

    name: str
    struct: str
    path: str
    ctype: CType
    kind: str = "number"


FIELDS = (
    Field("weight", "car", "load.weight", ULONG), Field("inverse", "car", "load.inv", UINT),
    Field("small", "car", "small", INT), Field("wide", "car", "wide", LONG), Field("count", "car", "count", UINT),
    Field("size", "car", "size", ULONG), Field("flag", "car", "flag", BOOL, "bool"), Field("byte", "car", "byte", U8),
    Field("tiny", "car", "tiny", CHAR), Field("half", "car", "half", U16), Field("brief", "car", "brief", S16),
    Field("low", "car", "low", CType("low", 3, False)), Field("mid", "car", "mid", CType("mid", 5, True)),
    Field("refs", "car", "refs.counter", INT), Field("total", "car", "total.counter", LONG),
    Field("fill", "lot", "fill", LONG), Field("number", "lot", "nr", UINT), Field("tail", "lot", "tail", INT, "car"),
    Field("clock", "", "ticks", ULONG))
SIZES = {"car": 2, "lot": 2, "": 1}
KEYS = tuple((f, i if f.struct else None) for f in FIELDS for i in range(SIZES[f.struct]))

TYPES = """
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long u64;
typedef signed char s8; typedef short s16; typedef int s32; typedef long s64; typedef _Bool bool;
"""
STRUCTS = """
struct load { unsigned long weight; u32 inv; };
struct lot;
struct car {
	struct load load;
	int small;
	long wide;
	unsigned int count;
	unsigned long size;
	bool flag;
	u8 byte;
	s8 tiny;
	u16 half;
	short brief;
	unsigned int low:3;
	int mid:5;
	atomic_t refs;
	atomic64_t total;
	struct car *ahead;
	struct lot *home;
	u64 stamp;
};
struct lot {
	long fill;
	unsigned int nr;
	struct car *tail;
	long room;
};
void note(struct car *c, long v);
int ask(struct car *c);
extern unsigned long ticks;
"""
FOR_READER = TYPES + """
typedef struct { int counter; } atomic_t;
typedef struct { s64 counter; } atomic64_t;
""" + STRUCTS

# What the kernel's own words mean, for the compiler. The reader has its own meaning for each, which is under test.
FOR_COMPILER = TYPES + """
#define NULL ((void *)0)
#define true 1
#define false 0
#define YARD_MAX 12
typedef struct { int counter; } atomic_t;
typedef struct { s64 counter; } atomic64_t;
#define max(a, b) ({ __auto_type _x = (a); __auto_type _y = (b); _x > _y ? _x : _y; })
#define min(a, b) ({ __auto_type _x = (a); __auto_type _y = (b); _x < _y ? _x : _y; })
#define max3(a, b, c) max((typeof((a) > (b) ? (a) : (b)))max(a, b), c)
#define min3(a, b, c) min((typeof((a) > (b) ? (a) : (b)))min(a, b), c)
#define max_t(t, a, b) ({ t _x = (a); t _y = (b); _x > _y ? _x : _y; })
#define min_t(t, a, b) ({ t _x = (a); t _y = (b); _x < _y ? _x : _y; })
#define clamp_t(t, v, l, h) ({ t _v = (v); t _l = (l); t _h = (h); _v >= _h ? _h : (_v <= _l ? _l : _v); })
#define abs(x) _Generic((x), u8: abs8_, u16: abs16_, long: labs_, unsigned long: labs_, default: iabs_)(x)
static inline int abs8_(s8 x) { return x < 0 ? -x : x; }
static inline int abs16_(s16 x) { return x < 0 ? -x : x; }
static inline int iabs_(int x) { return x < 0 ? -x : x; }
static inline long labs_(long x) { return x < 0 ? -x : x; }
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define WARN_ON_ONCE(x) ({ int _w = !!(x); unlikely(_w); })
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, v) ((x) = (v))
#define noinline __attribute__((__noinline__))
#define smp_mb() do { } while (0)
#define trace_it(...) do { } while (0)
#define fallthrough __attribute__((__fallthrough__))
#define IS_ENABLED(x) IS_ENABLED_(x)
#define IS_ENABLED_(x) IS_ENABLED__(ON_##x)
#define IS_ENABLED__(x) IS_ENABLED___(x 1, 0)
#define IS_ENABLED___(a, b, ...) b
#define ON_1 0,
#define static_branch_likely(x) (*(x))
#define static_branch_unlikely(x) (*(x))
static const int yard_open = 1, yard_shut = 0;
#define swap(a, b) do { typeof(a) __t = (a); (a) = (b); (b) = __t; } while (0)
#define container_of(p, t, m) ((t *)((char *)(p) - __builtin_offsetof(t, m)))
static inline u64 div_u64(u64 a, u32 b) { return a / b; }
static inline u64 div64_u64(u64 a, u64 b) { return a / b; }
static inline s64 div_s64(s64 a, s32 b) { return a / b; }
static inline u64 mul_u64_u32_shr(u64 a, u32 m, unsigned int s) { return (u64)(((unsigned __int128)a * m) >> s); }
#define xchg(p, v) ({ typeof(*(p)) _o = *(p); *(p) = (v); _o; })
#define cmpxchg(p, o, n) ({ typeof(*(p)) _w = *(p), _o = (o); if (_w == _o) *(p) = (n); _w; })
#define try_cmpxchg(p, o, n) ({ typeof(*(p)) _w = *(p); int _d = _w == *(o); \\
	if (_d) *(p) = (n); else *(o) = _w; _d; })
#define ATOMICS(P, T) \\
static inline T P##_read(P##_t *v) { return v->counter; } \\
static inline void P##_set(P##_t *v, T i) { v->counter = i; } \\
static inline void P##_add(T i, P##_t *v) { v->counter += i; } \\
static inline void P##_sub(T i, P##_t *v) { v->counter -= i; } \\
static inline void P##_inc(P##_t *v) { v->counter++; } \\
static inline void P##_dec(P##_t *v) { v->counter--; } \\
static inline T P##_add_return(T i, P##_t *v) { return v->counter += i; } \\
static inline T P##_inc_return(P##_t *v) { return ++v->counter; } \\
static inline T P##_fetch_add(T i, P##_t *v) { T o = v->counter; v->counter += i; return o; } \\
static inline T P##_fetch_sub(T i, P##_t *v) { T o = v->counter; v->counter -= i; return o; } \\
static inline int P##_dec_and_test(P##_t *v) { return !--v->counter; } \\
static inline int P##_sub_and_test(T i, P##_t *v) { return !(v->counter -= i); } \\
static inline T P##_xchg(P##_t *v, T n) { T o = v->counter; v->counter = n; return o; } \\
static inline T P##_cmpxchg(P##_t *v, T o, T n) { T w = v->counter; if (w == o) v->counter = n; return w; }
#define ATOMIC_TYPES ATOMICS(atomic, int) ATOMICS(atomic64, s64)
ATOMIC_TYPES
""" + STRUCTS + """
unsigned long ticks;
static struct lot lots[2];
static struct car cars[2];
void note(struct car *c, long v) { c->flag = v > 3; }
int ask(struct car *c) { return c->flag; }
"""


def state_functions() -> str:
    """C that takes the whole state from an array, and puts it back there."""
    get, put = [], []
    for number, (field, index) in enumerate(KEYS):
        place = f"{field.struct}s[{index}].{field.path}" if field.struct else field.path
        if field.kind == "car":
            get.append(f"{place} = v[{number}] < 0 ? NULL : &cars[v[{number}]];")
            put.append(f"v[{number}] = {place} ? {place} - cars : -1;")
        else:
            get.append(f"{place} = v[{number}];")
            put.append(f"v[{number}] = {place};")
    links = ("cars[0].ahead = &cars[1]; cars[1].ahead = NULL; lots[0].room = 7; "
             "lots[1].room = 7; cars[0].home = &lots[0]; cars[1].home = &lots[1];")
    return (f"void take_state(const long *v) {{ {links} {' '.join(get)} }}\n"
            f"void give_state(long *v) {{ {' '.join(put)} }}\n")


def pointer_of(value: int, of: str) -> str:
    """C for an object by number."""
    return f"&{of}s[{value}]"


State = tuple[int, ...]


def shown(state: Sequence[int]) -> str:
    """A state in one line, without what is 0."""
    return " ".join(f"{f.name}{'' if i is None else f'[{i}]'}={v}"
                    for (f, i), v in zip(KEYS, state, strict=True) if v)
