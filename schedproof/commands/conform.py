# SPDX-License-Identifier: GPL-2.0-only
"""``schedproof conform``: each modelled function against the C of a tree."""

from __future__ import annotations

import argparse
from pathlib import Path

from schedproof.commands._common import enter_suite, output
from schedproof.console import emit, progress_text
from schedproof.results import OK, VIOLATED

HELP = "each modelled function against the C: equal, executed, differs, absent, not executable"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", nargs="?", help="default: every model")
    parser.add_argument("--tree", metavar="DIR", required=True, help="the kernel tree or git repository")
    parser.add_argument("--rev", metavar="REV", help="the revision to read in the git repository --tree")
    parser.add_argument("--variant", metavar="V", help="the variant to begin with (default: the tree's release)")
    output(parser)


def run(args: argparse.Namespace) -> int:
    from schedproof import registry
    from schedproof.kernel.conform import best_of, conform
    from schedproof.kernel.tree import Tree
    from schedproof.report import render

    enter_suite(args)
    tree = Tree(Path(args.tree), args.rev)
    reports = []
    for name in registry.model_names() if args.model is None else [args.model]:
        for model in registry.model_classes(name):
            with progress_text(f"{name} against {tree.label}", args.quiet) as show:
                reports.append(conform(tree, model, name, args.variant, progress=show))
    functions = best_of(f for r in reports for f in r.functions)
    if args.json:
        emit(render({"functions": [f.to_json() for f in functions]}, "json"))
    else:
        emit("\n".join(render(r, "text") for r in reports))
    return VIOLATED if any(f.status == "differs" for f in functions) else OK
