"""Tests of packages that are no longer requested: removal drafts, orphans, moves and deletion guards."""

import re
import shutil
from pathlib import Path

import pytest

from reconciler.controllers.deletion_guards import compute_deletion_hash
from tests.support import prepared_worlds
from tests.support.git_repositories import assert_sound, git, read_refs, write_hook
from tests.support.prepared_worlds import begin
from tests.support.world import (
    CLUSTERS,
    MERGES,
    STATE,
    World,
    catalog,
    injected_set,
    package,
    repository,
    small_world,
    variant,
)

METRICS = variant("metrics-berlin", "berlin", "metrics")
ORPHAN = variant("metrics-berlin", "berlin", "metrics", extra="deletionPolicy: orphan")
KEPT = "refs/reconciler/kept/berlin/"
BRANCH = "removals/berlin"


@pytest.fixture
def drafted(tmp_path: Path) -> World:
    """All packages are drafted, and no package is published."""
    return begin(tmp_path, prepared_worlds.drafted)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """All packages of Berlin and Lisbon are published."""
    return begin(tmp_path, prepared_worlds.published)


def propose_metrics_removal(world: World) -> World:
    """Delete the variant of metrics, and run a pass that proposes its removal."""
    world.write({"metrics.yaml": None})
    world.sync()
    return world


def list_changes(world: World, branch: str = BRANCH) -> list[str]:
    """Return the changes of a branch against the target branch, each as letter and path."""
    cluster = branch.partition("/")[2]
    return git(world.fleet, "diff", "--name-status", f"clusters/{cluster}...{branch}").splitlines()


def list_kept_refs(world: World) -> list[str]:
    return [name for name in read_refs(world.fleet) if "reconciler/kept/" in name]


def has_no_removals(world: World) -> bool:
    """Return whether all published packages exist, and no removal branch exists."""
    heads = [name.removeprefix("refs/heads/") for name in read_refs(world.fleet) if name.startswith("refs/heads/")]
    return (
        not [name for name in heads if name.startswith("removals/")]
        and all(world.tree("clusters/berlin", name) for name in ("gateway", "metrics"))
        and bool(world.tree("clusters/lisbon", "gateway"))
    )


# Unpublished packages


def test_an_unpublished_package_is_withdrawn_from_the_draft(drafted: World) -> None:
    drafted.write({"metrics.yaml": None})

    after = drafted.sync()

    assert after.outcomes["berlin/metrics"] == "withdrawn"
    assert after.changed_branches == {"drafts/berlin"}
    assert (drafted.tree("drafts/berlin", "metrics"), bool(drafted.tree("drafts/berlin", "gateway"))) == (None, True)
    assert drafted.paths(drafted.fleet, "drafts/berlin", ".reconciler") == ["gateway.yaml"]
    assert drafted.sync().is_unchanged
    assert_sound(drafted.fleet)


def test_withdrawing_the_last_package_deletes_the_draft_branch(drafted: World) -> None:
    drafted.write({"gateway.yaml": None})

    drafted.sync()

    assert drafted.head("drafts/lisbon") == ""
    assert list_kept_refs(drafted) == []
    assert drafted.sync().is_unchanged


def test_withdrawing_an_edited_package_appends_to_the_draft_and_keeps_the_edits_on_a_ref(drafted: World) -> None:
    edited = drafted.edit("drafts/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    drafted.write({"metrics.yaml": None})

    drafted.sync()

    assert git(drafted.fleet, "merge-base", edited, "drafts/berlin") == edited
    assert drafted.tree("drafts/berlin", "metrics") is None
    assert drafted.tree("drafts/berlin", "gateway")
    assert list_kept_refs(drafted) == [f"{KEPT}{edited[:12]}"]
    assert drafted.sync().is_unchanged


def test_a_deleted_draft_with_edits_is_kept_on_a_ref(drafted: World) -> None:
    edited = drafted.edit("drafts/lisbon", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    drafted.write({"gateway.yaml": None})

    drafted.sync()

    assert drafted.head("drafts/lisbon") == ""
    assert list_kept_refs(drafted) == [f"refs/reconciler/kept/lisbon/{edited[:12]}"]
    assert git(drafted.fleet, "rev-parse", list_kept_refs(drafted)[0]) == edited
    assert drafted.sync().is_unchanged


def test_edits_merged_into_an_update_are_kept_on_a_ref_too(drafted: World) -> None:
    drafted.commit("drafts/berlin", {"metrics/own.yaml": "a: 1\n"})
    drafted.release("metrics", "v2", package("metrics", image="2.0"))
    drafted.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    drafted.sync()
    drafted.write({"metrics.yaml": None})

    drafted.sync()

    (item,) = list_kept_refs(drafted)
    assert git(drafted.fleet, "show", f"{item}:metrics/own.yaml") == "a: 1"


def test_files_of_people_outside_the_package_keep_the_draft(drafted: World) -> None:
    drafted.commit("drafts/lisbon", {"notes.txt": "ours\n"})
    drafted.write({"gateway.yaml": None})

    drafted.sync()

    assert drafted.text("drafts/lisbon", "notes.txt") == "ours\n"
    assert drafted.tree("drafts/lisbon", "gateway") is None
    assert drafted.sync().is_unchanged


def test_edits_on_a_removal_draft_are_kept_on_a_ref_when_their_package_is_removed_too(world: World) -> None:
    propose_metrics_removal(world)
    edited = world.commit(BRANCH, {"gateway/notes.md": "checked\n"})
    world.sync_until_unchanged()
    assert list_kept_refs(world) == []
    world.write({"gateway.yaml": injected_set("gateway", ["lisbon"])})

    world.sync()

    assert world.tree(BRANCH, "gateway") is None
    assert list_kept_refs(world) == [f"{KEPT}{edited[:12]}"]
    assert world.sync().is_unchanged


def test_a_removal_draft_with_edits_waits_while_the_target_branch_conflicts_with_them(world: World) -> None:
    propose_metrics_removal(world)
    edited_head = world.commit(BRANCH, {"README.md": "not this week\n"})
    world.commit("clusters/berlin", {"README.md": "all is well\n", "gateway/notes.md": "checked\n"})
    world.write({"gateway.yaml": injected_set("gateway", ["lisbon"]), "metrics.yaml": METRICS})

    waiting = world.sync()

    assert world.head(BRANCH) == edited_head
    assert (waiting.outcomes["berlin/gateway"], waiting.codes) == ("RemovalWaits", {"RemovalWaits"})
    assert all("cannot be updated" in finding.message for finding in waiting.findings)
    assert world.sync().is_unchanged
    world.delete(BRANCH)
    assert world.sync_until_unchanged().outcomes["berlin/gateway"] == "proposed"
    assert world.tree(BRANCH, "metrics")


def test_kept_refs_are_branches_when_states_are_branches(tmp_path: Path) -> None:
    world = small_world(tmp_path, state_ref="refs/heads/reconciler/state/{repository}")
    world.sync()
    edited = world.edit("drafts/lisbon", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    world.write({"gateway.yaml": None})

    world.sync()

    assert list_kept_refs(world) == [f"refs/heads/reconciler/kept/lisbon/{edited[:12]}"]
    assert world.sync().is_unchanged


def test_the_withdrawal_from_a_proposed_draft_waits(drafted: World) -> None:
    drafted.set_ref("refs/heads/proposed/berlin", drafted.head("drafts/berlin"))
    drafted.write({"metrics.yaml": None})

    after = drafted.sync()

    assert after.outcomes["berlin/metrics"] == "RemovalWaits"
    assert after.changed_branches == set()
    assert drafted.sync().is_unchanged
    drafted.delete("proposed/berlin")
    assert drafted.sync().outcomes["berlin/metrics"] == "withdrawn"
    assert drafted.sync().is_unchanged


def test_workspace_numbers_are_not_used_again(drafted: World) -> None:
    drafted.write({"metrics.yaml": None})
    drafted.sync_until_unchanged()
    drafted.write({"metrics.yaml": METRICS})

    assert drafted.sync().outcomes["berlin/metrics"] == "draft"
    assert drafted.record("berlin", "metrics")["workspace"] == 2
    assert drafted.sync().is_unchanged


# Published packages


def test_the_removal_of_a_published_package_is_proposed_on_a_separate_branch(world: World) -> None:
    world.write({"metrics.yaml": None})

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "proposed"
    assert after.changed_branches == {BRANCH}
    published = world.paths(world.fleet, "clusters/berlin", "metrics")
    assert set(list_changes(world)) == {"D\t.reconciler/metrics.yaml", *(f"D\tmetrics/{item}" for item in published)}
    assert git(world.fleet, "rev-parse", f"{BRANCH}~1") == world.head("clusters/berlin")
    message = git(world.fleet, "log", "-1", "--format=%B", BRANCH)
    assert message.startswith("delete metrics\n")
    assert "Reconciler-Task: propose-delete\n" in message
    assert "Reconciler-Owner: PackageVariant default/metrics-berlin\n" in message
    assert "Deployment metrics" in message
    assert world.sync().is_unchanged
    assert_sound(world.fleet)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("delete", [pytest.param(True, id="branch-deleted"), pytest.param(False, id="branch-stays")])
@pytest.mark.parametrize("merge_method", MERGES)
def test_merging_the_removal_draft_approves_the_removal(world: World, merge_method: str, delete: bool) -> None:
    propose_metrics_removal(world)
    world.merge("berlin", merge_method, BRANCH, delete)

    after = world.sync()

    assert after.outcomes == {
        "berlin/gateway": "published",
        "lisbon/gateway": "published",
        "berlin/metrics": "withdrawn",
    }
    assert world.head(BRANCH) == ""
    assert world.sync().is_unchanged
    assert "berlin/metrics" not in world.sync().outcomes


def test_revision_numbers_are_not_used_again(world: World) -> None:
    propose_metrics_removal(world)
    world.merge("berlin", "merge", BRANCH)
    world.sync_until_unchanged()
    world.write({"metrics.yaml": variant("somebody-else", "berlin", "metrics")})

    assert world.sync().outcomes["berlin/metrics"] == "draft"
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    assert world.record("berlin", "metrics")["revision"] == 2


def test_a_package_that_people_deleted_needs_no_removal_draft(world: World) -> None:
    paths = [f"metrics/{path}" for path in world.paths(world.fleet, "clusters/berlin", "metrics")]
    world.commit("clusters/berlin", dict.fromkeys(paths))
    world.write({"metrics.yaml": None})

    assert world.sync().outcomes["berlin/metrics"] == "withdrawn"
    assert world.head(BRANCH) == ""
    assert world.sync().is_unchanged


def test_an_open_update_is_withdrawn_when_the_package_is_removed(world: World) -> None:
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.sync()
    assert world.head("drafts/berlin")
    world.write({"metrics.yaml": None})

    after = world.sync()

    assert after.changed_branches == {"drafts/berlin", BRANCH}
    assert world.head("drafts/berlin") == ""
    assert world.tree(BRANCH, "metrics") is None
    assert world.sync().is_unchanged


def test_each_removal_is_a_separate_commit(world: World) -> None:
    world.write(
        {"gateway.yaml": None, "metrics.yaml": None, "other.yaml": variant("x", "lisbon", "x", "v1", "metrics")}
    )
    world.sync()
    assert git(world.fleet, "rev-list", "--count", f"clusters/berlin..{BRANCH}") == "2"
    world.commit(
        "clusters/berlin", {f"metrics/{path}": None for path in world.paths(world.fleet, "clusters/berlin", "metrics")}
    )

    after = world.sync()

    assert (after.outcomes["berlin/metrics"], after.outcomes["berlin/gateway"]) == ("withdrawn", "proposed")
    assert world.tree(BRANCH, "gateway") is None
    assert world.sync().is_unchanged
    assert git(world.fleet, "rev-list", "--count", f"clusters/berlin..{BRANCH}") == "1"


def test_a_second_removal_is_appended(world: World) -> None:
    propose_metrics_removal(world)
    before = world.head(BRANCH)
    world.write({"gateway.yaml": None, "other.yaml": variant("x", "lisbon", "x", "v1", "metrics")})

    world.sync()

    assert git(world.fleet, "rev-parse", f"{BRANCH}~1") == before
    assert world.sync().is_unchanged


def test_a_package_requested_again_is_taken_out_of_the_removal_draft(world: World) -> None:
    propose_metrics_removal(world)
    world.write({"metrics.yaml": METRICS})

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "published"
    assert after.changed_branches == {BRANCH}
    assert world.head(BRANCH) == ""
    assert world.sync().is_unchanged


def test_a_package_requested_again_causes_no_removal_findings(world: World) -> None:
    propose_metrics_removal(world)
    world.write({"metrics.yaml": METRICS})

    assert world.sync().codes == set()
    assert world.sync().codes == set()


def test_a_package_requested_by_another_owner_is_taken_out_of_the_removal_draft(world: World) -> None:
    propose_metrics_removal(world)
    world.write({"metrics.yaml": variant("measurements", "berlin", "metrics")})

    world.sync()

    assert world.head(BRANCH) == ""
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"


def test_a_package_requested_again_with_a_new_version_is_drafted_and_not_removed(world: World) -> None:
    propose_metrics_removal(world)
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})

    after = world.sync()

    assert after.changed_branches == {BRANCH, "drafts/berlin"}
    assert world.head(BRANCH) == ""
    assert "metrics:2.0" in world.text("drafts/berlin", "metrics/deployment.yaml")
    assert world.sync().is_unchanged


def test_an_edited_removal_draft_is_only_appended_to(world: World) -> None:
    propose_metrics_removal(world)
    edited = world.commit(BRANCH, {"notes.txt": "why it may go\n"})
    world.write({"metrics.yaml": METRICS})

    world.sync()

    assert git(world.fleet, "merge-base", edited, BRANCH) == edited
    assert list_changes(world) == ["A\tnotes.txt"]
    assert world.sync().is_unchanged


def test_a_change_of_the_package_on_the_target_branch_rebuilds_the_removal_draft(world: World) -> None:
    propose_metrics_removal(world)
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 9")

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "proposed"
    assert git(world.fleet, "rev-parse", f"{BRANCH}~1") == world.head("clusters/berlin")
    assert world.sync().is_unchanged


def test_a_change_outside_the_package_does_not_move_the_removal_draft(world: World) -> None:
    propose_metrics_removal(world)
    world.commit("clusters/berlin", {"notes.txt": "by the way\n"})

    assert world.sync().changed_branches == set()


# Declined removals


def test_a_deleted_removal_draft_is_declined_until_the_package_changes(world: World) -> None:
    propose_metrics_removal(world)
    world.delete(BRANCH)

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "declined"
    assert "RemovalDeclined" in after.codes
    assert world.sync().is_unchanged
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 9")
    assert world.sync().outcomes["berlin/metrics"] == "proposed"
    assert world.tree(BRANCH, "metrics") is None
    assert world.sync().is_unchanged


def test_a_declined_removal_is_proposed_again_when_the_package_was_requested_in_between(world: World) -> None:
    propose_metrics_removal(world)
    world.delete(BRANCH)
    world.sync()
    world.write({"metrics.yaml": METRICS})
    world.sync_until_unchanged()
    world.write({"metrics.yaml": None})

    assert world.sync().outcomes["berlin/metrics"] == "proposed"


def test_a_package_that_people_restore_on_the_removal_draft_is_declined(world: World) -> None:
    propose_metrics_removal(world)
    package_files = {
        f"metrics/{path}": text + "\n" for path, text in world.files(world.fleet, "clusters/berlin", "metrics").items()
    }
    world.commit(BRANCH, package_files)

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "declined"
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "declined"


def test_an_approved_removal_that_people_revert_is_declined(world: World) -> None:
    propose_metrics_removal(world)
    world.merge("berlin", "squash", BRANCH)
    world.revert("berlin")

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "declined"
    assert world.tree("clusters/berlin", "metrics")
    assert world.head(BRANCH) == ""
    assert world.sync().is_unchanged


def test_a_package_restored_after_its_recorded_removal_has_no_owner(world: World) -> None:
    propose_metrics_removal(world)
    world.merge("berlin", "squash", BRANCH)
    world.sync_until_unchanged()
    world.revert("berlin")

    assert world.sync().changed_branches == set()
    assert world.tree("clusters/berlin", "metrics")
    world.write({"metrics.yaml": METRICS})
    assert world.sync().outcomes["berlin/metrics"] == "DownstreamExists"


def test_a_proposed_removal_draft_waits_and_reports_that(world: World) -> None:
    propose_metrics_removal(world)
    world.set_ref(f"refs/heads/proposed/{BRANCH}", world.head(BRANCH))
    world.write({"metrics.yaml": METRICS})

    after = world.sync()

    assert after.changed_branches == set()
    assert "RemovalWaits" in after.codes
    assert world.sync().is_unchanged
    world.delete(f"proposed/{BRANCH}")
    assert world.sync().changed_branches == {BRANCH}
    assert world.head(BRANCH) == ""
    assert world.sync().is_unchanged


def test_a_proposed_removal_draft_that_was_merged_is_deleted_with_its_proposal(world: World) -> None:
    propose_metrics_removal(world)
    world.set_ref(f"refs/heads/proposed/{BRANCH}", world.head(BRANCH))
    world.merge("berlin", "merge", BRANCH)

    world.sync()

    assert (world.head(BRANCH), world.head(f"proposed/{BRANCH}")) == ("", "")
    assert world.sync().is_unchanged


# Commands


def test_a_removal_is_proposed_and_approved_by_command(world: World) -> None:
    propose_metrics_removal(world)
    world.run_review_action("propose", "berlin", removals=True)
    assert world.head(f"proposed/{BRANCH}") == world.head(BRANCH)
    assert world.sync().is_unchanged

    world.run_review_action("approve", "berlin/metrics")

    assert world.tree("clusters/berlin", "metrics") is None
    assert world.paths(world.fleet, "clusters/berlin", ".reconciler") == ["gateway.yaml"]
    world.sync()
    assert (world.head(BRANCH), world.head(f"proposed/{BRANCH}")) == ("", "")
    assert world.sync().is_unchanged
    assert world.record("berlin", "metrics")["owned"] is False


def test_one_of_two_removals_is_approved_by_command(world: World) -> None:
    world.write({"gateway.yaml": None, "metrics.yaml": None, "x.yaml": variant("x", "lisbon", "x", "v1", "metrics")})
    world.sync()

    world.run_review_action("approve", "berlin/metrics", should_approve_unproposed=True)

    after = world.sync()
    assert (after.outcomes["berlin/metrics"], after.outcomes["berlin/gateway"]) == ("withdrawn", "proposed")
    assert world.tree("clusters/berlin", "gateway")
    assert list_changes(world)
    assert world.sync().is_unchanged


def test_a_removal_that_is_dropped_by_command_is_declined(world: World) -> None:
    propose_metrics_removal(world)

    world.run_review_action("drop", "berlin/metrics")

    assert world.sync().outcomes["berlin/metrics"] == "declined"
    assert world.head(BRANCH) == ""
    assert world.sync().is_unchanged


# Orphans


def test_an_orphan_keeps_its_files_and_its_numbers(world: World) -> None:
    world.write({"metrics.yaml": ORPHAN})
    world.sync_until_unchanged()
    world.write({"metrics.yaml": None})

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "orphaned"
    assert after.changed_branches == set()
    assert world.tree("clusters/berlin", "metrics")
    record = world.record("berlin", "metrics")
    assert (record["owned"], record["revision"]) == (False, 1)
    assert world.sync().is_unchanged
    world.write({"metrics.yaml": METRICS})
    assert world.sync().outcomes["berlin/metrics"] == "DownstreamExists"


def test_the_draft_of_an_orphan_is_not_changed_any_more(drafted: World) -> None:
    drafted.write({"metrics.yaml": ORPHAN})
    drafted.sync_until_unchanged()
    head = drafted.head("drafts/berlin")
    drafted.write({"metrics.yaml": None})

    assert drafted.sync().changed_branches == set()
    assert drafted.head("drafts/berlin") == head
    assert drafted.sync().is_unchanged
    drafted.merge("berlin", "squash")
    drafted.sync_until_unchanged()
    assert drafted.tree("clusters/berlin", "metrics")


def test_an_orphan_that_is_adopted_continues_its_revision_numbers(world: World) -> None:
    world.write({"metrics.yaml": ORPHAN})
    world.sync_until_unchanged()
    world.write({"metrics.yaml": None})
    world.sync_until_unchanged()
    world.release("metrics", "v2", package("metrics", image="2.0"))
    adopting = variant("new", "berlin", "metrics", "v2", extra="adoptionPolicy: adoptExisting")
    world.write({"metrics.yaml": adopting})
    world.sync_until_unchanged()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()

    assert world.record("berlin", "metrics")["revision"] == 2


# Moves


def test_a_moved_package_is_drafted_and_its_old_location_is_proposed_for_removal(world: World) -> None:
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "probes", upstream="metrics")})

    after = world.sync()

    assert after.outcomes["berlin/probes"] == "draft"
    assert after.outcomes["berlin/metrics"] == "proposed"
    assert world.sync().is_unchanged


@pytest.mark.parametrize("to", CLUSTERS[::-1])
def test_a_package_moved_to_another_cluster_is_drafted_and_the_old_one_proposed_for_removal(
    tmp_path: Path, to: str
) -> None:
    world = small_world(tmp_path)
    old_cluster = next(cluster for cluster in CLUSTERS if cluster != to)
    world.write({"metrics.yaml": variant("metrics", old_cluster, "metrics")})
    world.sync()
    world.merge(old_cluster, "squash")
    world.sync_until_unchanged()
    world.write({"metrics.yaml": variant("metrics", to, "metrics")})

    after = world.sync()

    assert after.outcomes[f"{to}/metrics"] == "draft"
    assert after.outcomes[f"{old_cluster}/metrics"] == "proposed"
    assert world.sync().is_unchanged


def test_two_packages_may_exchange_their_clusters(world: World) -> None:
    world.write({"lisbon.yaml": variant("probes", "lisbon", "probes", upstream="metrics")})
    world.sync()
    world.merge("lisbon", "squash")
    world.sync_until_unchanged()
    world.write(
        {
            "metrics.yaml": variant("metrics-berlin", "lisbon", "metrics"),
            "lisbon.yaml": variant("probes", "berlin", "probes", upstream="metrics"),
        }
    )

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == after.outcomes["lisbon/probes"] == "proposed"
    assert world.sync().is_unchanged


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(variant("metrics-berlin", "nowhere", "metrics"), id="no-repository"),
        pytest.param(variant("metrics-berlin", "berlin", "probes", "v9", "metrics"), id="no-upstream"),
        pytest.param(
            variant("metrics-berlin", "berlin", "gateway/inner", upstream="metrics"), id="inside-another-package"
        ),
    ],
)
def test_the_old_package_stays_while_the_new_location_is_blocked(world: World, new: str) -> None:
    world.write({"metrics.yaml": new})

    after = world.sync()

    assert has_no_removals(world)
    assert after.changed_branches == set()
    assert world.sync().is_unchanged


def test_a_package_may_move_into_its_own_folder(world: World) -> None:
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics/inner", upstream="metrics")})

    assert world.sync().outcomes["berlin/metrics"] == "proposed"
    world.merge("berlin", "squash", BRANCH)
    assert world.sync().outcomes["berlin/metrics/inner"] == "DownstreamConflict"
    assert world.sync().outcomes["berlin/metrics/inner"] == "draft"


def test_a_package_taken_over_in_the_commit_that_moves_its_owner_is_not_removed(world: World) -> None:
    world.write(
        {
            "metrics.yaml": variant("metrics-berlin", "berlin", "probes", upstream="metrics"),
            "heir.yaml": variant("heir", "berlin", "metrics"),
        }
    )

    world.sync()

    assert world.head(BRANCH) == ""
    assert world.record("berlin", "metrics")["owner"]["name"] == "heir"  # type: ignore[index]
    after = world.sync_until_unchanged()
    assert (after.outcomes["berlin/metrics"], after.outcomes["berlin/probes"]) == ("published", "drafted")


def test_two_owners_may_exchange_their_packages(world: World) -> None:
    world.write({"probes.yaml": variant("probes", "berlin", "probes", upstream="metrics")})
    world.sync()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    world.write(
        {
            "metrics.yaml": variant("metrics-berlin", "berlin", "probes", upstream="metrics"),
            "probes.yaml": variant("probes", "berlin", "metrics"),
        }
    )

    world.sync()

    assert world.head(BRANCH) == ""
    assert world.record("berlin", "metrics")["owner"]["name"] == "probes"  # type: ignore[index]
    assert world.sync().is_unchanged


def test_a_package_of_a_deleted_owner_taken_over_by_another_owner_is_not_removed(world: World) -> None:
    world.write(
        {
            "metrics.yaml": variant("metrics-berlin", "berlin", "probes", upstream="metrics"),
            "heir.yaml": variant("heir", "lisbon", "heir", upstream="metrics"),
        }
    )
    world.write({"metrics.yaml": None, "heir.yaml": variant("heir", "berlin", "metrics")})

    after = world.sync()

    assert BRANCH not in after.changed_branches
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"


def test_a_package_that_is_an_upstream_of_another_package_stays(world: World) -> None:
    git(world.fleet, "tag", "berlin/metrics/v1", "clusters/berlin")
    world.write({"chained.yaml": variant("chained", "lisbon", "metrics").replace("repo: catalog", "repo: berlin")})
    assert world.sync().outcomes["lisbon/metrics"] == "draft"
    world.sync_until_unchanged()
    world.write({"metrics.yaml": None})

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "RemovalWaits"
    assert has_no_removals(world)
    assert world.sync().is_unchanged
    world.write({"chained.yaml": None})
    assert world.sync().outcomes["berlin/metrics"] == "proposed"


# Deletion guards


def read_acknowledgement_hashes(world: World) -> set[str]:
    text = " ".join(
        finding.message for finding in world.plan().findings if finding.code in ("DeletionHeld", "NoTargets")
    )
    return set(re.findall(r'ack-deletions: "([0-9a-f]+)"', text))


def add_acknowledgement(text: str, token: str, key: str = "ack-deletions") -> str:
    return text.replace("metadata:\n", f'metadata:\n  annotations: {{reconciler.dev/{key}: "{token}"}}\n', 1)


@pytest.fixture
def large_set(tmp_path: Path) -> World:
    """A set has one published package on each of five clusters, which acknowledge its deletion."""
    return begin(tmp_path, build_five_clusters)


def build_five_clusters(folder: Path) -> World:
    world = small_world(folder, guards={"max_delete_percent": 30})
    names = [f"c{number}" for number in range(5)]
    world.write(
        {
            f"clusters/{item}.yaml": add_acknowledgement(repository(item), compute_deletion_hash([(item, "gateway")]))
            for item in names
        }
    )
    world.write({"metrics.yaml": None, "gateway.yaml": injected_set("gateway", names)})
    world.sync()
    for name in names:
        world.merge(name, "squash")
    world.sync_until_unchanged()
    return world


def build_set(count: int) -> str:
    return injected_set("gateway", [f"c{number}" for number in range(count)])


def list_removal_branches(world: World) -> set[str]:
    return {
        name.removeprefix("refs/heads/") for name in read_refs(world.fleet) if name.startswith("refs/heads/removals/")
    }


def test_a_set_may_remove_packages_below_the_limit(large_set: World) -> None:
    large_set.write({"gateway.yaml": build_set(4)})

    assert large_set.sync().outcomes["c4/gateway"] == "proposed"
    assert list_removal_branches(large_set) == {"removals/c4"}
    assert large_set.sync().is_unchanged


def test_removals_above_the_limit_are_held_until_they_are_acknowledged(large_set: World) -> None:
    large_set.write({"gateway.yaml": build_set(2)})
    after = large_set.sync()
    assert {after.outcomes[f"c{number}/gateway"] for number in (2, 3, 4)} == {"DeletionHeld"}
    assert list_removal_branches(large_set) == set()
    assert large_set.sync().is_unchanged
    (token,) = read_acknowledgement_hashes(large_set)
    large_set.write({"gateway.yaml": add_acknowledgement(build_set(2), token)})

    large_set.sync()

    assert list_removal_branches(large_set) == {"removals/c2", "removals/c3", "removals/c4"}
    assert large_set.sync().is_unchanged
    # Approving the removals one by one needs no second acknowledgement.
    large_set.merge("c2", "squash", "removals/c2")
    assert "DeletionHeld" not in large_set.sync_until_unchanged().codes
    assert list_removal_branches(large_set) == {"removals/c3", "removals/c4"}


def test_a_held_removal_stays_held_after_the_set_publishes_on_another_cluster(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    world.write({"gateway.yaml": injected_set("gateway", ["berlin"])})
    world.sync()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    world.write({"gateway.yaml": injected_set("gateway", ["lisbon"])})

    assert world.sync().outcomes["berlin/gateway"] == "DeletionHeld"
    assert world.sync().is_unchanged
    world.merge("lisbon", "squash")
    assert world.sync_until_unchanged().outcomes["berlin/gateway"] == "DeletionHeld"
    (token,) = read_acknowledgement_hashes(world)
    world.write({"gateway.yaml": add_acknowledgement(injected_set("gateway", ["lisbon"]), token)})
    assert world.sync_until_unchanged().outcomes["berlin/gateway"] == "proposed"


def test_the_deletion_guard_does_not_hold_an_approved_removal(large_set: World) -> None:
    large_set.write({"gateway.yaml": build_set(4)})
    large_set.sync()
    large_set.merge("c4", "squash", "removals/c4")

    after = large_set.sync()

    assert after.outcomes["c4/gateway"] == "withdrawn"
    assert "DeletionHeld" not in after.codes
    assert large_set.sync().is_unchanged


def test_an_acknowledgement_of_other_removals_has_no_effect(large_set: World) -> None:
    large_set.write({"gateway.yaml": build_set(2)})
    (token,) = read_acknowledgement_hashes(large_set)
    large_set.write({"gateway.yaml": add_acknowledgement(build_set(1), token)})

    assert "DeletionHeld" in large_set.sync().codes
    assert list_removal_branches(large_set) == set()


def test_a_selector_that_matches_nothing_removes_nothing(large_set: World) -> None:
    empty = build_set(0).replace("repositories:\n", "repositorySelector: {matchLabels: {region: nowhere}}\n")
    large_set.write({"gateway.yaml": empty})

    after = large_set.sync()

    assert list_removal_branches(large_set) == set()
    assert "DeletionHeld" in after.codes
    assert large_set.sync().is_unchanged
    large_set.write({"gateway.yaml": add_acknowledgement(empty, "true", "allow-empty")})
    large_set.sync()
    assert len(list_removal_branches(large_set)) == 5
    assert large_set.sync().is_unchanged


def test_deleting_a_whole_set_proposes_all_its_removals(large_set: World) -> None:
    large_set.write({"gateway.yaml": None, "other.yaml": variant("x", "c0", "x", "v1", "metrics")})

    large_set.sync()

    assert len(list_removal_branches(large_set)) == 5
    assert large_set.sync().is_unchanged


# Removals need evidence


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "config",
    [
        pytest.param({"broken.yaml": "a: [\n", "metrics.yaml": None}, id="some-file-cannot-be-parsed"),
        pytest.param({"metrics.yaml": METRICS + "  downstream: {repo: [\n"}, id="its-own-file-cannot-be-parsed"),
        pytest.param({"metrics.yaml": METRICS.replace("  name: metrics-berlin\n", "  labels: {}\n")}, id="no-name"),
        pytest.param(
            {"metrics.yaml": METRICS.replace("kind: PackageVariant", "kind: PackageVarient")}, id="misspelled"
        ),
        pytest.param({"metrics.yaml": METRICS.replace("downstream:", "downstraem:")}, id="invalid"),
        pytest.param({"metrics.yaml": METRICS.replace("/v1alpha1", "/v9")}, id="another-version"),
        pytest.param(
            {"twin.yaml": variant("metrics-berlin", "berlin", "probes", upstream="metrics")}, id="defined-twice"
        ),
        pytest.param({"metrics.yaml": None, "moved/m.yaml": METRICS}, id="moved-to-another-file"),
        pytest.param({"metrics.yaml": METRICS.replace("repo: catalog", "repo: gone")}, id="upstream-is-gone"),
        pytest.param({"metrics.yaml": METRICS.replace("revision: v1", "revision: v9")}, id="revision-is-gone"),
        pytest.param({"catalog.yaml": None}, id="the-catalog-is-gone"),
        pytest.param(
            {"catalog.yaml": catalog("nowhere").replace("name: nowhere", "name: catalog")}, id="unreachable-upstream"
        ),
        pytest.param({"clusters/berlin.yaml": None}, id="the-repository-is-gone"),
        pytest.param(
            {"clusters/berlin.yaml": repository("berlin", "./nowhere.git"), "metrics.yaml": None}, id="unreachable"
        ),
        pytest.param(
            {"clusters/berlin.yaml": repository("berlin", directory="sub"), "metrics.yaml": None}, id="wrong-directory"
        ),
        pytest.param(
            {"clusters/berlin.yaml": repository("berlin", branch="main"), "metrics.yaml": None}, id="wrong-branch"
        ),
        pytest.param({"gateway.yaml": injected_set("gateway", ["lisbon"], "v9")}, id="a-set-that-fails"),
        pytest.param({"gateway.yaml": injected_set("gateway", [])}, id="a-set-that-is-invalid"),
        pytest.param(
            {"gateway.yaml": injected_set("gateway", ["lisbon", "atlantis"])}, id="a-set-with-an-unknown-cluster"
        ),
        pytest.param({"gateway.yaml": None, "metrics.yaml": None}, id="no-owner-at-all"),
        pytest.param({"regions/north.yaml": None}, id="an-injected-object-is-gone"),
    ],
)
def test_packages_stay_without_evidence_of_their_deletion(world: World, config: dict[str, str | None]) -> None:
    world.write(config)

    world.sync()

    assert has_no_removals(world)
    assert world.sync().is_unchanged


def test_an_empty_config_folder_removes_nothing(world: World) -> None:
    for path in sorted(world.config.rglob("*.yaml")):
        path.unlink()

    assert world.sync().changed_branches == set()
    assert has_no_removals(world)


def test_another_folder_of_the_config_removes_nothing(world: World) -> None:
    elsewhere = World(world.folder, config={"directory": "clusters"})

    elsewhere.sync()

    assert has_no_removals(elsewhere)
    assert elsewhere.sync().is_unchanged


def test_a_deleted_target_branch_removes_nothing(world: World) -> None:
    world.delete("clusters/berlin")
    world.write({"metrics.yaml": None})

    after = world.sync()

    assert "DestinationMissing" in after.codes
    assert after.changed_branches == set()


def test_an_emptied_fleet_repository_removes_nothing(world: World) -> None:
    world.write({"metrics.yaml": None})
    refs = read_refs(world.fleet)
    for name in refs:
        git(world.fleet, "update-ref", "-d", name)

    world.sync()

    assert world.head(BRANCH) == ""


def test_a_lost_state_removes_nothing_and_does_not_change_removal_drafts(world: World) -> None:
    propose_metrics_removal(world)
    head = world.head(BRANCH)
    git(world.fleet, "update-ref", "-d", f"{STATE}berlin")

    world.sync()

    assert world.head(BRANCH) == head
    assert world.sync().is_unchanged
    world.merge("berlin", "squash", BRANCH)
    world.sync_until_unchanged()
    assert world.head(BRANCH) == ""


def test_an_acknowledgement_on_the_repository_releases_all_its_removals(world: World) -> None:
    world.write({"gateway.yaml": None, "metrics.yaml": None})
    world.sync()
    result = next(finding.message for finding in world.plan().findings if "Repository berlin" in finding.message)
    (token,) = re.findall(r'ack-deletions: "([0-9a-f]+)"', result)
    world.write({"clusters/berlin.yaml": add_acknowledgement(repository("berlin"), token)})

    world.sync()

    assert list_removal_branches(world) == {BRANCH}
    assert world.sync().is_unchanged


def test_removal_drafts_do_not_change_while_a_file_is_unreadable(world: World) -> None:
    propose_metrics_removal(world)
    head = world.head(BRANCH)
    world.write({"broken.yaml": "a: [\n"})

    after = world.sync()

    assert (world.head(BRANCH), after.changed_branches) == (head, set())
    assert world.sync().is_unchanged


# Races, status and other settings


def test_after_a_race_the_target_is_planned_again(world: World) -> None:
    world.write({"metrics.yaml": None})

    world.sync_while(lambda: world.commit(BRANCH, {"theirs.txt": "first\n"}))

    assert world.text(BRANCH, "theirs.txt") == "first\n"
    world.sync_until_unchanged()


def test_two_daemons_propose_one_removal(world: World) -> None:
    world.write({"metrics.yaml": None})

    after = world.sync_while(world.sync)

    assert after.outcomes["berlin/metrics"] == "proposed"
    assert git(world.fleet, "rev-list", "--count", f"clusters/berlin..{BRANCH}") == "1"
    assert world.sync().is_unchanged


def test_two_daemons_keep_one_ref(drafted: World) -> None:
    drafted.edit("drafts/lisbon", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    drafted.write({"gateway.yaml": None})

    drafted.sync_while(drafted.sync)

    assert len(list_kept_refs(drafted)) == 1
    assert drafted.head("drafts/lisbon") == ""
    assert drafted.sync().is_unchanged


def test_the_pass_after_a_kill_before_the_push_proposes_the_removal(world: World) -> None:
    world.write({"metrics.yaml": None})

    def interrupt_pass() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.sync_while(interrupt_pass)
    assert has_no_removals(world)
    assert world.sync().outcomes["berlin/metrics"] == "proposed"
    assert world.sync().is_unchanged


def test_status_lists_removals_that_wait_for_approval(world: World) -> None:
    propose_metrics_removal(world)

    leaving = world.status("Repository", "berlin")["leaving"]
    summary = world.text("reconciler/status", "summary.yaml")

    assert leaving == [
        {
            "package": "metrics",
            "state": "proposed",
            "branch": BRANCH,
            "reason": "PackageVariant default/metrics-berlin does not exist any more",
        }
    ]
    assert "leaving:\n- package: berlin/metrics\n" in summary
    assert "RemovalProposed" in summary


def test_packages_below_a_directory_are_removed_from_the_directory(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    world.write({"clusters/berlin.yaml": repository("berlin", directory="live/apps")})
    world.sync()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    world.commit("clusters/berlin", {"metrics/other.yaml": "a: 1\n"})
    world.write({"metrics.yaml": None})

    world.sync()

    assert {change.partition("\t")[2].rpartition("/")[0] for change in list_changes(world)} == {
        "live/apps/.reconciler", "live/apps/metrics",
    }  # fmt: skip
    assert world.text(BRANCH, "metrics/other.yaml") == "a: 1\n"
    world.merge("berlin", "rebase", BRANCH)
    world.sync_until_unchanged()
    assert world.head(BRANCH) == ""


def test_a_draft_branch_for_one_package_is_deleted_with_the_package(tmp_path: Path) -> None:
    world = small_world(tmp_path, drafts={"branch": "drafts/{repository}/{package}"})
    world.sync()
    world.edit("drafts/berlin/metrics", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    edited = world.head("drafts/berlin/metrics")
    world.write({"metrics.yaml": None})

    assert world.sync().changed_branches == {"drafts/berlin/metrics"}
    assert world.head("drafts/berlin/metrics") == ""
    assert list_kept_refs(world) == [f"{KEPT}{edited[:12]}"]
    assert world.sync().is_unchanged


def test_the_removal_of_an_adopted_package_is_proposed_too(world: World) -> None:
    package_files = {
        f"metrics/{name}": text + "\n" for name, text in world.files(world.fleet, "clusters/berlin", "metrics").items()
    }
    world.commit("clusters/lisbon", package_files)
    world.write({"l.yaml": variant("lisbon", "lisbon", "metrics", extra="adoptionPolicy: adoptExisting")})
    world.sync_until_unchanged()
    world.write({"l.yaml": None})

    assert world.sync().outcomes["lisbon/metrics"] == "proposed"
    assert world.sync().is_unchanged


def test_a_refused_removal_branch_changes_nothing(world: World) -> None:
    write_hook(world.fleet, "update", 'case "$1" in refs/heads/removals/*) echo "no removals here" >&2; exit 1;; esac')
    world.write({"metrics.yaml": None})

    after = world.sync()

    assert "PushRefused" in after.codes
    assert has_no_removals(world)
    assert world.sync().is_unchanged


def test_equal_worlds_propose_equal_removals(world: World, tmp_path: Path) -> None:
    twin = World(tmp_path / "twin")
    shutil.copytree(world.folder, twin.folder, ignore=shutil.ignore_patterns("cache", "working-clone", "twin"))

    for item in (world, twin):
        propose_metrics_removal(item)

    assert world.head(BRANCH) == twin.head(BRANCH) != ""


def test_removal_branches_can_have_another_name(tmp_path: Path) -> None:
    world = small_world(tmp_path, drafts={"removals_branch": "gone/{repository}/{package}"})
    world.sync()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    world.write({"metrics.yaml": None})

    assert world.sync().changed_branches == {"gone/berlin/metrics"}
    assert world.sync().is_unchanged
    world.merge("berlin", "squash", "gone/berlin/metrics")
    world.sync()
    assert world.head("gone/berlin/metrics") == ""
