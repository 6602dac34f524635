# SPDX-License-Identifier: GPL-2.0-only
"""conform on real trees: which functions are the model's methods, and under which switches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from schedproof.kernel import Tree
from schedproof.kernel.conform import Report, conform
from schedproof.suite.models.quota_reweight import QuotaReweight
from tests.kernel.smallc import FAIR, HEADER, edited

EQUAL = {"update_cfs_group", "calc_group_shares", "throttled_hierarchy"}


def run(tree: Tree, variant: str | None = None) -> Report:
    return conform(tree, QuotaReweight, "quota_reweight", variant)


def by_name(report: Report) -> dict[str, tuple[str, str]]:
    return {f.function: (f.status, f.reason) for f in report.functions}


@pytest.mark.parametrize(("tree", "variant"), [
    ("tree_61", "v6.1"), ("tree_612", "v6.1+empty_rule=preserve+reweight=if_changed")])
def test_the_switches_that_equal_a_tree_are_found(request: pytest.FixtureRequest, tree: str, variant: str):
    real: Tree = request.getfixturevalue(tree)
    report = run(real)
    assert report.variant == variant
    assert {f.function for f in report.functions if f.status == "equal"} >= EQUAL
    assert all(f.variant == variant for f in report.functions if f.status == "equal")
    assert {f.function for f in report.functions} == set(QuotaReweight.kernel_functions())
    assert not [f for f in report.functions if f.status == "differs"]
    for f in report.functions:
        if f.status == "not_executable":                     # file, line, construct, and the line is there
            file, line, construct = f.reason.split(":", 2)
            assert construct and 0 < int(line) <= real.text(file).count("\n")
        if f.status == "absent":
            assert f.function in f.reason and "no definition" in f.reason


def test_a_search_from_another_variant_ends_at_the_same_meaning(tree_61: Tree):
    report = run(tree_61, "v4.14")
    found, wanted = QuotaReweight.settings(report.variant), QuotaReweight.settings("v6.1")
    for switch in ("guard", "empty_rule", "scale_floor", "reweight"):        # those that the functions read test
        assert found[switch] == wanted[switch]


def test_a_tree_that_is_no_variant_differs_and_an_input_shows_it(tree_61: Tree):
    changed = tree_61.with_files({FAIR: edited(tree_61.text(FAIR), "calc_group_shares",
                                               (r"(tg_weight) \+= load;", r"\1 += load + 1;"))})
    report = run(changed)
    status, reason = by_name(report)["calc_group_shares"]
    assert status == "differs"
    assert reason.startswith("against v6.1: cfs_rq = ") and "load[q" in reason
    assert by_name(report)["throttled_hierarchy"][0] == "equal"


def test_a_fix_in_a_tree_is_found_as_its_switch(tree_61: Tree):
    """The guard deleted, and scale_load_down without its floor."""
    header = tree_61.text(HEADER).replace("__w = max(2UL, __w >> SCHED_FIXEDPOINT_SHIFT);",
                                          "__w = __w >> SCHED_FIXEDPOINT_SHIFT;")
    assert header != tree_61.text(HEADER)
    fair = edited(tree_61.text(FAIR), "update_cfs_group",
                  (r"^\tif \(throttled_hierarchy\(gcfs_rq\)\)\n\t\treturn;\n", ""))
    report = run(tree_61.with_files({HEADER: header, FAIR: fair}))
    settings = QuotaReweight.settings(report.variant)
    assert (settings["guard"], settings["scale_floor"]) == ("off", "none")
    assert {f.function for f in report.functions if f.status == "equal"} >= EQUAL


def test_an_absent_function_is_absent(tree_61: Tree):
    fair = tree_61.text(FAIR).replace("calc_group_shares", "group_shares_calculated")
    found = by_name(run(tree_61.with_files({FAIR: fair})))
    assert found["calc_group_shares"][0] == "absent" and "calc_group_shares" in found["calc_group_shares"][1]
    assert found["throttled_hierarchy"][0] == "equal"


def command(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "schedproof", "conform", *map(str, words)], cwd=folder, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=300, env=dict(os.environ))


def test_the_command_line(tree_61: Tree, tmp_path: Path):
    done = command(tmp_path, "quota_reweight", "--tree", tree_61.path, "--json")
    rows = json.loads(done.stdout)["functions"]
    assert (done.returncode, done.stderr) == (0, "")
    assert {"model", "function", "file", "status", "reason"} <= set(rows[0])
    assert {r["function"] for r in rows if r["status"] == "equal"} >= EQUAL
    assert all(r["model"] == "quota_reweight" and r["file"] == FAIR for r in rows if r["status"] == "equal")
    text = command(tmp_path, "--tree", tree_61.path)
    assert text.returncode == 0
    assert "what is equal is v6.1" in text.stdout and "configuration: x86-64" in text.stdout
    assert "update_cfs_group() in kernel/sched/fair.c: equal" in text.stdout


def test_a_difference_is_exit_code_1(make_tree, tmp_path: Path):
    make_tree({FAIR: "struct cfs_rq {\n\tint throttle_count;\n};\n"
                     "static int throttled_hierarchy(struct cfs_rq *cfs_rq)\n{\n"
                     "\treturn cfs_rq->throttle_count > 1;\n}\n"})
    done = command(tmp_path, "quota_reweight", "--tree", tmp_path)
    assert done.returncode == 1 and done.stderr == ""
    assert "throttled_hierarchy() in kernel/sched/fair.c: differs" in done.stdout
    assert "throttle_count[qA] = 1" in done.stdout
    assert "update_cfs_group() in kernel/sched/fair.c: absent" in done.stdout


@pytest.mark.parametrize("words", ["--tree none", "quota --tree TREE", "--tree TREE --variant v9",
                                   "--tree TREE --rev x", "", "--tree EMPTY"])
def test_bad_input_is_one_line(make_tree, tmp_path: Path, words: str):
    make_tree({FAIR: "int x;\n"})
    (tmp_path / "empty").mkdir()
    places = {"TREE": str(tmp_path), "EMPTY": str(tmp_path / "empty")}
    done = command(tmp_path, *(places.get(w, w) for w in words.split()))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("schedproof: ") and "bug of schedproof" not in done.stderr
