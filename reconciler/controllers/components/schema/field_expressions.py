"""Parser for field expressions of the schema shorthand, e.g. `integer | default=1`: a type, followed by markers.

Error messages contain the column of the error.
"""

from __future__ import annotations

from typing import TypeAlias

import re2

from reconciler.controllers.components.codes import ComponentCodes
from reconciler.krm.field_text import quote_value
from reconciler.krm.findings import FindingCode
from reconciler.lazy_dataclasses import dataclass


class ShorthandError(Exception):
    """A field in schema shorthand is not valid.

    The caller puts the path of the field before `message`, e.g. before `has an unclosed quote at column 5`.
    """

    def __init__(self, code: FindingCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


SCALAR_TYPES = {"string": "string", "integer": "integer", "number": "number", "float": "number", "boolean": "boolean"}
BUILT_IN_TYPES = (*SCALAR_TYPES, "object")
MAX_SCHEMA_DEPTH = 32
"""Maximum number of nested levels in a schema. This number also limits the recursion of the validator."""

_NAME = re2.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class ScalarType:
    """String, number or boolean type. `name` is the OpenAPI type, e.g. `integer`."""

    name: str


@dataclass(frozen=True)
class FreeFormType:
    """Type of a map with any content, written as `object`."""


@dataclass(frozen=True)
class ListType:
    """Type of a list whose items all have the same type, e.g. `[]string`."""

    item: FieldType


@dataclass(frozen=True)
class MapType:
    """Type of a map with string keys, whose values all have the same type, e.g. `map<integer>`."""

    value: FieldType


@dataclass(frozen=True)
class NamedType:
    """Type that `schema.types` defines under this name."""

    name: str


FieldType: TypeAlias = ScalarType | FreeFormType | ListType | MapType | NamedType


def is_field_name(text: object) -> bool:
    """Return whether `text` is a valid name of a field or type."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def parse_field_type(text: str, column: int, depth: int = 0) -> FieldType:
    """Parse the type in a field expression, e.g. `[]string`. `column` is the column of `text` in the expression.

    Raises:
        ShorthandError: The text is not a valid type.
    """
    if depth > MAX_SCHEMA_DEPTH:
        raise ShorthandError(ComponentCodes.SCHEMA_TOO_LARGE, f"must not nest more than {MAX_SCHEMA_DEPTH} types")
    inner, column = text.strip(), column + len(text) - len(text.lstrip())
    match _split_constructor(inner):
        case "[]", rest:
            return ListType(parse_field_type(rest, column + len(inner) - len(rest), depth + 1))
        case "array<", rest:
            return ListType(parse_field_type(rest, column + 6, depth + 1))
        case "map<", rest:
            return MapType(parse_field_type(rest, column + 4, depth + 1))
        case "map[", rest:
            return MapType(_parse_map_value(inner, rest, column, depth))
        case _:
            return _parse_name(inner, column)


def _split_constructor(text: str) -> tuple[str, str]:
    if text.startswith("[]"):
        return "[]", text[2:]
    for opening in ("array<", "map<"):
        if text.startswith(opening) and text.endswith(">"):
            return opening, text.removeprefix(opening)[:-1]
    return ("map[", text[4:]) if text.startswith("map[") else ("", text)


def _parse_map_value(text: str, rest: str, column: int, depth: int) -> FieldType:
    key, closing, value = rest.partition("]")
    if not closing:
        raise _build_type_error(text, column, "write map[string]…")
    if key.strip() != "string":
        raise _build_type_error(text, column, f'the key type of a map must be "string", but is {quote_value(key)}')
    return parse_field_type(value, column + len(text) - len(value), depth + 1)


def _parse_name(text: str, column: int) -> FieldType:
    if text in SCALAR_TYPES:
        return ScalarType(SCALAR_TYPES[text])
    if text == "object":
        return FreeFormType()
    if is_field_name(text):
        return NamedType(text)
    raise _build_type_error(text, column, _build_type_hint(text))


def _build_type_hint(text: str) -> str:
    if not text:
        return 'after [] and inside brackets, write a type such as "string"'
    if any(character.isspace() for character in text):
        return "separate the type and its markers with |"
    return f"allowed types: {', '.join(BUILT_IN_TYPES)}, a type of schema.types, []…, array<…>, map[string]… or map<…>"


def _build_type_error(text: str, column: int, hint: str) -> ShorthandError:
    return ShorthandError(
        ComponentCodes.SHORTHAND_TYPE, f"has an invalid type at column {column}: {quote_value(text)}; {hint}"
    )


_QUOTES = "\"'"
_BOOLEAN_MARKERS = ("required", "nullable", "uniqueItems")
_BRACKETS = {"[": "]", "{": "}"}


@dataclass(frozen=True)
class Marker:
    """One marker of a field, e.g. `default="a b"`. `value` is the text after the equals sign, with its quotes."""

    key: str
    value: str
    column: int

    @property
    def message_prefix(self) -> str:
        """Beginning of an error message about the marker."""
        return f"has the marker {self.key}={_shorten(self.value)} at column {self.column}"


@dataclass(frozen=True)
class FieldExpression:
    """Field expression that is split into its type and its markers. `column` is the column of the type."""

    type: str
    """Text of the type, without spaces around the type."""
    column: int
    markers: tuple[Marker, ...]


def parse_field_expression(text: str) -> FieldExpression:
    """Split a field expression, e.g. `integer | default=1`, into its type and its markers.

    Raises:
        ShorthandError: The expression has a syntax error.
    """
    type_text, _, _ = text.partition("|")
    stripped = type_text.strip()
    if not stripped:
        raise ShorthandError(
            ComponentCodes.SHORTHAND_EMPTY,
            f'must begin with a type, such as "string" or "[]string", but is {quote_value(text)}',
        )
    column = len(type_text) - len(type_text.lstrip()) + 1
    return FieldExpression(stripped, column, tuple(_MarkerParser(text, len(type_text) + 1).read()))


class _MarkerParser:
    """Parses the markers of a field expression, which follow the first `|`."""

    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.position = position

    def read(self) -> list[Marker]:
        markers: list[Marker] = []
        # Skip each `|` between two markers. The `|` is optional, because spaces already separate markers.
        while self._skip_separators():
            marker = self._read_marker()
            if any(marker.key == other.key for other in markers):
                raise ShorthandError(
                    ComponentCodes.SHORTHAND_MARKER_DUPLICATE,
                    f"has the marker {marker.key} twice; the second marker begins at column {marker.column}",
                )
            markers.append(marker)
        return markers

    def _skip_separators(self) -> bool:
        while self.position < len(self.text) and (
            self.text[self.position].isspace() or self.text[self.position] == "|"
        ):
            self.position += 1
        return self.position < len(self.text)

    def _read_marker(self) -> Marker:
        start = self.position
        while (
            self.position < len(self.text)
            and not self.text[self.position].isspace()
            and self.text[self.position] != "="
        ):
            self.position += 1
        key = self.text[start : self.position]
        if not self.text.startswith("=", self.position):
            raise ShorthandError(ComponentCodes.SHORTHAND_MARKER_NO_VALUE, _describe_missing_value(key, start + 1))
        if not key:
            raise ShorthandError(
                ComponentCodes.SHORTHAND_SYNTAX,
                f"has a value at column {start + 1} without the name of a marker, such as default or minimum",
            )
        self.position += 1
        return Marker(key, self._read_value(), start + 1)

    def _read_value(self) -> str:
        """Return the text after "=" up to the next space that is not inside of quotes or brackets."""
        start = self.position
        can_begin_quote = True
        while self.position < len(self.text) and not self.text[self.position].isspace():
            character = self.text[self.position]
            if can_begin_quote and character in _QUOTES:
                self._skip_quoted()
            elif self.position == start and character in _BRACKETS:
                self._skip_bracketed()
            else:
                self.position += 1
            can_begin_quote = character == ","
        return self.text[start : self.position]

    def _skip_quoted(self) -> None:
        start, self.position = self.position, _find_end_of_quote(self.text, self.position)
        if not self.position:
            raise ShorthandError(ComponentCodes.SHORTHAND_SYNTAX, f"has an unclosed quote at column {start + 1}")

    def _skip_bracketed(self) -> None:
        start, closing = self.position, [_BRACKETS[self.text[self.position]]]
        self.position += 1
        while closing:
            if self.position >= len(self.text):
                raise ShorthandError(
                    ComponentCodes.SHORTHAND_SYNTAX,
                    f"has an opening {self.text[start]} without a closing {closing[0]} at column {start + 1}; "
                    "put the value in double quotes",
                )
            character = self.text[self.position]
            if character == '"':
                self._skip_quoted()
                continue
            if character in _BRACKETS:
                closing.append(_BRACKETS[character])
            elif character == closing[-1]:
                closing.pop()
            self.position += 1


def unquote(value: str) -> str | None:
    r"""Return the content of a quoted value. Return an unquoted value unchanged.

    Return None if the value begins with a quote and does not end with its closing quote. In double quotes, `\` is an
    escape only before `"` or `\`, so that regular expressions need few additional backslashes.
    """
    if value[:1] not in tuple(_QUOTES):
        return value
    if _find_end_of_quote(value, 0) != len(value):
        return None
    if value[0] == "'":
        return value[1:-1].replace("''", "'")
    return _remove_escapes(value[1:-1])


def is_quoted(value: str) -> bool:
    """Return whether the whole value is one quoted text."""
    return value[:1] in tuple(_QUOTES) and _find_end_of_quote(value, 0) == len(value)


def split_items(text: str, *, quotes: bool) -> list[str]:
    r"""Split a text at its commas.

    If `quotes` is true, a comma in a quoted item does not split the text. If `quotes` is false, a comma in an item is
    written as `\,`.
    """
    items, position, item = [], 0, ""
    while position < len(text):
        if quotes and not item and text[position] in _QUOTES:
            end = _find_end_of_quote(text, position)
            item, position = text[position:end], end
        elif not quotes and text.startswith("\\,", position):
            item, position = f"{item},", position + 2
        elif text[position] == ",":
            items.append(item)
            item, position = "", position + 1
        else:
            item, position = item + text[position], position + 1
    return [*items, item]


def _find_end_of_quote(text: str, start: int) -> int:
    """Return the index after the quoted text that begins at `start`. Return 0 if the closing quote is missing."""
    quote, position = text[start], start + 1
    while position < len(text):
        if quote == '"' and text[position] == "\\" and text[position + 1 : position + 2] in ('"', "\\"):
            position += 2
        elif text[position] != quote:
            position += 1
        elif quote == "'" and text.startswith("'", position + 1):
            position += 2
        else:
            return position + 1
    return 0


def _remove_escapes(text: str) -> str:
    characters, position = [], 0
    while position < len(text):
        position += text[position] == "\\" and text[position + 1 : position + 2] in ('"', "\\")
        characters.append(text[position])
        position += 1
    return "".join(characters)


def _describe_missing_value(key: str, column: int) -> str:
    hint = f"write {key}=" + ("true" if key in _BOOLEAN_MARKERS else "…, and put text with spaces in quotes")
    return f"has the marker {_shorten(key)} without a value at column {column}: {hint}"


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
