# SPDX-License-Identifier: GPL-2.0-only
"""Stored counterexamples: written and read without loss, and refused when they are damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schedproof.errors import InputError
from schedproof.trace import from_json, load


@pytest.mark.parametrize("cycle", [False, True])
def test_a_trace_is_read_as_it_was_written(fakes, tmp_path, cycle):
    trace = fakes.sample_trace(cycle=cycle)
    trace.save(tmp_path / "a.json")
    assert load(tmp_path / "a.json") == trace


def test_every_truncation_of_a_file_is_refused_in_one_line(fakes, tmp_path):
    whole = json.dumps(fakes.sample_trace().to_json())
    file = tmp_path / "cut.json"
    for end in range(0, len(whole), 37):
        file.write_text(whole[:end])
        with pytest.raises(InputError) as error:
            load(file)
        assert str(error.value).startswith(f"{file}: not a stored counterexample")
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("path, value", [
    (("format",), "schedproof-trace/2"), (("stem",), None), (("stem",), 3), (("stem", 0), "step"),
    (("stem", 0, "functions"), [{"nome": "x"}]), (("stem", 0, "changes"), {"x": ["one"]}), (("stem", 0, "cost"), "1"),
    (("stem", 0, "action"), None), (("stem", 0, "extra"), 1), (("params", "ratio"), "8"), (("initial", "clock"), 0),
    (("variant",), 4), (("unknown",), 1), (("model",), None), (("initial",), []), (("params",), 7),
    (("stem", 0, "changes", "queued[a]"), [1, 2]),
])
def test_an_edit_that_changes_the_form_is_refused(fakes, path, value):
    data = json.loads(json.dumps(fakes.sample_trace().to_json()))
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(InputError, match="^x.json: "):
        from_json(data, "x.json")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"[" * 100_000, b"{}", b"[1]", b"null", b"\x7fELF\x02", b""])
def test_a_file_that_is_something_else_is_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InputError, match="not a stored counterexample"):
        load(tmp_path / "x")


def test_a_huge_file_is_refused_without_reading_it(tmp_path):
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match="larger than"):
        load(tmp_path / "huge")


def test_a_file_that_is_not_there_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "missing.json", tmp_path):
        with pytest.raises(InputError, match=str(path)):
            load(path)


def test_a_write_that_fails_leaves_what_was_there(fakes, tmp_path, monkeypatch):
    file = tmp_path / "x.json"
    file.write_text("before")

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(InputError, match="No space left"):
        fakes.sample_trace().save(file)
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]


def test_the_stored_counterexamples_are_all_readable():
    root = Path(__file__).parent.parent / "counterexamples"
    for file in sorted(root.glob("*/*.json")):
        trace = load(file)
        assert file == root / trace.model / f"{trace.property}-{trace.variant}.json"
        assert file.with_suffix(".txt").exists()
