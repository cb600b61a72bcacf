"""Digests: one short name for one value, the same whatever the order of keys."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
_CONTAINERS = (dict, list, tuple)


def canonical_json(data: Any) -> bytes:
    """Return `data` as UTF-8 JSON without blanks, keys sorted; 1 and 1.0 stay apart.

    Infinities and nan appear as Infinity, -Infinity and NaN: YAML has them, and a digest must not fail on them.
    Raises TypeError for what is no JSON data, and for keys that are not strings.
    """
    _require_text_keys(data)
    # lone surrogates can come out of JSON escapes and must not stop a digest
    return _WRITER.encode(data).encode("utf-8", "surrogatepass")


def digest(data: Any) -> str:
    """Return "sha256:" and 64 hexadecimal digits over the canonical JSON of `data`."""
    return f"sha256:{hashlib.sha256(canonical_json(data)).hexdigest()}"


def _require_text_keys(data: Any) -> None:
    # json would write 1 and "1" as one key, so that two values shared a digest
    if isinstance(data, dict):
        for key, value in data.items():
            if not isinstance(key, str):
                raise TypeError(f"keys must be strings, not {type(key).__name__}")
            if isinstance(value, _CONTAINERS):
                _require_text_keys(value)
    elif isinstance(data, list | tuple):
        for value in data:
            if isinstance(value, _CONTAINERS):
                _require_text_keys(value)
