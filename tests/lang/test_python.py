# SPDX-License-Identifier: GPL-2.0-only
"""The front end: what is outside the subset is refused where it stands, and what is inside means what Python means."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import pytest
import z3

from schedproof.errors import ModelError
from schedproof.model.concrete import steps
from tests.loading import FIRST_LINE, model_of, module_of, symbolic_steps

DECLARED = """\
class M(Model):
    obj = Object("struct o", "p", "q", "r")
    next = Link(obj, obj, {"p": "q", "q": "r"})
    size = Constant(4)
    flag = Bool()
    a = Bool()
    n = Range(0, 9)
    k = Range(0, 9)
    cur = Pointer(obj, init="q")
    arr = Range(0, 9, per=obj)
    on = Bool(per=obj)
    state = Enum("up", "down", init="up")
    rule = Switch("old", "new")
    lim = Param(2, 1, 4)
    releases = {"v1": {}}
"""
FIRST = FIRST_LINE + DECLARED.count("\n")  # the line of a body's first line, without a head


def made(body: str, head: str = "") -> Any:
    return model_of(head + DECLARED + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n")


def method(*lines: str) -> str:
    """An action with these lines; its `def` is the second line."""
    return "@action\ndef go(self):\n" + "".join(f"    {line}\n" for line in lines)


# ---------------------------------------------------------------------------------------- outside the subset
REFUSED = {
    "list comprehension": ("x = [v for v in self.obj]", "outside the subset", "docs/models.md"),
    "set": ("x = {1, 2}", "outside the subset", "docs/models.md"),
    "dict": ("x = {1: 2}", "outside the subset", "docs/models.md"),
    "tuple": ("self.n, self.k = 1, 2", "outside the subset|not a state variable", "."),
    "is": ("self.flag = self.cur is NULL", "outside the subset", "== or !="),
    "is not": ("self.flag = self.cur is not NULL", "outside the subset", "== or !="),
    "in": ("self.flag = self.n in (1, 2)", "outside the subset", "."),
    "not in": ("self.flag = self.n not in (self.k,)", "outside the subset", "."),
    "keyword argument": ("self.f(x=1)", "keyword arguments", "in order"),
    "star argument": ("self.n = max(*self.obj, 1)", "outside the subset", "."),
    "//": ("self.n = self.n // 2", "division rounds down", "cdiv"),
    "/": ("self.n = self.n / 2", "division rounds down", "cdiv"),
    "%": ("self.n = self.n % 2", "division rounds down", "cmod"),
    "**": ("self.n = self.n ** 2", "outside the subset", "."),
    "~": ("self.n = ~self.n", "outside the subset", "."),
    "//=": ("self.n //= 2", "division rounds down", "cdiv"),
    "lambda": ("f = lambda: 1", "outside the subset", "."),
    "f-string": ("x = f'{self.n}'", "outside the subset", "."),
    "float": ("self.n = 1.5", "outside the subset", "."),
    "None": ("self.cur = None", "outside the subset", "."),
    "walrus": ("self.n = (x := 3)", "outside the subset", "."),
    "slice": ("self.n = self.arr[0:1]", "outside the subset", "."),
    "assert": ("assert self.flag", "outside the subset", "."),
    "raise": ("raise ValueError", "outside the subset", "."),
    "del": ("del self.n", "outside the subset", "."),
    "global": ("global x", "outside the subset", "."),
    "import": ("import os", "outside the subset", "."),
    "print": ("print(1)", "cannot call `print`", ""),
    "pointer as condition": ("if self.cur: self.n = 1", "is a pointer, not a condition", "NULL"),
    "not pointer": ("self.flag = not self.cur", "is a pointer, not a condition", "NULL"),
    "pointer in and": ("self.flag = self.a and self.cur", "is a pointer, not a condition", "NULL"),
    "link as condition": ("if self.next[self.cur]: self.n = 1", "is a pointer, not a condition", "NULL"),
    "enumerator as condition": ("if self.state: self.n = 1", "is an enumerator, not a condition", "compare it"),
    "unknown name": ("self.state = 'upp'", "'upp' is no value of any Enum", "did you mean 'up'"),
    "other enum's name": ("self.flag = self.state == 'old'", "is never 'old'", "one of up, down"),
    "switch never": ("self.flag = self.rule == 'up'", "is never 'up'", "one of old, new"),
    "switch never, turned": ("self.flag = 'up' != self.rule", "is never 'up'", "one of old, new"),
    "assign to a constant": ("self.size = 3", "cannot be assigned", ""),
    "assign to a link": ("self.next[self.cur] = NULL", "cannot be assigned", ""),
    "assign to a switch": ("self.rule = 'old'", "cannot be assigned", ""),
    "assign to a parameter": ("self.lim = 3", "cannot be assigned", ""),
    "assign to a universe": ("self.obj = 3", "cannot be assigned", ""),
    "assign to self": ("self = 3", "name of something else", "another local name"),
    "index missing": ("self.n = self.arr", "one variable an object", r"self\.arr\[object\]"),
    "index missing in a store": ("self.arr = 1", "one variable an object", r"self\.arr\[object\]"),
    "index on one variable": ("self.flag = self.n[self.cur]", "is one variable", r"write self\.n"),
    "index on one variable in a store": ("self.n[self.cur] = 1", "is one variable", r"write self\.n"),
    "index on a link missing": ("self.cur = self.next", "one variable an object", r"self\.next\[object\]"),
    "unknown method": ("self.foo()", "no method `foo`", ""),
    "unknown attribute": ("self.n = self.foo", "no `foo`", ""),
    "unknown attribute in a store": ("self.foo = 1", "cannot be assigned", ""),
    "unknown object": ("self.cur = self.obj.x", "no object `x`", "one of p, q, r"),
    "unknown global": ("self.n = LIMIT", "not a local, a parameter or a constant", ""),
    "loop over a number": ("for v in self.n: pass", "cannot loop over", "declared Object"),
    "range with a step": ("for i in range(0, 4, 2): pass", "cannot loop over", "range"),
    "ring without a start": ("for v in ring(self.obj): pass", "ring takes", "after="),
    "for-else": ("for v in self.obj: pass\n    else: self.n = 1", "outside the subset", "."),
    "while-else": ("while self.a: pass\n    else: self.n = 1", "outside the subset", "."),
    "try": ("try: self.n = 1\n    except ValueError: pass", "outside the subset", "."),
    "with": ("with self.a: self.n = 1", "outside the subset", "."),
    "nested def": ("def f(): pass", "outside the subset", "."),
    "block without a condition": ("block()", "block takes one condition", "until="),
    "block with a word too many": ("block(until=self.a, timeout=3)", "block takes one condition", "until="),
    "ring with a word too many": (
        "for v in ring(self.obj, after=self.cur, reverse=True): pass",
        "ring takes",
        "after=",
    ),
    "require with a reason": ("require(self.a, 'why')", "cannot call `require`", ""),
    "choose of one": ("self.n = choose(1)", "cannot call `choose`", ""),
    "any over a list": ("self.flag = any([self.a])", "cannot call `any`", ""),
    "sum over a range": ("self.n = sum(1 for i in range(3))", "must go over a declared Object", "for x in"),
    "a number for and": ("self.n = self.k or 5", "truth value", "."),
    "annotation that is not written out": ("x: Range(0, LIMIT) = 1", "LIMIT", "."),
    "index of another universe": ("self.wide[self.cur] = 1", "obj", "."),
    "a bound of range that may change": ("for i in range(self.n): self.n += 1", "is no constant", "while"),
    "a bound of range that is worked out": (
        "for i in range(sum(1 for v in self.obj)): pass",
        "is no constant",
        "while",
    ),
    "the variable of range assigned": ("for i in range(3): i = 2", "is assigned in it", "another local name"),
    "the variable of a loop assigned": ("for v in self.obj: v = self.cur", "is assigned in it", "another local name"),
    "two loops of one variable": (
        "for v in self.obj:\n        for v in self.obj: pass", "is assigned in it", "another local name"),
    "arithmetic with enumerators": ("self.n = self.state + 1", "not a number", "."),
    "pointer arithmetic": ("self.cur = self.cur + 1", "pointer", "."),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_outside_the_subset_is_refused_where_it_stands(what):
    line, message, hint = REFUSED[what]
    body = 'other = Object("struct x", "s", "t")\nwide = Range(0, 3, per=other)\n' + method("self.n = 0", line)
    with pytest.raises(ModelError, match=message) as error:
        made(body)
    assert error.value.line == FIRST + 5, error.value
    assert error.value.file.endswith(".py") and error.value.file
    assert re.search(hint, error.value.hint), error.value.hint


def test_a_function_of_the_module_may_not_have_a_methods_name():
    with pytest.raises(ModelError, match="`f` is a function of the module and a method"):
        made("def f(self, x):\n    return 9\n" + method("self.n = f(3)"), "def f(x):\n    return x\n\n\n")


@pytest.mark.parametrize("params", ["self, x=1", "self, *xs", "self, *, x", "self, **x"])
def test_parameters_are_plain(params):
    with pytest.raises(ModelError, match="parameters must be plain") as error:
        made(f"def f({params}):\n    return 1\n")
    assert (error.value.line, error.value.hint) == (FIRST, "write f(self, a, b)")


@pytest.mark.parametrize("test", ["x", "not x", "x and self.a", "1 if x else 2"])
def test_a_parameter_that_is_a_pointer_is_no_condition(test):
    """`if x:` would be true for NULL, which is -1, and false for the first object, which is 0."""
    with pytest.raises(ModelError, match="pointer, not a condition"):
        made(f"@action(per=obj)\ndef go(self, x):\n    self.n = int({test})\n")


def test_a_method_that_returns_a_pointer_is_no_condition():
    with pytest.raises(ModelError, match="pointer, not a condition"):
        made("def f(self):\n    return self.cur\n" + method("if self.f():", "    self.n = 1"))


def test_a_lambda_is_no_method():
    with pytest.raises(ModelError, match="only functions made with `def`|outside the subset"):
        made("f = lambda self: 1\n")


@pytest.mark.parametrize(
    "body, name",
    [
        ("def f(self):\n    self.f()\n", "f"),
        ("def f(self):\n    return self.g()\ndef g(self):\n    return self.f()\n", "f|g"),
        ("def f(self):\n    step()\n    self.f()\n@thread(per=obj)\ndef t(self, me):\n    self.f()\n", "f"),
    ],
)
def test_recursion_is_an_error_of_the_variant(body, name):
    model = made(body + method("self.f()") if "thread" not in body else body)
    with pytest.raises(ModelError, match=f"({name}) calls itself") as error:
        assert model.variant("v1").transitions
    assert FIRST <= error.value.line <= FIRST + 4 and error.value.file


@pytest.mark.parametrize("call", ["self.f()", "self.f(1, 2)"])
def test_a_call_with_the_wrong_number_of_arguments_is_an_error_with_its_place(call):
    model = made("def f(self, x):\n    return x\n" + method(f"self.n = {call}"))
    with pytest.raises(ModelError, match="f takes 1 arguments") as error:
        assert model.variant("v1").transitions
    assert error.value.line == FIRST + 4


def test_the_words_are_not_for_ordinary_python():
    from schedproof.model import choose, require, step

    for word in (lambda: require(True), lambda: choose(1, 2), step):
        with pytest.raises(ModelError, match="ordinary Python"):
            word()


# ------------------------------------------------------------------------------------------ inside the subset
def changes(body: str, head: str = "", **state: Any) -> list[dict[str, str]]:
    """What the steps from the initial state change, the same by terms and by the interpreter."""
    instance = made(body, head).variant("v1")
    start = {**instance.initial[0], **state}
    plain = [dict(t.state) for t in steps(instance, start)]
    symbolic = {outcome[3] for outcome in symbolic_steps(instance)(start)}
    assert symbolic == {tuple(p[n] for n in instance.variables) for p in plain}
    before = instance.show(start)
    found = [{n: v for n, v in instance.show(p).items() if v != before[n]} for p in plain]
    return sorted((f for i, f in enumerate(found) if f not in found[:i]), key=str)


TAKE = "def take(self):\n    self.k += 1\n    return self.k\n"
SET = "def set(self):\n    self.arr[self.obj.p] = 3\n    return 0\n"
MEANS = {
    "arithmetic": (method("self.n = 2 + 3 * 2 - 1"), [{"n": "7"}]),
    "shifts and masks": (method("self.n = (1 << 3 | 1) & 13 ^ 1"), [{"n": "8"}]),
    "cdiv": (method("self.n = -cdiv(-7, 2)"), [{"n": "3"}]),
    "cmod": (method("self.n = -cmod(-7, 2)"), [{"n": "1"}]),
    "constants": (method("self.n = self.size + self.lim + LIMIT"), [{"n": "9"}]),
    "min and max": (method("self.n = min(5, max(3, 2, 4))"), [{"n": "4"}]),
    "abs": (method("self.n = abs(self.k - 5)"), [{"n": "5"}]),
    "conditional": (method("self.n = 3 if self.a else 4"), [{"n": "4"}]),
    "chained comparison": (method("self.flag = 0 < 2 < 3"), [{"flag": "yes"}]),
    "implies": (method("self.flag = implies(self.a, self.a)"), [{"flag": "yes"}]),
    "augmented": (method("self.arr[self.cur] += 2"), [{"arr[q]": "2"}]),
    "several targets": (method("self.n = self.k = 3"), [{"k": "3", "n": "3"}]),
    "several targets, one choice": (
        method("self.n = self.k = choose(1, 2)"),
        [{"k": "1", "n": "1"}, {"k": "2", "n": "2"}],
    ),
    "ring": (method("for v in ring(self.obj, after=self.cur):", "    self.cur = v", "    break"), [{"cur": "r"}]),
    "ring has its start fixed": (
        method("for v in ring(self.obj, after=self.cur):", "    self.cur = v", "    self.n += 1"),
        [{"n": "3"}],
    ),
    "universe": (
        method("for v in self.obj:", "    self.arr[v] = 1", "    if v == self.cur:", "        break"),
        [{"arr[p]": "1", "arr[q]": "1"}],
    ),
    "continue": (
        method("for v in self.obj:", "    if v == self.cur:", "        continue", "    self.arr[v] = 1"),
        [{"arr[p]": "1", "arr[r]": "1"}],
    ),
    "any": (method("self.flag = any(v == self.cur for v in self.obj)"), [{"flag": "yes"}]),
    "all": (
        method("self.flag = all(v == self.cur for v in self.obj if v != self.obj.p and v != self.obj.r)"),
        [{"flag": "yes"}],
    ),
    "sum": (method("self.n = sum(2 for v in self.obj if v != self.cur)"), [{"n": "4"}]),
    "any in a while": (
        method("while any(self.arr[v] < 2 for v in self.obj):", "    for v in self.obj:", "        self.arr[v] += 1"),
        [{"arr[p]": "2", "arr[q]": "2", "arr[r]": "2"}],
    ),
    "any in an elif": (
        method("if self.a:", "    self.n = 1", "elif any(self.arr[v] == 0 for v in self.obj):", "    self.n = 2"),
        [{"n": "2"}],
    ),
    "any behind and": (
        method("self.flag = self.cur == NULL and any(self.arr[self.cur] == 0 for v in self.obj)"),
        [{}],
    ),
    "choose": (method("self.n = choose(1, 2)"), [{"n": "1"}, {"n": "2"}]),
    "choose an object": (
        method("self.arr[choose(self.obj)] = 1"),
        [{"arr[p]": "1"}, {"arr[q]": "1"}, {"arr[r]": "1"}],
    ),
    "require": (method("require(self.a)", "self.n = 1"), []),
    "module function": (method("self.n = twice(3)"), [{"n": "6"}]),
    "docstring and pass": (method("'''Nothing.'''", "pass", "self.n = 1"), [{"n": "1"}]),
    "object by number": (method("self.cur = self.obj[2]"), [{"cur": "r"}]),
    # where Python evaluates once, and from left to right
    "max evaluates once": (TAKE + method("self.n = max(self.take(), 0)"), [{"k": "1", "n": "1"}]),
    "min evaluates once": (method("self.n = 5 + min(choose(1, 3), 2)"), [{"n": "6"}, {"n": "7"}]),
    "abs evaluates once": (TAKE + method("self.n = abs(self.take())"), [{"k": "1", "n": "1"}]),
    "a chain evaluates its middle once": (
        TAKE + method("self.flag = 0 < self.take() < 2"),
        [{"flag": "yes", "k": "1"}],
    ),
    "a chain chooses once": (method("self.n = 1 + int(1 < choose(1, 3) < 2)"), [{"n": "1"}]),
    "an index of += evaluates once": (
        method("self.arr[choose(self.obj)] += 1"),
        [{"arr[p]": "1"}, {"arr[q]": "1"}, {"arr[r]": "1"}],
    ),
    "operands from left to right": (
        SET + method("self.n = self.set() + sum(self.arr[v] for v in self.obj)"),
        [{"arr[p]": "3", "n": "3"}],
    ),
    "arguments from left to right": (
        SET
        + "def add(self, x, y):\n    return x + y\n"
        + method("self.n = self.add(sum(self.arr[v] for v in self.obj), self.set())"),
        [{"arr[p]": "3"}],
    ),
    "the variable of any is its own": (
        method("v = self.obj.p", "self.flag = any(self.on[v] for v in self.obj)", "self.cur = v"),
        [{"cur": "p"}],
    ),
    "range of a parameter": (method("for i in range(self.lim):", "    self.n += 1"), [{"n": "2"}]),
    "range from a number": (method("for i in range(2, 4):", "    self.n += i"), [{"n": "5"}]),
    "an empty range": (method("for i in range(2, 2):", "    self.n += 1"), [{}]),
    "continue in a range": (
        method("for i in range(3):", "    if i == 1:", "        continue", "    self.n += 1"),
        [{"n": "2"}],
    ),
    "break leaves range where it is": (
        method("for i in range(3):", "    if i == 1:", "        break", "self.n = i"),
        [{"n": "1"}],
    ),
    "two filters in order": (
        method("self.n = sum(1 for v in self.obj if self.next[v] != NULL if self.arr[self.next[v]] == 0)"),
        [{"n": "2"}],
    ),
    "a filter with any in it": (
        method("v = self.obj.r", "self.n = sum(1 for v in self.obj if any(self.next[w] == v for w in self.obj))"),
        [{"n": "2"}],
    ),
    "range leaves its last": (method("for i in range(3):", "    pass", "self.n = i"), [{"n": "2"}]),
}


@pytest.mark.parametrize("what", MEANS)
def test_it_means_what_python_means(what):
    body, expected = MEANS[what]
    head = "LIMIT = 3\n\n\ndef twice(x):\n    return double(x)\n\n\ndef double(x):\n    return x + x\n\n\n"
    assert changes(body, head) == expected


def test_and_or_do_not_run_what_does_not_count():
    body = TAKE + method("self.flag = self.a and self.take() > 0 or self.take() > 5")
    assert changes(body) == [{"k": "1"}]
    assert changes(body, a=True) == [{"flag": "yes", "k": "1"}]


def test_a_local_that_is_set_on_one_path_only_is_an_error_with_its_place():
    model = made(method("if self.a:", "    x = 1", "self.n = x"))
    with pytest.raises(ModelError, match="`x` has no value here on some path") as error:
        assert model.variant("v1").transitions
    assert (error.value.line, error.value.hint) == (FIRST + 4, "give it one before")


def test_a_method_without_a_value_is_not_used_as_one():
    model = made("def f(self):\n    self.k = 1\n" + method("self.n = self.f()"))
    with pytest.raises(ModelError, match="returns no value is used as one") as error:
        assert model.variant("v1").transitions
    assert error.value.line == FIRST + 4


def test_lines_are_those_of_the_file_behind_decorators():
    program = made("@action(\n    cost={'ms': 1},\n)\ndef go(self):\n    self.n = 1\n").programs["go"]
    assert program.loc.line == FIRST + 3 and program.body[0].loc.line == FIRST + 4


def test_marks_are_in_the_programs():
    model = made(
        "@kernel('kernel/x.c', grain='blocking')\ndef f(self):\n    return 1\n@environment\ndef g(self):\n"
        "    return 1\n"
    )
    assert (model.programs["f"].kind, model.programs["f"].source, model.programs["f"].grain) == (
        "kernel",
        "kernel/x.c",
        "blocking",
    )
    assert model.programs["g"].kind == "environment" and model.kernel_functions() == {"f": "kernel/x.c"}


# ---------------------------------------------------------------------------------------------------- formulas
def test_formulas_that_a_factory_makes_are_told_apart():
    module = module_of("def is_(x):\n    def formula(m):\n        return m.n == x\n    return formula\n")
    instance = made(method("self.n = 1")).variant("v1")
    start = instance.initial[0]
    assert [bool(instance.evaluate(module.is_(x), start)) for x in (0, 1)] == [True, False]
    n = instance.variables["n"].term
    for x in (0, 1):
        term = instance.predicate(module.is_(x))
        assert [bool(z3.simplify(z3.substitute(term, (n, z3.IntVal(v))))) for v in (0, 1)] == [x == 0, x == 1]


def test_a_formula_that_gives_no_value_on_some_path_is_an_error():
    module = module_of("def half(m):\n    if m.a:\n        return True\n")
    instance = made(method("self.a = True")).variant("v1")
    with pytest.raises(ModelError, match="no value"):
        instance.evaluate(module.half, instance.initial[0])
    with pytest.raises(ModelError, match="no value"):
        instance.predicate(module.half)


def test_a_formula_that_follows_null_is_an_error():
    module = module_of("def wrong(m):\n    return m.arr[m.cur] == 0\n")
    instance = made(method("self.cur = NULL")).variant("v1")
    with pytest.raises(ModelError, match="NULL pointer"):
        instance.evaluate(module.wrong, {**instance.initial[0], "cur": -1})
    with pytest.raises(ModelError, match="NULL pointer"):
        instance.predicate(module.wrong)


def test_a_formula_may_call_functions_that_call_functions():
    module = module_of(
        "def one(x):\n    return x + 1\n\n\ndef two(x):\n    return one(x)\n\n\ndef formula(m):\n"
        "    return two(m.n) == 1\n"
    )
    instance = made(method("self.n = 1")).variant("v1")
    assert instance.evaluate(module.formula, instance.initial[0])
    n = instance.variables["n"].term
    assert z3.is_true(z3.simplify(z3.substitute(instance.predicate(module.formula), (n, z3.IntVal(0)))))
