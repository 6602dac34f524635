# SPDX-License-Identifier: GPL-2.0-only
"""What each format makes of a stored counterexample of each model; ``python -m tests.report.golden`` writes it anew.

Of a page only what it draws is kept: the rest is the template.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from schedproof.errors import InputError
from schedproof.report import render
from schedproof.report._lanes import picture
from schedproof.report.htmlout import data
from schedproof.trace import load

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "golden"
SUFFIX = {"text": "txt", "mail": "eml", "html": "page.json",
          "perfetto": "perfetto.json", "ftrace": "ftrace", "itf": "itf.json"}
LONGEST = 60            # steps: more of them make a large file and show nothing else


def subjects() -> dict[str, Path]:
    """One counterexample of each model: the first that is not too long."""
    found = {}
    for folder in sorted((ROOT / "counterexamples").iterdir()):
        files = sorted(folder.glob("*.json")) if folder.is_dir() else []
        short = [f for f in files if len(load(f).steps) <= LONGEST]
        if files:
            found[folder.name] = (short or files)[0]
    return found


def made(file: Path, format: str) -> str | None:
    """The text, or None for a format that the model cannot have (ftrace without CPUs). The version stands for any."""
    if format == "html":
        return in_lines(data(picture(load(file))))
    try:
        return render(load(file), format)
    except InputError:
        assert format == "ftrace"
        return None


def in_lines(values: dict[str, Any]) -> str:
    """JSON with a line for each value, and for each member of a list of objects, so that differences are read."""
    def one(value: Any) -> str:
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return "[\n  " + ",\n  ".join(map(one, value)) + "]"
        return json.dumps(value, ensure_ascii=False)
    return "{\n" + ",\n".join(f" {json.dumps(key)}: {one(value)}" for key, value in values.items()) + "\n}\n"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    for model, file in subjects().items():
        for format, suffix in SUFFIX.items():
            text = made(file, format)
            if text is not None:
                (FOLDER / f"{model}.{suffix}").write_text(text)


if __name__ == "__main__":
    main()
