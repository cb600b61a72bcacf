"""A job of the console: a confirmed action, and its result for each draft branch."""

from __future__ import annotations

from typing import Literal

from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.planning.lifecycle.open_drafts import BlockingReason
from reconciler.reconcile.remotes.targets import ExpectedDraft
from reconciler.review.people import Reviewer
from reconciler.review.review_requests import ConfirmedDraft, ExcludedDraft, JobVerb

JobState = Literal["waiting", "running", "completed"]
ItemState = Literal["waiting", "done", "skipped", "failed"]
ReviewChannel = Literal["console", "api"]


@dataclass(frozen=True)
class JobItem:
    """The drafts of one draft branch in a job, with their result. An item of a revert has only one package.

    Attributes:
        drafts: The drafts as the person confirmed them.
        code: The reason why the drafts were skipped, such as `DraftMoved`, or `ApprovalRecorded` if more people must
            approve the drafts. "" for other results.
        commit: The commit that was published or proposed, or the commit of the new draft of a revert.
    """

    drafts: tuple[ConfirmedDraft, ...]
    state: ItemState = "waiting"
    code: str = ""
    message: str = ""
    commit: str = ""

    @property
    def target(self) -> str:
        """The name of the target."""
        return self.drafts[0].target

    def skip(self, reason: BlockingReason) -> JobItem:
        """Return the item as skipped for this reason."""
        return replace(self, state="skipped", code=reason.reason, message=reason.message)

    @property
    def branch(self) -> str:
        """The name of the draft branch."""
        return self.drafts[0].branch

    @property
    def packages(self) -> tuple[str, ...]:
        """The paths of the packages."""
        return tuple(draft.package for draft in self.drafts)

    @property
    def expected_draft(self) -> ExpectedDraft:
        """The draft branch with the packages and heads that the person confirmed."""
        draft = self.drafts[0]
        return ExpectedDraft(draft.target, frozenset(self.packages), draft.branch, draft.head, draft.published_head)


@dataclass(frozen=True)
class ReviewJob:
    """A confirmed action. The object is immutable; `ReviewJobs` replaces it when an item is completed.

    Attributes:
        request_id: The ID of the HTTP request that started or repeated the job.
        confirmation_id: The ID of the confirmation. There is one job for each confirmation.
        idempotency_key: The key of the client. There is one job for each key of a person.
        created_at: The time of the confirmation, in seconds since 1970.
        completed_at: The end of the job, in seconds since 1970. None if it has not ended.
        excluded: The selected drafts to which the action does not apply.
        channel: Whether a page or the API received the action.
        starts_at: The person can undo the action until this time, in seconds since 1970. 0 if this is not possible.
    """

    id: str
    verb: JobVerb
    person: Reviewer
    reason: str
    request_id: str
    confirmation_id: str
    idempotency_key: str
    created_at: float
    items: tuple[JobItem, ...]
    accepts_conflicts: bool = False
    state: JobState = "waiting"
    completed_at: float | None = None
    excluded: tuple[ExcludedDraft, ...] = ()
    channel: ReviewChannel = "console"
    starts_at: float = 0.0

    def count_items(self, state: ItemState) -> int:
        """Return the number of items with this state."""
        return sum(item.state == state for item in self.items)
