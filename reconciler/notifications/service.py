"""The thread that sends notifications. A pass only hands over its observation, and never waits for a channel."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from threading import Condition, Thread
from typing import Protocol

from reconciler.git.errors import GitError
from reconciler.krm.findings import Finding
from reconciler.krm.internal_errors import ScopeFailedError, isolation_boundary
from reconciler.lazy_dataclasses import dataclass
from reconciler.notifications.channel_findings import ChannelFindings
from reconciler.notifications.delivery import Delivery
from reconciler.notifications.ledger import Ledger
from reconciler.notifications.observation import Observation
from reconciler.notifications.pass_observer import PassObserver
from reconciler.notifications.tracker import Tracker
from reconciler.reconcile.failures import log_failure
from reconciler.reconcile.pass_runner import PassRunner
from reconciler.reconcile.reconcile_pass import PassReport
from reconciler.telemetry.credential_expiry import list_credential_expiries

_TICK_SECONDS = 5.0
_CLOSE_SECONDS = 5.0
# Older observations can be dropped, because a later observation contains their conditions.
_MAX_OBSERVATIONS = 16


@dataclass(frozen=True)
class NotificationWork:
    """The work of the notification thread, without the thread."""

    ledger: Ledger
    tracker: Tracker
    delivery: Delivery

    def run(self, observations: Sequence[Observation], now: float) -> None:
        """Record observations, and send all messages that are due at `now`, in seconds since 1970."""
        for observation in observations:
            self.tracker.update(observation, now)
        for message in self.tracker.collect(now):
            self.delivery.add(message)
        self.delivery.deliver_due(now)


class NotificationService(Protocol):
    """Observes the passes of the service."""

    def observe(self, report: PassReport, failures: Mapping[str, GitError]) -> tuple[Finding, ...]:
        """Receive the report of a completed pass. Return the findings about channels."""
        ...

    def run_pass(self, passes: PassRunner, run: Callable[[], bool]) -> bool:
        """Call `run` to run a pass with the runner `passes`, and return the result of `run`. Raises GitError."""
        ...

    def close(self) -> None:
        """End the work in background threads."""
        ...


class NoNotifications:
    """The service if the settings contain no route."""

    def observe(self, report: PassReport, failures: Mapping[str, GitError]) -> tuple[Finding, ...]:
        """Return no findings."""
        return ()

    def run_pass(self, passes: PassRunner, run: Callable[[], bool]) -> bool:
        """Call `run`, and return its result. Raises GitError."""
        return run()

    def close(self) -> None:
        """Do nothing, because there is no thread."""


class Notifications:
    """Receives the results of passes, and sends notifications about them in its own thread.

    Args:
        build: Reads the ledger, and builds the work of the thread. It is called when the first pass ends, because an
            earlier `Notifications` object can use the same ledger until then.
    """

    def __init__(
        self,
        observer: PassObserver,
        findings: ChannelFindings,
        build: Callable[[], NotificationWork],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._observer = observer
        self._findings = findings
        self._build = build
        self._clock = clock
        self._changed = Condition()
        self._observations: deque[Observation] = deque(maxlen=_MAX_OBSERVATIONS)
        self._failed_passes = 0
        self._is_closed = False
        self._thread: Thread | None = None
        self._work: NotificationWork | None = None
        self._credentials: Observation | None = None

    def observe(self, report: PassReport, failures: Mapping[str, GitError]) -> tuple[Finding, ...]:
        """Hand over the report of a completed pass. Return the findings about channels."""
        self._failed_passes = 0
        self._offer(lambda: self._observer.observe(report, failures))
        return self._findings.list_findings()

    def run_pass(self, passes: PassRunner, run: Callable[[], bool]) -> bool:
        """Call `run` to run a pass with the runner `passes`, and return the result of `run`.

        If the pass fails before it has read the config, send the error to the notification thread.

        Raises:
            GitError: The config cannot be read.
        """
        try:
            result = run()
        except GitError as error:
            self._record_failed_pass(error.full_message)
            raise
        if not passes.summary.config:
            # An unexpected exception ended the pass before it had read the config.
            self._record_failed_pass("; ".join(finding.message for finding in passes.summary.findings))
        elif self._failed_passes:
            self._failed_passes = 0
            self._offer(self._observer.observe_skipped_pass)
        return result

    def _record_failed_pass(self, message: str) -> None:
        self._failed_passes += 1
        self._offer(lambda: self._observer.observe_failed_pass(message, self._failed_passes))

    def close(self) -> None:
        """End the thread. Wait a few seconds for a message that is being sent. Unsent messages stay in the ledger."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread:
            self._thread.join(_CLOSE_SECONDS)
        if self._work:
            self._work.ledger.close()

    def _offer(self, build_observation: Callable[[], Observation]) -> None:
        try:
            with isolation_boundary("the observation of a pass for notifications"):
                observation = build_observation()
        except ScopeFailedError as error:
            log_failure(error.failure)
            return
        with self._changed:
            self._observations.append(observation)
            self._changed.notify_all()
            if self._thread is None and not self._is_closed:
                self._thread = Thread(target=self._run, name="notifications", daemon=True)
                self._thread.start()

    def _observe_credentials(self) -> tuple[Observation, ...]:
        """Return the observation of the credentials if it has changed."""
        observation = self._observer.observe_credentials(list_credential_expiries(), self._clock())
        previous, self._credentials = self._credentials, observation
        return () if observation == previous else (observation,)

    def _run(self) -> None:
        work = self._work = self._build()
        while True:
            with self._changed:
                seconds = min(_TICK_SECONDS, work.delivery.seconds_until_due(self._clock()))
                self._changed.wait_for(lambda: self._observations or self._is_closed, seconds)
                if self._is_closed:
                    return
                observations = tuple(self._observations)
                self._observations.clear()
            try:
                with isolation_boundary("the notifications"):
                    work.run((*observations, *self._observe_credentials()), self._clock())
            except ScopeFailedError as error:
                log_failure(error.failure)
