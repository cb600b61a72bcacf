"""Tests of the life of a draft: clone, each merge method, publication and the next upstream version."""

from pathlib import Path

import pytest

from reconciler.output.plan.overview import build_plan_result
from tests.support.git_repositories import assert_sound, git
from tests.support.world import MERGES, World, config_map, package, repository, small_world, variant


@pytest.fixture
def world(tmp_path: Path) -> World:
    return small_world(tmp_path)


def test_first_pass_drafts_each_package_with_its_status_file(world: World) -> None:
    first = world.sync()

    assert set(first.outcomes.values()) == {"draft"}
    assert first.changed_branches == {"clusters/berlin", "clusters/lisbon", "drafts/berlin", "drafts/lisbon"}
    assert world.paths(world.fleet, "clusters/berlin") == []
    drafted = {path.partition("/")[0] for path in world.paths(world.fleet, "drafts/berlin")}
    assert drafted == {".reconciler", "gateway", "metrics"}
    assert set(world.paths(world.fleet, "drafts/berlin", ".reconciler")) == {"gateway.yaml", "metrics.yaml"}
    assert world.sync().is_unchanged
    assert_sound(world.fleet)


def test_draft_has_one_commit_for_each_package(world: World) -> None:
    world.sync()

    trailers = "%(trailers:key=Reconciler-Package,valueonly,separator=)"
    packages = git(world.fleet, "log", f"--format={trailers}", "drafts/berlin")

    assert sorted(packages.split()) == ["gateway", "metrics"]


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("delete", [pytest.param(True, id="branch-deleted"), pytest.param(False, id="branch-left")])
@pytest.mark.parametrize("how", MERGES)
def test_merged_draft_is_published_and_not_drafted_again(world: World, how: str, delete: bool) -> None:
    world.sync()
    offered = world.tree("drafts/berlin", "gateway")
    head = world.merge("berlin", how, delete=delete)

    after = world.sync()

    assert after.outcomes == {"berlin/gateway": "published", "berlin/metrics": "published", "lisbon/gateway": "drafted"}
    assert world.head("clusters/berlin") == head
    assert world.tree("clusters/berlin", "gateway") == offered
    assert world.head("drafts/berlin") == ""
    assert [world.record("berlin", name)["revision"] for name in ("gateway", "metrics")] == [1, 1]
    assert world.sync().is_unchanged


def test_separately_merged_package_is_published_and_the_other_stays_drafted(world: World) -> None:
    world.sync()
    world.pick("berlin", "metrics")

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "published"
    assert after.outcomes["berlin/gateway"] == "drafted"
    assert git(world.fleet, "diff", "--name-only", "clusters/berlin", "drafts/berlin", "--", "metrics") == ""
    assert world.tree("drafts/berlin", "gateway")
    assert world.record("berlin", "gateway")["revision"] == 0
    assert world.sync().is_unchanged


def test_new_upstream_version_creates_an_upgrade_draft(world: World) -> None:
    world.sync()
    world.merge("berlin")
    world.sync()
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "draft"
    assert after.changed_branches == {"drafts/berlin"}
    changed = git(world.fleet, "diff", "--name-only", "clusters/berlin", "drafts/berlin").splitlines()
    assert changed == [".reconciler/metrics.yaml", "metrics/Kptfile", "metrics/deployment.yaml"]
    assert "Reconciler-Task: upgrade" in git(world.fleet, "log", "-1", "--format=%B", "drafts/berlin")
    world.merge("berlin")
    world.sync_until_unchanged()
    assert world.record("berlin", "metrics")["revision"] == 2


def test_new_upstream_version_is_appended_to_an_open_draft(world: World) -> None:
    world.sync()
    before = world.head("drafts/berlin")
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})

    world.sync()

    assert git(world.fleet, "merge-base", before, "drafts/berlin") == before
    assert "metrics:2.0" in world.text("drafts/berlin", "metrics/deployment.yaml")
    assert world.sync().is_unchanged


def test_changed_context_object_updates_the_drafts_that_use_it_only(world: World) -> None:
    world.sync()
    world.write({"regions/north.yaml": config_map("region-north", api="api.new")})

    after = world.sync()

    assert after.changed_branches == {"drafts/berlin"}
    assert after.outcomes == {"berlin/gateway": "draft", "berlin/metrics": "drafted", "lisbon/gateway": "drafted"}
    assert after.report.render_count == 1
    assert "api.new" in world.text("drafts/berlin", "gateway/endpoints.yaml")


def test_reverted_config_change_deletes_the_draft(world: World) -> None:
    world.sync()
    world.merge("berlin")
    world.sync_until_unchanged()
    world.write({"regions/north.yaml": config_map("region-north", api="api.new")})
    world.sync()
    assert world.head("drafts/berlin")
    world.write({"regions/north.yaml": config_map("region-north", api="api.north")})

    after = world.sync()

    assert after.outcomes["berlin/gateway"] == "published"
    assert world.head("drafts/berlin") == ""
    assert world.sync().is_unchanged


def test_merge_of_an_earlier_draft_head_keeps_the_later_draft_open(world: World) -> None:
    world.sync()
    older = world.head("drafts/berlin")
    world.write({"regions/north.yaml": config_map("region-north", api="api.new")})
    world.sync()
    world.set_ref("refs/heads/clusters/berlin", older)

    after = world.sync()

    assert world.record("berlin", "gateway")["revision"] == 1
    assert after.outcomes["berlin/gateway"] == "drafted"
    assert "api.new" in world.text("drafts/berlin", "gateway/endpoints.yaml")
    world.merge("berlin")
    assert world.sync_until_unchanged().outcomes["berlin/gateway"] == "published"
    assert world.record("berlin", "gateway")["revision"] == 2


def test_reverted_merge_is_published_and_then_drafted(world: World) -> None:
    world.sync()
    world.merge("berlin", "squash")
    world.revert("berlin")

    world.sync()
    after = world.sync_until_unchanged()

    assert world.paths(world.fleet, "clusters/berlin") == []
    assert after.outcomes["berlin/gateway"] == "drafted"
    assert world.record("berlin", "gateway")["revision"] == 1


def test_change_outside_the_packages_updates_no_draft(world: World) -> None:
    world.sync()
    world.commit("clusters/berlin", {"README.md": "ours\n"})

    assert world.sync().changed_branches == set()
    assert world.sync_until_unchanged().outcomes["berlin/gateway"] == "drafted"
    world.merge("berlin", "merge")
    world.sync_until_unchanged()
    assert world.text("clusters/berlin", "README.md") == "ours\n"


def test_proposed_draft_is_unchanged_until_the_proposal_ends(world: World) -> None:
    world.sync()
    head = world.head("drafts/berlin")
    world.set_ref("refs/heads/proposed/berlin", head)
    world.write({"regions/north.yaml": config_map("region-north", api="api.new")})

    frozen = world.sync()

    assert world.head("drafts/berlin") == head
    assert frozen.outcomes["berlin/gateway"] == "DownstreamProposed"
    assert world.reason("gateway-" + _suffix(world)) == "DownstreamProposed"
    assert world.sync().is_unchanged
    world.delete("proposed/berlin")
    world.sync()
    assert "api.new" in world.text("drafts/berlin", "gateway/endpoints.yaml")
    assert world.sync().is_unchanged


def _suffix(world: World) -> str:
    names = world.paths(world.fleet, "reconciler/status", "objects/default/PackageVariant")
    return next(name for name in names if "berlin" in name and name.startswith("gateway")).removesuffix(".yaml")[8:]


def test_merge_of_a_proposed_draft_deletes_draft_and_proposal(world: World) -> None:
    world.sync()
    world.set_ref("refs/heads/proposed/berlin", world.head("drafts/berlin"))
    world.merge("berlin", "squash")

    assert world.sync().outcomes["berlin/gateway"] == "published"
    assert world.head("drafts/berlin") == ""
    assert world.head("proposed/berlin") == ""
    assert world.sync().is_unchanged


def test_package_in_the_branch_template_creates_one_branch_for_each_package(tmp_path: Path) -> None:
    world = small_world(tmp_path, drafts={"branch": "drafts/{repository}/{package}"})

    assert world.sync().changed_branches >= {"drafts/berlin/gateway", "drafts/berlin/metrics", "drafts/lisbon/gateway"}
    world.merge("berlin", "squash", draft="drafts/berlin/metrics")
    after = world.sync()
    assert after.changed_branches == {"drafts/berlin/metrics"}
    assert after.outcomes == {"berlin/metrics": "published", "berlin/gateway": "drafted", "lisbon/gateway": "drafted"}
    assert world.sync().is_unchanged


def test_packages_are_written_below_the_directory_of_the_repository(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    world.write({"clusters/berlin.yaml": repository("berlin", directory="/sites/berlin/")})
    world.sync()

    assert world.tree("drafts/berlin", "sites/berlin/gateway")
    assert world.text("drafts/berlin", "sites/berlin/.reconciler/metrics.yaml")
    world.merge("berlin", "rebase")
    assert world.sync_until_unchanged().outcomes["berlin/gateway"] == "published"


def test_a_plan_lists_the_target_branches_of_the_first_push(world: World) -> None:
    before = build_plan_result(world.plan().report.plan, 0)
    world.sync()
    after = build_plan_result(world.plan().report.plan, 0)

    assert {branch.branch for branch in before.new_branches} == {"clusters/berlin", "clusters/lisbon"}
    assert after.new_branches == ()
