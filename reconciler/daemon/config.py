"""Where the config is read from: a plain folder as it is on disk, a branch of a repository, or one commit of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.gitio.errors import ObjectMissingError, RepositoryMissingError
from reconciler.gitio.folder import read_folder
from reconciler.gitio.history import History
from reconciler.gitio.mirror import Mirror
from reconciler.gitio.reader import Commit, ObjectReader
from reconciler.gitio.url import parse_url
from reconciler.reporting.hydrator_metadata import DryCommit
from reconciler.snapshot.files import File, FileTree
from reconciler.snapshot.objects import EXECUTABLE, FILE, BlobId, CommitId, TreeId


@dataclass(frozen=True)
class ConfigSnapshot:
    """The config at one commit: its id (`tree:<id>` for a plain folder), its date (0: none), its files.

    `unreadable` says by path why a file could not be read at all; `dry` is the commit, which a plain folder has not.
    """

    id: str
    seconds: int
    files: FileTree
    unreadable: Mapping[str, str] = field(default_factory=dict)
    dry: DryCommit | None = None


class FolderConfig:
    """A plain folder; `directory` narrows it to a part."""

    def __init__(self, folder: Path, directory: str) -> None:
        self._folder = folder / directory

    def read(self) -> ConfigSnapshot:
        """Return what is on disk now. Raises GitError."""
        content = read_folder(self._folder)
        return ConfigSnapshot(f"tree:{content.tree_id}", 0, content.files, content.unreadable)


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
        with self._repository.read() as reader:
            found = reader.commit(commit)
            listed = {path: (blob, mode) for path, mode, blob in self._walk(reader, found.tree)}
            wanted = set(listed.values())
            new = reader.blobs(sorted({blob for blob, _ in wanted - self._files.keys()}))
        self._files = {
            (blob, mode): self._files.get((blob, mode)) or File(new[blob], mode == EXECUTABLE) for blob, mode in wanted
        }
        files = FileTree({path: self._files[one] for path, one in listed.items()})
        return ConfigSnapshot(commit, found.seconds, files, dry=self._dry(found))

    def read_tree(self, tree: TreeId) -> ConfigSnapshot:
        """Return the files of a tree, as if they lay in a plain folder. Raises GitError."""
        with self._repository.read() as reader:
            listed = {path: (blob, mode) for path, mode, blob in reader.walk(tree) if mode in {FILE, EXECUTABLE}}
            data = reader.blobs(sorted({blob for blob, _ in listed.values()}))
        files = {path: File(data[blob], mode == EXECUTABLE) for path, (blob, mode) in listed.items()}
        return ConfigSnapshot(f"tree:{tree}", 0, FileTree(files))

    def _walk(self, reader: ObjectReader, tree: TreeId) -> Iterator[tuple[str, str, BlobId]]:
        inside = reader.entry(tree, self._directory)
        if inside and inside.is_tree:
            yield from (one for one in reader.walk(TreeId(inside.id)) if one[1] in {FILE, EXECUTABLE})

    def _dry(self, commit: Commit) -> DryCommit:
        url = parse_url(self._repository.url)
        who = f"{commit.author.name} <{commit.author.mail}>"
        # a path of this machine tells other machines nothing
        return DryCommit(commit.id, "" if url.local else url.text, who, commit.author.seconds, commit.message)


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
        return self._reader.read(head)


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
