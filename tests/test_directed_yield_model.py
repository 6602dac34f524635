# SPDX-License-Identifier: GPL-2.0-only
"""directed_yield: its steps on both ways of running, and what of a thread's locals is no part of the state."""

from __future__ import annotations

import pytest

from schedproof.suite.models.directed_yield import DirectedYield
from tests.loading import model_of, require_agreement


@pytest.mark.parametrize("variant", ["base", "v5.3", "v6.13"])
def test_the_transitions_are_the_steps_in_every_reachable_state(variant: str) -> None:
    states, count = require_agreement(DirectedYield.variant(variant, vcpus=3))
    assert states > 40 and count > states


def test_of_the_locals_of_the_handler_only_what_it_stores_is_kept() -> None:
    """tries, looked, the cursor that it began with and the vCPU are read again in the text, but never behind a yield
    that succeeded."""
    instance = DirectedYield.variant("v6.13", vcpus=3)
    changed = {name.rpartition(".")[2].split("[")[0] for x in instance.transitions for name in x.updates
               if name.startswith("guest#")}
    moved = {name for name in changed if any(
        len({s[f] for s in seen(instance)}) > 1 for f in instance.variables if f".{name}[" in f)}
    assert moved == {"stored"}


def seen(instance):
    from schedproof.model.concrete import steps

    found = [dict(i) for i in instance.initial]
    for state in found:
        for taken in steps(instance, state):
            if taken.state not in found:
                found.append(dict(taken.state))
    return found


WAITER = """
    class M(Model):
        cpu = Object("struct rq", "c0", "c1")
        here = Current(cpu)
        x = Pointer(cpu)
        n = Range(0, 3, init=0)
        releases = {"v1": {}}

        @thread(per=cpu, cost={"steps": 1})
        def run(self, me):
            while True:
                block(until=self.n < 3)
                left: Range(0, 2) = 2
                while left > 0:
                    if self.wait() > 0:
                        self.x = self.here
                        break
                    left = left - 1
                self.n = (self.n + 1 if self.n < 3 else 0)

        def wait(self):
            block(until=True)
            return RESULT

        @action(cost={"steps": 1})
        def again(self):
            require(self.n == 3)
            self.n = 0
"""


@pytest.mark.parametrize(("result", "kept"), [("1", False), ("self.n - 1", True)])
def test_a_local_is_kept_where_a_path_that_can_be_taken_reads_it(result: str, kept: bool) -> None:
    instance = model_of(WAITER.replace("RESULT", result)).variant("v1")
    require_agreement(instance)
    values = {state["run.left[c0]"] for state in seen(instance)}
    assert (len(values) > 1) == kept
    assert {state["x"] for state in seen(instance)} == {-1, 0, 1}              # ``here`` is the thread's own


def test_a_thread_that_waits_first_begins_where_it_waits() -> None:
    instance = model_of(WAITER.replace("RESULT", "1")).variant("v1")
    assert instance.show(instance.initial[0])["run.at[c0]"] == "run#0"
