"""TOML texts, read by the standard library and edited in their lines."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from reconciler.krm.yaml import Path
from reconciler.rules.overrides.sectioned import Entry, TextError, edit

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*'""")


class _Moment(str):
    """A date or time, which a policy can leave where it is, and not write."""

    __slots__ = ()


class TomlText:
    """TOML, which keeps its comments, blanks and quotes."""

    def read(self, text: str) -> Any:
        """Return the data, with dates and times as strings."""
        try:
            return _plain(tomllib.loads(text))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise TextError(str(error)) from error

    def edit(self, text: str, data: Any) -> str:
        """Return the text changed to mean `data`."""
        return edit(self, text, data)

    def entries(self, lines: list[str]) -> list[Entry]:
        """Return the headers and keys in order; a value of several lines is one entry."""
        return list(_entries(lines))

    def header(self, path: Path) -> str:
        """Return the line that begins a table."""
        if not all(isinstance(step, str) for step in path):
            raise TextError("a table cannot be added to one of a list")
        return f"[{'.'.join(self.key(str(step)) for step in path)}]"

    def key(self, name: str) -> str:
        """Return a key as it is written."""
        return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)

    def value(self, value: Any, like: str) -> str:
        """Return a value as it is written, in single quotes where those were."""
        match value:
            case _Moment():
                return str(value)
            case str():
                literal = (
                    like.startswith("'") and not like.startswith("'''") and "'" not in value and value.isprintable()
                )
                return f"'{value}'" if literal else json.dumps(value, ensure_ascii=False)
            case bool():
                return "true" if value else "false"
            case int() | float():
                return repr(value)
            case list():
                return f"[{', '.join(self.value(one, '') for one in value)}]"
            case dict():
                entries = (f"{self.key(key)} = {self.value(one, '')}" for key, one in value.items())
                return "{" + ", ".join(entries) + "}"
        raise TextError("TOML has no null")


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_plain(value) for value in data]
    return _Moment(data.isoformat()) if hasattr(data, "isoformat") else data


def _entries(lines: list[str]) -> Iterator[Entry]:
    counts: dict[Path, int] = {}
    section: Path = ()
    number, offset = 0, 0
    while number < len(lines):
        line = lines[number]
        last = number
        if line.lstrip().startswith("["):
            section = _section(line, counts)
            yield Entry(section, number, number)
        elif line.strip() and not line.lstrip().startswith("#"):
            last, entry = _key(lines, number, offset, section)
            yield entry
        offset += sum(map(len, lines[number : last + 1]))
        number = last + 1


def _section(line: str, counts: dict[Path, int]) -> Path:
    names, is_list = _names(tomllib.loads(line)), line.lstrip().startswith("[[")
    path: Path = ()
    for number, name in enumerate(names):
        path = (*path, name)
        if is_list and number == len(names) - 1:
            counts[path] = counts.get(path, 0) + 1
        if path in counts:
            path = (*path, counts[path] - 1)
    return path


def _names(data: Any) -> list[str]:
    """Return the keys that lead to the end of data that has but one way."""
    found: list[str] = []
    while isinstance(data, dict | list) and data:
        if isinstance(data, list):
            data = data[0]
        else:
            ((name, data),) = data.items()
            found.append(name)
    return found


def _key(lines: list[str], number: int, offset: int, section: Path) -> tuple[int, Entry]:
    equals = _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), lines[number]).index("=")
    path = (*section, *_names(tomllib.loads(lines[number][:equals] + "= 0")))
    last = next(end for end in range(number, len(lines)) if _parses("".join(lines[number : end + 1])))
    text = "".join(lines[number : last + 1])
    start = equals + 1 + len(text[equals + 1 :]) - len(text[equals + 1 :].lstrip(" \t"))
    end = _end_of_value(text, start)
    return last, Entry(path, number, last, (offset + start, offset + end))


def _end_of_value(text: str, start: int) -> int:
    whole = tomllib.loads(f"v = {text[start:]}")
    places = (match.start() for match in re.finditer("#", text[start:]))
    ends = [len(text[: start + place].rstrip()) for place in places] + [len(text.rstrip())]
    return next(
        end for end in ends if _parses(f"v = {text[start:end]}") and tomllib.loads(f"v = {text[start:end]}") == whole
    )


def _parses(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True
