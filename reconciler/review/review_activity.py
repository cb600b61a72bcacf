"""The activity of review jobs: the events about the drafts to which a person applied an action."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from reconciler.output.fleet.activity import ActivityAction, ActivityEvent
from reconciler.review.reverts import has_published
from reconciler.review.review_job import JobItem, ReviewJob
from reconciler.review.review_requests import JobVerb

_ACTIONS: Mapping[JobVerb, ActivityAction] = {
    "approve": "approved", "propose": "proposed", "reject": "rejected", "revert": "draft-created",
}  # fmt: skip


def list_review_events(job: ReviewJob, items: Iterable[JobItem], now: int) -> Iterator[ActivityEvent]:
    """Yield one event for each package of the items to which the action of a job was applied.

    Args:
        now: The time of the action, in seconds since 1970.
    """
    action = _ACTIONS[job.verb]
    for item in items:
        if item.state == "done":
            others = (name for draft in item.drafts for name in draft.other_packages if job.verb != "approve")
            for package in dict.fromkeys((*item.packages, *others)):
                yield ActivityEvent(
                    (action,),
                    now,
                    now,
                    item.target,
                    package,
                    job.person.git_identity[0],
                    item.message,
                    job.reason,
                    item.commit,
                    job=job.id if job.verb == "approve" and has_published(item) else "",
                )
