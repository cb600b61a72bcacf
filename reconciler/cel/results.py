"""Conversion of the results of expressions to YAML data."""

from __future__ import annotations

import math
from typing import Any

from reconciler.cel.values import OMIT, CelOptional, Uint
from reconciler.krm.field_text import quote_value


class ResultConversionError(ValueError):
    """The result of an expression cannot be converted to YAML data. The error text contains a solution.

    Attributes:
        is_about_key: Whether a key of a map is invalid.
    """

    def __init__(self, text: str, *, is_about_key: bool = False) -> None:
        super().__init__(text)
        self.is_about_key = is_about_key


def convert_to_data(value: Any) -> Any:
    """Convert a CEL value to YAML data. Return `OMIT` unchanged.

    Raises:
        ResultConversionError: The value cannot be written in YAML, e.g. a timestamp.
    """
    match value:
        case str() | bool() | None:
            return value
        case Uint():
            return int(value)
        case int():
            return value
        case float() if math.isfinite(value):
            return value
        case list():
            return [convert_to_data(item) for item in value]
        case dict():
            return {_convert_key(key): convert_to_data(item) for key, item in value.items()}
        case _ if value is OMIT:
            return value
        case _:
            raise _build_conversion_error(value)


def _convert_key(key: Any) -> str:
    if isinstance(key, str):
        return key
    message = f"the keys of a map must be strings, but one key is {quote_value(key)}; use string()"
    raise ResultConversionError(message, is_about_key=True)


def _build_conversion_error(value: Any) -> ResultConversionError:
    if isinstance(value, float):
        return ResultConversionError("the result must be a finite number")
    if isinstance(value, CelOptional):
        return ResultConversionError("the result must not be an optional value; append .orValue(…)")
    message = "the result must be a YAML value, not bytes, a timestamp, a duration or a type; use string()"
    return ResultConversionError(message)
