"""Metrics of requests to forges: results, and the rate limits that responses contain."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from reconciler.forge.errors import ForgeError
from reconciler.forge.http_client import ForgeClient
from reconciler.forge.rate_limits import RateLimiter
from reconciler.telemetry.metrics import REGISTRY
from tests.support.metric_samples import read_metric


@pytest.fixture(autouse=True)
def _export() -> Iterator[None]:
    with REGISTRY.export():
        yield


def get(response: httpx.Response | httpx.HTTPError) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        if isinstance(response, httpx.HTTPError):
            raise response
        return response

    transport = httpx.MockTransport(answer)
    client = ForgeClient("https://forge.example/api", dict, RateLimiter(0, 0, lambda: 0.0), lambda: 0.0, transport)
    try:
        client.get("/pulls")
    except ForgeError:
        return
    finally:
        client.close()


@pytest.mark.parametrize(
    ("response", "status_class"),
    [
        pytest.param(httpx.Response(200, json=[]), "2xx", id="success"),
        pytest.param(httpx.Response(404, json={}), "4xx", id="missing"),
        pytest.param(httpx.Response(503), "5xx", id="unavailable"),
        pytest.param(httpx.ConnectError("no route"), "error", id="no-response"),
    ],
)
def test_requests_are_counted(response: httpx.Response | httpx.HTTPError, status_class: str) -> None:
    get(response)

    assert read_metric("reconciler_forge_requests_total") == {
        f'{{host="forge.example",operation="get",status_class="{status_class}"}}': 1
    }


@pytest.mark.parametrize(
    ("headers", "resource", "remaining", "reset"),
    [
        pytest.param(
            {"X-RateLimit-Remaining": "42", "X-RateLimit-Reset": "1700000000", "X-RateLimit-Resource": "search"},
            "search", 42, 1_700_000_000, id="github",
        ),
        pytest.param({"RateLimit-Remaining": "7", "RateLimit-Reset": "1700000000"}, "core", 7, 1_700_000_000, id="gitlab"),
    ],
)  # fmt: skip
def test_rate_limits_are_exported(headers: dict[str, str], resource: str, remaining: int, reset: int) -> None:
    get(httpx.Response(200, json=[], headers=headers))

    labels = f'{{host="forge.example",resource="{resource}"}}'
    assert read_metric("reconciler_forge_rate_limit_remaining") == {labels: remaining}
    assert read_metric("reconciler_forge_rate_limit_reset_timestamp_seconds") == {labels: reset}


def test_expiry_of_a_token_of_github_is_exported() -> None:
    get(httpx.Response(200, json=[], headers={"GitHub-Authentication-Token-Expiration": "2027-01-15 08:00:00 UTC"}))

    assert read_metric("reconciler_credential_expiry_timestamp_seconds") == {
        '{remote="forge.example",use="api"}': 1_800_000_000
    }


@pytest.mark.parametrize("value", ["", "-1", "many", "1.5"])
def test_other_values_are_ignored(value: str) -> None:
    get(httpx.Response(200, json=[], headers={"X-RateLimit-Remaining": value}))

    assert read_metric("reconciler_forge_rate_limit_remaining") == {}
