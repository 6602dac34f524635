# SPDX-License-Identifier: GPL-2.0-only
"""Patches made by program, whole and damaged, through the reader of patches and through ``check``."""

from __future__ import annotations

import base64
import difflib
import quopri
import random
from dataclasses import dataclass
from typing import Any

from schedproof.errors import SchedproofError
from schedproof.kernel import Tree
from schedproof.kernel.check import check
from schedproof.kernel.patch import apply, parse_patches
from tests.campaigns.fuzz import mutate
from tests.campaigns.fuzz.runs import Outcome, kind_of, refusal
from tests.campaigns.fuzz.yard import FILE, Yard

OTHER = "kernel/sched/other.c"
HEAD = '#include "yard.h"\n\n/* Some words. */\n'
BASE = HEAD + """
static int helper(struct car *c, int n)
{
	if (n > 3)
		return c->small;
	return n;
}

long f(struct car *c, int n)
{
	long sum = 0;
	int i;

	for (i = 0; i < 3; i++) {
		if (i == n)
			break;
		sum += helper(c, i);
	}
	if (!c->ahead)
		goto out;
	c->ahead->wide = sum;
	c->home->nr++;
out:
	c->count = n;
	return sum;
}

int unrelated(int x)
{
	return x + 1;
}
"""
MIME = "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n"
OTHER_BASE = "\n".join(f"int other_{i};" for i in range(30)) + "\n"
EDITS = (("n > 3", "n > 4"), ("i < 3", "i <= 3"), ("\t\t\tbreak;", "\t\t\tcontinue;"),
         ("sum += helper(c, i)", "sum -= helper(c, i)"), ("goto out", "return 0"),
         ("c->home->nr++", "c->home->nr += 2"), ("Some words", "Other words"), ("x + 1", "x + 2"),
         ("return sum", "return sum * 2"), ("!c->ahead", "c->ahead == NULL"), ("int i;", "int i, unused = 3;"),
         ("\tlong sum = 0;\n", "\tlong sum = 0; /* none */\n"), ("return n;", "return n + 0;"),
         ("c->count = n", "c->count = (unsigned char)n"), ("struct car *c, int n)", "struct car *c, long n)"),
         ("\tc->home->nr++;\n", ""), ("out:\n", "out:\n\tc->flag = true;\n"),
         ('#include "yard.h"\n', '#include "yard.h"\n#define YARD 1\n'), ("unrelated", "related"),
         ("i == n", "(i ^ 1) == n"), ("int unrelated(int x)\n{\n\treturn x + 1;\n}\n", ""),
         ("c->ahead->wide = sum", "WRITE_ONCE(c->ahead->wide, sum)"))


@dataclass
class Series:
    """A patch and what the file is to be behind it (None: no longer there)."""

    text: str
    after: dict[str, str | None]


def _diff(rng: random.Random, old: str, new: str, file: str, source: str | None = None,
          target: str | None = None) -> str:
    return "".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), source or f"a/{file}",
                                        target or f"b/{file}", n=rng.choice((0, 1, 3, 3, 3, 10))))


def _wrapped(rng: random.Random, body: str) -> str:
    """As a plain diff, a mail, or a mail with a transfer encoding."""
    kind = rng.randrange(5)
    if kind == 0:
        return body
    head = ("From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\nFrom: A <a@example.org>\n"
            "Subject: [PATCH] change\n")
    words = "\nWords about it.\n---\n"
    if kind == 1:
        return head + words + body + "-- \n2.39.2\n\n"
    if kind == 2:
        return head + words + body
    if kind == 3:
        inner = quopri.encodestring((words[1:] + body).encode("utf-8", "surrogateescape")).decode("ascii")
        return f"{head}{MIME}Content-Transfer-Encoding: quoted-printable\n\n{inner}"
    inner = base64.encodebytes((words[1:] + body).encode("utf-8", "surrogateescape")).decode("ascii")
    return f"{head}{MIME}Content-Transfer-Encoding: base64\n\n{inner}"


def series(rng: random.Random) -> Series:
    """A patch that applies to the tree with BASE and OTHER_BASE."""
    new = BASE
    for old_text, new_text in rng.sample(EDITS, rng.randint(1, 4)):
        new = new.replace(old_text, new_text, 1)
    after: dict[str, str | None] = {FILE: new}
    parts = [_diff(rng, BASE, new, FILE)]
    kind = rng.randrange(10)
    if kind == 0:
        changed = OTHER_BASE.replace("other_5;", "other_five;")
        after[OTHER] = changed
        parts.append(_diff(rng, OTHER_BASE, changed, OTHER))
    elif kind == 1:
        made = "int fresh(void)\n{\n\treturn 0;\n}\n"
        after["kernel/sched/fresh.c"] = made
        parts.append("diff --git a/kernel/sched/fresh.c b/kernel/sched/fresh.c\nnew file mode 100644\n"
                     + _diff(rng, "", made, "kernel/sched/fresh.c", "/dev/null"))
    elif kind == 2:
        after[OTHER] = None
        parts.append(f"diff --git a/{OTHER} b/{OTHER}\ndeleted file mode 100644\n"
                     + _diff(rng, OTHER_BASE, "", OTHER, None, "/dev/null"))
    elif kind == 3:
        after[OTHER], after["kernel/sched/moved.c"] = None, OTHER_BASE
        parts.append(f"diff --git a/{OTHER} b/kernel/sched/moved.c\nsimilarity index 100%\nrename from {OTHER}\n"
                     "rename to kernel/sched/moved.c\n")
    if kind % 2:
        parts.insert(0, f"diff --git a/{FILE} b/{FILE}\nindex 1234567..89abcde 100644\n")
    body = "".join(parts)
    if "@@" not in body:
        after[FILE] = BASE
    return Series(_wrapped(rng, body), after)


def one(rng: random.Random, tree: Tree, outcome: Outcome) -> None:
    """One patch: whole ones have to apply as made; damaged ones are refused, or checked."""
    made = series(rng)
    whole = rng.random() < 0.35
    text = made.text if whole else mutate.patch_text(rng, made.text)
    try:
        found = parse_patches(text, "one.patch")
        after = apply(tree, found)
    except SchedproofError as error:
        refusal(outcome, error)
        outcome.refused = kind_of(str(error).removeprefix("one.patch: "))
        if whole and "@@" in made.text:
            outcome.find("wrong", f"a whole patch is refused: {error}")
        return
    outcome.parsed = True
    if whole:
        for file, wanted in made.after.items():
            got = after.text(file) if after.exists(file) else None
            if got != wanted:
                outcome.find("wrong", f"{file} is not what the patch makes of it")
    models: dict[str, tuple[Any, tuple[()]]] = {"yard": (Yard, ())}
    for report in check(found, tree, models, None):
        report.to_json()
        for part in report.models:
            for function in part.functions:
                outcome.answers.append(f"check: {function.status}")
                outcome.executed = outcome.executed or function.status in ("equal", "invisible", "differs", "unknown")
                if function.status == "not_read":
                    outcome.refused = kind_of(function.detail.partition("patch: ")[2])
