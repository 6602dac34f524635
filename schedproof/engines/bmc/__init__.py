# SPDX-License-Identifier: GPL-2.0-only
"""Bounded model checking: the shortest run that breaks a property, by a solver. Start reading at ``engine``."""
