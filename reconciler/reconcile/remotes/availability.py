"""Logs when a remote becomes unavailable and when it recovers, and exports the back-off of remotes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reconciler.git.errors import GitError
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.telemetry import metrics
from reconciler.telemetry.event_log import log

_KEY_CHARACTERS = 12


@dataclass(frozen=True)
class RemoteState:
    """The state of one remote after a pass.

    Attributes:
        url: The URL without credentials.
        address: The URL of the settings and of the config, which can contain credentials.
        kind: The use of the remote: `upstream`, `target` or `both`.
        error: The reason why the last fetch failed. None if it succeeded.
        failures: The number of failed fetches since the last success.
        wait_seconds: The time from the end of the pass to the next attempt. 0 if a pass does not wait.
        since: The start of the failures, in seconds of the monotonic clock. None if the last fetch succeeded.
        fetched_at: The time of the last successful fetch, in seconds of the monotonic clock. None if there was none.
        pushed_at: The time of the last push that changed the remote, likewise.
    """

    url: str
    address: str = field(repr=False)
    kind: str
    error: GitError | None = None
    failures: int = 0
    wait_seconds: float = 0.0
    since: float | None = None
    fetched_at: float | None = None
    pushed_at: float | None = None

    @property
    def key(self) -> str:
        """The key that identifies the remote in the API. It contains no part of the URL of the remote."""
        return compute_digest([self.url])[-_KEY_CHARACTERS:]


@dataclass
class RemoteTimes:
    """The times of the last successful fetch and push of each remote, in seconds of the monotonic clock, by URL.

    The service keeps this object when it reloads its settings.
    """

    fetches: dict[str, float] = field(default_factory=dict)
    pushes: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Outage:
    """An outage of one remote. The times are seconds of a monotonic clock."""

    started_at: float
    logged_wait_seconds: float


class RemoteAvailability:
    """The outages of all remotes of a daemon.

    The time until the next attempt grows during an outage. The first failure is logged. Later failures are logged only
    if this time has become longer since the last logged failure.

    Args:
        clock: Returns the seconds of a monotonic clock.
        should_log: Whether outages are logged. A command that runs one pass reports them as findings.
    """

    def __init__(self, clock: Callable[[], float], *, should_log: bool) -> None:
        self._clock = clock
        self._should_log = should_log
        self._outages: dict[str, _Outage] = {}
        self._waiting_labels: frozenset[str] = frozenset()

    def record_failure(self, url: str, error: GitError, wait_seconds: float) -> None:
        """Record that a remote could not be fetched. `wait_seconds` is the time until the next attempt."""
        outage = self._outages.get(url) or _Outage(self._clock(), 0.0)
        if wait_seconds > outage.logged_wait_seconds:
            outage = replace(outage, logged_wait_seconds=wait_seconds)
            if self._should_log:
                log.warning(
                    "remote_unavailable",
                    remote=url,
                    operation="fetch",
                    reason=error.code,
                    message=error.message,
                    next_step=error.next_step,
                    retry_seconds=round(wait_seconds, 3),
                )
        self._outages[url] = outage

    def record_success(self, url: str) -> None:
        """Record that a remote was fetched."""
        outage = self._outages.pop(url, None)
        if outage and self._should_log:
            log.info("remote_recovered", remote=url, unavailable_seconds=round(self._clock() - outage.started_at, 3))

    def export_backoff(self, waits: Iterable[tuple[str, float]]) -> None:
        """For each metric label, export the longest wait of the remotes with this label.

        All other labels have the value 0.

        Args:
            waits: The labels of remotes in back-off, with the remaining seconds.
        """
        longest: dict[str, float] = {}
        for label, seconds in waits:
            longest[label] = max(seconds, longest.get(label, 0.0))
        for label, seconds in {**dict.fromkeys(self._waiting_labels, 0.0), **longest}.items():
            metrics.REMOTE_BACKOFF.set(seconds, label)
        self._waiting_labels = frozenset(longest)
