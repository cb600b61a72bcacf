"""Tests of edge cases in the merge of Kafka templates, from manifests to findings and files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.controllers.kafka_templates.model import MATERIALISED_ANNOTATION
from tests.unit.controllers.kafka_templates.template_builders import (
    MISSING,
    format_codes,
    kafka,
    merge,
    pool,
    template_of,
)

POD = {"priorityClassName": "high", "tolerations": [{"key": "a"}, {"key": "b"}]}
ROUTES = {"listeners": [{"name": "route", "port": 9094, "type": "route"}]}


def env(*variables: Mapping[str, Any]) -> dict[str, Any]:
    return {"kafkaContainer": {"env": list(variables)}}


def labels(name: str, **mapping: Any) -> dict[str, Any]:
    return {
        name: {"metadata": {"labels": {label.replace("__", "/").replace("_", "."): v for label, v in mapping.items()}}}
    }


def kafka_and_pool(parent: Any, child: Any, **spec: Any) -> dict[str, str]:
    return {"kafka.yaml": kafka(parent, **spec), "pool.yaml": pool(child)}


NAMED = labels("podSet", app_kubernetes_io__name="x")
SECRET = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
MOUNTS = {"kafkaContainer": {"volumeMounts": [{"name": "data-x", "mountPath": "/mnt/v"}]}}
VOLUMES = {"pod": {"volumes": [{"name": "data-x", "emptyDir": {}}]}}
RESERVED = {"name": "KAFKA_CLUSTER_NAME", "value": "x"}
NEW = {"brandNew": 1}
QUIET = {"enableServiceLinks": False, "hostUsers": False, "terminationGracePeriodSeconds": 0}


@pytest.mark.parametrize(
    ("files", "expected", "values"),
    [
        pytest.param(kafka_and_pool({}, {"pod": {}}), {"pod": {}}, [], id="an-empty-property-survives"),
        pytest.param(
            kafka_and_pool({"pod": {"metadata": {"labels": {"a": "b"}}}}, {"pod": {"tolerations": []}}),
            {"pod": {"tolerations": []}}, ["W ShadowedTemplateFields"], id="other-parts-of-one-property",
        ),
        pytest.param(
            kafka_and_pool({"pod": POD}, {"pod": {"tolerations": [{"key": "c"}]}}), {"pod": {"tolerations": [{"key": "c"}]}},
            ["W ShadowedTemplateFields"], id="a-shorter-list",
        ),
        pytest.param(
            {**kafka_and_pool({"pod": {}}, MISSING), "z.yaml": pool({"pod": POD}, "z")}, {"pod": {}}, [], id="two-pools"
        ),
        pytest.param(
            {**kafka_and_pool({"pod": {}}, MISSING), "b.yaml": kafka({"pod": POD}, namespace="bank"),
             "bp.yaml": pool(namespace="bank")},
            {"pod": {}}, [], id="one-name-in-two-namespaces",
        ),
        pytest.param(
            {**kafka_and_pool({}, MISSING), "a.yaml": kafka({}, "orders-a"), "b.yaml": pool(name="a-b"),
             "c.yaml": pool(name="b", cluster="orders-a")},
            MISSING, ["E ComponentNameCollision"] * 2, id="objects-of-one-name",
        ),
        pytest.param(
            {"kafka.yaml": kafka({"perPodService": {}, "initContainer": {}}), "pool.yaml": pool(roles=["controller"]),
             "z.yaml": pool(name="z", roles=["broker"])},
            {"perPodService": {}, "initContainer": {}}, ["I TemplateWithoutEffect"] * 4, id="controllers-alone",
        ),
        pytest.param(
            {"kafka.yaml": kafka({"pod": {}}), "pool.yaml": pool(replicas=0), "z.yaml": pool(name="z")},
            {"pod": {}}, [], id="no-replicas",
        ),
        pytest.param(
            {"kafka.yaml": kafka({"pod": {}}), "pool.yaml": pool(replicas=0)},
            MISSING, ["E NoUsablePool"], id="no-replicas-at-all",
        ),
        pytest.param(
            {"kafka.yaml": kafka({"pod": {}}), "pool.yaml": pool(roles=[]), "z.yaml": pool(name="z")},
            MISSING, ["E PoolWithoutRole"], id="no-roles",
        ),
        pytest.param(
            {**kafka_and_pool({}, MISSING), "z.yaml": pool()}, MISSING, ["E NoUsablePool", *["E DuplicateObject"] * 2],
            id="twice",
        ),
        pytest.param(kafka_and_pool({}, labels("podSet", strimzi_io__foo="x")), MISSING, ["E ReservedLabel"], id="pod-set"),
        pytest.param(kafka_and_pool({}, labels("pod", strimzi_io__foo="x")), MISSING, ["E ReservedLabel"], id="pod"),
        pytest.param(kafka_and_pool({}, NAMED), NAMED, ["W OperatorLabelReplaced"], id="operator-label-on-a-pod-set"),
        pytest.param(
            kafka_and_pool({}, labels("pod", app_kubernetes_io__name="x")), labels("pod", app_kubernetes_io__name="x"),
            ["W IgnoredLabel"], id="operator-label-on-a-pod",
        ),
        pytest.param(
            kafka_and_pool({}, {"perPodRoute": {"metadata": {"annotations": {"strimzi.io/foo": "x"}}}}, **ROUTES),
            {"perPodRoute": {"metadata": {"annotations": {"strimzi.io/foo": "x"}}}}, ["W ReservedAnnotation"],
            id="a-route-passes",
        ),
        pytest.param(kafka_and_pool({}, labels("pod", a=1)), MISSING, ["E InvalidTemplateType"], id="no-string"),
        pytest.param(
            kafka_and_pool({**VOLUMES, **MOUNTS}, {"pod": {}}), {"pod": {}, **MOUNTS}, ["W MountWithoutVolume"],
            id="volumes-replaced-and-mounts-inherited",
        ),
        pytest.param(
            kafka_and_pool({**VOLUMES, **MOUNTS}, {"kafkaContainer": {}}), {**VOLUMES, "kafkaContainer": {}}, [],
            id="mounts-replaced-and-volumes-inherited",
        ),
        pytest.param(
            kafka_and_pool({}, env(RESERVED)), env(RESERVED),
            ["W EnvNameReserved"], id="reserved-name",
        ),
        pytest.param(
            kafka_and_pool({}, env({"name": "A"}, {"name": "A", "value": ""})), env({"name": "A"}, {"name": "A", "value": ""}),
            ["W EnvWithoutValue", "W DuplicateEnvName"], id="twice-and-without-value",
        ),
        pytest.param(kafka_and_pool({}, env({**SECRET, "value": "x"})), MISSING, ["E InvalidEnvSource"], id="both"),
        pytest.param(kafka_and_pool({}, env(SECRET)), env(SECRET), [], id="a-reference-is-copied"),
        pytest.param(
            kafka_and_pool({"pod": {"imagePullSecrets": [{"name": "a"}]}}, {"pod": {"imagePullSecrets": []}}),
            {"pod": {"imagePullSecrets": []}}, ["W ShadowedTemplateFields"], id="no-secrets",
        ),
        pytest.param(kafka_and_pool({"pod": QUIET}, {}), {"pod": QUIET}, [], id="falsy-and-inherited"),
        pytest.param(kafka_and_pool({}, {"pod": QUIET}), {"pod": QUIET}, [], id="falsy-and-own"),
        pytest.param(
            kafka_and_pool({}, {"pod": {"terminationGracePeriodSeconds": -1}}), MISSING, ["E InvalidTemplateType"],
            id="below-zero",
        ),
        pytest.param(
            kafka_and_pool({}, {"pod": {"tmpDirSizeLimit": "lots"}}), MISSING, ["E InvalidTemplateType"], id="no-quantity"
        ),
        pytest.param(kafka_and_pool({"pod": {}}, MISSING), {"pod": {}}, [], id="an-empty-one-is-inherited"),
        pytest.param(kafka_and_pool({"pod": {}}, MISSING, version="v1beta2"), {"pod": {}}, [], id="an-older-kafka"),
        pytest.param(
            {"kafka.yaml": kafka({"pod": {}}), "pool.yaml": pool(version="v1beta2")}, {"pod": {}}, [],
            id="an-older-pool",
        ),
        pytest.param(
            kafka_and_pool({"pod": {}}, {"jmxSecret": {}}), {"pod": {}}, ["W UnknownTemplateProperty"], id="a-property"
        ),
        pytest.param(
            kafka_and_pool({}, {"pod": NEW}), {"pod": NEW}, ["I UnknownTemplateField"], id="a-field"
        ),
        pytest.param({"pool.yaml": pool({"pod": {}})}, {"pod": {}}, ["W OrphanPool"], id="no-kafka-yet"),
        pytest.param(
            {"pool.yaml": pool({"pod": {}}, cluster=MISSING)}, {"pod": {}}, ["W PoolWithoutCluster"], id="no-label"
        ),
        pytest.param(kafka_and_pool({}, {}), MISSING, [], id="no-template"),
        pytest.param(
            {
                "kafka.yaml": kafka({"pod": {}}),
                "pool.yaml": pool({"pod": POD}, annotations={MATERIALISED_ANNOTATION: "true"}),
            },
            MISSING, ["E MaterialisedInput"], id="merged-output-as-input",
        ),
    ],
)  # fmt: skip
def test_edge_case(files: dict[str, str], expected: Any, values: list[str]) -> None:
    package = merge(files)

    assert format_codes(package.findings) == values
    if any(item.startswith("E") for item in values):
        assert {path: package.files[path].data.decode() for path in package.files} == files
    else:
        assert template_of(package) == expected


def test_listener_label_wins_on_routes_and_loses_on_services() -> None:
    mine = [{"broker": 0, "labels": {"team": "listener"}}]
    listener = {"name": "route", "port": 9099, "type": "route", "configuration": {"brokers": mine}}
    inherited = {**labels("perPodService", team="template"), **labels("perPodRoute", team="template")}

    package = merge(kafka_and_pool(inherited, MISSING, listeners=[listener]))

    (effect,) = package.effects
    teams = {
        operator_objects.kind: operator_objects.labels["team"]
        for operator_objects in effect.description.objects
        if any("-0" in n for n in operator_objects.names)
    }
    assert teams == {"Service": "template", "Route": "listener"}
