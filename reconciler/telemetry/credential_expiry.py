"""The times at which credentials expire, as a metric and for notifications."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.telemetry import metrics

_expiries: dict[tuple[str, str], float] = {}


def record_credential_expiry(remote: str, use: str, seconds: float) -> None:
    """Record when a credential expires, in seconds since 1970. 0 means that the time is unknown.

    Args:
        use: One of `metrics.CREDENTIAL_USES`.
    """
    _expiries[remote, use] = seconds
    metrics.CREDENTIAL_EXPIRY.set(seconds, remote, use)


def list_credential_expiries() -> Mapping[tuple[str, str], float]:
    """Return the known expiry times, by remote and use."""
    return {key: seconds for key, seconds in list(_expiries.items()) if seconds}
