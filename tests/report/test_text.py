# SPDX-License-Identifier: GPL-2.0-only
"""Counterexamples as text and as mail."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import pytest

from schedproof.errors import InputError
from schedproof.report import formats, render
from schedproof.report._layout import to_ascii
from schedproof.trace import Call, Step, from_json

WHOLE = """\
toy:short_wait in v1
  verdict     refuted: this run breaks it
  claim       A task that is ready runs again within five ticks.
  parameters  ratio = 8, period = 4

at first
  queued = a: yes, b: yes; clock = 0; curr = a

   time step
   0 ms    1  sleep(a)
                ran dequeue_entity, update_cfs_group, reweight_entity
                queued[a]: yes -> no, weight[gA]: NICE_0_LOAD -> MIN_SHARES
   0 ms    2  tick()
                clock: 3 -> 0
   2 ms    3  wake(a)[late]
                queued[a]: no -> yes
|  2 ms    4  tick()   <- wait begins
|               ran entity_tick
|               clock: 0 -> 1
| 10 ms    5  schedule()
|               ran pick_next_entity
|               curr: b -> a
| wait ends after 9 ms

5 steps, 11 ms; the wait is 9 ms.
"""


def test_a_whole_trace_as_text(fakes):
    assert render(fakes.sample_trace(), "text") == WHOLE


def test_the_mail_form_is_the_same_and_ends_with_the_command_that_reproduces_it(toy, fakes):
    body, _, end = render(fakes.sample_trace(), "mail").partition("\nTo see it again")
    assert body == WHOLE
    assert end == " (schedproof 0.1.0):\n\n  schedproof trace toy:short_wait --variant v1\n"


def test_the_command_names_only_parameters_that_differ_from_the_default(toy, fakes):
    assert render(fakes.sample_trace(ratio=16), "mail").endswith(
        "\n  schedproof trace toy:short_wait --variant v1 --set ratio=16\n")


def test_a_command_that_is_too_long_is_continued_so_that_a_shell_still_takes_it(fakes):
    params = {f"parameter_number_{i}": i for i in range(9)}
    text = render(replace(fakes.sample_trace(), params=params), "mail")
    command = text[text.index("  schedproof trace"):]
    assert max(map(len, text.splitlines())) <= 75
    assert shlex.split(command.replace("\\\n", ""))[:5] == ["schedproof", "trace", "toy:short_wait", "--variant", "v1"]
    assert shlex.split(command.replace("\\\n", ""))[5:] == [
        word for name, value in params.items() for word in ("--set", f"{name}={value}")]


def test_a_cycle_repeats_for_ever_and_the_wait_has_no_end(fakes):
    text = render(fakes.sample_trace(cycle=True), "text")
    assert "---- repeats for ever: this step; each round adds 8 ms to the wait\n| 10 ms    5  tick()" in text
    assert "wait ends" not in text
    assert text.count("wait begins") == 1
    assert text.endswith("the wait has no bound.\n")


def test_only_functions_that_were_read_from_c_show_their_place(fakes):
    text = render(fakes.sample_trace(sources={"update_cfs_group": "kernel/sched/fair.c:3456"}), "text")
    assert "ran dequeue_entity, update_cfs_group (kernel/sched/fair.c:3456), reweight_entity\n" in text
    assert "  read from C update_cfs_group (kernel/sched/fair.c:3456)\n" in text


def test_only_the_wait_that_the_trace_is_about_is_marked(fakes):
    trace = fakes.sample_trace()
    trace = replace(trace, stem=(replace(trace.stem[0], waiting=True), *trace.stem[1:]))
    assert [line[:1] for line in render(trace, "text").splitlines() if "sleep" in line] == [" "]


def test_a_later_wait_that_is_shorter_is_not_the_one_that_is_meant(fakes):
    trace = fakes.sample_trace()
    later = (replace(trace.stem[1], waiting=False), replace(trace.stem[3], cost=1))
    text = render(replace(trace, stem=trace.stem + later), "text")
    assert "| wait ends after 9 ms" in text
    assert [line.split()[3] for line in text.splitlines() if line.startswith("|  2 ms    4")] == ["4"]
    assert text.count("wait begins") == 1


def test_a_trace_without_waiting_has_no_margin_and_one_without_steps_says_so(fakes):
    trace = fakes.sample_trace()
    still = replace(trace, stem=tuple(replace(s, waiting=False, cost=0) for s in trace.stem), unit="", total=None)
    assert "|" not in render(still, "text")
    assert render(still, "text").endswith("\n5 steps.\n")
    assert "no step: what is claimed already fails at first\n" in render(replace(still, stem=()), "text")


def test_the_mail_form_is_ascii_within_75_columns_whatever_the_trace_holds(fakes):
    awkward = Step("wake\u2192up", ("\u00e4" * 40, "b" * 90), ("c" * 50,), "", (
        Call("a_function_with_a_very_long_name_indeed_" * 3, "kernel/" + "deep/" * 20 + "fair.c:1", 40),),
        {"vari\u00e4ble[" + "x" * 80 + "]": ("\u221e", "\u2264" * 100)}, 1, True)
    trace = replace(fakes.sample_trace(), stem=(awkward,) * 3, statement="\u201cno wait\u201d \u2014 " + "long " * 40,
                    sources={"a_function_with_a_very_long_name_indeed_" * 3: ""})
    text = render(trace, "mail")
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 75
    assert not any(line != line.rstrip() for line in text.splitlines())


def test_letters_outside_ascii_are_typed_as_one_would_in_a_mail():
    assert to_ascii("a \u2192 b \u2264 3 \u2014 \u201cna\u00efve\u201d \u4e16") == 'a -> b <= 3 -- "naive" ?'


def test_json_is_the_file_that_is_replayed(fakes, tmp_path):
    trace = fakes.sample_trace()
    trace.save(tmp_path / "x.json")
    assert render(trace, "json") == (tmp_path / "x.json").read_text()
    assert from_json(json.loads(render(trace, "json")), "x") == trace


def test_an_unknown_format_lists_the_known_ones():
    with pytest.raises(InputError, match="unknown format 'pdf'; known: .*json.*mail.*text"):
        render([], "pdf")
    assert {"json", "mail", "table", "text"} <= set(formats())


@pytest.mark.parametrize("format", ["mail", "table", "text"])
def test_a_format_that_cannot_show_a_thing_says_so(format, fakes):
    thing = fakes.sample_trace() if format == "table" else object()
    with pytest.raises(InputError, match=f"format {format} cannot show"):
        render(thing, format)
