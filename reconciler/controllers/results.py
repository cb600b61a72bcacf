"""Result types of controllers: package variants, stalled owners, statuses of config objects, and deletion guards.

Planning depends only on these types and not on API kinds such as PackageVariant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, Protocol

from reconciler.api.base import omit_empty
from reconciler.api.kpt import UpdateStrategy
from reconciler.api.package_sources import RepositoryType, SourceKind
from reconciler.api.porch.policies import AdoptionPolicy, ConflictPolicy, DeletionPolicy, RepeatedResourcePolicy
from reconciler.catalog.catalog import ConfigObject
from reconciler.catalog.files import CommitId, FileTree, TreeId
from reconciler.catalog.trace import CatalogView
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.json_text import compute_digest
from reconciler.krm.objects import Condition, ObjectKey
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.memory import cached
from reconciler.packages.artifacts import ArtifactRepository, ChartDependencySource
from reconciler.packages.charts.helm_release import SecretValues
from reconciler.packages.charts.request import ChartRequest
from reconciler.packages.charts.value_sources import ChartValues
from reconciler.packages.kustomize.request import KustomizeRequest

ACCEPT_BASE = "reconciler.dev/accept-base"
"""An annotation of an owner: the trees that a person accepted as merge bases after the state was lost."""
RELEASE_SEPARATOR = ","


@dataclass(frozen=True, slots=True)
class PackageOwner:
    """The object that requests a package, such as a PackageVariant.

    `parent` is the object that generated the owner, such as a PackageVariantSet. `target_indexes` are the indexes in
    the parent's `spec.targets` that request the package.
    """

    key: ObjectKey
    api_version: str
    parent: ObjectKey | None = None
    target_indexes: tuple[int, ...] = field(default=(), compare=False)

    def as_data(self) -> dict[str, str]:
        """Return the owner in the format of status files and state."""
        data = {
            "apiVersion": self.api_version,
            "kind": self.key.kind,
            "namespace": self.key.namespace,
            "name": self.key.name,
        }
        return {**data, "set": self.parent.name} if self.parent else data


@dataclass(frozen=True, order=True, slots=True)
class PackageTarget:
    """Location of a package: the namespace and name of a Repository, and the package path."""

    namespace: str
    repository: str
    package: str

    def __str__(self) -> str:
        return f"{self.repository}/{self.package}"


@dataclass(frozen=True, slots=True)
class UpstreamPackage:
    """An upstream package at a commit, with the data for `upstreamLock` in the Kptfile.

    A chart or OCI artifact has its digest instead of a commit. `tree` is always the tree of the files before charts and
    overlays are rendered.

    A package with several sources has the attributes of its first source with resources, except `tree` and `sources`.

    Attributes:
        url: The URL from which the remote is read.
        repo: The URL that is written to Kptfiles. It contains no credentials.
        repository: The name of the Repository object.
        directory: The path of the package's directory, without a slash at its start.
        ref: A tag name, a branch name or a commit ID.
        is_floating: Whether the requested reference can move to another revision, e.g. a tag such as `stable`.
        type: The type of the Repository.
        kind: How the files become a package.
        app_version: The version of the application in a chart.
        chart: The request to render the files as a chart, or None if the files are the package.
        overlay: The request to build the files as a Kustomize overlay, or None for other kinds.
        artifacts: The chart repository or registry, or None for Git.
        allowed_secrets: The Secrets with values that the owner allows in the source, as "Kind/name". `chart` contains
            these names too.
        values: The layers of the chart's values. `chart` contains the merged text of these layers. Values files in the
            chart are not included, because they are read when the chart is rendered.
        chart_dependencies: The charts that a chart or an overlay requires and does not contain.
        function_charts: The charts that functions of the package render. These charts are not files of the package.
        release: The references to Secrets with values, if the package contains a HelmRelease instead of the resources
            of the chart. None for a package with resources.
        sources: All sources of a package with several sources. () for a package with one upstream. The tree of such a
            package contains the files of each source in a folder with the name of the source.
        on_repeated_resource: Behavior if two sources contain the same resource.
    """

    namespace: str
    repository: str
    url: str
    repo: str
    directory: str
    package: str
    ref: str
    commit: CommitId
    tree: TreeId
    committer_seconds: int = 0
    is_floating: bool = False
    type: RepositoryType = "git"
    kind: SourceKind = "kpt"
    app_version: str = ""
    chart: ChartRequest | None = None
    overlay: KustomizeRequest | None = None
    artifacts: ArtifactRepository | None = None
    allowed_secrets: tuple[str, ...] = ()
    # Do not compare the layers, because they contain line numbers of config files. These have no effect on the package.
    values: ChartValues = field(default_factory=ChartValues, compare=False)
    chart_dependencies: tuple[ChartDependencySource, ...] = ()
    function_charts: tuple[ChartDependencySource, ...] = ()
    release: tuple[SecretValues, ...] | None = None
    sources: tuple[PackageSource, ...] = ()
    on_repeated_resource: RepeatedResourcePolicy = "refuse"

    def as_data(self) -> dict[str, Any]:
        """Return the upstream in the format of the recorded state."""
        data: dict[str, Any] = {
            "repo": self.repo, "directory": self.directory, "ref": self.ref,
            "commit": self.commit, "tree": self.tree,
        }  # fmt: skip
        if self.sources:
            data["sources"] = [{"name": source.name, **source.upstream.as_data()} for source in self.sources]
        return data

    def as_status(self) -> dict[str, Any]:
        """Return the upstream in the format of status files, with the field names of its Repository type."""
        fields = format_upstream_status(self.type, self.as_data())
        if self.sources:
            fields["sources"] = [
                omit_empty({"name": source.name, **source.upstream.as_status()}) for source in self.sources
            ]
        if self.app_version:
            fields["appVersion"] = self.app_version
        if self.required_charts:
            fields["dependencies"] = [chart.as_data() for chart in self.required_charts]
        return fields

    @property
    def required_charts(self) -> tuple[ChartDependencySource, ...]:
        """All charts that are downloaded in addition to the files of the source."""
        return (*self.chart_dependencies, *self.function_charts)

    @property
    def packages(self) -> tuple[UpstreamPackage, ...]:
        """The upstream package of each source. If `sources` is empty, the tuple contains only this package."""
        return tuple(source.upstream for source in self.sources) or (self,)

    @property
    def urls(self) -> tuple[str, ...]:
        """The URLs of the Repositories that contain the sources of the package, or charts that the sources require."""
        packages = self.packages
        dependencies = (dependency for package in packages for dependency in package.required_charts)
        return (*(package.url for package in packages), *(dependency.repository.url for dependency in dependencies))

    @property
    def named_packages(self) -> tuple[PackageSource, ...]:
        """All sources with their names. A package with one upstream is one source with the name ""."""
        return self.sources or (PackageSource("", self),)

    @property
    def has_chart(self) -> bool:
        """Whether a source is rendered as a chart."""
        return any(package.chart for package in self.packages)

    @property
    def chart_release(self) -> str:
        """The Helm releases of all charts as text. "" for packages without a chart.

        In a package with several sources, each release has the name of its source as a prefix.
        """
        if not self.sources:
            return self.chart.release if self.chart else ""
        charts = ((source.name, source.upstream.chart) for source in self.sources)
        return RELEASE_SEPARATOR.join(f"{name}={chart.release}" for name, chart in charts if chart)

    @property
    def is_git_package(self) -> bool:
        """Whether the files of a Git folder are used without a render, so that kpt can update the package."""
        return self.type == "git" and self.kind in ("kpt", "manifests") and not self.sources

    @property
    def is_kpt_package(self) -> bool:
        """Whether the files are those of one kpt package."""
        return self.kind == "kpt" and not self.sources

    @property
    def title(self) -> str:
        """The location of the upstream, or of all sources, for messages."""
        return ", ".join(f"{package.repository}/{package.package}".rstrip("/") for package in self.packages)

    @property
    def summary(self) -> str:
        """The upstream in one line, for the trailers of commit messages. Several sources are separated by commas."""
        return _SUMMARY_SEPARATOR.join(
            f"{package.repository}/{package.package} {package.ref} {package.commit}" for package in self.packages
        )

    def with_sources(self, sources: tuple[PackageSource, ...]) -> UpstreamPackage:
        """Return this package with new commits of its sources. The files of the sources must be unchanged."""
        main = next(source.upstream for source in sources if source.has_resources)
        seconds = max(source.upstream.committer_seconds for source in sources)
        return replace(self, commit=main.commit, committer_seconds=seconds, sources=sources)

    def pin(self, recorded: Mapping[str, Any]) -> UpstreamPackage | None:
        """Return this upstream at the version in `recorded`. Return None if `recorded` contains different sources.

        Args:
            recorded: The result of `as_data` or of `read_upstream_status`.
        """
        by_name = {entry["name"]: entry for entry in recorded.get("sources", ())}
        locations = {source.name: _get_location(source.upstream.as_data()) for source in self.sources}
        if {name: _get_location(entry) for name, entry in by_name.items()} != locations:
            return None
        sources = tuple(
            replace(source, upstream=_pin(source.upstream, by_name[source.name])) for source in self.sources
        )
        return replace(_pin(self, recorded), sources=sources)

    @property
    def fingerprint(self) -> str:
        """Text that identifies the upstream in the recorded dependencies.

        The text contains only the fields of the upstream that affect the rendered package.
        """
        if self.sources:
            sources = [source.as_fingerprint_data() for source in self.sources]
            return f"sources {self.tree} {compute_digest([self.on_repeated_resource, sources])}"
        kind = "" if self.kind == "kpt" else f" {self.kind}"
        dependencies = [dependency.as_data() for dependency in self.chart_dependencies]
        inputs: list[Any] = [self.chart.key, self.values.fingerprint, dependencies] if self.chart else []
        inputs += [self.overlay.key] if self.overlay else []
        inputs += [dependencies] if self.overlay and dependencies else []
        inputs += [[chart.as_data() for chart in self.function_charts]] if self.function_charts else []
        inputs += [] if self.release is None else [[secret.as_data() for secret in self.release]]
        request = f" {compute_digest(inputs)}" if inputs else ""
        allowed = f" {' '.join(self.allowed_secrets)}" if self.allowed_secrets and not self.chart else ""
        return f"{self.repo} {self.directory} {self.ref} {self.tree}{kind}{request}{allowed}"


@dataclass(frozen=True)
class PackageSource:
    """One of several sources of a package.

    Attributes:
        directory: The folder in the package for the files of this source. "" is the root folder.
        values_files: For a source without resources: the values files that charts read. The tree of such a source
            contains only these files. None for a source with resources.
    """

    name: str
    upstream: UpstreamPackage
    directory: str = ""
    values_files: tuple[str, ...] | None = None

    @property
    def has_resources(self) -> bool:
        """Whether the files are resources of the package, and not only values files."""
        return self.values_files is None

    def as_fingerprint_data(self) -> list[Any]:
        """Return the fields that affect the rendered package."""
        return [self.name, self.directory, self.has_resources, self.upstream.fingerprint]


_SUMMARY_SEPARATOR = ", "


def list_summary_commits(summary: str) -> Iterator[str]:
    """Yield the commits and digests in the summary of an upstream."""
    for part in summary.split(_SUMMARY_SEPARATOR):
        yield part.rpartition(" ")[2]


def _pin(upstream: UpstreamPackage, recorded: Mapping[str, Any]) -> UpstreamPackage:
    names = ("repo", "directory", "ref", "commit", "tree")
    pinned = replace(upstream, **{name: recorded[name] for name in names if name in recorded})
    return replace(pinned, committer_seconds=recorded["seconds"]) if "seconds" in recorded else pinned


def _get_location(data: Mapping[str, Any]) -> tuple[Any, Any]:
    return data.get("repo"), data.get("directory") or ""


# For each type of Repository, maps the fields `repo`, `directory`, `ref`, `commit` and `tree` of an upstream to their
# names in status files.
_GIT_FIELDS = {name: name for name in ("repo", "directory", "ref", "commit", "tree")}
_STATUS_FIELDS: Mapping[RepositoryType, Mapping[str, str]] = {
    "git": _GIT_FIELDS,
    "helm": {**_GIT_FIELDS, "directory": "chart", "ref": "version", "commit": "digest"},
    "oci": {**_GIT_FIELDS, "directory": "package", "ref": "tag", "commit": "digest"},
}


def format_upstream_status(repository_type: RepositoryType, data: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the fields in a result of `UpstreamPackage.as_data` to the field names of status files.

    The field `sources` is omitted.
    """
    return {name: data[field] for field, name in _STATUS_FIELDS[repository_type].items() if field in data}


def read_upstream_status(data: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the upstream in a status file to the format of `UpstreamPackage.as_data`. Omit absent fields."""
    names = _STATUS_FIELDS["helm" if "chart" in data else "oci" if "package" in data else "git"]
    fields = {name: data[status_name] for name, status_name in names.items() if status_name in data}
    if sources := data.get("sources"):
        fields["sources"] = [{"name": source["name"], **read_upstream_status(source)} for source in sources]
    return fields


@dataclass(frozen=True)
class GeneratedSource:
    """The files of a package that a controller generates. Such a package has no upstream."""

    files: FileTree

    def as_data(self) -> dict[str, str]:
        """Return an empty mapping, because the package has no upstream."""
        return {}

    def as_status(self) -> dict[str, Any]:
        """Return an empty mapping, because the package has no upstream."""
        return {}

    @property
    def summary(self) -> str:
        """Always "", because the package has no upstream."""
        return ""

    @property
    def fingerprint(self) -> str:
        """Tree ID of the files. It identifies the files in the recorded dependencies."""
        return self.files.id

    @property
    def committer_seconds(self) -> int:
        """Zero, because generated files have no date."""
        return 0


@dataclass(frozen=True)
class SettlingReference:
    """An upstream reference that has moved. The new revision must not be used until the `settle` duration has passed.

    `until` is the end of this duration in seconds since 1970, calculated from a date in Git and not from the clock.
    """

    until: int
    message: str


@dataclass(frozen=True)
class ConfigInjection:
    """A completed injection of one config object into one injection point."""

    point: str
    file: str
    kind: str
    namespace: str
    name: str
    digest: str
    source_file: str = ""

    def as_data(self) -> dict[str, str]:
        """Return the injection in the format of status files."""
        return {
            "point": self.point, "file": self.file,
            "object": f"{self.kind}/{self.namespace}/{self.name}", "from": self.source_file, "hash": self.digest,
        }  # fmt: skip


MutationStep = Literal["context", "pipeline", "injection"]


@dataclass(frozen=True)
class MutationResult:
    """A package after its mutation steps. If a finding is an error, the files must not be used.

    `stages` contains the name of each step and the package after this step, in order.
    """

    files: FileTree
    injections: tuple[ConfigInjection, ...] = ()
    findings: tuple[Finding, ...] = ()
    stages: tuple[tuple[MutationStep, FileTree], ...] = ()


@dataclass(frozen=True)
class PreviousRender:
    """The input and the output of the previous render of a package variant.

    Attributes:
        rendered: The output of the render.
        base: The upstream package, which is the input of the render.
        branch: The package on its branch now, including local changes. None if this content is unknown.
    """

    rendered: FileTree
    base: FileTree
    branch: FileTree | None = None


class Mutation(Protocol):
    """Function that applies all mutation steps of a package variant: package context, pipeline and injection.

    Implementations must be picklable.
    """

    def __call__(self, files: FileTree, view: CatalogView, earlier: PreviousRender | None = None) -> MutationResult:
        """Apply all mutation steps to the package `files`, and return the result.

        Args:
            earlier: The output of the previous render. None if the package is rendered for the first time.
        """
        ...


class Provenance(Protocol):
    """Provenance of a generated package. It is calculated only when a status file is written."""

    def list_layers(self) -> list[dict[str, Any]]:
        """Return the field `layers` of the status file: the changes that led to each value. Secrets are masked."""
        ...

    def list_applied_overrides(self) -> list[dict[str, str]]:
        """Return the field `appliedOverrides` of the status file: the objects that changed the package."""
        ...

    def list_objects(self) -> list[dict[str, str]]:
        """Return the field `inputs.objects` of the status file: the source objects of the package."""
        ...


ConfigSources = Mapping[str, tuple[str, ...]]
"""For each config file path, the IDs of the objects in the file (see `format_object_id`)."""


def format_object_id(key: ObjectKey) -> str:
    """Return the ID of a config object in the state: `group/Kind/namespace/name`."""
    return "/".join(key)


def parse_object_id(object_id: str) -> ObjectKey:
    """Return the object key for an ID such as `apps/Deployment/default/web`.

    Raises:
        ValueError: The ID is invalid.
    """
    group, kind, namespace, name = object_id.split("/", 3)
    return ObjectKey(group, kind, namespace, name)


def collect_config_sources(manifests: Iterable[ConfigObject]) -> ConfigSources:
    """Return the config files of objects, sorted by path, with the IDs of the objects in each file."""
    return _group_by_file(tuple(sorted({(manifest.file, format_object_id(manifest.key)) for manifest in manifests})))


@cached(4_096)
def _group_by_file(objects: tuple[tuple[str, str], ...]) -> ConfigSources:
    ids_by_file: dict[str, tuple[str, ...]] = {}
    for file, object_id in objects:
        ids_by_file[file] = (*ids_by_file.get(file, ()), object_id)
    return ids_by_file


@dataclass(frozen=True, slots=True)
class Variant:
    """One package of the desired state, with everything that is required to render it.

    Attributes:
        deployment: Whether the target is a cluster. Such packages get a package context and cluster overrides.
        is_per_cluster: Whether the owner requests the same package on several clusters.
        settling: The upstream reference whose new revision must not be used yet. None if there is no such reference.
        strategy: The update strategy that the owner sets. None if the owner sets no strategy.
        conflict_policy: The conflict policy that the owner sets. None if the owner sets no policy.
        provenance: The origin of the values if a controller calculates the values from several objects, or None.
        dependencies: Fingerprints of the render inputs, by name of the input. Objects that the mutation reads are not
            included. If a fingerprint changes, the draft shows the name of the input as the reason of the change.
        sources: The config files that request the package. The state stores these files, so that a later pass can check
            whether the request was deleted.
        acknowledged_hashes: The deletions of resources of a chart that a person confirmed with an annotation.
        accepted_bases: The trees that a person accepted with an annotation as merge bases after the state was lost.
    """

    owner: PackageOwner
    target: PackageTarget
    source: UpstreamPackage | GeneratedSource
    mutation: Mutation
    dependencies: Mapping[str, str]
    deployment: bool = True
    adoption: AdoptionPolicy = "adoptNone"
    deletion: DeletionPolicy = "delete"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    settling: SettlingReference | None = None
    strategy: UpdateStrategy | None = None
    conflict_policy: ConflictPolicy | None = None
    is_per_cluster: bool = False
    provenance: Provenance | None = None
    sources: ConfigSources = field(default_factory=dict)
    tenant: str = ""
    acknowledged_hashes: frozenset[str] = frozenset()
    accepted_bases: frozenset[str] = frozenset()

    @property
    def upstream(self) -> UpstreamPackage | None:
        """The upstream package. None if a controller generates the files."""
        return self.source if isinstance(self.source, UpstreamPackage) else None

    @property
    def cluster(self) -> str:
        """The name of the target cluster. "" if the target is not a cluster."""
        return self.target.repository if self.deployment else ""


@dataclass(frozen=True)
class StalledVariant:
    """An owner whose package variant cannot be computed. Its published packages stay unchanged.

    `upstream_target` is the location of the upstream package, or None if the location is unknown. If the clusters of
    the owner are unknown, `packages` contains the package paths that the owner requests. `tenant` is the tenant of the
    owner, or "" for the platform team.
    """

    owner: PackageOwner
    conditions: tuple[Condition, ...]
    findings: tuple[Finding, ...]
    target: PackageTarget | None = None
    upstream_target: PackageTarget | None = None
    packages: frozenset[str] = frozenset()
    tenant: str = ""


@dataclass(frozen=True)
class RevisionPin:
    """A revision in the config that the daemon updates for a tag or version range (`tagMode: rewrite`).

    Attributes:
        line: First line of the object's document in `file`.
        path: Path of the upstream in the document.
        tag: The tag that the daemon follows. "" if it follows a version range.
        written_revision: The revision in the config. None if the config has no revision.
        tagged_revision: The revision that the tag or range selects now, in the notation of the config. None if the
            revision is unknown or has not settled.
        field_name: The upstream field that contains the revision: `revision`, or `version` or `digest` for an artifact.
        range: The version range that the daemon follows. "" if it follows a tag.
        is_replaced_range: Whether the proposal replaces the version range with a version. After the merge of the
            proposal, the daemon follows no range.
        is_same_package: Whether `written_revision` and `tagged_revision` have the same package content.
        is_downgrade: Whether the tagged revision is older than the revision in the config.
        seconds: Commit date of the tagged revision, in seconds since 1970.
    """

    key: ObjectKey
    file: str
    line: int
    path: tuple[str | int, ...]
    package: str
    tag: str
    written_revision: str | int | None
    tagged_revision: str | int | None
    location: SourceLocation
    is_same_package: bool = False
    is_downgrade: bool = False
    seconds: int = 0
    settling: SettlingReference | None = None
    field_name: Literal["revision", "version", "digest"] = "revision"
    range: str = ""
    is_replaced_range: bool = False

    @property
    def id(self) -> str:
        """The unique ID of the upstream in the config. The state uses this ID as a key."""
        return f"{self.key.reference} {'.'.join(map(str, self.path))}"


@dataclass(frozen=True)
class ConfigStatus:
    """Status of an object in the config, or a generated object with its spec and status.

    Attributes:
        fields: The fields of `.status` in addition to the conditions.
        spec: The spec of a generated object. None for an object in the config.
        metadata: The metadata of a generated object. Empty for an object in the config.
        children: The keys of the owners that this object generated.
        folder: Folder on the status branch for `files`.
        files: Contents of additional files, by file name. None leaves the existing files unchanged.
    """

    key: ObjectKey
    api_version: str
    conditions: tuple[Condition, ...] = ()
    fields: Mapping[str, object] = field(default_factory=dict)
    spec: Mapping[str, object] | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    children: tuple[ObjectKey, ...] = ()
    folder: str = ""
    files: Mapping[str, bytes] | None = None


@dataclass(frozen=True)
class DeletionGuard:
    """Decision about the existing packages that their owner no longer requests.

    Attributes:
        targets: The packages that may be deleted.
        reason: The reason why the deletion of other packages is blocked. "" if no deletion is blocked.
        existing_count: The number of packages from which the limit was calculated.
        unconfirmed: The packages whose deletion a person must confirm first.
        confirmed: The packages in `targets` whose deletion a person has confirmed. Other guards do not block the
            deletion of these packages.
    """

    targets: frozenset[PackageTarget] = frozenset()
    reason: str = ""
    existing_count: int = 0
    unconfirmed: frozenset[PackageTarget] = frozenset()
    acknowledged_hashes: frozenset[str] = frozenset()
    confirmed: frozenset[PackageTarget] = frozenset()

    def allows_deletion(self, target: PackageTarget) -> bool:
        """Return whether the package may be deleted."""
        return target in self.targets


@dataclass(frozen=True)
class ControllerResult:
    """Result of a controller for one catalog.

    `kept_owners` are owners that could not be processed, such as a set that failed. Their packages stay unchanged.
    `guards` contains the deletion guard of each owner. If an owner has no guard, no package of the owner is deleted.
    """

    variants: tuple[Variant, ...] = ()
    stalled: tuple[StalledVariant, ...] = ()
    statuses: tuple[ConfigStatus, ...] = ()
    findings: tuple[Finding, ...] = ()
    kept_owners: frozenset[ObjectKey] = frozenset()
    pins: tuple[RevisionPin, ...] = ()
    guards: Mapping[ObjectKey, DeletionGuard] = field(default_factory=dict)


def merge_results(results: Sequence[ControllerResult]) -> ControllerResult:
    """Return one result that combines the results of several controllers."""
    return ControllerResult(
        tuple(chain.from_iterable(result.variants for result in results)),
        tuple(chain.from_iterable(result.stalled for result in results)),
        tuple(chain.from_iterable(result.statuses for result in results)),
        tuple(chain.from_iterable(result.findings for result in results)),
        frozenset(chain.from_iterable(result.kept_owners for result in results)),
        tuple(chain.from_iterable(result.pins for result in results)),
        {key: guard for result in results for key, guard in result.guards.items()},
    )
