# SPDX-License-Identifier: GPL-2.0-only
"""Which locals of a thread no longer matter at a site: they are not kept in its state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import z3

from schedproof.errors import ModelError, NotExecutable
from schedproof.lang import terms as t
from schedproof.lang.execute import runs
from schedproof.lang.world import Key

if TYPE_CHECKING:
    from schedproof.model.instance import Instance


def never_read(instance: Instance, method: str, args: tuple[int, ...], site: str) -> frozenset[str]:
    """The saved locals that make no difference from a site on: each is an unknown, and in no result."""
    threads = instance.threads
    unknown: dict[Key, Any] = {}
    ranges = dict(instance.ranges)
    for variable in {v for frame in threads.saved[method, site] for _, v in frame if v}:
        domain, name = threads.variables[variable][1], f"{variable}?"
        unknown[variable, args[0]] = z3.Bool(name) if domain.sort == "Bool" else z3.Int(name)
        codes = domain.codes()
        if domain.sort != "Bool" and codes is not None:
            ranges[name] = (min(codes), max(codes))
    threads.unread[method, args, site] = frozenset()             # while it is being found out
    event = next(e for e in instance.events if (e.action, e.args) == (method, args))
    heap = {**instance.heap, **instance.current(event)}
    frames = threads.frames(method, args, site, args[0], unknown, {})
    try:
        results = runs(instance.world, ranges, method, [], heap, threads.sites[method][site], frames)
    except (ModelError, NotExecutable):
        return frozenset()
    terms = [x for result in results for x in threads.outcome(method, result)]
    used = t.constants_of([x for x in terms if not isinstance(x, bool | int)])
    return frozenset(v for (v, _), constant in unknown.items() if constant.decl().name() not in used)
