# SPDX-License-Identifier: GPL-2.0-only
"""Where a wakeup goes, a second time: the rules of the facts (C.1) as plain numbers, on random states."""

from __future__ import annotations

import random

import pytest

from schedproof.lang.interpret import Interpreter, Oracle
from schedproof.suite.models.wake_affine import WakeAffine


def place(s: dict[str, int], sync: int, keeps_idle: bool, delayed: bool) -> int:
    """The CPU, 0 for the waker's and 1 for the previous one. Loads are those of queues; both share a cache of 2."""
    low, high = min(s["flips0"], s["flips1"]), max(s["flips0"], s["flips1"])
    if low >= 2 and high >= 2 * low:
        return 1
    if sync and s["n0"] - (s["late0"] if delayed else 0) == 1:
        return 0
    if keeps_idle and s["idle1"]:
        return 1
    mine, other = s["load0"], s["load1"]
    if sync:
        own = s["task0"] * s["load0"] // (s["load0"] + 1)
        if own > mine:
            return 0
        mine -= own
    wakee = s["task1"] * s["load1"] // (s["load1"] + 1)
    return 0 if (mine + wakee) * 100 * s["cap1"] < (other - wakee) * 108 * s["cap0"] + (1 if sync else 0) else 1


@pytest.mark.parametrize("release", ["v5.7", "v6.1", "v6.12"])
def test_both_say_the_same(release):
    chance, instance, seen = random.Random(release), WakeAffine.variant(release), set()
    for _ in range(300):
        s = {"flips0": chance.randint(0, 4), "flips1": chance.randint(0, 4), "n0": chance.randint(1, 2), "late0": 0,
             "idle1": chance.randint(0, 1), **{f"{x}{i}": 1024 * chance.randint(0, 2) for x in ("load", "task")
                                               for i in (0, 1)},
             **{f"cap{i}": chance.choice((512, 1024)) for i in (0, 1)}}
        s["late0"] = chance.randint(0, s["n0"])
        state = dict(instance.initial[0])
        state |= {"curr[cpu0]": 0, "nr_running[cpu0]": s["n0"], "nr_running[cpu1]": 1 - s["idle1"],
                  "h_nr_queued[cfs0]": s["n0"], "h_nr_runnable[cfs0]": s["n0"] - s["late0"], "cfs_rq_of[task1]": 1}
        for i in (0, 1):
            state |= {f"wakee_flips[task{i}]": s[f"flips{i}"], f"task_load[task{i}]": s[f"task{i}"],
                      f"load_avg[cfs{i}]": s[f"load{i}"], f"h_load[cfs{i}]": s[f"load{i}"],
                      f"cpu_capacity[cpu{i}]": s[f"cap{i}"]}
        for sync in (0, 1):
            found = Interpreter(instance.world, instance.memory(state), Oracle()).run("affine_target", [1, 1, sync, 1])
            assert found.value == place(s, sync, release != "v5.7", release == "v6.12"), (s, sync)
            seen.add((sync, found.value))
    assert len(seen) == 4
