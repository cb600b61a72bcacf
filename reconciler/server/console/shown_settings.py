"""The effective settings of the service, as the console shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, get_args

from starlette.datastructures import QueryParams

from reconciler.lazy_dataclasses import dataclass
from reconciler.server.console.listing import read_choice, read_text

SettingOrigin = Literal["default", "file", "environment", "option"]
SETTING_ORIGINS: tuple[SettingOrigin, ...] = get_args(SettingOrigin)


@dataclass(frozen=True)
class ShownSetting:
    """A setting with its value.

    Attributes:
        name: The groups and the name, such as `git.author`.
        value: The value as JSON text, without credentials.
        source: The file with the line, the environment variable or the option. "" for a default.
    """

    name: str
    value: str
    origin: SettingOrigin
    source: str
    description: str


def filter_settings(settings: Iterable[ShownSetting], query: QueryParams) -> Iterator[ShownSetting]:
    """Yield the settings that match the query parameters `q` and `origin`."""
    text, origin = read_text(query, "q").lower(), read_choice(query, "origin", SETTING_ORIGINS)
    for setting in settings:
        has_text = not text or text in f"{setting.name} {setting.value} {setting.source} {setting.description}".lower()
        if has_text and origin in ("", setting.origin):
            yield setting
