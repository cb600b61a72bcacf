"""A field's expression as its parts: a type and its markers, each with the column it begins at (openchoreo 3.1)."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.rules.composition import codes
from reconciler.rules.composition.schema.refusal import RefusalError
from reconciler.rules.fields import shown

_QUOTES = "\"'"
_FLAGS = ("required", "nullable", "uniqueItems")
_PAIRS = {"[": "]", "{": "}"}


@dataclass(frozen=True)
class Marker:
    """One `key=value`; the value is as written, with its quotes."""

    key: str
    value: str
    column: int

    @property
    def where(self) -> str:
        """The marker as messages begin with it."""
        return f"has at column {self.column} {self.key}={_short(self.value)}"


@dataclass(frozen=True)
class Expression:
    """What one line says about a field."""

    type: str
    """Without the blanks around it."""
    column: int
    markers: tuple[Marker, ...]


def read_expression(text: str) -> Expression:
    """Return the parts of an expression; raises RefusalError where it is none (openchoreo 3.1)."""
    written, _, _ = text.partition("|")
    name = written.strip()
    if not name:
        raise RefusalError(
            codes.SHORTHAND_EMPTY, f"must begin with a type, such as string or []string, not {shown(text)}"
        )
    column = len(written) - len(written.lstrip()) + 1
    return Expression(name, column, tuple(_Markers(text, len(written) + 1).read()))


class _Markers:
    """A walk over the text behind the first `|`."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at

    def read(self) -> list[Marker]:
        found: list[Marker] = []
        # a lone | between markers, and one that leads a marker, says nothing
        while self._skip():
            marker = self._marker()
            if any(marker.key == other.key for other in found):
                raise RefusalError(
                    codes.SHORTHAND_MARKER_DUPLICATE, f"has the marker {marker.key} again at column {marker.column}"
                )
            found.append(marker)
        return found

    def _skip(self) -> bool:
        while self.at < len(self.text) and (self.text[self.at].isspace() or self.text[self.at] == "|"):
            self.at += 1
        return self.at < len(self.text)

    def _marker(self) -> Marker:
        start = self.at
        while self.at < len(self.text) and not self.text[self.at].isspace() and self.text[self.at] != "=":
            self.at += 1
        key = self.text[start : self.at]
        if not self.text.startswith("=", self.at):
            raise RefusalError(codes.SHORTHAND_MARKER_NO_VALUE, _no_value(key, start + 1))
        if not key:
            raise RefusalError(
                codes.SHORTHAND_SYNTAX, f"has at column {start + 1} a value without the name of a marker"
            )
        self.at += 1
        return Marker(key, self._value(), start + 1)

    def _value(self) -> str:
        """Return what stands between = and the next blank that is neither quoted nor in brackets."""
        start = self.at
        begins = True
        while self.at < len(self.text) and not self.text[self.at].isspace():
            character = self.text[self.at]
            if begins and character in _QUOTES:
                self._quoted()
            elif self.at == start and character in _PAIRS:
                self._bracketed()
            else:
                self.at += 1
            begins = character == ","
        return self.text[start : self.at]

    def _quoted(self) -> None:
        start, self.at = self.at, _end_of_quote(self.text, self.at)
        if not self.at:
            raise RefusalError(codes.SHORTHAND_SYNTAX, f"has at column {start + 1} a quote that is not closed")

    def _bracketed(self) -> None:
        start, closing = self.at, [_PAIRS[self.text[self.at]]]
        self.at += 1
        while closing:
            if self.at >= len(self.text):
                raise RefusalError(
                    codes.SHORTHAND_SYNTAX,
                    f'has at column {start + 1} a {self.text[start]} without its {closing[0]}: put the value into ""',
                )
            character = self.text[self.at]
            if character == '"':
                self._quoted()
                continue
            if character in _PAIRS:
                closing.append(_PAIRS[character])
            elif character == closing[-1]:
                closing.pop()
            self.at += 1


def unquoted(value: str) -> str | None:
    """Return what a value that is one quoted text holds, other values as they are; None where more follows a quote.

    Of escapes there are only those of the quote itself, so that patterns need not double their backslashes.
    """
    if value[:1] not in tuple(_QUOTES):
        return value
    if _end_of_quote(value, 0) != len(value):
        return None
    if value[0] == "'":
        return value[1:-1].replace("''", "'")
    return _without_escapes(value[1:-1])


def is_quoted(value: str) -> bool:
    """Tell whether a value is one quoted text, from its beginning to its end."""
    return value[:1] in tuple(_QUOTES) and _end_of_quote(value, 0) == len(value)


def split_items(text: str, *, quotes: bool) -> list[str]:
    """Return what stands between commas; those in quotes, or behind a backslash where there are no quotes, are text."""
    items, at, item = [], 0, ""
    while at < len(text):
        if quotes and not item and text[at] in _QUOTES:
            end = _end_of_quote(text, at)
            item, at = text[at:end], end
        elif not quotes and text.startswith("\\,", at):
            item, at = f"{item},", at + 2
        elif text[at] == ",":
            items.append(item)
            item, at = "", at + 1
        else:
            item, at = item + text[at], at + 1
    return [*items, item]


def _end_of_quote(text: str, start: int) -> int:
    """Return the place behind the quote that begins at `start`, 0 when it is not closed."""
    quote, at = text[start], start + 1
    while at < len(text):
        if quote == '"' and text[at] == "\\" and text[at + 1 : at + 2] in ('"', "\\"):
            at += 2
        elif text[at] != quote:
            at += 1
        elif quote == "'" and text.startswith("'", at + 1):
            at += 2
        else:
            return at + 1
    return 0


def _without_escapes(text: str) -> str:
    kept, at = [], 0
    while at < len(text):
        at += text[at] == "\\" and text[at + 1 : at + 2] in ('"', "\\")
        kept.append(text[at])
        at += 1
    return "".join(kept)


def _no_value(key: str, column: int) -> str:
    hint = f"write {key}=" + ("true" if key in _FLAGS else ", or put text with blanks into quotes")
    return f"has at column {column} the marker {_short(key)} without a value: {hint}"


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
