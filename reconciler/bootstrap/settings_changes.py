"""Comparison of the settings before and after a reload."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.settings.declaration import SettingsGroup


def list_changed_settings(before: SettingsGroup, after: SettingsGroup) -> tuple[str, ...]:
    """Return the names of the settings whose values differ, for example `log.level`. The result contains no values."""
    return tuple(_compare(before, after, ""))


def _compare(before: SettingsGroup, after: SettingsGroup, prefix: str) -> Iterator[str]:
    for name in type(before).model_fields:
        old, new = getattr(before, name), getattr(after, name)
        if isinstance(old, SettingsGroup) and isinstance(new, SettingsGroup):
            yield from _compare(old, new, f"{prefix}{name}.")
        elif old != new:
            yield f"{prefix}{name}"
