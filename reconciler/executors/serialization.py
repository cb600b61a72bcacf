"""Serialization of jobs and results. Package contents that the receiver already has are omitted.

Serialized jobs contain Git tree IDs instead of file trees. Therefore, a tree that several jobs use is sent only once.
Serialized results contain blob IDs instead of files that the render did not change.

The format is pickle, and unpickling can run code. Therefore, the bytes are sent only through authenticated channels:
pipes to processes that this process started, and Dask TLS connections with certificates on both sides. The settings
reject all other addresses.
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
        # Use `reducer_override` because it is faster than `persistent_id`. The pickler calls `persistent_id` for every
        # value, but skips `reducer_override` for strings, numbers, lists and dicts.
        name = self._name_of(obj) if obj.__class__ is self._kind else None
        return NotImplemented if name is None else (_resolve_reference, (name,))


_resolver: ContextVar[Callable[[Any], object]] = ContextVar("resolver")


def _resolve_reference(name: object) -> object:
    return _resolver.get()(name)


def _unpack(data: bytes, resolve: Callable[[Any], object]) -> Any:
    token = _resolver.set(resolve)
    try:
        return pickle.loads(data)  # noqa: S301  # nosec B301
    finally:
        _resolver.reset(token)


def pack_without_trees(value: object) -> tuple[bytes, dict[TreeId, FileTree]]:
    """Serialize a value with tree IDs instead of file trees. Return the bytes, and the omitted trees by ID."""
    trees: dict[TreeId, FileTree] = {}

    def name(tree: FileTree) -> TreeId:
        trees[tree.id] = tree
        return tree.id

    return _pack(value, FileTree, name), trees


def unpack_with_trees(data: bytes, trees: Trees) -> Any:
    """Deserialize the result of `pack_without_trees`. The caller must pass only bytes that this program created."""
    return _unpack(data, trees.__getitem__)


def pack_without_files(value: object, receiver_keys: Collection[FileKey]) -> bytes:
    """Serialize a value, but write only the key of a file that the receiver already has.

    `receiver_keys` contains the keys of the files that the receiver has.
    """

    def name(file: File) -> FileKey | None:
        key = (file.id, file.executable)
        return key if key in receiver_keys else None

    return _pack(value, File, name)


def unpack_with_files(data: bytes, files: Mapping[FileKey, File]) -> Any:
    """Deserialize the result of `pack_without_files`. `files` contains the files that were replaced by keys."""
    return _unpack(data, files.__getitem__)


def index_files(trees: Sequence[FileTree]) -> dict[FileKey, File]:
    """Return all files of the trees by key. The key contains the blob ID, and whether the file is executable."""
    return {(file.id, file.executable): file for tree in trees for file in tree.values()}


def pack_trees(trees: Trees) -> bytes:
    """Serialize file trees with the contents of their files."""
    contents = {
        tree_id: (
            {path: (file.data, file.executable) for path, file in tree.items()},
            {path: (entry.mode, entry.id) for path, entry in tree.special_entries.items()},
        )
        for tree_id, tree in trees.items()
    }
    return pickle.dumps(contents, protocol=pickle.HIGHEST_PROTOCOL)


def unpack_trees(data: bytes) -> dict[TreeId, FileTree]:
    """Deserialize the result of `pack_trees`."""
    return {
        tree_id: FileTree(
            {path: File(content, executable) for path, (content, executable) in files.items()},
            {path: SpecialEntry(mode, object_id) for path, (mode, object_id) in special.items()},
        )
        for tree_id, (files, special) in pickle.loads(data).items()  # noqa: S301  # nosec B301
    }


def _pack(value: object, kind: type, name: Callable[[Any], object | None]) -> bytes:
    stream = BytesIO()
    _Packer(stream, kind, name).dump(value)
    return stream.getvalue()
