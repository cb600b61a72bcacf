"""The API result that describes a job of the console, and its conversion from a `ReviewJob`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from reconciler.output.envelope import CommandResult, OutputModel, ResultMetadata, Timestamp
from reconciler.review.review_job import ItemState, JobItem, JobState, ReviewJob
from reconciler.review.review_requests import ExcludedDraft, JobVerb


class ReviewJobItem(OutputModel):
    """The result of the action for one draft branch, or for a package to which the action does not apply."""

    target: str
    packages: tuple[str, ...] = ()
    branch: str = Field(default="", description="The draft branch. Absent if the action does not apply to the package.")
    state: ItemState
    code: str = Field(
        default="", description="The reason of a skipped draft, such as `DraftMoved`, or `ApprovalRecorded`."
    )
    message: str = ""
    commit: str = Field(default="", description="The commit that was published or proposed.")


class ReviewJobSummary(OutputModel):
    """The job, and the number of its items by state."""

    id: str
    action: JobVerb
    state: JobState
    person: str
    reason: str = ""
    created_at: Timestamp
    completed_at: Timestamp | None = None
    waiting: int
    done: int
    skipped: int
    failed: int


class ReviewJobResult(CommandResult):
    """A review action, which the service applies after it has answered the request."""

    kind: Literal["ReviewJob"] = "ReviewJob"
    items: tuple[ReviewJobItem, ...]
    summary: ReviewJobSummary


def build_job_result(job: ReviewJob) -> ReviewJobResult:
    """Return the result for a job. Drafts to which the action does not apply are skipped items."""
    items = (*map(_build_item, job.items), *map(build_excluded_item, job.excluded))
    counts = {state: sum(item.state == state for item in items) for state in ("waiting", "done", "skipped", "failed")}
    return ReviewJobResult(
        metadata=ResultMetadata(source="api"),
        items=items,
        summary=ReviewJobSummary(
            id=job.id,
            action=job.verb,
            state=job.state,
            person=job.person.git_identity[0],
            reason=job.reason,
            created_at=int(job.created_at),
            completed_at=None if job.completed_at is None else int(job.completed_at),
            **counts,
        ),
    )


def _build_item(item: JobItem) -> ReviewJobItem:
    return ReviewJobItem(
        target=item.target,
        packages=item.packages,
        branch=item.branch,
        state=item.state,
        code=item.code,
        message=item.message,
        commit=item.commit,
    )


def build_excluded_item(draft: ExcludedDraft) -> ReviewJobItem:
    """Return the item of the job result for a draft to which the review action does not apply."""
    return ReviewJobItem(
        target=draft.target,
        packages=(draft.package,) if draft.package else (),
        state="skipped",
        code=draft.reason.reason,
        message=draft.reason.message,
    )
