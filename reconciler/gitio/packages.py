"""Upstream packages: folders of repositories at a branch, tag or commit, each repository fetched once (kpt.md 4)."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from difflib import get_close_matches
from posixpath import normpath
from types import TracebackType
from typing import Self

from reconciler.gitio.errors import ObjectMissingError, PathRefusedError
from reconciler.gitio.mirror import Mirror
from reconciler.gitio.names import is_path
from reconciler.gitio.reader import ObjectReader
from reconciler.packages.update import Fetched, ref_candidates
from reconciler.snapshot.files import File, FileTree
from reconciler.snapshot.objects import EXECUTABLE, FILE, BlobId, CommitId, TreeId

_ID = re.compile(r"[0-9a-f]{40}")


class UpstreamPackages:
    """Brings packages from repositories by their addresses. Use it as a context manager: it ends reading processes.

    `skipped` are the links and submodules in what was fetched, by their paths there; they are never copied.
    """

    def __init__(self, open_mirror: Callable[[str], Mirror]) -> None:
        self._open_mirror = open_mirror
        self._known: dict[str, tuple[Mirror, ObjectReader]] = {}
        self._fetched: dict[tuple[str, str, str], Fetched] = {}
        self._open = ExitStack()
        self.skipped: dict[str, None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
        self._known.clear()

    def fetch(self, repo: str, directory: str, ref: str) -> Fetched:
        """Return the package in a folder of a repository; a tag wins over a branch of its name. Raises GitError."""
        asked = (repo, directory, ref)
        if asked not in self._fetched:
            self._fetched[asked] = self._fetch(*asked)
        return self._fetched[asked]

    def default_branch(self, repo: str) -> str:
        """Return the branch that a repository names as its own. Raises GitError."""
        return self._repository(repo)[0].default_branch()

    def _fetch(self, repo: str, directory: str, ref: str) -> Fetched:
        mirror, reader = self._repository(repo)
        folder = normpath(f"/{directory}").strip("/")
        found, commit = _resolve(mirror, folder, ref or mirror.default_branch())
        entry = reader.entry(reader.commit(commit).tree, folder)
        if entry is None or not entry.is_tree:
            raise ObjectMissingError(f'{mirror.url} must have a folder "{folder}" at {found} ({commit[:12]})')
        return Fetched(self._files(mirror, reader, TreeId(entry.id)), commit, found)

    def _repository(self, repo: str) -> tuple[Mirror, ObjectReader]:
        if repo not in self._known:
            mirror = self._open_mirror(repo)
            mirror.fetch("upstream")
            self._known[repo] = mirror, self._open.enter_context(mirror.read())
        return self._known[repo]

    def _files(self, mirror: Mirror, reader: ObjectReader, tree: TreeId) -> FileTree:
        found: dict[str, tuple[str, BlobId]] = {}
        for path, mode, blob in reader.walk(tree):
            if mode in {FILE, EXECUTABLE}:
                found[_checked(path, mirror)] = mode, blob
            else:
                self.skipped[path] = None
        contents = reader.blobs(blob for _, blob in found.values())
        return FileTree({path: File(contents[blob], mode == EXECUTABLE) for path, (mode, blob) in found.items()})


def _checked(path: str, mirror: Mirror) -> str:
    if not is_path(path) or any(_is_surrogate(character) for character in path):
        raise PathRefusedError(f"{mirror.url} holds {path!r}, which no package may hold")
    return path


def _is_surrogate(character: str) -> bool:
    # what is no UTF-8 in a tree is read as these
    return "\ud800" <= character <= "\udfff"


def _resolve(mirror: Mirror, folder: str, ref: str) -> tuple[str, CommitId]:
    """Return the ref that is meant, and its commit."""
    candidates = ref_candidates(folder, ref)
    for candidate in candidates:
        for name in (f"refs/tags/{candidate}", f"refs/heads/{candidate}", candidate):
            if commit := mirror.peeled(name):
                return candidate, commit
    if _ID.fullmatch(ref):
        return ref, mirror.commit_of(CommitId(ref))
    raise ObjectMissingError(_missing(mirror, candidates))


def _missing(mirror: Mirror, candidates: tuple[str, ...]) -> str:
    *own, ref = candidates
    names = sorted({name.split("/", 2)[2] for name in mirror.refs()})
    near = get_close_matches(candidates[0], names, 3, 0.7) + get_close_matches(ref, names, 3, 0.5)
    hint = f"; it has {', '.join(dict.fromkeys(near))}" if near else ""
    also = f" (nor {', '.join(own)})" if own else ""
    return f'{mirror.url} has no branch or tag "{ref}"{also}, and that is no full commit id{hint}'
