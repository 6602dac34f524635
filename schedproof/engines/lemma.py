# SPDX-License-Identifier: GPL-2.0-only
"""The ``lemma`` engine: statements about functions for all inputs, by Z3.

Whether Z3 gives up hangs on its own resource units, not on the clock: the same question has the same answer on every
machine. ``--budget`` can only turn an answer into ``Unknown``, as everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import z3

from schedproof import __version__
from schedproof.errors import InputError, ModelError
from schedproof.lang import terms as t
from schedproof.property import Claim, Lemma, Property
from schedproof.trace import Trace
from schedproof.verdict import Counts, Proved, Refuted, Unknown, Vacuous, Verdict

RLIMIT = 100_000_000         # of Z3's resource units, for one obligation
ONLY = ""                    # the name of the obligation of a claim that has just one


@dataclass(frozen=True)
class ByLemma:
    """The engine. ``rlimit`` is what one obligation may cost, in Z3's resource units."""

    rlimit: int = RLIMIT

    name = "lemma"

    def applies(self, instance: Any, property: Property) -> str | None:
        if isinstance(property.kind, Lemma):
            return None
        return f"Z3 proves lemmas about functions, not properties of the kind {property.kind.word}"

    def decide(self, instance: Any, property: Property, budget: float | None = None, jobs: int = 1,
               progress: Callable[[Counts], None] | None = None) -> Verdict:
        """All obligations one after the other, up to the first that fails. ``depth`` counts those that are proved."""
        begin = time.perf_counter()
        claim = claim_of(instance, property)
        title = "any" if claim.any_instance else instance.title
        done = 0

        def common() -> dict[str, Any]:
            return {"engine": self.name, "instance": title,
                    "counts": Counts(depth=done, seconds=time.perf_counter() - begin)}

        answer, _ = self._ask(claim, [], budget, begin)
        if answer == z3.unsat:
            return Vacuous(**common(), reason="no input satisfies the assumptions")
        if answer == z3.unknown:
            return Unknown(**common(), reason="Z3 gave up on whether any input satisfies the assumptions")
        for name, formula in obligations(claim).items():
            answer, model = self._ask(claim, [z3.Not(formula)], budget, begin)
            told = f" of the obligation {name}" if name else ""
            if answer == z3.unknown:
                return Unknown(**common(), reason=f"Z3 gave up{told}")
            if answer == z3.sat and model is not None:
                trace = trace_of(instance, property, claim, name, model)
                return Refuted(**common(), trace=trace, reason=f"the obligation {name} fails" if name else "")
            done += 1
            if progress is not None:
                progress(common()["counts"])
        return Proved(**common())

    def _ask(self, claim: Claim, wanted: list[z3.BoolRef], budget: float | None, begin: float,
             ) -> tuple[z3.CheckSatResult, z3.ModelRef | None]:
        solver = z3.Solver()
        solver.set("rlimit", self.rlimit)
        if budget is not None:
            solver.set("timeout", max(1, int(1000 * (budget - (time.perf_counter() - begin)))))
        solver.add(*claim.assumptions, *wanted)
        answer = solver.check()
        return answer, solver.model() if answer == z3.sat else None


def claim_of(instance: Any, property: Property) -> Claim:
    """What a lemma claims on an instance. Raises ModelError where it is no closed claim."""
    assert isinstance(property.kind, Lemma)
    claim = property.kind.claim(instance)
    if not isinstance(claim, Claim):
        raise ModelError(f"{property.name}: the claim is a {type(claim).__name__}, not a Claim")
    if not obligations(claim):
        raise ModelError(f"{property.name}: the claim has no obligation")
    used = t.constants_of([*obligations(claim).values(), *claim.assumptions])
    missing = sorted(used.keys() - {c.decl().name() for c in claim.inputs.values()})
    if missing:
        raise ModelError(f"{property.name}: {', '.join(missing)} is used and is no input")
    return claim


def obligations(claim: Claim) -> dict[str, z3.BoolRef]:
    """The formulas of a claim by name, in their order."""
    given = claim.formula if isinstance(claim.formula, Mapping) else {ONLY: claim.formula}
    return {name: t.z3_of(formula) for name, formula in given.items()}


# ------------------------------------------------------------------------------------------- counter-models
def trace_of(instance: Any, property: Property, claim: Claim, obligation: str, model: z3.ModelRef) -> Trace:
    """The inputs that break an obligation, as a trace without steps. An input that does not matter has no value."""
    used = t.constants_of([obligations(claim)[obligation], *claim.assumptions])
    shown = {name: _show(instance, name, model.eval(constant, model_completion=True))
             for name, constant in claim.inputs.items() if constant.decl().name() in used}
    return Trace(instance.model.__module__.rpartition(".")[2], instance.name, dict(instance.params), property.name,
                 "refuted", shown, (), (), "", None, instance.sources, property.statement, __version__)


def _show(instance: Any, name: str, value: z3.ExprRef) -> str:
    variable = instance.variables.get(name)
    known = t.settle(value) if z3.is_bool(value) or z3.is_int(value) else None
    if variable is not None and known is not None and known in (variable.domain.codes() or ()):
        return str(variable.show(known))
    return str(known).lower() if isinstance(known, bool) else str(value)


def again(trace: Trace, instance: Any, property: Property) -> Verdict:
    """What a stored counter-model shows: its inputs are put into the claim. Raises InputError when nothing fails."""
    claim = claim_of(instance, property)
    pairs = []
    for name, text in trace.initial.items():
        if name not in claim.inputs:
            raise InputError(f"{name} is no input of {property.name}")
        pairs.append((claim.inputs[name], _read(instance, name, claim.inputs[name], text)))
    if not all(_true(z3.substitute(a, *pairs)) for a in claim.assumptions):
        raise InputError("the inputs do not satisfy what the lemma assumes")
    for name, formula in obligations(claim).items():
        if _true(z3.Not(z3.substitute(formula, *pairs))):
            title = "any" if claim.any_instance else instance.title
            return Refuted("replay", title, trace=trace, reason=f"the obligation {name} fails" if name else "")
    raise InputError("the inputs do not break the lemma")


def _true(term: z3.BoolRef) -> bool:
    """Whether a formula holds for all values of what is still free in it."""
    solver = z3.Solver()
    solver.set("rlimit", RLIMIT)
    solver.add(z3.Not(term))
    return bool(solver.check() == z3.unsat)


def _read(instance: Any, name: str, constant: z3.ExprRef, text: str) -> z3.ExprRef:
    variable = instance.variables.get(name)
    codes = () if variable is None else variable.domain.codes() or ()
    code = next((c for c in codes if variable.show(c) == text), None)
    try:
        if z3.is_bool(constant):
            return z3.BoolVal(bool(code) if code is not None else {"true": True, "false": False}[text.lower()])
        if z3.is_int(constant):
            return z3.IntVal(int(text) if code is None else int(code))
        if z3.is_bv(constant):
            return z3.BitVecVal(int(text), constant.size())
        if z3.is_real(constant):
            return z3.RealVal(str(Fraction(text)))
    except (ValueError, LookupError):
        pass
    raise InputError(f"{text!r} is no value of {name}")
