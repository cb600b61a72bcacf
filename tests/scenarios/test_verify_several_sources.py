"""Tests of `reconciler verify` for packages with several sources, after the sources or their refs have changed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.test_charts import chart
from tests.scenarios.test_several_sources import ALERT, CHART, EXTRAS, OUTPUT, RENDER, VALUES, request
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
        world = self.world
        settings = {
            "cache": str(world.folder / "cache"), "fleet": {"url": str(world.fleet)},
            "sources": {"helm": {"program": str(self.helm.path)}},
        }  # fmt: skip
        (world.folder / "settings.yaml").write_text(json.dumps(settings))
        options = ("--config", world.source, "--settings", "settings.yaml", "-o", "json")
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
        result = run_in(world.folder, environment, "verify", "berlin/web", *options)
        (item,) = json.loads(result.stdout)["items"]
        found: dict[str, Any] = item
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
