"""Tests of the setting `review.approvals`: several people must approve a draft before it is published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.output.review.action_results import ReviewActionResult
from reconciler.review.people import Reviewer
from tests.support.console_reviews import ANA, LUIS, ReviewConsole
from tests.support.git_repositories import git, read_refs
from tests.support.prepared_worlds import begin
from tests.support.world import World, small_world

ADA, GRACE, EVE = (("Ada", "ada@example.com"), ("Grace", "grace@example.com"), ("Eve", "eve@example.com"))
APPROVALS = "refs/reconciler/state/_approved/drafts/lisbon"


def build_fleet(folder: Path) -> World:
    world = small_world(folder, review={"approvals": 2})
    world.sync()
    return world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return begin(tmp_path, build_fleet)


def approve(world: World, person: tuple[str, str], place: str = "lisbon", **more: Any) -> ReviewActionResult:
    (result,) = world.run_review_action("approve", place, person=person, should_approve_unproposed=True, **more)
    return result


def is_published(world: World, target: str = "lisbon", package: str = "gateway") -> bool:
    return world.paths(world.fleet, f"clusters/{target}", package) != []


def test_the_second_person_publishes_the_draft(world: World) -> None:
    first = approve(world, ADA, message="the diff is small")
    recorded = read_refs(world.fleet)
    before = is_published(world)
    (open_draft,) = world.list_open_drafts("lisbon")
    second = approve(world, GRACE)

    assert (first.outcome, first.is_successful, first.commit) == ("recorded", True, "")
    assert first.message == "1 of 2 approvals; 1 more approval by other people must follow"
    assert git(world.fleet, "log", "-1", "--format=%an <%ae>", recorded[APPROVALS]) == "Ada <ada@example.com>"
    assert open_draft.approved_by == ("Ada",)
    assert (before, second.outcome, is_published(world)) == (False, "done", True)
    message = git(world.fleet, "log", "-1", "--format=%B", "clusters/lisbon").splitlines()
    assert [line for line in message if line.startswith("Reconciler-Approved-By")] == [
        "Reconciler-Approved-By: Ada <ada@example.com>", "Reconciler-Approved-By: Grace <grace@example.com>",
    ]  # fmt: skip
    assert APPROVALS not in read_refs(world.fleet)


@pytest.mark.parametrize("person", [ADA, ("Ada Example", "ADA@example.com")], ids=["same", "other-case"])
def test_one_person_cannot_approve_twice(person: tuple[str, str], world: World) -> None:
    approve(world, ADA)
    refs = read_refs(world.fleet)
    again = approve(world, person)

    assert again.outcome == "unchanged"
    assert 'has already approved "drafts/lisbon"; the draft needs 1 more approval' in again.message
    assert read_refs(world.fleet) == refs


def test_a_changed_draft_makes_approvals_void(world: World) -> None:
    approve(world, ADA)
    world.edit("drafts/lisbon", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    (open_draft,) = world.list_open_drafts("lisbon")
    second = approve(world, GRACE)

    assert open_draft.approved_by == ()
    assert (second.outcome, is_published(world)) == ("recorded", False)
    assert approve(world, EVE).outcome == "done"
    assert "ada@example.com" not in git(world.fleet, "log", "-1", "--format=%B", "clusters/lisbon")


def test_two_people_who_approve_at_the_same_time_publish_the_draft(world: World) -> None:
    result = approve(world, GRACE, meddle=lambda: approve(world, ADA))

    assert (result.outcome, is_published(world)) == ("done", True)


def test_a_draft_that_moves_before_the_push_has_no_approval(world: World) -> None:
    def edit() -> None:
        world.edit("drafts/lisbon", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")

    result = approve(world, ADA, meddle=edit)

    assert (result.outcome, result.reasons[0].reason) == ("refused", "DraftMoved")
    assert APPROVALS not in read_refs(world.fleet)


def test_an_approval_covers_its_packages(world: World) -> None:
    approve(world, ADA, "berlin/gateway")
    metrics = approve(world, GRACE, "berlin/metrics")
    gateway = approve(world, EVE, "berlin/gateway")

    assert (metrics.outcome, gateway.outcome) == ("recorded", "done")
    assert is_published(world, "berlin")
    assert not is_published(world, "berlin", "metrics")


def test_a_rejection_deletes_the_approvals(world: World) -> None:
    approve(world, ADA)
    world.run_review_action("reject", "lisbon", should_reject_unproposed=True, message="wait")

    assert APPROVALS not in read_refs(world.fleet)
    assert approve(world, GRACE).outcome == "recorded"


def test_a_pass_keeps_approvals_and_changes_nothing(world: World) -> None:
    approve(world, ADA)
    refs = read_refs(world.fleet)
    world.sync()

    assert read_refs(world.fleet) == refs


def run(console: ReviewConsole, person: Reviewer, key: str) -> str:
    job = console.submit(console.confirm("install gateway", "approve", "lisbon", person=person), key=key)
    return console.run(job)["lisbon gateway"]


def test_two_people_in_the_console(world: World) -> None:
    console = ReviewConsole(world)
    first = run(console, ANA, "key-1")
    console.update()
    members = [member for change in console.index.changes for member in change.members if member.target == "lisbon"]
    again = run(console, ANA, "key-2")
    before = is_published(world)
    second = run(console, LUIS, "key-3")

    assert (first, again, second) == ("done ApprovalRecorded", "skipped Unchanged", "done")
    assert [member.approved_by for member in members] == [("Ana Silva",)]
    assert (before, is_published(world)) == (False, True)


def test_text_of_a_recorded_approval(world: World) -> None:
    result = approve(world, ADA)

    assert result.status_label == "approved"
