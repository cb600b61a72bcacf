"""Tests of the shorthand writer: a written schema is read back as the same schema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.controllers.components.flatten.fields import ShorthandWriter
from reconciler.controllers.components.schema.openapi import Schema
from reconciler.controllers.components.schema.sections import ComponentSchema
from reconciler.krm.findings import Severity
from tests.unit.controllers.components.schema.schema_readers import read_component_schema
from tests.unit.controllers.components.schema.schema_strategies import components

AT = ("spec", "schema")


def write_and_read(schema: Schema, *, required_by_default: bool = False, key: str = "gauge") -> Schema:
    """Write an object schema as shorthand and return the schema that is read from it."""
    writer = ShorthandWriter({f"{key}-a": "string"}, required_by_default=required_by_default)
    written = {key: writer.write_fields(schema, key)}
    types = {f"{key}-a": "string", **writer.types}
    read = read_component_schema({"types": types, "parameters": written, "requiredByDefault": required_by_default}, AT)
    assert not [finding.message for finding in read.field_findings if finding.code.severity is Severity.ERROR], (
        written,
        types,
    )
    properties: Schema = read.parameters["properties"][key]
    return properties


@pytest.mark.slow
@given(components(), st.booleans())
def test_written_schema_is_read_back_as_the_same_schema(schema: ComponentSchema, required_by_default: bool) -> None:
    for section in (schema.parameters, schema.env_overrides):
        result = write_and_read(section, required_by_default=required_by_default)

        # The default of an object with complete defaults depends on the position of the object.
        assert {**result, "default": {}} == {**section, "default": {}}


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        pytest.param({"a": "string | default=10Gi"}, {"a": "string | default=10Gi"}, id="bare-text"),
        pytest.param({"a": 'string | default=""'}, {"a": 'string | default=""'}, id="empty-text"),
        pytest.param({"a": "string | default='x \"y\" \\'"}, {"a": 'string | default="x \\"y\\" \\\\"'}, id="quotes"),
        pytest.param({"a": "string | enum=b,c"}, {"a": 'string | enum=["b", "c"]'}, id="enum"),
        pytest.param({"a": "integer | required=true"}, {"a": "integer | required=true"}, id="required"),
        pytest.param({"a": "array<map[string]float>"}, {"a": "[]map<number>"}, id="types-have-one-spelling"),
        pytest.param({"a": {"b": "object"}}, {"a": {"b": "object"}}, id="object"),
        pytest.param({"a": {"b": "integer | default=1"}}, {"a": {"b": "integer | default=1"}}, id="fills-itself"),
        pytest.param({"a": {"b": "integer", "$default": {}}}, {"a": {"b": "integer", "$default": {}}}, id="default"),
    ],
)
def test_shorthand_of_fields(parameters: dict[str, Any], expected: dict[str, Any]) -> None:
    schema = read_component_schema({"parameters": parameters}, AT)
    writer = ShorthandWriter(())

    assert writer.write_fields(schema.parameters, "gauge") == expected
    assert writer.types == {}


def test_type_names_are_unique() -> None:
    given_types = {"Door": {"number": "integer"}, "Name": "string | minLength=1"}
    fields = {"doors": "[]Door", "front": "Door | nullable=true", "names": "map<Name>"}
    schema = read_component_schema({"types": given_types, "parameters": fields}, AT)
    writer = ShorthandWriter({"gauge-doors": "string"})

    assert writer.write_fields(schema.parameters, "gauge") == {
        "doors": "[]gauge-doors-2",
        "front": "gauge-front | nullable=true",
        "names": "map<gauge-names>",
    }
    assert writer.types == {
        "gauge-doors-2": {"number": "integer"},
        "gauge-front": {"number": "integer"},
        "gauge-names": "string | minLength=1",
    }
