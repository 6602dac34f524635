# SPDX-License-Identifier: GPL-2.0-only
from schedproof.property import Invariant, Property, Within
from schedproof.suite.models.gate import Gate


def waits(m):
    return m.waiting[m.gate.g]


def not_negative(m):
    return m.count[m.gate.g] >= 0


soon = Property("soon", Gate, "Who waits is let through within three milliseconds.", Within(3, waits, "ms"),
                holds=("v6.1",), why="The gate was not opened again.")
counted = Property("counted", Gate, "The count is never negative.", Invariant(not_negative), holds=("v6.1",))
