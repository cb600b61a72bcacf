"""The inventory: one cluster for one name, whoever speaks of it, and where each lives."""

from __future__ import annotations

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.clusters.inventory import ClusterInventory, read_inventory
from reconciler.controllers.repositories import read_repositories
from reconciler.krm.objects import ObjectKey

NAMED = "greenhouse.sap/cluster"


def repository(name: str, *, namespace: str = "default", more: str = "deployment: true", labels: str = "{}") -> str:
    return (
        "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\n"
        f"metadata: {{name: {name}, namespace: {namespace}, labels: {labels}}}\n"
        f"spec: {{{more}, git: {{repo: https://git.example/fleet}}}}\n"
    )


def cluster(name: str, *, namespace: str = "acme", labels: str = "{}", version: str = "v1alpha1") -> str:
    metadata = f"{{name: {name}, namespace: {namespace}, labels: {labels}}}"
    return f"apiVersion: greenhouse.sap/{version}\nkind: Cluster\nmetadata: {metadata}\nspec: {{accessMode: direct}}\n"


def federated(name: str, labels: str = "{}", namespace: str = '""') -> str:
    metadata = f"{{name: {name}, namespace: {namespace}, labels: {labels}}}"
    return f"apiVersion: core.kubeadmiral.io/v1alpha1\nkind: FederatedCluster\nmetadata: {metadata}\n"


def inventory(*texts: str) -> ClusterInventory:
    catalog = read_catalog(FileTree({f"{number}.yaml": File(item.encode()) for number, item in enumerate(texts)}))
    return read_inventory(catalog, read_repositories(catalog)[0])


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        pytest.param([repository("a")], ["a"], id="a-deployment-repository"),
        pytest.param([repository("a", more="deployment: false")], [], id="no-deployment-no-cluster"),
        pytest.param([cluster("a", version="v9")], ["a"], id="a-cluster-of-any-version"),
        pytest.param([federated("a")], ["a"], id="a-federated-cluster"),
        pytest.param([federated("b"), cluster("a"), repository("b")], ["a", "b"], id="one-cluster-for-one-name"),
        pytest.param(["apiVersion: other.example/v1\nkind: Cluster\nmetadata: {name: a}\n"], [], id="of-another-group"),
        pytest.param([cluster("a"), cluster("a")], [], id="what-stands-twice-does-not-count"),
    ],
)
def test_which_clusters_there_are(texts: list[str], names: list[str]) -> None:
    assert list(inventory(*texts).clusters) == names


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        pytest.param([cluster("a")], {NAMED: "a"}, id="its-name-is-a-label"),
        pytest.param([cluster("a", labels=f"{{{NAMED}: b}}")], {NAMED: "a"}, id="whatever-else-says-it"),
        pytest.param(
            [
                repository("a", labels="{x: r, y: r, z: r}"),
                federated("a", "{x: f, y: f}"),
                cluster("a", labels="{x: c}"),
            ],
            {"x": "c", "y": "f", "z": "r", NAMED: "a"},
            id="a-cluster-before-a-federated-one-before-a-repository",
        ),
        pytest.param(
            [repository("a", labels="{x: r}", more="deployment: false"), cluster("a")],
            {NAMED: "a"},
            id="another-repository-of-that-name-says-nothing",
        ),
        pytest.param([cluster("a", labels="{x: 1, y: b}")], {"y": "b", NAMED: "a"}, id="labels-are-strings"),
    ],
)
def test_labels_unite(texts: list[str], labels: dict[str, str]) -> None:
    for order in (texts, texts[::-1]):
        assert inventory(*order).clusters["a"].labels == labels


REPOSITORY_KEY = ObjectKey("config.porch.kpt.dev", "Repository", "default", "a")
CLUSTER_KEY = ObjectKey("greenhouse.sap", "Cluster", "acme", "a")
FEDERATED_KEY = ObjectKey("core.kubeadmiral.io", "FederatedCluster", "", "a")


@pytest.mark.parametrize(
    ("texts", "home"),
    [
        pytest.param([cluster("a"), federated("a"), repository("a")], REPOSITORY_KEY, id="its-repository"),
        pytest.param([federated("a"), cluster("a")], CLUSTER_KEY, id="else-the-cluster"),
        pytest.param([federated("a")], FEDERATED_KEY, id="else-the-federated-cluster"),
        pytest.param(
            [repository("a", more="deployment: false"), cluster("a")], CLUSTER_KEY, id="never-an-upstream-of-that-name"
        ),
        pytest.param([repository("a", more="type: oci"), cluster("a")], REPOSITORY_KEY, id="nor-the-fleet-for-a-typo"),
        pytest.param([repository("a"), repository("a"), cluster("a")], REPOSITORY_KEY, id="nor-for-one-that-is-twice"),
        pytest.param(
            [repository("a"), repository("a", namespace="cases", more="type: oci")],
            REPOSITORY_KEY,
            id="one-that-can-be-used-first",
        ),
        pytest.param([repository("a", namespace="z"), repository("a")], REPOSITORY_KEY, id="the-least-of-two"),
    ],
)
def test_where_a_cluster_lives(texts: list[str], home: ObjectKey) -> None:
    assert inventory(*texts).target_keys == {"a": home}


def test_what_cannot_be_used_is_in_doubt() -> None:
    cluster_inventory = inventory(
        repository("a", more="type: oci"), cluster("b"), cluster("b"), federated("c"), federated("c"), repository("d")
    )

    assert cluster_inventory.uncertain_names == {"a", "b", "c"}
    assert list(cluster_inventory.clusters) == ["d"]


@pytest.mark.parametrize(
    ("texts", "places"),
    [
        pytest.param(
            [cluster("a", namespace="z"), cluster("a")],
            "Cluster/acme/a at 1.yaml:1, Cluster/z/a at 0.yaml:1",
            id="two-clusters",
        ),
        pytest.param(
            [federated("a"), federated("a", namespace="x")], "FederatedCluster/x/a at 1.yaml:1", id="two-others"
        ),
    ],
)
def test_a_name_is_one_cluster(texts: list[str], places: str) -> None:
    cluster_inventory = inventory(*texts)

    assert list(cluster_inventory.conflicts) == ["a"]
    assert cluster_inventory.conflicts["a"].code == "DestinationConflict"
    assert places in cluster_inventory.conflicts["a"].message
    assert list(cluster_inventory.clusters) == ["a"]


def test_two_repositories_are_told_by_planning() -> None:
    assert inventory(repository("a"), repository("a", namespace="z")).conflicts == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(cluster("East"), '"East" must be lower-case', id="no-dns-subdomain"),
        pytest.param(federated("east.lock"), ".lock", id="like-a-lock-file"),
        pytest.param(repository("East"), '"East" must be lower-case', id="a-repository"),
        pytest.param(cluster("e" * 246), "at most 245", id="too-long"),
        pytest.param(cluster('"a/b"'), "must be lower-case", id="two-segments"),
    ],
)
def test_a_name_must_be_one_of_a_branch(text: str, why: str) -> None:
    cluster_inventory = inventory("x: 1\n---\n" + text)

    assert not cluster_inventory.clusters
    (finding,) = cluster_inventory.findings
    assert (finding.code, str(finding.location).split()[0]) == ("NameNotUsable", "0.yaml:5")
    assert why in finding.message
