"""Reverts of approvals: the published packages whose earlier content a person can propose again.

This module reads only the fleet index. `apply_revert` compares the content of the packages before it creates a draft.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.catalog.files import CommitId
from reconciler.lazy_dataclasses import replace
from reconciler.output.fleet.model import FleetIndex, PackageRow
from reconciler.output.review.action_results import APPROVAL_RECORDED
from reconciler.planning.lifecycle.open_drafts import BlockingReason
from reconciler.review.draft_permissions import find_permission_refusal
from reconciler.review.permissions import PackageScope, Permissions
from reconciler.review.review_job import JobItem, ReviewJob
from reconciler.review.review_requests import ConfirmedDraft, ExcludedDraft, PublishedDraft

FIRST_INSTALLATION = BlockingReason(
    "FirstInstallation", "no earlier content exists; to delete the package, remove it from the config"
)
PUBLISHED_AGAIN = "PublishedAgain"


def has_published(item: JobItem) -> bool:
    """Return whether the approval of these drafts has published them, and was not only recorded."""
    return item.state == "done" and item.code != APPROVAL_RECORDED


def list_published_drafts(job: ReviewJob) -> Iterator[PublishedDraft]:
    """Yield the drafts that a job has published."""
    if job.verb == "approve":
        for item in filter(has_published, job.items):
            yield from (PublishedDraft(draft, item.commit) for draft in item.drafts)


def select_reverts(
    index: FleetIndex, permissions: Permissions, published: Iterable[PublishedDraft], readable: FleetIndex
) -> tuple[tuple[ConfirmedDraft, ...], tuple[ExcludedDraft, ...]]:
    """Return the drafts that can be reverted, and all others with the reason.

    Neither result contains packages that the person may not read.

    Args:
        readable: The part of the index that the person may read.
    """
    drafts: list[ConfirmedDraft] = []
    excluded: list[ExcludedDraft] = []
    for entry in published:
        draft = _build_revert(entry)
        row = readable.find_row(draft.target, draft.package)
        if row is None and not _may_read_deleted(index, permissions, draft):
            continue
        reason = _find_obstacle(entry, row) or find_permission_refusal(index, permissions, "revert", draft)
        if reason:
            excluded.append(ExcludedDraft(draft.target, draft.package, reason))
        else:
            drafts.append(draft)
    return tuple(drafts), tuple(excluded)


def _build_revert(published: PublishedDraft) -> ConfirmedDraft:
    draft = published.draft
    return replace(
        draft,
        head=draft.published_head,
        published_head=CommitId(published.commit or draft.head),
        risk="low",
        is_removal=False,
        conflict_count=0,
        other_packages=(),
    )


def _may_read_deleted(index: FleetIndex, permissions: Permissions, draft: ConfirmedDraft) -> bool:
    """Return whether a package does not exist any more, and the person may read it, whichever tenant it belonged to."""
    target = index.by_target.get(draft.target)
    if target is None or draft.package in target.by_package:
        return False
    return permissions.can_read(PackageScope(target.labels, draft.package))


def _find_obstacle(published: PublishedDraft, row: PackageRow | None) -> BlockingReason | None:
    """Return the reason why an approval cannot be reverted for a package, as far as the index contains it."""
    draft = published.draft
    if draft.is_removal:
        return BlockingReason(
            "Removal", "the approval deleted the package; to install it again, add it to the config again"
        )
    if row is None:
        return BlockingReason("PackageDeleted", "the package was deleted after the approval")
    if row.draft and row.draft.member.head == draft.head:
        return BlockingReason("NotRecorded", "no pass has recorded the publication yet; try again after the next pass")
    if row.draft:
        return BlockingReason("DraftOpen", "the package has an open draft; publish or reject the draft first")
    if row.publication is None:
        return BlockingReason("UnknownRevision", "no revision of the published content is recorded")
    is_other_change = row.publication.change_key not in ("", draft.change)
    if is_other_change or published.commit not in ("", row.publication.commit):
        return BlockingReason(PUBLISHED_AGAIN, "another revision is published now")
    return FIRST_INSTALLATION if row.publication.number == 1 else None
