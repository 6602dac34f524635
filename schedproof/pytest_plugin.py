# SPDX-License-Identifier: GPL-2.0-only
"""Makes pytest run the declarations in ``properties/``: one item a property and variant.

``properties/quota_reweight.py::bounded_wait::v4.14`` passes when the verdict is what the declaration asks for:
proved where the property must hold, refuted where it must fail. A vacuous or unknown verdict never passes.

pytest loads this module in every run of every project that has schedproof installed, so it imports nothing heavy
before it meets a properties file.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

ASKS_FOR = {"holds": "proved", "fails": "refuted"}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("schedproof")
    group.addoption("--schedproof-engine", metavar="E", default="auto", help="the engine that decides properties")
    group.addoption("--schedproof-suite", metavar="DIR", default=None,
                    help="take models and properties from another folder than schedproof's own")


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("schedproof_suite")
    if folder is None:
        return
    from schedproof.errors import SchedproofError
    from schedproof.registry import use_suite

    try:
        use_suite(config.invocation_params.dir / folder)
    except SchedproofError as error:
        raise pytest.UsageError(str(error)) from None


def _holds_properties(file: Path) -> bool:
    """Whether a file is one of a suite's, by where it lies and what it speaks of."""
    return (file.suffix == ".py" and file.parent.name == "properties" and not file.name.startswith("_")
            and (file.parent.parent / "models").is_dir() and b"schedproof" in file.read_bytes())


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Generator[None, Any, Any]:
    """Collect a properties file, and only here: pytest's own collector takes every file that is named on the
    command line, whatever it is called, and would import it a second time under another name."""
    others = yield
    if not _holds_properties(file_path):
        return others
    from schedproof.registry import suite_root

    if file_path.parent.resolve() != (suite_root() / "properties").resolve():
        warnings.warn(pytest.PytestCollectionWarning(
            f"{file_path} is not run: the suite in use is {suite_root()}; say --schedproof-suite "
            f"{file_path.parent.parent}"), stacklevel=1)
        return others
    return [PropertyFile.from_parent(parent, path=file_path)]


class PropertyFile(pytest.File):
    """One file of ``properties/``."""

    def collect(self) -> Iterator[pytest.Collector]:
        from schedproof.registry import properties

        lines = _lines(self.path)
        for prop in properties(self.path.stem):
            yield PropertyNode.from_parent(self, name=prop.name, prop=prop, line=lines.get(prop.name, 0))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:        # type: ignore[override]
        return _in_one_line(excinfo) or super().repr_failure(excinfo)


class PropertyNode(pytest.Collector):
    """One property: its items are the variants that it speaks about."""

    def __init__(self, *, prop: Any, line: int, **rest: Any):
        super().__init__(**rest)
        self.prop, self.line = prop, line

    def collect(self) -> Iterator[pytest.Item]:
        for side in ASKS_FOR:
            for variant in getattr(self.prop, side):
                yield PropertyItem.from_parent(self, name=variant, prop=self.prop, side=side, line=self.line)


class NotAsDeclared(Exception):
    """The verdict is not what the declaration asks for; the message is the whole report."""


class PropertyItem(pytest.Item):
    """One property in one variant."""

    def __init__(self, *, prop: Any, side: str, line: int, **rest: Any):
        super().__init__(**rest)
        self.prop, self.side, self.line = prop, side, line

    def runtest(self) -> None:
        from schedproof.engines import decide
        from schedproof.registry import instance_of

        instance = instance_of(self.prop, self.name)
        verdict = decide(instance, self.prop, engine=self.config.getoption("schedproof_engine"))
        if verdict.name != ASKS_FOR[self.side]:
            raise NotAsDeclared(failure(self.prop, self.name, self.side, verdict))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:        # type: ignore[override]
        if isinstance(excinfo.value, NotAsDeclared):
            return str(excinfo.value)
        return _in_one_line(excinfo) or super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.line, f"{self.prop.name} {self.side} in {self.name}"


def failure(prop: Any, variant: str, side: str, verdict: Any) -> str:
    """What a reader needs to see when a property is not as declared."""
    from schedproof.registry import name_of
    from schedproof.report import render

    said = f"{verdict.name}, by the engine {verdict.engine}"
    if getattr(verdict, "reason", ""):
        said += f": {verdict.reason}"
    rows = [f"{name_of(prop.model)}:{prop.name} in {variant}", f"  claim       {' '.join(prop.statement.split())}",
            f"  expected    {ASKS_FOR[side]}", f"  verdict     {said}"]
    if verdict.worst_case is not None:
        rows.append(f"  worst case  {verdict.worst_case} {verdict.unit}".rstrip())
    trace = getattr(verdict, "trace", None)
    return "\n".join(rows) + "\n" + (f"\n{render(trace, 'text')}" if trace is not None else "")


def _in_one_line(excinfo: pytest.ExceptionInfo[BaseException]) -> str | None:
    """Errors that are meant for the user need no Python traceback."""
    from schedproof.errors import SchedproofError

    return str(excinfo.value) if isinstance(excinfo.value, SchedproofError) else None


def _lines(file: Path) -> dict[str, int]:
    """Where each property is declared: its name to the line, counted from 0."""
    import ast

    found: dict[str, int] = {}
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return found            # the import says what is wrong
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Property":
            named = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "name")]
            for value in named:
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    found.setdefault(value.value, node.lineno - 1)
    return found
