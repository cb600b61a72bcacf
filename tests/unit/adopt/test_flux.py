"""Kustomizations and HelmReleases of Flux become package requests."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.adopt.flux.reader import is_flux, read_flux
from reconciler.adopt.layout import FLUX_LAYOUT, parse_layout
from reconciler.adopt.requests import ReadRequests
from reconciler.catalog.files import File, FileTree
from reconciler.krm.yaml import emit

URL = "https://git.example.com/apps.git"
LAYOUT = parse_layout(FLUX_LAYOUT, ("cluster",))
REVISIONS = ("refs/heads/main", "refs/heads/master", "refs/tags/v1", "refs/tags/apps/web/v1")
MANIFEST = b"apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"


def flux_object(
    group: str, kind: str, name: str, spec: dict[str, Any], namespace: str = "flux-system"
) -> dict[str, Any]:
    return {
        "apiVersion": f"{group}.toolkit.fluxcd.io/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def git_repository(ref: dict[str, Any] | None = None, url: str = URL, name: str = "flux-system") -> dict[str, Any]:
    return flux_object("source", "GitRepository", name, {"url": url, "ref": ref or {"branch": "main"}})


def kustomization(path: str, name: str = "web", **spec: Any) -> dict[str, Any]:
    source = {"kind": "GitRepository", "name": "flux-system"}
    return flux_object("kustomize", "Kustomization", name, {"path": path, "sourceRef": source, **spec})


def release(chart: dict[str, Any] | None = None, name: str = "ksm", **spec: Any) -> dict[str, Any]:
    source = {"kind": "HelmRepository", "name": "stable"}
    content = {"chart": {"spec": {"chart": "ksm", "version": "5.x", "sourceRef": source, **(chart or {})}}}
    return flux_object("helm", "HelmRelease", name, {**content, **spec}, "mon")


HELM_REPOSITORY = flux_object("source", "HelmRepository", "stable", {"url": "https://charts.example.com/"}, "mon")
OCI = flux_object("source", "OCIRepository", "app", {"url": "oci://example.com/team/app", "ref": {"tag": "v1"}}, "mon")
CONFIG_MAP = {
    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "defaults", "namespace": "mon"},
    "data": {"values.yaml": "a: {x: 1, y: 1}\n", "size": "3"},
}  # fmt: skip


def read(*documents: dict[str, Any], files: dict[str, bytes] | None = None, cluster: str = "berlin") -> ReadRequests:
    text = "---\n".join(map(emit, documents))
    source = FileTree(
        {f"clusters/{cluster}/all.yaml": File(text.encode()), **{k: File(v) for k, v in (files or {}).items()}}
    )
    assert is_flux(source)

    def read_repository(url: str, revision: str) -> FileTree | str:
        return source if url == URL and revision in REVISIONS else "no such repository"

    return read_flux(source, LAYOUT, read_repository)


def test_a_folder_of_manifests_becomes_a_request() -> None:
    result = read(git_repository(), kustomization("./apps/web"), files={"apps/web/app.yaml": MANIFEST})

    (request,) = result.requests
    assert (request.cluster, request.package, request.upstream.package) == ("berlin", "web", "apps/web")
    assert dict(request.upstream.fields) == {"revision": -1}
    assert result.not_imported == ()


@pytest.mark.parametrize(
    ("ref", "branch", "fields"),
    [
        ({"branch": "main"}, "main", {"revision": -1}),
        (None, "master", {"revision": -1}),
        ({"name": "refs/heads/main", "tag": "v9"}, "main", {"revision": -1}),
        ({"tag": "v1", "branch": "main"}, "", {"revision": "v1"}),
        ({"name": "refs/tags/apps/web/v1"}, "", {"revision": "v1"}),
    ],
)
def test_the_revision_of_a_repository(ref: dict[str, Any] | None, branch: str, fields: dict[str, Any]) -> None:
    repository = flux_object("source", "GitRepository", "flux-system", {"url": URL, **({"ref": ref} if ref else {})})
    result = read(repository, kustomization("./apps/web"), files={"apps/web/app.yaml": MANIFEST})

    assert result.not_imported == ()
    (request,) = result.requests
    assert (request.upstream.repository.branch, dict(request.upstream.fields)) == (branch, fields)


def test_only_kustomization_files_of_a_cluster_folder_are_ignored() -> None:
    files = {
        "clusters/berlin/kustomization.yaml": b"resources: []\n",
        "clusters/berlin/apps-kustomization.yaml": emit(kustomization("./apps/web")).encode(),
        "clusters/berlin/db-kustomization.yml": emit(kustomization("./apps/db", "db")).encode(),
        "apps/web/app.yaml": MANIFEST,
        "apps/db/app.yaml": MANIFEST,
    }
    result = read(git_repository(), files=files)

    assert [request.package for request in result.requests] == ["web", "db"]
    assert result.not_imported == ()


def test_objects_in_the_folders_of_kustomizations_are_read() -> None:
    files = {
        "infra/kustomization.yaml": b"resources: [repository.yaml, ../releases]\n",
        "infra/repository.yaml": emit(HELM_REPOSITORY).encode(),
        "releases/ksm.yaml": emit(release(values={"a": 1})).encode(),
    }
    result = read(git_repository(), kustomization("./infra"), files=files)

    assert result.not_imported == ()
    (request,) = result.requests
    assert request.helm is not None
    assert (request.package, request.helm.release_name, request.helm.namespace) == ("ksm", "ksm", "mon")
    assert request.helm.values == {"a": 1}
    assert request.upstream.repository.url == "https://charts.example.com"
    assert (request.upstream.package, dict(request.upstream.fields)) == ("ksm", {"version": "5.x"})


def test_the_objects_of_flux_itself_and_repeated_folders_are_read_once() -> None:
    system = kustomization("./clusters/berlin", "flux-system")
    again = kustomization("./clusters/berlin", "again")

    assert read(git_repository(), system, again) == ReadRequests((), {"berlin": {}}, ())


@pytest.mark.parametrize(
    ("documents", "type_", "package", "fields"),
    [
        ([release({"chart": "./charts/ksm", "sourceRef": {"kind": "GitRepository", "name": "flux-system",
                                                          "namespace": "flux-system"}})],
         "git", "charts/ksm", {"revision": -1}),
        ([{**release(), "spec": {"chartRef": {"kind": "OCIRepository", "name": "app"}}}, OCI],
         "oci", "app", {"tag": "v1"}),
        *(([{**release(), "spec": {"chartRef": {"kind": "OCIRepository", "name": "app"}}},
            {**OCI, "spec": {**OCI["spec"], "ref": ref}}], type_, "app", fields)
          for ref, type_, fields in (
              ({"tag": "5.27.0"}, "helm", {"version": "5.27.0"}), ({"semver": "5.x"}, "helm", {"version": "5.x"}),
              ({"digest": "sha256:0a", "tag": "1.0.0"}, "oci", {"digest": "sha256:0a"}), ({}, "oci", {"tag": "latest"}),
          )),
        ([{**release(), "spec": {"chartRef": {"kind": "HelmChart", "name": "c"}}},
          flux_object("source", "HelmChart", "c", {"chart": "x", "sourceRef": {"kind": "HelmRepository",
                                                                              "name": "stable"}}, "mon")],
         "helm", "x", {"version": "*"}),
    ],
    ids=["git", "artifact", "artifact-version", "artifact-range", "artifact-digest", "artifact-latest", "chart-object"],
)  # fmt: skip
def test_the_chart_of_a_release(
    documents: list[dict[str, Any]], type_: str, package: str, fields: dict[str, Any]
) -> None:
    result = read(git_repository(), HELM_REPOSITORY, *documents)

    assert result.not_imported == ()
    (request,) = result.requests
    upstream = request.upstream
    assert (upstream.repository.type, upstream.package, dict(upstream.fields)) == (type_, package, fields)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"releaseName": "r"}, {"release_name": "r", "namespace": "mon"}),
        ({"targetNamespace": "shop"}, {"release_name": "shop-ksm", "namespace": "shop"}),
        (
            {"install": {"createNamespace": True, "crds": "Skip", "disableSchemaValidation": True}},
            {"flags": {"createNamespace": True, "includeCRDs": False, "skipSchemaValidation": True}},
        ),
        ({"values": {"a": {"x": 2}}, "valuesFrom": [{"kind": "ConfigMap", "name": "defaults"}]},
         {"values": {"a": {"x": 2, "y": 1}}}),
        ({"valuesFrom": [{"kind": "ConfigMap", "name": "defaults", "valuesKey": "size", "targetPath": "n.size"}]},
         {"values": {"n": {"size": 3}}}),
        ({"valuesFrom": [{"kind": "ConfigMap", "name": "absent", "optional": True}]}, {"values": {}}),
        ({"chart": {"valuesFiles": ["values.yaml", "./eu.yaml"]}}, {"values_files": ("values.yaml", "eu.yaml")}),
        ({"chart": {"chart": "./charts/ksm", "valuesFiles": ["./charts/ksm/values.yaml", "charts/ksm/eu.yaml"],
                    "sourceRef": {"kind": "GitRepository", "name": "flux-system", "namespace": "flux-system"}}},
         {"values_files": ("values.yaml", "eu.yaml")}),
    ],
)  # fmt: skip
def test_the_options_of_a_release(spec: dict[str, Any], expected: dict[str, Any]) -> None:
    config_maps = [CONFIG_MAP] if "defaults" in str(spec) else []
    result = read(git_repository(), HELM_REPOSITORY, *config_maps, release(**spec))

    assert result.not_imported == ()
    helm = result.requests[0].helm
    assert {name: getattr(helm, name) for name in expected} == expected


SECRET_VALUES = {"kind": "Secret", "name": "s"}
OVERLAY = {"apps/web/kustomization.yaml": b"resources: [app.yaml]\nnamePrefix: x\n", "apps/web/app.yaml": MANIFEST}


@pytest.mark.parametrize(
    ("documents", "files", "field", "reason"),
    [
        ([release(valuesFrom=[SECRET_VALUES])], {}, "spec.valuesFrom[0]", "the import does not copy values of the Secret \"s\""),
        ([release(valuesFrom=[{"kind": "ConfigMap", "name": "x"}])], {}, "spec.valuesFrom[0]", "the source files contain no ConfigMap \"x\""),
        ([release(valuesFrom={"kind": "ConfigMap"})], {}, "spec.valuesFrom", "valuesFrom must be a list, but is a mapping"),
        ([release(values="a: 1")], {}, "spec.values", "values must be a mapping, but is a string"),
        ([release({"valuesFiles": ["eu.yaml"]})], {}, "spec.chart.spec.valuesFiles",
         "valuesFiles excludes values.yaml"),
        ([release({"chart": "charts/ksm", "valuesFiles": ["values/eu.yaml"],
                   "sourceRef": {"kind": "GitRepository", "name": "flux-system", "namespace": "flux-system"}})], {},
         "spec.chart.spec.valuesFiles", "the values file \"values/eu.yaml\" is not in the chart"),
        ([release(commonMetadata={"labels": {"a": "b"}})], {}, "spec.commonMetadata", "the import does not support"),
        ([release(postRenderers=[{}])], {}, "spec.postRenderers", "the import does not support"),
        ([release(suspend=True)], {}, "spec.suspend", "skips suspended objects"),
        ([release({"sourceRef": {"kind": "HelmRepository", "name": "x"}})], {}, "spec.chart.spec",
         "the source files contain no HelmRepository x"),
        ([kustomization("./apps/web", patches=[{}])], {"apps/web/app.yaml": MANIFEST}, "spec.patches",
         "has no kustomization file"),
        ([kustomization("./apps/web", components=["../x"])], OVERLAY, "spec.components", "does not exist"),
        ([kustomization("./apps/web", targetNamespace="Not A Name")], OVERLAY, "spec.targetNamespace", "is invalid"),
        ([kustomization("./apps/web", commonMetadata={"labels": {"a": "b"}})], OVERLAY, "spec.commonMetadata",
         "the import does not support"),
        ([kustomization("./apps/web", kubeConfig={"secretRef": {}})], {}, "spec.kubeConfig", "a Secret contains its address"),
        ([kustomization("./wide")], {"wide/kustomization.yaml": b"resources: [../apps]\nnamePrefix: x\n",
                                     "apps/kustomization.yaml": b"resources: []\n"},
         "spec.path", "have no common folder"),
        ([kustomization("./apps/web")],
         {"apps/web/app.yaml": MANIFEST, "apps/web/r.yaml": emit(release()).encode()},
         "spec.path", "contains Flux objects and other resources"),
        ([kustomization("./apps/web", postBuild={"substitute": {"a": "b"}})],
         {"apps/web/app.yaml": MANIFEST.replace(b"web", b'"${a}"')}, "spec.postBuild", "variables that Flux replaces"),
        ([kustomization("./apps/web", postBuild={"substituteFrom": [{"kind": "Secret", "name": "x"}]})],
         {"apps/web/app.yaml": MANIFEST.replace(b"web", b'"${a}"')}, "spec.postBuild", "variables that Flux replaces"),
        ([kustomization("./", "root")], {}, "spec.url", "must be in a folder"),
        ([kustomization("./x", sourceRef={"kind": "GitRepository", "name": "x"})], {}, "spec.sourceRef",
         "the source files contain no GitRepository x"),
        *(([git_repository({"branch": "main", field: text}, name="t"),
            kustomization("./x", sourceRef={"kind": "GitRepository", "name": "t"})], {}, f"spec.ref.{field}", reason)
          for field, text, reason in (
              ("tag", "v9", "'v9' is a tag of the whole repository, and not of the package x"),
              ("semver", ">=1.0.0", "'>=1.0.0' is a range of tags of the whole repository"),
              ("commit", "0" * 40, "is a commit of the whole repository"),
              ("name", "refs/pull/1/head", "is a commit of the whole repository"),
          )),
        ([kustomization("./releases", postBuild={"substitute": {"a": "b"}})],
         {"releases/ksm.yaml": emit(release(values={"a": "${a}"})).encode()}, "spec.postBuild", "variables that Flux"),
        *(([{**git_repository(name="t"), "spec": {"url": URL, field: "x", "ref": {"branch": "main"}}},
            kustomization("./apps/web", sourceRef={"kind": "GitRepository", "name": "t"})],
           {"apps/web/app.yaml": MANIFEST}, f"spec.{field}", "changes the files of the source")
          for field in ("include", "ignore")),
        ([kustomization("./My_App")], {"My_App/app.yaml": MANIFEST}, "spec.url", "the folder 'My_App' is not valid for a"),
        ([CONFIG_MAP], {}, "", "ConfigMap defaults is not imported"),
        ([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}], {}, "", "Namespace shop is not imported"),
        ([flux_object("notification", "Alert", "a", {})], {}, "", "the import does not support Alert a"),
        ([], {"clusters/Not_A_Name/x.yaml": b"a: 1\n"}, "", "the name of the cluster is invalid"),
        ([git_repository(url="https://other", name="t"),
          kustomization("./x", sourceRef={"kind": "GitRepository", "name": "t"})],
         {}, "spec.sourceRef", "cannot be read: no such repository"),
    ],
)  # fmt: skip
def test_an_object_that_cannot_be_imported_is_reported(
    documents: list[dict[str, Any]], files: dict[str, bytes], field: str, reason: str
) -> None:
    system = kustomization("./clusters/berlin", "flux-system")
    result = read(git_repository(), HELM_REPOSITORY, system, *documents, files=files)

    assert result.requests == ()
    assert [(entry.field, reason in entry.reason) for entry in result.not_imported] == [(field, True)]


@pytest.mark.parametrize("prefix", [b"", b"namePrefix: x\n"], ids=["list", "overlay"])
def test_an_overlay_becomes_an_upstream_with_its_bases(prefix: bytes) -> None:
    files = {
        "apps/web/base/kustomization.yaml": b"resources: [app.yaml]\n",
        "apps/web/base/app.yaml": MANIFEST,
        "apps/web/prod/kustomization.yaml": b"resources: [../base]\n" + prefix,
    }
    options: dict[str, Any] = {
        "targetNamespace": "shop",
        "components": ["../../tls"],
        "images": [{"name": "web", "newTag": "2"}],
    }
    files["apps/tls/kustomization.yaml"] = b"kind: Component\n"
    result = read(git_repository(), kustomization("./apps/web/prod", **options), files=files)

    assert result.not_imported == ()
    (request,) = result.requests
    assert request.upstream.package == "apps"
    assert request.kustomize is not None
    assert request.kustomize.path == "web/prod"
    assert request.kustomize.fields == {
        "namespace": "shop", "components": ["../../tls"], "images": [{"name": "web", "newTag": "2"}],
    }  # fmt: skip


def test_fields_of_the_agent_are_reported_and_the_objects_are_imported() -> None:
    result = read(
        git_repository(),
        HELM_REPOSITORY,
        release(dependsOn=[{"name": "x"}]),
        kustomization("./apps/web", dependsOn=[{"name": "x"}], healthChecks=[{}]),
        files={"apps/web/app.yaml": MANIFEST},
    )

    assert sorted(request.package for request in result.requests) == ["ksm", "web"]
    assert sorted(entry.field for entry in result.not_imported) == [
        "spec.dependsOn", "spec.dependsOn", "spec.healthChecks",
    ]  # fmt: skip


def test_verification_of_signatures_is_reported() -> None:
    verify = {"provider": "cosign", "secretRef": {"name": "keys"}}
    artifact = {**OCI, "spec": {**OCI["spec"], "verify": verify}}
    source = {"kind": "OCIRepository", "name": "app", "namespace": "mon"}
    result = read(artifact, HELM_REPOSITORY, kustomization("./", sourceRef=source), release({"verify": verify}))

    assert sorted(request.package for request in result.requests) == ["ksm", "web"]
    assert sorted(entry.field for entry in result.not_imported) == ["spec.chart.spec.verify", "spec.verify"]


def test_one_folder_can_be_the_package_of_several_kustomizations() -> None:
    files = {"apps/web/kustomization.yaml": b"resources: [app.yaml]\n", "apps/web/app.yaml": MANIFEST}
    objects = [kustomization("./apps/web", f"web-{name}", targetNamespace=name) for name in ("a", "b")]
    result = read(git_repository(), *objects, files=files)

    assert [request.package for request in result.requests] == ["web-a", "web-b"]


def test_resources_of_a_package_in_the_folder_of_the_cluster_are_not_reported() -> None:
    files = {"clusters/berlin/web/app.yaml": MANIFEST, "clusters/berlin/flux-system/x.yaml": MANIFEST}
    result = read(git_repository(), kustomization("./clusters/berlin/web"), files=files)

    assert [request.package for request in result.requests] == ["web"]
    assert result.not_imported == ()


def test_an_artifact_becomes_an_upstream() -> None:
    source = {"kind": "OCIRepository", "name": "app", "namespace": "mon"}
    (request,) = read(OCI, kustomization("./", sourceRef=source)).requests

    upstream = request.upstream
    assert (upstream.repository.type, upstream.package, dict(upstream.fields)) == ("oci", "app", {"tag": "v1"})


def test_the_labels_of_clusters_come_from_the_layout() -> None:
    layout = parse_layout("{env}/{cluster}", ("cluster",))
    files = FileTree({"prod/berlin/a.yaml": File(emit(release()).encode())})

    assert read_flux(files, layout, lambda url, revision: files).labels == {"berlin": {"env": "prod"}}
