# SPDX-License-Identifier: GPL-2.0-only
"""What engines see of a model: variables, initial states and guarded transitions, as z3 terms.

A state is a mapping from variable names (``weight[gA]``) to codes. Every term speaks about the current state
only, through the ``term`` constants of the variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import z3

from schedproof.lang.syntax import Loc
from schedproof.model.domains import Domain

State = Mapping[str, int | bool]


@dataclass(frozen=True)
class Variable:
    """One state variable of an instance. ``base`` and ``index`` are ``weight`` and ``gA`` of ``weight[gA]``."""

    name: str
    base: str
    index: str | None
    domain: Domain
    term: z3.ExprRef

    def show(self, code: int | bool) -> str:
        return self.domain.show(code)


@dataclass(frozen=True)
class Transition:
    """One way in which one action can happen.

    ``guard`` says when; ``updates`` gives the new values of the variables that may change (all others keep
    theirs); ``costs`` what the step costs, as terms over the state before it. ``args`` are the action's objects,
    ``choices`` what the adversary chose, ``sites`` where a thread goes on from and to. ``free`` lists the reasons
    of undeclared values that the step rests on (reads of ignored fields): a verdict that uses such a step is
    never an alarm. An update that leaves its variable's domain is a modelling error, reported at ``loc``.
    """

    action: str
    args: tuple[str, ...]
    choices: tuple[str, ...]
    guard: z3.BoolRef
    updates: Mapping[str, z3.ExprRef]
    costs: Mapping[str, z3.ArithRef] = field(default_factory=dict)
    fair: str | None = None
    sites: tuple[str, str] = ("", "")
    free: tuple[str, ...] = ()
    loc: Loc = Loc("", 0)
    fault: str = ""          # when set, reaching this transition is a modelling error, and this says which

    @property
    def label(self) -> str:
        """The transition in one word: ``wake(a)``, ``schedule()[gB]``."""
        text = f"{self.action}({', '.join(self.args)})"
        return text + (f"[{', '.join(self.choices)}]" if self.choices else "")
