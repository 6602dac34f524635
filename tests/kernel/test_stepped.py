# SPDX-License-Identifier: GPL-2.0-only
"""Functions that are not atomic, from C as from Python: where they are cut, and whether two of them do the same."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from schedproof.errors import ModelError, NotExecutable
from schedproof.kernel import Tree
from schedproof.kernel.compare import Comparison, Side, compare
from schedproof.kernel.conform import conform
from schedproof.kernel.functions import read_function, with_c
from schedproof.kernel.overflow import overflows
from schedproof.model import Bool, Model, Object, Range, Vocabulary, block, environment, kernel
from schedproof.suite.models.directed_yield import KVM, DirectedYield
from tests.kernel.smallc import edited
from tests.kernel.steppedc import really_differs
from tests.loading import require_agreement

FILE = "virt/kvm/a.c"
SPIN = "kvm_vcpu_on_spin"


@cache
def boxes(grain: Any) -> Any:
    """A model of which one function is interrupted with this grain, and its callee with it."""

    class Boxes(Model):
        box = Object("struct box", "x", "y")
        first = Range(0, 9, per=box, c="first", span=(-1000, 1000))
        second = Range(0, 9, per=box, c="second", span=(-1000, 1000))
        total = Range(0, 99, per=box, c="total", init=0)
        marked = Bool(per=box, c="marked")
        awake = Bool(per=box)
        releases = {"v1": {}}
        vocabulary = Vocabulary(callees={"wait_for": "waits", "likes": "tells", "note": "somewhere else"})

        @kernel(FILE, grain=grain if grain != "atomic" else "blocking")
        def f(self, x, n):
            one = self.first[x]
            two = self.second[x]
            self.total[x] = one + 2 * two
            self.marked[x] = True
            while self.marked[x]:
                if self.wait_for(x) > n:
                    self.marked[x] = False
            return one

        @environment
        def wait_for(self, x):
            block(until=self.awake[x])
            return 1

        @environment
        def likes(self, x):
            return self.awake[x]

        @environment
        def note(self, x):
            self.total[x] = 0

    class Atomic(Boxes):
        @kernel(FILE)
        def f(self, x, n):
            self.total[x] = self.first[x]
            return n

    return Atomic if grain == "atomic" else Boxes


HEAD = """
struct box {
	int first;
	int second;
	int total;
	bool marked;
};
int wait_for(struct box *x);
bool likes(struct box *x);
void note(struct box *x);
"""
TWIN = """
	int one = x->first;
	int two = x->second;

	x->total = one + 2 * two;
	x->marked = true;
	while (x->marked) {
		if (wait_for(x) > n)
			x->marked = false;
	}
	return one;
"""


def text(body: str, helpers: str = "") -> str:
    return f"{HEAD}{helpers}\nint f(struct box *x, int n)\n{{\n{body}\n}}\n"


def side(model: Any, tree: Tree, after: str) -> Side:
    read = read_function(tree.with_files({FILE: after}), "f", FILE, model)
    assert (read.status, read.reason) == ("read", "")
    return Side("f", {**model.programs, **read.programs})


def asked(make_tree: Callable[..., Tree], grain: str, before: str, after: str) -> Comparison:
    """The answer on two C texts; a difference has to be one on the plain interpreter too."""
    model, tree = boxes(grain), make_tree({FILE: text("return 0;")})
    left, right = side(model, tree, before), side(model, tree, after)
    instance = model.variant("v1")
    found = compare(instance, left, right)
    if found.answer == "differs" and grain != "atomic":
        assert really_differs(instance, left, right, found), found
    for one in (left, right):
        assert compare(instance, one, one).answer == "equal"
    return found


# -------------------------------------------------------------------------------------------- C and its Python twin
@pytest.mark.parametrize("grain", ["blocking", "access"])
def test_c_and_its_twin_are_equal_with_the_grain_of_the_model(make_tree, grain: str):
    model = boxes(grain)
    c = side(model, make_tree({FILE: ""}), text(TWIN))
    found = compare(model.variant("v1"), Side("f", model.programs), c)
    assert (found.answer, found.detail) == ("equal", "")
    other = side(model, make_tree({FILE: ""}), text(TWIN.replace("2 *", "3 *")))
    found = compare(model.variant("v1"), Side("f", model.programs), other)
    assert found.answer == "differs" and "a write differs" in found.detail
    assert really_differs(model.variant("v1"), Side("f", model.programs), other, found)


def test_what_is_atomic_in_the_model_may_not_block(make_tree):
    model = boxes("atomic")
    c = side(model, make_tree({FILE: ""}), text(TWIN))
    found = compare(model.variant("v1"), Side("f", model.programs), c)
    assert found.answer == "unknown" and "f is atomic, but a function that it calls blocks" in found.detail
    with pytest.raises(ModelError, match="f is atomic"):
        with_c(model.variant("v1"), c.programs)


ATOMIC = "int one = x->first;\n\tint two = x->second;\n\tx->total = one + 2 * two;\n\treturn one - two;"
SWAPPED = "int two = x->second;\n\tint one = x->first;\n\tx->total = one + 2 * two;\n\treturn one - two;"


@pytest.mark.parametrize(("grain", "answer"), [("atomic", "equal"), ("blocking", "equal"), ("access", "differs")])
def test_reads_in_another_order(make_tree, grain: str, answer: str):
    found = asked(make_tree, grain, text(ATOMIC), text(SWAPPED))
    assert found.answer == answer, found
    assert (len(found.steps) > 2) == (grain == "access")        # it takes a state that changes in between


WAITS = "int got = wait_for(x);\n\n\tif (got > 0)\n\t\tx->total = n;\n\treturn got;"
WRITES_FIRST = "int got;\n\n\tx->total = n;\n\tgot = wait_for(x);\n\treturn got;"
KEEPS = "int was = x->first;\n\n\twait_for(x);\n\tx->total = was;\n\treturn 0;"
LIKES = "if (likes(x))\n\t\twait_for(x);\n\treturn 0;"
READS_LATE = "wait_for(x);\n\tx->total = x->first;\n\treturn 0;"


@pytest.mark.parametrize(("before", "after", "answer"), [
    (WAITS, "int got = wait_for(x);\n\n\tif (got <= 0)\n\t\treturn got;\n\tx->total = n;\n\treturn got;", "equal"),
    (WAITS, WRITES_FIRST, "differs"),
    (WAITS, WAITS.replace("> 0", ">= 0"), "differs"),
    (KEEPS, READS_LATE, "differs"),
    (KEEPS, "int was = x->first, more = was + 1;\n\n\twait_for(x);\n\tx->total = more - 1;\n\treturn 0;", "unknown"),
    ("wait_for(x);\n\treturn 0;", "return 0;", "differs"),
    ("wait_for(x);\n\twait_for(x);\n\treturn 0;", "wait_for(x);\n\treturn 0;", "differs"),
    (LIKES, "if (!likes(x))\n\t\treturn 0;\n\twait_for(x);\n\treturn 0;", "equal"),
    (LIKES, "wait_for(x);\n\treturn 0;", "differs"),
    ("x->marked = likes(x);\n\twait_for(x);\n\treturn 0;",
     "wait_for(x);\n\tx->marked = likes(x);\n\treturn 0;", "differs"),
    ("note(x);\n\twait_for(x);\n\treturn 0;", "wait_for(x);\n\tnote(x);\n\treturn 0;", "differs"),
])
def test_a_callee_that_blocks(make_tree, before: str, after: str, answer: str):
    if "note" in before:                     # what it leaves is unknown, so there is no run to replay
        model, tree = boxes("blocking"), make_tree({FILE: ""})
        found = compare(model.variant("v1"), side(model, tree, text(before)), side(model, tree, text(after)))
    else:
        found = asked(make_tree, "blocking", text(before), text(after))
    assert found.answer == answer, found


HELPER = """
static int twice(struct box *x)
{
	int sum = wait_for(x);

	x->total++;
	return sum + wait_for(x);
}
"""


def test_a_cut_in_a_callee(make_tree):
    called = text("return twice(x) + n;", HELPER)
    inlined = text("int sum = wait_for(x);\n\n\tx->total++;\n\tsum += wait_for(x);\n\treturn sum + n;")
    assert asked(make_tree, "blocking", called, inlined).answer == "equal"
    assert asked(make_tree, "blocking", called, called.replace("x->total++", "x->total--")).answer == "differs"
    late = text("int sum = wait_for(x);\n\n\tsum += wait_for(x);\n\tx->total++;\n\treturn sum + n;")
    assert asked(make_tree, "blocking", called, late).answer == "differs"


NESTED = """
	int i, j;

	for (i = 0; i < 3; i++) {
		for (j = i; j < 3; j++) {
			if (wait_for(x) == j)
				break;
			x->total = 10 * i + j;
		}
	}
	return 0;
"""


def test_a_cut_inside_a_nested_loop(make_tree):
    backwards = NESTED.replace("int i, j;", "int i, j, k;").replace("for (j = i; j < 3; j++) {",
                                                                  "for (k = 3; k > i; k--) {\n\t\t\tj = 3 - k + i;")
    assert asked(make_tree, "blocking", text(NESTED), text(backwards)).answer == "equal"
    assert asked(make_tree, "blocking", text(NESTED), text(NESTED.replace("j = i", "j = 0"))).answer == "differs"
    found = asked(make_tree, "blocking", text(NESTED), text(NESTED.replace("== j", "== i + j")))
    assert found.answer == "differs" and "i = 1" in found.detail        # only from the second round on


ENDLESS = "for (;;) {\n\t\tx->total = wait_for(x);\n\t\tif (x->marked)\n\t\t\treturn 1;\n\t}"


def test_a_loop_without_an_end_that_always_meets_a_cut(make_tree):
    other = "do {\n\t\tx->total = wait_for(x);\n\t} while (!x->marked);\n\treturn 1;"
    assert asked(make_tree, "blocking", text(ENDLESS), text(other)).answer == "equal"
    found = asked(make_tree, "blocking", text(ENDLESS), text(ENDLESS.replace("return 1", "return 2")))
    assert found.answer == "differs"


def test_a_loop_path_that_never_meets_a_cut_is_an_error_with_its_place(make_tree):
    model, tree = boxes("blocking"), make_tree({FILE: ""})
    c = side(model, tree, text("for (;;) {\n\t\tif (x->marked)\n\t\t\twait_for(x);\n\t}\n\treturn 0;"))
    found = compare(model.variant("v1"), c, c)
    assert found.answer == "unknown" and f"{FILE}:14: a loop goes on for more than" in found.detail


def test_places_that_do_not_pair_are_not_decided(make_tree):
    """One read more: another place to be interrupted, which may or may not matter."""
    found = asked(make_tree, "access", text("x->total = n;\n\treturn 0;"),
                  text("if (x->marked)\n\t\tx->total = n;\n\telse\n\t\tx->total = n;\n\treturn 0;"))
    assert found.answer == "unknown" and "do not pair" in found.detail


def test_an_atomic_operation_is_one_access(make_tree):
    """Between the read and the write of an xchg nothing comes in; between those of two statements something may."""
    once = text("return xchg(&x->first, n);")
    apart = text("int was = x->first;\n\n\tx->first = n;\n\treturn was;")
    assert asked(make_tree, "blocking", once, apart).answer == "equal"
    found = asked(make_tree, "access", once, apart)
    assert found.answer == "unknown" and "do not pair" in found.detail


def test_a_callee_is_interrupted_as_its_caller_is(make_tree):
    helper = "\nstatic void put(struct box *x, int n)\n{\n\tx->total = n;\n\tx->marked = true;\n}\n"
    called, inlined = text("put(x, n);\n\treturn 0;", helper), text("x->total = n;\n\tx->marked = true;\n\treturn 0;")
    assert asked(make_tree, "access", called, inlined).answer == "equal"
    found = asked(make_tree, "access", called, text("x->marked = true;\n\tx->total = n;\n\treturn 0;"))
    assert found.answer == "differs"


# ------------------------------------------------------------------------------------------------ the spin handler
def release(tree: Tree) -> str:
    return "v6.1" if tree.version() < (6, 2, 0) else "v6.12"


def handler(tree: Tree) -> Side:
    read = read_function(tree, SPIN, KVM, DirectedYield)
    assert (read.status, read.reason) == ("read", "")
    return Side(SPIN, {**DirectedYield.programs, **read.programs})


def test_the_handler_is_the_method_at_every_yield(real_tree: Tree):
    """At five vCPUs: from the entry to the first yield, and from behind each yield to the next one or to the end."""
    c, method = handler(real_tree), Side(SPIN, DirectedYield.programs)
    begin = time.process_time()
    found = compare(DirectedYield.variant(release(real_tree), vcpus=5), method, c)
    print(f"{time.process_time() - begin:.1f} s")             # a row of the benchmark, no assertion
    assert (found.answer, found.detail) == ("equal", "")
    assert found.within == "the declared ranges of the fields, online_vcpus = 5"
    other = {"v6.1": "v6.12", "v6.12": "v6.1"}[release(real_tree)]
    instance = DirectedYield.variant(other, vcpus=4)
    found = compare(instance, method, c)
    assert found.answer == "differs" and really_differs(instance, method, c, found)


def test_conform_finds_the_release(real_tree: Tree):
    report = conform(real_tree, DirectedYield, "directed_yield")
    assert report.variant == release(real_tree)
    assert {f.function: f.status for f in report.functions} == {
        SPIN: "equal", "kvm_vcpu_eligible_for_directed_yield": "equal"}


TRY_TO_YIELD = (r"^\t\t\tyielded = kvm_vcpu_yield_to\(vcpu\);\n\t\t\tif \(yielded > 0\) \{\n.*\n",
                "\t\t\tWRITE_ONCE(kvm->last_boosted_vcpu, i);\n\t\t\tyielded = kvm_vcpu_yield_to(vcpu);\n"
                "\t\t\tif (yielded > 0) {\n")
EQUAL = {
    "another order in the loop's test": (("pass < 2 && !yielded && try", "try && !yielded && pass < 2"),),
    "tests that do not change anything, the other way round": (
        (r"^\t\t\tif \(vcpu == me\)\n\t\t\t\tcontinue;\n", ""),
        (r"^\t\t\tif \(!READ_ONCE\(vcpu->ready\)\)\n",
         "\t\t\tif (vcpu == me)\n\t\t\t\tcontinue;\n\t\t\tif (!READ_ONCE(vcpu->ready))\n")),
    "counting and testing in one": ((r"try--;\n\t\t\t\tif \(!try\)", "if (--try == 0)"),),
    "another word for above zero": ((r"yielded > 0", "yielded >= 1"),),
    "another word for up to": ((r"i <= last_boosted_vcpu", "!(i > last_boosted_vcpu)"),),
    "the cursor read a line later": (
        (r"^\tlast_boosted_vcpu = .*\n(\tkvm_vcpu_set_in_spin_loop\(me, true\);\n)",
         r"\1\tlast_boosted_vcpu = READ_ONCE(kvm->last_boosted_vcpu);\n"),),
    "the last write a line earlier": (
        (r"^\tkvm_vcpu_set_dy_eligible\(me, false\);\n", ""),
        (r"^\tkvm_vcpu_set_in_spin_loop\(me, false\);\n",
         "\tkvm_vcpu_set_dy_eligible(me, false);\n\tkvm_vcpu_set_in_spin_loop(me, false);\n")),
}
DIFFERENT = {
    "the distance instead of the vCPU as the cursor": ((r"last_boosted_vcpu, i\)",
                                                        "last_boosted_vcpu, i - last_boosted_vcpu - 1)"),),
    "one pass": ((r"pass < 2", "pass < 1"),),
    "not only who is ready": ((r"^\t\t\tif \(!READ_ONCE\(vcpu->ready\)\)\n\t\t\t\tcontinue;\n", ""),),
    "still in the spin loop": ((r"^\tkvm_vcpu_set_in_spin_loop\(me, false\);\n", ""),),
    "the cursor written before the yield": (TRY_TO_YIELD,),
    "the last vCPU twice": ((r"i <= last_boosted_vcpu", "i < last_boosted_vcpu"),),
    "two tries": ((r"try = 3", "try = 2"),),
    "eligible the next time": ((r"kvm_vcpu_set_dy_eligible\(me, false\)", "kvm_vcpu_set_dy_eligible(me, true)"),),
    "a failure is a success": ((r"yielded > 0", "yielded >= 0"),),
    "the cursor read behind the yield": ((r"^\t\t\tyielded = kvm_vcpu_yield_to\(vcpu\);\n",
                                          "\t\t\tyielded = kvm_vcpu_yield_to(vcpu);\n"
                                          "\t\t\tlast_boosted_vcpu = READ_ONCE(kvm->last_boosted_vcpu);\n"),),
}


@pytest.mark.parametrize("name", [*EQUAL, *DIFFERENT])
def test_edits_of_the_handler(real_tree: Tree, name: str):
    """Made by program from the tree's own text; a difference has to be one on the plain interpreter too."""
    steps = EQUAL.get(name) or DIFFERENT[name]
    changed = real_tree.with_files({KVM: edited(real_tree.text(KVM), SPIN, *steps)})
    before, after = handler(real_tree), handler(changed)
    # With three vCPUs there are two to try.
    instance = DirectedYield.variant(release(real_tree), vcpus=4 if name == "two tries" else 3)
    found = compare(instance, before, after)
    assert found.answer == ("equal" if name in EQUAL else "differs"), found
    if name in DIFFERENT:
        assert really_differs(instance, before, after, found), found


def test_the_handler_runs_in_the_model_from_c_as_from_python(real_tree: Tree):
    """Two vCPUs: the same reachable graph, on both ways of running; locals of C have domains."""
    instance = DirectedYield.variant(release(real_tree), vcpus=2)
    read = read_function(real_tree, SPIN, KVM, DirectedYield)
    c = with_c(instance, read.programs)
    assert {v.base for v in c.variables.values()} >= {f"guest#1.{n}" for n in ("i", "pass", "try", "last_boosted_vcpu")}
    assert require_agreement(instance) == require_agreement(c)


def test_a_local_of_c_without_a_domain_says_what_to_declare(real_tree: Tree):
    class Undeclared(DirectedYield):
        locals = {("kvm_vcpu_on_spin", "pass"): Range(0, 2), ("kvm_vcpu_on_spin", "try"): Range(0, 3)}

    read = read_function(real_tree, SPIN, KVM, Undeclared)
    c = with_c(Undeclared.variant(release(real_tree), vcpus=3), read.programs)
    with pytest.raises(ModelError, match="`i` of kvm_vcpu_on_spin lives across") as error:
        assert c.transitions
    assert error.value.file == KVM and error.value.line > 0
    assert 'locals = {("kvm_vcpu_on_spin", "i"): Range(low, high)}' in error.value.hint


@pytest.mark.parametrize("grain", ["blocking", "interruptible"])
def test_what_overflows_behind_a_cut_is_not_passed_over(make_tree, grain: str):
    """Nothing was said of the product, as if it always fitted."""
    body = "\twait_for(x);\n\tx->total = x->first * 20000000;\n\treturn 0;"
    found = side(boxes(grain), make_tree({FILE: text(body)}), text(body))
    with pytest.raises(NotExecutable, match="f is not atomic"):
        overflows(boxes(grain).variant("v1"), found, {})
