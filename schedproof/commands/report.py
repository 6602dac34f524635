# SPDX-License-Identifier: GPL-2.0-only
"""``schedproof report``: the suite as static pages, each verdict with the run that shows it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from schedproof import __version__
from schedproof.commands._common import common, decided, enter_suite
from schedproof.console import emit
from schedproof.errors import InputError
from schedproof.property import Property
from schedproof.report import _site
from schedproof.results import code_of, exit_code

HELP = "the suite as static pages"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="MODEL[:PROPERTY]", nargs="?", help="default: every model")
    parser.add_argument("-o", metavar="DIR", dest="out", type=Path, required=True, help="the folder to write into")
    common(parser)


def run(args: argparse.Namespace) -> int:
    from schedproof import registry
    from schedproof.commands.list import describe
    from schedproof.report import render
    from schedproof.report._pages import page

    enter_suite(args)
    if args.variant or args.settings:
        raise InputError("a report is about what is declared: no --variant or --set here")
    if args.out.exists() and not args.out.is_dir():
        raise InputError(f"{args.out}: is a file; name a folder")
    selected = registry.select(args.what)
    names = registry.model_names() if args.what is None else list(dict.fromkeys(name for name, _ in selected))
    sections, codes = [], []
    for name in names:
        cells: list[tuple[Property, _site.Cell]] = []
        for prop in (p for model, p in selected if model == name):
            for variant in (*prop.holds, *prop.fails):
                result, verdict = decided(name, prop, variant, args)
                codes.append(code_of(result))
                trace, where = getattr(verdict, "trace", None), ""
                if trace is not None:
                    where = f"{name}/{prop.name}-{variant}.html"
                    emit(render(trace, "html"), args.out / where)
                cells.append((prop, _site.Cell(result, where)))
        sections.append(_site.Section(describe(name), grids(cells, False), grids(cells, True), left_out(name)))
        emit(page("model.html", s=sections[-1]), args.out / f"{name}.html")
    emit(page("index.html", sections=sections, version=__version__), args.out / "index.html")
    if not args.quiet:
        emit(f"{args.out / 'index.html'}\n")
    return exit_code(codes)


def grids(cells: list[tuple[Property, _site.Cell]], faulty: bool) -> tuple[_site.Grid, ...]:
    """A table for each class, of deliberate faults or of all else; named where there are several classes."""
    from schedproof.registry import is_mutant

    by_class: dict[type[Any], list[_site.Cell]] = {}
    for prop, cell in cells:
        if is_mutant(prop, cell.result["variant"]) == faulty:
            by_class.setdefault(prop.model, []).append(cell)
    several = len({prop.model for prop, _ in cells}) > 1
    return tuple(_site.grid(_first_sentence(model.__doc__ or model.__name__) if several else "", found)
                 for model, found in by_class.items())


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).split(". ")[0].rstrip(".")


def left_out(name: str) -> dict[str, str]:
    """What a model takes the word of its vocabulary for, with the reasons."""
    from schedproof import registry

    found: dict[str, Any] = {}
    for model in registry.model_classes(name):
        words = model.vocabulary
        found |= {f"{key.split('@')[0]}()": why for key, why in {**words.callees, **words.noop}.items()}
        found |= {f"{struct or 'global'}.{field}".removeprefix("global."): why
                  for (struct, field), why in words.ignore.items()}
        found |= {key: f"{'on' if value else 'off'}: {why}" for key, (value, why) in words.static_keys.items()}
        found |= dict(model.scaled)
    return found
