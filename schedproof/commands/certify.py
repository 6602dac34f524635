# SPDX-License-Identifier: GPL-2.0-only
"""``schedproof certify``: checks certificates of proofs by induction again, from the model and the file alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from schedproof.commands._common import enter_suite, output
from schedproof.console import complain, emit, one_line
from schedproof.errors import InputError, SchedproofError
from schedproof.results import OK, UNDECIDED, VIOLATED, WRONG_INPUT, exit_code

HELP = "checks certificates of proofs again, with Z3 and, where it is installed, cvc5"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
    output(parser)


def run(args: argparse.Namespace) -> int:
    from schedproof.report import render

    enter_suite(args)
    rows, codes = [], []
    for file in args.files:
        try:
            row = certify(file)
        except SchedproofError as error:
            complain(f"{file}: {one_line(error)}")
            codes.append(WRONG_INPUT)
            continue
        rows.append(row)
        codes.append({"valid": OK, "invalid": VIOLATED}.get(row["verdict"], UNDECIDED))
    if args.json:
        if WRONG_INPUT not in codes:
            emit(render(rows, "json"))
    else:
        shown = [row for row in rows if row["verdict"] != "valid" or not args.quiet]
        if shown:
            emit("".join(f"{r['file']}: {r['verdict']}: {r['model']}:{r['property']} in {r['variant']}, {r['reason']}\n"
                         for r in shown))
    return exit_code(codes)


def certify(file: Path) -> dict[str, Any]:
    """What one file comes to: valid, invalid or unknown. Raises InputError where it is no certificate of its model."""
    from schedproof.engines.certificate import check, has_cvc5, names_in
    from schedproof.registry import find_property

    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or 'it is not text'}") from None
    names = names_in(text)
    _, prop = find_property(f"{names['model']}:{names['property']}")
    answers = check(prop.model.variant(names["variant"], **names["parameters"]), prop, text)
    wrong = [a for a in answers if a.answer != "unsat"]
    row = {"file": str(file), "model": names["model"], "property": prop.name, "variant": names["variant"],
           "solvers": ["Z3", "cvc5"] if has_cvc5() else ["Z3"], "questions": len({a.question for a in answers})}
    if not wrong:
        reason = f"{row['questions']} obligations, by {' and '.join(row['solvers'])}"
        return {**row, "verdict": "valid", "reason": reason}
    broken = [a for a in wrong if a.answer == "sat"]
    if broken:
        return {**row, "verdict": "invalid", "reason": f"{broken[0].solver} finds {broken[0].question}"}
    return {**row, "verdict": "unknown", "reason": f"{wrong[0].solver} gave up at: {wrong[0].question}"}
