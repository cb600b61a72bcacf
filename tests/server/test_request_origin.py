"""The allowed hosts of requests, and the client address behind reverse proxies."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from reconciler.server.request_origin import OriginCheck, OriginRules, build_origin_rules

LOOPBACK = build_origin_rules("127.0.0.1:8080", ["Console.internal"], "https://Reconciler.example.com:8443/x", [])
ALL_ADDRESSES = build_origin_rules("0.0.0.0:8080", [], "", [])
ONE_NAME = build_origin_rules("web.internal:8080", [], "", [])


@pytest.mark.parametrize(
    ("rules", "host", "is_allowed"),
    [
        pytest.param(LOOPBACK, "127.0.0.1:8080", True, id="address"),
        pytest.param(LOOPBACK, "127.0.0.1", True, id="address-without-a-port"),
        pytest.param(LOOPBACK, "localhost:9000", True, id="forwarded-port"),
        pytest.param(LOOPBACK, "[::1]:8080", True, id="ipv6-loopback"),
        pytest.param(LOOPBACK, "reconciler.example.com", True, id="external-url"),
        pytest.param(LOOPBACK, "RECONCILER.example.com:443", True, id="other-case"),
        pytest.param(LOOPBACK, "console.internal", True, id="additional-host"),
        pytest.param(LOOPBACK, "attacker.example.com:8080", False, id="rebound-name"),
        pytest.param(LOOPBACK, "10.1.2.3:8080", False, id="other-address"),
        pytest.param(LOOPBACK, "localhost.example.com", False, id="longer-name"),
        pytest.param(LOOPBACK, "", False, id="no-host"),
        pytest.param(LOOPBACK, "attacker@127.0.0.1", True, id="user-info-is-ignored"),
        pytest.param(LOOPBACK, "[::1", False, id="invalid-host"),
        pytest.param(ALL_ADDRESSES, "10.1.2.3:8080", True, id="address-of-a-pod"),
        pytest.param(ALL_ADDRESSES, "[fd00::1]:8080", True, id="ipv6-address-of-a-pod"),
        pytest.param(ALL_ADDRESSES, "localhost:8080", True, id="port-forwarding"),
        pytest.param(ALL_ADDRESSES, "attacker.example.com:8080", False, id="rebound-name-of-a-pod"),
        pytest.param(ONE_NAME, "web.internal:8080", True, id="listening-name"),
        pytest.param(ONE_NAME, "localhost:8080", False, id="loopback-of-another-name"),
    ],
)
def test_host(rules: OriginRules, host: str, is_allowed: bool) -> None:
    assert rules.allows_host(host) is is_allowed


def pass_through(rules: OriginRules, path: str = "/", client: str = "10.0.0.1", **headers: str) -> Scope | int:
    """Return the scope that the application receives, or the status of the response."""
    received: list[Scope] = []
    sent: list[Message] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        received.append(scope)

    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    fields = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    scope = {"type": "http", "path": path, "headers": fields, "client": (client, 5), "scheme": "http"}
    asyncio.run(OriginCheck(app, lambda: rules)(scope, receive, send))
    return received[0] if received else int(sent[0]["status"])


@pytest.mark.parametrize(
    ("path", "status"),
    [
        pytest.param("/", 421, id="page"),
        pytest.param("/api/v1/status", 421, id="api"),
        pytest.param("/healthz/", 421, id="longer-path"),
        pytest.param("/healthz", 200, id="liveness"),
        pytest.param("/readyz", 200, id="readiness"),
        pytest.param("/metrics", 200, id="metrics"),
        pytest.param("/hooks", 200, id="webhooks"),
    ],
)
def test_other_host_is_allowed_only_for_some_paths(path: str, status: int) -> None:
    result = pass_through(LOOPBACK, path, host="attacker.example.com")

    assert (result if isinstance(result, int) else 200) == status


PROXIES = ["10.0.0.0/8", "fd00::/8"]


@pytest.mark.parametrize(
    ("proxies", "client", "forwarded", "protocol", "expected"),
    [
        pytest.param(PROXIES, "10.0.0.1", "203.0.113.9", "https", ("203.0.113.9", "https"), id="one-proxy"),
        pytest.param(PROXIES, "10.0.0.1", "203.0.113.9, 10.0.0.2", "https", ("203.0.113.9", "https"), id="two-proxies"),
        pytest.param(
            PROXIES, "10.0.0.1", "203.0.113.9, 10.0.0.2", "https, http", ("203.0.113.9", "https"), id="two-protocols"
        ),
        pytest.param(PROXIES, "10.0.0.1", "1.1.1.1, 203.0.113.9", "ftp, http", ("203.0.113.9", "http"), id="forged"),
        pytest.param(PROXIES, "10.0.0.1", "203.0.113.9, unknown", "", ("10.0.0.1", "http"), id="no-address"),
        pytest.param(PROXIES, "10.0.0.1", "", "", ("10.0.0.1", "http"), id="empty"),
        pytest.param(PROXIES, "10.0.0.1", "", "https", ("10.0.0.1", "https"), id="protocol-only"),
        pytest.param(PROXIES, "10.0.0.1", "10.0.0.3, 10.0.0.2", "https", ("10.0.0.3", "https"), id="only-proxies"),
        pytest.param(PROXIES, "fd00::1", "2001:db8::9", "https", ("2001:db8::9", "https"), id="ipv6"),
        pytest.param(PROXIES, "::ffff:10.0.0.1", "203.0.113.9", "https", ("203.0.113.9", "https"), id="mapped-ipv4"),
        pytest.param(PROXIES, "192.0.2.1", "203.0.113.9", "https", ("192.0.2.1", "http"), id="other-client"),
        pytest.param([], "10.0.0.1", "203.0.113.9", "https", ("10.0.0.1", "http"), id="no-proxies"),
    ],
)
def test_client_behind_proxies(
    proxies: list[str], client: str, forwarded: str, protocol: str, expected: tuple[str, str]
) -> None:
    rules = build_origin_rules("localhost:1", [], "", proxies)
    headers = {"x_forwarded_for": forwarded, "x_forwarded_proto": protocol, "host": "localhost"}

    scope = pass_through(rules, "/", client, **headers)

    assert not isinstance(scope, int)
    assert (scope["client"][0], scope["scheme"]) == expected
