"""Property test: an action never applies to a draft that the person may not review, also if rules change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.output.fleet.model import FleetIndex
from reconciler.review.confirmations import ConfirmationStore
from reconciler.review.drafts import DraftReview
from reconciler.review.jobs import ReviewJobs, Submission
from reconciler.review.people import Reviewer
from reconciler.review.permissions import PackageScope, Permissions, RoleRule
from reconciler.review.restricted_index import restrict_index
from reconciler.review.review_requests import ChangeSelection, ConfirmedDraft, ConsoleVerb, ReviewRequest
from tests.support.console_reviews import ANA
from tests.support.fleet_strategies import FLEETS, RULES


def list_affected(fleet: FleetIndex, verb: ConsoleVerb, draft: ConfirmedDraft) -> Iterator[tuple[PackageScope, str]]:
    """Yield each package to which an action applies, and the risk of its draft."""
    target = fleet.by_target[draft.target]
    for row in target.packages:
        is_affected = row.package == draft.package or (verb != "approve" and row.draft is not None)
        if is_affected and row.draft:
            yield PackageScope(target.labels, row.package, row.tenant), row.draft.content.risk.level


def may_review(rules: list[RoleRule], scope: PackageScope, risk: str) -> bool:
    levels = ["low", "medium", "high"]
    return any(
        rule.role != "viewer" and rule.covers(scope) and levels.index(risk) <= levels.index(rule.max_risk)
        for rule in rules
    )


def fail_to_open() -> AbstractContextManager[DraftReview]:
    raise AssertionError("the test applies no job")


@settings(max_examples=200, deadline=None)
@given(
    FLEETS,
    st.lists(RULES, min_size=1, max_size=3),
    st.lists(RULES, max_size=3),
    st.sampled_from(["approve", "propose", "reject"]),
)
def test_an_action_applies_only_to_permitted_drafts(
    fleet: FleetIndex, rules: list[RoleRule], later_rules: list[RoleRule], verb: ConsoleVerb
) -> None:
    store = ConfirmationStore(lambda: 0.0)
    jobs = ReviewJobs(store, fail_to_open, lambda: None, lambda: 0.0)
    readable = restrict_index(fleet, Permissions(tuple(rules)))
    request = ReviewRequest(verb, tuple(ChangeSelection(change.key) for change in readable.changes))

    confirmation = store.create(fleet, ANA, Permissions(tuple(rules)), request)

    assert all(
        may_review(rules, scope, risk)
        for draft in confirmation.drafts
        for scope, risk in list_affected(fleet, verb, draft)
    )
    if not confirmation.drafts:
        return
    submission = Submission(confirmation.id, "tested", confirmation.typed_count, "key", "request")
    job = jobs.submit(submission, fleet, ANA, Permissions(tuple(later_rules)))
    assert all(
        may_review(later_rules, scope, risk)
        for item in job.items
        if item.state == "waiting"
        for draft in item.drafts
        for scope, risk in list_affected(fleet, verb, draft)
    )
    assert jobs.find(job.id, Reviewer("Eve", "eve@example.com"), Permissions(())) is None
