# SPDX-License-Identifier: GPL-2.0-only
"""The format ``ktap``: verdicts in the kernel's test format, version 1 (Documentation/dev-tools/ktap.rst).

A property is ``ok`` when its verdict is the declared one, or, where nothing is declared, when it is proved.
"""

from __future__ import annotations

from typing import Any

from schedproof.report import not_for
from schedproof.results import code_of

DIRECTIVE = {"unknown": " # TIMEOUT", "vacuous": " # ERROR"}


def render(thing: Any) -> str:
    """Results as KTAP: a test a model, with a subtest a property and variant. Raises InputError for anything else."""
    rows = [thing] if isinstance(thing, dict) and "verdict" in thing else thing
    if not isinstance(rows, list) or not all(isinstance(r, dict) and "verdict" in r for r in rows):
        raise not_for(thing, "ktap")
    models = list(dict.fromkeys(r["model"] for r in rows))
    lines = ["KTAP version 1", f"1..{len(models)}"]
    for number, model in enumerate(models, 1):
        own = [r for r in rows if r["model"] == model]
        lines += ["  KTAP version 1", f"  1..{len(own)}"]
        for i, row in enumerate(own, 1):
            good = code_of(row) == 0
            lines += [f"  # {row['property']} in {row['variant']}: {text}" for text in _told(row)]
            directive = "" if good else DIRECTIVE.get(row["verdict"], "")
            lines.append(f"  {'ok' if good else 'not ok'} {i} {_plain(row['property'])}.{_plain(row['variant'])}"
                         f"{directive}")
        good = all(code_of(r) == 0 for r in own)
        lines.append(f"{'ok' if good else 'not ok'} {number} {_plain(model)}")
    return "\n".join(lines) + "\n"


def _told(row: dict[str, Any]) -> list[str]:
    worst = "" if row.get("worst_case") is None else f", worst case {row['worst_case']} {row.get('unit') or ''}"
    expected = f", expected {row['expected']}" if row.get("expected") else ""
    reason = [" ".join(str(row["reason"]).split())] if row.get("reason") else []
    return [f"{row['verdict']}{worst.rstrip()}{expected}", *reason]


def _plain(text: str) -> str:
    return text.replace("#", "_").replace(" ", "_")
