"""The limit of requests per client address, with a manual clock."""

from __future__ import annotations

import pytest

from reconciler.server import rate_limit
from reconciler.server.rate_limit import AddressRateLimit, RateLimit
from tests.support.manual_clock import ManualClock


def count_allowed(limit: AddressRateLimit, requests: int, address: str = "192.0.2.1") -> int:
    return sum(limit.allow(address) for _ in range(requests))


@pytest.mark.parametrize(
    ("seconds", "allowed"),
    [
        pytest.param(0.0, 0, id="at-once"),
        pytest.param(0.4, 0, id="too-early"),
        pytest.param(0.5, 1, id="time-for-one"),
        pytest.param(30.0, 60, id="half-a-minute"),
        pytest.param(3_600.0, 120, id="not-more-than-the-limit"),
    ],
)
def test_requests_after_a_burst(seconds: float, allowed: int) -> None:
    clock = ManualClock()
    limit = AddressRateLimit(120, clock)
    burst = count_allowed(limit, 130)
    clock.now += seconds

    assert (burst, count_allowed(limit, 130)) == (120, allowed)


@pytest.mark.parametrize(
    ("first", "second", "is_shared"),
    [
        pytest.param("192.0.2.1", "192.0.2.2", False, id="ipv4"),
        pytest.param("2001:db8::1", "2001:db8::ffff:2", True, id="one-ipv6-network"),
        pytest.param("2001:db8::1", "2001:db8:0:1::1", False, id="two-ipv6-networks"),
        pytest.param("::ffff:192.0.2.1", "::ffff:192.0.2.2", False, id="mapped-ipv4"),
        pytest.param("::ffff:192.0.2.1", "192.0.2.1", True, id="equal-mapped-ipv4"),
    ],
)
def test_each_network_has_its_own_limit(first: str, second: str, is_shared: bool) -> None:
    limit = AddressRateLimit(1, ManualClock())
    limit.allow(first)

    assert limit.allow(second) is not is_shared


def test_only_the_last_addresses_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "MAX_CLIENTS", 2)
    limit = AddressRateLimit(1, ManualClock())

    results = [limit.allow(address) for address in ("192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.3", "192.0.2.2")]

    assert results == [True, True, False, True, True]


def test_the_quota_of_a_client() -> None:
    clock = ManualClock()
    limit = RateLimit(120, clock)
    first = limit.count("ana")
    for _ in range(119):
        last = limit.count("ana")
    refused = limit.count("ana")
    other = limit.count("luis")
    clock.now += 1.0
    later = limit.count("ana")

    assert (first.remaining, first.reset_seconds, first.is_allowed) == (119, 1, True)
    assert (last.remaining, last.reset_seconds, last.is_allowed) == (0, 60, True)
    assert (refused.remaining, refused.wait_seconds, refused.is_allowed) == (0, 1, False)
    assert (other.remaining, later.remaining, later.is_allowed) == (119, 1, True)


def test_a_clock_that_is_set_back_changes_no_quota() -> None:
    clock = ManualClock()
    limit = RateLimit(120, clock)
    limit.count("ana")
    clock.now -= 3600.0

    assert limit.count("ana").remaining == 118
