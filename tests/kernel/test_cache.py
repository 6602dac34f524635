# SPDX-License-Identifier: GPL-2.0-only
"""Verdicts that are kept: found again as they were, and never where anything that they hang on has changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from schedproof import engines, registry
from schedproof.commands._common import Options
from schedproof.kernel import Tree
from schedproof.kernel.cache import Cache, _digest, default_cache
from schedproof.kernel.prove import decide_on, subject_of
from schedproof.verdict import Counts, Proved, Refuted, Unknown, Verdict
from tests.kernel.gate import FILE, FILES, SUITE, Gates, gates, patch_of, swapped

__all__ = ["gates"]

OPENS = "\tg->open = GATE_OPEN;\n"
BROKEN = swapped(FILES[FILE], (OPENS, ""))
Decide = Callable[..., Verdict]


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The properties that an engine has decided, one entry a time."""
    calls: list[str] = []
    real = engines.decide

    def decide(instance: Any, prop: Any, *rest: Any) -> Verdict:
        calls.append(prop.name)
        return real(instance, prop, *rest)

    monkeypatch.setattr(engines, "decide", decide)
    yield calls


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of the verdicts, below a cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/schedproof/verdicts"


@pytest.fixture
def ask(gates: Gates, folder: Path) -> Decide:
    """``ask("soon", {FILE: text})``: a verdict through the cache, with some files of the tree replaced."""
    registry.use_suite(SUITE)

    def call(name: str = "soon", files: dict[str, str] | None = None, **options: Any) -> Verdict:
        _, prop = registry.find_property(f"gate:{name}")
        tree = Tree(gates.tree).with_files(files or {})
        return decide_on(subject_of(prop.model, tree), prop, {}, Options(cache=Cache(folder), **options))[1]

    return call


def timeless(verdict: Verdict) -> Verdict:
    return replace(verdict, counts=replace(verdict.counts, seconds=0.0, compile_seconds=0.0))


# --------------------------------------------------------------------------------------------------- hits and misses
@pytest.mark.parametrize(("files", "kind"), [({}, Proved), ({FILE: BROKEN}, Refuted)])
def test_a_hit_is_the_same_verdict_with_its_trace(ask: Decide, decided: list[str], folder: Path, files, kind):
    first: Any = ask(files=files)
    second: Any = ask(files=files)
    assert decided == ["soon"] and len(list(folder.iterdir())) == 1
    assert isinstance(first, kind) and first.trace is not None
    assert timeless(second) == timeless(first) and second.trace == first.trace
    assert second.counts.compile_seconds == 0.0 and second.counts.states == first.counts.states > 1


def test_a_changed_function_is_decided_and_one_that_is_not_used_is_not(ask: Decide, decided: list[str]):
    assert isinstance(ask(), Proved) and isinstance(ask(files={FILE: BROKEN}), Refuted)
    assert decided == ["soon", "soon"]
    ask(files={FILE: swapped(FILES[FILE], ("g->count = 2;", "g->count = 1;"))})
    ask(files={FILE: swapped(FILES[FILE], (OPENS, "\t/* Once more. */\n" + OPENS))})
    assert decided == ["soon", "soon"]
    ask("counted")
    assert decided == ["soon", "soon", "counted"]
    ask(engine="reference")
    assert len(decided) == 4


def test_moved_lines_are_a_hit_and_the_places_are_the_new_ones(ask: Decide, decided: list[str]):
    first, moved = ask(files={FILE: BROKEN}), ask(files={FILE: "/* one */\n/* two */\n" + BROKEN})
    assert decided == ["soon"] and isinstance(first, Refuted) and isinstance(moved, Refuted)
    assert first.trace and moved.trace
    lines = [int(t.sources["gate_pass"].split(":")[1]) for t in (first.trace, moved.trace)]
    assert lines[1] == lines[0] + 2
    places = {c.place for step in moved.trace.steps for c in step.functions if c.name == "gate_pass"}
    assert places == {moved.trace.sources["gate_pass"]}


def test_another_text_of_the_checker_or_the_model_is_a_miss(
        ask: Decide, decided: list[str], tmp_path: Path, gates: Gates, monkeypatch: pytest.MonkeyPatch):
    from schedproof.kernel import cache

    ask()
    monkeypatch.setattr(cache, "__version__", "0.0.0-other")
    ask()
    assert len(decided) == 2
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    copy = tmp_path / "suite"
    shutil.copytree(SUITE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    seen = []
    for text in ("", "\n# Another line.\n"):
        with (copy / "properties/gate.py").open("a") as file:
            file.write(text)
        registry.use_suite(copy)
        _, prop = registry.find_property("gate:soon")
        instance = subject_of(prop.model, Tree(gates.tree)).instance({})
        seen.append(cache.key_of(instance, prop, "auto"))
    assert seen[0] and seen[1] and seen[0] != seen[1]


def test_what_is_not_decided_is_not_kept(ask: Decide, decided: list[str], folder: Path):
    assert isinstance(ask(budget=1e-9), Unknown)
    assert not folder.exists()
    assert isinstance(ask(), Proved) and isinstance(ask(budget=1e-9), Proved)        # what is known takes no time
    assert decided == ["soon", "soon"]


# -------------------------------------------------------------------------------------------------------- damage
def spoiled(text: str, how: str) -> str:
    """A kept verdict after an accident, or in bad faith: then its digest is right."""
    data = json.loads(text)
    if how == "truncated":
        return text[:len(text) // 2]
    if how in ("null", "[]", "{}", "17", '"x"', "", "\x00", "[" * 100_000):
        return how
    if how == "digest":
        return json.dumps({**data, "worst_case": 7})
    if how == "other question":
        return json.dumps({**data, "key": "0" * 64})
    plain = {k: v for k, v in data.items() if k not in ("format", "key", "digest")}
    if how == "cost":
        plain["trace"]["stem"][-1]["cost"] = 0
        for step in plain["trace"]["cycle"]:
            step["cost"] = 5
    elif how == "start":
        plain["trace"]["initial"]["phase"] = "2"
    elif how == "step":
        plain["trace"]["stem"][0]["action"] = "timer"
    elif how == "no trace":
        plain["trace"] = None
    elif how == "proved":
        plain |= {"verdict": "proved", "trace": None, "worst_case": "many"}
    elif how == "unknown":
        plain["verdict"] = "unknown"
    elif how == "counts":
        plain["counts"] = {"states": "many"}
    elif how == "missing":
        del plain["unit"]
    elif how == "worst":
        plain["worst_case"] = 3
    else:
        plain[how] = {"a": []}
    return json.dumps({"format": data["format"], "key": data["key"], "digest": _digest(data["key"], plain), **plain})


@pytest.mark.parametrize("how", [
    "truncated", "null", "[]", "{}", "17", '"x"', "", "\x00", "[" * 100_000, "digest", "other question", "cost",
    "start", "step", "no trace", "proved", "unknown", "counts", "missing", "worst", "verdict", "engine", "instance",
    "trace", "starved", "reason"])
def test_a_damaged_file_is_decided_anew_and_replaced(ask: Decide, decided: list[str], folder: Path, how: str):
    first = ask(files={FILE: BROKEN})
    (file,) = folder.iterdir()
    good = file.read_text()
    file.write_text(spoiled(good, how))
    again = ask(files={FILE: BROKEN})
    assert decided == ["soon", "soon"] and timeless(again) == timeless(first)
    assert timeless(ask(files={FILE: BROKEN})) == timeless(first) and decided == ["soon", "soon"]
    assert [p.name for p in folder.iterdir()] == [file.name]


def test_odd_things_in_the_place_of_a_file(ask: Decide, decided: list[str], folder: Path):
    ask()
    (file,) = folder.iterdir()
    file.unlink()
    file.mkdir()
    assert isinstance(ask(), Proved)
    file.rmdir()
    file.symlink_to(folder / "nowhere")
    assert isinstance(ask(), Proved) and len(decided) == 3


@pytest.mark.parametrize("where", ["file", "file/below", "read-only"])
def test_a_folder_that_cannot_be_written_is_no_matter(ask: Decide, decided: list[str], tmp_path: Path, where: str):
    (tmp_path / "file").write_text("x")
    (tmp_path / "read-only").mkdir()
    (tmp_path / "read-only").chmod(0o500)
    _, prop = registry.find_property("gate:soon")
    subject = subject_of(prop.model, Tree(tmp_path / "tree"))
    cache = Cache(tmp_path / where / "verdicts" if where == "read-only" else tmp_path / where)
    for _ in range(2):
        assert isinstance(decide_on(subject, prop, {}, Options(cache=cache))[1], Proved)
    assert (tmp_path / "file").read_text() == "x"
    assert len(decided) == 2 or (where == "read-only" and os.geteuid() == 0)          # root writes everywhere


def test_no_home_is_no_cache(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/folder")        # to be ignored, says its specification
    assert default_cache() is None
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/nonexistent/home")
    found = default_cache()
    assert found is None or str(found.folder) == "/nonexistent/home/.cache/schedproof/verdicts"


def test_a_verdict_without_a_run_is_kept_only_where_none_is_needed(folder: Path, gates: Gates):
    """A refutation without a run could not be shown to be one."""
    registry.use_suite(SUITE)
    _, prop = registry.find_property("gate:counted")
    instance = subject_of(prop.model, Tree(gates.tree)).instance({})
    title = instance.title
    made: list[Verdict] = [Refuted("explicit", title, Counts(1)), Proved("explicit", title, Counts(2)),
                           Proved("explicit", title, Counts(3))]
    given = iter(made)
    cache = Cache(folder)
    assert [cache.decide(instance, prop, "auto", lambda: next(given)).counts.states for _ in range(3)] == [1, 2, 2]


# ------------------------------------------------------------------------------------------------- the command line
def test_the_commands_keep_verdicts_and_nothing_else(gates: Gates, decided: list[str], folder: Path, tmp_path: Path):
    patch = patch_of({FILE: BROKEN})
    first = gates.check(patch, "--json", cached=True)
    count = len(decided)
    second = gates.check(patch, "--json", cached=True)
    assert (first.code, second.code) == (1, 1) and len(decided) == count > 0
    assert without_seconds(first.json) == without_seconds(second.json)
    assert {p.relative_to(folder.parent).parts[0] for p in folder.parent.rglob("*")} == {"verdicts"}
    assert all(p.suffix == ".json" for p in folder.iterdir())
    proved = gates.run("prove", "gate", "--tree", gates.tree, "--json", cached=True)
    assert {r["verdict"] for r in proved.json["results"]} == {"proved"}
    text = [gates.check(patch, "--format", "text", cached=True).out, gates.check(patch, "--format", "text").out]
    assert text[0] == text[1] and "kept" not in text[0] and "cache" not in text[0]


def test_no_cache_decides_anew_and_keeps_nothing(gates: Gates, decided: list[str], folder: Path):
    for _ in range(2):
        assert gates.check(patch_of({FILE: BROKEN}), "--json").code == 1
        assert gates.run("prove", "gate", "--tree", gates.tree).code == 0
    assert not folder.exists() and len(decided) == 12


def without_seconds(data: Any) -> Any:
    if isinstance(data, dict):
        return {k: without_seconds(v) for k, v in data.items() if k != "seconds"}
    return [without_seconds(x) for x in data] if isinstance(data, list) else data


def test_several_processes_at_once(gates: Gates, folder: Path):
    words = [sys.executable, "-m", "schedproof", "prove", "gate", "--tree", str(gates.tree), "--suite", str(SUITE),
             "--json"]
    runs = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    done = [(*run.communicate(timeout=150), run.returncode) for run in runs]
    assert [(err, code) for _, err, code in done] == [("", 0)] * 3
    assert without_seconds(json.loads(done[0][0])) == without_seconds(json.loads(done[1][0]))
    files = list(folder.iterdir())
    assert len(files) == 2 and all(json.loads(f.read_text())["verdict"] == "proved" for f in files)
