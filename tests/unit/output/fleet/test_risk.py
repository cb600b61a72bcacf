"""Tests of the risk of a draft. Each row is one change, with its class and its reasons."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from reconciler.output.changes.package_changes import compare_packages
from reconciler.output.fleet.risk import RISK_CLASSES, RISK_LEVELS, Risk, assess_risk
from reconciler.output.fleet.variants import count_resources
from tests.unit.output.builders import build_tree

RBAC, ADMISSION, NETWORK = "rbac.authorization.k8s.io/v1", "admissionregistration.k8s.io/v1", "networking.k8s.io/v1"
LOCAL = {"annotations": {"config.kubernetes.io/local-config": "true"}}
Files = Mapping[str, str]


def resource(kind: str, name: str = "x", api: str = "v1", **fields: Any) -> dict[str, Any]:
    """Return a manifest. `metadata` in `fields` contains more metadata."""
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def files(*resources: Mapping[str, Any], **texts: str) -> Files:
    """Return one file for each resource, and other files. `_` in a name is a dot."""
    named = {f"{item['kind']}-{item['metadata']['name']}.yaml": json.dumps(item) for item in resources}
    return {**named, **{name.replace("_", "."): text for name, text in texts.items()}}


def deployment(image: str = "web:1", name: str = "web", **fields: Any) -> dict[str, Any]:
    """Return a Deployment with one container. `container` in `fields` contains more fields of the container."""
    container = {"name": "web", "image": image, **fields.pop("container", {})}
    return resource("Deployment", name, "apps/v1", spec={**fields, "template": {"spec": {"containers": [container]}}})


def settings(name: str = "settings", **data: str) -> dict[str, Any]:
    return resource("ConfigMap", name, data=data)


OTHERS = (settings("one"), settings("two"), settings("three"))


def assess(before: Files, after: Files, blocking_reasons: Sequence[str] = ()) -> Risk:
    old, new = build_tree(before), build_tree(after)
    return assess_risk(compare_packages(old, new), count_resources(old), blocking_reasons)


DELETIONS = [
    pytest.param(resource("Namespace"), "Namespace x: everything in the namespace is deleted", id="namespace"),
    pytest.param(resource("PersistentVolumeClaim"), "PersistentVolumeClaim x: the reclaim policy of its volume", id="claim"),
    pytest.param(resource("StatefulSet", api="apps/v1"), "StatefulSet x: its pods are deleted", id="stateful-set"),
    pytest.param(
        resource("CustomResourceDefinition", api="apiextensions.k8s.io/v1"),
        "CustomResourceDefinition x: every object of its kind is deleted", id="definition",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("removed", "reason"), DELETIONS)
def test_deleted_data_is_a_high_risk(removed: dict[str, Any], reason: str) -> None:
    risk = assess(files(removed, *OTHERS), files(*OTHERS))

    assert (risk.risk_class, risk.level, len(risk.reasons)) == ("deletion", "high", 1)
    assert risk.reasons[0].startswith(f"destroys {reason}")


ACCESS = [
    pytest.param(RBAC, "ClusterRole", "rules", id="role"),
    pytest.param(RBAC, "RoleBinding", "subjects", id="binding"),
    pytest.param(ADMISSION, "ValidatingWebhookConfiguration", "webhooks", id="webhook"),
    pytest.param(NETWORK, "NetworkPolicy", "spec", id="network-policy"),
    pytest.param("cilium.io/v2", "CiliumClusterwideNetworkPolicy", "spec", id="network-policy-of-cilium"),
]


@pytest.mark.parametrize(("api", "kind", "field"), ACCESS)
def test_access_is_a_high_risk(api: str, kind: str, field: str) -> None:
    old, new = (resource(kind, api=api, **{field: [{"name": name}]}) for name in ("a", "b"))
    with_old, with_new, without = files(old, *OTHERS), files(new, *OTHERS), files(*OTHERS)

    assert assess(with_old, with_new) == Risk("access", (f"changes {kind} x",))
    assert assess(without, with_new) == Risk("access", (f"adds {kind} x",))
    assert assess(with_old, without) == Risk("access", (f"deletes {kind} x",))
    assert Risk("access").level == "high"


CLASSES = [
    pytest.param(files(deployment()), files(deployment("web:2")), "restart", id="image"),
    pytest.param(files(deployment(replicas=2)), files(deployment(replicas=0)), "restart", id="scaled-to-zero"),
    pytest.param(files(*OTHERS), files(*OTHERS[1:]), "restart", id="one-of-three-deleted"),
    pytest.param(files(*OTHERS[:2]), files(*OTHERS[:1]), "restart", id="one-of-two-deleted"),
    pytest.param(files(*OTHERS), files(*OTHERS[:1]), "deletion", id="two-of-three-deleted"),
    pytest.param(files(settings()), {}, "deletion", id="all-deleted"),
    pytest.param(
        files(resource("Service", spec={"clusterIP": "1.1.1.1"})),
        files(resource("Service", spec={"clusterIP": "None"})), "deletion", id="refused-change",
    ),
    pytest.param(files(deployment(replicas=2)), files(deployment(replicas=3)), "size", id="replicas"),
    pytest.param(
        files(resource("HorizontalPodAutoscaler", api="autoscaling/v2", spec={"maxReplicas": 2})),
        files(resource("HorizontalPodAutoscaler", api="autoscaling/v2", spec={"maxReplicas": 4})),
        "size", id="largest-number-of-replicas",
    ),
    pytest.param(
        files(resource("Kafka", spec={"kafka": {"resources": {"limits": {"cpu": 1}}}})),
        files(resource("Kafka", spec={"kafka": {"resources": {"limits": {"cpu": 2}}}})), "size", id="resources",
    ),
    pytest.param(
        files(resource("Kafka", spec={"kafka": {}})),
        files(resource("Kafka", spec={"kafka": {"resources": {"limits": {"cpu": 2}}}})), "size", id="new-resources",
    ),
    pytest.param(
        files(deployment()), files(deployment(container={"resources": {"limits": {"cpu": 1}}})), "restart",
        id="resources-of-pods",
    ),
    pytest.param(
        files(resource("CustomResourceDefinition", spec={"properties": {"resources": {"description": "a"}}})),
        files(resource("CustomResourceDefinition", spec={"properties": {"resources": {"description": "b"}}})),
        "fields", id="field-of-a-schema-with-the-name-resources",
    ),
    pytest.param(
        files(resource("Policy", spec={"match": {"resources": {"kinds": ["Pod"]}}})),
        files(resource("Policy", spec={"match": {"resources": {"kinds": ["Job"]}}})), "fields", id="other-resources",
    ),
    pytest.param(
        files(resource("Policy", spec={"rules": {"replicas": 1}})),
        files(resource("Policy", spec={"rules": {"replicas": 2}})), "fields", id="other-replicas",
    ),
    pytest.param(files(settings(a="1")), files(settings(a="2")), "fields", id="other-field"),
    pytest.param(files(*OTHERS[:1]), files(*OTHERS), "fields", id="added"),
    pytest.param(files(README_md="a"), files(README_md="b"), "fields", id="other-file"),
    pytest.param(
        files(Kptfile="kind: Kptfile"), files(Kptfile="kind: Kptfile\npipeline: {mutators: [{image: a}]}"), "fields",
        id="pipeline",
    ),
    pytest.param(
        files(resource("Role", metadata=LOCAL, api=RBAC, rules=[1])),
        files(resource("Role", metadata=LOCAL, api=RBAC, rules=[2])), "metadata", id="local-config",
    ),
    pytest.param(
        files(settings()), files(resource("ConfigMap", "settings", data={}, metadata={"labels": {"a": "b"}})),
        "metadata", id="label",
    ),
    pytest.param(files(a_yaml=json.dumps(OTHERS[0])), files(a_yaml=json.dumps(OTHERS[0], indent=2)), "metadata", id="format"),
    pytest.param(files(a_md="a"), files(b_md="a"), "metadata", id="moved-file"),
    pytest.param(
        files(Kptfile="kind: Kptfile"), files(Kptfile="kind: Kptfile\nupstreamLock: {type: git}"), "metadata",
        id="upstream-lock",
    ),
    pytest.param(files(settings()), files(settings()), "metadata", id="unchanged"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "expected"), CLASSES)
def test_class_of_a_change(before: Files, after: Files, expected: str) -> None:
    assert assess(before, after).risk_class == expected


def test_classes_are_sorted_by_risk() -> None:
    assert list(RISK_CLASSES) == ["blocked", "deletion", "access", "restart", "size", "fields", "metadata"]
    assert [Risk(name).rank for name in RISK_CLASSES] == list(range(7))
    ranks = [RISK_LEVELS.index(Risk(name).level) for name in RISK_CLASSES]
    assert ranks == sorted(ranks)
    assert [Risk(name).level for name in RISK_CLASSES] == ["high"] * 3 + ["medium"] * 2 + ["low"] * 2


BEFORE = files(
    deployment(replicas=1), resource("Namespace"), resource("Role", api=RBAC, rules=[1]),
    settings(a="1"), settings("old"), *OTHERS,
)  # fmt: skip
AFTER = files(deployment("web:2", replicas=2), resource("Role", api=RBAC, rules=[2]), settings(a="2"), *OTHERS)


def test_reasons_start_with_those_of_the_highest_class() -> None:
    risk = assess(BEFORE, AFTER, ["1 conflict"])

    assert risk.risk_class == "blocked"
    assert [reason.partition(":")[0] for reason in risk.reasons] == [
        "1 conflict",
        "destroys Namespace x",
        "changes Role x",
        "restarts Deployment web",
        "deletes ConfigMap old",
        "changes spec.replicas of Deployment web",
    ]


def test_most_important_class_determines_the_risk() -> None:
    assert assess(BEFORE, AFTER).risk_class == "deletion"
    without_namespace = {path: text for path, text in BEFORE.items() if not path.startswith("Namespace")}
    assert assess(without_namespace, AFTER).risk_class == "access"


def test_number_of_reasons_is_limited() -> None:
    old, new = ([deployment(image, f"web-{number:02}") for number in range(12)] for image in ("web:1", "web:2"))

    risk = assess(files(*old), files(*new))

    assert len(risk.reasons) == 11
    assert risk.reasons[0].startswith("restarts Deployment web-00: ")
    assert risk.reasons[-1] == "and 2 more reasons"


def test_equal_reasons_are_shown_once() -> None:
    assert assess(files(settings()), files(settings(a="1")), ["1 conflict", "1 conflict"]).reasons == ("1 conflict",)


def test_reasons_have_one_line() -> None:
    old, new = (resource("Kafka", "a\nb", spec={"replicas": number}) for number in (1, 2))

    (reason,) = assess(files(old), files(new)).reasons

    assert "\n" not in reason
