"""Tests of plain resources on clusters, through whole passes: config changes, local changes and lost state."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import CommandResult, run_in
from tests.support.git_repositories import assert_sound, git
from tests.support.policies import (
    federated_cluster,
    patch,
    placement_world,
    placements_drafted,
    placements_published,
    policy,
    propagation,
    publish,
    ready_reason,
    resource,
    world_with_missing_repositories,
)
from tests.support.prepared_worlds import begin
from tests.support.world import MERGES, World, repository

LIMITS, BANNER = "resources/shop/configmap-limits.yaml", "resources/shop/configmap-banner.yaml"
CONFIG_MAPS = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "limits"}]
BOTH = "berlin, lisbon"
MISSING, UNUSABLE = "PropagationPolicyNotFound", "PropagationPolicyUnusable"
NORTH = {"clusterSelector": {"region": "north"}}


@pytest.fixture
def drafted(tmp_path: Path) -> World:
    """All resources are drafted: `limits` for both clusters, `banner` for Berlin, their namespace for both."""
    return begin(tmp_path, placements_drafted)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """The resources of `drafted`, all of them published."""
    return begin(tmp_path, placements_published)


def build_limits(on: str = BOTH, cpu: str = "2", by: str = "") -> str:
    return resource("ConfigMap", "limits", on=on, by=by, cpu=cpu, memory="4Gi")


def build_banner(by: str = "north", on: str = "", text: str = "hello") -> str:
    return resource("ConfigMap", "banner", by=by, on=on, text=text)


def list_placed_files(world: World, branch: str) -> list[str]:
    """Return the files of placed resources on a branch."""
    return world.paths(world.fleet, branch, "resources")


def list_changes(world: World, branch: str) -> list[str]:
    """Return the changes of a branch against the target branch, each as letter and path, without status files."""
    cluster = branch.partition("/")[2]
    lines = git(world.fleet, "diff", "--name-status", f"clusters/{cluster}...{branch}").splitlines()
    return [line.replace("\t", " ") for line in lines if ".reconciler" not in line]


def delete_state(world: World, cluster: str) -> None:
    git(world.fleet, "update-ref", "-d", f"refs/reconciler/state/{cluster}")


def list_conflicts(world: World, branch: str = "drafts/berlin") -> list[tuple[str, str, str]]:
    result = world.package_status(branch, "resources/shop").get("conflicts", ())
    return [(item.get("kind", ""), item["file"], item.get("pointer", "")) for item in result]


# New resources


def test_each_resource_is_drafted_to_one_file_with_its_comments(drafted: World) -> None:
    assert list_placed_files(drafted, "drafts/berlin") == [
        "_cluster/namespace-shop.yaml",
        "shop/configmap-banner.yaml",
        "shop/configmap-limits.yaml",
    ]
    assert list_placed_files(drafted, "drafts/lisbon") == ["_cluster/namespace-shop.yaml", "shop/configmap-limits.yaml"]
    assert "cpu: 2  # as agreed" in drafted.text("drafts/lisbon", LIMITS)
    assert "reconciler.dev/clusters" not in drafted.text("drafts/lisbon", LIMITS)
    assert drafted.sync().is_unchanged
    assert_sound(drafted.fleet)


@pytest.mark.parametrize("merge_method", MERGES)
def test_placed_resources_are_published_with_every_merge_method(drafted: World, merge_method: str) -> None:
    drafted.merge("berlin", merge_method)

    after = drafted.sync()

    assert after.outcomes["berlin/resources/shop"] == "published"
    assert drafted.record("berlin", "resources/shop")["revision"] == 1
    assert drafted.sync().is_unchanged


def test_a_new_resource_changes_only_the_drafts_of_its_clusters(world: World) -> None:
    world.write({"placed/motd.yaml": resource("ConfigMap", "motd", on="lisbon", text="hi")})

    after = world.sync()

    assert (after.changed_branches, after.report.render_count) == ({"drafts/lisbon"}, 1)
    assert list_changes(world, "drafts/lisbon") == ["A resources/shop/configmap-motd.yaml"]
    assert world.sync().is_unchanged


def test_a_resource_of_another_namespace_is_a_separate_package(world: World) -> None:
    world.write({"placed/other.yaml": resource("ConfigMap", "other", namespace="bank", on="berlin", a="b")})

    after = world.sync()

    assert (after.changed_branches, after.outcomes["berlin/resources/bank"]) == ({"drafts/berlin"}, "draft")
    assert world.sync().is_unchanged


def test_a_changed_resource_is_drafted_on_its_clusters(world: World) -> None:
    world.write({"placed/limits.yaml": build_limits(cpu="3")})

    after = world.sync()

    assert (after.changed_branches, after.report.render_count) == ({"drafts/berlin", "drafts/lisbon"}, 2)
    assert list_changes(world, "drafts/berlin") == [f"M {LIMITS}"]
    assert world.sync().is_unchanged
    publish(world)
    assert "cpu: 3" in world.text("clusters/lisbon", LIMITS)


def test_moving_a_resource_to_another_config_file_changes_no_branch(world: World) -> None:
    resources = f"{build_limits()}---\n{build_banner()}"
    world.write({"placed/limits.yaml": None, "placed/banner.yaml": None, "all/shop.yaml": resources})

    after = world.sync()

    assert (after.changed_branches, after.report.render_count) == (set(), 0)
    assert world.sync().is_unchanged


def test_a_change_between_annotation_and_policy_changes_only_the_label(world: World) -> None:
    world.write({"placed/banner.yaml": build_banner(by="", on="berlin")})
    world.sync()
    by_name = (list_changes(world, "drafts/berlin"), "propagation-policy" in world.text("drafts/berlin", BANNER))
    assert world.sync().is_unchanged
    world.write({"placed/banner.yaml": build_banner()})

    after = world.sync()

    assert by_name == ([f"M {BANNER}"], False)
    assert (after.outcomes["berlin/resources/shop"], world.head("drafts/berlin")) == ("published", "")
    assert world.head("removals/berlin") == ""
    assert world.sync().is_unchanged


def test_a_policy_for_all_clusters_includes_clusters_that_are_added_later(world: World) -> None:
    world.write({"clusters/paris.yaml": repository("paris")})

    after = world.sync()

    assert after.outcomes["paris/resources/_cluster"] == "draft"
    assert list_placed_files(world, "drafts/paris") == ["_cluster/namespace-shop.yaml", "shop/configmap-banner.yaml"]
    assert after.changed_branches == {"clusters/paris", "drafts/paris"}
    assert world.sync().is_unchanged


def test_an_unknown_cluster_name_is_reported_and_the_other_clusters_are_served(world: World) -> None:
    world.write({"placed/limits.yaml": build_limits(on="berlin, lisbon, atlantis")})

    after = world.sync()

    assert ("UnknownCluster" in after.codes, after.changed_branches) == (True, set())
    assert world.sync().is_unchanged


# Removed resources


def test_a_resource_removed_from_one_of_two_clusters_is_removed_there_by_a_draft(world: World) -> None:
    world.write({"placed/banner.yaml": None})

    after = world.sync()

    assert (after.changed_branches, after.outcomes["berlin/resources/shop"]) == ({"drafts/berlin"}, "draft")
    assert list_changes(world, "drafts/berlin") == [f"D {BANNER}"]
    assert world.sync().is_unchanged
    publish(world)
    assert list_placed_files(world, "clusters/berlin") == ["_cluster/namespace-shop.yaml", "shop/configmap-limits.yaml"]


def test_the_last_resource_of_a_namespace_on_a_cluster_needs_a_removal_draft(world: World) -> None:
    world.write({"placed/limits.yaml": build_limits(on="berlin")})

    after = world.sync()

    assert after.outcomes["lisbon/resources/shop"] == "proposed"
    assert after.changed_branches == {"removals/lisbon"}
    assert list_changes(world, "removals/lisbon") == [f"D {LIMITS}"]
    assert world.sync().is_unchanged
    world.merge("lisbon", "squash", draft="removals/lisbon")
    world.sync_until_unchanged()
    assert list_placed_files(world, "clusters/lisbon") == ["_cluster/namespace-shop.yaml"]
    assert world.head("removals/lisbon") == ""
    world.write({"placed/limits.yaml": build_limits()})
    assert world.sync().outcomes["lisbon/resources/shop"] == "draft"
    assert world.sync().is_unchanged


def test_resources_removed_everywhere_get_removal_drafts_everywhere(world: World) -> None:
    world.write({"placed/limits.yaml": None, "placed/banner.yaml": None, "placed/namespace.yaml": None})
    world.write({"placed/motd.yaml": resource("ConfigMap", "motd", namespace="bank", on="berlin", text="hi")})

    after = world.sync()

    removed_packages = {f"{item}/resources/{name}" for item in ("berlin", "lisbon") for name in ("shop", "_cluster")}
    assert {after.outcomes[item] for item in removed_packages} == {"proposed"}
    assert world.sync().is_unchanged
    for cluster in ("berlin", "lisbon"):
        world.merge(cluster, "squash", draft=f"removals/{cluster}")
    publish(world)
    assert (list_placed_files(world, "clusters/berlin"), list_placed_files(world, "clusters/lisbon")) == (
        ["bank/configmap-motd.yaml"],
        [],
    )


def test_an_unpublished_resource_is_withdrawn_from_its_draft(drafted: World) -> None:
    drafted.write({"placed/limits.yaml": build_limits(on="berlin")})

    after = drafted.sync()

    assert after.outcomes["lisbon/resources/shop"] == "withdrawn"
    assert list_placed_files(drafted, "drafts/lisbon") == ["_cluster/namespace-shop.yaml"]
    assert drafted.sync().is_unchanged


# Without evidence of a deletion, resources stay.


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("files", "code"),
    [
        pytest.param({"placed/limits.yaml": "kind: [\n"}, "YamlSyntax", id="its-file-is-unreadable"),
        pytest.param(
            {"other.yaml": "kind: [\n", "placed/limits.yaml": None}, "YamlSyntax", id="another-file-is-unreadable"
        ),
        pytest.param({"again.yaml": build_limits(cpu="9")}, "ClaimConflict", id="another-file-defines-it"),
        pytest.param(
            {"placed/limits.yaml": build_limits(on="berlin,,")}, "PlacementInvalid", id="the-annotation-is-invalid"
        ),
        pytest.param({"placed/limits.yaml": build_limits(by="absent", on="")}, MISSING, id="unknown-policy"),
        pytest.param({"placed/limits.yaml": "# nothing\n"}, "FileInconclusive", id="its-file-is-empty"),
        pytest.param({"placed/limits.yaml": "[]\n"}, "FileInconclusive", id="its-file-is-a-list"),
        pytest.param(
            {"placed/limits.yaml": build_limits(on="atlantis")}, "PlacementInconclusive", id="only-unknown-clusters"
        ),
        pytest.param(
            {"placed/limits.yaml": build_limits(on="berlin, lisbom")},
            "PlacementInconclusive",
            id="an-unknown-cluster-of-two",
        ),
        pytest.param(
            {
                "placed/limits.yaml": build_limits(on="", by="south"),
                "policies/south.yaml": propagation("south", {"placement": [{"cluster": "atlantis"}]}),
            },
            "PlacementInconclusive",
            id="a-policy-that-names-only-unknown-clusters",
        ),
    ],
)
def test_resources_stay_without_evidence_of_their_deletion(
    world: World, files: dict[str, str | None], code: str
) -> None:
    world.write(files)

    after = world.sync()

    assert code in after.codes
    assert all(
        LIMITS.removeprefix("resources/") in list_placed_files(world, branch)
        for branch in _list_existing_branches(world)
    )
    assert not [name for name in after.after if "removals/" in name]
    assert world.sync_until_unchanged().is_unchanged
    world.write({"other.yaml": "", "again.yaml": "", "placed/limits.yaml": build_limits()})
    pass_result = world.sync()
    assert {pass_result.outcomes[f"{cluster}/resources/shop"] for cluster in ("berlin", "lisbon")} == {"published"}
    assert world.sync_until_unchanged().is_unchanged


def _list_existing_branches(world: World) -> list[str]:
    names = [f"{kind}/{cluster}" for kind in ("clusters", "drafts") for cluster in ("berlin", "lisbon")]
    return [name for name in names if world.head(name)]


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("files", "code"),
    [
        pytest.param({"policies/north.yaml": None}, MISSING, id="deleted"),
        pytest.param({"policies/north.yaml": "kind: [\n"}, MISSING, id="unreadable"),
        pytest.param({"policies/again.yaml": propagation("north", {})}, UNUSABLE, id="defined-twice"),
        pytest.param({"policies/north.yaml": propagation("north", {"placement": 1})}, UNUSABLE, id="invalid"),
    ],
)
def test_resources_of_a_missing_or_invalid_policy_stay_where_they_are(
    world: World, files: dict[str, str | None], code: str
) -> None:
    world.write(files)

    after = world.sync()

    assert (after.changed_branches, code in after.codes) == (set(), True)
    assert world.sync().is_unchanged
    world.write({"placed/banner.yaml": build_banner(text="bye")})
    changed = world.sync()
    assert (changed.changed_branches, list_changes(world, "drafts/berlin")) == ({"drafts/berlin"}, [f"M {BANNER}"])
    assert world.sync().is_unchanged
    world.write({"policies/again.yaml": "", "policies/north.yaml": propagation("north", NORTH)})
    assert world.sync().changed_branches == set()
    assert world.sync().is_unchanged


# Local changes


def test_a_field_of_the_config_is_restored_with_a_conflict_record(world: World) -> None:
    world.edit("clusters/berlin", LIMITS, "cpu: 2", "cpu: 9")

    after = world.sync()

    assert (after.outcomes["berlin/resources/shop"], after.changed_branches) == ("draft", {"drafts/berlin"})
    assert "cpu: 2  # as agreed" in world.text("drafts/berlin", LIMITS)
    assert [conflict[1:] for conflict in list_conflicts(world)] == [("configmap-limits.yaml", "/data/cpu")]
    assert world.sync().is_unchanged
    publish(world)
    assert "cpu: 2  # as agreed" in world.text("clusters/berlin", LIMITS)
    assert world.sync().is_unchanged


def test_a_field_of_the_config_is_restored_on_a_draft_too(drafted: World) -> None:
    edited = drafted.edit("drafts/berlin", LIMITS, "cpu: 2", "cpu: 9")

    drafted.sync()

    assert git(drafted.fleet, "merge-base", edited, "drafts/berlin") == edited
    assert "cpu: 2  # as agreed" in drafted.text("drafts/berlin", LIMITS)
    assert [conflict[1:] for conflict in list_conflicts(drafted)] == [("configmap-limits.yaml", "/data/cpu")]
    assert drafted.sync().is_unchanged


@pytest.mark.parametrize("branch", ["clusters/berlin", "drafts/berlin"])
def test_fields_and_files_that_people_add_survive_config_changes(tmp_path: Path, branch: str) -> None:
    world = begin(tmp_path, placements_drafted if branch.startswith("drafts") else placements_published)
    world.edit(branch, LIMITS, "  memory", "  disk: 10Gi\n  memory")
    world.commit(branch, {"resources/shop/own.yaml": resource("ConfigMap", "own", a="b")})
    world.sync()
    assert world.sync_until_unchanged().is_unchanged
    world.write({"placed/limits.yaml": build_limits(cpu="3")})

    world.sync()

    text = world.text("drafts/berlin", LIMITS)
    assert ("cpu: 3" in text, "disk: 10Gi" in text, "as agreed" in text) == (True, True, True)
    assert world.text("drafts/berlin", "resources/shop/own.yaml")
    assert list_conflicts(world) == []
    assert world.sync().is_unchanged
    publish(world)
    assert "disk: 10Gi" in world.text("clusters/berlin", LIMITS)


def test_a_file_that_people_delete_is_drafted_again(world: World) -> None:
    world.commit("clusters/berlin", {LIMITS: None})

    after = world.sync()

    assert (after.outcomes["berlin/resources/shop"], list_changes(world, "drafts/berlin")) == ("draft", [f"A {LIMITS}"])
    assert world.sync().is_unchanged
    world.delete("drafts/berlin")
    assert world.sync().outcomes["berlin/resources/shop"] == "declined"
    assert world.sync().is_unchanged
    world.write({"placed/banner.yaml": build_banner(text="bye")})
    assert world.sync().outcomes["berlin/resources/shop"] == "draft"
    assert LIMITS.removeprefix("resources/") in list_placed_files(world, "drafts/berlin")
    assert world.sync().is_unchanged


def test_a_removed_file_with_local_additions_stays_and_is_reported(world: World) -> None:
    world.edit("clusters/berlin", LIMITS, "  memory", "  disk: 10Gi\n  memory")
    world.sync_until_unchanged()
    world.write({"placed/limits.yaml": build_limits(on="lisbon")})

    after = world.sync()

    assert (after.changed_branches, list_changes(world, "drafts/berlin")) == ({"drafts/berlin"}, [])
    assert "disk: 10Gi" in world.text("drafts/berlin", LIMITS)
    assert list_conflicts(world) == [("resource", "configmap-limits.yaml", "")]
    assert world.sync().is_unchanged


def test_a_file_with_broken_yaml_is_restored(world: World) -> None:
    world.commit("clusters/lisbon", {LIMITS: "kind: [\n"})

    world.sync()

    assert "cpu: 2  # as agreed" in world.text("drafts/lisbon", LIMITS)
    assert list_conflicts(world, "drafts/lisbon") == [("file", "configmap-limits.yaml", "")]
    assert world.sync().is_unchanged


def test_resources_with_the_same_file_name_get_separate_files_and_keep_edits(world: World) -> None:
    world.edit("clusters/berlin", LIMITS, "  memory", "  disk: 10Gi\n  memory")
    world.sync_until_unchanged()
    world.write({"other.yaml": build_limits(cpu="1").replace("apiVersion: v1", "apiVersion: example.dev/v1")})

    after = world.sync()

    assert after.changed_branches == {"drafts/berlin", "drafts/lisbon"}
    assert list_changes(world, "drafts/berlin") == ["A resources/shop/configmap.example.dev-limits.yaml"]
    assert "disk: 10Gi" in world.text("drafts/berlin", LIMITS)
    assert world.sync().is_unchanged
    world.write({"other.yaml": None})
    assert world.sync().outcomes["berlin/resources/shop"] == "published with edits"
    assert world.sync().is_unchanged


def test_a_package_that_people_delete_completely_is_drafted_again(world: World) -> None:
    world.commit("clusters/berlin", {LIMITS: None, BANNER: None})

    after = world.sync()

    assert after.outcomes["berlin/resources/shop"] == "draft"
    assert list_changes(world, "drafts/berlin") == [f"A {BANNER}", f"A {LIMITS}"]
    assert world.sync().is_unchanged


def test_a_declined_draft_stays_declined_until_its_content_changes(world: World) -> None:
    world.write({"placed/limits.yaml": build_limits(cpu="3")})
    world.sync()
    world.delete("drafts/berlin")
    declined = world.sync()
    assert world.sync().is_unchanged
    world.write({"clusters/berlin.yaml": repository("berlin").replace("north", "north, size: big")})
    assert world.sync().changed_branches == set()
    world.write({"placed/limits.yaml": build_limits(cpu="4")})

    after = world.sync()

    assert declined.outcomes["berlin/resources/shop"] == "declined"
    assert after.outcomes["berlin/resources/shop"] == "draft"
    assert "cpu: 4" in world.text("drafts/berlin", LIMITS)
    assert world.sync().is_unchanged


def test_a_declined_removal_stays_declined(world: World) -> None:
    world.write({"placed/limits.yaml": build_limits(on="berlin")})
    world.sync()
    world.delete("removals/lisbon")

    after = world.sync()

    assert after.outcomes["lisbon/resources/shop"] == "declined"
    assert world.sync().is_unchanged


# Directories without an owner


def build_world_with_foreign_files(folder: Path, adopt: bool = False) -> World:
    """Return a world where Berlin has foreign files at the paths of placed resources."""
    world = World.create(folder)
    own_config_map = resource("ConfigMap", "limits", cpu="7", memory="1Gi", disk="10Gi")
    world.commit(
        "clusters/berlin", {LIMITS: own_config_map, "resources/shop/own.yaml": resource("ConfigMap", "own", a="b")}
    )
    placed = resource("ConfigMap", "limits", on=BOTH, adopt=adopt, cpu="2", memory="4Gi")
    world.write(
        {**{f"clusters/{cluster}.yaml": repository(cluster) for cluster in ("berlin", "lisbon")}, "limits.yaml": placed}
    )
    return world


def test_a_directory_without_owner_is_not_changed_until_the_resources_adopt_it(tmp_path: Path) -> None:
    world = build_world_with_foreign_files(tmp_path)

    before = world.sync()

    assert before.outcomes == {"berlin/resources/shop": "DirectoryNotOwned", "lisbon/resources/shop": "draft"}
    assert world.head("drafts/berlin") == ""
    assert world.sync().is_unchanged
    world.write({"limits.yaml": resource("ConfigMap", "limits", on=BOTH, adopt=True, cpu="2", memory="4Gi")})
    after = world.sync()
    text = world.text("drafts/berlin", LIMITS)
    assert after.outcomes["berlin/resources/shop"] == "draft"
    assert ("cpu: 2" in text, "disk: 10Gi" in text) == (True, True)
    assert world.text("drafts/berlin", "resources/shop/own.yaml")
    assert {conflict[2] for conflict in list_conflicts(world)} >= {"/data/cpu", "/data/memory"}
    assert world.sync().is_unchanged
    publish(world)
    assert world.record("berlin", "resources/shop")["owned"]


# Lost state


starts = pytest.mark.parametrize("start", [placements_drafted, placements_published])


@starts
def test_with_lost_state_all_packages_are_recognized(tmp_path: Path, start: Callable[[Path], World]) -> None:
    world = begin(tmp_path, start)
    before = {name: world.head(name) for name in _list_existing_branches(world)}
    delete_state(world, "berlin")

    world.sync()

    assert {name: world.head(name) for name in _list_existing_branches(world)} == before
    assert world.sync_until_unchanged().is_unchanged
    world.write({"placed/banner.yaml": None})
    world.sync()
    assert list_placed_files(world, "drafts/berlin") == ["_cluster/namespace-shop.yaml", "shop/configmap-limits.yaml"]
    assert world.sync().is_unchanged


@starts
def test_resources_removed_while_the_state_is_lost_stay(tmp_path: Path, start: Callable[[Path], World]) -> None:
    world = begin(tmp_path, start)
    delete_state(world, "berlin")
    world.write({"placed/banner.yaml": None, "placed/limits.yaml": build_limits(cpu="3")})

    world.sync()

    # Without the state, the resource counts as a file of other people.
    assert world.text("drafts/berlin", BANNER)
    assert "cpu: 3" in world.text("drafts/berlin", LIMITS)
    assert world.sync_until_unchanged().is_unchanged


def test_with_lost_state_a_namespace_that_is_not_requested_is_not_removed(world: World) -> None:
    delete_state(world, "lisbon")
    world.write({"placed/limits.yaml": build_limits(on="berlin")})

    after = world.sync()

    assert (
        world.head("removals/lisbon"),
        LIMITS.removeprefix("resources/") in list_placed_files(world, "clusters/lisbon"),
    ) == (
        "",
        True,
    )
    assert after.changed_branches == set()
    assert world.sync().is_unchanged


def test_a_draft_that_was_just_declined_does_not_count_as_published(world: World) -> None:
    resource_text = resource("ConfigMap", "more", on="berlin", size="1")
    world.write({"more.yaml": resource_text})
    world.sync()
    assert "A resources/shop/configmap-more.yaml" in list_changes(world, "drafts/berlin")
    world.delete("drafts/berlin")
    world.write({"again.yaml": resource_text})

    world.sync()

    assert not world.head("drafts/berlin")
    assert world.sync().is_unchanged


def test_the_deletion_guard_holds_a_narrowed_policy_until_it_is_acknowledged(tmp_path: Path) -> None:
    names = ("amsterdam", "berlin", "lisbon", "paris")
    world = placement_world(tmp_path, guards={"max_delete_percent": 30})
    world.write({f"clusters/{item}.yaml": repository(item) for item in names})
    world.write({"placed/limits.yaml": build_limits(on="", by="north"), "placed/namespace.yaml": None})
    world.write({"policies/north.yaml": propagation("north", {})})
    world.sync()
    publish(world, *names)
    shrunk = {"placement": [{"cluster": "paris"}]}
    world.write({"policies/north.yaml": propagation("north", shrunk)})
    held = world.sync()
    values = [finding.message for finding in held.findings if finding.code == "DeletionHeld"]
    hash_match = next(match for item in values if (match := re.search(r'ack-deletions: "(\w+)"', item)))
    assert world.sync().is_unchanged
    assert ready_reason(world, "ClusterPropagationPolicy/north") == "DeletionHeld"
    acknowledged = {"reconciler.dev/ack-deletions": hash_match[1]}
    world.write({"policies/north.yaml": propagation("north", shrunk, **acknowledged)})

    after = world.sync()

    assert {held.outcomes[f"{item}/resources/shop"] for item in names[:3]} == {"DeletionHeld"}
    assert held.changed_branches == set()
    assert {after.outcomes[f"{item}/resources/shop"] for item in names[:3]} == {"proposed"}
    assert after.outcomes["paris/resources/shop"] == "published"
    assert world.sync().is_unchanged
    for name in names[:3]:
        world.merge(name, "squash", draft=f"removals/{name}")
    world.sync_until_unchanged()
    assert [list_placed_files(world, f"clusters/{item}") for item in names[:3]] == [[], [], []]


def test_a_second_daemon_during_a_pass_produces_one_commit(world: World) -> None:
    world.write({"placed/limits.yaml": build_limits(cpu="3")})

    world.sync_while(world.sync)

    assert git(world.fleet, "rev-list", "--count", "clusters/berlin..drafts/berlin") == "1"
    assert world.sync_until_unchanged().is_unchanged


# Clusters without a Repository


def test_clusters_without_a_repository_use_the_fleet_repository(tmp_path: Path) -> None:
    world = world_with_missing_repositories(tmp_path)

    first = world.sync()

    branches = [f"{kind}/{cluster}" for kind in ("clusters", "drafts") for cluster in ("berlin", "oslo", "rome")]
    assert first.changed_branches == set(branches)
    assert ["cpu: three" in world.text(f"drafts/{cluster}", LIMITS) for cluster in ("oslo", "rome")] == [False, True]
    assert ready_reason(world, "FederatedCluster/oslo") == ready_reason(world, "Cluster/rome", "team") == "Planned"
    assert world.sync().is_unchanged
    publish(world, "oslo", "rome")
    assert world.record("rome", "resources/shop")["revision"] == 1
    world.write({"placed/limits.yaml": resource("ConfigMap", "limits", on="oslo,berlin", cpu="two")})
    assert world.sync().outcomes["rome/resources/shop"] == "proposed"
    assert world.sync().is_unchanged
    world.merge("rome", draft="removals/rome")
    world.sync_until_unchanged()
    assert list_placed_files(world, "clusters/rome") == []
    assert_sound(world.fleet)


def test_labels_of_cluster_objects_with_one_name_are_merged_and_the_repository_is_the_target(tmp_path: Path) -> None:
    world = world_with_missing_repositories(tmp_path)
    world.sync()

    assert list_placed_files(world, "drafts/berlin") == ["shop/configmap-banner.yaml", "shop/configmap-limits.yaml"]
    assert list_placed_files(world, "drafts/oslo") == ["shop/configmap-limits.yaml"]
    assert ready_reason(world, "Repository/berlin", "default") == "Planned"
    assert "objects/_cluster/FederatedCluster/berlin.yaml" not in world.paths(world.fleet, "reconciler/status")


def test_a_cluster_that_gets_a_repository_at_the_same_location_is_unchanged(tmp_path: Path) -> None:
    world = world_with_missing_repositories(tmp_path)
    world.sync()
    publish(world, "oslo")
    before = world.head("clusters/oslo")
    world.write({"clusters/oslo-repository.yaml": repository("oslo", str(world.fleet))})

    after = world.sync()

    assert after.outcomes["oslo/resources/shop"] == "published"
    assert (world.head("clusters/oslo"), world.head("drafts/oslo"), world.head("removals/oslo")) == (before, "", "")
    assert world.sync().is_unchanged


def test_deleting_a_cluster_object_removes_no_packages(tmp_path: Path) -> None:
    world = world_with_missing_repositories(tmp_path)
    world.sync()
    publish(world, "oslo")
    before = world.head("clusters/oslo")
    world.write({"clusters/oslo.yaml": None})

    after = world.sync()

    assert (after.changed_branches, world.head("clusters/oslo")) == (set(), before)
    assert world.sync().is_unchanged
    world.write({"clusters/oslo.yaml": federated_cluster("oslo", region="north")})
    assert world.sync().outcomes["oslo/resources/shop"] == "published"
    assert world.sync().is_unchanged


def run_command(world: World, *arguments: str, fleet: bool = True) -> CommandResult:
    """Run a command in the folder of the world, with or without a fleet repository."""
    fleet_setting = f"fleet: {{url: {world.fleet}}}\n" if fleet else ""
    cache = world.folder / ("cache" if fleet else "cache-without-fleet")
    (world.folder / "reconciler.yaml").write_text(f"config: {{url: {world.config}}}\n{fleet_setting}cache: {cache}\n")
    return run_in(world.folder, {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}, *arguments)


def test_without_a_fleet_repository_such_clusters_have_no_target(tmp_path: Path) -> None:
    world = world_with_missing_repositories(tmp_path, fleet={"url": ""}, status={"url": str(tmp_path / "fleet.git")})

    first = world.sync()

    values = [finding.message for finding in first.findings if finding.code == "NoDestination"]
    assert [item.split()[1] for item in values] == ["oslo", "rome"]
    assert first.outcomes == {"berlin/resources/shop": "draft"}
    assert first.changed_branches == {"clusters/berlin", "drafts/berlin"}
    assert world.sync().is_unchanged


def test_render_writes_packages_without_a_target(tmp_path: Path) -> None:
    world = world_with_missing_repositories(tmp_path)

    result = run_command(world, "render", "--output", str(tmp_path / "out"), fleet=False)

    assert result.returncode == 0, result.stderr
    assert "cpu: three" in (tmp_path / "out" / "rome" / LIMITS).read_text()
    assert "cpu: two" in (tmp_path / "out" / "oslo" / LIMITS).read_text()


def test_a_plan_reports_clusters_without_a_target(tmp_path: Path) -> None:
    result = run_command(world_with_missing_repositories(tmp_path), "plan", fleet=False)

    assert result.returncode == 1
    assert result.stdout.count("NoDestination") == 2
    assert result.stdout.splitlines()[0] == "Plan: 1 package to install on 1 cluster; 2 errors"


# Output of commands


def test_commands_show_the_resources_of_a_cluster(tmp_path: Path) -> None:
    world = world_with_missing_repositories(tmp_path)

    validated = run_command(world, "validate")
    planned = run_command(world, "plan")
    world.sync()
    result, drafts, shown_draft = (
        run_command(world, "plan"),
        run_command(world, "drafts"),
        run_command(world, "show", "rome/resources/shop"),
    )

    assert (validated.returncode, validated.stdout) == (0, "no findings\n")
    assert (planned.returncode, "install rome/resources/shop" in planned.stdout) == (2, True)
    assert "ConfigMap shop/limits: added" in planned.stdout
    assert (result.returncode, "Plan: no changes; 3 unchanged" in result.stdout) == (0, True)
    assert [f"{cluster}: drafts/{cluster} Draft" in drafts.stdout for cluster in ("berlin", "oslo", "rome")] == [
        True
    ] * 3
    assert "cpu: three" in shown_draft.stdout


def test_a_plan_shows_the_change_of_an_override_policy(world: World) -> None:
    world.write({"policies/cpu.yaml": policy("cpu", [patch("/data/cpu", "4")], resourceSelectors=CONFIG_MAPS)})

    planned = run_command(world, "plan")

    assert planned.returncode == 2
    assert "ConfigMap shop/limits: data.cpu 2 → 4" in planned.stdout
