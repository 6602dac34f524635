# SPDX-License-Identifier: GPL-2.0-only
"""``check --b4`` and ``check --b4-review``: one mail on standard input, in the form that b4 asks of its checks.

For ``b4 prep --check`` each line on standard output is one finding and each line on standard error a failure, so a
patch with which nothing is wrong is met with silence, and whatever goes wrong here is a line like any other.
``b4 review`` wants a JSON list instead. Both count the exit code only where nothing is printed: it is always 0.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from schedproof.console import emit
from schedproof.errors import SchedproofError
from schedproof.report.terse import Finding, findings

TOOL = "schedproof"


def run(args: argparse.Namespace) -> int:
    """Check the mail on standard input against the repository of the current folder."""
    from schedproof.commands.check import reports_of
    from schedproof.kernel.mails import standing, top_level
    from schedproof.kernel.patch import NoDiff, parse_patches

    found: list[Finding] = []
    try:
        patches = parse_patches(sys.stdin.buffer.read().decode("utf-8", "surrogateescape"), "this mail")
        top = top_level(Path(args.tree or "."))
        tree, commits = standing(top, patches)
        args.tree, args.quiet = str(top), True
        reports = reports_of(args, tree, patches)
        found = [f for report, commit in zip(reports, commits, strict=True)
                 for f in findings(report, again(top, commit, args))]
    except NoDiff:
        pass                                                        # a cover letter
    except SchedproofError as error:
        found = [Finding("WARNING", f"not checked: {error}")]
    except Exception as error:                                      # a stack on standard error would fail the patch
        found = [Finding("WARNING", f"not checked, by a bug of schedproof: {type(error).__name__}: "
                                    f"{' '.join(str(error).split())[:200]}")]
    emit(review(found) if args.b4_review else lines(found))
    return 0


def again(top: Path, commit: str, args: argparse.Namespace) -> str:
    """The command that shows the whole report."""
    words = ["schedproof", "check", commit[:12] if commit else "THIS-MAIL", "--tree", str(top)]
    if args.variant:
        words += ["--variant", args.variant]
    for name, value in args.settings:
        words += ["--set", f"{name}={value}"]
    return shlex.join(words)


def lines(found: Sequence[Finding]) -> str:
    """One line for all that is wrong, as b4 counts each line as a finding of its own; nothing where nothing is."""
    if not found:
        return ""
    worst = "ERROR" if any(f.level == "ERROR" for f in found) else "WARNING"
    told = [f for f in found if f.level == worst]
    commands = list(dict.fromkeys(f.command for f in told if f.command))
    text = "; ".join(f.text for f in told)
    return f"{worst}: {text}{': ' if commands else ''}{' '.join(commands)}\n"


def review(found: Sequence[Finding]) -> str:
    """The same as b4's review wants it."""
    rows: list[dict[str, Any]] = [
        {"tool": TOOL, "status": "fail" if f.level == "ERROR" else "warn", "summary": f.text, "url": "",
         "details": "\n".join(x for x in (f.place, f.command and f"shown by: {f.command}", *f.story) if x)}
        for f in found]
    return json.dumps(rows, indent=1) + "\n"
