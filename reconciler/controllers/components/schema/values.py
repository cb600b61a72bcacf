"""Merging of value layers, and completion of values with the defaults of a schema."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import reduce
from typing import Any

from reconciler.controllers.components.field_findings import FieldFinding
from reconciler.controllers.components.schema.openapi import Schema, get_child_schema
from reconciler.controllers.components.schema.validation import validate_value_uncached


def overlay_values(*layers: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Merge layers of values. Later layers take precedence.

    Maps are merged. Lists and scalars are replaced. A null removes the value of the earlier layers. A null for a
    nullable field or an undeclared field remains in the result, so that the validation can check it.
    """
    return reduce(lambda lower, upper: _merge_layer(lower, upper, schema), layers, {})


def _merge_layer(lower: Mapping[str, Any], upper: Mapping[str, Any], schema: Schema | None) -> dict[str, Any]:
    result = dict(lower)
    for key, value in upper.items():
        node = get_child_schema(schema, key) if schema else None
        if value is None and node is not None and not node.get("nullable"):
            result.pop(key, None)
        elif isinstance(value, Mapping):
            lower_value = result.get(key)
            result[key] = _merge_layer(lower_value if isinstance(lower_value, Mapping) else {}, value, node)
        else:
            result[key] = value
    return result


def apply_defaults(value: Any, schema: Schema) -> Any:
    """Return a value that is completed with all defaults of its schema, also inside of list items and map values."""
    if isinstance(value, Mapping):
        return _fill_defaults(value, schema)
    if isinstance(value, list) and "items" in schema:
        return [apply_defaults(item, schema["items"]) for item in value]
    return value


def _fill_defaults(value: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    properties: dict[str, Schema] = schema.get("properties", {})
    entries: Schema | None = schema.get("additionalProperties")
    # Remove null from fields and map values that are not nullable, as Kubernetes does, so that the default applies.
    values = {
        key: item for key, item in value.items() if item is not None or _is_null_kept(properties.get(key, entries))
    }
    for name, node in properties.items():
        if name not in values and "default" in node:
            values[name] = deepcopy(node["default"])
    return {key: _fill_child(item, properties.get(key, entries)) for key, item in values.items()}


def _is_null_kept(node: Schema | None) -> bool:
    return node is None or bool(node.get("nullable"))


def _fill_child(value: Any, node: Schema | None) -> Any:
    return value if node is None else apply_defaults(value, node)


def validate_default(schema: Schema) -> tuple[FieldFinding, ...]:
    """Return the errors in the default of a schema. The defaults of nested fields are added before the check."""
    return validate_value_uncached(apply_defaults(schema["default"], schema), schema, ("default",))


def has_implied_default(schema: Schema) -> bool:
    """Return whether the object must get the default `{}`, so that the defaults of its fields apply.

    This is true if a field has a default, the object itself has no default, and `{}` is a valid value.
    """
    fields: dict[str, Schema] = schema.get("properties", {})
    if "default" in schema or not any("default" in field_schema for field_schema in fields.values()):
        return False
    return not validate_default(schema | {"default": {}})
