# SPDX-License-Identifier: GPL-2.0-only
"""Traces on the plain interpreter: made from an engine's path, and validated when they come from a file.

Nothing that an engine or a file claims is taken over: every step is taken again, and what it changes, what it
costs and which functions run is what the interpreter says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import z3

from schedproof import __version__, forever
from schedproof.errors import InputError, SchedproofError
from schedproof.lang.syntax import Program, Return
from schedproof.model.concrete import Taken, steps
from schedproof.model.instance import Instance
from schedproof.model.transition import State, Transition
from schedproof.property import (
    Agrees,
    AlwaysPossible,
    Eventually,
    Expectation,
    Invariant,
    Lemma,
    Property,
    Reachable,
    Within,
    WorstCase,
)
from schedproof.trace import Call, Step, Trace
from schedproof.verdict import Counts, Proved, Refuted, Unknown, Verdict


class ReplayError(SchedproofError):
    """An engine's path is not a run of the model on the plain interpreter: a fault of schedproof itself."""


def time_of(instance: Instance) -> str:
    """The cost that stands for time in traces of properties without one: the model's only cost, if it has one."""
    units = {unit for event in instance.events for unit in event.costs}
    return units.pop() if len(units) == 1 else ""


def waiting_of(property: Property) -> Callable[..., Any] | None:
    """The formula of the waiting states, for kinds that have one."""
    return property.kind.waiting if isinstance(property.kind, Within | WorstCase) else None


def to_trace(instance: Instance, property: Property, initial: State, stem: Sequence[Transition],
             cycle: Sequence[Transition], verdict: str, unit: str, total: int | None, waiting: object = None) -> Trace:
    """The trace of a path that an engine found, annotated by running it on the plain interpreter.

    ``total`` is the cost of the wait that is shown (of one round of a cycle); None where the engine does not know it.
    Raises ReplayError when the interpreter cannot follow, or when the costs do not add up to ``total``.
    """
    kind = property.kind
    counted = bool(unit) and total is None and isinstance(kind, Within | WorstCase)
    unit = unit or time_of(instance)
    walker = _Walker(instance, property, unit)
    try:
        state: State = dict(initial)
        first, state = walker.walk(state, [_of_transition(instance, t) for t in stem])
        turn = state
        second, state = walker.walk(state, [_of_transition(instance, t) for t in cycle])
    except InputError as error:
        raise ReplayError(str(error)) from None
    if cycle and state != turn:
        raise ReplayError(f"{property.name}: the cycle does not come back to where it began")
    note = ""
    if isinstance(kind, Eventually) and verdict == "refuted":
        wrong = forever.complaint(instance, kind, walker.states, walker.taken, len(first))
        if wrong:
            raise ReplayError(f"{property.name}: {wrong}")
        note = forever.note(kind, bool(second), any(m.fair for m in instance.model.marks.values()))
        total = sum(s.cost for s in second) if second and unit else None
    elif isinstance(kind, AlwaysPossible) and verdict == "refuted":
        if instance.evaluate(kind.formula, state):
            raise ReplayError(f"{property.name}: what has to stay possible is reached in the end")
        note = "no step and no sequence of steps leads from here to where it has to be possible to come"
    if counted:
        total = sum(s.cost for s in second) if cycle else longest_wait(first)
    trace = Trace(instance.model.__module__.rpartition(".")[2], instance.name, dict(instance.params), property.name,
                  verdict, instance.show(initial), first, second, unit, total, instance.sources, property.statement,
                  __version__, note=note)
    if total is not None and not cycle and longest_wait(trace.stem) != total:
        raise ReplayError(f"{property.name}: the engine says {total} {unit}, the interpreter "
                          f"{longest_wait(trace.stem)}")
    return trace


def trace_of(instance: Instance, property: Property, initial: State, taken: Sequence[Taken], verdict: str) -> Trace:
    """The trace of steps that were taken on the plain interpreter."""
    kind = property.kind
    unit = kind.cost if isinstance(kind, Within | WorstCase) else time_of(instance)
    walker, state, stem = _Walker(instance, property, unit), initial, []
    for one in taken:
        stem.append(walker.step(state, one))
        state = one.state
    total = longest_wait(stem) if isinstance(kind, Within | WorstCase) else None
    return Trace(instance.model.__module__.rpartition(".")[2], instance.name, dict(instance.params), property.name,
                 verdict, instance.show(initial), tuple(stem), (), unit, total, instance.sources, property.statement,
                 __version__)


def longest_wait(trace_steps: Iterable[Step]) -> int:
    """The largest sum of costs over consecutive steps that start in waiting states."""
    best = current = 0
    for step in trace_steps:
        current = current + step.cost if step.waiting else 0
        best = max(best, current)
    return best


@dataclass(frozen=True)
class _Wanted:
    """A step to be taken: of which action, and what tells it from others of the same action."""

    action: str
    args: tuple[str, ...]
    label: str
    fits: Callable[[State, Taken], bool]


def _of_transition(instance: Instance, transition: Transition) -> _Wanted:
    """The step that an engine took: the one that leads where the transition's terms lead."""

    def fits(state: State, taken: Taken) -> bool:
        pairs = [(v.term, z3.BoolVal(c) if isinstance(c, bool) else z3.IntVal(c))
                 for n, v in instance.variables.items() for c in (state[n],)]
        expected = dict(state)
        for name, term in transition.updates.items():
            value = z3.simplify(z3.substitute(term, *pairs))
            expected[name] = z3.is_true(value) if z3.is_bool(value) else value.as_long()
        return expected == taken.state

    return _Wanted(transition.action, transition.args, transition.label, fits)


class _Walker:
    def __init__(self, instance: Instance, property: Property, unit: str):
        self.instance, self.unit = instance, unit
        self.waiting = waiting_of(property)
        self.due = forever.Due(instance, property.kind) if isinstance(property.kind, Eventually) else None
        self.kernel = instance.model.kernel_functions()
        self.states: list[State] = []                  # all that were walked through, the one in the end included
        self.taken: list[Taken] = []

    def of_step(self, step: Step) -> _Wanted:
        """The step that a file tells of: the one that changes just what it says."""
        return _Wanted(step.action, step.args, step.label,
                       lambda state, taken: self.changes(state, taken) == dict(step.changes))

    def walk(self, state: State, wanted: Sequence[_Wanted]) -> tuple[tuple[Step, ...], State]:
        """Take the steps one after the other. Raises InputError, naming the first that cannot be taken."""
        done: list[Step] = []
        self.states = self.states or [state]
        for number, step in enumerate(wanted, 1):
            taken = next((t for t in steps(self.instance, state, step.action, step.args) if step.fits(state, t)), None)
            if taken is None:
                raise InputError(f"step {number} ({step.label}) cannot be taken: this is no run of the model")
            done.append(self.step(state, taken))
            state = taken.state
            self.states.append(state)
            self.taken.append(taken)
        return tuple(done), state

    def changes(self, state: State, taken: Taken) -> dict[str, tuple[str, str]]:
        """What a step changes, as a reader sees it."""
        found = {}
        for name, variable in self.instance.variables.items():
            if state[name] != taken.state[name]:
                found[name] = (variable.show(state[name]), variable.show(taken.state[name]))
        return found

    def step(self, state: State, taken: Taken) -> Step:
        waits = bool(self.instance.evaluate(self.waiting, state)) if self.waiting else False
        if self.due is not None:
            waits = self.due.at(state)
        return Step(taken.action, taken.args, taken.choices, taken.sites[1], self.functions(taken),
                    self.changes(state, taken), taken.costs.get(self.unit, 0), waits)

    def functions(self, taken: Taken) -> tuple[Call, ...]:
        """The kernel functions that ran, in order, with the depth among themselves; places where they are C."""
        found, depths = [], list[int]()
        for name, depth in taken.calls:
            program = self.instance.world.programs[name]
            if name not in self.kernel and (program.language != "c" or _accessor(program)):
                continue
            while depths and depths[-1] >= depth:
                depths.pop()
            found.append(Call(name, str(program.loc) if program.language == "c" else "", len(depths)))
            depths.append(depth)
        return tuple(found)


def _accessor(program: Program) -> bool:
    """Whether a function only gives back a field or a number: such calls tell a reader nothing."""
    return all(isinstance(x, Return) for x in program.body)


# --------------------------------------------------------------------------------------------- from a file
def replay(trace: Trace, instance: Instance, property: Property) -> Verdict:
    """Run a stored trace again on the plain interpreter and say what it shows.

    Raises InputError, naming the step, when the trace is no run of the model: the file was edited, or the model
    has changed.
    """
    found = _without_run(trace, instance, property)
    if found is not None:
        return found
    subject = instance
    if trace.runs_in:
        if not isinstance(property.kind, Agrees) or property.kind.other(instance.name) != trace.runs_in:
            raise InputError(f"the property does not compare {instance.name} with {trace.runs_in}")
        instance = instance.model.variant(trace.runs_in, **instance.params)
    code = next((i for i in instance.initial if instance.show(i) == dict(trace.initial)), None)
    if code is None:
        raise InputError("the trace does not begin in an initial state of the model")
    walker = _Walker(instance, property, trace.unit)
    first, state = walker.walk(code, [walker.of_step(s) for s in trace.stem])
    turn = state
    second, state = walker.walk(state, [walker.of_step(s) for s in trace.cycle])
    for number, (old, new) in enumerate(zip(trace.steps, first + second, strict=True), 1):
        if replace(old, site="", choices=()) != replace(new, site="", choices=()):
            raise InputError(f"step {number} ({old.label}) does not do what the file says")
    if trace.cycle and state != turn:
        raise InputError("the part that repeats does not come back to where it began")
    if isinstance(property.kind, Agrees):
        return _judge_observations(trace, subject, property.kind, _Walked(instance, code, walker, trace.stem))
    if isinstance(property.kind, Eventually):
        wrong = forever.complaint(instance, property.kind, walker.states, walker.taken, len(first))
        if wrong:
            raise InputError(wrong)
    return _judge(trace, instance, property, first, second, state)


def _without_run(trace: Trace, instance: Instance, property: Property) -> Verdict | None:
    """The verdict that a trace supports by its first state alone: inputs of a lemma, an expected value."""
    from schedproof.engines import expectation, lemma  # here, for engines tell their runs with this module

    again = {Lemma: lemma.again, Expectation: expectation.again}.get(type(property.kind))
    if again is None:
        return None
    if trace.steps:
        raise InputError(f"a trace of the kind {property.kind.word} has no steps")
    return again(trace, instance, property)


def _judge(trace: Trace, instance: Instance, property: Property, stem: tuple[Step, ...], cycle: tuple[Step, ...],
           end: State) -> Verdict:
    """The verdict that the steps themselves support."""
    counts = Counts(states=len(stem) + len(cycle) + 1, transitions=len(stem) + len(cycle), depth=len(stem) + len(cycle))
    kind, title = property.kind, instance.title
    common: Mapping[str, Any] = {"engine": "replay", "instance": title, "counts": counts, "trace": trace}
    if isinstance(kind, Invariant):
        if instance.evaluate(kind.formula, end):
            raise InputError("the trace does not end in a state that breaks the property")
        return Refuted(**common)
    if isinstance(kind, Reachable):
        if not instance.evaluate(kind.formula, end):
            raise InputError("the trace does not end in a state that shows the property")
        return Proved(**common)
    if isinstance(kind, Within | WorstCase):
        return _judge_wait(trace, instance, kind, stem, cycle, common)
    if isinstance(kind, Eventually):
        return Refuted(**common)
    if isinstance(kind, AlwaysPossible):
        found, looked = forever.way_on(instance, kind.formula, end)
        if found == "some":
            raise InputError("what has to stay possible can still be reached from where the trace ends")
        if found == "none":
            return Refuted(**common)
        return Unknown("replay", title, counts, reason=f"the steps are a run of the model, but that nothing leads on "
                       f"from its end was not seen again: there are more than {looked} states")
    raise InputError(f"a trace of the kind {property.kind.word} cannot be replayed")


@dataclass(frozen=True)
class _Walked:
    """A run that was walked: by which instance, from where, along which steps."""

    instance: Instance
    initial: State
    walker: _Walker
    stem: tuple[Step, ...]

    def states(self) -> list[State]:
        found = [self.initial]
        for step in self.stem:
            found.append(self.walker.walk(found[-1], [self.walker.of_step(step)])[1])
        return found


def _judge_observations(trace: Trace, subject: Instance, kind: Agrees, run: _Walked) -> Verdict:
    """Refuted, when no run of the variant that it is compared with gives the observations of a run."""
    from schedproof.engines.agrees import other_of, seen, shows

    silent = subject if trace.runs_in else other_of(subject, kind)
    states = run.states()
    if shows(silent, kind, seen(run.instance, kind, states)):
        raise InputError(f"{silent.name} has a run with the same observations")
    counts = Counts(states=len(states), transitions=len(states) - 1, depth=len(states) - 1)
    return Refuted("replay", subject.title, counts, trace=trace,
                   reason=f"no run of {silent.name} gives these observations")


def _judge_wait(trace: Trace, instance: Instance, kind: Within | WorstCase, stem: tuple[Step, ...],
                cycle: tuple[Step, ...], common: Mapping[str, Any]) -> Verdict:
    if cycle:
        if not all(s.waiting for s in cycle) or sum(s.cost for s in cycle) <= 0:
            raise InputError("the part that repeats is no wait that grows")
        return Refuted(**common, worst_case="unbounded", unit=kind.cost)
    wait = longest_wait(stem)
    if trace.total is not None and wait != trace.total:
        raise InputError(f"the wait is {wait} {kind.cost}, not {trace.total} as the file says")
    if isinstance(kind, WorstCase):
        return Proved(**common, worst_case=wait, unit=kind.cost)
    bound = kind.bound(instance.view) if callable(kind.bound) else kind.bound
    made = Refuted if wait > bound else Proved
    return made(**common, worst_case=wait, unit=kind.cost)
