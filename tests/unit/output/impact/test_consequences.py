"""Tests of the consequences of a changed resource on its cluster. Each row tests one Kubernetes rule."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.output.changes.package_changes import compare_packages
from reconciler.output.impact.consequences import find_consequences
from tests.unit.output.builders import build_tree

APPS, RBAC = "apps/v1", "rbac.authorization.k8s.io/v1"
CRD = "apiextensions.k8s.io/v1"


def build_resource_file(api: str, kind: str, **fields: Any) -> dict[str, str]:
    return {"a.yaml": json.dumps({"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, **fields})}


def find_consequence_levels(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return [
        consequence.level for consequence in find_consequences(compare_packages(build_tree(before), build_tree(after)))
    ]


def build_crd_versions(*names: str) -> dict[str, Any]:
    return {"spec": {"versions": [{"name": name, "served": True} for name in names]}}


@pytest.mark.parametrize(
    ("api", "kind", "before", "after", "expected"),
    [
        pytest.param(APPS, "Deployment", {"template": {"a": 1}}, {"template": {"a": 2}}, ["restarts"], id="pods"),
        pytest.param(APPS, "DaemonSet", {"template": {"a": 1}}, {"template": {"a": 2}}, ["restarts"], id="daemons"),
        pytest.param(APPS, "Deployment", {"replicas": 1}, {"replicas": 2}, [], id="replicas"),
        pytest.param(APPS, "Deployment", {"replicas": 1}, {"replicas": 0}, ["stops"], id="no-replicas"),
        pytest.param(APPS, "Deployment", {"paused": True}, {"paused": False}, [], id="something-else"),
        pytest.param(APPS, "Deployment", {"selector": {"a": 1}}, {"selector": {"a": 2}}, ["recreates"], id="selector"),
        pytest.param(
            APPS, "StatefulSet", {"template": {"a": 1}, "volumeClaimTemplates": []},
            {"template": {"a": 2}, "volumeClaimTemplates": [{"a": 1}]}, ["recreates", "restarts"], id="claims-and-pods",
        ),
        pytest.param(APPS, "StatefulSet", {"serviceName": "a"}, {"serviceName": "b"}, ["recreates"], id="service-name"),
        pytest.param("batch/v1", "Job", {"template": {"a": 1}}, {"template": {"a": 2}}, ["recreates"], id="a-job"),
        pytest.param(
            "batch/v1", "CronJob", {"jobTemplate": {"spec": {"template": {"a": 1}}}},
            {"jobTemplate": {"spec": {"template": {"a": 2}}}}, ["restarts"], id="a-cron-job",
        ),
        pytest.param("batch/v1", "CronJob", {"schedule": "1"}, {"schedule": "2"}, [], id="a-schedule"),
        pytest.param("v1", "Service", {"clusterIP": "1.1.1.1"}, {"clusterIP": "None"}, ["recreates"], id="cluster-ip"),
        pytest.param("v1", "Service", {"clusterIP": "1.1.1.1"}, {}, [], id="a-cluster-ip-that-the-cluster-keeps"),
        pytest.param(
            "v1", "PersistentVolumeClaim", {"volumeName": "a"}, {"volumeName": "b"}, ["recreates"], id="a-claim"
        ),
        pytest.param(
            "v1", "PersistentVolumeClaim", {"resources": {"requests": {"storage": "1Gi"}}},
            {"resources": {"requests": {"storage": "2Gi"}}}, [], id="a-claim-grows",
        ),
        pytest.param("example.com/v1", "Deployment", {"selector": 1}, {"selector": 2}, [], id="a-namesake"),
        pytest.param(CRD, "CustomResourceDefinition", {"scope": "a"}, {"scope": "b"}, ["recreates"], id="scope"),
        pytest.param(APPS, "Deployment", None, {"template": {"a": 1}}, ["restarts"], id="all-that-it-stands-in"),
    ],
)  # fmt: skip
def test_consequence_of_a_changed_field(
    api: str, kind: str, before: dict[str, Any] | None, after: dict[str, Any], expected: list[str]
) -> None:
    was = build_resource_file(api, kind) if before is None else build_resource_file(api, kind, spec=before)

    assert find_consequence_levels(was, build_resource_file(api, kind, spec=after)) == expected


@pytest.mark.parametrize(
    ("api", "kind", "expected"),
    [
        pytest.param("v1", "Namespace", ["destroys"], id="namespace"),
        pytest.param("v1", "PersistentVolumeClaim", ["destroys"], id="claim"),
        pytest.param(APPS, "StatefulSet", ["destroys"], id="stateful-set"),
        pytest.param(CRD, "CustomResourceDefinition", ["destroys"], id="definition"),
        pytest.param("kafka.strimzi.io/v1", "KafkaNodePool", ["destroys"], id="brokers"),
        pytest.param(APPS, "Deployment", [], id="what-can-be-made-again"),
        pytest.param("example.com/v1", "Namespace", [], id="a-namesake"),
    ],
)
def test_consequence_of_a_removed_object(api: str, kind: str, expected: list[str]) -> None:
    assert find_consequence_levels(build_resource_file(api, kind), {}) == expected
    assert find_consequence_levels({}, build_resource_file(api, kind)) == []


def test_dropped_version_of_a_crd_is_named() -> None:
    before, after = (
        build_resource_file(CRD, "CustomResourceDefinition", **build_crd_versions(*names))
        for names in (("v1", "v2"), ("v2",))
    )

    (consequence,) = find_consequences(compare_packages(build_tree(before), build_tree(after)))

    assert (consequence.level, consequence.resource) == ("destroys", "CustomResourceDefinition x")
    assert consequence.reason.startswith("version v1 is removed")


def test_fields_outside_of_spec_have_consequences() -> None:
    assert find_consequence_levels(
        build_resource_file(RBAC, "RoleBinding", roleRef={"name": "a"}),
        build_resource_file(RBAC, "RoleBinding", roleRef={"name": "b"}),
    ) == ["recreates"]


def test_local_config_resource_has_no_consequence() -> None:
    local = build_resource_file("v1", "Namespace")["a.yaml"].replace(
        '"name": "x"', '"name": "x", "annotations": {"config.kubernetes.io/local-config": "true"}'
    )

    assert find_consequence_levels({"a.yaml": local}, {}) == []
