"""Entry point of the placement controller, which creates packages of placed resources and statuses of policies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from reconciler.api.kubeadmiral import KUBEADMIRAL_GROUP
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.controllers.clusters.inventory import ClusterInventory
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.placement.codes import PlacementCodes
from reconciler.controllers.placement.deletion_protection import (
    PlacementGuardResult,
    RetainedFiles,
    RetentionDecider,
    guard_packages,
)
from reconciler.controllers.placement.model import (
    CLUSTER_PROPAGATION_POLICY_KIND,
    PROPAGATION_POLICY_KIND,
    PlacementInputs,
    PlacementResource,
    PlacementResources,
    build_placement_owner,
)
from reconciler.controllers.placement.packages import build_packages
from reconciler.controllers.placement.propagation_policies import (
    PropagationPolicies,
    SelectedClusters,
    build_propagation_policy_key,
    check_propagation_policies,
    read_propagation_policies,
    select_policy_clusters,
)
from reconciler.controllers.placement.resources import read_placed_resources
from reconciler.controllers.results import ConfigStatus, ControllerResult, Variant
from reconciler.krm.field_text import quote_list
from reconciler.krm.findings import Finding, join_messages
from reconciler.krm.objects import Condition, ObjectKey
from reconciler.lazy_dataclasses import dataclass

_MAX_LISTED = 20


@dataclass(frozen=True)
class _Placement:
    """The packages of one namespace with their owner, their deletion guard and findings.

    `guard_result` is None if no valid policy places a resource of the namespace.
    """

    owner: ObjectKey
    packages: Sequence[Variant]
    unreadable_clusters: Collection[str]
    guard_result: PlacementGuardResult | None
    findings: Sequence[Finding] = ()


def place_resources(catalog: Catalog, inventory: ClusterInventory, inputs: PlacementInputs) -> ControllerResult:
    """Return one package for each namespace and cluster with placed resources, with findings and policy statuses.

    If the clusters of a resource are unknown, the files of the resource are kept on all clusters that have them. If the
    current files of a package cannot be read, no package of the namespace is deleted.
    """
    propagations = read_propagation_policies(catalog)
    clusters_by_policy = select_policy_clusters(propagations, inventory)
    resources = read_placed_resources(catalog, inventory, propagations, clusters_by_policy)
    decider = RetentionDecider(inventory, resources.ambiguous, inputs.state)
    placements = [
        _place_namespace(namespace, namespace_resources, propagations, inventory, decider, inputs)
        for namespace, namespace_resources in _group_by_namespace(resources, decider)
    ]
    guard_results = {placement.owner: placement.guard_result for placement in placements if placement.guard_result}
    held_messages = _group_blocked_deletions(guard_results.values())
    placed_counts = Counter(
        resource.policy for resource in resources.resources if resource.policy and resource.clusters is not None
    )
    unknown_cluster_findings = [finding for placement in placements for finding in placement.findings]
    policy_findings = check_propagation_policies(propagations, clusters_by_policy, resources.named_policies, inventory)
    return ControllerResult(
        tuple(variant for placement in placements for variant in placement.packages),
        statuses=tuple(_build_statuses(catalog, propagations, clusters_by_policy, placed_counts, held_messages)),
        findings=(
            *propagations.findings,
            *policy_findings,
            *resources.findings,
            *_create_held_findings(propagations, held_messages),
            *unknown_cluster_findings,
        ),
        kept_owners=frozenset(placement.owner for placement in placements if placement.unreadable_clusters),
        guards={owner: placement.guard for owner, placement in guard_results.items()},
    )


def _group_by_namespace(
    resources: PlacementResources, decider: RetentionDecider
) -> list[tuple[str, list[PlacementResource]]]:
    """Return the resources by namespace, sorted by namespace.

    A namespace without resources is included if an earlier pass created a package for it.
    """
    resources_by_namespace: dict[str, list[PlacementResource]] = {name: [] for name in decider.list_namespaces()}
    for resource in resources.resources:
        resources_by_namespace.setdefault(resource.namespace, []).append(resource)
    return sorted(resources_by_namespace.items())


def _place_namespace(
    namespace: str,
    resources: Sequence[PlacementResource],
    propagations: PropagationPolicies,
    inventory: ClusterInventory,
    decider: RetentionDecider,
    inputs: PlacementInputs,
) -> _Placement:
    retained = decider.select_retained(namespace, resources)
    packages = build_packages(namespace, resources, retained, inventory, inputs.engine)
    policy_keys = {
        resource.policy for resource in resources if resource.policy and resource.policy in propagations.valid
    }
    policies = [propagations.valid[key] for key in sorted(policy_keys)]
    requested_clusters = retained.unreadable_clusters.union(package.target.repository for package in packages)
    guard_result = (
        guard_packages(
            namespace, policies, requested_clusters, decider.list_current_clusters(namespace), inventory, inputs
        )
        if policies
        else None
    )
    findings = tuple(_check_unknown_clusters(resources, retained))
    return _Placement(
        build_placement_owner(namespace).key, packages, retained.unreadable_clusters, guard_result, findings
    )


def _check_unknown_clusters(resources: Sequence[PlacementResource], retained: RetainedFiles) -> Iterator[Finding]:
    """Yield an error for each resource that stays on a cluster, because its placement names an unknown cluster."""
    for resource in (candidate for candidate in resources if candidate.unknown_clusters):
        clusters = sorted(name for name, files in retained.files.items() if resource.key in files)
        clusters += sorted(retained.unreadable_clusters)
        if clusters:
            noun = "cluster" if len(clusters) == 1 else "clusters"
            names = ", ".join(f'"{name}"' for name in resource.unknown_clusters)
            message = (
                f"{resource.key} stays on the {noun} {quote_list(clusters)}, because its placement contains unknown"
                f" cluster names: {names}. Next step: correct or remove the unknown names"
            )
            yield PlacementCodes.PLACEMENT_INCONCLUSIVE.finding(message, resource.config_object.location)


def _group_blocked_deletions(guard_results: Collection[PlacementGuardResult]) -> Mapping[ObjectKey, list[str]]:
    """Return a mapping from each policy to the messages about its blocked deletions."""
    messages: dict[ObjectKey, list[str]] = {}
    for result in guard_results:
        for policy in result.holding_policies:
            messages.setdefault(policy.key, []).append(result.guard.reason)
    return messages


def _create_held_findings(
    propagations: PropagationPolicies, held_messages: Mapping[ObjectKey, Sequence[str]]
) -> Iterator[Finding]:
    for key in sorted(held_messages):
        for message in held_messages[key]:
            yield ControllerCodes.DELETION_HELD.finding(message, propagations.valid[key].config_object.location)


def _build_statuses(
    catalog: Catalog,
    propagations: PropagationPolicies,
    clusters_by_policy: SelectedClusters,
    placed_counts: Mapping[ObjectKey, int],
    held_messages: Mapping[ObjectKey, Sequence[str]],
) -> Iterator[ConfigStatus]:
    for kind in (CLUSTER_PROPAGATION_POLICY_KIND, PROPAGATION_POLICY_KIND):
        for config_object in catalog.objects_of_kind(KUBEADMIRAL_GROUP, kind):
            key = build_propagation_policy_key(kind, config_object.key.namespace, config_object.key.name)
            if key in propagations.invalid:
                yield build_invalid_policy_status(config_object, propagations.invalid[key])
            else:
                yield build_policy_status(
                    config_object, clusters_by_policy[key], placed_counts.get(key, 0), held_messages.get(key, ())
                )


def build_invalid_policy_status(config_object: ConfigObject, finding: Finding) -> ConfigStatus:
    """Return the status of an invalid policy. Its condition contains the first finding about the policy."""
    return ConfigStatus(
        config_object.key, config_object.api_version, (Condition("Ready", "False", finding.code, finding.message),)
    )


def build_policy_status(
    config_object: ConfigObject, clusters: Collection[str], resources: int, held_messages: Collection[str]
) -> ConfigStatus:
    """Return the status of a valid policy, with the selected clusters and the number of placed resources."""
    fields = {"clusters": sorted(clusters)[:_MAX_LISTED], "clusterCount": len(clusters), "resources": resources}
    message = f"places {resources} resource(s) on {len(clusters)} cluster(s)"
    ready = Condition("Ready", "True", "Placed", message)
    if held_messages:
        ready = Condition("Ready", "False", ControllerCodes.DELETION_HELD.name, join_messages(held_messages))
    return ConfigStatus(config_object.key, config_object.api_version, (ready,), fields)
