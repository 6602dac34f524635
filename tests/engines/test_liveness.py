# SPDX-License-Identifier: GPL-2.0-only
"""``Eventually`` and ``AlwaysPossible``: known answers, brute force over sets of states, engines among themselves."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from dataclasses import replace
from itertools import combinations
from typing import Any

import networkx as nx
import pytest
import z3
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from schedproof.engines import decide
from schedproof.engines.bmc.engine import Bmc
from schedproof.engines.explicit.engine import Explicit
from schedproof.errors import InputError, ModelError
from schedproof.property import AlwaysPossible, Eventually, Property
from schedproof.replay import ReplayError, replay, to_trace
from schedproof.report import render
from schedproof.trace import from_json
from schedproof.verdict import Refuted, Unknown
from tests.engines.handmade import SMALL_MODEL, Handmade, end, graph, prop, value_of, walk
from tests.engines.test_agreement import CHANGE, COST, CUT, GUARD, WAITING, untold
from tests.engines.test_explicit_worst_case import CLASSES, COUNT, EDGES, Edge, shown_is_fair
from tests.loading import model_of

LONG = bool(os.environ.get("SCHEDPROOF_LONG_TESTS"))
ENGINE = Explicit(trace_maker=untold)


def at(instance: Handmade, states: set[int]) -> z3.BoolRef:
    return z3.Or([instance.variables["at"].term == s for s in sorted(states)] or [z3.BoolVal(False)])


# --------------------------------------------------------------------- graphs, against all sets of states there are
def due_states(edges: list[Edge], goal: set[int], asked: set[int]) -> set[int]:
    """States without the goal that are met behind one that asks for it, with no goal between; 0 is the start."""
    whole = nx.DiGraph([(a, b) for a, b, _ in edges])
    whole.add_node(0)
    begin = ({0} | nx.descendants(whole, 0)) & asked - goal
    short = nx.DiGraph([(a, b) for a, b, _ in edges if not {a, b} & goal])
    short.add_nodes_from(begin)
    return begin.union(*(nx.descendants(short, s) for s in begin)) if begin else set()


def counts(instance: Handmade, edges: list[Edge], within: set[int]) -> bool:
    """Whether a run can end in some states, or stay there for ever, fairly and with time going on.

    The states that a run meets again and again are some set, strongly connected by the edges that it takes again and
    again; with all edges inside the set no condition is harder to meet.
    """
    if any(not any(a == s for a, _, _ in edges) for s in within):
        return True
    classes: dict[str, list[int]] = {}
    for i, t in enumerate(instance.transitions):
        if any(o.fair and o.action == t.action for o in instance.transitions):
            classes.setdefault(t.action, []).append(i)
    strong = {t.action for t in instance.transitions if t.fair == "strong"}
    for size in range(1, len(within) + 1):
        for chosen in map(set, combinations(sorted(within), size)):
            inside = [i for i, (a, b, _) in enumerate(edges) if a in chosen and b in chosen]
            shape = nx.DiGraph([edges[i][:2] for i in inside])
            if set(shape) != chosen or not nx.is_strongly_connected(shape) or not any(edges[i][2] for i in inside):
                continue
            for action, members in classes.items():
                enabled = {edges[i][0] for i in members} & chosen
                if not set(members) & set(inside) and (enabled if action in strong else enabled == chosen):
                    break
            else:
                return True
    return False


PLACES = st.sets(st.integers(0, COUNT - 1))


@settings(max_examples=300 if LONG else 120, deadline=None)
@given(EDGES, PLACES, st.none() | PLACES, CLASSES)
@example([(0, 0, 1)], set(), None, {})
@example([(0, 1, 1)], set(), None, {})                                   # the run ends in 1
@example([(0, 0, 0)], {1}, None, {})                                     # no time passes
@example([(0, 1, 1), (1, 0, 0), (0, 2, 0), (2, 2, 1)], {2}, None, {2: ("A", "weak")})
@example([(0, 1, 1), (1, 0, 0), (0, 2, 0), (2, 2, 1)], {2}, None, {2: ("A", "strong")})
@example([(0, 1, 1), (1, 0, 0), (0, 2, 0), (2, 2, 1)], {1}, {2}, {})
@example([(0, 1, 1), (1, 2, 1), (2, 0, 1)], {2}, {1}, {})
@example([(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 3, 1)], {1}, {1}, {})     # the goal holds where it is asked for
def test_goals_on_graphs(edges, goal, asked, fair):
    instance = graph(edges, COUNT, fair=fair)
    asking = asked
    if asked is None:
        asking = {0}
    reachable = nx.descendants(nx.DiGraph([(a, b) for a, b, _ in edges] + [(0, 0)]), 0) | {0}
    kind = Eventually(at(instance, goal), None if asked is None else at(instance, asked), "ms")
    found = ENGINE.find(instance, prop(kind))
    if asked is not None and not asked & reachable:
        assert (found.outcome, found.reason) == ("vacuous", "no reachable state asks for the goal")
        return
    due = due_states(edges, goal, asking)
    if counts(instance, edges, due):
        assert found.outcome == "refuted"
        check_run(instance, edges, found.path, goal, asking, due)
        return
    behind = (asking & reachable).union(*(nx.descendants(nx.DiGraph([(a, b) for a, b, _ in edges] + [(s, s)]), s)
                                          for s in asking & reachable))
    assert found.outcome == ("proved" if counts(instance, edges, behind) else "vacuous"), (found, behind)


def check_run(instance, edges, path, goal, asking, due):
    """The run is one, the goal is due from some state on, and then it ends, or goes round fairly with time passing."""
    steps = walk(instance, path)
    places = [s["at"] for s, _ in steps] + [end(instance, path)["at"]]
    begun = [i for i, p in enumerate(places) if p in asking and not set(places[i:]) & goal]
    assert begun and (not path.cycle or begun[0] <= len(path.stem))
    assert set(places[len(path.stem):]) <= due
    if not path.cycle:
        assert not any(a == places[-1] for a, _, _ in edges)
        return
    around = steps[len(path.stem):]
    assert any(value_of(t.costs["ms"], instance.variables, s) for s, t in around)
    assert shown_is_fair(instance, [s for s, _ in around], [t for _, t in around])


@settings(max_examples=100, deadline=None)
@given(EDGES, PLACES)
@example([(0, 1, 1), (1, 2, 1), (2, 1, 1)], {0})
@example([(0, 1, 1), (1, 0, 1)], {5})
def test_what_stays_possible_on_graphs(edges, goal):
    instance = graph(edges, COUNT)
    whole = nx.DiGraph([(a, b) for a, b, _ in edges] + [(0, 0)])
    reachable = nx.descendants(whole, 0) | {0}
    hopeless = {s for s in reachable if s not in goal and not nx.descendants(whole, s) & goal}
    found = ENGINE.find(instance, prop(AlwaysPossible(at(instance, goal))))
    assert found.outcome == ("refuted" if hopeless else "proved")
    if hopeless:
        distance = nx.single_source_shortest_path_length(whole, 0)
        assert end(instance, found.path)["at"] in hopeless
        assert len(found.path.stem) == min(distance[s] for s in hopeless)


# ------------------------------------------------------------------------------------------------------- details
def test_the_run_to_the_cycle_is_a_shortest_one():
    """The goal is asked for in 3, two steps away, and in 5, one step away; from 5 it takes longer to the cycle 6."""
    edges = [(0, 1, 0), (1, 3, 0), (3, 6, 0), (0, 5, 0), (5, 7, 0), (7, 8, 0), (8, 6, 0), (6, 6, 1)]
    instance = graph(edges, 9)
    found = ENGINE.find(instance, prop(Eventually(at(instance, set()), at(instance, {3, 5}), "ms")))
    assert [t.action for t in found.path.stem] == ["edge0", "edge1", "edge2"]
    assert [t.action for t in found.path.cycle] == ["edge7"]


def test_without_costs_every_run_counts():
    instance = graph([(0, 1, 0), (1, 0, 0)], 3)
    bare = replace(instance, transitions=tuple(replace(t, costs={}) for t in instance.transitions))
    assert ENGINE.find(bare, prop(Eventually(at(instance, {2})))).outcome == "refuted"
    assert ENGINE.find(instance, prop(Eventually(at(instance, {2})))).outcome == "vacuous"      # they all cost 0


def test_time_is_the_named_cost_or_any():
    instance = graph([(0, 0, 0), (0, 1, 1), (1, 1, 1)], 2)
    first = instance.transitions[0]
    two = replace(instance, transitions=(replace(first, costs={"yields": z3.IntVal(1)}), *instance.transitions[1:]))
    goal = at(instance, {1})
    assert ENGINE.find(two, prop(Eventually(goal))).outcome == "refuted"
    assert ENGINE.find(two, prop(Eventually(goal, cost="ms"))).outcome == "proved"
    assert ENGINE.find(two, prop(Eventually(goal, cost="yields"))).outcome == "refuted"
    nothing = ENGINE.find(two, prop(Eventually(goal, cost="bytes")))
    assert (nothing.outcome, nothing.reason) == ("vacuous", "no action has the cost bytes")


def test_a_step_of_an_undeclared_value_is_no_way_on_and_no_step_that_fairness_demands():
    instance = graph([(0, 0, 1), (0, 1, 0), (1, 1, 1)], 2, fair={1: ("A", "weak")})
    free = replace(instance, transitions=tuple(replace(t, free=("se->slice",)) if t.action == "A" else t
                                               for t in instance.transitions))
    goal = at(instance, {1})
    for kind in (Eventually(goal), AlwaysPossible(goal)):
        assert ENGINE.find(instance, prop(kind)).outcome == "proved"
        found = ENGINE.find(free, prop(kind))
        assert (found.outcome, "undeclared values" in found.reason) == ("unknown", True)


def test_what_an_undeclared_value_makes_impossible_is_no_alarm():
    instance = graph([(0, 1, 1), (1, 1, 1), (0, 0, 1)], 2)
    free = replace(instance, transitions=(replace(instance.transitions[0], free=("se->slice",)),
                                          *instance.transitions[1:]))
    for kind in (AlwaysPossible(at(instance, {0})), Eventually(at(instance, {0}), at(instance, {1}))):
        assert ENGINE.find(instance, prop(kind)).outcome == "refuted"
        assert ENGINE.find(free, prop(kind)).outcome == "unknown"


def test_a_state_that_only_an_undeclared_value_leads_on_from_is_no_end():
    instance = graph([(0, 1, 1), (1, 0, 1)], 2)
    free = replace(instance, transitions=(instance.transitions[0], replace(instance.transitions[1], free=("x",))))
    assert ENGINE.find(free, prop(Eventually(at(instance, {0}), at(instance, {1})))).outcome == "proved"


def test_more_than_64_fair_actions_are_not_decided_where_it_matters():
    edges = [(0, 0, 1), *((0, 1, 1) for _ in range(65)), (1, 1, 1)]
    instance = graph(edges, 2, fair={i: (f"a{i}", "weak") for i in range(1, 66)})
    found = ENGINE.find(instance, prop(Eventually(at(instance, {1}))))
    assert found.outcome == "unknown" and "more than 64 fair actions" in found.reason


# -------------------------------------------------------------------------------------------------- whole models
SPINNER = """\
class M(Model):
    held = Bool(init=True)
    up = Bool()
    releases = {"v1": {}}

    @action(cost={"ms": 1})
    def tick(self):
        self.up = not self.up

    @action(FAIR)
    def release(self):
        require(self.held)
        require(GUARD)
        self.held = False

    @action
    def take(self):
        require(TAKES)
        require(not self.held)
        self.held = True


def goal(m):
    return not m.held

def held(m):
    return m.held

def never(m):
    return False
"""


def spinner(fair: str, guard: str = "True", takes: str = "True") -> tuple[Any, Any]:
    text = SPINNER.replace("FAIR", fair).replace("GUARD", guard).replace("TAKES", takes)
    model = model_of(text)
    return model, sys.modules[model.__module__]


@pytest.mark.parametrize(("fair", "guard", "expected"), [
    ("", "True", "refuted"), ("fair='weak'", "True", "proved"), ("fair='strong'", "True", "proved"),
    ("", "self.up", "refuted"), ("fair='weak'", "self.up", "refuted"), ("fair='strong'", "self.up", "proved")])
def test_weak_and_strong_fairness(fair, guard, expected):
    """Where the release is possible only every other tick, weak fairness does not ask for it."""
    model, module = spinner(fair, guard)
    for kind in (Eventually(module.goal), Eventually(module.goal, module.held, "ms")):
        found = require_same(model.variant("v1"), Property("released", model, "It is released.", kind))
        assert found.name == expected


def test_what_can_be_had_stays_possible_without_fairness():
    model, module = spinner("", "self.up")
    for formula, expected in ((module.goal, "proved"), (module.held, "proved"), (module.never, "refuted")):
        prop = Property("p", model, "", AlwaysPossible(formula))
        assert require_same(model.variant("v1"), prop).name == expected
    model, module = spinner("", "self.up", "self.held")                  # never taken again: that action is dead
    prop = Property("p", model, "", AlwaysPossible(module.held))
    found = require_same(model.variant("v1"), prop)
    assert found.name == "refuted" and [s.label for s in found.trace.stem] == ["tick()", "release()"]
    assert replay(found.trace, model.variant("v1"), prop).name == "refuted"


ENDS = """\
class M(Model):
    n = Range(0, 3)
    ready = Bool()
    releases = {"v1": {}}

    @action(cost={"ms": 1})
    def up(self):
        require(self.n < 3)
        self.n += 1

    @final
    def over(self):
        return FINAL


def two(m):
    return m.n == 2

def one(m):
    return m.n == 1

def three(m):
    return m.n == 3

def ready(m):
    return m.ready
"""


def test_a_run_that_ends_without_the_goal_breaks_it():
    model = model_of(ENDS.replace("FINAL", "self.n == 3"))
    module, instance = sys.modules[model.__module__], model.variant("v1")
    reached = Property("p", model, "", Eventually(module.two, module.one))
    assert require_same(instance, reached).name == "proved"
    lost = Property("p", model, "", Eventually(module.one, module.two))
    found = require_same(instance, lost)
    assert (found.name, len(found.trace.stem), found.trace.cycle) == ("refuted", 3, ())
    assert [s.waiting for s in found.trace.stem] == [False, False, True]
    assert Bmc(depth=4).decide(instance, lost).name == "refuted"
    assert Bmc(depth=4).decide(instance, reached).name == "unknown"
    text = render(found.trace, "text")
    assert "nothing can happen after the last step, and the goal has not been reached" in text
    assert "wait ends" not in text
    short = {**json.loads(json.dumps(found.trace.to_json()))}
    short["stem"] = short["stem"][:-1]
    with pytest.raises(InputError, match="something can still happen"):
        replay(from_json(short, "x"), instance, lost)


def test_a_run_that_must_not_end_is_an_error_of_the_model():
    model = model_of(ENDS.replace("FINAL", "False"))
    module, instance = sys.modules[model.__module__], model.variant("v1")
    for kind in (Eventually(module.one, module.two), AlwaysPossible(module.three)):
        for engine in ("explicit", "reference"):
            with pytest.raises(ModelError, match="nothing can happen"):
                decide(instance, Property("p", model, "", kind), engine)
    assert Bmc(depth=4).decide(instance, Property("p", model, "", Eventually(module.one, module.two))).name == "unknown"


def test_vacuous_goals():
    model = model_of(ENDS.replace("FINAL", "self.n == 3"))
    module, instance = sys.modules[model.__module__], model.variant("v1")
    found = require_same(instance, Property("p", model, "", Eventually(module.one, module.ready)))
    assert (found.name, found.reason) == ("vacuous", "no reachable state asks for the goal")
    never = Property("p", model, "", AlwaysPossible(module.ready))
    found = require_same(instance, never)
    assert found.name == "refuted" and not found.trace.steps       # from the start on: nothing to be vacuous about
    assert "no step and no sequence of steps leads from here" in render(found.trace, "text")
    assert replay(found.trace, instance, never).name == "refuted"


def test_a_cycle_that_an_engine_claims_is_looked_at_again():
    """Each way in which it can be wrong, on the transitions of a real instance."""
    model, module = spinner("fair='weak'")
    instance = model.variant("v1")
    moves = {t.action: t for t in instance.transitions}
    first = instance.initial[0]
    released = Property("released", model, "It is released.", Eventually(module.goal))
    for stem, cycle, why in (([], ["tick", "tick"], "release.., which is weakly fair, can happen and never does"),
                             ([], ["release", "take"], "goal is reached|goal is not due"),
                             ([], ["tick"], "does not come back"),
                             ([], [], "the run does not end here")):
        with pytest.raises(ReplayError, match=why):
            to_trace(instance, released, first, [moves[a] for a in stem], [moves[a] for a in cycle], "refuted", "",
                     None)
    lazy = model_of(SPINNER.replace("FAIR", "").replace("GUARD", "True").replace("TAKES", "True").replace(
        "cost={\"ms\": 1}", "cost={'ms': 'price'}").replace("    @action\n", "    def price(self):\n"
                                                            "        return 0 if self.held else 1\n\n    @action\n"))
    instance = lazy.variant("v1")
    moves = {t.action: t for t in instance.transitions}
    with pytest.raises(ReplayError, match="no time passes"):
        to_trace(instance, replace(released, kind=Eventually(sys.modules[lazy.__module__].goal)), instance.initial[0],
                 [], [moves["tick"], moves["tick"]], "refuted", "", None)


def test_a_stored_cycle_is_looked_at_again():
    model, module = spinner("fair='weak'", "self.up")
    instance = model.variant("v1")
    prop = Property("released", model, "It is released.", Eventually(module.goal))
    found: Any = decide(instance, prop, "explicit")
    trace = from_json(json.loads(json.dumps(found.trace.to_json())), "x")
    assert (len(trace.cycle), trace.total, trace.unit) == (2, 2, "ms")
    assert isinstance(replay(trace, instance, prop), Refuted)
    text = render(trace, "text")
    assert "repeats for ever: these 2 steps; each round adds 2 ms to the wait" in text
    assert "the run is fair to every action that is declared fair" in " ".join(text.split())
    assert all(s.waiting for s in trace.steps)
    stronger, _ = spinner("fair='strong'", "self.up")
    with pytest.raises(InputError, match="strongly fair, can happen and never does"):
        replay(trace, stronger.variant("v1"), prop)
    timeless = Property("released", model, "", Eventually(module.goal, cost="yields"))
    with pytest.raises(InputError, match="no time passes"):
        replay(trace, instance, timeless)


def test_replay_says_what_it_did_not_see_again(monkeypatch):
    model = model_of(ENDS.replace("FINAL", "self.n == 3"))
    instance = model.variant("v1")
    prop = Property("p", model, "", AlwaysPossible(sys.modules[model.__module__].ready))
    found: Any = decide(instance, prop, "explicit")
    monkeypatch.setattr("schedproof.forever.way_on", lambda *_: ("unknown", 3))
    again = replay(found.trace, instance, prop)
    assert isinstance(again, Unknown) and "was not seen again" in again.reason
    monkeypatch.undo()
    possible = replace(prop, kind=AlwaysPossible(sys.modules[model.__module__].three))
    with pytest.raises(InputError, match="can still be reached"):
        replay(found.trace, instance, possible)


# ------------------------------------------------------------------------------------------------- random models
IDLE = ["pass", "require(self.flag)", "require(self.n != 1)", "require(self.cur == NULL)"]
FAIRNESS = ["", "fair='weak'", "fair='strong'", "fair='strong'"]


@st.composite
def models(draw: Any) -> str:
    """A model with fair actions and threads, costs or none, and runs that may end; and two formulas."""
    text, pick = SMALL_MODEL, lambda options: draw(st.sampled_from(options))
    costs = [c.replace("'price'", "1") for c in COST] if draw(st.integers(0, 3)) else [""]
    if draw(st.booleans()):
        text += textwrap.indent(f"@action({pick(costs)})\ndef idle(self):\n    {pick(IDLE)}\n\n", "    ")
    for number in range(draw(st.integers(1, 3))):
        threaded = draw(st.booleans())
        marks = ", ".join(x for x in ("per=obj", pick(costs), pick(FAIRNESS)) if x)
        lines = [pick(GUARD) if not threaded else "pass"]
        for _ in range(draw(st.integers(1, 3))):
            lines.append(pick(CHANGE))
            if threaded and draw(st.booleans()):
                lines.append(pick(CUT))
        body = "\n".join(lines)
        if threaded and draw(st.booleans()):
            body = "while True:\n" + textwrap.indent(body + "\nstep()", "    ")
        head = f"@{'thread' if threaded else 'action'}({marks})\ndef go{number}(self, me):\n"
        text += textwrap.indent(head + textwrap.indent(body, "    ") + "\n\n", "    ")
    return text + f"\ndef goal(m):\n    return {pick(WAITING)}\n\ndef asked(m):\n    return {pick(WAITING)}\n"


SEEN: dict[str, int] = {}


def require_same(instance: Any, prop: Property) -> Any:
    """The explicit engine's verdict, which is the reference's and is replayed; bmc finds nothing that is not there."""
    found, plain = decide(instance, prop, "explicit"), decide(instance, prop, "reference")
    assert found.name == plain.name, (found, plain)
    if found.name == "refuted":
        trace = from_json(json.loads(json.dumps(found.trace.to_json())), "trace")  # type: ignore[attr-defined]
        assert replay(trace, instance, prop).name == "refuted"
    return found


@settings(max_examples=1000 if LONG else 12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(models())
def test_random_models(text):
    model = model_of(text)
    module, instance = sys.modules[model.__module__], model.variant("v1")
    for kind in (Eventually(module.goal), Eventually(module.goal, module.asked), AlwaysPossible(module.goal)):
        found = require_same(instance, Property("p", model, "", kind))
        shape = f"{kind.word} {found.name}"
        SEEN[shape] = SEEN.get(shape, 0) + 1
        if isinstance(kind, Eventually) and "fair=" in text:
            loose = model_of(text.replace(", fair='weak'", "").replace(", fair='strong'", "")).variant("v1")
            if decide(loose, Property("p", model, "", kind), "explicit").name != found.name:
                SEEN["hangs on fairness"] = SEEN.get("hangs on fairness", 0) + 1


@settings(max_examples=200 if LONG else 6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(models())
def test_bounded_runs_break_a_goal_exactly_when_it_can_be_broken(text):
    """bmc finds a run for what is refuted, if its depth suffices, and none for what is not."""
    model = model_of(text)
    module, instance = sys.modules[model.__module__], model.variant("v1")
    prop = Property("p", model, "", Eventually(module.goal, module.asked))
    found: Any = decide(instance, prop, "explicit")
    depth = min(6, len(found.trace.steps)) if found.name == "refuted" else 4
    bounded = Bmc(depth=depth).decide(instance, prop)
    if found.name == "refuted" and len(found.trace.steps) <= 6:
        assert bounded.name == "refuted"
    elif found.name != "refuted":
        assert bounded.name == "unknown"


def test_the_random_models_have_all_verdicts():
    if SEEN:
        print("\n" + ", ".join(f"{name}: {n}" for name, n in sorted(SEEN.items())))
        assert {"eventually refuted", "always_possible refuted", "always_possible proved"} <= set(SEEN)
    if sum(SEEN.values()) > 1000:
        assert SEEN["eventually proved"] > 50 and SEEN["hangs on fairness"] > 50
