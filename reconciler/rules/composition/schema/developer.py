"""What developers can set in a component: the definition's fields, and addons by their keys (openchoreo 11 step 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.krm.yaml import Path
from reconciler.rules.composition import codes
from reconciler.rules.composition.faults import Fault
from reconciler.rules.composition.schema.defaults import fills_itself
from reconciler.rules.composition.schema.dialect import Schema, object_of, ordered
from reconciler.rules.composition.schema.sections import ComponentSchema
from reconciler.rules.composition.schema.values import overlay
from reconciler.rules.fields import dotted


@dataclass(frozen=True)
class DeveloperAddon:
    """An addon that a type lets developers opt into; `path` is that of its name in the type."""

    key: str
    description: str
    schema: ComponentSchema
    defaults: Mapping[str, Any]
    path: Path


def developer_schema(definition: ComponentSchema, addons: Sequence[DeveloperAddon]) -> tuple[Schema, tuple[Fault, ...]]:
    """Return the schema of a component's `spec`, and the addons whose key is taken, which are not in it."""
    properties, faults = dict(definition.full["properties"]), []
    for addon in addons:
        if addon.key in properties:
            faults.append(_collision(addon, definition))
        else:
            properties[addon.key] = _addon_schema(addon)
    return ordered(definition.full | object_of(properties, definition.full.get("required", []))), tuple(faults)


def defaulted(schema: Schema, defaults: Mapping[str, Any]) -> Schema:
    """Return a schema with defaults written over its own, leaf by leaf (openchoreo 4.4).

    An object that has a default of its own gets them there, too; a null changes nothing, unless the field may be null.
    """
    properties = dict(schema["properties"])
    for name, value in defaults.items():
        node = properties.get(name)
        if node is not None and (value is not None or node.get("nullable")):
            properties[name] = _with_default(node, value)
    return schema | {"properties": properties}


def _with_default(node: Schema, value: Any) -> Schema:
    if not isinstance(value, Mapping) or "properties" not in node:
        return ordered(node | {"default": value})
    inner = defaulted(node, value)
    if isinstance(node.get("default"), Mapping):
        return inner | {"default": overlay(node["default"], value, schema=node)}
    return ordered(inner | {"default": {}}) if fills_itself(inner) else inner


def _addon_schema(addon: DeveloperAddon) -> Schema:
    schema = defaulted(addon.schema.full, addon.defaults)
    return ordered(schema | {"description": addon.description}) if addon.description else schema


def _collision(addon: DeveloperAddon, definition: ComponentSchema) -> Fault:
    owner = "a field of the definition" if addon.key in definition.full["properties"] else "the key of another addon"
    message = f"{dotted(addon.path)} makes the key {addon.key}, which is {owner}; keys must be unique"
    return Fault(codes.ADDON_KEY_COLLISION, addon.path, message)
