"""Tests of pull requests with conflicts: the check fails until a reviewer accepts them for the current head."""

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


def release_update(world: ForgeWorld, version: str, replicas: int, image: str = "1.0") -> None:
    world.release("web", version, package("web", replicas=replicas, image=image))
    world.write({"web-lisbon.yaml": variant("web-lisbon", "lisbon", "web", version)})


def create_conflict(world: ForgeWorld) -> FakePullRequest:
    """Publish web, change it on the target branch, update the same field, and return the pull request."""
    world.run_review_action("approve", "lisbon", should_approve_unproposed=True) if world.sync() else None
    world.sync_until_unchanged()
    world.edit("clusters/lisbon", "web/deployment.yaml", "replicas: 2", "replicas: 5")
    release_update(world, "v2", 3)
    world.sync_until_unchanged()
    return world.open_requests[DRAFT]


def read_check(world: ForgeWorld) -> tuple[str, str]:
    """Return the check of the draft head: its state in the terms of GitHub, and its description."""
    status = world.on_forge.status(world.head(DRAFT), "reconciler")
    assert status is not None
    return status.state.replace("failed", "failure"), status.description


def read_check_state(world: ForgeWorld) -> str:
    return read_check(world)[0]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ForgeWorld]:
    with forge_world("github", tmp_path, ("lisbon",)) as new_forge_world:
        yield new_forge_world


@pytest.mark.slow
@pytest.mark.parametrize("product", get_args(Product))
@pytest.mark.emits("label_removed", "pull_request_updated")
def test_check_fails_until_a_reviewer_sets_the_label_on_this_head(product: Product, tmp_path: Path) -> None:
    with forge_world(product, tmp_path, ("lisbon",)) as world:
        pull_request = create_conflict(world)
        assert pull_request.title.endswith("lisbon/web: update v1 → v2; 1 upstream change not applied")
        assert "spec.replicas: local 5 is kept, upstream 3 is not applied" in pull_request.body.partition("###")[0]
        assert f"accepts the conflicts with the label `{LABEL}`" in pull_request.body
        fails = ("failure", f"ConflictsNotAccepted: web has 1 conflict; review the conflicts and set the label {LABEL}")
        assert read_check(world) == fails
        world.writes()
        assert world.sync_until_unchanged().is_unchanged
        assert world.writes() == []

        world.on_forge.set_label(pull_request.number, LABEL)
        world.sync_until_unchanged()
        assert read_check(world) == ("success", "nothing blocks publication: a reviewer accepted the conflicts")
        world.writes()
        assert world.sync_until_unchanged().is_unchanged
        assert world.writes() == []

        world.edit(DRAFT, "web/deployment.yaml", "web:1.0", "web:1.0-reviewed")
        world.sync_until_unchanged()
        assert (pull_request.labels, read_check(world)) == ([], fails), "a push needs the label again"
        world.on_forge.set_label(pull_request.number, LABEL)
        world.sync_until_unchanged()
        assert read_check_state(world) == "success"


@pytest.mark.slow
def test_check_fails_after_the_label_is_removed(world: ForgeWorld) -> None:
    pull_request = create_conflict(world)
    for labels, expected in (([LABEL], "success"), ([], "failure"), ([LABEL, "else"], "success")):
        pull_request.labels = [*labels]
        world.on_forge.touch(pull_request)
        world.sync_until_unchanged()
        assert (labels, read_check_state(world)) == (labels, expected)


@pytest.mark.slow
def test_label_does_not_count_after_an_unobserved_push(world: ForgeWorld) -> None:
    pull_request = create_conflict(world)
    world.on_forge.set_label(pull_request.number, LABEL)
    world.edit(DRAFT, "web/deployment.yaml", "web:1.0", "web:1.0-other")

    world.sync_until_unchanged()

    assert (pull_request.labels, read_check_state(world)) == ([], "failure")


@pytest.mark.slow
def test_label_does_not_count_after_an_update_by_the_daemon(world: ForgeWorld) -> None:
    pull_request = create_conflict(world)
    world.on_forge.set_label(pull_request.number, LABEL)
    world.sync_until_unchanged()
    release_update(world, "v3", 4)

    world.sync_until_unchanged()

    assert (pull_request.labels, read_check_state(world)) == ([], "failure")


@pytest.mark.slow
def test_label_set_just_before_an_update_does_not_count(world: ForgeWorld) -> None:
    pull_request = create_conflict(world)
    release_update(world, "v3", 4)

    world.sync_while(lambda: world.on_forge.set_label(pull_request.number, LABEL))
    world.sync_until_unchanged()

    assert read_check_state(world) == "failure"


@pytest.mark.slow
def test_label_without_recorded_state_does_not_count(world: ForgeWorld) -> None:
    pull_request = create_conflict(world)
    git(world.fleet, "update-ref", "-d", f"{STATE}lisbon")
    world.on_forge.set_label(pull_request.number, LABEL)

    world.sync_until_unchanged()

    assert read_check_state(world) == "failure", "without the state, the label has no proof and is required again"
    world.on_forge.set_label(pull_request.number, LABEL)
    world.sync_until_unchanged()
    assert read_check_state(world) == "success"


@pytest.mark.slow
def test_replicas_agree_without_shared_state(world: ForgeWorld) -> None:
    replica = ForgeWorld(world.folder, **{**world._settings, "cache": str(world.folder / "replica")})
    replica.fleet = world.fleet
    pull_request = create_conflict(world)
    replica.sync_until_unchanged()
    assert read_check_state(world) == "failure"
    world.on_forge.set_label(pull_request.number, LABEL)

    replica.sync_until_unchanged()

    assert (pull_request.labels, read_check_state(world)) == ([LABEL], "success")
    assert world.sync_until_unchanged().is_unchanged
    assert (pull_request.labels, read_check_state(world)) == ([LABEL], "success")


@pytest.mark.slow
def test_label_does_not_override_an_unmet_gate(world: ForgeWorld) -> None:
    pull_request = create_conflict(world)
    gate = "info:\n  readinessGates:\n    - conditionType: example.com/Tested\n"
    world.commit(DRAFT, {"web/Kptfile": world.text(DRAFT, "web/Kptfile") + gate})
    world.sync_until_unchanged()
    world.on_forge.set_label(pull_request.number, LABEL)

    world.sync_until_unchanged()

    state, description = read_check(world)
    assert (state, description.partition(":")[0]) == ("failure", "GateNotMet")


def test_draft_without_conflicts_keeps_its_labels_and_needs_no_extra_calls(world: ForgeWorld) -> None:
    world.sync_until_unchanged()
    pull_request = world.open_requests[DRAFT]
    assert (read_check_state(world), pull_request.title) == ("success", "lisbon/web: install v1")
    assert not [path for method, path in world.forge.calls if path.endswith(f"/pulls/{pull_request.number}")]
    world.on_forge.set_label(pull_request.number, LABEL)

    world.sync_until_unchanged()

    assert (pull_request.labels, read_check_state(world)) == ([LABEL], "success")


@pytest.mark.slow
def test_check_fails_when_the_forge_refuses_to_remove_the_label(world: ForgeWorld) -> None:
    pull_request = create_conflict(world)
    world.on_forge.set_label(pull_request.number, LABEL)
    world.sync_until_unchanged()
    release_update(world, "v3", 4)
    world.forge.forbid("Resource not accessible by integration")
    refused = world.sync()
    assert "PullRequestRefused" in refused.codes
    world.forge.recover()
    world.now += 4_000

    world.sync_until_unchanged()

    assert (pull_request.labels, read_check_state(world)) == ([], "failure")
