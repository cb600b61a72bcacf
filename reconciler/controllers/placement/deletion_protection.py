"""Protection of placed resources against wrong deletions.

If it is uncertain whether a file must be deleted, the file is kept. A guard blocks the deletion of many packages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.cluster_packages import build_deletion_guard, get_package_target
from reconciler.controllers.clusters.inventory import ClusterInventory
from reconciler.controllers.deletion_guards import decide_deletions
from reconciler.controllers.placement.model import (
    PlacementInputs,
    PlacementResource,
    PlacementState,
    PropagationPolicy,
    build_package_path,
    build_placement_owner,
)
from reconciler.controllers.placement.resources import get_package_namespace
from reconciler.controllers.results import DeletionGuard
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field


@dataclass(frozen=True)
class RetainedFiles:
    """The files that must be kept in the packages of one namespace. There is one package per cluster.

    Attributes:
        files: For each cluster, the resources that must be kept, with their files.
        unreadable_clusters: The clusters whose package cannot be read. On these clusters, the whole package is kept.
    """

    files: Mapping[str, Mapping[ObjectKey, File]] = field(default_factory=dict)
    unreadable_clusters: frozenset[str] = frozenset()


class RetentionDecider:
    """Selects the files that are kept, because the config does not prove that they must be deleted."""

    def __init__(self, inventory: ClusterInventory, ambiguous: frozenset[ObjectKey], state: PlacementState) -> None:
        self._inventory = inventory
        self._state = state
        self._ambiguous_by_namespace: dict[str, set[ObjectKey]] = {}
        for key in ambiguous:
            self._ambiguous_by_namespace.setdefault(get_package_namespace(key), set()).add(key)
        self._clusters_by_owner = state.find_clusters_by_owner()
        # Cache the files of each tree, because many clusters have the same package with the same tree.
        self._files_by_tree: dict[str, Mapping[ObjectKey, File] | None] = {}

    def list_current_clusters(self, namespace: str) -> tuple[str, ...]:
        """Return the clusters that have the package of a namespace now and whose target is known."""
        return tuple(name for name in self._list_clusters(namespace) if name in self._inventory.target_keys)

    def list_namespaces(self) -> Iterator[str]:
        """Yield the namespaces that have a package on at least one cluster now."""
        return (owner.name for owner in sorted(self._clusters_by_owner))

    def select_retained(self, namespace: str, resources: Sequence[PlacementResource]) -> RetainedFiles:
        """Return the files that must be kept in the packages of a namespace.

        `resources` are the resources of the namespace in the config.

        - A resource in `resources` whose clusters are unknown is kept on its current clusters, with its new content.
        - A resource is kept with its earlier content if it is ambiguous or if its placement names an unknown cluster. A
          resource is ambiguous if it is defined twice or has the file name of another resource.
        - If an unreadable config file may define a resource of a package, all files of the package are kept.
        """
        undecided = {resource.key: resource.file for resource in resources if resource.clusters is None}
        requested = {resource.key: resource.clusters for resource in resources if resource.clusters is not None}
        ambiguous = self._ambiguous_by_namespace.get(namespace, set())
        with_unknown_clusters = {resource.key for resource in resources if resource.unknown_clusters}
        files: dict[str, Mapping[ObjectKey, File]] = {}
        unreadable_clusters: set[str] = set()
        current_clusters = self._list_clusters(namespace)
        # Include requested clusters for which the state contains no current package. The target branch of such a
        # cluster can still contain the files of the package if its removal is not published yet.
        new_clusters = {cluster for clusters in requested.values() for cluster in clusters}.difference(current_clusters)
        for cluster in sorted({*current_clusters, *new_clusters}):
            is_known = self._state.is_config_complete(cluster, build_package_path(namespace))
            keep_all = not is_known or cluster in self._inventory.uncertain_names
            if not (keep_all or undecided or ambiguous or with_unknown_clusters):
                continue
            earlier_files = (
                self._read_earlier_files(cluster, build_package_path(namespace))
                if cluster in self._inventory.target_keys
                else None
            )
            if earlier_files is None:
                unreadable_clusters.update({cluster}.difference(new_clusters))
                continue
            files[cluster] = {
                key: undecided.get(key, file)
                for key, file in earlier_files.items()
                if key in undecided
                or key in ambiguous
                or ((keep_all or key in with_unknown_clusters) and cluster not in requested.get(key, ()))
            }
        return RetainedFiles(
            {cluster: retained for cluster, retained in files.items() if retained}, frozenset(unreadable_clusters)
        )

    def _list_clusters(self, namespace: str) -> Sequence[str]:
        return sorted(self._clusters_by_owner.get(build_placement_owner(namespace).key, ()))

    def _read_earlier_files(self, cluster: str, package: str) -> Mapping[ObjectKey, File] | None:
        tree = self._state.read_last_draft(cluster, package)
        if tree is None:
            return None
        if tree.id not in self._files_by_tree:
            self._files_by_tree[tree.id] = _read_files_by_identity(tree)
        return self._files_by_tree[tree.id]


def _read_files_by_identity(tree: FileTree) -> Mapping[ObjectKey, File] | None:
    catalog = read_catalog(tree)
    return (
        {key: tree[config_object.file] for key, config_object in catalog.objects.items()}
        if catalog.is_complete
        else None
    )


@dataclass(frozen=True)
class PlacementGuardResult:
    """The deletion guard of a namespace.

    `holding_policies` are the policies whose annotation can confirm the blocked deletions. The list is empty if no
    deletion is blocked.
    """

    guard: DeletionGuard
    holding_policies: tuple[PropagationPolicy, ...] = ()


def guard_packages(
    namespace: str,
    policies: Sequence[PropagationPolicy],
    requested_clusters: Collection[str],
    current_clusters: Sequence[str],
    inventory: ClusterInventory,
    inputs: PlacementInputs,
) -> PlacementGuardResult:
    """Return which packages of a namespace may be deleted from clusters that no longer request the package.

    A person confirms a deletion of many packages with an annotation on one of the policies. The annotation contains the
    hash of the deletion. If a policy places resources of several namespaces, its annotation may contain several hashes,
    separated by commas.
    """
    package = build_package_path(namespace)
    deletions = [(cluster, package) for cluster in current_clusters if cluster not in requested_clusters]
    targets = frozenset(get_package_target(location, inventory) for location in deletions)
    blocked_counts = inputs.blocked_counts.get(build_placement_owner(namespace).key, {})
    acknowledged_hashes = frozenset[str]().union(*(policy.acknowledged_hashes for policy in policies))
    description = ("packages", _join_keys([policy.key for policy in policies]))
    decision = decide_deletions(
        deletions, len(current_clusters), blocked_counts, acknowledged_hashes, inputs.max_delete_percent, description
    )
    guard = build_deletion_guard(decision, targets, acknowledged_hashes)
    return PlacementGuardResult(guard, tuple(policies) if decision.reason else ())


def _join_keys(keys: Sequence[ObjectKey]) -> str:
    return " or ".join(map(str, keys))
