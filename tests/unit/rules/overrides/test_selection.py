"""Policies that choose their resources: what they choose, and in which order they take effect (kubeadmiral 12)."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.rules.overrides.apply import override_resource
from reconciler.rules.overrides.attach import attach
from tests.unit.rules.overrides.override_world import (
    CLUSTER_LABEL,
    HERE,
    codes,
    emit,
    error_codes,
    labelled,
    policy,
    read,
    resource,
    rules_of,
)

DATA = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
}
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "web"}}


def choosing(name: str, *selectors: dict[str, Any], namespace: str = "", rules: Any = None) -> dict[str, Any]:
    kind = "OverridePolicy" if namespace else "ClusterOverridePolicy"
    one = policy(rules or [], kind=kind, name=name, namespace=namespace)
    return {**one, "spec": {**one["spec"], "resourceSelectors": [*selectors]}}


def deployments(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", **more}


def names(data: dict[str, Any], *documents: dict[str, Any]) -> list[str]:
    policies = read(*documents)
    assert policies.findings == ()
    return [one.key.name for one in attach(resource(emit(data)), policies).policies]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(deployments(), True, id="kind"),
        pytest.param(deployments(apiVersion="apps/v1beta1"), True, id="any-version"),
        pytest.param(deployments(apiVersion="extensions/v1"), False, id="group"),
        pytest.param(deployments(kind="StatefulSet"), False, id="another-kind"),
        pytest.param(deployments(name="web"), True, id="name"),
        pytest.param(deployments(name="db"), False, id="another-name"),
        pytest.param(deployments(namespace="shop"), True, id="namespace"),
        pytest.param(deployments(namespace="other"), False, id="another-namespace"),
        pytest.param(deployments(labelSelector={"matchLabels": {"app": "web"}}), True, id="labels"),
        pytest.param(deployments(labelSelector={"matchLabels": {"app": "db"}}), False, id="other-labels"),
        pytest.param(deployments(labelSelector={}), True, id="any-labels"),
    ],
)
def test_what_a_policy_chooses(selector: dict[str, Any], expected: bool) -> None:
    assert names(DATA, choosing("one", selector)) == (["one"] if expected else [])


def test_without_selectors_nothing_is_chosen() -> None:
    assert names(DATA, choosing("one"), policy([], name="two")) == []


def test_a_namespaced_policy_chooses_in_its_namespace_only() -> None:
    policies = [choosing("here", deployments(), namespace="shop"), choosing("there", deployments(), namespace="other")]

    assert names(DATA, *policies) == ["here"]


def test_a_cluster_scoped_resource_is_chosen_by_cluster_policies_only() -> None:
    selector = {"apiVersion": ROLE["apiVersion"], "kind": "ClusterRole"}

    assert names(ROLE, choosing("one", selector), choosing("two", selector, namespace="shop")) == ["one"]


def test_closer_policies_come_later_and_the_named_one_last_of_its_scope() -> None:
    by_labels = deployments(labelSelector={"matchLabels": {"app": "web"}})
    documents = [
        choosing("a-by-name", deployments(name="web")),
        choosing("b-by-labels", by_labels),
        choosing("c-by-labels", by_labels, deployments()),
        choosing("z-by-kind", deployments()),
        choosing("named", deployments()),
        choosing("own", deployments(), namespace="shop"),
    ]

    assert names(labelled(DATA, **{CLUSTER_LABEL: "named"}), *documents) == [
        "z-by-kind", "b-by-labels", "c-by-labels", "a-by-name", "named", "own",
    ]  # fmt: skip


def test_a_chosen_resource_is_changed() -> None:
    rules = rules_of({"labels": [{"operator": "set", "value": {"by": "choice"}}]})

    done = override_resource(resource(emit(DATA)), read(choosing("one", deployments(), rules=rules)), HERE)

    assert done.document.data["metadata"]["labels"] == {"app": "web", "by": "choice"}
    assert [str(key) for key in done.asked] == ["ClusterOverridePolicy/_cluster/one"]


@pytest.mark.parametrize(
    ("document", "withheld"),
    [
        pytest.param(choosing("one", deployments(), rules=[{"x": 1}]), True, id="invalid-elsewhere"),
        pytest.param(choosing("one", deployments(kind="Service"), rules=[{"x": 1}]), False, id="another-kind"),
        pytest.param(choosing("one", {"kind": "Deployment"}), True, id="without-apiVersion"),
        pytest.param(choosing("one", deployments(names="web")), True, id="unknown-field"),
        pytest.param(choosing("one", deployments(name="web", labelSelector={})), True, id="name-and-labels"),
        pytest.param(choosing("one", deployments(labelSelector={"app": "web"})), True, id="no-label-selector"),
        pytest.param(choosing("one", deployments(namespace="x"), namespace="shop"), True, id="elsewhere"),
        pytest.param(choosing("one", {"kind": "Deployment"}, namespace="other"), False, id="in-another-namespace"),
    ],
)
def test_an_invalid_policy_withholds_what_it_may_be_meant_for(document: dict[str, Any], withheld: bool) -> None:
    policies = read(document)

    done = override_resource(resource(emit(DATA)), policies, HERE)

    assert {*codes(policies.findings)} == {"PolicyInvalid"}
    assert error_codes(done) == (["PolicyInvalid"] if withheld else [])
