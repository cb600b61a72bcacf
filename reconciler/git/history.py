"""Commits of one repository by their names, in the mirror of a remote or in the repository around a folder."""

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
    """A repository whose commits can be found by name and read."""

    @property
    def url(self) -> str:
        """The repository's address without credentials."""
        ...

    @property
    def options(self) -> GitOptions:
        """The repository's Git options."""
        ...

    def find(self, name: str) -> CommitId:
        """Return the commit of a name.

        Raises:
            ObjectMissingError: There is no such commit; the message contains the allowed forms of a name.
        """
        ...

    def merge_base(self, first: CommitId, second: CommitId) -> CommitId | None:
        """Return the last commit in both histories; None if there is none."""
        ...

    def list_commits_between(self, old: CommitId | None, new: CommitId, path: str) -> list[CommitId] | None:
        """Return the commits after `old` up to `new`, along first parents, that changed a path, oldest first.

        Without `old`, all commits up to `new` are considered. The result is None if `old` is not in the history of
        `new`.

        Raises:
            GitError: The history cannot be read.
        """
        ...

    def list_commits_changing_any(self, commit: CommitId, paths: Iterable[str], limit: int) -> list[CommitId]:
        """Return at most `limit` commits along first parents up to `commit` that changed any path, newest first.

        Raises:
            GitError: The history cannot be read.
        """
        ...

    def open_reader(self) -> ObjectReader:
        """Return a reader of the repository's objects; close it, or use it as a context manager."""
        ...


class MirrorHistory:
    """The history of a remote, which is fetched when the first name is resolved.

    A name has one of these forms, followed by any number of `~N` and `^N`:

    - a branch or tag, or `origin/BRANCH`
    - a full ref of the host, such as `refs/pull/7/head`
    - a commit id or its prefix
    - `HEAD` for the host's default branch
    """

    def __init__(self, mirror: Mirror, state_prefix: str = STATE_REF_PREFIX) -> None:
        self._mirror = mirror
        self._state_prefix = state_prefix
        self._is_fetched = False

    @property
    def url(self) -> str:
        """The remote's address."""
        return self._mirror.url

    @property
    def options(self) -> GitOptions:
        """The mirror's Git options."""
        return self._mirror.options

    def find(self, name: str) -> CommitId:
        """Return the commit of a name.

        Raises:
            GitError: There is no such commit, or the remote cannot be fetched.
        """
        self._fetch()
        base_name = _ANCESTRY_SUFFIX.sub("", name)
        base_commit = self._resolve_base(base_name)
        commit = self._mirror.find_commit(f"{base_commit}{name.removeprefix(base_name)}") if base_commit else None
        if commit is None:
            raise _build_missing_error(name, self.url, "a branch, a tag, a ref as the host names it, or a commit id")
        return commit

    def merge_base(self, first: CommitId, second: CommitId) -> CommitId | None:
        """Return the last commit in both histories."""
        return self._mirror.merge_base(first, second)

    def list_commits_between(self, old: CommitId | None, new: CommitId, path: str) -> list[CommitId] | None:
        """Return the commits between two commits, along first parents, that changed a path, oldest first."""
        if old and not self._mirror.is_ancestor(old, new):
            return None
        return self._mirror.list_commits_changing(new, path, old)[::-1]

    def list_commits_changing_any(self, commit: CommitId, paths: Iterable[str], limit: int) -> list[CommitId]:
        """Return the last commits, along first parents, that changed any path."""
        return self._mirror.list_commits_changing_any(commit, paths, limit)

    def open_reader(self) -> ObjectReader:
        """Return a reader of the mirror."""
        return self._mirror.open_reader()

    def _fetch(self) -> None:
        if not self._is_fetched:
            self._mirror.fetch("both", self._state_prefix)
            self._is_fetched = True

    def _resolve_base(self, name: str) -> CommitId | None:
        """Return the commit of a name without ancestry suffix, in the order in which git resolves names."""
        short = self._mirror.find_default_branch() if name in ("HEAD", "@") else name
        prefixes = ("", "refs/", "refs/tags/", "refs/heads/")
        refs = (*(prefix + short for prefix in prefixes), f"refs/heads/{short.removeprefix('origin/')}")
        commits = (self._mirror.peel_ref(ref) for ref in refs)
        return next((commit for commit in commits if commit), None) or self._resolve_unfetched(name)

    def _resolve_unfetched(self, name: str) -> CommitId | None:
        """Return the commit of an id, or of a ref that the fetch does not include."""
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
            # Hosts refuse missing commits with different errors.
            raise _build_missing_error(name, self.url, f"a commit that the host still has ({error.message})") from error


class FolderHistory:
    """The history of the repository around a folder. It is only read; nothing is fetched.

    A name is any revision that git resolves to a commit there.
    """

    def __init__(self, git_folder: Path, options: GitOptions) -> None:
        self._folder = git_folder
        self._options = options
        self._command = GitCommand(git_folder, parse_url(str(git_folder)), options)

    @property
    def url(self) -> str:
        """The path of the repository."""
        return str(self._folder)

    @property
    def options(self) -> GitOptions:
        """The repository's Git options."""
        return self._options

    def find(self, name: str) -> CommitId:
        """Return the commit of a name.

        Raises:
            GitError: There is no such commit, or the repository cannot be read.
        """
        arguments = ("--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        lines = self._run("rev-parse", *arguments) if "\0" not in name else []
        if not lines:
            raise _build_missing_error(
                name,
                self.url,
                f"a branch, a tag, a commit id, or another revision that git resolves{self._shallow_hint}",
            )
        return CommitId(lines[0])

    def merge_base(self, first: CommitId, second: CommitId) -> CommitId | None:
        """Return the last commit in both histories.

        Raises:
            GitError: The clone is shallow and ends before that commit.
        """
        lines = self._run("merge-base", first, second)
        if not lines and self._shallow_hint:
            raise ObjectMissingError(f"{self.url} has no common ancestor of {first} and {second}{self._shallow_hint}")
        return CommitId(lines[0]) if lines else None

    def list_commits_between(self, old: CommitId | None, new: CommitId, path: str) -> list[CommitId] | None:
        """Return the commits between two commits, along first parents, that changed a path, oldest first."""
        if old and self._run("merge-base", old, new) != [old]:
            return None
        arguments = ("--first-parent", "--reverse", new, *([f"^{old}"] if old else []), "--", f":(top,literal){path}")
        return [CommitId(line) for line in self._run("rev-list", *arguments)]

    def list_commits_changing_any(self, commit: CommitId, paths: Iterable[str], limit: int) -> list[CommitId]:
        """Return the last commits, along first parents, that changed any path."""
        pathspecs = (f":(top,literal){path}" for path in paths)
        arguments = ("--first-parent", f"--max-count={limit}", commit, "--", *pathspecs)
        return [CommitId(line) for line in self._run("rev-list", *arguments)]

    def open_reader(self) -> ObjectReader:
        """Return a reader of the repository."""
        return ObjectReader(self._command, self._options.timeout_seconds, self._options.max_object_bytes)

    def _run(self, *arguments: str) -> list[str]:
        return self._command.run(*arguments, accepted_exit_codes=(0, 1, _MISSING_OBJECT_EXIT_CODE)).lines

    @property
    def _shallow_hint(self) -> str:
        # Additional work trees have a common Git folder, which contains the file `shallow`.
        lines = self._run("rev-parse", "--git-common-dir")
        is_shallow = bool(lines) and (self._folder / lines[0] / "shallow").exists()
        return "; its clone is shallow: fetch all of the history (git fetch --unshallow)" if is_shallow else ""


def resolve_commit_name(name: str, mirror: Mirror, folder: Path, state_prefix: str = STATE_REF_PREFIX) -> CommitId:
    """Return a commit of a remote by its name; HEAD means the HEAD of the work tree around `folder`.

    Raises:
        GitError: There is no such commit, or the remote does not have it.
    """
    base_name = _ANCESTRY_SUFFIX.sub("", name)
    if base_name not in ("HEAD", "@"):
        return MirrorHistory(mirror, state_prefix).find(name)
    local_history = open_local_history(folder, mirror.options)
    if local_history is None:
        raise ObjectMissingError(
            f"{name} means the work tree around the current folder, and {folder} is in no work tree"
        )
    commit = local_history[0].find(name)
    try:
        return mirror.ensure_commit(commit)
    except GitError as error:
        message = f"{name} is commit {commit} here, and {mirror.url} does not have it: push it first ({error.message})"
        raise ObjectMissingError(message) from error


def open_local_history(folder: Path, options: GitOptions) -> tuple[FolderHistory, str] | None:
    """Return the history of the work tree around a folder, and the folder's path in it; None without a work tree."""
    repository = find_enclosing_repository(folder.resolve())
    return (
        (FolderHistory(repository[0], options), "" if repository[1] == "." else repository[1]) if repository else None
    )


def _build_missing_error(name: str, url: str, expected: str) -> ObjectMissingError:
    return ObjectMissingError(f"there is no commit {name!r} in {url}; it must be {expected}")
