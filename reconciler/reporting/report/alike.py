"""Alike: texts that differ from cluster to cluster by the cluster's own names alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.snapshot.files import File, FileTree

# private to whoever uses them, and so in no name
_CLUSTER, _OWNER, _PACKAGE = "\ue000", "\ue001", "\ue002"


@dataclass(frozen=True)
class Own:
    """Names that are a place's own: the cluster's, that of whoever owns the package, and the package's if it counts.

    Two texts that `apart` makes equal are the same text, but for these names.
    """

    cluster: str
    owner: str = ""
    package: str = ""

    def apart(self, text: str) -> str:
        """Return a text with its own names taken out."""
        if any(mark in text for mark in (_CLUSTER, _OWNER, _PACKAGE)):
            # like no other's: elsewhere no letter stands right behind a mark
            return f"{_CLUSTER}{self.cluster}{_CLUSTER}{text}"
        marks = {self.package: _PACKAGE, self.owner: _OWNER, self.cluster: _CLUSTER}
        # the longest first, for the others may be a part of it
        for name in sorted(filter(None, marks), key=len, reverse=True):
            text = _replaced(text, name, marks[name])
        return text

    def files_apart(self, files: FileTree) -> FileTree:
        """Return files with their own names taken out; paths, and what is no text, stay."""
        return FileTree({path: File(self._bytes(one.data), one.executable) for path, one in files.items()})

    def _bytes(self, data: bytes) -> bytes:
        try:
            return self.apart(data.decode()).encode()
        except UnicodeDecodeError:
            return data


def _replaced(text: str, name: str, mark: str) -> str:
    """Return a text with a mark for each whole name, which is one between what is no letter and no digit."""
    # a pattern for each of ten thousand owners would take longer than all else
    return "".join(_pieces(text, name, mark)) if name in text else text


def _pieces(text: str, name: str, mark: str) -> Iterator[str]:
    start, at = 0, text.find(name)
    while at >= 0:
        end = at + len(name)
        if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
            yield text[start:at]
            yield mark
            start = end
        at = text.find(name, end)
    yield text[start:]
