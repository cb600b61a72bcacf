"""Conflicts between targets: two targets that would change the same packages or the same draft branch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.controllers.codes import ControllerCodes
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey
from reconciler.planning.model.branch_names import format_draft_branch
from reconciler.planning.model.targets import Target, are_paths_nested


def find_target_conflicts(targets: Iterable[Target], templates: Sequence[str]) -> Mapping[ObjectKey, Finding]:
    """Return a finding for each target that the reconciler must not write to.

    Two deployment repositories conflict if they have the same name, or equal or nested directories on one branch. Each
    target would change the packages of the other target. Two targets with the same draft branch would overwrite each
    other's drafts.

    Args:
        templates: Templates for the names of draft branches.
    """
    findings: dict[ObjectKey, Finding] = {}
    for target, other, reason in find_conflicting_targets(targets, templates):
        findings.setdefault(target.key, _create_conflict_finding(target, other, reason))
        findings.setdefault(other.key, _create_conflict_finding(other, target, reason))
    return findings


def find_conflicting_targets(
    targets: Iterable[Target], templates: Sequence[str]
) -> Iterator[tuple[Target, Target, str]]:
    """Yield each pair of conflicting targets with the reason. The second target is the subject of the reason."""
    ordered = sorted(targets, key=lambda target: target.key)
    for target, other in _iterate_pairs(ordered):
        if reason := _find_conflict(target, other, templates):
            yield target, other, reason


def _iterate_pairs(targets: list[Target]) -> Iterable[tuple[Target, Target]]:
    # Compare only targets with the same name or branch, because other targets cannot conflict. A large fleet has too
    # many pairs of targets to compare all.
    groups: dict[tuple[str, ...], list[Target]] = {}
    for target in targets:
        groups.setdefault((target.name,), []).append(target)
        groups.setdefault((target.repository_id, target.branch), []).append(target)
    for group in groups.values():
        yield from ((target, other) for index, target in enumerate(group) for other in group[index + 1 :])


def _find_conflict(target: Target, other: Target, templates: Iterable[str]) -> str:
    if target.name == other.name and target.is_deployment and other.is_deployment:
        return "has the same name, and the name identifies the cluster"
    is_one_branch = (target.repository_id, target.branch) == (other.repository_id, other.branch)
    if is_one_branch and are_paths_nested(target.directory, other.directory):
        return f'has the same directory or a nested directory on branch "{target.branch}"'
    # Compare draft branches only if both targets use the same branch: each template contains the placeholder for the
    # branch or for the name of the Repository object, and these names differ (equal names are reported above).
    names = (
        template
        for template in templates
        if format_draft_branch(template, target, "") == format_draft_branch(template, other, "")
    )
    if is_one_branch and (name := next(names, None)):
        return f'has the same draft branch (the template "{name}" does not contain {{repository}})'
    return ""


def _format_full_name(target: Target) -> str:
    return f"{target.key.kind} {target.key.namespace}/{target.name}" if target.key.namespace else target.title


def _create_conflict_finding(target: Target, other: Target, reason: str) -> Finding:
    message = (
        f"nothing is written to {_format_full_name(target)}, because {_format_full_name(other)} {reason}. Next step:"
        " change the name, the branch or the directory of one of them"
    )
    return ControllerCodes.DESTINATION_CONFLICT.finding(message, target.location)
