"""The effective settings for the console, with their origins and without credentials."""

from __future__ import annotations

import json
from collections.abc import Iterator

from reconciler.redaction import redact_data
from reconciler.server.console.shown_settings import ShownSetting
from reconciler.settings import Settings
from reconciler.settings.declaration import SettingOrigins, SettingPath, SettingsGroup


def list_shown_settings(settings: Settings) -> tuple[ShownSetting, ...]:
    """Return all settings, sorted by name. For secrets, settings contain only the names of files with the secrets."""
    found = _list_settings(settings, settings.origins, (), is_set=True)
    return tuple(sorted(found, key=lambda setting: ("." in setting.name, setting.name)))


def _list_settings(
    group: SettingsGroup, origins: SettingOrigins, path: SettingPath, *, is_set: bool
) -> Iterator[ShownSetting]:
    for name, declaration in type(group).model_fields.items():
        value, location = getattr(group, name), (*path, name)
        has_value = is_set and name in group.model_fields_set
        if isinstance(value, SettingsGroup):
            yield from _list_settings(value, origins, location, is_set=has_value)
        else:
            origin, source = origins.find(location) if has_value else ("default", "")
            text = _format_value(group, name)
            yield ShownSetting(".".join(location), text, origin, source, declaration.description or "")


def _format_value(group: SettingsGroup, name: str) -> str:
    data = group.model_dump(mode="json", include={name}, exclude_unset=name in group.model_fields_set)
    return json.dumps(redact_data(data[name]), ensure_ascii=False)
