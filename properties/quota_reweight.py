# SPDX-License-Identifier: GPL-2.0-only
"""What must hold while a quota throttles groups, in which kernels, and what must not. Labels RW: facts D.1."""

from schedproof.property import Invariant, Property, Within
from schedproof.suite.models.quota_reweight import QuotaReweight

FIXED = tuple(f"{release}+{fix}" for release in QuotaReweight.releases for fix in QuotaReweight.fixes)
CLOSED = tuple(f"{release}+{fix}" for release in QuotaReweight.releases
               for fix in ("drop_guard", "reweight_at_unthrottle"))
BROKEN = ("v4.14", "v6.1")


def waits(m):
    """The vCPU a is runnable and does not run."""
    return m.on_rq[m.entity.gA] and m.curr != m.entity.gA


def fair_wait(m):
    """What a wait can be when no weight is stale, in ticks.

    When a begins to wait, it is ahead of b by at most the credit of a sleeper plus the tick that it ran last, and
    where a throttle falls on the moment at which b has caught up, b may be picked once more: b uses at most
    lead + 2 ticks of CPU before a is picked. A tick is charged at most twice, for a group whose cpu.weight was halved.
    b gets ``quota`` of every ``period``. Such a stretch of b's CPU time meets one gap of the throttle for each whole
    quota in it, and one more where a gap stands before it or behind it. Where throttle_cfs_rq does not look into the
    pool again (before 5.8), a quota that runs out on the very tick of the refill throttles for a whole period: the
    gap at the beginning is longer by a quota then. It cannot happen to later gaps, for a quota that begins at a refill
    runs out before the next.
    """
    run = m.lead + (2 if m.weight_writes else 1) + 1
    longer = 0 if m.throttle_retry else m.quota
    return run + (run // m.quota + 1) * (m.period - m.quota) + longer


bounded_wait = Property(
    "bounded_wait", QuotaReweight,
    "A runnable vCPU runs again within the time that its share of the quota allows, whatever sleeps, wakeups and "
    "throttles came before.",
    Within(fair_wait, waits, "ticks"), facts="RW4", holds=FIXED, fails=BROKEN, headline=True,
    why="The group's entity was charged for a tick at a weight that was left over from when the group was empty. Its "
        "vruntime leapt ahead by a tick times the ratio of the weights, and it is not picked before its siblings have "
        "caught up, which under a quota takes many periods.")


def not_stale(m):
    """A group that runs is charged at the weight that its load entitles it to.

    No other CPU has load of the group, so calc_group_shares of a group with load gives all of its shares. Between
    its dequeue and the next pick an entity is still ``curr``, but it does not run.
    """
    for se in m.entity:
        if m.curr == se and m.on_rq[se] and m.weight[se] != m.shares[m.tg[m.my_q[se]]]:
            return False
    return True


def runs(m):
    return m.curr == m.entity.gA and m.on_rq[m.entity.gA]


no_stale_run = Property(
    "no_stale_run", QuotaReweight,
    "No group runs at a weight that is not its current share, even if cpu.weight is written once, at any time "
    "(and no other CPU has load of the group).",
    Invariant(not_stale, premise=runs), facts="RW2", holds=CLOSED,
    fails=(*BROKEN, *(f"{release}+preserve_when_empty" for release in BROKEN)), instance={"weight_writes": 1},
    why="The weight was to change while the hierarchy was throttled, and update_cfs_group refused. What runs next is "
        "charged at the old weight until a tick, an enqueue or a dequeue corrects it.")


def fresh_after_tick_(m):
    """Once a tick has come since the pick, and the group is not throttled, its weight is right."""
    for se in m.entity:
        if m.curr == se and m.on_rq[se] and m.ticked and m.throttle_count[m.my_q[se]] == 0:
            if m.weight[se] != m.shares[m.tg[m.my_q[se]]]:
                return False
    return True


def ticked_running(m):
    return m.curr == m.entity.gA and m.on_rq[m.entity.gA] and m.ticked


fresh_after_tick = Property(
    "fresh_after_tick", QuotaReweight,
    "A tick that finds a group running corrects its weight.",
    Invariant(fresh_after_tick_, premise=ticked_running), facts="RW1", holds=(*BROKEN, *FIXED),
    instance={"weight_writes": 1},
    fails=("v4.14+tick_keeps_weight", "v6.1+tick_keeps_weight"))


def weights_add_up(m):
    """load.weight of qVM is the sum of the weights of the entities queued on it."""
    return m.load[m.cfs_rq.qVM] == sum(
        m.weight[se] for se in m.entity if m.on_rq[se] and m.cfs_rq_of[se] == m.cfs_rq.qVM)


def two_queued(m):
    return m.on_rq[m.entity.gA] and m.on_rq[m.entity.gB]


sum_of_weights = Property(
    "sum_of_weights", QuotaReweight,
    "The load of VM's queue is the sum of the weights of what is queued on it.",
    Invariant(weights_add_up, premise=two_queued), facts="RW9", holds=(*BROKEN, *FIXED),
    instance={"weight_writes": 1},
    fails=("v4.14+subtract_new_weight", "v6.1+subtract_new_weight"))


def counts_throttled(m):
    """throttle_count of a queue is the number of throttled queues from it upwards: VM's quota is the only one."""
    return all(m.throttle_count[q] == int(m.throttled[m.cfs_rq.qVM]) for q in m.cfs_rq)


def is_throttled(m):
    return m.throttled[m.cfs_rq.qVM]


throttle_count = Property(
    "throttle_count", QuotaReweight,
    "Every queue below the quota is counted as throttled just while the quota throttles.",
    Invariant(counts_throttled, premise=is_throttled), facts="RW11", holds=(*BROKEN, *FIXED),
    fails=("v4.14+throttle_self_only", "v6.1+throttle_self_only"))
