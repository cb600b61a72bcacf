"""JSON Schemas of the kinds that a config or a package can contain, generated from the models in `api/`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reconciler.api import functions
from reconciler.api.greenhouse import Catalog, ClusterPluginDefinition, Plugin, PluginDefinition, PluginPreset, Team
from reconciler.api.greenhouse_overrides import Cluster, Organization, PluginOverride
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
from reconciler.api.porch.package_variant import PackageVariant
from reconciler.api.porch.package_variant_set import PackageVariantSet
from reconciler.api.porch.repository import Repository
from reconciler.api.reconciler import Build, Environment, PackageRevisionSet, TemplateMergeRule
from reconciler.api.strimzi import Kafka, KafkaNodePool
from reconciler.api.tenancy import Tenant
from reconciler.krm.objects import split_api_version
from reconciler.lazy_dataclasses import dataclass, field

DIALECT = "http://json-schema.org/draft-07/schema#"
"""The JSON Schema version: the newest version that all common YAML editors and validators support."""


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


MODELS: tuple[type[KrmObject], ...] = (
    Repository, PackageVariant, PackageVariantSet, PackageRevisionSet, OverridePolicy, ClusterOverridePolicy,
    PropagationPolicy, ClusterPropagationPolicy, FederatedCluster, Kafka, KafkaNodePool, TemplateMergeRule, Tenant,
    ComponentDefinition, Addon, ComponentType, Component, EnvBinding, Environment, Build, Cluster, Organization,
    Team, Catalog, PluginDefinition, ClusterPluginDefinition, PluginPreset, PluginOverride, Plugin,
    Kptfile, PackageStatus, *functions.KINDS,
)  # fmt: skip


def _build_model_kind(model: type[KrmObject]) -> Kind:
    body = build_manifest_schema(model)
    return Kind(model.__name__, model.api_versions, body["description"], body)


KINDS = tuple(map(_build_model_kind, MODELS))
"""All kinds except the kinds that ComponentTypes define."""


INDEX = "all.json"
_SETTINGS = "settings.json"


def build_schema_files(kinds: Sequence[Kind], settings: Mapping[str, Any]) -> dict[str, str]:
    """Map the path of each schema file to its text: one file per kind and version, the index, and the settings.

    The path of a kind has the form `<group>/<kind>_<version>.json`. Validators such as kubeconform use the same paths
    for CRDs.
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
    # Accept any string besides these values, because objects of other kinds are accepted. Editors suggest these values.
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
