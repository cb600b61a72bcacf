"""Settings of the HTTP server of the service."""

from __future__ import annotations

from pydantic import field_validator

from reconciler.server.address import split_address
from reconciler.settings.declaration import SettingsGroup, declare


class ServerSettings(SettingsGroup):
    """The HTTP server of the service: health checks and webhooks."""

    listen: str = declare(
        "127.0.0.1:8080",
        "The address on which the service listens, as host:port, for example 0.0.0.0:8080. Port 0 selects any free "
        "port. If this setting is empty, the service has no HTTP server. If this setting is not set and another "
        "process uses the default address, the service logs a warning and has no HTTP server.",
    )

    @field_validator("listen")
    @classmethod
    def _check_address(cls, value: str) -> str:
        if value:
            split_address(value)
        return value
