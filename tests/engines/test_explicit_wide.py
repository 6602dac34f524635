# SPDX-License-Identifier: GPL-2.0-only
"""States of several words: the same answers as for the narrow instance that they are made from."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from schedproof.engines import decide
from schedproof.engines.explicit import kernels as k
from schedproof.engines.explicit.compile import MOST_WORDS, CannotCompile, compile_instance
from schedproof.engines.explicit.engine import Explicit
from schedproof.engines.explicit.layout import lay_out
from schedproof.engines.explicit.search import Meter, explore
from schedproof.errors import ModelError
from schedproof.property import AlwaysPossible, Eventually, Invariant, Property, Within, WorstCase
from schedproof.replay import replay
from tests.engines.handmade import (
    Handmade,
    by_name,
    end,
    graph,
    number,
    prop,
    pv_queue,
    rule,
    term,
    truth,
    value_of,
    values,
    walk,
)
from tests.engines.test_agreement import untold
from tests.engines.test_explicit_worst_case import CLASSES, COUNT, EDGES, waits_at
from tests.loading import model_of

ENGINE = Explicit(trace_maker=untold)
YES = z3.BoolVal(True)


def padded(instance: Handmade, pads: int, of: str) -> Handmade:
    """The instance with numbers of 40 bits that hang on one of its variables, spread among the others."""
    extra = [number(f"pad{i}", 0, (1 << 40) - 1) for i in range(pads)]
    moves = [replace(t, updates={**t.updates, **{p.name: pad(term(t.updates[of]), i) for i, p in enumerate(extra)}})
             if of in t.updates else t for t in instance.transitions]
    mixed, rest = [], list(extra)
    for i, variable in enumerate(instance.variables.values()):
        mixed.append(variable)
        if i % 3 == 2 and rest:
            mixed.append(rest.pop())
    first = tuple({**s, **{p.name: value_of(pad(term(s[of]), i), {}, {}) for i, p in enumerate(extra)}}
                  for s in instance.initial)
    return replace(instance, variables=by_name(*mixed, *rest), transitions=tuple(moves), initial=first)


def pad(value: Any, i: int) -> Any:
    return value * (1_000_003 + i) + i


def searched(instance: Handmade) -> Any:
    compiled = compile_instance(instance.variables, instance.transitions, [], initial=instance.initial,
                                most_words=MOST_WORDS)
    return explore(compiled, [compiled.pack(s) for s in instance.initial], Meter(None, 1 << 30, None))


@pytest.mark.parametrize(("pads", "words"), [(1, 2), (2, 2), (4, 4)])
def test_the_counts_are_those_of_the_narrow_instance(pads, words):
    space = searched(padded(pv_queue(4), pads, "loc0"))
    assert space.compiled.layout.words == words
    assert (space.count, int(space.info[k.TRANSITIONS]), space.event) == (84_015, 431_412, k.DONE)
    assert searched(pv_queue(4)).compiled.folding is None
    back = {tuple(space.compiled.unpack(int(w)).values()) for w in space.states[:space.count]}
    assert len(back) == space.count


def test_parts_that_states_share_are_kept_once():
    """Where the words vary by themselves, what is kept besides is far less than what the states are."""
    left, right = number("left", 0, 1 << 40), number("right", 0, 1 << 40)
    rules = [rule(f"{v.name}", v.term < 300, {v.name: v.term + 1}) for v in (left, right)]
    space = searched(Handmade(by_name(left, right), ({"left": 0, "right": 0},), tuple(rules)))
    assert space.count == 301 * 301 and space.compiled.held < 100_000


def test_a_run_of_a_wide_instance_is_one_by_z3():
    instance = padded(pv_queue(3), 3, "pos0")
    loc = [instance.variables[f"loc{i}"].term for i in range(3)]
    two_halted = z3.And(loc[1] == 2, loc[2] == 2)
    found, narrow = (ENGINE.find(i, prop(Invariant(z3.Not(two_halted)))) for i in (instance, pv_queue(3)))
    assert found.outcome == narrow.outcome == "refuted"
    assert value_of(two_halted, instance.variables, end(instance, found.path)) is True
    assert [t.label for t in found.path.stem] == [t.label for t in narrow.path.stem]


@settings(max_examples=25, deadline=None)
@given(EDGES, st.sets(st.integers(0, COUNT - 1)), CLASSES)
def test_waits_and_goals_are_those_of_the_narrow_instance(edges, chosen, fair):
    narrow = graph([*edges, *((s, COUNT, 0) for s in range(COUNT)), (COUNT, COUNT, 1)], COUNT + 1, fair=fair)
    wide = padded(narrow, 2, "at")
    picked = waits_at(narrow, chosen)
    for kind in (WorstCase(picked, "ms"), Within(3, picked, "ms"), Eventually(picked), AlwaysPossible(picked),
                 Eventually(picked, narrow.variables["at"].term == 1)):
        one, other = (ENGINE.find(i, prop(kind)) for i in (narrow, wide))
        assert (one.outcome, one.worst, one.starved) == (other.outcome, other.worst, other.starved)
        if other.path is not None:
            walk(wide, other.path)
            assert [t.label for t in other.path.stem] == [t.label for t in one.path.stem]


def test_every_kind_of_domain_in_every_word():
    many = [number(f"n{i}", -5, 1 << 30) for i in range(4)]
    some = [values(f"v{i}", 7, -1, 1 << 40) for i in range(4)]
    flags = [truth(f"t{i}") for i in range(4)]
    everything = by_name(*(x for group in zip(many, some, flags, strict=True) for x in group))
    first = {n: (False if n[0] == "t" else 7 if n[0] == "v" else -5) for n in everything}
    rules = [rule(f"{n.name}", z3.Not(t.term), {t.name: True, v.name: z3.If(n.term < 0, z3.IntVal(-1), v.term),
                                                n.name: (1 << 30) - i}) for i, (n, v, t) in
             enumerate(zip(many, some, flags, strict=True))]
    instance = Handmade(everything, (first,), tuple(rules))
    assert lay_out(everything, instance.transitions, (first,), MOST_WORDS).words == 4     # 31 + 2 + 1 bits in each
    space = searched(instance)
    assert space.count == 16                                   # which of the four have happened
    last = space.compiled.unpack(int(space.states[15]))
    assert last == {**{f"n{i}": (1 << 30) - i for i in range(4)}, **{f"v{i}": -1 for i in range(4)},
                    **{f"t{i}": True for i in range(4)}}
    for place in range(space.count):
        state = space.compiled.unpack(int(space.states[place]))
        assert space.compiled.pack(state) == space.states[place]


def test_faults_of_a_wide_model_are_told():
    instance = padded(graph([(0, 1, 1), (1, 1, 1)], 3), 2, "at")
    out = replace(instance, transitions=(replace(instance.transitions[0], updates={
        **instance.transitions[0].updates, "pad1": z3.IntVal(-1)}), instance.transitions[1]))
    with pytest.raises(ModelError, match="sets pad1 to -1, which is not in its domain"):
        ENGINE.find(out, prop(Invariant(YES)))
    stuck = replace(padded(graph([(0, 1, 1)], 3, final=False), 2, "at"))
    with pytest.raises(ModelError, match="nothing can happen in the reachable state .*at=1"):
        ENGINE.find(stuck, prop(Invariant(YES)))
    wrong = replace(instance, initial=({**instance.initial[0], "pad1": -3},))
    with pytest.raises(ModelError, match="the initial value of pad1 is -3"):
        ENGINE.find(wrong, prop(Invariant(YES)))


def test_the_memory_of_the_parts_counts():
    found = Explicit(memory=2_000_000, trace_maker=untold).find(padded(pv_queue(4), 2, "loc0"), prop(Invariant(YES)))
    assert found.outcome == "unknown" and "more than the ceiling" in found.reason


def test_what_only_reads_words_refuses_several():
    with pytest.raises(CannotCompile, match="more than the 63 of one word"):
        compile_instance(padded(pv_queue(3), 2, "loc0").variables, (), [])


MODEL = """\
class M(Model):
    obj = Object("struct o", "p", "q")
    clock = Range(0, 20000)
    seen = Range(0, 20000, per=obj)
    twice = Range(0, 20000, per=obj)
    asleep = Bool()
    releases = {"v1": {}}

    @action(cost={"ms": 1})
    def tick(self):
        require(self.clock < 4)
        self.clock += 1

    @action(cost={"ms": 1})
    def again(self):
        require(self.clock == 4)
        self.clock = 0

    @action(per=obj, fair="strong")
    def look(self, me):
        require(self.clock > 2)
        self.seen[me] = self.clock * 3001
        self.twice[me] = self.seen[me] + self.clock
        self.asleep = not self.asleep


def sleeps(m):
    return m.asleep

def never_both(m):
    return m.seen[m.obj.p] != 9003 or m.seen[m.obj.q] != 12004

def both(m):
    return m.seen[m.obj.p] == 12004 and m.seen[m.obj.q] == 12004
"""


def test_a_wide_model_against_the_reference_engine():
    model = model_of(MODEL)
    module, instance = sys.modules[model.__module__], model.variant("v1")
    assert lay_out(instance.variables, instance.transitions, instance.initial, MOST_WORDS).words == 2
    for kind in (Invariant(module.never_both), WorstCase(module.sleeps, "ms"), Eventually(module.both),
                 Eventually(module.sleeps), AlwaysPossible(module.both)):
        asked = Property("p", model, "", kind)
        found: Any = decide(instance, asked, "explicit")
        plain = decide(instance, asked, "reference")
        assert (found.name, found.worst_case) == (plain.name, plain.worst_case), kind
        if not isinstance(kind, Invariant):
            assert found.counts.states == plain.counts.states
        if found.name == "refuted":
            assert replay(found.trace, instance, asked).name == "refuted"
