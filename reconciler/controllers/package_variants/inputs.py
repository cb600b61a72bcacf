"""Inputs of the controller in addition to the catalog: Repositories, upstreams, and existing PackageVariants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from reconciler.api.kpt import FunctionSpec, PackageMetadata
from reconciler.api.porch.package_variant import PipelineSpec
from reconciler.api.porch.upstream import UpstreamSpec
from reconciler.catalog.files import CommitId, File, FileTree, TreeId
from reconciler.cel import ExpressionLimits
from reconciler.controllers.package_variants.artifact_resolution import (
    ArtifactCatalog,
    RecordedArtifact,
    resolve_artifact,
)
from reconciler.controllers.package_variants.chart_dependencies import ChartRepositories
from reconciler.controllers.package_variants.chart_requests import ChartDefaults
from reconciler.controllers.package_variants.set_targets import DownstreamKey
from reconciler.controllers.package_variants.upstream_fields import list_type_errors
from reconciler.controllers.package_variants.upstream_resolution import (
    ResolvedRevision,
    UnresolvedUpstream,
    UpstreamRefs,
    UpstreamRepository,
    describe_revision,
    find_revision,
    resolve_upstream,
)
from reconciler.controllers.repositories import Repositories, Repository, explain_missing_repository
from reconciler.controllers.results import UpstreamPackage
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.packages.artifacts import ArtifactRepository, ArtifactVersion, ChartDependencySource, SourceProblem
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.packages.kustomize.checks import find_missing_charts
from reconciler.packages.kustomize.request import KustomizeRequest
from reconciler.packages.package import CHART_FUNCTION, join_path
from reconciler.packages.source_union import select_files


class UpstreamRepositories(Protocol):
    """Access to the upstream repositories during one pass."""

    @property
    def artifacts(self) -> ArtifactCatalog:
        """The artifacts of all chart repositories and OCI registries."""
        ...

    def get_refs(self, repository: Repository) -> UpstreamRefs | str:
        """Return the refs of a Repository. Return the reason as text if the repository cannot be read now."""
        ...

    def get_url(self, repository: Repository) -> str:
        """Return the URL from which this pass reads the repository."""
        ...

    def get_commit_seconds(self, repository: Repository, commit: CommitId) -> int:
        """Return the date of a commit in seconds since 1970."""
        ...


@dataclass(frozen=True)
class PackageVariantInputs:
    """Inputs of the controller in addition to the catalog.

    Attributes:
        children: The existing PackageVariants of each PackageVariantSet, by the key of the set.
        max_delete_percent: Limit for deletions that need no confirmation, in percent of the PackageVariants of a set.
        engine: Identifier of the rendering code. If it changes, all packages are rendered again.
        now_seconds: Current time in seconds since 1970. This time determines whether the `settle` duration of a moved
            reference has passed. The time is not written to any output.
        blocked_counts: For each set, the PackageVariants whose deletion an earlier pass blocked. Each PackageVariant is
            mapped to the number of PackageVariants that the set had in that pass.
        list_recorded_artifacts: Returns the versions of a chart or artifact that existing packages use. The arguments
            are the URL of the Repository and the name of the chart or artifact.
        max_sources: The largest number of sources of one package.
        explain_forbidden: Returns the reason why an upstream Repository must not be used, or "". The function is called
            before the Repository is read. Otherwise, messages could contain the revisions of a Repository that a tenant
            may not read.
    """

    repositories: Repositories
    upstreams: UpstreamRepositories
    children: Mapping[ObjectKey, Sequence[DownstreamKey]] = field(default_factory=dict)
    max_delete_percent: int = 30
    engine: str = ""
    cel_limits: ExpressionLimits = field(default_factory=ExpressionLimits)
    now_seconds: int = 0
    blocked_counts: Mapping[ObjectKey, Mapping[DownstreamKey, int]] = field(default_factory=dict)
    chart_defaults: ChartDefaults = field(default_factory=ChartDefaults)
    max_sources: int = 8
    explain_forbidden: Callable[[Repository], str] = field(default=lambda repository: "", compare=False)
    list_recorded_artifacts: Callable[[str, str], Sequence[RecordedArtifact]] = lambda url, name: ()


@dataclass(frozen=True)
class UnreachableUpstream:
    """The result for an upstream whose repository cannot be read now. The upstream package may still exist."""

    message: str


DownloadedCharts = tuple[ChartDependencySource, ...] | UnresolvedUpstream
UpstreamResolution = ResolvedRevision | UnresolvedUpstream | UnreachableUpstream


class UpstreamResolver:
    """Resolves the upstreams of one pass, and caches each result."""

    def __init__(self, inputs: PackageVariantInputs) -> None:
        self._inputs = inputs
        self._resolutions: dict[tuple[str, UpstreamSpec], UpstreamResolution] = {}
        self._overlay_charts: dict[tuple[str, str, TreeId, KustomizeRequest], DownloadedCharts] = {}
        self._function_charts: dict[tuple[str, str, TreeId], DownloadedCharts] = {}

    def resolve(self, namespace: str, upstream: UpstreamSpec) -> UpstreamResolution:
        """Return the revision that an upstream in `namespace` refers to, or the reason why the revision is unknown."""
        key = (namespace, upstream)
        if key not in self._resolutions:
            self._resolutions[key] = self._resolve(namespace, upstream)
        return self._resolutions[key]

    def resolve_pin(self, namespace: str, upstream: UpstreamSpec) -> UpstreamResolution:
        """Return the immutable revision that the tag or range of an upstream selects now, or a failure with the reason.

        The upstream has `tagMode: rewrite`. The revision in the config may be older and is not used here.
        """
        resolution = self.resolve(namespace, upstream.with_followed_reference)
        if not isinstance(resolution, ResolvedRevision):
            return resolution
        repository = self._inputs.repositories[namespace, upstream.repo]
        if repository.artifacts:
            # No further search is needed, because the version and the digest of an artifact are immutable.
            return resolution
        refs = self._inputs.upstreams.get_refs(repository)
        assert not isinstance(refs, str), "the repository was readable when the upstream was resolved"
        return find_revision(resolution, upstream.rewritten_tag, _select_repository_fields(repository), refs)

    def compute_files_tree(self, namespace: str, revision: ResolvedRevision, paths: Sequence[str]) -> TreeId:
        """Return the tree ID of the files at `paths` in a resolved revision. Paths without a file are omitted."""
        repository = self._inputs.repositories[namespace, revision.repository]
        if repository.artifacts:
            return select_files(self._read_artifact(repository.artifacts, revision), paths).id
        refs = self._inputs.upstreams.get_refs(repository)
        assert not isinstance(refs, str), "the repository was readable when the source was resolved"
        contents = {path: refs.read_file(revision.commit, join_path(revision.directory, path)) for path in paths}
        return FileTree({path: File(data) for path, data in contents.items() if data is not None}).id

    def add_charts(
        self, namespace: str, revision: ResolvedRevision, package: UpstreamPackage, pipeline: PipelineSpec
    ) -> UpstreamPackage | UnresolvedUpstream:
        """Return `package` with the charts that its overlay and its functions use, or the reason of a failure.

        The charts are resolved here, so that a render does not download charts that were not resolved before.

        Args:
            pipeline: The functions of the PackageVariant. They run in addition to the functions of the package.
        """
        if package.overlay and package.overlay.charts:
            charts = self._find_overlay_charts(namespace, revision, package.overlay)
            return charts if isinstance(charts, UnresolvedUpstream) else replace(package, chart_dependencies=charts)
        if package.kind != "kpt":
            return package
        charts = self._find_function_charts(namespace, revision, pipeline)
        return charts if isinstance(charts, UnresolvedUpstream) else replace(package, function_charts=charts)

    def _find_overlay_charts(
        self, namespace: str, revision: ResolvedRevision, overlay: KustomizeRequest
    ) -> DownloadedCharts:
        key = (namespace, revision.repository, revision.tree, overlay)
        if key not in self._overlay_charts:
            files = self._read_files(self._inputs.repositories[namespace, revision.repository], revision)
            missing = find_missing_charts(files, overlay)
            self._overlay_charts[key] = self._find_chart_repositories(namespace).resolve_charts(missing)
        return self._overlay_charts[key]

    def _find_function_charts(
        self, namespace: str, revision: ResolvedRevision, pipeline: PipelineSpec
    ) -> DownloadedCharts:
        own = tuple(spec for spec in (*pipeline.mutators, *pipeline.validators) if CHART_FUNCTION in spec.image)
        if not own and not revision.renders_charts:
            return ()
        key = (namespace, revision.repository, revision.tree)
        if own or key not in self._function_charts:
            files = self._read_files(self._inputs.repositories[namespace, revision.repository], revision)
            charts = _resolve_function_charts(files, own, self._find_chart_repositories(namespace))
            if own:
                return charts
            self._function_charts[key] = charts
        return self._function_charts[key]

    def describe(self, namespace: str, upstream: UpstreamSpec) -> Mapping[str, Any] | UnresolvedUpstream:
        """Return the CEL variable `upstream` of a PackageVariantSet, or the reason why the upstream is unknown."""
        resolution = self.resolve(namespace, upstream)
        match resolution:
            case UnreachableUpstream(message):
                return UnresolvedUpstream("UpstreamUnreachable", message)
            case UnresolvedUpstream():
                return resolution
            case ResolvedRevision():
                metadata = self._read_metadata(namespace, resolution)
                return describe_revision(resolution, namespace, metadata.labels, metadata.annotations)

    def _resolve(self, namespace: str, upstream: UpstreamSpec) -> UpstreamResolution:
        repository = self._inputs.repositories.get((namespace, upstream.repo))
        if repository is None:
            return UnresolvedUpstream(
                "UpstreamNotFound", explain_missing_repository(self._inputs.repositories, namespace, upstream.repo)
            )
        if errors := list_type_errors(upstream, repository):
            return UnresolvedUpstream("ValidationError", "; ".join(errors.values()), next(iter(errors)))
        if message := self._inputs.explain_forbidden(repository):
            return UnreachableUpstream(message)
        if repository.artifacts:
            resolution = resolve_artifact(
                upstream, repository.artifacts, self._inputs.upstreams.artifacts,
                self._inputs.list_recorded_artifacts(repository.url, upstream.package_name),
            )  # fmt: skip
        else:
            refs = self._inputs.upstreams.get_refs(repository)
            if isinstance(refs, str):
                return UnreachableUpstream(refs)
            resolution = resolve_upstream(upstream, _select_repository_fields(repository), refs)
        if isinstance(resolution, ResolvedRevision) and resolution.kind == "helm":
            return self._add_dependencies(namespace, repository, resolution)
        return resolution

    def _read_artifact(self, repository: ArtifactRepository, revision: ResolvedRevision) -> FileTree:
        """Return the files of an artifact. Return no files if it cannot be read now."""
        version = ArtifactVersion(revision.ref, revision.commit)
        artifact = self._inputs.upstreams.artifacts.read(repository, revision.package, version)
        return FileTree() if isinstance(artifact, SourceProblem) else artifact.files

    def _add_dependencies(
        self, namespace: str, repository: Repository, revision: ResolvedRevision
    ) -> ResolvedRevision | UnresolvedUpstream:
        """Add to a revision all charts that its chart requires but does not contain. Return the changed revision.

        If one of these charts cannot be resolved, return the reason.
        """
        charts = self._find_chart_repositories(namespace)
        dependencies = charts.resolve_dependencies(self._read_files(repository, revision))
        if isinstance(dependencies, UnresolvedUpstream):
            return dependencies
        return replace(revision, dependencies=dependencies) if dependencies else revision

    def _read_files(self, repository: Repository, revision: ResolvedRevision) -> FileTree:
        """Return the files of a source before a render. Return no files if they cannot be read now."""
        if repository.artifacts:
            return self._read_artifact(repository.artifacts, revision)
        refs = self._inputs.upstreams.get_refs(repository)
        files = FileTree() if isinstance(refs, str) else refs.read_package(revision.tree)
        return FileTree() if isinstance(files, str) else files

    def _find_chart_repositories(self, namespace: str) -> ChartRepositories:
        """Return the chart repositories of a namespace."""
        by_url = {
            repository.url: repository
            for (other_namespace, _), repository in sorted(self._inputs.repositories.items())
            if other_namespace == namespace and repository.type == "helm"
        }
        return ChartRepositories(by_url, self._inputs.upstreams.artifacts, self._inputs.explain_forbidden)

    def _read_metadata(self, namespace: str, revision: ResolvedRevision) -> PackageMetadata:
        repository = self._inputs.repositories[namespace, revision.repository]
        if repository.artifacts or revision.kind != "kpt":
            return PackageMetadata()
        refs = self._inputs.upstreams.get_refs(repository)
        assert not isinstance(refs, str), "the repository was readable when the upstream was resolved"
        content = refs.read_file(revision.commit, f"{revision.directory}/{KPTFILE}")
        kptfile = read_kptfile(content) if content else ()
        return kptfile.model.metadata if isinstance(kptfile, Kptfile) else PackageMetadata()


def _resolve_function_charts(
    files: FileTree, functions: Sequence[FunctionSpec], repositories: ChartRepositories
) -> DownloadedCharts:
    """Return the charts that functions use.

    Charts without a Repository are omitted. The function that uses such a chart reports the error when it runs.
    """
    # Import the module here, because most packages contain no charts.
    from reconciler.packages.functions.helm_chart_config import find_required_charts

    charts = find_required_charts(files, functions)
    return repositories.resolve_charts([chart for chart in charts if repositories.has_repository(chart)])


def _select_repository_fields(repository: Repository) -> UpstreamRepository:
    return UpstreamRepository(repository.key.name, repository.branch, repository.directory, repository.tag_prefix)
