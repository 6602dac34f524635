# SPDX-License-Identifier: GPL-2.0-only
"""Reads a function of a tree, and every function that it calls, into programs of the shared form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tree_sitter import Node

from schedproof.errors import NotExecutable
from schedproof.kernel import enums
from schedproof.kernel import parse as p
from schedproof.kernel.builtins import ITERATORS, KEPT
from schedproof.kernel.config import DEFAULT, Config
from schedproof.kernel.dead import without_dead_code
from schedproof.kernel.declared import Odd, Type, Types
from schedproof.kernel.expressions import Bound, Signature, Unusable
from schedproof.kernel.lower import Statements
from schedproof.kernel.pieces import Piece
from schedproof.kernel.places import Words
from schedproof.kernel.source import Again, Sources, Where, sources
from schedproof.kernel.tree import Absent, Tree
from schedproof.kernel.values import Value, constant
from schedproof.lang.ctypes import INT, CType, pointer
from schedproof.lang.syntax import Assign, Const, Loc, Local, Program, Stmt, statements

_DEEPEST = 40                     # calls inside calls; recursion is found before that


@dataclass
class Reader:
    """Reads functions of one tree for one model; what was read is kept.

    ``macros`` maps each program's name to the macros that its text used; ``pieces`` to its place in the tree.
    """

    tree: Tree
    config: Config
    model: Any
    programs: dict[str, Program] = field(default_factory=dict)
    macros: dict[str, frozenset[str]] = field(default_factory=dict)
    pieces: dict[str, Piece] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sources: Sources = sources(self.tree, self.config)
        self.words = Words.of(self.model)
        vocabulary = self.words.vocabulary
        variables = (path for struct, path in self.words.fields if not struct)      # ``current`` is a macro of the tree
        self.kept = KEPT.union(vocabulary.outside, vocabulary.noop, vocabulary.constants, variables)
        self._stack: list[str] = []
        self._roots: list[tuple[str, Where]] = []
        self._types: dict[Where, Types] = {}
        self._signatures: dict[tuple[str, Where], Signature | None] = {}
        self._numbers: dict[tuple[str, Where], Value | None] = {}
        self._inside: dict[str, tuple[str, str, bool]] = {}  # program -> (struct, member, or NULL) of its result
        self._lies_in: dict[str, dict[int, tuple[str, str]]] = {}    # program -> the same of its parameters

    def read(self, function: str, file: str) -> Program:
        """The program of a function. Raises Absent, NotExecutable and InputError."""
        try:
            if not self.tree.exists(file):
                file = self.tree.find(function)
            while True:
                try:
                    for earlier, where in self._roots:
                        self._program(earlier, where, Loc(where.file, 0), ())
                    program = self._program(function, Where(file, file), Loc(file, 0), ())
                except Again:                  # one macro more is known: what was read before may look different
                    for kept in (self.programs, self.macros, self.pieces, self._stack, self._signatures,
                                 self._numbers, self._inside, self._lies_in, self._types):
                        kept.clear()
                    continue
                self._roots.append((function, Where(file, file)))
                return program
        except RecursionError:
            line = next((found.line for found in self.sources.unit(file).functions.get(function, ())), 1)
            raise NotExecutable(file, line, f"{function}: nested too deeply") from None

    # ---------------------------------------------------------------------------------------- functions
    def callee(self, name: str, where: Where, loc: Loc, inner: Sequence[tuple[str, str]]) -> tuple[str, Signature]:
        """Read a function that another one calls. ``inner``: (struct, member) of arguments that point into objects."""
        if len(self._stack) > _DEEPEST:
            raise NotExecutable(loc.file, loc.line, f"call of {name}: calls nested too deeply")
        try:
            program = self._program(name, where, loc, tuple(inner) if any(m for _, m in inner) else ())
        except Absent:
            raise NotExecutable(loc.file, loc.line, f"call of {name}: no definition in the tree") from None
        signature = self.signature(name, where)
        if signature is None:
            raise NotExecutable(loc.file, loc.line, f"call of {name}: its header cannot be read")
        owner, member, maybe = self._inside.get(program.name, ("", "", False))
        return program.name, replace(signature, owner=owner, inner=member, maybe=maybe,
                                     within=self._lies_in[program.name])

    def _program(self, name: str, where: Where, loc: Loc, inner: tuple[tuple[str, str], ...]) -> Program:
        piece = self.sources.function(name, where)
        known = name + _specialised(inner)
        if known in self.programs and self.pieces[known] == piece:
            return self.programs[known]
        if known in self.programs:
            raise NotExecutable(piece.file, piece.line, f"{name}: another function of that name, "
                                f"{self.pieces[known].file}:{self.pieces[known].line}, was read before")
        if known in self._stack:
            raise NotExecutable(loc.file, loc.line, f"recursion of {name}")
        self._stack.append(known)
        try:
            program, macros = self._lower(known, piece, self._within(piece, where), inner)
        finally:
            self._stack.pop()
        self.programs[known], self.macros[known], self.pieces[known] = program, macros, piece
        return program

    def _within(self, piece: Piece, where: Where) -> Where:
        """Where a piece stands that code at ``where`` refers to: part of the same compilation, or of its own."""
        root = where.root if piece.file in self.sources.closure(where.root) else piece.file
        return Where(piece.file, root)

    def _lower(self, known: str, piece: Piece, where: Where, inner: tuple[tuple[str, str], ...],
               checks: bool = False) -> tuple[Program, frozenset[str]]:
        code, macros = p.function_code(self.sources, piece, where.root, self.kept, ITERATORS)
        types = self._types.setdefault(where, Types(self.sources, where))
        signature = _signature(code.node, types, piece.name, piece.line)
        if signature.result is not None and not isinstance(signature.result, CType):
            raise NotExecutable(piece.file, piece.line, f"result of {piece.name}: no number or pointer to a struct")
        if signature.variadic:
            raise NotExecutable(piece.file, piece.line, f"{piece.name}: variable arguments")
        work = Statements(self, code, types)
        work.checks = checks
        params: list[str] = []
        ctypes: list[CType | None] = []
        for number, (name, ctype) in enumerate(signature.params):
            owner, member = inner[number] if inner else ("", "")
            if ctype == Odd("void *"):
                ctype = self._converted(code, name, types) or ctype
            if not isinstance(ctype, CType):
                work.scopes[0][name] = Unusable("a parameter that is no number and no pointer to a struct")
                work.taken.add(name)
                params.append(name)
                ctypes.append(None)
                continue
            place = work.declare(name, ctype)
            if work.memory.pinned(ctype):
                work.memory.pins[place.name] = ("", "")
            params.append(place.name)
            if member:
                held = Local(place.name, Loc(piece.file, piece.line))
                work.scopes[0][name] = Bound(Value(held, ctype, False, owner, member))
                ctype = pointer(owner)
            elif ctype.struct and not self.words.deals_with(ctype.struct):
                outer = work.memory.around(ctype.struct)
                ctype = pointer(outer[0]) if outer is not None else ctype
            ctypes.append(ctype)
        body = without_dead_code(work.body(p.need(code.node, "body", code), signature.result))
        self._lies_in[known] = found = _members(work.within, params, body)
        ctypes = [pointer(found[i][0]) if i in found else ctype for i, ctype in enumerate(ctypes)]
        result = signature.result
        if any(member for _, member in work.inside):
            if len(work.inside) > 1:
                raise NotExecutable(piece.file, piece.line, f"{piece.name}: results that point to different members")
            if work.nullable and not checks:           # then the address of a member must not pass for NULL
                return self._lower(known, piece, where, inner, True)
            self._inside[known] = (*work.inside.pop(), work.nullable)
            result = pointer(self._inside[known][0])
        return Program(name=known, params=tuple(params), body=body, loc=Loc(piece.file, self._line(piece)),
                       kind="kernel", source=piece.file, types=tuple(ctypes), result=result,
                       language="c", dropped=tuple(sorted(f"{path} of {owner}" for owner, path in work.memory.dropped)),
                       text=" ".join((piece.text, *work.memory.given)) if work.memory.dropped else ""), macros

    def _converted(self, code: p.Code, name: str, types: Types) -> CType | None:
        """What a ``void *`` parameter points to: the one struct to whose pointers the function converts it.

        Any use that does not fit is refused where it stands, as the conversion of one pointer to another is.
        """
        found: set[CType] = set()
        for kind, shape in _conversions(code, name):
            ctype = types.of(p.text(kind), shape)[1]
            found |= {ctype} if isinstance(ctype, CType) and ctype.struct in self.words.universes else set()
        return found.pop() if len(found) == 1 else None

    @staticmethod
    def _line(piece: Piece) -> int:
        """The line on which a function's name stands."""
        return piece.line + piece.text[:piece.text.find(f"{piece.name}")].count("\n")

    # ------------------------------------------------------------------------------------- declarations
    def signature(self, name: str, where: Where) -> Signature | None:
        """The signature of a function from the nearest declaration or its definition; None without either."""
        key = (name, where)
        if key not in self._signatures:
            self._signatures[key] = self._find_signature(name, where)
        return self._signatures[key]

    def _find_signature(self, name: str, where: Where) -> Signature | None:
        try:
            piece: Piece | None = self.sources.function(name, where)
        except (Absent, NotExecutable):
            piece = self.sources.prototype(name, where)
        if piece is None:
            return self._operation(name, where)
        inside = self._within(piece, where)
        header = piece.text.split("{")[0].rstrip().rstrip(";")
        text = p.Expander(piece.file, lambda n, line: self.sources.macro(n, inside, line), self.kept).expand(
            header, piece.line)
        found = next((n for n in p.walk(p.parse(text + ";")) if n.type == "declaration"), None)
        return None if found is None else _signature(found, Types(self.sources, inside), name, piece.line)

    def _operation(self, name: str, where: Where) -> Signature | None:
        """The signature of one of KVM's static calls: that of the member of ``struct kvm_x86_ops`` of its name."""
        member = name.removeprefix("kvm_x86_")
        found = self.sources.struct("struct kvm_x86_ops", where) if member != name else None
        if found is None:
            return None
        for node in p.walk(p.parse(found[2] + ";")):
            declarator = node.child_by_field_name("declarator") if node.type == "field_declaration" else None
            if declarator is not None and any(n.type == "field_identifier" and p.text(n) == member
                                              for n in p.walk(declarator)):
                return _signature(node, Types(self.sources, Where(found[0], where.root)), name, found[1])
        return None

    def number(self, name: str, where: Where, loc: Loc) -> Value | None:
        """The value of an enumerator; None for a name that is none. Raises NotExecutable for an odd expression."""
        key = (name, where)
        if key not in self._numbers:
            self._numbers[key] = self._enumerator(name, where, loc)
        return self._numbers[key]

    def _enumerator(self, name: str, where: Where, loc: Loc) -> Value | None:
        steps, wanted, place = 0, name, where
        while True:
            found = self.sources.enumerator(name, where)
            if found is None:
                return None
            file, (previous, expression, _, line) = found
            if expression:
                base = self._constant(expression, Where(file, where.root), line)
                break
            if not previous:
                base = 0
                break
            name, where, steps = previous, Where(file, where.root), steps + 1
        value = base + steps
        ctype = INT if INT.low <= value <= INT.high else enums.constant_type(self.sources, wanted, place)
        if ctype is None:
            raise NotExecutable(file, line, f"enumerator {wanted}, whose type depends on others that are not plain")
        return constant(value, ctype, loc)

    def _constant(self, expression: str, where: Where, line: int) -> int:
        expander = p.Expander(where.file, lambda n, at: self.sources.macro(n, where, at), self.kept)
        code = p.expression_code(expander.expand(expression, line), where, line)
        work = Statements(self, code, Types(self.sources, where))
        value = work.value(code.node)
        if not isinstance(value.expr, Const):
            raise NotExecutable(where.file, line, f"enumerator {expression}")
        return int(value.expr.value)


def _specialised(inner: Sequence[tuple[str, str]]) -> str:
    """The end of the name of a function that was read for pointers into these members; numbers say which arguments."""
    given = [(i, owner, member) for i, (owner, member) in enumerate(inner) if member]
    plain = [i for i, _, _ in given] == list(range(len(given)))
    return "".join(f"@{owner}.{member}" if plain else f"@{i}:{owner}.{member}" for i, owner, member in given)


def _members(within: Mapping[str, tuple[str, str]], params: Sequence[str], body: tuple[Stmt, ...],
             ) -> dict[int, tuple[str, str]]:
    """Those parameters that container_of() says to point to a member of an object, and that are never set."""
    changed = {x.name for x in statements(body) if isinstance(x, Assign)}
    return {i: within[name] for i, name in enumerate(params) if name in within and name not in changed}


def _signature(node: Any, types: Types, name: str, line: int) -> Signature:
    """The signature in a definition's or declaration's node."""
    declarator = node.child_by_field_name("declarator")
    kind = node.child_by_field_name("type")
    shape = declarator
    while shape is not None and shape.type != "function_declarator":
        shape = shape.child_by_field_name("declarator")
    if shape is None or kind is None:
        raise NotExecutable(types.file, line, f"header of {name}")
    stars = 0
    outer = declarator
    while outer is not None and outer.id != shape.id:
        stars += outer.type == "pointer_declarator"
        outer = outer.child_by_field_name("declarator")
    result = types.pointed(types.named(p.text(kind)), stars, p.text(kind))
    params: list[tuple[str, Type]] = []
    variadic = False
    for param in p.children(shape.child_by_field_name("parameters")):
        if param.type == "variadic_parameter":
            variadic = True
            continue
        given = param.child_by_field_name("type")
        if given is None:
            raise NotExecutable(types.file, line, f"header of {name}")
        spelled, found = types.of(p.text(given), param.child_by_field_name("declarator"))
        if found is None and not spelled:
            continue                                     # (void)
        params.append((spelled or f"__arg{len(params)}", found))
    return Signature(name, tuple(params), result, variadic)


def read(tree: Tree, function: str, file_hint: str, config: Config | None = None, model: Any = None,
         ) -> dict[str, Program]:
    """The function and all functions reached from it that are read from the tree, by name.

    ``model`` is a Model class or instance (None: no state). A callee that is specialised for a pointer into an object
    is called ``name@struct owner.member``. Raises Absent where the tree has no definition of the function,
    NotExecutable with file, line and construct for what cannot be read, InputError for a file at fault.
    """
    reader = Reader(tree, config or DEFAULT, model if model is not None else object())
    reader.read(function, file_hint)
    return reader.programs


def _conversions(code: p.Code, name: str) -> Iterator[tuple[Node, Node | None]]:
    """The types to which a function converts a parameter, each as type and declarator: ``T *x = name``, or a cast."""
    body = list(p.walk(p.need(code.node, "body", code)))
    assigned = {p.text(p.need(n, "left", code)) for n in body
                if n.type == "assignment_expression" and p.text(p.need(n, "right", code)) == name}
    for node in body:
        value: Node | None = None
        if node.type == "init_declarator" and node.parent is not None:
            kind, shape, value = p.part(node.parent, "type"), p.part(node, "declarator"), p.part(node, "value")
        elif node.type == "cast_expression":
            descriptor = p.need(node, "type", code)
            kind, shape, value = p.part(descriptor, "type"), p.part(descriptor, "declarator"), p.part(node, "value")
        elif node.type == "declaration" and (one := p.part(node, "declarator")) is not None:
            kind, shape = p.part(node, "type"), one
            if p.text(one).lstrip("* ") not in assigned:
                continue
        else:
            continue
        if kind is not None and (node.type == "declaration" or (value is not None and p.text(value) == name)):
            yield kind, shape
