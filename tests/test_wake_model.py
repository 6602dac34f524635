# SPDX-License-Identifier: GPL-2.0-only
"""The wake-affine models: the shortest runs that break their properties, larger instances, stored counterexamples."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedproof.commands.replay import again
from schedproof.engines import decide
from schedproof.registry import instance_of, is_mutant, properties
from schedproof.verdict import Refuted

WAKE = {p.name: p for p in properties("wake_affine")}
STORED = Path(__file__).parents[1] / "counterexamples" / "wake_affine"


def steps_of(name: str, variant: str) -> list[str]:
    verdict = decide(instance_of(WAKE[name], variant), WAKE[name])
    assert isinstance(verdict, Refuted) and verdict.trace is not None
    return [s.label for s in verdict.trace.stem]


@pytest.mark.parametrize(("name", "variant", "wanted"), [
    ("vcpu_threads_flagged", "v6.12+no_wake_affine+creator=main",
     ["clone(main, t1)", "create_vcpu(main, vcpu0)[1]", "enter_run(t1, vcpu0)"]),
    ("only_vcpu_threads_flagged", "v6.12+no_wake_affine+creator=main", ["create_vcpu(main, vcpu0)[1]"]),
    ("flag_ends_with_vm", "v6.12+no_wake_affine+creator=main", ["create_vcpu(main, vcpu0)[1]", "destroy_vm()"]),
])
def test_the_shortest_run(name, variant, wanted):
    """Worked out by hand; the number behind a creation is the choice whether it fails."""
    assert [s.split("[")[0] for s in steps_of(name, variant)] == [w.split("[")[0] for w in wanted]


LARGER = [(n, v) for n, p in WAKE.items() if p.model.__name__ == "VcpuThreads" for v in (*p.holds, *p.fails)]


@pytest.mark.parametrize(("name", "variant"), LARGER)
def test_two_vcpus_and_four_threads_change_no_verdict(name, variant):
    prop = WAKE[name]
    found = decide(instance_of(prop, variant, {"threads": 4, "vcpus": 2}), prop)
    assert found.name == ("proved" if variant in prop.holds else "refuted")


def test_every_failure_is_stored():
    wanted = {f"{p.name}-{v}.json" for p in WAKE.values() for v in p.fails if not is_mutant(p, v)}
    assert {f.name for f in STORED.glob("*.json")} == wanted


@pytest.mark.parametrize("file", sorted(STORED.glob("*.json")), ids=lambda f: f.stem)
def test_stored_counterexamples_replay(file):
    _, row = again(file)
    assert row["verdict"] == "refuted"
