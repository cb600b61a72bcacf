"""Search for commits by name, in the mirror of a remote or in a local repository with a work tree."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from reconciler.catalog.files import CommitId
from reconciler.git.command import GitCommand
from reconciler.git.errors import GitError, ObjectMissingError
from reconciler.git.local_repository import find_enclosing_repository
from reconciler.git.mirror import STATE_REF_PREFIX, Mirror
from reconciler.git.names import is_ref_name
from reconciler.git.object_reader import ObjectReader
from reconciler.git.options import GitOptions
from reconciler.git.url import parse_url

_ANCESTRY_SUFFIX = re.compile(r"(?:[~^]\d*)*\Z")
_COMMIT_ID = re.compile(r"[0-9a-fA-F]{4,40}\Z")
_MISSING_OBJECT_EXIT_CODE = 128


class CommitHistory(Protocol):
    """Finds commits of a repository by a name, such as a branch, and reads them."""

    @property
    def url(self) -> str:
        """The address of the repository, without credentials."""
        ...

    @property
    def options(self) -> GitOptions:
        """The options for Git access to the repository."""
        ...

    def find(self, name: str) -> CommitId:
        """Return the commit that `name` means, such as a branch or a commit ID.

        Raises:
            ObjectMissingError: The repository has no such commit. The message contains the allowed forms of a name.
        """
        ...

    def merge_base(self, first: CommitId, second: CommitId) -> CommitId | None:
        """Return the best common ancestor of two commits, as `git merge-base` does. Return None if there is no such
        ancestor.
        """
        ...

    def list_commits_between(self, old: CommitId | None, new: CommitId, path: str) -> list[CommitId] | None:
        """Return the commits after `old` up to `new` that changed a path, oldest first. Follow only first parents.

        If `old` is None, return all such commits up to `new`. Return None if `old` is not an ancestor of `new`.

        Raises:
            GitError: The history cannot be read.
        """
        ...

    def list_commits_changing_any(self, commit: CommitId, paths: Iterable[str], limit: int) -> list[CommitId]:
        """Return the last `limit` commits that changed any of `paths`, newest first. Follow only first parents.

        Raises:
            GitError: The history cannot be read.
        """
        ...

    def open_reader(self) -> ObjectReader:
        """Return a reader of the repository's objects. The caller must close the reader."""
        ...


class MirrorHistory:
    """The history of a remote. The remote is fetched when `find` is called for the first time.

    A name has one of these forms, with optional suffixes `~N` and `^N`.

    - A branch or tag, or `origin/BRANCH`.
    - A full ref of the host, such as `refs/pull/7/head`.
    - A commit ID or the start of a commit ID.
    - `HEAD` for the default branch of the host.
    """

    def __init__(self, mirror: Mirror, state_prefix: str = STATE_REF_PREFIX) -> None:
        self._mirror = mirror
        self._state_prefix = state_prefix
        self._is_fetched = False

    @property
    def url(self) -> str:
        """The address of the remote, without credentials."""
        return self._mirror.url

    @property
    def options(self) -> GitOptions:
        """The options for Git access to the remote."""
        return self._mirror.options

    def find(self, name: str) -> CommitId:
        """Return the commit that `name` means, such as a branch or a commit ID.

        Raises:
            GitError: There is no such commit, or the remote cannot be fetched.
        """
        self._fetch()
        base_name = _ANCESTRY_SUFFIX.sub("", name)
        base_commit = self._resolve_base(base_name)
        commit = self._mirror.find_commit(f"{base_commit}{name.removeprefix(base_name)}") if base_commit else None
        if commit is None:
            raise _build_missing_error(
                name, self.url, "a branch, a tag, a full ref such as refs/pull/7/head, or a commit ID"
            )
        return commit

    def merge_base(self, first: CommitId, second: CommitId) -> CommitId | None:
        """Return the best common ancestor of two commits. Return None if there is no common ancestor."""
        return self._mirror.merge_base(first, second)

    def list_commits_between(self, old: CommitId | None, new: CommitId, path: str) -> list[CommitId] | None:
        """Return the commits after `old` up to `new` that changed a path, oldest first. Follow only first parents.

        Return None if `old` is not an ancestor of `new`.
        """
        if old and not self._mirror.is_ancestor(old, new):
            return None
        return self._mirror.list_commits_changing(new, path, old)[::-1]

    def list_commits_changing_any(self, commit: CommitId, paths: Iterable[str], limit: int) -> list[CommitId]:
        """Return the last `limit` commits that changed any of `paths`, newest first. Follow only first parents."""
        return self._mirror.list_commits_changing_any(commit, paths, limit)

    def open_reader(self) -> ObjectReader:
        """Return a reader of the mirror's objects. The caller must close the reader."""
        return self._mirror.open_reader()

    def _fetch(self) -> None:
        if not self._is_fetched:
            self._mirror.fetch("both", self._state_prefix)
            self._is_fetched = True

    def _resolve_base(self, name: str) -> CommitId | None:
        """Return the commit of a name without a suffix such as `~1`. Try the kinds of refs in the same order as git."""
        short = self._mirror.find_default_branch() if name in ("HEAD", "@") else name
        prefixes = ("", "refs/", "refs/tags/", "refs/heads/")
        refs = (*(prefix + short for prefix in prefixes), f"refs/heads/{short.removeprefix('origin/')}")
        commits = (self._mirror.peel_ref(ref) for ref in refs)
        return next((commit for commit in commits if commit), None) or self._resolve_unfetched(name)

    def _resolve_unfetched(self, name: str) -> CommitId | None:
        """Return the commit if `name` is a commit ID, or a ref that `fetch` omits, such as `refs/pull/7/head`.

        Return None if `name` is neither, or if the host does not have the ref.
        """
        if _COMMIT_ID.match(name):
            return self._resolve_id(name.lower())
        object_id = self._mirror.resolve_remote_ref(name) if is_ref_name(name) else None
        return self._mirror.find_commit(self._mirror.ensure_commit(CommitId(object_id))) if object_id else None

    def _resolve_id(self, name: str) -> CommitId | None:
        commit = self._mirror.find_commit(name)
        if commit or len(name) < 40:
            return commit
        try:
            return self._mirror.find_commit(self._mirror.ensure_commit(CommitId(name)))
        except GitError as error:
            # Catch every GitError, because hosts respond to a request for a missing commit with different errors.
            raise _build_missing_error(name, self.url, f"a commit that exists on the host ({error.message})") from error


class FolderHistory:
    """The history of a local repository, given by its Git folder. This class only reads, and fetches nothing.

    A name is any revision that git resolves to a commit in this repository.
    """

    def __init__(self, git_folder: Path, options: GitOptions) -> None:
        self._folder = git_folder
        self._options = options
        self._command = GitCommand(git_folder, parse_url(str(git_folder)), options)

    @property
    def url(self) -> str:
        """The path of the local Git folder."""
        return str(self._folder)

    @property
    def options(self) -> GitOptions:
        """The options for Git access to the repository."""
        return self._options

    def find(self, name: str) -> CommitId:
        """Return the commit that `name` means, such as a branch or a commit ID.

        Raises:
            GitError: There is no such commit, or the repository cannot be read.
        """
        arguments = ("--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        lines = self._run("rev-parse", *arguments) if "\0" not in name else []
        if not lines:
            raise _build_missing_error(
                name,
                self.url,
                f"a branch, a tag, a commit ID, or another revision that git resolves{self._shallow_hint}",
            )
        return CommitId(lines[0])

    def merge_base(self, first: CommitId, second: CommitId) -> CommitId | None:
        """Return the best common ancestor of two commits. Return None if there is no common ancestor.

        Raises:
            GitError: The clone is shallow and contains no common ancestor, or the repository cannot be read.
        """
        lines = self._run("merge-base", first, second)
        if not lines and self._shallow_hint:
            raise ObjectMissingError(f"{self.url} has no common ancestor of {first} and {second}{self._shallow_hint}")
        return CommitId(lines[0]) if lines else None

    def list_commits_between(self, old: CommitId | None, new: CommitId, path: str) -> list[CommitId] | None:
        """Return the commits after `old` up to `new` that changed a path, oldest first. Follow only first parents.

        Return None if `old` is not an ancestor of `new`.
        """
        if old and self._run("merge-base", old, new) != [old]:
            return None
        arguments = ("--first-parent", "--reverse", new, *([f"^{old}"] if old else []), "--", f":(top,literal){path}")
        return [CommitId(line) for line in self._run("rev-list", *arguments)]

    def list_commits_changing_any(self, commit: CommitId, paths: Iterable[str], limit: int) -> list[CommitId]:
        """Return the last `limit` commits that changed any of `paths`, newest first. Follow only first parents."""
        pathspecs = (f":(top,literal){path}" for path in paths)
        arguments = ("--first-parent", f"--max-count={limit}", commit, "--", *pathspecs)
        return [CommitId(line) for line in self._run("rev-list", *arguments)]

    def open_reader(self) -> ObjectReader:
        """Return a reader of the repository's objects. The caller must close the reader."""
        return ObjectReader(self._command, self._options.timeout_seconds, self._options.max_object_bytes)

    def _run(self, *arguments: str) -> list[str]:
        return self._command.run(*arguments, accepted_exit_codes=(0, 1, _MISSING_OBJECT_EXIT_CODE)).lines

    @property
    def _shallow_hint(self) -> str:
        # Look for the file `shallow` in the common Git folder, because an additional work tree has a Git folder of its
        # own.
        lines = self._run("rev-parse", "--git-common-dir")
        is_shallow = bool(lines) and (self._folder / lines[0] / "shallow").exists()
        return "; the clone is shallow: fetch the whole history with `git fetch --unshallow`" if is_shallow else ""


def resolve_commit_name(name: str, mirror: Mirror, folder: Path, state_prefix: str = STATE_REF_PREFIX) -> CommitId:
    """Return the commit that `name` means on a remote. HEAD means the HEAD of the work tree that contains `folder`.

    Raises:
        GitError: There is no such commit, or the remote does not have the commit.
    """
    base_name = _ANCESTRY_SUFFIX.sub("", name)
    if base_name not in ("HEAD", "@"):
        return MirrorHistory(mirror, state_prefix).find(name)
    local_history = open_local_history(folder, mirror.options)
    if local_history is None:
        raise ObjectMissingError(
            f"{name} means a commit of the current work tree, but {folder} is not in a Git work tree"
        )
    commit = local_history[0].find(name)
    try:
        return mirror.ensure_commit(commit)
    except GitError as error:
        message = (
            f"{name} is commit {commit} in the work tree, but {mirror.url} does not contain this commit: push "
            f"the commit ({error.message})"
        )
        raise ObjectMissingError(message) from error


def open_local_history(folder: Path, options: GitOptions) -> tuple[FolderHistory, str] | None:
    """Return the history of the work tree that contains `folder`, and the path of `folder` in the work tree.

    Return None if no work tree contains `folder`.
    """
    repository = find_enclosing_repository(folder.resolve())
    return (
        (FolderHistory(repository[0], options), "" if repository[1] == "." else repository[1]) if repository else None
    )


def _build_missing_error(name: str, url: str, expected: str) -> ObjectMissingError:
    return ObjectMissingError(f"there is no commit {name!r} in {url}; the name must be {expected}")
