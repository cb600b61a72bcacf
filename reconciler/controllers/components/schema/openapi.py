"""OpenAPI v3 schemas with the keywords that Kubernetes supports, and their conversion to JSON Schema."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, TypeAlias

from reconciler.krm.yaml import DataPath

Schema: TypeAlias = dict[str, Any]
"""OpenAPI v3 schema object. Do not change a schema after its creation."""

FREE_FORM = "x-kubernetes-preserve-unknown-fields"
LIST_TYPE = "x-kubernetes-list-type"
MAP_TYPE = "x-kubernetes-map-type"

_KEYWORD_ORDER = (
    *("type", "title", "description", "format", "nullable", "enum", "default", "example", "pattern"),
    *("minLength", "maxLength", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
    *("minItems", "maxItems", "minProperties", "maxProperties"),
    *("items", "additionalProperties", "properties", "required"),
)
_SUBSCHEMA_KEYWORDS = ("items", "additionalProperties", "properties")
_KEYWORD_POSITIONS = {keyword: (place, "") for place, keyword in enumerate(_KEYWORD_ORDER)}


def sort_keywords(schema: Mapping[str, Any]) -> Schema:
    """Return the schema with its keywords in the order of the output files. Extensions such as `x-…` come last."""
    keys = sorted(schema, key=lambda keyword: _KEYWORD_POSITIONS.get(keyword, (len(_KEYWORD_ORDER), keyword)))
    return {keyword: schema[keyword] for keyword in keys}


def build_object_schema(properties: Mapping[str, Schema], required: list[str]) -> Schema:
    """Return the OpenAPI schema of an object. `properties` contains the schemas of its fields."""
    schema: Schema = {"type": "object", "properties": {name: properties[name] for name in sorted(properties)}}
    return schema | ({"required": sorted(required)} if required else {})


def transform_schema(schema: Schema, transform_node: Callable[[Schema], Schema]) -> Schema:
    """Return a copy of a schema in which `transform_node` was applied to the schema and all nested schemas.

    Nested schemas are transformed first.
    """
    # Copy all values, because a YAML writer would write an alias for a list or map that occurs twice.
    copy = {keyword: value if keyword in _SUBSCHEMA_KEYWORDS else deepcopy(value) for keyword, value in schema.items()}
    for keyword in ("items", "additionalProperties"):
        if keyword in copy:
            copy[keyword] = transform_schema(copy[keyword], transform_node)
    if "properties" in copy:
        copy["properties"] = {
            name: transform_schema(child, transform_node) for name, child in copy["properties"].items()
        }
    return transform_node(copy)


def get_child_schema(schema: Schema, step: str | int) -> Schema | None:
    """Return the schema of one field, map value or list item. Return None if the schema does not declare this value.

    In a free-form object, every field is declared.
    """
    child: Schema | None
    if FREE_FORM in schema:
        child = {FREE_FORM: True}
    elif isinstance(step, int):
        child = schema.get("items")
    else:
        child = schema.get("properties", {}).get(step, schema.get("additionalProperties"))
    return child


def is_declared(schema: Schema, path: DataPath) -> bool:
    """Return whether a schema declares the field at `path`."""
    node: Schema | None = schema
    for step in path:
        node = None if node is None else get_child_schema(node, step)
    return node is not None


JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"

# Restrict numbers to 64 bits, as CEL and Kubernetes do.
_NUMBER_RANGES: dict[str, tuple[float, float]] = {
    "integer": (-(2**63), 2**63 - 1),
    "number": (-sys.float_info.max, sys.float_info.max),
}


def build_json_schema(schema: Schema) -> dict[str, Any]:
    """Convert an OpenAPI schema to JSON Schema (2020-12), for text editors."""
    return {"$schema": JSON_SCHEMA_DIALECT} | transform_schema(schema, _convert_node)


def build_validator_schema(schema: Schema, *, required: bool) -> dict[str, Any]:
    """Convert an OpenAPI schema to JSON Schema for the validator, with the keyword `re2` instead of `pattern`.

    All numbers are limited to 64 bits. If `required` is False, fields and map values can be missing or null.
    """
    return transform_schema(schema, _convert_strictly if required else _convert_leniently)


def _convert_node(schema: Schema) -> dict[str, Any]:
    converted = {keyword: value for keyword, value in schema.items() if not keyword.startswith("x-kubernetes-")}
    if schema.get(LIST_TYPE) == "set":
        converted["uniqueItems"] = True
    if "example" in converted:
        converted["examples"] = [converted.pop("example")]
    if "properties" in converted:
        converted["additionalProperties"] = False
    for exclusive, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if converted.pop(exclusive, False):
            converted[exclusive] = converted.pop(limit)
    if converted.pop("nullable", False):
        _allow_null(converted)
    return converted


def _allow_null(converted: dict[str, Any]) -> None:
    types = converted["type"]
    converted["type"] = [types, "null"] if isinstance(types, str) else types
    if "enum" in converted:
        converted["enum"] = [*(value for value in converted["enum"] if value is not None), None]


def _convert_strictly(schema: Schema) -> dict[str, Any]:
    converted = _convert_node(schema)
    if schema["type"] in _NUMBER_RANGES:
        lowest, highest = _NUMBER_RANGES[schema["type"]]
        converted["minimum"] = max(lowest, converted.get("minimum", lowest))
        converted["maximum"] = min(highest, converted.get("maximum", highest))
    if "pattern" in converted:
        converted["re2"] = converted.pop("pattern")
    # Remove keywords such as `format`, which the validator does not check.
    return {keyword: value for keyword, value in converted.items() if keyword in _ENFORCED_KEYWORDS}


def _convert_leniently(schema: Schema) -> dict[str, Any]:
    # Do not check the number of map entries here, because this number is only known after all layers of values are
    # merged.
    converted = {
        keyword: value for keyword, value in _convert_strictly(schema).items() if keyword not in _OBJECT_KEYWORDS
    }
    entry_schema = converted.get("additionalProperties")
    for node in (
        *converted.get("properties", {}).values(),
        *([entry_schema] if isinstance(entry_schema, dict) else []),
    ):
        _allow_null(node)
    return converted


_OBJECT_KEYWORDS = frozenset(("required", "minProperties", "maxProperties"))
_ENFORCED_KEYWORDS = frozenset(
    (
        *("type", "enum", "re2", "minLength", "maxLength"),
        *("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
        *("items", "additionalProperties", "properties", "required"),
    )
)
