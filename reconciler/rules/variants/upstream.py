"""Resolving an upstream: from a reference to the one commit and tree it means today (porch 2.1, 3, 14.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from reconciler.krm.yaml import YamlError, parse
from reconciler.rules.variants.model import FloatingTag, Head, Reference, Revision, Upstream, Workspace
from reconciler.rules.variants.revision_names import below, in_order, number_of, tag_starts
from reconciler.rules.variants.workspaces import workspace_of
from reconciler.snapshot.objects import CommitId, TreeId

LATEST = "latest"
_NAMED = 5


class FoundPackage(NamedTuple):
    """The directory of a package at a commit; `skipped` are its links and submodules, which are not copied."""

    tree: TreeId
    skipped: tuple[str, ...] = ()
    has_kptfile: bool = True


class UpstreamRefs(Protocol):
    """One upstream repository as one listing of its refs saw it; names are without `refs/…/`."""

    def tag(self, name: str) -> CommitId | None:
        """Return the commit that a tag peels to."""
        ...

    def branch(self, name: str) -> CommitId | None:
        """Return the head of a branch."""
        ...

    def tags(self, prefix: str) -> Iterable[str]:
        """Return the names of all tags that start with `prefix`, in any order."""
        ...

    def package(self, commit: CommitId, directory: str, package: str) -> FoundPackage | None:
        """Return a package's directory below `directory` ("" is the root), or None when there is none."""
        ...

    def file(self, commit: CommitId, path: str) -> bytes | None:
        """Return a file's content."""
        ...

    def message(self, name: str) -> str:
        """Return the message of a tag, of a lightweight one that of the commit it peels to."""
        ...

    def tagged_seconds(self, name: str) -> int:
        """Return when a tag was made: the tagger's date, of a lightweight tag the committer's date of its commit."""
        ...

    def changed_seconds(self, commit: CommitId, path: str) -> int:
        """Return when a path last changed: the date of the last first-parent commit up to `commit` that touched it."""
        ...


@dataclass(frozen=True)
class UpstreamRepository:
    """What resolving needs of a Repository: `directory` without leading or trailing "/", "" for the root.

    `tag_prefix` is what its revision tags start with (design 10.11): "" for catalogs, `<name>/` for clusters.
    """

    name: str
    branch: str
    directory: str = ""
    tag_prefix: str = ""


@dataclass(frozen=True)
class Resolved:
    """The revision that an upstream means today. `directory` is the package's path from the root.

    `ref` is what the lock will say: a tag's name or a branch's. `number` is N of a tag `vN`, else -1.
    `warnings` are texts for the log and the status. `skipped` are paths in the package that are not copied.
    `since` is when the reference came to mean this, in seconds since 1970, as far as Git knows; 0 where nobody asks.
    """

    repository: str
    package: str
    ref: str
    number: int
    commit: CommitId
    tree: TreeId
    floating: bool
    directory: str
    warnings: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    since: int = 0

    @property
    def suffix(self) -> str:
        """The last segment of the ref: the revision or branch as people say it."""
        return self.ref.rpartition("/")[2]


@dataclass(frozen=True)
class Unresolved:
    """Why an upstream cannot be used: `UpstreamNotFound`, `UpstreamNotPublished`, `RevisionPending`, `TagUnpinned`."""

    reason: str
    message: str


@dataclass(frozen=True)
class _Ref:
    """A tag, or a branch's head; `channel` is the file that named the tag, at that commit of the branch."""

    name: str
    number: int
    commit: CommitId
    floating: bool
    warnings: tuple[str, ...] = ()
    is_tag: bool = True
    channel: tuple[CommitId, str] | None = None


def resolve(upstream: Upstream, repository: UpstreamRepository, refs: UpstreamRefs) -> Resolved | Unresolved:
    """Return the revision that the upstream means, or why there is none."""
    where = _Where(upstream, repository, refs)
    if upstream.awaits_revision:
        return where.pending()
    ref = where.find(upstream.reference)
    if isinstance(ref, Unresolved):
        return ref
    package = refs.package(ref.commit, repository.directory, upstream.package)
    if package is None or not package.has_kptfile:
        message = f"no Kptfile at {upstream.package} in {upstream.repo}@{ref.name}"
        return Unresolved("UpstreamNotFound", message)
    directory = below(repository.directory, upstream.package)
    return Resolved(
        repository.name, upstream.package, ref.name, ref.number, ref.commit, package.tree, ref.floating, directory,
        ref.warnings, package.skipped, where.since(ref) if upstream.settle_seconds else 0,
    )  # fmt: skip


def upstream_metadata(
    resolved: Resolved, namespace: str, labels: dict[str, str], annotations: dict[str, str]
) -> dict[str, Any]:
    """Return what expressions see of an upstream revision (porch 1.1, 11.4); labels are its Kptfile's."""
    name = f"{resolved.repository}.{resolved.package.replace('/', '.')}.{resolved.suffix}"
    return {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}


@dataclass(frozen=True)
class _Where:
    """The three things that every step of a lookup needs."""

    upstream: Upstream
    repository: UpstreamRepository
    refs: UpstreamRefs

    def find(self, reference: Reference) -> _Ref | Unresolved:
        match reference:
            case Head():
                return self._head()
            case Revision(suffix) | Workspace(suffix) if suffix == self.repository.branch:
                return self._head()
            case Revision(suffix):
                return self._tagged(suffix) or self._not_found(suffix)
            case Workspace(name):
                return self._tagged(name) or self._worked_on(name) or self._unpublished(name) or self._not_found(name)
            case FloatingTag(name) if name == LATEST:
                return self._latest() or self._not_found(name)
            case FloatingTag(name):
                return self._channel(name)

    def since(self, ref: _Ref) -> int:
        """Return when a reference came to mean what it means: nobody wrote that down but Git (design 10.13)."""
        if not ref.is_tag:
            # a head moves with every package of its repository; this one has stood since its own last change
            return self.refs.changed_seconds(ref.commit, below(self.repository.directory, self.upstream.package))
        tagged = self.refs.tagged_seconds(ref.name)
        return max(tagged, self.refs.changed_seconds(*ref.channel)) if ref.channel else tagged

    def pending(self) -> Unresolved:
        """Return why a tag that is not followed means nothing yet: a revision must stand beside it (porch 14.1)."""
        tag = f"tag {self.upstream.tag} of {self.upstream.repo}/{self.upstream.package}"
        message = (
            f"spec.upstream.revision is missing: with tagMode rewrite it is what counts, and {tag} is only looked at;"
            " merge the proposal that adds it, or write it"
        )
        return Unresolved("RevisionPending", message)

    def _head(self) -> _Ref | Unresolved:
        branch = self.repository.branch
        commit = self.refs.branch(branch)
        return _Ref(branch, -1, commit, floating=True, is_tag=False) if commit else self._not_found(branch)

    def _tagged(self, suffix: str, *, floating: bool = False) -> _Ref | None:
        # a slash would reach into the tags of a package below this one
        for name in () if "/" in suffix else (f"{start}/{suffix}" for start in self._starts()):
            if commit := self.refs.tag(name):
                return _Ref(name, number_of(suffix), commit, floating)
        return None

    def _worked_on(self, workspace: str) -> _Ref | None:
        """Return the published revision whose tag, or commit, says that this was its workspace (porch 3)."""
        package = self.upstream.package
        for start in self._starts():
            names = self.refs.tags(f"{start}/")
            suffixes = sorted((name.removeprefix(f"{start}/") for name in names), key=in_order, reverse=True)
            for suffix in suffixes:
                found = self._tagged(suffix)
                if found and workspace_of(self.refs.message(found.name), package) == workspace:
                    return found
        return None

    def _unpublished(self, workspace: str) -> Unresolved | None:
        for state in ("drafts", "proposed"):
            for start in (*self._starts(), below(self.repository.name, self.upstream.package)):
                if self.refs.branch(f"{state}/{start}/{workspace}"):
                    package = f"{self.upstream.repo}/{self.upstream.package}"
                    message = (
                        f'workspace "{workspace}" of {package} is not published; only a published one is an upstream'
                    )
                    return Unresolved("UpstreamNotPublished", message)
        return None

    def _latest(self) -> _Ref | None:
        for start in self._starts():
            suffixes = (name.removeprefix(f"{start}/") for name in self.refs.tags(f"{start}/"))
            numbers = [number for suffix in suffixes if (number := number_of(suffix)) > 0]
            if numbers:
                return self._tagged(f"v{max(numbers)}", floating=True)
        return None

    def _channel(self, name: str) -> _Ref | Unresolved:
        """Porch 14.1: the reviewed channel file wins over a tag that anybody may move."""
        tagged = self._tagged(name, floating=True)
        listed = self._listed(name)
        if listed is None:
            return tagged or self._not_found(name)
        if isinstance(listed, _Ref) and tagged and tagged.commit != listed.commit:
            warning = (
                f'the channel file says {listed.name} for "{name}" and wins over the tag {tagged.name}, which differs'
            )
            return replace(listed, warnings=(warning,))
        return listed

    def _listed(self, channel: str) -> _Ref | Unresolved | None:
        head = self.refs.branch(self.repository.branch)
        for path in self._channel_paths() if head else ():
            content = self.refs.file(head, path) if head else None
            if content is None:
                continue
            revision = _channel_revision(content, channel)
            if isinstance(revision, _BadChannel):
                return Unresolved("UpstreamNotFound", f"{path} in {self.upstream.repo}: {revision.why}")
            if revision:
                tagged = self._tagged(revision, floating=True)
                return replace(tagged, channel=(head, path)) if tagged and head else self._not_found(revision)
        return None

    def _channel_paths(self) -> Iterator[str]:
        path = f"channels/{self.upstream.package}.yaml"
        return iter(dict.fromkeys((below(self.repository.directory, path), path)))

    def _starts(self) -> tuple[str, ...]:
        return tag_starts(self.repository.tag_prefix, self.repository.directory, self.upstream.package)

    def _not_found(self, revision: str) -> Unresolved:
        package, repo = self.upstream.package, self.upstream.repo
        message = f"could not find upstream package revision '{package}/{revision}' in repo '{repo}'"
        return Unresolved("UpstreamNotFound", f"{message}; {self._instead()}")

    def _instead(self) -> str:
        """Say which revisions there are, or what to do without any."""
        names = {name.removeprefix(f"{start}/") for start in self._starts() for name in self.refs.tags(f"{start}/")}
        latest = sorted((name for name in names if "/" not in name), key=in_order, reverse=True)
        if latest:
            return f"there are {', '.join(latest[:_NAMED])}{', ...' if len(latest) > _NAMED else ''}"
        branch = self.repository.branch
        head = f"revision -1 is the head of {branch}" if self.refs.branch(branch) else f"there is no branch {branch}"
        return f"no tag starts with {self._starts()[-1]}/, {head}"


@dataclass(frozen=True)
class _BadChannel:
    why: str


def _channel_revision(content: bytes, channel: str) -> str | _BadChannel | None:
    try:
        documents = parse(content).documents
    except YamlError as error:
        return _BadChannel(f"line {error.line}: {error.message}")
    data = documents[0].data if documents else None
    channels = data.get("channels") if isinstance(data, dict) else None
    if not isinstance(channels, dict):
        return _BadChannel("channels must be a mapping from channel to revision")
    revision = channels.get(channel)
    if isinstance(revision, bool) or not isinstance(revision, str | int | None):
        return _BadChannel(f'channels.{channel} must be a revision such as "v3", not {revision!r}')
    return None if revision is None else _as_suffix(str(revision))


def _as_suffix(revision: str) -> str:
    return f"v{revision}" if revision.isdecimal() else revision
