# SPDX-License-Identifier: GPL-2.0-only
"""The placement on real trees: the cases of wake-affine, and the patch of July 2019 made by program on their texts."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

import pytest

from schedproof import cli
from schedproof.engines import decide
from schedproof.kernel import Tree
from schedproof.registry import properties
from schedproof.suite.models.wake_affine import WakeAffine
from tests.kernel.smallc import FAIR, edited, sides

WAKE = {p.name: p for p in properties("wake_affine")}
TEST = (r"int factor = __this_cpu_read\(sd_llc_size\);",
        r"\g<0>\n\n\tif (p->flags & 0x08)\n\t\treturn 1;\n")          # another bit than the model's
PREV_IDLE = (r"if \(available_idle_cpu\(prev_cpu\)\)\n\t\treturn prev_cpu;\n", "")


def verdicts(tree: Tree, names: tuple[str, ...], function: str, *steps: Any) -> list[tuple[str, ...]]:
    """The verdicts on a function of the tree's C, before and behind an edit of it."""
    found = []
    release = "v6.12" if tree.version() >= (6, 12, 0) else "v6.1"
    for side in sides(tree, WakeAffine, function, *steps):
        one = WakeAffine.variant(release, tasks=3).with_programs(side.programs)
        assert function in one.sources
        found.append(tuple(decide(one, WAKE[name]).name for name in names))
    return found


def test_the_patch_on_the_texts(real_tree: Tree):
    """It keeps a flagged wakee where it was, whichever bit it takes; a helper is still pulled to the vCPU's CPU."""
    names = ("flagged_not_pulled", "helper_not_pulled", "others_as_before", "wide_is_monotone")
    before, after = verdicts(real_tree, names, "wake_wide", TEST)
    assert before == ("refuted", "refuted", "proved", "proved")
    assert after == ("proved", "refuted", "proved", "proved")


def test_an_idle_previous_cpu(real_tree: Tree):
    """WK02 is repaired in both trees; without the repair it is there again."""
    before, after = verdicts(real_tree, ("idle_prev_kept", "bystander_is_no_waker"), "wake_affine_idle", PREV_IDLE)
    assert before == ("proved", "refuted") and after == ("refuted", "refuted")


@pytest.mark.parametrize(("flips", "wide"), [((4, 16), 1), ((4, 15), 0), ((3, 100), 0)])
def test_the_values_of_wake_wide(flips, wide):
    """Of the facts: with four CPUs in a cache, 4 and 16 flips are wide, 4 and 15 are not, 3 and 100 are not."""
    import z3

    from schedproof.model.function import all_inputs

    run = all_inputs(WakeAffine.variant("v6.1", cpus=4), "wake_wide", ["task1"])
    pairs = [(run.before[f"wakee_flips[task{i}]"], z3.IntVal(n)) for i, n in enumerate(flips)]
    pairs += [(run.before["current"], z3.IntVal(0)), (run.before["this_cpu"], z3.IntVal(0))]
    assert run.value is not None
    assert z3.simplify(z3.substitute(run.value, *pairs)).as_long() == wide


def test_a_patch_that_no_property_runs_is_undecided(tmp_path: Path, real_tree: Tree,
                                                    capsys: pytest.CaptureFixture[str]):
    """wake_affine_weight is read and compared, and the lemmas keep its method: they know nothing of a change."""
    old = real_tree.text(FAIR)
    new = edited(old, "wake_affine_weight", (r"this_eff_load < prev_eff_load", "this_eff_load > prev_eff_load"))
    (tmp_path / "x.patch").write_text("".join(difflib.unified_diff(
        old.splitlines(True), new.splitlines(True), f"a/{FAIR}", f"b/{FAIR}")))
    code = cli.main(["check", str(tmp_path / "x.patch"), "--tree", str(real_tree.path), "--model", "wake_affine",
                     "--json"])
    [model] = json.loads(capsys.readouterr().out)["patches"][0]["models"]
    assert code == 3
    assert {f["function"]: f["status"] for f in model["functions"]} == {
        "wake_affine": "not_covered", "wake_affine_weight": "not_covered"}
    assert {p["change"] for p in model["properties"]} == {"undecided"}
    assert any("run by no property: wake_affine, wake_affine_weight" in line for line in model["assumptions"])
