"""The folder of one mirror in the cache: creation, locking, cleanup after killed processes, packing and deletion."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

from reconciler.git.command import REMOTE_CONFIG_FILE, GitCommand
from reconciler.git.errors import CacheUnusableError, GitError, MirrorBusyError, MirrorCorruptError
from reconciler.git.filesystem import hold_lock, prepare_private_folder, remove_folder, replace_file, walk_folder
from reconciler.git.options import GitOptions
from reconciler.git.url import GitUrl

# Use two seconds, because some file systems store timestamps only with this resolution.
_TIMESTAMP_RESOLUTION_NS = 2_000_000_000
_LOCK = "reconciler.lock"
_TEMPORARY_FILE = re.compile(
    r"[^/]*\.lock|fast_import_crash_[^/]*|refs/.*\.lock"
    r"|objects/(?:[^/]*\.lock|[^/]*/tmp_[^/]*|pack/\.tmp-[^/]*)"
)
_TEMPORARY_REF_FOLDERS = ("refs/out", "refs/reconciler-tmp")
_REMOTE_CONFIG_START = b"[safe]\n\t"
_MAX_PACKS = 50
_MAX_LOOSE_OBJECTS = 2_000
_MAX_REFS = 20_000
_SAMPLED_FOLDERS = ("17", "3c", "9a", "e5")


RefTimestamps = tuple[tuple[str, int], ...]
"""Paths of a mirror, each with its modification time in nanoseconds since 1970."""


class MirrorFolder:
    """The folder of one mirror in the cache."""

    def __init__(self, cache_folder: Path, url: GitUrl, options: GitOptions) -> None:
        self.path = cache_folder.absolute() / build_mirror_folder_name(url)
        self.command = GitCommand(self.path, url, options)
        self._unfinished_command = GitCommand(self._unfinished, url, options)
        self._url = url
        self._options = options

    def prepare(self) -> str:
        """Create the folder if it does not exist, and delete temporary files of killed processes.

        Returns:
            The reason why the mirror was damaged, if it was repaired or replaced by an empty mirror. "" if it was
                intact.
        """
        reason = ""
        prepare_private_folder(self.path.parent)
        if not self._exists():
            with translate_write_errors(self.path.parent):
                reason = self._describe_obstacle()
                with self._lock_path():
                    self._create()
        try:
            return reason or self._recover()
        except (OSError, MirrorCorruptError) as error:
            self._replace_by_empty()
            self._recover()
            return str(error)

    @contextmanager
    def lock(self) -> Iterator[int]:
        """Hold the lock of the mirror until the context ends. After a GitError, delete temporary files of git."""
        with hold_lock(self.path / _LOCK, self._options.timeout_seconds) as lock_descriptor:
            try:
                yield lock_descriptor
            except GitError:
                self._remove_temporary_files(lock_descriptor)
                raise

    def maintain(self) -> bool:
        """Pack the mirror if it contains many loose objects, packs or refs, and return whether it was packed.

        Packing can delete unreachable objects that are older than one day. Younger objects are kept, because objects
        that are not pushed yet are unreachable too.
        """
        with self.lock() as lock_descriptor:
            has_many_loose, has_many_packs = self._estimate_loose_objects() > _MAX_LOOSE_OBJECTS, self._has_many_packs()
            if has_many_packs:
                # Use --force to ignore a gc.pid file of a killed process. No other gc can run, because this process
                # holds the lock.
                self.command.run("gc", "--quiet", "--force", "--prune=1.day.ago", lock_descriptor=lock_descriptor)
            elif has_many_loose:
                # Use this task instead of a gc, because a gc reads the whole mirror and the task reads only the loose
                # objects.
                self.command.run(
                    "maintenance", "run", "--quiet", "--task=loose-objects", lock_descriptor=lock_descriptor
                )
                self.command.run("prune-packed", "--quiet", lock_descriptor=lock_descriptor)
        return has_many_loose or has_many_packs

    def interrupt(self) -> None:
        """End the Git processes that other threads run in this mirror. These threads get InterruptedGitError."""
        for command in (self.command, self._unfinished_command):
            command.interrupt()

    def discard(self) -> None:
        """Delete the folder of the mirror with its content."""
        with translate_write_errors(self.path), self._lock_path(), self.lock():
            self._remove()

    def rebuild(self, refspecs: Iterable[str]) -> None:
        """Fetch `refspecs` into a new mirror, and replace the damaged mirror by the new mirror.

        If the fetch fails, the damaged mirror is kept. The new mirror does not contain objects that were not pushed.

        Raises:
            GitError: The remote cannot be fetched, or another process holds the lock of the mirror.
        """
        with translate_write_errors(self.path), self._lock_path():
            command = self._initialize_unfinished()
            fetch_into(command, refspecs)
            with self._lock_if_possible():
                self._replace_by_unfinished()

    def _replace_by_empty(self) -> None:
        with translate_write_errors(self.path), self._lock_path(), self._lock_if_possible():
            self._initialize_unfinished()
            self._replace_by_unfinished()

    @contextmanager
    def _lock_if_possible(self) -> Iterator[None]:
        """Hold the lock of a damaged mirror. If the lock file itself is damaged, continue without the lock."""
        with ExitStack() as open_locks:
            with suppress(OSError):
                open_locks.enter_context(hold_lock(self.path / _LOCK, self._options.timeout_seconds))
            yield

    def _replace_by_unfinished(self) -> None:
        self._remove()
        self._unfinished.rename(self.path)

    def _remove(self) -> None:
        old = self.path.with_suffix(".old")
        for path in (old, self.path):
            if path.is_symlink() or path.is_file():
                path.unlink()
        with suppress(OSError):
            remove_folder(old)
        if self.path.exists():
            self.path.rename(old)
            remove_folder(old)

    def _describe_obstacle(self) -> str:
        """Return the reason why the existing content of the path cannot be a mirror.

        Return "" if the path is empty or absent.
        """
        if self.path.is_symlink() or (self.path.exists() and not self.path.is_dir()):
            return f"{self.path} must be a directory"
        return f"{self.path} has no HEAD" if self.path.is_dir() and any(self.path.iterdir()) else ""

    def _exists(self) -> bool:
        return (self.path / "HEAD").exists()

    def _lock_path(self) -> AbstractContextManager[int]:
        return hold_lock(self.path.parent / f"{self.path.name}.lock", self._options.timeout_seconds)

    def _create(self) -> None:
        if self._exists():
            return
        self._initialize_unfinished()
        # Replace any existing content. Without a HEAD, the path is not a mirror, but a file, a link, or part of a
        # mirror whose deletion was interrupted.
        self._replace_by_unfinished()

    @property
    def _unfinished(self) -> Path:
        return self.path.with_suffix(".new")

    def _initialize_unfinished(self) -> GitCommand:
        """Create an empty mirror at a temporary path, and return the command that runs git in this mirror."""
        with suppress(OSError):
            remove_folder(self._unfinished)
        self._unfinished.unlink(missing_ok=True)
        command = self._unfinished_command
        # Do not use `clone --mirror`, because its setting remote.mirror prevents pushes with refspecs. Use an empty
        # template, so that git creates no hooks.
        command.run("init", "--quiet", "--bare", "--template=", "--object-format=sha1", "--initial-branch=none")
        self._write_remote_config(self._unfinished)
        return command

    def _recover(self) -> str:
        try:
            with hold_lock(self.path / _LOCK, 0) as lock_descriptor:
                self._remove_temporary_files(lock_descriptor)
                return self._write_remote_config(self.path)
        except MirrorBusyError:
            return ""  # Keep the temporary files, because the process that holds the lock may still use them.

    def _remove_temporary_files(self, lock_descriptor: int) -> None:
        top = f"{self.path}/"
        files = (f"{folder}/{name}" for folder, _, names in walk_folder(self.path) for name in names)
        for file in [file for file in files if _TEMPORARY_FILE.fullmatch(file.removeprefix(top))]:
            if file != f"{top}{_LOCK}":
                Path(file).unlink(missing_ok=True)
        if self._has_temporary_refs():
            self._delete_temporary_refs(lock_descriptor)

    def _has_temporary_refs(self) -> bool:
        # Read the files of the refs instead of starting git, because this check runs in every pass.
        if not (self.path / "refs").is_dir() or (self.path / "reftable").exists():
            return True
        packed = self.path / "packed-refs"
        names = packed.read_bytes() if packed.exists() else b""
        loose = any(files for folder in _TEMPORARY_REF_FOLDERS for _, _, files in walk_folder(self.path / folder))
        return loose or any(f" {folder}/".encode() in names for folder in _TEMPORARY_REF_FOLDERS)

    def _delete_temporary_refs(self, lock_descriptor: int) -> None:
        commands = self.command.run("for-each-ref", "--format=delete %(refname)", *_TEMPORARY_REF_FOLDERS).output
        if commands:
            self.command.run("update-ref", "--stdin", stdin=commands, lock_descriptor=lock_descriptor)

    def _write_remote_config(self, folder: Path) -> str:
        """Write the configuration file for the Git process that serves a local remote.

        Do nothing if the file already has the required content.

        Returns:
            A message if the existing file was damaged. "" if the file was empty, absent, or written by this program.
        """
        file, text = folder / REMOTE_CONFIG_FILE, _build_remote_config(self._url, self._options).encode()
        before = file.read_bytes() if file.exists() else b""
        if before != text or not file.exists():
            replace_file(file, text)
        is_intact = not before or before.startswith(_REMOTE_CONFIG_START)
        return "" if is_intact else f"{file} has unknown content"

    def read_ref_timestamps(self) -> RefTimestamps | None:
        """Return the modification times of all files and folders that store refs. If no time changes, no ref changes.

        Git creates or renames a file for each change of a ref. Return None if a time is less than two seconds old,
        because a later change could then get the same time.
        """
        paths = [self.path / "packed-refs", self.path / "reftable"]
        paths += (Path(folder) for folder, _, _ in walk_folder(self.path / "refs" / "remotes"))
        timestamps = tuple((str(path), path.stat().st_mtime_ns) for path in paths if path.exists())
        newest = max((modified for _, modified in timestamps), default=0)
        return timestamps if newest < time.time_ns() - _TIMESTAMP_RESOLUTION_NS else None

    def _estimate_loose_objects(self) -> int:
        # Count the objects in a few of the 256 folders and extrapolate, because object IDs are distributed evenly.
        sampled_count = sum(1 for folder in _SAMPLED_FOLDERS for _ in self.path.glob(f"objects/{folder}/*"))
        return sampled_count * 256 // len(_SAMPLED_FOLDERS)

    def _has_many_packs(self) -> bool:
        packs = sum(1 for _ in self.path.glob("objects/pack/*.pack"))
        refs = sum(len(folders) + len(names) for _, folders, names in walk_folder(self.path / "refs" / "remotes"))
        return packs > _MAX_PACKS or refs > _MAX_REFS


def fetch_into(command: GitCommand, refspecs: Iterable[str], lock_descriptor: int | None = None) -> None:
    """Fetch refspecs from the remote with their whole history. Overwrite rewritten refs, and remove deleted refs.

    Raises:
        GitError: The fetch failed.
    """
    # Pass the refspecs on stdin, because thousands of refspecs would exceed the maximum length of a command line.
    lines = "".join(f"{refspec}\n" for refspec in refspecs).encode()
    command.run(
        "fetch", "--quiet", "--no-tags", "--prune", "--force", "--refmap=", "--no-write-fetch-head",
        "--no-auto-maintenance", "--no-recurse-submodules", "--no-show-forced-updates",
        "--stdin", "origin", stdin=lines, lock_descriptor=lock_descriptor,
    )  # fmt: skip


@contextmanager
def translate_write_errors(folder: Path) -> Iterator[None]:
    """Convert an OSError that the block raises into a CacheUnusableError."""
    try:
        yield
    except OSError as error:
        raise CacheUnusableError(f"{folder} cannot be written: {error.strerror or error}") from error


def build_mirror_folder_name(url: GitUrl) -> str:
    """Return the name of the mirror folder for a URL. The name consists of a readable part and a hash.

    All spellings of a remote URL give the same name. Local paths with and without the suffix `.git` have different
    names, because they can be different repositories.
    """
    identity = url.text if url.is_local else url.identity
    readable = re.sub(r"[^A-Za-z0-9]+", "-", identity.removesuffix(".git")).strip("-")[-60:].strip("-")
    return f"{readable}-{hashlib.sha256(identity.encode(errors='surrogateescape')).hexdigest()[:16]}.git"


def _build_remote_config(url: GitUrl, options: GitOptions) -> str:
    """Return additional configuration for the Git process that serves a local remote.

    By default, Git refuses a repository of another user, because the hooks of this repository would run as the user of
    the daemon. The configuration permits the repository only if the settings contain an allow-list of URLs.
    """
    if not (url.is_local and options.allowed_urls):
        return ""
    quoted = url.text.replace("\\", "\\\\").replace('"', '\\"')
    return f'{_REMOTE_CONFIG_START.decode()}directory = "{quoted}"\n\tdirectory = "{quoted}/.git"\n'
