"""Tests of shorthand: the OpenAPI schema of each line, and the findings about invalid lines."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from reconciler.controllers.components.field_findings import FieldFinding
from reconciler.controllers.components.schema.sections import ComponentSchema
from reconciler.krm.findings import Severity
from tests.unit.controllers.components.schema.schema_readers import read_component_schema

AT = ("spec", "schema")
FIELD = "spec.schema.parameters.f"
FREE_FORM = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def schema(text: str) -> ComponentSchema:
    return read_component_schema(yaml.safe_load(text), AT)


def field(line: Any, **more: Any) -> Any:
    read = read_component_schema({"parameters": {"f": line}, **more}, AT)
    assert [finding for finding in read.field_findings if finding.code.severity is Severity.ERROR] == []
    return read.parameters["properties"]["f"]


def list_findings(line: Any, **more: Any) -> list[FieldFinding]:
    return list(read_component_schema({"parameters": {"f": line}, **more}, AT).field_findings)


TYPES = {
    "string": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "float": {"type": "number"},
    "boolean": {"type": "boolean"},
    "object": FREE_FORM,
    "[]string": {"type": "array", "items": {"type": "string"}},
    "array<integer>": {"type": "array", "items": {"type": "integer"}},
    "map[string]boolean": {"type": "object", "additionalProperties": {"type": "boolean"}},
    "map<number>": {"type": "object", "additionalProperties": {"type": "number"}},
    "map[string][]object": {"type": "object", "additionalProperties": {"type": "array", "items": FREE_FORM}},
    "array<map<[]string>>": {
        "type": "array",
        "items": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
    },
    "Point": {"type": "object", "properties": {"x": {"type": "integer"}}},
    "[]Point": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}},
    "  string  ": {"type": "string"},
    "[] string": {"type": "array", "items": {"type": "string"}},
    "string |": {"type": "string"},
}


@pytest.mark.parametrize("line", TYPES)
def test_types(line: str) -> None:
    assert field(line, types={"Point": {"x": "integer"}}) == TYPES[line]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("string | default=10Gi", {"default": "10Gi"}, id="bare"),
        pytest.param('string | default=""', {"default": ""}, id="row-1-empty-in-quotes"),
        pytest.param("string | default=", {"default": ""}, id="row-1-empty"),
        pytest.param('integer | default="3"', {"default": 3}, id="row-2-quotes-go-before-typing"),
        pytest.param("integer | default=+07", {"default": 7}, id="sign-and-zeros"),
        pytest.param("number | default=-1.5e3", {"default": -1500.0}, id="number"),
        pytest.param("number | default=2", {"default": 2}, id="number-without-a-point"),
        pytest.param("boolean | default=false", {"default": False}, id="false-is-a-default"),
        pytest.param("string|default=x", {"default": "x"}, id="no-blanks"),
        pytest.param("string | | default=x | title=y", {"title": "y", "default": "x"}, id="lone-pipes"),
        pytest.param("string | |default=x", {"default": "x"}, id="leading-pipe"),
        pytest.param(r'string | default="say \"a\\b\" \d"', {"default": r'say "a\b" \d'}, id="escapes"),
        pytest.param("string | default='it''s'", {"default": "it's"}, id="single-quotes"),
        pytest.param("string | default=it's", {"default": "it's"}, id="quote-inside-of-a-word"),
        pytest.param("string | default=a=b", {"default": "a=b"}, id="equals-in-a-value"),
        pytest.param('string | pattern="a|b"', {"pattern": "a|b"}, id="row-6-pipe-in-quotes"),
        pytest.param("string | pattern=^[a-z]+$", {"pattern": "^[a-z]+$"}, id="bare-pattern"),
        pytest.param("string | pattern=[a-z ]+", {"pattern": "[a-z ]+"}, id="pattern-that-begins-with-a-bracket"),
        pytest.param(r'string | pattern="\d{2}"', {"pattern": r"\d{2}"}, id="pattern-in-quotes"),
        pytest.param('string | enum="a, b,c"', {"enum": ["a", "b", "c"]}, id="enum-one-quoted-text"),
        pytest.param(r'string | enum="a\,b,c"', {"enum": ["a,b", "c"]}, id="enum-escaped-comma"),
        pytest.param("string | enum='a,b'", {"enum": ["a", "b"]}, id="enum-single-quotes"),
        pytest.param("string | enum=a,b", {"enum": ["a", "b"]}, id="enum-bare"),
        pytest.param('string | enum="a","b, c",d', {"enum": ["a", "b, c", "d"]}, id="enum-quoted-items"),
        pytest.param('string | enum=["a", "b, c"]', {"enum": ["a", "b, c"]}, id="enum-json"),
        pytest.param('integer | enum="1,2"', {"enum": [1, 2]}, id="enum-of-integers"),
        pytest.param("number | enum=[1, 2.5]", {"enum": [1, 2.5]}, id="enum-of-numbers"),
        pytest.param(
            "integer | minimum=1 maximum=9 multipleOf=2 exclusiveMinimum=true exclusiveMaximum=true",
            {"minimum": 1, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": True, "multipleOf": 2},
            id="limits",
        ),
        pytest.param("integer | minimum=1 exclusiveMinimum=false", {"minimum": 1}, id="false-sets-nothing"),
        pytest.param("string | minLength=1 maxLength=2", {"minLength": 1, "maxLength": 2}, id="lengths"),
        pytest.param("string | format=date-time", {"format": "date-time"}, id="format"),
        pytest.param("string | nullable=true", {"nullable": True}, id="nullable"),
        pytest.param(
            "string | title=A description='B c' example=d",
            {"title": "A", "description": "B c", "example": "d"},
            id="words",
        ),
        pytest.param("boolean | example=false", {"example": False}, id="example-by-the-type"),
        pytest.param("string | queryContainers=true", {"x-query-containers": True}, id="containers"),
        pytest.param("string | queryResources=Secret", {"x-query-resources": "Secret"}, id="resources"),
        pytest.param("string | oc:scaffold=omit x-thing=[1 2] title=a", {"title": "a"}, id="ignored"),
        pytest.param("string | required=true", {}, id="required-is-the-parents"),
    ],
)
def test_markers_of_scalars(line: str, expected: dict[str, Any]) -> None:
    result = field(line)
    kind = result.pop("type")

    assert kind == line.split("|")[0].strip()
    assert json.dumps(result) == json.dumps(expected)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param('[]string | default=["a"]', {"default": ["a"]}, id="list"),
        pytest.param('[]string | default=["\\u00e9"]', {"default": ["é"]}, id="escape-in-json"),
        pytest.param('[]string | default="[]"', {"default": []}, id="quoted-list"),
        pytest.param("[]string | default='[\"a\"]'", {"default": ["a"]}, id="json-in-single-quotes"),
        pytest.param("[]string | minItems=1 maxItems=3", {"minItems": 1, "maxItems": 3}, id="items"),
        pytest.param("[]string | uniqueItems=true", {"x-kubernetes-list-type": "set"}, id="set"),
        pytest.param(
            'map[string]integer | default={"a": 1} minProperties=1', {"default": {"a": 1}, "minProperties": 1}, id="map"
        ),
        pytest.param(
            'object | default={"a": {"b": [null]}} maxProperties=2',
            {"default": {"a": {"b": [None]}}, "maxProperties": 2},
            id="free-form",
        ),
        pytest.param("object | nullable=true default=null", {"nullable": True, "default": None}, id="null"),
    ],
)
def test_markers_of_lists_and_maps(line: str, expected: dict[str, Any]) -> None:
    result = field(line)

    assert {key: value for key, value in result.items() if key in expected} == expected


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        pytest.param(
            "", "ShorthandEmpty", 'must begin with a type, such as "string" or "[]string", but is ""', id="empty"
        ),
        pytest.param(" | default=a", "ShorthandEmpty", ' is " | default=a"', id="no-type"),
        pytest.param(
            "boolean | default=yes",
            "ShorthandValue",
            "has the marker default=yes at column 11; the value must be true or false",
            id="row-3-yes",
        ),
        pytest.param('string | enum="a,,b"', "ShorthandValue", "without empty values", id="row-4-empty-item"),
        pytest.param("string | enum=a,", "ShorthandValue", "without empty values", id="empty-bare-item"),
        pytest.param(
            'string | enum="a,b" default=c',
            "ShorthandDefaultInvalid",
            'default must be "a" or "b", but is "c"',
            id="row-5-default-out-of-enum",
        ),
        pytest.param("string | enum=a,a", "ShorthandValue", "unique values", id="item-twice"),
        pytest.param("number | enum=1,1.0", "ShorthandValue", "unique values", id="number-twice"),
        pytest.param(
            "string | enum=[1]", "ShorthandValue", "values of type string, but it contains 1", id="item-of-another-type"
        ),
        pytest.param("integer | enum=[true]", "ShorthandValue", "but it contains true", id="true-is-no-integer"),
        pytest.param("string | enum=[]", "ShorthandValue", "unique values", id="no-item"),
        pytest.param("string | enum=[a]", "ShorthandValue", "must be valid JSON", id="items-that-are-no-json"),
        pytest.param(
            "string | required",
            "ShorthandMarkerNoValue",
            "has the marker required without a value at column 10: write required=true",
            id="no-value",
        ),
        pytest.param(
            "string | enum=a, b",
            "ShorthandMarkerNoValue",
            "the marker b without a value at column 18: write b=…, and put text with spaces in quotes",
            id="blank-in-a-bare-list",
        ),
        pytest.param(
            "string | =a",
            "ShorthandSyntax",
            "has a value at column 10 without the name of a marker, such as default or minimum",
            id="no-name",
        ),
        pytest.param('string | default="a', "ShorthandSyntax", "has an unclosed quote at column 18", id="open-quote"),
        pytest.param(
            "string | default='a''",
            "ShorthandSyntax",
            "has an unclosed quote at column 18",
            id="open-single-quote",
        ),
        pytest.param(
            "[]string | default=[1",
            "ShorthandSyntax",
            "has an opening [ without a closing ] at column 20",
            id="open-bracket",
        ),
        pytest.param(
            'object | default={"a": "',
            "ShorthandSyntax",
            "has an unclosed quote at column 24",
            id="open-quote-in-json",
        ),
        pytest.param(
            'string | default="a"b', "ShorthandSyntax", "has text after the closing quote", id="behind-a-quote"
        ),
        pytest.param(
            'string | default="a","b"', "ShorthandSyntax", "has text after the closing quote", id="two-quotes"
        ),
        pytest.param(
            "string | default=a default=b",
            "ShorthandMarkerDuplicate",
            "has the marker default twice; the second marker begins at column 20",
            id="twice",
        ),
        pytest.param(
            "string | defalt=a",
            "ShorthandUnknownMarker",
            'has the marker defalt=a at column 10, but this marker is unknown; allowed markers: default, description, enum, example, exclusiveMaximum, exclusiveMinimum, format, maxItems, maxLength, maxProperties, maximum, minItems, minLength, minProperties, minimum, multipleOf, nullable, pattern, queryContainers, queryResources, required, title, uniqueItems; did you mean "default"?',
            id="unknown-marker",
        ),
        pytest.param(
            "string | zzz=a", "ShorthandUnknownMarker", "allowed markers: default, description, enum", id="far-from-all"
        ),
        pytest.param(
            "string | immutable=true",
            "FeatureNotSupported",
            "has the marker immutable=true at column 10",
            id="immutable",
        ),
        pytest.param(
            "string | minimum=1",
            "ShorthandMarkerType",
            "minimum=1 at column 10, but the type is string; this marker applies only to the type integer or number",
            id="wrong-type",
        ),
        pytest.param("boolean | enum=true", "ShorthandMarkerType", "but the type is boolean", id="enum-of-booleans"),
        pytest.param(
            "integer | minLength=1", "ShorthandMarkerType", "applies only to the type string", id="length-of-a-number"
        ),
        pytest.param(
            "string | uniqueItems=true",
            "ShorthandMarkerType",
            "but the type is string; this marker applies only to the type array",
            id="unique-text",
        ),
        pytest.param(
            "[]string | queryContainers=true",
            "ShorthandMarkerType",
            "applies only to the type string",
            id="hint-of-a-list",
        ),
        pytest.param(
            "integer | exclusiveMaximum=true",
            "ShorthandMarkerType",
            "has the marker exclusiveMaximum, which requires the marker maximum",
            id="nothing-to-exclude",
        ),
        pytest.param("integer | default=1.0", "ShorthandValue", "must be a 64-bit integer", id="point-in-an-integer"),
        pytest.param(
            "integer | default=9223372036854775808",
            "ShorthandValue",
            "must be a 64-bit integer",
            id="one-too-much",
        ),
        pytest.param(
            f"integer | default={'9' * 5000}",
            "ShorthandValue",
            "must be a 64-bit integer",
            id="thousands-of-digits",
        ),
        pytest.param("integer | default=１", "ShorthandValue", "must be a 64-bit integer", id="other-digits"),
        pytest.param("number | default=1e999", "ShorthandValue", "must be a number", id="more-than-a-double"),
        pytest.param("number | default=NaN", "ShorthandValue", "must be a number", id="nan"),
        pytest.param("number | default=true", "ShorthandValue", "must be a number", id="true-is-no-number"),
        pytest.param(
            f"number | maximum={'9' * 400}", "ShorthandValue", "must be a number", id="integer-that-no-double-holds"
        ),
        pytest.param("integer | multipleOf=0", "ShorthandValue", "must be a number above 0", id="multiple-of-nothing"),
        pytest.param("string | minLength=-1", "ShorthandValue", "must be a non-negative integer", id="negative-length"),
        pytest.param("string | required=yes", "ShorthandValue", "must be true or false", id="required-yes"),
        pytest.param("string | queryResources=", "ShorthandValue", "must be the name of a kind", id="hint-of-nothing"),
        pytest.param(
            'string | pattern="a("',
            "ShorthandValue",
            "must be a valid RE2 regular expression: missing ): a(",
            id="pattern",
        ),
        pytest.param(
            'string | pattern="(?=a)"', "ShorthandValue", "must be a valid RE2 regular expression", id="look-ahead"
        ),
        pytest.param("[]string | default=a", "ShorthandValue", "must be valid JSON", id="no-json"),
        pytest.param("[]string | default={}", "ShorthandValue", "must be a JSON list", id="json-of-another-type"),
        pytest.param("object | default=[]", "ShorthandValue", "must be a JSON object", id="list-for-a-map"),
        pytest.param("object | default=null", "ShorthandValue", "must be a JSON object", id="null-that-may-not-be"),
        pytest.param(
            'object | default={"a":1,"a":2}',
            "ShorthandValue",
            "must be valid JSON: an object contains a field twice",
            id="field-twice",
        ),
        pytest.param(
            'object | default={"a":1e999}',
            "ShorthandValue",
            "must be valid JSON: the number 1e999 is outside of the range",
            id="json-number",
        ),
        pytest.param(
            'object | default={"a":"\\ud800"}',
            "ShorthandValue",
            "the text cannot be encoded as UTF-8",
            id="half-a-character",
        ),
        pytest.param(
            f'object | default={{"a":{"[" * 40 + "]" * 40}}}', "ShorthandValue", "more than 32 levels", id="deep-json"
        ),
        pytest.param(
            f"[]string | default={'[' * 4000 + ']' * 4000}",
            "ShorthandValue",
            "more than 32 levels",
            id="very-deep-json",
        ),
        pytest.param(
            '[]integer | default=[1,"a"]',
            "ShorthandDefaultInvalid",
            'default[1] must be an integer, but is "a"',
            id="default-of-another-type",
        ),
        pytest.param(
            "string | minLength=2 default=a",
            "ShorthandDefaultInvalid",
            "default must have at least 2 characters",
            id="default-too-short",
        ),
        pytest.param(
            '[]string | uniqueItems=true default=["a","a"]',
            "ShorthandDefaultInvalid",
            'the item "a" twice',
            id="default-with-an-item-twice",
        ),
        pytest.param("string default=3", "ShorthandType", "separate the type and its markers with |", id="no-pipe"),
        pytest.param("(string)", "ShorthandType", 'has an invalid type at column 1: "(string)"', id="parentheses"),
        pytest.param("[]", "ShorthandType", "has an invalid type at column 3", id="list-of-nothing"),
        pytest.param("map<>", "ShorthandType", "has an invalid type at column 5", id="map-of-nothing"),
        pytest.param("map[", "ShorthandType", "write map[string]", id="map-half-written"),
        pytest.param("map[string]", "ShorthandType", "has an invalid type at column 12", id="map-without-values"),
        pytest.param(
            "map[integer]string",
            "ShorthandType",
            'the key type of a map must be "string", but is "integer"',
            id="other-keys",
        ),
        pytest.param(
            "map<string,string>", "ShorthandType", '"string,string"; allowed types: string', id="map-with-two-types"
        ),
        pytest.param("array<string", "ShorthandType", '"array<string"; allowed types: string', id="array-half-written"),
        pytest.param(
            "strnig",
            "ShorthandUnknownType",
            'has the unknown type "strnig"; allowed types: string, integer, number, float, boolean, object, Point; did you mean "string"?',
            id="misspelt-type",
        ),
        pytest.param(
            "Thing",
            "ShorthandUnknownType",
            "allowed types: string, integer, number, float, boolean, object, Point",
            id="unknown-type",
        ),
        pytest.param("[]" * 40 + "string", "SchemaTooLarge", "must not nest more than 32 types", id="deep-type"),
        pytest.param(
            "string | title=" + "a" * 20_000, "SchemaTooLarge", "must have at most 16384 characters", id="long"
        ),
        pytest.param(
            True, "ShorthandFieldType", ' is true; write "boolean | default=true', id="value-in-place-of-a-type"
        ),
        pytest.param(
            ["string"], "ShorthandFieldType", 'write a list type in quotes: "[]string"', id="list-without-quotes"
        ),
        pytest.param(
            3,
            "ShorthandFieldType",
            'must be an expression such as "string", or a mapping of fields, but is 3',
            id="number",
        ),
        pytest.param(None, "ShorthandFieldType", " is null", id="null"),
        pytest.param(
            {"a": "strin"}, "ShorthandUnknownType", 'f.a has the unknown type "strin', id="inside-of-an-object"
        ),
        pytest.param(
            {"3a": "string"},
            "ShorthandFieldType",
            'must have a name of letters, digits, - and _ that begins with a letter or _, but has the name "3a"',
            id="name",
        ),
        pytest.param({8080: "string"}, "ShorthandFieldType", "ame 8080", id="name-that-is-a-number"),
        pytest.param(
            {"$ref": "string"},
            "ShorthandFieldType",
            "is reserved; the only name that begins with $ is $default",
            id="reserved-name",
        ),
        pytest.param(
            {"a": "string", "$default": "[]"},
            "ShorthandValue",
            "$default must be a mapping of at most 32 levels, or its JSON text, but is []",
            id="default-that-is-a-list",
        ),
        pytest.param(
            {"a": "string", "$default": "{"},
            "ShorthandValue",
            "$default must be a mapping or valid JSON:",
            id="default-that-is-no-json",
        ),
        pytest.param(
            {"a": "string", "$default": {"b": "c"}},
            "ShorthandDefaultInvalid",
            "$default has an invalid default: default.b is an unknown field; allowed fields: a",
            id="default-with-an-unknown-field",
        ),
        pytest.param(
            {"a": "string | required=true", "$default": {}},
            "ShorthandDefaultInvalid",
            "default.a is missing; set it to a string",
            id="default-without-a-required-field",
        ),
    ],
)
def test_invalid_field_is_reported(line: Any, code: str, message: str) -> None:
    (finding,) = list_findings(line, types={"Point": {"x": "integer"}})

    assert finding.code.name == code
    assert finding.message.startswith(FIELD)
    assert message in finding.message
    assert finding.path[:4] == (*AT, "parameters", "f")


def test_all_errors_are_reported_and_the_section_is_empty() -> None:
    read = schema("""
        types: {Broken: {a: strin}, Unused: "[]"}
        parameters: {b: "Broken", c: "Broken", d: integer, e: "integer | default=x"}
        envOverrides: {f: string}
    """)

    assert [(finding.path[2:], finding.code.name) for finding in read.field_findings] == [
        (("types", "Broken", "a"), "ShorthandUnknownType"),
        (("types", "Unused"), "ShorthandType"),
        (("parameters", "e"), "ShorthandValue"),
    ]
    assert read.parameters == {"type": "object", "properties": {}}
    assert read.env_overrides == {"type": "object", "properties": {"f": {"type": "string"}}}


@pytest.mark.parametrize(
    ("types", "cycle"),
    [
        pytest.param({"A": {"b": "B"}, "B": {"a": "A"}}, "A → B → A", id="row-9-two-types"),
        pytest.param({"Z": "[]Y", "Y": "map[string]X", "X": {"z": "Z"}}, "X → Z → Y → X", id="from-its-smallest-name"),
        pytest.param({"A": "A"}, "A → A", id="itself"),
    ],
)
def test_type_cycle_is_reported_once(types: dict[str, Any], cycle: str) -> None:
    (finding,) = read_component_schema(
        {"types": types, "parameters": {name.lower(): name for name in types}}, AT
    ).field_findings

    assert finding.code.name == "ShorthandTypeCycle"
    assert finding.message.endswith(f"contains itself: {cycle}")
    assert finding.path == (*AT, "types", cycle[0])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("Level", {"type": "string", "enum": ["a", "b"], "default": "a"}, id="as-it-is"),
        pytest.param(
            "Level | default=b", {"type": "string", "enum": ["a", "b"], "default": "b"}, id="own-default-wins"
        ),
        pytest.param("Level | enum=a,c", {"type": "string", "enum": ["a", "c"], "default": "a"}, id="own-enum-wins"),
        pytest.param("Alias", {"type": "string", "enum": ["a", "b"], "default": "a"}, id="type-of-a-type"),
        pytest.param(
            "[]Level", {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, id="no-default-of-items"
        ),
        pytest.param("Some | nullable=false", {"type": "integer"}, id="taken-away-again"),
        pytest.param(
            "Box",
            {"type": "object", "default": {}, "properties": {"s": {"type": "integer", "default": 1}}},
            id="object-that-fills-itself",
        ),
        pytest.param(
            "map[string]Box",
            {
                "type": "object",
                "additionalProperties": {"type": "object", "properties": {"s": {"type": "integer", "default": 1}}},
            },
            id="no-default-of-values",
        ),
    ],
)
def test_named_types(line: str, expected: dict[str, Any]) -> None:
    types = {
        "Level": "string | enum=a,b default=a",
        "Alias": "Level",
        "Some": "integer | nullable=true required=true",
        "Box": {"s": "integer | default=1"},
    }

    assert field(line, types=types) == expected


def test_default_of_a_type_must_match_the_narrower_field() -> None:
    (finding,) = list_findings("Level | enum=b,c", types={"Level": "string | enum=a,b default=a"})

    assert finding.code.name == "ShorthandDefaultInvalid"
    assert finding.message == f'{FIELD} has an invalid default: default must be "b" or "c", but is "a"'


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"cpu": "string | default=1"}, {}, id="a-default-inside"),
        pytest.param({"cpu": "string"}, None, id="no-default-inside"),
        pytest.param({"cpu": "string | default=1", "m": "string | required=true"}, None, id="something-is-required"),
        pytest.param({"cpu": "string | default=1 required=true"}, {}, id="required-with-a-default"),
        pytest.param({"a": {"b": {"c": "string | default=1"}}}, {}, id="a-default-deep-inside"),
        pytest.param({"cpu": "string | default=1", "$default": {"cpu": "2"}}, {"cpu": "2"}, id="its-own"),
        pytest.param({"cpu": "string", "$default": '{"cpu": "2"}'}, {"cpu": "2"}, id="its-own-as-json"),
        pytest.param({"cpu": "string | default=1 required=true", "$default": {}}, {}, id="filled-before-it-is-checked"),
        pytest.param("Strict", None, id="too-few-fields"),
    ],
)
def test_default_of_an_object(fields: Any, expected: Any) -> None:
    types = {"Strict": "Loose | minProperties=2", "Loose": {"a": "string | default=1", "b": "string"}}

    assert field(fields, types=types).get("default") == expected


def test_order_of_keywords_and_fields() -> None:
    line = (
        "string | description=d pattern=a maxLength=9 minLength=1 example=abc default=ab enum=ab,abc nullable=true"
        " format=f title=t queryResources=K queryContainers=true"
    )
    component_schema = read_component_schema(
        {"parameters": {"z": line, "a": {"c": "string | required=true", "b": "Z"}}, "types": {"Z": "integer"}}, AT
    )

    assert list(component_schema.parameters["properties"]) == ["a", "z"]
    assert list(component_schema.parameters["properties"]["a"]) == ["type", "properties", "required"]
    assert list(component_schema.parameters["properties"]["z"]) == [
        *("type", "title", "description", "format", "nullable", "enum", "default", "example", "pattern"),
        *("minLength", "maxLength", "x-query-containers", "x-query-resources"),
    ]


@pytest.mark.parametrize(
    ("line", "required"),
    [
        pytest.param("string", True, id="bare"),
        pytest.param("string | required=false", False, id="marker-false"),
        pytest.param("string | default=a", False, id="has-a-default"),
        pytest.param("Level", False, id="type-has-a-default"),
        pytest.param("Level | required=true", True, id="marker-true"),
        pytest.param({"a": "string"}, True, id="object"),
        pytest.param({"a": "string | default=b"}, False, id="object-that-fills-itself"),
    ],
)
def test_required_by_default(line: Any, required: bool) -> None:
    data = {"requiredByDefault": True, "types": {"Level": "string | default=a"}, "parameters": {"f": line}}

    assert ("f" in read_component_schema(data, AT).parameters.get("required", [])) is required


def test_info_findings() -> None:
    read = schema("parameters: {a-b: string, c: string | required=true default=d}")

    assert [(finding.code.name, finding.code.severity, finding.message) for finding in read.field_findings] == [
        (
            "ShorthandNameHyphen",
            Severity.INFO,
            'spec.schema.parameters.a-b can only be accessed as spec["a-b"] in expressions; prefer a name without "-"',
        ),
        (
            "RequiredWithDefault",
            Severity.INFO,
            "spec.schema.parameters.c has a default, so `required` has no effect",
        ),
    ]
    assert read.parameters["required"] == ["c"]
    assert list(read.parameters["properties"]) == ["a-b", "c"]


class TestBudgets:
    def test_too_many_fields_through_types(self) -> None:
        types: dict[str, Any] = {f"T{n}": {"a": f"T{n + 1}", "b": f"T{n + 1}"} for n in range(25)}
        read = read_component_schema({"types": {**types, "T25": "string"}, "parameters": {"f": "T0"}}, AT)

        assert {finding.code.name for finding in read.field_findings} == {"SchemaTooLarge"}
        assert "spec.schema must have at most 5000 fields in total" in {
            finding.message for finding in read.field_findings
        }

    def test_too_deep_types(self) -> None:
        types: dict[str, Any] = {f"T{n}": {"a": f"T{n + 1}"} for n in range(40)}
        read = read_component_schema({"types": {**types, "T40": "string"}}, AT)

        assert {finding.code.name for finding in read.field_findings} == {"SchemaTooLarge"}
        assert all(finding.message.endswith("must be at most 32 levels deep") for finding in read.field_findings)

    def test_too_deep_fields(self) -> None:
        data: Any = "string"
        for _ in range(95):
            data = {"a": data}
        (finding,) = list_findings(data)

        assert finding.message.endswith("must be at most 32 levels deep")
