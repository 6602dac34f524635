# SPDX-License-Identifier: GPL-2.0-only
"""Certificates: both solvers check those of real proofs, and nothing else is ever valid."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import z3

from schedproof.cli import main
from schedproof.engines.certificate import CLOCK, Certificate, check, has_cvc5, names_in, written
from schedproof.engines.induction import Induction
from schedproof.errors import InputError
from schedproof.model.domains import Int
from schedproof.property import Invariant, Property, Within, WorstCase
from tests.engines.handmade import Handmade, by_name, number, of, prop, rule
from tests.engines.test_bmc import counter

N = z3.Int("n")
NAMES = {"model": "handmade", "property": "tested", "variant": "v1", "parameters": {}}
PROVED = "wake_affine:flag_written_by_owner"
VARIANT = "v6.12+set_on_run"


def certificate(instance: Any, kind: Any, k: int, *lemmas: Any) -> str:
    return written(instance, prop(kind), Certificate(k, lemmas), NAMES)


def answers(instance: Any, kind: Any, text: str) -> dict[str, set[str]]:
    """For each solver, what it said."""
    found: dict[str, set[str]] = {}
    for a in check(instance, prop(kind), text):
        found.setdefault(a.solver, set()).add(a.answer)
    return found


def solvers() -> tuple[str, ...]:
    return ("Z3", "cvc5") if has_cvc5() else ("Z3",)


def even() -> Handmade:
    n = of("n", Int())
    return Handmade(by_name(n), ({"n": 0},), (rule("up", z3.BoolVal(True), {"n": n.term + 2}),))


def ring() -> Handmade:
    """0 to 1 to 2 to 0, and 4 to 5 to 6 to 7, where a run never comes: what 7 is not takes three steps to see."""
    n = number("n", 0, 7)
    goes = z3.If(n.term == 2, 0, n.term + 1)
    return Handmade(by_name(n), ({"n": 0},), (rule("on", z3.And(n.term != 3, n.term != 7), {"n": goes}),))


# -------------------------------------------------------------------------------------------------- by hand
def test_one_step():
    assert answers(even(), Invariant(N % 2 == 0), certificate(even(), Invariant(N % 2 == 0), 1)) == {
        s: {"unsat"} for s in solvers()}


def test_a_lemma_is_part_of_the_invariant():
    kind = Invariant(N != 7)
    assert "sat" in answers(even(), kind, certificate(even(), kind, 1))["Z3"]        # 5 is followed by 7
    assert answers(even(), kind, certificate(even(), kind, 1, N % 2 == 0)) == {s: {"unsat"} for s in solvers()}


@pytest.mark.parametrize(("k", "valid"), [(1, False), (2, False), (3, False), (4, True)])
def test_several_steps(k, valid):
    """Before 7 come 4, 5 and 6 and nothing else: four good states in a row, all different, are not followed by it."""
    kind = Invariant(N != 7)
    found = answers(ring(), kind, certificate(ring(), kind, k))
    assert all((said == {"unsat"}) == valid for said in found.values()), found
    assert set(found) == set(solvers())


def test_the_engine_leaves_what_it_needed():
    found: Any = Induction(8).decide(ring(), prop(Invariant(N != 7)))
    assert (found.name, found.certificate.k) == ("proved", 4)


def test_a_wait_has_a_clock():
    kind = Within(6, z3.And(N >= 2, N < 5), "ms")
    found: Any = Induction(8).decide(counter(5, 2), prop(kind))
    text = written(counter(5, 2), prop(kind), found.certificate, NAMES)
    assert f"|{CLOCK}@0|" in text
    assert answers(counter(5, 2), kind, text) == {s: {"unsat"} for s in solvers()}
    less = Within(5, z3.And(N >= 2, N < 5), "ms")           # three steps of 2 ms
    for k in (1, 4, 6):
        assert "sat" in answers(counter(5, 2), less, certificate(counter(5, 2), less, k))["Z3"]


def test_a_step_out_of_the_domains_is_no_invariant():
    n = number("n", 0, 3)
    runaway = Handmade(by_name(n), ({"n": 0},), (rule("up", z3.BoolVal(True), {"n": n.term + 1}),))
    for k in (1, 5):
        assert "sat" in answers(runaway, Invariant(n.term >= 0), certificate(runaway, Invariant(n.term >= 0), k))["Z3"]


def test_other_kinds_have_none():
    with pytest.raises(InputError, match="no certificates for properties of the kind worst_case"):
        written(even(), prop(WorstCase(N > 0, "ms")), Certificate(1), NAMES)


# ------------------------------------------------------------------------------------------ damage and forgery
def invariant_of(text: str) -> str:
    return text.partition("; invariant\n")[2].partition("; obligations")[0]


def forged(text: str, body: str) -> str:
    """The certificate with another invariant, by somebody who knows how the file is sealed."""
    head = invariant_of(text).partition("\n")[0]
    return sealed(text.replace(invariant_of(text), f"{head}\n{body}"))


def sealed(text: str) -> str:
    """The certificate with a hash that fits its changed text."""
    told = text.partition("; invariant\n")[2].replace("; obligations\n", "", 1)
    return text.replace(names_in(text)["hash"], hashlib.sha256(told.encode()).hexdigest())


@pytest.mark.parametrize("body", ["true)\n", "false)\n", "(> n 0))\n", "(= 0 (mod n 3)))\n"])
def test_an_invariant_that_is_none_is_found_out(body):
    kind = Invariant(N % 2 == 0)
    said = answers(even(), kind, forged(certificate(even(), kind, 1), body))
    assert all("sat" in one for one in said.values()), said


def test_another_invariant_that_is_one_is_as_good():
    kind = Invariant(N % 2 == 0)
    said = answers(even(), kind, forged(certificate(even(), kind, 1), "(and (>= n 0) (= 0 (mod n 2))))\n"))
    assert said == {s: {"unsat"} for s in solvers()}


@pytest.mark.parametrize("body", [
    "true)\n(assert false)\n", "true)\n(reset)\n", "true) ; (\n", "(unknown n))\n", "(= n other))\n", "7)\n", "\n",
    "true)", "|)\n", "true))\n(\n", "(let ((invariant true)) invariant)\n", "(set-logic LIA))\n"])
def test_nothing_but_one_term_gets_into_a_solver(body):
    kind = Invariant(N % 2 == 0)
    with pytest.raises(InputError, match="damaged|other obligations"):
        check(even(), prop(kind), forged(certificate(even(), kind, 1), body))


def test_every_line_counts():
    """A certificate that lacks a line, or has one twice, is refused, wherever it is."""
    kind = Invariant(N % 2 == 0)
    lines = certificate(even(), kind, 1).splitlines(keepends=True)
    for i in range(len(lines)):
        for changed in ("".join(lines[:i] + lines[i + 1:]), "".join(lines[:i + 1] + lines[i:])):
            with pytest.raises(InputError):
                check(even(), prop(kind), changed)


def test_every_line_of_the_obligations_counts_even_when_sealed_again():
    kind = Invariant(N % 2 == 0)
    text = certificate(even(), kind, 1)
    lines = text.splitlines(keepends=True)
    for i in range(lines.index("; obligations\n") + 1, len(lines)):
        with pytest.raises(InputError, match="other obligations"):
            check(even(), prop(kind), sealed("".join(lines[:i] + lines[i + 1:])))
    for old, new in (("(not (invariant n@1))", "false"), ("2", "0"), ("(check-sat)\n(pop 1)", "(pop 1)")):
        assert old in text.partition("; obligations")[2]
        head, _, tail = text.partition("; obligations\n")
        with pytest.raises(InputError, match="other obligations"):
            check(even(), prop(kind), sealed(f"{head}; obligations\n{tail.replace(old, new)}"))


def test_another_model_or_property():
    kind = Invariant(N % 2 == 0)
    text, n = certificate(even(), kind, 1), of("n", Int())
    faster = Handmade(by_name(n), ({"n": 0},), (rule("up", z3.BoolVal(True), {"n": n.term + 4}),))
    with pytest.raises(InputError, match="the model or the property has changed"):
        check(faster, prop(kind), text)
    with pytest.raises(InputError, match="the model or the property has changed"):
        check(even(), prop(Invariant(N >= 0)), text)
    with pytest.raises(InputError, match="another statement"):
        check(even(), Property("tested", None, "something else", kind), text)


@pytest.mark.parametrize("header", ["", "{}", "[]", "{" * 5000, '{"k": 1}', json.dumps({
    **NAMES, "statement": "x", "hash": "x", "k": 10**9}), json.dumps({
        **NAMES, "statement": "x", "hash": "x", "k": True})])
def test_a_header_that_says_nothing(header):
    with pytest.raises(InputError, match="damaged"):
        names_in(f"; schedproof-certificate/1\n; {header}\n")


# --------------------------------------------------------------------------------------------- command line
@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificate of a real property."""
    folder = tmp_path_factory.mktemp("certificates")
    words = ("prove", PROVED, "--variant", VARIANT, "--engine", "induction", "--certificates", str(folder), "--quiet")
    assert main(words) == 0
    (found,) = folder.iterdir()
    return found


def test_certify_in_a_fresh_process(file):
    done = subprocess.run([sys.executable, "-m", "schedproof", "certify", str(file)], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{file}: valid: {PROVED} in {VARIANT}, ")
    assert done.stdout.endswith(f" obligations, by {' and '.join(solvers())}\n")


def test_certify_tells_a_forgery_by_its_exit_code(file, tmp_path, capsys):
    text = file.read_text()
    bad = tmp_path / "forged.smt2"
    bad.write_text(forged(text, "true)\n"))
    assert main(("certify", str(bad))) == 1
    out, err = capsys.readouterr()
    assert out.startswith(f"{bad}: invalid: ") and err == ""
    bad.write_text(text.replace(f'"{VARIANT}"', '"v6.12"'))
    assert main(("certify", str(bad))) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "states other obligations" in err
    bad.write_bytes(b"\xff\xfe\0")
    assert main(("certify", str(bad), str(tmp_path / "none"))) == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_certificates_need_a_proof_by_induction(capsys, tmp_path):
    assert main(("prove", PROVED, "--certificates", str(tmp_path))) == 2
    assert "needs --engine induction" in capsys.readouterr().err
