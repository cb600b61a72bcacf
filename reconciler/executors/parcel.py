"""Parcels: jobs and results as bytes, with the contents of packages left out that the other side has.

File trees go by their Git ids, and so each content is sent once. In results it is files: what a render leaves as it
was is not sent back.

The bytes are pickles. Unpickling can run code, therefore they travel over authenticated channels only: pipes between
processes that this one started, and Dask's TLS with certificates of both sides. The settings refuse any other address.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from io import BytesIO
from typing import Any

from reconciler.snapshot.files import File, FileTree, SpecialEntry
from reconciler.snapshot.objects import BlobId, TreeId

Trees = Mapping[TreeId, FileTree]
FileKey = tuple[BlobId, bool]


class _Packer(pickle.Pickler):
    def __init__(self, stream: BytesIO, kind: type, name: Callable[[Any], object | None]) -> None:
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)
        self._kind = kind
        self._name = name

    def reducer_override(self, obj: object) -> Any:
        # asked for objects that are no plain values only, which makes it cheaper than `persistent_id`
        name = self._name(obj) if obj.__class__ is self._kind else None
        return NotImplemented if name is None else (_found, (name,))


_finding: ContextVar[Callable[[Any], object]] = ContextVar("finding")


def _found(name: object) -> object:
    return _finding.get()(name)


def _unpacked(data: bytes, find: Callable[[Any], object]) -> Any:
    before = _finding.set(find)
    try:
        return pickle.loads(data)  # authenticated channels only  # noqa: S301  # nosec B301
    finally:
        _finding.reset(before)


def pack_by_trees(value: object) -> tuple[bytes, dict[TreeId, FileTree]]:
    """Return a value as bytes in which file trees are named, and these trees by their names."""
    trees: dict[TreeId, FileTree] = {}

    def name(one: FileTree) -> TreeId:
        trees[one.id] = one
        return one.id

    return _packed(value, FileTree, name), trees


def unpack_by_trees(data: bytes, trees: Trees) -> Any:
    """Return the value of such bytes; it is trusted, for only our own processes make it."""
    return _unpacked(data, trees.__getitem__)


def pack_by_files(value: object, known: Collection[FileKey]) -> bytes:
    """Return a value as bytes in which the files that the other side has are named."""

    def name(one: File) -> FileKey | None:
        key = (one.id, one.executable)
        return key if key in known else None

    return _packed(value, File, name)


def unpack_by_files(data: bytes, known: Mapping[FileKey, File]) -> Any:
    """Return the value of such bytes."""
    return _unpacked(data, known.__getitem__)


def files_of(trees: Sequence[FileTree]) -> dict[FileKey, File]:
    """Return the files of trees, by what they are named by."""
    return {(file.id, file.executable): file for tree in trees for file in tree.values()}


def pack_trees(trees: Trees) -> bytes:
    """Return trees as bytes, contents and all."""
    plain = {
        tree: (
            {path: (file.data, file.executable) for path, file in files.items()},
            {path: (one.mode, one.id) for path, one in files.special.items()},
        )
        for tree, files in trees.items()
    }
    return pickle.dumps(plain, protocol=pickle.HIGHEST_PROTOCOL)


def unpack_trees(data: bytes) -> dict[TreeId, FileTree]:
    """Return the trees of such bytes."""
    return {
        tree: FileTree(
            {path: File(content, executable) for path, (content, executable) in files.items()},
            {path: SpecialEntry(mode, one) for path, (mode, one) in special.items()},
        )
        for tree, (files, special) in pickle.loads(data).items()  # authenticated channels only  # noqa: S301  # nosec B301
    }


def _packed(value: object, kind: type, name: Callable[[Any], object | None]) -> bytes:
    stream = BytesIO()
    _Packer(stream, kind, name).dump(value)
    return stream.getvalue()
