# SPDX-License-Identifier: GPL-2.0-only
"""tree-sitter on single pieces of C: a function, a struct, an expression. Nothing is executed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import tree_sitter_c
from tree_sitter import Language, Node, Parser

from schedproof.errors import NotExecutable
from schedproof.kernel.macros import Expander
from schedproof.kernel.pieces import Piece
from schedproof.kernel.preprocess import Macro
from schedproof.kernel.source import Sources, Where

_PARSER = Parser(Language(tree_sitter_c.language()))
_DEEPEST = 400                   # nesting of one function's syntax; the kernel stays below 60


@dataclass(frozen=True)
class Code:
    """A parsed piece. ``line`` is the line of the file on which row 0 of the syntax tree lies."""

    node: Node
    where: Where
    line: int
    typeofs: Mapping[str, str] = field(default_factory=dict)      # stand-in type name -> the expression in typeof()

    @property
    def file(self) -> str:
        """The file that the code stands in."""
        return self.where.file

    def at(self, node: Node) -> int:
        """The line of a node in its file."""
        return self.line + node.start_point.row


def text(node: Node) -> str:
    """The C text of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def shown(node: Node) -> str:
    """A short form of a node for a message, in one line and in ASCII."""
    found = " ".join(text(node).split()).encode("ascii", "replace").decode()
    return found if len(found) <= 60 else found[:57] + "..."


def children(node: Node) -> list[Node]:
    """The named children without comments."""
    return [c for c in node.named_children if c.type != "comment"]


def part(node: Node, name: str) -> Node | None:
    """A child by its role."""
    return node.child_by_field_name(name)


def need(node: Node, name: str, code: Code) -> Node:
    """A child by its role. Raises NotExecutable when the syntax lacks it."""
    found = node.child_by_field_name(name)
    if found is None:
        raise NotExecutable(code.file, code.at(node), f"{node.type.replace('_', ' ')} without {name}: {shown(node)}")
    return found


def walk(node: Node) -> Iterator[Node]:
    """All nodes in order of the text, without recursion."""
    stack = [node]
    while stack:
        found = stack.pop()
        yield found
        stack.extend(reversed(found.children))


def parse(source: str) -> Node:
    """The syntax tree of a text."""
    return _PARSER.parse(source.encode("utf-8", "replace")).root_node


def check(code: Code, what: str) -> None:
    """Raise NotExecutable at the first place that is no C, or that is nested too deeply to be followed."""
    cursor, depth = [(code.node, 0)], 0
    while cursor:
        node, depth = cursor.pop()
        if node.type == "ERROR" or node.is_missing:
            raise NotExecutable(code.file, code.at(node),
                                f"{what}: not C that can be parsed: {shown(node) or node.type}")
        if depth > _DEEPEST:
            raise NotExecutable(code.file, code.at(node), f"{what}: nested too deeply")
        cursor.extend((c, depth + 1) for c in reversed(node.children))


_TYPED = re.compile(r"\b(?:max_t|min_t|clamp_t|typecheck)\s*\(\s*([A-Za-z_]\w*(?:\s+[A-Za-z_]\w*)+)\s*,")
CASE_RANGE = "__case_range"      # ``case A ... B:`` is not in the grammar: ``case __case_range(A, B):``
_RANGE = re.compile(r"\bcase\b([^:;{}?\"']*?)\.\.\.([^:;{}?\"']*?):")
# ``(u64)-1`` is a difference to the grammar, but ``(uint64_t)-1``, whose name it knows, a cast.
_CAST = re.compile(r"\(\s*(?:__)?([us])(8|16|32|64)\s*\)(?=\s*[-+*&(])")
_STRUCTS = re.compile(r"\b(container_of|offsetof|list_entry|rb_entry|hlist_entry)\b")
_TYPEOF = re.compile(r"\b(?:typeof|__typeof__|__typeof|__unqual_scalar_typeof|typeof_unqual)\s*\(")


def _without_typeof(source: str) -> tuple[str, dict[str, str]]:
    """Types that the grammar does not know, ``typeof(…)`` and those that are arguments, replaced by stand-in names.

    Also what the names stand for: the text in the brackets of ``typeof``, or a type's words behind a blank.
    """
    table: dict[str, str] = {}
    source = _CAST.sub(lambda m: f"({'u' * (m[1] == 'u')}int{m[2]}_t)" + "\n" * m[0].count("\n"), source)
    source = _RANGE.sub(rf"case {CASE_RANGE}(\1,\2):", source)
    while typed := _TYPED.search(source):
        name = f"__type_{len(table)}"
        table[name] = " " + " ".join(typed[1].split())
        source = source[:typed.start(1)] + name + "\n" * typed[1].count("\n") + source[typed.end(1):]
    if _STRUCTS.search(source):                      # these are refused, but by their own name
        source = re.sub(r"(?<=[,(])(\s*)struct\s+(\w+)(?=\s*[,)])", r"\1struct_\2", source)
    out, at = "", 0
    while match := _TYPEOF.search(source, at):
        depth, end = 1, match.end()
        while depth and end < len(source):
            depth += (source[end] == "(") - (source[end] == ")")
            end += 1
        name = f"__typeof_{len(table)}"
        table[name] = source[match.end():end - 1]
        out += source[at:match.start()] + name + "\n" * source.count("\n", match.start(), end)
        at = end
    return out + source[at:], table


def function_code(sources: Sources, piece: Piece, root: str, keep: frozenset[str],
                  instead: Mapping[str, Macro]) -> tuple[Code, frozenset[str]]:
    """The definition node of a function after macro expansion, and the macros that were expanded.

    ``root`` is the file whose compilation the function is a part of; the macros in ``instead`` replace the tree's.
    Raises NotExecutable at the first thing that
    does not parse.
    """
    where = Where(piece.file, root)
    expander = Expander(piece.file, lambda name, line: instead.get(name) or sources.macro(name, where, line), keep)
    source, typeofs = _without_typeof(expander.expand(piece.text, piece.line))
    top = parse(source)
    found = [n for n in top.named_children if n.type == "function_definition"]
    if len(found) != 1 or len(children(top)) != 1:
        check(Code(top, where, piece.line), piece.name)
        raise NotExecutable(piece.file, piece.line, f"{piece.name}: not a single function definition")
    code = Code(found[0], where, piece.line, typeofs)
    check(code, piece.name)
    return code, frozenset(expander.used)


def expression_code(source: str, where: Where, line: int) -> Code:
    """The node of an expression. Raises NotExecutable when it is none."""
    source, typeofs = _without_typeof(" ".join(source.split()))
    found = [n for n in walk(parse(f"long __value = {source};")) if n.type == "init_declarator"]
    value = found[0].child_by_field_name("value") if found else None
    if value is None:
        raise NotExecutable(where.file, line, f"expression {source[:40]}")
    code = Code(value, where, line, typeofs)
    check(code, "expression")
    return code
