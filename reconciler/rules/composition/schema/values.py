"""Values in layers, and what schemas fill in where they say nothing (openchoreo 4.1, 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import reduce
from typing import Any

from reconciler.rules.composition.schema.dialect import Schema, below


def overlay(*layers: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Return what layers say together, the last one first of all (openchoreo 4.1).

    Maps are merged, lists and all else replaced. A null takes away what is below it, in free form as well. It stays
    where the schema lets a value be null (design 10.32), and where none is declared, so that validation tells of it.
    """
    return reduce(lambda lower, upper: _over(lower, upper, schema), layers, {})


def _over(lower: Mapping[str, Any], upper: Mapping[str, Any], schema: Schema | None) -> dict[str, Any]:
    result = dict(lower)
    for key, value in upper.items():
        node = below(schema, key) if schema else None
        if value is None and node is not None and not node.get("nullable"):
            result.pop(key, None)
        elif isinstance(value, Mapping):
            under = result.get(key)
            result[key] = _over(under if isinstance(under, Mapping) else {}, value, node)
        else:
            result[key] = value
    return result


def with_defaults(value: Any, schema: Schema) -> Any:
    """Return a value with every default that applies, in every item and entry, and nothing pruned (openchoreo 4.2)."""
    if isinstance(value, Mapping):
        return _filled(value, schema)
    if isinstance(value, list) and "items" in schema:
        return [with_defaults(item, schema["items"]) for item in value]
    return value


def _filled(value: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    properties: dict[str, Schema] = schema.get("properties", {})
    entries: Schema | None = schema.get("additionalProperties")
    # openchoreo 17 row 11: null for what may not be null is as if absent; entries of maps, too, as in Kubernetes
    given = {key: one for key, one in value.items() if one is not None or _keeps_null(properties.get(key, entries))}
    for name, node in properties.items():
        if name not in given and "default" in node:
            given[name] = deepcopy(node["default"])
    return {key: _descended(one, properties.get(key, entries)) for key, one in given.items()}


def _keeps_null(node: Schema | None) -> bool:
    return node is None or bool(node.get("nullable"))


def _descended(value: Any, node: Schema | None) -> Any:
    return value if node is None else with_defaults(value, node)
