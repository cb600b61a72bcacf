"""Where the config is read from: a plain folder as it is on disk, or a branch of a repository."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.gitio.errors import RepositoryMissingError
from reconciler.gitio.folder import read_folder
from reconciler.gitio.mirror import Mirror
from reconciler.gitio.reader import Commit
from reconciler.gitio.url import parse_url
from reconciler.reporting.hydrator_metadata import DryCommit
from reconciler.snapshot.files import File, FileTree
from reconciler.snapshot.objects import EXECUTABLE, FILE, BlobId


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


class RepositoryConfig:
    """A branch of a repository; `directory` narrows it to a part. Files are remembered by blob id.

    `proposals` is the branch that proposals to the config stand on; it is fetched along, with the states below
    `state_prefix`.
    """

    def __init__(self, mirror: Mirror, branch: str, directory: str, proposals: str, state_prefix: str) -> None:
        self._mirror = mirror
        self._branch = branch
        self._proposals = proposals
        self._state_prefix = state_prefix
        self._directory = directory.strip("/")
        self._files: dict[BlobId, bytes] = {}

    def read(self) -> ConfigSnapshot:
        """Fetch, and return the files at the branch's head. Raises GitError."""
        self._mirror.fetch("destination", self._state_prefix, branches=(self._branch, self._proposals))
        head = self._mirror.refs().get(f"refs/heads/{self._branch}")
        if head is None:
            raise RepositoryMissingError(
                f"{self._mirror.url} must have the branch {self._branch}, named by config.branch"
            )
        with self._mirror.read() as reader:
            commit = reader.commit(head)
            found = [(path, mode, blob) for path, mode, blob in reader.walk(commit.tree) if mode in {FILE, EXECUTABLE}]
            wanted = {blob for _, _, blob in found}
            new = reader.blobs(sorted(wanted - self._files.keys()))
        self._files = {blob: data for blob, data in {**self._files, **new}.items() if blob in wanted}
        files = FileTree({path: File(self._files[blob], mode == EXECUTABLE) for path, mode, blob in found})
        return ConfigSnapshot(head, commit.seconds, files.below(self._directory), dry=self._dry(commit))

    def _dry(self, commit: Commit) -> DryCommit:
        url = parse_url(self._mirror.url)
        who = f"{commit.author.name} <{commit.author.mail}>"
        # a path of this machine tells other machines nothing
        return DryCommit(commit.id, "" if url.local else url.text, who, commit.author.seconds, commit.message)
