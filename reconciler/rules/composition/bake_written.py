"""Schemas written back as shorthand, so that a definition can have them (openchoreo 3, 13.3.2)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.rules.composition.schema import Schema
from reconciler.rules.composition.schema.defaults import fills_itself
from reconciler.rules.composition.schema.dialect import FREE_FORM, LIST_TYPE

_MARKERS = {LIST_TYPE: "uniqueItems", "x-query-containers": "queryContainers", "x-query-resources": "queryResources"}
_STRUCTURE = ("type", "items", "additionalProperties", "properties", "required", FREE_FORM)
_DEFAULT = "default"


@dataclass
class Writer:
    """Writes schemas as shorthand; `types` are those it needs, by names that are not `taken`.

    `required_by_default` is what the schema says of itself that they are written into (openchoreo 3.4).
    """

    taken: Collection[str]
    required_by_default: bool = False
    types: dict[str, Any] = field(default_factory=dict)

    def fields(self, schema: Schema, name: str) -> dict[str, Any]:
        """Return the fields of an object, which is called `name` where a type needs a name."""
        required = schema.get("required", ())
        found = {
            key: self._field(node, f"{name}-{key}", is_required=key in required)
            for key, node in schema["properties"].items()
        }
        plain = {keyword: value for keyword, value in schema.items() if keyword != _DEFAULT}
        if _DEFAULT not in schema or (schema[_DEFAULT] == {} and fills_itself(plain)):
            return found
        return found | {"$default": schema[_DEFAULT]}

    def _field(self, schema: Schema, name: str, *, is_required: bool) -> Any:
        marks = _marks(schema)
        # a mapping has no markers, and is required by default only where it has no default
        if is_required != (self.required_by_default and _DEFAULT not in schema):
            marks["required"] = json.dumps(is_required)
        if "properties" in schema and marks.keys() <= {_DEFAULT}:
            return self.fields(schema, name)
        return _line(self._type(schema, name), marks)

    def _type(self, schema: Schema, name: str) -> str:
        """Return the type of a value, markers aside; of an object with fields that is one with a name."""
        if "properties" in schema:
            plain = {keyword: value for keyword, value in schema.items() if keyword in _STRUCTURE}
            return self._named(self.fields(plain, name), name)
        if "items" in schema:
            return f"[]{self._inner(schema['items'], name)}"
        if "additionalProperties" in schema:
            return f"map<{self._inner(schema['additionalProperties'], name)}>"
        return str(schema["type"])

    def _inner(self, schema: Schema, name: str) -> str:
        """Return the type of items or entries, which have no markers where they are used."""
        marks, kind = _marks(schema), self._type(schema, name)
        return self._named(_line(kind, marks), name) if marks else kind

    def _named(self, written: Any, name: str) -> str:
        free, number = name, 1
        while free in self.types or free in self.taken:
            number += 1
            free = f"{name}-{number}"
        self.types[free] = written
        return free


def _marks(schema: Schema) -> dict[str, str]:
    found = ((_MARKERS.get(keyword, keyword), value) for keyword, value in schema.items() if keyword not in _STRUCTURE)
    return {marker: "true" if marker == "uniqueItems" else _value(value) for marker, value in found}


def _value(value: Any) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"' if _needs_quotes(value) else value
    return json.dumps(value, ensure_ascii=False)


def _needs_quotes(value: str) -> bool:
    return not value or any(one.isspace() or one in "\"'|,[]{}\\" for one in value)


def _line(kind: str, marks: Mapping[str, str]) -> str:
    return f"{kind} | {' '.join(f'{marker}={value}' for marker, value in marks.items())}" if marks else kind
