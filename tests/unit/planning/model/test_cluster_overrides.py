"""Tests of cluster overrides: which dependencies they record, and which changes cause a new render."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.catalog import Catalog, read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.trace import CatalogView, DependencyReader, find_changed_dependencies
from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.override_policies.package_overrides import OverriddenPackage
from reconciler.controllers.override_policies.read_policies import read_override_policies
from reconciler.controllers.override_policies.rollout import parse_rule_id
from reconciler.krm.yaml import emit
from reconciler.planning.model.cluster_overrides import ClusterOverrides, PreviousOverrides, build_overridden_condition

API = "core.kubeadmiral.io/v1alpha1"
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: door, namespace: shop}\n"
WEB = (
    "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: shop\n"
    "  labels:\n    app: web\n    kubeadmiral.io/override-policy-name: sizing\nspec:\n  replicas: 2\n"
)
RULE = {"overriders": {"jsonpatch": [{"path": "/spec/replicas", "value": 5}]}}
POLICY = "policy core.kubeadmiral.io/v1alpha1 OverridePolicy shop sizing berlin"
KINDS = "selectors apps/Deployment"
NAMED = "OverridePolicy/shop/sizing#replicas"


def format_policy(*rules: Mapping[str, Any], name: str = "sizing", **spec: Any) -> str:
    metadata = {"name": name, "namespace": "shop"}
    whole = {"overrideRules": [*rules], **spec}
    return emit({"apiVersion": API, "kind": "OverridePolicy", "metadata": metadata, "spec": whole})


def build_catalog(*documents: str) -> Catalog:
    return read_catalog(FileTree({f"{number}.yaml": File(text.encode()) for number, text in enumerate(documents)}))


def build_overrides(actual_catalog: Catalog, region: str = "eu", closed: str = "") -> ClusterOverrides:
    rules = {rule: frozenset({"berlin"}) for rule in [parse_rule_id(closed)] if rule}
    return ClusterOverrides(
        read_override_policies(actual_catalog), {"berlin": Cluster("berlin", {"region": region})}, closed_clusters=rules
    )


def override_resources(
    actual_catalog: Catalog, text: str = WEB, had: PreviousOverrides | None = None, **fields: Any
) -> tuple[OverriddenPackage, dict[str, str]]:
    cluster_overrides = build_overrides(actual_catalog, **fields)
    view = CatalogView(DependencyReader(actual_catalog, cluster_overrides.build_dependency_functions()))
    result = cluster_overrides.override(
        FileTree({"all.yaml": File(text.encode())}), "berlin", view, had or PreviousOverrides()
    )
    return result, view.trace


def list_changed_dependencies(trace: Mapping[str, str], actual_catalog: Catalog, **fields: Any) -> tuple[str, ...]:
    return find_changed_dependencies(
        trace,
        {},
        DependencyReader(actual_catalog, build_overrides(actual_catalog, **fields).build_dependency_functions()),
    )


def test_recorded_dependencies() -> None:
    result, trace = override_resources(build_catalog(format_policy(RULE)))

    assert b"replicas: 5" in result.files["all.yaml"].data
    assert sorted(trace) == ["cluster berlin", POLICY, KINDS]


def test_package_without_policies_does_not_depend_on_its_cluster() -> None:
    _, trace = override_resources(build_catalog(format_policy(RULE)), SERVICE)

    assert trace == {"selectors /Service": "absent"}


def test_package_without_resources_has_no_dependencies() -> None:
    assert override_resources(build_catalog(format_policy(RULE)), "some: text\n")[1] == {}


ELSEWHERE = {**RULE, "targetClusters": {"clusters": ["oslo"]}}
STAGED = {**RULE, "name": "replicas", "rollout": {"waves": [{"clusters": ["oslo"]}]}}
OTHER = format_policy(RULE, name="other")
CHOOSING = format_policy(RULE, name="other", resourceSelectors=[{"apiVersion": "apps/v1", "kind": "Deployment"}])
CHOOSING_OTHERS = format_policy(RULE, name="other", resourceSelectors=[{"apiVersion": "v1", "kind": "Service"}])


@pytest.mark.parametrize(
    ("documents", "region", "expected"),
    [
        pytest.param([format_policy(RULE)], "eu", (), id="nothing"),
        pytest.param([format_policy(RULE), OTHER], "eu", (), id="a-policy-that-it-does-not-name"),
        pytest.param([format_policy()], "eu", (POLICY,), id="its-policy"),
        pytest.param([format_policy(RULE, ELSEWHERE)], "eu", (), id="its-policy-where-that-is-for-others"),
        pytest.param(
            [format_policy(RULE, ELSEWHERE | STAGED)], "eu", (POLICY,), id="its-policy-where-that-goes-in-waves"
        ),
        pytest.param([format_policy(ELSEWHERE, RULE)], "eu", (POLICY,), id="the-number-of-a-rule"),
        pytest.param([format_policy(RULE | {"name": "five"})], "eu", (POLICY,), id="the-name-of-a-rule"),
        pytest.param([format_policy(RULE).replace("spec:", "spec:\n  other: 1")], "eu", (POLICY,), id="it-is-invalid"),
        pytest.param([format_policy(RULE)] * 2, "eu", (POLICY,), id="it-stands-twice"),
        pytest.param([], "eu", (POLICY,), id="its-policy-is-gone"),
        pytest.param([format_policy(RULE)], "us", ("cluster berlin",), id="the-labels-of-its-cluster"),
        pytest.param([format_policy(RULE), CHOOSING], "eu", (KINDS,), id="a-policy-that-may-choose-it"),
        pytest.param([format_policy(RULE), CHOOSING_OTHERS], "eu", (), id="a-policy-that-chooses-other-kinds"),
    ],
)
def test_changes_that_cause_a_render(documents: list[str], region: str, expected: tuple[str, ...]) -> None:
    _, trace = override_resources(build_catalog(format_policy(RULE)))

    assert list_changed_dependencies(trace, build_catalog(*documents), region=region) == expected


def test_missing_policy_can_be_in_an_unreadable_file() -> None:
    result, trace = override_resources(build_catalog())
    broken = build_catalog("a: [")

    assert [finding.code for finding in result.findings] == ["PolicyNotFound"]
    assert list_changed_dependencies(trace, broken) == ("whole",)


def test_previous_policy_is_not_treated_as_deleted_while_a_file_is_unreadable() -> None:
    had = PreviousOverrides(tuple(read_override_policies(build_catalog(CHOOSING)).valid))
    plain = WEB.replace("    kubeadmiral.io/override-policy-name: sizing\n", "")

    assert [finding.code for finding in override_resources(build_catalog("a: ["), plain, had)[0].findings] == [
        "PolicyNotFound"
    ]
    assert override_resources(build_catalog(), plain, had)[0].findings == ()


def test_closed_rule_keeps_its_previous_text() -> None:
    actual_catalog = build_catalog(format_policy(STAGED))
    before, _ = override_resources(
        build_catalog(format_policy(STAGED | {"overriders": {"labels": [{"value": {"app": "old"}}]}}))
    )
    had = PreviousOverrides(rule_texts={name: text for name, text in before.rule_texts.items() if text})

    never, trace = override_resources(actual_catalog, closed=NAMED)
    later, _ = override_resources(actual_catalog, had=had, closed=NAMED)

    assert b"replicas: 2" in never.files["all.yaml"].data
    assert b"app: old" in later.files["all.yaml"].data
    assert trace[f"rollout {NAMED} berlin"] == "closed"
    assert list_changed_dependencies(trace, actual_catalog, closed=NAMED) == ()
    assert list_changed_dependencies(trace, actual_catalog) == (f"rollout {NAMED} berlin",)


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("cluster berlin oslo", id="two-clusters"),
        pytest.param("policy core.kubeadmiral.io/v1alpha1 OverridePolicy shop sizing", id="policy-without-cluster"),
        pytest.param("selectors a b", id="two-lists"),
        pytest.param("rollout x", id="no-cluster"),
        pytest.param("rollout x berlin", id="no-rule"),
    ],
)
def test_unknown_dependency_counts_as_changed(question: str) -> None:
    assert list_changed_dependencies({question: "sha256:1"}, build_catalog(format_policy(STAGED))) == (question,)


def test_condition_lists_the_policies_with_an_effect() -> None:
    conditions = build_overridden_condition(override_resources(build_catalog(format_policy(RULE)))[0])

    assert [(condition.type, condition.status, condition.reason) for condition in conditions] == [
        ("Overridden", "True", "OverridePolicyApplied")
    ]
    assert conditions[0].message.endswith("OverridePolicy/shop/sizing")
    assert build_overridden_condition(override_resources(build_catalog(format_policy()))[0]) == ()


def test_warning_treated_as_error_leaves_the_files_unchanged() -> None:
    actual_catalog = build_catalog(
        format_policy({"overriders": {"jsonpatch": [{"path": "/spec/paused", "value": True}]}})
    )
    cluster_overrides = replace(build_overrides(actual_catalog), strict_codes=frozenset({"ReplaceCreatedMember"}))
    files = FileTree({"all.yaml": File(WEB.encode())})

    result = cluster_overrides.override(
        files,
        "berlin",
        CatalogView(DependencyReader(actual_catalog, cluster_overrides.build_dependency_functions())),
        PreviousOverrides(),
    )

    assert [(finding.code, finding.severity) for finding in result.findings] == [("ReplaceCreatedMember", "error")]
    assert result.files == files


@pytest.mark.parametrize(
    ("text", "closed", "codes"),
    [
        pytest.param(WEB, NAMED, ["RuleTextUnknown"], id="a-rule-that-has-not-arrived"),
        pytest.param(WEB, "", [], id="where-it-has-arrived-todays-text-counts"),
        pytest.param(SERVICE, NAMED, [], id="no-resource-has-the-policy"),
    ],
)
def test_unknown_previous_overrides_block_the_package(text: str, closed: str, codes: list[str]) -> None:
    result, _ = override_resources(
        build_catalog(format_policy(STAGED)), text, had=PreviousOverrides(is_known=False), closed=closed
    )

    assert [finding.code for finding in result.findings if finding.code == "RuleTextUnknown"] == codes
    assert (result.files["all.yaml"].data == text.encode()) == (text == SERVICE or bool(closed))
