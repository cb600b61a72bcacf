"""Logs and measures the passes of the daemon.

Idle passes are passes that were skipped, or that changed nothing and had no error. They are not logged one by one. A
regular heartbeat event contains their number.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from reconciler.git.errors import GitError
from reconciler.krm.findings import Finding, Severity
from reconciler.lazy_dataclasses import dataclass
from reconciler.reconcile.last_pass_file import LastPassFile, PassTimes
from reconciler.reconcile.pass_runner import PassSummary
from reconciler.service.cache_size import CacheSize
from reconciler.service.draft_latency import DraftLatency
from reconciler.service.finding_log import FindingLog
from reconciler.telemetry import metrics
from reconciler.telemetry.event_log import log
from reconciler.telemetry.phases import measure_phases
from reconciler.telemetry.target_metrics import TARGET_METRICS
from reconciler.telemetry.traces import get_trace_id, pass_span

if TYPE_CHECKING:
    from reconciler.telemetry.traces import Span

# A pass did some work if one of these counts is not 0.
_ACTIONS = ("renders", "approved", "requests")
_REQUESTED_STATES = ("published", "draft", "proposed", "blocked", "declined")


class Passes(Protocol):
    """Runs passes, like `PassRunner`."""

    summary: PassSummary

    def run(self) -> bool:
        """Run one pass, and return whether all its work is done."""
        ...


@dataclass(frozen=True)
class Clocks:
    """Functions that return the time and unique IDs. Tests replace them.

    Attributes:
        wall: Returns seconds since 1970.
        monotonic: Returns the seconds of a monotonic clock.
        create_id: Returns the ID of a new pass.
    """

    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    create_id: Callable[[], str] = lambda: secrets.token_hex(6)


class PassReporter:
    """Runs passes with their log events and metrics. One object reports all passes of the process.

    Attributes:
        heartbeat_seconds: The time between two heartbeats, in seconds. 0 means that there are no heartbeats.
        last_pass_file: The cache file for the last pass. If it is None, passes are not stored.
        cache_size: Exports the size of the cache folder.
        phases: The seconds of each phase of the last pass.
    """

    def __init__(self, heartbeat_seconds: float = 300, clocks: Clocks | None = None) -> None:
        self.heartbeat_seconds = heartbeat_seconds
        self.last_pass_file: LastPassFile | None = None
        self._clocks = clocks or Clocks()
        self.cache_size = CacheSize()
        self.phases: Mapping[str, float] = {}
        self._findings = FindingLog()
        self._latency = DraftLatency()
        self._started_at = self._last_event_at = self._clocks.monotonic()
        self._idle_passes = 0
        self._failures = 0
        self._failing_since = 0.0
        self._pass_id = ""
        self._is_first_pass = True
        self._packages: Mapping[str, int] = {}

    @property
    def uptime_seconds(self) -> float:
        """The seconds since the start of the daemon."""
        return round(self._clocks.monotonic() - self._started_at, 3)

    def run(self, passes: Passes, triggers: Collection[str]) -> bool:
        """Run one pass, and return whether all its work is done.

        Args:
            triggers: The reasons of the pass. They are label values of the metric `reconciler_passes_total`.

        Raises:
            GitError: The config cannot be read.
        """
        self._pass_id, started_at = self._clocks.create_id(), self._clocks.monotonic()
        start_time = self._clocks.wall()
        metrics.PASS_START.set(start_time)
        attributes = {"pass.id": self._pass_id, "pass.trigger": sorted(triggers)}
        with pass_span(attributes) as root, self._scope(root), measure_phases() as phases:
            log.debug("pass_started", trigger=sorted(triggers))
            try:
                is_done = passes.run()
            except GitError:
                seconds = self._clocks.monotonic() - started_at
                self._record_end("failure", triggers, seconds)
                self._store(PassTimes(start_time, seconds), None)
                raise
            finally:
                metrics.PASS_START.set(0)
                self.phases = phases.durations
            seconds = self._clocks.monotonic() - started_at
            self._record_end(passes.summary.result, triggers, seconds)
            for name, phase_seconds in phases.durations.items():
                metrics.PASS_PHASE_DURATION.observe(phase_seconds, name)
            self._log_recovery()
            is_idle = self._report(passes.summary, triggers, started_at, phases.durations)
            if root is not None:
                summary = passes.summary
                root.set_attributes(
                    {"pass.result": summary.result, "pass.idle": is_idle, "config.commit": summary.config}
                )
            self._store(PassTimes(start_time, seconds), passes.summary)
        self.cache_size.update(self._clocks.monotonic())
        return is_done

    def _store(self, times: PassTimes, summary: PassSummary | None) -> None:
        if self.last_pass_file:
            self.last_pass_file.write(times, summary)

    def report_failure(self, error: GitError, retry_seconds: float) -> None:
        """Log that a pass could not read the config. `retry_seconds` is the time until the next pass."""
        if not self._failures:
            self._failing_since = self._clocks.monotonic()
        self._failures += 1
        self._last_event_at = self._clocks.monotonic()
        with log.pass_scope(self._pass_id):
            log.error(
                "pass_failed",
                reason=error.code,
                message=error.message,
                next_step=error.next_step,
                retry_seconds=round(retry_seconds, 3),
                consecutive=self._failures,
            )

    def _log_recovery(self) -> None:
        if self._failures:
            seconds = round(self._clocks.monotonic() - self._failing_since, 3)
            log.info("pass_recovered", failed_for_seconds=seconds, passes_failed=self._failures)
            self._failures = 0

    def _scope(self, root: Span | None) -> AbstractContextManager[None]:
        return log.pass_scope(self._pass_id, get_trace_id(root))

    def _record_end(self, result: str, triggers: Collection[str], seconds: float) -> None:
        exemplar = {"trace_id": log.trace_id} if log.trace_id else None
        metrics.PASS_DURATION.observe(seconds, result, exemplar=exemplar)
        trigger = next(trigger for trigger in metrics.PASS_TRIGGERS if trigger in triggers)
        metrics.PASSES.add(result, trigger)
        metrics.LAST_PASS.set(self._clocks.wall(), result)

    def _report(
        self, summary: PassSummary, triggers: Collection[str], started_at: float, phases: Mapping[str, float]
    ) -> bool:
        """Log the result of a pass, and record its numbers. Return whether the pass was idle."""
        now = self._clocks.monotonic()
        self._latency.record_pass(summary, started_at, now)
        if summary.is_skipped:
            log.debug("pass_skipped", config_commit=summary.config)
            self._count_idle_pass(now)
            return True
        _record_numbers(summary)
        has_new_findings = self._findings.update(summary.findings, now)
        drafts = summary.numbers.drafts
        packages = dict(summary.numbers.packages)
        has_changed = (
            packages != self._packages
            or any(drafts.get(action) for action in metrics.DRAFT_ACTIONS)
            or any(summary.counts.get(action) for action in _ACTIONS)
        )
        self._packages = packages
        is_idle = not (has_new_findings or has_changed or summary.result != "success")
        # Log the first pass in any case, because its numbers describe the fleet after the start of the daemon.
        is_idle, self._is_first_pass = is_idle and not self._is_first_pass, False
        emit = log.debug if is_idle else log.info
        emit(
            "pass_completed",
            result=summary.result,
            trigger=sorted(triggers),
            config_commit=summary.config,
            duration_seconds=round(now - started_at, 3),
            phases={name: round(seconds, 3) for name, seconds in phases.items()},
            targets=sum(summary.numbers.targets.values()),
            packages=packages,
            drafts=dict(drafts),
            renders=summary.counts.get("renders", 0),
            findings=_count_severities(summary.findings),
            remotes_unavailable=summary.unavailable_remotes,
        )
        if is_idle:
            self._count_idle_pass(now)
        else:
            self._idle_passes, self._last_event_at = 0, now
        return is_idle

    def _count_idle_pass(self, now: float) -> None:
        """Count a pass that was not logged, and log a heartbeat if it is due."""
        self._idle_passes += 1
        if self.heartbeat_seconds and now - self._last_event_at >= self.heartbeat_seconds:
            log.info(
                "heartbeat",
                last_pass=_format_time(self._clocks.wall()),
                passes=self._idle_passes,
                uptime_seconds=self.uptime_seconds,
            )
            self._idle_passes, self._last_event_at = 0, now


def _count_severities(findings: Collection[Finding]) -> dict[str, int]:
    counts = Counter(finding.severity for finding in findings)
    return {severity.value: counts[severity] for severity in Severity}


def _record_numbers(summary: PassSummary) -> None:
    numbers = summary.numbers
    for state, count in numbers.targets.items():
        metrics.TARGETS.set(count, state)
    for state, count in numbers.packages.items():
        metrics.PACKAGES.set(count, state)
    for state, seconds in numbers.oldest_drafts.items():
        metrics.OLDEST_DRAFT.set(seconds, state)
    for action in metrics.DRAFT_ACTIONS:
        metrics.DRAFT_CHANGES.add(action, amount=numbers.drafts.get(action, 0))
    metrics.CONFLICTS.set(numbers.conflicts)
    packages = sum(numbers.packages.get(state, 0) for state in _REQUESTED_STATES)
    metrics.RENDERS.add("cached", amount=max(packages - summary.counts.get("renders", 0), 0))
    TARGET_METRICS.update(numbers.by_target)
    _record_findings(Counter((finding.severity.value, finding.code) for finding in summary.findings))


def _record_findings(counts: Mapping[tuple[str, str], int]) -> None:
    totals: Counter[tuple[str, str]] = Counter()
    for (severity, code), count in sorted(counts.items()):
        # Add the counts, because all codes above the limit share one label value.
        totals[severity, metrics.FINDING_CODES.limit(code)] += count
    for code in metrics.FINDING_CODES:
        for severity in metrics.SEVERITIES:
            metrics.FINDINGS.set(totals[severity, code], severity, code)


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
