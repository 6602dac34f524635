# SPDX-License-Identifier: GPL-2.0-only
"""Removes what a lowered function computes in vain.

A value that only goes into an ignored field is computed for nothing; left in place it would make a run depend on
free values that nothing uses.
"""

from __future__ import annotations

from collections.abc import Sequence

from schedproof.lang.syntax import Assign, Call, Choose, If, Local, Stmt, While, expressions


def without_dead_code(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The body without assignments, and tests around nothing else, whose locals are never needed."""
    needed: set[str] = set()
    while True:
        before = len(needed)
        for statement in body:
            _mark(statement, needed)
        if len(needed) == before:
            return _kept(body, needed)


def _matters(statement: Stmt, needed: set[str]) -> bool:
    if isinstance(statement, Assign):
        return statement.name in needed or any(isinstance(e, (Call, Choose)) for e in expressions(statement))
    if isinstance(statement, If):
        return any(_matters(s, needed) for s in (*statement.then, *statement.orelse))
    return True


def _mark(statement: Stmt, needed: set[str]) -> None:
    """Add the locals that a statement needs."""
    if not _matters(statement, needed):
        return
    needed.update(e.name for e in expressions(statement) if isinstance(e, Local))
    inner: Sequence[Stmt] = ()
    if isinstance(statement, If):
        inner = (*statement.then, *statement.orelse)
    elif isinstance(statement, While):
        inner = (*statement.body, *statement.step)
    for one in inner:
        _mark(one, needed)


def _kept(body: tuple[Stmt, ...], needed: set[str]) -> tuple[Stmt, ...]:
    found: list[Stmt] = []
    for statement in body:
        if not _matters(statement, needed):
            continue
        if isinstance(statement, If):
            statement = If(statement.test, _kept(statement.then, needed), _kept(statement.orelse, needed),
                           statement.loc)
        elif isinstance(statement, While):
            statement = While(statement.test, _kept(statement.body, needed), _kept(statement.step, needed),
                              statement.loc, statement.test_last)
        found.append(statement)
    return tuple(found)
