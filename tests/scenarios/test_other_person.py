"""Tests of the setting `review.require_other_person`: authors of a change do not approve it themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.review.people import Reviewer
from tests.support.console_reviews import ReviewConsole
from tests.support.git_repositories import git
from tests.support.history_world import HistoryWorld, with_history
from tests.support.prepared_worlds import begin
from tests.support.world import World, small_world

# Ada is the author of all commits of the config, and of all local changes.
ADA = Reviewer("Ada", "ADA@example.com")
GRACE = Reviewer("Grace", "grace@example.com")
REQUIRED = {"require_other_person": True}


def build_history(folder: Path) -> HistoryWorld:
    world = with_history(small_world(folder, review=REQUIRED))
    world.sync()
    return world


def build_drafted(folder: Path) -> World:
    """Return a fleet whose config is a folder without Git."""
    world = small_world(folder, review=REQUIRED)
    world.sync()
    return world


def approve(world: World, person: Reviewer, *targets: str) -> dict[str, str]:
    console = ReviewConsole(world)
    return console.run(console.submit(console.confirm("install gateway", "approve", *targets, person=person)))


def test_the_author_of_the_config_commit_cannot_approve(tmp_path: Path) -> None:
    world = begin(tmp_path, build_history)

    assert approve(world, ADA, "lisbon") == {"lisbon gateway": "skipped OtherPersonRequired"}
    assert world.paths(world.fleet, "clusters/lisbon", "gateway") == []
    assert approve(world, GRACE, "lisbon") == {"lisbon gateway": "done"}


def test_the_author_of_a_local_change_cannot_approve(tmp_path: Path) -> None:
    world = begin(tmp_path, build_drafted)
    world.edit("drafts/berlin", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")

    # The config has no commits, so that Ada can approve the draft of Lisbon.
    assert approve(world, ADA) == {"berlin gateway": "skipped OtherPersonRequired", "lisbon gateway": "done"}
    assert approve(world, GRACE) == {"berlin gateway": "done"}


def test_a_command_checks_the_author_too(tmp_path: Path) -> None:
    world = begin(tmp_path, build_history)

    (result,) = world.run_review_action("approve", "lisbon", person=("Ada", "ada@example.com"))

    (reason,) = result.reasons
    config = git(world.repo, "rev-parse", "main")[:12]
    assert (result.outcome, reason.reason) == ("refused", "OtherPersonRequired")
    assert reason.message == (
        f"ada@example.com is the author of the config commit {config}; another person must approve the draft"
    )


def test_an_unknown_config_commit_prevents_the_approval(tmp_path: Path) -> None:
    world = begin(tmp_path, build_history)
    world.squash_config()

    (result,) = world.run_review_action("approve", "lisbon")

    (reason,) = result.reasons
    assert reason.reason == "OtherPersonRequired"
    assert reason.message.startswith("the author of the config commit cannot be determined")


@pytest.mark.parametrize("verb", ["propose", "reject"])
def test_an_author_can_propose_and_reject(tmp_path: Path, verb: str) -> None:
    world = begin(tmp_path, build_history)

    (result,) = world.run_review_action(
        verb,  # type: ignore[arg-type]
        "lisbon",
        person=("Ada", "ada@example.com"),
        should_reject_unproposed=True,
    )

    assert result.outcome == "done"


def test_an_author_can_approve_by_default(tmp_path: Path) -> None:
    world = with_history(small_world(tmp_path))
    world.sync()

    assert approve(world, ADA, "lisbon") == {"lisbon gateway": "done"}
