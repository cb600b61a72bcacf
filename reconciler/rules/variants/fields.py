"""Fields: a mapping that somebody wrote, read field by field while every fault is gathered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Faults:
    """What is wrong with an object, in the order of its reading; unknown fields are told last."""

    errors: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, *messages: str) -> None:
        """Note errors."""
        self.errors += messages

    def warn(self, message: str) -> None:
        """Note something that is read although it should be written otherwise."""
        self.warnings.append(message)

    def all(self) -> tuple[str, ...]:
        """Return every error."""
        return (*self.errors, *self.unknown)


class Fields:
    """One mapping at a path such as `spec.targets[0].template`; None counts as absent.

    A field of a wrong type is an error and reads as absent, so that the reading goes on.
    """

    def __init__(self, path: str, data: object, faults: Faults) -> None:
        self.path = path
        self.faults = faults
        self.data: Mapping[Any, Any] = data if isinstance(data, Mapping) else {}
        if data is not None and not isinstance(data, Mapping):
            faults.add(f"{path} must be a mapping")

    def at(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        """Tell whether a field is written, null aside."""
        return self.data.get(name) is not None

    def raw(self, name: str) -> Any:
        """Return a field as it is written, None if absent."""
        return self.data.get(name)

    def text(self, name: str) -> str:
        """Return a string; "" when absent."""
        value = self.data.get(name)
        if value is None or isinstance(value, str):
            return value or ""
        self.faults.add(f"{self.at(name)} must be a string, not {shown(value)}")
        return ""

    def optional_text(self, name: str) -> str | None:
        """Return a string, or None when absent: for fields where "" says something."""
        return self.text(name) if self.has(name) else None

    def choice(self, name: str, allowed: Sequence[str], complaint: str = "") -> str | None:
        """Return one of the allowed words; None when absent, empty or, with `complaint` or one of our own, another."""
        value = self.data.get(name)
        for word in allowed:
            if value == word:
                return word
        if value not in (None, ""):
            ours = f"{self.at(name)} can only be one of {', '.join(allowed)}, not {shown(value)}"
            self.faults.add(complaint or ours)
        return None

    def fields(self, name: str) -> Fields:
        """Return a mapping below this one; empty when absent."""
        return Fields(self.at(name), self.data.get(name), self.faults)

    def string_map(self, name: str) -> dict[str, str]:
        """Return a mapping of strings to strings; {} when absent."""
        strings = {}
        for key, value in self.fields(name).data.items():
            if isinstance(key, str) and isinstance(value, str):
                strings[key] = value
            else:
                self.faults.add(f"{self.at(name)} must map strings to strings, not {shown(key)} to {shown(value)}")
        return strings

    def items(self, name: str) -> Iterator[tuple[str, Any]]:
        """Yield (path, value) of each item of a list; nothing when absent."""
        value = self.data.get(name)
        if value is None:
            return
        if not isinstance(value, list | tuple):
            self.faults.add(f"{self.at(name)} must be a list")
            return
        for index, item in enumerate(value):
            yield f"{self.at(name)}[{index}]", item

    def entries(self, name: str) -> Iterator[Fields]:
        """Yield each mapping of a list."""
        for path, item in self.items(name):
            yield Fields(path, {} if item is None else item, self.faults)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings."""
        strings = []
        for path, item in self.items(name):
            if isinstance(item, str):
                strings.append(item)
            else:
                self.faults.add(f"{path} must be a string, not {shown(item)}")
        return tuple(strings)

    def one_or_many(self, name: str) -> Fields:
        """Return these fields with a mapping at `name` read as a list of one, with a warning (porch 2.4)."""
        if not isinstance(self.data.get(name), Mapping):
            return self
        self.faults.warn(f"{self.at(name)} is written as a mapping and read as a list of one")
        return self.replaced({name: [self.data[name]]})

    def replaced(self, changes: Mapping[str, Any]) -> Fields:
        """Return these fields with some of them changed; a change to None drops one."""
        data = {name: value for name, value in {**self.data, **changes}.items() if value is not None}
        return Fields(self.path, data, self.faults)

    def refuse_unknown(self, *known: str) -> None:
        """Note every field that is not among the known ones."""
        unknown = (name for name in self.data if name not in known)
        self.faults.unknown += [
            f'unknown field "{self.at(str(name))}" (allowed: {", ".join(known)})' for name in unknown
        ]


def shown(value: object) -> str:
    """Return a value as the messages quote it: compact JSON with sorted keys."""
    return json.dumps(_with_text_keys(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


def _with_text_keys(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _with_text_keys(item) for key, item in value.items()}
    return [_with_text_keys(item) for item in value] if isinstance(value, list | tuple) else value
