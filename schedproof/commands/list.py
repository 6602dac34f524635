# SPDX-License-Identifier: GPL-2.0-only
"""``schedproof list``: what there is to ask about."""

from __future__ import annotations

import argparse
from typing import Any

from schedproof.commands._common import enter_suite, output
from schedproof.console import emit

HELP = "models, releases, fixes, switches, parameters, properties"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", nargs="?", help="only this one")
    output(parser)


def run(args: argparse.Namespace) -> int:
    from schedproof import registry
    from schedproof.report import render

    enter_suite(args)
    names = registry.model_names() if args.model is None else [args.model]
    found = [describe(name) for name in names]
    emit(render({"models": found}, "json") if args.json else "\n".join(map(text, found)))
    return 0


def describe(name: str) -> dict[str, Any]:
    """One model as plain data."""
    from schedproof import registry

    classes = registry.model_classes(name)
    switches: dict[str, Any] = {}
    for model in classes:
        switches |= model.switches()

    def merged(attribute: str) -> dict[str, dict[str, Any]]:
        return {key: dict(value) for model in classes for key, value in getattr(model, attribute).items()}

    return {
        "model": name,
        "what": " ".join((classes[0].__doc__ or "").split()),
        "releases": merged("releases"),
        "fixes": merged("fixes"),
        "mutants": merged("mutants"),
        "switches": {key: list(switch.values) for key, switch in switches.items()},
        "parameters": {key: {"default": p.default, "low": p.low, "high": p.high, "what": p.what}
                       for key, p in registry.parameters_of(name).items()},
        "functions": {key: file for model in classes for key, file in model.kernel_functions().items()},
        "properties": [{"name": p.name, "facts": p.facts, "kind": p.kind.word, "headline": p.headline,
                        "statement": " ".join(p.statement.split()), "holds": list(p.holds), "fails": list(p.fails),
                        "instance": dict(p.instance)} for p in registry.properties(name)],
    }


def text(model: dict[str, Any]) -> str:
    """One model for a terminal."""
    from schedproof.report._layout import wrap

    width = 100
    lines = wrap(model["what"], width, f"{model['model']}: ", "  ")

    def block(title: str, rows: dict[str, str]) -> None:
        if rows:
            lines.append(f"  {title}")
        longest = max(map(len, rows), default=0)
        for key, value in rows.items():
            lines.extend(wrap(value, width, f"    {key:<{longest}}  "))

    def assigned(values: dict[str, dict[str, Any]]) -> dict[str, str]:
        return {key: ", ".join(f"{s}={_value(v)}" for s, v in value.items()) or "no switch set"
                for key, value in values.items()}

    block("releases", assigned(model["releases"]))
    block("fixes", assigned(model["fixes"]))
    block("switches", {key: " | ".join(map(_value, values)) for key, values in model["switches"].items()})
    block("parameters", {key: f"{p['default']} ({p['low']} to {p['high']})" + (f": {p['what']}" if p["what"] else "")
                         for key, p in model["parameters"].items()})
    block("kernel functions", {file: ", ".join(f for f, where in model["functions"].items() if where == file)
                               for file in dict.fromkeys(model["functions"].values())})
    block("mutants (deliberate faults that show that a property can fail)", assigned(model["mutants"]))
    block("properties", {p["name"]: _property(p) for p in model["properties"]})
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _property(p: dict[str, Any]) -> str:
    label = ", ".join(x for x in (p["kind"], p["facts"], "the headline" if p["headline"] else "") if x)
    parts = [f"({label}) {p['statement']}"]
    if p["holds"]:
        parts.append(f"Holds in {', '.join(p['holds'])}.")
    if p["fails"]:
        parts.append(f"Fails in {', '.join(p['fails'])}.")
    return " ".join(parts)
