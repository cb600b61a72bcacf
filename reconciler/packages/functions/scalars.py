"""Scalars as text: what a value set as text becomes, and whether the one it replaces stood in quotes."""

from __future__ import annotations

from typing import Any

from reconciler.caching import cached
from reconciler.krm.yaml import Document, Path
from reconciler.packages.functions.function import quoted, value_at
from reconciler.packages.parsing import Unparsable, parse_cached


@cached(4096)
def resolved(text: str) -> Any:
    """Return what plain, unquoted text means in YAML; text that is no scalar stays text."""
    parsed = parse_cached(text.encode())
    if isinstance(parsed, Unparsable) or len(parsed.documents) != 1:
        return text
    value = parsed.documents[0].data
    return text if isinstance(value, str | dict | list) else value


def retyped(text: str, document: Document, path: Path) -> Any:
    """Return the value that `text` has when it takes the place of the scalar at `path`.

    A quoted scalar stays a string. A float that would not be spelled as the text is stays a string too where a
    string was, since "1.10" is then a version and not a number.
    """
    old, new = value_at(document.data, path), resolved(text)
    if is_quoted(document, path):
        return text
    return text if isinstance(new, float) and isinstance(old, str) and str(new) != text else new


def is_quoted(document: Document, path: Path) -> bool:
    """Tell whether the string at `path` stands in quotes or in a block, judging by the line of its key."""
    old = value_at(document.data, path)
    if not isinstance(old, str):
        return False
    if resolved(old) != old or type(resolved(old)) is not str:
        return True
    return _first_character(document, path) in ('"', "'", "|", ">")


def in_quotes(text: str, document: Document, path: Path) -> str:
    """Return the text in the quotes, if any, of the scalar at `path`."""
    first = _first_character(document, path) if isinstance(value_at(document.data, path), str) else ""
    if first == '"':
        return quoted(text)
    return "'" + text.replace("'", "''") + "'" if first == "'" else text


def _first_character(document: Document, path: Path) -> str:
    lines = _lines(document)
    number = document.line_of(path) - document.line
    line = lines[number] if 0 <= number < len(lines) else ""
    after = line.partition(f"{path[-1]}:")[2] if isinstance(path[-1], str) else line.partition("- ")[2]
    return after.lstrip()[:1]


@cached(64)
def _lines(document: Document) -> list[str]:
    # functions ask field by field
    return document.text.splitlines()
