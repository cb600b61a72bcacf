"""Secrets: what holds a value that nobody may read, and how it is shown (design 10.29)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

MASK = "*****"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
VALUE_FIELDS = ("data", "stringData")
_ANNOTATIONS = ("metadata", "annotations")
_WRITTEN_SECRET = re.compile(r"""kind["']?\s*:\s*["']?Secret\b""")


def is_secret(data: object) -> bool:
    """Tell whether the data is a core Secret."""
    return isinstance(data, Mapping) and data.get("kind") == "Secret" and "/" not in str(data.get("apiVersion", ""))


def holds_secret(data: object) -> bool:
    """Tell whether the data is a Secret or holds one, as an item of a List or as the text of a manifest."""
    if isinstance(data, str):
        return writes_secret(data)
    if isinstance(data, Mapping):
        return is_secret(data) or any(map(holds_secret, data.values()))
    return isinstance(data, list) and any(map(holds_secret, data))


def is_secret_path(path: Sequence[str | int]) -> bool:
    """Tell whether a field of a Secret holds its values: data, stringData, or kubectl's copy of them.

    The annotations as a whole count, too: when they come or go together, the copy may be among them.
    """
    return path[0] in VALUE_FIELDS or path[-1] == LAST_APPLIED or tuple(path) == _ANNOTATIONS


def is_secret_value(data: object, path: Sequence[str | int]) -> bool:
    """Tell whether what is, or was, at a path of the data is a value of a Secret: the data, or one that it holds."""
    inside: object = data
    for number, step in enumerate(path):
        if is_secret(inside) and is_secret_path(path[number:]):
            return True
        inside = _part(inside, step)
    return False


def _part(data: object, step: str | int) -> object:
    if isinstance(data, Mapping):
        return data.get(step)
    return data[step] if isinstance(data, list) and isinstance(step, int) and 0 <= step < len(data) else None


def writes_secret(text: str) -> bool:
    """Tell whether a text that is not read as data may be the manifest of a Secret."""
    return _WRITTEN_SECRET.search(text) is not None
