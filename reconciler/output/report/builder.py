"""Changes of a report: what drafts change, equal changes told once, with the diff of the first (porch 15.3).

What waits in a fleet, for whom, and how to go on; equal things told once (porch 1.1, 7; design 10.26).

Building a report: clusters go in one after the other, and only what is told of them is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any, get_args

from reconciler.catalog.files import FileTree
from reconciler.krm.json_text import compute_digest, encode_canonical_json
from reconciler.output.changes.diffs import format_file_diffs
from reconciler.output.changes.package_changes import PackageChanges, compare_packages
from reconciler.output.plan.overview import build_comparison_key
from reconciler.output.report.explanations import ExplanationGroups
from reconciler.output.report.model import (
    ClusterRow,
    FleetReport,
    MatrixEntry,
    OwnNames,
    ReportCluster,
    ReportedChange,
    ReportedConflict,
    ReportPackage,
    ReportTarget,
    WaitingItem,
    WaitingKind,
    find_earlier,
)
from reconciler.output.review.open_drafts import DraftDetails, DraftPackageDetails, format_reproduce_commands
from reconciler.output.status.package_sections import format_recorded_owner, format_task
from reconciler.output.text import format_count, format_value, to_one_line
from reconciler.planning.lifecycle.open_drafts import BlockingReason, TargetPackage
from reconciler.planning.model.sources import filter_recorded_conflicts

_LINES = 50
# a reader opens a few; all in one file must still open, and whoever wants more has the command beside it
_DIFF_LINES = 40_000


@dataclass
class _Group:
    """Drafts with one change; all but `since`, `varies` and the places is that of the first."""

    place: ReportTarget
    folder: str
    before: FileTree
    after: FileTree
    sheet: DraftPackageDetails
    reproduce: str
    literal: str
    since: int | None = None
    varies: bool = False
    places: list[ReportTarget] = field(default_factory=list)


class ChangeGroups:
    """Gathers drafts by what they change; nothing but the first of each is kept."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self._known: dict[str, str] = {}

    def add(self, place: ReportTarget, draft: DraftDetails, details: DraftPackageDetails, own_names: OwnNames) -> str:
        """Take a package of a draft in, and return the key of its change."""
        before, after = _changed(details.before, details.after), _changed(details.after, details.before)
        told = [
            place.package,
            format_recorded_owner(details.package.status).partition(" ")[0],
            format_task(details.package.status),
        ]
        literal = compute_digest([*told, before.id, after.id])
        key = self._known.get(literal) or self._group(told, before, after, own_names)
        self._known[literal] = key
        group = self._groups.get(key)
        if group is None:
            folder = draft.draft.target.package_path(place.package)
            reproduce = next(format_reproduce_commands(draft, details))
            group = self._groups[key] = _Group(place, folder, before, after, details, reproduce, literal)
        group.places.append(place)
        group.varies = group.varies or group.literal != literal
        group.since = find_earlier(group.since, details.since)
        return key

    def _group(self, told: list[str], before: FileTree, after: FileTree, own: OwnNames) -> str:
        """Return the key of a change: equal where the files are, but for the names of each cluster."""
        old, new = own.mask_file_names(before), own.mask_file_names(after)
        text = compute_digest([*told, old.id, new.id])
        if text not in self._known:
            self._known[text] = compute_digest(
                [*told, build_comparison_key(compare_packages(old, new).comparison_key, own.owner)]
            )
        return self._known[text]

    def list_changes(self) -> tuple[ReportedChange, ...]:
        """Return every change, the one that most places get first, as long as there is room with its diff."""
        # sorting is stable: among equally large groups the one with the first place stays first
        ordered = sorted(self._groups.items(), key=lambda item: len(item[1].places), reverse=True)
        return tuple(_with_diffs(ordered))


def _changed(files: FileTree, others: FileTree) -> FileTree:
    return FileTree({path: file for path, file in files.items() if others.get(path) != file})


def _with_diffs(ordered: list[tuple[str, _Group]]) -> Iterator[ReportedChange]:
    room = _DIFF_LINES
    for key, group in ordered:
        diffs = tuple(format_file_diffs(group.before, group.after, group.folder)) if room > 0 else ()
        room -= sum(diff.count("\n") for _, diff in diffs)
        yield _change(key, group, compare_packages(group.before, group.after), diffs, unshown=room <= 0 and not diffs)


def _change(
    key: str, group: _Group, changes: PackageChanges, diffs: tuple[tuple[str, str], ...], *, unshown: bool
) -> ReportedChange:
    one = group.sheet.package
    what = "remove" if one.is_removed else format_task(one.status) or "change"
    lines = (*changes.format_summary_lines(_LINES), *changes.format_file_lines(_LINES))
    return ReportedChange(
        key, group.place.package, what, format_recorded_owner(one.status), tuple(group.places), group.since, lines,
        group.sheet.causes, group.sheet.templates, diffs, f"reconciler show {quote(str(group.place))}", group.reproduce,
        group.varies, unshown,
    )  # fmt: skip


WAITING_KINDS: tuple[WaitingKind, ...] = get_args(WaitingKind)
_CONFIG, _GATES, _REVIEWER, _APPROVER = (
    "who keeps the config", "who meets the gate", "a reviewer", "an approver",
)  # fmt: skip
_NOBODY = "nobody: it comes back when it would be another"
_REVIEWED: tuple[WaitingKind, ...] = ("conflict", "proposed", "draft")
_NOTHING = "nothing"
_LAST = 2**63


class WaitingGroups:
    """Gathers what waits; what is the same on many places is kept once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, ...], WaitingItem] = {}
        self._places: dict[tuple[str, ...], list[ReportTarget]] = {}
        self._changes: dict[tuple[str, ...], dict[str, None]] = {}
        self._disputed: dict[bytes, ReportedConflict] = {}
        self._disputes: dict[bytes, list[ReportTarget]] = {}

    def add(
        self, place: ReportTarget, package: ReportPackage, draft: DraftDetails | None, own_names: OwnNames, change: str
    ) -> None:
        """Take a package in, if anything of it waits."""
        found = _waiting(package, draft)
        if found is None:
            return
        # what is to be reviewed is alike where it changes the same, and what is in the way where it is told the same
        alike = change or place.package if found.kind in _REVIEWED else ""
        key = (found.kind, replace(own_names, package=place.package).mask_names(found.what), alike)
        known = self._found.setdefault(key, found)
        varies = known.varies or known.what != found.what
        self._found[key] = replace(known, since=find_earlier(known.since, found.since), varies=varies)
        self._places.setdefault(key, []).append(place)
        if change:
            self._changes.setdefault(key, {})[change] = None
        if package.package_state.drafted_package:
            self._dispute(place, package.status)

    def _dispute(self, place: ReportTarget, status: Mapping[str, Any]) -> None:
        for one in filter_recorded_conflicts(status.get("conflicts")):
            told = _build_conflict(place.package, one)
            key = encode_canonical_json(vars(told) | {"places": ()})
            self._disputed.setdefault(key, told)
            self._disputes.setdefault(key, []).append(place)

    def list_waiting(self) -> tuple[WaitingItem, ...]:
        """Return what waits, by kind, and of one kind the oldest first."""
        found = [
            replace(one, places=tuple(self._places[key]), changes=tuple(self._changes.get(key, ())))
            for key, one in self._found.items()
        ]
        return tuple(sorted(found, key=_rank))

    def list_conflicts(self) -> tuple[ReportedConflict, ...]:
        """Return the conflicts of open drafts, by package and place in it."""
        found = [replace(one, places=tuple(self._disputes[key])) for key, one in self._disputed.items()]
        return tuple(sorted(found, key=lambda one: (one.package, one.file, one.resource, one.pointer, one.places)))


def _rank(one: WaitingItem) -> tuple[int, int, tuple[str, ...], tuple[ReportTarget, ...]]:
    return WAITING_KINDS.index(one.kind), _LAST if one.since is None else one.since, one.packages, one.places


def _waiting(one: ReportPackage, sheet: DraftDetails | None) -> WaitingItem | None:
    cell = one.package_state
    told = _standing(cell) if sheet is None else _drafted(one, sheet)
    if told is None:
        return None
    kind, who, what = told
    # what is on no draft has the date of what is published, and waits since nobody knows when
    return WaitingItem(kind, who, to_one_line(what), (), one.since if one.package_state.drafted_package else None)


def _standing(cell: TargetPackage) -> tuple[WaitingKind, str, str] | None:
    """Return what waits though it is on no draft."""
    match cell.state:
        case "blocked" | "held" as state:
            return state, _CONFIG, _sentences(cell.reasons)
        case "declined":
            return "declined", _NOBODY, _sentences(cell.reasons) or "its last version was turned down"
    return None


def _drafted(one: ReportPackage, sheet: DraftDetails) -> tuple[WaitingKind, str, str]:
    cell = one.package_state
    if cell.state in ("blocked", "held"):
        return ("blocked" if cell.state == "blocked" else "held"), _CONFIG, _sentences(cell.reasons)
    if refusals := cell.refusals:
        return _refused(refusals)
    if conflicts := len(filter_recorded_conflicts(one.status.get("conflicts"))):
        return "conflict", _REVIEWER, f"{_what(one)}; {format_count(conflicts, 'conflict')} to look at"
    if sheet.rejection:
        return "rejected", _CONFIG, sheet.rejection.format_line()
    return _ready(one, sheet)


def _refused(refusals: tuple[BlockingReason, ...]) -> tuple[WaitingKind, str, str]:
    reasons = {one.reason for one in refusals}
    if reasons == {"BranchMoved"}:
        return "clash", _REVIEWER, _sentences(refusals)
    return "gate", _GATES if reasons == {"GateNotMet"} else _CONFIG, _sentences(refusals)


def _ready(one: ReportPackage, sheet: DraftDetails) -> tuple[WaitingKind, str, str]:
    cell, what = one.package_state, _what(one)
    if cell.state == "removal":
        return "removal", _APPROVER, f"to be removed: {_sentences(cell.reasons)}" if cell.reasons else "to be removed"
    if cell.state == "proposed":
        waits = f"; its update waits: {_sentences(cell.reasons)}" if cell.reasons else ""
        return "proposed", _APPROVER, f"{what}, proposed{waits}"
    by = f" by {', '.join(sheet.editors)}" if sheet.editors else " by people"
    moved = ", moved on since it was proposed" if sheet.draft.lifecycle == "Stale" else ""
    return "draft", _REVIEWER, f"{what}{f', edited{by}' if cell.state == 'edited' else ''}{moved}"


def _what(one: ReportPackage) -> str:
    return format_task(one.status) or "changed by people"


def _sentences(reasons: tuple[BlockingReason, ...]) -> str:
    return "; ".join(f"{one.reason}: {one.message}" for one in reasons)


def _build_conflict(package: str, one: Mapping[str, Any]) -> ReportedConflict:
    file, resource, pointer = (to_one_line(str(one.get(name, ""))) for name in ("file", "resource", "pointer"))
    base, local, upstream = (
        format_value(one[side]) if side in one else _NOTHING for side in ("base", "local", "upstream")
    )
    return ReportedConflict(
        package, file, resource, pointer, base, local, upstream, str(one["chosen"]), to_one_line(str(one["rule"])), ()
    )


def build_fleet_report(clusters: Iterable[ReportCluster], config: str, summary: Mapping[str, Any]) -> FleetReport:
    """Return the report of the clusters, which come by name; `summary` is the status branch's, {} without one.

    Equal clusters give equal reports: there is no time in it but the dates of commits.
    """
    builder = _Builder()
    rows, latest = [], 0
    for one in clusters:
        rows.append(builder.row(one))
        latest = max(latest, one.seconds)
    packages = sorted({package for row in rows for package in row.entries})
    return FleetReport(
        config, latest, tuple(rows), tuple(packages), builder.waits.list_waiting(), builder.waits.list_conflicts(),
        builder.changes.list_changes(), builder.explanations.list_explanations(), summary,
    )  # fmt: skip


class _Builder:
    """Takes clusters in, and tells of each in a row."""

    def __init__(self) -> None:
        self.changes = ChangeGroups()
        self.explanations = ExplanationGroups()
        self.waits = WaitingGroups()

    def row(self, cluster: ReportCluster) -> ClusterRow:
        entries = {one.package_state.package: self._entry(cluster, one) for one in cluster.packages}
        return ClusterRow(cluster.destination.name, cluster.labels, entries, cluster.read_error)

    def _entry(self, cluster: ReportCluster, one: ReportPackage) -> MatrixEntry:
        cell, own = one.package_state, cluster.get_own_names(one)
        place = ReportTarget(cluster.destination.name, cell.package)
        sheet = cluster.drafts.get(cell.draft.branch) if cell.draft else None
        change = self.changes.add(place, sheet, one.details, own) if sheet and one.details else ""
        self.waits.add(place, one, sheet, own, change)
        return MatrixEntry(
            place, cell.state, cell.revision.number if cell.revision else 0, one.since,
            len(filter_recorded_conflicts(one.status.get("conflicts"))) if cell.drafted_package else 0, len(cell.refusals),  # noqa: E501
            tuple(_notes(one, sheet)), change, self._explanation(place, one, own),
        )  # fmt: skip

    def _explanation(self, place: ReportTarget, one: ReportPackage, own: OwnNames) -> str:
        if one.status:
            return self.explanations.add(place, one.status, own)
        return self.explanations.add_file(
            place, one.file, own, is_unmodified=one.package_state.is_status_file_unmodified
        )


def _notes(one: ReportPackage, sheet: DraftDetails | None) -> Iterator[str]:
    cell = one.package_state
    if sheet and sheet.rejection:
        yield "rejected"
    if cell.is_edited:
        yield "changed by hand"
    if cell.drafted_package and cell.state in ("blocked", "held"):
        yield "a draft is open"
    if cell.draft and cell.draft.lifecycle == "Stale":
        yield "moved on since proposed"
    if cell.state == "proposed" and cell.reasons:
        yield "its update waits"
    if cell.state == "proposed" and cell.drafted_package and cell.drafted_package.is_edited:
        yield "edited"
