# SPDX-License-Identifier: GPL-2.0-only
"""Small questions about Python source that the front end asks."""

from __future__ import annotations

import ast
import inspect
import os
import textwrap
from collections.abc import Callable
from typing import Any

from schedproof.lang import syntax as s


def display(file: str) -> str:
    """A file's name as messages show it: from the suite's root where that is known."""
    parts = os.path.abspath(file).split(os.sep)
    for root in ("models", "properties", "tests"):
        if root in parts:
            return "/".join(parts[parts.index(root):])
    return parts[-1]


def as_load(node: ast.expr) -> ast.expr:
    """The same place, as an expression that reads it."""
    copy = ast.parse(ast.unparse(node), mode="eval").body
    for part in ast.walk(copy):
        if "lineno" in part._attributes:
            part.lineno, part.col_offset = node.lineno, node.col_offset  # type: ignore[attr-defined]
    return copy


def module_functions(function: Callable[..., Any], program: s.Program) -> dict[str, Callable[..., Any]]:
    """The module functions that a program calls, to be lowered too."""
    names = inspect.unwrap(function).__globals__
    closure = inspect.getclosurevars(inspect.unwrap(function)).nonlocals
    known = {**names, **closure}
    return {n: known[n] for n in s.calls(program.body) if inspect.isfunction(known.get(n))}


def returned_fields(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names after ``self.`` of what a method returns as it is: ``return self.curr``, ``return self.my_q[se]``."""
    found = []
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))):
        value = node.value if isinstance(node, ast.Return) else None
        value = value.value if isinstance(value, ast.Subscript) else value
        if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
            found.append(value.attr)
    return tuple(found)
