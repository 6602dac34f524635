# SPDX-License-Identifier: GPL-2.0-only
"""Steps that hang on a value that nobody declared, as one step for each way that the tests of the value can turn out.

That allows at least what the value really allows, so what holds in all of these steps holds. Nothing else may be
concluded from one of them: they are marked, and no engine takes one for an alarm.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping

import z3

from schedproof.lang import terms as t

MOST_TESTS = 6


def cases(guard: z3.BoolRef, updates: Mapping[str, z3.ExprRef], names: Collection[str],
          ranges: Mapping[str, t.Interval]) -> Iterator[tuple[z3.BoolRef, dict[str, z3.ExprRef]]]:
    """(guard, updates) without the constants ``names``, where they occur in tests alone; else what was given."""
    tests: list[z3.BoolRef] = []
    known: dict[int, bool] = {}
    for term in (guard, *updates.values()) if names else ():
        _collect(term, names, tests, known)
    if not tests or len(tests) > MOST_TESTS:
        yield guard, dict(updates)
        return
    solver = z3.Solver()
    solver.set("rlimit", 1_000_000)
    for name, constant in t.constants_of(tests).items():
        low, high = ranges.get(name, (None, None))
        solver.add(*([constant >= low] if low is not None and z3.is_int(constant) else []),
                   *([constant <= high] if high is not None and z3.is_int(constant) else []))
    for truths in itertools.product((True, False), repeat=len(tests)):
        if solver.check(*(x if y else z3.Not(x) for x, y in zip(tests, truths, strict=True))) == z3.unsat:
            continue
        pairs = [(x, z3.BoolVal(y)) for x, y in zip(tests, truths, strict=True)]
        here = z3.simplify(z3.substitute(guard, *pairs))
        if not z3.is_false(here):
            yield here, {n: z3.simplify(z3.substitute(u, *pairs)) for n, u in updates.items()}


def _collect(term: z3.ExprRef, names: Collection[str], tests: list[z3.BoolRef], known: dict[int, bool]) -> bool:
    """Add the innermost tests of the constants; whether the term has one of these that is in no test."""
    if term.get_id() not in known:                 # terms share their parts, and the whole keeps them alive
        inner = [_collect(part, names, tests, known) for part in term.children()]       # all of them
        mentioned = any(inner) or (not inner and z3.is_const(term) and term.decl().name() in names)
        if mentioned and z3.is_bool(term):
            tests.append(term)
            mentioned = False
        known[term.get_id()] = mentioned
    return known[term.get_id()]
