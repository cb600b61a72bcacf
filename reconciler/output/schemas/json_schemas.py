"""Converts the kinds that a config can contain from a short notation to JSON Schema files.

The models in `api/` declare most kinds. The YAML files in this folder contain the other kinds in a short
notation. The notation is JSON Schema with these additional keywords:

- `fields`: the properties of a mapping. Other properties are not allowed.
- `open`: if true, other properties are allowed.
- `extensible`: if true, other properties are allowed if their names begin with `x-`.
- `values`: the schema of all values of a mapping with any keys.
- `items`: the schema of all items of a list.
- `part`: the name of a shared part. Keywords next to `part` override keywords of the shared part.
- `nullable`: false if an optional field must not be null; true if an item or a value can be null.
- `allowEmpty`: false if an optional `enum` field must not be empty.

This module does not validate manifests. The parsers of the controllers validate manifests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from reconciler.api.json_schema import build_manifest_schema
from reconciler.api.kpt import Kptfile
from reconciler.api.kubeadmiral import (
    ClusterOverridePolicy,
    ClusterPropagationPolicy,
    FederatedCluster,
    OverridePolicy,
    PropagationPolicy,
)
from reconciler.api.manifest import KrmObject
from reconciler.api.openchoreo import Addon, Component, ComponentDefinition, ComponentType, EnvBinding, TypedComponent
from reconciler.api.package_status import PackageStatus
from reconciler.api.porch import PackageVariant, PackageVariantSet, Repository
from reconciler.api.reconciler import Build, Environment, PackageRevisionSet, TemplateMergeRule
from reconciler.api.strimzi import Kafka, KafkaNodePool
from reconciler.krm.objects import split_api_version
from reconciler.krm.yaml import parse_yaml
from reconciler.lazy_dataclasses import dataclass, field

Node = Mapping[str, Any]
Parts = Mapping[str, Node]
_SCHEMA_KEYWORDS = ("if", "then", "else", "not", "propertyNames")
_SCHEMA_LIST_KEYWORDS = ("anyOf", "allOf", "oneOf")
_NOTATION_KEYWORDS = ("fields", "open", "extensible", "values", "items", "part", "nullable", "allowEmpty")
_EXTENSION_PATTERN = "^x-"


def expand(node: Node, parts: Parts) -> dict[str, Any]:
    """Convert a node in the short notation to JSON Schema. The schema contains no references."""
    node = _merge_part(node, parts)
    schema = {key: _expand_keyword(key, value, parts) for key, value in node.items() if key not in _NOTATION_KEYWORDS}
    if "items" in node:
        schema |= {"type": "array", "items": _expand_item(node["items"], parts)}
    if "values" in node:
        schema |= {"type": "object", "additionalProperties": _expand_item(node["values"], parts)}
    if "fields" in node:
        schema |= _expand_mapping(node, parts)
    return schema


def _merge_part(node: Node, parts: Parts) -> Node:
    if "part" not in node:
        return node
    overrides = {key: value for key, value in node.items() if key != "part"}
    return {**_merge_part(parts[node["part"]], parts), **overrides}


def _expand_keyword(key: str, value: Any, parts: Parts) -> Any:
    if key in _SCHEMA_KEYWORDS:
        return expand(value, parts)
    return [expand(schema, parts) for schema in value] if key in _SCHEMA_LIST_KEYWORDS else value


def _expand_item(node: Node, parts: Parts) -> dict[str, Any]:
    schema = expand(node, parts)
    return _allow_null(schema) if _merge_part(node, parts).get("nullable") else schema


def _expand_mapping(node: Node, parts: Parts) -> dict[str, Any]:
    required = node.get("required", ())
    schema: dict[str, Any] = {"type": "object"}
    if required:
        schema["required"] = list(required)
    schema["properties"] = {
        name: expand(field_node, parts) if name in required else _expand_optional(field_node, parts)
        for name, field_node in node["fields"].items()
    }
    if node.get("extensible"):
        schema["patternProperties"] = {_EXTENSION_PATTERN: {}}
    if not node.get("open"):
        schema["additionalProperties"] = False
    return schema


def _expand_optional(node: Node, parts: Parts) -> dict[str, Any]:
    node, schema = _merge_part(node, parts), expand(node, parts)
    if not node.get("nullable", True):
        return schema
    if "enum" in schema and node.get("allowEmpty", True):
        # Exclude null and the empty string from `enum`, because editors offer the values of `enum` as completions.
        values = schema.pop("enum")
        return schema | {"anyOf": [{"enum": values}, {"type": ["string", "null"], "maxLength": 0}]}
    return _allow_null(schema)


def _allow_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that also accepts null. A schema without a type already accepts null."""
    if "enum" in schema:
        return schema | {"enum": [*schema["enum"], None]}
    if "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return schema | {"type": [*dict.fromkeys([*types, "null"])]}
    return schema | {"anyOf": [*schema["anyOf"], {"type": "null"}]} if "anyOf" in schema else schema


DIALECT = "http://json-schema.org/draft-07/schema#"
"""The JSON Schema version: the newest version that all common YAML editors and validators support."""

_SCHEMA_FILES = ("greenhouse",)


@dataclass(frozen=True)
class Kind:
    """A kind with its API versions.

    Attributes:
        body: The JSON Schema of the objects of this kind, without the field `$schema`.
    """

    name: str
    api_versions: tuple[str, ...]
    description: str
    body: Mapping[str, Any] = field(repr=False)

    @property
    def group(self) -> str:
        """The API group of the kind."""
        return split_api_version(self.api_versions[0])[0]


def build_kind_schema(kind: Kind) -> dict[str, Any]:
    """Return the JSON Schema of the objects of a kind. The schema contains no references."""
    return {"$schema": DIALECT, **kind.body}


def build_component_kind(name: str, component_type: str, spec: Mapping[str, Any]) -> Kind:
    """Return the kind that a ComponentType defines.

    Args:
        name: The name of the kind.
        component_type: The name of the ComponentType.
        spec: The JSON Schema of the field `spec`.
    """
    description, body = f"A component of the type {component_type}.", build_manifest_schema(TypedComponent)
    properties = {
        **body["properties"],
        "kind": {"const": name, "description": description},
        "spec": {
            "description": "Parameters of the component.",
            **{key: value for key, value in spec.items() if key != "$schema"},
        },
    }
    header = {"title": name, "description": description}
    return Kind(name, TypedComponent.api_versions, description, {**body, **header, "properties": properties})


def _load_kinds(*files: str) -> Iterator[Kind]:
    shared = _load_schema_file("shared")
    for name in files:
        content = _load_schema_file(name)
        parts = {**shared, **content["parts"]}
        for entry in content["kinds"]:
            versions = entry["apiVersion"] if isinstance(entry["apiVersion"], list) else [entry["apiVersion"]]
            body = _build_body(entry, versions, parts)
            yield Kind(entry["kind"], tuple(versions), entry["description"], body)


def _load_schema_file(name: str) -> dict[str, Any]:
    text = resources.files(__package__).joinpath(f"{name}.yaml").read_bytes()
    data: dict[str, Any] = parse_yaml(text).documents[0].data
    return data


def _build_body(entry: Node, versions: list[str], parts: Mapping[str, Node]) -> dict[str, Any]:
    """Return the JSON Schema of one entry of `kinds`. Add the fields that all Kubernetes objects have."""
    fields = {
        "apiVersion": {"enum": versions, "description": "API group and version."},
        "kind": {"const": entry["kind"], "description": entry["description"]},
        "metadata": _build_metadata(entry),
        **({"spec": entry["spec"]} if "spec" in entry else {}),
        **(
            {}
            if entry.get("open")
            else {"status": {"description": "Programs write this field. The reconciler does not read this field."}}
        ),
        **entry.get("fields", {}),
    }
    optional = ("metadata" if entry.get("nameless") else "", "spec" if entry.get("specOptional") else "")
    required = [name for name in ("apiVersion", "kind", "metadata", "spec") if name in fields and name not in optional]
    header = {"title": entry["kind"], "description": entry["description"], "open": entry.get("open", False)}
    return expand({**header, "required": required, "fields": fields}, parts)


def _build_metadata(entry: Node) -> Node:
    """Return the node for the field `metadata`. The node is open, because Kubernetes defines more fields."""
    namespaces: dict[str, Any] = {
        "default": {"type": "string", "description": 'Namespace of the object. The default is "default".'},
        "none": {"enum": [""], "allowEmpty": False, "description": "Objects of this kind have no namespace."},
        "": {"type": "string", "description": "Namespace of the object."},
    }
    namespace = entry.get("namespace", "")
    # Accept numbers as values, because users write versions without quotes, and YAML parses these as numbers.
    any_scalar = {"type": ["string", "number", "boolean", "null"]}
    labels = {"description": "Labels of the object.", "open": True, "fields": entry.get("labels", {})}
    # Require strings for annotations of the reconciler, so that the schema reports other values. The reconciler ignores
    # other values.
    annotations = {"description": "Annotations of the object.", "open": True}
    annotations["fields"] = {
        name: {"type": "string", **node} for name, node in entry.get("annotations", {}).items()
    }  # fmt: skip
    return {
        "description": "Metadata of the object.",
        "open": True,
        "required": [*([] if entry.get("nameless") else ["name"])],
        "fields": {
            "name": {"type": "string", "minLength": 1, "description": "Name of the object."},
            "namespace": namespaces[namespace],
            "labels": {**labels, "additionalProperties": any_scalar},
            "annotations": {**annotations, "additionalProperties": any_scalar},
        },
    }


_MODELS: tuple[type[KrmObject], ...] = (
    Repository, PackageVariant, PackageVariantSet, PackageRevisionSet, OverridePolicy, ClusterOverridePolicy,
    PropagationPolicy, ClusterPropagationPolicy, FederatedCluster, Kafka, KafkaNodePool, TemplateMergeRule,
    ComponentDefinition, Addon, ComponentType, Component, EnvBinding, Environment, Build,
)  # fmt: skip
_PACKAGE_MODELS: tuple[type[KrmObject], ...] = (Kptfile, PackageStatus)


def _build_model_kind(model: type[KrmObject]) -> Kind:
    body = build_manifest_schema(model)
    return Kind(model.__name__, model.api_versions, body["description"], body)


KINDS = (*map(_build_model_kind, _MODELS), *_load_kinds(*_SCHEMA_FILES), *map(_build_model_kind, _PACKAGE_MODELS))
"""All kinds except the kinds that ComponentTypes define."""


INDEX = "all.json"
_SETTINGS = "settings.json"


def build_schema_files(kinds: Sequence[Kind], settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each schema file by path: one file per kind and version, the index, and the settings.

    A path has the form `<group>/<kind>_<version>.json`. Validators such as kubeconform use the same paths for CRDs.
    """
    files = {
        get_schema_path(kind, version): format_schema(build_kind_schema(kind))
        for kind in kinds
        for version in kind.api_versions
    }
    index = format_schema(build_index_schema(kinds))
    return {INDEX: index, _SETTINGS: format_schema(settings), **dict(sorted(files.items()))}


def get_schema_path(kind: Kind, api_version: str) -> str:
    """Return the path of the schema file of a kind."""
    group, version = split_api_version(api_version)
    return f"{group}/{kind.name.lower()}_{version}.json"


def build_index_schema(kinds: Iterable[Kind]) -> dict[str, Any]:
    """Return one schema for all kinds. The schema checks each object by its kind, and accepts unknown kinds."""
    all_kinds = tuple(kinds)
    versions = sorted({version for kind in all_kinds for version in kind.api_versions})
    names = sorted({kind.name for kind in all_kinds})
    return {
        "$schema": DIALECT,
        "description": "An object must match the schema of its kind. Objects of other kinds are accepted.",
        "properties": {"apiVersion": _suggest_values(versions), "kind": _suggest_values(names)},
        "allOf": [{"if": _build_kind_condition(kind), "then": dict(kind.body)} for kind in all_kinds],
    }


def format_schema(schema: Mapping[str, Any]) -> str:
    """Return the text of a schema file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _suggest_values(values: Sequence[str]) -> dict[str, Any]:
    # Accept any string in addition to the values that editors complete, because the index accepts other kinds.
    return {"anyOf": [{"enum": [*values]}, {"type": "string"}]}


def _build_kind_condition(kind: Kind) -> dict[str, Any]:
    # Match all versions of the group, so that editors report unknown versions.
    group = kind.group.replace(".", "\\.")
    properties = {"apiVersion": {"type": "string", "pattern": f"^{group}/"}, "kind": {"const": kind.name}}
    return {"required": ["apiVersion", "kind"], "properties": properties}


ALL, SETTINGS = "all", "settings"
_OTHER_SCHEMAS = {
    SETTINGS: "The settings file of the reconciler.",
    ALL: "One schema that selects one of these schemas by apiVersion and kind.",
}


def format_kind_lines(kinds: Sequence[Kind]) -> list[str]:
    """Return text lines with the kinds and their descriptions, grouped by API version."""
    width = max(len(kind.name) for kind in kinds) + 2
    lines: list[str] = []
    for group in dict.fromkeys(kind.api_versions for kind in kinds):
        lines += ["", ", ".join(group)] if lines else [", ".join(group)]
        lines += [f"  {kind.name:{width}}{kind.description}" for kind in kinds if kind.api_versions == group]
    return [*lines, "", *(f"{name:{width + 2}}{description}" for name, description in _OTHER_SCHEMAS.items())]


def find_schema(name: str, kinds: Sequence[Kind]) -> dict[str, Any] | None:
    """Return the schema of a kind by its case-insensitive name. Return None if there is no such kind."""
    kind = next((kind for kind in kinds if kind.name.lower() == name.lower()), None)
    return build_kind_schema(kind) if kind else None
