"""CRD that is generated from a component type, and the schema of the fields that developers can set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFinding, build_field_finding
from reconciler.controllers.components.names import derive_crd_name, pluralize_kind
from reconciler.controllers.components.schema.openapi import (
    LIST_TYPE,
    MAP_TYPE,
    Schema,
    build_object_schema,
    sort_keywords,
    transform_schema,
)
from reconciler.controllers.components.schema.sections import ComponentSchema
from reconciler.controllers.components.schema.validation import validate_value_uncached
from reconciler.controllers.components.schema.values import apply_defaults, has_implied_default, overlay_values
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass

_CRD_VERSION = "v1alpha1"


def build_crd(kind: str, group: str, schema: Schema) -> dict[str, Any]:
    """Return the CustomResourceDefinition of `kind`. `schema` is the schema of its `spec`."""
    singular = kind.lower()
    openapi_schema = {
        "type": "object",
        "properties": {"spec": transform_schema(schema, _convert_to_structural)},
        "required": ["spec"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": derive_crd_name(kind, group)},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": pluralize_kind(kind), "singular": singular},
            "versions": [
                {"name": _CRD_VERSION, "served": True, "storage": True, "schema": {"openAPIV3Schema": openapi_schema}}
            ],
        },
    }


def _convert_to_structural(schema: Schema) -> Schema:
    # Remove the keywords for user interfaces, because Kubernetes rejects unknown keywords.
    node = {keyword: value for keyword, value in schema.items() if not keyword.startswith("x-query-")}
    if node.get(LIST_TYPE) == "set":
        node.update(_convert_set(node.pop(LIST_TYPE), node["items"]))
    if node.get("default") is not None:
        node["default"] = _complete_default(node["default"], schema)
    return node


def _complete_default(default: Any, schema: Schema) -> Any:
    """Return a default that Kubernetes accepts.

    Kubernetes validates the default of an object, and adds the defaults of nested fields only after the validation. If
    this validation would fail, return a default that contains the defaults of the nested fields.
    """
    return apply_defaults(default, schema) if validate_value_uncached(default, schema, ()) else default


def _convert_set(list_type: str, items: Schema) -> Schema:
    """Return the CRD keywords of a list with unique items (list type `set`).

    In such a list, items that are lists or maps must be atomic. Kubernetes forbids nullable items. Therefore, return no
    keywords if the items are nullable.
    """
    if items.get("nullable"):
        return {}
    keyword = {"array": LIST_TYPE, "object": MAP_TYPE}.get(items["type"])
    return {"items": sort_keywords(items | {keyword: "atomic"}) if keyword else items, LIST_TYPE: list_type}


@dataclass(frozen=True)
class DeveloperAddon:
    """Addon that developers can use in a component. `path` is the path of the addon in the component type."""

    key: str
    description: str
    schema: ComponentSchema
    defaults: Mapping[str, Any]
    path: DataPath


def build_developer_schema(
    definition: ComponentSchema, addons: Sequence[DeveloperAddon]
) -> tuple[Schema, tuple[FieldFinding, ...]]:
    """Return the schema of a component's `spec`, and an error for each addon whose key is already in use.

    The schema contains the fields of the definition, and one object for each addon.
    """
    properties, findings = dict(definition.full["properties"]), []
    for addon in addons:
        if addon.key in properties:
            findings.append(_build_collision_finding(addon, definition))
        else:
            properties[addon.key] = _build_addon_schema(addon)
    return sort_keywords(definition.full | build_object_schema(properties, definition.full.get("required", []))), tuple(
        findings
    )


def override_defaults(schema: Schema, defaults: Mapping[str, Any]) -> Schema:
    """Return a copy of an object schema in which `defaults` replace the defaults of single fields.

    If a nested object has its own default, the values in `defaults` are merged into this default. A null in `defaults`
    only replaces the default of a nullable field.
    """
    properties = dict(schema["properties"])
    for name, value in defaults.items():
        node = properties.get(name)
        if node is not None and (value is not None or node.get("nullable")):
            properties[name] = _set_default(node, value)
    return schema | {"properties": properties}


def _set_default(node: Schema, value: Any) -> Schema:
    if not isinstance(value, Mapping) or "properties" not in node:
        return sort_keywords(node | {"default": value})
    inner = override_defaults(node, value)
    if isinstance(node.get("default"), Mapping):
        return inner | {"default": overlay_values(node["default"], value, schema=node)}
    return sort_keywords(inner | {"default": {}}) if has_implied_default(inner) else inner


def _build_addon_schema(addon: DeveloperAddon) -> Schema:
    schema = override_defaults(addon.schema.full, addon.defaults)
    return sort_keywords(schema | {"description": addon.description}) if addon.description else schema


def _build_collision_finding(addon: DeveloperAddon, definition: ComponentSchema) -> FieldFinding:
    owner = (
        "a field of the component definition"
        if addon.key in definition.full["properties"]
        else "the key of another addon"
    )
    message = f'results in the key "{addon.key}", which is also {owner}; keys must be unique'
    return build_field_finding(ComponentCodes.ADDON_KEY_COLLISION, addon.path, message)
