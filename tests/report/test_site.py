# SPDX-License-Identifier: GPL-2.0-only
"""``schedproof report``: every declared verdict is in it, every link leads somewhere, and names are only text."""

from __future__ import annotations

import json
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

from schedproof import cli
from schedproof.report import _site
from schedproof.report._pages import page


class Reader(HTMLParser):
    """The links and the cells of a page; complains of a tag that is not closed."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.cells: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta",):
            self.open.append(tag)
        given = dict(attrs)
        if tag == "a":
            self.links.append(given["href"] or "")
        if tag == "td":
            self.cells.append((given.get("class") or "", ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open:
            name, text = self.cells[-1]
            self.cells[-1] = name, text + data


@pytest.fixture
def site(toy: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert cli.main(["report", "-o", str(tmp_path / "site"), "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    return tmp_path / "site"


def test_every_link_leads_somewhere(site: Path):
    pages = sorted(site.rglob("*.html"))
    assert {"index.html", "toy.html"} <= {p.name for p in pages}
    for file in (p for p in pages if p.parent == site):
        for link in Reader(file.read_text()).links:
            assert (file.parent / link).is_file(), (file, link)


def test_every_declared_verdict_is_there(site: Path, capsys: pytest.CaptureFixture[str]):
    """As many of each as ``prove`` says, with the waits, and a page for each that is refuted."""
    assert cli.main(["prove", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["results"]
    cells = [c for c in Reader((site / "toy.html").read_text()).cells if c[0]]
    assert Counter(name for name, _ in cells) == Counter(r["verdict"] for r in rows)
    worst = [f"{r['verdict']}, {r['worst_case']}" for r in rows if r["worst_case"] is not None]
    assert worst and all(any(text.startswith(w) for _, text in cells) for w in worst)
    pages = {f"{r['property']}-{r['variant']}.html" for r in rows if r["trace"] is not None}
    assert pages and {p.name for p in (site / "toy").iterdir()} == pages


def test_what_is_not_as_declared_is_marked():
    result = {"property": "p", "variant": "v1", "verdict": "refuted", "expected": "proved", "worst_case": None,
              "unit": "", "reason": 'a <b> & "c"'}
    about = {"model": "m<i>", "what": "<script>", "mutants": {}, "functions": {}, "parameters": {},
             "properties": [{"name": "p", "statement": "</dd>", "facts": ""}]}
    grid = _site.grid("<s>", [_site.Cell(result)])
    section = _site.Section(about, (grid,), (), {"x": "<u>"})
    text = page("model.html", s=section)
    assert Reader(text).cells == [("refuted wrong", "refuted")]
    for tag in ("<b>", "<script>", "<u>", "<i>", "<s>"):
        assert tag not in text.split("</style>")[1]
    assert ("wrong", "1") in Reader(page("index.html", sections=[section], version="0")).cells


def test_kernels_stand_in_their_order():
    names = ["rfc-v1", "v6.1+fix", "v4.14", "v6.12", "v6.1", "base"]
    assert sorted(names, key=_site.release) == ["v4.14", "v6.1", "v6.1+fix", "v6.12", "base", "rfc-v1"]


@pytest.mark.parametrize("words", [("--variant", "v1"), ("--set", "ratio=4")])
def test_wrong_calls(toy: object, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]):
    assert cli.main(["report", "-o", str(tmp_path / "site"), *words]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and not (tmp_path / "site").exists()
    (tmp_path / "file").write_text("")
    assert cli.main(["report", "-o", str(tmp_path / "file")]) == 2
