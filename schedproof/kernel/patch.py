# SPDX-License-Identifier: GPL-2.0-only
"""Patches: read from mails or diffs, and applied to a tree without touching it.

A hunk has to match exactly (no fuzz), but may have moved: the nearest place where its old lines stand is taken.
"""

from __future__ import annotations

import email
import email.policy
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from unidiff import PatchSet
from unidiff.errors import UnidiffParseError

from schedproof.errors import InputError
from schedproof.kernel.tree import LARGEST, Tree, checked_name

_MAIL = re.compile(r"^From [0-9a-f]{12,64} |^From \S+@\S+ ", re.MULTILINE)
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]*: ")


class NoDiff(InputError):
    """A text in which there is no diff: a cover letter, or no patch at all."""


@dataclass(frozen=True)
class Hunk:
    """One hunk. ``start`` is the line that it names in the old file; lines keep their ends."""

    number: int
    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True)
class FileChange:
    """What a patch does to one file. ``source`` None: a new file; ``target`` None: it is deleted.

    ``blobs`` are git's ids of the file before and after, as far as the patch names them (often abbreviated).
    """

    source: str | None
    target: str | None
    hunks: tuple[Hunk, ...]
    copies: bool = False
    blobs: tuple[str, str] | None = None

    @property
    def file(self) -> str:
        """The file's name behind the patch (before it for a deleted one)."""
        return self.target or self.source or ""


@dataclass(frozen=True)
class Patch:
    """One patch. ``name`` is where it came from, ``subject`` its mail's subject or ""."""

    name: str
    subject: str
    changes: tuple[FileChange, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """Every file that it touches, both names of a renamed one."""
        return tuple(dict.fromkeys(f for c in self.changes for f in (c.source, c.target) if f))


def read_patches(paths: Iterable[str | Path]) -> list[Patch]:
    """The patches of several files, in order. Raises InputError in one line for whatever is no patch."""
    found: list[Patch] = []
    for path in paths:
        try:
            with Path(path).expanduser().open("rb") as handle:
                data = handle.read(LARGEST + 1)
        except (OSError, ValueError) as error:         # ValueError: a name with NUL
            raise InputError(f"{str(path)!r}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
        if len(data) > LARGEST:
            raise InputError(f"{path}: larger than {LARGEST >> 20} MiB, not a patch")
        found += parse_patches(data.decode("utf-8", "surrogateescape"), str(path))
    return found


def parse_patches(text: str, name: str = "patch") -> list[Patch]:
    """The patches of a text: a mailbox, one mail, or a plain diff. Mails without a diff (cover letters) are left out.

    Raises InputError in one line.
    """
    if len(text) > LARGEST:
        raise InputError(f"{name}: larger than {LARGEST >> 20} MiB, not a patch")
    if "\0" in text:
        raise InputError(f"{name}: binary, not a patch")
    starts = [m.start() for m in _MAIL.finditer(text)]
    mails = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)] if starts[:1] == [0] else [text]
    found = []
    for number, mail in enumerate(mails, 1):
        label = name if len(mails) == 1 else f"{name} (message {number})"
        subject, body = _unwrapped(mail)
        changes = _changes(body, label)
        if changes:
            found.append(Patch(label, subject, changes))
    if not found:
        raise NoDiff(f"{name}: not a patch: no diff in it")
    return found


def _unwrapped(mail: str) -> tuple[str, str]:
    """Subject and text of a mail, with its transfer encoding undone; a plain diff stays as it is."""
    first = mail.split("\n", 1)[0]
    if not (first.startswith("From ") or _HEADER.match(first)):
        return "", mail
    try:
        message = email.message_from_bytes(mail.encode("utf-8", "surrogateescape"), policy=email.policy.default)
        subject = str(message.get("Subject", "")).encode("ascii", "replace").decode()
        parts = [part for part in message.walk() if part.get_content_maintype() == "text"]
        if not any(str(part.get("Content-Transfer-Encoding", "")).strip().lower() in ("base64", "quoted-printable")
                   for part in parts):
            return " ".join(subject.split()), mail
        texts = [part.get_payload(decode=True) for part in parts]
    except (ValueError, LookupError, TypeError, AttributeError, IndexError, RecursionError):
        return "", mail                              # a damaged mail: its diff may still be readable
    body = "\n".join(t.decode("utf-8", "surrogateescape") for t in texts if isinstance(t, bytes))
    return " ".join(subject.split()), body


def _changes(text: str, name: str) -> tuple[FileChange, ...]:
    if re.search(r"^GIT binary patch\r?$|^Binary files .* differ\r?$", text, re.MULTILINE):
        raise InputError(f"{name}: holds a binary patch, which cannot be read")
    if re.search(r"^@@@ ", text, re.MULTILINE):
        raise InputError(f"{name}: a merge's combined diff; give the single patches")
    if text.count("\r\n") > text.count("\n") // 2:   # a mail with CRLF: its lines end so, not the file's
        text = text.replace("\r\n", "\n")
    try:
        patch = PatchSet(StringIO(text, newline="\n"))
        found = tuple(_change(file, name) for file in patch if file.source_file or file.target_file)
    except UnidiffParseError as error:
        raise InputError(f"{name}: broken or truncated patch: {_one_line(error)}") from None
    except (ValueError, IndexError, AttributeError, RecursionError) as error:
        raise InputError(f"{name}: not a patch: {_one_line(error)}") from None
    headers = len(re.findall(r"^--- [^\n]*\n\+\+\+ ", text, re.MULTILINE))
    if sum(bool(c.hunks) for c in found) < headers or re.search(r"^--- a/\S+\n?\Z", text, re.MULTILINE):
        raise InputError(f"{name}: broken or truncated patch: a file's header without its hunks")
    return tuple(c for c in found if c.hunks or c.source != c.target)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).encode("ascii", "replace").decode().split())[:120] or type(error).__name__


def _name(spelled: str, prefix: str) -> str | None:
    spelled = spelled.strip()
    if spelled == "/dev/null":
        return None
    return checked_name(spelled[2:] if spelled.startswith(f"{prefix}/") else spelled)


def _change(file: Any, name: str) -> FileChange:
    source_file, target_file = file.source_file, file.target_file
    try:
        source, target = _name(source_file, "a"), _name(target_file, "b")
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    info = str(file.patch_info or "")
    if re.search(r"^new file mode ", info, re.MULTILINE):            # an empty file has no /dev/null
        source = None
    if re.search(r"^deleted file mode ", info, re.MULTILINE):
        target = None
    hunks = []
    for number, hunk in enumerate(file, 1):
        old: list[str] = []
        new: list[str] = []
        sides: list[list[str]] = []
        for line in hunk:
            if line.line_type == "\\":                                     # the line before has no line break
                for side in sides:
                    side[-1] = side[-1].removesuffix("\n").removesuffix("\r")
                continue
            if len(old) >= hunk.source_length and len(new) >= hunk.target_length:
                break                                                      # an empty line behind the hunk
            sides = [s for s, kinds in ((old, " -"), (new, " +")) if (line.line_type or " ") in kinds]
            for side in sides:
                side.append(line.value if line.value.endswith("\n") else line.value + "\n")
        hunks.append(Hunk(number, hunk.source_start, tuple(old), tuple(new)))
    index = re.search(r"^index ([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})\b", info, re.MULTILINE)
    return FileChange(source, target, tuple(hunks), bool(re.search(r"^copy from ", info, re.MULTILINE)),
                      (index[1], index[2]) if index else None)


# ------------------------------------------------------------------------------------------------ application
def apply(tree: Tree, patch: Patch | Sequence[Patch]) -> Tree:
    """The tree with a patch, or several in order, applied.

    Raises InputError that names the file, the hunk and its line when it does not apply.
    """
    for one in [patch] if isinstance(patch, Patch) else patch:
        files: dict[str, str | None] = {}
        for change in one.changes:
            _apply_change(tree, one, change, files)
        tree = tree.with_files(files, f"{tree.label} + {one.subject or Path(one.name).name}")
    return tree


def _apply_change(tree: Tree, patch: Patch, change: FileChange, files: dict[str, str | None]) -> None:
    def current(file: str) -> str | None:
        if file in files:
            return files[file]
        return tree.text(file) if tree.exists(file) else None

    if change.source is None:
        before: str | None = ""
        if current(change.file):
            raise InputError(f"{patch.name}: {change.file} is to be created, but exists in {tree.label}")
    else:
        before = current(change.source)
        if before is None:
            raise InputError(f"{patch.name}: {change.source} is not in {tree.label}")
    after = _apply_hunks(before or "", change, patch.name)
    if change.target is None:
        if after:
            raise InputError(f"{patch.name}: {change.file} is to be deleted, but has other lines in {tree.label}")
        files[change.file] = None
        return
    if change.source is not None and change.source != change.target and not change.copies:
        files[change.source] = None
    files[change.target] = after


def _apply_hunks(text: str, change: FileChange, name: str) -> str:
    lines = _split(text)
    dos = bool(lines) and sum(line.endswith("\r\n") for line in lines) > len(lines) // 2
    bare = [_bare(line) for line in lines]
    out: list[str] = []
    done = shift = 0                                  # lines that are used up; how far the last hunk had moved
    for hunk in change.hunks:
        wanted = [_bare(line) for line in hunk.old]
        begin = hunk.start - 1 if hunk.old else hunk.start
        at = _nearest(bare, wanted, begin + shift, done)
        if at is None:
            raise InputError(f"{name}: hunk {hunk.number} does not apply: {change.file}:{hunk.start}")
        shift = at - begin
        out += lines[done:at]
        kept = iter(lines[at:at + len(wanted)])
        out += _merged(hunk, kept, dos)
        done = at + len(wanted)
    return "".join(out + lines[done:])


def _merged(hunk: Hunk, kept: Iterable[str], dos: bool) -> list[str]:
    """The new lines of a hunk: context as the file has it, added lines with the file's line ends."""
    found: list[str] = []
    remaining = list(zip([_bare(line) for line in hunk.old], kept, strict=False))
    for line in hunk.new:
        bare = _bare(line)
        match = next((i for i, (old, _) in enumerate(remaining) if old == bare), None)
        if match is not None:
            found.append(remaining[match][1])
            del remaining[:match + 1]
        else:
            found.append(f"{bare[:-1]}\r\n" if dos and bare.endswith("\n") else line)
    return found


def _bare(line: str) -> str:
    """A line without the carriage return of its end."""
    return line[:-2] + "\n" if line.endswith("\r\n") else line


def _split(text: str) -> list[str]:
    """The lines of a text, broken at line feeds alone."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _nearest(lines: list[str], wanted: list[str], begin: int, lowest: int) -> int | None:
    """Where the wanted lines stand nearest to ``begin``, not before ``lowest``."""
    size = len(wanted)
    if not size:
        return min(max(begin, lowest), len(lines))
    for distance in range(len(lines) + 1):
        for at in (begin + distance, begin - distance):
            if lowest <= at <= len(lines) - size and lines[at:at + size] == wanted:
                return at
    return None
