"""The quick filters of the list of changes. They depend on the person, so the API does not have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from reconciler.git.errors import GitError
from reconciler.output.fleet.model import ReviewChange
from reconciler.reconcile.failures import log_if_internal, repository_boundary
from reconciler.review.permissions import PackageScope
from reconciler.server.console.listing import read_choice
from reconciler.server.console.page import PageRequest


def _is_own(page: PageRequest, change: ReviewChange) -> bool:
    """Return whether the person is the author of a config commit for which drafts of the change were created."""
    email = page.session.person.email.casefold()
    configs = dict.fromkeys(variant.content.config for variant in change.variants)
    return bool(email) and any(_read_author(page, config).casefold() == email for config in configs)


def _read_author(page: PageRequest, config: str) -> str:
    try:
        with repository_boundary("the author of a config commit"):
            return page.context.config.read_author(config)
    except GitError as error:
        log_if_internal(error)
        return ""


def _may_review(page: PageRequest, change: ReviewChange) -> bool:
    """Return whether the person may review a draft of the change."""
    for variant in change.variants:
        content = variant.content
        for member in variant.members:
            scope = PackageScope(page.index.by_target[member.target].labels, member.package, member.tenant)
            if not page.session.permissions.find_refusal(scope, content.risk.level, is_removal=content.is_removal):
                return True
    return False


def _has_conflicts(_page: PageRequest, change: ReviewChange) -> bool:
    return change.conflict_count > 0


QUICK_FILTERS: Mapping[str, tuple[str, Callable[[PageRequest, ReviewChange], bool]]] = {
    "mine": ("my config commits", _is_own),
    "reviewable": ("my targets", _may_review),
    "conflicts": ("conflicts", _has_conflicts),
}
"""The filters with their labels, by the value of the query parameter `only`."""


def apply_quick_filter(page: PageRequest, changes: Iterable[ReviewChange]) -> Sequence[ReviewChange]:
    """Return the changes that match the query parameter `only`."""
    only = read_choice(page.request.query_params, "only", tuple(QUICK_FILTERS))
    return [change for change in changes if not only or QUICK_FILTERS[only][1](page, change)]
