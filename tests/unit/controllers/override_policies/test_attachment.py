"""Attaching policies to resources: labels, order, what is missing, and what is left of the labels (kubeadmiral 2)."""

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
    codes,
    error_codes,
    override_resource,
    policy,
    read,
    resource,
    rules_of,
    tree,
    warning_codes,
)


def config_map(*labels: str, namespace: str | None = "shop", kind: str = "ConfigMap", text: str = "") -> str:
    lines = [f"    {label}\n" for label in labels]
    place = f"  namespace: {namespace}\n" if namespace else ""
    version = "rbac.authorization.k8s.io/v1" if kind == "ClusterRole" else "v1"
    head = f"apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: one\n{place}"
    return head + ("  labels:\n" + "".join(lines) if lines else "") + text


def setting(value: str, *, operator: str = "addIfAbsent") -> list[dict[str, Any]]:
    return rules_of({"annotations": [{"operator": operator, "value": {"by": value}}]})


CLUSTER_POLICY = policy(setting("cluster"), name="base")
NAMESPACED_POLICY = policy(
    setting("namespace", operator="overwrite"), kind="OverridePolicy", name="own", namespace="shop"
)
BOTH = read(CLUSTER_POLICY, NAMESPACED_POLICY)
BASE, OWN = f"{CLUSTER_LABEL}: base", f"{NAMESPACED_LABEL}: own"


def annotations(text: str, policies: OverridePolicies = BOTH, on_missing: MissingPolicyMode = "fail") -> Any:
    final_resource = override_resource(resource(text), policies, HERE, OverrideOptions(on_missing))
    assert error_codes(final_resource) == []
    return final_resource.document.data["metadata"].get("annotations")


def errors(text: str, policies: OverridePolicies = BOTH, on_missing: MissingPolicyMode = "fail") -> list[str]:
    final_resource = override_resource(resource(text), policies, HERE, OverrideOptions(on_missing))
    assert not final_resource.has_errors or final_resource.document.text == text
    return error_codes(final_resource)


def test_the_cluster_policy_goes_first_whatever_the_order_of_labels() -> None:
    assert annotations(config_map(OWN, BASE)) == {"by": "namespace"}
    assert annotations(config_map(BASE, OWN)) == {"by": "namespace"}


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
            [f"{CLUSTER_LABEL}: gone", f'{NAMESPACED_LABEL}: ""'], ["PolicyNameEmpty", "PolicyNotFound"], id="both-told"
        ),
    ],
)
def test_what_is_wrong_with_the_labels_is_told_and_nothing_is_applied(labels: list[str], expected: list[str]) -> None:
    assert sorted(errors(config_map(*labels))) == expected


def test_a_policy_of_another_namespace_does_not_count() -> None:
    assert errors(config_map(OWN, namespace="other")) == ["PolicyNotFound"]


@pytest.mark.parametrize("namespace", [None, "shop"])
@pytest.mark.parametrize("name", ['""', "own", "nobody-wrote-this"])
def test_a_cluster_scoped_resource_obeys_its_cluster_policy_only(name: str, namespace: str | None) -> None:
    text = config_map(BASE, f"{NAMESPACED_LABEL}: {name}", kind="ClusterRole", namespace=namespace)

    final_resource = override_resource(resource(text), BOTH, HERE)

    assert (error_codes(final_resource), warning_codes(final_resource)) == ([], ["OverridePolicyLabelIgnored"])
    assert final_resource.document.data["metadata"]["annotations"] == {"by": "cluster"}
    assert "labels" not in final_resource.document.data["metadata"]


def test_a_resource_without_a_namespace_is_taken_for_cluster_scoped() -> None:
    assert annotations(config_map(BASE, OWN, namespace=None)) == {"by": "cluster"}


def test_a_missing_policy_may_be_ignored() -> None:
    labels = (f"{CLUSTER_LABEL}: gone", OWN)

    assert annotations(config_map(*labels), on_missing="ignore") is None
    assert errors(config_map(f'{CLUSTER_LABEL}: ""'), on_missing="ignore") == ["PolicyNameEmpty"]


def test_a_policy_that_may_stand_in_an_unreadable_file_is_not_gone() -> None:
    policies = read_override_policies(read_catalog(tree({"broken.yaml": "a: ["})))

    assert errors(config_map(BASE), policies, "ignore") == ["PolicyNotFound"]


def test_a_policy_that_stands_twice_counts_for_nothing() -> None:
    assert errors(config_map(BASE), read(CLUSTER_POLICY, CLUSTER_POLICY)) == ["PolicyDuplicate"]


@pytest.mark.parametrize("on_missing", ["fail", "ignore"])
def test_an_invalid_policy_withholds_what_names_it(on_missing: MissingPolicyMode) -> None:
    policies = read(policy("none", name="base"), NAMESPACED_POLICY)

    assert codes(policies.findings) == ["PolicyInvalid"]
    assert errors(config_map(BASE), policies, on_missing) == ["PolicyInvalid"]
    assert errors(config_map(OWN), policies, on_missing) == []


def test_an_overrider_neither_sees_nor_switches_the_attach_labels() -> None:
    rules = rules_of({"labels": [{"operator": "addIfAbsent", "value": {CLUSTER_LABEL: "gone"}}]})

    final_resource = override_resource(resource(config_map(BASE)), read(policy(rules, name="base")), HERE)

    assert error_codes(final_resource) == []
    assert final_resource.document.data["metadata"]["labels"] == {CLUSTER_LABEL: "gone"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", {}, id="labels-left-empty-go"),
        pytest.param("    app: one\n", {"labels": {"app": "one"}}, id="others-stay"),
        pytest.param(
            "    kubeadmiral.io/propagation-policy-name: p\n",
            {"labels": {"kubeadmiral.io/propagation-policy-name": "p"}},
            id="labels-of-placement-stay",
        ),
        pytest.param("  annotations: {reconciler.dev/clusters: '*'}\n", {}, id="the-placement-annotation-goes"),
        pytest.param("  annotations: {reconciler.dev/clusters: '*', a: b}\n", {"annotations": {"a": "b"}}, id="alone"),
    ],
)
def test_our_marks_are_not_shipped(text: str, expected: dict[str, Any]) -> None:
    final_resource = override_resource(resource(config_map(OWN, text=text)), BOTH, HERE)

    assert final_resource.document.data["metadata"] == {"name": "one", "namespace": "shop", **expected}
