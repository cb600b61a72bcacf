"""The path `/hooks`: one path and one method, and each response contains only a status."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from reconciler.server.application import create_app
from reconciler.server.deliveries import WebhookDeliveries
from reconciler.server.http_server import HttpServer
from reconciler.server.limits import ServerLimits
from reconciler.server.rate_limit import AddressRateLimit
from reconciler.server.request_origin import OriginRules
from reconciler.server.webhook_route import create_webhook_route
from tests.support.asgi_client import request
from tests.support.http_connection import SECRET, build_webhook, connect, parse, send

LIMITS = ServerLimits(webhook_body_bytes=100_000, webhooks_per_minute=1_000)


class WebhookServer:
    """A server with the webhook route only. It counts the passes that webhooks start."""

    def __init__(self) -> None:
        self.passes = 0
        self.error: Exception | None = None
        self.deliveries = WebhookDeliveries(self.start_pass)
        self.deliveries.secrets = lambda: (SECRET,)
        routes = [create_webhook_route(self.deliveries, AddressRateLimit(LIMITS.webhooks_per_minute))]
        self.app = create_app(routes, LIMITS, lambda: OriginRules(frozenset({"127.0.0.1"})))
        self.http_server = HttpServer(self.app, LIMITS)
        self.http_server.listen("127.0.0.1:0")

    def start_pass(self) -> None:
        if self.error:
            raise self.error
        self.passes += 1


@pytest.fixture(scope="module")
def shared_server() -> Iterator[WebhookServer]:
    with capture_logs():
        server = WebhookServer()
        with server.http_server:
            yield server


@pytest.fixture
def server(shared_server: WebhookServer) -> WebhookServer:
    shared_server.passes = 0
    shared_server.error = None
    shared_server.deliveries.secrets = lambda: (SECRET,)
    return shared_server


def remove_header(header: str, message: bytes) -> bytes:
    return b"\r\n".join(line for line in message.split(b"\r\n") if not line.startswith(f"{header}:".encode()))


@pytest.mark.parametrize(
    ("message", "status", "passes"),
    [
        pytest.param(build_webhook(b"first"), 202, 1, id="valid"),
        pytest.param(build_webhook(b"x" * 100_000), 202, 1, id="largest-body"),
        pytest.param(build_webhook(b""), 202, 1, id="empty-body"),
        pytest.param(build_webhook(b"host", host="hooks.example.com"), 202, 1, id="name-of-the-proxy"),
        pytest.param(build_webhook(secret=b"a guess"), 401, 0, id="other-secret"),
        pytest.param(remove_header("x-hub-signature-256", build_webhook()), 401, 0, id="no-signature"),
        *(
            pytest.param(build_webhook(path=path), 404, 0, id=f"path-{path}")
            for path in (
                "/", "/hooks/", "/hooks?x=1", "//hooks", "///hooks", "/hooks//", "/HOOKS", "/./hooks", "/x/../hooks",
                "/%68ooks", "/hooks#x", "/hooks;x", "hooks", "*", "http://reconciler/hooks", "//reconciler/hooks",
                "\\hooks",
            )
        ),
        pytest.param(build_webhook(method="GET"), 405, 0, id="other-method"),
        pytest.param(build_webhook(method="BREW"), 405, 0, id="unknown-method"),
        pytest.param(build_webhook(method="GET", path="//hooks"), 404, 0, id="other-method-and-path"),
        pytest.param(build_webhook(content_length="100001"), 413, 0, id="large-body"),
        pytest.param(build_webhook(content_length="9" * 20), 413, 0, id="large-length"),
        pytest.param(build_webhook(content_length="9" * 21), 400, 0, id="length-with-too-many-digits"),
        pytest.param(build_webhook(content_length="-2"), 400, 0, id="negative-length"),
        pytest.param(build_webhook(content_length="2\r\nContent-Length: 3"), 400, 0, id="two-lengths"),
        pytest.param(remove_header("content-length", build_webhook()), 411, 0, id="no-length"),
        pytest.param(build_webhook(content_length="2\r\nTransfer-Encoding: chunked"), 411, 0, id="chunked-body"),
        pytest.param(b"<script>\r\n\r\n", 400, 0, id="no-http"),
        pytest.param(build_webhook(path="/" + "x" * 17_000), 431, 0, id="long-path"),
        pytest.param(build_webhook(x_long="x" * 17_000), 431, 0, id="long-header"),
    ],
)  # fmt: skip
def test_responses_contain_only_a_status(server: WebhookServer, message: bytes, status: int, passes: int) -> None:
    response = parse(send(server.http_server.port, message))

    expected = {"content-length": "0", "connection": "close"} | ({"allow": "POST"} if status == 405 else {})
    response.headers.pop("date", None)
    assert (response.status, response.headers, response.body) == (status, expected, b"")
    assert server.passes == passes


def test_repeated_signature_header_is_not_valid(server: WebhookServer) -> None:
    message = build_webhook(b"repeated")
    line = next(line for line in message.split(b"\r\n") if line.startswith(b"x-hub"))

    response = parse(send(server.http_server.port, message.replace(line, line + b"\r\n" + line)))

    assert (response.status, server.passes) == (401, 0)


def test_path_without_secret_file_does_not_exist(server: WebhookServer) -> None:
    server.deliveries.secrets = None

    assert parse(send(server.http_server.port, build_webhook(b"no file"))).status == 404


def test_file_without_secrets_refuses_all_webhooks(server: WebhookServer) -> None:
    server.deliveries.secrets = tuple

    assert parse(send(server.http_server.port, build_webhook(b"no secret"))).status == 401


def test_webhooks_above_the_limit_are_refused() -> None:
    deliveries = WebhookDeliveries(lambda: None)
    deliveries.secrets = tuple
    app = create_app([create_webhook_route(deliveries, AddressRateLimit(2))], LIMITS, OriginRules)

    # The limit includes webhooks without a valid signature.
    assert [request(app, "/hooks", "POST", content_length="0").status_code for _ in range(3)] == [401, 401, 429]


def test_client_that_disconnects_is_no_error(server: WebhookServer) -> None:
    with capture_logs() as log_events:
        with connect(server.http_server.port) as connection:
            connection.sendall(build_webhook(b"x" * 50)[:-20])
        # The server handles this request after the disconnect.
        status = parse(send(server.http_server.port, build_webhook(b"next"))).status

    assert status == 202
    assert [item["event"] for item in log_events if item["log_level"] != "debug"] == ["webhook_accepted"]


def test_unexpected_exception_is_logged_and_the_server_continues(server: WebhookServer) -> None:
    server.error = ZeroDivisionError()
    with capture_logs() as log_events:
        first = parse(send(server.http_server.port, build_webhook(b"failing")))
        server.error = None
        second = parse(send(server.http_server.port, build_webhook(b"working")))

    assert (first.status, first.body, second.status) == (500, b"", 202)
    failed = [item for item in log_events if item["log_level"] == "error"]
    assert [(item["event"], item["method"], item["path"]) for item in failed] == [
        ("http_request_failed", "POST", "/hooks")
    ]
