"""The notation of catalogs, clusters and packages on the command line, and the files of a new config."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from reconciler.api.manifest import read_manifest
from reconciler.api.porch.package_variant_set import PackageVariantSet
from reconciler.api.porch.repository import Repository
from reconciler.krm.yaml import parse_yaml
from reconciler.output.scaffold.entries import (
    CatalogEntry,
    ClusterEntry,
    PackageEntry,
    Scaffold,
    build_upstream,
    check_scaffold,
    parse_catalog,
    parse_cluster,
    parse_clusters_file,
    parse_package,
)
from reconciler.output.scaffold.files import build_files

DESCRIPTIONS = {"config.url": "The config.", "fleet.url": "The fleet."}
FLEET = "https://git.example.com/fleet.git"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("catalog=./catalog.git", CatalogEntry("catalog", "./catalog.git")),
        ("catalog=https://example.com/c.git#v2", CatalogEntry("catalog", "https://example.com/c.git", "v2")),
        ("apps=oci://example.com/apps", CatalogEntry("apps", "oci://example.com/apps", "", "oci")),
        ("charts:helm=oci://example.com/charts", CatalogEntry("charts", "oci://example.com/charts", "", "helm")),
        ("c:git=git@example.com:team/c", CatalogEntry("c", "git@example.com:team/c", "", "git")),
    ],
)
def test_a_catalog_is_parsed(text: str, expected: CatalogEntry) -> None:
    assert parse_catalog(text) == expected


CLUSTERS_CSV = "name,region,env\nberlin,eu,prod\nparis,eu,\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CLUSTERS_CSV, [("berlin", {"region": "eu", "env": "prod"}), ("paris", {"region": "eu"})]),
        ("\ufeffregion,name\nus,ohio\n\n", [("ohio", {"region": "us"})]),
        ("kind-berlin\nkind-paris\n", [("kind-berlin", {}), ("kind-paris", {})]),
    ],
    ids=["csv", "column-order-and-byte-order-mark", "names"],
)
def test_a_file_of_clusters_is_parsed(text: str, expected: list[tuple[str, dict[str, str]]]) -> None:
    assert parse_clusters_file(text) == tuple(ClusterEntry(name, labels) for name, labels in expected)


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_catalog, "catalog", "'catalog' must have the form NAME=URL, NAME=URL#BRANCH or NAME:TYPE=URL"),
        (parse_catalog, "catalog=https://ada:secret@example.com/c.git", "must not contain a user name, password"),
        (parse_catalog, "c:svn=https://example.com", 'must be "git", "helm" or "oci", but is "svn"'),
        (parse_catalog, "c=oci://example.com/c#main", "#BRANCH requires a Git repository"),
        (parse_catalog, "C=./c.git", 'the name of the catalog is invalid: "C" must contain only lower-case'),
        (parse_cluster, "berlin,region", "'region' must have the form KEY=VALUE"),
        (parse_cluster, "berlin,region=a b", 'the label "region" is invalid: the value "a b"'),
        (parse_cluster, "admin@berlin", 'the name of the cluster is invalid: "admin@berlin"'),
        (parse_clusters_file, "name,region\nberlin\n", "line 2: must have 2 columns (name, region), but has 1"),
        (parse_clusters_file, "admin@berlin\n", 'line 1: the name of the cluster is invalid: "admin@berlin"'),
        (parse_clusters_file, "\n", "the file must contain at least one cluster"),
        (parse_package, "gateway", "'gateway' must have the form CATALOG/PACKAGE, CATALOG/PACKAGE@REV"),
        (parse_package, "catalog/gateway@", "must have the form"),
        (parse_package, "catalog/../gateway", "the path of the package is invalid"),
    ],
)  # fmt: skip
def test_an_invalid_value_is_refused(parse: Callable[[str], object], text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        parse(text)

    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "version", "expected"),
    [
        ("git", "v3", {"package": "ksm", "revision": "v3"}),
        ("git", "main", {"package": "ksm", "revision": -1}),
        ("git", "stable", {"package": "ksm", "tag": "stable"}),
        ("git", "", {"package": "ksm", "tag": "latest"}),
        ("helm", "5.27.0", {"chart": "ksm", "version": "5.27.0"}),
        ("helm", "", {"chart": "ksm", "version": "*"}),
        ("oci", "^1.2", {"package": "ksm", "version": "^1.2"}),
        ("oci", "1.2.3", {"package": "ksm", "version": "1.2.3"}),
        ("oci", "v1", {"package": "ksm", "tag": "v1"}),
        ("oci", f"sha256:{'0' * 64}", {"package": "ksm", "digest": f"sha256:{'0' * 64}"}),
    ],
)
def test_the_version_of_a_package_becomes_a_field_of_the_upstream(
    kind: str, version: str, expected: dict[str, object]
) -> None:
    catalog = CatalogEntry("c", "https://example.com", "", kind)  # type: ignore[arg-type]

    assert build_upstream(PackageEntry("c", "ksm", version), catalog) == {"repo": "c", **expected}


def scaffold(**changes: object) -> Scaffold:
    fields = {
        "catalogs": (CatalogEntry("catalog", "https://git.example.com/catalog.git", "", "git"),),
        "fleet_url": FLEET,
        "clusters": (ClusterEntry("berlin", {"region": "eu"}),),
        "packages": (PackageEntry("catalog", "team/gateway", "v1"),),
    }
    return Scaffold(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"packages": (PackageEntry("other", "gateway"),)}, "the catalog 'other' of 'gateway' is unknown"),
        ({"packages": (PackageEntry("catalog", "a/gateway"), PackageEntry("catalog", "b/gateway"))}, "repeated names"),
        ({"packages": (PackageEntry("catalog", "clusters"),)}, "repeated names: clusters"),
        ({"clusters": (ClusterEntry("catalog"),)}, "repeated names: catalog"),
        ({"selector": {"region": "us"}}, "no cluster has the labels 'region=us'"),
    ],
)
def test_an_inconsistent_config_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_scaffold(scaffold(**changes))


def test_a_package_is_installed_on_the_clusters_and_not_in_the_catalog() -> None:
    files = build_files(scaffold(), DESCRIPTIONS)

    assert files["config/gateway.yaml"].data.decode() == (
        "apiVersion: config.porch.kpt.dev/v1alpha2\n"
        "kind: PackageVariantSet\n"
        "metadata:\n"
        "  name: gateway\n"
        "spec:\n"
        "  upstream:\n"
        "    repo: catalog\n"
        "    package: team/gateway\n"
        "    revision: v1\n"
        "  targets:\n"
        "  - repositorySelector:\n"
        "      matchLabels:\n"
        '        reconciler.dev/cluster: "true"\n'
    )
    assert '    reconciler.dev/cluster: "true"\n' in files["config/clusters.yaml"].data.decode()


@pytest.mark.parametrize(
    ("catalog", "expected"),
    [
        (
            CatalogEntry("c", "https://charts.example.com", "", "helm"),
            "spec:\n  type: helm\n  helm:\n    url: https://charts.example.com\n",
        ),
        (
            CatalogEntry("c", "oci://example.com/charts", "", "helm"),
            "spec:\n  type: helm\n  helm:\n    url: oci://example.com/charts\n",
        ),
        (
            CatalogEntry("c", "oci://example.com/apps", "", "oci"),
            "spec:\n  type: oci\n  oci:\n    registry: example.com/apps\n",
        ),
        (CatalogEntry("c", "./c.git", "v2", "git"), "spec:\n  type: git\n  git:\n    repo: ./c.git\n    branch: v2\n"),
    ],
    ids=["helm", "helm-in-a-registry", "oci", "git"],
)
def test_a_catalog_becomes_a_repository_of_its_type(catalog: CatalogEntry, expected: str) -> None:
    files = build_files(scaffold(catalogs=(catalog,), packages=()), DESCRIPTIONS)

    assert files["config/repositories.yaml"].data.decode().endswith(expected)


def test_a_chart_has_a_namespace() -> None:
    catalog = CatalogEntry("charts", "https://charts.example.com", "", "helm")
    packages = (PackageEntry("charts", "ksm", "5.27.0"),)
    files = build_files(scaffold(catalogs=(catalog,), packages=packages, selector={"region": "eu"}), DESCRIPTIONS)

    assert files["config/ksm.yaml"].data.decode().endswith(
        "  upstream:\n    repo: charts\n    chart: ksm\n    version: 5.27.0\n"
        "  targets:\n  - repositorySelector:\n      matchLabels:\n        region: eu\n"
        "    template:\n      helm:\n        namespace: ksm\n"
    )  # fmt: skip


def test_equal_content_gives_equal_files_with_only_the_changed_settings() -> None:
    files = build_files(scaffold(), DESCRIPTIONS)

    assert files == build_files(scaffold(), DESCRIPTIONS)
    assert files["reconciler.yaml"].data.decode() == (
        "# The settings that differ from the defaults.\n"
        f"config:\n  # The config.\n  url: config\nfleet:\n  # The fleet.\n  url: {FLEET}\n"
    )
    assert files["README.md"].data.decode().count("\nreconciler ") == 5


@pytest.mark.parametrize("version", ["", "1.0.0", "^1"])
@pytest.mark.parametrize(
    ("kind", "url"),
    [
        ("git", "https://git.example.com/c.git"),
        ("helm", "https://charts.example.com"),
        ("helm", "oci://example.com/charts"),
        ("oci", "oci://example.com/apps"),
    ],
)
def test_the_objects_of_each_type_are_valid(kind: str, url: str, version: str) -> None:
    catalog = CatalogEntry("c", url, "", kind)  # type: ignore[arg-type]
    packages = (PackageEntry("c", "ksm", "" if kind == "git" else version),)
    files = build_files(scaffold(catalogs=(catalog,), packages=packages), DESCRIPTIONS)

    models = {"Repository": Repository, "PackageVariantSet": PackageVariantSet}
    documents = [
        document.data
        for path, file in files.items()
        if path.startswith("config/")
        for document in parse_yaml(file.data).documents
    ]
    assert [document["kind"] for document in documents] == ["Repository", "PackageVariantSet", "Repository"]
    assert [read_manifest(models[document["kind"]], document).errors for document in documents] == [()] * 3
