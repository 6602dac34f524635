# SPDX-License-Identifier: GPL-2.0-only
"""Functions of real kernel trees, damaged, and run in the models that speak about them.

The kernel's text is read from the trees at run time; nothing of it is kept.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from schedproof import registry
from schedproof.kernel import Tree
from schedproof.kernel.compare import Side, compare
from schedproof.kernel.config import DEFAULT
from schedproof.kernel.functions import Read, read_function
from schedproof.kernel.source import sources
from schedproof.model import Bool, Constant, Enum, Model, Object, Range, Vocabulary, environment
from tests.campaigns.fuzz import mutate
from tests.campaigns.fuzz.runs import Outcome, itself, read_text, some
from tests.kernel.smallc import ran, really_differs

KVM, LOCK, FAIR = "virt/kvm/kvm_main.c", "kernel/locking/qspinlock_paravirt.h", "kernel/sched/fair.c"


class Guests(Model):
    """What the spin handler sees."""

    vcpu = Object("struct kvm_vcpu", "v0", "v1", "v2")
    ready = Bool(per=vcpu, c="ready")
    preempted = Bool(per=vcpu, c="preempted")
    in_spin_loop = Bool(per=vcpu, c="spin_loop.in_spin_loop")
    eligible = Bool(per=vcpu, c="spin_loop.dy_eligible")
    cursor = Range(0, 2, c="struct kvm.last_boosted_vcpu", init=0)
    online = Constant(3, c="struct kvm.online_vcpus", why="all are there")
    vocabulary = Vocabulary(callees=dict.fromkeys((
        "kvm_vcpu_yield_to", "kvm_arch_vcpu_in_kernel", "kvm_arch_vcpu_preempted_in_kernel", "vcpu_dy_runnable",
        "kvm_arch_dy_has_pending_interrupt", "kvm_vcpu_is_blocking"), "outside"))
    releases = {"v6.1": {}}
    functions = dict.fromkeys(("kvm_vcpu_on_spin", "kvm_vcpu_eligible_for_directed_yield"), KVM)

    @environment
    def kvm_vcpu_yield_to(self, target):
        self.preempted[target] = False
        return 1

    @environment
    def kvm_arch_vcpu_in_kernel(self, v):
        return self.preempted[v]

    @environment
    def kvm_arch_vcpu_preempted_in_kernel(self, v):
        return self.preempted[v]

    @environment
    def vcpu_dy_runnable(self, v):
        return self.ready[v]

    @environment
    def kvm_arch_dy_has_pending_interrupt(self, v):
        return self.ready[v]

    @environment
    def kvm_vcpu_is_blocking(self, v):
        return self.ready[v]


class Waiters(Model):
    """What the lock's waiters see."""

    node = Object("struct pv_node", "n0", "n1")
    state = Enum("RUN", "HALT", "HASH", meaning={"RUN": (0, 0), "HALT": (1, 1), "HASH": (2, 2)}, per=node, c="state",
                 init="RUN")
    locked = Bool(per=node, c="mcs.locked")
    vocabulary = Vocabulary(callees={"pv_wait@struct pv_node.state": "halts"},
                            noop={"lockevent_inc": "a counter", "lockevent_cond_inc": "a counter"})
    releases = {"v6.1": {}}
    functions = dict.fromkeys(("pv_wait_early", "pv_wait_node"), LOCK)

    @environment
    def pv_wait(self, n, value):
        self.locked[n] = True


@dataclass
class Subject:
    """One function of one tree, in one model."""

    tree: Tree
    function: str
    file: str
    model: Any
    read: Read

    @cached_property
    def instance(self) -> Any:
        return self.model.variant(next(iter(self.model.releases)))

    @cached_property
    def pieces(self) -> list[tuple[int, int]]:
        """Lines of the functions in the file that it is made of: what gets damaged."""
        unit = sources(self.tree, DEFAULT).unit(self.file)
        return [(p.line, p.last) for n in sorted({*self.read.names, self.function}) for p in unit.functions.get(n, [])]

    def damaged(self, rng: random.Random) -> tuple[str, str]:
        """The file with one of these functions changed, and how hard."""
        first, last = rng.choice(self.pieces)
        lines = self.tree.text(self.file).split("\n")
        text, kind = mutate.c_text(rng, "\n".join(lines[first - 1:last]))
        return "\n".join([*lines[:first - 1], text, *lines[last:]]), kind


def folder() -> Path | None:
    """Where the real trees are."""
    given = os.environ.get("SCHEDPROOF_TREES")
    return Path(given) if given else None


def _models() -> list[Any]:
    return [Guests, Waiters, *(m for classes in registry.models().values() for m in classes)]


def subjects() -> list[Subject]:
    """Every function of every model in every tree; those that can be read come first."""
    found = []
    root = folder()
    for path in sorted(p for p in root.glob("*") if (p / "Makefile").is_file()) if root is not None else []:
        tree = Tree(path)
        for model in _models():
            for function, file in model.kernel_functions().items():
                read = read_function(tree, function, file, model)
                if read.status != "absent" and tree.exists(file) and function in tree.text(file):
                    subject = Subject(tree, function, file, model, read)
                    if subject.pieces:
                        found.append(subject)
    return sorted(found, key=lambda s: (s.read.status != "read", s.function))


def one(rng: random.Random, all_of_them: list[Subject], outcome: Outcome) -> None:
    """One damaged function: read, compared with itself and with the function as it was, and run."""
    good = [s for s in all_of_them if s.read.status == "read"]
    subject = rng.choice(good) if good and rng.random() < 0.85 else rng.choice(all_of_them)
    text, kind = subject.damaged(rng)
    outcome.answers.append(f"damage: {kind}")
    found = read_text(subject.tree, {subject.file: text}, subject.function, subject.file, subject.model, outcome)
    if found.status != "read":
        return
    programs = {**subject.instance.world.programs, **found.programs}
    side = Side(subject.function, programs)
    for _ in range(2):                             # callees that stay the model's own leave any state, as in compare
        ran(subject.instance, side, _input(subject, side, rng))
        outcome.executed = True
    if rng.random() < 0.1:
        itself(subject.instance, subject.function, programs, outcome)
    if subject.read.status == "read" and kind == "small" and rng.random() < 0.25:
        _apart(subject, Side(subject.function, {**subject.instance.world.programs, **subject.read.programs}), side, rng,
               outcome)


def _input(subject: Subject, side: Side, rng: random.Random) -> dict[str, int | bool]:
    """Any state and arguments."""
    found: dict[str, int | bool] = {}
    world = subject.instance.world
    for base, (_, domain) in world.variables.items():
        codes = domain.codes()
        for key in world.keys(base):
            found[world.name(key)] = rng.choice(list(codes)) if codes is not None else some(rng, -9, 1 << 21)
    program = side.programs[side.name]
    for name, ctype in zip(program.params, program.types, strict=True):
        if ctype is not None and ctype.struct:
            sizes = [len(subject.instance.universes[n]) for n, o in subject.instance.scope.objects.items()
                     if o.ctype == ctype.struct]
            found[f"arg {name}"] = rng.randrange(sizes[0]) if sizes else 0
        else:
            found[f"arg {name}"] = 0 if ctype is None else some(rng, ctype.low, ctype.high)
    return found


def _apart(subject: Subject, old: Side, new: Side, rng: random.Random, outcome: Outcome) -> None:
    """Before and after: ``equal`` has to hold on every input that is tried, ``differs`` on the input that it names."""
    found = compare(subject.instance, old, new)
    outcome.answers.append(f"old and new: {found.answer}")
    if len(old.programs[old.name].params) != len(new.programs[new.name].params):
        return
    if found.answer == "differs" and not really_differs(subject.instance, old, new, found):
        outcome.find("wrong", f"{old.name} does not differ on {found.detail}")
    if found.answer != "equal" or found.within:
        return
    for _ in range(4):
        given = _input(subject, old, rng)
        if ran(subject.instance, old, given) != ran(subject.instance, new, given):
            outcome.find("wrong", f"{old.name} is not equal on {given}")
            return
