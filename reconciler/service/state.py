"""The current state of the service. The main thread changes it, and other threads read it without a lock."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from reconciler.lazy_dataclasses import dataclass
from reconciler.service.fleet_view import Failure, FleetView, PassRecord
from reconciler.telemetry.progress import Progress, progress

_DURATIONS_KEPT_SECONDS = 3_600.0
_MAX_RECENT_PASSES = 20


@dataclass(frozen=True)
class HealthLimits:
    """The times after which health checks fail, in seconds.

    Attributes:
        stuck_after_seconds: The time without progress after which the process is stuck.
        stale_after_seconds: The time without a completed pass after which the last pass is too old. `polls_seconds` can
            make this time longer.
        polls_seconds: The time of several polls. The last pass is not too old before this time plus the duration of the
            longest pass of the last hour. 0 disables this rule.
        unavailable_after_seconds: The time without success after which a remote or forge is unavailable.
        failing_passes: The number of consecutive failed passes.
    """

    stuck_after_seconds: float = 600.0
    stale_after_seconds: float = 300.0
    polls_seconds: float = 180.0
    unavailable_after_seconds: float = 900.0
    failing_passes: int = 3


@dataclass(frozen=True)
class FailedPasses:
    """Consecutive failed passes. `has_read_config` is False if the last of them could not read the config."""

    first: Failure
    count: int
    has_read_config: bool


class ServiceState:
    """The current state of the service.

    Attributes:
        shard: The shard of this process, for example 2/3.
        is_read_only: Whether this process is a standby, which pushes nothing.
        view: The fleet after the last completed pass. None if this process has not completed a pass.
        failed_passes: The failed passes since the last completed pass. None if the last pass is completed.
        settings_failure: The reason why the last reload of the settings was refused.
        stopping_since: The time of the signal that stops the service.
        pass_durations: The end and the duration of each pass of the last hour.
        recent_passes: The last passes, the newest first.
        find_secrets_failure: Returns the reason why the webhook secrets cannot be read, if there is one.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, activity: Progress = progress) -> None:
        self.clock = clock
        self.progress = activity
        self.started_at = clock()
        self.limits = HealthLimits()
        self.shard = "1/1"
        self.is_read_only = False
        self.view: FleetView | None = None
        self.failed_passes: FailedPasses | None = None
        self.settings_failure: Failure | None = None
        self.stopping_since: float | None = None
        self.pass_durations: tuple[tuple[float, float], ...] = ()
        self.recent_passes: tuple[PassRecord, ...] = ()
        self.find_secrets_failure: Callable[[], Failure | None] = lambda: None

    def stop(self) -> None:
        """Record that the service has received a signal to stop."""
        if self.stopping_since is None:
            self.stopping_since = self.clock()

    def record_completed_pass(self, view: FleetView) -> None:
        """Publish the fleet after a completed pass."""
        now = view.completed_at
        self.pass_durations = (*self._list_recent(now), (now, view.last_pass.duration_seconds))
        self.failed_passes = None
        self.view = view

    def add_pass(self, record: PassRecord) -> None:
        """Add a pass to the last passes."""
        self.recent_passes = (record, *self.recent_passes[: _MAX_RECENT_PASSES - 1])

    def find_longest_pass(self) -> float:
        """Return the duration of the longest pass of the last hour, in seconds. Return 0 if there is none."""
        return max((seconds for _, seconds in self._list_recent(self.clock())), default=0.0)

    def _list_recent(self, now: float) -> list[tuple[float, float]]:
        return [(end, seconds) for end, seconds in self.pass_durations if now - end < _DURATIONS_KEPT_SECONDS]

    def record_failed_pass(self, message: str, *, has_read_config: bool) -> None:
        """Record a pass that ended with the result `failure`."""
        failed = self.failed_passes
        first = Failure(failed.first.since if failed else self.clock(), message)
        self.failed_passes = FailedPasses(first, failed.count + 1 if failed else 1, has_read_config)

    def record_reload(self, error: str) -> None:
        """Record a reload of the settings. `error` is "" if the settings are valid."""
        self.settings_failure = Failure(self.clock(), error) if error else None


class FailureTimes:
    """Stores the start time of each current failure by name. For example, the name is the URL of a failed remote.

    Args:
        clock: Returns the seconds of a monotonic clock.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}

    def update(self, failing: Mapping[str, str]) -> tuple[Failure, ...]:
        """Return the current failures. `failing` maps names to error messages. A name is, for example, a remote's URL.

        A name that is not in `failing` has no failure any more.
        """
        now = self._clock()
        self._since = {name: self._since.get(name, now) for name in sorted(failing)}
        return tuple(Failure(since, failing[name], name) for name, since in self._since.items())
