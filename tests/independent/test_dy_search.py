# SPDX-License-Identifier: GPL-2.0-only
"""The exact worst cases of directed_yield against a search that shares no line with the model or the engines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from schedproof.engines import decide
from schedproof.property import Property, WorstCase
from schedproof.suite.models.directed_yield import DirectedYield
from schedproof.suite.properties.directed_yield import boosted, holder_waits
from tests.independent.dy_search import Setup, longest, worst_case

KERNELS = {
    "base": dict(eligibility="none"),
    "rfc-v1": dict(eligibility="v4", initially=True),
    "rfc-v4": dict(eligibility="v4"),
    "rfc-v5": {},
    "v6.13": dict(store="count"),
    "v6.13+eligibility=false": dict(eligibility="none", store="count"),
    "base+early_cursor": dict(eligibility="none", delayed=False),
    "rfc-v5+early_cursor": dict(delayed=False),
    "rfc-v1+early_cursor": dict(eligibility="v4", initially=True, delayed=False),
}


def setup_of(variant: str, n: int, cpus: int, preempt: bool) -> Setup:
    return replace(Setup(n, cpus, preempt=preempt), **KERNELS[variant])     # type: ignore[arg-type]


def of_the_model(variant: str, n: int, cpus: int = 1, preempt: bool = False) -> int | str | None:
    instance = DirectedYield.variant(variant, vcpus=n, cpus=cpus, preemption=int(preempt))
    return decide(instance, Property("w", DirectedYield, "", WorstCase(holder_waits, "yields"))).worst_case


@pytest.mark.parametrize("preempt", [False, True])
@pytest.mark.parametrize("variant", KERNELS)
def test_the_longest_wait_is_the_same(variant: str, preempt: bool) -> None:
    for n in (3, 4) if variant.startswith("base") else (3,):
        assert of_the_model(variant, n, 1, preempt) == (worst_case(setup_of(variant, n, 1, preempt)) or "unbounded")


@pytest.mark.parametrize("variant", ["base", "rfc-v5+early_cursor"])
def test_the_longest_wait_on_two_cpus_is_the_same(variant: str) -> None:
    assert of_the_model(variant, 4, 2) == worst_case(setup_of(variant, 4, 2, False))


@pytest.mark.parametrize(("variant", "figures"), [                        # facts D.A: A2, A3, A4
    ("base", (3, 7, 9, 10, 13)), ("rfc-v5", (2, 4, 6, 9, 12)),
    ("base+early_cursor", (3, 4, 5, 6, 7)), ("rfc-v5+early_cursor", (2, 3, 4, 5, 6))])
def test_the_figures_of_the_facts(variant: str, figures: tuple[int, ...]) -> None:
    """Both searches; the model at 5 vCPUs, where a cursor that is written late makes a difference."""
    for n, figure in zip(range(3, 8), figures, strict=True):
        assert worst_case(setup_of(variant, n, 1, False)) == figure
    assert of_the_model(variant, 5) == figures[2]


@pytest.mark.parametrize(("variant", "figures"), [("base", (4, 14, 46, 149)), ("rfc-v5", (3, 12, 41))])
def test_with_preemption_the_wait_grows_by_more_than_three_times_a_vcpu(variant: str, figures: tuple[int, ...]) -> None:
    for n, figure in enumerate(figures, 3):
        assert worst_case(setup_of(variant, n, 1, True)) == figure


def test_fewer_yields_on_more_cpus() -> None:
    """Facts A3: N - P where the cursor is written at once."""
    for n, cpus in ((4, 2), (5, 2), (5, 3), (6, 3)):
        assert worst_case(setup_of("rfc-v5+early_cursor", n, cpus, False)) == n - cpus


@pytest.mark.parametrize("n", [5, 6, 8])
def test_who_is_safe_from_the_wrong_cursor(n: int) -> None:
    """Facts A.5: from a new VM, all others ready, no eligibility; written at once, and as it is."""
    def safe(delayed: bool) -> set[int]:
        setup = Setup(n, eligibility="none", store="count", delayed=delayed, cursors=(0,))
        return {h for h in range(n) if worst_case(replace(setup, holder=h)) is not None}

    assert safe(delayed=False) == {1, 2, 3}
    assert safe(delayed=True) == {1, 2}


@pytest.mark.parametrize("n", [3, 4])
def test_with_preemption_the_wrong_cursor_starves_anyone(n: int) -> None:
    for holder in range(n):
        assert worst_case(Setup(n, holder=holder, store="count", preempt=True)) is None


def test_the_headline_is_about_the_same_wait() -> None:
    assert isinstance(boosted.kind, WorstCase) and boosted.kind.waiting is holder_waits


def test_the_longest_way_is_found() -> None:
    assert longest([True, True, False], [[(0, 1)], [(0, 0), (2, 2)], []]) == 2
    assert longest([True, True, False], [[(0, 1)], [(1, 0), (2, 2)], []]) is None
