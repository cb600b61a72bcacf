"""Tests of policies with resource selectors: the selected resources, and the order of the policies."""

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
    add_labels,
    build_policy,
    build_rules,
    build_tree,
    emit,
    list_codes,
    list_error_codes,
    override_package,
    override_resource,
    read_policies,
    read_resource,
)

DATA = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
}
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "web"}}


def build_selecting_policy(
    name: str, *selectors: dict[str, Any], namespace: str = "", rules: Any = None
) -> dict[str, Any]:
    kind = "OverridePolicy" if namespace else "ClusterOverridePolicy"
    result = build_policy(rules or [], kind=kind, name=name, namespace=namespace)
    return {**result, "spec": {**result["spec"], "resourceSelectors": [*selectors]}}


def build_deployment_selector(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", **more}


def list_attached_policies(data: dict[str, Any], *documents: dict[str, Any]) -> list[str]:
    policies = read_policies(*documents)
    assert policies.findings == ()
    return [
        override_policy.key.name
        for override_policy in find_attached_policies(read_resource(emit(data)), policies).policies
    ]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(build_deployment_selector(), True, id="kind"),
        pytest.param(build_deployment_selector(apiVersion="apps/v1beta1"), True, id="any-version"),
        pytest.param(build_deployment_selector(apiVersion="extensions/v1"), False, id="group"),
        pytest.param(build_deployment_selector(kind="StatefulSet"), False, id="another-kind"),
        pytest.param(build_deployment_selector(name="web"), True, id="name"),
        pytest.param(build_deployment_selector(name="db"), False, id="another-name"),
        pytest.param(build_deployment_selector(namespace="shop"), True, id="namespace"),
        pytest.param(build_deployment_selector(namespace="other"), False, id="another-namespace"),
        pytest.param(build_deployment_selector(labelSelector={"matchLabels": {"app": "web"}}), True, id="labels"),
        pytest.param(build_deployment_selector(labelSelector={"matchLabels": {"app": "db"}}), False, id="other-labels"),
        pytest.param(build_deployment_selector(labelSelector={}), True, id="any-labels"),
    ],
)
def test_selector_selects_resources(selector: dict[str, Any], expected: bool) -> None:
    assert list_attached_policies(DATA, build_selecting_policy("one", selector)) == (["one"] if expected else [])


def test_policy_without_selectors_selects_nothing() -> None:
    assert list_attached_policies(DATA, build_selecting_policy("one"), build_policy([], name="two")) == []


def test_namespaced_policy_selects_only_in_its_namespace() -> None:
    policies = [
        build_selecting_policy("here", build_deployment_selector(), namespace="shop"),
        build_selecting_policy("there", build_deployment_selector(), namespace="other"),
    ]

    assert list_attached_policies(DATA, *policies) == ["here"]


def test_cluster_scoped_resource_is_selected_only_by_cluster_policies() -> None:
    selector = {"apiVersion": ROLE["apiVersion"], "kind": "ClusterRole"}

    assert list_attached_policies(
        ROLE, build_selecting_policy("one", selector), build_selecting_policy("two", selector, namespace="shop")
    ) == ["one"]


def test_specific_policies_are_applied_later_and_the_labelled_policy_last() -> None:
    by_labels = build_deployment_selector(labelSelector={"matchLabels": {"app": "web"}})
    documents = [
        build_selecting_policy("a-by-name", build_deployment_selector(name="web")),
        build_selecting_policy("b-by-labels", by_labels),
        build_selecting_policy("c-by-labels", by_labels, build_deployment_selector()),
        build_selecting_policy("z-by-kind", build_deployment_selector()),
        build_selecting_policy("named", build_deployment_selector()),
        build_selecting_policy("own", build_deployment_selector(), namespace="shop"),
    ]

    assert list_attached_policies(add_labels(DATA, **{CLUSTER_LABEL: "named"}), *documents) == [
        "z-by-kind", "b-by-labels", "c-by-labels", "a-by-name", "named", "own",
    ]  # fmt: skip


def test_selected_resource_is_changed() -> None:
    rules = build_rules({"labels": [{"operator": "set", "value": {"by": "choice"}}]})

    final_resource = override_resource(
        read_resource(emit(DATA)),
        read_policies(build_selecting_policy("one", build_deployment_selector(), rules=rules)),
        HERE,
    )

    assert final_resource.document.data["metadata"]["labels"] == {"app": "web", "by": "choice"}
    assert [key.reference for key in final_resource.candidate_policies] == ["ClusterOverridePolicy/_cluster/one"]


@pytest.mark.parametrize(
    ("document", "withheld"),
    [
        pytest.param(
            build_selecting_policy("one", build_deployment_selector(), rules=[{"x": 1}]), True, id="invalid-elsewhere"
        ),
        pytest.param(
            build_selecting_policy("one", build_deployment_selector(kind="Service"), rules=[{"x": 1}]),
            False,
            id="another-kind",
        ),
        pytest.param(build_selecting_policy("one", {"kind": "Deployment"}), True, id="without-apiVersion"),
        pytest.param(build_selecting_policy("one", build_deployment_selector(names="web")), True, id="unknown-field"),
        pytest.param(
            build_selecting_policy("one", build_deployment_selector(name="web", labelSelector={})),
            True,
            id="name-and-labels",
        ),
        pytest.param(
            build_selecting_policy("one", build_deployment_selector(labelSelector={"app": "web"})),
            True,
            id="no-label-selector",
        ),
        pytest.param(
            build_selecting_policy("one", build_deployment_selector(namespace="x"), namespace="shop"),
            True,
            id="elsewhere",
        ),
        pytest.param(
            build_selecting_policy("one", {"kind": "Deployment"}, namespace="other"), False, id="in-another-namespace"
        ),
    ],
)
def test_invalid_policy_blocks_the_resources_that_it_may_select(document: dict[str, Any], withheld: bool) -> None:
    policies = read_policies(document)

    final_resource = override_resource(read_resource(emit(DATA)), policies, HERE)

    assert {*list_codes(policies.findings)} == {"PolicyInvalid"}
    assert list_error_codes(final_resource) == (["PolicyInvalid"] if withheld else [])


@pytest.mark.parametrize("namespace", ["", "shop"])
def test_duplicate_policy_blocks_the_resources_that_either_may_select(namespace: str) -> None:
    copies = [
        build_selecting_policy("one", build_deployment_selector(name="db"), namespace=namespace),
        build_selecting_policy("one", build_deployment_selector(), namespace=namespace),
    ]

    final_resource = override_resource(read_resource(emit(DATA)), read_policies(*copies), HERE)

    assert list_error_codes(final_resource) == ["PolicyDuplicate"]
    assert override_resource(read_resource(emit(ROLE)), read_policies(*copies), HERE).findings == ()


def test_cluster_policies_that_differ_only_in_their_namespace_are_duplicates() -> None:
    result, other = (
        build_selecting_policy("one", build_deployment_selector()),
        build_selecting_policy("one", {"apiVersion": "v1", "kind": "Service"}),
    )
    other["metadata"]["namespace"] = "shop"

    for documents in ([result, other], [other, result], [other, other]):
        chosen = read_resource(emit({**DATA, "apiVersion": "v1", "kind": "Service"}))
        assert list_error_codes(override_resource(chosen, read_policies(*documents), HERE)) != []


KINDS = ("/Service", "apps/Deployment")


@pytest.mark.parametrize(
    ("values", "other", "equal"),
    [
        pytest.param([], [build_policy([])], True, id="without-selectors"),
        pytest.param([], [build_selecting_policy("values", build_deployment_selector())], False, id="a-new-one"),
        pytest.param(
            [],
            [build_selecting_policy("values", build_deployment_selector(kind="StatefulSet"))],
            True,
            id="a-new-one-for-other-kinds",
        ),
        pytest.param(
            [],
            [build_selecting_policy("values", build_deployment_selector(apiVersion="extensions/v1"))],
            True,
            id="of-another-group",
        ),
        pytest.param(
            [], [build_selecting_policy("values", {"kind": "StatefulSet"})], False, id="a-selector-without-a-version"
        ),
        pytest.param(
            [build_selecting_policy("values", build_deployment_selector())],
            [build_selecting_policy("values", build_deployment_selector(), rules=build_rules({"labels": []}))],
            True,
            id="other-rules",
        ),
        pytest.param(
            [build_selecting_policy("values", build_deployment_selector())],
            [build_selecting_policy("values", build_deployment_selector(), rules=[{"x": 1}])],
            True,
            id="bad-rules",
        ),
        pytest.param(
            [build_selecting_policy("values", build_deployment_selector())],
            [build_selecting_policy("two", build_deployment_selector())],
            False,
            id="another-name",
        ),
        pytest.param(
            [build_selecting_policy("values", build_deployment_selector())],
            [build_selecting_policy("values", build_deployment_selector(name="web"))],
            False,
            id="more-closely",
        ),
        pytest.param(
            [build_selecting_policy("values", build_deployment_selector())],
            [build_selecting_policy("values", build_deployment_selector(labelSelector={}))],
            False,
            id="more-closely-by-any-labels",
        ),
        pytest.param(
            [build_selecting_policy("values", build_deployment_selector())],
            [build_selecting_policy("values", build_deployment_selector(), namespace="shop")],
            False,
            id="in-a-namespace",
        ),
        pytest.param(
            [build_selecting_policy("values", build_deployment_selector())],
            [
                build_selecting_policy(
                    "values",
                    build_deployment_selector(apiVersion="apps/v1beta1"),
                    build_deployment_selector(kind="StatefulSet"),
                )
            ],
            True,
            id="the-same-of-these-kinds",
        ),
        pytest.param(
            [
                build_selecting_policy("values", build_deployment_selector()),
                build_selecting_policy("two", build_deployment_selector()),
            ],
            [
                build_selecting_policy("two", build_deployment_selector()),
                build_selecting_policy("values", build_deployment_selector()),
            ],
            True,
            id="the-order-of-files",
        ),
    ],
)
def test_selector_digest_covers_policies_of_the_kinds(values: list[Any], other: list[Any], equal: bool) -> None:
    assert (read_policies(*values).digest_selectors(KINDS) == read_policies(*other).digest_selectors(KINDS)) is equal


@pytest.mark.parametrize(
    ("selectors", "kinds"),
    [
        pytest.param([], KINDS, id="no-selectors"),
        pytest.param([build_deployment_selector()], ("/Service",), id="other-kinds"),
        pytest.param([{"kind": "Service"}], (), id="a-package-of-nothing"),
    ],
)
def test_selector_digest_is_empty_without_selection(selectors: list[Any], kinds: tuple[str, ...]) -> None:
    assert read_policies(build_selecting_policy("one", *selectors)).digest_selectors(kinds) == ""


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


def test_kinds_of_a_package_exclude_kinds_without_policies() -> None:
    kinds = PackageOverrider(read_policies()).find_kinds(build_tree(PACKAGE))

    assert kinds == ("/Service", "apps/Deployment", "rbac.authorization.k8s.io/ClusterRole")


def test_package_lists_the_policies_that_select_its_resources() -> None:
    documents = [
        build_selecting_policy("by-kind", build_deployment_selector()),
        build_selecting_policy("of-the-namespace", build_deployment_selector(), namespace="shop"),
        build_selecting_policy("of-another", build_deployment_selector(), namespace="other"),
        build_selecting_policy("for-others", build_deployment_selector(name="db")),
        build_selecting_policy("invalid", {"apiVersion": "v1", "kind": "Service"}, rules=[{"x": 1}]),
    ]

    package = override_package(build_tree(PACKAGE), read_policies(*documents), HERE)

    assert [key.reference for key in package.candidate_policies] == [
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
        pytest.param(["a: [", build_policy([], name="gone")], [GONE], [], id="it-is-there-and-chooses-nothing"),
        pytest.param(["a: [", build_policy([{"x": 1}], name="gone")], [GONE], [], id="it-is-there-and-invalid"),
        pytest.param(
            ["a: [", build_policy([], name="gone"), build_policy([], name="gone")], [GONE], [], id="it-is-there-twice"
        ),
    ],
)
def test_policy_in_an_unreadable_file_is_not_treated_as_deleted(
    documents: list[Any], had: list[ObjectKey], expected: list[str]
) -> None:
    package = override_package(build_tree(PACKAGE), read_policies(*documents), HERE, had=had)

    assert list_codes(package.findings) == expected
    assert package.candidate_policies == package.unreadable_policies == ((GONE,) if expected else ())
    assert package.condition_reason == ("MatchOverridePolicyFailed" if expected else "")


def test_labelled_policy_in_an_unreadable_file_is_reported_once() -> None:
    files = build_tree({"web.yaml": emit(add_labels(DATA, **{CLUSTER_LABEL: "gone"}))})

    package = override_package(files, read_policies("a: ["), HERE, OverrideOptions(on_missing="ignore"), had=[GONE])

    assert (list_codes(package.findings), package.unreadable_policies) == (["PolicyNotFound"], (GONE,))
