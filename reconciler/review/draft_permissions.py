"""The permission of a person to apply an action to a draft."""

from __future__ import annotations

from reconciler.output.fleet.model import FleetIndex, PackageRow
from reconciler.planning.lifecycle.open_drafts import BlockingReason
from reconciler.review.permissions import NOT_PERMITTED, PackageScope, Permissions
from reconciler.review.review_requests import ConfirmedDraft, JobVerb


def find_permission_refusal(
    index: FleetIndex, permissions: Permissions, verb: JobVerb, draft: ConfirmedDraft
) -> BlockingReason | None:
    """Return the reason why a person must not apply an action to a draft. Return None if the person may do it.

    A proposal and a rejection apply to all packages of the draft branch. A revert needs no permission for other
    packages, because it creates new commits only for the package.
    """
    entry = index.by_target.get(draft.target)
    row = entry.by_package.get(draft.package) if entry else None
    if entry is None or row is None:
        return BlockingReason(NOT_PERMITTED, "the fleet does not contain the package any more")
    scope = PackageScope(entry.labels, draft.package, row.tenant)
    refusal = permissions.find_refusal(scope, draft.risk, is_removal=draft.is_removal and verb != "reject")
    if refusal or verb in ("approve", "revert"):
        return refusal
    for other in list_branch_rows(index, draft.target, draft.branch):
        scope = PackageScope(entry.labels, other.package, other.tenant)
        if other.draft and permissions.find_refusal(scope, other.draft.content.risk.level):
            return BlockingReason(NOT_PERMITTED, f'"{draft.branch}" also contains changes that you may not review')
    return None


def list_branch_rows(index: FleetIndex, target: str, branch: str) -> list[PackageRow]:
    """Return the packages whose drafts are on a draft branch."""
    return [row for row in index.by_target[target].packages if row.draft and row.draft.member.branch == branch]
