# SPDX-License-Identifier: GPL-2.0-only
"""quota_reweight against the facts, apart from its properties: exact values, and what its abstractions rest on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import z3

from schedproof.engines import decide
from schedproof.lang.interpret import Interpreter, Oracle
from schedproof.property import Reachable
from schedproof.suite.models.quota_reweight import (
    HALF,
    MAX_SHARES,
    MIN_SHARES,
    NICE_0_LOAD,
    SOME_LOAD,
    QuotaReweight,
)
from schedproof.suite.properties import quota_reweight as properties


def shares(release: str, load: int, load_avg: int, group_load: int, contrib: int,
           group_shares: int = NICE_0_LOAD) -> int:
    """calc_group_shares(qA) of a release for exact values, on the plain interpreter."""
    instance = QuotaReweight.variant(release)
    world = replace(instance.world, constants={**instance.world.constants, "tg_load_avg": (group_load,) * 3,
                                               "tg_load_avg_contrib": (contrib,) * 3})
    memory = instance.memory(instance.initial[0])
    memory |= {("load", 0): load, ("load_avg", 0): load_avg, ("shares", 0): group_shares}
    value = Interpreter(world, memory, Oracle()).run("calc_group_shares", [0]).value
    assert value is not None
    return int(value)


# Facts E.3, with S = 2^20; the load is that of the queue, before it is scaled down.
@pytest.mark.parametrize(("release", "load", "load_avg", "group_load", "contrib", "expected"), [
    ("v6.1", 0, 0, 0, 0, MIN_SHARES),
    ("v6.1", 0, 27, 27, 27, NICE_0_LOAD),
    ("v4.14", 0, 27, 27, 27, MIN_SHARES),
    ("v6.1", 0, 1, 501, 1, 2092),
    ("v6.1", 1024 << 10, 0, 0, 0, NICE_0_LOAD),
    ("v6.1", 1024 << 10, 100, 1124, 100, 1 << 19),
    # BW36: a queue load of less than 1024 scales down to 0 before 26cf52229efc, to 2 since.
    ("v4.14", 1023, 0, 0, 0, MIN_SHARES),
    ("v6.1", 1023, 0, 0, 0, NICE_0_LOAD),
])
def test_shares_are_those_of_the_facts(release: str, load: int, load_avg: int, group_load: int, contrib: int,
                                       expected: int) -> None:
    assert shares(release, load, load_avg, group_load, contrib) == expected


def scaled(release: str, weight: int) -> int:
    instance = QuotaReweight.variant(release)
    value = Interpreter(instance.world, instance.memory(instance.initial[0]), Oracle()).run(
        "scale_load_down", [weight]).value
    return int(value or 0)


@pytest.mark.parametrize(("release", "weight", "expected"), [            # facts E.2
    ("v4.14", 2, 0), ("v4.14", 1023, 0), ("v4.14", 2048, 2),
    ("v6.1", 2, 2), ("v6.1", 3071, 2), ("v6.1", 3072, 3), ("v6.1", 0, 0)])
def test_scale_load_down_is_that_of_the_facts(release: str, weight: int, expected: int) -> None:
    assert scaled(release, weight) == expected


def prove(claim: z3.BoolRef, *given: z3.BoolRef) -> None:
    solver = z3.Solver()
    solver.set("rlimit", 20_000_000)
    solver.add(*given, z3.Not(claim))
    assert solver.check() == z3.unsat


@pytest.mark.parametrize("release", ["v4.14", "v6.1"])
def test_any_load_average_but_0_does_the_same(release: str) -> None:
    """What ``load_avg`` stands for: proved for every value, every load and all shares, while no other CPU has load."""
    instance = QuotaReweight.variant(release)
    average, load, group_shares = z3.Ints("average load shares")
    exact: Any = {**instance.heap, ("load_avg", 0): average, ("load", 0): load, ("shares", 0): group_shares}
    one: Any = {**exact, ("load_avg", 0): z3.IntVal(SOME_LOAD)}
    ranges = (average >= 1, average <= 1 << 30, load >= 0, load <= 1 << 40, group_shares >= 2 << 10,
              group_shares <= MAX_SHARES)
    prove(instance.call("calc_group_shares", [0], exact) == instance.call("calc_group_shares", [0], one), *ranges)


def test_a_load_average_of_0_is_told_apart() -> None:
    """The same claim with 0 among the values is false, so the proof above says something."""
    instance = QuotaReweight.variant("v6.1")
    average, load = z3.Ints("average load")
    exact: Any = {**instance.heap, ("load_avg", 0): average, ("load", 0): load}
    one: Any = {**exact, ("load_avg", 0): z3.IntVal(SOME_LOAD)}
    solver = z3.Solver()
    solver.add(average >= 0, load >= 0,
               instance.call("calc_group_shares", [0], exact) != instance.call("calc_group_shares", [0], one))
    assert solver.check() == z3.sat


def test_a_group_with_load_gets_all_of_its_shares() -> None:
    """What ``not_stale`` takes for the right weight, proved for every load of at least one task and all shares."""
    for release in QuotaReweight.releases:
        instance = QuotaReweight.variant(release)
        average, load, group_shares = z3.Ints("average load shares")
        heap: Any = {**instance.heap, ("load_avg", 0): average, ("load", 0): load, ("shares", 0): group_shares}
        prove(instance.call("calc_group_shares", [0], heap) == group_shares, average >= 0, average <= 1 << 30,
              load >= 1024, load <= 1 << 40, group_shares >= 2 << 10, group_shares <= MAX_SHARES)


@pytest.mark.parametrize(("quota", "period", "lead", "expected"), [
    # R = lead + 2 ticks of the sibling's CPU time, a gap of period - quota for each whole quota in it, and one more.
    (2, 4, 1, 3 + 2 * 2), (1, 2, 0, 2 + 3 * 1), (1, 4, 1, 3 + 4 * 3), (3, 4, 0, 2 + 1 * 1)])
def test_the_bound_is_what_the_docstring_derives(quota: int, period: int, lead: int, expected: int) -> None:
    view = QuotaReweight.variant("v6.1", quota=quota, period=period, lead=lead).view
    assert properties.fair_wait(view) == expected
    # Before 5.8 the first gap may be a whole period.
    before = QuotaReweight.variant("v4.14", quota=quota, period=period, lead=lead).view
    assert properties.fair_wait(before) == expected + quota


@pytest.mark.parametrize("weight", [MIN_SHARES, HALF, NICE_0_LOAD])
def test_every_weight_is_met(weight: int) -> None:
    """No value of the domain is there for show: each is some group's weight in some run."""
    formula = {MIN_SHARES: at_minimum, HALF: at_half, NICE_0_LOAD: at_nice_0}[weight]
    prop = replace(properties.no_stale_run, name="met", kind=Reachable(formula))
    assert decide(QuotaReweight.variant("v6.1", weight_writes=1), prop).name == "proved"


def at_minimum(m):
    return any(m.weight[se] == MIN_SHARES for se in m.entity)


def at_half(m):
    return any(m.weight[se] == HALF for se in m.entity)


def at_nice_0(m):
    return any(m.weight[se] == NICE_0_LOAD for se in m.entity)
