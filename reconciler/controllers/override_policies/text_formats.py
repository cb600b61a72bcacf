"""Editors of ini and TOML text, which consist of sections and keys. The editors change single lines.

After an edit, the text is read again to verify the result.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any, Protocol

from reconciler.controllers.nested_values import get_value
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass

_HEADER = re.compile(r"\s*\[([^\]]+)\]\s*(?:[#;].*)?$")
# A comment after a value starts with a space and `#` or `;`, because most ini dialects have this syntax.
_KEY = re.compile(r"\s*([^\s=:#;\[][^=:]*?)\s*[=:][ \t]*(.*?)(?:[ \t]+[#;].*)?[ \t\r\n]*$")
_BOOLEAN_TEXTS = {True: "true", False: "false"}
_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*'""")


class TextFormatError(ValueError):
    """Raised if a text has an invalid format, or cannot be changed in place."""


@dataclass(frozen=True)
class TextEntry:
    """A section header, or a key with its value. `value_span` contains the offsets of the value in the text."""

    path: DataPath
    first_line: int
    last_line: int
    value_span: tuple[int, int] | None = None

    @property
    def is_header(self) -> bool:
        """Whether the entry is the header of a section."""
        return self.value_span is None


class SectionedFormat(Protocol):
    """Interface of a text format with sections, e.g. ini or TOML."""

    def read(self, text: str) -> Any:
        """Return the data of a text. Raise `TextFormatError` if the text is invalid."""
        ...

    def find_entries(self, lines: list[str]) -> list[TextEntry]:
        """Return the section headers and the keys of a text in order."""
        ...

    def format_header(self, path: DataPath) -> str:
        """Return the line that starts a section."""
        ...

    def format_key(self, name: str) -> str:
        """Return a key as it is written in the text."""
        ...

    def format_value(self, value: Any, original: str) -> str:
        """Format a value in the notation of the text. `original` is the text of the value that it replaces.

        Raises:
            TextFormatError: The format cannot contain the value.
        """
        ...


def edit_sections(text_format: SectionedFormat, text: str, data: Any) -> str:
    """Return the text after it is changed to contain `data`. Unchanged entries keep their lines and comments.

    Raises:
        TextFormatError: A change cannot be made in place.
    """
    before = text_format.read(text)
    for path in list(_find_changed_paths(before, data, ())):
        text = _apply_change(text_format, text, path, get_value(data, path), data)
    if not is_equal_data(text_format.read(text), data):
        raise TextFormatError("the change cannot be made in the existing text")
    return text


def _find_changed_paths(before: Any, after: Any, path: DataPath) -> Iterator[DataPath]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            yield from _find_changed_paths(before.get(key, ABSENT), after.get(key, ABSENT), (*path, key))
    elif _are_tables_of_equal_length(before, after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _find_changed_paths(old, new, (*path, index))
    elif before is ABSENT or after is ABSENT or not is_equal_data(before, after):
        yield path


def _are_tables_of_equal_length(before: Any, after: Any) -> bool:
    lists = isinstance(before, list) and isinstance(after, list) and len(before) == len(after)
    return lists and all(isinstance(item, dict) for item in (*before, *after))


def _apply_change(text_format: SectionedFormat, text: str, path: DataPath, value: Any, data: Any) -> str:
    lines = text.splitlines(keepends=True)
    entries = text_format.find_entries(lines)
    # If the change is inside a value such as an inline table, write this whole value again.
    for depth in range(len(path), 0, -1):
        entry = next(
            (candidate for candidate in entries if not candidate.is_header and candidate.path == path[:depth]), None
        )
        if entry and depth == len(path) and value is ABSENT:
            return "".join([*lines[: entry.first_line], *lines[entry.last_line + 1 :]])
        if entry and entry.value_span:
            start, end = entry.value_span
            return text[:start] + text_format.format_value(get_value(data, path[:depth]), text[start:end]) + text[end:]
    if value is ABSENT:
        return _remove_section(lines, entries, path)
    if isinstance(value, dict) and value:
        return _append_section(text_format, text, path, value)
    return _insert_key(text_format, lines, entries, path, value)


def _remove_section(lines: list[str], entries: list[TextEntry], path: DataPath) -> str:
    """Remove a section, its subsections, and the comments directly above them. Return the new text."""
    kept_lines: list[str] = []
    position, is_inside = 0, False
    for entry in entries:
        if entry.is_header:
            is_removed = entry.path[: len(path)] == path
            header_start = (
                entry.first_line if is_inside or not is_removed else _find_comment_start(lines, entry.first_line)
            )
            kept_lines += [] if is_inside else lines[position:header_start]
            position, is_inside = (
                (_find_comment_start(lines, entry.first_line) if is_inside and not is_removed else header_start),
                is_removed,
            )
    return "".join(kept_lines if is_inside else [*kept_lines, *lines[position:]])


def _find_comment_start(lines: list[str], line: int) -> int:
    """Return the number of the first comment line directly above a line. Return `line` if there is no comment."""
    while line > 0 and lines[line - 1].lstrip()[:1] in ("#", ";"):
        line -= 1
    return line


def _append_section(text_format: SectionedFormat, text: str, path: DataPath, value: dict[str, Any]) -> str:
    newline = _detect_newline(text)
    text = text if not text or text.endswith(("\n", "\r")) else text + newline
    scalars = [(key, item) for key, item in value.items() if not isinstance(item, dict)]
    lines_of_scalars = [
        f"{text_format.format_key(key)} = {text_format.format_value(item, '')}" for key, item in scalars
    ]
    text += "".join(
        f"{line}{newline}"
        for line in ["" if text else None, text_format.format_header(path), *lines_of_scalars]
        if line is not None
    )
    for key, item in value.items():
        if isinstance(item, dict):
            text = _append_section(text_format, text, (*path, key), item)
    return text


def _insert_key(
    text_format: SectionedFormat, lines: list[str], entries: list[TextEntry], path: DataPath, value: Any
) -> str:
    newline = _detect_newline("".join(lines))
    line = f"{text_format.format_key(str(path[-1]))} = {text_format.format_value(value, '')}{newline}"
    position = _find_key_position(lines, entries, path[:-1])
    if position is None:
        return _append_section(text_format, "".join(lines), path[:-1], {str(path[-1]): value})
    if position and not lines[position - 1].endswith(("\n", "\r")):
        lines = [*lines[: position - 1], lines[position - 1] + newline, *lines[position:]]
    return "".join([*lines[:position], line, *lines[position:]])


def _find_key_position(lines: list[str], entries: list[TextEntry], section: DataPath) -> int | None:
    """Return the line number for a new key of a section. Return None if the text has no such section."""
    current: DataPath = ()
    position = None if section else 0
    for entry in entries:
        if entry.is_header:
            current = entry.path
        if current == section:
            position = entry.last_line + 1
    if not section and not position:
        headers = [entry.first_line for entry in entries if entry.is_header]
        return _find_comment_start(lines, headers[0]) if headers else len(lines)
    return position


def _detect_newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


class IniEditor:
    """Editor of text with keys and optional sections, e.g. ini, .properties and .env files. All values are strings."""

    def read(self, text: str) -> dict[str, Any]:
        """Return sections as mappings, and keys with their values as strings.

        Raises:
            TextFormatError: A line is invalid, or a section or key is repeated.
        """
        data: dict[str, Any] = {}
        lines = text.splitlines(keepends=True)
        entries = self.find_entries(lines)
        known = {entry.first_line for entry in entries}
        for number, line in enumerate(lines):
            if number not in known and line.strip() and line.lstrip()[0] not in "#;":
                raise TextFormatError(
                    f"line {number + 1} is neither a section, nor a key with its value, nor a comment"
                )
        for entry in entries:
            name, section = str(entry.path[-1]), data if len(entry.path) == 1 else data[str(entry.path[0])]
            if name in section:
                raise TextFormatError(f'line {entry.first_line + 1} contains "{name}" again')
            section[name] = {} if entry.value_span is None else text[slice(*entry.value_span)]
        return data

    def edit(self, text: str, data: Any) -> str:
        """Return the text after it is changed to contain `data`. Numbers and booleans are written as text."""
        return edit_sections(self, text, _convert_to_strings(data))

    def find_entries(self, lines: list[str]) -> list[TextEntry]:
        """Return the section headers and the keys in order."""
        entries: list[TextEntry] = []
        section: DataPath = ()
        offset = 0
        for number, line in enumerate(lines):
            if header := _HEADER.match(line):
                section = (header[1].strip(),)
                entries.append(TextEntry(section, number, number))
            elif key := _KEY.match(line):
                span = (offset + key.start(2), offset + key.end(2))
                entries.append(TextEntry((*section, key[1]), number, number, span))
            offset += len(line)
        return entries

    def format_header(self, path: DataPath) -> str:
        """Return the line that starts a section."""
        return f"[{path[0]}]"

    def format_key(self, name: str) -> str:
        """Return a key as it is written in the text."""
        return name

    def format_value(self, value: Any, original: str) -> str:
        """Return a value as it is written in the text."""
        if not isinstance(value, str):
            raise TextFormatError("a value must be a string, a number or a boolean")
        return value


def _convert_to_strings(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _convert_to_strings(value) for key, value in data.items()}
    if isinstance(data, bool):
        return _BOOLEAN_TEXTS[data]
    return str(data) if isinstance(data, int | float) else data


class _DateTime(str):
    """A date or time in the text, as a string. An edit can keep such a value, but a policy cannot set one."""

    __slots__ = ()


class TomlEditor:
    """Editor of TOML text. It keeps comments, spaces and quotes."""

    def read(self, text: str) -> Any:
        """Return the data of the text. Dates and times become strings."""
        try:
            return _convert_dates(tomllib.loads(text))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise TextFormatError(str(error)) from error

    def edit(self, text: str, data: Any) -> str:
        """Return the text after it is changed to contain `data`."""
        return edit_sections(self, text, data)

    def find_entries(self, lines: list[str]) -> list[TextEntry]:
        """Return the table headers and the keys in order. A key with a value of several lines is one entry."""
        return list(_list_entries(lines))

    def format_header(self, path: DataPath) -> str:
        """Return the line that starts a table."""
        if not all(isinstance(step, str) for step in path):
            raise TextFormatError("a table cannot be added to an item of an array of tables")
        return f"[{'.'.join(self.format_key(str(step)) for step in path)}]"

    def format_key(self, name: str) -> str:
        """Return a key as it is written in the text."""
        return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)

    def format_value(self, value: Any, original: str) -> str:
        """Return a value as it is written in TOML. If `original` has single quotes, a new string has them too."""
        match value:
            case _DateTime():
                return str(value)
            case str():
                can_be_literal = (
                    original.startswith("'")
                    and not original.startswith("'''")
                    and "'" not in value
                    and value.isprintable()
                )
                return f"'{value}'" if can_be_literal else json.dumps(value, ensure_ascii=False)
            case bool():
                return "true" if value else "false"
            case int() | float():
                return repr(value)
            case list():
                return f"[{', '.join(self.format_value(item, '') for item in value)}]"
            case dict():
                entries = (f"{self.format_key(key)} = {self.format_value(item, '')}" for key, item in value.items())
                return "{" + ", ".join(entries) + "}"
        raise TextFormatError("TOML has no null")


def _convert_dates(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _convert_dates(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_convert_dates(value) for value in data]
    return _DateTime(data.isoformat()) if hasattr(data, "isoformat") else data


def _list_entries(lines: list[str]) -> Iterator[TextEntry]:
    counts: dict[DataPath, int] = {}
    section: DataPath = ()
    number, offset = 0, 0
    while number < len(lines):
        line = lines[number]
        last = number
        if line.lstrip().startswith("["):
            section = _parse_header(line, counts)
            yield TextEntry(section, number, number)
        elif line.strip() and not line.lstrip().startswith("#"):
            last, entry = _parse_key(lines, number, offset, section)
            yield entry
        offset += sum(map(len, lines[number : last + 1]))
        number = last + 1


def _parse_header(line: str, counts: dict[DataPath, int]) -> DataPath:
    names, is_list = _list_nested_keys(tomllib.loads(line)), line.lstrip().startswith("[[")
    path: DataPath = ()
    for number, name in enumerate(names):
        path = (*path, name)
        if is_list and number == len(names) - 1:
            counts[path] = counts.get(path, 0) + 1
        if path in counts:
            path = (*path, counts[path] - 1)
    return path


def _list_nested_keys(data: Any) -> list[str]:
    """Return the keys of nested data in which every mapping has exactly one key, e.g. {"a": {"b": 0}} -> ["a", "b"]."""
    names: list[str] = []
    while isinstance(data, dict | list) and data:
        if isinstance(data, list):
            data = data[0]
        else:
            ((name, data),) = data.items()
            names.append(name)
    return names


def _parse_key(lines: list[str], number: int, offset: int, section: DataPath) -> tuple[int, TextEntry]:
    equals = _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), lines[number]).index("=")
    path = (*section, *_list_nested_keys(tomllib.loads(lines[number][:equals] + "= 0")))
    last = next(end for end in range(number, len(lines)) if _is_valid_toml("".join(lines[number : end + 1])))
    text = "".join(lines[number : last + 1])
    start = equals + 1 + len(text[equals + 1 :]) - len(text[equals + 1 :].lstrip(" \t"))
    end = _find_end_of_value(text, start)
    return last, TextEntry(path, number, last, (offset + start, offset + end))


def _find_end_of_value(text: str, start: int) -> int:
    expected = tomllib.loads(f"v = {text[start:]}")
    offsets = (match.start() for match in re.finditer("#", text[start:]))
    ends = [len(text[: start + offset].rstrip()) for offset in offsets] + [len(text.rstrip())]
    return next(
        end
        for end in ends
        if _is_valid_toml(f"v = {text[start:end]}") and tomllib.loads(f"v = {text[start:end]}") == expected
    )


def _is_valid_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True
