"""Settings of webhooks."""

from __future__ import annotations

from pydantic import model_validator

from reconciler.settings.declaration import ListenAddress, SettingsGroup, declare


class WebhookSettings(SettingsGroup):
    """Settings of webhooks, with which Git hosts report changes to the HTTP server."""

    listen: ListenAddress = declare(
        "",
        "Deprecated: use `server.listen`. The address of the HTTP server, as host:port. If this setting is not empty, "
        "it overrides `server.listen`.",
    )
    secret_file: str = declare(
        "",
        "The file with the secrets of the webhook signatures, one secret per line. The service reads the file again "
        "after a change. If this setting is empty, the service receives no webhooks.",
    )
    gather_seconds: float = declare(
        2.0,
        "The time that the service waits for more webhooks before it starts a pass, in seconds. Because of this "
        "time, several webhooks of one push start only one pass.",
        ge=0,
        le=60,
    )

    @model_validator(mode="after")
    def _check_secret_file(self) -> WebhookSettings:
        if self.listen and not self.secret_file:
            raise ValueError(
                "must contain `secret_file` if `listen` is set, because the server accepts only signed webhooks"
            )
        return self
