# SPDX-License-Identifier: GPL-2.0-only
"""The suite as static pages: one that leads to all, one a model, and the runs as pages of the format ``html``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from schedproof.report.table import worst_case
from schedproof.results import Result, code_of

STYLE = """
:root { --back: #fbfbf9; --text: #1d2126; --soft: #656d76; --line: #d9dcd6; --good: #d9efdc; --bad: #f6d5d3;
  --open: #f7e7bd; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --back: #15181c; --text: #e4e6e8; --soft: #9aa3ad; --line: #343a41;
  --good: #1f4028; --bad: #57272a; --open: #4d4016; } }
body { margin: 0 auto; max-width: 76rem; padding: 1.2rem clamp(.8rem, 3vw, 2.5rem); background: var(--back);
  color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
p, dd { max-width: 80ch; } a { color: inherit; } .soft { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; }
th, td { border: 1px solid var(--line); padding: .25rem .6rem; text-align: left; vertical-align: top; }
th { font-weight: 600; } td.proved { background: var(--good); } td.refuted { background: var(--bad); }
td.unknown, td.vacuous { background: var(--open); } td.wrong { outline: 3px solid #c2410c; outline-offset: -3px; }
code { font-family: ui-monospace, monospace; font-size: .9em; }
dt { font-weight: 600; margin-top: .6rem; } dd { margin-left: 0; }
"""


@dataclass(frozen=True)
class Cell:
    """A verdict, and the page that shows its run, relative to the page of the model; "" where there is none."""

    result: Result
    page: str = ""


@dataclass(frozen=True)
class Section:
    """One model: what ``schedproof list`` tells of it, its verdicts, and what it leaves out, each with a reason."""

    about: Mapping[str, Any]
    cells: tuple[Cell, ...]
    left_out: Mapping[str, str]


def page(title: str, body: Iterable[str]) -> str:
    """A whole page around some parts."""
    return ("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            f"<title>{escape(title)}</title>\n"
            f"<style>{STYLE}</style>\n</head>\n<body>\n" + "\n".join(body) + "\n</body>\n</html>\n")


def index(sections: Sequence[Section], version: str) -> str:
    """The page that leads to the others."""
    rows = []
    for s in sections:
        counts: dict[str, int] = {}
        for cell in s.cells:
            counts[cell.result["verdict"]] = counts.get(cell.result["verdict"], 0) + 1
        wrong = sum(code_of(c.result) != 0 for c in s.cells)
        told = ", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items())) or "no property yet"
        rows.append(f"<tr><th><a href=\"{escape(s.about['model'])}.html\">{escape(s.about['model'])}</a></th>"
                    f"<td>{escape(s.about['what'])}</td><td>{escape(told)}</td>"
                    f"<td class=\"{'wrong' if wrong else ''}\">{wrong or 'none'}</td></tr>")
    head = "<tr><th>model</th><th>what it is about</th><th>verdicts</th><th>not as declared</th></tr>"
    return page("schedproof", [
        "<h1>What is proved and what is refuted</h1>",
        f"<p class=\"soft\">schedproof {escape(version)}. A verdict holds for the instance of its model; "
        "<em>refuted</em> where a property is declared to fail is as it should be: it is a fault of that kernel.</p>",
        f"<div class=\"wide\"><table>{head}{''.join(rows)}</table></div>"])


def of_model(s: Section) -> str:
    """The page of one model."""
    about = s.about
    body = ["<p><a href=\"index.html\">all models</a></p>", f"<h1>{escape(about['model'])}</h1>",
            f"<p>{escape(about['what'])}</p>"]
    kernels = [c for c in s.cells if not _faulty(c.result["variant"], about)]
    faults = [c for c in s.cells if _faulty(c.result["variant"], about)]
    body += [_verdicts(about, kernels)] if kernels else ["<p>There is no property of this model yet.</p>"]
    if faults:
        body += ["<h2>Deliberate faults</h2><p>They show that a property can fail; no kernel is like this.</p>",
                 _verdicts(about, faults)]
    body += ["<h2>The properties</h2>", _list({p["name"]: p["statement"] + (f" ({p['facts']})" if p["facts"] else "")
                                               for p in about["properties"]})]
    functions: dict[str, list[str]] = {}
    for function, file in about["functions"].items():
        functions.setdefault(file, []).append(function)
    body += ["<h2>The kernel functions it stands for</h2>",
             _list({file: ", ".join(f"{n}()" for n in names) for file, names in functions.items()})]
    if s.left_out:
        body += ["<h2>What it leaves out</h2>", _list(s.left_out)]
    if about["parameters"]:
        body += ["<h2>Parameters</h2>", _list({
            key: f"{p['default']} ({p['low']} to {p['high']}). {p['what']}" for key, p in about["parameters"].items()})]
    return page(f"schedproof: {about['model']}", body)


def _faulty(variant: str, about: Mapping[str, Any]) -> bool:
    return any(change in about["mutants"] for change in variant.split("+")[1:])


def _verdicts(about: Mapping[str, Any], cells: Sequence[Cell]) -> str:
    there = {(c.result["property"], c.result["variant"]): c for c in cells}
    names = [p["name"] for p in about["properties"] if any(p["name"] == n for n, _ in there)]
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = [f"<tr><th>{escape(v)}</th>{''.join(_cell(there.get((name, v))) for name in names)}</tr>"
            for v in sorted({v for _, v in there}, key=_release)]
    return f"<div class=\"wide\"><table><tr><th></th>{head}</tr>{''.join(rows)}</table></div>"


def _release(variant: str) -> tuple[Any, ...]:
    """Kernels in their order, what is no kernel behind them, fixes behind the kernel that they mend."""
    release, _, changes = variant.partition("+")
    numbers = release.removeprefix("v").split(".")
    return (0, *map(int, numbers), changes) if all(n.isdigit() for n in numbers) else (1, release, changes)


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "<td></td>"
    r = cell.result
    worst = worst_case(r)
    text = escape(r["verdict"] + (f", {worst}" if r["worst_case"] is not None else ""))
    wrong = " wrong" if code_of(r) else ""
    title = f" title=\"{escape(str(r['reason']), quote=True)}\"" if r.get("reason") else ""
    link = f"<a href=\"{escape(cell.page, quote=True)}\">{text}</a>" if cell.page else text
    return f"<td class=\"{r['verdict']}{wrong}\"{title}>{link}</td>"


def _list(rows: Mapping[str, str]) -> str:
    return "<dl>" + "".join(f"<dt><code>{escape(k)}</code></dt><dd>{escape(v)}</dd>" for k, v in rows.items()) + "</dl>"
