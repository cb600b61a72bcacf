"""Conversion of the parameters of `helm template --set` to chart values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.cel.values import INT_MAX, INT_MIN
from reconciler.krm.helm_paths import check_option_name, parse_option_name
from reconciler.packages.charts.values import ValuesLayer

_INTEGER = re.compile(r"0|[1-9][0-9]{0,18}|[+-][0-9]{1,30}", re.ASCII)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_COMMA = re.compile(r"(?<!\\),")
_WORDS: Mapping[str, Any] = {"true": True, "false": False, "null": None}


class ParameterError(Exception):
    """A parameter that cannot be converted to a value."""


def parse_set_value(text: str) -> Any:
    """Return the value that `helm --set name=text` sets: a list for `{a,b}`, or a scalar."""
    if text.startswith("{") and text.endswith("}"):
        # Helm parses `{}` as a list with one empty text.
        return [_parse_scalar(item) for item in _COMMA.split(text[1:-1])]
    return _parse_scalar(text)


def parse_set_text(text: str) -> str:
    """Return the value that `helm --set-string name=text` sets. A backslash escapes the next character."""
    return _ESCAPE.sub(r"\1", text)


def parse_target_value(text: str) -> Any:
    """Return the value that Flux sets for `targetPath`. A value in quotes is a text.

    Raises:
        ParameterError: Helm reads the text as several parameters.
    """
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return parse_set_text(text[1:-1])
    if not text.startswith("{") and _COMMA.search(text):
        raise ParameterError("a value for targetPath must not contain a comma, because a comma ends the value in Helm")
    return parse_set_value(text)


def _parse_scalar(text: str) -> Any:
    value = parse_set_text(text)
    if value.lower() in _WORDS:
        return _WORDS[value.lower()]
    is_integer = _INTEGER.fullmatch(value) and INT_MIN <= int(value) <= INT_MAX
    return int(value) if is_integer else value


def build_parameter_layers(parameters: Iterable[tuple[str, Any]]) -> tuple[ValuesLayer, ...]:
    """Convert each parameter to a layer of chart values that contains only this parameter.

    Raises:
        ParameterError: The name of a parameter is invalid.
    """
    layers = []
    for name, value in parameters:
        if reason := check_option_name(name):
            raise ParameterError(f"the parameter name {name!r} is invalid: the name {reason}")
        layers.append(ValuesLayer("parameter", name, value, parse_option_name(name)))
    return tuple(layers)
