"""The packages of an approval whose earlier content can be proposed again, and the reasons of all others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.catalog.files import CommitId
from reconciler.krm.selectors import LabelSelector
from reconciler.output.fleet.model import PackageRow
from reconciler.output.fleet.publications import Publication
from reconciler.output.review.action_results import APPROVAL_RECORDED
from reconciler.review.people import Reviewer
from reconciler.review.permissions import ADMIN_PERMISSIONS, Permissions, RoleRule
from reconciler.review.restricted_index import restrict_index
from reconciler.review.reverts import list_published_drafts, select_reverts
from reconciler.review.review_job import JobItem, ReviewJob
from reconciler.review.review_requests import ConfirmedDraft, JobVerb, PublishedDraft
from tests.support.fleet_index import create_index, create_row, create_target

DRAFT = ConfirmedDraft(
    "lisbon", "web", "drafts/lisbon", CommitId("draft"), CommitId("before"), "update", "sha256:a", "a", "high",
    conflict_count=1, other_packages=("api",),
)  # fmt: skip
DONE = JobItem((DRAFT,), "done", commit="after")
SECOND = Publication(2, "after", "Ana", 10, "publish web", change_key="update")
NORTH = LabelSelector((("region", "north"),))


def create_job(*items: JobItem, verb: JobVerb = "approve") -> ReviewJob:
    return ReviewJob("job", verb, Reviewer("Ana", "ana@example.com"), "", "", "", "", 0.0, items, state="completed")


def select(
    published: PublishedDraft, *rows: PackageRow, permissions: Permissions = ADMIN_PERMISSIONS
) -> tuple[list[ConfirmedDraft], list[str]]:
    index = create_index([create_target("lisbon", {"region": "south"}, *rows)])
    drafts, excluded = select_reverts(index, permissions, [published], restrict_index(index, permissions))
    return list(drafts), [draft.reason.reason for draft in excluded]


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        pytest.param(create_job(DONE), [PublishedDraft(DRAFT, "after")], id="published"),
        pytest.param(create_job(replace(DONE, commit="")), [PublishedDraft(DRAFT, "")], id="merged-by-a-forge"),
        pytest.param(create_job(replace(DONE, code=APPROVAL_RECORDED)), [], id="recorded"),
        pytest.param(create_job(replace(DONE, state="failed")), [], id="failed"),
        pytest.param(create_job(DONE, verb="propose"), [], id="proposed"),
        pytest.param(create_job(DONE, verb="revert"), [], id="reverted"),
    ],
)
def test_only_published_drafts_can_be_reverted(job: ReviewJob, expected: list[PublishedDraft]) -> None:
    assert list(list_published_drafts(job)) == expected


@pytest.mark.parametrize(
    ("commit", "published_commit"),
    [pytest.param("after", "after", id="pushed"), pytest.param("", "draft", id="merged")],
)
def test_a_revert_goes_from_the_published_to_the_earlier_commit(commit: str, published_commit: str) -> None:
    drafts, _ = select(PublishedDraft(DRAFT, commit), create_row("lisbon", "web", publication=SECOND))

    assert [(draft.published_head, draft.head, draft.risk) for draft in drafts] == [(published_commit, "before", "low")]


@pytest.mark.parametrize(
    ("draft", "row", "reason"),
    [
        pytest.param(replace(DRAFT, is_removal=True), None, "Removal", id="removal"),
        pytest.param(DRAFT, None, "PackageDeleted", id="deleted-later"),
        pytest.param(
            replace(DRAFT, head=CommitId("draft-of-lisbon")), create_row("lisbon", "web", change="update"),
            "NotRecorded", id="before-the-next-pass",
        ),
        pytest.param(
            DRAFT, create_row("lisbon", "web", change="later", publication=SECOND), "DraftOpen", id="open-draft"
        ),
        pytest.param(DRAFT, create_row("lisbon", "web"), "UnknownRevision", id="no-revision"),
        pytest.param(
            DRAFT, create_row("lisbon", "web", publication=replace(SECOND, commit="later")), "PublishedAgain",
            id="published-again",
        ),
        pytest.param(
            DRAFT, create_row("lisbon", "web", publication=replace(SECOND, change_key="later")), "PublishedAgain",
            id="other-change",
        ),
        pytest.param(
            DRAFT, create_row("lisbon", "web", publication=replace(SECOND, number=1)), "FirstInstallation", id="first"
        ),
    ],
)  # fmt: skip
def test_other_packages_have_a_reason(draft: ConfirmedDraft, row: PackageRow | None, reason: str) -> None:
    assert select(PublishedDraft(draft, "after"), *([row] if row else [])) == ([], [reason])


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(RoleRule("reviewer", max_risk="low"), ([1], []), id="low-risk"),
        pytest.param(RoleRule("viewer"), ([0], ["NotPermitted"]), id="viewer"),
        pytest.param(RoleRule("reviewer", targets=NORTH), ([0], []), id="other-target"),
        pytest.param(RoleRule("reviewer", tenants=("payments",)), ([0], []), id="other-tenant"),
    ],
)
@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_person_sees_only_readable_packages(
    rule: RoleRule, expected: tuple[list[int], list[str]], is_deleted: bool
) -> None:
    rows = [] if is_deleted else [create_row("lisbon", "web", publication=SECOND)]
    drafts, reasons = select(PublishedDraft(DRAFT, "after"), *rows, permissions=Permissions((rule,)))

    can_read = rule.targets != NORTH and not rule.tenants
    assert ([len(drafts)], reasons) == (([0], ["PackageDeleted"] * can_read) if is_deleted else expected)
