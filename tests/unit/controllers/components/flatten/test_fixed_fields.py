"""Tests of fixed fields: the fields of an addon that flattening fixes, and the schema of the remaining fields."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.components.flatten.fields import (
    FixedFields,
    find_fixed_fields,
    remove_fixed_fields,
    restrict_to_section,
)
from reconciler.krm.yaml import DataPath
from tests.unit.controllers.components.schema.schema_readers import read_component_schema

SCHEMA = read_component_schema(
    {
        "types": {"Whole": {"a": "string", "b": "string | default=b"}},
        "parameters": {
            "text": "string | default=x",
            "part": {"a": "string", "inner": {"b": "integer", "c": "integer | default=1"}},
            "both": {"p": "string"},
            "none": {"a": "string"},
            "set": {"a": "string", "b": "string", "$default": {"a": "given"}},
            "counted": "Whole | minProperties=1",
            "nullable": "Whole | nullable=true",
            "free": "object",
        },
        "envOverrides": {"both": {"e": "string | default=e"}, "size": "integer | default=1"},
    },
    ("spec", "schema"),
)


def list_fixed_fields(part: FixedFields) -> dict[str, Any]:
    """Return the fixed fields. The value None means that the whole field is fixed."""
    return {name: None if below is None else list_fixed_fields(below) for name, below in part.fixed.items()}


@pytest.mark.parametrize(
    ("config", "used", "expected"),
    [
        pytest.param({}, [], {}, id="nothing"),
        pytest.param({"text": "a"}, [], {"text": None}, id="given"),
        pytest.param({"text": None}, [], {}, id="null-gives-nothing"),
        pytest.param({"nullable": None}, [], {"nullable": None}, id="null-where-it-is-a-value"),
        pytest.param({"free": {"a": 1}}, [], {"free": None}, id="free-form"),
        pytest.param({"part": {"a": "x"}}, [], {"part": {"a": None}}, id="a-part-is-given"),
        pytest.param({"part": {}}, [], {"part": {}}, id="nothing-of-an-object-is-given"),
        pytest.param(
            {"part": {"inner": {"b": 1, "c": 2}}}, [], {"part": {"inner": None}}, id="all-of-an-object-is-given"
        ),
        pytest.param({"set": {"b": "x"}}, [], {"set": {"b": None}}, id="default-that-is-replaced"),
        pytest.param({"counted": {"a": "x"}}, [], {"counted": None}, id="object-that-is-counted"),
        pytest.param({"nullable": {"a": "x"}}, [], {"nullable": None}, id="object-that-may-be-null"),
        pytest.param({}, [("text",)], {"text": None}, id="used"),
        pytest.param(
            {}, [("both", "e")], {"both": {"e": None}}, id="a-part-of-an-object-with-complete-defaults-is-used"
        ),
        pytest.param({}, [("set", "a")], {"set": None}, id="a-part-of-an-object-with-a-default-is-used"),
        pytest.param({}, [("none", "a")], {"none": None}, id="a-part-of-an-absent-object-is-used"),
        pytest.param({"part": {}}, [("part",)], {"part": None}, id="an-object-is-used"),
        pytest.param({}, [()], dict.fromkeys(SCHEMA.full["properties"]), id="everything-is-used"),
    ],
)
def test_used_and_configured_fields_are_fixed(
    config: dict[str, Any], used: list[DataPath], expected: dict[str, Any]
) -> None:
    assert list_fixed_fields(find_fixed_fields(SCHEMA.full, config, used)) == expected


def test_fixed_fields_are_restricted_to_each_section() -> None:
    part = find_fixed_fields(SCHEMA.full, {"both": {"e": "x"}, "text": "y"}, [])

    assert list_fixed_fields(restrict_to_section(SCHEMA.parameters, part)) == {"both": {}, "text": None}
    assert list_fixed_fields(restrict_to_section(SCHEMA.env_overrides, part)) == {"both": None}
    assert restrict_to_section(SCHEMA.env_overrides, part).has_open_fields


def test_schema_without_fixed_fields() -> None:
    part = find_fixed_fields(SCHEMA.full, {"both": {"e": "x"}, "part": {"inner": {"b": 1}}}, [])

    left = remove_fixed_fields(SCHEMA.parameters, part)

    assert left
    assert left["default"] == {}
    assert left["properties"]["both"] == {"type": "object", "default": {}, "properties": {"p": {"type": "string"}}}
    assert left["properties"]["part"]["properties"]["inner"] == {
        "type": "object",
        "default": {},
        "properties": {"c": {"type": "integer", "default": 1}},
    }
    assert left["properties"]["text"] is SCHEMA.parameters["properties"]["text"]
    assert remove_fixed_fields(SCHEMA.env_overrides, find_fixed_fields(SCHEMA.full, {}, [()])) is None
