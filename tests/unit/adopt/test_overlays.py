"""Kustomize overlays: their build root, and the options of other tools."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.adopt.overlays import OverlayError, find_build_root, read_options
from reconciler.catalog.files import File, FileTree

FILES = FileTree(
    {
        path: File(text.encode())
        for path, text in {
            "web/base/kustomization.yaml": "resources: [app.yaml]\n", "web/base/app.yaml": "a: 1\n",
            "web/overlays/prod/kustomization.yaml": "resources: [../../base]\n",
            "web/overlays/alone/kustomization.yaml": "resources: [app.yaml, https://example.com/x.yaml]\n",
            "web/overlays/alone/app.yaml": "a: 1\n",
            "web/overlays/files/kustomization.yaml": "configMapGenerator: [{name: c, files: [a=../../base/app.yaml]}]\n",
            "wide/kustomization.yml": "components: [../web/base]\n",
            "loop/a/kustomization.yaml": "resources: [../b]\n", "loop/b/kustomization.yaml": "resources: [../a]\n",
            "broken/kustomization.yaml": "a: [\n",
        }.items()
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("folder", "root"),
    [
        ("web/overlays/prod", "web"),
        ("web/overlays/alone", "web/overlays/alone"),
        ("web/overlays/files", "web"),
        ("wide", ""),
        ("loop/a", "loop"),
        ("broken", "broken"),
        ("missing", "missing"),
    ],
)
def test_the_build_root_contains_all_bases(folder: str, root: str) -> None:
    assert find_build_root(FILES, folder) == root


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({}, {}),
        ({"namespace": "shop", "namePrefix": "a-", "nameSuffix": ""}, {"namespace": "shop", "namePrefix": "a-"}),
        ({"images": ["web:2"]}, {"images": [{"name": "web", "newTag": "2"}]}),
        (
            {"images": ["web=example.com:5000/web@sha256:0"]},
            {"images": [{"name": "web", "newName": "example.com:5000/web", "digest": "sha256:0"}]},
        ),
        ({"images": [{"name": "web", "newTag": 2}]}, {"images": [{"name": "web", "newTag": "2"}]}),
        ({"replicas": [{"name": "web", "count": "3"}]}, {"replicas": [{"name": "web", "count": 3}]}),
        ({"commonAnnotations": {"a": "b"}}, {"commonAnnotations": {"a": "b"}}),
        ({"patches": [{"patch": "a: 1\n"}]}, {"patches": [{"patch": "a: 1\n"}]}),
    ],
)
def test_options_are_converted(options: dict[str, Any], fields: dict[str, Any]) -> None:
    request = read_options(options, "overlays/prod")

    assert (request.path, request.fields) == ("overlays/prod", fields)
    assert read_options(options, ".").path == ""


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"commonLabels": {"a": "b"}}, "commonLabels"),
        ({"patches": [{"path": "a.yaml"}]}, "patches"),
        ({"replicas": [{"name": "web", "count": "many"}]}, "replicas"),
    ],
)
def test_options_without_an_equivalent(options: dict[str, Any], field: str) -> None:
    with pytest.raises(OverlayError) as refused:
        read_options(options, ".")

    assert refused.value.field == field
