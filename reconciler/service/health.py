"""The health checks of the service. They are computed from its state and the time, and change nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from reconciler.lazy_dataclasses import dataclass
from reconciler.service.fleet_view import Failure
from reconciler.service.state import ServiceState


@dataclass(frozen=True)
class HealthCheck:
    """The result of one check.

    Attributes:
        failures: The reasons why the check fails. Empty if it succeeds.
        is_blocking: Whether the service is not ready while the check fails. Otherwise, it is degraded.
    """

    code: str
    failures: tuple[Failure, ...] = ()
    is_blocking: bool = False


@dataclass(frozen=True)
class Health:
    """The results of all checks."""

    checks: tuple[HealthCheck, ...]

    @property
    def failed_codes(self) -> list[str]:
        """The codes of the failed checks."""
        return [check.code for check in self.checks if check.failures]

    @property
    def is_ready(self) -> bool:
        """Whether no blocking check fails."""
        return not any(check.failures for check in self.checks if check.is_blocking)

    @property
    def status(self) -> str:
        """The status of the service: ready, degraded or not_ready."""
        if not self.is_ready:
            return "not_ready"
        return "degraded" if self.failed_codes else "ready"


def is_stuck(state: ServiceState) -> bool:
    """Return whether the main thread has ended, or the process has made no progress for too long."""
    updated_at, _ = state.progress.last
    has_stopped = state.clock() - updated_at > state.limits.stuck_after_seconds
    return has_stopped or not threading.main_thread().is_alive()


def evaluate_health(state: ServiceState) -> Health:
    """Return the results of all checks for the current state of the service."""
    return Health(tuple(_evaluate(state)))


def _evaluate(state: ServiceState) -> Iterator[HealthCheck]:
    now, view, failed, limits = state.clock(), state.view, state.failed_passes, state.limits
    yield HealthCheck("Stopping", _since(state.stopping_since, "the service received a signal to stop"), True)
    no_pass = None if view else state.started_at
    yield HealthCheck("NoPassYet", _since(no_pass, "this process has not completed a pass"), True)
    unread = failed.first if failed and not failed.has_read_config else None
    yield HealthCheck("ConfigUnavailable", _list(unread), is_blocking=view is None)
    yield HealthCheck("SettingsInvalid", _list(state.settings_failure))
    yield HealthCheck("PassStale", _since(_find_stale_time(state, now), "no pass was completed in the expected time"))
    is_failing = failed is not None and failed.count >= limits.failing_passes
    yield HealthCheck("PassFailing", _list(failed.first if failed and is_failing else None))
    latest = now - limits.unavailable_after_seconds
    remotes, forges = (view.remote_failures, view.forge_failures) if view else ((), ())
    yield HealthCheck("RemotesUnavailable", tuple(failure for failure in remotes if failure.since <= latest))
    yield HealthCheck("ForgeUnavailable", tuple(failure for failure in forges if failure.since <= latest))
    yield HealthCheck("StatusNotWritten", _list(view.status_failure if view else None))
    yield HealthCheck("ExecutorUnavailable", _list(view.executor_failure if view else None))
    yield HealthCheck("WebhookSecretsUnreadable", _list(state.find_secrets_failure()))


def _find_stale_time(state: ServiceState, now: float) -> float | None:
    """Return the time at which the last completed pass became too old. Return None if the pass is not too old."""
    if state.view is None:
        return None
    limits = state.limits
    polls_seconds = limits.polls_seconds and limits.polls_seconds + state.find_longest_pass()
    stale_at = state.view.completed_at + max(limits.stale_after_seconds, polls_seconds)
    return stale_at if now > stale_at else None


def _since(since: float | None, message: str) -> tuple[Failure, ...]:
    return () if since is None else (Failure(since, message),)


def _list(failure: Failure | None) -> tuple[Failure, ...]:
    return () if failure is None else (failure,)
