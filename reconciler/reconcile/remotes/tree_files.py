"""Functions that read the files of a Git tree. They cache nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from posixpath import basename

from reconciler.catalog.files import (
    EXECUTABLE_MODE,
    REGULAR_FILE_MODES,
    SUBMODULE_MODE,
    SYMLINK_MODE,
    BlobId,
    File,
    FileTree,
    ObjectId,
    SpecialEntry,
    TreeId,
)
from reconciler.git.errors import TooLargeError, TreeMalformedError
from reconciler.git.object_reader import ObjectReader
from reconciler.packages.kptfile import KPTFILE


def read_file(reader: ObjectReader, blob: BlobId) -> File:
    """Return the content of a blob as a file that is not executable."""
    return File(reader.read_blob(blob))


def read_files(reader: ObjectReader, tree: TreeId) -> FileTree:
    """Return the regular files of a tree, without symbolic links and submodules."""
    entries = [(path, mode, blob) for path, mode, blob in reader.walk(tree) if mode in REGULAR_FILE_MODES]
    contents = reader.read_blobs(blob for _, _, blob in entries)
    return FileTree({path: File(contents[blob], mode == EXECUTABLE_MODE) for path, mode, blob in entries})


def read_upstream_tree(
    reader: ObjectReader, max_entries: int, read_regular_files: Callable[[TreeId], FileTree], tree: TreeId
) -> FileTree:
    """Return the regular files of an upstream package. Raises TooLargeError if the package has too many files."""
    # Check the limit before any file content is read.
    deque(reader.walk(tree, max_entries=max_entries), maxlen=0)
    return read_regular_files(tree)


def read_package_tree(
    reader: ObjectReader, max_entries: int, read_regular_files: Callable[[TreeId], FileTree], tree: TreeId
) -> FileTree:
    """Return the content of a tree of a target branch: regular files, symbolic links and submodules."""
    special = {
        path: SpecialEntry(mode, ObjectId(entry))
        for path, mode, entry in reader.walk(tree, max_entries=max_entries)
        if mode in {SYMLINK_MODE, SUBMODULE_MODE}
    }
    return read_regular_files(tree).with_special_entries(special)


def list_skipped_entries(reader: ObjectReader, max_entries: int, tree: TreeId) -> tuple[str, ...]:
    """Return the paths of symbolic links and submodules below a tree. Packages do not contain such entries."""
    try:
        entries = reader.walk(tree, max_entries=max_entries)
        return tuple(sorted(path for path, mode, _ in entries if mode not in REGULAR_FILE_MODES))
    except (TooLargeError, TreeMalformedError):
        # Ignore the error here, because the code that reads the files of the tree reports it.
        return ()


def read_kptfiles(reader: ObjectReader, max_entries: int, tree: TreeId) -> tuple[bytes, ...]:
    """Return the contents of all Kptfiles below a tree. Return () if the tree exceeds a limit."""
    try:
        entries = reader.walk(tree, max_entries=max_entries)
        blobs = [blob for path, mode, blob in entries if basename(path) == KPTFILE and mode in REGULAR_FILE_MODES]
    except (TooLargeError, TreeMalformedError):
        # Ignore the error here, because the code that reads the files of the tree reports it.
        return ()
    return tuple(reader.read_blobs(blobs).values())
