"""Tests of the dependencies that a chart does not contain: their locked versions and the findings about them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconciler.api.helm import ChartManifest
from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import Finding
from reconciler.packages.charts.dependencies import RequiredChart, find_missing_dependencies
from reconciler.packages.charts.metadata import read_chart_manifest

URL = "https://example.com/charts"
DB = "dependencies: [{name: db, version: %s, repository: %s}]\n"
LOCAL = {"parts/db/Chart.yaml": "name: db\nversion: 1.4.0\n", "parts/other/Chart.yaml": "name: other\nversion: 1.4.0\n"}


def find_missing(files: Mapping[str, str]) -> tuple[RequiredChart, ...] | Finding:
    texts = {"Chart.yaml": "", **files}
    texts["Chart.yaml"] = f"name: web\nversion: 1.0.0\n{texts['Chart.yaml']}"
    chart = FileTree({path: File(text.encode()) for path, text in texts.items()})
    manifest = read_chart_manifest(chart)
    assert isinstance(manifest, ChartManifest)
    return find_missing_dependencies(chart, manifest)


@pytest.mark.parametrize(
    ("files", "versions"),
    [
        pytest.param({}, [], id="no-dependencies"),
        pytest.param({"Chart.yaml": DB % ("1.2.3", URL)}, ["1.2.3"], id="exact-version-without-lock"),
        pytest.param({"Chart.yaml": DB % ("^1.2", URL), "Chart.lock": DB % ("1.4.0", URL)}, ["1.4.0"], id="locked"),
        pytest.param(
            {"requirements.yaml": DB % ("1.x", URL), "requirements.lock": DB % ("1.4.0", URL)},
            ["1.4.0"],
            id="format-v1",
        ),
        pytest.param(
            {"Chart.yaml": DB % ("^1.2", URL), "charts/x/Chart.yaml": "name: db\nversion: 0.1.0\n"}, [], id="present"
        ),
        pytest.param({"Chart.yaml": DB % ("1.x", "file://parts/db"), **LOCAL}, [], id="local"),
        pytest.param({"Chart.yaml": DB % ("1.x", "file://./parts/../parts/db"), **LOCAL}, [], id="local-path"),
        pytest.param(
            {"Chart.yaml": DB % ("1.2.3", URL), "charts/db/templates/Chart.yaml": "name: db\n"}, ["1.2.3"], id="nested"
        ),
        pytest.param(
            {
                "Chart.yaml": f"dependencies: [{{name: db, version: 1.x, repository: {URL}}}, {{name: db, alias: b, "
                f"version: 2.x, repository: {URL}}}]",
                "Chart.lock": "dependencies: [{name: db, version: 1.1.0}, {name: db, version: 2.2.0}]",
            },
            ["1.1.0", "2.2.0"],
            id="two-aliases-of-one-chart",
        ),
    ],
)
def test_missing_dependencies(files: dict[str, str], versions: list[str]) -> None:
    assert find_missing(files) == tuple(
        RequiredChart("db", version, URL, "charts/db", "chart web 1.0.0") for version in versions
    )


@pytest.mark.parametrize(
    ("files", "code", "text"),
    [
        pytest.param(
            {"Chart.yaml": DB % ("^1.2", URL)},
            "ChartNotLocked",
            'chart web 1.0.0 requires the chart "db", but its folder `charts` does not contain it. The version "^1.2" is not'
            " exact, and there is no Chart.lock. Next step: run `helm dependency update`",
            id="range-without-lock",
        ),
        pytest.param(
            {"Chart.yaml": DB % ("^1.2", URL), "Chart.lock": "dependencies: []\n"},
            "ChartNotLocked",
            'Chart.lock contains no version of "d',
            id="not-in-the-lock",
        ),
        pytest.param(
            {"Chart.yaml": DB % ("1.2.3", '"@bitnami"')},
            "DependencyRepositoryMissing",
            'the repository "@bitnami" of the dependency "db" is an alias in the settings of helm',
            id="alias",
        ),
        pytest.param(
            {"Chart.yaml": DB % ("1.2.3", "'alias:bitnami'")}, "DependencyRepositoryMissing", "alias", id="other-alias"
        ),
    ],
)
def test_errors(files: dict[str, str], code: str, text: str) -> None:
    finding = find_missing(files)

    assert isinstance(finding, Finding)
    assert finding.code == code
    assert text in finding.message


@pytest.mark.parametrize(
    ("repository", "text"),
    [
        pytest.param(
            URL,
            "and no Repository has the URL https://example.com/charts. Next step: add this Repository to the config: {apiVersion:"
            " config.porch.kpt.dev/v1alpha1, kind: Repository, metadata: {name: my-db-charts}, spec: {type: helm, helm:"
            ' {url: "https://example.com/charts"}}}',
            id="https",
        ),
        pytest.param("oci://example.com/x", 'url: "oci://example.com/x"', id="oci"),
        pytest.param(
            "file://../db",
            "The repository file://../db cannot be used. Next step: add the chart to its folder `charts`",
            id="file",
        ),
        pytest.param("", "The chart has no repository. Next step: add the chart to its folder `charts`", id="none"),
    ],
)
def test_repository_finding(repository: str, text: str) -> None:
    finding = RequiredChart("my_DB", "1.2.3", repository, "charts/my_DB", "chart web 1.0.0").create_finding()

    assert finding.code == "DependencyRepositoryMissing"
    assert finding.message.startswith(
        'chart web 1.0.0 requires version "1.2.3" of the chart "my_DB", but its folder `charts` does not contain it'
    )
    assert text in finding.message


@pytest.mark.parametrize(
    ("version", "repository"),
    [
        pytest.param("1.4.0", "file://../parts/db", id="outside-of-the-chart"),
        pytest.param("1.4.0", "file:///parts/db", id="absolute"),
        pytest.param("1.4.0", "file://.", id="the-chart-itself"),
        pytest.param("1.4.0", "file://parts/other", id="another-name"),
        pytest.param("2.0.0", "file://parts/db", id="another-version"),
        pytest.param("1.4.0", "parts/db", id="no-file-url"),
    ],
)
def test_folders_that_are_no_local_charts(version: str, repository: str) -> None:
    missing = find_missing({"Chart.yaml": DB % (version, repository), **LOCAL})
    assert missing == (RequiredChart("db", version, repository, "charts/db", "chart web 1.0.0"),)
