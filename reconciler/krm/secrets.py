"""Secrets: what holds a value that nobody may read, and how it is shown (design 10.29)."""

from __future__ import annotations

import re
from collections.abc import Mapping

MASK = "*****"
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


def writes_secret(text: str) -> bool:
    """Tell whether a text that is not read as data may be the manifest of a Secret."""
    return _WRITTEN_SECRET.search(text) is not None
