# SPDX-License-Identifier: GPL-2.0-only
"""Patches of real trees made by program: functions that move, go away or are renamed, and fields that are new."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import pytest

from schedproof.commands._common import Options
from schedproof.kernel import Tree
from schedproof.kernel.check import CheckReport, ModelCheck, check
from schedproof.kernel.functions import read_function
from schedproof.kernel.patch import parse_patches
from schedproof.suite.models.quota_reweight import QuotaReweight
from schedproof.suite.properties.quota_reweight import bounded_wait, fresh_after_tick
from tests.kernel.smallc import FAIR, HEADER, body_of, diff, edited

NAME, GROUP = "update_cfs_group", "kernel/sched/group.c"
GUARD = r"^\tif \(throttled_hierarchy\(gcfs_rq\)\)\n\t\treturn;\n"
FIELD = (r"^(\tint\t+throttle_count;\n)", "\\1\tint\t\t\treweight_pending;\n")


def checked(tree: Tree, files: Mapping[str, str], properties=()) -> ModelCheck:
    """The only model's part of the report on a patch that gives files another text."""
    text = "".join(diff(tree.text(f) if tree.exists(f) else "", new, f) if tree.exists(f) else
                   diff("", new, f).replace(f"--- a/{f}", "--- /dev/null") for f, new in files.items())
    (report,) = check(parse_patches(text), tree, {"quota_reweight": (QuotaReweight, properties)}, Options(),
                      params={"ratio": 4})
    assert isinstance(report, CheckReport)
    (part,) = report.models
    return part


def statuses(part: ModelCheck) -> dict[str, str]:
    return {f.function: f.status for f in part.functions}


@lru_cache
def moved(tree: Tree) -> dict[str, str]:
    """update_cfs_group in a file of its own; what it calls is no longer static."""
    fair = tree.text(FAIR)
    whole = body_of(fair, NAME)
    names = ("throttled_hierarchy", "calc_group_shares", "reweight_entity", NAME)
    for name in names[:3]:
        fair = edited(fair, name, (r"\Astatic (inline )?", ""))
    heads = [re.sub(r"\s+", " ", body_of(fair, name).split("{")[0]).strip() + ";\n" for name in names[:3]]
    head = re.sub(r"\s+", " ", whole.removeprefix("static ").split("{")[0]).strip() + ";\n"
    return {FAIR: fair.replace(whole, head),
            GROUP: '#include "sched.h"\n\n' + "".join(heads) + "\n" + whole.removeprefix("static ")}


def test_a_function_is_found_in_another_file_of_the_tree(real_tree: Tree):
    files = moved(real_tree)
    assert NAME in files[FAIR] and not re.search(rf"{NAME}\([^;{{]*\)\n\{{\n\t", files[FAIR])
    read = read_function(real_tree.with_files(files), NAME, FAIR, QuotaReweight)
    assert (read.status, read.file) == ("read", GROUP), read.reason
    before = read_function(real_tree, NAME, FAIR, QuotaReweight)
    assert {(n, x.replace(GROUP, FAIR)) for n, x in read.shape} == before.shape       # but for the name of the file
    part = checked(real_tree, files)
    assert statuses(part)[NAME] == "equal"
    assert next(f.file for f in part.functions if f.function == NAME) == GROUP


def test_a_function_that_moves_and_changes_differs(tree_61: Tree):
    files = moved(tree_61)
    (new, count) = re.subn(GUARD, "", files[GROUP], flags=re.MULTILINE)
    assert count == 1
    assert statuses(checked(tree_61, {**files, GROUP: new}))[NAME] == "differs"


@pytest.mark.parametrize("how", ["renamed", "removed"])
def test_a_function_that_goes_away_is_told_and_nothing_is_equal_or_decided(real_tree: Tree, how: str):
    fair = real_tree.text(FAIR)
    new = re.sub(rf"\b{NAME}\b", "refresh_cfs_group", fair)
    if how == "removed":                           # the stub for a configuration without groups stays, and is off
        new = fair.replace(body_of(fair, NAME), "")
    read = read_function(real_tree.with_files({FAIR: new}), NAME, FAIR, QuotaReweight)
    assert read.status == "absent" and NAME in read.reason
    part = checked(real_tree, {FAIR: new}, (bounded_wait, fresh_after_tick))
    (found,) = [f for f in part.functions if f.function == NAME]
    assert found.status == "not_read" and found.detail.startswith(f"after the patch: {NAME}: no definition")
    assert {r.change for r in part.rows} == {"undecided"}
    assert all("the patch touches" in r.after.reason and NAME in r.after.reason for r in part.rows)    # type: ignore


def test_a_second_live_definition_is_told(tree_61: Tree):
    fair = tree_61.text(FAIR)
    twice = fair.replace(body_of(fair, NAME), body_of(fair, NAME) + "\n" + body_of(fair, NAME))
    read = read_function(tree_61.with_files({FAIR: twice}), NAME, FAIR, QuotaReweight)
    assert read.status == "not_executable" and "a second definition is live" in read.reason


# ------------------------------------------------------------------------------------------------- new fields
def with_field(tree: Tree, *steps: tuple[str, str]) -> dict[str, str]:
    header, count = re.subn(*FIELD, tree.text(HEADER), flags=re.MULTILINE)
    assert count == 1
    return {HEADER: header, FAIR: edited(tree.text(FAIR), NAME, *steps)}


PENDING = (GUARD, "\tif (throttled_hierarchy(gcfs_rq)) {\n\t\tgcfs_rq->reweight_pending = 1;\n\t\treturn;\n\t}\n")


def test_a_new_field_that_is_only_noted_changes_no_verdict(tree_61: Tree):
    """The stale weight is remembered, and nothing is done about it: what was refuted stays so."""
    part = checked(tree_61, with_field(tree_61, PENDING), (bounded_wait, fresh_after_tick))
    assert statuses(part)[NAME] == "differs"
    assert {r.property.name: (r.before.name, r.after.name) for r in part.rows} == {
        "bounded_wait": ("refuted", "refuted"), "fresh_after_tick": ("proved", "proved")}
    after = part.rows[0].instances[1]
    assert {"reweight_pending[qA]", "reweight_pending[qVM]"} <= set(after.variables)
    assert after.variables["reweight_pending[qA]"].domain.codes() == (0, 1)
    assert any("new in the patch, 0 at first: reweight_pending of struct cfs_rq (int)" in line
               for line in part.assumptions)
    assert len(part.assumptions) <= 6


def test_a_new_field_that_makes_the_weight_stick_is_worse(tree_61: Tree):
    """Once a group was throttled, its weight is never updated again: a tick does not mend it any more."""
    steps = (PENDING, (r"^(\tshares\s+= calc_group_shares)", "\tif (gcfs_rq->reweight_pending)\n\t\treturn;\n\\1"))
    part = checked(tree_61, with_field(tree_61, *steps), (fresh_after_tick,))
    (row,) = part.rows
    assert (row.before.name, row.after.name, row.change) == ("proved", "refuted", "worse")
    trace = row.after.trace                                                                       # type: ignore
    assert any("reweight_pending[qA]" in step.changes or "reweight_pending[qB]" in step.changes for step in trace.steps)


def test_a_new_field_that_another_function_sets_is_not_covered(tree_61: Tree):
    files = with_field(tree_61, PENDING)
    files[FAIR] = edited(files[FAIR], "tg_throttle_down", (r"^(\treturn 0;\n)", "\tcfs_rq->reweight_pending = 0;\n\\1"))
    part = checked(tree_61, files, (bounded_wait,))
    read = read_function(tree_61.with_files(files), "tg_throttle_down", FAIR, QuotaReweight).status == "read"
    assert statuses(part).get("reweight_pending", "") == ("" if read else "not_covered")
    if not read:
        assert {r.after.name for r in part.rows} == {"unknown"}
