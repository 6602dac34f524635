# SPDX-License-Identifier: GPL-2.0-only
"""``make bench``: measures the engines in one run and prints ratios; the figures go to benchmarks/results.json.

What is compared is measured side by side, so that a busy machine slows down both. SPIN is measured where it and a C
compiler are installed, and must then find the same number of states.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from pv_queue import PvQueue, promela

from schedproof.engines.bmc.engine import Bmc
from schedproof.engines.explicit.engine import Explicit
from schedproof.engines.reference import Reference
from schedproof.property import Invariant, Property
from schedproof.suite.models.quota_reweight import QuotaReweight
from schedproof.suite.properties.quota_reweight import bounded_wait

RESULTS = Path(__file__).resolve().parent / "results.json"


def one_holder(m):  # type: ignore[no-untyped-def]
    return sum(1 for v in m.vcpu if m.at[v] == "HOLD") <= 1


def row(name: str, engine: str, seconds: float, states: int, transitions: int, compile_seconds: float = 0.0,
        bytes_per_state: float | None = None) -> dict[str, Any]:
    return {"name": name, "engine": engine, "seconds": round(seconds, 4), "compile_seconds": round(compile_seconds, 4),
            "states": states, "transitions": transitions, "bytes_per_state": bytes_per_state}


def explicit_row(name: str, instance: Any, prop: Property) -> dict[str, Any]:
    begin = time.perf_counter()
    assert instance.transitions
    symbolic = time.perf_counter() - begin
    counts = Explicit().find(instance, prop).counts
    return row(name, "explicit", counts.seconds, counts.states, counts.transitions,
               symbolic + counts.compile_seconds)


def reference_row(name: str, instance: Any, prop: Property) -> dict[str, Any]:
    begin = time.perf_counter()
    counts = Reference().decide(instance, prop).counts
    return row(name, "reference", time.perf_counter() - begin, counts.states, counts.transitions)


def bmc_row(name: str, instance: Any, prop: Property, depth: int) -> dict[str, Any]:
    """Bounded model checking to a depth; it counts no states."""
    begin = time.perf_counter()
    assert instance.transitions
    symbolic = time.perf_counter() - begin
    counts = Bmc(depth).decide(instance, prop).counts
    assert counts.depth == depth
    return row(f"{name} to depth {depth}", "bmc", counts.seconds, 0, 0, symbolic)


def spin_row(name: str, vcpus: int) -> dict[str, Any] | None:
    """SPIN on the same queue, safety only, -O3, no reduction; None where it is not installed."""
    if not shutil.which("spin") or not shutil.which("cc"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "q.pml").write_text(promela(vcpus))
        options = ["-O3", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=8000"]
        build = (["spin", "-a", "q.pml"], ["cc", *options, "-o", "pan", "pan.c"])
        begin = time.perf_counter()
        for command in build:
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
        compiled = time.perf_counter() - begin
        begin = time.perf_counter()
        search = ["./pan", "-w24", "-m1000000"]
        out = subprocess.run(search, cwd=folder, check=True, capture_output=True, text=True).stdout
        seconds = time.perf_counter() - begin
    states, transitions = (int(re.search(rf"(\d+) {what}", out)[1])  # type: ignore[index]
                           for what in ("states, stored", "transitions"))
    memory = re.search(r"([\d.]+)\s+actual memory usage for states", out)
    size = float(memory[1]) * 1e6 / states if memory else None
    return row(name, "spin", seconds, states, transitions, compiled, round(size, 1) if size else None)


def main() -> int:
    small = PvQueue.variant("v1", vcpus=3)
    # The search loops are compiled on first use: off the clock.
    Explicit().find(small, Property("one_holder", PvQueue, "", Invariant(one_holder)))
    rows = []
    for vcpus in (4, 5):
        name = f"pv_queue {vcpus} vCPUs"
        prop = Property("one_holder", PvQueue, "At most one holds the lock.", Invariant(one_holder))
        rows.append(explicit_row(name, PvQueue.variant("v1", vcpus=vcpus), prop))
        spun = spin_row(name, vcpus)
        if spun is not None:
            rows.append(spun)
    prop = Property("one_holder", PvQueue, "At most one holds the lock.", Invariant(one_holder))
    rows.append(bmc_row("pv_queue 4 vCPUs", PvQueue.variant("v1", vcpus=4), prop, 12))
    name = "quota_reweight bounded_wait v4.14"
    rows.append(explicit_row(name, QuotaReweight.variant("v4.14"), bounded_wait))
    rows.append(reference_row(name, QuotaReweight.variant("v4.14"), bounded_wait))
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    for r in rows:
        rate = r["transitions"] / r["seconds"] / 1e6 if r["seconds"] else 0.0
        print(f"{r['name']:36} {r['engine']:10} {r['states']:>10,} states {r['transitions']:>11,} transitions "
              f"{r['seconds']:8.3f} s {rate:6.2f} M/s (made in {r['compile_seconds']:.2f} s)")
    by_key = {(r["name"], r["engine"]): r for r in rows}
    print()
    for (name, engine), other in by_key.items():
        if engine in ("explicit", "bmc"):
            continue
        mine = by_key[name, "explicit"]
        print(f"{name}: explicit searches {other['seconds'] / mine['seconds']:.1f} times as fast as {engine}")
        # SPIN counts the initial state's entry as one transition more; the reference counts a step once, whatever
        # number of choices that do not matter lead to it.
        most = {"spin": 1, "reference": mine["transitions"]}[engine]
        if other["states"] != mine["states"] or abs(other["transitions"] - mine["transitions"]) > most:
            print(f"  but {engine} found {other['states']:,} states and {other['transitions']:,} transitions")
            return 1
    if not any(r["engine"] == "spin" for r in rows):
        print("SPIN is not installed (Debian: spin), so it was not measured")
    return 0


if __name__ == "__main__":
    sys.exit(main())
