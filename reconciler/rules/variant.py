"""Variants: what every room turns its kinds into, and all that planning needs to know of them (design 4.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, Protocol

from reconciler.caching import cached
from reconciler.krm.conditions import Condition
from reconciler.krm.findings import Finding, Where
from reconciler.krm.identity import ObjectKey
from reconciler.snapshot.catalog import ConfigObject
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import CommitId, TreeId
from reconciler.snapshot.trace import View


@dataclass(frozen=True, slots=True)
class Owner:
    """The object that wants a package, and the set that made it, if one did, for its `targets` of these numbers."""

    key: ObjectKey
    api_version: str
    set: ObjectKey | None = None
    targets: tuple[int, ...] = field(default=(), compare=False)

    def as_data(self) -> dict[str, str]:
        """Return the owner as status files and state write it (design 10.28)."""
        data = {
            "apiVersion": self.api_version,
            "kind": self.key.kind,
            "namespace": self.key.namespace,
            "name": self.key.name,
        }
        return {**data, "set": self.set.name} if self.set else data


@dataclass(frozen=True, order=True, slots=True)
class Place:
    """Where a package goes: a Repository by namespace and name, and a package path."""

    namespace: str
    repository: str
    package: str

    def __str__(self) -> str:
        return f"{self.repository}/{self.package}"


@dataclass(frozen=True, slots=True)
class Upstream:
    """A resolved upstream package: what its lock will say, and the tree that is its content.

    `url` names the remote to read from, `repo` is the text for Kptfiles (no credentials), `repository` the
    Repository's name, `directory` has no leading slash, `ref` is a tag name, a branch name or a commit. `floating`:
    people asked for what a name leads to, and not for this ref.
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
    floating: bool = False

    def as_data(self) -> dict[str, str]:
        """Return it as status files write it (design 10.28)."""
        return {
            "repo": self.repo, "directory": self.directory, "ref": self.ref,
            "commit": self.commit, "tree": self.tree,
        }  # fmt: skip

    @property
    def words(self) -> str:
        """Where it comes from on one line, as trailers say it (porch 15.3)."""
        return f"{self.repository}/{self.package} {self.ref} {self.commit}"

    @property
    def fact(self) -> str:
        """What of it the output of a render depends on, as the trace keeps it."""
        return f"{self.repo} {self.directory} {self.ref} {self.tree}"


@dataclass(frozen=True)
class Generated:
    """Resources that a room makes itself: the whole source of a package, and not one of an upstream (design 4.4)."""

    files: FileTree

    def as_data(self) -> dict[str, str]:
        """Return nothing: there is no upstream to write of in a status file."""
        return {}

    @property
    def words(self) -> str:
        """Nothing, for the same reason."""
        return ""

    @property
    def fact(self) -> str:
        """What of it the output of a render depends on, as the trace keeps it."""
        return self.files.id

    @property
    def committer_seconds(self) -> int:
        """No date of its own: what it says is of the config commit."""
        return 0


@dataclass(frozen=True)
class Settling:
    """A move of an upstream's reference that has not stood long enough: when it will have, and what is said of it.

    `until` is in seconds since 1970: a date of Git's plus the wish of people, never a clock's (design 10.13).
    """

    until: int
    message: str


@dataclass(frozen=True)
class Injected:
    """One config injection that happened: the point, and the object whose content it took."""

    point: str
    file: str
    kind: str
    namespace: str
    name: str
    digest: str
    source_file: str = ""

    def as_data(self) -> dict[str, str]:
        """Return it as status files write it."""
        return {
            "point": self.point, "file": self.file,
            "object": f"{self.kind}/{self.namespace}/{self.name}", "from": self.source_file, "hash": self.digest,
        }  # fmt: skip


MutationStep = Literal["context", "pipeline", "injection"]


@dataclass(frozen=True)
class Mutated:
    """What a variant's own steps made of a package. Error findings mean that the files must not be used.

    `stages` is the package after each step, by the step's name, first to last.
    """

    files: FileTree
    injected: tuple[Injected, ...] = ()
    findings: tuple[Finding, ...] = ()
    stages: tuple[tuple[MutationStep, FileTree], ...] = ()


@dataclass(frozen=True)
class Earlier:
    """The variant's last output and the upstream package that it was rendered from.

    `branch` is the package as its branch has it now, local changes included; None where only the output is known.
    """

    rendered: FileTree
    base: FileTree
    branch: FileTree | None = None


class Mutation(Protocol):
    """A variant's steps in their order: package context, pipeline, injection (porch 8). Must be picklable."""

    def __call__(self, files: FileTree, view: View, earlier: Earlier | None = None) -> Mutated:
        """Return the package with all steps applied; without `earlier` that of a first clone."""
        ...


class Provenance(Protocol):
    """Which rules of the config gave a generated package its values (design 10.28); asked for where it is written."""

    def layers(self) -> list[dict[str, Any]]:
        """Return `layers` of the status file: for each value the steps that led to it, as may be shown."""
        ...

    def applied(self) -> list[dict[str, str]]:
        """Return `appliedOverrides` of the status file: the objects that changed it, in the order of application."""
        ...

    def objects(self) -> list[dict[str, str]]:
        """Return what it was made of, as `inputs.objects` of the status file names it."""
        ...


AdoptionPolicy = Literal["adoptNone", "adoptExisting"]
DeletionPolicy = Literal["delete", "orphan"]
UpdateStrategy = Literal["resource-merge", "copy-merge", "fast-forward", "force-delete-replace"]
ConflictPolicy = Literal["upstream", "local", "block"]


def default_conflict_policy(profile: Literal["safe", "compat"]) -> ConflictPolicy:
    """Return the conflict policy of a package with an upstream when no object and no setting names one.

    Profile `safe` keeps local changes. Profile `compat` takes the upstream's value, as kpt does.
    """
    return "local" if profile == "safe" else "upstream"


ConfigSources = Mapping[str, tuple[str, ...]]
"""Config files by path, each with the ids of its objects (`object_id`)."""


def object_id(key: ObjectKey) -> str:
    """Return the text that state identifies an object of the config by: `group/Kind/namespace/name`."""
    return "/".join(key)


def object_of(text: str) -> ObjectKey:
    """Return the object that `object_id` returned a text for. Raises ValueError for another text."""
    group, kind, namespace, name = text.split("/", 3)
    return ObjectKey(group, kind, namespace, name)


def sources_of(objects: Iterable[ConfigObject]) -> ConfigSources:
    """Return the files of objects, in order; equal results are mostly one object."""
    return _sources_of(tuple(sorted({(one.file, object_id(one.key)) for one in objects})))


@cached(4_096)
def _sources_of(objects: tuple[tuple[str, str], ...]) -> ConfigSources:
    found: dict[str, tuple[str, ...]] = {}
    for file, name in objects:
        found[file] = (*found.get(file, ()), name)
    return found


@dataclass(frozen=True, slots=True)
class Variant:
    """One package that should exist at one place, ready to be rendered.

    `deployment`: the place is a cluster's, so that the package gets a context (porch 8.1) and what is particular to
    that cluster (design 10.16). `spreads`: its owner has one such package on every cluster that it is for.
    `settling`: the upstream is one that a reference has moved to, and not to be acted on yet.
    `strategy` and `conflict_policy` are the owner's own, None where it names none. `provenance` is there where a
    room has made its values of several objects.

    `facts` are what the output depends on besides what the mutation looks up: each name says what it is, so
    that a change of it can be named as the cause of a draft. `sources` are the config files without which the package
    would not be there: state records them, so that a later pass can check that they were deleted.
    """

    owner: Owner
    place: Place
    source: Upstream | Generated
    mutation: Mutation
    facts: Mapping[str, str]
    deployment: bool = True
    adoption: AdoptionPolicy = "adoptNone"
    deletion: DeletionPolicy = "delete"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    settling: Settling | None = None
    strategy: UpdateStrategy | None = None
    conflict_policy: ConflictPolicy | None = None
    spreads: bool = False
    provenance: Provenance | None = None
    sources: ConfigSources = field(default_factory=dict)

    @property
    def upstream(self) -> Upstream | None:
        """The upstream package that it comes from; None for what a room makes itself."""
        return self.source if isinstance(self.source, Upstream) else None

    @property
    def cluster(self) -> str:
        """The cluster that the package goes to, by name; "" where it goes to none."""
        return self.place.repository if self.deployment else ""


@dataclass(frozen=True)
class Stalled:
    """An owner whose variant cannot be worked out; whatever stands at its place stays (tenets 5 and 6).

    `upstream` is the origin of its package, as far as that can be read. `packages` are the paths that it requests
    on clusters that are not known.
    """

    owner: Owner
    conditions: tuple[Condition, ...]
    findings: tuple[Finding, ...]
    place: Place | None = None
    upstream: Place | None = None
    packages: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Pin:
    """A revision in the config that is to keep up with a tag beside it (porch 14.1, tagMode rewrite).

    `path` leads to the upstream in the object's document, which begins at `line` of `file`; `written` is its revision
    there, None if there is none yet; `named` the one that the tag names today, as it is to be written, None while
    nobody can say, or while the tag settles. `holds`: the written revision is the same package as the named one.
    `backwards`: the named one is older.
    """

    key: ObjectKey
    file: str
    line: int
    path: tuple[str | int, ...]
    package: str
    tag: str
    written: str | int | None
    named: str | int | None
    where: Where
    holds: bool = False
    backwards: bool = False
    seconds: int = 0
    settling: Settling | None = None

    @property
    def id(self) -> str:
        """The one name of the field that the revision stands in: state keeps it."""
        return f"{self.key} {'.'.join(map(str, self.path))}"


@dataclass(frozen=True)
class ConfigStatus:
    """What a room says of a config object itself: a set's conditions, or a whole generated object.

    `fields` are further entries of `.status`; `spec` and `metadata` are there for generated objects only
    (design 10.27). `children` are the owners that this object made. `folder` is where on the status branch it has
    `files` of its own beside that, by name; None: those that stand there stay.
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
class Guard:
    """What a set that is there lets go of what it made: the places, and why it does not let go of more (porch 11.6).

    `existing` is how many it had made when that was decided. `waiting` are the places that wait for somebody's word,
    `acknowledged` the hashes that people have confirmed. `confirmed` are those of `places` that people have named: no
    other guard asks about them.
    """

    places: frozenset[Place] = frozenset()
    why: str = ""
    existing: int = 0
    waiting: frozenset[Place] = frozenset()
    acknowledged: frozenset[str] = frozenset()
    confirmed: frozenset[Place] = frozenset()

    def releases(self, place: Place) -> bool:
        """Return whether the package at a place may go."""
        return place in self.places


@dataclass(frozen=True)
class RoomResult:
    """What the rooms made of a catalog: variants to render, owners that are stalled, status of config objects.

    `kept` are owners that must be treated as if they were still there, unchanged (a set that failed). `pins` are the
    revisions that are to keep up with a tag. `guards` are by set; one that failed has none, and is kept.
    """

    variants: tuple[Variant, ...] = ()
    stalled: tuple[Stalled, ...] = ()
    statuses: tuple[ConfigStatus, ...] = ()
    findings: tuple[Finding, ...] = ()
    kept: frozenset[ObjectKey] = frozenset()
    pins: tuple[Pin, ...] = ()
    guards: Mapping[ObjectKey, Guard] = field(default_factory=dict)


def joined(results: Sequence[RoomResult]) -> RoomResult:
    """Return what several rooms, or parts of one, have made of a catalog."""
    return RoomResult(
        tuple(chain.from_iterable(one.variants for one in results)),
        tuple(chain.from_iterable(one.stalled for one in results)),
        tuple(chain.from_iterable(one.statuses for one in results)),
        tuple(chain.from_iterable(one.findings for one in results)),
        frozenset(chain.from_iterable(one.kept for one in results)),
        tuple(chain.from_iterable(one.pins for one in results)),
        {key: guard for one in results for key, guard in one.guards.items()},
    )
