# SPDX-License-Identifier: GPL-2.0-only
"""``schedproof prove``: runs properties and compares the verdicts with what is declared."""

from __future__ import annotations

import argparse

from schedproof.commands._common import Options, check_settings, common, decided, enter_suite, knows
from schedproof.console import emit, progress
from schedproof.errors import InputError
from schedproof.property import Property
from schedproof.results import Result, code_of, exit_code

HELP = "runs properties; with --tree on the C of that tree"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="MODEL[:PROPERTY]", nargs="?", help="default: every model")
    parser.add_argument("--tree", metavar="DIR", help="a kernel tree or git repository to read the functions from")
    parser.add_argument("--rev", metavar="REV", help="the revision to read in the git repository --tree")
    common(parser)


def run(args: argparse.Namespace) -> int:
    from schedproof import registry
    from schedproof.report import render

    if args.rev and not args.tree:
        raise InputError("--rev needs --tree DIR: it names a revision of that repository")
    enter_suite(args)
    selected = registry.select(args.what)
    for model in dict.fromkeys(model for model, _ in selected):
        check_settings(model, args.settings, registry.parameters_of(model))
    if args.tree:
        results, codes = on_tree(selected, args)
    else:
        results = on_python(selected, args)
        codes = [code_of(r) for r in results]
    if args.json:
        emit(render(results, "json"))
    else:
        shown = [r for r, code in zip(results, codes, strict=True) if code] if args.quiet else results
        if shown or not args.quiet:
            emit(render(shown, "table") + _what_next(shown, bool(args.tree)))
    return exit_code(codes)


def on_python(selected: list[tuple[str, Property]], args: argparse.Namespace) -> list[Result]:
    """Every declared pair of property and variant, or all properties in the one variant that was named."""
    from schedproof import registry

    pairs = []
    for model, prop in selected:
        if args.variant is None:
            pairs += [(model, prop, variant) for variant in (*prop.holds, *prop.fails)]
        elif len(registry.model_classes(model)) == 1 or knows(prop, args.variant):
            pairs.append((model, prop, args.variant))
    if not pairs and selected and args.variant is not None:
        _, first = selected[0]
        first.model.variant(args.variant, **first.instance)         # raises the error that says what is known
    return [decided(model, prop, variant, args)[0] for model, prop, variant in pairs]


def on_tree(selected: list[tuple[str, Property]], args: argparse.Namespace) -> tuple[list[Result], list[int]]:
    """The same questions asked of a tree's C. Nothing is expected of a tree, so a refutation is a violation.

    A property that no release keeps is shown but does not count: it would condemn every tree.
    """
    from pathlib import Path

    from schedproof.kernel.prove import prove_tree

    results: list[Result] = []
    for model in dict.fromkeys(model for model, _ in selected):
        props = [prop for name, prop in selected if name == model]
        with progress(f"{model} in {args.tree}", args.quiet) as show:
            options = Options(args.engine, args.budget, args.jobs, show)
            results += prove_tree(model, props, Path(args.tree), args.rev, args.variant, dict(args.settings), options)
    uncounted = {(model, prop.name) for model, prop in selected if not prop.holds}
    codes = [0 if (r["model"], r["property"]) in uncounted else code_of({**r, "expected": None}) for r in results]
    return results, codes


def _what_next(results: list[Result], tree: bool) -> str:
    """Where to look for more about what is not as expected."""
    lines = [f"schedproof trace {r['model']}:{r['property']} --variant {r['variant']}"
             for r in results if r["verdict"] == "refuted" and code_of(r) and not tree]
    return "\nTo see how it fails:\n" + "".join(f"  {line}\n" for line in lines) if lines else ""
