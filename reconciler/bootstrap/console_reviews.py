"""The reviews in the console, as the settings describe them: roles, confirmations and jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from reconciler.bootstrap.options import get_cache_file
from reconciler.bootstrap.services import build_services
from reconciler.krm.selectors import parse_label_query
from reconciler.lazy_dataclasses import dataclass
from reconciler.review.confirmations import ConfirmationStore
from reconciler.review.drafts import DraftReview
from reconciler.review.job_folder import JobFolder
from reconciler.review.jobs import ReviewJobs
from reconciler.review.people import Reviewer
from reconciler.review.permissions import Permissions, RoleRule, find_permissions
from reconciler.review.restore import Restorer
from reconciler.review.stages import Stage

if TYPE_CHECKING:
    from reconciler.settings import Settings


@dataclass(frozen=True)
class ConsoleReviews:
    """The reviews in the console. The caller must start and close the jobs."""

    rules: tuple[RoleRule, ...]
    confirmations: ConfirmationStore
    jobs: ReviewJobs
    restorer: Restorer

    def find_permissions(self, person: Reviewer) -> Permissions:
        """Return the permissions of a person who is signed in."""
        return find_permissions(self.rules, person)


def build_console_reviews(
    settings: Settings, config: str, wake_pass: Callable[[], None], clock: Callable[[], float]
) -> ConsoleReviews:
    """Build the reviews in the console.

    Args:
        config: The URL or path of the config.
        wake_pass: Requests a pass after a job that has changed a branch.
        clock: Returns seconds since 1970.
    """
    confirmations = ConfirmationStore(clock, settings.console.confirm_above)
    folder = JobFolder(get_cache_file(settings, "review_jobs").with_suffix(""))
    open_review = partial(_open_review, settings, config, clock)
    jobs = ReviewJobs(confirmations, open_review, wake_pass, clock, folder)
    restorer = Restorer(open_review, wake_pass)
    return ConsoleReviews(build_role_rules(settings), confirmations, jobs, restorer)


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


@contextmanager
def _open_review(settings: Settings, config: str, clock: Callable[[], float]) -> Iterator[DraftReview]:
    services = build_services(settings, config, clock=clock, should_sign=True)
    with services.remotes as remotes:
        yield DraftReview(services.source, remotes, services.pass_services)
