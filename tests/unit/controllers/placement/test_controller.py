"""Resources on their way: which clusters, which package, which file, and what is told of the rest."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

import pytest

from reconciler.catalog.trace import CatalogView, DependencyReader
from reconciler.controllers.results import ControllerResult, PackageOwner, PackageTarget
from reconciler.krm.objects import ObjectKey
from tests.unit.controllers.placement.placement_world import (
    ALL,
    CLUSTER_POLICY_LABEL,
    POLICY_LABEL,
    Branches,
    by_policy,
    catalog_of,
    cluster_policy,
    clusters_of,
    config_map,
    content,
    files_of,
    finding,
    listing,
    one_file,
    policy,
    room,
    told,
)

EDGE = "{clusterSelector: {tier: edge}}"


@pytest.mark.parametrize(
    ("texts", "clusters"),
    [
        pytest.param([config_map()], [], id="nobody-said-anything"),
        pytest.param([config_map(clusters="'west, east'")], ["east", "west"], id="names"),
        pytest.param([config_map(clusters="'*'")], ALL, id="all"),
        pytest.param([config_map(labels=by_policy()), policy()], ALL, id="a-policy-without-fields"),
        pytest.param([config_map(labels=by_policy()), policy(EDGE)], ["east", "west"], id="a-selector"),
        pytest.param(
            [config_map(labels=by_policy()), policy("{placement: [{cluster: west}, {cluster: north}]}")],
            ["north", "west"],
            id="names-of-a-policy",
        ),
        pytest.param(
            [
                config_map(labels=by_policy()),
                policy(
                    "{placement: [{cluster: west}, {cluster: north}], clusterSelector: {tier: edge},"
                    " clusterAffinity: [{matchExpressions: [{key: zone, operator: In, values: [w, n]}]}]}"
                ),
            ],
            ["west"],
            id="all-that-a-policy-says-must-agree",
        ),
        pytest.param(
            [config_map(labels=by_policy(), clusters="north"), policy(EDGE)],
            ALL,
            id="the-annotation-adds-to-it",
        ),
        pytest.param(
            [config_map(labels={POLICY_LABEL: "edge", CLUSTER_POLICY_LABEL: "edge"}), policy(EDGE), cluster_policy()],
            ["east", "west"],
            id="the-policy-of-the-namespace-counts",
        ),
        pytest.param(
            [config_map(labels=by_policy()), policy(EDGE, namespace="elsewhere")], [], id="not-of-another-namespace"
        ),
        pytest.param(
            [config_map("a", "", kind="v1 Namespace", labels={CLUSTER_POLICY_LABEL: "edge"}), cluster_policy(EDGE)],
            ["east", "west"],
            id="a-cluster-scoped-kind",
        ),
        pytest.param([config_map(clusters="east", kind="greenhouse.sap/v1alpha1 Plugin")], [], id="a-kind-of-a-room"),
    ],
)
def test_which_clusters(texts: list[str], clusters: list[str]) -> None:
    assert clusters_of(room(one_file(*texts))) == clusters


@pytest.mark.parametrize(
    ("text", "package"),
    [
        pytest.param(config_map(clusters="east"), "resources/ferry", id="its-namespace"),
        pytest.param(config_map(namespace="", clusters="east"), "resources/_cluster", id="none"),
        pytest.param(config_map(namespace="default", clusters="east"), "resources/default", id="default-is-one"),
        pytest.param(config_map(clusters="east", kind="v1 Namespace"), "resources/_cluster", id="a-kind-that-has-none"),
        pytest.param(config_map(clusters="east", kind="my.dev/v1 W"), "resources/ferry", id="a-kind-that-nobody-knows"),
    ],
)
def test_which_package(text: str, package: str) -> None:
    (variant,) = room({"a.yaml": text}).variants

    assert variant.target == PackageTarget("acme", "east", package)
    assert variant.owner == PackageOwner(
        ObjectKey("reconciler.dev", "Placement", "", package.rpartition("/")[2]), "reconciler.dev/v1alpha1"
    )
    assert (variant.deployment, variant.deletion, variant.adoption) == (True, "delete", "adoptNone")


def test_files_are_told_apart_on_the_clusters_where_they_meet() -> None:
    result = room(
        one_file(
            config_map("a", kind="v1 Service", clusters="'east, west'"),
            config_map("a", kind="serving.knative.dev/v1 Service", clusters="'*'"),
            config_map("system:a", kind="rbac.authorization.k8s.io/v1 ClusterRole", namespace="", clusters="east"),
        )
    )

    both = ["ferry/service-a.yaml", "ferry/service.serving.knative.dev-a.yaml"]
    assert listing(result) == {
        "east": ["_cluster/clusterrole-system%3Aa.yaml", *both], "north": ["ferry/service-a.yaml"], "west": both,
    }  # fmt: skip


def test_a_file_is_its_document() -> None:
    text = "# head\n" + config_map(clusters="east", labels={"app": "'x'"})

    result = room({"a.yaml": f"x: 1\n---\n{text}\n---\ny: 1\n"})

    assert content(result, "east", "resources/ferry/configmap-tuning.yaml") == text


def facts_of(result: ControllerResult) -> list[Mapping[str, str]]:
    return [variant.dependencies for variant in result.variants]


def test_facts_change_with_the_files_alone() -> None:
    text = config_map(clusters="east")
    (before,) = facts_of(room({"a.yaml": text}))

    assert before == {"resources": files_of(room({"a.yaml": text}).variants[0]).id, "engine": "engine-1"}
    assert facts_of(room({"moved/b.yaml": text, "other.yaml": config_map("b")})) == [before]
    assert facts_of(room({"a.yaml": text.replace("measured", "guessed")})) != [before]


def test_the_mutation_asks_for_every_object_and_changes_nothing() -> None:
    texts = one_file(config_map("a", clusters="east"), config_map("b", "", clusters="east", kind="v1 Namespace"))
    result = room(texts)
    view = CatalogView(DependencyReader(catalog_of(texts)))

    for variant in result.variants:
        mutation = pickle.loads(pickle.dumps(variant.mutation))
        assert mutation(files_of(variant), view).files is files_of(variant)

    assert sorted(view.trace) == ["object v1 ConfigMap ferry a", "object v1 Namespace default b"]
    assert "absent" not in view.trace.values()


def test_the_mutation_asks_for_what_stays_as_it_is_today() -> None:
    sound = {"a.yaml": config_map("a", labels=by_policy()), "p.yaml": policy("{placement: [{cluster: east}]}")}
    without = {"a.yaml": sound["a.yaml"]}
    (variant,) = room(without, Branches.of(room(sound))).variants
    view = CatalogView(DependencyReader(catalog_of(without)))

    variant.mutation(files_of(variant), view)

    assert list(view.trace) == ["object v1 ConfigMap ferry a"]


@pytest.mark.parametrize(
    ("annotations", "adoption"),
    [
        pytest.param(["'true'", "'true'"], "adoptExisting", id="all-say-so"),
        pytest.param(["'true'", "'false'"], "adoptNone", id="one-does-not"),
        pytest.param(["true", "true"], "adoptNone", id="a-boolean-is-no-annotation"),
    ],
)
def test_adoption(annotations: list[str], adoption: str) -> None:
    texts = [
        config_map(name, clusters="east", annotations={"reconciler.dev/adopt": value})
        for name, value in zip("ab", annotations, strict=True)
    ]

    (variant,) = room(one_file(*texts)).variants

    assert variant.adoption == adoption


@pytest.mark.parametrize(
    ("texts", "code", "where", "message"),
    [
        pytest.param(
            [config_map(clusters="'east, moon'")], "UnknownCluster", "app.yaml:6", 'contains "moon"', id="an-unknown-name"
        ),
        pytest.param(
            [config_map(labels=by_policy()), policy("\n  placement:\n  - cluster: east\n  - cluster: moon")],
            "UnknownCluster", "app.yaml:15", 'spec.placement[1].cluster is "moon"', id="an-unknown-name-of-a-policy",
        ),
        pytest.param(
            [config_map(labels=by_policy()), policy("{clusterSelector: {tier: moon}}")],
            "PropagationPolicyMatchesNoCluster", "app.yaml:12", "spec selects no cluster", id="no-cluster",
        ),
        pytest.param([policy()], "PropagationPolicyUnused", "app.yaml:1", "because no resource names", id="no-resource"),
        pytest.param(
            [config_map(labels=by_policy()), policy("{}", "core"), policy("{}", "inner", "elsewhere")],
            "PropagationPolicyNotFound", "app.yaml:6",
            "names PropagationPolicy/ferry/edge, which does not exist; existing policies are core", id="no-policy",
        ),
        pytest.param(
            [config_map(labels=by_policy()), policy("{placement: 5}")], "PropagationPolicyUnusable", "app.yaml:6",
            "which is invalid", id="an-invalid-policy",
        ),
        pytest.param(
            [config_map(labels=by_policy()), policy(), policy()], "PropagationPolicyUnusable", "app.yaml:6",
            "which is defined twice", id="a-policy-that-stands-twice",
        ),
        pytest.param([config_map(clusters="''")], "PlacementInvalid", "app.yaml:6", 'not ""', id="an-empty-annotation"),
        pytest.param(
            [config_map(namespace="Ferry", clusters="east")], "ResourcePathNotUsable", "app.yaml:5",
            '"Ferry" must be lower-case', id="a-namespace-that-is-no-folder",
        ),
        pytest.param(
            [config_map(namespace="a.lock", clusters="east")], "ResourcePathNotUsable", "app.yaml:5", ".lock",
            id="a-namespace-like-a-lock-file",
        ),
        pytest.param(
            [config_map("n" * 250, clusters="east")], "ResourcePathNotUsable", "app.yaml:4", "most 255", id="too-long"
        ),
        pytest.param(
            [config_map(clusters="east", kind="platform/v1alpha1 Addon")], "NotPlaced", "app.yaml:6",
            "a controller reads Addon of platform", id="a-kind-that-is-not-placed",
        ),
    ],
)  # fmt: skip
def test_what_is_told(texts: list[str], code: str, where: str, message: str) -> None:
    actual_finding = finding(room(one_file(*texts)), code)

    assert str(actual_finding.location).split()[0] == where
    assert message in actual_finding.message


def test_one_bad_resource_spoils_itself_only() -> None:
    result = room(
        one_file(config_map("a", clusters="''"), config_map("b", labels=by_policy("gone")), config_map(clusters="east"))
    )

    assert listing(result) == {"east": ["ferry/configmap-tuning.yaml"]}
    assert sorted(told(result)) == ["PlacementInvalid", "PropagationPolicyNotFound"]


def test_resources_that_would_share_a_file_are_both_told() -> None:
    texts = [config_map("a", namespace, kind="v1 Namespace", clusters="east") for namespace in ("", "x")]

    result = room(one_file(*texts))

    assert told(result) == ["ResourcePathNotUsable"] * 2
    assert "Namespace/_cluster/a at app.yaml:1, Namespace/x/a at app.yaml:8" in result.findings[0].message
    assert listing(result) == {}


@pytest.mark.parametrize(
    ("texts", "codes"),
    [
        pytest.param([config_map(labels=by_policy(), clusters="''")], ["PlacementInvalid"], id="that-is-invalid"),
        pytest.param([config_map(labels=by_policy()), config_map()], [], id="that-stands-twice"),
        pytest.param(
            [config_map("a", ns, kind="v1 Namespace", labels={CLUSTER_POLICY_LABEL: "edge"}) for ns in ("", "x")],
            ["ResourcePathNotUsable"] * 2,
            id="that-would-share-its-file",
        ),
    ],
)
def test_a_policy_of_a_resource_in_doubt_is_not_unused(texts: list[str], codes: list[str]) -> None:
    kind = cluster_policy if len(codes) == 2 else policy

    result = room(one_file(*texts, kind(EDGE)))

    assert told(result) == codes
    assert result.statuses[0].fields["resources"] == 0


def test_a_sound_world_is_silent() -> None:
    result = room(one_file(config_map(labels=by_policy()), policy(EDGE)))

    assert result.findings == ()
    assert result.kept_owners == frozenset()
