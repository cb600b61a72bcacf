"""Dates: how a moment is written. It is always handed in; nothing here knows what time it is."""

from __future__ import annotations

from datetime import UTC, datetime

_LAST_SECOND = 253402300799  # 9999-12-31T23:59:59Z, the last one that RFC 3339 can write


def rfc3339(seconds: int) -> str:
    """Return seconds since 1970 as RFC 3339 in UTC, to the second, as Kubernetes writes times.

    What lies outside of 1970 to 9999 is clamped: commit dates come from other people's tools (git.md, finding 9).
    """
    moment = datetime.fromtimestamp(min(max(seconds, 0), _LAST_SECOND), UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
