# SPDX-License-Identifier: GPL-2.0-only
"""Kernel trees: a folder as it lies, the blobs of a git revision, or either with some files replaced.

A tree is only read: no work tree is changed, nothing from it is run, no file outside of it is opened.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Protocol

from schedproof.errors import InputError, SchedproofError

LARGEST = 8 << 20                       # bytes; the largest file that is read. fair.c has 0.4 MiB

# Where a function is looked for when the file that was named does not have it.
SEARCHED = ("kernel/sched/*.c", "kernel/sched/*.h", "kernel/locking/*.c", "kernel/locking/*.h", "include/linux/*.h",
            "virt/kvm/*.c", "virt/kvm/*.h", "arch/x86/kvm/*.c", "arch/x86/kvm/*.h", "arch/x86/include/asm/*.h",
            "arch/x86/kernel/*.c", "kernel/exit.c")


class Absent(SchedproofError):
    """A tree that has no definition of a function (under the declared configuration)."""

    def __init__(self, function: str, file: str = ""):
        self.function, self.file = function, file
        super().__init__(f"{function}: no definition" + (f" in {file} or the files near it" if file else "")
                         + " of this tree")


class _Backend(Protocol):
    def read(self, file: str) -> bytes | None: ...
    def names(self, folder: str) -> Iterable[str]: ...
    def prefetch(self, files: Iterable[str]) -> None: ...


class _Folder:
    """Files as they lie."""

    def __init__(self, root: Path):
        self.root = root.resolve()

    def _path(self, file: str) -> Path | None:
        path = (self.root / file).resolve()
        if path != self.root and self.root not in path.parents:
            raise InputError(f"{file}: leads out of the tree {self.root}")
        return path

    def read(self, file: str) -> bytes | None:
        try:
            path = self._path(file)
            if path is None or not path.is_file():
                return None
            with path.open("rb") as handle:
                return handle.read(LARGEST + 1)
        except (OSError, RuntimeError) as error:      # RuntimeError: a loop of symbolic links
            raise InputError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None

    def names(self, folder: str) -> Iterable[str]:
        try:
            path = self._path(folder)
            return sorted(os.listdir(path)) if path is not None and path.is_dir() else []
        except (OSError, InputError):
            return []

    def prefetch(self, files: Iterable[str]) -> None:
        """Nothing to gain: files are read one by one."""


def git(root: Path, *args: str, stdin: bytes = b"") -> bytes:
    """Output of one git command that only reads. Raises InputError with git's own first line."""
    # No lazy fetch: reading a partial clone must not reach for the network.
    env = {**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0",
           "LC_ALL": "C"}
    try:
        done = subprocess.run(["git", "-C", str(root), "-c", "core.fsmonitor=false", *args], input=stdin, env=env,
                              capture_output=True, check=False)
    except (OSError, ValueError) as error:
        raise InputError(f"git cannot be run on {root}: {error}") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise InputError(f"{root}: git {args[0]} failed: {lines[0] if lines else 'no reason given'}")
    return done.stdout


class _Blobs:
    """The blobs of one commit. Symbolic links and submodules count as absent."""

    def __init__(self, root: Path, rev: str):
        self.root = root
        if not rev or rev.startswith("-") or any(c in rev for c in "\0\n\r \t:"):
            raise InputError(f"{rev!r} is not a revision: give a commit, a tag or a branch")
        try:
            found = git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}")
        except InputError as error:
            if "no reason given" not in str(error):
                raise
            raise InputError(f"{root}: no revision {rev!r} (is it a git repository that has it?)") from None
        self.commit = found.decode().strip()
        self.objects: dict[str, str] = {}
        self.folders: dict[str, list[str]] = {}
        for line in git(root, "ls-tree", "-r", "-z", "--full-tree", self.commit).split(b"\0"):
            head, _, name = line.partition(b"\t")
            if head.startswith(b"100"):
                file = name.decode("utf-8", "surrogateescape")
                self.objects[file] = head.split()[2].decode()
                folder, _, base = file.rpartition("/")
                self.folders.setdefault(folder, []).append(base)
        self.fetched: dict[str, bytes] = {}

    def read(self, file: str) -> bytes | None:
        if file not in self.objects:
            return None
        if file not in self.fetched:
            self.prefetch([file])
            if file.endswith(".h"):              # one header brings others: a process for each of them takes seconds
                folder, slash, _ = file.rpartition("/")
                self._fetch([folder + slash + n for n in self.folders[folder] if n.endswith(".h")])
        return self.fetched.get(file)

    def names(self, folder: str) -> Iterable[str]:
        return self.folders.get(folder, [])

    def prefetch(self, files: Iterable[str]) -> None:
        wanted = [f for f in files if f in self.objects]
        self._fetch(wanted)
        if any(f not in self.fetched for f in wanted):
            raise InputError(f"{self.root}: a blob of {self.commit[:12]} is missing from this clone")

    def _fetch(self, files: Iterable[str]) -> None:
        """Get those of some files that this clone has. Of one that is too large only that is kept."""
        wanted = [f for f in files if f not in self.fetched]
        if not wanted:
            return
        asked = "".join(f"{self.objects[f]}\n" for f in wanted).encode()
        small = []
        for file, line in zip(wanted, git(self.root, "cat-file", "--batch-check", stdin=asked).splitlines(),
                              strict=True):
            words = line.split()
            if words[1:2] == [b"blob"] and int(words[2]) <= LARGEST:
                small.append(file)
            elif words[1:2] == [b"blob"]:
                self.fetched[file] = b" " * (LARGEST + 1)       # text() refuses it by its size
        if not small:
            return
        output = git(self.root, "cat-file", "--batch", stdin="".join(f"{self.objects[f]}\n" for f in small).encode())
        at = 0
        for file in small:
            end = output.index(b"\n", at)
            size = int(output[at:end].split()[2])
            self.fetched[file] = output[end + 1:end + 1 + size]
            at = end + 2 + size


class _Overlay:
    """Another backend with some files replaced (None: deleted)."""

    def __init__(self, base: _Backend, files: Mapping[str, str | None]):
        self.base, self.files = base, dict(files)

    def read(self, file: str) -> bytes | None:
        if file in self.files:
            text = self.files[file]
            return None if text is None else text.encode("utf-8", "surrogateescape")
        return self.base.read(file)

    def names(self, folder: str) -> Iterable[str]:
        found = set(self.base.names(folder))
        for file, text in self.files.items():
            head, _, name = file.rpartition("/")
            if head == folder:
                (found.discard if text is None else found.add)(name)
        return sorted(found)

    def prefetch(self, files: Iterable[str]) -> None:
        self.base.prefetch(f for f in files if f not in self.files)


def has_definition(text: str, pattern: re.Pattern[str]) -> bool:
    """Whether a text has ``name(…) {`` on a line that is not indented. Looks at bounded pieces, so it is fast."""
    looked = 0
    for found in pattern.finditer(text):
        start = text.rfind("\n", 0, found.start()) + 1
        if text[start:start + 1] in (" ", "\t", "#") or found.start() - start > 300:
            continue
        looked += 1
        if looked > 1000:
            break
        depth, at = 1, found.end()
        while depth and at < min(len(text), found.end() + 3000):
            depth += (text[at] == "(") - (text[at] == ")")
            at += 1
        if not depth and re.match(r"[^;{}()=]{0,300}(?:\([^()]{0,80}\)[^;{}()=]{0,80})?\{", text[at:at + 600]):
            return True
    return False


def checked_name(file: str) -> str:
    """A file's name inside a tree, without ``./``. Raises InputError for one that leaves the tree."""
    path = PurePosixPath(file)
    if not file or path.is_absolute() or ".." in path.parts or "\0" in file or "\\" in file:
        raise InputError(f"{file!r} is not a file inside a tree")
    return str(path)


class Tree:
    """A kernel tree that can be read. Every file that was read is kept.

    ``path`` is a folder or a git repository; with ``rev``, or when the repository is bare (then ``HEAD``), the blobs
    of that commit are read. Raises InputError when there is no such folder or revision.
    """

    def __init__(self, path: str | Path, rev: str | None = None):
        root = Path(path).expanduser()
        if not root.is_dir():
            raise InputError(f"{root}: no such folder; --tree wants a kernel tree or a git repository")
        if rev is None and (root / "HEAD").is_file() and (root / "objects").is_dir():
            rev = "HEAD"
        self.path = root
        self.rev = rev
        self.label = str(root) if rev is None else f"{root} at {rev}"
        self._backend: _Backend = _Folder(root) if rev is None else _Blobs(root, rev)
        self._texts: dict[str, str | None] = {}

    def _get(self, file: str) -> str | None:
        if file in self._texts:                  # its keys are names that were checked
            return self._texts[file]
        file = checked_name(file)
        if file not in self._texts:
            data = self._backend.read(file)
            if data is not None:
                if len(data) > LARGEST:
                    raise InputError(f"{file}: larger than {LARGEST >> 20} MiB, not a source file")
                if b"\0" in data:
                    raise InputError(f"{file}: binary")
            # Bytes that are not UTF-8 survive as surrogates, so that a patch applies to exactly what is there.
            self._texts[file] = None if data is None else data.decode("utf-8", "surrogateescape")
        return self._texts[file]

    def text(self, file: str) -> str:
        """The text of a file. Raises InputError when it is absent, binary, too large or outside of the tree."""
        found = self._get(file)
        if found is None:
            raise InputError(f"{file}: not in {self.label}")
        return found

    def exists(self, file: str) -> bool:
        """Whether the tree has such a file (binary ones and those that lead out of the tree count as absent)."""
        try:
            return self._get(file) is not None
        except InputError:
            return False

    def prefetch(self, files: Iterable[str]) -> None:
        """Get several files at once, which saves a process a file with git."""
        self._backend.prefetch([f for f in files if f not in self._texts])

    def files(self, pattern: str) -> list[str]:
        """The files of one folder that match a pattern such as ``kernel/sched/*.c``, sorted."""
        folder, _, wanted = checked_name(pattern).rpartition("/")
        return [f"{folder}/{n}" if folder else n for n in sorted(self._backend.names(folder)) if fnmatch(n, wanted)]

    def version(self) -> tuple[int, int, int]:
        """VERSION, PATCHLEVEL and SUBLEVEL of the top Makefile. Raises InputError when this is no kernel tree."""
        text = self._get("Makefile") or ""
        found = [re.search(rf"^{name}[ \t]*=[ \t]*(\d+)[ \t]*$", text, re.MULTILINE)
                 for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL")]
        if found[0] is None or found[1] is None:
            raise InputError(f"{self.label}: not a kernel tree: no Makefile with VERSION")
        return int(found[0][1]), int(found[1][1]), int(found[2][1]) if found[2] else 0

    def find(self, function: str, hint_file: str = "", searched: Iterable[str] = SEARCHED) -> str:
        """The file that defines a function: the hinted one, else the first of the searched ones that does.

        Only the text is looked at, not the configuration. Raises Absent when no file has a definition.
        """
        pattern = re.compile(rf"\b{re.escape(function)}[ \t]*\(")

        def defines(file: str) -> bool:
            text = self._get(file) if self.exists(file) else None
            return text is not None and function in text and has_definition(text, pattern)

        if hint_file and defines(hint_file):
            return checked_name(hint_file)
        for glob in searched:
            files = self.files(glob)
            self.prefetch(files)
            for file in files:
                if defines(file):
                    return file
        raise Absent(function, hint_file)

    def with_files(self, files: Mapping[str, str | None], label: str = "") -> Tree:
        """This tree with some files replaced, added or (None) deleted."""
        found = object.__new__(Tree)
        found.path, found.rev = self.path, self.rev
        found.label = label or f"{self.label} with {len(files)} file{'s' * (len(files) != 1)} changed"
        clean = {checked_name(file): text for file, text in files.items()}
        found._backend = _Overlay(self._backend, clean)
        found._texts = {file: text for file, text in self._texts.items() if file not in clean}
        return found
