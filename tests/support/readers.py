"""Runs the reader of each kind on one document and returns the validation errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from reconciler.api import functions
from reconciler.api.manifest import KrmObject, read_manifest
from reconciler.api.package_status import PackageStatus
from reconciler.api.porch.package_variant import PackageVariant
from reconciler.api.reconciler import PackageRevisionSet
from reconciler.api.tenancy import Tenant
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.catalog.manifests import is_namespaced
from reconciler.cel import ExpressionLimits
from reconciler.controllers.components.definitions import read_addon, read_component_definition
from reconciler.controllers.components.model import (
    read_binding,
    read_build,
    read_component,
    read_component_type,
    read_environment,
)
from reconciler.controllers.kafka_templates.read_merge_rules import read_merge_rule
from reconciler.controllers.override_policies.read_policies import read_override_policy
from reconciler.controllers.package_variants.read_set import read_package_variant_set
from reconciler.controllers.placement.propagation_policies import read_propagation_policy
from reconciler.controllers.plugin_presets.config_objects import (
    read_definition,
    read_override,
    read_own_options,
    read_plugin,
    read_preset,
)
from reconciler.controllers.repositories import read_repositories
from reconciler.krm.findings import Finding, select_errors
from reconciler.krm.objects import ObjectKey, split_api_version
from reconciler.krm.yaml import DataPath
from reconciler.packages.kptfile import Kptfile, read_kptfile

LIMITS = ExpressionLimits()
ErrorMessages = Sequence[str]


@dataclass(frozen=True)
class _Document:
    """A document without text. Each field is on line 1."""

    data: Any
    line: int = 1

    def find_line(self, path: DataPath) -> int:
        return 1


def read_errors(document: Mapping[str, Any]) -> ErrorMessages:
    """Return the errors that the reader of its kind reports for a document. A kind without a reader has none."""
    return _READERS.get(document["kind"], lambda document: ())(document)


def config_object(document: Mapping[str, Any]) -> ConfigObject:
    """Return a document as an object of the catalog."""
    metadata, (group, _) = document["metadata"], split_api_version(document["apiVersion"])
    namespace = metadata.get("namespace") or ("default" if is_namespaced(group, document["kind"]) else "")
    key = ObjectKey(group, document["kind"], str(namespace), metadata["name"])
    return ConfigObject(key, document["apiVersion"], "all.yaml", _Document(document))  # type: ignore[arg-type]


def _messages(findings: Sequence[Finding]) -> ErrorMessages:
    return [finding.message for finding in select_errors(list(findings))]


def _by_object(read: Callable[..., tuple[Any, Sequence[Finding]]], **more: Any) -> Callable[[Any], ErrorMessages]:
    return lambda document: _messages(read(config_object(document), **more)[1])


def _repository(document: Mapping[str, Any]) -> ErrorMessages:
    result = config_object(document)
    return _messages(
        read_repositories(Catalog({result.key: result}, _by_kind={(PORCH_GROUP, "Repository"): (result,)}))[1]
    )


def _manifest(model: type[KrmObject], document: Mapping[str, Any]) -> ErrorMessages:
    return read_manifest(model, document).error_texts


def _kptfile(document: Mapping[str, Any]) -> ErrorMessages:
    read = read_kptfile(json.dumps(document).encode())
    return [] if isinstance(read, Kptfile) else [finding.message for finding in read]


_READERS: Mapping[str, Callable[[Any], ErrorMessages]] = {
    "Repository": _repository,
    "PackageVariant": lambda document: read_manifest(PackageVariant, document).error_texts,
    "PackageVariantSet": lambda document: read_package_variant_set(document, LIMITS).error_texts,
    "PackageRevisionSet": lambda document: read_manifest(PackageRevisionSet, document).error_texts,
    "OverridePolicy": _by_object(read_override_policy),
    "ClusterOverridePolicy": _by_object(read_override_policy),
    "PropagationPolicy": _by_object(read_propagation_policy),
    "ClusterPropagationPolicy": _by_object(read_propagation_policy),
    "Cluster": _by_object(read_own_options),
    "Organization": _by_object(read_own_options),
    "PluginDefinition": _by_object(read_definition),
    "ClusterPluginDefinition": _by_object(read_definition),
    "PluginPreset": _by_object(read_preset),
    "PluginOverride": _by_object(read_override),
    "Plugin": _by_object(read_plugin),
    "ComponentDefinition": _by_object(read_component_definition, limits=LIMITS),
    "Addon": _by_object(read_addon, limits=LIMITS),
    "ComponentType": _by_object(read_component_type),
    "Component": _by_object(read_component),
    "EnvBinding": _by_object(read_binding),
    "Environment": _by_object(read_environment),
    "Build": _by_object(read_build),
    "TemplateMergeRule": _by_object(read_merge_rule),
    "Tenant": lambda document: read_manifest(Tenant, document).error_texts,
    "Kptfile": _kptfile,
    "PackageStatus": lambda document: read_manifest(PackageStatus, document).error_texts,
    **{model.__name__: partial(_manifest, model) for model in functions.KINDS},
}

READ = frozenset(_READERS)
"""The kinds whose readers can be asked."""
