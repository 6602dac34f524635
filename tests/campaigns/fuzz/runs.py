# SPDX-License-Identifier: GPL-2.0-only
"""One input carried through: read, run by the plain interpreter and symbolically, compared with itself and natively.

Whatever is not right is a finding, in words: an error that no user is meant to read, a time-out, a wrong value.
"""

from __future__ import annotations

import random
import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import z3

from schedproof.errors import ModelError, NotExecutable, SchedproofError
from schedproof.kernel import Tree
from schedproof.kernel.arena import REST, Outside
from schedproof.kernel.compare import Side, compare
from schedproof.kernel.functions import Read, read_function
from schedproof.lang.interpret import Interpreter, Oracle
from schedproof.lang.syntax import Program
from schedproof.lang.world import Key, World, make_world
from schedproof.model.domains import Domain, Int
from tests.campaigns.fuzz import mutate
from tests.campaigns.fuzz.cgen import Function
from tests.campaigns.fuzz.native import Native
from tests.campaigns.fuzz.yard import FIELDS, FILE, KEYS, SIZES, State, Yard, shown
from tests.loading import Valuer

# Seconds of the processor for one input. One question to Z3 ends by its resource limit after up to about five seconds,
# and in a process that has asked many before it takes a few times longer; an input may ask several that hard.
BUDGET = 60.0
NOT_PARSED = ("not C that can be parsed", "not a single function definition")


class Hang(BaseException):
    """The budget of one input is spent. (No error that anything catches by its class.)"""


@dataclass
class Outcome:
    """What has become of one input."""

    parsed: bool = False
    executed: bool = False
    refused: str = ""                                         # the construct, or the cause, in a few words
    native: int = 0                                           # runs that were compared with the compiler's
    answers: list[str] = field(default_factory=list)          # of comparisons
    findings: list[str] = field(default_factory=list)

    def find(self, kind: str, detail: str) -> None:
        self.findings.append(f"{kind}: {' '.join(detail.split())[:400]}")


@contextmanager
def guarded(outcome: Outcome, budget: float = BUDGET) -> Iterator[None]:
    """Turns everything that may not come out into a finding. The budget is the processor's time."""
    import signal

    def ring(number: int, frame: FrameType | None) -> None:
        raise Hang

    kept = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, budget, 1.0)
    try:
        yield
    except Hang:
        # The plain interpreter runs C as it stands: a damaged loop of 2^32 rounds is none of the reader's faults.
        if "/lang/interpret.py" in traceback.format_exc():
            outcome.refused = "a loop that the plain interpreter does not end"
        else:
            outcome.find("hang", f"more than {budget} s; {_origin(traceback.format_exc())}")
    except SchedproofError as error:
        refusal(outcome, error)
    except MemoryError:
        outcome.find("memory", _origin(traceback.format_exc()))
    except Exception as error:
        outcome.find("error", f"{type(error).__name__}: {error} {_origin(traceback.format_exc())}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, kept)


def _origin(trace: str) -> str:
    """Where in the package it happened."""
    places = re.findall(r'schedproof/(\w+/\w+\.py)", line (\d+)', trace)
    return "at " + " < ".join(f"{f}:{n}" for f, n in reversed(places[-3:])) if places else ""


def refusal(outcome: Outcome, error: SchedproofError) -> None:
    """A documented error: it has one line, and what cannot be executed has a place."""
    message = str(error)
    outcome.refused = kind_of(message)
    if "\n" in message or not message:
        outcome.find("message", f"not one line: {message!r}")
    if isinstance(error, NotExecutable) and (not error.file or error.line < 1):
        outcome.find("no place", message)


def kind_of(message: str) -> str:
    """The construct in a refusal, without its names."""
    found = re.sub(r"^.*?cannot execute ", "", message) if "cannot execute" in message else message
    found = re.sub(r"^\S+:\d+: ", "", found)
    found = re.sub(r"^.* is not in /.*|^/\S+", "what is not in the tree", found)
    for pattern, kind in ((r"not C that can be parsed", "not C"), (r"^(field|write to field)\b", "field"),
                          (r"^(global variable|member of|call through|address of|use of|call of|goto|static key|macro"
                           r"|recursion|argument|result of|header of|enumerator|value of|container_of|cast|number)\b",
                           r"\1"), (r"no definition", "absent"), (r"(no such object|has no objects)", "object"),
                          (r"nested too deeply", "nested too deeply"), (r"second definition", "second definition")):
        match = re.search(pattern, found)
        if match:
            return match.expand(kind) if "\\" in kind else kind
    return re.sub(r"\b(\w*\d\w*|v\d+)\b", "N", found.split(":")[0])[:40]


# ------------------------------------------------------------------------------------------------- running
def world_of(instance: Any, programs: Mapping[str, Program]) -> World:
    """The world in which variables hold exact C values."""
    variables: dict[str, tuple[str | None, Domain]] = {
        n: (u, d if d.sort == "Bool" else Int()) for n, (u, d) in instance.world.variables.items()}
    return make_world(instance.universes, variables, instance.world.links, instance.world.constants, programs)


def plain(world: World, name: str, memory: Mapping[Key, int | bool], args: Sequence[int]) -> tuple[Any, Any] | str:
    """Value and memory behind a run, or the words of its fault."""
    try:
        done = Interpreter(world, memory, Oracle()).run(name, args)
    except ModelError as error:
        return str(error)
    return done.value, done.memory


def read_text(tree: Tree, files: Mapping[str, str], function: str, file: str, model: Any, outcome: Outcome) -> Read:
    """Read a function of a tree with some files replaced, and note what came of it."""
    found = read_function(tree.with_files(dict(files)), function, file, model)
    outcome.parsed = found.status == "read" or (
        found.status == "not_executable" and not any(x in found.reason for x in NOT_PARSED))
    if found.status != "read":
        outcome.refused = kind_of(found.reason)
        place = re.match(r"(\S+):(\d+): ", found.reason)
        if "\n" in found.reason:
            outcome.find("message", f"not one line: {found.reason!r}")
        if found.status == "not_executable" and (place is None or int(place[2]) < 1):
            outcome.find("no place", found.reason)
    return found


def itself(instance: Any, name: str, programs: Mapping[str, Program], outcome: Outcome) -> None:
    """A function compared with itself: it may be undecided, it never differs."""
    side = Side(name, programs)
    found = compare(instance, side, side)
    outcome.answers.append(found.answer)
    outcome.executed = outcome.executed or found.answer == "equal"
    if found.answer == "differs":
        outcome.find("wrong", f"it differs from itself: {found.detail}")


def some(rng: random.Random, low: int, high: int) -> int:
    """A number of a range: small ones, ends, any."""
    kind = rng.random()
    if kind < 0.45:
        return rng.randint(max(low, -4), min(high, 9))
    return rng.choice([low, high, low + 1, high - 1, high // 2, 0]) if kind < 0.7 else rng.randint(low, high)


def states(rng: random.Random, count: int) -> list[State]:
    """States of the yard, every field within its C type."""
    return [tuple(rng.randint(-1, SIZES["car"] - 1) if f.kind == "car" else some(rng, f.ctype.low, f.ctype.high)
                  for f, _ in KEYS) for _ in range(count)]


def memory_of(state: State) -> dict[Key, int | bool]:
    return {(f.name, i): bool(v) if f.kind == "bool" else v for (f, i), v in zip(KEYS, state, strict=True)}


def arguments(rng: random.Random, made: Function, programs: Mapping[str, Program]) -> list[int]:
    found = []
    for (kind, _), ctype in zip(made.params, programs["f"].types, strict=True):
        if kind in SIZES:
            found.append(rng.randrange(SIZES[kind]))
        else:
            assert ctype is not None
            found.append(some(rng, ctype.low, ctype.high))
    return found


@dataclass
class Symbolic:
    """The results of one symbolic run with given objects: terms over the state and the arguments."""

    world: World
    valuer: Valuer
    keys: tuple[Key, ...]
    value: bool

    @classmethod
    def of(cls, world: World, program: Program, args: Sequence[int]) -> Symbolic:
        keys = tuple(k for f in FIELDS for k in world.keys(f.name))
        ranges: dict[str, tuple[int | None, int | None]] = {
            world.name((f.name, i)): (f.ctype.low, f.ctype.high) if f.kind == "number" else (-1, SIZES["car"] - 1)
            for f, i in KEYS if f.kind != "bool"}
        heap = {k: z3.Bool(world.name(k)) if world.variables[k[0]][1].sort == "Bool" else z3.Int(world.name(k))
                for k in keys}
        given: list[Any] = []
        constants = list(heap.values())
        for number, ctype in enumerate(program.types):
            assert ctype is not None
            if ctype.struct:
                given.append(args[number])
                continue
            given.append(z3.Bool(f"arg {number}") if ctype.name == "bool" else z3.Int(f"arg {number}"))
            ranges[f"arg {number}"] = (ctype.low, ctype.high)
            constants.append(given[-1])
        done = Outside(world, ranges).run("f", given, {**heap, (REST, None): z3.Int(REST)})
        end = done.end.heap if done.end is not None else heap
        faults = [_term(f.guard) for f in done.faults]
        terms = [z3.Or(*faults) if faults else z3.BoolVal(False), *(_term(end[k]) for k in keys)]
        if done.value is not None:
            terms.append(_term(done.value))
        return cls(world, Valuer(terms, constants), keys, done.value is not None)

    def run(self, program: Program, state: State, args: Sequence[int]) -> tuple[Any, Any] | str:
        numbers = [a for a, t in zip(args, program.types, strict=True) if t is not None and not t.struct]
        fault, *found = self.valuer([*state, *numbers])
        if fault:
            return "fault"
        memory = dict(zip(self.keys, found, strict=False))
        return found[-1] if self.value else None, memory


def _term(value: Any) -> z3.ExprRef:
    if isinstance(value, bool):
        return z3.BoolVal(value)
    return z3.IntVal(value) if isinstance(value, int) else value


def generated(made: Function, number: int, tree: Tree, instance: Any, native: Native | None, rng: random.Random,
              outcome: Outcome, runs: int = 6) -> Mapping[str, Program] | None:
    """Carry a generated function through, and hold all its results against each other."""
    found = read_text(tree, {FILE: f'#include "yard.h"\n{made.text}'}, "f", FILE, Yard, outcome)
    if found.status != "read":
        if native is not None and number not in native.refused and not made.odd and not outcome.parsed:
            outcome.find("wrong", f"plain C is not read: {found.reason}")
        return None
    programs = {**instance.world.programs, **found.programs}
    world = world_of(instance, programs)
    inputs = [(state, arguments(rng, made, programs)) for state in states(rng, runs)]
    objects = [a for a, (kind, _) in zip(inputs[0][1], made.params, strict=True) if kind in SIZES]
    for _, args in inputs[:3]:
        args[:len(objects)] = objects
    results = [plain(world, "f", memory_of(state), args) for state, args in inputs]
    outcome.executed = any(isinstance(r, tuple) for r in results)
    if native is not None and number not in native.refused:
        _against_compiler(native, number, made, found, inputs, results, outcome)
    program = found.programs["f"]
    if rng.random() < 0.4:
        return programs
    try:
        symbolic = Symbolic.of(world, program, inputs[0][1])
    except SchedproofError as error:
        refusal(outcome, error)
    else:
        outcome.answers.append("symbolic")
        for (state, args), result in list(zip(inputs, results, strict=True))[:3]:
            other = symbolic.run(program, state, args)
            if _apart(result, other):
                outcome.find("wrong", f"symbolic {_told(other, result)} on {args} {shown(state)}")
                break
    if rng.random() < 0.12:
        itself(instance, "f", programs, outcome)
    return programs


def _against_compiler(native: Native, number: int, made: Function, found: Read,
                      inputs: Sequence[tuple[State, list[int]]], results: Sequence[Any], outcome: Outcome) -> None:
    result = found.programs["f"].result
    for (state, args), ours in zip(inputs, results, strict=True):
        if isinstance(ours, str) and "not modelled" in ours:
            continue
        value, behind = native.run(number, state, args)
        theirs = (None if result is None else value if result.struct else result.wrap(value), memory_of(behind))
        outcome.native += 1
        if _apart(ours, theirs):
            outcome.find("wrong", f"compiled {_told(theirs, ours)} on {args} {shown(state)}; odd: {made.odd}")
            return


def _apart(one: tuple[Any, Any] | str, other: tuple[Any, Any] | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) != isinstance(other, str)
    return one[0] != other[0] or {k: int(v) for k, v in one[1].items()} != {k: int(v) for k, v in other[1].items()}


def _told(one: Any, other: Any) -> str:
    if isinstance(one, str) or isinstance(other, str):
        return f"{one if isinstance(one, str) else one[0]}, interpreted {other if isinstance(other, str) else other[0]}"
    keys = [k for k in one[1] if int(one[1][k]) != int(other[1].get(k, 0))]
    return f"{one[0]}, interpreted {other[0]}; " + ", ".join(
        f"{k}: {one[1][k]} and {other[1].get(k)}" for k in keys[:3])


def pair(one: Mapping[str, Program], two: Mapping[str, Program], made: Function, instance: Any, rng: random.Random,
         outcome: Outcome) -> None:
    """Two versions: ``equal`` has to hold on every input that is tried, ``differs`` on the input that it names."""
    from tests.kernel.smallc import really_differs
    left, right = Side("f", one), Side("f", two)
    found = compare(instance, left, right)
    outcome.answers.append(found.answer)
    if found.answer == "differs":
        if not really_differs(instance, left, right, found):
            outcome.find("wrong", f"they do not differ on {found.detail} {dict(found.input)}")
        return
    if found.answer != "equal" or found.within:
        return
    worlds = world_of(instance, one), world_of(instance, two)
    for state in states(rng, 8):
        args = arguments(rng, made, one)
        results = [plain(w, "f", memory_of(state), args) for w in worlds]
        if _apart(results[0], results[1]):
            outcome.find("wrong", f"not equal: {_told(results[0], results[1])} on {args} {shown(state)}")
            return


def twin(made: Function, programs: Mapping[str, Program], tree: Tree, instance: Any, rng: random.Random,
         outcome: Outcome) -> None:
    """A generated function and the same with a small change."""
    given = mutate.tokens(made.text)
    body = max(i for i, t in enumerate(given) if t == "f")
    inner = given[body + 1:]
    mutate.small(rng, inner)
    text = "".join(given[:body + 1] + inner)
    if "ask(" in text or "note(" in text:          # in a comparison these leave any state; here they have one meaning
        return
    found = read_function(tree.with_files({FILE: f'#include "yard.h"\n{text}'}), "f", FILE, Yard)
    if found.status == "read" and len(found.programs["f"].params) == len(made.params):
        pair(programs, {**instance.world.programs, **found.programs}, made, instance, rng, outcome)
