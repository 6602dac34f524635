# SPDX-License-Identifier: GPL-2.0-only
"""Lemmas, comparisons and expectations in a suite: list, prove, JSON, stored counterexamples, pytest items."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MODEL = '''
from schedproof.model import Model, Range, Switch, action, require


class M(Model):
    """A counter."""

    n = Range(0, 3, init=0)
    way = Switch("up", "leap")
    releases = {"v1": {"way": "up"}}
    fixes = {"leap": {"way": "leap"}}

    @action
    def go(self):
        self.n = (self.n + (3 if self.way == "leap" else 1)) & 3
'''
PROPERTIES = '''
from fractions import Fraction

from schedproof.model.function import all_inputs
from schedproof.property import Agrees, Claim, Expectation, Lemma, Property
from schedproof.suite.models.m import M


def next_is_one_more(instance):
    run = all_inputs(instance, "go")
    before, after = run.before["n"], run.after["n"]
    return Claim({"in range": after <= 3, "one more": (after - before - 1) % 4 == 0}, run.inputs, run.assumptions)


def seen(m):
    return m.n


def mean(instance):
    return {"up": (Fraction(1, 3), 1), "down": (Fraction(2, 3), -1 if instance.switches["way"] == "up" else 0)}


one_more = Property("one_more", M, "It counts.", Lemma(next_is_one_more), holds=("v1",), fails=("v1+leap",))
same = Property("same", M, "Leaping looks the same.", Agrees("v1", seen), holds=("v1",), fails=("v1+leap",))
average = Property("average", M, "It sinks.", Expectation(Fraction(-1, 3), mean), holds=("v1",), fails=("v1+leap",))
'''


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    root = tmp_path_factory.mktemp("kinds")
    for folder, text in (("models", MODEL), ("properties", PROPERTIES)):
        (root / folder).mkdir()
        (root / folder / "m.py").write_text("# SPDX-License-Identifier: GPL-2.0-only\n" + text)
    return root


def run(*args: object, code: int = 0) -> str:
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-m", *map(str, args)], capture_output=True, text=True, cwd=root,
                          env={**os.environ, "PYTHONPATH": str(root)})
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_they_are_listed(suite):
    listed = run("schedproof", "list", "m", "--suite", suite)
    assert all(f"({kind})" in listed for kind in ("lemma", "agrees", "expectation"))


def test_they_are_proved_and_refuted_as_declared(suite):
    rows = json.loads(run("schedproof", "prove", "m", "--suite", suite, "--json"))["results"]
    assert {(r["property"], r["variant"], r["verdict"], r["engine"]) for r in rows} == {
        (name, variant, verdict, engine) for name, engine in (("one_more", "lemma"), ("same", "agrees"),
                                                              ("average", "expectation"))
        for variant, verdict in (("v1", "proved"), ("v1+leap", "refuted"))}
    assert [r["value"] for r in rows if r["property"] == "average"] == ["-1/3", "1/3"]
    assert [r["reason"] for r in rows if r["property"] == "one_more"] == ["", "the obligation one more fails"]


def test_their_counterexamples_replay(suite, tmp_path):
    run("schedproof", "counterexamples", "m", "--suite", suite, "--into", tmp_path)
    files = sorted(tmp_path.glob("m/*.json"))
    assert [f.stem for f in files] == ["average-v1+leap", "one_more-v1+leap", "same-v1+leap"]
    said = run("schedproof", "replay", *files, "--suite", suite)
    assert said.count("refuted again") == 3
    run("schedproof", "counterexamples", "m", "--suite", suite, "--into", tmp_path, "--check")


def test_they_are_pytest_items(suite):
    said = run("pytest", suite / "properties", "--schedproof-suite", suite, "-q", "-p", "no:cacheprovider", "--rootdir",
               suite)
    assert "6 passed" in said
