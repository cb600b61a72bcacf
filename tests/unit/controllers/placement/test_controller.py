"""Tests of the placement controller: the cluster, package and file of each resource, and the findings."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

import pytest

from reconciler.catalog.trace import CatalogView, DependencyReader
from reconciler.controllers.results import ControllerResult, PackageOwner, PackageTarget
from reconciler.krm.objects import ObjectKey
from tests.unit.controllers.placement.controller_world import (
    ALL,
    CLUSTER_POLICY_LABEL,
    POLICY_LABEL,
    FakeBranches,
    build_catalog,
    build_cluster_policy,
    build_config_map,
    build_policy,
    build_policy_label,
    build_single_file,
    find_finding,
    list_clusters,
    list_codes,
    list_files,
    read_content,
    read_files,
    run_controller,
)

EDGE = "{clusterSelector: {tier: edge}}"


@pytest.mark.parametrize(
    ("texts", "clusters"),
    [
        pytest.param([build_config_map()], [], id="no-placement"),
        pytest.param([build_config_map(clusters="'west, east'")], ["east", "west"], id="names"),
        pytest.param([build_config_map(clusters="'*'")], ALL, id="all"),
        pytest.param(
            [build_config_map(labels=build_policy_label()), build_policy()], ALL, id="a-policy-without-fields"
        ),
        pytest.param(
            [build_config_map(labels=build_policy_label()), build_policy(EDGE)], ["east", "west"], id="a-selector"
        ),
        pytest.param(
            [
                build_config_map(labels=build_policy_label()),
                build_policy("{placement: [{cluster: west}, {cluster: north}]}"),
            ],
            ["north", "west"],
            id="names-of-a-policy",
        ),
        pytest.param(
            [
                build_config_map(labels=build_policy_label()),
                build_policy(
                    "{placement: [{cluster: west}, {cluster: north}], clusterSelector: {tier: edge},"
                    " clusterAffinity: [{matchExpressions: [{key: zone, operator: In, values: [w, n]}]}]}"
                ),
            ],
            ["west"],
            id="all-selectors-of-a-policy-must-match",
        ),
        pytest.param(
            [build_config_map(labels=build_policy_label(), clusters="north"), build_policy(EDGE)],
            ALL,
            id="the-annotation-adds-to-it",
        ),
        pytest.param(
            [
                build_config_map(labels={POLICY_LABEL: "edge", CLUSTER_POLICY_LABEL: "edge"}),
                build_policy(EDGE),
                build_cluster_policy(),
            ],
            ["east", "west"],
            id="the-policy-of-the-namespace-counts",
        ),
        pytest.param(
            [build_config_map(labels=build_policy_label()), build_policy(EDGE, namespace="elsewhere")],
            [],
            id="not-of-another-namespace",
        ),
        pytest.param(
            [
                build_config_map("a", "", kind="v1 Namespace", labels={CLUSTER_POLICY_LABEL: "edge"}),
                build_cluster_policy(EDGE),
            ],
            ["east", "west"],
            id="a-cluster-scoped-kind",
        ),
        pytest.param(
            [build_config_map(clusters="east", kind="greenhouse.sap/v1alpha1 Plugin")], [], id="a-kind-of-a-controller"
        ),
    ],
)
def test_resource_is_placed_on_the_selected_clusters(texts: list[str], clusters: list[str]) -> None:
    assert list_clusters(run_controller(build_single_file(*texts))) == clusters


@pytest.mark.parametrize(
    ("text", "package"),
    [
        pytest.param(build_config_map(clusters="east"), "resources/ferry", id="its-namespace"),
        pytest.param(build_config_map(namespace="", clusters="east"), "resources/_cluster", id="none"),
        pytest.param(build_config_map(namespace="default", clusters="east"), "resources/default", id="default-is-one"),
        pytest.param(
            build_config_map(clusters="east", kind="v1 Namespace"), "resources/_cluster", id="a-kind-that-has-none"
        ),
        pytest.param(build_config_map(clusters="east", kind="my.dev/v1 W"), "resources/ferry", id="an-unknown-kind"),
    ],
)
def test_package_follows_from_the_namespace(text: str, package: str) -> None:
    (variant,) = run_controller({"a.yaml": text}).variants

    assert variant.target == PackageTarget("acme", "east", package)
    assert variant.owner == PackageOwner(
        ObjectKey("reconciler.dev", "Placement", "", package.rpartition("/")[2]), "reconciler.dev/v1alpha1"
    )
    assert (variant.deployment, variant.deletion, variant.adoption) == (True, "delete", "adoptNone")


def test_file_names_are_unique_on_each_cluster() -> None:
    result = run_controller(
        build_single_file(
            build_config_map("a", kind="v1 Service", clusters="'east, west'"),
            build_config_map("a", kind="serving.knative.dev/v1 Service", clusters="'*'"),
            build_config_map(
                "system:a", kind="rbac.authorization.k8s.io/v1 ClusterRole", namespace="", clusters="east"
            ),
        )
    )

    both = ["ferry/service-a.yaml", "ferry/service.serving.knative.dev-a.yaml"]
    assert list_files(result) == {
        "east": ["_cluster/clusterrole-system%3Aa.yaml", *both], "north": ["ferry/service-a.yaml"], "west": both,
    }  # fmt: skip


def test_file_contains_the_bytes_of_its_document() -> None:
    text = "# head\n" + build_config_map(clusters="east", labels={"app": "'x'"})

    result = run_controller({"a.yaml": f"x: 1\n---\n{text}\n---\ny: 1\n"})

    assert read_content(result, "east", "resources/ferry/configmap-tuning.yaml") == text


def list_dependencies(result: ControllerResult) -> list[Mapping[str, str]]:
    return [variant.dependencies for variant in result.variants]


def test_dependencies_change_only_with_the_files() -> None:
    text = build_config_map(clusters="east")
    (before,) = list_dependencies(run_controller({"a.yaml": text}))

    assert before == {"resources": read_files(run_controller({"a.yaml": text}).variants[0]).id, "engine": "engine-1"}
    assert list_dependencies(run_controller({"moved/b.yaml": text, "other.yaml": build_config_map("b")})) == [before]
    assert list_dependencies(run_controller({"a.yaml": text.replace("measured", "guessed")})) != [before]


def test_mutation_requests_each_object_and_changes_nothing() -> None:
    texts = build_single_file(
        build_config_map("a", clusters="east"), build_config_map("b", "", clusters="east", kind="v1 Namespace")
    )
    result = run_controller(texts)
    view = CatalogView(DependencyReader(build_catalog(texts)))

    for variant in result.variants:
        mutation = pickle.loads(pickle.dumps(variant.mutation))
        assert mutation(read_files(variant), view).files is read_files(variant)

    assert sorted(view.trace) == ["object v1 ConfigMap ferry a", "object v1 Namespace default b"]
    assert "absent" not in view.trace.values()


def test_mutation_requests_the_inputs_of_a_retained_file() -> None:
    valid = {
        "a.yaml": build_config_map("a", labels=build_policy_label()),
        "p.yaml": build_policy("{placement: [{cluster: east}]}"),
    }
    without_policy = {"a.yaml": valid["a.yaml"]}
    (variant,) = run_controller(without_policy, FakeBranches.of(run_controller(valid))).variants
    view = CatalogView(DependencyReader(build_catalog(without_policy)))

    variant.mutation(read_files(variant), view)

    assert list(view.trace) == ["object v1 ConfigMap ferry a"]


@pytest.mark.parametrize(
    ("annotations", "adoption"),
    [
        pytest.param(["'true'", "'true'"], "adoptExisting", id="all-say-so"),
        pytest.param(["'true'", "'false'"], "adoptNone", id="one-does-not"),
        pytest.param(["true", "true"], "adoptNone", id="a-boolean-is-no-annotation"),
    ],
)
def test_adoption_requires_the_annotation_on_all_resources(annotations: list[str], adoption: str) -> None:
    texts = [
        build_config_map(name, clusters="east", annotations={"reconciler.dev/adopt": value})
        for name, value in zip("ab", annotations, strict=True)
    ]

    (variant,) = run_controller(build_single_file(*texts)).variants

    assert variant.adoption == adoption


@pytest.mark.parametrize(
    ("texts", "code", "where", "message"),
    [
        pytest.param(
            [build_config_map(clusters="'east, moon'")], "UnknownCluster", "app.yaml:6", 'contains "moon"', id="an-unknown-name"
        ),
        pytest.param(
            [build_config_map(labels=build_policy_label()), build_policy("\n  placement:\n  - cluster: east\n  - cluster: moon")],
            "UnknownCluster", "app.yaml:15", 'spec.placement[1].cluster is "moon"', id="an-unknown-name-of-a-policy",
        ),
        pytest.param(
            [build_config_map(labels=build_policy_label()), build_policy("{clusterSelector: {tier: moon}}")],
            "PropagationPolicyMatchesNoCluster", "app.yaml:12", "spec selects no cluster", id="no-cluster",
        ),
        pytest.param([build_policy()], "PropagationPolicyUnused", "app.yaml:1", "because no resource refers", id="no-resource"),
        pytest.param(
            [build_config_map(labels=build_policy_label()), build_policy("{}", "core"), build_policy("{}", "inner", "elsewhere")],
            "PropagationPolicyNotFound", "app.yaml:6",
            "refers to PropagationPolicy ferry/edge, but this policy does not exist; existing policies: core", id="no-policy",
        ),
        pytest.param(
            [build_config_map(labels=build_policy_label()), build_policy("{placement: 5}")], "PropagationPolicyUnusable", "app.yaml:6",
            "this policy is invalid", id="an-invalid-policy",
        ),
        pytest.param(
            [build_config_map(labels=build_policy_label()), build_policy(), build_policy()], "PropagationPolicyUnusable", "app.yaml:6",
            "this policy is defined twice", id="a-policy-that-is-defined-twice",
        ),
        pytest.param([build_config_map(clusters="''")], "PlacementInvalid", "app.yaml:6", 'but is ""', id="an-empty-annotation"),
        pytest.param(
            [build_config_map(namespace="Ferry", clusters="east")], "ResourcePathNotUsable", "app.yaml:5",
            '"Ferry" must contain only lower-case', id="a-namespace-that-is-no-folder",
        ),
        pytest.param(
            [build_config_map(namespace="a.lock", clusters="east")], "ResourcePathNotUsable", "app.yaml:5", ".lock",
            id="a-namespace-like-a-lock-file",
        ),
        pytest.param(
            [build_config_map("n" * 250, clusters="east")], "ResourcePathNotUsable", "app.yaml:4", "most 255", id="too-long"
        ),
        pytest.param(
            [build_config_map(clusters="east", kind="platform/v1alpha1 Addon")], "NotPlaced", "app.yaml:6",
            "a controller reads objects of the kind Addon (group platform)", id="a-kind-that-is-not-placed",
        ),
    ],
)  # fmt: skip
def test_invalid_placement_is_reported(texts: list[str], code: str, where: str, message: str) -> None:
    actual_finding = find_finding(run_controller(build_single_file(*texts)), code)

    assert str(actual_finding.location).split()[0] == where
    assert message in actual_finding.message


def test_invalid_resource_does_not_affect_others() -> None:
    result = run_controller(
        build_single_file(
            build_config_map("a", clusters="''"),
            build_config_map("b", labels=build_policy_label("gone")),
            build_config_map(clusters="east"),
        )
    )

    assert list_files(result) == {"east": ["ferry/configmap-tuning.yaml"]}
    assert sorted(list_codes(result)) == ["PlacementInvalid", "PropagationPolicyNotFound"]


def test_all_resources_with_the_same_file_are_reported() -> None:
    texts = [build_config_map("a", namespace, kind="v1 Namespace", clusters="east") for namespace in ("", "x")]

    result = run_controller(build_single_file(*texts))

    assert list_codes(result) == ["ResourcePathNotUsable"] * 2
    assert "Namespace a at app.yaml:1 and Namespace x/a at app.yaml:8" in result.findings[0].message
    assert list_files(result) == {}


@pytest.mark.parametrize(
    ("texts", "codes"),
    [
        pytest.param(
            [build_config_map(labels=build_policy_label(), clusters="''")], ["PlacementInvalid"], id="that-is-invalid"
        ),
        pytest.param(
            [build_config_map(labels=build_policy_label()), build_config_map()],
            [],
            id="a-resource-that-is-defined-twice",
        ),
        pytest.param(
            [build_config_map("a", ns, kind="v1 Namespace", labels={CLUSTER_POLICY_LABEL: "edge"}) for ns in ("", "x")],
            ["ResourcePathNotUsable"] * 2,
            id="that-would-share-its-file",
        ),
    ],
)
def test_policy_of_an_uncertain_resource_is_not_unused(texts: list[str], codes: list[str]) -> None:
    kind = build_cluster_policy if len(codes) == 2 else build_policy

    result = run_controller(build_single_file(*texts, kind(EDGE)))

    assert list_codes(result) == codes
    assert result.statuses[0].fields["resources"] == 0


def test_valid_config_has_no_findings() -> None:
    result = run_controller(build_single_file(build_config_map(labels=build_policy_label()), build_policy(EDGE)))

    assert result.findings == ()
    assert result.kept_owners == frozenset()
