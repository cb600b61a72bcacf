"""Deliveries: each valid delivery requests a pass, a repeated one does not, and errors give no reason to the client."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections.abc import AsyncIterator, Iterator, Mapping

import pytest
from structlog.testing import capture_logs

from reconciler.server import deliveries
from reconciler.server.deliveries import WebhookDeliveries

SECRET = b"correct horse battery staple"
NOW = 1_700_000_000
ACCEPTED, KNOWN, REFUSED = 202, 200, 401


class Service:
    """Counts the requests for a pass. Its clock is manual."""

    def __init__(self) -> None:
        self.now = float(NOW)
        self.pass_requests = 0
        self.secrets: tuple[bytes, ...] = (SECRET,)
        self.deliveries = WebhookDeliveries(self.request_pass, lambda: self.now)
        self.deliveries.secrets = lambda: self.secrets

    def request_pass(self) -> None:
        self.pass_requests += 1

    def receive(self, headers: Mapping[str, str], body: bytes) -> int:
        async def read_body() -> AsyncIterator[bytes]:
            yield body

        return asyncio.run(self.deliveries.receive(headers, read_body()))

    def push(self, body: bytes, delivery: str = "d", secret: bytes = SECRET) -> int:
        signature = hmac.new(secret, body, hashlib.sha256).hexdigest()
        headers = {
            "x-hub-signature-256": f"sha256={signature}",
            "x-github-event": "push",
            "x-github-delivery": delivery,
        }
        return self.receive(headers, body)

    def timed(self, delivery: str, moment: int) -> int:
        signed = hmac.new(SECRET, f"{delivery}.{moment}.{{}}".encode(), hashlib.sha256).digest()
        signature = f"v1,{base64.b64encode(signed).decode()}"
        headers = {"webhook-id": delivery, "webhook-timestamp": str(moment), "webhook-signature": signature}
        return self.receive(headers, b"{}")

    def token(self, delivery: str) -> int:
        return self.receive({"x-gitlab-token": SECRET.decode(), "x-gitlab-event-uuid": delivery}, b"{}")


@pytest.fixture
def service() -> Iterator[Service]:
    with capture_logs():
        yield Service()


def test_a_delivery_requests_one_pass(service: Service) -> None:
    assert [service.push(b"1"), service.push(b"2", "e"), service.push(b"1")] == [ACCEPTED, ACCEPTED, KNOWN]
    assert service.pass_requests == 2


def test_a_new_name_makes_no_new_delivery_of_an_old_body(service: Service) -> None:
    assert [service.push(b"1", "one"), service.push(b"1", "other")] == [ACCEPTED, KNOWN]


def test_by_token_the_name_tells_deliveries_apart(service: Service) -> None:
    assert [service.token("one"), service.token("one"), service.token("two")] == [ACCEPTED, KNOWN, ACCEPTED]


def test_a_token_without_a_delivery_id_is_never_a_replay(service: Service) -> None:
    assert [service.token(""), service.token("")] == [ACCEPTED, ACCEPTED]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(0, ACCEPTED, id="now"),
        pytest.param(-300, ACCEPTED, id="five-minutes-ago"),
        pytest.param(-301, KNOWN, id="longer-ago"),
        pytest.param(300, ACCEPTED, id="by-a-clock-that-is-fast"),
        pytest.param(301, KNOWN, id="out-of-the-future"),
    ],
)
def test_a_signature_of_another_time_requests_no_pass(service: Service, seconds: int, expected: int) -> None:
    assert service.timed("m", NOW + seconds) == expected
    assert service.pass_requests == (expected == ACCEPTED)


def test_a_late_delivery_is_not_stored_as_seen(service: Service) -> None:
    service.now += 600
    service.timed("m", NOW)
    service.now -= 600

    assert service.timed("m", NOW) == ACCEPTED


def test_the_last_deliveries_are_stored(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "MAX_DELIVERIES_KEPT", 3)
    for name in "abcd":
        service.token(name)

    assert [service.token(name) for name in "dbca"] == [KNOWN, KNOWN, KNOWN, ACCEPTED]


def test_strangers_are_refused_and_leave_nothing_behind(service: Service) -> None:
    assert service.push(b"1", secret=b"a guess") == REFUSED
    assert service.receive({}, b"1") == REFUSED
    assert service.pass_requests == 0
    assert service.push(b"1") == ACCEPTED


def test_secrets_are_those_of_the_moment(service: Service) -> None:
    service.secrets = (b"new",)

    assert [service.push(b"1"), service.push(b"1", secret=b"new")] == [REFUSED, ACCEPTED]


@pytest.mark.emits("webhook_accepted", "webhook_ignored", "webhook_refused")
def test_the_log_contains_only_the_escaped_event_and_delivery() -> None:
    service = Service()
    with capture_logs() as log_events:
        service.push(b'{"password": "hunter2"}', delivery="x\n\x1b[31m" + "y" * 500)
        service.push(b'{"password": "hunter2"}', delivery="again")
        service.push(b"1", secret=b"a guess")

    assert log_events == [
        {
            "event": "webhook_accepted",
            "provider": "github",
            "kind": "push",
            "delivery": "x???31m" + "y" * 73,
            "log_level": "info",
        },
        {
            "event": "webhook_ignored",
            "provider": "github",
            "reason": "replayed",
            "message": "the same delivery was received before",
            "kind": "push",
            "delivery": "again",
            "log_level": "info",
        },
        {
            "event": "webhook_refused",
            "provider": "github",
            "reason": "signature_invalid",
            "message": "no secret in `webhooks.secret_file` matches the signature",
            "log_level": "debug",
        },
    ]
