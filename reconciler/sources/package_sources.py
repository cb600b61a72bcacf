"""Renders the sources of packages: the last step between the files of a source and the files of a package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Protocol

from reconciler.catalog.files import FileTree
from reconciler.controllers.resource_findings import find_plaintext_secrets
from reconciler.controllers.results import UpstreamPackage
from reconciler.krm.findings import Finding, select_errors, upgrade_to_error
from reconciler.lazy_dataclasses import replace
from reconciler.packages.artifacts import (
    Artifact,
    ArtifactRepository,
    ArtifactVersion,
    SourceProblem,
)
from reconciler.packages.charts.metadata import read_chart_manifest
from reconciler.packages.charts.value_sources import (
    CHART,
    ChartValues,
    ResolvedValues,
    ValuesSource,
    locate_values_finding,
)
from reconciler.packages.functions.registry import format_program_trace_key
from reconciler.packages.kptfile import KPTFILE, create_kptfile
from reconciler.packages.source_codes import TEMPORARY_CODES, SourceCodes
from reconciler.planning.model.sources import SourceContent, SourceFailedError
from reconciler.sources.helm import HelmEngine

HELM_TRACE_KEY = format_program_trace_key("helm")


class ArtifactReader(Protocol):
    """Reads artifacts by digest."""

    def read(self, repository: ArtifactRepository, name: str, version: ArtifactVersion) -> Artifact | SourceProblem:
        """Return the files of a version."""
        ...


class PackageSources:
    """Reads artifacts and renders sources. Implements `SourceRenderer`.

    The engine is built when the first chart is rendered.
    """

    def __init__(self, build_helm: Callable[[], HelmEngine], artifacts: ArtifactReader) -> None:
        self._build_helm = build_helm
        self._artifacts = artifacts

    @cached_property
    def helm(self) -> HelmEngine:
        """The engine that renders charts."""
        return self._build_helm()

    def identify_helm(self) -> str:
        """Return the identity of the program helm. Return "" if the program is not available now."""
        return self.helm.identity()

    def read_artifact(self, upstream: UpstreamPackage) -> FileTree:
        """Return the files of a chart or OCI artifact.

        Raises:
            SourceFailedError: The artifact cannot be read now, or its files have changed although its digest has not.
        """
        assert upstream.artifacts, "the upstream is a chart or OCI artifact"
        return self._read(upstream.artifacts, upstream.package, ArtifactVersion(upstream.ref, upstream.commit))

    def _read(self, repository: ArtifactRepository, name: str, version: ArtifactVersion) -> FileTree:
        artifact = self._artifacts.read(repository, name, version)
        if isinstance(artifact, SourceProblem):
            finding = upgrade_to_error(SourceCodes.by_name[artifact.code].finding(artifact.message))
            raise SourceFailedError((finding,), should_retry=artifact.should_retry)
        return artifact.files

    def render(self, upstream: UpstreamPackage, files: FileTree) -> SourceContent:
        """Return the package files for the files of a source.

        Raises:
            SourceFailedError: The source cannot be rendered. The error contains the findings.
        """
        if upstream.chart is None:
            # A Secret of a kpt package in Git is only a warning, because its values are already in a package.
            is_checked = upstream.type != "git" or upstream.kind != "kpt"
            if is_checked and (secrets := find_plaintext_secrets(files, upstream.allowed_secrets)):
                raise SourceFailedError(secrets)
            return SourceContent(files)
        values = _resolve_values(upstream, files)
        rendered = self.helm.render(files, replace(upstream.chart, values=values.text))
        findings = (
            *values.findings, *(locate_values_finding(finding, values.layers) for finding in rendered.findings)
        )  # fmt: skip
        if errors := select_errors(findings):
            is_temporary = any(finding.code in TEMPORARY_CODES for finding in errors)
            raise SourceFailedError(findings, should_retry=is_temporary)
        programs = {HELM_TRACE_KEY: self.identify_helm()}
        package = _add_kptfile(rendered.files, files)
        read_values = ChartValues(values.layers) if upstream.values.has_source_files else None
        return SourceContent(package, findings, programs, rendered.templates, read_values)

    def render_ahead(self, sources: Sequence[tuple[UpstreamPackage, FileTree]]) -> None:
        """Render several sources at the same time, so that `render` returns the results without a new render."""
        jobs = []
        for upstream, files in sources:
            # `render` reports the error again.
            with suppress(SourceFailedError):
                if upstream.chart:
                    values = _resolve_values(upstream, files)
                    jobs.append((files, replace(upstream.chart, values=values.text)))
        if jobs:
            self.helm.render_all(jobs)

    def add_dependencies(self, upstream: UpstreamPackage, chart: FileTree) -> FileTree:
        """Return the files of a chart with the required charts in the folder `charts`.

        Raises:
            SourceFailedError: A dependency cannot be read.
        """
        files = {
            f"charts/{dependency.name}/{path}": file
            for dependency in upstream.chart_dependencies
            for path, file in self._read(dependency.repository, dependency.name, dependency.version).items()
        }
        return chart.with_files(files)


def _resolve_values(upstream: UpstreamPackage, chart: FileTree) -> ResolvedValues:
    """Return the values of a chart. Raises SourceFailedError if a values file cannot be read."""
    values = upstream.values.resolve({CHART: ValuesSource(chart, upstream.commit)})
    if select_errors(values.findings):
        raise SourceFailedError(values.findings)
    return values


def _add_kptfile(package: FileTree, chart: FileTree) -> FileTree:
    """Add a Kptfile with the name and description of a chart. The lock is added when the package is created."""
    manifest = read_chart_manifest(chart)
    if isinstance(manifest, Finding):
        return package
    kptfile = create_kptfile(manifest.name)
    if manifest.description:
        kptfile = kptfile.with_description(manifest.description)
    return package.with_files({KPTFILE: kptfile.to_bytes()})
