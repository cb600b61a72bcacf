"""Tests of the validation of custom resources with their definition."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.schema.custom_resources import CustomResourceKinds, read_custom_resource_kinds

API = "apiextensions.k8s.io/v1"


def build_crd(schema: Any, *, api: str = API, **version: Any) -> dict[str, Any]:
    """Return a definition of example.org/v1 Site."""
    mapping = {"name": "v1", "served": True, "schema": {"openAPIV3Schema": schema}, **version}
    spec = {"group": "example.org", "names": {"kind": "Site"}, "versions": [mapping]}
    return {"apiVersion": api, "kind": "CustomResourceDefinition", "metadata": {"name": "s"}, "spec": spec}


def build_spec_schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def find_violations(schema: Any, spec: Any, **more: Any) -> list[str] | None:
    data = {"apiVersion": "example.org/v1", "kind": "Site", "metadata": {"name": "a"}, "spec": spec, **more}
    version = read_custom_resource_kinds([build_crd(schema)]).get_versions("example.org", "Site")["v1"]
    violations = version.find_violations(data)
    if violations is None:
        return None
    return [
        f"{'/'.join(map(str, violation.path))} {violation.rule} {','.join(violation.names)}".strip()
        for violation in violations
    ]


@pytest.mark.parametrize(
    ("schema", "spec", "expected"),
    [
        pytest.param(build_spec_schema(size={"type": "integer"}), {"size": 1}, [], id="right"),
        pytest.param(build_spec_schema(size={"type": "integer"}), {"size": "1"}, ["spec/size type integer"], id="a-type"),
        pytest.param(build_spec_schema(size={"enum": ["a", "b"]}), {"size": "c"}, ['spec/size enum "a","b"'], id="a-choice"),
        pytest.param(build_spec_schema(size={}), {"siez": 1}, ["spec unknown siez"], id="a-field-that-is-dropped"),
        pytest.param(build_spec_schema(port={"x-kubernetes-int-or-string": True}), {"port": "http"}, [], id="a-port-by-name"),
        pytest.param(build_spec_schema(port={"x-kubernetes-int-or-string": True}), {"port": []},
                     ["spec/port type integer,string"], id="a-port-that-is-none"),
        pytest.param(build_spec_schema(note={"type": "string", "nullable": True}), {"note": None}, [], id="a-null-that-may-be"),
        pytest.param(build_spec_schema(note={"enum": ["a"], "nullable": True}), {"note": None}, [], id="a-null-beside-choices"),
        pytest.param(build_spec_schema(note={"type": "string"}), {"note": None}, ["spec/note type string"], id="a-null"),
        pytest.param(build_spec_schema(free={"type": "object", "x-kubernetes-preserve-unknown-fields": True,
                                   "properties": {"a": {"type": "string"}}}),
                     {"free": {"a": "b", "c": 1}}, [], id="fields-that-are-kept"),
        pytest.param(build_spec_schema(labels={"type": "object", "additionalProperties": {"type": "string"}}),
                     {"labels": {"a": 1}}, ["spec/labels/a type string"], id="a-map"),
        pytest.param(build_spec_schema(doors={"type": "array", "items": {"type": "object", "required": ["name"],
                                                              "properties": {"name": {"type": "string"}}}}),
                     {"doors": [{"name": "a"}, {}]}, ["spec/doors/1 required name"], id="an-item"),
        pytest.param({"type": "object", "properties": {"spec": {
            "type": "object", "properties": {"a": {}, "b": {}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}}},
            {"a": 1}, [], id="alternatives-close-nothing"),
        pytest.param(build_spec_schema(pod={"type": "object", "x-kubernetes-embedded-resource": True,
                                  "properties": {"spec": {"type": "object"}}}),
                     {"pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}}, [],
                     id="a-resource-inside"),
        pytest.param({"type": "object"}, {"any": 1}, [], id="schema-without-properties"),
        pytest.param(build_spec_schema(a={"pattern": "(?=b)"}), {"a": "c"}, None, id="a-pattern-that-no-engine-takes"),
        pytest.param(build_spec_schema(a={"type": "text"}), {"a": "c"}, None, id="a-type-that-is-none"),
        pytest.param(build_spec_schema(a=7), {"a": "c"}, [], id="a-schema-that-is-none"),
    ],
)  # fmt: skip
def test_violations(schema: Any, spec: Any, expected: list[str] | None) -> None:
    assert find_violations(schema, spec) == expected


def test_fields_of_all_objects_are_not_required_in_the_schema() -> None:
    assert find_violations(build_spec_schema(), {}, status={}) == ["unknown status"]


def test_pattern_takes_linear_time() -> None:
    (item,) = find_violations(build_spec_schema(a={"pattern": "^(a+)+$"}), {"a": "a" * 5_000 + "b"}) or ()

    assert item.startswith("spec/a other")


def test_deep_schema_terminates() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(300):
        deep = {"type": "object", "properties": {"a": deep}}

    assert find_violations(deep, {}) is not None


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"kind": "CustomResourceDefinition"}, id="nothing-in-it"),
        pytest.param({**build_crd({}), "kind": "Site"}, id="another-kind"),
        pytest.param(build_crd({}, api="example.org/v1"), id="another-group"),
        pytest.param({**build_crd({}), "spec": []}, id="a-spec-that-is-none"),
        pytest.param(
            {**build_crd({}), "spec": {"group": "a", "names": {"kind": "B"}, "versions": [1]}}, id="a-bad-version"
        ),
        pytest.param(
            {**build_crd({}), "spec": {"group": "a", "names": {"kind": "B"}, "versions": 7}}, id="no-versions"
        ),
    ],
)
def test_invalid_definition_is_ignored(document: Any) -> None:
    assert read_custom_resource_kinds([document]) == CustomResourceKinds()


def test_version_that_is_not_served_and_one_schema_for_all_versions() -> None:
    spec = {"group": "example.org", "names": {"kind": "Site"}, "validation": {"openAPIV3Schema": build_spec_schema(a={})},
            "versions": [{"name": "v1"}, {"name": "v2", "served": False}]}  # fmt: skip
    old = {"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition", "spec": spec}
    versions = read_custom_resource_kinds([old]).get_versions("example.org", "Site")

    assert {name: custom_resource_version.served for name, custom_resource_version in versions.items()} == {
        "v1": True,
        "v2": False,
    }
    assert versions["v1"].find_violations({"spec": {"b": 1}})


def test_definition_of_the_cluster_has_priority_over_the_config() -> None:
    config, cluster = (
        read_custom_resource_kinds([build_crd(build_spec_schema(a={}))]),
        read_custom_resource_kinds([build_crd(build_spec_schema(b={}))]),
    )
    version = config.with_overrides(cluster).get_versions("example.org", "Site")["v1"]

    assert version.find_violations({"spec": {"b": 1}}) == ()
