"""Marks: what a resource itself says of where it goes, by labels and by an annotation (design 10.32)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.krm.findings import Code, Finding
from reconciler.krm.identity import ObjectKey
from reconciler.krm.schema import scope
from reconciler.rules.fields import shown
from reconciler.rules.placement.codes import NOT_PLACED, PLACEMENT_INVALID, PROPAGATION_LABEL_IGNORED
from reconciler.rules.placement.model import CLUSTER_KIND, GROUP, NAMESPACED_KIND, NO_NAMESPACE
from reconciler.rules.placement.read_propagation import policy_key
from reconciler.snapshot.catalog import PORCH_GROUP, ConfigObject

NAMESPACED_LABEL = "kubeadmiral.io/propagation-policy-name"
CLUSTER_LABEL = "kubeadmiral.io/cluster-propagation-policy-name"
CLUSTERS_ANNOTATION = "reconciler.dev/clusters"
EVERYWHERE = "*"
# what rooms read whole: packages and their sets, plugins, component types and components, and our own kinds
_READ_GROUPS = (PORCH_GROUP, "greenhouse.sap", "platform", "reconciler.dev")
_MARKS = (("labels", NAMESPACED_LABEL), ("labels", CLUSTER_LABEL), ("annotations", CLUSTERS_ANNOTATION))


@dataclass(frozen=True)
class Marks:
    """The clusters that a resource names, `*` among them for all, and the policy that it names, each if any."""

    clusters: tuple[str, ...] = ()
    policy: ObjectKey | None = None


def is_marked(one: ConfigObject) -> bool:
    """Tell whether an object says anything of where it goes."""
    return any(mark in _entries(one, field) for field, mark in _MARKS)


def not_placed(one: ConfigObject) -> Finding | None:
    """Return a warning for an object that is marked and of a kind that is not placed, whatever its marks say."""
    if is_read_by_a_room(one.key):
        why = f"{one.key.kind} of {one.key.group} is read here, and not written to clusters as it is"
    elif _is_list(one):
        why = "a List is not placed, and what is in it is not looked into: give each item a document of its own"
    else:
        return None
    field, mark = next((field, mark) for field, mark in _MARKS if mark in _entries(one, field))
    return NOT_PLACED.finding(f"metadata.{field}.{mark} does nothing: {why}", one.where_at(("metadata", field, mark)))


def is_read_by_a_room(key: ObjectKey) -> bool:
    """Tell whether objects of this kind are what rooms make packages of."""
    of_kubeadmiral = key.group == GROUP and (key.kind.endswith("Policy") or key.kind == "FederatedCluster")
    return of_kubeadmiral or key.group in _READ_GROUPS


def read_marks(one: ConfigObject) -> tuple[Marks, tuple[Finding, ...]]:
    """Return what a resource says, and what is wrong with that: after an error nobody knows where it goes."""
    clusters, faults = _clusters(one)
    policy, told = _policy(one)
    return Marks(clusters, policy), (*faults, *told)


def namespace_of(key: ObjectKey) -> str:
    """Return the namespace that a resource states, as its package is named; `_cluster` for kinds that live in none."""
    return (key.namespace if scope(key.group, key.kind) != "cluster" else "") or NO_NAMESPACE


def _policy(one: ConfigObject) -> tuple[ObjectKey | None, tuple[Finding, ...]]:
    """Return the policy that counts, of at most two that are named.

    KubeAdmiral's scheduler (GetMatchedPolicyKey) takes the namespaced one for a resource with a namespace, and does not
    look at the other then.
    """
    namespace = namespace_of(one.key)
    counts, ignored, kind = NAMESPACED_LABEL, CLUSTER_LABEL, NAMESPACED_KIND
    why = f"{NAMESPACED_LABEL} is there as well, and counts"
    if namespace == NO_NAMESPACE or NAMESPACED_LABEL not in _entries(one, "labels"):
        counts, ignored, kind = CLUSTER_LABEL, NAMESPACED_LABEL, CLUSTER_KIND
        why = "it needs a resource with a namespace"
    findings = []
    if ignored in _entries(one, "labels"):
        findings.append(_told(one, PROPAGATION_LABEL_IGNORED, ignored, f"is ignored: {why}"))
    name = _entries(one, "labels").get(counts, "")
    if counts not in _entries(one, "labels"):
        return None, tuple(findings)
    if not isinstance(name, str) or not name:
        findings.append(_told(one, PLACEMENT_INVALID, counts, f"must be the name of a {kind}, not {shown(name)}"))
        return None, tuple(findings)
    return policy_key(kind, namespace, name), tuple(findings)


def _clusters(one: ConfigObject) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    annotations = _entries(one, "annotations")
    if CLUSTERS_ANNOTATION not in annotations:
        return (), ()
    value = annotations[CLUSTERS_ANNOTATION]
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else [""]
    if all(names):
        return tuple(dict.fromkeys(names)), ()
    message = (
        f"metadata.annotations.{CLUSTERS_ANNOTATION} must be names of clusters with commas between them, or"
        f' "{EVERYWHERE}" for all, not {shown(value)}; to place it nowhere, leave the annotation out'
    )
    where = one.where_at(("metadata", "annotations", CLUSTERS_ANNOTATION))
    return (), (PLACEMENT_INVALID.finding(message, where),)


def _told(one: ConfigObject, code: Code, label: str, message: str) -> Finding:
    return code.finding(f"metadata.labels.{label} {message}", one.where_at(("metadata", "labels", label)))


def _entries(one: ConfigObject, field: str) -> Mapping[Any, Any]:
    entries = one.data["metadata"].get(field)
    return entries if isinstance(entries, Mapping) else {}


def _is_list(one: ConfigObject) -> bool:
    return one.key.kind.endswith("List") and isinstance(one.data.get("items"), list)
