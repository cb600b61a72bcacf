"""The part of the index of the fleet that a person may read. Counts and lists contain only this part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import Lock

from reconciler.krm.findings import Finding, SourceLocation
from reconciler.lazy_dataclasses import replace
from reconciler.output.fleet.builder import build_fleet_index
from reconciler.output.fleet.model import FleetIndex, IndexedDraft, PackageRow, TargetEntry
from reconciler.output.fleet.rollouts import select_rollouts
from reconciler.output.report.model import TargetNames
from reconciler.output.text import format_object_reference
from reconciler.planning.lifecycle.open_drafts import BlockingReason
from reconciler.review.permissions import PackageScope, Permissions

_HIDDEN_MESSAGE = "the reason contains names of targets that you may not read"
_MAX_CACHED = 50


def restrict_index(index: FleetIndex, permissions: Permissions) -> FleetIndex:
    """Return the index with the targets, packages, drafts and findings that a person may read.

    The messages of reasons contain no names of other targets. Findings about other objects are omitted.
    """
    if permissions.reads_everything:
        return index
    readable = [entry for target in index.targets if (entry := _restrict_target(target, permissions))]
    names = {entry.name for entry in readable}
    hidden = [target.name for target in index.targets if target.name not in names]
    targets = [_hide_names(entry, hidden) for entry in readable]
    findings = _select_findings(index.findings, targets, hidden)
    rollouts = select_rollouts(index.rollouts, names)
    return build_fleet_index(index.number, index.completed_at, index.config, targets, findings, rollouts)


def _restrict_target(target: TargetEntry, permissions: Permissions) -> TargetEntry | None:
    if permissions.can_read_target(target.labels):
        return target
    packages = tuple(
        row for row in target.packages if permissions.can_read(PackageScope(target.labels, row.package, row.tenant))
    )
    return replace(target, packages=packages) if packages else None


def _hide_names(target: TargetEntry, hidden: Iterable[str]) -> TargetEntry:
    """Replace the messages of a target that contain names of hidden targets."""
    names = tuple(hidden)
    rows = tuple(_hide_names_in_row(row, names) for row in target.packages)
    is_unchanged = all(new is old for new, old in zip(rows, target.packages, strict=True))
    has_names = mentions_any(target.read_error, names)
    if is_unchanged and not has_names:
        return target
    return replace(target, packages=rows, read_error=_HIDDEN_MESSAGE if has_names else target.read_error)


def _hide_names_in_row(row: PackageRow, hidden: tuple[str, ...]) -> PackageRow:
    draft = row.draft
    reasons = _hide_names_in_reasons(row.reasons, hidden)
    refusals = _hide_names_in_reasons(draft.member.refusals, hidden) if draft else ()
    if reasons == row.reasons and (draft is None or refusals == draft.member.refusals):
        return row
    return replace(row, reasons=reasons, draft=_replace_refusals(draft, refusals) if draft else None)


def _replace_refusals(draft: IndexedDraft, refusals: tuple[BlockingReason, ...]) -> IndexedDraft:
    """Return a draft with other refusals. The reasons of its risk are omitted, because they contain the refusals."""
    content = replace(draft.content, risk=replace(draft.content.risk, reasons=()))
    return replace(draft, member=replace(draft.member, refusals=refusals), content=content)


def _hide_names_in_reasons(reasons: tuple[BlockingReason, ...], hidden: tuple[str, ...]) -> tuple[BlockingReason, ...]:
    return tuple(
        replace(reason, message=_HIDDEN_MESSAGE) if mentions_any(reason.message, hidden) else reason
        for reason in reasons
    )


def list_hidden_names(index: FleetIndex, readable: FleetIndex) -> tuple[str, ...]:
    """Return the names of the targets that a part of the index does not contain."""
    return tuple(target.name for target in index.targets if target.name not in readable.by_target)


def mentions_any(text: str, names: Iterable[str]) -> bool:
    """Return whether a text contains one of these names of targets."""
    return bool(text) and any(name in text and TargetNames(name).replace_cluster(text, "") != text for name in names)


def _select_findings(
    findings: Iterable[Finding], targets: Iterable[TargetEntry], hidden: Iterable[str]
) -> Iterator[Finding]:
    """Yield the findings about readable targets and the owners of their packages that name no hidden target."""
    readable = tuple(targets)
    names, hidden_names = [target.name for target in readable], tuple(hidden)
    rows = [row for target in readable for row in target.packages]
    owners = {row.owner for row in rows if row.owner}
    packages = {f"{row.target}/{row.package}" for row in rows}

    def is_about_readable(location: SourceLocation) -> bool:
        if location.package:
            return location.package in packages
        objects = (location.object, location.owner)
        return any(
            format_object_reference(name) in owners or mentions_any(name.rpartition("/")[2], names) for name in objects
        )

    for finding in findings:
        texts = f"{finding.location} {finding.message}"
        if is_about_readable(finding.location) and not mentions_any(texts, hidden_names):
            yield finding


class RestrictedIndexes:
    """Caches the restricted indexes of people with equal permissions.

    Args:
        get_index: Returns the newest index of the whole fleet. None if no index is complete.
    """

    def __init__(self, get_index: Callable[[], FleetIndex | None]) -> None:
        self._get_index = get_index
        self._lock = Lock()
        self._number = 0
        self._by_permissions: dict[Permissions, FleetIndex] = {}

    def find(self, permissions: Permissions) -> FleetIndex | None:
        """Return the newest index for a person. Return None if no index is complete."""
        index = self._get_index()
        if index is None or permissions.reads_everything:
            return index
        with self._lock:
            if self._number != index.number or len(self._by_permissions) >= _MAX_CACHED:
                self._number, self._by_permissions = index.number, {}
            if permissions not in self._by_permissions:
                self._by_permissions[permissions] = restrict_index(index, permissions)
            return self._by_permissions[permissions]
