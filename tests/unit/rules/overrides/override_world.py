"""A small world of override policies: written as YAML, read and applied as the engine does it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.krm.identity import ObjectKey
from reconciler.krm.pointer import resolve
from reconciler.krm.yaml import emit as emit
from reconciler.krm.yaml import parse
from reconciler.packages.package import Package, PackageResource
from reconciler.rules.clusters.model import Cluster
from reconciler.rules.overrides.apply import Options, Overridden, matched_rules, override_attached
from reconciler.rules.overrides.attach import attach
from reconciler.rules.overrides.in_force import Texts
from reconciler.rules.overrides.package import OverriddenPackage, Overriding
from reconciler.rules.overrides.read_policy import Policies, read_policies
from reconciler.snapshot.catalog import Catalog, read_catalog
from reconciler.snapshot.files import File, FileTree

API_VERSION = "core.kubeadmiral.io/v1alpha1"
CLUSTER_LABEL = "kubeadmiral.io/cluster-override-policy-name"
NAMESPACED_LABEL = "kubeadmiral.io/override-policy-name"
HERE = Cluster("edge-1")
POLICY = "tuning"


def override_package(
    files: FileTree,
    policies: Policies,
    cluster: Cluster,
    options: Options | None = None,
    texts: Texts | None = None,
    had: Iterable[ObjectKey] = (),
) -> OverriddenPackage:
    """Return one package as one cluster is to have it."""
    return Overriding(policies, options).override(files, cluster, texts or {}, had)


def override_resource(
    resource: PackageResource,
    policies: Policies,
    cluster: Cluster,
    options: Options | None = None,
    texts: Texts | None = None,
) -> Overridden:
    """Return one resource as one cluster is to have it."""
    options = options or Options()
    attached = attach(resource, policies, options.on_missing)
    matched = tuple(matched_rules(policy, cluster, texts or {}) for policy in attached.policies)
    return override_attached(resource, attached, matched, cluster, options)


def tree(files: Mapping[str, str]) -> FileTree:
    return FileTree({path: File(text.encode()) for path, text in files.items()})


def catalog(*documents: str | Mapping[str, Any]) -> Catalog:
    """Return the config that holds these documents, each in a file of its own."""
    texts = [one if isinstance(one, str) else emit(dict(one)) for one in documents]
    return read_catalog(tree({f"policies/{number}.yaml": text for number, text in enumerate(texts)}))


def policy(
    rules: Any, *, kind: str = "ClusterOverridePolicy", name: str = POLICY, namespace: str = ""
) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": {"overrideRules": rules}}


def read(*documents: str | Mapping[str, Any]) -> Policies:
    return read_policies(catalog(*documents))


def rules_of(*overriders: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return rules for every cluster."""
    return [{"overriders": one} for one in overriders]


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
    data: Mapping[str, Any], *overriders: Mapping[str, Any], cluster: Cluster = HERE, options: Options | None = None
) -> Overridden:
    """Return the resource after one policy, with a rule for every cluster for each of the overriders."""
    return override_resource(resource(emit(attached(data))), read(policy(rules_of(*overriders))), cluster, options)


def outcome(data: Mapping[str, Any], *overriders: Mapping[str, Any]) -> Any:
    """Return the data after one policy, or the codes of all errors, of the policy and of applying it."""
    policies = read(policy(rules_of(*overriders)))
    if policies.findings:
        return codes(policies.findings)
    done = override_resource(resource(emit(attached(data))), policies, HERE)
    return error_codes(done) or done.document.data


def codes(findings: Iterable[Any]) -> list[str]:
    return [one.code for one in findings]


def error_codes(done: Overridden) -> list[str]:
    return [one.code for one in done.findings if one.severity == "error"]


def warning_codes(done: Overridden) -> list[str]:
    return [one.code for one in done.findings if one.severity != "error"]


def yaml(text: str) -> Any:
    return parse(text).documents[0].data


def at(data: Any, pointer: str) -> Any:
    return resolve(data, [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]])


def same_data(left: Any, right: Any) -> bool:
    """Tell whether two values are the same JSON: 1 is not true, and the order of keys does not matter."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)
