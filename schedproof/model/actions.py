# SPDX-License-Identifier: GPL-2.0-only
"""Marks on a model's methods, and the words that have a meaning only inside them.

The words (``require``, ``choose``, ``ring``, ``step``, ``block``, ``cdiv``, …) are read from the text of the method
and never called; calling one from ordinary Python is an error that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, TypeVar

from schedproof.errors import ModelError
from schedproof.model.domains import Object

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Mark:
    """What a decorator says about a method."""

    kind: Literal["action", "thread", "kernel", "environment", "init", "final"]
    cost: Mapping[str, Any] = field(default_factory=dict)
    fair: Literal["weak", "strong"] | None = None
    per: tuple[Object, ...] = ()
    when: str = ""
    file: str = ""
    grain: Literal["atomic", "blocking", "access"] = "atomic"


def _marked(mark: Mark) -> Callable[[F], F]:
    def mark_it(method: F) -> F:
        method._schedproof_mark = mark  # type: ignore[attr-defined]
        return method

    return mark_it


def _objects(per: Object | tuple[Object, ...] | None) -> tuple[Object, ...]:
    return () if per is None else per if isinstance(per, tuple) else (per,)


def action(method: Any = None, *, cost: Mapping[str, Any] | None = None,
           fair: Literal["weak", "strong"] | None = None, per: Object | tuple[Object, ...] | None = None,
           when: str = "") -> Any:
    """Something that can happen. It can happen in every state in which none of its ``require`` fails.

    ``cost`` maps a unit to a number, or to the name of a method that gives one for the state before the step.
    ``per`` makes one action for each object, which is passed as an argument. ``when`` names a parameter or a
    switch: where it is 0 or false, the instance does not have the action. ``fair`` declares weak or strong
    fairness of each instance.
    """
    mark = _marked(Mark("action", dict(cost or {}), fair, _objects(per), when))
    return mark if method is None else mark(method)


def thread(*, per: Object | tuple[Object, ...], cost: Mapping[str, Any] | None = None,
           fair: Literal["weak", "strong"] | None = None, when: str = "") -> Callable[[F], F]:
    """A thread for each object: it runs from one cut (``step``, ``block``) to the next in one atomic step."""
    return _marked(Mark("thread", dict(cost or {}), fair, _objects(per), when))


def kernel(file: str, grain: Literal["atomic", "blocking", "access"] = "atomic") -> Callable[[F], F]:
    """This method stands for the kernel function of the same name in ``file``, arguments in C's order.

    ``grain`` says where it may be interrupted: nowhere, where it blocks, or before each shared access.
    """
    return _marked(Mark("kernel", file=file, grain=grain))


def environment(method: F) -> F:
    """A method that stands for what is around the kernel functions. It is never replaced by C."""
    return _marked(Mark("environment"))(method)


def init(method: F) -> F:
    """Runs once on the declared initial values; ``choose`` in it gives several initial states."""
    return _marked(Mark("init"))(method)


def final(method: F) -> F:
    """States in which it is right that nothing happens any more."""
    return _marked(Mark("final"))(method)


def _word(name: str) -> NoReturn:
    raise ModelError(f"{name}() was called as ordinary Python", hint="it has a meaning only inside a model's methods")


def require(test: Any) -> None:
    """The action cannot happen unless ``test`` holds here."""
    _word("require")


def choose(*options: Any) -> Any:
    """Any one of the options, or any object of a universe: the adversary decides."""
    _word("choose")


def ring(universe: Any, after: Any) -> Any:
    """The objects of a universe, once round, beginning behind ``after`` and ending with it."""
    _word("ring")


def step() -> None:
    """Ends the atomic step; the thread goes on in a later one."""
    _word("step")


def block(until: Any) -> None:
    """Ends the atomic step; the thread goes on when ``until`` holds."""
    _word("block")


def cdiv(dividend: Any, divisor: Any) -> Any:
    """C's division, towards zero."""
    _word("cdiv")


def cmod(dividend: Any, divisor: Any) -> Any:
    """C's remainder: the sign is the dividend's."""
    _word("cmod")


def implies(premise: Any, conclusion: Any) -> Any:
    """``conclusion`` holds wherever ``premise`` does."""
    _word("implies")
