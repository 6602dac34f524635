# SPDX-License-Identifier: GPL-2.0-only
"""Wake-affine and vCPU stacking. The labels WA1 to WA15 are those of the collected facts; docs/wake_affine.md lists
them all, those that nothing decides as well.

The life cycle of threads is the same in all releases, so its properties speak about one of them. They hold and fail in
the same variants with two vCPUs and four threads, which the tests try.
"""

from __future__ import annotations

from schedproof.model import NULL
from schedproof.property import Invariant, Property
from schedproof.suite.models.wake_affine import VcpuThreads

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
