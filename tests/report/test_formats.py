# SPDX-License-Identifier: GPL-2.0-only
"""The formats for browsers, Perfetto, ftrace, ITF and KTAP: their own rules, and the files that are kept of them."""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from schedproof import cli
from schedproof.errors import InputError
from schedproof.report import render
from schedproof.report._lanes import picture
from schedproof.trace import Step, Trace, load
from tests.loading import need
from tests.report.golden import FOLDER, ROOT, SUFFIX, made, subjects

REPORTED = ROOT / "counterexamples" / "quota_reweight" / "bounded_wait-v4.14.json"


@pytest.fixture
def reported() -> Trace:
    return load(REPORTED)


@pytest.fixture
def endless(reported: Trace) -> Trace:
    """The same run with its last steps as a part that repeats (what it says need not be true of the model)."""
    return replace(reported, stem=reported.stem[:-4], cycle=reported.stem[-4:])


# ------------------------------------------------------------------------------------------------------- golden
@pytest.mark.parametrize("format", SUFFIX)
@pytest.mark.parametrize("model", subjects())
def test_what_is_kept_is_what_is_made(model: str, format: str):
    """When a model or a format changes: ``python -m tests.report.golden``, and look at the difference."""
    file = FOLDER / f"{model}.{SUFFIX[format]}"
    text = made(subjects()[model], format)
    assert (file.read_text() if file.exists() else None) == text


def test_nothing_else_is_kept():
    names = {f"{m}.{SUFFIX[f]}" for m, file in subjects().items() for f in SUFFIX if made(file, f) is not None}
    assert {f.name for f in FOLDER.iterdir()} == names


# ------------------------------------------------------------------------------------------------------- lanes
def test_lanes_say_what_each_entity_is_doing(reported: Trace):
    """By hand, from the run of docs/quota_reweight.md: a sleeps after b has been picked, and the quota runs out."""
    seen = picture(reported)
    assert list(seen.lanes) == ["gA", "gB"] and list(seen.cpus) == [0]
    assert [s.what for s in seen.lanes["gA"]][:5] == ["running", "asleep", "throttled", "waiting", "running"]
    assert [s.what for s in seen.cpus[0]][:4] == ["gA", "gB", "", "gA"]
    for spans in (*seen.lanes.values(), *seen.cpus.values()):
        assert [s.first for s in spans] == [0, *(s.last + 1 for s in spans[:-1])]
        assert spans[-1].last == len(reported.steps)
    running = {i for s in seen.lanes["gA"] if s.what == "running" for i in range(s.first, s.last + 1)}
    assert running == {i for i, state in enumerate(seen.states) if state["curr"] == "gA"}


def test_a_model_that_is_not_there_has_no_lanes(reported: Trace):
    stranger = replace(reported, model="no_such_model")
    assert picture(stranger).lanes == {} and picture(stranger).cpus == {}
    assert "no_such_model" in render(stranger, "html") and json.loads(render(stranger, "perfetto"))
    with pytest.raises(InputError, match="does not say what runs on which CPU"):
        render(stranger, "ftrace")


# ---------------------------------------------------------------------------------------------------- perfetto
def test_slices_of_a_track_follow_each_other(reported: Trace, endless: Trace):
    """The rules of the format: what Perfetto needs to draw it without a complaint."""
    for trace in (reported, endless):
        data = json.loads(render(trace, "perfetto"))
        tracks = defaultdict(list)
        named = set()
        for event in data["traceEvents"]:
            assert event["ph"] in ("M", "X", "i")
            if event["ph"] == "M":
                named.add((event["pid"], event["tid"]))
            elif event["ph"] == "X":
                assert event["dur"] > 0
                tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        assert set(tracks) <= named
        for spans in tracks.values():
            assert all(a[1] <= b[0] + 1e-6 for a, b in zip(spans, spans[1:], strict=False))
        steps = [e for e in data["traceEvents"] if e["ph"] == "X" and (e["pid"], e["tid"]) == (1, 1)]
        assert [e["name"] for e in steps] == [s.label for s in trace.steps]


def test_the_wait_is_as_long_as_the_verdict_says(reported: Trace):
    wait = [e for e in json.loads(render(reported, "perfetto"))["traceEvents"] if e["name"].startswith("wait: ")]
    assert [e["name"] for e in wait] == ["wait: 16 ticks"]
    free = sum(not reported.steps[i].cost for i in picture(reported).wait)       # a microsecond each
    assert wait[0]["dur"] == 16 * 1000 + free


def test_the_part_that_repeats_is_marked(endless: Trace):
    marks = [e["name"] for e in json.loads(render(endless, "perfetto"))["traceEvents"] if e["ph"] == "i"]
    assert marks == ["repeats for ever from here", "and so on, for ever"]


# ------------------------------------------------------------------------------------------------------ ftrace
LINE = re.compile(r" *(?P<task>[\w<>/]+)-(?P<pid>\d+) +\[(?P<cpu>\d{3})\] \S{5} +(?P<time>\d+\.\d{6}): (?P<event>\w+): "
                  r"(?P<fields>.*)")
SWITCH = re.compile(r"prev_comm=(\S+) prev_pid=(\d+) prev_prio=\d+ prev_state=([RS]) ==> next_comm=(\S+) "
                    r"next_pid=(\d+) next_prio=\d+")
WAKEUP = re.compile(r"comm=(\S+) pid=(\d+) prio=\d+ target_cpu=(\d{3})")


def test_ftrace_is_read_back(reported: Trace):
    """What runs after each event is what runs in the trace, and each switch begins with who ran before."""
    lines = render(reported, "ftrace").splitlines()
    assert lines[0].startswith("# tracer:")
    parsed = [LINE.fullmatch(line) for line in lines if not line.startswith("#")]
    assert parsed and all(parsed)
    seen = picture(reported)
    expected = [s.what or "swapper/0" for s in seen.cpus[0]]
    ran, last = expected[0], 0.0
    switched = [ran]
    for found in parsed:
        assert found is not None and float(found["time"]) >= last
        last = float(found["time"])
        if found["event"] == "sched_switch":
            fields = SWITCH.fullmatch(found["fields"])
            assert fields and fields[1] == ran
            ran = fields[4]
            switched.append(ran)
        else:
            assert found["event"] == "sched_wakeup" and WAKEUP.fullmatch(found["fields"])
    assert switched == expected
    woken = sum(found is not None and found["event"] == "sched_wakeup" for found in parsed)
    assert woken == sum(a.what == "asleep" for spans in seen.lanes.values() for a in spans[:-1])


# --------------------------------------------------------------------------------------------------------- itf
def test_itf(reported: Trace, endless: Trace):
    data = json.loads(render(reported, "itf"))
    assert len(data["states"]) == len(reported.steps) + 1 and "loop" not in data
    assert set(data["vars"]) == set(reported.initial)
    assert all(set(state) == {"#meta", *data["vars"]} for state in data["states"])
    assert data["states"][0]["vruntime[gA]"] == {"#bigint": "0"} and data["states"][0]["on_rq[gA]"] is True
    looped = json.loads(render(endless, "itf"))
    assert looped["loop"] == len(endless.stem) and len(looped["states"]) == len(endless.steps)


# -------------------------------------------------------------------------------------------------------- ktap
ROW = {"model": "m", "property": "p", "variant": "v1", "verdict": "proved", "expected": "proved", "worst_case": 7,
       "unit": "ticks"}


def test_ktap():
    rows: list[dict[str, Any]] = [ROW, {**ROW, "variant": "v2", "verdict": "refuted", "worst_case": None},
                                  {**ROW, "model": "n", "verdict": "unknown", "reason": "the budget\nis spent"},
                                  {**ROW, "model": "n", "verdict": "vacuous"}]
    lines = render(rows, "ktap").splitlines()
    assert lines[:2] == ["KTAP version 1", "1..2"]
    assert [x for x in lines if re.match(r" *(not )?ok ", x)] == [
        "  ok 1 p.v1", "  not ok 2 p.v2", "not ok 1 m", "  not ok 1 p.v1 # TIMEOUT", "  not ok 2 p.v1 # ERROR",
        "not ok 2 n"]
    assert "  # p in v1: the budget is spent" in lines
    with pytest.raises(InputError):
        render("something else", "ktap")


def test_prove_writes_ktap(capsys: pytest.CaptureFixture[str]):
    code = cli.main(["prove", "quota_reweight:sum_of_weights", "--format", "ktap"])
    out = capsys.readouterr().out
    assert out.startswith("KTAP version 1\n1..1\n") and "ok 1 quota_reweight" in out and code == 0


# --------------------------------------------------------------------------------------------------- in a browser
def opened(tmp_path: Path, page: str, where: str = "", script: str = "") -> str:
    """The page as a browser has it after its scripts and ``script`` have run. Fails on any message in its console."""
    need("chromium")
    file = tmp_path / "page.html"
    file.write_text(page.replace("</body>", f"<script>{script}</script></body>") if script else page)
    done = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
         f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=3000", "--dump-dom", f"file://{file}{where}"],
        capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr, done.stderr
    return done.stdout


def told(dom: str) -> list[str]:
    """What the page says of where each of its runs is."""
    return re.findall(r'aria-live="polite">([^<]*)<', dom)


def test_the_page_steps_by_keys(tmp_path: Path, reported: Trace):
    page = render(reported, "html")
    assert told(opened(tmp_path, page)) == ["at first, 0 ticks"]
    press = "for (const key of [{}]) document.dispatchEvent(new KeyboardEvent('keydown', {{key}}));"
    steps = len(reported.steps)
    for keys, expected in (("'ArrowRight'", f"step 1 of {steps}"), ("'End'", f"step {steps} of {steps}"),
                           ("'End','ArrowLeft','ArrowLeft'", f"step {steps - 2} of {steps}"),
                           ("'PageDown','Home'", "at first"), ("'ArrowLeft'", "at first"),
                           ("'w'", f"step {picture(reported).wait[0]} of {steps}")):
        [where] = told(opened(tmp_path, page, script=press.format(keys)))
        assert where.startswith(expected), keys
    dom = opened(tmp_path, page, "#3")
    assert told(dom)[0].startswith("step 3 of") and f"<h2>{reported.steps[2].label}</h2>" in dom
    for name, (_, new) in reported.steps[2].changes.items():
        assert f'<tr class="changed"><td>{name}</td><td>{new}</td></tr>' in dom


def test_marks_of_the_wait_and_of_what_repeats(tmp_path: Path, reported: Trace, endless: Trace):
    dom = opened(tmp_path, render(reported, "html"), "#20")
    assert dom.count('class="bar wait"') == 1 and 'class="bar loop"' not in dom
    assert "in the wait" in told(dom)[0]
    dom = opened(tmp_path, render(endless, "html"), f"#{len(endless.steps)}")
    assert dom.count('class="bar loop"') == 1 and "in the part that repeats" in told(dom)[0]


def test_two_runs_beside_each_other(tmp_path: Path, reported: Trace):
    dom = opened(tmp_path, render([reported, load(REPORTED.with_name("bounded_wait-v6.1.json"))], "html"), "#5")
    assert [x.split(" of ")[0] for x in told(dom)] == ["step 5", "step 5"]
    assert "bounded_wait in v4.14" in dom and "bounded_wait in v6.1" in dom


NASTY = "</script><img src=x onerror=console.log(1)><!--<script>{{ runs }}&amp;\u2028"


def test_text_is_never_a_page(tmp_path: Path, reported: Trace):
    step = reported.stem[0]
    bad = replace(reported, statement=NASTY, model=NASTY, initial={**reported.initial, NASTY: NASTY},
                  stem=(Step(NASTY, (NASTY,), changes={NASTY: (NASTY, "x")}, cost=step.cost), *reported.stem[1:]))
    dom = opened(tmp_path, render(bad, "html"), "#1")
    assert "<img" not in dom and dom.count("&lt;img src=x") >= 3


def test_a_page_asks_for_nothing(reported: Trace):
    page = render(reported, "html")
    assert not re.search(r"(src|href)=|https?:|url\(|@import", page)


def test_replay_puts_several_runs_on_one_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    files = [str(REPORTED), str(REPORTED.with_name("bounded_wait-v6.1.json"))]
    assert cli.main(["replay", *files, "--format", "html", "-o", str(tmp_path / "x.html")]) == 0
    assert (tmp_path / "x.html").read_text().count('"title": "quota_reweight:bounded_wait') == 2
    assert cli.main(["replay", *files, "--format", "itf", "-o", str(tmp_path / "x.itf")]) == 2
    assert "one by one" in capsys.readouterr().err
