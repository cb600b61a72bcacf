"""A package in a folder of this machine: read whole, and written where it differs, all of it or nothing."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from reconciler.gitio.errors import FolderChangedError, PathRefusedError
from reconciler.gitio.folder import read_folder
from reconciler.gitio.names import is_path
from reconciler.snapshot.files import File, FileTree

_ALL_READ = 0o444
_ALL_EXECUTE = 0o111


def read_package(folder: Path) -> FileTree:
    """Return the regular files of a package; links and whatever is called `.git` are left out.

    A file that cannot be read would look as if it were deleted: it raises GitError, as does a folder that is none.
    """
    content = read_folder(folder)
    for path, why in content.unreadable.items():
        raise PathRefusedError(f"{folder / path} must be readable: {why}")
    return content.files


def check_new_folder(folder: Path) -> None:
    """Raise PathRefusedError unless a new package may be written to the folder: it is absent or empty."""
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise PathRefusedError(f"{folder} must be absent or an empty folder")


def write_new_package(folder: Path, files: FileTree) -> None:
    """Write a package to a folder that is absent or empty; after a failure it is again as it was. Raises GitError."""
    check_new_folder(folder)
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        write_package(folder, FileTree(), files)
    except BaseException:
        for place in made:
            place.rmdir()
        raise


def write_package(folder: Path, before: FileTree, after: FileTree) -> None:
    """Make a folder that holds `before` hold `after`: what differs is replaced, file by file, nothing else is touched.

    Links are never followed, modes are kept. Whatever fails leaves all files as they were. Raises FolderChangedError
    when `before` is not what stands there any more, PathRefusedError, OSError.
    """
    changed = {path: file for path, file in after.items() if before.get(path) != file}
    gone = [path for path in before if path not in after]
    if not changed and not gone:
        return
    for path in (*changed, *gone):
        _check_path(folder, path, before, after)
    with tempfile.TemporaryDirectory(prefix=".reconciler-", dir=_place_beside(folder)) as stage, _undone() as undo:
        staged = {path: _stage(Path(stage) / f"new-{n}", folder / path, file)
                  for n, (path, file) in enumerate(changed.items())}  # fmt: skip
        for number, path in enumerate([*gone, *(path for path in changed if path in before)]):
            _check_content(folder / path, before[path])
            _take_away(folder / path, Path(stage) / f"old-{number}", undo, keep=path in changed)
        for path in gone:
            _remove_empty(folder, (folder / path).parent, undo)
        for path, new in staged.items():
            _put(new, folder / path, undo)


Undo = list[Callable[[], object]]


@contextmanager
def _undone() -> Iterator[Undo]:
    """Yield a list of steps back, which are gone if the block fails."""
    undo: Undo = []
    try:
        yield undo
    except BaseException:
        for step in reversed(undo):
            step()
        raise


def _check_path(folder: Path, path: str, before: FileTree, after: FileTree) -> None:
    if not is_path(path):
        raise PathRefusedError(f'"{path}" may not be written: it must be relative, and lead into no .git')
    place = folder
    for name in path.split("/")[:-1]:
        place /= name
        here = place.relative_to(folder).as_posix()
        if path in after and here in after:
            raise PathRefusedError(f"{place} must be a file and a folder at once: {path} is to be in it")
        if place.is_symlink() or (place.exists() and not place.is_dir() and here not in before):
            raise PathRefusedError(f"{place} must be a folder, not a link or another thing: {path} is to be in it")
    target = folder / path
    if path not in before and (target.is_symlink() or (target.exists() and not target.is_dir())):
        raise PathRefusedError(f"{target} is in the way: it must be removed, or be an ordinary file")


def _check_content(target: Path, expected: File) -> None:
    try:
        # the last component is no link: it was read as a regular file, and this refuses what it may have become
        descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            same = stat.S_ISREG(os.fstat(descriptor).st_mode) and stream.read() == expected.data
    except OSError:
        same = False
    if not same:
        raise FolderChangedError(f"{target} was changed while this ran; nothing is written")


def _place_beside(folder: Path) -> Path:
    # beside the package, so that not even a killed process leaves anything in it
    beside = folder.resolve().parent
    usable = os.access(beside, os.W_OK | os.X_OK) and beside.stat().st_dev == folder.stat().st_dev
    return beside if usable else folder


def _stage(staged: Path, target: Path, file: File) -> Path:
    mode = 0o777 if file.executable else 0o666
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(file.data)
        if target.is_file():
            os.fchmod(descriptor, _mode(target.stat().st_mode, file.executable))
    return staged


def _mode(old: int, executable: bool) -> int:
    bits = stat.S_IMODE(old)
    if executable == bool(bits & stat.S_IXUSR):
        return bits
    return bits | (bits & _ALL_READ) >> 2 if executable else bits & ~_ALL_EXECUTE


def _take_away(target: Path, saved: Path, undo: Undo, *, keep: bool) -> None:
    """Save a file for the way back; with `keep` it also stays until another one takes its place."""
    if keep:
        _link(target, saved)
    else:
        target.replace(saved)
    undo.append(lambda: saved.replace(target))


def _link(target: Path, saved: Path) -> None:
    try:
        os.link(target, saved, follow_symlinks=False)
    except OSError:
        # some file systems have no links: a copy serves as well
        descriptor = os.open(saved, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(target.read_bytes())
            os.fchmod(descriptor, stat.S_IMODE(target.stat().st_mode))


def _remove_empty(folder: Path, place: Path, undo: Undo) -> None:
    while place != folder and place.is_dir() and not any(place.iterdir()):
        mode = stat.S_IMODE(place.stat().st_mode)
        place.rmdir()
        undo += [partial(place.chmod, mode), place.mkdir]
        place = place.parent


def _put(new: Path, target: Path, undo: Undo) -> None:
    for place in reversed([parent for parent in target.parents if not parent.exists()]):
        place.mkdir()
        undo.append(place.rmdir)
    was_there = target.exists()
    new.replace(target)
    if not was_there:
        undo.append(target.unlink)
