# SPDX-License-Identifier: GPL-2.0-only
"""The C of CFS group weights and of the CFS quota, field by field. Source: kernel/sched/fair.c, releases 6.1 and 6.12.

quota_reweight.py is the mechanism in ticks; here are the functions themselves, with exact C values. There are no
methods for them and no actions: what a tree has is read, run, and compared with what another one has.

One CPU, one chain of groups, one task in the innermost of them:

    cpu0: root ── gVM ── qVM ── gA ── qA ── a

Every pointer argument is each of these objects in turn, every number is any number of its type. What is not looked
into are red-black trees, lists, PELT's decay, timers and the other scheduling classes: ``callees`` names the functions
at which reading stops, with the reason. They may change anything, in the same way on both sides of a comparison.
"""

from __future__ import annotations

from dataclasses import replace

from schedproof.model import Int, Link, Model, Object, Pointer, Vocabulary

FAIR = "kernel/sched/fair.c"
CORE = "kernel/sched/core.c"

TREE = "the red-black tree of queued entities"
LEAF = "the list of leaf cfs_rqs of a CPU, which PELT walks"
LIST = "the list of throttled cfs_rqs, which distribute_cfs_runtime walks"
PELT = "PELT: decays the averages up to now and propagates them"
ACCOUNT = "accounts CPU time to cgroups and POSIX timers, which no scheduling decision here looks at"
TRACE = "a tracepoint"
LOCK = "nothing runs at the same time"
FEATURE = "kernel/sched/features.h"


class QuotaFunctions(Model):
    """Structs of kernel/sched/sched.h and include/linux/sched.h as far as the functions below touch them."""

    # ------------------------------------------------------------------------------------------------- objects
    rq = Object("struct rq", "cpu0")
    entity = Object("struct sched_entity", "gVM", "gA", "a")
    cfs_rq = Object("struct cfs_rq", "root", "qVM", "qA")
    task_group = Object("struct task_group", "root", "VM", "A")
    cfs_bandwidth = Object("struct cfs_bandwidth", "root", "VM", "A")
    task = Object("struct task_struct", "a", "idle")
    root_domain = Object("struct root_domain", "def")
    load_weight = Object("struct load_weight", "lw")

    # ------------------------------------------------------------------- pointers that never change, embedded structs
    rq_of = Link(cfs_rq, rq, {"root": "cpu0", "qVM": "cpu0", "qA": "cpu0"}, c="rq")
    tg_of = Link(cfs_rq, task_group, {"root": "root", "qVM": "VM", "qA": "A"}, c="tg")
    cfs_rq_of = Link(entity, cfs_rq, {"gVM": "root", "gA": "qVM", "a": "qA"}, c="cfs_rq")
    my_q = Link(entity, cfs_rq, {"gVM": "qVM", "gA": "qA"}, c="my_q")                        # NULL for tasks
    parent = Link(entity, entity, {"gA": "gVM", "a": "gA"}, c="parent")
    tg_se = Link(task_group, entity, {"VM": "gVM", "A": "gA"}, c="se[0]")                    # tg->se[cpu]
    tg_cfs_rq = Link(task_group, cfs_rq, {"root": "root", "VM": "qVM", "A": "qA"}, c="cfs_rq[0]")
    rq_cfs = Link(rq, cfs_rq, {"cpu0": "root"}, c="cfs")
    tg_bandwidth = Link(task_group, cfs_bandwidth, {"root": "root", "VM": "VM", "A": "A"}, c="cfs_bandwidth")
    task_se = Link(task, entity, {"a": "a"}, c="se")
    rq_idle = Link(rq, task, {"cpu0": "idle"}, c="idle")
    rq_rd = Link(rq, root_domain, {"cpu0": "def"}, c="rd")

    # ---------------------------------------------------------------------------------------------- struct sched_entity
    on_rq = Int(per=entity, c="on_rq")
    weight = Int(per=entity, c="load.weight")
    inv_weight = Int(per=entity, c="load.inv_weight")
    vruntime = Int(per=entity, c="vruntime")
    exec_start = Int(per=entity, c="exec_start")
    sum_exec_runtime = Int(per=entity, c="sum_exec_runtime")
    runnable_weight = Int(per=entity, c="runnable_weight")
    se_load_avg = Int(per=entity, c="avg.load_avg")
    se_load_sum = Int(per=entity, c="avg.load_sum")
    se_period_contrib = Int(per=entity, c="avg.period_contrib")
    deadline = Int(per=entity, c="deadline")                        # from here on: EEVDF
    vlag = Int(per=entity, c="vlag")
    slice = Int(per=entity, c="slice")
    custom_slice = Int(per=entity, c="custom_slice")
    rel_deadline = Int(per=entity, c="rel_deadline")
    sched_delayed = Int(per=entity, c="sched_delayed")

    # ---------------------------------------------------------------------------------------------------- struct cfs_rq
    load = Int(per=cfs_rq, c="load.weight")
    load_inv_weight = Int(per=cfs_rq, c="load.inv_weight")
    curr = Pointer(entity, per=cfs_rq, c="curr")
    next = Pointer(entity, per=cfs_rq, c="next")
    leftmost = Pointer(entity, per=cfs_rq, c="tasks_timeline.rb_leftmost")                   # to its run_node
    nr_running = Int(per=cfs_rq, c="nr_running")
    h_nr_running = Int(per=cfs_rq, c="h_nr_running")
    idle_h_nr_running = Int(per=cfs_rq, c="idle_h_nr_running")
    min_vruntime = Int(per=cfs_rq, c="min_vruntime")
    load_avg = Int(per=cfs_rq, c="avg.load_avg")
    load_sum = Int(per=cfs_rq, c="avg.load_sum")
    tg_load_avg_contrib = Int(per=cfs_rq, c="tg_load_avg_contrib")
    on_list = Int(per=cfs_rq, c="on_list")
    idle_group = Int(per=cfs_rq, c="idle")
    runtime_enabled = Int(per=cfs_rq, c="runtime_enabled")
    runtime_remaining = Int(per=cfs_rq, c="runtime_remaining")
    throttled = Int(per=cfs_rq, c="throttled")
    throttle_count = Int(per=cfs_rq, c="throttle_count")
    throttled_clock = Int(per=cfs_rq, c="throttled_clock")
    throttled_clock_pelt = Int(per=cfs_rq, c="throttled_clock_pelt")
    throttled_clock_pelt_time = Int(per=cfs_rq, c="throttled_clock_pelt_time")
    throttled_clock_self = Int(per=cfs_rq, c="throttled_clock_self")
    throttled_clock_self_time = Int(per=cfs_rq, c="throttled_clock_self_time")
    h_nr_queued = Int(per=cfs_rq, c="h_nr_queued")                  # from here on: EEVDF
    h_nr_runnable = Int(per=cfs_rq, c="h_nr_runnable")
    h_nr_delayed = Int(per=cfs_rq, c="h_nr_delayed")
    avg_vruntime = Int(per=cfs_rq, c="avg_vruntime")
    avg_load = Int(per=cfs_rq, c="avg_load")
    zero_vruntime = Int(per=cfs_rq, c="zero_vruntime")

    # ------------------------------------------------- struct task_group, cfs_bandwidth, rq, task_struct, load_weight
    shares = Int(per=task_group, c="shares")
    tg_load_avg = Int(per=task_group, c="load_avg")
    quota = Int(per=cfs_bandwidth, c="quota")
    runtime = Int(per=cfs_bandwidth, c="runtime")
    bandwidth_idle = Int(per=cfs_bandwidth, c="idle")
    throttled_time = Int(per=cfs_bandwidth, c="throttled_time")
    clock = Int(per=rq, c="clock")
    clock_task = Int(per=rq, c="clock_task")
    clock_pelt = Int(per=rq, c="clock_pelt")
    lost_idle_time = Int(per=rq, c="lost_idle_time")
    rq_nr_running = Int(per=rq, c="nr_running")
    rq_curr = Pointer(task, per=rq, c="curr")
    fair_server_active = Int(per=rq, c="fair_server.dl_server_active")
    overload = Int(per=root_domain, c="overload")
    overloaded = Int(per=root_domain, c="overloaded")               # its name since 6.10
    policy = Int(per=task, c="policy")
    lw_weight = Int(per=load_weight, c="weight")
    lw_inv_weight = Int(per=load_weight, c="inv_weight")

    # -------------------------------------------------------------------------------------------------------- tunables
    sysctl_sched_latency = Int(c="sysctl_sched_latency")
    sysctl_sched_min_granularity = Int(c="sysctl_sched_min_granularity")
    sysctl_sched_base_slice = Int(c="sysctl_sched_base_slice")
    sysctl_sched_cfs_bandwidth_slice = Int(c="sysctl_sched_cfs_bandwidth_slice")

    releases = {"v6.1": {}, "v6.12": {}}

    functions = dict.fromkeys((
        "update_curr", "calc_delta_fair", "__calc_delta", "place_entity", "tg_throttle_down", "tg_unthrottle_up",
        "throttle_cfs_rq", "unthrottle_cfs_rq", "__account_cfs_rq_runtime"), FAIR) | {"tg_nop": CORE}

    vocabulary = Vocabulary(
        callees={
            "__enqueue_entity": TREE, "__dequeue_entity": TREE,
            "enqueue_entity": "joins a queue: tree, PELT and placement", "dequeue_entity": "leaves a queue, likewise",
            "update_load_avg": PELT, "cfs_rq_is_decayed": PELT,
            "check_preempt_tick": "whether the slice of 6.1 is used up: slices are sums over a queue",
            "sched_vslice": "the slice of 6.1: a sum over a queue",
            "start_cfs_bandwidth": "starts the period timer",
            "resched_curr": "sets TIF_NEED_RESCHED and sends an interrupt",
            "update_rq_clock": "reads the clock",
            "walk_tg_tree_from@struct rq": "walks the tree of groups and calls both functions for each",
            "list_add_leaf_cfs_rq": LEAF, "list_del_leaf_cfs_rq": LEAF,
            "list_add_tail_rcu@struct cfs_rq.throttled_list,struct cfs_bandwidth.throttled_cfs_rq": LIST,
            "list_del_rcu@struct cfs_rq.throttled_list": LIST,
            "dl_server_update@struct rq.fair_server": "the deadline server", "dl_server_start@struct rq.fair_server":
            "the deadline server",
        },
        noop={
            "trace_sched_stat_runtime": TRACE, "trace_sched_update_nr_running_tp_enabled": TRACE,
            "call_trace_sched_update_nr_running": TRACE, "account_group_exec_runtime": ACCOUNT,
            "cgroup_account_cputime": ACCOUNT, "raw_spin_lock": LOCK, "raw_spin_unlock": LOCK,
        },
        constants={"NSEC_PER_USEC": 1000, "TICK_NSEC": 1_000_000,              # include/vdso, CONFIG_HZ=1000
                   "SCHED_IDLE": 5},                                           # include/uapi/linux/sched.h
        static_keys={
            "__cfs_bandwidth_used": (True, "there is a quota"),
            **dict.fromkeys(("GENTLE_FAIR_SLEEPERS", "START_DEBIT", "PLACE_LAG", "PLACE_DEADLINE_INITIAL",
                             "PLACE_REL_DEADLINE", "RUN_TO_PARITY", "PREEMPT_SHORT", "DELAY_DEQUEUE", "DELAY_ZERO"),
                            (True, FEATURE)),
        },
    )


class WeightFunctions(QuotaFunctions):
    """The weight of a group: the same structs, with update_curr as one more callee, which is read for itself above."""

    functions = dict.fromkeys((
        "update_cfs_group", "calc_group_shares", "reweight_entity", "entity_tick", "throttled_hierarchy"), FAIR)

    vocabulary = replace(QuotaFunctions.vocabulary, callees={
        **QuotaFunctions.vocabulary.callees, "update_curr": "a function of QuotaFunctions, compared for itself"})
