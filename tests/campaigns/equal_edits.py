# SPDX-License-Identifier: GPL-2.0-only
"""Edits that keep the meaning, made by program in every modelled function of real trees: ``make campaign-edits``.

Each has to be found equal. ``differs`` is a false alarm; ``undecided`` says that a reviewer would have to look. The
kernel's text is read at run time from the trees that SCHEDPROOF_TREES names; nothing of it is kept.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import tree_sitter_c
from tree_sitter import Language, Node, Parser

from schedproof import registry
from schedproof.errors import SchedproofError
from schedproof.kernel import Tree
from schedproof.kernel.compare import Side, compare
from schedproof.kernel.config import DEFAULT
from schedproof.kernel.functions import Read, read_function
from schedproof.kernel.source import sources

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "benchmarks" / "campaigns" / "edits.json"
COUNT = 300
BUDGET = 120.0                         # seconds of the processor for one edit
_PARSER = Parser(Language(tree_sitter_c.language()))

Edit = tuple[int, int, str]            # from byte, to byte, the new text
Rule = Callable[[Node], Iterator[list[Edit]]]
SWAPPED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<=", "+": "+", "*": "*", "&": "&", "|": "|"}
PLAIN = ("identifier", "field_expression", "number_literal")


def text(node: Node) -> str:
    return (node.text or b"").decode()


def _with(node: Node, new: str) -> list[Edit]:
    return [(node.start_byte, node.end_byte, new)]


def _below(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _below(child)


def _quiet(node: Node) -> bool:
    """Whether evaluating it changes nothing and calls nothing, so that it may be evaluated earlier or later."""
    return all(n.type not in ("call_expression", "assignment_expression", "update_expression") for n in _below(node))


def _inner(node: Node) -> str:
    """The condition without its brackets."""
    return text(node)[1:-1]


def _block(node: Node) -> str:
    return text(node) if node.type == "compound_statement" else "{ " + text(node) + " }"


# ---------------------------------------------------------------------------------------------------- the rules
def negated(node: Node) -> Iterator[list[Edit]]:
    """if (c) A else B: if (!(c)) B else A."""
    condition, then = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
    if node.type == "if_statement" and condition is not None and then is not None:
        other = node.child_by_field_name("alternative")
        second = _block(other.named_children[0]) if other is not None and other.named_children else "{ }"
        yield _with(node, f"if (!({_inner(condition)})) {second} else {_block(then)}")


def twice_negated(node: Node) -> Iterator[list[Edit]]:
    condition = node.child_by_field_name("condition")
    if node.type in ("if_statement", "while_statement") and condition is not None:
        yield _with(condition, f"(!!({_inner(condition)}))")


def in_a_local(node: Node) -> Iterator[list[Edit]]:
    """The condition of an if, in a variable first."""
    condition = node.child_by_field_name("condition")
    if node.type == "if_statement" and condition is not None:
        rest = text(node)[condition.end_byte - node.start_byte:]
        yield _with(node, f"{{ bool edited = {_inner(condition)}; if (edited){rest} }}")


def two_ifs(node: Node) -> Iterator[list[Edit]]:
    """if (a && b) S: if (a) if (b) S."""
    condition, then = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
    if node.type != "if_statement" or condition is None or then is None or node.child_by_field_name("alternative"):
        return
    both = condition.named_children[0] if len(condition.named_children) == 1 else None
    if both is not None and both.type == "binary_expression" and text(both.children[1]) == "&&":
        one, two = both.children[0], both.children[2]
        yield _with(node, f"if ({text(one)}) {{ if ({text(two)}) {_block(then)} }}")


def swapped(node: Node) -> Iterator[list[Edit]]:
    """a == b: b == a, a < b: b > a, a + b: b + a."""
    if node.type == "binary_expression" and text(node.children[1]) in SWAPPED and _quiet(node):
        one, sign, two = node.children
        yield _with(node, f"({text(two)}) {SWAPPED[text(sign)]} ({text(one)})")


def spelled_out(node: Node) -> Iterator[list[Edit]]:
    """x += e: x = x + (e)."""
    if node.type == "expression_statement" and node.named_children:
        one = node.named_children[0]
        if one.type == "assignment_expression" and text(one.children[1]) != "=":
            place, sign, value = one.children
            if _quiet(place):
                yield _with(one, f"{text(place)} = {text(place)} {text(sign)[:-1]} ({text(value)})")
        elif one.type == "update_expression" and _quiet(one.named_children[0]):
            step = "+" if "++" in text(one) else "-"
            yield _with(one, f"{text(one.named_children[0])} {step}= 1")


def once(node: Node) -> Iterator[list[Edit]]:
    """S;: do { S; } while (0);."""
    if node.type == "expression_statement" and text(node).endswith(";") and node.named_children:
        yield _with(node, f"do {{ {text(node)} }} while (0);")


def apart(node: Node) -> Iterator[list[Edit]]:
    """T x = e;: T x; x = e;."""
    if node.type != "declaration" or len([c for c in node.named_children if c.type == "init_declarator"]) != 1:
        return
    if any(c.type in ("type_qualifier", "storage_class_specifier") for c in node.named_children):
        return
    one = next(c for c in node.named_children if c.type == "init_declarator")
    declared, value = one.child_by_field_name("declarator"), one.child_by_field_name("value")
    if declared is None or value is None or value.type == "initializer_list" or text(node).count(",") != text(
            value).count(","):
        return
    name = next((n for n in _below(declared) if n.type == "identifier"), None)
    if name is not None and declared.type in ("identifier", "pointer_declarator"):
        yield [(one.start_byte, one.end_byte, text(declared)), (node.end_byte, node.end_byte,
                                                               f" {text(name)} = {text(value)};")]


def other_loop(node: Node) -> Iterator[list[Edit]]:
    """while (c) S: for (; c; ) S."""
    condition, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
    if node.type == "while_statement" and condition is not None and body is not None:
        yield _with(node, f"for (; {_inner(condition)}; ) {text(body)}")


def goes_on(node: Node) -> Iterator[list[Edit]]:
    """A continue at the end of a loop's body."""
    body = node.child_by_field_name("body")
    if node.type in ("while_statement", "for_statement") and body is not None and body.type == "compound_statement":
        yield [(body.end_byte - 1, body.end_byte - 1, " continue; ")]


def bracketed(node: Node) -> Iterator[list[Edit]]:
    if node.type in ("binary_expression", "conditional_expression", "call_expression") and node.parent is not None \
            and node.parent.type not in ("expression_statement", "preproc_if"):
        yield _with(node, f"(({text(node)}))")


def against_zero(node: Node) -> Iterator[list[Edit]]:
    """!x: x == 0."""
    if node.type == "unary_expression" and text(node.children[0]) == "!":
        yield _with(node, f"(({text(node.children[1])}) == 0)")


def in_a_block(node: Node) -> Iterator[list[Edit]]:
    if node.type in ("expression_statement", "if_statement", "return_statement") and text(node)[-1] in ";}":
        yield _with(node, "{ " + text(node) + " }")


def commented(node: Node) -> Iterator[list[Edit]]:
    if node.type == "compound_statement":
        yield [(node.start_byte + 1, node.start_byte + 1, " /* edited */ ")]


RULES: Sequence[Rule] = (negated, twice_negated, in_a_local, two_ifs, swapped, spelled_out, once, apart, other_loop,
                         goes_on, bracketed, against_zero, in_a_block, commented)


def renamed(root: Node) -> Iterator[list[Edit]]:
    """Another name for a local variable or a parameter."""
    names = set()
    for node in _below(root):
        if node.type in ("parameter_declaration", "declaration", "init_declarator"):
            declared = node.child_by_field_name("declarator")
            while declared is not None and declared.type in ("pointer_declarator", "init_declarator"):
                declared = declared.child_by_field_name("declarator")
            if declared is not None and declared.type == "identifier":
                names.add(text(declared))
    for name in sorted(names):
        yield [(n.start_byte, n.end_byte, f"{name}_edited") for n in _below(root)
               if n.type == "identifier" and text(n) == name]


def edits_of(function: str) -> dict[str, list[str]]:
    """All edits of a function's text, by rule. Pieces that tree-sitter does not understand stay as they are."""
    source = function.encode()
    root = _PARSER.parse(source).root_node
    found: dict[str, list[str]] = defaultdict(list)

    def note(kind: str, edits: list[Edit]) -> None:
        new = source
        for begin, end, put in sorted(edits, reverse=True):
            new = new[:begin] + put.encode() + new[end:]
        found[kind].append(new.decode())

    for node in _below(root):
        if node.has_error or node.type.startswith("preproc"):
            continue
        for rule in RULES:
            for edits in rule(node):
                note(rule.__name__, edits)
    if not root.has_error:
        for edits in renamed(root):
            note("renamed", edits)
    return dict(found)


# ----------------------------------------------------------------------------------------------------- one edit
@dataclass(frozen=True)
class Done:
    """One edit and what was found: ``equal``, ``equal within ranges``, ``undecided`` or ``differs``."""

    tree: str
    model: str
    function: str
    rule: str
    answer: str
    detail: str
    seconds: float


@dataclass
class Subject:
    """One function of one tree, in the first model that reads it."""

    tree: Tree
    model: Any
    function: str
    file: str
    read: Read

    def parts(self) -> tuple[list[str], int, int]:
        """The lines of its file, and which of them it is."""
        piece = sources(self.tree, DEFAULT).unit(self.file).functions[self.function][-1]
        return self.tree.text(self.file).split("\n"), piece.line - 1, piece.last

    def edits(self) -> dict[str, list[str]]:
        lines, first, last = self.parts()
        return edits_of("\n".join(lines[first:last]))

    def ask(self, rule: str, new: str) -> Done:
        """Whether an edit is equal."""
        lines, first, last = self.parts()
        after = self.tree.with_files({self.file: "\n".join([*lines[:first], new, *lines[last:]])})
        begin = time.process_time()
        answer, detail = self._answer(after)
        version = ".".join(map(str, self.tree.version()[:2]))
        return Done(version, self.model.__name__, self.function, rule, answer, detail,
                    round(time.process_time() - begin, 2))

    def _answer(self, after: Tree) -> tuple[str, str]:
        read = read_function(after, self.function, self.file, self.model)
        if read.status != "read":
            return "undecided", f"not read: {read.reason}"
        instance = self.model.variant(next(iter(self.model.releases)))
        own = self.model.programs
        try:
            with _limited():
                found = compare(instance, Side(self.function, {**own, **self.read.programs}),
                                Side(self.function, {**own, **read.programs}))
        except _TooLong:
            return "undecided", f"more than {BUDGET:g} s"
        except SchedproofError as error:
            return "undecided", str(error)
        if found.answer == "equal":
            return ("equal within ranges", found.within) if found.within else ("equal", "")
        return ("differs" if found.answer == "differs" else "undecided"), found.detail[:300]


class _TooLong(Exception):
    pass


class _limited:
    """Raises _TooLong in the block after BUDGET seconds of the processor."""

    def __enter__(self) -> None:
        def ring(number: int, frame: FrameType | None) -> None:
            raise _TooLong

        self.kept = signal.signal(signal.SIGPROF, ring)
        signal.setitimer(signal.ITIMER_PROF, BUDGET, 1.0)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self.kept)


def subjects() -> list[Subject]:
    """Every function that a model reads, in every tree."""
    found: dict[tuple[str, str], Subject] = {}
    root = Path(os.environ["SCHEDPROOF_TREES"])
    for path in sorted(p for p in root.glob("*") if (p / "Makefile").is_file()):
        tree = Tree(path)
        for model in (m for classes in registry.models().values() for m in classes):
            for function, file in model.kernel_functions().items():
                if (path.name, function) in found or not tree.exists(file):
                    continue
                read = read_function(tree, function, file, model)
                if read.status == "read" and function in sources(tree, DEFAULT).unit(file).functions:
                    found[path.name, function] = Subject(tree, model, function, file, read)
    return list(found.values())


def chosen(all_of_them: Sequence[Subject], count: int, seed: str) -> Iterator[tuple[Subject, str, str]]:
    """As many edits of each function, each time of another rule where there is one."""
    rng = random.Random(seed)
    stock = []
    for subject in all_of_them:
        by_rule = [(rule, rng.choice(texts)) for rule, texts in sorted(subject.edits().items())]
        rng.shuffle(by_rule)
        stock.append((subject, by_rule))
    given = 0
    while given < count and any(rest for _, rest in stock):
        for subject, rest in stock:
            if rest and given < count:
                yield (subject, *rest.pop())
                given += 1


# ------------------------------------------------------------------------------------------------------ the run
def summary(rows: Sequence[Done], seed: str, commit: str) -> dict[str, Any]:
    by_rule: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        by_rule[row.rule][row.answer] += 1
    counts = Counter(row.answer for row in rows)
    equal = counts["equal"] + counts["equal within ranges"]
    return {"schema": "schedproof-campaign/1", "campaign": "edits", "seed": seed, "commit": commit,
            "date": datetime.date.today().isoformat(), "edits": len(rows), "counts": dict(sorted(counts.items())),
            "equal_percent": round(100 * equal / max(1, len(rows)), 1),
            "functions": len({(r.tree, r.function) for r in rows}), "seconds": round(sum(r.seconds for r in rows)),
            "rules": {rule: dict(sorted(c.items())) for rule, c in sorted(by_rule.items())},
            "not_equal": [asdict(r) for r in rows if not r.answer.startswith("equal")]}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--result", type=Path, default=RESULT)
    args = parser.parse_args(words)
    if not os.environ.get("SCHEDPROOF_TREES"):
        print("SCHEDPROOF_TREES is not set: name the folder with the kernel trees", file=sys.stderr)
        return 2
    rows: list[Done] = []
    for number, (subject, rule, new) in enumerate(chosen(subjects(), args.count, args.seed), 1):
        rows.append(subject.ask(rule, new))
        row = rows[-1]
        print(f"{number:>4} {row.tree:<5} {row.function:<34} {row.rule:<14} {row.answer:<20} {row.seconds:6.1f} s  "
              f"{row.detail if not row.answer.startswith('equal') else ''}", flush=True)
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True,
                            check=False).stdout.strip() or "unknown"
    result = summary(rows, args.seed, commit)
    args.result.parent.mkdir(parents=True, exist_ok=True)
    args.result.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{len(rows)} edits of {result['functions']} functions: {result['counts']}, "
          f"{result['equal_percent']} % equal")
    return 1 if result["counts"].get("differs") else 0


if __name__ == "__main__":
    sys.exit(main())
