"""Tests of `reconciler explain` for packages with several sources: charts, copied folders and overlays."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.test_charts import request as request_single
from tests.scenarios.test_kustomize import BASE, OVERLAYS
from tests.scenarios.test_several_sources import ALERT, CHART, EXTRAS, VALUES, Fleet, request
from tests.support.command_line import CommandResult, run_in
from tests.support.programs import find_program

CACHE = "{name: cache, repo: catalog, package: charts/cache, revision: v1, helm: {namespace: shop, values: {size: 2}}}"
CACHE_CHART = {
    "Chart.yaml": "apiVersion: v2\nname: cache\nversion: 1.0.0\n",
    "values.yaml": "size: 1\nreplicas: 1\n",
    "templates/map.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cache}\ndata:\n  size: '{{ .Values.size }}'\n"
    ),
}


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """Return a fleet with a package of two charts, a source with values files, and a folder."""
    fleet = Fleet(tmp_path)
    fleet.world.release("charts/cache", "v1", CACHE_CHART)
    fleet.world.write({"web.yaml": request(CHART, VALUES, EXTRAS, CACHE)})
    return fleet


def explain(fleet: Fleet, *arguments: str) -> CommandResult:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "RECONCILER_SOURCES__HELM__PROGRAM": find_program("helm"),
        "RECONCILER_SOURCES__KUSTOMIZE__PROGRAM": find_program("kustomize"),
    }
    world = fleet.world
    options = ("--config", str(world.config), "--cache", str(world.folder / "cache"))
    return run_in(world.folder, environment, "explain", "berlin/web", *arguments, *options)


def explain_as_json(fleet: Fleet, *arguments: str) -> Any:
    result = explain(fleet, *arguments, "-o", "json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize(
    ("resource", "pointer", "source", "file", "line"),
    [
        pytest.param(
            "Deployment/web", "/spec/replicas", "source chart: catalog/charts/web charts/web/v1",
            "charts/web/templates/deployment.yaml", None, id="chart",
        ),
        pytest.param(
            "ConfigMap/alerts", "/data/level", "source extras: catalog/alerts alerts/v1", "alerts/alert.yaml",
            ALERT.splitlines().index("data: {level: high}  # as written") + 1, id="folder",
        ),
        pytest.param(
            "ConfigMap/cache", "/data/size", "source cache: catalog/charts/cache charts/cache/v1",
            "charts/cache/templates/map.yaml", None, id="second-chart",
        ),
    ],
)  # fmt: skip
def test_resource_has_its_source(
    fleet: Fleet, resource: str, pointer: str, source: str, file: str, line: int | None
) -> None:
    """The layer of a resource names its source, its file or template, and the commit."""
    package = explain_as_json(fleet, resource, pointer)
    (value,) = package["items"]
    step = value["steps"][0]
    name = source.removeprefix("source ").partition(":")[0]
    (commit,) = (entry["commit"] for entry in package["summary"]["upstream"]["sources"] if entry["name"] == name)
    assert (step["setBy"], step["file"], step.get("line"), step["commit"]) == (source, file, line, commit)


def test_overlay_is_named(fleet: Fleet) -> None:
    """A resource of an overlay has the source and the folder that is built."""
    fleet.world.release("shop", "v1", {**BASE, **OVERLAYS})
    overlay = "{name: site, repo: catalog, package: shop, revision: v1, kustomize: {path: overlays/berlin}}"
    fleet.world.write({"web.yaml": request(EXTRAS, overlay, extra="")})
    (value,) = explain_as_json(fleet, "Deployment/web", "/spec/replicas")["items"]
    step = value["steps"][0]
    assert step["setBy"] == "source site: catalog/shop shop/v1, the overlay overlays/berlin"
    assert (step.get("file"), step.get("line")) == (None, None)


def test_text_names_the_source_of_unchanged_resources(fleet: Fleet) -> None:
    """The heading lists all sources, and each resource names its own source."""
    text = explain(fleet, "ConfigMap/alerts").stdout
    assert "  source: sources chart (catalog/charts/web charts/web/v1 at commit " in text
    assert "  unchanged from source extras: catalog/alerts alerts/v1 (alerts/alert.yaml, commit " in text


@pytest.mark.slow
def test_field_depends_on_the_values_of_its_chart(fleet: Fleet) -> None:
    """The values on which a field depends are those of the chart that contains the template."""
    (value,) = explain_as_json(fleet, "Deployment/web", "/spec/replicas")["items"]
    (dependency,) = value["dependencies"]["values"]
    assert (dependency["source"], dependency["option"]) == ("chart", "replicas")
    assert [(step["layer"], step["file"], step["line"]) for step in dependency["steps"]] == [
        ("chart-default", "charts/web/values.yaml", 1),
        ("values-file", "web/berlin.yaml", 1),
    ]
    (value,) = explain_as_json(fleet, "ConfigMap/cache", "/data/size")["items"]
    assert [(entry["source"], entry["option"]) for entry in value["dependencies"]["values"]] == [("cache", "size")]


def test_copied_field_depends_on_no_values(fleet: Fleet) -> None:
    """A field of a copied file has no values, although other sources are charts."""
    (value,) = explain_as_json(fleet, "ConfigMap/alerts", "/data/level")["items"]
    assert "dependencies" not in value


def test_values_of_all_charts(fleet: Fleet) -> None:
    """Without a path, the values of all charts have the name of their source."""
    values = explain_as_json(fleet, "--values")["items"]
    assert [(value["source"], value["option"]) for value in values] == [
        ("chart", "replicas"), ("cache", "replicas"), ("cache", "size"),
    ]  # fmt: skip
    assert "chart value size of source cache: 2" in explain(fleet, "--values", "size").stdout


def test_values_file_of_another_source_has_the_commit_of_this_source(fleet: Fleet) -> None:
    """A layer of a values file in another source has the path and the commit in the repository of this source."""
    commit = fleet.write_team({"site/web/berlin.yaml": "replicas: 7\n"})
    values = VALUES.replace("ref: true", "package: site, ref: true")
    fleet.world.write({"web.yaml": request(CHART, values)})
    (value,) = explain_as_json(fleet, "--values", "replicas")["items"]
    last = value["steps"][-1]
    assert (last["setBy"], last["file"], last["line"], last["commit"]) == (
        "$values/web/berlin.yaml", "site/web/berlin.yaml", 1, commit,
    )  # fmt: skip


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ("--values", "replicas"),
            "berlin/web: the charts of several sources have the value replicas; select one source with --source (sources: chart, cache)",
            id="ambiguous",
        ),
        pytest.param(
            ("--values", "--source", "extras"),
            "berlin/web: --source extras: the package has no source with this name and a chart; sources with charts: "
            "chart, cache",
            id="source-without-chart",
        ),
        pytest.param(("--source", "chart"), "--source must be used with --values", id="without-values"),
        pytest.param(
            ("--values", "sizes", "--source", "cache"),
            "no layer sets the value sizes; existing values, closest match first: size, replicas",
            id="unknown-value",
        ),
    ],
)
def test_unusable_selection(fleet: Fleet, arguments: tuple[str, ...], message: str) -> None:
    """An ambiguous path or an unknown source is an error with the allowed names."""
    result = explain(fleet, *arguments)
    assert result.returncode == 3
    assert message in result.stderr


def test_source_selects_one_chart(fleet: Fleet) -> None:
    """The option --source selects the values of one chart."""
    values = explain_as_json(fleet, "--values", "replicas", "--source", "chart")["items"]
    assert [(value["source"], len(value["steps"])) for value in values] == [("chart", 2)]


def test_source_of_a_package_with_one_source(fleet: Fleet) -> None:
    """The option --source is an error for a package with one upstream."""
    fleet.world.write({"web.yaml": request_single()})
    result = explain(fleet, "--values", "--source", "chart")
    assert result.returncode == 3
    assert "--source chart: the package has only one source; omit --source" in result.stderr


def test_values_are_explained_without_the_program(fleet: Fleet) -> None:
    """The values are explained although the charts cannot be rendered."""
    environment = {"PATH": "/nonexistent", "RECONCILER_SOURCES__HELM__PROGRAM": "/nonexistent/helm"}
    options = ("--config", str(fleet.world.config), "--cache", str(fleet.world.folder / "cache"))
    result = run_in(fleet.world.folder, environment, "explain", "berlin/web", "--values", "size", *options)
    assert result.returncode == 1
    assert "HelmUnavailable" in result.stdout
    assert "chart value size of source cache: 2" in result.stdout
