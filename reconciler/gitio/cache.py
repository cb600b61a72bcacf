"""Mirrors on disk: making one, locking it, clearing away what a killed process left, and throwing it away."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from reconciler.gitio.command import FAR_SIDE, GitCommand
from reconciler.gitio.errors import CacheUnusableError, GitError, MirrorBusyError
from reconciler.gitio.lock import locked
from reconciler.gitio.options import GitOptions
from reconciler.gitio.url import GitUrl

# file systems write times down to two seconds, the coarsest of them
_COARSEST_NS = 2_000_000_000
_LOCK = "reconciler.lock"
_DEBRIS = ("*.lock", "refs/**/*.lock", "objects/*/tmp_*", "objects/pack/.tmp-*", "fast_import_crash_*")
_LEFTOVERS = ("refs/out", "refs/reconciler-tmp")
_MOST_PACKS = 50
_MOST_LOOSE = 20_000


Stamp = tuple[tuple[str, int], ...]
"""Paths of a mirror, each with when it was written, in nanoseconds since 1970."""


class MirrorFolder:
    """One mirror's folder below the cache. `path` and `command` are for those who work in it."""

    def __init__(self, cache_folder: Path, url: GitUrl, options: GitOptions) -> None:
        self.path = cache_folder.absolute() / mirror_name(url)
        self.command = GitCommand(self.path, url, options)
        self._url = url
        self._options = options

    def prepare(self) -> None:
        """Make the folder if it is not there yet, and clear it if nobody is at work in it."""
        if not self._stands():
            with writing(self.path.parent):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self._lock_place():
                    self._create()
        self._recover()

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
        """Put many packs into one, and drop what nothing has named for two weeks; True if there was a need."""
        with self.lock() as hold:
            if not self._is_untidy():
                return False
            # --force is about a gc.pid that a killed process left: the lock is ours
            self.command.run("gc", "--quiet", "--force", "--prune=2.weeks.ago", hold=hold)
        return True

    def discard(self) -> None:
        """Remove the folder."""
        with writing(self.path), self._lock_place(), self.lock():
            old = self.path.with_suffix(".old")
            shutil.rmtree(old, ignore_errors=True)
            self.path.rename(old)
            shutil.rmtree(old)

    def _stands(self) -> bool:
        return (self.path / "HEAD").exists()

    def _lock_place(self) -> AbstractContextManager[int]:
        return locked(self.path.parent / f"{self.path.name}.lock", self._options.timeout_seconds)

    def _create(self) -> None:
        if self._stands():
            return
        unfinished = self.path.with_suffix(".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        maker = GitCommand(unfinished, self._url, self._options)
        # not clone --mirror: its remote.mirror setting forbids pushing refspecs (finding 24); no template, no hooks
        maker.run("init", "--quiet", "--bare", "--template=", "--object-format=sha1", "--initial-branch=none")
        # without its HEAD, what stands there is the rest of a mirror
        shutil.rmtree(self.path, ignore_errors=True)
        unfinished.rename(self.path)

    def _recover(self) -> None:
        try:
            with locked(self.path / _LOCK, 0) as hold:
                self._sweep(hold)
                self._tell_far_side()
        except MirrorBusyError:
            return  # whoever holds the lock is alive, and what looks like debris may be in use

    def _sweep(self, hold: int) -> None:
        for file in (file for pattern in _DEBRIS for file in self.path.glob(pattern)):
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
        loose = (file for folder in _LEFTOVERS for file in (self.path / folder).rglob("*"))
        return any(f" {folder}/".encode() in names for folder in _LEFTOVERS) or any(map(Path.is_file, loose))

    def _drop_leftovers(self, hold: int) -> None:
        left = self.command.run("for-each-ref", "--format=delete %(refname)", *_LEFTOVERS).output
        if left:
            self.command.run("update-ref", "--stdin", stdin=left, hold=hold)

    def _tell_far_side(self) -> None:
        file, text = self.path / FAR_SIDE, _far_side(self._url, self._options)
        if not file.exists() or file.read_text() != text:
            fresh = file.with_suffix(".new")
            fresh.write_text(text)
            fresh.rename(file)

    def stamp(self) -> Stamp | None:
        """Return when each place that refs are kept in was written last: the same stamp tells of the same refs.

        Whatever git does to a ref, it makes or renames a file for it. None where one was written just now: a file
        system may not tell that from what is written next.
        """
        places = [self.path / "packed-refs", self.path / "reftable"]
        places += (Path(folder) for folder, _, _ in os.walk(self.path / "refs" / "remotes"))
        found = tuple((str(place), place.stat().st_mtime_ns) for place in places if place.exists())
        newest = max((written for _, written in found), default=0)
        return found if newest < time.time_ns() - _COARSEST_NS else None

    def _is_untidy(self) -> bool:
        packs = sum(1 for _ in self.path.glob("objects/pack/*.pack"))
        # ids are spread evenly, so one of the 256 folders tells of all
        loose = sum(1 for _ in self.path.glob("objects/17/*")) * 256
        refs = sum(1 for _ in self.path.glob("refs/remotes/**/*"))
        return packs > _MOST_PACKS or loose > _MOST_LOOSE or refs > _MOST_LOOSE


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Name what the file system refuses inside: CacheUnusableError."""
    try:
        yield
    except OSError as error:
        raise CacheUnusableError(f"{folder} cannot be written: {error.strerror or error}") from error


def mirror_name(url: GitUrl) -> str:
    """Return the folder name of an address's mirror: something to recognise it by, and a hash to tell it apart."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", url.text.removesuffix(".git")).strip("-")[-60:].strip("-")
    return f"{readable}-{hashlib.sha256(url.text.encode(errors='surrogateescape')).hexdigest()[:16]}.git"


def _far_side(url: GitUrl, options: GitOptions) -> str:
    """Return what the git at the far side of a local remote is told besides the remote's own configuration.

    The hooks of a local repository run as us; one of another user is trusted only if the allow-list names it.
    """
    if not (url.local and options.allowed_urls):
        return ""
    quoted = url.text.replace("\\", "\\\\").replace('"', '\\"')
    return f'[safe]\n\tdirectory = "{quoted}"\n\tdirectory = "{quoted}/.git"\n'
