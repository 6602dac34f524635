# SPDX-License-Identifier: GPL-2.0-only
"""Odd trees: what a folder that is given as a kernel tree may hold, and what is asked of it."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from schedproof.errors import SchedproofError
from schedproof.kernel import Config, Tree
from schedproof.kernel.check import check
from schedproof.kernel.commits import commits
from schedproof.kernel.functions import read_function, release_for
from schedproof.kernel.patch import parse_patches, read_patches
from tests.campaigns.fuzz.patches import BASE, EDITS, OTHER, OTHER_BASE, series
from tests.campaigns.fuzz.runs import Outcome, refusal
from tests.campaigns.fuzz.yard import FILE, FOR_READER, PRELUDE, Yard

MAKEFILE = "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 7\nEXTRAVERSION =\n"


def plain(folder: Path) -> Tree:
    """The tree that is not odd."""
    for name, text in {"Makefile": MAKEFILE, FILE: BASE, OTHER: OTHER_BASE, PRELUDE: FOR_READER}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return Tree(folder)


def _replace(folder: Path, name: str, make: Callable[[Path], object]) -> None:
    path = folder / name
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)


def _git(folder: Path) -> None:
    for words in (("init",), ("add", "-A"), ("commit", "-qm", "one")):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main",
                        *words], cwd=folder, capture_output=True, check=False)


def _ring(folder: Path, number: int = 60) -> None:
    """Headers that include each other."""
    includes = "".join(f'#include "h{i}.h"\n' for i in range(1, number))
    for i in range(1, number):
        (folder / f"kernel/sched/h{i}.h").write_text(includes)
    (folder / PRELUDE).write_text(f'#include "h1.h"\n{FOR_READER}')


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "kernel/sched/pipe.h")
    (folder / PRELUDE).write_text(f'#include "pipe.h"\n{FOR_READER}')


def _bare(folder: Path) -> None:
    (folder / "HEAD").write_text("ref: refs/heads/none\n")
    (folder / "objects").mkdir()


MAKEFILES = ("VERSION = x\n", "", "VERSION = 6\n", f"VERSION = {'9' * 5000}\nPATCHLEVEL = 1\n", "\0", "\udcff\n",
             "PATCHLEVEL = 1\nVERSION = 6\n" * 3, "VERSION = 0\nPATCHLEVEL = 0\n", "VERSION = 6\r\nPATCHLEVEL = 1\r\n")
INCLUDES = ("../../../etc/passwd", "/etc/passwd", "..", ".", "", "yard.h/x", "a" * 5000)
OPEN_IFS = ("#if 1", "#endif", "#else", "#if UNKNOWN(3)")
ODD_IFS = ("08", "1 +", "(" * 500, "1 ? 2", "-" * 500 + "1", "1 << 70", "a(b)(", "9" * 5000, "1.5", chr(0x663))
MACROS = ("if", "int", "c", "n(x) x", "helper", "f", "f(a) a", "struct union")
VALUES = ("Q", "R", "1 / 0", "08", "", "(", "f()", "1 << 99")
WIDTHS = (":0", ":99", ":x", ":08", ":-1", ":")
MEMBERS = ("int small", "int small[3];", "int small, small;", "struct car small;", "int (*small)(int);",
           "nothing small;", "struct { int small; };", "};")
GROWING = "".join(f"#define n m{i}\n#define m{i} m{i + 1} m{i + 1}\n" for i in range(40))

# Texts of the C file and of the header.
OF_THE_FILE: dict[str, Callable[[random.Random], str]] = {
    "includes elsewhere": lambda rng: f'#include "{rng.choice(INCLUDES)}"\n{BASE}',
    "two definitions": lambda rng: f"{BASE}\n{BASE}",
    "not UTF-8": lambda rng: BASE.replace("Some", "S\udcf6me"),
    "open #if": lambda rng: f"{rng.choice(OPEN_IFS)}\n{BASE}",
    "odd #if": lambda rng: f"#if {rng.choice(ODD_IFS)}\nint q;\n#endif\n{BASE}",
    "macros": lambda rng: GROWING + BASE,
    "a macro of a word": lambda rng: f"#define {rng.choice(MACROS)}\n{BASE}",
    "an enum": lambda rng: f"enum {{ Q = {rng.choice(VALUES)}, R = Q + 1 }};\n" + BASE.replace("n > 3", "n > R")}
OF_THE_HEADER: dict[str, Callable[[random.Random], str]] = {
    "NUL": lambda rng: "int x;\0",
    "too large": lambda rng: " " * ((8 << 20) + 1),
    "includes itself": lambda rng: f'#include "yard.h"\n#include "gen.c"\n{FOR_READER}',
    "a bit-field": lambda rng: FOR_READER.replace(":3", rng.choice(WIDTHS)),
    "a struct": lambda rng: FOR_READER.replace("int small;", rng.choice(MEMBERS)),
    "a typedef ring": lambda rng: "typedef u9 u10; typedef u10 u9;\n" + FOR_READER.replace("int small;", "u9 small;")}


def odd(rng: random.Random, folder: Path, outside: Path) -> str:
    """Make one thing odd; its name."""
    file = rng.choice((FILE, PRELUDE))
    ways: dict[str, Callable[[], object]] = {
        "no Makefile": (folder / "Makefile").unlink,
        "a folder for the Makefile": lambda: _replace(folder, "Makefile", Path.mkdir),
        "a folder for a file": lambda: _replace(folder, file, Path.mkdir),
        "a link out": lambda: _replace(folder, rng.choice((file, "Makefile")), lambda p: p.symlink_to(outside / "x.c")),
        "a link to itself": lambda: _replace(folder, file, lambda p: p.symlink_to(p)),
        "a link to nothing": lambda: _replace(folder, PRELUDE, lambda p: p.symlink_to("none.h")),
        "a linked folder": lambda: (folder / "include").symlink_to(outside),
        "a pipe": partial(_pipe, folder), "no rights": lambda: (folder / file).chmod(0),
        "a file for a folder": lambda: (folder / "include").write_text("x"),
        "includes in a ring": partial(_ring, folder), "a bare HEAD": partial(_bare, folder),
        "git": partial(_git, folder), "nothing": dict}
    name = rng.choice(sorted({"Makefile", *ways, *OF_THE_FILE, *OF_THE_HEADER}))
    texts = {"Makefile": ("Makefile", lambda rng: rng.choice(MAKEFILES)),
             **{n: (FILE, make) for n, make in OF_THE_FILE.items()},
             **{n: (PRELUDE, make) for n, make in OF_THE_HEADER.items()}}
    with contextlib.suppress(OSError):           # two of them may be in each other's way
        if name in ways:
            ways[name]()
        else:
            target, make = texts[name]
            (folder / target).write_bytes(make(rng).encode("utf-8", "surrogateescape"))
    return name


def one(rng: random.Random, folder: Path, outside: Path, outcome: Outcome) -> None:
    """One odd tree, and everything that is asked of a tree."""
    plain(folder)
    names = [odd(rng, folder, outside) for _ in range(rng.choice((1, 1, 2)))]
    rev = rng.choice((None, None, None, "HEAD", "none", "-x", "HEAD:f", "a\0b", "é" * 300, ""))
    outcome.answers += [f"tree: {n}" for n in names]

    def ask(what: Callable[[], object]) -> None:
        try:
            what()
        except SchedproofError as error:
            refusal(outcome, error)

    try:
        tree = Tree(folder, rev)
    except SchedproofError as error:
        refusal(outcome, error)
        return
    ask(tree.version)
    ask(lambda: release_for(Yard, tree))
    ask(lambda: tree.find(rng.choice(("f", "none", "a(b", "")), rng.choice(("", FILE, "..", "/x", "a\0b"))))
    ask(lambda: tree.text(rng.choice((FILE, PRELUDE, "kernel", "../x", "", "include/x.c"))))
    ask(lambda: tree.files(rng.choice(("kernel/sched/*.c", "*", "../*", "[", "kernel/sched/[!", ""))))
    config = Config() if rng.random() < 0.5 else Config({"CONFIG_SMP": rng.choice(("y", "08", "x", '"s"', "9" * 5000))})
    found = read_function(tree, "f", FILE, Yard, config)
    outcome.parsed = outcome.executed = found.status == "read"
    if "\n" in found.reason:
        outcome.find("message", f"not one line: {found.reason!r}")
    text = series(rng).text if rng.random() < 0.7 else BASE.join(EDITS[0])
    ask(lambda: check(parse_patches(text, "one.patch"), tree, {"yard": (Yard, ())}, None))
    ask(lambda: read_patches([rng.choice((folder, folder / FILE, folder / "none", "", "\0"))]))
    ask(lambda: commits(folder, rng.choice(("HEAD", "HEAD..HEAD", "x..y", "..", "--all", "HEAD^", "é", "main~0"))))
