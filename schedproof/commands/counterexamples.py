# SPDX-License-Identifier: GPL-2.0-only
"""``schedproof counterexamples``: writes the stored counterexamples of the suite anew.

For every property and every kernel or patch version in which it fails: ``MODEL/PROPERTY-VARIANT.json``, which the
tests replay, and the same as a mail; for the whole suite ``README.md``, which lists them. Mutants are left out, they
are nobody's kernel.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from schedproof.commands._common import common, decide, enter_suite
from schedproof.console import complain, emit
from schedproof.errors import InputError
from schedproof.property import Eventually, Property, Within, WorstCase
from schedproof.results import OK, UNDECIDED, VIOLATED, exit_code

HELP = "writes the suite's stored counterexamples anew, or compares them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="MODEL[:PROPERTY]", nargs="?", help="default: every model")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 where a file would change")
    parser.add_argument("--into", metavar="DIR", type=Path, help="default: the folder of the suite")
    common(parser)


def run(args: argparse.Namespace) -> int:
    from schedproof import registry

    enter_suite(args)
    if args.variant or args.settings:
        raise InputError("stored counterexamples are those of the declarations: no --variant or --set here")
    folder = args.into or registry.suite_root() / "counterexamples"
    said: list[str] = []
    codes, expected, listed = [], set(), []
    for model, prop in registry.select(args.what):
        for variant in prop.fails:
            if registry.is_mutant(prop, variant):
                continue
            files, code = texts(prop, variant, args)
            codes.append(code)
            if files:
                listed.append(row(model, prop, variant, json.loads(files["json"])))
            for ending, text in files.items():
                path = folder / model / f"{prop.name}-{variant}.{ending}"
                expected.add(path)
                codes.append(put(path, text, args.check, said))
    if args.what is None:
        codes.append(put(folder / "README.md", HEAD + "".join(listed), args.check, said))
        for stale in stale_files(folder, expected):
            said.append(f"{stale}: belongs to no declared failure any more, delete it")
            codes.append(VIOLATED)
    if said and not args.quiet:
        emit("".join(f"{line}\n" for line in said))
    return exit_code(codes)


HEAD = """\
# Stored counterexamples

Written by `make counterexamples`; the tests replay each. To see one in a browser:

    schedproof replay FILE --format html -o page.html

| property | fails in | the wait | steps | files |
|---|---|---|---|---|
"""


def row(model: str, prop: Property, variant: str, trace: dict[str, Any]) -> str:
    """The line of one counterexample in the list."""
    steps = len(trace["stem"]) + len(trace["cycle"])
    waits = isinstance(prop.kind, Within | WorstCase | Eventually)
    wait = "without end" if trace["cycle"] and waits else \
        f"{trace['total']} {trace['unit']}" if trace["total"] is not None else ""
    name = f"{model}/{prop.name}-{variant}"
    return f"| {model}:{prop.name} | {variant} | {wait} | {steps} | [run]({name}.json), [mail]({name}.txt) |\n"


def texts(prop: Property, variant: str, args: argparse.Namespace) -> tuple[dict[str, str], int]:
    """What belongs into the files of one counterexample, by ending; nothing where the declaration is wrong."""
    from schedproof.registry import name_of
    from schedproof.report import render

    _, verdict = decide(prop, variant, args)
    trace = getattr(verdict, "trace", None)
    if verdict.name == "refuted" and trace is not None:
        return {"json": render(trace, "json"), "txt": render(trace, "mail")}, OK
    complain(f"{name_of(prop.model)}:{prop.name} is declared to fail in {variant}, but is {verdict.name}")
    return {}, VIOLATED if verdict.name == "proved" else UNDECIDED


def put(path: Path, text: str, check: bool, said: list[str]) -> int:
    """Write one file, or compare it."""
    try:
        old: str | None = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        old = None
    if old == text:
        return OK
    said.append(f"{path}: " + ("would be new" if old is None else "would change") * check
                + ("new" if old is None else "changed") * (not check))
    if check:
        return VIOLATED
    emit(text, path)
    return OK


def stale_files(folder: Path, expected: set[Path]) -> list[Path]:
    """Files of a form that this command writes, which it would not write any more."""
    return [p for p in sorted(folder.glob("*/*")) if p.suffix in (".json", ".txt") and p not in expected]
