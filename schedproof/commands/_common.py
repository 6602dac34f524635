# SPDX-License-Identifier: GPL-2.0-only
"""What commands share: the common options, and deciding one property with them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedproof.console import Progress, progress
from schedproof.errors import InputError
from schedproof.property import Property
from schedproof.registry import expected, instance_of, name_of, unknown, use_suite
from schedproof.results import Result, result_of
from schedproof.verdict import Verdict


@dataclass(frozen=True)
class Options:
    """How to decide: what ``schedproof.engines.decide`` takes besides the question."""

    engine: str = "auto"
    budget: float | None = None
    jobs: int = 1
    progress: Progress | None = None
    cache: Any = None                   # a schedproof.kernel.cache.Cache: for verdicts on C


def common(parser: argparse.ArgumentParser) -> None:
    """The options that every command that decides something has."""
    parser.add_argument("--variant", metavar="V", help="a release with fixes and switches, such as v6.1+drop_guard")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], dest="settings", type=setting,
                        help="a parameter of the model; repeatable")
    parser.add_argument("--engine", metavar="E", default="auto", help="the engine that decides (default: the best)")
    parser.add_argument("--budget", metavar="SECONDS", type=seconds,
                        help="stop after so long; what is not decided by then is unknown")
    parser.add_argument("--jobs", metavar="N", type=count, default=1,
                        help="processes to spread several questions over (default: 1)")
    output(parser)


def no_cache(parser: argparse.ArgumentParser) -> None:
    """The option of the commands that keep verdicts on C."""
    parser.add_argument("--no-cache", action="store_true", help="decide anew what was decided before on the same C, "
                        "and keep nothing")


def cache_for(args: argparse.Namespace) -> Any:
    """The cache that a call asks for, or None."""
    from schedproof.kernel.cache import default_cache

    return None if args.no_cache else default_cache()


def output(parser: argparse.ArgumentParser) -> None:
    """The options that every command has."""
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--quiet", action="store_true", help="only what is not as expected")
    parser.add_argument("--suite", metavar="DIR", type=Path,
                        help="take models and properties from another folder; their Python is run")


def enter_suite(args: argparse.Namespace) -> None:
    """Obey ``--suite``, before any model is looked up."""
    from schedproof import registry

    tree = getattr(args, "tree", None)
    if args.suite is not None:
        use_suite(args.suite, Path(tree) if tree else None)
    elif tree:
        registry.refuse_inside(registry.suite_root(), Path(tree))


# ------------------------------------------------------------------------------------------- kinds of argument
def _argument(make: Callable[[str], Any], what: str) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        try:
            return make(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}") from None

    return convert


def _setting(text: str) -> tuple[str, int]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ValueError
    return name, int(value)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e9:
        raise ValueError
    return value


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 1024:
        raise ValueError
    return value


def _sweep(text: str) -> tuple[str, list[int]]:
    name, equals, values = text.partition("=")
    low, dots, high = values.partition("..")
    if not name or not equals:
        raise ValueError
    if not dots:
        return name, [int(v) for v in values.split(",")]
    if not int(low) <= int(high) <= int(low) + 100_000:
        raise ValueError
    return name, list(range(int(low), int(high) + 1))


setting = _argument(_setting, "NAME=NUMBER")
seconds = _argument(_seconds, "a number of seconds above 0")
count = _argument(_count, "a number from 1 to 1024")
sweep = _argument(_sweep, "NAME=LOW..HIGH or NAME=VALUE,VALUE,...")


# ---------------------------------------------------------------------------------------------------- deciding
def decide(prop: Property, variant: str, args: argparse.Namespace,
           settings: dict[str, int] | None = None) -> tuple[Any, Verdict]:
    """The instance and its verdict, with the command line's options."""
    from schedproof import engines

    instance = instance_of(prop, variant, dict(args.settings) if settings is None else settings)
    with progress(f"{name_of(prop.model)}:{prop.name} in {variant}", args.quiet) as show:
        verdict = engines.decide(instance, prop, engine=args.engine, budget=args.budget, jobs=args.jobs,
                                 progress=show)
    return instance, verdict


def decided(model: str, prop: Property, variant: str, args: argparse.Namespace,
            settings: dict[str, int] | None = None) -> tuple[Result, Verdict]:
    """The same as a result, with what the declaration expects."""
    instance, verdict = decide(prop, variant, args, settings)
    return result_of(model, prop, instance, verdict, expected(prop, variant)), verdict


def default_variant(prop: Property) -> str:
    """The variant to show when none is named: the first in which the property fails, else the first there is."""
    variants = (*prop.fails, *prop.holds, *prop.model.releases)
    if not variants:
        raise InputError(f"{prop.name} is declared for no variant: name one with --variant")
    return variants[0]


def knows(prop: Property, variant: str) -> bool:
    """Whether a property's model has such a variant; of several classes in one file, not all need to."""
    try:
        prop.model.variant(variant, **prop.instance)
    except InputError:
        return False
    return True


def check_settings(model: str, settings: list[tuple[str, int]], parameters: dict[str, Any]) -> None:
    """Refuse a parameter that is unknown or out of range, before anything is decided."""
    for name, value in settings:
        if name not in parameters:
            raise unknown(f"parameter of {model}", name, parameters)
        low, high = parameters[name].low, parameters[name].high
        if not low <= value <= high:
            raise InputError(f"{name}={value} is out of range: {model} takes {name} from {low} to {high}")
