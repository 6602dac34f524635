# SPDX-License-Identifier: GPL-2.0-only
"""The six functions of the paravirtual lock, read from real trees: what they touch, and what they do to a state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import pytest

from schedproof.errors import ModelError
from schedproof.kernel import Tree
from schedproof.kernel.compare import Side, compare
from schedproof.kernel.functions import Read, read_function, read_model
from schedproof.lang import syntax as s
from schedproof.lang.interpret import Interpreter, Oracle
from schedproof.lang.world import Key
from schedproof.suite.models.pv_wait_early import PV, SPIN_THRESHOLD, PvWaitEarly

RUNNING, HALTED, HASHED = 0, 1, 2
LOCKED, SLOW = 1, 3
N0, N1, N2 = 0, 1, 2
NULL = -1
WORD = {"locked", "pending", "tail"}

# function -> (what it reads, what it writes, what it calls), the helpers that are read with it included
TOUCHES: dict[str, tuple[set[str], set[str], set[str]]] = {
    "pv_wait_early": ({"state"}, set(), set()),
    "pv_wait_node": ({"state", "node_locked"}, {"state"}, {"pv_wait_early", "cpu_relax", "pv_wait_state"}),
    "pv_kick_node": ({"state"}, {"state", "locked"}, {"pv_hash"}),
    "pv_wait_head_or_lock": ({"state", *WORD}, {"state", "locked", "pending", "hash_lock"},
                             {"set_pending", "clear_pending", "trylock_clear_pending", "cpu_relax", "pv_hash",
                              "pv_wait_locked"}),
    "__pv_queued_spin_unlock_slowpath": ({"cpu"}, {"locked"}, {"pv_unhash", "pv_kick"}),
    "pv_hybrid_queued_unfair_trylock": (WORD, {"locked"}, {"cpu_relax"}),
}


@lru_cache(maxsize=2)
def reads(tree: Tree) -> Mapping[str, Read]:
    return read_model(tree, PvWaitEarly)


def test_the_six_functions_are_those_of_the_design():
    assert PvWaitEarly.functions == dict.fromkeys(TOUCHES, PV) and not PvWaitEarly.marks.keys() & TOUCHES.keys()
    names = {key.split("@")[0] for key in (*PvWaitEarly.vocabulary.callees, *PvWaitEarly.vocabulary.noop)}
    assert not names & TOUCHES.keys()
    assert all(PvWaitEarly.vocabulary.callees.values())


@pytest.mark.parametrize("function", TOUCHES)
def test_a_function_is_read_and_touches_what_it_should(real_tree: Tree, function: str):
    read = reads(real_tree)[function]
    assert read.status == "read" and read.file == PV, read.reason
    loads, stores, calls = TOUCHES[function]
    bodies = [p.body for p in read.programs.values()]
    found = [x for body in bodies for x in s.statements(body)]
    assert {e.var for x in found for e in s.expressions(x) if isinstance(e, s.Load)} == loads
    assert {x.var for x in found if isinstance(x, s.Store)} == stores
    assert frozenset().union(*(s.calls(body) for body in bodies)) == calls
    assert not [e for x in found for e in s.expressions(x) if isinstance(e, s.Free)]


@pytest.mark.parametrize("function", TOUCHES)
def test_a_function_equals_itself(real_tree: Tree, function: str):
    side = Side(function, {**PvWaitEarly.programs, **reads(real_tree)[function].programs})
    found = compare(PvWaitEarly.variant("v6.1", cpus=2), side, side)
    assert found.answer == "equal" and not found.within, found


@pytest.mark.parametrize("function", TOUCHES)
def test_the_two_releases_are_equal(tree_61: Tree, tree_612: Tree, function: str):
    """``cmpxchg`` here, ``try_cmpxchg`` there: that is why no switch tells them apart."""
    old, new = (Side(function, {**PvWaitEarly.programs, **reads(tree)[function].programs})
                for tree in (tree_61, tree_612))
    found = compare(PvWaitEarly.variant("v6.1", cpus=2), old, new)
    assert found.answer == "equal", found


# ------------------------------------------------------------------------------------------------ runs
class Run(Interpreter):
    """Runs on a state made by hand. ``others`` say what the other CPUs do in a callee; the calls are noted."""

    others: Mapping[str, Callable[[Run], None]]
    seen: list[tuple[object, ...]]

    def call(self, name: str, args: Sequence[int | bool], resume: tuple[tuple[str, int], ...] = (),
             frames: Sequence[Mapping[str, int | bool]] = ()) -> int | bool | None:
        if name not in PvWaitEarly.vocabulary.boundary:
            return super().call(name, args, resume, frames)
        self.seen.append((name, *args))
        if name in self.others:
            self.others[name](self)
            return None
        return super().call(name, args, resume, frames)

    def times(self, name: str) -> int:
        return sum(call[0] == name for call in self.seen)


def state(**given: int) -> dict[Key, int | bool]:
    """All nodes running, the lock free, the table empty; ``state_1=2`` sets that of n1."""
    memory: dict[Key, int | bool] = {}
    world = PvWaitEarly.variant("v6.1").world
    for name in world.variables:
        for key in world.keys(name):
            memory[key] = NULL if name.startswith("hash") else key[1] or 0 if name == "cpu" else 0
    for name, value in given.items():
        base, _, index = name.rpartition("_") if name[-1].isdigit() else (name, "", "0")
        assert (base, int(index)) in memory, name
        memory[base, int(index)] = value
    return memory


def run(tree: Tree, function: str, args: Sequence[int], memory: dict[Key, int | bool],
        **others: Callable[[Run], None]) -> tuple[Run, int | bool | None]:
    world = PvWaitEarly.variant("v6.1").with_programs(dict(reads(tree)[function].programs)).world
    made = Run(world, memory, Oracle())
    made.others, made.seen = others, []
    return made, made.run(function, args).value


@pytest.mark.parametrize("loop", range(SPIN_THRESHOLD + 1))
@pytest.mark.parametrize("ahead", [RUNNING, HALTED, HASHED])
def test_early_exit_only_where_the_mask_is_clear(real_tree: Tree, loop: int, ahead: int):
    _, value = run(real_tree, "pv_wait_early", [N1, loop], state(state_1=ahead))
    assert value == (loop % 2 == 0 and ahead != RUNNING)


def test_the_mask_is_that_of_the_tree_where_it_is_not_scaled(real_tree: Tree):
    class Unscaled(PvWaitEarly):
        vocabulary = type(PvWaitEarly.vocabulary)(constants={"SPIN_THRESHOLD": 1 << 15})
    program = read_function(real_tree, "pv_wait_early", PV, Unscaled).programs["pv_wait_early"]
    masks = {e.right.value for x in s.statements(program.body) for e in s.expressions(x)
             if isinstance(e, s.Binary) and e.op == "&" and isinstance(e.right, s.Const)}
    assert masks == {0xff}


def test_a_waiter_whose_turn_it_is_returns_at_once(real_tree: Tree):
    ran, _ = run(real_tree, "pv_wait_node", [N0, N1], state(node_locked_0=1, state_1=HALTED))
    assert ran.seen == [] and ran.memory["state", N0] == RUNNING


def passes_on(ran: Run) -> None:
    ran.memory["node_locked", N0] = 1


def hashes(ran: Run) -> None:
    """What the queue's head does that passes the lock on: pv_kick_node."""
    passes_on(ran)
    assert ran.memory["state", N0] == HALTED
    ran.memory["state", N0] = HASHED


def test_a_waiter_behind_a_halted_one_halts_without_spinning(real_tree: Tree):
    ran, _ = run(real_tree, "pv_wait_node", [N0, N1], state(state_1=HALTED), pv_wait_state=passes_on)
    assert ran.seen == [("pv_wait_state", N0, HALTED)] and ran.memory["state", N0] == RUNNING


def test_a_waiter_behind_a_running_one_spins_first(real_tree: Tree):
    ran, _ = run(real_tree, "pv_wait_node", [N0, N1], state(), pv_wait_state=passes_on)
    assert ran.seen == [("cpu_relax",)] * SPIN_THRESHOLD + [("pv_wait_state", N0, HALTED)]


def test_a_waiter_that_was_hashed_stays_so(real_tree: Tree):
    ran, _ = run(real_tree, "pv_wait_node", [N0, N1], state(state_1=HALTED), pv_wait_state=hashes)
    assert ran.memory["state", N0] == HASHED and ran.times("pv_wait_state") == 1


def test_a_spurious_wakeup_starts_again(real_tree: Tree):
    def second(ran: Run) -> None:
        if ran.times("pv_wait_state") == 2:
            passes_on(ran)
    ran, _ = run(real_tree, "pv_wait_node", [N0, N1], state(), pv_wait_state=second)
    assert ran.times("pv_wait_state") == 2 and ran.times("cpu_relax") == 2 * SPIN_THRESHOLD


def test_a_waiter_looks_again_before_it_halts(real_tree: Tree):
    def last(ran: Run) -> None:
        if ran.times("cpu_relax") == SPIN_THRESHOLD:
            passes_on(ran)
    ran, _ = run(real_tree, "pv_wait_node", [N0, N1], state(), cpu_relax=last)
    assert ran.times("pv_wait_state") == 0 and ran.memory["state", N0] == RUNNING


def test_a_waiter_that_nobody_wakes_never_returns(real_tree: Tree):
    with pytest.raises(ModelError, match="a loop goes on"):
        run(real_tree, "pv_wait_node", [N0, N1], state())


@pytest.mark.parametrize("before", [RUNNING, HALTED, HASHED])
def test_only_a_halted_waiter_is_hashed(real_tree: Tree, before: int):
    ran, _ = run(real_tree, "pv_kick_node", [0, N2], state(state_2=before, locked=LOCKED))
    halted = before == HALTED
    assert ran.memory["state", N2] == (HASHED if halted else before)
    assert ran.memory["locked", 0] == (SLOW if halted else LOCKED)
    assert ran.seen == ([("pv_hash", 0, N2)] if halted else [])
    assert (ran.memory["hash_lock", 0], ran.memory["hash_node", 0]) == ((0, N2) if halted else (NULL, NULL))


def test_the_head_takes_a_free_lock(real_tree: Tree):
    ran, value = run(real_tree, "pv_wait_head_or_lock", [0, N0], state(tail=8))
    assert ran.seen == [] and value == 8 << 16 | LOCKED
    assert (ran.memory["locked", 0], ran.memory["pending", 0]) == (LOCKED, 0)


def test_the_head_hashes_and_halts(real_tree: Tree):
    """And is woken when the lock is free: then the entry stays, for the one that unlocks removes it."""
    def unlocked(ran: Run) -> None:
        assert (ran.memory["locked", 0], ran.memory["pending", 0]) == (SLOW, 0)
        assert ran.memory["state", N0] == HASHED and ran.memory["hash_lock", 0] == 0
        ran.memory["locked", 0] = 0
    ran, value = run(real_tree, "pv_wait_head_or_lock", [0, N0], state(locked=LOCKED, tail=8), pv_wait_locked=unlocked)
    assert ran.seen == [("cpu_relax",)] * SPIN_THRESHOLD + [("pv_hash", 0, N0), ("pv_wait_locked", 0, SLOW)]
    assert value == 8 << 16 | LOCKED and ran.memory["state", N0] == RUNNING


def test_a_head_that_is_hashed_already_does_not_hash_again(real_tree: Tree):
    def unlocked(ran: Run) -> None:
        ran.memory["locked", 0] = 0
    ran, _ = run(real_tree, "pv_wait_head_or_lock", [0, N0], state(locked=SLOW, state_0=HASHED, hash_lock_1=0),
                 pv_wait_locked=unlocked)
    assert ran.times("pv_hash") == 0 and ran.times("pv_wait_locked") == 1


def test_a_lock_that_comes_free_while_the_head_hashes_is_taken(real_tree: Tree):
    """The entry is taken back, through the pointer that pv_hash has returned: here he1, for he0 is in use."""
    def free(ran: Run) -> None:
        if ran.times("cpu_relax") == SPIN_THRESHOLD:
            ran.memory["locked", 0] = 0
    memory = state(locked=LOCKED, hash_lock_0=0, hash_node_0=N1)
    ran, value = run(real_tree, "pv_wait_head_or_lock", [0, N0], memory, cpu_relax=free)
    assert value == LOCKED and ran.times("pv_wait_locked") == 0
    assert (ran.memory["hash_lock", 0], ran.memory["hash_lock", 1]) == (0, NULL) and ran.memory["hash_node", 1] == N0


def test_the_unlocker_wakes_the_one_that_is_hashed(real_tree: Tree):
    ran, _ = run(real_tree, "__pv_queued_spin_unlock_slowpath", [0, SLOW],
                 state(locked=SLOW, pending=1, hash_lock_0=0, hash_node_0=N2))
    assert ran.seen == [("pv_unhash", 0), ("pv_kick", N2)]
    assert (ran.memory["locked", 0], ran.memory["pending", 0]) == (0, 1)
    assert ran.memory["hash_lock", 0] == NULL and [ran.memory["kicked", n] for n in (N0, N1, N2)] == [0, 0, 1]


def test_a_value_that_is_not_slow_is_left(real_tree: Tree):
    ran, _ = run(real_tree, "__pv_queued_spin_unlock_slowpath", [0, LOCKED], state(locked=LOCKED))
    assert ran.seen == [] and ran.memory["locked", 0] == LOCKED


def test_an_unlocker_that_finds_no_entry_is_a_fault(real_tree: Tree):
    with pytest.raises(ModelError, match="NULL"):
        run(real_tree, "__pv_queued_spin_unlock_slowpath", [0, SLOW], state(locked=SLOW))


@pytest.mark.parametrize(("word", "value"), [
    (dict(), True), (dict(tail=4), True), (dict(pending=1), False), (dict(pending=1, tail=4), False),
    (dict(locked=LOCKED), False), (dict(locked=LOCKED, pending=1, tail=4), False), (dict(locked=SLOW), False)])
def test_stealing(real_tree: Tree, word: dict[str, int], value: bool):
    ran, found = run(real_tree, "pv_hybrid_queued_unfair_trylock", [0], state(**word))
    assert found == value and ran.seen == []
    assert ran.memory["locked", 0] == (LOCKED if value else word.get("locked", 0))
    assert ran.memory["tail", 0] == word.get("tail", 0) and ran.memory["pending", 0] == word.get("pending", 0)


def test_a_newcomer_stays_unfair_while_the_head_does_not_spin(real_tree: Tree):
    def third(ran: Run) -> None:
        if ran.times("cpu_relax") == 3:
            ran.memory["locked", 0] = 0
    ran, found = run(real_tree, "pv_hybrid_queued_unfair_trylock", [0], state(locked=LOCKED, tail=4), cpu_relax=third)
    assert found and ran.times("cpu_relax") == 3 and ran.memory["locked", 0] == LOCKED
