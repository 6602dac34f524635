# SPDX-License-Identifier: GPL-2.0-only
"""The worst case is exact: against value iteration, a saturating monitor, and all sets of states for fairness."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import networkx as nx
import z3
from hypothesis import example, given, settings
from hypothesis import strategies as st

from schedproof.engines.explicit.engine import Explicit
from schedproof.model.transition import Transition
from schedproof.property import Invariant, Within, WorstCase
from tests.engines.handmade import Handmade, by_name, end, graph, number, prop, rule, truth, value_of, walk

Edge = tuple[int, int, int]
COUNT = 6
EDGES = st.lists(st.tuples(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1), st.sampled_from([0, 0, 1, 2, 5])),
                 min_size=1, max_size=12)
WAITING = st.sets(st.integers(0, COUNT - 1))
ENGINE = Explicit()


def waits_at(instance: Handmade, states: set[int]) -> z3.BoolRef:
    return z3.Or([instance.variables["at"].term == s for s in sorted(states)] or [z3.BoolVal(False)])


def running(edges: list[Edge]) -> tuple[list[Edge], set[int]]:
    """The edges, with a step that costs 1 and changes nothing at a place of its own, so that time can always pass."""
    edges = [*edges, (COUNT, COUNT, 1), *((s, COUNT, 0) for s in range(COUNT))]
    return edges, nx.descendants(nx.MultiDiGraph([(a, b) for a, b, _ in edges]), 0) | {0}


def plain_worst(edges: list[Edge], reachable: set[int], waiting: set[int]) -> int | str | None:
    """The worst wait by value iteration over walks of growing length; None when nobody waits."""
    inside = waiting & reachable
    if not inside:
        return None
    best = dict.fromkeys(inside, 0)
    for _ in range(2 * len(inside) + 2):
        after = {s: max((c + best.get(t, 0) for a, t, c in edges if a == s), default=0) for s in inside}
        if after == best:
            return max(best.values())
        best = after
    return "unbounded"


@settings(max_examples=120, deadline=None)
@given(EDGES, WAITING)
@example([(0, 1, 5), (1, 2, 0), (2, 1, 0), (2, 3, 2)], {0, 1, 2})
@example([(0, 1, 1), (1, 0, 0)], {0, 1})
@example([(0, 0, 5)], {0})
def test_the_worst_case_is_that_of_value_iteration(edges, waiting):
    edges, reachable = running(edges)
    instance = graph(edges, COUNT + 1)
    expected = plain_worst(edges, reachable, waiting)
    found = ENGINE.find(instance, prop(WorstCase(waits_at(instance, waiting), "ms")))
    if expected is None:
        assert (found.outcome, found.reason) == ("vacuous", "no state waits")
        return
    assert (found.outcome, found.worst) == ("refuted" if expected == "unbounded" else "proved", expected)
    check_path(instance, found.path, waiting, expected)


def check_path(instance, path, waiting, expected):
    """The path is a run, shows the wait that is claimed, and ends when the wait does."""
    steps = walk(instance, path)
    costs = [value_of(t.costs["ms"], instance.variables, s) for s, t in steps]
    places = [s["at"] for s, _ in steps]
    if expected == "unbounded":
        around = len(path.stem)
        assert path.cycle and set(places[around:]) <= waiting
        assert sum(costs[around:]) == path.total > 0
        return
    last = len(steps)
    while last > 0 and places[last - 1] in waiting:
        last -= 1
    assert sum(costs[last:]) == path.total == expected
    assert not path.cycle and end(instance, path)["at"] not in waiting     # here every wait can end


@settings(max_examples=40, deadline=None)
@given(EDGES, WAITING)
def test_the_worst_case_is_that_of_a_saturating_monitor(edges, waiting):
    edges, reachable = running(edges)
    instance = graph(edges, COUNT + 1)
    top = 5 * (COUNT + 2)
    clock, waits = number("clock", 0, top), waits_at(instance, waiting)
    watched = [replace(t, updates={**t.updates, "clock": z3.If(waits, least(clock.term + t.costs["ms"], top), 0)})
               for t in instance.transitions]
    monitored = replace(instance, variables={**instance.variables, "clock": clock}, transitions=tuple(watched),
                        initial=({"at": 0, "clock": 0},))
    found = ENGINE.find(instance, prop(WorstCase(waits, "ms")))
    if found.outcome == "vacuous":
        assert not waiting & reachable
        return
    worst = top if found.worst == "unbounded" else found.worst
    assert ENGINE.find(monitored, prop(Invariant(clock.term <= worst))).outcome == "proved"
    if worst:
        assert ENGINE.find(monitored, prop(Invariant(clock.term < worst))).outcome == "refuted"


def least(a, b):
    return z3.If(a <= b, a, b)


# ---------------------------------------------------------------------------------------------------- fairness
FAIR = st.tuples(st.sampled_from(["A", "B"]), st.sampled_from(["weak", "strong"]))
CLASSES = st.dictionaries(st.integers(0, 11), FAIR)


def fair_forever(instance: Handmade, edges: list[Edge], inside: set[int]) -> bool:
    """Whether some set of waiting states, strongly connected by the edges between them, is fair and costs something.

    The states and edges that a run goes through for ever are such a set with some of its edges; with all of them
    no condition is harder to meet.
    """
    classes: dict[str, list[int]] = {}
    strong = {t.action for t in instance.transitions if t.fair == "strong"}
    for i, t in enumerate(instance.transitions):
        if t.action in strong or any(o.fair and o.action == t.action for o in instance.transitions):
            classes.setdefault(t.action, []).append(i)
    for size in range(1, len(inside) + 1):
        for chosen in map(set, combinations(sorted(inside), size)):
            within = [i for i, (a, b, _) in enumerate(edges) if a in chosen and b in chosen]
            shape = nx.DiGraph([edges[i][:2] for i in within])
            if set(shape) != chosen or not nx.is_strongly_connected(shape) or not any(edges[i][2] for i in within):
                continue
            if all(served(edges, chosen, within, members, action in strong) for action, members in classes.items()):
                return True
    return False


def served(edges: list[Edge], states: set[int], taken: list[int], members: list[int], strong: bool) -> bool:
    if set(members) & set(taken):
        return True
    enabled = {edges[i][0] for i in members} & states
    return not enabled if strong else enabled != states


@settings(max_examples=150, deadline=None)
@given(EDGES, st.sets(st.integers(0, COUNT - 1), min_size=2), CLASSES)
@example([(0, 1, 1), (1, 0, 0), (0, 2, 0)], {0, 1}, {2: ("A", "weak")})
@example([(0, 1, 1), (1, 0, 0), (0, 2, 0)], {0, 1}, {2: ("A", "strong")})
@example([(0, 1, 1), (1, 0, 0), (0, 2, 0), (2, 0, 0)], {0, 1, 2}, {2: ("A", "strong")})
@example([(0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 2, 0), (2, 0, 0)], {0, 1, 2}, {1: ("A", "strong"), 3: ("B", "strong")})
@example([(0, 1, 1), (1, 0, 0), (0, 2, 0), (2, 3, 1), (3, 2, 0)], {0, 1, 2, 3}, {2: ("A", "strong")})
def test_a_wait_for_ever_is_called_starved_exactly_when_a_fair_run_has_it(edges, waiting, fair):
    edges, reachable = running(edges)
    instance = graph(edges, COUNT + 1, fair=fair)
    found = ENGINE.find(instance, prop(WorstCase(waits_at(instance, waiting), "ms")))
    if found.worst != "unbounded":
        assert plain_worst(edges, reachable, waiting) != "unbounded"
        return
    assert found.starved is fair_forever(instance, edges, waiting & reachable)
    steps = walk(instance, found.path)[len(found.path.stem):]
    if found.starved:
        assert shown_is_fair(instance, [s for s, _ in steps], [t for _, t in steps])
    assert {s["at"] for s, _ in steps} <= waiting
    assert sum(value_of(t.costs["ms"], instance.variables, s) for s, t in steps) == found.path.total > 0


def shown_is_fair(instance: Handmade, states: list[dict], taken: list[Transition]) -> bool:
    """Whether the cycle itself, gone round for ever, is fair."""
    for name in {t.action for t in instance.transitions if t.fair}:
        members = [t for t in instance.transitions if t.action == name]
        enabled = [any(value_of(t.guard, instance.variables, s) for t in members) for s in states]
        strong = any(t.fair == "strong" for t in members)
        if not any(t.action == name for t in taken) and (any(enabled) if strong else all(enabled)):
            return False
    return True


def test_a_cycle_may_have_to_be_longer_to_be_fair():
    """The short cycle 0-1 leaves both fair actions out; the one that is shown takes both."""
    edges = [(0, 1, 1), (1, 0, 0), (1, 2, 0), (2, 1, 0), (1, 3, 0), (3, 1, 0)]
    instance = graph(edges, 4, fair={2: ("left", "strong"), 4: ("right", "strong")})
    found = ENGINE.find(instance, prop(WorstCase(waits_at(instance, {0, 1, 2, 3}), "ms")))
    assert (found.worst, found.starved) == ("unbounded", True)
    assert {t.action for t in found.path.cycle} >= {"left", "right"}


def test_the_classes_of_fairness_are_action_and_objects():
    """wake(b) is never taken: that wake(a) is does not help it."""
    at = number("at", 0, 2)
    rules = [rule("turn", at.term == 0, {"at": 1}, {"ms": 1}),
             rule("wake", at.term == 1, {"at": 0}, args=("a",), fair="strong"),
             rule("wake", at.term == 0, {"at": 2}, args=("b",), fair="strong"),
             rule("idle", at.term == 2, {}, {"ms": 1})]
    one = Handmade(by_name(at), ({"at": 0},), tuple(rules))
    waits = prop(WorstCase(at.term < 2, "ms"))
    assert ENGINE.find(one, waits).starved is False
    same = replace(one, transitions=tuple(replace(t, args=()) for t in rules))
    assert ENGINE.find(same, waits).starved is True


# ------------------------------------------------------------------------------------------ details of the wait
def test_the_step_that_ends_the_wait_counts_and_the_one_that_begins_it_does_not():
    instance = graph([(0, 1, 100), (1, 2, 3), (2, 3, 4), (3, 0, 100)], 4)
    found = ENGINE.find(instance, prop(WorstCase(waits_at(instance, {1, 2}), "ms")))
    assert found.worst == 7
    assert [t.action for t in found.path.stem] == ["edge0", "edge1", "edge2"]


def test_two_waits_are_not_added_up():
    instance = graph([(0, 1, 4), (1, 2, 0), (2, 3, 5), (3, 4, 0), (4, 4, 1)], 5)
    assert ENGINE.find(instance, prop(WorstCase(waits_at(instance, {0, 2}), "ms"))).worst == 5


def test_costs_are_those_of_the_state_before_the_step():
    n, done = number("n", 0, 9), truth("done")
    rules = [rule("work", z3.And(n.term < 9, z3.Not(done.term)), {"n": n.term + 1}, {"ms": n.term * n.term}),
             rule("end", n.term == 9, {"done": True}, {"ms": 1000, "yields": 1})]
    instance = Handmade(by_name(n, done), ({"n": 0, "done": False},), tuple(rules))
    waits = prop(WorstCase(z3.Not(done.term), "ms"))
    assert ENGINE.find(instance, waits).worst == sum(i * i for i in range(9)) + 1000
    assert ENGINE.find(instance, prop(WorstCase(z3.Not(done.term), "yields"))).worst == 1


def test_costs_that_need_more_than_32_bits():
    instance = graph([(0, 1, 1 << 40), (1, 2, (1 << 33) + 1), (2, 2, 1)], 3)
    found = ENGINE.find(instance, prop(WorstCase(waits_at(instance, {0, 1}), "ms")))
    assert found.worst == found.path.total == (1 << 40) + (1 << 33) + 1


def test_costs_whose_sum_may_not_fit_are_unknown():
    instance = graph([(0, 1, 1 << 61), (1, 2, 1 << 61), (2, 2, 1)], 3)
    found = ENGINE.find(instance, prop(WorstCase(waits_at(instance, {0, 1}), "ms")))
    assert found.outcome == "unknown" and "64 bits" in found.reason


def test_a_large_wait_without_cycles():
    """A grid of 1000 x 300 waiting states: the longest of its many paths."""
    x, y = number("x", 0, 999), number("y", 0, 299)
    rules = [rule("x", x.term < 999, {"x": x.term + 1}, {"ms": 1}),
             rule("y", y.term < 299, {"y": y.term + 1}, {"ms": 7}),
             rule("idle", z3.And(x.term == 999, y.term == 299), {}, {"ms": 1})]
    instance = Handmade(by_name(x, y), ({"x": 0, "y": 0},), tuple(rules))
    found = ENGINE.find(instance, prop(Within(999 + 299 * 7, z3.Or(x.term < 999, y.term < 299), "ms")))
    assert (found.outcome, found.worst) == ("proved", 999 + 299 * 7)
    assert len(found.path.stem) == 999 + 299


def test_of_equally_long_waits_the_nearest_to_the_start_is_shown():
    instance = graph([(0, 2, 0), (2, 3, 0), (3, 5, 5), (0, 1, 0), (1, 5, 5), (5, 5, 1)], 6)
    found = ENGINE.find(instance, prop(WorstCase(waits_at(instance, {1, 3}), "ms")))
    assert [t.action for t in found.path.stem] == ["edge3", "edge4"]
