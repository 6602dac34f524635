# SPDX-License-Identifier: GPL-2.0-only
"""The wake-affine functions, read from real trees: what they touch, what they compute, what edits of them change."""

from __future__ import annotations

from typing import Any

import pytest

from schedproof.kernel import Reader, Tree
from schedproof.kernel.compare import compare
from schedproof.kernel.config import Config
from schedproof.lang import syntax as s
from schedproof.lang.ctypes import INT, LONG, UINT, ULONG
from schedproof.suite.models.wake_affine import WakeAffine
from tests.kernel.smallc import FAIR, frees, loads, played, read_whole, really_differs, side_of, sides, stores

FUNCTIONS = sorted(WakeAffine.kernel_functions())
IDLE = {"wake_affine_idle", "available_idle_cpu", "idle_cpu", "cpus_share_cache"}
WEIGHT = {"wake_affine_weight", "cpu_load", "cfs_rq_load_avg", "capacity_of", "task_h_load", "task_cfs_rq"}

# For each program: what it reads, what it writes, what it calls.
TOUCHES: dict[str, tuple[set[str], set[str], set[str]]] = {
    "record_wakee": ({"current", "jiffies", "wakee_flip_decay_ts", "wakee_flips", "last_wakee"},
                     {"wakee_flip_decay_ts", "wakee_flips", "last_wakee"}, set()),
    "wake_wide": ({"current", "wakee_flips", "sd_llc_size", "this_cpu"}, set(), set()),
    "wake_affine": ({"nr_cpu_ids"}, set(), {"wake_affine_idle", "wake_affine_weight"}),
    "wake_affine_idle": ({"nr_cpu_ids", "nr_running"}, set(), {"available_idle_cpu", "cpus_share_cache"}),
    "available_idle_cpu": (set(), set(), {"idle_cpu"}),
    "idle_cpu": ({"curr", "idle", "nr_running", "ttwu_pending"}, set(), set()),
    "cpus_share_cache": ({"sd_llc_id"}, set(), set()),
    "cfs_h_nr_delayed": ({"cfs", "h_nr_queued", "h_nr_runnable"}, set(), set()),
    "wake_affine_weight": ({"current", "imbalance_pct", "nr_cpu_ids"}, set(),
                           {"cpu_load", "task_h_load", "capacity_of"}),
    "cpu_load": ({"cfs"}, set(), {"cfs_rq_load_avg"}),
    "cfs_rq_load_avg": ({"load_avg"}, set(), set()),
    "capacity_of": ({"cpu_capacity"}, set(), set()),
    "task_h_load": ({"se", "task_load", "h_load"}, set(), {"task_cfs_rq", "cfs_rq_load_avg"}),
    "task_cfs_rq": ({"se", "cfs_rq_of"}, set(), set()),
}


def expected(tree: Tree, function: str) -> set[str]:
    """The programs that a function of a tree is made of."""
    delayed = {"cfs_h_nr_delayed"} if tree.version() >= (6, 12, 0) else set()
    return {"record_wakee": {"record_wakee"}, "wake_wide": {"wake_wide"}, "wake_affine_idle": IDLE | delayed,
            "wake_affine_weight": WEIGHT, "wake_affine": {"wake_affine"} | IDLE | delayed | WEIGHT}[function]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_is_read(real_tree: Tree, function: str):
    found = read_whole(real_tree, WakeAffine, function).programs
    assert set(found) == expected(real_tree, function)
    for name, program in found.items():
        read, written, called = TOUCHES[name]
        if real_tree.version() >= (6, 12, 0) and name == "wake_affine_idle":
            called = called | {"cfs_h_nr_delayed"}
        assert (loads(program), stores(program), s.calls(program.body)) == (read, written, called), name
        assert not frees(program)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_equals_itself(real_tree: Tree, function: str):
    side = side_of(real_tree, WakeAffine, function)
    found = compare(WakeAffine.variant("v6.1"), side, side)
    assert found.answer == "equal" and not found.within, found


def test_the_types_are_those_of_the_tree(real_tree: Tree):
    found = read_whole(real_tree, WakeAffine, "wake_affine").programs
    found = {**found, **read_whole(real_tree, WakeAffine, "record_wakee").programs,
             **read_whole(real_tree, WakeAffine, "wake_wide").programs}
    types = {e.var: e.ctype for program in found.values() for x in s.statements(program.body)
             for e in s.expressions(x) if isinstance(e, s.Load) and e.ctype is not None and not e.ctype.struct}
    wanted = {"jiffies": ULONG, "wakee_flips": UINT, "wakee_flip_decay_ts": ULONG, "sd_llc_size": INT, "sd_llc_id": INT,
              "nr_cpu_ids": UINT, "nr_running": UINT, "ttwu_pending": UINT, "imbalance_pct": UINT, "load_avg": ULONG,
              "task_load": ULONG, "h_load": ULONG, "cpu_capacity": ULONG}
    if real_tree.version() >= (6, 12, 0):
        wanted |= {"h_nr_queued": UINT, "h_nr_runnable": UINT}
    assert types == wanted
    assert found["wake_affine_weight"].result == INT and found["task_h_load"].result == ULONG
    products = [e.ctype for x in s.statements(found["wake_affine_weight"].body) for e in s.expressions(x)
                if isinstance(e, s.Binary) and e.op == "*"]
    assert products == [LONG, ULONG, LONG, ULONG]       # s64 * int, s64 * unsigned long, and the same once more


# ------------------------------------------------------------------------------------------------ plain runs
def play(tree: Tree, function: str, args: list[int | str], cpus: int = 2, tasks: int = 2, **given: int | str):
    """One run; ``wakee_flips__task0=3`` sets wakee_flips[task0]."""
    state = {k.replace("__", "[") + "]" if "__" in k else k: v for k, v in given.items()}
    instance = WakeAffine.variant("v6.1", cpus=cpus, tasks=tasks)
    return played(instance, side_of(tree, WakeAffine, function), {"current": "task0", **state}, args)


@pytest.mark.parametrize(("waker", "wakee", "llc", "wide"), [
    (0, 0, 4, 0), (4, 16, 4, 1), (16, 4, 4, 1), (3, 100, 4, 0), (100, 3, 4, 0), (4, 15, 4, 0), (15, 4, 4, 0),
    (5, 19, 4, 0), (5, 20, 4, 1), (20, 20, 4, 0), (40, 1600, 40, 1), (40, 1599, 40, 0), (1, 1, 1, 1), (0, 9, 1, 0),
    (2 ** 31, 2, 2, 1), (2 ** 31, 3, 2 ** 31 - 1, 0)])
def test_wake_wide(real_tree: Tree, waker: int, wakee: int, llc: int, wide: int):
    """Wide if the smaller count is at least the size of the cache and the larger one that many times the smaller."""
    value, _ = play(real_tree, "wake_wide", ["task1"], wakee_flips__task0=waker, wakee_flips__task1=wakee,
                    sd_llc_size__cpu0=llc)
    assert value == wide == int(min(waker, wakee) >= llc and max(waker, wakee) >= min(waker, wakee) * llc)


def test_wake_wide_looks_at_the_cpu_that_it_runs_on(real_tree: Tree):
    flips = {"wakee_flips__task0": 2, "wakee_flips__task1": 8, "sd_llc_size__cpu0": 8, "sd_llc_size__cpu1": 2}
    assert [play(real_tree, "wake_wide", ["task1"], this_cpu=c, **flips)[0] for c in ("cpu0", "cpu1")] == [0, 1]


def test_wake_wide_of_a_product_that_wraps(real_tree: Tree):
    """slave * factor is an unsigned int: 2^16 * 2^16 is 0."""
    value, _ = play(real_tree, "wake_wide", ["task1"], wakee_flips__task0=1 << 16, wakee_flips__task1=1 << 16,
                    sd_llc_size__cpu0=1 << 16)
    assert value == 1


@pytest.mark.parametrize(("flips", "last", "since", "left", "decays"), [
    (5, "task1", 1000, 5, False), (5, "task1", 1001, 2, True), (5, "NULL", 1000, 6, False), (5, "NULL", 1001, 3, True),
    (4, "task1", 100_000, 2, True), (0, "NULL", 1001, 1, True), (1, "task1", 1001, 0, True), (5, "task0", 0, 6, False),
    (2 ** 32 - 1, "NULL", 0, 0, False)])
def test_record_wakee(real_tree: Tree, flips: int, last: str, since: int, left: int, decays: bool):
    """More than HZ (1000) jiffies after the last decay the count is halved once; another wakee than last adds one."""
    begin = 2 ** 64 - 500                              # so that jiffies wrap on the way
    now = (begin + since) % 2 ** 64
    _, after = play(real_tree, "record_wakee", ["task1"], wakee_flips__task0=flips, last_wakee__task0=last,
                    wakee_flips__task1=7, last_wakee__task1="NULL", jiffies=now, wakee_flip_decay_ts__task0=begin)
    assert after["wakee_flips[task0]"] == left and after["wakee_flip_decay_ts[task0]"] == (now if decays else begin)
    assert after["last_wakee[task0]"] == 1 and after["wakee_flips[task1]"] == 7 and after["last_wakee[task1]"] == -1


def test_record_wakee_of_a_time_in_the_future(real_tree: Tree):
    """time_after() is a signed difference: a stamp that is ahead of jiffies does not decay."""
    _, after = play(real_tree, "record_wakee", ["task1"], wakee_flips__task0=8, last_wakee__task0="task1",
                    jiffies=10, wakee_flip_decay_ts__task0=20)
    assert after["wakee_flips[task0]"] == 8


NEITHER = 2                                            # nr_cpumask_bits of two CPUs


@pytest.mark.parametrize(("busy", "sync", "running", "delayed", "chosen"), [
    ((), 0, (0, 0), 0, 1), ((1,), 0, (0, 1), 0, 0), ((0,), 0, (1, 0), 0, 1), ((0, 1), 0, (1, 1), 0, NEITHER),
    ((0, 1), 1, (1, 1), 0, 0), ((0, 1), 1, (2, 1), 0, NEITHER), ((0,), 1, (1, 0), 0, 0), ((0, 1), 1, (2, 1), 1, None)])
def test_wake_affine_idle(real_tree: Tree, busy: tuple[int, ...], sync: int, running: tuple[int, int], delayed: int,
                          chosen: int | None):
    """On CPU 0 for a wakee of CPU 1, in one cache. Since 6.12 tasks with a delayed dequeue are not counted."""
    if chosen is None:
        chosen = 0 if real_tree.version() >= (6, 12, 0) else NEITHER
    state: dict[str, Any] = {f"curr__cpu{i}": f"task{i}" if i in busy else f"swapper{i}" for i in range(2)}
    state |= {f"nr_running__cpu{i}": n for i, n in enumerate(running)}
    value, _ = play(real_tree, "wake_affine_idle", [0, 1, sync], h_nr_queued__cfs0=running[0],
                    h_nr_runnable__cfs0=running[0] - delayed, **state)
    assert value == chosen


def test_wake_affine_idle_in_two_caches(real_tree: Tree):
    state: dict[str, Any] = {"curr__cpu0": "swapper0", "curr__cpu1": "task1", "nr_running__cpu1": 1}
    assert play(real_tree, "wake_affine_idle", [0, 1, 0], **state)[0] == 0
    assert play(real_tree, "wake_affine_idle", [0, 1, 0], sd_llc_id__cpu1=1, **state)[0] == NEITHER
    assert play(real_tree, "wake_affine_idle", [0, 1, 0], ttwu_pending__cpu0=True, **state)[0] == NEITHER


# this CPU's load, the previous one's, what the wakee and the waker bring, sync, capacities, imbalance_pct, chosen
WEIGHTS = [
    # 1024 * 100 * 1024 < 2048 * 108 * 1024: 100 + (117 - 100) / 2 is 108
    (0, 3072, 1024, 0, 0, (1024, 1024), 117, 0),
    # 2048 * 100 = 204800 against 2048 * 108 = 221184, and against 1896 * 108 = 204768
    (1024, 3072, 1024, 0, 0, (1024, 1024), 117, 0),
    (1024, 2920, 1024, 0, 0, (1024, 1024), 117, NEITHER),
    # 2025 * 100 = 202500 = 1875 * 108: a tie is not less, but with sync the previous side gets one more
    (1001, 2899, 1024, 0, 0, (1024, 1024), 117, NEITHER),
    (1001, 2899, 1024, 0, 1, (1024, 1024), 117, 0),
    # the smaller CPU counts for more load: 1024 * 100 * 1024 against 1024 * 108 * 512
    (0, 2048, 1024, 0, 0, (512, 1024), 117, NEITHER),
    (0, 2048, 1024, 0, 0, (1024, 512), 117, 0),
    # with sync the waker's own load goes away: 2048 - 1024 + 1024 = 2048 against 2048 * 1.08
    (2048, 3072, 1024, 1024, 1, (1024, 1024), 117, 0),
    (2048, 3072, 1024, 1024, 0, (1024, 1024), 117, NEITHER),
    # and more than there is: at once
    (512, 0, 1024, 1024, 1, (1024, 1024), 117, 0),
    # (110 - 100) / 2 = 5: 2048 * 100 = 204800 against 1951 * 105 = 204855 and 1950 * 105 = 204750
    (1024, 2975, 1024, 0, 0, (1024, 1024), 110, 0),
    (1024, 2974, 1024, 0, 0, (1024, 1024), 110, NEITHER),
    # less on the previous CPU than the wakee brings is a negative number
    (0, 512, 1024, 0, 0, (1024, 1024), 117, NEITHER)]


@pytest.mark.parametrize(("here", "there", "wakee", "waker", "sync", "capacity", "percent", "chosen"), WEIGHTS)
def test_wake_affine_weight(real_tree: Tree, here: int, there: int, wakee: int, waker: int, sync: int,
                            capacity: tuple[int, int], percent: int, chosen: int):
    """A task brings its average * h_load / (load_avg + 1), rounded down; the averages are set for what is wanted."""
    state: dict[str, Any] = {"load_avg__cfs0": here, "load_avg__cfs1": there, "h_load__cfs0": here,
                             "h_load__cfs1": there, "cpu_capacity__cpu0": capacity[0],
             "cpu_capacity__cpu1": capacity[1], "imbalance_pct__sd": percent,
             "cfs_rq_of__task0": "cfs0", "cfs_rq_of__task1": "cfs1",
             "task_load__task0": brought(waker, here), "task_load__task1": brought(wakee, there)}
    value, _ = play(real_tree, "wake_affine_weight", ["sd", "task1", 0, 1, sync], **state)
    assert value == chosen


def brought(load: int, queue: int) -> int:
    """The load average with which a task on a queue of its CPU brings a load: average * queue / (queue + 1)."""
    if not load:
        return 0
    average = -(-load * (queue + 1) // queue) if queue else 0
    assert not queue or average * queue // (queue + 1) == load
    return average


@pytest.mark.parametrize(("here", "there", "wakee", "chosen"), [
    (0, 4096, 0, 0), (4096, 0, 0, 1), (4096, 4096, 0, 0), (4096, 4096, 1024, 1)])
def test_wake_affine(real_tree: Tree, here: int, there: int, wakee: int, chosen: int):
    """Both CPUs are busy: by weight, and back to the previous CPU unless this one is chosen."""
    value, _ = play(real_tree, "wake_affine", ["sd", "task1", 0, 1, 0], curr__cpu0="task0", curr__cpu1="task1",
                    nr_running__cpu0=2, nr_running__cpu1=2, h_nr_queued__cfs0=2, h_nr_runnable__cfs0=2,
                    load_avg__cfs0=here, load_avg__cfs1=there, cpu_capacity__cpu0=1024, cpu_capacity__cpu1=1024,
                    h_load__cfs0=here, h_load__cfs1=there,
                    cfs_rq_of__task1="cfs1", task_load__task1=brought(wakee, there))
    assert value == chosen


def test_the_features_are_the_models(real_tree: Tree):
    """sched_feat(X) is a static key: with none of the three set, no CPU is chosen, so the previous one it is."""
    class Off(WakeAffine):
        vocabulary = type(WakeAffine.vocabulary)(
            callees=WakeAffine.vocabulary.callees, constants=WakeAffine.vocabulary.constants,
            static_keys=dict.fromkeys(("WA_IDLE", "WA_WEIGHT", "WA_BIAS"), (False, "off")))
    reader = Reader(real_tree, Config(), Off)
    reader.read("wake_affine", FAIR)
    assert set(reader.programs) == {"wake_affine"}


# ------------------------------------------------------------------------------------------------ edits
Steps = tuple[tuple[str, str], ...]
END = r"\}\n\Z"
SWAP = r"^\tif \(master < slave\)\n\t\tswap\(master, slave\);\n"
TEST = r"^\tif \(slave < factor \|\| master < slave \* factor\)\n\t\treturn 0;\n\treturn 1;\n"
AFTER = r"time_after\(jiffies, current->wakee_flip_decay_ts \+ HZ\)"
HALVED = r"^\t\tcurrent->wakee_flips >>= 1;\n"
STAMP = r"^\t\tcurrent->wakee_flip_decay_ts = jiffies;\n"
LAST = r"^\tif \(current->last_wakee != p\) \{\n\t\tcurrent->last_wakee = p;\n\t\tcurrent->wakee_flips\+\+;\n\t\}\n"
DECAY = r"^\tif \(time_after\([^\n]*\n[^\n]*\n[^\n]*\n\t\}\n"
CHOICE = r"return this_eff_load < prev_eff_load \? this_cpu : nr_cpumask_bits;"
TOO_MUCH = r"^\t\tif \(current_load > this_eff_load\)\n\t\t\treturn this_cpu;\n"

EQUAL: dict[str, dict[str, Steps]] = {
    "wake_wide": {
        "max and min": ((SWAP, "\t{\n\t\tunsigned int less = min(master, slave);\n\n"
                               "\t\tmaster = max(master, slave);\n\t\tslave = less;\n\t}\n"),),
        "<= before the swap": ((r"master < slave\)", "master <= slave)"),),
        "|| split": ((TEST, "\tif (slave < factor)\n\t\treturn 0;\n\tif (master < slave * factor)\n\t\treturn 0;\n"
                            "\treturn 1;\n"),),
        "De Morgan": ((TEST, "\tif (slave >= factor && master >= slave * factor)\n\t\treturn 1;\n\treturn 0;\n"),),
        "a value instead of a branch": ((TEST, "\treturn !(slave < factor || master < slave * factor);\n"),),
        "waker in a local": ((r"^(\tunsigned int master = )current->", "\tstruct task_struct *waker = current;\n"
                                                                      r"\1waker->"),),
        "unsigned factor": ((r"\tint factor", "\tunsigned int factor"),),
        "product turned around": ((r"slave \* factor", "factor * slave"),),
        "the CPU by its number": ((r"__this_cpu_read\(sd_llc_size\)", "per_cpu(sd_llc_size, smp_processor_id())"),),
        "the variable by its address": ((r"__this_cpu_read\(sd_llc_size\)", "*this_cpu_ptr(&sd_llc_size)"),),
    },
    "record_wakee": {
        "divided": ((HALVED, "\t\tcurrent->wakee_flips /= 2;\n"),),
        "early return": ((LAST, "\tif (current->last_wakee == p)\n\t\treturn;\n\n\tcurrent->last_wakee = p;\n"
                                "\tcurrent->wakee_flips++;\n"),),
        "last writes swapped": ((LAST, "\tif (current->last_wakee != p) {\n\t\tcurrent->wakee_flips += 1;\n"
                                       "\t\tcurrent->last_wakee = p;\n\t}\n"),),
        "decay's writes swapped": ((HALVED, ""), (STAMP, "\t\tcurrent->wakee_flip_decay_ts = jiffies;\n"
                                                         "\t\tcurrent->wakee_flips >>= 1;\n")),
        "time_before": ((AFTER, "time_before(current->wakee_flip_decay_ts + HZ, jiffies)"),),
        "signed difference": ((AFTER, "(long)(current->wakee_flip_decay_ts + HZ - jiffies) < 0"),),
        "now in a local": ((r"\A([^{]*\{\n)", r"\1\tunsigned long now = jiffies;\n\n"),
                           (STAMP, "\t\tcurrent->wakee_flip_decay_ts = now;\n")),
    },
    "wake_affine_weight": {
        "written out": ((r"this_eff_load \*= 100;", "this_eff_load = 100 * this_eff_load;"),),
        "sum turned around": ((r"100 \+ (\(sd->imbalance_pct - 100\) / 2)", r"\1 + 100"),),
        "++": ((r"prev_eff_load \+= 1;", "prev_eff_load++;"),),
        "choice turned around": ((CHOICE, "return prev_eff_load > this_eff_load ? this_cpu : nr_cpumask_bits;"),),
        "choice with an early return": ((CHOICE, "if (this_eff_load >= prev_eff_load)\n\t\treturn nr_cpumask_bits;\n"
                                                 "\treturn this_cpu;"),),
        "capacity in a local": ((r"^\tprev_eff_load \*= capacity_of\(this_cpu\);\n",
                                 "\t{\n\t\tunsigned long capacity = cpu_rq(this_cpu)->cpu_capacity;\n\n"
                                 "\t\tprev_eff_load = prev_eff_load * capacity;\n\t}\n"),),
        "a shift": ((r"\(sd->imbalance_pct - 100\) / 2", "((sd->imbalance_pct - 100) >> 1)"),),
    },
}
DIFFERENT: dict[str, dict[str, Steps]] = {
    "wake_wide": {
        "< to <= (size)": ((r"slave < factor", "slave <= factor"),),
        "< to <= (product)": ((r"master < slave \* factor", "master <= slave * factor"),),
        "max to min": ((SWAP, "\t{\n\t\tunsigned int less = min(master, slave);\n\n"
                              "\t\tmaster = min(master, slave);\n\t\tslave = less;\n\t}\n"),),
        "swap dropped": ((SWAP, ""),),
        "|| to &&": ((r"factor \|\| master", "factor && master"),),
        "return inverted": ((r"return 0;\n\treturn 1;", "return 1;\n\treturn 0;"),),
        "cast to int": ((r"slave < factor", "(int)slave < factor"),),
        "wide product": ((r"slave \* factor", "(u64)slave * factor"),),
        "factor of the larger": ((r"slave \* factor", "master * factor"),),
        "always CPU 0": ((r"__this_cpu_read\(sd_llc_size\)", "per_cpu(sd_llc_size, 0)"),),
        "waker twice": ((r"= p->wakee_flips", "= current->wakee_flips"),),
    },
    "record_wakee": {
        "a cast removed": ((AFTER, "jiffies > current->wakee_flip_decay_ts + HZ"),),
        "time_after_eq": ((r"time_after\(", "time_after_eq("),),
        "decay dropped": ((HALVED, ""),),
        "decay behind the count": ((DECAY, ""), (LAST, r"\g<0>"
                                   "\tif (time_after(jiffies, current->wakee_flip_decay_ts + HZ)) {\n"
                                   "\t\tcurrent->wakee_flips >>= 1;\n\t\tcurrent->wakee_flip_decay_ts = jiffies;\n"
                                   "\t}\n")),
        "quartered": ((r">>= 1", ">>= 2"),),
        "re-check dropped": ((LAST, "\tcurrent->last_wakee = p;\n\tcurrent->wakee_flips++;\n"),),
        "the wakee's flips": ((r"current->wakee_flips\+\+", "p->wakee_flips++"),),
        "two seconds": ((r"\+ HZ", "+ 2 * HZ"),),
        "!= to ==": ((r"last_wakee != p", "last_wakee == p"),),
        "no stamp": ((STAMP, ""),),
        "early return inverted": ((LAST, "\tif (current->last_wakee != p)\n\t\treturn;\n\tcurrent->last_wakee = p;\n"
                                         "\tcurrent->wakee_flips++;\n"),),
    },
    "wake_affine_weight": {
        "whole bias": ((r"\(sd->imbalance_pct - 100\) / 2", "(sd->imbalance_pct - 100)"),),
        "capacities swapped": ((r"this_eff_load \*= capacity_of\(prev_cpu\)",
                                "this_eff_load *= capacity_of(this_cpu)"),
                               (r"prev_eff_load \*= capacity_of\(this_cpu\)",
                                "prev_eff_load *= capacity_of(prev_cpu)")),
        "operands swapped": ((r"prev_eff_load -= task_load;", "prev_eff_load = task_load - prev_eff_load;"),),
        "> to >=": ((r"current_load > this_eff_load", "current_load >= this_eff_load"),),
        "re-check dropped": ((TOO_MUCH, ""),),
        "a cast": ((r"current_load > this_eff_load", "(s64)current_load > this_eff_load"),),
        "unsigned": ((r"s64 this_eff_load", "u64 this_eff_load"),),
        "the waker's load": ((r"task_load = task_h_load\(p\)", "task_load = task_h_load(current)"),),
        "biased both ways": ((r"this_eff_load \*= 100;", "this_eff_load *= 100 + (sd->imbalance_pct - 100) / 2;"),),
        "early return inverted": ((CHOICE, "return this_eff_load < prev_eff_load ? nr_cpumask_bits : this_cpu;"),),
    },
}
# These differ only for values outside of the ranges that the model declares, which the answer then says.
OUTSIDE = {"cast to int", "wide product", "a cast removed", "a cast"}
CASES = [(f, n, None if n in OUTSIDE else equal, steps) for equal, table in ((True, EQUAL), (False, DIFFERENT))
         for f, edits in table.items() for n, steps in edits.items()]
# The text of these functions is the same in both trees, so every other edit is made in either.
assert len(CASES) > 40


@pytest.mark.parametrize(("tree", "function", "equal", "steps"),
                         [(("tree_61", "tree_612")[i % 2], f, e, steps) for i, (f, _, e, steps) in enumerate(CASES)],
                         ids=[f"{('6.1', '6.12')[i % 2]}-{f}-{n}" for i, (f, n, _, _) in enumerate(CASES)])
def test_an_edit_gets_the_right_answer(request: pytest.FixtureRequest, tree: str, function: str, equal: bool | None,
                                       steps: Steps):
    old, new = sides(request.getfixturevalue(tree), WakeAffine, function, *steps)
    instance = WakeAffine.variant("v6.1")
    found = compare(instance, old, new)
    if equal is None:
        assert found.answer == "equal" and found.within, found
    elif equal:
        assert found.answer == "equal" and not found.within, found
    else:
        assert found.answer == "differs", found
        assert really_differs(instance, old, new, found), found


def test_there_are_enough_of_them():
    assert all(len(EQUAL[f]) >= 7 and len(DIFFERENT[f]) >= 10 for f in DIFFERENT)
