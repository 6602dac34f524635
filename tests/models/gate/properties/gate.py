# SPDX-License-Identifier: GPL-2.0-only
from schedproof.property import Invariant, Property, Within
from schedproof.suite.models.gate import Gate


def waits(m):
    return m.waiting[m.gate.g]


def shut_or_fresh(m):
    """An open gate at the end of a beat has let nobody through."""
    return not m.waiting[m.gate.g] or m.phase < 2 or not m.open[m.gate.g] or m.count[m.gate.g] >= 0


soon = Property("soon", Gate, "Who waits is let through within three milliseconds.", Within(3, waits, "ms"),
                holds=("v6.1",), why="The gate was not opened again.")
counted = Property("counted", Gate, "The count is never negative.", Invariant(shut_or_fresh), holds=("v6.1",))
