"""Propagation policies: reading, validation, and the selection of their clusters."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.controllers.clusters.inventory import ClusterInventory
from reconciler.controllers.clusters.selection import explain_no_cluster, is_cluster_selected, read_cluster_selection
from reconciler.controllers.codes import UNKNOWN_CLUSTER
from reconciler.controllers.deletion_guards import ACK_DELETIONS
from reconciler.controllers.placement.codes import (
    NOT_IN_EFFECT,
    PROPAGATION_POLICY_INVALID,
    PROPAGATION_POLICY_MATCHES_NO_CLUSTER,
    PROPAGATION_POLICY_UNUSED,
)
from reconciler.controllers.placement.model import (
    CLUSTER_PROPAGATION_POLICY_KIND,
    KUBEADMIRAL_API_VERSION,
    KUBEADMIRAL_GROUP,
    PROPAGATION_POLICY_KIND,
    PropagationPolicy,
)
from reconciler.controllers.validation import FieldFindings, FieldReader
from reconciler.krm.field_text import format_path, quote_value
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey

_OBJECT_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")
_SELECTION_FIELDS = ("placement", "clusterSelector", "clusterAffinity")
_SCHEDULING_MODE = "schedulingMode"
_SCHEDULING_MODES = ("Duplicate", "Divide")
_RESCHEDULING = {"avoidDisruption": None}
# List the fields of KubeAdmiral's scheduler with their subfields, so that unknown fields can be reported. The fields
# have no effect on the reconciler.
_FieldTree = Mapping[str, "_FieldTree | None"]
_INEFFECTIVE_FIELDS: _FieldTree = {
    "autoMigration": {"when": {"podUnschedulableFor": None}, "keepUnschedulableReplicas": None},
    "disableFollowerScheduling": None,
    "maxClusters": None,
    "replicaRescheduling": _RESCHEDULING,
    "replicasStrategy": None,
    "reschedulePolicy": {
        "disableRescheduling": None,
        "replicaRescheduling": _RESCHEDULING,
        "rescheduleWhen": {
            "clusterAPIResourcesChanged": None,
            "clusterJoined": None,
            "clusterLabelsChanged": None,
            "policyContentChanged": None,
        },
    },
    "schedulingProfile": None,
    "stickyCluster": None,
    "tolerations": {"effect": None, "key": None, "operator": None, "tolerationSeconds": None, "value": None},
}
_LISTS = ("tolerations",)
_PREFERENCES: _FieldTree = {"maxReplicas": None, "minReplicas": None, "priority": None, "weight": None}
_SPEC_FIELDS = (*_SELECTION_FIELDS, _SCHEDULING_MODE, *_INEFFECTIVE_FIELDS)
_PLACEMENT_FIELDS = ("cluster", "preferences")
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
    errors = FieldFindings(config_object.location_of, PROPAGATION_POLICY_INVALID)
    reader = FieldReader(config_object.data, (), errors, _OBJECT_FIELDS)
    if config_object.api_version != KUBEADMIRAL_API_VERSION:
        reader.add_finding(
            "apiVersion", f"must be {KUBEADMIRAL_API_VERSION}, not {quote_value(config_object.api_version)}"
        )
    _check_namespace(config_object, errors)
    reader.require("spec", "a mapping")
    spec = reader.read_mapping("spec", _SPEC_FIELDS)
    placements = tuple(spec.iterate_mappings("placement", _PLACEMENT_FIELDS))
    names = tuple(placement.read_text("cluster", required=True) for placement in placements)
    targets = replace(read_cluster_selection(spec), clusters=names)
    spec.read_choice(_SCHEDULING_MODE, _SCHEDULING_MODES, _SCHEDULING_MODES[0])
    for name, subfields in _INEFFECTIVE_FIELDS.items():
        _check_field_names(spec, name, subfields)
    for placement in placements:
        _check_field_names(placement, "preferences", _PREFERENCES)
    if errors.findings:
        return None, tuple(errors.findings)
    acknowledged = frozenset(re.split(r"[,\s]+", config_object.annotations.get(ACK_DELETIONS, ""))) - {""}
    warnings = tuple(_check_ineffective_fields(config_object, spec, placements))
    return PropagationPolicy(config_object, targets, acknowledged), warnings


def _check_namespace(config_object: ConfigObject, errors: FieldFindings) -> None:
    path, namespace = ("metadata", "namespace"), config_object.key.namespace
    if config_object.key.kind == CLUSTER_PROPAGATION_POLICY_KIND and namespace:
        errors.add(
            path,
            f"must be absent, not {quote_value(namespace)}: a {CLUSTER_PROPAGATION_POLICY_KIND} has no namespace",
        )


def _check_field_names(fields: FieldReader, name: str, subfields: _FieldTree | None) -> None:
    """Report unknown subfields of a field. Do not check values, because the field has no effect."""
    if subfields is None:
        return
    readers = (
        fields.iterate_mappings(name, tuple(subfields))
        if name in _LISTS
        else [fields.read_mapping(name, tuple(subfields))]
    )
    for reader in readers:
        for key, nested_subfields in subfields.items():
            _check_field_names(reader, key, nested_subfields)


def _check_ineffective_fields(
    config_object: ConfigObject, spec: FieldReader, placements: tuple[FieldReader, ...]
) -> Iterator[Finding]:
    ineffective = [(spec, name) for name in _INEFFECTIVE_FIELDS if spec.has_value(name)]
    if spec.data.get(_SCHEDULING_MODE) == _SCHEDULING_MODES[1]:
        ineffective.append((spec, _SCHEDULING_MODE))
    ineffective += [(placement, "preferences") for placement in placements if placement.has_value("preferences")]
    for fields, name in ineffective:
        path = (*fields.path, name)
        value = quote_value(fields.data[name])
        message = f"{format_path(path)} is {value} and has no effect, because only KubeAdmiral uses it"
        yield NOT_IN_EFFECT.finding(message, config_object.location_of(path))


def select_policy_clusters(propagations: PropagationPolicies, inventory: ClusterInventory) -> SelectedClusters:
    """Return for each valid policy the clusters that match all fields of the policy."""
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
    """Yield findings about valid policies: unknown cluster names, no selected cluster, or no resource that names it."""
    for key, policy in propagations.valid.items():
        yield from _check_cluster_names(policy, inventory)
        if not selected[key]:
            reason = explain_no_cluster(policy.targets, inventory.clusters)
            message = f"spec selects no cluster, so that the policy has no effect; {reason}"
            yield PROPAGATION_POLICY_MATCHES_NO_CLUSTER.finding(message, policy.config_object.location_of(("spec",)))
        if key not in named_policies:
            yield PROPAGATION_POLICY_UNUSED.finding(
                f"{key} has no effect, because no resource names it", policy.config_object.location
            )


def _check_cluster_names(policy: PropagationPolicy, inventory: ClusterInventory) -> Iterator[Finding]:
    for number, name in enumerate(policy.targets.clusters):
        if name not in inventory.clusters and name not in inventory.uncertain_names:
            message = f'spec.placement[{number}].cluster is "{name}", but there is no cluster with this name'
            yield UNKNOWN_CLUSTER.finding(
                message, policy.config_object.location_of(("spec", "placement", number, "cluster"))
            )
