"""What a forge answered, by address, so that it can be asked whether that still holds."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from dataclasses import dataclass, replace
from threading import Lock

_MOST_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class Remembered:
    """An answer with its ETag, as it came, and the address of the list's next page."""

    tag: str
    content: bytes
    following: str


class Memory:
    """Keeps the answers that were asked for last, up to so many bytes. Threads may share it.

    Answers are packed: most of what forges say about a pull request are addresses that repeat themselves.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[str, Remembered] = OrderedDict()
        self._lock = Lock()

    def get(self, address: str) -> Remembered | None:
        """Return what is remembered of an address."""
        with self._lock:
            known = self._kept.get(address)
            if known is None:
                return None
            self._kept.move_to_end(address)
        return replace(known, content=zlib.decompress(known.content))

    def keep(self, address: str, answer: Remembered) -> None:
        """Remember an answer in the place of an older one, and forget what was not asked for longest."""
        packed = replace(answer, content=zlib.compress(answer.content, 1))
        with self._lock:
            self._forget(address)
            self._kept[address] = packed
            self._bytes += len(packed.content)
            while self._bytes > self._most:
                self._forget(next(iter(self._kept)))

    def _forget(self, address: str) -> None:
        if gone := self._kept.pop(address, None):
            self._bytes -= len(gone.content)
