"""The decision whether a draft has enough approvals (the setting `review.approvals`)."""

from __future__ import annotations

from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import replace
from reconciler.planning.lifecycle.open_drafts import OpenDraft
from reconciler.planning.lifecycle.transitions import NoTransition, PublishDraft
from reconciler.reconcile.draft_approvals import RecordApproval, has_approved, list_other_approvers, read_approvals
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.review_actions import ReviewAction


def require_approvals(
    decision: PublishDraft, draft: OpenDraft, action: ReviewAction, remote: Remote, state_ref: str, required: int
) -> tuple[PublishDraft | RecordApproval | NoTransition, ReviewAction]:
    """Decide whether an approval publishes a draft, is only recorded, or has no effect.

    Return the decision and the action. If the approval publishes the draft, the returned action contains the other
    people who have approved the draft.

    Args:
        decision: The decision that is returned if no more approvals are necessary.
        required: The number of people who must approve a draft.
    """
    if required == 1:
        return decision, action
    approvals = read_approvals(draft, remote, state_ref)
    others = list_other_approvers(approvals, decision.packages, action.person)
    if len(others) + 1 >= required:
        return decision, replace(action, approvers=tuple(approval.person for approval in others))
    if action.person and has_approved(approvals, decision.packages, action.person[1]):
        missing = format_count(required - len(others) - 1, "more approval")
        return NoTransition(
            f'{action.person[1]} has already approved "{draft.branch}"; the draft needs {missing} from other people'
        ), action
    return RecordApproval(decision.packages, len(others) + 1, required, has_earlier=bool(approvals)), action
