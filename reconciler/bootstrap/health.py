"""Records the results of passes for the health checks."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from reconciler.bootstrap.services import Services
from reconciler.executors.dask_cluster import DaskExecutor
from reconciler.git.errors import GitError
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.reconcile.pass_runner import PassRunner, PassSummary
from reconciler.reconcile.remotes.availability import RemoteState
from reconciler.service.fleet_view import Failure, FleetView, PassRecord
from reconciler.service.state import FailureTimes, HealthLimits, ServiceState
from reconciler.settings import Settings

_MIN_STUCK_SECONDS = 600
_MIN_STALE_SECONDS = 300


def build_health_limits(settings: Settings) -> HealthLimits:
    """Return the times after which health checks fail."""
    health = settings.health
    calls_seconds = 2 * settings.git.timeout_seconds + settings.functions.timeout_seconds
    # Do not treat a pass as stuck while it waits for a batch of renders, for up to `rendering.timeout_seconds`.
    longest_wait = max(calls_seconds, settings.rendering.timeout_seconds, _MIN_STUCK_SECONDS)
    stuck_seconds = health.stuck_after_seconds or longest_wait
    if health.stale_after_seconds:
        return HealthLimits(stuck_seconds, health.stale_after_seconds, polls_seconds=0)
    return HealthLimits(stuck_seconds, _MIN_STALE_SECONDS, polls_seconds=3 * settings.poll_seconds)


@dataclass
class PassRecorder:
    """Runs passes and records their results in the state of the service.

    Attributes:
        get_phases: Returns the seconds of each phase of the last pass.
        clock: Returns seconds since 1970.
    """

    state: ServiceState
    passes: PassRunner
    services: Services
    get_phases: Callable[[], Mapping[str, float]] = dict
    clock: Callable[[], float] = time.time
    _times: dict[str, FailureTimes] = field(default_factory=dict)

    def run(self, run_pass: Callable[[], bool], triggers: Collection[str] = ()) -> bool:
        """Run a pass with `run_pass`, and record its result. `triggers` are the reasons of the pass.

        Raises:
            GitError: The config cannot be read.
        """
        start, started_at = self.state.clock(), self.clock()

        def add_record(result: str, message: str = "") -> PassRecord:
            duration, reasons = self.state.clock() - start, tuple(sorted(triggers))
            record = PassRecord(started_at, duration, result, reasons, self.get_phases(), message)
            self.state.add_pass(record)
            return record

        try:
            is_done = run_pass()
        except GitError as error:
            self.state.record_failed_pass(error.message, has_read_config=False)
            add_record("failure", error.message)
            raise
        summary = self.passes.summary
        if summary.result == "failure":
            message = summary.findings[0].message
            self.state.record_failed_pass(message, has_read_config=True)
            add_record("failure", message)
        else:
            self.state.record_completed_pass(self._build_view(summary, add_record(summary.result)))
        return is_done

    def _build_view(self, summary: PassSummary, record: PassRecord) -> FleetView:
        previous = self.state.view
        services = self.services.pass_services
        executor = services.executor
        executor_error = executor.connection_error if isinstance(executor, DaskExecutor) else ""
        # Use the number of targets of the previous pass for a skipped pass, because a skipped pass counts no targets.
        targets = sum(summary.numbers.targets.values()) or (previous.targets if previous else 0)
        return FleetView(
            number=previous.number + 1 if previous else 1,
            completed_at=self.state.clock(),
            last_pass=record,
            config=summary.config,
            targets=targets,
            remotes=self._list_remotes(),
            forge_limits=self.services.inputs.forges.list_limits(),
            remote_failures=self._update("remotes", self.services.remotes.list_unavailable_targets()),
            forge_failures=self._update("forges", services.pull_request_cache.list_unavailable_hosts()),
            status_failure=self._update_one("status", summary.status_error),
            executor_failure=self._update_one("executor", executor_error),
        )

    def _list_remotes(self) -> tuple[RemoteState, ...]:
        states = self.services.remotes.list_states()
        failures = self._update("fetches", {state.url: state.error.message for state in states if state.error})
        since = {failure.name: failure.since for failure in failures}
        return tuple(replace(state, since=since.get(state.url)) for state in states)

    def _update(self, kind: str, failing: dict[str, str]) -> tuple[Failure, ...]:
        return self._times.setdefault(kind, FailureTimes(self.state.clock)).update(failing)

    def _update_one(self, kind: str, error: str) -> Failure | None:
        failures = self._update(kind, {"": error} if error else {})
        return failures[0] if failures else None
