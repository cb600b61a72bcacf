"""Resolution of a package with several sources: all sources together become one upstream package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.api.porch.package_variant import PackageVariantSpec
from reconciler.api.porch.sources import SourceSpec
from reconciler.api.porch.upstream import UpstreamSpec
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.files import DIRECTORY_MODE, compute_tree_id
from reconciler.controllers.package_variants.chart_provenance import ChartProvenance
from reconciler.controllers.package_variants.chart_requests import RenderOptions, RequestedChart
from reconciler.controllers.package_variants.chart_values import (
    OptionSource,
    collect_values,
    find_option_source,
)
from reconciler.controllers.package_variants.inputs import PackageVariantInputs, UnreachableUpstream, UpstreamResolver
from reconciler.controllers.package_variants.upstream_packages import (
    ResolutionFailure,
    build_upstream_package,
    create_revision_findings,
    describe_failure,
)
from reconciler.controllers.package_variants.upstream_resolution import (
    ResolvedRevision,
    UnresolvedUpstream,
    check_settling,
)
from reconciler.controllers.results import (
    PackageOwner,
    PackageSource,
    PackageTarget,
    SettlingReference,
    UpstreamPackage,
)
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.packages.charts.value_sources import SourceValuesFile
from reconciler.packages.source_kinds import CHART_FILE


@dataclass(frozen=True)
class FailedSource:
    """A source that cannot be used, so that the package is stalled.

    Attributes:
        path: Path of the field in the spec.
    """

    upstream: UpstreamSpec
    path: DataPath
    reason: UnresolvedUpstream | UnreachableUpstream

    def create_failure(self, location: SourceLocation) -> ResolutionFailure:
        """Return the conditions and the finding."""
        return describe_failure(self.reason, location)


@dataclass(frozen=True)
class ResolvedSources:
    """All sources of a package as one upstream package. If a finding is an error, the package is stalled.

    Attributes:
        dependencies: Maps the names of config objects and values files to their fingerprints.
        settling: The reference whose new revision must not be used yet. If there are several, the reference whose
            `settle` duration ends last. None if all revisions can be used.
    """

    upstream: UpstreamPackage
    findings: tuple[Finding, ...]
    dependencies: dict[str, str]
    settling: SettlingReference | None
    provenance: ChartProvenance | None


@dataclass(frozen=True)
class SourcesResolver:
    """Resolves the sources of one PackageVariant. All sources are resolved before anything is rendered."""

    owner: PackageOwner
    spec: PackageVariantSpec
    manifest: ConfigObject
    catalog: Catalog
    inputs: PackageVariantInputs
    upstreams: UpstreamResolver
    charts: dict[str, RequestedChart] = field(default_factory=dict)

    def resolve(self) -> ResolvedSources | FailedSource:
        """Return all sources as one upstream package, or the source that cannot be used."""
        if failed := self._check_number():
            return failed
        revisions: dict[str, ResolvedRevision] = {}
        for index, source in enumerate(self.spec.sources):
            resolution = self.upstreams.resolve(self._namespace, source.upstream)
            if not isinstance(resolution, ResolvedRevision):
                return FailedSource(source.upstream, ("sources", index), _name_source(resolution, index, source))
            revisions[source.name] = resolution
        if failed := self._find_option_error(revisions):
            return failed
        self.charts.update(self._collect_values(revisions))
        sources: list[PackageSource] = []
        for index, source in enumerate(self.spec.sources):
            built = self._build_source(source, revisions[source.name])
            if isinstance(built, UnresolvedUpstream):
                return FailedSource(source.upstream, ("sources", index), _name_source(built, index, source))
            sources.append(built)
        return self._combine(tuple(sources), revisions)

    @property
    def _namespace(self) -> str:
        return self.owner.key.namespace

    def _check_number(self) -> FailedSource | None:
        count, limit = len(self.spec.sources), self.inputs.max_sources
        if count <= limit:
            return None
        message = f"spec.sources has {count} sources, and the setting `sources.max_per_package` allows {limit}"
        return self._fail(message, ("sources",))

    def _find_option_error(self, revisions: dict[str, ResolvedRevision]) -> FailedSource | None:
        has_chart = False
        repositories = self.inputs.repositories
        for index, source in enumerate(self.spec.sources):
            is_chart = revisions[source.name].kind == "helm"
            has_chart |= is_chart
            if is_chart and not (source.helm or self.spec.helm):
                message = f'spec.helm.namespace must be set, because source "{source.name}" is a Helm chart'
                return self._fail(message, ("sources", index))
            options = source.helm or self.spec.helm
            repository_type = repositories[self._namespace, source.repo].type
            if is_chart and options and options.output == "helmRelease" and repository_type == "git":
                message = (
                    'helm.output "helmRelease" requires a Repository of the type "helm" or "oci", because'
                    " Flux downloads the"
                    f' chart; the Repository of source "{source.name}" has the type "git"'
                )
                return self._fail(message, ("sources", index))
            if source.helm and not is_chart:
                message = (
                    f'spec.sources[{index}].helm is not allowed, because source "{source.name}" has no {CHART_FILE}'
                )
                return self._fail(message, ("sources", index, "helm"))
            kind = revisions[source.name].kind
            if source.kustomize and kind != "kustomize":
                message = f'spec.sources[{index}].kustomize is not allowed, because the source has the kind "{kind}"'
                return self._fail(message, ("sources", index, "kustomize"))
        if self.spec.helm and not has_chart:
            return self._fail(f"spec.helm is not allowed, because no source has a {CHART_FILE}", ("helm",))
        return None

    def _fail(self, message: str, path: DataPath) -> FailedSource:
        return FailedSource(self.spec.main_upstream, path, UnresolvedUpstream("ValidationError", message))

    def _collect_values(self, revisions: dict[str, ResolvedRevision]) -> Iterator[tuple[str, RequestedChart]]:
        names = frozenset(revisions)
        for index, source in enumerate(self.spec.sources):
            options = source.helm or self.spec.helm
            if options and revisions[source.name].kind == "helm":
                place = self._find_options(index, source)
                yield (
                    source.name,
                    RequestedChart(options, collect_values(options, place, self.catalog, self._namespace, names)),
                )

    def _find_options(self, index: int, source: SourceSpec) -> OptionSource:
        """Return the location of the options of a source in the config."""
        if source.helm:
            return OptionSource(self.manifest, (("spec", "sources", index, "helm"),))
        return find_option_source(self.manifest, source.upstream, self.owner.target_indexes)

    def _combine(self, sources: tuple[PackageSource, ...], revisions: dict[str, ResolvedRevision]) -> ResolvedSources:
        collected = [chart.collected for chart in self.charts.values()]
        objects = tuple(dict.fromkeys(found for values in collected for found in values.objects))
        return ResolvedSources(
            self._build_upstream(sources),
            (*self._iterate_revision_findings(revisions), *_unique(values.findings for values in collected)),
            {name: fingerprint for values in collected for name, fingerprint in values.dependencies.items()},
            self._find_settling(revisions),
            ChartProvenance(tuple(values.values for values in collected), objects) if collected else None,
        )

    def _build_source(self, source: SourceSpec, revision: ResolvedRevision) -> PackageSource | UnresolvedUpstream:
        package = build_upstream_package(self._namespace, revision, self.inputs)
        if source.ref:
            files = self._list_values_files(source.name)
            # Use a tree with only the values files, because changes of other files do not change the package.
            tree = self.upstreams.compute_files_tree(self._namespace, revision, files)
            return PackageSource(source.name, replace(package, tree=tree), values_files=files)
        package = self._options.add(package, source.kustomize, self.charts.get(source.name))
        resolved = self.upstreams.add_charts(self._namespace, revision, package, self.spec.pipeline)
        if isinstance(resolved, UnresolvedUpstream):
            return resolved
        return PackageSource(source.name, resolved, source.directory)

    @property
    def _options(self) -> RenderOptions:
        downstream = self.spec.downstream
        target = PackageTarget(self._namespace, downstream.repo, downstream.package)
        repository = self.inputs.repositories[self._namespace, downstream.repo]
        return RenderOptions(self.spec, self.manifest.annotations, repository, target, self.inputs.chart_defaults)

    def _list_values_files(self, name: str) -> tuple[str, ...]:
        """Return the files that the charts read from a source, sorted and without duplicates."""
        entries = (entry for chart in self.charts.values() for entry in chart.collected.values.entries)
        return tuple(
            sorted({entry.path for entry in entries if isinstance(entry, SourceValuesFile) and entry.source == name})
        )

    def _build_upstream(self, sources: tuple[PackageSource, ...]) -> UpstreamPackage:
        main = next(source for source in sources if source.has_resources).upstream
        packages = [source.upstream for source in sources]
        tree = compute_tree_id((DIRECTORY_MODE, source.name, source.upstream.tree) for source in sources)
        return UpstreamPackage(
            main.namespace, main.repository, main.url, main.repo, main.directory, main.package, main.ref, main.commit,
            tree, max(package.committer_seconds for package in packages),
            any(package.is_floating for package in packages), main.type, main.kind,
            sources=sources, on_repeated_resource=self.spec.on_repeated_resource,
        )  # fmt: skip

    def _iterate_revision_findings(self, revisions: dict[str, ResolvedRevision]) -> Iterator[Finding]:
        for revision in revisions.values():
            yield from create_revision_findings(revision, self.manifest.location)

    def _find_settling(self, revisions: dict[str, ResolvedRevision]) -> SettlingReference | None:
        """Return the reference whose `settle` duration ends last. Return None if all revisions can be used now."""
        settling = [
            found
            for source in self.spec.sources
            if (found := check_settling(source.upstream, revisions[source.name], self.inputs.now_seconds))
        ]
        return max(settling, key=lambda found: found.until, default=None)


def _unique(groups: Iterable[tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """Return the findings of all charts without duplicates. Charts with the same options have the same findings."""
    return tuple(dict.fromkeys(finding for group in groups for finding in group))


def _name_source(
    resolution: UnresolvedUpstream | UnreachableUpstream, index: int, source: SourceSpec
) -> UnresolvedUpstream | UnreachableUpstream:
    """Return `resolution` with a message that contains the name of the source and its path in the spec."""
    text = resolution.message.replace("spec.upstream.", f"spec.sources[{index}].")
    return replace(resolution, message=f"source {source.name}: {text}")
