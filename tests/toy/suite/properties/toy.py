# SPDX-License-Identifier: GPL-2.0-only
"""What the toy claims."""

from schedproof.property import Invariant, Property, Within
from schedproof.suite.models.toy import Fine, Toy


def waiting(self):
    return True


short_wait = Property(
    "short_wait", Toy, "A task that is ready runs again within five ticks.", Within(5, waiting, "ms"),
    facts="T1", holds=("v1+repaired",), fails=("v1", "v1+forever"), headline=True)

sane = Property(
    "sane", Toy, "Nothing strange is ever seen.", Invariant(waiting), facts="T2, T3", holds=("v1", "v2"),
    fails=("v1+break_it",))

fine_sane = Property("fine_sane", Fine, "The same at the finer grain.", Invariant(waiting), holds=("v9",))
