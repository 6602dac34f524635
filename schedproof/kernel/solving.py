# SPDX-License-Identifier: GPL-2.0-only
"""Questions to Z3, with a limit that does not depend on the machine, and products of unknowns made linear."""

from __future__ import annotations

from collections.abc import Mapping

import z3

from schedproof.lang import terms as t

RLIMIT = 8_000_000         # of Z3's resource units for one question, which do not depend on the machine's load
_LIMITS = (1 << 31, 1 << 32, 1 << 63, 1 << 64)


def ask(terms: list[z3.BoolRef], limit: int = RLIMIT) -> tuple[z3.CheckSatResult, z3.ModelRef | None]:
    solver = z3.Solver()
    solver.set("rlimit", limit)
    solver.add(*terms)
    answer = solver.check()
    return answer, solver.model() if answer == z3.sat else None


def value_of(term: z3.ExprRef) -> int | bool:
    return bool(z3.is_true(term)) if z3.is_bool(term) else int(term.as_long())


class Opaque:
    """Terms with products, quotients and remainders of unknowns as unknown functions: unsat of them is unsat.

    ``facts`` are what is known of those functions without multiplying.
    """

    def __init__(self, ranges: Mapping[str, t.Interval]):
        self.bounds = t.Bounds(ranges)
        self.facts: list[z3.BoolRef] = []
        self.made: dict[int, tuple[z3.ExprRef, z3.ExprRef]] = {}       # by identity; the term is kept alive
        self.functions = {op: z3.Function(f"{op}!", *[z3.IntSort()] * 3) for op in ("*", "div", "mod")}

    def of(self, term: z3.ExprRef) -> z3.ExprRef:
        """The term in that form."""
        if term.get_id() not in self.made:
            parts = term.children()
            children = [self.of(c) for c in parts]
            kind = term.decl().kind()
            hard = sum(not z3.is_int_value(c) for c in children) > 1
            if kind == z3.Z3_OP_MUL and hard:
                made = self._product(list(zip(parts, children, strict=True)))
            elif kind in (z3.Z3_OP_IDIV, z3.Z3_OP_MOD) and not z3.is_int_value(children[1]):
                made = self._quotient("div" if kind == z3.Z3_OP_IDIV else "mod", *children)
            else:
                same = all(z3.eq(a, b) for a, b in zip(parts, children, strict=True))
                made = term if same else term.decl()(*children)
            self.made[term.get_id()] = (term, made)
        return self.made[term.get_id()][1]

    def _product(self, factors: list[tuple[z3.ExprRef, z3.ExprRef]]) -> z3.ExprRef:
        """Numbers stay outside; the others come in an order of their own, single constants first."""
        number, unknown = 1, []
        for term, made in factors:
            if z3.is_int_value(made):
                number *= made.as_long()
            else:
                unknown.append((bool(term.children()), term.decl().name(), term.get_id(), term, made))
        unknown.sort(key=lambda x: x[:3])
        _, _, _, whole, product = unknown[0]
        for _, _, _, term, made in unknown[1:]:
            product = self._times(product, made, self.bounds.of(whole)[1], self.bounds.of(term)[1])
            whole = whole * term
        return product if number == 1 else number * product

    def _times(self, a: z3.ExprRef, b: z3.ExprRef, *highs: int | None) -> z3.ExprRef:
        times = self.functions["*"]
        m = times(a, b)
        natural = z3.And(a >= 0, b >= 0)
        self.facts += [(m == 0) == z3.Or(a == 0, b == 0), m == times(b, a), z3.Implies(a == 1, m == b),
                       z3.Implies(b == 1, m == a),
                       (m > 0) == z3.Or(z3.And(a > 0, b > 0), z3.And(a < 0, b < 0))]
        for high, other in zip(highs, (b, a), strict=True):
            if high is not None and high > 0:
                self.facts += [z3.Implies(z3.And(natural, other <= (limit - 1) // high), m < limit)
                               for limit in _LIMITS]
        return m

    def _quotient(self, op: str, a: z3.ExprRef, b: z3.ExprRef) -> z3.ExprRef:
        made = self.functions[op](a, b)
        natural = z3.And(a >= 0, b > 0)
        if op == "div":
            self.facts += [z3.Implies(natural, z3.And(made >= 0, made <= a, (made == 0) == (a < b))),
                           z3.Implies(b == 1, made == a)]
        else:
            self.facts += [z3.Implies(b > 0, z3.And(made >= 0, made < b)),
                           z3.Implies(z3.And(natural, a < b), made == a)]
        return made
