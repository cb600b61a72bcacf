"""The resources that go to clusters, of all objects of a config (design 10.2, 10.16)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.krm.findings import Finding, errors
from reconciler.krm.identity import ObjectKey
from reconciler.krm.names import segment_fault
from reconciler.rules.clusters.inventory import Inventory
from reconciler.rules.codes import UNKNOWN_CLUSTER
from reconciler.rules.file_names import LONGEST_NAME, full_name
from reconciler.rules.placement.codes import (
    PROPAGATION_POLICY_NOT_FOUND,
    PROPAGATION_POLICY_UNUSABLE,
    RESOURCE_PATH_NOT_USABLE,
)
from reconciler.rules.placement.files import file_of
from reconciler.rules.placement.marks import (
    CLUSTER_LABEL,
    CLUSTERS_ANNOTATION,
    EVERYWHERE,
    NAMESPACED_LABEL,
    Marks,
    is_marked,
    is_read_by_a_room,
    namespace_of,
    not_placed,
    read_marks,
)
from reconciler.rules.placement.model import CLUSTER_KIND, NO_NAMESPACE, Resource, Resources
from reconciler.rules.placement.read_propagation import Propagations
from reconciler.snapshot.catalog import Catalog, ConfigObject

_NAMED = 8


def read_resources(
    catalog: Catalog, inventory: Inventory, propagations: Propagations, chosen: Mapping[ObjectKey, frozenset[str]]
) -> Resources:
    """Return every object that says where it goes, as far as it can go anywhere.

    `chosen` are the clusters of each sound policy.
    """
    found: list[Resource] = []
    findings: list[Finding] = []
    for one in filter(is_marked, catalog.objects.values()):
        if refused := not_placed(one) or _path_fault(one):
            findings.append(refused)
        else:
            resource = Resource(one, namespace_of(one.key), file_of(one))
            placed, told = _placed(resource, inventory, propagations, chosen)
            findings += told
            found.append(placed)
    twice = {key: copies for key, copies in catalog.copies.items() if not is_read_by_a_room(key)}
    policies = [one.policy for one in found]
    policies += (read_marks(one)[0].policy for copies in twice.values() for one in copies)
    shared, faults = _sharing(found)
    doubtful = shared.union(twice)
    apart = tuple(one for one in found if one.key not in doubtful)
    return Resources(apart, doubtful, frozenset(filter(None, policies)), (*findings, *faults))


def _placed(
    resource: Resource, inventory: Inventory, propagations: Propagations, chosen: Mapping[ObjectKey, frozenset[str]]
) -> tuple[Resource, tuple[Finding, ...]]:
    """Return the resource with the clusters of its annotation and of its policy, if nothing is wrong with either."""
    marks, told = read_marks(resource.one)
    resource = replace(resource, policy=marks.policy)
    told = (*told, *_unknown(resource.one, marks, inventory), *_missing(resource, propagations))
    if errors(told):
        return resource, told
    everywhere = frozenset(inventory.clusters)
    named = everywhere if EVERYWHERE in marks.clusters else everywhere.intersection(marks.clusters)
    by_policy = chosen[marks.policy] if marks.policy else frozenset()
    of_policy = propagations.sound[marks.policy].targets.clusters if marks.policy else ()
    names = (*marks.clusters, *of_policy)
    unknown = tuple(name for name in names if name != EVERYWHERE and not _is_known(name, inventory))
    return replace(resource, clusters=named | by_policy, unknown=unknown), told


def _is_known(name: str, inventory: Inventory) -> bool:
    return name in inventory.clusters or name in inventory.doubtful


def _path_fault(one: ConfigObject) -> Finding | None:
    namespace = namespace_of(one.key)
    if namespace != NO_NAMESPACE and (fault := segment_fault(namespace)):
        message = f"metadata.namespace must be one that a folder on a branch can have: {fault}"
        return RESOURCE_PATH_NOT_USABLE.finding(message, one.where_at(("metadata", "namespace")))
    if len(name := full_name(one.key)) > LONGEST_NAME:
        message = f"metadata.name must be short enough for {name} to have at most {LONGEST_NAME} characters"
        return RESOURCE_PATH_NOT_USABLE.finding(message, one.where_at(("metadata", "name")))
    return None


def _unknown(one: ConfigObject, marks: Marks, inventory: Inventory) -> Iterator[Finding]:
    field = ("metadata", "annotations", CLUSTERS_ANNOTATION)
    for name in marks.clusters:
        if name != EVERYWHERE and not _is_known(name, inventory):
            message = f'metadata.annotations.{CLUSTERS_ANNOTATION} names "{name}", and no cluster is called so'
            yield UNKNOWN_CLUSTER.finding(message, one.where_at(field))


def _missing(resource: Resource, propagations: Propagations) -> Iterator[Finding]:
    """Yield why nobody knows now what the policy of a resource says, if it names one that is not sound."""
    one, key = resource.one, resource.policy
    if key is None or (key in propagations.sound and key not in propagations.duplicates):
        return
    label = CLUSTER_LABEL if key.kind == CLUSTER_KIND else NAMESPACED_LABEL
    how, where = f"metadata.labels.{label} names {key}", one.where_at(("metadata", "labels", label))
    if key in propagations.duplicates:
        yield PROPAGATION_POLICY_UNUSABLE.finding(f"{how}, which stands twice in the config", where)
    elif key in propagations.invalid:
        yield PROPAGATION_POLICY_UNUSABLE.finding(f"{how}, which is invalid", where)
    else:
        unread = "" if propagations.is_whole else ", unless it is in a file that cannot be read"
        message = f"{how}, which does not exist{unread}{_those_of(key, propagations)}"
        yield PROPAGATION_POLICY_NOT_FOUND.finding(message, where)


def _those_of(key: ObjectKey, propagations: Propagations) -> str:
    names = sorted(one.name for one in propagations.sound if (one.kind, one.namespace) == (key.kind, key.namespace))
    return f"; there are {', '.join(names)}" if 0 < len(names) <= _NAMED else ""


def _sharing(found: Sequence[Resource]) -> tuple[frozenset[ObjectKey], list[Finding]]:
    """Return the resources that would have one file if they met, whichever go where, and an error for each."""
    places: dict[tuple[str, str], list[Resource]] = {}
    for resource in found:
        places.setdefault((resource.namespace, full_name(resource.key)), []).append(resource)
    shared = {place: same for place, same in places.items() if len(same) > 1}
    findings: list[Finding] = []
    for (_, name), same in shared.items():
        others = ", ".join(f"{each.key} at {each.one.file}:{each.one.document.line}" for each in same)
        message = f"only one resource may have the file {name}, and not {others}"
        findings += (RESOURCE_PATH_NOT_USABLE.finding(message, each.one.where) for each in same)
    return frozenset(each.key for same in shared.values() for each in same), findings
