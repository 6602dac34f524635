# SPDX-License-Identifier: GPL-2.0-only
"""``schedproof check``: reads the C that a patch changes, before and after, and says which verdicts change."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from schedproof.commands._common import Options, cache_for, check_settings, common, enter_suite, no_cache
from schedproof.console import emit, progress_text
from schedproof.errors import InputError
from schedproof.kernel.commits import commits
from schedproof.kernel.patch import Patch, parse_patches, read_patches
from schedproof.kernel.tree import Tree
from schedproof.results import exit_code

HELP = "which verdicts a patch changes"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("patches", metavar="PATCH", nargs="*",
                        help="a patch: mail, mailbox or diff; - for standard input; several are a series; or a commit "
                        "or a range A..B of the repository --tree")
    parser.add_argument("--tree", metavar="DIR", help="the kernel tree that the patch applies to")
    parser.add_argument("--rev", metavar="REV", help="the revision to read in the git repository --tree")
    parser.add_argument("--model", metavar="MODEL", help="only this model (default: all that the patch touches)")
    parser.add_argument("--format", metavar="F", default="text", help="text (the default), mail, terse or json")
    parser.add_argument("--terse", action="store_const", const="terse", dest="format", help="as checkpatch does: "
                        "file:line: LEVEL: text, one line a finding; the same as --format terse")
    parser.add_argument("--b4", action="store_true", help="check the one mail on standard input against the "
                        "repository of the current folder, in the form that b4 prep --check asks for")
    parser.add_argument("--b4-review", action="store_true", help="the same in the form that b4 review asks for")
    parser.add_argument("--mailed", action="store_true", help="the patches are mails of commits of the git repository "
                        "--tree: find out by their blobs which tree they stand on")
    parser.add_argument("-o", metavar="FILE", dest="out", type=Path, help="write there instead of standard output")
    no_cache(parser)
    common(parser)


def run(args: argparse.Namespace) -> int:
    from schedproof.report import formats, render

    if args.b4 or args.b4_review:
        from schedproof.commands import _b4

        if args.patches or args.rev:
            raise InputError("--b4 takes the mail from standard input: leave out files, commits and --rev")
        return _b4.run(args)
    if not args.patches:
        raise InputError("name a PATCH: a file, - for standard input, or a commit")
    if not args.tree:
        raise InputError("name the kernel tree that the patch applies to: --tree DIR")
    format = "json" if args.json else args.format
    if format not in formats():
        raise InputError(f"unknown format {format!r}; known: {', '.join(formats())}")
    reports = reports_of(args, *asked(args))
    told = [r for r in reports if r.models and not (args.quiet and r.code == 0)]
    if format == "json":
        emit(render({"patches": [r.to_json() for r in reports]}, "json"), args.out)
    elif told:
        emit(("" if format == "terse" else "\n").join(render(r, format) for r in told), args.out)
    return exit_code(r.code for r in reports)


def reports_of(args: argparse.Namespace, tree: Tree, patches: list[Patch]) -> list[Any]:
    """The reports on a series, one a patch."""
    from schedproof import registry
    from schedproof.kernel.check import check

    enter_suite(args)
    models: dict[str, Any] = {}
    for name in registry.model_names() if args.model is None else [args.model]:
        models[name] = [(model, [p for p in registry.properties(name) if p.model is model])
                        for model in registry.model_classes(name)]
    refuse_unknown(args, models)
    options = Options(args.engine, args.budget, args.jobs, None, cache_for(args))
    with progress_text(f"checking against {tree.label}", args.quiet) as show:
        return check(patches, tree, models, options, args.variant, dict(args.settings), progress=show)


def asked(args: argparse.Namespace) -> tuple[Tree, list[Patch]]:
    """The tree before, and the patches: from files and standard input, or commits of the repository ``--tree``."""
    path, patches = Path(args.tree), []
    if args.mailed:
        from schedproof.kernel.mails import standing, top_level

        if args.rev:
            raise InputError("--mailed finds the revision by itself: leave out --rev")
        patches = read_patches(args.patches)
        return standing(top_level(path), patches)[0], patches
    if len(args.patches) == 1 and args.patches[0] != "-" and not Path(args.patches[0]).exists() and _repository(path):
        if args.rev:
            raise InputError(f"{args.patches[0]}: a commit is checked on its own parent: leave out --rev")
        return commits(path, args.patches[0])
    tree = Tree(path, args.rev)
    for name in args.patches:
        if name == "-":
            patches += parse_patches(sys.stdin.buffer.read().decode("utf-8", "surrogateescape"), "standard input")
        else:
            patches += read_patches([name])
    return tree, patches


def _repository(path: Path) -> bool:
    return (path / ".git").exists() or ((path / "HEAD").is_file() and (path / "objects").is_dir())


def refuse_unknown(args: argparse.Namespace, models: dict[str, Any]) -> None:
    """Raise InputError for an engine or a parameter that no model that is asked for knows, before anything is done."""
    from schedproof import registry
    from schedproof.engines import engines

    if args.engine not in ("auto", *engines()):
        raise InputError(f"unknown engine '{args.engine}': known are auto, {', '.join(engines())}")
    every = {key: value for name in models for key, value in registry.parameters_of(name).items()}
    for setting in args.settings:
        known = [name for name in models if setting[0] in registry.parameters_of(name)]
        if not known:
            raise registry.unknown("parameter", setting[0], every)
        for name in known:
            check_settings(name, [setting], registry.parameters_of(name))
    if args.variant is not None:
        refusals = [why for name in models for model in registry.model_classes(name)
                    if (why := refusal(model, args.variant))]
        if len(refusals) == sum(len(registry.model_classes(name)) for name in models):
            raise InputError(next((why for why in refusals if "did you mean" in why), refusals[0]))


def refusal(model: Any, variant: str) -> str:
    """Why a model has no such variant; empty where it has. A variant is meant for those models that know it."""
    try:
        model.settings(variant)
    except InputError as error:
        return str(error)
    return ""
