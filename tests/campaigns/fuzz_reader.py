# SPDX-License-Identifier: GPL-2.0-only
"""The fuzz of the C reader and of ``check``: ``make campaign-fuzz``.

Inputs are made in chunks, each from a seed of its own, each in a process of its own with a limit of memory and a
budget of time for every input. What is done is kept in a file, so that a run that was broken off goes on. At the end
the counts go to ``benchmarks/campaigns/fuzz.json`` and are printed, with the share of schedproof/kernel/ that ran.

It lies under tests/ because the tests run a sample of it (tests/kernel/test_fuzz_sample.py) and share its generators.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "benchmarks" / "campaigns" / "fuzz.json"
CHUNK = 50
MEASURED = 5                            # of so many chunks, one is measured: that slows it down
MEMORY = 6 << 30                        # bytes of address space; numba and Z3 reserve much of it without using it
STALLED = 240                           # seconds without a sign of life after which a chunk is given up
# Inputs a kind in a whole run.
PLAN = {"generated": 5400, "odd": 2000, "pairs": 500, "damaged": 800, "patches": 1200, "trees": 200}
WHAT = {"generated": "functions made over a small model, also compiled and run",
        "odd": "the same with constructs that may be refused", "pairs": "two versions of such a function, compared",
        "damaged": "functions of real trees, damaged", "patches": "patches, whole and damaged, through check",
        "trees": "odd kernel trees"}


@dataclass
class Chunk:
    """The counts of one chunk."""

    kind: str
    number: int
    inputs: int = 0
    parsed: int = 0
    executed: int = 0
    native: int = 0
    seconds: float = 0.0
    date: str = ""
    refused: dict[str, int] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    lines: dict[str, list[int]] = field(default_factory=dict)


# ---------------------------------------------------------------------------------------------- one process
class Watch:
    """Notes every file that is opened for writing, made, moved or removed outside of one folder, and what is run."""

    def __init__(self, inside: Path):
        self.inside = (str(inside), "/dev/null", "/proc/self")
        self.seen: list[str] = []
        self.on = False

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on:
            return
        writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes or event in ("os.mkdir", "os.remove", "os.rmdir", "os.chmod", "os.truncate", "shutil.rmtree"):
            self._note(event, args[0])
        elif event in ("os.rename", "os.link", "os.symlink"):
            self._note(event, args[1])
        elif event == "subprocess.Popen" and Path(str(args[0])).name not in ("git", "gcc"):
            self.seen.append(f"runs {args[0]}")
        elif event in ("os.system", "os.exec", "socket.connect"):
            self.seen.append(event)

    def _note(self, event: str, path: Any) -> None:
        if isinstance(path, int):
            return
        name = os.path.abspath(os.fsdecode(path))
        if not name.startswith(self.inside):
            self.seen.append(f"{event} {name}")


def listing(folder: Path) -> list[tuple[str, int, int]]:
    """Every file under a folder, with size and time."""
    return sorted((str(p.relative_to(folder)), p.lstat().st_size, p.lstat().st_mtime_ns) for p in folder.rglob("*")
                  if not p.is_dir())


class Worker:
    """Runs chunks. Made once; each chunk then runs in a copy of the process."""

    def __init__(self, folder: Path, seed: str, kinds: Iterable[str]):
        import z3

        from tests.campaigns.fuzz import patches, real, trees, yard
        z3.set_param("timeout", 2000)              # a small budget: undecided is no finding
        self.folder, self.seed = folder, seed
        self.tree = trees.plain(folder / "tree")
        self.yard = yard.Yard.variant("v1")
        self.patches, self.real, self.trees = patches, real, trees
        self.subjects = real.subjects() if "damaged" in set(kinds) else []

    def works(self, kind: str, number: int, size: int) -> Callable[[int, Any], None]:
        """What is to be done with each input of a chunk."""
        from tests.campaigns.fuzz import cgen, native, runs
        seed = f"{self.seed}:{kind}:{number}"
        if kind in ("generated", "odd", "pairs"):
            batch = [cgen.function(f"{seed}:{i}", tag=f"_{i}", odd=kind == "odd", small=kind == "pairs")
                     for i in range(size)]
            library = native.Native(self.folder, batch) if kind != "pairs" and native.available() else None

            def carry(i: int, outcome: runs.Outcome) -> None:
                rng = random.Random(f"{seed}:{i}:runs")
                if library is not None and i in library.refused:
                    outcome.answers.append("the compiler refuses it")
                programs = runs.generated(batch[i], i, self.tree, self.yard, library, rng, outcome, self.runs)
                if kind == "pairs" and programs is not None:
                    runs.twin(batch[i], programs, self.tree, self.yard, rng, outcome)
            return carry
        if kind == "damaged":
            return lambda i, outcome: self.real.one(random.Random(f"{seed}:{i}"), self.subjects, outcome)
        if kind == "patches":
            return lambda i, outcome: self.patches.one(random.Random(f"{seed}:{i}"), self.tree, outcome)

        def tree(i: int, outcome: runs.Outcome) -> None:
            self.trees.one(random.Random(f"{seed}:{i}"), self.folder / f"odd{i}", self.folder / "outside", outcome)
        return tree

    runs = 4

    def chunk(self, kind: str, number: int, size: int, alive: Callable[[int], None] = lambda i: None) -> Chunk:
        """All inputs of a chunk, in this process."""
        from tests.campaigns.fuzz.runs import Outcome, guarded
        done = Chunk(kind, number, date=datetime.date.today().isoformat())
        refused: Counter[str] = Counter()
        answers: Counter[str] = Counter()
        begin = time.monotonic()
        work = self.works(kind, number, size)
        for i in range(size):
            alive(i)
            outcome = Outcome()
            with guarded(outcome):
                work(i, outcome)
            done.inputs += 1
            done.parsed += outcome.parsed
            done.executed += outcome.executed
            done.native += outcome.native
            refused[outcome.refused] += bool(outcome.refused)
            answers.update(outcome.answers)
            done.findings += [f"{kind}:{number}:{i} {text}" for text in outcome.findings]
        done.refused, done.answers = {k: n for k, n in refused.items() if n}, dict(answers)
        done.seconds = time.monotonic() - begin
        return done


def apart(worker: Worker, kind: str, number: int, size: int, coverage: Any) -> Chunk:
    """A chunk in a copy of this process, in a folder of its own."""
    folder = Path(tempfile.mkdtemp(dir=worker.folder, prefix="chunk-"))
    for name in ("home", "cache", "tmp", "cwd", "outside"):
        (folder / name).mkdir()
    (folder / "outside" / "x.c").write_text("int x;\n")
    ear, mouth = os.pipe()
    child = os.fork()
    if not child:
        os.close(ear)
        code = 1
        try:
            code = _child(worker, kind, number, size, folder, mouth, coverage)
        finally:
            os._exit(code)
    os.close(mouth)
    chunk = _listen(ear, child, kind, number, size)
    os.close(ear)
    subprocess.run(["chmod", "-R", "u+rwX", str(folder)], check=False, capture_output=True)
    subprocess.run(["rm", "-rf", str(folder)], check=False)
    return chunk


def _child(worker: Worker, kind: str, number: int, size: int, folder: Path, mouth: int, coverage: Any) -> int:
    if coverage is not None and number % MEASURED:
        coverage.stop()
        coverage = None
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ |= {"HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "cache"), "TMPDIR": str(folder / "tmp")}
    tempfile.tempdir = None
    os.chdir(folder / "cwd")
    trees = [worker.tree.path, *{s.tree.path for s in worker.subjects}] if kind != "damaged" else [worker.tree.path]
    before = [listing(Path(t)) for t in trees]
    watch = Watch(folder)
    sys.addaudithook(watch)
    worker.folder = folder
    watch.on = True
    done = worker.chunk(kind, number, size, lambda i: _say(mouth, f"{i}\n"))
    watch.on = False
    done.findings += [f"{kind}:{number} outside: {text}" for text in watch.seen]
    if [listing(Path(t)) for t in trees] != before:
        done.findings.append(f"{kind}:{number} outside: a tree has changed")
    if listing(folder / "cwd") or listing(folder / "home"):
        done.findings.append(f"{kind}:{number} outside: files in the current or the home folder")
    if coverage is not None:
        coverage.stop()
        data = coverage.get_data()
        done.lines = {Path(f).name: sorted(data.lines(f) or ()) for f in data.measured_files()}
    _say(mouth, json.dumps(vars(done)) + "\n")
    return 0


def _say(mouth: int, text: str) -> None:
    data = text.encode()
    while data:
        data = data[os.write(mouth, data):]


def _listen(ear: int, child: int, kind: str, number: int, size: int) -> Chunk:
    """Read what a chunk says; one that says nothing any more is ended, and its end is a finding."""
    import select
    text, last, at, stalled = b"", time.monotonic(), 0, False
    while True:
        ready, _, _ = select.select([ear], [], [], 5)
        if ready:
            got = os.read(ear, 1 << 20)
            if not got:
                break
            text, last = text + got, time.monotonic()
        elif time.monotonic() - last > STALLED:
            os.kill(child, 9)
            stalled = True
            break
    status = os.waitpid(child, 0)[1]
    lines = text.decode().splitlines()
    if lines and lines[-1].startswith("{") and not stalled:
        return Chunk(**json.loads(lines[-1]))
    at = int(lines[-1]) if lines and lines[-1].isdigit() else 0
    how = "hang: no sign of life" if stalled else f"crash: status {status}"
    return Chunk(kind, number, inputs=at + 1, date=datetime.date.today().isoformat(),
                 findings=[f"{kind}:{number}:{at} {how} ({size - at - 1} inputs are left out)"])


# ------------------------------------------------------------------------------------------------ the result
def summary(chunks: Sequence[Chunk], seed: str, head: Mapping[str, Any]) -> dict[str, Any]:
    """The counts of a run, as plain data."""
    rows = {}
    for kind in PLAN:
        of = [c for c in chunks if c.kind == kind]
        if not of:
            continue
        refused: Counter[str] = Counter()
        answers: Counter[str] = Counter()
        for c in of:
            refused.update(c.refused)
            answers.update(c.answers)
        rows[kind] = {
            "what": WHAT[kind], "date": min(c.date for c in of), "chunks": f"{of[0].number}..{of[-1].number}",
            "inputs": sum(c.inputs for c in of),
            "parsed": sum(c.parsed for c in of), "executed": sum(c.executed for c in of),
            "native_runs": sum(c.native for c in of), "seconds": round(sum(c.seconds for c in of)),
            "refused": dict(refused.most_common()), "answers": dict(sorted(answers.items())),
            "findings": sorted(f for c in of for f in c.findings)}
    return {"schema": "schedproof-campaign/1", "campaign": "fuzz", "seed": seed, **head, "rows": rows}


def covered(chunks: Sequence[Chunk]) -> dict[str, tuple[int, int, list[int]]]:
    """For each file of schedproof/kernel/: lines run, lines there are, lines that did not run."""
    from coverage.python import PythonParser
    found = {}
    for file in sorted((ROOT / "schedproof" / "kernel").glob("*.py")):
        parser = PythonParser(filename=str(file))
        parser.parse_source()
        ran = {n for c in chunks for n in c.lines.get(file.name, [])} & parser.statements
        found[file.name] = (len(ran), len(parser.statements), sorted(parser.statements - ran))
    return found


def digest() -> str:
    """What a run rests on: the package and the generators."""
    found = hashlib.sha256()
    for folder in (ROOT / "schedproof", ROOT / "models", ROOT / "tests" / "campaigns"):
        for file in sorted(folder.rglob("*.py")):
            found.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:12]


def shown(result: Mapping[str, Any]) -> str:
    """The result as text, with how old it is."""
    same = "of the code as it is" if result["code"] == digest() else "of code that has changed since"
    lines = [f"fuzz of the reader: seed {result['seed']}, commit {result['commit']}, {same}", "",
             f"{'kind':<10} {'inputs':>7} {'parsed':>7} {'run':>7} {'native':>7} {'seconds':>7} {'findings':>8}"
             "  days old"]
    total = Counter[str]()
    for kind, row in result["rows"].items():
        numbers = {n: row[n] for n in ("inputs", "parsed", "executed", "native_runs", "seconds")}
        total.update({**numbers, "findings": len(row["findings"])})
        lines.append(f"{kind:<10} " + " ".join(f"{n:>7}" for n in numbers.values()) + f" {len(row['findings']):>8}"
                     f" {(datetime.date.today() - datetime.date.fromisoformat(row['date'])).days:>9}")
    lines.append(f"{'all':<10} " + " ".join(f"{total[n]:>7}" for n in
                                            ("inputs", "parsed", "executed", "native_runs", "seconds"))
                 + f" {total['findings']:>8}")
    for kind, row in result["rows"].items():
        refused = ", ".join(f"{k} {n}" for k, n in list(row["refused"].items())[:12])
        lines += ["", f"{kind}: {row['what']}", f"  refused: {refused or 'none'}",
                  *(f"  {f}" for f in row["findings"][:20])]
    if "coverage" in result:
        lines += ["", f"lines of schedproof/kernel/ that ran: {result['coverage']['percent']} %"]
        lines += [f"  {f:<18} {row[0]:>4} of {row[1]:>4}" for f, row in result["coverage"]["files"].items()]
    return "\n".join(lines)


# -------------------------------------------------------------------------------------------------- the run
def _measuring() -> Any:
    try:
        import coverage
    except ImportError:
        return None
    found = coverage.Coverage(data_file=None, include=[str(ROOT / "schedproof/kernel/*")], config_file=False)
    found.start()
    return found


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make campaign-fuzz", description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--share", type=float, default=1.0, help="of the inputs of a whole run")
    parser.add_argument("--kinds", default=",".join(PLAN))
    parser.add_argument("--chunks", help="FIRST..LAST of each kind instead")
    parser.add_argument("--progress", type=Path, default=ROOT / "benchmarks" / "campaigns" / ".fuzz-progress.jsonl",
                        help="the file that keeps what is done; remove it to begin anew")
    parser.add_argument("--result", type=Path, default=RESULT)
    parser.add_argument("--table", action="store_true", help="print the stored result only")
    args = parser.parse_args(words)
    if args.table:
        print(shown(json.loads(args.result.read_text())))
        return 0
    if "PYTHONHASHSEED" not in os.environ:                    # the same seed gives the same inputs and answers
        os.execve(sys.executable, [sys.executable, "-m", "tests.campaigns.fuzz_reader", *(words or sys.argv[1:])],
                  {**os.environ, "PYTHONHASHSEED": "0"})
    coverage = _measuring()                                   # before the package is imported
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True,
                            check=False).stdout.strip() or "unknown"
    key = f"{args.seed} {digest()}"
    done = _before(args.progress, key)
    chunks = list(done.values())
    kinds = [k for k in args.kinds.split(",") if k in PLAN]
    if "damaged" in kinds and not os.environ.get("SCHEDPROOF_TREES"):
        print("SCHEDPROOF_TREES is not set: no functions of real trees are damaged", file=sys.stderr)
        kinds.remove("damaged")
    with tempfile.TemporaryDirectory(prefix="schedproof-fuzz-", ignore_cleanup_errors=True) as folder:
        worker = Worker(Path(folder), args.seed, kinds)
        for kind, number in _order(kinds, args):
            if (kind, number) in done:
                continue
            chunk = apart(worker, kind, number, CHUNK, coverage)
            chunks.append(chunk)
            args.progress.parent.mkdir(parents=True, exist_ok=True)
            with args.progress.open("a") as file:
                file.write(json.dumps({"key": key, **vars(chunk)}) + "\n")
            print(f"{kind:<10} {number:>4}: {chunk.executed:>3} of {chunk.inputs} run, {chunk.seconds:5.1f} s"
                  + "".join(f"\n    {f}" for f in chunk.findings), flush=True)
    chunks.sort(key=lambda c: (list(PLAN).index(c.kind), c.number))
    head: dict[str, Any] = {"commit": commit, "code": digest()}
    if any(c.lines for c in chunks):
        files = covered(chunks)
        ran, there = sum(r for r, _, _ in files.values()), sum(n for _, n, _ in files.values())
        head["coverage"] = {"percent": round(100 * ran / there, 1), "files": {f: v[:2] for f, v in files.items()}}
    result = summary(chunks, args.seed, head)
    args.result.parent.mkdir(parents=True, exist_ok=True)
    args.result.write_text(json.dumps(result, indent=1) + "\n")
    print(shown(result))
    return 1 if any(row["findings"] for row in result["rows"].values()) else 0


def _order(kinds: Sequence[str], args: argparse.Namespace) -> list[tuple[str, int]]:
    """The chunks of a run, the kinds in turn, so that one that is broken off has some of each."""
    if args.chunks:
        first, _, last = args.chunks.partition("..")
        return [(k, n) for n in range(int(first), int(last or first) + 1) for k in kinds]
    wanted = [(n / count, k, n) for k in kinds
              for count in [max(1, round(PLAN[k] * args.share / CHUNK))] for n in range(count)]
    return [(k, n) for _, k, n in sorted(wanted)]


def _before(path: Path, key: str) -> dict[tuple[str, int], Chunk]:
    """What an earlier run with the same seed and commit has done."""
    found = {}
    for line in path.read_text().splitlines() if path.is_file() else []:
        row = json.loads(line)
        if row.pop("key") == key:
            found[row["kind"], row["number"]] = Chunk(**row)
    return found


if __name__ == "__main__":
    sys.exit(main())
