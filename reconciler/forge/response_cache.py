"""Caches responses for conditional requests, and the approvals of unchanged pull requests."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable, Collection
from threading import Lock

from reconciler.catalog.files import CommitId
from reconciler.lazy_dataclasses import dataclass, replace

# Cache the approval of a pull request only if its last change is older than this number of seconds. Two changes can
# have the same date, because dates can have a resolution of one second. In addition, the clocks of machines can differ.
_MIN_AGE_SECONDS = 60


class ApprovalCache:
    """Caches for each pull request whether it is approved. `clock` returns seconds since 1970.

    A review changes the date of its pull request. However, two reviews within the same second result in the same date.
    Therefore, a result is cached only if the last change of the pull request is more than 60 seconds ago.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._approvals: dict[int, tuple[int, CommitId, bool]] = {}

    def is_approved(self, number: int, updated: int, commit: CommitId, fetch: Callable[[], bool]) -> bool:
        """Return whether the commit is approved. `fetch` is called only if the pull request has changed."""
        cached = self._approvals.get(number)
        if cached is not None and cached[:2] == (updated, commit):
            return cached[2]
        approved = fetch()
        if self._clock() - updated > _MIN_AGE_SECONDS:
            self._approvals[number] = (updated, commit, approved)
        return approved

    def discard(self, number: int) -> None:
        """Remove a pull request from the cache."""
        self._approvals.pop(number, None)

    def retain(self, numbers: Collection[int]) -> None:
        """Remove all pull requests from the cache except those in `numbers`, which are the open pull requests."""
        self._approvals = {number: approval for number, approval in self._approvals.items() if number in numbers}


_MAX_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class CachedResponse:
    """The content of a response, its ETag, and the URL of the next page of the list."""

    tag: str
    content: bytes
    following: str


class ResponseCache:
    """A thread-safe cache of responses with a size limit in bytes. It evicts the least recently used responses.

    The content is compressed. This is effective, because responses contain many similar URLs.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[str, CachedResponse] = OrderedDict()
        self._lock = Lock()

    def get(self, url: str) -> CachedResponse | None:
        """Return the cached response of a URL. Return None if the response is not in the cache."""
        with self._lock:
            entry = self._entries.get(url)
            if entry is None:
                return None
            self._entries.move_to_end(url)
        return replace(entry, content=zlib.decompress(entry.content))

    def store(self, url: str, response: CachedResponse) -> None:
        """Store a response. Evict the least recently used responses while the cache is too large."""
        entry = replace(response, content=zlib.compress(response.content, 1))
        with self._lock:
            self._evict(url)
            self._entries[url] = entry
            self._bytes += len(entry.content)
            while self._bytes > self._max_bytes:
                self._evict(next(iter(self._entries)))

    def _evict(self, url: str) -> None:
        if entry := self._entries.pop(url, None):
            self._bytes -= len(entry.content)
