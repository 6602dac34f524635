# SPDX-License-Identifier: GPL-2.0-only
"""Finding models and properties by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedproof import registry
from schedproof.errors import InputError, ModelError


def test_the_models_name_is_its_files_name_and_may_stand_for_several_classes(toy):
    assert registry.model_names() == ["toy"]
    assert [c.__name__ for c in registry.models()["toy"]] == ["Toy", "Fine"]
    assert registry.name_of(registry.models()["toy"][1]) == "toy"


def test_properties_come_in_the_order_of_the_file(toy):
    assert [p.name for p in registry.properties("toy")] == ["short_wait", "sane", "fine_sane"]
    assert registry.headline("toy").name == "short_wait"


@pytest.mark.parametrize("text", ["toy:sane", "toy:T2", "toy:T3"])
def test_a_property_is_found_by_its_name_and_by_its_labels_in_the_facts(toy, text):
    model, prop = registry.find_property(text)
    assert (model, prop.name) == ("toy", "sane")


@pytest.mark.parametrize("text, said", [
    ("tow", "unknown model 'tow', did you mean toy? known: toy"),
    ("tow:sane", "unknown model 'tow', did you mean toy? known: toy"),
    ("toy:sand", "unknown property of toy 'sand', did you mean sane? known: short_wait, sane, fine_sane"),
    ("../models/toy", "unknown model '../models/toy'"),
])
def test_an_unknown_name_is_answered_with_the_closest_and_all_known_ones(toy, text, said):
    with pytest.raises(InputError) as error:
        registry.select(text)
    assert said in str(error.value)


def test_a_model_alone_names_no_property(toy):
    with pytest.raises(InputError, match="write toy:PROPERTY, one of short_wait, sane"):
        registry.find_property("toy")


def test_what_a_declaration_expects(toy):
    prop = registry.find_property("toy:sane")[1]
    assert [registry.expected(prop, v) for v in ("v1", "v1+break_it", "v2+repaired")] == ["proved", "refuted", None]
    assert registry.is_mutant(prop, "v1+break_it") and not registry.is_mutant(prop, "v1+repaired")


def test_a_suite_inside_the_tree_under_examination_is_refused(toy, tmp_path):
    with pytest.raises(InputError, match="nothing from a tree is run"):
        registry.use_suite(toy, tree=tmp_path)
    with pytest.raises(InputError, match="nothing from a tree is run"):
        registry.use_suite(toy, tree=toy)


def test_a_link_out_of_the_tree_does_not_hide_that_a_suite_lies_in_it(toy, tmp_path):
    link = tmp_path / "elsewhere"
    link.symlink_to(toy)
    with pytest.raises(InputError, match="nothing from a tree is run"):
        registry.use_suite(link, tree=toy)


def test_a_folder_without_models_is_no_suite(toy, tmp_path):
    with pytest.raises(InputError, match="not a suite"):
        registry.use_suite(tmp_path)


def test_the_current_folder_is_never_a_suite(toy, monkeypatch, tmp_path):
    other = tmp_path / "other"
    for folder in ("models", "properties"):
        (other / folder).mkdir(parents=True)
    (other / "models" / "evil.py").write_text("raise SystemExit('was run')\n")
    monkeypatch.chdir(other)
    assert registry.model_names() == ["toy"]


def edited(toy: Path, old: str, new: str) -> None:
    """Change the toy's properties and use them from now on."""
    file = toy / "properties" / "toy.py"
    file.write_text(file.read_text().replace(old, new))
    registry.use_suite(toy)


@pytest.mark.parametrize("old, new, said", [
    ('"sane", Toy', '"short_wait", Toy', "two properties are called short_wait"),
    ('holds=("v1", "v2")', 'holds=("v1+break_it",)', "property sane both holds and fails in v1+break_it"),
    ('facts="T2, T3"', "headline=True", "more than one property is the headline"),
    ("def waiting(self):", "def waiting(self:", "properties/toy.py:8: not Python"),
    ("fine_sane = ", "fine_sane = 1 / 0 or ", "properties/toy.py:20: ZeroDivisionError: division by zero"),
])
def test_a_faulty_file_of_the_suite_is_told_with_its_place(toy, old, new, said):
    edited(toy, old, new)
    with pytest.raises(ModelError) as error:
        registry.properties("toy")
    assert said in str(error.value)
