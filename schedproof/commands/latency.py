# SPDX-License-Identifier: GPL-2.0-only
"""``schedproof latency``: how long the wait can be, exactly, and the run in which it is that long."""

from __future__ import annotations

import argparse
from dataclasses import replace

from schedproof.commands._common import check_settings, common, decided, default_variant, enter_suite, sweep
from schedproof.commands._spread import Question, answers
from schedproof.console import emit
from schedproof.errors import InputError
from schedproof.property import Property, Within, WorstCase
from schedproof.results import OK, UNDECIDED, Result, exit_code
from schedproof.verdict import Verdict

HELP = "the exact worst-case wait and its trace"

FAIRNESS = {"True": ", even when everyone is treated fairly",
            "False": ", though the wait ends where everyone is treated fairly"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--sweep", metavar="NAME=1..8", type=sweep, help="a table over the values of a parameter")
    common(parser)


def run(args: argparse.Namespace) -> int:
    from schedproof import registry

    enter_suite(args)
    prop = registry.headline(args.model)
    if not isinstance(prop.kind, Within | WorstCase):
        raise InputError(f"the headline of {args.model}, {prop.name}, is not about how long a wait is")
    variant = args.variant or default_variant(prop)
    parameters = prop.model.parameters()
    check_settings(args.model, args.settings, parameters)
    if args.sweep is None:
        return one(prop, variant, args)
    name, values = args.sweep
    if name in dict(args.settings):
        raise InputError(f"{name} is both set and swept: leave out --set {name}=...")
    for value in (values[0], values[-1], *values):
        check_settings(args.model, [(name, value)], parameters)
    return table(prop, variant, name, values, args)


def asked(model: str, prop: Property, variant: str, args: argparse.Namespace,
          settings: dict[str, int]) -> tuple[Result, Verdict]:
    """The same for one row of a table."""
    return ask(prop, variant, args, settings)


def ask(prop: Property, variant: str, args: argparse.Namespace, settings: dict[str, int]) -> tuple[Result, Verdict]:
    """The worst case of one instance. Asked again without the bound where an engine stopped at the bound."""
    result, verdict = decided(args.model, prop, variant, args, settings)
    if verdict.worst_case is None and verdict.name in ("proved", "refuted") and isinstance(prop.kind, Within):
        free = replace(prop, kind=WorstCase(prop.kind.waiting, prop.kind.cost))
        result, verdict = decided(args.model, free, variant, args, settings)
    return result, verdict


def one(prop: Property, variant: str, args: argparse.Namespace) -> int:
    """The worst case with its trace."""
    from schedproof.report import render
    from schedproof.report.table import worst_case

    result, verdict = ask(prop, variant, args, dict(args.settings))
    if args.json:
        emit(render(result, "json"))
    elif not known(result):
        emit(f"{args.model} in {variant}: not decided ({result['verdict']}: {result['reason']})\n")
    elif args.quiet:
        emit(worst_case(result) + "\n")
    else:
        more = FAIRNESS.get(str(result["starved"]), "") if result["worst_case"] == "unbounded" else ""
        trace = getattr(verdict, "trace", None)
        emit(f"{args.model} in {variant}: the worst wait is {worst_case(result)}{more}\n"
             + (f"\n{render(trace, 'text')}" if trace is not None else ""))
    return code(result)


def table(prop: Property, variant: str, name: str, values: list[int], args: argparse.Namespace) -> int:
    """The worst case for each value of a parameter."""
    from schedproof.report import render
    from schedproof.report.table import sweep as as_table

    questions = [Question(args.model, prop.name, variant, {**dict(args.settings), name: v}) for v in values]
    results = answers(questions, asked, args)
    if args.json:
        emit(render(results, "json"))
    else:
        emit(("" if args.quiet else f"{args.model} in {variant}, {prop.name}\n") + as_table(name, results))
    return exit_code(map(code, results))


def known(result: Result) -> bool:
    return result["verdict"] in ("proved", "refuted") and result["worst_case"] is not None


def code(result: Result) -> int:
    """Nothing is expected of a latency: any exact answer is a good one, ``unbounded`` too."""
    return OK if known(result) else UNDECIDED
