# SPDX-License-Identifier: GPL-2.0-only
"""Generated functions, compiled and run: the results that C itself gives."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from schedproof.kernel.config import DEFAULT, DEFAULT_OPTIONS
from tests.campaigns.fuzz.cgen import Function
from tests.campaigns.fuzz.yard import FOR_COMPILER, KEYS, State, state_functions

OPTIONS = "".join(f"#define {n} {DEFAULT.value(n)}\n" for n in DEFAULT_OPTIONS if DEFAULT.value(n) is not None)
FLAGS = ("-O1", "-w", "-fwrapv", "-fno-strict-aliasing", "-shared", "-fPIC", "-std=gnu11", "-DBITS_PER_LONG=64")


def _wrapper(number: int, made: Function) -> str:
    """A function of the same form for each: numbers in, a number out."""
    args = [f"&{kind}s[a[{i}]]" if kind in ("car", "lot") else f"({kind})a[{i}]"
            for i, (kind, _) in enumerate(made.params)]
    call = f"f_{number}({', '.join(args)})"
    if made.result == "void":
        body = f"{call}; return 0;"
    elif made.result.endswith("*"):
        body = f"struct car *p = {call}; return p ? p - cars : -1;"
    else:
        body = f"return (long){call};"
    return f"long run_{number}(const long *a) {{ {body} }}\n"


def available() -> bool:
    """Whether there is a compiler."""
    return shutil.which("gcc") is not None


class Native:
    """The functions of one batch. One that the compiler refuses is left out, and its message kept."""

    def __init__(self, folder: Path, batch: Sequence[Function]):
        self.folder = folder
        texts = [made.text.replace(" f(", f" f_{i}(").replace("*f(", f"*f_{i}(") for i, made in enumerate(batch)]
        parts = [f"{text}\n{_wrapper(i, made)}" for i, (text, made) in enumerate(zip(texts, batch, strict=True))]
        self.refused: dict[int, str] = {}
        if self._compile(dict(enumerate(parts))):
            for i, part in enumerate(parts):
                message = self._compile({i: part}, check=True)
                if message:
                    self.refused[i] = message
            rest = {i: part for i, part in enumerate(parts) if i not in self.refused}
            message = self._compile(rest)
            if message:
                raise RuntimeError(f"functions that compile alone do not together: {message}")
        self.library = ctypes.CDLL(str(folder / "batch.so"))
        self.array = (ctypes.c_long * len(KEYS))()

    def _compile(self, parts: dict[int, str], check: bool = False) -> str:
        """Compile; the compiler's first complaint, or nothing."""
        text = OPTIONS + FOR_COMPILER + "\n".join(parts.values()) + state_functions()
        (self.folder / "batch.c").write_text(text)
        words = ["-fsyntax-only"] if check else ["-o", "batch.so"]
        done = subprocess.run(["gcc", *FLAGS, *words, "batch.c"], cwd=self.folder, capture_output=True, text=True,
                              check=False)
        lines = [x for x in done.stderr.splitlines() if "error" in x]
        return (lines or [done.stderr[:200] or "refused"])[0] if done.returncode else ""

    def run(self, number: int, state: State, args: Sequence[int]) -> tuple[int, State]:
        """The value and the state behind a run."""
        self.array[:] = [ctypes.c_long(v).value for v in state]
        self.library.take_state(self.array)
        call = getattr(self.library, f"run_{number}")
        call.restype = ctypes.c_long
        value = call((ctypes.c_long * max(1, len(args)))(*[ctypes.c_long(a).value for a in args]))
        self.library.give_state(self.array)
        return value, tuple(f.ctype.wrap(v) for (f, _), v in zip(KEYS, self.array, strict=True))
