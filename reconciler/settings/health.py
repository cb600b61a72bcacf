"""Settings of the health checks."""

from __future__ import annotations

from reconciler.settings.declaration import SettingsGroup, declare


class HealthSettings(SettingsGroup):
    """The health checks of the HTTP server: when the service counts as stuck, and when its last pass is too old."""

    stuck_after_seconds: int = declare(
        0,
        "The time without any progress after which /healthz reports that the process is stuck, in seconds. 0 means "
        "2 * git.timeout_seconds + functions.timeout_seconds, but at least 600 and rendering.timeout_seconds.",
        ge=0,
    )
    stale_after_seconds: int = declare(
        0,
        "The time without a completed pass after which /readyz reports PassStale, in seconds. 0 means "
        "3 * poll_seconds plus the duration of the longest pass of the last hour, but at least 300.",
        ge=0,
    )
