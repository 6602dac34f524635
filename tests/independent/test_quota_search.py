# SPDX-License-Identifier: GPL-2.0-only
"""The exact worst cases of quota_reweight against a search that shares no line with the model or the engines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from schedproof.engines import decide
from schedproof.suite.models.quota_reweight import QuotaReweight
from schedproof.suite.properties.quota_reweight import bounded_wait
from tests.independent.quota_search import Setup, longest, worst_case

RELEASES: dict[str, dict[str, Any]] = {
    "v4.14": dict(empty="min", throttle_retry=False),
    "v6.1": dict(empty="load_avg", throttle_retry=True),
}
FIXES: dict[str, dict[str, Any]] = {
    "drop_guard": dict(guard=False),
    "preserve_when_empty": dict(empty="preserve"),
    "reweight_at_unthrottle": dict(reweight_at_unthrottle=True),
}
VARIANTS = [*RELEASES, *(f"{release}+{fix}" for release in RELEASES for fix in FIXES)]


def setup_of(variant: str, **parameters: Any) -> Setup:
    """What a variant of the model is for the search."""
    release, *fixes = variant.split("+")
    setup = Setup(**parameters, **RELEASES[release])
    for fix in fixes:
        setup = replace(setup, **FIXES[fix])
    return setup


def require_equal(variant: str, **parameters: int) -> None:
    """The model and the search find the same longest wait."""
    decision = decide(QuotaReweight.variant(variant, **parameters), bounded_wait)
    assert decision.worst_case == worst_case(setup_of(variant, **parameters))


@pytest.mark.parametrize("ratio", [2, 4, 8])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_longest_wait_is_the_same(variant: str, ratio: int) -> None:
    require_equal(variant, ratio=ratio, quota=2, period=4, lead=1)


# The fixed variants take part where few states are reached: the model is compiled anew for each pair.
@pytest.mark.parametrize(("variant", "quota", "period", "ratio", "lead"), [
    ("v4.14", 1, 3, 8, 2), ("v4.14", 3, 4, 8, 0), ("v4.14", 2, 7, 5, 3),
    ("v6.1", 1, 3, 8, 2), ("v6.1", 3, 4, 8, 0), ("v6.1", 2, 7, 5, 3),
    ("v4.14+drop_guard", 3, 4, 8, 0), ("v6.1+reweight_at_unthrottle", 1, 3, 8, 2)])
def test_so_it_is_with_other_quotas(variant: str, quota: int, period: int, ratio: int, lead: int) -> None:
    require_equal(variant, quota=quota, period=period, ratio=ratio, lead=lead)


@pytest.mark.parametrize("variant", ["v4.14", "v6.1+drop_guard"])
def test_how_much_is_taken_from_the_pool_at_a_time_does_not_matter(variant: str) -> None:
    """Which is why the model may take the pool and the runtime of the CPU for one number."""
    setup = setup_of(variant, quota=3, period=4, lead=0)
    assert worst_case(replace(setup, allocation=3)) == worst_case(setup)


def test_the_longest_way_is_found() -> None:
    """Arcs of no ticks may form cycles; the arc that leaves the waiting states counts; a cycle of ticks is an error."""
    assert longest({}) == 0
    assert longest({1: [(0, 2)], 2: [(0, 1), (1, 3)], 3: [(1, 9)]}) == 2
    with pytest.raises(ValueError, match="without an end"):
        longest({1: [(0, 2)], 2: [(1, 1), (0, 9)]})
