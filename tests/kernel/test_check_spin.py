# SPDX-License-Identifier: GPL-2.0-only
"""directed_yield on the C of the real trees: no starvation there, and one where the cursor is the loop's count."""

from __future__ import annotations

from schedproof.commands._common import Options
from schedproof.kernel import Tree
from schedproof.kernel.prove import decide_on, subject_of
from schedproof.suite.models.directed_yield import KVM, DirectedYield
from schedproof.suite.properties.directed_yield import boosted
from schedproof.verdict import Refuted
from tests.kernel.smallc import edited

COUNT = (r"last_boosted_vcpu, i\)",
         "last_boosted_vcpu, i > last_boosted_vcpu ? i - last_boosted_vcpu - 1 :\n"
         "\t\t\t\t\t   i + atomic_read(&kvm->online_vcpus) - last_boosted_vcpu - 1)")


def test_a_tree_whose_cursor_is_an_index_boosts_the_holder(real_tree: Tree) -> None:
    """KV05: both trees have the loop in which the counter is the index. The wait is that of the release: 3 yields."""
    instance, verdict = decide_on(subject_of(DirectedYield, real_tree), boosted, {}, Options())
    assert (verdict.name, verdict.worst_case) == ("proved", 3)
    assert set(instance.sources) >= {"kvm_vcpu_on_spin", "kvm_vcpu_eligible_for_directed_yield"}


def test_a_tree_that_stores_the_count_starves_the_holder(real_tree: Tree) -> None:
    changed = real_tree.with_files({KVM: edited(real_tree.text(KVM), "kvm_vcpu_on_spin", COUNT)})
    _, verdict = decide_on(subject_of(DirectedYield, changed), boosted, {}, Options())
    assert isinstance(verdict, Refuted) and verdict.worst_case == "unbounded"
    assert verdict.trace is not None and verdict.trace.cycle
