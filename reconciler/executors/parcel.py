"""Parcels: jobs and results as bytes, with the contents of packages left out that the other side has.

File trees go by their Git ids, and so each content is sent once. In results it is files: what a render leaves as it
was is not sent back.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Mapping, Sequence
from io import BytesIO
from typing import Any

from reconciler.snapshot.files import File, FileTree
from reconciler.snapshot.objects import BlobId, TreeId

Trees = Mapping[TreeId, FileTree]
FileKey = tuple[BlobId, bool]


class _Packer(pickle.Pickler):
    def __init__(self, stream: BytesIO, name: Callable[[object], object | None]) -> None:
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)
        self._name = name

    def persistent_id(self, obj: object) -> object | None:
        return self._name(obj)


class _Unpacker(pickle.Unpickler):
    def __init__(self, data: bytes, find: Callable[[Any], object]) -> None:
        super().__init__(BytesIO(data))
        self._find = find

    def persistent_load(self, pid: Any) -> object:
        return self._find(pid)


def pack_by_trees(value: object) -> tuple[bytes, dict[TreeId, FileTree]]:
    """Return a value as bytes in which file trees are named, and these trees by their names."""
    trees: dict[TreeId, FileTree] = {}

    def name(one: object) -> object | None:
        if not isinstance(one, FileTree):
            return None
        trees[one.id] = one
        return one.id

    return _packed(value, name), trees


def unpack_by_trees(data: bytes, trees: Trees) -> Any:
    """Return the value of such bytes; it is trusted, for only our own processes make it."""
    return _Unpacker(data, trees.__getitem__).load()


def pack_by_files(value: object, known: Collection[FileKey]) -> bytes:
    """Return a value as bytes in which the files that the other side has are named."""

    def name(one: object) -> object | None:
        if isinstance(one, File) and (key := (one.id, one.executable)) in known:
            return key
        return None

    return _packed(value, name)


def unpack_by_files(data: bytes, known: Mapping[FileKey, File]) -> Any:
    """Return the value of such bytes."""
    return _Unpacker(data, known.__getitem__).load()


def files_of(trees: Sequence[FileTree]) -> dict[FileKey, File]:
    """Return the files of trees, by what they are named by."""
    return {(file.id, file.executable): file for tree in trees for file in tree.values()}


def pack_trees(trees: Trees) -> bytes:
    """Return trees as bytes, contents and all."""
    plain = {
        tree: {path: (file.data, file.executable) for path, file in files.items()} for tree, files in trees.items()
    }
    return pickle.dumps(plain, protocol=pickle.HIGHEST_PROTOCOL)


def unpack_trees(data: bytes) -> dict[TreeId, FileTree]:
    """Return the trees of such bytes."""
    return {
        tree: FileTree({path: File(content, executable) for path, (content, executable) in files.items()})
        for tree, files in pickle.loads(data).items()  # noqa: S301 - only our own processes make it
    }


def _packed(value: object, name: Callable[[object], object | None]) -> bytes:
    stream = BytesIO()
    _Packer(stream, name).dump(value)
    return stream.getvalue()
