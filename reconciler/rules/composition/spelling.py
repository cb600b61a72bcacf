"""The text of a value that goes into other text, in one spelling for everybody (openchoreo 5.2)."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final

PLAIN_BELOW: Final = 1e15
"""Doubles from here on are spelled with an exponent, and those below never."""


def spell(value: Any) -> str:
    """Return the text of data as JSON has it: a string as it is, lists and maps as compact JSON with sorted keys."""
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    match value:
        case float():
            return _double(value)
        case list():
            return f"[{','.join(map(_json, value))}]"
        case dict():
            return f"{{{','.join(f'{_json(key)}:{_json(value[key])}' for key in sorted(value))}}}"
        case _:
            return json.dumps(value, ensure_ascii=False)


def _double(value: float) -> str:
    """Spell a double as short as it can be and still be read back as itself, without a point where it is whole."""
    if abs(value) < PLAIN_BELOW:
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    return format(Decimal(repr(value)).normalize(), "e")
