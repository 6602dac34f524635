# SPDX-License-Identifier: GPL-2.0-only
"""An instance's transitions and predicates as machine code.

``successors(state, out) -> count`` writes three words for each enabled transition, in their order: the next
state, or ``LEFT_DOMAIN`` (also for a transition that is a fault of the model); the transition's number with flags
(``POSITIVE``: the step has a positive cost of any name; ``NEGATIVE``: one of its costs is negative); the cost that
was asked for. ``observe(state) -> mask`` has bit i set where predicate i holds.

Where a state has several words, these two fold and unfold them (see ``wide``); ``wide_successors`` takes the address
of the words and writes all words of the next state in place of one, ``wide_observe`` takes the address, too.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import llvmlite.binding as llvm
import numpy as np
import z3
from llvmlite import ir

from schedproof.engines.explicit.emit import I64, MINUS_ONE, Emitter, Memo, word
from schedproof.engines.explicit.layout import MOST_WORDS, CannotCompile, Field, Layout, lay_out
from schedproof.engines.explicit.terms import Node, Terms
from schedproof.engines.explicit.wide import OBSERVE, SUCCESSORS, Folding, entries
from schedproof.model.transition import State, Transition, Variable

LEFT_DOMAIN = -1
Clock = Literal["", "any", "steps"]
WORDS = 3                      # a successor's words
POSITIVE, NEGATIVE = 1 << 32, 1 << 33
NUMBER = POSITIVE - 1          # mask of the transition's number in the second word
PART, PART_RULES = 4000, 48    # nodes and transitions in one function: LLVM takes quadratic time for long ones


@dataclass(frozen=True)
class Compiled:
    """Machine code of an instance. The addresses are good as long as this object lives."""

    layout: Layout
    transitions: tuple[Transition, ...]
    successors: int
    observe: int
    costly: bool                       # some step may have a cost that is not 0
    cost_high: int                     # no step costs more
    seconds: float
    call_successors: Callable[[int, int], int]
    call_observe: Callable[[int], int]
    keep: object
    folding: Folding | None = None     # of states with several words

    @property
    def held(self) -> int:
        """Bytes that the states take besides one word each."""
        return 0 if self.folding is None else self.folding.size

    def pack(self, state: State) -> int:
        """The word of a state. Raises KeyError, with the variable's name, for a code outside its domain."""
        bits = self.layout.pack(state)
        return bits if self.folding is None else self.folding.fold(bits)

    def unpack(self, folded: int) -> dict[str, int | bool]:
        return self.layout.unpack(folded if self.folding is None else self.folding.unfold(folded))

    @property
    def width(self) -> int:
        """How many words ``successors`` may write."""
        return WORDS * max(1, len(self.transitions))

    def step(self, state: int) -> Iterator[tuple[int, int, int]]:
        """For each enabled transition: next state (or LEFT_DOMAIN), transition's number, cost."""
        out = np.empty(self.width, np.int64)
        count = self.call_successors(state, out.ctypes.data)
        for k in range(count):
            nxt, number, cost = (int(x) for x in out[WORDS * k:WORDS * k + WORDS])
            yield nxt, number & NUMBER, cost

    def transition_between(self, state: int, following: int) -> int:
        """The number of the first transition that leads from one state to the other."""
        return next(number for nxt, number, _ in self.step(state) if nxt == following)


@dataclass(frozen=True)
class _Update:
    field: Field
    value: Node


@dataclass(frozen=True)
class _Rule:
    """One transition as nodes."""

    number: int
    guard: Node
    updates: tuple[_Update, ...]
    cost: Node
    fault: bool
    flags: tuple[tuple[int, Node], ...]


def compile_instance(variables: Mapping[str, Variable], transitions: Sequence[Transition],
                     predicates: Sequence[z3.BoolRef], cost: str = "", initial: Sequence[State] = (),
                     clock: Clock = "", most_words: int = 1) -> Compiled:
    """Compile. ``cost`` names the cost to report. Raises CannotCompile with the reason.

    With ``clock`` it is 1 for each step that costs
    ``any`` thing, or for all ``steps``.

    States that need more than one word are refused unless ``most_words`` allows it: the bits of such states cannot be
    read from their word, only ``Compiled.pack`` and ``unpack`` know them. With ``initial`` states the code is good for
    what can be reached from them only, and a state may be smaller.
    """
    start = time.perf_counter()
    layout = lay_out(variables, transitions, initial, most_words)
    terms = Terms({n: f.bounds for n, f in layout.fields.items()},
                  (n for n, f in layout.fields.items() if f.truth))
    rules = [_rule(terms, layout, number, t, cost, clock) for number, t in enumerate(transitions)]
    watched = [terms.read(p) for p in predicates]
    module = ir.Module("instance")
    folding = Folding(layout.words, len(rules)) if layout.words > 1 else None
    _successors(module, layout, rules, "successors" if folding is None else "wide_successors")
    _observe(module, layout, watched, "observe" if folding is None else "wide_observe")
    if folding is not None:
        _folded(module, folding)
    engine = _machine_code(module)
    if folding is not None:
        for slot, name in ((SUCCESSORS, "wide_successors"), (OBSERVE, "wide_observe")):
            folding.header[slot] = engine.get_function_address(name)
    successors, observe = engine.get_function_address("successors"), engine.get_function_address("observe")
    return Compiled(
        layout, tuple(transitions), successors, observe,
        costly=any(r.flags for r in rules),
        cost_high=max((r.cost.high for r in rules if r.guard.constant != 0), default=0),
        seconds=time.perf_counter() - start,
        call_successors=ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(successors),
        call_observe=ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(observe),
        keep=engine, folding=folding)


def _rule(terms: Terms, layout: Layout, number: int, transition: Transition, cost: str, clock: Clock) -> _Rule:
    updates = []
    for name, term in transition.updates.items():
        if name not in layout.fields:
            raise CannotCompile(f"{transition.label} writes {name}, which is not a variable of the instance")
        value = terms.read(term)
        if value is not terms.var(name):
            updates.append(_Update(layout.fields[name], value))
    costs = {name: terms.read(term) for name, term in transition.costs.items()}
    zero = terms.const(0)
    positive = terms.both("or", (terms.lt(zero, c) for c in costs.values()))
    negative = terms.both("or", (terms.lt(c, zero) for c in costs.values()))
    flags = tuple((bit, node) for bit, node in ((POSITIVE, positive), (NEGATIVE, negative)) if node is not terms.false)
    one = terms.const(1)
    price = costs.get(cost, zero) if not clock else one if clock == "steps" else terms.ite(positive, one, zero)
    return _Rule(number, terms.read(transition.guard), tuple(updates), price,
                 bool(transition.fault), flags)


def _roots(rule: _Rule) -> tuple[Node, ...]:
    return (rule.guard, *(u.value for u in rule.updates), rule.cost, *(n for _, n in rule.flags))


def _gather(roots: Iterable[Node], seen: set[Node]) -> None:
    """Add all nodes below the roots to ``seen``."""
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += node.args


def _parts(rules: Sequence[_Rule]) -> list[list[_Rule]]:
    """The rules in groups of bounded size."""
    groups: list[list[_Rule]] = [[]]
    seen: set[Node] = set()
    for rule in rules:
        _gather(_roots(rule), seen)
        if groups[-1] and (len(seen) > PART or len(groups[-1]) >= PART_RULES):
            groups.append([])
            seen = set()
            _gather(_roots(rule), seen)
        groups[-1].append(rule)
    return groups


# ------------------------------------------------------------------------------------------------ IR functions
def _folded(module: ir.Module, folding: Folding) -> None:
    """``successors`` and ``observe`` of states with several words: Numba's functions, told where the tables are."""
    for name, entry, kinds in (("successors", entries()[0], [I64, I64.as_pointer()]), ("observe", entries()[1], [I64])):
        function = ir.Function(module, ir.FunctionType(I64, kinds), name)
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        kind = ir.FunctionType(I64, [I64] * (1 + len(kinds)))
        called = builder.inttoptr(word(entry.address), kind.as_pointer())
        args = [a if a.type == I64 else builder.ptrtoint(a, I64) for a in function.args]
        builder.ret(builder.call(called, [word(folding.address), *args]))


def _successors(module: ir.Module, layout: Layout, rules: Sequence[_Rule], name: str) -> None:
    pointer = I64.as_pointer()
    groups = [_part(module, f"part{i}", layout, group) for i, group in enumerate(_parts(rules))]
    function = ir.Function(module, ir.FunctionType(I64, [I64, pointer]), name)
    state, out = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    count: ir.Value = word(0)
    for part in groups:
        count = builder.call(part, [state, out, count])
    builder.ret(count)


def _part(module: ir.Module, name: str, layout: Layout, rules: Sequence[_Rule]) -> ir.Function:
    """``part(state, out, count) -> count``: some transitions, written behind what is there already."""
    function = ir.Function(module, ir.FunctionType(I64, [I64, I64.as_pointer(), I64]), name)
    function.linkage = "internal"
    state, out, already = function.args
    out.add_attribute("noalias")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    emitter = Emitter(builder, layout, state)
    count = builder.alloca(I64)
    builder.store(already, count)
    shared: Memo = {}
    for rule in rules:
        if rule.guard.constant == 0:
            continue
        with builder.if_then(emitter.value(rule.guard, shared)):
            _write(emitter, rule, dict(shared), out, count)
    builder.ret(builder.load(count))
    return function


def _write(emitter: Emitter, rule: _Rule, memo: Memo, out: ir.Value, count: ir.Value) -> None:
    """One enabled transition's words. ``memo`` is only good inside the transition's own block."""
    b = emitter.builder
    following = _next_state(emitter, rule, memo)
    number: ir.Value = word(rule.number)
    for bit, node in rule.flags:
        number = b.or_(number, b.select(emitter.value(node, memo), word(bit), word(0)))
    position = b.load(count)
    base = b.mul(position, word(len(following) + 2))
    for k, value in enumerate((*following, number, emitter.value(rule.cost, memo))):
        b.store(value, b.gep(out, [b.add(base, word(k))]))
    b.store(b.add(position, word(1)), count)


def _next_state(emitter: Emitter, rule: _Rule, memo: Memo) -> list[ir.Value]:
    """The words of the next state; the first is negative when that is none."""
    if rule.fault:
        return [MINUS_ONE] * len(emitter.words)
    found, failed = [], None
    for number in range(len(emitter.words)):
        following, outside = _next_word(emitter, number, [u for u in rule.updates if u.field.word == number], memo)
        found.append(following)
        if outside is not None:
            failed = outside if failed is None else emitter.builder.or_(failed, outside)
    return found if failed is None else [emitter.builder.select(failed, MINUS_ONE, found[0]), *found[1:]]


def _next_word(emitter: Emitter, number: int, updates: Sequence[_Update],
               memo: Memo) -> tuple[ir.Value, ir.Value | None]:
    """One word of the next state, and a flag that some value leaves its domain (None: none can)."""
    b, mask = emitter.builder, 0
    bits: ir.Value = word(0)
    change: ir.Value = word(0)                 # of the numbers whose digits are variables
    failed: ir.Value | None = None
    for update in updates:
        field = update.field
        index, outside = emitter.encode(field, update.value, memo)
        if field.shared:
            digit = b.mul(b.sub(index, emitter.index(field)), word(field.stride))
            change = b.add(change, b.shl(digit, word(field.offset)))
        else:
            bits = b.or_(bits, b.shl(index, word(field.offset)))
            mask |= field.mask
        if outside is not None:
            failed = outside if failed is None else b.or_(failed, outside)
    kept = b.or_(b.and_(emitter.words[number], word(~mask & ((1 << 64) - 1))), bits)
    return b.add(kept, change), failed


def _observe(module: ir.Module, layout: Layout, watched: Sequence[Node], name: str) -> None:
    function = ir.Function(module, ir.FunctionType(I64, [I64]), name)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    emitter = Emitter(builder, layout, function.args[0])
    memo: Memo = {}
    mask: ir.Value = word(0)
    for bit, node in enumerate(watched):
        mask = builder.or_(mask, builder.shl(builder.zext(emitter.value(node, memo), I64), word(bit)))
    builder.ret(mask)


def _machine_code(module: ir.Module) -> llvm.ExecutionEngine:
    """Compile for this processor. The functions live as long as the result.

    Only the cheapest passes are run: all of -O2 took one second on the reweighting model, four times as long as
    all the rest together, and the search, which waits for memory, was no faster for it.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    parsed = llvm.parse_assembly(str(module))
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1)
    builder = llvm.create_pass_builder(machine, llvm.PipelineTuningOptions(speed_level=1))
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    for function in parsed.functions:
        passes.run(function, builder)
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    return engine


__all__ = ["LEFT_DOMAIN", "MOST_WORDS", "CannotCompile", "Compiled", "compile_instance"]
