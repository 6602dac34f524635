# SPDX-License-Identifier: GPL-2.0-only
"""Whole-program rewriting: other names for callees, and programs without their places."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from schedproof.lang import syntax as s
from schedproof.lang.ctypes import CType


def _mapped(node: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of a node in which ``change`` was applied to every dataclass below it, innermost first."""
    if isinstance(node, tuple):
        return tuple(_mapped(item, change) for item in node)
    if isinstance(node, CType) or not is_dataclass(node):
        return node
    new = {f.name: _mapped(getattr(node, f.name), change) for f in fields(node)}
    return change(replace(node, **new))  # type: ignore[type-var]


def renamed(program: s.Program, names: Mapping[str, str]) -> s.Program:
    """The program with other names for itself and for the programs that it calls."""

    def change(node: Any) -> Any:
        if isinstance(node, s.Call | s.Program) and node.name in names:
            return replace(node, name=names[node.name])
        return node

    made: s.Program = _mapped(program, change)
    return made


Node = TypeVar("Node", s.Program, s.Expr)


def without_places(program: Node) -> Node:
    """The program as if it stood nowhere: what two versions of a text have in common when only lines moved."""
    made: Node = _mapped(program, lambda node: s.NOWHERE if isinstance(node, s.Loc) else node)
    return made


def with_reasons(program: s.Program, change: Callable[[str], str]) -> s.Program:
    """The program with other words for what is not modelled."""
    made: s.Program = _mapped(program, lambda node: replace(node, why=change(node.why)) if isinstance(node, s.Free)
                              else node)
    return made
