"""Git's object ids as types, and as pure functions of content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NewType

ObjectId = NewType("ObjectId", str)
CommitId = NewType("CommitId", str)
TreeId = NewType("TreeId", str)
BlobId = NewType("BlobId", str)

EMPTY_TREE = TreeId("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
DIRECTORY = "40000"
FILE = "100644"
EXECUTABLE = "100755"
LINK = "120000"
# 2000-01-01: the date of what has none of its own (git.md, determinism)
UNDATED_SECONDS = 946_684_800
SUBMODULE = "160000"


def _object_id(kind: bytes, content: bytes) -> str:
    # SHA-1 is what Git names objects by; nothing here relies on it against an attacker
    return hashlib.sha1(kind + b" %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def blob_id(data: bytes) -> BlobId:
    """Return the id that Git gives a file of this content."""
    return BlobId(_object_id(b"blob", data))


def tree_id(entries: Iterable[tuple[str, str, str]]) -> TreeId:
    """Return the id of a tree of (mode, name, object id) entries, in any order.

    Git sorts names as bytes, directories as if they ended in "/".
    """

    def order(entry: tuple[str, str, str]) -> bytes:
        mode, name, _ = entry
        return _encoded(name) + (b"/" if mode == DIRECTORY else b"")

    content = b"".join(
        _encoded(f"{mode} {name}") + b"\0" + bytes.fromhex(object_id)
        for mode, name, object_id in sorted(entries, key=order)
    )
    return TreeId(_object_id(b"tree", content))


def _encoded(name: str) -> bytes:
    # what is no UTF-8 is carried along as it is
    return name.encode(errors="surrogateescape")
