"""Tests of `reconciler verify` over whole fleets: reproduced packages, differences and local changes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from reconciler.catalog.files import CommitId
from reconciler.inspect.package_history import PackageHistory
from reconciler.reconcile.config_source import ConfigHistory, ConfigSnapshot
from tests.support.command_line import CommandResult, run_in
from tests.support.git_repositories import git, read_refs
from tests.support.history_world import (
    HistoryWorld,
    history_published,
    rollout_history,
    templates_history,
    templates_of_tenants,
)
from tests.support.policies import RINGS
from tests.support.prepared_worlds import begin
from tests.support.world import World, config_map, package, repository, variant

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


@pytest.fixture
def world(tmp_path: Path) -> HistoryWorld:
    return begin(tmp_path, history_published)


def run_verify(world: World, *arguments: str, folder: Path | None = None) -> CommandResult:
    location_options = ("--config", world.source, "--fleet", str(world.fleet), "--cache", str(world.folder / "cache"))
    return run_in(folder or world.folder, ENVIRONMENT, "verify", *arguments, *location_options)


def read_packages(world: World, *arguments: str) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = json.loads(run_verify(world, *arguments, "-o", "json").stdout)["items"]
    return data


def read_verdicts(world: World, *arguments: str) -> dict[str, str]:
    return {item["package"]: item["verdict"] for item in read_packages(world, *arguments)}


def test_the_whole_fleet_is_reproduced(world: HistoryWorld) -> None:
    before = read_refs(world.fleet)
    result = run_verify(world)

    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, "3 packages: 3 reproduced")
    assert read_refs(world.fleet) == before


def test_each_config_commit_is_read_once(world: HistoryWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original_evaluate_config = PackageHistory.evaluate_config

    def count_evaluated_config(self: PackageHistory, snapshot: ConfigSnapshot, *arguments: Any, **options: Any) -> Any:
        read.append(snapshot.id)
        return original_evaluate_config(self, snapshot, *arguments, **options)

    world.change({"regions/north.yaml": config_map("region-north", api="elsewhere")})
    world.publish()
    monkeypatch.setattr(PackageHistory, "evaluate_config", count_evaluated_config)

    assert set(read_verdicts(world).values()) == {"reproduced"}
    assert len(read) == len(set(read)) == 2


def test_a_local_change_is_reported_with_its_commit_and_author(world: HistoryWorld) -> None:
    commit = world.edit("clusters/berlin", "gateway/deployment.yaml", "replicas: 2", "replicas: 7")
    world.commit("clusters/berlin", {"notes.txt": "of nobody"})

    result, (item,) = run_verify(world, "berlin/gateway"), read_packages(world, "berlin/gateway")
    difference = item["editDifference"]

    assert result.returncode == 2
    assert (item["verdict"], item["rerender"]["verdict"]) == ("edited", "reproduced")
    assert [(commit["commit"], commit["author"]) for commit in item["editCommits"]] == [(commit, "Ada")]
    assert (difference["resource"], difference["pointer"], difference["change"]) == (
        "Deployment/_cluster/gateway", "/spec/replicas", "2 → 7",
    )  # fmt: skip
    text = world.text("clusters/berlin", "gateway/deployment.yaml")
    assert (difference["byte"], difference["line"]) == (text.index("7 #"), text[: text.index("7 #")].count("\n") + 1)


def test_a_reverted_local_change_is_not_reported(world: HistoryWorld) -> None:
    world.edit("clusters/berlin", "gateway/deployment.yaml", "replicas: 2", "replicas: 7")
    world.edit("clusters/berlin", "gateway/deployment.yaml", "replicas: 7", "replicas: 2")

    assert read_verdicts(world, "berlin/gateway") == {"berlin/gateway": "reproduced"}


def test_values_of_secrets_are_not_shown(world: HistoryWorld) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  key: {}\n"
    world.commit("clusters/berlin", {"metrics/secret.yaml": secret.format("hunter2")})
    result = run_verify(world, "berlin/metrics")

    assert (result.returncode, "hunter2" in result.stdout) == (2, False)
    assert "Secret/_cluster/s added" in result.stdout


def test_a_local_change_in_a_merged_draft_is_reported_with_its_commit_and_merge(world: HistoryWorld) -> None:
    world.change({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", extra="annotations: {a: b}")})
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.change({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.sync()
    edit = world.edit("drafts/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 7")
    merge = world.merge("berlin")

    (item,) = read_packages(world, "berlin/metrics")

    assert (item["verdict"], item["rerender"]["verdict"]) == ("edited", "reproduced")
    assert [(commit["commit"], commit["mergeCommit"]) for commit in item["editCommits"]] == [(edit, merge)]


def test_an_amended_commit_is_a_local_change(world: HistoryWorld) -> None:
    world.change({"regions/north.yaml": config_map("region-north", api="elsewhere")})
    world.sync()
    clone = world.folder / "working-clone"
    git(world.folder, "clone", "--quiet", "--branch", "drafts/berlin", str(world.fleet), str(clone))
    file = clone / "gateway" / "deployment.yaml"
    file.write_text(file.read_text().replace("replicas: 2", "replicas: 7"))
    git(clone, "commit", "--quiet", "--all", "--amend", "--no-edit")
    git(clone, "push", "--quiet", "--force", "origin", "drafts/berlin")
    world.merge("berlin", "squash")

    (item,) = read_packages(world, "berlin/gateway")

    assert (item["verdict"], item["rerender"]["verdict"]) == ("edited", "reproduced")
    assert [commit["commit"] for commit in item["editCommits"]] == [world.head("clusters/berlin")]


def test_a_deleted_package_with_a_status_file_is_edited(world: HistoryWorld) -> None:
    commit = world.commit("clusters/berlin", {"metrics": None})

    (item,) = read_packages(world, "berlin/metrics")

    assert (item["verdict"], [commit["commit"] for commit in item["editCommits"]]) == ("edited", [commit])


def test_a_status_file_with_a_forged_tree_differs(world: HistoryWorld) -> None:
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 7")
    rendered_tree = world.package_status("clusters/berlin", "metrics")["trees"]["rendered"]
    forged = world.tree("clusters/berlin", "metrics")
    assert forged
    world.edit("clusters/berlin", ".reconciler/metrics.yaml", f"rendered: {rendered_tree}", f"rendered: {forged}")

    result, (item,) = run_verify(world, "berlin/metrics"), read_packages(world, "berlin/metrics")
    difference = item["rerender"]["difference"]

    assert (result.returncode, item["verdict"]) == (2, "differs")
    assert item["rerender"]["reason"] == "all inputs equal the recorded inputs, but the output differs"
    assert (difference["pointer"], difference["change"], difference["setBy"]) == (
        "/spec/replicas", "7 → 2", f"catalog/metrics metrics/v1 at commit {git(world.catalog, 'rev-parse', 'metrics/v1')}",
    )  # fmt: skip


def test_another_version_of_the_engine_is_named(world: HistoryWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.bootstrap.controllers.__version__", "99.0.0")
    monkeypatch.setattr("reconciler.planning.render.renderer.CLONE_STEP", _build_other_clone())

    (item,) = read_packages(world, "berlin/metrics")

    assert item["verdict"] == "differs"
    assert [entry.partition(" ")[0] for entry in item["rerender"]["changedInputs"]] == ["engine:"]
    assert "99.0.0" in item["rerender"]["changedInputs"][0]


def _build_other_clone() -> Any:
    from reconciler.packages.clone import clone_package

    def clone_with_comment(*arguments: Any) -> Any:
        files, findings = clone_package(*arguments)
        return files.with_files({"deployment.yaml": files["deployment.yaml"].data + b"# of another engine\n"}), findings

    return clone_with_comment


def test_a_missing_config_commit_is_not_a_difference(world: HistoryWorld) -> None:
    world.change({"regions/south.yaml": config_map("region-south", api="elsewhere")})
    world.squash_config()
    result = run_verify(world, "lisbon")

    assert result.returncode == 1
    assert "unknowable  lisbon  gateway" in result.stdout
    assert "cannot be read" in result.stdout


def test_a_missing_config_commit_is_searched_once(world: HistoryWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    original_find_commit = ConfigHistory.find_commit

    def count_searched_commit(self: ConfigHistory, name: str) -> CommitId:
        searched.append(name)
        return original_find_commit(self, name)

    world.change({"regions/south.yaml": config_map("region-south", api="elsewhere")})
    world.squash_config()
    monkeypatch.setattr(ConfigHistory, "find_commit", count_searched_commit)

    assert len(read_verdicts(world)) == 3
    assert len(searched) == len(set(searched)) == 1


def test_the_current_config_replaces_a_missing_config_commit_with_the_same_inputs(world: HistoryWorld) -> None:
    world.change({"regions/south.yaml": config_map("region-south", api="elsewhere")})
    world.squash_config()
    result = run_verify(world, "berlin")

    assert (result.returncode, "the current config provides the same inputs" in result.stdout) == (0, True)


def test_a_package_without_status_file_is_foreign(world: HistoryWorld) -> None:
    world.commit("clusters/berlin", {"own/Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\n", "own/a.yaml": "a: b\n"})
    result = run_verify(world, "berlin")

    assert (result.returncode, read_verdicts(world, "berlin/own")) == (0, {"berlin/own": "foreign"})
    assert "foreign     berlin  own" in result.stdout


def test_a_branch_without_packages_is_reported(world: HistoryWorld) -> None:
    world.change({"regions/north.yaml": config_map("region-north", api="elsewhere")})

    assert "0 packages: the reconciler has drafted no package" in run_verify(world, "--draft").stdout


def test_an_incomplete_status_file_is_reported(world: HistoryWorld) -> None:
    world.commit("clusters/berlin", {".reconciler/metrics.yaml": "status: {owner: {kind: A}}\n"})

    (item,) = read_packages(world, "berlin/metrics")

    assert item["verdict"] == "unknowable"
    assert ".status.trees.base must be the ID of a Git tree, but is None" in item["rerender"]["reason"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("  name: berlin", "  name: berlin\n  namespace: sites", id="another-namespace"),
        pytest.param("  name: berlin", "  name: spree", id="another-name"),
    ],
)
def test_packages_of_a_renamed_repository_are_reproduced(old: str, new: str, world: HistoryWorld) -> None:
    text = repository("berlin", branch="clusters/berlin")
    world.change({"clusters/berlin.yaml": text})
    world.publish()
    world.change({"clusters/berlin.yaml": text.replace(old, new)})

    assert set(read_verdicts(world).values()) == {"reproduced"}


def test_drafts_can_be_verified(world: HistoryWorld) -> None:
    world.change({"regions/north.yaml": config_map("region-north", api="elsewhere")})
    world.sync()

    assert read_verdicts(world, "--draft") == {"berlin/gateway": "reproduced"}


def test_an_earlier_commit_can_be_verified_by_its_git_name(world: HistoryWorld) -> None:
    world.edit("clusters/berlin", "gateway/deployment.yaml", "replicas: 2", "replicas: 7")
    clone = world.folder / "checkout"
    git(world.folder, "clone", "--quiet", "--branch", "clusters/berlin", str(world.fleet), str(clone))

    assert run_verify(world, "berlin", "--at", "HEAD", folder=clone).returncode == 2
    assert run_verify(world, "berlin", "--at", "HEAD~1", folder=clone).returncode == 0
    assert read_verdicts(world, "berlin", "--at", "clusters/berlin~1")["berlin/gateway"] == "reproduced"


def test_a_commit_that_exists_only_in_the_checkout_must_be_pushed(world: HistoryWorld) -> None:
    clone = world.folder / "checkout"
    git(world.folder, "clone", "--quiet", "--branch", "clusters/berlin", str(world.fleet), str(clone))
    git(clone, "commit", "--quiet", "--allow-empty", "-m", "here alone")

    result = run_verify(world, "berlin", "--at", "HEAD", folder=clone)

    assert (result.returncode, "push the commit" in result.stderr) == (3, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("paris",), 'there is no Repository or cluster "paris"; existing names:', id="no-cluster"),
        pytest.param(("berlin/",), 'must be REPOSITORY or REPOSITORY/PACKAGE, but is "berlin/"', id="no-name"),
        pytest.param(
            ("berlin/gatewya",), "berlin has no such package on its branch; existing packages: gateway", id="no-package"
        ),
        pytest.param(
            ("berlin/metrics", "--draft"), "no such package on its draft; existing packages: none", id="no-draft"
        ),
        pytest.param(("--at", "HEAD"), "--at requires exactly one REPOSITORY", id="a-commit-without-repository"),
        pytest.param(("berlin", "--at", "nowhere"), "there is no commit 'nowhere'", id="no-commit"),
    ],
)
def test_unknown_arguments_are_reported(world: HistoryWorld, arguments: tuple[str, ...], message: str) -> None:
    result = run_verify(world, *arguments)

    assert (result.returncode, message in result.stderr) == (3, True)


def test_offline_mode_uses_only_the_cache(world: HistoryWorld) -> None:
    assert run_verify(world).returncode == 0
    world.edit("clusters/berlin", "gateway/deployment.yaml", "replicas: 2", "replicas: 7")
    world.change({"catalog.yaml": None})

    assert run_verify(world, "berlin", "--offline").returncode == 0
    assert run_verify(world, "berlin").returncode == 2


def test_offline_mode_without_a_cache_is_an_error(world: HistoryWorld) -> None:
    world.prune_unreachable_objects(world.repo)
    result = run_verify(world, "--offline")

    assert (result.returncode, "cannot be contacted in offline mode" in result.stderr) == (3, True)


@pytest.mark.slow
def test_a_rollout_is_verified_with_the_rules_of_the_state(tmp_path: Path) -> None:
    world = begin(tmp_path, rollout_history)
    has_rule = [ring for ring in RINGS if "replicas: 5" in world.text(f"clusters/{ring}", "web/deployment.yaml")]

    assert has_rule == ["amsterdam", "berlin"]
    assert read_verdicts(world) == {f"{ring}/web": "reproduced" for ring in RINGS}


@pytest.mark.slow
def test_without_its_state_a_rollout_is_verified_with_possible_rules(tmp_path: Path) -> None:
    world = begin(tmp_path, rollout_history)
    for ref in read_refs(world.fleet):
        if ref.startswith("refs/reconciler/state/"):
            git(world.fleet, "update-ref", "-d", ref)
    result = read_packages(world)

    assert {item["verdict"] for item in result} == {"reproduced"}
    assert all("does not contain the rollout rules" in item["rerender"]["notes"][0] for item in result)


def test_templates_are_merged_with_the_recorded_parents(tmp_path: Path) -> None:
    world = begin(tmp_path, templates_history)

    assert set(read_verdicts(world).values()) == {"reproduced"}


@pytest.mark.slow
def test_templates_of_other_tenants_are_not_read(tmp_path: Path) -> None:
    world = begin(tmp_path, templates_of_tenants)

    verdicts = read_verdicts(world)

    assert {"lisbon/kafka", "lisbon/payments/kafka", "lisbon/payments/readers"} <= verdicts.keys()
    assert set(verdicts.values()) == {"reproduced"}
