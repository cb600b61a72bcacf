"""Builds the services for reviews in the console from the settings: roles, confirmations and jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.bootstrap.forges import ForgeRegistry
from reconciler.bootstrap.options import get_cache_file
from reconciler.bootstrap.services import build_services
from reconciler.krm.selectors import parse_label_query
from reconciler.lazy_dataclasses import dataclass
from reconciler.review.activity_log import ActivityLog
from reconciler.review.confirmations import Confirmation, ConfirmationStore
from reconciler.review.drafts import DraftReview
from reconciler.review.jobs import ReviewJobs
from reconciler.review.people import Reviewer
from reconciler.review.permissions import Permissions, RoleRule, find_permissions
from reconciler.review.record_folder import RecordFolder
from reconciler.review.restore import Restorer
from reconciler.review.review_job import ReviewJob
from reconciler.review.stages import Stage
from reconciler.server.authentication.tokens import ISSUER as ISSUER_OF_TOKENS

if TYPE_CHECKING:
    from reconciler.settings import Settings
    from reconciler.settings.console import ConsoleSettings


_KINDS_WITH_MERGES = ("github", "gitlab", "gitea")


@dataclass(frozen=True)
class ConsoleReviews:
    """The reviews in the console. The caller must start the jobs, and close them at the end.

    Attributes:
        open_review: Opens the config and the remotes with the current settings.
        folder: The folder with the confirmations and jobs.
        activity: The log of the activity. The cache has one log for each shard, like the jobs.
    """

    rules: tuple[RoleRule, ...]
    confirmations: ConfirmationStore
    jobs: ReviewJobs
    restorer: Restorer
    open_review: Callable[[], AbstractContextManager[DraftReview]]
    settings: ConsoleSettings
    folder: Path
    activity: ActivityLog

    def find_permissions(self, person: Reviewer) -> Permissions:
        """Return the permissions of a person who is signed in."""
        return find_permissions(self.rules, person)

    def _find_role_permissions(self, person: Reviewer) -> Permissions | None:
        """Return the permissions of a person. Return None for local people and programs, which need no role."""
        return None if person.issuer in ("", ISSUER_OF_TOKENS) else self.find_permissions(person)

    def start(self) -> None:
        """Use the current settings for confirmations and jobs, and start the thread of the jobs."""
        self.confirmations.confirm_above = self.settings.confirm_above
        self.jobs.undo_seconds = self.settings.undo_seconds
        self.jobs.open_review = self.open_review
        self.jobs.find_permissions = self._find_role_permissions
        self.jobs.start()


def build_console_reviews(
    settings: Settings,
    config: str,
    wake_pass: Callable[[], None],
    clock: Callable[[], float],
    previous: ConsoleReviews | None = None,
) -> ConsoleReviews:
    """Build the reviews in the console.

    Args:
        config: The URL or path of the config.
        wake_pass: Requests a pass after a job that has changed a branch.
        clock: Returns seconds since 1970.
        previous: The reviews before a reload of the settings. Their confirmations and jobs continue.
    """
    folder = get_cache_file(settings, "review_jobs", "")
    open_review = partial(_open_review, settings, config, clock)
    if previous and previous.folder == folder:
        confirmations, jobs, activity = previous.confirmations, previous.jobs, previous.activity
    else:
        stored = RecordFolder(get_cache_file(settings, "confirmations", ""), Confirmation)
        confirmations = ConfirmationStore(clock, settings.console.confirm_above, stored)
        job_folder = RecordFolder(folder, ReviewJob)
        activity = ActivityLog(get_cache_file(settings, "activity", ".jsonl"), clock)
        undo_seconds = settings.console.undo_seconds
        jobs = ReviewJobs(confirmations, open_review, wake_pass, clock, job_folder, undo_seconds, activity.append)
    return ConsoleReviews(
        build_role_rules(settings),
        confirmations,
        jobs,
        Restorer(open_review, wake_pass, activity.append),
        open_review,
        settings.console,
        folder,
        activity,
    )


def build_role_rules(settings: Settings) -> tuple[RoleRule, ...]:
    """Return the rules of the setting `console.roles`."""
    return tuple(
        RoleRule(
            rule.role,
            rule.users,
            rule.groups,
            parse_label_query(rule.targets),
            rule.packages,
            rule.tenants,
            rule.max_risk,
            rule.removals,
        )
        for rule in settings.console.roles
    )


def build_stages(settings: Settings) -> tuple[Stage, ...]:
    """Return the stages of the setting `console.stages`."""
    return tuple(Stage(stage.name, parse_label_query(stage.targets)) for stage in settings.console.stages)


def build_merge_check(settings: Settings) -> Callable[[str], bool]:
    """Return a function that receives the URL of a repository, and returns how an approval publishes a draft.

    The function returns True if an approval merges the pull request, and False if it pushes to the target branch.
    """
    if not settings.forge.merge:
        return lambda _url: False
    forges = ForgeRegistry(settings, time.time)
    return lambda url: forges.get_kind(url) in _KINDS_WITH_MERGES


@contextmanager
def _open_review(settings: Settings, config: str, clock: Callable[[], float]) -> Iterator[DraftReview]:
    services = build_services(settings, config, clock=clock, should_sign=True)
    with services.remotes as remotes:
        yield DraftReview(services.source, remotes, services.pass_services)
