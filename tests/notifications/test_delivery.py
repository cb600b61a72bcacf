"""Retries, pauses and the limit of the queue, with a manual clock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from reconciler.krm.findings import Finding, Severity
from reconciler.notifications.channel import ChannelError
from reconciler.notifications.channel_findings import ChannelFindings
from reconciler.notifications.delivery import MAX_QUEUED, RETRY_SECONDS, Delivery
from reconciler.notifications.messages import Message
from reconciler.notifications.samples import build_sample
from reconciler.telemetry import metrics
from tests.support.notifications import MemoryChannel, unreachable

MESSAGE = build_sample("ops", "package_blocked", "1/1", 0, "")
Finished = list[tuple[Message, Mapping[str, str] | None]]


@pytest.fixture
def channel() -> MemoryChannel:
    return MemoryChannel()


@pytest.fixture
def finished() -> Finished:
    return []


@pytest.fixture
def delivery(channel: MemoryChannel, finished: Finished) -> Delivery:
    return Delivery({"ops": channel, "other": channel}, lambda *result: finished.append(result), ChannelFindings())


@pytest.mark.emits("notification_sent")
def test_a_message_is_sent_once(delivery: Delivery, channel: MemoryChannel, finished: Finished) -> None:
    delivery.add(MESSAGE)
    with capture_logs() as logs:
        delivery.deliver_due(0)
        delivery.deliver_due(10_000)

    assert (channel.messages, finished) == ([MESSAGE], [(MESSAGE, {})])
    assert logs == [
        {"event": "notification_sent", "log_level": "debug", "channel": "ops", "notification": "package_blocked",
         "attempts": 1},
    ]  # fmt: skip


@pytest.mark.emits("notification_failed")
def test_the_delays_of_retries(delivery: Delivery, channel: MemoryChannel, finished: Finished) -> None:
    channel.errors = [unreachable() for _ in range(6)]
    delivery.add(MESSAGE)
    now, delays = 0.0, []
    with capture_logs() as logs:
        delivery.deliver_due(now)
        while len(delivery):
            delays.append(delivery.seconds_until_due(now))
            # A call before the next attempt is due sends nothing.
            delivery.deliver_due(now + delays[-1] - 0.5)
            now += delays[-1]
            delivery.deliver_due(now)

    assert tuple(delays) == RETRY_SECONDS == (1, 5, 30, 300, 1800)
    assert finished == [(MESSAGE, None)]
    assert logs == [
        {"event": "notification_failed", "log_level": "warning", "channel": "ops", "notification": "package_blocked",
         "attempts": 6, "message": "ops cannot be reached"},
    ]  # fmt: skip


def test_a_rate_limit_pauses_all_messages_of_the_channel(delivery: Delivery, channel: MemoryChannel) -> None:
    channel.errors = [unreachable(retry_seconds=120)]
    second, other = replace(MESSAGE, id="msg_2"), replace(MESSAGE, id="msg_3", channel="other")
    for message in (MESSAGE, second, other):
        delivery.add(message)
    delivery.deliver_due(0)
    assert channel.messages == [other]
    delivery.deliver_due(119)
    assert channel.messages == [other]
    assert delivery.seconds_until_due(119) == 1
    delivery.deliver_due(120)

    assert channel.messages == [other, MESSAGE, second]


def test_the_length_of_the_queue_is_a_metric(delivery: Delivery, channel: MemoryChannel) -> None:
    channel.errors = [unreachable()]
    with metrics.REGISTRY.export():
        delivery.add(MESSAGE)
        delivery.add(replace(MESSAGE, id="msg_2"))
        lengths = [metrics.render_metrics("text/plain")[0].decode()]
        delivery.deliver_due(0)
        lengths.append(metrics.render_metrics("text/plain")[0].decode())

    values = [re.search(r'reconciler_queue_length\{queue="notification"\} (\S+)', text) for text in lengths]
    assert [value and value[1] for value in values] == ["2.0", "1.0"]


def test_a_failing_message_does_not_delay_other_messages(delivery: Delivery, channel: MemoryChannel) -> None:
    channel.errors = [unreachable()]
    second = replace(MESSAGE, id="msg_2")
    delivery.add(MESSAGE)
    delivery.add(second)
    delivery.deliver_due(0)

    assert channel.messages == [second]


@pytest.mark.parametrize(
    ("severities", "dropped"),
    [
        pytest.param([Severity.ERROR, Severity.INFO, Severity.WARNING, Severity.INFO], 1, id="oldest-info"),
        pytest.param([Severity.ERROR, Severity.WARNING, Severity.ERROR], 0, id="no-info"),
    ],
)
def test_a_full_queue_drops_the_oldest_info(
    delivery: Delivery, finished: Finished, severities: list[Severity], dropped: int
) -> None:
    filling = [Severity.ERROR] * (MAX_QUEUED - len(severities))
    for number, severity in enumerate((*severities, *filling)):
        delivery.add(replace(MESSAGE, id=str(number), severity=severity))
    assert finished == []
    with capture_logs() as logs:
        delivery.add(MESSAGE)

    assert [message.id for message, _ in finished] == [str(dropped)]
    assert len(delivery) == MAX_QUEUED
    assert [(entry["event"], entry["message"]) for entry in logs] == [("notification_failed", "the queue is full")]


def test_an_unexpected_exception_of_a_channel_is_logged_and_retried(delivery: Delivery, channel: MemoryChannel) -> None:
    channel.errors = [ZeroDivisionError("boom")]
    delivery.add(MESSAGE)
    with capture_logs() as logs:
        delivery.deliver_due(0)
    delivery.deliver_due(1)

    assert [entry["event"] for entry in logs] == ["internal_error"]
    assert channel.messages == [MESSAGE]


def test_the_finding_of_a_channel_is_reported_until_an_attempt_succeeds(channel: MemoryChannel) -> None:
    findings = ChannelFindings()
    delivery = Delivery({"ops": channel}, lambda *_: None, findings)
    finding = Finding("NotificationUrlRefused", "refused")
    channel.errors = [ChannelError("refused", finding=finding)]
    delivery.add(MESSAGE)
    delivery.deliver_due(0)
    assert findings.list_findings() == (finding,)
    delivery.deliver_due(1)

    assert findings.list_findings() == ()
