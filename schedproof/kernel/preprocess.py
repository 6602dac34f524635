# SPDX-License-Identifier: GPL-2.0-only
"""One file under a configuration: comments and dead branches blanked, macros and includes collected.

Lines keep their numbers: whatever goes away is replaced by blanks, so ``#if`` inside a function just vanishes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from schedproof.kernel.config import COMPILER, Condition, Config

_SKIPPED = re.compile(r"""//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(\w*)(.*)", re.DOTALL)
_DEFINE = re.compile(r"[ \t]*([A-Za-z_]\w*)(\([^)]*\))?(.*)", re.DOTALL)
_INCLUDE = re.compile(r'[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)')
_MACRO_DEPTH = 32


@dataclass(frozen=True)
class Macro:
    """A macro. ``params`` is None for an object-like one; the last of ``params`` may be ``...`` or ``name...``.

    ``guarded``: the definition stands under ``#ifndef NAME`` of its own name, so any other one wins over it.
    """

    name: str
    params: tuple[str, ...] | None
    body: str
    file: str
    line: int
    guarded: bool = False


@dataclass
class Region:
    """The lines of one ``#if`` … ``#endif`` and what its conditions rest on.

    ``options``: configuration options consulted; ``undefined``: other names that were taken to be undefined because
    the file itself does not define them; ``undecided``: (line, text) of a condition that could not be told.
    """

    first: int
    last: int
    options: set[str] = field(default_factory=set)
    undefined: set[str] = field(default_factory=set)
    undecided: tuple[int, str] | None = None


@dataclass
class Preprocessed:
    """``text`` is the file with its lines in place; ``events`` are (line, name, macro or None for ``#undef``)."""

    file: str
    text: str
    events: list[tuple[int, str, Macro | None]]
    includes: list[str]                       # as written: "sched.h" with its quotes, <linux/sched.h> with its angles
    regions: list[Region]
    include_lines: list[int] = field(default_factory=list)

    def macro(self, name: str, line: int | None = None) -> Macro | None:
        """The macro that is live at a line (None: at the end of the file)."""
        found = None
        for at, what, macro in self.events:
            if line is not None and at > line:
                break
            if what == name:
                found = macro
        return found

    def around(self, first: int, last: int) -> list[Region]:
        """The regions that lines first to last stand in or contain."""
        return [r for r in self.regions if r.first <= last and first <= r.last]


def without_comments(text: str) -> str:
    """The text with each comment replaced by blanks; strings, line numbers and columns stay."""
    def blank(match: re.Match[str]) -> str:
        found = match[0]
        return re.sub(r"[^\n]", " ", found) if found[0] == "/" else found
    return _SKIPPED.sub(blank, text)


@dataclass
class _Frame:
    region: Region
    live: bool                   # the lines around the #if are live
    taken: bool | None           # some branch was taken already; None: it cannot be told
    active: bool
    own: str = ""                # NAME of the ``#ifndef NAME`` whose branch this is


def preprocess(file: str, text: str, config: Config, outer: tuple[Macro, ...] = ()) -> Preprocessed:
    """Apply the conditions of a file and collect its macros. Never raises: what is odd becomes an undecided region.

    ``outer``: macros of the headers that it includes, as far as its conditions rest on them.
    """
    lines = without_comments(text.replace("\r\n", "\n")).split("\n")
    done = Preprocessed(file, "", [], [], [])
    latest: dict[str, Macro | None] = {macro.name: macro for macro in outer}
    frames: list[_Frame] = []
    output: list[str] = []

    def is_defined(name: str) -> bool | None:
        if name in latest:
            return latest[name] is not None
        if name in COMPILER:
            return COMPILER[name] is not None
        return False

    def number(name: str, depth: int = 0) -> int | None:
        macro = latest.get(name)
        if macro is None:
            return COMPILER.get(name) if name not in latest else 0
        if macro.params is not None or depth > _MACRO_DEPTH:
            return None
        return Condition(config, is_defined, lambda inner: number(inner, depth + 1)).evaluate(macro.body)

    def test(frame: _Frame, line: int, kind: str, rest: str) -> bool | None:
        condition = Condition(config, is_defined, number)
        name = (rest.split() or [""])[0]
        value: bool | None
        if kind in ("ifdef", "elifdef"):
            value = condition.defined(name)
        elif kind in ("ifndef", "elifndef"):
            known = condition.defined(name)
            value = None if known is None else not known
            frame.own = name if value else ""
        else:
            found = condition.evaluate(rest)
            value = None if found is None else bool(found)
            guard = re.fullmatch(r"\s*!\s*defined\s*\(?\s*(\w+)\s*\)?\s*", rest)
            frame.own = guard[1] if guard and value else ""
        frame.region.options |= condition.options
        frame.region.undefined |= {n for n in condition.names if n not in latest and n not in COMPILER}
        if value is None and frame.region.undecided is None:
            frame.region.undecided = (line, f"#{kind} {rest.strip()}"[:80])
        return value

    at = 0
    while at < len(lines):
        first = at
        directive = _DIRECTIVE.match(lines[at])
        while directive and lines[at].endswith("\\") and at + 1 < len(lines):
            at += 1
        at += 1
        live = all(f.active for f in frames[-1:])
        if not directive:
            output.append(lines[first] if live else "")
            continue
        output.extend([""] * (at - first))
        joined = "\n".join(lines[first:at]).replace("\\\n", " ")
        directive = _DIRECTIVE.match(joined)
        kind, rest = (directive[1], directive[2]) if directive else ("", "")
        line = first + 1
        if kind in ("if", "ifdef", "ifndef"):
            frame = _Frame(Region(line, line), live, False, False)
            frames.append(frame)
            if live:
                frame.taken = test(frame, line, kind, rest)
                frame.active = bool(frame.taken)
        elif kind in ("elif", "elifdef", "elifndef") and frames:
            frame = frames[-1]
            frame.active, frame.own = False, ""
            if frame.live and frame.taken is False:
                frame.taken = test(frame, line, kind, rest)
                frame.active = bool(frame.taken)
        elif kind == "else" and frames:
            frame = frames[-1]
            frame.active, frame.own = frame.live and frame.taken is False, ""
            frame.taken = True if frame.taken is False else frame.taken
        elif kind == "endif" and frames:
            frame = frames.pop()
            frame.region.last = line
            if frame.live and not _is_include_guard(frame.region, done, len(lines)):
                done.regions.append(frame.region)
        elif live:
            _other(done, latest, kind, rest, line, {f.own for f in frames if f.own})
    for frame in frames:                     # an #if without #endif: everything from there on is undecided
        frame.region.last = len(lines)
        frame.region.undecided = frame.region.undecided or (frame.region.first, "#if without #endif")
        done.regions.append(frame.region)
    done.text = "\n".join(output)
    return done


def _is_include_guard(region: Region, done: Preprocessed, lines: int) -> bool:
    """``#ifndef X`` whose first directive is ``#define X`` around (nearly) the whole file: it rests on nothing."""
    first = next((e for e in done.events if e[0] > region.first), None)
    return (first is not None and region.undefined == {first[1]} and first[2] is not None
            and not first[2].body.strip() and region.last - region.first > lines // 2)


def _other(done: Preprocessed, latest: dict[str, Macro | None], kind: str, rest: str, line: int,
           own: set[str]) -> None:
    """A live directive that is not a condition."""
    if kind == "define":
        found = _DEFINE.match(rest)
        if found:
            params = None
            if found[2] is not None:
                params = tuple(p.strip() for p in found[2][1:-1].split(",") if p.strip())
            macro = Macro(found[1], params, found[3].strip(), done.file, line, found[1] in own)
            latest[found[1]] = macro
            done.events.append((line, found[1], macro))
    elif kind == "undef":
        name = rest.strip().split()[0] if rest.strip() else ""
        latest[name] = None
        done.events.append((line, name, None))
    elif kind == "include":
        included = _INCLUDE.match(rest)
        if included:
            done.include_lines.append(line)
            done.includes.append(f'"{included[1]}"' if included[1] else f"<{included[2]}>")
