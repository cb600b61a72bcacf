"""Tests of the CRDs and JSON Schemas of component types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.controllers.components.schema.crd import DeveloperAddon, build_crd, build_developer_schema
from reconciler.controllers.components.schema.openapi import Schema, build_json_schema
from reconciler.controllers.components.schema.sections import ComponentSchema
from reconciler.controllers.components.schema.validation import validate_value
from reconciler.krm.yaml import WIDE_INDENT_STYLE, emit
from tests.support.examples import examples
from tests.unit.controllers.components.schema.schema_readers import read_component_schema
from tests.unit.controllers.components.schema.schema_strategies import components, values

AT = ("spec", "schema")


def parameters(text: str) -> Schema:
    read = read_component_schema(yaml.safe_load(text), AT)
    assert read.field_findings == ()
    return read.parameters


def schema_with_infos(text: str) -> Schema:
    return read_component_schema(yaml.safe_load(text), AT).parameters


def spec_of(definition: dict[str, Any]) -> Any:
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def test_complete_crd() -> None:
    schema = parameters("""
        types: {Route: {path: string | required=true, strip: boolean | default=false}}
        parameters:
          routes: "[]Route | required=true minItems=1"
          timeout: {read: string | default=30s}
    """)

    assert (
        emit(build_crd("EdgeProxy", "platform", schema), WIDE_INDENT_STYLE)
        == """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: edgeproxies.platform
spec:
  group: platform
  scope: Namespaced
  names:
    kind: EdgeProxy
    listKind: EdgeProxyList
    plural: edgeproxies
    singular: edgeproxy
  versions:
    - name: v1alpha1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                routes:
                  type: array
                  minItems: 1
                  items:
                    type: object
                    properties:
                      path:
                        type: string
                      strip:
                        type: boolean
                        default: false
                    required:
                      - path
                timeout:
                  type: object
                  default: {}
                  properties:
                    read:
                      type: string
                      default: 30s
              required:
                - routes
          required:
            - spec
"""
    )


@pytest.mark.parametrize(
    ("line", "in_crd", "for_editors"),
    [
        pytest.param(
            "string | queryContainers=true queryResources=Secret",
            {"type": "string"},
            {"type": "string", "x-query-containers": True, "x-query-resources": "Secret"},
            id="hints-are-for-pages",
        ),
        pytest.param(
            "'[]string | uniqueItems=true'",
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            id="set",
        ),
        pytest.param(
            "'[]object | uniqueItems=true'",
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "x-kubernetes-preserve-unknown-fields": True,
                },
                "x-kubernetes-list-type": "set",
            },
            {"type": "array", "items": {"type": "object"}, "uniqueItems": True},
            id="set-of-maps",
        ),
        pytest.param(
            "'[][]string | uniqueItems=true'",
            {
                "type": "array",
                "items": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
                "x-kubernetes-list-type": "set",
            },
            {"type": "array", "items": {"type": "array", "items": {"type": "string"}}, "uniqueItems": True},
            id="set-of-lists",
        ),
        pytest.param(
            "'[]Maybe | uniqueItems=true'",
            {"type": "array", "items": {"type": "string", "nullable": True}},
            {"type": "array", "items": {"type": ["string", "null"]}, "uniqueItems": True},
            id="set-of-nullable-values",
        ),
        pytest.param(
            "integer | minimum=1 exclusiveMinimum=true maximum=3",
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 3},
            {"type": "integer", "maximum": 3, "exclusiveMinimum": 1},
            id="exclusive",
        ),
        pytest.param(
            "string | nullable=true example=a pattern=^a",
            {"type": "string", "nullable": True, "example": "a", "pattern": "^a"},
            {"type": ["string", "null"], "pattern": "^a", "examples": ["a"]},
            id="null-and-example",
        ),
    ],
)
def test_field_in_crd_and_json_schema(line: str, in_crd: Any, for_editors: Any) -> None:
    schema = parameters(f"{{parameters: {{f: {line}}}, types: {{Maybe: string | nullable=true}}}}")

    assert spec_of(build_crd("Thing", "example.org", schema))["properties"]["f"] == in_crd
    assert build_json_schema(schema)["properties"]["f"] == for_editors


def test_default_of_an_object_contains_defaults_of_required_fields() -> None:
    schema = parameters("{parameters: {f: {a: string | default=x, b: {c: boolean | default=true}}}}")
    strict = schema_with_infos("{parameters: {f: {a: string | required=true default=x, b: string | default=y}}}")

    assert spec_of(build_crd("Thing", "example.org", schema))["properties"]["f"]["default"] == {}
    assert spec_of(build_crd("Thing", "example.org", strict))["properties"]["f"]["default"] == {"a": "x", "b": "y"}


def test_enum_of_a_nullable_field_contains_null() -> None:
    schema = parameters("{parameters: {f: 'string | nullable=true enum=a,b'}}")

    assert build_json_schema(schema)["properties"]["f"]["enum"] == ["a", "b", None]


def test_json_schema_names_its_dialect_and_refuses_other_fields() -> None:
    assert build_json_schema(parameters("{parameters: {f: string | required=true}}")) == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"f": {"type": "string"}},
        "required": ["f"],
        "additionalProperties": False,
    }


def test_shared_type_is_written_without_yaml_aliases() -> None:
    schema = parameters("""
        types: {Box: {size: string, $default: {size: 1Gi}}}
        parameters: {first: Box, second: Box}
    """)

    assert "&" not in yaml.safe_dump(build_crd("Thing", "example.org", schema))


def list_structural_errors(schema: dict[str, Any], *, is_item: bool = False) -> Iterator[str]:
    """Yield the violations of the rules for structural schemas in the Kubernetes documentation."""
    if schema.get("type") not in ("string", "integer", "number", "boolean", "object", "array"):
        yield "every node has a type"
    if "properties" in schema and "additionalProperties" in schema:
        yield "properties and additionalProperties exclude one another"
    if schema.get("additionalProperties") is False or schema.get("uniqueItems"):
        yield "additionalProperties: false and uniqueItems are forbidden"
    if forbidden := schema.keys() - KEYWORDS:
        yield f"{sorted(forbidden)} mean nothing"
    if schema.get("type") == "array" and "items" not in schema:
        yield "a list has a schema for its items"
    if is_item and "default" in schema:
        yield "an item has no default"
    if schema.get("x-kubernetes-list-type") == "set":
        yield from _list_set_errors(schema["items"])
    if "default" in schema and (wrong := validate_value(schema["default"], schema, ("default",))):
        yield f"a default satisfies its schema: {wrong[0].message}"
    for item in (*schema.get("properties", {}).values(),):
        yield from list_structural_errors(item)
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            yield from list_structural_errors(schema[keyword], is_item=True)


def _list_set_errors(items: dict[str, Any]) -> Iterator[str]:
    if items.get("nullable"):
        yield "items of a set are not null"
    if items["type"] == "array" and items.get("x-kubernetes-list-type") != "atomic":
        yield "lists in a set are atomic"
    if items["type"] == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield "maps in a set are atomic"


KEYWORDS = {
    *("type", "title", "description", "format", "nullable", "enum", "default", "example", "pattern"),
    *("minLength", "maxLength", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
    *("minItems", "maxItems", "minProperties", "maxProperties", "items", "additionalProperties", "properties"),
    *("required", "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-preserve-unknown-fields"),
}


@settings(max_examples=examples(40), deadline=None)
@given(components(), components())
def test_each_crd_is_a_structural_schema(definition: ComponentSchema, addon: ComponentSchema) -> None:
    schema, _ = build_developer_schema(definition, [DeveloperAddon("extra", "More", addon, {}, ())])

    assert list(list_structural_errors(spec_of(build_crd("Thing", "example.org", schema)))) == []


@settings(max_examples=examples(40), deadline=None)
@given(components(), st.data())
def test_json_schema_accepts_exactly_the_valid_values(component: ComponentSchema, data: st.DataObject) -> None:
    editor = json.loads(json.dumps(build_json_schema(component.full)))
    value = data.draw(values(component.full))
    jsonschema_rs.meta.validate(editor)
    items = [finding.message for finding in validate_value(value, component.full, ("spec",))]

    # JSON Schema does not limit integers to 64 bits.
    if not any("9223372036854775807" in message for message in items):
        assert jsonschema_rs.Draft202012Validator(editor).is_valid(value) is (not items)
