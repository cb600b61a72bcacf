"""The review loop as people type it: exit statuses, JSON, what is told of wrong arguments."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.test_cli import run, sync, template
from tests.support.git_env import git, read_refs

__all__ = ["template"]
WHERE = ("--config", "config", "--cache", ".cache")


@pytest.fixture
def world(template: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "world"
    subprocess.run(["cp", "-r", template, folder], check=True)
    return folder


def test_a_draft_is_listed_shown_proposed_and_approved(world: Path) -> None:
    listed = run(world, "drafts", "config", "--cache", ".cache", "--selector", "region=eu-west", "-o", "json")
    shown = run(world, "show", "lisbon/gateway", *WHERE, "-o", "markdown", "--diff-lines", "0")
    proposed = run(world, "propose", "lisbon", *WHERE, "-o", "json")
    ours = ("components/fair/edge/numbers", "gateway", "resources/edge", "resources/_cluster")
    packages = [f"lisbon/{name}" for name in ours]
    approved = run(world, "approve", *packages, *WHERE, "--author", "Ada <ada@example.com>", "-m", "fine", "-o", "json")
    synced = sync(world, "-o", "json")

    assert (listed.returncode, shown.returncode, proposed.returncode) == (0, 0, 0), shown.stderr
    assert [one["branch"] for one in json.loads(listed.stdout)["drafts"]] == ["drafts/berlin", "drafts/lisbon"]
    assert "## `gateway clone v1" in shown.stdout
    assert json.loads(proposed.stdout)["results"][0]["outcome"] == "proposed"
    assert approved.returncode == 0, approved.stderr
    assert json.loads(approved.stdout)["by"] == "Ada <ada@example.com>"
    assert git(world / "fleet.git", "log", "-1", "--format=%an", "clusters/lisbon") == "Ada"
    assert json.loads(synced.stdout)["counts"]["renders"] == 0
    assert "refs/heads/drafts/lisbon" not in read_refs(world / "fleet.git")


def test_every_command_finds_a_cluster_that_lives_in_the_fleet(world: Path) -> None:
    kind = "apiVersion: core.kubeadmiral.io/v1alpha1\nkind: FederatedCluster\n"
    (world / "config" / "porto.yaml").write_text(kind + "metadata: {name: porto, labels: {region: eu-west}}\n")
    fleet = ("--fleet", "fleet.git", "--cache", ".cache")
    checked = [run(world, "validate", "config", *more, "--cache", ".cache") for more in ((), ("--fleet", "fleet.git"))]
    sync(world)
    listed = run(world, "drafts", "config", *fleet, "--cluster", "porto", "-o", "json")
    done = [
        run(world, command, "porto", "--config", "config", *fleet)
        for command in ("show", "propose", "reject", "approve")
    ]

    assert [one.returncode for one in checked] == [1, 0]
    assert [one["branch"] for one in json.loads(listed.stdout)["drafts"]] == ["drafts/porto"]
    # the last one is refused, for it was rejected
    assert [one.returncode for one in done] == [0, 0, 0, 1], [one.stderr for one in done]


def test_what_is_refused_ends_with_1_and_changes_nothing(world: Path) -> None:
    before = read_refs(world / "fleet.git")
    done = run(world, "approve", "--all", *WHERE)

    assert done.returncode == 1
    assert done.stdout.count("NotProposed") == 4
    assert read_refs(world / "fleet.git") == before


def test_a_rejection_tells_why(world: Path) -> None:
    run(world, "propose", "lisbon", *WHERE)
    done = run(world, "reject", "lisbon", *WHERE, "--reason", "too early", "--author", "Ada <ada@example.com>")
    listed = run(world, "drafts", "config", "--cache", ".cache", "--cluster", "lisbon")

    assert done.returncode == 0, done.stderr
    assert "rejected by Ada: too early" in listed.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["propose", *WHERE], "name what is meant in one way", id="nothing-named"),
        pytest.param(["propose", "lisbon", "--all", *WHERE], "name what is meant in one way", id="named-twice"),
        pytest.param(["propose", "paris", *WHERE], "there are berlin, boston, catalog, chicago, lisbon", id="cluster"),
        pytest.param(["show", "lisbon/none", *WHERE], "it has components/fair/edge/numbers, gateway", id="package"),
        pytest.param(["propose", "lisbon/", *WHERE], "must be CLUSTER or CLUSTER/PACKAGE", id="half-a-place"),
        pytest.param(["drafts", "config", "-l", "a b"], "must be a label requirement", id="selector"),
        pytest.param(["drafts", "nowhere", "--cache", ".cache"], "must be a repository or a folder", id="config"),
        pytest.param(["reject", "lisbon", *WHERE, "--author", "Ada"], "must be a name and an address", id="author"),
        pytest.param(["propose", "lisbon", "--cache", ".cache"], "CONFIG is missing", id="no-config"),
    ],
)
def test_wrong_arguments_are_told_what_is_allowed(world: Path, arguments: list[str], told: str) -> None:
    done = run(world, *arguments)

    assert done.returncode == 3
    assert told in " ".join(done.stderr.split())
