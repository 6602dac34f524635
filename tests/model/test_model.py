# SPDX-License-Identifier: GPL-2.0-only
"""Models: variants, switches, parameters, actions, costs, initial and final states, and what is refused."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
import z3

from schedproof.engines import decide
from schedproof.errors import InputError, ModelError
from schedproof.lang import syntax as s
from schedproof.model.concrete import steps
from schedproof.property import Invariant, Property
from tests.loading import model_of, require_agreement

DECLARED = """\
class M(Model):
    obj = Object("struct o", "p", "q")
    n = Range(0, 3)
    on = Bool(per=obj)
    rule = Switch("old", "new")
    fast = Switch(False, True)
    size = Param(2, 1, 3)
    releases = {"v1": {}, "v2": dict(rule="new")}
    fixes = {"faster": dict(fast=True), "back": dict(rule="old")}
    mutants = {"broken": dict(rule="new", fast=True)}
"""


def made(body: str = "", declared: str = DECLARED) -> Any:
    return model_of(declared + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n")


# ----------------------------------------------------------------------------------------------------- variants
@pytest.mark.parametrize(
    "name, rule, fast",
    [
        ("v1", "old", False),
        ("v2", "new", False),
        ("v1+faster", "old", True),
        ("v2+back", "old", False),
        ("v2+back+faster", "old", True),
        ("v1+rule=new", "new", False),
        ("v1+fast=true", "old", True),
        ("v1+faster+fast=false", "old", False),
        ("v1+broken", "new", True),
        ("v2+broken+back", "old", True),
    ],
)
def test_a_variant_is_a_release_and_changes_from_left_to_right(name, rule, fast):
    assert made().settings(name) == {"rule": rule, "fast": fast}
    assert made().variant(name).switches == {"rule": rule, "fast": fast}


@pytest.mark.parametrize(
    "name, message",
    [
        ("v3", "unknown release 'v3' of M: known are v1, v2"),
        ("", "unknown release ''"),
        ("v1+fastr", "did you mean 'faster'"),
        ("v1+", "unknown fix ''"),
        ("v1+rule=newer", "rule=newer: allowed are old, new"),
        ("v1+fast=yes", "fast=yes: allowed are false, true"),
        ("v1+rul=new", "unknown switch 'rul' of M: did you mean 'rule'"),
        ("v1 +faster", "unknown release"),
        ("v1+rule=", "allowed are old, new"),
        ("v1+v2", "unknown fix 'v2'"),
    ],
)
def test_an_unknown_variant_is_refused_with_what_is_known(name, message):
    with pytest.raises(InputError) as error:
        made().variant(name)
    assert message in str(error.value)


def test_a_mutant_is_never_offered():
    with pytest.raises(InputError) as error:
        made().variant("v1+broke")
    assert "broken" not in str(error.value)


@pytest.mark.parametrize(
    "params, message",
    [
        ({"size": 4}, "size=4: allowed are whole numbers from 1 to 3"),
        ({"size": 0}, "size=0"),
        ({"size": True}, "size=True"),
        ({"size": "2"}, "size=2"),
        ({"size": 1.5}, "size=1.5"),
        ({"sizes": 2}, "unknown parameter 'sizes' of M: did you mean 'size'"),
    ],
)
def test_a_parameter_out_of_its_range_is_refused(params, message):
    with pytest.raises(InputError) as error:
        made().variant("v1", **params)
    assert message in str(error.value)


def test_parameters_that_do_not_go_together_are_the_models_own_business():
    body = (
        "@classmethod\ndef check_parameters(cls, values):\n    if values['size'] == 3:\n"
        "        raise ValueError('not 3')\n"
    )
    assert made(body).variant("v1", size=2).params == {"size": 2}
    with pytest.raises(ValueError, match="not 3"):
        made(body).variant("v1", size=3)


@pytest.mark.parametrize(
    "table",
    ["releases = {'v1': dict(rule='newer')}", "fixes = {'x': dict(rul='new')}", "mutants = {'x': dict(fast='true')}"],
)
def test_a_table_that_sets_what_is_not_declared_is_an_error_with_its_place(table):
    with pytest.raises(ModelError, match="which is not declared") as error:
        made(table)
    assert error.value.file and error.value.line


def test_a_title_names_variant_and_parameters():
    assert made().variant("v1+faster", size=3).title == "v1+faster size=3"


def test_a_subclass_has_all_of_its_base_and_may_change_a_method():
    text = DECLARED + textwrap.indent(
        "@action\ndef go(self):\n    self.n = self.step_()\ndef step_(self):\n    return 1\n", "    "
    )
    base = model_of(text + "\nclass N(M):\n    def step_(self):\n        return 2\n    more = Bool()\n", "N")
    (taken,) = steps(base.variant("v1"), base.variant("v1").initial[0])
    assert taken.state["n"] == 2 and "more" in base.variant("v1").variables


# ------------------------------------------------------------------------------------- switches, actions, costs
def test_a_switch_selects_what_a_method_does():
    body = (
        "@action\ndef go(self):\n    if self.rule == 'new':\n        self.n = 1\n    elif self.fast:\n"
        "        self.n = 2\n    else:\n        self.n = self.size\n"
    )
    found = {}
    for name in ("v1", "v2", "v1+faster"):
        instance = made(body).variant(name, size=3)
        assert require_agreement(instance) == (2, 2)
        (taken,) = steps(instance, instance.initial[0])
        found[name] = taken.state["n"]
    assert found == {"v1": 3, "v2": 1, "v1+faster": 2}


@pytest.mark.parametrize("variant, size, there", [("v1", 1, False), ("v1+faster", 1, True)])
def test_an_action_may_be_there_only_with_a_switch(variant, size, there):
    instance = made(
        "@action(when='fast')\ndef go(self):\n    self.n = 1\n@action\ndef stay(self):\n    pass\n"
    ).variant(variant, size=size)
    assert ("go" in {t.action for t in instance.transitions}) == there
    assert ("go" in {t.action for t in steps(instance, instance.initial[0])}) == there


def test_an_action_may_be_there_only_with_a_parameter():
    model = made(
        "extra = Param(0, 0, 1)\n@action(when='extra')\ndef go(self):\n    self.n = 1\n@action\ndef stay(self):\n"
        "    pass\n"
    )
    assert ["go" in {t.action for t in model.variant("v1", extra=e).transitions} for e in (0, 1)] == [False, True]


def test_an_action_of_two_universes_is_one_for_each_pair():
    instance = made(
        "@action(per=(obj, obj))\ndef go(self, a, b):\n    require(a != b and not self.on[a])\n    self.on[a] = True\n"
    ).variant("v1")
    assert {e.labels for e in instance.events} == {("p", "p"), ("p", "q"), ("q", "p"), ("q", "q")}
    labels = {t.label for t in instance.transitions if not z3.is_false(t.guard)}
    assert labels == {"go(p, q)", "go(q, p)"}
    assert {(t.action, t.args) for t in steps(instance, instance.initial[0])} == {
        ("go", ("p", "q")),
        ("go", ("q", "p")),
    }


def test_a_cost_may_be_a_number_or_a_method_of_the_state_before():
    body = (
        "@action(cost={'ms': 2, 'yields': 'price'})\ndef go(self):\n    require(self.n < 3)\n    self.n += 1\n"
        "def price(self):\n    return self.n * 10\n"
    )
    instance = made(body).variant("v1")
    state, seen = instance.initial[0], []
    while found := list(steps(instance, state)):
        (taken,) = found
        seen.append(taken.costs)
        state = taken.state
    assert seen == [{"ms": 2, "yields": 0}, {"ms": 2, "yields": 10}, {"ms": 2, "yields": 20}]
    assert require_agreement(instance) == (4, 3)


def test_a_cost_of_an_instance_of_an_action_may_depend_on_it():
    body = (
        "@action(per=obj, cost={'ms': 'price'})\ndef go(self, a):\n    self.on[a] = not self.on[a]\n"
        "def price(self, a):\n    return 1 if a == self.obj.p else 5\n"
    )
    instance = made(body).variant("v1")
    assert {(t.args, t.costs["ms"]) for t in steps(instance, instance.initial[0])} == {(("p",), 1), (("q",), 5)}
    require_agreement(instance)


def test_fairness_is_declared_an_action():
    instance = made(
        "@action(fair='strong')\ndef go(self):\n    self.n = 1\n@action\ndef stay(self):\n    pass\n"
    ).variant("v1")
    assert {t.action: t.fair for t in instance.transitions} == {"go": "strong", "stay": None}


def test_an_action_that_can_never_happen_is_there_with_a_false_guard():
    instance = made(
        "@action\ndef go(self):\n    require(self.rule == 'new')\n    self.n = 1\n@action\ndef stay(self):\n    pass\n"
    ).variant("v1")
    assert [str(t.guard) for t in instance.transitions if t.action == "go"] == ["False"]


def test_choices_that_make_no_difference_are_no_transitions():
    instance = made(
        "@action\ndef go(self):\n    x = choose(1, 2, 3)\n    y = choose(1, 2)\n    self.n = y\n"
    ).variant("v1")
    assert sorted(t.label for t in instance.transitions) == ["go()[1]", "go()[2]"]


def test_too_many_choices_are_an_error():
    lines = (
        "".join(f"    x{i} = choose(0, 1)\n" for i in range(13))
        + f"    self.n = min(3, {' + '.join(f'x{i}' for i in range(13))})\n"
    )
    with pytest.raises(ModelError, match="combinations of choices"):
        assert made("@action\ndef go(self):\n" + lines).variant("v1").transitions


# ---------------------------------------------------------------------------------------------------- the states
def test_initial_states_are_made_by_init_with_its_choices():
    instance = made(
        "@init\ndef begin(self):\n    self.n = choose(0, 1, 2, 3)\n    require(self.n != 2)\n"
        "    self.on[choose(self.obj)] = True\n"
    ).variant("v1")
    assert sorted((i["n"], i["on[p]"], i["on[q]"]) for i in instance.initial) == sorted(
        (n, p, not p) for n in (0, 1, 3) for p in (False, True)
    )


def test_final_states():
    instance = made(
        "@final\ndef full(self):\n    return self.n == self.size\n@final\ndef on_(self):\n"
        "    return self.on[self.obj.p]\n"
        "@action\ndef go(self):\n    require(self.n < 3)\n    self.n += 1\n"
    ).variant("v1", size=3)
    state = instance.initial[0]
    for n, on in ((0, False), (3, False), (0, True)):
        here = {**state, "n": n, "on[p]": on}
        assert instance.is_final(here) == (n == 3 or on)
    assert instance.final is not None and made().variant("v1").final is None


@pytest.mark.parametrize("engine", ["explicit", "reference"])
def test_a_value_that_leaves_its_domain_is_an_error_where_it_is_set(engine):
    instance = made("@action\ndef go(self):\n    self.n += 2\n").variant("v1")
    with pytest.raises(ModelError, match="n.* 4.*domain") as error:
        decide(instance, Property("p", None, "", Invariant(always)), engine)
    assert error.value.line


def always(m):
    return True


def test_what_never_changes_is_a_constant_of_the_transitions():
    instance = made(
        "@action\ndef go(self):\n    require(self.on[self.obj.p] == self.on[self.obj.q])\n    self.n = 1\n"
    ).variant("v1")
    assert set(instance.frozen) == {"on[p]", "on[q]"}
    (step,) = instance.transitions
    assert z3.is_true(step.guard)


def test_states_and_memories_are_the_same_thing():
    instance = made("@action\ndef go(self):\n    self.n = 1\n").variant("v1")
    state = instance.initial[0]
    assert instance.state(instance.memory(state)) == state
    assert instance.memory(state) == {("n", None): 0, ("on", 0): False, ("on", 1): False}


# ----------------------------------------------------------------------------------------- programs from elsewhere
def test_a_function_from_elsewhere_takes_the_methods_place():
    model = made(
        "@kernel('kernel/x.c')\ndef f(self, a):\n    return 1\n@action\ndef go(self):\n    self.n = self.f(2)\n"
    )
    other = s.Program("f", ("a",), (s.Return(s.Local("a")),), s.Loc("kernel/x.c", 5), "kernel", language="c")
    instance = model.variant("v1").with_programs({"f": other})
    (taken,) = steps(instance, instance.initial[0])
    assert taken.state["n"] == 2 and instance.sources == {"f": "kernel/x.c:5"}
    require_agreement(instance)
    (before,) = steps(model.variant("v1"), model.variant("v1").initial[0])
    assert before.state["n"] == 1


def test_a_function_from_elsewhere_takes_as_many_arguments():
    model = made("@kernel('kernel/x.c')\ndef f(self, a):\n    return 1\n")
    with pytest.raises(ModelError, match="f takes 2 arguments here, 1 in the model"):
        model.variant("v1").with_programs({"f": s.Program("f", ("a", "b"), ())})


def test_a_cost_that_names_no_method_is_an_error():
    instance = made("@action(cost={'ms': 'prize'})\ndef go(self):\n    self.n = 1\n").variant("v1")
    with pytest.raises(ModelError, match="prize"):
        assert instance.transitions


def test_an_action_that_hangs_on_nothing_declared_is_an_error():
    model = made("@action(when='extra')\ndef go(self):\n    self.n = 1\n")
    with pytest.raises(ModelError, match="extra"):
        assert model.variant("v1").transitions
