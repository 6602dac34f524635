# SPDX-License-Identifier: GPL-2.0-only
"""``schedproof replay``: runs stored counterexamples again, step by step, on the plain interpreter."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from schedproof.commands._common import enter_suite, output
from schedproof.console import complain, emit, one_line
from schedproof.errors import InputError, SchedproofError
from schedproof.results import OK, UNDECIDED, WRONG_INPUT, exit_code
from schedproof.trace import Trace

HELP = "re-validates stored counterexamples"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
    parser.add_argument("--format", metavar="F", help="show the counterexample in this format")
    parser.add_argument("-o", "--output", metavar="OUT", type=Path, help="write there instead; needs --format")
    parser.add_argument("--tree", metavar="DIR", help="the kernel tree of a counterexample that runs C")
    parser.add_argument("--rev", metavar="REV", help="the revision to read in the git repository --tree")
    output(parser)


def run(args: argparse.Namespace) -> int:
    from schedproof.commands.trace import chosen_format
    from schedproof.report import formats, render

    enter_suite(args)
    format = chosen_format(argparse.Namespace(json=False, format=args.format), formats()) if args.format else None
    if args.output and not format:
        raise InputError("-o needs --format: it says in which format to write")
    if args.output and len(args.files) > 1 and format != "html":
        raise InputError("-o takes one counterexample: replay the files one by one (only a page shows several)")
    rows, traces, codes = [], [], []
    for file in args.files:
        try:
            trace, row = again(file, args.tree, args.rev)
        except SchedproofError as error:
            # The other files are still worth replaying; this one has its line already.
            message = one_line(error)
            complain(message if message.startswith(str(file)) else f"{file}: {message}")
            codes.append(WRONG_INPUT)
            continue
        rows.append(row)
        codes.append(UNDECIDED if row["verdict"] == "unknown" else OK)
        traces.append(trace)
    if args.json:
        if WRONG_INPUT not in codes:
            emit(render(rows, "json"))
    elif format:
        if traces and WRONG_INPUT not in codes:
            emit(render(traces, format) if format == "html" else "\n".join(render(t, format) for t in traces),
                 args.output)
    elif rows and not args.quiet:
        emit("".join(map(line, rows)))
    return exit_code(codes)


def again(file: Path, tree: str | None = None, rev: str | None = None) -> tuple[Trace, dict[str, Any]]:
    """Load and replay one file. Raises InputError when it was edited or no longer shows what it says.

    The verdict is ``unknown`` where the run was taken again and only shows a part of what is claimed.
    """
    from schedproof.registry import find_property
    from schedproof.replay import replay
    from schedproof.trace import load

    trace = load(file)
    if trace.sources and tree is None:
        raise InputError(f"{file}: runs C that was read from a tree ({', '.join(trace.sources)}): "
                         "name that tree with --tree DIR")
    _, prop = find_property(f"{trace.model}:{trace.property}")
    instance = prop.model.variant(trace.variant, **trace.params)
    if trace.sources:
        from schedproof.kernel.prove import subject_of
        from schedproof.kernel.tree import Tree

        instance = subject_of(prop.model, Tree(str(tree), rev), trace.variant).instance(trace.params)
    if trace.statement != prop.statement:
        raise InputError(f"{file}: says something else about {trace.property} than the property does")
    verdict = replay(trace, instance, prop)
    if verdict.name not in (trace.verdict, "unknown"):
        raise InputError(f"{file}: is stored as {trace.verdict}, but its run shows {verdict.name}")
    return trace, {"file": str(file), "model": trace.model, "property": trace.property, "variant": trace.variant,
                   "verdict": verdict.name, "steps": len(trace.steps), "worst_case": verdict.worst_case,
                   "unit": verdict.unit or trace.unit, "reason": getattr(verdict, "reason", "")}


def line(row: dict[str, Any]) -> str:
    """What one file came to."""
    if row["verdict"] == "unknown":
        return f"{row['file']}: unknown: {row['reason']}\n"
    return (f"{row['file']}: {row['verdict']} again: {row['model']}:{row['property']} in {row['variant']}, "
            f"{row['steps']} steps\n")
