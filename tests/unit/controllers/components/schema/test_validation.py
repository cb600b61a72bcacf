"""Tests of the validation of values against their schema."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import pytest
import yaml

from reconciler.controllers.components.schema.openapi import Schema
from reconciler.controllers.components.schema.validation import validate_value
from reconciler.controllers.components.schema.values import overlay_values
from reconciler.krm.yaml import parse_yaml
from tests.unit.controllers.components.schema.schema_readers import read_component_schema

AT = ("spec", "schema")
TYPES = {"Port": {"number": "integer | required=true", "name": "string"}}


def parameters(fields: str | dict[str, Any]) -> Schema:
    written = yaml.safe_load(fields) if isinstance(fields, str) else fields
    read = read_component_schema({"types": TYPES, "parameters": written}, AT)
    assert read.field_findings == ()
    return read.parameters


def list_messages(fields: str | dict[str, Any], value: Any, *, required: bool = True) -> list[str]:
    return [finding.message for finding in validate_value(value, parameters(fields), ("spec",), required=required)]


@pytest.mark.parametrize(
    ("line", "value", "message"),
    [
        pytest.param("string", 1, "must be a string, but is 1", id="string"),
        pytest.param("string", {"x": 1}, "must be a string, but is a mapping", id="nothing-of-a-mapping-is-shown"),
        pytest.param("integer", "1", 'must be an integer, but is "1"', id="integer"),
        pytest.param("integer", 1.5, "must be an integer, but is 1.5", id="integer-with-a-fraction"),
        pytest.param("integer", True, "must be an integer, but is true", id="true-is-no-integer"),
        pytest.param("number", False, "must be a number, but is false", id="false-is-no-number"),
        pytest.param("number", math.nan, "must be a number, but is NaN", id="nan"),
        pytest.param("number", math.inf, "must be a number, but is Infinity", id="infinity"),
        pytest.param(
            "integer", 2**63, "must be at most 9223372036854775807, but is 9223372036854775808", id="more-than-64-bits"
        ),
        pytest.param(
            "integer | minimum=0",
            -(2**63) - 1,
            "must be at least 0, but is -9223372036854775809",
            id="own-limit-is-nearer",
        ),
        pytest.param(
            "integer | maximum=1e30",
            2**63,
            "must be at most 9223372036854775807, but is 9223372036854775808",
            id="own-limit-is-farther",
        ),
        pytest.param("integer", 1e300, "must be at most 9223372036854775807, but is 1e+300", id="whole-but-large"),
        pytest.param(
            "number", 10**309, f"must be at most 1.7976931348623157e+308, but is 1{'0' * 78}…", id="more-than-a-double"
        ),
        pytest.param("boolean", "true", 'must be true or false, but is "true"', id="boolean"),
        pytest.param("boolean", 1, "must be true or false, but is 1", id="one-is-no-boolean"),
        pytest.param("[]string", "a", 'must be a list, but is "a"', id="list"),
        pytest.param("object", [], "must be a mapping, but is []", id="free-form"),
        pytest.param("string", None, "must be a string, but is null", id="null"),
        pytest.param("string | nullable=true", 1, "must be a string or null, but is 1", id="nullable"),
        pytest.param("string | enum=a,b", "c", 'must be "a" or "b", but is "c"', id="enum"),
        pytest.param("string | enum=a,b", 1, "must be a string, but is 1", id="wrong-type-is-all-there-is-to-say"),
        pytest.param("integer | minimum=1", 0, "must be at least 1, but is 0", id="minimum"),
        pytest.param("integer | maximum=1", 2, "must be at most 1, but is 2", id="maximum"),
        pytest.param(
            "number | minimum=1 exclusiveMinimum=true", 1, "must be more than 1, but is 1", id="exclusive-minimum"
        ),
        pytest.param(
            "number | maximum=1 exclusiveMaximum=true", 1.0, "must be less than 1, but is 1.0", id="exclusive-maximum"
        ),
        pytest.param("number | multipleOf=0.1", 0.35, "must be a multiple of 0.1, but is 0.35", id="multiple"),
        pytest.param("string | minLength=2", "a", 'must have at least 2 characters, but has 1: "a"', id="too-short"),
        pytest.param("string | maxLength=1", "😀😀", 'must have at most 1 character, but has 2: "😀😀"', id="too-long"),
        pytest.param("string | pattern=^a", "ba", 'must match "^a", but is "ba"', id="pattern"),
        pytest.param("string | pattern=a$", "a\n", 'must match "a$", but is "a\\n"', id="end-is-the-end-of-text"),
        pytest.param("[]string | minItems=1", [], "must have at least 1 item, but has 0", id="too-few-items"),
        pytest.param("[]string | maxItems=1", ["a", "b"], "must have at most 1 item, but has 2", id="too-many-items"),
        pytest.param(
            "[]string | uniqueItems=true", ["a", "b", "a"], 'must not contain the item "a" twice', id="item-twice"
        ),
        pytest.param(
            "[]integer | uniqueItems=true", [1, 1.0], "must not contain the item 1.0 twice", id="number-twice"
        ),
        pytest.param("object | minProperties=1", {}, "must have at least 1 field, but has 0", id="too-few-fields"),
        pytest.param(
            "map[string]string | maxProperties=0",
            {"a": "b"},
            "must have at most 0 fields, but has 1",
            id="too-many-fields",
        ),
        pytest.param(
            "map[string]string",
            {8080: "a"},
            "must have strings as keys, but has the key 8080; put the key in quotes",
            id="key-that-is-a-number",
        ),
        pytest.param("integer", "\ud800", "must be text that can be encoded as UTF-8, but is '\\ud800'", id="no-text"),
    ],
)
def test_invalid_value_is_reported(line: str, value: Any, message: str) -> None:
    assert list_messages({"f": line}, {"f": value}) == [f"spec.f {message}"]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        pytest.param("integer", 1.0, id="whole-numbers-are-integers"),
        pytest.param("integer", 2**63 - 1, id="all-of-64-bits"),
        pytest.param("number", 3, id="integers-are-numbers"),
        pytest.param("number | multipleOf=0.01", 0.07, id="decimal-multiple"),
        pytest.param("integer | enum=[1]", 1.0, id="enum-by-value"),
        pytest.param("string | nullable=true enum=a", None, id="null-beside-an-enum"),
        pytest.param("string | pattern=b", "abc", id="pattern-anywhere"),
        pytest.param(r"string | pattern=^\pL\d$", "é1", id="pattern-of-re2"),
        pytest.param(r"string | pattern=\Qa.b\E", "a.b", id="pattern-that-the-library-does-not-support"),
        pytest.param("string | format=date-time", "never", id="format-is-not-enforced"),
        pytest.param("string | maxLength=1", "😀", id="characters-not-bytes"),
        pytest.param("object", {"a": {8: [None]}}, id="anything-below-free-form"),
        pytest.param("[]object | uniqueItems=true", [{"a": 1}, {"a": True}], id="true-is-not-one"),
    ],
)
def test_valid_value_is_accepted(line: str, value: Any) -> None:
    assert list_messages({"f": line}, {"f": value}) == []


def test_patterns_take_linear_time() -> None:
    assert list_messages("{f: string | pattern=^(a+)+$}", {"f": "a" * 5_000 + "b"}) != []


def test_all_errors_are_reported_in_the_order_of_the_fields() -> None:
    fields = (
        "{ports: '[]Port | required=true', name: string | required=true minLength=2, deep: {x: integer, y: string}}"
    )
    value = {
        "ports": [{"number": 1}, {"number": "a", "nmae": "b"}, *({"number": 1} for _ in range(8)), {}],
        "deep": {"z": 1, "x": "a"},
        "bogus": 1,
    }

    assert list_messages(fields, value) == [
        "spec.bogus is an unknown field; allowed fields: deep, name, ports",
        'spec.deep.x must be an integer, but is "a"',
        "spec.deep.z is an unknown field; allowed fields: x, y",
        "spec.name is missing; set it to a string",
        'spec.ports[1].nmae is an unknown field; allowed fields: name, number; did you mean "name"?',
        'spec.ports[1].number must be an integer, but is "a"',
        "spec.ports[10].number is missing; set it to an integer",
    ]


def test_codes_and_paths() -> None:
    field_findings = validate_value(
        {"a": "1", "b": 1}, parameters("{a: integer, c: string | required=true}"), ("spec", "config")
    )

    assert [(finding.code.name, finding.path) for finding in field_findings] == [
        ("SchemaValidation", ("spec", "config", "a")),
        ("UnknownField", ("spec", "config", "b")),
        ("SchemaValidation", ("spec", "config", "c")),
    ]


def test_any_field_is_unknown_in_an_empty_schema() -> None:
    assert list_messages("{}", {"a": 1}) == [
        "spec.a is an unknown field; the schema declares no fields for this mapping"
    ]


@pytest.mark.parametrize("value", [None, 3, "text", []])
def test_value_must_be_a_mapping(value: Any) -> None:
    (message,) = list_messages("{a: string}", value)

    assert message.startswith("spec must be a mapping, but is ")


class TestWithoutRequired:
    FIELDS = "{a: string | required=true, n: integer | maximum=20, p: '[]Port'}"

    def test_fields_can_be_missing_or_null(self) -> None:
        assert list_messages(self.FIELDS, {"n": None, "p": [{"name": None}]}, required=False) == []

    def test_present_fields_are_validated(self) -> None:
        assert list_messages(self.FIELDS, {"n": 21, "b": 1}, required=False) == [
            "spec.b is an unknown field; allowed fields: a, n, p",
            "spec.n must be at most 20, but is 21",
        ]

    def test_items_cannot_be_null(self) -> None:
        assert list_messages(self.FIELDS, {"p": [None]}, required=False) == ["spec.p[0] must be a mapping, but is null"]


def test_null_in_an_overlay_is_reported() -> None:
    schema = parameters("{a: string}")

    (finding,) = validate_value(overlay_values({"bogus": None}, schema=schema), schema, ("spec",))

    assert finding.code.name == "UnknownField"


def test_duplicate_mapping_in_a_set_is_reported() -> None:
    item = {"number": 1, "name": "a"}

    assert list_messages(
        {"f": "[]Port | uniqueItems=true"}, {"f": [{"number": 2}, item, {"number": 1.0, "name": "a"}]}
    ) == ['spec.f must not contain the item {"number":1.0,"name":"a"} twice']


def test_duplicate_list_in_a_set_is_reported() -> None:
    assert list_messages({"f": "[][]integer | uniqueItems=true"}, {"f": [[1], [2], [2]]}) == [
        "spec.f must not contain the item [2] twice"
    ]


def test_number_as_a_key_is_reported() -> None:
    assert list_messages({"f": "[]Port"}, {"f": [{"number": 1}, {8080: 1}]}) == [
        "spec.f[1] must have strings as keys, but has the key 8080; put the key in quotes"
    ]


def test_schema_can_be_used_repeatedly() -> None:
    schemas = [parameters("{f: integer | maximum=1}"), parameters("{f: integer | maximum=2}")]

    for _ in range(2):
        assert [len(validate_value({"f": 2}, schema, ())) for schema in schemas] == [1, 0]
        assert [len(validate_value({}, schema, (), required=False)) for schema in schemas] == [0, 0]


@pytest.mark.parametrize("value", [date(2024, 1, 1), b"a", {1, 2}], ids=["date", "bytes", "set"])
def test_value_outside_json_is_reported(value: Any) -> None:
    assert list_messages({"f": "integer"}, {"f": value}) == [
        f"spec.f must be a JSON value, but has the type {type(value).__name__}"
    ]


@pytest.mark.parametrize("levels", [100, 190, 250, 400])
def test_deep_values(levels: int) -> None:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}

    assert list_messages("{f: object}", {"f": value}) == []
    (message,) = list_messages("{f: string}", {"f": value})
    assert message in ("spec.f must be a string, but is a mapping", "spec must have at most 200 levels")


def test_deepest_yaml_value_is_validated() -> None:
    (document,) = parse_yaml("f:" + "".join(f"\n{' ' * depth}a:" for depth in range(1, 99)) + " 1\n").documents

    assert list_messages("{f: string}", document.data) == ["spec.f must be a string, but is a mapping"]
