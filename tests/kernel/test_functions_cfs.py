# SPDX-License-Identifier: GPL-2.0-only
"""The C of CFS weights and of the CFS quota in real trees: it is read, run on exact values, and runs as the C says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import pytest

from schedproof.kernel import Tree
from schedproof.kernel.compare import Side, compare
from schedproof.kernel.functions import Read, read_function
from schedproof.lang.interpret import Interpreter, Oracle
from schedproof.lang.world import Key, make_world
from schedproof.model.domains import Int
from schedproof.suite.models.quota_functions import CORE, QuotaFunctions, WeightFunctions
from tests.kernel.smallc import FAIR

CLASSES: tuple[Any, ...] = (QuotaFunctions, WeightFunctions)
CLASS_OF = {name: model for model in CLASSES for name in model.functions}
ASKED = ("update_cfs_group", "calc_group_shares", "reweight_entity", "update_curr", "calc_delta_fair", "__calc_delta",
         "place_entity", "entity_tick", "throttled_hierarchy", "tg_throttle_down", "tg_unthrottle_up",
         "throttle_cfs_rq", "unthrottle_cfs_rq", "__account_cfs_rq_runtime")

N0, MS = 1 << 20, 1_000_000
NULL, CPU0 = -1, 0
GVM, GA, A = 0, 1, 2                                             # entities
ROOT, QVM, QA = 0, 1, 2                                          # cfs_rqs, and the groups that they belong to
NEVER = (1 << 64) - 1


@lru_cache(maxsize=64)
def read_of(tree: Tree, name: str) -> Read:
    found = read_function(tree, name, CORE if name == "tg_nop" else FAIR, CLASS_OF[name])
    assert (found.status, found.reason) == ("read", "")
    return found


# ----------------------------------------------------------------------------------------- read, equal to themselves
def test_all_that_is_asked_for_is_there_and_no_function_stands_for_another():
    assert set(CLASS_OF) == {*ASKED, "tg_nop"} and sum(len(m.functions) for m in CLASSES) == len(CLASS_OF)
    for model in CLASSES:
        assert not model.vocabulary.outside & set(model.functions)
        assert all(why for why in (*model.vocabulary.callees.values(), *model.vocabulary.noop.values()))
        assert not model.marks and not model.programs


@pytest.mark.parametrize("name", [*ASKED, "tg_nop"])
def test_each_function_is_read_and_equal_to_itself(real_tree: Tree, name: str):
    """Both releases have all of them. That it is equal to itself shows that all of it runs on unknown values."""
    side = Side(name, read_of(real_tree, name).programs)
    found = compare(CLASS_OF[name].variant("v6.1"), side, side)
    assert (found.answer, found.within) == ("equal", ""), found.detail


def test_functions_are_read_down_to_the_listed_callees(real_tree: Tree):
    """Nothing is a callee without need: these are read with those that call them."""
    tick, throttle = read_of(real_tree, "entity_tick").names, read_of(real_tree, "throttle_cfs_rq").names
    assert {"update_cfs_group", "reweight_entity", "calc_group_shares", "throttled_hierarchy"} <= tick
    assert {"enqueue_load_avg", "dequeue_load_avg", "update_load_set", "get_pelt_divider"} <= tick
    assert {"__assign_cfs_rq_runtime", "se_update_runnable", "sub_nr_running", "cfs_rq_is_idle"} <= throttle
    charged = read_of(real_tree, "update_curr").names
    assert {"calc_delta_fair", "__calc_delta", "__update_inv_weight", "__account_cfs_rq_runtime"} <= charged


def test_scheduler_features_are_as_the_tree_has_them(real_tree: Tree):
    text = real_tree.text("kernel/sched/features.h")
    found = dict(re.findall(r"^SCHED_FEAT\((\w+), (true|false)\)", text, re.MULTILINE))
    declared = {n: v for n, (v, _) in QuotaFunctions.vocabulary.static_keys.items() if n in found}
    assert len(declared) >= 2 and all(found[n] == str(v).lower() for n, v in declared.items())


# -------------------------------------------------------------------------------------------------- runs by hand
class _Outside(Interpreter):
    """Notes the calls that are not looked into; they change nothing and return what ``answers`` says, or 0."""

    answers: Mapping[str, int]
    outside: frozenset[str]
    seen: list[tuple[Any, ...]]

    def call(self, name: str, args: Sequence[int | bool], *rest: Any) -> int | bool | None:
        if name not in self.outside:
            return super().call(name, args, *rest)
        self.seen.append((name, *(int(a) for a in args)))
        return self.answers.get(name, 0)


def run_in(tree: Tree, name: str, *args: int, answers: Mapping[str, int] | None = None,
           start: Mapping[Key, int] | None = None, **state: Any) -> tuple[Any, dict[Key, Any], list[tuple[Any, ...]]]:
    """Run a function. ``state`` maps variables to a number or to a table by object; the rest is 0 or NULL."""
    model = CLASS_OF[name]
    instance = model.variant("v6.1")
    variables = {n: (u, Int()) for n, (u, _) in instance.world.variables.items()}
    world = make_world(instance.universes, variables, instance.world.links, {}, read_of(tree, name).programs)
    pointers = {n for n, d in instance.scope.variables.items() if type(d).__name__ == "Pointer"}
    memory: dict[Key, Any] = {k: NULL if n in pointers else 0 for n in variables for k in world.keys(n)}
    memory |= start or {}
    for variable, given in state.items():
        for key in world.keys(variable):
            if not isinstance(given, dict):
                memory[key] = given
            elif key[1] in given:
                memory[key] = given[key[1]]
    runner = _Outside(world, memory, Oracle())
    runner.answers, runner.outside, runner.seen = answers or {}, model.vocabulary.outside, []
    done = runner.run(name, args)
    return done.value, dict(done.memory), runner.seen


def scaled_down(weight: int) -> int:
    return max(2, weight >> 10) if weight else 0


def by_the_formula(delta: int, weight: int, of: int) -> int:
    """delta * weight / of as fixed point: 32 bits behind the point, the factor cut to 32 bits one by one."""
    below = scaled_down(of)
    inverse = 1 if below >= (1 << 32) - 1 else ((1 << 32) - 1) // below if below else (1 << 32) - 1
    factor, shift = scaled_down(weight), 32
    while factor >> 32:
        factor, shift = factor >> 1, shift - 1
    factor *= inverse
    while factor >> 32:
        factor, shift = factor >> 1, shift - 1
    return (delta * factor >> shift) % (1 << 64)


@pytest.mark.parametrize("of", [N0, 2, 15, 15 << 10, 88761 << 10, 3072, 2048, 3, 0, (1 << 28) - 1, 1 << 43])
def test_calc_delta_is_exact(real_tree: Tree, of: int):
    for delta in (0, 1, 999, MS, 4 * MS, 10**10, (1 << 40) + 12345):
        for weight in (N0, 1024, 2, 88761 << 10):
            value, memory, _ = run_in(real_tree, "__calc_delta", delta, weight, 0, lw_weight=of)
            assert value == by_the_formula(delta, weight, of), (delta, weight, of)
            assert memory["lw_inv_weight", 0] > 0                     # kept for the next time


def test_calc_delta_takes_the_kept_inverse(real_tree: Tree):
    """As sched_prio_to_wmult has it for nice 0: rounded up, so exact where a computed one is short by one."""
    value, memory, _ = run_in(real_tree, "__calc_delta", MS, N0, 0, lw_weight=2, lw_inv_weight=4194304)
    assert (value, memory["lw_inv_weight", 0]) == (MS, 4194304)
    assert by_the_formula(MS, N0, N0) == MS - 1


def test_calc_delta_fair_stretches_small_weights(real_tree: Tree):
    """A millisecond at MIN_SHARES is 512 ms of vruntime from 5.7 on."""
    assert run_in(real_tree, "calc_delta_fair", MS, GA, weight=N0)[0] == MS
    assert run_in(real_tree, "calc_delta_fair", MS, GA, weight={GA: 2, GVM: N0})[0] == 511_999_999
    assert run_in(real_tree, "calc_delta_fair", MS, GVM, weight={GA: 2, GVM: N0})[0] == MS
    assert run_in(real_tree, "calc_delta_fair", MS, GA, weight=2 * N0)[0] == MS // 2 - 1


@pytest.mark.parametrize(("lw", "la", "total", "contribution", "shares"), [
    (0, 0, 0, 0, 2), (0, 27, 27, 27, N0), (0, 1, 501, 1, 2092), (1024, 0, 0, 0, N0), (1024, 100, 1124, 100, N0 // 2)])
def test_calc_group_shares(real_tree: Tree, lw: int, la: int, total: int, contribution: int, shares: int):
    value, _, _ = run_in(real_tree, "calc_group_shares", QA, load=lw << 10, load_avg=la, tg_load_avg=total,
                         tg_load_avg_contrib=contribution, shares=N0)
    assert value == shares


def test_throttled_hierarchy(real_tree: Tree):
    assert run_in(real_tree, "throttled_hierarchy", QA, throttle_count={QA: 2})[0] == 1
    assert run_in(real_tree, "throttled_hierarchy", QA, throttle_count={QVM: 2})[0] == 0


def test_an_emptied_group_while_it_is_throttled(tree_61: Tree, tree_612: Tree):
    """The guard keeps a stale weight; 6.12.117 keeps the weight of an empty group anyway."""
    def weight(tree: Tree, **state: Any) -> int:
        return run_in(tree, "update_cfs_group", GA, weight={GA: N0}, shares=N0, **state)[1]["weight", GA]

    assert weight(tree_61) == 2 and weight(tree_612) == N0
    assert weight(tree_61, throttle_count={QA: 1}) == N0
    half: dict[str, Any] = {"load": {QA: N0}, "tg_load_avg": 1024}
    assert weight(tree_61, **half) == weight(tree_612, **half) == N0 // 2
    assert weight(tree_612, throttle_count={QA: 1}, **half) == N0


# --------------------------------------------------------------------------------------------------- place_entity
SLEEP: dict[str, Any] = dict(sysctl_sched_latency=6 * MS, sysctl_sched_min_granularity=750_000, weight=N0)


def test_place_entity_of_6_1_gives_a_sleeper_half_a_latency(tree_61: Tree):
    def placed(initial: int = 0, **state: Any) -> int:
        given: dict[str, Any] = {**SLEEP, "min_vruntime": {QVM: 100 * MS}, **state}
        _, memory, calls = run_in(tree_61, "place_entity", QVM, GA, initial, answers={"sched_vslice": 3 * MS}, **given)
        assert calls == ([("sched_vslice", QVM, GA)] if initial else [])
        return int(memory["vruntime", GA])

    assert placed() == 97 * MS                                        # GENTLE_FAIR_SLEEPERS
    assert placed(vruntime={GA: 99 * MS}) == 99 * MS                   # never backwards
    assert placed(vruntime={GA: 10**12}) == 10**12                     # so an inflated vruntime survives sleep
    assert placed(idle_group={QA: 1}) == 100 * MS - 375_000            # SCHED_IDLE groups: half the granularity
    assert placed(initial=1) == 103 * MS                               # START_DEBIT
    assert placed(min_vruntime={QVM: 1}) == 0                          # 1 - 3 ms lies "before" 0 in 64 bits
    asleep = (1 << 63) // 1024 + 1
    assert placed(vruntime={GA: 10**12}, exec_start={GA: 1}, clock_task=1 + asleep) == 97 * MS
    assert placed(vruntime={GA: 10**12}, exec_start={GA: 1}, clock_task=asleep) == 10**12


def test_place_entity_of_6_12_keeps_the_lag(tree_612: Tree):
    """One competitor of the same weight: a lag of 1 ms is inflated to 2, which is 1 when the entity has joined."""
    given: dict[str, Any] = dict(sysctl_sched_base_slice=3 * MS, weight=N0, avg_load={QVM: 1024}, nr_running={QVM: 1},
                 zero_vruntime={QVM: 50 * MS})
    for lag in (MS, -MS, 0):
        _, memory, _ = run_in(tree_612, "place_entity", QVM, GA, 0, vlag={GA: lag}, **given)
        assert memory["vruntime", GA] == 50 * MS - 2 * lag
        assert memory["deadline", GA] == memory["vruntime", GA] + 3 * MS
    _, memory, _ = run_in(tree_612, "place_entity", QVM, GA, 0, vlag={GA: MS}, **(given | {"nr_running": 0}))
    assert memory["vruntime", GA] == 50 * MS


# -------------------------------------------------------------------------------------- charging and the quota
def test_update_curr_charges_the_queue_and_the_entity(real_tree: Tree):
    _, memory, calls = run_in(
        real_tree, "update_curr", QVM, curr={QVM: GA}, clock_task=7 * MS, exec_start={GA: 5 * MS}, weight=N0,
        on_rq={GA: 1}, runtime_enabled={QVM: 1}, runtime_remaining={QVM: 3 * MS}, deadline=NEVER >> 1)
    assert (memory["vruntime", GA], memory["exec_start", GA], memory["sum_exec_runtime", GA]) == (
        2 * MS, 7 * MS, 2 * MS)
    assert (memory["runtime_remaining", QVM], calls) == (MS, [])
    untouched = run_in(real_tree, "update_curr", QVM, curr={QVM: GA}, clock_task=5 * MS, exec_start={GA: 5 * MS})[1]
    assert untouched["vruntime", GA] == 0


def test_account_cfs_rq_runtime(real_tree: Tree):
    def charge(delta: int, **state: Any) -> tuple[dict[Key, Any], list[tuple[Any, ...]]]:
        given: dict[str, Any] = dict(quota=40 * MS, sysctl_sched_cfs_bandwidth_slice=5000,
                                     runtime_remaining={QVM: 2 * MS}) | state
        return run_in(real_tree, "__account_cfs_rq_runtime", QVM, delta, **given)[1:]

    memory, calls = charge(MS)
    assert (memory["runtime_remaining", QVM], calls) == (MS, [])                         # returns early
    timer = ("start_cfs_bandwidth", QVM)
    memory, calls = charge(2 * MS, runtime={QVM: 20 * MS}, bandwidth_idle=1)
    assert (memory["runtime_remaining", QVM], memory["runtime", QVM], memory["bandwidth_idle", QVM], calls) == (
        5 * MS, 15 * MS, 0, [timer])                                                     # a slice from the pool
    memory, calls = charge(4 * MS, runtime={QVM: MS}, curr={QVM: GA})
    assert (memory["runtime_remaining", QVM], memory["runtime", QVM], calls) == (
        -MS, 0, [timer, ("resched_curr", CPU0)])                                         # what there is, not enough
    assert charge(4 * MS, runtime={QVM: MS})[1] == [timer]                               # nobody runs here
    memory, calls = charge(4 * MS, throttled={QVM: 1}, runtime={QVM: 20 * MS}, curr={QVM: GA})
    assert (memory["runtime_remaining", QVM], calls) == (-2 * MS, [])                    # throttled already
    memory, calls = charge(4 * MS, quota=NEVER)
    assert (memory["runtime_remaining", QVM], calls) == (5 * MS, [])                     # no limit, no timer


def test_throttling_twice_counts_and_stops_the_clock_once(real_tree: Tree):
    """A group under a quota inside another one: the PELT clock stands still from the first to the last."""
    clocks = [10, 20, 50, 90]
    memory: dict[Key, Any] = {}
    seen, counts = [], []
    for name, clock in zip(["tg_throttle_down"] * 2 + ["tg_unthrottle_up"] * 2, clocks, strict=True):
        value, memory, calls = run_in(real_tree, name, QA, CPU0, start=memory, clock_pelt=clock, answers={
            "cfs_rq_is_decayed": 0})
        assert value == 0
        seen.append([c[0] for c in calls])
        counts.append(memory["throttle_count", QA])
    assert counts == [1, 2, 1, 0]
    assert seen == [["list_del_leaf_cfs_rq"], [], [], ["cfs_rq_is_decayed", "list_add_leaf_cfs_rq"]]
    assert (memory["throttled_clock_pelt", QA], memory["throttled_clock_pelt_time", QA]) == (10, 80)
    assert memory["throttle_count", QVM] == 0


def number_of(name: str) -> int:
    return int.from_bytes(name.encode(), "big")


def test_throttle_cfs_rq_asks_the_pool_once_more(real_tree: Tree):
    value, memory, calls = run_in(real_tree, "throttle_cfs_rq", QVM, quota=40 * MS, runtime={QVM: 1})
    assert (value, memory["throttled", QVM], memory["runtime_remaining", QVM]) == (0, 0, 1)
    assert calls == [("start_cfs_bandwidth", QVM)]
    queued = "h_nr_queued" if "h_nr_queued" in real_tree.text("kernel/sched/sched.h") else "h_nr_running"
    given: dict[str, Any] = {queued: {QVM: 2, ROOT: 3}}
    value, memory, calls = run_in(real_tree, "throttle_cfs_rq", QVM, quota=40 * MS, on_rq=1, rq_nr_running=5, **given)
    assert (value, memory["throttled", QVM], memory[queued, ROOT], memory["rq_nr_running", CPU0]) == (1, 1, 1, 3)
    assert [c[0] for c in calls] == ["start_cfs_bandwidth", "list_add_tail_rcu", "walk_tg_tree_from", "dequeue_entity"]
    assert calls[2] == ("walk_tg_tree_from", QVM, number_of("tg_throttle_down"), number_of("tg_nop"), CPU0)
    assert calls[3][:3] == ("dequeue_entity", ROOT, GVM)


def test_unthrottle_cfs_rq_wakes_an_idle_cpu(real_tree: Tree):
    queued = "h_nr_queued" if "h_nr_queued" in real_tree.text("kernel/sched/sched.h") else "h_nr_running"
    given: dict[str, Any] = dict(throttled={QVM: 1}, throttled_clock={QVM: 10}, clock=60, load={QVM: N0},
                                 nr_running={ROOT: 1}, **{queued: {QVM: 2}})
    _, memory, calls = run_in(real_tree, "unthrottle_cfs_rq", QVM, rq_curr=1, **given)
    assert (memory["throttled", QVM], memory["throttled_time", QVM], memory["rq_nr_running", CPU0]) == (0, 50, 2)
    names = [c[0] for c in calls if c[0] != "dl_server_start"]
    assert names == ["update_rq_clock", "list_del_rcu", "walk_tg_tree_from", "enqueue_entity", "resched_curr"]
    walk = next(c for c in calls if c[0] == "walk_tg_tree_from")
    assert walk == ("walk_tg_tree_from", QVM, number_of("tg_nop"), number_of("tg_unthrottle_up"), CPU0)
    assert "resched_curr" not in [c[0] for c in run_in(real_tree, "unthrottle_cfs_rq", QVM, rq_curr=0, **given)[2]]


def test_reweighting_what_is_not_queued_scales_its_lag(tree_612: Tree):
    """On 6.12 with the weights as they are, on 6.1 there is no lag."""
    _, memory, calls = run_in(tree_612, "reweight_entity", QVM, GA, 2 * N0, weight={GA: N0}, vlag={GA: MS})
    assert (memory["weight", GA], memory["vlag", GA], calls) == (2 * N0, MS // 2, [])


def test_entity_tick_charges_before_it_reweights(real_tree: Tree):
    _, memory, calls = run_in(real_tree, "entity_tick", QVM, GA, 0, weight={GA: 2}, shares=N0, load={QA: N0})
    assert [c[0] for c in calls][:2] == ["update_curr", "update_load_avg"]
    assert memory["weight", GA] == N0
