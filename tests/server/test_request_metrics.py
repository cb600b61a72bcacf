"""The metrics of requests and webhooks: routes and results, never the paths that clients send."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp
from structlog.testing import capture_logs

from reconciler.server.application import create_app
from reconciler.server.deliveries import MAX_AGE_SECONDS, WebhookDeliveries
from reconciler.server.limits import ServerLimits
from reconciler.server.request_metrics import RequestMetrics
from reconciler.server.request_origin import OriginRules
from reconciler.telemetry.metrics import REGISTRY, render_metrics
from tests.support.asgi_client import request
from tests.support.http_connection import SECRET
from tests.support.manual_clock import ManualClock

# The signature of the message "a" with the body "{}" at the time 1700000000, with the secret of the tests.
EXPIRED_SIGNATURE = "v1,4kYECY+hRenRutD5za2RczlIwrX6IuklcQYnnZ1Rm8k="
_SAMPLE = re.compile(r"^(\w+)\{(.+)\} (\S+)$", re.MULTILINE)


@pytest.fixture(autouse=True)
def _export() -> Iterator[None]:
    with REGISTRY.export(), capture_logs():
        yield


def read_samples(metric: str) -> dict[str, float]:
    """Return the values of a metric that are not 0, by the values of its labels."""
    samples = _SAMPLE.findall(render_metrics("")[0].decode())
    values = {
        " ".join(re.findall('"([^"]*)"', labels)): float(text) for name, labels, text in samples if name == metric
    }
    return {labels: number for labels, number in values.items() if number}


async def work(_request: Request) -> Response:
    return Response()


async def fail(_request: Request) -> Response:
    raise ZeroDivisionError


ROUTES = [Route("/work/{name}", work), Route("/fail", fail)]


RULES = OriginRules(frozenset({"127.0.0.1"}))


def build_app() -> ASGIApp:
    return create_app(ROUTES, ServerLimits(), lambda: RULES)


def test_requests_are_counted_by_route() -> None:
    app = build_app()
    for method, path in [
        ("GET", "/work/a"), ("GET", "/work/b"), ("HEAD", "/work/c"), ("POST", "/work/d"), ("BREW", "/work/e"),
        ("GET", "/fail"), ("GET", "/none"), ("GET", "/other/none"),
    ]:  # fmt: skip
        request(app, path, method)
    request(app, "/work/f", host="attacker.example.com")

    assert read_samples("reconciler_http_requests_total") == {
        "200 GET /work/{name}": 2,
        "200 HEAD /work/{name}": 1,
        "405 POST /work/{name}": 1,
        "405 other /work/{name}": 1,
        "500 GET /fail": 1,
        "404 GET unmatched": 2,
        "421 GET unmatched": 1,
    }
    assert read_samples("reconciler_http_request_duration_seconds_count") == {
        "/work/{name}": 5,
        "/fail": 1,
        "unmatched": 3,
    }


@pytest.mark.emits("http_request_failed")
def test_failed_request_does_not_fill_the_log() -> None:
    with capture_logs() as log_events:
        app = create_app([Route("/{name:path}", fail, methods=["BREW"])], ServerLimits(), lambda: RULES)
        request(app, "/" + "x" * 9_000, "BREW")
    (error,) = (event for event in log_events if event["log_level"] == "error")

    assert (error["event"], error["method"], error["path"]) == ("http_request_failed", "other", "/" + "x" * 199)


def test_client_that_disconnects_is_no_server_error() -> None:
    async def disconnect() -> Any:
        return {"type": "http.disconnect"}

    async def send(_message: Any) -> None:
        """Discard the response."""

    async def read_body(request: Request) -> Response:
        return Response(await request.body())

    app = create_app([Route("/body", read_body, methods=["POST"])], ServerLimits(), lambda: RULES)
    scope = {
        "type": "http", "method": "POST", "path": "/body", "raw_path": b"/body", "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")], "client": ("127.0.0.1", 5), "scheme": "http", "root_path": "",
    }  # fmt: skip
    with capture_logs() as log_events:
        asyncio.run(app(scope, disconnect, send))

    assert read_samples("reconciler_http_requests_total") == {"400 POST /body": 1}
    assert [event for event in log_events if event["log_level"] == "error"] == []


@pytest.mark.emits("http_request")
def test_durations_and_log_events() -> None:
    clock = ManualClock()

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        clock.now += 0.25
        scope["endpoint"] = work
        await Response(status_code=204)(scope, _receive, send)

    with capture_logs() as log_events:
        request(RequestMetrics(app, ROUTES, lambda: RULES, clock), "/work/secret")

    assert read_samples("reconciler_http_request_duration_seconds_sum") == {"/work/{name}": 0.25}
    assert log_events == [
        {
            "event": "http_request",
            "method": "GET",
            "route": "/work/{name}",
            "status": 204,
            "duration_ms": 250.0,
            "log_level": "debug",
        }
    ]


def test_webhooks_are_counted_by_result() -> None:
    deliveries = WebhookDeliveries(lambda: None, lambda: 1_700_000_000.0 + MAX_AGE_SECONDS + 1)
    deliveries.secrets = lambda: (SECRET,)

    async def read_body() -> AsyncIterator[bytes]:
        yield b"{}"

    token = {"x-gitlab-token": SECRET.decode(), "x-gitlab-event-uuid": "a"}
    expired = {"webhook-id": "a", "webhook-timestamp": "1700000000", "webhook-signature": EXPIRED_SIGNATURE}
    for headers in (token, token, {**token, "x-gitlab-token": "a guess"}, expired, {"x-gitea-signature": "0" * 64}, {}):
        asyncio.run(deliveries.receive(headers, read_body()))

    assert read_samples("reconciler_webhooks_total") == {
        "gitlab accepted": 1,
        "gitlab replayed": 1,
        "gitlab refused": 1,
        "gitea refused": 1,
        "other expired": 1,
        "other refused": 1,
    }
