# SPDX-License-Identifier: GPL-2.0-only
"""How the text formats lay out lines: wrapped with a hanging indent, at any width."""

from __future__ import annotations

import textwrap
import unicodedata

# What has no decomposition into plain letters but a usual way to be typed.
_TYPED = {"\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "--", "\u2212": "-", "\u2018": "'",
          "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2192": "->", "\u2264": "<=", "\u2265": ">=", "\u2260": "!=",
          "\u00d7": "x", "\u00b7": "*", "\u221e": "infinity", "\u00b5": "u", "\u03bc": "u"}


def to_ascii(text: str) -> str:
    """The text with every character outside ASCII typed the way it would be in a mail; ``?`` as the last resort."""
    if text.isascii():
        return text
    typed = "".join(_TYPED.get(c, c) for c in text)
    plain = (c for c in unicodedata.normalize("NFKD", typed) if not unicodedata.combining(c))
    return "".join(plain).encode("ascii", "replace").decode()


def wrap(text: str, width: int, first: str = "", later: str | None = None) -> list[str]:
    """Lines of at most ``width``. ``first`` leads the first line, ``later`` the others (default: as many blanks)."""
    rest = " " * len(first) if later is None else later
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False) or [
        first.rstrip()]


def plural(number: int, word: str) -> str:
    """``1 step``, ``2 steps``."""
    return f"{number} {word}" + ("" if number == 1 else "s")


def amount(number: object, unit: str) -> str:
    """``1 tick``, ``2 ticks``, ``3 ms``, or the number alone where there is no unit."""
    if str(number) == "1" and len(unit) > 2:
        unit = unit.removesuffix("s")
    return f"{number} {unit}".rstrip()
