# SPDX-License-Identifier: GPL-2.0-only
"""Wake-affine and vCPU stacking. The labels WA1 to WA15 are those of the collected facts; docs/wake_affine.md lists
them all, those that nothing decides as well.

The life cycle of threads is the same in all releases, so its properties speak about one of them. They hold and fail in
the same variants with two vCPUs and four threads, which the tests try.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import z3

from schedproof.model import NULL
from schedproof.model.function import Run, all_inputs
from schedproof.property import Claim, Invariant, Lemma, Property
from schedproof.suite.models.wake_affine import VcpuThreads, WakeAffine

PATCH = "v6.12+no_wake_affine"                         # the patch of July 2019, on any release
RUN = "v6.12+set_on_run"
EXACT = "v6.12+set_on_run+not_inherited+clear_on_handoff"
INSIDE = "v6.12+while_in_run"


# ---------------------------------------------------------------------------------- who runs a vCPU has the flag
def runners_flagged(m):
    return all(all(m.inside[v] != t or m.flag[t] for t in m.thread) for v in m.vcpu)


def somebody_runs(m):
    return any(m.inside[v] != NULL for v in m.vcpu)


vcpu_threads_flagged = Property(
    "vcpu_threads_flagged", VcpuThreads, "Every thread that is in KVM_RUN has the flag.",
    Invariant(runners_flagged, premise=somebody_runs), facts="WA1",
    holds=(PATCH, f"{PATCH}+creator=main_first", RUN, f"{RUN}+reuse=true", f"{RUN}+creator=main", EXACT,
           f"{EXACT}+reuse=true", INSIDE, f"{INSIDE}+reuse=true", f"{INSIDE}+creator=main"),
    fails=(f"{PATCH}+creator=main", f"{PATCH}+creator=main_first+not_inherited", f"{PATCH}+reuse=true"),
    why="The thread that created the vCPU has the flag, and another one runs it. Its wakeups are as affine as before.")


# -------------------------------------------------------------------------------------------------- and nobody else
def only_runners(m):
    """A thread with the flag is the last one that called KVM_RUN on some vCPU."""
    return all(not m.flag[t] or any(m.pid[v] == t for v in m.vcpu) for t in m.thread)


def somebody_flagged(m):
    return any(m.flag[t] for t in m.thread)


only_vcpu_threads_flagged = Property(
    "only_vcpu_threads_flagged", VcpuThreads, "Every thread with the flag runs a vCPU of a VM that is there.",
    Invariant(only_runners, premise=somebody_flagged), facts="WA2",
    holds=(EXACT, f"{EXACT}+reuse=true", f"{EXACT}+creator=main", INSIDE, f"{INSIDE}+reuse=true",
           f"{INSIDE}+creator=main"),
    fails=(PATCH, f"{PATCH}+creator=main", f"{PATCH}+reuse=true", f"{PATCH}+not_inherited", RUN,
           f"{RUN}+not_inherited"),
    why="Wakeups of a thread that is no vCPU are not affine any more: nobody asked for that, and nobody sees it.")


def helpers_plain(m):
    """While a thread is in KVM_RUN, nobody has the flag for whom no vCPU is meant."""
    return all(m.inside[v] == NULL for v in m.vcpu) or all(
        not m.flag[t] or any(m.owner[v] == t for v in m.vcpu) for t in m.thread)


helpers_not_flagged = Property(
    "helpers_not_flagged", VcpuThreads, "While a vCPU runs, no thread has the flag that no vCPU is meant for.",
    Invariant(helpers_plain, premise=somebody_runs), facts="WA2",
    holds=(EXACT, INSIDE),
    fails=(PATCH, f"{PATCH}+creator=main_first", f"{PATCH}+not_inherited", RUN, f"{RUN}+not_inherited"),
    why="A thread that is started by one with the flag has it, too: a worker of io_uring or vhost, a child process. "
        "Where clone() does not copy it, a thread still has it from a VM that is gone.")


# -------------------------------------------------------------------------------------- it goes when the VM goes
def gone(m):
    return m.vm or not any(m.flag[t] for t in m.thread)


def after_a_vm(m):
    return not m.vm and m.had_run


flag_ends_with_vm = Property(
    "flag_ends_with_vm", VcpuThreads, "When the VM is gone no thread has the flag.",
    Invariant(gone, premise=after_a_vm), facts="WA3",
    holds=(EXACT, f"{EXACT}+reuse=true", INSIDE, f"{INSIDE}+reuse=true"),
    fails=(PATCH, f"{PATCH}+creator=main", RUN, f"{PATCH}+not_inherited"),
    why="Nothing takes the flag away: what the thread does next is placed as if it were a vCPU.")


def main_plain(m):
    return not (m.execed and not m.vm and m.flag[m.thread[0]])


def execed(m):
    return m.execed


exec_ends_flag = Property(
    "exec_ends_flag", VcpuThreads, "When the main thread has closed the VM and become another program, it has no flag.",
    Invariant(main_plain, premise=execed), facts="WA3", holds=(PATCH, EXACT, INSIDE),
    fails=(f"{PATCH}+creator=main", f"{PATCH}+creator=main_first"),
    why="execve() clears the task flags that it knows, and not this one.")


# --------------------------------------------------------------------------------------------- how it is written
def failure_leaves_nothing(m):
    return not m.flagged_by_failure


def has_failed(m):
    return m.failed


failed_create_leaves_no_flag = Property(
    "failed_create_leaves_no_flag", VcpuThreads, "A creation that fails leaves no flag that was not there before.",
    Invariant(failure_leaves_nothing, premise=has_failed), facts="WA12", holds=(PATCH, RUN),
    fails=("v6.12+flag_before_checks",))


def writes_own(m):
    return not m.foreign


flag_written_by_owner = Property(
    "flag_written_by_owner", VcpuThreads, "A thread writes its own flags only.",
    Invariant(writes_own, premise=somebody_flagged), facts="WA14",
    holds=(PATCH, f"{PATCH}+reuse=true", RUN, f"{RUN}+reuse=true", INSIDE, f"{INSIDE}+reuse=true"),
    fails=(f"{RUN}+clear_on_handoff+reuse=true", f"{RUN}+clear_on_handoff", "v6.12+flag_by_pid+reuse=true"),
    why="task_struct.flags is written without a lock, by current only: a write of another thread can undo it or be "
        "undone.")


# ------------------------------------------------------------------------------- placement: one wakeup in any state
PLACED = ("v5.7", "v6.1", "v6.12")
THREE = {"tasks": 3}
ALL_FLAGS = (1 << 32) - 1
WIDEST = {"wakee_flips": (0, 1 << 16), "flags": (0, ALL_FLAGS)}


def fixed(*changes: str) -> tuple[str, ...]:
    """The changes in every release of the placement."""
    return tuple(f"{release}+{change}" for release in PLACED for change in changes)


@dataclass(frozen=True)
class Wakeup:
    """task0 runs on cpu0 when task1 is woken, which sleeps and ran on cpu1: on which of them the idle search begins.

    The state is any that fits together: ``claim`` says how.
    """

    run: Run
    target: z3.ArithRef
    sync: z3.ArithRef
    in_task: z3.ArithRef

    def claim(self, formula: z3.BoolRef, *more: z3.BoolRef) -> Claim:
        at = self.run.before
        here = (
            at["current"] == 0, at["this_cpu"] == 0, at["curr[cpu0]"] == 0, at["nr_running[cpu0]"] >= 1,
            at["cfs_rq_of[task0]"] == 0, at["cfs_rq_of[task1]"] == 1,
            z3.Or(at["curr[cpu1]"] == 2, at["curr[cpu1]"] == 4),
            *(at[f"h_load[cfs{i}]"] == at[f"load_avg[cfs{i}]"] for i in (0, 1)),        # a CPU's own queue
            *(at[f"load_avg[cfs{i}]"] >= at[f"task_load[task{i}]"] for i in (0, 1)),    # of a sleeper as well
            *(at[f"h_nr_runnable[cfs{i}]"] <= at[f"h_nr_queued[cfs{i}]"] for i in (0, 1)),
            *(at[f"h_nr_queued[cfs{i}]"] <= at[f"nr_running[cpu{i}]"] for i in (0, 1)),
            *(z3.Or(x == 0, x == 1) for x in (self.sync, self.in_task)))
        return Claim(formula, self.run.inputs, (*self.run.assumptions, *here, *more))

    def idle(self, cpu: int) -> z3.BoolRef:
        """available_idle_cpu(); task2 is another one, then come the swappers."""
        at = self.run.before
        return z3.And(at[f"curr[cpu{cpu}]"] == 3 + cpu, at[f"nr_running[cpu{cpu}]"] == 0,
                      z3.Not(at[f"ttwu_pending[cpu{cpu}]"]))


def wakeup(instance: Any) -> Wakeup:
    sync, in_task = z3.Int("WF_SYNC"), z3.Int("in_task")
    run = all_inputs(instance, "affine_target", ["task1", "cpu1", sync, in_task], WIDEST)
    assert run.value is not None
    return Wakeup(run, run.value, sync, in_task)


def idle_prev(instance: Any) -> Claim:
    w = wakeup(instance)
    return w.claim(w.target == 1, w.idle(1), w.sync == 0)


idle_prev_kept = Property(
    "idle_prev_kept", WakeAffine,
    "A wakeup without a sync hint is not pulled to a busy CPU when the wakee's previous one is idle.",
    Lemma(idle_prev), instance=THREE, facts="WK02", holds=("v6.1", "v6.12", "v5.7+prev_idle=true"),
    fails=("v5.7", "v6.1+prev_idle=false", "v6.12+prev_idle=false"),
    why="The load average of an idle CPU need not be 0, so the busy CPU of the waker can look less loaded.")


def bystander(instance: Any) -> Claim:
    """The same wakeup with and without the hint, from an interrupt."""
    w = wakeup(instance)
    plain = z3.substitute(w.target, (w.sync, z3.IntVal(0)))
    return w.claim(w.target == plain, w.in_task == 0)


bystander_is_no_waker = Property(
    "bystander_is_no_waker", WakeAffine,
    "The sync hint of a wakeup from an interrupt does not change where the wakee goes.",
    Lemma(bystander), instance=THREE, facts="WK03", holds=fixed("sync_in_task"), fails=PLACED,
    why="The hint says that the waker is about to sleep. In an interrupt that is another task, which goes on.")


def with_flag(instance: Any) -> Claim:
    w = wakeup(instance)
    return w.claim(w.target == 1, w.run.before["flags[task1]"] == ALL_FLAGS)


flagged_not_pulled = Property(
    "flagged_not_pulled", WakeAffine,
    "A wakee with every flag set, also those that a patch may bring, is not pulled to the waker's CPU.",
    Lemma(with_flag), instance=THREE, facts="WA4, WA6",
    holds=fixed("no_wake_affine", "tested_elsewhere", "domain_flag_off"),
    fails=PLACED,
    why="The wakee's idle search begins at the CPU of its waker, which may be a sibling vCPU: if no CPU is idle, the "
        "two are stacked.")


def by_flagged(instance: Any) -> Claim:
    w = wakeup(instance)
    at = w.run.before
    return w.claim(w.target == 1, at["flags[task1]"] == 0, at["flags[task0]"] == ALL_FLAGS)


helper_not_pulled = Property(
    "helper_not_pulled", WakeAffine,
    "A thread without flags that a thread with all flags wakes is not pulled to that one's CPU.",
    Lemma(by_flagged), instance=THREE, facts="WA8", holds=fixed("domain_flag_off"),
    fails=fixed("no_wake_affine", "tested_elsewhere"),
    why="Only the wakee's flag is looked at: an I/O thread that a vCPU wakes still lands on the CPU of the vCPU.")


def without_flags(instance: Any) -> Claim:
    """The wakeup of a wakee without flags, here and in the release without the patch."""
    w = wakeup(instance)
    plain = wakeup(instance.model.variant(instance.name.split("+")[0], **instance.params))
    return w.claim(w.target == plain.target, w.run.before["flags[task1]"] == 0)


others_as_before = Property(
    "others_as_before", WakeAffine, "A wakee without flags goes where it goes in the release.",
    Lemma(without_flags), instance=THREE, facts="WA7, WA13", holds=fixed("no_wake_affine", "tested_elsewhere"),
    fails=fixed("domain_flag_off"),
    why="The switch is one of the domain, so it changes the wakeups of every task of the host.")


def wide_again(instance: Any) -> Claim:
    """Two pairs of flips: the second has no fewer on either side, nor a smaller ratio of the greater to the smaller."""
    run = all_inputs(instance, "wake_wide", ["task1"], {"wakee_flips": (0, 1 << 16)})
    at, more = run.before, [z3.Int("more flips of task0"), z3.Int("more flips of task1")]
    flips = [at["wakee_flips[task0]"], at["wakee_flips[task1]"]]
    assert run.value is not None
    later = z3.substitute(run.value, *zip(flips, more, strict=True))
    low, high = [z3.If(flips[0] < flips[1], flips[i], flips[1 - i]) for i in (0, 1)]
    low_, high_ = [z3.If(more[0] < more[1], more[i], more[1 - i]) for i in (0, 1)]
    grown = (more[0] >= flips[0], more[1] >= flips[1], more[0] <= 1 << 17, more[1] <= 1 << 17,
             high_ * low >= high * low_)
    inputs = {**run.inputs, **{str(m): m for m in more}}
    return Claim(z3.Implies(run.value == 1, later == 1), inputs,
                 (*run.assumptions, at["current"] == 0, at["this_cpu"] == 0, *grown))


wide_is_monotone = Property(
    "wide_is_monotone", WakeAffine,
    "More flips on both sides never make a wide wakeup narrow, unless their ratio drops.", Lemma(wide_again),
    facts="WA11", holds=PLACED, fails=fixed("narrow_when_many"))
