"""Tests of the Strimzi operator model: templates that it refuses, drops or ignores, and the objects that it creates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.controllers.kafka_templates.codes import STRICT
from reconciler.controllers.kafka_templates.model import StrimziOperator, TemplateOptions
from tests.unit.controllers.kafka_templates.template_builders import (
    MISSING,
    SHARED,
    format_codes,
    kafka,
    merge,
    pair,
    pool,
    tree,
)

NODEPORT = {"name": "outside", "port": 9099, "type": "nodeport"}
EVERYTHING = [NODEPORT, {"name": "r", "port": 9100, "type": "route"}, {"name": "i", "port": 9101, "type": "ingress"}]
CLAIMS = {"type": "jbod", "volumes": [{"id": 0, "type": "persistent-claim"}, {"id": 1, "type": "persistent-claim"}]}


def merge_with_all_listeners(template: Any, operator: StrimziOperator | None = None, **spec: Any) -> Any:
    """Merge a pool with its own template. Its Kafka has all listeners, so that each property has an effect."""
    files = {
        "kafka.yaml": kafka(listeners=EVERYTHING, rack={"topologyKey": "zone"}),
        "pool.yaml": pool(template, storage=CLAIMS, **spec),
    }
    return merge(files, options=TemplateOptions(operator=operator or StrimziOperator()))


def labels(name: str, **mapping: Any) -> dict[str, Any]:
    return {name: {"metadata": {"labels": mapping.get("labels", {}), "annotations": mapping.get("annotations", {})}}}


OWN = "strimzi.io/foo"
CLUSTER = "strimzi.io/cluster-x"
BASE = "app.kubernetes.io/name"
REFUSED_LABEL, REFUSED_ANNOTATION = ["E ReservedLabel"], ["E ReservedAnnotation"]
MILD_LABEL, MILD_ANNOTATION = ["W ReservedLabel"], ["W ReservedAnnotation"]


@pytest.mark.parametrize(
    ("name", "own", "cluster", "base", "annotation", "app"),
    [
        ("podSet", REFUSED_LABEL, MILD_LABEL, ["W OperatorLabelReplaced"], REFUSED_ANNOTATION, ["W IgnoredLabel"]),
        ("pod", REFUSED_LABEL, REFUSED_LABEL, ["W IgnoredLabel"], REFUSED_ANNOTATION, ["W IgnoredLabel"]),
        ("perPodService", REFUSED_LABEL, REFUSED_LABEL, ["W IgnoredLabel"], REFUSED_ANNOTATION, ["W IgnoredLabel"]),
        ("perPodRoute", REFUSED_LABEL, MILD_LABEL, ["W OperatorLabelReplaced"], MILD_ANNOTATION, []),
        (
            "perPodIngress",
            REFUSED_LABEL,
            MILD_LABEL,
            ["W OperatorLabelReplaced"],
            REFUSED_ANNOTATION,
            ["W IgnoredLabel"],
        ),
        (
            "persistentVolumeClaim",
            REFUSED_LABEL,
            MILD_LABEL,
            ["W OperatorLabelReplaced"],
            REFUSED_ANNOTATION,
            ["W IgnoredLabel"],
        ),
    ],
)
def test_reserved_labels_and_annotations(
    name: str, own: Any, cluster: Any, base: Any, annotation: Any, app: Any
) -> None:
    values = [
        format_codes(merge_with_all_listeners(labels(name, labels={OWN: "x"})).findings),
        format_codes(merge_with_all_listeners(labels(name, labels={CLUSTER: "x"})).findings),
        format_codes(merge_with_all_listeners(labels(name, labels={BASE: "x"})).findings),
        format_codes(merge_with_all_listeners(labels(name, annotations={OWN: "x"})).findings),
        format_codes(merge_with_all_listeners(labels(name, annotations={BASE: "x"})).findings),
    ]

    assert values == [own, cluster, base, annotation, app]
    assert format_codes(merge_with_all_listeners(labels(name, labels={"my.strimzi.io": "x"})).findings) == MILD_LABEL
    assert (
        format_codes(merge_with_all_listeners(labels(name, labels={"app.kubernetes.io.example/x": "y"})).findings) == []
    )


def pod(**fields: Any) -> dict[str, Any]:
    return {"pod": fields}


def container(**fields: Any) -> dict[str, Any]:
    return {"kafkaContainer": fields}


def env(*entries: Any) -> dict[str, Any]:
    return container(env=[*entries])


def mounted(*paths: str) -> dict[str, Any]:
    mounts = [{"name": "extra", "mountPath": path} for path in paths]
    return {**pod(volumes=[{"name": "extra", "emptyDir": {}}]), **container(volumeMounts=mounts)}


SECRET_REF = {"secretKeyRef": {"name": "s", "key": "k"}}
CONFIG_REF = {"configMapKeyRef": {"name": "c", "key": "k"}}
NOTHING: list[str] = []
TYPE = ["E InvalidTemplateType"]


@pytest.mark.parametrize(
    ("template", "values"),
    [
        pytest.param(pod(terminationGracePeriodSeconds=0), NOTHING, id="grace-zero"),
        pytest.param(pod(terminationGracePeriodSeconds=-1), TYPE, id="grace-negative"),
        pytest.param(pod(terminationGracePeriodSeconds="30"), TYPE, id="grace-text"),
        pytest.param(pod(terminationGracePeriodSeconds=True), TYPE, id="grace-true"),
        pytest.param(pod(tmpDirSizeLimit="5Mi"), NOTHING, id="size"),
        pytest.param(pod(tmpDirSizeLimit="lots"), TYPE, id="size-words"),
        pytest.param(pod(tmpDirSizeLimit=5), TYPE, id="size-number"),
        pytest.param(pod(enableServiceLinks=False, hostUsers=False), NOTHING, id="false"),
        pytest.param(pod(enableServiceLinks="false"), TYPE, id="false-as-text"),
        pytest.param(pod(hostUsers=0), TYPE, id="zero-is-not-false"),
        pytest.param(pod(dnsPolicy="None"), NOTHING, id="dns"),
        pytest.param(pod(dnsPolicy="none"), TYPE, id="dns-other"),
        pytest.param(pod(tolerations={}), TYPE, id="no-list"),
        pytest.param(pod(tolerations=["x"]), TYPE, id="no-list-of-mappings"),
        pytest.param(pod(imagePullSecrets=[]), NOTHING, id="empty-list"),
        pytest.param(pod(affinity=None, metadata=None), NOTHING, id="nulls-are-no-values"),
        pytest.param(pod(metadata=[]), TYPE, id="metadata-no-mapping"),
        pytest.param(pod(metadata={"labels": ["x"]}), TYPE, id="labels-no-mapping"),
        pytest.param(pod(metadata={"labels": {"a": 1}}), TYPE, id="label-number"),
        pytest.param(pod(metadata={"annotations": {"a": True}}), TYPE, id="annotation-true"),
        pytest.param(pod(metadata={"labels": {"a": None}}), TYPE, id="label-null"),
        pytest.param(pod(metadata={"labels": {"a": "true"}}), NOTHING, id="label-text"),
        pytest.param(pod(shareProcessNamespace=True), ["I UnknownTemplateField"], id="unknown-field"),
        pytest.param({"podSet": {"spec": {}}}, ["I UnknownTemplateField"], id="unknown-field-of-metadata"),
        pytest.param(container(resources={}), ["I UnknownTemplateField"], id="unknown-field-of-container"),
        pytest.param(container(env={}), TYPE, id="env-no-list"),
        pytest.param(container(securityContext="x"), TYPE, id="security-context"),
        pytest.param(env({"name": "A", "value": "1"}), NOTHING, id="env"),
        pytest.param(env({"name": "A", "value": ""}), NOTHING, id="env-empty-text"),
        pytest.param(env({"name": "A", "value": 1}), TYPE, id="env-number"),
        pytest.param(env({"value": "1"}), TYPE, id="env-without-a-name"),
        pytest.param(env({"name": "A"}), ["W EnvWithoutValue"], id="env-without-value"),
        pytest.param(env({"name": "A", "valueFrom": {}}), ["W EnvWithoutValue"], id="env-without-reference"),
        pytest.param(env({"name": "A", "valueFrom": SECRET_REF}), NOTHING, id="env-from-a-secret"),
        pytest.param(
            env({"name": "A", "value": "1", "valueFrom": CONFIG_REF}), ["E InvalidEnvSource"], id="env-two-values"
        ),
        pytest.param(
            env({"name": "A", "valueFrom": {**SECRET_REF, **CONFIG_REF}}),
            ["E InvalidEnvSource"],
            id="env-two-references",
        ),
        pytest.param(env(*[{"name": "A", "value": "1"}] * 2), ["W DuplicateEnvName"], id="env-twice"),
        pytest.param(env({"name": "KAFKA_CLUSTER_NAME", "value": "x"}), ["W EnvNameReserved"], id="env-reserved"),
        pytest.param(env({"name": "NO_PROXY", "value": "x"}), ["W EnvNameReserved"], id="env-reserved-for-proxies"),
        pytest.param(env({"name": "NODE_NAME", "value": "x"}), NOTHING, id="env-of-the-other-container"),
        pytest.param(env({"name": "DB_PASSWORD", "value": "x"}), ["W LiteralSecretSuspected"], id="env-password"),
        pytest.param(env({"name": "apiToken", "value": "x"}), ["W LiteralSecretSuspected"], id="env-token"),
        pytest.param(env({"name": "LICENSE_KEY", "value": "x"}), ["W LiteralSecretSuspected"], id="env-key"),
        pytest.param(env({"name": "KEYSTORE_PATH", "value": "x"}), NOTHING, id="env-no-secret"),
        pytest.param(env({"name": "DB_PASSWORD", "value": ""}), NOTHING, id="env-password-empty"),
        pytest.param(env({"name": "DB_PASSWORD", "valueFrom": SECRET_REF}), NOTHING, id="env-password-from-a-secret"),
        pytest.param(
            {"initContainer": {"env": [{"name": "NODE_NAME", "value": "x"}]}}, ["W EnvNameReserved"], id="init-node"
        ),
        pytest.param(
            {
                "initContainer": {
                    "env": [{"name": name, "value": "x"} for name in ("RACK_TOPOLOGY_KEY", "EXTERNAL_ADDRESS")]
                }
            },
            ["W EnvNameReserved"] * 2,
            id="init-rack-and-address",
        ),
        pytest.param(pod(volumes=[{"name": "a1", "emptyDir": {}}]), NOTHING, id="volume"),
        pytest.param(pod(volumes=[{"name": "a", "emptyDir": {}}]), ["E InvalidVolumeName"], id="volume-name-short"),
        pytest.param(pod(volumes=[{"name": "-ab", "emptyDir": {}}]), ["E InvalidVolumeName"], id="volume-name-start"),
        pytest.param(pod(volumes=[{"name": "a" * 64, "emptyDir": {}}]), ["E InvalidVolumeName"], id="volume-name-long"),
        pytest.param(pod(volumes=[{"name": "a" * 63, "emptyDir": {}}]), NOTHING, id="volume-name-longest"),
        pytest.param(pod(volumes=[{"emptyDir": {}}]), ["E InvalidVolumeName"], id="volume-without-a-name"),
        pytest.param(pod(volumes=[{"name": "aa"}]), ["E InvalidVolumeSource"], id="volume-without-source"),
        pytest.param(
            pod(volumes=[{"name": "aa", "emptyDir": {}, "csi": {}}]),
            ["E InvalidVolumeSource"],
            id="volume-of-two-sources",
        ),
        pytest.param(
            pod(templatedVolumes=[{"name": "aa", "emptyDir": {}}]), ["E InvalidVolumeSource"], id="templated-source"
        ),
        pytest.param(
            pod(templatedVolumes=[{"name": "aa", "secret": {"secretName": "{nodeId}"}}]), NOTHING, id="templated"
        ),
        pytest.param(
            pod(volumes=[{"name": "aa", "emptyDir": {}}], templatedVolumes=[{"name": "aa", "secret": {}}]),
            ["E DuplicateVolumeName"],
            id="volume-twice",
        ),
        *(
            pytest.param(pod(volumes=[{"name": name, "emptyDir": {}}]), ["E DuplicateVolumeName"], id=f"volume-{name}")
            for name in ("data-0", "strimzi-tmp", "kube-api-access", "ready-files", "rack-volume")
        ),
        pytest.param(mounted("/mnt/a"), NOTHING, id="mount"),
        pytest.param(mounted("/mnt/a", "/mnt/b"), NOTHING, id="mounts"),
        pytest.param(mounted("/mnt/a", "/mnt/a"), ["E DuplicateMountPath"], id="mount-path-twice"),
        pytest.param(mounted("/opt/a"), ["E ForbiddenMountPath"], id="mount-outside-mnt"),
        pytest.param(mounted("/mntx"), ["W ForbiddenMountPath"], id="mount-almost-below"),
        pytest.param(
            container(volumeMounts=[{"name": "no", "mountPath": "/mnt/a"}]),
            ["W MountWithoutVolume"],
            id="mount-of-unknown-volume",
        ),
        pytest.param(container(volumeMounts=[{"name": "data-1", "mountPath": "/mnt/a"}]), NOTHING, id="mount-of-data"),
        pytest.param(pod(volumes=[{"name": "unused", "emptyDir": {}}]), NOTHING, id="volume-without-mount"),
    ],
)
def test_template_values_are_validated(template: Any, values: list[str]) -> None:
    result = merge_with_all_listeners(template)

    assert format_codes(result.findings) == values


@pytest.mark.parametrize(
    ("template", "values"),
    [
        pytest.param(labels("perPodRoute", annotations={OWN: "x"}), REFUSED_ANNOTATION, id="annotation"),
        pytest.param(labels("podSet", labels={CLUSTER: "x"}), REFUSED_LABEL, id="label"),
        pytest.param(labels("podSet", labels={BASE: "x"}), ["E OperatorLabelReplaced"], id="operators-label"),
        pytest.param(mounted("/mntx"), ["E ForbiddenMountPath"], id="mount"),
        pytest.param({"podDisruptionBudget": {}}, ["E UnknownTemplateProperty"], id="property"),
        pytest.param(labels("pod", labels={BASE: "x"}), ["W IgnoredLabel"], id="ignored-label-stays-a-warning"),
    ],
)
def test_strict_mode_turns_warnings_into_errors(template: Any, values: list[str]) -> None:
    files = {
        "kafka.yaml": kafka({"podSet": {}}, listeners=EVERYTHING),
        "pool.yaml": pool(template),
    }

    package = merge(files, options=TemplateOptions(strict=STRICT))

    assert format_codes(package.findings) == values
    assert (package.files == tree(files)) is values[0].startswith("E")


def test_finding_names_file_and_field() -> None:
    (finding,) = merge_with_all_listeners(pod(tmpDirSizeLimit="lots")).findings

    assert finding.message == 'spec.template.pod.tmpDirSizeLimit must be a quantity such as 5Mi, but is "lots"'
    assert (finding.location.file, finding.location.pointer) == ("pool.yaml", "/spec/template/pod/tmpDirSizeLimit")
    assert finding.location.line > 0


def test_finding_about_an_inherited_value_names_the_kafka() -> None:
    (finding,) = pair(pod(tmpDirSizeLimit="lots"), {}).findings

    start = "spec.kafka.template.pod.tmpDirSizeLimit (inherited from Kafka shop/orders) must be"
    assert finding.message.startswith(start)
    assert (finding.location.object, finding.location.pointer) == ("KafkaNodePool/shop/brokers", "/spec/template")


def test_invalid_value_that_all_pools_hide_is_not_reported() -> None:
    assert pair(pod(tmpDirSizeLimit="lots"), {"pod": {}}).findings == ()


def test_mount_of_a_volume_that_the_pool_replaces() -> None:
    parent = mounted("/mnt/a")

    package = pair(parent, {"pod": {"volumes": [{"name": "other", "emptyDir": {}}]}})
    reverse = pair(parent, {"kafkaContainer": {}})

    assert format_codes(package.findings) == ["W ShadowedTemplateFields", "W MountWithoutVolume"]
    assert reverse.findings == ()


@pytest.mark.parametrize(("is_restricted", "values"), [(True, ["W SecurityContextReplaced"]), (False, [])])
def test_restricted_profile_replaces_security_context(is_restricted: bool, values: list[str]) -> None:
    result = merge_with_all_listeners(
        container(securityContext={"runAsUser": 1}), StrimziOperator(is_restricted=is_restricted)
    )

    assert format_codes(result.findings) == values


@pytest.mark.parametrize(
    ("key", "values"),
    [("strimzi.io/mine", ["E ReservedLabel"]), ("strimzi.io/cluster-x", []), ("app.kubernetes.io/name", []), ("x", [])],
)
def test_reserved_labels_of_the_pool(key: str, values: list[str]) -> None:
    package = pair({}, {}, labels={key: "x"})

    assert format_codes(package.findings) == values


@pytest.mark.parametrize(
    ("kafka_spec", "spec", "idle"),
    [
        pytest.param(
            {},
            {},
            {"perPodService", "perPodRoute", "perPodIngress", "persistentVolumeClaim", "initContainer"},
            id="plain",
        ),
        pytest.param({"listeners": EVERYTHING}, {"storage": CLAIMS}, set(), id="everything"),
        pytest.param(
            {"listeners": EVERYTHING},
            {"storage": CLAIMS, "roles": ["controller"]},
            {"perPodService", "perPodRoute", "perPodIngress", "initContainer"},
            id="a-controller",
        ),
        pytest.param(
            {"listeners": [{"type": "internal"}]},
            {"storage": CLAIMS},
            {"perPodService", "perPodRoute", "perPodIngress", "initContainer"},
            id="internal-listeners",
        ),
        pytest.param(
            {"listeners": [{"type": "tlsroute"}]},
            {"storage": CLAIMS},
            {"perPodIngress", "initContainer"},
            id="tlsroute",
        ),
        pytest.param(
            {"listeners": [{"type": "loadbalancer"}], "rack": {"topologyKey": "z"}},
            {"storage": CLAIMS},
            {"perPodRoute", "perPodIngress"},
            id="a-rack",
        ),
        pytest.param(
            {"listeners": [NODEPORT], "rack": {"type": "envvar"}},
            {},
            {"perPodRoute", "perPodIngress", "persistentVolumeClaim"},
            id="another-rack",
        ),
        pytest.param(
            {"rack": {"type": "envvar", "topologyKey": "z"}},
            {"storage": {"type": "persistent-claim"}},
            {"perPodService", "perPodRoute", "perPodIngress", "initContainer"},
            id="a-rack-from-elsewhere",
        ),
    ],
)
def test_properties_without_effect(kafka_spec: Any, spec: Any, idle: set[str]) -> None:
    files = {
        "k.yaml": kafka(**kafka_spec),
        "p.yaml": pool({name: {} for name in SHARED}, **spec),
        "c.yaml": pool(name="both"),
    }

    findings = merge(files).findings

    assert {
        finding.location.pointer.rpartition("/")[2] for finding in findings if finding.code == "TemplateWithoutEffect"
    } == idle


def objects_of(value: Any) -> dict[str, Mapping[str, Any]]:
    (effect,) = value.effects
    return {f"{item['kind']} {' '.join(item['names'])}": item for item in effect.as_data()["objects"]}


def select_user_fields(data: Mapping[str, Any], field: str = "labels") -> dict[str, Any]:
    """Return the labels or annotations that the operator does not add."""
    return {
        key: value
        for key, value in data.get(field, {}).items()
        if "strimzi.io" not in key and "kubernetes.io" not in key
    }


def test_object_names() -> None:
    result = objects_of(merge_with_all_listeners({}))

    assert [*result] == [
        "StrimziPodSet orders-brokers",
        "Pod orders-brokers-{nodeId}",
        "PersistentVolumeClaim data-0-orders-brokers-{nodeId} data-1-orders-brokers-{nodeId}",
        "Service orders-brokers-outside-{nodeId}",
        "Service orders-brokers-r-{nodeId}",
        "Route orders-brokers-r-{nodeId}",
        "Service orders-brokers-i-{nodeId}",
        "Ingress orders-brokers-i-{nodeId}",
    ]


def test_object_names_with_known_node_ids() -> None:
    listeners = [{"name": "external", "port": 9094, "type": "tlsroute"}]
    files = {
        "k.yaml": kafka(listeners=listeners),
        "p.yaml": pool(status={"nodeIds": [5, 3]}, storage={"type": "persistent-claim"}),
    }

    assert [*objects_of(merge(files))] == [
        "StrimziPodSet orders-brokers",
        "Pod orders-brokers-3 orders-brokers-5",
        "PersistentVolumeClaim data-orders-brokers-3 data-orders-brokers-5",
        "Service orders-brokers-3 orders-brokers-5",
        "TLSRoute orders-brokers-3 orders-brokers-5",
    ]


def test_labels_that_the_operator_adds() -> None:
    own = {
        "team": "a",
        "app.kubernetes.io/name": "x",
        "app.kubernetes.io/part-of": "y",
        "kustomize.toolkit.fluxcd.io/n": "z",
    }

    result = objects_of(pair({}, {}, labels=own))

    assert result["StrimziPodSet orders-brokers"]["labels"] == {
        "strimzi.io/cluster": "orders",
        "team": "a",
        "app.kubernetes.io/part-of": "strimzi-orders",
        "strimzi.io/kind": "Kafka",
        "strimzi.io/name": "orders-kafka",
        "strimzi.io/component-type": "kafka",
        "strimzi.io/pool-name": "brokers",
        "app.kubernetes.io/name": "kafka",
        "app.kubernetes.io/instance": "orders",
        "app.kubernetes.io/managed-by": "strimzi-cluster-operator",
    }


def test_template_labels_on_created_objects() -> None:
    mapping = {"a": "b", "app.kubernetes.io/name": "mine"}
    names = ("podSet", "pod", "perPodService", "perPodRoute", "perPodIngress", "persistentVolumeClaim")

    result = objects_of(merge_with_all_listeners({name: {"metadata": {"labels": mapping}} for name in names}))

    assert {name.split()[0]: item["labels"]["app.kubernetes.io/name"] for name, item in result.items()} == {
        "StrimziPodSet": "mine",
        "Pod": "kafka",
        "PersistentVolumeClaim": "mine",
        "Service": "kafka",
        "Route": "mine",
        "Ingress": "mine",
    }
    assert {item["labels"]["a"] for item in result.values()} == {"b"}


def test_broker_labels_of_listeners_replace_template_labels() -> None:
    broker = {"broker": 0, "labels": {"from": "listener"}, "annotations": {"from": "listener"}}
    listeners = [
        {"name": name, "type": name, "port": 1, "configuration": {"brokers": [broker]}} for name in ("route", "ingress")
    ]
    mapping = {"metadata": {"labels": {"from": "template"}, "annotations": {"from": "template"}}}
    template = {"perPodService": mapping, "perPodRoute": mapping, "perPodIngress": mapping}
    files = {"k.yaml": kafka(listeners=listeners), "p.yaml": pool(template, status={"nodeIds": [0, 1]})}

    result = objects_of(merge(files))

    fields = {
        name: (item["labels"]["from"], item["annotations"]["from"])
        for name, item in result.items()
        if "from" in item["labels"]
    }
    assert fields == {
        "Service orders-brokers-route-1": ("template", "template"),
        "Service orders-brokers-route-0": ("template", "template"),
        "Route orders-brokers-route-1": ("template", "template"),
        "Route orders-brokers-route-0": ("listener", "listener"),
        "Service orders-brokers-ingress-1": ("template", "template"),
        "Service orders-brokers-ingress-0": ("template", "template"),
        "Ingress orders-brokers-ingress-1": ("template", "template"),
        "Ingress orders-brokers-ingress-0": ("listener", "listener"),
    }
    assert "nginx.ingress.kubernetes.io/ssl-passthrough" in result["Ingress orders-brokers-ingress-1"]["annotations"]


def test_listener_brokers_without_known_node_ids() -> None:
    listener = {**NODEPORT, "configuration": {"brokers": [{"broker": 2, "annotations": {"a": "b"}}]}}

    result = objects_of(merge({"k.yaml": kafka(listeners=[listener]), "p.yaml": pool()}))

    assert [name for name in result if name.startswith("Service")] == [
        "Service orders-brokers-outside-{nodeId}",
        "Service orders-brokers-outside-2",
    ]


DEFAULTS = {"terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler", "tmpDirSizeLimit": "5Mi"}


def pod_of(value: Any) -> Mapping[str, Any]:
    return next(item for name, item in objects_of(value).items() if name.startswith("Pod "))


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param({}, DEFAULTS, id="nothing"),
        pytest.param({"pod": {}}, DEFAULTS, id="a-reset"),
        pytest.param(pod(terminationGracePeriodSeconds=0), {**DEFAULTS, "terminationGracePeriodSeconds": 0}, id="zero"),
        pytest.param(pod(hostUsers=False, tolerations=None), {**DEFAULTS, "hostUsers": False}, id="false"),
        pytest.param(pod(imagePullSecrets=[]), {**DEFAULTS, "imagePullSecrets": []}, id="an-empty-list-suppresses"),
        pytest.param(
            env({"name": "A", "value": ""}, {"name": "B"}, {"name": "KAFKA_CLUSTER_NAME", "value": "x"}),
            {**DEFAULTS, "kafkaContainer": {"env": [{"name": "A", "value": ""}]}},
            id="variables-in-effect",
        ),
        pytest.param(
            env({"name": "A_TOKEN", "value": "hush"}, {"name": "B_TOKEN", "valueFrom": SECRET_REF}),
            {
                **DEFAULTS,
                "kafkaContainer": {
                    "env": [{"name": "A_TOKEN", "value": "*****"}, {"name": "B_TOKEN", "valueFrom": SECRET_REF}]
                },
            },
            id="secrets-are-masked",
        ),
        pytest.param({"initContainer": {"securityContext": {"runAsUser": 1}}}, DEFAULTS, id="no-init-container"),
    ],
)
def test_pod_fields(template: Any, expected: Any) -> None:
    assert pod_of(pair(template, {}))["fields"] == expected


def test_pod_with_inherited_and_own_properties() -> None:
    parent = {
        "pod": {
            "metadata": {"labels": {"tier": "streaming"}, "annotations": {"team.example.com/owner": "data-platform"}},
            "priorityClassName": "platform-high",
        },
        "kafkaContainer": {"securityContext": {"runAsUser": 4100}, "env": [{"name": "TZ", "value": "UTC"}]},
        "persistentVolumeClaim": {"metadata": {"labels": {"backup": "nightly"}}},
    }

    package = pair(parent, env({"name": "HEAP_DUMP", "value": "on"}), storage={"type": "persistent-claim"})

    result = pod_of(package)
    assert select_user_fields(result) == {"tier": "streaming"}
    assert result["annotations"] == {"team.example.com/owner": "data-platform"}
    assert result["fields"] == {
        **DEFAULTS,
        "priorityClassName": "platform-high",
        "kafkaContainer": {"env": [{"name": "HEAP_DUMP", "value": "on"}]},
    }
    assert select_user_fields(objects_of(package)["PersistentVolumeClaim data-orders-brokers-{nodeId}"]) == {
        "backup": "nightly"
    }


def test_pod_labels_of_template_and_operator() -> None:
    files = {"k.yaml": kafka({"pod": {"metadata": {"labels": {"a": "template"}}}}), "p.yaml": pool()}
    operator = StrimziOperator(pod_labels={"a": "operator", "b": "operator"})

    value = pod_of(merge(files, options=TemplateOptions(operator=operator)))["labels"]

    assert (value["a"], value["b"]) == ("template", "operator")
    roles = {
        name: value[f"strimzi.io/{name}"]
        for name in ("controller", "controller-name", "broker-role", "controller-role")
    }
    assert roles == {
        "controller": "strimzipodset",
        "controller-name": "orders-brokers",
        "broker-role": "true",
        "controller-role": "true",
    }


EXISTS = {"key": "zone", "operator": "Exists"}
OTHER = {"key": "disk", "operator": "In", "values": ["ssd"]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("affinity", "terms"),
    [
        pytest.param(MISSING, [{"matchExpressions": [EXISTS]}], id="none"),
        pytest.param({"podAffinity": {}}, [{"matchExpressions": [EXISTS]}], id="another"),
        pytest.param(
            {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [OTHER]}, {"matchFields": []}]}}},
            [{"matchExpressions": [OTHER, EXISTS]}, {"matchFields": [], "matchExpressions": [EXISTS]}],
            id="every-term",
        ),
    ],
)
def test_rack_adds_an_expression_to_each_node_selector_term(affinity: Any, terms: Any) -> None:
    template = {} if affinity is MISSING else pod(affinity=affinity)
    value = pod_of(merge_with_all_listeners(template))["fields"]["affinity"]
    controllers = pod_of(merge_with_all_listeners(template, roles=["controller"]))["fields"]

    assert value["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] == terms
    assert controllers.get("affinity", MISSING) == affinity


@pytest.mark.parametrize(
    ("inherited", "own", "expected"),
    [
        pytest.param({}, {}, None, id="none"),
        pytest.param({"jvmOptions": {"-Xmx": "1g"}}, {}, ("kafka", {"-Xmx": "1g"}), id="inherited"),
        pytest.param({"jvmOptions": {"-Xmx": "1g"}}, {"jvmOptions": None}, ("kafka", {"-Xmx": "1g"}), id="null"),
        pytest.param({"jvmOptions": {"-Xmx": "1g"}}, {"jvmOptions": {}}, ("pool-reset", {}), id="reset"),
        pytest.param(
            {"jvmOptions": {"-Xmx": "1g"}},
            {"jvmOptions": {"gcLoggingEnabled": True}},
            ("pool", {"gcLoggingEnabled": True}),
            id="whole",
        ),
    ],
)
def test_jvm_options_are_inherited(inherited: Any, own: Any, expected: Any) -> None:
    (effect,) = merge({"k.yaml": kafka(**inherited), "p.yaml": pool(**own)}).effects

    jvm_options = effect.as_data().get("settings", {}).get("jvmOptions")
    assert jvm_options == (expected and {"source": expected[0], "value": expected[1]})
