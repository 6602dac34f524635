# SPDX-License-Identifier: GPL-2.0-only
"""Properties on the C of a tree: what is taken from it, what stays the release's own, and what a verdict rests on."""

from __future__ import annotations

from schedproof.commands._common import Options
from schedproof.kernel import Tree
from schedproof.kernel.prove import decide_on, subject_of
from schedproof.suite.models.quota_reweight import QuotaReweight
from schedproof.suite.properties.quota_reweight import bounded_wait, fresh_after_tick, no_stale_run
from schedproof.verdict import Proved, Refuted, Unknown
from tests.kernel.smallc import FAIR, body_of, edited

READ = {"update_cfs_group", "calc_group_shares", "throttled_hierarchy"}


def test_what_is_read_runs_from_c_and_the_rest_is_named(real_tree: Tree):
    subject = subject_of(QuotaReweight, real_tree)
    instance = subject.instance({})
    assert subject.variant == "v6.1" and set(instance.sources) >= READ
    assert not set(subject.still_python) & READ
    assert set(subject.still_python) | READ == set(QuotaReweight.kernel_functions())
    for name in READ:
        file, line = instance.sources[name].split(":")
        assert f"{name}(" in real_tree.text(file).splitlines()[int(line) - 1]
    lines = subject.assumptions(instance)
    assert len(lines) <= 6 and lines[-1].startswith("still v6.1 in Python: ")
    assert "reweight_entity" in lines[-1]                   # its word in the vocabulary keeps it


def test_the_same_parameters_give_the_same_instance(tree_61: Tree):
    subject = subject_of(QuotaReweight, tree_61)
    assert subject.instance({"ratio": 4}) is subject.instance({"ratio": 4})
    assert subject.instance({"ratio": 4}) is not subject.instance({"ratio": 8})


def test_each_tree_is_refuted_in_what_it_is(real_tree: Tree):
    """With small numbers; the command line has the defaults."""
    old = real_tree.version()[:2] == (6, 1)
    subject = subject_of(QuotaReweight, real_tree)
    verdicts = {p.name: decide_on(subject, p, {"ratio": 4}, Options())[1]
                for p in (bounded_wait, no_stale_run, fresh_after_tick)}
    assert isinstance(verdicts["bounded_wait"], Refuted if old else Proved)
    assert isinstance(verdicts["no_stale_run"], Refuted)
    assert isinstance(verdicts["fresh_after_tick"], Proved)


def test_c_and_its_switches_give_the_same_numbers(tree_612: Tree):
    """The functions of 6.12 and the methods that conform finds to be the same reach the same states."""
    subject = subject_of(QuotaReweight, tree_612)
    from schedproof import engines

    python = QuotaReweight.variant("v6.1+empty_rule=preserve+reweight=if_changed", ratio=4)
    c = subject.instance({"ratio": 4})
    one, other = (engines.decide(i, bounded_wait) for i in (python, c))
    assert (one.counts.states, one.counts.transitions, one.worst_case) == (
        other.counts.states, other.counts.transitions, other.worst_case)


def test_a_variant_can_be_named(tree_61: Tree):
    subject = subject_of(QuotaReweight, tree_61, "v6.1+reweight_at_unthrottle")
    assert isinstance(decide_on(subject, bounded_wait, {"ratio": 4}, Options())[1], Proved)


def test_a_weight_that_is_no_word_of_the_model_is_unknown(tree_61: Tree):
    fair = edited(tree_61.text(FAIR), "update_cfs_group", (r"cfs_rq_of\(se\), se, shares\)", "cfs_rq_of(se), se, 77)"))
    assert body_of(fair, "update_cfs_group") != body_of(tree_61.text(FAIR), "update_cfs_group")
    subject = subject_of(QuotaReweight, tree_61.with_files({FAIR: fair}))
    verdict = decide_on(subject, bounded_wait, {}, Options())[1]
    assert isinstance(verdict, Unknown) and "77" in verdict.reason
