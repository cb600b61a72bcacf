"""Upstream repositories as the rooms ask for them, over fetched mirrors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from reconciler.daemon.remotes import Remote, Remotes
from reconciler.gitio.errors import GitError, ObjectMissingError, TooLargeError
from reconciler.packages.kptfile import KPTFILE
from reconciler.rules.repository import Repository
from reconciler.rules.variants.upstream import FoundPackage
from reconciler.snapshot.objects import CommitId

_UNREADABLE = b"\0"


class RemoteRefs:
    """The refs of one upstream as of this pass's fetch."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._refs = remote.refs

    def tag(self, name: str) -> CommitId | None:
        """Return the commit that a tag peels to; a tag of something else names no revision."""
        commit = self._remote.peeled(f"refs/tags/{name}") if f"refs/tags/{name}" in self._refs else None
        return commit if commit and self._is_commit(commit) else None

    def _is_commit(self, commit: CommitId) -> bool:
        try:
            self._remote.commit(commit)
        except ObjectMissingError:
            return False
        return True

    def branch(self, name: str) -> CommitId | None:
        """Return the head of a branch."""
        return self._refs.get(f"refs/heads/{name}")

    def tags(self, prefix: str) -> Iterable[str]:
        """Return the names of all tags that start with `prefix`."""
        start = f"refs/tags/{prefix}"
        return [ref.removeprefix("refs/tags/") for ref in self._refs if ref.startswith(start)]

    def package(self, commit: CommitId, directory: str, package: str) -> FoundPackage | None:
        """Return a package's directory at a commit."""
        path = f"{directory}/{package}" if directory else package
        tree = self._remote.tree_at(commit, path)
        if tree is None:
            return None
        has_kptfile = self._remote.blob_at(commit, f"{path}/{KPTFILE}") is not None
        return FoundPackage(tree, self._remote.skipped(tree), has_kptfile)

    def tagged_seconds(self, name: str) -> int:
        """Return when a tag was made."""
        return self._remote.tagged_seconds(f"refs/tags/{name}")

    def message(self, name: str) -> str:
        """Return the message of a tag, of a lightweight one that of its commit."""
        return self._remote.message(f"refs/tags/{name}")

    def changed_seconds(self, commit: CommitId, path: str) -> int:
        """Return when a path last changed, along first parents up to `commit`."""
        return self._remote.changed_seconds(commit, path)

    def file(self, commit: CommitId, path: str) -> bytes | None:
        """Return a file's content; one beyond our limits is there, and says nothing that anybody could parse."""
        blob = self._remote.blob_at(commit, path)
        try:
            return self._remote.blob(blob) if blob else None
        except TooLargeError:
            return _UNREADABLE


class RemoteUpstreams:
    """All upstream repositories of one pass; `resolve` turns a Repository's text into a remote's address."""

    def __init__(self, remotes: Remotes, resolve: Callable[[str], str]) -> None:
        self._remotes = remotes
        self._resolve = lru_cache(None)(resolve)
        self._refs = lru_cache(None)(RemoteRefs)

    def refs(self, repository: Repository) -> RemoteRefs | str:
        """Return a Repository's refs, or why it cannot be read now."""
        try:
            url = self._resolve(repository.url)
        except GitError as error:
            return f"Repository {repository.key.name}: {error.message}"
        remote = self._remotes.upstream(url)
        if remote is not None:
            return self._refs(remote)
        failure = self._remotes.failures.get(url)
        why = failure.told if failure else "it was not fetched"
        return f"Repository {repository.key.name} cannot be read: {why}"

    def url(self, repository: Repository) -> str:
        """Return the address by which the pass knows the remote."""
        return self._resolve(repository.url)

    def seconds(self, repository: Repository, commit: CommitId) -> int:
        """Return a commit's date, in seconds since 1970."""
        remote = self._remotes.upstream(self.url(repository))
        assert remote is not None
        return remote.commit(commit).seconds
