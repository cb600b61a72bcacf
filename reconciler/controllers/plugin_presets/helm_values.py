"""Helm values, which are assembled from options. An option name is a path into the values, as in `helm --set-json`.

Helm silently drops a value whose path has an empty step. Helm also drops a list item if another path continues below
the item. In this module, both cases are errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any, Final, TypeAlias

from reconciler.lazy_dataclasses import dataclass, field
from reconciler.memory import cached

PathStep: TypeAlias = str | int
"""One step of a path in Helm values: a key of a map, or an index of a list."""

MAX_LEVELS: Final = 30
"""Maximum number of dots between two keys in one option name. Helm has the same limit."""

MAX_INDEX: Final = 65_536
"""Maximum list index in an option name. Helm has the same limit."""

MAX_INDEXES: Final = 30
"""Maximum number of list indexes in one option name. Helm has no such limit. It limits the depth of the YAML."""

MAX_LIST_ITEMS: Final = 100_000
"""Maximum number of list items that the options of one Plugin may create, to limit the memory use.

Null items before a list index are included.
"""

_KEY = re.compile(r"(?:[^\\.\[=,]|\\.)*", re.DOTALL)
_INDEX = re.compile(r"\[([0-9]{1,20})\]", re.ASCII)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SPECIAL = re.compile(r"[\\.\[=,]")
_MISSING: Final = object()


@dataclass(frozen=True)
class PathConflict:
    """The reason why the value of the option `name` cannot be placed in the Helm values.

    `conflicting_name` is the option that prevents the placement. It is "" if no other option causes the conflict.
    """

    name: str
    conflicting_name: str
    message: str


@dataclass(frozen=True)
class HelmValues:
    """Helm values that are assembled from options, and a conflict for each option that the values cannot contain."""

    values: dict[str, Any]
    conflicts: tuple[PathConflict, ...] = ()


def check_option_name(name: str) -> str:
    """Return the reason why an option name is not a valid path, e.g. "must not be empty".

    Return "" if the name is valid.
    """
    return _parse_name(name)[1]


def parse_option_name(name: str) -> tuple[PathStep, ...]:
    """Return the path of an option name, e.g. "a.b[0]" -> ("a", "b", 0). Return () if the name is invalid."""
    return _parse_name(name)[0]


def format_option_name(steps: Sequence[PathStep]) -> str:
    """Return the option name of a path, e.g. ("a", "b", 0) -> "a.b[0]". Special characters get a backslash."""
    parts = (f"[{step}]" if isinstance(step, int) else "." + _SPECIAL.sub(r"\\\g<0>", step) for step in steps)
    return "".join(parts).removeprefix(".")


def build_values(entries: Iterable[tuple[str, Any]]) -> HelmValues:
    """Assemble Helm values from options. `entries` are pairs of option name and value.

    The order of `entries` is not important if one path is the parent of another: the value of `a.b` always replaces a
    part of the value of `a`. If two names have the same path, the later entry replaces the earlier entry.
    """
    parsed = [(*_parse_name(name), name, value) for name, value in entries]
    conflicts = [PathConflict(name, "", message) for _, message, name, _ in parsed if message]
    tree = _Tree()
    for steps, _, name, value in sorted(
        (entry for entry in parsed if entry[0]), key=lambda entry: _get_sort_key(entry[0])
    ):
        try:
            tree.place(steps, name, value)
        except _PlaceError as error:
            conflicts.append(PathConflict(name, error.conflicting_name, error.message))
    return HelmValues(tree.values, tuple(conflicts))


def is_free(values: Mapping[str, Any], steps: Sequence[PathStep]) -> bool:
    """Return whether Helm or Flux keeps a value at the path `steps` when it merges `values` over this value.

    Helm and Flux merge only maps. Any other value in `values` replaces everything at its path.
    """
    container: Any = values
    for step in steps:
        if isinstance(step, int) or not isinstance(container, dict):
            # The value is lost, because `values` contains a list or a scalar on the path, and only maps are merged.
            return False
        if step not in container:
            return True
        container = container[step]
    return False


class _PlaceError(ValueError):
    """Raised if a value cannot be placed at its path in the Helm values."""

    def __init__(self, message: str, conflicting_name: str = "") -> None:
        super().__init__(message, conflicting_name)
        self.message = message
        self.conflicting_name = conflicting_name


@dataclass
class _Tree:
    """Helm values during construction, and the name of the option that created each path."""

    values: dict[str, Any] = field(default_factory=dict)
    creators: dict[tuple[PathStep, ...], str] = field(default_factory=dict)
    list_item_count: int = 0

    def place(self, steps: tuple[PathStep, ...], name: str, value: Any) -> None:
        """Place a value at its path. Raise `_PlaceError` and change nothing if the value cannot be placed."""
        container: Any = self.values
        for depth, step in enumerate(steps):
            if not isinstance(container, list if isinstance(step, int) else dict):
                raise self._create_error(steps[:depth], step, container)
            item = _get_item(container, step)
            if depth == len(steps) - 1 or item is _MISSING:
                self._count_list_items(container, steps[depth:])
                _set_item(container, step, _build_containers(steps[depth + 1 :], deepcopy(value)))
                self.creators |= {steps[:end]: name for end in range(depth + 1, len(steps) + 1)}
                return
            container = item

    def _create_error(self, steps: tuple[PathStep, ...], step: PathStep, value: Any) -> _PlaceError:
        required_kind = "a list" if isinstance(step, int) else "a map"
        creator = next(self.creators[steps[:end]] for end in range(len(steps), 0, -1) if steps[:end] in self.creators)
        return _PlaceError(
            f"requires {required_kind} at {format_option_name(steps)}, where {creator} sets {_format_kind(value)}",
            creator,
        )

    def _count_list_items(self, container: Any, steps: tuple[PathStep, ...]) -> None:
        new_items = sum(step + 1 for step in steps if isinstance(step, int))
        if isinstance(container, list):
            new_items -= min(len(container), int(steps[0]) + 1)
        if self.list_item_count + new_items > MAX_LIST_ITEMS:
            raise _PlaceError(f"would increase the number of list items in all options to more than {MAX_LIST_ITEMS}")
        self.list_item_count += new_items


def _get_item(container: Any, step: Any) -> Any:
    if isinstance(container, dict):
        return container.get(step, _MISSING)
    # Treat a null in a list as a missing item, as Helm does. A null in a map is a value, and a longer path that
    # continues below it is an error.
    return _MISSING if step >= len(container) or container[step] is None else container[step]


def _set_item(container: Any, step: Any, value: Any) -> None:
    if isinstance(container, list):
        container.extend([None] * (step + 1 - len(container)))
    container[step] = value


def _build_containers(steps: tuple[PathStep, ...], value: Any) -> Any:
    for step in reversed(steps):
        value = [*[None] * step, value] if isinstance(step, int) else {step: value}
    return value


def _get_sort_key(steps: tuple[PathStep, ...]) -> tuple[tuple[bool, int, str], ...]:
    return tuple((False, step, "") if isinstance(step, int) else (True, 0, step) for step in steps)


def _format_kind(value: Any) -> str:
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
def _parse_name(name: str) -> tuple[tuple[PathStep, ...], str]:
    try:
        steps = tuple(_iterate_steps(name))
    except _NameError as error:
        return (), str(error)
    message = _check_depth(steps)
    return ((), message) if message else (steps, "")


def _check_depth(steps: tuple[PathStep, ...]) -> str:
    if sum(isinstance(step, str) and isinstance(next_step, str) for step, next_step in pairwise(steps)) > MAX_LEVELS:
        return f"must not have more than {MAX_LEVELS} dots"
    if sum(isinstance(step, int) for step in steps) > MAX_INDEXES:
        return f"must not have more than {MAX_INDEXES} list indexes"
    return ""


class _NameError(ValueError):
    """Raised if an option name is not a valid path."""


def _iterate_steps(name: str) -> Iterator[PathStep]:
    position, end = 0, len(name)
    while True:
        key = _KEY.match(name, position)
        if key is None or not key[0]:
            raise _NameError(_explain_empty_step(name, position))
        yield _ESCAPED.sub(r"\1", key[0])
        position = key.end()
        while name.startswith("[", position):
            index = _match_index(name, position)
            yield int(index[1])
            position = index.end()
        if position == end:
            return
        if name[position] != ".":
            raise _NameError(_explain_stray_character(name, position))
        position += 1


def _match_index(name: str, position: int) -> re.Match[str]:
    index = _INDEX.match(name, position)
    if index is None or int(index[1]) > MAX_INDEX:
        raise _NameError(f"must have a number up to {MAX_INDEX} in brackets, like [0], or a \\ before the bracket")
    return index


def _explain_empty_step(name: str, position: int) -> str:
    if not name:
        return "must not be empty"
    if name.startswith("\\", position):
        return "must not end in a backslash"
    return f"must have a key between dots and before brackets; the key at character {position + 1} is empty"


def _explain_stray_character(name: str, position: int) -> str:
    if name[position] == "\\":
        return "must not end in a backslash"
    if name[position - 1] == "]":
        return f'must have a dot or nothing after "]", not "{name[position]}"'
    return f'must have a \\ before "{name[position]}", because "{name[position]}" ends a name'
