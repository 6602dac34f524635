# SPDX-License-Identifier: GPL-2.0-only
"""docs/functions.md says what conform finds on the real trees, and how many functions are executed never falls."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from schedproof import registry
from schedproof.kernel import Tree

ROOT = Path(__file__).parents[2]
PINS = {"6.1": 35, "6.12": 35}                 # rows that are equal or executed: only to be raised

# What the five mechanisms stand on.
CENTRE = {
    "kernel/sched/fair.c": """
        update_cfs_group calc_group_shares reweight_entity update_curr calc_delta_fair __calc_delta place_entity
        entity_tick throttled_hierarchy tg_throttle_down tg_unthrottle_up throttle_cfs_rq unthrottle_cfs_rq
        __account_cfs_rq_runtime wake_wide record_wakee wake_affine wake_affine_idle wake_affine_weight""",
    "virt/kvm/kvm_main.c": """
        kvm_vcpu_on_spin kvm_vcpu_eligible_for_directed_yield kvm_vcpu_wake_up kvm_sched_in kvm_sched_out
        vcpu_dy_runnable""",
    "kernel/locking/qspinlock_paravirt.h": """
        pv_wait_early pv_wait_node pv_kick_node pv_wait_head_or_lock __pv_queued_spin_unlock_slowpath
        pv_hybrid_queued_unfair_trylock""",
}

Rows = dict[tuple[str, str], tuple[str, str]]


@lru_cache(maxsize=2)
def conformed(path: Path) -> Rows:
    """(model, function) -> (file, status), by the command line."""
    done = subprocess.run([sys.executable, "-m", "schedproof", "conform", "--tree", str(path), "--json"], cwd=ROOT,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=580)
    assert (done.returncode, done.stderr) == (0, "")
    return {(f["model"], f["function"]): (f["file"], f["status"]) for f in json.loads(done.stdout)["functions"]}


def documented(column: int) -> Rows:
    found: Rows = {}
    model = ""
    for line in (ROOT / "docs/functions.md").read_text().split("\n"):
        if line.startswith("## "):
            model = line.removeprefix("## ")
        row = re.fullmatch(r"\| `(\w+)` \| (\S+) \| ([\w ]+) \| ([\w ]+) \|", line)
        if row is not None:
            found[model, row[1]] = (row[2], row[column].replace(" ", "_"))
    return found


def test_the_list_has_every_function_of_every_model():
    wanted = {(name, function): file for name, classes in registry.models().items() for model in classes
              for function, file in model.kernel_functions().items()}
    assert {key: file for key, (file, _) in documented(3).items()} == wanted


def test_what_the_mechanisms_stand_on_is_no_word_of_a_vocabulary_everywhere():
    """Each is read for itself by a model in which it is no callee."""
    for file, names in CENTRE.items():
        for name in names.split():
            assert any(model.kernel_functions().get(name) == file and name not in model.vocabulary.outside
                       for classes in registry.models().values() for model in classes), name


@pytest.mark.parametrize(("release", "column"), [("6.1", 3), ("6.12", 4)])
def test_conform_finds_what_the_list_says(request: pytest.FixtureRequest, release: str, column: int):
    tree: Tree = request.getfixturevalue(f"tree_{release.replace('.', '')}")
    found = conformed(tree.path)
    assert found == documented(column)
    run = {(file, function) for (_, function), (file, status) in found.items() if status in ("equal", "executed")}
    assert {(file, name) for file, names in CENTRE.items() for name in names.split()} <= run
    assert sum(status in ("equal", "executed") for _, status in found.values()) >= PINS[release]
