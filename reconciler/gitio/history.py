"""History: the commits of one repository by the names that people give them, mirrored or around a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from reconciler.gitio.command import GitCommand
from reconciler.gitio.errors import GitError, ObjectMissingError
from reconciler.gitio.mirror import STATE_PREFIX, Mirror
from reconciler.gitio.names import is_ref
from reconciler.gitio.options import GitOptions
from reconciler.gitio.reader import ObjectReader
from reconciler.gitio.url import parse_url
from reconciler.gitio.work_tree import repository_of
from reconciler.snapshot.objects import CommitId

_ANCESTRY = re.compile(r"(?:[~^]\d*)*\Z")
_ID = re.compile(r"[0-9a-fA-F]{4,40}\Z")
_ABSENT = 128


class History(Protocol):
    """A repository whose commits can be named and read."""

    @property
    def url(self) -> str:
        """Where it is, without credentials."""
        ...

    @property
    def options(self) -> GitOptions:
        """How it is read."""
        ...

    def find(self, name: str) -> CommitId:
        """Return the commit that a name stands for. Raises ObjectMissingError that says what was looked for."""
        ...

    def merge_base(self, one: CommitId, other: CommitId) -> CommitId | None:
        """Return the last commit that is in the history of both; None without one."""
        ...

    def between(self, old: CommitId | None, new: CommitId, path: str) -> list[CommitId] | None:
        """Return the commits after `old`, or all, up to `new` along first parents that changed a path, oldest first.

        None where `old` is not in the history of `new`. Raises GitError.
        """
        ...

    def changes_of(self, commit: CommitId, paths: Iterable[str], limit: int) -> list[CommitId]:
        """Return at most `limit` commits along first parents up to `commit` that changed any path, newest first.

        Raises GitError.
        """
        ...

    def read(self) -> ObjectReader:
        """Return a reader of its objects; close it, or use it as a context manager."""
        ...


class MirrorHistory:
    """The history of a remote; it is fetched when the first name is looked for.

    A name is a branch, a tag, a full ref that the host has (`refs/pull/7/head`), a commit id or its beginning, `HEAD`
    for the host's own branch, or `origin/BRANCH`, with any number of `~N` and `^N` after it.
    """

    def __init__(self, mirror: Mirror, state_prefix: str = STATE_PREFIX) -> None:
        self._mirror = mirror
        self._state_prefix = state_prefix
        self._is_fetched = False

    @property
    def url(self) -> str:
        """The remote's address."""
        return self._mirror.url

    @property
    def options(self) -> GitOptions:
        """How the mirror is read."""
        return self._mirror.options

    def find(self, name: str) -> CommitId:
        """Return the commit that a name stands for. Raises GitError."""
        self._fetch()
        start = _ANCESTRY.sub("", name)
        begun = self._begin(start)
        commit = self._mirror.find_commit(f"{begun}{name.removeprefix(start)}") if begun else None
        if commit is None:
            raise _missing(name, self.url, "a branch, a tag, a ref as the host names it, or a commit id")
        return commit

    def merge_base(self, one: CommitId, other: CommitId) -> CommitId | None:
        """Return the last commit that is in the history of both."""
        return self._mirror.merge_base(one, other)

    def between(self, old: CommitId | None, new: CommitId, path: str) -> list[CommitId] | None:
        """Return the commits between two, along first parents, that changed a path, oldest first."""
        if old and not self._mirror.is_ancestor(old, new):
            return None
        return self._mirror.changes(new, path, old)[::-1]

    def changes_of(self, commit: CommitId, paths: Iterable[str], limit: int) -> list[CommitId]:
        """Return the last commits, along first parents, that changed any path."""
        return self._mirror.changes_of(commit, paths, limit)

    def read(self) -> ObjectReader:
        """Return a reader of the mirror."""
        return self._mirror.read()

    def _fetch(self) -> None:
        if not self._is_fetched:
            self._mirror.fetch("both", self._state_prefix)
            self._is_fetched = True

    def _begin(self, name: str) -> CommitId | None:
        """Return the commit that a name without ancestry stands for, as git would look for it."""
        short = self._mirror.default_branch() if name in ("HEAD", "@") else name
        starts = ("", "refs/", "refs/tags/", "refs/heads/")
        refs = (*(start + short for start in starts), f"refs/heads/{short.removeprefix('origin/')}")
        known = (self._mirror.peeled(ref) for ref in refs)
        return next((commit for commit in known if commit), None) or self._unnamed(name)

    def _unnamed(self, name: str) -> CommitId | None:
        """Return the commit of an id, or of a ref that is not fetched with the others."""
        if _ID.match(name):
            return self._by_id(name.lower())
        there = self._mirror.look_at(name) if is_ref(name) else None
        return self._mirror.find_commit(self._mirror.commit_of(CommitId(there))) if there else None

    def _by_id(self, name: str) -> CommitId | None:
        known = self._mirror.find_commit(name)
        if known or len(name) < 40:
            return known
        try:
            return self._mirror.find_commit(self._mirror.commit_of(CommitId(name)))
        except GitError as error:
            # hosts differ in how they refuse what they do not have
            raise _missing(name, self.url, f"a commit that the host still has ({error.message})") from error


class FolderHistory:
    """The history of the repository around a folder, read where it is: nothing of it is fetched or written.

    A name is whatever git takes for a commit there.
    """

    def __init__(self, git_folder: Path, options: GitOptions) -> None:
        self._folder = git_folder
        self._options = options
        self._command = GitCommand(git_folder, parse_url(str(git_folder)), options)

    @property
    def url(self) -> str:
        """Where the repository is."""
        return str(self._folder)

    @property
    def options(self) -> GitOptions:
        """How the repository is read."""
        return self._options

    def find(self, name: str) -> CommitId:
        """Return the commit that a name stands for. Raises GitError."""
        asked = ("--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        lines = self._run("rev-parse", *asked) if "\0" not in name else []
        if not lines:
            raise _missing(
                name, self.url, f"a branch, a tag, a commit id, or what else git takes for one{self._shallow}"
            )
        return CommitId(lines[0])

    def merge_base(self, one: CommitId, other: CommitId) -> CommitId | None:
        """Return the last commit that is in the history of both. Raises GitError for a clone that ends before it."""
        lines = self._run("merge-base", one, other)
        if not lines and self._shallow:
            raise ObjectMissingError(f"{self.url} must have a commit that {one} and {other} come from{self._shallow}")
        return CommitId(lines[0]) if lines else None

    def between(self, old: CommitId | None, new: CommitId, path: str) -> list[CommitId] | None:
        """Return the commits between two, along first parents, that changed a path, oldest first."""
        if old and self._run("merge-base", old, new) != [old]:
            return None
        asked = ("--first-parent", "--reverse", new, *([f"^{old}"] if old else []), "--", f":(top,literal){path}")
        return [CommitId(line) for line in self._run("rev-list", *asked)]

    def changes_of(self, commit: CommitId, paths: Iterable[str], limit: int) -> list[CommitId]:
        """Return the last commits, along first parents, that changed any path."""
        places = (f":(top,literal){one}" for one in paths)
        asked = ("--first-parent", f"--max-count={limit}", commit, "--", *places)
        return [CommitId(line) for line in self._run("rev-list", *asked)]

    def read(self) -> ObjectReader:
        """Return a reader of the repository."""
        return ObjectReader(self._command, self._options.timeout_seconds, self._options.max_object_bytes)

    def _run(self, *arguments: str) -> list[str]:
        return self._command.run(*arguments, accept=(0, 1, _ABSENT)).lines

    @property
    def _shallow(self) -> str:
        # work trees beside the main one have what they share in its folder
        common = self._run("rev-parse", "--git-common-dir")
        is_shallow = bool(common) and (self._folder / common[0] / "shallow").exists()
        return "; its clone is shallow: fetch all of the history (git fetch --unshallow)" if is_shallow else ""


def find_here_or_there(name: str, mirror: Mirror, here: Path, state_prefix: str = STATE_PREFIX) -> CommitId:
    """Return a commit of a remote by its name; HEAD is that of the work tree around `here`, which a host has, too.

    Raises GitError.
    """
    start = _ANCESTRY.sub("", name)
    if start not in ("HEAD", "@"):
        return MirrorHistory(mirror, state_prefix).find(name)
    around = history_around(here, mirror.options)
    if around is None:
        raise ObjectMissingError(f"{name} is that of the work tree around the current folder, and {here} is in none")
    commit = around[0].find(name)
    try:
        return mirror.commit_of(commit)
    except GitError as error:
        message = f"{name} is commit {commit} here, which {mirror.url} must have, too: push it first ({error.message})"
        raise ObjectMissingError(message) from error


def history_around(folder: Path, options: GitOptions) -> tuple[FolderHistory, str] | None:
    """Return the history of the work tree around a folder, and the folder's place in it; None where there is none."""
    found = repository_of(folder.resolve())
    return (FolderHistory(found[0], options), "" if found[1] == "." else found[1]) if found else None


def _missing(name: str, url: str, looked_for: str) -> ObjectMissingError:
    return ObjectMissingError(f"there is no commit {name!r} in {url}; it must be {looked_for}")
