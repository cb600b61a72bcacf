"""The number of allowed requests and the clock of a forge, as the headers of its responses report them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import httpx
import pytest

from reconciler.forge.errors import ForgeError
from reconciler.forge.http_client import ForgeClient
from reconciler.forge.rate_limits import ForgeQuota, RateLimiter
from reconciler.forge.responses import read_quota

NOW = 1_700_000_000  # 2023-11-14 22:13:20 UTC
GITHUB = {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "4987", "x-ratelimit-reset": "1700003600"}
GITLAB = {"ratelimit-limit": "2000", "ratelimit-remaining": "1999", "ratelimit-reset": "1700000060"}


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param(GITHUB, ForgeQuota(5000, 4987, 1700003600), id="github"),
        pytest.param(GITLAB, ForgeQuota(2000, 1999, 1700000060), id="gitlab"),
        pytest.param({"date": "Tue, 14 Nov 2023 22:13:25 GMT"}, ForgeQuota(clock_difference=5), id="clock-only"),
        pytest.param(
            {"github-authentication-token-expiration": "2023-11-15 00:00:00 UTC"},
            ForgeQuota(token_expires_at=1_700_006_400),
            id="token-expiry",
        ),
        pytest.param(
            {"github-authentication-token-expiration": "2023-11-14 16:00:00 -0800"},
            ForgeQuota(token_expires_at=1_700_006_400),
            id="token-expiry-with-an-offset",
        ),
        pytest.param({"github-authentication-token-expiration": "never"}, ForgeQuota(), id="unreadable-expiry"),
        pytest.param({"date": "yesterday", "x-ratelimit-limit": "many"}, ForgeQuota(), id="unreadable"),
        pytest.param({}, ForgeQuota(), id="none"),
    ],
)
def test_headers_of_forges(headers: Mapping[str, str], expected: ForgeQuota) -> None:
    assert read_quota(headers, NOW) == expected


@pytest.mark.parametrize("status", [200, 404])
def test_client_records_the_quota_of_each_response(status: int) -> None:
    limiter = RateLimiter(0, 0, lambda: NOW)
    transport = httpx.MockTransport(lambda _: httpx.Response(status, json={}, headers=GITHUB))
    client = ForgeClient("https://api.example.com", dict, limiter, lambda: NOW, transport)

    with suppress(ForgeError):
        client.get("/repos/acme/fleet")

    assert limiter.quota == ForgeQuota(5000, 4987, 1700003600)


@pytest.mark.parametrize(("token", "expected"), [("ghp_person", 1_700_006_400), ("ghs_app", None)])
def test_expiry_of_a_token_that_the_reconciler_renews_is_ignored(token: str, expected: int | None) -> None:
    limiter = RateLimiter(0, 0, lambda: NOW)
    headers = {"github-authentication-token-expiration": "2023-11-15 00:00:00 UTC"}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json={}, headers=headers))
    authorize = {"Authorization": f"Bearer {token}"}
    client = ForgeClient("https://api.example.com", lambda: authorize, limiter, lambda: NOW, transport)

    client.get("/repos/acme/fleet")

    assert limiter.quota.token_expires_at == expected
