"""Test environment of the override policies: builders for policies and resources, and functions that apply policies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.catalog.catalog import Catalog, read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.override_policies.attachment import find_attached_policies
from reconciler.controllers.override_policies.effective_rules import RuleTexts
from reconciler.controllers.override_policies.package_overrides import OverriddenPackage, PackageOverrider
from reconciler.controllers.override_policies.read_policies import OverridePolicies, read_override_policies
from reconciler.controllers.override_policies.resource_overrides import (
    OverriddenResource,
    OverrideOptions,
    apply_overrides,
    match_rules,
)
from reconciler.krm.json_pointer import resolve_pointer
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import emit as emit
from reconciler.krm.yaml import parse_yaml
from reconciler.packages.package import Package, PackageResource

API_VERSION = "core.kubeadmiral.io/v1alpha1"
CLUSTER_LABEL = "kubeadmiral.io/cluster-override-policy-name"
NAMESPACED_LABEL = "kubeadmiral.io/override-policy-name"
HERE = Cluster("edge-1")
POLICY = "tuning"


def override_package(
    files: FileTree,
    policies: OverridePolicies,
    cluster: Cluster,
    options: OverrideOptions | None = None,
    texts: RuleTexts | None = None,
    had: Iterable[ObjectKey] = (),
) -> OverriddenPackage:
    """Return one package with the overrides for one cluster."""
    return PackageOverrider(policies, options).override(files, cluster, texts or {}, had)


def override_resource(
    resource: PackageResource,
    policies: OverridePolicies,
    cluster: Cluster,
    options: OverrideOptions | None = None,
    texts: RuleTexts | None = None,
) -> OverriddenResource:
    """Return one resource with the overrides for one cluster."""
    options = options or OverrideOptions()
    attached = find_attached_policies(resource, policies, options.on_missing)
    matched = tuple(match_rules(policy, cluster, texts or {}) for policy in attached.policies)
    return apply_overrides(resource, attached, matched, cluster, options)


def build_tree(files: Mapping[str, str]) -> FileTree:
    return FileTree({path: File(text.encode()) for path, text in files.items()})


def build_catalog(*documents: str | Mapping[str, Any]) -> Catalog:
    """Return a config with these documents, one per file."""
    texts = [document if isinstance(document, str) else emit(dict(document)) for document in documents]
    return read_catalog(build_tree({f"policies/{number}.yaml": text for number, text in enumerate(texts)}))


def build_policy(
    rules: Any, *, kind: str = "ClusterOverridePolicy", name: str = POLICY, namespace: str = ""
) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": {"overrideRules": rules}}


def read_policies(*documents: str | Mapping[str, Any]) -> OverridePolicies:
    return read_override_policies(build_catalog(*documents))


def build_rules(*overriders: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one rule for all clusters per overrider."""
    return [{"overriders": overrider} for overrider in overriders]


def read_resource(text: str, path: str = "stack.yaml") -> PackageResource:
    return Package(build_tree({path: text})).resources[0]


def add_labels(data: Mapping[str, Any], **labels: str) -> dict[str, Any]:
    """Return a resource with more labels."""
    metadata = data["metadata"]
    return {**data, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels}}}


def attach_policy(data: Mapping[str, Any], name: str = POLICY) -> dict[str, Any]:
    """Return a resource with the label of a ClusterOverridePolicy."""
    return add_labels(data, **{CLUSTER_LABEL: name})


def override_data(
    data: Mapping[str, Any],
    *overriders: Mapping[str, Any],
    cluster: Cluster = HERE,
    options: OverrideOptions | None = None,
) -> OverriddenResource:
    """Return the resource after one policy, which has one rule for all clusters per overrider."""
    return override_resource(
        read_resource(emit(attach_policy(data))),
        read_policies(build_policy(build_rules(*overriders))),
        cluster,
        options,
    )


def apply_overriders(data: Mapping[str, Any], *overriders: Mapping[str, Any]) -> Any:
    """Return the data after one policy, or the codes of all errors in the policy and its application."""
    policies = read_policies(build_policy(build_rules(*overriders)))
    if policies.findings:
        return list_codes(policies.findings)
    final_resource = override_resource(read_resource(emit(attach_policy(data))), policies, HERE)
    return list_error_codes(final_resource) or final_resource.document.data


def list_codes(findings: Iterable[Any]) -> list[str]:
    return [finding.code for finding in findings]


def list_error_codes(final_resource: OverriddenResource) -> list[str]:
    return [finding.code for finding in final_resource.findings if finding.severity == "error"]


def list_warning_codes(final_resource: OverriddenResource) -> list[str]:
    return [finding.code for finding in final_resource.findings if finding.severity != "error"]


def parse_document(text: str) -> Any:
    return parse_yaml(text).documents[0].data


def get_at_pointer(data: Any, pointer: str) -> Any:
    return resolve_pointer(data, [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]])


def is_same_json(left: Any, right: Any) -> bool:
    """Return whether two values are the same JSON: 1 is not true, and the order of keys does not matter."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)
