"""The risk of a draft for its cluster. The rules of `impact` determine restarts, losses and refused changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from reconciler.lazy_dataclasses import dataclass
from reconciler.output.changes.objects import ObjectChange
from reconciler.output.changes.package_changes import PackageChanges
from reconciler.output.envelope import DATACLASS_CONFIG
from reconciler.output.impact.consequences import Consequence, ConsequenceLevel, find_consequences
from reconciler.output.text import format_count, to_one_line

RiskLevel = Literal["high", "medium", "low"]
RISK_LEVELS: tuple[RiskLevel, ...] = ("high", "medium", "low")
"""All levels, the highest first."""

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
"""The level and the description of each class, the highest risk first."""

_CLASS_ORDER = tuple(RISK_CLASSES)
_CONSEQUENCE_CLASSES: dict[ConsequenceLevel, RiskClass] = {
    "destroys": "deletion", "recreates": "deletion", "stops": "restart", "restarts": "restart",
}  # fmt: skip
_ACCESS_GROUPS = frozenset({"rbac.authorization.k8s.io", "admissionregistration.k8s.io"})
_ACCESS_KINDS = frozenset({("networking.k8s.io", "NetworkPolicy")})
_MAX_REASONS = 10


@dataclass(frozen=True)
class Risk:
    """The risk of a draft. `reasons` are phrases, the most important first."""

    __pydantic_config__ = DATACLASS_CONFIG

    risk_class: RiskClass
    reasons: tuple[str, ...] = ()

    @property
    def level(self) -> RiskLevel:
        """The level of the class."""
        return RISK_CLASSES[self.risk_class][0]

    @property
    def rank(self) -> int:
        """The position of the class. 0 is the highest risk."""
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
    changes: PackageChanges, consequences: Iterable[Consequence], resource_count: int
) -> Iterator[tuple[RiskClass, str]]:
    for consequence in consequences:
        phrase = f"{consequence.level} {consequence.resource}: {consequence.reason}"
        yield _CONSEQUENCE_CLASSES[consequence.level], to_one_line(phrase)
    objects = [change for change in changes.objects if not change.is_local_config]
    removed = [change for change in objects if change.change_type == "removed"]
    if len(removed) * 2 > resource_count:
        yield "deletion", f"deletes {len(removed)} of {format_count(resource_count, 'resource')}"
    for change in removed:
        yield "restart", f"deletes {change.name}"
    for change in objects:
        if change.key.group in _ACCESS_GROUPS or (change.key.group, change.key.kind) in _ACCESS_KINDS:
            yield "access", f"changes the permissions or rules of {change.name}: {change.change_type}"
        yield from (("size", f"changes {field} of {change.name}") for field in _list_size_fields(change))


def _list_size_fields(change: ObjectChange) -> Iterator[str]:
    for field in change.fields:
        if field.path == ("spec", "replicas") or (field.path[0] == "spec" and "resources" in field.path):
            yield to_one_line(field.path_text)


def _classify_other(changes: PackageChanges) -> RiskClass:
    objects = [change for change in changes.objects if not change.is_local_config]
    if any(change.change_type == "added" for change in objects):
        return "fields"
    has_other_fields = any(field.path[0] != "metadata" for change in objects for field in change.fields)
    has_other_files = any(file.change_type not in ("reformatted", "moved") for file in changes.files)
    has_kptfile_fields = any(change.pipeline or change.gates for change in changes.kptfiles)
    return "fields" if has_other_fields or has_other_files or has_kptfile_fields else "metadata"
