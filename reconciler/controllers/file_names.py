"""File names of resources in packages in which each resource has its own file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from reconciler.krm.objects import ObjectKey

MAX_FILE_NAME_LENGTH = 255
_INVALID_IN_NAME = re.compile(r"[^A-Za-z0-9._-]")
# Escape "-" and "." in a kind, because these characters separate the kind from the rest of the file name.
_INVALID_IN_KIND = re.compile(r"[^a-z0-9]")


def assign_file_names(keys: Iterable[ObjectKey]) -> Mapping[ObjectKey, str]:
    """Return a unique file name for each resource of a package.

    If several resources would have the same short file name, their file names include the API group.
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
    """Return the file name with the kind and name of a resource, e.g. "configmap-web.yaml"."""
    return f"{_format_kind(key)}-{_escape(key.name)}.yaml"


def format_full_file_name(key: ObjectKey) -> str:
    """Return the file name with kind, API group and name, e.g. "deployment.apps-web.yaml".

    If the resource is in the core group, return the short file name.
    """
    return (
        f"{_format_kind(key)}.{_escape(key.group)}-{_escape(key.name)}.yaml"
        if key.group
        else format_short_file_name(key)
    )


def _format_kind(key: ObjectKey) -> str:
    return _escape(key.kind.lower(), _INVALID_IN_KIND)


def _escape(text: str, invalid: re.Pattern[str] = _INVALID_IN_NAME) -> str:
    return invalid.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), text)
