"""Applications and ApplicationSets become package requests."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from reconciler.adopt.argocd.applications import is_argocd, read_argocd
from reconciler.adopt.requests import ReadRequests
from reconciler.catalog.files import File, FileTree
from reconciler.krm.yaml import emit

URL = "https://git.example.com/apps.git"
CHART = {"charts/web/Chart.yaml": b"name: web\n", "charts/web/eu.yaml": b"a: 1\n", "values/berlin.yaml": b"b: 2\n"}
REPOSITORY = FileTree(
    {
        path: File(data)
        for path, data in {
            **CHART, "plain/app.yaml": b"a: 1\n", "k/kustomization.yaml": b"a: 1\n",
            "wide/kustomization.yaml": b"resources: [../k]\n", "o/base/kustomization.yaml": b"a: 1\n",
            "o/prod/kustomization.yaml": b"resources: [../base]\n",
            "nested/app.yaml": b"a: 1\n", "nested/tests/app.yaml": b"a: 1\n", "jsonnet/app.jsonnet": b"{}",
            "root/app.yaml": b"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\n",
        }.items()
    }
)  # fmt: skip


TAGS = {
    "v1.2.0": REPOSITORY, "charts/web/v1.2.0": REPOSITORY, "plain/v3": REPOSITORY, "o/stable": REPOSITORY,
    "k/v1.2.0": FileTree({"k/kustomization.yaml": File(b"b: 1\n")}), "plain/1": REPOSITORY, "stable": REPOSITORY,
}  # fmt: skip


def read_repository(url: str, revision: str) -> FileTree | str:
    refs = {"": REPOSITORY, "refs/heads/main": REPOSITORY, **{f"refs/tags/{name}": tree for name, tree in TAGS.items()}}
    return refs.get(revision, "no such revision") if url == URL else "no such repository"


def application(source: dict[str, Any] | None = None, name: str = "web-berlin", **spec: Any) -> dict[str, Any]:
    place = {"sources": spec.pop("sources")} if "sources" in spec else {"source": {"repoURL": URL, **(source or {})}}
    destination = {"name": "berlin", "namespace": "shop"}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name},
        "spec": {"destination": destination, **place, **spec},
    }


def read(*documents: dict[str, Any]) -> ReadRequests:
    files = FileTree({f"{n}.yaml": File(emit(document).encode()) for n, document in enumerate(documents)})
    assert is_argocd(files) == any(document["kind"].startswith("Application") for document in documents)
    return read_argocd(files, read_repository)


@pytest.mark.parametrize(
    ("source", "type_", "package", "fields"),
    [
        ({"path": "plain", "targetRevision": "HEAD"}, "git", "plain", {"revision": -1}),
        ({"path": "./plain/", "targetRevision": "main"}, "git", "plain", {"revision": -1}),
        (
            {"repoURL": "https://charts.example.com/", "chart": "ksm", "targetRevision": "5.*"},
            "helm",
            "ksm",
            {"version": "5.*"},
        ),
        ({"repoURL": "registry.example.com/x", "chart": "ksm"}, "helm", "ksm", {"version": "*"}),
        (
            {"repoURL": "oci://example.com/team/app", "path": ".", "targetRevision": "v1"},
            "oci",
            "app",
            {"tag": "v1"},
        ),
        ({"repoURL": "oci://example.com/team/app"}, "oci", "app", {"tag": "latest"}),
        ({"repoURL": "oci://example.com/team/app", "targetRevision": "1.2.0"}, "oci", "app", {"tag": "1.2.0"}),
        ({"repoURL": "oci://example.com/team/app", "targetRevision": "1.*"}, "oci", "app", {"version": "1.*"}),
        (
            {"repoURL": "oci://example.com/team/app", "targetRevision": "sha256:0a"},
            "oci",
            "app",
            {"digest": "sha256:0a"},
        ),
    ],
    ids=[
        "folder",
        "branch",
        "chart-repository",
        "chart-in-a-registry",
        "artifact",
        "latest",
        "version",
        "range",
        "digest",
    ],
)
def test_a_source_becomes_an_upstream(source: dict[str, Any], type_: str, package: str, fields: dict[str, Any]) -> None:
    result = read(application(source))

    (request,) = result.requests
    assert result.not_imported == ()
    assert (request.cluster, request.package) == ("berlin", "web")
    upstream = request.upstream
    assert (upstream.repository.type, upstream.package, dict(upstream.fields)) == (type_, package, fields)


@pytest.mark.parametrize(
    ("helm", "values", "values_files", "flags"),
    [
        (None, {}, (), {}),
        ({"values": "a: 1\n"}, {"a": 1}, (), {}),
        ({"values": "a: 1\n", "valuesObject": {"b": 2}}, {"b": 2}, (), {}),
        (
            {
                "valuesObject": {"a": {"x": 1, "y": 1}},
                "parameters": [
                    {"name": "a.x", "value": "2"}, {"name": "on", "value": "true"}, {"name": "l", "value": "{a,1}"},
                    {"name": "port", "value": "80", "forceString": True}, {"name": "zone", "value": "007"},
                ],
            },
            {"a": {"x": 2, "y": 1}, "on": True, "l": ["a", 1], "port": "80", "zone": "007"},
            (),
            {},
        ),
        ({"valueFiles": ["eu.yaml"]}, {}, ("eu.yaml",), {}),
        ({"valueFiles": ["../../values/berlin.yaml"]}, {}, ("$config/values/apps/values/berlin.yaml",), {}),
        (
            {"valueFiles": ["../../values/x.yaml"], "ignoreMissingValueFiles": True},
            {},
            (),
            {"ignoreMissingValuesFiles": True},
        ),
        ({"skipCrds": True, "skipTests": True}, {}, (), {"includeCRDs": False, "skipTests": True}),
    ],
)  # fmt: skip
def test_the_options_of_a_chart(
    helm: dict[str, Any] | None, values: dict[str, Any], values_files: tuple[str, ...], flags: dict[str, Any]
) -> None:
    result = read(application({"path": "charts/web", **({"helm": helm} if helm else {})}))

    assert result.not_imported == ()
    (request,) = result.requests
    assert request.helm is not None
    assert (request.helm.release_name, request.helm.namespace) == ("web-berlin", "shop")
    assert (request.helm.values, request.helm.values_files) == (values, values_files)
    assert request.helm.flags == {"hooks": "argocd", **flags}
    copied = {"values/apps/values/berlin.yaml": b"b: 2\n"} if values_files and "$config" in values_files[0] else {}
    assert request.config_files == copied


def test_an_overlay_becomes_an_upstream_with_its_bases() -> None:
    result = read(application({"path": "o/prod", "kustomize": {"images": ["web:2"], "namePrefix": "a-"}}))

    assert result.not_imported == ()
    (request,) = result.requests
    assert request.upstream.package == "o"
    assert dict(request.upstream.fields) == {"revision": -1}
    assert request.kustomize is not None
    assert request.kustomize.path == "prod"
    assert request.kustomize.fields == {"images": [{"name": "web", "newTag": "2"}], "namePrefix": "a-"}


@pytest.mark.parametrize(("path", "expected"), [(".", ""), ("overlays/prod", "overlays/prod")])
def test_an_overlay_in_an_artifact_has_the_tag_of_the_application(path: str, expected: str) -> None:
    source = {"repoURL": "oci://example.com/team/app", "path": path, "targetRevision": "v1"}
    (request,) = read(application({**source, "kustomize": {"namePrefix": "a-"}})).requests

    assert (request.upstream.package, dict(request.upstream.fields)) == ("app", {"tag": "v1"})
    assert request.kustomize is not None
    assert (request.kustomize.path, request.kustomize.fields) == (expected, {"namePrefix": "a-"})


@pytest.mark.parametrize(
    ("path", "revision", "package", "fields"),
    [
        ("plain", "plain/v3", "plain", {"revision": "v3"}),
        ("plain", "refs/tags/plain/v3", "plain", {"revision": "v3"}),
        ("charts/web", "v1.2.0", "charts/web", {"revision": "v1.2.0"}),
        ("o/prod", "stable", "o", {"tag": "stable"}),
        ("o/prod", "o/stable", "o", {"tag": "stable"}),
    ],
)
def test_a_tag_becomes_the_revision_of_the_package_with_this_tag(
    path: str, revision: str, package: str, fields: dict[str, Any]
) -> None:
    (request,) = read(application({"path": path, "targetRevision": revision})).requests

    assert (request.upstream.package, dict(request.upstream.fields)) == (package, fields)
    assert request.upstream.repository.branch == ""


def test_the_suggestion_for_a_tag_is_the_tag_that_is_missing() -> None:
    (entry,) = read(application({"path": "plain", "targetRevision": "v1.2.0"})).not_imported

    assert entry.suggestion == "Create the tag plain/v1.2.0 on the same commit, and run the command again."


def test_values_of_another_source_are_copied_into_the_config() -> None:
    sources = [
        {"repoURL": URL, "path": "charts/web", "helm": {"valueFiles": ["$v/values/berlin.yaml"], "releaseName": "w"}},
        {"repoURL": URL, "targetRevision": "main", "ref": "v"},
    ]
    (request,) = read(application(sources=sources, syncPolicy={"syncOptions": ["CreateNamespace=true"]})).requests

    assert request.helm is not None
    assert request.helm.values_files == ("$config/values/apps/values/berlin.yaml",)
    assert request.helm.flags["createNamespace"] is True
    assert request.config_files == {"values/apps/values/berlin.yaml": b"b: 2\n"}


def test_namespace_of_manifests_is_reported() -> None:
    source = {"repoURL": URL, "path": "plain"}
    result = read(application(source, syncPolicy={"syncOptions": ["CreateNamespace=true"]}))

    assert [entry.field for entry in result.not_imported] == ["spec.syncPolicy.syncOptions"]
    assert len(result.requests) == 1


VALUES = {"repoURL": URL, "targetRevision": "main", "ref": "v"}
CHART_SOURCE = {"repoURL": URL, "path": "charts/web", "helm": {"valueFiles": ["$v/values/berlin.yaml", "eu.yaml"]}}


def test_several_sources_become_sources_of_one_package() -> None:
    overlay = {"repoURL": URL, "path": "o/prod", "kustomize": {"namePrefix": "a-"}}
    tagged = {"repoURL": URL, "path": "plain", "targetRevision": "plain/v3"}
    (request,) = read(application(sources=[CHART_SOURCE, VALUES, overlay, tagged])).requests

    listed = [
        (source.name, source.upstream.package, dict(source.upstream.fields), source.directory, source.has_resources)
        for source in request.sources
    ]
    assert listed == [
        ("web", "charts/web", {"revision": -1}, "", True),
        ("prod", "o", {"revision": -1}, "prod", True),
        ("plain", "plain", {"revision": "v3"}, "plain", True),
        ("v", "", {"revision": -1}, "", False),
    ]
    assert request.helm is not None
    assert request.helm.values_files == ("$v/values/berlin.yaml", "eu.yaml")
    assert [bool(source.kustomize) for source in request.sources] == [False, True, False, False]
    assert [source.helm for source in request.sources] == [None] * 4
    assert request.config_files == {}


def test_each_of_several_charts_has_its_options() -> None:
    second = {"repoURL": "https://charts.example.com", "chart": "web", "helm": {"releaseName": "second"}}
    (request,) = read(application(sources=[CHART_SOURCE, VALUES, second])).requests

    assert request.helm is None
    names = [(source.name, source.helm.release_name) for source in request.sources if source.helm]
    assert names == [("web", "web-berlin"), ("web-2", "second")]


@pytest.mark.parametrize(
    ("revision", "fields", "path"),
    [
        ("v1.2.0", {"revision": "v1.2.0"}, "$v/values/berlin.yaml"),
        ("charts/web/v1.2.0", None, "$config/values/apps/values/berlin.yaml"),
    ],
    ids=["tag", "tag-of-a-package"],
)
def test_values_files_of_a_tag(revision: str, fields: dict[str, Any] | None, path: str) -> None:
    sources = [CHART_SOURCE, {**VALUES, "targetRevision": revision}, {"repoURL": URL, "path": "plain"}]
    (request,) = read(application(sources=sources)).requests

    assert request.helm is not None
    assert request.helm.values_files[0] == path
    assert [dict(source.upstream.fields) for source in request.sources if not source.has_resources] == (
        [fields] if fields else []
    )


def test_values_files_of_several_revisions_are_copied_to_several_folders() -> None:
    documents = [
        application(sources=[CHART_SOURCE, {**VALUES, "targetRevision": revision}], name=f"{name}-berlin")
        for name, revision in (("a", "main"), ("b", "v1.2.0"), ("c", "main"), ("d", "stable"))
    ]
    requests = read(*documents).requests

    assert [request.helm.values_files[0] for request in requests if request.helm] == [
        "$config/values/apps/values/berlin.yaml",
        "$config/values/apps-v1-2-0/values/berlin.yaml",
        "$config/values/apps/values/berlin.yaml",
        "$config/values/apps-stable/values/berlin.yaml",
    ]


@pytest.mark.parametrize(
    ("document", "field", "reason"),
    [
        (application({"path": "plain", "plugin": {"name": "x"}}), "spec.source.plugin", "does not run config management plugins"),
        (application({"path": "plain", "directory": {"jsonnet": {"x": 1}}}), "spec.source.directory.jsonnet", "Jsonnet"),
        *(
            (application({"path": path, "targetRevision": revision}), "spec.source.targetRevision", f"is a {reason} of the")
            for path, revision, reason in (
                ("plain", "v1.2.0", "tag"), ("plain", "v9.9.9", "tag"), ("k", "v1.2.0", "tag"), ("plain", "plain/1", "tag"),
                ("plain", "1234567", "commit"), ("plain", "refs/pull/1/head", "commit"), ("plain", ">=1.2.0", "range of tags"),
            )
        ),
        (application({"path": "."}), "spec.source.path", "must be in a folder"),
        (application({"repoURL": "oci://example.com/app", "path": "a"}), "spec.source.path", "a part of the artifact"),
        (application({"path": "k", "kustomize": {"commonLabels": {"a": "b"}}}), "spec.source.kustomize.commonLabels",
         "the import does not support"),
        (application({"path": "wide"}), "spec.source.path", "have no common folder"),
        (application({"repoURL": "https://a:b@example.com/x", "path": "x"}), "spec.source.repoURL", "credentials"),
        (application(sources=[{"repoURL": URL, "ref": "v"}]), "spec.sources", "has no source with resources"),
        (application(sources=[{"repoURL": URL, "path": "plain"}, {"repoURL": URL, "targetRevision": "1234567", "path": "k"}]),
         "spec.sources[1].targetRevision", "is a commit"),
        (application(sources=[{"repoURL": URL, "path": "plain"}, {"path": "k"}]), "spec.sources[1].repoURL", "is missing"),
        (application(sources=[{"repoURL": URL, "path": "plain"}, {"repoURL": URL}]), "spec.sources[1].path",
         "must be in a folder"),
        (application({"path": "charts/web", "helm": {"valueFiles": ["https://x/y.yaml"]}}),
         "spec.source.helm.valueFiles[0]", "is a URL"),
        (application({"path": "charts/web", "helm": {"valueFiles": ["$x/y.yaml"]}}), "spec.source.helm.valueFiles[0]",
         "which no source has"),
        (application({"path": "charts/web", "helm": {"valueFiles": ["../x.yaml"]}}), "spec.source.helm.valueFiles[0]",
         "does not exist"),
        (application({"path": "charts/web", "helm": {"fileParameters": [1]}}), "spec.source.helm.fileParameters",
         "the import does not support"),
        (application({"path": "charts/web", "helm": {"values": "a: ["}}), "spec.source.helm", "cannot be parsed"),
        (application({"path": "charts/web", "helm": {"parameters": [{"name": "a..b", "value": "1"}]}}),
         "spec.source.helm", "the parameter name 'a..b' is invalid"),
        (application({"path": "plain"}, destination={"name": ""}), "spec.destination", "is invalid"),
        (application(sourceHydrator={}), "spec.sourceHydrator", "the import does not support"),
        (application({"path": "nested"}), "spec.source.path", "has YAML files in subfolders"),
        (application({"path": "charts/web", "helm": {"valueFiles": "eu.yaml"}}), "spec.source.helm.valueFiles",
         "valueFiles must be a list, but is a string"),
        (application({"path": "charts/web", "helm": {"valuesObject": "a: 1"}}), "spec.source.helm.valuesObject",
         "must be a mapping"),
        (application({"path": "My_App"}), "spec.source.path", "the folder 'My_App' is not valid for a package"),
        (application({"repoURL": "oci://example.com/My_App"}), "spec.source.repoURL", "is not valid for a package"),
        (application({"path": "jsonnet"}), "spec.source.path", "Jsonnet"),
        (application({"path": "root"}), "spec.source.path", "contains Applications"),
        (application({"path": "charts/web", "helm": {"parameters": [{"name": "a", "value": "$ARGOCD_APP_NAME"}]}}),
         "spec.source.helm.parameters", "which only Argo CD can replace"),
        (application({"path": "o/prod", "kustomize": {"images": ["web:${ARGOCD_APP_REVISION}"]}}),
         "spec.source.kustomize.images", "contains variables"),
    ],
)  # fmt: skip
def test_an_application_that_cannot_be_imported_is_reported(document: dict[str, Any], field: str, reason: str) -> None:
    result = read(document)

    assert result.requests == ()
    (entry,) = result.not_imported
    assert (entry.file, entry.field) == ("0.yaml", field)
    assert reason in entry.reason
    assert entry.line > 0
    assert entry.suggestion


def test_fields_of_the_agent_are_reported_and_the_application_is_imported() -> None:
    document = application({"path": "plain"}, ignoreDifferences=[{"kind": "Deployment"}])
    document["metadata"]["annotations"] = {"argocd.argoproj.io/sync-wave": "1"}
    result = read(document)

    assert len(result.requests) == 1
    assert [entry.field for entry in result.not_imported] == [
        "spec.ignoreDifferences", "metadata.annotations[argocd.argoproj.io/sync-wave]",
    ]  # fmt: skip


def application_set(generators: list[dict[str, Any]], template: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": "all"},
        "spec": {"goTemplate": True, "generators": generators, "template": template, **spec},
    }


def cluster_secret(name: str, labels: dict[str, str]) -> dict[str, Any]:
    data = {"name": name, "server": f"https://{name}", "config": '{"bearerToken": "hunter22"}'}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": {"argocd.argoproj.io/secret-type": "cluster", **labels}},
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }


def test_an_application_set_has_one_request_per_cluster_and_only_the_labels_of_secrets() -> None:
    template = application({"path": "plain"}, "web-{{.name}}", destination={"server": "{{.server}}"})
    result = read(
        application_set([{"clusters": {}}], template),
        cluster_secret("berlin", {"region": "eu"}),
        cluster_secret("ohio", {"region": "us"}),
    )

    assert [(request.set_name, request.cluster, request.package) for request in result.requests] == [
        ("all", "berlin", "web"), ("all", "in-cluster", "web"), ("all", "ohio", "web"),
    ]  # fmt: skip
    assert result.labels == {"berlin": {"region": "eu"}, "in-cluster": {}, "ohio": {"region": "us"}}
    assert "hunter22" not in repr(result)


@pytest.mark.parametrize(
    ("generators", "spec", "field", "count"),
    [
        ([{"plugin": {}}, {"list": {"elements": [{"c": "berlin"}]}}], {}, "spec.generators[0].plugin", 1),
        ([{"list": {"elements": [{"c": "berlin"}]}}], {"templatePatch": "x"}, "spec.templatePatch", 0),
        ([{"list": {"elements": [{"c": "berlin"}]}}], {"strategy": {"type": "RollingSync"}}, "spec.strategy", 1),
        ([{"list": {"elements": [{"x": "berlin"}]}}], {}, "spec.template", 0),
        ([{"list": {"elements": []}}], {}, "spec.generators", 0),
    ],
    ids=["plugin", "template-patch", "strategy", "missing-parameter", "no-application"],
)
def test_parts_of_an_application_set_that_cannot_be_imported(
    generators: list[dict[str, Any]], spec: dict[str, Any], field: str, count: int
) -> None:
    template = application({"path": "plain"}, "web-{{.c}}", destination={"name": "{{.c}}"})
    result = read(application_set(generators, template, **spec))

    assert len(result.requests) == count
    assert [entry.field for entry in result.not_imported] == [field]


def test_the_subfolders_of_a_folder_are_included_by_an_option() -> None:
    (request,) = read(application({"path": "nested", "directory": {"recurse": True}})).requests

    assert request.upstream.package == "nested"


@pytest.mark.parametrize("kind", ["List", "ApplicationList"])
def test_the_items_of_a_list_are_read_with_their_lines(kind: str) -> None:
    items = [application({"path": "plain"}), application({"path": "."}, "db-berlin"), "text"]
    listed = {"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "items": items}
    files = FileTree({"a.yaml": File(emit(listed).encode())})
    result = read_argocd(files, read_repository)

    assert [request.package for request in result.requests] == ["web"]
    (entry,) = result.not_imported
    assert entry.field == "items[1].spec.source.path"
    assert files["a.yaml"].data.splitlines()[entry.line - 1].split() == [b"path:", b'"."']


def test_different_applications_with_one_name_are_reported() -> None:
    generator = {"list": {"elements": [{"c": "berlin"}, {"c": "ohio"}, {"c": "berlin"}]}}
    template = application({"path": "plain"}, "web", destination={"name": "{{.c}}"})
    result = read(application_set([generator], template))

    assert [request.cluster for request in result.requests] == ["berlin"]
    assert [(entry.field, entry.reason) for entry in result.not_imported] == [
        ("spec.template.metadata.name", "several different Applications have the name 'web'")
    ]


@pytest.mark.parametrize(
    "destinations",
    [({"name": "prod_eu"}, {"name": "prod-eu"}), ({"server": "https://a:1"}, {"server": "https://a:2"})],
    ids=["names", "ports"],
)
def test_clusters_with_one_name_in_the_config_are_reported(destinations: tuple[dict[str, Any], ...]) -> None:
    documents = [application({"path": "plain"}, f"app-{n}", destination=place) for n, place in enumerate(destinations)]
    result = read(*documents)

    assert [request.name for request in result.requests] == ["app-0"]
    assert ["have the same name" in entry.reason for entry in result.not_imported] == [True]


def test_a_template_of_a_generator_overrides_the_template_of_the_set() -> None:
    override = {"spec": {"source": {"path": "charts/web"}}}
    generator = {"list": {"elements": [{"c": "berlin"}], "template": override}}
    template = application({"path": "plain"}, "web-{{.c}}", destination={"name": "{{.c}}"})

    (request,) = read(application_set([generator], template)).requests
    assert request.upstream.package == "charts/web"


def test_two_applications_with_one_package_are_reported() -> None:
    result = read(application({"path": "plain"}, "web"), application({"path": "plain"}, "web-berlin"))

    assert [request.name for request in result.requests] == ["web"]
    assert [entry.reason for entry in result.not_imported] == ["the package berlin/web is also that of Application web"]


def test_a_file_that_cannot_be_parsed_is_reported_except_for_templates_of_charts() -> None:
    broken = File(b"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{ x }}\n")
    files = FileTree({"a.yaml": broken, "c/Chart.yaml": File(b"name: c\n"), "c/templates/a.yaml": broken})

    assert [entry.file for entry in read_argocd(files, read_repository).not_imported] == ["a.yaml"]
