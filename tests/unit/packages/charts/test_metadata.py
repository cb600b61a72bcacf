"""Tests of reading `Chart.yaml`."""

from __future__ import annotations

import pytest

from reconciler.api.helm import ChartManifest
from reconciler.catalog.files import File, FileTree
from reconciler.packages.charts.metadata import check_chart_manifest, format_chart, read_chart_manifest


def test_name_and_version() -> None:
    text = "apiVersion: v2\nname: web\nversion: 1.2.3\nmaintainers: [{name: x}]\nkubeVersion: '>=1.25'\n"

    manifest = read_chart_manifest(FileTree({"Chart.yaml": File(text.encode())}))

    assert isinstance(manifest, ChartManifest)
    assert (format_chart(manifest), manifest.kube_version) == ("chart web 1.2.3", ">=1.25")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param({}, "the folder contains no file Chart.yaml", id="missing"),
        pytest.param({"Chart.yaml": "a: b: c"}, "cannot be parsed at line 1: the text is not valid YAML", id="syntax"),
        pytest.param({"Chart.yaml": "version: 1.2.3\n"}, "Chart.yaml has no name", id="no-name"),
        pytest.param({"Chart.yaml": "name: a\nversion: 1.1\n"}, "version must be a string", id="number"),
        pytest.param({"Chart.yaml": "name: a\n---\nname: b\n"}, "one document, but c", id="two-documents"),
    ],
)
def test_errors(files: dict[str, str], message: str) -> None:
    finding = read_chart_manifest(FileTree({path: File(text.encode()) for path, text in files.items()}))

    assert not isinstance(finding, ChartManifest)
    assert finding.code == "ChartRenderFailed"
    assert message in finding.message


@pytest.mark.parametrize(
    ("required", "version", "is_supported"),
    [
        pytest.param("", "1.20.0", True, id="no-requirement"),
        pytest.param(">=1.25.0-0", "1.34.0", True, id="lower-bound"),
        pytest.param(">=1.25.0-0", "1.24.9", False, id="too-old"),
        pytest.param(">=1.25.0", "1.34.0-gke.1", False, id="pre-release-as-in-helm"),
        pytest.param(">=1.25.0-0", "v1.34.0-gke.1", True, id="pre-release-in-the-range"),
        pytest.param("not a range", "1.34.0", False, id="invalid-range"),
    ],
)
def test_kubernetes_version(required: str, version: str, is_supported: bool) -> None:
    finding = check_chart_manifest(ChartManifest(name="web", version="1.2.3", kube_version=required), version)

    assert (finding is None) is is_supported
    if finding:
        assert finding.code == "ChartKubeVersion"
        assert f'requires Kubernetes "{required}", but is rendered for Kubernetes {version}.' in finding.message


def test_library_chart() -> None:
    finding = check_chart_manifest(ChartManifest(name="common", version="1.0.0", type="library"), "1.34.0")

    assert finding is not None
    assert (finding.code, finding.message) == (
        "ChartNotInstallable",
        'chart common 1.0.0 has the type "library" and cannot be rendered. Next step: use a chart that contains it as a dependency',
    )
