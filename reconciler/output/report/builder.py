"""Builds the report about the fleet: matrix rows, pending work, conflicts, and changes of drafts.

The builder reads one cluster after the other, and stores only data that the report contains. Equal items of several
targets become one item. The module `explanations` builds the explanations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from shlex import quote
from typing import Any, get_args

from reconciler.catalog.files import FileTree
from reconciler.krm.json_text import compute_digest, encode_canonical_json
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.output.changes.data import FileDiff, build_diffs
from reconciler.output.changes.package_changes import PackageChanges, compare_packages, select_differing_files
from reconciler.output.plan.overview import build_comparison_key
from reconciler.output.report.explanations import ExplanationGroups
from reconciler.output.report.model import (
    ClusterRow,
    FleetReport,
    MatrixEntry,
    PendingItem,
    PendingKind,
    ReportCluster,
    ReportedChange,
    ReportedConflict,
    ReportPackage,
    ReportTarget,
    TargetNames,
    find_earlier_date,
)
from reconciler.output.review.open_drafts import DraftDetails, DraftPackageDetails, format_reproduce_commands
from reconciler.output.status.package_sections import format_recorded_owner, format_task
from reconciler.output.status.result import read_valid_status
from reconciler.output.text import MAX_DIFF_LINES, format_count, format_value, to_one_line
from reconciler.planning.lifecycle.open_drafts import BlockingReason, TargetPackage
from reconciler.planning.model.sources import filter_recorded_conflicts

_MAX_SUMMARY_LINES = 50
# Limit the diffs, so that a browser can open the report of a large fleet. `reconciler show` prints omitted diffs.
_MAX_DIFF_LINES = 40_000


@dataclass
class _ChangeGroup:
    """Drafts with an equal change. The files, details and command are those of the first draft.

    Attributes:
        digest: The digest of the change, with all names.
        since: The earliest date of all drafts.
        has_target_names: Whether the changes differ in the names of their targets.
    """

    folder: str
    before: FileTree
    after: FileTree
    details: DraftPackageDetails
    reproduce_command: str
    digest: str
    since: int | None = None
    has_target_names: bool = False
    targets: list[ReportTarget] = field(default_factory=list)


class ChangeGroups:
    """Groups drafts with equal changes. Only the files of the first draft of each group are stored."""

    def __init__(self) -> None:
        self._groups: dict[str, _ChangeGroup] = {}
        self._keys: dict[str, str] = {}

    def add(
        self, target: ReportTarget, draft: DraftDetails, details: DraftPackageDetails, target_names: TargetNames
    ) -> str:
        """Add a package of a draft to its group, and return the key of the group."""
        before, after = select_differing_files(details.before, details.after)
        status = details.package.status
        identity = [target.package, format_recorded_owner(status).partition(" ")[0], format_task(status)]
        digest = compute_digest([*identity, before.id, after.id])
        key = self._keys.get(digest) or self._compute_key(identity, before, after, target_names)
        self._keys[digest] = key
        group = self._groups.get(key)
        if group is None:
            folder = draft.draft.target.get_package_path(target.package)
            reproduce_command = next(format_reproduce_commands(draft, details))
            group = _ChangeGroup(folder, before, after, details, reproduce_command, digest)
            self._groups[key] = group
        group.targets.append(target)
        group.has_target_names = group.has_target_names or group.digest != digest
        group.since = find_earlier_date(group.since, details.since)
        return key

    def _compute_key(self, identity: list[str], before: FileTree, after: FileTree, target_names: TargetNames) -> str:
        """Return the key of a change. Files that differ only in the names of their targets have the same key."""
        masked_before, masked_after = target_names.mask_file_names(before), target_names.mask_file_names(after)
        digest = compute_digest([*identity, masked_before.id, masked_after.id])
        if digest not in self._keys:
            changes = compare_packages(masked_before, masked_after)
            comparison_key = build_comparison_key(changes.comparison_key, target_names.owner)
            self._keys[digest] = compute_digest([*identity, comparison_key])
        return self._keys[digest]

    def list_changes(self) -> tuple[ReportedChange, ...]:
        """Return all changes. Changes with the most targets come first. Omit diffs that exceed the size limit."""
        # Keep groups of equal size in the order of their first targets. Python sorts are stable.
        groups = sorted(self._groups.items(), key=lambda item: len(item[1].targets), reverse=True)
        return tuple(_build_changes(groups))


def _build_changes(groups: Iterable[tuple[str, _ChangeGroup]]) -> Iterator[ReportedChange]:
    remaining_lines = _MAX_DIFF_LINES
    for key, group in groups:
        has_capacity = remaining_lines > 0
        diffs = build_diffs(group.before, group.after, group.folder, MAX_DIFF_LINES if has_capacity else 0)
        remaining_lines -= sum(diff.diff.count("\n") for diff in diffs)
        changes = compare_packages(group.before, group.after)
        yield _build_change(key, group, changes, diffs, is_diff_omitted=remaining_lines <= 0 and not diffs)


def _build_change(
    key: str, group: _ChangeGroup, changes: PackageChanges, diffs: tuple[FileDiff, ...], *, is_diff_omitted: bool
) -> ReportedChange:
    package, target = group.details.package, group.targets[0]
    action = "remove" if package.is_removed else format_task(package.status) or "change"
    lines = (*changes.format_summary_lines(_MAX_SUMMARY_LINES), *changes.format_file_lines(_MAX_SUMMARY_LINES))
    return ReportedChange(
        key, target.package, action, format_recorded_owner(package.status), tuple(group.targets), group.since, lines,
        group.details.causes, group.details.templates, diffs, f"reconciler show {quote(str(target))}",
        group.reproduce_command, group.has_target_names, is_diff_omitted,
    )  # fmt: skip


PENDING_KINDS: tuple[PendingKind, ...] = get_args(PendingKind)
_MAINTAINERS, _GATE_OWNERS, _REVIEWERS, _APPROVERS = "config maintainers", "gate owners", "reviewers", "approvers"
_NOT_NEEDED = "none; a new draft follows when the rendered content changes"
_REVIEWED_KINDS: tuple[PendingKind, ...] = ("conflict", "proposed", "draft")
_NO_VALUE = "nothing"
_MAX_DATE = 2**63


class PendingGroups:
    """Groups packages with equal pending work, and groups equal conflicts."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, ...], PendingItem] = {}
        self._item_targets: dict[tuple[str, ...], list[ReportTarget]] = {}
        self._change_keys: dict[tuple[str, ...], dict[str, None]] = {}
        self._conflicts: dict[bytes, ReportedConflict] = {}
        self._conflict_targets: dict[bytes, list[ReportTarget]] = {}

    def add(
        self,
        target: ReportTarget,
        package: ReportPackage,
        draft: DraftDetails | None,
        target_names: TargetNames,
        change_key: str,
    ) -> None:
        """Add a package to its group if the package has pending work."""
        item = _build_pending_item(package, draft)
        if item is None:
            return
        # Group drafts to review by their change, and other pending work by its message.
        group = change_key or target.package if item.kind in _REVIEWED_KINDS else ""
        message = replace(target_names, package=target.package).mask_names(item.message)
        key = (item.kind, message, group)
        first = self._items.setdefault(key, item)
        has_target_names = first.has_target_names or first.message != item.message
        since = find_earlier_date(first.since, item.since)
        self._items[key] = replace(first, since=since, has_target_names=has_target_names)
        self._item_targets.setdefault(key, []).append(target)
        if change_key:
            self._change_keys.setdefault(key, {})[change_key] = None
        if package.package_state.drafted_package:
            self._add_conflicts(target, package.draft_status)

    def _add_conflicts(self, target: ReportTarget, status: Mapping[str, Any]) -> None:
        for recorded in filter_recorded_conflicts(status.get("conflicts")):
            conflict = _build_conflict(target.package, recorded)
            key = encode_canonical_json(vars(conflict))
            self._conflicts.setdefault(key, conflict)
            self._conflict_targets.setdefault(key, []).append(target)

    def list_items(self) -> tuple[PendingItem, ...]:
        """Return the pending work, sorted by kind. Within a kind, the oldest item comes first."""
        items = [
            replace(item, targets=tuple(self._item_targets[key]), change_keys=tuple(self._change_keys.get(key, ())))
            for key, item in self._items.items()
        ]
        return tuple(sorted(items, key=_build_item_sort_key))

    def list_conflicts(self) -> tuple[ReportedConflict, ...]:
        """Return the conflicts of open drafts, sorted by package and location in the package."""
        conflicts = [
            replace(conflict, targets=tuple(self._conflict_targets[key])) for key, conflict in self._conflicts.items()
        ]
        return tuple(sorted(conflicts, key=_build_conflict_sort_key))


def _build_conflict_sort_key(conflict: ReportedConflict) -> tuple[str, str, str, str, tuple[ReportTarget, ...]]:
    return conflict.package, conflict.file, conflict.resource, conflict.pointer, conflict.targets


def _build_item_sort_key(item: PendingItem) -> tuple[int, int, tuple[str, ...], tuple[ReportTarget, ...]]:
    date = _MAX_DATE if item.since is None else item.since
    return PENDING_KINDS.index(item.kind), date, item.packages, item.targets


def _build_pending_item(package: ReportPackage, draft: DraftDetails | None) -> PendingItem | None:
    """Return the pending work of a package, without targets. Return None if the package has no pending work."""
    state = package.package_state
    parts = _describe_without_draft(state) if draft is None else _describe_draft(package, draft)
    if parts is None:
        return None
    kind, responsible, message = parts
    # Set no date if there is no draft. `package.since` is then the date of the publication, not the start of the
    # pending work.
    since = package.since if state.drafted_package else None
    return PendingItem(kind, responsible, to_one_line(message), (), since)


def _describe_without_draft(package: TargetPackage) -> tuple[PendingKind, str, str] | None:
    """Return the kind, the responsible role and the message for a package that has no draft."""
    match package.state:
        case "blocked" | "held" as kind:
            return kind, _MAINTAINERS, _join_reasons(package.reasons)
        case "declined":
            return "declined", _NOT_NEEDED, _join_reasons(package.reasons) or "the last draft was declined"
    return None


def _describe_draft(package: ReportPackage, draft: DraftDetails) -> tuple[PendingKind, str, str]:
    """Return the kind, the responsible role and the message for a package that has a draft."""
    state = package.package_state
    if state.state in ("blocked", "held"):
        kind: PendingKind = "blocked" if state.state == "blocked" else "held"
        return kind, _MAINTAINERS, _join_reasons(state.reasons)
    if refusals := state.refusals:
        return _describe_refusals(refusals)
    if conflicts := len(filter_recorded_conflicts(package.draft_status.get("conflicts"))):
        return "conflict", _REVIEWERS, f"{_format_action(package)}; review {format_count(conflicts, 'conflict')}"
    if draft.rejection:
        return "rejected", _MAINTAINERS, draft.rejection.line
    return _describe_reviewable(package, draft)


def _describe_refusals(refusals: tuple[BlockingReason, ...]) -> tuple[PendingKind, str, str]:
    codes = {refusal.reason for refusal in refusals}
    if codes == {"BranchMoved"}:
        return "collision", _REVIEWERS, _join_reasons(refusals)
    return "refused", _GATE_OWNERS if codes == {"GateNotMet"} else _MAINTAINERS, _join_reasons(refusals)


def _describe_reviewable(package: ReportPackage, draft: DraftDetails) -> tuple[PendingKind, str, str]:
    state, action = package.package_state, _format_action(package)
    if state.state == "removal":
        reasons = f": {_join_reasons(state.reasons)}" if state.reasons else ""
        return "removal", _APPROVERS, f"remove the package{reasons}"
    if state.state == "proposed":
        update = f"; the next update is pending: {_join_reasons(state.reasons)}" if state.reasons else ""
        return "proposed", _APPROVERS, f"{action}, proposed{update}"
    editors = f" by {', '.join(draft.editors)}" if draft.editors else ""
    edited = f", edited{editors}" if state.state == "edited" else ""
    stale = ", changed after it was proposed" if draft.draft.lifecycle == "Stale" else ""
    return "draft", _REVIEWERS, f"{action}{edited}{stale}"


def _format_action(package: ReportPackage) -> str:
    return format_task(package.draft_status) or "local changes"


def _join_reasons(reasons: tuple[BlockingReason, ...]) -> str:
    return "; ".join(f"{reason.reason}: {reason.message}" for reason in reasons)


def _build_conflict(package: str, recorded: Mapping[str, Any]) -> ReportedConflict:
    file, resource, pointer = (to_one_line(str(recorded.get(name, ""))) for name in ("file", "resource", "pointer"))
    base, local, upstream = (
        format_value(recorded[side]) if side in recorded else _NO_VALUE for side in ("base", "local", "upstream")
    )
    chosen, rule = str(recorded["chosen"]), to_one_line(str(recorded["rule"]))
    return ReportedConflict(package, file, resource, pointer, base, local, upstream, chosen, rule, ())


def build_fleet_report(clusters: Iterable[ReportCluster], config: str, summary: Mapping[str, Any]) -> FleetReport:
    """Return the report about the clusters.

    Equal arguments give equal reports, because all dates in the report are dates of commits.

    Args:
        clusters: The clusters, sorted by name.
        config: The ID of the config, such as its commit.
        summary: The content of `summary.yaml` on the status branch. {} if there is no such file.
    """
    builder = _ReportBuilder()
    rows, latest = [], 0
    for cluster in clusters:
        rows.append(builder.build_row(cluster))
        latest = max(latest, cluster.seconds)
    packages = sorted({package for row in rows for package in row.entries})
    return FleetReport(
        config, latest, tuple(rows), tuple(packages), builder.pending.list_items(), builder.pending.list_conflicts(),
        builder.changes.list_changes(), builder.explanations.list_explanations(), read_valid_status(summary),
    )  # fmt: skip


class _ReportBuilder:
    """Creates the matrix rows, and collects changes, explanations and pending work of all clusters."""

    def __init__(self) -> None:
        self.changes = ChangeGroups()
        self.explanations = ExplanationGroups()
        self.pending = PendingGroups()

    def build_row(self, cluster: ReportCluster) -> ClusterRow:
        entries = {package.package_state.package: self._build_entry(cluster, package) for package in cluster.packages}
        return ClusterRow(cluster.target.name, cluster.labels, entries, cluster.read_error)

    def _build_entry(self, cluster: ReportCluster, package: ReportPackage) -> MatrixEntry:
        state, target_names = package.package_state, cluster.get_target_names(package)
        target = ReportTarget(cluster.target.name, state.package)
        draft = cluster.drafts.get(state.draft.branch) if state.draft else None
        details = package.details
        change_key = self.changes.add(target, draft, details, target_names) if draft and details else ""
        self.pending.add(target, package, draft, target_names, change_key)
        conflicts = filter_recorded_conflicts(package.draft_status.get("conflicts"))
        return MatrixEntry(
            target, state.state, state.revision.number if state.revision else 0, package.since,
            len(conflicts) if state.drafted_package else 0, len(state.refusals),
            tuple(_list_notes(package, draft)), change_key, self._add_explanation(target, package, target_names),
        )  # fmt: skip

    def _add_explanation(self, target: ReportTarget, package: ReportPackage, target_names: TargetNames) -> str:
        if package.draft_status:
            return self.explanations.add(target, package.draft_status, target_names)
        is_unmodified = package.package_state.is_status_file_unmodified
        return self.explanations.add_file(target, package.status_file, target_names, is_unmodified=is_unmodified)


def _list_notes(package: ReportPackage, draft: DraftDetails | None) -> Iterator[str]:
    state = package.package_state
    if draft and draft.rejection:
        yield "rejected"
    if state.is_edited:
        yield "local changes"
    if state.drafted_package and state.state in ("blocked", "held"):
        yield "open draft"
    if state.draft and state.draft.lifecycle == "Stale":
        yield "changed after proposal"
    if state.state == "proposed" and state.reasons:
        yield "update pending"
    if state.state == "proposed" and state.drafted_package and state.drafted_package.is_edited:
        yield "edited"
