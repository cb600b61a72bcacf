"""Syntax of templates: literals in expressions, and conversion of values to text."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final

from reconciler.api.openchoreo import EXPRESSION_START

MIN_EXPONENT_VALUE: Final = 1e15
"""Smallest absolute value of a double that is written with an exponent."""


def render_literal(value: Any) -> str:
    """Convert a value to text. A string is returned unchanged. Other values become compact JSON with sorted keys."""
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
    """Return the shortest text that parses to the same number. A whole number has no decimal point."""
    if abs(value) < MIN_EXPONENT_VALUE:
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    return format(Decimal(repr(value)).normalize(), "e")


def format_cel_literal(value: Any) -> str:
    """Convert a JSON value to a CEL literal. The result is JSON, because all JSON values are valid CEL literals."""
    return json.dumps(value, ensure_ascii=False)


def escape_template(value: Any) -> Any:
    """Return a template that renders to `value`, even if a string in `value` contains `${`."""
    match value:
        case str():
            return f"{EXPRESSION_START}{format_cel_literal(value)}}}" if EXPRESSION_START in value else value
        case dict():
            return {escape_template(key): escape_template(item) for key, item in value.items()}
        case list():
            return [escape_template(item) for item in value]
        case _:
            return value
