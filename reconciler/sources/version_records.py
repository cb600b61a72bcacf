"""Stored lists of versions, which are requested again only after some time.

While a repository cannot be reached, or has lost its versions, the last list is used, even if it is old.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from reconciler.krm.times import format_rfc3339
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.artifacts import SourceProblem
from reconciler.processes.backoff import CallBackoff, RecordedFailures
from reconciler.sources.artifact_cache import ArtifactCache
from reconciler.sources.connections import limit_duration
from reconciler.sources.errors import SourceError

Record = Mapping[str, Any]


@dataclass(frozen=True)
class CurrentRecord:
    """A record, and the reason why it is not up to date. The reason is None if the record is up to date."""

    data: Record
    problem: SourceProblem | None = None


class VersionRecords:
    """Stored lists of versions. The object is thread-safe. Two threads never request the same list at the same time.

    Args:
        poll_seconds: The time after a successful request until the next request of the same list.
        timeout_seconds: The time limit of the requests for one record.
        clock: Returns the seconds since 1970.
        is_offline: If true, a stored list is used without a new request.
    """

    def __init__(
        self,
        cache: ArtifactCache,
        backoff: CallBackoff,
        poll_seconds: float,
        timeout_seconds: float,
        clock: Callable[[], float],
        *,
        is_offline: bool,
    ) -> None:
        self._cache = cache
        self._poll_seconds = poll_seconds
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._is_offline = is_offline
        self._locks: dict[str, Lock] = {}
        self._records: dict[str, Record] = {}
        self._failures: RecordedFailures[SourceProblem] = RecordedFailures(backoff)

    def read(self, key: str, request: Callable[[Record], Record], *, is_permanent: bool = False) -> CurrentRecord:
        """Return a record. If its poll interval has passed, request the record again first.

        Args:
            key: Identifies the record: the URL and the credentials of its repository.
            request: Returns the new record. Its argument is the old record, or {}.
            is_permanent: Whether a stored record is never requested again.

        Raises:
            SourceError: The request fails, and there is no earlier record.
        """
        with self._locks.setdefault(key, Lock()):
            old = self._load(key)
            if ("checked" in old and is_permanent) or not self._is_due(old):
                return CurrentRecord(old)
            try:
                new = self._request(key, request, old)
            except SourceError as error:
                if "checked" not in old:
                    raise
                return CurrentRecord(old, _add_time(error, old))
            self._records[key] = new
            self._cache.store_record(key, new)
            return CurrentRecord(new)

    def update(self, key: str, change: Callable[[Record], Record]) -> None:
        """Replace a record by the result of `change`."""
        with self._locks.setdefault(key, Lock()):
            self._records[key] = change(self._load(key))
            self._cache.store_record(key, self._records[key])

    def _load(self, key: str) -> Record:
        if key not in self._records:
            self._records[key] = self._cache.read_record(key)
        return self._records[key]

    def _is_due(self, record: Record) -> bool:
        checked = record.get("checked")
        if checked is None:
            return True
        age = self._clock() - float(checked)
        # A negative age means that the clock was set back.
        return not self._is_offline and not 0 <= age < self._poll_seconds

    def _request(self, key: str, request: Callable[[Record], Record], old: Record) -> Record:
        if problem := self._failures.find(key):
            raise SourceError.from_problem(problem)
        try:
            with limit_duration(self._timeout_seconds):
                new = request(old)
        except SourceError as error:
            self._failures.add(key, error.problem)
            raise
        self._failures.remove(key)
        return {**new, "checked": int(self._clock())}


def _add_time(error: SourceError, record: Record) -> SourceProblem:
    # Write the time of the record and not its age, so that the message is the same in each pass.
    time = format_rfc3339(int(record["checked"]))
    return replace(
        error.problem, message=f"{error.message}. The list of versions from {time} is used until the problem is solved"
    )
