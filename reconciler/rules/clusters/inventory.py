"""The inventory: every cluster of the fleet, of all objects that speak of it (design 3, 10.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.krm.names import segment_fault
from reconciler.rules.clusters.model import Cluster
from reconciler.rules.codes import DESTINATION_CONFLICT, NAME_NOT_USABLE
from reconciler.rules.repository import Repositories
from reconciler.snapshot.catalog import PORCH_GROUP, Catalog, ConfigObject

CLUSTER_LABEL = "greenhouse.sap/cluster"
_REPOSITORY = (PORCH_GROUP, "Repository")
_FEDERATED = ("core.kubeadmiral.io", "FederatedCluster")
_CLUSTER = ("greenhouse.sap", "Cluster")
# later ones win: the labels of a Cluster are the last word (design 10.3)
CLUSTER_KINDS = (_REPOSITORY, _FEDERATED, _CLUSTER)


@dataclass(frozen=True)
class Inventory:
    """The clusters of the config, by name in order.

    `homes` are the objects that say where each cluster's packages go: its Repository, else the cluster's own object,
    and then it lives in the fleet repository. Nothing may be written to clusters in `conflicts`. `doubtful` are the
    names of which not all is known, for an object of that name cannot be used: they may be clusters, and what a
    cluster of such a name has is not to be taken away. `unusable` are the objects whose name cannot be
    that of a cluster: nothing may be written for them.
    """

    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    homes: Mapping[str, ObjectKey] = field(default_factory=dict)
    conflicts: Mapping[str, Finding] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    doubtful: frozenset[str] = frozenset()
    unusable: Mapping[ObjectKey, Finding] = field(default_factory=dict)


def read_inventory(catalog: Catalog, repositories: Repositories) -> Inventory:
    """Return the clusters that there are, their labels united; unknown fields of their objects are kept (design 10.3).

    One object that stands twice counts as in doubt, and a Repository that cannot be used: it may be where the cluster
    lives, so that the cluster is not moved to the fleet meanwhile.
    """
    named: dict[str, list[ConfigObject]] = {}
    findings: dict[ObjectKey, Finding] = {}
    for one in _speaking(catalog, repositories):
        if fault := segment_fault(one.key.name):
            message = f"metadata.name must be one that a cluster can have: {fault}"
            findings[one.key] = NAME_NOT_USABLE.finding(message, one.where_at(("metadata", "name")))
        else:
            named.setdefault(one.key.name, []).append(one)
    unusable = _unusable(catalog, repositories)
    names = sorted(named)
    return Inventory(
        {name: Cluster(name, _labels(name, named[name])) for name in names},
        {name: _home(named[name], unusable.get(name)) for name in names},
        {name: finding for name in names if (finding := _conflict(name, named[name]))},
        tuple(findings.values()),
        frozenset(unusable) | {key.name for key in catalog.duplicates if (key.group, key.kind) in CLUSTER_KINDS},
        findings,
    )


def _speaking(catalog: Catalog, repositories: Repositories) -> Iterator[ConfigObject]:
    """Yield the objects that make clusters, those whose labels win last; of equals the least counts, and so is last."""
    for group, kind in CLUSTER_KINDS:
        for one in reversed(catalog.of_kind(group, kind)):
            if (group, kind) != _REPOSITORY or _is_deployment(one, repositories):
                yield one


def _is_deployment(one: ConfigObject, repositories: Repositories) -> bool:
    repository = repositories.get((one.key.namespace, one.key.name))
    return repository is not None and repository.deployment


def _unusable(catalog: Catalog, repositories: Repositories) -> Mapping[str, ObjectKey]:
    """Return by name the Repositories of which nobody can say now whether they are a cluster's."""
    twice = [key for key in catalog.duplicates if (key.group, key.kind) == _REPOSITORY]
    read = [one.key for one in catalog.of_kind(*_REPOSITORY) if (one.key.namespace, one.key.name) not in repositories]
    return {key.name: key for key in sorted((*twice, *read), reverse=True)}


def _labels(name: str, objects: Iterable[ConfigObject]) -> Mapping[str, str]:
    united: dict[str, str] = {}
    for one in objects:
        united.update(one.labels)
    # no file says it, and selectors ask for it (greenhouse 2.3)
    return {**united, CLUSTER_LABEL: name}


def _home(objects: Sequence[ConfigObject], unusable: ObjectKey | None) -> ObjectKey:
    repositories, clusters, federated = (sorted(_keys(objects, kind)) for kind in (_REPOSITORY, _CLUSTER, _FEDERATED))
    return next(iter((*repositories, *filter(None, [unusable]), *clusters, *federated)))


def _keys(objects: Iterable[ConfigObject], kind: tuple[str, str]) -> list[ObjectKey]:
    return [one.key for one in objects if (one.key.group, one.key.kind) == kind]


def _conflict(name: str, objects: Sequence[ConfigObject]) -> Finding | None:
    """Return what is wrong with two objects of one kind that both say that they are this cluster.

    Of Repositories planning tells it, which knows where they lie (design 10.3).
    """
    for kind in (_CLUSTER, _FEDERATED):
        same = sorted((one for one in objects if (one.key.group, one.key.kind) == kind), key=lambda one: one.key)
        if len(same) > 1:
            places = ", ".join(f"{one.key} at {one.file}:{one.document.line}" for one in same)
            message = f'a cluster is its name, and must be described once; there are several of "{name}": {places}'
            return DESTINATION_CONFLICT.finding(message, same[0].where)
    return None
