# SPDX-License-Identifier: GPL-2.0-only
"""What may change in the text of functions that are equal in a model: barriers, assertions, ignored fields, calls of
functions that do nothing for the model.

A model runs under sequential consistency, so a barrier that goes away leaves its functions equal. It is told here, for
"equal" would say that nothing has changed. Only words are looked at: what may have changed is told as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from schedproof.kernel.macros import tokens
from schedproof.model.vocabulary import Vocabulary

# What must not pass what.
BARRIER = re.compile(r"(?:smp|virt)_\w+|(?:__)?(?:smp_|virt_|dma_)?[rw]?mb|barrier|barrier_nospec"
                     r"|\w+_(?:acquire|release|relaxed)|(?:__)?set_current_state|rcu_(?:assign_pointer|dereference\w*)")
# About one access or one moment: whether the compiler has to make it, and make it once.
ONCE = re.compile(r"READ_ONCE|WRITE_ONCE|data_race|RCU_INIT_POINTER|cpu_relax|array_index_nospec|prefetchw?"
                  r"|cond_resched|(?:raw_|arch_)?(?:atomic|atomic64|atomic_long)_\w+|(?:try_)?cmpxchg\w*|xchg\w*|kcsan_\w+"
                  r"|rcu_read_(?:un)?lock|instrumentation_\w+|volatile")
# Told when it does not hold, and otherwise without effect.
ASSERT = re.compile(r"(?:SCHED_)?WARN(?:_ON)?(?:_ONCE|_SMP)?|BUG(?:_ON)?|\w*_(?:WARN|BUG)(?:_ON)?(?:_ONCE)?|lockdep_\w+"
                    r"|assert_\w+|might_sleep\w*|BUILD_BUG_ON\w*|static_assert|ASSERT_EXCLUSIVE_\w+")
_CONTROL = frozenset({"if", "else", "while", "for", "do", "switch", "case", "default", "return", "goto",
                      "break", "continue", "?"})
_WORD = re.compile(r"[A-Za-z_]\w*")

Code = list[str]


def changes(old: Sequence[str], new: Sequence[str], vocabulary: Vocabulary) -> list[str]:
    """What the model does not see, or may not see, of a change from some texts to others: one line each."""
    one, other = ([t for text in texts for t in tokens(text) if not t.isspace()] for texts in (old, new))
    if one == other:
        return []
    found: dict[str, str] = {}                     # by what it is about; the most exact comes first
    for word, before, after in _differing(_marks(one), _marks(other)):
        found[word] = f"{word}: {before} before, {after} after"
    for word in _crossed(one, other, vocabulary):
        found.setdefault(word, f"what stands before {word}, and what behind it")
    for (word, _), _, _ in _differing(_texts(one, vocabulary), _texts(other, vocabulary)):
        found.setdefault(word, word)
    about = {w for c in (one, other) for w, _ in _texts(c, vocabulary)}
    about |= {w for c in (one, other) for w in c if BARRIER.fullmatch(w)}
    if about - found.keys() and _decides(one, other, vocabulary, bool(found)):
        found[""] = f"perhaps when, or with what, {', '.join(sorted(about - found.keys()))} is reached"
    return list(found.values())


def _differing(one: Iterator[Any], other: Iterator[Any]) -> Iterator[tuple[Any, int, int]]:
    before, after = Counter(one), Counter(other)
    for key in sorted(before.keys() | after.keys()):
        if before[key] != after[key]:
            yield key, before[key], after[key]


def _marks(code: Code) -> Iterator[str]:
    """Every barrier and marked access."""
    return (t for t in code if BARRIER.fullmatch(t) or ONCE.fullmatch(t))


def _crossed(one: Code, other: Code, vocabulary: Vocabulary) -> list[str]:
    """The barriers that do not have the same accesses between them as before."""
    parts = [list(_between(c, vocabulary)) for c in (one, other)]
    if Counter(n for n, _ in parts[0]) != Counter(n for n, _ in parts[1]):
        return []                                  # some came or went, which is told
    pairs = list(zip(*parts, strict=True))
    return sorted({name for at, (a, b) in enumerate(pairs) if a != b
                   for name in (a[0], b[0], *(pairs[at - 1][0][0] for _ in range(at > 0))) if name})


def _between(code: Code, vocabulary: Vocabulary) -> Iterator[tuple[str, Counter[str]]]:
    """The barriers in order, each with the members that are accessed before it; the rest under ""."""
    members: Counter[str] = Counter()
    hidden = {i for _, first, last in _hidden(code, vocabulary) for i in range(first, last)}
    for at, token in enumerate(code):
        if at in hidden:
            continue
        if BARRIER.fullmatch(token):
            yield token, members
            members = Counter()
        elif at > 1 and _WORD.fullmatch(token) and (code[at - 1] == "." or code[at - 2:at] == ["-", ">"]):
            members[token] += 1
    yield "", members


def _statement(code: Code, at: int) -> tuple[int, int]:
    first = last = at
    while first and code[first - 1] not in ";{}":
        first -= 1
    while last < len(code) and code[last] not in ";{}":
        last += 1
    return first, last


def _hidden(code: Code, vocabulary: Vocabulary) -> Iterator[tuple[str, int, int]]:
    """(word, begin, end) of the statements with an assertion, a call that does nothing for the model, or an ignored
    field.
    """
    ignored = {path.split(".")[-1] for _, path in vocabulary.ignore}
    for at, token in enumerate(code):
        if token in ignored or token in vocabulary.noop or ASSERT.fullmatch(token):
            yield (token, *_statement(code, at))


def _texts(code: Code, vocabulary: Vocabulary) -> Iterator[tuple[str, str]]:
    return ((word, " ".join(code[first:last])) for word, first, last in _hidden(code, vocabulary))


def _decides(one: Code, other: Code, vocabulary: Vocabulary, told: bool) -> bool:
    """Whether what differs may decide if something hidden is reached, or what goes into it: tests, operands, order.

    ``told``: what differs in order, or in marks such as READ_ONCE, is told anyway.
    """
    sides = [Counter(_statements(c, vocabulary)) for c in (one, other)]
    differing = [*(sides[0] - sides[1]), *(sides[1] - sides[0])]
    if not differing:
        return not told
    if any(not _CONTROL.isdisjoint(x) for x in differing):
        return True
    known = [*sides[0], *sides[1]]
    used = {w for c in (one, other) for _, text in _texts(c, vocabulary) for w in text.split() if _WORD.fullmatch(w)}
    size = -1
    while len(used) != size:                       # and what that was computed from
        size = len(used)
        used.update(w for x in known if not used.isdisjoint(_set(x)) for w in x if _WORD.fullmatch(w))
    return any(not used.isdisjoint(_set(x)) for x in differing)


def _statements(code: Code, vocabulary: Vocabulary) -> Iterator[tuple[str, ...]]:
    """The statements, and the headers of those with a body, without marks; those that are hidden are left out."""
    hidden = {first for _, first, _ in _hidden(code, vocabulary)}
    at = 0
    while at < len(code):
        first, last = _statement(code, at)
        text = code[first:last]
        written = "WRITE_ONCE" in text
        if text and first not in hidden and not any(BARRIER.fullmatch(t) for t in text):
            yield tuple("=" if written and t == "," else t for t in text if t not in "()" and not ONCE.fullmatch(t))
        at = last + 1


def _set(statement: tuple[str, ...]) -> set[str]:
    """The words that a statement may set: in front of an assignment, or beside ++ and --."""
    found: set[str] = set()
    for at, token in enumerate(statement):
        twice = token in "+-" and statement[at + 1:at + 2] == (token,)
        if token == "=" or twice:
            before = next((t for t in reversed(statement[:at]) if _WORD.fullmatch(t)), "")
            behind = [t for t in statement[at + 2:] if _WORD.fullmatch(t)] if twice else []
            found |= {before, *behind}
    return found - {""}
