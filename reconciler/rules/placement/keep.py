"""What stays where it is: files of clusters that may not go while their absence is not proved (design 10.5, 10.16)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.krm.identity import ObjectKey
from reconciler.rules.clusters.inventory import Inventory
from reconciler.rules.placement.marks import namespace_of
from reconciler.rules.placement.model import Before, Resource, owner_of, package_of
from reconciler.snapshot.catalog import Catalog, read_catalog
from reconciler.snapshot.files import File, FileTree


@dataclass(frozen=True)
class Kept:
    """The files of one package that stay, by cluster and resource.

    `blindly` are the clusters of which nobody can say what their package has: it stays as a whole.
    """

    files: Mapping[str, Mapping[ObjectKey, File]] = field(default_factory=dict)
    blindly: frozenset[str] = frozenset()


class Doubt:
    """All that is not known for sure in one pass, and what it keeps."""

    def __init__(self, catalog: Catalog, inventory: Inventory, doubtful: frozenset[ObjectKey], before: Before) -> None:
        self._is_whole = catalog.is_whole
        self._inventory = inventory
        self._before = before
        self._doubtful: dict[str, set[ObjectKey]] = {}
        for key in doubtful:
            self._doubtful.setdefault(namespace_of(key), set()).add(key)
        self._places = before.places()
        # one package is the same on many clusters: each of its files is read once
        self._read: dict[str, Mapping[ObjectKey, File] | None] = {}

    def existing(self, namespace: str) -> tuple[str, ...]:
        """Return the clusters that have the package of a namespace now, and can be written to."""
        return tuple(name for name in self._there(namespace) if name in self._inventory.homes)

    def namespaces(self) -> Iterator[str]:
        """Yield the namespaces that have packages anywhere now."""
        return (owner.name for owner in sorted(self._places))

    def kept(self, namespace: str, resources: Sequence[Resource]) -> Kept:
        """Return what stays of the package of a namespace; `resources` are all that the config has for it.

        A resource stays where it was as it is today if nobody can tell where it goes; to the byte, if nobody can tell
        what it is, or if a name of no cluster may be meant for the cluster that it is on; and anything at all while
        files of the config cannot be read.
        """
        undecided = {one.key: one.file for one in resources if one.clusters is None}
        wanted = {one.key: one.clusters for one in resources if one.clusters is not None}
        doubtful = self._doubtful.get(namespace, set())
        misnamed = {one.key for one in resources if one.unknown}
        files: dict[str, Mapping[ObjectKey, File]] = {}
        blindly: set[str] = set()
        there_now = self._there(namespace)
        # a package on its way out is wanted again where any resource goes to its cluster, and may be there still
        again = {cluster for clusters in wanted.values() for cluster in clusters}.difference(there_now)
        for cluster in sorted({*there_now, *again}):
            all_stay = not self._is_whole or cluster in self._inventory.doubtful
            if not (all_stay or undecided or doubtful or misnamed):
                continue
            there = self._earlier(cluster, package_of(namespace)) if cluster in self._inventory.homes else None
            if there is None:
                blindly.update({cluster}.difference(again))
                continue
            files[cluster] = {
                key: undecided.get(key, file)
                for key, file in there.items()
                if key in undecided
                or key in doubtful
                or ((all_stay or key in misnamed) and cluster not in wanted.get(key, ()))
            }
        return Kept({cluster: found for cluster, found in files.items() if found}, frozenset(blindly))

    def _there(self, namespace: str) -> Sequence[str]:
        return sorted(self._places.get(owner_of(namespace).key, ()))

    def _earlier(self, cluster: str, package: str) -> Mapping[ObjectKey, File] | None:
        tree = self._before.earlier(cluster, package)
        if tree is None:
            return None
        if tree.id not in self._read:
            self._read[tree.id] = _by_identity(tree)
        return self._read[tree.id]


def _by_identity(tree: FileTree) -> Mapping[ObjectKey, File] | None:
    catalog = read_catalog(tree)
    return {key: tree[one.file] for key, one in catalog.objects.items()} if catalog.is_whole else None
