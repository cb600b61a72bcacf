"""Tests of the detection of source kinds: file names decide first, and then the contents."""

from __future__ import annotations

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.packages.source_kinds import (
    UnknownSourceKind,
    detect_manifests,
    detect_source_kind,
    list_missing_markers,
)

RESOURCE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


def build_named_tree(files: dict[str, str]) -> FileTree:
    return FileTree({name: File(text.encode()) for name, text in files.items()})


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        pytest.param({"Kptfile": "", "Chart.yaml": "", "kustomization.yaml": ""}, "kpt", id="kptfile-has-priority"),
        pytest.param({"Chart.yaml": "", "values.yaml": ""}, "helm", id="chart"),
        pytest.param({"kustomization.yaml": ""}, "kustomize", id="kustomization"),
        pytest.param({"kustomization.yml": ""}, "kustomize", id="kustomization-with-a-short-suffix"),
        pytest.param({"Kustomization": ""}, "kustomize", id="kustomization-without-a-suffix"),
        pytest.param({"a/b/c.yaml": RESOURCE}, "manifests", id="resource-in-a-subfolder"),
        pytest.param({"c.json": '{"apiVersion": "v1", "kind": "ConfigMap"}'}, "manifests", id="resource-in-json"),
        pytest.param({"c.yml": f"a: b\n---\n{RESOURCE}"}, "manifests", id="second-document"),
        pytest.param({"broken.yaml": "a: [", "c.yaml": RESOURCE}, "manifests", id="beside-a-broken-file"),
        pytest.param({"c.txt": RESOURCE}, "UpstreamEmpty", id="resource-in-another-file"),
        pytest.param({"c.yaml": "kind: ConfigMap\n"}, "UpstreamEmpty", id="no-api-version"),
        pytest.param({}, "UpstreamEmpty", id="no-file"),
        pytest.param({"Chart.yaml": "", "kustomization.yaml": ""}, "SourceKindAmbiguous", id="chart-and-kustomization"),
        pytest.param({"c.yaml": RESOURCE, "sub/Chart.yaml": ""}, "SourceKindAmbiguous", id="chart-in-a-subfolder"),
        pytest.param({"c.yaml": RESOURCE, "sub/Kptfile": ""}, "SourceKindAmbiguous", id="kptfile-in-a-subfolder"),
    ],
)
def test_kind_is_detected(files: dict[str, str], kind: str) -> None:
    detected = detect_source_kind(build_named_tree(files))

    assert (detected.code if isinstance(detected, UnknownSourceKind) else detected) == kind


def test_requested_manifests_can_contain_markers_in_subfolders() -> None:
    assert detect_manifests(build_named_tree({"c.yaml": RESOURCE, "sub/Chart.yaml": "a: b"})) == "manifests"


@pytest.mark.parametrize(
    ("kind", "files", "missing"),
    [
        pytest.param("kpt", {"Kptfile"}, (), id="kptfile"),
        pytest.param("helm", {"values.yaml"}, ("Chart.yaml",), id="chart"),
        pytest.param("kustomize", {"Kustomization"}, (), id="kustomization"),
        pytest.param("manifests", {"a.yaml"}, (), id="manifests"),
    ],
)
def test_missing_markers_are_listed(kind: str, files: set[str], missing: tuple[str, ...]) -> None:
    assert list_missing_markers(kind, files) == missing  # type: ignore[arg-type]
