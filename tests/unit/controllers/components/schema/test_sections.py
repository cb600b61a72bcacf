"""Tests of the two sections of a schema, parameters and envOverrides, and of both together."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from reconciler.controllers.components.schema.openapi import is_declared
from reconciler.controllers.components.schema.sections import ComponentSchema
from tests.unit.controllers.components.schema.schema_readers import read_component_schema

AT = ("spec", "schema")
EMPTY = {"type": "object", "properties": {}}


def schema(text: str) -> ComponentSchema:
    return read_component_schema(yaml.safe_load(text), AT)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(None, id="absent"),
        pytest.param({}, id="empty"),
        pytest.param({"parameters": None, "envOverrides": {}, "x-note": 1}, id="empty-sections"),
    ],
)
def test_empty_schema_has_no_fields(data: Any) -> None:
    assert read_component_schema(data, AT) == ComponentSchema(EMPTY, EMPTY, EMPTY)


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        pytest.param(
            {"types": {"string": "integer"}},
            "ShorthandFieldType",
            'spec.schema.types.string must not redefine the built-in type "string"',
            id="type-that-is-there",
        ),
        pytest.param(
            {"types": {"a b": "integer"}},
            "ShorthandFieldType",
            'spec.schema.types.a b must have a name of letters, digits, - and _ that begins with a letter or _, but has the name "a b"',
            id="type-without-a-name",
        ),
        pytest.param(
            {"parameters": {"$default": {}}},
            "ShorthandFieldType",
            "spec.schema.parameters.$default is not allowed here; only objects inside parameters or envOverrides can have $default",
            id="default-of-a-section",
        ),
    ],
)
def test_invalid_schema_is_reported(data: Any, code: str, message: str) -> None:
    (finding,) = read_component_schema(data, AT).field_findings

    assert (finding.code.name, finding.message) == (code, message)


def test_both_sections_are_merged() -> None:
    read = schema("""
        parameters:
          limits: {cpu: "string | default=1", disk: "string | required=true"}
          name: string | required=true
        envOverrides:
          limits: {memory: string | required=true}
          count: integer | default=1
    """)

    assert read.field_findings == ()
    assert read.full == {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "default": 1},
            "limits": {
                "type": "object",
                "properties": {
                    "cpu": {"type": "string", "default": "1"},
                    "disk": {"type": "string"},
                    "memory": {"type": "string"},
                },
                "required": ["disk", "memory"],
            },
            "name": {"type": "string"},
        },
        "required": ["name"],
    }
    assert list(read.full["properties"]) == ["count", "limits", "name"]


@pytest.mark.parametrize(
    ("parameters", "env_overrides", "where"),
    [
        pytest.param({"a": "string"}, {"a": "string"}, ("a",), id="row-10-same-leaf"),
        pytest.param({"a": {"b": "string", "c": "string"}}, {"a": {"b": "integer"}}, ("a", "b"), id="leaf-inside"),
        pytest.param({"a": "object"}, {"a": {"b": "string"}}, ("a",), id="free-form-and-fields"),
        pytest.param({"a": {"b": "string"}}, {"a": "string"}, ("a",), id="fields-and-text"),
        pytest.param({"a": "[]string"}, {"a": "[]string"}, ("a",), id="lists"),
        pytest.param({"a": "map[string]string"}, {"a": "map[string]string"}, ("a",), id="maps"),
    ],
)
def test_field_in_both_sections_is_an_error(parameters: Any, env_overrides: Any, where: tuple[str, ...]) -> None:
    (finding,) = read_component_schema({"parameters": parameters, "envOverrides": env_overrides}, AT).field_findings

    assert finding.code.name == "SchemaFieldCollision"
    assert finding.path == (*AT, "envOverrides", *where)
    assert finding.message == (
        f"spec.schema.envOverrides.{'.'.join(where)} is also declared in parameters; "
        "declare each field in only one section"
    )


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        pytest.param({"x": "string | default=1"}, {"y": "string"}, {}, id="one-side-fills-itself"),
        pytest.param({"x": "string | default=1"}, {"y": "string | default=2"}, {}, id="both-do"),
        pytest.param({"x": "string | default=1"}, {"y": "string | required=true"}, None, id="the-other-one-needs-more"),
        pytest.param(
            {"x": "string", "$default": {"x": "1"}},
            {"y": "string", "$default": {"y": "2"}},
            {"x": "1", "y": "2"},
            id="overlaid",
        ),
        pytest.param({"x": "string"}, {"y": "string"}, None, id="neither"),
    ],
)
def test_default_of_an_object_in_both_sections(left: Any, right: Any, expected: Any) -> None:
    read = read_component_schema({"parameters": {"a": left}, "envOverrides": {"a": right}}, AT)

    assert read.field_findings == ()
    assert read.full["properties"]["a"].get("default") == expected


def test_default_must_be_valid_together_with_the_other_section() -> None:
    read = schema("""
        parameters: {a: {x: string, $default: {x: "1"}}}
        envOverrides: {a: {y: string | required=true}}
    """)

    assert [finding.message for finding in read.field_findings] == [
        (
            "spec.schema.envOverrides.a has a default that is not valid after the merge with the default in parameters: "
            "default.y is missing; set it to a string"
        )
    ]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param((), True, id="all"),
        pytest.param(("name",), True, id="field"),
        pytest.param(("nobody",), False, id="no-field"),
        pytest.param(("ports", 3), True, id="item"),
        pytest.param(("ports", 3, "number"), True, id="field-of-an-item"),
        pytest.param(("ports", "number"), False, id="field-of-a-list"),
        pytest.param(("labels", "any"), True, id="entry"),
        pytest.param(("labels", "any", "more"), False, id="below-an-entry"),
        pytest.param(("values", "a", 1, "b"), True, id="below-free-form"),
        pytest.param(("name", "more"), False, id="below-text"),
        pytest.param(("name", 0), False, id="item-of-text"),
    ],
)
def test_declared_paths(path: tuple[str | int, ...], expected: bool) -> None:
    read = schema("""
        parameters: {name: string, ports: "[]Port", labels: "map[string]string", values: object}
        types: {Port: {number: integer}}
    """)

    assert is_declared(read.parameters, path) is expected
