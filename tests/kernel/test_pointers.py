# SPDX-License-Identifier: GPL-2.0-only
"""Pointers to pointers, locals that point into objects, results that may be NULL, and members that share bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from schedproof.errors import ModelError
from schedproof.kernel import Tree
from schedproof.kernel.compare import Comparison, Side, compare
from schedproof.kernel.functions import Read, read_function
from schedproof.model import NULL, Model, Object, Pointer, Range, Vocabulary, environment
from tests.kernel.smallc import Ran, ran

FILE = "kernel/locking/small.c"
HEAD = """\
struct word {
	union {
		atomic_t val;
		struct {
			u8 low;
			u8 high;
		};
		struct {
			u16 both;
			u16 rest;
		};
	};
	int count;
};
struct slot {
	struct word *word;
	struct word *spare;
	int uses;
	int noise;
};
struct word **find(struct word *w);
void wait(u8 *byte, u8 value);
void other(struct word *w);
"""


class Slots(Model):
    word = Object("struct word", "w0", "w1")
    slot = Object("struct slot", "s0", "s1")
    low = Range(0, 255, per=word, c="low", init=0)
    high = Range(0, 255, per=word, c="high", init=0)
    rest = Range(0, 65535, per=word, c="rest", init=0)
    count = Range(-9, 9, per=word, c="count", init=0)
    held = Pointer(word, per=slot, c="word")
    spare = Pointer(word, per=slot, c="spare")
    uses = Range(-9, 9, per=slot, c="uses", init=0)
    releases = {"v1": {}}
    functions = {"f": FILE}
    vocabulary = Vocabulary(
        callees={"find": "a search", "wait@struct word.low": "halts", "wait@struct word.high": "halts",
                 "other": "outside"},
        methods={"wait@struct word.low": "wait_low", "wait@struct word.high": "wait_high"},
        results={"find": "struct slot.word"}, ignore={("struct slot", "noise"): "noise"})

    @environment
    def find(self, w):
        for s in self.slot:
            if self.held[s] == w:
                return s
        return NULL

    @environment
    def wait_low(self, w, value):
        self.low[w] = value

    @environment
    def wait_high(self, w, value):
        self.high[w] = value

    @environment
    def other(self, w):
        self.count[w] = 1


Make = Callable[..., Tree]
ARGS = "struct word *w, struct slot *s, int n"


def reading(make_tree: Make, body: str, before: str = "", model: type[Model] = Slots, head: str = HEAD) -> Read:
    text = f"{head}{before}static long f({ARGS})\n{{\n\t{body}\n}}\n"
    return read_function(make_tree({FILE: text}), "f", FILE, model)


def side(make_tree: Make, body: str, before: str = "") -> Side:
    found = reading(make_tree, body, before)
    assert found.status == "read", found.reason
    return Side("f", {**Slots.programs, **found.programs})


def runs(make_tree: Make, body: str, before: str = "", **given: int) -> Ran:
    """One run on w0 and s0, with the model's own callees as they are."""
    from schedproof.lang.interpret import Interpreter, Oracle
    from schedproof.lang.world import Key
    instance = Slots.variant("v1")
    world = instance.with_programs(dict(side(make_tree, body, before).programs)).world
    memory: dict[Key, int | bool] = {key: -1 if name in ("held", "spare") else 0
                                     for name in world.variables for key in world.keys(name)}
    for name, value in given.items():
        base, _, index = name.partition("_")
        memory[base, int(index or 0)] = value
    try:
        done = Interpreter(world, memory, Oracle()).run("f", [0, 0, given.get("n", 0)])
    except ModelError:
        return Ran(fault=True)
    return Ran(False, done.value, done.memory)


def refused(make_tree: Make, body: str, reason: str, before: str = "", model: type[Model] = Slots) -> None:
    found = reading(make_tree, body, before, model)
    assert found.status == "not_executable" and reason in found.reason, found
    assert found.reason.startswith(f"{FILE}:") and not found.reason.startswith(f"{FILE}:0:")


def same(make_tree: Make, one: str, other: str, before: str = "") -> Comparison:
    left = side(make_tree, one, before)
    return compare(Slots.variant("v1"), left, side(make_tree, other, before))


LP = "struct word **lp = NULL; "


# ------------------------------------------------------------------------------------- pointers to pointers
def test_a_pointer_to_a_pointer_is_followed(make_tree):
    body = LP + "if (n) lp = &s->word; if (!lp) return 7; if (*lp == w) *lp = NULL; return READ_ONCE(*lp) == NULL;"
    assert runs(make_tree, body, n=0, held_0=0).value == 7
    found = runs(make_tree, body, n=1, held_0=0)
    assert found.value == 1 and found.memory["held", 0] == -1
    found = runs(make_tree, body, n=1, held_0=1)
    assert found.value == 0 and found.memory["held", 0] == 1


def test_a_result_that_points_into_an_object(make_tree):
    body = "struct word **lp = find(w); if (!lp) return 7; WRITE_ONCE(*lp, NULL); return 1;"
    assert runs(make_tree, body).value == 7
    found = runs(make_tree, body, held_1=0)
    assert found.value == 1 and found.memory["held", 1] == -1 and found.memory["held", 0] == -1
    assert runs(make_tree, "struct word **lp = find(w); WRITE_ONCE(*lp, NULL); return 1;").fault


def test_a_number_as_a_pointer_is_neither_null_nor_an_object(make_tree):
    body = LP + "if (n == 1) lp = (struct word **)1; else if (n == 2) lp = (struct word **)0; else lp = find(w); {}"
    for n, expected in ((1, 1), (2, 0), (3, 1)):
        assert runs(make_tree, body.format("return lp ? 1 : 0;"), n=n, held_1=0).value == expected
        assert runs(make_tree, body.format("return lp == (struct word **)1;"), n=n, held_1=0).value == (n == 1)
    assert runs(make_tree, body.format("*lp = w; return 0;"), n=1, held_1=0).fault
    refused(make_tree, "struct word **lp = (struct word **)(long)n; return 0;", "a number used as a pointer")
    refused(make_tree, LP + "lp = 1; return 0;", "a number used as a pointer")
    refused(make_tree, "struct word **lp = (struct word **)4096; return 0;", "a number used as a pointer")


def test_the_address_of_a_member_of_null_does_not_pass_for_null(make_tree):
    """Not for a fault either: it is one."""
    before = "static struct slot *none(struct slot *s, int n)\n{\n\treturn n ? s : NULL;\n}\n"
    body = "struct word **lp = &none(s, n)->word; return lp ? 1 : 2;"
    assert runs(make_tree, body, before, n=1).value == 1
    assert runs(make_tree, body, before, n=0).fault


def test_exchanges_of_pointers(make_tree):
    body = "return cmpxchg(&s->word, NULL, w) == NULL;"
    found = runs(make_tree, body)
    assert found.value == 1 and found.memory["held", 0] == 0
    found = runs(make_tree, body, held_0=1)
    assert found.value == 0 and found.memory["held", 0] == 1
    body = "struct word *old = NULL; if (try_cmpxchg(&s->word, &old, w)) return 1; return old == w ? 2 : 3;"
    assert [runs(make_tree, body, held_0=h).value for h in (-1, 0, 1)] == [1, 2, 3]


@pytest.mark.parametrize(("body", "reason"), [
    (LP + "lp = &s->word; if (n) lp = &s->spare; return 0;",
     "lp, a pointer to word of struct slot, set to one to spare of struct slot"),
    (LP + "while (n) { if (lp) *lp = w; lp = &s->word; } return 0;", "struct word *: the model has no such object"),
    (LP + "lp = find(w); lp++; return 0;", "arithmetic on a pointer"),
    (LP + "lp = find(w); return lp[0] == w;", "element of the local lp"),
    ("struct word *p = w; struct word **lp = &p; return *lp == w;", "address of the local p"),
    ("struct word ***lll = NULL; return lll == NULL;", "use of lll"),
    ("int **ip = NULL; return ip == NULL;", "use of ip"),
    (LP + "lp = &s->word; return lp == &s->spare;", "a comparison of a"),
    (LP + "lp = find(w); other(lp); return 0;", "used as one to struct word"),
    ("struct slot *lp = find(w); return 0;", "used as one to struct slot"),
])
def test_what_is_refused(make_tree, body, reason):
    refused(make_tree, body, reason)


def test_a_result_of_another_type_than_its_member_is_refused(make_tree):
    class Wrong(Slots):
        vocabulary = Vocabulary(callees={"find": "a search"}, results={"find": "struct slot.uses"})
    refused(make_tree, "struct word **lp = find(w); return 0;", "uses of struct slot has the address of a int *",
            model=Wrong)


def test_a_pointer_that_may_be_null_is_no_argument_of_a_function_that_is_read(make_tree):
    refused(make_tree, LP + "lp = find(w); return g(lp);",
            "pointer to word of struct slot, or NULL, as an argument of g",
            "static int g(struct word **lp)\n{\n\treturn lp ? 1 : 0;\n}\n")


def test_a_parameter_never_becomes_a_pointer_into_an_object(make_tree):
    """What it points to at first is the caller's."""
    refused(make_tree, "return g(NULL, s, n);", "word, a pointer to nothing in the model, set to one to uses",
            "static int g(int *word, struct slot *s, int n)\n{\n\tif (n)\n\t\tword = &s->uses;\n\treturn 0;\n}\n")


# ------------------------------------------------------------------------- results that point into objects
def test_a_result_that_is_null_on_one_path_is_tested(make_tree):
    before = ("static int *g(struct slot *s, int n)\n{\n\tif (n)\n\t\treturn NULL;\n\treturn &s->uses;\n}\n")
    body = "int *uses = g(s, n); if (!uses) return 7; *uses = 3; return 1;"
    assert runs(make_tree, body, before, n=1).value == 7
    found = runs(make_tree, body, before, n=0)
    assert found.value == 1 and found.memory["uses", 0] == 3
    assert same(make_tree, body, "if (n) return 7; s->uses = 3; return 1;", before).answer == "equal"
    assert same(make_tree, body, "s->uses = 3; return 1;", before).answer == "differs"


def test_a_local_that_points_into_an_object_later(make_tree):
    body = "int *uses = NULL; if (n) uses = &s->uses; if (uses) (*uses)++; return 0;"
    assert runs(make_tree, body, n=1, uses_0=2).memory["uses", 0] == 3
    assert runs(make_tree, body, n=0, uses_0=2).memory["uses", 0] == 2


def test_which_argument_points_into_an_object_is_told_apart(make_tree):
    before = "static int g(int *a, int *b)\n{\n\treturn a ? 1 : b ? 2 : 3;\n}\n"
    body = "return 10 * g(&s->uses, NULL) + g(NULL, &s->uses);"
    assert runs(make_tree, body, before).value == 12


# -------------------------------------------------------------------------------------- callees of the model
def test_a_callee_has_a_method_for_each_member(make_tree):
    assert runs(make_tree, "wait(&w->low, 5); return 0;").memory["low", 0] == 5
    assert runs(make_tree, "wait(&w->high, 5); return 0;").memory["high", 0] == 5
    assert same(make_tree, "wait(&w->low, 5); return 0;", "wait(&w->high, 5); return 0;").answer == "differs"
    refused(make_tree, "wait((u8 *)NULL, 5); return 0;", "pointer to u8, of which the model has no objects, for wait")
    refused(make_tree, "wait(&w->count, 5); return 0;", "a pointer to int used as one to u8")


def test_two_entries_with_one_method_are_refused():
    with pytest.raises(ModelError, match="wait stands for"):
        Vocabulary(callees={"wait@struct word.low": "halts", "wait@struct word.high": "halts"})


# ------------------------------------------------------------------------------------------------- unions
@pytest.mark.parametrize(("low", "high", "rest"), [(0, 0, 0), (1, 0, 0), (3, 1, 8), (255, 255, 65535), (7, 200, 40000)])
def test_a_wide_member_is_its_parts(make_tree, low, high, rest):
    given = {"low_0": low, "high_0": high, "rest_0": rest}
    word = low | high << 8 | rest << 16
    signed = word - (1 << 32) if word >> 31 else word
    assert runs(make_tree, "return w->both;", **given).value == low | high << 8
    assert runs(make_tree, "return atomic_read(&w->val);", **given).value == signed
    assert runs(make_tree, "return (u32)atomic_read(&w->val) & 0xffff0000;", **given).value == rest << 16
    assert runs(make_tree, "return (u32)(atomic_read(&w->val) | 0x100U);", **given).value == word | 0x100
    found = runs(make_tree, "WRITE_ONCE(w->both, n); return w->low;", n=0x12345, **given)
    assert (found.value, found.memory["low", 0], found.memory["high", 0]) == (0x45, 0x45, 0x23)
    assert found.memory["rest", 0] == rest
    found = runs(make_tree, "atomic_add(1, &w->val); return atomic_read(&w->val);", **given)
    after = (word + 1) % (1 << 32)
    assert found.value % (1 << 32) == after
    assert (found.memory["low", 0], found.memory["high", 0], found.memory["rest", 0]) == (
        after & 255, after >> 8 & 255, after >> 16)


def test_exchanges_of_a_wide_member(make_tree):
    body = "return cmpxchg(&w->both, 0x100, 1) == 0x100;"
    found = runs(make_tree, body, high_0=1)
    assert (found.value, found.memory["low", 0], found.memory["high", 0]) == (1, 1, 0)
    found = runs(make_tree, body, high_0=1, low_0=1)
    assert (found.value, found.memory["low", 0], found.memory["high", 0]) == (0, 1, 1)
    body = "u16 old = 0x100; if (try_cmpxchg(&w->both, &old, 1)) return -1; return old;"
    assert runs(make_tree, body, high_0=1).value == -1 and runs(make_tree, body, high_0=2, low_0=3).value == 0x203


def test_wide_members_are_compared(make_tree):
    assert same(make_tree, "return w->both;", "return w->low + 256 * w->high;").answer == "equal"
    assert same(make_tree, "w->both = 1; return 0;", "w->low = 1; w->high = 0; return 0;").answer == "equal"
    assert same(make_tree, "w->both = 1; return 0;", "w->low = 1; return 0;").answer == "differs"
    assert same(make_tree, "return atomic_read(&w->val) & 0xff00;", "return w->high << 8;").answer == "equal"
    assert same(make_tree, "return atomic_read(&w->val) < 0;", "return w->rest >> 15;").answer == "equal"


class Overlapping(Slots):
    both = Range(0, 65535, per=Slots.word, c="both", init=0)


class Ignoring(Slots):
    vocabulary = Vocabulary(ignore={("struct word", "val"): "the whole"})


class Halved(Model):
    word = Object("struct word", "w0", "w1")
    slot = Object("struct slot", "s0")
    low = Range(0, 255, per=word, c="low", init=0)
    uses = Range(0, 9, per=slot, c="uses", init=0)
    releases = {"v1": {}}


@pytest.mark.parametrize(("model", "body", "reason"), [
    (Overlapping, "return w->low;", "it shares its bytes with both"),
    (Overlapping, "w->both = 1; return 0;", "it shares its bytes with low"),
    (Ignoring, "return w->high;", "it shares its bytes with val"),
    (Ignoring, "atomic_set(&w->val, 0); return 0;", "it shares its bytes with low"),
    (Halved, "return w->both;", "the members that the model has of it are not its parts"),
    (Halved, "return atomic_read(&w->val);", "the members that the model has of it are not its parts"),
])
def test_members_that_share_bytes_are_refused(make_tree, model, body, reason):
    refused(make_tree, body, reason, model=model)


def test_members_of_a_union_that_share_no_bytes_are_fine(make_tree):
    assert reading(make_tree, "return w->low;", model=Halved).status == "read"
    assert runs(make_tree, "w->low = 1; return w->high;", high_0=9).value == 9


class Deep(Model):
    box = Object("struct box", "b0")
    low = Range(0, 255, per=box, c="in.low", init=0)
    high = Range(0, 255, per=box, c="in.high", init=0)
    releases = {"v1": {}}


class DeepOverlap(Deep):
    rest = Range(0, 65535, per=Deep.box, c="in.rest", init=0)
    val = Range(0, 65535, per=Deep.box, c="in.val", init=0)


def test_a_union_in_an_embedded_struct(make_tree):
    head = HEAD + "struct box {\n\tint first;\n\tstruct word in;\n};\n"
    before = "static int g(struct box *b)\n{\n\treturn b->in.both;\n}\n"
    text = f"{head}{before}"
    found = read_function(make_tree({FILE: text}), "g", FILE, Deep)
    assert found.status == "read", found.reason
    found = read_function(make_tree({FILE: text.replace("both;\n}", "low;\n}")}), "g", FILE, DeepOverlap)
    assert found.status == "not_executable" and "it shares its bytes with val" in found.reason


# --------------------------------------------------------------------------------- what is not modelled
@pytest.mark.parametrize(("one", "other"), [
    ("if (s->noise) w->count = 1; return 0;", "if (n && s->noise) w->count = 1; return 0;"),
    ("n = s->noise; other(w); return n;", "other(w); n = s->noise; return n;"),
    ("n = s->noise; s->noise = 4; return n;", "s->noise = 4; n = s->noise; return n;"),
])
def test_a_value_that_is_not_modelled_belongs_to_a_moment(make_tree, one, other):
    assert same(make_tree, one, other).answer == "unknown"
    assert same(make_tree, one, one).answer == "equal" and same(make_tree, other, other).answer == "equal"


def test_a_value_that_is_not_modelled_belongs_to_an_object(make_tree):
    one, other = (f"return g(s, {'s' if n else 'NULL'});" for n in (0, 1))
    before = "static int g(struct slot *a, struct slot *b)\n{\n\treturn b ? b->noise : 0;\n}\n"
    assert same(make_tree, one, other, before).answer == "unknown"


def test_runs_and_comparisons_agree_on_a_difference(make_tree):
    left = side(make_tree, "struct word **lp = find(w); if (lp) *lp = NULL; return 0;")
    right = side(make_tree, "struct word **lp = find(w); if (lp) *lp = w; return 0;")
    instance = Slots.variant("v1")
    found = compare(instance, left, right)
    assert found.answer == "differs"
    assert any(ran(instance, left, found.input, seed) != ran(instance, right, found.input, seed) for seed in range(9))
