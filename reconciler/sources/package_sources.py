"""Renders the sources of packages: the last step between the files of a source and the files of a package."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from reconciler.catalog.files import FileTree
from reconciler.controllers.resource_findings import find_plaintext_secrets
from reconciler.controllers.results import UpstreamPackage
from reconciler.krm.findings import Finding, downgrade_to_warning, select_errors, upgrade_to_error
from reconciler.lazy_dataclasses import replace
from reconciler.packages.artifacts import (
    Artifact,
    ArtifactRepository,
    ArtifactVersion,
    ChartDependencySource,
    SourceProblem,
)
from reconciler.packages.charts.helm_release import ReleasedChart, build_release_files
from reconciler.packages.charts.metadata import read_chart_manifest
from reconciler.packages.charts.request import ChartRequest, RenderedSource
from reconciler.packages.charts.value_sources import (
    CHART,
    ChartValues,
    ResolvedValues,
    ValuesSource,
    locate_values_finding,
)
from reconciler.packages.functions.registry import format_program_trace_key
from reconciler.packages.kptfile import KPTFILE, create_kptfile
from reconciler.packages.kustomize.request import KustomizeRequest
from reconciler.packages.package import join_path
from reconciler.packages.source_codes import TEMPORARY_CODES, SourceCodes
from reconciler.packages.source_union import SourceFiles, combine_sources
from reconciler.planning.model.sources import SourceContent, SourceFailedError
from reconciler.sources.helm import HelmEngine

if TYPE_CHECKING:
    from reconciler.sources.engine_programs import EngineProblem, EngineVersion
    from reconciler.sources.kustomize import KustomizeEngine

_VALUES_CODES = frozenset(
    code.name
    for code in (
        SourceCodes.CHART_RENDER_FAILED,
        SourceCodes.VALUES_INVALID,
        SourceCodes.VALUES_NOT_FOUND,
        SourceCodes.VALUES_PRECISION,
    )
)
_GENERATED_KINDS = ("helm", "kustomize")
"""The kinds of sources whose render creates a Kptfile."""
HELM_TRACE_KEY = format_program_trace_key("helm")
KUSTOMIZE_TRACE_KEY = format_program_trace_key("kustomize")


class ArtifactReader(Protocol):
    """Reads artifacts by digest."""

    def read(self, repository: ArtifactRepository, name: str, version: ArtifactVersion) -> Artifact | SourceProblem:
        """Return the files of a version."""
        ...


class PackageSources:
    """Reads artifacts and renders sources. Implements `SourceRenderer`.

    Each engine is built when the first chart or overlay is rendered.
    """

    def __init__(
        self,
        build_helm: Callable[[], HelmEngine],
        build_kustomize: Callable[[], KustomizeEngine],
        artifacts: ArtifactReader,
    ) -> None:
        self._build_helm = build_helm
        self._build_kustomize = build_kustomize
        self._artifacts = artifacts

    @cached_property
    def helm(self) -> HelmEngine:
        """The engine that renders charts."""
        return self._build_helm()

    @cached_property
    def kustomize(self) -> KustomizeEngine:
        """The engine that builds overlays."""
        return self._build_kustomize()

    def find_helm(self) -> EngineVersion | EngineProblem:
        """Return the program helm. If it is not available, return the reason."""
        return self.helm.find_program()

    def identify_helm(self) -> str:
        """Return the identity of the program helm. Return "" if the program is not available now."""
        return self.helm.identity()

    def identify_kustomize(self) -> str:
        """Return the identity of the program that builds overlays. Return "" if no program is available now."""
        return self.kustomize.identity()

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
        """Render the files of a source, and return the files of the package.

        Raises:
            SourceFailedError: The source cannot be rendered. The error contains the findings.
        """
        if upstream.sources:
            return self._render_sources(upstream, files)
        return self._render_package(upstream, files, {})

    def _render_sources(self, upstream: UpstreamPackage, files: FileTree) -> SourceContent:
        """Render each source with resources, and return the union of their files. Raises SourceFailedError."""
        shared = _list_values_sources(upstream, files)
        rendered = [
            (source, self._render_package(source.upstream, shared[source.name].files, shared))
            for source in upstream.sources
            if source.has_resources
        ]
        union = combine_sources(
            [
                SourceFiles(source.name, content.files, source.directory, source.upstream.kind not in _GENERATED_KINDS)
                for source, content in rendered
            ],
            last_wins=upstream.on_repeated_resource == "lastWins",
        )
        contents = [content for _, content in rendered]
        findings = (*(finding for content in contents for finding in content.findings), *union.findings)
        if select_errors(findings):
            raise SourceFailedError(findings)
        return SourceContent(
            union.files,
            findings,
            {key: program for content in contents for key, program in content.programs.items()},
            {
                join_path(source.directory, path): template
                for source, content in rendered
                for path, template in content.templates.items()
            },
            tuple(values for content in contents for values in content.values),
            union.source_names,
            FileTree({path: file for content in contents for path, file in content.charts.items()}),
        )

    def _render_package(
        self, upstream: UpstreamPackage, files: FileTree, shared: Mapping[str, ValuesSource]
    ) -> SourceContent:
        """Render the files of one source, and return the files that it adds to the package.

        Args:
            shared: The files of all sources of the package, by source name. A chart can use values files from them. {}
                for a package with one source.
        """
        if upstream.chart:
            return self._render_chart(upstream, upstream.chart, files, shared)
        if upstream.overlay:
            return self._build_overlay(upstream, upstream.overlay, files)
        # A Secret in a kpt package in Git is only a warning, because Git already contains the values of the Secret.
        is_checked = upstream.type != "git" or upstream.kind != "kpt"
        if is_checked and (secrets := find_plaintext_secrets(files, upstream.allowed_secrets)):
            raise SourceFailedError(secrets)
        return SourceContent(files, charts=self._read_charts(upstream.function_charts))

    def _render_chart(
        self, upstream: UpstreamPackage, request: ChartRequest, files: FileTree, shared: Mapping[str, ValuesSource]
    ) -> SourceContent:
        values = _resolve_values(upstream, files, shared)
        rendered = self.helm.render(files, _build_request(upstream, request, values))
        findings = (
            *values.findings, *(locate_values_finding(finding, values.layers) for finding in rendered.findings)
        )  # fmt: skip
        read_values = (ChartValues(values.layers),) if upstream.values.has_source_files or shared else ()
        if upstream.release is not None:
            package = _add_kptfile(_build_release(upstream, request, values), files)
            return SourceContent(package, _select_release_findings(upstream, findings), values=read_values)
        _check_findings(findings)
        programs = {HELM_TRACE_KEY: self.identify_helm()}
        package = _add_kptfile(rendered.files, files)
        return SourceContent(package, findings, programs, rendered.templates, read_values)

    def _build_overlay(self, upstream: UpstreamPackage, request: KustomizeRequest, files: FileTree) -> SourceContent:
        built = self.kustomize.render(files, request)
        _check_findings(built.findings)
        kptfile = create_kptfile(upstream.package.rpartition("/")[2])
        package = built.files.with_files({KPTFILE: kptfile.to_bytes()})
        programs = {KUSTOMIZE_TRACE_KEY: self.identify_kustomize()}
        if request.charts:
            programs[HELM_TRACE_KEY] = self.identify_helm()
        return SourceContent(package, built.findings, programs)

    def render_ahead(self, sources: Sequence[tuple[UpstreamPackage, FileTree]]) -> None:
        """Render several sources at the same time, so that `render` returns the results without a new render."""
        charts: list[tuple[FileTree, ChartRequest]] = []
        overlays: list[tuple[FileTree, KustomizeRequest]] = []
        for upstream, files in sources:
            # Ignore the error here, because `render` reports it.
            with suppress(SourceFailedError):
                shared = _list_values_sources(upstream, files)
                for package, package_files in _list_packages(upstream, files, shared):
                    if package.chart:
                        values = _resolve_values(package, package_files, shared)
                        charts.append((package_files, _build_request(package, package.chart, values)))
                    if package.overlay:
                        overlays.append((package_files, package.overlay))
        if charts:
            self.helm.render_all(charts)
        if overlays:
            self.kustomize.render_all(overlays)

    def preview_charts(self, previews: Sequence[tuple[UpstreamPackage, ChartRequest]]) -> tuple[RenderedSource, ...]:
        """Render previews of charts at the same time. For an upstream that cannot be read, return the findings."""
        charts = [self._try_to_read_chart(upstream) for upstream, _ in previews]
        jobs = zip(charts, (request for _, request in previews), strict=True)
        rendered = iter(
            self.helm.render_all([(chart, request) for chart, request in jobs if isinstance(chart, FileTree)])
        )
        return tuple(next(rendered) if isinstance(chart, FileTree) else chart for chart in charts)

    def _try_to_read_chart(self, upstream: UpstreamPackage) -> FileTree | RenderedSource:
        try:
            return self.add_dependencies(upstream, self.read_artifact(upstream))
        except SourceFailedError as error:
            return RenderedSource(findings=error.findings)

    def add_dependencies(self, upstream: UpstreamPackage, source: FileTree) -> FileTree:
        """Add the charts that a source requires to its files.

        Raises:
            SourceFailedError: A dependency cannot be read.
        """
        return source.with_files(self._read_charts(upstream.chart_dependencies))

    def _read_charts(self, charts: Sequence[ChartDependencySource]) -> FileTree:
        """Return the files of charts in their folders. Raises SourceFailedError."""
        return FileTree(
            {
                f"{chart.folder}/{path}": file
                for chart in charts
                for path, file in self._read(chart.repository, chart.name, chart.version).items()
            }
        )


def _list_values_sources(upstream: UpstreamPackage, files: FileTree) -> dict[str, ValuesSource]:
    """Return a mapping from the name of each source to its unrendered files.

    Args:
        files: The files of all sources. The first folder of each path is the name of the source.
    """
    return {
        source.name: ValuesSource(files.subtree(source.name), source.upstream.commit) for source in upstream.sources
    }


def _list_packages(
    upstream: UpstreamPackage, files: FileTree, shared: Mapping[str, ValuesSource]
) -> tuple[tuple[UpstreamPackage, FileTree], ...]:
    """Return the upstream package of each source, with its unrendered files."""
    if not upstream.sources:
        return ((upstream, files),)
    return tuple((source.upstream, shared[source.name].files) for source in upstream.sources)


def _resolve_values(upstream: UpstreamPackage, chart: FileTree, shared: Mapping[str, ValuesSource]) -> ResolvedValues:
    """Return the values of a chart. Raises SourceFailedError if a values file cannot be read."""
    values = upstream.values.resolve({**shared, CHART: ValuesSource(chart, upstream.commit)})
    if select_errors(values.findings):
        raise SourceFailedError(values.findings)
    return values


def _build_request(upstream: UpstreamPackage, request: ChartRequest, values: ResolvedValues) -> ChartRequest:
    """Return the request with all values. If the package is a HelmRelease, return the request for a preview."""
    complete = replace(request, values=values.text)
    return complete if upstream.release is None else complete.as_preview()


def _check_findings(findings: tuple[Finding, ...]) -> None:
    """Raise SourceFailedError if a finding is an error."""
    if errors := select_errors(findings):
        is_temporary = any(finding.code in TEMPORARY_CODES for finding in errors)
        raise SourceFailedError(findings, should_retry=is_temporary)


def _build_release(upstream: UpstreamPackage, request: ChartRequest, values: ResolvedValues) -> FileTree:
    assert upstream.artifacts, "only charts of repositories and registries can be HelmReleases"
    version = ArtifactVersion(upstream.ref, upstream.commit)
    chart = ReleasedChart(upstream.artifacts, upstream.package, version)
    return build_release_files(chart, request, json.loads(values.text), upstream.release or ())


def _select_release_findings(upstream: UpstreamPackage, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings about the values of a HelmRelease, and omit findings about the rendered resources.

    The package contains only the HelmRelease. Its chart is rendered to validate the values, and the rendered resources
    are discarded. If a Secret contains values, errors become warnings, because the render did not have these values.

    Raises:
        SourceFailedError: The chart cannot be rendered with the values.
    """
    selected = tuple(finding for finding in findings if finding.code in _VALUES_CODES)
    if upstream.release:
        return tuple(map(downgrade_to_warning, selected))
    if select_errors(selected):
        raise SourceFailedError(selected)
    return selected


def _add_kptfile(package: FileTree, chart: FileTree) -> FileTree:
    """Add a Kptfile with the name and description of a chart. The lock is added when the package is created."""
    manifest = read_chart_manifest(chart)
    if isinstance(manifest, Finding):
        return package
    kptfile = create_kptfile(manifest.name)
    if manifest.description:
        kptfile = kptfile.with_description(manifest.description)
    return package.with_files({KPTFILE: kptfile.to_bytes()})
