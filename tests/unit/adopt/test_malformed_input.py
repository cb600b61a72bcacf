"""Malformed objects of other tools are reported or ignored, and never end the import."""

from __future__ import annotations

import copy
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.adopt.argocd.applications import read_argocd
from reconciler.adopt.flux.reader import read_flux
from reconciler.adopt.grouping import generate_from_requests, generate_separately
from reconciler.adopt.importers import list_clusters
from reconciler.adopt.layout import FLUX_LAYOUT, parse_layout
from reconciler.adopt.requests import ReadRequests
from reconciler.catalog.files import File, FileTree
from reconciler.git.folder import read_folder
from reconciler.krm.yaml import emit
from tests.support.examples import examples

URL = "https://git.example.com/apps.git"
SOURCE = {"repoURL": URL, "path": "apps/{{.name}}", "targetRevision": "HEAD"}
HELM = {
    "releaseName": "r", "valueFiles": ["a.yaml", "$v/b.yaml"], "parameters": [{"name": "a.b", "value": "1"}],
    "valuesObject": {"x": [1]}, "values": "a: 1\n",
}  # fmt: skip
ARGOCD = [
    {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": "s", "annotations": {"argocd.argoproj.io/sync-wave": "1"}},
        "spec": {
            "goTemplate": True,
            "generators": [
                {
                    "matrix": {
                        "generators": [
                            {"clusters": {"selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}},
                            {"git": {"repoURL": URL, "directories": [{"path": "apps/*"}], "values": {"a": "b"}}},
                        ]
                    },
                    "selector": {"matchLabels": {"name": "c"}},
                },
                {"merge": {"mergeKeys": ["name"], "generators": [{"clusters": {}}, {"list": {"elements": [{"name": "c"}]}}]}},
                {"git": {"repoURL": URL, "files": [{"path": "apps/*/c.yaml", "exclude": False}]}},
                {"list": {"elements": [{"name": "web"}], "template": {"metadata": {"name": "x"}}}},
            ],
            "template": {
                "metadata": {"name": "a-{{.name}}"},
                "spec": {
                    "source": {**SOURCE, "helm": HELM, "directory": {"recurse": True}},
                    "destination": {"server": "https://c", "namespace": "n"},
                    "syncPolicy": {"syncOptions": ["CreateNamespace=true"]},
                },
            },
        },
    },
    {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "app"},
        "spec": {
            "sources": [{**SOURCE, "chart": "ksm", "helm": HELM}, {"repoURL": URL, "ref": "v"}],
            "destination": {"name": "c"},
        },
    },
    {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "overlay"},
        "spec": {
            "source": {
                "repoURL": URL,
                "path": "overlays/prod",
                "kustomize": {
                    "images": ["a=b:1", {"name": "c"}], "replicas": [{"name": "a", "count": 1}], "patches": [{"patch": "x"}],
                    "namePrefix": "a", "commonAnnotations": {"a": "b"}, "components": ["../component"],
                },
            },
            "destination": {"name": "c"},
        },
    },
    {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationList",
        "items": [
            {
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "Application",
                "metadata": {"name": "several"},
                "spec": {
                    "sources": [
                        {"repoURL": URL, "path": "apps/web", "helm": {"valueFiles": ["$v/b.yaml"]}},
                        {"repoURL": URL, "path": "overlays/prod", "kustomize": {"patches": [{"path": "p.yaml"}]}},
                        {"repoURL": "oci://example.com/app", "targetRevision": "1.*"},
                        {"repoURL": URL, "targetRevision": "v1", "ref": "v"},
                    ],
                    "destination": {"server": "https://d"},
                },
            }
        ],
    },
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "c", "labels": {"argocd.argoproj.io/secret-type": "cluster", "a": "b"}},
        "data": {"name": "Yw==", "server": "aHR0cHM6Ly9j"},
    },
]  # fmt: skip
FLUX = [
    {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "GitRepository",
        "metadata": {"name": "g"},
        "spec": {"url": URL, "ref": {"branch": "main"}},
    },
    {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": "k"},
        "spec": {
            "path": "./overlays/prod",
            "images": [{"name": "a", "newTag": "1"}],
            "targetNamespace": "n",
            "components": ["../component"],
            "patches": [{"patch": "a: 1\n", "target": {"kind": "A"}}],
            "sourceRef": {"kind": "GitRepository", "name": "g"},
            "postBuild": {"substitute": {"a": "b"}},
        },
    },
    {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": "h"},
        "spec": {
            "chart": {
                "spec": {"chart": "./c", "valuesFiles": ["a"], "sourceRef": {"kind": "GitRepository", "name": "g"}}
            },
            "values": {"a": {"b": 1}},
            "valuesFrom": [{"kind": "ConfigMap", "name": "m", "targetPath": "a.c"}],
            "install": {"crds": "Skip"},
        },
    },
    {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": "o"},
        "spec": {"chartRef": {"kind": "OCIRepository", "name": "o"}},
    },
    {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "OCIRepository",
        "metadata": {"name": "o"},
        "spec": {"url": "oci://example.com/app", "ref": {"tag": "1.0.0"}, "insecure": True},
    },
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"values.yaml": "a: 1\n"}},
]
WRONG_VALUES: tuple[Any, ...] = (None, 1, True, "x", "", [], [1], [None], {}, {"x": 1}, {"": None}, "{{.a}}", "a: [")


def list_paths(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from list_paths(value, (*path, key))


def change(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(data)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return changed


def build_files(documents: list[Any], folder: str) -> FileTree:
    text = "---\n".join(emit(document) for document in documents)
    others = {"apps/web/c.yaml": b"name: web\n", "apps/web/Chart.yaml": b"name: web\n", "b.yaml": b"a: 1\n",
        "overlays/prod/kustomization.yaml": b"resources: [../base]\n", "overlays/base/kustomization.yaml": b"a: b\n",
        "overlays/component/kustomization.yaml": b"kind: Component\n", "overlays/prod/p.yaml": b"a: 1\n",
    }  # fmt: skip
    return FileTree({f"{folder}/all.yaml": File(text.encode()), **{path: File(data) for path, data in others.items()}})


def generate(read: ReadRequests) -> None:
    clusters = list_clusters(read, {})
    generate_from_requests(read.requests, clusters)
    generate_separately(read.requests, clusters)


@settings(max_examples=examples(200))
@given(st.sampled_from([*list_paths(ARGOCD)]), st.sampled_from(WRONG_VALUES))
@example(path=(0, "spec", "template"), value=1)
def test_malformed_objects_of_argocd(path: tuple[Any, ...], value: Any) -> None:
    files = build_files(change(ARGOCD, path, value), "x")

    generate(read_argocd(files, lambda url, revision: files if url == URL else "no such repository"))


@settings(max_examples=examples(200))
@given(st.sampled_from([*list_paths(FLUX)]), st.sampled_from(WRONG_VALUES))
def test_malformed_objects_of_flux(path: tuple[Any, ...], value: Any) -> None:
    files = build_files(change(FLUX, path, value), "clusters/c")
    layout = parse_layout(FLUX_LAYOUT, ("cluster",))

    generate(read_flux(files, layout, lambda url, revision: files if url == URL else "no such repository"))


def find_module(path: str) -> Path:
    """Return the folder of a Go module in the module cache, or skip the test."""
    try:
        cache = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("go is not installed")
    folder = Path(cache) / path
    if not folder.is_dir():
        pytest.skip(f"{folder} is missing; `go mod download` creates it")
    return folder


@pytest.mark.slow
def test_all_examples_of_argocd_are_read() -> None:
    folder = find_module("github.com/argoproj/argo-cd/v3@v3.6.1")
    files = read_folder(folder).files
    url = "https://github.com/argoproj/argo-cd.git"

    result = read_argocd(files, lambda name, revision: files if name == url else "no such repository")

    sets = {path for path, file in files.items() if path.endswith(".yaml") and b"\nkind: ApplicationSet" in file.data}
    known = {request.file for request in result.requests} | {entry.file for entry in result.not_imported}
    assert len(sets) > 45
    assert sets - known == set()
    assert len(result.requests) > 10
    generate(result)
