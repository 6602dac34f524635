# SPDX-License-Identifier: GPL-2.0-only
"""A sample of the fuzz of the reader, one input in twenty, with a seed of its own; and small cases by Hypothesis.

The whole of it is ``make campaign-fuzz`` (tests/campaigns/fuzz_reader.py).
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedproof.errors import SchedproofError
from schedproof.kernel import Tree, read
from schedproof.kernel.patch import apply, parse_patches
from tests.campaigns.fuzz import mutate, patches, trees
from tests.campaigns.fuzz.runs import Outcome, guarded
from tests.campaigns.fuzz_reader import PLAN, ROOT, Worker, listing

SEED = "sample"
SIZE = {kind: count // 20 for kind, count in PLAN.items()}
RUN = {"generated": 0.6, "odd": 0.3, "pairs": 0.6, "patches": 0.2, "damaged": 0.2, "trees": 0.0}      # of the inputs


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    import z3
    yield Worker(tmp_path_factory.mktemp("fuzz"), SEED, ["damaged"] if os.environ.get("SCHEDPROOF_TREES") else [])
    z3.set_param("timeout", 4294967295)                 # Z3's own default: what comes after is not to be cut short


@pytest.mark.parametrize("kind", PLAN)
def test_only_documented_errors_come_out(kind: str, worker: Worker, tmp_path: Path):
    """And nothing hangs, no value is wrong, nothing is written outside of a temporary folder."""
    if kind == "damaged" and not worker.subjects:
        give_up = pytest.fail if os.environ.get("SCHEDPROOF_REQUIRE_TREES") else pytest.skip
        give_up("SCHEDPROOF_TREES names no kernel trees")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.c").write_text("int x;\n")
    worker.folder = tmp_path
    before = listing(Path(worker.tree.path))
    done = worker.chunk(kind, 0, SIZE[kind])
    assert not done.findings
    assert (done.inputs, listing(Path(worker.tree.path))) == (SIZE[kind], before)
    assert done.executed >= RUN[kind] * SIZE[kind], (done.executed, done.refused)


def test_the_watch_sees_what_is_written(tmp_path: Path):
    """In a process of its own: a hook stays for good."""
    code = """if True:
        import subprocess, sys
        from pathlib import Path
        from tests.campaigns.fuzz_reader import Watch
        folder = Path(sys.argv[1])
        watch = Watch(folder / "inside")
        sys.addaudithook(watch)
        (folder / "inside").mkdir()
        watch.on = True
        (folder / "inside" / "a").write_text("x")
        subprocess.run(["git", "--version"], capture_output=True)
        assert not watch.seen
        (folder / "b").write_text("x")
        (folder / "b").unlink()
        subprocess.run(["true"])
        watch.on = False
        print(*watch.seen, sep="\\n")
    """
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True,
                          cwd=ROOT)
    assert done.stdout.splitlines() == [f"open {tmp_path / 'b'}", f"os.remove {tmp_path / 'b'}", "runs true"]


def test_a_fault_becomes_a_finding():
    """The oracle itself: what is no documented error, what takes too long, a message of two lines."""
    import time
    for raised, kind in ((KeyError("x"), "error"), (MemoryError(), "memory"), (SchedproofError("a\nb"), "message")):
        outcome = Outcome()
        with guarded(outcome):
            raise raised
        assert outcome.findings[0].startswith(f"{kind}:")
    outcome = Outcome()
    with guarded(outcome, 0.1):
        begin = time.monotonic()
        while time.monotonic() < begin + 20:
            pass
    assert outcome.findings[0].startswith("hang:")
    outcome = Outcome()
    with guarded(outcome):
        raise SchedproofError("fine")
    assert not outcome.findings and outcome.refused == "fine"


# ------------------------------------------------------------------------------------------------ Hypothesis
PIECES = st.sampled_from((*mutate.OPERATORS, *mutate.NUMBERS, *mutate.WORDS, *mutate.LINES, "x", "n", "(", ")", "{",
                          "}", "\n", " ", "\udcff", "\"", "#"))


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.lists(PIECES, max_size=25))
def test_any_tokens_are_read_or_refused(worker: Worker, found: list[str]):
    text = f"int f(int x, int n)\n{{\n\tx = n;\n\t{' '.join(found)};\n\treturn x;\n}}\n"
    outcome = Outcome()
    with guarded(outcome):
        read(worker.tree.with_files({"kernel/sched/gen.c": text}), "f", "kernel/sched/gen.c")
    assert not outcome.findings, text


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.lists(st.sampled_from((*mutate.HEADERS, " int x;", "-int x;", "+int y;", "")), max_size=12), st.booleans())
def test_any_lines_are_a_patch_or_refused(worker: Worker, lines: list[str], mail: bool):
    text = ("Subject: x\n\n" if mail else "") + "\n".join(lines)
    outcome = Outcome()
    with guarded(outcome):
        apply(worker.tree, parse_patches(text))
    assert not outcome.findings, text


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 1 << 30))
def test_a_patch_made_by_program_applies(tmp_path_factory: pytest.TempPathFactory, seed: int):
    tree: Tree = trees.plain(tmp_path_factory.mktemp("tree"))
    made = patches.series(random.Random(seed))
    if "@@" in made.text or "rename" in made.text:
        after = apply(tree, parse_patches(made.text))
        for file, wanted in made.after.items():
            assert (after.text(file) if after.exists(file) else None) == wanted
