"""Fields: a mapping of an object, read field by field; every fault is a finding at its line, and reading goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Self

from reconciler.krm.findings import Code, Finding, Where
from reconciler.krm.yaml import Path

_SHOWN = 80
_LISTED = 50
_COMPARED = 200


@dataclass
class Faults:
    """What is wrong with one object, in the order of its reading; `code` is that of faults without one of their own."""

    where_at: Callable[[Path], Where]
    code: Code
    findings: list[Finding] = field(default_factory=list)

    def add(self, path: Path, message: str, code: Code | None = None) -> None:
        """Note a fault; the message completes a sentence that begins with the field."""
        self.findings.append((code or self.code).finding(f"{dotted(path)} {message}", self.where_at(path)))


class Fields:
    """One mapping at a path; null counts as absent, a field that is not `known` is a fault, unless any may be.

    A field of a wrong type is a fault and reads as absent. Without `quotes` no fault quotes what is written, in here
    and below: secrets may be written in any place, the names of fields included.
    """

    def __init__(
        self, value: object, path: Path, faults: Faults, known: Sequence[str] | None, *, quotes: bool = True
    ) -> None:
        self.path = path
        self.faults = faults
        self.quotes = quotes
        self.data: Mapping[Any, Any] = value if isinstance(value, Mapping) else {}
        if value is not None and not isinstance(value, Mapping):
            faults.add(path, f"must be a mapping{self._not(value)}")
        if known is not None:
            self._refuse_unknown(known)

    def _refuse_unknown(self, known: Sequence[str]) -> None:
        allowed = ", ".join(known)
        for name in map(str, (name for name in self.data if name not in known)):
            guess = meant(name, known)
            if self.quotes or guess:
                self.fault(name, f"is unknown; allowed are {allowed}{guess}")
            else:
                self.faults.add(self.path, f"must have no other fields than {allowed}")

    def _not(self, value: object) -> str:
        return f", not {named(value)}" if self.quotes else ""

    def fault(self, name: str, message: str, code: Code | None = None) -> None:
        """Note a fault of a field."""
        self.faults.add((*self.path, name), message, code)

    def has(self, name: str) -> bool:
        """Tell whether a field is written, null aside."""
        return self.data.get(name) is not None

    def text(self, name: str, *, required: bool = False) -> str:
        """Return a string, "" when absent; a required one must not be that."""
        value = self.data.get(name)
        if value is not None and not isinstance(value, str):
            self.fault(name, f"must be a string{self._not(value)}: quote it")
        elif required and not value:
            self.fault(name, "must be a string that is not empty")
        return value if isinstance(value, str) else ""

    def choice(self, name: str, allowed: Sequence[str], default: str = "", code: Code | None = None) -> str:
        """Return one of the allowed words, the default when absent or empty, or when it is none of them."""
        value = self.data.get(name)
        if value in (None, "") and default:
            return default
        if isinstance(value, str) and value in allowed:
            return value
        self.fault(name, f"must be one of {', '.join(allowed)}{self._not(value)}", code)
        return default or allowed[0]

    def mapping(self, name: str, known: Sequence[str] | None, *, quotes: bool = True) -> Self:
        """Return a mapping below this one; empty when absent. Without `quotes` it is not quoted where it is none."""
        value = self.data.get(name)
        if not quotes and value is not None and not isinstance(value, Mapping):
            self.fault(name, "must be a mapping")
            value = None
        return type(self)(value, (*self.path, name), self.faults, known, quotes=self.quotes)

    def items(self, name: str) -> Iterator[tuple[Path, Any]]:
        """Yield path and value of each item of a list; nothing when absent."""
        value = self.data.get(name)
        if value is None:
            return
        if not isinstance(value, list):
            self.fault(name, f"must be a list{self._not(value)}")
            return
        for index, item in enumerate(value):
            yield (*self.path, name, index), item

    def mappings(self, name: str, known: Sequence[str] | None) -> Iterator[Self]:
        """Yield each mapping of a list."""
        for path, item in self.items(name):
            if isinstance(item, Mapping):
                yield type(self)(item, path, self.faults, known, quotes=self.quotes)
            else:
                self.faults.add(path, f"must be a mapping{self._not(item)}")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings; () when absent."""
        found = []
        for path, item in self.items(name):
            if isinstance(item, str):
                found.append(item)
            else:
                self.faults.add(path, f"must be a string{self._not(item)}: quote it")
        return tuple(found)

    def string_map(self, name: str) -> dict[str, str]:
        """Return a mapping of strings to strings; {} when absent."""
        value, found = self.data.get(name), {}
        if value is not None and not isinstance(value, Mapping):
            self.fault(name, f"must be a mapping{self._not(value)}")
            return {}
        for key, one in (value or {}).items():
            if isinstance(one, str):
                found[key] = one
            else:
                path = (*self.path, name, key) if self.quotes else (*self.path, name)
                self.faults.add(path, f"must be a string{self._not(one)}: quote it")
        return found

    def require(self, name: str, what: str, code: Code | None = None) -> None:
        """Note that a value is needed, unless the field is written."""
        if not self.has(name):
            self.fault(name, f"must be {what}", code)


def dotted(path: Path) -> str:
    """Return a path as messages name it: `spec.overrideRules[2].overriders`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def meant(name: str, known: Sequence[str]) -> str:
    """Return the end of a sentence on an unknown name: which of the known ones may be meant, if any is near."""
    # looking for what is near costs more than it is worth among very many
    nearest = get_close_matches(name, known, 1) if len(known) <= _COMPARED else []
    return f"; did you mean {nearest[0]}?" if nearest else ""


def listed(names: Sequence[str], joint: str = ", ") -> str:
    """Return names as messages list them, not too many."""
    more = f", and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return joint.join(names[:_LISTED]) + more


def named(value: object) -> str:
    """Return a value as messages on wrong types quote it: of what is in a list or a mapping nothing is to be seen."""
    if isinstance(value, list | Mapping) and value:
        return "a list" if isinstance(value, list) else "a mapping"
    return shown(value)


def shown(value: object) -> str:
    """Return a value as messages quote it: compact JSON, not too long."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
