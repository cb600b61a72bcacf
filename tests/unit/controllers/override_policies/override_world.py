"""A small world of override policies: written as YAML, read and applied as the engine does it."""

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
    """Return one package as one cluster is to have it."""
    return PackageOverrider(policies, options).override(files, cluster, texts or {}, had)


def override_resource(
    resource: PackageResource,
    policies: OverridePolicies,
    cluster: Cluster,
    options: OverrideOptions | None = None,
    texts: RuleTexts | None = None,
) -> OverriddenResource:
    """Return one resource as one cluster is to have it."""
    options = options or OverrideOptions()
    attached = find_attached_policies(resource, policies, options.on_missing)
    matched = tuple(match_rules(policy, cluster, texts or {}) for policy in attached.policies)
    return apply_overrides(resource, attached, matched, cluster, options)


def tree(files: Mapping[str, str]) -> FileTree:
    return FileTree({path: File(text.encode()) for path, text in files.items()})


def catalog(*documents: str | Mapping[str, Any]) -> Catalog:
    """Return the config that holds these documents, each in a file of its own."""
    texts = [document if isinstance(document, str) else emit(dict(document)) for document in documents]
    return read_catalog(tree({f"policies/{number}.yaml": text for number, text in enumerate(texts)}))


def policy(
    rules: Any, *, kind: str = "ClusterOverridePolicy", name: str = POLICY, namespace: str = ""
) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": {"overrideRules": rules}}


def read(*documents: str | Mapping[str, Any]) -> OverridePolicies:
    return read_override_policies(catalog(*documents))


def rules_of(*overriders: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return rules for every cluster."""
    return [{"overriders": overrider} for overrider in overriders]


def resource(text: str, path: str = "stack.yaml") -> PackageResource:
    return Package(tree({path: text})).resources[0]


def labelled(data: Mapping[str, Any], **labels: str) -> dict[str, Any]:
    """Return a resource with more labels."""
    metadata = data["metadata"]
    return {**data, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels}}}


def attached(data: Mapping[str, Any], name: str = POLICY) -> dict[str, Any]:
    """Return a resource that names a ClusterOverridePolicy."""
    return labelled(data, **{CLUSTER_LABEL: name})


def override(
    data: Mapping[str, Any],
    *overriders: Mapping[str, Any],
    cluster: Cluster = HERE,
    options: OverrideOptions | None = None,
) -> OverriddenResource:
    """Return the resource after one policy, with a rule for every cluster for each of the overriders."""
    return override_resource(resource(emit(attached(data))), read(policy(rules_of(*overriders))), cluster, options)


def outcome(data: Mapping[str, Any], *overriders: Mapping[str, Any]) -> Any:
    """Return the data after one policy, or the codes of all errors, of the policy and of applying it."""
    policies = read(policy(rules_of(*overriders)))
    if policies.findings:
        return codes(policies.findings)
    final_resource = override_resource(resource(emit(attached(data))), policies, HERE)
    return error_codes(final_resource) or final_resource.document.data


def codes(findings: Iterable[Any]) -> list[str]:
    return [finding.code for finding in findings]


def error_codes(final_resource: OverriddenResource) -> list[str]:
    return [finding.code for finding in final_resource.findings if finding.severity == "error"]


def warning_codes(final_resource: OverriddenResource) -> list[str]:
    return [finding.code for finding in final_resource.findings if finding.severity != "error"]


def yaml(text: str) -> Any:
    return parse_yaml(text).documents[0].data


def at(data: Any, pointer: str) -> Any:
    return resolve_pointer(data, [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]])


def same_data(left: Any, right: Any) -> bool:
    """Tell whether two values are the same JSON: 1 is not true, and the order of keys does not matter."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)
