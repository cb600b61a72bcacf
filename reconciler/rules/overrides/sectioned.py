"""Texts of sections and keys, as ini and TOML: edited line by line, and read again to see that it came out right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.yaml import Path
from reconciler.krm.yaml.same import same
from reconciler.rules.edits import value_at


class TextError(ValueError):
    """A text that is not what it must be, or cannot be changed where it stands."""


@dataclass(frozen=True)
class Entry:
    """A header, or a key with its value: its path, its lines, and where its value begins and ends in the text."""

    path: Path
    first: int
    last: int
    value: tuple[int, int] | None = None

    @property
    def is_header(self) -> bool:
        """Whether a section begins here."""
        return self.value is None


class Dialect(Protocol):
    """What tells one form of such texts from another."""

    def read(self, text: str) -> Any:
        """Return the data that a text means; raises TextError."""
        ...

    def entries(self, lines: list[str]) -> list[Entry]:
        """Return the headers and keys of a text in order."""
        ...

    def header(self, path: Path) -> str:
        """Return the line that begins a section."""
        ...

    def key(self, name: str) -> str:
        """Return a key as it is written."""
        ...

    def value(self, value: Any, like: str) -> str:
        """Return a value as it is written in the place of another; raises TextError for what cannot be written."""
        ...


def edit(dialect: Dialect, text: str, data: Any) -> str:
    """Return the text changed to mean `data`: what did not change keeps its lines, comments included.

    Raises TextError for a change that has no place in it.
    """
    before = dialect.read(text)
    for path in list(_changed(before, data, ())):
        text = _with_change(dialect, text, path, value_at(data, path), data)
    if not same(dialect.read(text), data):
        raise TextError("it cannot be edited where it stands")
    return text


def _changed(before: Any, after: Any, path: Path) -> Iterator[Path]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            yield from _changed(before.get(key, ABSENT), after.get(key, ABSENT), (*path, key))
    elif _are_tables(before, after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _changed(old, new, (*path, index))
    elif before is ABSENT or after is ABSENT or not same(before, after):
        yield path


def _are_tables(before: Any, after: Any) -> bool:
    lists = isinstance(before, list) and isinstance(after, list) and len(before) == len(after)
    return lists and all(isinstance(one, dict) for one in (*before, *after))


def _with_change(dialect: Dialect, text: str, path: Path, value: Any, data: Any) -> str:
    lines = text.splitlines(keepends=True)
    entries = dialect.entries(lines)
    # what is inside of a value on one line is written anew with all of it
    for depth in range(len(path), 0, -1):
        entry = next((one for one in entries if not one.is_header and one.path == path[:depth]), None)
        if entry and depth == len(path) and value is ABSENT:
            return "".join([*lines[: entry.first], *lines[entry.last + 1 :]])
        if entry and entry.value:
            start, end = entry.value
            return text[:start] + dialect.value(value_at(data, path[:depth]), text[start:end]) + text[end:]
    if value is ABSENT:
        return _without_section(lines, entries, path)
    if isinstance(value, dict) and value:
        return _with_section(dialect, text, path, value)
    return _with_key(dialect, lines, entries, path, value)


def _without_section(lines: list[str], entries: list[Entry], path: Path) -> str:
    """Return the text without a section, the sections inside of it, and what stands in them."""
    kept: list[str] = []
    at, inside = 0, False
    for entry in entries:
        if entry.is_header:
            goes = entry.path[: len(path)] == path
            head = entry.first if inside or not goes else _above(lines, entry.first)
            kept += [] if inside else lines[at:head]
            at, inside = (_above(lines, entry.first) if inside and not goes else head), goes
    return "".join(kept if inside else [*kept, *lines[at:]])


def _above(lines: list[str], line: int) -> int:
    """Return the first of the comment lines that stand right above a line."""
    while line > 0 and lines[line - 1].lstrip()[:1] in ("#", ";"):
        line -= 1
    return line


def _with_section(dialect: Dialect, text: str, path: Path, value: dict[str, Any]) -> str:
    newline = _newline(text)
    text = text if not text or text.endswith(("\n", "\r")) else text + newline
    flat = [(key, one) for key, one in value.items() if not isinstance(one, dict)]
    written = [f"{dialect.key(key)} = {dialect.value(one, '')}" for key, one in flat]
    text += "".join(
        f"{line}{newline}" for line in ["" if text else None, dialect.header(path), *written] if line is not None
    )
    for key, one in value.items():
        if isinstance(one, dict):
            text = _with_section(dialect, text, (*path, key), one)
    return text


def _with_key(dialect: Dialect, lines: list[str], entries: list[Entry], path: Path, value: Any) -> str:
    newline = _newline("".join(lines))
    line = f"{dialect.key(str(path[-1]))} = {dialect.value(value, '')}{newline}"
    at = _place_of_key(lines, entries, path[:-1])
    if at is None:
        return _with_section(dialect, "".join(lines), path[:-1], {str(path[-1]): value})
    if at and not lines[at - 1].endswith(("\n", "\r")):
        lines = [*lines[: at - 1], lines[at - 1] + newline, *lines[at:]]
    return "".join([*lines[:at], line, *lines[at:]])


def _place_of_key(lines: list[str], entries: list[Entry], section: Path) -> int | None:
    """Return the line for a new key of a section, None where the section has no place of its own."""
    current: Path = ()
    place = None if section else 0
    for entry in entries:
        if entry.is_header:
            current = entry.path
        if current == section:
            place = entry.last + 1
    if not section and not place:
        headers = [entry.first for entry in entries if entry.is_header]
        return _above(lines, headers[0]) if headers else len(lines)
    return place


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
