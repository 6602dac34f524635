# SPDX-License-Identifier: GPL-2.0-only
"""The life cycle of the flag: every patch with every VMM, against a second search from the facts."""

from __future__ import annotations

from itertools import product

import pytest

from schedproof.engines import decide
from schedproof.registry import instance_of, properties
from tests.independent import wake_threads as second

WAKE = {p.name: p for p in properties("wake_affine")}
JUDGES = {"vcpu_threads_flagged": second.runners_flagged, "only_vcpu_threads_flagged": second.only_runners,
          "flag_ends_with_vm": second.gone, "flag_written_by_owner": second.own_writes}
STYLES = {"own": "own_thread", "main": "main", "first": "main_first"}
ALL = [second.Rules(*r) for r in product(("create", "run"), (True, False), ("never", "handoff", "leave"), STYLES,
                                         (False, True))]


def variant(rules: second.Rules) -> str:
    return (f"v6.12+set_at={rules.at}+inherit={str(rules.copied).lower()}+clear={rules.off}"
            f"+creator={STYLES[rules.style]}+reuse={str(rules.parks).lower()}")


@pytest.mark.parametrize("rules", ALL, ids=variant)
def test_both_searches_say_the_same(rules):
    states = second.reached(rules)
    for name, judge in JUDGES.items():
        verdict = decide(instance_of(WAKE[name], variant(rules)), WAKE[name])
        assert verdict.name == ("proved" if judge(states) else "refuted"), name


def test_the_second_search_tells_patches_apart():
    """Worked out by hand: who creates is who runs; the flag comes with clone(); KVM_RUN finds the right thread."""
    patch = second.reached(second.Rules())
    assert second.runners_flagged(patch) and not second.only_runners(patch) and not second.gone(patch)
    assert not second.runners_flagged(second.reached(second.Rules(parks=True)))
    assert second.only_runners(second.reached(second.Rules("run", True, "leave")))
