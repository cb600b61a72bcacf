"""The webhook server of the service, as the settings describe it."""

from __future__ import annotations

from pathlib import Path

from reconciler.server.address import ListenError
from reconciler.server.http_server import WebhookServer
from reconciler.settings import Settings, SettingsError


def start_webhook_server(webhooks: WebhookServer, settings: Settings) -> None:
    """Start the webhook server, move it to another address, or stop it, as the settings require.

    Raises:
        SettingsError: The address or the secret file cannot be used.
    """
    options = settings.webhooks
    try:
        webhooks.listen(options.listen, Path(options.secret_file).expanduser())
    except ListenError as error:
        raise SettingsError(str(error)) from error
