"""Texts of messages about fields: paths, values, and the most similar name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from reconciler.krm.yaml import DataPath

_MAX_VALUE_LENGTH = 80
_MAX_COMPARED = 200


def format_field_path(path: DataPath) -> str:
    """Return a path in the notation of messages, for example `spec.overrideRules[2].overriders`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def suggest_name(name: str, known: Sequence[str]) -> str:
    """Return "; did you mean NAME?" for the most similar known name, or "" if no name is similar."""
    # The comparison is too slow for very many names.
    nearest = get_close_matches(name, known, 1) if len(known) <= _MAX_COMPARED else []
    return f"; did you mean {nearest[0]}?" if nearest else ""


def describe_value(value: object) -> str:
    """Return a value for messages about wrong types. The content of a list or mapping is not shown."""
    if isinstance(value, list | Mapping) and value:
        return "a list" if isinstance(value, list) else "a mapping"
    return quote_value(value)


def quote_value(value: object) -> str:
    """Return a value as compact JSON, shortened to a maximum length."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[: _MAX_VALUE_LENGTH - 1]}…"
