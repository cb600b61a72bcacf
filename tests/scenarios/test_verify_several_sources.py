"""Tests of `reconciler verify` and `why` for packages with several sources, after the sources or their refs have changed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.test_artifacts import describe_repository, pack_web
from tests.scenarios.test_charts import chart
from tests.scenarios.test_several_sources import ALERT, CHART, EXTRAS, OUTPUT, RENDER, VALUES, request
from tests.support.artifact_servers import ArtifactServer, serve
from tests.support.charts import FakeHelm
from tests.support.command_line import run_in
from tests.support.git_repositories import commit_files, git, make_bare
from tests.support.history_world import HistoryWorld, with_history
from tests.support.world import repository, small_world

STATUS = ".reconciler/web.yaml"


class SeveralSources:
    """A published package with several sources, and its config in Git."""

    def __init__(self, folder: Path) -> None:
        self.helm = FakeHelm(folder / "bin")
        self.helm.behave(output=OUTPUT, code=RENDER)
        self.world: HistoryWorld = with_history(small_world(folder, sources={"helm": {"program": str(self.helm.path)}}))
        make_bare(folder / "team.git")
        self.write_values(2)
        self.world.release("charts/web", "v1", chart("1.0.0"))
        self.world.release("alerts", "v1", {"alert.yaml": ALERT})
        team = repository("team", "./team.git", branch="main").replace("deployment: true", "deployment: false")
        options = "helm: {namespace: shop, valuesFiles: [$values/web.yaml]}"
        self.world.change({"team.yaml": team, "web.yaml": request(CHART, VALUES, EXTRAS, extra=options)})
        self.world.publish()

    def write_values(self, replicas: int) -> None:
        data: dict[str, bytes | None] = {"web.yaml": f"replicas: {replicas}\n".encode()}
        commit_files(self.world.folder / "team.git", "refs/heads/main", data, "values", 1_000_000_000)

    def verify(self) -> dict[str, Any]:
        """Return the result of `verify` for the package."""
        (item,) = self.run("verify", "berlin/web")["items"]
        found: dict[str, Any] = item
        return found

    def find_reason(self, *arguments: str) -> dict[str, Any]:
        """Return the reason that `why` finds for a value of the package."""
        (item,) = self.run("why", "berlin/web", *arguments)["items"]
        reason: dict[str, Any] = item["reason"]
        return reason

    def run(self, *arguments: str) -> dict[str, Any]:
        """Return the output of a command."""
        world = self.world
        settings = {
            "cache": str(world.folder / "cache"), "fleet": {"url": str(world.fleet)},
            "sources": {"helm": {"program": str(self.helm.path)}},
        }  # fmt: skip
        (world.folder / "settings.yaml").write_text(json.dumps(settings))
        options = ("--config", world.source, "--settings", "settings.yaml", "-o", "json")
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
        found: dict[str, Any] = json.loads(run_in(world.folder, environment, *arguments, *options).stdout)
        return found

    def read_verdict(self) -> tuple[str, str]:
        """Return the verdict, and its reason or note."""
        item = self.verify()
        return item["verdict"], " ".join([item["rerender"].get("reason", ""), *item["rerender"].get("notes", ())])


@pytest.fixture
def fleet(tmp_path: Path) -> SeveralSources:
    return SeveralSources(tmp_path)


def test_package_is_reproduced(fleet: SeveralSources) -> None:
    source = fleet.world.package_status("clusters/berlin", "web")["inputs"]["source"]
    assert source["engine"]["name"] == "helm"
    assert [entry["name"] for entry in source["sources"]] == ["chart", "extras"]

    assert fleet.read_verdict()[0] == "reproduced"


def test_moved_branch_and_moved_tag_have_their_recorded_commits(fleet: SeveralSources) -> None:
    fleet.write_values(9)
    fleet.world.release("alerts", "v1", {"alert.yaml": ALERT.replace("high", "low")})

    assert fleet.read_verdict()[0] == "reproduced"


def test_deleted_tag_of_a_second_source_has_its_recorded_commit(fleet: SeveralSources) -> None:
    git(fleet.world.folder / "catalog.git", "update-ref", "-d", "refs/tags/alerts/v1")

    assert fleet.read_verdict()[0] == "reproduced"


def test_local_change_is_reported(fleet: SeveralSources) -> None:
    fleet.world.edit("clusters/berlin", "web/alerts/alert.yaml", "level: high", "level: low")

    item = fleet.verify()

    assert (item["verdict"], item["rerender"]["verdict"]) == ("edited", "reproduced")
    assert item["editDifference"]["pointer"] == "/data/level"


@pytest.mark.slow
def test_another_engine_is_a_separate_result(fleet: SeveralSources) -> None:
    fleet.helm.path.write_text(f"{fleet.helm.path.read_text()}# another build\n")

    verdict, note = fleet.read_verdict()
    assert (verdict, "EngineDiffers" in note) == ("reproduced", True)
    fleet.helm.behave(output=OUTPUT.replace("ClusterIP", "NodePort"), code=RENDER)
    fleet.helm.path.write_text(f"{fleet.helm.path.read_text()}# a third build\n")
    verdict, note = fleet.read_verdict()
    assert (verdict, "EngineDiffers" in note) == ("differs", True)


def test_missing_commit_of_a_source_is_named(fleet: SeveralSources) -> None:
    team = fleet.world.folder / "team.git"
    git(team, "update-ref", "-d", "refs/heads/main")
    fleet.write_values(9)
    fleet.world.prune_unreachable_objects(team)

    verdict, reason = fleet.read_verdict()

    assert verdict == "unknowable"
    assert re.search(r"the commit \w{12} of ./team.git \(source values\) does not exist any more", reason)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "name: extras", "title: extras", "sources must be a list, and each source must have a name", id="name"
        ),
        pytest.param(
            "ref: main", "note: main", "sources[1] must contain repo, ref, commit, tree; the tree", id="field"
        ),
    ],
)
def test_invalid_source_in_a_status_file_is_reported(fleet: SeveralSources, old: str, new: str, message: str) -> None:
    text = fleet.world.text("clusters/berlin", STATUS)
    assert old in text
    fleet.world.commit("clusters/berlin", {STATUS: text.replace(old, new, 1)})

    verdict, reason = fleet.read_verdict()

    assert verdict == "unknowable"
    assert message in reason


@pytest.mark.slow
def test_why_finds_the_commit_of_a_values_file(fleet: SeveralSources) -> None:
    fleet.write_values(5)
    fleet.write_values(7)
    commit = git(fleet.world.folder / "team.git", "rev-parse", "main")
    fleet.world.publish()

    reason = fleet.find_reason("Deployment/web", "/spec/replicas")

    assert (reason["kind"], [entry["commit"] for entry in reason["commits"]]) == ("upstream", [commit])


@pytest.mark.slow
def test_why_finds_the_commit_of_a_folder(fleet: SeveralSources) -> None:
    fleet.write_values(7)
    commit = fleet.world.release("alerts", "v1", {"alert.yaml": ALERT.replace("high", "low")})
    fleet.world.publish()

    reason = fleet.find_reason("ConfigMap/alerts", "/data/level")

    assert (reason["kind"], [entry["commit"] for entry in reason["commits"]]) == ("upstream", [commit])


@pytest.mark.slow
def test_why_names_the_version_of_a_chart(fleet: SeveralSources) -> None:
    with serve(ArtifactServer()) as server:
        server.add_chart("web", "1.0.0", pack_web("1.0.0"))
        source = '{name: chart, repo: charts, chart: web, version: "~1.0"}'
        text = request(source, EXTRAS, extra="helm: {namespace: shop}")
        code = (
            'version = pathlib.Path("chart/Chart.yaml").read_text().splitlines()[2].split()[1]\n'
            'behavior["output"] = behavior["output"].replace("1.0.0", version)'
        )
        fleet.helm.behave(output=OUTPUT.replace("REPLICAS", "1"), code=code)
        repository_text = describe_repository("helm", f"{{url: {server.url}/charts}}")
        fleet.world.change({"charts.yaml": repository_text, "web.yaml": text})
        fleet.world.publish()
        server.add_chart("web", "1.0.1", pack_web("1.0.1"))
        fleet.world.now += 600
        fleet.world.publish()

        reason = fleet.find_reason("Deployment/web", "/spec/template/spec/containers/0/image")

    assert (reason["kind"], reason["message"]) == (
        "upstream", "version 1.0.1 of web set the value; the version before was 1.0.0",
    )  # fmt: skip
