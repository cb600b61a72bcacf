"""Tests of the list keys in CustomResourceDefinitions, including hostile definitions."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.schema import MergeSchemas, load_builtin_merge_schemas
from reconciler.krm.schema.merge_schemas import ATOMIC_SCHEMA, UNKNOWN_SCHEMA, MergeSchema

NAMED = {"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}}
PATCH = {
    "type": "array",
    "items": NAMED,
    "x-kubernetes-patch-strategy": "merge",
    "x-kubernetes-patch-merge-key": "name",
}
LIST_MAP = {"type": "array", "items": NAMED, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}


def build_crd(schema: Any, *, kind: str = "Gateway", group: str = "example.org", version: str = "v1") -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {
            "group": group,
            "names": {"kind": kind},
            "versions": [{"name": version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def build_crd_with_list(schema: Any, **also: Any) -> dict[str, Any]:
    return build_crd(
        {"type": "object", "properties": {"spec": {"type": "object", "properties": {"list": schema}, **also}}}
    )


def find_list_schema(document: dict[str, Any], *, compat: bool = False) -> MergeSchema:
    shapes = load_builtin_merge_schemas().with_crds(document, compat=compat)
    return shapes.find_schema("example.org/v1", "Gateway").find_field("spec").find_field("list")


@pytest.mark.parametrize(
    ("schema", "safe", "compat"),
    [
        pytest.param(PATCH, ("name",), ("name",), id="patch-merge-key"),
        pytest.param(
            {**PATCH, "x-kubernetes-list-map-keys": ["name", "port"]},
            ("name", "port"),
            ("name", "port"),
            id="map-keys-beat-the-merge-key",
        ),
        pytest.param(
            {**PATCH, "x-kubernetes-patch-strategy": "merge,retainKeys"}, ("name",), ("name",), id="retain-keys"
        ),
        pytest.param({**PATCH, "x-kubernetes-patch-strategy": "replace"}, None, None, id="another-strategy"),
        pytest.param({**PATCH, "x-kubernetes-patch-strategy": "nomerge"}, None, None, id="not-quite-merge"),
        pytest.param(
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"},
            (),
            (),
            id="patch-set",
        ),
        pytest.param(LIST_MAP, ("name",), None, id="list-type-map-counts-in-safe"),
        pytest.param({**LIST_MAP, "x-kubernetes-list-map-keys": []}, None, None, id="map-without-keys"),
        pytest.param({**LIST_MAP, "x-kubernetes-list-type": "atomic"}, None, None, id="atomic"),
        pytest.param(
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            (),
            None,
            id="list-type-set",
        ),
        pytest.param(
            {"type": "array", "items": NAMED, "x-kubernetes-list-type": "set"}, None, None, id="set-of-objects"
        ),
        pytest.param({"type": "array", "items": NAMED}, None, None, id="list-without-merge-type"),
        pytest.param(
            {"items": NAMED, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
            ("name",),
            None,
            id="no-type-but-items",
        ),
    ],
)
def test_keys_of_a_list(schema: Any, safe: tuple[str, ...] | None, compat: tuple[str, ...] | None) -> None:
    assert find_list_schema(build_crd_with_list(schema)).keys == safe
    assert find_list_schema(build_crd_with_list(schema), compat=True).keys == compat


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param({"type": "array", "items": NAMED}, False, id="a-list-in-a-schema-is-atomic"),
        pytest.param({"type": "object"}, True, id="a-map-without-fields"),
        pytest.param({}, True, id="anything"),
        pytest.param({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, True, id="free-form"),
        pytest.param(
            {"type": "object", "properties": {"a": {}}, "x-kubernetes-preserve-unknown-fields": True},
            True,
            id="free-form-beside-fields",
        ),
        pytest.param({"type": "object", "properties": {"a": {}}}, False, id="a-map-of-named-fields"),
        pytest.param({"type": "object", "additionalProperties": True}, True, id="fields-of-any-kind"),
    ],
)
def test_fields_without_schema_are_inferred(schema: Any, *, expected: bool) -> None:
    shape = find_list_schema(build_crd_with_list(schema))

    assert (shape.find_field("else") is UNKNOWN_SCHEMA) == expected
    assert (shape.find_field("else") is ATOMIC_SCHEMA) == (not expected)


def test_elements_and_maps_have_their_own_schema() -> None:
    deep = {"type": "array", "items": {"type": "object", "additionalProperties": LIST_MAP}}

    assert find_list_schema(build_crd_with_list(deep)).element_schema.find_field("any").keys == ("name",)


def test_defaults_of_keys() -> None:
    items = {"properties": {"protocol": {"default": "TCP"}, "port": {"default": 80}, "other": {"default": "x"}}}
    schema = {**LIST_MAP, "items": items, "x-kubernetes-list-map-keys": ["port", "protocol"]}

    assert find_list_schema(build_crd_with_list(schema)).defaults == {"protocol": "TCP"}


def test_every_version_has_its_own_schema() -> None:
    document = build_crd({"properties": {"list": LIST_MAP}})
    document["spec"]["versions"].append({"name": "v2", "schema": {"openAPIV3Schema": {"properties": {"list": PATCH}}}})
    shapes = load_builtin_merge_schemas().with_crds(document, compat=True)

    assert shapes.find_schema("example.org/v1", "Gateway").find_field("list").keys is None
    assert shapes.find_schema("example.org/v2", "Gateway").find_field("list").keys == ("name",)


@pytest.mark.parametrize(
    "versions",
    [
        pytest.param({"version": "v1alpha1"}, id="one-version"),
        pytest.param({"version": "v1", "versions": [{"name": "v1alpha1"}, {"name": "v1"}]}, id="several-versions"),
    ],
)
def test_v1beta1_has_one_schema_for_all_versions(versions: dict[str, Any]) -> None:
    spec = {"group": "example.org", "names": {"kind": "Gateway"}, **versions}
    spec["validation"] = {"openAPIV3Schema": {"properties": {"list": LIST_MAP}}}
    document = {"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition", "spec": spec}

    shapes = load_builtin_merge_schemas().with_crds(document)

    assert shapes.find_schema("example.org/v1alpha1", "Gateway").find_field("list").keys == ("name",)


def test_earlier_definitions_and_builtin_kinds_have_priority() -> None:
    ours, theirs = build_crd({"properties": {"list": LIST_MAP}}), build_crd({"properties": {"list": {"type": "array"}}})
    pod = build_crd({"properties": {"list": LIST_MAP}}, kind="Deployment", group="apps")

    shapes = load_builtin_merge_schemas().with_crds(ours).with_crds(theirs, pod)

    assert shapes.find_schema("example.org/v1", "Gateway").find_field("list").keys == ("name",)
    assert shapes.find_schema("apps/v1", "Deployment") is load_builtin_merge_schemas().find_schema(
        "apps/v1", "Deployment"
    )


def test_schemas_are_immutable() -> None:
    shapes = load_builtin_merge_schemas()
    shapes.with_crds(build_crd_with_list(PATCH))

    assert shapes.find_schema("example.org/v1", "Gateway") is UNKNOWN_SCHEMA


def test_metadata_schema_is_known_only_in_the_safe_profile() -> None:
    document = build_crd_with_list(PATCH)

    safe = load_builtin_merge_schemas().with_crds(document).find_schema("example.org/v1", "Gateway")
    compat = load_builtin_merge_schemas().with_crds(document, compat=True).find_schema("example.org/v1", "Gateway")

    assert safe.find_field("metadata").find_field("finalizers").keys == ()
    assert compat.find_field("metadata").find_field("finalizers").keys is None


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({}, id="empty"),
        pytest.param({**build_crd_with_list(PATCH), "kind": "Gateway"}, id="another-kind"),
        pytest.param({**build_crd_with_list(PATCH), "apiVersion": "apiextensions.k8s.io/v9"}, id="another-version"),
        pytest.param({**build_crd_with_list(PATCH), "spec": []}, id="spec-is-a-list"),
        pytest.param(
            {**build_crd_with_list(PATCH), "spec": {"group": 1, "names": {"kind": "Gateway"}}}, id="group-is-a-number"
        ),
        pytest.param(build_crd(None), id="no-schema"),
        pytest.param(build_crd([]), id="schema-is-a-list"),
        pytest.param(build_crd({}, version=1), id="version-is-a-number"),  # type: ignore[arg-type]
    ],
)
def test_invalid_definition_is_ignored(document: dict[str, Any]) -> None:
    assert load_builtin_merge_schemas().with_crds(document).find_schema("example.org/v1", "Gateway") is UNKNOWN_SCHEMA


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param("array", id="schema-is-text"),
        pytest.param({"properties": []}, id="properties-are-a-list"),
        pytest.param({"type": ["array"], "items": {}}, id="type-is-a-list"),
        pytest.param({**LIST_MAP, "x-kubernetes-list-map-keys": "name"}, id="keys-are-text"),
        pytest.param({**LIST_MAP, "x-kubernetes-list-map-keys": [1, {}]}, id="keys-are-no-names"),
        pytest.param({**LIST_MAP, "x-kubernetes-list-type": ["map"]}, id="list-type-is-a-list"),
        pytest.param({**PATCH, "x-kubernetes-patch-strategy": ["merge"]}, id="strategy-is-a-list"),
        pytest.param({"type": "array", "items": [NAMED], "x-kubernetes-list-type": "set"}, id="items-are-a-list"),
    ],
)
def test_wrong_types_are_ignored(schema: Any) -> None:
    assert find_list_schema(build_crd_with_list(schema)).keys is None


def test_invalid_merge_key_makes_the_list_a_set() -> None:
    assert find_list_schema(build_crd_with_list({**PATCH, "x-kubernetes-patch-merge-key": 3})).keys == ()


def test_exponential_schema_is_read_lazily() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(60):
        schema = {"properties": {"a": schema, "b": schema}, "additionalProperties": schema, "items": schema}

    shape = load_builtin_merge_schemas().with_crds(build_crd(schema)).find_schema("example.org/v1", "Gateway")
    for name in "abc" * 10:
        shape = shape.find_field(name)

    assert shape.keys is None


def test_recursive_schema_terminates() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["additionalProperties"] = schema
    schema["properties"]["list"] = {"type": "array"}
    schema["properties"]["list"]["items"] = schema["properties"]["list"]

    shape = MergeSchemas().with_crds(build_crd(schema)).find_schema("example.org/v1", "Gateway")

    assert shape.find_field("a").find_field("b").find_field("list").element_schema.element_schema.keys is None


def test_definitions_are_read_lazily() -> None:
    class UnreadableMapping(dict[str, Any]):
        def get(self, *_: Any) -> Any:
            raise AssertionError("the schema of a field was read")

    shapes = load_builtin_merge_schemas().with_crds(build_crd({"properties": {"spec": UnreadableMapping()}}))

    assert shapes.find_schema("example.org/v1", "Gateway").find_field("metadata").find_field("finalizers").keys == ()


def test_comparison_of_schemas_does_not_read_them() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(60):
        schema = {"properties": {"a": schema, "b": schema}}

    shapes = [
        load_builtin_merge_schemas().with_crds(build_crd(schema)).find_schema("example.org/v1", "Gateway")
        for _ in range(2)
    ]

    assert shapes[0] != shapes[1]
    assert shapes[0] != UNKNOWN_SCHEMA
