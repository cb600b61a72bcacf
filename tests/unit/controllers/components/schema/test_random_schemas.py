"""Tests of schema reading with generated data: reading ends, and each error is a complete message."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.api.base import read_model
from reconciler.api.openchoreo import COMPONENT_TEMPLATES, SchemaSections
from reconciler.controllers.components.schema.crd import build_crd
from reconciler.controllers.components.schema.openapi import build_json_schema
from reconciler.controllers.components.schema.sections import build_component_schema
from reconciler.controllers.components.schema.validation import validate_value
from reconciler.controllers.components.schema.values import apply_defaults
from reconciler.krm.findings import Severity
from tests.support.examples import examples
from tests.unit.controllers.components.schema.schema_readers import read_component_schema

AT = ("spec", "schema")
PIECES = (
    *("string", "integer", "object", "[]", "array<", "map<", "map[string]", ">", "|", " ", "T", "=", ",", '"', "'"),
    *("default=", "enum=", "pattern=", "minimum=", "required", "true", "nullable=true", "uniqueItems=true", "[", "]"),
    *("{", "}", "\\", "1", "-", "1e9", "a", "é", "\x00", "null", '{"a":', "(", "*", "x-", "$default", "\n", "\u00a0"),
)
LINES = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
ODD = st.none() | st.booleans() | st.integers() | st.floats() | LINES | st.text(max_size=4)
KEYS = st.sampled_from(("a", "T", "a-b", "$default", "$ref", "", "8", "string")) | st.integers(0, 1)
FIELDS = st.recursive(
    ODD, lambda inner: st.dictionaries(KEYS, inner, max_size=4) | st.lists(inner, max_size=2), max_leaves=8
)
SECTIONS = st.sampled_from(("types", "parameters", "envOverrides", "requiredByDefault", "x-a", "more"))
SCHEMAS = st.dictionaries(SECTIONS, FIELDS, max_size=4) | FIELDS


@settings(max_examples=examples(150), deadline=None)
@given(SCHEMAS, FIELDS)
def test_any_data_is_read_without_exception(data: Any, value: Any) -> None:
    result = read_model(SchemaSections, data, COMPONENT_TEMPLATES, AT)
    assert all(error.text.startswith("spec.schema") and error.path[:2] == AT for error in result.errors)
    if result.model is None:
        return
    read = build_component_schema(result.model, AT)

    for finding in read.field_findings:
        assert finding.message.startswith("spec.schema")
        assert finding.path[:2] == AT
    if not any(finding.code.severity is Severity.ERROR for finding in read.field_findings):
        validate_value(apply_defaults(value, read.full), read.full, ("spec",))
        assert build_json_schema(read.full)["properties"].keys() == read.full["properties"].keys()
        assert build_crd("Thing", "example.org", read.full)["metadata"]["name"] == "things.example.org"


@settings(max_examples=examples(120), deadline=None)
@given(LINES)
def test_line_is_a_field_or_one_error(line: str) -> None:
    read = read_component_schema({"parameters": {"a": line}}, AT)
    errors = [finding for finding in read.field_findings if finding.code.severity is Severity.ERROR]

    assert len(errors) == (not read.parameters["properties"])


@settings(max_examples=examples(80), deadline=None)
@given(st.dictionaries(st.sampled_from("abcdef"), LINES, max_size=5), st.randoms())
def test_order_of_fields_does_not_matter(fields: dict[str, str], random: Any) -> None:
    names = list(fields)
    random.shuffle(names)
    component_schema, other = (
        read_component_schema({"parameters": {name: fields[name] for name in order}}, AT) for order in (fields, names)
    )

    assert repr(component_schema.full) == repr(other.full)
    assert set(component_schema.field_findings) == set(other.field_findings)
