# SPDX-License-Identifier: GPL-2.0-only
"""Stand-ins for the model layer, the engines and the replay.

The command line, the registry, the reports and the pytest plugin are tested with these, so that their tests say
nothing about whether a real model is right, and take no time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from schedproof.errors import InputError
from schedproof.model.domains import Param, Switch
from schedproof.model.vocabulary import Vocabulary
from schedproof.property import Property, Within
from schedproof.trace import Call, Step, Trace
from schedproof.verdict import Counts, Proved, Refuted, Unknown, Vacuous, Verdict


@dataclass(frozen=True)
class Instance:
    model: type[Any]
    name: str
    params: Mapping[str, int]


class Model:
    """Knows the variants and parameters of a model, and nothing else about it."""

    releases: Mapping[str, Mapping[str, Any]] = {}
    fixes: Mapping[str, Mapping[str, Any]] = {}
    mutants: Mapping[str, Mapping[str, Any]] = {}
    scaled: Mapping[str, str] = {}
    vocabulary = Vocabulary()
    lanes: Mapping[str, Any] = {}
    cpu_lanes: Mapping[int, str] = {}

    @classmethod
    def switches(cls) -> dict[str, Switch]:
        return {n: v for n, v in vars(cls).items() if isinstance(v, Switch)}

    @classmethod
    def parameters(cls) -> dict[str, Param]:
        return {n: v for n, v in vars(cls).items() if isinstance(v, Param)}

    @classmethod
    def kernel_functions(cls) -> dict[str, str]:
        return {}

    @classmethod
    def variant(cls, text: str, **params: int) -> Instance:
        release, *fixes = text.split("+")
        if release not in cls.releases:
            raise InputError(f"unknown release {release!r}; known: {', '.join(cls.releases)}")
        for fix in fixes:
            if fix not in {**cls.fixes, **cls.mutants}:
                raise InputError(f"unknown fix {fix!r}; known: {', '.join(cls.fixes)}")
        known = cls.parameters()
        for name, value in params.items():
            if name not in known or not known[name].low <= value <= known[name].high:
                raise InputError(f"{name}={value} is not possible")
        return Instance(cls, text, {n: params.get(n, p.default) for n, p in known.items()})


def sample_trace(variant: str = "v1", ratio: int = 8, *, cycle: bool = False, verdict: str = "refuted",
                 property: str = "short_wait", sources: Mapping[str, str] | None = None) -> Trace:
    """A sleep, a wait of ``ratio`` and a bit, and its end."""
    weigh = (Call("update_cfs_group", "kernel/sched/fair.c:3456", 1), Call("reweight_entity", "models/toy.py:9", 2))
    tick = Step("tick", functions=(Call("entity_tick", "models/toy.py:20", 0),), changes={"clock": ("0", "1")},
                cost=ratio, waiting=True)
    stem = (Step("sleep", ("a",), functions=(Call("dequeue_entity", "models/toy.py:3", 0), *weigh),
                 changes={"queued[a]": ("yes", "no"), "weight[gA]": ("NICE_0_LOAD", "MIN_SHARES")}),
            Step("tick", cost=2, changes={"clock": ("3", "0")}),
            Step("wake", ("a",), choices=("late",), changes={"queued[a]": ("no", "yes")}),
            tick, Step("schedule", functions=(Call("pick_next_entity"),), changes={"curr": ("b", "a")}, cost=1,
                       waiting=True))
    return Trace(model="toy", variant=variant, params={"ratio": ratio, "period": 4}, property=property,
                 verdict=verdict, initial={"queued[a]": "yes", "queued[b]": "yes", "clock": "0", "curr": "a"},
                 stem=stem[:4] if cycle else stem, cycle=(replace(tick, changes={}),) if cycle else (), unit="ms",
                 total=ratio if cycle else ratio + 1, sources=sources or {},
                 statement="A task that is ready runs again within five ticks.", version="0.1.0")


def decide(instance: Instance, prop: Property, engine: str = "auto", budget: float | None = None, jobs: int = 1,
           progress: Callable[[Any], None] | None = None) -> Verdict:
    """``v1`` waits for ``ratio`` and one tick, ``repaired`` kernels for three; ``forever`` has no end."""
    if engine not in ("auto", "explicit"):
        raise InputError(f"unknown engine {engine!r}; known: explicit")
    counts = Counts(10 * instance.params["ratio"], 30, 7)
    common: dict[str, Any] = {"engine": "explicit", "instance": instance.name, "counts": counts}
    if budget is not None and budget < 1:
        return Unknown(**common, reason="the budget of 0.5 s ran out at depth 3")
    if prop.name == "never_asked":
        return Vacuous(**common, reason="the premise holds in no reachable state")
    if not isinstance(prop.kind, Within):
        return Refuted(**common, trace=sample_trace(instance.name, property=prop.name)) \
            if "break_it" in instance.name else Proved(**common)
    if "forever" in instance.name:
        return Refuted(**common, worst_case="unbounded", unit="ms", starved=True,
                       trace=sample_trace(instance.name, cycle=True))
    worst = 3 if "repaired" in instance.name else instance.params["ratio"] + 1
    kind = Refuted if worst > 5 else Proved
    return kind(**common, worst_case=worst, unit="ms",
                trace=sample_trace(instance.name, worst - 1, verdict=kind.__name__.lower()))


def replay(trace: Trace, instance: Instance, prop: Property) -> Verdict:
    """Accepts the sample traces, and nothing that was edited."""
    fresh = sample_trace(trace.variant, trace.params["ratio"], cycle=bool(trace.cycle))
    if [s.changes for s in trace.steps] != [s.changes for s in fresh.steps]:
        raise InputError("step 1, sleep(a): the stored change of queued[a] is not what this step does")
    return Refuted("replay", trace.variant, worst_case=trace.total, unit=trace.unit, trace=trace)


def modules() -> dict[str, ModuleType]:
    """The modules to put in the place of the real ones."""
    found = {name: ModuleType(name) for name in ("schedproof.model", "schedproof.engines", "schedproof.replay")}
    found["schedproof.model"].Model = Model                                         # type: ignore[attr-defined]
    found["schedproof.model"].__path__ = list(sys.modules["schedproof.model"].__path__)
    found["schedproof.engines"].decide = decide                                     # type: ignore[attr-defined]
    found["schedproof.replay"].replay = replay                                      # type: ignore[attr-defined]
    return found
