"""The commands of the review: exit statuses, JSON output and errors of wrong arguments."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.end_to_end.test_cli import run, sync, template
from tests.support.git_repositories import git, read_file, read_refs, write_hook

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
    assert [draft["branch"] for draft in json.loads(listed.stdout)["items"]] == ["drafts/berlin", "drafts/lisbon"]
    assert "## `gateway install v1" in shown.stdout
    assert json.loads(proposed.stdout)["items"][0]["outcome"] == "done"
    assert approved.returncode == 0, approved.stderr
    assert json.loads(approved.stdout)["summary"]["by"] == "Ada <ada@example.com>"
    assert git(world / "fleet.git", "log", "-1", "--format=%an", "clusters/lisbon") == "Ada"
    assert json.loads(synced.stdout)["summary"]["renders"] == 0
    assert "refs/heads/drafts/lisbon" not in read_refs(world / "fleet.git")


@pytest.mark.slow
def test_every_command_finds_a_cluster_that_lives_in_the_fleet(world: Path) -> None:
    kind = "apiVersion: core.kubeadmiral.io/v1alpha1\nkind: FederatedCluster\n"
    (world / "config" / "porto.yaml").write_text(kind + "metadata: {name: porto, labels: {region: eu-west}}\n")
    fleet = ("--fleet", "fleet.git", "--cache", ".cache")
    checked = [run(world, "validate", "config", *more, "--cache", ".cache") for more in ((), ("--fleet", "fleet.git"))]
    sync(world)
    listed = run(world, "drafts", "config", *fleet, "--cluster", "porto", "-o", "json")
    results = [
        run(world, command, "porto", "--config", "config", *fleet)
        for command in ("show", "propose", "reject", "approve")
    ]

    assert [result.returncode for result in checked] == [1, 0]
    assert [draft["branch"] for draft in json.loads(listed.stdout)["items"]] == ["drafts/porto"]
    # The command refuses the last draft, because it was rejected.
    assert [result.returncode for result in results] == [0, 0, 0, 1], [result.stderr for result in results]


def test_what_is_refused_ends_with_1_and_changes_nothing(world: Path) -> None:
    before = read_refs(world / "fleet.git")
    result = run(world, "approve", "--all", *WHERE)

    assert result.returncode == 1
    assert result.stdout.count("NotProposed") == 4
    assert read_refs(world / "fleet.git") == before


@pytest.mark.parametrize(
    ("hook", "command"),
    [
        pytest.param("clusters", ["approve", "lisbon", "--propose"], id="approve"),
        pytest.param("proposed", ["propose", "lisbon"], id="propose"),
        pytest.param("proposed", ["reject", "lisbon"], id="reject"),
    ],
)
def test_a_refused_push_of_an_action_reports_where_the_remote_is(world: Path, hook: str, command: list[str]) -> None:
    fleet = world / "fleet.git"
    if command[0] == "reject":
        run(world, "propose", "lisbon", *WHERE)
    before = read_refs(fleet)
    write_hook(fleet, "update", f'case "$1" in refs/heads/{hook}/*) exit 1;; esac')

    result = run(world, *command, *WHERE)

    assert result.returncode == 1
    assert "HostRefused" in result.stdout
    head = before["refs/heads/drafts/lisbon"]
    assert f"drafts/lisbon at {head[:12]}" in result.stdout or command[0] == "reject"
    branch = f"{hook}/lisbon"
    at = before.get(f"refs/heads/{branch}")
    assert (f"{branch} at {at[:12]}" if at else f"no {branch}") in result.stdout
    assert not [
        line for line in result.stdout.splitlines() if line.startswith(("proposed ", "published ", "rejected "))
    ]
    assert read_refs(fleet) == before


@pytest.mark.slow
def test_a_local_change_stays_as_the_readme_says(world: Path) -> None:
    fleet, author = world / "fleet.git", ("--author", "Ada <ada@example.com>")
    run(world, "approve", "lisbon", "--propose", *WHERE, *author)
    sync(world)
    git(world, "clone", "--quiet", "--branch", "clusters/lisbon", str(fleet), "lisbon")
    deployment = world / "lisbon/gateway/deployment.yaml"
    text, count = re.subn("replicas: 2.*", "replicas: 5", deployment.read_text())
    assert count == 1
    deployment.write_text(text)
    git(world / "lisbon", "commit", "--quiet", "--all", "--message", "the fair is in town")
    git(world / "lisbon", "push", "--quiet")
    config = world / "config/gateway.yaml"
    config.write_text(config.read_text().replace("revision: v1", "revision: v2"))

    planned = run(world, "plan", "config", "--fleet", "fleet.git")
    sync(world)
    subject, conflicts = git(fleet, "log", "-1", "--format=%B", "drafts/lisbon").split("\n\n")[:2]
    refused = run(world, "propose", "lisbon", *WHERE)
    results = [run(world, verb, "lisbon", *WHERE, "--accept-conflicts", *author) for verb in ("propose", "approve")]

    line = "Deployment gateway: spec.replicas: local 5 is kept, upstream 3 is not applied"
    lines = planned.stdout.splitlines()
    assert line in lines[lines.index(next(line for line in lines if line.startswith("update lisbon/gateway "))) + 1]
    assert subject == "gateway v1 → v2: image; 1 upstream change not applied"
    assert line in conflicts
    assert (refused.returncode, "ConflictsNotAccepted" in refused.stdout) == (1, True)
    assert refused.stdout.splitlines()[0].startswith("conflict   lisbon/gateway: ")
    assert json.loads(refused.stderr.splitlines()[-1])["event"] == "review_action"
    assert [result.returncode for result in results] == [0, 0], results[-1].stdout
    assert "replicas: 5" in read_file(fleet, "refs/heads/clusters/lisbon", "gateway/deployment.yaml")
    committed = int(git(fleet, "log", "-1", "--format=%ct", "clusters/lisbon"))
    assert abs(time.time() - committed) < 600


def test_a_rejection_tells_why(world: Path) -> None:
    run(world, "propose", "lisbon", *WHERE)
    result = run(world, "reject", "lisbon", *WHERE, "--reason", "too early", "--author", "Ada <ada@example.com>")
    listed = run(world, "drafts", "config", "--cache", ".cache", "--cluster", "lisbon")

    assert result.returncode == 0, result.stderr
    assert "rejected by Ada: too early" in listed.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(["propose", *WHERE], "select drafts in exactly one way", id="nothing-named"),
        pytest.param(["propose", "lisbon", "--all", *WHERE], "select drafts in exactly one way", id="named-twice"),
        pytest.param(
            ["propose", "paris", *WHERE], "existing names: berlin, boston, catalog, chicago, lisbon", id="cluster"
        ),
        pytest.param(
            ["show", "lisbon/none", *WHERE], "existing packages: components/fair/edge/numbers, gateway", id="package"
        ),
        pytest.param(["propose", "lisbon/", *WHERE], "must be CLUSTER or CLUSTER/PACKAGE", id="half-a-place"),
        pytest.param(["drafts", "config", "-l", "a b"], "must be a label requirement", id="selector"),
        pytest.param(["drafts", "nowhere", "--cache", ".cache"], "must be a repository or a folder", id="config"),
        pytest.param(["reject", "lisbon", *WHERE, "--author", "Ada"], "must be a name and an address", id="author"),
        pytest.param(["propose", "lisbon", "--cache", ".cache"], "CONFIG is missing", id="no-config"),
    ],
)
def test_errors_of_wrong_arguments_list_the_allowed_values(world: Path, arguments: list[str], text: str) -> None:
    result = run(world, *arguments)

    assert result.returncode == 3
    assert text in " ".join(result.stderr.split())
