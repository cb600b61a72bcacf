"""Expressions of options: YAML texts with CEL in placeholders, worked out for one cluster (greenhouse 8.1).

`${…}` holds no closing brace and has no escape. What a placeholder comes to is put in once and not looked at again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from reconciler.caching import cached
from reconciler.expressions import Budget, Environment, ExpressionError, Limits
from reconciler.krm.yaml import YamlError, read_core
from reconciler.krm.yaml.core import resolve_core
from reconciler.rules.fields import shown
from reconciler.rules.presets.injected import VARIABLE, setting_to_make

# JSON leaves these as they are; YAML must not hold them, or takes them for ends of lines
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_DEFAULT_LIMITS: Final = Limits()

MAX_PLACEHOLDERS: Final = 256
"""How many different placeholders one expression may have: each is compiled, and that is not in its budget."""


@dataclass(frozen=True)
class Evaluated:
    """The value of an option on one cluster, None with `faults`; `retyped` are the texts that became something else.

    Faults and `retyped` are sentences of their own, in the order of the text.
    """

    value: Any
    faults: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()


def evaluate(text: str, variables: Mapping[str, Any], limits: Limits = _DEFAULT_LIMITS) -> Evaluated:
    """Return the value that an expression has with these variables; `limits` hold for all its placeholders together.

    The text is read as YAML 1.2 when all placeholders are put in (design 10.4): strings go in as they are, all else as
    JSON. A value that is null is none. Nothing is checked before: what loses may be broken (greenhouse 17.9).
    """
    placeholders = _placeholders(text)
    if fault := _text_fault(text, placeholders):
        return Evaluated(None, (fault,))
    environment, budget = _environment(frozenset(variables), limits), Budget(limits)
    results: dict[str, _Result] = {}
    faults: list[str] = []
    for placeholder in placeholders:
        try:
            results[placeholder] = _result(environment.compile(placeholder).evaluate(variables, budget))
        except (ExpressionError, _ResultError) as error:
            faults.append(_told(placeholder, error))
    return Evaluated(None, tuple(faults)) if faults else _assembled(text, results, limits)


def expression_faults(text: str, limits: Limits = _DEFAULT_LIMITS) -> tuple[str, ...]:
    """Return why an expression has no value whatever its variables are: what is no CEL, or names what nobody has."""
    placeholders = _placeholders(text)
    if fault := _text_fault(text, placeholders):
        return (fault,)
    environment, faults = _environment(frozenset({VARIABLE}), limits), []
    for placeholder in placeholders:
        try:
            environment.compile(placeholder)
        except ExpressionError as error:
            faults.append(f"{shown('${' + placeholder + '}')} cannot be evaluated: {error}")
    return tuple(faults)


@dataclass(frozen=True)
class _Result:
    """What is put in for a placeholder, and whether it was a string and not JSON."""

    text: str
    is_string: bool


class _ResultError(ValueError):
    """A result that has no place in a text."""


@cached(16)
def _environment(names: frozenset[str], limits: Limits) -> Environment:
    return Environment(names, limits=limits)


def _pieces(text: str) -> list[str]:
    """Return text and what stands in placeholders, taking turns; the first and the last are text."""
    pieces: list[str] = []
    done = at = 0
    while (start := text.find("${", at)) >= 0 and (end := text.find("}", start)) >= 0:
        at = end
        if end > start + 2:
            pieces += [text[done:start], text[start + 2 : end]]
            done = end + 1
    return [*pieces, text[done:]]


def _placeholders(text: str) -> tuple[str, ...]:
    """Return what stands in placeholders, each once, in the order of the text."""
    return tuple(dict.fromkeys(_pieces(text)[1::2]))


def _text_fault(text: str, placeholders: tuple[str, ...]) -> str:
    if not text:
        return "an expression must not be empty"
    if len(placeholders) > MAX_PLACEHOLDERS:
        return f"an expression must not have more than {MAX_PLACEHOLDERS} different placeholders"
    return ""


def _told(placeholder: str, error: Exception) -> str:
    return f"{shown('${' + placeholder + '}')} cannot be evaluated: {error}{setting_to_make(placeholder, str(error))}"


def _result(value: Any) -> _Result:
    return _Result(value, is_string=True) if isinstance(value, str) else _Result(_json(value), is_string=False)


def _json(value: Any) -> str:
    match value:
        case None | bool():
            return json.dumps(value)
        case str():
            return _NOT_IN_YAML.sub(_escape, json.dumps(value, ensure_ascii=False))
        case int():
            return str(int(value))
        case float():
            return _number(value)
        case list():
            return f"[{','.join(map(_json, value))}]"
        case dict() if all(isinstance(key, str) for key in value):
            return f"{{{','.join(f'{_json(key)}:{_json(value[key])}' for key in sorted(value))}}}"
        case dict():
            raise _ResultError("the keys of a map must be strings")
        case _:
            raise _ResultError("the result must be a string or what JSON has, not bytes, a time, a type or an optional")


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _number(value: float) -> str:
    """Spell a double as Go's JSON does: without a point where it is whole, with an exponent where it is far from 1."""
    if not math.isfinite(value):
        raise _ResultError("the result must be a number that JSON has")
    if value and not 1e-6 <= abs(value) < 1e21:
        return repr(value).replace("e-0", "e-")
    plain = format(Decimal(repr(value)), "f")
    return plain.removesuffix(".0")


def _assembled(text: str, results: Mapping[str, _Result], limits: Limits) -> Evaluated:
    # a long result that is put in many times is paid for once only where it is made
    size = sum(len(results[placeholder].text) for placeholder in _pieces(text)[1::2])
    if size > limits.bytes:
        return Evaluated(None, (f"the expression makes more than {limits.bytes} bytes of text",))
    texts = {placeholder: result.text for placeholder, result in results.items()}
    read = _read(_filled(text, texts))
    if read.faults:
        return read
    strings = {placeholder: result.text for placeholder, result in results.items() if result.is_string}
    return Evaluated(read.value, (), _retyped(text, texts, strings, read.value))


def _filled(text: str, texts: Mapping[str, str]) -> str:
    pieces = _pieces(text)
    pieces[1::2] = [texts[placeholder] for placeholder in pieces[1::2]]
    return "".join(pieces)


def _read(text: str) -> Evaluated:
    try:
        value = read_core(text)
    except YamlError as error:
        return Evaluated(None, (f"what the expression makes is no YAML: {error}: {shown(text)}",))
    if value is None:
        return Evaluated(None, (f"the expression must make a value, and null is none: {shown(text)}",))
    if not _is_json(value):
        return Evaluated(None, (f"the expression must make numbers that JSON has: {shown(text)}",))
    return Evaluated(value)


def _is_json(value: Any) -> bool:
    match value:
        case float():
            return math.isfinite(value)
        case list():
            return all(map(_is_json, value))
        case dict():
            return all(map(_is_json, value.values()))
        case _:
            return True


def _retyped(text: str, texts: Mapping[str, str], strings: Mapping[str, str], value: Any) -> tuple[str, ...]:
    """Tell which of the strings that stand alone as a scalar are no strings in the value any more (greenhouse 8.1).

    A mark in their place shows where they stand: it is a string wherever it is not part of more.
    """
    suspects = (one for one, result in strings.items() if not isinstance(resolve_core(result.strip()), str))
    marks = {f"placeholder-{number}": one for number, one in enumerate(suspects)}
    if not marks:
        return ()
    try:
        marked = read_core(_filled(text, {**texts, **{placeholder: mark for mark, placeholder in marks.items()}}))
    except YamlError:
        return ()  # a tag asks for the type that the string has become
    found = {marks[mark]: now for mark, now in _pairs(marked, value) if mark in marks and not isinstance(now, str)}
    return tuple(
        f"{shown('${' + one + '}')} is the text {shown(strings[one])} and becomes {shown(now)}: put it in quotes"
        for one, now in found.items()
    )


def _pairs(marked: Any, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the strings of marked data, each with what is in its place in the value, as far as the two are alike."""
    if isinstance(marked, str):
        yield marked, value
    elif isinstance(marked, list) and isinstance(value, list):
        for one, other in zip(marked, value, strict=False):
            yield from _pairs(one, other)
    elif isinstance(marked, dict) and isinstance(value, dict):
        for one, other in zip(marked.values(), value.values(), strict=False):
            yield from _pairs(one, other)
