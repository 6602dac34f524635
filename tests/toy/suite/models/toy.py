# SPDX-License-Identifier: GPL-2.0-only
"""Two classes under one name, as a mechanism at two grains would have."""

from schedproof.model import Model
from schedproof.model.domains import Param, Switch


class Toy(Model):
    """A task that waits for another one."""

    guard = Switch("on", "off")
    ratio = Param(8, 2, 64, "how much lighter a sleeping group is")
    period = Param(4, 2, 16, "ticks")

    releases = {"v1": {"guard": "on"}, "v2": {"guard": "off"}}
    fixes = {"repaired": {"guard": "off"}, "forever": {}}
    mutants = {"break_it": {}}


class Fine(Model):
    """The same at a finer grain, which only one release has."""

    ratio = Param(8, 2, 64)
    period = Param(4, 2, 16)

    releases = {"v9": {}}
    fixes = {}
    mutants = {}
