"""Where the config is read from: a plain folder as it is on disk, a branch of a repository, or one commit of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from reconciler.daemon.upkeep import maintain
from reconciler.gitio.errors import ObjectMissingError, RepositoryMissingError, TooLargeError, TreeMalformedError
from reconciler.gitio.folder import (
    NAME_NOT_TEXT,
    FolderContent,
    FolderLimits,
    is_text,
    kind_on_disk,
    printable,
    read_folder,
)
from reconciler.gitio.history import History
from reconciler.gitio.mirror import Mirror
from reconciler.gitio.reader import Commit, ObjectReader, TreeEntry, malformed_entries
from reconciler.gitio.url import parse_url
from reconciler.planning.evidence import REGULAR
from reconciler.reporting.hydrator_metadata import DryCommit
from reconciler.snapshot.files import File, FileTree
from reconciler.snapshot.objects import DIRECTORY, EXECUTABLE, FILE, LINK, SUBMODULE, BlobId, CommitId, TreeId

# claims that are older than this many commits of their files are not looked up
_MAX_CLAIM_COMMITS = 5_000


def _no_history(paths: Collection[str]) -> Iterator[FileTree]:
    return iter(())


def _no_entries(paths: Collection[str]) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class ConfigSnapshot:
    """The config at one commit: its id (`tree:<id>` for a plain folder), its date (0: none), its files.

    `unreadable` says by path why a file could not be read at all; the path of a folder ends with "/". `dry` is the
    commit, which a plain folder has not.
    `directory` is the folder of the repository that `files` are relative to; `has_directory`: the repository has it.
    `entries` returns what is at paths of the repository: `file`, words for anything else, nothing for absent paths.
    `lineage` is the history of the config branch; a plain folder, and one commit by itself, have none.
    `earlier` yields files of `files` as they were before each commit, along first parents, that changed any of them,
    newest first; it raises GitError. A plain folder has no such versions.
    """

    id: str
    seconds: int
    files: FileTree
    unreadable: Mapping[str, str] = field(default_factory=dict)
    dry: DryCommit | None = None
    directory: str = ""
    has_directory: bool = True
    # two readers of one commit return equal snapshots
    entries: Callable[[Collection[str]], Mapping[str, str]] = field(default=_no_entries, compare=False)
    lineage: Lineage | None = field(default=None, compare=False)
    earlier: Callable[[Collection[str]], Iterator[FileTree]] = field(default=_no_history, compare=False)


class Lineage:
    """The first commits of a config branch, by which a related history is recognized."""

    def __init__(self, mirror: Mirror, head: CommitId) -> None:
        self._mirror = mirror
        self._head = head

    @cached_property
    def _roots(self) -> Sequence[CommitId]:
        return self._mirror.root_commits(self._head)

    @property
    def root(self) -> CommitId:
        """The first commit of the branch, along first parents. Raises GitError."""
        return self._roots[0]

    def has_root(self, commit: str) -> bool:
        """Return whether a commit without parents is in the history of the branch. Raises GitError."""
        return commit in self._roots


class FolderConfig:
    """A plain folder; `directory` narrows it to a part."""

    def __init__(self, folder: Path, directory: str, limits: FolderLimits | None = None) -> None:
        self._limits = limits
        self._root = folder
        self._directory = directory.strip("/")

    def read(self) -> ConfigSnapshot:
        """Return what is on disk now. Raises GitError."""
        folder = self._root / self._directory
        has_directory = not self._directory or folder.exists() or not self._root.is_dir()
        content = read_folder(folder, self._limits) if has_directory else FolderContent(FileTree())
        return ConfigSnapshot(
            f"tree:{content.tree_id}", 0, content.files, content.unreadable, directory=self._directory,
            has_directory=has_directory, entries=self._entries,
        )  # fmt: skip

    def _entries(self, paths: Collection[str]) -> Mapping[str, str]:
        # the directory itself may be a link; below it, and beside it, links are not followed
        return {path: kind for path in paths if (kind := kind_on_disk(self._root, path, self._directory))}


class CommitReader:
    """Reads the config at commits of one repository; `directory` narrows it to a part.

    Files are remembered as long as the last commit that was read has them: what two commits share is read once.
    """

    def __init__(self, repository: Mirror | History, directory: str) -> None:
        self._repository = repository
        self._directory = directory.strip("/")
        self._files: dict[tuple[BlobId, str], File] = {}

    def read(self, commit: CommitId) -> ConfigSnapshot:
        """Return the files at a commit; a directory that it does not have is empty. Raises GitError."""
        unreadable: dict[str, str] = {}
        with self._repository.read() as reader:
            found = reader.commit(commit)
            inside = reader.entry(found.tree, self._directory)
            listed = {path: (blob, mode) for path, mode, blob in self._walk(reader, found.tree, unreadable)}
            wanted = set(listed.values())
            new, refused = _read_blobs(reader, sorted({blob for blob, _ in wanted - self._files.keys()}))
        self._files = {
            (blob, mode): self._files.get((blob, mode)) or File(new[blob], mode == EXECUTABLE)
            for blob, mode in wanted
            if blob not in refused
        }
        unreadable |= {path: refused[blob] for path, (blob, _) in listed.items() if blob in refused}
        files = FileTree({path: self._files[one] for path, one in listed.items() if one in self._files})
        return ConfigSnapshot(
            commit, found.seconds, files, unreadable, dry=self._dry(found), directory=self._directory,
            has_directory=inside is not None and inside.is_tree, entries=partial(self._entries, found.tree),
            earlier=partial(self._earlier, commit),
        )  # fmt: skip

    def _earlier(self, commit: CommitId, paths: Collection[str]) -> Iterator[FileTree]:
        start = f"{self._directory}/" if self._directory else ""
        places = {start + path: path for path in paths}
        commits = self._repository.changes_of(commit, places, _MAX_CLAIM_COMMITS)
        with self._repository.read() as reader:
            for changed in commits:
                parents = reader.commit(changed).parents
                if not parents:
                    return
                tree = reader.commit(parents[0]).tree
                found = {path: reader.entry(tree, place) for place, path in places.items()}
                blobs = {path: BlobId(one.id) for path, one in found.items() if one and one.mode in {FILE, EXECUTABLE}}
                yield FileTree({path: File(reader.blob(blob)) for path, blob in blobs.items()})

    def _entries(self, tree: TreeId, paths: Collection[str]) -> Mapping[str, str]:
        with self._repository.read() as reader:
            return {path: kind for path in paths if (kind := _kind_in_tree(reader, tree, path))}

    def read_tree(self, tree: TreeId) -> ConfigSnapshot:
        """Return the files of a tree, as if they lay in a plain folder. Raises GitError."""
        with self._repository.read() as reader:
            listed = {path: (blob, mode) for path, mode, blob in reader.walk(tree) if mode in {FILE, EXECUTABLE}}
            data = reader.blobs(sorted({blob for blob, _ in listed.values()}))
        files = {path: File(data[blob], mode == EXECUTABLE) for path, (blob, mode) in listed.items()}
        return ConfigSnapshot(f"tree:{tree}", 0, FileTree(files))

    def _walk(
        self, reader: ObjectReader, tree: TreeId, unreadable: dict[str, str]
    ) -> Iterator[tuple[str, str, BlobId]]:
        """Yield the regular files of the config; why a top-level folder cannot be read is noted in `unreadable`."""
        inside = reader.entry(tree, self._directory)
        if not (inside and inside.is_tree):
            return
        entries = reader.tree(TreeId(inside.id))
        faults = malformed_entries(entries)
        unreadable |= {f"{printable(name)}/": fault for name, fault in faults.items()}
        for entry in (one for one in entries if one.name not in faults):
            if entry.is_tree:
                yield from self._walk_folder(reader, entry, unreadable)
            elif entry.mode in {FILE, EXECUTABLE}:
                yield from _readable([(entry.name, entry.mode, BlobId(entry.id))], unreadable)

    def _walk_folder(
        self, reader: ObjectReader, folder: TreeEntry, unreadable: dict[str, str]
    ) -> Iterator[tuple[str, str, BlobId]]:
        start = f"{folder.name}/"
        try:
            found = [
                one
                for one in reader.walk(TreeId(folder.id), start, self._repository.options.max_folder_files)
                if one[1] in {FILE, EXECUTABLE}
            ]
        except (TooLargeError, TreeMalformedError) as error:
            unreadable[printable(start)] = error.message
            return
        yield from _readable(found, unreadable)

    def _dry(self, commit: Commit) -> DryCommit:
        url = parse_url(self._repository.url)
        who = f"{commit.author.name} <{commit.author.mail}>"
        # a path of this machine tells other machines nothing
        return DryCommit(commit.id, "" if url.local else url.text, who, commit.author.seconds, commit.message)


_KINDS = {LINK: "a symbolic link", SUBMODULE: "a submodule", DIRECTORY: "a directory"}


def _kind_in_tree(reader: ObjectReader, tree: TreeId, path: str) -> str:
    """Return what is at a path of a tree, or what on the way there is no directory; "" for an absent path."""
    segments = path.split("/")
    for count in range(1, len(segments) + 1):
        found = reader.entry(tree, "/".join(segments[:count]))
        if found is None:
            return ""
        if count < len(segments) and not found.is_tree:
            return f"below {_KINDS.get(found.mode, 'a regular file')}"
    return _KINDS.get(found.mode, REGULAR) if found else ""


def _readable(
    found: Iterable[tuple[str, str, BlobId]], unreadable: dict[str, str]
) -> Iterator[tuple[str, str, BlobId]]:
    for path, mode, blob in found:
        if path.isascii() or is_text(path):
            yield path, mode, blob
        else:
            unreadable[printable(path)] = NAME_NOT_TEXT


def _read_blobs(reader: ObjectReader, blobs: Sequence[BlobId]) -> tuple[Mapping[BlobId, bytes], Mapping[BlobId, str]]:
    """Return the contents of files, and why some could not be read."""
    try:
        return reader.blobs(blobs), {}
    except (TooLargeError, ObjectMissingError):
        found: dict[BlobId, bytes] = {}
        refused: dict[BlobId, str] = {}
        for blob in blobs:
            try:
                found[blob] = reader.blob(blob)
            except (TooLargeError, ObjectMissingError) as error:
                refused[blob] = error.message
        return found, refused


class RepositoryConfig:
    """A branch of a repository.

    `proposals` is the branch that proposals to the config stand on; it is fetched along, with the states below
    `state_prefix`.
    """

    def __init__(self, mirror: Mirror, branch: str, directory: str, proposals: str, state_prefix: str) -> None:
        self._mirror = mirror
        self._branch = branch
        self._proposals = proposals
        self._state_prefix = state_prefix
        self._reader = CommitReader(mirror, directory)

    def read(self) -> ConfigSnapshot:
        """Fetch, and return the files at the branch's head. Raises GitError."""
        self._mirror.fetch("destination", self._state_prefix, branches=(self._branch, self._proposals))
        head = self._mirror.refs().get(f"refs/heads/{self._branch}")
        if head is None:
            raise RepositoryMissingError(
                f"{self._mirror.url} must have the branch {self._branch}, named by config.branch"
            )
        snapshot = self._reader.read(head)
        maintain(self._mirror)
        return replace(snapshot, lineage=Lineage(self._mirror, head))


class CommitConfig:
    """One commit of a repository, whatever its branches are at."""

    def __init__(self, reader: CommitReader, commit: CommitId) -> None:
        self._reader = reader
        self._commit = commit

    def read(self) -> ConfigSnapshot:
        """Return the files at the commit. Raises GitError."""
        return self._reader.read(self._commit)


# commits that are looked at for the tree of a plain folder
_MOST_SEARCHED = 2_000


class ConfigHistory:
    """The config at whatever commit people name; what two commits share is read once.

    `here` names the commit that the config comes from as it is now, whatever people have changed on disk since.
    """

    def __init__(self, repository: History, directory: str, here: str = "HEAD") -> None:
        self.here = here
        self._repository = repository
        self._directory = directory.strip("/")
        self._reader = CommitReader(repository, directory)

    def find(self, name: str) -> CommitId:
        """Return the commit that a branch, tag, id or other name of Git's stands for. Raises GitError."""
        return self._repository.find(name)

    def find_branch(self, branch: str) -> CommitId:
        """Return the head of a branch as the host has it, or as a clone has it that knows no host. Raises GitError."""
        try:
            return self.find(f"origin/{branch}")
        except ObjectMissingError:
            pass
        try:
            return self.find(branch)
        except ObjectMissingError as error:
            raise ObjectMissingError(f"{error.message}; config.branch names it") from error

    def merge_base(self, one: CommitId, other: CommitId) -> CommitId | None:
        """Return the last commit that is in the history of both; None without one."""
        return self._repository.merge_base(one, other)

    def between(self, old: CommitId | None, new: CommitId) -> list[CommitId] | None:
        """Return the commits after one up to another, along first parents, that changed the config, oldest first.

        All up to there without the first one; None where that is not in the history of the other. Raises GitError.
        """
        return self._repository.between(old, new, self._directory)

    def commit_of(self, tree: TreeId, head: str) -> CommitId | None:
        """Return the last commit, along first parents up to `head`, that has the config as a folder was, or None.

        Raises GitError.
        """
        commits = self.between(None, self.find(head)) or []
        with self._repository.read() as reader:
            for commit in commits[: -_MOST_SEARCHED - 1 : -1]:
                inside = reader.entry(reader.commit(commit).tree, self._directory)
                if inside and TreeId(inside.id) == tree:
                    return commit
        return None

    def commit(self, commit: CommitId) -> Commit:
        """Return what a commit says. Raises GitError."""
        with self._repository.read() as reader:
            return reader.commit(commit)

    def at(self, commit: CommitId) -> CommitConfig:
        """Return the config as it is at a commit."""
        return CommitConfig(self._reader, commit)

    def at_tree(self, tree: TreeId) -> ConfigSnapshot:
        """Return the config that a plain folder was, if it has been committed like that. Raises GitError."""
        return self._reader.read_tree(tree)
