"""Package requests become sets, with values per label and per cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.adopt.chart_options import MAX_CHOICES
from reconciler.adopt.generated import GeneratedConfig
from reconciler.adopt.grouping import generate_from_requests, generate_separately
from reconciler.adopt.requests import (
    HelmRequest,
    KustomizeRequest,
    PackageRequest,
    RepositoryReference,
    SourceRequest,
    UpstreamReference,
)
from reconciler.adopt.units import Cluster
from reconciler.catalog.files import File, FileTree
from reconciler.lazy_dataclasses import replace

REGIONS = {"berlin": "eu", "lyon": "eu", "ohio": "us", "utah": "us"}
CLUSTERS = tuple(Cluster(name, {"region": region}) for name, region in REGIONS.items())
GIT = RepositoryReference("git", "https://git.example.com/apps.git")
CHARTS = RepositoryReference("helm", "https://charts.example.com/stable")


def request(
    cluster: str, package: str = "web", set_name: str = "all", helm: HelmRequest | None = None
) -> PackageRequest:
    upstream = (
        UpstreamReference(CHARTS, package, (("version", "1.0.0"),))
        if helm
        else UpstreamReference(GIT, f"apps/{package}", (("revision", -1),))
    )
    return PackageRequest(set_name, f"{package}-{cluster}", cluster, package, upstream, helm)


def chart(cluster: str, values: Mapping[str, Any] = {}, **fields: Any) -> PackageRequest:
    return request(
        cluster, helm=HelmRequest(**{"release_name": "web", "namespace": "shop", "values": values, **fields})
    )


def generate(*requests: PackageRequest) -> GeneratedConfig:
    return generate_from_requests(requests, CLUSTERS)


def test_one_source_on_all_clusters_becomes_one_set_with_its_repository() -> None:
    generated = generate(*map(request, REGIONS))

    (package,) = generated.packages
    assert (package.owner, package.packages, package.clusters) == ("PackageVariantSet/all", ("web",), tuple(REGIONS))
    assert package.documents[0]["spec"] == {
        "upstream": {"repo": "apps", "package": "apps/web", "revision": -1},
        "targets": [
            {
                "repositorySelector": {"matchLabels": {"reconciler.dev/cluster": "true"}},
                "template": {"adoptionPolicy": "adoptExisting", "downstream": {"package": "web"}},
            }
        ],
    }
    assert [document["spec"] for document in generated.repositories] == [
        {"type": "git", "git": {"repo": "https://git.example.com/apps.git"}}
    ]


def test_packages_on_the_same_clusters_become_upstreams_of_one_set() -> None:
    (package,) = generate(*(request(cluster, name) for cluster in REGIONS for name in ("web", "db"))).packages

    assert package.packages == ("db", "web")
    upstreams = package.documents[0]["spec"]["upstreams"]
    assert [(upstream["package"], upstream["template"]) for upstream in upstreams] == [
        ("apps/db", {"downstream": {"package": "db"}}),
        ("apps/web", {"downstream": {"package": "web"}}),
    ]


def test_packages_on_other_clusters_become_their_own_objects() -> None:
    generated = generate(*map(request, REGIONS), request("berlin", "db"), request("ohio", "web2", "single"))

    assert [(package.owner, package.clusters) for package in generated.packages] == [
        ("PackageVariant/all-db-berlin", ("berlin",)),
        ("PackageVariantSet/all-web", tuple(REGIONS)),
        ("PackageVariant/single", ("ohio",)),
    ]


def build_template(*requests: PackageRequest) -> tuple[dict[str, Any], dict[str, str]]:
    (package,) = generate(*requests).packages
    owner, *config_maps = package.documents
    helm: dict[str, Any] = owner["spec"]["targets"][0]["template"]["helm"]
    return helm, {document["metadata"]["name"]: document["data"]["values.yaml"] for document in config_maps}


REFERENCE = {"kind": "ConfigMap", "optional": True}


@pytest.mark.parametrize(
    ("values", "expected", "config_maps"),
    [
        ({cluster: {"a": {"b": 1, "c": [1]}} for cluster in REGIONS}, {"values": {"a": {"b": 1, "c": [1]}}}, {}),
        (
            {cluster: {"zone": f"{region}-x", "n": 1} for cluster, region in REGIONS.items()},
            {
                "values": {"n": 1},
                "valuesFrom": [{**REFERENCE, "nameExpr": "'all-region-' + repository.labels['region']"}],
            },
            {"all-region-eu": "zone: eu-x\n", "all-region-us": "zone: us-x\n"},
        ),
        (
            {"berlin": {"n": 2}, "lyon": {"n": 1}, "ohio": {"n": 1}, "utah": {"n": 1}},
            {"parameterExprs": [{"name": "n", "valueExpr": "repository.name in ['berlin'] ? dyn(2) : dyn(1)"}]},
            {},
        ),
        (
            {cluster: {"host": f"{cluster}.example.com"} for cluster in REGIONS},
            {"parameterExprs": [{"name": "host", "valueExpr": "repository.name + '.example.com'"}]},
            {},
        ),
        (
            {"berlin": {"size": 2}, "lyon": {}, "ohio": {}, "utah": {}},
            {"valuesFrom": [{**REFERENCE, "nameExpr": "'all-cluster-' + repository.name"}]},
            {"all-cluster-berlin": "size: 2\n"},
        ),
        (
            {"berlin": {"size": 2**63}, "lyon": {"size": 1}},
            {"valuesFrom": [{**REFERENCE, "nameExpr": "'all-cluster-' + repository.name"}]},
            {"all-cluster-berlin": f"size: {2**63}\n", "all-cluster-lyon": "size: 1\n"},
        ),
    ],
    ids=["equal", "label", "cluster", "name-in-the-value", "only-on-one-cluster", "not-a-value-of-cel"],
)
def test_values_per_cluster(
    values: Mapping[str, Mapping[str, Any]], expected: Mapping[str, Any], config_maps: Mapping[str, str]
) -> None:
    helm, created = build_template(*(chart(cluster, data) for cluster, data in values.items()))

    assert helm == {"releaseName": "web", "namespace": "shop", **expected}
    assert created == config_maps


@pytest.mark.parametrize(("count", "has_expression"), [(MAX_CHOICES, True), (MAX_CHOICES + 1, False)])
def test_many_values_are_in_config_maps(count: int, has_expression: bool) -> None:
    clusters = tuple(Cluster(f"c{number}") for number in range(count))
    requests = [chart(cluster.name, {"n": number}) for number, cluster in enumerate(clusters)]
    (package,) = generate_from_requests(requests, clusters).packages

    assert len(package.documents) == (1 if has_expression else 1 + count)


def test_release_namespace_and_values_files_can_contain_the_cluster_and_its_labels() -> None:
    helm, _ = build_template(
        *(
            chart(
                cluster,
                release_name=f"web-{cluster}",
                namespace=f"{region}-shop",
                values_files=("base.yaml", f"$config/{region}/{cluster}.yaml", "last.yaml"),
            )
            for cluster, region in REGIONS.items()
        )
    )

    assert helm == {
        "releaseNameExpr": "'web-' + repository.name",
        "namespaceExpr": "repository.labels['region'] + '-shop'",
        "valuesFiles": ["base.yaml"],
        "valuesFilesExprs": [
            "'$config/' + repository.labels['region'] + '/' + repository.name + '.yaml'",
            "'last.yaml'",
        ],
    }


@pytest.mark.parametrize(("count", "packages"), [(20, 1), (21, 2)])
def test_requests_with_many_different_values_become_separate_objects(count: int, packages: int) -> None:
    others = [chart(cluster, {f"k{n}": 1 for n in range(count)}) for cluster in ("berlin", "lyon", "ohio")]

    generated = generate(*others, chart("utah", {f"k{n}": 2 for n in range(count)}))
    assert len(generated.packages) == packages


def test_other_options_are_never_shared() -> None:
    generated = generate(chart("berlin"), chart("lyon", flags={"includeCRDs": False}), chart("ohio"))

    assert [package.clusters for package in generated.packages] == [("berlin", "ohio"), ("lyon",)]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["prod", "prod"], {"path": "prod", "namePrefix": "a-"}),
        (["overlays/berlin", "overlays/ohio"], {"pathExpr": "'overlays/' + repository.name", "namePrefix": "a-"}),
        (["", ""], {"namePrefix": "a-"}),
    ],
)
def test_overlays_per_cluster(paths: list[str], expected: dict[str, Any]) -> None:
    requests = [
        replace(request(cluster), kustomize=KustomizeRequest(path, {"namePrefix": "a-"}))
        for cluster, path in zip(("berlin", "ohio"), paths, strict=True)
    ]
    (package,) = generate(*requests).packages

    assert package.documents[0]["spec"]["targets"][0]["template"]["kustomize"] == expected


@pytest.mark.parametrize(
    ("reference", "upstream", "repository"),
    [
        (GIT, {"package": "x"}, {"type": "git", "git": {"repo": GIT.url}}),
        (CHARTS, {"chart": "x"}, {"type": "helm", "helm": {"url": CHARTS.url}}),
        (
            RepositoryReference("oci", "oci://example.com/team"),
            {"package": "x"},
            {"type": "oci", "oci": {"registry": "example.com/team"}},
        ),
    ],
    ids=["git", "helm", "oci"],
)
def test_the_type_of_a_repository_selects_the_fields(
    reference: RepositoryReference, upstream: dict[str, Any], repository: dict[str, Any]
) -> None:
    generated = generate(PackageRequest("o", "o", "berlin", "o", UpstreamReference(reference, "x", (("tag", "v1"),))))

    (document,) = generated.repositories
    assert document["spec"] == repository
    spec = generated.packages[0].documents[0]["spec"]
    assert spec["upstream"] == {"repo": document["metadata"]["name"], **upstream, "tag": "v1"}


def several(cluster: str, size: int = 1, prefix: str = "a-") -> PackageRequest:
    kustomize = KustomizeRequest("prod", {"namePrefix": prefix}, FileTree({"prod/a.yaml": File(b"a: 1\n")}))
    base = chart(cluster, {"size": size}, values_files=(f"$v/{cluster}.yaml",))
    sources = (
        SourceRequest("web", base.upstream),
        SourceRequest("prod", UpstreamReference(GIT, "o", (("revision", -1),)), "prod", kustomize=kustomize),
        SourceRequest("v", UpstreamReference(GIT, "", (("revision", -1),)), has_resources=False),
    )
    return replace(base, sources=sources)


SEVERAL = {
    "sources": [
        {"name": "web", "repo": "stable", "chart": "web", "version": "1.0.0"},
        {"name": "prod", "repo": "apps", "package": "o", "revision": -1, "directory": "prod",
         "kustomize": {"path": "prod", "namePrefix": "a-"}},
        {"name": "v", "repo": "apps", "revision": -1, "ref": True},
    ],
    "onRepeatedResource": "lastWins",
}  # fmt: skip


def test_several_sources_become_one_set_with_values_per_cluster() -> None:
    (package,) = generate(*(several(cluster, size) for size, cluster in enumerate(REGIONS))).packages

    spec = package.documents[0]["spec"]
    assert {name: spec[name] for name in SEVERAL} == SEVERAL
    helm = spec["targets"][0]["template"]["helm"]
    assert helm["valuesFilesExprs"] == ["'$v/' + repository.name + '.yaml'"]
    assert [parameter["name"] for parameter in helm["parameterExprs"]] == ["size"]


def test_other_options_of_a_source_become_another_object() -> None:
    packages = generate(
        several("berlin"), several("lyon"), several("ohio", prefix="b-"), request("ohio", "db")
    ).packages

    assert [(package.documents[0]["kind"], package.clusters) for package in packages] == [
        ("PackageVariantSet", ("berlin", "lyon")), ("PackageVariant", ("ohio",)), ("PackageVariant", ("ohio",)),
    ]  # fmt: skip


def test_original_overlays_of_sources_are_in_the_catalog() -> None:
    generated = generate_separately([several("berlin")], CLUSTERS)

    assert [*generated.catalog] == ["request-0"]
    assert [*generated.catalog["request-0"]] == ["prod/prod/a.yaml"]
    source = generated.packages[0].documents[0]["spec"]["sources"][1]
    assert (source["repo"], source["package"], source["kustomize"]) == ("catalog", "request-0/prod", {"path": "prod"})
    assert "catalog" not in [document["metadata"]["name"] for document in generated.repositories]


def test_repositories_have_unique_names() -> None:
    other = UpstreamReference(RepositoryReference("git", "https://other.example.com/apps.git"), "x", ())
    branch = UpstreamReference(RepositoryReference("git", GIT.url, "next"), "y", ())
    requests = (
        request("berlin"),
        PackageRequest("o", "o", "berlin", "o", other),
        PackageRequest("b", "b", "berlin", "b", branch),
    )
    names = [document["metadata"]["name"] for document in generate(*requests).repositories]
    assert names == ["apps", "apps-2", "apps-next"]


def test_separate_requests_have_literal_options() -> None:
    generated = generate_separately([chart("berlin", {"a": 1}, values_files=("x.yaml",))], CLUSTERS)

    assert generated.packages[0].documents[0]["spec"] == {
        "upstream": {"repo": "stable", "chart": "web", "version": "1.0.0"},
        "downstream": {"repo": "berlin", "package": "web"},
        "adoptionPolicy": "adoptExisting",
        "helm": {"releaseName": "web", "namespace": "shop", "valuesFiles": ["x.yaml"], "values": {"a": 1}},
    }
