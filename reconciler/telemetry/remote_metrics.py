"""Metrics of Git requests by remote. The label of a remote is its host, or its host and path."""

from __future__ import annotations

from typing import Literal

from reconciler.telemetry import metrics

RemoteLabel = Literal["host", "repository"]
LOCAL_HOST = "local"

_label: RemoteLabel = "host"


def select_remote_label(label: RemoteLabel) -> None:
    """Use this label for all remotes. If the label changes, the metrics of all remotes start again with 0."""
    global _label  # noqa: PLW0603 - a process has one set of metrics
    if label != _label:
        _label = label
        metrics.REGISTRY.clear_limited_series(metrics.REMOTES)


def format_remote(host: str, path: str) -> str:
    """Return the label of a remote. `host` is "" if the repository is on this machine."""
    name = host or LOCAL_HOST
    return name if _label == "host" else f"{name}/{path}"


def record_git_request(remote: str, operation: str, result: str, seconds: float, now: float) -> None:
    """Record one call of git that contacts a remote.

    Args:
        remote: The label of the remote.
        operation: One of `metrics.GIT_OPERATIONS`.
        result: One of `metrics.GIT_RESULTS`.
        now: The time of the end of the call, in seconds since 1970.
    """
    metrics.GIT_REQUEST_DURATION.observe(seconds, remote, operation)
    metrics.GIT_REQUESTS.add(remote, operation, result)
    if result == "ok":
        metrics.REMOTE_LAST_SUCCESS.set(now, remote, operation)
