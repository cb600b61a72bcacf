"""Building a report: clusters go in one after the other, and only what is told of them is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.planning.conflicts import recorded_conflicts
from reconciler.reporting.open_drafts import Sheet
from reconciler.reporting.report.alike import Own
from reconciler.reporting.report.changes import ChangeGroups
from reconciler.reporting.report.explanations import Explanations
from reconciler.reporting.report.fleet import Entry, FleetReport, Place, ReadCluster, ReadPackage, Row
from reconciler.reporting.report.waiting import Waits


def build_report(clusters: Iterable[ReadCluster], config: str, summary: Mapping[str, Any]) -> FleetReport:
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
        config, latest, tuple(rows), tuple(packages), builder.waits.waiting(), builder.waits.disputed(),
        builder.changes.changes(), builder.explanations.all(), summary,
    )  # fmt: skip


class _Builder:
    """Takes clusters in, and tells of each in a row."""

    def __init__(self) -> None:
        self.changes = ChangeGroups()
        self.explanations = Explanations()
        self.waits = Waits()

    def row(self, cluster: ReadCluster) -> Row:
        entries = {one.cell.package: self._entry(cluster, one) for one in cluster.packages}
        return Row(cluster.destination.name, cluster.labels, entries, cluster.trouble)

    def _entry(self, cluster: ReadCluster, one: ReadPackage) -> Entry:
        cell, own = one.cell, cluster.own(one)
        place = Place(cluster.destination.name, cell.package)
        sheet = cluster.sheets.get(cell.draft.branch) if cell.draft else None
        change = self.changes.add(place, sheet, one.sheet, own) if sheet and one.sheet else ""
        self.waits.add(place, one, sheet, own, change)
        return Entry(
            place, cell.state, cell.revision.number if cell.revision else 0, one.since,
            len(recorded_conflicts(one.status.get("conflicts"))) if cell.drafted else 0, len(cell.refusals),
            tuple(_notes(one, sheet)), change, self._explanation(place, one, own),
        )  # fmt: skip

    def _explanation(self, place: Place, one: ReadPackage, own: Own) -> str:
        if one.status:
            return self.explanations.add(place, one.status, own)
        return self.explanations.add_file(place, one.file, own, ours=one.cell.is_status_ours)


def _notes(one: ReadPackage, sheet: Sheet | None) -> Iterator[str]:
    cell = one.cell
    if sheet and sheet.rejection:
        yield "rejected"
    if cell.edited:
        yield "changed by hand"
    if cell.drafted and cell.state in ("blocked", "held"):
        yield "a draft is open"
    if cell.draft and cell.draft.lifecycle == "Stale":
        yield "moved on since proposed"
    if cell.state == "proposed" and cell.reasons:
        yield "its update waits"
    if cell.state == "proposed" and cell.drafted and cell.drafted.edited:
        yield "edited"
