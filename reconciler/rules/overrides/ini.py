"""Ini texts: sections of keys, or keys alone as in .properties and .env files; all values are strings."""

from __future__ import annotations

import re
from typing import Any

from reconciler.krm.yaml import Path
from reconciler.rules.overrides.sectioned import Entry, TextError, edit

_HEADER = re.compile(r"\s*\[([^\]]+)\]\s*(?:[#;].*)?$")
# what follows a blank and # or ; is a comment, as in most dialects
_KEY = re.compile(r"\s*([^\s=:#;\[][^=:]*?)\s*[=:][ \t]*(.*?)(?:[ \t]+[#;].*)?[ \t\r\n]*$")
_WORDS = {True: "true", False: "false"}


class IniText:
    """Ini, which keeps its comments and blanks."""

    def read(self, text: str) -> dict[str, Any]:
        """Return sections as mappings and keys as strings; raises TextError for any other line, and for repeats."""
        data: dict[str, Any] = {}
        lines = text.splitlines(keepends=True)
        entries = self.entries(lines)
        known = {entry.first for entry in entries}
        for number, line in enumerate(lines):
            if number not in known and line.strip() and line.lstrip()[0] not in "#;":
                raise TextError(f"line {number + 1} is neither a section, nor a key with its value, nor a comment")
        for entry in entries:
            name, section = str(entry.path[-1]), data if len(entry.path) == 1 else data[str(entry.path[0])]
            if name in section:
                raise TextError(f"line {entry.first + 1} repeats {name}")
            section[name] = {} if entry.value is None else text[slice(*entry.value)]
        return data

    def edit(self, text: str, data: Any) -> str:
        """Return the text changed to mean `data`; numbers and booleans are written as words."""
        return edit(self, text, _strings(data))

    def entries(self, lines: list[str]) -> list[Entry]:
        """Return the headers and keys in order."""
        found: list[Entry] = []
        section: Path = ()
        offset = 0
        for number, line in enumerate(lines):
            if header := _HEADER.match(line):
                section = (header[1].strip(),)
                found.append(Entry(section, number, number))
            elif key := _KEY.match(line):
                span = (offset + key.start(2), offset + key.end(2))
                found.append(Entry((*section, key[1]), number, number, span))
            offset += len(line)
        return found

    def header(self, path: Path) -> str:
        """Return the line that begins a section."""
        return f"[{path[0]}]"

    def key(self, name: str) -> str:
        """Return a key as it is written."""
        return name

    def value(self, value: Any, like: str) -> str:
        """Return a value as it is written."""
        if not isinstance(value, str):
            raise TextError("a value must be a string, a number or a boolean")
        return value


def _strings(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _strings(value) for key, value in data.items()}
    if isinstance(data, bool):
        return _WORDS[data]
    return str(data) if isinstance(data, int | float) else data
