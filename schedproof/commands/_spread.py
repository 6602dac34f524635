# SPDX-License-Identifier: GPL-2.0-only
"""``--jobs N``: questions that have nothing to do with each other, spread over local processes.

The answers are those of one process, in the same order. A process that dies costs only the question that it was at:
its answer is unknown, and another process takes its place.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from schedproof.errors import SchedproofError
from schedproof.property import Property
from schedproof.registry import expected, find_property, instance_of, use_suite
from schedproof.results import Result, result_of
from schedproof.verdict import Unknown

Answer = Callable[[str, Property, str, argparse.Namespace, dict[str, int]], tuple[Result, Any]]


@dataclass(frozen=True)
class Question:
    """A property of a model on one instance."""

    model: str
    property: str
    variant: str
    settings: dict[str, int]


def answers(questions: Sequence[Question], answer: Answer, args: argparse.Namespace) -> list[Result]:
    """One row a question. ``answer`` must be a function of a module.

    Raises what the first question raises that cannot be asked, as one process would.
    """
    if args.jobs == 1 or len(questions) <= 1:
        return [_ask(q, answer, args) for q in questions]
    found: dict[int, Result | None] = {}
    todo = list(enumerate(questions))[::-1]
    plain = argparse.Namespace(**{**vars(args), "jobs": 1, "quiet": True})     # progress would be drawn over itself
    workers = [_Worker(answer, plain) for _ in range(min(args.jobs, len(questions)))]
    try:
        for worker in workers:
            worker.take(todo)
        while busy := [w for w in workers if w.at is not None]:
            ready = wait([w.pipe for w in busy])
            for worker in [w for w in busy if w.pipe in ready]:
                number, question = worker.at or (0, questions[0])
                try:
                    found[number] = worker.pipe.recv()
                except (EOFError, OSError):
                    found[number] = _lost(question)
                    worker.start()
                worker.take(todo)
    finally:
        for worker in workers:
            worker.stop()
    # What a worker could not answer is asked again here, so that its error is the one that is told.
    return [found[i] or _ask(q, answer, args) for i, q in enumerate(questions)]


def _ask(question: Question, answer: Answer, args: argparse.Namespace) -> Result:
    _, prop = find_property(f"{question.model}:{question.property}")
    return answer(question.model, prop, question.variant, args, question.settings)[0]


def _lost(question: Question) -> Result:
    _, prop = find_property(f"{question.model}:{question.property}")
    instance = instance_of(prop, question.variant, question.settings)
    verdict = Unknown("none", instance.title, reason="the process that was to decide this one ended before it did")
    return result_of(question.model, prop, instance, verdict, expected(prop, question.variant))


class _Worker:
    """A process that answers one question after the other; ``at`` is the one that it has been given."""

    def __init__(self, answer: Answer, args: argparse.Namespace):
        self.answer, self.args = answer, args
        self.at: tuple[int, Question] | None = None
        self.pipe: Connection
        self.process: BaseProcess
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")         # a copy of a process with threads may hang
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, self.answer, self.args), daemon=True)
        self.process.start()
        theirs.close()

    def take(self, todo: list[tuple[int, Question]]) -> None:
        """Give it the next question, if there is one."""
        self.at = todo.pop() if todo else None
        if self.at is None:
            return
        with contextlib.suppress(OSError):                     # it is gone already: reading from it will tell
            self.pipe.send(self.at[1])

    def stop(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join()


def _work(pipe: Connection, answer: Answer, args: argparse.Namespace) -> None:
    """What a worker does, until nobody asks any more."""
    if args.suite is not None:
        use_suite(args.suite)
    while True:
        try:
            question = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(_ask(question, answer, args))
        except SchedproofError:
            pipe.send(None)
