"""Tests of the policy reader: each error with its field, line and value. Unknown fields are errors."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controllers.override_policies.override_world import (
    POLICY,
    build_policy,
    build_rules,
    list_codes,
    read_policies,
)

NEEDS = "spec.overrideRules[0].overriders"


def build_image_overrider(**operation: Any) -> dict[str, Any]:
    return {"image": [{"operations": [operation]}]}


def build_patch(**operation: Any) -> dict[str, Any]:
    return {"jsonpatch": [operation]}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="no-rules"),
        pytest.param({"overrideRules": None}, id="null-rules"),
        pytest.param({"overrideRules": []}, id="empty-rules"),
        pytest.param({"overrideRules": [{}]}, id="a-rule-of-nothing"),
        pytest.param({"overrideRules": [{"overriders": {}, "targetClusters": None}]}, id="no-overriders"),
        pytest.param({"overrideRules": build_rules({"labels": [], "image": None})}, id="empty-overriders"),
    ],
)
def test_empty_policy_is_valid(spec: Any) -> None:
    policies = read_policies({**build_policy([]), "spec": spec, "status": {"refCount": 4}})

    assert policies.findings == ()
    assert [key.name for key in policies.valid] == [POLICY]


@pytest.mark.parametrize(
    ("overriders", "code", "field"),
    [
        pytest.param({"images": []}, "PolicyInvalid", ".images", id="unknown-overrider"),
        pytest.param({"labels": {}}, "PolicyInvalid", ".labels", id="not-a-list"),
        pytest.param({"labels": [None]}, "PolicyInvalid", ".labels[0]", id="null-item"),
        pytest.param({"labels": [{"value": {"a": 5}}]}, "PolicyInvalid", ".labels[0].value.a", id="number-as-label"),
        pytest.param({"labels": [{"value": {"a": True}}]}, "PolicyInvalid", ".labels[0].value.a", id="yes-as-label"),
        pytest.param({"labels": [{"value": {"a b": "c"}}]}, "PolicyInvalid", ".labels[0].value", id="label-key"),
        pytest.param({"labels": [{"value": {"a": "b c"}}]}, "PolicyInvalid", ".labels[0].value", id="label-value"),
        pytest.param({"annotations": [{"value": {"/a": "c"}}]}, "PolicyInvalid", ".annotations[0].value", id="key"),
        pytest.param({"labels": [{}]}, "ValueRequired", ".labels[0].value", id="labels-without-value"),
        pytest.param(
            {"labels": [{"operator": "addIfAbsent", "value": {}}]},
            "ValueRequired",
            ".labels[0].value",
            id="add-nothing",
        ),
        pytest.param(
            {"labels": [{"operator": "upsert", "value": {}}]}, "OperatorUnsupported", ".labels[0].operator", id="upsert"
        ),
        pytest.param(
            {"labels": [{"operator": "Delete", "value": {}}]}, "OperatorUnsupported", ".labels[0].operator", id="case"
        ),
        pytest.param({"image": [{}]}, "PolicyInvalid", ".image[0].operations", id="image-without-operations"),
        pytest.param(
            {"image": [{"imagePath": "spec/image", "operations": []}]},
            "ImagePathInvalid",
            ".image[0].imagePath",
            id="image-path-without-slash",
        ),
        pytest.param(
            {"image": [{"imagePath": "/a~2", "operations": []}]}, "ImagePathInvalid", ".image[0].imagePath", id="escape"
        ),
        pytest.param(
            {"image": [{"containerNames": [1], "operations": []}]},
            "PolicyInvalid",
            ".image[0].containerNames[0]",
            id="container-name",
        ),
        pytest.param(
            build_image_overrider(imageComponent="tag", value="1"),
            "PolicyInvalid",
            ".image[0].operations[0].imageComponent",
            id="component-in-lower-case",
        ),
        pytest.param(
            build_image_overrider(imageComponent="Tag"),
            "ValueRequired",
            ".image[0].operations[0].value",
            id="overwrite-by-nothing",
        ),
        pytest.param(
            build_image_overrider(imageComponent="Tag", value=1.5),
            "PolicyInvalid",
            ".image[0].operations[0].value",
            id="a-tag-without-quotes",
        ),
        pytest.param(
            build_image_overrider(imageComponent="Tag", value="-x"),
            "TagInvalid",
            ".image[0].operations[0].value",
            id="tag",
        ),
        pytest.param(
            build_image_overrider(imageComponent="Digest", value="md5:" + "a" * 32),
            "DigestInvalid",
            ".image[0].operations[0].value",
            id="digest",
        ),
        pytest.param({"command": [{"value": []}]}, "PolicyInvalid", ".command[0].containerName", id="no-container"),
        pytest.param({"args": [{"containerName": "a"}]}, "ValueRequired", ".args[0].value", id="args-without-value"),
        pytest.param(
            {"args": [{"containerName": "a", "operator": "append", "value": []}]},
            "ValueRequired",
            ".args[0].value",
            id="append-nothing",
        ),
        pytest.param(
            {"args": [{"containerName": "a", "operator": "addIfAbsent", "value": ["b"]}]},
            "OperatorUnsupported",
            ".args[0].operator",
            id="an-operator-of-others",
        ),
        pytest.param(
            {"args": [{"containerName": "a", "value": [80]}]}, "PolicyInvalid", ".args[0].value[0]", id="a-port"
        ),
        pytest.param(
            {"envs": [{"containerName": "a", "value": [{"value": "x"}]}]},
            "PolicyInvalid",
            ".envs[0].value[0].name",
            id="variable-without-name",
        ),
        pytest.param(
            {"envs": [{"containerName": "a", "value": [{"name": "x", "value": 1}]}]},
            "PolicyInvalid",
            ".envs[0].value[0].value",
            id="a-number-as-variable",
        ),
        pytest.param(
            {"envs": [{"containerName": "a", "value": ["x=1"]}]}, "PolicyInvalid", ".envs[0].value[0]", id="a-text"
        ),
        pytest.param(build_patch(value=1), "PatchPathInvalid", ".jsonpatch[0].path", id="no-path"),
        pytest.param(build_patch(path="", value=1), "PatchPathInvalid", ".jsonpatch[0].path", id="whole-document"),
        pytest.param(build_patch(path="a/b", value=1), "PatchPathInvalid", ".jsonpatch[0].path", id="no-slash"),
        pytest.param(build_patch(path="/a~", value=1), "PatchPathInvalid", ".jsonpatch[0].path", id="bad-escape"),
        pytest.param(build_patch(path="/a"), "PatchValueMissing", ".jsonpatch[0].value", id="replace-without-value"),
        pytest.param(
            build_patch(path="/a", operator="add"), "PatchValueMissing", ".jsonpatch[0].value", id="add-without-value"
        ),
        pytest.param(
            build_patch(path="/a", operator="test", value=1), "OperatorUnsupported", ".jsonpatch[0].operator", id="test"
        ),
        pytest.param(
            build_patch(path="/a", operator="move"), "OperatorUnsupported", ".jsonpatch[0].operator", id="move"
        ),
        *(
            pytest.param(
                build_patch(path=path, value="x"), "ForbiddenPath", ".jsonpatch[0].path", id=f"forbidden-{path}"
            )
            for path in ("/kind", "/metadata/name", "/metadata/namespace", "/metadata/generateName")
        ),
    ],
)
def test_invalid_overrider_is_reported(overriders: Any, code: str, field: str) -> None:
    policies = read_policies(build_policy(build_rules(overriders)))

    assert policies.valid == {}
    assert [(finding.code, finding.message.split(" ")[0]) for finding in policies.findings] == [(code, NEEDS + field)]


@pytest.mark.parametrize(
    ("document", "code", "field"),
    [
        pytest.param({**build_policy([]), "extra": 1}, "PolicyInvalid", "extra", id="unknown-field"),
        pytest.param({**build_policy([]), "spec": None}, "PolicyInvalid", "spec", id="no-spec"),
        pytest.param({**build_policy([]), "spec": []}, "PolicyInvalid", "spec", id="spec-is-a-list"),
        pytest.param({**build_policy([]), "spec": {"rules": []}}, "PolicyInvalid", "spec.rules", id="unknown-in-spec"),
        pytest.param(
            build_policy([{"target": {}}]), "PolicyInvalid", "spec.overrideRules[0].target", id="unknown-in-rule"
        ),
        pytest.param(
            build_policy([{"targetClusters": {"clusterNames": []}}]),
            "PolicyInvalid",
            "spec.overrideRules[0].targetClusters.clusterNames",
            id="unknown-in-targets",
        ),
        pytest.param(
            {**build_policy([]), "apiVersion": "core.kubeadmiral.io/v1"}, "PolicyInvalid", "apiVersion", id="version"
        ),
        pytest.param(build_policy([], namespace="shop"), "PolicyInvalid", "metadata.namespace", id="cluster-with-one"),
    ],
)
def test_error_outside_the_overriders_is_reported(document: dict[str, Any], code: str, field: str) -> None:
    policies = read_policies(document)

    assert policies.valid == {}
    assert [(finding.code, finding.message.split(" ")[0]) for finding in policies.findings] == [(code, field)]


def test_finding_states_location_and_allowed_values() -> None:
    text = """\
apiVersion: core.kubeadmiral.io/v1alpha1
kind: OverridePolicy
metadata: {name: one, namespace: shop}
spec:
  overrideRules:
  - overriders:
      jsonpatch:
      - path: /spec/replicas
        operator: copy
"""

    (finding,) = read_policies(text).findings

    assert str(finding.location) == (
        "policies/0.yaml:9 OverridePolicy/shop/one /spec/overrideRules/0/overriders/jsonpatch/0/operator"
    )
    assert finding.message == (
        'spec.overrideRules[0].overriders.jsonpatch[0].operator must be one of "add", "remove", "replace", "set", but is "copy"'
    )


def test_all_errors_are_reported_together() -> None:
    rules = build_rules({"labels": [{"value": {"a": 1}, "x": 1}], "jsonpatch": [{"path": "a", "operator": "test"}]})

    assert list_codes(read_policies(build_policy(rules)).findings) == [
        "PolicyInvalid", "OperatorUnsupported", "PatchPathInvalid", "PolicyInvalid",
    ]  # fmt: skip
