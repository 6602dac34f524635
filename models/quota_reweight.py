# SPDX-License-Identifier: GPL-2.0-only
"""CFS group weights while a quota throttles the hierarchy. Source: kernel/sched/fair.c, releases 4.14 and 6.1.

One CPU. A group VM with a quota holds two groups A and B, each with one task: the vCPUs a and b.

    root ── gVM ── qVM ┬ gA ── qA ── a
                       └ gB ── qB ── b

gVM is alone on the root queue, so its weight and vruntime decide nothing and are left out: that it is queued is
``not throttled[qVM]``. The tasks are alone on their queues, so their vruntime decides nothing either.

Time passes in ticks, and picks, wakeups and refills fall on them: nothing is charged for less than a tick, and every
tick on which both groups are queued ends the slice. ``lead`` is the credit of a sleeper, sched_latency/2, in ticks.
``ratio`` is how much faster the vruntime of an entity at MIN_SHARES grows than that of one at NICE_0_LOAD (1024 up
to 5.6, 512 from 5.7 on; the dynamics do not depend on the number, so small ones are used). vruntime is kept relative
to min_vruntime of qVM, which therefore is 0. The pool of the quota and what the CPU has taken from it are one number;
``exhausted`` says that runtime_remaining is not positive. No other CPU has load for these groups, there are no buddies
(no directed yield), and a vCPU does not go to sleep between a tick that asks for a reschedule and the reschedule.
docs/quota_reweight.md says for each of these what it hides.
"""

from __future__ import annotations

from schedproof.errors import InputError
from schedproof.model import (
    NULL,
    Bool,
    Constant,
    Link,
    Model,
    Object,
    Param,
    Pointer,
    Range,
    Switch,
    Values,
    Vocabulary,
    action,
    cdiv,
    choose,
    environment,
    kernel,
    require,
)

FAIR = "kernel/sched/fair.c"

MIN_SHARES = 2                      # kernel/sched/sched.h; not scaled, so about 2e-6 of a nice 0 task
NICE_0_LOAD = 1 << 20               # kernel/sched/sched.h, 64 bit, since 4.7
HALF = 1 << 19                      # cpu.weight 50: the value that a write of cpu.weight changes to and from
SOME_LOAD = 1024                    # load_avg of a group whose task has run: any value but 0 does the same
MAX_SHARES = 1 << 28                # scale_load(1 << 18): the largest cpu.shares, sched_group_set_shares


def queue_loads(m):
    """Every sum of the weights of two entities, and of none."""
    weights = (0, MIN_SHARES, HALF, NICE_0_LOAD)
    return {total: str(total) for total in sorted({x + y for x in weights for y in weights})}


class QuotaReweight(Model):
    """Two groups under one quota on one CPU."""

    entity = Object("struct sched_entity", "gA", "gB", "a", "b")
    cfs_rq = Object("struct cfs_rq", "qA", "qB", "qVM")
    task_group = Object("struct task_group", "A", "B", "VM")
    task = Object("struct task_struct", "a", "b")

    my_q = Link(entity, cfs_rq, {"gA": "qA", "gB": "qB"}, c="my_q")                   # NULL for tasks
    cfs_rq_of = Link(entity, cfs_rq, {"gA": "qVM", "gB": "qVM", "a": "qA", "b": "qB"}, c="cfs_rq")
    parent = Link(entity, entity, {"a": "gA", "b": "gB"}, c="parent")                 # gVM is left out
    se = Link(task, entity, {"a": "a", "b": "b"})
    tg = Link(cfs_rq, task_group, {"qA": "A", "qB": "B", "qVM": "VM"}, c="tg")
    group_se = Link(cfs_rq, entity, {"qA": "gA", "qB": "gB"})                         # tg->se[cpu]

    on_rq = Bool(per=entity, c="on_rq", init=True)
    weight = Values({MIN_SHARES: "2", HALF: "524288", NICE_0_LOAD: "1048576"}, per=entity, c="load.weight",
                    init=NICE_0_LOAD, span=(0, 1 << 40))
    load = Values(queue_loads, per=cfs_rq, c="load.weight", span=(0, 1 << 40),
                  init={"qA": NICE_0_LOAD, "qB": NICE_0_LOAD, "qVM": 2 * NICE_0_LOAD})
    load_avg = Values({0: "0", SOME_LOAD: "1024"}, per=cfs_rq, c="avg.load_avg", init=SOME_LOAD, span=(0, 1 << 30),
                      stands_for={0: (0, 0), SOME_LOAD: (1, 1 << 30)})
    shares = Values({HALF: "524288", NICE_0_LOAD: "1048576"}, per=task_group, c="shares", init=NICE_0_LOAD,
                    span=(2 << 10, MAX_SHARES))
    tg_load_avg_contrib = Constant(0, per=cfs_rq, c="tg_load_avg_contrib", span=(0, 1 << 30),
                                   why="only the difference to the group's load_avg counts")
    tg_load_avg = Constant(0, per=task_group, c="load_avg", span=(0, 1 << 40), why="no other CPU has load of the group")

    vruntime = Range(lambda m: -m.lead, lambda m: max(m.ratio, 2) + m.lead + 2, per=entity, init=0)
    curr = Pointer(entity, init="gA", among=("gA", "gB"))         # cfs_rq->curr of qVM; NULL: the CPU is idle
    throttled = Bool(per=cfs_rq, c="throttled")
    throttle_count = Range(-1, 2, per=cfs_rq, c="throttle_count", init=0, span=(0, 1 << 20))
    runtime = Range(0, lambda m: m.quota, init=lambda m: m.quota)     # pool and runtime_remaining, in ticks
    exhausted = Bool()                                                # runtime_remaining <= 0, none was to be had
    phase = Range(0, lambda m: m.period, init=0)                      # ticks since the last refill
    delta_exec = Range(0, 1, init=0, transient=True)                  # ticks that curr has run and not been charged
    need_resched = Bool()
    writes = Range(0, lambda m: m.weight_writes, init=0)              # writes of cpu.weight so far
    ticked = Bool(ghost=True)                                         # a tick has come since the last pick

    quota = Param(2, 1, 16, "ticks of CPU time in a period")
    period = Param(4, 2, 32, "ticks from refill to refill")
    ratio = Param(8, 2, 1024, "how much faster vruntime grows at MIN_SHARES than at NICE_0_LOAD")
    lead = Param(1, 0, 16, "ticks that a sleeper is placed before min_vruntime: sched_latency / 2")
    weight_writes = Param(0, 0, 2, "writes of cpu.weight that may happen")

    guard = Switch("on", "off")                   # update_cfs_group returns where the hierarchy is throttled
    empty_rule = Switch("min", "load_avg", "preserve")
    scale_floor = Switch("none", "two")           # what a weight other than 0 scales down to at least (26cf52229efc)
    reweight = Switch("always", "if_changed")     # whether update_cfs_group tests for a change first
    throttle_retry = Switch(False, True)          # throttle_cfs_rq looks into the pool once more (e98fa02c4f2e, 5.8)
    unthrottle_reweight = Switch(False, True)
    throttle_walk = Switch("hierarchy", "self")   # mutant: throttle_count only where the quota is
    subtract = Switch("old", "new")               # mutant: reweight_entity takes the new weight off the queue
    tick_reweight = Switch(True, False)           # mutant: entity_tick does not update the weight

    releases = {
        "v4.14": dict(guard="on", empty_rule="min", scale_floor="none", throttle_retry=False),
        "v6.1": dict(guard="on", empty_rule="load_avg", scale_floor="two", throttle_retry=True),
    }
    fixes = {
        "drop_guard": dict(guard="off"),                               # fcd394866e3d
        "preserve_when_empty": dict(empty_rule="preserve"),            # 66951e4860d3
        "reweight_at_unthrottle": dict(unthrottle_reweight=True),
    }
    mutants = {
        "throttle_self_only": dict(throttle_walk="self"),
        "subtract_new_weight": dict(subtract="new"),
        "tick_keeps_weight": dict(tick_reweight=False),
    }

    lanes = {"g?": (("running", "curr={}"), ("throttled", "throttled[qVM]=yes & on_rq[{}]=yes"),
                    ("waiting", "on_rq[{}]=yes"), ("asleep", ""))}
    cpu_lanes = {0: "curr"}

    vocabulary = Vocabulary(
        callees={"reweight_entity": "its PELT part is outside this model"},
        static_keys={"__cfs_bandwidth_used": (True, "there is a quota")},
    )

    @classmethod
    def check_parameters(cls, values):
        if values["quota"] >= values["period"]:
            raise InputError(f"quota={values['quota']}: allowed are numbers below period={values['period']}, "
                             "or the group is never throttled")

    # ------------------------------------------------------------------------------- weights (facts A.2 to A.4)
    def scale_load_down(self, w):
        """The macro of kernel/sched/sched.h."""
        if self.scale_floor == "two" and w != 0:
            return max(2, w >> 10)
        return w >> 10

    @kernel(FAIR)
    def throttled_hierarchy(self, cfs_rq):
        return self.throttle_count[cfs_rq] != 0

    @kernel(FAIR)
    def calc_group_shares(self, cfs_rq):
        tg = self.tg[cfs_rq]
        tg_shares = self.shares[tg]
        load = self.scale_load_down(self.load[cfs_rq])
        if self.empty_rule != "min":                             # 3d4b60d3e3dd, 4.15
            load = max(load, self.load_avg[cfs_rq])
        tg_weight = self.tg_load_avg[tg] - self.tg_load_avg_contrib[cfs_rq] + load
        shares = tg_shares * load
        if tg_weight != 0:
            shares = cdiv(shares, tg_weight)
        return min(max(shares, MIN_SHARES), tg_shares)

    @kernel(FAIR)
    def update_cfs_group(self, se):
        gcfs_rq = self.my_q[se]
        if gcfs_rq == NULL:
            return
        if self.empty_rule == "preserve" and self.load[gcfs_rq] == 0:
            return
        if self.guard == "on" and self.throttled_hierarchy(gcfs_rq):
            return
        shares = self.calc_group_shares(gcfs_rq)
        if self.reweight == "always" or self.weight[se] != shares:
            self.reweight_entity(self.cfs_rq_of[se], se, shares)

    @kernel(FAIR)
    def reweight_entity(self, cfs_rq, se, weight):
        if self.on_rq[se]:
            if self.curr == se:
                self.update_curr(cfs_rq)                         # commit outstanding execution time
            if self.subtract == "old":
                self.load[cfs_rq] -= self.weight[se]
            else:
                self.load[cfs_rq] -= weight
        self.weight[se] = weight
        if self.on_rq[se]:
            self.load[cfs_rq] += self.weight[se]

    # --------------------------------------------------------------------------------------- running and waiting
    @kernel(FAIR)
    def calc_delta_fair(self, delta, se):
        if self.weight[se] == NICE_0_LOAD:
            return delta
        if self.weight[se] == HALF:
            return 2 * delta
        return self.ratio * delta

    @kernel(FAIR)
    def update_min_vruntime(self, cfs_rq):
        """min_vruntime follows the leftmost queued entity and never goes back; it is the origin of vruntime here."""
        leftmost = NULL
        for se in self.entity:
            if self.cfs_rq_of[se] == cfs_rq and self.on_rq[se]:
                if leftmost == NULL or self.vruntime[se] < self.vruntime[leftmost]:
                    leftmost = se
        if leftmost == NULL or self.vruntime[leftmost] <= 0:
            return
        moved = self.vruntime[leftmost]
        for se in self.entity:
            if self.cfs_rq_of[se] == cfs_rq:
                self.vruntime[se] -= moved
                if not self.on_rq[se]:                           # place_entity will not look further back
                    self.vruntime[se] = max(self.vruntime[se], -self.lead)

    @kernel(FAIR)
    def update_curr(self, cfs_rq):
        curr = self.curr
        if curr == NULL:
            return
        if self.delta_exec <= 0:
            return
        delta_exec = self.delta_exec
        self.delta_exec = 0
        self.vruntime[curr] += self.calc_delta_fair(delta_exec, curr)
        self.update_min_vruntime(cfs_rq)
        self.account_cfs_rq_runtime(cfs_rq, delta_exec)

    @kernel(FAIR)
    def account_cfs_rq_runtime(self, cfs_rq, delta_exec):
        self.runtime -= delta_exec
        self.exhausted = self.runtime <= 0                       # assign_cfs_rq_runtime takes what there is
        if not self.exhausted:
            return
        if self.throttled[cfs_rq]:
            return
        self.need_resched = True

    @kernel(FAIR)
    def place_entity(self, cfs_rq, se):
        self.vruntime[se] = max(self.vruntime[se], -self.lead)

    @kernel(FAIR)
    def enqueue_entity(self, cfs_rq, se):
        if self.cfs_rq_of[se] == self.cfs_rq.qVM:
            self.update_curr(cfs_rq)
        self.update_cfs_group(se)
        self.load[cfs_rq] += self.weight[se]                     # account_entity_enqueue
        if self.my_q[se] != NULL:
            self.place_entity(cfs_rq, se)
        self.on_rq[se] = True

    @kernel(FAIR)
    def dequeue_entity(self, cfs_rq, se):
        if self.cfs_rq_of[se] == self.cfs_rq.qVM:
            self.update_curr(cfs_rq)
        self.on_rq[se] = False
        self.load[cfs_rq] -= self.weight[se]                     # account_entity_dequeue
        self.update_cfs_group(se)
        if self.my_q[se] != NULL:
            self.update_min_vruntime(cfs_rq)

    @kernel(FAIR)
    def enqueue_task_fair(self, p):
        se = self.se[p]
        while se != NULL:                                        # for_each_sched_entity
            if self.on_rq[se]:
                break
            self.enqueue_entity(self.cfs_rq_of[se], se)
            if self.throttled[self.cfs_rq_of[se]]:
                return
            se = self.parent[se]
        while se != NULL:
            self.update_cfs_group(se)
            if self.throttled[self.cfs_rq_of[se]]:
                return
            se = self.parent[se]

    @kernel(FAIR)
    def dequeue_task_fair(self, p):
        se = self.se[p]
        while se != NULL:                                        # for_each_sched_entity
            self.dequeue_entity(self.cfs_rq_of[se], se)
            if self.throttled[self.cfs_rq_of[se]]:
                return
            if self.load[self.cfs_rq_of[se]] != 0:
                se = self.parent[se]
                break
            se = self.parent[se]
        while se != NULL:
            self.update_cfs_group(se)
            if self.throttled[self.cfs_rq_of[se]]:
                return
            se = self.parent[se]

    @kernel(FAIR)
    def check_preempt_tick(self, cfs_rq, curr):
        self.need_resched = True                                 # the slice has ended: see the top of this file

    @kernel(FAIR)
    def entity_tick(self, cfs_rq, curr):
        self.update_curr(cfs_rq)
        self.update_load_avg()
        if self.tick_reweight:
            self.update_cfs_group(curr)
        if self.nr_running(cfs_rq) > 1:
            self.check_preempt_tick(cfs_rq, curr)

    @kernel(FAIR)
    def check_preempt_wakeup(self, p):
        se = self.parent[self.se[p]]
        if self.throttled_hierarchy(self.my_q[se]):
            return
        if self.curr == NULL:
            self.need_resched = True
        elif self.vruntime[self.curr] > self.vruntime[se]:
            if choose(True, False):                              # the lead may be within wakeup_gran or not
                self.need_resched = True

    @kernel(FAIR)
    def pick_next_entity(self, cfs_rq, prev):
        left = NULL
        for se in self.entity:
            if self.cfs_rq_of[se] == cfs_rq and self.on_rq[se]:
                if left == NULL or self.vruntime[se] < self.vruntime[left]:
                    left = se
                elif self.vruntime[se] == self.vruntime[left]:
                    if left == prev:                             # put back to the right of its equals
                        left = se
                    elif se != prev and choose(True, False):     # the order in which they were queued
                        left = se
        return left

    @kernel(FAIR)
    def put_prev_entity(self, cfs_rq, prev):
        if prev != NULL and self.on_rq[prev]:
            self.update_curr(cfs_rq)
        self.check_cfs_rq_runtime(cfs_rq)
        self.curr = NULL

    # ------------------------------------------------------------------------------------ the quota (facts A.5)
    @kernel(FAIR)
    def check_cfs_rq_runtime(self, cfs_rq):
        if not self.exhausted or self.throttled[cfs_rq]:
            return
        self.throttle_cfs_rq(cfs_rq)

    @kernel(FAIR)
    def throttle_cfs_rq(self, cfs_rq):
        if self.throttle_retry and self.runtime > 0:             # the refill was faster
            self.exhausted = False
            return
        for q in self.cfs_rq:                                    # walk_tg_tree_from: VM and all below it
            if self.throttle_walk == "hierarchy" or q == cfs_rq:
                self.tg_throttle_down(q)
        self.throttled[cfs_rq] = True                            # and gVM is dequeued, its weight as it was

    @kernel(FAIR)
    def tg_throttle_down(self, cfs_rq):
        self.throttle_count[cfs_rq] += 1

    @kernel(FAIR)
    def unthrottle_cfs_rq(self, cfs_rq):
        self.throttled[cfs_rq] = False
        for q in self.cfs_rq:                                    # leaves first: qA, qB, qVM
            if self.throttle_walk == "hierarchy" or q == cfs_rq:
                self.tg_unthrottle_up(q)
        if self.curr == NULL and self.load[cfs_rq] != 0:
            self.need_resched = True

    @kernel(FAIR)
    def tg_unthrottle_up(self, cfs_rq):
        self.throttle_count[cfs_rq] -= 1
        if self.unthrottle_reweight and self.throttle_count[cfs_rq] == 0:
            se = self.group_se[cfs_rq]
            if se != NULL:
                if self.on_rq[se]:
                    self.update_cfs_group(se)

    # -------------------------------------------------------------------------------------- what the rest does
    @environment
    def nr_running(self, cfs_rq):
        return sum(1 for se in self.entity if self.cfs_rq_of[se] == cfs_rq and self.on_rq[se])

    @environment
    def update_load_avg(self):
        """PELT: a queue that has had load for a tick has a load average, unless its clock stands still."""
        for q in self.cfs_rq:
            if self.load[q] != 0 and self.throttle_count[q] == 0:
                self.load_avg[q] = SOME_LOAD

    @action(cost={"ticks": 1})
    def tick(self):
        """One tick of the clock; the running vCPU is charged."""
        require(not self.need_resched and self.phase < self.period)
        self.phase += 1
        curr = self.curr
        if curr != NULL:
            self.delta_exec = 1
            self.ticked = True
            self.entity_tick(self.cfs_rq.qVM, curr)

    @action
    def schedule(self):
        """The CPU picks, at the next return from an interrupt."""
        require(self.need_resched)
        prev = self.curr
        self.put_prev_entity(self.cfs_rq.qVM, prev)
        self.need_resched = False
        if not self.throttled[self.cfs_rq.qVM]:
            self.curr = self.pick_next_entity(self.cfs_rq.qVM, prev)       # set_next_entity
            self.ticked = False

    @action(per=task)
    def sleep(self, p):
        """The running vCPU halts."""
        require(not self.need_resched and self.curr == self.parent[self.se[p]] and self.on_rq[self.se[p]])
        self.dequeue_task_fair(p)
        self.need_resched = True

    @action(per=task)
    def wake(self, p):
        """An interrupt for a vCPU that sleeps."""
        require(not self.on_rq[self.se[p]])
        self.enqueue_task_fair(p)
        self.check_preempt_wakeup(p)

    @action
    def sched_cfs_period_timer(self):
        """The quota is refilled, and who was throttled is released."""
        require(self.phase == self.period)
        self.phase = 0
        self.runtime = self.quota
        if self.throttled[self.cfs_rq.qVM]:
            self.exhausted = False                               # distribute_cfs_runtime
            self.unthrottle_cfs_rq(self.cfs_rq.qVM)

    @action(per=task_group)
    def decay(self, tg):
        """A group that has been idle for long enough has no load average left; the clock of a throttled one stops."""
        for q in self.cfs_rq:
            if self.tg[q] == tg:
                require(self.load[q] == 0 and self.throttle_count[q] == 0 and self.load_avg[q] != 0)
                self.load_avg[q] = 0

    @action(per=task_group, when="weight_writes")
    def write_weight(self, tg):
        """Someone writes cpu.weight of a group: sched_group_set_shares."""
        require(self.writes < self.weight_writes)
        self.writes += 1
        self.shares[tg] = HALF if self.shares[tg] == NICE_0_LOAD else NICE_0_LOAD
        for q in self.cfs_rq:
            if self.tg[q] == tg and self.group_se[q] != NULL:
                self.update_cfs_group(self.group_se[q])
