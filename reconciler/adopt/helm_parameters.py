"""Parameters of `helm template --set` as values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.krm.helm_paths import check_option_name, parse_option_name
from reconciler.packages.charts.values import ValuesLayer

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_WORDS: Mapping[str, Any] = {"true": True, "false": False, "null": None}


class ParameterError(Exception):
    """A parameter that cannot be converted to a value."""


def parse_set_value(text: str) -> Any:
    """Return the value that `helm --set name=text` sets: a list for `{a,b}`, or a scalar."""
    if text.startswith("{") and text.endswith("}"):
        return [_parse_scalar(item) for item in text[1:-1].split(",")] if len(text) > 2 else []
    return _parse_scalar(text)


def _parse_scalar(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _INTEGER.fullmatch(text) else text


def build_parameter_layers(parameters: Iterable[tuple[str, Any]]) -> tuple[ValuesLayer, ...]:
    """Return one layer per parameter.

    Raises:
        ParameterError: The name of a parameter is invalid.
    """
    layers = []
    for name, value in parameters:
        if reason := check_option_name(name):
            raise ParameterError(f"the name {name!r} of a parameter is invalid: it {reason}")
        layers.append(ValuesLayer("parameter", name, value, parse_option_name(name)))
    return tuple(layers)
