# SPDX-License-Identifier: GPL-2.0-only
"""The verdicts of facts C.6, and where a cascade starts, by a search that knows the facts alone.

The states are not as many as the facts say: the steps are cut elsewhere.
"""

from __future__ import annotations

import pytest

from tests.independent.pv_search import HOLDS, SLEEPS, Rules, after, cannot_enter, graph, most_asleep, starves


def stolen(rules):
    """A thief takes the byte while the head has pending set."""
    return sum(c.at == "steal" and s.locked == 0 and s.pending for s in graph(rules) for c in s.cpus)


def test_two_cpus_take_the_lock_in_turn_and_lose_no_wake_up():
    edges = graph(Rules())
    assert max(sum(c.at in HOLDS for c in s.cpus) for s in edges) == 1
    assert max(len(s.table) for s in edges) == 1
    assert not any(s.missing for s in edges)
    assert all(edges.values())                              # no deadlock
    assert cannot_enter(edges, 2) == 0


@pytest.mark.parametrize("broken", [Rules(latched=False), Rules(recheck=False)], ids=["latch", "recheck"])
def test_a_wake_up_is_lost_without(broken):
    assert cannot_enter(graph(broken), 2) > 0


def test_the_latch_is_not_missed_if_read_and_halt_are_one_step():
    assert cannot_enter(graph(Rules(latched=False, one_step=True)), 2) == 0


def test_an_entry_is_missing_if_the_byte_says_so_first():
    assert any(s.missing for s in graph(Rules(hash_first=False)))


def test_a_steal_succeeds_while_the_head_has_pending_set():
    assert stolen(Rules()) > 0
    assert stolen(Rules(cpus=3, timeouts=False)) > 0


def test_the_head_halts_twice_in_one_enqueue():
    assert max(c.halts for s in graph(Rules(count=True)) for c in s.cpus) == 2


@pytest.mark.parametrize("cpus", [2, 3])
def test_nobody_halts_without_a_timeout_unless_preempted_counts(cpus):
    assert most_asleep(graph(Rules(cpus=cpus, timeouts=False))) == 0
    assert most_asleep(graph(Rules(cpus=cpus, timeouts=False, preemptions=1))) == 0
    assert most_asleep(graph(Rules(cpus=cpus, timeouts=False, preempted=True))) == 0
    assert most_asleep(graph(Rules(cpus=cpus, timeouts=False, preemptions=1, preempted=True))) == cpus - 1


def test_a_halted_cpu_goes_on_by_a_kick_only():
    for s in graph(Rules()):
        for i, c in enumerate(s.cpus):
            if c.at in SLEEPS and not c.token:
                assert all(t.cpus[i].at == c.at for t in after(s, Rules()))


@pytest.mark.parametrize("timeouts", [True, False])
def test_thieves_starve_the_head_only_if_it_may_time_out(timeouts):
    assert starves(Rules(timeouts=timeouts)) is timeouts


def test_the_lock_is_free_and_nobody_can_take_it_while_the_head_is_off():
    """Pending is set, so that nobody steals, and no unlock is left that could kick."""
    rules = Rules(preemptions=1, timeouts=False)
    idle = [s for s, following in graph(rules).items() if s.locked == 0 and s.pending and not following]
    assert idle
    assert all(any(c.off and c.at == "head_spin" for c in s.cpus) for s in idle)
