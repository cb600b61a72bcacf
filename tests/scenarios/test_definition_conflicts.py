"""Tests of conflicting definitions: a later definition is rejected, and the first one stays valid."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from reconciler.git.errors import UnreachableError
from reconciler.reconcile.config_source import ConfigCommitReader
from tests.support.git_repositories import commit_files, make_bare
from tests.support.prepared_worlds import begin, berlin_published
from tests.support.world import PassResult, World, catalog, config_map, package, repository, small_world, variant

BERLIN = "clusters/berlin.yaml"
NEWCOMERS = [
    pytest.param(repository("other", branch="clusters/berlin"), id="the-same-place"),
    pytest.param(repository("other", branch="clusters/berlin", directory="sub"), id="a-folder-inside"),
    pytest.param(repository("berlin\n  namespace: b", branch="main"), id="name"),
    pytest.param(repository("berlin", branch="main"), id="the-same-object"),
    pytest.param(repository("berlin"), id="an-equal-copy"),
]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world in which both packages of Berlin are published."""
    return begin(tmp_path, berlin_published)


class GitWorld(World):
    """The small world with its config in a repository and without state."""

    @property
    def source(self) -> str:
        return str(self.folder / "config.git")

    def commit_config(self, files: dict[str, str | None]) -> None:
        data = {path: None if text is None else text.encode() for path, text in files.items()}
        commit_files(self.folder / "config.git", "refs/heads/main", data, "by hand", 1_200_000_000)


def create_git_world(folder: Path, *commits: dict[str, str | None]) -> GitWorld:
    """Return a world whose config has these commits. The first commit also contains the catalog."""
    world = GitWorld.create(folder)
    make_bare(folder / "config.git")
    world.release("metrics", "v1", package("metrics"))
    commit_files(world.fleet, "refs/heads/clusters/berlin", {"README": b""}, "begin", 1_000_000_000)
    for number, files in enumerate(commits):
        world.commit_config({**files, **({"catalog.yaml": catalog()} if number == 0 else {})})
    return world


def list_rejected_files(after: PassResult) -> set[str]:
    return {finding.location.file for finding in after.findings if finding.code == "ClaimConflict"}


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("newcomer", NEWCOMERS)
def test_second_repository_does_not_stop_the_cluster(world: World, newcomer: str) -> None:
    undisturbed = world.plan()
    world.write({"newcomer.yaml": newcomer})

    after = world.sync()

    assert list_rejected_files(after) == {"newcomer.yaml"}
    assert after.changed_branches == set()
    assert after.outcomes == undisturbed.outcomes
    assert world.sync().is_unchanged


@pytest.mark.parametrize("newcomer", NEWCOMERS)
def test_changes_of_the_first_definition_apply(world: World, newcomer: str) -> None:
    world.write({"newcomer.yaml": newcomer, "regions/north.yaml": config_map("region-north", api="new")})
    world.write(
        {BERLIN: repository("berlin").replace("metadata: {name: berlin", "metadata: {name: berlin, labels: {a: b}")}
    )

    after = world.sync()

    assert "drafts/berlin" in after.changed_branches
    assert list_rejected_files(after) == {"newcomer.yaml"}


CLUSTER = "apiVersion: greenhouse.sap/v1alpha1\nkind: Cluster\nmetadata: {name: berlin, namespace: %s}\nspec: {}\n"


@pytest.mark.parametrize("namespace", ["mine", "other"])
def test_second_cluster_object_does_not_stop_the_cluster(world: World, namespace: str) -> None:
    world.write({"z-cluster.yaml": CLUSTER % "mine"})
    world.sync()
    world.write({"a-newcomer.yaml": CLUSTER % namespace, "regions/north.yaml": config_map("region-north", api="new")})

    after = world.sync()

    assert list_rejected_files(after) == {"a-newcomer.yaml"}
    assert "drafts/berlin" in after.changed_branches
    assert not {"DestinationConflict", "DuplicateObject"} & after.codes


def test_second_definition_of_an_owner_is_rejected(world: World) -> None:
    world.write({"a-newcomer.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})

    after = world.sync()

    (finding,) = [item for item in after.findings if item.code == "ClaimConflict"]
    assert finding.location.file == "a-newcomer.yaml"
    assert (
        "Next step: delete one of the two definitions. To replace the definition at metrics.yaml:1, delete it in the"
        " commit that adds the other definition" in finding.message
    )
    assert after.outcomes["berlin/metrics"] == "published"
    assert world.sync().is_unchanged


def test_definition_can_move_to_another_file_in_one_commit(world: World) -> None:
    before = (world.config / BERLIN).read_text()
    world.write({"newcomer.yaml": before, BERLIN: None})

    after = world.sync()

    assert after.codes == set()
    assert after.changed_branches == set()


def test_both_definitions_are_rejected_without_a_record(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    world.write({"twin.yaml": variant("new", "lisbon", "new", "v1", "metrics")})
    world.write({"twin-2.yaml": variant("new", "lisbon", "new", "v2", "metrics")})
    world.write({"other.yaml": repository("other", branch="clusters/berlin")})

    after = world.sync()

    assert {"DuplicateObject", "DestinationConflict"} <= after.codes
    assert "ClaimConflict" not in after.codes
    assert not world.head("drafts/berlin")
    assert "lisbon/new" not in after.outcomes


@pytest.mark.parametrize("newcomer", NEWCOMERS[:4])
def test_config_history_shows_the_first_definition(tmp_path: Path, newcomer: str) -> None:
    mine = {BERLIN: repository("berlin"), "metrics.yaml": variant("metrics", "berlin", "metrics")}
    world = create_git_world(tmp_path, mine, {"a-newcomer.yaml": newcomer})

    after = world.sync()

    assert list_rejected_files(after) == {"a-newcomer.yaml"}
    assert after.outcomes == {"berlin/metrics": "draft"}


def test_edit_that_takes_a_used_target_is_rejected(tmp_path: Path) -> None:
    world = create_git_world(
        tmp_path,
        {"a-old.yaml": repository("a-old", branch="main")},
        {BERLIN: repository("berlin"), "metrics.yaml": variant("metrics", "berlin", "metrics")},
        {"a-old.yaml": repository("a-old", branch="clusters/berlin")},
    )

    after = world.sync()

    assert list_rejected_files(after) == {"a-old.yaml"}
    assert after.outcomes == {"berlin/metrics": "draft"}


def test_two_definitions_in_one_commit_are_both_rejected(tmp_path: Path) -> None:
    world = create_git_world(
        tmp_path,
        {"metrics.yaml": variant("metrics", "berlin", "metrics")},
        {BERLIN: repository("berlin"), "b.yaml": repository("b", branch="clusters/berlin")},
    )

    assert world.sync().codes == {"DestinationConflict"}


def test_commands_reject_the_same_definitions_as_a_pass(world: World) -> None:
    world.write({"newcomer.yaml": repository("berlin", branch="main")})

    after = world.plan()
    (sheet,) = world.list_open_drafts("berlin") or [None]

    assert list_rejected_files(after) == {"newcomer.yaml"}
    assert sheet is None


@pytest.mark.emits("conflict_lookup_failed")
def test_an_unreadable_history_decides_for_no_definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = {BERLIN: repository("berlin")}, {"newcomer.yaml": repository("berlin", branch="main")}
    world = create_git_world(tmp_path, first, second)
    fail = Mock(side_effect=UnreachableError("cut off"))
    monkeypatch.setattr(ConfigCommitReader, "_list_earlier_versions", fail)

    assert world.plan().codes == {"DuplicateObject"}
