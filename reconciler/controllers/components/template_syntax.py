"""Syntax of templates: markers, literals, and text output of values."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final

# An expression begins with this marker and ends with "}".
EXPRESSION_START: Final = "${"
# Keys with this prefix are extensions, which the reconciler ignores.
EXTENSION_PREFIX: Final = "x-"


MIN_EXPONENT_VALUE: Final = 1e15
"""Smallest absolute value of a double that is written with an exponent."""


def render_literal(value: Any) -> str:
    """Return a value as text for interpolation: a string unchanged, other values as compact JSON with sorted keys."""
    return value if isinstance(value, str) else _format_json(value)


def _format_json(value: Any) -> str:
    match value:
        case float():
            return _format_double(value)
        case list():
            return f"[{','.join(map(_format_json, value))}]"
        case dict():
            return f"{{{','.join(f'{_format_json(key)}:{_format_json(value[key])}' for key in sorted(value))}}}"
        case _:
            return json.dumps(value, ensure_ascii=False)


def _format_double(value: float) -> str:
    """Return the shortest text that parses to the same double, without a decimal point for whole numbers."""
    if abs(value) < MIN_EXPONENT_VALUE:
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    return format(Decimal(repr(value)).normalize(), "e")


def format_cel_literal(value: Any) -> str:
    """Return a JSON value as a CEL literal. Every JSON text is valid CEL."""
    return json.dumps(value, ensure_ascii=False)


def escape_template(value: Any) -> Any:
    """Return the template that renders to `value`, even if its strings look like expressions."""
    match value:
        case str():
            return f"{EXPRESSION_START}{format_cel_literal(value)}}}" if EXPRESSION_START in value else value
        case dict():
            return {escape_template(key): escape_template(item) for key, item in value.items()}
        case list():
            return [escape_template(item) for item in value]
        case _:
            return value
