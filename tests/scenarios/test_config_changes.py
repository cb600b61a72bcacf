"""Tests of config changes: conflicts, adoption, renames and invalid files. Published packages stay."""

from pathlib import Path

import pytest

from tests.support.git_repositories import make_bare
from tests.support.prepared_worlds import begin, berlin_published
from tests.support.world import World, catalog, config_map, injected_set, package, repository, small_world, variant

METRICS = "berlin/metrics"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world in which both packages of Berlin are published."""
    return begin(tmp_path, berlin_published)


def is_nothing_removed(world: World) -> bool:
    """Return whether the target branch and the draft of Berlin contain all published packages."""
    branches = [name for name in ("clusters/berlin", "drafts/berlin") if world.head(name)]
    return all(world.tree(name, path) for name in branches for path in ("gateway", "metrics"))


def test_renamed_variant_takes_over_its_package_without_a_draft(world: World) -> None:
    world.write({"metrics.yaml": variant("measurements", "berlin", "metrics")})

    after = world.sync()

    assert after.outcomes[METRICS] != "DeletionHeld"
    assert is_nothing_removed(world)
    owner = world.record("berlin", "metrics")["owner"]
    assert isinstance(owner, dict)
    assert owner["name"] == "measurements"
    assert world.sync_until_unchanged().outcomes[METRICS] == "published"


def test_unreadable_config_file_delays_the_change_of_the_owner(world: World) -> None:
    world.write({"metrics.yaml": variant("measurements", "berlin", "metrics"), "broken.yaml": "a: [\n"})

    after = world.sync()

    assert after.outcomes[METRICS] == "OwnershipConflict"
    assert world.sync().is_unchanged
    world.write({"broken.yaml": None})
    assert world.sync_until_unchanged().outcomes[METRICS] == "published"


def test_restored_variant_keeps_its_published_package(world: World) -> None:
    world.write({"metrics.yaml": None})
    world.sync_until_unchanged()
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics")})

    assert world.sync_until_unchanged().outcomes[METRICS] == "published"


def test_first_of_two_variants_by_name_gets_an_unused_target(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    world.write({"rival.yaml": variant("a-rival", "berlin", "metrics")})

    world.sync()

    assert world.reason("metrics-berlin") == "DownstreamConflict"
    assert world.reason("metrics-berlin", "Stalled") == "DownstreamConflict"
    assert world.reason("a-rival") == "NoErrors"
    assert world.sync().is_unchanged


def test_owner_keeps_its_target_when_a_second_variant_requests_it(world: World) -> None:
    world.write({"rival.yaml": variant("a-rival", "berlin", "metrics")})

    after = world.sync()

    assert after.changed_branches == set()
    assert world.reason("a-rival") == "DownstreamConflict"
    assert world.reason("metrics-berlin") == "NoErrors"


@pytest.mark.parametrize("place", [pytest.param("metrics/inner", id="below"), pytest.param("gateway/x/y", id="deeper")])
def test_package_inside_another_package_is_rejected(world: World, place: str) -> None:
    world.write({"inner.yaml": variant("a-inner", "berlin", place, upstream="metrics")})

    after = world.sync()

    assert after.changed_branches == set()
    assert world.reason("a-inner") == "DownstreamConflict"
    assert world.sync().is_unchanged


def test_unowned_package_is_never_overwritten(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    world.commit("clusters/berlin", {"metrics/Kptfile": package("metrics")["Kptfile"], "metrics/own.yaml": "a: 1\n"})

    after = world.sync()

    assert after.outcomes[METRICS] == "DownstreamExists"
    assert after.outcomes["berlin/gateway"] == "draft"
    assert world.text("drafts/berlin", "metrics/own.yaml") == "a: 1\n"
    assert world.sync().is_unchanged


def test_adopted_package_at_the_requested_upstream_keeps_local_changes(world: World) -> None:
    files = world.files(world.fleet, "clusters/berlin", "metrics")
    theirs = {f"metrics/{name}": content + "\n" for name, content in files.items()}
    theirs["metrics/deployment.yaml"] = theirs["metrics/deployment.yaml"].replace("replicas: 2", "replicas: 7")
    world.commit("clusters/lisbon", theirs)
    world.write({"lisbon.yaml": variant("metrics-lisbon", "lisbon", "metrics", extra="adoptionPolicy: adoptExisting")})

    after = world.sync()

    assert after.outcomes["lisbon/metrics"] == "adopted"
    assert "replicas: 7" in world.text("clusters/lisbon", "metrics/deployment.yaml")
    assert world.sync_until_unchanged().outcomes["lisbon/metrics"] == "adopted"


def test_package_with_an_unknown_lock_is_unchanged(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    git = f"git: {{repo: ./catalog.git, directory: metrics, ref: metrics/v0, commit: {'a' * 40}}}"
    elsewhere = f"\nupstreamLock: {{type: git, {git}}}\n"
    world.commit("clusters/berlin", {"metrics/Kptfile": package("metrics")["Kptfile"] + elsewhere})
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", extra="adoptionPolicy: adoptExisting")})

    after = world.sync()

    assert after.outcomes[METRICS] == "MergeBaseMissing"
    assert world.sync().is_unchanged


def test_adopted_package_without_a_lock_is_mutated_and_not_updated(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    theirs = {"metrics/Kptfile": package("metrics")["Kptfile"], "metrics/own.yaml": "a: 1\n"}
    world.commit("clusters/berlin", theirs)
    adopting = "adoptionPolicy: adoptExisting\npackageContext: {data: {region: eu}}"
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", extra=adopting)})

    after = world.sync()

    assert after.outcomes[METRICS] == "draft"
    assert world.sync().is_unchanged
    assert world.text("drafts/berlin", "metrics/own.yaml") == "a: 1\n"
    assert "region: eu" in world.text("drafts/berlin", "metrics/package-context.yaml")
    assert "upstreamLock" not in world.text("drafts/berlin", "metrics/Kptfile")


@pytest.mark.slow
def test_invalid_file_blocks_only_its_own_package(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    world.write(
        {f"many/{n:02}.yaml": variant(f"m-{n:02}", "lisbon", f"m{n:02}", upstream="metrics") for n in range(30)}
    )
    world.sync()
    world.merge("lisbon", "squash")
    world.sync_until_unchanged()
    world.write({"many/07.yaml": variant("m-07", "lisbon", "m07", upstream="metrics") + "  downstream: {repo: [\n"})
    world.release("metrics", "v2", package("metrics", image="2.0"))
    for n in (3, 8):
        world.write({f"many/{n:02}.yaml": variant(f"m-{n:02}", "lisbon", f"m{n:02}", "v2", "metrics")})

    after = world.sync()

    assert {item for item, why in after.outcomes.items() if why == "draft"} == {"lisbon/m03", "lisbon/m08"}
    assert after.outcomes["lisbon/m07"] == "DeletionHeld"
    assert world.tree("drafts/lisbon", "m07") == world.tree("clusters/lisbon", "m07")
    (broken,) = [finding for finding in after.findings if finding.code.startswith("Yaml")]
    assert (broken.location.file, broken.location.line) == ("many/07.yaml", 9)
    assert "many/07.yaml" in world.text("reconciler/status", "summary.yaml")
    assert world.sync().is_unchanged


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"clusters/berlin.yaml": repository("berlin", branch="main")}, id="another-branch"),
        pytest.param({"clusters/berlin.yaml": repository("berlin", directory="sub")}, id="another-directory"),
    ],
)
def test_repository_with_another_branch_or_directory_changes_nothing(world: World, change: dict[str, str]) -> None:
    world.write(change)

    after = world.sync()

    assert "DestinationMissing" in after.codes
    assert after.changed_branches == set()
    assert world.sync().is_unchanged


def test_deleted_target_branch_is_not_created_again(world: World) -> None:
    world.delete("clusters/berlin")
    world.write({"regions/south.yaml": config_map("region-south", api="new")})

    after = world.sync()

    assert "DestinationMissing" in after.codes
    assert after.changed_branches == {"drafts/lisbon"}
    assert world.sync().is_unchanged


def test_cluster_without_a_repository_object_keeps_its_packages(world: World) -> None:
    world.write({"clusters/berlin.yaml": None})

    after = world.sync()

    assert after.changed_branches == set()
    assert world.reason("metrics-berlin") == "DownstreamNotFound"
    assert is_nothing_removed(world)


def test_unreachable_upstream_blocks_only_its_variants(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    world.write(
        {"gone.yaml": catalog("gone"), "lost.yaml": variant("lost", "berlin", "lost").replace("catalog", "gone")}
    )

    after = world.sync()

    assert after.outcomes[METRICS] == "draft"
    assert "UpstreamUnreachable" in after.codes
    assert world.tree("drafts/berlin", "lost") is None


def test_unreachable_fleet_repository_blocks_only_its_clusters(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    make_bare(tmp_path / "far.git")
    world.write({"clusters/far.yaml": repository("far", "./nowhere.git"), "far.yaml": variant("far", "far", "metrics")})

    after = world.sync()

    assert "RepositoryUnreachable" in after.codes
    assert after.outcomes[METRICS] == "draft"


def test_order_of_targets_in_a_set_has_no_effect(world: World) -> None:
    world.write({"gateway.yaml": injected_set("gateway", ["lisbon", "berlin"])})

    assert world.sync().changed_branches == set()
    assert world.sync().is_unchanged


def test_moved_objects_and_new_comments_have_no_effect(world: World) -> None:
    content = "# together now\n" + variant("metrics-berlin", "berlin", "metrics") + "---\n" + repository("lisbon")
    world.write({"metrics.yaml": None, "clusters/lisbon.yaml": None, "all/one.yaml": content})

    assert world.sync().changed_branches == set()


def test_new_draft_branch_template_keeps_open_drafts(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    world.sync()
    renamed = World(world.folder, drafts={"branch": "drafts/{repository}/{package}"})

    assert renamed.sync().changed_branches == set()
    world.merge("berlin", "squash")
    renamed.sync_until_unchanged()
    renamed.write({"regions/north.yaml": config_map("region-north", api="new")})
    renamed.sync()
    assert renamed.head("drafts/berlin/gateway")
    assert renamed.sync().is_unchanged
