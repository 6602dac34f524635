# SPDX-License-Identifier: GPL-2.0-only
"""Files: written whole or not at all, and the one cache folder."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from schedproof.errors import InputError


def write_atomically(path: Path, text: str) -> None:
    """Replace ``path`` by ``text`` in one go. Raises InputError when the place cannot be written."""
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


def cache_folder() -> Path:
    """The one cache folder: ``${XDG_CACHE_HOME:-~/.cache}/schedproof``."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "schedproof"
