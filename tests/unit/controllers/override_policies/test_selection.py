"""Policies that choose their resources: what they choose, and in which order they take effect (kubeadmiral 12)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.controllers.override_policies.attachment import find_attached_policies
from reconciler.controllers.override_policies.package_overrides import PackageOverrider
from reconciler.controllers.override_policies.read_policies import build_override_policy_key
from reconciler.controllers.override_policies.resource_overrides import OverrideOptions
from reconciler.krm.objects import ObjectKey
from tests.unit.controllers.override_policies.override_world import (
    CLUSTER_LABEL,
    HERE,
    codes,
    emit,
    error_codes,
    labelled,
    override_package,
    override_resource,
    policy,
    read,
    resource,
    rules_of,
    tree,
)

DATA = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
}
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "web"}}


def choosing(name: str, *selectors: dict[str, Any], namespace: str = "", rules: Any = None) -> dict[str, Any]:
    kind = "OverridePolicy" if namespace else "ClusterOverridePolicy"
    result = policy(rules or [], kind=kind, name=name, namespace=namespace)
    return {**result, "spec": {**result["spec"], "resourceSelectors": [*selectors]}}


def deployments(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", **more}


def names(data: dict[str, Any], *documents: dict[str, Any]) -> list[str]:
    policies = read(*documents)
    assert policies.findings == ()
    return [
        override_policy.key.name for override_policy in find_attached_policies(resource(emit(data)), policies).policies
    ]


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

    final_resource = override_resource(resource(emit(DATA)), read(choosing("one", deployments(), rules=rules)), HERE)

    assert final_resource.document.data["metadata"]["labels"] == {"app": "web", "by": "choice"}
    assert [str(key) for key in final_resource.candidate_policies] == ["ClusterOverridePolicy/_cluster/one"]


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

    final_resource = override_resource(resource(emit(DATA)), policies, HERE)

    assert {*codes(policies.findings)} == {"PolicyInvalid"}
    assert error_codes(final_resource) == (["PolicyInvalid"] if withheld else [])


@pytest.mark.parametrize("namespace", ["", "shop"])
def test_a_policy_that_stands_twice_withholds_what_either_may_be_meant_for(namespace: str) -> None:
    copies = [
        choosing("one", deployments(name="db"), namespace=namespace),
        choosing("one", deployments(), namespace=namespace),
    ]

    final_resource = override_resource(resource(emit(DATA)), read(*copies), HERE)

    assert error_codes(final_resource) == ["PolicyDuplicate"]
    assert override_resource(resource(emit(ROLE)), read(*copies), HERE).findings == ()


def test_policies_that_are_one_but_for_a_namespace_that_one_must_not_have_withhold_as_well() -> None:
    result, other = choosing("one", deployments()), choosing("one", {"apiVersion": "v1", "kind": "Service"})
    other["metadata"]["namespace"] = "shop"

    for documents in ([result, other], [other, result], [other, other]):
        chosen = resource(emit({**DATA, "apiVersion": "v1", "kind": "Service"}))
        assert error_codes(override_resource(chosen, read(*documents), HERE)) != []


KINDS = ("/Service", "apps/Deployment")


@pytest.mark.parametrize(
    ("values", "other", "equal"),
    [
        pytest.param([], [policy([])], True, id="without-selectors"),
        pytest.param([], [choosing("values", deployments())], False, id="a-new-one"),
        pytest.param([], [choosing("values", deployments(kind="StatefulSet"))], True, id="a-new-one-for-other-kinds"),
        pytest.param([], [choosing("values", deployments(apiVersion="extensions/v1"))], True, id="of-another-group"),
        pytest.param([], [choosing("values", {"kind": "StatefulSet"})], False, id="nobody-knows-what-it-chooses"),
        pytest.param(
            [choosing("values", deployments())],
            [choosing("values", deployments(), rules=rules_of({"labels": []}))],
            True,
            id="other-rules",
        ),
        pytest.param(
            [choosing("values", deployments())],
            [choosing("values", deployments(), rules=[{"x": 1}])],
            True,
            id="bad-rules",
        ),
        pytest.param([choosing("values", deployments())], [choosing("two", deployments())], False, id="another-name"),
        pytest.param(
            [choosing("values", deployments())], [choosing("values", deployments(name="web"))], False, id="more-closely"
        ),
        pytest.param(
            [choosing("values", deployments())],
            [choosing("values", deployments(labelSelector={}))],
            False,
            id="more-closely-by-any-labels",
        ),
        pytest.param(
            [choosing("values", deployments())],
            [choosing("values", deployments(), namespace="shop")],
            False,
            id="in-a-namespace",
        ),
        pytest.param(
            [choosing("values", deployments())],
            [choosing("values", deployments(apiVersion="apps/v1beta1"), deployments(kind="StatefulSet"))],
            True,
            id="the-same-of-these-kinds",
        ),
        pytest.param(
            [choosing("values", deployments()), choosing("two", deployments())],
            [choosing("two", deployments()), choosing("values", deployments())],
            True,
            id="the-order-of-files",
        ),
    ],
)
def test_what_is_chosen_of_some_kinds_is_one_digest(values: list[Any], other: list[Any], equal: bool) -> None:
    assert (read(*values).digest_selectors(KINDS) == read(*other).digest_selectors(KINDS)) is equal


@pytest.mark.parametrize(
    ("selectors", "kinds"),
    [
        pytest.param([], KINDS, id="no-selectors"),
        pytest.param([deployments()], ("/Service",), id="other-kinds"),
        pytest.param([{"kind": "Service"}], (), id="a-package-of-nothing"),
    ],
)
def test_where_nothing_is_chosen_the_digest_is_empty(selectors: list[Any], kinds: tuple[str, ...]) -> None:
    assert read(choosing("one", *selectors)).digest_selectors(kinds) == ""


PACKAGE = {
    "web.yaml": emit(DATA),
    "role.yaml": emit(ROLE),
    "web.json": json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}}),
    "Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: web}\n",
    "local.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
    '  annotations: {config.kubernetes.io/local-config: "true"}\n',
    "list.yaml": "apiVersion: v1\nkind: List\nitems: []\n",
    "notes.txt": "apiVersion: v1\nkind: Pod\n",
    "broken.yaml": "a: [",
}


def test_the_kinds_of_a_package_are_those_that_policies_can_be_attached_to() -> None:
    kinds = PackageOverrider(read()).find_kinds(tree(PACKAGE))

    assert kinds == ("/Service", "apps/Deployment", "rbac.authorization.k8s.io/ClusterRole")


def test_a_package_tells_the_policies_that_choose_from_it() -> None:
    documents = [
        choosing("by-kind", deployments()),
        choosing("of-the-namespace", deployments(), namespace="shop"),
        choosing("of-another", deployments(), namespace="other"),
        choosing("for-others", deployments(name="db")),
        choosing("invalid", {"apiVersion": "v1", "kind": "Service"}, rules=[{"x": 1}]),
    ]

    package = override_package(tree(PACKAGE), read(*documents), HERE)

    assert [str(key) for key in package.candidate_policies] == [
        "ClusterOverridePolicy/_cluster/by-kind",
        "ClusterOverridePolicy/_cluster/invalid",
        "OverridePolicy/shop/of-the-namespace",
    ]


GONE = build_override_policy_key("ClusterOverridePolicy", "", "gone")


@pytest.mark.parametrize(
    ("documents", "had", "expected"),
    [
        pytest.param([], [], [], id="never-had-one"),
        pytest.param([], [GONE], [], id="gone"),
        pytest.param(["a: ["], [], [], id="a-file-cannot-be-read"),
        pytest.param(["a: ["], [GONE], ["PolicyNotFound"], id="it-may-be-in-there"),
        pytest.param(["a: [", policy([], name="gone")], [GONE], [], id="it-is-there-and-chooses-nothing"),
        pytest.param(["a: [", policy([{"x": 1}], name="gone")], [GONE], [], id="it-is-there-and-invalid"),
        pytest.param(["a: [", policy([], name="gone"), policy([], name="gone")], [GONE], [], id="it-is-there-twice"),
    ],
)
def test_a_policy_that_chose_is_not_taken_for_gone_while_it_may_be_there(
    documents: list[Any], had: list[ObjectKey], expected: list[str]
) -> None:
    package = override_package(tree(PACKAGE), read(*documents), HERE, had=had)

    assert codes(package.findings) == expected
    assert package.candidate_policies == package.unreadable_policies == ((GONE,) if expected else ())
    assert package.condition_reason == ("MatchOverridePolicyFailed" if expected else "")


def test_a_named_policy_that_may_be_there_is_told_of_once() -> None:
    files = tree({"web.yaml": emit(labelled(DATA, **{CLUSTER_LABEL: "gone"}))})

    package = override_package(files, read("a: ["), HERE, OverrideOptions(on_missing="ignore"), had=[GONE])

    assert (codes(package.findings), package.unreadable_policies) == (["PolicyNotFound"], (GONE,))
