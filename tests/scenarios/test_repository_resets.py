"""Tests of emptied repositories: the daemon pushes nothing until an annotation acknowledges the reset."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from reconciler.reconcile.remotes.targets import ReviewSelection
from tests.support.git_repositories import git, make_bare, read_refs
from tests.support.policies import resource
from tests.support.prepared_worlds import begin, published
from tests.support.world import STATE, PassResult, World, repository

pytestmark = pytest.mark.real_git

RESET = "RepositoryReset"
BERLIN = "clusters/berlin.yaml"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return begin(tmp_path, published)


def replace_with_empty_repository(world: World) -> dict[str, str]:
    """Replace the fleet repository by an empty one. Return the refs of the old one."""
    refs = read_refs(world.fleet)
    shutil.rmtree(world.fleet)
    make_bare(world.fleet)
    return refs


def add_acknowledgement(text: str, after: PassResult, cluster: str) -> str:
    """Return a manifest with the annotation that the finding of a cluster prints."""
    (line,) = [
        match[0]
        for finding in after.findings
        if (match := _find_acknowledgement_line(finding.message)) and f" {cluster}:" in finding.message
    ]
    return text.replace("metadata:\n", f"metadata:\n  annotations: {{{line}}}\n", 1)


def _find_acknowledgement_line(message: str) -> re.Match[str] | None:
    return re.search(r'reconciler\.dev/ack-reset: "?[0-9a-f]{12}"?', message)


def test_nothing_is_pushed_to_an_emptied_repository(world: World) -> None:
    before = replace_with_empty_repository(world)

    after = world.sync()
    pass_result = world.sync()

    assert [finding.code for finding in after.findings if finding.code == RESET] == [RESET, RESET]
    assert read_refs(world.fleet) == {}
    assert pass_result.codes == after.codes
    head = before["refs/heads/clusters/berlin"][:12]
    assert any(f"reconciler.dev/ack-reset: {head}" in finding.message.replace('"', "") for finding in after.findings)


def test_a_plan_reports_the_reset_and_keeps_the_record_of_it(world: World) -> None:
    replace_with_empty_repository(world)

    assert RESET in world.plan().codes
    assert RESET in world.sync().codes


@pytest.mark.slow
def test_an_acknowledged_reset_drafts_all_packages_again(world: World) -> None:
    replace_with_empty_repository(world)
    after = world.sync()
    world.write({BERLIN: add_acknowledgement(repository("berlin"), after, "berlin")})

    acknowledged = world.sync()

    assert acknowledged.changed_branches == {"clusters/berlin", "drafts/berlin"}
    assert [finding.message.split(":")[0] for finding in acknowledged.findings if finding.code == RESET] == [
        "Repository lisbon"
    ]
    world.sync_until_unchanged()
    world.write({BERLIN: repository("berlin")})
    assert "drafts/berlin" not in world.sync().changed_branches


@pytest.mark.slow
def test_an_old_acknowledgment_does_not_acknowledge_the_next_reset(world: World) -> None:
    replace_with_empty_repository(world)
    world.write({BERLIN: add_acknowledgement(repository("berlin"), world.sync(), "berlin")})
    world.sync()
    world.commit("clusters/berlin", {"README.md": "by hand\n"})
    world.sync()
    replace_with_empty_repository(world)

    after = world.sync()

    assert "Repository berlin" in {finding.message.split(":")[0] for finding in after.findings if finding.code == RESET}
    assert read_refs(world.fleet) == {}


def test_a_wrong_acknowledgment_has_no_effect(world: World) -> None:
    replace_with_empty_repository(world)
    wrong = repository("berlin").replace("metadata:\n", "metadata:\n  annotations: {reconciler.dev/ack-reset: abc}\n")
    world.write({BERLIN: wrong})

    after = world.sync()

    assert any(
        'The current value of the annotation is "abc"' in finding.message
        for finding in after.findings
        if finding.code == RESET
    )
    assert read_refs(world.fleet) == {}


def test_a_new_cluster_waits_for_the_acknowledgment_of_the_others(world: World) -> None:
    replace_with_empty_repository(world)
    text = (world.config / "gateway.yaml").read_text()
    changed_set = text.replace("        - name: berlin\n", "        - name: berlin\n        - name: oslo\n")
    world.write({"clusters/oslo.yaml": repository("oslo"), "gateway.yaml": changed_set})

    after = world.sync()

    assert "Repository oslo" in {finding.message.split(":")[0] for finding in after.findings if finding.code == RESET}
    assert read_refs(world.fleet) == {}


def test_a_restored_repository_continues_without_changes(world: World) -> None:
    path = world.folder / "kept.git"
    shutil.copytree(world.fleet, path)
    replace_with_empty_repository(world)
    world.sync()
    shutil.rmtree(world.fleet)
    path.rename(world.fleet)

    after = world.sync()

    assert RESET not in after.codes
    assert after.changed_branches == set()


def test_one_cluster_can_be_reset_alone(world: World) -> None:
    for ref in ("refs/heads/clusters/berlin", f"{STATE}berlin"):
        git(world.fleet, "update-ref", "-d", ref)
    world.write({"regions/south.yaml": (world.config / "regions/south.yaml").read_text().replace("api.", "new.")})

    after = world.sync()

    assert [finding.message.split(":")[0] for finding in after.findings if finding.code == RESET] == [
        "Repository berlin"
    ]
    assert after.changed_branches == {"drafts/lisbon"}
    assert world.sync().is_unchanged


@pytest.mark.parametrize(
    ("ref", "code"),
    [
        pytest.param(f"{STATE}berlin", None, id="state-lost"),
        pytest.param("refs/heads/clusters/berlin", "DestinationMissing", id="branch-deleted"),
    ],
)
def test_a_remaining_state_or_branch_prevents_a_reset(world: World, ref: str, code: str | None) -> None:
    git(world.fleet, "update-ref", "-d", ref)

    after = world.sync()

    assert RESET not in after.codes
    assert ("DestinationMissing" in after.codes) is (code is not None)
    assert after.changed_branches == set()


def test_a_url_of_an_empty_repository_is_a_reset(world: World) -> None:
    make_bare(world.folder / "empty.git")
    world.write({BERLIN: repository("berlin", "./empty.git")})

    after = world.sync()

    (finding,) = [finding for finding in after.findings if finding.code == RESET]
    assert 'has no recorded state. Before, the target used branch "clusters/berlin" o' in finding.message
    assert read_refs(world.folder / "empty.git") == {}


@pytest.mark.slow
def test_a_cluster_of_the_fleet_repository_has_the_annotation_itself(tmp_path: Path) -> None:
    world = World.create(tmp_path)
    cluster = "apiVersion: greenhouse.sap/v1alpha1\nkind: Cluster\nmetadata:\n  name: berlin\n  namespace: default\n"
    world.write({"berlin.yaml": cluster, "banner.yaml": resource("ConfigMap", "banner", on="berlin", text="hello")})
    world.sync()
    replace_with_empty_repository(world)
    after = world.sync()
    assert "annotate Cluster default/berlin with" in next(
        finding.message for finding in after.findings if finding.code == RESET
    )
    world.write({"berlin.yaml": add_acknowledgement(cluster, after, "berlin")})

    assert world.sync().changed_branches == {"clusters/berlin", "drafts/berlin"}
    assert world.sync_until_unchanged().is_unchanged


def test_a_cache_of_an_earlier_version_has_the_heads_in_its_mirrors(world: World) -> None:
    (world.folder / "cache" / "heads.json").unlink()
    replace_with_empty_repository(world)

    assert RESET in world.plan().codes
    assert RESET in world.sync().codes
    assert read_refs(world.fleet) == {}


def test_a_new_cache_detects_no_reset(world: World) -> None:
    shutil.rmtree(world.folder / "cache")
    replace_with_empty_repository(world)

    assert RESET not in world.sync().codes


def test_a_repository_that_cannot_be_read_is_not_reset(world: World) -> None:
    for mirror in (world.folder / "cache").glob("*.git"):
        shutil.rmtree(mirror)
    world.fleet.rename(world.folder / "gone.git")

    assert RESET not in world.plan().codes


def test_open_drafts_are_not_reported_as_none_after_a_reset(world: World) -> None:
    replace_with_empty_repository(world)

    with world.open_review([]) as review:
        troubles = [bench.error for bench in review.open_targets(ReviewSelection())]

    assert [trouble.split(":")[0] for trouble in troubles if trouble] == ["Repository berlin", "Repository lisbon"]
