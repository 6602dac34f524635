# SPDX-License-Identifier: GPL-2.0-only
"""Pages, from the templates beside this file. Every value that is put into one is escaped."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def _environment() -> Environment:
    made = Environment(loader=PackageLoader("schedproof.report"), autoescape=True, undefined=StrictUndefined,
                       trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    made.policies["json.dumps_kwargs"] = {"sort_keys": False}      # steps and variables stay in their order
    return made


def page(template: str, **values: Any) -> str:
    """A template of the folder ``templates`` with these values in it. A value that is missing is an error."""
    return _environment().get_template(template).render(**values)
