"""Finds the consequences of resource changes on a cluster, such as a restart of pods, from the Kubernetes API rules.

Operators and admission webhooks have additional rules. This module contains only one of these rules: deleted Strimzi
brokers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from reconciler.lazy_dataclasses import dataclass
from reconciler.output.changes.fields import ABSENT_FIELD, FieldChange, FieldPath
from reconciler.output.changes.objects import ObjectChange
from reconciler.output.changes.package_changes import PackageChanges
from reconciler.output.envelope import DATACLASS_CONFIG

ConsequenceLevel = Literal["destroys", "recreates", "stops", "restarts"]
CONSEQUENCE_LEVELS: tuple[ConsequenceLevel, ...] = ("destroys", "recreates", "stops", "restarts")
"""The levels of consequences, the worst first. "recreates" marks changes of immutable fields."""


@dataclass(frozen=True)
class Consequence:
    """One consequence of a change for a resource on its cluster."""

    __pydantic_config__ = DATACLASS_CONFIG

    level: ConsequenceLevel
    resource: str
    reason: str


@dataclass(frozen=True)
class _Rule:
    """A consequence, and the fields of a kind whose changes have this consequence.

    Attributes:
        fields: The fields whose changes have the consequence.
        exceptions: Fields below `fields` whose changes do not have the consequence.
        is_defaulted: Whether the cluster sets a missing field to its current value, so that a removal of the field has
            no effect.
    """

    level: ConsequenceLevel
    reason_template: str
    fields: tuple[FieldPath, ...]
    exceptions: tuple[FieldPath, ...] = ()
    is_defaulted: bool = False

    def matches(self, change: FieldChange) -> bool:
        """Return whether a change has the consequence."""
        if self.is_defaulted and change.after is ABSENT_FIELD:
            return False
        is_exception = any(change.path[: len(field)] == field for field in self.exceptions)
        return not is_exception and any(_is_affected(change, field) for field in self.fields)


_POD = (("spec", "template"),)
_SELECTOR = (("spec", "selector"),)
_IMMUTABLE = "{field} is immutable: the cluster refuses the change until the resource is deleted"
_NEXT_RUN = "its next runs use new pods, because {field} changed"
_REPLACED_PODS = "its pods are replaced, because {field} changed"

_RULES: dict[tuple[str, str], tuple[_Rule, ...]] = {
    ("apps", "Deployment"): (_Rule("recreates", _IMMUTABLE, _SELECTOR), _Rule("restarts", _REPLACED_PODS, _POD)),
    ("apps", "DaemonSet"): (_Rule("recreates", _IMMUTABLE, _SELECTOR), _Rule("restarts", _REPLACED_PODS, _POD)),
    ("apps", "StatefulSet"): (
        _Rule(
            "recreates", _IMMUTABLE,
            (*_SELECTOR, ("spec", "volumeClaimTemplates"), ("spec", "serviceName"), ("spec", "podManagementPolicy")),
        ),
        _Rule("restarts", _REPLACED_PODS, _POD),
    ),
    ("batch", "Job"): (_Rule("recreates", _IMMUTABLE, (*_POD, *_SELECTOR, ("spec", "completionMode"))),),
    ("batch", "CronJob"): (
        _Rule("restarts", _NEXT_RUN, (("spec", "jobTemplate", "spec", "template"),)),
    ),
    ("", "Service"): (
        _Rule("recreates", _IMMUTABLE, (("spec", "clusterIP"), ("spec", "clusterIPs")), is_defaulted=True),
    ),
    ("", "PersistentVolumeClaim"): (
        _Rule(
            "recreates", _IMMUTABLE, (("spec",),),
            (("spec", "resources"), ("spec", "volumeAttributesClassName")),
        ),
    ),
    ("storage.k8s.io", "StorageClass"): (
        _Rule(
            "recreates", _IMMUTABLE,
            (("provisioner",), ("parameters",), ("reclaimPolicy",), ("volumeBindingMode",)),
        ),
    ),
    ("rbac.authorization.k8s.io", "RoleBinding"): (_Rule("recreates", _IMMUTABLE, (("roleRef",),)),),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): (_Rule("recreates", _IMMUTABLE, (("roleRef",),)),),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (
        _Rule("recreates", _IMMUTABLE, (("spec", "scope"), ("spec", "group"), ("spec", "names", "kind"))),
    ),
}  # fmt: skip

# The data that is deleted when a resource is removed, for each group and kind.
_LOSSES: dict[tuple[str, str], str] = {
    ("", "Namespace"): "everything in the namespace is deleted",
    ("", "PersistentVolumeClaim"): "the reclaim policy of its volume determines whether the data is deleted",
    ("", "PersistentVolume"): "its reclaim policy determines whether its data is deleted",
    ("apps", "StatefulSet"): "its pods are deleted; its retention policy determines whether the volumes are deleted",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "every object of its kind is deleted",
    ("kafka.strimzi.io", "Kafka"): "its brokers are deleted, and the volumes if deleteClaim is set",
    ("kafka.strimzi.io", "KafkaNodePool"): "its brokers are deleted, and the volumes if deleteClaim is set",
}

_SCALABLE_KINDS = frozenset({("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "ReplicaSet")})
_REPLICAS_PATH = ("spec", "replicas")
_VERSIONS_PATH = ("spec", "versions")


def find_consequences(changes: PackageChanges) -> tuple[Consequence, ...]:
    """Return the consequences of all changed resources, the most severe first."""
    consequences = [
        consequence
        for change in changes.objects
        if not change.is_local_config
        for consequence in _find_for_object(change)
    ]
    return tuple(sorted(consequences, key=_rank))


def _rank(consequence: Consequence) -> tuple[int, str, str]:
    return CONSEQUENCE_LEVELS.index(consequence.level), consequence.resource, consequence.reason


def _find_for_object(change: ObjectChange) -> Iterator[Consequence]:
    kind = (change.key.group, change.key.kind)
    if change.change_type == "removed" and kind in _LOSSES:
        yield Consequence("destroys", change.name, _LOSSES[kind])
    if change.change_type == "changed":
        yield from _find_removed_versions(change)
        for rule in _RULES.get(kind, ()):
            if reason := _apply_rule(rule, change):
                yield Consequence(rule.level, change.name, reason)
        yield from _find_stopped(change)


def _apply_rule(rule: _Rule, change: ObjectChange) -> str:
    field = next((field for field in change.fields if rule.matches(field)), None)
    return rule.reason_template.format(field=field.path_text) if field else ""


def _find_stopped(change: ObjectChange) -> Iterator[Consequence]:
    if (change.key.group, change.key.kind) in _SCALABLE_KINDS:
        for field in change.fields:
            if field.path == _REPLICAS_PATH and field.after == 0 and field.after is not False:
                yield Consequence("stops", change.name, "it is scaled to zero pods")


def _find_removed_versions(change: ObjectChange) -> Iterator[Consequence]:
    if change.key.kind != "CustomResourceDefinition":
        return
    for field in change.fields:
        if field.path[:2] == _VERSIONS_PATH and len(field.path) == 3 and field.after is ABSENT_FIELD:
            version = field.path[2].strip("[]")
            yield Consequence(
                "destroys",
                change.name,
                f"version {version} is removed; the cluster then refuses requests with this version",
            )


def _is_affected(change: FieldChange, field: FieldPath) -> bool:
    """Return whether a change is at or below a field, or changes a value that contains the field."""
    path = change.path
    if len(path) >= len(field):
        return path[: len(field)] == field
    inner = field[len(path) :]
    return field[: len(path)] == path and any(_contains(value, inner) for value in (change.before, change.after))


def _contains(value: Any, path: FieldPath) -> bool:
    for step in path:
        if not isinstance(value, Mapping) or step not in value:
            return False
        value = value[step]
    return True
