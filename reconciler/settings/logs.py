"""Settings of the log."""

from __future__ import annotations

from typing import Literal

from reconciler.settings.declaration import SettingsGroup, declare


class LogSettings(SettingsGroup):
    """Level and format of the log."""

    level: Literal["debug", "info", "warning", "error"] = declare(
        "info", "The lowest level of the events that the service logs."
    )
    format: Literal["auto", "json", "text"] = declare(
        "auto", "The log format. `auto` is `text` on a terminal, and `json` otherwise."
    )
    heartbeat_seconds: float = declare(
        300.0,
        "The time in seconds between two log events `heartbeat`. The service logs this event while its "
        "passes change nothing. 0 means that the service logs no heartbeats.",
        ge=0,
    )
