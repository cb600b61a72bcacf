"""The review functions of the console for one test fleet, and people who use them."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.output.fleet.model import FleetIndex
from reconciler.review.confirmations import Confirmation, ConfirmationStore
from reconciler.review.jobs import ReviewJobs, Submission
from reconciler.review.people import Reviewer
from reconciler.review.permissions import ADMIN_PERMISSIONS, Permissions
from reconciler.review.review_job import ReviewJob
from reconciler.review.review_requests import ChangeSelection, ConsoleVerb, ReviewRequest, SelectedTarget
from tests.support.world import World

ANA = Reviewer("Ana Silva", "ana@example.com", "f3c1", "https://id.example.com")
LUIS = Reviewer("Luis Vega", "luis@example.com", "a7d2", "https://id.example.com")


class ReviewConsole:
    """The review functions of the console for one fleet. Jobs run when the test calls `run`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.indexer = world.create_indexer()
        self.woken = 0
        self.before_push: list[Callable[[], object]] = []
        self.confirmations = ConfirmationStore(lambda: world.now)
        self.jobs = ReviewJobs(
            self.confirmations, lambda: world.open_review(self.before_push), self.wake, lambda: world.now
        )  # fmt: skip
        self.index = self.update()

    def wake(self) -> None:
        self.woken += 1

    def update(self) -> FleetIndex:
        """Run a pass, and read the fleet again."""
        self.index = self.indexer.update(self.world.observe_pass(), lambda done, total: None)
        return self.index

    def find_key(self, title: str) -> str:
        return next(change.key for change in self.index.changes if change.title.startswith(title))

    def confirm(
        self,
        title: str,
        verb: ConsoleVerb = "approve",
        *targets: str,
        person: Reviewer = ANA,
        permissions: Permissions = ADMIN_PERMISSIONS,
        **more: bool,
    ) -> Confirmation:
        """Confirm an action on the change with this title."""
        selected = tuple(SelectedTarget(target) for target in targets)
        request = ReviewRequest(verb, (ChangeSelection(self.find_key(title), targets=selected),), **more)
        return self.confirmations.create(self.index, person, permissions, request)

    def submit(
        self,
        confirmation: Confirmation,
        reason: str = "tested",
        key: str = "key-1",
        permissions: Permissions = ADMIN_PERMISSIONS,
    ) -> ReviewJob:
        submission = Submission(confirmation.id, reason, confirmation.typed_count, key, "request-1")
        return self.jobs.submit(submission, self.index, confirmation.person, permissions)

    def run(self, *jobs: ReviewJob) -> dict[str, str]:
        """Apply all waiting jobs, and return the result of each draft of these jobs."""
        self.jobs.apply_waiting()
        return self.list_results(*jobs)

    def list_results(self, *jobs: ReviewJob) -> dict[str, str]:
        """Return the result of each draft of these jobs."""
        return {
            f"{item.target} {' '.join(item.packages)}": f"{item.state} {item.code}".strip()
            for job in jobs
            for item in self.find(job).items
        }

    def find(self, job: ReviewJob) -> ReviewJob:
        found = self.jobs.find(job.id, job.person, ADMIN_PERMISSIONS)
        assert found
        return found


def list_excluded(confirmation: Confirmation) -> dict[str, str]:
    return {f"{draft.target} {draft.package}": draft.reason.reason for draft in confirmation.excluded}
