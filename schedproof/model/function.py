# SPDX-License-Identifier: GPL-2.0-only
"""One function of a model for all inputs at once, for lemmas: on a state in which every variable is free.

    run = all_inputs(instance, "calc_group_shares", ["qA"], ranges={"load": (0, 1 << 40)})
    Claim(run.value <= run.before["shares[A]"], run.inputs, run.assumptions)

It runs whatever the instance has under that name: the model's method, or C that was read from a tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from schedproof.errors import InputError, ModelError
from schedproof.lang import terms as t
from schedproof.lang.execute import Executor
from schedproof.lang.syntax import NULL_CODE
from schedproof.model.domains import NULL
from schedproof.model.instance import Instance

Span = tuple[int, int]


@dataclass(frozen=True)
class Run:
    """What a function gives and leaves behind, as terms over its ``inputs``.

    ``value`` is None where it returns none on some path. ``before`` and ``after`` map each state variable to its
    value. ``sound`` says that it does nothing that C or the model does not define. The ``assumptions`` hold the ranges
    of the inputs and what the function requires.
    """

    value: z3.ExprRef | None
    before: Mapping[str, z3.ExprRef]
    after: Mapping[str, z3.ExprRef]
    sound: z3.BoolRef
    inputs: Mapping[str, z3.ExprRef]
    assumptions: tuple[z3.BoolRef, ...]


def all_inputs(instance: Instance, function: str, args: Sequence[Any] = (), ranges: Mapping[str, Span] | None = None,
               ) -> Run:
    """Run ``function`` on every state. An argument is an object's name, NULL, a number or a z3 term.

    ``ranges`` gives numbers another range than their domain has, for one variable (``weight[gA]``) or for all of a
    name (``weight``). Raises InputError for a name that does not exist, ModelError where the function blocks.
    """
    program = instance.world.programs.get(function)
    if program is None:
        raise InputError(f"{instance.model.__name__} has no method {function}")
    spans = _spans(instance, ranges or {})
    terms = [_argument(instance, a) for a in args]
    bounds = {n: spans.get(n, interval) for n, interval in instance.ranges.items()}
    executor = Executor(instance.world, bounds)
    result = executor.run(function, terms, instance.heap)
    if result.cuts:
        raise ModelError(f"{function} blocks, so it is not one atomic function", program.loc.file, program.loc.line)
    if result.end is None:
        raise ModelError(f"{function} ends on no path", program.loc.file, program.loc.line)
    inputs: dict[str, z3.ExprRef] = {n: v.term for n, v in instance.variables.items()}
    assumptions = [a for n, v in instance.variables.items() if (a := _inside(v, spans.get(n))) is not None]
    for choice in result.choices:
        inputs[choice.constant.decl().name()] = choice.constant
        assumptions.append(z3.And(choice.constant >= 0, choice.constant < len(choice.labels)))
    after = {instance.world.name(k): t.z3_of(v) for k, v in result.end.heap.items()}
    faults = z3.Or(*(t.z3_of(f.guard) for f in result.faults))
    used = t.constants_of([result.end.pc, faults, *after.values(), *([] if result.value is None else [result.value])])
    known = {a.decl().name(): a for term in terms if not isinstance(term, int) for a in t.constants_of([term]).values()}
    inputs |= {n: c for n, c in used.items() if n not in inputs} | known
    assumptions.append(t.z3_of(result.end.pc) if not result.faults else z3.Or(faults, t.z3_of(result.end.pc)))
    before = {n: v.term for n, v in instance.variables.items()}
    value = None if result.value is None else t.z3_of(result.value)
    return Run(value, before, {n: after.get(n, before[n]) for n in before}, z3.simplify(z3.Not(faults)), inputs,
               tuple(z3.simplify(a) for a in assumptions))


def _spans(instance: Instance, ranges: Mapping[str, Span]) -> dict[str, Span]:
    found: dict[str, Span] = {}
    for name, span in ranges.items():
        meant = [n for n, v in instance.variables.items() if name in (n, v.base) and v.domain.sort != "Bool"]
        if not meant:
            raise InputError(f"{instance.model.__name__} has no number {name}")
        found |= dict.fromkeys(meant, span)
    return found


def _argument(instance: Instance, given: Any) -> t.Value:
    """What the executor takes for an argument."""
    if isinstance(given, str):
        for objects in instance.universes.values():
            if given in objects:
                return objects.index(given)
        raise InputError(f"{instance.model.__name__} has no object {given}")
    if given is NULL:
        return NULL_CODE
    return t.settle(given) if z3.is_expr(given) else int(given)


def _inside(variable: Any, span: Span | None) -> z3.BoolRef | None:
    """That a variable has a value of its range, or of its domain; None where that says nothing."""
    term, codes = variable.term, variable.domain.codes()
    if variable.domain.sort == "Bool" or (span is None and codes is None):
        return None
    if span is not None:
        return z3.And(term >= span[0], term <= span[1])
    if len(codes) == max(codes) - min(codes) + 1:
        return z3.And(term >= min(codes), term <= max(codes))
    return z3.Or(*(term == c for c in codes))
