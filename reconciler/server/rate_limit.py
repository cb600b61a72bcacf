"""Limits of requests per client."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

from reconciler.lazy_dataclasses import dataclass
from reconciler.server.request_origin import parse_address

MAX_CLIENTS = 10_000
# Count an IPv6 network of this size as one client, because one client usually has a whole network.
_IPV6_PREFIX = 64
WINDOW_SECONDS = 60


@dataclass(frozen=True)
class RequestQuota:
    """The number of requests that a client can send.

    Attributes:
        is_allowed: Whether the current request is within the limit.
        limit: The number of requests per minute.
        remaining: The number of requests that the client can send now.
        reset_seconds: The time after which the client can send `limit` requests at once.
        wait_seconds: The time after which the client can send the next request.
    """

    is_allowed: bool
    limit: int
    remaining: int
    reset_seconds: int
    wait_seconds: int


class RateLimit:
    """Allows a number of requests per minute for each client (a token bucket per client). The object is thread-safe.

    It stores the last `MAX_CLIENTS` clients.

    Args:
        per_minute: The number of requests per minute. A client can send this number at once.
        clock: Returns seconds. A clock that is set back does not reduce the quota of a client.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = per_minute
        self._clock = clock
        self._lock = Lock()
        # For each client: the number of requests that it can still send, and the time at which this number was
        # computed.
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def count(self, client: Hashable) -> RequestQuota:
        """Count a request of the client, and return its quota. A refused request does not reduce the quota."""
        with self._lock:
            now = self._clock()
            free, counted_at = self._buckets.pop(client, (float(self._limit), now))
            free = min(self._limit, free + max(now - counted_at, 0.0) * self._limit / WINDOW_SECONDS)
            is_allowed = free >= 1
            free -= is_allowed
            self._buckets[client] = (free, now)
            if len(self._buckets) > MAX_CLIENTS:
                self._buckets.popitem(last=False)
        seconds_per_request = WINDOW_SECONDS / self._limit
        return RequestQuota(
            is_allowed,
            self._limit,
            int(free),
            math.ceil((self._limit - free) * seconds_per_request),
            math.ceil(max(1 - free, 0) * seconds_per_request),
        )


class AddressRateLimit:
    """Allows a number of requests per minute for each client address.

    All addresses of one IPv6 network count as one address.

    Args:
        per_minute: The number of requests per minute. A client can send this number at once.
        clock: Returns seconds. A clock that is set back does not reduce the quota of a client.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = RateLimit(per_minute, clock)

    def allow(self, address: str) -> bool:
        """Count a request of the address. Return False if the address has exceeded its limit."""
        return self._limit.count(_get_network(address)).is_allowed


def _get_network(address: str) -> str:
    parsed = parse_address(address)
    if not isinstance(parsed, ipaddress.IPv6Address):
        return str(parsed)
    return str(ipaddress.ip_network((int(parsed), _IPV6_PREFIX), strict=False))
