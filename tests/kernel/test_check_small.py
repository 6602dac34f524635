# SPDX-License-Identifier: GPL-2.0-only
"""schedproof check, from the command line to text and JSON, on small C: what each kind of change is told as."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from schedproof import registry
from schedproof.commands._common import Options
from schedproof.kernel import Tree
from schedproof.kernel.check import check
from schedproof.kernel.patch import parse_patches
from schedproof.model import Bool, Model, Object, Vocabulary
from tests.kernel.gate import DEEP, FILE, FILES, HEADER, SUITE, Done, Gates, gates, patch_of, swapped

__all__ = ["gates"]

OPENS = "\tg->open = GATE_OPEN;\n"
SHUTS = "\t\tg->open = GATE_SHUT;\n"
MEMBER = "\tu64 stamp;\n"
REFILL = f"static void gate_refill(struct gate *g)\n{{\n{OPENS}}}\n"


# ---------------------------------------------------------------------------------------------- the three answers
@pytest.mark.parametrize(("pair", "told"), [
    (("\t\tsmp_mb();\n", ""), "smp_mb: 1 before, 0 after"),
    (("smp_mb();", "smp_wmb();"), "smp_mb: 1 before, 0 after, smp_wmb: 0 before, 1 after"),
    (("smp_mb();", "barrier();"), "barrier: 0 before, 1 after, smp_mb: 1 before, 0 after"),
    (("\t\tsmp_mb();\n" + SHUTS, SHUTS + "\t\tsmp_mb();\n"), "what stands before smp_mb, and what behind it"),
    (("g->stamp = 1", "g->stamp = 2"), "stamp"),
    (("\t\tg->stamp = 1;\n", ""), "stamp"),
    (("\tlockdep_assert_held(&g->lock);\n", ""), "lockdep_assert_held"),
    (("lockdep_assert_held(&g->lock)", "lockdep_assert_held(&g->other)"), "lockdep_assert_held"),
    (("\t\ttrace_gate(g, 1);\n", ""), "trace_gate"),
    (("trace_gate(g, 1)", "trace_gate(g, 2)"), "trace_gate"),
    (("g->waiting = false;", "WRITE_ONCE(g->waiting, false);"), "WRITE_ONCE: 0 before, 1 after"),
])
def test_what_the_model_does_not_see_is_told_and_never_called_equal(gates: Gates, pair: tuple[str, str], told: str):
    done = gates.edit(pair)
    assert (done.code, done.err, done.verdicts) == (0, "", {})
    assert {n: (f["status"], f["detail"]) for n, f in done.functions.items()} == {"gate_pass": ("invisible", told)}
    text = gates.check(patch_of({FILE: swapped(FILES[FILE], pair)}), "--quiet", "--format", "text")
    assert (text.code, text.out) == (0, "")                          # as expected, so nothing with --quiet
    text = gates.check(patch_of({FILE: swapped(FILES[FILE], pair)}), "--format", "text")
    assert "gate_pass() in kernel/sched/gate.c: differs, invisible to this model " + told in text.flat
    assert "No verdict can change." in text.out and "equal" not in text.out


def test_a_dropped_read_once_is_seen_through_the_callers(gates: Gates):
    done = gates.edit(("READ_ONCE(g->open)", "g->open"))
    assert (done.code, done.verdicts) == (0, {})
    assert {n: f["status"] for n, f in done.functions.items()} == {"gate_ready": "invisible", "gate_pass": "invisible"}
    assert {f["detail"] for f in done.functions.values()} == {"READ_ONCE: 1 before, 0 after"}


@pytest.mark.parametrize("pair", [
    (OPENS, "\tg->open = 1;\n"), (OPENS, "\t/* At last. */\n" + OPENS), (OPENS, OPENS + "\treturn;\n"),
    (OPENS, "\tint now = GATE_SHUT + 1;\n\n\tg->open = now;\n")])
def test_equal(gates: Gates, pair: tuple[str, str]):
    done = gates.edit(pair)
    assert (done.code, done.verdicts) == (0, {})
    assert {n: f["status"] for n, f in done.functions.items()} == {"gate_refill": "equal"}
    text = gates.check(patch_of({FILE: swapped(FILES[FILE], pair)}), "--format", "text")
    assert "gate_refill() in kernel/sched/gate.c: equal, proved" in text.out


def test_a_test_around_something_unseen_is_not_called_equal(gates: Gates):
    """Nothing of the model changes where only the call of a function that does nothing for it becomes rarer."""
    done = gates.edit(("\t\ttrace_gate(g, 1);\n", "\t\tif (g->count) {\n\t\t\ttrace_gate(g, 1);\n\t\t}\n"))
    found = done.functions["gate_pass"]
    assert found["status"] == "invisible" and "perhaps when, or with what, " in found["detail"]
    assert "trace_gate" in found["detail"]
    done = gates.edit(("\t\tg->stamp = 1;\n", "\t\tint now = 1;\n\n\t\tg->stamp = now;\n"))
    found = done.functions["gate_pass"]
    assert found["status"] == "invisible" and found["detail"].startswith("stamp")


def test_what_goes_into_an_ignored_field_is_followed_back(gates: Gates):
    """Nothing of the model hangs on ``now``, which is computed in another way."""
    files = {**FILES, FILE: swapped(FILES[FILE], ("\t\tg->stamp = 1;\n", "\t\tint now = 1;\n\n\t\tg->stamp = now;\n"))}
    gates.write(files)
    done = gates.check(patch_of({FILE: swapped(files[FILE], ("int now = 1;", "int now = 2;"))}, files))
    found = done.functions["gate_pass"]
    assert found["status"] == "invisible" and "perhaps when, or with what, " in found["detail"]
    assert "stamp" in found["detail"]


def test_a_difference_comes_with_an_input_and_worse_with_a_run(gates: Gates):
    done = gates.edit((OPENS, "\tif (g->count < 2)\n\t" + OPENS))
    assert done.code == 1
    assert done.functions["gate_refill"]["status"] == "differs"
    assert done.functions["gate_refill"]["detail"] == "g = g; count[g] = 2"
    assert done.verdicts["soon"] == ("proved", "refuted", "worse")
    (row,) = [p for p in done.part["properties"] if p["property"] == "soon"]
    assert row["after"]["worst_case"] == "unbounded" and row["after"]["trace"]["cycle"]
    text = gates.check(patch_of({FILE: swapped(FILES[FILE], (OPENS, ""))}), "--format", "text")
    assert text.code == 1 and "WORSE" in text.out and "With the patch, soon fails." in text.out


# ----------------------------------------------------------------------------------------------------- free values
def test_a_verdict_that_rests_on_a_free_value_is_no_alarm(gates: Gates):
    done = gates.edit((OPENS, "\tif (g->stamp > 5)\n\t\treturn;\n" + OPENS))
    assert done.code == 3
    assert done.functions["gate_refill"]["status"] == "unknown"
    assert "stamp of struct gate" in done.functions["gate_refill"]["detail"]
    assert done.verdicts == {"soon": ("proved", "unknown", "undecided"), "counted": ("proved", "proved", "same")}
    (row,) = [p for p in done.part["properties"] if p["property"] == "soon"]
    assert row["after"]["reason"] == "refuted only by a run that rests on undeclared values: stamp of struct gate"


def test_a_verdict_that_holds_for_every_free_value_is_proved(gates: Gates):
    done = gates.edit((OPENS, OPENS + "\tif (g->stamp > 5 && g->owner)\n\t\tg->count = 0;\n"))
    assert done.code == 0
    assert done.verdicts == {"soon": ("proved", "proved", "same"), "counted": ("proved", "proved", "same")}


def test_a_refutation_beside_a_free_value_is_one(gates: Gates):
    """The gate is never opened again, whatever the field holds."""
    done = gates.edit((OPENS, "\tif (g->stamp > 5)\n\t\tg->count = 0;\n"))
    assert done.verdicts["soon"][1] in ("refuted", "unknown")
    done = gates.edit((OPENS, ""), (SHUTS, SHUTS + "\t\tif (g->stamp == 7 && g->count == 9)\n\t\t\tg->count = 0;\n"))
    assert done.verdicts["soon"][1] in ("refuted", "unknown")


def test_a_free_value_that_is_kept_is_unknown(gates: Gates):
    done = gates.edit((OPENS, OPENS + "\tg->count = g->stamp & 3;\n"))
    assert done.code == 3 and {after for _, after, _ in done.verdicts.values()} == {"unknown"}
    assert {p["after"]["reason"] for p in done.part["properties"]} == {
        "it depends on what is not modelled: stamp of struct gate"}


# ---------------------------------------------------------------------------------------------- what a patch brings
def added(gates: Gates, member: str, *pairs: tuple[str, str], more: tuple[tuple[str, str], ...] = ()) -> Done:
    return gates.check(patch_of({HEADER: swapped(FILES[HEADER], (MEMBER, f"{MEMBER}\t{member}\n"), *more),
                                 FILE: swapped(FILES[FILE], *pairs)}))


SETS = (SHUTS, SHUTS + "\t\tg->pending = 1;\n")
TESTS = (OPENS, "\tif (g->pending) {\n\t\tg->pending = 0;\n\t\treturn;\n\t}\n" + OPENS)


@pytest.mark.parametrize(("ctype", "member"), [("int", "int pending;"), ("bool", "bool pending;"),
                                               ("u64", "u64 pending;"), ("unsigned int:1", "unsigned int pending:1;")])
def test_a_new_field_is_a_variable_that_is_0_at_first(gates: Gates, ctype: str, member: str):
    """Each passage makes the next opening fail, which costs one turn of the timer."""
    done = added(gates, member, SETS, TESTS)
    assert done.code == 1
    assert done.verdicts["soon"] == ("proved", "refuted", "worse")
    (row,) = [p for p in done.part["properties"] if p["property"] == "soon"]
    assert (row["before"]["worst_case"], row["after"]["worst_case"]) == (2, 4)
    assert row["after"]["trace"]["initial"]["pending[g]"] == ("no" if ctype == "bool" else "0")
    assert len(done.part["assumptions"]) <= 6
    told = ctype.replace("u64", "unsigned long")
    assert any(f"new in the patch, 0 at first: pending of struct gate ({told})" in a for a in done.part["assumptions"])


def test_a_new_field_that_decides_nothing_changes_no_verdict(gates: Gates):
    done = added(gates, "int pending;", SETS)
    assert done.code == 0 and done.functions["gate_pass"]["status"] == "differs"
    assert set(done.verdicts.values()) == {("proved", "proved", "same")}


def test_a_new_field_without_bounds_is_unknown_and_named(gates: Gates):
    done = added(gates, "u64 passes;", (SHUTS, SHUTS + "\t\tg->passes++;\n"),
                 (OPENS, "\tif (g->passes > 7)\n\t\treturn;\n" + OPENS))
    assert done.code == 3 and done.verdicts["soon"] == ("proved", "unknown", "undecided")
    reasons = {p["after"]["reason"] for p in done.part["properties"]}
    reasons.discard("")                      # a proof by induction has none, and there is one
    assert reasons and all("passes of struct gate (unsigned long)" in r for r in reasons), reasons


def test_a_new_narrow_field_wraps_as_its_type(gates: Gates):
    """At 256 the count is 0 again: what is refuted for u8 at 255 is refuted by a run of 256 passages."""
    done = added(gates, "u8 passes;", (SHUTS, SHUTS + "\t\tg->passes++;\n"),
                 (OPENS, "\tif (g->passes > 255)\n\t\treturn;\n" + OPENS))
    assert done.code == 0 and done.verdicts["soon"] == ("proved", "proved", "same")


def test_a_new_field_that_others_set_is_not_covered(gates: Gates):
    done = added(gates, "int pending;", SETS, TESTS, ("\tg->count = 2;\n", "\tg->pending = 2;\n"))
    assert done.code == 3
    assert done.functions["pending"]["status"] == "not_covered"
    assert "gate_unrelated (kernel/sched/gate.c:" in done.functions["pending"]["detail"]
    assert {v[:2] for v in done.verdicts.values()} == {("unknown", "unknown")}
    for harmless in ("g->count = g->pending;", "if (g->pending == 2 && g->count & g->pending)\n\t\treturn;"):
        done = added(gates, "int pending;", SETS, TESTS, ("\tg->count = 2;\n", f"\t{harmless}\n"))
        assert "pending" not in done.functions and done.verdicts["soon"][2] == "worse"
    for harmful in ("g->pending |= 1;", "g->pending++;", "--g->pending;", "WRITE_ONCE(g->pending, 3);",
                    "f(&g->pending);", "g->pending = 0;"):
        done = added(gates, "int pending;", SETS, TESTS, ("\tg->count = 2;\n", f"\t{harmful}\n"))
        assert done.functions["pending"]["status"] == "not_covered", harmful


def test_what_makes_the_object_may_set_a_new_field_to_0(gates: Gates):
    init = "static void init_gate(struct gate *g)\n{\n\tg->pending = 0;\n}\n\nstatic bool gate_ready"
    done = added(gates, "int pending;", SETS, TESTS, ("static bool gate_ready", init))
    assert "pending" not in done.functions and done.verdicts["soon"][2] == "worse"


@pytest.mark.parametrize(("member", "statement", "told"), [
    ("struct gate *other;", "g->other = g;", "other of struct gate"),
    ("int many[3];", "g->many[0] = 1;", "g->many[0]"),
    ("", "g->lock = 1;", "lock of struct gate"),
])
def test_what_is_no_new_number_stays_an_error_with_its_place(gates: Gates, member: str, statement: str, told: str):
    done = added(gates, member or "int unused;", (SHUTS, f"{SHUTS}\t\t{statement}\n"))
    assert done.code == 3
    assert done.functions["gate_pass"]["status"] == "not_read"
    assert f"after the patch: {FILE}:20: cannot execute" in done.functions["gate_pass"]["detail"]
    assert told in done.functions["gate_pass"]["detail"]


def test_a_field_that_was_there_before_is_not_new(gates: Gates):
    """The model has forgotten ``lost``: it stays an error though the patch touches the struct."""
    files = {**FILES, HEADER: swapped(FILES[HEADER], (MEMBER, MEMBER + "\tint lost;\n"))}
    gates.write(files)
    done = gates.check(patch_of({
        HEADER: swapped(files[HEADER], (MEMBER, MEMBER + "\tint found;\n")),
        FILE: swapped(FILES[FILE], (SHUTS, SHUTS + "\t\tg->lost = 1;\n"))}, files))
    assert done.code == 3 and "lost of struct gate" in done.functions["gate_pass"]["detail"]


def test_new_constants_enumerators_and_helpers_are_read(gates: Gates):
    helper = "static int gate_much(struct gate *g)\n{\n\treturn g->count >= GATE_MUCH;\n}\n\n"
    done = gates.check(patch_of({
        HEADER: swapped(FILES[HEADER], ("#define GATE_STEP 1\n", "#define GATE_STEP 1\n#define GATE_MUCH (1 << 1)\n"),
                        ("\tGATE_OPEN,\n", "\tGATE_OPEN,\n\tGATE_TORN,\n")),
        FILE: swapped(FILES[FILE], (REFILL, helper + REFILL.replace(
            OPENS, "\tif (gate_much(g))\n\t\treturn;\n\tg->open = GATE_TORN;\n")))}))
    assert done.functions["gate_refill"]["status"] == "differs"
    assert done.functions["gate_refill"]["via"] == ["GATE_MUCH", "gate_much"]
    assert done.verdicts["soon"] == ("proved", "refuted", "worse")
    (row,) = [p for p in done.part["properties"] if p["property"] == "soon"]
    assert "gate_much" in row["after"]["trace"]["sources"]
    same = gates.check(patch_of({
        HEADER: swapped(FILES[HEADER], ("\tGATE_OPEN,\n", "\tGATE_OPEN,\n\tGATE_TORN,\n")),
        FILE: swapped(FILES[FILE], (OPENS, "\tg->open = GATE_TORN - GATE_OPEN;\n"))}))
    assert same.functions["gate_refill"]["status"] == "equal"


# ------------------------------------------------------------------------------- what the model holds for itself
@pytest.mark.parametrize(("file", "pair", "name", "why"), [
    (HEADER, ("GATE_LIMIT 1000", "GATE_LIMIT 100"), "GATE_LIMIT", "the model scales it: 3 instead of 1000"),
    (HEADER, ("GATE_STEP 1", "GATE_STEP 2"), "GATE_STEP", "the model has 1 for it"),
    (FILE, ("_TRUE(gate_in_use)", "_FALSE(gate_in_use)"), "gate_in_use", "the model holds it on: there is a gate"),
])
def test_a_constant_of_the_model_is_not_covered(gates: Gates, file: str, pair: tuple[str, str], name: str, why: str):
    done = gates.edit(pair, file=file)
    assert done.code == 3
    assert (done.functions[name]["status"], done.functions[name]["detail"]) == ("not_covered", why)
    assert set(done.verdicts.values()) == {("unknown", "unknown", "undecided")}
    text = gates.check(patch_of({file: swapped(FILES[file], pair)}), "--format", "text")
    assert f"{name} in {file}: changed, not covered by this model {why}" in text.flat


def test_a_scaled_constant_is_seen_through_what_it_is_made_of(gates: Gates):
    files = {**FILES, HEADER: swapped(FILES[HEADER], ("GATE_LIMIT 1000", "GATE_LIMIT (GATE_SCALE * 250)"))}
    gates.write(files)
    done = gates.check(patch_of({HEADER: swapped(files[HEADER], ("GATE_SCALE 4", "GATE_SCALE 5"))}, files))
    assert done.functions["GATE_LIMIT"]["status"] == "not_covered"
    assert done.functions["GATE_LIMIT"]["via"] == ["GATE_SCALE"]


def test_a_callee_that_stays_the_model_s_own_is_told(gates: Gates):
    done = gates.edit(("\tg->count = 0;\n", "\tg->count = 1;\n"), file=HEADER)
    assert done.code == 3
    assert done.functions["gate_log"]["status"] == "not_read"
    assert done.functions["gate_log"]["detail"] == "it stays the model's own: the log is written elsewhere"


def test_a_function_that_does_nothing_for_the_model_is_told_and_changes_nothing(gates: Gates):
    done = gates.edit(("int what)\n{\n", "int what)\n{\n\tg->stamp = what;\n"), file=HEADER)
    assert (done.code, done.functions["trace_gate"]["status"]) == (0, "invisible")
    assert done.functions["trace_gate"]["detail"] == "it does nothing for the model: tracing"
    done = gates.edit(("int what)\n{\n", "int what)\n{\n\tg->count = what;\n"), file=HEADER)
    assert (done.code, done.functions["trace_gate"]["status"]) == (3, "not_read")
    assert done.functions["trace_gate"]["detail"] == "it did nothing for the model (tracing), and has count in it"


# -------------------------------------------------------------------------------------------- what cannot be read
@pytest.mark.parametrize(("file", "pair", "via"), [
    (DEEP, ("+ GATE_BEATS", "+ GATE_BEATS + 1"), "gate_deep"),
    (HEADER, ("GATE_SCALE 4", "GATE_SCALE 5"), "GATE_SCALE"),
    (HEADER, ("\tint count;\n", "\tu8 count;\n"), "count"),
    (FILE, ("return gate_deep(g) + 1;", "return gate_deep(g);"), "gate_middle"),
])
def test_a_helper_below_what_cannot_be_read_is_never_passed_over(gates: Gates, file: str, pair: tuple[str, str],
                                                                        via: str):
    done = gates.edit(pair, file=file)
    assert done.code == 3
    assert (done.functions["gate_slow"]["status"], done.functions["gate_slow"]["via"]) == ("not_read", [via])
    assert "asm" in done.functions["gate_slow"]["detail"]
    assert set(done.verdicts.values()) == {("unknown", "unknown", "undecided")}


def test_what_nothing_modelled_comes_to_is_passed_over(gates: Gates):
    for file, pair in ((FILE, ("\tg->count = 2;\n", "\tg->count = 1;\n")),
                       (DEEP, ("static inline int gate_deep", "#define GATE_OTHER 1\nstatic inline int gate_deep")),
                       (DEEP, ("+ GATE_BEATS", "+ GATE_BEATS /* two */"))):
        done = gates.edit(pair, file=file)
        assert (done.code, done.json["patches"][0]["models"]) == (0, []), pair
        assert gates.check(patch_of({file: swapped(FILES[file], pair)}), "--format", "text").out == ""


def test_an_include_that_brings_another_definition_is_seen(gates: Gates):
    """The macro comes from a header that was there before, and was not included."""
    other = "kernel/sched/other.h"
    files = {**FILES, other: "#define gate_deep(g) 7\n"}
    gates.write(files)
    include = '#include "deep.h"\n'
    done = gates.check(patch_of({FILE: swapped(FILES[FILE], (include, include + '#include "other.h"\n'))}, files))
    assert done.code == 3 and done.functions["gate_slow"]["via"] == ["gate_deep"]


# ----------------------------------------------------------------------------------------------------- selection
def moved(header: str = "") -> dict[str, str | None]:
    """gate_refill in a file of its own, no longer static."""
    return {FILE: swapped(FILES[FILE], (REFILL, "void gate_refill(struct gate *g);\n")),
            "kernel/sched/refill.c": f'#include "gate.h"\n{header}\n' + REFILL.removeprefix("static ")}


def test_a_function_that_moves_to_another_file_is_found_there(gates: Gates):
    done = gates.check(patch_of(moved()))
    assert (done.code, done.functions["gate_refill"]["status"]) == (0, "equal")
    assert done.functions["gate_refill"]["file"] == "kernel/sched/refill.c"
    shut = swapped(str(moved()["kernel/sched/refill.c"]), (OPENS, "\tg->open = GATE_SHUT;\n"))
    done = gates.check(patch_of({**moved(), "kernel/sched/refill.c": shut}))
    assert done.functions["gate_refill"]["status"] == "differs" and done.verdicts["soon"][2] == "worse"


def test_a_static_function_that_moves_with_its_callers_is_found_there(gates: Gates):
    """The whole of the file gets another name; nothing of it is where the model says."""
    done = gates.check(patch_of({FILE: None, "kernel/sched/doors.c": FILES[FILE]}))
    assert done.code == 3                                            # for what cannot be read
    assert {n: (f["status"], f["file"]) for n, f in done.functions.items()} == {
        **dict.fromkeys(("gate_ready", "gate_pass", "gate_refill"), ("equal", "kernel/sched/doors.c")),
        "gate_slow": ("not_read", FILE)}


@pytest.mark.parametrize("gone", [(REFILL, ""), ("gate_refill(struct", "gate_fill_again(struct")])
def test_a_modelled_function_that_goes_away_or_is_renamed_is_never_equal(gates: Gates, gone: tuple[str, str]):
    done = gates.edit(gone)
    assert done.code == 3
    assert done.functions["gate_refill"]["status"] == "not_read"
    assert "after the patch: gate_refill: no definition" in done.functions["gate_refill"]["detail"]
    assert set(done.verdicts.values()) == {("unknown", "unknown", "undecided")}
    text = gates.check(patch_of({FILE: swapped(FILES[FILE], gone)}), "--format", "text")
    assert "gate_refill() in kernel/sched/gate.c: changed, but not read" in text.out and "equal" not in text.out


def test_an_absent_function_is_absent_in_the_tree_and_never_equal(gates: Gates):
    gates.write({FILE: swapped(FILES[FILE], (REFILL, ""))})
    done = gates.run("conform", "gate", "--tree", gates.tree, "--json", cached=True)
    rows = {r["function"]: r for r in done.json["functions"]}
    assert rows["gate_refill"]["status"] == "absent" and "no definition" in rows["gate_refill"]["reason"]
    assert rows["gate_ready"]["status"] != "absent"


@pytest.mark.parametrize("files", [
    {FILE: FILES[FILE] + "\n" + REFILL},
    {FILE: FILES[FILE].replace(REFILL, ""), "kernel/sched/x.c": REFILL, "kernel/sched/y.c": REFILL},
])
def test_two_live_definitions_are_an_error(gates: Gates, files: dict[str, str]):
    gates.write(files)
    done = gates.run("conform", "gate", "--tree", gates.tree, "--json", cached=True)
    row = {r["function"]: r for r in done.json["functions"]}["gate_refill"]
    assert row["status"] == "not_executable" and "second definition" in row["reason"]


def test_a_second_definition_under_a_condition_that_is_off_is_none(gates: Gates):
    gates.write({FILE: FILES[FILE] + "\n#ifdef CONFIG_NO_SUCH_THING\n" + REFILL + "#endif\n"})
    done = gates.run("conform", "gate", "--tree", gates.tree, "--json", cached=True)
    assert {r["function"]: r for r in done.json["functions"]}["gate_refill"]["status"] == "equal"


def test_a_patch_that_defines_a_second_one_is_told(gates: Gates):
    done = gates.check(patch_of({FILE: FILES[FILE] + "\n" + REFILL}))
    assert done.code == 3 and "second definition" in done.functions["gate_refill"]["detail"]


def test_a_static_function_of_another_file_is_not_the_one_that_is_called(gates: Gates):
    other = "drivers/other.c"
    files = {**FILES, other: "static int gate_deep(int x)\n{\n\treturn x;\n}\n"}
    gates.write(files)
    done = gates.check(patch_of({other: files[other].replace("return x;", "return x + 1;")}, files))
    assert (done.code, done.json["patches"][0]["models"]) == (0, [])
    files[other] = files[other].replace("static ", "")
    gates.write(files)
    done = gates.check(patch_of({other: files[other].replace("return x;", "return x + 1;")}, files))
    assert done.functions["gate_slow"]["via"] == ["gate_deep"]        # as far as words can tell


def test_all_classes_that_share_a_name_are_looked_at(gates: Gates):
    """Grains of one mechanism: each has its part of the report, under the name of their file."""
    registry.use_suite(SUITE)
    (model,) = registry.model_classes("gate")
    other = type("Other", (model,), {"__module__": model.__module__})
    patches = parse_patches(patch_of({FILE: swapped(FILES[FILE], (OPENS, ""))}))
    known = registry.properties("gate")
    grains: list[Any] = [(model, known), (other, [replace(p, model=other) for p in known])]
    (report,) = check(patches, Tree(gates.tree), {"gate": grains}, Options())
    assert [(p.model, len(p.rows)) for p in report.models] == [("gate", 2), ("gate", 2)]


def test_a_class_without_properties_tells_only_what_no_other_one_does(gates: Gates):
    registry.use_suite(SUITE)
    (model,) = registry.model_classes("gate")
    other = type("Other", (model,), {"__module__": model.__module__})
    patches = parse_patches(patch_of({FILE: swapped(FILES[FILE], (OPENS, ""))}))
    cases: list[Any] = [([(model, registry.properties("gate")), (other, [])], [2]), ([(other, [])], [0])]
    for asked, rows in cases:
        (report,) = check(patches, Tree(gates.tree), {"gate": asked}, Options())
        assert [len(p.rows) for p in report.models] == rows
        assert all(f.status == "differs" for p in report.models for f in p.functions)


class Reads(Model):
    """Reads a function that ``gate`` has no word for, and ignores what ``gate`` follows."""

    gate = Object("struct gate", "g")
    open = Bool(per=gate, c="open", init=True)
    releases = {"v6.1": {}}
    functions = {"gate_refill": FILE}
    vocabulary = Vocabulary(ignore={("struct gate", "level"): "nobody asks", ("struct gate", "count"): "no counting"})


@pytest.mark.parametrize(("after", "told"), [("\tg->open = 1;\n", "equal"), (OPENS + "\tg->count = 3;\n", "not_read")])
def test_what_another_class_calls_invisible_does_not_count_as_equal(gates: Gates, after: str, told: str):
    level = "\tg->level = 1;\n"
    files = {**FILES, FILE: swapped(FILES[FILE], (OPENS, OPENS + level)),
             HEADER: swapped(FILES[HEADER], (MEMBER, MEMBER + "\tint level;\n"))}
    gates.write(files)
    registry.use_suite(SUITE)
    (model,) = registry.model_classes("gate")
    patches = parse_patches(patch_of({FILE: swapped(files[FILE], (OPENS, after))}, files))
    asked = {"reads": (Reads, []), "gate": (model, registry.properties("gate"))}
    (report,) = check(patches, Tree(gates.tree), asked, Options())
    part = next(p for p in report.models if p.model == "gate")
    assert [(f.function, f.status) for f in part.functions] == [("gate_refill", told)]
    assert report.code == (0 if told == "equal" else 3)
