"""Tests of `reconciler explain --values --at`: the values of charts at a published commit, with the config of that time."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.test_charts import chart
from tests.scenarios.test_charts import request as request_single
from tests.scenarios.test_several_sources import ALERT, CHART, EXTRAS, VALUES, request
from tests.support.command_line import CommandResult, run_in
from tests.support.git_repositories import commit_files, git, make_bare, read_refs
from tests.support.history_world import HistoryWorld, with_history
from tests.support.programs import find_program
from tests.support.world import repository, small_world

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: sizes}}\ndata:\n  values.yaml: |\n    replicas: {}\n"
SINGLE = request_single(extra="helm:\n  namespace: shop\n  valuesFrom: [{kind: ConfigMap, name: sizes}]")
SEVERAL = request(
    CHART, VALUES, EXTRAS, extra="helm: {namespace: shop, valuesFiles: [$values/web.yaml], values: {replicas: 3}}"
)


def create_world(folder: Path, text: str) -> HistoryWorld:
    """Return a fleet whose package of a chart is published with the config in Git."""
    world = with_history(small_world(folder, sources={"helm": {"program": find_program("helm")}}))
    make_bare(folder / "team.git")
    write_team(world, 2)
    world.release("charts/web", "v1", chart("1.0.0"))
    world.release("alerts", "v1", {"alert.yaml": ALERT})
    team = repository("team", "./team.git", branch="main").replace("deployment: true", "deployment: false")
    world.change({"team.yaml": team, "sizes.yaml": MAP.format(2), "web.yaml": text})
    world.publish()
    return world


def write_team(world: HistoryWorld, replicas: int) -> str:
    data: dict[str, bytes | None] = {"web.yaml": f"replicas: {replicas}\n".encode()}
    return commit_files(world.folder / "team.git", "refs/heads/main", data, "values", 1_000_000_000)


def explain(world: HistoryWorld, *arguments: str, program: str = "") -> CommandResult:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "RECONCILER_SOURCES__HELM__PROGRAM": program or find_program("helm"),
    }
    options = ("--config", world.source, "--fleet", str(world.fleet), "--cache", str(world.folder / "cache"))
    return run_in(world.folder, environment, "explain", "berlin/web", *arguments, *options)


def explain_value(world: HistoryWorld, *arguments: str) -> dict[str, Any]:
    result = explain(world, *arguments, "-o", "json")
    assert result.returncode == 0, result.stderr + result.stdout
    (value,) = json.loads(result.stdout)["items"]
    found: dict[str, Any] = value
    return found


@pytest.mark.slow
def test_values_of_one_source_are_those_of_the_commit(tmp_path: Path) -> None:
    """The values at a commit come from the config of this commit, and the current values from the current config."""
    world = create_world(tmp_path, SINGLE)
    then, config = world.head("clusters/berlin"), git(world.repo, "rev-parse", "main")
    world.change({"sizes.yaml": "# moved down\n" + MAP.format(5)})
    world.publish()

    past, now = (explain_value(world, "--values", "replicas", *at) for at in (("--at", then), ()))

    assert [(step["layer"], step["after"], step["line"]) for step in past["steps"]] == [
        ("chart-default", 1, 1), ("values-from", 2, 6),
    ]  # fmt: skip
    assert past["steps"][-1]["commit"] == config
    assert [(step["after"], step["line"]) for step in now["steps"]] == [(1, 1), (5, 7)]


@pytest.mark.slow
def test_values_of_several_sources_are_those_of_the_commit(tmp_path: Path) -> None:
    """The values files of another source have the recorded commit of this source, although its branch has moved."""
    world = create_world(tmp_path, SEVERAL)
    then, team = world.head("clusters/berlin"), git(world.folder / "team.git", "rev-parse", "main")
    write_team(world, 6)
    world.change({"web.yaml": SEVERAL.replace("replicas: 3", "replicas: 4")})
    world.publish()

    past, now = (explain_value(world, "--values", "replicas", *at) for at in (("--at", then), ()))

    assert [step["after"] for step in past["steps"]] == [1, 2, 3]
    assert past["steps"][1]["commit"] == team
    assert (past["source"], [step["after"] for step in now["steps"]]) == ("chart", [1, 6, 4])


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("text", [pytest.param(SINGLE, id="one-source"), pytest.param(SEVERAL, id="several-sources")])
def test_field_at_a_commit_has_its_template_and_its_values(tmp_path: Path, text: str) -> None:
    """A field at a commit names its template, and the values of that time on which it depends."""
    world = create_world(tmp_path, text)
    then = world.head("clusters/berlin")
    write_team(world, 6)
    world.change({"sizes.yaml": MAP.format(5)})
    world.publish()

    value = explain_value(world, "Deployment/web", "/spec/replicas", "--at", then)

    step = value["steps"][0]
    assert (step["file"], step.get("line")) == ("charts/web/templates/deployment.yaml", None)
    (dependency,) = value["dependencies"]["values"]
    assert dependency["option"] == "replicas"
    assert dependency["steps"][-1]["after"] == step["after"]


def test_values_at_a_commit_without_the_program(tmp_path: Path) -> None:
    """The values at a commit are explained although the chart cannot be rendered."""
    world = create_world(tmp_path, SINGLE)

    result = explain(world, "--values", "replicas", "--at", "clusters/berlin", program="/nonexistent/helm")

    assert result.returncode == 1
    assert "blocked: the re-render is not possible: HelmUnavailable" in result.stdout
    assert "chart value replicas: 2" in result.stdout


def test_missing_config_commit_is_an_error(tmp_path: Path) -> None:
    """Without the config of the commit, its values cannot be decided."""
    world = create_world(tmp_path, SINGLE)
    then = world.head("clusters/berlin")
    world.change({"sizes.yaml": MAP.format(5)})
    world.squash_config()

    result = explain(world, "--values", "--at", then)

    assert result.returncode == 3
    assert (
        "the values of the package are unknown, because the package is blocked: the re-render is not" in result.stderr
    )
    assert "the recorded config" in result.stderr
    assert "(next step: make the recorded input available again, or omit --at to explain the current" in result.stderr


@pytest.mark.parametrize("text", [pytest.param(SINGLE, id="one-source"), pytest.param(SEVERAL, id="several-sources")])
def test_missing_chart_is_an_error(tmp_path: Path, text: str) -> None:
    """If the chart of the commit does not exist any more, the error names it and the next step."""
    world = create_world(tmp_path, text)
    then = world.head("clusters/berlin")
    catalog = world.folder / "catalog.git"
    for ref in read_refs(catalog):
        git(catalog, "update-ref", "-d", ref)
    world.prune_unreachable_objects(catalog)

    result = explain(world, "--values", "--at", then)

    assert result.returncode == 3
    assert "berlin/web: " in result.stderr
    assert "(next step: make the recorded input available again, or omit --at to explain the current" in result.stderr
