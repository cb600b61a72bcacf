"""Fields of a flattened addon: fields with fixed values, remaining fields, and their schemas in shorthand notation."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from reconciler.controllers.components.schema.openapi import (
    FREE_FORM,
    LIST_TYPE,
    Schema,
    build_object_schema,
    sort_keywords,
)
from reconciler.controllers.components.schema.values import has_implied_default
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field

# These keywords restrict the whole object. Therefore, an object with one of these keywords becomes one literal.
_WHOLE_OBJECT_KEYWORDS = ("nullable", "minProperties", "maxProperties")


@dataclass(frozen=True, eq=False)
class FixedFields:
    """Fields of an object whose values become literals when a component type is flattened.

    `fixed` contains these fields by name. If the whole value of a field becomes a literal, the entry is None. If only
    some nested fields become literals, the entry is the FixedFields of the nested object. `has_open_fields` is true if
    at least one field does not become a literal.
    """

    fixed: Mapping[str, FixedFields | None]
    has_open_fields: bool


def find_fixed_fields(schema: Schema, config: Mapping[str, Any], used_paths: Collection[DataPath]) -> FixedFields:
    """Return the fields of an object that become literals: the fields in `config` and the fields in `used_paths`.

    `used_paths` contains the paths of the fields that determine where an addon applies. The path `()` stands for the
    whole object. Environments cannot set a field in `used_paths`, even if `config` contains no value for this field.
    """
    properties: dict[str, Schema] = schema["properties"]
    if () in used_paths:
        return FixedFields(dict.fromkeys(properties), has_open_fields=False)
    fixed: dict[str, FixedFields | None] = {}
    for name, node in properties.items():
        nested_paths = [path[1:] for path in used_paths if path[0] == name]
        value = config.get(name) if name in config and (config[name] is not None or node.get("nullable")) else _UNSET
        if value is not _UNSET or nested_paths:
            nested = _find_nested_fixed_fields(node, value, nested_paths)
            fixed[name] = nested if nested and nested.has_open_fields else None
    return FixedFields(fixed, any(fixed.get(name, _NO_FIXED_FIELDS) for name in properties))


def restrict_to_section(section: Schema, fixed_fields: FixedFields) -> FixedFields:
    """Return `fixed_fields` without the fields that `section` does not declare.

    `section` is the schema of `parameters` or `envOverrides`.
    """
    properties: dict[str, Schema] = section["properties"]
    nested = {
        name: restrict_to_section(properties[name], nested_fields)
        for name, nested_fields in fixed_fields.fixed.items()
        if nested_fields and name in properties
    }
    partly_open = {name: nested_fields for name, nested_fields in nested.items() if nested_fields.has_open_fields}
    fixed = {name: partly_open.get(name) for name in fixed_fields.fixed if name in properties}
    return FixedFields(fixed, any(fixed.get(name, _NO_FIXED_FIELDS) for name in properties))


def remove_fixed_fields(section: Schema, fixed_fields: FixedFields) -> Schema | None:
    """Return the schema of an object without the fields in `fixed_fields`. Return None if no field remains.

    In the result, no field is required, and the object has the default `{}`.
    """
    properties: dict[str, Schema] = {}
    for name, node in section["properties"].items():
        nested = fixed_fields.fixed.get(name)
        remaining = remove_fixed_fields(node, nested) if nested else None if name in fixed_fields.fixed else node
        if remaining is not None:
            properties[name] = remaining
    if not properties:
        return None
    return sort_keywords(build_object_schema(properties, []) | {"default": {}})


_UNSET = object()
_NO_FIXED_FIELDS = FixedFields({}, has_open_fields=True)


def _find_nested_fixed_fields(node: Schema, value: Any, used_paths: Collection[DataPath]) -> FixedFields | None:
    """Return the fields of a nested object that become literals. Return None if the whole object becomes a literal."""
    is_set = isinstance(value, Mapping)
    # Accept only the default `{}`. If the default contains fields, and an environment sets one field of the object, the
    # default has no effect. Therefore, the values of its fields are not fixed.
    always_exists = is_set or (value is _UNSET and node.get("default") == {})
    if "properties" not in node or not always_exists or any(keyword in node for keyword in _WHOLE_OBJECT_KEYWORDS):
        return None
    return find_fixed_fields(node, value if is_set else {}, used_paths)


_MARKER_NAMES = {
    LIST_TYPE: "uniqueItems",
    "x-query-containers": "queryContainers",
    "x-query-resources": "queryResources",
}
_STRUCTURE_KEYWORDS = ("type", "items", "additionalProperties", "properties", "required", FREE_FORM)
_DEFAULT_KEYWORD = "default"


@dataclass
class ShorthandWriter:
    """Writes JSON Schemas in the shorthand notation of component definitions, and collects their named types.

    Attributes:
        reserved_names: Type names that the component definition already uses.
        required_by_default: Value of `requiredByDefault` in the schema of the component definition.
        types: New types for `schema.types`. Maps the name of each type to its definition.
    """

    reserved_names: Collection[str]
    required_by_default: bool = False
    types: dict[str, Any] = field(default_factory=dict)

    def write_fields(self, schema: Schema, name: str) -> dict[str, Any]:
        """Return the fields of an object in shorthand notation. The names of new types begin with `name`."""
        required = schema.get("required", ())
        fields = {
            key: self._write_field(node, f"{name}-{key}", is_required=key in required)
            for key, node in schema["properties"].items()
        }
        schema_without_default = {keyword: value for keyword, value in schema.items() if keyword != _DEFAULT_KEYWORD}
        if _DEFAULT_KEYWORD not in schema or (
            schema[_DEFAULT_KEYWORD] == {} and has_implied_default(schema_without_default)
        ):
            return fields
        return fields | {"$default": schema[_DEFAULT_KEYWORD]}

    def _write_field(self, schema: Schema, name: str, *, is_required: bool) -> Any:
        markers = _format_markers(schema)
        # Write the marker `required` only if the marker changes the schema. If `requiredByDefault` is true, a field
        # that has no default is required even if the marker is missing.
        if is_required != (self.required_by_default and _DEFAULT_KEYWORD not in schema):
            markers["required"] = json.dumps(is_required)
        if "properties" in schema and markers.keys() <= {_DEFAULT_KEYWORD}:
            return self.write_fields(schema, name)
        return _format_field(self._write_type(schema, name), markers)

    def _write_type(self, schema: Schema, name: str) -> str:
        """Return the shorthand type of a schema, without markers. Define a named type for an object with fields."""
        if "properties" in schema:
            structure = {keyword: value for keyword, value in schema.items() if keyword in _STRUCTURE_KEYWORDS}
            return self._define_type(self.write_fields(structure, name), name)
        if "items" in schema:
            return f"[]{self._write_inner_type(schema['items'], name)}"
        if "additionalProperties" in schema:
            return f"map<{self._write_inner_type(schema['additionalProperties'], name)}>"
        return str(schema["type"])

    def _write_inner_type(self, schema: Schema, name: str) -> str:
        """Return the shorthand type of list items or map values. Define a named type for keywords such as `minimum`."""
        markers, kind = _format_markers(schema), self._write_type(schema, name)
        return self._define_type(_format_field(kind, markers), name) if markers else kind

    def _define_type(self, definition: Any, name: str) -> str:
        unique_name, number = name, 1
        while unique_name in self.types or unique_name in self.reserved_names:
            number += 1
            unique_name = f"{name}-{number}"
        self.types[unique_name] = definition
        return unique_name


def _format_markers(schema: Schema) -> dict[str, str]:
    markers = (
        (_MARKER_NAMES.get(keyword, keyword), value)
        for keyword, value in schema.items()
        if keyword not in _STRUCTURE_KEYWORDS
    )
    return {marker: "true" if marker == "uniqueItems" else _format_value(value) for marker, value in markers}


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"' if _needs_quotes(value) else value
    return json.dumps(value, ensure_ascii=False)


def _needs_quotes(value: str) -> bool:
    return not value or any(character.isspace() or character in "\"'|,[]{}\\" for character in value)


def _format_field(kind: str, markers: Mapping[str, str]) -> str:
    return f"{kind} | {' '.join(f'{marker}={value}' for marker, value in markers.items())}" if markers else kind
