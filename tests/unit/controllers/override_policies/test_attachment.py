"""Tests of the labels that attach policies to resources: order, missing policies, and removal of the labels."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.controllers.override_policies.attachment import MissingPolicyMode
from reconciler.controllers.override_policies.read_policies import OverridePolicies, read_override_policies
from reconciler.controllers.override_policies.resource_overrides import OverrideOptions
from tests.unit.controllers.override_policies.override_world import (
    CLUSTER_LABEL,
    HERE,
    NAMESPACED_LABEL,
    build_policy,
    build_rules,
    build_tree,
    list_codes,
    list_error_codes,
    list_warning_codes,
    override_resource,
    read_policies,
    read_resource,
)


def build_config_map(*labels: str, namespace: str | None = "shop", kind: str = "ConfigMap", text: str = "") -> str:
    lines = [f"    {label}\n" for label in labels]
    place = f"  namespace: {namespace}\n" if namespace else ""
    version = "rbac.authorization.k8s.io/v1" if kind == "ClusterRole" else "v1"
    head = f"apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: one\n{place}"
    return head + ("  labels:\n" + "".join(lines) if lines else "") + text


def build_annotation_rules(value: str, *, operator: str = "addIfAbsent") -> list[dict[str, Any]]:
    return build_rules({"annotations": [{"operator": operator, "value": {"by": value}}]})


CLUSTER_POLICY = build_policy(build_annotation_rules("cluster"), name="base")
NAMESPACED_POLICY = build_policy(
    build_annotation_rules("namespace", operator="overwrite"), kind="OverridePolicy", name="own", namespace="shop"
)
BOTH = read_policies(CLUSTER_POLICY, NAMESPACED_POLICY)
BASE, OWN = f"{CLUSTER_LABEL}: base", f"{NAMESPACED_LABEL}: own"


def read_annotations(text: str, policies: OverridePolicies = BOTH, on_missing: MissingPolicyMode = "fail") -> Any:
    final_resource = override_resource(read_resource(text), policies, HERE, OverrideOptions(on_missing))
    assert list_error_codes(final_resource) == []
    return final_resource.document.data["metadata"].get("annotations")


def list_errors(text: str, policies: OverridePolicies = BOTH, on_missing: MissingPolicyMode = "fail") -> list[str]:
    final_resource = override_resource(read_resource(text), policies, HERE, OverrideOptions(on_missing))
    assert not final_resource.has_errors or final_resource.document.text == text
    return list_error_codes(final_resource)


def test_cluster_policy_is_applied_first_in_any_label_order() -> None:
    assert read_annotations(build_config_map(OWN, BASE)) == {"by": "namespace"}
    assert read_annotations(build_config_map(BASE, OWN)) == {"by": "namespace"}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param([], [], id="not-attached"),
        pytest.param([f'{CLUSTER_LABEL}: ""'], ["PolicyNameEmpty"], id="empty-cluster-label"),
        pytest.param([f'{NAMESPACED_LABEL}: ""'], ["PolicyNameEmpty"], id="empty-namespaced-label"),
        pytest.param([f"{CLUSTER_LABEL}: 5"], ["MapMalformed"], id="a-number"),
        pytest.param([f"{CLUSTER_LABEL}: gone"], ["PolicyNotFound"], id="missing"),
        pytest.param([BASE, f"{NAMESPACED_LABEL}: gone"], ["PolicyNotFound"], id="one-of-two-missing"),
        pytest.param(
            [f"{CLUSTER_LABEL}: gone", f'{NAMESPACED_LABEL}: ""'],
            ["PolicyNameEmpty", "PolicyNotFound"],
            id="both-are-reported",
        ),
    ],
)
def test_invalid_labels_are_reported_and_no_policy_is_applied(labels: list[str], expected: list[str]) -> None:
    assert sorted(list_errors(build_config_map(*labels))) == expected


def test_policy_of_another_namespace_is_not_found() -> None:
    assert list_errors(build_config_map(OWN, namespace="other")) == ["PolicyNotFound"]


@pytest.mark.parametrize("namespace", [None, "shop"])
@pytest.mark.parametrize("name", ['""', "own", "nobody-wrote-this"])
def test_cluster_scoped_resource_uses_only_its_cluster_policy(name: str, namespace: str | None) -> None:
    text = build_config_map(BASE, f"{NAMESPACED_LABEL}: {name}", kind="ClusterRole", namespace=namespace)

    final_resource = override_resource(read_resource(text), BOTH, HERE)

    assert (list_error_codes(final_resource), list_warning_codes(final_resource)) == (
        [],
        ["OverridePolicyLabelIgnored"],
    )
    assert final_resource.document.data["metadata"]["annotations"] == {"by": "cluster"}
    assert "labels" not in final_resource.document.data["metadata"]


def test_resource_without_namespace_is_treated_as_cluster_scoped() -> None:
    assert read_annotations(build_config_map(BASE, OWN, namespace=None)) == {"by": "cluster"}


def test_missing_policy_can_be_ignored() -> None:
    labels = (f"{CLUSTER_LABEL}: gone", OWN)

    assert read_annotations(build_config_map(*labels), on_missing="ignore") is None
    assert list_errors(build_config_map(f'{CLUSTER_LABEL}: ""'), on_missing="ignore") == ["PolicyNameEmpty"]


def test_policy_that_an_unreadable_file_may_contain_is_not_ignored() -> None:
    policies = read_override_policies(read_catalog(build_tree({"broken.yaml": "a: ["})))

    assert list_errors(build_config_map(BASE), policies, "ignore") == ["PolicyNotFound"]


def test_duplicate_policy_is_not_applied() -> None:
    assert list_errors(build_config_map(BASE), read_policies(CLUSTER_POLICY, CLUSTER_POLICY)) == ["PolicyDuplicate"]


@pytest.mark.parametrize("on_missing", ["fail", "ignore"])
def test_invalid_policy_blocks_its_resources(on_missing: MissingPolicyMode) -> None:
    policies = read_policies(build_policy("none", name="base"), NAMESPACED_POLICY)

    assert list_codes(policies.findings) == ["PolicyInvalid"]
    assert list_errors(build_config_map(BASE), policies, on_missing) == ["PolicyInvalid"]
    assert list_errors(build_config_map(OWN), policies, on_missing) == []


def test_overrider_does_not_change_the_attachment_labels() -> None:
    rules = build_rules({"labels": [{"operator": "addIfAbsent", "value": {CLUSTER_LABEL: "gone"}}]})

    final_resource = override_resource(
        read_resource(build_config_map(BASE)), read_policies(build_policy(rules, name="base")), HERE
    )

    assert list_error_codes(final_resource) == []
    assert final_resource.document.data["metadata"]["labels"] == {CLUSTER_LABEL: "gone"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", {}, id="empty-labels-are-removed"),
        pytest.param("    app: one\n", {"labels": {"app": "one"}}, id="others-stay"),
        pytest.param(
            "    kubeadmiral.io/propagation-policy-name: p\n",
            {"labels": {"kubeadmiral.io/propagation-policy-name": "p"}},
            id="labels-of-placement-stay",
        ),
        pytest.param("  annotations: {reconciler.dev/clusters: '*'}\n", {}, id="the-placement-annotation-is-removed"),
        pytest.param("  annotations: {reconciler.dev/clusters: '*', a: b}\n", {"annotations": {"a": "b"}}, id="alone"),
    ],
)
def test_control_labels_and_annotations_are_removed(text: str, expected: dict[str, Any]) -> None:
    final_resource = override_resource(read_resource(build_config_map(OWN, text=text)), BOTH, HERE)

    assert final_resource.document.data["metadata"] == {"name": "one", "namespace": "shop", **expected}


def test_policies_without_an_effect_are_one_warning() -> None:
    rules = build_rules({"labels": [{"operator": "delete", "value": {"absent": ""}}]})
    policies = read_policies(
        build_policy(rules, name="base"), build_policy(rules, kind="OverridePolicy", name="own", namespace="shop")
    )

    (finding,) = override_resource(read_resource(build_config_map(BASE, OWN)), policies, HERE).findings

    assert finding.code == "PolicyNoEffect"
    assert "ClusterOverridePolicy/base and OverridePolicy/shop/own" in finding.message
