"""What a schema is here: OpenAPI v3, as far as Kubernetes takes it, every keyword at its place (openchoreo 3.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, TypeAlias

from reconciler.krm.yaml import Path

Schema: TypeAlias = dict[str, Any]
"""An OpenAPI v3 schema object; never changed once it is made."""

FREE_FORM = "x-kubernetes-preserve-unknown-fields"
LIST_TYPE = "x-kubernetes-list-type"
MAP_TYPE = "x-kubernetes-map-type"

_ORDER = (
    *("type", "title", "description", "format", "nullable", "enum", "default", "example", "pattern"),
    *("minLength", "maxLength", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
    *("minItems", "maxItems", "minProperties", "maxProperties"),
    *("items", "additionalProperties", "properties", "required"),
)
_INNER = ("items", "additionalProperties", "properties")
_PLACES = {keyword: (place, "") for place, keyword in enumerate(_ORDER)}


def ordered(schema: Mapping[str, Any]) -> Schema:
    """Return a schema with its keywords in the order that schemas are printed in; its own extensions come last."""
    keys = sorted(schema, key=lambda keyword: _PLACES.get(keyword, (len(_ORDER), keyword)))
    return {keyword: schema[keyword] for keyword in keys}


def object_of(properties: Mapping[str, Schema], required: list[str]) -> Schema:
    """Return the schema of an object with these fields."""
    schema: Schema = {"type": "object", "properties": {name: properties[name] for name in sorted(properties)}}
    return schema | ({"required": sorted(required)} if required else {})


def converted(schema: Schema, node: Callable[[Schema], Schema]) -> Schema:
    """Return a copy of a schema in which `node` has seen every schema object, the inner ones first."""
    # no two places may share a list or a map: YAML would write the second one as an alias
    copy = {keyword: value if keyword in _INNER else deepcopy(value) for keyword, value in schema.items()}
    for keyword in ("items", "additionalProperties"):
        if keyword in copy:
            copy[keyword] = converted(copy[keyword], node)
    if "properties" in copy:
        copy["properties"] = {name: converted(one, node) for name, one in copy["properties"].items()}
    return node(copy)


def below(schema: Schema, step: str | int) -> Schema | None:
    """Return the schema of a field, an entry or an item; None where none is declared. What is below free form is."""
    found: Schema | None
    if FREE_FORM in schema:
        found = {FREE_FORM: True}
    elif isinstance(step, int):
        found = schema.get("items")
    else:
        found = schema.get("properties", {}).get(step, schema.get("additionalProperties"))
    return found


def declares(schema: Schema, path: Path) -> bool:
    """Tell whether a schema has a place for the value at a path (openchoreo 4.4)."""
    node: Schema | None = schema
    for step in path:
        node = None if node is None else below(node, step)
    return node is not None
