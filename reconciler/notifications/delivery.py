"""Delivery of messages: a bounded queue, and retries with increasing delays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from reconciler.krm.findings import Severity
from reconciler.krm.internal_errors import ScopeFailedError, isolation_boundary
from reconciler.lazy_dataclasses import dataclass
from reconciler.notifications.channel import Channel, ChannelError
from reconciler.notifications.channel_findings import ChannelFindings
from reconciler.notifications.messages import Message
from reconciler.reconcile.failures import log_failure
from reconciler.telemetry import metrics
from reconciler.telemetry.event_log import log

MAX_QUEUED = 1_000
RETRY_SECONDS = (1.0, 5.0, 30.0, 300.0, 1800.0)


@dataclass
class _Pending:
    message: Message
    attempts: int = 0
    next_at: float = -math.inf


class Delivery:
    """Sends messages. A message whose attempts all failed is dropped.

    Args:
        finish: Records that a message was sent or dropped. The argument is the data that the channel stores, or None
            for a dropped message.
        findings: Receives the findings about the settings of channels.
    """

    def __init__(
        self,
        channels: Mapping[str, Channel],
        finish: Callable[[Message, Mapping[str, str] | None], None],
        findings: ChannelFindings,
    ) -> None:
        self._channels = channels
        self._finish = finish
        self._findings = findings
        self._queue: list[_Pending] = []
        # The end of the pause that a service has requested, by service. Until then, the service receives no message.
        self._paused_until: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, message: Message) -> None:
        """Add a message. If the queue is full, drop the oldest message, preferably one with the severity info."""
        if len(self._queue) >= MAX_QUEUED:
            infos = (pending for pending in self._queue if pending.message.severity is Severity.INFO)
            self._drop(next(infos, self._queue[0]), "the queue is full")
        self._queue.append(_Pending(message))
        self._report_length()

    def seconds_until_due(self, now: float) -> float:
        """Return the seconds until the next attempt. Infinite if the queue is empty."""
        return min((max(self._find_time(pending) - now, 0.0) for pending in self._queue), default=math.inf)

    def deliver_due(self, now: float) -> None:
        """Send each message whose next attempt is due."""
        for pending in list(self._queue):
            if self._find_time(pending) <= now:
                self._attempt(pending, now)
        self._report_length()

    def _report_length(self) -> None:
        metrics.QUEUE_LENGTH.set(len(self._queue), "notification")

    def _find_time(self, pending: _Pending) -> float:
        return max(pending.next_at, self._paused_until.get(pending.message.channel, -math.inf))

    def _attempt(self, pending: _Pending, now: float) -> None:
        message = pending.message
        pending.attempts += 1
        self._findings.start_attempt(message.channel)
        try:
            with isolation_boundary(f"the notification channel {message.channel}"):
                posted = self._channels[message.channel].send(message)
        except ScopeFailedError as error:
            log_failure(error.failure)
            self._retry(pending, f"internal error {error.failure.reference}", now)
        except ChannelError as error:
            if error.finding:
                self._findings.report(error.finding)
            if error.retry_seconds is not None:
                self._paused_until[message.channel] = now + error.retry_seconds
            self._retry(pending, str(error), now)
        else:
            self._queue.remove(pending)
            metrics.NOTIFICATIONS.add(message.channel, message.event, "sent")
            log.debug(
                "notification_sent", channel=message.channel, notification=message.event, attempts=pending.attempts
            )
            self._finish(message, posted)

    def _retry(self, pending: _Pending, reason: str, now: float) -> None:
        if pending.attempts > len(RETRY_SECONDS):
            self._drop(pending, reason)
        else:
            pending.next_at = now + RETRY_SECONDS[pending.attempts - 1]

    def _drop(self, pending: _Pending, reason: str) -> None:
        message = pending.message
        self._queue.remove(pending)
        metrics.NOTIFICATIONS.add(message.channel, message.event, "failed")
        log.warning(
            "notification_failed", channel=message.channel, notification=message.event, attempts=pending.attempts,
            message=reason,
        )  # fmt: skip
        self._finish(message, None)
