# SPDX-License-Identifier: GPL-2.0-only
"""A sample of ``make campaign-edits``: edits that keep the meaning of real functions raise no alarm."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.campaigns.equal_edits import RULES, chosen, edits_of, subjects
from tests.loading import need

SAMPLE = 24

FUNCTION = """\
static int f(struct box *b, int n)
{
	int total = n;
	int i = 0;

	while (i < n && b->on) {
		total += i;
		i++;
	}
	for (i = 0; i != 3; i++) {
		if (!b->on)
			b->count = b->count + g(i);
	}
	if (b->on && n > 4)
		total -= 2;
	else
		total = b->count * total;
	if (n == 7 && total)
		b->count = 0;
	return total;
}
"""


def test_every_rule_finds_something_and_changes_the_text():
    found = edits_of(FUNCTION)
    assert set(found) == {rule.__name__ for rule in RULES} | {"renamed"}
    for texts in found.values():
        assert all(t != FUNCTION for t in texts) and len(set(texts)) == len(texts)


RUN = """
#include <stdbool.h>
#include <stdio.h>
struct box { bool on; int count; };
static int g(int i) { return 5 * i + 1; }
%s
int main(void)
{
	for (int on = 0; on < 2; on++)
		for (int n = -3; n < 12; n++)
			for (int c = -2; c < 3; c++) {
				struct box b = { on, c };
				int r = f(&b, n);

				printf("%%d %%d %%d\\n", r, b.on, b.count);
			}
	return 0;
}
"""


def test_the_edits_keep_the_meaning(tmp_path: Path):
    """Each edit of a function of ours, compiled and run on 150 inputs, gives what the function itself gives."""
    need("gcc")

    def run(function: str, name: str) -> str:
        (tmp_path / f"{name}.c").write_text(RUN % function)
        subprocess.run(["gcc", "-O1", "-o", tmp_path / name, tmp_path / f"{name}.c"], check=True, capture_output=True)
        return subprocess.run([tmp_path / name], check=True, capture_output=True, text=True).stdout

    wanted = run(FUNCTION, "itself")
    for rule, texts in edits_of(FUNCTION).items():
        for i, text in enumerate(texts[:4]):
            assert run(text, f"{rule}{i}") == wanted, text


def test_a_sample_of_edits_of_real_functions_is_equal(tree_61: object, tree_612: object,
                                                     monkeypatch: pytest.MonkeyPatch):
    """No alarm, and at least 95 in 100 equal; the whole run is in docs/campaigns.md."""
    for tree in (tree_61, tree_612):
        monkeypatch.setenv("SCHEDPROOF_TREES", str(Path(tree.path).parent))              # type: ignore[attr-defined]
    found = [subject.ask(rule, new) for subject, rule, new in chosen(subjects()[::3], SAMPLE, "sample")]
    assert len(found) == SAMPLE
    assert not [row for row in found if row.answer == "differs"]
    assert sum(row.answer.startswith("equal") for row in found) >= 0.95 * SAMPLE, found
