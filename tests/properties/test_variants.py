"""Drafts of one variant have equal effects on their clusters, except for the names of the clusters."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reconciler.krm.yaml import emit
from reconciler.output.fleet.builder import index_target
from reconciler.output.fleet.model import IndexedDraft
from reconciler.output.fleet.variants import VariantPool
from tests.support.examples import examples
from tests.unit.output.fleet.builders import build_draft

NAMES = ["eu", "us", "eu-1", "web", "data", "kind", "eu.prod"]
VALUES = ["1", "2", "v1", "v2", "true", "1.5"]
"""Names that are also values. Such a name is never replaced."""
TARGET = "\ufffd"
"""The place of the target's name in a template."""

FRAGMENTS = st.sampled_from([TARGET, *NAMES, *VALUES, "-", ".", "/", "x", " "])
TEXTS = st.lists(FRAGMENTS, min_size=1, max_size=4).map("".join)
WORDS = st.lists(st.sampled_from([TARGET, "x", "other", "1"]), min_size=1, max_size=4).map("-".join)
"""Texts in which each name is a whole word."""


def create_files(texts: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Return the objects of up to two files."""
    scalars = st.one_of(texts, st.integers(0, 2), st.booleans())
    fields = st.dictionaries(st.one_of(st.sampled_from(["a", "b", "replicas"]), texts), scalars, max_size=3)
    objects = st.builds(
        lambda name, data: {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data},
        st.sampled_from(["one", "two", f"{TARGET}-config"]), fields,
    )  # fmt: skip
    return st.dictionaries(st.sampled_from(["a.yaml", "b.yaml"]), objects, max_size=2)


FILES, FILES_OF_WORDS = create_files(TEXTS), create_files(WORDS)
TARGETS = st.sampled_from([*NAMES, *VALUES])
EMITTERS = st.sampled_from([json.dumps, emit])


@st.composite
def pairs_of_versions(draw: st.DrawFn) -> tuple[Any, Any]:
    """Return two templates of (files before, files after), which are often equal or nearly equal."""
    first = draw(st.tuples(FILES, FILES))
    second = draw(st.one_of(st.just(first), st.tuples(st.just(first[0]), FILES), st.tuples(FILES, st.just(first[1]))))
    return first, second


def fill(template: Any, name: str) -> Any:
    """Return a template with the name of a target."""
    match template:
        case str():
            return template.replace(TARGET, name)
        case dict():
            return {fill(key, name): fill(value, name) for key, value in template.items()}
    return template


def index_draft(name: str, versions: Any, emitter: Any, pool: VariantPool) -> IndexedDraft:
    before, after = ({path: emitter(fill(data, name)) for path, data in files.items()} for files in versions)
    (draft,) = index_target(build_draft(name, before, after), pool).drafts
    return draft


def describe_effects(name: str, versions: Any) -> list[Any]:
    """Return the added, changed and removed objects as data, without the name of the target."""
    before, after = ({data["metadata"]["name"]: data for data in fill(files, name).values()} for files in versions)
    keys = sorted({*before, *after})
    effects = [(key, before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)]
    return sorted(replace_name(json.dumps(effect), name) for effect in effects)


def replace_name(text: str, name: str) -> str:
    """Return the JSON text with sorted keys and without the name of the target."""
    if name not in VALUES:
        text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", TARGET, text)
    return json.dumps(json.loads(text), sort_keys=True)


def has_unique_objects(name: str, versions: Any) -> bool:
    """Return whether each object is in one file only. Packages with equal objects are invalid."""
    counts = [len({fill(data["metadata"]["name"], name) for data in files.values()}) for files in versions]
    return counts == [len(files) for files in versions]


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(TARGETS, TARGETS, pairs_of_versions(), EMITTERS)
def test_drafts_of_one_variant_have_equal_effects(first: str, second: str, pair: tuple[Any, Any], emitter: Any) -> None:
    assume(first != second)
    assume(all(has_unique_objects(name, versions) for name, versions in zip((first, second), pair, strict=True)))
    pool = VariantPool()
    one, two = index_draft(first, pair[0], emitter, pool), index_draft(second, pair[1], emitter, pool)

    if one.variant_digest == two.variant_digest:
        assert describe_effects(first, pair[0]) == describe_effects(second, pair[1])


@settings(max_examples=examples(150), deadline=None)
@given(st.tuples(FILES_OF_WORDS, FILES_OF_WORDS), EMITTERS)
def test_drafts_of_one_template_are_one_variant(versions: Any, emitter: Any) -> None:
    pool = VariantPool()
    drafts = [index_draft(name, versions, emitter, pool) for name in ("berlin", "lisbon", "oslo-1", "oslo")]

    assert len({draft.variant_digest for draft in drafts}) == 1


@settings(max_examples=examples(100), deadline=None)
@given(TARGETS, st.tuples(FILES, FILES), EMITTERS)
def test_digests_do_not_depend_on_the_pool(name: str, versions: Any, emitter: Any) -> None:
    used = VariantPool()
    index_draft("other", versions, emitter, used)

    assert index_draft(name, versions, emitter, used) == index_draft(name, versions, emitter, VariantPool())


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(TARGETS, min_size=2, max_size=4, unique=True), pairs_of_versions(), EMITTERS)
def test_variants_and_risks_do_not_depend_on_shared_contents(
    names: list[str], pair: tuple[Any, Any], emitter: Any
) -> None:
    pools = VariantPool(), VariantPool(shares_contents=True)
    own, shared = (
        [index_draft(name, versions, emitter, pool) for versions in pair for name in names] for pool in pools
    )

    assert [draft.variant_digest for draft in shared] == [draft.variant_digest for draft in own]
    assert [draft.content.risk.risk_class for draft in shared] == [draft.content.risk.risk_class for draft in own]


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(TARGETS, pairs_of_versions(), EMITTERS)
def test_different_values_are_different_variants(name: str, pair: tuple[Any, Any], emitter: Any) -> None:
    assume(all(has_unique_objects(name, versions) for versions in pair))
    assume(describe_effects(name, pair[0]) != describe_effects(name, pair[1]))
    pool = VariantPool()
    first, second = (index_draft(name, versions, emitter, pool) for versions in pair)

    assert first.change_key == second.change_key
    assert first.variant_digest != second.variant_digest
