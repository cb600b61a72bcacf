"""Values in words: any piece of data on one line of bounded length, safe to show on a terminal."""

from __future__ import annotations

import json

from reconciler.redaction import redact_urls

WIDTH = 60
_KEPT_BEFORE_A_DIFFERENCE = 12


def one_line(text: str) -> str:
    """Return the text on one line: line breaks as ⏎, control and direction characters escaped.

    User input must not move a terminal's cursor or start a trailer of its own. Credentials of URLs are removed.
    """
    text = redact_urls(text)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def shorten(text: str, width: int = WIDTH) -> str:
    """Return the text cut to `width` characters, with … where it was cut."""
    return text if len(text) <= width else text[: max(width - 1, 0)].rstrip() + "…"


def count(number: int, thing: str) -> str:
    """Return a number with its noun, which makes its plural with an s."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def show(value: object, width: int = WIDTH) -> str:
    """Return one value: a string as it is, anything else as JSON."""
    return shorten(_text(value), width)


def show_both(before: object, after: object, width: int = WIDTH) -> tuple[str, str]:
    """Return two values so that their difference can be seen.

    Equal texts of different types are quoted; of long texts the common start is left out.
    """
    old, new = _text(before), _text(after)
    if old == new:
        old, new = _json(before), _json(after)
    if max(len(old), len(new)) > width:
        cut = max(_common_start(old, new) - _KEPT_BEFORE_A_DIFFERENCE, 0)
        old, new = (f"…{text[cut:]}" if cut else text for text in (old, new))
    return shorten(old, width), shorten(new, width)


def _text(value: object) -> str:
    if isinstance(value, str) and value and value == value.strip():
        return one_line(value)
    return _json(value)


def _json(value: object) -> str:
    return one_line(json.dumps(value, ensure_ascii=False, default=str))


def _escaped(char: str) -> str:
    return "⏎" if char == "\n" else char.encode("unicode_escape").decode("ascii")


def _common_start(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((index for index, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))
