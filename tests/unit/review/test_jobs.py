"""Tests of jobs without repositories: the limits, the deletion of old results, and the readers of a job."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Event

import pytest
from structlog.testing import capture_logs

from reconciler.git.errors import OfflineError
from reconciler.review import jobs as review_jobs
from reconciler.review.confirmations import ConfirmationStore
from reconciler.review.drafts import DraftReview
from reconciler.review.jobs import ReviewJobs, Submission
from reconciler.review.people import Reviewer
from reconciler.review.permissions import ADMIN_PERMISSIONS, Permissions, RoleRule
from reconciler.review.record_folder import RecordFolder
from reconciler.review.review_job import ReviewChannel, ReviewJob
from reconciler.review.review_requests import ChangeSelection, ReviewRequest, ReviewRequestError
from reconciler.settings import SettingsError
from tests.support.fleet_index import create_large_index
from tests.support.manual_clock import ManualClock

ANA = Reviewer("Ana", "ana@example.com")
LUIS = Reviewer("Luis", "luis@example.com")
READER = Permissions((RoleRule("viewer"),))
INDEX = create_large_index(2)
DAY = 24 * 60 * 60


class Console:
    """Jobs of a fleet that cannot be opened, so that each draft fails."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.woken = 0
        self.error: Exception = OfflineError("the host does not respond")
        self.confirmations = ConfirmationStore(self.clock)
        self.jobs = ReviewJobs(self.confirmations, self.open_review, self.wake, self.clock)

    def open_review(self) -> AbstractContextManager[DraftReview]:
        raise self.error

    def wake(self) -> None:
        self.woken += 1

    def find(self, job: ReviewJob) -> ReviewJob:
        found = self.jobs.find(job.id, ANA, READER)
        assert found
        return found

    def submit(self, key: str = "key", confirmation_id: str = "", channel: ReviewChannel = "console") -> ReviewJob:
        request = ReviewRequest("approve", (ChangeSelection("update"),))
        confirmation = self.confirmations.create(INDEX, ANA, ADMIN_PERMISSIONS, request)
        submission = Submission(confirmation_id or confirmation.id, "", None, key, "request", channel)
        return self.jobs.submit(submission, INDEX, ANA, ADMIN_PERMISSIONS)


@pytest.fixture
def console() -> Console:
    return Console()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        pytest.param(OfflineError("the host does not respond"), "the host does not respond", id="git"),
        pytest.param(SettingsError("signing.key: no such file"), "signing.key: no such file", id="settings"),
        pytest.param(ValueError("secret"), "an unexpected ValueError stopped the processing", id="internal"),
    ],
)
def test_a_job_whose_config_cannot_be_opened_has_failed(console: Console, error: Exception, message: str) -> None:
    console.error = error
    job = console.submit()
    console.jobs.apply_waiting()

    found = console.jobs.find(job.id, ANA, READER)

    assert found
    assert (found.state, found.count_items("failed"), found.completed_at) == ("completed", 2, console.clock.now)
    assert message in found.items[0].message
    assert console.woken == 0


def test_results_are_stored_for_7_days(console: Console) -> None:
    job = console.submit()
    console.jobs.apply_waiting()

    console.clock.now += 7 * DAY - 1
    assert console.jobs.list_jobs(ANA, READER)
    console.clock.now += 1
    assert console.jobs.find(job.id, ANA, READER) is None
    # The key of a deleted job can be used again.
    assert console.submit().id != job.id


def test_the_oldest_results_are_deleted_if_there_are_too_many(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review_jobs, "MAX_JOBS", 2)
    jobs = []
    for number in range(3):
        jobs.append(console.submit(f"key-{number}"))
        console.jobs.apply_waiting()

    assert [job.id for job in console.jobs.list_jobs(ANA, READER)] == [jobs[2].id, jobs[1].id]


def test_the_number_of_waiting_jobs_is_limited(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review_jobs, "MAX_WAITING_JOBS", 1)
    console.submit("key-1")

    with pytest.raises(ReviewRequestError, match="too many actions wait"):
        console.submit("key-2")

    console.jobs.apply_waiting()
    console.submit("key-2")


def test_only_the_same_person_and_admins_read_a_job(console: Console) -> None:
    job = console.submit()

    assert console.jobs.find(job.id, ANA, READER) == job
    assert console.jobs.find(job.id, LUIS, READER) is None
    assert console.jobs.list_jobs(LUIS, READER) == ()
    assert console.jobs.list_jobs(LUIS, ADMIN_PERMISSIONS) == (job,)
    with pytest.raises(ReviewRequestError, match="the job does not exist any more"):
        console.jobs.retry(job.id, "request", INDEX, LUIS, ADMIN_PERMISSIONS)


def test_an_unknown_confirmation_must_be_repeated(console: Console) -> None:
    with pytest.raises(ReviewRequestError, match="the confirmation has expired"):
        console.submit(confirmation_id="unknown")


def test_simultaneous_submissions_make_one_job(console: Console) -> None:
    confirmation = console.confirmations.create(
        INDEX, ANA, ADMIN_PERMISSIONS, ReviewRequest("approve", (ChangeSelection("update"),))
    )
    submission = Submission(confirmation.id, "", None, "key", "request")
    with ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(lambda _: console.jobs.submit(submission, INDEX, ANA, ADMIN_PERMISSIONS), range(40)))

    assert len({job.id for job in jobs}) == 1
    assert len(console.jobs.list_jobs(ANA, READER)) == 1


@pytest.mark.parametrize("key", ["", "x" * 201], ids=["empty", "long"])
def test_an_invalid_idempotency_key(console: Console, key: str) -> None:
    with pytest.raises(ReviewRequestError, match="must have 1 to 200 characters"):
        console.submit(key)


def test_a_retry_checks_the_permissions_again(console: Console) -> None:
    job = console.submit()
    console.jobs.apply_waiting()

    repeated = console.jobs.retry(job.id, "request", INDEX, ANA, READER)

    assert [item.code for item in repeated.items] == ["NotPermitted", "NotPermitted"]


def test_a_job_waits_while_the_person_can_undo_it(console: Console) -> None:
    console.jobs.undo_seconds = 10
    job = console.submit()
    console.jobs.apply_waiting()
    before = console.find(job)
    console.clock.now += 10
    console.jobs.apply_waiting()

    assert (before.state, before.starts_at) == ("waiting", job.created_at + 10)
    assert console.find(job).state == "completed"


def test_a_job_starts_with_the_current_permissions_of_its_person(console: Console) -> None:
    job = console.submit()
    console.jobs.find_permissions = {ANA: READER}.get
    console.jobs.apply_waiting()

    assert [(item.state, item.code) for item in console.find(job).items] == [("skipped", "NotPermitted")] * 2


def test_an_undone_job_has_no_effect(console: Console) -> None:
    console.jobs.undo_seconds = 10
    job = console.submit()
    undone = console.jobs.undo(job.id, ANA)
    console.clock.now += 10
    console.jobs.apply_waiting()

    assert [(item.state, item.code) for item in undone.items] == [("skipped", "Undone")] * 2
    assert console.find(job) == console.jobs.undo(job.id, ANA) == undone
    assert undone.completed_at == job.created_at
    # A repeated submission does not start the action.
    assert console.submit() == undone


def test_who_can_undo_a_job_and_until_when(console: Console) -> None:
    console.jobs.undo_seconds = 10
    job = console.submit()
    refused = []
    for job_id, person in ((job.id, LUIS), ("unknown", ANA)):
        with pytest.raises(ReviewRequestError) as error:
            console.jobs.undo(job_id, person)
        refused.append(error.value.code)
    console.clock.now += 10
    console.jobs.apply_waiting()
    with pytest.raises(ReviewRequestError) as started:
        console.jobs.undo(job.id, ANA)

    assert (refused, started.value.code) == (["UnknownJob", "UnknownJob"], "JobStarted")
    assert console.find(job).count_items("failed") == 2


def test_actions_of_programs_and_repeated_jobs_start_at_once(console: Console) -> None:
    console.jobs.undo_seconds = 10
    job = console.submit(channel="api")
    console.jobs.apply_waiting()
    completed = console.find(job).state
    console.jobs.retry(job.id, "request", INDEX, ANA, ADMIN_PERMISSIONS)
    console.jobs.apply_waiting()

    assert (completed, console.find(job).state) == ("completed", "completed")


def test_a_job_that_starts_at_once_does_not_wait_for_another(console: Console) -> None:
    console.jobs.undo_seconds = 10
    first = console.submit("key-1")
    second = console.submit("key-2", channel="api")
    console.jobs.apply_waiting()

    assert [console.find(job).state for job in (first, second)] == ["waiting", "completed"]


def test_the_thread_applies_a_job_after_the_undo_time(console: Console) -> None:
    is_opened = Event()

    def open_review() -> AbstractContextManager[DraftReview]:
        is_opened.set()
        raise OfflineError("the host does not respond")

    jobs = ReviewJobs(console.confirmations, open_review, console.wake, time.time, undo_seconds=1)
    console.clock.now = time.time()
    console.jobs = jobs
    jobs.start()
    job = console.submit()
    is_started_early = is_opened.is_set()
    is_started = is_opened.wait(60)
    jobs.close()

    assert (is_started_early, is_started) == (False, True)
    assert console.find(job).state == "completed"


@pytest.fixture
def folder(tmp_path: Path) -> RecordFolder[ReviewJob]:
    return RecordFolder(tmp_path / "jobs", ReviewJob)


def start(console: Console, folder: RecordFolder[ReviewJob]) -> ReviewJobs:
    """Return the jobs of a new process, which stores them in a folder."""
    jobs = ReviewJobs(console.confirmations, console.open_review, console.wake, console.clock, folder)
    jobs.start()
    # Stop the thread, so that the test applies the jobs.
    jobs.close()
    return jobs


def test_a_later_process_reads_the_results(console: Console, folder: RecordFolder[ReviewJob]) -> None:
    console.jobs = start(console, folder)
    job = console.submit()
    console.jobs.apply_waiting()
    completed = console.jobs.find(job.id, ANA, READER)

    console.jobs = start(console, folder)

    assert console.jobs.find(job.id, ANA, READER) == completed
    # A repeated submission has the same job.
    assert console.submit().id == job.id


def test_an_interrupted_job_has_failed_and_can_be_applied_again(
    console: Console, folder: RecordFolder[ReviewJob]
) -> None:
    console.jobs = start(console, folder)
    job = console.submit()

    console.jobs = start(console, folder)
    found = console.jobs.find(job.id, ANA, READER)

    assert found
    assert (found.state, found.count_items("failed")) == ("completed", 2)
    assert found.items[0].message.startswith("the service stopped before")
    assert console.jobs.retry(job.id, "request", INDEX, ANA, ADMIN_PERMISSIONS).state == "waiting"


def test_old_results_are_deleted_from_the_folder(console: Console, folder: RecordFolder[ReviewJob]) -> None:
    console.jobs = start(console, folder)
    console.submit()
    console.jobs.apply_waiting()
    console.clock.now += 7 * DAY
    start(console, folder)

    assert folder.read_all() == ()


def test_a_later_process_deletes_files_of_an_interrupted_write(
    console: Console, folder: RecordFolder[ReviewJob]
) -> None:
    console.jobs = start(console, folder)
    job = console.submit()
    (folder.folder / "interrupted.new").write_text('{"id": "interr')
    console.jobs = start(console, folder)

    assert [file.name for file in folder.folder.iterdir()] == [f"{job.id}.json"]


@pytest.mark.emits("review_record_store_failed", "review_record_unreadable")
def test_unreadable_files_and_folders_cause_only_warnings(console: Console, tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "other.json").write_text('{"version": 2}')
    with capture_logs() as logs:
        assert RecordFolder(jobs, ReviewJob).read_all() == ()
        console.jobs = start(console, RecordFolder(jobs / "other.json", ReviewJob))
        console.submit()

    assert [entry["event"] for entry in logs] == ["review_record_unreadable", "review_record_store_failed"]


def test_the_number_of_stored_drafts_is_limited(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review_jobs, "MAX_ITEMS", 3)
    for key in ("key-1", "key-2"):
        job = console.submit(key)
        console.jobs.apply_waiting()

    assert [found.id for found in console.jobs.list_jobs(ANA, READER)] == [job.id]
