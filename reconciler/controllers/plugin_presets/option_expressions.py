"""Option expressions: YAML texts with CEL placeholders, e.g. `web.${global.greenhouse.baseDomain}`.

A placeholder cannot contain a closing brace. There is no escape sequence for a literal `${`. If the result of an
expression contains a placeholder, this placeholder is not evaluated.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from reconciler.cel import CelEnvironment, ExpressionBudget, ExpressionError, ExpressionLimits
from reconciler.controllers.plugin_presets.injected_options import EXPRESSION_VARIABLE, suggest_setting
from reconciler.krm.field_text import quote_value
from reconciler.krm.json_text import has_finite_numbers
from reconciler.krm.yaml import YamlError, read_core_yaml
from reconciler.krm.yaml.file import resolve_core_scalar
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached

# Escape these characters, because YAML forbids them or reads them as line breaks, and JSON does not escape them.
_INVALID_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_DEFAULT_LIMITS: Final = ExpressionLimits()

MAX_PLACEHOLDERS: Final = 256
"""Maximum number of distinct placeholders in one expression.

This limits the compile time, because the cost limits of CEL apply only to the evaluation.
"""


@dataclass(frozen=True)
class EvaluatedExpression:
    """The result of an option expression for one Plugin. `value` is None if the expression fails.

    Attributes:
        errors: Error messages in the order of the placeholders.
        retyped: Messages about inserted strings that YAML reads as another type, e.g. "1.0" as a number.
    """

    value: Any
    errors: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()


def evaluate_expression(
    text: str, variables: Mapping[str, Any], limits: ExpressionLimits = _DEFAULT_LIMITS
) -> EvaluatedExpression:
    """Return the value of an expression, or its errors. `limits` apply to all placeholders of the text together.

    Each placeholder is replaced by its result. A string is inserted unchanged, and any other value is inserted as JSON.
    Then the text is read as YAML 1.2. The value null is an error.
    """
    placeholders = _list_placeholders(text)
    if message := _check_text(text, placeholders):
        return EvaluatedExpression(None, (message,))
    environment, budget = _create_environment(frozenset(variables), limits), ExpressionBudget(limits)
    results: dict[str, _Result] = {}
    errors: list[str] = []
    for placeholder in placeholders:
        try:
            results[placeholder] = _create_result(environment.compile(placeholder).evaluate(variables, budget))
        except (ExpressionError, _ResultError) as error:
            errors.append(_format_error(placeholder, error))
    return EvaluatedExpression(None, tuple(errors)) if errors else _assemble(text, results, limits)


def format_expression_errors(subject: str, errors: Sequence[str], *, is_hidden: bool) -> str:
    """Return the message about an expression that fails. `subject` is the start of the sentence.

    If `is_hidden` is true, the message does not contain the errors, because an error can contain a secret.
    """
    if is_hidden:
        return f"{subject}. The error is not shown, because it may contain a secret"
    return f"{subject}, because {'; '.join(errors)}"


def check_option_expression(text: str, limits: ExpressionLimits = _DEFAULT_LIMITS) -> tuple[str, ...]:
    """Return the errors of an expression that occur for every Plugin, e.g. invalid CEL or an unknown variable."""
    placeholders = _list_placeholders(text)
    if message := _check_text(text, placeholders):
        return (message,)
    environment, messages = _create_environment(frozenset({EXPRESSION_VARIABLE}), limits), []
    for placeholder in placeholders:
        try:
            environment.compile(placeholder)
        except ExpressionError as error:
            messages.append(f"{quote_value('${' + placeholder + '}')} cannot be evaluated: {error}")
    return tuple(messages)


@dataclass(frozen=True)
class _Result:
    """The text that replaces a placeholder. `is_string` is False if the text is JSON."""

    text: str
    is_string: bool


class _ResultError(ValueError):
    """Raised if the result of a placeholder cannot be inserted into the text of an expression."""


@cached(16)
def _create_environment(names: frozenset[str], limits: ExpressionLimits) -> CelEnvironment:
    return CelEnvironment(names, limits=limits)


def _split(text: str) -> list[str]:
    """Split a text at its placeholders, e.g. "a${b}c" -> ["a", "b", "c"]. Items with an odd index are placeholders."""
    pieces: list[str] = []
    text_start = position = 0
    while (start := text.find("${", position)) >= 0 and (end := text.find("}", start)) >= 0:
        position = end
        if end > start + 2:
            pieces += [text[text_start:start], text[start + 2 : end]]
            text_start = end + 1
    return [*pieces, text[text_start:]]


def _list_placeholders(text: str) -> tuple[str, ...]:
    """Return the contents of all placeholders without duplicates, in the order of the text."""
    return tuple(dict.fromkeys(_split(text)[1::2]))


def _check_text(text: str, placeholders: tuple[str, ...]) -> str:
    if not text:
        return "an expression must not be empty"
    if len(placeholders) > MAX_PLACEHOLDERS:
        return f"an expression must not have more than {MAX_PLACEHOLDERS} different placeholders"
    return ""


def _format_error(placeholder: str, error: Exception) -> str:
    suggestion = suggest_setting(placeholder, str(error))
    return f"{quote_value('${' + placeholder + '}')} cannot be evaluated: {error}{suggestion}"


def _create_result(value: Any) -> _Result:
    return _Result(value, is_string=True) if isinstance(value, str) else _Result(_format_json(value), is_string=False)


def _format_json(value: Any) -> str:
    match value:
        case None | bool():
            return json.dumps(value)
        case str():
            return _INVALID_IN_YAML.sub(_escape, json.dumps(value, ensure_ascii=False))
        case int():
            return str(int(value))
        case float():
            return _format_number(value)
        case list():
            return f"[{','.join(map(_format_json, value))}]"
        case dict() if all(isinstance(key, str) for key in value):
            return f"{{{','.join(f'{_format_json(key)}:{_format_json(value[key])}' for key in sorted(value))}}}"
        case dict():
            raise _ResultError("the keys of a map must be strings")
        case _:
            raise _ResultError(
                "the result must be a string or a JSON value, not a value of type bytes, timestamp, "
                "duration, type or optional"
            )


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _format_number(value: float) -> str:
    """Format a number as the JSON encoder of Go does, e.g. 1.0 -> "1", 1e21 -> "1e+21"."""
    if not math.isfinite(value):
        raise _ResultError("the result must be a finite number")
    if value and not 1e-6 <= abs(value) < 1e21:
        return repr(value).replace("e-0", "e-")
    plain = format(Decimal(repr(value)), "f")
    return plain.removesuffix(".0")


def _assemble(text: str, results: Mapping[str, _Result], limits: ExpressionLimits) -> EvaluatedExpression:
    # Check the size again, because the text can contain one result several times. The limits of CEL count each result
    # only once.
    size = sum(len(results[placeholder].text) for placeholder in _split(text)[1::2])
    if size > limits.bytes:
        return EvaluatedExpression(None, (f"the expression produces more than {limits.bytes} bytes of text",))
    texts = {placeholder: result.text for placeholder, result in results.items()}
    evaluated = _read_yaml(_fill(text, texts))
    if evaluated.errors:
        return evaluated
    strings = {placeholder: result.text for placeholder, result in results.items() if result.is_string}
    return EvaluatedExpression(evaluated.value, (), _find_retyped(text, texts, strings, evaluated.value))


def _fill(text: str, texts: Mapping[str, str]) -> str:
    pieces = _split(text)
    pieces[1::2] = [texts[placeholder] for placeholder in pieces[1::2]]
    return "".join(pieces)


def _read_yaml(text: str) -> EvaluatedExpression:
    try:
        value = read_core_yaml(text)
    except YamlError as error:
        message = f"the result {quote_value(text)} of the expression cannot be parsed: {error}"
        return EvaluatedExpression(None, (message,))
    if value is None:
        return EvaluatedExpression(None, (f"the result {quote_value(text)} of the expression must not be null",))
    if not has_finite_numbers(value):
        message = f"the result {quote_value(text)} of the expression must contain only finite numbers"
        return EvaluatedExpression(None, (message,))
    return EvaluatedExpression(value)


def _find_retyped(text: str, texts: Mapping[str, str], strings: Mapping[str, str], value: Any) -> tuple[str, ...]:
    """Return messages about inserted strings that YAML reads as another type, e.g. the string "1.0" as a number.

    To find these strings, the function replaces each string that looks like a number, boolean or null by a unique
    marker, and parses the text again. The path of the marker in the parsed data is the path of the inserted string.
    """
    candidates = (name for name, result in strings.items() if not isinstance(resolve_core_scalar(result.strip()), str))
    placeholders = {f"placeholder-{number}": name for number, name in enumerate(candidates)}
    if not placeholders:
        return ()
    try:
        marked = read_core_yaml(_fill(text, {**texts, **{name: marker for marker, name in placeholders.items()}}))
    except YamlError:
        return ()  # Report nothing: a YAML tag such as !!int requires a different type than the string of the marker.
    retyped = {
        placeholders[marker]: item
        for marker, item in _pair_strings(marked, value)
        if marker in placeholders and not isinstance(item, str)
    }
    return tuple(
        f"contains {quote_value(item)} instead of the string {quote_value(strings[name])}, because the placeholder"
        f" {quote_value('${' + name + '}')} is not in quotes; to keep a string, write quotes around the placeholder"
        for name, item in retyped.items()
    )


def _pair_strings(marked: Any, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield each string in `marked` with the value at the same path in `value`.

    Skip parts of `marked` and `value` with different structures.
    """
    if isinstance(marked, str):
        yield marked, value
    elif isinstance(marked, list) and isinstance(value, list):
        for marked_item, item in zip(marked, value, strict=False):
            yield from _pair_strings(marked_item, item)
    elif isinstance(marked, dict) and isinstance(value, dict):
        for marked_item, item in zip(marked.values(), value.values(), strict=False):
            yield from _pair_strings(marked_item, item)
