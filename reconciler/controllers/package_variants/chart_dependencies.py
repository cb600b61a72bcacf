"""The charts that a source requires and does not contain: search for their versions in chart repositories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from reconciler.catalog.files import FileTree
from reconciler.controllers.package_variants.artifact_resolution import ArtifactCatalog
from reconciler.controllers.package_variants.upstream_resolution import UnresolvedUpstream
from reconciler.controllers.repositories import Repository
from reconciler.krm.findings import Finding
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.artifacts import (
    UPSTREAM_NOT_FOUND,
    ArtifactRepository,
    ArtifactVersion,
    ChartDependencySource,
    SourceProblem,
)
from reconciler.packages.charts.dependencies import RequiredChart, find_missing_dependencies
from reconciler.packages.charts.metadata import read_chart_manifest
from reconciler.packages.source_codes import SourceCodes


@dataclass(frozen=True)
class ChartRepositories:
    """The chart repositories that a package can use.

    Attributes:
        by_url: The Repositories in the namespace of the package.
        explain_forbidden: Returns the reason why a Repository must not be used, or "".
    """

    by_url: Mapping[str, Repository]
    artifacts: ArtifactCatalog
    explain_forbidden: Callable[[Repository], str]

    def has_repository(self, chart: RequiredChart) -> bool:
        """Return whether a Repository has the URL of a chart."""
        return chart.repository.rstrip("/") in self.by_url

    def resolve_dependencies(self, chart: FileTree) -> tuple[ChartDependencySource, ...] | UnresolvedUpstream:
        """Return the charts that a chart requires and does not contain.

        If a required chart cannot be used, return the reason.
        """
        return self._find_sources(_list_dependencies(chart))

    def resolve_charts(self, charts: Sequence[RequiredChart]) -> tuple[ChartDependencySource, ...] | UnresolvedUpstream:
        """Return the charts that an overlay or a function uses, with their dependencies.

        If a chart cannot be used, return the reason.
        """
        sources = self._find_sources(charts)
        if isinstance(sources, UnresolvedUpstream):
            return sources
        found = {source.folder: source for source in sources}
        for source in sources:
            artifact = self.artifacts.read(source.repository, source.name, source.version)
            if isinstance(artifact, SourceProblem):
                return UnresolvedUpstream(artifact.code, artifact.message)
            dependencies = self.resolve_dependencies(artifact.files)
            if isinstance(dependencies, UnresolvedUpstream):
                return dependencies
            for dependency in dependencies:
                folder = f"{source.folder}/{dependency.folder}"
                found[folder] = replace(dependency, folder=folder)
        return tuple(found.values())

    def _find_sources(self, charts: Iterable[RequiredChart]) -> tuple[ChartDependencySource, ...] | UnresolvedUpstream:
        sources: list[ChartDependencySource] = []
        failures: list[UnresolvedUpstream] = []
        for chart in charts:
            found = self._find_source(chart)
            if isinstance(found, UnresolvedUpstream):
                failures.append(found)
            else:
                sources.append(found)
        if failures:
            return replace(failures[0], others=tuple(dict.fromkeys(failures[1:])))
        return tuple(sources)

    def _find_source(self, chart: RequiredChart) -> ChartDependencySource | UnresolvedUpstream:
        repository = self.by_url.get(chart.repository.rstrip("/"))
        if repository is None or repository.artifacts is None:
            finding = chart.create_finding()
            return UnresolvedUpstream(finding.code, finding.message)
        if reason := self.explain_forbidden(repository):
            message = f'{chart.requester} requires the chart "{chart.name}", which cannot be used: {reason}'
            return UnresolvedUpstream(SourceCodes.DEPENDENCY_REPOSITORY_MISSING.name, message)
        version = self._find_version(chart, repository.artifacts)
        if isinstance(version, SourceProblem):
            message = f'{chart.requester} requires the chart "{chart.name}", which cannot be used: {version.message}'
            return UnresolvedUpstream(version.code, message)
        return ChartDependencySource(chart.name, version, repository.artifacts, chart.folder)

    def _find_version(self, chart: RequiredChart, repository: ArtifactRepository) -> ArtifactVersion | SourceProblem:
        if repository.is_registry:
            found = self.artifacts.find_tag(repository, chart.name, chart.version)
            return found if isinstance(found, SourceProblem) else found.version
        listed = self.artifacts.list_versions(repository, chart.name)
        if isinstance(listed, SourceProblem):
            return listed
        wanted = chart.version.removeprefix("v")
        version = next((entry for entry in listed.versions if entry.version.removeprefix("v") == wanted), None)
        if version is None:
            message = f'Repository "{repository.name}" has no version "{chart.version}" of the chart "{chart.name}"'
            return SourceProblem(UPSTREAM_NOT_FOUND, message)
        if version.digest:
            return version
        # The index contains no digest. Therefore, read the archive, so that its digest becomes an input of the package.
        artifact = self.artifacts.read(repository, chart.name, version)
        if isinstance(artifact, SourceProblem):
            return artifact
        return ArtifactVersion(version.version, artifact.digest, version.url)


def _list_dependencies(chart: FileTree) -> tuple[RequiredChart, ...]:
    """Return the charts that a chart requires, and that it contains neither as a folder nor as an archive.

    Return () if the manifest of the chart is invalid. The render of the chart reports this error.
    """
    manifest = read_chart_manifest(chart)
    missing = () if isinstance(manifest, Finding) else find_missing_dependencies(chart, manifest)
    if isinstance(missing, Finding):
        return ()
    return tuple(required for required in missing if not _has_archive(chart, required))


def _has_archive(chart: FileTree, required: RequiredChart) -> bool:
    start = f"charts/{required.name}-"
    return any(path.startswith(start) and path.endswith(".tgz") for path in chart)
