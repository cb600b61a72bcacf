"""File names for resources that are written one per file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from reconciler.krm.objects import ObjectKey

MAX_FILE_NAME_LENGTH = 255
_INVALID_IN_NAME = re.compile(r"[^A-Za-z0-9._-]")
# No "-" and no ".", because they separate the kind from the following part of the name.
_INVALID_IN_KIND = re.compile(r"[^a-z0-9]")


def assign_file_names(keys: Iterable[ObjectKey]) -> Mapping[ObjectKey, str]:
    """Return the file name of each resource of a package.

    If two resources would get the same name, the names of those with an API group include the group.
    """
    keys = list(keys)
    name_counts = Counter(map(format_short_file_name, keys))
    return {
        key: format_short_file_name(key)
        if name_counts[format_short_file_name(key)] == 1
        else format_full_file_name(key)
        for key in keys
    }


def format_short_file_name(key: ObjectKey) -> str:
    """Return the file name from kind and name."""
    return f"{_format_kind(key)}-{_escape(key.name)}.yaml"


def format_full_file_name(key: ObjectKey) -> str:
    """Return the file name from kind, API group and name; without a group the short file name."""
    return (
        f"{_format_kind(key)}.{_escape(key.group)}-{_escape(key.name)}.yaml"
        if key.group
        else format_short_file_name(key)
    )


def _format_kind(key: ObjectKey) -> str:
    return _escape(key.kind.lower(), _INVALID_IN_KIND)


def _escape(text: str, invalid: re.Pattern[str] = _INVALID_IN_NAME) -> str:
    return invalid.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), text)
