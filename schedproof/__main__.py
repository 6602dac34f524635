# SPDX-License-Identifier: GPL-2.0-only
"""``python -m schedproof`` is the command line."""

import sys

from schedproof.cli import main

sys.exit(main())
