# SPDX-License-Identifier: GPL-2.0-only
"""A patch, before and after: which modelled functions it changes, and which verdicts change with them.

An alarm is earned. Each function is taken from C on both sides, or from neither, and then every property is
``Unknown`` that names it. A verdict is worse only when it was ``Proved`` and is ``Refuted`` on the same instance by
a run that the plain interpreter has replayed.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from schedproof.errors import InputError
from schedproof.kernel.added import Added, added_fields, domain_of, never_set, set_elsewhere, used, with_fields
from schedproof.kernel.compare import Side, compare
from schedproof.kernel.config import DEFAULT, Config
from schedproof.kernel.functions import Read, read_model, release_for, taken, unasked
from schedproof.kernel.mentions import bodies, reached
from schedproof.kernel.patch import Patch, apply
from schedproof.kernel.places import Words
from schedproof.kernel.prove import Subject, decide_on
from schedproof.kernel.source import Where, sources
from schedproof.kernel.touched import Touched, names_of, touched_functions
from schedproof.kernel.tree import Absent, Tree
from schedproof.kernel.unseen import changes
from schedproof.model.domains import Int
from schedproof.model.instance import Instance
from schedproof.property import Property
from schedproof.results import OK, UNDECIDED, VIOLATED, result_of
from schedproof.verdict import Proved, Refuted, Unknown, Verdict

FunctionStatus = Literal["equal", "invisible", "differs", "not_read", "not_covered", "unknown"]
Change = Literal["worse", "better", "same", "undecided"]


@dataclass(frozen=True)
class FunctionChange:
    """What a patch does to one modelled function. ``via`` names the helpers and macros that it touches.

    With the status ``not_covered`` it is no function but a constant or a field that the model does not follow.
    """

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
        return any(f.status not in ("equal", "invisible") for f in self.functions)


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
        # A model without properties has no rows; nothing is asked of it, but what was not read is not decided either.
        unread = any(f.status in ("not_read", "not_covered") for m in self.models if not m.rows for f in m.functions)
        if "undecided" in changes or unread:
            return UNDECIDED
        return OK

    def to_json(self) -> dict[str, Any]:
        """The report as plain data: for each property the verdicts ``before`` and ``after``."""
        return {"patch": self.patch, "subject": self.subject, "tree": self.tree, "models": [
            {"model": m.model, "variant": m.variant, "functions": [f.to_json() for f in m.functions],
             "properties": [{"property": r.property.name, "change": r.change,
                             "before": result_of(m.model, r.property, r.instances[0], r.before, None),
                             "after": result_of(m.model, r.property, r.instances[1], r.after, None)}
                            for r in m.rows],
             "assumptions": list(m.assumptions)} for m in self.models]}


Asked = tuple[Any, Sequence[Property]]             # a model class with its properties


def check(patches: Sequence[Patch], tree: Tree, models: Mapping[str, Asked | list[Asked]], options: Any,
          variant: str | None = None, params: Mapping[str, int] | None = None, config: Config = DEFAULT,
          progress: Callable[[str], None] | None = None) -> list[CheckReport]:
    """Check a series: each patch on what the ones before it have left, one report a patch.

    ``models`` maps names to a model class with its properties, or to several that share the name. Raises InputError for
    a patch that does not apply (nothing is decided then) and for a tree that is none.
    """
    wanted = [(name, *one) for name, asked in models.items() for one in (asked if isinstance(asked, list) else [asked])]
    tree.version()
    stages = [tree]
    for patch in patches:
        stages.append(apply(stages[-1], patch))
    reports = []
    for patch, before, after in zip(patches, stages, stages[1:], strict=False):
        work = _Check(patch, before, after, variant, params or {}, options, config, progress)
        # Those without properties first: what they prove equal need not be undecided in the others.
        order = sorted(range(len(wanted)), key=lambda i: bool(wanted[i][2]))
        parts = {i: part for i in order if (part := work.model(*wanted[i]))}
        told = _once([(parts[i], bool(wanted[i][2])) for i in sorted(parts)])
        reports.append(CheckReport(patch.name, patch.subject, tree.label, told, patch.files))
    return reports


def _once(parts: Sequence[tuple[ModelCheck, bool]]) -> tuple[ModelCheck, ...]:
    """The parts of a report, each function in one of them: with verdicts, where a model has some (``True``).

    A model without any leaves out as well what is touched only through functions that another one tells of.
    """
    known = {f.function for part, verdicts in parts for f in part.functions if verdicts and f.status != "not_read"}
    found: list[ModelCheck] = []
    for part, verdicts in parts:
        kept = part.functions if verdicts else tuple(
            f for f in part.functions if f.function not in known
            and not (f.via and set(f.via) <= known and f.status not in ("not_read", "not_covered")))
        same = next((i for i, p in enumerate(found) if not verdicts and not p.rows and p.model == part.model), None)
        if same is not None:
            found[same] = replace(found[same], functions=(*found[same].functions, *kept))
        elif kept:
            found.append(replace(part, functions=kept))
    return tuple(found)


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
        self.equal: dict[str, FunctionChange] = {}       # functions that a model without properties has proved equal

    def model(self, name: str, model: Any, properties: Sequence[Property]) -> ModelCheck | None:
        """The part of one model, or None when the patch touches nothing that it stands for."""
        variant = self.variant if self.variant and _has(model, self.variant) else release_for(model, self.before)
        if not self.changed and not self.comments or not self.concerns(model):
            return None
        if not self.changed:
            same = self.same(model)
            basis = (f"configuration: {self.config.shown()}", "the code is the same on both sides: none of it was run")
            return ModelCheck(name, variant, same, assumptions=basis) if same else None
        self.progress(f"{name}: reading {self.before.label}")
        old = read_model(self.before, model, self.config)
        self.after = apply(self.before, self.patch)      # anew: so it has the files that have been read by now
        fields = added_fields(self.before, self.after, model, self.touched.values(), self.config)
        near = self.near(model, old)
        new = read_model(self.after, with_fields(model, dict.fromkeys(fields)), self.config, self.kept(old, near))
        side = _Sides(model, variant, old, new, fields, bool(properties))
        functions = [self.function(f, side, near.get(f, frozenset())) for f in old]
        fixed, strangers = list(self.fixed(model, near)), list(self.strangers(side))
        told = [_unasked(f) if f.function in side.unasked else f for f in functions if f is not None]
        touched = (*told, *(fixed if properties else ()), *strangers)
        if not properties and not fixed and not strangers and not self.changed & model.vocabulary.outside:
            # Only what is equal in every word: what this model ignores may mean something to another one.
            self.equal |= {f.function: replace(f, detail=f.detail or f"as {name} reads it") for f in touched
                           if f.status == "equal"}
        if not touched:
            return None
        subjects = tuple(Subject(m, variant, tree, reads, taken((reads[f] for f in side.both), model), self.config)
                         for m, tree, reads in zip(side.models, (self.before, self.after), (old, new), strict=True))
        part = ModelCheck(name, variant, touched)
        rows = self.rows([p for p in properties if p.model is model], subjects, part) if part.changes else ()
        shown = rows[0].instances[1] if rows else side.instance
        rests_on = tuple(subjects[1].assumptions(shown, tuple(map(str, side.fields))))
        return replace(part, rows=side.explained(rows), assumptions=rests_on)

    # ------------------------------------------------------------------------------------------- what is touched
    def same(self, model: Any) -> tuple[FunctionChange, ...]:
        """The functions of a model in which nothing but comments and blanks changes. Of helpers nothing is said."""
        where = {name: file for file, touched in self.touched.items() for name in touched.comment_only}
        return tuple(FunctionChange(name, where[name], "equal", "only comments and blanks change")
                     for name in model.kernel_functions() if name in where)

    def concerns(self, model: Any) -> bool:
        """Whether the patch changes a file that the model's functions are compiled with, or what such a file names."""
        kernel, names = model.kernel_functions(), self.changed | self.comments
        if names & kernel.keys() or any(not self.before.exists(file) for file in kernel.values()):
            return True
        known = {(t, f) for file in set(kernel.values()) for t in (self.before, self.after) if t.exists(file)
                 for f in sources(t, self.config).closure(file)}
        if set(self.patch.files) & {f for _, f in known}:
            return True
        word = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
        return any(word.search(t.text(f)) for t, f in known)

    def near(self, model: Any, old: Mapping[str, Read]) -> Mapping[str, frozenset[str]]:
        """What functions and macros mention of the change, directly or through others: for what is not read and run."""
        words = model.vocabulary
        ends = frozenset(model.kernel_functions()) | {c.split("@")[0] for c in words.callees} | frozenset(words.noop)
        fixed = frozenset(_fixed_words(model))
        files = {f for read in old.values() if self.after.exists(read.file)
                 for f in sources(self.after, self.config).closure(read.file)}
        names = names_of(self.before, self.after, self.touched.values(), self.config) | self.included()
        names -= self.private(files) - frozenset(model.kernel_functions())
        found = reached(names - ends, self.after, sorted(files), self.config, ends | fixed)
        return {**found, **{n: found.get(n, frozenset()) | {n} for n in names & (ends | fixed)}}

    def private(self, files: Collection[str]) -> frozenset[str]:
        """The changed functions that only other files than these can call: static ones, in files of code."""
        static: set[str] = set()
        for file, touched in self.touched.items():
            if file in files or not file.endswith(".c"):
                continue
            pieces = [p for t in (self.before, self.after) if t.exists(file)
                      for name in touched.changed for p in sources(t, self.config).unit(file).functions.get(name, [])]
            open_to_all = {p.name for p in pieces if not re.search(r"\bstatic\b", p.text.split("{")[0])}
            static |= {p.name for p in pieces} - open_to_all
        seen = {n for f, t in self.touched.items() if f in files or f.endswith(".h") for n in t.names}
        return frozenset(static - seen)

    def included(self) -> frozenset[str]:
        """The names of files that come into sight, or go out of it, by a change of what is included."""
        found: set[str] = set()
        for file, touched in self.touched.items():
            both = self.before.exists(file) and self.after.exists(file)
            if not both or not any(n.startswith("#include") for n in touched.outside):
                continue
            sides = [frozenset(sources(t, self.config).closure(file)) for t in (self.before, self.after)]
            for tree, files in ((self.after, sides[1] - sides[0]), (self.before, sides[0] - sides[1])):
                for other in files:
                    unit = sources(tree, self.config).unit(other)
                    found |= {name for name, _ in bodies(unit)} | unit.enumerators.keys()
        return frozenset(found)

    def kept(self, old: Mapping[str, Read], near: Mapping[str, frozenset[str]]) -> dict[str, Read]:
        """What could not be read and need not be tried again behind the patch.

        Nothing where it changes anything but bodies of functions. (What was read is read again: places may move.)
        """
        bodies_only = all(not t.outside and f.endswith(".c") for f, t in self.touched.items())
        return {n: r for n, r in old.items() if bodies_only and r.status != "read" and n not in near
                and n not in self.changed}

    def function(self, name: str, side: _Sides, near: frozenset[str]) -> FunctionChange | None:
        """What the patch does to one function, or None when it does not touch it."""
        old, new, words = side.old[name], side.new[name], side.model.vocabulary
        parts = old.names | new.names | old.macros | new.macros | {name}
        via = tuple(sorted((parts & self.changed) - {name}))
        run = old.status == new.status == "read" and name not in words.outside
        if not run and old.status == new.status and (near or name in self.changed):
            via = tuple(sorted((near | set(via)) - {name}))
        elif not parts & self.changed and old.status == new.status and old.shape == new.shape:
            if name in self.comments or old.names & self.comments:
                return FunctionChange(name, new.file, "equal", "only comments and blanks change")
            return None
        if name in words.outside:
            why = next(w for key, w in words.callees.items() if key.partition("@")[0] == name)
            reason = f"it stays the model's own: {why}"
            return FunctionChange(name, new.file, "not_read", reason, via)
        for when, read in (("before", old), ("after", new)):
            if read.status != "read" and name in self.equal:
                return self.equal[name]
            if read.status != "read":
                return FunctionChange(name, read.file, "not_read", f"{when} the patch: {read.reason}", via)
        if not side.asked and name not in self.changed:
            return FunctionChange(name, new.file, "unknown", "not compared: no property is about it", via)
        self.progress(f"{name}: comparing before and after")
        programs = side.models[1].programs
        found = compare(side.instance, Side(name, {**programs, **old.programs}),
                        Side(name, {**programs, **new.programs}))
        if found.answer == "equal":
            unseen = changes(*self.texts(old, new), vocabulary=words)
            if unseen:
                return FunctionChange(name, new.file, "invisible", ", ".join(unseen), via)
            return FunctionChange(name, new.file, "equal", found.within and f"for {found.within}", via)
        status: FunctionStatus = "differs" if found.answer == "differs" else "unknown"
        return FunctionChange(name, new.file, status, found.detail, via)

    def texts(self, old: Read, new: Read) -> tuple[list[str], list[str]]:
        """The texts of the functions and changed macros that a function is made of, before and after."""
        names, macros = sorted(old.names | new.names), sorted((old.macros | new.macros) & self.changed)
        found: list[list[str]] = []
        for tree, read in ((self.before, old), (self.after, new)):
            known, where = sources(tree, self.config), Where(read.file, read.file)
            texts = []
            for name in names:
                try:
                    texts.append(known.function(name, where).text)
                except Absent:
                    continue
            texts += [m.body for name in macros if (m := known.macro(name, where)) is not None]
            found.append(texts)
        return found[0], found[1]

    def fixed(self, model: Any, near: Mapping[str, frozenset[str]]) -> Iterator[FunctionChange]:
        """Constants and callees for which the model has its own word, where the patch changes them."""
        words, kernel = model.vocabulary, model.kernel_functions()
        for name, why in _fixed_words(model).items():
            if name in near:
                yield FunctionChange(name, self.file_of(name, near[name]), "not_covered", why,
                                     tuple(sorted(near[name] - {name})))
        for key, why in {**words.callees, **words.noop}.items():
            name = key.split("@")[0]
            if name not in self.changed or name in kernel:
                continue
            status: FunctionStatus = "not_read"
            told = f"it stays the model's own: {why}"
            if key in words.noop:
                meant = self.meant(model, name)
                status = "not_read" if meant else "invisible"
                told = f"it did nothing for the model ({why}), and has {', '.join(meant)} in it" if meant else \
                    f"it does nothing for the model: {why}"
            yield FunctionChange(name, self.file_of(name, frozenset()), status, told)

    def meant(self, model: Any, name: str) -> list[str]:
        """The words of the model, fields and functions, in a function or macro that a patch changes."""
        known = {path.split(".")[-1] for _, path in Words.of(model).fields} | set(model.kernel_functions())
        there: set[str] = set()
        for tree in (self.before, self.after):
            for file in self.touched:
                if tree.exists(file):
                    parts = bodies(sources(tree, self.config).unit(file))
                    there |= {w for other, inner in parts if other == name for w in inner}
        return sorted(known & there - {name})

    def file_of(self, name: str, others: frozenset[str]) -> str:
        """The file in which the patch changes a name, or one that it rests on."""
        wanted = {name, *others}
        return next((f for f, t in self.touched.items() if wanted & (t.changed | t.outside | t.names)),
                    self.patch.files[0])

    def strangers(self, side: _Sides) -> Iterator[FunctionChange]:
        """New fields that others set as well than the functions that are read."""
        names = frozenset().union(*(side.new[f].names for f in side.both), frozenset())
        for one in side.fields:
            place = set_elsewhere(one, self.after, self.touched, names, self.config)
            if place:
                yield FunctionChange(one.path, self.file_of(one.leaf, frozenset()), "not_covered",
                                     f"{one}, new in the patch, is set in {place}, which the model does not run")

    # ------------------------------------------------------------------------------------------ verdicts
    def rows(self, properties: Sequence[Property], subjects: tuple[Subject, ...], part: ModelCheck) -> tuple[Row, ...]:
        """Every property before and after."""
        unread = "; ".join(f"{f.function}: {f.detail}" for f in part.functions
                           if f.status in ("not_read", "not_covered"))
        known = subjects[0].model.parameters()
        params = {n: v for n, v in self.params.items() if n in known}
        found = []
        for prop in properties:
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


def _has(model: Any, variant: str) -> bool:
    try:
        model.settings(variant)
    except InputError:
        return False
    return True


class _Sides:
    """One model before and after: what was read, and the fields that are new."""

    def __init__(self, model: Any, variant: str, old: Mapping[str, Read], new: Mapping[str, Read],
                 fields: Iterable[Added], asked: bool):
        self.model, self.old, self.new, self.asked = model, old, new, asked
        self.both = [f for f in old if old[f].status == new[f].status == "read"]
        programs = list(taken((new[f] for f in self.both), model).values())
        self.unasked = unasked(model, taken((new[f] for f in self.both), model)) if asked else frozenset()
        self.fields = used(fields, programs)
        self.domains = {f: domain_of(f, programs) for f in self.fields}
        self.models = (with_fields(model, {f: never_set(f) for f in self.fields}), with_fields(model, self.domains))
        self.instance: Instance = self.models[1].variant(variant)

    def explained(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """The rows; what could not be decided names the new fields that may have any value of their type."""
        wide = [str(f) for f, d in self.domains.items() if isinstance(d, Int)]
        if not wide:
            return rows
        note = f"new in the patch and not bounded: {', '.join(wide)}; "
        return tuple(replace(r, after=replace(r.after, reason=note + r.after.reason))
                     if isinstance(r.after, Unknown) else r for r in rows)


def _unasked(change: FunctionChange) -> FunctionChange:
    """A change of a function that no property runs: it says nothing, so it must not look as if all were as before."""
    if change.status in ("equal", "not_read"):
        return change
    why = "no property of this model runs it" + (f"; {change.detail}" if change.detail else "")
    return replace(change, status="not_covered", detail=why)


def _fixed_words(model: Any) -> dict[str, str]:
    """The names for which a model has a value of its own, with what to tell when the tree's changes."""
    words = model.vocabulary
    found = {key: f"the model holds it {'on' if on else 'off'}: {why}" for key, (on, why) in words.static_keys.items()}
    found |= {name: f"the model has {value} for it" for name, value in words.constants.items()}
    return found | {name: f"the model scales it: {why}" for name, why in model.scaled.items()}
