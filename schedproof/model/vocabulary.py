# SPDX-License-Identifier: GPL-2.0-only
"""What a model says about the C that it stands for: the words, and the fields that its declarations name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from schedproof.errors import ModelError
from schedproof.model.domains import Constant, Domain, Link

Declared = Domain | Link | Constant
FieldKey = tuple[str, str]


@dataclass(frozen=True)
class Vocabulary:
    """The C names that a model gives a meaning to. Every entry carries the reason why it is there.

    ``callees``: C function -> why the model's Python method of the same name stays in its place (it is called with
    the C arguments). A callee that takes a pointer into an object has a key such as
    ``pv_wait@struct pv_node.state``; the method gets the object itself. One that takes a ``void *`` has a key that
    says to what, ``walk_tg_tree_from@struct rq``; several such arguments stand in it in order, with commas between.
    ``methods``: such a key -> the method's name,
    where it is not the function's: a function that gets pointers into different members has one method for each.
    ``results``: C function -> the member that its result points into, as ``struct pv_hash_entry.lock``; the method
    returns the object, or NULL. ``static_keys``: key -> (value, why); a
    scheduler feature is one under its bare name. ``ignore``: (struct, field path) -> why; a write to it is dropped,
    a read gives a ``Free`` value; a path covers everything below it; a global variable is under the struct "".
    ``noop``: C function -> why it does nothing for the model; its arguments are not evaluated, and where its result is
    used, the result is ``Free``. ``constants``: name -> value, used instead of what the tree says; of a function it is
    the result of every call.
    """

    callees: Mapping[str, str] = field(default_factory=dict)
    methods: Mapping[str, str] = field(default_factory=dict)
    results: Mapping[str, str] = field(default_factory=dict)
    static_keys: Mapping[str, tuple[bool, str]] = field(default_factory=dict)
    ignore: Mapping[FieldKey, str] = field(default_factory=dict)
    noop: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)

    @property
    def outside(self) -> frozenset[str]:
        """The names of the callees, without what their arguments point to."""
        return frozenset(key.partition("@")[0] for key in self.callees)

    def __post_init__(self) -> None:
        names = [self.method(key) for key in self.callees]
        for key, name in zip(self.callees, names, strict=True):
            if names.count(name) > 1:
                raise ModelError(f"{name} stands for {key} and for another entry of the vocabulary",
                                 hint="give each of them a method of its own in `methods`")

    def has_method(self, function: str) -> bool:
        """Whether the model's own method of that name is called for a C function."""
        return function in self.outside

    def method(self, key: str) -> str:
        """The model's method for an entry of ``callees``."""
        return self.methods.get(key, key.split("@")[0])

    @property
    def boundary(self) -> frozenset[str]:
        """The methods that stay in place of C functions."""
        return frozenset(map(self.method, self.callees))

    def ignored(self, struct: str, path: str) -> str | None:
        """The ``ignore`` entry that covers a field path (the entry's own path), or None."""
        parts = path.split(".")
        for count in range(len(parts), 0, -1):
            prefix = ".".join(parts[:count])
            if (struct, prefix) in self.ignore:
                return prefix
        return None


NO_VOCABULARY = Vocabulary()


def declarations(model: Any) -> dict[str, Any]:
    """All class attributes of a model class or instance, those of a subclass first (they win over its bases')."""
    owner = model if isinstance(model, type) else type(model)
    found: dict[str, Any] = {}
    for base in owner.__mro__:
        for name, value in vars(base).items():
            found.setdefault(name, value)
    return found


def vocabulary_of(model: Any) -> Vocabulary:
    """The model's ``vocabulary``; an empty one where it declares none. Raises ModelError for anything else."""
    found = declarations(model).get("vocabulary") or NO_VOCABULARY
    if not isinstance(found, Vocabulary):
        raise ModelError(f"vocabulary is a {type(found).__name__}", hint="write vocabulary = Vocabulary(...)")
    return found


def fields_of(model: Any) -> dict[FieldKey, tuple[str, Declared]]:
    """The C fields that a model's declarations name: (struct, field path) -> (attribute name, declaration).

    The struct is that of the declaration's universe, as ``struct sched_entity``. A declaration without a universe
    names its struct itself, ``c="struct kvm.last_boosted_vcpu"``: the model then has a single object of that struct.
    A global variable, ``c="jiffies"``, is found under the struct "", and so are ``current`` and the CPU that runs the
    code, ``smp_processor_id``. A per-CPU variable, ``per=cpu, c="per_cpu(sd_llc_size)"``, is a field of ``struct rq``.
    Raises ModelError when two declarations name the same field.
    """
    found: dict[FieldKey, tuple[str, Declared]] = {}
    for name, value in declarations(model).items():
        if not isinstance(value, (Domain, Link, Constant)) or not value.c:
            continue
        if value.per is not None:
            key = (value.per.ctype, value.c)
        else:
            struct, _, path = value.c.partition(".")
            key = (struct, path) if path else ("", struct)
        if key in found:
            raise ModelError(f"{name} and {found[key][0]} both stand for {key[1]} of {key[0]}",
                             hint="a C field has one declaration")
        found[key] = (name, value)
    return found


def universes_of(model: Any) -> dict[str, str]:
    """The structs that a model has objects of: struct -> name of the universe, or "" for a single unnamed object."""
    found: dict[str, str] = {}
    for (struct, _), (_, value) in fields_of(model).items():
        if value.per is not None:
            found[struct] = value.per.name
        elif struct:
            found.setdefault(struct, "")
    for value in declarations(model).values():
        if isinstance(value, Link):
            found.setdefault(value.target.ctype, value.target.name)
    return found
