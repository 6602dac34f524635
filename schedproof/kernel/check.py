# SPDX-License-Identifier: GPL-2.0-only
"""A patch, before and after: which modelled functions it changes, and which verdicts change with them.

An alarm is earned. Each function is taken from C on both sides, or from neither, and then every property is
``Unknown`` that names it. A verdict is worse only when it was ``Proved`` and is ``Refuted`` on the same instance by
a run that the plain interpreter has replayed.
"""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from schedproof.kernel.compare import Side, compare
from schedproof.kernel.config import DEFAULT, Config
from schedproof.kernel.functions import Read, read_model, release_for, taken, untouched
from schedproof.kernel.macros import tokens
from schedproof.kernel.patch import Patch, apply
from schedproof.kernel.prove import Subject, decide_on
from schedproof.kernel.source import Where, sources
from schedproof.kernel.touched import Touched, touched_functions
from schedproof.kernel.tree import Absent, Tree
from schedproof.model.instance import Instance
from schedproof.property import Property
from schedproof.results import OK, UNDECIDED, VIOLATED, result_of
from schedproof.verdict import Proved, Refuted, Unknown, Verdict

FunctionStatus = Literal["equal", "invisible", "differs", "not_read", "unknown"]
Change = Literal["worse", "better", "same", "undecided"]

# What the model cannot see when it changes: it checks under sequential consistency, and asserts have no effect.
UNSEEN = frozenset({
    "READ_ONCE", "WRITE_ONCE", "smp_mb", "smp_rmb", "smp_wmb", "barrier", "smp_load_acquire", "smp_store_release",
    "smp_mb__before_atomic", "smp_mb__after_atomic", "smp_cond_load_acquire", "smp_cond_load_relaxed", "WARN_ON",
    "WARN_ON_ONCE", "SCHED_WARN_ON", "BUG_ON", "lockdep_assert_held", "lockdep_assert_rq_held", "cpu_relax"})


@dataclass(frozen=True)
class FunctionChange:
    """What a patch does to one modelled function. ``via`` names the helpers and macros that it touches."""

    function: str
    file: str
    status: FunctionStatus
    detail: str = ""
    via: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"function": self.function, "file": self.file, "status": self.status, "detail": self.detail,
                "via": list(self.via)}


@dataclass(frozen=True)
class Row:
    """One property before and after."""

    property: Property
    before: Verdict
    after: Verdict
    instances: tuple[Instance, Instance]

    @builtins.property                  # the plain name is a field here
    def change(self) -> Change:
        if isinstance(self.before, Proved) and isinstance(self.after, Refuted):
            return "worse"
        if isinstance(self.before, Refuted) and isinstance(self.after, Proved):
            return "better"
        if isinstance(self.before, Proved | Refuted) and type(self.before) is type(self.after):
            return "same"
        return "undecided"


@dataclass(frozen=True)
class ModelCheck:
    """One model's part of a report."""

    model: str
    variant: str
    functions: tuple[FunctionChange, ...]
    rows: tuple[Row, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether any function that is modelled does something else behind the patch, or may."""
        return any(f.status in ("differs", "not_read", "unknown") for f in self.functions)


@dataclass(frozen=True)
class CheckReport:
    """One patch. Models that it does not touch are left out."""

    patch: str
    subject: str
    tree: str
    models: tuple[ModelCheck, ...] = ()
    files: tuple[str, ...] = field(default=())

    @property
    def code(self) -> int:
        """The exit code of this patch alone."""
        changes = {row.change for m in self.models for row in m.rows}
        if "worse" in changes:
            return VIOLATED
        return UNDECIDED if "undecided" in changes else OK

    def to_json(self) -> dict[str, Any]:
        """The report as plain data: for each property the verdicts ``before`` and ``after``."""
        return {"patch": self.patch, "subject": self.subject, "tree": self.tree, "models": [
            {"model": m.model, "variant": m.variant, "functions": [f.to_json() for f in m.functions],
             "properties": [{"property": r.property.name, "change": r.change,
                             "before": result_of(m.model, r.property, r.instances[0], r.before, None),
                             "after": result_of(m.model, r.property, r.instances[1], r.after, None)}
                            for r in m.rows],
             "assumptions": list(m.assumptions)} for m in self.models]}


def check(patches: Sequence[Patch], tree: Tree, models: Mapping[str, tuple[Any, Sequence[Property]]], options: Any,
          variant: str | None = None, params: Mapping[str, int] | None = None, config: Config = DEFAULT,
          progress: Callable[[str], None] | None = None) -> list[CheckReport]:
    """Check a series: each patch on what the ones before it have left, one report a patch.

    ``models`` maps names to model classes with their properties. Raises InputError for a patch that does not apply
    (nothing is decided then) and for a tree that is none.
    """
    tree.version()
    stages = [tree]
    for patch in patches:
        stages.append(apply(stages[-1], patch))
    reports = []
    for patch, before, after in zip(patches, stages, stages[1:], strict=False):
        work = _Check(patch, before, after, variant, params or {}, options, config, progress)
        parts = [part for name, (model, props) in models.items() if (part := work.model(name, model, props))]
        reports.append(CheckReport(patch.name, patch.subject, tree.label, tuple(parts), patch.files))
    return reports


class _Check:
    """One patch on one tree."""

    def __init__(self, patch: Patch, before: Tree, after: Tree, variant: str | None, params: Mapping[str, int],
                 options: Any, config: Config, progress: Callable[[str], None] | None):
        self.patch, self.before, self.after = patch, before, after
        self.variant, self.params, self.options, self.config = variant, params, options, config
        self.progress = progress or (lambda text: None)
        self.touched: dict[str, Touched] = {
            f: touched_functions(before, after, f, config) for f in patch.files if f.endswith((".c", ".h"))}
        self.changed = frozenset().union(*(t.changed | t.outside for t in self.touched.values()), frozenset())
        self.comments = frozenset().union(*(t.comment_only for t in self.touched.values()), frozenset())

    def model(self, name: str, model: Any, properties: Sequence[Property]) -> ModelCheck | None:
        """The part of one model, or None when the patch touches nothing that it stands for."""
        variant = self.variant or release_for(model, self.before)
        model.settings(variant)
        if not self.changed and not self.comments:
            return None
        self.progress(f"{name}: reading {self.before.label}")
        old = read_model(self.before, model, self.config)
        self.after = apply(self.before, self.patch)      # anew: so it has the files that have been read by now
        new = read_model(self.after, model, self.config, self.kept(old))
        instance = model.variant(variant)
        functions = [self.function(f, model, instance, old[f], new[f]) for f in old]
        touched = tuple(f for f in functions if f is not None)
        if not touched:
            return None
        both = {f for f in old if old[f].status == new[f].status == "read"}
        subjects = tuple(
            Subject(model, variant, tree, reads, taken((reads[f] for f in both), model), self.config)
            for tree, reads in ((self.before, old), (self.after, new)))
        part = ModelCheck(name, variant, touched)
        rows = self.rows(properties, subjects, touched) if part.changes else ()
        shown = rows[0].instances[1] if rows else instance
        return ModelCheck(name, variant, touched, rows, tuple(subjects[1].assumptions(shown)))

    def kept(self, old: Mapping[str, Read]) -> dict[str, Read]:
        """What need not be read again behind the patch: nothing where it changes anything but bodies of functions."""
        bodies = all(not t.outside and f.endswith(".c") for f, t in self.touched.items())
        if not bodies or any(read.file not in self.touched for read in old.values()):
            return {}
        return untouched(old, self.changed, self.after, self.touched, self.config)

    # ----------------------------------------------------------------------------------------- functions
    def function(self, name: str, model: Any, instance: Instance, old: Read, new: Read) -> FunctionChange | None:
        """What the patch does to one function, or None when it does not touch it."""
        parts = old.names | new.names | old.macros | new.macros | {name}
        via = tuple(sorted((parts & self.changed) - {name}))
        if not parts & self.changed and old.status == new.status and old.shape == new.shape:
            if name in self.comments or old.names & self.comments:
                return FunctionChange(name, new.file, "equal", "only comments and blanks change")
            return None
        if name in model.vocabulary.outside:
            why = next(w for key, w in model.vocabulary.callees.items() if key.partition("@")[0] == name)
            reason = f"it stays the model's own: {why}"
            return FunctionChange(name, new.file, "not_read", reason, via)
        for when, read in (("before", old), ("after", new)):
            if read.status != "read":
                return FunctionChange(name, read.file, "not_read", f"{when} the patch: {read.reason}", via)
        self.progress(f"{name}: comparing before and after")
        found = compare(instance, Side(name, {**model.programs, **old.programs}),
                        Side(name, {**model.programs, **new.programs}))
        if found.answer == "equal":
            unseen = self.unseen(sorted(old.names | new.names), old, new, model)
            if unseen:
                return FunctionChange(name, new.file, "invisible", ", ".join(unseen), via)
            return FunctionChange(name, new.file, "equal", found.within and f"for {found.within}", via)
        status: FunctionStatus = "differs" if found.answer == "differs" else "unknown"
        return FunctionChange(name, new.file, status, found.detail, via)

    def unseen(self, names: Iterable[str], old: Read, new: Read, model: Any) -> list[str]:
        """What changed in the text of functions that are equal in the model: barriers, asserts, ignored fields."""
        vocabulary = model.vocabulary
        words = UNSEEN | frozenset(vocabulary.noop) | {path.split(".")[-1] for _, path in vocabulary.ignore}
        counts = [Counter(w for name in names for w in self.words(tree, name, read.file) if w in words)
                  for tree, read in ((self.before, old), (self.after, new))]
        return sorted({w for w in words if counts[0][w] != counts[1][w]})

    def words(self, tree: Tree, name: str, file: str) -> list[str]:
        try:
            return list(tokens(sources(tree, self.config).function(name, Where(file, file)).text))
        except Absent:
            return []

    # ------------------------------------------------------------------------------------------ verdicts
    def rows(self, properties: Sequence[Property], subjects: tuple[Subject, ...],
             touched: tuple[FunctionChange, ...]) -> tuple[Row, ...]:
        """Every property before and after."""
        unread = "; ".join(f"{f.function}: {f.detail}" for f in touched if f.status == "not_read")
        known = subjects[0].model.parameters()
        params = {n: v for n, v in self.params.items() if n in known}
        found = []
        for prop in properties:
            if prop.model is not subjects[0].model:
                continue
            sides: list[tuple[Instance, Verdict]] = []
            for subject, when in zip(subjects, ("before", "after"), strict=True):
                if unread:                                     # not decided: it would be about something else
                    instance = subject.model.variant(subject.variant, **{**prop.instance, **params})
                    sides.append((instance, Unknown(self.options.engine, instance.title,
                                                    reason=f"the patch touches {unread}")))
                    continue
                self.progress(f"{prop.name}: {when} the patch")
                sides.append(decide_on(subject, prop, params, self.options))
            found.append(Row(prop, sides[0][1], sides[1][1], (sides[0][0], sides[1][0])))
        return tuple(found)
