# SPDX-License-Identifier: GPL-2.0-only
"""Properties on the C of a tree: the functions that can be read, in the model of the tree's release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from schedproof import engines
from schedproof.errors import ModelError, NotExecutable
from schedproof.kernel.config import DEFAULT, Config
from schedproof.kernel.functions import Read, read_model, release_for, taken, unasked, with_c
from schedproof.kernel.tree import Tree
from schedproof.lang.syntax import Program
from schedproof.model.instance import Instance
from schedproof.property import Property
from schedproof.results import Result, result_of
from schedproof.verdict import Unknown, Verdict


@dataclass(frozen=True)
class Subject:
    """A model on a tree: the release that fills in, the functions as they were read, the programs that go in."""

    model: Any
    variant: str
    tree: Tree
    reads: Mapping[str, Read]
    programs: Mapping[str, Program]
    config: Config
    instances: dict[tuple[tuple[str, int], ...], Instance] = field(default_factory=dict)     # made so far

    def instance(self, params: Mapping[str, int]) -> Instance:
        """The model with the tree's C in it. The same parameters give the same instance, whose work is kept."""
        key = tuple(sorted(params.items()))
        if key not in self.instances:
            self.instances[key] = with_c(self.model.variant(self.variant, **params), self.programs)
        return self.instances[key]

    @property
    def still_python(self) -> tuple[str, ...]:
        """The kernel functions that stay the release's methods."""
        return tuple(n for n in self.reads if n not in self.programs)

    @property
    def absent(self) -> tuple[str, ...]:
        """The kernel functions that the tree does not have, under their names at least."""
        return tuple(n for n, r in self.reads.items() if r.status == "absent")

    def assumptions(self, instance: Instance, added: Sequence[str] = ()) -> list[str]:
        """What a verdict on the tree rests on, in at most six lines. ``added``: fields that a patch brings."""
        lines = [f"configuration: {self.config.shown()}",
                 "instance: " + (", ".join(f"{k}={v}" for k, v in instance.params.items()) or "the only one"),
                 "memory model: sequential consistency"]
        if added:
            lines[1] += "; new in the patch, 0 at first: " + ", ".join(added)
        if self.model.scaled:
            lines.append("scaled constants: " + ", ".join(self.model.scaled))
        if self.model.vocabulary.ignore:
            lines.append("ignored fields: " + ", ".join(f"{s}.{f}" for s, f in self.model.vocabulary.ignore))
        there = [n for n in self.still_python if n not in self.absent]
        line = f"still {self.variant} in Python: {', '.join(there) or 'nothing'}"
        if self.absent:
            line += (f"; absent in this tree, so its scheduler differs from {self.variant} there: "
                     + ", ".join(self.absent))
        idle = unasked(self.model, self.programs) & self.programs.keys()
        if idle and any(mark.kind == "kernel" for mark in self.model.marks.values()):
            line += f"; read, but run by no property: {', '.join(sorted(idle))}"
        return [*lines, line]


def subject_of(model: Any, tree: Tree, variant: str | None = None, config: Config = DEFAULT) -> Subject:
    """A model on a tree. Raises InputError when the tree is none, or the variant is not known."""
    chosen = variant or release_for(model, tree)
    model.settings(chosen)
    reads = read_model(tree, model, config)
    return Subject(model, chosen, tree, reads, taken(reads.values(), model), config)


def decide_on(subject: Subject, prop: Property, params: Mapping[str, int], options: Any,
              ) -> tuple[Instance, Verdict]:
    """One property on the C. What the C does that the model has no word for makes the verdict ``Unknown``."""
    wanted = {**prop.instance, **params}
    instance = subject.model.variant(subject.variant, **wanted)
    try:
        instance = subject.instance(wanted)
        verdict = _decided(instance, prop, options)
    except (ModelError, NotExecutable) as error:
        verdict = Unknown(options.engine, instance.title, reason=str(error))
    return instance, verdict


def _decided(instance: Instance, prop: Property, options: Any) -> Verdict:
    """What an engine says, or has said before of the same."""
    def decide() -> Verdict:
        return engines.decide(instance, prop, options.engine, options.budget, options.jobs, options.progress)

    cache = getattr(options, "cache", None)
    verdict: Verdict = decide() if cache is None else cache.decide(instance, prop, options.engine, decide)
    if isinstance(verdict, Unknown) and "free!" in verdict.reason:
        free = sorted({why for t in instance.transitions for why in t.free})
        return replace(verdict, reason=f"it depends on what is not modelled: {', '.join(free)}")
    return verdict


def prove_tree(model_name: str, properties: Sequence[Property], tree_path: Path, rev: str | None, variant: str | None,
               params: Mapping[str, int], options: Any) -> list[Result]:
    """The verdicts of properties on a tree's C, as rows of a table. Raises InputError for a tree that is none."""
    tree = Tree(tree_path, rev)
    subjects: dict[type, Subject] = {}
    rows = []
    for prop in properties:
        if prop.model not in subjects:
            subjects[prop.model] = subject_of(prop.model, tree, variant)
        subject = subjects[prop.model]
        instance, verdict = decide_on(subject, prop, params, options)
        row = result_of(model_name, prop, instance, verdict, None)
        row |= {"tree": tree.label, "c_functions": sorted(instance.sources),
                "assumptions": subject.assumptions(instance)}
        rows.append(row)
    return rows
