"""Conflicts of a pull request: its check fails until a reviewer accepts them for the head of the draft."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from tests.support.fake_forge.core import FakePullRequest
from tests.support.fake_forge.scene import Product
from tests.support.forge_world import ForgeWorld, forge_world
from tests.support.git_repositories import git
from tests.support.world import STATE, package, variant

LABEL = "accept-conflicts"
DRAFT = "drafts/lisbon"


def update(world: ForgeWorld, version: str, replicas: int, image: str = "1.0") -> None:
    world.release("web", version, package("web", replicas=replicas, image=image))
    world.write({"web-lisbon.yaml": variant("web-lisbon", "lisbon", "web", version)})


def conflicted(world: ForgeWorld) -> FakePullRequest:
    """Publish web, change it on the cluster branch, and return the pull request of an update of the same field."""
    world.run_review_action("approve", "lisbon", should_approve_unproposed=True) if world.sync() else None
    world.sync_until_unchanged()
    world.edit("clusters/lisbon", "web/deployment.yaml", "replicas: 2", "replicas: 5")
    update(world, "v2", 3)
    world.sync_until_unchanged()
    return world.open_requests[DRAFT]


def check(world: ForgeWorld) -> tuple[str, str]:
    """Return the check of the draft's head: its state in GitHub's words, and its description."""
    status = world.on_forge.status(world.head(DRAFT), "reconciler")
    assert status is not None
    return status.state.replace("failed", "failure"), status.description


def state_of(world: ForgeWorld) -> str:
    return check(world)[0]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ForgeWorld]:
    with forge_world("github", tmp_path, ("lisbon",)) as new_forge_world:
        yield new_forge_world


@pytest.mark.parametrize("product", get_args(Product))
def test_the_check_fails_until_a_reviewer_sets_the_label_on_this_head(product: Product, tmp_path: Path) -> None:
    with forge_world(product, tmp_path, ("lisbon",)) as world:
        pull_request = conflicted(world)
        assert pull_request.title.endswith("lisbon/web: update v1 → v2; 1 upstream change not applied")
        assert "spec.replicas: local 5 is kept, upstream 3 is not applied" in pull_request.body.partition("###")[0]
        assert f"sets the label `{LABEL}`" in pull_request.body
        fails = ("failure", f"ConflictsNotAccepted: web has 1 conflict; review them and set the label {LABEL}")
        assert check(world) == fails
        world.writes()
        assert world.sync_until_unchanged().is_unchanged
        assert world.writes() == []

        world.on_forge.set_label(pull_request.number, LABEL)
        world.sync_until_unchanged()
        assert check(world) == ("success", "nothing blocks publication: a reviewer accepted the conflicts")
        world.writes()
        assert world.sync_until_unchanged().is_unchanged
        assert world.writes() == []

        world.edit(DRAFT, "web/deployment.yaml", "web:1.0", "web:1.0-reviewed")
        world.sync_until_unchanged()
        assert (pull_request.labels, check(world)) == ([], fails), "a push needs the label again"
        world.on_forge.set_label(pull_request.number, LABEL)
        world.sync_until_unchanged()
        assert state_of(world) == "success"


def test_a_label_that_is_taken_off_fails_the_check_again(world: ForgeWorld) -> None:
    pull_request = conflicted(world)
    for labels, expected in (([LABEL], "success"), ([], "failure"), ([LABEL, "else"], "success")):
        pull_request.labels = [*labels]
        world.on_forge.touch(pull_request)
        world.sync_until_unchanged()
        assert (labels, state_of(world)) == (labels, expected)


def test_a_label_does_not_count_for_a_push_that_nobody_saw_between(world: ForgeWorld) -> None:
    pull_request = conflicted(world)
    world.on_forge.set_label(pull_request.number, LABEL)
    world.edit(DRAFT, "web/deployment.yaml", "web:1.0", "web:1.0-other")

    world.sync_until_unchanged()

    assert (pull_request.labels, state_of(world)) == ([], "failure")


def test_a_label_does_not_count_for_an_update_of_ours(world: ForgeWorld) -> None:
    pull_request = conflicted(world)
    world.on_forge.set_label(pull_request.number, LABEL)
    world.sync_until_unchanged()
    update(world, "v3", 4)

    world.sync_until_unchanged()

    assert (pull_request.labels, state_of(world)) == ([], "failure")


def test_a_label_that_is_set_just_before_our_push_does_not_count(world: ForgeWorld) -> None:
    pull_request = conflicted(world)
    update(world, "v3", 4)

    world.sync_while(lambda: world.on_forge.set_label(pull_request.number, LABEL))
    world.sync_until_unchanged()

    assert state_of(world) == "failure"


def test_a_label_from_before_the_first_look_does_not_count(world: ForgeWorld) -> None:
    pull_request = conflicted(world)
    git(world.fleet, "update-ref", "-d", f"{STATE}lisbon")
    world.on_forge.set_label(pull_request.number, LABEL)

    world.sync_until_unchanged()

    assert state_of(world) == "failure", "with the state, the proof is lost, and the safe end is to ask again"
    world.on_forge.set_label(pull_request.number, LABEL)
    world.sync_until_unchanged()
    assert state_of(world) == "success"


def test_replicas_agree_without_a_database(world: ForgeWorld) -> None:
    replica = ForgeWorld(world.folder, **{**world._settings, "cache": str(world.folder / "replica")})
    replica.fleet = world.fleet
    pull_request = conflicted(world)
    replica.sync_until_unchanged()
    assert state_of(world) == "failure"
    world.on_forge.set_label(pull_request.number, LABEL)

    replica.sync_until_unchanged()

    assert (pull_request.labels, state_of(world)) == ([LABEL], "success")
    assert world.sync_until_unchanged().is_unchanged
    assert (pull_request.labels, state_of(world)) == ([LABEL], "success")


def test_other_faults_stay_in_the_way(world: ForgeWorld) -> None:
    pull_request = conflicted(world)
    gate = "info:\n  readinessGates:\n    - conditionType: example.com/Tested\n"
    world.commit(DRAFT, {"web/Kptfile": world.text(DRAFT, "web/Kptfile") + gate})
    world.sync_until_unchanged()
    world.on_forge.set_label(pull_request.number, LABEL)

    world.sync_until_unchanged()

    state, description = check(world)
    assert (state, description.partition(":")[0]) == ("failure", "GateNotMet")


def test_a_draft_without_conflicts_keeps_its_labels_and_costs_no_more_calls(world: ForgeWorld) -> None:
    world.sync_until_unchanged()
    pull_request = world.open_requests[DRAFT]
    assert (state_of(world), pull_request.title) == ("success", "lisbon/web: install v1")
    assert not [path for method, path in world.forge.calls if path.endswith(f"/pulls/{pull_request.number}")]
    world.on_forge.set_label(pull_request.number, LABEL)

    world.sync_until_unchanged()

    assert (pull_request.labels, state_of(world)) == ([LABEL], "success")


def test_a_forge_that_keeps_the_label_leaves_the_check_failing(world: ForgeWorld) -> None:
    pull_request = conflicted(world)
    world.on_forge.set_label(pull_request.number, LABEL)
    world.sync_until_unchanged()
    update(world, "v3", 4)
    world.forge.forbid("Resource not accessible by integration")
    refused = world.sync()
    assert "PullRequestRefused" in refused.codes
    world.forge.recover()
    world.now += 4_000

    world.sync_until_unchanged()

    assert (pull_request.labels, state_of(world)) == ([], "failure")
