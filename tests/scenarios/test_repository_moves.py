"""Tests of repository URLs: another spelling is the same repository, and a repository may move with its content."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.git_repositories import commit_files, git, read_refs
from tests.support.policies import resource
from tests.support.prepared_worlds import begin, published
from tests.support.world import STATE, World, repository

MISSING = "DestinationMissing"
SPELLINGS: dict[str, Callable[[Path], str]] = {
    "absolute": str,
    "without-suffix": lambda fleet: str(fleet.with_suffix("")),
    "trailing-slash": lambda fleet: f"{fleet}/",
    "file-url": lambda fleet: fleet.as_uri(),
    "file-url-with-a-host": lambda fleet: f"file://localhost{fleet}/",
    "double-slashes": lambda fleet: f"{fleet.parent}//./{fleet.name}",
    "escaped": lambda fleet: fleet.as_uri().replace("fleet", "%66leet"),
    "relative": lambda fleet: f"../{fleet.parent.name}/{fleet.name}",
    "relative-without-suffix": lambda fleet: f"./{fleet.stem}",
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return begin(tmp_path, published)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_another_spelling_of_a_repository_url_is_the_same_repository(world: World, spelling: str) -> None:
    drafted = read_refs(world.fleet)
    url = SPELLINGS[spelling](world.fleet)
    world.write({f"clusters/{name}.yaml": repository(name, url) for name in ("berlin", "lisbon")})

    after = world.sync()

    assert not after.codes & {MISSING, "DestinationConflict", "RepositoryUnreachable"}
    assert after.changed_branches == set()
    assert world.sync().is_unchanged
    world.write({f"clusters/{name}.yaml": repository(name) for name in ("berlin", "lisbon")})
    world.sync()
    assert {name: ref for name, ref in read_refs(world.fleet).items() if "clusters/" in name} == {
        name: ref for name, ref in drafted.items() if "clusters/" in name
    }


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize("spelling", [spelling for spelling in SPELLINGS if "relative" not in spelling])
def test_the_spelling_of_the_fleet_url_moves_no_ref(tmp_path: Path, spelling: str) -> None:
    world = build_fleet_world(tmp_path)
    other = World(tmp_path, fleet={"url": SPELLINGS[spelling](world.fleet)})

    after = other.sync()

    assert MISSING not in after.codes
    assert after.before == after.after
    assert other.sync().is_unchanged
    assert world.sync().is_unchanged


def test_a_relative_fleet_url_is_the_same_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_fleet_world(tmp_path)
    monkeypatch.chdir(tmp_path)

    after = World(tmp_path, fleet={"url": "fleet.git"}).sync()

    assert MISSING not in after.codes
    assert after.before == after.after


def test_another_spelling_of_a_branch_of_a_cluster_is_rejected(world: World) -> None:
    twin = repository("twin", str(world.fleet.with_suffix("")), branch="clusters/berlin")
    world.write({"twin.yaml": twin})

    after = world.sync()

    assert "ClaimConflict" in after.codes
    assert after.changed_branches == set()


@pytest.mark.emits("repository_moved")
def test_a_repository_that_moved_with_all_refs_is_accepted_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = build_fleet_world(tmp_path)
    moved = tmp_path / "elsewhere" / "fleet.git"
    shutil.copytree(world.fleet, moved)
    shutil.rmtree(world.fleet)
    world.fleet = moved

    after = world.sync()

    assert MISSING not in after.codes
    assert after.changed_branches == set()
    assert read_target_state(moved, "berlin")["url"] == str(moved)
    assert "repository_moved" in capsys.readouterr().out
    assert world.sync().is_unchanged


def test_a_repository_may_move_and_get_commits_before_it_is_read_again(tmp_path: Path) -> None:
    world = build_fleet_world(tmp_path)
    moved = tmp_path / "elsewhere" / "fleet.git"
    shutil.copytree(world.fleet, moved)
    commit_files(moved, "refs/heads/clusters/berlin", {"README.md": b"moved\n"})
    world.fleet = moved

    assert MISSING not in world.sync().codes
    assert world.sync_until_unchanged().is_unchanged


def test_another_repository_is_not_accepted_as_a_move(tmp_path: Path) -> None:
    world = build_fleet_world(tmp_path)
    moved = tmp_path / "elsewhere" / "fleet.git"
    shutil.copytree(world.fleet, moved)
    git(moved, "update-ref", "-d", "refs/heads/clusters/berlin")
    foreign = commit_files(moved, "refs/heads/clusters/berlin", {"README.md": b"foreign\n"})
    world.fleet = moved

    after = world.sync()

    (finding,) = [finding for finding in after.findings if finding.code == MISSING]
    assert after.changed_branches == set()
    assert read_refs(moved)["refs/heads/clusters/berlin"] == foreign
    assert "does not contain the last known commit" in finding.message
    assert "Next step: restore the URL" in finding.message
    assert world.sync().is_unchanged


def build_fleet_world(folder: Path) -> World:
    """Return a published world of one cluster without a Repository, which uses the fleet repository."""
    world = World.create(folder)
    cluster = "apiVersion: greenhouse.sap/v1alpha1\nkind: Cluster\nmetadata: {name: berlin, namespace: default}\n"
    world.write({"berlin.yaml": cluster, "banner.yaml": resource("ConfigMap", "banner", on="berlin", text="hello")})
    world.sync()
    world.merge("berlin")
    world.sync_until_unchanged()
    return world


def read_target_state(fleet: Path, cluster: str) -> dict[str, object]:
    data: dict[str, object] = json.loads(git(fleet, "show", f"{STATE}{cluster}:destination.json"))
    return data


def test_an_outdated_copy_is_not_accepted_as_a_move(tmp_path: Path) -> None:
    world = build_fleet_world(tmp_path)
    moved = tmp_path / "elsewhere" / "fleet.git"
    shutil.copytree(world.fleet, moved)
    world.commit("clusters/berlin", {"README.md": "after the copy\n"})
    world.sync()
    copied = read_refs(moved)
    world.fleet = moved

    after = world.sync()

    assert MISSING in after.codes
    assert after.changed_branches == set()
    assert {ref: commit for ref, commit in read_refs(moved).items() if "/status" not in ref} == {
        ref: commit for ref, commit in copied.items() if "/status" not in ref
    }
