"""Tests of changes that people make on drafts and target branches: edits, declined drafts, deletions and reverts."""

from pathlib import Path

import pytest

from reconciler.output.plan.formats import format_plan_text
from reconciler.output.plan.overview import build_plan_result
from reconciler.output.review.formats import format_draft_text
from reconciler.output.review.open_drafts import build_draft_entry
from reconciler.output.review.pull_request import build_pull_request_text
from tests.support.git_repositories import git
from tests.support.prepared_worlds import begin, berlin_published
from tests.support.world import World, config_map, package, small_world, variant


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Berlin has both packages published."""
    return begin(tmp_path, berlin_published)


def release_metrics(world: World, version: str = "v2", image: str = "2.0") -> None:
    world.release("metrics", version, package("metrics", image=image))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", version)})


# Changes on the draft


def test_an_update_is_appended_to_an_edited_draft_and_keeps_the_edit(world: World) -> None:
    release_metrics(world)
    world.sync()
    edited = world.edit("drafts/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "drafted"
    release_metrics(world, "v3", "3.0")

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "draft"
    assert git(world.fleet, "merge-base", edited, "drafts/berlin") == edited
    text = world.text("drafts/berlin", "metrics/deployment.yaml")
    assert ("replicas: 5" in text, "metrics:3.0" in text) == (True, True)
    assert world.sync().is_unchanged


def test_an_edit_of_a_draft_survives_two_updates_and_the_merge(world: World) -> None:
    release_metrics(world)
    world.sync()
    world.edit("drafts/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    for version, image in (("v3", "3.0"), ("v4", "4.0")):
        release_metrics(world, version, image)
        world.sync_until_unchanged()
    world.merge("berlin", "squash", delete=True)
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"
    release_metrics(world, "v5", "5.0")

    world.sync_until_unchanged()

    text = world.text("drafts/berlin", "metrics/deployment.yaml")
    assert ("replicas: 5" in text, "metrics:5.0" in text) == (True, True)


def test_a_conflict_on_the_draft_is_reported_until_a_person_resolves_it(world: World) -> None:
    release_metrics(world)
    world.sync()
    world.edit("drafts/berlin", "metrics/deployment.yaml", "metrics:2.0", "metrics:2.0-hotfix")
    release_metrics(world, "v3", "3.0")

    world.sync_until_unchanged()

    assert "metrics:2.0-hotfix" in world.text("drafts/berlin", "metrics/deployment.yaml")
    conflict = world.package_status("drafts/berlin", "metrics")["conflicts"][0]
    assert conflict["local"] == "example.com/metrics:2.0-hotfix"
    assert (conflict["upstream"], conflict["chosen"]) == ("example.com/metrics:3.0", "local")
    world.commit("drafts/berlin", {"metrics/notes.md": "looked at\n"})
    world.sync_until_unchanged()
    assert world.package_status("drafts/berlin", "metrics")["conflicts"] == [conflict]
    world.edit("drafts/berlin", "metrics/deployment.yaml", "metrics:2.0-hotfix", "metrics:3.0-hotfix")
    world.sync_until_unchanged()
    assert "conflicts" not in world.package_status("drafts/berlin", "metrics")
    assert "metrics:3.0-hotfix" in world.text("drafts/berlin", "metrics/deployment.yaml")


def test_an_edited_draft_is_merged_unchanged_and_counts_as_published_with_edits(world: World) -> None:
    release_metrics(world)
    world.sync()
    world.edit("drafts/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    world.sync()
    world.merge("berlin", "squash", delete=True)

    after = world.sync_until_unchanged()

    assert after.outcomes["berlin/metrics"] == "published with edits"
    assert "replicas: 5" in world.text("clusters/berlin", "metrics/deployment.yaml")
    assert world.record("berlin", "metrics")["revision"] == 2
    assert world.head("drafts/berlin") == ""


def test_other_packages_are_appended_to_an_edited_draft(world: World) -> None:
    release_metrics(world)
    world.sync()
    edited = world.commit("drafts/berlin", {"metrics/notes.md": "checked\n"})
    world.release("gateway", "v2", package("gateway", image="9.9"))
    world.write({"gateway.yaml": variant("extra", "berlin", "logs", upstream="gateway", revision="v2")})

    world.sync()

    assert git(world.fleet, "merge-base", edited, "drafts/berlin") == edited
    assert world.text("drafts/berlin", "metrics/notes.md") == "checked\n"
    assert world.tree("drafts/berlin", "logs")
    assert world.sync().is_unchanged


def test_on_a_new_cluster_an_update_does_not_wait_for_an_edited_draft_of_another_package(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    world.sync()
    world.commit("drafts/berlin", {"gateway/notes.md": "checked\n"})
    world.sync_until_unchanged()
    world.pick("berlin", "metrics")
    world.sync_until_unchanged()
    release_metrics(world)

    after = world.sync()

    assert (after.outcomes["berlin/metrics"], after.codes) == ("draft", set())
    assert world.text("drafts/berlin", "gateway/notes.md") == "checked\n"
    assert set(world.paths(world.fleet, "drafts/berlin", ".reconciler")) == {"gateway.yaml", "metrics.yaml"}
    assert world.sync().is_unchanged


def test_an_update_does_not_wait_for_an_edited_draft_that_was_merged_completely(world: World) -> None:
    release_metrics(world)
    world.sync()
    world.commit("drafts/berlin", {"docs/checked.md": "by me\n"})
    world.sync_until_unchanged()
    world.merge("berlin", "squash")
    world.commit("clusters/berlin", {"docs/merged.md": "by you\n"})
    release_metrics(world, "v3", "3.0")

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "draft"
    assert "metrics:3.0" in world.text("drafts/berlin", "metrics/deployment.yaml")
    assert world.sync().is_unchanged


def test_an_edit_that_is_reverted_on_the_draft_is_not_carried_over(world: World) -> None:
    release_metrics(world)
    world.sync()
    world.edit("drafts/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    release_metrics(world, "v3", "3.0")
    world.sync()
    world.edit("drafts/berlin", "metrics/deployment.yaml", "replicas: 5", "replicas: 2")

    after = world.sync()

    assert after.outcomes["berlin/metrics"] == "drafted"
    text = world.text("drafts/berlin", "metrics/deployment.yaml")
    assert ("replicas: 2" in text, "metrics:3.0" in text) == (True, True)
    assert world.sync().is_unchanged


def test_a_package_removed_from_a_draft_is_declined_until_its_content_changes(world: World) -> None:
    before = world.text("clusters/berlin", "metrics/deployment.yaml")
    release_metrics(world)
    world.sync()
    kptfile, status = (world.text("clusters/berlin", path) for path in ("metrics/Kptfile", ".reconciler/metrics.yaml"))
    back = {"metrics/deployment.yaml": before, "metrics/Kptfile": kptfile, ".reconciler/metrics.yaml": status}
    world.commit("drafts/berlin", back)

    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "declined"
    release_metrics(world, "v3", "3.0")
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "drafted"
    assert "metrics:3.0" in world.text("drafts/berlin", "metrics/deployment.yaml")


def test_a_new_package_removed_from_its_draft_is_declined(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    world.sync()
    deleted = [f"metrics/{name}" for name in world.paths(world.fleet, "drafts/berlin", "metrics")]
    world.commit("drafts/berlin", dict.fromkeys([*deleted, ".reconciler/metrics.yaml"]))

    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "declined"
    assert world.tree("drafts/berlin", "metrics") is None


def test_a_deleted_draft_is_declined_until_its_content_changes(world: World) -> None:
    release_metrics(world)
    world.sync()
    world.delete("drafts/berlin")

    assert world.sync().outcomes["berlin/metrics"] == "declined"
    assert world.sync().is_unchanged
    assert world.head("drafts/berlin") == ""
    release_metrics(world, "v3", "3.0")
    assert world.sync().outcomes["berlin/metrics"] == "draft"
    assert "metrics:3.0" in world.text("drafts/berlin", "metrics/deployment.yaml")


# Changes on the target branch


def test_an_edit_on_the_target_branch_survives_an_update_until_it_is_reverted(world: World) -> None:
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published with edits"
    release_metrics(world)

    world.sync_until_unchanged()

    text = world.text("drafts/berlin", "metrics/deployment.yaml")
    assert ("replicas: 5" in text, "metrics:2.0" in text) == (True, True)
    world.revert("berlin")
    world.sync_until_unchanged()
    text = world.text("drafts/berlin", "metrics/deployment.yaml")
    assert ("replicas: 2" in text, "metrics:2.0" in text) == (True, True)


@pytest.mark.parametrize(
    ("policy", "drafted"),
    [
        pytest.param("upstream", "metrics:2.0", id="upstream"),
        pytest.param("", "metrics:1.0-hotfix", id="default"),
        pytest.param("local", "metrics:1.0-hotfix", id="local"),
        pytest.param("block", "", id="block"),
    ],
)
def test_the_conflict_policy_of_the_variant_decides(world: World, policy: str, drafted: str) -> None:
    world.edit("clusters/berlin", "metrics/deployment.yaml", "metrics:1.0", "metrics:1.0-hotfix")
    world.release("metrics", "v2", package("metrics", image="2.0", replicas=3))
    extra = f"conflictPolicy: {policy}" if policy else ""
    result = variant("metrics-berlin", "berlin", "metrics", "v2", extra=extra)
    world.write({"metrics.yaml": result})

    after = world.sync_until_unchanged()

    if drafted:
        text = world.text("drafts/berlin", "metrics/deployment.yaml")
        assert (drafted in text, "replicas: 3" in text) == (True, True)
        assert world.package_status("drafts/berlin", "metrics")["conflicts"][0]["chosen"] == (policy or "local")
    else:
        assert (after.outcomes["berlin/metrics"], world.head("drafts/berlin")) == ("MergeConflict", "")


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize(
    ("merge", "winner"),
    [
        pytest.param({}, "local", id="safe"),
        pytest.param({"profile": "safe", "conflict_policy": ""}, "local", id="safe-in-settings"),
        pytest.param({"profile": "compat"}, "upstream", id="compat"),
        pytest.param({"profile": "safe", "conflict_policy": "upstream"}, "upstream", id="safe-with-policy"),
        pytest.param({"profile": "compat", "conflict_policy": "local"}, "local", id="compat-with-policy"),
    ],
)
def test_without_a_conflict_policy_the_merge_profile_decides(
    tmp_path: Path, merge: dict[str, str], winner: str
) -> None:
    world = small_world(tmp_path, merge=merge)
    world.sync()
    world.merge("berlin", "squash", delete=True)
    world.sync_until_unchanged()
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    world.release("metrics", "v2", package("metrics", replicas=3))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})

    world.sync_until_unchanged()

    expected_text = "replicas: 5" if winner == "local" else "replicas: 3"
    assert expected_text in world.text("drafts/berlin", "metrics/deployment.yaml")
    (conflict,) = world.package_status("drafts/berlin", "metrics")["conflicts"]
    assert (conflict["local"], conflict["upstream"], conflict["chosen"]) == (5, 3, winner)


def test_an_edit_survives_every_update_and_each_commit_lists_the_change_not_applied(world: World) -> None:
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    for version, replicas in (("v2", 3), ("v3", 4)):
        world.release("metrics", version, package("metrics", replicas=replicas, image=version))
        world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", version)})
        world.sync_until_unchanged()
        text = world.text("drafts/berlin", "metrics/deployment.yaml")
        assert ("replicas: 5" in text, f"metrics:{version}" in text) == (True, True)
        message = git(world.fleet, "log", "-1", "--format=%B", "drafts/berlin")
        subject, conflicts = message.splitlines()[0], message.split("\n\n")[1]
        assert subject.endswith("; 1 upstream change not applied")
        assert len(subject) <= 72
        assert conflicts.splitlines()[0] == "Conflicts:"
        assert f"spec.replicas: local 5 is kept, upstream {replicas} is not applied" in conflicts
        world.merge("berlin", "squash", delete=True)
        world.sync_until_unchanged()
    assert "replicas: 5" in world.text("clusters/berlin", "metrics/deployment.yaml")


def test_every_upstream_change_that_was_not_applied_is_listed(world: World) -> None:
    names = [f"key{number}" for number in range(45)]
    release_metrics(world)
    for version, value in (("v2", "1"), ("v3", "2")):
        large_config_map = config_map("many", **dict.fromkeys(names, f'"{value}"'))
        world.release("metrics", version, package("metrics", many=large_config_map))
        world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", version)})
        if version == "v2":
            world.sync_until_unchanged()
            world.merge("berlin", "squash", delete=True)
            world.sync_until_unchanged()
            text = world.text("clusters/berlin", "metrics/many.yaml")
            world.commit("clusters/berlin", {"metrics/many.yaml": text.replace('"1"', '"mine"')})
    planned = format_plan_text(build_plan_result(world.plan().report.plan, 200))
    world.sync_until_unchanged()
    message = git(world.fleet, "log", "-1", "--format=%B", "drafts/berlin")
    (details,) = world.list_open_drafts("berlin", whole=True)
    outputs = {
        "commit": message, "plan": planned, "show": format_draft_text(build_draft_entry(details), world.now),
        "pull request": "\n".join(build_pull_request_text(details, (), lambda repo, commit: "").sections),
    }  # fmt: skip

    assert message.splitlines()[0].endswith("45 upstream changes not applied")
    assert len(world.package_status("drafts/berlin", "metrics")["conflicts"]) == 45
    missing = [
        (output_name, name)
        for output_name, text in outputs.items()
        for name in names
        if f"data.{name}: local mine is kept" not in text
    ]
    assert missing == []


def test_an_edit_that_a_function_overwrites_is_reported_as_a_conflict(world: World) -> None:
    setting = "pipeline: {mutators: [{image: set-labels:v0.2.0, name: tier, configMap: {tier: gold}}]}"
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", extra=setting)})
    world.sync_until_unchanged()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    world.edit("clusters/berlin", "metrics/deployment.yaml", "tier: gold", "tier: silver")

    world.sync_until_unchanged()

    assert "tier: silver" not in world.text("drafts/berlin", "metrics/deployment.yaml")
    conflicts = world.package_status("drafts/berlin", "metrics")["conflicts"]
    assert {(item["local"], item["upstream"], item["chosen"], item["rule"]) for item in conflicts} == {
        ("silver", "gold", "rule", "pipeline")
    }


def test_an_edit_on_the_target_branch_does_not_block_updates_of_other_packages(world: World) -> None:
    world.edit("clusters/berlin", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    release_metrics(world)

    after = world.sync()

    assert after.outcomes == {
        "berlin/gateway": "published with edits", "berlin/metrics": "draft", "lisbon/gateway": "drafted",
    }  # fmt: skip
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    assert "replicas: 5" in world.text("clusters/berlin", "gateway/deployment.yaml")


def test_a_hot_fix_on_the_target_branch_is_merged_into_the_open_draft(world: World) -> None:
    release_metrics(world)
    world.sync()
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")

    world.sync_until_unchanged()

    assert "replicas: 5" in world.text("drafts/berlin", "metrics/deployment.yaml")
    world.merge("berlin", "squash")
    after = world.sync_until_unchanged()
    assert after.outcomes["berlin/metrics"] == "published"
    text = world.text("clusters/berlin", "metrics/deployment.yaml")
    assert "replicas: 5" in text
    assert "metrics:2.0" in text


def test_a_rollback_to_an_earlier_revision_is_respected(world: World) -> None:
    release_metrics(world)
    world.sync()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    world.revert("berlin")

    after = world.sync_until_unchanged()

    assert after.outcomes["berlin/metrics"] == "declined"
    assert world.head("drafts/berlin") == ""
    release_metrics(world, "v3", "3.0")
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "drafted"
    assert "metrics:3.0" in world.text("drafts/berlin", "metrics/deployment.yaml")


def test_a_rollback_that_is_reverted_is_published_again(world: World) -> None:
    release_metrics(world)
    world.sync()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    world.revert("berlin")
    world.sync_until_unchanged()
    world.revert("berlin")

    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"


def test_a_package_that_people_deleted_is_drafted_again(world: World) -> None:
    deleted = [f"metrics/{name}" for name in world.paths(world.fleet, "clusters/berlin", "metrics")]
    world.commit("clusters/berlin", dict.fromkeys([*deleted, ".reconciler/metrics.yaml"]))

    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "drafted"
    assert world.tree("drafts/berlin", "metrics")
    world.merge("berlin", "squash")
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"


def test_a_draft_merged_by_copying_only_the_directory_is_published(world: World) -> None:
    release_metrics(world)
    world.sync()
    files = world.files(world.fleet, "drafts/berlin", "metrics")
    world.commit("clusters/berlin", {f"metrics/{name}": content + "\n" for name, content in files.items()})

    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"
    assert world.record("berlin", "metrics")["revision"] == 2


def test_files_that_people_add_outside_the_packages_stay(world: World) -> None:
    world.commit("clusters/berlin", {"README.md": "ours\n", "gateway-extras/note.txt": "ours\n"})
    release_metrics(world)
    world.sync()
    world.merge("berlin", "merge")
    world.sync_until_unchanged()

    assert world.text("clusters/berlin", "gateway-extras/note.txt") == "ours\n"


def test_an_edited_draft_keeps_its_edits_after_the_daemon_appended_to_it(world: World) -> None:
    release_metrics(world)
    world.sync()
    world.commit("drafts/berlin", {"metrics/notes.md": "checked\n"})
    world.write({"logs.yaml": variant("logs", "berlin", "logs", upstream="gateway")})
    world.sync()
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    world.sync_until_unchanged()
    world.write({"logs.yaml": None})
    world.sync_until_unchanged()

    assert world.text("drafts/berlin", "metrics/notes.md") == "checked\n"
    world.merge("berlin", "merge")
    world.sync_until_unchanged()
    assert world.text("clusters/berlin", "metrics/notes.md") == "checked\n"
    assert "replicas: 5" in world.text("clusters/berlin", "metrics/deployment.yaml")


def test_a_package_that_changed_on_the_target_branch_after_the_draft_merges_without_conflict(world: World) -> None:
    world.write({"logs.yaml": variant("logs", "berlin", "logs", upstream="gateway")})
    world.sync()
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    world.sync_until_unchanged()
    world.revert("berlin")
    world.edit("clusters/berlin", ".reconciler/metrics.yaml", "task: clone", "task: checked")
    release_metrics(world)

    world.sync_until_unchanged()

    world.merge("berlin", "merge")
    after = world.sync_until_unchanged()
    assert after.outcomes["berlin/metrics"] == "published"
    assert after.outcomes["berlin/logs"] == "published"


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("delete", [pytest.param(True, id="branch-deleted"), pytest.param(False, id="branch-stays")])
@pytest.mark.parametrize("merge_method", ["merge", "squash"])
def test_an_edited_draft_ends_when_its_whole_content_was_merged(world: World, merge_method: str, delete: bool) -> None:
    release_metrics(world)
    world.sync()
    world.commit("drafts/berlin", {"metrics/notes.md": "checked\n", "README.md": "ours\n"})
    world.commit("clusters/berlin", {"elsewhere.md": "ours\n"})
    world.sync_until_unchanged()
    world.merge("berlin", merge_method, delete=delete)
    world.sync_until_unchanged()

    assert world.head("drafts/berlin") == ""
    release_metrics(world, "v3", "3.0")
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "drafted"
    assert world.text("drafts/berlin", "metrics/notes.md") == "checked\n"
    assert "metrics:3.0" in world.text("drafts/berlin", "metrics/deployment.yaml")


@pytest.mark.parametrize("merge_method", ["merge", "squash"])
def test_a_hot_fix_on_the_target_branch_is_merged_into_an_edited_draft(world: World, merge_method: str) -> None:
    release_metrics(world)
    world.sync()
    edited = world.commit("drafts/berlin", {"metrics/notes.md": "checked\n", "README.md": "ours\n"})
    fixed = world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    world.commit("clusters/berlin", {"elsewhere.md": "ours\n"})
    release_metrics(world, "v3", "3.0")

    world.sync_until_unchanged()

    for commit in (edited, fixed):
        assert git(world.fleet, "merge-base", commit, "drafts/berlin") == commit
    world.merge("berlin", merge_method, delete=True)
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"
    text = world.text("clusters/berlin", "metrics/deployment.yaml")
    assert ("replicas: 5" in text, "metrics:3.0" in text) == (True, True)
    assert [world.text("clusters/berlin", path) for path in ("metrics/notes.md", "README.md", "elsewhere.md")] == [
        "checked\n", "ours\n", "ours\n",
    ]  # fmt: skip


@pytest.mark.parametrize("now", ["first", "third"])
def test_a_file_that_the_target_branch_restores_is_not_changed_by_the_draft(world: World, now: str) -> None:
    world.commit("clusters/berlin", {"README.md": "first\n"})
    release_metrics(world)
    world.sync_until_unchanged()
    world.commit("drafts/berlin", {"notes.md": "checked\n"})
    world.commit("clusters/berlin", {"README.md": "second\n"})
    world.update_branch("berlin")
    world.sync_until_unchanged()
    world.commit("clusters/berlin", {"README.md": f"{now}\n"})
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    release_metrics(world, "v3", "3.0")

    world.sync_until_unchanged()

    world.merge("berlin")
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"
    assert [world.text("clusters/berlin", path) for path in ("README.md", "notes.md")] == [f"{now}\n", "checked\n"]


def test_a_submodule_in_a_package_is_merged_from_the_target_branch(world: World) -> None:
    release_metrics(world)
    world.sync()
    world.commit("drafts/berlin", {"notes.md": "checked\n"})
    commit = world.add_submodule("clusters/berlin", "metrics/parts")
    release_metrics(world, "v3", "3.0")

    after = world.sync_until_unchanged()

    assert after.outcomes["berlin/metrics"] == "drafted"
    assert git(world.fleet, "merge-base", commit, "drafts/berlin") == commit


def test_an_edited_draft_stays_when_both_branches_changed_the_same_extra_file(world: World) -> None:
    world.commit("clusters/berlin", {"README.md": "first\n"})
    release_metrics(world)
    world.sync_until_unchanged()
    edited = world.commit("drafts/berlin", {"README.md": "theirs\n"})
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    world.commit("clusters/berlin", {"README.md": "others\n"})
    release_metrics(world, "v3", "3.0")

    after = world.sync_until_unchanged()

    assert after.outcomes["berlin/metrics"] == "DraftEdited"
    assert world.head("drafts/berlin") == edited


def test_an_edited_draft_that_is_merged_partly_stays(world: World) -> None:
    release_metrics(world)
    world.sync()
    world.commit("drafts/berlin", {"README.md": "ours\n"})
    world.sync_until_unchanged()
    world.pick("berlin", "metrics")

    world.sync_until_unchanged()

    assert world.text("drafts/berlin", "README.md") == "ours\n"


def test_an_update_that_is_no_longer_requested_is_withdrawn_from_an_edited_draft(world: World) -> None:
    release_metrics(world)
    world.sync()
    edited = world.commit("drafts/berlin", {"README.md": "ours\n"})
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v1")})

    world.sync_until_unchanged()

    assert git(world.fleet, "merge-base", edited, "drafts/berlin") == edited
    assert git(world.fleet, "diff", "--name-only", "clusters/berlin", "drafts/berlin") == "README.md"


def test_a_draft_branch_updated_after_a_revert_does_not_restore_old_content(world: World) -> None:
    release_metrics(world)
    world.sync()
    world.merge("berlin", "merge")
    world.revert("berlin", "HEAD", "-m", "1")
    world.set_ref("refs/heads/drafts/berlin", world.head("clusters/berlin"))

    after = world.sync_until_unchanged()

    assert after.outcomes["berlin/metrics"] == "declined"
    assert "metrics:1.0" in world.text("clusters/berlin", "metrics/deployment.yaml")
    assert world.head("drafts/berlin") == ""


def test_a_force_pushed_target_branch_is_not_changed(world: World) -> None:
    first = world.head("clusters/berlin")
    release_metrics(world)
    world.sync()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    world.set_ref("refs/heads/clusters/berlin", first)

    after = world.sync_until_unchanged()

    assert after.outcomes["berlin/metrics"] == "declined"
    assert world.head("clusters/berlin") == first


def test_a_rollback_below_an_open_draft_rebuilds_the_draft(world: World) -> None:
    release_metrics(world)
    world.sync()
    world.merge("berlin", "squash")
    release_metrics(world, "v3", "3.0")
    world.sync_until_unchanged()
    world.revert("berlin")

    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "drafted"
    world.merge("berlin", "merge")
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"
    assert "metrics:3.0" in world.text("clusters/berlin", "metrics/deployment.yaml")
