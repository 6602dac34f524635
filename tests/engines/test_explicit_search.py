# SPDX-License-Identifier: GPL-2.0-only
"""The search finds every state, once, by the shortest way, and keeps to its budgets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from schedproof.engines.explicit import jit
from schedproof.engines.explicit import kernels as k
from schedproof.engines.explicit.compile import compile_instance
from schedproof.engines.explicit.engine import Explicit
from schedproof.engines.explicit.search import Meter, explore
from schedproof.property import Invariant
from schedproof.verdict import Unknown
from tests.engines.handmade import Handmade, by_name, graph, number, prop, pv_queue, reach, rule

ROOT = Path(__file__).parents[2]
ANY = 1_500_000_000
PROBE = """
from tests.engines.handmade import pv_queue, prop
from schedproof.engines.explicit.engine import Explicit
from schedproof.property import Invariant
import z3
found = Explicit().find(pv_queue(3), prop(Invariant(z3.BoolVal(True))))
print(found.outcome, found.counts.states)
"""


def search(instance: Handmade, predicates=(), **options):
    compiled = compile_instance(instance.variables, instance.transitions, list(predicates))
    return explore(compiled, [compiled.layout.pack(s) for s in instance.initial], Meter(None, ANY, None), **options)


def test_the_pv_queue_of_five_has_the_counts_of_spin():
    space = search(pv_queue(5))
    assert (space.count, int(space.info[k.TRANSITIONS])) == (3_012_971, 19_749_045)
    assert space.event == k.DONE
    assert space.size / space.count < 32


EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.just(0)), max_size=25)


@settings(max_examples=40, deadline=None)
@given(EDGES)
def test_the_states_and_their_distances_are_those_of_a_plain_search(edges):
    instance = graph(edges, 10)
    space = search(instance)
    found = {tuple(space.compiled.layout.unpack(int(space.states[p])).values()): len(space.line(p)) - 1
             for p in range(space.count)}
    assert found == reach(instance)
    assert space.depth == max(found.values())
    for place in range(space.count):
        word, numbers = space.way(place)
        state = space.compiled.layout.unpack(word)["at"]
        for n in numbers:
            assert edges[n][0] == state
            state = edges[n][1]
        assert space.compiled.layout.pack({"at": state}) == space.states[place]


def test_several_initial_states_and_doubles_among_them():
    at = number("at", 0, 9)
    instance = Handmade(by_name(at), ({"at": 7}, {"at": 3}, {"at": 7}), (rule("up", at.term < 9, {"at": at.term + 1}),))
    space = search(instance, [at.term == 9], may_stick=1)
    assert sorted(int(s) for s in space.states[:space.count]) == [3, 4, 5, 6, 7, 8, 9]
    assert space.depth == 3                # 6 is three steps from 3; 9 two from 7


def test_tables_grow_without_losing_a_state():
    x, y = number("x", 0, 400), number("y", 0, 400)
    rules = [rule("x", x.term < 400, {"x": x.term + 1}), rule("y", y.term < 400, {"y": y.term + 1}),
             rule("back", True, {"x": 0, "y": 0})]
    space = search(Handmade(by_name(x, y), ({"x": 0, "y": 0},), tuple(rules)))
    words = space.states[:space.count]
    assert space.count == 401 * 401 == len(set(words.tolist()))
    assert int(space.info[k.TRANSITIONS]) == 401 * 400 * 2 + 401 * 401
    assert all(k.look_up(space.table, space.states, words[p]) == p for p in range(0, space.count, 37))
    assert k.look_up(space.table, space.states, (1 << 40) + 5) == -1


def test_a_spent_budget_is_unknown_with_the_counts_so_far():
    verdict = Explicit().decide(pv_queue(5), prop(Invariant(z3.BoolVal(True))), budget=0.3)
    assert isinstance(verdict, Unknown)
    assert "budget of 0.3 s" in verdict.reason
    assert 0 < verdict.counts.states < 3_012_971


def test_too_little_memory_is_unknown_with_the_counts_so_far():
    verdict = Explicit(memory=1_500_000).decide(pv_queue(4), prop(Invariant(z3.BoolVal(True))))
    assert isinstance(verdict, Unknown)
    assert "more than the ceiling of 0.00 GB" in verdict.reason
    assert verdict.counts.states > 0


def test_progress_is_told_while_the_search_goes_on():
    told = []
    verdict = Explicit().decide(pv_queue(5), prop(Invariant(z3.BoolVal(True))), progress=told.append)
    states = [c.states for c in told]
    assert states and states == sorted(states) and states[-1] <= verdict.counts.states
    assert len(told) <= verdict.counts.seconds / 0.4 + 2


def run_probe(**environment: str) -> str:
    env = {n: v for n, v in os.environ.items() if n not in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")}
    found = subprocess.run([sys.executable, "-B", "-c", PROBE], cwd=ROOT, capture_output=True, text=True, check=False,
                           env={**env, "PYTHONPATH": str(ROOT), **environment})
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_compiled_loops_are_kept_in_the_one_cache_folder(tmp_path):
    assert run_probe(XDG_CACHE_HOME=str(tmp_path)).startswith("proved")
    kept = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.nbc")}
    assert any("expand" in p.name for p in kept)
    assert all("schedproof/numba" in str(p) for p in kept)
    run_probe(XDG_CACHE_HOME=str(tmp_path))
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.nbc")} == kept, "the second process compiled again"


def test_without_a_place_for_the_cache_it_works_all_the_same(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    assert run_probe(XDG_CACHE_HOME=str(tmp_path / "file")).startswith("proved")


def test_no_cache_folder_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    @jit.compiled
    def twice(x):
        return 2 * x

    assert twice(21) == 42


@pytest.mark.parametrize("count", [1, 2])
def test_small_queues_have_the_states_of_a_plain_search(count):
    instance = pv_queue(count, spin_limit=1)
    assert search(instance).count == len(reach(instance))
