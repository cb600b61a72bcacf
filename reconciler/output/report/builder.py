"""Builds the report about the fleet: matrix rows, pending work and conflicts.

The builder reads one cluster after the other, and stores only data that the report contains. Equal items of several
targets become one item. The changes of drafts are read from the fleet index, as in the console. The module `changes`
adds the texts of these changes, and the module `explanations` builds the explanations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

from reconciler.krm.json_text import encode_canonical_json
from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import replace
from reconciler.output.fleet.builder import build_fleet_index, index_target
from reconciler.output.fleet.model import PackageRow, TargetEntry
from reconciler.output.fleet.target_data import PackageData, TargetData
from reconciler.output.fleet.target_names import TargetNames
from reconciler.output.fleet.variants import VariantPool
from reconciler.output.report.changes import DraftTexts
from reconciler.output.report.explanations import ExplanationGroups
from reconciler.output.report.model import (
    ClusterRow,
    FleetReport,
    MatrixEntry,
    PendingItem,
    PendingKind,
    ReportedConflict,
    ReportTarget,
    find_earlier_date,
)
from reconciler.output.review.open_drafts import DraftDetails
from reconciler.output.status.package_sections import format_task
from reconciler.output.status.result import read_valid_status
from reconciler.output.text import format_value, to_one_line
from reconciler.planning.lifecycle.open_drafts import BlockingReason, TargetPackage
from reconciler.planning.model.sources import filter_recorded_conflicts

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
        package: PackageData,
        draft: DraftDetails | None,
        target_names: TargetNames,
        change_key: str,
    ) -> None:
        """Add a package to its group if the package has pending work."""
        item = _build_pending_item(package, draft)
        if item is None:
            return
        # Group drafts that wait for a review by their change. Group other pending work by its message.
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


def _build_pending_item(package: PackageData, draft: DraftDetails | None) -> PendingItem | None:
    """Return the pending work of a package, with empty `targets`. Return None if the package has no pending work."""
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


def _describe_draft(package: PackageData, draft: DraftDetails) -> tuple[PendingKind, str, str]:
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


def _describe_reviewable(package: PackageData, draft: DraftDetails) -> tuple[PendingKind, str, str]:
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


def _format_action(package: PackageData) -> str:
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


def build_fleet_report(
    clusters: Iterable[TargetData], config: str, summary: Mapping[str, Any], *, should_diff_resources: bool = True
) -> FleetReport:
    """Return the report about the clusters.

    Equal arguments give equal reports, because all dates in the report are dates of commits.

    Args:
        clusters: The clusters, sorted by name.
        config: The ID of the config, such as its commit.
        summary: The content of `summary.yaml` on the status branch. {} if there is no such file.
        should_diff_resources: Whether the report contains the diffs of resources, which only the page shows.
    """
    builder = _ReportBuilder()
    rows, latest = [], 0
    for cluster in clusters:
        rows.append(builder.build_row(cluster))
        latest = max(latest, cluster.seconds)
    index = build_fleet_index(0, latest, config, builder.targets, ())
    changes = builder.draft_texts.list_changes(index.changes, should_diff_resources=should_diff_resources)
    columns = sorted({entry.column for row in rows for entry in row.entries.values()})
    return FleetReport(
        index, tuple(rows), tuple(columns), builder.pending.list_items(), builder.pending.list_conflicts(),
        tuple(changes), builder.explanations.list_explanations(), read_valid_status(summary),
    )  # fmt: skip


class _ReportBuilder:
    """Creates the matrix rows, and collects drafts, explanations and pending work of all clusters."""

    def __init__(self) -> None:
        self.targets: list[TargetEntry] = []
        self.draft_texts = DraftTexts()
        self.explanations = ExplanationGroups()
        self.pending = PendingGroups()
        self._pool = VariantPool(shares_contents=True)

    def build_row(self, cluster: TargetData) -> ClusterRow:
        entry = index_target(cluster, self._pool)
        self.targets.append(entry)
        entries = {
            row.package: self._build_entry(cluster, package, row)
            for package, row in zip(cluster.packages, entry.packages, strict=True)
        }
        return ClusterRow(entry.name, entry.labels, entries, entry.read_error)

    def _build_entry(self, cluster: TargetData, package: PackageData, row: PackageRow) -> MatrixEntry:
        state, target_names = package.package_state, cluster.get_target_names(package)
        target = ReportTarget(row.target, row.package)
        draft = cluster.drafts.get(state.draft.branch) if state.draft else None
        if row.draft and draft and package.details:
            self.draft_texts.add(row.draft, draft, package.details)
        change_key = row.draft.variant_digest if row.draft else ""
        self.pending.add(target, package, draft, target_names, change_key)
        conflicts = filter_recorded_conflicts(package.draft_status.get("conflicts"))
        return MatrixEntry(
            target, row.state, row.column, row.version, row.since, len(conflicts) if state.drafted_package else 0,
            len(state.refusals), tuple(_list_notes(package, draft)), change_key,
            self._add_explanation(target, package, target_names),
        )  # fmt: skip

    def _add_explanation(self, target: ReportTarget, package: PackageData, target_names: TargetNames) -> str:
        if package.draft_status:
            return self.explanations.add(target, package.draft_status, target_names)
        is_unmodified = package.package_state.is_status_file_unmodified
        return self.explanations.add_file(target, package.status_file, target_names, is_unmodified=is_unmodified)


def _list_notes(package: PackageData, draft: DraftDetails | None) -> Iterator[str]:
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
