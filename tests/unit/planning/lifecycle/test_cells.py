"""Where each package stands, by its refs: the first state that is true of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.planning.lifecycle.open_drafts import (
    PACKAGE_STATES,
    DraftedPackage,
    OpenDraft,
    TargetPackage,
    list_target_packages,
)
from reconciler.planning.model.state import DraftBranch, PackageRecord, ProposedRemoval, PublishedRevision
from reconciler.planning.observe.target_snapshot import TargetHeads, TargetSnapshot
from tests.unit.planning.values import Tables, commit, destination, offer, record, state, tree

HEAD = commit("d1")
OURS = offer("v1")
PUBLISHED = replace(
    record(published_version=OURS, last_revision=3, revisions=(PublishedRevision(3, commit("b1"), OURS),)),
    desired_tree=tree("v1"),
)
DRAFTED = replace(PUBLISHED, draft_version=offer("v2", "v1"), draft_branch="drafts/berlin", desired_tree=tree("v2"))
UNKNOWN = replace(PUBLISHED, published_version=None, revisions=())
ERROR = {"code": "Broken", "severity": "error", "message": "it broke"}
WARNING = {"code": "Odd", "severity": "warning", "message": "it is odd"}
WAITS = {"type": "Ready", "status": "False", "reason": "DownstreamProposed", "message": "its update waits"}


def outcome(package_record: PackageRecord, kind: str, *findings: Mapping[str, str], **more: Any) -> PackageRecord:
    return replace(package_record, outcome={"kind": kind, "findings": findings, **more})


def cell(
    package_record: PackageRecord,
    published: str | None = "v1",
    drafted: str | None = None,
    proposed_head: str = "",
    **fields: Any,
) -> TargetPackage | None:
    tables = Tables({"b1": {"gw": published}})
    on = TargetSnapshot(
        destination(), state(packages={"gw": package_record}), TargetHeads(commit("b1")), tables, "drafts/{repository}"
    )
    drafts = []
    if drafted is not None:
        tree_there = tree(drafted) if drafted else None
        package = DraftedPackage("gw", package_record, tree(published) if published else None, tree_there, {}, **fields)
        point = commit(proposed_head) if proposed_head else None
        known = DraftBranch(HEAD, commit("b1"))
        drafts = [
            OpenDraft(on.target, "drafts/berlin", known.head, known.base, known.base, point, False, (package,), ())
        ]
    return next(list_target_packages(on, drafts), None)


@pytest.mark.parametrize(
    ("target_package", "expected"),
    [
        pytest.param(cell(PUBLISHED), "published", id="the-branch-has-it"),
        pytest.param(cell(UNKNOWN), "published", id="it-was-adopted"),
        pytest.param(cell(DRAFTED, drafted="v2"), "draft", id="an-open-draft"),
        pytest.param(cell(DRAFTED, None, "v2"), "draft", id="a-new-package"),
        pytest.param(cell(DRAFTED, drafted="x", is_edited=True), "edited", id="people-changed-the-draft"),
        pytest.param(cell(PUBLISHED, drafted="x"), "edited", id="people-drafted-it-themselves"),
        pytest.param(cell(DRAFTED, drafted="v2", proposed_head="d1"), "proposed", id="proposed-as-it-stands"),
        pytest.param(cell(DRAFTED, drafted="v2", proposed_head="d0"), "draft", id="moved-on-since-it-was-proposed"),
        pytest.param(
            cell(DRAFTED, drafted="x", proposed_head="d1", is_edited=True), "proposed", id="proposed-with-edits"
        ),
        pytest.param(cell(PUBLISHED, drafted=""), "removal", id="a-draft-takes-it-away"),
        pytest.param(
            cell(replace(PUBLISHED, removal=ProposedRemoval("removals/berlin", tree("v1")))),
            "removal",
            id="put-up-for-removal",
        ),
        pytest.param(
            cell(replace(PUBLISHED, removal=ProposedRemoval("removals/berlin", tree("v1"), is_declined=True))),
            "declined",
            id="its-removal-was-declined",
        ),
        pytest.param(
            cell(replace(PUBLISHED, desired_tree=tree("v2"), declined_trees=(tree("v2"),))),
            "declined",
            id="the-version-was-declined",
        ),
        pytest.param(
            cell(replace(PUBLISHED, declined_trees=(tree("v1"),))), "published", id="declined-once-and-published-since"
        ),
        pytest.param(cell(outcome(PUBLISHED, "blocked", ERROR)), "blocked", id="an-error"),
        pytest.param(cell(outcome(DRAFTED, "blocked", ERROR), drafted="v2"), "blocked", id="an-error-beside-a-draft"),
        pytest.param(
            cell(outcome(DRAFTED, "blocked", conditions=[WAITS]), drafted="v2", proposed_head="d1"),
            "proposed",
            id="its-update-waits-for-the-proposal",
        ),
        pytest.param(
            cell(outcome(PUBLISHED, "blocked", conditions=[WAITS])), "blocked", id="not-ready-without-an-error"
        ),
        pytest.param(cell(outcome(PUBLISHED, "held", WARNING)), "held", id="kept-though-nothing-wants-it"),
        pytest.param(cell(PUBLISHED.to_tombstone()), "orphaned", id="given-up-and-still-there"),
        pytest.param(cell(PUBLISHED.to_tombstone(), None), None, id="gone-for-good"),
        pytest.param(cell(record(is_owned=False), None), None, id="never-there"),
        pytest.param(
            cell(outcome(record(is_owned=False), "blocked", ERROR), None), "blocked", id="denied-before-it-was-there"
        ),
    ],
)
def test_the_state_of_a_package(target_package: TargetPackage | None, expected: str | None) -> None:
    assert (target_package and target_package.state) == expected
    assert expected is None or expected in PACKAGE_STATES


@pytest.mark.parametrize(
    ("target_package", "expected"),
    [
        pytest.param(cell(PUBLISHED), (3, False), id="a-revision-of-ours"),
        pytest.param(cell(PUBLISHED, "x"), (3, True), id="changed-by-people-since"),
        pytest.param(cell(UNKNOWN), (None, False), id="none-of-ours"),
        pytest.param(cell(PUBLISHED, None, "v2"), (None, False), id="not-there"),
    ],
)
def test_what_is_published_and_whether_people_changed_it(
    target_package: TargetPackage | None, expected: tuple[int | None, bool]
) -> None:
    assert target_package is not None
    assert (target_package.revision and target_package.revision.number, target_package.is_edited) == expected


@pytest.mark.parametrize(
    ("target_package", "expected"),
    [
        pytest.param(cell(outcome(PUBLISHED, "blocked", ERROR, WARNING)), ["Broken"], id="errors-alone-block"),
        pytest.param(cell(outcome(PUBLISHED, "blocked", conditions=[WAITS])), ["DownstreamProposed"], id="not-ready"),
        pytest.param(cell(outcome(PUBLISHED, "held", WARNING)), ["Odd"], id="what-holds-it"),
        pytest.param(cell(outcome(PUBLISHED, "published", WARNING)), [], id="a-warning-is-no-reason"),
    ],
)
def test_reasons_are_those_of_the_last_pass(target_package: TargetPackage | None, expected: list[str]) -> None:
    assert target_package is not None
    assert [blocking_reason.reason for blocking_reason in target_package.reasons] == expected


def test_a_status_file_is_ours_where_it_is_that_of_a_revision() -> None:
    ours = cell(PUBLISHED)
    assert ours is not None

    assert replace(ours, status_blob=OURS.status).is_status_file_unmodified
    assert not replace(ours, status_blob=offer("x").status).is_status_file_unmodified
