# SPDX-License-Identifier: GPL-2.0-only
"""The explicit engine and the reference engine agree; each worst case is derived again by plain reachability."""

from __future__ import annotations

import os
import sys
import textwrap
from functools import lru_cache
from typing import Any

import pytest
import z3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedproof.engines import decide
from schedproof.engines.explicit.engine import Explicit
from schedproof.engines.reference import Reference
from schedproof.model.concrete import steps
from schedproof.model.domains import Range
from schedproof.model.transition import Transition, Variable
from schedproof.property import Invariant, Property, Reachable, WorstCase
from schedproof.registry import properties
from tests.engines.handmade import SMALL_MODEL
from tests.loading import Valuer, model_of, small

QUOTA = {p.name: p for p in properties("quota_reweight")}
WAITS = QUOTA["bounded_wait"]
MODEL: Any = WAITS.model


LONG = bool(os.environ.get("SCHEDPROOF_LONG_TESTS"))  # all instances instead of some: about ten minutes


def untold(*_: Any) -> Any:
    """Stands in for the maker of traces."""
    return None


class Monitored:
    """An instance with one variable more: what the wait has cost so far, not counted any further than ``top``."""

    def __init__(self, instance: Any, waiting: z3.BoolRef, unit: str, top: int):
        spent = z3.Int("spent")
        self.spent, self.name, self.title, self.view = spent, instance.name, instance.title, instance.view
        self.variables = {**instance.variables, "spent": Variable("spent", "spent", None, Range(0, top), spent)}
        self.initial = tuple({**i, "spent": 0} for i in instance.initial)
        self.transitions = tuple(self.watched(x, waiting, unit, top) for x in instance.transitions)
        self.final, self.dead = instance.final, instance.dead

    def watched(self, x: Transition, waiting: z3.BoolRef, unit: str, top: int) -> Transition:
        more = self.spent + x.costs.get(unit, z3.IntVal(0))
        update = z3.If(waiting, z3.If(more > top, z3.IntVal(top), more), z3.IntVal(0))
        return Transition(
            x.action,
            x.args,
            x.choices,
            x.guard,
            {**x.updates, "spent": update},
            x.costs,
            None,
            x.sites,
            x.free,
            x.loc,
            x.fault,
        )

    def predicate(self, formula: Any) -> z3.BoolRef:
        return formula


def reaches(instance: Any, waiting: Any, unit: str, top: int, value: int) -> bool:
    """Whether some wait costs ``value`` in all, by an engine that knows nothing of waits."""
    watched = Monitored(instance, instance.predicate(waiting), unit, top)
    found = Explicit(trace_maker=untold).find(
        watched, Property("p", None, "", Reachable(watched.spent == value))
    )
    assert found.outcome in ("proved", "refuted"), found
    return found.outcome == "proved"


def require_worst(instance: Any, waiting: Any, unit: str, worst: int) -> None:
    assert reaches(instance, waiting, unit, worst + 1, worst)
    assert not reaches(instance, waiting, unit, worst + 1, worst + 1)


def require_same(instance: Any, prop: Property) -> Any:
    """The verdicts are the same, and so are the numbers of states and of steps. Returns the explicit one."""
    found, plain = decide(instance, prop, "explicit"), decide(instance, prop, "reference")
    assert (found.name, found.worst_case) == (plain.name, plain.worst_case), (found, plain)
    assert found.unit == plain.unit or found.name == "vacuous"
    if not isinstance(prop.kind, Invariant) or found.name != "refuted":  # else the search stops where it finds it
        assert (found.counts.states, found.counts.transitions) == counted(instance)
        assert found.counts.states == plain.counts.states
    return found


@lru_cache(maxsize=8)
def counted(instance: Any) -> tuple[int, int]:
    """States by the plain interpreter; steps as the explicit engine counts them: an enabled transition of a state."""
    assert instance.transitions is not None
    names = list(instance.variables)
    guards = Valuer([t.guard for t in instance.transitions], [v.term for v in instance.variables.values()])
    seen = {tuple(i[n] for n in names) for i in instance.initial}
    todo, count = list(seen), 0
    for key in todo:
        enabled = [t for t, holds in zip(instance.transitions, guards(key), strict=True) if holds]
        taken = list(steps(instance, dict(zip(names, key, strict=True))))
        assert {(t.action, t.args, t.sites) for t in enabled} == {(t.action, t.args, t.sites) for t in taken}
        following = {tuple(t.state[n] for n in names) for t in taken}
        assert len(following) <= len(enabled)
        count += len(enabled)
        todo += following - seen
        seen |= following
    return len(seen), count


# --------------------------------------------------------------------------------------------- quota_reweight
CASES = [
    (variant, quota, period, ratio)
    for variant in ("v4.14", "v6.1", "v4.14+drop_guard", "v6.1+drop_guard")
    for quota, period in ((1, 2), (2, 4), (1, 3))
    for ratio in (2, 3, 4, 5)
]
SOME = [("v4.14", 1, 2, 5), ("v6.1", 1, 3, 3), ("v4.14+drop_guard", 2, 4, 2), ("v6.1+drop_guard", 1, 2, 4)]


@pytest.mark.parametrize("variant, quota, period, ratio", CASES if LONG else SOME)
def test_quota_reweight(variant, quota, period, ratio):
    instance = MODEL.variant(variant, quota=quota, period=period, ratio=ratio, lead=1 if LONG else 0)
    found = require_same(instance, WAITS)
    assert isinstance(found.worst_case, int) and found.worst_case > 1
    require_worst(instance, WAITS.kind.waiting, "ticks", found.worst_case)


INVARIANTS = [n for n, p in QUOTA.items() if isinstance(p.kind, Invariant)]


@pytest.mark.parametrize("name", INVARIANTS if LONG else ["no_stale_run", "sum_of_weights"])
def test_the_invariants_of_quota_reweight(name):
    prop = QUOTA[name]
    for variant in (*prop.holds[:1], *prop.fails[:1]):
        instance = MODEL.variant(variant, quota=1, period=2, ratio=2, lead=0, **prop.instance)
        assert decide(instance, prop, "explicit").name == decide(instance, prop, "reference").name


@pytest.mark.parametrize("variant", ["v4.14+drop_guard", "v6.1+reweight_at_unthrottle"])
def test_the_bound_is_never_exceeded(variant):
    """The worst case of a fixed kernel against the bound that is worked out by hand in the properties' file."""
    over, below = [], []
    wait = Property("p", MODEL, "", WorstCase(WAITS.kind.waiting, "ticks"))
    every = [(q, p, lead) for q in (1, 2, 3) for p in range(q + 1, 6) for lead in range(4)]
    for quota, period, lead in every if LONG else [(1, 2, 0), (1, 5, 3), (2, 3, 2), (3, 5, 1)]:
        instance = MODEL.variant(variant, quota=quota, period=period, lead=lead, ratio=2)
        bound = WAITS.kind.bound(instance.view)
        worst = Explicit(trace_maker=untold).find(instance, wait).worst
        assert isinstance(worst, int), (quota, period, lead, worst)
        if worst > bound:
            over.append((quota, period, lead, worst, bound))
        elif worst < bound:
            below.append((quota, period, lead, worst, bound))
    print(f"\n{variant}: (quota, period, lead, worst case, bound) where it is smaller: {below}")
    assert not over


# ------------------------------------------------------------------------------------------------ small models
def holder_waits(m):
    return m.sched[m.vcpu[0]] == "READY"


def sleeps(m):
    return m.asleep


@pytest.mark.parametrize("variant", ["v6.1", "v6.1+cursor_stays"])
def test_spin_handler(variant):
    instance = small("spin_handler").SpinHandler.variant(variant)
    found = require_same(instance, Property("p", None, "", WorstCase(holder_waits, "yields")))
    if found.worst_case != "unbounded":
        require_worst(instance, holder_waits, "yields", found.worst_case)


@pytest.mark.parametrize("variant", ["v6.1", "v6.1+recheck_removed", "v6.1+latch_lost"])
def test_queue_waiter(variant):
    instance = small("queue_waiter").QueueWaiter.variant(variant)
    found = require_same(instance, Property("p", None, "", WorstCase(sleeps, "steps")))
    # Where a kick is always lost, no step ever ends the sleep: a bound on it would say nothing.
    assert (found.name == "vacuous") == (variant == "v6.1+latch_lost")
    if found.name != "vacuous":
        require_worst(instance, sleeps, "steps", found.worst_case)


# ----------------------------------------------------------------------------------------------- random models
DECLARED = SMALL_MODEL + """\
    def price(self):
        return self.n

    @action(cost={"ms": 1})
    def idle(self):
        pass

"""
CHANGE = [
    "self.flag = not self.flag",
    "self.n = choose(0, 1, 2)",
    "self.n = cmod(self.n + 1, 3)",
    "self.cur = NULL",
    "self.cur = choose(self.obj)",
    "self.cur = me",
    "self.arr[me] = self.flag",
    "self.arr[me] = not self.arr[me]",
    "self.flag = self.arr[me]",
    "if self.cur != NULL:\n    self.arr[self.cur] = True",
    "for v in ring(self.obj, after=self.cur):\n    self.arr[v] = v == me\n    if self.flag:\n        break",
]
GUARD = [
    "require(self.flag)",
    "require(not self.flag)",
    "require(self.n < 2)",
    "require(self.cur != me)",
    "require(self.arr[me])",
    "pass",
    "pass",
]
CUT = ["step()", "block(until=self.flag)", "block(until=self.cur == me)"]
WAITING = ["m.flag", "m.n > 0", "m.cur == NULL", "m.arr[m.obj.p]", "m.arr[m.obj.p] and m.flag", "m.n == 1"]
COST = ["", "cost={'ms': 1}", "cost={'ms': 2}", "cost={'ms': 'price'}"]


@st.composite
def models(draw: Any) -> str:
    text, pick = DECLARED, lambda options: draw(st.sampled_from(options))
    for number in range(draw(st.integers(1, 3))):
        threaded = draw(st.booleans())
        cost = pick(COST).replace("'price'", "1")
        mark = f"@thread(per=obj, {cost})" if threaded else f"@action(per=obj, {cost})"
        lines = [pick(GUARD) if not threaded else "pass"]
        for _ in range(draw(st.integers(1, 3))):
            lines.append(pick(CHANGE))
            if threaded and draw(st.booleans()):
                lines.append(pick(CUT))
        body = "\n".join(lines)
        if threaded and draw(st.booleans()):
            body = "while True:\n" + textwrap.indent(body + "\nstep()", "    ")
        text += textwrap.indent(f"{mark}\ndef go{number}(self, me):\n{textwrap.indent(body, '    ')}\n\n", "    ")
    return text + f"\ndef waiting(m):\n    return {pick(WAITING)}\n"


@settings(max_examples=200 if LONG else 6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(models())
def test_random_models(text):
    model = model_of(text)
    waiting = sys.modules[model.__module__].waiting
    instance = model.variant("v1")
    prop = Property("p", None, "", WorstCase(waiting, "ms"))
    found: Any = decide(instance, prop, "explicit")
    if found.name == "vacuous" and "no step ever ends it" in found.reason:
        assert decide(instance, prop, "reference").name in ("proved", "vacuous")  # see test_queue_waiter[latch_lost]
    else:
        require_same(instance, prop)
    if isinstance(found.worst_case, int):
        require_worst(instance, waiting, "ms", found.worst_case)
    elif found.worst_case == "unbounded":
        assert reaches(instance, waiting, "ms", 30, 30)
    kind = Invariant(waiting) if len(text) % 2 else Reachable(waiting)
    require_same(instance, Property("p", None, "", kind))


def test_the_reference_engine_says_what_it_cannot_do():
    instance = model_of(DECLARED).variant("v1")
    from schedproof.property import Lemma

    assert "not decided" in (Reference().applies(instance, Property("p", None, "", Lemma(holder_waits))) or "")
    unbounded = model_of(DECLARED.replace("n = Range(0, 2)", "n = Int(init=0)")).variant("v1")
    assert "unbounded" in (Reference().applies(unbounded, Property("p", None, "", Invariant(holder_waits))) or "")


def test_a_state_from_which_nothing_can_happen_is_an_error_of_both():
    from schedproof.errors import ModelError

    text = DECLARED.replace("        return True", "        return False").replace(
        "        pass", "        require(self.n < 1)\n        self.n += 1"
    )
    prop = Property("p", None, "", Invariant(never_full))
    for engine in ("explicit", "reference"):
        with pytest.raises(ModelError, match="nothing can happen|stuck"):
            decide(model_of(text).variant("v1"), prop, engine)


def never_full(m):
    return m.n < 3
