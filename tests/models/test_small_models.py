# SPDX-License-Identifier: GPL-2.0-only
"""The two small models with cuts: what holds, what fails, and that the grain is what makes the difference."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from schedproof.engines import decide
from schedproof.property import Invariant, Property, WorstCase
from tests.loading import MODELS, module_of, require_agreement, small

ROOT = Path(__file__).parent.parent.parent
ENGINES = ("explicit", "reference")
QUEUE, SPIN = small("queue_waiter"), small("spin_handler")


def not_lost(m):
    """The waiter does not sleep when the kick is over and nothing will wake it."""
    return not (m.kicked and m.asleep and not m.token)


def was_kicked(m):
    return m.kicked


def lost(model: type) -> Property:
    return Property("no_lost_wakeup", model, "No wakeup is lost.", Invariant(not_lost, premise=was_kicked))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "variant, verdict", [("v6.1", "proved"), ("v6.1+recheck_removed", "refuted"), ("v6.1+latch_lost", "refuted")]
)
def test_no_wakeup_is_lost_while_the_flag_is_tested_again_and_a_kick_is_kept(engine, variant, verdict):
    found = decide(QUEUE.QueueWaiter.variant(variant), lost(QUEUE.QueueWaiter), engine)
    assert found.name == verdict, found


def test_the_trace_shows_the_kick_before_the_halt():
    """The waiter reads `locked` as false, the giver sets it and finds the state not yet halted, and leaves."""
    found = decide(QUEUE.QueueWaiter.variant("v6.1+recheck_removed"), lost(QUEUE.QueueWaiter), "explicit")
    assert found.name == "refuted" and found.trace is not None
    last: dict[str, str] = dict(found.trace.initial)
    when: dict[str, int] = {}
    for number, step in enumerate(found.trace.stem):
        for name, (_, new) in step.changes.items():
            last[name] = new
            when.setdefault(f"{name}={new}", number)
    assert (last["asleep"], last["token"], last["kicked"]) == ("yes", "no", "yes")
    assert when["locked=yes"] < when["state=halted"] <= when["asleep=yes"]


FRESH = """
import json, sys
from pathlib import Path
from schedproof.property import Invariant, Property, WorstCase
from schedproof.replay import replay
from schedproof.trace import load
from tests.loading import small
trace = load(Path(sys.argv[1]))
name, made = sys.argv[2].split(".")
from tests.models import test_small_models as t
model = getattr(small(name), made)
prop = t.lost(model) if name == "queue_waiter" else t.holder(model)
found = replay(trace, model.variant(trace.variant, **trace.params), prop)
print(json.dumps([found.name, found.worst_case]))
"""


def replayed(file: Path, model: str) -> list[object]:
    """The verdict of a replay in a new process, which has asked no engine before."""
    done = subprocess.run(
        [sys.executable, "-c", FRESH, str(file), model], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("variant", ["v6.1+recheck_removed", "v6.1+latch_lost"])
def test_a_lost_wakeup_is_replayed_from_its_file_in_a_new_process(variant, tmp_path):
    found = decide(QUEUE.QueueWaiter.variant(variant), lost(QUEUE.QueueWaiter), "explicit")
    assert found.name == "refuted" and found.trace is not None
    found.trace.save(tmp_path / "lost.json")
    assert replayed(tmp_path / "lost.json", "queue_waiter.QueueWaiter") == ["refuted", None]


@pytest.mark.parametrize("engine", ENGINES)
def test_with_functions_that_nobody_interrupts_no_wakeup_is_lost(engine):
    """The same text, cut only where the hypercall halts: the giver finds the waiter halted, or not yet begun."""
    text = (
        (MODELS / "queue_waiter.py")
        .read_text()
        .replace('grain="access"', 'grain="blocking"')
        .replace("\n            step()\n", "\n")
    )
    model = module_of(textwrap.dedent(text)).QueueWaiter
    for variant in ("v6.1", "v6.1+recheck_removed"):
        assert decide(model.variant(variant), lost(model), engine).name == "proved"
    assert decide(model.variant("v6.1+latch_lost"), lost(model), engine).name == "refuted"  # this is no race


# ------------------------------------------------------------------------------------------------ the spin handler
def holder_waits(m):
    return m.sched[m.vcpu[0]] == "READY"


def holder(model: type) -> Property:
    return Property("holder_waits", model, "The lock holder runs again.", WorstCase(holder_waits, "yields"))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_lock_holder_waits_for_five_steps(engine):
    """By hand. vcpu1 runs, vcpu0 and vcpu2 are ready, the cursor is vcpu0.

    3  every thread makes the step from its start to its first cut, block(until=RUN); the order does not matter.
    4  vcpu1 spins. The ring behind vcpu0 is vcpu1 (itself), vcpu2 (ready, and eligible, for it is in no spin loop):
       it yields to vcpu2, and vcpu0 is passed by.
    5  vcpu2 spins; the cursor is still vcpu0, for vcpu1 writes it only once it runs again. The ring is vcpu1 (ready, in
       its spin loop, not eligible at first; dy_eligible is turned), vcpu2 (itself), vcpu0: ready, eligible. It yields
       to vcpu0, whose wait ends with this step, which is counted.

    Then vcpu0 runs, and it has to be at most five again: vcpu0 yields to vcpu1 (behind vcpu0, and eligible now), vcpu1
    writes the cursor vcpu2 and comes to its step, and behind vcpu2 vcpu0 is the first: 3.
    """
    found = decide(SPIN.SpinHandler.variant("v6.1"), holder(SPIN.SpinHandler), engine)
    assert (found.name, found.worst_case, found.unit) == ("proved", 5, "yields")


def test_the_worst_wait_is_replayed_from_its_file_in_a_new_process(tmp_path):
    found = decide(SPIN.SpinHandler.variant("v6.1"), holder(SPIN.SpinHandler), "explicit")
    assert found.name == "proved" and found.trace is not None
    found.trace.save(tmp_path / "wait.json")
    assert replayed(tmp_path / "wait.json", "spin_handler.SpinHandler") == ["proved", 5]


@pytest.mark.parametrize(
    "module, model, variants",
    [
        (QUEUE, "QueueWaiter", ("v6.1", "v6.1+recheck_removed", "v6.1+latch_lost")),
        (SPIN, "SpinHandler", ("v6.1", "v6.1+cursor_stays")),
    ],
)
def test_the_transitions_are_the_steps_in_every_reachable_state(module, model, variants):
    for variant in variants:
        states, count = require_agreement(getattr(module, model).variant(variant))
        assert states > 10 and count >= states - 1
