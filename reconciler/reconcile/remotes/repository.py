"""Reads the commits, trees, tags and states of one remote repository from its mirror.

`Remote` reads any repository. `TargetRepository` implements the Protocols of `reconciler.planning` for one target. The
module `remotes` fetches and pushes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import lru_cache, partial
from typing import Protocol

from reconciler.catalog.files import (
    DIRECTORY_MODE,
    REGULAR_FILE_MODES,
    BlobId,
    CommitId,
    ObjectId,
    TreeId,
)
from reconciler.controllers.package_variants.upstream_resolution import parse_revision_number
from reconciler.git.errors import GitError, ObjectMissingError
from reconciler.git.mirror import Mirror
from reconciler.git.names import is_ref_name, is_tree_path
from reconciler.git.object_reader import Commit, ObjectReader, TreeEntry
from reconciler.krm.git_formats import PACKAGE_TRAILER, parse_trailers
from reconciler.planning.layout.refs import DraftCommit, TaggedRevision, format_tag_prefix
from reconciler.planning.lifecycle.open_drafts import DraftedFile
from reconciler.planning.model.state import TargetState, parse_state
from reconciler.planning.model.targets import Target
from reconciler.reconcile.remotes.tree_files import (
    list_skipped_entries,
    read_file,
    read_files,
    read_kptfiles,
    read_package_tree,
    read_upstream_tree,
)


class TreeReader(Protocol):
    """Reads the trees of a repository by tree ID."""

    def read_tree(self, tree: TreeId) -> tuple[TreeEntry, ...]:
        """Return the entries of a tree."""
        ...

    def find_entry(self, tree: TreeId, path: str) -> TreeEntry | None:
        """Return the entry at `path` in a tree. Return None if there is no such entry."""
        ...


TreeChange = tuple[str, TreeEntry | None]


def list_tree_changes(
    trees: TreeReader, old: TreeId | None, new: TreeId | None, head: TreeId | None = None, folder: str = ""
) -> Iterator[TreeChange]:
    """Yield each path that differs between `old` and `new`, and the entry of the path in `new`.

    The entry of a removed path is None. An added or removed folder is yielded as one path, unless `head` contains a
    different version of this folder. In that case, each file of the folder is yielded.
    """
    before, after, current = (_list_entries(trees, tree) for tree in (old, new, head))
    for name in sorted({*before, *after}):
        old_entry, new_entry, head_entry = before.get(name), after.get(name), current.get(name)
        if old_entry == new_entry:
            continue
        if _should_descend(old_entry, new_entry, head_entry):
            old_tree, new_tree, head_tree = (_folder(entry) for entry in (old_entry, new_entry, head_entry))
            yield from list_tree_changes(trees, old_tree, new_tree, head_tree, f"{folder}{name}/")
        else:
            yield f"{folder}{name}", new_entry


def _list_entries(trees: TreeReader, tree: TreeId | None) -> dict[str, TreeEntry]:
    return {entry.name: entry for entry in trees.read_tree(tree)} if tree else {}


def _should_descend(old: TreeEntry | None, new: TreeEntry | None, head: TreeEntry | None) -> bool:
    if any(entry and not entry.is_tree for entry in (old, new)):
        return False
    has_own_version = head is not None and head.is_tree and head not in (old, new)
    return bool(old and new) or has_own_version


def has_conflicting_changes(
    trees: TreeReader, head: TreeId, base: TreeId, branch: TreeId, outside: Collection[str]
) -> bool:
    """Return whether a merge of `branch` into `head` would undo a change that `head` made since `base`.

    Changes at or below a path in `outside` are ignored. A change at a path that the daemon cannot write is always a
    conflict.
    """
    for path, entry in list_tree_changes(trees, base, branch, head):
        if not is_tree_path(path):
            return True
        if any(path == ignored or path.startswith(f"{ignored}/") for ignored in outside):
            continue
        if trees.find_entry(head, path) not in (entry, trees.find_entry(base, path)):
            return True
    return False


def list_drafted_files(
    trees: TreeReader, head: TreeId | None, base: TreeId | None, branch: TreeId | None, folder: str = ""
) -> Iterator[DraftedFile]:
    """Yield each file that `head` changed since `base` and that differs from `branch`.

    For a new folder, each of its files is listed, because the files can belong to different packages.
    """
    base_entries, head_entries, branch_entries = (_list_entries(trees, tree) for tree in (base, head, branch))
    for name in sorted({*base_entries, *head_entries}):
        before, after, published = base_entries.get(name), head_entries.get(name), branch_entries.get(name)
        if after in (before, published):
            continue
        path, folders = f"{folder}{name}", [_folder(entry) for entry in (after, before, published)]
        removed, added = _file(before), _file(after)
        inner = folders[0] or folders[1]
        if removed != added or (inner and published not in (None, before) and not folders[2]):
            is_mergeable = published == before and is_tree_path(path)
            yield DraftedFile(path, added.id if added else None, added.mode if added else "", is_mergeable)
        if inner:
            yield from list_drafted_files(trees, folders[0], folders[1], folders[2], f"{path}/")


def _folder(entry: TreeEntry | None) -> TreeId | None:
    return TreeId(entry.id) if entry and entry.is_tree else None


def _file(entry: TreeEntry | None) -> TreeEntry | None:
    return None if entry and entry.is_tree else entry


MAX_CACHED_TREES = 2_000
# The number of commits that are read one by one before a Git process is started to list the commits.
_MAX_FIRST_PARENT_STEPS = 50
_TAGS = "refs/tags/"


def _is_ancestor(mirror: Mirror, commit: CommitId, other: CommitId) -> bool:
    try:
        return mirror.is_ancestor(commit, other)
    except GitError:
        # Return False, because the previous commit of a moved tag can be missing in the mirror.
        return False


class Remote:
    """Reads one remote from its mirror, and caches the results. Implements Protocols of planning and controllers."""

    def __init__(self, mirror: Mirror, reader: ObjectReader, *, is_available: bool = True) -> None:
        self.mirror = mirror
        self._is_available = is_available
        self._reader = reader
        self._commits: dict[CommitId, Commit] = {}
        self._states: dict[CommitId, TargetState] = {}
        self._fetched_tag_prefixes: set[str] = set()
        self._revision_numbers: dict[str, list[int]] = {}
        # Cache trees by their ID, so that an upstream package that many targets use is read once. The cached functions
        # contain no reference to this object. Otherwise, its memory would be used until the next full garbage
        # collection.
        limit = mirror.options.max_folder_files
        self.read_files = lru_cache(MAX_CACHED_TREES)(partial(read_files, reader))
        self.read_upstream_tree = lru_cache(MAX_CACHED_TREES)(
            partial(read_upstream_tree, reader, limit, self.read_files)
        )
        self.read_package_tree = lru_cache(MAX_CACHED_TREES)(partial(read_package_tree, reader, limit, self.read_files))
        self.read_file = lru_cache(MAX_CACHED_TREES)(partial(read_file, reader))
        self.list_skipped_entries = lru_cache(MAX_CACHED_TREES)(partial(list_skipped_entries, reader, limit))
        self.read_kptfiles = lru_cache(MAX_CACHED_TREES)(partial(read_kptfiles, reader, limit))
        self.is_ancestor = lru_cache(None)(partial(_is_ancestor, mirror))
        self.find_last_change = lru_cache(None)(mirror.find_last_change)
        self._replaced_refs: Mapping[str, CommitId | None] = {}
        self._refs_with_replacements: Mapping[str, CommitId] = {}

    @property
    def refs(self) -> Mapping[str, CommitId]:
        """The refs of the remote after the last fetch or push, by full ref name."""
        return self._refs_with_replacements if self._replaced_refs else self.mirror.refs()

    @property
    def has_earlier_refs(self) -> bool:
        """Whether `with_refs_at` replaced some refs, so that this object reads an earlier state than the last fetch."""
        return bool(self._replaced_refs)

    def peel_ref(self, ref: str) -> CommitId | None:
        """Return the commit that a ref or its annotated tag points to. Return None if the ref does not exist."""
        return self._replaced_refs[ref] if ref in self._replaced_refs else self.mirror.peel_ref(ref)

    def with_refs_at(self, replaced: Mapping[str, CommitId | None]) -> Remote:
        """Return a copy of this remote in which some refs have different commits.

        The copy does not contain refs with the value None.
        The copy and the original share their caches.
        """
        remote = copy(self)
        remote._replaced_refs = {**self._replaced_refs, **replaced}
        refs = {**self.mirror.refs(), **remote._replaced_refs}
        remote._refs_with_replacements = {ref: commit for ref, commit in refs.items() if commit}
        return remote

    def read_commit(self, commit: CommitId) -> Commit:
        """Return the data of a commit, from the cache if it was read before."""
        if commit not in self._commits:
            self._commits[commit] = self._reader.read_commit(commit)
        return self._commits[commit]

    def read_change_seconds(self, commit: CommitId, path: str) -> int:
        """Return the date of the last commit up to `commit` that changed a path, in seconds since 1970."""
        return self.read_commit(self.find_last_change(commit, path) or commit).seconds

    def read_tag_seconds(self, ref: str) -> int:
        """Return the date of a tag in seconds since 1970. For a lightweight tag, return the date of its commit."""
        tag, commit = self.refs[ref], self.peel_ref(ref)
        assert commit, "only tags of commits are revisions"
        tagger = self._reader.read_tagger(ObjectId(tag)) if tag != commit else None
        return tagger.seconds if tagger else self.read_commit(commit).seconds

    def read_message(self, ref: str) -> str:
        """Return the message of an annotated tag. For a lightweight tag, return the message of its commit."""
        tag, commit = self.refs[ref], self.peel_ref(ref)
        return self.read_commit(tag).message if tag == commit else self._reader.read_tag_message(ObjectId(tag))

    def list_tagged_revisions(
        self, target: Target, packages: Collection[str]
    ) -> Mapping[str, Sequence[TaggedRevision]]:
        """Fetch the tags of some packages of a target. Return the tagged revisions of each package. Raises GitError."""
        prefixes = {package: format_tag_prefix(target, package) for package in packages}
        self.fetch_tags(prefixes.values())
        return {package: tuple(self._list_revisions(prefix)) for package, prefix in prefixes.items()}

    def fetch_tags(self, prefixes: Iterable[str]) -> None:
        """Fetch the revision tags with these prefixes, at most once per pass. Raises GitError.

        The method does nothing if the remote could not be fetched in this pass.
        """
        new = {prefix for prefix in prefixes if is_ref_name(f"{_TAGS}{prefix}1")} - self._fetched_tag_prefixes
        if not new or not self._is_available:
            return
        self.mirror.fetch_tags(new)
        self._fetched_tag_prefixes |= new
        for ref in self.refs:
            start, slash, suffix = ref.removeprefix(_TAGS).rpartition("/")
            number = parse_revision_number(suffix)
            if ref.startswith(_TAGS) and f"{start}/v" in new and slash and number > 0:
                self._revision_numbers.setdefault(f"{start}/v", []).append(number)

    def _list_revisions(self, prefix: str) -> Iterator[TaggedRevision]:
        for number in sorted(self._revision_numbers.get(prefix, ())):
            ref = f"{_TAGS}{prefix}{number}"
            if commit := self.peel_ref(ref):
                yield TaggedRevision(number, commit, ObjectId(self.refs[ref]), self.read_message(ref))

    def prefetch_folder(self, commits: Iterable[CommitId], folder: str) -> list[TreeId]:
        """Read several commits, their root trees and one folder of each commit. Return the tree IDs of the folders.

        All objects of one kind are read in one request. With one request per object, these reads would take most of the
        time of a pass with many targets.
        """
        new = [commit for commit in commits if commit not in self._commits]
        self._reader.prefetch(map(ObjectId, new))
        roots = [self.read_commit(commit).tree for commit in new]
        self._reader.prefetch(map(ObjectId, roots))
        entries = [entry for root in roots for entry in self._reader.read_tree(root)]
        folders = [entry.id for entry in entries if entry.is_tree and entry.name == folder]
        self._reader.prefetch(folders)
        return [TreeId(tree) for tree in folders]

    def prefetch_files(self, paths: Iterable[tuple[CommitId, str]]) -> None:
        """Read the files at these paths of commits in one request for each folder level, and cache them."""
        folders = [(self.read_commit(commit).tree, path.split("/")) for commit, path in paths]
        while folders:
            self._reader.prefetch(ObjectId(tree) for tree, _ in folders)
            entries = [(self._reader.find_entry(tree, names[0]), names[1:]) for tree, names in folders]
            self._reader.prefetch(entry.id for entry, names in entries if entry and not names and not entry.is_tree)
            folders = [(TreeId(entry.id), names) for entry, names in entries if entry and names and entry.is_tree]

    def prefetch_states(self, commits: Sequence[CommitId]) -> None:
        """Cache the objects that `read_state` needs for these state commits. Read them in a few requests."""
        new = [commit for commit in commits if commit not in self._states]
        folders = self.prefetch_folder(new, "packages")
        trees = [*folders, *(self.read_commit(commit).tree for commit in new)]
        entries = [entry for tree in trees for entry in self._reader.read_tree(tree)]
        self._reader.prefetch([entry.id for entry in entries if not entry.is_tree])

    def find_tree_at(self, commit: CommitId, path: str) -> TreeId | None:
        """Return the tree of the folder at a path of a commit. Return None if the path is not a folder."""
        entry = self._reader.find_entry(self.read_commit(commit).tree, path)
        return TreeId(entry.id) if entry and entry.is_tree else None

    def find_tree(self, commit: CommitId, path: str) -> TreeId | None:
        """Return the tree at a path of a commit. Return None if the commit or the tree does not exist.

        Use this method for commits from user input, which may be wrong.
        """
        try:
            return self.find_tree_at(commit, path)
        except (ObjectMissingError, ValueError):
            return None

    def find_blob_at(self, commit: CommitId, path: str) -> BlobId | None:
        """Return the blob of the regular file at a path of a commit. Return None if the path is not a regular file."""
        entry = self._reader.find_entry(self.read_commit(commit).tree, path)
        return BlobId(entry.id) if entry and entry.mode in REGULAR_FILE_MODES else None

    def read_blob(self, blob: BlobId) -> bytes:
        """Return the content of a file."""
        return self._reader.read_blob(blob)

    def read_blobs(self, blobs: Iterable[BlobId]) -> Mapping[BlobId, bytes]:
        """Return the contents of several files by blob ID. All files are read in one request."""
        return self._reader.read_blobs(blobs)

    def has_unpublished_changes(
        self, head: CommitId, base: CommitId, branch: CommitId, besides: Collection[str] = ()
    ) -> bool:
        """Return whether a path has a version at `head` that differs from its versions at `base` and at `branch`.

        Paths in `besides` are ignored.
        """
        return self._has_difference(
            *(self.read_commit(commit).tree for commit in (head, base, branch)), ignored=besides
        )

    def has_conflicting_changes(
        self, head: CommitId, base: CommitId, branch: CommitId, outside: Collection[str]
    ) -> bool:
        """Return whether `head` and `branch` changed the same path since `base` in different ways.

        Paths in `outside` are ignored.
        """
        trees = [self.read_commit(commit).tree for commit in (head, base, branch)]
        return has_conflicting_changes(self._reader, trees[0], trees[1], trees[2], outside)

    def list_changes(self, since: CommitId, commit: CommitId, head: CommitId) -> Iterator[TreeChange]:
        """Yield each path that differs between `since` and `commit`, with its entry in `commit` (None if removed).

        An added or removed folder is yielded as one path. If `head` contains a different version of the folder, each
        file of the folder is yielded instead.
        """
        return list_tree_changes(
            self._reader, *(self.read_commit(commit_id).tree for commit_id in (since, commit, head))
        )

    def list_drafted_files(self, head: CommitId, base: CommitId, branch: CommitId) -> tuple[DraftedFile, ...]:
        """Return each file that `head` changed since `base` and that differs from `branch`."""
        trees = (self.read_commit(commit).tree for commit in (head, base, branch))
        return tuple(list_drafted_files(self._reader, *trees))

    def _has_difference(
        self, head: str | None, *others: str | None, ignored: Collection[str], folder: str = ""
    ) -> bool:
        head_entries, *other_entries = (self._list_entries(tree) for tree in (head, *others))
        names = {*head_entries, *(name for entries in other_entries for name in entries)}
        return any(
            self._has_entry_difference(
                head_entries.get(name), [entries.get(name) for entries in other_entries], ignored, folder + name
            )
            for name in sorted(names)
        )

    def _has_entry_difference(
        self, entry: TreeEntry | None, others: Sequence[TreeEntry | None], ignored: Collection[str], path: str
    ) -> bool:
        if entry in others or path in ignored:
            return False
        head, *folders = (version.id if version and version.is_tree else None for version in (entry, *others))
        # If a folder differs from the same folder in each of the other trees, compare its files one by one. Each file
        # can be equal to the file in one of the other trees.
        should_descend = (head and any(folders)) or any(ignored_path.startswith(f"{path}/") for ignored_path in ignored)
        return not should_descend or self._has_difference(head, *folders, ignored=ignored, folder=f"{path}/")

    def _list_entries(self, tree: str | None) -> dict[str, TreeEntry]:
        return {entry.name: entry for entry in self._reader.read_tree(TreeId(tree))} if tree else {}

    def list_first_parents(self, old: CommitId, new: CommitId) -> Sequence[CommitId] | None:
        """Return the commits after `old` up to `new`, oldest first. Only first parents are followed.

        Return None if `old` is not in the history of `new`.
        """
        if old == new:
            return ()
        return self._list_near_first_parents(old, new) or self.mirror.list_first_parent_commits(old, new)

    def _list_near_first_parents(self, old: CommitId, new: CommitId) -> list[CommitId]:
        """Return the commits after `old` up to `new` without a Git process.

        Return [] if there are more than `_MAX_FIRST_PARENT_STEPS`, or if `old` is not a first-parent ancestor of `new`.
        """
        commits: list[CommitId] = []
        current = new
        while current != old:
            parents = self.read_commit(current).parents
            if not parents or len(commits) == _MAX_FIRST_PARENT_STEPS:
                return []
            commits.append(current)
            current = parents[0]
        return commits[::-1]

    def find_merge_base(self, head: CommitId, branch: CommitId) -> CommitId | None:
        """Return the last common commit of `head` and `branch`. Return None if they have no common commit."""
        return self.mirror.merge_base(head, branch)

    def read_state(self, commit: CommitId) -> TargetState:
        """Return the state that a state commit contains. Raises EngineTooOldError, StateUnreadableError, GitError."""
        if commit not in self._states:
            self._states[commit] = parse_state(self._read_state_files(commit))
        return self._states[commit]

    def prefetch_commits(self, commits: Iterable[CommitId]) -> None:
        """Read several commits in one request, and cache them."""
        self._reader.prefetch([ObjectId(commit) for commit in commits if commit not in self._commits])

    def cache_state(self, commit: CommitId, state: TargetState) -> None:
        """Cache the state of a state commit, so that `read_state` does not read it from the mirror."""
        self._states[commit] = state

    def _read_state_files(self, commit: CommitId) -> dict[str, bytes]:
        # Read only the files of the state. The trees that the state contains are read later, when they are needed.
        root = self.read_commit(commit).tree
        blobs = {entry.name: BlobId(entry.id) for entry in self._reader.read_tree(root) if not entry.is_tree}
        for folder in ("packages", "texts"):
            if tree := self._reader.find_object_id(root, folder):
                blobs |= {path: blob for path, _, blob in self._reader.walk(TreeId(tree), f"{folder}/")}
        contents = self._reader.read_blobs(blobs.values())
        return {path: contents[blob] for path, blob in blobs.items()}

    def list_paths(self, tree: TreeId) -> tuple[str, ...]:
        """Return the paths of all entries below a tree, except folders. The contents of files are not read."""
        return tuple(path for path, _, _ in self._reader.walk(tree))

    def find_obstacle(self, commit: CommitId, path: str, *, is_file: bool = False) -> str | None:
        """Return the path of the entry that prevents the creation of a folder at `path`, or None.

        If `is_file` is True, do the same check for a file at `path`.
        """
        parent = TreeEntry(DIRECTORY_MODE, "", ObjectId(self.read_commit(commit).tree))
        names = path.split("/")
        for index, name in enumerate(names):
            entries = self._reader.read_tree(TreeId(parent.id))
            entry = next((entry for entry in entries if entry.name == name), None)
            if entry is None:
                return None
            is_last = index + 1 == len(names)
            if not (entry.mode in REGULAR_FILE_MODES if is_file and is_last else entry.is_tree):
                return "/".join(names[: index + 1])
            parent = entry
        return None


class TargetRepository:
    """The repository of one target, with the interface that the planning needs. Paths are relative to the repository.

    `ignored_path` is the path of a file that the daemon writes and that belongs to no package. Changes of this file are
    not local changes.
    """

    def __init__(self, remote: Remote, target: Target, ignored_path: str | None = None) -> None:
        self._ignored_paths = [ignored_path] if ignored_path else []
        self._target = target
        self._list_tagged_revisions = remote.list_tagged_revisions
        self.find_tree_at, self.find_blob_at = remote.find_tree_at, remote.find_blob_at
        self.read_files, self.list_first_parents = remote.read_files, remote.list_first_parents
        self.find_merge_base, self.find_obstacle = remote.find_merge_base, remote.find_obstacle
        self.read_blob, self.list_drafted_files = remote.read_blob, remote.list_drafted_files
        self._remote, self._read_commit = remote, remote.read_commit

    def has_unpublished_changes(
        self, head: CommitId, base: CommitId, branch: CommitId, besides: Collection[str] = ()
    ) -> bool:
        """Return whether a path has a version at `head` that differs from its versions at `base` and at `branch`.

        Paths of the packages in `besides` are ignored.
        """
        target = self._target
        paths = [
            path
            for package in besides
            for path in (target.get_package_path(package), target.get_status_file_path(package))
        ]
        return self._remote.has_unpublished_changes(head, base, branch, [*paths, *self._ignored_paths])

    def has_conflicting_changes(
        self, head: CommitId, base: CommitId, branch: CommitId, outside: Collection[str]
    ) -> bool:
        """Return whether `head` and `branch` changed the same path since `base` in different ways.

        Paths in `outside` are ignored.
        """
        return self._remote.has_conflicting_changes(head, base, branch, [*outside, *self._ignored_paths])

    def list_tagged_revisions(self, packages: Collection[str]) -> Mapping[str, Sequence[TaggedRevision]]:
        """Return a mapping from each of these packages of the target to its tagged revisions."""
        return self._list_tagged_revisions(self._target, packages)

    def list_draft_commits(self, head: CommitId, base: CommitId) -> Sequence[DraftCommit]:
        """Return the commits after `base` up to `head`, oldest first, each with the package of its trailer."""
        return [self._read_draft_commit(commit) for commit in self.list_first_parents(base, head) or ()]

    def read_commit_seconds(self, commit: CommitId) -> int:
        """Return the committer date of a commit, in seconds since 1970."""
        return self._read_commit(commit).seconds

    def is_reconciler_commit(self, commit: CommitId) -> bool:
        """Return whether the daemon wrote a commit, according to a trailer in the commit message."""
        return PACKAGE_TRAILER in parse_trailers(self._read_commit(commit).message)

    def _read_draft_commit(self, commit: CommitId) -> DraftCommit:
        message = self._read_commit(commit).message
        package = parse_trailers(message).get(PACKAGE_TRAILER, "")
        content = self.find_tree_at(commit, self._target.get_package_path(package))
        status = self.find_blob_at(commit, self._target.get_status_file_path(package))
        return DraftCommit(package, content, status, message, self._read_commit(commit).seconds)
