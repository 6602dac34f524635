# SPDX-License-Identifier: GPL-2.0-only
"""The format ``ftrace``: the scheduling of a run as the text of /sys/kernel/tracing/trace.

``sched_switch`` where what runs on a CPU changes and ``sched_wakeup`` where an object stops to sleep, in the layout of
include/trace/events/sched.h. Process numbers are made up. The scale of time is that of the format ``perfetto``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from schedproof.errors import InputError
from schedproof.report import not_for
from schedproof.report._lanes import Picture, picture
from schedproof.report.perfetto import moments
from schedproof.trace import Trace

ASLEEP = ("asleep", "halted", "blocked")
FIRST_PID, PRIO = 1000, 120                       # of a task at nice 0
HEADER = """\
# tracer: nop
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
"""


def render(thing: Any) -> str:
    """A trace as ftrace's text. Raises InputError for anything else, and for a model that has no CPUs."""
    if not isinstance(thing, Trace):
        raise not_for(thing, "ftrace")
    seen = picture(thing)
    if not seen.cpus:
        raise InputError(f"format ftrace: {thing.model} does not say what runs on which CPU (its `cpu_lanes`)")
    return HEADER + "".join(f"{line}\n" for line in _lines(seen))


def _lines(seen: Picture) -> Iterator[str]:
    at = moments(seen)
    runs = {cpu: [s.what for s in spans for _ in range(s.first, s.last + 1)] for cpu, spans in seen.cpus.items()}
    does = {lane: [s.what for s in spans for _ in range(s.first, s.last + 1)] for lane, spans in seen.lanes.items()}
    names = sorted({*does, *(w for words in runs.values() for w in words if w)})
    pids = {name: FIRST_PID + i for i, name in enumerate(names, 1)}
    for i in range(1, len(seen.states)):
        for name, words in does.items():
            if words[i - 1] in ASLEEP and words[i] not in ASLEEP:
                cpu = min(seen.cpus)
                who = runs[cpu][i - 1]
                yield _line(who, pids, cpu, at[i], f"sched_wakeup: comm={name} pid={pids[name]} prio={PRIO} "
                                                   f"target_cpu={cpu:03d}")
        for cpu, words in runs.items():
            old, new = words[i - 1], words[i]
            if old != new:
                state = "S" if does.get(old, [""] * len(words))[i] in ASLEEP else "R"
                yield _line(old, pids, cpu, at[i],
                            f"sched_switch: prev_comm={_comm(old, cpu)} prev_pid={pids.get(old, 0)} prev_prio={PRIO} "
                            f"prev_state={state} ==> next_comm={_comm(new, cpu)} next_pid={pids.get(new, 0)} "
                            f"next_prio={PRIO}")


def _comm(name: str, cpu: int) -> str:
    return name or f"swapper/{cpu}"


def _line(who: str, pids: dict[str, int], cpu: int, microseconds: float, event: str) -> str:
    task = who or "<idle>"
    return f"{task:>16}-{pids.get(who, 0):<7} [{cpu:03d}] d..2. {microseconds / 1e6:12.6f}: {event}"
