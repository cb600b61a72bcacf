"""Conversion of data to new YAML text in block style or flow style.

A string is written without quotes only if YAML 1.1, YAML 1.2 and Go read it as a string. Other strings are written in
double quotes, as kubectl and kpt do.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from reconciler.krm.yaml.errors import YamlError
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached

# Write a key of more than 1,000 characters with `?`, because libyaml otherwise rejects a key of more than 1,024
# characters.
MAX_SIMPLE_KEY_CHARACTERS = 1_000

_AMBIGUOUS_WORD = re.compile(r"(?:y|n|yes|no|on|off|true|false|null|~|<<|=|[-+]?\.inf|\.nan|)\Z", re.IGNORECASE)
_AMBIGUOUS_NUMBER = re.compile(
    r"""[-+]?(?:
        0[xX][0-9a-fA-F_]* | 0[oO][0-7_]* | 0[bB][01_]*
      | [0-9][0-9_]*(?::[0-9]+)+(?:\.[0-9_]*)?          # base 60
      | (?=[.0-9])[0-9_]*\.?[0-9_]*(?:[eE][-+]?[0-9_]*)?
    )\Z""",
    re.VERBOSE,
)
_AMBIGUOUS_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:\Z|[Tt ])")
# The first character of a scalar without quotes. `?`, `:` and `-` are valid only before a character that is not a
# space.
_PLAIN_START = re.compile(r"""(?:[^\s,\[\]{}#&*!|>'"%@`?:-]|[?:-][^\s,\[\]{}])""")
_VISIBLE = "\\x20-\\x7e\\xa0-\\u2027\\u202a-\\ud7ff\\ue000-\\ufefe\\uff00-\\ufffd\\U00010000-\\U0010ffff"
_NOT_PLAIN = re.compile(rf":(?=\s|\Z)|\s#|\s\Z|[^{_VISIBLE}]")
_NOT_PLAIN_IN_FLOW = re.compile(r"[,\[\]{}:?]|\A-")
_MARKER = re.compile(r"(?:---|\.\.\.)")
# Text that is valid in single quotes and in block scalars: one line with only printable characters and tabs.
_PRINTABLE = re.compile(rf"[\t{_VISIBLE}]*\Z")
_MUST_BE_ESCAPED = re.compile('[\x00-\x1f"\\\\\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]')
# Cache whether a string needs quotes, because the same keys, kinds and names occur in most documents.
_MAX_CACHED_PLAIN_CHECKS = 8_192
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def is_ambiguous(text: str) -> bool:
    """Return whether a YAML parser may read `text` without quotes as a boolean, number, date or null, e.g. `yes`."""
    return bool(_AMBIGUOUS_WORD.match(text) or _AMBIGUOUS_NUMBER.match(text) or _AMBIGUOUS_DATE.match(text))


@cached(_MAX_CACHED_PLAIN_CHECKS)
def is_plain(text: str, *, flow: bool) -> bool:
    """Return whether a string can be written without quotes. `flow` is true for a string in a flow collection."""
    if not _PLAIN_START.match(text) or _NOT_PLAIN.search(text) or is_ambiguous(text):
        return False
    return not (_MARKER.match(text) or (flow and _NOT_PLAIN_IN_FLOW.search(text)))


def format_double_quoted(text: str) -> str:
    """Return `text` in double quotes.

    Raises:
        YamlError: The text contains a lone surrogate, which YAML does not support (code YamlValue).
    """
    return f'"{_MUST_BE_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if "\ud800" <= character <= "\udfff":
        raise YamlError(
            "YamlValue", f"a string must be Unicode text, but contains the lone surrogate U+{ord(character):04X}"
        )
    number = ord(character)
    return _ESCAPES.get(character) or (f"\\x{number:02X}" if number < 0x100 else f"\\u{number:04X}")


def format_scalar(value: Any, *, flow: bool, style: str = "") -> str:
    """Return a scalar as YAML text on one line.

    Args:
        flow: Whether the scalar is inside a flow collection.
        style: Preferred style of a string: "", "'" or '"'. A different style is used if the string requires it.

    Raises:
        YamlError: YAML does not support the value (code YamlValue).
    """
    if not isinstance(value, str):
        return format_non_string(value)
    if style == "'" and _PRINTABLE.match(value):
        return "'" + value.replace("'", "''") + "'"
    return value if style != '"' and is_plain(value, flow=flow) else format_double_quoted(value)


def format_non_string(value: Any) -> str:
    """Return null, a boolean or a number as YAML text that all YAML parsers read as the same value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return int.__repr__(value)
        case float():
            return _format_float(value)
        case _:
            raise YamlError("YamlValue", f"{type(value).__name__} is not supported in YAML")


def _format_float(value: float) -> str:
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    mantissa, exponent, power = repr(float(value)).partition("e")
    # Add ".0" to a float without a decimal point, because YAML 1.1 requires the point.
    return mantissa + (".0" if "." not in mantissa else "") + exponent + power


def format_block_scalar(text: str, style: str = "|") -> tuple[str, list[str]] | None:
    """Return `text` as a block scalar: its header, and its lines without indentation.

    The style ">" (folded) is replaced by "|" (literal) if folding would change the text.

    Returns:
        None if a block scalar is not suitable. Reasons are unusual characters, spaces at the end of a line or before
            the first character, or a text that contains only line ends.
    """
    body = text.rstrip("\n")
    lines = body.split("\n")
    if not body or lines[0][:1] in (" ", "\t", "") or not all(map(_is_reliable_line, lines)):
        return None
    missing = len(text) - len(body)
    chomp = "-" if not missing else "" if missing == 1 else "+"
    if style == ">" and all(line and line[0] not in " \t" for line in lines):
        # Add an empty line after each line of a folded scalar, because a YAML parser replaces a single line end by a
        # space.
        lines = [part for line in lines for part in (line, "")][:-1]
    else:
        style = "|"
    return style + chomp, lines + [""] * (missing - 1)


def _is_reliable_line(line: str) -> bool:
    return bool(_PRINTABLE.match(line)) and line == line.rstrip(" \t")


def format_json(value: Any) -> str:
    """Return `value` as JSON on one line. Use this function for YAML files that are written in JSON syntax.

    Raises:
        YamlError: JSON does not support the value (code YamlValue).
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise YamlError("YamlValue", f"the value is not supported in JSON: {error}") from error


@dataclass(frozen=True)
class IndentStyle:
    """The indentation of a document.

    Attributes:
        step: Number of columns by which a nested mapping is indented.
        compact: Whether the dashes of a sequence are at the column of the key before the sequence.
    """

    step: int = 2
    compact: bool = True


DEFAULT_INDENT_STYLE = IndentStyle()
WIDE_INDENT_STYLE = IndentStyle(compact=False)
"""The dashes of a sequence are indented deeper than the key before the sequence, as in most Kubernetes examples."""

_MAX_CACHED_KEYS = 4_096
_MAX_CACHED_TEXTS = 8_192


def emit(data: object, style: IndentStyle = DEFAULT_INDENT_STYLE) -> str:
    """Return `data` as the text of one YAML document in block style.

    The order of keys is kept. A newline ends the text.

    Raises:
        YamlError: `data` contains a key that is not a string, or a value that is not a dict, list, str, int, float,
            bool or None (code YamlValue).
    """
    head, body = format_value_lines(data, style)
    return "\n".join([head, *indent_lines(body, 2)] if head else body) + "\n"


def format_value_lines(value: Any, style: IndentStyle, scalar: str = "") -> tuple[str, list[str]]:
    """Return the text of a value on the line of its key or dash, and the lines below this line without indentation.

    Examples: `a` and [] for "a"; an empty text and [`b: 1`] for {"b": 1}.

    Args:
        scalar: Preferred style of a string: "", "'", '"', "|" or ">".
    """
    lines: list[str] = []
    match value:
        case dict() if value:
            _add_entries(lines, "", value, style)
        case list() if value:
            _add_items(lines, "", value, style)
        case str() if scalar in ("|", ">") or ("\n" in value and not scalar):
            return _format_text_lines(value, scalar)
        case str():
            return format_scalar(value, flow=False, style=scalar), []
        case _:
            return _format_empty_or_scalar(value), []
    return "", lines


# Cache the text of each key, because the same keys occur in most documents.
@cached(_MAX_CACHED_KEYS)
def format_key_line(key: Any) -> str:
    """Return a mapping key and a colon, e.g. `name:`. A key that is too long for this form is written with `?`."""
    text = format_scalar(_check_key(key), flow=False)
    return f"{text}:" if len(text) <= MAX_SIMPLE_KEY_CHARACTERS else f"? {format_double_quoted(key)}\n:"


def indent_lines(lines: Sequence[str], columns: int) -> Iterator[str]:
    """Yield the lines, indented by `columns` spaces. Empty lines are not indented."""
    prefix = " " * columns
    return (prefix + line if line else "" for line in lines)


def format_entry_lines(key: Any, value: Any, style: IndentStyle) -> list[str]:
    """Return the lines of one entry of a block mapping, without indentation of the whole entry."""
    lines: list[str] = []
    _add_entries(lines, "", {key: value}, style)
    return lines


def format_item_lines(value: Any, style: IndentStyle) -> list[str]:
    """Return the lines of one item of a block sequence. The dash is not indented."""
    lines: list[str] = []
    _add_items(lines, "", [value], style)
    return lines


# Append all lines to one list and indent each line once, because a pass writes large files to the status branch.


def _add_entries(lines: list[str], indent: str, entries: dict[Any, Any], style: IndentStyle) -> None:
    inner = indent + " " * style.step
    for key, value in entries.items():
        name, compact = format_key_line(key), style.compact
        if "\n" in name:
            question, name = name.split("\n")
            lines.append(indent + question)
            compact = False
        if isinstance(value, str):
            _add_text(lines, f"{indent}{name} ", inner, value)
        elif value and isinstance(value, dict):
            lines.append(indent + name)
            _add_entries(lines, inner, value, style)
        elif value and isinstance(value, list):
            lines.append(indent + name)
            _add_items(lines, indent if compact else inner, value, style)
        else:
            lines.append(f"{indent}{name} {_format_empty_or_scalar(value)}")


def _add_items(lines: list[str], indent: str, items: list[Any], style: IndentStyle) -> None:
    inner = indent + "  "
    for value in items:
        start = len(lines)
        if isinstance(value, str):
            _add_text(lines, inner, inner, value)
        elif value and isinstance(value, dict):
            _add_entries(lines, inner, value, style)
        elif value and isinstance(value, list):
            _add_items(lines, inner, value, style)
        else:
            lines.append(inner + _format_empty_or_scalar(value))
        lines[start] = f"{indent}- {lines[start][len(inner) :]}"


def _add_text(lines: list[str], before: str, inner: str, text: str) -> None:
    if "\n" not in text:
        lines.append(before + _format_line(text))
        return
    head, body = _format_text_lines(text)
    lines.append(before + head)
    lines += indent_lines(body, len(inner))


def _format_text_lines(text: str, scalar: str = "") -> tuple[str, list[str]]:
    return format_block_scalar(text, scalar or "|") or (format_scalar(text, flow=False), [])


@cached(_MAX_CACHED_TEXTS)
def _format_line(text: str) -> str:
    return format_scalar(text, flow=False)


def _format_empty_or_scalar(value: Any) -> str:
    match value:
        case dict():
            return "{}"
        case list():
            return "[]"
        case _:
            return format_scalar(value, flow=False)


def format_flow(value: Any) -> str:
    """Return `value` as YAML text on one line, in flow style, e.g. `{a: [1, 2]}`."""
    match value:
        case dict():
            return (
                "{"
                + ", ".join(
                    f"{format_scalar(_check_key(name), flow=True)}: {format_flow(child)}"
                    for name, child in value.items()
                )
                + "}"
            )
        case list():
            return "[" + ", ".join(map(format_flow, value)) + "]"
        case _:
            return format_scalar(value, flow=True)


def _check_key(key: Any) -> str:
    if not isinstance(key, str):
        raise YamlError(
            "YamlValue", f"keys of a mapping must be strings, but one key has the type {type(key).__name__}"
        )
    return key
