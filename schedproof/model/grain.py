# SPDX-License-Identifier: GPL-2.0-only
"""What a model gives to functions that are read from C: where they may be interrupted, and domains for their locals.

The grain belongs to the model: C gets that of the method that it stands in for, and a callee that the model does not
know gets its caller's. A local that lives across a cut is part of the state, so it needs a domain. That is, in this
order: what the model's ``locals`` says, what the method of the same name says of a local of the same name, the domain
of the variable that the local is a copy of, or what its C type tells (a truth value, a pointer to an object).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from schedproof.lang import syntax as s
from schedproof.lang.ctypes import BOOL, CType
from schedproof.lang.rewrite import renamed
from schedproof.model.domains import Bool, Domain, Pointer


def grained(programs: Mapping[str, s.Program], model: Any) -> dict[str, s.Program]:
    """The programs, those from C with the model's grains and with domains for their locals."""
    c = {n for n, p in programs.items() if p.language == "c"}
    if not c:
        return dict(programs)
    out = dict(programs)
    own = model.kernel_functions()
    grains: dict[str, s.Grain] = {n: _grain(model, n) for n in c if n in own}
    inside = {"access": _helpers(programs, c, own, [n for n, g in grains.items() if g == "access"]),
              "blocking": _helpers(programs, c, own, [n for n, g in grains.items() if g == "blocking"]),
              "atomic": _helpers(programs, c, own, [n for n, g in grains.items() if g == "atomic"])}
    other = inside["blocking"] | inside["atomic"]
    apart = {n: f"{n}@access" for n in inside["access"] & other}      # a callee of both kinds of functions
    for name in c:
        grain = grains.get(name) or ("blocking" if name in inside["blocking"] else "atomic")
        if name in inside["access"] and name not in other:
            grain = "access"
        program = replace(programs[name], grain=grain, domains=_domains(programs[name], model))
        out[name] = renamed(program, apart) if grain == "access" and apart else program
        if name in apart:
            out[apart[name]] = replace(renamed(program, apart), grain="access")
    return out


def _grain(model: Any, name: str) -> s.Grain:
    """The grain of a kernel function. One without a method is cut where a callee blocks."""
    mark = model.marks.get(name)
    return mark.grain if mark is not None else "blocking"


def _helpers(programs: Mapping[str, s.Program], c: set[str], own: Mapping[str, str], roots: list[str]) -> set[str]:
    """The C functions below some roots for which the model has no name."""
    found: set[str] = set()
    todo = list(roots)
    while todo:
        more = {n for n in s.calls(programs[todo.pop()].body) if n in c and n not in own and n not in found}
        found |= more
        todo += more
    return found


# ------------------------------------------------------------------------------------------------------- domains
def _domains(program: s.Program, model: Any) -> tuple[tuple[str, object], ...]:
    values: dict[str, list[s.Expr]] = {}
    for x in s.statements(program.body):
        if isinstance(x, s.Assign):
            values.setdefault(x.name, []).append(x.value)
    types = local_types(program)
    method = dict(model.programs[program.name].domains) if program.name in model.programs else {}
    found: dict[str, Domain] = {}
    for name in (*program.params, *values):
        declared = model.locals.get((program.name, name)) or method.get(name)
        if declared is not None and (types.get(name) == BOOL) == (declared.sort == "Bool"):
            found[name] = declared
    while True:                                    # a copy has the domain of what it is a copy of
        before = len(found)
        for name, assigned in values.items():
            if name not in found and name not in program.params:
                sources = [_source(e, found, model) for e in assigned]
                first = sources[0]
                if first is not None and all(x is first or (isinstance(x, Bool) and isinstance(first, Bool))
                                             for x in sources):
                    found[name] = first
        if len(found) == before:
            break
    for name in (*program.params, *values):
        typed = _of_type(types.get(name), model)
        if name not in found and typed is not None:
            found[name] = typed
    return tuple(found.items())


def _source(e: s.Expr, found: Mapping[str, Domain], model: Any) -> Domain | None:
    """The domain of an expression that is one variable, or a truth value."""
    while isinstance(e, s.Cast):
        e = e.operand
    if isinstance(e, s.Load):
        domain = model.scope.variables.get(e.var)
        return domain if isinstance(domain, Domain) else None
    if isinstance(e, s.Local):
        return found.get(e.name)
    truth = isinstance(e, s.Unary | s.Binary) and e.op in s.TRUTH
    return Bool() if truth or (isinstance(e, s.Const) and isinstance(e.value, bool)) else None


def _of_type(ctype: CType | None, model: Any) -> Domain | None:
    """The domain that a C type tells: a truth value, or a pointer to an object, where just one universe has those."""
    if ctype == BOOL:
        return Bool()
    if ctype is None or not ctype.struct:
        return None
    targets = [o for o in model.scope.objects.values() if o.ctype == ctype.struct]
    return Pointer(targets[0]) if len(targets) == 1 else None


def local_types(program: s.Program) -> dict[str, CType]:
    """The C types of a program's locals and parameters, as far as its text tells them."""
    found = {n: t for n, t in zip(program.params, program.types, strict=False) if t is not None}
    for x in s.statements(program.body):
        for e in s.expressions(x):
            if isinstance(e, s.Local) and e.ctype is not None:
                found.setdefault(e.name, e.ctype)
    return found
