"""Tests of the cluster inventory: clusters, their labels, and the object that is their target."""

from __future__ import annotations

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.clusters.inventory import ClusterInventory, read_inventory
from reconciler.controllers.repositories import read_repositories
from reconciler.krm.objects import ObjectKey

NAMED = "greenhouse.sap/cluster"


def build_repository(
    name: str, *, namespace: str = "default", more: str = "deployment: true", labels: str = "{}"
) -> str:
    return (
        "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\n"
        f"metadata: {{name: {name}, namespace: {namespace}, labels: {labels}}}\n"
        f"spec: {{{more}, git: {{repo: https://git.example/fleet}}}}\n"
    )


def build_cluster(name: str, *, namespace: str = "acme", labels: str = "{}", version: str = "v1alpha1") -> str:
    metadata = f"{{name: {name}, namespace: {namespace}, labels: {labels}}}"
    return f"apiVersion: greenhouse.sap/{version}\nkind: Cluster\nmetadata: {metadata}\nspec: {{accessMode: direct}}\n"


def build_federated_cluster(name: str, labels: str = "{}", namespace: str = '""') -> str:
    metadata = f"{{name: {name}, namespace: {namespace}, labels: {labels}}}"
    return f"apiVersion: core.kubeadmiral.io/v1alpha1\nkind: FederatedCluster\nmetadata: {metadata}\n"


def build_inventory(*texts: str) -> ClusterInventory:
    catalog = read_catalog(FileTree({f"{number}.yaml": File(item.encode()) for number, item in enumerate(texts)}))
    return read_inventory(catalog, read_repositories(catalog)[0])


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        pytest.param([build_repository("a")], ["a"], id="a-deployment-repository"),
        pytest.param([build_repository("a", more="deployment: false")], [], id="no-deployment-no-cluster"),
        pytest.param([build_cluster("a", version="v9")], ["a"], id="a-cluster-of-any-version"),
        pytest.param([build_federated_cluster("a")], ["a"], id="a-federated-cluster"),
        pytest.param(
            [build_federated_cluster("b"), build_cluster("a"), build_repository("b")],
            ["a", "b"],
            id="one-cluster-for-one-name",
        ),
        pytest.param(["apiVersion: other.example/v1\nkind: Cluster\nmetadata: {name: a}\n"], [], id="of-another-group"),
        pytest.param([build_cluster("a"), build_cluster("a")], [], id="a-cluster-that-is-defined-twice-is-ignored"),
    ],
)
def test_clusters_of_the_inventory(texts: list[str], names: list[str]) -> None:
    assert list(build_inventory(*texts).clusters) == names


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        pytest.param([build_cluster("a")], {NAMED: "a"}, id="its-name-is-a-label"),
        pytest.param(
            [build_cluster("a", labels=f"{{{NAMED}: b}}")], {NAMED: "a"}, id="its-name-replaces-a-declared-label"
        ),
        pytest.param(
            [
                build_repository("a", labels="{x: r, y: r, z: r}"),
                build_federated_cluster("a", "{x: f, y: f}"),
                build_cluster("a", labels="{x: c}"),
            ],
            {"x": "c", "y": "f", "z": "r", NAMED: "a"},
            id="a-cluster-before-a-federated-one-before-a-repository",
        ),
        pytest.param(
            [build_repository("a", labels="{x: r}", more="deployment: false"), build_cluster("a")],
            {NAMED: "a"},
            id="labels-of-a-catalog-with-that-name-are-ignored",
        ),
        pytest.param([build_cluster("a", labels="{x: 1, y: b}")], {"y": "b", NAMED: "a"}, id="labels-are-strings"),
    ],
)
def test_labels_of_all_objects_are_merged(texts: list[str], labels: dict[str, str]) -> None:
    for order in (texts, texts[::-1]):
        assert build_inventory(*order).clusters["a"].labels == labels


REPOSITORY_KEY = ObjectKey("config.porch.kpt.dev", "Repository", "default", "a")
CLUSTER_KEY = ObjectKey("greenhouse.sap", "Cluster", "acme", "a")
FEDERATED_KEY = ObjectKey("core.kubeadmiral.io", "FederatedCluster", "", "a")


@pytest.mark.parametrize(
    ("texts", "home"),
    [
        pytest.param(
            [build_cluster("a"), build_federated_cluster("a"), build_repository("a")],
            REPOSITORY_KEY,
            id="its-repository",
        ),
        pytest.param([build_federated_cluster("a"), build_cluster("a")], CLUSTER_KEY, id="else-the-cluster"),
        pytest.param([build_federated_cluster("a")], FEDERATED_KEY, id="else-the-federated-cluster"),
        pytest.param(
            [build_repository("a", more="deployment: false"), build_cluster("a")],
            CLUSTER_KEY,
            id="never-an-upstream-of-that-name",
        ),
        pytest.param(
            [build_repository("a", more="type: oci"), build_cluster("a")], REPOSITORY_KEY, id="nor-the-fleet-for-a-typo"
        ),
        pytest.param(
            [build_repository("a"), build_repository("a"), build_cluster("a")],
            REPOSITORY_KEY,
            id="nor-for-one-that-is-twice",
        ),
        pytest.param(
            [build_repository("a"), build_repository("a", namespace="cases", more="type: oci")],
            REPOSITORY_KEY,
            id="one-that-can-be-used-first",
        ),
        pytest.param(
            [build_repository("a", namespace="z"), build_repository("a")], REPOSITORY_KEY, id="the-least-of-two"
        ),
    ],
)
def test_target_object_of_a_cluster(texts: list[str], home: ObjectKey) -> None:
    assert build_inventory(*texts).target_keys == {"a": home}


def test_unusable_objects_make_their_names_uncertain() -> None:
    cluster_inventory = build_inventory(
        build_repository("a", more="type: oci"),
        build_cluster("b"),
        build_cluster("b"),
        build_federated_cluster("c"),
        build_federated_cluster("c"),
        build_repository("d"),
    )

    assert cluster_inventory.uncertain_names == {"a", "b", "c"}
    assert list(cluster_inventory.clusters) == ["d"]


@pytest.mark.parametrize(
    ("texts", "places"),
    [
        pytest.param(
            [build_cluster("a", namespace="z"), build_cluster("a")],
            "Cluster acme/a at 1.yaml:1, Cluster z/a at 0.yaml:1",
            id="two-clusters",
        ),
        pytest.param(
            [build_federated_cluster("a"), build_federated_cluster("a", namespace="x")],
            "FederatedCluster x/a at 1.yaml:1",
            id="two-others",
        ),
    ],
)
def test_duplicate_cluster_is_a_conflict(texts: list[str], places: str) -> None:
    cluster_inventory = build_inventory(*texts)

    assert list(cluster_inventory.conflicts) == ["a"]
    assert cluster_inventory.conflicts["a"].code == "DestinationConflict"
    assert places in cluster_inventory.conflicts["a"].message
    assert list(cluster_inventory.clusters) == ["a"]


def test_duplicate_repository_is_not_a_conflict_of_the_inventory() -> None:
    assert build_inventory(build_repository("a"), build_repository("a", namespace="z")).conflicts == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(build_cluster("East"), '"East" must contain only lower-case', id="no-dns-subdomain"),
        pytest.param(build_federated_cluster("east.lock"), ".lock", id="like-a-lock-file"),
        pytest.param(build_repository("East"), '"East" must contain only lower-case', id="a-repository"),
        pytest.param(build_cluster("e" * 246), "at most 245", id="too-long"),
        pytest.param(build_cluster('"a/b"'), "must contain only lower-case", id="two-segments"),
    ],
)
def test_cluster_name_must_be_valid_in_a_branch_name(text: str, message: str) -> None:
    cluster_inventory = build_inventory("x: 1\n---\n" + text)

    assert not cluster_inventory.clusters
    (finding,) = cluster_inventory.findings
    assert (finding.code, str(finding.location).split()[0]) == ("NameNotUsable", "0.yaml:5")
    assert message in finding.message
