"""`reconciler adopt` with charts of a chart repository and of a registry: equal renders, and no change after that."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.archives import pack_files
from tests.support.artifact_servers import CHART_LAYER, ArtifactServer, RegistryServer, registry, serve
from tests.support.command_line import CommandResult, run_in
from tests.support.daemon import ENVIRONMENT
from tests.support.git_repositories import commit_files, git, make_bare
from tests.support.programs import find_program

__all__ = ["registry"]

CLUSTERS = {"berlin": 2, "ohio": 3}
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: ksm\nversion: 1.2.0\n",
    "values.yaml": "size: 1\n",
    "templates/map.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}, namespace: shop}\n"
        "data: {size: {{ .Values.size | quote }}}\n"
    ),
}
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {package}-{cluster}}}
spec:
  source: {{repoURL: {url}, chart: ksm, targetRevision: {version}, helm: {{releaseName: {package}, values: 'size: {size}'}}}}
  destination: {{name: {cluster}, namespace: shop}}
"""
FLUX_SOURCES = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {{name: stable, namespace: shop}}
spec: {{url: {http}}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {{name: registry, namespace: shop}}
spec: {{type: oci, insecure: true, url: {oci}}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {{name: artifact, namespace: shop}}
spec: {{insecure: true, url: {oci}/ksm, ref: {{tag: stable}}}}
"""
RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {{name: {package}, namespace: shop}}
spec:
  {chart}
  values: {{size: {size}}}
"""


def chart_of(repository: str, version: str) -> str:
    source = f"sourceRef: {{kind: HelmRepository, name: {repository}}}"
    return f"chart: {{spec: {{chart: ksm, version: '{version}', {source}}}}}"


FLUX_CHARTS = {
    "http": chart_of("stable", "1.x"),
    "oci": chart_of("registry", "1.2.0"),
    "artifact": "chartRef: {kind: OCIRepository, name: artifact}",
}


@pytest.fixture
def charts() -> Iterator[ArtifactServer]:
    """Run a chart repository."""
    with serve(ArtifactServer()) as server:
        yield server


class Fleet:
    """A repository with objects of another tool, and clusters with the resources that this tool has applied."""

    def __init__(self, folder: Path, charts: ArtifactServer, registry: RegistryServer) -> None:
        self.folder = folder
        archive = pack_files({f"ksm/{path}": text for path, text in CHART.items()})
        charts.add_chart("ksm", "1.2.0", archive)
        for tag in ("1.2.0", "stable"):
            registry.push("charts/ksm", tag, archive, CHART_LAYER)
        self.http = f"{charts.url}/charts"
        self.oci = f"oci://{registry.host}/charts"
        mirror = f"{{prefix: 'oci://registry.example.com/', url: 'oci://{registry.host}/', insecure: true}}"
        settings = f"sources:\n  helm: {{program: {find_program('helm')}}}\n  mirrors: [{mirror}]\n"
        (folder / "settings.yaml").write_text(settings)

    def write(self, files: Mapping[str, str], packages: tuple[str, ...]) -> None:
        """Write the source, and the output of helm to the target branches and to the folder of rendered manifests."""
        source, fleet = make_bare(self.folder / "source.git"), make_bare(self.folder / "fleet.git")
        commit_files(source, "refs/heads/main", {path: text.encode() for path, text in files.items()})
        chart = self.folder / "chart"
        for path, text in CHART.items():
            (chart / path).parent.mkdir(parents=True, exist_ok=True)
            (chart / path).write_text(text)
        for cluster, size in CLUSTERS.items():
            outputs = {package: self._render(package, size) for package in packages}
            for package, text in outputs.items():
                file = self.folder / "rendered" / cluster / f"{package}.yaml"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            existing = {f"{package}/configmap-{package}.yaml": text.encode() for package, text in outputs.items()}
            commit_files(fleet, f"refs/heads/clusters/{cluster}", existing)

    def _render(self, package: str, size: int) -> str:
        command = [find_program("helm"), "template", package, "chart", "--namespace", "shop", "--set", f"size={size}"]
        return subprocess.run(command, cwd=self.folder, text=True, capture_output=True, check=True).stdout

    def run(self, folder: str, *arguments: str) -> CommandResult:
        return run_in(self.folder / folder, ENVIRONMENT, *arguments)

    def adopt(self, *arguments: str) -> CommandResult:
        options = ("-O", "out", "--fleet", "fleet.git", "--settings", "settings.yaml", *arguments)
        return self.run(".", "adopt", "source.git", *options)


@pytest.fixture
def fleet(tmp_path: Path, charts: ArtifactServer, registry: RegistryServer) -> Fleet:
    return Fleet(tmp_path, charts, registry)


def check_adoption(fleet: Fleet, packages: tuple[str, ...]) -> None:
    """Check that all packages are equal, and that the new config changes no resource file."""
    count = len(packages) * len(CLUSTERS)
    for basis in ((), ("--rendered", "rendered")):
        result = fleet.adopt(*basis)
        assert result.returncode == 0, result.stdout + result.stderr
        assert f"{count} packages on 2 clusters: {count} Equal, 0 Different, 0 NotVerified; 0 not" in result.stdout
        (fleet.folder / "out").rename(fleet.folder / f"out-{len(basis)}")
    settings = (fleet.folder / "settings.yaml").read_text()
    with (fleet.folder / "out-2/reconciler.yaml").open("a") as file:
        file.write(settings)

    planned = fleet.run("out-2", "plan")
    assert planned.returncode in (0, 2), planned.stderr
    assert "configmap-" not in planned.stdout

    assert fleet.run("out-2", "sync").returncode == 0
    repository = fleet.folder / "fleet.git"
    for cluster in CLUSTERS:
        changes = git(repository, "diff", "--name-status", f"clusters/{cluster}", f"drafts/{cluster}").splitlines()
        assert {change.rpartition("/")[2] for change in changes if ".reconciler/" not in change} == {
            "Kptfile", "package-context.yaml",
        }  # fmt: skip
        assert {change[0] for change in changes} == {"A"}


def test_charts_of_applications(fleet: Fleet) -> None:
    packages = ("http", "oci")
    urls = {"http": (fleet.http, "1.*"), "oci": ("registry.example.com/charts", "1.2.0")}
    files = {
        f"{cluster}/{package}.yaml": APPLICATION.format(
            package=package, cluster=cluster, size=size, url=urls[package][0], version=f"'{urls[package][1]}'"
        )
        for cluster, size in CLUSTERS.items()
        for package in packages
    }
    fleet.write(files, packages)

    check_adoption(fleet, packages)


@pytest.mark.slow
def test_charts_of_releases(fleet: Fleet) -> None:
    packages = tuple(FLUX_CHARTS)
    files = {
        f"clusters/{cluster}/{package}.yaml": RELEASE.format(package=package, chart=chart, size=size)
        for cluster, size in CLUSTERS.items()
        for package, chart in FLUX_CHARTS.items()
    }
    sources = FLUX_SOURCES.format(http=fleet.http, oci=fleet.oci)
    fleet.write({**files, **{f"clusters/{cluster}/sources.yaml": sources for cluster in CLUSTERS}}, packages)

    check_adoption(fleet, packages)
