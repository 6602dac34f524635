# SPDX-License-Identifier: GPL-2.0-only
"""One variant of a model with its parameters fixed: what engines decide."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import z3

from schedproof.errors import ModelError, NotExecutable
from schedproof.lang import syntax as s
from schedproof.lang import terms as t
from schedproof.lang.execute import Executor, runs
from schedproof.lang.interpret import Blocked, Interpreter, Memory, Oracle
from schedproof.lang.paths import Heap, Result
from schedproof.lang.world import Key, World, make_world
from schedproof.model.actions import Mark
from schedproof.model.concrete import Event
from schedproof.model.domains import NULL, Bool, Current, Domain, Pointer, Ref
from schedproof.model.formulas import Formulas
from schedproof.model.free import cases
from schedproof.model.grain import grained
from schedproof.model.threads import END, START, Threads, site_name
from schedproof.model.transition import State, Transition, Variable
from schedproof.model.unread import never_read

if TYPE_CHECKING:
    from schedproof.model.model import Model

LARGEST_FAN = 4096        # combinations of choices of one action


class Instance:
    """A model's variant with parameters. Made by ``Model.variant``; immutable once made.

    ``sources`` names the functions that are C, with their places; ``assumptions`` is what a report has to say.
    """

    def __init__(self, model: type[Model], name: str, params: Mapping[str, int], switches: Mapping[str, Any],
                 programs: Mapping[str, s.Program] | None = None):
        self.model, self.name, self.params, self.switches = model, name, dict(params), dict(switches)
        self.overrides = dict(programs or {})
        self.scope = model.scope
        self.view = _View({**self.params, **self.switches})
        self.universes = {n: o.resolve(self.view) for n, o in self.scope.objects.items()}
        self.enumerators = dict(self.scope.codes)
        domains = {n: d.resolve(self.view, self.enumerators) for n, d in self.scope.variables.items()}
        self._declared = {n: (self._universe(d.per), d) for n, d in domains.items()}
        self._links = {n: self._link(n) for n in self.scope.links}
        self._constants = self._fixed()
        self._base_programs = grained({**model.programs, **self.overrides}, model)
        self._extra: dict[str, s.Program] = {}
        self._make_world()

    # --------------------------------------------------------------------------------------- declarations
    def _make_world(self) -> None:
        marks = self.model.marks
        wanted = {n: m for n, m in marks.items() if m.kind == "thread" and self._included(m)}
        base = make_world(self.universes, self._declared, self._links, self._constants, self._base_programs)
        self.threads = Threads(base, {n: self._universe(m.per[0]) or "" for n, m in wanted.items()},
                               self.enumerators)
        resolved = {n: d.resolve(self.view, self.enumerators) for n, (_, d) in self.threads.variables.items()}
        self.threads.set_domains(resolved)
        variables = {**self._declared, **self.threads.variables}
        self.world: World = replace(base, variables=variables)
        self.threads.world = self.world
        self.threads.probe = partial(never_read, self)

    def _universe(self, per: Any) -> str | None:
        return None if per is None else self.scope.universe_of(per)

    def _link(self, name: str) -> tuple[int, ...]:
        link = self.scope.links[name]
        sources = self.universes[self.scope.universe_of(link.per)]
        targets = self.universes[self.scope.universe_of(link.target)]
        found = []
        for source in sources:
            to = link.to.get(source, NULL)
            if to is not NULL and to not in targets:
                raise ModelError(f"{name}: `{to}` is no object of {self.scope.universe_of(link.target)}")
            found.append(s.NULL_CODE if to is NULL else targets.index(to))
        return tuple(found)

    def _fixed(self) -> dict[str, int | bool | tuple[int, ...]]:
        fixed: dict[str, int | bool | tuple[int, ...]] = dict(self.params)
        for name, value in self.switches.items():
            fixed[name] = value if isinstance(value, bool) else self.enumerators[value]
        for name, constant in self.scope.constants.items():
            number = constant.value(self.view) if callable(constant.value) else constant.value
            universe = self._universe(constant.per)
            fixed[name] = number if universe is None else (number,) * len(self.universes[universe])
        return fixed

    def _included(self, mark: Mark) -> bool:
        if not mark.when:
            return True
        known = {**self.params, **self.switches}
        if mark.when not in known:
            raise ModelError(f"when='{mark.when}' names no parameter and no switch", hint=f"one of {', '.join(known)}")
        return bool(known[mark.when])

    @property
    def title(self) -> str:
        """The variant with its parameters, as reports name it."""
        return f"{self.name} " + " ".join(f"{k}={v}" for k, v in self.params.items())

    @property
    def dead(self) -> dict[str, str]:
        """Actions that this release cannot enable, with the reason."""
        release = self.name.split("+")[0]
        return dict(self.model.dead.get(release, {}))

    @property
    def sources(self) -> dict[str, str]:
        """Functions that were read from C, with the places of their text."""
        return {n: str(p.loc) for n, p in self.world.programs.items() if p.language == "c"}

    # ---------------------------------------------------------------------------------------------- states
    @cached_property
    def variables(self) -> dict[str, Variable]:
        """All state variables, in the order of their declaration."""
        found = {}
        for base, (universe, domain) in self.world.variables.items():
            for key in self.world.keys(base) if not domain.transient else ():
                name = self.world.name(key)
                term = z3.Bool(name) if domain.sort == "Bool" else z3.Int(name)
                index = None if universe is None or key[1] is None else self.universes[universe][key[1]]
                found[name] = Variable(name, base, index, domain, term)
        return found

    @cached_property
    def _keys(self) -> dict[str, Key]:
        return {self.world.name(k): k for base, (_, domain) in self.world.variables.items()
                for k in self.world.keys(base) if not domain.transient}

    @cached_property
    def _transient(self) -> Memory:
        """The variables that are no part of the state, with the value that they have between steps."""
        found: Memory = {}
        for base, (universe, domain) in self._declared.items():
            for key in self.world.keys(base) if domain.transient else ():
                index = None if key[1] is None else self.universes[universe or ""][key[1]]
                found[key] = self._initial_code(base, domain, index)
        return found

    @cached_property
    def heap(self) -> Heap:
        """The symbolic state: each variable its own constant."""
        return {**{self._keys[n]: v.term for n, v in self.variables.items()}, **self._transient}

    @cached_property
    def ranges(self) -> dict[str, t.Interval]:
        """The interval of each variable's constant, for bounds of terms."""
        found: dict[str, t.Interval] = {}
        for name, variable in self.variables.items():
            codes = variable.domain.codes()
            if variable.domain.sort != "Bool":
                found[name] = (None, None) if codes is None else (min(codes), max(codes))
        return found

    def memory(self, state: State) -> Memory:
        return {**{self._keys[n]: v for n, v in state.items()}, **self._transient}

    def state(self, memory: Mapping[Key, int | bool]) -> State:
        return {n: memory[k] for n, k in self._keys.items()}

    def show(self, state: State) -> dict[str, str]:
        """A state as a reader sees it."""
        return {n: v.show(state[n]) for n, v in self.variables.items()}

    @cached_property
    def initial(self) -> tuple[dict[str, int | bool], ...]:
        """The initial states: the declared values, then every method marked ``@init`` with all its choices."""
        memory: Memory = {}
        for base, (universe, domain) in self._declared.items():
            for key in self.world.keys(base):
                index = None if key[1] is None else self.universes[universe or ""][key[1]]
                memory[key] = self._initial_code(base, domain, index)
        for base, code in self.threads.initial().items():
            for key in self.world.keys(base):
                memory[key] = code
        states = [memory]
        for name, mark in self.model.marks.items():
            if mark.kind == "init":
                states = [m for one in states for m in self._run_init(name, one)]
        found: list[dict[str, int | bool]] = []
        for one in states:
            state = dict(self.state(one))
            if state not in found:
                found.append(state)
        return tuple(found)

    def _run_init(self, name: str, memory: Memory) -> Iterator[Memory]:
        oracle: Oracle | None = Oracle()
        while oracle is not None:
            interpreter = Interpreter(self.world, memory, oracle)
            try:
                interpreter.run(name, [])
                yield interpreter.memory
            except Blocked:
                pass
            oracle = oracle.following()

    def _initial_code(self, name: str, domain: Domain, index: str | None) -> int | bool:
        value = domain.init
        if isinstance(value, Mapping):
            value = value.get(index)
        if callable(value):
            value = value(self.view)
        codes = domain.codes()
        if value is None and isinstance(domain, Bool):
            value = False
        if value is None and codes is not None:
            return codes[0]
        if value is NULL:
            value = s.NULL_CODE
        if isinstance(value, Ref):
            value = value.index
        if isinstance(value, str):
            names = domain.names if isinstance(domain, Pointer) else ()
            value = names.index(value) if value in names else self.enumerators.get(value)
        if not isinstance(value, (int, bool)) or (codes is not None and value not in codes):
            raise ModelError(f"{name}: the initial value {domain.init!r} is outside its domain")
        return value

    # ----------------------------------------------------------------------------------------- transitions
    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Every action and thread of this instance with its arguments."""
        found = []
        for name, mark in self.model.marks.items():
            if mark.kind not in ("action", "thread") or not self._included(mark):
                continue
            universes = [self.universes[self.scope.universe_of(o)] for o in mark.per]
            for args in itertools.product(*(range(len(u)) for u in universes)):
                labels = tuple(u[i] for u, i in zip(universes, args, strict=True))
                found.append(Event(name, args, labels, mark.kind == "thread", tuple(mark.cost)))
        return tuple(found)

    @cached_property
    def _raw_transitions(self) -> tuple[Transition, ...]:
        found: list[Transition] = []
        for event in self.events:
            made = list(self._thread(event) if event.thread else self._action(event))
            if not any(x.action == event.action for x in (*found, *made)):
                made.append(self._never(event))
            found += made
        return tuple(found)

    def _never(self, event: Event) -> Transition:
        loc = self.world.programs[event.action].loc
        return Transition(event.action, event.labels, (), z3.BoolVal(False), {}, self._costs(event), None, ("", ""), (),
                          loc)

    def _costs(self, event: Event) -> dict[str, z3.ArithRef]:
        mark, found = self.model.marks[event.action], {}
        for unit, cost in mark.cost.items():
            value: t.Value = cost
            if isinstance(cost, str):
                value = t.number(self.call(cost, list(event.args)))
            found[unit] = t.z3_of(value)
        return found

    def cost_now(self, event: Event, unit: str, memory: Memory) -> int:
        """What a step of an event costs in a concrete state."""
        cost = self.model.marks[event.action].cost[unit]
        if not isinstance(cost, str):
            return int(cost)
        return int(Interpreter(self.world, memory, Oracle()).run(cost, event.args).value or 0)

    def _action(self, event: Event) -> Iterator[Transition]:
        for result in runs(self.world, self.ranges, event.action, list(event.args), self.heap):
            if result.cuts:
                raise ModelError(f"{event.action} blocks or steps, so it is not one atomic action",
                                 self.world.programs[event.action].loc.file,
                                 self.world.programs[event.action].loc.line, "declare it with @thread")
            if result.end is not None:
                yield from self._variants(event, result, result.end.pc, result.end.heap, {}, ("", ""))
            yield from self._faults(event, result)

    def _thread(self, event: Event) -> Iterator[Transition]:
        """A thread's steps: from its start, and from every site with every combination that some step leaves there."""
        me = event.args[0]
        opening = self.threads.openings.get(event.action, START)
        todo: list[tuple[str, Mapping[Key, int | bool]]] = [(opening, {})]
        found: dict[tuple[str, tuple[tuple[Key, int | bool], ...]], list[Transition]] = {}
        while todo:
            here, fixed = todo.pop()
            steps = found[here, tuple(fixed.items())] = list[Transition]()
            for result in self._resumed(event, here, fixed):
                for record in result.cuts:
                    there = site_name(record.site)
                    if self.threads.note_constants(event.action, event.args, record):      # once more, with that
                        todo += [(place, dict(known)) for place, known in found if place == there]
                    todo += [(there, known) for known in self.threads.reached(event.action, event.args, record, me)
                             if (there, tuple(known.items())) not in found and (there, known) not in todo]
                steps += self._thread_steps(event, here, result)
        yield from (x for made in found.values() for x in made)

    def _resumed(self, event: Event, here: str, fixed: Mapping[Key, int | bool]) -> list[Result]:
        """The runs of a thread's step from a site, with some of what is saved there known."""
        me = event.args[0]
        given = t.and_(t.equal(self.heap[f"{event.action}.at", me], self.threads.codes[here]),
                       *(t.equal(self.heap[k], v) for k, v in fixed.items()))
        heap = {**self.heap, **self.current(event)}
        if here == START:
            return runs(self.world, self.ranges, event.action, list(event.args), heap, given=given)
        site = self.threads.sites[event.action][here]
        frames = self.threads.frames(event.action, event.args, here, me, heap, fixed)
        return runs(self.world, self.ranges, event.action, [], heap, site, frames, given)

    def current(self, event: Event) -> dict[Key, int]:
        """What ``Current`` variables are while an event makes its step."""
        mark = self.model.marks[event.action]
        own = self._universe(mark.per[0]) if mark.kind == "thread" else None
        return {(n, None): event.args[0] for n, (_, d) in self._declared.items()
                if isinstance(d, Current) and own is not None and self._universe(d.target) == own}

    def _thread_steps(self, event: Event, here: str, result: Result) -> Iterator[Transition]:
        """The steps of one run of a thread from one site: to each cut, and to its end."""
        for record in result.cuts:
            own = self.threads.updates(event.action, event.args, here, record)
            yield from self._variants(event, result, record.guard, record.heap, own, (here, site_name(record.site)))
        if result.end is not None:
            own = self.threads.updates(event.action, event.args, here, None)
            yield from self._variants(event, result, result.end.pc, result.end.heap, own, (here, END))
        yield from self._faults(event, result)

    def _variants(self, event: Event, result: Result, guard: t.Value, heap: Heap, own: Mapping[Key, t.Value],
                  sites: tuple[str, str]) -> list[Transition]:
        """One transition for each combination of choices that makes a difference."""
        new = {**heap, **own}
        self.check_transient(event, new)
        changed = {self.world.name(k): t.z3_of(v) for k, v in new.items() if not t.same(v, result.base[k])}
        used = t.constants_of([guard, *changed.values()]) if result.choices or result.free else {}
        free = tuple(sorted(why for name, why in result.free.items() if name in used))
        choices = [c for c in result.choices if c.constant.decl().name() in used]
        count = 1
        for choice in choices:
            count *= len(choice.labels)
        if count > LARGEST_FAN:
            loc = self.world.programs[event.action].loc
            raise ModelError(f"{event.action}: {count} combinations of choices", loc.file, loc.line, "choose fewer")
        costs, loc = self._costs(event), self.world.programs[event.action].loc
        fair = self.model.marks[event.action].fair
        found = []
        for values in itertools.product(*(range(len(c.labels)) for c in choices)):
            pairs = [(c.constant, z3.IntVal(v)) for c, v in zip(choices, values, strict=True)]
            here = t.simplify(z3.substitute(t.z3_of(guard), *pairs))
            if here is False:
                continue
            updates = {n: z3.simplify(z3.substitute(v, *pairs)) for n, v in changed.items()}
            same = {term.decl().name(): value for term, value in t.learned(here)}
            updates = {n: v for n, v in updates.items() if not z3.eq(v, self.variables[n].term)
                       and not (n in same and t.same(t.settle(v), same[n]))}
            labels = tuple(c.labels[v] for c, v in zip(choices, values, strict=True))
            found += [Transition(event.action, event.labels, labels, test, new_values, costs, fair, sites, free, loc)
                      for test, new_values in cases(t.z3_of(here), updates, result.free, result.ranges)]
        return found

    def check_transient(self, event: Event, heap: Mapping[Key, t.Value]) -> None:
        """Raise ModelError when a step leaves a transient variable with another value than its initial one."""
        for key, value in {**self._transient, **self.current(event)}.items():
            if not t.same(heap[key], value):
                loc = self.world.programs[event.action].loc
                raise ModelError(f"{event.action} may leave {self.world.name(key)} with another value than {value}",
                                 loc.file, loc.line, "a transient variable must have its initial value between steps")

    @cached_property
    def frozen(self) -> dict[str, int | bool]:
        """Variables that no transition changes and that begin with one value: constants of this instance."""
        changed = {name for x in self._raw_transitions for name in x.updates}
        first = self.initial[0] if self.initial else {}
        return {n: first[n] for n in self.variables
                if n not in changed and first and all(i[n] == first[n] for i in self.initial)}

    @cached_property
    def transitions(self) -> tuple[Transition, ...]:
        """The guarded transitions. Raises ModelError or NotExecutable, with the place."""
        found = []
        for x in self._raw_transitions:
            guard = self._thaw(x.guard)
            if not z3.is_false(guard) or not x.updates:
                found.append(replace(x, guard=guard, updates={n: self._thaw(v) for n, v in x.updates.items()},
                                     costs={u: self._thaw(c) for u, c in x.costs.items()}))
        kept = {x.action for x in found}
        return (*found, *(replace(x, guard=z3.BoolVal(False), updates={}) for x in self._raw_transitions
                          if x.action not in kept))

    def _thaw(self, term: Any) -> Any:
        return z3.simplify(z3.substitute(term, *self._frozen_pairs))

    @cached_property
    def _frozen_pairs(self) -> list[tuple[z3.ExprRef, z3.ExprRef]]:
        return [(self.variables[n].term, t.z3_of(v)) for n, v in self.frozen.items()]

    def _faults(self, event: Event, result: Result) -> Iterator[Transition]:
        executor = Executor(self.world, {**self.ranges, **{c.constant.decl().name(): (0, len(c.labels) - 1)
                                                           for c in result.choices}})
        for fault in result.faults:
            if executor.feasible(fault.guard):
                used = t.constants_of([fault.guard])
                if any(name in used for name in result.free):
                    raise NotExecutable(fault.loc.file, fault.loc.line, f"{fault.message} that hangs on a free value")
                guard = z3.simplify(_some(t.z3_of(fault.guard), [c for c in result.choices
                                                                 if c.constant.decl().name() in used]))
                yield Transition(event.action, event.labels, (), guard, {}, {}, None, ("", ""), (), fault.loc,
                                 fault.message)

    # -------------------------------------------------------------------------------------------- formulas
    def call(self, name: str, args: list[t.Value], heap: Heap | None = None) -> t.Value:
        """The value of a method that has no effect, as a term over the state."""
        result = Executor(self.world, self.ranges).run(name, args, self.heap if heap is None else heap)
        if result.end is None or result.value is None:
            raise ModelError(f"{name} returns no value", self.world.programs[name].loc.file,
                             self.world.programs[name].loc.line)
        return t.simplify(result.value)

    @cached_property
    def _formulas(self) -> Formulas:
        base = make_world(self.universes, self._declared, self._links, self._constants, self.model.programs)
        return Formulas(replace(base, variables=self.world.variables), self.model)

    def predicate(self, formula: Callable[..., Any]) -> z3.BoolRef:
        """A property's formula as a term over the state."""
        return z3.simplify(t.z3_of(t.truth(self.term(formula))))

    def term(self, formula: Callable[..., Any]) -> t.Value:
        """The value of a formula, which need not be a truth value, as a term over the state."""
        name = self._formulas.name(formula)
        executor = Executor(self._formulas.world, self.ranges)
        result = executor.run(name, [], self.heap)
        for fault in result.faults:
            if executor.feasible(t.simplify(self._thaw(t.z3_of(fault.guard)))):
                raise ModelError(f"{formula.__qualname__}: {fault.message}", fault.loc.file, fault.loc.line,
                                 "test before that it does not come to that, in every state of the domains")
        if result.value is None:
            loc = self._formulas.world.programs[name].loc
            raise ModelError(f"{formula.__qualname__} returns no value, or not on every path", loc.file, loc.line)
        return t.settle(self._thaw(t.z3_of(t.simplify(result.value))))

    def evaluate(self, formula: Callable[..., Any], state: State) -> int | bool:
        """A property's formula in one state, on the plain interpreter."""
        name = self._formulas.name(formula)
        value = Interpreter(self._formulas.world, self.memory(state), Oracle()).run(name, []).value
        if value is None:
            raise ModelError(f"{formula.__qualname__} returns no value")
        return value

    @cached_property
    def final(self) -> z3.BoolRef | None:
        """The states in which it is right that nothing happens any more, where the model declares some."""
        terms = [t.truth(self.call(n, [])) for n, m in self.model.marks.items() if m.kind == "final"]
        return t.z3_of(t.or_(*terms)) if terms else None

    def is_final(self, state: State) -> bool:
        """The same for one state, on the plain interpreter."""
        names = [n for n, m in self.model.marks.items() if m.kind == "final"]
        return any(Interpreter(self.world, self.memory(state), Oracle()).run(n, []).value for n in names)

    def with_programs(self, programs: Mapping[str, s.Program]) -> Instance:
        """The same instance with some functions taken from elsewhere, as from C.

        Raises ModelError when a function does not take the arguments that the model's method takes.
        """
        for name, program in programs.items():
            known = self.model.programs.get(name)
            if known is not None and len(known.params) != len(program.params):
                raise ModelError(f"{name} takes {len(program.params)} arguments here, {len(known.params)} in the model",
                                 program.loc.file, program.loc.line)
        return Instance(self.model, self.name, self.params, self.switches, {**self.overrides, **programs})


def _some(guard: z3.BoolRef, choices: list[Any]) -> z3.BoolRef:
    """The guard for some choice."""
    for choice in choices:
        guard = z3.Or(*(z3.substitute(guard, (choice.constant, z3.IntVal(i))) for i in range(len(choice.labels))))
    return guard


class _View:
    """Parameters and switches as attributes, for bounds that depend on them."""

    def __init__(self, values: Mapping[str, Any]):
        self.__dict__.update(values)
