# SPDX-License-Identifier: GPL-2.0-only
"""``make bench``: how long ``schedproof check --b4`` takes for each kind of patch, first and second time.

Each is a commit on a kernel tree under git, in a temporary folder with an empty cache, checked by a process of its own
as b4 starts it. The tree is the 6.1 of SCHEDPROOF_TREES; without one nothing is measured. The figures go to
benchmarks/checks.json.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "checks.json"
FAIR = "kernel/sched/fair.c"
FOLDERS = ("kernel", "virt", "include/linux", "include/asm-generic", "arch/x86/include", "arch/x86/kvm")

UPDATE = r"^(static void update_cfs_group\([^)]*\)\n\{\n"

# The kind of patch, the seconds that it may take, its file, the text that is replaced and what it becomes. The real
# change drops the guard of update_cfs_group, so verdicts are decided again on both sides.
KINDS = (
    ("a static function of a file that is not modelled", 2.0, "kernel/fork.c",
     r"^(static void check_mm\([^)]*\)\n\{\n)",
     "\\1\tschedule();\n"),
    ("a function that headers of the models declare", 2.0, "kernel/fork.c", r"^(void __init fork_init\(void\)\n\{\n)",
     "\\1\tschedule();\n"),
    ("a function of fair.c that is not modelled", 2.0, FAIR, r"^(void __init sched_init_granularity\(void\)\n\{\n)",
     "\\1\tupdate_sysctl();\n"),
    ("a comment in a modelled function", 5.0, FAIR, UPDATE + ")", "\\1\t/* once more */\n"),
    ("a real change", 60.0, FAIR, UPDATE + r".*?)\tif \(throttled_hierarchy\(gcfs_rq\)\)\n\t\treturn;\n\n", r"\1"),
)


def repository(tree: Path, folder: Path, env: dict[str, str]) -> None:
    """The parts of a tree that are read, under git."""
    for name in FOLDERS:
        shutil.copytree(tree / name, folder / name, symlinks=True)
    shutil.copy(tree / "Makefile", folder)
    for words in (("init", "-q"), ("config", "user.name", "A"), ("config", "user.email", "a@example.org"),
                  ("add", "-A"), ("commit", "-qm", "base")):
        subprocess.run(["git", *words], cwd=folder, env=env, check=True)


def mail(folder: Path, env: dict[str, str], file: str, pattern: str, becomes: str) -> str:
    """A commit that changes the base, as a mail."""
    text = (folder / file).read_text()
    after, count = re.subn(pattern, becomes, text, count=1, flags=re.MULTILINE | re.DOTALL)
    if not count:
        sys.exit(f"{file} of this tree has nothing like {pattern}: take a 6.1 tree")
    (folder / file).write_text(after)
    subprocess.run(["git", "commit", "-qam", "a change"], cwd=folder, env=env, check=True)
    done = subprocess.run(["git", "format-patch", "--stdout", "-1"], cwd=folder, env=env, check=True, text=True,
                          capture_output=True)
    subprocess.run(["git", "reset", "-q", "--hard", "HEAD~1"], cwd=folder, env=env, check=True)
    return done.stdout


def checked(folder: Path, env: dict[str, str], text: str) -> tuple[float, str]:
    """Seconds, and what is printed."""
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "schedproof", "check", "--b4"], cwd=folder, env=env, input=text,
                          text=True, capture_output=True, check=True)
    return time.perf_counter() - begin, done.stdout


def main() -> int:
    trees = os.environ.get("SCHEDPROOF_TREES")
    if not trees or not (Path(trees) / "6.1" / FAIR).is_file():
        print("SCHEDPROOF_TREES names no folder with a 6.1 tree, so check was not measured")
        return 0
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "linux"
        folder.mkdir()
        env = {**os.environ, "XDG_CACHE_HOME": str(Path(name) / "cache"), "GIT_CONFIG_NOSYSTEM": "1", "HOME": name}
        repository(Path(trees) / "6.1", folder, env)
        for kind, most, file, pattern, becomes in KINDS:
            text = mail(folder, env, file, pattern, becomes)
            (first, told), (second, again) = checked(folder, env, text), checked(folder, env, text)
            assert told == again, (told, again)
            rows.append({"patch": kind, "first_seconds": round(first, 2), "second_seconds": round(second, 2),
                         "most_seconds": most, "told": told.strip()})
            print(f"check --b4, {kind}: {first:.2f} s, again {second:.2f} s ({first / second:.1f} times as fast); "
                  f"{'within' if first < most else 'OVER'} the {most:.0f} s it may take")
            if told:
                print(f"  {told.strip()}")
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
