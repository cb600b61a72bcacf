"""Tests that compare schema validation with the jsonschema-rs library."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema_rs import Draft7Validator

from reconciler.controllers.components.schema.crd import build_crd
from reconciler.controllers.components.schema.sections import ComponentSchema
from reconciler.controllers.components.schema.validation import validate_value
from reconciler.controllers.components.schema.values import apply_defaults
from tests.support.examples import examples
from tests.unit.controllers.components.schema.schema_strategies import components, values


def convert_to_draft_7(node: dict[str, Any]) -> dict[str, Any]:
    """Convert a Kubernetes OpenAPI schema to JSON Schema draft 7. A nullable schema also accepts null."""
    result: dict[str, Any] = {}
    for keyword, value in node.items():
        match keyword:
            case "exclusiveMinimum" | "exclusiveMaximum":
                result[keyword] = node[keyword.removeprefix("exclusive").lower()]
            case "properties":
                result[keyword] = {name: convert_to_draft_7(item) for name, item in value.items()}
                result["propertyNames"] = {"enum": sorted(value)}
            case "items" | "additionalProperties":
                result[keyword] = convert_to_draft_7(value)
            case "x-kubernetes-list-type" if value == "set":
                result["uniqueItems"] = True
            case _:
                result[keyword] = value
    if node["type"] == "integer":
        result["allOf"] = [{"minimum": -(2**63), "maximum": 2**63 - 1}]
    return {"anyOf": [{"type": "null"}, result]} if node.get("nullable") else result


@settings(max_examples=examples(80), deadline=None)
@given(components(), st.data())
def test_both_validators_agree(component: ComponentSchema, data: st.DataObject) -> None:
    published = build_crd("Thing", "example.org", component.full)
    schema = published["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    value = data.draw(values(component.full))
    second = Draft7Validator(convert_to_draft_7(schema))

    for item in (value, apply_defaults(value, component.full)):
        assert second.is_valid(item) is (validate_value(item, component.full, ("spec",)) == ())


@settings(max_examples=examples(40), deadline=None)
@given(components(), st.data())
def test_defaults_keep_a_valid_value_valid(component: ComponentSchema, data: st.DataObject) -> None:
    value = data.draw(values(component.full))

    if validate_value(value, component.full, ("spec",)) == ():
        assert validate_value(apply_defaults(value, component.full), component.full, ("spec",)) == ()


@settings(max_examples=examples(40), deadline=None)
@given(components(), st.data())
def test_optional_validation_reports_no_other_errors(component: ComponentSchema, data: st.DataObject) -> None:
    value = data.draw(values(component.full))

    strict = {
        finding for finding in validate_value(value, component.full, ("spec",)) if "must be set" not in finding.message
    }
    assert set(validate_value(value, component.full, ("spec",), required=False)) <= strict
