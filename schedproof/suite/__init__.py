# SPDX-License-Identifier: GPL-2.0-only
"""The models and properties that belong to schedproof, wherever they lie.

This package has no modules of its own. Its path is the folder that holds ``models/`` and ``properties/``: the
root of the repository in a checkout, this folder in a wheel. So ``from schedproof.suite.models.NAME import X``
works in both, and the bare names ``models`` and ``properties`` are never imported from anywhere.

The current folder is never looked at: a kernel tree or a patch cannot bring Python that gets run.
"""

from __future__ import annotations

from pathlib import Path


def is_suite(folder: Path) -> bool:
    """Whether a folder holds models and properties."""
    return (folder / "models").is_dir() and (folder / "properties").is_dir()


def own_root() -> Path:
    """The folder of the suite that schedproof was installed with."""
    here = Path(__file__).resolve().parent
    # The packaged folder comes first: beside an installed schedproof lie other people's packages, and one of
    # them may well be called "models".
    return here if is_suite(here) else here.parent.parent


__path__ = [str(own_root())]
