"""Reads the files of the config from a plain folder, the head of a branch, or any commit of a repository.

This module does not parse the files. The package `reconciler.catalog` reads the objects in the files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.catalog.files import (
    DIRECTORY_MODE,
    EXECUTABLE_MODE,
    REGULAR_FILE_MODES,
    SUBMODULE_MODE,
    SYMLINK_MODE,
    BlobId,
    CommitId,
    File,
    FileTree,
    ObjectId,
    TreeId,
)
from reconciler.git.errors import (
    ObjectMissingError,
    RepositoryMissingError,
    TooLargeError,
    TreeMalformedError,
    UnverifiedCommitError,
)
from reconciler.git.folder import (
    NAME_NOT_UTF8,
    FolderContent,
    FolderLimits,
    describe_path_type,
    escape_path,
    is_utf8,
    read_folder,
)
from reconciler.git.history import CommitHistory
from reconciler.git.mirror import Mirror
from reconciler.git.object_reader import Commit, ObjectReader, TreeEntry, find_malformed_entries
from reconciler.git.url import parse_url
from reconciler.krm.findings import Finding
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.output import commit_messages
from reconciler.planning.decide import deletion_safety
from reconciler.reconcile.input_verifier import InputVerifier, UncheckedInputs
from reconciler.reconcile.remotes.remotes import maintain_mirror

if TYPE_CHECKING:
    from reconciler.output.commit_messages import DryCommit

# The ID of a config in a plain folder consists of this prefix and a tree ID.
_TREE_PREFIX = "tree:"
# Limit for the number of commits that a search for earlier versions of config files reads.
_MAX_DEFINITION_COMMITS = 5_000


def _list_no_versions(paths: Collection[str]) -> Iterator[FileTree]:
    return iter(())


def _read_no_config(commit: CommitId) -> ConfigSnapshot | None:
    return None


def _read_no_kinds(paths: Collection[str]) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class ConfigSnapshot:
    """The files of the config at one commit, or in a plain folder.

    Attributes:
        id: The commit ID. For a plain folder: `tree:` and the ID of the Git tree with the same files.
        seconds: The commit date in seconds since 1970, or 0 for a plain folder.
        files: The files in `directory` that can be read.
        unreadable: The errors of files and folders that cannot be read, by path. The path of a folder ends with "/".
        dry_commit: The commit with its author and message, or None for a plain folder.
        directory: The path of the config folder in the repository.
        has_directory: Whether `directory` exists in the repository.
        read_entry_kinds: A function that receives paths in the repository and returns the kind of each existing path:
            `file`, or a description such as "a symbolic link".
        root_commits: The root commits of the config branch, or None if the config does not come from a branch.
        findings: Findings about the commit, for example about its signature.
        list_earlier_versions: A function that receives file paths. For each commit that changed one of these files, it
            yields the files before the commit. It starts with the newest commit and follows first parents. It yields
            nothing for a plain folder, and raises GitError.
        read_earlier: A function that returns the config at an earlier commit in the history of this commit. It returns
            None for other commits and for a plain folder, and raises GitError.
    """

    id: str
    seconds: int
    files: FileTree
    unreadable: Mapping[str, str] = field(default_factory=dict)
    dry_commit: DryCommit | None = None
    directory: str = ""
    has_directory: bool = True
    # Do not compare the callables, because snapshots of one commit are equal even if different readers create them.
    read_entry_kinds: Callable[[Collection[str]], Mapping[str, str]] = field(default=_read_no_kinds, compare=False)
    root_commits: RootCommits | None = field(default=None, compare=False)
    list_earlier_versions: Callable[[Collection[str]], Iterator[FileTree]] = field(
        default=_list_no_versions, compare=False
    )
    read_earlier: Callable[[CommitId], ConfigSnapshot | None] = field(default=_read_no_config, compare=False)
    findings: tuple[Finding, ...] = ()

    @property
    def commit(self) -> str:
        """The commit ID. "" for a plain folder."""
        return "" if self.id.startswith(_TREE_PREFIX) else self.id


class RootCommits:
    """The root commits of a config branch. Two histories are related if they have a common root commit."""

    def __init__(self, mirror: Mirror, head: CommitId) -> None:
        self._mirror = mirror
        self._head = head

    @cached_property
    def _roots(self) -> Sequence[CommitId]:
        return self._mirror.list_root_commits(self._head)

    @property
    def first(self) -> CommitId:
        """The root commit at the end of the first-parent history. Raises GitError."""
        return self._roots[0]

    def contains(self, commit: str) -> bool:
        """Return whether `commit` is one of the root commits of the branch. Raises GitError."""
        return commit in self._roots


class FolderConfigSource:
    """Reads the config from the subfolder `directory` of a plain folder on disk."""

    def __init__(self, folder: Path, directory: str, limits: FolderLimits | None = None) -> None:
        self._limits = limits
        self._root = folder
        self._directory = directory.strip("/")

    def read(self) -> ConfigSnapshot:
        """Read the current files from disk. Raises GitError."""
        folder = self._root / self._directory
        has_directory = not self._directory or folder.exists() or not self._root.is_dir()
        content = read_folder(folder, self._limits) if has_directory else FolderContent(FileTree())
        return ConfigSnapshot(
            f"{_TREE_PREFIX}{content.tree_id}", 0, content.files, content.unreadable_reasons, directory=self._directory,
            has_directory=has_directory, read_entry_kinds=self._read_entry_kinds,
        )  # fmt: skip

    def _read_entry_kinds(self, paths: Collection[str]) -> Mapping[str, str]:
        # Follow symbolic links only in the path of the config directory, and not in the paths below it.
        return {path: kind for path in paths if (kind := describe_path_type(self._root, path, self._directory))}


class ConfigCommitReader:
    """Reads the config in the folder `directory` at commits of one repository.

    The reader caches the files of the last commit. For the next commit, it reads only files that are not in the cache.
    """

    def __init__(self, repository: Mirror | CommitHistory, directory: str) -> None:
        self._repository = repository
        self._directory = directory.strip("/")
        self._files: dict[tuple[BlobId, str], File] = {}

    def read(self, commit: CommitId) -> ConfigSnapshot:
        """Return the config at a commit. If the commit has no config folder, there are no files. Raises GitError."""
        unreadable: dict[str, str] = {}
        with self._repository.open_reader() as reader:
            commit_data = reader.read_commit(commit)
            directory = reader.find_entry(commit_data.tree, self._directory)
            entries = {path: (blob, mode) for path, mode, blob in self._walk(reader, commit_data.tree, unreadable)}
            needed = set(entries.values())
            contents, errors = _read_blobs(reader, sorted({blob for blob, _ in needed - self._files.keys()}))
        self._files = {
            (blob, mode): self._files.get((blob, mode)) or File(contents[blob], mode == EXECUTABLE_MODE)
            for blob, mode in needed
            if blob not in errors
        }
        unreadable |= {path: errors[blob] for path, (blob, _) in entries.items() if blob in errors}
        files = FileTree({path: self._files[entry] for path, entry in entries.items() if entry in self._files})
        return ConfigSnapshot(
            commit, commit_data.seconds, files, unreadable, dry_commit=self._describe_commit(commit_data),
            directory=self._directory, has_directory=directory is not None and directory.is_tree,
            read_entry_kinds=partial(self._read_entry_kinds, commit_data.tree),
            list_earlier_versions=partial(self._list_earlier_versions, commit),
            read_earlier=partial(self._read_earlier, commit),
        )  # fmt: skip

    def _read_earlier(self, commit: CommitId, earlier: CommitId) -> ConfigSnapshot | None:
        if self._repository.merge_base(earlier, commit) != earlier:
            return None
        # Use a separate reader, so that the cache of this reader keeps the files of the current commit.
        return ConfigCommitReader(self._repository, self._directory).read(earlier)

    def _list_earlier_versions(self, commit: CommitId, paths: Collection[str]) -> Iterator[FileTree]:
        prefix = f"{self._directory}/" if self._directory else ""
        full_paths = {prefix + path: path for path in paths}
        commits = self._repository.list_commits_changing_any(commit, full_paths, _MAX_DEFINITION_COMMITS)
        with self._repository.open_reader() as reader:
            for changed in commits:
                parents = reader.read_commit(changed).parents
                if not parents:
                    return
                tree = reader.read_commit(parents[0]).tree
                entries = {path: reader.find_entry(tree, full_path) for full_path, path in full_paths.items()}
                blobs = {
                    path: BlobId(entry.id)
                    for path, entry in entries.items()
                    if entry and entry.mode in REGULAR_FILE_MODES
                }
                yield FileTree({path: File(reader.read_blob(blob)) for path, blob in blobs.items()})

    def _read_entry_kinds(self, tree: TreeId, paths: Collection[str]) -> Mapping[str, str]:
        with self._repository.open_reader() as reader:
            return {path: kind for path in paths if (kind := _read_entry_kind(reader, tree, path))}

    def read_tree(self, tree: TreeId) -> ConfigSnapshot:
        """Return the files of a Git tree as the config of a plain folder. Raises GitError."""
        with self._repository.open_reader() as reader:
            entries = {path: (blob, mode) for path, mode, blob in reader.walk(tree) if mode in REGULAR_FILE_MODES}
            contents = reader.read_blobs(sorted({blob for blob, _ in entries.values()}))
        files = {path: File(contents[blob], mode == EXECUTABLE_MODE) for path, (blob, mode) in entries.items()}
        return ConfigSnapshot(f"{_TREE_PREFIX}{tree}", 0, FileTree(files))

    def _walk(
        self, reader: ObjectReader, tree: TreeId, unreadable: dict[str, str]
    ) -> Iterator[tuple[str, str, BlobId]]:
        """Yield path, mode and blob of each regular file. Add the errors of unreadable folders to `unreadable`."""
        directory = reader.find_entry(tree, self._directory)
        if not (directory and directory.is_tree):
            return
        entries = reader.read_tree(TreeId(directory.id))
        malformed = find_malformed_entries(entries)
        unreadable |= {f"{escape_path(name)}/": message for name, message in malformed.items()}
        for entry in (entry for entry in entries if entry.name not in malformed):
            if entry.is_tree:
                yield from self._walk_folder(reader, entry, unreadable)
            elif entry.mode in REGULAR_FILE_MODES:
                yield from _select_readable([(entry.name, entry.mode, BlobId(entry.id))], unreadable)

    def _walk_folder(
        self, reader: ObjectReader, folder: TreeEntry, unreadable: dict[str, str]
    ) -> Iterator[tuple[str, str, BlobId]]:
        prefix = f"{folder.name}/"
        try:
            entries = [
                entry
                for entry in reader.walk(TreeId(folder.id), prefix, self._repository.options.max_folder_files)
                if entry[1] in REGULAR_FILE_MODES
            ]
        except (TooLargeError, TreeMalformedError) as error:
            unreadable[escape_path(prefix)] = error.message
            return
        yield from _select_readable(entries, unreadable)

    def _describe_commit(self, commit: Commit) -> DryCommit:
        url = parse_url(self._repository.url)
        author = f"{commit.author.name} <{commit.author.email}>"
        # Omit the URL of a local repository, because a local path has no meaning on other machines.
        return commit_messages.DryCommit(
            commit.id, "" if url.is_local else url.text, author, commit.author.seconds, commit.message
        )


_KINDS = {SYMLINK_MODE: "a symbolic link", SUBMODULE_MODE: "a submodule", DIRECTORY_MODE: "a directory"}


def _read_entry_kind(reader: ObjectReader, tree: TreeId, path: str) -> str:
    """Return the kind of the entry at a path, such as "a symbolic link". Return "" if the path does not exist.

    If a parent of the path is not a directory, return the kind of the parent, e.g. "below a symbolic link".
    """
    segments = path.split("/")
    for count in range(1, len(segments) + 1):
        entry = reader.find_entry(tree, "/".join(segments[:count]))
        if entry is None:
            return ""
        if count < len(segments) and not entry.is_tree:
            return f"below {_KINDS.get(entry.mode, 'a regular file')}"
    return _KINDS.get(entry.mode, deletion_safety.REGULAR_FILE) if entry else ""


def _select_readable(
    entries: Iterable[tuple[str, str, BlobId]], unreadable: dict[str, str]
) -> Iterator[tuple[str, str, BlobId]]:
    for path, mode, blob in entries:
        if path.isascii() or is_utf8(path):
            yield path, mode, blob
        else:
            unreadable[escape_path(path)] = NAME_NOT_UTF8


def _read_blobs(reader: ObjectReader, blobs: Sequence[BlobId]) -> tuple[Mapping[BlobId, bytes], Mapping[BlobId, str]]:
    """Return the contents of the files that can be read, and the error messages of all other files."""
    try:
        return reader.read_blobs(blobs), {}
    except (TooLargeError, ObjectMissingError):
        contents: dict[BlobId, bytes] = {}
        errors: dict[BlobId, str] = {}
        for blob in blobs:
            try:
                contents[blob] = reader.read_blob(blob)
            except (TooLargeError, ObjectMissingError) as error:
                errors[blob] = error.message
        return contents, errors


class RepositoryConfigSource:
    """Reads the config from the head of a branch.

    Each read also fetches the branch `proposals`, on which the daemon proposes changes of the config, and all refs with
    the prefix `state_prefix`.
    """

    def __init__(
        self,
        mirror: Mirror,
        branch: str,
        directory: str,
        proposals: str,
        state_prefix: str,
        verifier: InputVerifier | None = None,
    ) -> None:
        self._mirror = mirror
        self._verifier = verifier or UncheckedInputs()
        self._branch = branch
        self._proposals = proposals
        self._state_prefix = state_prefix
        self._reader = ConfigCommitReader(mirror, directory)

    def read(self) -> ConfigSnapshot:
        """Fetch the branch, and return the files at its head. Raises GitError.

        If a valid signature is required and the head has none, return the files at the last verified commit.
        """
        self._mirror.fetch("target", self._state_prefix, branches=(self._branch, self._proposals))
        ref = f"refs/heads/{self._branch}"
        head = self._mirror.refs().get(ref)
        if head is None:
            raise RepositoryMissingError(
                f'{self._mirror.url} must have the branch "{self._branch}"; set `config.branch` to an existing branch'
            )
        self._verifier.refresh()
        checked = self._verifier.check(self._mirror, ref, ObjectId(head), head)
        if checked.commit is None:
            raise UnverifiedCommitError(f"the config: {checked.message}")
        snapshot = self._reader.read(checked.commit)
        maintain_mirror(self._mirror)
        return replace(
            snapshot,
            root_commits=RootCommits(self._mirror, checked.commit),
            findings=(checked.create_finding(),) if checked.problem else (),
        )


class CommitConfigSource:
    """Reads the config at one commit."""

    def __init__(self, reader: ConfigCommitReader, commit: CommitId) -> None:
        self._reader = reader
        self._commit = commit

    def read(self) -> ConfigSnapshot:
        """Return the files at the commit. Raises GitError."""
        return self._reader.read(self._commit)


# Limit for the number of commits that `find_commit_with_tree` searches.
_MAX_SEARCHED_COMMITS = 2_000


class ConfigHistory:
    """Reads the config at any commit of a repository.

    `current_name` is the name of the commit that contains the current config, such as `HEAD` or a branch ref.
    """

    def __init__(self, repository: CommitHistory, directory: str, current_name: str = "HEAD") -> None:
        self.current_name = current_name
        self._repository = repository
        self._directory = directory.strip("/")
        self._reader = ConfigCommitReader(repository, directory)

    def find_commit(self, name: str) -> CommitId:
        """Return the commit with a name, such as a branch, a tag, an ID or `HEAD~1`. Raises GitError."""
        return self._repository.find(name)

    def find_branch_head(self, branch: str) -> CommitId:
        """Return the head of `origin/<branch>`. If this ref does not exist, return the head of the local branch.

        Raises:
            GitError: Neither of the two refs can be read.
        """
        try:
            return self.find_commit(f"origin/{branch}")
        except ObjectMissingError:
            pass
        try:
            return self.find_commit(branch)
        except ObjectMissingError as error:
            raise ObjectMissingError(f"{error.message}; set `config.branch` to an existing branch") from error

    def merge_base(self, first: CommitId, second: CommitId) -> CommitId | None:
        """Return the last common commit of two histories. Return None if they have no common commit."""
        return self._repository.merge_base(first, second)

    def list_commits_between(self, old: CommitId | None, new: CommitId) -> list[CommitId] | None:
        """Return the commits after `old` up to `new` that changed the config, oldest first. Raises GitError.

        Only first parents are followed. If `old` is None, return all commits up to `new` that changed the config.
        Return None if `old` is not in the history of `new`.
        """
        return self._repository.list_commits_between(old, new, self._directory)

    def find_commit_with_tree(self, tree: TreeId, head: str) -> CommitId | None:
        """Return the last commit whose config has the given tree. Return None if no searched commit has this tree.

        The search starts at `head` and follows first parents. Raises GitError.
        """
        commits = self.list_commits_between(None, self.find_commit(head)) or []
        with self._repository.open_reader() as reader:
            for commit in commits[: -_MAX_SEARCHED_COMMITS - 1 : -1]:
                directory = reader.find_entry(reader.read_commit(commit).tree, self._directory)
                if directory and TreeId(directory.id) == tree:
                    return commit
        return None

    def read_commit(self, commit: CommitId) -> Commit:
        """Read the data of a commit, such as its author and date. Raises GitError."""
        with self._repository.open_reader() as reader:
            return reader.read_commit(commit)

    def read_file(self, commit: CommitId, path: str) -> bytes | None:
        """Return the content of a file of the config. Return None if there is no such file. Raises GitError."""
        full_path = f"{self._directory}/{path}" if self._directory else path
        with self._repository.open_reader() as reader:
            entry = reader.find_entry(reader.read_commit(commit).tree, full_path)
            return reader.read_blob(BlobId(entry.id)) if entry and entry.mode in REGULAR_FILE_MODES else None

    def source_at(self, commit: CommitId) -> CommitConfigSource:
        """Return a config source that reads the config at the given commit."""
        return CommitConfigSource(self._reader, commit)

    def read_tree(self, tree: TreeId) -> ConfigSnapshot:
        """Return the files of a Git tree as the config of a plain folder.

        Raises:
            GitError: The repository does not contain the tree.
        """
        return self._reader.read_tree(tree)
