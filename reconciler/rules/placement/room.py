"""The room: from a catalog to the packages of plain resources, one for each namespace and cluster (design 3, 10.16)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.rules.clusters.inventory import Inventory
from reconciler.rules.codes import DELETION_HELD
from reconciler.rules.placement.choice import Chosen, choose_clusters, policy_findings
from reconciler.rules.placement.codes import PLACEMENT_INCONCLUSIVE
from reconciler.rules.placement.guard import Guarded, guard_packages
from reconciler.rules.placement.keep import Doubt, Kept
from reconciler.rules.placement.model import (
    CLUSTER_KIND,
    GROUP,
    NAMESPACED_KIND,
    Before,
    Resource,
    Resources,
    Surroundings,
    owner_of,
)
from reconciler.rules.placement.packages import packages_of
from reconciler.rules.placement.read_propagation import Propagations, policy_key, read_propagations
from reconciler.rules.placement.resources import read_resources
from reconciler.rules.placement.status import invalid_status, placed_status
from reconciler.rules.variant import ConfigStatus, RoomResult, Variant
from reconciler.snapshot.catalog import Catalog

__all__ = ["Before", "Surroundings", "placements_of"]


@dataclass(frozen=True)
class _Placement:
    """What became of the resources of one namespace; `guarded` while a policy places any of them."""

    owner: ObjectKey
    packages: Sequence[Variant]
    blindly: Collection[str]
    guarded: Guarded | None
    findings: Sequence[Finding] = ()


def placements_of(catalog: Catalog, inventory: Inventory, around: Surroundings) -> RoomResult:
    """Return a package for each namespace and cluster that resources go to, and what is wrong with the rest.

    What is in doubt stays where it is: as a file, or with the whole of its owner where not even that can be told.
    """
    propagations = read_propagations(catalog)
    chosen = choose_clusters(propagations, inventory)
    resources = read_resources(catalog, inventory, propagations, chosen)
    doubt = Doubt(catalog, inventory, resources.doubtful, around.before)
    placements = [
        _placement(namespace, found, propagations, inventory, doubt, around)
        for namespace, found in _by_namespace(resources, doubt)
    ]
    guarded = {one.owner: one.guarded for one in placements if one.guarded}
    held = _held(guarded.values())
    placed = Counter(one.policy for one in resources.found if one.policy and one.clusters is not None)
    misnamed = [finding for one in placements for finding in one.findings]
    odd = policy_findings(propagations, chosen, resources.named, inventory)
    return RoomResult(
        tuple(variant for one in placements for variant in one.packages),
        statuses=tuple(_statuses(catalog, propagations, chosen, placed, held)),
        findings=(*propagations.findings, *odd, *resources.findings, *_held_findings(propagations, held), *misnamed),
        kept=frozenset(one.owner for one in placements if one.blindly),
        guards={owner: one.guard for owner, one in guarded.items()},
    )


def _by_namespace(resources: Resources, doubt: Doubt) -> list[tuple[str, list[Resource]]]:
    """Return the resources of every namespace, and of those that have none any more, by name."""
    found: dict[str, list[Resource]] = {name: [] for name in doubt.namespaces()}
    for one in resources.found:
        found.setdefault(one.namespace, []).append(one)
    return sorted(found.items())


def _placement(
    namespace: str,
    resources: Sequence[Resource],
    propagations: Propagations,
    inventory: Inventory,
    doubt: Doubt,
    around: Surroundings,
) -> _Placement:
    kept = doubt.kept(namespace, resources)
    packages = packages_of(namespace, resources, kept, inventory, around.engine)
    placing = {one.policy for one in resources if one.policy and one.policy in propagations.sound}
    policies = [propagations.sound[key] for key in sorted(placing)]
    wanted = kept.blindly.union(one.place.repository for one in packages)
    guarded = (
        guard_packages(namespace, policies, wanted, doubt.existing(namespace), inventory, around) if policies else None
    )
    findings = tuple(_misnamed(resources, kept))
    return _Placement(owner_of(namespace).key, packages, kept.blindly, guarded, findings)


def _misnamed(resources: Sequence[Resource], kept: Kept) -> Iterator[Finding]:
    """Yield an error for each resource that stays on a cluster because it names clusters that do not exist."""
    for one in (each for each in resources if each.unknown):
        clusters = sorted(name for name, files in kept.files.items() if one.key in files)
        clusters += sorted(kept.blindly)
        if clusters:
            names = ", ".join(f'"{name}"' for name in one.unknown)
            message = (
                f"{one.key} stays on {', '.join(clusters)}: its placement names {names}, and no cluster is called so;"
                " correct the name, or remove it from the placement"
            )
            yield PLACEMENT_INCONCLUSIVE.finding(message, one.one.where)


def _held(guarded: Collection[Guarded]) -> Mapping[ObjectKey, list[str]]:
    """Return by policy what it holds, in the order of the namespaces."""
    held: dict[ObjectKey, list[str]] = {}
    for one in guarded:
        for policy in one.held_by:
            held.setdefault(policy.key, []).append(one.guard.why)
    return held


def _held_findings(propagations: Propagations, held: Mapping[ObjectKey, Sequence[str]]) -> Iterator[Finding]:
    for key in sorted(held):
        for why in held[key]:
            yield DELETION_HELD.finding(why, propagations.sound[key].one.where)


def _statuses(
    catalog: Catalog,
    propagations: Propagations,
    chosen: Chosen,
    placed: Mapping[ObjectKey, int],
    held: Mapping[ObjectKey, Sequence[str]],
) -> Iterator[ConfigStatus]:
    for kind in (CLUSTER_KIND, NAMESPACED_KIND):
        for one in catalog.of_kind(GROUP, kind):
            key = policy_key(kind, one.key.namespace, one.key.name)
            if key in propagations.invalid:
                yield invalid_status(one, propagations.invalid[key])
            else:
                yield placed_status(one, chosen[key], placed.get(key, 0), held.get(key, ()))
