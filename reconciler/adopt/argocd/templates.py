"""Templates of ApplicationSets: references to parameters, and a few functions. Other template code is not executed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_PLACEHOLDER = re.compile(r"\{\{\s*(?P<expression>.*?)\s*\}\}", re.DOTALL)
# In Go, `{{- ` and ` -}}` also remove the white space outside of the braces.
_GO_PLACEHOLDER = re.compile(
    r"(?:\s*\{\{-\s+|\{\{(?!-\s)\s*)(?P<expression>.*?)(?:\s+-\}\}\s*|\s*(?<!\s-)\}\})", re.DOTALL
)
_REFERENCE = re.compile(r"\.(?P<path>[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)")
_INDEX = re.compile(r'index\s+(?P<base>\.[\w.-]+)\s+(?:"(?P<key>[^"]*)"|(?P<number>\d+))')
_DEFAULT = re.compile(r'default\s+"(?P<value>[^"]*)"')
_NOT_IN_NAME = re.compile(r"[^-a-z0-9.]")
MAX_NAME_CHARACTERS = 253
MIN_NUMBER, MAX_NUMBER = 0.0001, 1_000_000
"""The range of numbers that Go writes without an exponent. Argo CD reads all numbers as floating point."""


class TemplateError(Exception):
    """A template contains code that cannot be evaluated as data, or names a missing parameter."""


def normalize_name(text: str) -> str:
    """Return a text as a DNS name, as the function `normalize` of ApplicationSets does."""
    return _NOT_IN_NAME.sub("-", text.lower())[:MAX_NAME_CHARACTERS].strip("-.")


_FUNCTIONS: Mapping[str, Callable[[str], str]] = {
    "normalize": normalize_name, "lower": str.lower, "upper": str.upper, "trim": str.strip, "toString": str,
}  # fmt: skip


def render_template(value: Any, parameters: Mapping[str, Any], *, is_go_template: bool) -> Any:
    """Render all texts in `value`, including the keys of mappings. Return the rendered data.

    Args:
        parameters: Nested parameters with `goTemplate: true`, or flat parameters with texts.

    Raises:
        TemplateError: A text cannot be rendered.
    """
    match value:
        case str():
            return _render_text(value, parameters, is_go_template)
        case dict():
            return {
                render_template(key, parameters, is_go_template=is_go_template): render_template(
                    item, parameters, is_go_template=is_go_template
                )
                for key, item in value.items()
            }
        case list():
            return [render_template(item, parameters, is_go_template=is_go_template) for item in value]
        case _:
            return value


def _render_text(text: str, parameters: Mapping[str, Any], is_go_template: bool) -> str:
    evaluate, pattern = (_evaluate, _GO_PLACEHOLDER) if is_go_template else (_look_up, _PLACEHOLDER)
    return pattern.sub(lambda match: evaluate(match["expression"], parameters), text)


def _look_up(name: str, parameters: Mapping[str, Any]) -> str:
    if name not in parameters:
        raise TemplateError(f"no generator returns the parameter {{{{{name}}}}}")
    return str(parameters[name])


def _evaluate(expression: str, parameters: Mapping[str, Any]) -> str:
    source, *functions = (part.strip() for part in expression.split("|"))
    value = _resolve(source, parameters, expression)
    for name in functions:
        if default := _DEFAULT.fullmatch(name):
            value = default["value"] if value in (None, "") else value
        elif name in _FUNCTIONS:
            value = _FUNCTIONS[name](_to_text(value, expression))
        else:
            raise TemplateError(f"the template {{{{{expression}}}}} uses the unsupported function {name!r}")
    return _to_text(value, expression)


def _resolve(source: str, parameters: Mapping[str, Any], expression: str) -> Any:
    if found := _INDEX.fullmatch(source):
        base = _resolve(found["base"], parameters, expression)
        key: Any = int(found["number"]) if found["number"] is not None else found["key"]
        try:
            return base[key]
        except (KeyError, IndexError, TypeError):
            raise TemplateError(f"the template {{{{{expression}}}}} names a missing parameter") from None
    reference = _REFERENCE.fullmatch(source)
    if reference is None:
        raise TemplateError(f"the template {{{{{expression}}}}} contains unsupported template code")
    value: Any = parameters
    for step in reference["path"].split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _to_text(value: Any, expression: str) -> str:
    if value is None:
        raise TemplateError(f"the template {{{{{expression}}}}} names a missing parameter")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        if not (value == 0 or MIN_NUMBER <= abs(value) < MAX_NUMBER):
            reason = "returns a number that Go can write with an exponent; write the number as text in quotes"
            raise TemplateError(f"the template {{{{{expression}}}}} {reason}")
        return str(int(value) if value == int(value) else value)
    if isinstance(value, str):
        return value
    found = "list" if isinstance(value, list) else "mapping"
    raise TemplateError(f"the template {{{{{expression}}}}} must return a text, not a {found}")
