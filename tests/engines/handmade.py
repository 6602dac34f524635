# SPDX-License-Identifier: GPL-2.0-only
"""Instances made by hand for the tests of engines, and ways to look at them that share nothing with an engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import z3

from schedproof.engines.explicit.path import Path
from schedproof.lang.syntax import Loc
from schedproof.model.domains import Bool, Domain, Range, Values
from schedproof.model.transition import State, Transition, Variable
from schedproof.property import Kind, Property

PLACE = Loc("models/handmade.py", 7)


@dataclass
class Handmade:
    """What an engine sees of a model. Formulas are z3 terms."""

    variables: dict[str, Variable]
    initial: tuple[dict[str, int | bool], ...]
    transitions: tuple[Transition, ...]
    final: z3.BoolRef | None = None
    dead: dict[str, str] = field(default_factory=dict)
    name: str = "handmade"
    params: Mapping[str, int] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return " ".join((self.name, *(f"{n}={v}" for n, v in self.params.items())))

    @property
    def view(self) -> SimpleNamespace:
        return SimpleNamespace(**self.params)

    def predicate(self, formula: Any) -> z3.BoolRef:
        return formula


def number(name: str, low: int, high: int) -> Variable:
    return Variable(name, name, None, Range(low, high), z3.Int(name))


def values(name: str, *codes: int) -> Variable:
    return Variable(name, name, None, Values({c: f"v{c}" for c in codes}), z3.Int(name))


def truth(name: str) -> Variable:
    return Variable(name, name, None, Bool(), z3.Bool(name))


def of(name: str, domain: Domain) -> Variable:
    return Variable(name, name, None, domain, z3.Int(name))


def by_name(*variables: Variable) -> dict[str, Variable]:
    return {v.name: v for v in variables}


def rule(action: str, guard: Any, updates: Mapping[str, Any], cost: Mapping[str, Any] | None = None,
         args: tuple[str, ...] = (), fair: str | None = None, free: tuple[str, ...] = ()) -> Transition:
    """A transition; plain numbers and truth values may stand for terms."""
    return Transition(action, args, (), term(guard), {n: term(v) for n, v in updates.items()},
                      {n: term(v) for n, v in (cost or {}).items()}, fair, free=free, loc=PLACE)


def term(value: Any) -> Any:
    if isinstance(value, bool):
        return z3.BoolVal(value)
    return z3.IntVal(value) if isinstance(value, int) else value


def prop(kind: Kind) -> Property:
    return Property("tested", None, "a property of a hand-made instance", kind)


# -------------------------------------------------------------------------------------------- independent looks
def value_of(what: Any, variables: Mapping[str, Variable], state: State) -> int | bool:
    """A term's value, by z3's own simplifier."""
    pairs = [(v.term, z3.BoolVal(state[n]) if z3.is_bool(v.term) else z3.IntVal(state[n]))
             for n, v in variables.items()]
    found = z3.simplify(z3.substitute(what, *pairs))
    return z3.is_true(found) if z3.is_bool(found) else found.as_long()


def after(instance: Handmade, transition: Transition, state: State) -> dict[str, int | bool]:
    changed = {n: value_of(u, instance.variables, state) for n, u in transition.updates.items()}
    return {**state, **changed}


def walk(instance: Handmade, path: Path) -> list[tuple[dict[str, int | bool], Transition]]:
    """The states before each step of the path, with the step. Fails unless the path is a run of the instance."""
    assert path.initial in instance.initial
    state, found = dict(path.initial), []
    for transition in path.stem + path.cycle:
        assert value_of(transition.guard, instance.variables, state) is True, (transition.label, state)
        found.append((state, transition))
        state = after(instance, transition, state)
    if path.cycle:
        assert state == found[len(path.stem)][0], "the cycle does not close"
    return found


def end(instance: Handmade, path: Path) -> dict[str, int | bool]:
    """The state in which a path ends."""
    steps = walk(instance, path)
    return after(instance, steps[-1][1], steps[-1][0]) if steps else dict(path.initial)


def reach(instance: Handmade) -> dict[tuple[int | bool, ...], int]:
    """All reachable states with their distance, by z3 and a Python queue. For tiny instances."""
    names = list(instance.variables)
    seen = {tuple(s[n] for n in names): 0 for s in instance.initial}
    queue = list(seen)
    for key in queue:
        for _, following in successors(instance, dict(zip(names, key, strict=True))):
            new = tuple(following[n] for n in names)
            if new not in seen:
                seen[new] = seen[key] + 1
                queue.append(new)
    return seen


def successors(instance: Handmade, state: State) -> Iterator[tuple[Transition, dict[str, int | bool]]]:
    for transition in instance.transitions:
        if value_of(transition.guard, instance.variables, state):
            yield transition, after(instance, transition, state)


# ---------------------------------------------------------------------------------------------------- instances
def graph(edges: Sequence[tuple[int, int, int]], count: int, start: int = 0, final: bool = True,
          fair: Mapping[int, tuple[str, str]] | None = None) -> Handmade:
    """A graph as an instance: ``edges`` are (from, to, cost in ms); ``fair`` gives an edge its action and fairness."""
    at = number("at", 0, max(1, count - 1))
    rules = []
    for i, (source, target, cost) in enumerate(edges):
        action, how = (fair or {}).get(i, (f"edge{i}", ""))
        rules.append(rule(action, at.term == source, {"at": target}, {"ms": cost}, fair=how or None))
    dead = {t.action: "may be out of reach" for t in rules}
    return Handmade(by_name(at), ({"at": start},), tuple(rules), z3.BoolVal(final), dead)


def pv_queue(count: int, spin_limit: int = 2) -> Handmade:
    """``count`` vCPUs on one CPU fewer take a lock in FIFO order; waiters spin, then halt, or halt early when the
    one ahead does not run."""
    idle, spinning, halted, holding = range(4)
    loc = [number(f"loc{i}", 0, 3) for i in range(count)]
    run = [number(f"run{i}", 0, 1) for i in range(count)]
    pos = [number(f"pos{i}", 0, count) for i in range(count)]
    spin = [number(f"spin{i}", 0, spin_limit) for i in range(count)]
    queued = z3.Sum([z3.If(p.term > 0, 1, 0) for p in pos])
    running = z3.Sum([r.term for r in run])
    rules: list[Transition] = []
    for i in range(count):
        me, others = (loc[i].term, run[i].term, pos[i].term, spin[i].term), [j for j in range(count) if j != i]
        early = z3.Or([z3.And(pos[j].term == me[2] - 1, z3.Or(loc[j].term == halted, run[j].term == 0))
                       for j in others])
        waiting = z3.And(me[1] == 1, me[0] == spinning, me[2] > 1)
        release: dict[str, Any] = {loc[i].name: idle, pos[i].name: 0}
        for j in others:
            release[pos[j].name] = z3.If(pos[j].term > 0, pos[j].term - 1, 0)
            release[loc[j].name] = z3.If(z3.And(pos[j].term == 2, loc[j].term == halted), spinning, loc[j].term)
        on = {"loc": loc[i].name, "run": run[i].name, "pos": pos[i].name, "spin": spin[i].name}
        who = (f"v{i}",)
        rules += [
            rule("lock", z3.And(me[1] == 1, me[0] == idle),
                 {on["loc"]: z3.If(queued == 0, holding, spinning), on["pos"]: queued + 1, on["spin"]: 0}, args=who),
            rule("spin", z3.And(waiting, z3.Not(early), me[3] < spin_limit), {on["spin"]: me[3] + 1}, args=who),
            rule("halt", z3.And(waiting, z3.Or(early, me[3] >= spin_limit)),
                 {on["loc"]: halted, on["run"]: 0, on["spin"]: 0}, args=who),
            rule("acquire", z3.And(me[1] == 1, me[0] == spinning, me[2] == 1),
                 {on["loc"]: holding, on["spin"]: 0}, args=who),
            rule("unlock", z3.And(me[1] == 1, me[0] == holding), release, args=who),
            rule("preempt", me[1] == 1, {on["run"]: 0}, args=who),
            rule("schedule", z3.And(me[1] == 0, me[0] != halted, running < max(1, count - 1)), {on["run"]: 1},
                 args=who),
        ]
    everything = by_name(*loc, *run, *pos, *spin)
    return Handmade(everything, (dict.fromkeys(everything, 0),), tuple(rules))


# The beginning of a random model: its variables, and that a run may end anywhere.
SMALL_MODEL = """\
class M(Model):
    obj = Object("struct o", "p", "q")
    flag = Bool()
    n = Range(0, 2)
    cur = Pointer(obj)
    arr = Bool(per=obj)
    releases = {"v1": {}}

    @final
    def anywhere(self):
        return True

"""
