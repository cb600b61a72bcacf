"""Tests of the Kubernetes version of each cluster, as its objects state it."""

from __future__ import annotations

import pytest

from reconciler.controllers.clusters.inventory import read_inventory, read_known_clusters
from reconciler.controllers.repositories import read_repositories
from tests.support.catalogs import catalog_of

REPOSITORY = """\
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {{name: {name}, annotations: {annotations}}}
spec: {{deployment: {deployment}, git: {{repo: ./fleet.git}}}}
"""
CLUSTER = (
    "apiVersion: greenhouse.sap/v1alpha1\nkind: Cluster\nmetadata: {{name: berlin, namespace: a, annotations: {}}}\n"
)
VERSION_ANNOTATION = "reconciler.dev/kubernetes-version"


def build_repository(value: str, name: str = "berlin", deployment: str = "true") -> str:
    return REPOSITORY.format(
        name=name, annotations=f"{{{VERSION_ANNOTATION}: {value}}}" if value else "{}", deployment=deployment
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(build_repository('"1.31"'), {"berlin": (1, 31)}, id="a-repository"),
        pytest.param(build_repository(""), {}, id="no-annotation"),
        pytest.param(build_repository('"1.31"', deployment="false"), {}, id="no-cluster"),
        pytest.param(f"{build_repository('v1.31.2')}---\n{CLUSTER.format(f'{{{VERSION_ANNOTATION}: v1.33.0}}')}", {"berlin": (1, 33)},
                     id="a-cluster-replaces-the-version-of-a-repository"),
        pytest.param(f"{build_repository('v1.31.2')}---\n{CLUSTER.format('{}')}", {"berlin": (1, 31)},
                     id="a-cluster-without-the-annotation"),
    ],
)  # fmt: skip
def test_versions_are_read(text: str, expected: dict[str, tuple[int, int]]) -> None:
    catalog = catalog_of(site=text)
    known = read_known_clusters(catalog, read_inventory(catalog, read_repositories(catalog)[0]))

    assert known.versions.by_cluster == expected
    assert known.versions.findings == ()


def test_invalid_version_is_reported_at_its_line() -> None:
    catalog = catalog_of(site=build_repository("newest"))
    known = read_known_clusters(catalog, read_inventory(catalog, read_repositories(catalog)[0]))
    (finding,) = known.versions.findings

    assert known.versions.by_cluster == {}
    assert finding.code == "KubernetesVersionInvalid"
    assert finding.message.endswith('must be a Kubernetes version such as "1.31", but is "newest"')
    assert finding.location.line == 3
    assert [*known.locations] == ["berlin"]
