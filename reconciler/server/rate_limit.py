"""A limit of requests per client address."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

from reconciler.server.request_origin import parse_address

MAX_ADDRESSES = 10_000
# Count an IPv6 network of this size as one client, because one client usually has a whole network.
_IPV6_PREFIX = 64


class AddressRateLimit:
    """Allows a number of requests per minute for each client address (a token bucket per address).

    It stores the last `MAX_ADDRESSES` addresses. All addresses of one IPv6 network count as one address.

    Args:
        per_minute: The number of requests per minute. A client can send this number at once.
        clock: Returns the seconds of a monotonic clock.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity = float(per_minute)
        self._clock = clock
        # For each address: the number of free requests, and the time of this number.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allow(self, address: str) -> bool:
        """Count a request of the address. Return False if the address has exceeded its limit."""
        key = _get_network(address)
        now = self._clock()
        free, counted_at = self._buckets.pop(key, (self._capacity, now))
        free = min(self._capacity, free + (now - counted_at) * self._capacity / 60)
        is_allowed = free >= 1
        self._buckets[key] = (free - is_allowed, now)
        if len(self._buckets) > MAX_ADDRESSES:
            self._buckets.popitem(last=False)
        return is_allowed


def _get_network(address: str) -> str:
    parsed = parse_address(address)
    if not isinstance(parsed, ipaddress.IPv6Address):
        return str(parsed)
    return str(ipaddress.ip_network((int(parsed), _IPV6_PREFIX), strict=False))
