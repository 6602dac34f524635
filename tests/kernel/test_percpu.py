# SPDX-License-Identifier: GPL-2.0-only
"""Per-CPU variables, the running CPU and task, members that stand for their object, list heads, bits, static calls."""

from __future__ import annotations

import pytest

from schedproof.errors import NotExecutable
from schedproof.kernel import Config, Vocabulary, read
from schedproof.kernel.compare import Side, compare
from schedproof.lang.ctypes import BOOL, pointer
from schedproof.model import Bool, Link, Model, Object, Pointer, Range, environment
from tests.kernel.smallc import loads, played, stores

FILE = "kernel/sched/a.c"
HEAD = """\
struct list_head { struct list_head *next, *prev; };
struct task_struct { unsigned int hits; };
struct rq { int cpu; unsigned int nr; };
struct hook { int x; };
struct guest { struct task_struct *t; struct hook hook; struct list_head done; u64 bits; int ready; };
DECLARE_PER_CPU_SHARED_ALIGNED(struct rq, runqueues);
DEFINE_PER_CPU(int, size);
static DEFINE_PER_CPU(struct guest *, running);
static DEFINE_PER_CPU(unsigned long, unknown);
int lucky(int n);
#define cpu_rq(cpu) (&per_cpu(runqueues, (cpu)))
#define this_rq() this_cpu_ptr(&runqueues)
#define current get_current()
"""


class Small(Model):
    """Two of each."""

    task = Object("struct task_struct", "t0", "t1")
    cpu = Object("struct rq", "c0", "c1")
    guest = Object("struct guest", "g0", "g1")
    owner = Link(guest, task, {"g0": "t0", "g1": "t1"}, c="t")
    this_cpu = Pointer(cpu, null=False, init="c0", c="smp_processor_id")
    current = Pointer(task, null=False, init="t0", c="current")
    hits = Range(0, 9, per=task, init=0, c="hits")
    nr = Range(0, 9, per=cpu, init=0, c="nr")
    size = Range(0, 9, per=cpu, init=0, c="per_cpu(size)")
    running = Pointer(guest, per=cpu, c="per_cpu(running)")
    waiting = Bool(per=guest, c="done")
    bits = Range(0, 9, per=guest, init=0, c="bits")
    ready = Range(0, 9, per=guest, init=0, c="ready")
    releases = {"v1": {}}
    vocabulary = Vocabulary(callees={"patched": "outside"}, constants={"lucky": 7})

    @environment
    def patched(self, guest):
        return 1


def lowered(make_tree, text: str, name: str = "f", model: type = Small):
    return read(make_tree({FILE: HEAD + text}), name, FILE, Config(), model)


def run(make_tree, text: str, args: list[int | str], **given: int | bool | str):
    state = {k.replace("__", "[") + "]" if "__" in k else k: v for k, v in given.items()}
    side = Side("f", {**Small.programs, **lowered(make_tree, text)})
    return played(Small.variant("v1"), side, state, args)


def test_a_per_cpu_variable_is_a_field_of_its_cpu(make_tree):
    text = ("int f(int cpu)\n{\n\tint a = __this_cpu_read(size), b = per_cpu(size, cpu);\n\n"
            "\tthis_cpu_write(size, a + b);\n\tper_cpu(size, cpu) = b + 1;\n\tthis_cpu_inc(size);\n"
            "\t*per_cpu_ptr(&size, cpu) += 2;\n\treturn 10 * a + b;\n}\n")
    value, after = run(make_tree, text, [1], this_cpu="c0", size__c0=3, size__c1=4)
    assert (value, after["size[c0]"], after["size[c1]"]) == (34, 8, 7)
    value, after = run(make_tree, text, [1], this_cpu="c1", size__c0=3, size__c1=4)
    assert (value, after["size[c0]"], after["size[c1]"]) == (44, 3, 8)


def test_a_runqueue_is_its_cpu(make_tree):
    text = ("int f(int cpu)\n{\n\tstruct rq *rq = cpu_rq(cpu);\n\n\tthis_rq()->nr++;\n\trq->nr += 2;\n"
            "\treturn rq->cpu + 10 * smp_processor_id() + 100 * (rq == this_rq());\n}\n")
    value, after = run(make_tree, text, [1], this_cpu="c0")
    assert (value, after["nr[c0]"], after["nr[c1]"]) == (1, 1, 2)
    value, after = run(make_tree, text, [1], this_cpu="c1")
    assert (value, after["nr[c0]"], after["nr[c1]"]) == (111, 0, 3)


def test_the_running_task_and_pointers_of_a_cpu(make_tree):
    text = ("int f(struct guest *g)\n{\n\tcurrent->hits++;\n\t__this_cpu_write(running, g);\n"
            "\treturn g->t == current && per_cpu(running, 1) == g;\n}\n")
    value, after = run(make_tree, text, ["g1"], current="t1", this_cpu="c1", running__c0="NULL")
    assert (value, after["hits[t0]"], after["hits[t1]"], after["running[c1]"]) == (1, 0, 1, 1)


@pytest.mark.parametrize(("body", "why"), [
    ("return this_cpu_read(unknown);", "field per_cpu(unknown) of struct rq"),
    ("this_cpu_write(unknown, 1); return 0;", "field per_cpu(unknown) of struct rq"),
    ("return per_cpu(nowhere, 0);", "per-CPU variable nowhere, which the tree does not declare"),
    ("return *this_cpu_ptr(given);", "per-CPU memory that is no variable"),
    ("return this_cpu_read(table[1]);", "per-CPU variable"),
    ("return static_call(other)(given);", "static call other, which the model does not declare"),
    ("return test_bit(1, &given->ready);", "bit of what is no long word"),
    ("return list_empty(&given->hook);", "list: "),
    ("return given->done.next == 0;", "done.next")])
def test_what_is_not_declared_is_refused_with_its_place(make_tree, body: str, why: str):
    with pytest.raises(NotExecutable) as caught:
        lowered(make_tree, f"int f(struct guest *given)\n{{\n\t{body}\n}}\n")
    assert why in caught.value.construct and caught.value.file == FILE
    assert caught.value.line == HEAD.count("\n") + 3


def test_without_cpus_there_are_no_per_cpu_variables(make_tree):
    class Lonely(Model):
        """No CPU at all."""

        task = Object("struct task_struct", "t0")
        hits = Range(0, 9, per=task, init=0, c="hits")
        releases = {"v1": {}}
    for body in ("return this_cpu_read(size);", "return per_cpu(size, 0);", "return smp_processor_id();"):
        with pytest.raises(NotExecutable, match="the model"):
            lowered(make_tree, f"int f(void)\n{{\n\t{body}\n}}\n", model=Lonely)


HOOK = """\
static struct guest *to_guest(struct hook *h)
{
	return container_of(h, struct guest, hook);
}
"""


def test_a_member_from_outside_is_its_object(make_tree):
    """What container_of() says of a parameter goes for the functions that pass it on, too."""
    found = lowered(make_tree, HOOK + "void f(struct hook *h, int n)\n{\n\tto_guest(h)->ready = n;\n}\n")
    assert found["f"].types[0] == found["to_guest"].types[0] == pointer("struct guest")
    side = Side("f", found)
    assert compare(Small.variant("v1"), side, side).answer == "equal"
    _, after = run(make_tree, HOOK + "void f(struct hook *h, int n)\n{\n\tto_guest(h)->ready = n;\n}\n", ["g1", 5])
    assert (after["ready[g0]"], after["ready[g1]"]) == (0, 5)


def test_a_parameter_that_is_set_says_nothing_of_its_caller(make_tree):
    text = HOOK + "void f(struct hook *h, struct hook *o)\n{\n\th = o;\n\tto_guest(h)->ready = 1;\n}\n"
    found = lowered(make_tree, text)
    assert found["f"].types[0] == pointer("struct hook")
    side = Side("f", found)
    assert compare(Small.variant("v1"), side, side).answer == "unknown"


def test_lists_and_bits(make_tree):
    text = ("bool f(struct guest *g, int nr)\n{\n\tif (!list_empty_careful(&g->done))\n"
            "\t\tset_bit(nr, (void *)&g->bits);\n\telse\n\t\tclear_bit(0, &g->bits);\n"
            "\treturn test_bit(nr & GENMASK(5, 0), &g->bits);\n}\n")
    value, after = run(make_tree, text, ["g0", 3], waiting__g0=True, bits__g0=1)
    assert (value, after["bits[g0]"]) == (1, 9)
    value, after = run(make_tree, text, ["g0", 63], waiting__g0=True)
    assert (value, after["bits[g0]"]) == (1, 1 << 63)
    value, after = run(make_tree, text, ["g0", 1], bits__g0=5)
    assert (value, after["bits[g0]"]) == (0, 4)
    program = lowered(make_tree, text)["f"]
    assert program.result == BOOL and loads(program) == {"waiting", "bits"} and stores(program) == {"bits"}


def test_a_function_that_is_held_constant(make_tree):
    """Its arguments are evaluated for what they do."""
    value, after = run(make_tree, "int f(struct guest *g)\n{\n\treturn lucky(g->ready++) + lucky(1);\n}\n", ["g0"])
    assert (value, after["ready[g0]"]) == (14, 1)
