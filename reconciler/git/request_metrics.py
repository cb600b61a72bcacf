"""Metrics of calls of git that contact a remote: their durations, and their results in a few classes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reconciler.git.errors import (
    AccessDeniedError,
    GitError,
    GitTimeoutError,
    HostUntrustedError,
    RepositoryMissingError,
    classify_failure,
)
from reconciler.git.push_outcomes import (
    PushDone,
    PushOutcome,
    PushPostponed,
    PushRefused,
    PushReport,
    PushStale,
    PushUnit,
    has_stale_reason,
    read_porcelain,
)
from reconciler.git.url import GitUrl, split_host_and_path
from reconciler.telemetry import metrics
from reconciler.telemetry.remote_metrics import format_remote, record_git_request
from reconciler.telemetry.traces import span

if TYPE_CHECKING:
    from reconciler.git.command import GitResult

_OPERATIONS = {"fetch": "fetch", "push": "push", "ls-remote": "ls_remote"}
_RESULTS: tuple[tuple[type[GitError], str], ...] = (
    (AccessDeniedError, "auth"),
    (HostUntrustedError, "auth"),
    (RepositoryMissingError, "not_found"),
    (GitTimeoutError, "timeout"),
)
_PUSH_RESULTS: tuple[tuple[type[PushOutcome], str], ...] = (
    (PushDone, "pushed"),
    (PushStale, "lost_race"),
    (PushRefused, "refused"),
    (PushPostponed, "postponed"),
)


class RequestMeasurement:
    """The measurement of one call of git.

    The caller sets `result` when git has ended.
    """

    def __init__(self) -> None:
        self.result: GitResult | None = None

    def classify(self) -> str:
        """Return the class of the result of git, which is one of `metrics.GIT_RESULTS`."""
        if self.result is None:
            return "other"
        if self.result.exit_code == 0:
            return "ok"
        reasons = read_porcelain(self.result.lines)
        if reasons:
            return "stale" if all(map(has_stale_reason, reasons.values())) else "refused"
        return _classify_error(classify_failure(self.result.stderr))


@contextmanager
def measure_request(url: GitUrl, command: str) -> Iterator[RequestMeasurement]:
    """Measure the call of git in the `with` block. Calls that do not contact a remote are not measured.

    Args:
        command: The Git command, such as `push`.
    """
    measurement = RequestMeasurement()
    operation = _OPERATIONS.get(command)
    if operation is None:
        yield measurement
        return
    started_at = time.perf_counter()
    host, path = split_host_and_path(url)
    with span(f"git {command}", {"server.address": host, "vcs.repository.name": path}) as opened:
        try:
            yield measurement
        except GitError as error:
            _record(url, operation, _classify_error(type(error)), started_at)
            raise
        if opened is not None and measurement.result is not None:
            opened.set_attribute("process.exit.code", measurement.result.exit_code)
    _record(url, operation, measurement.classify(), started_at)


def _record(url: GitUrl, operation: str, result: str, started_at: float) -> None:
    record_git_request(get_remote_label(url), operation, result, time.perf_counter() - started_at, time.time())


def _classify_error(error_class: type[GitError]) -> str:
    return next((result for base, result in _RESULTS if issubclass(error_class, base)), "other")


def record_push(url: GitUrl, units: Iterable[PushUnit], report: PushReport) -> None:
    """Count the refs of a push by the outcomes of their units."""
    remote = get_remote_label(url)
    for unit in units:
        outcome = report[unit.name]
        result = next((result for kind, result in _PUSH_RESULTS if isinstance(outcome, kind)), "failed")
        metrics.PUSH_REFS.add(remote, result, amount=len(unit.updates))


def get_remote_label(url: GitUrl) -> str:
    """Return the label of a remote in metrics."""
    return format_remote(*split_host_and_path(url))
