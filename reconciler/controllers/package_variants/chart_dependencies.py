"""The charts that a chart requires and does not contain: search for their versions in chart repositories."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reconciler.catalog.files import FileTree
from reconciler.controllers.package_variants.artifact_resolution import ArtifactCatalog
from reconciler.controllers.package_variants.upstream_resolution import UnresolvedUpstream
from reconciler.controllers.repositories import Repository
from reconciler.krm.findings import Finding
from reconciler.packages.artifacts import (
    UPSTREAM_NOT_FOUND,
    ArtifactRepository,
    ArtifactVersion,
    ChartDependencySource,
    SourceProblem,
)
from reconciler.packages.charts.dependencies import (
    MissingDependency,
    create_repository_finding,
    find_missing_dependencies,
)
from reconciler.packages.charts.metadata import read_chart_manifest
from reconciler.packages.source_codes import SourceCodes


def resolve_dependencies(
    chart: FileTree,
    repositories: Iterable[Repository],
    artifacts: ArtifactCatalog,
    explain_forbidden: Callable[[Repository], str],
) -> tuple[ChartDependencySource, ...] | UnresolvedUpstream:
    """Return the versions of the charts that a chart does not contain, or the reason why one cannot be used.

    Args:
        repositories: The Repositories in the namespace of the package.
        explain_forbidden: Returns the reason why a Repository must not be used, or "".
    """
    manifest = read_chart_manifest(chart)
    # Errors about the chart itself are reported when the chart is rendered.
    missing = () if isinstance(manifest, Finding) else find_missing_dependencies(chart, manifest)
    if isinstance(missing, Finding) or isinstance(manifest, Finding):
        return ()
    by_url = {repository.url: repository for repository in repositories if repository.type == "helm"}
    sources = []
    for dependency in missing:
        if _has_archive(chart, dependency):
            continue
        repository = by_url.get(dependency.repository.rstrip("/"))
        if repository is None or repository.artifacts is None:
            finding = create_repository_finding(manifest, dependency)
            return UnresolvedUpstream(finding.code, finding.message)
        if reason := explain_forbidden(repository):
            message = f"a chart that {manifest.name} requires: {reason}"
            return UnresolvedUpstream(SourceCodes.DEPENDENCY_REPOSITORY_MISSING.name, message)
        version = _find_version(dependency, repository.artifacts, artifacts)
        if isinstance(version, SourceProblem):
            return UnresolvedUpstream(version.code, f"a chart that {manifest.name} requires: {version.message}")
        sources.append(ChartDependencySource(dependency.name, version, repository.artifacts))
    return tuple(sources)


def _has_archive(chart: FileTree, dependency: MissingDependency) -> bool:
    start = f"charts/{dependency.name}-"
    return any(path.startswith(start) and path.endswith(".tgz") for path in chart)


def _find_version(
    dependency: MissingDependency, repository: ArtifactRepository, artifacts: ArtifactCatalog
) -> ArtifactVersion | SourceProblem:
    if repository.is_registry:
        found = artifacts.find_tag(repository, dependency.name, dependency.version)
        return found if isinstance(found, SourceProblem) else found.version
    listed = artifacts.list_versions(repository, dependency.name)
    if isinstance(listed, SourceProblem):
        return listed
    wanted = dependency.version.removeprefix("v")
    version = next((entry for entry in listed.versions if entry.version.removeprefix("v") == wanted), None)
    if version is None:
        message = f"Repository {repository.name} has no version {dependency.version} of the chart {dependency.name}"
        return SourceProblem(UPSTREAM_NOT_FOUND, message)
    if version.digest:
        return version
    # An index without digests: read the archive, so that the digest becomes an input of the package.
    artifact = artifacts.read(repository, dependency.name, version)
    if isinstance(artifact, SourceProblem):
        return artifact
    return ArtifactVersion(version.version, artifact.digest, version.url)
