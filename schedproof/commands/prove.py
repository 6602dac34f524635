# SPDX-License-Identifier: GPL-2.0-only
"""``schedproof prove``: runs properties and compares the verdicts with what is declared."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from schedproof.commands._common import (
    Options,
    cache_for,
    check_settings,
    common,
    decided,
    enter_suite,
    knows,
    no_cache,
)
from schedproof.commands._spread import Question, answers
from schedproof.console import complain, emit, progress
from schedproof.errors import InputError, SchedproofError
from schedproof.property import Property
from schedproof.results import OK, UNDECIDED, VIOLATED, Result, code_of, exit_code

HELP = "runs properties; with --tree on the C of that tree"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="MODEL[:PROPERTY]", nargs="?", help="default: every model")
    parser.add_argument("--tree", metavar="DIR", help="a kernel tree or git repository to read the functions from")
    parser.add_argument("--rev", metavar="REV", help="the revision to read in the git repository --tree")
    parser.add_argument("--bisect", action="store_true", help="exit codes for `git bisect run`: 0 good, 1 bad, 125 "
                        "undecided or nothing of the model could be read, 255 a wrong call; needs --tree")
    parser.add_argument("--format", metavar="F", choices=("table", "json", "ktap"), default="table",
                        help="table (the default), json or ktap, the kernel's test format")
    parser.add_argument("--certificates", metavar="DIR", type=Path, help="write a certificate of each proof there, for "
                        "`schedproof certify`; needs --engine induction")
    no_cache(parser)
    common(parser)


GOOD, BAD, SKIP, ABORT = 0, 1, 125, 255         # what `git bisect run` understands


def run(args: argparse.Namespace) -> int:
    if not args.bisect:
        return prove(args)
    try:
        if not args.tree:
            raise InputError("--bisect needs --tree DIR")
        code = prove(args)
    except SchedproofError as error:
        complain(error)
        return ABORT
    return {OK: GOOD, VIOLATED: BAD}.get(code, SKIP)


def prove(args: argparse.Namespace) -> int:
    from schedproof import registry
    from schedproof.report import render

    if args.rev and not args.tree:
        raise InputError("--rev needs --tree DIR: it names a revision of that repository")
    if args.certificates and (args.tree or args.engine != "induction"):
        raise InputError("--certificates needs --engine induction and no --tree: only such proofs leave an invariant")
    enter_suite(args)
    selected = registry.select(args.what)
    if args.what is not None and not selected:
        raise InputError(f"{args.what} has no property yet: `schedproof conform {args.what} --tree DIR` compares its "
                         "functions with a tree")
    for model in dict.fromkeys(model for model, _ in selected):
        check_settings(model, args.settings, registry.parameters_of(model))
    if args.tree:
        results, codes = on_tree(selected, args)
        if args.bisect and _rests_on_less(selected, results, args):
            codes = [UNDECIDED]            # the verdicts would be those of the model's own methods
    else:
        results = on_python(selected, args)
        codes = [code_of(r) for r in results]
    if args.json or args.format != "table":
        emit(render(results, "json" if args.json else args.format))
    else:
        shown = [r for r, code in zip(results, codes, strict=True) if code] if args.quiet else results
        if shown or not args.quiet:
            emit(render(shown, "table") + _what_next(shown, args.tree, args.rev) + _assumptions(results))
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
    settings = dict(args.settings)
    answer = certified if args.certificates else decided
    return answers([Question(model, prop.name, variant, settings) for model, prop, variant in pairs], answer, args)


def certified(model: str, prop: Property, variant: str, args: argparse.Namespace,
              settings: dict[str, int]) -> tuple[Result, Any]:
    """The answer to a question; a proof leaves its certificate in the folder ``--certificates``."""
    from schedproof.engines.certificate import Certificate, written
    from schedproof.registry import instance_of
    from schedproof.verdict import Proved

    row, verdict = decided(model, prop, variant, args, settings)
    if isinstance(verdict, Proved) and isinstance(verdict.certificate, Certificate):
        instance = instance_of(prop, variant, settings)
        names = {"model": model, "property": prop.name, "variant": variant, "parameters": dict(instance.params)}
        text = written(instance, prop, verdict.certificate, names)
        told = "".join(f"-{n}={v}" for n, v in sorted(settings.items()))
        file = args.certificates / f"{model}-{prop.name}-{variant}{told}.smt2"
        try:
            args.certificates.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{file}: cannot write the certificate: {error.strerror}") from None
    return row, verdict


def on_tree(selected: list[tuple[str, Property]], args: argparse.Namespace) -> tuple[list[Result], list[int]]:
    """The same questions asked of a tree's C. Nothing is expected of a tree, so a refutation is a violation.

    A property that no release keeps is shown but does not count: it would condemn every tree.
    """
    from schedproof.kernel.prove import prove_tree

    results: list[Result] = []
    cache = cache_for(args)
    for model in dict.fromkeys(model for model, _ in selected):
        props = [prop for name, prop in selected if name == model]
        with progress(f"{model} in {args.tree}", args.quiet) as show:
            options = Options(args.engine, args.budget, args.jobs, show, cache)
            results += prove_tree(model, props, Path(args.tree), args.rev, args.variant, dict(args.settings), options)
    uncounted = {(model, prop.name) for model, prop in selected if not prop.holds}
    codes = [0 if (r["model"], r["property"]) in uncounted else code_of({**r, "expected": None}) for r in results]
    return results, codes


def _rests_on_less(selected: list[tuple[str, Property]], results: list[Result], args: argparse.Namespace) -> bool:
    """Whether verdicts on a revision say too little for a bisection: nothing, or less than an end of it, is read."""
    from schedproof.kernel.bisection import left_out

    if not any(r["c_functions"] for r in results):
        complain("skipped: no function of the model can be read here")
        return True
    out = dict.fromkeys(name for model in dict.fromkeys(prop.model for _, prop in selected)
                        for name in left_out(Path(args.tree), args.rev, model, args.variant))
    if out:
        complain(f"skipped: {', '.join(out)} cannot be read here, but can at an end of the bisection")
    return bool(out)


def _assumptions(results: list[Result]) -> str:
    """What verdicts on a tree rest on, once a model."""
    from schedproof.report._layout import wrap

    lines: list[str] = []
    for model in dict.fromkeys(r["model"] for r in results if r.get("assumptions")):
        one = next(r for r in results if r["model"] == model)
        lines += ["", f"what the verdicts on {model} rest on"]
        lines += wrap("read from C: " + (", ".join(one["c_functions"]) or "nothing"), 100, "  ", "    ")
        for line in one["assumptions"]:
            lines += wrap(line, 100, "  ", "    ")
    return "".join(f"{line}\n" for line in lines)


def _what_next(results: list[Result], tree: str | None, rev: str | None) -> str:
    """Where to look for more about what is not as expected."""
    where = (f" --tree {shlex.quote(tree)}" if tree else "") + (f" --rev {shlex.quote(rev)}" if rev else "")
    lines = [f"schedproof trace {r['model']}:{r['property']}{where} --variant {r['variant']}"
             for r in results if r["verdict"] == "refuted" and code_of(r)]
    return "\nTo see how it fails:\n" + "".join(f"  {line}\n" for line in lines) if lines else ""
