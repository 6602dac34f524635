# SPDX-License-Identifier: GPL-2.0-only
"""A small tree with the C of tests/models/gate, and the command line run on it in this process."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import schedproof.suite
from schedproof import cli, registry

SUITE = Path(__file__).parent.parent / "models" / "gate"
FILE, HEADER, DEEP = "kernel/sched/gate.c", "kernel/sched/gate.h", "kernel/sched/deep.h"

FILES = {
    "Makefile": "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 7\n",
    HEADER: """\
#define GATE_LIMIT 1000
#define GATE_BEATS (GATE_SCALE * 2)
#define GATE_SCALE 4
#define GATE_STEP 1

enum gate_state {
	GATE_SHUT,
	GATE_OPEN,
};

struct gate {
	int open;
	bool waiting;
	int count;
	u64 stamp;
	struct task_struct *owner;
};

static inline void gate_log(struct gate *g)
{
	g->count = 0;
}

static inline void trace_gate(struct gate *g, int what)
{
}
""",
    DEEP: """\
static inline int gate_deep(struct gate *g)
{
	return g->count + GATE_BEATS;
}
""",
    FILE: """\
#include "gate.h"
#include "deep.h"

static DEFINE_STATIC_KEY_TRUE(gate_in_use);

static bool gate_ready(struct gate *g)
{
	return READ_ONCE(g->open) == GATE_OPEN;
}

static void gate_pass(struct gate *g)
{
	lockdep_assert_held(&g->lock);
	if (!g->waiting)
		return;
	if (gate_ready(g)) {
		g->waiting = false;
		smp_mb();
		g->open = GATE_SHUT;
		g->stamp = 1;
		trace_gate(g, 1);
	}
}

static void gate_refill(struct gate *g)
{
	g->open = GATE_OPEN;
}

static int gate_middle(struct gate *g)
{
	return gate_deep(g) + 1;
}

static void gate_slow(struct gate *g)
{
	asm volatile("nop");
	if (gate_middle(g) < GATE_LIMIT)
		g->count++;
}

static void gate_unrelated(struct gate *g)
{
	g->count = 2;
}
""",
}


def patch_of(changed: Mapping[str, str | None], base: Mapping[str, str] = FILES, subject: str = "") -> str:
    """A patch, as a mail where it has a subject, that gives files another text (None: deletes them)."""
    head = f"From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\nFrom: a <a@b.c>\n" \
           f"Subject: [PATCH] {subject}\n\n---\n" if subject else ""
    return head + "".join("".join(difflib.unified_diff(
        base.get(file, "").splitlines(True), (text or "").splitlines(True),
        f"a/{file}" if file in base else "/dev/null", f"b/{file}" if text is not None else "/dev/null"))
        for file, text in changed.items())


def swapped(text: str, *pairs: tuple[str, str]) -> str:
    """A text with some pieces, each of which stands in it once, put in place of others."""
    for old, new in pairs:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
        text = text.replace(old, new)
    return text


@dataclass(frozen=True)
class Done:
    """What one command left."""

    code: int
    out: str
    err: str

    @property
    def flat(self) -> str:
        return " ".join(self.out.split())

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def part(self) -> Any:
        """The only model's part of the only patch."""
        (patch,) = self.json["patches"]
        (model,) = patch["models"]
        return model

    @property
    def functions(self) -> dict[str, Any]:
        return {f["function"]: f for f in self.part["functions"]}

    @property
    def verdicts(self) -> dict[str, tuple[str, str, str]]:
        return {p["property"]: (p["before"]["verdict"], p["after"]["verdict"], p["change"])
                for p in self.part["properties"]}


class Gates:
    """A tree of small files in a folder, and commands on it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]):
        self.folder, self.capsys, self.tree = folder, capsys, folder / "tree"
        self.write(FILES)

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def run(self, *words: str | Path, cached: bool = False) -> Done:
        self.capsys.readouterr()
        code = cli.main([*map(str, words), "--suite", str(SUITE), *(() if cached else ("--no-cache",))])
        return Done(code, *self.capsys.readouterr())

    def check(self, patch: str, *words: str | Path, cached: bool = False) -> Done:
        """``check`` of a patch with the JSON that it gives."""
        (self.folder / "one.patch").write_text(patch)
        return self.run("check", self.folder / "one.patch", "--tree", self.tree, *(words or ("--json",)),
                        cached=cached)

    def edit(self, *pairs: tuple[str, str], file: str = FILE) -> Done:
        """``check`` of a patch that changes one file."""
        return self.check(patch_of({file: swapped(FILES[file], *pairs)}))


@pytest.fixture
def gates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Gates]:
    """The small tree; the suite that was in use is put back."""
    before = list(schedproof.suite.__path__)
    loaded = {n: m for n, m in sys.modules.items() if n.startswith("schedproof.suite.")}
    yield Gates(tmp_path, capsys)
    registry.use_suite(Path(before[0]))
    sys.modules.update(loaded)


Edit = Callable[..., Done]
