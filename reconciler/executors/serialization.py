"""Serialization of jobs and results to bytes, without package contents that the receiver already has.

In jobs, the Git tree id stands for a file tree, so that each tree is sent once. In results, the blob id stands for a
file, so that files that a render does not change are not sent back.

The format is pickle. Unpickling can run code. Therefore the bytes use authenticated channels only: pipes to processes
that this process started, and Dask TLS connections with certificates on both sides. The settings reject other
addresses.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from io import BytesIO
from typing import Any

from reconciler.catalog.files import BlobId, File, FileTree, SpecialEntry, TreeId

Trees = Mapping[TreeId, FileTree]
FileKey = tuple[BlobId, bool]


class _Packer(pickle.Pickler):
    def __init__(self, stream: BytesIO, kind: type, name_of: Callable[[Any], object | None]) -> None:
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)
        self._kind = kind
        self._name_of = name_of

    def reducer_override(self, obj: object) -> Any:
        # The pickler calls this method only for objects that are not plain values. That is cheaper than
        # `persistent_id`, which it calls for every object.
        name = self._name_of(obj) if obj.__class__ is self._kind else None
        return NotImplemented if name is None else (_resolve_reference, (name,))


_resolver: ContextVar[Callable[[Any], object]] = ContextVar("resolver")


def _resolve_reference(name: object) -> object:
    return _resolver.get()(name)


def _unpack(data: bytes, resolve: Callable[[Any], object]) -> Any:
    token = _resolver.set(resolve)
    try:
        return pickle.loads(data)  # authenticated channels only  # noqa: S301  # nosec B301
    finally:
        _resolver.reset(token)


def pack_without_trees(value: object) -> tuple[bytes, dict[TreeId, FileTree]]:
    """Serialize a value. File trees are replaced by their ids; return the bytes and the replaced trees by id."""
    trees: dict[TreeId, FileTree] = {}

    def name(tree: FileTree) -> TreeId:
        trees[tree.id] = tree
        return tree.id

    return _pack(value, FileTree, name), trees


def unpack_with_trees(data: bytes, trees: Trees) -> Any:
    """Deserialize a value of `pack_without_trees`. The bytes are trusted, because only this program creates them."""
    return _unpack(data, trees.__getitem__)


def pack_without_files(value: object, receiver_keys: Collection[FileKey]) -> bytes:
    """Serialize a value. Files that the receiver has (`receiver_keys`) are replaced by their keys."""

    def name(file: File) -> FileKey | None:
        key = (file.id, file.executable)
        return key if key in receiver_keys else None

    return _pack(value, File, name)


def unpack_with_files(data: bytes, files: Mapping[FileKey, File]) -> Any:
    """Deserialize a value of `pack_without_files`."""
    return _unpack(data, files.__getitem__)


def index_files(trees: Sequence[FileTree]) -> dict[FileKey, File]:
    """Return all files of the trees by blob id and executable bit."""
    return {(file.id, file.executable): file for tree in trees for file in tree.values()}


def pack_trees(trees: Trees) -> bytes:
    """Serialize trees with their contents."""
    contents = {
        tree_id: (
            {path: (file.data, file.executable) for path, file in tree.items()},
            {path: (entry.mode, entry.id) for path, entry in tree.special_entries.items()},
        )
        for tree_id, tree in trees.items()
    }
    return pickle.dumps(contents, protocol=pickle.HIGHEST_PROTOCOL)


def unpack_trees(data: bytes) -> dict[TreeId, FileTree]:
    """Deserialize the trees of `pack_trees`."""
    return {
        tree_id: FileTree(
            {path: File(content, executable) for path, (content, executable) in files.items()},
            {path: SpecialEntry(mode, object_id) for path, (mode, object_id) in special.items()},
        )
        for tree_id, (files, special) in pickle.loads(data).items()  # authenticated channels only  # noqa: S301  # nosec B301
    }


def _pack(value: object, kind: type, name: Callable[[Any], object | None]) -> bytes:
    stream = BytesIO()
    _Packer(stream, kind, name).dump(value)
    return stream.getvalue()
