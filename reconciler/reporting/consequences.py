"""Consequences: what a change of a resource does on its cluster beyond what it says, by rules of Kubernetes.

Only what its documentation promises stands here; operators and admission have rules of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from reconciler.reporting.changes import Changes
from reconciler.reporting.fields import ABSENT, FieldChange, FieldPath
from reconciler.reporting.object_changes import ObjectChange

Level = Literal["destroys", "recreates", "stops", "restarts"]
LEVELS: tuple[Level, ...] = ("destroys", "recreates", "stops", "restarts")
"""The worst first: what is lost, what the cluster refuses until it is made anew, what stands still, what restarts."""


@dataclass(frozen=True)
class Consequence:
    """What becomes of one resource, and why."""

    level: Level
    resource: str
    why: str


@dataclass(frozen=True)
class _Rule:
    """The fields of a kind of which a change has a consequence; `besides` are fields below them that have none.

    `defaulted`: the cluster fills the fields in, so that it goes on when they are not written any more.
    """

    level: Level
    why: str
    fields: tuple[FieldPath, ...]
    besides: tuple[FieldPath, ...] = ()
    defaulted: bool = False

    def concerns(self, change: FieldChange) -> bool:
        if self.defaulted and change.after is ABSENT:
            return False
        return any(_meet(field, change) for field in self.fields) and not any(
            change.path[: len(field)] == field for field in self.besides
        )


_POD = (("spec", "template"),)
_SELECTOR = (("spec", "selector"),)
_FIXED = "{field} cannot be changed: delete it first, or the cluster refuses the change"
_NEXT = "its next runs have other pods: {field} changed"
_ROLLS = "its pods are replaced: {field} changed"

# group, kind: what a change of its fields means
_RULES: dict[tuple[str, str], tuple[_Rule, ...]] = {
    ("apps", "Deployment"): (_Rule("recreates", _FIXED, _SELECTOR), _Rule("restarts", _ROLLS, _POD)),
    ("apps", "DaemonSet"): (_Rule("recreates", _FIXED, _SELECTOR), _Rule("restarts", _ROLLS, _POD)),
    ("apps", "StatefulSet"): (
        _Rule(
            "recreates", _FIXED,
            (*_SELECTOR, ("spec", "volumeClaimTemplates"), ("spec", "serviceName"), ("spec", "podManagementPolicy")),
        ),
        _Rule("restarts", _ROLLS, _POD),
    ),
    ("batch", "Job"): (_Rule("recreates", _FIXED, (*_POD, *_SELECTOR, ("spec", "completionMode"))),),
    ("batch", "CronJob"): (
        _Rule("restarts", _NEXT, (("spec", "jobTemplate", "spec", "template"),)),
    ),
    ("", "Service"): (_Rule("recreates", _FIXED, (("spec", "clusterIP"), ("spec", "clusterIPs")), defaulted=True),),
    ("", "PersistentVolumeClaim"): (
        _Rule(
            "recreates", _FIXED, (("spec",),),
            (("spec", "resources"), ("spec", "volumeAttributesClassName")),
        ),
    ),
    ("storage.k8s.io", "StorageClass"): (
        _Rule(
            "recreates", _FIXED,
            (("provisioner",), ("parameters",), ("reclaimPolicy",), ("volumeBindingMode",)),
        ),
    ),
    ("rbac.authorization.k8s.io", "RoleBinding"): (_Rule("recreates", _FIXED, (("roleRef",),)),),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): (_Rule("recreates", _FIXED, (("roleRef",),)),),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (
        _Rule("recreates", _FIXED, (("spec", "scope"), ("spec", "group"), ("spec", "names", "kind"))),
    ),
}  # fmt: skip

# group, kind: what is lost with it
_LOST: dict[tuple[str, str], str] = {
    ("", "Namespace"): "everything in the namespace is deleted with it",
    ("", "PersistentVolumeClaim"): "what is on its volume may be deleted with it, as the volume's reclaim policy says",
    ("", "PersistentVolume"): "what is on it may be deleted with it, as its reclaim policy says",
    ("apps", "StatefulSet"): "its pods go; the volumes that they claimed stay, or go as its retention policy says",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "every object of its kind is deleted with it",
    ("kafka.strimzi.io", "Kafka"): "its brokers go, and their volumes where deleteClaim says so",
    ("kafka.strimzi.io", "KafkaNodePool"): "its brokers go, and their volumes where deleteClaim says so",
}

_SCALED = frozenset({("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "ReplicaSet")})
_REPLICAS = ("spec", "replicas")
_VERSIONS = ("spec", "versions")


def consequences(changes: Changes) -> tuple[Consequence, ...]:
    """Return what changes of resources do besides, the worst first."""
    found = [each for one in changes.objects if not one.is_local for each in _of(one)]
    return tuple(sorted(found, key=lambda each: (LEVELS.index(each.level), each.resource, each.why)))


def _of(one: ObjectChange) -> Iterator[Consequence]:
    kind = (one.key.group, one.key.kind)
    if one.how == "removed" and kind in _LOST:
        yield Consequence("destroys", one.name, _LOST[kind])
    if one.how == "changed":
        yield from _dropped_versions(one)
        yield from (Consequence(rule.level, one.name, why) for rule in _RULES.get(kind, ()) if (why := _why(rule, one)))
        yield from _stopped(one)


def _why(rule: _Rule, one: ObjectChange) -> str:
    change = next((change for change in one.fields if rule.concerns(change)), None)
    return rule.why.format(field=change.where) if change else ""


def _stopped(one: ObjectChange) -> Iterator[Consequence]:
    if (one.key.group, one.key.kind) in _SCALED:
        for change in one.fields:
            if change.path == _REPLICAS and change.after == 0 and change.after is not False:
                yield Consequence("stops", one.name, "it is scaled to no pods")


def _dropped_versions(one: ObjectChange) -> Iterator[Consequence]:
    if one.key.kind != "CustomResourceDefinition":
        return
    for change in one.fields:
        if change.path[:2] == _VERSIONS and len(change.path) == 3 and change.after is ABSENT:
            why = f"version {change.path[2].strip('[]')} is gone: whoever writes it is refused"
            yield Consequence("destroys", one.name, why)


def _meet(field: FieldPath, change: FieldChange) -> bool:
    """Return whether a change touches a field: inside of it, or in all that it stands in."""
    path = change.path
    if len(path) >= len(field):
        return path[: len(field)] == field
    return field[: len(path)] == path and any(_has(one, field[len(path) :]) for one in (change.before, change.after))


def _has(value: Any, path: FieldPath) -> bool:
    for step in path:
        if not isinstance(value, Mapping) or step not in value:
            return False
        value = value[step]
    return True
