# SPDX-License-Identifier: GPL-2.0-only
"""``schedproof trace``: the counterexample to a property, in a reader's format."""

from __future__ import annotations

import argparse
from pathlib import Path

from schedproof.commands._common import Options, check_settings, common, decide, default_variant, enter_suite
from schedproof.console import complain, emit, progress
from schedproof.errors import InputError
from schedproof.property import Property
from schedproof.results import OK, UNDECIDED
from schedproof.verdict import Verdict

HELP = "the counterexample to a property, in a reader's format"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="MODEL:PROPERTY")
    parser.add_argument("--format", metavar="F", help="text, mail, json, ... (default: text)")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write there instead")
    parser.add_argument("--tree", metavar="DIR", help="run the C of this kernel tree")
    parser.add_argument("--rev", metavar="REV", help="the revision to read in the git repository --tree")
    common(parser)


def run(args: argparse.Namespace) -> int:
    from schedproof import registry
    from schedproof.report import formats, render

    enter_suite(args)
    model, prop = registry.find_property(args.what)
    format = chosen_format(args, formats())
    check_settings(model, args.settings, prop.model.parameters())
    if args.rev and not args.tree:
        raise InputError("--rev needs --tree DIR: it names a revision of that repository")
    if args.tree:
        variant, verdict = on_tree(prop, args)
    else:
        variant = args.variant or default_variant(prop)
        _, verdict = decide(prop, variant, args)
    if verdict.name not in ("proved", "refuted"):
        complain(f"{args.what} in {variant}: {verdict.name}: {getattr(verdict, 'reason', '')}")
        return UNDECIDED
    trace = getattr(verdict, "trace", None)
    if trace is None:
        if verdict.name == "refuted":
            raise InputError(f"{args.what} is refuted in {variant}, but the engine {verdict.engine} gives no run: "
                             "choose another with --engine")
        raise InputError(f"{args.what} is proved in {variant}: there is no run to show"
                         + (f"; it fails in {', '.join(prop.fails)}" if prop.fails else ""))
    text = render(trace, format)
    if verdict.name == "proved" and format == "text":
        shown = "This run is the worst case" if verdict.worst_case is not None else "This run is a witness"
        text = f"{args.what} holds in {variant}. {shown}.\n\n{text}"
    emit(text, args.output)
    return OK


def on_tree(prop: Property, args: argparse.Namespace) -> tuple[str, Verdict]:
    """The variant that fills in, and the verdict on a tree's C."""
    from schedproof.kernel.prove import decide_on, subject_of
    from schedproof.kernel.tree import Tree

    with progress(f"{prop.name} in {args.tree}", args.quiet) as show:
        subject = subject_of(prop.model, Tree(Path(args.tree), args.rev), args.variant)
        options = Options(args.engine, args.budget, args.jobs, show)
        _, verdict = decide_on(subject, prop, dict(args.settings), options)
    return subject.variant, verdict


def chosen_format(args: argparse.Namespace, known: dict[str, str]) -> str:
    """The format that ``--format`` or ``--json`` names, checked before anything is computed."""
    if args.json and args.format not in (None, "json"):
        raise InputError("--json and --format say different things: give one")
    format: str = "json" if args.json else args.format or "text"
    if format not in known:
        from schedproof.registry import unknown

        raise unknown("format", format, known)
    return format
