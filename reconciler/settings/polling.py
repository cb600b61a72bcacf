"""Settings of the time between passes. They are at the top level of the settings file."""

from __future__ import annotations

from reconciler.settings.declaration import SettingsGroup, declare


class PollingSettings(SettingsGroup):
    """The time between two passes of the service, and the pauses after failures."""

    poll_seconds: float = declare(60.0, "The time between two passes of the service, in seconds.", gt=0)
    poll_jitter_percent: int = declare(
        10,
        "The largest random change of poll_seconds in both directions, in percent. Because of this change, several "
        "daemons do not poll at the same time.",
        ge=0,
        le=100,
    )
    max_backoff_seconds: float = declare(
        900.0,
        "The longest pause after failures of one remote, in seconds. The pause doubles after each failure until it "
        "reaches this limit.",
        gt=0,
    )
