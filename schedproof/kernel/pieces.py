# SPDX-License-Identifier: GPL-2.0-only
"""The top-level pieces of a file: functions, prototypes and what else there is between two semicolons or braces."""

from __future__ import annotations

import re
from dataclasses import dataclass

TOKENS = re.compile(r"""//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[{}();=]""")
_CALL_LIKE = re.compile(r"\b([A-Za-z_]\w*+)\s*+\(")
_ATTRIBUTES = re.compile(r"__attribute__|__acquires|__releases|__must_hold|__cond_acquires|__printf|__scanf|__aligned"
                         r"|__section|__alloc_size|__no_kcsan|__diag_\w+|__bpf_\w+|__context__|_Static_assert")


@dataclass(frozen=True)
class Piece:
    """A top-level piece of a file. ``line`` is that of its first character; ``text`` keeps the line breaks."""

    name: str
    file: str
    line: int
    text: str
    kind: str                       # "function", "prototype", "other"

    @property
    def last(self) -> int:
        """The last line."""
        return self.line + self.text.count("\n")


def _name(header: str) -> tuple[str, int]:
    """The name of the function that a header such as ``static int f(int x)`` declares, and where it begins."""
    found, begin, last_end, at = "", 0, 0, 0
    while match := _CALL_LIKE.search(header, at):
        depth, at = 0, match.end() - 1
        while at < len(header):
            depth += (header[at] == "(") - (header[at] == ")")
            at += 1
            if not depth:
                break
        if not _ATTRIBUTES.fullmatch(match[1]):
            found, begin = match[1], last_end
            last_end = at
    return found, begin


def pieces(file: str, text: str) -> list[Piece]:
    """The top-level pieces of a preprocessed text."""
    found: list[Piece] = []
    start = braces = parens = 0
    body = -1                                 # where the first top-level { of this piece is
    equals = False
    line, counted = 1, 0

    def add(end: int, kind: str) -> None:
        nonlocal line, counted
        header = text[start:body if body >= 0 else end]
        name, skip = _name(header) if kind != "other" else ("", 0)
        begin = start + skip
        begin += len(text[begin:end]) - len(text[begin:end].lstrip())
        line += text.count("\n", counted, begin)
        counted = begin
        found.append(Piece(name, file, line, text[begin:end], kind if name else "other"))

    for token in TOKENS.finditer(text):
        char = token[0]
        if char == "{":
            if not braces and not parens and body < 0:
                body = token.start()
            braces += 1
        elif char == "}":
            braces = max(0, braces - 1)
            if braces or parens:
                continue
            header = text[start:body].strip() if body >= 0 else ""
            if ")" in header and not equals and not re.match(r"(typedef|struct|union|enum)\b[^()]*$", header):
                add(token.end(), "function")
                start, body, equals = token.end(), -1, False
        elif char == "(":
            parens += 1
        elif char == ")":
            parens = max(0, parens - 1)
        elif char == "=" and not braces and not parens:
            equals = True
        elif char == ";" and not braces and not parens:
            header = text[start:token.start()]
            prototype = "(" in header and body < 0 and not equals and not re.match(r"\s*typedef\b", header)
            add(token.end(), "prototype" if prototype else "other")
            start, body, equals = token.end(), -1, False
    return found
