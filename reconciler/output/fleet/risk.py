"""The risk of a draft for its cluster.

The package `output/impact` contains the rules for restarts of pods, losses of data, and changes that a cluster refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.changes.fields import FieldChange
from reconciler.output.changes.objects import ChangeType, ObjectChange
from reconciler.output.changes.package_changes import PackageChanges
from reconciler.output.envelope import DATACLASS_CONFIG
from reconciler.output.impact.consequences import Consequence, ConsequenceLevel, find_consequences
from reconciler.output.text import to_one_line

RiskLevel = Literal["high", "medium", "low"]
RISK_LEVELS: tuple[RiskLevel, ...] = ("high", "medium", "low")
"""All risk levels, the highest first."""

RiskClass = Literal["blocked", "deletion", "access", "restart", "size", "fields", "metadata"]
RISK_CLASSES: dict[RiskClass, tuple[RiskLevel, str]] = {
    "blocked": ("high", "The draft has conflicts, unmet gates, or other reasons that block its publication."),
    "deletion": (
        "high",
        "The draft deletes data, an API or most resources, or contains a change that the cluster refuses.",
    ),
    "access": ("high", "The draft changes permissions, admission webhooks or network policies."),
    "restart": ("medium", "The draft restarts or stops pods, or deletes resources."),
    "size": ("medium", "The draft changes the number of replicas, or the resources of a container."),
    "fields": ("low", "The draft changes other fields or files."),
    "metadata": ("low", "The draft changes only labels, annotations or the text of files."),
}
"""The risk level and the description of each risk class, the highest risk first."""

_CLASS_ORDER = tuple(RISK_CLASSES)
_CONSEQUENCE_CLASSES: dict[ConsequenceLevel, RiskClass] = {
    "destroys": "deletion", "recreates": "deletion", "stops": "restart", "restarts": "restart",
}  # fmt: skip
_ACCESS_VERBS: dict[ChangeType, str] = {"added": "adds", "changed": "changes", "removed": "deletes"}
_ACCESS_GROUPS = frozenset({"rbac.authorization.k8s.io", "admissionregistration.k8s.io"})
# Select kinds by this suffix, to include for example CiliumNetworkPolicy and AdminNetworkPolicy.
_NETWORK_POLICY_SUFFIX = "NetworkPolicy"
_REPLICA_FIELDS = frozenset({"replicas", "minReplicas", "maxReplicas"})
_RESOURCE_FIELDS = frozenset({"requests", "limits", "claims"})
_MAX_REASONS = 10


@dataclass(frozen=True)
class Risk:
    """The risk of a draft. `reasons` are phrases, the most important first."""

    __pydantic_config__ = DATACLASS_CONFIG

    risk_class: RiskClass
    reasons: tuple[str, ...] = ()

    @property
    def level(self) -> RiskLevel:
        """The risk level of the risk class."""
        return RISK_CLASSES[self.risk_class][0]

    @property
    def rank(self) -> int:
        """The position of the risk class in `RISK_CLASSES`. 0 is the highest risk."""
        return _CLASS_ORDER.index(self.risk_class)


def assess_risk(changes: PackageChanges, resource_count: int, blocking_reasons: Sequence[str]) -> Risk:
    """Return the risk of a draft of one package.

    Args:
        resource_count: The number of resources in the published package.
        blocking_reasons: Phrases for the conflicts and unmet gates of the draft.
    """
    found: list[tuple[RiskClass, str]] = [("blocked", reason) for reason in blocking_reasons]
    found += _list_reasons(changes, find_consequences(changes), resource_count)
    ranked = sorted(dict.fromkeys(found), key=lambda entry: _CLASS_ORDER.index(entry[0]))
    if not ranked:
        return Risk(_classify_other(changes))
    reasons = tuple(reason for _, reason in ranked)
    more = len(reasons) - _MAX_REASONS
    shown = (*reasons[:_MAX_REASONS], f"and {format_count(more, 'more reason')}") if more > 0 else reasons
    return Risk(ranked[0][0], shown)


def _list_reasons(
    changes: PackageChanges, consequences: Sequence[Consequence], resource_count: int
) -> Iterator[tuple[RiskClass, str]]:
    for consequence in consequences:
        phrase = f"{consequence.level} {consequence.resource}: {consequence.reason}"
        yield _CONSEQUENCE_CLASSES[consequence.level], to_one_line(phrase)
    objects = [change for change in changes.objects if not change.is_local_config]
    removed_count = sum(change.change_type == "removed" for change in objects)
    if removed_count * 2 > resource_count:
        yield "deletion", f"deletes {removed_count} of {format_count(resource_count, 'resource')}"
    destroyed = {consequence.resource for consequence in consequences if consequence.level == "destroys"}
    for change in objects:
        if _controls_access(change):
            yield "access", f"{_ACCESS_VERBS[change.change_type]} {change.name}"
        elif change.change_type == "removed" and change.name not in destroyed:
            yield "restart", f"deletes {change.name}"
        for field in filter(_is_size_field, change.fields):
            yield "size", f"changes {to_one_line(field.path_text)} of {change.name}"


def _controls_access(change: ObjectChange) -> bool:
    return change.key.group in _ACCESS_GROUPS or change.key.kind.endswith(_NETWORK_POLICY_SUFFIX)


def _is_size_field(change: FieldChange) -> bool:
    """Return whether a field contains a number of replicas, or the resources of a container or volume.

    A field `resources` with other keys has a different meaning, for example in the schema of a CRD.
    """
    section, *path = change.path
    if section != "spec" or not path:
        return False
    if "resources" not in path:
        return len(path) == 1 and path[0] in _REPLICA_FIELDS
    inner = path[path.index("resources") + 1 :][:1] or [
        name for value in (change.before, change.after) if isinstance(value, Mapping) for name in value
    ]
    return bool(inner) and _RESOURCE_FIELDS.issuperset(inner)


def _classify_other(changes: PackageChanges) -> RiskClass:
    objects = [change for change in changes.objects if not change.is_local_config]
    if any(change.change_type == "added" for change in objects):
        return "fields"
    has_other_fields = any(field.path[0] != "metadata" for change in objects for field in change.fields)
    has_other_files = any(file.change_type not in ("reformatted", "moved") for file in changes.files)
    has_kptfile_fields = any(kptfile.has_effect for kptfile in changes.kptfiles)
    return "fields" if has_other_fields or has_other_files or has_kptfile_fields else "metadata"
