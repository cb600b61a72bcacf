"""Tests of the two writers of HelmReleases: the controller of presets, and charts with `output: helmRelease`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.krm.helm_paths import parse_option_name
from reconciler.krm.yaml import emit, parse_yaml
from reconciler.packages.artifacts import ArtifactRepository, ArtifactVersion
from reconciler.packages.charts.helm_release import ReleasedChart, SecretValues, build_release_files
from reconciler.packages.charts.request import ChartRequest
from reconciler.packages.charts.values import ValuesLayer, merge_layers
from tests.unit.controllers.plugin_presets.controller_world import build_secret_value, build_value
from tests.unit.controllers.plugin_presets.release_world import INJECTED, read_helm_release, run_preset

CHARTS = ArtifactRepository("default", "charts", "helm", "https://charts.example.com")
# The fields that depend on inputs of a preset that charts do not have: the HelmChart and the cluster of Greenhouse.
PRESET_FIELDS = {"chartRef", "timeout", "maxHistory", "install", "upgrade", "driftDetection", "suspend", "kubeConfig"}
# The fields that depend on inputs of a chart that presets do not have: the Repository and the options for CRDs.
CHART_FIELDS = {"chart", "install", "upgrade"}


def write_preset(parameters: dict[str, Any], secrets: dict[str, tuple[str, str]]) -> dict[str, Any]:
    options = [build_value(name, value) for name, value in parameters.items()]
    options += [build_secret_value(name, *reference) for name, reference in secrets.items()]
    return read_helm_release(run_preset(options, plugin={"releaseNamespace": "acme", "releaseName": "logs-east"}))


def write_chart(parameters: dict[str, Any], secrets: dict[str, tuple[str, str]]) -> dict[str, Any]:
    layers = [
        ValuesLayer("parameter", name, value, parse_option_name(name))
        for name, value in {"global.greenhouse": INJECTED["greenhouse"], **parameters}.items()
    ]
    references = [SecretValues(secret, key, name) for name, (secret, key) in secrets.items()]
    version = ReleasedChart(CHARTS, "shipper", ArtifactVersion("1.0.0"))
    request = ChartRequest("logs-east", "acme", "1.34.0")
    files = build_release_files(version, request, json.loads(merge_layers(layers).text), references)
    data: dict[str, Any] = parse_yaml(files["helmrelease-logs-east.yaml"].data).documents[0].data
    return data


@pytest.mark.parametrize(
    ("parameters", "secrets"),
    [
        pytest.param({}, {}, id="no-values"),
        pytest.param({"size": 3, "name": "web", "debug": False, "ratio": 0.5}, {}, id="scalars"),
        pytest.param({"a.b.c": 1, "a.b.d": "x", "a.e": [1, {"f": None}]}, {}, id="nested"),
        pytest.param({"hosts[0].host": "a.example", "hosts[1].host": "b.example", "empty": {}}, {}, id="lists"),
        pytest.param({"size": 3}, {"db.password": ("keys", "k"), "token": ("other", "t")}, id="secrets"),
    ],
)
def test_equal_inputs_have_equal_files(parameters: dict[str, Any], secrets: dict[str, tuple[str, str]]) -> None:
    """All fields with the same input are equal, also in their order and format."""
    preset, chart = write_preset(parameters, secrets), write_chart(parameters, secrets)

    assert preset["spec"].keys() - chart["spec"].keys() == PRESET_FIELDS - {"install", "upgrade"}
    assert chart["spec"].keys() - preset["spec"].keys() == CHART_FIELDS - {"install", "upgrade"}
    for field in PRESET_FIELDS:
        preset["spec"].pop(field)
    for field in CHART_FIELDS:
        chart["spec"].pop(field)
    assert emit(preset) == emit(chart)
