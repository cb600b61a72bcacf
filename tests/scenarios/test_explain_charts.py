"""Tests of `reconciler explain` for charts: the layers of values, the template of a resource, and dependencies."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.charts import read_source
from tests.support.command_line import CommandResult, run_in
from tests.support.programs import find_program
from tests.support.world import World, small_world, variant

MAPS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: web-defaults}
data:
  values.yaml: |
    # replicas of each cluster
    replicas: 2
    mode: off-line
"""
HELM = """\
helm:
  namespace: shop
  valuesFiles: [prod.yaml]
  valuesFrom: [{kind: ConfigMap, name: web-defaults}]
  values:
    replicas: 3
    gone: null
  parameters:
    - {name: cache.size, value: 128}
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = small_world(tmp_path, sources={"helm": {"program": find_program("helm")}})
    world.release("charts/web", "v1", read_source("values-layers"))
    world.write({"maps.yaml": MAPS, "web.yaml": variant("web", "berlin", "web", upstream="charts/web", extra=HELM)})
    return world


def explain(world: World, *arguments: str, renders: str = "40") -> CommandResult:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "RECONCILER_SOURCES__HELM__PROGRAM": find_program("helm"),
        "RECONCILER_SOURCES__HELM__EXPLAIN_RENDERS": renders,
    }
    options = ("--config", str(world.config), "--cache", str(world.folder / "cache"))
    return run_in(world.folder, environment, "explain", "berlin/web", *arguments, *options)


def explain_as_json(world: World, *arguments: str) -> Any:
    result = explain(world, *arguments, "-o", "json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)["items"]


CHART_FILE, SUBCHART_FILE, MAPS_FILE = "charts/web/values.yaml", "charts/web/charts/cache/values.yaml", "maps.yaml"


def test_values_have_all_layers(world: World) -> None:
    """Each value has its layers with file, line, field and commit, from the defaults of subcharts to parameters."""
    layers = {
        value["option"]: [
            (step["layer"], step["file"], step["line"], step.get("field"), step.get("after")) for step in value["steps"]
        ]
        for value in explain_as_json(world, "--values")
    }
    assert layers == {
        "cache.size": [
            ("chart-default", SUBCHART_FILE, 2, None, 64), ("parameter", "web.yaml", 16, "spec.helm.parameters[0]", 128),
        ],
        "gone": [("values", "web.yaml", 14, "spec.helm.values", None)],
        "image.repository": [("chart-default", CHART_FILE, 3, None, "httpd")],
        "image.tag": [
            ("chart-default", CHART_FILE, 4, None, "2"), ("values-file", "charts/web/prod.yaml", 2, None, "3"),
        ],
        "mode": [
            ("chart-default", CHART_FILE, 5, None, "on-line"),
            ("values-from", MAPS_FILE, 8, "data.values.yaml", "off-line"),
        ],
        "replicas": [
            ("chart-default", CHART_FILE, 1, None, 1),
            ("values-from", MAPS_FILE, 7, "data.values.yaml", 2),
            ("values", "web.yaml", 13, "spec.helm.values", 3),
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("replicas", ["replicas"]),
        ("image", ["image.repository", "image.tag"]),
        ("/image/tag", ["image.tag"]),
    ],
)
def test_values_at_a_path(world: World, path: str, options: list[str]) -> None:
    """A path selects a value or the values below it."""
    assert [value["option"] for value in explain_as_json(world, "--values", path)] == options


def test_text_of_values(world: World) -> None:
    """The text contains one line per layer, with the location and the commit of each file."""
    lines = explain(world, "--values", "replicas").stdout.splitlines()
    start = lines.index("chart value replicas: 3")
    assert [line.partition(", commit")[0] for line in lines[start + 1 : start + 4]] == [
        "  1. chart-default  added 1  catalog/charts/web charts/web/v1 (charts/web/values.yaml:1",
        "  2. values-from    1 → 2    ConfigMap/_cluster/web-defaults (maps.yaml:7 data.values.yaml)",
        "  3. values         2 → 3    PackageVariant/default/web (web.yaml:13 spec.helm.values)  wins",
    ]


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--values", "replica"),
            "berlin/web: no layer sets the value replica; existing values, closest match first: repl",
        ),
        (("--values", "a..b"), "berlin/web: the path of a value must have a key between dots"),
        (("--values", "/a~b"), 'berlin/web: "/a~b" is not a JSON pointer'),
        (("Deployment/web", "--values"), "--values must be used without RESOURCE"),
    ],
)
def test_unusable_path(world: World, arguments: tuple[str, ...], message: str) -> None:
    """A path that selects nothing is an error with the existing values."""
    result = explain(world, *arguments)
    assert result.returncode == 3
    assert message in result.stderr


def test_package_without_a_chart(world: World) -> None:
    """A package of kpt has no chart values."""
    options = ("--config", str(world.config), "--cache", str(world.folder / "cache"))
    result = run_in(world.folder, {"PATH": os.environ["PATH"]}, "explain", "berlin/metrics", "--values", *options)
    assert result.returncode == 3
    assert "berlin/metrics: the values of the package are unknown, because it has no chart" in result.stderr


def test_package_with_missing_values(world: World) -> None:
    """If values do not exist, the error contains the reason."""
    world.write({"maps.yaml": None})
    result = explain(world, "--values")
    assert result.returncode == 3
    message = (
        "because the package is blocked: ValuesNotFound: spec.helm.valuesFrom[0]: the config contains no ConfigMap"
    )
    assert message in result.stderr


def test_values_without_the_program(world: World) -> None:
    """The values are explained although the chart cannot be rendered."""
    environment = {"PATH": "/nonexistent", "RECONCILER_SOURCES__HELM__PROGRAM": "/nonexistent/helm"}
    options = ("--config", str(world.config), "--cache", str(world.folder / "cache"))
    result = run_in(world.folder, environment, "explain", "berlin/web", "--values", "replicas", *options)
    assert result.returncode == 1
    assert "HelmUnavailable" in result.stdout
    assert "chart value replicas: 3" in result.stdout


@pytest.mark.slow
def test_field_depends_on_values(world: World) -> None:
    """A field has its template, and the values that change the field, with their layers."""
    (value,) = explain_as_json(world, "Deployment/web", "/spec/replicas")
    (step,) = value["steps"]
    assert (step["layer"], step["file"], step.get("line")) == ("upstream", "charts/web/templates/deployment.yaml", None)
    dependencies = value["dependencies"]
    assert [(entry["option"], len(entry["steps"])) for entry in dependencies["values"]] == [("replicas", 3)]
    assert dependencies["unknown"] == ["mode"]


@pytest.mark.slow
def test_field_depends_on_defaults_of_the_chart(world: World) -> None:
    """Defaults whose path is in the template are checked too."""
    (value,) = explain_as_json(world, "Deployment/web", "/spec/template/spec/containers/0/image")
    assert [entry["option"] for entry in value["dependencies"]["values"]] == ["image.tag", "image.repository"]


def test_number_of_renders_is_limited(world: World) -> None:
    """The setting limits the renders for each field. 0 disables them."""
    text = explain(world, "Deployment/web", "/spec/replicas", renders="1").stdout
    assert "  depends on no chart value that was checked" in text
    assert "    not checked: 5 values (limit of the setting sources.helm.explain_renders)" in text
    assert "depends on" not in explain(world, "Deployment/web", "/spec/replicas", renders="0").stdout


def test_resource_has_its_template(world: World) -> None:
    """The explanation of a resource names the template that wrote it."""
    assert ", template charts/web/templates/deployment.yaml" in explain(world, "Deployment/web").stdout
