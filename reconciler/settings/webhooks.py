"""Settings of the server that receives webhooks."""

from __future__ import annotations

from pydantic import field_validator, model_validator

from reconciler.server.address import split_address
from reconciler.settings.declaration import SettingsGroup, declare


class WebhookSettings(SettingsGroup):
    """Settings of the webhook server, to which Git hosts report changes."""

    listen: str = declare(
        "",
        "The address on which the service receives webhooks, as host:port, for example 127.0.0.1:8080. If this "
        "setting is empty, the service receives no webhooks.",
    )
    secret_file: str = declare(
        "",
        "The file with the secrets of the webhook signatures, one secret per line. The service reads the file again "
        "after a change.",
    )
    gather_seconds: float = declare(
        2.0,
        "The time that the service waits for more webhooks before it starts a pass, in seconds. Because of this "
        "time, several webhooks of one push start only one pass.",
        ge=0,
        le=60,
    )

    @field_validator("listen")
    @classmethod
    def _check_address(cls, value: str) -> str:
        if value:
            split_address(value)
        return value

    @model_validator(mode="after")
    def _check_secret_file(self) -> WebhookSettings:
        if self.listen and not self.secret_file:
            raise ValueError(
                "must contain `secret_file` if `listen` is set, because the server accepts only signed webhooks"
            )
        return self
