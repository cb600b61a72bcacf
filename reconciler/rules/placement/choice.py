"""Which clusters propagation policies choose, and what is odd about that (design 10.32)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.rules.clusters.inventory import Inventory
from reconciler.rules.clusters.none import why_no_cluster
from reconciler.rules.clusters.targets import is_target
from reconciler.rules.codes import UNKNOWN_CLUSTER
from reconciler.rules.placement.codes import PROPAGATION_POLICY_MATCHES_NO_CLUSTER, PROPAGATION_POLICY_UNUSED
from reconciler.rules.placement.model import PropagationPolicy
from reconciler.rules.placement.read_propagation import Propagations

Chosen = Mapping[ObjectKey, frozenset[str]]


def choose_clusters(propagations: Propagations, inventory: Inventory) -> Chosen:
    """Return the clusters that each sound policy chooses: those that all of its fields let through."""
    return {key: _chosen(policy, inventory) for key, policy in propagations.sound.items()}


def _chosen(policy: PropagationPolicy, inventory: Inventory) -> frozenset[str]:
    clusters, names = inventory.clusters, policy.targets.clusters
    # a list of names is looked up, and not looked through once for every cluster of the fleet
    candidates = [clusters[name] for name in names if name in clusters] if names else clusters.values()
    targets = replace(policy.targets, clusters=())
    return frozenset(cluster.name for cluster in candidates if is_target(targets, cluster))


def policy_findings(
    propagations: Propagations, chosen: Chosen, named: Collection[ObjectKey], inventory: Inventory
) -> Iterator[Finding]:
    """Yield what is odd about sound policies: names of no cluster, no cluster at all, no resource."""
    for key, policy in propagations.sound.items():
        yield from _unknown(policy, inventory)
        if not chosen[key]:
            why = why_no_cluster(policy.targets, inventory.clusters)
            message = f"spec must choose a cluster for the policy to place anything; {why}"
            yield PROPAGATION_POLICY_MATCHES_NO_CLUSTER.finding(message, policy.one.where_at(("spec",)))
        if key not in named:
            yield PROPAGATION_POLICY_UNUSED.finding(f"no resource names {key}", policy.one.where)


def _unknown(policy: PropagationPolicy, inventory: Inventory) -> Iterator[Finding]:
    for number, name in enumerate(policy.targets.clusters):
        if name not in inventory.clusters and name not in inventory.doubtful:
            message = f'spec.placement[{number}].cluster names "{name}", and no cluster is called so'
            yield UNKNOWN_CLUSTER.finding(message, policy.one.where_at(("spec", "placement", number, "cluster")))
