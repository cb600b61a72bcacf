"""Digests: one short name for one value, the same whatever the order of keys."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_SCALARS = (str, int, float, bool, None.__class__)
_WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


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
    for key in data if isinstance(data, dict) else ():
        if not isinstance(key, str):
            raise TypeError(f"keys must be strings, not {type(key).__name__}")
    for value in data.values() if isinstance(data, dict) else data if isinstance(data, list | tuple) else ():
        if value.__class__ not in _SCALARS:
            _require_text_keys(value)
