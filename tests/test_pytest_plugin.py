# SPDX-License-Identifier: GPL-2.0-only
"""Declarations as pytest items, in a pytest of their own with stand-ins for models and engines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DRIVER = """
import importlib.util, sys
import schedproof.model.domains
spec = importlib.util.spec_from_file_location("schedproof_fakes", sys.argv[1])
fakes = sys.modules["schedproof_fakes"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fakes)
sys.modules.update(fakes.modules())
import pytest
sys.exit(pytest.main(sys.argv[2:]))
"""


@pytest.fixture
def pytest_in(tmp_path):
    """Runs pytest in a copy of the toy suite: its exit code and what it printed."""
    import shutil

    shutil.copytree(ROOT / "tests" / "toy" / "suite", tmp_path / "suite",
                    ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "suite" / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")

    def call(*words: str, edit: tuple[str, str] = ("", ""), suite: bool = True) -> tuple[int, str]:
        file = tmp_path / "suite" / "properties" / "toy.py"
        file.write_text(file.read_text().replace(*edit) if edit[0] else file.read_text())
        env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, str(ROOT / "tests" / "toy" / "fakes.py"), "-p", "no:cacheprovider",
             *(() if installed() else ("-p", "schedproof.pytest_plugin")),
             *(("--schedproof-suite", ".") if suite else ()), *words],
            cwd=tmp_path / "suite", env={**env, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}, text=True,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    return call


def installed() -> bool:
    """Whether pytest finds the plugin by itself."""
    from importlib.metadata import entry_points

    return any(e.name == "schedproof" for e in entry_points(group="pytest11"))


ITEMS = ["short_wait::v1+repaired", "short_wait::v1", "short_wait::v1+forever", "sane::v1", "sane::v2",
         "sane::v1+break_it", "fine_sane::v9"]


@pytest.mark.parametrize("named", ["properties", "properties/toy.py", "."])
def test_each_declared_pair_is_one_item_also_when_the_file_is_named(pytest_in, named):
    code, out = pytest_in("--collect-only", "-q", named)
    assert code == 0, out
    assert re.findall(r"^properties/toy\.py::(.*)$", out, re.MULTILINE) == ITEMS


def test_one_item_can_be_named(pytest_in):
    code, out = pytest_in("-v", "properties/toy.py::short_wait::v1+repaired")
    assert code == 0, out
    assert "1 passed" in out


def test_all_pass_when_the_verdicts_are_as_declared(pytest_in):
    code, out = pytest_in("properties")
    assert code == 0, out
    assert "7 passed" in out


def test_a_failure_shows_all_that_a_reader_needs(pytest_in):
    code, out = pytest_in("properties", edit=(
        'holds=("v1+repaired",), fails=("v1", "v1+forever")', 'holds=("v1",), fails=("v1+forever",)'))
    assert code == 1
    for part in ("toy:short_wait in v1", "claim       A task that is ready runs again", "expected    proved",
                 "verdict     refuted, by the engine explicit", "worst case  9 ms", "|  2 ms    4  tick()",
                 "| wait ends after 9 ms", "properties/toy.py::short_wait::v1", "1 failed, 5 passed"):
        assert part in out
    assert "Traceback" not in out and "pytest_plugin.py" not in out


@pytest.mark.parametrize("side", ["holds", "fails"])
def test_a_vacuous_verdict_never_passes(pytest_in, side):
    code, out = pytest_in("properties", edit=(
        '"fine_sane", Fine, "The same at the finer grain.", Invariant(waiting), holds',
        f'"never_asked", Fine, "The same at the finer grain.", Invariant(waiting), {side}'))
    assert code == 1
    assert "vacuous, by the engine explicit: the premise holds in no reachable state" in out
    assert "1 failed, 6 passed" in out


def test_an_unknown_engine_and_an_unknown_variant_are_one_line_each(pytest_in):
    code, out = pytest_in("properties", "--schedproof-engine", "guess")
    assert code == 1 and "unknown engine 'guess'; known: explicit" in out and "Traceback" not in out
    code, out = pytest_in("properties", edit=('holds=("v9",)', 'holds=("v8",)'))
    assert code == 1 and "unknown release 'v8'; known: v9" in out and "1 failed, 6 passed" in out


def test_a_faulty_properties_file_is_one_line(pytest_in):
    code, out = pytest_in("properties", edit=("fine_sane = ", "fine_sane = 1 / 0 or "))
    assert code == 2
    assert "properties/toy.py:20: ZeroDivisionError: division by zero" in out


def test_a_folder_that_is_no_suite_is_refused(pytest_in):
    code, out = pytest_in("--schedproof-suite", "properties", "properties", suite=False)
    assert code == 4
    assert "not a suite" in out


def test_properties_of_another_suite_are_never_run_unasked(pytest_in):
    code, out = pytest_in("properties", suite=False)
    assert code == 5, out       # nothing collected
    assert re.search(r"toy\.py is not run: the suite in use is .*; say --schedproof-suite", out)
