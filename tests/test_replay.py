# SPDX-License-Identifier: GPL-2.0-only
"""A stored trace replays; one that was edited is refused, in one line, or is still a run of the model."""

from __future__ import annotations

import contextlib
import copy
import json
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedproof.engines import decide
from schedproof.errors import InputError
from schedproof.property import Invariant, Property, Reachable, WorstCase
from schedproof.registry import find_property, instance_of
from schedproof.replay import longest_wait, replay
from schedproof.trace import Step, Trace, from_json, load
from tests.loading import model_of, small

QUOTA = find_property("quota_reweight:bounded_wait")[1]
STALE = find_property("quota_reweight:no_stale_run")[1]
SETTINGS = (("period", 2), ("quota", 1), ("ratio", 8))


@cache
def trace_of(variant: str, stale: bool = False) -> Trace:
    prop = STALE if stale else QUOTA
    found: Any = decide(instance_of(prop, variant, dict(SETTINGS)), prop, "explicit")
    assert found.trace is not None
    return found.trace


def again(trace: Trace, prop: Property = QUOTA) -> Any:
    return replay(trace, instance_of(prop, trace.variant, dict(trace.params)), prop)


def edited(**_: Any) -> dict[str, Any]:
    return copy.deepcopy(json.loads(json.dumps(trace_of("v6.1").to_json())))


@pytest.mark.parametrize(
    "variant, verdict", [("v4.14", "refuted"), ("v6.1", "refuted"), ("v4.14+drop_guard", "proved")]
)
def test_a_stored_trace_replays_to_the_same_verdict(variant, verdict, tmp_path):
    trace = trace_of(variant)
    trace.save(tmp_path / "t.json")
    found = again(load(tmp_path / "t.json"))
    assert (found.name, found.worst_case, found.unit) == (verdict, trace.total, "ticks")
    assert found.trace == trace


def test_a_broken_invariant_replays(tmp_path):
    trace = trace_of("v6.1", stale=True)
    trace.save(tmp_path / "t.json")
    assert again(load(tmp_path / "t.json"), STALE).name == "refuted"


def test_a_trace_that_does_not_break_the_invariant_is_refused():
    trace = trace_of("v6.1", stale=True)
    with pytest.raises(InputError, match="does not end in a state that breaks the property"):
        again(from_json({**trace.to_json(), "stem": trace.to_json()["stem"][:-1]}, "x"), STALE)


def test_a_witness_and_an_endless_wait_replay():
    spin = small("spin_handler").SpinHandler
    reach = Property("runs", spin, "", Reachable(holder_runs))
    found: Any = decide(spin.variant("v6.1"), reach, "explicit")
    assert replay(found.trace, spin.variant("v6.1"), reach).name == "proved"
    with pytest.raises(InputError, match="does not end in a state that shows"):
        replay(
            from_json({**json.loads(json.dumps(found.trace.to_json())), "stem": []}, "x"), spin.variant("v6.1"), reach
        )
    model = model_of(
        "class M(Model):\n    on = Bool()\n    releases = {'v1': {}}\n    @action(cost={'ms': 2})\n"
        "    def go(self):\n        self.on = not self.on\n"
    )
    endless = Property("ends", model, "", WorstCase(always, "ms"))
    found = decide(model.variant("v1"), endless, "explicit")
    assert found.worst_case == "unbounded" and len(found.trace.cycle) == 2
    assert replay(found.trace, model.variant("v1"), endless).worst_case == "unbounded"
    data = json.loads(json.dumps(found.trace.to_json()))
    with pytest.raises(InputError, match="come back|cannot be taken|does not do"):
        replay(from_json({**data, "cycle": data["cycle"][:1]}, "x"), model.variant("v1"), endless)


def always(m):
    return True


def holder_runs(m):
    return m.sched[m.vcpu[0]] == "RUN"


def first_change(data: dict[str, Any]) -> tuple[dict[str, Any], str]:
    step = next(s for s in data["stem"] if any(k.startswith("runtime") for k in s["changes"]))
    return step["changes"], "runtime"


def change_value(data):
    changes, name = first_change(data)
    changes[name][1] = "7"


def change_old_value(data):
    changes, name = first_change(data)
    changes[name][0] = "7"


def forget_change(data):
    changes, name = first_change(data)
    del changes[name]


def add_change(data):
    data["stem"][0]["changes"]["phase"] = ["0", "5"] if "phase" not in data["stem"][0]["changes"] else ["5", "0"]


def drop_step(data):
    del data["stem"][len(data["stem"]) // 2]


def drop_first(data):
    del data["stem"][0]


def swap_steps(data):
    at = next(i for i in range(len(data["stem"]) - 1) if data["stem"][i]["action"] != data["stem"][i + 1]["action"])
    data["stem"][at], data["stem"][at + 1] = data["stem"][at + 1], data["stem"][at]


def repeat_step(data):
    data["stem"].insert(1, copy.deepcopy(data["stem"][0]))


def cost_up(data):
    next(s for s in data["stem"] if s["cost"])["cost"] = 2


def cost_of_nothing(data):
    next(s for s in data["stem"] if not s["cost"])["cost"] = 1


def total_up(data):
    data["total"] += 1


def total_down(data):
    data["total"] -= 1


def turn_waiting(data):
    data["stem"][-1]["waiting"] = not data["stem"][-1]["waiting"]


def forget_function(data):
    next(s for s in data["stem"] if s["functions"])["functions"].pop()


def invent_function(data):
    data["stem"][0]["functions"].append({"name": "resched_curr", "place": "", "depth": 0})


def function_depth(data):
    next(s for s in data["stem"] if s["functions"])["functions"][0]["depth"] = 3


def other_action(data):
    data["stem"][0]["action"] = "no_such_action"


def other_argument(data):
    next(s for s in data["stem"] if s["args"])["args"][0] = "nobody"


def other_initial(data):
    data["initial"]["runtime"] = "0"


def forget_initial(data):
    del data["initial"]["runtime"]


def more_initial(data):
    data["initial"]["nothing"] = "0"


def make_cycle(data):
    data["cycle"] = [data["stem"].pop()]


def other_unit(data):
    data["unit"] = "ms"


EDITS = [
    change_value,
    change_old_value,
    forget_change,
    add_change,
    drop_step,
    drop_first,
    swap_steps,
    repeat_step,
    cost_up,
    cost_of_nothing,
    total_up,
    total_down,
    turn_waiting,
    forget_function,
    invent_function,
    function_depth,
    other_action,
    other_argument,
    other_initial,
    forget_initial,
    more_initial,
    make_cycle,
    other_unit,
]


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_refused(edit):
    data = edited()
    edit(data)
    with pytest.raises(InputError) as error:
        again(from_json(data, "x.json"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("variant", ["v6.1+drop_guard", "v6.1+empty_rule=min", "v6.0", "v6.1+nothing"])
def test_another_variant_is_refused(variant):
    data = edited()
    data["variant"] = variant
    with pytest.raises(InputError):
        again(from_json(data, "x.json"))


@pytest.mark.parametrize("params", [{"quota": 2}, {"ratio": 9}, {"ratio": 0}, {"nobody": 1}])
def test_other_parameters_are_refused(params):
    data = edited()
    data["params"].update(params)
    with pytest.raises(InputError):
        again(from_json(data, "x.json"))


def test_a_verdict_that_the_steps_do_not_support_is_not_given():
    """The file's own word for the verdict decides nothing."""
    data = edited()
    data["verdict"] = "proved"
    with contextlib.suppress(InputError):
        assert again(from_json(data, "x.json")).name == "refuted"


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 9),
    st.sampled_from(["", "yes", "0", "gA", "tick", "NULL", "é\n"]),
    st.just(1.5),
    st.just([]),
    st.just({}),
)


def places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to every part of a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [p for k, v in inner for p in [(*above, k), *places(v, (*above, k))]]


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_edits_are_refused_or_change_nothing_that_counts(data):
    file = edited()
    for _ in range(data.draw(st.integers(1, 2))):
        known = places(file)
        way = data.draw(st.sampled_from(known))
        at = file
        for key in way[:-1]:
            at = at[key]
        what = data.draw(st.sampled_from(["replace", "replace", "delete", "copy"]))
        if what == "delete":
            del at[way[-1]]
        elif what == "copy" and isinstance(at, list):
            at.insert(way[-1], copy.deepcopy(at[way[-1]]))
        else:
            at[way[-1]] = data.draw(SCALARS)
        if not file.get("stem") or not places(file):
            break
    try:
        trace = from_json(file, "x.json")
        found = again(trace)
    except InputError as error:
        assert "\n" not in str(error)
        return
    # what is left is a run of the model all the same, step by step; the words around it may differ
    good = trace_of("v6.1")
    assert len(trace.stem) <= len(good.stem) and found.worst_case == longest_wait(trace.stem)
    for old, new in zip(good.stem, trace.stem, strict=False):
        assert (old.action, old.args, dict(old.changes), old.cost, old.waiting, old.functions) == (
            new.action,
            new.args,
            dict(new.changes),
            new.cost,
            new.waiting,
            new.functions,
        )


@pytest.mark.parametrize(
    "steps, longest",
    [
        ([], 0),
        ([(1, True)], 1),
        ([(1, False)], 0),
        ([(1, True), (2, True), (4, False), (1, True)], 3),
        ([(1, True), (0, False), (2, True), (2, True)], 4),
        ([(0, True), (0, True)], 0),
    ],
)
def test_the_longest_wait_is_over_steps_that_start_waiting(steps, longest):
    assert longest_wait(Step("x", cost=c, waiting=w) for c, w in steps) == longest


def test_kinds_without_a_trace_are_refused():
    from schedproof.property import Lemma

    trace = trace_of("v6.1")
    instance = instance_of(QUOTA, "v6.1", dict(SETTINGS))
    with pytest.raises(InputError, match="has no steps|has no trace|does not do"):
        replay(trace, instance, Property("p", QUOTA.model, "", Lemma(always)))
    with pytest.raises(InputError):
        replay(trace, instance, Property("p", QUOTA.model, "", Invariant(always)))
