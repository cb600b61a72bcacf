"""Content of signed commits and tags, and packs that contain commits. This module starts no process."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Sequence

from reconciler.catalog.files import CommitId

Sign = Callable[[bytes], bytes]
"""Returns the armored signature of the content of an object."""

_COMMIT_TYPE = 1
_MAX_SIZE_IN_FIRST_BYTE = 0x0F
_MAX_SIZE_PER_BYTE = 0x7F


def replace_parents(content: bytes, parents: Sequence[CommitId]) -> bytes:
    """Return the content of a commit in which `parents` replaces the parents."""
    header, separator, message = content.partition(b"\n\n")
    tree, *lines = (line for line in header.split(b"\n") if not line.startswith(b"parent "))
    return b"\n".join([tree, *(f"parent {parent}".encode() for parent in parents), *lines]) + separator + message


def sign_commit(content: bytes, sign: Sign) -> bytes:
    """Return the content of a commit with its signature, in the same form as `git commit-tree -S`."""
    header, separator, message = content.partition(b"\n\n")
    signature = sign(content).rstrip(b"\n").replace(b"\n", b"\n ")
    return header + b"\ngpgsig " + signature + separator + message


def sign_tag(content: bytes, sign: Sign) -> bytes:
    """Return the content of an annotated tag with its signature, in the same form as `git tag -s`."""
    return content + sign(content)


def compute_commit_id(content: bytes) -> CommitId:
    """Return the object ID of a commit with this content."""
    data = b"commit %d\0%s" % (len(content), content)
    return CommitId(hashlib.sha1(data, usedforsecurity=False).hexdigest())


def build_commit_pack(contents: Sequence[bytes]) -> bytes:
    """Return a pack that contains commits with these contents. Equal commits occur once."""
    unique = [*dict.fromkeys(contents)]
    header = b"PACK" + (2).to_bytes(4, "big") + len(unique).to_bytes(4, "big")
    pack = header + b"".join(_build_entry(content) for content in unique)
    return pack + hashlib.sha1(pack, usedforsecurity=False).digest()


def _build_entry(content: bytes) -> bytes:
    # Format of Git packs: the first byte contains the object type and the lowest four bits of the size. Each following
    # byte contains the next seven bits of the size. The highest bit of a byte is set if another byte follows.
    size = len(content)
    entry = bytearray([_COMMIT_TYPE << 4 | size & _MAX_SIZE_IN_FIRST_BYTE])
    size >>= 4
    while size:
        entry[-1] |= _MAX_SIZE_PER_BYTE + 1
        entry.append(size & _MAX_SIZE_PER_BYTE)
        size >>= 7
    return bytes(entry) + zlib.compress(content, 1)
