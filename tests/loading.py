# SPDX-License-Identifier: GPL-2.0-only
"""Models for tests: from a file in tests/models, or from a text that is written to a file first."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import tempfile
import textwrap
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

MODELS = Path(__file__).parent / "models"
HEAD = """\
from schedproof.model import *
from schedproof.model import Model

"""
FIRST_LINE = HEAD.count("\n") + 1       # where the text of a model begins in its file

_folder = tempfile.TemporaryDirectory(prefix="schedproof-models-")


def load(path: Path, name: str | None = None) -> ModuleType:
    """Import one file under a name of its own."""
    name = name or path.stem
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@lru_cache(maxsize=None)
def small(name: str) -> ModuleType:
    """The module tests/models/NAME.py."""
    return load(MODELS / f"{name}.py", f"schedproof_small.{name}")


def module_of(text: str) -> ModuleType:
    """The module with this text, behind an import of all words of schedproof.model."""
    text = HEAD + textwrap.dedent(text).lstrip("\n")
    name = "m" + hashlib.sha256(text.encode()).hexdigest()[:12]
    path = Path(_folder.name) / f"{name}.py"
    path.write_text(text)
    return load(path, name)


def model_of(text: str, name: str = "M") -> Any:
    """The model class of that name in a text."""
    return getattr(module_of(text), name)
