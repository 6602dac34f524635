# SPDX-License-Identifier: GPL-2.0-only
"""Reading C with state: fields, links, calls, the kernel's vocabulary, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from schedproof.errors import NotExecutable, SchedproofError
from schedproof.kernel import Absent, Config, Tree, Vocabulary, read
from schedproof.lang import syntax as s
from schedproof.lang.ctypes import BOOL, INT, LONG, UINT, ULONG, pointer
from schedproof.model.domains import Bool, Constant, Enum, Int, Link, Object, Pointer, Range
from schedproof.model.vocabulary import fields_of, universes_of

MakeTree = Callable[..., Tree]

HEAD = """
struct load { unsigned long weight; u32 inverse; };
struct queue;
struct average { u64 sum; unsigned long load_avg; };
struct group { unsigned long shares; atomic_long_t total; struct queue **queues; };
struct entity {
	struct load load;
	unsigned int on_queue;
	struct { int depth; union { u8 low; u16 wide; }; } place;
	struct queue *queue;
	struct queue *owned;
	struct average avg ____cacheline_aligned;
	unsigned char state;
	unsigned flag:3;
	s64 lag;
	void (*call)(int);
};
struct queue {
	struct load load;
	struct average avg;
	int count;
#ifdef CONFIG_NEVER
	long throttled;
#else
	int throttled;
#endif
	struct group *group;
	struct entity *current_entity;
	struct box *box;
	struct world *world;
	struct clock clock;
};
struct clock { u64 now; };
struct box { int size; };
struct world { int cursor; };
#define WIDTH 10
#define for_each_up(e) for (; e; e = next_of(e))
enum state { RUNNING, HALTED = 4 };
static struct static_key used;
struct entity *next_of(struct entity *e);
int helper(struct queue *q, u8 amount);
void wake(struct entity *e);
long far_away(int x);
"""


class Small:
    entity = Object("struct entity", "a", "b")
    queue = Object("struct queue", "qa", "qb", "root")
    group = Object("struct group", "g")
    clocks = Object("struct clock", "c")
    weight = Int(per=entity, c="load.weight")
    queued = Bool(per=entity, c="on_queue")
    depth = Int(per=entity, c="place.depth")
    low = Int(per=entity, c="place.low")
    state = Enum("RUN", "HALT", meaning={"RUN": (0, 0), "HALT": (4, 4)}, per=entity, c="state")
    flag = Range(0, 7, per=entity, c="flag")
    load = Int(per=queue, c="load.weight")
    count = Int(per=queue, c="count")
    throttled = Range(0, 1, per=queue, c="throttled")
    shares = Int(per=group, c="shares")
    total = Constant(0, per=group, c="total")
    queue_of = Link(per=entity, target=queue, to={"a": "root", "b": "root"}, c="queue")
    owned = Link(per=entity, target=queue, to={"a": "qa", "b": "qb"}, c="owned")
    group_of = Link(per=queue, target=group, to={"qa": "g", "qb": "g", "root": "g"}, c="group")
    clock_of = Link(per=queue, target=clocks, to={"qa": "c", "qb": "c", "root": "c"}, c="clock")
    now = Int(per=clocks, c="now")
    current_entity = Pointer(entity, per=queue, c="current_entity")
    cursor = Range(0, 3, c="struct world.cursor")
    ghost = Int()
    vocabulary = Vocabulary(
        callees={"helper": "elsewhere", "next_of": "a link", "current": "who runs"},
        static_keys={"used": (True, "a quota exists"), "FEATURE": (False, "off")},
        ignore={("struct entity", "avg"): "not modelled", ("struct queue", "avg.load_avg"): "not modelled",
                ("struct entity", "lag"): "not modelled", ("struct entity", "load.inverse"): "derived"},
        noop={"wake": "no effect", "far_away": "no effect", "trace_it": "tracepoint"}, constants={"SPAN": 7})


Small.state.code_of = {"RUN": 100, "HALT": 101}
NOTHING = Vocabulary()


def programs(make_tree: MakeTree, code: str, name: str = "f") -> dict[str, s.Program]:
    return read(make_tree(HEAD + code), name, "kernel/sched/a.c", Config(), Small)


def text(e: s.Expr | None) -> str:
    """An expression in a short form for the tests."""
    match e:
        case None:
            return ""
        case s.Const():
            return str(e.value)
        case s.Local():
            return e.name
        case s.Load():
            return f"{e.var}[{text(e.index)}]"
        case s.Unary():
            return f"{e.op}({text(e.operand)})"
        case s.Binary():
            return f"({text(e.left)} {e.op} {text(e.right)})"
        case s.Cond():
            return f"({text(e.test)} ? {text(e.then)} : {text(e.other)})"
        case s.Cast():
            return f"<{e.ctype}>{text(e.operand)}"
        case s.Call():
            return f"{e.name}({', '.join(map(text, e.args))})"
        case s.Free():
            return f"free<{e.why}: {e.ctype}>"
    raise AssertionError(e)


def lines(body: tuple[s.Stmt, ...], indent: str = "") -> list[str]:
    out = []
    for x in body:
        match x:
            case s.Assign():
                out.append(f"{indent}{x.name} = {text(x.value)}")
            case s.Store():
                out.append(f"{indent}{x.var}[{text(x.index)}] := {text(x.value)}")
            case s.Do():
                out.append(indent + text(x.value))
            case s.Return():
                out.append(f"{indent}return {text(x.value)}".rstrip())
            case s.If():
                out += [f"{indent}if {text(x.test)}", *lines(x.then, indent + "  ")]
                if x.orelse:
                    out += [f"{indent}else", *lines(x.orelse, indent + "  ")]
            case s.While():
                out += [f"{indent}{'once' if x.test_last else 'while'} {text(x.test)}", *lines(x.body, indent + "  ")]
                if x.step:
                    out += [f"{indent}step", *lines(x.step, indent + "  ")]
            case _:
                out.append(indent + type(x).__name__.lower())
    return out


def lowered(make_tree: MakeTree, body: str, params: str = "struct entity *e, struct queue *q, int n",
            result: str = "long") -> list[str]:
    return lines(programs(make_tree, f"{result} f({params})\n{{\n{body}\n}}\n")["f"].body)


@pytest.mark.parametrize(("body", "expected"), [
    ("return e->load.weight;", ["return <long>weight[e]"]),
    ("return e->queue->group->shares == 3;", ["return <int>(shares[group_of[queue_of[e]]] == 3)"]),
    ("return e->on_queue;", ["return <unsigned int>queued[e]"]),
    ("return e->on_queue && n;", ["return <int>(queued[e] and (n != 0))"]),
    ("return !e->on_queue;", ["return <int>not(queued[e])"]),
    ("return !n;", ["return <int>(n == 0)"]),
    ("e->on_queue = n;", ["queued[e] := (<unsigned int>n != 0)"]),
    ("e->on_queue = 1;", ["queued[e] := True"]),
    ("e->on_queue = n > 3;", ["queued[e] := (<unsigned int><int>(n > 3) != 0)"]),
    ("e->load.weight += n;", ["weight[e] := (weight[e] + <unsigned long>n)"]),
    ("e->place.low = n;", ["low[e] := <u8>n"]),
    ("return e->place.low + e->place.depth;", ["return (low[e] + depth[e])"]),
    ("return e->flag;", ["return flag[e]"]),
    ("q->count++;", ["count[q] := (count[q] + 1)"]),
    ("return q->count++;", ["__tmp1 = count[q]", "count[q] := (__tmp1 + 1)", "return __tmp1"]),
    ("return q->count = n;", ["__tmp1 = n", "count[q] := __tmp1", "return __tmp1"]),
    ("return q->throttled > e->load.weight;", ["return <int>(<unsigned long>throttled[q] > weight[e])"]),
    ("return !e->owned || e->owned == q || q->current_entity != NULL;",
     ["return <int>(((owned[e] == -1) or (owned[e] == q)) or (current_entity[q] != -1))"]),
    ("if (e->owned) q->current_entity = e; else q->current_entity = NULL;",
     ["if (owned[e] != -1)", "  current_entity[q] := e", "else", "  current_entity[q] := -1"]),
    ("struct entity *x = q->current_entity ?: e; return x->place.depth;",
     ["__tmp1 = current_entity[q]", "x = ((__tmp1 != -1) ? __tmp1 : e)", "return depth[x]"]),
    ("return READ_ONCE(q->count);", ["return count[q]"]),
    ("WRITE_ONCE(q->count, n);", ["count[q] := n"]),
    ("return atomic_long_read(&q->group->total);", ["return total[group_of[q]]"]),
    ("return q->clock.now;", ["return <long>now[clock_of[q]]"]),
    ("struct clock *c = &q->clock; return c->now;", ["c = clock_of[q]", "return <long>now[c]"]),
    ("return q->world->cursor;", ["return cursor[]"]),
    ("q->world->cursor = 2;", ["cursor[] := 2"]),
    ("return e->state == HALTED;",
     ["return <int>(((state[e] == 100) ? 0 : 4) == 4)"]),
    ("e->state = HALTED;", ["state[e] := 101"]),
    ("return SPAN + WIDTH + RUNNING;", ["return 17"]),
    ("return e->lag;", ["return free<lag of struct entity: long>"]),
    ("e->avg.sum = n; e->load.inverse = 0;", []),
    ("e->avg.sum = e->avg.sum + n;", []),
    ("return e->avg.load_avg;", ["return <long>free<avg.load_avg of struct entity: unsigned long>"]),
    ("return static_key_false(&used) + n;", ["return (1 + n)"]),
    ("if (static_branch_unlikely(&used)) return 1; return no_such_thing;", None),
    ("if (sched_feat(FEATURE)) return no_such_thing(); return 1;", ["return 1"]),
    ("if (IS_ENABLED(CONFIG_NUMA)) no_such_thing(); return IS_ENABLED(CONFIG_SMP);", ["return 1"]),
    ("if (WARN_ON_ONCE(n > 3)) return 1; BUG_ON(n); return 0;", ["if (n > 3)", "  return 1", "return 0"]),
    ("barrier(); smp_mb(); lockdep_assert_held(&q->lock); wake(e); trace_it(e->nothing);", []),
    ("return far_away(3);", ["return free<result of far_away: long>"]),
    ("return (helper(q, n));", ["__tmp1 = helper(q, <u8>n)", "return __tmp1"]),
    ("helper(q, 300);", ["helper(q, 44)"]),
    ("return n && helper(q, 1);",
     ["__tmp2 = (n != 0)", "if __tmp2", "  __tmp1 = helper(q, 1)", "  __tmp2 = (__tmp1 != 0)", "return <int>__tmp2"]),
    ("return n || helper(q, 1);",
     ["__tmp2 = (n != 0)", "if not(__tmp2)", "  __tmp1 = helper(q, 1)", "  __tmp2 = (__tmp1 != 0)",
      "return <int>__tmp2"]),
    ("return q->count + helper(q, 1);",
     ["__tmp2 = count[q]", "__tmp1 = helper(q, 1)", "return (__tmp2 + __tmp1)"]),
    ("return n ? helper(q, 1) : q->count;",
     ["if (n != 0)", "  __tmp1 = helper(q, 1)", "  __tmp2 = __tmp1", "else", "  __tmp2 = count[q]", "return __tmp2"]),
    ("while (helper(q, 1)) n--;                /* n is never read */",
     ["while True", "  __tmp1 = helper(q, 1)", "  if (__tmp1 == 0)", "    break"]),
    ("for_each_up(e) q->count++; return 0;",
     ["while (e != -1)", "  count[q] := (count[q] + 1)", "step", "  __tmp1 = next_of(e)", "  e = __tmp1", "return 0"]),
    ("return min_t(unsigned long, n, q->count);",
     ["__tmp1 = <unsigned long>n", "__tmp2 = <unsigned long>count[q]",
      "return <long>((__tmp1 < __tmp2) ? __tmp1 : __tmp2)"]),
    ("do { if (n) break; q->count = 1; } while (0);",
     ["once False", "  if (n != 0)", "    break", "  count[q] := 1"]),
    ("do { q->count = 1; } while (0);", ["count[q] := 1"]),
    ("int x = xchg(&q->count, n); return cmpxchg(&q->throttled, x, 1);",
     ["__tmp1 = n", "__tmp2 = count[q]", "count[q] := __tmp1", "x = __tmp2", "__tmp4 = q", "__tmp3 = x",
      "__tmp5 = throttled[__tmp4]", "if (__tmp5 == __tmp3)", "  throttled[__tmp4] := 1", "return __tmp5"]),
])
def test_lowering(make_tree: MakeTree, body: str, expected: list[str] | None):
    if expected is None:
        with pytest.raises(NotExecutable):
            lowered(make_tree, body)
    else:
        assert lowered(make_tree, body) == expected


def test_program(make_tree: MakeTree):
    found = programs(make_tree, "\n/* words */\nstatic __always_inline\nbool f(const struct entity *e, u32 n, bool b)\n"
                                "{\n\treturn e->load.weight\n\t\t> n;\n}\n")["f"]
    first = HEAD.count("\n") + 4
    assert found.loc == s.Loc("kernel/sched/a.c", first) and found.language == "c" and found.kind == "kernel"
    assert found.params == ("e", "n", "b") and found.types == (pointer("struct entity"), UINT, BOOL)
    assert found.result == BOOL and found.source == "kernel/sched/a.c"
    returned = found.body[0]
    assert isinstance(returned, s.Return) and returned.loc.line == first + 2


def test_every_operation_carries_its_type(make_tree: MakeTree):
    found = programs(make_tree, "long f(int a, u32 b, long c)\n{\n\tc -= -a * b + (a >> 1);\n"
                                "\treturn ~c % (a | 1);\n}\n")
    for statement in s.statements(found["f"].body):
        for e in s.expressions(statement):
            if isinstance(e, (s.Binary, s.Unary)):
                assert e.ctype in (INT, UINT, LONG, ULONG)


def test_callees_are_read_too(make_tree: MakeTree):
    found = programs(make_tree, "static inline int g(struct queue *q, u8 x);\n"
                                "int f(struct entity *e, int n)\n{\n\treturn g(e->queue, n) + g(e->owned, 1);\n}\n"
                                "static inline int g(struct queue *q, u8 x)\n{\n\treturn q->count + x;\n}\n")
    assert list(found) == ["g", "f"] and found["g"].types == (pointer("struct queue"), s.CType("u8", 8, False))
    assert lines(found["f"].body) == ["__tmp1 = g(queue_of[e], <u8>n)", "__tmp2 = g(owned[e], 1)",
                                      "return (__tmp1 + __tmp2)"]


def test_pointers_into_objects_specialise_the_callee(make_tree: MakeTree):
    found = programs(make_tree, """
static inline void add(struct load *l, unsigned long by)
{
	l->weight += by;
	l->inverse = 0;
}
static inline void inc(int *count) { *count += 1; }
void f(struct entity *e, struct queue *q)
{
	struct load *mine = &e->load;
	add(&q->load, e->load.weight);
	add(mine, 1);
	mine->weight++;
	inc(&q->count);
}
""".replace("l->inverse = 0;", ""))
    assert set(found) == {"f", "add@struct queue.load", "add@struct entity.load", "inc@struct queue.count"}
    assert lines(found["add@struct queue.load"].body) == ["load[l] := (load[l] + by)"]
    assert lines(found["add@struct entity.load"].body) == ["weight[l] := (weight[l] + by)"]
    assert lines(found["inc@struct queue.count"].body) == ["count[count] := (count[count] + 1)"]
    assert found["add@struct queue.load"].types == (pointer("struct queue"), ULONG)
    assert lines(found["f"].body)[-2:] == ["weight[__tmp1] := (weight[__tmp1] + 1)", "inc@struct queue.count(q)"]


def test_types_depend_on_the_tree(make_tree: MakeTree):
    code = "int f(struct queue *q)\n{\n\treturn q->throttled > 3000000000U;\n}\n"
    body = programs(make_tree, code)["f"].body
    assert lines(body) == ["return <int>(<unsigned int>throttled[q] > 3000000000)"]
    wide = read(make_tree(HEAD + code), "f", "kernel/sched/a.c", Config({"CONFIG_NEVER": "y"}), Small)["f"]
    assert lines(wide.body) == ["return <int>(throttled[q] > 3000000000)"]


def test_headers_and_other_files(make_tree: MakeTree):
    tree = make_tree({
        "kernel/sched/a.c": '#include "local.h"\n#include <linux/list.h>\n'
                            "int f(int x) { return g(x) + h(x) + far(x); }\n",
        "kernel/sched/local.h": "#ifndef L\n#define L\nstatic inline int g(int x) { return x + STEP; }\n#endif\n",
        "include/linux/list.h": "#define STEP 3\n#define h(x) ((x) * 2)\nint far(int x);\n",
        "kernel/sched/other.c": "int far(int x)\n{\n\treturn x;\n}\nstatic int g(int x)\n{\n\treturn 9;\n}\n"})
    found = read(tree, "f", "kernel/sched/a.c")
    assert set(found) == {"f", "g", "far"} and found["g"].loc.file == "kernel/sched/local.h"
    assert found["far"].loc == s.Loc("kernel/sched/other.c", 1)
    assert lines(found["g"].body) == ["return (x + 3)"]
    assert set(read(tree, "f", "kernel/sched/none.c")) == {"f", "g", "far"}


def test_branches_of_the_configuration(make_tree: MakeTree):
    code = ("#ifdef CONFIG_SMP\nint f(int x)\n{\n#if defined(CONFIG_NUMA) || !defined(CONFIG_64BIT)\n\treturn 1;\n"
            "#else\n\treturn 2;\n#endif\n}\n#else\nint f(int x) { return 3; }\n#endif\n#ifdef CONFIG_OTHER\n#endif\n")
    config = Config()
    found = read(make_tree(code), "f", "kernel/sched/a.c", config)["f"]
    assert lines(found.body) == ["return 2"] and found.body[0].loc.line == 7
    assert config.consulted == {"CONFIG_SMP", "CONFIG_NUMA", "CONFIG_64BIT"}
    assert "NUMA" not in config.shown() and config.shown().endswith(", all others n") and "OTHER" not in config.shown()
    assert lines(read(make_tree(code), "f", "kernel/sched/a.c", Config({"CONFIG_X": "y"}))["f"].body) == ["return 3"]


def test_weak_and_default_definitions_give_way(make_tree: MakeTree):
    tree = make_tree({
        "kernel/sched/a.c": '#include "b.h"\n#include "c.h"\n#ifndef LIMIT\n#define LIMIT 3\n#endif\n'
                            "int __weak g(int x) { return 1; }\nint f(int x) { return g(x) + LIMIT; }\n",
        "kernel/sched/b.h": "static inline int g(int x) { return 2; }\n", "kernel/sched/c.h": "#define OTHER 5\n"})
    assert lines(read(tree, "f", "kernel/sched/a.c")["f"].body) == ["__tmp1 = g(x)", "return (__tmp1 + 3)"]


def test_strong_definition_of_another_file_wins(make_tree: MakeTree):
    files = {"kernel/sched/a.c": "int __weak g(int x) { return 1; }\nint f(int x) { return g(x); }\n",
             "kernel/sched/b.c": "static int g(int x) { return 2; }\n",
             "arch/x86/kvm/c.c": "int g(int x)\n{\n\treturn 3;\n}\n"}
    assert lines(read(make_tree(files), "f", "kernel/sched/a.c")["g"].body) == ["return 3"]
    files["arch/x86/kvm/d.c"] = files["arch/x86/kvm/c.c"]
    with pytest.raises(NotExecutable, match="a second definition"):
        read(make_tree(files), "f", "kernel/sched/a.c")


def test_dead_sides_are_not_read(make_tree: MakeTree):
    body = "if (IS_ENABLED(CONFIG_NO) && none(n)) return 1; return IS_ENABLED(CONFIG_SMP) || none();"
    assert lowered(make_tree, body) == ["return 1"]
    assert lowered(make_tree, "return CONFIG_HZ;") == ["return 1000"]


@pytest.mark.parametrize(("code", "message"), [
    ("int f(int x) { return y; }", "a.c:{0}: cannot execute global variable or unknown name y"),
    ("int f(int x)\n{\n\treturn none(x);\n}", "a.c:{2}: cannot execute call of none: no definition"),
    ("int f(struct entity *e) { return e->unknown; }", "field unknown of struct entity"),
    ("int f(struct queue *q) { return q->load.inverse; }", "field load.inverse of struct queue"),
    ("int f(struct queue *q) { return q->avg.sum; }", "field avg.sum of struct queue"),
    ("int f(struct queue *q) { return q->box->size; }", "field box of struct queue"),
    ("int f(struct box *b) { return b->size; }", "field size of struct box: the model has no such object"),
    ("void f(struct queue *q) { q->group->total = 1; }", "write to field total of struct group"),
    ("void f(struct entity *e, struct queue *q) { e->owned = q; }", "write to field owned of struct entity"),
    ("void f(struct queue *q) { helper(q->box, 1); }", "field box of struct queue"),
    ("void f(struct box *b) { helper(b, 1); }", "a pointer to struct box used as one to struct queue"),
    ("int f(struct queue *q) { return helper(q); }", "call of helper with 1 arguments instead of 2"),
    ("int f(struct queue *q) { return q + 1; }", "arithmetic on a pointer"),
    ("int f(struct queue *q) { return q == 3; }", "a comparison of a pointer and a number"),
    ("int f(struct queue *q, struct entity *e) { return q < q; }", "the order of two pointers"),
    ("int f(struct queue *q, struct entity *e) { return q == e; }", "a comparison of a"),
    ("int f(int x) { return f(x - 1); }", "recursion of f"),
    ("int g(int x);\nint f(int x) { return g(x); }\nint g(int x) { return f(x); }", "recursion of f"),
    ("int f(struct entity *e) { e->call(3); return 1; }", "call through a pointer"),
    ("int f(struct entity *e) { return container_of(e, struct queue, x)->count; }", "container_of"),
    ("int f(int x) { static int y; return y; }", "static local"),
    ("int f(int x) { int y[3]; return y[x]; }", "subscript expression|use of y"),
    ("int f(struct queue *q) { struct box b; return helper(&b, 1); }", "use of b, a struct"),
    ("int f(int x) { return sizeof(struct box); }", "sizeof expression"),
    ("int f(int x) { asm volatile(\"nop\"); return x; }", "asm"),
    ("int f(int x) { return x + 1.5; }", "number 1.5"),
    ("int f(int x) { if (x) { in: x++; } goto in; return x; }", "goto in, into a block"),
    ("int f(int x) { return static_key_true(&other); }", "static key other, which the model does not declare"),
    ("int f(int x) { return per_cpu(x, 3); }", "per-CPU variable"),
    ("int f(int x) { return &x; }", "address of the local x"),
    ("int f(int x) { return x +; }", "a.c:{0}: cannot execute f: not C that can be parsed"),
    ("int f(int x) { if (x { return 1; }", "not C that can be parsed|no definition"),
    ("int f(int x, ...) { return x; }", "variable arguments"),
    ("struct box f(int x) { struct box b; return b; }", "result of f"),
    ("int f(int x) { return x; }\nint f(int y) { return y; }", "a second definition is live"),
    ("int f(int x)\n{\n#if MACHINE(3)\n\tx++;\n#endif\n\treturn x;\n}", "a.c:{2}: cannot execute #if MACHINE"),
    ("#if UNKNOWN > 3\nint f(int x)\n{\n\treturn x;\n}\n#endif", "a.c:{0}: cannot execute #if UNKNOWN > 3"),
    ("int f(struct entity *e) { e->state = e->place.depth; return 1; }", "write of a computed value"),
    ("int f(struct entity *e) { e->state = 2; return 1; }", "which the model has no name for"),
    ("#define LOOP(x) LOOP2(x, x)\nint f(int x) { return LOOP(); }", "call of LOOP2|arguments|not C"),
])
def test_what_is_refused_is_named(make_tree: MakeTree, code: str, message: str):
    first = HEAD.count("\n") + 1
    with pytest.raises(SchedproofError) as caught:
        programs(make_tree, code + "\n")
    wanted = re.sub(r"\{(\d)\}", lambda m: str(first + int(m[1])), message)
    assert any(part in str(caught.value) for part in wanted.split("|")), str(caught.value)
    assert "\n" not in str(caught.value)


def test_absent(make_tree: MakeTree):
    with pytest.raises(Absent, match="none: no definition"):
        programs(make_tree, "int g(void);\nint g(void);\n", "none")
    with pytest.raises(Absent):
        programs(make_tree, "int f(void);\n")


# --------------------------------------------------------------------------------- more of the kernel's idiom
VCPUS = """
typedef struct { int counter; } atomic_t;
struct lock { u8 locked; };
struct node { struct lock lock; int state; };
struct notifier { int x; };
struct kvm_vcpu { struct kvm *kvm; int vcpu_idx; int ready; struct notifier notifier; struct notifier other; };
struct kvm { atomic_t online_vcpus; struct xarray vcpu_array; };
extern unsigned long volatile jiffies;
int sysctl_a = 3, sysctl_b;
static inline struct kvm_vcpu *get_current(void);
#define current get_current()
#define kvm_for_each_vcpu(i, v, kvm) xa_for_each_range(&kvm->vcpu_array, i, v, 0, 3)
void pv_wait(int *state, int value);
"""


class Machine:
    vcpu = Object("struct kvm_vcpu", "v0", "v1", "v2")
    node = Object("struct node", "n0")
    ready = Bool(per=vcpu, c="ready")
    online = Constant(3, c="struct kvm.online_vcpus")
    now = Int(c="jiffies")
    setting = Constant(5, c="sysctl_b")
    locked = Bool(per=node, c="lock.locked")
    state = Int(per=node, c="state")
    vocabulary = Vocabulary(callees={"current": "who runs", "pv_wait@struct node.state": "halts"},
                            ignore={("", "sysctl_a"): "a setting"}, constants={"llc_size": 4})


@pytest.mark.parametrize(("code", "expected"), [
    ("void f(struct kvm *kvm) { struct kvm_vcpu *v; unsigned long i; kvm_for_each_vcpu(i, v, kvm) v->ready = 0; }",
     ["i = 0", "while True", "  __tmp1 = (i < <unsigned long>online[])", "  if __tmp1", "    v = <long>i",
      "    __tmp1 = True", "  if not(__tmp1)", "    break", "  ready[v] := False", "step", "  i = (i + 1)"]),
    ("int f(struct kvm_vcpu *v) { return v->vcpu_idx; }", ["return v"]),
    ("int f(struct kvm_vcpu *v, u8 i) { struct kvm_vcpu *x = xa_load(&v->kvm->vcpu_array, i); return !x; }",
     ["x = ((i < <unsigned long>online[]) ? i : -1)", "return <int>(x == -1)"]),
    ("int f(void) { return current->ready; }", ["__tmp1 = current()", "return <int>ready[__tmp1]"]),
    ("unsigned long f(void) { return jiffies++; }", ["__tmp1 = now[]", "now[] := (__tmp1 + 1)", "return __tmp1"]),
    ("int f(void) { return sysctl_a + sysctl_b; }", ["return (free<sysctl_a of : int> + setting[])"]),
    ("int f(void) { return __this_cpu_read(llc_size); }", ["return 4"]),
    ("int f(struct notifier *n) { return container_of(n, struct kvm_vcpu, notifier)->ready; }",
     ["return <int>ready[n]"]),
    ("static struct kvm_vcpu *g(struct notifier *n) { return container_of(n, struct kvm_vcpu, notifier); }\n"
     "int f(struct kvm_vcpu *v) { return g(&v->notifier) == v; }",
     ["__tmp1 = g@struct kvm_vcpu.notifier(v)", "return <int>(__tmp1 == v)"]),
    ("static int *g(struct node *n) { return n ? &n->state : NULL; }\nint f(struct node *n) { return 1; }",
     ["return 1"]),
    ("static int *g(struct node *n) { return &n->state; }\nvoid f(struct node *n) { *g(n) = 3; }",
     ["__tmp1 = g(n)", "state[__tmp1] := 3"]),
    ("int f(struct lock *l) { struct node *n = (struct node *)l; return l->locked + n->state; }",
     ["n = l", "return (<u8>locked[l] + state[n])"]),
    ("void f(struct node *n) { pv_wait(&n->state, 3); }", ["pv_wait(n, 3)"]),
    ("bool f(struct node *n) { int old = 1; return try_cmpxchg(&n->state, &old, 2) && old == 1; }",
     ["old = 1", "__tmp1 = state[n]", "__tmp2 = (__tmp1 == old)", "if __tmp2", "  state[n] := 2", "else",
      "  old = __tmp1", "return (__tmp2 and (old == 1))"]),
    ("int f(u32 i) { return array_index_nospec(i, 4); }", ["return <int>((i < 4) ? i : 0)"]),
])
def test_more_idiom(make_tree: MakeTree, code: str, expected: list[str]):
    found = read(make_tree(VCPUS + code + "\n"), "f", "kernel/sched/a.c", Config(), Machine)
    assert lines(found["f"].body) == expected


@pytest.mark.parametrize(("code", "message"), [
    ("int f(struct kvm_vcpu *v) { return container_of(&v->other, struct kvm_vcpu, notifier)->ready; }", "container_of"),
    ("int f(struct node *n) { return container_of(n, struct kvm_vcpu, notifier)->ready; }", "container_of"),
    ("int f(struct kvm_vcpu *v) { return ((struct node *)v)->state; }", "a pointer to struct kvm_vcpu used as one"),
    ("void f(struct node *n) { pv_wait(&n->lock, 3); }", "a pointer to struct lock used as one to int"),
    ("int f(struct kvm *kvm) { return xa_load(&kvm->other, 1) == 0; }", "field other|xarray"),
    ("int f(void) { return __this_cpu_read(other); }", "per-CPU variable"),
    ("int f(void) { return sysctl_c; }", "global variable or unknown name sysctl_c"),
])
def test_more_idiom_refused(make_tree: MakeTree, code: str, message: str):
    with pytest.raises(NotExecutable) as caught:
        read(make_tree(VCPUS + code + "\n"), "f", "kernel/sched/a.c", Config(), Machine)
    assert any(part in str(caught.value) for part in message.split("|")), str(caught.value)


def test_conditions_on_macros_of_headers(make_tree: MakeTree):
    files = {"kernel/sched/a.c": '#include "limits.h"\n#include "other.h"\n#if SIZE > 3\n'
                                 "int f(int x) { return LOW; }\n#else\nint f(int x) { return 9; }\n#endif\n",
             "kernel/sched/limits.h": "#define SIZE 4\n#define HAVE_LOW\n",
             "kernel/sched/other.h": '#include "limits.h"\n#ifdef HAVE_LOW\n#define LOW 1\n#else\n'
                                     "#define LOW 2\n#endif\n"}
    assert lines(read(make_tree(files), "f", "kernel/sched/a.c")["f"].body) == ["return 1"]
    files["kernel/sched/other.h"] = files["kernel/sched/other.h"].replace('#include "limits.h"\n', "")
    with pytest.raises(NotExecutable, match="#if on HAVE_LOW, which kernel/sched/limits.h defines"):
        read(make_tree(files), "f", "kernel/sched/a.c")


DEEP = 30_000


@pytest.mark.parametrize("code", [
    "int f(int x) { return " + "(" * DEEP + "x" + ")" * DEEP + "; }",
    "int f(int x) { return " + "!" * DEEP + "x; }",
    "int f(int x) { return x" + " + x" * DEEP + "; }",
    "int f(int x) {" + "{" * DEEP + "}" * DEEP + " return x; }",
    "int f(int x) { " + "if (x) " * DEEP + "x++; return x; }",
    "int f(int x) { if (x) return 1; " + "else if (x) return 1; " * DEEP + "return x; }",
    "#define A0(x) ((x) + (x))\n" + "".join(f"#define A{i + 1}(x) A{i}(A{i}(x))\n" for i in range(40))
    + "int f(int x) { return A40(x); }",
    "".join(f"#define B{i} B{i + 1}\n" for i in range(3000)) + "int f(int x) { return B0; }",
    "".join(f"int g{i}(int x) {{ return g{i + 1}(x); }}\n" for i in range(300)) + "int f(int x) { return g0(x); }",
    "enum { " + ", ".join(f"E{i}" for i in range(5000)) + " };\nint f(int x) { return E4999 + no; }",
])
def test_depth_is_an_error_with_a_place(make_tree: MakeTree, code: str):
    with pytest.raises(SchedproofError) as caught:
        programs(make_tree, code + "\n")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_nothing_is_executed(make_tree: MakeTree):
    tree = make_tree({"kernel/sched/a.c": "int f(int x) { return x; }\n", "conftest.py": "raise SystemExit\n",
                      "schedproof/__init__.py": "raise SystemExit\n", "sitecustomize.py": "raise SystemExit\n"})
    assert lines(read(tree, "f", "kernel/sched/a.c")["f"].body) == ["return x"]


def test_fields_of():
    fields = fields_of(Small)
    assert fields["struct entity", "load.weight"] == ("weight", Small.weight)
    assert fields["struct world", "cursor"] == ("cursor", Small.cursor)
    assert fields_of(Small()) == fields

    class Below(Small):
        weight = Range(0, 3, per=Small.entity, c="load.weight")

    assert fields_of(Below)["struct entity", "load.weight"] == ("weight", Below.weight)
    assert universes_of(Small)["struct world"] == "" and universes_of(Small)["struct group"] == "group"
    assert Vocabulary(ignore={("s", "a.b"): ""}).ignored("s", "a.b.c") == "a.b"
    assert Vocabulary(ignore={("s", "a.b"): ""}).ignored("s", "a.bc") is None
