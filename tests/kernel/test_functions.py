# SPDX-License-Identifier: GPL-2.0-only
"""C beside the model's own methods: what may take whose place."""

from __future__ import annotations

from schedproof.kernel.functions import read_function, taken, with_c
from schedproof.lang.rewrite import renamed, without_places
from schedproof.suite.models.quota_reweight import QuotaReweight

FAIR = """\
struct load_weight {
	unsigned long weight;
};
struct cfs_rq {
	struct load_weight load;
	int throttle_count;
};
static int nr_running(struct cfs_rq *cfs_rq)
{
	return 7;
}
static inline int throttled_hierarchy(struct cfs_rq *cfs_rq)
{
	return nr_running(cfs_rq) == 7 && cfs_rq->throttle_count;
}
"""


def test_a_helper_of_the_tree_does_not_take_the_place_of_a_method_of_the_environment(make_tree):
    """``nr_running`` is the model's own; that the tree has a helper of that name changes nothing there."""
    tree = make_tree({"kernel/sched/fair.c": FAIR})
    read = read_function(tree, "throttled_hierarchy", "kernel/sched/fair.c", QuotaReweight)
    assert read.status == "read", read.reason
    assert set(read.programs) == {"throttled_hierarchy", "nr_running@C"}
    assert read.names == {"throttled_hierarchy", "nr_running"}
    instance = with_c(QuotaReweight.variant("v6.1"), taken([read], QuotaReweight))
    assert instance.world.programs["nr_running"].language == "python"
    assert instance.world.programs["throttled_hierarchy"].language == "c"
    assert instance.transitions


def test_a_program_is_the_same_when_only_its_lines_move(make_tree):
    first = read_function(make_tree({"kernel/sched/fair.c": FAIR}), "throttled_hierarchy", "kernel/sched/fair.c",
                          QuotaReweight)
    moved = read_function(make_tree({"kernel/sched/fair.c": "\n\n" + FAIR}), "throttled_hierarchy",
                          "kernel/sched/fair.c", QuotaReweight)
    one, other = first.programs["throttled_hierarchy"], moved.programs["throttled_hierarchy"]
    assert one != other and without_places(one) == without_places(other)
    assert first.shape == moved.shape
    assert without_places(renamed(one, {"nr_running@C": "something_else"})) != without_places(one)
