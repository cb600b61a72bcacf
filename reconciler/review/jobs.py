"""Jobs: confirmed review actions that a thread applies one after the other.

The results are stored in memory and in the cache folder for 7 days. The commits and the log event `review_action`
record the actions permanently.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from reconciler.git.errors import GitError
from reconciler.krm.internal_errors import ExpectedError
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.commit_messages import ConsoleRequest
from reconciler.output.review.action_results import APPROVAL_RECORDED
from reconciler.planning.lifecycle.open_drafts import BlockingReason
from reconciler.reconcile.failures import log_if_internal, repository_boundary
from reconciler.reconcile.remotes.targets import ReviewSelection
from reconciler.reconcile.review_actions import ReviewAction
from reconciler.review.actions import apply_review_action
from reconciler.review.confirmations import Confirmation, ConfirmationStore, check_input
from reconciler.review.draft_permissions import find_permission_refusal
from reconciler.review.people import Reviewer, clean_reason
from reconciler.review.revert_drafts import apply_revert
from reconciler.review.reverts import list_published_drafts
from reconciler.review.review_activity import list_review_events
from reconciler.review.review_job import JobItem, ReviewChannel, ReviewJob
from reconciler.review.review_requests import ConsoleVerb, JobVerb, PublishedDraft, ReviewRequestError
from reconciler.telemetry.metrics import REVIEWS

if TYPE_CHECKING:
    from reconciler.output.fleet.activity import ActivityEvent
    from reconciler.output.fleet.model import FleetIndex
    from reconciler.output.review.action_results import ReviewActionResult
    from reconciler.review.drafts import DraftReview
    from reconciler.review.permissions import Permissions
    from reconciler.review.record_folder import RecordFolder

RESULT_SECONDS = 7 * 24 * 60 * 60
MAX_JOBS = 1_000
MAX_ITEMS = 200_000
MAX_WAITING_JOBS = 100
MAX_KEY_CHARACTERS = 200
UNDONE = "Undone"
_ID_BYTES = 16
_MIN_WAIT_SECONDS = 0.05
_STOP_SECONDS = 10.0


@dataclass(frozen=True)
class Submission:
    """The input with which a person confirms an action.

    Attributes:
        idempotency_key: A key that the client creates once for each action. A repeated submission has the same key.
        request_id: The ID of the HTTP request.
        channel: Whether a page or the API received the action.
    """

    confirmation_id: str
    reason: str
    typed_count: int | None
    idempotency_key: str
    request_id: str
    channel: ReviewChannel = "console"


class ReviewJobs:
    """Applies confirmed actions in one thread. The first submitted action whose undo time has ended is applied next.

    Args:
        open_review: Opens the config and the remotes for one job. A reload of the settings replaces this attribute.
        wake_pass: Requests a pass after a job that has changed a branch.
        clock: Returns seconds since 1970.
        folder: Stores the jobs for later processes. If None, the jobs are only in memory.
        undo_seconds: The time for which a person can undo an action in the console. A reload replaces this attribute.
        record_activity: Receives the events of each completed job.

    Attributes:
        find_permissions: Returns the permissions of a person when a job starts, because roles can change while it
            waits. Returns None if the permissions of the submission stay valid. A reload replaces this attribute.
    """

    def __init__(
        self,
        confirmations: ConfirmationStore,
        open_review: Callable[[], AbstractContextManager[DraftReview]],
        wake_pass: Callable[[], None],
        clock: Callable[[], float],
        folder: RecordFolder[ReviewJob] | None = None,
        undo_seconds: int = 0,
        record_activity: Callable[[Sequence[ActivityEvent]], None] = lambda _events: None,
    ) -> None:
        self._folder = folder
        self.undo_seconds = undo_seconds
        self._confirmations = confirmations
        self.open_review = open_review
        self.find_permissions: Callable[[Reviewer], Permissions | None] = lambda _person: None
        self._wake_pass = wake_pass
        self._record_activity = record_activity
        self._clock = clock
        self._changed = threading.Condition()
        self._jobs: dict[str, ReviewJob] = {}
        # The items of the running job by `_get_key`. They are copied to the job in `_jobs` only when the job
        # ends, because a new tuple of items for each result would take quadratic time.
        self._running_items: dict[tuple[str, str], JobItem] = {}
        # Maps the ID of each waiting job to the fleet index at the time of its submission.
        self._waiting: dict[str, FleetIndex] = {}
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="console-review", daemon=True)

    def start(self) -> None:
        """Read the jobs of earlier processes, and start the thread, unless it runs.

        Jobs that an earlier process has not completed are not continued. Their waiting items become failed, and `retry`
        applies these items again.
        """
        if self._thread.is_alive():
            return
        if self._folder:
            with self._changed:
                self._jobs = {job.id: _end_interrupted(job) for job in self._folder.read_all()} | self._jobs
                self._delete_old()
        self._thread.start()

    def close(self) -> None:
        """Stop the thread after the current job. Waiting jobs are not applied."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def submit(
        self, submission: Submission, index: FleetIndex, person: Reviewer, permissions: Permissions
    ) -> ReviewJob:
        """Create the job of a confirmation. If the submission is repeated, return the existing job.

        The permissions are checked again, because they can change after the confirmation was created.

        Args:
            index: The newest index of the whole fleet.

        Raises:
            ReviewRequestError: The confirmation does not exist any more, an input is wrong, or too many jobs wait.
        """
        _check_key(submission.idempotency_key)
        with self._changed:
            if existing := self._find_submitted(submission, person):
                return existing
        confirmation = self._confirmations.find(submission.confirmation_id, person)
        if confirmation is None:
            raise ReviewRequestError(
                "UnknownConfirmation", "the confirmation has expired; review the change and confirm the action again"
            )
        check_input(confirmation, submission.reason, submission.typed_count)
        job = _create_job(confirmation, submission, self._clock(), index, permissions)
        if submission.channel == "console" and self.undo_seconds:
            job = replace(job, starts_at=job.created_at + self.undo_seconds)
        with self._changed:
            # Check again, because a second request can have submitted the same confirmation meanwhile.
            if existing := self._find_submitted(submission, person):
                return existing
            self._add(job, index)
        return job

    def find_by_key(self, idempotency_key: str, person: Reviewer) -> ReviewJob | None:
        """Return the job that this person has submitted with this key. Return None if there is no such job."""
        with self._changed:
            self._delete_old()
            jobs = (job for job in self._jobs.values() if job.idempotency_key == idempotency_key)
            found = next((job for job in jobs if job.person.key == person.key), None)
            return self._add_progress(found) if found else None

    def find(self, job_id: str, person: Reviewer, permissions: Permissions) -> ReviewJob | None:
        """Return a job of this person. An admin can read the jobs of all people."""
        with self._changed:
            self._delete_old()
            job = self._find_current(job_id)
        return job if job and (job.person.key == person.key or permissions.is_admin) else None

    def list_published(self, job_id: str) -> tuple[PublishedDraft, ...]:
        """Return the drafts that a completed job has published. Return () if there is no such job.

        The caller must remove the packages that the person may not read, because all people can revert an approval.
        """
        with self._changed:
            self._delete_old()
            job = self._jobs.get(job_id)
        return tuple(list_published_drafts(job)) if job and job.state == "completed" else ()

    def list_jobs(self, person: Reviewer, permissions: Permissions) -> tuple[ReviewJob, ...]:
        """Return the jobs that this person may read, the newest job first."""
        with self._changed:
            self._delete_old()
            jobs = [self._add_progress(job) for job in self._jobs.values()]
        return tuple(job for job in reversed(jobs) if job.person.key == person.key or permissions.is_admin)

    def retry(
        self, job_id: str, request_id: str, index: FleetIndex, person: Reviewer, permissions: Permissions
    ) -> ReviewJob:
        """Apply the failed items of a job again. A job that waits, runs, or has no failed items does not change.

        Raises:
            ReviewRequestError: The person has no such job, or too many jobs wait.
        """
        with self._changed:
            job = self._require_own(job_id, person)
            if job.state != "completed" or not job.count_items("failed"):
                return job
            items = tuple(
                _check_item(JobItem(item.drafts), job.verb, index, permissions) if item.state == "failed" else item
                for item in job.items
            )
            repeated = replace(
                job, items=items, state="waiting", completed_at=None, request_id=request_id, starts_at=0.0
            )
            self._add(repeated, index)
        return repeated

    def undo(self, job_id: str, person: Reviewer) -> ReviewJob:
        """Cancel a job that has not started, and mark it as completed. Do nothing if the job is already undone.

        Raises:
            ReviewRequestError: The person has no such job, or the job has started.
        """
        with self._changed:
            job = self._require_own(job_id, person)
            if job_id not in self._waiting:
                if any(item.code == UNDONE for item in job.items):
                    return job
                raise ReviewRequestError(
                    "JobStarted",
                    "the action has started and cannot be undone; after its end, revert the published packages",
                )
            del self._waiting[job_id]
            reason = BlockingReason(UNDONE, "the action was undone before it started")
            items = tuple(item.skip(reason) if item.state == "waiting" else item for item in job.items)
            undone = replace(job, items=items, state="completed", completed_at=self._clock())
            self._store(undone)
        return undone

    def _find_submitted(self, submission: Submission, person: Reviewer) -> ReviewJob | None:
        """Return the job of an earlier submission with the same key or the same confirmation."""
        self._delete_old()
        for job in self._jobs.values():
            is_same_key = job.idempotency_key == submission.idempotency_key
            if job.person.key == person.key and (is_same_key or job.confirmation_id == submission.confirmation_id):
                return self._add_progress(job)
        return None

    def _find_current(self, job_id: str) -> ReviewJob | None:
        """Return a job with its newest results. Return None if there is no such job."""
        job = self._jobs.get(job_id)
        return self._add_progress(job) if job else None

    def _require_own(self, job_id: str, person: Reviewer) -> ReviewJob:
        """Return a job of this person with its newest results.

        Raises:
            ReviewRequestError: The person has no such job.
        """
        job = self._find_current(job_id)
        if job is None or job.person.key != person.key:
            raise ReviewRequestError(
                "UnknownJob", "the job does not exist any more; its results are in the activity of the target"
            )
        return job

    def _add_progress(self, job: ReviewJob) -> ReviewJob:
        return replace(job, items=tuple(self._running_items.values())) if job.state == "running" else job

    def _add(self, job: ReviewJob, index: FleetIndex) -> None:
        if len(self._waiting) >= MAX_WAITING_JOBS:
            raise ReviewRequestError("TooManyJobs", "too many actions wait; try again in a minute")
        self._store(job)
        self._waiting[job.id] = index
        self._changed.notify_all()

    def _store(self, job: ReviewJob) -> None:
        self._jobs[job.id] = job
        if self._folder:
            self._folder.write(job)

    def _delete_old(self) -> None:
        """Delete completed jobs that are older than 7 days. If there are too many jobs, delete the oldest ones."""
        oldest = self._clock() - RESULT_SECONDS
        item_count = 0
        for number, job in enumerate(reversed(tuple(self._jobs.values())), 1):
            item_count += len(job.items) + len(job.excluded)
            is_within_limits = number <= MAX_JOBS and item_count <= MAX_ITEMS
            if job.completed_at is not None and not (is_within_limits and job.completed_at > oldest):
                del self._jobs[job.id]
                if self._folder:
                    self._folder.delete(job.id)

    def apply_waiting(self) -> None:
        """Apply all waiting jobs that may start, in the thread of the caller."""
        while job := self._start_next():
            self._apply(job)

    def _run(self) -> None:
        while (job := self._wait()) is not None:
            self._apply(job)

    def _wait(self) -> ReviewJob | None:
        """Wait for a job, and return it. Return None if the thread must stop."""
        with self._changed:
            while not self._is_stopping:
                if job := self._start_next():
                    return job
                starts = [self._jobs[job_id].starts_at for job_id in self._waiting]
                self._changed.wait(max(min(starts) - self._clock(), _MIN_WAIT_SECONDS) if starts else None)
            return None

    def _start_next(self) -> ReviewJob | None:
        """Return the first job that may start, and mark it as running. Return None if there is no such job."""
        with self._changed:
            now = self._clock()
            found = next((job_id for job_id in self._waiting if self._jobs[job_id].starts_at <= now), None)
            if found is None:
                return None
            index = self._waiting.pop(found)
            job = replace(self._check_permissions(self._jobs[found], index), state="running")
            self._jobs[job.id] = job
            self._running_items = {_get_key(job.verb, item): item for item in job.items}
            return job

    def _check_permissions(self, job: ReviewJob, index: FleetIndex) -> ReviewJob:
        """Return the job without the drafts that its person may not review any more."""
        permissions = self.find_permissions(job.person)
        if permissions is None:
            return job
        items = (
            _check_item(item, job.verb, index, permissions) if item.state == "waiting" else item for item in job.items
        )
        return replace(job, items=tuple(items))

    def _apply(self, job: ReviewJob) -> None:
        waiting = [item for item in job.items if item.state == "waiting"]
        error = self._apply_action(job, waiting) if waiting else ""
        self._complete(job.id, error or "the action was not applied to this draft")

    def _apply_action(self, job: ReviewJob, items: Sequence[JobItem]) -> str:
        """Apply the action to these items, and return the error that stopped it. Return "" if there was no error."""
        try:
            with repository_boundary(f"the review job {job.id}"), self.open_review() as review:
                if job.verb == "revert":
                    apply_revert(review, items, job, self._set_item)
                else:
                    selection = ReviewSelection(expected_drafts=tuple(item.expected_draft for item in items))
                    apply_review_action(review, selection, _create_action(job, job.verb), self._set_result)
        except GitError as error:
            log_if_internal(error)
            return error.full_message
        except ExpectedError as error:
            return str(error)
        return ""

    def _set_result(self, result: ReviewActionResult) -> None:
        with self._changed:
            items = self._running_items
            # Apply a result without a branch to all drafts of the target, because it is an error of the target.
            keys = [(result.repository, result.branch)] if result.branch else items
            for key in [key for key in keys if key in items and key[0] == result.repository]:
                if items[key].state == "waiting":
                    items[key] = _apply_result(items[key], result)

    def _set_item(self, item: JobItem) -> None:
        with self._changed:
            self._running_items[_get_key("revert", item)] = item

    def _complete(self, job_id: str, error: str) -> None:
        with self._changed:
            items = _fail_waiting(self._running_items.values(), error)
            started = self._jobs[job_id]
            job = replace(started, items=items, state="completed", completed_at=self._clock())
            self._store(job)
        applied = [after for before, after in zip(started.items, items, strict=True) if before.state == "waiting"]
        for item in applied:
            REVIEWS.add(job.verb, item.state, job.channel)
        self._record_activity(tuple(list_review_events(job, applied, int(self._clock()))))
        if job.count_items("done"):
            self._wake_pass()


def _end_interrupted(job: ReviewJob) -> ReviewJob:
    """Return a copy of an interrupted job in the state `completed`. Its waiting items become failed.

    A completed job is returned unchanged.
    """
    if job.state == "completed":
        return job
    message = "the service stopped before it stored the result of this draft; apply the draft again"
    items = _fail_waiting(job.items, message)
    return replace(job, items=items, state="completed", completed_at=job.created_at)


def _fail_waiting(items: Iterable[JobItem], message: str) -> tuple[JobItem, ...]:
    return tuple(replace(item, state="failed", message=message) if item.state == "waiting" else item for item in items)


def _check_key(key: str) -> None:
    if not 0 < len(key) <= MAX_KEY_CHARACTERS:
        raise ReviewRequestError(
            "InvalidIdempotencyKey", f"the idempotency key must have 1 to {MAX_KEY_CHARACTERS} characters"
        )


def _create_job(
    confirmation: Confirmation, submission: Submission, now: float, index: FleetIndex, permissions: Permissions
) -> ReviewJob:
    groups, verb = confirmation.group_by_result(), confirmation.verb
    items = (_check_item(JobItem(drafts), verb, index, permissions) for drafts in groups)
    return ReviewJob(
        id=secrets.token_urlsafe(_ID_BYTES),
        verb=verb,
        person=confirmation.person,
        reason=clean_reason(submission.reason),
        request_id=submission.request_id,
        channel=submission.channel,
        confirmation_id=confirmation.id,
        idempotency_key=submission.idempotency_key,
        created_at=now,
        items=tuple(items),
        accepts_conflicts=confirmation.request.accepts_conflicts,
        excluded=confirmation.excluded,
    )


def _check_item(item: JobItem, verb: JobVerb, index: FleetIndex, permissions: Permissions) -> JobItem:
    """Return the item. It is skipped if the person must not apply the action to one of its packages."""
    for draft in item.drafts:
        if refusal := find_permission_refusal(index, permissions, verb, draft):
            return item.skip(refusal)
    return item


def _get_key(verb: JobVerb, item: JobItem) -> tuple[str, str]:
    """Return the target with the draft branch, or with the package of a revert. A job has one item for each key."""
    return item.target, item.packages[0] if verb == "revert" else item.branch


def _create_action(job: ReviewJob, verb: ConsoleVerb) -> ReviewAction:
    drafts = (draft for item in job.items for draft in item.drafts)
    changes = {(draft.target, draft.package): f"{draft.change}/{draft.variant}" for draft in drafts}
    return ReviewAction(
        verb,
        job.person.git_identity,
        job.reason,
        should_approve_unproposed=True,
        accepts_conflicts=job.accepts_conflicts,
        person_source="console",
        should_reject_unproposed=True,
        request=ConsoleRequest(job.request_id, job.person.qualified_subject, changes),
    )


def _apply_result(item: JobItem, result: ReviewActionResult) -> JobItem:
    match result.outcome:
        case "done":
            return replace(item, state="done", message=result.message, commit=result.commit)
        case "recorded":
            return replace(item, state="done", code=APPROVAL_RECORDED, message=result.message)
        case "refused":
            return item.skip(result.reasons[0])
        case "unchanged":
            reason = result.reasons[0] if result.reasons else BlockingReason("Unchanged", result.message)
            return item.skip(reason)
        case "failed" | "lost":
            return replace(item, state="failed", message=result.message)
