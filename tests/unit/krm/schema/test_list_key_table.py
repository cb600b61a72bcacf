"""Tests of the list key table in the settings, which has priority over every schema."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.schema import ListKeys, MergeSchemas, load_builtin_merge_schemas, read_list_key_table
from reconciler.krm.schema.merge_schemas import ATOMIC_SCHEMA, UNKNOWN_SCHEMA, MergeSchema


def build_schemas_with_table(table: dict[str, Any]) -> MergeSchemas:
    rows, problems = read_list_key_table(table)
    assert not problems
    return load_builtin_merge_schemas().with_list_keys(rows)


def find_schema_at(shapes: MergeSchemas, api_version: str, kind: str, path: str) -> MergeSchema:
    shape = shapes.find_schema(api_version, kind)
    for step in path.split("/"):
        shape = shape.element_schema if step == "[]" else shape.find_field(step)
    return shape


@pytest.mark.parametrize(
    ("table", "api_version", "kind", "path", "keys"),
    [
        pytest.param({"a.org/G": {"spec/l": ["name"]}}, "a.org/v1", "G", "spec/l", ("name",), id="unknown-kind"),
        pytest.param({"a.org/G": {"spec/l": ["name"]}}, "a.org/v7", "G", "spec/l", ("name",), id="any-version"),
        pytest.param({"a.org/G": {"spec/l": ["name"]}}, "b.org/v1", "G", "spec/l", None, id="not-another-group"),
        pytest.param({"a.org/G": {"spec/l": ["name"]}}, "a.org/v1", "H", "spec/l", None, id="not-another-kind"),
        pytest.param({"a.org/G": {"l": ["a", "b"]}}, "a.org/v1", "G", "l", ("a", "b"), id="two-keys"),
        pytest.param({"a.org/G": {"l": []}}, "a.org/v1", "G", "l", (), id="set"),
        pytest.param({"a.org/G": {"l[]/m": ["n"]}}, "a.org/v1", "G", "l/[]/m", ("n",), id="inside-elements"),
        pytest.param({"a.org/G": {"l[][]/m": ["n"]}}, "a.org/v1", "G", "l/[]/[]/m", ("n",), id="lists-of-lists"),
        pytest.param({"a.org/G": {"m/*/l": ["n"]}}, "a.org/v1", "G", "m/any/l", ("n",), id="all-fields-of-a-map"),
        pytest.param({"Pod": {"spec/tolerations": ["key"]}}, "v1", "Pod", "spec/tolerations", ("key",), id="core"),
        pytest.param(
            {"Pod": {"spec/containers": ["image"]}}, "v1", "Pod", "spec/containers", ("image",), id="over-builtin"
        ),
        pytest.param({"Pod": {"spec/containers": ["image"]}}, "v1", "Pod", "spec/volumes", ("name",), id="others-stay"),
        pytest.param(
            {"Pod": {"spec/containers": ["image"]}}, "v1", "Pod", "spec/containers/[]/env", ("name",), id="below-it-too"
        ),
        pytest.param({"Pod": {"spec/containers": None}}, "v1", "Pod", "spec/containers", None, id="as-a-whole"),
    ],
)
def test_keys_from_the_table(
    table: dict[str, Any], api_version: str, kind: str, path: str, keys: tuple[str, ...] | None
) -> None:
    assert find_schema_at(build_schemas_with_table(table), api_version, kind, path).keys == keys


def test_atomic_list_is_not_inferred() -> None:
    shapes = build_schemas_with_table({"a.org/G": {"spec/l": None}})

    assert find_schema_at(shapes, "a.org/v1", "G", "spec/l") == ATOMIC_SCHEMA
    assert find_schema_at(shapes, "a.org/v1", "G", "spec/other") is UNKNOWN_SCHEMA


def test_table_has_priority_over_definitions_in_any_order() -> None:
    schema = {
        "properties": {"l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]}}
    }
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {
            "group": "a.org",
            "names": {"kind": "G"},
            "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}],
        },
    }

    assert build_schemas_with_table({"a.org/G": {"l": ["name"]}}).with_crds(crd).find_schema(
        "a.org/v1", "G"
    ).find_field("l").keys == ("name",)
    assert build_schemas_with_table({"a.org/G": {"m": ["name"]}}).with_crds(crd).find_schema(
        "a.org/v1", "G"
    ).find_field("l").keys == ("id",)


def test_last_row_has_priority_and_schemas_are_built_once() -> None:
    row = ListKeys("a.org", "G", ("l",), ("name",))
    shapes = (
        load_builtin_merge_schemas().with_list_keys([row]).with_list_keys([ListKeys("a.org", "G", ("l",), ("id",))])
    )

    assert shapes.find_schema("a.org/v1", "G").find_field("l").keys == ("id",)
    assert shapes.find_schema("a.org/v1", "G") is shapes.find_schema("a.org/v1", "G")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(
            [], "must be a mapping, but is []; each item must be a kind with the merge keys of its lists", id="a-list"
        ),
        pytest.param(
            {"a.org/": {"l": []}}, "a.org/: must be a kind with the merge keys of its lists, e.g.", id="no-kind"
        ),
        pytest.param(
            {"G": ["l"]}, "G: must be a kind with the merge keys of its lists, e.g.", id="lists-are-no-mapping"
        ),
        pytest.param({"G": {"": []}}, 'G: the path must be field names joined by "/"', id="empty-path"),
        pytest.param({"G": {"/spec/l": []}}, 'G: the path must be field names joined by "/"', id="leading-slash"),
        pytest.param({"G": {"spec/l[]": []}}, 'G: the path must be field names joined by "/"', id="ends-in-elements"),
        pytest.param({"G": {"l": "name"}}, 'G: the keys of "l" must be a list of unique field names', id="text"),
        pytest.param({"G": {"l": [1]}}, 'G: the keys of "l" must be a list of unique field names', id="numbers"),
        pytest.param({"G": {"l": ["a", "a"]}}, 'G: the keys of "l" must be a list of unique field names', id="twice"),
    ],
)
def test_invalid_table_is_reported(data: Any, problem: str) -> None:
    rows, problems = read_list_key_table(data)

    assert rows == ()
    assert [text.startswith(problem) for text in problems] == [True]


def test_invalid_row_does_not_remove_the_others() -> None:
    rows, problems = read_list_key_table({"G": {"l": ["name"], "m": 3}})

    assert rows == (ListKeys("", "G", ("l",), ("name",)),)
    assert len(problems) == 1
