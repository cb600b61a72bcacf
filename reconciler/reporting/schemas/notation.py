"""The notation of our schemas: JSON Schema with a few words of its own, so that it reads like a list of fields.

`fields` are the properties of a mapping that must have no others, unless it is `open`, or they begin with `x-` and the
mapping lets people have their `own`; `values` are those of a mapping with any keys, `each` the items of a list. `use`
stands for a part by its name, over which everything beside it is laid. A field that is not `required` may be null,
which is as if it were not there, and of several words may be empty, unless `nullable` or `blank` says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Node = Mapping[str, Any]
Parts = Mapping[str, Node]
_NESTED = ("if", "then", "else", "not", "propertyNames")
_LISTED = ("anyOf", "allOf", "oneOf")
_OURS = ("fields", "open", "own", "values", "each", "use", "nullable", "blank")
_OWN = "^x-"


def expand(node: Node, parts: Parts) -> dict[str, Any]:
    """Return the JSON Schema that a node of the notation means; it refers to nothing outside of itself."""
    node = _used(node, parts)
    schema = {key: _below(key, value, parts) for key, value in node.items() if key not in _OURS}
    if "each" in node:
        schema |= {"type": "array", "items": _item(node["each"], parts)}
    if "values" in node:
        schema |= {"type": "object", "additionalProperties": _item(node["values"], parts)}
    if "fields" in node:
        schema |= _mapping(node, parts)
    return schema


def _used(node: Node, parts: Parts) -> Node:
    if "use" not in node:
        return node
    return {**_used(parts[node["use"]], parts), **{key: value for key, value in node.items() if key != "use"}}


def _below(key: str, value: Any, parts: Parts) -> Any:
    if key in _NESTED:
        return expand(value, parts)
    return [expand(one, parts) for one in value] if key in _LISTED else value


def _item(node: Node, parts: Parts) -> dict[str, Any]:
    schema = expand(node, parts)
    return _let_be_null(schema) if _used(node, parts).get("nullable") else schema


def _mapping(node: Node, parts: Parts) -> dict[str, Any]:
    required = node.get("required", ())
    schema: dict[str, Any] = {"type": "object"}
    if required:
        schema["required"] = list(required)
    schema["properties"] = {
        name: expand(one, parts) if name in required else _optional(one, parts) for name, one in node["fields"].items()
    }
    if node.get("own"):
        schema["patternProperties"] = {_OWN: {}}
    if not node.get("open"):
        schema["additionalProperties"] = False
    return schema


def _optional(node: Node, parts: Parts) -> dict[str, Any]:
    node, schema = _used(node, parts), expand(node, parts)
    if not node.get("nullable", True):
        return schema
    if "enum" in schema and node.get("blank", True):
        # editors propose the words, and none of the rest
        words = schema.pop("enum")
        return schema | {"anyOf": [{"enum": words}, {"type": ["string", "null"], "maxLength": 0}]}
    return _let_be_null(schema)


def _let_be_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that takes null as well; one that says nothing of types takes it already."""
    if "enum" in schema:
        return schema | {"enum": [*schema["enum"], None]}
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return schema | {"type": [*dict.fromkeys([*kinds, "null"])]}
    return schema | {"anyOf": [*schema["anyOf"], {"type": "null"}]} if "anyOf" in schema else schema
