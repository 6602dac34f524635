# SPDX-License-Identifier: GPL-2.0-only
"""``--jobs``: several processes give the same answers in the same order, and one that dies costs one answer."""

from __future__ import annotations

import argparse
import os
from typing import Any

import pytest

from schedproof.cli import main
from schedproof.commands._common import decided
from schedproof.commands._spread import Question, answers
from schedproof.errors import InputError

SMALL = {"quota": 1, "period": 2, "ratio": 2, "lead": 0}
QUESTIONS = [Question("quota_reweight", "bounded_wait", variant, {**SMALL, "ratio": ratio})
             for variant in ("v4.14", "v4.14+drop_guard") for ratio in (2, 3)]


def options(jobs: int) -> argparse.Namespace:
    return argparse.Namespace(jobs=jobs, quiet=True, engine="explicit", budget=None, settings=[], suite=None)


def untimed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in r.items() if k != "seconds"} for r in rows]


def dies(model: str, prop: Any, variant: str, args: argparse.Namespace, settings: dict[str, int]) -> Any:
    """An answer that ends its process for one of the questions."""
    if variant == "v4.14" and settings["ratio"] == 3:
        os._exit(1)
    return decided(model, prop, variant, args, settings)


@pytest.fixture(scope="module")
def alone() -> list[dict[str, Any]]:
    """The answers of one process."""
    return untimed(answers(QUESTIONS, decided, options(1)))


def test_the_answers_are_those_of_one_process(alone):
    assert [r["verdict"] for r in alone] == ["refuted", "refuted", "proved", "proved"]
    assert untimed(answers(QUESTIONS, decided, options(2))) == alone


def test_a_process_that_dies_costs_its_question_only(alone):
    found = untimed(answers(QUESTIONS, dies, options(2)))
    assert [r["verdict"] for r in found] == [alone[0]["verdict"], "unknown", *(r["verdict"] for r in alone[2:])]
    assert "ended before it did" in found[1]["reason"]
    assert [found[0], *found[2:]] == [alone[0], *alone[2:]]


def test_what_cannot_be_asked_is_the_same_error():
    wrong = [QUESTIONS[0], Question("quota_reweight", "bounded_wait", "v4.14", {**SMALL, "quota": 10**6})]
    for jobs in (1, 2):
        with pytest.raises(InputError, match="quota"):
            answers(wrong, decided, options(jobs))


def test_a_sweep_over_two_processes(capsys):
    call = ["latency", "quota_reweight", "--variant", "v4.14", "--set", "quota=1", "--set", "lead=0", "--sweep",
            "period=2..4", "--quiet"]
    shown = []
    for jobs in ("1", "2"):
        assert main([*call, "--jobs", jobs]) == 0
        shown.append([line.split()[:2] for line in capsys.readouterr().out.splitlines()])
    assert shown[0] == shown[1] and len(shown[0]) == 4
