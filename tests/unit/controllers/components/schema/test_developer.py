"""Tests of the developer schema: the fields of the definition, and one field per developer addon."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from reconciler.controllers.components.schema.crd import DeveloperAddon, build_developer_schema, override_defaults
from reconciler.controllers.components.schema.sections import ComponentSchema
from reconciler.controllers.components.schema.values import apply_defaults
from tests.unit.controllers.components.schema.schema_readers import read_component_schema

AT = ("spec", "schema")
ALLOWED = ("spec", "developerAddons", "allowed")


def schema(text: str) -> ComponentSchema:
    read = read_component_schema(yaml.safe_load(text), AT)
    assert read.field_findings == ()
    return read


def addon(key: str, text: str, *, description: str = "", index: int = 0, **defaults: Any) -> DeveloperAddon:
    return DeveloperAddon(key, description, schema(text), defaults, (*ALLOWED, index, "name"))


DEFINITION = schema("{parameters: {image: string | required=true}, envOverrides: {count: integer | default=1}}")
TRACING = "{parameters: {zone: string | required=true}, envOverrides: {rate: number | default=0.1}}"


def test_addon_adds_one_field() -> None:
    mapping, findings = build_developer_schema(
        DEFINITION, [addon("tracing", TRACING, description="Follows calls", rate=0.5)]
    )

    assert findings == ()
    assert mapping == {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "default": 1},
            "image": {"type": "string"},
            "tracing": {
                "type": "object",
                "description": "Follows calls",
                "properties": {"rate": {"type": "number", "default": 0.5}, "zone": {"type": "string"}},
                "required": ["zone"],
            },
        },
        "required": ["image"],
    }
    assert list(mapping["properties"]) == ["count", "image", "tracing"]
    assert list(mapping["properties"]["tracing"]) == ["type", "description", "properties", "required"]


def test_absent_field_does_not_enable_the_addon() -> None:
    mapping, _ = build_developer_schema(
        DEFINITION, [addon("logs", "{parameters: {level: string | default=info}}", level="warn")]
    )

    assert apply_defaults({"image": "a"}, mapping) == {"count": 1, "image": "a"}
    assert apply_defaults({"image": "a", "logs": {}}, mapping) == {"count": 1, "image": "a", "logs": {"level": "warn"}}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        pytest.param(
            ["image"],
            'allowed[0].name results in the key "image", which is also a field of the component definition',
            id="row-50-field",
        ),
        pytest.param(
            ["a", "a"],
            'allowed[1].name results in the key "a", which is also the key of another addon',
            id="another-addon",
        ),
    ],
)
def test_keys_are_unique(keys: list[str], message: str) -> None:
    addons = [addon(key, TRACING, index=index) for index, key in enumerate(keys)]
    _, (finding,) = build_developer_schema(DEFINITION, addons)

    assert finding.code.name == "AddonKeyCollision"
    assert finding.message == f"spec.developerAddons.{message}; keys must be unique"
    assert finding.path == addons[-1].path


@pytest.mark.parametrize(
    ("fields", "defaults", "expected"),
    [
        pytest.param("{a: string | default=x, b: string}", {"a": "y"}, {"a": "y"}, id="over-another"),
        pytest.param("{a: string, b: string}", {"a": "y"}, {"a": "y"}, id="where-there-was-none"),
        pytest.param(
            "{o: {a: string, b: string | default=x}}", {"o": {"a": "y"}}, {"o": {"a": "y", "b": "x"}}, id="leaf-by-leaf"
        ),
        pytest.param(
            "{o: {a: string, b: string}}", {"o": {"a": "y"}}, {"o": {"a": "y"}}, id="an-object-now-fills-itself"
        ),
        pytest.param(
            "{o: {a: string, b: string | required=true}}", {"o": {"a": "y"}}, {}, id="an-object-that-still-needs-more"
        ),
        pytest.param(
            "{o: {a: string, b: string, $default: {a: x, b: x}}}",
            {"o": {"a": "y"}},
            {"o": {"a": "y", "b": "x"}},
            id="over-the-default-of-an-object",
        ),
        pytest.param("{l: '[]string | default=[\"a\"]'}", {"l": ["b"]}, {"l": ["b"]}, id="lists-are-replaced"),
        pytest.param(
            '{m: \'map[string]string | default={"a":"1"}\'}',
            {"m": {"b": "2"}},
            {"m": {"b": "2"}},
            id="a-map-is-one-leaf",
        ),
        pytest.param("{a: string | default=x}", {"a": None}, {"a": "x"}, id="null-changes-nothing"),
        pytest.param("{a: string | default=x nullable=true}", {"a": None}, {"a": None}, id="null-that-is-allowed"),
        pytest.param("{a: string | default=x}", {"who": 1}, {"a": "x"}, id="undeclared-field-is-ignored"),
    ],
)
def test_defaults_of_a_type_replace_defaults_of_an_addon(
    fields: str, defaults: dict[str, Any], expected: dict[str, Any]
) -> None:
    full = schema(f"{{parameters: {fields}}}").full
    before = repr(full)

    assert apply_defaults({}, override_defaults(full, defaults)) == expected
    assert repr(full) == before
