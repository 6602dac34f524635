# SPDX-License-Identifier: GPL-2.0-only
"""Finds models and properties by name.

A model's name on the command line is its file's name: ``models/quota_reweight.py``. One file may hold several
classes (the same mechanism at different grains), and the properties in ``properties/quota_reweight.py`` say which
of them each speaks about.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import schedproof.suite
from schedproof.errors import InputError, ModelError, SchedproofError
from schedproof.property import Property


def unknown(what: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name that does not exist: the closest name there is, and all that there are."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    meant = f", did you mean {close[0]}?" if close else ";"
    return InputError(f"unknown {what} {name!r}{meant} known: {', '.join(names) or 'none'}")


# ------------------------------------------------------------------------------------------------ which suite
def suite_root() -> Path:
    """The folder that holds ``models/`` and ``properties/``."""
    return Path(list(schedproof.suite.__path__)[0])


def use_suite(folder: Path, tree: Path | None = None) -> None:
    """Take models and properties from another folder from now on.

    Its Python is run, so it is only ever named by the user, and refused inside the ``tree`` under examination.
    """
    root = folder.resolve()
    if not schedproof.suite.is_suite(root):
        raise InputError(f"--suite {folder}: not a suite (no folders models/ and properties/ in it)")
    refuse_inside(root, tree)
    for name in [n for n in sys.modules if n.startswith("schedproof.suite.")]:
        del sys.modules[name]
        vars(schedproof.suite).pop(name.split(".")[2], None)
    schedproof.suite.__path__ = [str(root)]
    importlib.invalidate_caches()


def refuse_inside(root: Path, tree: Path | None) -> None:
    """Raise InputError when a suite lies inside a kernel tree: a tree is read, its Python is never run."""
    if tree is not None and root.resolve().is_relative_to(tree.resolve()):
        raise InputError(f"the suite {root} lies inside --tree {tree}: nothing from a tree is run; use one outside")


# ----------------------------------------------------------------------------------------------------- models
def _stems(folder: str) -> list[str]:
    return sorted(p.stem for p in (suite_root() / folder).glob("*.py") if not p.stem.startswith("_"))


def model_names() -> list[str]:
    """The names of all models, without loading any."""
    return _stems("models")


def model_classes(name: str) -> list[type[Any]]:
    """The model classes that ``models/NAME.py`` defines, in order."""
    from schedproof.model import Model

    if name not in model_names():
        raise unknown("model", name, model_names())
    module = _load("models", name)
    found = [c for c in vars(module).values()
             if inspect.isclass(c) and issubclass(c, Model) and c.__module__ == module.__name__]
    if not found:
        raise ModelError("no subclass of Model is defined here", str(module.__file__), 1)
    return found


def models() -> dict[str, list[type[Any]]]:
    """All models: name to classes."""
    return {name: model_classes(name) for name in model_names()}


def name_of(model: type[Any]) -> str:
    """The command line's name of a model class: the name of its file."""
    return model.__module__.rpartition(".")[2]


def parameters_of(name: str) -> dict[str, Any]:
    """The parameters of a model, of all its classes: name to Param. What the first class says of one counts."""
    found: dict[str, Any] = {}
    for model in model_classes(name):
        found = {**found, **{key: p for key, p in model.parameters().items() if key not in found}}
    return found


# ------------------------------------------------------------------------------------------------- properties
def properties(name: str) -> list[Property]:
    """The properties of a model in the order of ``properties/NAME.py``; a model without that file has none."""
    if name not in model_names() and name not in _stems("properties"):
        raise unknown("model", name, model_names())
    if name not in _stems("properties"):
        return []
    module = _load("properties", name)
    found: list[Property] = []
    for value in vars(module).values():
        if isinstance(value, Property) and not any(value is p for p in found):
            found.append(value)
    _check(found, str(module.__file__))
    return found


def _check(found: list[Property], file: str) -> None:
    """Names must tell properties apart, and no declaration may contradict itself."""
    names: set[str] = set()
    for prop in found:
        if prop.name in names:
            raise ModelError(f"two properties are called {prop.name}", file)
        names.add(prop.name)
        both = sorted(set(prop.holds) & set(prop.fails))
        if both:
            raise ModelError(f"property {prop.name} both holds and fails in {', '.join(both)}", file)
    if sum(p.headline for p in found) > 1:
        raise ModelError("more than one property is the headline", file)


def find_property(text: str) -> tuple[str, Property]:
    """The model's name and the property for ``MODEL:PROPERTY``; the facts' label does as well as the name."""
    model, colon, wanted = text.partition(":")
    if not colon or not wanted:
        names = [p.name for p in properties(model)]
        raise InputError(f"{text!r} names no property: write {model}:PROPERTY, one of {', '.join(names)}")
    candidates = properties(model)
    for prop in candidates:
        if wanted == prop.name:
            return model, prop
    for prop in candidates:
        if prop.facts and wanted in prop.facts.replace(",", " ").split():
            return model, prop
    raise unknown(f"property of {model}", wanted, [p.name for p in candidates])


def select(text: str | None) -> list[tuple[str, Property]]:
    """What ``MODEL``, ``MODEL:PROPERTY`` or nothing at all (everything) stands for."""
    if text is None:
        return [(name, prop) for name in model_names() for prop in properties(name)]
    if ":" in text:
        return [find_property(text)]
    model_classes(text)
    return [(text, prop) for prop in properties(text)]


def headline(name: str) -> Property:
    """The property that ``schedproof latency`` answers."""
    model_classes(name)
    for prop in properties(name):
        if prop.headline:
            return prop
    raise InputError(f"{name} has no headline property, so there is no latency to ask for")


def expected(prop: Property, variant: str) -> str | None:
    """The verdict that the declaration asks for in a variant, None when it says nothing about it."""
    if variant in prop.holds:
        return "proved"
    return "refuted" if variant in prop.fails else None


def is_mutant(prop: Property, variant: str) -> bool:
    """Whether a variant only exists to show that a property can fail, and was never a kernel or a patch."""
    return any(part in prop.model.mutants for part in variant.split("+")[1:])


def instance_of(prop: Property, variant: str, settings: Mapping[str, int] | None = None) -> Any:
    """The instance on which a property is decided: the one that it fixes, changed by the user's settings.

    An instance is immutable and knows its transitions once they were asked for, so the properties of a model share
    those that are the same.
    """
    return _instance(prop.model, variant, tuple(sorted({**prop.instance, **(settings or {})}.items())))


@lru_cache(maxsize=64)
def _instance(model: type[Any], variant: str, params: tuple[tuple[str, int], ...]) -> Any:
    return model.variant(variant, **dict(params))


# ---------------------------------------------------------------------------------------------------- loading
def _load(kind: str, name: str) -> ModuleType:
    """Import one file of the suite. Whatever goes wrong in it is told as a fault at its line."""
    try:
        return importlib.import_module(f"schedproof.suite.{kind}.{name}")
    except SchedproofError:
        raise
    except SyntaxError as error:
        raise ModelError(f"not Python: {error.msg}", error.filename or "", error.lineno or 0) from None
    except Exception as error:
        root = str(suite_root())
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(root)]
        file, line = (frames[-1].filename, frames[-1].lineno or 0) if frames else (f"{kind}/{name}.py", 1)
        raise ModelError(f"{type(error).__name__}: {error}", file, line) from error
