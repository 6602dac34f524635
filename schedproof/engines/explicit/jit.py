# SPDX-License-Identifier: GPL-2.0-only
"""Numba for this engine: functions cached in the project's own cache folder, and calls of compiled code by address.

An instance's machine code is called through its address, which is an argument: so one compiled search serves
all instances, and Numba can keep it on disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba import types
from numba.core import config
from numba.extending import intrinsic

from schedproof.files import cache_folder

Function = TypeVar("Function", bound=Callable[..., Any])


def _folder() -> Path | None:
    """The folder for compiled functions, or None when there can be none (a read-only home, a full disk).

    Numba notices a change of the file that a function stands in, but not of what that function calls in other
    files: so the folder is named after the text of all of them.
    """
    try:
        text = b"".join(p.read_bytes() for p in sorted(Path(__file__).parent.glob("*.py")))
        folder = cache_folder() / "numba" / hashlib.sha256(text).hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"0" * 4096)
    except (OSError, RuntimeError):                # RuntimeError: there is no home folder
        return None
    return folder


@contextlib.contextmanager
def _cache_in(folder: Path) -> Iterator[None]:
    """Numba asks for its folder when a function is decorated, and only there."""
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


def compiled(function: Function) -> Function:
    """Compile a function on its first call, and keep the result on disk where that is possible."""
    folder = _folder()
    if folder is None:
        return numba.njit(function)
    with _cache_in(folder):
        try:
            return numba.njit(cache=True)(function)
        except RuntimeError:                       # no place for the cache after all
            return numba.njit(function)


def callback(signature: Any, function: Any) -> Any:
    """A compiled function as one with an address (``.address``), kept on disk where that is possible."""
    folder = _folder()
    if folder is None:
        return numba.cfunc(signature)(function.py_func)
    with _cache_in(folder):
        try:
            return numba.cfunc(signature, cache=True)(function.py_func)
        except RuntimeError:
            return numba.cfunc(signature)(function.py_func)


_WORD = ir.IntType(64)


@intrinsic
def call_successors(typing: Any, address: Any, state: Any, out: Any) -> Any:
    """``successors(state, out)`` at an address; ``out`` is the address of the words to write."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _WORD.as_pointer()
        kind = ir.FunctionType(_WORD, [_WORD, pointer])
        function = builder.inttoptr(args[0], kind.as_pointer())
        return builder.call(function, [args[1], builder.inttoptr(args[2], pointer)])

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def prefetch(typing: Any, address: Any) -> Any:
    """Ask for the memory at an address, without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        read, keep, data = (ir.Constant(number, n) for n in (0, 3, 1))
        builder.call(function, [builder.inttoptr(args[0], pointer), read, keep, data])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def call_observe(typing: Any, address: Any, state: Any) -> Any:
    """``observe(state)`` at an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = builder.inttoptr(args[0], ir.FunctionType(_WORD, [_WORD]).as_pointer())
        return builder.call(function, [args[1]])

    return types.int64(types.int64, types.int64), generate
