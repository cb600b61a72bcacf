"""Upstream packages: folders of repositories at a branch, tag or commit. Each repository is fetched only once."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from difflib import get_close_matches
from posixpath import normpath
from types import TracebackType
from typing import Self

from reconciler.catalog.files import EXECUTABLE_MODE, REGULAR_FILE_MODES, BlobId, CommitId, File, FileTree, TreeId
from reconciler.git.errors import ObjectMissingError, PathRefusedError
from reconciler.git.mirror import Mirror
from reconciler.git.names import is_tree_path
from reconciler.git.object_reader import ObjectReader
from reconciler.packages.update.fetching import FetchedPackage, list_ref_candidates

_ID = re.compile(r"[0-9a-f]{40}")


class UpstreamPackages:
    """Fetches upstream packages. Use it as a context manager, so that the git processes end with the `with` block.

    Links and submodules in the packages are not copied. `skipped_paths` contains their paths.
    """

    def __init__(self, open_mirror: Callable[[str], Mirror]) -> None:
        self._open_mirror = open_mirror
        self._repositories: dict[str, tuple[Mirror, ObjectReader]] = {}
        self._fetched: dict[tuple[str, str, str], FetchedPackage] = {}
        self._exit_stack = ExitStack()
        self.skipped_paths: dict[str, None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit_stack.close()
        self._repositories.clear()

    def fetch(self, repo: str, directory: str, ref: str) -> FetchedPackage:
        """Return the package in a folder of a repository. If a tag and a branch have the name `ref`, use the tag.

        Raises:
            GitError: The repository, ref or folder does not exist or cannot be fetched.
        """
        key = (repo, directory, ref)
        if key not in self._fetched:
            self._fetched[key] = self._fetch(*key)
        return self._fetched[key]

    def find_default_branch(self, repo: str) -> str:
        """Return the default branch of a repository.

        Raises:
            GitError: The repository cannot be read.
        """
        return self._open_repository(repo)[0].find_default_branch()

    def _fetch(self, repo: str, directory: str, ref: str) -> FetchedPackage:
        mirror, reader = self._open_repository(repo)
        folder = normpath(f"/{directory}").strip("/")
        resolved_ref, commit = _resolve(mirror, folder, ref or mirror.find_default_branch())
        entry = reader.find_entry(reader.read_commit(commit).tree, folder)
        if entry is None or not entry.is_tree:
            raise ObjectMissingError(f'{mirror.url} must have a folder "{folder}" at {resolved_ref} ({commit[:12]})')
        return FetchedPackage(self._read_files(mirror, reader, TreeId(entry.id)), commit, resolved_ref)

    def _open_repository(self, repo: str) -> tuple[Mirror, ObjectReader]:
        if repo not in self._repositories:
            mirror = self._open_mirror(repo)
            mirror.fetch("upstream")
            self._repositories[repo] = mirror, self._exit_stack.enter_context(mirror.open_reader())
        return self._repositories[repo]

    def _read_files(self, mirror: Mirror, reader: ObjectReader, tree: TreeId) -> FileTree:
        blobs: dict[str, tuple[str, BlobId]] = {}
        for path, mode, blob in reader.walk(tree):
            if mode in REGULAR_FILE_MODES:
                blobs[_check_package_path(path, mirror)] = mode, blob
            else:
                self.skipped_paths[path] = None
        contents = reader.read_blobs(blob for _, blob in blobs.values())
        return FileTree({path: File(contents[blob], mode == EXECUTABLE_MODE) for path, (mode, blob) in blobs.items()})


def _check_package_path(path: str, mirror: Mirror) -> str:
    if not is_tree_path(path) or any(_is_surrogate(character) for character in path):
        raise PathRefusedError(f"{mirror.url} contains {path!r}, which is not allowed in a package")
    return path


def _is_surrogate(character: str) -> bool:
    # Search for surrogates, because Python decodes a byte of a path that is not UTF-8 to a surrogate.
    return "\ud800" <= character <= "\udfff"


def _resolve(mirror: Mirror, folder: str, ref: str) -> tuple[str, CommitId]:
    """Return the tag, branch or commit that `ref` means, and its commit."""
    candidates = list_ref_candidates(folder, ref)
    for candidate in candidates:
        for name in (f"refs/tags/{candidate}", f"refs/heads/{candidate}", candidate):
            if commit := mirror.peel_ref(name):
                return candidate, commit
    if _ID.fullmatch(ref):
        return ref, mirror.ensure_commit(CommitId(ref))
    raise ObjectMissingError(_format_missing_ref(mirror, candidates))


def _format_missing_ref(mirror: Mirror, candidates: tuple[str, ...]) -> str:
    *qualified, ref = candidates
    names = sorted({name.split("/", 2)[2] for name in mirror.refs()})
    similar = get_close_matches(candidates[0], names, 3, 0.7) + get_close_matches(ref, names, 3, 0.5)
    hint = f"; similar names: {', '.join(dict.fromkeys(similar))}" if similar else ""
    alternatives = f" (nor {', '.join(qualified)})" if qualified else ""
    return f'{mirror.url} has no branch or tag "{ref}"{alternatives}, and the name is not a full commit ID{hint}'
