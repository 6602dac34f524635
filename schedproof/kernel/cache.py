# SPDX-License-Identifier: GPL-2.0-only
"""Verdicts on C that were decided before, kept by the content of everything that they hang on.

A file is named by a hash over the checker's own text, the models and properties, the variant and its parameters, and
the programs as they were read (not their line numbers). What is damaged, or whose run the plain interpreter cannot
follow any more, is decided anew without a word. ``Unknown`` is never kept.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from types import FunctionType
from typing import Any

import z3

import schedproof
from schedproof import __version__, registry
from schedproof.errors import SchedproofError
from schedproof.files import cache_folder, write_atomically
from schedproof.lang.rewrite import without_places
from schedproof.model.domains import Range
from schedproof.model.instance import Instance
from schedproof.property import (
    Agrees,
    AlwaysPossible,
    Eventually,
    Expectation,
    Invariant,
    Property,
    Reachable,
    Within,
    WorstCase,
)
from schedproof.replay import replay
from schedproof.trace import LARGEST_FILE, Step, Trace, from_json
from schedproof.verdict import Counts, Proved, Refuted, Vacuous, Verdict

FORMAT = "schedproof-verdict/1"
KINDS: dict[str, type[Verdict]] = {"proved": Proved, "refuted": Refuted, "vacuous": Vacuous}


class Cache:
    """The verdicts under one folder. Nothing that goes wrong with a file is ever told: it is decided instead."""

    def __init__(self, folder: Path):
        self.folder = folder

    def decide(self, instance: Instance, prop: Property, engine: str, decide: Callable[[], Verdict]) -> Verdict:
        """The verdict that is kept, with the time that it took to look it up; else what ``decide`` gives, kept."""
        begin = time.monotonic()
        key = key_of(instance, prop, engine)
        if key is None:
            return decide()
        path = self.folder / f"{key}.json"
        found = _load(path, key, instance, prop)
        if found is not None:
            return replace(found, counts=replace(found.counts, seconds=time.monotonic() - begin, compile_seconds=0.0))
        verdict = decide()
        if _can_be_kept(verdict, prop):
            _store(path, key, verdict)
        return verdict


def default_cache() -> Cache | None:
    """The cache in the one cache folder; None where there is no such folder to be told."""
    base = os.environ.get("XDG_CACHE_HOME")
    if base and not os.path.isabs(base):           # to be ignored, says the specification of that variable
        return None
    try:
        return Cache(cache_folder() / "verdicts")
    except (RuntimeError, OSError):                # nobody's home
        return None


# --------------------------------------------------------------------------------------------------------- keys
def key_of(instance: Instance, prop: Property, engine: str) -> str | None:
    """The name of a question: a hash over all that its answer hangs on; None where that cannot be read."""
    try:
        texts = {*_package(), *_suite(), *_files_of(prop)}
        told = {
            "format": FORMAT, "version": __version__, "z3": z3.get_full_version(),
            "texts": sorted(_hash_of_file(p) for p in texts),
            "model": f"{prop.model.__module__}.{prop.model.__qualname__}", "property": prop.name,
            "engine": engine, "variant": instance.name, "parameters": dict(sorted(instance.params.items())),
            "variables": {n: _domain(v.domain) for n, v in instance.variables.items()},
            "programs": sorted((n, repr(without_places(p))) for n, p in instance.overrides.items())}
    except (OSError, TypeError):
        return None
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode("utf-8", "surrogateescape")).hexdigest()


def _domain(domain: Any) -> Any:
    """What tells a domain from others; a patch may add variables that no model's text has."""
    kind = type(domain).__name__
    if isinstance(domain, Range):
        return [kind, domain.low, domain.high]
    codes = domain.codes()
    return [kind, None if codes is None else [int(c) for c in codes]]


@lru_cache(maxsize=1)
def _package() -> tuple[str, ...]:
    return tuple(sorted(str(p) for p in Path(schedproof.__file__).parent.rglob("*.py")))


def _suite() -> list[str]:
    return [str(p) for folder in ("models", "properties") for p in (registry.suite_root() / folder).glob("*.py")]


def _files_of(prop: Property) -> Iterable[str]:
    """The files of the model, its bases, and the formulas of a property."""
    for base in prop.model.__mro__[:-1]:
        yield inspect.getfile(base)
    for value in vars(prop.kind).values():
        if isinstance(value, FunctionType):
            yield value.__code__.co_filename


def _hash_of_file(path: str) -> str:
    status = os.stat(path)
    return _hash(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1024)
def _hash(path: str, changed: int, size: int) -> str:
    """The hash of a file's name and text; read once as long as it does not change."""
    return hashlib.sha256(Path(path).name.encode() + b"\0" + Path(path).read_bytes()).hexdigest()


# -------------------------------------------------------------------------------------------------------- files
def _can_be_kept(verdict: Verdict, prop: Property) -> bool:
    """Whether it is decided, and a run that it shows can be shown to be one when it is read again."""
    if type(verdict) not in KINDS.values() or getattr(verdict, "certificate", None) is not None:
        return False
    if isinstance(prop.kind, Agrees | Expectation):            # their answers say more than a file holds
        return False
    trace = getattr(verdict, "trace", None)
    if trace is None:
        return not isinstance(verdict, Refuted)
    return isinstance(prop.kind, Invariant | Reachable | Within | WorstCase | Eventually | AlwaysPossible)


def _plain(verdict: Verdict) -> dict[str, Any]:
    trace: Trace | None = getattr(verdict, "trace", None)
    return {"verdict": verdict.name, "engine": verdict.engine, "instance": verdict.instance,
            "counts": asdict(verdict.counts), "worst_case": verdict.worst_case, "unit": verdict.unit,
            "starved": getattr(verdict, "starved", None), "reason": getattr(verdict, "reason", ""),
            "trace": None if trace is None else trace.to_json()}


def _digest(key: str, plain: Mapping[str, Any]) -> str:
    return hashlib.sha256((key + json.dumps(plain, sort_keys=True)).encode("utf-8", "surrogateescape")).hexdigest()


def _store(path: Path, key: str, verdict: Verdict) -> None:
    try:
        plain = json.loads(json.dumps(_plain(verdict)))
        text = json.dumps({"format": FORMAT, "key": key, "digest": _digest(key, plain), **plain})
        write_atomically(path, text + "\n")
    except (SchedproofError, TypeError, ValueError, RecursionError):
        return                                     # a folder that cannot be written: the next time it is decided again


def _load(path: Path, key: str, instance: Instance, prop: Property) -> Verdict | None:
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_FILE:
            return None
        data = json.loads(path.read_text(encoding="utf-8"))
        plain = {k: v for k, v in data.items() if k not in ("format", "key", "digest")}
        if (data["format"], data["key"], data["digest"]) != (FORMAT, key, _digest(key, plain)):
            return None
        found = _verdict(plain, instance)
    except (OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError, SchedproofError):
        return None
    return found if _still_true(found, instance, prop) else None


def _verdict(plain: Mapping[str, Any], instance: Instance) -> Verdict:
    """The verdict that a file holds. Raises one of many errors for one of wrong shape."""
    counts, worst, starved = plain["counts"], plain["worst_case"], plain["starved"]
    if not all(type(counts[n]) is int for n in ("states", "transitions", "depth")):
        raise TypeError("counts")
    if plain["instance"] != instance.title:
        raise ValueError("instance")
    if not (worst is None or type(worst) is int or worst == "unbounded") or starved not in (None, True, False):
        raise TypeError("worst case")
    if not all(isinstance(plain[n], str) for n in ("engine", "unit", "reason")):
        raise TypeError("text")
    common: dict[str, Any] = {"engine": plain["engine"], "instance": instance.title, "worst_case": worst,
                              "unit": plain["unit"], "counts": Counts(**counts)}
    kind = KINDS[plain["verdict"]]
    if kind is Vacuous:
        return Vacuous(**common, reason=plain["reason"])
    trace = None if plain["trace"] is None else _placed(from_json(plain["trace"], "verdict"), instance)
    return Proved(**common, trace=trace) if kind is Proved else Refuted(**common, trace=trace, starved=starved)


def _placed(trace: Trace, instance: Instance) -> Trace:
    """The trace with the places that the functions have now: their lines may have moved since."""
    sources = instance.sources

    def step(one: Step) -> Step:
        return replace(one, functions=tuple(replace(c, place=sources.get(c.name, "")) for c in one.functions))

    return replace(trace, sources=sources, stem=tuple(map(step, trace.stem)), cycle=tuple(map(step, trace.cycle)))


def _still_true(verdict: Verdict, instance: Instance, prop: Property) -> bool:
    """Whether the run that a verdict shows is one, and shows it, on the plain interpreter."""
    trace: Trace | None = getattr(verdict, "trace", None)
    if trace is None:
        return not isinstance(verdict, Refuted)
    try:
        again = replay(trace, instance, prop)
    except SchedproofError:
        return False
    return type(again) is type(verdict) and (again.worst_case, again.unit) == (verdict.worst_case, verdict.unit)
