"""Mirrors on disk: making one, locking it, clearing away what a killed process left, and throwing it away."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

from reconciler.gitio.command import FAR_SIDE, GitCommand
from reconciler.gitio.errors import CacheUnusableError, GitError, MirrorBusyError, MirrorCorruptError
from reconciler.gitio.lock import locked
from reconciler.gitio.options import GitOptions
from reconciler.gitio.private_folder import prepare_private_folder
from reconciler.gitio.url import GitUrl
from reconciler.gitio.walk import remove_folder, walk

# file systems write times down to two seconds, the coarsest of them
_COARSEST_NS = 2_000_000_000
_LOCK = "reconciler.lock"
_DEBRIS = (
    "*.lock", "objects/*.lock", "objects/*/tmp_*", "objects/pack/.tmp-*", "fast_import_crash_*",
)  # fmt: skip
_LEFTOVERS = ("refs/out", "refs/reconciler-tmp")
_FAR_SIDE_START = b"[safe]\n\t"
_MOST_PACKS = 50
_MOST_LOOSE = 2_000
_MOST_REFS = 20_000
_SAMPLED_FOLDERS = ("17", "3c", "9a", "e5")


Stamp = tuple[tuple[str, int], ...]
"""Paths of a mirror, each with when it was written, in nanoseconds since 1970."""


class MirrorFolder:
    """One mirror's folder below the cache. `path` and `command` are for those who work in it."""

    def __init__(self, cache_folder: Path, url: GitUrl, options: GitOptions) -> None:
        self.path = cache_folder.absolute() / mirror_name(url)
        self.command = GitCommand(self.path, url, options)
        self._unfinished_command = GitCommand(self._unfinished, url, options)
        self._url = url
        self._options = options

    def prepare(self) -> str:
        """Make the folder if it is not there yet, and remove what a killed process left in it.

        Returns:
            The reason why a damaged mirror was replaced by an empty one or repaired; "" for a sound one.
        """
        reason = ""
        prepare_private_folder(self.path.parent)
        if not self._stands():
            with writing(self.path.parent):
                reason = self._describe_obstacle()
                with self._lock_place():
                    self._create()
        try:
            return reason or self._recover()
        except (OSError, MirrorCorruptError) as error:
            self._replace_by_empty()
            self._recover()
            return str(error)

    @contextmanager
    def lock(self) -> Iterator[int]:
        """Hold the mirror's lock; after an error, the debris of the call that failed is swept."""
        with locked(self.path / _LOCK, self._options.timeout_seconds) as hold:
            try:
                yield hold
            except GitError:
                self._sweep(hold)
                raise

    def maintain(self) -> bool:
        """Pack loose objects, merge packs and prune unreachable objects, where there are many; True if it did.

        Objects that a pass has written and not pushed are younger than the day that pruning spares.
        """
        with self.lock() as hold:
            has_many_loose, has_many_packs = self._count_loose() > _MOST_LOOSE, self._has_many_packs()
            if has_many_packs:
                # --force is about a gc.pid that a killed process left: the lock is ours
                self.command.run("gc", "--quiet", "--force", "--prune=1.day.ago", hold=hold)
            elif has_many_loose:
                # A gc reads the whole mirror. This reads the loose objects only.
                self.command.run("maintenance", "run", "--quiet", "--task=loose-objects", hold=hold)
                self.command.run("prune-packed", "--quiet", hold=hold)
        return has_many_loose or has_many_packs

    def interrupt(self) -> None:
        """End what git is doing here for other threads; they get InterruptedGitError."""
        for one in (self.command, self._unfinished_command):
            one.interrupt()

    def discard(self) -> None:
        """Remove the folder."""
        with writing(self.path), self._lock_place(), self.lock():
            self._remove()

    def rebuild(self, refspecs: Iterable[str]) -> None:
        """Replace the mirror by a new one that these refspecs are fetched into.

        The damaged mirror stays where the fetch fails. Objects that were written and not pushed are lost.

        Raises:
            GitError: the remote cannot be fetched, or another process holds the mirror.
        """
        with writing(self.path), self._lock_place():
            fresh = self._initialize_unfinished()
            fetch_into(fresh, refspecs)
            with self._lock_if_possible():
                self._replace_by_unfinished()

    def _replace_by_empty(self) -> None:
        with writing(self.path), self._lock_place(), self._lock_if_possible():
            self._initialize_unfinished()
            self._replace_by_unfinished()

    @contextmanager
    def _lock_if_possible(self) -> Iterator[None]:
        """Hold the lock of a damaged mirror, unless the damage is the lock itself."""
        with ExitStack() as held:
            with suppress(OSError):
                held.enter_context(locked(self.path / _LOCK, self._options.timeout_seconds))
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
        """Return why the path of the mirror has no mirror although it is in use; "" where the path is free."""
        if self.path.is_symlink() or (self.path.exists() and not self.path.is_dir()):
            return f"{self.path} must be a directory"
        return f"{self.path} has no HEAD" if self.path.is_dir() and any(self.path.iterdir()) else ""

    def _stands(self) -> bool:
        return (self.path / "HEAD").exists()

    def _lock_place(self) -> AbstractContextManager[int]:
        return locked(self.path.parent / f"{self.path.name}.lock", self._options.timeout_seconds)

    def _create(self) -> None:
        if self._stands():
            return
        self._initialize_unfinished()
        # A path without a HEAD has no mirror: a file, a link, or the rest of one that was being removed.
        self._replace_by_unfinished()

    @property
    def _unfinished(self) -> Path:
        return self.path.with_suffix(".new")

    def _initialize_unfinished(self) -> GitCommand:
        """Make an empty mirror beside the path of this one, and return the command that works in it."""
        with suppress(OSError):
            remove_folder(self._unfinished)
        self._unfinished.unlink(missing_ok=True)
        fresh = self._unfinished_command
        # Not `clone --mirror`: its setting remote.mirror forbids pushing refspecs. No template: no hooks.
        fresh.run("init", "--quiet", "--bare", "--template=", "--object-format=sha1", "--initial-branch=none")
        self._write_far_side(self._unfinished)
        return fresh

    def _recover(self) -> str:
        try:
            with locked(self.path / _LOCK, 0) as hold:
                self._sweep(hold)
                return self._write_far_side(self.path)
        except MirrorBusyError:
            return ""  # The holder of the lock is alive, and may use the files that look like debris.

    def _sweep(self, hold: int) -> None:
        debris = [file for pattern in _DEBRIS for file in self.path.glob(pattern)]
        refs = ((place, name) for place, _, names in walk(self.path / "refs") for name in names)
        debris += (Path(place, name) for place, name in refs if name.endswith(".lock"))
        for file in debris:
            if file.name != _LOCK:
                file.unlink(missing_ok=True)
        if self._may_have_leftovers():
            self._drop_leftovers(hold)

    def _may_have_leftovers(self) -> bool:
        # they are files nearly always, and a process that finds none is a part of every pass's time
        if not (self.path / "refs").is_dir() or (self.path / "reftable").exists():
            return True
        packed = self.path / "packed-refs"
        names = packed.read_bytes() if packed.exists() else b""
        loose = any(files for folder in _LEFTOVERS for _, _, files in walk(self.path / folder))
        return loose or any(f" {folder}/".encode() in names for folder in _LEFTOVERS)

    def _drop_leftovers(self, hold: int) -> None:
        left = self.command.run("for-each-ref", "--format=delete %(refname)", *_LEFTOVERS).output
        if left:
            self.command.run("update-ref", "--stdin", stdin=left, hold=hold)

    def _write_far_side(self, folder: Path) -> str:
        """Write the configuration for the git at the other end of a local remote, where it differs.

        Returns:
            The reason why the file was damaged; "" for one that only had other content of ours.
        """
        file, text = folder / FAR_SIDE, _far_side(self._url, self._options).encode()
        before = file.read_bytes() if file.exists() else b""
        if before != text or not file.exists():
            fresh = file.with_suffix(".new")
            fresh.write_bytes(text)
            fresh.rename(file)
        is_ours = not before or before.startswith(_FAR_SIDE_START)
        return "" if is_ours else f"{file} has unknown content"

    def stamp(self) -> Stamp | None:
        """Return when each place that refs are kept in was written last: the same stamp tells of the same refs.

        Whatever git does to a ref, it makes or renames a file for it. None where one was written just now: a file
        system may not tell that from what is written next.
        """
        places = [self.path / "packed-refs", self.path / "reftable"]
        places += (Path(folder) for folder, _, _ in walk(self.path / "refs" / "remotes"))
        found = tuple((str(place), place.stat().st_mtime_ns) for place in places if place.exists())
        newest = max((written for _, written in found), default=0)
        return found if newest < time.time_ns() - _COARSEST_NS else None

    def _count_loose(self) -> int:
        # Ids are spread evenly over 256 folders, so that a few of them give an estimate.
        sampled = sum(1 for folder in _SAMPLED_FOLDERS for _ in self.path.glob(f"objects/{folder}/*"))
        return sampled * 256 // len(_SAMPLED_FOLDERS)

    def _has_many_packs(self) -> bool:
        packs = sum(1 for _ in self.path.glob("objects/pack/*.pack"))
        refs = sum(len(folders) + len(names) for _, folders, names in walk(self.path / "refs" / "remotes"))
        return packs > _MOST_PACKS or refs > _MOST_REFS


def fetch_into(command: GitCommand, refspecs: Iterable[str], hold: int | None = None) -> None:
    """Fetch these refspecs of the remote with their whole history, forced and pruned. Raises GitError."""
    # Thousands of refspecs do not fit on a command line.
    lines = "".join(f"{refspec}\n" for refspec in refspecs).encode()
    command.run(
        "fetch", "--quiet", "--no-tags", "--prune", "--force", "--refmap=", "--no-write-fetch-head",
        "--no-auto-maintenance", "--no-recurse-submodules", "--no-show-forced-updates",
        "--stdin", "origin", stdin=lines, hold=hold,
    )  # fmt: skip


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Name what the file system refuses inside: CacheUnusableError."""
    try:
        yield
    except OSError as error:
        raise CacheUnusableError(f"{folder} cannot be written: {error.strerror or error}") from error


def mirror_name(url: GitUrl) -> str:
    """Return the folder name of a URL's mirror: a readable part, and a hash that is unique.

    All spellings of a remote URL share a mirror. Two local paths that differ only in `.git` may be two repositories.
    """
    known = url.text if url.local else url.identity
    readable = re.sub(r"[^A-Za-z0-9]+", "-", known.removesuffix(".git")).strip("-")[-60:].strip("-")
    return f"{readable}-{hashlib.sha256(known.encode(errors='surrogateescape')).hexdigest()[:16]}.git"


def _far_side(url: GitUrl, options: GitOptions) -> str:
    """Return what the git at the far side of a local remote is told besides the remote's own configuration.

    The hooks of a local repository run as us; one of another user is trusted only if the allow-list names it.
    """
    if not (url.local and options.allowed_urls):
        return ""
    quoted = url.text.replace("\\", "\\\\").replace('"', '\\"')
    return f'{_FAR_SIDE_START.decode()}directory = "{quoted}"\n\tdirectory = "{quoted}/.git"\n'
