"""Option names as paths into Helm values, and the values that options make together, as Helm's --set-json makes them.

See greenhouse 9. Where Helm loses a value without a word (an empty step of a path, a value of a list below which
another path goes on), there is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, TypeAlias

from reconciler.caching import cached

Step: TypeAlias = str | int
"""A key of a map, or a place in a list."""

MAX_LEVELS: Final = 30
"""How many dots may follow keys in one name, as in Helm."""

MAX_INDEX: Final = 65_536
"""The highest place in a list that a name may lead to, as in Helm."""

MAX_INDEXES: Final = 30
"""How many places in lists one name may lead through; Helm has no limit, and we write no YAML that is deeper."""

MAX_FILLED: Final = 100_000
"""How many places all names together may add to lists, gaps included, so that a few names cannot fill the memory."""

_KEY = re.compile(r"(?:[^\\.\[=,]|\\.)*", re.DOTALL)
_INDEX = re.compile(r"\[([0-9]{1,20})\]", re.ASCII)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SPECIAL = re.compile(r"[\\.\[=,]")
_MISSING: Final = object()


@dataclass(frozen=True)
class PathFault:
    """Why the option `name` has no place in the values; `other` is the option that is in its way, if one is."""

    name: str
    other: str
    message: str


@dataclass(frozen=True)
class Nested:
    """The values that options make, and which of the options are not in them."""

    values: dict[str, Any]
    faults: tuple[PathFault, ...] = ()


def name_fault(name: str) -> str:
    """Return why an option's name leads nowhere, "" when it is sound; the text completes a sentence on the name."""
    return _read(name)[1]


def steps_of(name: str) -> tuple[Step, ...]:
    """Return the path that an option's name stands for, () when the name is not sound."""
    return _read(name)[0]


def spelled(steps: Sequence[Step]) -> str:
    """Return the name that stands for a path, with what means something in names escaped."""
    parts = (f"[{step}]" if isinstance(step, int) else "." + _SPECIAL.sub(r"\\\g<0>", step) for step in steps)
    return "".join(parts).removeprefix(".")


def nested(entries: Iterable[tuple[str, Any]]) -> Nested:
    """Return the values that options make together, each at its path; what is given is not changed.

    Parents come before what lies below them, whatever the order of `entries`: what lies below wins. Of two names for
    one path the later wins.
    """
    read = [(*_read(name), name, value) for name, value in entries]
    faults = [PathFault(name, "", fault) for _, fault, name, _ in read if fault]
    tree = _Tree()
    for steps, _, name, value in sorted((one for one in read if one[0]), key=lambda one: _order(one[0])):
        try:
            tree.place(steps, name, value)
        except _PlaceError as error:
            faults.append(PathFault(name, error.other, error.message))
    return Nested(tree.values, tuple(faults))


def is_free(values: Mapping[str, Any], steps: Sequence[Step]) -> bool:
    """Tell whether something at a path stays there when `values` are merged over it, maps only, as Helm and Flux do."""
    box: Any = values
    for step in steps:
        if isinstance(step, int) or not isinstance(box, dict):
            # a list or a map that is written wins whole over a list
            return False
        if step not in box:
            return True
        box = box[step]
    return False


class _PlaceError(ValueError):
    """A value that cannot be put where its name leads."""

    def __init__(self, message: str, other: str = "") -> None:
        super().__init__(message, other)
        self.message = message
        self.other = other


@dataclass
class _Tree:
    """Values as they grow, and which option made what is at a path."""

    values: dict[str, Any] = field(default_factory=dict)
    makers: dict[tuple[Step, ...], str] = field(default_factory=dict)
    filled: int = 0

    def place(self, steps: tuple[Step, ...], name: str, value: Any) -> None:
        """Put a value at its path, or raise _PlaceError and leave all as it is."""
        box: Any = self.values
        for depth, step in enumerate(steps):
            if not isinstance(box, list if isinstance(step, int) else dict):
                raise self._in_the_way(steps[:depth], step, box)
            inner = _at(box, step)
            if depth == len(steps) - 1 or inner is _MISSING:
                self._fill(box, steps[depth:])
                _attach(box, step, _grown(steps[depth + 1 :], deepcopy(value)))
                self.makers |= {steps[:end]: name for end in range(depth + 1, len(steps) + 1)}
                return
            box = inner

    def _in_the_way(self, steps: tuple[Step, ...], step: Step, found: Any) -> _PlaceError:
        wanted = "a list" if isinstance(step, int) else "a map"
        other = next(self.makers[steps[:end]] for end in range(len(steps), 0, -1) if steps[:end] in self.makers)
        return _PlaceError(f"needs {wanted} at {spelled(steps)}, where {other} puts {_kind(found)}", other)

    def _fill(self, box: Any, steps: tuple[Step, ...]) -> None:
        wanted = sum(step + 1 for step in steps if isinstance(step, int))
        if isinstance(box, list):
            wanted -= min(len(box), int(steps[0]) + 1)
        if self.filled + wanted > MAX_FILLED:
            raise _PlaceError(f"would make the lists of all options longer than {MAX_FILLED} places")
        self.filled += wanted


def _at(box: Any, step: Any) -> Any:
    if isinstance(box, dict):
        return box.get(step, _MISSING)
    # Helm takes a null in a list for a gap; a null in a map is a value, and in the way
    return _MISSING if step >= len(box) or box[step] is None else box[step]


def _attach(box: Any, step: Any, value: Any) -> None:
    if isinstance(box, list):
        box.extend([None] * (step + 1 - len(box)))
    box[step] = value


def _grown(steps: tuple[Step, ...], value: Any) -> Any:
    for step in reversed(steps):
        value = [*[None] * step, value] if isinstance(step, int) else {step: value}
    return value


def _order(steps: tuple[Step, ...]) -> tuple[tuple[bool, int, str], ...]:
    return tuple((False, step, "") if isinstance(step, int) else (True, 0, step) for step in steps)


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case list():
            return "a list"
        case dict():
            return "a map"
        case _:
            return "a number"


@cached(8_192)
def _read(name: str) -> tuple[tuple[Step, ...], str]:
    try:
        steps = tuple(_steps(name))
    except _NameError as error:
        return (), str(error)
    fault = _depth_fault(steps)
    return ((), fault) if fault else (steps, "")


def _depth_fault(steps: tuple[Step, ...]) -> str:
    if sum(isinstance(one, str) and isinstance(two, str) for one, two in pairwise(steps)) > MAX_LEVELS:
        return f"must not have more than {MAX_LEVELS} dots"
    if sum(isinstance(step, int) for step in steps) > MAX_INDEXES:
        return f"must not lead through more than {MAX_INDEXES} lists"
    return ""


class _NameError(ValueError):
    """A name that leads nowhere."""


def _steps(name: str) -> Iterator[Step]:
    at, end = 0, len(name)
    while True:
        key = _KEY.match(name, at)
        if key is None or not key[0]:
            raise _NameError(_empty_step(name, at))
        yield _ESCAPED.sub(r"\1", key[0])
        at = key.end()
        while name.startswith("[", at):
            index = _index(name, at)
            yield int(index[1])
            at = index.end()
        if at == end:
            return
        if name[at] != ".":
            raise _NameError(_stray(name, at))
        at += 1


def _index(name: str, at: int) -> re.Match[str]:
    index = _INDEX.match(name, at)
    if index is None or int(index[1]) > MAX_INDEX:
        raise _NameError(f"must have a number up to {MAX_INDEX} in brackets, like [0], or a \\ before the bracket")
    return index


def _empty_step(name: str, at: int) -> str:
    if not name:
        return "must not be empty"
    if name.startswith("\\", at):
        return "must not end in a backslash"
    return f"must have a key between dots and before brackets, not nothing at character {at + 1}"


def _stray(name: str, at: int) -> str:
    if name[at] == "\\":
        return "must not end in a backslash"
    if name[at - 1] == "]":
        return f'must have a dot or nothing behind "]", not "{name[at]}"'
    return f'must have a \\ before "{name[at]}", which ends a name otherwise'
