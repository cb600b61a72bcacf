"""Settings of the web console."""

from __future__ import annotations

from reconciler.settings.declaration import SettingsGroup, declare


class ConsoleSettings(SettingsGroup):
    """The web console, which the HTTP server of the service serves. People review drafts with it."""

    enabled: bool = declare(
        False,
        "Whether the service serves the console. Without authentication, the console requires a listen address of "
        "this machine, such as 127.0.0.1:8080.",
    )
