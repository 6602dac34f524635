# SPDX-License-Identifier: GPL-2.0-only
"""Certificates of proofs by induction: an invariant, and what has to be checked about it, as an SMT-LIB script.

The script stands alone: any solver must answer ``unsat`` to each of its questions. They are: a run from an initial
state leaves the invariant within fewer than k steps; k states with the invariant, one after the other and no two the
same, are followed by one without it; a state has the invariant, and not the property, or a step from it is a fault of
the model. With k = 1 these are the three of a plain induction.

The script is written over integers and straight from the transitions; it shares no encoding with the engine that found
the proof. ``check`` builds the questions anew from the model, refuses a file that asks others, takes only the invariant
from it, and asks Z3 and, where it is installed, cvc5. A certificate does not say that the property means something in
the model (that its wait is ever entered, its actions happen): that is part of the verdict, and needs runs, not an
invariant.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from schedproof.engines.bmc.unroll import inside
from schedproof.errors import InputError
from schedproof.model.transition import Transition
from schedproof.property import Invariant, Property, Within

FORMAT = "schedproof-certificate/1"
RLIMIT = 400_000_000                # of Z3's resource units for one question
CLOCK = "the wait"                  # what the wait has cost so far; no variable of a model has a blank in its name
START, END = "; invariant", "; obligations"
DEEPEST = 64                        # the greatest k that a file may name


@dataclass(frozen=True)
class Certificate:
    """How an invariant was proved: by ``k``-induction, with ``lemmas`` (terms over the state) as part of it."""

    k: int
    lemmas: tuple[z3.BoolRef, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a solver says about one question of a certificate: unsat is what it must say."""

    solver: str
    question: str
    answer: str


class _System:
    """An instance and a property as constraints over integers."""

    def __init__(self, instance: Any, property: Property):
        if not isinstance(property.kind, Invariant | Within):
            raise InputError(f"there are no certificates for properties of the kind {property.kind.word}")
        self.instance, self.kind = instance, property.kind
        self.transitions: tuple[Transition, ...] = tuple(instance.transitions)
        self.constants: dict[str, z3.ExprRef] = {n: v.term for n, v in instance.variables.items()}
        if isinstance(self.kind, Within):
            bound = self.kind.bound
            self.bound = int(bound(instance.view) if callable(bound) else bound)
            self.waiting = instance.predicate(self.kind.waiting)
            self.constants[CLOCK] = z3.Int(CLOCK)
            self.holds = z3.Int(CLOCK) <= self.bound
        else:
            self.holds = instance.predicate(self.kind.formula)
        self.invariant = z3.Function("invariant", *(c.sort() for c in self.constants.values()), z3.BoolSort())

    def at(self, term: z3.ExprRef, k: int) -> z3.ExprRef:
        """A term for state ``k`` of a run."""
        return z3.substitute(term, *((c, z3.Const(f"{n}@{k}", c.sort())) for n, c in self.constants.items()))

    def kept(self, k: int) -> z3.BoolRef:
        return self.invariant(*(self.at(c, k) for c in self.constants.values()))

    def initial(self) -> z3.BoolRef:
        """That the current state is an initial one."""
        states = [z3.And(*(self.constants[n] == _value(self.constants[n], code) for n, code in state.items()))
                  for state in self.instance.initial]
        clock = [z3.Int(CLOCK) == 0] if CLOCK in self.constants and isinstance(self.kind, Within) else []
        return z3.And(z3.Or(*states), *clock)

    def step(self, k: int) -> z3.BoolRef:
        """That state ``k + 1`` follows state ``k``."""
        found = []
        for x in self.transitions:
            if not x.fault:
                new = {n: x.updates.get(n, c) for n, c in self.constants.items()}
                if isinstance(self.kind, Within):
                    new[CLOCK] = self._clock(x)
                found.append(z3.And(self.at(x.guard, k),
                                    *(self.at(self.constants[n], k + 1) == self.at(v, k) for n, v in new.items())))
        return z3.Or(*found)

    def _clock(self, x: Transition) -> z3.ArithRef:
        """What the wait has cost after a transition; beyond the bound it makes no difference how much."""
        assert isinstance(self.kind, Within)
        more = z3.Int(CLOCK) + x.costs.get(self.kind.cost, z3.IntVal(0))
        return z3.If(self.waiting, z3.If(more > self.bound, z3.IntVal(self.bound + 1), more), z3.IntVal(0))

    def sound(self) -> z3.BoolRef:
        """That the current state has the property and no step from it is a fault of the model."""
        faults = [x.guard for x in self.transitions if x.fault]
        for x in self.transitions:
            outside = [z3.Not(inside(self.instance.variables[n], v)) for n, v in x.updates.items()]
            if outside and not x.fault:
                faults.append(z3.And(x.guard, z3.Or(*outside)))
        return z3.And(self.holds, z3.Not(z3.Or(*faults)))

    def candidate(self, lemmas: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """The invariant that the engine has proved: in the domains, sound, with the lemmas."""
        domains = [inside(v, v.term) for v in self.instance.variables.values()]
        if isinstance(self.kind, Within):
            domains.append(z3.Int(CLOCK) >= 0)
        return z3.And(*domains, self.sound(), *lemmas)

    # ------------------------------------------------------------------------------------------- questions
    def questions(self, k: int) -> dict[str, z3.BoolRef]:
        """What must have no solution, in words."""
        found = {}
        for j in range(k):
            path = [self.step(i) for i in range(j)]
            name = "an initial state without the invariant" if j == 0 else f"a run of {j} steps that leaves it"
            found[name] = z3.And(self.at(self.initial(), 0), *path, z3.Not(self.kept(j)))
        apart = [z3.Or(*(self.at(c, i) != self.at(c, j) for c in self.constants.values()))
                 for i, j in itertools.combinations(range(k), 2)]
        found["a step that leaves it"] = z3.And(*(self.kept(i) for i in range(k)), *(self.step(i) for i in range(k)),
                                                *apart, z3.Not(self.kept(k)))
        found["a state with it but without the property"] = z3.And(self.kept(0), z3.Not(self.at(self.sound(), 0)))
        return found

    def opening(self) -> str:
        """How the definition of the invariant has to begin."""
        names = " ".join(f"({c.sexpr()} {c.sort().sexpr()})" for c in self.constants.values())
        return f"(define-fun invariant ({names}) Bool\n"

    def declared(self, k: int) -> str:
        """The declarations that a question needs."""
        return "".join(f"(declare-fun {self.at(c, i).sexpr()} () {c.sort().sexpr()})\n"
                       for i in range(k + 1) for c in self.constants.values())


def _value(constant: z3.ExprRef, code: int | bool) -> z3.ExprRef:
    return z3.BoolVal(bool(code)) if z3.is_bool(constant) else z3.IntVal(int(code))


# ------------------------------------------------------------------------------------------------------ files
def written(instance: Any, property: Property, certificate: Certificate, names: Mapping[str, Any]) -> str:
    """A certificate as text. ``names`` says of what: what the property is found by again."""
    system = _System(instance, property)
    invariant = f"{system.opening()}{system.candidate(certificate.lemmas).sexpr()})\n"
    return _text(system, certificate.k, invariant, {**names, "statement": property.statement})


def _text(system: _System, k: int, invariant: str, names: Mapping[str, Any]) -> str:
    asked = "".join(f"{_before(system, k, name)}{formula.sexpr()}{AFTER}"
                    for name, formula in system.questions(k).items())
    header = json.dumps({**names, "k": k, "hash": _hash(invariant + asked)}, sort_keys=True)
    return f"; {FORMAT}\n; {header}\n(set-logic ALL)\n{START}\n{invariant}{END}\n{asked}"


def _before(system: _System, k: int, name: str) -> str:
    return f"; {name}\n(push 1)\n{system.declared(k)}(assert "


AFTER = ")\n(check-sat)\n(pop 1)\n"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def names_in(text: str) -> dict[str, Any]:
    """What a certificate says that it is about. Raises InputError where it is none."""
    first, _, rest = text.partition("\n")
    if first != f"; {FORMAT}":
        raise InputError(f"is no certificate: its first line is not `; {FORMAT}`")
    try:
        found = json.loads(rest.partition("\n")[0].removeprefix("; "))
    except (ValueError, RecursionError):
        found = None
    wanted = {"model": str, "property": str, "variant": str, "parameters": dict, "statement": str, "k": int,
              "hash": str}
    if not isinstance(found, dict) or any(type(found.get(n)) is not kind for n, kind in wanted.items()):
        raise InputError("is damaged: its second line does not say what it certifies; prove it again")
    if not 1 <= found["k"] <= DEEPEST or any(type(v) is not int for v in found["parameters"].values()):
        raise InputError("is damaged: k or a parameter is no number that can be; prove it again")
    return found


def check(instance: Any, property: Property, text: str) -> list[Answer]:
    """What the solvers say, question by question. It certifies the property only if all answers are unsat.

    Raises InputError where the file is damaged, or is about another model or property than these.
    """
    names, system = names_in(text), _System(instance, property)
    if names["statement"] != property.statement:
        raise InputError(f"is about another statement than {property.name} makes; prove it again")
    k, header = names["k"], text.split("\n", 2)[1]
    invariant, _, asked = text.partition(f"{START}\n")[2].partition(f"{END}\n")
    if text != f"; {FORMAT}\n{header}\n(set-logic ALL)\n{START}\n{invariant}{END}\n{asked}" or (
            _hash(invariant + asked) != names["hash"]):
        raise InputError("is damaged: it is not as it was written; prove it again")
    _one_definition(system, invariant)
    questions = system.questions(k)
    _same_questions(system, k, questions, asked)
    scripts = {name: f"(set-logic ALL)\n{invariant}{system.declared(k)}(assert {formula.sexpr()})\n"
               for name, formula in questions.items()}
    found = [Answer("Z3", name, _by_z3(script)) for name, script in scripts.items()]
    if has_cvc5():
        found += [Answer("cvc5", name, _by_cvc5(f"{script}(check-sat)\n")) for name, script in scripts.items()]
    return found


def _one_definition(system: _System, invariant: str) -> None:
    """Refuse anything but one definition of one term: nothing else may get into the solvers."""
    if not invariant.endswith(")\n") or not invariant.startswith(system.opening()) or not _one_form(invariant[:-1]):
        raise InputError("is damaged: it does not define one invariant over the model's variables; prove it again")
    calls = " ".join(c.sexpr() for c in system.constants.values())
    declared = "".join(f"(declare-fun {c.sexpr()} () {c.sort().sexpr()})\n" for c in system.constants.values())
    try:
        z3.parse_smt2_string(f"{declared}{invariant}(assert (invariant {calls}))")
    except z3.Z3Exception:
        raise InputError("is damaged: its invariant is no formula over the model's variables; prove it again") from None


def _one_form(text: str) -> bool:
    """Whether a text is one bracketed form, without comments and strings."""
    depth, quoted = 0, False
    for place, letter in enumerate(text):
        if letter == "|":
            quoted = not quoted
        elif not quoted:
            depth += {"(": 1, ")": -1}.get(letter, 0)
            if letter in ';"' or depth == 0 and place < len(text) - 1:
                return False
    return depth == 0 and not quoted and text.endswith(")")


def _same_questions(system: _System, k: int, questions: Mapping[str, z3.BoolRef], asked: str) -> None:
    """Refuse questions that are not those of the model, whatever the invariant is.

    Written twice they may differ in the order of sums and conjunctions, so they are compared by what they mean.
    """
    other = InputError("states other obligations than the model gives: it was edited, or the model or the property has "
                       "changed; prove it again")
    domain = " ".join(c.sort().sexpr() for c in system.constants.values())
    for name, formula in questions.items():
        body, found, rest = asked.removeprefix(_before(system, k, name)).partition(AFTER)
        if not asked.startswith(_before(system, k, name)) or not found or not _one_form(f"({body})"):
            raise other
        script = f"(declare-fun invariant ({domain}) Bool)\n{system.declared(k)}(assert {body})"
        try:
            (told,) = z3.parse_smt2_string(script)
        except (z3.Z3Exception, ValueError):
            raise other from None
        solver = z3.Solver()
        solver.set("rlimit", RLIMIT)
        solver.add(told != formula)
        if solver.check() != z3.unsat:
            raise other
        asked = rest
    if asked:
        raise other


# ---------------------------------------------------------------------------------------------------- solvers
def _by_z3(script: str) -> str:
    solver = z3.Solver()
    solver.set("rlimit", RLIMIT)
    asserted = z3.parse_smt2_string(script)
    if len(asserted) != 1:
        return "unknown"
    solver.add(asserted)
    return str(solver.check())


def has_cvc5() -> bool:
    """Whether the optional second solver is installed."""
    import importlib.util

    return importlib.util.find_spec("cvc5") is not None


def _by_cvc5(script: str) -> str:
    import cvc5

    solver = cvc5.Solver()
    solver.setOption("rlimit", "20000000")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, script, "certificate")
    symbols, said = parser.getSymbolManager(), ""
    while not (command := parser.nextCommand()).isNull():
        said += command.invoke(solver, symbols)
    return said.strip() if said.strip() in ("sat", "unsat") else "unknown"
