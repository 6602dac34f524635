# SPDX-License-Identifier: GPL-2.0-only
"""Where threads stand: for each thread a site (call path and ordinal of the cut), and the locals that live there.

Each thread has a variable ``NAME.at`` and one variable for each local that lives across a cut and has a domain.
A local without a domain must have one and the same known value whenever the site is reached (as the ``me`` of a
thread has); it is then no part of the state.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from schedproof.errors import ModelError
from schedproof.lang import normal
from schedproof.lang import syntax as s
from schedproof.lang.interpret import Memory
from schedproof.lang.paths import UNSURE, CutRecord, Partly, Result, SitePath, unsure
from schedproof.lang.terms import Value, outcomes
from schedproof.lang.world import Key, World, is_site
from schedproof.model.domains import Domain, Enum

START, END = "start", "end"
LARGEST_SPLIT = 4096


def site_name(site: SitePath) -> str:
    """A site as it is stored and shown: ``kvm_vcpu_on_spin#1``, with the callers before it."""
    return ">".join(f"{program}#{ordinal}" for program, ordinal in site)


def endless_wait(program: s.Program) -> s.While | None:
    """The loop that a thread consists of, where each round begins with a ``block`` and nothing leaves the loop."""
    if len(program.body) != 1 or not isinstance(program.body[0], s.While):
        return None
    loop = program.body[0]
    if loop.test != s.Const(True, loop.test.loc) or _leaves(loop.body) or loop.test_last:
        return None
    return loop if isinstance(loop.body[0], s.Cut) and loop.body[0].until is not None else None


def _leaves(body: tuple[s.Stmt, ...], inner: bool = False) -> bool:
    """Whether a loop with this body is left from within; the breaks of a loop inside of it are that one's."""
    for x in body:
        if isinstance(x, s.Return) or (isinstance(x, s.Break) and not inner):
            return True
        if any(_leaves(b, inner or isinstance(x, s.While | s.For)) for b in s.blocks(x)):
            return True
    return False


class Threads:
    """The sites of every thread of an instance and what is saved at each."""

    def __init__(self, world: World, threads: Mapping[str, str], enumerators: dict[str, int]):
        """``threads`` maps a thread's method to the universe that it is declared for."""
        self.world = world
        self.sites: dict[str, dict[str, SitePath]] = {}
        self.variables: dict[str, tuple[str, Domain]] = {}
        self.saved: dict[tuple[str, str], list[list[tuple[str, str]]]] = {}     # frames: (local, variable or "")
        self.constants: dict[tuple[str, tuple[int, ...], str, int, str], int | bool] = {}
        self.places: dict[str, s.Loc] = {}
        self.openings: dict[str, str] = {}          # of threads that only wait at first: the place where they wait
        self.unread: dict[tuple[str, tuple[int, ...], str], frozenset[str]] = {}
        self.probe: Callable[[str, tuple[int, ...], str], frozenset[str]] = lambda *_: frozenset()
        live = {name: normal.live_after(world.programs[name], lambda x: is_site(x, world.cutting))
                for name in world.cutting}
        for method, universe in threads.items():
            paths = list(self._paths(method, ()))
            self.sites[method] = {site_name(p): p for p in paths}
            names = [START, *self.sites[method], END]
            loop = endless_wait(world.programs[method])
            if loop is not None:
                self.openings[method] = site_name(((method, world.sites[id(loop.body[0])]),))
                names = list(self.sites[method])
            for name in names:
                enumerators.setdefault(name, len(enumerators))
            at = Enum(*names).resolve(None, enumerators)
            self.variables[f"{method}.at"] = (universe, at)
            for name, path in self.sites[method].items():
                self.saved[method, name] = self._frames(method, universe, path, live)
        self.codes = enumerators
        self.names = {code: name for name, code in enumerators.items()}

    def _paths(self, program: str, above: SitePath) -> list[SitePath]:
        found: list[SitePath] = []
        if any(program == name for name, _ in above):
            raise ModelError(f"{program} calls itself", self.world.programs[program].loc.file,
                             self.world.programs[program].loc.line)
        for x in s.statements(self.world.programs[program].body):
            ordinal = self.world.sites.get(id(x))
            if ordinal is None:
                continue
            here = (*above, (program, ordinal))
            if isinstance(x, s.Cut):
                found.append(here)
                self.places[site_name(here)] = x.loc
            elif isinstance(x, s.Assign | s.Do) and isinstance(x.value, s.Call):
                found += self._paths(x.value.name, here)
        return found

    def _frames(self, method: str, universe: str, path: SitePath, live: Mapping[str, Mapping[int, frozenset[str]]],
                ) -> list[list[tuple[str, str]]]:
        frames = []
        for depth, (program, ordinal) in enumerate(path):
            statement = next(x for x in s.statements(self.world.programs[program].body)
                             if self.world.sites.get(id(x)) == ordinal)
            domains = dict(self.world.programs[program].domains)
            frame = []
            for local in sorted(live[program][id(statement)]):
                variable = ""
                if local in domains:
                    prefix = site_name(path[:depth])
                    variable = ".".join([prefix or method, local] if prefix else [method, local])
                    self.variables.setdefault(variable, (universe, domains[local]))  # type: ignore[arg-type]
                frame.append((local, variable))
            frames.append(frame)
        return frames

    def set_domains(self, resolved: Mapping[str, Domain]) -> None:
        """Take over the resolved domains of the variables that this makes."""
        self.variables = {n: (u, resolved[n]) for n, (u, _) in self.variables.items()}

    # ---------------------------------------------------------------------------------- symbolic stepping
    def never_read(self, method: str, args: tuple[int, ...], site: str) -> frozenset[str]:
        """The saved locals on which nothing depends that a thread does from a site on.

        The text may read them on paths that are never taken from there, as a loop's counter behind a call that, where
        it blocks, gives the value that ends the loop. They are no part of the state.
        """
        key = (method, args, site)
        if key not in self.unread:
            self.unread[key] = self.probe(*key)
        return self.unread[key]

    def reached(self, method: str, args: tuple[int, ...], record: CutRecord, me: int) -> list[dict[Key, int | bool]]:
        """The combinations of saved indices and numbers that a cut can leave; truth values stay symbolic.

        A value that is known, or decides between a few known ones, gives these; any other all those of its domain.
        """
        site = site_name(record.site)
        keys: list[tuple[Key, tuple[int | bool, ...]]] = []
        unread = self.never_read(method, args, site)
        for depth, frame in enumerate(self.saved[method, site]):
            for local, variable in frame:
                if variable and variable not in unread and self.variables[variable][1].sort != "Bool":
                    codes = self.variables[variable][1].codes()
                    if codes is None:
                        raise ModelError(f"the local {variable} is unbounded", hint="give it a Range")
                    value = record.saved[depth].get(local, codes[0])
                    few = (value,) if isinstance(value, int) else outcomes(value)
                    keys.append(((variable, me), codes if few is None else tuple(v for v in few if v in codes)))
        total = 1
        for _, codes in keys:
            total *= len(codes)
        if total > LARGEST_SPLIT:
            raise ModelError(f"{site}: {total} combinations of saved locals", hint="save fewer or narrower locals")
        return [dict(zip((k for k, _ in keys), values, strict=True))
                for values in itertools.product(*(codes for _, codes in keys))]

    def frames(self, method: str, args: tuple[int, ...], site: str, me: int, heap: Mapping[Key, Value],
               fixed: Mapping[Key, int | bool]) -> list[dict[str, Value]]:
        """The locals of each frame at a site, from the state."""
        out: list[dict[str, Value]] = []
        unread = self.never_read(method, args, site)
        for depth, frame in enumerate(self.saved[method, site]):
            env: dict[str, Value] = {}
            for local, variable in frame:
                if variable in unread:
                    env[local] = self._default(variable)
                elif variable:
                    key = (variable, me)
                    env[local] = fixed[key] if key in fixed else heap[key]
                elif (method, args, site, depth, local) in self.constants:
                    env[local] = self.constants[method, args, site, depth, local]
                elif site == self.openings.get(method) and local in self.world.programs[method].params:
                    env[local] = args[self.world.programs[method].params.index(local)]
            out.append(env)
        return out

    def note_constants(self, method: str, args: tuple[int, ...], record: CutRecord) -> bool:
        """Remember the locals without a domain that a cut leaves; true when something new was learned."""
        site, new = site_name(record.site), False
        for depth, frame in enumerate(self.saved[method, site]):
            for local, variable in frame:
                if variable or local not in record.saved[depth]:
                    continue
                if unsure(record.saved[depth][local]):
                    continue
                value, key = record.saved[depth][local], (method, args, site, depth, local)
                if not isinstance(value, (bool, int)) or self.constants.get(key, value) != value:
                    raise self._no_domain(record.site, depth, local)
                new |= key not in self.constants
                self.constants[key] = value
        return new

    def _no_domain(self, path: SitePath, depth: int, local: str) -> ModelError:
        """What to declare for a local: in the method, or for C in the model."""
        site, (program, ordinal) = site_name(path), path[depth]
        if self.world.programs[program].language != "c":
            return ModelError(f"`{local}` lives across {site} and has no domain", self.places[site].file,
                              self.places[site].line, f"annotate it: {local}: Range(low, high) = …")
        loc = next(x.loc for x in s.statements(self.world.programs[program].body)
                   if self.world.sites.get(id(x)) == ordinal)
        return ModelError(f"`{local}` of {program} lives across {site} and has no domain", loc.file, loc.line,
                          f'declare it in the model: locals = {{("{program}", "{local}"): Range(low, high)}}')

    def updates(self, method: str, args: tuple[int, ...], here: str, record: CutRecord | None) -> dict[Key, Value]:
        """What a step from ``here`` to a cut (or to the end) does to the thread's own variables."""
        me = args[0]
        there = END if record is None else site_name(record.site)
        changed: dict[Key, Value] = {(f"{method}.at", me): self.codes[there]}
        if here != START:
            unread = self.never_read(method, args, here)           # they have their first value everywhere
            for frame in self.saved[method, here]:
                for _, variable in frame:
                    if variable and variable not in unread:
                        changed[variable, me] = self._default(variable)
        if record is not None:
            unread = self.never_read(method, args, there)
            for depth, frame in enumerate(self.saved[method, there]):
                for local, variable in frame:
                    if variable in unread:
                        continue
                    if unsure(record.saved[depth].get(local)):
                        raise ModelError(f"`{local}` has no value at {there} on some path", self.places[there].file,
                                         self.places[there].line, "give it one before")
                    if variable:
                        changed[variable, me] = record.saved[depth].get(local, self._default(variable))
        return changed

    def _default(self, variable: str) -> int | bool:
        codes = self.variables[variable][1].codes()
        assert codes is not None
        return codes[0]

    def initial(self) -> dict[str, int | bool]:
        """The values at the beginning: every thread at its start, nothing saved."""
        return {v: self.codes[self.openings.get(v.removesuffix(".at"), START)] if v.endswith(".at") else
                self._default(v) for v in self.variables}

    def outcome(self, method: str, result: Result) -> list[Value]:
        """All terms of a run from a site that decide what is done: conditions, the states behind it, what is saved."""
        found: list[Value] = [fault.guard for fault in result.faults]
        if result.end is not None:
            found += [result.end.pc, *result.end.heap.values()]
        for record in result.cuts:
            found += [record.guard, *record.heap.values()]
            for depth, frame in enumerate(self.saved[method, site_name(record.site)]):
                saved = [record.saved[depth].get(local) for local, _ in frame]
                found += [x.value if isinstance(x, Partly) else x for x in saved if x is not None and x is not UNSURE]
                found += [x.known for x in saved if isinstance(x, Partly)]
        return found

    # ---------------------------------------------------------------------------------- concrete stepping
    def site(self, event: Any, memory: Mapping[Key, int | bool]) -> str:
        return self.names[int(memory[f"{event.action}.at", event.args[0]])]

    def enter(self, event: Any, here: str, memory: Memory) -> tuple[SitePath, Sequence[Mapping[str, int | bool]]]:
        frames = self.frames(event.action, event.args, here, event.args[0], memory, {})
        return self.sites[event.action][here], frames

    def leave(self, event: Any, here: str, site: SitePath, frames: Sequence[Mapping[str, int | bool]],
              memory: Memory) -> str:
        """Write where the thread stands now into the state."""
        record = CutRecord(site, True, {}, tuple(dict(f) for f in frames)) if site else None
        if record is not None:
            self.note_constants(event.action, event.args, record)
        for key, value in self.updates(event.action, event.args, here, record).items():
            codes = self.variables[key[0]][1].codes()
            if codes is not None and value not in codes:
                loc = self.places[site_name(site)]
                raise ModelError(f"{self.world.name(key)} is {value} at {site_name(site)}, outside its domain",
                                 loc.file, loc.line, "widen the domain that the local is annotated with")
            memory[key] = value
        return site_name(site) if site else END
