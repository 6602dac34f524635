# SPDX-License-Identifier: GPL-2.0-only
"""The base class of mechanisms, and how a variant is named."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from schedproof.errors import InputError, ModelError
from schedproof.lang import syntax as s
from schedproof.lang.python import from_python
from schedproof.lang.scope import Scope, scope_of
from schedproof.lang.source import module_functions
from schedproof.model.actions import Mark
from schedproof.model.domains import Domain, Enum, Param, Switch
from schedproof.model.instance import Instance
from schedproof.model.vocabulary import Vocabulary


class Model:
    """A mechanism, written down as a class.

    Class attributes declare what there is (``Object``, ``Link``, ``Constant``, domains, ``Switch``, ``Param``);
    methods say what happens. ``releases`` maps a kernel release to its switches, ``fixes`` a fix to the switches
    that it changes, ``mutants`` likewise for deliberate faults that are never offered as fixes. ``dead`` lists, a
    release, the actions that it cannot enable and why. ``functions`` maps kernel functions of the mechanism for which
    no method stands to their files: they are read from C only. ``locals`` gives the domain of a local of a C function
    that lives across a cut, where neither the method nor the C type tells it: ``{("function", "local"): Range(0, 3)}``.
    The text of the methods is read when the class is made.

    ``lanes`` says for pictures of a run what each object is doing: a pattern of names such as ``"vcpu*"`` maps to pairs
    of a word and a condition on shown values, of which the first that holds counts:
    ``("running", "current={}")``, with ``{}`` for the object, ``&`` between several, ``!=``, and ``""`` for always.
    ``cpu_lanes`` maps the number of a CPU to the variable that names what runs on it: ``{0: "curr"}``.
    """

    releases: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    fixes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    mutants: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    dead: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    functions: ClassVar[Mapping[str, str]] = {}
    locals: ClassVar[Mapping[tuple[str, str], Domain]] = {}
    scaled: ClassVar[Mapping[str, str]] = {}
    vocabulary: ClassVar[Vocabulary] = Vocabulary()
    lanes: ClassVar[Mapping[str, Sequence[tuple[str, str]]]] = {}
    cpu_lanes: ClassVar[Mapping[int, str]] = {}

    scope: ClassVar[Scope]
    programs: ClassVar[Mapping[str, s.Program]]
    marks: ClassVar[Mapping[str, Mark]]

    def __init_subclass__(cls) -> None:
        members: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            if base not in (object, Model):
                members.update(vars(base))
        cls.scope = scope_of(members)
        for name, domain in cls.scope.variables.items():
            if isinstance(domain, Enum):
                _check_meaning(cls, name, domain)
        programs = {n: from_python(f, cls.scope) for n, f in cls.scope.methods.items()}
        todo = [(cls.scope.methods[n], p) for n, p in programs.items()]
        while todo:
            function, program = todo.pop()
            for name, helper in module_functions(function, program).items():
                if name not in programs:
                    programs[name] = from_python(helper, cls.scope)
                    todo.append((helper, programs[name]))
        cls.programs = programs
        cls.marks = {n: f._schedproof_mark for n, f in cls.scope.methods.items() if hasattr(f, "_schedproof_mark")}
        _check_switches(cls)

    @classmethod
    def switches(cls) -> dict[str, Switch]:
        """The switches by name."""
        return dict(cls.scope.switches)

    @classmethod
    def parameters(cls) -> dict[str, Param]:
        """The parameters by name."""
        return dict(cls.scope.params)

    @classmethod
    def kernel_functions(cls) -> dict[str, str]:
        """The kernel functions that methods stand for and those that are read from C only, with their files."""
        return {**cls.functions, **{n: m.file for n, m in cls.marks.items() if m.kind == "kernel"}}

    @classmethod
    def settings(cls, name: str) -> dict[str, Any]:
        """The switches that a variant ``RELEASE(+FIX|+switch=value)*`` stands for. Raises InputError."""
        release, *changes = name.split("+")
        if release not in cls.releases:
            raise InputError(f"unknown release '{release}' of {cls.__name__}{_known(release, cls.releases)}")
        found = {n: switch.values[0] for n, switch in cls.scope.switches.items()}
        found |= cls.releases[release]
        for change in changes:
            named = {**cls.fixes, **cls.mutants}
            if "=" in change:
                found |= cls._one_switch(change)
            elif change in named:
                found |= named[change]
            else:
                raise InputError(f"unknown fix '{change}' of {cls.__name__}{_known(change, cls.fixes)}")
        return found

    @classmethod
    def _one_switch(cls, change: str) -> dict[str, Any]:
        switch, _, text = change.partition("=")
        if switch not in cls.scope.switches:
            raise InputError(f"unknown switch '{switch}' of {cls.__name__}{_known(switch, cls.scope.switches)}")
        allowed = cls.scope.switches[switch].values
        value: Any = {"true": True, "false": False}.get(text, text)
        if value not in allowed:
            shown = ", ".join(str(v).lower() if isinstance(v, bool) else str(v) for v in allowed)
            raise InputError(f"{switch}={text}: allowed are {shown}")
        return {switch: value}

    @classmethod
    def variant(cls, name: str, **params: int) -> Instance:
        """The instance of a variant such as ``v6.1+drop_guard`` with these parameters, the others at their defaults.

        Raises InputError for an unknown name or a value out of range.
        """
        switches = cls.settings(name)
        values = {n: p.default for n, p in cls.scope.params.items()}
        for key, value in params.items():
            if key not in values:
                raise InputError(f"unknown parameter '{key}' of {cls.__name__}{_known(key, values)}")
            declared = cls.scope.params[key]
            if isinstance(value, bool) or not isinstance(value, int) or not declared.low <= value <= declared.high:
                raise InputError(f"{key}={value}: allowed are whole numbers from {declared.low} to {declared.high}")
            values[key] = value
        cls.check_parameters(values)
        return Instance(cls, name, values, switches)

    @classmethod
    def check_parameters(cls, values: Mapping[str, int]) -> None:
        """Raise InputError where parameters that are fine alone do not go together."""


def _known(word: str, names: Iterable[str]) -> str:
    """The end of an error message: what is known, the nearest first."""
    listed = list(names)
    close = difflib.get_close_matches(word, listed, 1)
    return f": did you mean '{close[0]}'?" if close else f": known are {', '.join(listed)}"


def _check_switches(cls: type[Model]) -> None:
    for table in (cls.releases, cls.fixes, cls.mutants):
        for name, settings in table.items():
            for switch, value in settings.items():
                if switch not in cls.scope.switches or value not in cls.scope.switches[switch].values:
                    line = inspect.getsourcelines(cls)[1]
                    raise ModelError(f"{cls.__name__}: `{name}` sets {switch}={value!r}, which is not declared",
                                     inspect.getsourcefile(cls) or "", line)


def _check_meaning(cls: type[Model], name: str, domain: Enum) -> None:
    """Meanings are intervals that are disjoint and leave no gap."""
    if not domain.meaning:
        return
    if set(domain.meaning) != set(domain.names):
        raise ModelError(f"{cls.__name__}.{name}: meaning must say what each of {', '.join(domain.names)} stands for")
    spans = sorted(domain.meaning.values())
    for (_, high), (low, _) in zip(spans, spans[1:], strict=False):
        if low != high + 1:
            what = "overlap" if low <= high else "leave a gap"
            raise ModelError(f"{cls.__name__}.{name}: the meanings {what} at {min(low, high + 1)}")
