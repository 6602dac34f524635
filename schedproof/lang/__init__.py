# SPDX-License-Identifier: GPL-2.0-only
"""The statements that both languages are lowered to, and the two ways of running them.

Declarations and language need each other: ``schedproof.model`` comes first, whichever of the two is asked for.
"""

import schedproof.model  # noqa: F401
