"""Tests of races with other writers, refused pushes and killed passes: no change is lost."""

from pathlib import Path

import pytest

from tests.support.git_repositories import git, read_refs, write_hook
from tests.support.world import STATE, World, config_map, package, small_world, variant

pytestmark = pytest.mark.real_git


@pytest.fixture
def world(tmp_path: Path) -> World:
    return small_world(tmp_path)


def release_metrics(world: World) -> None:
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})


def open_replica(world: World) -> World:
    """Return the same world with the cache of another daemon."""
    return World(world.folder, cache=str(world.folder / "replica"))


@pytest.mark.slow
def test_two_replicas_at_once_produce_the_same_commits(world: World) -> None:
    other = open_replica(world)

    after = world.sync_while(other.sync)

    assert set(after.outcomes.values()) <= {"draft", "drafted"}
    assert world.sync().is_unchanged
    assert other.sync().is_unchanged


@pytest.mark.slow
def test_a_person_who_edits_the_draft_during_a_push_wins(world: World) -> None:
    world.sync()
    release_metrics(world)

    after = world.sync_while(lambda: world.commit("drafts/berlin", {"metrics/notes.md": "checked\n"}))

    assert world.text("drafts/berlin", "metrics/notes.md") == "checked\n"
    assert after.outcomes["berlin/metrics"] == "draft"
    assert "metrics:2.0" in world.text("drafts/berlin", "metrics/deployment.yaml")
    assert world.sync().is_unchanged


@pytest.mark.slow
def test_a_merge_during_a_push_is_recognized_in_the_same_pass(world: World) -> None:
    world.sync()
    release_metrics(world)

    world.sync_while(lambda: world.merge("berlin", "squash"))

    after = world.sync_until_unchanged()
    assert after.outcomes["berlin/gateway"] == "published"
    assert world.record("berlin", "metrics")["revision"] == 1
    world.merge("berlin", "merge")
    world.sync_until_unchanged()
    assert "metrics:2.0" in world.text("clusters/berlin", "metrics/deployment.yaml")


@pytest.mark.slow
@pytest.mark.emits("race_lost")
def test_a_lost_race_at_one_cluster_does_not_stop_the_others(world: World) -> None:
    world.sync()
    world.write({f"regions/{item}.yaml": config_map(f"region-{item}", api="new") for item in ("north", "south")})

    after = world.sync_while(lambda: world.commit("drafts/berlin", {"README.md": "ours\n"}))

    assert "api: new" in world.text("drafts/lisbon", "gateway/endpoints.yaml")
    assert after.changed_branches == {"drafts/berlin", "drafts/lisbon"}
    assert world.text("drafts/berlin", "README.md") == "ours\n"
    assert world.sync().is_unchanged


@pytest.mark.slow
@pytest.mark.emits("push_failed")
def test_a_refused_push_is_reported_and_not_recorded_as_drafted(world: World) -> None:
    world.sync()
    release_metrics(world)
    write_hook(world.fleet, "update", 'case "$1" in refs/heads/drafts/berlin) echo no secrets here >&2; exit 1;; esac')

    refused = world.sync()

    assert "PushRefused" in refused.codes
    assert refused.outcomes["berlin/metrics"] == "PushRefused"
    assert world.sync().changed_branches == set()
    (world.fleet / "hooks" / "update").unlink()
    assert world.sync().outcomes["berlin/metrics"] == "draft"
    assert world.sync().is_unchanged


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "remaining_refs",
    [
        pytest.param((), id="before-anything-was-pushed"),
        pytest.param(("refs/heads/clusters/berlin", "refs/heads/clusters/lisbon"), id="after-the-cluster-branches"),
        pytest.param(
            ("refs/heads/clusters/lisbon", "refs/heads/drafts/lisbon", STATE + "lisbon"), id="after-one-cluster"
        ),
        pytest.param(("berlin", "lisbon"), id="before-the-status"),
    ],
)
def test_after_a_kill_the_next_pass_produces_the_same_refs_as_an_uninterrupted_one(
    world: World, remaining_refs: tuple[str, ...]
) -> None:
    world.sync()
    whole = read_refs(world.fleet)
    for name in whole:
        if not name.endswith(remaining_refs or "nothing"):
            git(world.fleet, "update-ref", "-d", name)

    open_replica(world).sync()

    assert read_refs(world.fleet) == whole


@pytest.mark.slow
def test_a_draft_branch_that_another_person_created_is_appended_to(world: World) -> None:
    world.sync()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    world.set_ref("refs/heads/drafts/berlin", world.head("clusters/berlin"))
    edited_head = world.commit("drafts/berlin", {"README.md": "ours\n"})
    release_metrics(world)

    world.sync()

    assert git(world.fleet, "merge-base", edited_head, "drafts/berlin") == edited_head
    assert world.sync().is_unchanged
    world.merge("berlin", "merge")
    world.sync_until_unchanged()
    assert world.text("clusters/berlin", "README.md") == "ours\n"
    assert "metrics:2.0" in world.text("clusters/berlin", "metrics/deployment.yaml")


@pytest.mark.slow
def test_a_merge_with_the_draft_as_first_parent_is_recognized(world: World) -> None:
    world.sync()
    world.merge("berlin", "squash")
    release_metrics(world)
    world.sync_until_unchanged()
    world.commit("clusters/berlin", {"README.md": "ours\n"})
    world.sync_until_unchanged()
    draft, branch = world.head("drafts/berlin"), world.head("clusters/berlin")
    tree = git(world.fleet, "merge-tree", "--write-tree", draft, branch)
    turned = git(world.fleet, "commit-tree", "-p", draft, "-p", branch, "-m", "turned", tree)
    world.set_ref("refs/heads/clusters/berlin", turned)

    after = world.sync_until_unchanged()

    assert after.outcomes["berlin/metrics"] == "published"
    assert world.head("drafts/berlin") == ""
