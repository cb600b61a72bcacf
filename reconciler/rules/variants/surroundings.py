"""What the room looks at besides the catalog: Repositories, their upstreams, and what each set already has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from reconciler.expressions import Limits
from reconciler.krm.identity import ObjectKey
from reconciler.packages.kptfile import KPTFILE, Kptfile, Metadata, read_kptfile
from reconciler.rules.repository import Repositories, Repository, repository_missing
from reconciler.rules.variants.model import Upstream
from reconciler.rules.variants.naming import TargetKey
from reconciler.rules.variants.pinned import find_revision
from reconciler.rules.variants.upstream import (
    Resolved,
    Unresolved,
    UpstreamRefs,
    UpstreamRepository,
    resolve,
    upstream_metadata,
)
from reconciler.snapshot.objects import CommitId


class UpstreamWorld(Protocol):
    """The upstream repositories of one pass."""

    def refs(self, repository: Repository) -> UpstreamRefs | str:
        """Return a Repository's refs, or why it cannot be read now."""
        ...

    def url(self, repository: Repository) -> str:
        """Return the address by which the pass knows the remote."""
        ...

    def seconds(self, repository: Repository, commit: CommitId) -> int:
        """Return a commit's date."""
        ...


@dataclass(frozen=True)
class Surroundings:
    """What the room needs besides the catalog.

    `children` are the places that each set's variants already own; `held` those of them that it does not want and that
    were held before, with how many there were then; `engine` changes when rendering may; `cel` is
    what one expression may cost; `now`, in seconds since 1970, decides when a move has settled, and is never written.
    """

    repositories: Repositories
    upstreams: UpstreamWorld
    children: Mapping[ObjectKey, Sequence[TargetKey]] = field(default_factory=dict)
    max_delete_percent: int = 30
    engine: str = ""
    cel: Limits = field(default_factory=Limits)
    now: int = 0
    held: Mapping[ObjectKey, Mapping[TargetKey, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Unreachable:
    """An upstream whose repository cannot be read now: nothing is known of it, least of all that it is gone."""

    message: str


Resolution = Resolved | Unresolved | Unreachable


class Upstreams:
    """The upstreams of one pass, each resolved once however many variants want it."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._known: dict[tuple[str, Upstream], Resolution] = {}

    def resolve(self, namespace: str, upstream: Upstream) -> Resolution:
        """Return what an upstream means today to an object of `namespace`, or why that cannot be said."""
        key = (namespace, upstream)
        if key not in self._known:
            self._known[key] = self._resolve(namespace, upstream)
        return self._known[key]

    def pinned(self, namespace: str, upstream: Upstream) -> Resolution:
        """Return the immutable revision that the tag of a rewritten upstream names today, or why there is none."""
        found = self.resolve(namespace, upstream.followed)
        if not isinstance(found, Resolved):
            return found
        repository = self._around.repositories[namespace, upstream.repo]
        refs = self._around.upstreams.refs(repository)
        assert not isinstance(refs, str), "it was readable when the upstream was resolved"
        return find_revision(found, upstream.tag, _place(repository), refs)

    def described(self, namespace: str, upstream: Upstream) -> Mapping[str, Any] | Unresolved:
        """Return what a set's expressions see of an upstream revision (porch 11.4)."""
        found = self.resolve(namespace, upstream)
        match found:
            case Unreachable(message):
                return Unresolved("UpstreamUnreachable", message)
            case Unresolved():
                return found
            case Resolved():
                metadata = self._metadata(namespace, found)
                return upstream_metadata(found, namespace, metadata.labels, metadata.annotations)

    def _resolve(self, namespace: str, upstream: Upstream) -> Resolution:
        repository = self._around.repositories.get((namespace, upstream.repo))
        if repository is None:
            return Unresolved(
                "UpstreamNotFound", repository_missing(self._around.repositories, namespace, upstream.repo)
            )
        refs = self._around.upstreams.refs(repository)
        if isinstance(refs, str):
            return Unreachable(refs)
        return resolve(upstream, _place(repository), refs)

    def _metadata(self, namespace: str, found: Resolved) -> Metadata:
        refs = self._around.upstreams.refs(self._around.repositories[namespace, found.repository])
        assert not isinstance(refs, str), "it was readable when the upstream was resolved"
        content = refs.file(found.commit, f"{found.directory}/{KPTFILE}")
        kptfile = read_kptfile(content) if content else ()
        return kptfile.model.metadata if isinstance(kptfile, Kptfile) else Metadata()


def _place(repository: Repository) -> UpstreamRepository:
    return UpstreamRepository(repository.key.name, repository.branch, repository.directory, repository.tag_prefix)
