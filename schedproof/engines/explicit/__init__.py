# SPDX-License-Identifier: GPL-2.0-only
"""The explicit engine: all reachable states, by compiled transitions. Start reading at ``engine``."""
