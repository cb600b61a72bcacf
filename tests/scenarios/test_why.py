"""Tests of `reconciler why` over whole fleets: the commit that set a value, and the number of renders of the search."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandResult, run_in
from tests.support.git_repositories import commit_files, git
from tests.support.history_world import (
    HistoryWorld,
    rollout_history,
    templates_history,
    templates_of_tenants,
    with_history,
)
from tests.support.policies import policy, policy_world, publish, replicas
from tests.support.prepared_worlds import begin
from tests.support.presets import option, preset, presets_published
from tests.support.world import World, config_map, package, variant

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
COUNT = ("Deployment/web", "/spec/replicas")


def policies_history(folder: Path) -> HistoryWorld:
    """Return the world with policies, with its config in a repository and all packages published."""
    world = with_history(policy_world(folder))
    world.publish()
    return world


@pytest.fixture
def world(tmp_path: Path) -> HistoryWorld:
    return begin(tmp_path, policies_history)


def run_why(world: World, *arguments: str) -> CommandResult:
    location_options = ("--config", world.source, "--fleet", str(world.fleet), "--cache", str(world.folder / "cache"))
    return run_in(world.folder, ENVIRONMENT, "why", *arguments, *location_options)


def read_answer(world: World, *arguments: str) -> dict[str, Any]:
    result = run_why(world, *arguments, "-o", "json")
    assert result.returncode == 0, result.stderr
    data = json.loads(result.stdout)
    (change,) = data["items"]
    reason = {**change.pop("reason"), "searched": data["summary"]}
    return {**change, **reason, "reason": reason.pop("kind")}


def list_commits(mapping: dict[str, Any]) -> list[str]:
    return [commit["commit"] for commit in mapping["commits"]]


def build_count_policy(count: int) -> dict[str, str]:
    return {"policies/site.yaml": policy("site", [replicas(count, {"clusters": ["berlin"]})])}


def commit_unrelated_changes(world: HistoryWorld, number: int) -> None:
    """Commit unrelated changes to the config."""
    parent = git(world.repo, "rev-parse", "refs/heads/main")
    lines = []
    for index in range(number):
        text = config_map(f"noise-{index}", a=str(index))
        lines.append(f"commit refs/heads/main\ncommitter A <a@b> {1_210_000_000 + index} +0000\ndata 5\nnoise\n")
        lines.append(f"from {parent}\n" if not index else "")
        lines.append(f"M 100644 inline noise.yaml\ndata {len(text)}\n{text}\n")
    git(world.repo, "fast-import", "--quiet", stdin="".join(lines).encode())


@pytest.mark.slow
def test_the_config_commit_is_identified_among_hundreds_with_few_renders(world: HistoryWorld) -> None:
    commit_unrelated_changes(world, 150)
    cause = world.change(build_count_policy(7), "seven in Berlin", seconds=1_220_000_000)
    commit_unrelated_changes(world, 150)
    world.publish()

    result = read_answer(world, "berlin/web", *COUNT)

    assert (result["before"], result["value"], result["reason"]) == (5, 7, "config")
    assert list_commits(result) == [cause]
    assert result["commit"]["commit"] == world.head("clusters/berlin")
    assert (result["objects"][0]["object"], result["objects"][0]["file"]) == (
        "ClusterOverridePolicy/_cluster/site", "policies/site.yaml",
    )  # fmt: skip
    assert "5 → 7" in result["objects"][0]["fields"][0]
    assert result["setBy"] == "ClusterOverridePolicy/site"
    assert (result["searched"]["commits"], result["searched"]["renders"] <= 14) == (301, True)


def test_the_text_output_names_commit_object_and_field(world: HistoryWorld) -> None:
    cause = world.change(build_count_policy(7), "seven in Berlin", seconds=1_220_000_000)
    world.publish()
    lines = run_why(world, "berlin/web", *COUNT).stdout.splitlines()

    assert lines[0] == "berlin/web Deployment/_cluster/web /spec/replicas: 7, previously 5"
    assert lines[2:] == [
        "  a config commit set the value",
        f"    commit {cause[:12]} by Ada, 2008-08-29T08:53:20Z: seven in Berlin",
        "      ClusterOverridePolicy/_cluster/site changed  policies/site.yaml:4",
        "        spec.overrideRules[0].overriders.jsonpatch[0].value 5 → 7",
        "  set by ClusterOverridePolicy/site",
        "  searched 1 commit with 3 renders",
    ]


def test_a_value_that_changed_several_times_is_explained_by_the_last_change(world: HistoryWorld) -> None:
    for count in (7, 5, 7):
        last = world.change(build_count_policy(count), f"{count} in Berlin", seconds=1_220_000_000 + count)
        world.publish()

    result = read_answer(world, "berlin/web", *COUNT)

    assert (result["value"], list_commits(result)) == (7, [last])


def test_changes_of_other_values_are_skipped(world: HistoryWorld) -> None:
    cause = world.change(build_count_policy(7), "seven in Berlin", seconds=1_220_000_000)
    world.publish()
    since = world.head("clusters/berlin")
    world.edit("clusters/berlin", "web/deployment.yaml", "web:1.0", "web:1.1")
    world.commit("clusters/berlin", {"web/more.yaml": config_map("more", a="b")})

    result = read_answer(world, "berlin/web", *COUNT)

    assert (result["commit"]["commit"], list_commits(result)) == (since, [cause])


def test_a_commit_of_a_merged_branch_is_named_with_the_merge(world: HistoryWorld) -> None:
    git(world.repo, "update-ref", "refs/heads/topic", "refs/heads/main")
    world.change({"noise.yaml": config_map("noise", a="1")}, "before", branch="topic")
    cause = world.change(build_count_policy(7), "seven in Berlin", branch="topic")
    world.change({"noise.yaml": config_map("noise", a="2")}, "after", branch="topic")
    world.change({"other.yaml": config_map("other", a="1")}, "meanwhile")
    clone = world.folder / "config-clone"
    git(world.folder, "clone", "--quiet", "--branch", "main", str(world.repo), str(clone))
    git(clone, "merge", "--quiet", "--no-ff", "-m", "Merge topic", "origin/topic")
    git(clone, "push", "--quiet", "origin", "main")
    world.publish()

    result = read_answer(world, "berlin/web", *COUNT)

    assert list_commits(result) == [cause]
    assert [item["subject"] for item in result["merges"]] == ["Merge topic"]


def test_a_new_upstream_is_named_with_the_config_commit_that_requests_it(world: HistoryWorld) -> None:
    changed = world.release("metrics", "v2", package("metrics", replicas=3))
    world.release("metrics", "v3", package("metrics", replicas=3, image="2.0"))
    cause = world.change({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v3")}, "to v3")
    world.publish()

    result = read_answer(world, "berlin/metrics", "Deployment/metrics", "/spec/replicas")

    assert (result["reason"], list_commits(result), result["upstream"]["commit"]) == ("config", [cause], changed)
    assert "spec.upstream.revision v1 → v3" in result["objects"][0]["fields"][0]


def commit_to_catalog(world: World, files: dict[str, str]) -> str:
    """Commit files of metrics to the catalog, without a tag."""
    data = {f"metrics/{path}": text.encode() for path, text in files.items()}
    return commit_files(world.catalog, "refs/heads/main", data, "develop", 1_230_000_000)


def test_a_followed_upstream_is_named_by_its_commit(world: HistoryWorld) -> None:
    follows = variant("metrics-berlin", "berlin", "metrics").replace("revision: v1", "revision: main")
    world.change({"metrics.yaml": follows})
    commit_to_catalog(world, package("metrics", image="1.1"))
    world.publish()
    cause = commit_to_catalog(world, package("metrics", replicas=3, image="1.1"))
    commit_to_catalog(world, {"notes.yaml": config_map("notes", a="b")})
    world.change({"noise.yaml": config_map("noise", a="2")})
    world.publish()

    result = read_answer(world, "berlin/metrics", "Deployment/metrics", "/spec/replicas")

    assert (result["reason"], list_commits(result)) == ("upstream", [cause])


def test_a_local_change_on_the_target_branch_is_reported_as_an_edit(world: HistoryWorld) -> None:
    edit = world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 9")

    result = read_answer(world, "berlin/metrics", "/spec/replicas")

    assert (result["reason"], list_commits(result), result["before"], result["value"]) == ("edit", [edit], 2, 9)


def test_a_local_change_merged_with_a_draft_is_reported_as_an_edit(world: HistoryWorld) -> None:
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.change({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.sync()
    edit = world.edit("drafts/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 9")
    merge = world.merge("berlin")

    result = read_answer(world, "berlin/metrics", "/spec/replicas")

    assert (result["reason"], list_commits(result), result["commit"]["commit"]) == ("edit", [edit], merge)


def test_a_local_change_kept_by_a_later_draft_is_reported_as_an_edit(world: HistoryWorld) -> None:
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.change({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.sync()
    edit = world.edit("drafts/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 9")
    world.release("metrics", "v3", package("metrics", image="3.0"))
    world.change({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v3")})
    world.sync()
    world.merge("berlin")

    result = read_answer(world, "berlin/metrics", "/spec/replicas")

    assert world.package_status("clusters/berlin", "metrics")["upstream"]["to"]["ref"] == "metrics/v3"
    assert (result["reason"], list_commits(result)) == ("edit", [edit])


def test_a_revert_by_a_person_is_reported_as_an_edit(world: HistoryWorld) -> None:
    world.change(build_count_policy(7), "seven in Berlin", seconds=1_220_000_000)
    world.publish()
    revert = world.revert("berlin")

    result = read_answer(world, "berlin/web", *COUNT)

    assert (result["value"], result["reason"], result["commit"]["commit"]) == (5, "edit", revert)


def test_a_deleted_value_is_explained_by_the_commit_that_deleted_it(world: HistoryWorld) -> None:
    world.release("web", "v2", {**package("web"), "extra.yaml": config_map("extra", a="b")})
    for version in ("v2", "v1"):
        cause = world.change({"web/berlin.yaml": variant("web-berlin", "berlin", "web", version)}, f"to {version}")
        world.publish()

    result = read_answer(world, "berlin/web", "ConfigMap/extra", "/data/a")

    assert ("value" in result, result["before"], list_commits(result)) == (False, "b", [cause])


def test_a_new_package_is_explained_by_the_commit_that_requests_it(world: HistoryWorld) -> None:
    cause = world.change({"metrics-lisbon.yaml": variant("metrics-lisbon", "lisbon", "metrics")}, "for Lisbon, too")
    commit_unrelated_changes(world, 20)
    world.publish()

    result = read_answer(world, "lisbon/metrics", "Deployment/metrics", "/spec/replicas")

    assert ("before" in result, result["value"], list_commits(result)) == (False, 2, [cause])


def test_commits_with_a_broken_config_are_skipped(world: HistoryWorld) -> None:
    cause = world.change(build_count_policy(7), "seven in Berlin", seconds=1_220_000_000)
    for index in range(3):
        world.change({"broken.yaml": f"a: [{index}"}, "broken")
    world.change({"broken.yaml": None}, "mended")
    world.publish()

    assert cause in list_commits(read_answer(world, "berlin/web", *COUNT))


def test_the_draft_option_explains_a_drafted_value(world: HistoryWorld) -> None:
    cause = world.change(build_count_policy(7), "seven in Berlin", seconds=1_220_000_000)
    world.sync()

    result = read_answer(world, "berlin/web", *COUNT, "--draft")

    assert (result["branch"], result["value"], list_commits(result)) == ("drafts/berlin", 7, [cause])
    assert read_answer(world, "berlin/web", *COUNT)["value"] == 5


def test_an_opened_wave_is_reported_as_rollout(tmp_path: Path) -> None:
    world = begin(tmp_path, rollout_history)
    publish(world, "lisbon", "berlin")
    world.now += 100_000
    world.sync()
    publish(world, "lisbon")

    result = read_answer(world, "lisbon/web", *COUNT)

    assert (result["value"], result["reason"]) == (5, "rollout")
    assert "site#count" in result["message"]


def test_an_inherited_value_names_the_package_of_its_kafka(tmp_path: Path) -> None:
    world = begin(tmp_path, templates_history)

    result = read_answer(world, "berlin/brokers", "KafkaNodePool/brokers", "/spec/template/pod/priorityClassName")

    assert (result["value"], result["reason"]) == ("calm", "templates")
    assert "berlin/kafka" in result["message"]


def test_an_inherited_value_names_no_package_of_another_tenant(tmp_path: Path) -> None:
    world = begin(tmp_path, templates_of_tenants)

    result = read_answer(world, "lisbon/brokers", "KafkaNodePool/brokers", "/spec/template/pod/priorityClassName")

    assert (result["value"], result["reason"]) == ("calm", "templates")
    assert "lisbon/kafka" in result["message"]
    assert "payments" not in result["message"]


def test_an_option_of_a_plugin_is_selected_by_its_name(tmp_path: Path) -> None:
    world = with_history(begin(tmp_path, presets_published))
    cause = world.change({"presets/logs.yaml": preset(options=[option("buffer.size", 999)])}, "larger")
    world.publish()

    result = read_answer(world, "lisbon/plugins/logs-lisbon", "Plugin/logs-lisbon", "buffer.size")

    # A plain folder is matched with a config commit by its tree.
    assert (result["value"], list_commits(result)) == (999, [cause])


def test_values_of_secrets_are_not_shown(world: HistoryWorld) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  key: {}\n"
    for value in ("hunter1", "hunter2"):
        world.commit("clusters/berlin", {"metrics/secret.yaml": secret.format(value)})
    text = run_why(world, "berlin/metrics", "Secret/s", "/stringData/key").stdout

    assert ("hunter" in text, "/stringData/key: *****, previously *****" in text) == (False, True)


def test_a_plain_folder_without_commits_names_only_the_policy(tmp_path: Path) -> None:
    world = begin(tmp_path, build_plain_world)
    world.write(build_count_policy(7))
    world.sync()
    world.merge("berlin", "squash")

    result = read_answer(world, "berlin/web", *COUNT)

    assert (result["value"], result["reason"], result["setBy"]) == (7, "config", "ClusterOverridePolicy/site")
    assert "are unknown" in result["message"]


def test_a_folder_in_a_git_work_tree_names_its_commits(tmp_path: Path) -> None:
    world = begin(tmp_path, build_plain_world)
    git(world.folder, "init", "--quiet", "--initial-branch", "main")
    for message, count in (("before", 5), ("seven in Berlin", 7)):
        world.write(build_count_policy(count))
        git(world.folder, "add", "config")
        git(world.folder, "commit", "--quiet", "-m", message)
    world.sync()
    world.merge("berlin", "squash")

    result = read_answer(world, "berlin/web", *COUNT)

    assert ([commit["subject"] for commit in result["commits"]], result["reason"]) == (["seven in Berlin"], "config")


def build_plain_world(folder: Path) -> World:
    """Return the world with policies, with its config in a plain folder and all packages published."""
    world = policy_world(folder)
    world.sync()
    publish(world)
    return world


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("paris/web", *COUNT), 'there is no Repository or cluster "paris"', id="no-cluster"),
        pytest.param(("berlin/wob", *COUNT), "berlin has no such package; existing packages: web", id="no-package"),
        pytest.param(("berlin/web", "Deployment/wob", "/a"), "has no resource Deployment/wob", id="no-resource"),
        pytest.param(
            ("berlin/web", "Deployment/web", "/spec/replicos"), "closest match first: /spec/replicas", id="no-value"
        ),
        pytest.param(("berlin/web", "/spec/a~2"), "0 or 1 must follow", id="no-pointer"),
        pytest.param(
            ("berlin/web", "/metadata/name"), "several resources have a value at /metadata/name", id="several-resources"
        ),
        pytest.param(("berlin/web", *COUNT, "--draft"), "this package has no open draft", id="no-draft"),
        pytest.param(("berlin/web",), "RESOURCE and POINTER are missing", id="no-resource-and-pointer"),
        pytest.param(("berlin/", *COUNT), 'must be REPOSITORY/PACKAGE, but is "berlin/"', id="no-package-name"),
    ],
)
def test_unknown_arguments_are_reported(world: HistoryWorld, arguments: tuple[str, ...], message: str) -> None:
    result = run_why(world, *arguments)

    assert (result.returncode, message in result.stderr) == (3, True), result.stderr
