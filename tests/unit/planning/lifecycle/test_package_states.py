"""Tests of the state of each package. Its refs decide, and the first matching state is used."""

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
from tests.unit.planning.builders import (
    FakeRepository,
    build_commit_id,
    build_record,
    build_state,
    build_target,
    build_tree_id,
    build_version,
)

HEAD = build_commit_id("d1")
OURS = build_version("v1")
PUBLISHED = replace(
    build_record(
        published_version=OURS, last_revision=3, revisions=(PublishedRevision(3, build_commit_id("b1"), OURS),)
    ),
    desired_tree=build_tree_id("v1"),
)
DRAFTED = replace(
    PUBLISHED, draft_version=build_version("v2", "v1"), draft_branch="drafts/berlin", desired_tree=build_tree_id("v2")
)
UNKNOWN = replace(PUBLISHED, published_version=None, revisions=())
ERROR = {"code": "Broken", "severity": "error", "message": "it broke"}
WARNING = {"code": "Odd", "severity": "warning", "message": "it is odd"}
WAITS = {"type": "Ready", "status": "False", "reason": "DownstreamProposed", "message": "its update waits"}


def add_outcome(package_record: PackageRecord, kind: str, *findings: Mapping[str, str], **more: Any) -> PackageRecord:
    return replace(package_record, outcome={"kind": kind, "findings": findings, **more})


def find_target_package(
    package_record: PackageRecord,
    published: str | None = "v1",
    drafted: str | None = None,
    proposed_head: str = "",
    **fields: Any,
) -> TargetPackage | None:
    tables = FakeRepository({"b1": {"gw": published}})
    on = TargetSnapshot(
        build_target(),
        build_state(packages={"gw": package_record}),
        TargetHeads(build_commit_id("b1")),
        tables,
        "drafts/{repository}",
    )
    drafts = []
    if drafted is not None:
        tree_there = build_tree_id(drafted) if drafted else None
        package = DraftedPackage(
            "gw", package_record, build_tree_id(published) if published else None, tree_there, {}, **fields
        )
        point = build_commit_id(proposed_head) if proposed_head else None
        known = DraftBranch(HEAD, build_commit_id("b1"))
        drafts = [
            OpenDraft(on.target, "drafts/berlin", known.head, known.base, known.base, point, False, (package,), ())
        ]
    return next(list_target_packages(on, drafts), None)


@pytest.mark.parametrize(
    ("target_package", "expected"),
    [
        pytest.param(find_target_package(PUBLISHED), "published", id="the-branch-has-it"),
        pytest.param(find_target_package(UNKNOWN), "published", id="it-was-adopted"),
        pytest.param(find_target_package(DRAFTED, drafted="v2"), "draft", id="an-open-draft"),
        pytest.param(find_target_package(DRAFTED, None, "v2"), "draft", id="a-new-package"),
        pytest.param(
            find_target_package(DRAFTED, drafted="x", is_edited=True), "edited", id="people-changed-the-draft"
        ),
        pytest.param(find_target_package(PUBLISHED, drafted="x"), "edited", id="people-drafted-it-themselves"),
        pytest.param(
            find_target_package(DRAFTED, drafted="v2", proposed_head="d1"), "proposed", id="proposed-as-it-stands"
        ),
        pytest.param(
            find_target_package(DRAFTED, drafted="v2", proposed_head="d0"), "draft", id="moved-on-since-it-was-proposed"
        ),
        pytest.param(
            find_target_package(DRAFTED, drafted="x", proposed_head="d1", is_edited=True),
            "proposed",
            id="proposed-with-edits",
        ),
        pytest.param(find_target_package(PUBLISHED, drafted=""), "removal", id="a-draft-takes-it-away"),
        pytest.param(
            find_target_package(replace(PUBLISHED, removal=ProposedRemoval("removals/berlin", build_tree_id("v1")))),
            "removal",
            id="put-up-for-removal",
        ),
        pytest.param(
            find_target_package(
                replace(PUBLISHED, removal=ProposedRemoval("removals/berlin", build_tree_id("v1"), is_declined=True))
            ),
            "declined",
            id="its-removal-was-declined",
        ),
        pytest.param(
            find_target_package(
                replace(PUBLISHED, desired_tree=build_tree_id("v2"), declined_trees=(build_tree_id("v2"),))
            ),
            "declined",
            id="the-version-was-declined",
        ),
        pytest.param(
            find_target_package(replace(PUBLISHED, declined_trees=(build_tree_id("v1"),))),
            "published",
            id="declined-once-and-published-since",
        ),
        pytest.param(find_target_package(add_outcome(PUBLISHED, "blocked", ERROR)), "blocked", id="an-error"),
        pytest.param(
            find_target_package(add_outcome(DRAFTED, "blocked", ERROR), drafted="v2"),
            "blocked",
            id="an-error-beside-a-draft",
        ),
        pytest.param(
            find_target_package(add_outcome(DRAFTED, "blocked", conditions=[WAITS]), drafted="v2", proposed_head="d1"),
            "proposed",
            id="its-update-waits-for-the-proposal",
        ),
        pytest.param(
            find_target_package(add_outcome(PUBLISHED, "blocked", conditions=[WAITS])),
            "blocked",
            id="not-ready-without-an-error",
        ),
        pytest.param(
            find_target_package(add_outcome(PUBLISHED, "held", WARNING)), "held", id="kept-though-nothing-wants-it"
        ),
        pytest.param(find_target_package(PUBLISHED.to_tombstone()), "orphaned", id="given-up-and-still-there"),
        pytest.param(find_target_package(PUBLISHED.to_tombstone(), None), None, id="gone-for-good"),
        pytest.param(find_target_package(build_record(is_owned=False), None), None, id="never-there"),
        pytest.param(
            find_target_package(add_outcome(build_record(is_owned=False), "blocked", ERROR), None),
            "blocked",
            id="denied-before-it-was-there",
        ),
    ],
)
def test_state_of_a_package(target_package: TargetPackage | None, expected: str | None) -> None:
    assert (target_package and target_package.state) == expected
    assert expected is None or expected in PACKAGE_STATES


@pytest.mark.parametrize(
    ("target_package", "expected"),
    [
        pytest.param(find_target_package(PUBLISHED), (3, False), id="a-revision-of-ours"),
        pytest.param(find_target_package(PUBLISHED, "x"), (3, True), id="changed-by-people-since"),
        pytest.param(find_target_package(UNKNOWN), (None, False), id="none-of-ours"),
        pytest.param(find_target_package(PUBLISHED, None, "v2"), (None, False), id="not-there"),
    ],
)
def test_published_revision_and_local_changes(
    target_package: TargetPackage | None, expected: tuple[int | None, bool]
) -> None:
    assert target_package is not None
    assert (target_package.revision and target_package.revision.number, target_package.is_edited) == expected


@pytest.mark.parametrize(
    ("target_package", "expected"),
    [
        pytest.param(
            find_target_package(add_outcome(PUBLISHED, "blocked", ERROR, WARNING)), ["Broken"], id="errors-alone-block"
        ),
        pytest.param(
            find_target_package(add_outcome(PUBLISHED, "blocked", conditions=[WAITS])),
            ["DownstreamProposed"],
            id="not-ready",
        ),
        pytest.param(find_target_package(add_outcome(PUBLISHED, "held", WARNING)), ["Odd"], id="what-holds-it"),
        pytest.param(
            find_target_package(add_outcome(PUBLISHED, "published", WARNING)), [], id="a-warning-is-no-reason"
        ),
    ],
)
def test_reasons_come_from_the_last_pass(target_package: TargetPackage | None, expected: list[str]) -> None:
    assert target_package is not None
    assert [blocking_reason.reason for blocking_reason in target_package.reasons] == expected


def test_status_file_is_unmodified_if_a_revision_contains_it() -> None:
    ours = find_target_package(PUBLISHED)
    assert ours is not None

    assert replace(ours, status_blob=OURS.status).is_status_file_unmodified
    assert not replace(ours, status_blob=build_version("x").status).is_status_file_unmodified
