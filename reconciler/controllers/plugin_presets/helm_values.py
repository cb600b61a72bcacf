"""Helm values, which are assembled from options. An option name is a path into the values.

If one option sets a list item and the path of another option continues below this item, Helm silently drops the item.
In this module, this case is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from reconciler.krm.helm_paths import PathStep, check_option_name, format_option_name, parse_option_name
from reconciler.lazy_dataclasses import dataclass, field

MAX_LIST_ITEMS: Final = 100_000
"""Maximum number of list items that the options of one Plugin may create, to limit the memory use.

Helm fills missing items before a list index with null. These items count too.
"""

_MISSING: Final = object()


@dataclass(frozen=True)
class PathConflict:
    """The reason why the Helm values cannot contain the value of the option `name`.

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


def build_values(entries: Iterable[tuple[str, Any]]) -> HelmValues:
    """Assemble Helm values from options. `entries` are pairs of option name and value.

    The order of `entries` is not important if one path is the parent of another: the value of `a.b` always replaces a
    part of the value of `a`. If two names have the same path, the later entry replaces the earlier entry.
    """
    parsed = [(parse_option_name(name), check_option_name(name), name, value) for name, value in entries]
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
    """Return whether Helm and Flux keep a value at the path `steps` when they merge `values` over this value.

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
