# SPDX-License-Identifier: GPL-2.0-only
"""Runs of functions that are not atomic on the plain interpreter: whether a difference that was told is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from schedproof.errors import ModelError
from schedproof.kernel.arena import RESULT, Arena, Comparison, Side, Step
from schedproof.kernel.lockstep import Walk
from schedproof.lang.interpret import Blocked, Interpreter, Oracle
from schedproof.lang.world import Key
from schedproof.model.instance import Instance

Site = tuple[tuple[str, int], ...]


class _Answered(Interpreter):
    """Callees without effect answer what the difference says that they do."""

    answers: Mapping[Any, int | bool]
    pure: frozenset[str]
    visible: frozenset[str]

    def call(self, name: str, args: Sequence[int | bool], resume: Site = (),
             frames: Sequence[Mapping[str, int | bool]] = ()) -> int | bool | None:
        if name not in self.pure:
            return super().call(name, args, resume, frames)
        seen = tuple(int(v) for v in (*args, *(v for k, v in self.memory.items() if k[0] in self.visible)))
        return self.answers.get((name, seen), 0)


def _step(walk: Walk, side: int, step: Step, site: Site, frames: Sequence[Mapping[str, int | bool]],
          ) -> tuple[tuple[object, ...], Site, Sequence[Mapping[str, int | bool]]]:
    """What can be told from outside of one step, and where it ends."""
    world = walk.arena.worlds[side]
    memory: dict[Key, int | bool] = {key: step.input[world.name(key)] for key in walk.arena.heap}
    run = _Answered(world, memory, Oracle())
    run.answers, run.pure, run.visible = step.answers, walk.arena.pure, walk.written
    function = walk.sides[side]
    try:
        if site:
            last = {RESULT: step.input[RESULT]} if RESULT in step.input else frames[-1]
            done = run.run(function.name, [], site, [*frames[:-1], last])
        else:
            done = run.run(function.name, [step.input[f"arg {p}"] for p in function.programs[function.name].params])
    except ModelError:
        return ("fault",), (), ()
    except Blocked:
        return ("waits",), (), ()
    state = tuple(sorted((world.name(k), int(v)) for k, v in done.memory.items()))
    if not done.site:
        return ("ends", state, done.value), (), ()
    program = done.site[-1][0]
    if program in walk.arena.blocking:
        args = tuple(int(done.frames[-1][p]) for p in world.programs[program].params)
        return ("calls", program, args, state), done.site, done.frames
    return ("may be interrupted", state), done.site, done.frames


def really_differs(instance: Instance, left: Side, right: Side, found: Comparison) -> bool:
    """Whether the two sides do the same in all steps of a difference but the last, and differ in that."""
    walk = Walk(Arena(instance, left, right, True), left, right)
    here: list[tuple[Site, Sequence[Mapping[str, int | bool]]]] = [((), ()), ((), ())]
    for number, step in enumerate(found.steps):
        ends = [_step(walk, side, step, *here[side]) for side in (0, 1)]
        if number == len(found.steps) - 1:
            return ends[0][0] != ends[1][0]
        if ends[0][0] != ends[1][0] or not ends[0][1] or not ends[1][1]:
            return False
        here = [(site, frames) for _, site, frames in ends]
    return False
