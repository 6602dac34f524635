# SPDX-License-Identifier: GPL-2.0-only
"""Macro expansion of a piece of code, textually, as the preprocessor does it.

The expansion stands on the line of the use, so that places found in it point at the use; a use that spans lines is
followed by as many line breaks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from schedproof.errors import NotExecutable
from schedproof.kernel.preprocess import Macro

_TOKEN = re.compile(r'''[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.])*|"(?:\\.|[^"\\\n])*"'''
                    r"""|'(?:\\.|[^'\\\n])*'|\s+|\#\#|.""", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")
_SIGNS = "+-*/%&|^<>=!#."
_MOST_TOKENS = 200_000         # of one function after expansion; kernel functions stay far below
_DEEPEST = 64                  # macros inside macros

# Words without a meaning for a run, some of them macros of the compiler's headers.
SILENT = frozenset({
    "__always_inline", "noinline", "__maybe_unused", "__always_unused", "__init", "__exit", "__sched",
    "__latent_entropy", "noinline_for_stack", "__read_mostly", "__rcu", "__percpu", "__user", "__iomem",
    "__must_check", "__used", "__weak", "__visible", "__pure", "__cold", "__hot", "notrace", "noinstr",
    "asmlinkage", "__private", "__force", "__randomize_layout", "____cacheline_aligned",
    "____cacheline_aligned_in_smp", "__cacheline_aligned", "__no_kcsan", "__no_sanitize_address", "__lockfunc",
    "__cpuidle", "__ref", "__refdata", "__noreturn", "__kprobes", "nokprobe_inline", "__flatten", "__deprecated",
    "__packed", "__designated_init", "randomized_struct_fields_start", "randomized_struct_fields_end",
    "__extension__", "const_debug", "__ro_after_init", "__visible_for_testing"})
# The same, with arguments in brackets.
SILENT_CALLS = frozenset({
    "__acquires", "__releases", "__must_hold", "__cond_acquires", "__printf", "__aligned", "__counted_by", "__section",
    "__alloc_size", "__deprecated_msg", "__diag_push", "__diag_pop", "__diag_ignore_all"})

class _Painted(str):
    """A name that stood inside its own macro's expansion: it is never expanded again, wherever it goes."""

    __slots__ = ()


Lookup = Callable[[str, int], Macro | None]


def tokens(text: str) -> list[str]:
    """The preprocessing tokens of a text, blanks included."""
    return [m[0] for m in _TOKEN.finditer(text)]


class Expander:
    """Expands one piece. ``lookup(name, line)`` finds macros; names in ``keep`` stay as they are."""

    def __init__(self, file: str, lookup: Lookup, keep: Collection[str]):
        self.file, self.lookup, self.keep = file, lookup, keep
        self.made = 0
        self.used: set[str] = set()               # the macros that were expanded

    def expand(self, text: str, line: int) -> str:
        """The expanded text of a piece that begins at ``line``. Raises NotExecutable where it cannot be done."""
        return "".join(self._expand(tokens(text), line, frozenset(), True, 0))

    def _expand(self, given: list[str], line: int, hidden: frozenset[str], top: bool, depth: int) -> list[str]:
        if depth > _DEEPEST:
            raise NotExecutable(self.file, line, "macros nested too deeply")
        out: list[str] = []
        at = 0
        while at < len(given):
            token = given[at]
            here = line
            if top:
                line += token.count("\n")
            at += 1
            macro = None
            if _NAME.fullmatch(token):
                if token in SILENT:
                    continue
                if token in SILENT_CALLS:
                    dropped = _arguments(given, at)
                    if dropped is not None:
                        breaks = sum(t.count("\n") for t in given[at:dropped[1]])
                        out.append("\n" * breaks if top else " ")
                        line, at = line + breaks, dropped[1]
                    continue
                if token in hidden:
                    token = _Painted(token)
                elif token not in self.keep and not isinstance(token, _Painted):
                    macro = self.lookup(token, here)
            if macro is None:
                out.append(token)
                continue
            if macro.params is None:
                result, consumed = tokens(macro.body), 0
            else:
                arguments = _arguments(given, at)
                if arguments is None:                # its name without a bracket: not a use
                    out.append(token)
                    continue
                args, end = arguments
                consumed = sum(t.count("\n") for t in given[at:end]) if top else 0
                at = end
                result = self._substitute(macro, args, here, hidden, depth)
            self.used.add(macro.name)
            self.made += len(result)
            if self.made > _MOST_TOKENS:
                raise NotExecutable(self.file, here, f"macro {macro.name}: its expansion is too large")
            expanded = self._expand(result, here, hidden | {macro.name}, False, depth + 1)
            last = next((t for t in reversed(expanded) if not t.isspace()), "")
            if self._wants_brackets(last, here) and _arguments(given, at) is not None:
                while expanded.pop() != last:          # #define f g: the brackets behind f are those of g
                    pass
                given, at = [last, *given[at:]], 0
            _join(out, expanded)
            out.append(" " if not consumed else "\n" * consumed)
            line += consumed
        return out

    def _wants_brackets(self, name: str, line: int) -> bool:
        """Whether a word that an expansion ends with is a macro with arguments."""
        if not _NAME.fullmatch(name) or isinstance(name, _Painted) or name in self.keep:
            return False
        macro = self.lookup(name, line)
        return macro is not None and macro.params is not None

    def _substitute(self, macro: Macro, args: list[list[str]], line: int, hidden: frozenset[str],
                    depth: int) -> list[str]:
        assert macro.params is not None
        raw = self._bind(macro, args, line)
        full = {name: [t if "\n" not in t else " " for t in self._expand(value, line, hidden, False, depth + 1)]
                for name, value in raw.items()}
        body = tokens(macro.body)
        out: list[str] = []
        at = 0
        while at < len(body):
            token = body[at]
            solid = [t for t in body[at + 1:] if not t.isspace()][:1]
            if token == "#" and solid and solid[0] in raw:
                while body[at] != solid[0]:
                    at += 1
                text = "".join(raw[solid[0]]).strip().replace("\\", "\\\\").replace('"', '\\"')
                out.append(f'"{text}"')
            elif token == "##":
                while out and out[-1].isspace():
                    out.pop()
                at += 1
                while at < len(body) and body[at].isspace():
                    at += 1
                right = raw.get(body[at], [body[at]]) if at < len(body) else []
                glued = "".join(t for t in right if not t.isspace() or len(right) > 1).strip()
                left = out.pop() if out and not (out[-1] == "," and not glued) else ""
                out += tokens(left + glued) if left != "," else [left, *right]
            elif solid[:1] == ["##"] and token in raw:
                out += [t for t in raw[token] if not t.isspace()] or [""]
            elif token in full:
                _join(out, full[token])
                if out and at + 1 < len(body) and _glue(out[-1], body[at + 1]):
                    out.append(" ")
            else:
                out.append(token)
            at += 1
        return out

    def _bind(self, macro: Macro, args: list[list[str]], line: int) -> dict[str, list[str]]:
        params = list(macro.params or ())
        if params and params[-1].endswith("..."):
            fixed = len(params) - 1
            rest: list[str] = []
            for number, arg in enumerate(args[fixed:]):
                rest += ([","] if number else []) + arg
            params[-1] = params[-1][:-3].strip() or "__VA_ARGS__"
            args = [*args[:fixed], rest]
        if not params and len(args) == 1 and not "".join(args[0]).strip():
            args = []
        if len(args) != len(params):
            raise NotExecutable(self.file, line,
                                f"macro {macro.name} with {len(args)} arguments instead of {len(params)}")
        return {name: [t if "\n" not in t else " " for t in _trim(arg)] for name, arg in zip(params, args, strict=True)}


def _glue(left: str, right: str) -> bool:
    """Whether two tokens would become one, or others, side by side: ``-`` and ``-1``, ``a`` and ``b``."""
    if not left or not right:
        return False
    a, b = left[-1], right[0]
    return a in _SIGNS and b in _SIGNS or (a.isalnum() or a == "_") and (b.isalnum() or b == "_")


def _join(out: list[str], more: list[str]) -> None:
    """Put tokens behind others, and keep them apart."""
    if out and more and _glue(out[-1], more[0]):
        out.append(" ")
    out += more


def _trim(given: list[str]) -> list[str]:
    start, end = 0, len(given)
    while start < end and given[start].isspace():
        start += 1
    while end > start and given[end - 1].isspace():
        end -= 1
    return given[start:end]


def _arguments(given: list[str], at: int) -> tuple[list[list[str]], int] | None:
    """The arguments in brackets from position ``at`` on and the position behind them; None without brackets."""
    while at < len(given) and given[at].isspace():
        at += 1
    if at >= len(given) or given[at] != "(":
        return None
    args: list[list[str]] = [[]]
    depth, at = 1, at + 1
    while at < len(given):
        token = given[at]
        at += 1
        depth += (token == "(") - (token == ")")
        if not depth:
            return args, at
        if token == "," and depth == 1:
            args.append([])
        else:
            args[-1].append(token)
    return None
