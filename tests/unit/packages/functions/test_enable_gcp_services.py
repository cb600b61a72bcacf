"""Tests of enable-gcp-services: the services that a ProjectServiceSet generates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.packages.functions.function import FunctionContext, Item
from reconciler.packages.functions.google_cloud import enable_gcp_services
from tests.unit.packages.builders import parse_items, run_function

SET = """\
apiVersion: blueprints.cloud.google.com/v1alpha1
kind: ProjectServiceSet
metadata:
  name: s
  namespace: ns
  annotations:
    team: a
spec:
  services: [{services}]
  projectID: p
"""
MADE = """\
apiVersion: serviceusage.cnrm.cloud.google.com/v1beta1
kind: Service
metadata:
  name: s-compute
  namespace: ns
  annotations:
    blueprints.cloud.google.com/ownerReference: 'blueprints.cloud.google.com/ProjectServiceSet/s'
    cnrm.cloud.google.com/blueprint: 'kpt-fn'
    team: a
spec:
  resourceID: compute.googleapis.com
  projectRef:
    external: p
"""


def test_generated_service() -> None:
    output = run_function(enable_gcp_services, SET.format(services="compute.googleapis.com"), None)

    assert output.items[1].document.text == MADE
    assert (output.items[1].id, output.items[1].path) == (None, "ns/service_s-compute.yaml")


def test_service_set_is_local_config() -> None:
    output = run_function(enable_gcp_services, SET.format(services="compute.googleapis.com"), None)

    assert output.items[0].is_local_config


@pytest.mark.parametrize(
    ("services", "expected"),
    [
        pytest.param("compute.a.b", [("recreated service", "s-compute")], id="again"),
        pytest.param(
            "compute.a.b, aa.a.b", [("generated service", "s-aa"), ("recreated service", "s-compute")], id="one-more"
        ),
        pytest.param("aa.a.b", [("generated service", "s-aa"), ("pruned service", "s-compute")], id="another"),
    ],
)
def test_previously_generated_services(services: str, expected: list[tuple[str, str]]) -> None:
    output = run_function(enable_gcp_services, f"{SET.format(services=services)}---\n{MADE}", None)

    assert [(result.message, (result.resource or [""])[-1]) for result in output.results] == expected
    assert {item.name for item in output.items} == {"s"} | {name for item, name in expected if "pruned" not in item}


def test_second_run_changes_nothing() -> None:
    text = f"{SET.format(services='compute.googleapis.com')}---\n{MADE}"
    once = run_function(enable_gcp_services, text, None)
    before = parse_items(text)

    assert once.items[1].data == before[1].data
    assert once.items[1].document is before[1].document


@pytest.mark.parametrize(
    ("package", "at", "path"),
    [
        pytest.param("", "a/r.yaml", "a/ns/service_s-compute.yaml", id="beside-the-set"),
        pytest.param("sub", "r.yaml", "sub/ns/service_s-compute.yaml", id="in-the-package-of-the-set"),
    ],
)
def test_path_of_a_generated_service(package: str, at: str, path: str) -> None:
    item: Item = replace(parse_items(SET.format(services="compute.a.b"), at)[0], package=package)
    new_item = enable_gcp_services([item], None, FunctionContext()).items[1]

    assert new_item.file == path


@pytest.mark.parametrize(
    ("services", "reason"),
    [
        pytest.param("", "at least one service must be specified", id="none"),
        pytest.param("compute", 'invalid service specified: "compute"', id="no-address"),
    ],
)
def test_errors(services: str, reason: str) -> None:
    output = run_function(enable_gcp_services, SET.format(services=services), None)

    assert output.has_failed
    assert reason in output.results[0].message
