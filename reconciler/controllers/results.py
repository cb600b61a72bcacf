"""Results of controllers: package variants, blocked owners, status of config objects, deletion guards.

Planning works with these types only and does not depend on the API kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, Protocol

from reconciler.catalog.catalog import ConfigObject
from reconciler.catalog.files import CommitId, FileTree, TreeId
from reconciler.catalog.trace import CatalogView
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.objects import Condition, ObjectKey
from reconciler.memory import cached


@dataclass(frozen=True, slots=True)
class PackageOwner:
    """The object that requests a package.

    `parent` is the object that generated the owner, for example a PackageVariantSet; `target_indexes` are the indexes
    of its `spec.targets` that request the package.
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
    """Location of a package: a Repository by namespace and name, and a package path."""

    namespace: str
    repository: str
    package: str

    def __str__(self) -> str:
        return f"{self.repository}/{self.package}"


@dataclass(frozen=True, slots=True)
class UpstreamPackage:
    """A resolved upstream package: the content of its lock, and its tree.

    Attributes:
        url: The remote to read from.
        repo: The URL for Kptfiles, without credentials.
        repository: The Repository's name.
        directory: The package's directory, without a leading slash.
        ref: A tag name, a branch name or a commit.
        is_floating: Whether the requested reference can move, so that it is not `ref`.
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

    def as_data(self) -> dict[str, str]:
        """Return the upstream in the format of status files."""
        return {
            "repo": self.repo, "directory": self.directory, "ref": self.ref,
            "commit": self.commit, "tree": self.tree,
        }  # fmt: skip

    @property
    def summary(self) -> str:
        """The upstream on one line, for commit trailers."""
        return f"{self.repository}/{self.package} {self.ref} {self.commit}"

    @property
    def fingerprint(self) -> str:
        """The fields that the output of a render depends on, in the format of the trace."""
        return f"{self.repo} {self.directory} {self.ref} {self.tree}"


@dataclass(frozen=True)
class GeneratedSource:
    """Files that a controller generates: the whole source of a package without an upstream."""

    files: FileTree

    def as_data(self) -> dict[str, str]:
        """Return no fields, because there is no upstream."""
        return {}

    @property
    def summary(self) -> str:
        """Empty, because there is no upstream."""
        return ""

    @property
    def fingerprint(self) -> str:
        """The id of the files, in the format of the trace."""
        return self.files.id

    @property
    def committer_seconds(self) -> int:
        """Zero: generated files have no date of their own."""
        return 0


@dataclass(frozen=True)
class SettlingReference:
    """A moved upstream reference whose `settle` duration has not passed.

    `until` is in seconds since 1970: a date from Git plus the duration, and never the time of a clock.
    """

    until: int
    message: str


@dataclass(frozen=True)
class ConfigInjection:
    """One completed config injection: the injection point, and the object that the content comes from."""

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
    """A package after the mutation steps. With an error finding the files must not be used.

    `stages` is the package after each step, by the step's name and in order.
    """

    files: FileTree
    injections: tuple[ConfigInjection, ...] = ()
    findings: tuple[Finding, ...] = ()
    stages: tuple[tuple[MutationStep, FileTree], ...] = ()


@dataclass(frozen=True)
class PreviousRender:
    """The variant's previous output, and the upstream package that it was rendered from.

    `branch` is the package on its branch now, with local changes; None if only the output is known.
    """

    rendered: FileTree
    base: FileTree
    branch: FileTree | None = None


class Mutation(Protocol):
    """The mutation steps of a variant in order: package context, pipeline, injection. It must be picklable."""

    def __call__(self, files: FileTree, view: CatalogView, earlier: PreviousRender | None = None) -> MutationResult:
        """Return the package with all steps applied. Without `earlier` the package is a first clone."""
        ...


class Provenance(Protocol):
    """Origin of the values of a generated package. It is calculated only when it is written."""

    def list_layers(self) -> list[dict[str, Any]]:
        """Return `layers` of the status file: the steps that led to each value, redacted."""
        ...

    def list_applied_overrides(self) -> list[dict[str, str]]:
        """Return `appliedOverrides` of the status file: the objects that changed the package, in order."""
        ...

    def list_objects(self) -> list[dict[str, str]]:
        """Return `inputs.objects` of the status file: the objects that the package was generated from."""
        ...


AdoptionPolicy = Literal["adoptNone", "adoptExisting"]
DeletionPolicy = Literal["delete", "orphan"]
UpdateStrategy = Literal["resource-merge", "copy-merge", "fast-forward", "force-delete-replace"]
ConflictPolicy = Literal["upstream", "local", "block"]


def get_default_conflict_policy(profile: Literal["safe", "compat"]) -> ConflictPolicy:
    """Return the conflict policy of a package with an upstream if no object and no setting names one.

    Profile `safe` keeps local changes. Profile `compat` takes the upstream's value, as kpt does.
    """
    return "local" if profile == "safe" else "upstream"


ConfigSources = Mapping[str, tuple[str, ...]]
"""Config files by path, each with the ids of its objects (`format_object_id`)."""


def format_object_id(key: ObjectKey) -> str:
    """Return the id of a config object in state: `group/Kind/namespace/name`."""
    return "/".join(key)


def parse_object_id(object_id: str) -> ObjectKey:
    """Return the object key for an id. Raises ValueError for an invalid id."""
    group, kind, namespace, name = object_id.split("/", 3)
    return ObjectKey(group, kind, namespace, name)


def collect_config_sources(manifests: Iterable[ConfigObject]) -> ConfigSources:
    """Return the config files of objects, sorted. Equal results are usually the identical object."""
    return _group_by_file(tuple(sorted({(manifest.file, format_object_id(manifest.key)) for manifest in manifests})))


@cached(4_096)
def _group_by_file(objects: tuple[tuple[str, str], ...]) -> ConfigSources:
    ids_by_file: dict[str, tuple[str, ...]] = {}
    for file, object_id in objects:
        ids_by_file[file] = (*ids_by_file.get(file, ()), object_id)
    return ids_by_file


@dataclass(frozen=True, slots=True)
class Variant:
    """One package of the desired state, ready to be rendered.

    Attributes:
        deployment: Whether the target is a cluster. Then the package gets a package context and cluster overrides.
        is_per_cluster: Whether the owner has one such package on each of its clusters.
        settling: Set while a moved upstream reference must not be followed yet.
        strategy: The owner's update strategy; None if it names none.
        conflict_policy: The owner's conflict policy; None if it names none.
        provenance: The origin of the values, if a controller calculated them from several objects.
        dependencies: Name and fingerprint of each input of the render besides the objects that the mutation looks up.
            The name is shown as the cause of a draft when the fingerprint changes.
        sources: The config files without which the package would not exist. State records them, so that a later pass
            can check that they were deleted.
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

    @property
    def upstream(self) -> UpstreamPackage | None:
        """The upstream package; None if a controller generates the files."""
        return self.source if isinstance(self.source, UpstreamPackage) else None

    @property
    def cluster(self) -> str:
        """The name of the target cluster; "" if the target is not a cluster."""
        return self.target.repository if self.deployment else ""


@dataclass(frozen=True)
class StalledVariant:
    """An owner whose variant cannot be calculated. The published package stays unchanged.

    `upstream_target` is the location of the upstream package, if it is known. `packages` are the package paths that the
    owner requests on unknown clusters.
    """

    owner: PackageOwner
    conditions: tuple[Condition, ...]
    findings: tuple[Finding, ...]
    target: PackageTarget | None = None
    upstream_target: PackageTarget | None = None
    packages: frozenset[str] = frozenset()


@dataclass(frozen=True)
class RevisionPin:
    """A revision in the config that follows the tag beside it by proposals (`tagMode: rewrite`).

    Attributes:
        line: First line of the object's document in `file`.
        path: Path of the upstream in the document.
        written_revision: The revision in the config; None if there is none.
        tagged_revision: The revision that the tag names now, in the notation of the config; None while it is unknown or
            while the tag settles.
        is_same_package: Whether both revisions have the same package content.
        is_downgrade: Whether the tagged revision is older.
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

    @property
    def id(self) -> str:
        """The unique id of the revision's field. State uses it as a key."""
        return f"{self.key} {'.'.join(map(str, self.path))}"


@dataclass(frozen=True)
class ConfigStatus:
    """Status of a config object: a set's conditions, or a whole generated object.

    Attributes:
        fields: Further fields of `.status`.
        spec: Only for generated objects.
        metadata: Only for generated objects.
        children: The owners that this object generated.
        folder: Folder of additional `files` on the status branch.
        files: Content by file name; None leaves the existing files unchanged.
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
    """Decision about the packages that an existing owner no longer requests.

    Attributes:
        targets: The packages that may be deleted.
        reason: Why other packages are not deleted; "" if there is no such reason.
        existing_count: The number of packages that the limit was calculated with.
        unconfirmed: The packages whose deletion waits for a confirmation.
        acknowledged_hashes: The deletion hashes that users have acknowledged.
        confirmed: The packages of `targets` that a person has confirmed. No other guard blocks them.
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

    `kept_owners` count as unchanged owners, for example a set that failed. `guards` are by owner; an owner without a
    guard keeps its packages.
    """

    variants: tuple[Variant, ...] = ()
    stalled: tuple[StalledVariant, ...] = ()
    statuses: tuple[ConfigStatus, ...] = ()
    findings: tuple[Finding, ...] = ()
    kept_owners: frozenset[ObjectKey] = frozenset()
    pins: tuple[RevisionPin, ...] = ()
    guards: Mapping[ObjectKey, DeletionGuard] = field(default_factory=dict)


def merge_results(results: Sequence[ControllerResult]) -> ControllerResult:
    """Return the combined results of several controllers."""
    return ControllerResult(
        tuple(chain.from_iterable(result.variants for result in results)),
        tuple(chain.from_iterable(result.stalled for result in results)),
        tuple(chain.from_iterable(result.statuses for result in results)),
        tuple(chain.from_iterable(result.findings for result in results)),
        frozenset(chain.from_iterable(result.kept_owners for result in results)),
        tuple(chain.from_iterable(result.pins for result in results)),
        {key: guard for result in results for key, guard in result.guards.items()},
    )
