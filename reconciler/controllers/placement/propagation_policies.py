"""Propagation policies: reading, validation, and the selection of their clusters."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from reconciler.api import kubeadmiral
from reconciler.api.kubeadmiral import (
    KUBEADMIRAL_GROUP,
    PropagationPolicyManifest,
    PropagationPolicySpec,
    TargetClusters,
)
from reconciler.api.manifest import read_manifest
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.controllers.clusters.inventory import ClusterInventory
from reconciler.controllers.clusters.selection import create_cluster_selection, explain_no_cluster, is_cluster_selected
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.deletion_guards import ACK_DELETIONS
from reconciler.controllers.placement.codes import PlacementCodes
from reconciler.controllers.placement.model import (
    CLUSTER_PROPAGATION_POLICY_KIND,
    PROPAGATION_POLICY_KIND,
    PropagationPolicy,
)
from reconciler.controllers.validation import create_field_findings
from reconciler.krm.field_text import format_path, quote_value, suggest_name
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field, replace

_KINDS: Mapping[str, type[PropagationPolicyManifest]] = {
    PROPAGATION_POLICY_KIND: kubeadmiral.PropagationPolicy,
    CLUSTER_PROPAGATION_POLICY_KIND: kubeadmiral.ClusterPropagationPolicy,
}
SelectedClusters = Mapping[ObjectKey, frozenset[str]]


@dataclass(frozen=True)
class PropagationPolicies:
    """All propagation policies of a catalog by object key: valid, invalid and duplicate policies.

    `findings` are the errors of invalid policies and the warnings about valid policies. If `is_complete` is False, an
    unreadable file may contain more policies.
    """

    valid: Mapping[ObjectKey, PropagationPolicy] = field(default_factory=dict)
    invalid: Mapping[ObjectKey, Finding] = field(default_factory=dict)
    duplicates: frozenset[ObjectKey] = frozenset()
    findings: tuple[Finding, ...] = ()
    is_complete: bool = True


def build_propagation_policy_key(kind: str, namespace: str, name: str) -> ObjectKey:
    """Return the object key of a policy. The key of a ClusterPropagationPolicy has no namespace."""
    return ObjectKey(KUBEADMIRAL_GROUP, kind, namespace if kind == PROPAGATION_POLICY_KIND else "", name)


def read_propagation_policies(catalog: Catalog) -> PropagationPolicies:
    """Return all propagation policies of the config. Do not report duplicates, because the catalog already does."""
    sound: dict[ObjectKey, PropagationPolicy] = {}
    invalid: dict[ObjectKey, Finding] = {}
    findings: list[Finding] = []
    for kind in (CLUSTER_PROPAGATION_POLICY_KIND, PROPAGATION_POLICY_KIND):
        for config_object in catalog.objects_of_kind(KUBEADMIRAL_GROUP, kind):
            key = build_propagation_policy_key(kind, config_object.key.namespace, config_object.key.name)
            policy, policy_findings = read_propagation_policy(config_object)
            findings += policy_findings
            if policy:
                sound[key] = policy
            else:
                invalid.setdefault(key, policy_findings[0])
    duplicates = frozenset(key for key in catalog.duplicates if key.group == KUBEADMIRAL_GROUP)
    # Omit a valid policy if an invalid policy has the same name, because it is unknown which of the policies applies.
    unambiguous = {key: policy for key, policy in sound.items() if key not in invalid}
    return PropagationPolicies(unambiguous, invalid, duplicates, tuple(findings), catalog.is_complete)


def read_propagation_policy(config_object: ConfigObject) -> tuple[PropagationPolicy | None, tuple[Finding, ...]]:
    """Return a valid policy with its warnings. Return None and all errors if the policy is invalid."""
    result = read_manifest(_KINDS[config_object.key.kind], config_object.data)
    if result.model is None:
        codes = {ControllerCodes.SELECTOR_INVALID.name: ControllerCodes.SELECTOR_INVALID}
        return None, create_field_findings(
            config_object, result.errors, PlacementCodes.PROPAGATION_POLICY_INVALID, codes
        )
    spec = result.model.spec
    names = tuple(placement.cluster for placement in spec.placement)
    targets = TargetClusters(
        clusters=names, cluster_selector=spec.cluster_selector, cluster_affinity=spec.cluster_affinity
    )
    acknowledged = frozenset(re.split(r"[,\s]+", config_object.annotations.get(ACK_DELETIONS, ""))) - {""}
    warnings = tuple(_check_ineffective_fields(config_object, spec))
    return PropagationPolicy(config_object, create_cluster_selection(targets), acknowledged), warnings


def _check_ineffective_fields(config_object: ConfigObject, spec: PropagationPolicySpec) -> Iterator[Finding]:
    data = config_object.data["spec"]
    ineffective: list[tuple[Any, DataPath, str]] = [
        (data, (), name) for name in spec.ineffective_fields if data.get(name) is not None
    ]
    if spec.scheduling_mode == "Divide":
        ineffective.append((data, (), "schedulingMode"))
    ineffective += [
        (data["placement"][index], ("placement", index), "preferences")
        for index, placement in enumerate(spec.placement)
        if placement.preferences is not None
    ]
    for fields, parent, name in ineffective:
        path = ("spec", *parent, name)
        message = (
            f"{format_path(path)} is {quote_value(fields[name])}, but has no effect, because only KubeAdmiral uses this"
            " field"
        )
        yield PlacementCodes.NOT_IN_EFFECT.finding(message, config_object.location_of(path))


def select_policy_clusters(propagations: PropagationPolicies, inventory: ClusterInventory) -> SelectedClusters:
    """Return the clusters that each valid policy selects. A cluster must match all fields of the policy."""
    return {key: _select_clusters(policy, inventory) for key, policy in propagations.valid.items()}


def _select_clusters(policy: PropagationPolicy, inventory: ClusterInventory) -> frozenset[str]:
    clusters, names = inventory.clusters, policy.targets.clusters
    # Look up named clusters directly, because a search in the whole fleet is slow.
    candidates = [clusters[name] for name in names if name in clusters] if names else clusters.values()
    targets = replace(policy.targets, clusters=())
    return frozenset(cluster.name for cluster in candidates if is_cluster_selected(targets, cluster))


def check_propagation_policies(
    propagations: PropagationPolicies,
    selected: SelectedClusters,
    named_policies: Collection[ObjectKey],
    inventory: ClusterInventory,
) -> Iterator[Finding]:
    """Yield findings about valid policies.

    A policy has a finding if it contains an unknown cluster name, selects no cluster, or is named by no resource.
    """
    for key, policy in propagations.valid.items():
        yield from _check_cluster_names(policy, inventory)
        if not selected[key]:
            reason = explain_no_cluster(policy.targets, inventory.clusters)
            message = f"spec selects no cluster, because {reason}"
            yield PlacementCodes.PROPAGATION_POLICY_MATCHES_NO_CLUSTER.finding(
                message, policy.config_object.location_of(("spec",))
            )
        if key not in named_policies:
            yield PlacementCodes.PROPAGATION_POLICY_UNUSED.finding(
                f"{key} has no effect, because no resource refers to this policy", policy.config_object.location
            )


def _check_cluster_names(policy: PropagationPolicy, inventory: ClusterInventory) -> Iterator[Finding]:
    for number, name in enumerate(policy.targets.clusters):
        if name not in inventory.clusters and name not in inventory.uncertain_names:
            guess = suggest_name(name, sorted(inventory.clusters))
            message = f'spec.placement[{number}].cluster is "{name}", but there is no cluster with this name{guess}'
            yield ControllerCodes.UNKNOWN_CLUSTER.finding(
                message, policy.config_object.location_of(("spec", "placement", number, "cluster"))
            )
