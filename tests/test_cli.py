# SPDX-License-Identifier: GPL-2.0-only
"""The command line: what each command prints, and that every fault is one line and an exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from schedproof import commands
from schedproof.cli import main
from schedproof.results import exit_code

ROOT = Path(__file__).parent.parent
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(toy, capsys) -> Run:
    """Runs a command line on the toy suite: exit code, standard output, standard error."""
    def call(*words: str) -> tuple[int, str, str]:
        code = main(words)
        out, err = capsys.readouterr()
        return code, out, err

    return call


# ---------------------------------------------------------------------------------------------------- answers
def test_list_shows_what_there_is_to_ask_about(run):
    code, out, err = run("list")
    assert (code, err) == (0, "")
    assert "toy: A task that waits for another one." in out
    assert "ratio   8 (2 to 64): how much lighter a sleeping group is" in out
    assert "guard  on | off" in out
    assert ("short_wait  (within, T1, the headline) A task that is ready runs again within five ticks. Holds in "
            "v1+repaired. Fails in v1, v1+forever.") in " ".join(out.split()).replace("short_wait ", "short_wait  ")


def test_list_as_json(run):
    found = json.loads(run("list", "toy", "--json")[1])["models"]
    assert [m["model"] for m in found] == ["toy"]
    assert found[0]["releases"] == {"v1": {"guard": "on"}, "v2": {"guard": "off"}, "v9": {}}
    assert [p["name"] for p in found[0]["properties"]] == ["short_wait", "sane", "fine_sane"]
    assert found[0]["parameters"]["ratio"] == {"default": 8, "low": 2, "high": 64,
                                               "what": "how much lighter a sleeping group is"}


def test_prove_runs_every_declared_pair_and_all_are_as_expected(run):
    code, out, err = run("prove", "--json")
    rows = json.loads(out)["results"]
    assert (code, err) == (0, "")
    assert [(r["property"], r["variant"], r["expected"], r["verdict"]) for r in rows] == [
        ("short_wait", "v1+repaired", "proved", "proved"), ("short_wait", "v1", "refuted", "refuted"),
        ("short_wait", "v1+forever", "refuted", "refuted"), ("sane", "v1", "proved", "proved"),
        ("sane", "v2", "proved", "proved"), ("sane", "v1+break_it", "refuted", "refuted"),
        ("fine_sane", "v9", "proved", "proved")]


def test_the_keys_of_a_result_are_those_that_are_documented(run):
    row = json.loads(run("prove", "toy:short_wait", "--variant", "v1", "--json")[1])["results"][0]
    assert {"model", "property", "kind", "variant", "parameters", "verdict", "expected", "engine", "states",
            "transitions", "depth", "seconds", "trace"} <= set(row)
    assert (row["kind"], row["parameters"]) == ("within", {"ratio": 8, "period": 4})
    assert row["trace"]["format"] == "schedproof-trace/1"


def test_prove_as_a_table(run):
    code, out, _ = run("prove", "toy:short_wait")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].split() == ["property", "variant", "expected", "verdict", "worst", "case", "states", "seconds"]
    assert lines[2].split()[:6] == ["short_wait", "v1", "refuted", "refuted", "9", "ms"]
    assert lines[3].split()[4] == "unbounded"


def test_a_named_variant_takes_what_is_declared_and_nothing_where_nothing_is(run):
    rows = json.loads(run("prove", "toy", "--variant", "v1", "--json")[1])["results"]
    assert [(r["property"], r["expected"]) for r in rows] == [("short_wait", "refuted"), ("sane", "proved")]
    code, out, _ = run("prove", "toy", "--variant", "v2", "--json")
    rows = json.loads(out)["results"]
    assert [(r["property"], r["expected"], r["verdict"]) for r in rows] == [
        ("short_wait", None, "refuted"), ("sane", "proved", "proved")]
    assert code == 1            # nothing is declared for it, and a property is violated


def test_what_is_not_as_expected_is_marked_and_says_where_to_look(run):
    code, out, _ = run("prove", "toy:short_wait", "--variant", "v2")
    assert code == 1
    assert out.splitlines()[1].startswith("!")
    assert out.endswith("\nTo see how it fails:\n  schedproof trace toy:short_wait --variant v2\n")


def test_quiet_prints_only_what_is_not_as_expected(run):
    assert run("prove", "toy", "--quiet") == (0, "", "")
    assert "short_wait" in run("prove", "toy", "--variant", "v2", "--quiet")[1]


def test_a_budget_that_runs_out_is_undecided(run):
    code, out, err = run("prove", "toy:sane", "--variant", "v1", "--budget", "0.5")
    assert (code, err) == (3, "")
    assert "unknown" in out and "the budget of 0.5 s ran out at depth 3" in out


def test_the_worse_exit_code_wins():
    assert [exit_code(c) for c in ([], [0], [3, 0], [3, 1, 0], [1, 2, 3])] == [0, 0, 3, 1, 2]


def test_latency_answers_with_the_exact_worst_case_and_its_trace(run):
    code, out, _ = run("latency", "toy")
    assert code == 0
    assert out.startswith("toy in v1: the worst wait is 9 ms\n\ntoy:short_wait in v1\n")
    assert run("latency", "toy", "--quiet")[1] == "9 ms\n"
    row = json.loads(run("latency", "toy", "--json", "--set", "ratio=20")[1])
    assert (row["worst_case"], row["unit"], row["parameters"]["ratio"]) == (21, "ms", 20)


def test_latency_without_a_bound_is_an_answer_too(run):
    code, out, _ = run("latency", "toy", "--variant", "v1+forever")
    assert code == 0
    assert out.startswith("toy in v1+forever: the worst wait is unbounded, even when everyone is treated fairly\n")
    assert json.loads(run("latency", "toy", "--variant", "v1+forever", "--json")[1])["worst_case"] == "unbounded"


def test_a_sweep_is_a_table_over_a_parameter(run):
    code, out, _ = run("latency", "toy", "--sweep", "ratio=2..5")
    assert code == 0
    assert [line.split()[:3] for line in out.splitlines()[2:]] == [[str(n), str(n + 1), "ms"] for n in (2, 3, 4, 5)]
    rows = json.loads(run("latency", "toy", "--sweep", "ratio=2,8,64", "--json")[1])["results"]
    assert [(r["parameters"]["ratio"], r["worst_case"]) for r in rows] == [(2, 3), (8, 9), (64, 65)]


def test_trace_shows_the_first_variant_in_which_the_property_fails(run, tmp_path):
    code, out, _ = run("trace", "toy:T1")
    assert (code, out.splitlines()[0]) == (0, "toy:short_wait in v1")
    assert run("trace", "toy:short_wait", "-o", str(tmp_path / "x"), "--format", "mail") == (0, "", "")
    assert "To see it again" in (tmp_path / "x").read_text()
    assert run("trace", "toy:short_wait", "--json")[1] == run("trace", "toy:short_wait", "--format", "json")[1]


def test_trace_of_a_property_that_holds_is_its_worst_case_and_says_so(run):
    code, out, _ = run("trace", "toy:short_wait", "--variant", "v1+repaired")
    assert code == 0
    assert out.startswith("toy:short_wait holds in v1+repaired. This run is the worst case.\n")


def test_a_stored_counterexample_is_replayed_and_shown_in_any_format(run, tmp_path):
    file = str(tmp_path / "x.json")
    run("trace", "toy:short_wait", "--format", "json", "-o", file)
    assert run("replay", file) == (0, f"{file}: refuted again: toy:short_wait in v1, 5 steps\n", "")
    mail = run("replay", file, "--format", "mail")[1]
    assert mail == run("trace", "toy:short_wait", "--format", "mail")[1]
    row = json.loads(run("replay", file, "--json")[1])["results"][0]
    assert (row["verdict"], row["worst_case"], row["steps"]) == ("refuted", 9, 5)


def test_counterexamples_are_written_once_and_compared_after_that(run, toy):
    folder = toy / "counterexamples" / "toy"
    assert run("counterexamples")[0] == 0
    assert sorted(p.name for p in folder.iterdir()) == [        # not those of mutants
        "short_wait-v1+forever.json", "short_wait-v1+forever.txt", "short_wait-v1.json", "short_wait-v1.txt"]
    assert run("counterexamples", "--check") == (0, "", "")
    file = folder / "short_wait-v1.txt"
    file.write_text(file.read_text() + "edited")
    (folder / "short_wait-v0.json").write_text("{}")
    code, out, _ = run("counterexamples", "--check")
    assert code == 1
    assert out.splitlines() == [f"{file}: would change", f"{folder / 'short_wait-v0.json'}: belongs to no declared "
                                                         "failure any more, delete it"]
    assert file.read_text().endswith("edited")


# ----------------------------------------------------------------------------------------------------- faults
@pytest.mark.parametrize("words, said", [
    ("", "the following arguments are required: COMMAND"),
    ("prove toy --nonsense", "unrecognized arguments: --nonsense"),
    ("proof", "unknown command 'proof', did you mean prove?"),
    ("prove tow", "unknown model 'tow', did you mean toy? known: toy"),
    ("list tow", "unknown model 'tow', did you mean toy? known: toy"),
    ("latency tow", "unknown model 'tow', did you mean toy? known: toy"),
    ("latency toy:sane", "unknown model 'toy:sane'"),
    ("trace toy", "'toy' names no property: write toy:PROPERTY, one of short_wait, sane, fine_sane"),
    ("trace toy:sain", "unknown property of toy 'sain', did you mean sane?"),
    ("prove toy --variant v3", "unknown release 'v3'; known: v1, v2"),
    ("trace toy:sane --variant v1+drop", "unknown fix 'drop'; known: repaired, forever"),
    ("prove toy --set ratoi=3", "unknown parameter of toy 'ratoi', did you mean ratio? known: ratio, period"),
    ("prove toy --set ratio=1", "ratio=1 is out of range: toy takes ratio from 2 to 64"),
    ("latency toy --set ratio=65", "ratio=65 is out of range: toy takes ratio from 2 to 64"),
    ("latency toy --sweep ratio=2..65", "ratio=65 is out of range: toy takes ratio from 2 to 64"),
    ("latency toy --sweep ratoi=2..3", "unknown parameter of toy 'ratoi', did you mean ratio?"),
    ("latency toy --sweep ratio=9..2", "'ratio=9..2' is not NAME=LOW..HIGH or NAME=VALUE,VALUE,..."),
    ("latency toy --sweep ratio=2..3 --set ratio=4", "ratio is both set and swept"),
    ("prove toy --set ratio=many", "'ratio=many' is not NAME=NUMBER"),
    ("prove toy --budget -1", "'-1' is not a number of seconds above 0"),
    ("prove toy --budget nan", "'nan' is not a number of seconds above 0"),
    ("prove toy --jobs 0", "'0' is not a number from 1 to 1024"),
    ("prove toy --engine guess", "unknown engine 'guess'; known: explicit"),
    ("prove toy --rev v6.1", "--rev needs --tree DIR"),
    ("trace toy:short_wait --format pdf", "unknown format 'pdf'; known: "),
    ("trace toy:short_wait --format table -o OUT", "format table cannot show a counterexample"),
    ("trace toy:short_wait --format mail --json", "--json and --format say different things"),
    ("trace toy:sane --variant v1 -o OUT", "sane is proved in v1: there is no run to show; it fails in v1+break_it"),
    ("replay OUT", "OUT: No such file or directory"),
    ("replay OUT -o x", "-o needs --format"),
    ("prove toy --suite OUT", "not a suite"),
    ("counterexamples --variant v1", "no --variant or --set here"),
])
def test_a_wrong_call_is_one_line_and_writes_nothing(run, tmp_path, words, said):
    out = tmp_path / "OUT"
    before = sorted(tmp_path.rglob("*"))
    code, stdout, stderr = run(*words.replace("OUT", str(out)).split())
    assert (code, stdout) == (2, "")
    assert stderr.startswith("schedproof: ") and stderr.count("\n") == 1 and stderr.endswith("\n")
    assert said.replace("OUT", str(out)) in stderr
    assert sorted(p for p in tmp_path.rglob("*") if "__pycache__" not in p.parts) == [
        p for p in before if "__pycache__" not in p.parts]


def stored(run: Run, tmp_path: Path) -> Path:
    file = tmp_path / "x.json"
    assert run("trace", "toy:short_wait", "--format", "json", "-o", str(file))[0] == 0
    return file


def test_a_truncated_counterexample_is_refused(run, tmp_path):
    file = stored(run, tmp_path)
    file.write_text(file.read_text()[:-40])
    code, out, err = run("replay", str(file), "--format", "mail", "-o", str(tmp_path / "OUT"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"schedproof: {file}: not a stored counterexample")
    assert not (tmp_path / "OUT").exists()


def test_an_edited_counterexample_is_refused(run, tmp_path):
    file = stored(run, tmp_path)
    file.write_text(file.read_text().replace('"no"', '"yes"', 1))
    code, out, err = run("replay", str(file), "--format", "mail", "-o", str(tmp_path / "OUT"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"schedproof: {file}: step 1, sleep(a): the stored change of queued[a]")
    assert not (tmp_path / "OUT").exists()


@pytest.mark.parametrize("old, new, said", [
    ('"refuted"', '"proved"', "is stored as proved, but its run shows refuted"),
    ("runs again", "never runs again", "says something else about short_wait than the property does"),
    ('"sources": {}', '"sources": {"update_cfs_group": "kernel/sched/fair.c:1"}', "runs C that was read from a tree"),
    ('"model": "toy"', '"model": "../toy"', "unknown model '../toy'"),
    ('"variant": "v1"', '"variant": "v3"', "unknown release 'v3'; known: v1, v2"),
    ('"property": "short_wait"', '"property": "short_wai"', "did you mean short_wait?"),
    ('"ratio": 8', '"ratio": 1', "ratio=1 is not possible"),
])
def test_a_counterexample_that_claims_something_else_is_refused(run, tmp_path, old, new, said):
    file = stored(run, tmp_path)
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))
    code, out, err = run("replay", str(file))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"schedproof: {file}: ") and said in err


def test_a_bad_file_among_good_ones_has_its_line_and_the_others_their_verdicts(run, tmp_path):
    file = stored(run, tmp_path)
    code, out, err = run("replay", str(file), str(tmp_path / "none"), str(file))
    assert (code, out.count("refuted again"), err.count("\n")) == (2, 2, 1)


@pytest.mark.parametrize("where", ["/dev/null/x", "/proc/nothing/x"])
def test_a_place_that_cannot_be_written(run, where):
    code, out, err = run("trace", "toy:short_wait", "-o", where)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"schedproof: {where}: cannot be written: ")


def test_a_fault_in_a_model_is_told_with_its_place(run, toy):
    file = toy / "models" / "toy.py"
    file.write_text(file.read_text() + "\nhalf = 1 +\n")
    from schedproof.registry import use_suite

    use_suite(toy)
    code, out, err = run("prove", "toy")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"schedproof: {file}:30: not Python" in err


def test_a_bug_is_one_line_that_says_so(run, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("first line\nsecond line")

    monkeypatch.setattr(sys.modules["schedproof.engines"], "decide", broken)
    monkeypatch.delenv("SCHEDPROOF_DEBUG", raising=False)
    code, out, err = run("prove", "toy")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "this is a bug of schedproof, please report it: ZeroDivisionError: first line second line" in err
    monkeypatch.setenv("SCHEDPROOF_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run("prove", "toy")


def test_an_interrupt_ends_with_the_shells_code(run, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["schedproof.engines"], "decide", interrupted)
    assert run("prove", "toy") == (130, "", "schedproof: interrupted\n")


# ------------------------------------------------------------------------------------------ as a process of its own
def process(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-m", "schedproof", *words], env=env, text=True, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, timeout=300, **options)             # type: ignore[call-overload]


def test_a_reader_that_went_away_is_one_line():
    reader, writer = os.pipe()
    os.close(reader)
    done = process("--help", stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (2, "schedproof: standard output: closed by its reader\n")


def test_a_full_disk_is_one_line():
    with open("/dev/full", "w") as full:
        done = process("--help", stdout=full)
    assert (done.returncode, done.stderr) == (2, "schedproof: standard output: No space left on device\n")


def test_help_works_for_every_command():
    for name in commands.names():
        done = process(name, "--help", stdout=subprocess.PIPE)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"usage: schedproof {name} ")


def test_starting_loads_nothing_heavy():
    heavy = "{'z3', 'numba', 'llvmlite', 'tree_sitter', 'jinja2', 'rich', 'networkx', 'hypothesis', 'numpy'}"
    code = f"import sys, schedproof.cli, schedproof.pytest_plugin; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
                          capture_output=True, check=True)
    assert done.stdout == "[]\n"
