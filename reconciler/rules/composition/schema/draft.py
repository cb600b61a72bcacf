"""Schemas as JSON Schema 2020-12, which validators and editors understand (openchoreo 4.3; design 10.32)."""

from __future__ import annotations

import sys
from typing import Any

from reconciler.rules.composition.schema.dialect import LIST_TYPE, Schema, converted

DIALECT = "https://json-schema.org/draft/2020-12/schema"

# expressions count in 64 bits, and so does Kubernetes (openchoreo 5.5)
_RANGES: dict[str, tuple[float, float]] = {
    "integer": (-(2**63), 2**63 - 1),
    "number": (-sys.float_info.max, sys.float_info.max),
}


def json_schema(schema: Schema) -> dict[str, Any]:
    """Return the JSON Schema of what is valid under a schema, for editors (openchoreo 14.2; design 10.32)."""
    return {"$schema": DIALECT} | converted(schema, _drafted)


def engine_schema(schema: Schema, *, required: bool) -> dict[str, Any]:
    """Return a JSON Schema for the validator: with `re2` for `pattern`, and the ranges that numbers have anyway.

    Without `required`, fields and entries may be missing, or null, which is the same (openchoreo 4.4).
    """
    return converted(schema, _strict if required else _lenient)


def _drafted(schema: Schema) -> dict[str, Any]:
    draft = {keyword: value for keyword, value in schema.items() if not keyword.startswith("x-kubernetes-")}
    if schema.get(LIST_TYPE) == "set":
        draft["uniqueItems"] = True
    if "example" in draft:
        draft["examples"] = [draft.pop("example")]
    if "properties" in draft:
        draft["additionalProperties"] = False
    for exclusive, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if draft.pop(exclusive, False):
            draft[exclusive] = draft.pop(limit)
    if draft.pop("nullable", False):
        _let_be_null(draft)
    return draft


def _let_be_null(draft: dict[str, Any]) -> None:
    kinds = draft["type"]
    draft["type"] = [kinds, "null"] if isinstance(kinds, str) else kinds
    if "enum" in draft:
        draft["enum"] = [*(value for value in draft["enum"] if value is not None), None]


def _strict(schema: Schema) -> dict[str, Any]:
    draft = _drafted(schema)
    if schema["type"] in _RANGES:
        lowest, highest = _RANGES[schema["type"]]
        draft["minimum"] = max(lowest, draft.get("minimum", lowest))
        draft["maximum"] = min(highest, draft.get("maximum", highest))
    if "pattern" in draft:
        draft["re2"] = draft.pop("pattern")
    # formats are kept, not enforced (openchoreo 3.2)
    return {keyword: value for keyword, value in draft.items() if keyword in _ENFORCED}


def _lenient(schema: Schema) -> dict[str, Any]:
    # how many entries there are shows when all layers are one
    draft = {keyword: value for keyword, value in _strict(schema).items() if keyword not in _OF_THE_WHOLE}
    entries = draft.get("additionalProperties")
    for field in (*draft.get("properties", {}).values(), *([entries] if isinstance(entries, dict) else [])):
        _let_be_null(field)
    return draft


_OF_THE_WHOLE = frozenset(("required", "minProperties", "maxProperties"))
_ENFORCED = frozenset(
    (
        *("type", "enum", "re2", "minLength", "maxLength"),
        *("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
        *("items", "additionalProperties", "properties", "required"),
    )
)
