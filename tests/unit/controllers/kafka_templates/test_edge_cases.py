"""The edge cases that the specification wants tested, by their numbers there (strimzi 14); 14.1 is in test_merge.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.controllers.kafka_templates.model import MATERIALISED_ANNOTATION
from tests.unit.controllers.kafka_templates.template_world import MISSING, codes, kafka, merge, pool, template_of

POD = {"priorityClassName": "high", "tolerations": [{"key": "a"}, {"key": "b"}]}
ROUTES = {"listeners": [{"name": "route", "port": 9094, "type": "route"}]}


def env(*variables: Mapping[str, Any]) -> dict[str, Any]:
    return {"kafkaContainer": {"env": list(variables)}}


def labels(of: str, **mapping: Any) -> dict[str, Any]:
    return {of: {"metadata": {"labels": {name.replace("__", "/").replace("_", "."): v for name, v in mapping.items()}}}}


def alone(parent: Any, child: Any, **spec: Any) -> dict[str, str]:
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
        pytest.param(alone({}, {"pod": {}}), {"pod": {}}, [], id="14.2-an-empty-property-survives"),
        pytest.param(
            alone({"pod": {"metadata": {"labels": {"a": "b"}}}}, {"pod": {"tolerations": []}}),
            {"pod": {"tolerations": []}}, ["W ShadowedTemplateFields"], id="14.3-other-parts-of-one-property",
        ),
        pytest.param(
            alone({"pod": POD}, {"pod": {"tolerations": [{"key": "c"}]}}), {"pod": {"tolerations": [{"key": "c"}]}},
            ["W ShadowedTemplateFields"], id="14.4-a-shorter-list",
        ),
        pytest.param(
            {**alone({"pod": {}}, MISSING), "z.yaml": pool({"pod": POD}, "z")}, {"pod": {}}, [], id="14.5-two-pools"
        ),
        pytest.param(
            {**alone({"pod": {}}, MISSING), "b.yaml": kafka({"pod": POD}, namespace="bank"),
             "bp.yaml": pool(namespace="bank")},
            {"pod": {}}, [], id="14.6-one-name-in-two-namespaces",
        ),
        pytest.param(
            {**alone({}, MISSING), "a.yaml": kafka({}, "orders-a"), "b.yaml": pool(name="a-b"),
             "c.yaml": pool(name="b", of="orders-a")},
            MISSING, ["E ComponentNameCollision"] * 2, id="14.6-objects-of-one-name",
        ),
        pytest.param(
            {"kafka.yaml": kafka({"perPodService": {}, "initContainer": {}}), "pool.yaml": pool(roles=["controller"]),
             "z.yaml": pool(name="z", roles=["broker"])},
            {"perPodService": {}, "initContainer": {}}, ["I TemplateWithoutEffect"] * 4, id="14.7-controllers-alone",
        ),
        pytest.param(
            {"kafka.yaml": kafka({"pod": {}}), "pool.yaml": pool(replicas=0), "z.yaml": pool(name="z")},
            {"pod": {}}, [], id="14.8-no-replicas",
        ),
        pytest.param(
            {"kafka.yaml": kafka({"pod": {}}), "pool.yaml": pool(replicas=0)},
            MISSING, ["E NoUsablePool"], id="14.8-no-replicas-at-all",
        ),
        pytest.param(
            {"kafka.yaml": kafka({"pod": {}}), "pool.yaml": pool(roles=[]), "z.yaml": pool(name="z")},
            MISSING, ["E PoolWithoutRole"], id="14.8-no-roles",
        ),
        pytest.param(
            {**alone({}, MISSING), "z.yaml": pool()}, MISSING, ["E NoUsablePool", *["E DuplicateObject"] * 2],
            id="14.8-twice",
        ),
        pytest.param(alone({}, labels("podSet", strimzi_io__foo="x")), MISSING, ["E ReservedLabel"], id="14.9-pod-set"),
        pytest.param(alone({}, labels("pod", strimzi_io__foo="x")), MISSING, ["E ReservedLabel"], id="14.9-pod"),
        pytest.param(alone({}, NAMED), NAMED, ["W OperatorLabelReplaced"], id="14.9-the-operators-on-a-pod-set"),
        pytest.param(
            alone({}, labels("pod", app_kubernetes_io__name="x")), labels("pod", app_kubernetes_io__name="x"),
            ["W IgnoredLabel"], id="14.9-the-operators-on-a-pod",
        ),
        pytest.param(
            alone({}, {"perPodRoute": {"metadata": {"annotations": {"strimzi.io/foo": "x"}}}}, **ROUTES),
            {"perPodRoute": {"metadata": {"annotations": {"strimzi.io/foo": "x"}}}}, ["W ReservedAnnotation"],
            id="14.9-a-route-passes",
        ),
        pytest.param(alone({}, labels("pod", a=1)), MISSING, ["E InvalidTemplateType"], id="14.9-no-string"),
        pytest.param(
            alone({**VOLUMES, **MOUNTS}, {"pod": {}}), {"pod": {}, **MOUNTS}, ["W MountWithoutVolume"],
            id="14.11-volumes-go-and-mounts-stay",
        ),
        pytest.param(
            alone({**VOLUMES, **MOUNTS}, {"kafkaContainer": {}}), {**VOLUMES, "kafkaContainer": {}}, [],
            id="14.11-mounts-go-and-volumes-stay",
        ),
        pytest.param(
            alone({}, env(RESERVED)), env(RESERVED),
            ["W EnvNameReserved"], id="14.12-a-name-of-the-operators",
        ),
        pytest.param(
            alone({}, env({"name": "A"}, {"name": "A", "value": ""})), env({"name": "A"}, {"name": "A", "value": ""}),
            ["W EnvWithoutValue", "W DuplicateEnvName"], id="14.12-twice-and-without-value",
        ),
        pytest.param(alone({}, env({**SECRET, "value": "x"})), MISSING, ["E InvalidEnvSource"], id="14.12-both"),
        pytest.param(alone({}, env(SECRET)), env(SECRET), [], id="14.12-a-reference-is-copied"),
        pytest.param(
            alone({"pod": {"imagePullSecrets": [{"name": "a"}]}}, {"pod": {"imagePullSecrets": []}}),
            {"pod": {"imagePullSecrets": []}}, ["W ShadowedTemplateFields"], id="14.13-no-secrets",
        ),
        pytest.param(alone({"pod": QUIET}, {}), {"pod": QUIET}, [], id="14.14-falsy-and-inherited"),
        pytest.param(alone({}, {"pod": QUIET}), {"pod": QUIET}, [], id="14.14-falsy-and-own"),
        pytest.param(
            alone({}, {"pod": {"terminationGracePeriodSeconds": -1}}), MISSING, ["E InvalidTemplateType"],
            id="14.14-below-zero",
        ),
        pytest.param(
            alone({}, {"pod": {"tmpDirSizeLimit": "lots"}}), MISSING, ["E InvalidTemplateType"], id="14.14-no-quantity"
        ),
        pytest.param(alone({"pod": {}}, MISSING), {"pod": {}}, [], id="14.15-an-empty-one-is-inherited"),
        pytest.param(alone({"pod": {}}, MISSING, version="v1beta2"), {"pod": {}}, [], id="14.16-an-older-kafka"),
        pytest.param(
            {"kafka.yaml": kafka({"pod": {}}), "pool.yaml": pool(version="v1beta2")}, {"pod": {}}, [],
            id="14.16-an-older-pool",
        ),
        pytest.param(
            alone({"pod": {}}, {"jmxSecret": {}}), {"pod": {}}, ["W UnknownTemplateProperty"], id="14.17-a-property"
        ),
        pytest.param(
            alone({}, {"pod": NEW}), {"pod": NEW}, ["I UnknownTemplateField"], id="14.17-a-field"
        ),
        pytest.param({"pool.yaml": pool({"pod": {}})}, {"pod": {}}, ["W OrphanPool"], id="14.18-no-kafka-yet"),
        pytest.param(
            {"pool.yaml": pool({"pod": {}}, of=MISSING)}, {"pod": {}}, ["W PoolWithoutCluster"], id="14.18-no-label"
        ),
        pytest.param(alone({}, {}), MISSING, [], id="14.19-nothing-is-left"),
        pytest.param(
            {
                "kafka.yaml": kafka({"pod": {}}),
                "pool.yaml": pool({"pod": POD}, annotations={MATERIALISED_ANNOTATION: "true"}),
            },
            MISSING, ["E MaterialisedInput"], id="14.20-fed-back",
        ),
    ],
)  # fmt: skip
def test_an_edge_case(files: dict[str, str], expected: Any, values: list[str]) -> None:
    package = merge(files)

    assert codes(package.findings) == values
    if any(item.startswith("E") for item in values):
        assert {path: package.files[path].data.decode() for path in package.files} == files
    else:
        assert template_of(package) == expected


def test_14_10_a_label_of_a_listener_wins_on_routes_and_loses_on_services() -> None:
    mine = [{"broker": 0, "labels": {"team": "listener"}}]
    listener = {"name": "route", "port": 9099, "type": "route", "configuration": {"brokers": mine}}
    inherited = {**labels("perPodService", team="template"), **labels("perPodRoute", team="template")}

    package = merge(alone(inherited, MISSING, listeners=[listener]))

    (effect,) = package.effects
    teams = {
        operator_objects.kind: operator_objects.labels["team"]
        for operator_objects in effect.description.objects
        if any("-0" in n for n in operator_objects.names)
    }
    assert teams == {"Service": "template", "Route": "listener"}
