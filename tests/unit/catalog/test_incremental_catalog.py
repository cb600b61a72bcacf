"""Tests of incremental catalogs: the result is equal to a catalog that is read without a previous one."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.catalog.catalog import Catalog, ParseCache, read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.krm.objects import ObjectKey
from tests.support.examples import examples

OBJECT = "apiVersion: {group}v1\nkind: {kind}\nmetadata: {{name: {name}}}\ndata: {{value: {value}}}\n"
TEXTS = st.one_of(
    st.builds(
        OBJECT.format,
        group=st.sampled_from(("", "config.porch.kpt.dev/")),
        kind=st.sampled_from(("ConfigMap", "Repository", "Repositry")),
        name=st.sampled_from(("a", "b", '""')),
        value=st.integers(0, 2),
    ),
    st.sampled_from(("kind: [\n", "- a list\n", "# nothing\n")),
)
FILES = st.dictionaries(
    st.sampled_from(("one.yaml", "two.yaml", "more/three.yaml", ".hidden.yaml")),
    st.lists(TEXTS, min_size=1, max_size=3).map("---\n".join),
    max_size=4,
)


def build_tree(files: Mapping[str, str]) -> FileTree:
    return FileTree({path: File(text.encode()) for path, text in files.items()})


def describe_catalog(catalog: Catalog) -> list[object]:
    """Return all data of a catalog, with the content and location of its objects."""
    objects = [
        (key, config_object.file, config_object.document.line, config_object.data)
        for key, config_object in catalog.objects.items()
    ]
    kinds = {
        kind: [config_object.key for config_object in catalog.objects_of_kind(*kind)]
        for kind in {(key.group, key.kind) for key in catalog.objects}
    }
    copies = [
        (key, [(config_object.file, config_object.document.line) for config_object in config_objects])
        for key, config_objects in catalog.copies.items()
    ]
    return [objects, kinds, copies, catalog.unreadable, catalog.findings, catalog.duplicates, catalog.is_complete]


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(FILES, min_size=2, max_size=5))
def test_incremental_catalog_is_equal_to_a_full_catalog(configs: list[dict[str, str]]) -> None:
    memory: ParseCache = {}
    last: Catalog | None = None

    for files in configs:
        last = read_catalog(build_tree(files), memory, previous=last)

        assert describe_catalog(last) == describe_catalog(read_catalog(build_tree(files)))


def test_unchanged_object_is_the_same_object() -> None:
    remaining, moved = (OBJECT.format(group="", kind="ConfigMap", name=name, value=1) for name in "ab")
    memory: ParseCache = {}
    before = read_catalog(build_tree({"one.yaml": remaining, "two.yaml": moved}), memory)

    after = read_catalog(build_tree({"one.yaml": remaining, "three.yaml": moved}), memory, previous=before)

    a, b = (ObjectKey("", "ConfigMap", "", name) for name in "ab")
    assert after.objects[a] is before.objects[a]
    assert after.objects[b] is not before.objects[b]
    assert after.objects[b].file == "three.yaml"
