"""The unpacked artifacts of the last calls, because many packages of one pass use the same artifact."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from reconciler.packages.artifacts import Artifact

Key = tuple[str, ...]


class RecentArtifacts:
    """A thread-safe cache. It deletes the least recently used artifacts if the files exceed `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[Key, tuple[int, Artifact]] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def get(self, key: Key) -> Artifact | None:
        """Return the artifact with a key. Return None if the cache does not contain it."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[1]

    def add(self, key: Key, artifact: Artifact) -> None:
        """Add an artifact. An artifact that is larger than the limit is not added."""
        size = artifact.files.byte_count
        if size > self._max_bytes:
            return
        with self._lock:
            self._size += size - self._entries.pop(key, (0, artifact))[0]
            self._entries[key] = (size, artifact)
            while self._size > self._max_bytes:
                self._size -= self._entries.popitem(last=False)[1][0]
